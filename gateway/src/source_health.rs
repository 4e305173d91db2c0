//! The health of an Element's source images (docs/reference/elements.md#source-health).

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use blob::BlobKey;
use domain::element::{Content, SourceHealth, SourceStatus};
use domain::id::{AccountUid, AssetId};
use futures_util::{StreamExt, stream};
use tokio::time::{Instant, timeout_at};

use crate::problem::Result;
use crate::state::App;

/// Concurrent requests to the object store.
const AT_ONCE: usize = 16;
/// Maximum wait for an answer of the object store; later answers count as unknown.
const PATIENCE: Duration = Duration::from_secs(2);

/// For each image whether it is stored; `None` when the object store did not answer.
pub struct Sources(HashMap<AssetId, Option<bool>>);

impl Sources {
    /// Checks all images that `contents` of one account name, each once. Holds no database connection meanwhile.
    pub async fn check<'a>(app: &App, owner: &AccountUid, contents: impl Iterator<Item = &'a Content>) -> Result<Self> {
        let named: HashSet<&AssetId> = contents.flat_map(|content| &content.sources).collect();
        if named.is_empty() {
            return Ok(Self(HashMap::new()));
        }
        let named: Vec<AssetId> = named.into_iter().cloned().collect();
        let blobs = db::assets::images(&mut *app.connection().await?, owner, &named).await?;
        let keys: HashSet<_> = blobs.values().copied().collect();
        let deadline = Instant::now() + PATIENCE;
        let answers: HashMap<_, _> = stream::iter(keys)
            .map(async |key| {
                let answer = timeout_at(deadline, app.blobs.exists(BlobKey(key))).await;
                (key, answer.ok().and_then(|answer| answer.inspect_err(unanswered).ok()))
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        // An image without a row is missing, whatever the store holds.
        let state = |id: AssetId| (blobs.get(&id).map_or(Some(false), |key| answers[key]), id);
        Ok(Self(named.into_iter().map(state).map(|(state, id)| (id, state)).collect()))
    }

    /// The source health of one version.
    pub fn health(&self, content: &Content) -> SourceHealth {
        let state = |id: &AssetId| self.0.get(id).copied().flatten();
        let unavailable: Vec<AssetId> = content.sources.iter().filter(|id| state(id) == Some(false)).cloned().collect();
        let status = match content.sources.iter().any(|id| state(id).is_none()) {
            _ if !unavailable.is_empty() => SourceStatus::Unavailable,
            true => SourceStatus::Unknown,
            false => SourceStatus::Available,
        };
        SourceHealth { status, unavailable_source_asset_ids: unavailable }
    }
}

fn unanswered(error: &blob::Error) {
    tracing::warn!(error = service::chain(error), "the object store could not check whether an image exists");
}

#[cfg(test)]
mod tests {
    use domain::element::ElementType;

    use super::*;

    fn id(text: &str) -> AssetId {
        AssetId::from_stored(text.into())
    }

    #[test]
    fn one_missing_image_outweighs_what_is_not_known() {
        let sources =
            Sources(HashMap::from([(id("there"), Some(true)), (id("gone"), Some(false)), (id("dark"), None)]));
        for (named, status, unavailable) in [
            (&[][..], SourceStatus::Available, &[][..]),
            (&["there"], SourceStatus::Available, &[]),
            (&["there", "dark"], SourceStatus::Unknown, &[]),
            (&["there", "gone", "dark"], SourceStatus::Unavailable, &["gone"]),
        ] {
            let content = Content {
                name: "n".into(),
                kind: ElementType::Style,
                sources: named.iter().map(|name| id(name)).collect(),
                guidelines: None,
            };
            let unavailable_source_asset_ids = unavailable.iter().map(|name| id(name)).collect();
            assert_eq!(sources.health(&content), SourceHealth { status, unavailable_source_asset_ids }, "{named:?}");
        }
    }
}
