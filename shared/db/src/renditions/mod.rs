//! Renditions: smaller copies of images, keyed by content, made once and shared by all assets of the same bytes
//! (docs/reference/assets.md#renditions).
//!
//! The PNG of a render is a rendition as well. Its source is the SVG document, which is a blob like any other. Equal renders are
//! rasterized once, and the sweeper removes document and PNG like any unreferenced blob.

use domain::asset::{Poster, thumbnail_width};
use domain::id::AccountUid;
use domain::job::Preview;
use domain::limits::{POSTER_SIDE, RENDITION_EAGER};
use domain::message::{Queue, ReadyTasks, TaskKind};
use sqlx::PgConnection;
use tracing::instrument;
use uuid::Uuid;

use crate::tasks::{self, NewTask};
use crate::{blobs, canvases};

/// The width of the conversion of a file whose format the service does not keep (docs/reference/assets.md#converted-formats): a JPEG
/// or PNG of all of its pixels.
pub const CONVERTED: u32 = 0;

/// A rendition's row.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendition {
    /// Key of the blob of the full-size image.
    pub source_key: Uuid,
    /// Maximum width in pixels.
    pub width: u32,
    /// State of the rendition.
    pub state: RenditionState,
}

/// State of a rendition.
#[derive(Clone, Debug, PartialEq)]
pub enum RenditionState {
    /// Its task waits or is in progress.
    Pending,
    /// The rendition is stored.
    Ready {
        /// Key of its blob.
        blob_key: Uuid,
        /// Its media type.
        mime_type: String,
    },
    /// The image cannot be decoded.
    Undecodable,
    /// The task was abandoned after five tries.
    GivenUp,
}

/// Result of making a rendition.
#[derive(Clone, Debug, PartialEq)]
pub enum Result {
    /// The rendition was put.
    Ready {
        /// Key of its blob.
        blob_key: Uuid,
        /// SHA-256 of the file.
        sha256: [u8; 32],
        /// Size in bytes.
        bytes: i64,
        /// Media type.
        mime_type: &'static str,
    },
    /// The image cannot be decoded.
    Undecodable,
    /// The task was abandoned after five tries.
    GivenUp,
}

struct RenditionRow {
    source_key: Uuid,
    width: i32,
    state: String,
    blob_key: Option<Uuid>,
    mime_type: Option<String>,
}

impl TryFrom<RenditionRow> for Rendition {
    type Error = crate::Error;

    fn try_from(row: RenditionRow) -> crate::Result<Self> {
        let state = match (row.state.as_str(), row.blob_key, row.mime_type) {
            ("pending", ..) => RenditionState::Pending,
            ("ready", Some(blob_key), Some(mime_type)) => RenditionState::Ready { blob_key, mime_type },
            ("undecodable", ..) => RenditionState::Undecodable,
            ("given-up", ..) => RenditionState::GivenUp,
            (other, ..) => return Err(canvases::unreadable("renditions.state", other)),
        };
        let width = u32::try_from(row.width).map_err(|_| canvases::unreadable("renditions.width", row.width))?;
        Ok(Self { source_key: row.source_key, width, state })
    }
}

/// Reads the rendition of an image at a width, if it was ever requested, and the SHA-256 of its file, which is empty unless it is
/// stored.
#[instrument(skip_all, name = "db.rendition.find")]
pub async fn find(
    conn: &mut PgConnection,
    source_key: Uuid,
    width: u32,
) -> crate::Result<Option<(Rendition, Vec<u8>)>> {
    let row = sqlx::query!(
        "SELECT r.source_key, r.width, r.state, r.blob_key, r.mime_type, b.sha256
         FROM renditions r LEFT JOIN blobs b ON b.key = r.blob_key WHERE r.source_key = $1 AND r.width = $2",
        source_key,
        i32::try_from(width).unwrap_or(i32::MAX)
    )
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let (source_key, width, state) = (row.source_key, row.width, row.state);
    let rendition = RenditionRow { source_key, width, state, blob_key: row.blob_key, mime_type: row.mime_type };
    Ok(Some((rendition.try_into()?, row.sha256.unwrap_or_default())))
}

/// The file of the rendition of an image at a width, if it is stored.
#[instrument(skip_all, name = "db.rendition.file")]
pub async fn file(conn: &mut PgConnection, source_key: Uuid, width: u32) -> crate::Result<Option<Preview>> {
    let row = sqlx::query!(
        r#"SELECT r.blob_key AS "blob_key!", r.mime_type AS "mime_type!", b.sha256 AS "sha256!", b.bytes AS "bytes!"
           FROM renditions r JOIN blobs b ON b.key = r.blob_key
           WHERE r.source_key = $1 AND r.width = $2 AND r.state = 'ready' AND b.state = 'stored'"#,
        source_key,
        i32::try_from(width).unwrap_or(i32::MAX)
    );
    Ok(row.fetch_optional(conn).await?.and_then(|row| {
        Some(Preview {
            mime_type: row.mime_type,
            bytes: row.bytes.unsigned_abs(),
            sha256: row.sha256.try_into().ok()?,
            blob_key: row.blob_key,
        })
    }))
}

/// A rendition and its size.
#[derive(Clone, Debug, PartialEq)]
pub struct Sized {
    pub rendition: Rendition,
    /// Size of its file in bytes; 0 unless it is stored.
    pub bytes: i64,
}

/// Returns those of `wanted`, images at widths, that were ever requested, in no order.
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
        let rendition = RenditionRow {
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
        RenditionRow,
        "SELECT source_key, width, state, blob_key, mime_type FROM renditions WHERE task_id = $1",
        task
    )
    .fetch_optional(conn)
    .await?
    .map(TryInto::try_into)
    .transpose()
}

/// Requests a rendition on behalf of `owner`, unless it was requested before or the image is being removed. Adds the task that it
/// enqueues to `ready`.
#[instrument(skip_all, name = "db.rendition.request")]
pub async fn request(
    conn: &mut PgConnection,
    source_key: Uuid,
    width: u32,
    owner: &AccountUid,
    traceparent: Option<&str>,
    ready: &ReadyTasks,
) -> crate::Result<()> {
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
        return Ok(());
    }
    let new = NewTask {
        id: task,
        queue: Queue::Image,
        kind: TaskKind::Rendition,
        fairness_key: owner.as_str(),
        due_in: None,
        traceparent,
    };
    tasks::enqueue(conn, &new).await?;
    ready.add(new.queue, task);
    Ok(())
}

/// Requests the [eager](eager_widths) renditions of a stored image of this size, in pixels, as [`request`]
/// does.
#[instrument(skip_all, name = "db.rendition.request_eager")]
pub async fn request_eager(
    conn: &mut PgConnection,
    source_key: Uuid,
    size: (i32, i32),
    owner: &AccountUid,
    traceparent: Option<&str>,
    ready: &ReadyTasks,
) -> crate::Result<()> {
    for width in eager_widths(size) {
        request(conn, source_key, width, owner, traceparent, ready).await?;
    }
    Ok(())
}

/// The widths of the renditions that every image of this size, in pixels, will need: [`RENDITION_EAGER`] and, if it differs, the
/// one that renders embed.
pub fn eager_widths((width, height): (i32, i32)) -> impl Iterator<Item = u32> {
    let thumbnail = thumbnail_width(width, height).filter(|width| *width != RENDITION_EAGER);
    [Some(RENDITION_EAGER), thumbnail].into_iter().flatten()
}

/// A rendition that was made together with its image.
#[derive(Clone, Debug)]
pub struct NewRendition {
    /// Key of the image's blob.
    pub source_key: Uuid,
    /// Width that it was made for, in pixels.
    pub width: u32,
    /// Key of its own blob.
    pub blob_key: Uuid,
    /// Media type of the rendition.
    pub mime_type: String,
}

/// Records renditions that were made together with their images, without tasks. Earlier ones of the same content are kept.
#[instrument(skip_all, name = "db.rendition.insert_all")]
pub async fn insert_all(conn: &mut PgConnection, renditions: &[NewRendition]) -> crate::Result<()> {
    // The column names the task of a rendition. These have none, and the values are those of no tasks. Rows are inserted in the
    // order of their keys, as several transactions may insert the same ones.
    sqlx::query!(
        "INSERT INTO renditions (source_key, width, task_id, state, blob_key, mime_type)
         SELECT source_key, width, task_id, 'ready', blob_key, mime_type
         FROM unnest((SELECT $1::uuid[]), (SELECT $2::int4[]), (SELECT $3::uuid[]), (SELECT $4::uuid[]), (SELECT $5::text[]))
              AS r (source_key, width, task_id, blob_key, mime_type)
         ORDER BY source_key, width
         ON CONFLICT DO NOTHING",
        &renditions.iter().map(|new| new.source_key).collect::<Vec<_>>(),
        &renditions.iter().map(|new| i32::try_from(new.width).unwrap_or(i32::MAX)).collect::<Vec<_>>(),
        &renditions.iter().map(|_| Uuid::now_v7()).collect::<Vec<_>>(),
        &renditions.iter().map(|new| new.blob_key).collect::<Vec<_>>(),
        &renditions.iter().map(|new| new.mime_type.clone()).collect::<Vec<_>>(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The poster of the video with this file, if it was made. One that is being made waits for the end of this transaction, and is then
/// given to the assets that this transaction adds.
#[instrument(skip_all, name = "db.rendition.poster")]
pub async fn poster(conn: &mut PgConnection, source_key: Uuid) -> crate::Result<Option<Poster>> {
    let row = sqlx::query!(
        "SELECT blob_key, mime_type FROM renditions WHERE source_key = $1 AND width = $2 FOR SHARE",
        source_key,
        i32::try_from(POSTER_SIDE).unwrap_or(i32::MAX)
    );
    let row = row.fetch_optional(conn).await?;
    let poster = row.and_then(|row| Some(Poster { blob_key: row.blob_key?, mime_type: row.mime_type? }));
    Ok(poster)
}

/// Stores the result of a task, in the transaction that settled it. `false` when its blob was removed meanwhile and must be put
/// again.
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
    .execute(&mut *conn)
    .await?;
    // The rendition of a video is its poster.
    sqlx::query!(
        "UPDATE assets SET poster_key = r.blob_key, poster_mime_type = r.mime_type
         FROM renditions r
         WHERE r.task_id = $1 AND r.state = 'ready' AND assets.blob_key = r.source_key AND assets.kind = 'video'
           AND assets.poster_key IS NULL",
        task
    )
    .execute(conn)
    .await?;
    Ok(true)
}

#[cfg(test)]
mod tests;
