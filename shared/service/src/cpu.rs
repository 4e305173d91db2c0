//! Processor time.

use std::time::Duration;

/// Runs `work`, and returns the processor time that the current thread used for it. Threads that `work` starts are not counted.
pub fn measured<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let began = of_thread();
    let result = work();
    (result, of_thread().saturating_sub(began))
}

/// The processor time that the current thread has used since it began (`CLOCK_THREAD_CPUTIME_ID`); zero where there is no such clock.
fn of_thread() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to `time` alone, which lives until it returns.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
    if status == 0 { Duration::new(seconds, nanoseconds) } else { Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn work_is_measured_and_waiting_is_not() {
        let ((), waited) = measured(|| {
            let (_sender, receiver) = mpsc::channel::<()>();
            let _ = receiver.recv_timeout(Duration::from_millis(200));
        });
        assert!(waited < Duration::from_millis(100), "{waited:?}");
        let (sum, worked) = measured(|| {
            let mut sum = 0_u64;
            while of_thread() < waited + Duration::from_millis(50) {
                sum = sum.wrapping_add(std::hint::black_box(1));
            }
            sum
        });
        assert!(sum > 0 && worked > Duration::ZERO && worked < Duration::from_secs(5), "{worked:?}");
    }
}
