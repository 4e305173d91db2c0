//! Batched statements: one SQL statement, or one short transaction, for many concurrent items.
//!
//! **Guarantee.** If the database is idle, an item is applied alone and at once. Under load, one
//! statement takes all items that arrived while the previous one ran. The number of statements per
//! second thus stays small, however many callers there are.
//!
//! **Mechanism.** There is one worker per kind of statement. It receives items, applies a batch,
//! answers through a channel per item, and ends when the last handle is dropped. Only one statement
//! runs at a time. Where latency does not matter, or does not at the moment, a batch collects items for a while
//! first.
//!
//! **Reason.** Commits are the scarcest resource of a database, and some work needs many: a
//! delivery attempt must be durable before it is sent, and its result before the task ends;
//! thousands of videos are polled for minutes without news. Round trips come next: every request
//! authenticates its token.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use db::deadline::with_deadline;
use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot};

/// Maximum number of items in one statement; bounds its duration and its locks.
const LARGEST: usize = 256;

/// The reason why an item has no result. The item may have been applied anyway.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BatchError {
    /// The statement failed for the whole batch.
    #[error("the batch failed")]
    Database(#[source] Arc<db::Error>),
    /// The statement took too long.
    #[error("the batch did not finish in time")]
    Timeout,
    /// The statement's code panicked. The worker goes on with the next batch.
    #[error("the batch panicked")]
    Panicked,
    /// The worker has ended.
    #[error("the batch worker has ended")]
    Closed,
}

type Answer<O> = oneshot::Sender<Result<O, BatchError>>;

/// A handle to one worker.
#[derive(Debug)]
pub struct Batcher<I, O> {
    items: mpsc::Sender<(I, Answer<O>)>,
}

impl<I, O> Batcher<I, O>
where
    I: Send + 'static,
    O: Send + 'static,
{
    /// Creates a batcher and its worker, which the caller must run. `apply` returns a result for every item of a batch, in
    /// order.
    pub fn new<A, F>(apply: A) -> (Self, impl Future<Output = ()> + Send)
    where
        A: Fn(Vec<I>) -> F + Send + 'static,
        F: Future<Output = db::Result<Vec<O>>> + Send,
    {
        Self::gathering(|| Duration::ZERO, apply)
    }

    /// Like [`Batcher::new`], but a batch waits for what `pause` returns when its first item has come, so that
    /// items that arrive shortly afterwards share its statement.
    pub fn gathering<A, F>(
        pause: impl Fn() -> Duration + Send + 'static,
        apply: A,
    ) -> (Self, impl Future<Output = ()> + Send)
    where
        A: Fn(Vec<I>) -> F + Send + 'static,
        F: Future<Output = db::Result<Vec<O>>> + Send,
    {
        let (sender, receiver) = mpsc::channel(LARGEST);
        (Self { items: sender }, work(receiver, pause, apply))
    }

    /// Applies `item`, together with other waiting items.
    ///
    /// # Errors
    ///
    /// [`BatchError`], the same for all items of a batch.
    pub async fn apply(&self, item: I) -> Result<O, BatchError> {
        let (sender, answer) = oneshot::channel();
        self.items.send((item, sender)).await.map_err(|_| BatchError::Closed)?;
        answer.await.map_err(|_| BatchError::Closed)?
    }
}

async fn work<I, O, F>(
    mut receiver: mpsc::Receiver<(I, Answer<O>)>,
    pause: impl Fn() -> Duration,
    apply: impl Fn(Vec<I>) -> F,
) where
    F: Future<Output = db::Result<Vec<O>>>,
{
    let mut waiting = Vec::with_capacity(LARGEST);
    while receiver.recv_many(&mut waiting, LARGEST).await > 0 {
        let pause = pause();
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
            while waiting.len() < LARGEST
                && let Ok(item) = receiver.try_recv()
            {
                waiting.push(item);
            }
        }
        let (items, answers): (Vec<I>, Vec<Answer<O>>) = waiting.drain(..).unzip();
        // A connection that broke silently must not block the worker for longer than a lease has left after a heartbeat. Only the
        // worker's state is shared with the next batch, and a panic does not touch it.
        let applied = AssertUnwindSafe(with_deadline(apply(items))).catch_unwind().await;
        // The receiver of an answer may be gone: a request was dropped, or a task's lease was lost.
        match applied {
            Ok(Ok(results)) => {
                answers.into_iter().zip(results).for_each(|(answer, result)| drop(answer.send(Ok(result))))
            }
            Ok(Err(db::Error::Timeout)) => refuse(answers, BatchError::Timeout),
            Ok(Err(error)) => refuse(answers, BatchError::Database(Arc::new(error))),
            Err(_) => refuse(answers, BatchError::Panicked),
        }
    }
}

fn refuse<O>(answers: Vec<Answer<O>>, error: BatchError) {
    for answer in answers {
        drop(answer.send(Err(error.clone())));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn what_gathers_during_a_statement_is_taken_by_the_next() {
        let (sizes, gate) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Semaphore::new(0)));
        let (batcher, worker) = Batcher::new({
            let (sizes, gate) = (sizes.clone(), gate.clone());
            move |items: Vec<u32>| {
                let (sizes, gate) = (sizes.clone(), gate.clone());
                async move {
                    sizes.lock().expect("not poisoned").push(items.len());
                    gate.acquire().await.expect("never closed").forget();
                    Ok(items.into_iter().map(|item| item * 10).collect())
                }
            }
        });
        let worker = tokio::spawn(worker);
        let batcher = Arc::new(batcher);
        let apply = |item| {
            tokio::spawn({
                let batcher = batcher.clone();
                async move { batcher.apply(item).await }
            })
        };
        let first = apply(1);
        testkit::wait_for("the first statement", Duration::from_secs(5), async || {
            (sizes.lock().expect("not poisoned").len() == 1).then_some(())
        })
        .await;
        let others: Vec<_> = (2..=5).map(apply).collect();
        testkit::wait_for("four items in the channel", Duration::from_secs(5), async || {
            (batcher.items.capacity() == LARGEST - 4).then_some(())
        })
        .await;
        gate.add_permits(2);
        assert_eq!(first.await.expect("runs").expect("applied"), 10);
        for (number, other) in (2..).zip(others) {
            assert_eq!(other.await.expect("runs").expect("applied"), number * 10);
        }
        assert_eq!(*sizes.lock().expect("not poisoned"), [1, 4]);
        drop(batcher);
        worker.await.expect("the worker ends with the last handle");
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_that_gathers_takes_what_comes_within_its_pause() {
        let (batcher, worker) = Batcher::gathering(
            || Duration::from_millis(100),
            |items: Vec<usize>| async move {
                let size = items.len();
                Ok(items.into_iter().map(|_| size).collect())
            },
        );
        let _worker = tokio::spawn(worker);
        let later = |delay| {
            let batcher = &batcher;
            async move {
                tokio::time::sleep(Duration::from_millis(delay)).await;
                batcher.apply(0).await.expect("applied")
            }
        };
        assert_eq!(tokio::join!(later(0), later(50), later(150)), (2, 2, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_statement_that_hangs_is_given_up_and_the_next_is_made() {
        let (batcher, worker) = Batcher::new(|items: Vec<bool>| async move {
            if items[0] {
                std::future::pending::<()>().await;
            }
            Ok(items)
        });
        let _worker = tokio::spawn(worker);
        assert!(matches!(batcher.apply(true).await, Err(BatchError::Timeout)));
        assert!(matches!(batcher.apply(false).await, Ok(false)));
    }

    #[tokio::test]
    async fn a_panic_reaches_every_item_and_no_later_batch() {
        let (batcher, worker) = Batcher::new(|items: Vec<bool>| async move {
            assert!(!items[0], "as it must");
            Ok(items)
        });
        let _worker = tokio::spawn(worker);
        assert!(matches!(batcher.apply(true).await, Err(BatchError::Panicked)));
        assert!(matches!(batcher.apply(false).await, Ok(false)));
    }

    #[tokio::test]
    async fn a_failure_reaches_every_item_and_no_later_batch() {
        let (batcher, worker) = Batcher::new(|items: Vec<bool>| async move {
            if items[0] { Err(db::Error::Unreadable { column: "c", value: "v".into() }) } else { Ok(items) }
        });
        let worker = tokio::spawn(worker);
        assert!(matches!(batcher.apply(true).await, Err(BatchError::Database(_))));
        assert!(matches!(batcher.apply(false).await, Ok(false)));
        worker.abort();
        assert!(worker.await.is_err());
        assert!(matches!(batcher.apply(false).await, Err(BatchError::Closed)));
    }
}
