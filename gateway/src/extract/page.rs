//! Pages: a limit, and a cursor that is authenticated and bound to its list (docs/reference/conventions.md#cursors).

use domain::limits::CURSOR_MAX;
use domain::page::Page;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::query::QueryReader;
use crate::state::App;

/// The list that a cursor belongs to: endpoint, account and filters. `limit` is not part of it.
pub struct ListScope(String);

impl ListScope {
    /// The list of `endpoint` for `account` under `filters`.
    pub fn new(endpoint: &str, account: &domain::id::AccountUid, filters: &[&str]) -> Self {
        // Each part is preceded by its length, so that different lists never have the same text.
        let mut text = format!("{endpoint} {account}");
        for filter in filters {
            text.push_str(&format!(" {}:{filter}", filter.len()));
        }
        Self(text)
    }
}

pub struct PageRequest<P> {
    /// Maximum number of items.
    pub limit: u32,
    /// Position to continue after.
    pub after: Option<P>,
}

/// Reads `limit` and `cursor`; reports violations to `query`.
pub fn page_request<P: DeserializeOwned>(
    app: &App,
    query: &mut QueryReader<'_>,
    scope: &ListScope,
    default: u32,
    max: u32,
) -> PageRequest<P> {
    let limit = query.integer("limit", 1..=max).unwrap_or(default);
    let after = query.text("cursor", CURSOR_MAX).and_then(|cursor| {
        let position = app.keys.cursor().open(&scope.0, &cursor).and_then(|bytes| serde_json::from_slice(&bytes).ok());
        if position.is_none() {
            query.refuse("cursor", "is invalid or belongs to a different list");
        }
        position
    });
    PageRequest { limit, after }
}

/// Cuts `items`, of which one more than `limit` was loaded, to a page. `position` returns the position of an item.
pub fn page<T, P: Serialize>(
    app: &App,
    scope: &ListScope,
    limit: u32,
    items: &mut Vec<T>,
    position: impl Fn(&T) -> P,
) -> Page {
    let has_more = items.len() > limit as usize;
    items.truncate(limit as usize);
    let next_cursor = items.last().filter(|_| has_more).map(|last| {
        let position = serde_json::to_vec(&position(last)).expect("a position serializes");
        app.keys.cursor().seal(&scope.0, &position)
    });
    Page { limit, has_more, next_cursor }
}
