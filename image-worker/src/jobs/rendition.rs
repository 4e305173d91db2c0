//! A rendition: a smaller copy of a picture, made once and shared by all assets of the same bytes (decisions 6.4); or
//! the PNG of a render, whose source is an SVG document that the gateway drew (decisions 3.10).
//!
//! Nothing but the copy hangs on it: a picture that cannot be decoded is noted as such, one that failed five times is
//! given up, and those who wait for it are told either way.
//!
//! **Memory.** A source is loaded when there is memory for its file, its pixels and the copy: the first bytes, read by
//! themselves, say how much that is. However many renditions are in hand, those that wait hold nothing.

use bytes::Bytes;
use db::renditions::{Rendition, Result as Made};
use domain::message::TaskKind;
use futures_util::TryStreamExt;
use raster::{Fault, Format, Header, HeaderReader, Progress};
use spine::{Decision, Lease, Task};
use uuid::Uuid;
use workshop::files::{Content, PUTS_MAX};
use workshop::{Error, Worker};

use super::Trouble;

/// What is read at first of a source: more than a header takes, unless metadata as long as that come before it.
const HEAD_BYTES: u64 = 64 * 1024;

/// Bytes of a pixel of a copy: RGBA.
const PIXEL_BYTES: u64 = 4;

/// Makes the rendition of a task.
pub(super) async fn run(worker: &Worker, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let Some(rendition) = load(worker, task).await? else { return worker.settle(task, lease).await };
    let Some((format, content)) = compute(worker, &rendition).await? else {
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

/// A source before it is loaded.
#[derive(Debug)]
struct Source {
    kind: Kind,
    /// Bytes of its file.
    bytes: u64,
}

/// What a source is.
#[derive(Debug)]
enum Kind {
    Picture(Header),
    Document,
}

impl Source {
    /// An upper estimate, in bytes, of the memory that its copy of at most `width` columns takes, its file included.
    fn memory_bytes(&self, width: u32) -> u64 {
        match &self.kind {
            Kind::Picture(header) => {
                let size = header.size();
                let columns = u64::from(size.width.min(width).max(1));
                let rows = (u64::from(size.height) * columns).div_ceil(u64::from(size.width));
                // The pixels, then the copy and what it is written to.
                self.bytes + header.decoded_bytes() + 2 * PIXEL_BYTES * columns * rows
            }
            Kind::Document => self.bytes + raster::document::rasterize_bytes(self.bytes, width),
        }
    }
}

/// What the first bytes of a source say; nothing when it is gone or no picture.
async fn examine(worker: &Worker, key: Uuid) -> Result<Option<Source>, Error> {
    let Some(head) = worker.part(key, 0..HEAD_BYTES).await? else { return Ok(None) };
    let (bytes, read) = (head.size, head.range.end);
    let head: Vec<Bytes> = head.stream.try_collect().await?;
    let head = head.concat();
    if raster::document::is_document(&head) {
        return Ok(Some(Source { kind: Kind::Document, bytes }));
    }
    let mut reader = HeaderReader::new();
    let mut progress = reader.push(&head);
    if progress == Ok(Progress::NeedMore) && read < bytes {
        // Behind long metadata, or behind the pixels, as the orientation of a WebP is: looked at and not kept.
        let Some(mut rest) = worker.part(key, read..bytes).await? else { return Ok(None) };
        while progress == Ok(Progress::NeedMore) {
            let Some(piece) = rest.stream.try_next().await? else { break };
            progress = reader.push(&piece);
        }
    }
    Ok(reader.finish().ok().map(|header| Source { kind: Kind::Picture(header), bytes }))
}

/// The copy, or nothing when the picture is gone or cannot be read.
async fn compute(worker: &Worker, rendition: &Rendition) -> Result<Option<(Format, Content)>, Error> {
    let &Rendition { source_key, width, .. } = rendition;
    let Some(source) = examine(worker, source_key).await? else { return Ok(None) };
    let memory = worker.pixels.reserve(source.memory_bytes(width)).await;
    let Some(file) = worker.get(source_key).await? else { return Ok(None) };
    let made = |output: raster::Output| (Format::from(output.format), Content::of(output.bytes));
    match source.kind {
        // A document that cannot be rasterised is our fault, so it is tried again and in the end given up.
        Kind::Document => {
            let computing = memory.run(move || raster::document::rasterize(&file, width).map(made));
            Ok(Some(computing.await?.map_err(Trouble::Document)?))
        }
        Kind::Picture(_) => match memory.run(move || raster::rendition(&file, width).map(made)).await? {
            Ok(made) => Ok(Some(made)),
            Err(error) if error.fault() == Fault::Internal => Err(Error::Raster(error)),
            Err(_) => Ok(None),
        },
    }
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

#[cfg(test)]
mod tests {
    use raster::{Channels, Color, Encoding, OutputFormat, Picture, Size};

    use super::*;

    fn source(width: u32, height: u32) -> Source {
        let pixels = vec![7; width as usize * height as usize * 3];
        let picture = Picture::new(Size::new(width, height), Channels::Rgb, pixels).expect("as many as fit");
        let encoding = Encoding { format: OutputFormat::Jpeg, quality: 85, flatten: Color::WHITE };
        let file = raster::encode(&picture, &encoding).expect("encodes");
        let header = raster::probe(&file).expect("is a picture");
        Source { kind: Kind::Picture(header), bytes: file.len() as u64 }
    }

    #[test]
    fn memory_is_that_of_the_file_its_pixels_and_the_copy() {
        let picture = source(400, 300);
        assert_eq!(picture.memory_bytes(100), picture.bytes + 3 * 400 * 300 + 8 * 100 * 75);
        assert_eq!(picture.memory_bytes(400), picture.memory_bytes(2048), "a copy is never larger than its picture");
        let strip = source(3, 1000);
        assert_eq!(strip.memory_bytes(2), strip.bytes + 3 * 3 * 1000 + 8 * 2 * 667);
    }

    #[test]
    fn memory_of_a_document_counts_its_file_beside_what_rasterising_it_takes() {
        let document = Source { kind: Kind::Document, bytes: 1000 };
        assert_eq!(document.memory_bytes(64), 1000 + raster::document::rasterize_bytes(1000, 64));
    }
}
