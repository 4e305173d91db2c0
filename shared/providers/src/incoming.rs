//! A result on its way: the provider's answer or file, piece by piece.
//!
//! **Guarantee.** What is read is at most as large as a result may be, begins as what was ordered begins, and is whole when it
//! ends: a body that breaks off is a fault. **Reason.** A video has hundreds of megabytes, and dozens may come at once: who can
//! keep them little by little need not hold them.

use bytes::{Bytes, BytesMut};

use crate::fault::{Class, Fault};
use crate::order::Media;
use crate::outcome::{Artifact, TELLING, recognize};
use crate::provider::lost;

/// A result whose first bytes are here.
#[derive(Debug)]
pub struct Incoming {
    media_type: &'static str,
    first: Option<Bytes>,
    body: Option<egress::Body>,
    /// Bytes that may still come.
    room: u64,
}

impl Incoming {
    /// A result that came in an answer.
    pub(crate) fn of(media: Media, bytes: Bytes) -> Result<Self, Fault> {
        Self { media_type: "", first: None, body: None, room: bytes_max(media) }.begun(media, bytes)
    }

    /// A result that is being downloaded.
    pub(crate) async fn from(media: Media, body: egress::Body) -> Result<Self, Fault> {
        let mut incoming = Self { media_type: "", first: None, body: Some(body), room: bytes_max(media) };
        let mut first = BytesMut::new();
        while first.len() < TELLING
            && let Some(piece) = incoming.receive().await?
        {
            first.extend_from_slice(&piece);
        }
        incoming.begun(media, first.freeze())
    }

    fn begun(mut self, media: Media, first: Bytes) -> Result<Self, Fault> {
        let wrong = || Fault::new(Class::Unavailable, "its result is not what was ordered");
        self.media_type = recognize(media, &first).ok_or_else(wrong)?;
        self.room = self.room.checked_sub(first.len() as u64).ok_or_else(too_large)?;
        self.first = Some(first);
        Ok(self)
    }

    /// By its first bytes, whatever the provider called it.
    pub fn media_type(&self) -> &'static str {
        self.media_type
    }

    /// What came next; nothing at the end.
    ///
    /// # Errors
    ///
    /// A retryable fault when it does not arrive whole, or is too large.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let Some(piece) = self.receive().await? else { return Ok(None) };
        self.room = self.room.checked_sub(piece.len() as u64).ok_or_else(too_large)?;
        Ok(Some(piece))
    }

    /// All of it.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    pub async fn whole(mut self) -> Result<Artifact, Fault> {
        let media_type = self.media_type;
        let first = self.first.take().unwrap_or_default();
        // What came in an answer is not copied.
        let Some(second) = self.next().await? else { return Ok(Artifact { bytes: first, media_type }) };
        let mut bytes = BytesMut::from(&first[..]);
        bytes.extend_from_slice(&second);
        while let Some(piece) = self.next().await? {
            bytes.extend_from_slice(&piece);
        }
        Ok(Artifact { bytes: bytes.freeze(), media_type })
    }

    async fn receive(&mut self) -> Result<Option<Bytes>, Fault> {
        match &mut self.body {
            // Whether the work was accepted is no question any more.
            Some(body) => body.chunk().await.map_err(|error| Fault { maybe_accepted: false, ..lost(&error) }),
            None => Ok(None),
        }
    }
}

/// The most bytes of a result. A picture could also have been uploaded (decisions 1.5) and is held whole; a video is not, and this is
/// more than a minute of one at the best rates of today.
pub(crate) fn bytes_max(media: Media) -> u64 {
    match media {
        Media::Picture => domain::limits::UPLOAD_MAX,
        Media::Video => 512 * 1024 * 1024,
    }
}

fn too_large() -> Fault {
    Fault::new(Class::Unavailable, "its result is too large")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_picture_may_be_as_large_as_an_upload_and_no_larger() {
        let picture = |bytes: u64| {
            let mut file = vec![0; usize::try_from(bytes).expect("fits")];
            file[..8].copy_from_slice(b"\x89PNG\r\n\x1a\n");
            Incoming::of(Media::Picture, file.into())
        };
        let largest = picture(domain::limits::UPLOAD_MAX).expect("is taken").whole().await.expect("is whole");
        assert_eq!((largest.bytes.len() as u64, largest.media_type), (domain::limits::UPLOAD_MAX, "image/png"));
        assert!(picture(domain::limits::UPLOAD_MAX + 1).is_err());
    }

    #[test]
    fn what_begins_otherwise_is_not_what_was_ordered() {
        for bytes in [&b"<!doctype html>"[..], b"", b"\x89PN"] {
            assert!(Incoming::of(Media::Picture, Bytes::from_static(bytes)).is_err());
        }
    }
}
