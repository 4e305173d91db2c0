//! The signature check of a webhook receiver. It follows docs/reference/webhooks.md#signature and
//! shares no code with the sender.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::Received;

impl Received {
    /// Checks the signature: `v1` is the lower-case hexadecimal HMAC-SHA256 of `<timestamp>.<raw
    /// body>`, keyed with `secret`. The error says what is wrong.
    pub fn verify_signature(&self, secret: &str) -> Result<(), String> {
        let timestamp = self.header("service-webhook-timestamp")?;
        if !(10..=13).contains(&timestamp.len()) || !timestamp.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("the timestamp is no epoch time of 10 to 13 digits: {timestamp}"));
        }
        let header = self.header("service-webhook-signature")?;
        let signature = header
            .split(',')
            .find_map(|part| part.trim().strip_prefix("v1="))
            .ok_or_else(|| format!("no v1= part in the signature: {header}"))?;
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
        mac.update(timestamp.as_bytes());
        mac.update(b".");
        mac.update(&self.body);
        let bytes = from_lower_hex(signature).ok_or_else(|| format!("no lower-case hex: {signature}"))?;
        mac.verify_slice(&bytes).map_err(|_| "the signature is that of another secret, timestamp or body".to_owned())
    }

    /// The text of a header that must be present exactly once.
    pub fn header(&self, name: &str) -> Result<&str, String> {
        let mut values = self.headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => value.to_str().map_err(|error| format!("{name}: {error}")),
            (None, _) => Err(format!("no header {name}")),
            (Some(_), Some(_)) => Err(format!("several headers {name}")),
        }
    }
}

fn from_lower_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";
    // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef
    const SIGNATURE: &str = "f05f2539e3ae1c49aec5f8cfdad75ef6b06480b133973ffbb7ec9e18827af177";

    fn received(timestamp: &str, signature: &str, body: &'static str) -> Received {
        let mut headers = http::HeaderMap::new();
        headers.insert("service-webhook-timestamp", timestamp.parse().expect("a header"));
        headers.insert("service-webhook-signature", signature.parse().expect("a header"));
        Received { method: http::Method::POST, path: "/".into(), headers, body: body.into(), at: Instant::now() }
    }

    #[test]
    fn the_signature_that_openssl_makes_is_accepted() {
        let signature = format!("v1={SIGNATURE}");
        assert_eq!(received("1700000000", &signature, r#"{"a":1}"#).verify_signature(SECRET), Ok(()));
    }

    #[test]
    fn another_secret_timestamp_or_body_is_refused() {
        let signature = format!("v1={SIGNATURE}");
        assert!(received("1700000000", &signature, r#"{"a":1}"#).verify_signature(&SECRET[1..]).is_err());
        assert!(received("1700000001", &signature, r#"{"a":1}"#).verify_signature(SECRET).is_err());
        assert!(received("1700000000", &signature, r#"{"a":2}"#).verify_signature(SECRET).is_err());
    }

    #[test]
    fn the_form_of_the_headers_is_checked() {
        let upper = format!("v1={}", SIGNATURE.to_uppercase());
        for signature in [SIGNATURE, "v1=", "v1=zz", "v2=00", &upper] {
            assert!(received("1700000000", signature, r#"{"a":1}"#).verify_signature(SECRET).is_err(), "{signature}");
        }
        for timestamp in ["170000000", "17000000000000", "1700000000.5", "-1700000000"] {
            assert!(received(timestamp, "v1=00", "").verify_signature(SECRET).is_err(), "{timestamp}");
        }
    }
}
