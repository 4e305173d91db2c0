//! The headers of an attempt: id, timestamp and signature (docs/reference/webhooks.md#signature).
//!
//! The signature is HMAC-SHA256 (RFC 2104) over `<timestamp>.<raw body>`, keyed with the caller's secret, in lower-case hex.
//! Every attempt has a new timestamp and signature, so that a receiver can reject old timestamps and still accept a retry.

use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;

const ID: HeaderName = HeaderName::from_static(domain::webhook::ID_HEADER);
const TIMESTAMP: HeaderName = HeaderName::from_static(domain::webhook::TIMESTAMP_HEADER);
const SIGNATURE: HeaderName = HeaderName::from_static(domain::webhook::SIGNATURE_HEADER);
/// W3C Trace Context, section 3.2.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Headers of an attempt to deliver `body`, made at `timestamp` (epoch seconds).
pub fn headers(secret: &[u8], delivery: &str, timestamp: i64, body: &[u8], traceparent: &str) -> HeaderMap {
    let text = |text: &str| HeaderValue::from_str(text).expect("ids, hex and a trace context are visible ASCII");
    HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (USER_AGENT, HeaderValue::from_static("Canvas-Webhooks/1.0")),
        (ID, text(delivery)),
        (TIMESTAMP, HeaderValue::from(timestamp)),
        (SIGNATURE, text(&signature(secret, timestamp, body))),
        (TRACEPARENT, text(traceparent)),
    ])
}

/// `v1=` and the signature in lower-case hex.
fn signature(secret: &[u8], timestamp: i64, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of every length");
    mac.update(timestamp.to_string().as_bytes());
    mac.update(b".");
    mac.update(body);
    let mut text = String::from("v1=");
    for byte in mac.finalize().into_bytes() {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

    #[test]
    fn the_signature_is_the_one_that_openssl_makes() {
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef
        let expected = "v1=f05f2539e3ae1c49aec5f8cfdad75ef6b06480b133973ffbb7ec9e18827af177";
        assert_eq!(signature(SECRET, 1_700_000_000, br#"{"a":1}"#), expected);
    }

    #[test]
    fn the_head_names_the_delivery_the_time_and_the_trace() {
        let headers = headers(SECRET, "webhook:7", 1_700_000_000, b"{}", "00-0af7-b7ad-01");
        let expected = [
            ("content-type", "application/json"),
            ("user-agent", "Canvas-Webhooks/1.0"),
            ("service-webhook-id", "webhook:7"),
            ("service-webhook-timestamp", "1700000000"),
            ("traceparent", "00-0af7-b7ad-01"),
        ];
        for (name, value) in expected {
            assert_eq!(headers[name], value, "{name}");
        }
        assert!(headers["service-webhook-signature"].to_str().expect("text").starts_with("v1="));
    }
}
