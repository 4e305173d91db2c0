//! A rendition: a smaller copy of an image, made once and shared by all assets with the same bytes
//! (docs/reference/assets.md#renditions). The PNG of a render is a rendition too; its source is an
//! SVG document that the gateway drew (docs/reference/canvases.md#render-formats).
//!
//! Failures affect only the copy. An image that cannot be decoded is recorded as such, and a
//! rendition that failed five times is abandoned. Waiters are notified in both cases.
//!
//! **Memory.** A source is loaded once there is memory for its file, its pixels and the copy. Its
//! first bytes, which are read separately, show how much that is. Renditions that wait for memory
//! hold nothing.

use bytes::Bytes;
use db::renditions::{CONVERTED, Rendition, Result as RenditionResult};
use decoder::{Made, Order, Refusal, Work};
use domain::message::TaskKind;
use domain::origin::DigitalSourceType;
use futures_util::TryStreamExt;
use raster::{Format, Header, HeaderReader, Progress, avif};
use serde::{Deserialize, Serialize};
use service::chain;
use taskqueue::{Decision, Lease, Task};
use uuid::Uuid;
use worker::decode::{header_of_made, refusal};
use worker::files::{Content, PUTS_MAX};
use worker::marks::marked;
use worker::{Error, Worker};

use super::conversion::Foreign;

/// The number of bytes of a source to read first. It covers the header unless long metadata precede
/// it.
const HEAD_BYTES: u64 = 64 * 1024;

/// Makes the rendition of a task.
pub(super) async fn run(worker: &Worker, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let Some(rendition) = load(worker, task).await? else { return worker.settle(task, lease).await };
    let Some((format, content)) = compute(worker, &task.fairness_key, &rendition).await? else {
        let finished = finish(worker, task, lease, &rendition, &RenditionResult::Undecodable).await?;
        return finished.ok_or(Error::BlobGone);
    };
    for _ in 0..PUTS_MAX {
        if !lease.check() {
            return Ok(Decision::Stale);
        }
        let made = RenditionResult::Ready {
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

/// Abandons the rendition of a task that failed too often.
pub(super) async fn exhausted(worker: &Worker, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let Some(rendition) = load(worker, task).await? else { return worker.settle(task, lease).await };
    let finished = finish(worker, task, lease, &rendition, &RenditionResult::GivenUp).await?;
    finished.ok_or(Error::BlobGone)
}

/// The rendition of a task; `None` when its source was swept in the meantime.
async fn load(worker: &Worker, task: &Task) -> Result<Option<Rendition>, Error> {
    Ok(db::renditions::of_task(&mut *worker.connection().await?, task.id).await?)
}

/// A source before it is loaded.
#[derive(Debug)]
struct Source {
    kind: Kind,
    /// Size of its file in bytes.
    bytes: u64,
}

/// Kind of a source.
#[derive(Debug)]
enum Kind {
    Image(Header),
    Document,
    /// An upload that is converted.
    Foreign(Foreign),
    /// An MP4 file, of which the rendition is the poster.
    Film,
}

impl Source {
    /// Upper bound in bytes of the memory for a copy of at most `width` columns, including the
    /// file.
    fn memory_bytes(&self, width: u32) -> u64 {
        match &self.kind {
            Kind::Image(header) => self.bytes + raster::rendition_bytes(header, width),
            Kind::Document => self.bytes + raster::document::rasterize_bytes(self.bytes, width),
            Kind::Foreign(header) => self.bytes + header.memory_bytes(),
            // A film is not loaded as a whole; the memory for its frame is reserved where it is decoded.
            Kind::Film => 0,
        }
    }
}

/// Reads the header of a source; `None` if the source is missing or not an image.
async fn examine(worker: &Worker, key: Uuid) -> Result<Option<Source>, Error> {
    let Some(head) = worker.part(key, 0..HEAD_BYTES).await? else { return Ok(None) };
    let (bytes, read) = (head.size, head.range.end);
    let head: Vec<Bytes> = head.stream.try_collect().await?;
    let head = head.concat();
    if raster::document::is_document(&head) {
        return Ok(Some(Source { kind: Kind::Document, bytes }));
    }
    if let Some(kind) = avif::sniff(&head) {
        let Some(head) = worker.part(key, 0..avif::MAX_META_BYTES as u64).await? else { return Ok(None) };
        let head: Vec<Bytes> = head.stream.try_collect().await?;
        let header = Foreign::probe(kind, &head.concat()).ok();
        return Ok(header.map(|header| Source { kind: Kind::Foreign(header), bytes }));
    }
    if head.get(4..8) == Some(b"ftyp") {
        return Ok(Some(Source { kind: Kind::Film, bytes }));
    }
    let mut reader = HeaderReader::new();
    let mut progress = reader.push(&head);
    if progress == Ok(Progress::NeedMore) && read < bytes {
        // The header follows long metadata or, like the orientation of a WebP, the pixels: the file
        // is read completely and not kept.
        let Some(mut rest) = worker.part(key, read..bytes).await? else { return Ok(None) };
        while progress == Ok(Progress::NeedMore) {
            let Some(piece) = rest.stream.try_next().await? else { break };
            progress = reader.push(&piece);
        }
    }
    Ok(reader.finish().ok().map(|header| Source { kind: Kind::Image(header), bytes }))
}

/// Makes the copy; `None` when the source is missing or cannot be decoded.
async fn compute(worker: &Worker, account: &str, rendition: &Rendition) -> Result<Option<(Format, Content)>, Error> {
    let &Rendition { source_key, width, .. } = rendition;
    let Some(source) = examine(worker, source_key).await? else { return Ok(None) };
    let origin = db::assets::believed_origin(&mut *worker.connection().await?, source_key).await?;
    // A width is that of a copy of what the service keeps, and no width that of a conversion of the rest.
    if matches!(source.kind, Kind::Foreign(_)) != (width == CONVERTED) {
        return Ok(None);
    }
    // The decoder has a copy of the file.
    let bytes = source.bytes + source.memory_bytes(width);
    let from = match source.kind {
        Kind::Image(_) => Ok(Material::Image),
        Kind::Document => Ok(Material::Document),
        Kind::Foreign(header) => Err(header),
        Kind::Film => return poster(worker, account, source_key, origin).await,
    };
    let memory = worker.pixels.reserve(bytes).await;
    let Some(file) = worker.get(source_key).await? else { return Ok(None) };
    let from = match from {
        Ok(from) => from,
        Err(foreign) => return Ok(foreign.convert(worker, account, memory, file).await?.ok()),
    };
    let (marks, is_image) = (worker.marks, matches!(from, Material::Image));
    let order = Order::new(account, Reduce { width, from }, vec![file]);
    let made = memory.decode(order, move |files, made| {
        let made = made.into_iter().next().unwrap_or_default();
        let format = header_of_made(&made)?.format;
        let packet = is_image.then(|| marks.packet(origin, &files[0])).flatten();
        Ok::<_, Error>((format, Content::new(marked(made, packet.as_deref()))))
    });
    made.await?.ok().transpose()
}

/// Makes the poster of a film; `None` if its first frame cannot be decoded.
async fn poster(
    worker: &Worker,
    account: &str,
    source_key: Uuid,
    origin: Option<DigitalSourceType>,
) -> Result<Option<(Format, Content)>, Error> {
    let poster = match worker.film(account, source_key).await {
        Ok(film) => film.poster,
        Err(Error::BlobGone) => None,
        Err(error) => return Err(error),
    };
    let Some(poster) = poster else { return Ok(None) };
    let packet = worker.marks.packet(origin, &[]);
    Ok(Some((
        Format::Jpeg,
        match packet {
            None => poster,
            packet => Content::new(marked(poster.bytes.into(), packet.as_deref())),
        },
    )))
}

/// The copy of an image or a document, as a decoder makes it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Reduce {
    width: u32,
    from: Material,
}

/// What the copy is made of.
#[derive(Serialize, Deserialize)]
enum Material {
    Image,
    Document,
}

impl Work for Reduce {
    const NAME: &'static str = "rendition";

    fn run(self, files: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        let made = match self.from {
            Material::Image => raster::rendition(&files[0], self.width).map_err(refusal)?,
            // A document that cannot be rasterized is an internal error, so it is retried and finally abandoned.
            Material::Document => {
                let made = raster::document::rasterize(&files[0], self.width);
                made.map_err(|error| Refusal::Internal(chain(&error)))?
            }
        };
        Ok(vec![made.bytes])
    }
}

/// Settles the task and records the outcome in one transaction. `None` if the blob was deleted and
/// must be stored again.
async fn finish(
    worker: &Worker,
    task: &Task,
    lease: &Lease,
    rendition: &Rendition,
    made: &RenditionResult,
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
    worker.cache.notify([format!("{}:{source_key}:{width}", TaskKind::Rendition)]).await;
    Ok(Some(match made {
        RenditionResult::Ready { .. } | RenditionResult::Undecodable => Decision::Done,
        RenditionResult::GivenUp => Decision::Fail { code: "given_up" },
    }))
}

#[cfg(test)]
mod tests {
    use raster::{Bitmap, Channels, Color, Encoding, OutputFormat, Size};

    use super::*;

    fn source(width: u32, height: u32) -> Source {
        let pixels = vec![7; width as usize * height as usize * 3];
        let image = Bitmap::new(Size::new(width, height), Channels::Rgb, pixels).expect("as many as fit");
        let encoding = Encoding { format: OutputFormat::Jpeg, quality: 85, flatten: Color::WHITE };
        let file = raster::encode(&image, &encoding).expect("encodes");
        let header = raster::probe(&file).expect("is an image");
        Source { kind: Kind::Image(header), bytes: file.len() as u64 }
    }

    #[test]
    fn memory_is_that_of_the_file_some_of_its_rows_and_the_copy() {
        let image = source(400, 300);
        let (window, crossed, copy) = (400 * (4 * 22 + 18), 400 * 75, 100 * 75);
        // The rows of the source that sixteen rows of the copy depend on, the image between the passes, the copy, and its file.
        assert_eq!(image.memory_bytes(100), image.bytes + 4 * window + 4 * crossed + (4 + 8) * copy);
        assert_eq!(image.memory_bytes(400), image.memory_bytes(2048), "a copy is never larger than its image");
    }

    #[test]
    fn memory_of_a_document_counts_its_file_beside_what_rasterising_it_takes() {
        let document = Source { kind: Kind::Document, bytes: 1000 };
        assert_eq!(document.memory_bytes(64), 1000 + raster::document::rasterize_bytes(1000, 64));
    }
}
