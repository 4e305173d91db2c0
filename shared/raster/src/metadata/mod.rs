//! Removes private metadata from images without decoding them (docs/reference/assets.md#private-metadata).
//!
//! **Guarantee.** A file without private metadata is left as it is. Of a file with some, the rewritten one holds the same coded
//! image, byte for byte, with what decides how it looks (orientation, ICC profile and the color chunks of a PNG), its origin and
//! its authorship, and no other metadata. Damaged metadata counts as private and is dropped, but for an orientation that can still
//! be read. Where the structure of a file is lost, the rest of it is no reason to rewrite it, and is dropped if it is. Whatever the bytes
//! are, there is no panic, the memory is bounded by a few times [`EXAMINED_MAX`], and the time is linear in the size of the file. The
//! result is the same whether the bytes arrive at once or one by one.
//!
//! **Mechanism.** A [`Cleaner`] walks the segments, chunks or blocks of the passing file and writes a plan: which ranges stay, and which
//! new bytes stand between them. A file is rewritten by applying the plan to the same bytes a second time. Only blocks of metadata
//! are held in memory.
//!
//! **Reason.** A file can have private metadata up to its last byte. A gateway cannot hold 50 MiB for each upload until then.

mod exif;
mod gif;
mod iim;
mod jpeg;
mod png;
mod webp;
mod xmp;

#[cfg(test)]
mod tests;

use std::io::Read as _;
use std::ops::Range;

use crate::format::Format;

/// The maximum number of bytes of metadata that are examined in a file, decompressed ones included. Blocks beyond it count as
/// private and are dropped.
pub const EXAMINED_MAX: usize = 2 << 20;

/// The maximum number of kept ranges and new blocks of a rewritten file.
pub const PARTS_MAX: usize = 4096;

/// A class of metadata that was removed from a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The place where the image was taken.
    Location,
    /// The device that took it.
    Device,
    /// The people in it, the owner of the camera, and the author's contact data.
    Person,
    /// Smaller copies of the image.
    Thumbnail,
    /// Bytes after the image in the file.
    Trailer,
    /// Comments, and the inputs of a generator.
    Text,
    /// Anything else.
    Other,
}

impl Class {
    /// All classes, in the order in which they are listed.
    pub const ALL: [Self; 7] =
        [Self::Location, Self::Device, Self::Person, Self::Thumbnail, Self::Trailer, Self::Text, Self::Other];

    /// The name of the class.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Location => "location",
            Self::Device => "device",
            Self::Person => "person",
            Self::Thumbnail => "thumbnail",
            Self::Trailer => "trailer",
            Self::Text => "text",
            Self::Other => "other",
        }
    }
}

/// A set of classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Classes(u8);

impl Classes {
    fn add(&mut self, class: Class) {
        self.0 |= 1 << class as u8;
    }

    fn iter(self) -> impl Iterator<Item = Class> {
        Class::ALL.into_iter().filter(move |class| self.0 & (1 << *class as u8) != 0)
    }
}

/// The content of a block of metadata.
#[derive(Debug, Default)]
struct Block {
    is_private: bool,
    removed: Classes,
    /// The block of a rewritten file; `None` if nothing of it stays.
    kept: Option<Vec<u8>>,
}

impl Block {
    /// A block that cannot be read.
    fn damaged() -> Self {
        let mut block = Self::default();
        block.private(Class::Other);
        block
    }

    /// Adds something private.
    fn private(&mut self, class: Class) {
        self.is_private = true;
        self.removed.add(class);
    }

    /// Adds what a block within this one holds, none of which is kept.
    fn contain(&mut self, inner: Self) {
        self.is_private |= inner.is_private;
        self.removed.0 |= inner.removed.0;
    }
}

/// The number of bytes of metadata that may still be examined.
#[derive(Debug)]
struct Budget(usize);

impl Budget {
    /// Examines `bytes` unless too many were examined before.
    fn examine(&mut self, bytes: &[u8], examine: impl FnOnce(&[u8], &mut Self) -> Block) -> Block {
        match self.0.checked_sub(bytes.len()) {
            Some(left) => {
                self.0 = left;
                examine(bytes, self)
            }
            None => Block::damaged(),
        }
    }

    /// Decompresses a zlib stream; `None` if it is damaged or too long. Bytes count even if the stream is damaged.
    fn inflate(&mut self, compressed: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut stream = flate2::read::ZlibDecoder::new(compressed).take(self.0 as u64 + 1);
        let read = stream.read_to_end(&mut bytes);
        let left = self.0.checked_sub(bytes.len());
        self.0 = left.unwrap_or(0);
        (read.is_ok() && left.is_some()).then_some(bytes)
    }
}

/// A part of a rewritten file.
#[derive(Debug)]
enum Part {
    /// A range of the file as it came.
    Kept(Range<u64>),
    New(Vec<u8>),
}

/// The parts of a rewritten file, and findings about the original.
#[derive(Debug)]
struct Plan {
    parts: Vec<Part>,
    /// The number of bytes that are planned.
    at: u64,
    is_private: bool,
    removed: Classes,
    has_manifest: bool,
    budget: Budget,
}

impl Plan {
    /// Keeps the next `count` bytes.
    fn keep(&mut self, count: u64) {
        match self.parts.last_mut() {
            Some(Part::Kept(range)) if range.end == self.at => range.end += count,
            _ if count == 0 => {}
            _ => self.add(Part::Kept(self.at..self.at + count)),
        }
        self.at += count;
    }

    /// Drops the next `count` bytes.
    fn drop(&mut self, count: u64, class: Class) {
        self.at += count;
        self.removed.add(class);
    }

    /// Drops the next `count` bytes, which are private.
    fn drop_private(&mut self, count: u64, class: Class) {
        self.drop(count, class);
        self.is_private = true;
    }

    /// Drops bytes after the end of the image. They are private unless they are padding.
    fn trail(&mut self, bytes: &[u8]) -> Step {
        self.drop(bytes.len() as u64, Class::Trailer);
        self.is_private |= bytes.iter().any(|byte| *byte != 0);
        Step::Planned(bytes.len() as u64)
    }

    /// Replaces the next `count` bytes by what stays of a block, in the form of its container.
    fn replace(&mut self, count: u64, block: Block, wrap: impl FnOnce(Vec<u8>) -> Vec<u8>) {
        self.at += count;
        self.is_private |= block.is_private;
        self.removed.0 |= block.removed.0;
        if let Some(kept) = block.kept {
            self.add(Part::New(wrap(kept)));
        }
    }

    /// Replaces the next `count` bytes by a part that is known later, and returns its index.
    fn defer(&mut self, count: u64) -> usize {
        self.at += count;
        self.add(Part::New(Vec::new()));
        self.parts.len() - 1
    }

    /// Adds a part. One more than [`PARTS_MAX`] tells that there are too many.
    fn add(&mut self, part: Part) {
        if self.parts.len() <= PARTS_MAX {
            self.parts.push(part);
        }
    }

    /// Sets a deferred part.
    fn set(&mut self, index: usize, bytes: Vec<u8>) {
        if let Some(part) = self.parts.get_mut(index) {
            *part = Part::New(bytes);
        }
    }
}

/// The next step of a format's walker after it has read the available bytes.
enum Step {
    /// Call again when this many bytes from the current position are available.
    Need(usize),
    /// The plan covers this many more bytes, available or still to come.
    Planned(u64),
}

enum Walker {
    Sniff,
    Jpeg(jpeg::Walker),
    Png(png::Walker),
    Webp(webp::Walker),
    Gif(gif::Walker),
    /// No format that is accepted.
    Unwalked,
}

/// Finds private metadata in a passing file.
pub struct Cleaner {
    walker: Walker,
    plan: Plan,
    /// The bytes from the current position onwards, at most `need` of them.
    held: Vec<u8>,
    need: usize,
    skip: u64,
    /// The number of bytes that were pushed.
    length: u64,
}

impl Default for Cleaner {
    fn default() -> Self {
        Self::new()
    }
}

impl Cleaner {
    /// Creates a cleaner at the start of a file.
    pub fn new() -> Self {
        let plan = Plan {
            parts: Vec::new(),
            at: 0,
            is_private: false,
            removed: Classes::default(),
            has_manifest: false,
            budget: Budget(EXAMINED_MAX),
        };
        Self { walker: Walker::Sniff, plan, held: Vec::new(), need: Format::SNIFF_BYTES, skip: 0, length: 0 }
    }

    /// Adds the next bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        let mut rest = bytes;
        loop {
            if self.skip > 0 {
                let skipped = self.skip.min(rest.len() as u64);
                self.skip -= skipped;
                rest = &rest[skipped as usize..];
            }
            if rest.is_empty() && self.held.len() < self.need.max(1) || matches!(self.walker, Walker::Unwalked) {
                return;
            }
            if self.held.is_empty() && rest.len() >= self.need {
                // Without a copy.
                match self.step(rest) {
                    Step::Need(count) => self.need = count,
                    Step::Planned(count) => {
                        let available = count.min(rest.len() as u64);
                        rest = &rest[available as usize..];
                        (self.skip, self.need) = (count - available, 1);
                    }
                }
                continue;
            }
            let missing = self.need.saturating_sub(self.held.len()).min(rest.len());
            self.held.extend_from_slice(&rest[..missing]);
            rest = &rest[missing..];
            if self.held.len() < self.need {
                return;
            }
            let held = std::mem::take(&mut self.held);
            match self.step(&held) {
                Step::Need(count) => (self.held, self.need) = (held, count),
                Step::Planned(count) => {
                    let available = count.min(held.len() as u64);
                    self.skip = count - available;
                    self.held = held;
                    self.held.drain(..available as usize);
                    self.need = self.held.len().max(1);
                }
            }
        }
    }

    fn step(&mut self, bytes: &[u8]) -> Step {
        match &mut self.walker {
            Walker::Sniff => {
                self.walker = match Format::sniff(bytes) {
                    Some(Format::Jpeg) => Walker::Jpeg(jpeg::Walker::default()),
                    Some(Format::Png) => Walker::Png(png::Walker::default()),
                    Some(Format::Webp) => Walker::Webp(webp::Walker::default()),
                    Some(Format::Gif) => Walker::Gif(gif::Walker::default()),
                    None => Walker::Unwalked,
                };
                Step::Planned(0)
            }
            Walker::Jpeg(walker) => walker.step(bytes, &mut self.plan),
            Walker::Png(walker) => walker.step(bytes, &mut self.plan),
            Walker::Webp(walker) => walker.step(bytes, &mut self.plan),
            Walker::Gif(walker) => walker.step(bytes, &mut self.plan),
            Walker::Unwalked => Step::Planned(bytes.len() as u64),
        }
    }

    /// Returns `true` if what was pushed carries a C2PA manifest.
    pub fn has_manifest(&self) -> bool {
        self.plan.has_manifest
    }

    /// Ends the file: how to rewrite it, or `None` if there is nothing private in it.
    ///
    /// # Errors
    ///
    /// [`Scattered`] if the rewritten file would have too many parts.
    pub fn finish(self) -> Result<Option<Cleaned>, Scattered> {
        let Self { walker, mut plan, held, length, .. } = self;
        match walker {
            Walker::Sniff | Walker::Unwalked => {}
            Walker::Jpeg(walker) => walker.finish(&held, &mut plan),
            Walker::Png(walker) => walker.finish(&held, &mut plan),
            Walker::Webp(walker) => walker.finish(&held, length, &mut plan),
            Walker::Gif(walker) => walker.finish(&held, &mut plan),
        }
        if !plan.is_private {
            return Ok(None);
        }
        if plan.parts.len() > PARTS_MAX {
            return Err(Scattered);
        }
        Ok(Some(Cleaned { parts: plan.parts, removed: plan.removed }))
    }
}

/// The metadata of a file is scattered over more than [`PARTS_MAX`] places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the metadata of the image is scattered over too many places")]
pub struct Scattered;

/// How a file with private metadata is rewritten.
#[derive(Debug)]
pub struct Cleaned {
    parts: Vec<Part>,
    removed: Classes,
}

impl Cleaned {
    /// The classes of what the rewritten file lacks.
    pub fn removed(&self) -> impl Iterator<Item = Class> {
        self.removed.iter()
    }

    /// Rewrites the file, whose bytes are passed once more.
    pub fn rewriter(self) -> Rewriter {
        Rewriter { parts: self.parts.into_iter().peekable(), at: 0 }
    }
}

/// Rewrites a passing file.
pub struct Rewriter {
    parts: std::iter::Peekable<std::vec::IntoIter<Part>>,
    /// The number of bytes that were pushed.
    at: u64,
}

impl Rewriter {
    /// Takes the next bytes of the file, and appends to `output` what the rewritten file has in their place.
    pub fn push(&mut self, bytes: &[u8], output: &mut Vec<u8>) {
        let end = self.at + bytes.len() as u64;
        while let Some(part) = self.parts.peek() {
            match part {
                Part::New(new) => output.extend_from_slice(new),
                Part::Kept(range) => {
                    let from = range.start.clamp(self.at, end) - self.at;
                    let to = range.end.clamp(self.at, end) - self.at;
                    output.extend_from_slice(&bytes[from as usize..to as usize]);
                    if range.end > end {
                        break;
                    }
                }
            }
            self.parts.next();
        }
        self.at = end;
    }

    /// Ends the file.
    pub fn finish(self, output: &mut Vec<u8>) {
        for part in self.parts {
            if let Part::New(new) = part {
                output.extend_from_slice(&new);
            }
        }
    }
}

/// Finds the private metadata of a file in memory, with the same result as a [`Cleaner`].
///
/// # Errors
///
/// [`Scattered`]
pub fn examine(bytes: &[u8]) -> Result<Option<Cleaned>, Scattered> {
    let mut cleaner = Cleaner::new();
    cleaner.push(bytes);
    cleaner.finish()
}

/// Examines an XMP packet of another file, such as a video. Returns the classes of what goes with it if something in it is private,
/// none otherwise, and the packet that is left: origin, authorship and rights.
pub fn examine_xmp(packet: &[u8]) -> (Vec<Class>, Option<Vec<u8>>) {
    let block = Budget(EXAMINED_MAX).examine(packet, xmp::examine);
    let classes = if block.is_private { block.removed.iter().collect() } else { Vec::new() };
    (classes, block.kept)
}

/// Returns `true` if a file in memory carries a C2PA manifest.
pub fn has_manifest(bytes: &[u8]) -> bool {
    let mut cleaner = Cleaner::new();
    cleaner.push(bytes);
    cleaner.has_manifest()
}

/// Rewrites a file in memory.
pub fn rewrite(bytes: &[u8], cleaned: Cleaned) -> Vec<u8> {
    let mut output = Vec::with_capacity(bytes.len());
    let mut rewriter = cleaned.rewriter();
    rewriter.push(bytes, &mut output);
    rewriter.finish(&mut output);
    output
}
