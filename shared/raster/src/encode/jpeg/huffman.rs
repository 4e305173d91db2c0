//! Huffman tables made for their symbols (T.81, K.2) and their codes (T.81, C.2).

/// The longest code.
const LENGTH_MAX: usize = 16;

/// A table as its segment has it.
pub(super) struct Table {
    /// How many codes there are of each length from 1 to 16.
    pub(super) lengths: [u8; LENGTH_MAX],
    /// The symbols, by length and then by value.
    pub(super) symbols: Vec<u8>,
}

/// The code of a symbol.
#[derive(Clone, Copy, Default)]
pub(super) struct Code {
    /// The code, in the lowest `length` bits.
    pub(super) bits: u16,
    /// From 1 to 16; 0 for a symbol without a code.
    pub(super) length: u16,
}

impl Table {
    /// The table with the shortest result for symbols that occur so often; at least one of them does.
    pub(super) fn of(counts: &[u32]) -> Self {
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

    /// The code of each symbol.
    pub(super) fn codes(&self) -> [Code; 256] {
        let mut codes = [Code::default(); 256];
        let mut symbols = self.symbols.iter();
        let mut bits = 0u16;
        for (number, length) in self.lengths.iter().zip(1..) {
            for symbol in symbols.by_ref().take(usize::from(*number)) {
                codes[usize::from(*symbol)] = Code { bits, length };
                bits += 1;
            }
            // After the longest codes nothing is read any more.
            bits = bits.wrapping_shl(1);
        }
        codes
    }
}

/// The length of each symbol's code, as long as it comes, and how many there are of each length. One more symbol, which
/// occurs once, stands for the code of ones alone, which is not to be used.
fn lengths(counts: &[u32]) -> (Vec<usize>, [u8; 64]) {
    // Trees: how often their symbols occur, and which these are.
    let mut trees: Vec<(u64, Vec<usize>)> = Vec::new();
    for (symbol, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        trees.push((u64::from(*count), vec![symbol]));
    }
    trees.push((1, vec![counts.len()]));
    let mut lengths = vec![0; counts.len() + 1];
    while trees.len() > 1 {
        // Of equals the later symbol first, so that the reserved one is as deep as any.
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

/// Shortens what is longer than [`LENGTH_MAX`] and takes the reserved code out (T.81, figure K.3).
fn limit(numbers: &mut [u8; 64]) {
    for length in (LENGTH_MAX + 1..numbers.len()).rev() {
        while numbers[length] > 0 {
            // A pair leaves: its prefix is a code now, and a shorter code becomes the prefix of two.
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
