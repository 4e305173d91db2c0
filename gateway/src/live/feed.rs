//! Present states that many followers share (docs/reference/events.md).
//!
//! **Guarantee.** A follower sees each announced state or a newer one: soon after the announcement, and after five seconds at the
//! latest, or half a second while Redis is unavailable. A subject takes the memory of one state, however slowly its followers
//! read, and a change is read once for all of them.
//!
//! **Mechanism.** While a subject is followed, a task waits for its announcements and marks the subject as due; `cache::Watch` also
//! wakes it periodically. One background task reads the states of all subjects that are due together. While Redis is unavailable
//! it reads those of all subjects, every half second.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use db::deadline::with_deadline;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

/// Minimum time between two reads while Redis is unavailable, and after a failure.
const PACE_WITHOUT_REDIS: Duration = Duration::from_millis(500);

/// The followed subjects of one kind.
pub struct Feed<K, S> {
    cache: cache::Cache,
    /// Minimum time between two reads. Announcements meanwhile are read together.
    pace: Duration,
    topics: Mutex<HashMap<K, Topic<S>>>,
    due: Arc<Due<K>>,
}

/// A followed subject.
struct Topic<S> {
    /// `None` until the first read.
    state: watch::Sender<Option<S>>,
    _announcements: AbortOnDropHandle<()>,
}

/// The subjects to read.
struct Due<K> {
    keys: Mutex<HashSet<K>>,
    marked: Notify,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks is complete.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K: Eq + Hash> Due<K> {
    fn mark(&self, keys: impl IntoIterator<Item = K>) {
        lock(&self.keys).extend(keys);
        self.marked.notify_one();
    }
}

impl<K: Clone + Eq + Hash + Send + 'static, S: Clone + PartialEq> Feed<K, S> {
    pub fn new(cache: cache::Cache, pace: Duration) -> Arc<Self> {
        let due = Due { keys: Mutex::default(), marked: Notify::new() };
        Arc::new(Self { cache, pace, topics: Mutex::default(), due: Arc::new(due) })
    }

    /// Follows a subject whose changes are announced on `channel`. A caller that then reads the state itself misses no change.
    pub fn follow(self: &Arc<Self>, key: K, channel: &str) -> Follower<K, S> {
        let mut topics = lock(&self.topics);
        let topic = topics.entry(key.clone()).or_insert_with(|| {
            let (due, key, mut announced) = (self.due.clone(), key.clone(), self.cache.subscribe(channel));
            let announcements = tokio::spawn(async move {
                loop {
                    announced.changed().await;
                    due.mark([key.clone()]);
                }
            });
            Topic { state: watch::Sender::new(None), _announcements: AbortOnDropHandle::new(announcements) }
        });
        Follower { feed: self.clone(), key, state: topic.state.subscribe() }
    }

    /// Returns `true` if a subject is followed.
    pub fn follows(&self, key: &K) -> bool {
        lock(&self.topics).contains_key(key)
    }

    /// Has subjects read that this process has changed by itself.
    pub fn mark(&self, keys: impl IntoIterator<Item = K>) {
        self.due.mark(keys);
    }

    /// Reads what is due, for as long as the process serves. `read` returns one state for each key, in their order.
    pub async fn run<F: Future<Output = db::Result<Vec<S>>>>(&self, read: impl Fn(Vec<K>) -> F) {
        loop {
            self.due.marked.notified().await;
            let due = std::mem::take(&mut *lock(&self.due.keys));
            let without_redis = !self.cache.is_up();
            let keys: Vec<K> =
                lock(&self.topics).keys().filter(|key| without_redis || due.contains(key)).cloned().collect();
            let failed = !keys.is_empty() && !self.publish(keys, &read).await;
            sleep(if without_redis || failed { PACE_WITHOUT_REDIS } else { self.pace }).await;
        }
    }

    /// Reads and publishes the states of `keys`. When that fails, they stay due.
    async fn publish<F: Future<Output = db::Result<Vec<S>>>>(&self, keys: Vec<K>, read: &impl Fn(Vec<K>) -> F) -> bool {
        let states = match with_deadline(read(keys.clone())).await {
            Ok(states) => states,
            Err(error) => {
                tracing::warn!(error = service::chain(&error), "followed states cannot be read, retrying");
                self.due.mark(keys);
                return false;
            }
        };
        let topics = lock(&self.topics);
        for (key, state) in keys.iter().zip(states) {
            if let Some(topic) = topics.get(key) {
                topic.state.send_if_modified(|known| {
                    let changed = known.as_ref() != Some(&state);
                    *known = Some(state);
                    changed
                });
            }
        }
        true
    }
}

/// One follower of a subject.
pub struct Follower<K: Eq + Hash, S> {
    feed: Arc<Feed<K, S>>,
    key: K,
    state: watch::Receiver<Option<S>>,
}

impl<K: Eq + Hash, S: Clone> Follower<K, S> {
    /// The newest state, once there is one that this follower has not seen.
    pub async fn next(&mut self) -> S {
        loop {
            // The sender exists as long as a follower does.
            if self.state.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            if let Some(state) = self.state.borrow_and_update().clone() {
                return state;
            }
        }
    }
}

impl<K: Eq + Hash, S> Drop for Follower<K, S> {
    fn drop(&mut self) {
        let mut topics = lock(&self.feed.topics);
        if topics.get(&self.key).is_some_and(|topic| topic.state.receiver_count() <= 1) {
            topics.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Instant;

    use testkit::{redis_prefix, redis_url, wait_for};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);
    const PACE: Duration = Duration::from_millis(20);

    /// A feed whose states are the lengths of its keys times a factor, and the number of reads so far.
    fn feed(url: &str, factor: &Arc<AtomicU32>) -> (Arc<Feed<String, u32>>, cache::Cache, Arc<AtomicU32>) {
        let cache = cache::Cache::connect(url, &redis_prefix()).expect("a Redis URL");
        let (feed, reads) = (Feed::new(cache.clone(), PACE), Arc::new(AtomicU32::new(0)));
        let (running, counted, factor) = (feed.clone(), reads.clone(), factor.clone());
        tokio::spawn(async move {
            let read = |keys: Vec<String>| {
                counted.fetch_add(1, Ordering::SeqCst);
                let factor = factor.load(Ordering::SeqCst);
                async move { Ok(keys.iter().map(|key| key.len() as u32 * factor).collect()) }
            };
            running.run(read).await;
        });
        (feed, cache, reads)
    }

    #[tokio::test]
    async fn every_follower_sees_the_newest_state_and_a_subject_without_followers_is_forgotten() {
        let factor = Arc::new(AtomicU32::new(1));
        let (feed, cache, _) = feed(&redis_url(), &factor);
        let mut followers = [feed.follow("abc".into(), "abc"), feed.follow("abc".into(), "abc")];
        for follower in &mut followers {
            assert_eq!(follower.next().await, 3);
        }
        factor.store(2, Ordering::SeqCst);
        cache.notify(["abc"]).await;
        let [mut one, two] = followers;
        assert_eq!(one.next().await, 6);
        drop(two);
        assert_eq!(lock(&feed.topics).len(), 1);
        drop(one);
        assert_eq!(lock(&feed.topics).len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_is_never_answered_is_repeated_after_five_seconds() {
        let cache = cache::Cache::connect("redis://127.0.0.1:1", &redis_prefix()).expect("a Redis URL");
        let (feed, reads) = (Feed::new(cache, PACE), AtomicU32::new(0));
        let read = |keys: Vec<String>| {
            let is_first = reads.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                if is_first {
                    std::future::pending::<()>().await;
                }
                Ok(keys.iter().map(|key| key.len() as u32).collect())
            }
        };
        let mut follower = feed.follow("abc".into(), "abc");
        let started = tokio::time::Instant::now();
        tokio::select! {
            () = feed.run(read) => unreachable!("serves for as long as it is polled"),
            state = follower.next() => assert_eq!(state, 3),
        }
        assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
        assert!(reads.load(Ordering::SeqCst) >= 2);
    }

    #[tokio::test]
    async fn without_redis_all_subjects_are_read_together_every_half_second() {
        let factor = Arc::new(AtomicU32::new(1));
        let (feed, _, reads) = feed("redis://127.0.0.1:1", &factor);
        let keys: Vec<String> = (1..=50).map(|length| "k".repeat(length)).collect();
        let mut followers: Vec<_> = keys.iter().map(|key| feed.follow(key.clone(), key)).collect();
        for (follower, key) in followers.iter_mut().zip(&keys) {
            assert_eq!(follower.next().await, key.len() as u32);
        }
        let (start, before) = (Instant::now(), reads.load(Ordering::SeqCst));
        factor.store(2, Ordering::SeqCst);
        for (follower, key) in followers.iter_mut().zip(&keys) {
            assert_eq!(follower.next().await, 2 * key.len() as u32);
        }
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
        let after = wait_for("further reads", LIMIT, async || {
            let count = reads.load(Ordering::SeqCst);
            (count >= before + 3).then_some(count)
        });
        let count = after.await - before;
        let most = start.elapsed().as_millis() / 400 + 2;
        assert!(u128::from(count) <= most, "{count} reads within {:?}", start.elapsed());
    }
}
