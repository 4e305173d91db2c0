//! Outcomes of calls to a provider.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::call_error::CallError;
use crate::encode::{decode, is_data_url};
use crate::order::Media;

/// Work that a provider accepted. Stored before its first poll; contains no secret.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The provider's id (`providerRunId`).
    pub id: String,
    /// The URL to poll its state.
    pub poll: Url,
    /// The URL of its result, if the state does not contain it.
    pub result: Option<Url>,
    /// The URL to cancel it.
    pub cancel: Option<Url>,
}

/// A result as the provider reports it.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The answer contained it.
    Inline(Bytes),
    /// It must be fetched soon: providers delete results after minutes or hours.
    Remote(Url),
}

impl Output {
    /// The result at a URL that the provider reports. A `data:` URL contains it; `None` if it contains nothing.
    pub(crate) fn at(url: Url) -> Option<Self> {
        match is_data_url(url.as_str()) {
            true => decode(url.as_str()).map(Output::Inline),
            false => Some(Output::Remote(url)),
        }
    }
}

/// The outcome of a submit.
#[derive(Clone, Debug, PartialEq)]
pub enum Submission {
    /// The work is done.
    Done(Output),
    /// The work is done. Store the run before the result is fetched: polling it returns the result again.
    Finished(Run, Output),
    /// The work was accepted. Store the run, then poll it.
    Accepted(Run),
    /// No work was started. It may be submitted again if the error is retryable.
    Refused(CallError),
    /// Work may have been started. It must not be submitted again, except to a provider that promises
    /// [`Idempotency::Rejected`](crate::Idempotency::Rejected).
    Unknown(CallError),
}

/// The outcome of a poll.
#[derive(Clone, Debug, PartialEq)]
pub enum Polled {
    /// The run is not finished. Contains the progress from 0 to 1 if the provider reports it.
    Running(Option<f64>),
    /// The run finished with a result.
    Done(Output),
    /// The run finished without a result.
    Failed(CallError),
    /// The run was canceled.
    Canceled,
    /// The state could not be determined and the run continues. Poll again.
    Unavailable(CallError),
}

/// The outcome of a cancellation.
#[derive(Clone, Debug, PartialEq)]
pub enum Cancellation {
    /// The provider accepted it. Work done until then may be charged, and a result may still
    /// arrive.
    Requested,
    /// The run had already finished.
    TooLate,
    /// The protocol does not support cancellation.
    Unsupported,
    /// The cancellation could not be sent.
    Failed(CallError),
}

/// A fetched result. Its first bytes match the ordered media type; it is not decoded here.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    /// The content of the file.
    pub bytes: Bytes,
    /// The media type according to the first bytes, whatever the provider declares.
    pub media_type: &'static str,
}

/// The maximum number of bytes that [`recognize`] reads.
pub(crate) const TELLING: usize = 12;

/// Detects the media type of a result by its first bytes: PNG, JPEG, WebP or GIF; MP4 or WebM.
pub(crate) fn recognize(media: Media, first: &[u8]) -> Option<&'static str> {
    Some(match (media, first) {
        (Media::Image, [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..]) => "image/png",
        (Media::Image, [0xff, 0xd8, 0xff, ..]) => "image/jpeg",
        (Media::Image, [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..]) => "image/webp",
        (Media::Image, [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..]) => "image/gif",
        (Media::Video, [_, _, _, _, b'f', b't', b'y', b'p', ..]) => "video/mp4",
        (Media::Video, [0x1a, 0x45, 0xdf, 0xa3, ..]) => "video/webm",
        _ => return None,
    })
}
