//! What people point at on a canvas (docs/reference/events.md#pointers).
//!
//! **Guarantee.** Pointers are in memory alone: where their canvas is followed, until 10 s after they were sent, at most 32 of a
//! canvas, and of all canvases what the share of pointers admits. While Redis is unavailable, followers get those of this gateway.
//!
//! **Mechanism.** The gateway that receives a pointer keeps it and publishes it on a channel of the canvas; each gateway that follows
//! the canvas keeps it as well. A feed tells the followers.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::channel;
use domain::id::{AccountUid, CanvasHandle};
use domain::limits::{POINTER_SECONDS, POINTERS_MAX};
use domain::stream::{Pointer, PointerState};
use service::shares::{Held, Shares};
use tokio::time::{Instant, MissedTickBehavior, interval};
use uuid::Uuid;

use super::PACE;
use super::feed::{Feed, Follower};
use crate::admission::account_key;

const SHOWN: Duration = Duration::from_secs(POINTER_SECONDS);
/// Interval in which pointers that are no longer shown are removed.
const SWEEP: Duration = Duration::from_secs(1);
/// Pointers of one process and of one account. Of more, the latest are not shown.
const TOTAL: u64 = 8192;
const OF_ACCOUNT: u64 = 64;

/// The pointers on a canvas, in the order of their ids.
pub type Shown = Arc<[Arc<Pointer>]>;

/// The pointers on the canvases that this gateway follows.
pub struct Pointers {
    cache: cache::Cache,
    /// Id of this process: distinguishes its own messages from those of others.
    gateway: Uuid,
    feed: Arc<Feed<CanvasHandle, Shown>>,
    kept: Mutex<HashMap<CanvasHandle, BTreeMap<String, Kept>>>,
    share: Shares,
}

/// A pointer with its place in the share of its account.
struct Kept {
    pointer: Arc<Pointer>,
    sent: Instant,
    _place: Held,
}

/// What one gateway publishes: itself, the account of the pointer, and the pointer.
type Message = (Uuid, CanvasHandle, AccountUid, Pointer);

impl Pointers {
    /// No pointers, and the background task, which runs as long as the process serves.
    pub fn new(cache: cache::Cache) -> (Arc<Self>, impl Future<Output = ()> + Send) {
        let pointers = Arc::new(Self {
            feed: Feed::new(cache.clone(), PACE),
            gateway: Uuid::now_v7(),
            kept: Mutex::default(),
            share: Shares::new("pointers", TOTAL, OF_ACCOUNT),
            cache,
        });
        let running = pointers.clone();
        let work = async move {
            let running = &running;
            let telling = running
                .feed
                .run(|canvases| async move { Ok(canvases.iter().map(|canvas| running.shown(canvas)).collect()) });
            tokio::join!(running.receive(), telling);
        };
        (pointers, work)
    }

    /// Follows the pointers on a canvas.
    pub fn follow(&self, canvas: &CanvasHandle) -> Follower<CanvasHandle, Shown> {
        self.feed.follow(canvas.clone(), &channel::pointers(canvas))
    }

    /// The pointers on a canvas that this gateway knows.
    pub fn shown(&self, canvas: &CanvasHandle) -> Shown {
        self.lock().get(canvas).into_iter().flat_map(BTreeMap::values).map(|kept| kept.pointer.clone()).collect()
    }

    /// Shows a pointer of an account to all who follow the canvas.
    pub async fn show(&self, canvas: &CanvasHandle, account: &AccountUid, pointer: Pointer) {
        let message = serde_json::json!([self.gateway, canvas, account, pointer]).to_string();
        self.keep(canvas, account, pointer);
        self.cache.publish(&channel::pointers(canvas), &message).await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CanvasHandle, BTreeMap<String, Kept>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a pointer in the place of the earlier one, or removes it if it shows nothing.
    fn keep(&self, canvas: &CanvasHandle, account: &AccountUid, pointer: Pointer) {
        if !self.feed.follows(canvas) {
            return;
        }
        let sent = Instant::now();
        let mut kept = self.lock();
        let pointers = kept.entry(canvas.clone()).or_default();
        if pointer.state == PointerState::default() {
            pointers.remove(&pointer.who.id);
        } else if let Some(earlier) = pointers.get_mut(&pointer.who.id) {
            (earlier.pointer, earlier.sent) = (Arc::new(pointer), sent);
        } else if pointers.len() < POINTERS_MAX
            && let Some(place) = self.share.try_hold(&account_key(account), 1)
        {
            let id = pointer.who.id.clone();
            pointers.insert(id, Kept { pointer: Arc::new(pointer), sent, _place: place });
        }
        if pointers.is_empty() {
            kept.remove(canvas);
        }
        drop(kept);
        self.feed.mark([canvas.clone()]);
    }

    /// Keeps the pointers that other gateways publish, and removes those that are no longer shown.
    async fn receive(&self) {
        let mut messages = self.cache.messages();
        let mut sweep = interval(SWEEP);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = messages.next() => self.keep_published(&message),
                _ = sweep.tick() => self.sweep(),
            }
        }
    }

    fn keep_published(&self, message: &[u8]) {
        // A message of another release that cannot be read is left out.
        let Ok((gateway, canvas, account, pointer)) = serde_json::from_slice::<Message>(message) else { return };
        if gateway != self.gateway {
            self.keep(&canvas, &account, pointer);
        }
    }

    fn sweep(&self) {
        let mut changed = Vec::new();
        self.lock().retain(|canvas, pointers| {
            let before = pointers.len();
            pointers.retain(|_, kept| kept.sent.elapsed() < SHOWN);
            if pointers.len() < before {
                changed.push(canvas.clone());
            }
            !pointers.is_empty()
        });
        if !changed.is_empty() {
            self.feed.mark(changed);
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::account::Surface;
    use domain::stream::{Coordinate, Participant};
    use testkit::{redis_prefix, redis_url, wait_for};
    use tokio_util::task::AbortOnDropHandle;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);
    const NOWHERE: &str = "redis://127.0.0.1:1";

    fn canvas(id: &str) -> CanvasHandle {
        CanvasHandle::try_from(format!("canvas:owner:{id}")).expect("a handle")
    }

    fn account(name: &str) -> AccountUid {
        AccountUid::from_stored(name.to_owned())
    }

    fn pointer(id: &str, x: f64) -> Pointer {
        let who = Participant { id: id.to_owned(), label: "ann".to_owned(), surface: Surface::Browser };
        let at = Some([Coordinate(x), Coordinate(0.0)]);
        Pointer { who, state: PointerState { at, ..PointerState::default() } }
    }

    fn nothing(id: &str) -> Pointer {
        Pointer { state: PointerState::default(), ..pointer(id, 0.0) }
    }

    /// A gateway that ends when the handle is dropped.
    fn gateway(url: &str, prefix: &str) -> (Arc<Pointers>, AbortOnDropHandle<()>) {
        let (pointers, work) = Pointers::new(cache::Cache::connect(url, prefix).expect("a Redis URL"));
        (pointers, AbortOnDropHandle::new(tokio::spawn(work)))
    }

    fn ids(pointers: &Pointers, canvas: &CanvasHandle) -> Vec<String> {
        pointers.shown(canvas).iter().map(|pointer| pointer.who.id.clone()).collect()
    }

    #[tokio::test]
    async fn a_pointer_is_shown_at_every_gateway_that_follows_its_canvas_and_kept_nowhere_else() {
        let prefix = redis_prefix();
        let gateways = [(); 3].map(|()| gateway(&redis_url(), &prefix));
        let [(one, _one), (two, _two), (three, _three)] = &gateways;
        let (canvas, ann) = (canvas("a"), account("ann"));
        let (mut here, mut there) = (one.follow(&canvas), two.follow(&canvas));
        for follower in [&mut here, &mut there] {
            assert!(follower.next().await.is_empty(), "the subscription is live");
        }
        for x in [1.0, 2.0] {
            one.show(&canvas, &ann, pointer("p", x)).await;
            for follower in [&mut here, &mut there] {
                assert_eq!(follower.next().await.to_vec(), [Arc::new(pointer("p", x))]);
            }
        }
        assert!(ids(three, &canvas).is_empty(), "nobody follows it there");
        two.show(&canvas, &ann, nothing("p")).await;
        for follower in [&mut here, &mut there] {
            assert!(follower.next().await.is_empty());
        }
        assert!(one.lock().is_empty() && two.lock().is_empty());
    }

    #[tokio::test]
    async fn without_redis_the_pointers_of_this_gateway_are_shown() {
        let (pointers, _works) = gateway(NOWHERE, "nobody");
        let mut follower = pointers.follow(&canvas("a"));
        pointers.show(&canvas("a"), &account("ann"), pointer("p", 1.0)).await;
        wait_for("the pointer", LIMIT, async || (follower.next().await.len() == 1).then_some(())).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_pointer_is_shown_until_10_seconds_after_the_last_was_sent() {
        let (pointers, _works) = gateway(NOWHERE, "nobody");
        let (canvas, ann) = (canvas("a"), account("ann"));
        let _follower = pointers.follow(&canvas);
        pointers.keep(&canvas, &ann, pointer("p", 1.0));
        tokio::time::sleep(SHOWN - SWEEP).await;
        // The same pointer once more.
        pointers.keep(&canvas, &ann, pointer("p", 1.0));
        tokio::time::sleep(SHOWN - SWEEP).await;
        assert_eq!(ids(&pointers, &canvas), ["p"]);
        tokio::time::sleep(2 * SWEEP).await;
        assert!(pointers.lock().is_empty());
        assert_eq!(pointers.share.held(), 0);
    }

    #[tokio::test]
    async fn a_canvas_shows_the_pointers_of_at_most_32_people() {
        let (pointers, _works) = gateway(NOWHERE, "nobody");
        let canvas = canvas("a");
        let _follower = pointers.follow(&canvas);
        let show = |number: usize| pointers.keep(&canvas, &account("ann"), pointer(&format!("{number:02}"), 1.0));
        for (sent, shown) in [(31, 31), (32, 32), (33, 32)] {
            (0..sent).for_each(show);
            assert_eq!(ids(&pointers, &canvas).len(), shown, "{sent}");
        }
        // One that leaves makes room for another.
        pointers.keep(&canvas, &account("ann"), nothing("00"));
        show(40);
        assert_eq!(ids(&pointers, &canvas).last().map(String::as_str), Some("40"));
    }

    #[tokio::test]
    async fn an_account_fills_its_own_share_alone() {
        let (pointers, _works) = gateway(NOWHERE, "nobody");
        let canvases: Vec<CanvasHandle> = (0..=OF_ACCOUNT).map(|number| canvas(&number.to_string())).collect();
        let _followers: Vec<_> = canvases.iter().map(|canvas| pointers.follow(canvas)).collect();
        for canvas in &canvases {
            pointers.keep(canvas, &account("ann"), pointer("p", 1.0));
        }
        let last = canvases.last().expect("some");
        assert_eq!((pointers.share.held(), ids(&pointers, last).len()), (OF_ACCOUNT, 0));
        pointers.keep(last, &account("ben"), pointer("q", 1.0));
        assert_eq!(ids(&pointers, last), ["q"]);
    }
}
