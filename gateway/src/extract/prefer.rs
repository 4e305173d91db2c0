//! `Prefer` headers (RFC 7240); honored preferences are reported in `Preference-Applied`.

use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue};

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

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

/// Returns `true` if the response to a write may omit what the client knows already: `return=minimal`
/// (docs/reference/conventions.md#minimal-responses).
pub fn minimal(headers: &HeaderMap) -> bool {
    is_preferred(headers, "return", "minimal")
}

/// Returns `true` if a write may be based on an earlier revision where nothing that it reads or writes changed since: `handling=lenient`
/// (docs/reference/conventions.md#stale-revisions).
pub fn lenient(headers: &HeaderMap) -> bool {
    is_preferred(headers, "handling", "lenient")
}

/// Of two contrary preferences, the first counts.
fn is_preferred(headers: &HeaderMap, name: &str, value: &str) -> bool {
    values(headers, name).next().is_some_and(|preferred| preferred.eq_ignore_ascii_case(value))
}

/// Marks a response as minimal, if it is.
pub fn applied_minimal(response: Response, is_minimal: bool) -> Response {
    if is_minimal { applied(response, "return=minimal") } else { response }
}

/// Marks a response as that of a request with a stale base revision, if it is.
pub fn applied_lenient(response: Response, is_lenient: bool) -> Response {
    if is_lenient { applied(response, "handling=lenient") } else { response }
}

/// Marks a response as one that could wait for a change.
pub fn applied_wait(response: Response, seconds: u64) -> Response {
    applied(response, &format!("wait={seconds}"))
}

/// Adds a preference to those that were applied, which are listed in one header.
fn applied(mut response: Response, preference: &str) -> Response {
    let headers = response.headers_mut();
    let earlier = headers.get(PREFERENCE_APPLIED).and_then(|earlier| earlier.to_str().ok());
    let all = earlier.map_or_else(|| preference.to_owned(), |earlier| format!("{earlier}, {preference}"));
    if let Ok(all) = HeaderValue::try_from(all) {
        headers.insert(PREFERENCE_APPLIED, all);
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
        assert!(!lenient(&sent(&["handling=strict, handling=lenient"])));
    }

    #[test]
    fn lenient_handling_is_found_among_others() {
        for found in ["handling=lenient", "return=minimal, HANDLING = \"Lenient\"; a=b, wait=3", "x, handling=lenient"]
        {
            assert!(lenient(&sent(&[found])), "{found}");
        }
        assert!(lenient(&sent(&["return=minimal", "handling=lenient"])));
        for other in ["handling", "lenient", "handling=lenient2", "nohandling=lenient", "handling=; lenient"] {
            assert!(!lenient(&sent(&[other])), "{other}");
        }
    }

    #[test]
    fn applied_preferences_are_listed_in_one_header() {
        let response = applied_lenient(applied_minimal(Response::default(), true), true);
        let listed: Vec<_> = response.headers().get_all(PREFERENCE_APPLIED).iter().collect();
        assert_eq!(listed, ["return=minimal, handling=lenient"]);
        let plain = applied_lenient(applied_minimal(Response::default(), false), false);
        assert!(plain.headers().is_empty());
    }
}
