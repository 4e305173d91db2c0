//! The index: tracks, codecs, sizes (14496-12, clause 8; 14496-14, 5.6; 14496-15, 5.4).

use std::fmt;

use crate::boxes::{Cursor, children, find, need};
use crate::samples::{self, Samples, Tables};
use crate::{Error, Name, text};

const MOOV: Name = *b"moov";
const TRAK: Name = *b"trak";
const STSD: Name = *b"stsd";

/// A film, as its index describes it.
#[derive(Clone, Debug)]
pub struct Movie<'a> {
    /// Ticks in a second of the film's own times.
    pub timescale: u32,
    /// Duration in these ticks; 0 if it is not known.
    pub duration: u64,
    /// `true` if samples are described outside of the index, in fragments.
    pub is_fragmented: bool,
    /// The tracks, in the order of the file.
    pub tracks: Vec<Track<'a>>,
}

/// What a track is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Pictures.
    Video,
    /// Sound.
    Sound,
    /// Something else, with the name of its handler.
    Other(Name),
}

/// How the samples of a track are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// ITU-T H.264, MPEG-4 part 10.
    H264,
    /// AOMedia Video 1.
    Av1,
    /// ITU-T H.265.
    Hevc,
    /// VP9.
    Vp9,
    /// Advanced Audio Coding.
    Aac,
    /// Opus (RFC 6716).
    Opus,
    /// Another one, with the name of its sample entry.
    Other(Name),
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::H264 => "H.264",
            Self::Av1 => "AV1",
            Self::Hevc => "HEVC",
            Self::Vp9 => "VP9",
            Self::Aac => "AAC",
            Self::Opus => "Opus",
            Self::Other(name) => return f.write_str(&text(name)),
        };
        f.write_str(name)
    }
}

/// How pictures must be turned for display, clockwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turn {
    /// Not at all.
    #[default]
    None,
    /// By 90 degrees.
    Right,
    /// By 180 degrees.
    Around,
    /// By 270 degrees.
    Left,
}

/// How luma and chroma become red, green and blue (ITU-T H.273).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color {
    /// `MatrixCoefficients`: 1 is BT.709, 5 and 6 are BT.601, 9 is BT.2020, 2 is unknown.
    pub matrix: u16,
    /// `true` if samples use the whole range from 0 to 255.
    pub is_full_range: bool,
}

/// A track.
#[derive(Clone, Debug)]
pub struct Track<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its codec.
    pub codec: Codec,
    /// The coded width and height in pixels; 0 but for pictures.
    pub coded: (u16, u16),
    /// How to turn its pictures.
    pub turn: Turn,
    /// Ticks in a second of its times.
    pub timescale: u32,
    /// Duration in these ticks.
    pub duration: u64,
    /// The color of its pictures, if the index says it.
    pub color: Option<Color>,
    /// The content of `avcC`, for H.264.
    pub avc: Option<&'a [u8]>,
    edit: Option<Edit>,
    tables: Tables<'a>,
}

/// The part of a track that is shown (8.6.6): the first edit that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The time that is shown first, in ticks of the track.
    pub start: i64,
    /// Its duration in ticks of the film; 0 if it has no end.
    pub duration: u64,
}

impl<'a> Movie<'a> {
    /// Reads the content of `moov`.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] with the box that is.
    pub fn read(index: &'a [u8]) -> Result<Self, Error> {
        let (version, mut header) = Cursor::full(*b"mvhd", need(MOOV, index, b"mvhd")?)?;
        times(version, &mut header)?;
        let timescale = header.u32()?;
        let duration = duration(version, &mut header)?;
        if timescale == 0 {
            return Err(Error::Damaged(*b"mvhd"));
        }
        let mut movie = Self { timescale, duration, is_fragmented: false, tracks: Vec::new() };
        for child in children(MOOV, index) {
            let child = child?;
            match &child.name {
                b"mvex" => movie.is_fragmented = true,
                b"trak" => movie.tracks.push(Track::read(child.content)?),
                _ => {}
            }
        }
        Ok(movie)
    }

    /// The first track of pictures.
    pub fn video(&self) -> Option<&Track<'a>> {
        self.tracks.iter().find(|track| track.kind == Kind::Video)
    }

    /// `true` if there is sound.
    pub fn has_audio(&self) -> bool {
        self.tracks.iter().any(|track| track.kind == Kind::Sound)
    }

    /// The duration in milliseconds, rounded up: that of the film, or of its longest track if the film has none.
    pub fn milliseconds(&self) -> u64 {
        match milliseconds(self.duration, self.timescale) {
            0 => self.tracks.iter().map(Track::milliseconds).max().unwrap_or(0),
            known => known,
        }
    }
}

pub(crate) fn milliseconds(ticks: u64, timescale: u32) -> u64 {
    u64::try_from((u128::from(ticks) * 1000).div_ceil(u128::from(timescale))).unwrap_or(u64::MAX)
}

impl<'a> Track<'a> {
    fn read(content: &'a [u8]) -> Result<Self, Error> {
        let (version, mut header) = Cursor::full(*b"tkhd", need(TRAK, content, b"tkhd")?)?;
        times(version, &mut header)?;
        // Track id, reserved.
        header.array::<8>()?;
        duration(version, &mut header)?;
        // Reserved, layer, alternate group, volume, reserved.
        header.array::<16>()?;
        let turn = turn(&mut header)?;

        let media = need(TRAK, content, b"mdia")?;
        let (version, mut header) = Cursor::full(*b"mdhd", need(*b"mdia", media, b"mdhd")?)?;
        times(version, &mut header)?;
        let timescale = header.u32()?;
        let duration = duration(version, &mut header)?;
        if timescale == 0 {
            return Err(Error::Damaged(*b"mdhd"));
        }
        let (_, mut handler) = Cursor::full(*b"hdlr", need(*b"mdia", media, b"hdlr")?)?;
        handler.array::<4>()?;
        let kind = match &handler.array()? {
            b"vide" => Kind::Video,
            b"soun" => Kind::Sound,
            other => Kind::Other(*other),
        };
        let table = need(*b"minf", need(*b"mdia", media, b"minf")?, b"stbl")?;
        let edit = match find(TRAK, content, b"edts")? {
            Some(list) => find(*b"edts", list, b"elst")?.map(edit).transpose()?.flatten(),
            None => None,
        };
        let entry = Entry::read(need(*b"stbl", table, &STSD)?, kind)?;
        let Entry { codec, coded, color, avc } = entry;
        let tables = Tables::read(table)?;
        Ok(Self { kind, codec, coded, turn, timescale, duration, color, avc, edit, tables })
    }

    /// The width and height of its pictures as displayed.
    pub fn size(&self) -> (u16, u16) {
        let (width, height) = self.coded;
        match self.turn {
            Turn::None | Turn::Around => (width, height),
            Turn::Right | Turn::Left => (height, width),
        }
    }

    /// The duration in milliseconds, rounded up.
    pub fn milliseconds(&self) -> u64 {
        milliseconds(self.duration, self.timescale)
    }

    /// Reads the tables of its samples, of a film with this time scale.
    ///
    /// # Errors
    ///
    /// [`Error::TooManySamples`] and [`Error::Damaged`].
    pub fn samples(&self, movie_timescale: u32) -> Result<Samples, Error> {
        samples::read(&self.tables, self.edit, self.timescale, movie_timescale)
    }
}

/// Skips the times of creation and modification.
fn times(version: u8, header: &mut Cursor<'_>) -> Result<(), Error> {
    header.wide(version)?;
    header.wide(version).map(drop)
}

/// A duration; all ones stand for one that is not known (8.2.2).
fn duration(version: u8, header: &mut Cursor<'_>) -> Result<u64, Error> {
    let unknown = if version == 1 { u64::MAX } else { u64::from(u32::MAX) };
    Ok(match header.wide(version)? {
        ticks if ticks == unknown => 0,
        ticks => ticks,
    })
}

/// Reads a matrix (8.3.2). Other transformations than turns are ignored.
fn turn(header: &mut Cursor<'_>) -> Result<Turn, Error> {
    let mut number = || header.u32().map(u32::cast_signed);
    let [a, b, _, c, d] = [number()?, number()?, number()?, number()?, number()?];
    Ok(match (a.signum(), b.signum(), c.signum(), d.signum()) {
        (0, 1, -1, 0) => Turn::Right,
        (-1, 0, 0, -1) => Turn::Around,
        (0, -1, 1, 0) => Turn::Left,
        _ => Turn::None,
    })
}

/// The first edit of an edit list that shows something.
fn edit(content: &[u8]) -> Result<Option<Edit>, Error> {
    let (version, mut list) = Cursor::full(*b"elst", content)?;
    for _ in 0..list.u32()? {
        let duration = list.wide(version)?;
        let start = match version {
            1 => list.u64()?.cast_signed(),
            _ => list.u32()?.cast_signed().into(),
        };
        // The rate.
        list.u32()?;
        if start >= 0 {
            return Ok(Some(Edit { start, duration }));
        }
    }
    Ok(None)
}

/// The description of samples.
struct Entry<'a> {
    codec: Codec,
    coded: (u16, u16),
    color: Option<Color>,
    avc: Option<&'a [u8]>,
}

impl<'a> Entry<'a> {
    /// Reads `stsd` (8.5.2). Samples that have different codecs are those of an unknown codec.
    fn read(content: &'a [u8], kind: Kind) -> Result<Self, Error> {
        let (_, mut table) = Cursor::full(STSD, content)?;
        let count = table.u32()?;
        let mut first: Option<Self> = None;
        let mut read = 0;
        for child in children(STSD, table.rest) {
            let child = child?;
            let entry = match kind {
                Kind::Video => Self::video(child.name, child.content)?,
                Kind::Sound => Self::sound(child.name, child.content)?,
                Kind::Other(_) => Self::other(child.name),
            };
            read += 1;
            match &mut first {
                None => first = Some(entry),
                Some(first) if first.codec != entry.codec || first.coded != entry.coded => {
                    first.codec = Codec::Other(*b"stsd");
                }
                // One description is used.
                Some(_) => {}
            }
        }
        first.filter(|_| read == count).ok_or(Error::Damaged(STSD))
    }

    fn other(name: Name) -> Self {
        Self { codec: Codec::Other(name), coded: (0, 0), color: None, avc: None }
    }

    /// `VisualSampleEntry` (12.1.3).
    fn video(name: Name, content: &'a [u8]) -> Result<Self, Error> {
        let mut entry = Cursor::new(name, content);
        entry.array::<24>()?;
        let coded = (entry.u16()?, entry.u16()?);
        entry.array::<50>()?;
        let (mut color, mut avc) = (None, None);
        for child in children(name, entry.rest) {
            let child = child?;
            match &child.name {
                b"colr" => color = color.or(self::color(child.content)?),
                b"avcC" => avc = Some(child.content),
                _ => {}
            }
        }
        let codec = match &name {
            b"avc1" | b"avc3" => Codec::H264,
            b"av01" => Codec::Av1,
            b"hvc1" | b"hev1" | b"dvh1" | b"dvhe" => Codec::Hevc,
            b"vp09" => Codec::Vp9,
            _ => Codec::Other(name),
        };
        Ok(Self { codec, coded, color, avc })
    }

    /// `AudioSampleEntry` (12.2.3). QuickTime has longer ones in its versions 1 and 2.
    fn sound(name: Name, content: &'a [u8]) -> Result<Self, Error> {
        let codec = match &name {
            b"Opus" => Codec::Opus,
            b"mp4a" => {
                let mut entry = Cursor::new(name, content);
                entry.array::<8>()?;
                let version = entry.u16()?;
                entry.array::<18>()?;
                entry.take(match version {
                    0 => 0,
                    1 => 16,
                    2 => 36,
                    _ => return Err(Error::Damaged(name)),
                })?;
                let stream = need(name, entry.rest, b"esds")?;
                if is_aac(stream)? { Codec::Aac } else { Codec::Other(name) }
            }
            _ => Codec::Other(name),
        };
        Ok(Self { codec, ..Self::other(name) })
    }
}

/// The color that `colr` names (12.1.5). A profile says nothing about the coding.
fn color(content: &[u8]) -> Result<Option<Color>, Error> {
    let mut colr = Cursor::new(*b"colr", content);
    let kind = colr.array::<4>()?;
    if !matches!(&kind, b"nclx" | b"nclc") {
        return Ok(None);
    }
    colr.array::<4>()?;
    let matrix = colr.u16()?;
    let is_full_range = kind == *b"nclx" && colr.u8()? & 0x80 != 0;
    Ok(Some(Color { matrix, is_full_range }))
}

/// Returns `true` if an elementary stream descriptor (14496-1, 7.2.6) is that of AAC.
fn is_aac(content: &[u8]) -> Result<bool, Error> {
    const ES: u8 = 3;
    const DECODER: u8 = 4;
    let (_, mut stream) = Cursor::full(*b"esds", content)?;
    let mut stream = descriptor(&mut stream, ES)?;
    stream.array::<2>()?;
    let flags = stream.u8()?;
    if flags & 0x80 != 0 {
        stream.array::<2>()?;
    }
    if flags & 0x40 != 0 {
        let length = stream.u8()?;
        stream.take(length.into())?;
    }
    if flags & 0x20 != 0 {
        stream.array::<2>()?;
    }
    // MPEG-4, and the profiles of MPEG-2 (14496-1, table 5).
    Ok(matches!(descriptor(&mut stream, DECODER)?.u8()?, 0x40 | 0x66..=0x68))
}

/// The content of the next descriptor, which must have this tag.
fn descriptor<'a>(cursor: &mut Cursor<'a>, tag: u8) -> Result<Cursor<'a>, Error> {
    if cursor.u8()? != tag {
        return Err(Error::Damaged(cursor.name));
    }
    let mut length = 0;
    for _ in 0..4 {
        let byte = cursor.u8()?;
        length = length << 7 | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Ok(Cursor::new(cursor.name, cursor.take(length)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Film, boxed, index_of};

    fn film() -> Film {
        Film::default()
    }

    #[test]
    fn tracks_codecs_sizes_and_times_are_read() {
        let index = index_of(&film().file());
        let movie = Movie::read(&index).expect("is a film");
        let video = movie.video().expect("has pictures");
        assert_eq!((video.codec, video.size(), video.turn), (Codec::H264, (320, 180), Turn::None));
        assert_eq!((movie.milliseconds(), movie.has_audio(), movie.is_fragmented), (400, true, false));
        assert_eq!(movie.tracks[1].codec, Codec::Aac);
        assert_eq!(video.avc.map(|avc| avc[0]), Some(1));
    }

    #[test]
    fn codecs_are_named() {
        for (name, codec, said) in [
            (b"avc3", Codec::H264, "H.264"),
            (b"av01", Codec::Av1, "AV1"),
            (b"hvc1", Codec::Hevc, "HEVC"),
            (b"hev1", Codec::Hevc, "HEVC"),
            (b"vp09", Codec::Vp9, "VP9"),
            (b"mp4v", Codec::Other(*b"mp4v"), "mp4v"),
            (b"a\x07 b", Codec::Other(*b"a\x07 b"), "a? b"),
        ] {
            let index = index_of(&Film { entry: *name, ..film() }.file());
            let movie = Movie::read(&index).expect("is a film");
            let read = movie.video().expect("has pictures").codec;
            assert_eq!((read, read.to_string().as_str()), (codec, said));
        }
    }

    #[test]
    fn sound_of_the_same_name_is_told_apart_by_its_descriptor() {
        for (object, codec) in [
            (0x40, Codec::Aac),
            (0x67, Codec::Aac),
            (0x69, Codec::Other(*b"mp4a")),
            (0x6b, Codec::Other(*b"mp4a")),
            (0xa5, Codec::Other(*b"mp4a")),
        ] {
            let index = index_of(&Film { sound: Some(object), ..film() }.file());
            assert_eq!(Movie::read(&index).expect("is a film").tracks[1].codec, codec, "{object:#x}");
        }
        let index = index_of(&Film { sound: None, ..film() }.file());
        assert!(!Movie::read(&index).expect("is a film").has_audio());
    }

    #[test]
    fn turned_pictures_change_their_sides() {
        const ONE: i32 = 1 << 16;
        for (matrix, turn, size) in [
            ([ONE, 0, 0, ONE], Turn::None, (320, 180)),
            ([0, ONE, -ONE, 0], Turn::Right, (180, 320)),
            ([-ONE, 0, 0, -ONE], Turn::Around, (320, 180)),
            ([0, -ONE, ONE, 0], Turn::Left, (180, 320)),
            ([-ONE, 0, 0, ONE], Turn::None, (320, 180)),
        ] {
            let index = index_of(&Film { matrix, ..film() }.file());
            let movie = Movie::read(&index).expect("is a film");
            let video = movie.video().expect("has pictures");
            assert_eq!((video.turn, video.size()), (turn, size), "{matrix:?}");
        }
    }

    #[test]
    fn the_color_is_read_where_it_is_named() {
        for (colr, color) in [
            (&b"nclx\0\x01\0\x01\0\x01\x80"[..], Some(Color { matrix: 1, is_full_range: true })),
            (b"nclx\0\x09\0\x10\0\x09\0", Some(Color { matrix: 9, is_full_range: false })),
            (b"nclc\0\x06\0\x01\0\x06", Some(Color { matrix: 6, is_full_range: false })),
            (b"prof\0\0", None),
        ] {
            let index = index_of(&Film { extra: boxed(b"colr", colr), ..film() }.file());
            assert_eq!(Movie::read(&index).expect("is a film").video().and_then(|video| video.color), color);
        }
        let cut = index_of(&Film { extra: boxed(b"colr", b"nclx\0\x01"), ..film() }.file());
        assert_eq!(Movie::read(&cut).map(|_| ()), Err(Error::Damaged(*b"colr")));
    }

    #[test]
    fn a_box_in_the_index_that_claims_more_than_its_parent_is_refused() {
        let index = index_of(&film().file());
        let at = |name: &[u8; 4]| index.windows(4).position(|four| four == name).expect("is there") - 4;
        for name in [b"mvhd", b"trak", b"mdia", b"minf", b"stbl", b"stsd", b"avc1", b"avcC"] {
            for size in [0_u32, 1, 2, 7, 9, u32::MAX] {
                let mut damaged = index.clone();
                damaged[at(name)..at(name) + 4].copy_from_slice(&size.to_be_bytes());
                // A size of zero extends to the end of the parent, where it may make sense.
                let read = Movie::read(&damaged).map(|_| ());
                assert!(size == 0 || matches!(read, Err(Error::Damaged(_))), "{} {size}: {read:?}", text(name));
            }
        }
    }

    #[test]
    fn an_index_that_is_cut_off_anywhere_is_refused_or_lacks_tracks() {
        let index = index_of(&film().file());
        for length in 0..index.len() {
            if let Ok(movie) = Movie::read(&index[..length]) {
                assert!(movie.tracks.len() < 2, "{length}");
            }
        }
    }

    #[test]
    fn a_film_without_duration_is_as_long_as_its_longest_track() {
        for duration in [0, u32::MAX] {
            let index = index_of(&Film { duration, ..film() }.file());
            assert_eq!(Movie::read(&index).expect("is a film").milliseconds(), 400, "{duration}");
        }
    }
}
