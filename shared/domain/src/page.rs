//! Pages of lists, and the short form of what they list (docs/reference/conventions.md#short-views).
//!
//! A page in short and one in full have the same members. An empty page is therefore the same text in both forms, and a
//! union of them reads it as the full form.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Position of a page in its list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Page {
    /// Maximum number of items of this page.
    #[schema(minimum = 1)]
    pub limit: u32,
    /// `true` if more items follow.
    pub has_more: bool,
    /// Cursor of the next page, valid with unchanged filters.
    #[schema(max_length = 8192, required = true)]
    pub next_cursor: Option<String>,
}

/// An Action, a model or a Recipe in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CatalogEntry {
    /// Handle, for paths and requests.
    pub key: String,
    /// Name for people.
    pub name: String,
    /// Summary in one line.
    pub summary: String,
}

impl CatalogEntry {
    /// An entry whose summary is the first line of `text`.
    pub fn new(key: String, name: &str, text: &str) -> Self {
        Self { key, name: name.to_owned(), summary: text.lines().next().unwrap_or_default().to_owned() }
    }
}
