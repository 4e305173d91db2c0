//! Stored bytes, whole or in part (RFC 9110, 14): what previews and downloads share.

use std::ops::Range;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use blob::{BlobKey, Object};
use domain::Violation;
use domain::id::AccountUid;
use http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, IF_RANGE, RANGE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::extract::header::single;
use crate::problem::{Problem, Result};
use crate::reply::none_match;
use crate::state::App;

/// The part of a blob that a request asks for, and the condition for it. A `HEAD` request always asks for the whole.
pub struct Selection<'a> {
    headers: &'a HeaderMap,
    range: Option<&'a HeaderValue>,
    if_range: Option<&'a HeaderValue>,
}

impl<'a> Selection<'a> {
    /// Reads the headers of a request; the violations are headers that were sent more than once.
    pub fn from_headers(method: &Method, headers: &'a HeaderMap) -> Result<Self, Vec<Violation>> {
        match (single(headers, &RANGE), single(headers, &IF_RANGE)) {
            (Ok(range), Ok(if_range)) => {
                Ok(Self { headers, range: range.filter(|_| *method != Method::HEAD), if_range })
            }
            (range, if_range) => Err(range.err().into_iter().chain(if_range.err()).collect()),
        }
    }
}

/// The bytes that a response serves.
pub struct Served<'a> {
    /// Where they are.
    pub key: BlobKey,
    /// Their SHA-256.
    pub sha256: &'a [u8],
    /// Whose they are: the owner of the asset, who is the same for all its readers and URLs.
    pub owner: &'a AccountUid,
    pub media_type: &'a str,
}

/// Streams the bytes of a blob: 200, 206 for a range, 304 when the client has them, 416 for a range outside of the blob. The
/// caller sets the caching headers.
pub async fn serve(app: &App, served: Served<'_>, selection: &Selection<'_>) -> Result {
    let Served { key, sha256, owner, media_type } = served;
    let etag = format!("\"{}\"", app.keys.content_tag(owner.as_str(), sha256));
    if none_match(selection.headers, &etag) {
        return tagged(StatusCode::NOT_MODIFIED.into_response(), &etag);
    }
    let whole = app.blobs.stream(key, None).await?;
    let size = whole.size;
    let same = selection.if_range.is_none_or(|tag| tag.as_bytes() == etag.as_bytes());
    let asked = selection.range.filter(|_| same).and_then(|range| range.to_str().ok());
    let (status, object) = match asked.map(|range| parse_range(range, size)) {
        None | Some(Asked::Whole) => (StatusCode::OK, whole),
        Some(Asked::Nothing) => return Err(Problem::RangeNotSatisfiable(size)),
        Some(Asked::Part(range)) => {
            drop(whole);
            (StatusCode::PARTIAL_CONTENT, app.blobs.stream(key, Some(range)).await?)
        }
    };
    let Object { range, stream, .. } = object;
    let mut response = (status, Body::from_stream(stream)).into_response();
    let dress = response.headers_mut();
    set(dress, CONTENT_TYPE, media_type)?;
    set(dress, CONTENT_LENGTH, &(range.end - range.start).to_string())?;
    if status == StatusCode::PARTIAL_CONTENT {
        set(dress, CONTENT_RANGE, &format!("bytes {}-{}/{size}", range.start, range.end - 1))?;
    }
    tagged(response, &etag)
}

fn tagged(mut response: Response, etag: &str) -> Result {
    let headers = response.headers_mut();
    set(headers, ETAG, etag)?;
    set(headers, ACCEPT_RANGES, "bytes")?;
    set(headers, X_CONTENT_TYPE_OPTIONS, "nosniff")?;
    Ok(response)
}

pub fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) -> Result<()> {
    headers.insert(name, HeaderValue::from_str(value).map_err(Problem::internal)?);
    Ok(())
}

/// The request of a `Range` header.
#[derive(Debug, PartialEq)]
enum Asked {
    /// The whole blob: no single range of bytes, and other ranges may be ignored (RFC 9110, 14.2).
    Whole,
    Part(Range<u64>),
    /// A range outside of the blob.
    Nothing,
}

fn parse_range(header: &str, size: u64) -> Asked {
    let Some((first, last)) = header.strip_prefix("bytes=").and_then(|range| range.split_once('-')) else {
        return Asked::Whole;
    };
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten();
    match (first.trim(), last.trim()) {
        ("", suffix) => match number(suffix) {
            Some(0) => Asked::Nothing,
            Some(count) => Asked::Part(size.saturating_sub(count)..size),
            None => Asked::Whole,
        },
        (first, "") => match number(first) {
            Some(first) if first < size => Asked::Part(first..size),
            Some(_) => Asked::Nothing,
            None => Asked::Whole,
        },
        (first, last) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first > last => Asked::Whole,
            (Some(first), Some(last)) if first < size => Asked::Part(first..size.min(last.saturating_add(1))),
            (Some(_), Some(_)) => Asked::Nothing,
            _ => Asked::Whole,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_of_bytes_is_understood() {
        for (header, asked) in [
            ("bytes=0-9", Asked::Part(0..10)),
            ("bytes=5-", Asked::Part(5..100)),
            ("bytes=-10", Asked::Part(90..100)),
            ("bytes=-1000", Asked::Part(0..100)),
            ("bytes=90-1000", Asked::Part(90..100)),
            ("bytes=99-99", Asked::Part(99..100)),
            ("bytes=100-", Asked::Nothing),
            ("bytes=100-200", Asked::Nothing),
            ("bytes=-0", Asked::Nothing),
            ("bytes=9-0", Asked::Whole),
            ("bytes=0-1,5-6", Asked::Whole),
            ("items=0-1", Asked::Whole),
            ("bytes=a-b", Asked::Whole),
            ("bytes=", Asked::Whole),
        ] {
            assert_eq!(parse_range(header, 100), asked, "{header}");
        }
    }
}
