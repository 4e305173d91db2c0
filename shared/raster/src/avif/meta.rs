//! The box `meta`: items, their places and their properties (ISO/IEC 14496-12, 8.11; ISO/IEC 23008-12, 6 and 9).

use std::borrow::Cow;
use std::ops::Range;

use super::{Header, HeifHeader, MAX_META_BYTES};
use crate::geometry::Size;
use crate::header::{HeaderError, check_limits};
use crate::orientation::Orientation;

/// Tiles of a grid at most. A camera uses some dozens.
const TILES_MAX: usize = 1024;

/// Items, references, lists of properties, and parts of the data of all items at most.
const ENTRIES_MAX: usize = 4096;

/// The parts of an item's data: ranges of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Place(Vec<Range<u64>>);

impl Place {
    /// The data; `None` if the file ends before, or if it would be longer than the file.
    pub(super) fn read<'a>(&self, file: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let part = |range: &Range<u64>| {
            // A length of 0 means up to the end of the file.
            let end = if range.end == range.start { file.len() } else { usize::try_from(range.end).ok()? };
            file.get(usize::try_from(range.start).ok()?..end)
        };
        match self.0.as_slice() {
            [range] => part(range).map(Cow::Borrowed),
            ranges => {
                let mut data = Vec::new();
                for range in ranges {
                    let part = part(range)?;
                    if data.len() + part.len() > file.len() {
                        return None;
                    }
                    data.extend_from_slice(part);
                }
                Some(Cow::Owned(data))
            }
        }
    }
}

/// Coded images that form one, from left to right and from top to bottom.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tiles {
    pub(super) columns: u32,
    /// Size of each tile.
    pub(super) tile: Size,
    pub(super) places: Vec<Place>,
}

/// The numbers of a color space (ITU-T H.273), as a property of the type `nclx` has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Colors {
    pub(super) primaries: u16,
    pub(super) transfer: u16,
    pub(super) matrix: u16,
    pub(super) is_full_range: bool,
}

type Result<T> = std::result::Result<T, HeaderError>;

const MALFORMED: HeaderError = HeaderError::Malformed;

fn unsupported<T>(what: &'static str) -> Result<T> {
    Err(HeaderError::UnsupportedAvif(what))
}

/// Reads big-endian numbers from the front of bytes.
#[derive(Clone, Copy)]
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(MALFORMED)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(self.take(N)?.try_into().unwrap_or([0; N]))
    }

    fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// A number of 0, 4 or 8 bytes.
    fn sized(&mut self, bytes: u8) -> Result<u64> {
        match bytes {
            0 => Ok(0),
            4 => self.u32().map(u64::from),
            8 => Ok(u64::from_be_bytes(self.array()?)),
            _ => Err(MALFORMED),
        }
    }

    /// A number of 16 bits, or of 32 where the version of the box says so.
    fn id(&mut self, is_wide: bool) -> Result<u32> {
        if is_wide { self.u32() } else { self.u16().map(u32::from) }
    }

    /// Version and flags of a full box.
    fn version(&mut self) -> Result<(u8, u32)> {
        let word = self.u32()?;
        Ok(((word >> 24) as u8, word & 0x00ff_ffff))
    }

    /// The next box: its type and content. `None` at the end.
    fn next_box(&mut self) -> Result<Option<([u8; 4], Reader<'a>)>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (kind, head, length) = box_head(self.0)?.ok_or(MALFORMED)?;
        let length = if length == 0 { self.0.len() as u64 } else { length };
        let content = self.take(usize::try_from(length).map_err(|_| MALFORMED)?)?;
        Ok(Some((kind, Reader(content.get(head..).ok_or(MALFORMED)?))))
    }
}

/// Type, length of the head and length of a box; 0 if it ends with the file. `None` if `bytes` end within the head.
fn box_head(bytes: &[u8]) -> Result<Option<([u8; 4], usize, u64)>> {
    let mut reader = Reader(bytes);
    if bytes.len() < 8 {
        return Ok(None);
    }
    let (short, kind) = (reader.u32()?, reader.array()?);
    match short {
        1 if bytes.len() < 16 => Ok(None),
        1 => match reader.sized(8)? {
            ..16 => Err(MALFORMED),
            length => Ok(Some((kind, 16, length))),
        },
        2..8 => Err(MALFORMED),
        length => Ok(Some((kind, 8, length.into()))),
    }
}

/// An item of the box `iinf`.
struct Item {
    id: u32,
    kind: [u8; 4],
    /// Media type of an item of the type `mime`.
    mime: Vec<u8>,
}

/// A reference from an item to others.
struct Reference {
    kind: [u8; 4],
    from: u32,
    to: Vec<u32>,
}

enum Property<'a> {
    Size(Size),
    Bits(u8),
    Icc(&'a [u8]),
    Colors(Colors),
    Rotation(u8),
    Mirror(u8),
    /// An auxiliary image, and whether it is an alpha channel.
    Auxiliary(bool),
    /// Nothing that matters here.
    Known,
    /// Something that must be understood where an item says so.
    Unknown,
}

#[derive(Default)]
struct Meta<'a> {
    primary: u32,
    items: Vec<Item>,
    /// Places in the file.
    places: Vec<(u32, Place)>,
    /// Places in `inline`.
    inline_places: Vec<(u32, Place)>,
    /// The data of the box `idat`.
    inline: &'a [u8],
    references: Vec<Reference>,
    properties: Vec<Property<'a>>,
    /// Items and the indices of their properties, with the mark of those that must be understood.
    associations: Vec<(u32, Vec<(usize, bool)>)>,
}

/// Reads the header of a file from its first bytes.
pub(super) fn read(bytes: &[u8]) -> Result<Header> {
    Meta::read(content(bytes)?)?.header()
}

/// Reads the header of a file of any codec from its first bytes.
pub(super) fn read_heif(bytes: &[u8]) -> Result<HeifHeader> {
    let meta = Meta::read(content(bytes)?)?;
    Ok(HeifHeader { stored: meta.size_of(meta.primary)?, xmp: meta.xmp() })
}

/// The content of the box `meta`.
fn content(bytes: &[u8]) -> Result<&[u8]> {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some((kind, head, length)) = box_head(rest)? else { return Err(HeaderError::Truncated) };
        if &kind == b"meta" && length != 0 {
            let length = usize::try_from(length).map_err(|_| MALFORMED)?;
            if at.saturating_add(length) > MAX_META_BYTES {
                return unsupported("more than 256 KiB of metadata");
            }
            return rest.get(head..length).ok_or(HeaderError::Truncated);
        }
        at = match usize::try_from(length).ok().and_then(|length| at.checked_add(length)) {
            Some(next) if length != 0 && next <= MAX_META_BYTES => next,
            _ => return unsupported("images that are not declared at the beginning"),
        };
    }
}

impl<'a> Meta<'a> {
    fn read(content: &'a [u8]) -> Result<Self> {
        let mut meta = Self::default();
        let mut boxes = Reader(content);
        boxes.version()?;
        while let Some((kind, mut content)) = boxes.next_box()? {
            match &kind {
                b"pitm" => {
                    let (version, _) = content.version()?;
                    meta.primary = content.id(version > 0)?;
                }
                b"iinf" => meta.items = items(content)?,
                b"iref" => meta.references = references(content)?,
                b"iprp" => meta.properties_box(content)?,
                b"idat" => meta.inline = content.0,
                b"iloc" => meta.locations(content)?,
                _ => {}
            }
        }
        Ok(meta)
    }

    fn properties_box(&mut self, mut boxes: Reader<'a>) -> Result<()> {
        while let Some((kind, mut content)) = boxes.next_box()? {
            match &kind {
                b"ipco" => {
                    while let Some((kind, content)) = content.next_box()? {
                        self.properties.push(property(kind, content)?);
                    }
                }
                b"ipma" => {
                    let (version, flags) = content.version()?;
                    for _ in 0..content.u32()? {
                        let item = content.id(version > 0)?;
                        let mut associated = Vec::new();
                        for _ in 0..content.u8()? {
                            let (index, is_essential) = if flags & 1 != 0 {
                                let word = content.u16()?;
                                (word & 0x7fff, word & 0x8000 != 0)
                            } else {
                                let byte = content.u8()?;
                                (u16::from(byte & 0x7f), byte & 0x80 != 0)
                            };
                            // 0 means none.
                            if let Some(index) = usize::from(index).checked_sub(1) {
                                associated.push((index, is_essential));
                            }
                        }
                        push(&mut self.associations, (item, associated))?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn locations(&mut self, mut content: Reader<'_>) -> Result<()> {
        let (version, _) = content.version()?;
        if version > 2 {
            return Err(MALFORMED);
        }
        let [sizes, more] = content.array()?;
        let (offset_bytes, length_bytes, base_bytes, index_bytes) = (sizes >> 4, sizes & 15, more >> 4, more & 15);
        let mut left = ENTRIES_MAX;
        for _ in 0..content.id(version > 1)? {
            let item = content.id(version > 1)?;
            let method = if version > 0 { content.u16()? & 15 } else { 0 };
            let reference = content.u16()?;
            let base = content.sized(base_bytes)?;
            let count = usize::from(content.u16()?);
            // An entry may take no bytes.
            let Some(rest) = left.checked_sub(count) else { return unsupported("images in more than 4096 parts") };
            left = rest;
            let mut ranges = Vec::with_capacity(count);
            for _ in 0..count {
                if version > 0 {
                    content.sized(index_bytes)?;
                }
                let (offset, length) = (content.sized(offset_bytes)?, content.sized(length_bytes)?);
                let start = base.checked_add(offset).ok_or(MALFORMED)?;
                ranges.push(start..start.checked_add(length).ok_or(MALFORMED)?);
            }
            match (method, reference) {
                (0, 0) => push(&mut self.places, (item, Place(ranges)))?,
                (1, 0) => push(&mut self.inline_places, (item, Place(ranges)))?,
                // Built from another item or file: of no item that is used here.
                _ => {}
            }
        }
        Ok(())
    }

    /// The properties of an item, in order.
    fn of(&self, item: u32) -> impl Iterator<Item = (&Property<'a>, bool)> {
        let associated = self.associations.iter().filter(move |(id, _)| *id == item).flat_map(|(_, them)| them);
        associated.filter_map(|(index, is_essential)| Some((self.properties.get(*index)?, *is_essential)))
    }

    fn size_of(&self, item: u32) -> Result<Size> {
        let size = self.of(item).find_map(|(property, _)| match property {
            Property::Size(size) => Some(*size),
            _ => None,
        });
        let size = size.ok_or(MALFORMED)?;
        check_limits(size)?;
        Ok(size)
    }

    fn kind_of(&self, item: u32) -> Result<[u8; 4]> {
        self.items.iter().find(|one| one.id == item).map(|one| one.kind).ok_or(MALFORMED)
    }

    fn place_of(&self, item: u32) -> Result<&Place> {
        self.places.iter().find(|(id, _)| *id == item).map(|(_, place)| place).ok_or(MALFORMED)
    }

    fn referred(&self, kind: &[u8; 4], from: u32) -> Option<&[u32]> {
        let reference = self.references.iter().find(|one| &one.kind == kind && one.from == from);
        reference.map(|one| one.to.as_slice())
    }

    /// The coded images of an item of this size.
    fn tiles(&self, item: u32, size: Size) -> Result<Tiles> {
        match &self.kind_of(item)? {
            b"av01" => Ok(Tiles { columns: 1, tile: size, places: vec![self.place_of(item)?.clone()] }),
            b"grid" => self.grid(item, size),
            _ => unsupported("an image of another codec than AV1"),
        }
    }

    /// A grid (ISO/IEC 23008-12, 6.6.2.3), whose description is small and usually within `meta`.
    fn grid(&self, item: u32, size: Size) -> Result<Tiles> {
        let Some((_, place)) = self.inline_places.iter().find(|(id, _)| *id == item) else {
            return unsupported("a grid that is described outside of its metadata");
        };
        let description = place.read(self.inline).ok_or(MALFORMED)?;
        let mut description = Reader(&description);
        let (_, flags) = (description.u8()?, description.u8()?);
        let (rows, columns) = (u32::from(description.u8()?) + 1, u32::from(description.u8()?) + 1);
        let is_wide = flags & 1 != 0;
        let declared = Size::new(description.id(is_wide)?, description.id(is_wide)?);
        let tiles = self.referred(b"dimg", item).ok_or(MALFORMED)?;
        if declared != size || tiles.len() as u64 != u64::from(rows) * u64::from(columns) || tiles.len() > TILES_MAX {
            return Err(MALFORMED);
        }
        let tile = self.size_of(*tiles.first().ok_or(MALFORMED)?)?;
        // Tiles cover the image, and none lies outside of it.
        let covers = |side: u32, count: u32, of: u32| {
            u64::from(side) * u64::from(count) >= u64::from(of)
                && u64::from(side) * u64::from(count - 1) < u64::from(of)
        };
        if !covers(tile.width, columns, size.width) || !covers(tile.height, rows, size.height) {
            return Err(MALFORMED);
        }
        let places = tiles.iter().map(|one| match (&self.kind_of(*one)?, self.size_of(*one)?) {
            (b"av01", size) if size == tile => Ok(self.place_of(*one)?.clone()),
            (b"av01", _) => Err(MALFORMED),
            _ => unsupported("an image of another codec than AV1"),
        });
        Ok(Tiles { columns, tile, places: places.collect::<Result<_>>()? })
    }

    fn header(&self) -> Result<Header> {
        let primary = self.primary;
        let stored = self.size_of(primary)?;
        let color = self.tiles(primary, stored)?;
        let (mut orientation, mut bits, mut icc, mut code_points) = (Orientation::Normal, 8, None, None);
        for (property, is_essential) in self.of(primary) {
            match property {
                Property::Bits(declared) => bits = *declared,
                Property::Icc(profile) => icc = icc.or(Some(profile.to_vec())),
                Property::Colors(colors) => code_points = code_points.or(Some(*colors)),
                Property::Rotation(quarters) => orientation = orientation.then(rotated(*quarters)),
                Property::Mirror(axis) => orientation = orientation.then(mirrored(*axis)),
                Property::Unknown if is_essential => return unsupported("a property of the image"),
                _ => {}
            }
        }
        let is_alpha = |item: u32| self.of(item).any(|(property, _)| matches!(property, Property::Auxiliary(true)));
        let auxiliaries = self.references.iter().filter(|one| &one.kind == b"auxl" && one.to.contains(&primary));
        let alpha = auxiliaries.map(|one| one.from).find(|item| is_alpha(*item));
        let is_premultiplied =
            alpha.is_some_and(|alpha| self.referred(b"prem", primary).is_some_and(|items| items.contains(&alpha)));
        let alpha = match alpha {
            None => None,
            Some(item) if self.size_of(item)? == stored => Some(self.tiles(item, stored)?),
            Some(_) => return unsupported("an alpha channel of another size"),
        };
        Ok(Header {
            size: orientation.apply_to_size(stored),
            orientation,
            stored,
            color,
            alpha,
            is_premultiplied,
            bits,
            icc,
            code_points,
            xmp: self.xmp(),
        })
    }

    /// The place of the XMP packet that describes the primary image.
    fn xmp(&self) -> Option<Place> {
        let described = self.references.iter().filter(|one| &one.kind == b"cdsc" && one.to.contains(&self.primary));
        let xmp = described.map(|one| one.from).find(|item| {
            self.items.iter().any(|one| one.id == *item && &one.kind == b"mime" && one.mime == b"application/rdf+xml")
        });
        xmp.and_then(|item| self.place_of(item).ok().cloned())
    }
}

/// A rotation by quarters of a turn counterclockwise.
fn rotated(quarters: u8) -> Orientation {
    match quarters & 3 {
        0 => Orientation::Normal,
        1 => Orientation::Rotate270,
        2 => Orientation::Rotated180,
        _ => Orientation::Rotate90,
    }
}

/// 0 exchanges top and bottom, 1 left and right (ISO/IEC 23008-12:2022, 6.5.12).
fn mirrored(axis: u8) -> Orientation {
    if axis & 1 == 0 { Orientation::FlippedVertically } else { Orientation::FlippedHorizontally }
}

fn items(mut content: Reader<'_>) -> Result<Vec<Item>> {
    let (version, _) = content.version()?;
    let count = content.id(version > 0)?;
    let mut items = Vec::new();
    for _ in 0..count {
        let Some((kind, mut entry)) = content.next_box()? else { return Err(MALFORMED) };
        let (version, _) = entry.version()?;
        // Earlier versions have no item type, and name no images.
        if &kind != b"infe" || version < 2 {
            continue;
        }
        let (id, _, kind) = (entry.id(version > 2)?, entry.u16()?, entry.array()?);
        // The name of the item, and for `mime` the media type, each with a zero at its end.
        let mime = entry.0.split(|byte| *byte == 0).nth(1).unwrap_or_default();
        let mime = if &kind == b"mime" { mime.to_vec() } else { Vec::new() };
        push(&mut items, Item { id, kind, mime })?;
    }
    Ok(items)
}

fn references(mut content: Reader<'_>) -> Result<Vec<Reference>> {
    let (version, _) = content.version()?;
    let mut references = Vec::new();
    while let Some((kind, mut entry)) = content.next_box()? {
        let from = entry.id(version > 0)?;
        let count = entry.u16()?;
        let to = (0..count).map(|_| entry.id(version > 0)).collect::<Result<_>>()?;
        push(&mut references, Reference { kind, from, to })?;
    }
    Ok(references)
}

/// Adds to a list of the file.
fn push<T>(list: &mut Vec<T>, entry: T) -> Result<()> {
    if list.len() >= ENTRIES_MAX {
        return unsupported("more than 4096 items");
    }
    list.push(entry);
    Ok(())
}

fn property<'a>(kind: [u8; 4], mut content: Reader<'a>) -> Result<Property<'a>> {
    Ok(match &kind {
        b"ispe" => {
            content.version()?;
            Property::Size(Size::new(content.u32()?, content.u32()?))
        }
        b"pixi" => {
            content.version()?;
            let count = usize::from(content.u8()?);
            Property::Bits(content.take(count)?.iter().copied().max().unwrap_or(8))
        }
        b"colr" => match &content.array()? {
            b"nclx" => Property::Colors(Colors {
                primaries: content.u16()?,
                transfer: content.u16()?,
                matrix: content.u16()?,
                is_full_range: content.u8()? & 0x80 != 0,
            }),
            b"rICC" | b"prof" => Property::Icc(content.0),
            _ => Property::Known,
        },
        b"irot" => Property::Rotation(content.u8()?),
        b"imir" => Property::Mirror(content.u8()?),
        b"auxC" => {
            content.version()?;
            let urn = content.0.split(|byte| *byte == 0).next().unwrap_or_default();
            let alpha: [&[u8]; 2] = [b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", b"urn:mpeg:hevc:2015:auxid:1"];
            Property::Auxiliary(alpha.contains(&urn))
        }
        // The first operating point and all layers are what is decoded anyway.
        b"a1op" if content.0 == [0] => Property::Known,
        b"lsel" if content.0 == [0xff, 0xff] => Property::Known,
        b"av1C" | b"pasp" | b"clli" | b"mdcv" | b"a1lx" => Property::Known,
        _ => Property::Unknown,
    })
}
