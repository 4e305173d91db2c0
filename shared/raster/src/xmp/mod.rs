//! The XMP packet of a file, which says where the image or video comes from (`docs/reference/assets.md#origin-marks`).
//!
//! **Guarantee.** Foreign bytes never cause a panic. Reading keeps at most [`MAX_PACKET_BYTES`] bytes, whatever the file is, and gives
//! the same result whether the bytes arrive at once or one by one. Writing changes no coded data, and equal files and packets give
//! equal files. A file with a C2PA manifest is returned unchanged, because any change would invalidate it.
//!
//! **Mechanism.** Each container is a sequence of blocks: segments of a JPEG (T.81, B.1.1.4), chunks of a PNG and of a WebP (RFC 9649),
//! blocks and sub-blocks of a GIF, and boxes of an MP4 (ISO/IEC 14496-12). [`Blocks`] finds length and kind of the next one from its
//! first bytes. Positions and signatures of packets are those of the XMP Specification, part 3.

mod properties;

use std::io::Read;

use flate2::read::ZlibDecoder;

pub(crate) use self::properties::{IPTC_EXTENSION, RDF, document, wrapped};
pub use self::properties::{Properties, packet};
use crate::format::{Format, color_table};
use crate::header::probe;

/// The maximum size of a packet that is read. Larger ones are ignored.
pub const MAX_PACKET_BYTES: usize = 256 * 1024;

/// The first bytes of a block that are enough to find its kind.
const BLOCK_HEAD: usize = 64;

const JPEG_XMP: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";
const JPEG_EXTENDED_XMP: &[u8] = b"http://ns.adobe.com/xmp/extension/\0";
const PNG_XMP: &[u8] = b"XML:com.adobe.xmp\0";
/// The head of an application extension with a packet.
pub(crate) const GIF_XMP: &[u8; 14] = b"\x21\xff\x0bXMP DataXMP";
/// What follows a packet. It leads every reader that takes the packet for sub-blocks to the terminator.
pub(crate) const GIF_XMP_TRAILER: [u8; 258] = {
    let mut trailer = [0; 258];
    trailer[0] = 1;
    let mut at = 1;
    while at < 257 {
        trailer[at] = (256 - at) as u8;
        at += 1;
    }
    trailer
};
/// The head of an application extension with Content Credentials.
pub(crate) const GIF_C2PA: &[u8; 14] = b"\x21\xff\x0bC2PA_GIF\x01\0\0";
const MP4_XMP: &[u8] = b"\xbe\x7a\xcf\xcb\x97\xa9\x42\xe8\x9c\x71\x99\x94\x91\xe3\xaf\xac";
const MP4_C2PA: &[u8] = b"\xd8\xfe\xc3\xd6\x1b\x0e\x48\x3c\x92\x97\x58\x28\x87\x7e\xc4\x81";

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Jpeg,
    Png,
    Webp,
    Gif,
    Mp4,
}

impl Container {
    /// Detects the kind from the first 12 bytes.
    fn sniff(bytes: &[u8]) -> Option<Self> {
        match Format::sniff(bytes) {
            Some(Format::Jpeg) => Some(Self::Jpeg),
            Some(Format::Png) => Some(Self::Png),
            Some(Format::Webp) => Some(Self::Webp),
            Some(Format::Gif) => Some(Self::Gif),
            None => (bytes.get(4..8) == Some(b"ftyp")).then_some(Self::Mp4),
        }
    }
}

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Part of a packet. The packet begins at this offset of the block.
    Xmp(usize),
    /// Content Credentials.
    Manifest,
    /// In front of the place where a packet is inserted.
    Front,
    Other,
}

/// Finds the blocks of a file.
#[derive(Debug)]
struct Blocks {
    container: Container,
    is_first: bool,
    /// `true` if the position of a new packet is further back.
    in_front: bool,
    /// In a GIF, the kind of the sub-blocks that come next.
    sub_blocks: Option<Kind>,
}

/// The outcome of [`Blocks::next`].
enum Next {
    /// Call again with this many bytes.
    Need(usize),
    /// A block of this length.
    Block(u64, Kind),
    /// What follows has no blocks that matter.
    End,
}

impl Blocks {
    fn new(container: Container) -> Self {
        Self { container, is_first: true, in_front: true, sub_blocks: None }
    }

    /// Finds the block that begins with `bytes`, of which at least one is available.
    fn next(&mut self, bytes: &[u8]) -> Next {
        let found = match self.container {
            Container::Jpeg => self.segment(bytes),
            Container::Png => self.png_chunk(bytes),
            Container::Webp => self.webp_chunk(bytes),
            Container::Gif => self.gif_block(bytes),
            Container::Mp4 => mp4_box(bytes),
        };
        if let Next::Block(_, kind) = found {
            self.is_first = false;
            self.in_front &= matches!(kind, Kind::Front | Kind::Xmp(_));
        }
        found
    }

    fn segment(&self, bytes: &[u8]) -> Next {
        let [first, rest @ ..] = bytes else { return Next::Need(1) };
        let Some(marker) = rest.first() else { return Next::Need(2) };
        match (first, marker) {
            (0xff, 0xda | 0xd9) => return Next::End,
            (0xff, 0xd8) => return Next::Block(2, Kind::Front),
            (0xff, 0x01 | 0xd0..=0xd7) => return Next::Block(2, Kind::Other),
            // Fill bytes, and bytes that decoders skip.
            (0xff, 0xff | 0x00) | (0x00..0xff, _) => return Next::Block(1, Kind::Other),
            _ => {}
        }
        let Some(&[high, low]) = bytes.get(2..4) else { return Next::Need(4) };
        let length = usize::from(u16::from_be_bytes([high, low])).max(2) + 2;
        if bytes.len() < length.min(BLOCK_HEAD) {
            return Next::Need(length.min(BLOCK_HEAD));
        }
        let data = &bytes[4..bytes.len().min(length)];
        let kind = match marker {
            0xe1 if data.starts_with(JPEG_XMP) => Kind::Xmp(4 + JPEG_XMP.len()),
            // Without its packet, an extension says nothing.
            0xe1 if data.starts_with(JPEG_EXTENDED_XMP) => Kind::Xmp(length),
            // A JUMBF box with the type of a manifest store (C2PA 2.1, A.3.1).
            0xeb if data.starts_with(b"JP") && data.windows(4).any(|part| part == b"c2pa") => Kind::Manifest,
            0xe0 | 0xe1 if self.in_front => Kind::Front,
            _ => Kind::Other,
        };
        Next::Block(length as u64, kind)
    }

    fn png_chunk(&self, bytes: &[u8]) -> Next {
        const SIGNATURE: u64 = 8;
        if self.is_first {
            return Next::Block(SIGNATURE, Kind::Front);
        }
        if bytes.len() < 8 {
            return Next::Need(8);
        }
        let length = u64::from(be32(bytes, 0)) + 12;
        match &bytes[4..8] {
            b"IHDR" => Next::Block(length, Kind::Front),
            b"IEND" => Next::End,
            b"caBX" => Next::Block(length, Kind::Manifest),
            b"iTXt" if length <= MAX_PACKET_BYTES as u64 => match bytes.get(8..8 + PNG_XMP.len()) {
                _ if length < 12 + PNG_XMP.len() as u64 => Next::Block(length, Kind::Other),
                None => Next::Need(8 + PNG_XMP.len()),
                Some(PNG_XMP) => Next::Block(length, Kind::Xmp(8 + PNG_XMP.len())),
                Some(_) => Next::Block(length, Kind::Other),
            },
            _ => Next::Block(length, Kind::Other),
        }
    }

    fn webp_chunk(&self, bytes: &[u8]) -> Next {
        const RIFF_HEAD: u64 = 12;
        if self.is_first {
            return Next::Block(RIFF_HEAD, Kind::Front);
        }
        if bytes.len() < 8 {
            return Next::Need(8);
        }
        let kind = match &bytes[..4] {
            b"XMP " => Kind::Xmp(8),
            b"C2PA" => Kind::Manifest,
            _ => Kind::Other,
        };
        let length = u64::from(le32(bytes, 4));
        Next::Block(8 + length + (length & 1), kind)
    }

    fn gif_block(&mut self, bytes: &[u8]) -> Next {
        const SCREEN: usize = 13;
        const IMAGE: usize = 10;
        if let Some(kind) = self.sub_blocks {
            if bytes[0] == 0 {
                self.sub_blocks = None;
            }
            return Next::Block(1 + u64::from(bytes[0]), kind);
        }
        match bytes[0] {
            _ if self.is_first => match bytes.get(10) {
                Some(flags) => Next::Block((SCREEN + color_table(*flags)) as u64, Kind::Front),
                None => Next::Need(SCREEN),
            },
            0x2c => match bytes.get(9) {
                Some(flags) => {
                    self.sub_blocks = Some(Kind::Other);
                    // The image descriptor, its table, and the code size.
                    Next::Block((IMAGE + color_table(*flags) + 1) as u64, Kind::Other)
                }
                None => Next::Need(IMAGE),
            },
            0x21 if bytes.len() < 2 => Next::Need(2),
            0x21 if bytes[1] == 0xff && bytes.len() < GIF_XMP.len() => Next::Need(GIF_XMP.len()),
            // Seen as sub-blocks, a packet and its trailer end with the last byte of the trailer.
            0x21 if bytes.starts_with(GIF_XMP) => {
                self.sub_blocks = Some(Kind::Xmp(0));
                Next::Block(GIF_XMP.len() as u64, Kind::Xmp(GIF_XMP.len()))
            }
            0x21 => {
                let kind = if bytes.starts_with(GIF_C2PA) { Kind::Manifest } else { Kind::Other };
                self.sub_blocks = Some(Kind::Other);
                Next::Block(2, kind)
            }
            0x00 => Next::Block(1, Kind::Other),
            _ => Next::End,
        }
    }
}

fn mp4_box(bytes: &[u8]) -> Next {
    if bytes.len() < 8 {
        return Next::Need(8);
    }
    let (head, length) = match be32(bytes, 0) {
        0 => return Next::End,
        1 if bytes.len() < 16 => return Next::Need(16),
        1 => (16, (u64::from(be32(bytes, 8)) << 32) + u64::from(be32(bytes, 12))),
        length => (8, u64::from(length)),
    };
    if length < head as u64 {
        return Next::End;
    }
    let kind = match bytes.get(head..head + 16) {
        _ if &bytes[4..8] != b"uuid" || length < head as u64 + 16 => Kind::Other,
        None => return Next::Need(head + 16),
        Some(MP4_XMP) => Kind::Xmp(head + 16),
        Some(MP4_C2PA) => Kind::Manifest,
        Some(_) => Kind::Other,
    };
    Next::Block(length, kind)
}

/// The result of an [`XmpReader`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The packet.
    pub packet: Option<Vec<u8>>,
    /// `true` if the file has a C2PA manifest, which is not verified.
    pub has_manifest: bool,
    /// `true` if the file ended with a whole block, so that another block may follow.
    pub is_whole: bool,
}

/// Finds the packet of a file while the file streams past.
#[derive(Debug, Default)]
pub struct XmpReader {
    blocks: Option<Blocks>,
    /// The first bytes of the current block.
    kept: Vec<u8>,
    skip: u64,
    /// The length of the current block, and where the packet begins in it, once it is known to be part of a packet.
    current: Option<(usize, usize)>,
    packet: Option<Vec<u8>>,
    has_manifest: bool,
    has_ended: bool,
}

impl XmpReader {
    /// Adds the next bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        let mut need = self.current.map_or(self.kept.len() + 1, |(length, _)| length);
        loop {
            let skipped = self.skip.min(rest.len() as u64);
            self.skip -= skipped;
            rest = &rest[skipped as usize..];
            if self.has_ended || (rest.is_empty() && self.kept.len() < need) {
                return;
            }
            let taken = rest.len().min(need.saturating_sub(self.kept.len()));
            self.kept.extend_from_slice(&rest[..taken]);
            rest = &rest[taken..];
            if self.kept.len() < need {
                return;
            }
            need = self.step();
        }
    }

    /// Takes in the bytes that are kept; returns how many are needed for the next step.
    fn step(&mut self) -> usize {
        const SNIFF: usize = 12;
        if let Some((length, offset)) = self.current.take() {
            self.keep(offset.min(length));
            self.kept.clear();
            return 1;
        }
        let Some(blocks) = &mut self.blocks else {
            if self.kept.len() < SNIFF {
                return SNIFF;
            }
            match Container::sniff(&self.kept) {
                Some(container) => self.blocks = Some(Blocks::new(container)),
                None => self.has_ended = true,
            }
            return SNIFF;
        };
        match blocks.next(&self.kept) {
            Next::Need(count) => return count.max(self.kept.len() + 1),
            Next::End => self.has_ended = true,
            Next::Block(length, Kind::Xmp(offset)) if length <= MAX_PACKET_BYTES as u64 => {
                self.current = Some((length as usize, offset));
                return length as usize;
            }
            Next::Block(length, kind) => {
                self.has_manifest |= kind == Kind::Manifest;
                let dropped = length.min(self.kept.len() as u64);
                self.kept.drain(..dropped as usize);
                self.skip = length - dropped;
            }
        }
        self.kept.len().max(1)
    }

    /// Adds the current block, from `offset` on, to the packet.
    fn keep(&mut self, offset: usize) {
        let container = self.blocks.as_ref().map(|blocks| blocks.container);
        let data = &self.kept[offset..];
        match container {
            Some(Container::Gif) => {
                let packet = self.packet.get_or_insert_default();
                if packet.len() + data.len() <= MAX_PACKET_BYTES {
                    packet.extend_from_slice(data);
                }
            }
            _ if data.is_empty() || self.packet.is_some() => {}
            Some(Container::Png) => self.packet = png_text(&data[..data.len() - 4]),
            _ => self.packet = Some(data.to_vec()),
        }
    }

    /// Ends the file.
    pub fn finish(mut self) -> Found {
        let is_whole = self.blocks.is_some() && !self.has_ended && self.kept.is_empty() && self.skip == 0;
        if let Some(packet) = &mut self.packet
            && let Some(end) = packet.windows(3).position(|part| part == [0x01, 0xff, 0xfe])
        {
            packet.truncate(end);
        }
        Found { packet: self.packet, has_manifest: self.has_manifest, is_whole }
    }
}

/// The text of an international text chunk after its keyword (PNG, 11.3.3.4).
fn png_text(data: &[u8]) -> Option<Vec<u8>> {
    let [is_compressed, _method, rest @ ..] = data else { return None };
    let mut parts = rest.splitn(3, |byte| *byte == 0);
    let (_language, _translated, text) = (parts.next()?, parts.next()?, parts.next()?);
    if *is_compressed == 0 {
        return Some(text.to_vec());
    }
    let mut inflated = Vec::new();
    ZlibDecoder::new(text).take(MAX_PACKET_BYTES as u64).read_to_end(&mut inflated).ok()?;
    Some(inflated)
}

/// The packet of a file.
pub fn read_xmp(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut reader = XmpReader::default();
    reader.push(bytes);
    reader.finish().packet
}

/// The file with this packet in the place of its own. A file with a C2PA manifest, or of an unknown kind, is returned unchanged, and
/// so is a video that cannot be extended. The packet must fit into a JPEG segment: at most 65000 bytes.
pub fn insert_xmp(bytes: Vec<u8>, packet: &[u8]) -> Vec<u8> {
    let Some(container) = Container::sniff(&bytes) else { return bytes };
    if container == Container::Mp4 {
        let mut reader = XmpReader::default();
        reader.push(&bytes);
        let found = reader.finish();
        return match found.is_whole && !found.has_manifest {
            true => [bytes, mp4_xmp_box(packet)].concat(),
            false => bytes,
        };
    }
    let mut blocks = Blocks::new(container);
    // Bytes after the end of a RIFF file belong to no chunk and would become part of the last one.
    let limit = match container {
        Container::Webp => bytes.len().min((le32(&bytes, 4) as usize).saturating_add(8)),
        _ => bytes.len(),
    };
    let (mut at, mut front) = (0, 0);
    let mut kept = Vec::with_capacity(bytes.len() + packet.len() + 512);
    while at < limit {
        let mut seen = BLOCK_HEAD.min(limit - at);
        let next = loop {
            match blocks.next(&bytes[at..at + seen]) {
                Next::Need(count) if at + count > limit => break Next::End,
                Next::Need(count) => seen = count.max(seen + 1),
                next => break next,
            }
        };
        let Next::Block(length, kind) = next else { break };
        let end = usize::try_from(length).map_or(limit, |length| limit.min(at.saturating_add(length)));
        match kind {
            Kind::Manifest => return bytes,
            Kind::Xmp(_) => {}
            _ => kept.extend_from_slice(&bytes[at..end]),
        }
        if kind == Kind::Front && blocks.in_front {
            front = kept.len();
        }
        at = end;
    }
    kept.extend_from_slice(&bytes[at..limit]);
    match container {
        Container::Webp => return webp_with(kept, packet).unwrap_or(bytes),
        Container::Jpeg => {
            let length = u16::try_from(2 + JPEG_XMP.len() + packet.len()).unwrap_or(u16::MAX);
            let segment = [&[0xff, 0xe1][..], &length.to_be_bytes(), JPEG_XMP, packet].concat();
            kept.splice(front..front, segment);
        }
        Container::Png => {
            // Keyword, no compression, no language, no translated keyword.
            let chunk = [b"iTXt", PNG_XMP, &[0; 4], packet].concat();
            let mut checksum = flate2::Crc::new();
            checksum.update(&chunk);
            let length = (chunk.len() - 4) as u32;
            let chunk = [&length.to_be_bytes()[..], &chunk, &checksum.sum().to_be_bytes()].concat();
            kept.splice(front..front, chunk);
        }
        Container::Gif => {
            kept.splice(front..front, gif_xmp(packet));
            // Extensions exist since this version.
            kept[..6].copy_from_slice(b"GIF89a");
        }
        Container::Mp4 => {}
    }
    kept
}

/// An application extension of a GIF with this packet.
pub(crate) fn gif_xmp(packet: &[u8]) -> Vec<u8> {
    [GIF_XMP, packet, &GIF_XMP_TRAILER].concat()
}

/// A `uuid` box with this packet, which may follow any box of a video.
pub fn mp4_xmp_box(packet: &[u8]) -> Vec<u8> {
    let length = (8 + MP4_XMP.len() + packet.len()) as u32;
    [&length.to_be_bytes()[..], b"uuid", MP4_XMP, packet].concat()
}

/// A WebP without a packet in the extended format, with this packet as its last chunk (RFC 9649, 2.7). `None` if the file is damaged.
fn webp_with(mut bytes: Vec<u8>, packet: &[u8]) -> Option<Vec<u8>> {
    const FIRST: usize = 12;
    const XMP_FLAG: u8 = 0x04;
    const ALPHA_FLAG: u8 = 0x10;
    if bytes.get(FIRST..FIRST + 4)? != b"VP8X" {
        let size = probe(&bytes).ok()?.stored_size();
        // A lossless image says in its header whether it has alpha; a lossy one in this format has none.
        let has_alpha = &bytes[FIRST..FIRST + 4] == b"VP8L" && bytes.get(FIRST + 12)? & ALPHA_FLAG != 0;
        let flags = if has_alpha { ALPHA_FLAG } else { 0 };
        let (width, height) = ((size.width - 1).to_le_bytes(), (size.height - 1).to_le_bytes());
        let chunk = [b"VP8X", &10_u32.to_le_bytes()[..], &[flags, 0, 0, 0], &width[..3], &height[..3]].concat();
        bytes.splice(FIRST..FIRST, chunk);
    }
    *bytes.get_mut(FIRST + 8)? |= XMP_FLAG;
    if bytes.len() % 2 == 1 {
        bytes.push(0);
    }
    bytes.extend_from_slice(b"XMP ");
    bytes.extend_from_slice(&u32::try_from(packet.len()).ok()?.to_le_bytes());
    bytes.extend_from_slice(packet);
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    let length = u32::try_from(bytes.len() - 8).ok()?;
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    Some(bytes)
}

/// The big-endian 32-bit number at `at`, which must be available.
fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The little-endian 32-bit number at `at`, which must be available.
fn le32(bytes: &[u8], at: usize) -> u32 {
    be32(bytes, at).swap_bytes()
}

#[cfg(test)]
mod tests;
