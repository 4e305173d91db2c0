//! Finds what says where, by whom and with which device a film was taken (docs/reference/assets.md#private-metadata-of-videos).
//!
//! **Guarantee.** Of a film without any, nothing changes. Of a film with some, no coded frame and no position in the file changes: a
//! box that goes becomes a `free` box of equal size, and its content, and that of samples that go, becomes zeros. What is not known
//! counts as private. Authorship stays.
//!
//! **Mechanism.** [`Private::examine`] reads the user data and metadata boxes of the index, and the list of the other boxes of the file.
//! The result is a list of ranges, which is [applied](Private::apply) to the same file, in pieces.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::boxes::{Child, Cursor, children};
use crate::{Error, Kind, Movie, Name, Piece};

/// A class of private metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Where the film was taken.
    Location,
    /// The device that took it.
    Device,
    /// People in it.
    Person,
    /// The inputs of a generator.
    Text,
    /// Anything else that is not known to be harmless.
    Other,
}

impl Class {
    /// All classes.
    pub const ALL: [Self; 5] = [Self::Location, Self::Device, Self::Person, Self::Text, Self::Other];

    /// The name of the class.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Location => "location",
            Self::Device => "device",
            Self::Person => "person",
            Self::Text => "text",
            Self::Other => "other",
        }
    }
}

/// The extended type of a `uuid` box that is an XMP packet.
pub const XMP: [u8; 16] = *b"\xbe\x7a\xcf\xcb\x97\xa9\x42\xe8\x9c\x71\x99\x94\x91\xe3\xaf\xac";
/// The extended type of a `uuid` box that is a C2PA manifest.
const C2PA: [u8; 16] = *b"\xd8\xfe\xc3\xd6\x1b\x0e\x48\x3c\x92\x97\x58\x28\x87\x7e\xc4\x81";

/// What of a film is private, and what goes with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Private {
    classes: BTreeSet<Class>,
    /// Positions of boxes that become free.
    boxes: Vec<u64>,
    /// Ranges that become zeros.
    zeros: Vec<Range<u64>>,
}

impl Private {
    /// Examines a film by the content of its index, which begins at `index_at` of the file, and the other boxes of the file. `xmp` is
    /// the private classes of its XMP packet, which the caller has read. `None` if there is nothing private.
    ///
    /// # Errors
    ///
    /// If the tables of a track that must go are damaged, or it has too many samples.
    pub fn examine(
        index: &[u8],
        index_at: u64,
        pieces: &[Piece],
        movie: &Movie<'_>,
        xmp: impl IntoIterator<Item = Class>,
    ) -> Result<Option<Self>, Error> {
        let mut private = Self { classes: xmp.into_iter().collect(), ..Self::default() };
        private.container(*b"moov", index, index_at);
        let mut tracks = movie.tracks.iter();
        for child in children(*b"moov", index).flatten().filter(|child| child.name == *b"trak") {
            let Some(track) = tracks.next().filter(|track| is_foreign(track.kind)) else { continue };
            private.classes.insert(Class::Other);
            private.free(index_at, &child);
            let samples = track.samples(movie.timescale)?;
            let end = |sample: &crate::Sample| sample.offset.saturating_add(sample.size.into());
            for sample in samples.all() {
                private.zero(sample.offset..end(sample));
            }
        }
        for piece in pieces {
            match (&piece.name, piece.id) {
                (b"moof" | b"mfra" | b"sidx" | b"ssix" | b"styp" | b"pdin", _) => continue,
                (b"uuid", Some(XMP | C2PA)) => {}
                _ => drop(private.classes.insert(Class::Other)),
            }
            private.boxes.push(piece.at);
            private.zero(piece.content.clone());
        }
        if private.classes.is_empty() {
            return Ok(None);
        }
        private.settle();
        Ok(Some(private))
    }

    /// The classes of what is private.
    pub fn classes(&self) -> impl Iterator<Item = Class> {
        self.classes.iter().copied()
    }

    /// Changes bytes of the file, of which `from` is the position of the first.
    pub fn apply(&self, from: u64, bytes: &mut [u8]) {
        let until = from + bytes.len() as u64;
        let within =
            |range: Range<u64>| (range.start.max(from) - from) as usize..(range.end.min(until) - from) as usize;
        let first = self.zeros.partition_point(|range| range.end <= from);
        for range in self.zeros[first..].iter().take_while(|range| range.start < until) {
            bytes[within(range.clone())].fill(0);
        }
        // The name follows four bytes of length.
        let first = self.boxes.partition_point(|at| at + 8 <= from);
        for at in self.boxes[first..].iter().take_while(|at| *at + 4 < until) {
            let range = at + 4..at + 8;
            for position in range.start.max(from)..range.end.min(until) {
                bytes[(position - from) as usize] = b"free"[(position - range.start) as usize];
            }
        }
    }

    /// Sorts the ranges, and joins those that touch.
    fn settle(&mut self) {
        self.boxes.sort_unstable();
        self.boxes.dedup();
        self.zeros.retain(|range| !range.is_empty());
        self.zeros.sort_unstable_by_key(|range| range.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in std::mem::take(&mut self.zeros) {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        self.zeros = joined;
    }

    /// Lets a box go, in a content that begins at `base` of the file.
    fn free(&mut self, base: u64, child: &Child<'_>) {
        let at = base + child.at as u64;
        self.boxes.push(at);
        let end = at + child.size as u64;
        self.zero(end - child.content.len() as u64..end);
    }

    /// Lets a range become zeros. One that follows the last is joined with it: the samples of a track have one for each of its chunks.
    fn zero(&mut self, range: Range<u64>) {
        match self.zeros.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.zeros.push(range),
        }
    }

    /// Examines what `moov`, or a box in it, contains.
    fn container(&mut self, parent: Name, content: &[u8], base: u64) {
        // A damaged rest was refused before, where it matters.
        for child in children(parent, content).flatten() {
            let inner = base + (child.at + child.size - child.content.len()) as u64;
            match &child.name {
                b"trak" | b"mdia" | b"minf" => self.container(child.name, child.content, inner),
                b"udta" => self.user_data(base, &child, inner),
                b"meta" => self.metadata(base, &child, inner),
                b"free" | b"skip" if child.content.iter().all(|byte| *byte == 0) => {}
                name if is_of_the_index(parent, name) => {}
                _ => {
                    self.classes.insert(item_class(child.name, child.content).unwrap_or(Class::Other));
                    self.free(base, &child);
                }
            }
        }
    }

    /// Examines `udta`.
    fn user_data(&mut self, base: u64, user: &Child<'_>, inner: u64) {
        let items: Result<Vec<_>, Error> = children(user.name, user.content).collect();
        let Ok(items) = items else {
            self.classes.insert(Class::Other);
            return self.free(base, user);
        };
        for item in items {
            if item.name == *b"meta" {
                let content = inner + (item.at + item.size - item.content.len()) as u64;
                self.metadata(inner, &item, content);
                continue;
            }
            self.classes.extend(item_class(item.name, item.content));
            if !is_kept(item.name) {
                self.free(inner, &item);
            }
        }
    }

    /// Examines `meta`, with the list of iTunes (`mdir`) or with keys (`mdta`).
    fn metadata(&mut self, base: u64, meta: &Child<'_>, inner: u64) {
        let Some(read) = Metadata::read(meta.content) else {
            self.classes.insert(Class::Other);
            return self.free(base, meta);
        };
        self.classes.extend(read.classes());
        match read {
            Metadata::Items { at, items } => {
                for item in items.iter().filter(|item| !is_kept(item.name)) {
                    self.free(inner + at as u64, item);
                }
            }
            Metadata::Keys(_) => self.free(base, meta),
        }
    }
}

/// The content of `meta`.
enum Metadata<'a> {
    /// Items by name, in a list that begins at this position of the content.
    Items { at: usize, items: Vec<Child<'a>> },
    /// The keys of items.
    Keys(Vec<String>),
}

impl<'a> Metadata<'a> {
    /// `None` if it is of another kind, or damaged.
    fn read(content: &'a [u8]) -> Option<Self> {
        const META: Name = *b"meta";
        // QuickTime's has no version.
        let start = if content.get(4..8) == Some(b"hdlr") { 0 } else { 4 };
        let boxes: Vec<Child<'a>> = children(META, content.get(start..)?).collect::<Result<_, _>>().ok()?;
        let named = |name: &Name| boxes.iter().find(|child| child.name == *name);
        let known = |child: &Child<'_>| matches!(&child.name, b"hdlr" | b"keys" | b"ilst" | b"free");
        if !boxes.iter().all(known) {
            return None;
        }
        match named(b"hdlr")?.content.get(8..12)? {
            b"mdir" => {
                let list = named(b"ilst")?;
                let items = children(list.name, list.content).collect::<Result<_, _>>().ok()?;
                Some(Self::Items { at: start + list.at + list.size - list.content.len(), items })
            }
            b"mdta" => {
                let (_, mut table) = Cursor::full(*b"keys", named(b"keys")?.content).ok()?;
                let count = table.u32().ok()?;
                let keys: Vec<_> = children(*b"keys", table.rest).collect::<Result<_, _>>().ok()?;
                let is_whole = keys.len() as u64 == u64::from(count);
                let key = |key: &Child<'_>| String::from_utf8_lossy(key.content).into_owned();
                is_whole.then(|| Self::Keys(keys.iter().map(key).collect()))
            }
            _ => None,
        }
    }

    fn classes(&self) -> Vec<Class> {
        match self {
            Self::Items { items, .. } => items.iter().filter_map(|item| item_class(item.name, item.content)).collect(),
            Self::Keys(keys) => keys.iter().filter_map(|key| key_class(key)).collect(),
        }
    }
}

/// Returns `true` for boxes that a player needs (ISO/IEC 14496-12), besides those that are examined.
fn is_of_the_index(parent: Name, name: &Name) -> bool {
    match &parent {
        b"moov" => matches!(name, b"mvhd" | b"iods" | b"mvex"),
        b"trak" => matches!(name, b"tkhd" | b"edts" | b"tref" | b"trgr"),
        b"mdia" => matches!(name, b"mdhd" | b"hdlr" | b"elng"),
        _ => matches!(name, b"vmhd" | b"smhd" | b"nmhd" | b"sthd" | b"gmhd" | b"hmhd" | b"hdlr" | b"dinf" | b"stbl"),
    }
}

/// Returns `true` for tracks that players do not show: positions, movements and faces, beside the film.
fn is_foreign(kind: Kind) -> bool {
    match kind {
        Kind::Video | Kind::Sound => false,
        Kind::Other(handler) => !matches!(&handler, b"text" | b"sbtl" | b"subt" | b"clcp" | b"tmcd" | b"hint"),
    }
}

/// Returns `true` for items of authorship and rights, and for those that players need.
fn is_kept(name: Name) -> bool {
    matches!(
        &name,
        b"cprt"
            | b"auth"
            | b"perf"
            | b"aART"
            | b"\xa9ART"
            | b"\xa9aut"
            | b"\xa9cpy"
            | b"\xa9wrt"
            | b"kind"
            | b"tsel"
            | b"strk"
            | b"hnti"
            | b"hinf"
            | b"ludt"
            | b"free"
            | b"skip"
    )
}

/// The class of an item of user data or of a list, unless it is harmless.
fn item_class(name: Name, content: &[u8]) -> Option<Class> {
    match &name {
        _ if is_kept(name) => None,
        b"\xa9xyz" | b"loci" | b"GPS " | b"gps " | b"\xa9gps" => Some(Class::Location),
        b"\xa9mak" | b"\xa9mod" | b"\xa9mdl" | b"manu" | b"modl" | b"CAME" | b"FIRM" | b"LENS" | b"MUID" | b"SNum"
        | b"CNMN" | b"CNFV" => Some(Class::Device),
        b"\xa9cmt" | b"\xa9des" | b"desc" | b"----" if is_prompt(content) => Some(Class::Text),
        b"name" | b"titl" | b"dscp" | b"gnre" | b"albm" | b"yrrc" | b"rtng" | b"clsf" | b"\xa9nam" | b"\xa9too"
        | b"\xa9enc" | b"\xa9swr" | b"\xa9fmt" | b"\xa9day" | b"\xa9cmt" | b"\xa9des" | b"desc" | b"\xa9gen"
        | b"\xa9alb" | b"\xa9grp" | b"\xa9lyr" | b"gnrf" | b"trkn" | b"disk" | b"tmpo" | b"cpil" | b"pgap"
        | b"hdvd" | b"stik" | b"tvsh" | b"tven" | b"tvsn" | b"tves" | b"ldes" | b"covr" | b"----" => None,
        _ => Some(Class::Other),
    }
}

/// Returns `true` if a comment holds the inputs of a generator.
fn is_prompt(content: &[u8]) -> bool {
    [&b"\"prompt\""[..], b"\"workflow\""].iter().any(|word| content.windows(word.len()).any(|part| part == *word))
}

/// The class of an item with a key such as `com.apple.quicktime.location.ISO6709`, unless it is harmless.
fn key_class(key: &str) -> Option<Class> {
    let key = key.to_ascii_lowercase();
    key.split(['.', '-', '_', ':', ' ', '/']).find_map(|word| {
        Some(match word {
            "location" | "gps" | "latitude" | "longitude" | "altitude" | "iso6709" => Class::Location,
            "make" | "model" | "manufacturer" | "camera" | "lens" | "serial" | "device" => Class::Device,
            "face" | "person" | "people" | "owner" => Class::Person,
            "prompt" | "workflow" | "parameters" => Class::Text,
            _ => return None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scanner;
    use crate::testing::{Film, boxed};

    /// The file as it is served, and the classes of what was removed. `None` if it is served as it is.
    fn cleaned(file: &[u8]) -> Option<(Vec<u8>, Vec<Class>)> {
        let mut scanner = Scanner::new();
        scanner.stream(0, file).expect("is a film");
        let index_at = scanner.index_at();
        let pieces = scanner.noted().to_vec();
        let index = scanner.finish(file.len() as u64).expect("is a film");
        let movie = Movie::read(&index).expect("is a film");
        let private = Private::examine(&index, index_at, &pieces, &movie, []).expect("is whole")?;
        let mut whole = file.to_vec();
        private.apply(0, &mut whole);
        for length in [1, 5, 64] {
            let mut pieces = file.to_vec();
            for (number, piece) in pieces.chunks_mut(length).enumerate() {
                private.apply((number * length) as u64, piece);
            }
            assert_eq!(pieces, whole, "in pieces of {length}");
        }
        let mut scanner = Scanner::new();
        scanner.stream(0, &whole).expect("is still a film");
        let index = scanner.finish(whole.len() as u64).expect("is still a film");
        let read = Movie::read(&index).expect("is still a film");
        assert_eq!(read.video().map(|video| video.size()), movie.video().map(|video| video.size()));
        assert_eq!(cleaned_again(&whole), None, "nothing private is left");
        Some((whole, private.classes().collect()))
    }

    fn cleaned_again(file: &[u8]) -> Option<Private> {
        let mut scanner = Scanner::new();
        scanner.stream(0, file).expect("is a film");
        let (index_at, pieces) = (scanner.index_at(), scanner.noted().to_vec());
        let index = scanner.finish(file.len() as u64).expect("is a film");
        let movie = Movie::read(&index).expect("is a film");
        Private::examine(&index, index_at, &pieces, &movie, []).expect("is whole")
    }

    fn with(user: &[u8]) -> Vec<u8> {
        Film { user: user.to_vec(), ..Film::default() }.file()
    }

    fn meta(handler: &Name, boxes: &[u8]) -> Vec<u8> {
        boxed(b"meta", &[&[0; 4], &boxed(b"hdlr", &[&[0; 8][..], handler, &[0; 13]].concat())[..], boxes].concat())
    }

    fn keys(names: &[&str]) -> Vec<u8> {
        let list: Vec<u8> = names.iter().flat_map(|name| boxed(b"mdta", name.as_bytes())).collect();
        let count = u32::try_from(names.len()).expect("is small").to_be_bytes();
        meta(
            b"mdta",
            &[boxed(b"keys", &[&[0; 4], &count[..], &list].concat()), boxed(b"ilst", b"SECRET-PLACE")].concat(),
        )
    }

    #[test]
    fn a_film_without_private_metadata_is_left_as_it_is() {
        for user in [
            Vec::new(),
            boxed(b"udta", &[0; 4]),
            boxed(b"udta", &meta(b"mdir", &boxed(b"ilst", &boxed(b"\xa9too", b"Lavf")))),
            boxed(b"udta", &[boxed(b"name", b"x"), boxed(b"cprt", b"y")].concat()),
            keys(&["com.android.version", "encoder"]),
        ] {
            assert_eq!(cleaned(&with(&user)), None, "{user:?}");
        }
        assert_eq!(cleaned(&[Film::default().file(), boxed(b"uuid", &[&XMP[..], b"<x/>"].concat())].concat()), None);
    }

    #[test]
    fn place_and_device_become_free_boxes_of_equal_size() {
        for (user, classes) in [
            (boxed(b"udta", &boxed(b"\xa9xyz", b"\0\x0c\0\0SECRET-PLACE")), vec![Class::Location]),
            (boxed(b"udta", &boxed(b"loci", b"SECRET-PLACE")), vec![Class::Location]),
            (
                boxed(b"udta", &[boxed(b"\xa9mak", b"SECRET-PLACE"), boxed(b"\xa9mod", b"SECRET-PLACE")].concat()),
                vec![Class::Device],
            ),
            (boxed(b"udta", &boxed(b"Xvnd", b"SECRET-PLACE")), vec![Class::Other]),
            (boxed(b"udta", b"\xff\xff\xff\xffloci"), vec![Class::Other]),
            (keys(&["com.apple.quicktime.location.ISO6709"]), vec![Class::Location]),
            (keys(&["com.apple.quicktime.make", "location-eng"]), vec![Class::Location, Class::Device]),
            (boxed(b"udta", &keys(&["com.apple.quicktime.detected.face"])), vec![Class::Person]),
            (boxed(b"udta", &keys(&["prompt"])), vec![Class::Text]),
            (
                boxed(b"udta", &meta(b"mdir", &boxed(b"ilst", &boxed(b"\xa9cmt", b"{\"prompt\": SECRET-PLACE")))),
                vec![Class::Text],
            ),
            (meta(b"nrtm", &boxed(b"xml ", b"SECRET-PLACE")), vec![Class::Other]),
            (boxed(b"uuid", &[7; 40]), vec![Class::Other]),
            (boxed(b"gps ", b"SECRET-PLACE"), vec![Class::Location]),
            (boxed(b"Xvnd", b"SECRET-PLACE"), vec![Class::Other]),
            (boxed(b"free", b"SECRET-PLACE"), vec![Class::Other]),
        ] {
            let file = with(&user);
            let (clean, removed) = cleaned(&file).expect("is private");
            assert_eq!(removed, classes, "{user:?}");
            assert_eq!(clean.len(), file.len());
            assert!(!clean.windows(12).any(|part| part == b"SECRET-PLACE"), "{user:?}");
            // The coded frames, and everything before the index.
            let index = file.windows(4).position(|part| part == b"moov").expect("is there");
            assert_eq!(clean[..index + 4], file[..index + 4]);
        }
    }

    #[test]
    fn authorship_stays() {
        let user =
            boxed(b"udta", &[boxed(b"cprt", b"MINE"), boxed(b"loci", b"HERE"), boxed(b"\xa9ART", b"MYSELF")].concat());
        let (clean, _) = cleaned(&with(&user)).expect("is private");
        let has = |text: &[u8]| clean.windows(text.len()).any(|part| part == text);
        assert!(has(b"MINE") && has(b"MYSELF") && !has(b"HERE"));
    }

    #[test]
    fn boxes_of_the_file_go_too() {
        let place = boxed(b"udta", &boxed(b"loci", b"HERE"));
        let trailer =
            [boxed(b"uuid", &[&XMP[..], b"PACKET"].concat()), boxed(b"uuid", &[&[9; 16][..], b"VENDOR"].concat())];
        let file = [with(&place), trailer.concat()].concat();
        let (clean, removed) = cleaned(&file).expect("is private");
        assert_eq!(removed, [Class::Location, Class::Other]);
        let has = |text: &[u8]| clean.windows(text.len()).any(|part| part == text);
        assert!(!has(b"PACKET") && !has(b"VENDOR"));
    }

    #[test]
    fn tracks_beside_the_film_go_with_their_samples() {
        let film = Film { beside: Some(*b"camm"), ..Film::default() };
        let (clean, removed) = cleaned(&film.file()).expect("is private");
        assert_eq!(removed, [Class::Other]);
        // The track has the samples of the pictures here, so these are zeros now.
        assert!(!clean.windows(20).any(|part| part == [1; 20]));
        assert!(film.file().windows(20).any(|part| part == [1; 20]));
        assert!(!clean.windows(4).any(|part| part == b"camm"));
        assert_eq!(cleaned(&Film { beside: Some(*b"sbtl"), ..Film::default() }.file()), None, "subtitles stay");
    }

    #[test]
    fn every_class_has_a_name() {
        let names: BTreeSet<&str> = Class::ALL.into_iter().map(Class::as_str).collect();
        assert_eq!(names.len(), Class::ALL.len());
    }
}
