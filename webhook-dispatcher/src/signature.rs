//! The headers of an attempt: id, timestamp and signature, in two forms (docs/reference/webhooks.md#signature).
//!
//! A signature is HMAC-SHA256 (RFC 2104), keyed with the caller's secret. The service's own form signs `<timestamp>.<raw body>`
//! in lower-case hex, that of Standard Webhooks `<id>.<timestamp>.<raw body>` in base64
//! (docs/reference/webhooks.md#standard-webhooks). Of a secret `whsec_<base64>`, which that specification defines, there is one more,
//! keyed with the decoded bytes. Every attempt has a new timestamp and new signatures, so that a receiver can
//! reject old timestamps and still accept a retry.

use std::fmt::Write;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::prelude::BASE64_STANDARD;
use domain::webhook::standard;
use hmac::{Hmac, KeyInit, Mac};
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;

const ID: HeaderName = HeaderName::from_static(domain::webhook::ID_HEADER);
const TIMESTAMP: HeaderName = HeaderName::from_static(domain::webhook::TIMESTAMP_HEADER);
const SIGNATURE: HeaderName = HeaderName::from_static(domain::webhook::SIGNATURE_HEADER);
const STANDARD_ID: HeaderName = HeaderName::from_static(standard::ID_HEADER);
const STANDARD_TIMESTAMP: HeaderName = HeaderName::from_static(standard::TIMESTAMP_HEADER);
const STANDARD_SIGNATURE: HeaderName = HeaderName::from_static(standard::SIGNATURE_HEADER);
/// W3C Trace Context, section 3.2.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Prefix of a secret of Standard Webhooks; its key in base64 follows.
const SECRET_PREFIX: &[u8] = b"whsec_";
/// Reads that key, also without padding.
const SECRET_KEY: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Headers of an attempt to deliver `body`, made at `timestamp` (epoch seconds).
pub fn headers(secret: &[u8], delivery: &str, timestamp: i64, body: &[u8], traceparent: &str) -> HeaderMap {
    let text = |text: &str| HeaderValue::from_str(text).expect("ids, signatures and a trace context are visible ASCII");
    HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (USER_AGENT, HeaderValue::from_static("Canvas-Webhooks/1.0")),
        (ID, text(delivery)),
        (TIMESTAMP, HeaderValue::from(timestamp)),
        (SIGNATURE, text(&signature(secret, timestamp, body))),
        (STANDARD_ID, text(delivery)),
        (STANDARD_TIMESTAMP, HeaderValue::from(timestamp)),
        (STANDARD_SIGNATURE, text(&standard_signatures(secret, delivery, timestamp, body))),
        (TRACEPARENT, text(traceparent)),
    ])
}

/// `v1=` and the signature in lower-case hex.
fn signature(secret: &[u8], timestamp: i64, body: &[u8]) -> String {
    let mut text = String::from("v1=");
    for byte in hmac(secret, &format!("{timestamp}."), body) {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
    }
    text
}

/// The signatures of Standard Webhooks, separated by a space. The first is the one that its libraries compute: they take a secret
/// `whsec_<base64>` as the bytes after its prefix.
fn standard_signatures(secret: &[u8], id: &str, timestamp: i64, body: &[u8]) -> String {
    let of_text = standard_signature(secret, id, timestamp, body);
    match decoded_key(secret) {
        Some(key) => format!("{} {of_text}", standard_signature(&key, id, timestamp, body)),
        None => of_text,
    }
}

/// The key of a secret `whsec_<base64>`. Anybody could sign with an empty one.
fn decoded_key(secret: &[u8]) -> Option<Vec<u8>> {
    SECRET_KEY.decode(secret.strip_prefix(SECRET_PREFIX)?).ok().filter(|key| !key.is_empty())
}

/// `v1,` and the signature of Standard Webhooks in base64. The id has no dot, so that the parts are unambiguous.
fn standard_signature(secret: &[u8], id: &str, timestamp: i64, body: &[u8]) -> String {
    format!("v1,{}", BASE64_STANDARD.encode(hmac(secret, &format!("{id}.{timestamp}."), body)))
}

fn hmac(secret: &[u8], head: &str, body: &[u8]) -> impl IntoIterator<Item = u8> + AsRef<[u8]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of every length");
    mac.update(head.as_bytes());
    mac.update(body);
    mac.finalize().into_bytes()
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
    fn the_signature_of_standard_webhooks_is_the_one_of_its_specification() {
        let key = BASE64_STANDARD.decode("plJ3nmyCDGBKInavdOK15jsl").expect("base64");
        let body = br#"{"event_type":"ping","data":{"success":true}}"#;
        let signature = standard_signature(&key, "msg_loFOjxBNrRLzqYUf", 1_731_705_121, body);
        assert_eq!(signature, "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=");
    }

    #[test]
    fn the_secret_is_the_key_as_it_was_sent() {
        // printf 'webhook:7.1700000000.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef -binary | base64
        let expected = "v1,M2GLW+wSZNDFu7Ay9H5hY3Kkhh/axG4SZEhfUBq911o=";
        assert_eq!(standard_signature(SECRET, "webhook:7", 1_700_000_000, br#"{"a":1}"#), expected);
    }

    #[test]
    fn a_secret_of_standard_webhooks_signs_as_its_key_and_as_its_text() {
        // The secret, signature and message are those of the specification. Of the text:
        // printf '%s' "$id.$time.$body" | openssl dgst -sha256 -hmac whsec_plJ3nmyCDGBKInavdOK15jsl -binary | base64
        let body = br#"{"event_type":"ping","data":{"success":true}}"#;
        let headers = headers(b"whsec_plJ3nmyCDGBKInavdOK15jsl", "msg_loFOjxBNrRLzqYUf", 1_731_705_121, body, "00");
        let expected =
            "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0= v1,leoILIh3JoLqXQMy6RY2D7gS/zg1U/vKnSgqyS128yo=";
        assert_eq!(headers["webhook-signature"], expected);
        let own = signature(b"whsec_plJ3nmyCDGBKInavdOK15jsl", 1_731_705_121, body);
        assert_eq!(headers["service-webhook-signature"], own.as_str(), "the text is the key");
    }

    #[test]
    fn only_base64_after_the_prefix_is_a_key() {
        let encoded = BASE64_STANDARD.encode(SECRET);
        for key in [encoded.as_str(), encoded.trim_end_matches('=')] {
            assert_eq!(decoded_key(format!("whsec_{key}").as_bytes()).as_deref(), Some(SECRET), "{key}");
        }
        for text in
            [encoded.as_str(), "whsec_", "whsec_not base64, only text of this length", "WHSEC_AAAA", "whsec-AAAA"]
        {
            assert_eq!(decoded_key(text.as_bytes()), None, "{text}");
            let signatures = standard_signatures(text.as_bytes(), "webhook:7", 1_700_000_000, b"{}");
            assert_eq!(signatures, standard_signature(text.as_bytes(), "webhook:7", 1_700_000_000, b"{}"));
        }
    }

    #[test]
    fn the_head_names_the_delivery_the_time_and_the_trace() {
        let headers = headers(SECRET, "webhook:7", 1_700_000_000, b"{}", "00-0af7-b7ad-01");
        let expected = [
            ("content-type", "application/json"),
            ("user-agent", "Canvas-Webhooks/1.0"),
            ("service-webhook-id", "webhook:7"),
            ("service-webhook-timestamp", "1700000000"),
            ("webhook-id", "webhook:7"),
            ("webhook-timestamp", "1700000000"),
            ("traceparent", "00-0af7-b7ad-01"),
        ];
        for (name, value) in expected {
            assert_eq!(headers[name], value, "{name}");
        }
        assert!(headers["service-webhook-signature"].to_str().expect("text").starts_with("v1="));
        assert!(headers["webhook-signature"].to_str().expect("text").starts_with("v1,"));
    }
}
