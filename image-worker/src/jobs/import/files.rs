//! Room for the files that imports hold while they fetch, decode and store them.
//!
//! **Guarantee.** The pictures' files that are in hand have no more bytes than the budget, or are one, whatever foreign servers
//! send: there is room for the largest before the first byte of it is asked for. An import that has begun goes on: it has room
//! for one file, and no two imports wait for each other. One that finds no room waits for it before it has begun.
//!
//! **Mechanism.** Room is given first come first served, and within an import in the order in which files are taken: the file
//! that everything waits for has its room before those behind it. Who holds room waits for the network, for pixels
//! ([`workshop::Pixels`], a budget apart whose holders never wait for room) and for the store, and what waits for more room is
//! behind what holds some.

use std::future::Future;

use domain::limits::UPLOAD_MAX;
use futures_util::{Stream, StreamExt, stream};
use tokio::sync::OwnedSemaphorePermit;
use workshop::Memory;

/// Fetches at once of one import: enough to overlap their waits.
const AT_ONCE: usize = 3;

/// Room for one file, given back when it is dropped.
pub(super) type Room = OwnedSemaphorePermit;

/// The room of one import: for one file from its beginning on, and for more where there is some.
pub(super) struct Rooms {
    files: Memory,
    first: Room,
}

impl Rooms {
    /// Room for one file, once there is some. Who waits for it holds one of the places of imports, which nobody else wants.
    pub(super) async fn enter(files: &Memory) -> Self {
        Self { first: files.admit(UPLOAD_MAX).await, files: files.clone() }
    }

    /// What `fetch` makes of each of `wanted`, in their order; a few are fetched at once, each of which has its room.
    pub(super) fn fetched<T, F: Future>(
        self,
        wanted: impl Iterator<Item = T>,
        fetch: impl Fn(T, Room) -> F,
    ) -> impl Stream<Item = F::Output> {
        let Self { files, first } = self;
        let mut first = Some(first);
        let admitted = stream::iter(wanted).then(move |item| {
            let (files, first) = (files.clone(), first.take());
            async move {
                let room = match first {
                    Some(first) => first,
                    None => files.admit(UPLOAD_MAX).await,
                };
                (item, room)
            }
        });
        admitted.map(move |(item, room)| fetch(item, room)).buffered(AT_ONCE)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use futures_util::FutureExt;
    use tokio::time::{Instant, sleep, timeout};

    use super::*;

    /// Takes every file of an import, the first of which takes longest, and gives its room back.
    async fn import(files: &Memory, most: &Cell<u64>) -> Vec<u64> {
        let wanted = [90, 10, 20, 5, 1].into_iter();
        let fetch = |seconds, room| async move {
            sleep(Duration::from_secs(seconds)).await;
            (seconds, room)
        };
        let mut fetched = std::pin::pin!(Rooms::enter(files).await.fetched(wanted, fetch));
        let mut taken = Vec::new();
        while let Some((seconds, room)) = fetched.next().await {
            most.set(most.get().max(files.held_bytes()));
            taken.push(seconds);
            drop(room);
        }
        taken
    }

    #[tokio::test(start_paused = true)]
    async fn imports_that_share_the_least_room_all_end_and_never_hold_more() {
        for (places, imports) in [(1, 1), (1, 8), (2, 2), (2, 8), (3, 8)] {
            let (files, most) = (Memory::new(places * UPLOAD_MAX), Cell::new(0));
            let all = futures_util::future::join_all((0..imports).map(|_| import(&files, &most)));
            let all = timeout(Duration::from_secs(3600), all).await.expect("none waits for ever");
            assert!(all.iter().all(|taken| taken == &[90, 10, 20, 5, 1]), "in their order: {all:?}");
            assert_eq!((most.get(), files.held_bytes()), (places * UPLOAD_MAX, 0), "{places} places");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn files_are_fetched_at_once_where_there_is_room() {
        for (places, seconds) in [(4, 2), (3, 2), (2, 3), (1, 6)] {
            let (files, began) = (Memory::new(places * UPLOAD_MAX), Instant::now());
            let fetch = |(), room: Room| async move {
                sleep(Duration::from_secs(1)).await;
                drop(room);
            };
            let rooms = Rooms::enter(&files).await;
            assert_eq!(rooms.fetched(std::iter::repeat_n((), 6), fetch).count().await, 6);
            assert_eq!(began.elapsed().as_secs(), seconds, "{places} places");
        }
    }

    #[test]
    fn a_budget_smaller_than_a_file_lets_one_in_at_a_time() {
        let files = Memory::new(1 << 20);
        let first = Rooms::enter(&files).now_or_never();
        assert!(first.is_some() && Rooms::enter(&files).now_or_never().is_none());
        drop(first);
        assert!(Rooms::enter(&files).now_or_never().is_some());
    }
}
