//! Pages: a limit, and a cursor that is authenticated and bound to its list (docs/reference/conventions.md#cursors).

use domain::limits::{ASSET_PAGE_MAX, CANVAS_PAGE_MAX, CURSOR_MAX, PAGE_DEFAULT, PAGE_MAX};
use domain::page::Page;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};

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

/// The parameters of a page of at most `MAX` items.
#[derive(Default, Deserialize)]
pub struct PageQuery<const MAX: u32> {
    limit: Option<u32>,
    cursor: Option<String>,
}

impl<const MAX: u32> IntoParams for PageQuery<MAX> {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let parameter = |name: &str, description: String, schema: ObjectBuilder| {
            let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Query).schema(Some(schema));
            parameter.required(Required::False).description(Some(description)).build()
        };
        let limit = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(MAX));
        let cursor = ObjectBuilder::new().schema_type(Type::String).max_length(Some(CURSOR_MAX));
        vec![
            parameter("limit", format!("Items in a page. Default: {}.", MAX.min(PAGE_DEFAULT)), limit),
            parameter("cursor", "`nextCursor` of the previous page.".into(), cursor),
        ]
    }
}

/// The parameters of a page of most lists.
pub type Paged = PageQuery<PAGE_MAX>;
/// The parameters of a page of assets.
pub type PagedAssets = PageQuery<ASSET_PAGE_MAX>;
/// The parameters of a page of canvases.
pub type PagedCanvases = PageQuery<CANVAS_PAGE_MAX>;

pub struct PageRequest<P> {
    /// Maximum number of items.
    pub limit: u32,
    /// Position to continue after.
    pub after: Option<P>,
}

/// The position that a cursor of this list holds.
pub fn position_of<P: DeserializeOwned>(app: &App, scope: &ListScope, cursor: &str) -> Option<P> {
    let position = app.keys.cursor().decrypt(&scope.0, cursor)?;
    serde_json::from_slice(&position).ok()
}

/// The cursor of a position in this list.
pub fn cursor_of(app: &App, scope: &ListScope, position: &impl Serialize) -> String {
    app.keys.cursor().encrypt(&scope.0, &serde_json::to_vec(position).expect("a position serializes"))
}

/// The violation of a cursor that holds no position of its list.
pub const FOREIGN_CURSOR: &str = "is invalid or belongs to a different list";

/// Reads `limit` and `cursor`; reports violations to `query`.
pub fn page_request<P: DeserializeOwned, const MAX: u32>(
    app: &App,
    query: &mut QueryReader<'_>,
    scope: &ListScope,
) -> PageRequest<P> {
    let PageQuery::<MAX> { limit, cursor } = query.read().unwrap_or_default();
    let after = cursor.and_then(|cursor| {
        let position = position_of(app, scope, &cursor);
        if position.is_none() {
            query.refuse("cursor", FOREIGN_CURSOR);
        }
        position
    });
    PageRequest { limit: limit.unwrap_or(MAX.min(PAGE_DEFAULT)), after }
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
    let next_cursor = items.last().filter(|_| has_more).map(|last| cursor_of(app, scope, &position(last)));
    Page { limit, has_more, next_cursor }
}
