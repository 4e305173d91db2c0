//! Canvases: rows, roles, lists, and the only functions that change a canvas.
//!
//! Every visible change is one statement: [`write()`], or [`commit_works`] for the ends of jobs on several canvases. Under the lock on
//! the canvas row, it takes a new revision and records what changed, so that revisions, `/changes` and the activity always agree.

mod changes;
mod deleted;
mod graph;
mod members;
mod refs;
mod skeleton;
mod works;
mod write;

use domain::Timestamp;
use domain::canvas::{AccessRole, Activity, ActivityType, Actor, CanvasRecord, CanvasType};
use domain::id::{AccountUid, CanvasHandle, CanvasId, NodeId};
use domain::limits::{ACTIVITY_MAX, CHANGES_KEPT};
use domain::refs::RefCounters;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use sqlx::types::Json;
use sqlx::types::chrono::{DateTime, Utc};
use tracing::instrument;
use uuid::Uuid;

pub use changes::{ChangesSince, authors_since, changes_since, concurrent_changes};
pub use deleted::{deleted_connections, deleted_nodes};
pub(crate) use graph::NodeRow;
pub use graph::{
    Ends, IncomingReference, NodeFrame, are_appended, connections_of, frames, graph, made_in, node, nodes_of_job, part,
    references_into, release_unread, waiting,
};
pub use members::{Member, member, members, share};
pub use refs::{NamedByRef, ensure_refs, give_node_refs, handle_of_slug, ids_of_refs, refs_of_ids};
pub use skeleton::{Skeleton, skeleton, skeletons};
pub use works::{WorkChange, commit_works};
pub use write::{Change, Guard, NewActivity, write, write_guarded, write_within_quota};

use crate::error::known;
use crate::{Error, Result};

/// A row of `canvases`, with the caller's role where the query asks for it.
pub(crate) struct CanvasRow {
    pub key: i64,
    pub owner_uid: String,
    pub id: String,
    pub canvas_type: Option<String>,
    pub title: String,
    pub revision: String,
    pub sequence: i64,
    pub slug: Option<String>,
    pub node_ref: i32,
    pub connection_ref: i32,
    pub referenced: i64,
    pub node_count: i32,
    pub connection_count: i32,
    pub graph_bytes: i64,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub role: Option<String>,
}

impl CanvasRow {
    /// Converts the row into a record and the caller's role.
    pub(crate) fn record(self) -> Result<(CanvasRecord, Option<AccessRole>)> {
        let role = self.role.as_deref().map(|role| known("canvas_shares.role", role)).transpose()?;
        let canvas_type =
            self.canvas_type.as_deref().map(|name| known::<CanvasType>("canvases.canvas_type", name)).transpose()?;
        let record = CanvasRecord {
            key: self.key,
            handle: CanvasHandle { owner: AccountUid::from_stored(self.owner_uid), id: CanvasId::from_stored(self.id) },
            canvas_type,
            title: self.title,
            revision: self.revision,
            sequence: self.sequence,
            slug: self.slug,
            refs: RefCounters { node: self.node_ref, connection: self.connection_ref },
            referenced: self.referenced,
            node_count: self.node_count,
            connection_count: self.connection_count,
            graph_bytes: self.graph_bytes,
            created_at: Timestamp::from(self.created_at),
            updated_at: Timestamp::from(self.updated_at),
        };
        Ok((record, role))
    }

    pub(crate) fn visible(self) -> Result<Option<(CanvasRecord, AccessRole)>> {
        let (record, role) = self.record()?;
        Ok(role.map(|role| (record, role)))
    }
}

/// A canvas to create.
pub struct NewCanvas<'a> {
    /// Handle of the canvas: owner and id.
    pub handle: &'a CanvasHandle,
    /// Type of the canvas: an Agent Canvas or none.
    pub canvas_type: Option<CanvasType>,
    /// Title, at most 160 characters.
    pub title: &'a str,
    /// First revision.
    pub revision: &'a str,
    /// The actor that creates it.
    pub actor: &'a Actor,
}

/// Creates a canvas. `None` when the owner already has a canvas of this id, or already has an Agent Canvas.
#[instrument(skip_all, name = "db.canvas.create")]
pub async fn create(conn: &mut PgConnection, canvas: &NewCanvas<'_>) -> Result<Option<CanvasRecord>> {
    let activity = StoredActivity::created(canvas.actor);
    let row = sqlx::query_as!(
        CanvasRow,
        r#"WITH made AS (
            INSERT INTO canvases (owner_uid, id, canvas_type, title, revision) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT DO NOTHING RETURNING *
        ), noted AS (
            INSERT INTO canvas_changes (canvas_key, sequence, revision, activity)
            SELECT key, sequence, revision, $6 FROM made
        )
        SELECT key AS "key!", owner_uid AS "owner_uid!", id AS "id!", canvas_type, title AS "title!",
               revision AS "revision!", sequence AS "sequence!", slug, node_ref AS "node_ref!", connection_ref AS "connection_ref!",
                  referenced AS "referenced!", node_count AS "node_count!",
               connection_count AS "connection_count!", graph_bytes AS "graph_bytes!", created_at AS "created_at!",
               updated_at AS "updated_at!", 'owner' AS "role?" FROM made"#,
        canvas.handle.owner.as_str(),
        canvas.handle.id.as_str(),
        canvas.canvas_type.map(CanvasType::as_str),
        canvas.title,
        canvas.revision,
        Json(activity) as _,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(CanvasRow::record).transpose()?.map(|(record, _)| record))
}

/// The account's Agent Canvas, if it has one.
#[instrument(skip_all, name = "db.canvas.agent")]
pub async fn agent(conn: &mut PgConnection, owner: &AccountUid) -> Result<Option<CanvasRecord>> {
    let row = sqlx::query_as!(
        CanvasRow,
        r#"SELECT key, owner_uid, id, canvas_type, title, revision, sequence, slug, node_ref, connection_ref, referenced, node_count, connection_count, graph_bytes,
                  created_at, updated_at, 'owner' AS "role?"
           FROM canvases WHERE owner_uid = $1 AND canvas_type = 'agent'"#,
        owner.as_str(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(CanvasRow::record).transpose()?.map(|(record, _)| record))
}

/// Reads a canvas that `caller` owns or has a role on; otherwise `None`.
#[instrument(skip_all, name = "db.canvas.find")]
pub async fn find(
    conn: &mut PgConnection,
    caller: &AccountUid,
    canvas: &CanvasHandle,
) -> Result<Option<(CanvasRecord, AccessRole)>> {
    let row = sqlx::query_as!(
        CanvasRow,
        r#"SELECT c.key, c.owner_uid, c.id, c.canvas_type, c.title, c.revision, c.sequence, c.slug, c.node_ref, c.connection_ref, c.referenced, c.node_count,
                  c.connection_count, c.graph_bytes, c.created_at, c.updated_at,
                  CASE WHEN c.owner_uid = $1 THEN 'owner' ELSE s.role END AS "role?"
           FROM canvases c LEFT JOIN canvas_shares s ON s.canvas_key = c.key AND s.account_uid = $1
           WHERE c.owner_uid = $2 AND c.id = $3"#,
        caller.as_str(),
        canvas.owner.as_str(),
        canvas.id.as_str(),
    )
    .fetch_optional(conn)
    .await?;
    row.map(CanvasRow::visible).transpose().map(Option::flatten)
}

/// [`find`], with the canvas row locked until the transaction ends. Every writer calls this, or takes the same locks together with
/// its key ([`take_and_lock`](crate::idempotency::take_and_lock)). The role is read after the canvas lock was obtained and is
/// locked as well, so that a role withdrawn during the wait does not count. The share is locked after the canvas, in the same
/// order as in a purge of the canvas.
#[instrument(skip_all, name = "db.canvas.lock")]
pub async fn lock(
    conn: &mut PgConnection,
    caller: &AccountUid,
    canvas: &CanvasHandle,
) -> Result<Option<(CanvasRecord, AccessRole)>> {
    let row = sqlx::query_as!(
        CanvasRow,
        r#"WITH held AS MATERIALIZED (
               SELECT * FROM canvases WHERE owner_uid = $2 AND id = $3 FOR UPDATE
           )
           SELECT key, owner_uid, id, canvas_type, title, revision, sequence, slug, node_ref, connection_ref, referenced, node_count, connection_count, graph_bytes,
                  created_at, updated_at,
                  CASE WHEN owner_uid = $1 THEN 'owner' ELSE
                      (SELECT role FROM canvas_shares s WHERE s.canvas_key = held.key AND s.account_uid = $1 FOR SHARE)
                  END AS role
           FROM held"#,
        caller.as_str(),
        canvas.owner.as_str(),
        canvas.id.as_str(),
    );
    row.fetch_optional(conn).await?.map(CanvasRow::visible).transpose().map(Option::flatten)
}

/// [`lock`], with the caller's account locked first, so that concurrent starts check active jobs and credit of the account one
/// at a time. The canvas is read after the account was locked.
#[instrument(skip_all, name = "db.canvas.lock_with_account")]
pub async fn lock_with_account(
    conn: &mut PgConnection,
    caller: &AccountUid,
    canvas: &CanvasHandle,
) -> Result<Option<(CanvasRecord, AccessRole)>> {
    let row = sqlx::query_as!(
        CanvasRow,
        r#"WITH account AS MATERIALIZED (
               SELECT uid FROM accounts WHERE uid = $1 FOR NO KEY UPDATE
           ), held AS MATERIALIZED (
               SELECT c.* FROM account CROSS JOIN canvases c WHERE c.owner_uid = $2 AND c.id = $3 FOR UPDATE OF c
           )
           SELECT key, owner_uid, id, canvas_type, title, revision, sequence, slug, node_ref, connection_ref, referenced, node_count, connection_count, graph_bytes,
                  created_at, updated_at,
                  CASE WHEN owner_uid = $1 THEN 'owner' ELSE
                      (SELECT role FROM canvas_shares s WHERE s.canvas_key = held.key AND s.account_uid = $1 FOR SHARE)
                  END AS role
           FROM held"#,
        caller.as_str(),
        canvas.owner.as_str(),
        canvas.id.as_str(),
    );
    row.fetch_optional(conn).await?.map(CanvasRow::visible).transpose().map(Option::flatten)
}

/// Position of a page in a list that is ordered by update time: after this update time and handle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct After {
    /// Update time of the last item.
    pub updated_at: Timestamp,
    /// Handle of the last item.
    pub handle: String,
}

impl After {
    /// The plain id in the handle. Where all items of a list have one owner, ordering by id equals ordering by handle and can
    /// use an index.
    pub(crate) fn last_id(&self) -> &str {
        self.handle.rsplit(':').next().unwrap_or_default()
    }
}

/// Lists canvases that `caller` owns or has a role on, newest update first, then by handle, descending.
#[instrument(skip_all, name = "db.canvas.list")]
pub async fn list(
    conn: &mut PgConnection,
    caller: &AccountUid,
    after: Option<&After>,
    limit: i64,
) -> Result<Vec<(CanvasRecord, AccessRole)>> {
    let rows = sqlx::query_as!(
        CanvasRow,
        r#"SELECT key AS "key!", owner_uid AS "owner_uid!", id AS "id!", canvas_type, title AS "title!",
                  revision AS "revision!", sequence AS "sequence!", slug, node_ref AS "node_ref!", connection_ref AS "connection_ref!",
                  referenced AS "referenced!", node_count AS "node_count!",
                  connection_count AS "connection_count!", graph_bytes AS "graph_bytes!", created_at AS "created_at!",
                  updated_at AS "updated_at!", role AS "role?"
           FROM (
               (SELECT c.*, 'owner' AS role FROM canvases c
                WHERE owner_uid = $1 AND ($2::timestamptz IS NULL OR
                      (updated_at, ('canvas:' || owner_uid || ':' || id) COLLATE "C") < ($2, $3 COLLATE "C"))
                ORDER BY updated_at DESC, id DESC LIMIT $4)
               UNION ALL
               (SELECT c.*, s.role FROM canvas_shares s JOIN canvases c ON c.key = s.canvas_key
                WHERE s.account_uid = $1 AND c.owner_uid <> $1 AND ($2::timestamptz IS NULL OR
                      (c.updated_at, ('canvas:' || c.owner_uid || ':' || c.id) COLLATE "C") < ($2, $3 COLLATE "C")))
           ) AS merged
           ORDER BY updated_at DESC, ('canvas:' || owner_uid || ':' || id) COLLATE "C" DESC LIMIT $4"#,
        caller.as_str(),
        after.map(|after| after.updated_at.get()),
        after.map(|after| after.handle.as_str()),
        limit,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().filter_map(|row| row.visible().transpose()).collect()
}

fn ids<T: Clone + Into<String>>(ids: &[T]) -> Vec<String> {
    ids.iter().cloned().map(Into::into).collect()
}

/// Every change with a number divisible by this one deletes the changes that are no longer kept. The search for them passes over the
/// index entries of those that were deleted since the last vacuum, so one search serves many changes. Reads leave out the others.
const TRIM_EVERY: i64 = 32;

/// Reads the newest activity of a canvas, newest first.
#[instrument(skip_all, name = "db.canvas.activity")]
pub async fn activity(conn: &mut PgConnection, canvas_key: i64) -> Result<Vec<Activity>> {
    let rows = sqlx::query!(
        r#"SELECT revision, at, activity AS "activity!: Json<StoredActivity>" FROM canvas_changes
           WHERE canvas_key = $1 AND activity IS NOT NULL ORDER BY sequence DESC LIMIT $2"#,
        canvas_key,
        ACTIVITY_MAX,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| row.activity.0.entry(Timestamp::from(row.at), row.revision)).collect())
}

/// A stored activity entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredActivity {
    id: String,
    #[serde(rename = "type")]
    kind: ActivityType,
    actor: Actor,
    summary: String,
    node_ids: Vec<NodeId>,
}

impl StoredActivity {
    const NODES_MAX: usize = 200;

    fn new(activity: &NewActivity<'_>) -> Self {
        Self {
            id: Uuid::now_v7().to_string(),
            kind: activity.kind,
            actor: activity.actor.clone(),
            summary: activity.summary.clone(),
            node_ids: activity.nodes.iter().take(Self::NODES_MAX).cloned().collect(),
        }
    }

    fn created(actor: &Actor) -> Self {
        Self::new(&NewActivity {
            kind: ActivityType::CanvasCreated,
            actor,
            summary: "created the canvas".into(),
            nodes: &[],
        })
    }

    fn entry(self, at: Timestamp, revision: String) -> Activity {
        Activity {
            id: self.id,
            kind: self.kind.into(),
            at,
            revision,
            actor: self.actor,
            summary: self.summary,
            node_ids: self.node_ids,
        }
    }
}

/// The error for a stored value that an earlier write should have rejected.
pub(crate) fn unreadable(column: &'static str, value: impl ToString) -> Error {
    Error::Unreadable { column, value: value.to_string() }
}
