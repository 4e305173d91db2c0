//! The interface of an adapter: it converts between a protocol and our types, and does no I/O.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use crate::call_error::{CallError, Class};
use crate::capabilities::ProtocolCapabilities;
use crate::key::ApiKey;
use crate::order::{MaskForm, Media, Order};
use crate::outcome::{Cancellation, Output, Polled, Run};
use crate::text::TextOrder;

/// The longest delay requested by a provider that is honored.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);

/// A provider's protocol: converts orders and runs to requests, and answers to outcomes. It never
/// sends, waits or retries.
pub(crate) trait Protocol: Send + Sync {
    /// The provider's own base URL, including the version, without a trailing slash.
    fn base(&self) -> &'static str;

    /// Returns `true` if the provider documents the path of [`base`](Protocol::base) as part of its routes. It is then appended
    /// to another base URL, unless that ends with it.
    fn has_version_in_routes(&self) -> bool {
        false
    }

    /// Domains of the provider, such as regional hosts, to which the key may be sent over https in addition to the
    /// base's origin.
    fn domains(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns `true` if the protocol supports this kind of output. Every protocol supports images.
    fn makes(&self, media: Media) -> bool {
        media == Media::Image
    }

    /// The protocol's capabilities for orders of `media`.
    fn capabilities(&self, media: Media) -> ProtocolCapabilities;

    /// The form of a mask.
    fn mask_form(&self) -> MaskForm {
        MaskForm::White
    }

    /// Adds the header with `key`, and constant headers of every call.
    fn authorize(&self, key: Option<&ApiKey>, headers: &mut HeaderMap) {
        if let Some(key) = key {
            headers.insert(http::header::AUTHORIZATION, key.header("Bearer "));
        }
    }

    /// Returns `true` if results can be served by the provider's own API, which requires the key. Otherwise
    /// their URLs are signed, and the key is not sent, whatever host they name.
    fn serves_results(&self) -> bool {
        true
    }

    /// The calls that upload images before the submit. They are free of charge, so a call whose
    /// answer is lost may be repeated.
    fn uploads(&self, _site: &Site, _order: &Order) -> Result<Vec<Request>, CallError> {
        Ok(Vec::new())
    }

    /// The name by which the submit refers to an upload.
    fn uploaded(&self, _answer: &Answer) -> Result<String, CallError> {
        Err(CallError::new(Class::Runtime, "this protocol has no uploads"))
    }

    /// The call that submits `order`. It is the last step that can reject the order without cost.
    fn submit(&self, site: &Site, order: &Order, uploads: &[String]) -> Result<Request, CallError>;

    /// Interprets the successful answer to a submit. [`CallError::maybe_accepted`] applies to an error.
    fn submitted(&self, site: &Site, order: &Order, answer: &Answer) -> Result<Accepted, CallError>;

    /// Returns `true` if the protocol supports texts.
    fn writes(&self) -> bool {
        false
    }

    /// The call that requests a text.
    fn write(&self, _site: &Site, _order: &TextOrder) -> Result<Request, CallError> {
        Err(CallError::new(Class::Invalid, "its protocol has no texts"))
    }

    /// The text of a successful answer; empty if there is none. [`CallError::maybe_accepted`] applies
    /// to an error.
    fn written(&self, _answer: &Answer) -> Result<String, CallError> {
        Err(CallError::new(Class::Runtime, "this protocol has no texts"))
    }

    /// The call that polls `run`.
    fn poll(&self, run: &Run) -> Request {
        Request::get(run.poll.clone())
    }

    /// Interprets the successful answer to a poll.
    fn polled(&self, _site: &Site, _run: &Run, _answer: &Answer) -> Result<Progress, CallError> {
        Err(CallError::new(Class::Runtime, "this protocol has no runs"))
    }

    /// The result in the successful answer to [`Progress::Collect`].
    fn collected(&self, _answer: &Answer) -> Result<Output, CallError> {
        Err(CallError::new(Class::Runtime, "this protocol collects nothing"))
    }

    /// The call that cancels `run`.
    fn cancel(&self, run: &Run) -> Option<Request> {
        run.cancel.clone().map(|url| Request::new(Method::POST, url))
    }

    /// Interprets the answer to a cancellation, whatever its status.
    fn canceled(&self, answer: &Answer) -> Cancellation {
        match answer.status.as_u16() {
            200..=299 => Cancellation::Requested,
            400 | 404 | 409 | 410 => Cancellation::TooLate,
            _ => Cancellation::Failed(self.call_error(answer)),
        }
    }

    /// The call that lists runs which may include that of `order`, for protocols that can find
    /// runs.
    fn search(&self, _site: &Site, _order: &Order) -> Option<Request> {
        None
    }

    /// The run of `order` in the successful answer to a search.
    fn found(&self, _site: &Site, _order: &Order, _answer: &Answer) -> Option<Run> {
        None
    }

    /// Interprets an answer whose status is not 2xx.
    fn call_error(&self, answer: &Answer) -> CallError;
}

/// The meaning of the successful answer to a submit.
pub(crate) enum Accepted {
    /// There is a run to poll.
    Run(Run),
    /// The work is done.
    Done(Output),
    /// The work is done, and polling its run returns the result again.
    Finished(Run, Output),
}

/// The meaning of the successful answer to a poll.
pub(crate) enum Progress {
    /// The outcome is known.
    Is(Polled),
    /// The work is finished, and one more call returns the result.
    Collect(Request),
    /// The work failed, and one more call is rejected with the reason. If that gives none, this
    /// error applies.
    Explain(Request, CallError),
}

impl From<Polled> for Progress {
    fn from(polled: Polled) -> Self {
        Progress::Is(polled)
    }
}

/// The location of a provider's API.
pub(crate) struct Site {
    /// The base URL without a trailing slash.
    base: Url,
    domains: &'static [&'static str],
}

impl Site {
    pub(crate) fn new(mut base: Url, domains: &'static [&'static str]) -> Self {
        let path = base.path().trim_end_matches('/').to_owned();
        base.set_path(&path);
        base.set_query(None);
        Self { base, domains }
    }

    /// The URL of the base followed by `path`, which begins with a slash and is percent-encoded.
    pub(crate) fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        url.set_query(query);
        url
    }

    /// Parses a URL from the provider, absolute or relative to the base.
    pub(crate) fn join(&self, url: &str) -> Option<Url> {
        self.base.join(url).ok()
    }

    /// A URL from the provider for further calls, or `own` if the key must not be sent to its host.
    pub(crate) fn trusted_or(&self, url: Option<&str>, own: Url) -> Url {
        url.and_then(|url| self.join(url)).filter(|url| self.trusts(url)).unwrap_or(own)
    }

    /// Returns `true` if the URL has the base's origin.
    pub(crate) fn is_at_home(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }

    /// Returns `true` if the key may be sent to a URL: to the base's origin and, if that is in the provider's
    /// own domain, also to that domain over HTTPS.
    pub(crate) fn trusts(&self, url: &Url) -> bool {
        let within = |url: &Url, domain: &str| {
            let host = url.host_str().unwrap_or_default();
            url.scheme() == "https" && host.strip_suffix(domain).is_some_and(|it| it.is_empty() || it.ends_with('.'))
        };
        self.is_at_home(url) || self.domains.iter().any(|domain| within(&self.base, domain) && within(url, domain))
    }
}

/// A request to send. The sender adds the key.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Request {
    pub(crate) fn new(method: Method, url: Url) -> Self {
        Self { method, url, headers: HeaderMap::new(), body: Bytes::new() }
    }

    pub(crate) fn get(url: Url) -> Self {
        Self::new(Method::GET, url)
    }

    pub(crate) fn post_json(url: Url, body: &Value) -> Self {
        let body = serde_json::to_vec(body).expect("a value is JSON").into();
        Self { body, ..Self::new(Method::POST, url) }.with(CONTENT_TYPE, HeaderValue::from_static("application/json"))
    }

    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}

/// A complete answer of a provider.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Parses the body as the protocol specifies. A parse error is not a refusal: the work may have
    /// been done.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        serde_json::from_slice(&self.body).map_err(|_| self.unreadable())
    }

    /// The body as JSON, or null.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The error of an answer that does not conform to the protocol.
    pub(crate) fn unreadable(&self) -> CallError {
        CallError::new(Class::Unavailable, "its response does not conform to its protocol").maybe_accepted()
    }

    /// An error determined by the status alone, with the provider's message. 429 and 503 are sent
    /// before acceptance. After 408 and the other 5xx it is unknown whether the provider started
    /// the work (`docs/reference/providers.md#unknown-outcomes`).
    pub(crate) fn call_error(&self, class: Option<Class>, detail: impl AsRef<str>) -> CallError {
        let status = self.status.as_u16();
        let class = class.unwrap_or(match status {
            401 | 403 => Class::Authentication,
            402 => Class::OutOfCredit,
            408 | 504 => Class::Timeout,
            429 => Class::RateLimited,
            400..=499 => Class::Invalid,
            _ => Class::Unavailable,
        });
        CallError {
            status: (400..=599).contains(&status).then_some(status),
            retry_after: self.retry_after(),
            maybe_accepted: status < 400 || status == 408 || (status >= 500 && status != 503),
            ..CallError::new(class, detail)
        }
    }

    /// The value of `retry-after-ms` or else `Retry-After`: seconds, or a date relative to the
    /// answer's own date.
    fn retry_after(&self) -> Option<Duration> {
        let text = |name: &str| self.headers.get(name)?.to_str().ok();
        let date = |text: &str| chrono::DateTime::parse_from_rfc2822(text).ok();
        let milliseconds = text("retry-after-ms").and_then(|it| it.parse::<f64>().ok()).map(|it| it / 1000.0);
        let seconds = milliseconds.or_else(|| {
            let value = text(RETRY_AFTER.as_str())?;
            value.parse().ok().or_else(|| {
                let wait = date(value)? - date(text("date")?)?;
                Some(wait.num_milliseconds() as f64 / 1000.0)
            })
        });
        wait(seconds?)
    }
}

/// A requested delay in seconds, if it is valid.
pub(crate) fn wait(seconds: f64) -> Option<Duration> {
    let wait = Duration::try_from_secs_f64(seconds).ok().filter(|wait| !wait.is_zero())?;
    Some(wait.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, headers: &[(&str, &str)]) -> Answer {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        Answer { status: StatusCode::from_u16(status).unwrap(), headers: map, body: Bytes::new() }
    }

    fn seconds(headers: &[(&str, &str)]) -> Option<f64> {
        answer(429, headers).call_error(None, "").retry_after.map(|wait| wait.as_secs_f64())
    }

    #[test]
    fn every_form_of_retry_after_is_understood_and_capped() {
        assert_eq!(seconds(&[("retry-after", "7")]), Some(7.0));
        assert_eq!(seconds(&[("retry-after", "0.5")]), Some(0.5));
        assert_eq!(seconds(&[("retry-after", "9"), ("retry-after-ms", "1500")]), Some(1.5));
        let date = ("date", "Sat, 21 Nov 2026 10:00:00 GMT");
        assert_eq!(seconds(&[("retry-after", "Sat, 21 Nov 2026 10:00:30 GMT"), date]), Some(30.0));
        assert_eq!(seconds(&[("retry-after", "121")]), Some(120.0));
        for nonsense in ["-1", "0", "soon", "NaN", "inf"] {
            assert_eq!(seconds(&[("retry-after", nonsense)]), None, "{nonsense}");
        }
        assert_eq!(seconds(&[]), None);
    }

    #[test]
    fn only_a_refusal_before_acceptance_may_be_repeated() {
        let unknown = [200, 302, 408, 500, 502, 504].map(|status| answer(status, &[]).call_error(None, ""));
        assert!(unknown.iter().all(|call_error| call_error.maybe_accepted));
        let refused =
            [400, 401, 402, 403, 404, 413, 422, 429, 503].map(|status| answer(status, &[]).call_error(None, ""));
        assert!(refused.iter().all(|call_error| !call_error.maybe_accepted));
    }

    #[test]
    fn the_key_goes_to_the_base_and_its_domains_alone() {
        let trusts =
            |base: &str, url: &str| Site::new(base.parse().unwrap(), &["bfl.ai"]).trusts(&url.parse().unwrap());
        assert!(trusts("https://api.bfl.ai", "https://api.bfl.ai/x"));
        assert!(trusts("https://api.bfl.ai", "https://api.eu.bfl.ai/x"));
        assert!(trusts("http://127.0.0.1:1", "http://127.0.0.1:1/x"));
        assert!(!trusts("http://127.0.0.1:1", "http://127.0.0.1:2/x"));
        assert!(!trusts("http://127.0.0.1:1", "https://api.bfl.ai/x"));
        assert!(!trusts("https://api.bfl.ai", "http://api.eu.bfl.ai/x"));
        assert!(!trusts("https://api.bfl.ai", "https://evilbfl.ai/x"));
        assert!(!trusts("https://api.bfl.ai", "https://bfl.ai.evil.example/x"));
    }

    #[test]
    fn paths_are_put_behind_the_base() {
        let site = Site::new("http://host:1/v1/".parse().unwrap(), &[]);
        assert_eq!(site.url("/a/b?c=d").as_str(), "http://host:1/v1/a/b?c=d");
        assert_eq!(Site::new("http://host".parse().unwrap(), &[]).url("/a").as_str(), "http://host/a");
    }
}
