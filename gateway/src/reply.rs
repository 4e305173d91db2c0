//! Successful responses and their headers (decisions 1.1, 1.9, 18.1).

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, LOCATION};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

/// The path that everything is under.
pub const API_ROOT: &str = "/api/canvas-agent/v1";

/// 200.
pub fn ok(body: &impl Serialize) -> Response {
    with_status(StatusCode::OK, body)
}

/// 201 with the path of what was made, below the API root.
pub fn created(location: &str, body: &impl Serialize) -> Response {
    located(StatusCode::CREATED, &format!("{API_ROOT}{location}"), body)
}

/// 202 with the path under which the work is followed.
pub fn accepted(poll_url: &str, body: &impl Serialize) -> Response {
    located(StatusCode::ACCEPTED, poll_url, body)
}

/// `status` and a body that only this caller may see and nobody may keep.
pub fn with_status(status: StatusCode, body: &impl Serialize) -> Response {
    let mut response = (status, Json(body)).into_response();
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    response
}

fn located(status: StatusCode, location: &str, body: &impl Serialize) -> Response {
    let mut response = with_status(status, body);
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// Whether one of the tags of `If-None-Match` is `etag`, by weak comparison (RFC 9110, 8.8.3.2).
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

    use super::*;

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
