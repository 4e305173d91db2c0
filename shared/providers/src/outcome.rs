//! What comes of asking a provider.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::fault::Fault;
use crate::order::Media;

/// Work that a provider accepted. Stored before its first poll; holds no secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The provider's id of it (`providerRunId`).
    pub id: String,
    /// Where its state is asked for.
    pub poll: Url,
    /// Where its result lies, when not in its state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Url>,
    /// Where it is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Url>,
}

/// A result.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// It came in the answer.
    Inline(Bytes),
    /// It is to be fetched, soon: providers delete results after minutes or hours.
    Remote(Url),
}

/// What came of a submit.
#[derive(Clone, Debug, PartialEq)]
pub enum Submission {
    /// It is done.
    Done(Output),
    /// It was accepted: store the run, then poll it.
    Accepted(Run),
    /// Nothing was begun. It may be submitted again when the fault is retryable.
    Refused(Fault),
    /// It may have been begun. It must not be submitted again, save to a provider that promises
    /// [`Idempotency::Rejected`](crate::Idempotency::Rejected).
    Unknown(Fault),
}

/// What came of a poll.
#[derive(Clone, Debug, PartialEq)]
pub enum Polled {
    /// Not finished; from 0 to 1, where the provider says.
    Running(Option<f64>),
    /// Finished.
    Done(Output),
    /// Finished without a result.
    Failed(Fault),
    /// Stopped.
    Canceled,
    /// Its state could not be learned; the run goes on. Poll again.
    Trouble(Fault),
}

/// What came of a cancel.
#[derive(Clone, Debug, PartialEq)]
pub enum Cancellation {
    /// The provider took it. What was done until then may be charged; a result may still come.
    Requested,
    /// There was nothing left to stop.
    TooLate,
    /// The protocol knows no cancel.
    Unsupported,
    /// It could not be asked for.
    Failed(Fault),
}

/// A fetched result, known by its first bytes to be what it should be; whether it decodes is not judged here.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    /// The file.
    pub bytes: Bytes,
    /// By its first bytes, whatever the provider called it.
    pub media_type: &'static str,
}

/// The most bytes that [`recognize`] looks at.
pub(crate) const TELLING: usize = 12;

/// Recognizes by its first bytes what a result should be: PNG, JPEG, WebP or GIF; MP4 or WebM.
pub(crate) fn recognize(media: Media, first: &[u8]) -> Option<&'static str> {
    Some(match (media, first) {
        (Media::Picture, [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..]) => "image/png",
        (Media::Picture, [0xff, 0xd8, 0xff, ..]) => "image/jpeg",
        (Media::Picture, [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..]) => "image/webp",
        (Media::Picture, [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..]) => "image/gif",
        (Media::Video, [_, _, _, _, b'f', b't', b'y', b'p', ..]) => "video/mp4",
        (Media::Video, [0x1a, 0x45, 0xdf, 0xa3, ..]) => "video/webm",
        _ => return None,
    })
}
