//! The account on whose behalf a task works.
//!
//! **Guarantee.** What a task holds of [`Shares`](crate::shares::Shares) by [`key`] is held for its account. The processor time of
//! work that a [`Meter`] measures is added up for the task and reported once, if the work is free of charge, when the task and all
//! that it started on other threads have ended: also if the task was canceled.
//!
//! **Mechanism.** A value of the tokio task, set where the work of the account begins. Tasks that the work spawns do not inherit it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::cpu;
use crate::shares::Key;

tokio::task_local! {
    static CURRENT: Arc<Work>;
}

/// The work of one task.
struct Work {
    key: Key,
    account: Arc<str>,
    /// The measured processor time, in nanoseconds.
    cpu: AtomicU64,
    /// Where it is reported; empty if the work is not free.
    reports: OnceLock<UnboundedSender<CpuUse>>,
}

/// The processor time of a task.
#[derive(Debug)]
pub struct CpuUse {
    /// The account that is charged.
    pub account: Arc<str>,
    /// The time, at least a nanosecond.
    pub time: Duration,
}

impl Drop for Work {
    fn drop(&mut self) {
        let time = Duration::from_nanos(*self.cpu.get_mut());
        if let Some(reports) = self.reports.get().filter(|_| !time.is_zero()) {
            // Nobody listens while the process stops.
            let _ = reports.send(CpuUse { account: self.account.clone(), time });
        }
    }
}

/// Does `work` on behalf of an account.
pub async fn on_behalf_of<F: Future>(account: &str, work: F) -> F::Output {
    let account: Arc<str> = account.into();
    let key = Key::Account(account.clone());
    CURRENT.scope(Arc::new(Work { key, account, cpu: AtomicU64::new(0), reports: OnceLock::new() }), work).await
}

/// The account on whose behalf the current task works; the service itself if there is none.
pub fn key() -> Key {
    CURRENT.try_with(|work| work.key.clone()).unwrap_or_else(|_| Key::name("service"))
}

/// Reports the processor time of free work. Clones share the receiver.
#[derive(Clone, Debug)]
pub struct FreeWork(UnboundedSender<CpuUse>);

impl FreeWork {
    /// Reports to the receiver.
    pub fn new() -> (Self, UnboundedReceiver<CpuUse>) {
        let (sender, receiver) = unbounded_channel();
        (Self(sender), receiver)
    }

    /// Declares that the current task is free of charge, so that its processor time is reported.
    pub fn declare(&self) {
        // A task without an account is the service itself.
        let _ = CURRENT.try_with(|work| work.reports.set(self.0.clone()));
    }
}

/// Measures work on other threads for the current task.
pub struct Meter(Option<Arc<Work>>);

impl Meter {
    /// A meter of the current task.
    pub fn current() -> Self {
        Self(CURRENT.try_with(Arc::clone).ok())
    }

    /// Does `work` on the current thread and adds its processor time to that of the task.
    pub fn measure<T>(&self, work: impl FnOnce() -> T) -> T {
        let (result, time) = cpu::measured(work);
        self.add(time);
        result
    }

    /// Adds the processor time of another process to that of the task.
    pub fn add(&self, time: Duration) {
        if let Self(Some(task)) = self {
            task.cpu.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Works for about a millisecond of processor time.
    fn compute() {
        let (mut spent, mut sum) = (Duration::ZERO, 0_u64);
        while spent < Duration::from_millis(1) {
            let ((), time) =
                cpu::measured(|| (0..10_000).for_each(|it| sum = sum.wrapping_add(std::hint::black_box(it))));
            spent += time;
        }
    }

    #[tokio::test]
    async fn free_work_is_reported_once_when_all_of_it_has_ended() {
        let (free, mut reports) = FreeWork::new();
        let meter = on_behalf_of("a", async {
            free.declare();
            Meter::current().measure(compute);
            Meter::current()
        })
        .await;
        assert!(reports.try_recv().is_err(), "a thread still works for it");
        std::thread::spawn(move || meter.measure(compute)).join().expect("ends");
        let report = reports.try_recv().expect("is reported");
        assert_eq!(&*report.account, "a");
        assert!((2..1000).contains(&report.time.as_millis()), "{:?}", report.time);
        assert!(reports.try_recv().is_err());
    }

    #[tokio::test]
    async fn priced_work_and_that_of_the_service_are_not_reported() {
        let (free, mut reports) = FreeWork::new();
        on_behalf_of("a", async { Meter::current().measure(compute) }).await;
        free.declare();
        Meter::current().measure(compute);
        on_behalf_of("a", async { free.declare() }).await;
        assert!(reports.try_recv().is_err());
    }
}
