//! `GET /assets/preview`: the stored bytes of one picture, or a rendition of it, to whoever holds the token (decisions 6.4).

use std::ops::Range;

use axum::Extension;
use axum::body::Body;
use axum::extract::{OriginalUri, State};
use axum::response::{IntoResponse, Response};
use blob::{BlobKey, Object};
use domain::asset::AssetRecord;
use domain::limits::RENDITION_WIDTHS;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    HeaderName, IF_RANGE, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

use crate::extract::query::QueryReader;
use crate::observe::Trace;
use crate::openapi::Binary;
use crate::problem::{Problem, Result};
use crate::rendition::Rendition;
use crate::reply::none_match;
use crate::state::App;

/// The widths that can be asked for, for the document.
pub struct RenditionWidth;

impl PartialSchema for RenditionWidth {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Integer).enum_values(Some(RENDITION_WIDTHS)).into()
    }
}

impl ToSchema for RenditionWidth {}

/// Serve a picture to the holder of its preview URL
#[utoipa::path(
    get, path = "/assets/preview", operation_id = "getAssetPreview", tag = "Assets",
    params(
        ("token" = String, Query, description = "Out of a `previewUrl`; never to be built."),
        ("w" = Option<RenditionWidth>, Query, description = "A rendition no wider than 64, 128, 256, 512, 1024 or 2048 pixels."),
        ("Range" = Option<String>, Header, description = "One range of bytes."),
        ("If-None-Match" = Option<String>, Header, description = "An `ETag` that is known."),
    ),
    responses(
        (status = 200, content((Binary = "image/png"), (Binary = "image/jpeg"), (Binary = "image/webp"), (Binary = "image/gif"))),
        (status = 206, description = "The range.", content((Binary = "image/png"), (Binary = "image/jpeg"), (Binary = "image/webp"), (Binary = "image/gif"))),
        (status = 304, description = "Unchanged."),
    )
)]
pub async fn preview(
    State(app): State<App>,
    Extension(trace): Extension<Trace>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result {
    let mut query = QueryReader::new(&uri);
    let token = query.first("token");
    let width = query.text("w", 8).and_then(|text| {
        let width = RENDITION_WIDTHS.into_iter().find(|width| width.to_string() == text);
        if width.is_none() {
            query.refuse("w", "must be one of 64, 128, 256, 512, 1024, 2048");
        }
        width
    });
    if token.is_none() {
        query.refuse("token", "is required");
    }
    query.finish()?;
    let opened =
        app.previews.open(&app.keys, token.unwrap_or_default(), service::clock::now()).ok_or(Problem::Unauthorized)?;
    let asset =
        db::assets::get(&mut *app.connection().await?, &opened.asset).await?.ok_or(Problem::NotFound("asset"))?;
    let picture = match width {
        None => Picture { key: asset.blob_key, media_type: asset.mime_type },
        Some(width) => rendition(&app, &asset, width, trace).await?,
    };
    serve(&app, &picture, opened.remaining, &headers).await
}

/// What is served.
struct Picture {
    key: Uuid,
    media_type: String,
}

/// The rendition, made on first demand by an image-worker.
async fn rendition(app: &App, asset: &AssetRecord, width: u32, trace: Trace) -> Result<Picture> {
    match crate::rendition::rendition(app, asset.blob_key, width, &asset.handle.owner, trace).await? {
        Rendition::Ready { key, media_type } => Ok(Picture { key, media_type }),
        Rendition::Undecodable => Err(Problem::unprocessable("w", "the picture cannot be read")),
        Rendition::GivenUp => Err(Problem::unprocessable("w", "no rendition of the picture could be made")),
    }
}

async fn serve(app: &App, picture: &Picture, remaining: u64, headers: &HeaderMap) -> Result {
    // A blob's bytes never change: its key says what they are.
    let etag = format!("\"{}\"", picture.key.simple());
    if none_match(headers, &etag) {
        return dressed(StatusCode::NOT_MODIFIED.into_response(), &etag, remaining);
    }
    let whole = app.blobs.stream(BlobKey(picture.key), None).await?;
    let size = whole.size;
    let same = headers.get(IF_RANGE).is_none_or(|tag| tag.as_bytes() == etag.as_bytes());
    let asked = headers.get(RANGE).filter(|_| same).and_then(|range| range.to_str().ok());
    let (status, object) = match asked.map(|range| parse_range(range, size)) {
        None | Some(Asked::Whole) => (StatusCode::OK, whole),
        Some(Asked::Nothing) => return Err(Problem::RangeNotSatisfiable(size)),
        Some(Asked::Part(range)) => {
            drop(whole);
            let part = app.blobs.stream(BlobKey(picture.key), Some(range)).await?;
            (StatusCode::PARTIAL_CONTENT, part)
        }
    };
    let Object { range, stream, .. } = object;
    let mut response = (status, Body::from_stream(stream)).into_response();
    let dress = response.headers_mut();
    set(dress, CONTENT_TYPE, &picture.media_type)?;
    set(dress, CONTENT_LENGTH, &(range.end - range.start).to_string())?;
    if status == StatusCode::PARTIAL_CONTENT {
        set(dress, CONTENT_RANGE, &format!("bytes {}-{}/{size}", range.start, range.end - 1))?;
    }
    dressed(response, &etag, remaining)
}

/// What a browser needs to know of foreign bytes: what they are, that they are nothing else, and how long they may be kept.
fn dressed(mut response: Response, etag: &str, remaining: u64) -> Result {
    let headers = response.headers_mut();
    set(headers, ETAG, etag)?;
    set(headers, ACCEPT_RANGES, "bytes")?;
    set(headers, CACHE_CONTROL, &format!("private, max-age={remaining}"))?;
    set(headers, X_CONTENT_TYPE_OPTIONS, "nosniff")?;
    set(headers, CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox")?;
    set(headers, HeaderName::from_static("cross-origin-resource-policy"), "cross-origin")?;
    Ok(response)
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) -> Result<()> {
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
