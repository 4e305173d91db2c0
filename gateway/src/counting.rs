//! What the tests of this crate hold in memory, counted thread by thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    /// What is held now, and the most that was.
    static HELD: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(bytes: i64) {
    // A thread that ends has no counter any more.
    let _ = HELD.try_with(|held| {
        let now = held.get().0 + bytes;
        held.set((now, held.get().1.max(now)));
    });
}

// SAFETY: all is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(at, layout) }
    }

    /// In place as far as it goes, as `System` does it: only the new size is held.
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: as promised by the caller.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// The most that `work` holds at once beyond what was held before, in bytes.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> u64 {
    let before = HELD.get().0;
    HELD.set((before, before));
    drop(work());
    HELD.get().1.abs_diff(before)
}
