//! Deterministic pseudo-random numbers derived from bytes.

/// A generator of numbers (SplitMix64; G. Steele, D. Lea and C. Flood, 2014), started from a hash of bytes.
#[derive(Debug, Clone)]
pub(super) struct Seed(u64);

impl Seed {
    /// Creates a generator from `parts` (64-bit FNV-1a). The boundaries between the parts also
    /// affect the result.
    pub(super) fn from_parts(parts: &[&[u8]]) -> Self {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for part in parts {
            for byte in part.iter().chain(&(part.len() as u64).to_le_bytes()) {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
        Self(hash)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` (inclusive) to `high` (exclusive).
    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        // An `f64` represents 53 bits exactly.
        low + (high - low) * ((self.next() >> 11) as f64 / (1_u64 << 53) as f64)
    }

    /// A number from 0 (inclusive) to `count` (exclusive).
    pub(super) fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_these_on_every_machine() {
        let mut seed = Seed::from_parts(&[b"a", b"b"]);
        let drawn: Vec<usize> = (0..8).map(|_| seed.below(1000)).collect();
        assert_eq!(drawn, [712, 553, 147, 919, 738, 986, 395, 961]);
        let mut other = Seed::from_parts(&[b"ab", b""]);
        assert_ne!(drawn, (0..8).map(|_| other.below(1000)).collect::<Vec<_>>(), "where parts end counts");
    }

    #[test]
    fn numbers_stay_within_their_range_and_fill_it() {
        let mut seed = Seed::from_parts(&[b"range"]);
        let values: Vec<f64> = (0..1000).map(|_| seed.between(-2.0, 3.0)).collect();
        assert!(values.iter().all(|value| (-2.0..3.0).contains(value)));
        assert!(values.iter().any(|value| *value < -1.9) && values.iter().any(|value| *value > 2.9));
        assert!((0..100).all(|_| seed.below(0) == 0), "of nothing there is only the first");
    }
}
