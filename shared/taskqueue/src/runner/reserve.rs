//! The reserve of a runner: slots for fairness keys that hold none.
//!
//! **Guarantee.** While no more than a quarter of the slots are free, they are filled only with tasks of keys that have none in
//! progress, one of each. A key alone gets the other three quarters, and a key that comes later a slot at once.
//!
//! **Reason.** A cap for each key would cost the most common installation, with one account, most of its speed. Without either, the
//! tasks of one account that wait for slow servers would occupy all slots.

/// The slots of a runner, and how many of them are reserved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reserve {
    slots: usize,
    reserved: usize,
}

impl Reserve {
    /// A quarter of `slots`, at least one. A single slot is not reserved.
    pub(super) fn new(slots: usize) -> Self {
        Self { slots, reserved: if slots > 1 { (slots / 4).max(1) } else { 0 } }
    }

    /// No slot is reserved.
    pub(super) fn none(slots: usize) -> Self {
        Self { slots, reserved: 0 }
    }

    /// The number of `free` slots that tasks of any key may take. `None`: only keys without a task in progress may have one.
    ///
    /// `withheld`: the last claim passed keys over. A sixteenth of the slots must then be free beyond the reserve, so that the
    /// claims of a key that is alone are for several tasks.
    pub(super) fn open(self, free: usize, withheld: bool) -> Option<usize> {
        let open = free.saturating_sub(self.reserved);
        let least = if withheld { self.slots / 16 } else { 0 };
        (self.reserved == 0 || open > least).then_some(open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_slots_is_reserved_and_of_one_slot_none() {
        for (slots, reserved) in [(1, 0), (2, 1), (3, 1), (4, 1), (7, 1), (8, 2), (12, 3), (64, 16), (512, 128)] {
            let reserve = Reserve::new(slots);
            assert_eq!(reserve.open(slots, false), Some(slots - reserved), "{slots}");
            if reserved > 0 {
                assert_eq!(reserve.open(reserved, false), None, "{slots}");
                assert_eq!(reserve.open(reserved + 1, false), Some(1), "{slots}");
            }
        }
        assert_eq!(Reserve::none(64).open(1, true), Some(1));
    }

    #[test]
    fn a_key_that_was_passed_over_waits_for_a_sixteenth_of_the_slots() {
        for (slots, free, open) in [(8, 2, None), (8, 3, Some(1)), (64, 20, None), (64, 21, Some(5))] {
            assert_eq!(Reserve::new(slots).open(free, true), open, "{free} of {slots}");
        }
    }
}
