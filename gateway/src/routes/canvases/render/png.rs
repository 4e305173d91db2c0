//! The PNG of a render: a rendition of its SVG document, made by an image-worker (decisions 6.4).
//!
//! The document is stored as a blob, keyed by its content: equal renders, of whomever and whenever, are rasterised once;
//! those who ask while it is made wait for the same work. Nothing refers to the document, so that it is swept with its PNG
//! when nobody has asked for either for 24 h (decisions 6.6).

use blob::{BlobKey, Object};
use bytes::Bytes;
use db::blobs::Staged;
use domain::id::AccountUid;
use domain::limits::RENDER_SIDE_MAX;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::observe::Trace;
use crate::problem::{Problem, Result};
use crate::rendition::{Rendition, rendition};
use crate::state::App;

/// How often a document is put anew because the sweeper took its blob before it was stored; once is hardly possible.
const PUTS_MAX: usize = 3;

/// The PNG of a document, being read; 503 when it is not there in time.
pub async fn of(app: &App, caller: &AccountUid, document: &Bytes, trace: Trace) -> Result<Object> {
    let source = store(app, document).await?;
    match rendition(app, source, RENDER_SIDE_MAX, caller, trace).await? {
        Rendition::Ready { key, .. } => Ok(app.blobs.stream(BlobKey(key), None).await?),
        // The document is ours: whatever is wrong with it, the client's input is not.
        Rendition::Undecodable | Rendition::GivenUp => Err(Problem::internal("a render could not be rasterised")),
    }
}

/// Makes sure that the store holds the document; its blob.
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
    Err(Problem::internal("a render was swept again and again before it was stored"))
}
