//! Stored bytes, whole or in part (RFC 9110, 14): what previews and downloads have in common.

use std::ops::Range;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use blob::{BlobKey, Object};
use http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, IF_RANGE, RANGE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::problem::{Problem, Result};
use crate::reply::none_match;
use crate::state::App;

/// The bytes of a blob, streamed: 200, 206 for a range of them, 304 where they are known, 416 for a range that is not
/// there. How long they may be kept is the caller's to say.
pub async fn serve(app: &App, key: BlobKey, media_type: &str, headers: &HeaderMap) -> Result {
    // A blob's bytes never change: its key says what they are.
    let etag = format!("\"{}\"", key.0.simple());
    if none_match(headers, &etag) {
        return tagged(StatusCode::NOT_MODIFIED.into_response(), &etag);
    }
    let whole = app.blobs.stream(key, None).await?;
    let size = whole.size;
    let same = headers.get(IF_RANGE).is_none_or(|tag| tag.as_bytes() == etag.as_bytes());
    let asked = headers.get(RANGE).filter(|_| same).and_then(|range| range.to_str().ok());
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

/// Sets a header.
pub fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) -> Result<()> {
    headers.insert(name, HeaderValue::from_str(value).map_err(Problem::internal)?);
    Ok(())
}

/// What a `Range` header asks for.
#[derive(Debug, PartialEq)]
enum Asked {
    /// Everything: no single range of bytes, which may be ignored (RFC 9110, 14.2).
    Whole,
    /// This part.
    Part(Range<u64>),
    /// Nothing that is there.
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
