//! GIF (GIF89a, sections 17 and 18): the logical screen follows the signature immediately.

use super::{Decoding, Header, HeaderError, Step, le16};
use crate::format::Format;
use crate::geometry::Size;
use crate::orientation::Orientation;

pub(super) struct Parser;

impl Parser {
    pub(super) fn step(&mut self, bytes: &[u8]) -> Result<Step, HeaderError> {
        const SIGNATURE_AND_SCREEN: usize = 13;
        if bytes.len() < SIGNATURE_AND_SCREEN {
            return Ok(Step::Need(SIGNATURE_AND_SCREEN));
        }
        let screen = Size::new(u32::from(le16(bytes, 6)), u32::from(le16(bytes, 8)));
        Header::new(Format::Gif, screen, Orientation::Normal, Decoding::usual(Format::Gif)).map(Step::Done)
    }
}
