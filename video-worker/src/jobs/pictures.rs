//! Frames and references: found, fetched, and converted into a form that a provider accepts.

use bytes::Bytes;
use domain::asset::AssetRecord;
use domain::job::VideoPicture;
use domain::origin::Origin;
use egress::DownloadRequest;
use providers::{Picture, ProtocolCapabilities};
use tokio::time::Instant;
use url::Url;
use worker::Interrupt;
use worker::generation::{Admitted, order_bytes};
use worker::marks::claimed_origin;
use worker::picture::{fitted, unusable};

use super::run::Run;

/// Limits of a foreign picture: the size of an upload, minus the size of the job's other foreign pictures.
const WANTED: DownloadRequest<'_> = DownloadRequest {
    user_agent: "Canvas-Videos/1.0",
    accept: "image/png, image/jpeg, image/webp, image/gif;q=0.9",
    bytes_max: domain::limits::UPLOAD_MAX as usize,
    referrer: None,
};

/// Who receives the pictures.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reader {
    /// The embedded runtime. It accepts every file unchanged and reports pictures that it cannot
    /// decode.
    Embedded,
    /// A provider with these capabilities. It accepts PNG, JPEG and WebP up to a size limit.
    Provider(ProtocolCapabilities),
}

/// A request's pictures by purpose.
#[derive(Default)]
pub(super) struct Pictures {
    pub first: Option<Picture>,
    pub last: Option<Picture>,
    pub references: Vec<Picture>,
    /// Where the pictures come from.
    pub origins: Vec<Option<Origin>>,
    /// The memory reserved for them.
    pub admitted: Option<Admitted>,
}

impl Run<'_> {
    /// Loads the request's pictures once `enter` has acquired a slot and there is memory for them.
    /// `None` if there is no slot, or if foreign pictures are needed and it is not the account's
    /// turn to fetch them.
    ///
    /// Foreign pictures are fetched first, in separate memory, and then counted with the others by
    /// their actual size. The slot is held meanwhile, so that foreign hosts are not asked for
    /// pictures that no slot is available for.
    pub(super) async fn pictures<P>(
        &self,
        reader: Reader,
        enter: impl Future<Output = Option<P>>,
    ) -> Result<Option<(Pictures, P)>, Interrupt> {
        let generator = self.task_run.generator;
        let stored = self.stored().await?;
        let (place, fetched, admitted) = if stored.len() == self.request.pictures().count() {
            let admitted = self.admitted(reader, &stored, &[]).await?;
            let Some(place) = enter.await else { return Ok(None) };
            (place, Vec::new(), admitted)
        } else {
            let room = self.task_run.unless_canceled(generator.memory.foreign(&self.task_run.job.account)).await?;
            let Some(_room) = room else { return Ok(None) };
            let Some(place) = enter.await else { return Ok(None) };
            // Slow name lookups use only the account's share.
            let account = &self.task_run.job.account;
            let fetched = egress::on_behalf_of(account.as_str(), self.fetched(reader)).await?;
            let admitted = self.admitted(reader, &stored, &fetched).await?;
            (place, fetched, admitted)
        };
        let claimed = fetched.iter().map(|picture| claimed_origin(&picture.bytes));
        let origins = stored.iter().map(|asset| asset.origin).chain(claimed).collect();
        let (mut stored, mut fetched) = (stored.into_iter(), fetched.into_iter());
        let mut next = async |picture: &VideoPicture| {
            let gone = || unusable(&picture.named, "it is gone");
            if picture.asset.is_none() {
                return Ok::<_, Interrupt>(fetched.next().ok_or_else(gone)?);
            }
            let file = match stored.next() {
                Some(asset) => generator.worker.get(asset.blob_key).await?,
                None => None,
            };
            self.read(picture, file.ok_or_else(gone)?, reader).await
        };
        let mut pictures = Pictures { origins, admitted: Some(admitted), ..Pictures::default() };
        if let Some(first) = &self.request.first_frame {
            pictures.first = Some(next(first).await?);
        }
        if let Some(last) = &self.request.last_frame {
            pictures.last = Some(next(last).await?);
        }
        for reference in &self.request.references {
            pictures.references.push(next(reference).await?);
        }
        Ok(Some((pictures, place)))
    }

    /// Reserves memory for these pictures until the consumer has them.
    async fn admitted(
        &self,
        reader: Reader,
        stored: &[AssetRecord],
        fetched: &[Picture],
    ) -> Result<Admitted, Interrupt> {
        let files = stored.iter().map(|asset| asset.bytes.unsigned_abs());
        let bytes = files.chain(fetched.iter().map(|picture| picture.bytes.len() as u64)).sum();
        let bytes = match reader {
            Reader::Embedded => bytes,
            Reader::Provider(capabilities) => order_bytes(&capabilities, bytes, 1),
        };
        self.task_run.unless_canceled(self.task_run.generator.memory.order(bytes)).await
    }

    /// The pictures without their bytes, to look up an earlier submit.
    pub(super) fn blank_pictures(&self) -> Pictures {
        let blank = |it: &VideoPicture| Picture { bytes: Bytes::new(), media_type: "image/png", role: it.role };
        Pictures {
            first: self.request.first_frame.as_ref().map(blank),
            last: self.request.last_frame.as_ref().map(blank),
            references: self.request.references.iter().map(blank).collect(),
            ..Pictures::default()
        }
    }

    /// The records of the stored pictures, in order.
    async fn stored(&self) -> Result<Vec<AssetRecord>, Interrupt> {
        let mut assets = Vec::new();
        for picture in self.request.pictures() {
            let Some(handle) = &picture.asset else { continue };
            let asset = db::assets::get(&mut *self.task_run.generator.worker.connection().await?, handle).await?;
            assets.push(asset.ok_or_else(|| unusable(&picture.named, "it is gone"))?);
        }
        Ok(assets)
    }

    /// Fetches the foreign pictures in order, within one deadline and with the memory for one file:
    /// each is converted for its consumer before the next is fetched.
    async fn fetched(&self, reader: Reader) -> Result<Vec<Picture>, Interrupt> {
        let until = Instant::now() + self.task_run.generator.settings.foreign_max;
        let (mut room, mut fetched) = (WANTED.bytes_max, Vec::new());
        for picture in self.request.pictures().filter(|picture| picture.asset.is_none()) {
            let file = self.task_run.unless_canceled(self.fetch(&picture.named, room, until)).await?;
            let file = file.map_err(|why| unusable(&picture.named, why))?;
            let read = self.read(picture, file, reader).await?;
            room = room.saturating_sub(read.bytes.len());
            fetched.push(read);
        }
        Ok(fetched)
    }

    /// Fetches a foreign picture; the error says why that failed.
    async fn fetch(&self, url: &str, bytes_max: usize, until: Instant) -> Result<Bytes, String> {
        let url = Url::parse(url).map_err(|_| "it is not a valid URL".to_owned())?;
        let wanted = DownloadRequest { bytes_max, ..WANTED };
        let fetching = self.task_run.generator.worker.egress.download(&url, wanted, until);
        let fetched = fetching.await.map_err(|error| format!("it {error}"))?;
        if fetched.truncated { Err("it is too large".to_owned()) } else { Ok(fetched.bytes) }
    }

    /// Converts a file for its consumer. A picture from a foreign host is decoded completely once, before a provider is paid to
    /// use it; a stored picture was decoded for its rendition.
    async fn read(&self, picture: &VideoPicture, file: Bytes, reader: Reader) -> Result<Picture, Interrupt> {
        let refuse = |why: String| unusable(&picture.named, why);
        let header = raster::probe(&file).map_err(|error| refuse(error.to_string()))?;
        let (bytes, format) = match reader {
            Reader::Embedded => (file, header.format),
            Reader::Provider(capabilities) => {
                let pixels = &self.task_run.generator.worker.pixels;
                if picture.asset.is_none() {
                    let file = file.clone();
                    let decode = move || raster::decode(&file).map(drop);
                    let decoded = self.task_run.unless_canceled(pixels.run(header.decoded_bytes(), decode)).await??;
                    decoded.map_err(|error| refuse(error.to_string()))?;
                }
                let fitting = fitted(pixels, file, &header, capabilities.picture_bytes_max);
                self.task_run.unless_canceled(fitting).await??.map_err(refuse)?
            }
        };
        Ok(Picture { bytes, media_type: format.media_type(), role: picture.role })
    }
}
