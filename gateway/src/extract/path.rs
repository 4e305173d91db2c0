//! Ids in paths, percent-encoded or not.

use std::convert::Infallible;
use std::fmt::Display;
use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use domain::id::JobId;
use domain::recipe::run::RunId;
use http::request::Parts;
use uuid::Uuid;

use crate::problem::{Problem, Result};

/// The parameters of a path. Violations are reported when a parameter is read, which is after the credential check.
pub struct PathText(Option<Vec<(String, String)>>);

impl<S: Send + Sync> FromRequestParts<S> for PathText {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let params = RawPathParams::from_request_parts(parts, state).await.ok();
        Ok(Self(params.map(|params| params.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())))
    }
}

impl PathText {
    /// Returns `true` if the route has a parameter `name`.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().flatten().any(|(key, _)| key == name)
    }

    /// The parameter `name` in its type; 400 when malformed.
    pub fn parameter<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T> {
        let params = self.0.as_ref().ok_or_else(|| Problem::invalid(name, "the path must be UTF-8"))?;
        let text = params.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).unwrap_or_default();
        text.parse().map_err(|error: T::Err| Problem::invalid(name, error.to_string()))
    }
}

/// A job id in a path: `^(?:job:)?[0-9a-fA-F-]{36}$` (docs/reference/jobs.md#job-and-run-ids). `None` when it matches but is not
/// a UUID, so that no such job can exist.
pub struct JobInPath(pub Option<JobId>);

impl FromStr for JobInPath {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = text.strip_prefix("job:").unwrap_or(text);
        let fits = id.len() == 36 && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        if fits { Ok(Self(uuid_of(id))) } else { Err("must be a job id or handle") }
    }
}

/// A run id in a path: any plain id, with or without `run:`.
pub enum RunInPath {
    /// A run of image or Action work; `None` when the id is not a UUID, so that no such run can exist.
    Work(Option<JobId>),
    /// A Recipe run: `recipe-<uuid>`.
    Recipe(RunId),
}

impl FromStr for RunInPath {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = text.strip_prefix("run:").unwrap_or(text);
        match RunId::parse(id) {
            Some(run) => Ok(Self::Recipe(run)),
            None if domain::id::is_plain_id(id) => Ok(Self::Work(uuid_of(id))),
            None => Err("must be a run id or handle"),
        }
    }
}

fn uuid_of(text: &str) -> Option<JobId> {
    (text.len() == 36).then(|| Uuid::try_parse(text).ok()).flatten().map(JobId)
}
