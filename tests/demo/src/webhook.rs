//! The webhook receiver: one path, and the signature check that every receiver should make.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;
use tokio::sync::mpsc;

use crate::error::{Error, Result, text};

/// A webhook with a verified signature.
pub struct Delivery {
    /// The event's type.
    pub kind: String,
    /// The event's id, the same in every attempt.
    pub event: String,
    /// The handle of the event's run.
    pub run: String,
}

/// The webhooks that arrive.
pub struct Inbox {
    deliveries: mpsc::Receiver<Result<Delivery>>,
}

struct Receiver {
    secret: String,
    deliveries: mpsc::Sender<Result<Delivery>>,
}

/// A receiver of webhooks at `path` that are signed with `secret`.
pub fn receiver(path: &str, secret: &str) -> (Router, Inbox) {
    let (sender, deliveries) = mpsc::channel(16);
    let receiver = Receiver { secret: secret.to_owned(), deliveries: sender };
    (Router::new().route(path, post(accept)).with_state(Arc::new(receiver)), Inbox { deliveries })
}

impl Inbox {
    /// The webhook of `run` (a run handle). The service can deliver an event more than once; the first delivery is enough.
    pub async fn delivery_of(&mut self, run: &str) -> Result<Delivery> {
        while let Some(delivery) = self.deliveries.recv().await {
            let delivery = delivery?;
            if delivery.run == run {
                return Ok(delivery);
            }
        }
        Err(Error::Unexpected("the webhook receiver stopped".into()))
    }
}

/// Accepts a webhook if its signature verifies. Any other webhook gets an error status, so that the service retries it.
async fn accept(State(receiver): State<Arc<Receiver>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let verified =
        if is_signed(&headers, &body, receiver.secret.as_bytes()) { parse(&body) } else { Err(Error::Signature) };
    let status = if verified.is_ok() { StatusCode::NO_CONTENT } else { StatusCode::INTERNAL_SERVER_ERROR };
    // A full or closed inbox means that the demo already has its webhook.
    let _ = receiver.deliveries.try_send(verified);
    status
}

/// Returns `true` if the `v1` part of the signature header is HMAC-SHA256, under `secret`, of `<timestamp>.<body>`
/// (docs/reference/webhooks.md#signature).
fn is_signed(headers: &HeaderMap, body: &[u8], secret: &[u8]) -> bool {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(timestamp), Some(signature)) = (header("service-webhook-timestamp"), header("service-webhook-signature"))
    else {
        return false;
    };
    let Some(claimed) = signature.split(',').find_map(|part| part.trim().strip_prefix("v1=")).and_then(unhex) else {
        return false;
    };
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else {
        return false;
    };
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    mac.verify_slice(&claimed).is_ok()
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    digits.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

fn parse(body: &[u8]) -> Result<Delivery> {
    let event: Value = serde_json::from_slice(body).map_err(|_| Error::Unexpected("a webhook is not JSON".into()))?;
    Ok(Delivery {
        kind: text(&event, "/type")?.to_owned(),
        event: text(&event, "/id")?.to_owned(),
        run: text(&event, "/data/run/run")?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf '1700000000.{}' | openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef`
    const SIGNATURE: &str = "417adf36b901772f658597a76d329694e335e65fc0849d7715c3ca33406309b5";
    const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

    fn headers(timestamp: &str, signature: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("Service-Webhook-Timestamp", timestamp.parse().expect("a header value"));
        headers.insert("Service-Webhook-Signature", signature.parse().expect("a header value"));
        headers
    }

    #[test]
    fn a_signature_over_timestamp_and_body_is_believed() {
        assert!(is_signed(&headers("1700000000", &format!("v1={SIGNATURE}")), b"{}", SECRET));
        assert!(is_signed(&headers("1700000000", &format!("v0=00, v1={SIGNATURE}")), b"{}", SECRET));
    }

    #[test]
    fn another_body_timestamp_or_secret_is_not_believed() {
        let signature = format!("v1={SIGNATURE}");
        assert!(!is_signed(&headers("1700000000", &signature), b"{ }", SECRET));
        assert!(!is_signed(&headers("1700000001", &signature), b"{}", SECRET));
        assert!(!is_signed(&headers("1700000000", &signature), b"{}", b"another secret of the same length"));
    }

    #[test]
    fn a_missing_or_malformed_signature_is_not_believed() {
        assert!(!is_signed(&HeaderMap::new(), b"{}", SECRET));
        assert!(!is_signed(&headers("1700000000", SIGNATURE), b"{}", SECRET));
        assert!(!is_signed(&headers("1700000000", "v1=xyz"), b"{}", SECRET));
        assert!(!is_signed(&headers("1700000000", &format!("v1={}", &SIGNATURE[..62])), b"{}", SECRET));
    }
}
