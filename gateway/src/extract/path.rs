//! Ids in paths, percent-encoded or not.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::RawPathParams;

use crate::problem::{Problem, Result};

/// The path parameter `name` as what it stands for; malformed is 400 (decisions 1.3).
pub fn parameter<T: FromStr<Err: Display>>(params: &RawPathParams, name: &str) -> Result<T> {
    let text = params.iter().find(|(key, _)| *key == name).map(|(_, value)| value).unwrap_or_default();
    text.parse().map_err(|error: T::Err| Problem::invalid(name, error.to_string()))
}

/// A job's id in a path: a UUID, with or without `job:` (specification, Jobs and Runs).
pub struct JobInPath(pub domain::id::JobId);

impl FromStr for JobInPath {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        uuid_of(text.strip_prefix("job:").unwrap_or(text)).map(Self).ok_or("must be a job id or handle")
    }
}

/// A run's id in a path: any plain id, with or without `run:`. Only a UUID can name an image or Action run.
pub struct RunInPath(pub Option<domain::id::JobId>);

impl FromStr for RunInPath {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = text.strip_prefix("run:").unwrap_or(text);
        if domain::id::is_plain_id(id) { Ok(Self(uuid_of(id))) } else { Err("must be a run id or handle") }
    }
}

fn uuid_of(text: &str) -> Option<domain::id::JobId> {
    (text.len() == 36).then(|| uuid::Uuid::try_parse(text).ok()).flatten().map(domain::id::JobId)
}
