//! Builds Huffman tables that are optimal for their symbols (T.81, K.2), and their codes (T.81,
//! C.2).

/// The maximum length of a code.
const LENGTH_MAX: usize = 16;

/// A table in the form in which its segment stores it.
pub(crate) struct Table {
    /// The number of codes of each length from 1 to 16.
    pub(crate) lengths: [u8; LENGTH_MAX],
    /// The symbols, ordered by code length and then by value.
    pub(crate) symbols: Vec<u8>,
}

/// The Huffman code of a symbol.
#[derive(Clone, Copy, Default)]
pub(crate) struct Code {
    /// The code in the lowest `length` bits.
    pub(crate) bits: u16,
    /// The length from 1 to 16; 0 for a symbol without a code.
    pub(crate) length: u16,
}

impl Table {
    /// The table with the shortest output for symbols with these frequencies, of which at least one
    /// must not be zero.
    pub(crate) fn from_counts(counts: &[u32]) -> Self {
        let mut symbols: Vec<(u8, usize)> = Vec::new();
        let mut numbers = lengths(counts);
        limit(&mut numbers.1);
        for (symbol, length) in numbers.0.iter().enumerate().take(counts.len()) {
            if *length > 0 {
                // There are at most 256 counts.
                symbols.push((symbol as u8, *length));
            }
        }
        symbols.sort_by_key(|(symbol, length)| (*length, *symbol));
        let lengths = std::array::from_fn(|at| numbers.1[at + 1]);
        Self { lengths, symbols: symbols.into_iter().map(|(symbol, _)| symbol).collect() }
    }

    /// The codes of all symbols.
    pub(crate) fn codes(&self) -> [Code; 256] {
        let mut codes = [Code::default(); 256];
        let mut symbols = self.symbols.iter();
        let mut bits = 0u16;
        for (number, length) in self.lengths.iter().zip(1..) {
            for symbol in symbols.by_ref().take(usize::from(*number)) {
                codes[usize::from(*symbol)] = Code { bits, length };
                bits += 1;
            }
            // Unused after the longest codes.
            bits = bits.wrapping_shl(1);
        }
        codes
    }
}

/// The unlimited code length of each symbol, and the number of codes of each length. One more
/// symbol, with frequency 1, reserves the code that consists of ones, which must not be used.
fn lengths(counts: &[u32]) -> (Vec<usize>, [u8; 64]) {
    // Each tree has a total frequency and a list of symbols.
    let mut trees: Vec<(u64, Vec<usize>)> = Vec::new();
    for (symbol, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        trees.push((u64::from(*count), vec![symbol]));
    }
    trees.push((1, vec![counts.len()]));
    let mut lengths = vec![0; counts.len() + 1];
    while trees.len() > 1 {
        // Among equal frequencies the later symbol is taken first, so that the reserved one gets a
        // code of maximum length.
        trees.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1[0].cmp(&b.1[0])));
        if let (Some(first), Some(second)) = (trees.pop(), trees.pop()) {
            let mut both = first.1;
            both.extend(second.1);
            both.iter().for_each(|symbol| lengths[*symbol] += 1);
            trees.push((first.0 + second.0, both));
        }
    }
    let mut numbers = [0; 64];
    lengths.iter().filter(|length| **length > 0).for_each(|length| numbers[*length] += 1);
    (lengths, numbers)
}

/// Limits code lengths to [`LENGTH_MAX`] and removes the reserved code (T.81, figure K.3).
fn limit(numbers: &mut [u8; 64]) {
    for length in (LENGTH_MAX + 1..numbers.len()).rev() {
        while numbers[length] > 0 {
            // Removes a pair of codes: one gets their common prefix as its code, and the other gets
            // a code next to an existing shorter code, which is extended by one bit.
            let mut shorter = length - 2;
            while numbers[shorter] == 0 {
                shorter -= 1;
            }
            numbers[length] -= 2;
            numbers[length - 1] += 1;
            numbers[shorter + 1] += 2;
            numbers[shorter] -= 1;
        }
    }
    if let Some(longest) = numbers.iter_mut().rev().find(|number| **number > 0) {
        *longest -= 1;
    }
}
