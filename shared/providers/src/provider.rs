//! The one place that sends: it adds the key, caps size and time, and decides what a lost answer means.

use std::time::Duration;

use bytes::Bytes;
use domain::model::ProviderKind;
use egress::{Body, Client, Inbound, OperatorHost, Outbound, SendError};
use http::header::{ACCEPT, LOCATION};
use http::{HeaderName, HeaderValue, Method};
use url::Url;

use crate::fault::{Class, Fault};
use crate::incoming::Incoming;
use crate::key::ApiKey;
use crate::order::{Media, Order};
use crate::outcome::{Artifact, Cancellation, Output, Polled, Run, Submission};
use crate::promises::Promises;
use crate::protocol::{Accepted, Answer, Progress, Protocol, Request, Site};
use crate::protocols::{self, ManagedProtocol};
use crate::text::TextOrder;

/// Bytes of an answer that holds a result in base64, with room for what stands around it: of one that could also have been
/// uploaded (decisions 1.5).
const ANSWER_MAX: usize = domain::limits::UPLOAD_MAX as usize / 3 * 4 + 1024 * 1024;

/// Bytes of an answer that holds a text: many times what an output of a Recipe may have (24000 characters), for what reasoning
/// models put beside it.
const TEXT_ANSWER_MAX: usize = 1024 * 1024;

/// Redirects of a download that are followed, each vetted anew (decisions 14.2 has the same for imports).
const REDIRECTS_MAX: usize = 3;

/// See [`Deadlines::download`].
const VIDEO_PATIENCE: u32 = 5;

/// How long a call may take, connecting and the answer's body included.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// A submit whose answer is the result (providers.md 1.2: not under 300 s, better 600 s).
    pub result: Duration,
    /// A call whose answer is a text (providers.md 0.4).
    pub text: Duration,
    /// Every other call: submits to a queue, polls, cancels.
    pub call: Duration,
    /// The download of a result; of a video, which may be ten times as large, five times as long.
    pub download: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        let [result, text, call, download] = [600, 300, 60, 120].map(Duration::from_secs);
        Self { result, text, call, download }
    }
}

/// Whom to speak to, and how.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Whose protocol.
    pub kind: ProviderKind,
    /// Which of the managed protocols; ignored for third parties.
    pub managed: ManagedProtocol,
    /// The operator's own base URL; required for `managed`. One without a path gets the path of the provider's own
    /// (`/v1`), and one of a provider whose documents have that in their routes gets it in any case. Its host is admitted for
    /// these calls, whatever it resolves to, over plain http too (decisions 15.3).
    pub base: Option<Url>,
    /// Required for third parties.
    pub key: Option<ApiKey>,
}

/// Why an endpoint cannot be spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// A third party without a key.
    #[error("this provider needs a key")]
    NoKey,
    /// `managed` without a base URL: the embedded runtime is not behind this crate.
    #[error("this provider needs a base URL")]
    NoBase,
    /// The base URL is no http or https URL, or carries credentials or a fragment.
    #[error("the base URL must be http or https, without credentials and fragment")]
    Base,
}

/// The base URL that an operator wrote.
///
/// # Errors
///
/// [`ProviderError::Base`] when it is no http or https URL, or carries credentials or a fragment.
pub fn base_url(text: &str) -> Result<Url, ProviderError> {
    let url = Url::parse(text).map_err(|_| ProviderError::Base)?;
    OperatorHost::of(&url).map(|_| url).ok_or(ProviderError::Base)
}

/// A provider that can be asked. Cheap to make; one for each connection.
pub struct Provider {
    protocol: &'static dyn Protocol,
    site: Site,
    operator: Option<OperatorHost>,
    key: Option<ApiKey>,
    client: Client,
    deadlines: Deadlines,
}

impl Provider {
    /// A provider behind `endpoint`, called through `client`.
    ///
    /// # Errors
    ///
    /// [`ProviderError`] when the endpoint lacks what its kind needs.
    pub fn new(endpoint: Endpoint, client: Client, deadlines: Deadlines) -> Result<Self, ProviderError> {
        let Endpoint { kind, managed, base, key } = endpoint;
        if kind == ProviderKind::Managed && base.is_none() {
            return Err(ProviderError::NoBase);
        }
        if kind != ProviderKind::Managed && key.is_none() {
            return Err(ProviderError::NoKey);
        }
        let protocol = protocols::of(kind, managed);
        let own = Url::parse(protocol.base()).map_err(|_| ProviderError::Base)?;
        let (base, operator) = match base {
            None => (own, None),
            Some(mut base) => {
                let operator = OperatorHost::of(&base).ok_or(ProviderError::Base)?;
                let path = base.path().trim_end_matches('/').to_owned();
                if path.is_empty() || protocol.has_version_in_routes() && !path.ends_with(own.path()) {
                    base.set_path(&format!("{path}{}", own.path()));
                }
                (base, Some(operator))
            }
        };
        Ok(Self { protocol, site: Site::new(base, protocol.domains()), operator, key, client, deadlines })
    }

    /// What it promises of orders for `media`.
    pub fn promises(&self, media: Media) -> Promises {
        self.protocol.promises(media)
    }

    /// Submits an order, once. What the model does not declare is refused before anything is sent.
    ///
    /// Dropping the future leaves the outcome unknown, as a crash does: record the attempt before the call.
    pub async fn submit(&self, order: &Order) -> Submission {
        let request = match self.prepare(order).await {
            Ok(request) => request,
            // An upload is no submit: nothing was begun, however it failed.
            Err(fault) => return Submission::Refused(Fault { maybe_accepted: false, ..fault }),
        };
        let request = match keyed(request, &order.idempotency_key) {
            Ok(request) => request,
            Err(fault) => return Submission::Refused(fault),
        };
        let deadline = if self.promises(order.media()).inline { self.deadlines.result } else { self.deadlines.call };
        let outcome = match self.call(request, deadline).await {
            Ok(answer) => self.protocol.submitted(&self.site, order, &answer).map_err(|fault| self.shown(fault)),
            Err(fault) => Err(fault),
        };
        match outcome {
            Ok(Accepted::Done(output)) => Submission::Done(output),
            Ok(Accepted::Run(run)) => Submission::Accepted(run),
            Err(fault) if fault.maybe_accepted => Submission::Unknown(fault),
            Err(fault) => Submission::Refused(fault),
        }
    }

    async fn prepare(&self, order: &Order) -> Result<Request, Fault> {
        let media = order.media();
        if !self.protocol.makes(media) {
            return Err(Fault::new(Class::Invalid, "its protocol has no videos"));
        }
        order.check(self.promises(media).picture_bytes_max)?;
        let mut uploads = Vec::new();
        for upload in self.protocol.uploads(&self.site, order)? {
            let answer = self.call(upload, self.deadlines.download).await?;
            uploads.push(self.protocol.uploaded(&answer).map_err(|fault| self.shown(fault))?);
        }
        self.protocol.submit(&self.site, order, &uploads)
    }

    /// Asks for a text, once. What the model does not declare is refused before anything is sent.
    ///
    /// Dropping the future leaves the outcome unknown, as a crash does: record the attempt before the call.
    ///
    /// # Errors
    ///
    /// When there is no text; [`Fault::maybe_accepted`] says whether one may have been written, and charged, all the same, so
    /// that it must not be asked for again.
    pub async fn write(&self, order: &TextOrder) -> Result<String, Fault> {
        order.check(self.promises(Media::Picture).picture_bytes_max)?;
        let request = keyed(self.protocol.write(&self.site, order)?, &order.idempotency_key)?;
        let answer = self.call_for(request, self.deadlines.text, TEXT_ANSWER_MAX).await?;
        let text = self.protocol.written(&answer).map_err(|fault| self.shown(fault))?;
        match text.trim() {
            "" => Err(answer.fault(Some(Class::Unavailable), "it made no text")),
            text => Ok(text.to_owned()),
        }
    }

    /// Asks how a run is, once.
    pub async fn poll(&self, run: &Run) -> Polled {
        let progress = match self.call(self.protocol.poll(run), self.deadlines.call).await {
            Ok(answer) => self.protocol.polled(&self.site, run, &answer),
            Err(fault) => Err(fault),
        };
        let outcome = match progress {
            Ok(Progress::Is(polled)) => Ok(polled),
            Ok(Progress::Collect(request)) => match self.call(request, self.deadlines.call).await {
                Ok(answer) => self.protocol.collected(&answer).map(Polled::Done),
                Err(fault) => Err(fault),
            },
            Ok(Progress::Explain(request, unexplained)) => match self.call(request, self.deadlines.call).await {
                Ok(_) => Ok(Polled::Failed(unexplained)),
                // An answer with a status is the explanation.
                Err(fault) if fault.status.is_some() => Ok(Polled::Failed(fault)),
                Err(fault) => Err(fault),
            },
            Err(fault) => Err(fault),
        };
        // Whether the work was accepted is no question any more.
        let settled = |fault| Fault { maybe_accepted: false, ..self.shown(fault) };
        match outcome.map_err(settled) {
            Ok(Polled::Failed(fault)) => Polled::Failed(settled(fault)),
            Ok(polled) => polled,
            // A run that was accepted and is not there any more is the provider's doing, not a mistake of ours.
            Err(fault) if matches!(fault.status, Some(404 | 410)) => {
                Polled::Failed(Fault { class: Class::Unavailable, ..fault })
            }
            // A state that cannot be learned now is no end of the run; the caller's own deadline ends the asking.
            Err(fault) if fault.is_retryable() => Polled::Trouble(fault),
            Err(fault) => Polled::Failed(fault),
        }
    }

    /// Asks to stop a run, once; it may be asked again.
    pub async fn cancel(&self, run: &Run) -> Cancellation {
        let Some(request) = self.protocol.cancel(run) else {
            return Cancellation::Unsupported;
        };
        match self.send(request, self.deadlines.call, ANSWER_MAX, true).await {
            Ok(answer) => match self.protocol.canceled(&answer) {
                Cancellation::Failed(fault) => Cancellation::Failed(self.shown(fault)),
                other => other,
            },
            Err(fault) => Cancellation::Failed(fault),
        }
    }

    /// Looks for the run of an order whose submit has an unknown outcome. `Ok(None)` also where the protocol promises
    /// no look-up.
    ///
    /// # Errors
    ///
    /// When the provider could not be asked; ask again later.
    pub async fn find(&self, order: &Order) -> Result<Option<Run>, Fault> {
        let Some(request) = self.protocol.search(&self.site, order) else {
            return Ok(None);
        };
        let answer = self.call(request, self.deadlines.call).await?;
        Ok(self.protocol.found(&self.site, order, &answer))
    }

    /// Fetches the result of an order for `media`. A download costs nothing and may be repeated.
    ///
    /// # Errors
    ///
    /// A retryable fault when it does not arrive whole, is too large, or is not what was ordered; providers answer
    /// error pages with status 200.
    pub async fn fetch(&self, media: Media, output: &Output) -> Result<Artifact, Fault> {
        self.open(media, output).await?.whole().await
    }

    /// The same, piece by piece.
    ///
    /// # Errors
    ///
    /// As [`fetch`](Self::fetch).
    pub async fn open(&self, media: Media, output: &Output) -> Result<Incoming, Fault> {
        match output {
            Output::Inline(bytes) => Incoming::of(media, bytes.clone()),
            Output::Remote(url) => {
                let opened = self.download(media, url.clone()).await;
                let body = opened.map_err(|fault| Fault { maybe_accepted: false, ..fault })?;
                Incoming::from(media, body).await
            }
        }
    }

    async fn download(&self, media: Media, mut url: Url) -> Result<Body, Fault> {
        let deadline = match media {
            Media::Picture => self.deadlines.download,
            Media::Video => self.deadlines.download * VIDEO_PATIENCE,
        };
        for _ in 0..=REDIRECTS_MAX {
            let request = Request::get(url.clone()).with(ACCEPT, HeaderValue::from_static("*/*"));
            // Never to storage hosts, be they under the provider's own domain.
            let with_key = self.protocol.serves_results() && self.site.is_at_home(&url);
            let call = self.outbound(request, deadline, 0, with_key);
            let opened = self.client.open_for(self.operator.as_ref(), call).await.map_err(|error| lost(&error))?;
            // What is wrong is told by the status.
            let answer = Answer { status: opened.status, headers: opened.headers, body: Bytes::new() };
            match answer.status.as_u16() {
                200..=299 => return Ok(opened.body),
                301 | 302 | 303 | 307 | 308 => {
                    let target = answer.headers.get(LOCATION).and_then(|it| it.to_str().ok());
                    let target = target.and_then(|it| url.join(it).ok());
                    url =
                        target.ok_or_else(|| Fault::new(Class::Unavailable, "its result's redirect leads nowhere"))?;
                }
                429 => return Err(answer.fault(None, "its result cannot be fetched yet")),
                _ => return Err(answer.fault(Some(Class::Unavailable), "its result cannot be fetched, or has expired")),
            }
        }
        Err(Fault::new(Class::Unavailable, "its result is behind too many redirects"))
    }

    /// One call of the protocol; an answer other than 2xx is a fault.
    async fn call(&self, request: Request, deadline: Duration) -> Result<Answer, Fault> {
        self.call_for(request, deadline, ANSWER_MAX).await
    }

    /// The same with an answer of at most so many bytes.
    async fn call_for(&self, request: Request, deadline: Duration, answer_max: usize) -> Result<Answer, Fault> {
        let answer = self.send(request, deadline, answer_max, true).await?;
        match answer.status.is_success() {
            true => Ok(answer),
            false => Err(self.shown(self.protocol.fault(&answer))),
        }
    }

    async fn send(
        &self,
        request: Request,
        deadline: Duration,
        answer_max: usize,
        with_key: bool,
    ) -> Result<Answer, Fault> {
        let is_download = request.method == Method::GET;
        let call = self.outbound(request, deadline, answer_max, with_key);
        let answer = self.client.send_for(self.operator.as_ref(), call).await.map_err(|error| lost(&error))?;
        let Inbound { status, headers, body, truncated } = answer;
        match truncated {
            true if is_download => Err(Fault::new(Class::Unavailable, "its answer is too large")),
            true => Err(Fault::new(Class::Unavailable, "its answer is too large").maybe_accepted()),
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

    fn shown(&self, fault: Fault) -> Fault {
        fault.shown(self.key.as_ref())
    }
}

/// The request with its idempotency key.
fn keyed(request: Request, key: &str) -> Result<Request, Fault> {
    let key = HeaderValue::from_str(key);
    let key = key.map_err(|_| Fault::new(Class::Runtime, "the idempotency key cannot stand in a header"))?;
    Ok(request.with(HeaderName::from_static("idempotency-key"), key))
}

/// What an answer that did not come means. Only what is proven to be before the send was surely not accepted.
pub(crate) fn lost(error: &SendError) -> Fault {
    match error {
        SendError::Refused(_) => Fault::new(Class::Runtime, "its address is none that may be called"),
        SendError::AddressRefused => {
            Fault::new(Class::Runtime, "its name resolves to an address that may not be called")
        }
        SendError::Dns(_) => Fault::new(Class::Unavailable, "its name does not resolve"),
        SendError::Connect(_) => Fault::new(Class::Unavailable, "it accepts no connection"),
        SendError::Tls(_) => Fault::new(Class::Unavailable, "no secure connection to it can be made"),
        SendError::Timeout => Fault::new(Class::Timeout, "").maybe_accepted(),
        SendError::Protocol(_) => {
            Fault::new(Class::Timeout, "it closed the connection without an answer").maybe_accepted()
        }
        SendError::Body(_) => Fault::new(Class::Unavailable, "its answer broke off").maybe_accepted(),
    }
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
        // Documents of most have the version in the base ...
        for (base, there) in [
            ("http://proxy", "http://proxy/v1/tasks"),
            ("http://proxy/", "http://proxy/v1/tasks"),
            ("http://proxy/v1/", "http://proxy/v1/tasks"),
            ("http://proxy/openai", "http://proxy/openai/tasks"),
        ] {
            assert_eq!(route(ProviderKind::OpenAi, base), there, "{base}");
        }
        // ... those of some in the routes (providers.md 6.2, 7.2).
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
