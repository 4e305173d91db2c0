//! The signature checks of a webhook receiver. They follow docs/reference/webhooks.md#signature and the Standard Webhooks
//! specification, and share no code with the sender.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::Received;

impl Received {
    /// Checks both signatures, and that they are of one attempt. The error says what is wrong.
    pub fn verify_signature(&self, secret: &str) -> Result<(), String> {
        self.verify_own(secret)?;
        self.verify_standard(secret)?;
        for part in ["id", "timestamp"] {
            let [own, standard] = [format!("service-webhook-{part}"), format!("webhook-{part}")];
            if self.header(&own)? != self.header(&standard)? {
                return Err(format!("{own} and {standard} differ"));
            }
        }
        Ok(())
    }

    /// The service's own form: `v1` is the lower-case hexadecimal HMAC-SHA256 of `<timestamp>.<raw body>`, keyed with `secret`.
    pub fn verify_own(&self, secret: &str) -> Result<(), String> {
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

    /// The form of Standard Webhooks: of the signatures, separated by spaces, one is `v1,` and the base64 of the HMAC-SHA256 of
    /// `<id>.<timestamp>.<raw body>`, keyed with `secret`. The id contains no dot.
    pub fn verify_standard(&self, secret: &str) -> Result<(), String> {
        let (id, timestamp) = (self.header("webhook-id")?, self.header("webhook-timestamp")?);
        if id.is_empty() || id.contains('.') || timestamp.parse::<i64>().is_err() {
            return Err(format!("no id or no time: {id}, {timestamp}"));
        }
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
        mac.update(&[format!("{id}.{timestamp}.").as_bytes(), &self.body].concat());
        let signatures = self.header("webhook-signature")?.split(' ').filter_map(|part| part.strip_prefix("v1,"));
        let mut bytes = signatures.filter_map(|signature| BASE64_STANDARD.decode(signature).ok());
        match bytes.any(|bytes| mac.clone().verify_slice(&bytes).is_ok()) {
            true => Ok(()),
            false => Err("no signature of Standard Webhooks is that of this secret, id, timestamp and body".to_owned()),
        }
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
    // printf 'webhook:7.1700000000.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef -binary | base64
    const STANDARD: &str = "M2GLW+wSZNDFu7Ay9H5hY3Kkhh/axG4SZEhfUBq911o=";

    fn received(timestamp: &str, signature: &str, body: &'static str) -> Received {
        let mut headers = http::HeaderMap::new();
        let standard = format!("v1,{STANDARD}");
        for (name, value) in [
            ("service-webhook-id", "webhook:7"),
            ("service-webhook-timestamp", timestamp),
            ("service-webhook-signature", signature),
            ("webhook-id", "webhook:7"),
            ("webhook-timestamp", timestamp),
            ("webhook-signature", &standard),
        ] {
            headers.insert(name, value.parse().expect("a header"));
        }
        Received { method: http::Method::POST, path: "/".into(), headers, body: body.into(), at: Instant::now() }
    }

    #[test]
    fn the_signature_that_openssl_makes_is_accepted() {
        let signature = format!("v1={SIGNATURE}");
        assert_eq!(received("1700000000", &signature, r#"{"a":1}"#).verify_signature(SECRET), Ok(()));
    }

    #[test]
    fn both_forms_must_be_right() {
        let right = received("1700000000", &format!("v1={SIGNATURE}"), r#"{"a":1}"#);
        for (name, value, ok) in [
            ("webhook-signature", format!("v1a,AAAA v1,AAAA v1,{STANDARD}"), true),
            ("webhook-signature", STANDARD.to_owned(), false),
            ("webhook-signature", format!("v1={STANDARD}"), false),
            ("webhook-signature", format!("v2,{STANDARD}"), false),
            ("webhook-id", "webhook:8".to_owned(), false),
            ("webhook-timestamp", "1700000001".to_owned(), false),
            ("service-webhook-id", "webhook:8".to_owned(), false),
        ] {
            let mut request = right.clone();
            request.headers.insert(name, value.parse().expect("a header"));
            assert_eq!(request.verify_signature(SECRET).is_ok(), ok, "{name}: {value}");
        }
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
