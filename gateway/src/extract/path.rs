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

/// The parameters of a path. What is wrong with one is told when it is asked for, after the credential.
pub struct PathText(Option<Vec<(String, String)>>);

impl<S: Send + Sync> FromRequestParts<S> for PathText {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let params = RawPathParams::from_request_parts(parts, state).await.ok();
        Ok(Self(params.map(|params| params.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())))
    }
}

impl PathText {
    /// The parameter `name` as what it stands for; malformed is 400 (decisions 1.3).
    pub fn parameter<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T> {
        let params = self.0.as_ref().ok_or_else(|| Problem::invalid(name, "the path must be UTF-8"))?;
        let text = params.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).unwrap_or_default();
        text.parse().map_err(|error: T::Err| Problem::invalid(name, error.to_string()))
    }
}

/// A job's id in a path: `^(?:job:)?[0-9a-fA-F-]{36}$` (specification, Jobs and Runs). Only a UUID can be there.
pub struct JobInPath(pub Option<JobId>);

impl FromStr for JobInPath {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = text.strip_prefix("job:").unwrap_or(text);
        let fits = id.len() == 36 && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        if fits { Ok(Self(uuid_of(id))) } else { Err("must be a job id or handle") }
    }
}

/// A run's id in a path: any plain id, with or without `run:`.
pub enum RunInPath {
    /// Of image or Action work; only a UUID can be there.
    Work(Option<JobId>),
    /// Of a Recipe: `recipe-<uuid>`.
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
