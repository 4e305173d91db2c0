//! The delegation of a Recipe run: what it may still do for its account (docs/reference/recipes.md#delegation).
//!
//! **Guarantee.** The same check applies to everything that a run does: its steps, its end, the jobs of its images, and the
//! checks in between.
//!
//! **Mechanism.** The check reads without locks, as late as possible in a transaction that has locked the canvas. A revocation
//! that commits after the check takes effect at the next check, as if it had come a moment later.

use domain::account::Surface;
use domain::canvas::{AccessRole, Actor};
use domain::id::AccountUid;
use domain::recipe::run::RunId;
use sqlx::PgConnection;
use tracing::instrument;
use uuid::Uuid;

use crate::Result;
use crate::error::known;

/// A run's right to act for its account at this moment.
#[derive(Debug)]
pub struct Delegation {
    /// The account that started the run.
    pub account: AccountUid,
    /// The token that started the run.
    pub token_id: Uuid,
    /// Actor of the run's activity.
    pub actor: Actor,
    /// `true` if the account may still read the canvas.
    pub is_readable: bool,
    /// `true` if the account may still write to the canvas.
    pub is_writable: bool,
    /// `true` if token, session, account and role are still valid.
    pub holds: bool,
}

impl Delegation {
    /// Reads the delegation of the run of `id`; `None`: there is no such run.
    pub async fn read(conn: &mut PgConnection, id: RunId) -> Result<Option<Self>> {
        let run = sqlx::query!(
            r#"SELECT r.account_uid, r.token_id, t.surface, t.label,
                      (t.revoked_at IS NULL AND s.revoked_at IS NULL AND a.enabled
                       AND (t.parent IS NULL OR EXISTS (
                           SELECT FROM tokens p WHERE p.id = t.parent AND p.revoked_at IS NULL
                       ))) AS "delegated!",
                      CASE WHEN c.owner_uid = r.account_uid THEN 'owner' ELSE h.role END AS role
               FROM recipe_runs r
               JOIN tokens t ON t.id = r.token_id
               JOIN account_sessions s ON s.id = t.session_id
               JOIN accounts a ON a.uid = r.account_uid
               LEFT JOIN canvases c ON c.key = r.canvas_key
               LEFT JOIN canvas_shares h ON h.canvas_key = r.canvas_key AND h.account_uid = r.account_uid
               WHERE r.id = $1"#,
            id.0
        )
        .fetch_optional(conn)
        .await?;
        let Some(run) = run else { return Ok(None) };
        let role = run.role.as_deref().map(|role| known::<AccessRole>("canvas_shares.role", role)).transpose()?;
        let account = AccountUid::from_stored(run.account_uid);
        Ok(Some(Self {
            actor: Actor {
                owner_uid: account.clone(),
                surface: known::<Surface>("tokens.surface", &run.surface)?,
                label: run.label,
            },
            account,
            token_id: run.token_id,
            is_readable: role.is_some(),
            is_writable: role.is_some_and(AccessRole::may_write),
            holds: run.delegated && role.is_some_and(AccessRole::may_write),
        }))
    }
}

/// Returns `true` if token, session, account and role of a run are valid at this moment. False when there is no such run.
#[instrument(skip_all, name = "db.recipe_run.is_delegated")]
pub async fn is_delegated(conn: &mut PgConnection, id: RunId) -> Result<bool> {
    Ok(Delegation::read(conn, id).await?.is_some_and(|delegation| delegation.holds))
}
