//! The cookie of a session, and the check that a write comes from the console itself.

use domain::id::AccountUid;
use http::header::{COOKIE, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};
use url::Url;
use uuid::Uuid;

use crate::problem::{Problem, Result};

/// The cookie. Browsers accept the prefix only with `Secure`, without `Domain` and for the path `/` (RFC 6265bis).
const NAME: &str = "__Host-canvas";
/// How long a browser keeps it, in seconds; the session itself may end earlier.
const KEPT: u32 = domain::limits::SESSION_DAYS.unsigned_abs() * 24 * 60 * 60;
/// A header that no form and no foreign page without permission can send.
const CONSOLE: HeaderName = HeaderName::from_static("x-canvas-console");
/// The account that the page serves which sends the request.
const ACCOUNT: HeaderName = HeaderName::from_static("x-canvas-account");
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// `<id>.<secret>`: a UUID, a dot and 43 characters of base64url.
pub fn parse(text: &str) -> Option<(Uuid, &str)> {
    let (id, secret) = text.split_once('.')?;
    let is_base64url = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let well_formed = id.len() == 36 && secret.len() == 43 && secret.bytes().all(is_base64url);
    if well_formed { Some((Uuid::try_parse(id).ok()?, secret)) } else { None }
}

/// The session that a request presents. `None` also when it presents several.
pub fn presented(headers: &HeaderMap) -> Option<(Uuid, &str)> {
    let mut values = cookies(headers);
    let value = values.next()?;
    if values.next().is_some() { None } else { parse(value) }
}

/// Whether a request presents a session, well-formed or not.
pub fn is_presented(headers: &HeaderMap) -> bool {
    cookies(headers).next().is_some()
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let pairs = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(';'));
    pairs.filter_map(|pair| pair.trim().strip_prefix(NAME)?.strip_prefix('='))
}

/// The `Set-Cookie` header of a new session.
pub fn set(id: Uuid, secret: &str) -> HeaderValue {
    let cookie = format!("{NAME}={id}.{secret}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={KEPT}");
    HeaderValue::from_str(&cookie).expect("a UUID and base64url are visible ASCII")
}

/// The `Set-Cookie` header that deletes the cookie.
pub const CLEAR: HeaderValue =
    HeaderValue::from_static("__Host-canvas=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0");

/// Rejects a write that does not come from a page of this service's own origin. Reads pass: without CORS, a foreign page cannot
/// see their responses.
///
/// # Errors
///
/// 403. `public_url` is the URL under which browsers reach the service.
pub fn check_origin(parts: &Parts, public_url: &str) -> Result<()> {
    if parts.method.is_safe() {
        return Ok(());
    }
    let only = |name: &HeaderName| {
        let mut values = parts.headers.get_all(name).iter();
        let value = values.next().and_then(|value| value.to_str().ok());
        if values.next().is_some() { None } else { value }
    };
    let own = Url::parse(public_url).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
    let why = if only(&ORIGIN) != Some(own.as_str()) {
        "the Origin header is not the public URL of the service (CANVAS_PUBLIC_URL)"
    } else if only(&CONSOLE) != Some("1") {
        "the header X-Canvas-Console: 1 is missing"
    } else if parts.headers.contains_key(SITE) && only(&SITE) != Some("same-origin") {
        "the request comes from another site (Sec-Fetch-Site)"
    } else {
        return Ok(());
    };
    Err(Problem::Forbidden(format!("the console accepts writes from its own pages alone: {why}")))
}

/// Returns `true` if a request names another account than that of its session: its page serves that account, and another tab has signed the
/// browser in to this one since. A request without the header names none (docs/reference/console.md#account-of-a-page).
pub fn names_another(headers: &HeaderMap, account: &AccountUid) -> bool {
    headers.get_all(ACCOUNT).iter().any(|named| named != account.as_str())
}

#[cfg(test)]
mod tests {
    use http::{Method, Request};

    use super::*;

    const ID: &str = "0198c5a0-0000-7000-8000-000000000001";

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            (HeaderName::try_from(*name).expect("a name"), HeaderValue::from_str(value).expect("a value"))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn a_session_is_presented_by_one_cookie() {
        let secret = "s".repeat(43);
        let cookie = format!("{NAME}={ID}.{secret}");
        let expected = Some((Uuid::try_parse(ID).expect("valid"), secret.as_str()));
        for text in [cookie.clone(), format!("a=b; {cookie}"), format!("{cookie}; theme=dark")] {
            assert_eq!(presented(&headers(&[("cookie", &text)])), expected, "{text}");
        }
        for text in [
            String::new(),
            format!("{cookie}x"),
            format!("x{cookie}"),
            format!("{cookie}; {cookie}"),
            format!("{NAME}={ID}"),
            format!("{NAME}=cba_{ID}.{secret}"),
        ] {
            assert_eq!(presented(&headers(&[("cookie", &text)])), None, "{text}");
        }
        assert_eq!(presented(&headers(&[("cookie", &cookie), ("cookie", &cookie)])), None);
    }

    #[test]
    fn a_write_comes_from_the_service_s_own_pages() {
        const URL: &str = "https://canvas.example.com";
        let own = [("origin", URL), ("x-canvas-console", "1")];
        let check = |method: Method, pairs: &[(&str, &str)]| {
            let (mut parts, ()) =
                Request::builder().method(method).uri("/console/session").body(()).expect("valid").into_parts();
            parts.headers = headers(pairs);
            check_origin(&parts, URL).is_ok()
        };
        assert!(check(Method::POST, &own));
        assert!(check(Method::DELETE, &[own[0], own[1], ("sec-fetch-site", "same-origin")]));
        assert!(check(Method::GET, &[]), "reads pass");
        for wrong in [
            &[][..],
            &[own[0]],
            &[own[1]],
            &[("origin", "https://canvas.example.com:8443"), own[1]],
            &[("origin", "https://canvas.example.com.evil.example"), own[1]],
            &[("origin", "http://canvas.example.com"), own[1]],
            &[("origin", "null"), own[1]],
            &[own[0], own[0], own[1]],
            &[own[0], ("x-canvas-console", "true")],
            &[own[0], own[1], ("sec-fetch-site", "same-site")],
            &[own[0], own[1], ("sec-fetch-site", "cross-site")],
            &[own[0], own[1], ("sec-fetch-site", "none")],
        ] {
            assert!(!check(Method::POST, wrong), "{wrong:?}");
        }
    }
}
