//! What an adapter is: a protocol in both directions, without I/O.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use crate::fault::{Class, Fault};
use crate::key::ApiKey;
use crate::order::{Media, Order};
use crate::outcome::{Cancellation, Output, Polled, Run};
use crate::promises::Promises;
use crate::text::TextOrder;

/// The longest that a provider's wish to wait is followed (providers.md 0.4).
const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);

/// One provider's protocol: requests out of orders and runs, outcomes out of answers. It never sends, waits or repeats.
pub(crate) trait Protocol: Send + Sync {
    /// The base URL of the provider itself, version included, without a slash at its end.
    fn base(&self) -> &'static str;

    /// Whether the provider's documents count the path of [`base`](Protocol::base) to the routes, so that another base gets it, too,
    /// unless it ends with it already.
    fn has_version_in_routes(&self) -> bool {
        false
    }

    /// Domains of the provider besides the base's origin to which the key may go, over https; e.g. regional hosts.
    fn domains(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether it has a way to ask for this; every one has pictures.
    fn makes(&self, media: Media) -> bool {
        media == Media::Picture
    }

    /// What it promises of orders for `media`.
    fn promises(&self, media: Media) -> Promises;

    /// The headers that carry `key`, and constants that go with every call.
    fn authorize(&self, key: Option<&ApiKey>, headers: &mut HeaderMap) {
        if let Some(key) = key {
            headers.insert(http::header::AUTHORIZATION, key.header("Bearer "));
        }
    }

    /// Whether results may lie on the provider's own API, which wants the key. Where they never do their URLs are signed, and the
    /// key stays here whatever host they name.
    fn serves_results(&self) -> bool {
        true
    }

    /// Calls that bring the pictures to the provider before the submit. They cost nothing, so that one whose answer is
    /// lost may be repeated.
    fn uploads(&self, _site: &Site, _order: &Order) -> Result<Vec<Request>, Fault> {
        Ok(Vec::new())
    }

    /// What an upload is called in the submit.
    fn uploaded(&self, _answer: &Answer) -> Result<String, Fault> {
        Err(Fault::new(Class::Runtime, "this protocol has no uploads"))
    }

    /// The call that submits `order`; the last thing that can refuse it for free.
    fn submit(&self, site: &Site, order: &Order, uploads: &[String]) -> Result<Request, Fault>;

    /// What a submit's good answer means. A fault is taken as [`Fault::maybe_accepted`] says.
    fn submitted(&self, site: &Site, order: &Order, answer: &Answer) -> Result<Accepted, Fault>;

    /// Whether it has a way to ask for texts.
    fn writes(&self) -> bool {
        false
    }

    /// The call that asks for a text.
    fn write(&self, _site: &Site, _order: &TextOrder) -> Result<Request, Fault> {
        Err(Fault::new(Class::Invalid, "its protocol has no texts"))
    }

    /// The text of a good answer; empty when there is none. A fault is taken as [`Fault::maybe_accepted`] says.
    fn written(&self, _answer: &Answer) -> Result<String, Fault> {
        Err(Fault::new(Class::Runtime, "this protocol has no texts"))
    }

    /// The call that asks how `run` is.
    fn poll(&self, run: &Run) -> Request {
        Request::get(run.poll.clone())
    }

    /// What a poll's good answer means.
    fn polled(&self, _site: &Site, _run: &Run, _answer: &Answer) -> Result<Progress, Fault> {
        Err(Fault::new(Class::Runtime, "this protocol has no runs"))
    }

    /// What the good answer to [`Progress::Collect`] holds.
    fn collected(&self, _answer: &Answer) -> Result<Output, Fault> {
        Err(Fault::new(Class::Runtime, "this protocol collects nothing"))
    }

    /// The call that stops `run`.
    fn cancel(&self, run: &Run) -> Option<Request> {
        run.cancel.clone().map(|url| Request::new(Method::POST, url))
    }

    /// What a cancel's answer means, whatever its status.
    fn canceled(&self, answer: &Answer) -> Cancellation {
        match answer.status.as_u16() {
            200..=299 => Cancellation::Requested,
            400 | 404 | 409 | 410 => Cancellation::TooLate,
            _ => Cancellation::Failed(self.fault(answer)),
        }
    }

    /// The call whose answer lists runs among which that of `order` may be, for protocols that promise to find them.
    fn search(&self, _site: &Site, _order: &Order) -> Option<Request> {
        None
    }

    /// The run of `order` in a search's good answer.
    fn found(&self, _site: &Site, _order: &Order, _answer: &Answer) -> Option<Run> {
        None
    }

    /// What an answer other than 2xx means.
    fn fault(&self, answer: &Answer) -> Fault;
}

/// What a submit's good answer means.
pub(crate) enum Accepted {
    /// There is a run.
    Run(Run),
    /// It is done.
    Done(Output),
}

/// What a poll's good answer means.
pub(crate) enum Progress {
    /// An outcome.
    Is(Polled),
    /// It is finished, and what came of it is behind one more call.
    Collect(Request),
    /// It failed, and one more call is refused with the reason; with the fault when that says nothing.
    Explain(Request, Fault),
}

impl From<Polled> for Progress {
    fn from(polled: Polled) -> Self {
        Progress::Is(polled)
    }
}

/// Where a protocol is spoken.
pub(crate) struct Site {
    /// Without a slash at its end.
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

    /// The base and `path`, which begins with a slash and is well encoded.
    pub(crate) fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        url.set_query(query);
        url
    }

    /// Reads a URL that the provider sent, absolute or relative to the base.
    pub(crate) fn join(&self, url: &str) -> Option<Url> {
        self.base.join(url).ok()
    }

    /// A URL of the provider's for further calls, or `own` where its host is none that may get the key.
    pub(crate) fn trusted_or(&self, url: Option<&str>, own: Url) -> Url {
        url.and_then(|url| self.join(url)).filter(|url| self.trusts(url)).unwrap_or(own)
    }

    /// Whether it is on the base's own origin.
    pub(crate) fn is_at_home(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }

    /// Whether the key may go there: to the base's origin; from the provider's own domain to that domain, over https.
    pub(crate) fn trusts(&self, url: &Url) -> bool {
        let within = |url: &Url, domain: &str| {
            let host = url.host_str().unwrap_or_default();
            url.scheme() == "https" && host.strip_suffix(domain).is_some_and(|it| it.is_empty() || it.ends_with('.'))
        };
        self.is_at_home(url) || self.domains.iter().any(|domain| within(&self.base, domain) && within(url, domain))
    }
}

/// A call to make; the key is added by who sends it.
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

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The body as what the protocol says it is. It is no refusal: what was done by then is not known.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        serde_json::from_slice(&self.body).map_err(|_| self.unreadable())
    }

    /// The body as JSON, or null.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The fault of an answer that the protocol does not know.
    pub(crate) fn unreadable(&self) -> Fault {
        Fault::new(Class::Unavailable, "its answer is none that its protocol knows").maybe_accepted()
    }

    /// A fault by status alone, the provider's words with it. 429 and 503 refuse before acceptance; the other 5xx, and 408,
    /// do not say how far the provider had got (reliability.md, Provider submits).
    pub(crate) fn fault(&self, class: Option<Class>, detail: impl AsRef<str>) -> Fault {
        let status = self.status.as_u16();
        let class = class.unwrap_or(match status {
            401 | 403 => Class::Authentication,
            402 => Class::OutOfCredit,
            408 | 504 => Class::Timeout,
            429 => Class::RateLimited,
            400..=499 => Class::Invalid,
            _ => Class::Unavailable,
        });
        Fault {
            status: (400..=599).contains(&status).then_some(status),
            retry_after: self.retry_after(),
            maybe_accepted: status < 400 || status == 408 || (status >= 500 && status != 503),
            ..Fault::new(class, detail)
        }
    }

    /// `retry-after-ms`, then `Retry-After`: seconds, or a date against the answer's own.
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

/// A wish to wait so many seconds, when it is one.
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
        answer(429, headers).fault(None, "").retry_after.map(|wait| wait.as_secs_f64())
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
        let unknown = [200, 302, 408, 500, 502, 504].map(|status| answer(status, &[]).fault(None, ""));
        assert!(unknown.iter().all(|fault| fault.maybe_accepted));
        let refused = [400, 401, 402, 403, 404, 413, 422, 429, 503].map(|status| answer(status, &[]).fault(None, ""));
        assert!(refused.iter().all(|fault| !fault.maybe_accepted));
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
