//! The Recipe that a request names.

use db::PgConnection;
use domain::Violation;
use domain::id::{AccountUid, RecipeId};
use domain::recipe::{RecipeRecord, Version};

use crate::{Error, Result};

/// A Recipe that the account can see. An absent Recipe is not found; an absent version is unprocessable and checked by
/// [`version`](Self::version) alone, so that a replay does not depend on it (docs/reference/recipes.md#versions).
pub struct RequestedRecipe {
    newest: RecipeRecord,
}

impl RequestedRecipe {
    /// Looks up the newest version.
    pub async fn find(conn: &mut PgConnection, account: &AccountUid, id: &RecipeId) -> Result<Self> {
        let newest = db::recipes::find(conn, account, id, None).await?.ok_or(Error::NotFound("recipe"))?;
        Ok(Self { newest })
    }

    /// The version that the request names, or the newest.
    pub async fn version(
        self,
        conn: &mut PgConnection,
        account: &AccountUid,
        version: Option<&str>,
    ) -> Result<RecipeRecord> {
        let Some(version) = version else { return Ok(self.newest) };
        let unknown = || Error::Unprocessable(vec![Violation::new("version", "is not a version of this Recipe")]);
        let version: Version = version.parse().map_err(|_| unknown())?;
        db::recipes::find(conn, account, &self.newest.id, Some(version)).await?.ok_or_else(unknown)
    }
}
