//! The content of an Element in requests, and its rules (docs/reference/elements.md#content-rules).

use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;

use domain::Violation;
use domain::element::{Content, ElementType};
use domain::id::{AccountUid, AssetId, ElementCollectionId};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::extract::check::Check;
use crate::problem::{Problem, Result};

/// Content of a new version: guidelines, images, or both. It is complete: nothing is copied from the previous version.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ElementContent {
    /// Name, shown to people and used in prompts.
    #[schema(min_length = 1, max_length = 160)]
    pub name: String,
    /// Type of what the Element represents.
    #[serde(rename = "type")]
    pub kind: ElementType,
    /// Plain ids of image assets of the account. None is named twice.
    #[schema(max_items = 8)]
    pub source_asset_ids: Vec<AssetId>,
    /// Guidelines, appended to prompts that use the Element.
    #[schema(max_length = 2000)]
    pub guidelines: Option<String>,
}

impl ElementContent {
    /// Checks what a schema cannot express: an Element has images or guidelines, and each image once. `at` is the path of the
    /// fields.
    pub fn check(self, check: &mut Check, at: &str) -> Content {
        note_repeated(check, &format!("{at}sourceAssetIds"), &self.source_asset_ids);
        if self.source_asset_ids.is_empty() && self.guidelines.as_ref().is_none_or(|text| text.trim().is_empty()) {
            for field in ["sourceAssetIds", "guidelines"] {
                check.note(format!("{at}{field}"), "an element needs guidelines, source assets, or both");
            }
        }
        let Self { name, kind, source_asset_ids: sources, guidelines } = self;
        Content { name, kind, sources, guidelines }
    }
}

/// Notes ids that were given before.
pub fn note_repeated<T: Eq + Hash>(check: &mut Check, field: &str, ids: &[T]) {
    let mut seen = HashSet::new();
    for (index, id) in ids.iter().enumerate() {
        check.note_if(!seen.insert(id), format!("{field}[{index}]"), "was given before");
    }
}

/// Violations of images that the account does not have.
pub async fn unknown_images(
    conn: &mut db::PgConnection,
    account: &AccountUid,
    field: &str,
    sources: &[AssetId],
) -> Result<Vec<Violation>> {
    let images = db::assets::images(conn, account, sources).await?;
    Ok(unknown(field, "an image asset of the account", sources, |id| images.contains_key(id)))
}

/// Violations of collections that the account does not have. Existing ones are locked until the transaction ends.
pub async fn unknown_collections(
    conn: &mut db::PgConnection,
    account: &AccountUid,
    ids: &[ElementCollectionId],
) -> Result<Vec<Violation>> {
    let held: HashSet<_> = db::element_collections::hold(conn, account, ids).await?.into_iter().collect();
    Ok(unknown("collectionIds", "a collection of the account", ids, |id| held.contains(id)))
}

fn unknown<T: Display>(field: &str, what: &str, ids: &[T], known: impl Fn(&T) -> bool) -> Vec<Violation> {
    let unknown = ids.iter().enumerate().filter(|(_, id)| !known(id));
    unknown.map(|(index, id)| Violation::new(format!("{field}[{index}]"), format!("`{id}` is not {what}"))).collect()
}

/// Rejects the request when there are unresolved ids, reporting all of them.
pub fn require_known(unknown: Vec<Violation>) -> Result<()> {
    if unknown.is_empty() { Ok(()) } else { Err(Problem::Unprocessable(unknown)) }
}
