//! fal's queue: a request has URLs for submit, status, result and cancellation
//! (`docs/reference/providers.md#fal`).

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use super::words;
use crate::call_error::{CallError, Class};
use crate::capabilities::{Idempotency, ProtocolCapabilities};
use crate::encode::{data_url, endpoint, fields_with_images};
use crate::key::ApiKey;
use crate::order::{Media, Order};
use crate::outcome::{Cancellation, Output, Polled, Run};
use crate::protocol::{Accepted, Answer, Progress, Protocol, Request, Site};

/// The adapter for fal.
pub(super) struct Fal;

/// fal recommends uploads for larger images; `data:` URLs of this size are accepted.
const IMAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

impl Protocol for Fal {
    fn base(&self) -> &'static str {
        "https://queue.fal.run"
    }

    fn domains(&self) -> &'static [&'static str] {
        &["fal.run"]
    }

    fn makes(&self, _media: Media) -> bool {
        true
    }

    fn serves_results(&self) -> bool {
        false
    }

    fn capabilities(&self, _media: Media) -> ProtocolCapabilities {
        ProtocolCapabilities {
            idempotency: Idempotency::Ignored,
            finds: false,
            cancels: true,
            calls_back: true,
            queues: true,
            inline: false,
            image_bytes_max: IMAGE_BYTES_MAX,
            poll_every: Duration::from_secs(1),
        }
    }

    fn authorize(&self, key: Option<&ApiKey>, headers: &mut HeaderMap) {
        if let Some(key) = key {
            headers.insert(http::header::AUTHORIZATION, key.header("Key "));
        }
    }

    fn submit(&self, site: &Site, order: &Order, _uploads: &[String]) -> Result<Request, CallError> {
        let body = Value::Object(fields_with_images(order, data_url)?);
        let request = Request::post_json(site.url(&format!("/{}", endpoint(order))), &body);
        // Without this header, the queue repeats a failed request up to ten times.
        Ok(request.with(HeaderName::from_static("x-fal-no-retry"), HeaderValue::from_static("1")))
    }

    fn submitted(&self, site: &Site, order: &Order, answer: &Answer) -> Result<Accepted, CallError> {
        let queued: Queued = answer.read()?;
        let own = format!("/{}/requests/{}", application(endpoint(order)), queued.request_id);
        let result = site.trusted_or(queued.response_url.as_deref(), site.url(&own));
        let poll = site.trusted_or(queued.status_url.as_deref(), site.url(&format!("{own}/status")));
        let cancel = site.trusted_or(queued.cancel_url.as_deref(), site.url(&format!("{own}/cancel")));
        Ok(Accepted::Run(Run { id: queued.request_id, poll, result: Some(result), cancel: Some(cancel) }))
    }

    fn polled(&self, _site: &Site, run: &Run, answer: &Answer) -> Result<Progress, CallError> {
        let status: Status = answer.read()?;
        if status.status != "COMPLETED" {
            return Ok(Polled::Running(None).into());
        }
        let result = run.result.clone().ok_or_else(|| CallError::new(Class::Runtime, "the run has no result URL"))?;
        // Completed does not mean succeeded: a failed request is completed with an error, its type, or both.
        Ok(match (status.error, status.error_type) {
            (None, None) => Progress::Collect(Request::get(result)),
            (error, kind) => {
                let kind = kind.unwrap_or_default();
                let class = of_type(&kind).unwrap_or(Class::Unavailable);
                Progress::Explain(Request::get(result), CallError::new(class, error.unwrap_or(kind)))
            }
        })
    }

    fn collected(&self, answer: &Answer) -> Result<Output, CallError> {
        let json = answer.json();
        if json["has_nsfw_concepts"][0] == true {
            return Err(CallError::new(Class::Content, "its safety checker blackened the image"));
        }
        let url = words(&json, &["/images/0/url", "/image/url", "/video/url"]);
        url.parse().ok().and_then(Output::at).ok_or_else(|| {
            // Models that also write say why there is no image.
            match words(&json, &["/description", "/text", "/message"]) {
                "" => CallError::new(Class::Unavailable, "it made nothing"),
                words => CallError::new(Class::Content, words),
            }
        })
    }

    fn cancel(&self, run: &Run) -> Option<Request> {
        run.cancel.clone().map(|url| Request::new(Method::PUT, url))
    }

    fn canceled(&self, answer: &Answer) -> Cancellation {
        match answer.status {
            status if status.is_success() => Cancellation::Requested,
            StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND => Cancellation::TooLate,
            _ => Cancellation::Failed(self.call_error(answer)),
        }
    }

    fn call_error(&self, answer: &Answer) -> CallError {
        let json = answer.json();
        let detail = words(&json, &["/detail", "/detail/0/msg", "/error/message"]);
        let header = answer.headers.get("x-fal-error-type").and_then(|it| it.to_str().ok());
        let kind = header.unwrap_or_else(|| words(&json, &["/detail/0/type", "/error_type", "/error/type"]));
        let locked = ["locked", "balance"].iter().any(|it| detail.to_ascii_lowercase().contains(it));
        let class = match answer.status.as_u16() {
            403 if locked => Some(Class::OutOfCredit),
            _ => of_type(kind),
        };
        answer.call_error(class, detail)
    }
}

/// The class of an error type, if it is more specific than that of the status.
fn of_type(kind: &str) -> Option<Class> {
    match kind {
        "content_policy_violation" => Some(Class::Content),
        // A repetition sometimes succeeds.
        "no_media_generated" | "internal_server_error" | "downstream_service_error" => Some(Class::Unavailable),
        "generation_timeout" | "request_timeout" | "startup_timeout" => Some(Class::Timeout),
        _ => None,
    }
}

/// The part of an endpoint that is the prefix of its requests: the owner and the alias, and the
/// namespace if there is one.
fn application(endpoint: &str) -> String {
    let namespaced = ["workflows/", "comfy/"].iter().any(|namespace| endpoint.starts_with(namespace));
    let parts: Vec<&str> = endpoint.split('/').take(if namespaced { 3 } else { 2 }).collect();
    parts.join("/")
}

#[derive(Deserialize)]
struct Queued {
    request_id: String,
    response_url: Option<String>,
    status_url: Option<String>,
    cancel_url: Option<String>,
}

#[derive(Deserialize)]
struct Status {
    status: String,
    error: Option<String>,
    error_type: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_under_owner_and_alias() {
        assert_eq!(application("fal-ai/flux/schnell"), "fal-ai/flux");
        assert_eq!(application("fal-ai/flux-2-pro"), "fal-ai/flux-2-pro");
        assert_eq!(application("workflows/me/mine/x"), "workflows/me/mine");
    }
}
