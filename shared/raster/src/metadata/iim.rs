//! IPTC-IIM data sets (IIM 4.2, chapters 1 and 6) and the image resources of Photoshop that contain them (Photoshop File Formats,
//! "Image Resources Section").

use super::{Block, Budget, Class, exif, xmp};

const IIM: u16 = 0x0404;

/// Examines image resources. Of these, only IIM data sets are kept.
pub(super) fn examine_resources(mut bytes: &[u8], budget: &mut Budget) -> Block {
    let mut block = Block::default();
    while bytes.iter().any(|byte| *byte != 0) {
        let Some((id, data, rest)) = resource(bytes) else {
            return Block::damaged();
        };
        match id {
            IIM => {
                let inner = examine(data, budget);
                if let Some(kept) = &inner.kept {
                    let length = (kept.len() as u32).to_be_bytes();
                    let pad = &[0][..kept.len() % 2];
                    let written = [b"8BIM", &IIM.to_be_bytes()[..], b"\0\0", &length, kept, pad].concat();
                    block.kept.get_or_insert_default().extend(written);
                }
                block.contain(inner);
            }
            0x0409 | 0x040c => block.removed.add(Class::Thumbnail),
            0x0422 | 0x0423 => block.contain(exif::examine(data, budget)),
            0x0424 => block.contain(budget.examine(data, xmp::examine)),
            _ => block.removed.add(Class::Other),
        }
        bytes = rest;
    }
    block
}

/// The id and the data of a resource, and what follows it.
fn resource(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<6>()?;
    if !head[..4].iter().all(u8::is_ascii_alphanumeric) {
        return None;
    }
    // The name with its length, and the data, are each padded to an even size.
    let name = (1 + usize::from(*rest.first()?)).next_multiple_of(2);
    let (length, rest) = rest.get(name..)?.split_first_chunk::<4>()?;
    let length = u32::from_be_bytes(*length) as usize;
    let data = rest.get(..length)?;
    let rest = rest.get(length + length % 2..).unwrap_or_default();
    Some((u16::from_be_bytes([head[4], head[5]]), data, rest))
}

/// Examines data sets. By-line, credit and copyright notice are kept, with the character set of their texts.
pub(super) fn examine(mut bytes: &[u8], _: &mut Budget) -> Block {
    let (mut block, mut kept, mut is_kept) = (Block::default(), Vec::new(), false);
    while bytes.iter().any(|byte| *byte != 0) {
        let Some((record, number, length)) = data_set(bytes) else { return Block::damaged() };
        let (whole, rest) = bytes.split_at(length);
        match (record, number) {
            // The character set; the version of the record.
            (1, 90) | (2, 0) => kept.extend(whole),
            (2, 80 | 110 | 116) => {
                kept.extend(whole);
                is_kept = true;
            }
            // Content location, city, sublocation, state, country.
            (2, 26 | 27 | 90 | 92 | 95 | 100 | 101) => block.private(Class::Location),
            // Contact.
            (2, 118) => block.private(Class::Person),
            // Title, keywords, headline, caption.
            (2, 5 | 25 | 105 | 120) => block.removed.add(Class::Text),
            _ => block.removed.add(Class::Other),
        }
        bytes = rest;
    }
    block.kept = is_kept.then_some(kept);
    block
}

/// The record and the number of a data set, and its whole length.
fn data_set(bytes: &[u8]) -> Option<(u8, u8, usize)> {
    let [0x1c, record, number, l1, l0, rest @ ..] = bytes else { return None };
    let length = u16::from_be_bytes([*l1, *l0]);
    let (head, length) = match length.checked_sub(0x8000) {
        None => (5, usize::from(length)),
        // An extended data set: its length has this many bytes.
        Some(count) => {
            let count = usize::from(count);
            let digits = rest.get(..count).filter(|_| count <= 4)?;
            (5 + count, digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)))
        }
    };
    let whole = head + length;
    (whole <= bytes.len()).then_some((*record, *number, whole))
}
