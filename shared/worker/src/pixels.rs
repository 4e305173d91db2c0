//! Runs pixel work on the processors, with a limit on the memory for images, both shared fairly among accounts.
//!
//! **Guarantee.** The estimated memory of all running work stays within the budget
//! (`CANVAS_IMAGE_MEMORY_MIB`). One account has at most a thread for each processor and three quarters of the
//! memory, unless one work needs more, so that others need not wait for its work.
//!
//! **Mechanism.** Foreign images are decoded by children ([`decoder`]), for each of which a thread waits
//! ([`decode`](Reservation::decode)). The child of an abandoned job is killed. Other work runs on the thread itself and
//! holds its admission until it has returned, because a thread cannot be stopped from outside.
//!
//! **Reason.** Dozens of jobs are in progress at once, and their number does not determine their
//! memory. There is one thread more than processors, so that an account alone uses them all, and
//! those of others begin beside it. Files have budgets of their own
//! ([`MemoryBudgets`](crate::generation::MemoryBudgets)), because a provider may take ten minutes
//! to answer, and work that waits for it must not delay pixel work. A holder of memory for files may
//! wait for memory for pixels, but never the other way round, so deadlocks are impossible.
//!
//! If abandoned work blocks all threads, [`stuck`](Pixels::stuck) returns, so that the process is
//! restarted.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use decoder::{Leash, Order, Program, Refusal, Work};
use service::account::{self, Meter};
use service::blocking::{Blocking, Panicked};
use service::shares::{Held, Shares};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::Error;

/// Memory of decoders that do nothing, in bytes for each thread: what one of them keeps at most (`raster::memory`).
const IDLE_DECODER_BYTES: u64 = 64 << 20;

/// Runs work on pixels. Clones share threads and budget.
#[derive(Clone, Debug)]
pub struct Pixels {
    threads: Blocking,
    memory: Shares,
    /// The part of the memory that one account holds.
    parts: Shares,
    decoders: decoder::Pool,
    thread_count: usize,
    /// The number of running closures whose caller is gone.
    abandoned: Arc<watch::Sender<usize>>,
    /// Microseconds that closures take: a moving average, in which the last one counts for an eighth.
    usual: Arc<AtomicU64>,
}

impl Pixels {
    /// Creates a pool with `threads` threads for one account and one more, and a memory budget of `budget_bytes` bytes, whose
    /// decoders run `program`.
    pub fn new(threads: usize, budget_bytes: u64, program: impl Into<PathBuf>) -> Self {
        let thread_count = threads.max(1);
        Self {
            threads: Blocking::new(thread_count + 1),
            memory: Shares::new("pixel_memory", budget_bytes, budget_bytes),
            parts: Shares::new("pixel_memory_of_accounts", u64::MAX, budget_bytes / 4 * 3),
            decoders: decoder::Pool::new(program, (thread_count as u64 + 1) * IDLE_DECODER_BYTES),
            thread_count,
            abandoned: Arc::new(watch::Sender::new(0)),
            usual: Arc::default(),
        }
    }

    /// Starts a decoder, so that a system on which that is impossible is noticed at the start of the process.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub async fn check(&self) -> io::Result<()> {
        let decoders = self.decoders.clone();
        self.threads.run(move || decoders.check()).await.map_err(io::Error::other)?.map(drop)
    }

    /// Number of threads for one account.
    pub fn threads(&self) -> usize {
        self.thread_count
    }

    /// Memory of work that runs or waits for a thread, in bytes.
    pub fn reserved_bytes(&self) -> u64 {
        self.memory.held()
    }

    /// The amount of work that waits for memory.
    pub fn waiting_for_memory(&self) -> usize {
        self.parts.waiting() + self.memory.waiting()
    }

    /// The number of closures that have memory and wait for a thread.
    pub fn waiting(&self) -> usize {
        self.threads.waiting()
    }

    /// The time for which all threads have work, if each closure that waits for one takes as long as those before.
    pub fn backlog(&self) -> Duration {
        let rounds = (self.waiting() / self.thread_count) as u64;
        Duration::from_micros(rounds.saturating_mul(self.usual.load(Ordering::Relaxed)))
    }

    /// Takes the duration of a closure into the average.
    fn note(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        // Two at once may lose one of them, which matters little.
        let usual = self.usual.load(Ordering::Relaxed);
        self.usual.store(usual - usual / 8 + took / 8, Ordering::Relaxed);
    }

    /// Waits until abandoned work has blocked every thread of an account for `patience`. Most likely none of it
    /// will return, and no other work can begin.
    pub async fn stuck(&self, patience: Duration) {
        let mut abandoned = self.abandoned.subscribe();
        loop {
            // `self` holds the sender, so neither wait fails.
            let _ = abandoned.wait_for(|&count| count >= self.thread_count).await;
            tokio::select! {
                _ = abandoned.wait_for(|&count| count < self.thread_count) => {}
                () = sleep(patience) => return,
            }
        }
    }

    /// Runs `work`, which needs `memory_bytes`, once memory and a thread are free.
    ///
    /// # Errors
    ///
    /// [`Panicked`] if the work panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        memory_bytes: u64,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Panicked> {
        self.reserve(memory_bytes).await.run(work).await
    }

    /// Waits for `memory_bytes` before the files of the work are loaded, because files need memory
    /// too.
    ///
    /// A holder must not wait for a second reservation, because two such holders could deadlock.
    pub async fn reserve(&self, memory_bytes: u64) -> Reservation {
        let account = account::key();
        // What waits for the part of its account takes nothing of the rest.
        let part = self.parts.hold(&account, memory_bytes).await;
        let memory = self.memory.hold(&account, memory_bytes).await;
        // The number is far below 2^52, so the conversion is exact.
        metrics::gauge!("canvas_pixel_memory_bytes").set(self.reserved_bytes() as f64);
        metrics::gauge!("canvas_pixel_waiting").set(self.waiting_for_memory() as f64);
        Reservation { pixels: self.clone(), memory: (memory, part), bytes: memory_bytes }
    }
}

/// A foreign program that decodes the file of an order first.
#[derive(Debug)]
pub struct ProgramRun {
    pub program: Program,
    /// Maximum size of what it makes.
    pub file_bytes: u64,
}

/// Memory reserved for one closure. It is released when the closure has returned, or when this is
/// dropped.
#[derive(Debug)]
pub struct Reservation {
    pixels: Pixels,
    memory: (Held, Held),
    bytes: u64,
}

impl Reservation {
    /// Runs `work` once a thread is free.
    ///
    /// # Errors
    ///
    /// [`Panicked`] if the work panicked.
    pub async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Panicked> {
        let Self { pixels, memory, .. } = self;
        let parted = Arc::new(AtomicBool::new(false));
        let _waiter = Waiter { parted: parted.clone(), abandoned: pixels.abandoned.clone() };
        let running = Running { parted, abandoned: pixels.abandoned.clone() };
        let (threads, meter) = (pixels.threads.clone(), Meter::current());
        let work = move || {
            let _held = (memory, running);
            let began = Instant::now();
            let result = meter.measure(work);
            pixels.note(began.elapsed());
            result
        };
        threads.run(work).await
    }

    /// Has an order done by a decoder once a thread is free, and passes the order's files and what was made of them to `finish`
    /// on the same thread. If the future is dropped, the decoder is killed.
    ///
    /// What a decoder made is as foreign as the files: only bytes are taken from it. The caller reads format and size from
    /// their header, and hashes them here.
    ///
    /// The inner error says what is wrong with the files.
    ///
    /// # Errors
    ///
    /// If the service is at fault.
    pub async fn decode<W: Work + Send + 'static, T: Send + 'static>(
        self,
        order: Order<W>,
        finish: impl FnOnce(&[Bytes], Vec<Vec<u8>>) -> T + Send + 'static,
    ) -> Result<Result<T, String>, Error> {
        self.decode_by(None, order, finish).await
    }

    /// Like [`decode`](Self::decode). If there is a program, the decoder gets what it makes of the first file instead of the files.
    ///
    /// # Errors
    ///
    /// If the service is at fault.
    pub async fn decode_by<W: Work + Send + 'static, T: Send + 'static>(
        self,
        program: Option<ProgramRun>,
        mut order: Order<W>,
        finish: impl FnOnce(&[Bytes], Vec<Vec<u8>>) -> T + Send + 'static,
    ) -> Result<Result<T, String>, Error> {
        let (decoders, bytes, meter) = (self.pixels.decoders.clone(), self.bytes, Meter::current());
        let leash = Leash::default();
        let _killer = Killer(leash.clone());
        let work = move || {
            let files = order.files.clone();
            if let Some(ProgramRun { program, file_bytes }) = program {
                let (made, spent) = program.convert(&files[0], (bytes, file_bytes), &leash);
                meter.add(spent);
                order.files = match made? {
                    Ok(made) => made.into_iter().map(Bytes::from).collect(),
                    Err(refusal) => return Ok(Err(refusal)),
                };
            }
            let (made, spent) = decoders.run(&order, bytes, &leash);
            meter.add(spent);
            Ok::<_, decoder::Failure>(made?.map(|made| finish(&files, made)))
        };
        match self.run(work).await?? {
            Ok(finished) => Ok(Ok(finished)),
            Err(Refusal::Input(message)) => Ok(Err(message)),
            Err(Refusal::Internal(message)) => Err(Error::Engine(message)),
        }
    }
}

/// Kills the decoder that does an order when the caller is gone. Has no effect on an order that is done.
struct Killer(Leash);

impl Drop for Killer {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The caller of a closure. If it is dropped before the closure has returned, the closure is
/// abandoned.
struct Waiter {
    /// `true` if the caller or the closure is gone.
    parted: Arc<AtomicBool>,
    abandoned: Arc<watch::Sender<usize>>,
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if !self.parted.swap(true, Ordering::AcqRel) {
            self.abandoned.send_modify(|count| *count += 1);
        }
    }
}

/// A closure that is running or about to run.
struct Running {
    parted: Arc<AtomicBool>,
    abandoned: Arc<watch::Sender<usize>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.parted.swap(true, Ordering::AcqRel) {
            // May wrap around if this runs before the caller's own update; that update restores the
            // count.
            self.abandoned.send_modify(|count| *count = count.wrapping_sub(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const KIB: u64 = 1024;
    /// Nothing is decoded here.
    const NO_PROGRAM: &str = "";

    /// A reservation of an account, if it need not wait.
    async fn reserved(pixels: &Pixels, account: &str, bytes: u64) -> Option<Reservation> {
        let reserving = account::on_behalf_of(account, pixels.reserve(bytes));
        tokio::select! {
            biased;
            reserved = reserving => Some(reserved),
            () = tokio::task::yield_now() => None,
        }
    }

    #[tokio::test]
    async fn an_account_has_three_quarters_of_the_memory_and_others_the_rest() {
        let pixels = Pixels::new(4, 4 * KIB, NO_PROGRAM);
        let busy = reserved(&pixels, "busy", 3 * KIB).await.expect("fits");
        assert!(reserved(&pixels, "busy", 1).await.is_none(), "its part is taken");
        assert!(reserved(&pixels, "late", KIB + 1).await.is_none(), "one unit is free");
        let late = reserved(&pixels, "late", KIB).await.expect("nobody waits behind the part of another");
        assert!(late.run(|| ()).await.is_ok());
        drop(busy);
        let whole = reserved(&pixels, "busy", 4 * KIB).await.expect("one work may need more than a part");
        assert!(reserved(&pixels, "late", 1).await.is_none());
        drop(whole);
        assert_eq!(pixels.reserved_bytes(), 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn work_waits_for_memory_until_others_return() {
        let pixels = Pixels::new(4, 4 * KIB, NO_PROGRAM);
        let (release, released) = mpsc::channel::<()>();
        let (started_sender, started) = tokio::sync::oneshot::channel();
        let first = tokio::spawn({
            let pixels = pixels.clone();
            async move {
                let work = move || {
                    started_sender.send(()).expect("the test listens");
                    released.recv().expect_err("dropped to release");
                };
                account::on_behalf_of("busy", pixels.run(3 * KIB, work)).await
            }
        });
        started.await.expect("the first begins");
        let second = tokio::spawn({
            let pixels = pixels.clone();
            async move { account::on_behalf_of("late", pixels.run(2 * KIB, || ())).await }
        });
        while pixels.waiting_for_memory() == 0 {
            tokio::task::yield_now().await;
        }
        drop(release);
        first.await.expect("joins").expect("no panic");
        second.await.expect("joins").expect("no panic");
        assert_eq!((pixels.reserved_bytes(), pixels.waiting_for_memory()), (0, 0));
    }

    #[tokio::test]
    async fn threads_that_are_all_held_by_abandoned_work_are_noticed() {
        let pixels = Pixels::new(2, 8 * KIB, NO_PROGRAM);
        let (releases, works): (Vec<_>, Vec<_>) = (0..2)
            .map(|_| {
                let (release, released) = mpsc::channel::<()>();
                let (begun, started) = tokio::sync::oneshot::channel();
                let pixels = pixels.clone();
                let work = tokio::spawn(async move {
                    let work = move || {
                        begun.send(()).expect("the test listens");
                        released.recv().expect_err("dropped to release");
                    };
                    pixels.run(KIB, work).await
                });
                (release, (work, started))
            })
            .unzip();
        let patience = Duration::from_millis(50);
        let stuck = tokio::spawn({
            let pixels = pixels.clone();
            async move { pixels.stuck(patience).await }
        });
        for (count, (work, started)) in works.into_iter().enumerate() {
            started.await.expect("begins");
            assert_eq!(*pixels.abandoned.borrow(), count);
            work.abort();
            assert!(work.await.expect_err("is given up").is_cancelled());
        }
        tokio::time::timeout(Duration::from_secs(20), stuck).await.expect("is noticed").expect("ends");
        drop(releases);
        let mut abandoned = pixels.abandoned.subscribe();
        abandoned.wait_for(|&count| count == 0).await.expect("they end");
    }

    #[tokio::test]
    async fn work_larger_than_the_whole_budget_runs_alone() {
        let pixels = Pixels::new(2, 2 * KIB, NO_PROGRAM);
        let held = pixels.run(u64::MAX, {
            let memory = pixels.memory.clone();
            move || memory.held()
        });
        assert_eq!(held.await.expect("no panic"), 2 * KIB);
        assert_eq!(pixels.reserved_bytes(), 0);
    }

    #[tokio::test]
    async fn memory_is_reserved_before_the_work_and_given_back_without_it() {
        let pixels = Pixels::new(1, 2 * KIB, NO_PROGRAM);
        let reservation = pixels.reserve(2 * KIB).await;
        assert_eq!(pixels.reserved_bytes(), 2 * KIB);
        let mut second = Box::pin(pixels.reserve(1));
        tokio::select! {
            biased;
            _ = &mut second => panic!("nothing is free"),
            () = tokio::task::yield_now() => {}
        }
        drop(reservation);
        assert!(second.await.run(|| ()).await.is_ok());
        assert_eq!(pixels.reserved_bytes(), 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_backlog_is_what_waits_times_what_work_usually_takes() {
        let pixels = Pixels::new(2, KIB, NO_PROGRAM);
        assert_eq!(pixels.backlog(), Duration::ZERO);
        for _ in 0..100 {
            pixels.note(Duration::from_millis(40));
        }
        assert_eq!(pixels.backlog(), Duration::ZERO, "nothing waits");
        let releases: Vec<_> = (0..7)
            .map(|_| {
                let (release, released) = mpsc::channel::<()>();
                let pixels = pixels.clone();
                tokio::spawn(
                    async move { pixels.run(0, move || released.recv().expect_err("dropped to release")).await },
                );
                release
            })
            .collect();
        let five_wait = async {
            while pixels.waiting() < 5 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), five_wait).await.expect("the others have a thread");
        let backlog = pixels.backlog();
        assert!(backlog > Duration::from_millis(75) && backlog <= Duration::from_millis(80), "{backlog:?}");
        drop(releases);
    }

    #[tokio::test]
    async fn a_panic_gives_its_memory_back() {
        let pixels = Pixels::new(1, KIB, NO_PROGRAM);
        assert!(pixels.run(1, || panic!("bad pixels")).await.is_err());
        assert_eq!(pixels.reserved_bytes(), 0);
    }
}
