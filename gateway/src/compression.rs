//! Compression of answers (docs/reference/conventions.md#compression).
//!
//! **Guarantee.** The longer an answer is, the less a byte of it costs: above 256 KiB never Brotli, above 1 MiB the fastest levels.
//! A cached canvas document is compressed once for each coding, however many read it, and so is what anybody may read without a
//! credential ([`Unchanging`]).
//!
//! **Mechanism.** An answer of at most [`STREAMED_MAX`] is compressed while it is sent, by the layer of tower-http. A longer one is
//! complete in memory and is compressed before it is sent; above 1 MiB within the share of large work, by processor time of its
//! account. One that cannot be compressed in time, or for which there is no memory, is sent as it is. Forms that are made once are in
//! the cache of documents.

use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream;
use http::header::{ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, VARY};
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use http_body_util::BodyExt;
use service::shares::Key;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};
use zstd::stream::write::Encoder as ZstdEncoder;

use crate::admission::{self, account_key};
use crate::documents::GraphPermit;
use crate::extract::accept::thousandths;
use crate::problem::Problem;
use crate::rates::Charges;
use crate::reply::{self, HeldBytes};
use crate::state::App;

/// Longest answer that is not compressed, in bytes.
const PLAIN_MAX: u64 = 1024;
/// Longest answer that is compressed while it is sent, and so by Brotli, in bytes.
const STREAMED_MAX: u64 = 256 * 1024;
/// Bytes above which compression is large work, at the fastest levels.
const LARGE_BYTES: usize = 1024 * 1024;

/// A content coding of long answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Coding {
    Gzip,
    Zstd,
}

impl Coding {
    /// The coding that a client prefers for a long answer; of equal quality zstd. `None`: no coding.
    pub fn preferred(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        let accepted: Vec<(&str, u16)> = values.flat_map(|value| value.split(',')).filter_map(weighted).collect();
        let named = |is_name: &dyn Fn(&str) -> bool| {
            accepted.iter().filter(|(name, _)| is_name(name)).map(|(_, quality)| *quality).max()
        };
        let others = named(&|name| name == "*");
        let quality = |coding: Self| named(&|name| coding.is_named(name)).or(others).unwrap_or_default();
        let best = [Self::Gzip, Self::Zstd].into_iter().max_by_key(|coding| (quality(*coding), *coding))?;
        let plain = named(&|name| name.eq_ignore_ascii_case("identity")).or(others).unwrap_or_default();
        (quality(best) > 0 && quality(best) >= plain).then_some(best)
    }

    fn is_named(self, name: &str) -> bool {
        match self {
            Self::Gzip => ["gzip", "x-gzip"].iter().any(|known| name.eq_ignore_ascii_case(known)),
            Self::Zstd => name.eq_ignore_ascii_case("zstd"),
        }
    }

    /// The value of `Content-Encoding`.
    pub fn value(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }

    /// The level for a text of this length.
    fn level(self, length: usize) -> u8 {
        match self {
            _ if length > LARGE_BYTES => 1,
            Self::Gzip if length as u64 > STREAMED_MAX => 4,
            Self::Gzip => 6,
            Self::Zstd => 3,
        }
    }

    /// The compressed form of a text in pieces.
    fn compress(self, pieces: &[Bytes], length: usize) -> std::io::Result<Vec<u8>> {
        let level = self.level(length);
        match self {
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level.into()));
                pieces.iter().try_for_each(|piece| encoder.write_all(piece))?;
                encoder.finish()
            }
            Self::Zstd => {
                let mut encoder = ZstdEncoder::new(Vec::new(), level.into())?;
                encoder.set_pledged_src_size(Some(length as u64))?;
                pieces.iter().try_for_each(|piece| encoder.write_all(piece))?;
                encoder.finish()
            }
        }
    }
}

/// An element of `Accept-Encoding`: a name and its quality in thousandths.
fn weighted(element: &str) -> Option<(&str, u16)> {
    let (name, weight) = element.split_once(';').map_or((element, None), |(name, weight)| (name, Some(weight)));
    let quality = match weight {
        None => 1000,
        Some(weight) => {
            let (name, value) = weight.trim().split_once('=')?;
            thousandths(value).filter(|_| name.eq_ignore_ascii_case("q"))?
        }
    };
    Some((name.trim(), quality))
}

/// In the extensions of an answer that needs no credential and stays the same as long as the process lives: a name that no other content
/// has. Its forms are made once, because nothing limits how often a stranger asks for it.
#[derive(Clone)]
pub struct Unchanging(Arc<str>);

impl Unchanging {
    /// Content of this name.
    pub fn named(name: &str) -> Extension<Self> {
        Extension(Self(name.into()))
    }
}

/// In the place of the key of a canvas, which is positive, among the names of cached forms.
const NO_CANVAS: i64 = 0;

/// The answers that the layer of tower-http compresses.
#[derive(Clone)]
pub struct Streamed;

impl Predicate for Streamed {
    fn should_compress<B: http_body::Body>(&self, response: &http::Response<B>) -> bool {
        response.extensions().get::<Unchanging>().is_none()
            && length(response).is_none_or(|length| length <= STREAMED_MAX)
            && SizeAbove::new(PLAIN_MAX + 1).should_compress(response)
            && is_text(response)
    }
}

/// Returns `true` for media types that compression makes smaller. An SVG render is an image as well.
fn is_text<B: http_body::Body>(response: &http::Response<B>) -> bool {
    let texts = NotForContentType::new("image/")
        .and(NotForContentType::new("video/"))
        .and(NotForContentType::new("text/event-stream"));
    texts.should_compress(response)
}

/// The length of an answer, if it is known.
fn length<B: http_body::Body>(response: &http::Response<B>) -> Option<u64> {
    response.body().size_hint().exact()
}

/// Compresses a long or [`Unchanging`] answer for a client that prefers `coding`.
pub async fn compress(app: &App, charges: &Charges, coding: Option<Coding>, mut response: Response) -> Response {
    let unchanging = response.extensions().get::<Unchanging>().cloned();
    let least = if unchanging.is_some() { PLAIN_MAX } else { STREAMED_MAX };
    let is_mine = length(&response).is_some_and(|length| length > least) && is_text(&response);
    if !is_mine || [CONTENT_ENCODING, CONTENT_RANGE].iter().any(|name| response.headers().contains_key(name)) {
        return response;
    }
    let mut varies = response.headers().get_all(VARY).iter().filter_map(|value| value.to_str().ok());
    if !varies.any(|names| names.to_ascii_lowercase().contains("accept-encoding")) {
        response.headers_mut().append(VARY, HeaderValue::from_static("accept-encoding"));
    }
    let Some(coding) = coding else { return response };
    let (mut head, mut body) = response.into_parts();
    let mut pieces = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame.map(Frame::into_data) {
            Ok(piece) => pieces.extend(piece),
            Err(error) => return Problem::internal(error).into_response(),
        }
    }
    for name in [CONTENT_LENGTH, ACCEPT_RANGES] {
        head.headers.remove(name);
    }
    let form = match unchanging {
        Some(Unchanging(name)) => kept(app, charges, coding, &name, &pieces).await.map(Body::from),
        None => compressed(app, charges, coding, &pieces).await.map(|(form, memory)| {
            head.extensions.insert(HeldBytes(form.len()));
            reply::sliced(memory.into_bytes(form))
        }),
    };
    let body = match form {
        Some(form) => {
            head.headers.insert(CONTENT_ENCODING, coding.value());
            form
        }
        None => Body::from_stream(stream::iter(pieces.into_iter().map(Ok::<_, Infallible>))),
    };
    Response::from_parts(head, body)
}

/// The form of unchanging content, which the first request for it makes. It is sent from the cache and takes no other memory.
async fn kept(app: &App, charges: &Charges, coding: Coding, name: &str, pieces: &[Bytes]) -> Option<Bytes> {
    match app.documents.form(NO_CANVAS, name, coding).await.ok()? {
        Ok(form) => Some(form),
        Err(turn) => {
            let (form, _) = compressed(app, charges, coding, pieces).await?;
            turn.insert(form.clone());
            Some(form)
        }
    }
}

/// The compressed form of a text in pieces, and memory to send it. `None` when there is no memory for it, or no place in time.
pub async fn compressed(
    app: &App,
    charges: &Charges,
    coding: Coding,
    pieces: &[Bytes],
) -> Option<(Bytes, GraphPermit)> {
    let length = pieces.iter().map(Bytes::len).sum();
    let key = charges.account().map_or_else(|| Key::name(""), account_key);
    let memory = app.documents.spare(&key, length as u64)?;
    let work = || coding.compress(pieces, length);
    let document = admission::work(&app.large_work, charges, &key, length, work).await.ok()?;
    charges.debit(length);
    // Writing to memory does not fail.
    Some((document.ok()?.into(), memory))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use http::header::CONTENT_TYPE;

    use super::*;

    #[test]
    fn the_coding_of_a_long_answer_is_the_one_that_the_client_prefers() {
        let preferred = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(ACCEPT_ENCODING, value.parse().expect("a header value"));
            }
            Coding::preferred(&headers)
        };
        for zstd in [
            &["zstd"][..],
            &["gzip, deflate, br, zstd"],
            &["br, ZSTD"],
            &["gzip;q=0.1, zstd"],
            &["gzip", "zstd"],
            &["*"],
            &["*;q=0.5, gzip;q=0"],
            &["identity;q=0.001", "zstd;q=0.002"],
        ] {
            assert_eq!(preferred(zstd), Some(Coding::Zstd), "{zstd:?}");
        }
        for gzip in [
            &["gzip"][..],
            &["x-gzip"],
            &["br;q=1, gzip;q=0.5"],
            &["zstd;q=0.5, gzip ; Q=0.6"],
            &["identity;q=0, *;q=0.5, zstd;q=0, br;q=0"],
            &["zstd;q=nonsense, gzip"],
        ] {
            assert_eq!(preferred(gzip), Some(Coding::Gzip), "{gzip:?}");
        }
        for none in [
            &[][..],
            &[""],
            &["br"],
            &["deflate"],
            &["gzip;q=0"],
            &["*;q=0"],
            &["identity, gzip;q=0.5"],
            &["identity;q=0"],
            &["gzip;q=2"],
        ] {
            assert_eq!(preferred(none), None, "{none:?}");
        }
    }

    #[test]
    fn longer_texts_take_lower_levels() {
        const MIB: usize = 1024 * 1024;
        let levels = |length| (Coding::Zstd.level(length), Coding::Gzip.level(length));
        for (length, expected) in [
            (1, (3, 6)),
            (MIB / 4, (3, 6)),
            (MIB / 4 + 1, (3, 4)),
            (MIB, (3, 4)),
            (MIB + 1, (1, 1)),
            (64 * MIB, (1, 1)),
        ] {
            assert_eq!(levels(length), expected, "{length}");
        }
    }

    #[test]
    fn a_compressed_text_is_the_text() {
        for length in [0, 1, 300_000, 2_000_000] {
            let text: Vec<u8> = (0..length).map(|at: u32| b"abcdefgh"[(at % 7) as usize] ^ (at >> 12) as u8).collect();
            let pieces: Vec<Bytes> = text.chunks(64 * 1024).map(Bytes::copy_from_slice).collect();
            let zstd = Coding::Zstd.compress(&pieces, text.len()).expect("compresses");
            assert!(zstd::decode_all(&*zstd).expect("decodes") == text, "{length}");
            let gzip = Coding::Gzip.compress(&pieces, text.len()).expect("compresses");
            let mut decoded = Vec::new();
            flate2::read::GzDecoder::new(&*gzip).read_to_end(&mut decoded).expect("decodes");
            assert!(decoded == text, "{length}");
            assert!(length < 1000 || (zstd.len() < text.len() / 2 && gzip.len() < text.len() / 2), "{length}");
        }
    }

    #[tokio::test]
    async fn only_short_texts_are_compressed_while_they_are_sent() {
        let response = |body: Body, media_type: &'static str| {
            let mut response = Response::new(body);
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
            response
        };
        let of = |length: u64| Body::from(vec![b'x'; length as usize]);
        let json = |length| Streamed.should_compress(&response(of(length), "application/json"));
        assert_eq!([PLAIN_MAX, PLAIN_MAX + 1, STREAMED_MAX, STREAMED_MAX + 1].map(json), [false, true, true, false]);
        let unknown = || Body::from_stream(stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"x"))]));
        assert!(Streamed.should_compress(&response(unknown(), "application/json")));
        for media_type in ["image/png", "image/svg+xml", "video/mp4", "text/event-stream"] {
            assert!(!Streamed.should_compress(&response(of(2000), media_type)), "{media_type}");
        }
    }
}
