//! A counting allocator for the tests of this crate: memory held, by thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    /// Bytes held now, and the maximum so far.
    static HELD: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(bytes: i64) {
    // A thread that is ending may have dropped its counter already.
    let _ = HELD.try_with(|held| {
        let now = held.get().0 + bytes;
        held.set((now, held.get().1.max(now)));
    });
}

// SAFETY: every call is passed on to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.dealloc(at, layout) }
    }

    /// Counts the new size alone, since `System` reallocates in place where it can.
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Memory of the result of `made`, in bytes.
pub fn held_by<T>(make: impl FnOnce() -> T) -> u64 {
    let before = HELD.get().0;
    let made = make();
    let held = HELD.get().0.abs_diff(before);
    drop(made);
    held
}

/// The peak of what `work` allocates beyond what was held before, in bytes.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> u64 {
    let before = HELD.get().0;
    HELD.set((before, before));
    drop(work());
    HELD.get().1.abs_diff(before)
}
