//! Boxes (14496-12, 4.2), and the numbers in them.

use crate::{Error, Name};

/// The beginning of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub name: Name,
    /// Bytes before the content.
    pub length: u64,
    /// Bytes of the whole box; `None` if it extends to the end of what contains it.
    pub size: Option<u64>,
}

impl Head {
    /// The longest head.
    pub const LENGTH_MAX: u64 = 16;

    /// Reads a head from the first bytes of a box. `None` if there are too few of them.
    pub fn read(bytes: &[u8]) -> Result<Option<Self>, Error> {
        let Some((short, rest)) = bytes.split_first_chunk::<8>() else { return Ok(None) };
        let [a, b, c, d, name @ ..] = *short;
        let head = match u32::from_be_bytes([a, b, c, d]) {
            0 => Self { name, length: 8, size: None },
            1 => {
                let Some(size) = rest.first_chunk() else { return Ok(None) };
                Self { name, length: 16, size: Some(u64::from_be_bytes(*size)) }
            }
            size => Self { name, length: 8, size: Some(size.into()) },
        };
        if head.size.is_some_and(|size| size < head.length) {
            return Err(Error::Damaged(name));
        }
        Ok(Some(head))
    }
}

/// A box in another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child<'a> {
    pub name: Name,
    /// Position of the box in its parent's content.
    pub at: usize,
    /// Bytes of the whole box.
    pub size: usize,
    pub content: &'a [u8],
}

/// The boxes in the content of the box `parent`. A rest that is too short for a box is not one: QuickTime ends `udta` with a zero.
pub(crate) fn children(parent: Name, content: &[u8]) -> impl Iterator<Item = Result<Child<'_>, Error>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = content.get(at..)?;
        if rest.len() < 8 {
            return None;
        }
        let child = child(parent, at, rest);
        // After an error there is nothing more.
        at = child.as_ref().map_or(usize::MAX, |child| at + child.size);
        Some(child)
    })
}

fn child(parent: Name, at: usize, rest: &[u8]) -> Result<Child<'_>, Error> {
    let head = Head::read(rest)?.ok_or(Error::Damaged(parent))?;
    let size = match head.size {
        None => rest.len(),
        Some(size) => usize::try_from(size).map_err(|_| Error::Damaged(head.name))?,
    };
    // The head is at most as long as the box.
    let content = rest.get(head.length as usize..size).ok_or(Error::Damaged(head.name))?;
    Ok(Child { name: head.name, at, size, content })
}

/// The first box with this name.
pub(crate) fn find<'a>(parent: Name, content: &'a [u8], name: &Name) -> Result<Option<&'a [u8]>, Error> {
    for child in children(parent, content) {
        let child = child?;
        if child.name == *name {
            return Ok(Some(child.content));
        }
    }
    Ok(None)
}

/// Like [`find`], for a box that must be there.
pub(crate) fn need<'a>(parent: Name, content: &'a [u8], name: &Name) -> Result<&'a [u8], Error> {
    find(parent, content, name)?.ok_or(Error::Damaged(parent))
}

/// Reads the content of the box `name` from the beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    pub name: Name,
    pub rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn new(name: Name, rest: &'a [u8]) -> Self {
        Self { name, rest }
    }

    /// Reads version and flags of a full box (4.2.2) and returns the version.
    pub fn full(name: Name, rest: &'a [u8]) -> Result<(u8, Self), Error> {
        let mut cursor = Self::new(name, rest);
        let [version, ..] = cursor.array::<4>()?;
        Ok((version, cursor))
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(Error::Damaged(self.name))?;
        self.rest = rest;
        Ok(*array)
    }

    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Error::Damaged(self.name))?;
        self.rest = rest;
        Ok(taken)
    }

    pub fn u8(&mut self) -> Result<u8, Error> {
        self.array().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_be_bytes)
    }

    /// A number that has 64 bits in version 1 of its box, and 32 before.
    pub fn wide(&mut self, version: u8) -> Result<u64, Error> {
        if version == 1 { self.u64() } else { self.u32().map(u64::from) }
    }

    /// The entries of a table of `count` entries with `N` bytes each, which must be there completely.
    pub fn table<const N: usize>(&mut self, count: u32) -> Result<&'a [[u8; N]], Error> {
        let length = (count as usize).checked_mul(N).ok_or(Error::Damaged(self.name))?;
        Ok(self.take(length)?.as_chunks().0)
    }
}
