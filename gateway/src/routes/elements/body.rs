//! What requests say of an Element, and the rules of it (decisions 7.1, 7.3).

use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;

use domain::Violation;
use domain::element::{Content, ElementRecord, ElementType};
use domain::id::{AccountUid, AssetId, ElementCollectionId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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

/// What no schema says: pictures or guidelines, and no picture twice. `at` is the path of the fields.
pub fn content_violations(at: &str, sources: &[AssetId], guidelines: Option<&str>) -> Vec<Violation> {
    let mut violations = repeated(&format!("{at}sourceAssetIds"), sources);
    if sources.is_empty() && guidelines.is_none_or(|text| text.trim().is_empty()) {
        let message = "an element needs guidelines, source assets, or both";
        violations
            .extend(["sourceAssetIds", "guidelines"].map(|field| Violation::new(format!("{at}{field}"), message)));
    }
    violations
}

/// Ids that were given before.
pub fn repeated<T: Eq + Hash>(field: &str, ids: &[T]) -> Vec<Violation> {
    let mut seen = HashSet::new();
    let again = ids.iter().enumerate().filter(|(_, id)| !seen.insert(*id));
    again.map(|(index, _)| Violation::new(format!("{field}[{index}]"), "was given before")).collect()
}

/// Refuses pictures that the account does not have.
pub async fn require_images(
    conn: &mut db::PgConnection,
    account: &AccountUid,
    field: &str,
    sources: &[AssetId],
) -> Result<()> {
    let images = db::assets::images(conn, account, sources).await?;
    require_known(field, "image asset of the account", sources, |id| images.contains_key(id))
}

/// Puts an Element into collections of the account, and nothing else.
pub async fn organize(conn: &mut db::PgConnection, element: &ElementRecord, ids: &[ElementCollectionId]) -> Result<()> {
    let held: HashSet<_> = db::element_collections::hold(conn, &element.owner, ids).await?.into_iter().collect();
    require_known("collectionIds", "collection of the account", ids, |id| held.contains(id))?;
    Ok(db::elements::organize(conn, &element.owner, &element.id, ids).await?)
}

fn require_known<T: Display>(field: &str, what: &str, ids: &[T], known: impl Fn(&T) -> bool) -> Result<()> {
    let unknown: Vec<Violation> = ids
        .iter()
        .enumerate()
        .filter(|(_, id)| !known(id))
        .map(|(index, id)| Violation::new(format!("{field}[{index}]"), format!("`{id}` is no {what}")))
        .collect();
    if unknown.is_empty() { Ok(()) } else { Err(Problem::Unprocessable(unknown)) }
}
