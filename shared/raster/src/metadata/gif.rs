//! The blocks of a GIF (GIF89a; XMP specification, part 3, 1.1.2; C2PA 2.4, A.3.8).

use super::{Block, Class, Plan, Step, iim, xmp};
use crate::format::color_table;
use crate::xmp::{GIF_C2PA, GIF_XMP, GIF_XMP_TRAILER, gif_xmp};

/// The size of the signature and the logical screen.
const SCREEN: usize = 13;
/// The size of an image descriptor.
const IMAGE: usize = 10;
/// The size of the head of an application extension: introducer, label, length, and a name of eleven bytes.
const APPLICATION: usize = 14;
/// Extensions with the number of repetitions, and with the ICC profile.
const SHOWN: [&[u8; 11]; 3] = [b"NETSCAPE2.0", b"ANIMEXTS1.0", b"ICCRGBG1012"];
/// Blocks of other formats, as ImageMagick writes them.
const IIM: [&[u8; 11]; 2] = [b"MGKIPTC0000", b"MGK8BIM0000"];

#[derive(Default)]
enum Place {
    #[default]
    Screen,
    Blocks,
    /// Within the sub-blocks of a block.
    Data(Data),
    /// After the trailer.
    End,
    /// At a block of an unknown kind.
    Lost,
}

/// What happens to the sub-blocks of a block.
enum Data {
    Kept,
    Dropped(Class),
    /// An XMP packet, which stands in the file without sub-blocks. Its trailer leads all readers of sub-blocks to the last one.
    Xmp(Vec<u8>),
    Iim(Vec<u8>),
}

#[derive(Default)]
pub(super) struct Walker {
    place: Place,
}

impl Walker {
    pub(super) fn step(&mut self, bytes: &[u8], plan: &mut Plan) -> Step {
        match &mut self.place {
            Place::Screen => {
                let Some(screen) = bytes.get(..SCREEN) else { return Step::Need(SCREEN) };
                let whole = (SCREEN + color_table(screen[10])) as u64;
                plan.keep(whole);
                self.place = Place::Blocks;
                Step::Planned(whole)
            }
            Place::Blocks => self.block(bytes, plan),
            Place::Data(data) => {
                let whole = 1 + usize::from(bytes[0]);
                let step = data.step(bytes, whole, plan);
                if whole == 1 {
                    self.place = Place::Blocks;
                }
                step
            }
            Place::End => plan.trail(bytes),
            Place::Lost => {
                plan.drop(bytes.len() as u64, Class::Other);
                Step::Planned(bytes.len() as u64)
            }
        }
    }

    fn block(&mut self, bytes: &[u8], plan: &mut Plan) -> Step {
        let whole = match bytes[0] {
            // Some encoders write zeros between blocks.
            0x00 => 1,
            0x3b => {
                self.place = Place::End;
                1
            }
            0x2c => {
                let Some(descriptor) = bytes.get(..IMAGE) else { return Step::Need(IMAGE) };
                self.place = Place::Data(Data::Kept);
                // The size of the first code follows the color table.
                IMAGE + color_table(descriptor[9]) + 1
            }
            0x21 => return self.extension(bytes, plan),
            _ => {
                self.place = Place::Lost;
                return Step::Planned(0);
            }
        };
        plan.keep(whole as u64);
        Step::Planned(whole as u64)
    }

    fn extension(&mut self, bytes: &[u8], plan: &mut Plan) -> Step {
        const HEAD: usize = 2;
        let (whole, data) = match bytes {
            [_] => return Step::Need(HEAD),
            // The control of the next image, and text that is drawn as an image.
            [_, 0xf9 | 0x01, ..] => (HEAD, Data::Kept),
            [_, 0xfe, ..] => (HEAD, Data::Dropped(Class::Text)),
            [_, 0xff] => return Step::Need(HEAD + 1),
            [_, 0xff, 11, ..] => match bytes.first_chunk::<APPLICATION>() {
                None => return Step::Need(APPLICATION),
                Some(head) => (APPLICATION, application(head, plan)),
            },
            _ => (HEAD, Data::Dropped(Class::Other)),
        };
        match &data {
            Data::Kept => plan.keep(whole as u64),
            Data::Dropped(class) => plan.drop(whole as u64, *class),
            Data::Xmp(_) | Data::Iim(_) => plan.at += whole as u64,
        }
        self.place = Place::Data(data);
        Step::Planned(whole as u64)
    }

    /// The number of bytes of the current block that are held in memory.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        match &self.place {
            Place::Data(Data::Xmp(bytes) | Data::Iim(bytes)) => bytes.len(),
            _ => 0,
        }
    }

    pub(super) fn finish(self, held: &[u8], plan: &mut Plan) {
        // The file ends within metadata that had to be examined, or within the head of an application extension.
        match self.place {
            Place::Data(Data::Xmp(_) | Data::Iim(_)) => plan.drop_private(held.len() as u64, Class::Other),
            Place::Blocks if held.starts_with(b"\x21\xff") => plan.drop_private(held.len() as u64, Class::Other),
            _ => plan.keep(held.len() as u64),
        }
    }
}

impl Data {
    /// Plans a sub-block of `whole` bytes, its length included. The last one is empty.
    fn step(&mut self, bytes: &[u8], whole: usize, plan: &mut Plan) -> Step {
        match self {
            Self::Kept => plan.keep(whole as u64),
            Self::Dropped(class) => plan.drop(whole as u64, *class),
            Self::Xmp(_) | Self::Iim(_) if bytes.len() < whole => return Step::Need(whole),
            Self::Xmp(packet) => {
                // No more than one byte above what is examined.
                let room = (plan.budget.0 + 1 + GIF_XMP_TRAILER.len()).saturating_sub(packet.len());
                packet.extend_from_slice(&bytes[..whole.min(room)]);
                plan.at += whole as u64;
                if whole == 1 {
                    let block = match packet.strip_suffix(&GIF_XMP_TRAILER) {
                        Some(packet) => plan.budget.examine(packet, xmp::examine),
                        None => Block::damaged(),
                    };
                    plan.replace(0, block, |kept| gif_xmp(&kept));
                }
            }
            Self::Iim(content) => {
                let room = (plan.budget.0 + 1).saturating_sub(content.len());
                content.extend_from_slice(&bytes[1..whole.min(1 + room)]);
                plan.at += whole as u64;
                if whole == 1 {
                    let examine = if content.starts_with(b"8BIM") { iim::examine_resources } else { iim::examine };
                    let block = plan.budget.examine(content, examine);
                    plan.replace(0, Block { kept: None, ..block }, |none| none);
                }
            }
        }
        Step::Planned(whole as u64)
    }
}

/// What happens to the sub-blocks of an application extension.
fn application(head: &[u8; APPLICATION], plan: &mut Plan) -> Data {
    let is_any = |names: &[&[u8; 11]]| names.iter().any(|name| head.ends_with(*name));
    if head == GIF_XMP {
        Data::Xmp(Vec::new())
    } else if is_any(&IIM) {
        Data::Iim(Vec::new())
    } else if is_any(&SHOWN) {
        Data::Kept
    } else {
        plan.has_manifest |= head == GIF_C2PA;
        Data::Dropped(Class::Other)
    }
}
