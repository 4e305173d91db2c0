//! Memory for the files that imports hold while they fetch, decode and store them.
//!
//! **Guarantee.** The files being processed never exceed the budget (a single file always fits),
//! whatever foreign servers send: memory for the largest possible file is reserved before its first
//! byte is requested. An import that has begun can always proceed, because it holds a reservation
//! for one file, and imports never wait for each other. An import without a reservation waits
//! before it begins.
//!
//! **Mechanism.** Reservations go to the account that holds least, and within an import they are granted in the order in which files are
//! consumed: the file that is consumed next is served before those behind it.
//! The holder of a reservation waits for the network, for pixel memory ([`worker::Pixels`], a
//! separate budget whose holders never wait for this one) and for the store. Whatever waits for
//! another reservation is behind a file that already has one.

use std::future::Future;

use domain::limits::UPLOAD_MAX;
use futures_util::{Stream, StreamExt, stream};
use service::account;
use service::shares::{Held, Shares};

/// Concurrent fetches of one import: enough to overlap their latencies.
const AT_ONCE: usize = 3;

/// The permits of one import, each for one file: one from its beginning, and more when they are free.
pub(super) struct FilePermits {
    files: Shares,
    first: Held,
}

impl FilePermits {
    /// Waits for the first permit. While it waits, the import occupies a slot of the import queue, which no other work uses.
    pub(super) async fn enter(files: &Shares) -> Self {
        Self { first: files.hold(&account::key(), UPLOAD_MAX).await, files: files.clone() }
    }

    /// Runs `fetch` on each of `wanted` and yields the results in order. A few run concurrently, each with its own permit.
    pub(super) fn fetched<T, F: Future>(
        self,
        wanted: impl Iterator<Item = T>,
        fetch: impl Fn(T, Held) -> F,
    ) -> impl Stream<Item = F::Output> {
        let Self { files, first } = self;
        let mut first = Some(first);
        let admitted = stream::iter(wanted).then(move |item| {
            let (files, first) = (files.clone(), first.take());
            async move {
                let permit = match first {
                    Some(first) => first,
                    None => files.hold(&account::key(), UPLOAD_MAX).await,
                };
                (item, permit)
            }
        });
        admitted.map(move |(item, permit)| fetch(item, permit)).buffered(AT_ONCE)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use futures_util::FutureExt;
    use tokio::time::{Instant, sleep, timeout};

    use super::*;

    /// A budget of which one account has so many places.
    fn budget_of(places: u64) -> Shares {
        Shares::new("test", places * UPLOAD_MAX, places * UPLOAD_MAX)
    }

    /// Consumes every file of an import, the first of which takes longest, and releases its permit.
    async fn import(files: &Shares, most: &Cell<u64>) -> Vec<u64> {
        let wanted = [90, 10, 20, 5, 1].into_iter();
        let fetch = |seconds, permit| async move {
            sleep(Duration::from_secs(seconds)).await;
            (seconds, permit)
        };
        let mut fetched = std::pin::pin!(FilePermits::enter(files).await.fetched(wanted, fetch));
        let mut taken = Vec::new();
        while let Some((seconds, permit)) = fetched.next().await {
            most.set(most.get().max(files.held()));
            taken.push(seconds);
            drop(permit);
        }
        taken
    }

    #[tokio::test(start_paused = true)]
    async fn imports_that_share_the_least_room_all_end_and_never_hold_more() {
        for (places, imports) in [(1, 1), (1, 8), (2, 2), (2, 8), (3, 8)] {
            let (files, most) = (budget_of(places), Cell::new(0));
            let all = futures_util::future::join_all((0..imports).map(|_| import(&files, &most)));
            let all = timeout(Duration::from_secs(3600), all).await.expect("none waits for ever");
            assert!(all.iter().all(|taken| taken == &[90, 10, 20, 5, 1]), "in their order: {all:?}");
            assert_eq!((most.get(), files.held()), (places * UPLOAD_MAX, 0), "{places} places");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn files_are_fetched_at_once_where_there_is_room() {
        for (places, seconds) in [(4, 2), (3, 2), (2, 3), (1, 6)] {
            let (files, began) = (budget_of(places), Instant::now());
            let fetch = |(), permit: Held| async move {
                sleep(Duration::from_secs(1)).await;
                drop(permit);
            };
            let permits = FilePermits::enter(&files).await;
            assert_eq!(permits.fetched(std::iter::repeat_n((), 6), fetch).count().await, 6);
            assert_eq!(began.elapsed().as_secs(), seconds, "{places} places");
        }
    }

    #[test]
    fn a_budget_smaller_than_a_file_lets_one_in_at_a_time() {
        let files = Shares::new("test", 1 << 20, 1 << 20);
        let first = FilePermits::enter(&files).now_or_never();
        assert!(first.is_some() && FilePermits::enter(&files).now_or_never().is_none());
        drop(first);
        assert!(FilePermits::enter(&files).now_or_never().is_some());
    }
}
