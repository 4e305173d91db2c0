//! Sends all requests: adds the key, and limits size and time.

use std::time::Duration;

use bytes::Bytes;
use domain::model::ProviderKind;
use egress::{Body, Client, Inbound, OperatorHost, Outbound};
use http::header::{ACCEPT, LOCATION};
use http::{HeaderName, HeaderValue, Method};
use url::Url;

use crate::call_error::{CallError, Class, lost};
use crate::capabilities::ProtocolCapabilities;
use crate::incoming::Incoming;
use crate::key::ApiKey;
use crate::order::{MaskForm, Media, Order};
use crate::outcome::{Artifact, Cancellation, Output, Polled, Run, Submission};
use crate::protocol::{Accepted, Answer, Progress, Protocol, Request, Site};
use crate::protocols::{self, ManagedProtocol};
use crate::text::TextOrder;

/// The maximum size of an answer that contains a result in base64: an image as large as an upload
/// may be, and the rest of the answer.
const ANSWER_MAX: usize = domain::limits::UPLOAD_MAX as usize / 3 * 4 + 1024 * 1024;

/// The maximum size of an answer that contains a text: many times the length of a Recipe's output
/// (24000 characters), because reasoning models add to it.
const TEXT_ANSWER_MAX: usize = 1024 * 1024;

/// The maximum number of redirects of a download that are followed. Each target is checked by the
/// egress guard.
const REDIRECTS_MAX: usize = 3;

/// The factor for the deadline of a video's download. See [`Deadlines::download`].
const VIDEO_PATIENCE: u32 = 5;

/// The deadlines of calls, including connecting and the body of the answer
/// (`docs/reference/providers.md#deadlines`).
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// The deadline of a submit whose answer is the result. OpenAI recommends at least 300 s.
    pub result: Duration,
    /// The deadline of a call whose answer is a text.
    pub text: Duration,
    /// The deadline of every other call: submits to a queue, polls, cancellations.
    pub call: Duration,
    /// The deadline of the download of a result. A video may be ten times as large and has five
    /// times as long.
    pub download: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        let [result, text, call, download] = [600, 300, 60, 120].map(Duration::from_secs);
        Self { result, text, call, download }
    }
}

/// A provider's API, with the settings to call it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The kind of provider, which determines the protocol.
    pub kind: ProviderKind,
    /// The protocol of a managed server; ignored for third parties.
    pub managed: ManagedProtocol,
    /// The operator's own base URL; required for `managed`. If it has no path, it gets that of the
    /// provider's own base URL (`/v1`). If the provider documents the path as part of its routes,
    /// it is always appended. For these calls, the egress guard permits any address of its host,
    /// and also plain HTTP (`docs/reference/webhooks.md#operator-hosts`).
    pub base: Option<Url>,
    /// The key; required for third parties.
    pub key: Option<ApiKey>,
}

/// The reason why an endpoint cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// An endpoint of a third party has no key.
    #[error("this provider needs a key")]
    NoKey,
    /// An endpoint of `managed` has no base URL. The embedded runtime is not part of this crate.
    #[error("this provider needs a base URL")]
    NoBase,
    /// The base URL is not an http or https URL, or contains credentials or a fragment.
    #[error("the base URL must be http or https, without credentials and fragment")]
    Base,
}

/// Parses the base URL of an operator.
///
/// # Errors
///
/// [`ProviderError::Base`] if it is not an http or https URL, or contains credentials or a
/// fragment.
pub fn base_url(text: &str) -> Result<Url, ProviderError> {
    let url = Url::parse(text).map_err(|_| ProviderError::Base)?;
    OperatorHost::from_url(&url).map(|_| url).ok_or(ProviderError::Base)
}

/// The request that submits an order, made by [`Provider::prepare`]. It is sent once.
pub struct PreparedSubmit(Request);

/// A provider that can be called. Cheap to create: there is one per connection.
pub struct Provider {
    protocol: &'static dyn Protocol,
    site: Site,
    operator: Option<OperatorHost>,
    key: Option<ApiKey>,
    client: Client,
    deadlines: Deadlines,
}

impl Provider {
    /// Creates a provider at `endpoint`, called through `client`.
    ///
    /// # Errors
    ///
    /// [`ProviderError`] if the endpoint lacks what its kind requires.
    pub fn new(endpoint: Endpoint, client: Client, deadlines: Deadlines) -> Result<Self, ProviderError> {
        let Endpoint { kind, managed, base, key } = endpoint;
        if kind == ProviderKind::Managed && base.is_none() {
            return Err(ProviderError::NoBase);
        }
        if kind != ProviderKind::Managed && key.is_none() {
            return Err(ProviderError::NoKey);
        }
        let protocol = protocols::for_kind(kind, managed);
        let own = Url::parse(protocol.base()).map_err(|_| ProviderError::Base)?;
        let (base, operator) = match base {
            None => (own, None),
            Some(mut base) => {
                let operator = OperatorHost::from_url(&base).ok_or(ProviderError::Base)?;
                let path = base.path().trim_end_matches('/').to_owned();
                if path.is_empty() || protocol.has_version_in_routes() && !path.ends_with(own.path()) {
                    base.set_path(&format!("{path}{}", own.path()));
                }
                (base, Some(operator))
            }
        };
        Ok(Self { protocol, site: Site::new(base, protocol.domains()), operator, key, client, deadlines })
    }

    /// The protocol's capabilities for orders of `media`.
    pub fn capabilities(&self, media: Media) -> ProtocolCapabilities {
        self.protocol.capabilities(media)
    }

    /// The form of a mask that the protocol takes.
    pub fn mask_form(&self) -> MaskForm {
        self.protocol.mask_form()
    }

    /// Prepares the submit of an order: checks it and uploads its images, if the protocol requires
    /// that. No work is started, so the future may be dropped, and the call repeated. An order that
    /// the model does not support is rejected before anything is sent.
    ///
    /// # Errors
    ///
    /// If the order cannot be submitted. [`CallError::maybe_accepted`] is never set.
    pub async fn prepare(&self, order: &Order) -> Result<PreparedSubmit, CallError> {
        let request = self.request(order).await;
        request.map(PreparedSubmit).map_err(|call_error| CallError { maybe_accepted: false, ..call_error })
    }

    async fn request(&self, order: &Order) -> Result<Request, CallError> {
        let media = order.media();
        if !self.protocol.makes(media) {
            return Err(CallError::new(Class::Invalid, "its protocol has no videos"));
        }
        order.check(self.capabilities(media).image_bytes_max)?;
        let mut uploads = Vec::new();
        for upload in self.protocol.uploads(&self.site, order)? {
            let answer = self.call(upload, self.deadlines.download).await?;
            uploads.push(self.protocol.uploaded(&answer).map_err(|call_error| self.shown(call_error))?);
        }
        keyed(self.protocol.submit(&self.site, order, &uploads)?, &order.idempotency_key)
    }

    /// Submits a prepared order once.
    ///
    /// Dropping the future leaves the outcome unknown, as a crash does. Record the attempt before
    /// the call.
    pub async fn submit(&self, order: &Order, prepared: PreparedSubmit) -> Submission {
        let deadline =
            if self.capabilities(order.media()).inline { self.deadlines.result } else { self.deadlines.call };
        let outcome = match self.call(prepared.0, deadline).await {
            Ok(answer) => {
                self.protocol.submitted(&self.site, order, &answer).map_err(|call_error| self.shown(call_error))
            }
            Err(call_error) => Err(call_error),
        };
        match outcome {
            Ok(Accepted::Done(output)) => Submission::Done(output),
            Ok(Accepted::Finished(run, output)) => Submission::Finished(run, output),
            Ok(Accepted::Run(run)) => Submission::Accepted(run),
            Err(call_error) if call_error.maybe_accepted => Submission::Unknown(call_error),
            Err(call_error) => Submission::Refused(call_error),
        }
    }

    /// Requests a text once. An order that the model does not support is rejected before anything
    /// is sent.
    ///
    /// Dropping the future leaves the outcome unknown, as a crash does. Record the attempt before
    /// the call.
    ///
    /// # Errors
    ///
    /// If there is no text. [`CallError::maybe_accepted`] says whether a text may have been written and
    /// charged, so that it must not be requested again.
    pub async fn write(&self, order: &TextOrder) -> Result<String, CallError> {
        order.check(self.capabilities(Media::Image).image_bytes_max)?;
        let request = keyed(self.protocol.write(&self.site, order)?, &order.idempotency_key)?;
        let answer = self.call_for(request, self.deadlines.text, TEXT_ANSWER_MAX).await?;
        let text = self.protocol.written(&answer).map_err(|call_error| self.shown(call_error))?;
        match text.trim() {
            "" => Err(answer.call_error(Some(Class::Unavailable), "it made no text")),
            text => Ok(text.to_owned()),
        }
    }

    /// Polls a run once.
    pub async fn poll(&self, run: &Run) -> Polled {
        let progress = match self.call(self.protocol.poll(run), self.deadlines.call).await {
            Ok(answer) => self.protocol.polled(&self.site, run, &answer),
            Err(call_error) => Err(call_error),
        };
        let outcome = match progress {
            Ok(Progress::Is(polled)) => Ok(polled),
            Ok(Progress::Collect(request)) => match self.call(request, self.deadlines.call).await {
                Ok(answer) => match self.protocol.collected(&answer) {
                    Ok(output) => Ok(Polled::Done(output)),
                    // The run is over, so an answer of the protocol without a result is final. Any
                    // other answer may be an error page.
                    Err(call_error) if answer.json().is_object() => Ok(Polled::Failed(call_error)),
                    Err(call_error) => Err(call_error),
                },
                Err(call_error) => Err(call_error),
            },
            Ok(Progress::Explain(request, unexplained)) => match self.call(request, self.deadlines.call).await {
                Ok(_) => Ok(Polled::Failed(unexplained)),
                // An answer with a status is the expected explanation.
                Err(call_error) if call_error.status.is_some() => Ok(Polled::Failed(call_error)),
                Err(call_error) => Err(call_error),
            },
            Err(call_error) => Err(call_error),
        };
        // The work was accepted. Only the download failed.
        let settled = |call_error| CallError { maybe_accepted: false, ..self.shown(call_error) };
        match outcome.map_err(settled) {
            Ok(Polled::Failed(call_error)) => Polled::Failed(settled(call_error)),
            Ok(polled) => polled,
            // If an accepted run no longer exists, the provider lost it. The request was not wrong.
            Err(call_error) if matches!(call_error.status, Some(404 | 410)) => {
                Polled::Failed(CallError { class: Class::Unavailable, ..call_error })
            }
            // If the state cannot be determined now, the run continues. The caller's own deadline
            // ends the polling.
            Err(call_error) if call_error.is_retryable() => Polled::Unavailable(call_error),
            Err(call_error) => Polled::Failed(call_error),
        }
    }

    /// Requests the cancellation of a run once. The call may be repeated.
    pub async fn cancel(&self, run: &Run) -> Cancellation {
        let Some(request) = self.protocol.cancel(run) else {
            return Cancellation::Unsupported;
        };
        match self.send(request, self.deadlines.call, ANSWER_MAX).await {
            Ok(answer) => match self.protocol.canceled(&answer) {
                Cancellation::Failed(call_error) => Cancellation::Failed(self.shown(call_error)),
                other => other,
            },
            Err(call_error) => Cancellation::Failed(call_error),
        }
    }

    /// Searches for the run of an order whose submit has an unknown outcome. Also returns
    /// `Ok(None)` if the protocol cannot find runs.
    ///
    /// # Errors
    ///
    /// If the provider could not be reached. Try again later.
    pub async fn find(&self, order: &Order) -> Result<Option<Run>, CallError> {
        let Some(request) = self.protocol.search(&self.site, order) else {
            return Ok(None);
        };
        let answer = self.call(request, self.deadlines.call).await?;
        Ok(self.protocol.found(&self.site, order, &answer))
    }

    /// Fetches the result of an order for `media`. A download is free of charge and may be
    /// repeated.
    ///
    /// # Errors
    ///
    /// A retryable error if the result is incomplete, too large, or not of the ordered kind. (Some
    /// providers return error pages with status 200.)
    pub async fn fetch(&self, media: Media, output: &Output) -> Result<Artifact, CallError> {
        self.open(media, output).await?.whole().await
    }

    /// Like [`fetch`](Self::fetch), in chunks.
    ///
    /// # Errors
    ///
    /// Those of [`fetch`](Self::fetch).
    pub async fn open(&self, media: Media, output: &Output) -> Result<Incoming, CallError> {
        match output {
            Output::Inline(bytes) => Incoming::new(media, bytes.clone()),
            Output::Remote(url) => {
                let opened = self.download(media, url.clone()).await;
                let body = opened.map_err(|call_error| CallError { maybe_accepted: false, ..call_error })?;
                Incoming::from(media, body).await
            }
        }
    }

    async fn download(&self, media: Media, mut url: Url) -> Result<Body, CallError> {
        let deadline = match media {
            Media::Image => self.deadlines.download,
            Media::Video => self.deadlines.download * VIDEO_PATIENCE,
        };
        for _ in 0..=REDIRECTS_MAX {
            let request = Request::get(url.clone()).with(ACCEPT, HeaderValue::from_static("*/*"));
            // The key is never sent to storage hosts, even within the provider's own domain.
            let with_key = self.protocol.serves_results() && self.site.is_at_home(&url);
            let call = self.outbound(request, deadline, 0, with_key);
            let opened = self.client.open_for(self.operator.as_ref(), call).await.map_err(|error| lost(&error))?;
            // The status identifies the error.
            let answer = Answer { status: opened.status, headers: opened.headers, body: Bytes::new() };
            match answer.status.as_u16() {
                200..=299 => return Ok(opened.body),
                301 | 302 | 303 | 307 | 308 => {
                    let target = answer.headers.get(LOCATION).and_then(|it| it.to_str().ok());
                    let target = target.and_then(|it| url.join(it).ok());
                    url = target
                        .ok_or_else(|| CallError::new(Class::Unavailable, "its result's redirect leads nowhere"))?;
                }
                429 => return Err(answer.call_error(None, "its result cannot be fetched yet")),
                _ => {
                    return Err(
                        answer.call_error(Some(Class::Unavailable), "its result cannot be fetched, or has expired")
                    );
                }
            }
        }
        Err(CallError::new(Class::Unavailable, "its result is behind too many redirects"))
    }

    /// Makes one call of the protocol. An answer other than 2xx is an error.
    async fn call(&self, request: Request, deadline: Duration) -> Result<Answer, CallError> {
        self.call_for(request, deadline, ANSWER_MAX).await
    }

    /// Like [`call`](Self::call), with a limit on the size of the answer.
    async fn call_for(&self, request: Request, deadline: Duration, answer_max: usize) -> Result<Answer, CallError> {
        let answer = self.send(request, deadline, answer_max).await?;
        match answer.status.is_success() {
            true => Ok(answer),
            false => Err(self.shown(self.protocol.call_error(&answer))),
        }
    }

    async fn send(&self, request: Request, deadline: Duration, answer_max: usize) -> Result<Answer, CallError> {
        let is_download = request.method == Method::GET;
        // The URLs of a run are stored, and may belong to a former base URL of the connection. Its
        // host must not learn the present key. All other URLs are built from the present base.
        let with_key = self.site.trusts(&request.url);
        let call = self.outbound(request, deadline, answer_max, with_key);
        let answer = self.client.send_for(self.operator.as_ref(), call).await.map_err(|error| lost(&error))?;
        let Inbound { status, headers, body, truncated } = answer;
        match truncated {
            true if is_download => Err(CallError::new(Class::Unavailable, "its answer is too large")),
            true => Err(CallError::new(Class::Unavailable, "its answer is too large").maybe_accepted()),
            false => Ok(Answer { status, headers, body }),
        }
    }

    fn outbound(&self, request: Request, deadline: Duration, response_limit: usize, with_key: bool) -> Outbound {
        let Request { method, url, mut headers, body } = request;
        if with_key {
            self.protocol.authorize(self.key.as_ref(), &mut headers);
        }
        Outbound { method, url, headers, body, deadline, response_limit }
    }

    fn shown(&self, call_error: CallError) -> CallError {
        call_error.shown(self.key.as_ref())
    }
}

/// Adds the idempotency key to the request.
fn keyed(request: Request, key: &str) -> Result<Request, CallError> {
    let key = HeaderValue::from_str(key);
    let key = key.map_err(|_| CallError::new(Class::Runtime, "the idempotency key cannot stand in a header"))?;
    Ok(request.with(HeaderName::from_static("idempotency-key"), key))
}

#[cfg(test)]
mod tests {
    use egress::ClientConfig;

    use super::*;

    #[test]
    fn a_base_of_the_operator_is_written_as_the_provider_writes_its_own() {
        let route = |kind, base: &str| {
            let base = Some(base.parse().expect("a URL"));
            let endpoint = Endpoint { kind, managed: ManagedProtocol::OpenAi, base, key: ApiKey::new("key") };
            let client = Client::new(ClientConfig::default()).expect("a client");
            let provider = Provider::new(endpoint, client, Deadlines::default()).expect("an endpoint");
            provider.site.url("/tasks").to_string()
        };
        // Most providers document the version as part of the base URL ...
        for (base, there) in [
            ("http://proxy", "http://proxy/v1/tasks"),
            ("http://proxy/", "http://proxy/v1/tasks"),
            ("http://proxy/v1/", "http://proxy/v1/tasks"),
            ("http://proxy/openai", "http://proxy/openai/tasks"),
        ] {
            assert_eq!(route(ProviderKind::OpenAi, base), there, "{base}");
        }
        // ... and some as part of the routes.
        for kind in [ProviderKind::BlackForestLabs, ProviderKind::Runway] {
            for base in ["http://proxy", "http://proxy/", "http://proxy/v1", "http://proxy/v1/"] {
                assert_eq!(route(kind, base), "http://proxy/v1/tasks", "{base}");
            }
            for base in ["http://proxy/vendor", "http://proxy/vendor/", "http://proxy/vendor/v1"] {
                assert_eq!(route(kind, base), "http://proxy/vendor/v1/tasks", "{base}");
            }
        }
    }
}
