//! Successful responses and their headers (docs/reference/conventions.md#caching).

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use domain::API_ROOT;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use http::{HeaderValue, StatusCode};
use http_body::{Frame, SizeHint};
use serde::Serialize;

/// Bytes of a document that the connection receives at once. It takes the next slice when this one is almost written.
const SLICE_BYTES: usize = 64 * 1024;

/// A 200 response.
pub fn ok(body: &impl Serialize) -> Response {
    with_status(StatusCode::OK, body)
}

/// A 201 response with the path of the new resource, relative to the API root.
pub fn created(location: &str, body: &impl Serialize) -> Response {
    into_created(ok(body), location)
}

/// Turns a 200 into a 201 with the path of the new resource, relative to the API root.
pub fn into_created(response: Response, location: &str) -> Response {
    located(StatusCode::CREATED, &format!("{API_ROOT}{location}"), response)
}

/// A 202 response with the path under which the work can be polled.
pub fn accepted(poll_url: &str, body: &impl Serialize) -> Response {
    located(StatusCode::ACCEPTED, poll_url, ok(body))
}

/// A response with `status` and a body that only this caller may see and no cache may store.
pub fn with_status(status: StatusCode, body: &impl Serialize) -> Response {
    private((status, Json(body)).into_response())
}

/// Marks a response as private to this caller and not storable.
pub fn private(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    response
}

fn located(status: StatusCode, location: &str, mut response: Response) -> Response {
    *response.status_mut() = status;
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// Bytes of memory that a response holds until all of it is sent; set on large responses only.
#[derive(Clone, Copy)]
pub struct HeldBytes(pub usize);

/// A 200 response with a JSON document that is complete in memory and may be large.
///
/// A large document is sent in slices, so that its body ends when almost all of it has been written. The response carries the
/// bytes it holds ([`HeldBytes`]), from which the connection derives how long that may last ([`crate::server`]).
pub fn document(document: Bytes) -> Response {
    let json = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    if document.len() <= SLICE_BYTES {
        return (json, document).into_response();
    }
    let held = HeldBytes(document.len());
    let mut response = (json, sliced(document)).into_response();
    response.extensions_mut().insert(held);
    response
}

/// A body that is sent in slices of one document.
pub fn sliced(document: Bytes) -> Body {
    Body::new(Slices(document))
}

/// A body made of slices of one document.
struct Slices(Bytes);

impl http_body::Body for Slices {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = SLICE_BYTES.min(self.0.len());
        let slice = self.0.split_to(next);
        Poll::Ready((next > 0).then_some(Ok(Frame::data(slice))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

/// Returns `true` if one of the tags of `If-None-Match` is `etag`, by weak comparison (RFC 9110, 8.8.3.2).
pub fn none_match(headers: &http::HeaderMap, etag: &str) -> bool {
    let etag = opaque(etag);
    headers
        .get_all(http::header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|tag| tag.trim() == "*" || opaque(tag) == etag)
}

fn opaque(tag: &str) -> &str {
    tag.trim().trim_start_matches("W/")
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use http::header::IF_NONE_MATCH;
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn a_document_arrives_whole_whether_it_is_sliced_or_not() {
        for length in [0, 1, SLICE_BYTES, SLICE_BYTES + 1, 3 * SLICE_BYTES, 3 * SLICE_BYTES + 5] {
            let sent: Bytes = (0..length).map(|at| at as u8).collect();
            let response = document(sent.clone());
            assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
            let held = response.extensions().get::<HeldBytes>().map(|held| held.0);
            assert_eq!(held, (length > SLICE_BYTES).then_some(length));
            let body = response.into_body();
            assert_eq!(http_body::Body::size_hint(&body).exact(), Some(length as u64));
            assert!(body.collect().await.expect("no error").to_bytes() == sent, "{length}");
        }
    }

    #[test]
    fn tags_are_compared_weakly() {
        let sent = |value: &'static str| HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::from_static(value))]);
        for same in [r#""a""#, r#"W/"a""#, r#""b", W/"a""#, "*"] {
            assert!(none_match(&sent(same), r#"W/"a""#), "{same}");
        }
        for other in [r#""b""#, "a", ""] {
            assert!(!none_match(&sent(other), r#"W/"a""#), "{other}");
        }
    }
}
