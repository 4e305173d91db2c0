//! What lists return with `view=summary` (docs/reference/conventions.md#short-views).

use serde::Serialize;
use utoipa::ToSchema;

/// An Action, a model or a Recipe in short.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub struct CatalogEntry {
    /// Handle, for paths and requests.
    pub key: String,
    /// Name for people.
    pub name: String,
    /// What it is or makes, in one line.
    pub summary: String,
}

impl CatalogEntry {
    /// An entry whose summary is the first line of `text`.
    pub fn new(key: String, name: &str, text: &str) -> Self {
        Self { key, name: name.to_owned(), summary: text.lines().next().unwrap_or_default().to_owned() }
    }
}
