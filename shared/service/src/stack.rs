//! The stacks of the threads that run work.
//!
//! **Guarantee.** No work ends its process by overflowing its stack: each thread has at least twice what its deepest measured work
//! takes, in every build profile that ships.
//!
//! **Mechanism.** Every thread is started with [`STACK_BYTES`] and does not depend on the limits of the system (`ulimit -s`) or on
//! `RUST_MIN_STACK`. `tests/smoke` runs every kind of work and fails if a thread has used more than half of its stack. Memory is
//! only used for the pages that are touched.
//!
//! **Reason.** A stack overflow cannot be caught: it ends the process with all tasks. Without optimization, each level of nested
//! futures keeps several copies of the future below it on the stack; one poll took more than the 2 MiB that threads have by
//! default.

use std::thread::Builder;

/// Size of a stack in bytes. The deepest use is in `docs/development.md#stacks`.
pub const STACK_BYTES: usize = 4 * 1024 * 1024;

/// A builder of a thread with this name and an explicit stack.
pub fn thread(name: impl Into<String>) -> Builder {
    Builder::new().name(name.into()).stack_size(STACK_BYTES)
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::process::ExitCode;

    use super::*;
    use crate::blocking::Blocking;
    use crate::lifecycle::block_on;

    /// Uses about `bytes` of the stack.
    fn descend(bytes: usize) {
        fn from(top: usize, bytes: usize) {
            let frame = [1_u8; 4096];
            let here = black_box(&frame).as_ptr().addr();
            if top - here < bytes {
                from(top, bytes);
            }
            black_box(&frame);
        }
        let top = [0_u8; 1];
        from(black_box(&top).as_ptr().addr(), bytes);
    }

    /// An overflow aborts the test.
    #[test]
    fn every_thread_that_runs_work_has_its_own_stack_size() {
        const DEEP: usize = STACK_BYTES / 4 * 3;
        let code = block_on(|| async {
            descend(DEEP);
            tokio::spawn(async { descend(DEEP) }).await.expect("a worker of the runtime");
            #[expect(clippy::disallowed_methods, reason = "the threads that files are read on")]
            tokio::task::spawn_blocking(|| descend(DEEP)).await.expect("a blocking thread of the runtime");
            Blocking::new(1).run(|| descend(DEEP)).await.expect("a thread for pixels");
            ExitCode::SUCCESS
        });
        assert_eq!(code, ExitCode::SUCCESS);
    }
}
