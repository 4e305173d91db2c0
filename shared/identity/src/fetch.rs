//! JSON documents of other servers, through the egress guard.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use egress::{Client, Inbound, OperatorHost, Outbound, SendError};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use url::Url;

/// Time limit of a call, with waiting for its turn.
const DEADLINE: Duration = Duration::from_secs(5);
/// How many calls of a [`Fetcher`] are made at once.
const AT_ONCE: usize = 8;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("canvas-service/", env!("CARGO_PKG_VERSION")));

/// The reason why there is no document. The texts contain neither a URL nor what a server sent.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("the server cannot be reached")]
    Send(#[source] SendError),
    #[error("the server took longer than 5 s")]
    Timeout,
    #[error("the server answered with status {0}")]
    Status(StatusCode),
    #[error("the answer is too large")]
    TooLarge,
    #[error("the answer is not the expected JSON")]
    Form,
    #[error("the server has failed just now and is not asked again yet")]
    Again,
}

/// How long a server that failed is left alone: longer than it takes those who wait for the same answer to fail as well.
const PAUSE: Duration = Duration::from_secs(1);

/// When a server failed last.
#[derive(Debug, Default)]
pub(crate) struct Failed(Option<Instant>);

impl Failed {
    /// What `asking` is answered.
    ///
    /// # Errors
    ///
    /// As `asking`; [`FetchError::Again`] without asking just after a failure.
    pub(crate) async fn remember<T, E: From<FetchError>>(
        &mut self,
        asking: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        if self.0.is_some_and(|at| at.elapsed() < PAUSE) {
            return Err(FetchError::Again.into());
        }
        let answer = asking.await;
        self.0 = answer.is_err().then(Instant::now);
        answer
    }
}

/// A document and the headers that came with it.
#[derive(Debug)]
pub struct Fetched {
    pub headers: HeaderMap,
    pub document: Value,
}

/// Calls other servers: within 5 s each, eight at once, without retries and redirects. Cheap to clone; clones share their limits.
#[derive(Clone)]
pub struct Fetcher {
    client: Client,
    operator: Option<OperatorHost>,
    limit: usize,
    turns: Arc<Semaphore>,
}

impl Fetcher {
    /// Reads documents of at most `limit` bytes. A URL on `operator`'s host is called whatever it resolves to.
    pub fn new(client: Client, operator: Option<OperatorHost>, limit: usize) -> Self {
        Self { client, operator, limit, turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Fetches a document, with a bearer token if there is one.
    ///
    /// # Errors
    ///
    /// Unless the server answers 200 with JSON within the limits.
    pub async fn get(&self, url: &Url, bearer: Option<&str>) -> Result<Fetched, FetchError> {
        let bearer = bearer.map(|token| HeaderValue::try_from(format!("Bearer {token}")));
        let bearer = bearer.transpose().map_err(|_| FetchError::Form)?;
        let answer = self.call(Method::GET, url, bearer, Bytes::new()).await?;
        match answer.status {
            StatusCode::OK => Ok(Fetched { document: json(&answer)?, headers: answer.headers }),
            status => Err(FetchError::Status(status)),
        }
    }

    /// Posts a form and returns status and document, of errors as well.
    ///
    /// # Errors
    ///
    /// Unless the server answers with JSON within the limits.
    pub async fn post(
        &self,
        url: &Url,
        authorization: Option<HeaderValue>,
        form: String,
    ) -> Result<(StatusCode, Value), FetchError> {
        let answer = self.call(Method::POST, url, authorization, form.into()).await?;
        match json(&answer) {
            Ok(document) => Ok((answer.status, document)),
            Err(_) if answer.status != StatusCode::OK => Err(FetchError::Status(answer.status)),
            Err(error) => Err(error),
        }
    }

    async fn call(
        &self,
        method: Method,
        url: &Url,
        authorization: Option<HeaderValue>,
        body: Bytes,
    ) -> Result<Inbound, FetchError> {
        let until = Instant::now() + DEADLINE;
        let mut headers = HeaderMap::from_iter([(ACCEPT, JSON), (USER_AGENT, AGENT)]);
        if method == Method::POST {
            headers.insert(CONTENT_TYPE, FORM);
        }
        if let Some(mut authorization) = authorization {
            authorization.set_sensitive(true);
            headers.insert(AUTHORIZATION, authorization);
        }
        let turn = timeout_at(until, self.turns.acquire()).await.map_err(|_| FetchError::Timeout)?;
        let _turn = turn.map_err(|_| FetchError::Timeout)?;
        let deadline = until.saturating_duration_since(Instant::now());
        let call = Outbound { method, url: url.clone(), headers, body, deadline, response_limit: self.limit };
        let answer = self.client.send_for(self.operator.as_ref(), call).await.map_err(|error| match error {
            SendError::Timeout => FetchError::Timeout,
            other => FetchError::Send(other),
        })?;
        if answer.truncated { Err(FetchError::TooLarge) } else { Ok(answer) }
    }
}

/// The JSON of an answer, whose media type says so: `application/json` or `application/…+json`.
fn json(answer: &Inbound) -> Result<Value, FetchError> {
    let media_type = answer.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"));
    let document = if is_json { serde_json::from_slice(&answer.body).ok() } else { None };
    document.ok_or(FetchError::Form)
}
