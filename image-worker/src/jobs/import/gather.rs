//! The pictures of an import, out of the network into the object store (decisions 14.2 to 14.4).

use std::time::Duration;

use domain::import::{Discovery, Evidence, Failure, FailureKind, ProductPage, Request, Review, ReviewReason, Variant};
use domain::limits::{PACK_CANDIDATES_MAX, PACK_IMAGES_MAX, PACK_SIDE_MIN, PAGE_BYTES_MAX, UPLOAD_MAX};
use egress::{DownloadError, Downloaded, Wanted};
use futures_util::StreamExt;
use raster::{Format, Size};
use spine::Lease;
use tokio::time::{Instant, timeout_at};
use url::Url;
use uuid::Uuid;
use workshop::{Error, Worker};

use super::files::Rooms;
use super::picture::{self, Picture, Thumbnail};
use crate::gallery::{self, Choice, Gallery};

/// The time that an import takes at most (decisions 14.3).
const BUDGET: Duration = Duration::from_secs(45);

/// Tells foreign hosts who asks.
const USER_AGENT: &str = "Canvas-Imports/1.0";

const PAGE: Wanted = Wanted {
    user_agent: USER_AGENT,
    accept: "text/html,application/xhtml+xml;q=0.9,*/*;q=0.1",
    bytes_max: PAGE_BYTES_MAX,
};
const PICTURE: Wanted = Wanted {
    user_agent: USER_AGENT,
    accept: "image/webp,image/png,image/jpeg,image/gif,*/*;q=0.1",
    bytes_max: UPLOAD_MAX as usize,
};

/// What came of gathering.
pub(super) enum Gathered {
    /// Pictures in the store.
    Pictures(Vec<Brought>, Option<OfPage>),
    /// A person has to decide or to look.
    Review(Review),
    /// It cannot be done.
    Failed(Failure),
    /// The lease is lost, or may be.
    Stale,
}

/// What a page tells of its pictures.
pub(super) struct OfPage {
    pub page: ProductPage,
    pub variant: Variant,
    pub discovery: Discovery,
}

/// A picture in the store that nothing refers to yet.
pub(super) struct Brought {
    pub url: Url,
    pub format: Format,
    pub size: Size,
    pub bytes: u64,
    pub sha256: [u8; 32],
    pub blob_key: Uuid,
    thumbnail: Thumbnail,
}

/// Fetches, judges and stores what is asked for. A picture has room from before it is fetched until it is stored.
pub(super) async fn gather(worker: &Worker, rooms: Rooms, request: &Request, lease: &Lease) -> Result<Gathered, Error> {
    let deadline = Instant::now() + BUDGET;
    let (Request::Image { url, .. } | Request::Product { url, .. }) = request;
    let Ok(parsed) = Url::parse(url) else { return Ok(failed(request, FailureKind::Unprocessable, "is no URL")) };
    let gathered = match request {
        Request::Image { .. } => image(worker, request, &parsed, lease, deadline).await?,
        Request::Product { selector, .. } => {
            let page = worker.egress.download(&parsed, PAGE, deadline).await;
            match page {
                Ok(page) => {
                    let wanted = (url.as_str(), selector.as_deref());
                    product(worker, rooms, request, wanted, page, lease, deadline).await?
                }
                Err(trouble) => troubled(request, trouble),
            }
        }
    };
    Ok(gathered)
}

fn failed(request: &Request, kind: FailureKind, message: impl Into<String>) -> Gathered {
    Gathered::Failed(Failure { kind, field: request.url_field().into(), message: message.into() })
}

fn troubled(request: &Request, trouble: DownloadError) -> Gathered {
    match trouble {
        DownloadError::Refused(why) => failed(request, FailureKind::Unprocessable, why),
        DownloadError::Upstream(why) => failed(request, FailureKind::Upstream, why),
        DownloadError::Timeout => failed(request, FailureKind::Timeout, "took too long"),
    }
}

async fn image(
    worker: &Worker,
    request: &Request,
    url: &Url,
    lease: &Lease,
    deadline: Instant,
) -> Result<Gathered, Error> {
    let file = match worker.egress.download(url, PICTURE, deadline).await {
        Ok(file) if file.truncated => {
            let message = format!("is larger than {UPLOAD_MAX} bytes");
            return Ok(failed(request, FailureKind::Unprocessable, message));
        }
        Ok(file) => file,
        Err(trouble) => return Ok(troubled(request, trouble)),
    };
    match picture::read(worker, file.bytes).await? {
        Ok(picture) => Ok(match bring(worker, file.url, picture, lease).await? {
            Some(brought) => Gathered::Pictures(vec![brought], None),
            None => Gathered::Stale,
        }),
        Err(why) => Ok(failed(request, FailureKind::Unprocessable, format!("cannot be imported: {why}"))),
    }
}

async fn product(
    worker: &Worker,
    rooms: Rooms,
    request: &Request,
    (url, selector): (&str, Option<&str>),
    file: Downloaded,
    lease: &Lease,
    deadline: Instant,
) -> Result<Gathered, Error> {
    let is_page = gallery::is_markup(file.content_type.as_deref(), &file.bytes) && raster::probe(&file.bytes).is_err();
    if !is_page {
        return Ok(failed(request, FailureKind::Unprocessable, "is no page of HTML"));
    }
    let page = ProductPage { url: url.to_owned(), resolved_url: file.url.to_string() };
    let (discovered, chosen) = match read(worker, &file, selector).await? {
        Some(read) => read,
        None => return Ok(failed(request, FailureKind::Unprocessable, "cannot be read")),
    };
    let found = match chosen {
        Ok(Choice { pictures, evidence }) => {
            let found = select(worker, rooms, pictures, lease, deadline).await?;
            let Some(found) = found else { return Ok(Gathered::Stale) };
            if found.brought.is_empty() {
                Err((ReviewReason::NoSupportedRasterImages, evidence, found.limited))
            } else {
                Ok((found, evidence))
            }
        }
        Err(refusal) => Err((refusal.reason, refusal.evidence, false)),
    };
    let counted = |imported: usize, limited: bool| Discovery {
        discovered_candidate_count: discovered,
        skipped_image_count: discovered - imported,
        limited: limited || file.truncated,
    };
    let variant = |evidence: Evidence| Variant { selector: selector.map(str::to_owned), evidence };
    Ok(match found {
        Ok((found, evidence)) => {
            let discovery = counted(found.brought.len(), found.limited);
            Gathered::Pictures(found.brought, Some(OfPage { page, variant: variant(evidence), discovery }))
        }
        Err((reason, evidence, limited)) => {
            Gathered::Review(Review { reason, page, variant: variant(evidence), discovery: counted(0, limited) })
        }
    })
}

type Read = (usize, Result<Choice, gallery::Refusal>);

/// Reads a page where that holds up nobody: five megabytes of markup take their time. Nothing when reading it panicked.
async fn read(worker: &Worker, file: &Downloaded, selector: Option<&str>) -> Result<Option<Read>, Error> {
    let (bytes, url) = (file.bytes.clone(), file.url.clone());
    let (content_type, selector) = (file.content_type.clone(), selector.map(str::to_owned));
    // The text and what is read out of it: a few times as large as the page.
    let memory_bytes = 8 * bytes.len() as u64;
    let reading = worker.pixels.run(memory_bytes, move || {
        let gallery = Gallery::read(&gallery::text(content_type.as_deref(), &bytes), &url);
        (gallery.discovered(), gallery.choose(selector.as_deref()))
    });
    match reading.await {
        Ok(read) => Ok(Some(read)),
        Err(panicked) => {
            tracing::error!(error = &panicked as &dyn std::error::Error, "reading a page panicked");
            Ok(None)
        }
    }
}

/// The pictures that were taken, and whether there are more.
struct Selection {
    brought: Vec<Brought>,
    limited: bool,
}

/// Fetches pictures in their order until there are enough; nothing when the lease is lost. One more than a pack holds is
/// looked for, so that `limited` is told rightly.
async fn select(
    worker: &Worker,
    rooms: Rooms,
    pictures: Vec<Vec<Url>>,
    lease: &Lease,
    deadline: Instant,
) -> Result<Option<Selection>, Error> {
    let mut selection = Selection { brought: Vec::new(), limited: pictures.len() > PACK_CANDIDATES_MAX };
    let wanted = pictures.into_iter().take(PACK_CANDIDATES_MAX);
    let fetch = |files, room| async move { (first(worker, files, deadline).await, room) };
    let fetched = rooms.fetched(wanted, fetch);
    let mut fetched = std::pin::pin!(fetched);
    loop {
        let Ok(next) = timeout_at(deadline, fetched.next()).await else {
            selection.limited = true;
            break;
        };
        let Some((fetched, _room)) = next else { break };
        let (url, picture) = match fetched? {
            Fetched::Picture(url, picture) => (url, picture),
            Fetched::Nothing => continue,
            // Others may be there already, fetched beside this one.
            Fetched::OutOfTime => {
                selection.limited = true;
                continue;
            }
        };
        let Size { width, height } = picture.size;
        if width.min(height) < PACK_SIDE_MIN {
            continue;
        }
        let twin = selection.brought.iter().position(|kept| {
            kept.sha256 == picture.content.sha256
                || picture::is_same((kept.size, &kept.thumbnail), (picture.size, &picture.thumbnail))
        });
        let is_larger = twin.is_none_or(|twin| selection.brought[twin].size.pixels() < picture.size.pixels());
        if twin.is_none() && selection.brought.len() == PACK_IMAGES_MAX {
            selection.limited = true;
            break;
        }
        if !is_larger {
            continue;
        }
        let Some(brought) = bring(worker, url, picture, lease).await? else { return Ok(None) };
        match twin {
            Some(twin) => selection.brought[twin] = brought,
            None => selection.brought.push(brought),
        }
    }
    Ok(Some(selection))
}

/// What came of fetching a picture.
#[derive(Debug)]
enum Fetched {
    /// It, and where it was found.
    Picture(Url, Picture),
    /// None of its files is a picture that can be shown.
    Nothing,
    /// The deadline passed before that could be told: the budget cut the search.
    OutOfTime,
}

/// The first of a picture's files that is one. What is wrong with one picture of many is no reason to give the others up.
async fn first(worker: &Worker, files: Vec<Url>, deadline: Instant) -> Result<Fetched, Error> {
    for url in files {
        let file = match worker.egress.download(&url, PICTURE, deadline).await {
            Ok(file) => file,
            // A download has no other limit of time than the deadline; what failed after it may have failed for it.
            Err(trouble) if trouble == DownloadError::Timeout || Instant::now() >= deadline => {
                return Ok(Fetched::OutOfTime);
            }
            Err(_) => continue,
        };
        if file.truncated {
            continue;
        }
        if let Ok(picture) = picture::read(worker, file.bytes).await? {
            return Ok(Fetched::Picture(file.url, picture));
        }
    }
    Ok(Fetched::Nothing)
}

/// Stores a picture; nothing when the lease may be lost. Its bytes are let go: a pack of the largest pictures would not fit.
async fn bring(worker: &Worker, url: Url, picture: Picture, lease: &Lease) -> Result<Option<Brought>, Error> {
    if !lease.check() {
        return Ok(None);
    }
    let Picture { content, format, size, thumbnail } = picture;
    let blob_key = worker.put(&content).await?;
    let (bytes, sha256) = (content.bytes.len() as u64, content.sha256);
    Ok(Some(Brought { url, format, size, bytes, sha256, blob_key, thumbnail }))
}

#[cfg(test)]
mod tests;
