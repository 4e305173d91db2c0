//! Frames and references: found, fetched, and converted into a form that a provider accepts.

use bytes::Bytes;
use decoder::Order;
use domain::asset::AssetRecord;
use domain::job::VideoImage;
use domain::origin::Origin;
use egress::DownloadRequest;
use providers::{OrderImage, ProtocolCapabilities};
use tokio::time::Instant;
use url::Url;
use worker::Interrupt;
use worker::decode::Check;
use worker::generation::{Admitted, order_bytes};
use worker::image::{fitted, unusable};
use worker::marks::claimed_origin;

use super::run::Run;

/// Limits of a foreign image: the size of an upload, minus the size of the job's other foreign images.
const WANTED: DownloadRequest<'_> = DownloadRequest {
    user_agent: "Canvas-Videos/1.0",
    accept: "image/png, image/jpeg, image/webp, image/gif;q=0.9",
    bytes_max: domain::limits::UPLOAD_MAX as usize,
    referrer: None,
    allowance: None,
};

/// The receiver of the images.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reader {
    /// The embedded runtime. It accepts every file unchanged and reports images that it cannot
    /// decode.
    Embedded,
    /// A provider with these capabilities. It accepts PNG, JPEG and WebP up to a size limit.
    Provider(ProtocolCapabilities),
}

/// A request's images by purpose.
#[derive(Default)]
pub(super) struct Images {
    pub first: Option<OrderImage>,
    pub last: Option<OrderImage>,
    pub references: Vec<OrderImage>,
    /// The origins of the images.
    pub origins: Vec<Option<Origin>>,
    /// The memory reserved for them.
    pub admitted: Option<Admitted>,
}

impl Run<'_> {
    /// Loads the request's images once `enter` has acquired a slot and there is memory for them.
    /// `None` if there is no slot, or if foreign images are needed and it is not the account's
    /// turn to fetch them.
    ///
    /// Foreign images are fetched first, in separate memory, and then counted with the others by
    /// their actual size. The slot is held meanwhile, so that foreign hosts are not asked for
    /// images that no slot is available for.
    pub(super) async fn images<P>(
        &self,
        reader: Reader,
        enter: impl Future<Output = Option<P>>,
    ) -> Result<Option<(Images, P)>, Interrupt> {
        let generator = self.task_run.generator;
        let stored = self.stored().await?;
        let (place, fetched, admitted) = if stored.len() == self.request.images().count() {
            let admitted = self.admitted(reader, &stored, &[]).await?;
            let Some(place) = enter.await else { return Ok(None) };
            (place, Vec::new(), admitted)
        } else {
            let room = self.task_run.unless_canceled(generator.memory.foreign(&self.task_run.job.account)).await?;
            let Some(_room) = room else { return Ok(None) };
            let Some(place) = enter.await else { return Ok(None) };
            let fetched = self.fetched(reader).await?;
            let admitted = self.admitted(reader, &stored, &fetched).await?;
            (place, fetched, admitted)
        };
        let claimed = fetched.iter().map(|image| claimed_origin(&image.bytes));
        let origins = stored.iter().map(|asset| asset.origin).chain(claimed).collect();
        let (mut stored, mut fetched) = (stored.into_iter(), fetched.into_iter());
        let mut next = async |image: &VideoImage| {
            let gone = || unusable(&image.named, "it is gone");
            if image.asset.is_none() {
                return Ok::<_, Interrupt>(fetched.next().ok_or_else(gone)?);
            }
            let file = match stored.next() {
                Some(asset) => generator.worker.get(asset.blob_key).await?,
                None => None,
            };
            self.read(image, file.ok_or_else(gone)?, reader).await
        };
        let mut images = Images { origins, admitted: Some(admitted), ..Images::default() };
        if let Some(first) = &self.request.first_frame {
            images.first = Some(next(first).await?);
        }
        if let Some(last) = &self.request.last_frame {
            images.last = Some(next(last).await?);
        }
        for reference in &self.request.references {
            images.references.push(next(reference).await?);
        }
        Ok(Some((images, place)))
    }

    /// Reserves memory for these images until the consumer has them.
    async fn admitted(
        &self,
        reader: Reader,
        stored: &[AssetRecord],
        fetched: &[OrderImage],
    ) -> Result<Admitted, Interrupt> {
        let files = stored.iter().map(|asset| asset.bytes.unsigned_abs());
        let bytes = files.chain(fetched.iter().map(|image| image.bytes.len() as u64)).sum();
        let bytes = match reader {
            Reader::Embedded => bytes,
            Reader::Provider(capabilities) => order_bytes(&capabilities, bytes, 1),
        };
        self.task_run.unless_canceled(self.task_run.generator.memory.order(bytes)).await
    }

    /// The images without their bytes, to look up an earlier submit.
    pub(super) fn blank_images(&self) -> Images {
        let blank = |it: &VideoImage| OrderImage { bytes: Bytes::new(), media_type: "image/png", role: it.role };
        Images {
            first: self.request.first_frame.as_ref().map(blank),
            last: self.request.last_frame.as_ref().map(blank),
            references: self.request.references.iter().map(blank).collect(),
            ..Images::default()
        }
    }

    /// The records of the stored images, in order.
    async fn stored(&self) -> Result<Vec<AssetRecord>, Interrupt> {
        let mut assets = Vec::new();
        for image in self.request.images() {
            let Some(handle) = &image.asset else { continue };
            let asset = db::assets::get(&mut *self.task_run.generator.worker.connection().await?, handle).await?;
            assets.push(asset.ok_or_else(|| unusable(&image.named, "it is gone"))?);
        }
        Ok(assets)
    }

    /// Fetches the foreign images in order, within one deadline and with the memory for one file:
    /// each is converted for its consumer before the next is fetched.
    async fn fetched(&self, reader: Reader) -> Result<Vec<OrderImage>, Interrupt> {
        let until = Instant::now() + self.task_run.generator.settings.foreign_max;
        let (mut room, mut fetched) = (WANTED.bytes_max, Vec::new());
        for image in self.request.images().filter(|image| image.asset.is_none()) {
            let file = self.task_run.unless_canceled(self.fetch(&image.named, room, until)).await?;
            let file = file.map_err(|why| unusable(&image.named, why))?;
            let read = self.read(image, file, reader).await?;
            room = room.saturating_sub(read.bytes.len());
            fetched.push(read);
        }
        Ok(fetched)
    }

    /// Fetches a foreign image; the error says why that failed.
    async fn fetch(&self, url: &str, bytes_max: usize, until: Instant) -> Result<Bytes, String> {
        let url = Url::parse(url).map_err(|_| "it is not a valid URL".to_owned())?;
        let wanted = DownloadRequest { bytes_max, ..WANTED };
        let fetching = self.task_run.generator.worker.egress.download(&url, wanted, until);
        let fetched = fetching.await.map_err(|error| format!("it {error}"))?;
        if fetched.truncated { Err("it is too large".to_owned()) } else { Ok(fetched.bytes) }
    }

    /// Converts a file for its consumer. An image from a foreign host is decoded completely once, before a provider is paid to
    /// use it; a stored image was decoded for its rendition.
    async fn read(&self, image: &VideoImage, file: Bytes, reader: Reader) -> Result<OrderImage, Interrupt> {
        let refuse = |why: String| unusable(&image.named, why);
        let header = raster::probe(&file).map_err(|error| refuse(error.to_string()))?;
        let (bytes, format) = match reader {
            Reader::Embedded => (file, header.format),
            Reader::Provider(capabilities) => {
                let (pixels, account) = (&self.task_run.generator.worker.pixels, &self.task_run.job.account);
                if image.asset.is_none() {
                    let order = Order::new(account.as_str(), Check, vec![file.clone()]);
                    let checking = async {
                        let memory = pixels.reserve(file.len() as u64 + header.decoded_bytes()).await;
                        memory.decode(order, |_, _| ()).await
                    };
                    self.task_run.unless_canceled(checking).await??.map_err(refuse)?;
                }
                let fitting = fitted(pixels, account, file, &header, capabilities.image_bytes_max);
                self.task_run.unless_canceled(fitting).await??.map_err(refuse)?
            }
        };
        Ok(OrderImage { bytes, media_type: format.media_type(), role: image.role })
    }
}
