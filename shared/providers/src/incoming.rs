//! A result that is being received in chunks: the provider's answer or a file.
//!
//! **Guarantee.** The number of bytes read is at most the maximum size of a result. The result
//! begins like the ordered media type, and it is complete at the end: a body that breaks off is a
//! error.
//!
//! **Reason.** A video can have hundreds of megabytes, and dozens can arrive at once. A caller that
//! stores chunks does not need to hold whole results in memory.

use bytes::{Bytes, BytesMut};

use crate::call_error::lost;
use crate::call_error::{CallError, Class};
use crate::order::Media;
use crate::outcome::{Artifact, TELLING, recognize};

/// A result whose first bytes have arrived.
#[derive(Debug)]
pub struct Incoming {
    media_type: &'static str,
    first: Option<Bytes>,
    body: Option<egress::Body>,
    /// The number of bytes that may still arrive.
    room: u64,
}

impl Incoming {
    /// A result that is contained in an answer.
    pub(crate) fn new(media: Media, bytes: Bytes) -> Result<Self, CallError> {
        Self { media_type: "", first: None, body: None, room: bytes_max(media) }.begun(media, bytes)
    }

    /// A result that is being downloaded.
    pub(crate) async fn from(media: Media, body: egress::Body) -> Result<Self, CallError> {
        let mut incoming = Self { media_type: "", first: None, body: Some(body), room: bytes_max(media) };
        let mut first = BytesMut::new();
        while first.len() < TELLING
            && let Some(piece) = incoming.receive().await?
        {
            first.extend_from_slice(&piece);
        }
        incoming.begun(media, first.freeze())
    }

    fn begun(mut self, media: Media, first: Bytes) -> Result<Self, CallError> {
        let wrong = || CallError::new(Class::Unavailable, "its result is not what was ordered");
        self.media_type = recognize(media, &first).ok_or_else(wrong)?;
        self.room = self.room.checked_sub(first.len() as u64).ok_or_else(too_large)?;
        self.first = Some(first);
        Ok(self)
    }

    /// The media type according to the first bytes, whatever the provider declares.
    pub fn media_type(&self) -> &'static str {
        self.media_type
    }

    /// The next chunk; `None` at the end.
    ///
    /// # Errors
    ///
    /// A retryable error if the result is incomplete or too large.
    pub async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let Some(piece) = self.receive().await? else { return Ok(None) };
        self.room = self.room.checked_sub(piece.len() as u64).ok_or_else(too_large)?;
        Ok(Some(piece))
    }

    /// Reads all bytes.
    ///
    /// # Errors
    ///
    /// Those of [`next`](Self::next).
    pub async fn whole(mut self) -> Result<Artifact, CallError> {
        let media_type = self.media_type;
        let first = self.first.take().unwrap_or_default();
        // The content of an answer is one chunk and is not copied.
        let Some(second) = self.next().await? else { return Ok(Artifact { bytes: first, media_type }) };
        let mut bytes = BytesMut::from(&first[..]);
        bytes.extend_from_slice(&second);
        while let Some(piece) = self.next().await? {
            bytes.extend_from_slice(&piece);
        }
        Ok(Artifact { bytes: bytes.freeze(), media_type })
    }

    async fn receive(&mut self) -> Result<Option<Bytes>, CallError> {
        match &mut self.body {
            // The work was accepted. Only the download failed.
            Some(body) => body.chunk().await.map_err(|error| CallError { maybe_accepted: false, ..lost(&error) }),
            None => Ok(None),
        }
    }
}

/// The maximum size of a result in bytes. The limit of an image is that of an upload, because it
/// is held in memory as a whole. That of a video is more than a minute at the highest bit rates in
/// use.
pub(crate) fn bytes_max(media: Media) -> u64 {
    match media {
        Media::Image => domain::limits::UPLOAD_MAX,
        Media::Video => 512 * 1024 * 1024,
    }
}

fn too_large() -> CallError {
    CallError::new(Class::Unavailable, "its result is too large")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_image_may_be_as_large_as_an_upload_and_no_larger() {
        let image = |bytes: u64| {
            let mut file = vec![0; usize::try_from(bytes).expect("fits")];
            file[..8].copy_from_slice(b"\x89PNG\r\n\x1a\n");
            Incoming::new(Media::Image, file.into())
        };
        let largest = image(domain::limits::UPLOAD_MAX).expect("is taken").whole().await.expect("is whole");
        assert_eq!((largest.bytes.len() as u64, largest.media_type), (domain::limits::UPLOAD_MAX, "image/png"));
        assert!(image(domain::limits::UPLOAD_MAX + 1).is_err());
    }

    #[test]
    fn what_begins_otherwise_is_not_what_was_ordered() {
        for bytes in [&b"<!doctype html>"[..], b"", b"\x89PN"] {
            assert!(Incoming::new(Media::Image, Bytes::from_static(bytes)).is_err());
        }
    }
}
