//! A rendition: a smaller copy of a picture, made once and shared by all assets of the same bytes (decisions 6.4); or
//! the PNG of a render, whose source is an SVG document that the gateway drew (decisions 3.10).
//!
//! Nothing but the copy hangs on it: a picture that cannot be decoded is noted as such, one that failed five times is
//! given up, and those who wait for it are told either way.

use db::renditions::{Rendition, Result as Made};
use domain::message::TaskKind;
use raster::{Fault, Format};
use spine::{Decision, Lease, Task};
use workshop::files::{Content, PUTS_MAX};
use workshop::{Error, Worker};

use super::Trouble;

/// Makes the rendition of a task.
pub(super) async fn run(worker: &Worker, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let Some(rendition) = load(worker, task).await? else { return worker.settle(task, lease).await };
    let computed = match worker.get(rendition.source_key).await? {
        Some(source) => compute(worker, source, rendition.width).await?,
        None => None,
    };
    let Some((format, content)) = computed else {
        let finished = finish(worker, task, lease, &rendition, &Made::Undecodable).await?;
        return finished.ok_or(Error::BlobGone);
    };
    for _ in 0..PUTS_MAX {
        if !lease.check() {
            return Ok(Decision::Stale);
        }
        let made = Made::Ready {
            blob_key: worker.put(&content).await?,
            sha256: content.sha256,
            // A length in memory is below 2^63.
            bytes: content.bytes.len() as i64,
            mime_type: format.media_type(),
        };
        if let Some(decision) = finish(worker, task, lease, &rendition, &made).await? {
            return Ok(decision);
        }
    }
    Err(Error::BlobGone)
}

/// Gives up the rendition of a task that failed too often.
pub(super) async fn exhausted(worker: &Worker, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let Some(rendition) = load(worker, task).await? else { return worker.settle(task, lease).await };
    let finished = finish(worker, task, lease, &rendition, &Made::GivenUp).await?;
    finished.ok_or(Error::BlobGone)
}

/// What the task is to make; nothing when its picture was swept meanwhile.
async fn load(worker: &Worker, task: &Task) -> Result<Option<Rendition>, Error> {
    Ok(db::renditions::of_task(&mut *worker.connection().await?, task.id).await?)
}

/// The copy, or nothing when the picture cannot be read.
async fn compute(worker: &Worker, source: bytes::Bytes, width: u32) -> Result<Option<(Format, Content)>, Error> {
    if raster::document::is_document(&source) {
        return rasterize(worker, source, width).await.map(Some);
    }
    let memory_bytes = raster::probe(&source).map_or(0, |header| header.decoded_bytes());
    let computing = worker.pixels.run(memory_bytes, move || {
        let output = raster::rendition(&source, width)?;
        Ok((Format::from(output.format), Content::of(output.bytes)))
    });
    match computing.await? {
        Ok(made) => Ok(Some(made)),
        Err(error) if raster::Error::fault(&error) == Fault::Internal => Err(Error::Raster(error)),
        Err(_) => Ok(None),
    }
}

/// The PNG of a document. One that cannot be rasterised is our fault, so it is tried again and in the end given up.
async fn rasterize(worker: &Worker, document: bytes::Bytes, side: u32) -> Result<(Format, Content), Error> {
    let memory_bytes = raster::document::rasterize_bytes(document.len() as u64, side);
    let computing = worker.pixels.run(memory_bytes, move || {
        let output = raster::document::rasterize(&document, side)?;
        Ok((Format::from(output.format), Content::of(output.bytes)))
    });
    Ok(computing.await?.map_err(Trouble::Document)?)
}

/// Settles the task and notes what came of it, in one transaction. `None`: the blob is gone and has to be put again.
async fn finish(
    worker: &Worker,
    task: &Task,
    lease: &Lease,
    rendition: &Rendition,
    made: &Made,
) -> Result<Option<Decision>, Error> {
    let mut transaction = db::pool::begin(&worker.pool).await?;
    if !db::tasks::settle(&mut transaction, task.id, lease.token()).await? {
        return Ok(Some(Decision::Stale));
    }
    if !db::renditions::finish(&mut transaction, task.id, made).await? {
        return Ok(None);
    }
    db::pool::commit(transaction).await?;
    let Rendition { source_key, width, .. } = rendition;
    worker.cache.notify(&format!("{}:{source_key}:{width}", TaskKind::Rendition)).await;
    Ok(Some(match made {
        Made::Ready { .. } | Made::Undecodable => Decision::Done,
        Made::GivenUp => Decision::Fail { code: "given_up" },
    }))
}
