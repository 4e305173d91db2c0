//! What requests say of an Element, and the rules of it (decisions 7.1, 7.3).

use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;
use std::str::FromStr;

use domain::Violation;
use domain::element::{Content, ElementType};
use domain::id::{AccountUid, AssetId, ElementCollectionId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::extract::json::items;
use crate::problem::{Problem, Result};

/// What a new version says: all of it, nothing is taken over from the one before.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ElementContent {
    /// For people and prompts.
    #[schema(min_length = 1, max_length = 160)]
    pub name: String,
    /// What it is a reference of.
    #[serde(rename = "type")]
    pub kind: ElementType,
    /// Plain ids of image assets of the account.
    #[schema(max_items = 8)]
    pub source_asset_ids: Vec<AssetId>,
    /// Appended to prompts that use it.
    #[schema(max_length = 2000, nullable = false)]
    pub guidelines: Option<String>,
}

impl ElementContent {
    /// As it is stored.
    pub fn content(self) -> Content {
        Content { name: self.name, kind: self.kind, sources: self.source_asset_ids, guidelines: self.guidelines }
    }
}

/// One Element.
#[derive(Serialize, ToSchema)]
pub struct ElementRead {
    /// With its newest version.
    pub element: domain::element::Element,
}

/// What no schema says of content as it came: pictures or guidelines, and no picture twice. `at` is the path of its fields.
pub fn content_violations(at: &str, content: &Value) -> Vec<Violation> {
    let sources = &content["sourceAssetIds"];
    let mut violations = repeated::<AssetId>(&format!("{at}sourceAssetIds"), sources);
    let is_blank = |guidelines: &Value| guidelines.as_str().is_some_and(|text| text.trim().is_empty());
    if sources.as_array().is_some_and(Vec::is_empty) && content.get("guidelines").is_none_or(is_blank) {
        let message = "an element needs guidelines, source assets, or both";
        violations
            .extend(["sourceAssetIds", "guidelines"].map(|field| Violation::new(format!("{at}{field}"), message)));
    }
    violations
}

/// Ids that were given before; one that is malformed equals none.
pub fn repeated<T: FromStr + Eq + Hash>(field: &str, ids: &Value) -> Vec<Violation> {
    let mut seen = HashSet::new();
    let ids = items(ids).iter().map(|id| id.as_str()?.parse::<T>().ok());
    let again = ids.enumerate().filter_map(|(index, id)| (!seen.insert(id?)).then_some(index));
    again.map(|index| Violation::new(format!("{field}[{index}]"), "was given before")).collect()
}

/// The pictures that the account does not have.
pub async fn unknown_images(
    conn: &mut db::PgConnection,
    account: &AccountUid,
    field: &str,
    sources: &[AssetId],
) -> Result<Vec<Violation>> {
    let images = db::assets::images(conn, account, sources).await?;
    Ok(unknown(field, "image asset of the account", sources, |id| images.contains_key(id)))
}

/// The collections that the account does not have. Those that it has stay until the transaction ends.
pub async fn unknown_collections(
    conn: &mut db::PgConnection,
    account: &AccountUid,
    ids: &[ElementCollectionId],
) -> Result<Vec<Violation>> {
    let held: HashSet<_> = db::element_collections::hold(conn, account, ids).await?.into_iter().collect();
    Ok(unknown("collectionIds", "collection of the account", ids, |id| held.contains(id)))
}

fn unknown<T: Display>(field: &str, what: &str, ids: &[T], known: impl Fn(&T) -> bool) -> Vec<Violation> {
    let unknown = ids.iter().enumerate().filter(|(_, id)| !known(id));
    unknown.map(|(index, id)| Violation::new(format!("{field}[{index}]"), format!("`{id}` is no {what}"))).collect()
}

/// Refuses ids that do not resolve, all of them at once (decisions 1.3).
pub fn require_known(unknown: Vec<Violation>) -> Result<()> {
    if unknown.is_empty() { Ok(()) } else { Err(Problem::Unprocessable(unknown)) }
}
