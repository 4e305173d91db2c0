//! `Prefer` headers (RFC 7240); honored preferences are reported in `Preference-Applied`.

use axum::response::Response;
use http::{HeaderMap, HeaderValue};

/// The values of a preference, in the order sent, without quotes.
pub fn values<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    headers
        .get_all("prefer")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(move |preference| {
            let (named, value) = preference.split(';').next()?.split_once('=')?;
            named.trim().eq_ignore_ascii_case(name).then_some(value.trim().trim_matches('"'))
        })
}

/// Whether the response to a write may omit what the client knows already: `return=minimal`
/// (docs/reference/conventions.md#minimal-responses).
pub fn minimal(headers: &HeaderMap) -> bool {
    values(headers, "return").next().is_some_and(|value| value.eq_ignore_ascii_case("minimal"))
}

/// Marks a response as minimal.
pub fn applied_minimal(mut response: Response) -> Response {
    response.headers_mut().insert("preference-applied", HeaderValue::from_static("return=minimal"));
    response
}

/// Marks a response as one that could wait for a change.
pub fn applied_wait(mut response: Response, seconds: u64) -> Response {
    if let Ok(applied) = HeaderValue::from_str(&format!("wait={seconds}")) {
        response.headers_mut().insert("preference-applied", applied);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (http::HeaderName::from_static("prefer"), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn preferences_are_found_among_others() {
        let headers = sent(&["respond-async, wait=10", "Return = \"minimal\"; foo=bar", "wait=20"]);
        assert_eq!(values(&headers, "wait").collect::<Vec<_>>(), ["10", "20"]);
        assert!(minimal(&headers));
    }

    #[test]
    fn the_first_of_two_contrary_wishes_counts() {
        assert!(!minimal(&sent(&["return=representation", "return=minimal"])));
        assert!(!minimal(&sent(&["return", "minimal"])));
        assert!(!minimal(&HeaderMap::new()));
    }
}
