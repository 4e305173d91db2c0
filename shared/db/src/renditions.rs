//! Renditions: smaller copies of pictures, keyed by content, made once and shared by all assets of the same bytes
//! (decisions 6.4).
//!
//! The PNG of a render is one, too: its source is the SVG document, a blob like any other, so that equal renders are
//! rasterised once, and document and PNG go the way of all unreferenced blobs (decisions 6.6).

use domain::asset::thumbnail_width;
use domain::id::AccountUid;
use domain::limits::RENDITION_EAGER;
use domain::message::{Queue, TaskKind};
use sqlx::PgConnection;
use tracing::instrument;
use uuid::Uuid;

use crate::tasks::{self, NewTask};
use crate::{blobs, canvases};

/// A rendition's row.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendition {
    /// The blob of the whole picture.
    pub source_key: Uuid,
    /// No wider than this.
    pub width: u32,
    /// How it stands.
    pub state: State,
}

/// How a rendition stands.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Its task waits or is being worked on.
    Pending,
    /// It is stored.
    Ready {
        /// Its blob.
        blob_key: Uuid,
        /// Its media type.
        mime_type: String,
    },
    /// The picture cannot be read.
    Undecodable,
    /// It failed five times.
    GivenUp,
}

/// What came of making one.
#[derive(Clone, Debug, PartialEq)]
pub enum Result {
    /// It was put.
    Ready {
        /// Where.
        blob_key: Uuid,
        /// SHA-256 of it.
        sha256: [u8; 32],
        /// Its size.
        bytes: i64,
        /// Its media type.
        mime_type: &'static str,
    },
    /// The picture cannot be read.
    Undecodable,
    /// It failed five times.
    GivenUp,
}

struct Row {
    source_key: Uuid,
    width: i32,
    state: String,
    blob_key: Option<Uuid>,
    mime_type: Option<String>,
}

impl TryFrom<Row> for Rendition {
    type Error = crate::Error;

    fn try_from(row: Row) -> crate::Result<Self> {
        let state = match (row.state.as_str(), row.blob_key, row.mime_type) {
            ("pending", ..) => State::Pending,
            ("ready", Some(blob_key), Some(mime_type)) => State::Ready { blob_key, mime_type },
            ("undecodable", ..) => State::Undecodable,
            ("given-up", ..) => State::GivenUp,
            (other, ..) => return Err(canvases::unreadable("renditions.state", other)),
        };
        let width = u32::try_from(row.width).map_err(|_| canvases::unreadable("renditions.width", row.width))?;
        Ok(Self { source_key: row.source_key, width, state })
    }
}

/// The rendition of a picture at a width, if it was ever asked for.
#[instrument(skip_all, name = "db.rendition.find")]
pub async fn find(conn: &mut PgConnection, source_key: Uuid, width: u32) -> crate::Result<Option<Rendition>> {
    sqlx::query_as!(
        Row,
        "SELECT source_key, width, state, blob_key, mime_type FROM renditions WHERE source_key = $1 AND width = $2",
        source_key,
        i32::try_from(width).unwrap_or(i32::MAX)
    )
    .fetch_optional(conn)
    .await?
    .map(TryInto::try_into)
    .transpose()
}

/// A rendition and how large it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Sized {
    /// The rendition.
    pub rendition: Rendition,
    /// Bytes of its file; 0 unless it is there.
    pub bytes: i64,
}

/// Those of `wanted`, pictures at widths, that were ever asked for, in no order.
#[instrument(skip_all, name = "db.rendition.find_many")]
pub async fn find_many(conn: &mut PgConnection, wanted: &[(Uuid, u32)]) -> crate::Result<Vec<Sized>> {
    let (keys, widths): (Vec<Uuid>, Vec<i32>) =
        wanted.iter().map(|(key, width)| (*key, i32::try_from(*width).unwrap_or(i32::MAX))).unzip();
    let rows = sqlx::query!(
        r#"SELECT r.source_key, r.width, r.state, r.blob_key, r.mime_type, coalesce(b.bytes, 0) AS "bytes!"
           FROM (SELECT DISTINCT * FROM UNNEST($1::uuid[], $2::int[])) AS w (source_key, width)
           JOIN renditions r USING (source_key, width)
           LEFT JOIN blobs b ON b.key = r.blob_key"#,
        &keys,
        &widths,
    )
    .fetch_all(conn)
    .await?;
    let found = rows.into_iter().map(|row| {
        let rendition = Row {
            source_key: row.source_key,
            width: row.width,
            state: row.state,
            blob_key: row.blob_key,
            mime_type: row.mime_type,
        };
        Ok(Sized { rendition: rendition.try_into()?, bytes: row.bytes })
    });
    found.collect()
}

/// The rendition that a task makes.
#[instrument(skip_all, name = "db.rendition.of_task")]
pub async fn of_task(conn: &mut PgConnection, task: Uuid) -> crate::Result<Option<Rendition>> {
    sqlx::query_as!(
        Row,
        "SELECT source_key, width, state, blob_key, mime_type FROM renditions WHERE task_id = $1",
        task
    )
    .fetch_optional(conn)
    .await?
    .map(TryInto::try_into)
    .transpose()
}

/// Asks for a rendition on behalf of `owner`, unless somebody has or the picture is being removed; whether a task was
/// enqueued, and the relay is to be nudged after the commit.
#[instrument(skip_all, name = "db.rendition.request")]
pub async fn request(
    conn: &mut PgConnection,
    source_key: Uuid,
    width: u32,
    owner: &AccountUid,
    traceparent: Option<&str>,
) -> crate::Result<bool> {
    let task = Uuid::now_v7();
    let asked = sqlx::query!(
        "INSERT INTO renditions (source_key, width, task_id)
         SELECT key, $2, $3 FROM blobs WHERE key = $1 AND state = 'stored' FOR KEY SHARE
         ON CONFLICT DO NOTHING",
        source_key,
        i32::try_from(width).unwrap_or(i32::MAX),
        task
    )
    .execute(&mut *conn)
    .await?;
    if asked.rows_affected() == 0 {
        return Ok(false);
    }
    let new = NewTask {
        id: task,
        queue: Queue::Image,
        kind: TaskKind::Rendition,
        lane: owner.as_str(),
        due_in: None,
        traceparent,
    };
    tasks::enqueue(conn, &new).await?;
    Ok(true)
}

/// Asks for the renditions that will be wanted of a stored picture of this size, in pixels: the one of
/// [`RENDITION_EAGER`], and the one that renders embed, if that is another. Whether a task was enqueued, as [`request`].
#[instrument(skip_all, name = "db.rendition.request_eager")]
pub async fn request_eager(
    conn: &mut PgConnection,
    source_key: Uuid,
    (width, height): (i32, i32),
    owner: &AccountUid,
    traceparent: Option<&str>,
) -> crate::Result<bool> {
    let mut asked = request(conn, source_key, RENDITION_EAGER, owner, traceparent).await?;
    if let Some(thumbnail) = thumbnail_width(width, height).filter(|width| *width != RENDITION_EAGER) {
        asked |= request(conn, source_key, thumbnail, owner, traceparent).await?;
    }
    Ok(asked)
}

/// Notes what came of a task, in the transaction that settled it; false when its blob was removed meanwhile and has to be
/// put again.
#[instrument(skip_all, name = "db.rendition.finish")]
pub async fn finish(conn: &mut PgConnection, task: Uuid, made: &Result) -> crate::Result<bool> {
    let (state, blob_key, mime_type) = match made {
        Result::Undecodable => ("undecodable", None, None),
        Result::GivenUp => ("given-up", None, None),
        Result::Ready { blob_key, sha256, bytes, mime_type } => {
            match blobs::adopt(conn, *blob_key, sha256, *bytes).await? {
                None => return Ok(false),
                adopted => ("ready", adopted, Some(*mime_type)),
            }
        }
    };
    sqlx::query!(
        "UPDATE renditions SET state = $2, blob_key = $3, mime_type = $4 WHERE task_id = $1 AND state = 'pending'",
        task,
        state,
        blob_key,
        mime_type
    )
    .execute(conn)
    .await?;
    Ok(true)
}

#[cfg(test)]
mod tests;
