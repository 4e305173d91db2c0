//! Random numbers that can be reproduced.

use std::time::Duration;

/// The variable that sets the seed.
const VARIABLE: &str = "FAULT_SEED";

/// A stream of random numbers that depends only on its seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Chance {
    seed: u64,
    state: u64,
}

impl Chance {
    /// Uses `FAULT_SEED` or a new seed, and prints it, so that a failed run can be repeated.
    pub fn new() -> Self {
        let seed = match std::env::var(VARIABLE) {
            Ok(text) => text.parse().unwrap_or_else(|error| panic!("{VARIABLE}={text}: {error}")),
            Err(_) => uuid::Uuid::new_v4().as_u64_pair().0 >> 16,
        };
        println!("seed {seed}: to run it again, {VARIABLE}={seed}");
        Self { seed, state: seed }
    }

    /// The seed of the stream.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// An independent stream for `number`. It depends only on the seed and the number.
    pub fn fork(&self, number: u64) -> Self {
        let mut forked = Self { seed: self.seed, state: self.seed ^ (number + 1).wrapping_mul(0xd6e8_feb8_6659_fd93) };
        forked.draw();
        forked
    }

    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which must be greater than 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.draw() % end as u64).expect("below a usize")
    }

    /// A duration below `longest`.
    pub fn time(&mut self, longest: Duration) -> Duration {
        longest.mul_f64(self.draw() as f64 / u64::MAX as f64)
    }

    /// One of these values.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

impl Default for Chance {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_itself_and_forks_are_their_own() {
        let chance = Chance { seed: 7, state: 7 };
        let draw = |mut chance: Chance| (0..5).map(|_| chance.below(1000)).collect::<Vec<_>>();
        assert_eq!(draw(chance.clone()), draw(chance.clone()));
        let mut drawn = chance.clone();
        drawn.below(10);
        assert_eq!(draw(chance.fork(1)), draw(drawn.fork(1)));
        assert_ne!(draw(chance.fork(1)), draw(chance.fork(2)));
    }
}
