//! The chunks of a WebP (RFC 9649).

use super::{Class, EXAMINED_MAX, Part, Plan, Step, exif, xmp};

const RIFF_HEAD: usize = 12;
const CHUNK_HEAD: usize = 8;
/// The size of the chunk of the extended format.
const VP8X: usize = CHUNK_HEAD + 10;
const EXIF_FLAG: u8 = 0x08;
const XMP_FLAG: u8 = 0x04;

#[derive(Default)]
pub(super) struct Walker {
    /// The number of bytes of the RIFF data after the current position; `None` at the start of the file.
    left: Option<u64>,
    /// The head of the extended format, and the part that replaces it.
    extended: Option<(usize, [u8; VP8X])>,
    /// The flags of the kept blocks of metadata.
    kept: u8,
}

impl Walker {
    pub(super) fn step(&mut self, bytes: &[u8], plan: &mut Plan) -> Step {
        let Some(left) = self.left else {
            let Some(head) = bytes.get(..RIFF_HEAD) else { return Step::Need(RIFF_HEAD) };
            // The length does not include the first eight bytes.
            let length = u64::from(u32::from_le_bytes([head[4], head[5], head[6], head[7]])) + 8;
            self.left = Some(length.saturating_sub(RIFF_HEAD as u64));
            plan.defer(RIFF_HEAD as u64);
            return Step::Planned(RIFF_HEAD as u64);
        };
        if left < CHUNK_HEAD as u64 {
            let count = bytes.len() as u64;
            match left.min(count) {
                0 => return plan.trail(bytes),
                rest => {
                    plan.drop(rest, Class::Other);
                    self.left = Some(left - rest);
                    return Step::Planned(rest);
                }
            }
        }
        let Some((head, rest)) = bytes.split_first_chunk::<CHUNK_HEAD>() else { return Step::Need(CHUNK_HEAD) };
        let [kind @ .., l0, l1, l2, l3] = *head;
        let length = u32::from_le_bytes([l0, l1, l2, l3]);
        // Chunks are padded to an even length; not all writers pad the last one.
        let whole = (CHUNK_HEAD as u64 + u64::from(length) + u64::from(length & 1)).min(left);
        let data_length = (whole - CHUNK_HEAD as u64).min(length.into());
        match &kind {
            b"EXIF" | b"XMP " if data_length <= EXAMINED_MAX as u64 => {
                if (bytes.len() as u64) < whole {
                    return Step::Need(whole as usize);
                }
                let data = &rest[..data_length as usize];
                let (flag, block) = match &kind {
                    b"EXIF" => {
                        let tiff = data.strip_prefix(b"Exif\0\0").unwrap_or(data);
                        (EXIF_FLAG, plan.budget.examine(tiff, exif::examine))
                    }
                    _ => (XMP_FLAG, plan.budget.examine(data, xmp::examine)),
                };
                if block.kept.is_some() {
                    self.kept |= flag;
                }
                plan.replace(whole, block, |kept| chunk(kind, kept));
            }
            b"EXIF" | b"XMP " => plan.drop_private(whole, Class::Other),
            b"VP8X" if self.extended.is_none() && data_length >= (VP8X - CHUNK_HEAD) as u64 => {
                let Some(extended) = bytes.first_chunk::<VP8X>() else { return Step::Need(VP8X) };
                let mut extended = *extended;
                extended[4..CHUNK_HEAD].copy_from_slice(&((VP8X - CHUNK_HEAD) as u32).to_le_bytes());
                self.extended = Some((plan.defer(whole), extended));
            }
            b"VP8X" | b"VP8 " | b"VP8L" | b"ALPH" | b"ICCP" | b"ANIM" | b"ANMF" => plan.keep(whole),
            b"C2PA" => {
                plan.has_manifest = true;
                plan.drop(whole, Class::Other);
            }
            _ => plan.drop(whole, Class::Other),
        }
        self.left = Some(left - whole);
        Step::Planned(whole)
    }

    /// Ends a file of `length` bytes.
    pub(super) fn finish(self, held: &[u8], length: u64, plan: &mut Plan) {
        // The file ends within a chunk that had to be examined, or within the head of one.
        if held.len() >= CHUNK_HEAD && (held.starts_with(b"EXIF") || held.starts_with(b"XMP ")) {
            plan.drop_private(held.len() as u64, Class::Other);
        } else {
            plan.keep(held.len() as u64);
        }
        if let Some((index, mut extended)) = self.extended {
            extended[CHUNK_HEAD] =
                (extended[CHUNK_HEAD] & !(EXIF_FLAG | XMP_FLAG)) | (extended[CHUNK_HEAD] & self.kept);
            plan.set(index, extended.to_vec());
        }
        let lengths = plan.parts.iter().map(|part| match part {
            Part::New(new) => new.len() as u64,
            Part::Kept(range) => range.end.min(length).saturating_sub(range.start),
        });
        let total = lengths.sum::<u64>() + RIFF_HEAD as u64 - 8;
        let total = u32::try_from(total).unwrap_or(u32::MAX);
        plan.set(0, [b"RIFF", &total.to_le_bytes()[..], b"WEBP"].concat());
    }
}

fn chunk(kind: [u8; 4], mut data: Vec<u8>) -> Vec<u8> {
    let length = data.len() as u32;
    data.resize(data.len().next_multiple_of(2), 0);
    [&kind, &length.to_le_bytes()[..], &data].concat()
}
