//! Finds the index of a file.

use std::ops::Range;

use crate::boxes::Head;
use crate::{Error, INDEX_MAX, Name};

const MOOV: Name = *b"moov";

/// A box of the file itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its name.
    pub name: Name,
    /// The extended type of a `uuid` box.
    pub id: Option<[u8; 16]>,
    /// Its position in the file.
    pub at: u64,
    /// The bytes of its content in the file. The end of the last one is `u64::MAX` if it has no size of its own.
    pub content: Range<u64>,
}

/// Walks over the boxes of a file and keeps the file type and the index.
///
/// For a stream, call [`stream`](Self::stream) with every byte. For a stored file, read the range that is [wanted](Self::wants) and
/// [push](Self::push) it, until nothing is wanted.
#[derive(Debug, Default)]
pub struct Scanner {
    /// Position of the next byte that is needed.
    at: u64,
    state: State,
    /// The bytes that are kept of the current head or content.
    kept: Vec<u8>,
    brand: Option<Name>,
    brands: Vec<Name>,
    index: Option<Vec<u8>>,
    /// What a second index or the first wrong box is.
    error: Option<Error>,
    /// Position of the content of the index.
    index_at: u64,
    noted: Vec<Piece>,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    /// Before a box.
    #[default]
    Head,
    /// In a content that is kept.
    Content { name: Name, length: u64 },
    /// In the last box, which has no size of its own.
    Rest,
}

/// The largest file type box that is kept: some hundred brands.
const TYPE_MAX: u64 = 4096;

/// The largest number of boxes that are noted.
const NOTED_MAX: usize = 1024;

impl Scanner {
    /// A scanner at the beginning of a file.
    pub fn new() -> Self {
        Self::default()
    }

    /// The range of the file that is needed next. `None` after an error or in a last box without a size. A file that ends at or before its
    /// start has been read completely.
    pub fn wants(&self) -> Option<Range<u64>> {
        let length = match self.state {
            _ if self.error.is_some() => return None,
            State::Rest => return None,
            State::Head => self.head_length(),
            State::Content { length, .. } => length,
        };
        let kept = self.kept.len() as u64;
        let from = self.at.checked_add(kept)?;
        Some(from..self.at.checked_add(length)?)
    }

    /// The length of a head, as far as its first half says it, with the extended type of a `uuid` box.
    fn head_length(&self) -> u64 {
        let Some(first) = self.kept.first_chunk::<8>() else { return 8 };
        let own = if first[..4] == [0, 0, 0, 1] { Head::LENGTH_MAX } else { 8 };
        own + if first[4..] == *b"uuid" { 16 } else { 0 }
    }

    /// Returns `true` when the index was read. What follows matters only to find damage and [noted](Self::noted) boxes.
    pub fn has_index(&self) -> bool {
        self.index.is_some()
    }

    /// Reads bytes of a file that arrive in order, where `from` is the position of the first. Those that are not wanted are skipped.
    ///
    /// # Errors
    ///
    /// Any but [`Error::CutOff`]. The same error is returned from then on.
    pub fn stream(&mut self, from: u64, mut bytes: &[u8]) -> Result<(), Error> {
        let mut position = from;
        while let Some(wanted) = self.wants() {
            let Ok(skip) = usize::try_from(wanted.start.saturating_sub(position)) else { break };
            let Some(rest) = bytes.get(skip..).filter(|rest| !rest.is_empty()) else { break };
            let taken = rest.len().min(usize::try_from(wanted.end - wanted.start).unwrap_or(usize::MAX));
            self.push(&rest[..taken])?;
            (position, bytes) = (wanted.start + taken as u64, &rest[taken..]);
        }
        self.error.map_or(Ok(()), Err)
    }

    /// Reads bytes from the start of the range that is [wanted](Self::wants), at most to its end.
    ///
    /// # Errors
    ///
    /// As [`stream`](Self::stream).
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.kept.extend_from_slice(bytes);
        let read = match self.state {
            State::Head => self.head(),
            State::Content { name, length } if self.kept.len() as u64 >= length => {
                self.content(name);
                Ok(())
            }
            State::Content { .. } | State::Rest => Ok(()),
        };
        if let Err(error) = read {
            self.error = Some(error);
        }
        read
    }

    fn head(&mut self) -> Result<(), Error> {
        let head = Head::read(&self.kept);
        let is_first = self.brand.is_none();
        if is_first && self.kept.len() >= 8 && self.kept[4..8] != *b"ftyp" {
            return Err(Error::NotIsoMedia);
        }
        let Some(head) = head? else { return Ok(()) };
        if (self.kept.len() as u64) < self.head_length() {
            return Ok(());
        }
        let id = self.kept[head.length as usize..].first_chunk().copied();
        if head.name == *b"uuid" && head.size.is_some_and(|size| size < head.length + 16) {
            return Err(Error::Damaged(head.name));
        }
        let start = self.at.checked_add(head.length).ok_or(Error::Damaged(head.name))?;
        let end = match head.size {
            Some(size) => self.at.checked_add(size).ok_or(Error::Damaged(head.name))?,
            // Any other box could not be told from a file that is cut off.
            None if head.name != *b"mdat" => return Err(Error::Damaged(head.name)),
            None => u64::MAX,
        };
        let length = end - start;
        match &head.name {
            b"ftyp" if !is_first || length > TYPE_MAX => return Err(Error::Damaged(head.name)),
            b"moov" if self.index.is_some() => return Err(Error::NoIndex),
            b"moov" if length > INDEX_MAX => return Err(Error::IndexTooLarge),
            _ => {}
        }
        self.kept.clear();
        if matches!(&head.name, b"ftyp" | b"moov") {
            (self.at, self.state) = (start, State::Content { name: head.name, length });
            if length == 0 {
                self.content(head.name);
            }
            return Ok(());
        }
        if !matches!(&head.name, b"mdat" | b"free" | b"skip" | b"wide") {
            if self.noted.len() == NOTED_MAX {
                return Err(Error::Damaged(head.name));
            }
            self.noted.push(Piece { name: head.name, id, at: self.at, content: start..end });
        }
        self.at = end;
        if head.size.is_none() {
            self.state = State::Rest;
        }
        Ok(())
    }

    /// Takes the whole content of a box that is kept.
    fn content(&mut self, name: Name) {
        let content = std::mem::take(&mut self.kept);
        self.state = State::Head;
        if name == MOOV {
            self.index_at = self.at;
            self.at += content.len() as u64;
            self.index = Some(content);
            return;
        }
        self.at += content.len() as u64;
        let mut names = content.as_chunks::<4>().0.iter().copied();
        self.brand = Some(names.next().unwrap_or_default());
        // The minor version.
        names.next();
        self.brands = names.collect();
    }

    /// The major brand and the compatible ones, once they were read.
    pub fn brands(&self) -> Option<(Name, &[Name])> {
        self.brand.map(|brand| (brand, &*self.brands))
    }

    /// The boxes of the file but `ftyp`, `moov`, `mdat` and free space.
    pub fn noted(&self) -> &[Piece] {
        &self.noted
    }

    /// Returns `true` if the last box has no size of its own, so that nothing can be added after it.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Rest)
    }

    /// The position of the content of the index in the file.
    pub fn index_at(&self) -> u64 {
        self.index_at
    }

    /// The content of the index, from a file of `size` bytes that was read to its end, or until there was an index.
    ///
    /// # Errors
    ///
    /// Any [`Error`] but [`Error::TooManySamples`].
    pub fn finish(&mut self, size: u64) -> Result<Vec<u8>, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.brand.is_none() {
            return Err(if size < 8 { Error::NotIsoMedia } else { Error::CutOff });
        }
        let is_whole = match self.state {
            // The rest was not read when there are some bytes of a head and more in the file.
            State::Head => self.at <= size && (self.kept.is_empty() || self.at + (self.kept.len() as u64) < size),
            State::Content { .. } => false,
            State::Rest => true,
        };
        if !is_whole {
            return Err(Error::CutOff);
        }
        self.index.take().ok_or(Error::NoIndex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{boxed, film};

    /// Reads a file as a stream in pieces of this length.
    fn streamed(file: &[u8], piece: usize) -> Result<Vec<u8>, Error> {
        let mut scanner = Scanner::new();
        for (number, bytes) in file.chunks(piece).enumerate() {
            scanner.stream((number * piece) as u64, bytes)?;
        }
        scanner.finish(file.len() as u64)
    }

    /// Reads a file by ranges, at most `piece` bytes of each.
    fn ranged(file: &[u8], piece: usize) -> Result<Vec<u8>, Error> {
        let (mut scanner, mut read) = (Scanner::new(), 0);
        while let Some(wanted) = scanner.wants().filter(|wanted| wanted.start < file.len() as u64) {
            let start = wanted.start as usize;
            let end = (wanted.end.min(file.len() as u64) as usize).min(start + piece);
            read += end - start;
            assert!(read <= file.len(), "nothing is read twice");
            scanner.push(&file[start..end])?;
        }
        scanner.finish(file.len() as u64)
    }

    fn both(file: &[u8]) -> Result<Vec<u8>, Error> {
        let read = streamed(file, usize::MAX >> 1);
        for piece in [1, 7, 4096] {
            assert_eq!(streamed(file, piece), read, "in pieces of {piece}");
            assert_eq!(ranged(file, piece), read, "ranges of {piece}");
        }
        read
    }

    /// The length of the box `moov` at the end of a film.
    fn index_length(film: &[u8]) -> usize {
        let mut scanner = Scanner::new();
        scanner.stream(0, film).expect("is a film");
        film.len() - scanner.index_at() as usize + 8
    }

    /// The length of the file type of a film.
    fn kind_length(film: &[u8]) -> usize {
        film.windows(4).position(|four| four == b"mdat").expect("is there") - 4
    }

    fn kind() -> Vec<u8> {
        boxed(b"ftyp", b"isom\0\0\x02\0isommp42")
    }

    #[test]
    fn the_index_is_found_at_the_beginning_and_at_the_end() {
        let (index, data) = (boxed(b"moov", b"index"), boxed(b"mdat", &[7; 300]));
        for parts in [[&index, &data], [&data, &index]] {
            assert_eq!(both(&[&kind()[..], parts[0], parts[1]].concat()).as_deref(), Ok(&b"index"[..]));
        }
        let endless = [&0_u32.to_be_bytes()[..], b"mdat", &[7; 300]].concat();
        assert_eq!(both(&[&kind()[..], &index, &endless].concat()).as_deref(), Ok(&b"index"[..]));
        let wide = [&1_u32.to_be_bytes()[..], b"mdat", &316_u64.to_be_bytes(), &[7; 300]].concat();
        assert_eq!(both(&[&kind()[..], &wide, &index].concat()).as_deref(), Ok(&b"index"[..]));
        assert!(both(&film()).is_ok());
    }

    #[test]
    fn brands_and_other_boxes_are_noted() {
        let file = [kind(), boxed(b"free", b"xx"), boxed(b"uuid", &[1; 20]), boxed(b"moov", b"")].concat();
        let mut scanner = Scanner::new();
        scanner.stream(0, &file).expect("is a film");
        assert_eq!(scanner.brands(), Some((*b"isom", &[*b"isom", *b"mp42"][..])));
        assert_eq!(scanner.noted(), [Piece { name: *b"uuid", id: Some([1; 16]), at: 34, content: 42..62 }]);
        assert_eq!(scanner.index_at(), 70);
        assert_eq!(file[scanner.noted()[0].content.start as usize], 1);
    }

    #[test]
    fn an_index_has_at_most_eight_mebibytes() {
        for (size, fits) in [(INDEX_MAX - 1, true), (INDEX_MAX, true), (INDEX_MAX + 1, false)] {
            let file = [kind(), boxed(b"moov", &vec![0; size as usize])].concat();
            let read = streamed(&file, 1 << 16);
            assert_eq!(read.map(|index| index.len() as u64), if fits { Ok(size) } else { Err(Error::IndexTooLarge) });
        }
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        let with = |parts: &[&[u8]]| both(&[&kind()[..], &parts.concat(), &boxed(b"moov", b"")].concat());
        // Smaller than its own head, in both forms.
        for size in 2_u32..8 {
            assert_eq!(with(&[&size.to_be_bytes(), b"uuid"]), Err(Error::Damaged(*b"uuid")), "{size}");
        }
        for size in [0_u64, 1, 15] {
            let wide = [&1_u32.to_be_bytes()[..], b"mdat", &size.to_be_bytes()].concat();
            assert_eq!(with(&[&wide]), Err(Error::Damaged(*b"mdat")), "{size}");
        }
        // Beyond the end of the file, and of all numbers.
        for size in [1_u64 << 40, u64::MAX - 30, u64::MAX] {
            let wide = [&1_u32.to_be_bytes()[..], b"mdat", &size.to_be_bytes()].concat();
            assert!(matches!(with(&[&wide]), Err(Error::CutOff | Error::Damaged(_))), "{size}");
        }
        // An index without a size could not be told from one that is cut off.
        let endless = [&kind()[..], &[0; 4], b"moov", b"index"].concat();
        assert_eq!(both(&endless), Err(Error::Damaged(*b"moov")));
    }

    #[test]
    fn files_without_a_single_index_are_refused() {
        let index = boxed(b"moov", b"");
        assert_eq!(both(&[kind(), boxed(b"mdat", b"x")].concat()), Err(Error::NoIndex));
        assert_eq!(both(&[&kind()[..], &index, &index].concat()), Err(Error::NoIndex));
        assert_eq!(both(&[&kind()[..], &kind(), &index].concat()), Err(Error::Damaged(*b"ftyp")));
        for other in [&b""[..], b"short", &index, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"] {
            assert_eq!(both(other), Err(Error::NotIsoMedia), "{other:?}");
        }
    }

    #[test]
    fn a_file_that_ends_within_a_box_is_cut_off() {
        let whole = film();
        for length in 0..whole.len() {
            let expected = if length < 8 { Error::NotIsoMedia } else { Error::CutOff };
            // Between two boxes, it looks complete.
            let boundary = [kind_length(&whole), whole.len() - index_length(&whole)].contains(&length);
            assert_eq!(both(&whole[..length]), Err(if boundary { Error::NoIndex } else { expected }), "{length}");
        }
    }

    #[test]
    fn more_boxes_than_any_film_has_are_refused() {
        for (count, fits) in [(NOTED_MAX - 1, true), (NOTED_MAX, true), (NOTED_MAX + 1, false)] {
            let file = [kind(), boxed(b"moof", b"").repeat(count), boxed(b"moov", b"")].concat();
            assert_eq!(streamed(&file, 4096).is_ok(), fits, "{count}");
        }
    }
}
