//! Successful answers.

use std::fmt;
use std::marker::PhantomData;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::Timestamp;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::problem::{Error, Result};

/// The time of an answer: by the clock of the service, else by that of this machine.
pub(crate) fn time_of(headers: &HeaderMap) -> Timestamp {
    let date = headers.get("date").and_then(|value| value.to_str().ok());
    let there = date.and_then(|date| DateTime::parse_from_rfc2822(date).ok());
    #[expect(clippy::disallowed_methods, reason = "an answer within a gateway has no date, and the same clock")]
    let time = there.map_or_else(Utc::now, |there| there.to_utc());
    time.into()
}

/// A successful answer whose JSON body is a `T`.
pub struct Answer<T> {
    /// 200, 201, 202, 206 or 304.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as it was received.
    pub body: Bytes,
    of: PhantomData<fn() -> T>,
}

impl<T> Answer<T> {
    pub(crate) fn new(status: StatusCode, headers: HeaderMap, body: Bytes) -> Self {
        Self { status, headers, body, of: PhantomData }
    }

    /// A header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The time of the answer: by the clock of the service, else by that of this machine.
    pub fn time(&self) -> Timestamp {
        time_of(&self.headers)
    }

    /// The body as JSON; `null` when it is none, as of a 304.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as text or JSON of another type.
    pub fn cast<U>(self) -> Answer<U> {
        Answer::new(self.status, self.headers, self.body)
    }
}

impl<T: DeserializeOwned> Answer<T> {
    /// The body as a value. Members that this client does not know are ignored.
    pub fn value(&self) -> Result<T> {
        serde_json::from_slice(&self.body).map_err(|error| Error::Unexpected(error.to_string()))
    }
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status, self.text())
    }
}
