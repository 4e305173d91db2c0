//! The PNG of a render: a rendition of its SVG document, made by an image-worker
//! (docs/reference/assets.md#how-renditions-are-made).
//!
//! The document is stored as a blob, keyed by its content. Equal renders are rasterized once, whoever requests them, and
//! concurrent requests wait for the same rendition. Nothing refers to the document, so that the sweeper removes it with its PNG
//! when neither was requested for 24 h (docs/reference/assets.md#stored-bytes).

use blob::{BlobKey, Object};
use bytes::Bytes;
use db::blobs::Staged;
use domain::limits::RENDER_SIDE_MAX;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::Render;
use crate::extract::caller::Caller;
use crate::observe::Trace;
use crate::problem::{Problem, Result};
use crate::rendition::{Rendition, WAIT, rendition};
use crate::state::App;

/// How often a document is stored again because the sweeper removed its blob in between; even once is very unlikely.
const PUTS_MAX: usize = 3;

/// The PNG of a document, as a stream; 503 when it is not ready in time.
pub async fn render(app: &App, caller: &Caller<Render>, document: &Bytes, trace: Trace) -> Result<Object> {
    let source = store(app, document).await?;
    match rendition(app, (source, RENDER_SIDE_MAX), &caller.account, trace, WAIT, &caller.place).await? {
        Rendition::Ready { key, .. } => Ok(app.blobs.stream(BlobKey(key), None).await?),
        // The gateway drew the document, so that a failure is never the client's fault.
        Rendition::Undecodable | Rendition::GivenUp => Err(Problem::internal("a render could not be rasterized")),
    }
}

/// Makes sure that the store holds the document; returns its blob.
async fn store(app: &App, document: &Bytes) -> Result<Uuid> {
    let sha256: [u8; 32] = Sha256::digest(document).into();
    let size = i64::try_from(document.len()).map_err(Problem::internal)?;
    for _ in 0..PUTS_MAX {
        let staged = db::blobs::stage(&mut *app.connection().await?, &sha256).await?;
        let key = match staged {
            Staged::Existing(key) => return Ok(key),
            Staged::New(key) => key,
        };
        app.blobs.put(BlobKey(key), document.clone()).await?;
        let mut transaction = app.transaction().await?;
        if let Some(key) = db::blobs::adopt(&mut transaction, key, &sha256, size).await? {
            db::pool::commit(transaction).await?;
            return Ok(key);
        }
    }
    Err(Problem::internal("a render was swept repeatedly before it was stored"))
}
