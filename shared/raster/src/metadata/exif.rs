//! EXIF blocks (Exif 3.0, 4.6; TIFF 6.0, section 2).

use std::borrow::Cow;

use super::{Block, Budget, Class, iim, xmp};
use crate::orientation::Orientation;

const ORIENTATION: u16 = 0x0112;
const ARTIST: u16 = 0x013b;
const COPYRIGHT: u16 = 0x8298;
const SHORT: u16 = 3;
/// The size of the byte order, the number 42 and the offset of the first directory.
const HEAD: usize = 8;
const ENTRY: usize = 12;
/// The maximum number of directories and entries of a block. Cameras write about 5 and 100.
const DIRECTORIES_MAX: usize = 32;
const ENTRIES_MAX: usize = 4096;

/// Examines a block that begins with its byte order. It keeps orientation, artist and copyright.
pub(super) fn examine(tiff: &[u8], budget: &mut Budget) -> Block {
    if tiff.is_empty() {
        return Block::default();
    }
    let mut kept = Vec::new();
    let orientation = Orientation::from_exif_block(tiff);
    let Some(reader) = Reader::new(tiff) else { return Block::damaged() };
    kept.extend(orientation.map(|orientation| reader.short(ORIENTATION, orientation.exif_value())));
    let mut block = match reader.walk(budget) {
        Some((block, authorship)) => {
            kept.extend(authorship);
            block
        }
        None => Block::damaged(),
    };
    block.kept = (!kept.is_empty()).then(|| reader.write(kept));
    block
}

/// The kind of a directory.
#[derive(Clone, Copy, PartialEq)]
enum Directory {
    Image,
    Thumbnail,
    Detail,
}

/// An entry of a directory.
struct Entry<'a> {
    tag: u16,
    kind: u16,
    count: u32,
    value: Cow<'a, [u8]>,
}

struct Reader<'a> {
    tiff: &'a [u8],
    is_little: bool,
}

impl<'a> Reader<'a> {
    fn new(tiff: &'a [u8]) -> Option<Self> {
        match tiff.get(..4)? {
            b"II*\0" => Some(Self { tiff, is_little: true }),
            b"MM\0*" => Some(Self { tiff, is_little: false }),
            _ => None,
        }
    }

    fn u16(&self, at: usize) -> Option<u16> {
        let bytes = *self.tiff.get(at..)?.first_chunk()?;
        Some(if self.is_little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    }

    fn u32(&self, at: usize) -> Option<u32> {
        let bytes = *self.tiff.get(at..)?.first_chunk()?;
        Some(if self.is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    fn entry(&self, at: usize) -> Option<Entry<'a>> {
        let (tag, kind, count) = (self.u16(at)?, self.u16(at + 2)?, self.u32(at + 4)?);
        let unit = match kind {
            // 129 is UTF-8 (Exif 3.0).
            1 | 2 | 6 | 7 | 129 => 1,
            3 | 8 => 2,
            4 | 9 | 11 | 13 => 4,
            5 | 10 | 12 => 8,
            _ => return None,
        };
        let length = usize::try_from(u64::from(count) * unit).ok()?;
        let from = if length <= 4 { at + 8 } else { self.u32(at + 8)? as usize };
        let value = self.tiff.get(from..from.checked_add(length)?)?;
        Some(Entry { tag, kind, count, value: Cow::Borrowed(value) })
    }

    /// The content of the block, and its entries of authorship; `None` if it is damaged.
    fn walk(&self, budget: &mut Budget) -> Option<(Block, Vec<Entry<'a>>)> {
        let mut block = Block::default();
        let mut authorship: Vec<Entry<'a>> = Vec::new();
        let mut directories = vec![(self.u32(4)? as usize, Directory::Image)];
        let (mut walked, mut entries) = (0, 0);
        while let Some(&(at, directory)) = directories.get(walked) {
            walked += 1;
            let count = usize::from(self.u16(at)?);
            entries += count;
            if walked > DIRECTORIES_MAX || entries > ENTRIES_MAX {
                return None;
            }
            for index in 0..count {
                let entry = self.entry(at + 2 + index * ENTRY)?;
                match (directory, entry.tag) {
                    (Directory::Image, ORIENTATION) => {}
                    (Directory::Image, ARTIST | COPYRIGHT) => {
                        if authorship.iter().all(|other| other.tag != entry.tag) {
                            authorship.push(entry);
                        }
                    }
                    // The directories of details, of interoperability, and of further images.
                    (_, 0x8769 | 0xa005 | 0x014a) => {
                        for offset in entry.value.chunks_exact(4).take(DIRECTORIES_MAX + 1) {
                            let bytes = [offset[0], offset[1], offset[2], offset[3]];
                            let offset =
                                if self.is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) };
                            directories.push((offset as usize, Directory::Detail));
                        }
                    }
                    (Directory::Thumbnail, 0x0111 | 0x0201) => block.private(Class::Thumbnail),
                    (_, 0x02bc) => block.contain(budget.examine(&entry.value, xmp::examine)),
                    (_, 0x83bb) => block.contain(budget.examine(&entry.value, iim::examine)),
                    (_, 0x8649) => block.contain(budget.examine(&entry.value, iim::examine_resources)),
                    (_, tag) => match private_class(tag) {
                        Some(class) => block.private(class),
                        None => block.removed.add(class(tag)),
                    },
                }
            }
            // Some writers leave out the offset of the next directory at the end of a block.
            let next = self.u32(at + 2 + count * ENTRY).unwrap_or(0) as usize;
            if directory != Directory::Detail && next != 0 {
                directories.push((next, Directory::Thumbnail));
            }
        }
        Some((block, authorship))
    }

    fn short(&self, tag: u16, value: u16) -> Entry<'static> {
        let value = if self.is_little { value.to_le_bytes() } else { value.to_be_bytes() };
        Entry { tag, kind: SHORT, count: 1, value: Cow::Owned(value.to_vec()) }
    }

    /// A block of one directory with these entries, in the order of their tags.
    fn write(&self, entries: Vec<Entry<'_>>) -> Vec<u8> {
        let u16 = |value: u16| if self.is_little { value.to_le_bytes() } else { value.to_be_bytes() };
        let u32 =
            |value: usize| if self.is_little { (value as u32).to_le_bytes() } else { (value as u32).to_be_bytes() };
        let mut block = self.tiff[..4].to_vec();
        block.extend(u32(HEAD));
        block.extend(u16(entries.len() as u16));
        let mut values = Vec::new();
        let after = HEAD + 2 + entries.len() * ENTRY + 4;
        for Entry { tag, kind, count, value } in entries {
            block.extend(u16(tag));
            block.extend(u16(kind));
            block.extend(u32(count as usize));
            if value.len() <= 4 {
                block.extend(&*value);
                block.resize(block.len() + 4 - value.len(), 0);
            } else {
                // Values begin at even offsets.
                values.resize(values.len() + values.len() % 2, 0);
                block.extend(u32(after + values.len()));
                values.extend(&*value);
            }
        }
        block.extend(u32(0));
        block.extend(values);
        block
    }
}

/// The class of a private tag.
fn private_class(tag: u16) -> Option<Class> {
    Some(match tag {
        // The directory of GPS.
        0x8825 => Class::Location,
        // HostComputer; MakerNote; serial numbers of body, lens and camera.
        0x013c | 0x927c | 0xa431 | 0xa435 | 0xc62f => Class::Device,
        // CameraOwnerName.
        0xa430 => Class::Person,
        // UserComment.
        0x9286 => Class::Text,
        _ => return None,
    })
}

/// The class of a tag that is not private by itself.
fn class(tag: u16) -> Class {
    match tag {
        // Make, model, software, firmware, the lens.
        0x010f | 0x0110 | 0x0131 | 0xa432..=0xa434 => Class::Device,
        // The description, and the texts of Windows.
        0x010e | 0x9c9b..=0x9c9f => Class::Text,
        _ => Class::Other,
    }
}
