//! The segments of a JPEG (ITU-T T.81, annex B; JFIF 1.02; Exif 2.32, 4.7; XMP specification, part 3, 1.1).

use memchr::{memchr, memmem};

use super::{Block, Class, Plan, Step, exif, iim, xmp};

const EXIF: &[u8] = b"Exif\0\0";
const XMP: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";
const EXTENDED_XMP: &[u8] = b"http://ns.adobe.com/xmp/extension/\0";
const PHOTOSHOP: &[u8] = b"Photoshop 3.0\0";
/// The size of a marker and the segment length.
const SEGMENT_HEAD: usize = 4;
/// The size of a JFIF segment without a thumbnail, after its length.
const JFIF: usize = 14;
/// The largest payload of a segment.
const PAYLOAD_MAX: usize = u16::MAX as usize - 2;

#[derive(Default)]
enum Place {
    /// Between segments.
    #[default]
    Segments,
    /// In entropy-coded data.
    Scan,
    /// After the end of the image.
    End,
    /// At a segment whose length is impossible.
    Lost,
}

#[derive(Default)]
pub(super) struct Walker {
    place: Place,
    /// The image resources of all their segments, and the part that replaces them.
    resources: Option<(usize, Vec<u8>)>,
    /// The parts of the extended XMP: digest of the whole, offset, bytes.
    extended: Vec<([u8; 32], u32, Vec<u8>)>,
}

impl Walker {
    pub(super) fn step(&mut self, bytes: &[u8], plan: &mut Plan) -> Step {
        match self.place {
            Place::Segments => self.segment(bytes, plan),
            Place::Scan => self.scan(bytes, plan),
            Place::End => plan.trail(bytes),
            Place::Lost => {
                plan.drop(bytes.len() as u64, Class::Other);
                Step::Planned(bytes.len() as u64)
            }
        }
    }

    /// Passes entropy-coded data up to the next marker, where a byte of 255 is followed by a stuffed zero and restart markers
    /// are part of the data (B.1.1.5).
    fn scan(&mut self, bytes: &[u8], plan: &mut Plan) -> Step {
        let mut at = 0;
        let end = loop {
            let Some(found) = memchr(0xff, &bytes[at..]) else { break bytes.len() };
            at += found;
            match bytes.get(at + 1) {
                None if at == 0 => return Step::Need(2),
                None => break at,
                Some(0x00 | 0xd0..=0xd7) => at += 2,
                Some(0xff) => at += 1,
                Some(_) => {
                    self.place = Place::Segments;
                    break at;
                }
            }
        };
        plan.keep(end as u64);
        Step::Planned(end as u64)
    }

    fn segment(&mut self, bytes: &[u8], plan: &mut Plan) -> Step {
        if bytes[0] != 0xff {
            // Between segments, decoders look for the next marker.
            let count = memchr(0xff, bytes).unwrap_or(bytes.len()) as u64;
            plan.drop(count, Class::Other);
            return Step::Planned(count);
        }
        let Some(&marker) = bytes.get(1) else { return Step::Need(2) };
        match marker {
            0x00 => {
                plan.drop(2, Class::Other);
                return Step::Planned(2);
            }
            // Any marker may be preceded by fill bytes (B.1.1.2).
            0xff => {
                plan.keep(1);
                return Step::Planned(1);
            }
            0xd8 | 0x01 | 0xd0..=0xd7 | 0xd9 => {
                if marker == 0xd9 {
                    self.place = Place::End;
                }
                plan.keep(2);
                return Step::Planned(2);
            }
            _ => {}
        }
        let Some(length) = bytes.get(2..SEGMENT_HEAD) else { return Step::Need(SEGMENT_HEAD) };
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        if length < 2 {
            self.place = Place::Lost;
            return Step::Planned(0);
        }
        let whole = 2 + length;
        if is_metadata(marker) {
            match bytes.get(SEGMENT_HEAD..whole) {
                Some(payload) => self.metadata(marker, payload, plan),
                None => return Step::Need(whole),
            }
        } else {
            if marker == 0xda {
                self.place = Place::Scan;
            }
            plan.keep(whole as u64);
        }
        Step::Planned(whole as u64)
    }

    /// Plans an application or comment segment.
    fn metadata(&mut self, marker: u8, payload: &[u8], plan: &mut Plan) {
        let whole = (SEGMENT_HEAD + payload.len()) as u64;
        match (marker, payload) {
            (0xe0, [b'J', b'F', b'I', b'F', 0, ..]) if payload.len() <= JFIF => plan.keep(whole),
            (0xe0, [b'J', b'F', b'I', b'F', 0, ..]) => {
                let mut block = Block { kept: Some(payload[..JFIF].to_vec()), ..Block::default() };
                block.removed.add(Class::Thumbnail);
                plan.replace(whole, block, |mut kept| {
                    kept[JFIF - 2..].fill(0);
                    segment(marker, &kept)
                });
            }
            (0xe0, [b'J', b'F', b'X', b'X', 0, ..]) => plan.drop(whole, Class::Thumbnail),
            (0xe1, _) if payload.len() >= EXIF.len() && payload[..5].eq_ignore_ascii_case(&EXIF[..5]) => {
                let block = plan.budget.examine(&payload[EXIF.len()..], exif::examine);
                plan.replace(whole, block, |kept| segment(marker, &[EXIF, &kept].concat()));
            }
            (0xe1, _) if payload.starts_with(XMP) => {
                let mut block = plan.budget.examine(&payload[XMP.len()..], xmp::examine);
                block.kept = block.kept.filter(|kept| XMP.len() + kept.len() <= PAYLOAD_MAX);
                plan.replace(whole, block, |kept| segment(marker, &[XMP, &kept].concat()));
            }
            (0xe1, _) if payload.starts_with(EXTENDED_XMP) => {
                self.extended(&payload[EXTENDED_XMP.len()..], whole, plan)
            }
            (0xe2, _) if payload.starts_with(b"ICC_PROFILE\0") => plan.keep(whole),
            // Names the images that follow this one (CIPA DC-007).
            (0xe2, _) if payload.starts_with(b"MPF\0") => plan.drop(whole, Class::Trailer),
            (0xeb, _) => {
                plan.has_manifest |= payload.starts_with(b"JP") && memmem::find(payload, b"c2pa").is_some();
                plan.drop(whole, Class::Other);
            }
            (0xed, _) if payload.starts_with(PHOTOSHOP) => {
                let part = &payload[PHOTOSHOP.len()..];
                match &mut self.resources {
                    None => self.resources = Some((plan.defer(whole), part.to_vec())),
                    Some((_, resources)) => {
                        // No more than one byte above what is examined.
                        let room = (plan.budget.0 + 1).saturating_sub(resources.len());
                        resources.extend_from_slice(&part[..part.len().min(room)]);
                        plan.at += whole;
                    }
                }
            }
            (0xee, _) if payload.starts_with(b"Adobe") => plan.keep(whole),
            (0xfe, _) => plan.drop(whole, Class::Text),
            _ => plan.drop(whole, Class::Other),
        }
    }

    /// Collects a part of the extended XMP: a digest, the size of the whole, the offset of the part, and its bytes.
    fn extended(&mut self, part: &[u8], whole: u64, plan: &mut Plan) {
        const HEAD: usize = 32 + 4 + 4;
        let Some((digest, _)) = part.split_first_chunk::<32>().filter(|_| part.len() >= HEAD) else {
            return plan.drop_private(whole, Class::Other);
        };
        let Some(left) = plan.budget.0.checked_sub(part.len()) else {
            return plan.drop_private(whole, Class::Other);
        };
        plan.budget.0 = left;
        let offset = u32::from_be_bytes([part[36], part[37], part[38], part[39]]);
        self.extended.push((*digest, offset, part[HEAD..].to_vec()));
        plan.drop(whole, Class::Other);
    }

    pub(super) fn finish(self, held: &[u8], plan: &mut Plan) {
        // The file ends within a segment, or within a marker.
        if let Place::Segments = self.place
            && held.get(1).is_some_and(|marker| is_metadata(*marker))
        {
            plan.drop_private(held.len() as u64, Class::Other);
        } else {
            plan.keep(held.len() as u64);
        }
        if let Some((index, resources)) = self.resources {
            let mut block = plan.budget.examine(&resources, iim::examine_resources);
            let kept = block.kept.take().filter(|kept| PHOTOSHOP.len() + kept.len() <= PAYLOAD_MAX);
            plan.replace(0, block, |none| none);
            plan.set(index, kept.map(|kept| segment(0xed, &[PHOTOSHOP, &kept].concat())).unwrap_or_default());
        }
        let mut extended = self.extended;
        extended.sort_unstable_by_key(|(digest, offset, _)| (*digest, *offset));
        for parts in extended.chunk_by(|one, other| one.0 == other.0) {
            let packet: Vec<u8> = parts.iter().flat_map(|(_, _, bytes)| bytes).copied().collect();
            // Its bytes were counted when they came.
            let block = xmp::examine(&packet, &mut plan.budget);
            plan.replace(0, Block { kept: None, ..block }, |none| none);
        }
    }
}

/// Returns `true` if segments of this marker are for applications, or comments.
fn is_metadata(marker: u8) -> bool {
    matches!(marker, 0xe0..=0xef | 0xfe)
}

/// A segment. Its payload must have at most [`PAYLOAD_MAX`] bytes.
fn segment(marker: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() + 2) as u16;
    [&[0xff, marker], &length.to_be_bytes()[..], payload].concat()
}
