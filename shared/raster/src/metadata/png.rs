//! The chunks of a PNG (third edition, 5 and 11).

use super::{Block, Budget, Class, EXAMINED_MAX, Plan, Step, exif, iim, xmp};

const SIGNATURE: usize = 8;
/// The length and the type of a chunk.
const CHUNK_HEAD: usize = 8;
/// The checksum of a chunk.
const CHECKSUM: usize = 4;
/// The maximum length of a keyword, with the zero that ends it.
const KEYWORD_MAX: usize = 80;
const XMP: &[u8] = b"XML:com.adobe.xmp";
/// Keywords of the inputs of generators.
const GENERATORS: [&[u8]; 3] = [b"prompt", b"workflow", b"parameters"];
/// Blocks of other formats in hexadecimal digits, as ImageMagick writes them.
const RAW_PROFILE: &[u8] = b"Raw profile type ";

#[derive(Default)]
enum Place {
    #[default]
    Signature,
    Chunks,
    /// After the last chunk.
    End,
    /// At a chunk whose head is impossible.
    Lost,
}

#[derive(Default)]
pub(super) struct Walker {
    place: Place,
}

impl Walker {
    pub(super) fn step(&mut self, bytes: &[u8], plan: &mut Plan) -> Step {
        match self.place {
            Place::Signature => {
                self.place = Place::Chunks;
                plan.keep(SIGNATURE as u64);
                Step::Planned(SIGNATURE as u64)
            }
            Place::Chunks => self.chunk(bytes, plan),
            Place::End => plan.trail(bytes),
            Place::Lost => {
                plan.drop(bytes.len() as u64, Class::Other);
                Step::Planned(bytes.len() as u64)
            }
        }
    }

    fn chunk(&mut self, bytes: &[u8], plan: &mut Plan) -> Step {
        let Some((head, rest)) = bytes.split_first_chunk::<CHUNK_HEAD>() else { return Step::Need(CHUNK_HEAD) };
        let [l3, l2, l1, l0, kind @ ..] = *head;
        let length = u32::from_be_bytes([l3, l2, l1, l0]);
        if length > i32::MAX as u32 || !kind.iter().all(u8::is_ascii_alphabetic) {
            self.place = Place::Lost;
            return Step::Planned(0);
        }
        let length = length as usize;
        let whole = CHUNK_HEAD + length + CHECKSUM;
        match &kind {
            b"eXIf" | b"tEXt" | b"zTXt" | b"iTXt" if length <= EXAMINED_MAX => {
                if bytes.len() < whole {
                    return Step::Need(whole);
                }
                let block = examine(kind, &rest[..length], plan);
                plan.replace(whole as u64, block, |kept| match &kind {
                    b"eXIf" => chunk(kind, &kept),
                    // Keyword, not compressed, no language, no translated keyword.
                    _ => chunk(*b"iTXt", &[XMP, b"\0\0\0\0\0", &kept].concat()),
                });
            }
            b"tEXt" | b"zTXt" | b"iTXt" => {
                let Some(start) = rest.get(..KEYWORD_MAX) else { return Step::Need(CHUNK_HEAD + KEYWORD_MAX) };
                let keyword = keyword(start).map_or(start, |(keyword, _)| keyword);
                plan.replace(whole as u64, examine_text(keyword, too_long), |none| none);
            }
            b"eXIf" => plan.drop_private(whole as u64, Class::Other),
            b"caBX" => {
                plan.has_manifest = true;
                plan.drop(whole as u64, Class::Other);
            }
            b"IEND" => {
                self.place = Place::End;
                plan.keep(whole as u64);
            }
            // Critical chunks, and those that decide how the image looks.
            [b'A'..=b'Z', ..]
            | b"tRNS"
            | b"cHRM"
            | b"gAMA"
            | b"iCCP"
            | b"sBIT"
            | b"sRGB"
            | b"cICP"
            | b"mDCV"
            | b"mDCv"
            | b"cLLI"
            | b"cLLi"
            | b"bKGD"
            | b"hIST"
            | b"pHYs"
            | b"acTL"
            | b"fcTL"
            | b"fdAT" => plan.keep(whole as u64),
            _ => plan.drop(whole as u64, Class::Other),
        }
        Step::Planned(whole as u64)
    }

    pub(super) fn finish(self, held: &[u8], plan: &mut Plan) {
        // The file ends within a chunk that had to be examined, or within the head of one.
        match held.get(4..CHUNK_HEAD) {
            Some(_) if matches!(self.place, Place::Chunks) => plan.drop_private(held.len() as u64, Class::Other),
            _ => plan.keep(held.len() as u64),
        }
    }
}

/// The keyword of a text chunk, and what follows the zero that ends it.
fn keyword(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = data.iter().take(KEYWORD_MAX).position(|byte| *byte == 0)?;
    Some((&data[..end], &data[end + 1..]))
}

fn examine(kind: [u8; 4], data: &[u8], plan: &mut Plan) -> Block {
    if &kind == b"eXIf" {
        let tiff = data.strip_prefix(b"Exif\0\0").unwrap_or(data);
        return plan.budget.examine(tiff, exif::examine);
    }
    let Some((keyword, rest)) = keyword(data) else {
        let mut block = Block::default();
        block.removed.add(Class::Text);
        return block;
    };
    examine_text(keyword, |examine| {
        let budget = &mut plan.budget;
        let compressed = match (&kind, rest) {
            (b"tEXt", text) => return budget.examine(text, examine),
            // The compression method is always 0.
            (b"zTXt", [_, compressed @ ..]) => compressed,
            // A flag, the method, then the language and the translated keyword, each ended by a zero.
            (_, [flag, _, rest @ ..]) => {
                let mut fields = rest.splitn(3, |byte| *byte == 0).skip(2);
                match (fields.next(), flag) {
                    (Some(text), 0) => return budget.examine(text, examine),
                    (Some(compressed), _) => compressed,
                    (None, _) => return Block::damaged(),
                }
            }
            _ => return Block::damaged(),
        };
        // Counted while it is decompressed.
        budget.inflate(compressed).map_or_else(Block::damaged, |text| examine(&text, budget))
    })
}

type Examine = fn(&[u8], &mut Budget) -> Block;

/// For texts that are too long to be examined.
fn too_long(_: Examine) -> Block {
    Block::damaged()
}

/// Examines a text by its keyword. `with` applies a function to the text itself, which is read only where that is necessary.
fn examine_text(keyword: &[u8], with: impl FnOnce(Examine) -> Block) -> Block {
    let mut block = Block::default();
    if keyword == XMP {
        return with(xmp::examine);
    }
    if keyword.len() >= RAW_PROFILE.len() && keyword[..RAW_PROFILE.len()].eq_ignore_ascii_case(RAW_PROFILE) {
        return Block { kept: None, ..with(examine_raw_profile) };
    }
    block.removed.add(Class::Text);
    block.is_private = GENERATORS.iter().any(|generator| keyword.eq_ignore_ascii_case(generator));
    block
}

/// Examines a block that stands in the text as its name, its length and hexadecimal digits, with white space between them.
fn examine_raw_profile(text: &[u8], budget: &mut Budget) -> Block {
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (Some(name), Some(_length)) = (words.next(), words.next()) else { return Block::damaged() };
    if matches!(name, b"icc" | b"icm") {
        return Block::default();
    }
    let mut digits = words.flatten().map(|digit| char::from(*digit).to_digit(16));
    let mut bytes = Vec::with_capacity(text.len() / 2);
    while let Some(high) = digits.next() {
        let (Some(high), Some(Some(low))) = (high, digits.next()) else { return Block::damaged() };
        bytes.push((high * 16 + low) as u8);
    }
    if let Some(tiff) = bytes.strip_prefix(b"Exif\0\0") {
        exif::examine(tiff, budget)
    } else if let Some(packet) = bytes.strip_prefix(b"http://ns.adobe.com/xap/1.0/\0") {
        xmp::examine(packet, budget)
    } else if bytes.starts_with(b"8BIM") {
        iim::examine_resources(&bytes, budget)
    } else {
        match name.to_ascii_lowercase().as_slice() {
            b"exif" => exif::examine(&bytes, budget),
            b"xmp" => xmp::examine(&bytes, budget),
            b"iptc" => iim::examine(&bytes, budget),
            _ => Block::damaged(),
        }
    }
}

fn chunk(kind: [u8; 4], data: &[u8]) -> Vec<u8> {
    let mut checksum = flate2::Crc::new();
    checksum.update(&kind);
    checksum.update(data);
    [&(data.len() as u32).to_be_bytes(), &kind[..], data, &checksum.sum().to_be_bytes()].concat()
}
