//! Requests that are being made.

use std::fmt::Display;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use domain::API_ROOT;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use crate::answer::Answer;
use crate::problem::{Error, Problem, Result};
use crate::transport::{BodyStream, Payload, Unreachable};
use crate::{Client, retry};

/// Characters that need not be encoded in a part of a path or query: RFC 3986's unreserved characters, and those of handles.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':').remove(b'@');

/// The bytes of an answer that are read at most: more than the largest file that the service serves.
const ANSWER_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// A request of an operation whose answer is a `T`. It is sent when it is awaited.
///
/// A read, a dry run, and a mutation with an idempotency key, is repeated up to four times after a failure that may pass (429, 5xx, no
/// answer), with growing pauses that honour `Retry-After`. The repetition has the same key and body, so it has one effect: the
/// service replays what it accepted. A mutation without a key is sent once.
pub struct Call<T> {
    client: Client,
    method: Method,
    path: String,
    headers: HeaderMap,
    payload: Payload,
    is_repeatable: bool,
    invalid: Option<String>,
    of: PhantomData<fn() -> T>,
}

impl<T> Call<T> {
    pub(crate) fn new(client: &Client, method: Method, template: &str, segments: &[&str]) -> Self {
        // The page of the contract is outside of the API's root.
        let mut path = if template == "/docs" { String::new() } else { API_ROOT.to_owned() };
        let mut segments = segments.iter();
        for part in template.split('/').skip(1) {
            path.push('/');
            match part.starts_with('{') {
                true => path.extend(utf8_percent_encode(segments.next().copied().unwrap_or_default(), PLAIN)),
                false => path.push_str(part),
            }
        }
        Self::to(client, method, path)
    }

    /// A request to a path with a query, as it is.
    pub(crate) fn to(client: &Client, method: Method, path: String) -> Self {
        Self {
            client: client.clone(),
            method,
            path,
            headers: HeaderMap::new(),
            payload: Payload::default(),
            is_repeatable: false,
            invalid: None,
            of: PhantomData,
        }
    }

    /// Adds a parameter to the query. One that repeats is added for each value.
    pub fn query(mut self, name: &str, value: impl Display) -> Self {
        let mark = if self.path.contains('?') { '&' } else { '?' };
        let value = value.to_string();
        self.path.extend([&mark.to_string(), name, "="]);
        self.path.extend(utf8_percent_encode(&value, PLAIN));
        self
    }

    /// Adds a parameter to the query if there is a value.
    pub fn query_if(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Adds a header.
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        match HeaderValue::from_str(value) {
            Ok(value) => _ = self.headers.append(name, value),
            Err(_) => self.invalid = Some(format!("{name} cannot have the value {value:?}")),
        }
        self
    }

    /// Adds a preference (RFC 7240), such as `wait=20`, `return=minimal` or `handling=lenient`.
    pub fn prefer(self, preference: &str) -> Self {
        self.header(HeaderName::from_static("prefer"), preference)
    }

    /// Asks for an answer only if it differs from the one with this `ETag`; otherwise it is a 304 without a body.
    pub fn if_none_match(self, etag: &str) -> Self {
        self.header(IF_NONE_MATCH, etag)
    }

    /// Sets a JSON body. If it has an `idempotencyKey`, or is a dry run (`validateOnly`), the request may be repeated.
    pub fn json(mut self, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(bytes) => {
                #[derive(serde::Deserialize)]
                #[serde(rename_all = "camelCase")]
                struct Repeatable<'a> {
                    #[serde(borrow)]
                    idempotency_key: Option<std::borrow::Cow<'a, str>>,
                    validate_only: Option<bool>,
                }
                self.is_repeatable |= serde_json::from_slice::<Repeatable<'_>>(&bytes)
                    .is_ok_and(|body| body.idempotency_key.is_some() || body.validate_only == Some(true));
                self.body("application/json", bytes.into())
            }
            Err(error) => {
                self.invalid = Some(format!("the body is not JSON: {error}"));
                self
            }
        }
    }

    /// Sets a body.
    pub fn body(self, media_type: &str, bytes: Bytes) -> Self {
        self.bytes(bytes).header(CONTENT_TYPE, media_type)
    }

    /// Sets a body whose `Content-Type` is set by itself.
    pub fn bytes(mut self, bytes: Bytes) -> Self {
        self.payload.bytes = bytes;
        self
    }

    /// Sets the idempotency key of an operation that takes it as a header.
    pub fn key(mut self, key: &str) -> Self {
        self.is_repeatable = true;
        self.header(HeaderName::from_static("idempotency-key"), key)
    }

    /// Sets a callback for the number of bytes of the body that have been sent, where the transport knows it.
    pub fn on_sent(mut self, sent: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.payload.sent = Some(Arc::new(sent));
        self
    }

    /// The same request, with its answer read as another type.
    pub fn cast<U>(self) -> Call<U> {
        let Self { client, method, path, headers, payload, is_repeatable, invalid, .. } = self;
        Call { client, method, path, headers, payload, is_repeatable, invalid, of: PhantomData }
    }

    /// Method and path, for messages.
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Sends the request and returns the successful answer with its body unread.
    pub async fn stream(self) -> Result<Response<BodyStream>> {
        let mut attempt = 0;
        loop {
            match self.attempt().await {
                Ok(answer) => return Ok(answer),
                Err(error) => self.pause(error, &mut attempt).await?,
            }
        }
    }

    /// Sends the request, and calls `piece` with each part of the body of the answer as it arrives. Returns the answer without it.
    pub async fn read(self, mut piece: impl FnMut(&Response<()>, Bytes) -> Result<()>) -> Result<Response<()>> {
        let (head, mut body) = self.stream().await?.into_parts();
        let head = Response::from_parts(head, ());
        while let Some(next) = body.next().await {
            let next = next.map_err(|error| Unreachable(error.to_string()))?;
            piece(&head, next)?;
        }
        Ok(head)
    }

    /// Waits before the next attempt, or fails with `error` when there is none.
    async fn pause(&self, error: Error, attempt: &mut u32) -> Result<()> {
        *attempt += 1;
        let may_repeat = self.client.retries && (self.method == Method::GET || self.is_repeatable);
        match retry::pause(&error, *attempt).filter(|_| may_repeat) {
            Some(pause) => tokio::time::sleep(pause).await,
            None => return Err(error),
        }
        Ok(())
    }

    async fn attempt(&self) -> Result<Response<BodyStream>> {
        if let Some(invalid) = &self.invalid {
            return Err(Error::Unexpected(invalid.clone()));
        }
        let mut request = Request::new(self.payload.clone());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() =
            self.path.parse().map_err(|_| Error::Unexpected(format!("{} is not a path", self.path)))?;
        request.headers_mut().extend(self.client.headers.clone());
        request.headers_mut().extend(self.headers.clone());
        request.headers_mut().entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        let answer = self.client.transport.send(request).await?;
        let status = answer.status();
        if status.is_success() || status == http::StatusCode::NOT_MODIFIED {
            return Ok(answer);
        }
        let (head, body) = answer.into_parts();
        let body = collect(body).await?;
        Err(Problem::from_response(status, &head.headers, &body))
    }
}

async fn collect(mut body: BodyStream) -> Result<Bytes> {
    let mut whole = Vec::new();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|error| Unreachable(error.to_string()))?;
        if whole.len() + piece.len() > ANSWER_BYTES_MAX {
            return Err(Error::Unexpected("an answer of more than 1 GiB".into()));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.into())
}

impl<T: 'static> IntoFuture for Call<T> {
    type Output = Result<Answer<T>>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    /// Sends the request. An answer that breaks off counts as none, and is repeated where the request may be.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let mut attempt = 0;
            loop {
                match whole(self.attempt().await).await {
                    Ok((head, body)) => return Ok(Answer::new(head.status, head.headers, body)),
                    Err(error) => self.pause(error, &mut attempt).await?,
                }
            }
        })
    }
}

async fn whole(answer: Result<Response<BodyStream>>) -> Result<(http::response::Parts, Bytes)> {
    let (head, body) = answer?.into_parts();
    Ok((head, collect(body).await?))
}
