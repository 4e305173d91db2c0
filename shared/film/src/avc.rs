//! The parameters of H.264: the decoder's configuration (14496-15, 5.3.3) and sequence parameter sets (ITU-T H.264, 7.3.2.1 and E.1).

use crate::boxes::Cursor;
use crate::{Color, Error, Name};

const AVCC: Name = *b"avcC";

/// The parameters of a track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config<'a> {
    /// Bytes of the length before a unit in a sample: 1, 2 or 4.
    pub length_bytes: usize,
    /// The sequence and picture parameter sets, each a unit without a start code.
    pub units: Vec<&'a [u8]>,
    /// What the first sequence parameter set says.
    pub sequence: Sequence,
}

/// What a sequence parameter set says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// `profile_idc`.
    pub profile: u8,
    /// `chroma_format_idc`: 0 is gray, 1 is 4:2:0, 2 is 4:2:2, 3 is 4:4:4.
    pub chroma: u32,
    /// Bits of a luma or chroma sample, the larger one.
    pub depth: u32,
    /// Columns and rows of the decoded picture, in pixels, without cropping.
    pub coded: (u32, u32),
    /// `true` if pictures consist of frames alone, not of fields.
    pub is_progressive: bool,
    /// The color of pictures, if it is named.
    pub color: Option<Color>,
}

impl<'a> Config<'a> {
    /// Reads the content of `avcC`.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`], also if there is no parameter set of each kind.
    pub fn read(content: &'a [u8]) -> Result<Self, Error> {
        let damaged = Error::Damaged(AVCC);
        let mut cursor = Cursor::new(AVCC, content);
        // Version, profile, compatibility, level.
        let [1, _, _, _] = cursor.array()? else { return Err(damaged) };
        let length_bytes = match cursor.u8()? & 3 {
            2 => return Err(damaged),
            less => usize::from(less) + 1,
        };
        let mut units = Vec::new();
        for mask in [0x1f, 0xff] {
            let count = cursor.u8()? & mask;
            for _ in 0..count {
                let length = cursor.u16()?;
                units.push(cursor.take(length.into())?);
            }
            if count == 0 {
                return Err(damaged);
            }
        }
        let sequence = Sequence::read(units[0]).ok_or(damaged)?;
        Ok(Self { length_bytes, units, sequence })
    }

    /// Returns `true` if decoding can begin with a sample, of which the beginning suffices: if it is an IDR picture (7.4.1.2.4). After a recovery point, which a film may
    /// list as a key frame as well, frames need others from before it.
    pub fn is_start(&self, sample: &[u8]) -> bool {
        const IDR: u8 = 5;
        let mut rest = sample;
        while let Some((length, after)) = self.length(rest) {
            if length > 0 && after.first().is_some_and(|header| header & 0x1f == IDR) {
                return true;
            }
            rest = after.get(length..).unwrap_or_default();
        }
        false
    }

    /// The length of the first unit, and what follows it.
    fn length<'s>(&self, sample: &'s [u8]) -> Option<(usize, &'s [u8])> {
        let (length, after) = sample.split_at_checked(self.length_bytes)?;
        Some((length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), after))
    }

    /// The units of a sample. `None` if a length exceeds the sample.
    pub fn split<'s>(&self, sample: &'s [u8]) -> Option<Vec<&'s [u8]>> {
        let (mut units, mut rest) = (Vec::new(), sample);
        while !rest.is_empty() {
            let (length, after) = self.length(rest)?;
            let (unit, after) = after.split_at_checked(length)?;
            units.push(unit);
            rest = after;
        }
        Some(units)
    }
}

impl Sequence {
    /// Reads a sequence parameter set with its header. `None` if it is none or breaks off before its cropping.
    pub fn read(unit: &[u8]) -> Option<Self> {
        const SEQUENCE_PARAMETERS: u8 = 7;
        let (header, payload) = unit.split_first()?;
        if header & 0x1f != SEQUENCE_PARAMETERS {
            return None;
        }
        let payload = without_emulation_prevention(payload);
        let mut bits = Bits { bytes: &payload, at: 0 };
        let profile = bits.read(8)? as u8;
        bits.read(16)?;
        bits.exp()?;
        let (mut chroma, mut depth) = (1, 8);
        // 7.3.2.1.1.
        if matches!(profile, 100 | 110 | 122 | 244 | 44 | 83 | 86 | 118 | 128 | 138 | 139 | 134 | 135) {
            chroma = bits.exp()?;
            if chroma == 3 {
                bits.read(1)?;
            }
            depth = bits.exp()?.max(bits.exp()?).checked_add(8)?;
            bits.read(1)?;
            if bits.read(1)? == 1 {
                for list in 0..if chroma == 3 { 12 } else { 8 } {
                    if bits.read(1)? == 1 {
                        bits.skip_scaling_list(if list < 6 { 16 } else { 64 })?;
                    }
                }
            }
        }
        bits.exp()?;
        match bits.exp()? {
            0 => drop(bits.exp()?),
            1 => {
                bits.read(1)?;
                bits.exp()?;
                bits.exp()?;
                for _ in 0..bits.exp()?.min(256) {
                    bits.exp()?;
                }
            }
            _ => {}
        }
        bits.exp()?;
        bits.read(1)?;
        let columns = bits.exp()?.checked_add(1)?.checked_mul(16)?;
        let units = bits.exp()?.checked_add(1)?;
        let is_progressive = bits.read(1)? == 1;
        if !is_progressive {
            bits.read(1)?;
        }
        let rows = units.checked_mul(if is_progressive { 16 } else { 32 })?;
        bits.read(1)?;
        if bits.read(1)? == 1 {
            for _ in 0..4 {
                bits.exp()?;
            }
        }
        let color = bits.color();
        Some(Self { profile, chroma, depth, coded: (columns, rows), is_progressive, color })
    }

    /// What a decoder of 8 bits and 4:2:0, for frames alone, cannot decode of it, as a part of a sentence.
    pub fn unusual(&self) -> Option<String> {
        let Self { chroma, depth, .. } = *self;
        if depth > 8 {
            return Some(format!("with {depth} bits per sample"));
        }
        match chroma {
            1 if self.is_progressive => None,
            1 => Some("with interlaced pictures".to_owned()),
            0 => Some("without color (4:0:0)".to_owned()),
            2 => Some("with 4:2:2 chroma".to_owned()),
            _ => Some("with 4:4:4 chroma".to_owned()),
        }
    }
}

/// The bytes of a unit without those that keep start codes out of it (7.4.1).
fn without_emulation_prevention(payload: &[u8]) -> Vec<u8> {
    let (mut bytes, mut zeros) = (Vec::with_capacity(payload.len()), 0);
    for &byte in payload {
        if zeros >= 2 && byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        bytes.push(byte);
    }
    bytes
}

/// Reads bits, the most significant first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    /// At most 32 bits.
    fn read(&mut self, count: u32) -> Option<u32> {
        let mut value = 0;
        for _ in 0..count {
            let byte = self.bytes.get(self.at / 8)?;
            value = value << 1 | u32::from(byte >> (7 - self.at % 8) & 1);
            self.at += 1;
        }
        Some(value)
    }

    /// An unsigned Exp-Golomb code (9.1).
    fn exp(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while self.read(1)? == 0 {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        let rest = self.read(zeros)?;
        ((1_u32 << zeros) - 1).checked_add(rest)
    }

    fn skip_scaling_list(&mut self, length: u32) -> Option<()> {
        let (mut last, mut next) = (8_i64, 8_i64);
        for _ in 0..length {
            if next != 0 {
                let code = i64::from(self.exp()?);
                let delta = if code % 2 == 1 { (code + 1) / 2 } else { -code / 2 };
                next = (last + delta).rem_euclid(256);
            }
            last = if next == 0 { last } else { next };
        }
        Some(())
    }

    /// The color in the usability information (E.1.1). `None` if there is none.
    fn color(&mut self) -> Option<Color> {
        const EXTENDED_ASPECT_RATIO: u32 = 255;
        if self.read(1)? == 0 {
            return None;
        }
        if self.read(1)? == 1 && self.read(8)? == EXTENDED_ASPECT_RATIO {
            self.read(32)?;
        }
        if self.read(1)? == 1 {
            self.read(1)?;
        }
        if self.read(1)? == 0 {
            return None;
        }
        self.read(3)?;
        let is_full_range = self.read(1)? == 1;
        let mut matrix = 2;
        if self.read(1)? == 1 {
            self.read(16)?;
            matrix = self.read(8)? as u16;
        }
        Some(Color { matrix, is_full_range })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From libx264, 320 × 180, High, with BT.709 in full range.
    const HIGH: &[u8] =
        b"\x67\x64\x00\x0d\xac\xd9\x41\x41\x9f\x9f\x01\x6e\x02\x02\x02\x80\x00\x00\x03\x00\x80\x00\x00\x1e\x07\x8a\x14\xcb";

    #[test]
    fn a_set_says_size_and_form_of_pictures() {
        let read = Sequence::read(HIGH).expect("is whole");
        assert_eq!((read.profile, read.chroma, read.depth, read.coded), (100, 1, 8, (320, 192)));
        assert_eq!((read.color, read.is_progressive), (Some(Color { matrix: 1, is_full_range: true }), true));
    }

    #[test]
    fn a_set_that_breaks_off_is_none() {
        for length in 0..10 {
            assert_eq!(Sequence::read(&HIGH[..length]), None, "{length}");
        }
        assert_eq!(Sequence::read(&[0x68, 0xee, 0x3c, 0x80]), None, "a picture parameter set");
        assert_eq!(Sequence::read(&[0x67; 1]), None);
        assert_eq!(Sequence::read(&[[0x67, 100].as_slice(), &[0; 40]].concat()), None, "a code without an end");
    }

    #[test]
    fn what_the_decoder_lacks_is_named() {
        let usual = Sequence::read(HIGH).expect("is whole");
        for (sequence, said) in [
            (usual, None),
            (Sequence { depth: 10, ..usual }, Some("with 10 bits per sample")),
            (Sequence { chroma: 0, ..usual }, Some("without color (4:0:0)")),
            (Sequence { chroma: 2, ..usual }, Some("with 4:2:2 chroma")),
            (Sequence { chroma: 3, ..usual }, Some("with 4:4:4 chroma")),
            (Sequence { is_progressive: false, ..usual }, Some("with interlaced pictures")),
        ] {
            assert_eq!(sequence.unusual().as_deref(), said);
        }
    }

    /// A configuration with one set of each kind.
    fn config(sequence: &[u8]) -> Vec<u8> {
        let length = (sequence.len() as u16).to_be_bytes();
        [&[1, 100, 0, 13, 0xff, 0xe1][..], &length, sequence, &[1, 0, 4, 0x68, 0xee, 0x3c, 0x80]].concat()
    }

    #[test]
    fn a_configuration_has_its_sets() {
        let bytes = config(HIGH);
        let read = Config::read(&bytes).expect("is whole");
        assert_eq!((read.length_bytes, read.units), (4, vec![HIGH, &[0x68, 0xee, 0x3c, 0x80][..]]));
        for length in 0..bytes.len() {
            assert_eq!(Config::read(&bytes[..length]), Err(Error::Damaged(AVCC)), "{length}");
        }
        for (at, value) in [(0, 2), (4, 0xfe), (5, 0xe0), (bytes.len() - 7, 0)] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            assert_eq!(Config::read(&damaged), Err(Error::Damaged(AVCC)), "byte {at}");
        }
    }

    #[test]
    fn a_sample_is_split_into_units() {
        let bytes = config(HIGH);
        let read = Config::read(&bytes).expect("is whole");
        assert_eq!(read.split(&[0, 0, 0, 2, 7, 8, 0, 0, 0, 0, 0, 0, 0, 1, 9]), Some(vec![&[7, 8][..], &[], &[9]]));
        assert!(read.is_start(&[0, 0, 0, 1, 6, 0, 0, 0, 2, 0x65, 1]) && !read.is_start(&[0, 0, 0, 2, 0x41, 1]));
        for wrong in [&[0, 0, 0, 2, 7][..], &[0, 0, 0], &[255, 255, 255, 255, 1]] {
            assert_eq!(read.split(wrong), None, "{wrong:?}");
        }
    }
}
