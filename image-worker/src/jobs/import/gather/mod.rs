//! Fetches the images of an import into the object store (docs/reference/imports.md#gallery-discovery).

use std::time::Duration;

use domain::asset::MetadataClass;
use domain::import::{
    Discovery, Evidence, Failure, FailureKind, ProductPage, Request, Review, ReviewReason, SkipReason, Skipped, Variant,
};
use domain::limits::{
    IMPORT_BYTES_MAX, PACK_CANDIDATES_MAX, PACK_IMAGES_MAX, PACK_SIDE_MIN, PAGE_BYTES_MAX, UPLOAD_MAX,
};
use domain::origin::Origin;
use egress::{Allowance, DownloadError, DownloadRequest, Downloaded};
use futures_util::StreamExt;
use raster::{Format, Size};
use taskqueue::Lease;
use tokio::time::{Instant, timeout_at};
use url::Url;
use uuid::Uuid;
use worker::files::CleanContent;
use worker::{Error, Worker};

use super::files::FilePermits;
use super::image::{self, ImportedImage, Thumbnail, Unusable};
use crate::gallery::{self, Choice, Gallery, Skips};

/// Maximum time of an import (docs/reference/imports.md#discovery-budgets).
const TIME_MAX: Duration = Duration::from_secs(45);

/// Identifies the service to foreign hosts.
const USER_AGENT: &str = "Canvas-Imports/1.0";

/// A request as browsers send it, without the formats that cannot be imported: servers negotiate image formats by `Accept`.
const PAGE: DownloadRequest<'_> = DownloadRequest {
    user_agent: USER_AGENT,
    accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    bytes_max: PAGE_BYTES_MAX,
    referrer: None,
    allowance: None,
};
const IMAGE: DownloadRequest<'_> = DownloadRequest {
    user_agent: USER_AGENT,
    accept: "image/webp,image/apng,image/png,image/jpeg,image/gif,image/*;q=0.8,*/*;q=0.5",
    bytes_max: UPLOAD_MAX as usize,
    referrer: None,
    allowance: None,
};

/// What an import may still use.
struct Budget {
    deadline: Instant,
    bytes: Allowance,
}

impl Budget {
    fn new(time: Duration, bytes: u64) -> Self {
        Self { deadline: Instant::now() + time, bytes: Allowance::new(bytes) }
    }

    /// Downloads a file within the budget.
    async fn download(
        &self,
        worker: &Worker,
        url: &Url,
        wanted: DownloadRequest<'_>,
    ) -> Result<Downloaded, DownloadError> {
        let wanted = DownloadRequest { allowance: Some(&self.bytes), ..wanted };
        worker.egress.download(url, wanted, self.deadline).await
    }
}

/// The outcome of gathering images.
pub(super) enum Gathered {
    /// Images in the store.
    Images(Vec<Brought>, Option<OfPage>),
    /// A person has to decide or check first.
    Review(Review),
    Failed(Failure),
    /// The lease is lost, or may be.
    Stale,
}

/// Data of a page about its images.
pub(super) struct OfPage {
    pub page: ProductPage,
    pub variant: Variant,
    pub discovery: Discovery,
}

/// An image in the store that nothing refers to yet.
pub(super) struct Brought {
    pub url: Url,
    pub format: Format,
    pub size: Size,
    pub bytes: u64,
    pub sha256: [u8; 32],
    pub blob_key: Uuid,
    pub origin: Option<Origin>,
    pub metadata_removed: Vec<MetadataClass>,
    /// It has more than one frame.
    pub is_animated: bool,
    thumbnail: Thumbnail,
}

/// Fetches, checks and stores the requested images. The reservation of an image lasts from before its fetch until it is
/// stored.
pub(super) async fn gather(
    worker: &Worker,
    account: &str,
    permits: FilePermits,
    request: &Request,
    lease: &Lease,
) -> Result<Gathered, Error> {
    let budget = Budget::new(TIME_MAX, IMPORT_BYTES_MAX);
    let (Request::Image { url, .. } | Request::Product { url, .. }) = request;
    let Ok(parsed) = Url::parse(url) else {
        return Ok(failed(request, FailureKind::Unprocessable, "is not a valid URL"));
    };
    let gathered = match request {
        Request::Image { .. } => image(worker, account, request, &parsed, lease, &budget).await?,
        Request::Product { selector, .. } => {
            let page = budget.download(worker, &parsed, PAGE).await;
            match page {
                Ok(page) => {
                    let wanted = (url.as_str(), selector.as_deref());
                    product((worker, account), permits, request, wanted, page, lease, &budget).await?
                }
                Err(error) => download_failed(request, error),
            }
        }
    };
    Ok(gathered)
}

fn failed(request: &Request, kind: FailureKind, message: impl Into<String>) -> Gathered {
    let (field, message) = (request.url_field().into(), message.into());
    Gathered::Failed(Failure { kind, field, message, full: None, is_heic: false })
}

fn download_failed(request: &Request, error: DownloadError) -> Gathered {
    match error {
        DownloadError::Refused(why) => failed(request, FailureKind::Unprocessable, why),
        DownloadError::Upstream(why) => failed(request, FailureKind::Upstream, why),
        DownloadError::Timeout => failed(request, FailureKind::Timeout, "took too long"),
        DownloadError::Slow => failed(request, FailureKind::Timeout, "is sent too slowly"),
        DownloadError::Exhausted => failed(request, FailureKind::Unprocessable, "is too large"),
    }
}

async fn image(
    worker: &Worker,
    account: &str,
    request: &Request,
    url: &Url,
    lease: &Lease,
    budget: &Budget,
) -> Result<Gathered, Error> {
    let file = match budget.download(worker, url, IMAGE).await {
        Ok(file) if file.truncated => {
            let message = format!("is larger than {UPLOAD_MAX} bytes");
            return Ok(failed(request, FailureKind::Unprocessable, message));
        }
        Ok(file) => file,
        Err(error) => return Ok(download_failed(request, error)),
    };
    // The decoding may have to wait for memory and a thread.
    let Ok(read) = timeout_at(budget.deadline, image::read(worker, account, file.bytes)).await else {
        return Ok(failed(request, FailureKind::Timeout, "took too long"));
    };
    match read? {
        Ok(image) => Ok(match bring(worker, file.url, image, lease).await? {
            Some(brought) => Gathered::Images(vec![brought], None),
            None => Gathered::Stale,
        }),
        Err(why) => Ok(Gathered::Failed(Failure {
            kind: FailureKind::Unprocessable,
            field: request.url_field().into(),
            message: format!("cannot be imported: {why}"),
            full: None,
            is_heic: matches!(why, Unusable::Heic),
        })),
    }
}

async fn product(
    (worker, account): (&Worker, &str),
    permits: FilePermits,
    request: &Request,
    (url, selector): (&str, Option<&str>),
    file: Downloaded,
    lease: &Lease,
    budget: &Budget,
) -> Result<Gathered, Error> {
    let is_page = gallery::is_markup(file.content_type.as_deref(), &file.bytes) && raster::probe(&file.bytes).is_err();
    if !is_page {
        return Ok(failed(request, FailureKind::Unprocessable, "is no page of HTML"));
    }
    let page = ProductPage { url: url.to_owned(), resolved_url: file.url.to_string() };
    let (discovered, chosen) = match read(worker, &file, selector, budget.deadline).await {
        Ok(read) => read,
        Err((kind, why)) => return Ok(failed(request, kind, why)),
    };
    let discovery = |skips: Skips, limited: bool| Discovery {
        discovered_candidate_count: discovered,
        skipped_image_count: skips.values().sum(),
        skipped: skips.into_iter().map(|(reason, count)| Skipped { reason, count }).collect(),
        limited: limited || file.truncated,
    };
    let variant = |evidence: Evidence| Variant { selector: selector.map(str::to_owned), evidence };
    let review = |reason, page, evidence, discovery| {
        Gathered::Review(Review { reason, page, variant: variant(evidence), discovery })
    };
    Ok(match chosen {
        Ok(Choice { images, evidence, mut skipped }) => {
            let found = select((worker, account), permits, &file.url, images, lease, budget).await?;
            let Some(found) = found else { return Ok(Gathered::Stale) };
            found.skips.into_iter().for_each(|(reason, count)| *skipped.entry(reason).or_default() += count);
            let discovery = discovery(skipped, found.limited);
            if found.brought.is_empty() {
                review(ReviewReason::NoSupportedRasterImages, page, evidence, discovery)
            } else {
                Gathered::Images(found.brought, Some(OfPage { page, variant: variant(evidence), discovery }))
            }
        }
        Err(needed) => review(needed.reason, page, needed.evidence, discovery(needed.skipped, false)),
    })
}

type Read = (usize, Result<Choice, gallery::ReviewNeeded>);

/// Parses a page on a blocking thread, because five megabytes of markup take time. Fails if parsing panicked or is not done by
/// the deadline, also because others hold the memory or the threads.
async fn read(
    worker: &Worker,
    file: &Downloaded,
    selector: Option<&str>,
    deadline: Instant,
) -> Result<Read, (FailureKind, &'static str)> {
    let (bytes, url) = (file.bytes.clone(), file.url.clone());
    let (content_type, selector) = (file.content_type.clone(), selector.map(str::to_owned));
    let reading = worker.pixels.run(gallery::memory_bytes(bytes.len()), move || {
        let gallery = Gallery::parse(&gallery::text(content_type.as_deref(), &bytes), &url);
        (gallery.discovered(), gallery.choose(selector.as_deref()))
    });
    match timeout_at(deadline, reading).await {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(panicked)) => {
            tracing::error!(error = &panicked as &dyn std::error::Error, "reading a page panicked");
            Err((FailureKind::Unprocessable, "cannot be read"))
        }
        Err(_) => Err((FailureKind::Timeout, "took too long")),
    }
}

/// The images that were taken, why the others were not, and whether there are more.
struct Selection {
    brought: Vec<Brought>,
    skips: Skips,
    limited: bool,
}

/// Fetches images in order until there are enough; `None` when the lease is lost. Looks for one more than a pack holds, so that
/// `limited` is correct.
async fn select(
    (worker, account): (&Worker, &str),
    permits: FilePermits,
    page: &Url,
    images: Vec<Vec<Url>>,
    lease: &Lease,
    budget: &Budget,
) -> Result<Option<Selection>, Error> {
    let count = images.len();
    let mut selection = Selection { brought: Vec::new(), skips: Skips::new(), limited: count > PACK_CANDIDATES_MAX };
    let wanted = images.into_iter().take(PACK_CANDIDATES_MAX);
    let fetch = |files, permit| async move { (first(worker, account, page, files, budget).await, permit) };
    let fetched = permits.fetched(wanted, fetch);
    let mut fetched = std::pin::pin!(fetched);
    loop {
        let Ok(next) = timeout_at(budget.deadline, fetched.next()).await else {
            selection.limited = true;
            break;
        };
        let Some((fetched, _permit)) = next else { break };
        let (url, image) = match fetched? {
            Fetched::Image(url, image) => (url, *image),
            Fetched::Nothing(reason) => {
                *selection.skips.entry(reason).or_default() += 1;
                continue;
            }
            // Other images, fetched concurrently with this one, may be complete already.
            Fetched::OverBudget => {
                selection.limited = true;
                continue;
            }
        };
        let twin = selection.brought.iter().position(|kept| {
            kept.sha256 == image.content.content.sha256
                || image::is_same((kept.size, &kept.thumbnail), (image.size, &image.thumbnail))
        });
        let is_larger = twin.is_none_or(|twin| selection.brought[twin].size.pixels() < image.size.pixels());
        if twin.is_none() && selection.brought.len() == PACK_IMAGES_MAX {
            selection.limited = true;
            break;
        }
        if twin.is_some() {
            *selection.skips.entry(SkipReason::Duplicate).or_default() += 1;
        }
        if !is_larger {
            continue;
        }
        let Some(brought) = bring(worker, url, image, lease).await? else { return Ok(None) };
        match twin {
            Some(twin) => selection.brought[twin] = brought,
            None => selection.brought.push(brought),
        }
    }
    let rest = count - selection.brought.len() - selection.skips.values().sum::<usize>();
    if rest > 0 {
        selection.skips.insert(SkipReason::Limit, rest);
    }
    Ok(Some(selection))
}

/// Outcome of fetching an image.
#[derive(Debug)]
enum Fetched {
    /// The image, and its URL.
    Image(Url, Box<ImportedImage>),
    /// None of the files is a usable image.
    Nothing(SkipReason),
    /// The time or the bytes of the import were used up first.
    OverBudget,
}

/// The first of an image's files that is usable. One broken image of many does not fail the others.
async fn first(worker: &Worker, account: &str, page: &Url, files: Vec<Url>, budget: &Budget) -> Result<Fetched, Error> {
    // The file that comes closest to an image tells why there is none.
    let mut reason = SkipReason::Unreachable;
    for url in files {
        let wanted = DownloadRequest { referrer: Some(page), ..IMAGE };
        let file = match budget.download(worker, &url, wanted).await {
            Ok(file) => file,
            Err(DownloadError::Timeout | DownloadError::Exhausted) => return Ok(Fetched::OverBudget),
            // A failure after the deadline may have been caused by it.
            Err(_) if Instant::now() >= budget.deadline => return Ok(Fetched::OverBudget),
            Err(_) => continue,
        };
        let read = if file.truncated { None } else { image::read(worker, account, file.bytes).await?.ok() };
        match read {
            Some(ImportedImage { size: Size { width, height }, .. }) if width.min(height) < PACK_SIDE_MIN => {
                reason = SkipReason::TooSmall;
            }
            Some(image) => return Ok(Fetched::Image(file.url, Box::new(image))),
            None => reason = reason.min(SkipReason::Unusable),
        }
    }
    Ok(Fetched::Nothing(reason))
}

/// Stores an image; `None` when the lease may be lost. Its bytes are dropped: a pack of the largest images would not fit in
/// memory.
async fn bring(worker: &Worker, url: Url, image: ImportedImage, lease: &Lease) -> Result<Option<Brought>, Error> {
    if !lease.check() {
        return Ok(None);
    }
    let ImportedImage { content: CleanContent { content, metadata_removed }, format, size, origin, thumbnail } = image;
    let blob_key = worker.put(&content).await?;
    let (bytes, sha256) = (content.bytes.len() as u64, content.sha256);
    let is_animated = raster::animation::is_animated(&content.bytes);
    Ok(Some(Brought { url, format, size, bytes, sha256, blob_key, origin, metadata_removed, is_animated, thumbnail }))
}

#[cfg(test)]
mod tests;
