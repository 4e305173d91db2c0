//! Frames and references: found, fetched, and brought into a form that a provider takes.

use bytes::Bytes;
use domain::asset::AssetRecord;
use domain::job::VideoPicture;
use egress::Wanted;
use providers::{Picture, Promises};
use raster::DecodeOptions;
use tokio::time::Instant;
use url::Url;
use workshop::Stop;
use workshop::generation::{Admitted, order_bytes};
use workshop::picture::{fitted, unusable};

use super::run::Run;

/// What of a foreign picture is asked for: as many bytes as an upload may have (decisions 1.5), less what others of its job took.
const WANTED: Wanted = Wanted {
    user_agent: "Canvas-Videos/1.0",
    accept: "image/png, image/jpeg, image/webp, image/gif;q=0.9",
    bytes_max: domain::limits::UPLOAD_MAX as usize,
};

/// For whom pictures are loaded.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reader {
    /// The embedded runtime, which takes every file as it is and says itself what it cannot read.
    Embedded,
    /// A provider that promises this: it takes PNG, JPEG and WebP up to a size.
    Provider(Promises),
}

/// A request's pictures, by what they are for.
#[derive(Default)]
pub(super) struct Pictures {
    /// What it begins with.
    pub first: Option<Picture>,
    /// What it ends with.
    pub last: Option<Picture>,
    /// What guides it.
    pub references: Vec<Picture>,
    /// Their place in memory.
    pub admitted: Option<Admitted>,
}

impl Run<'_> {
    /// Loads the request's pictures as soon as there is memory for them, once `enter` has the place that they are for; nothing when
    /// it has none, and when it is not the account's turn to have foreign ones fetched.
    ///
    /// Foreign ones are fetched first, in room of their own: they are counted with the others by what they have, which shows when
    /// they are there. That they were fetched for nothing would be seen outside, so that the place is held meanwhile.
    pub(super) async fn pictures<P>(
        &self,
        reader: Reader,
        enter: impl Future<Output = Option<P>>,
    ) -> Result<Option<(Pictures, P)>, Stop> {
        let generator = self.turn.generator;
        let stored = self.stored().await?;
        let (place, fetched, admitted) = if stored.len() == self.request.pictures().count() {
            let admitted = self.admitted(reader, &stored, &[]).await?;
            let Some(place) = enter.await else { return Ok(None) };
            (place, Vec::new(), admitted)
        } else {
            let room = self.turn.unless_canceled(generator.in_hand.foreign(&self.turn.job.account)).await?;
            let Some(_room) = room else { return Ok(None) };
            let Some(place) = enter.await else { return Ok(None) };
            let fetched = self.fetched(reader).await?;
            let admitted = self.admitted(reader, &stored, &fetched).await?;
            (place, fetched, admitted)
        };
        let (mut stored, mut fetched) = (stored.into_iter(), fetched.into_iter());
        let mut next = async |picture: &VideoPicture| {
            let gone = || unusable(&picture.named, "it is gone");
            if picture.asset.is_none() {
                return Ok::<_, Stop>(fetched.next().ok_or_else(gone)?);
            }
            let file = match stored.next() {
                Some(asset) => generator.worker.get(asset.blob_key).await?,
                None => None,
            };
            self.read(picture, file.ok_or_else(gone)?, reader).await
        };
        let mut pictures = Pictures { admitted: Some(admitted), ..Pictures::default() };
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

    /// A place in memory for these pictures, on their way to their reader.
    async fn admitted(&self, reader: Reader, stored: &[AssetRecord], fetched: &[Picture]) -> Result<Admitted, Stop> {
        let files = stored.iter().map(|asset| asset.bytes.unsigned_abs());
        let bytes = files.chain(fetched.iter().map(|picture| picture.bytes.len() as u64)).sum();
        let bytes = match reader {
            Reader::Embedded => bytes,
            Reader::Provider(promises) => order_bytes(&promises, bytes, 1),
        };
        self.turn.unless_canceled(self.turn.generator.in_hand.order(bytes)).await
    }

    /// The same without their bytes, as a look-up names them.
    pub(super) fn blank_pictures(&self) -> Pictures {
        let blank = |it: &VideoPicture| Picture { bytes: Bytes::new(), media_type: "image/png", role: it.role };
        Pictures {
            first: self.request.first_frame.as_ref().map(blank),
            last: self.request.last_frame.as_ref().map(blank),
            references: self.request.references.iter().map(blank).collect(),
            admitted: None,
        }
    }

    /// What is stored of the pictures that are the account's, in their order.
    async fn stored(&self) -> Result<Vec<AssetRecord>, Stop> {
        let mut assets = Vec::new();
        for picture in self.request.pictures() {
            let Some(handle) = &picture.asset else { continue };
            let asset = db::assets::get(&mut *self.turn.generator.worker.connection().await?, handle).await?;
            assets.push(asset.ok_or_else(|| unusable(&picture.named, "it is gone"))?);
        }
        Ok(assets)
    }

    /// The foreign pictures in their order, within one deadline and one file's room: each is in the form that its reader takes
    /// before the next is fetched.
    async fn fetched(&self, reader: Reader) -> Result<Vec<Picture>, Stop> {
        let until = Instant::now() + self.turn.generator.settings.foreign_max;
        let (mut room, mut fetched) = (WANTED.bytes_max, Vec::new());
        for picture in self.request.pictures().filter(|picture| picture.asset.is_none()) {
            let file = self.turn.unless_canceled(self.fetch(&picture.named, room, until)).await?;
            let file = file.map_err(|why| unusable(&picture.named, why))?;
            let read = self.read(picture, file, reader).await?;
            room = room.saturating_sub(read.bytes.len());
            fetched.push(read);
        }
        Ok(fetched)
    }

    /// A foreign picture, or why there is none.
    async fn fetch(&self, url: &str, bytes_max: usize, until: Instant) -> Result<Bytes, String> {
        let url = Url::parse(url).map_err(|_| "it is no URL".to_owned())?;
        let wanted = Wanted { bytes_max, ..WANTED };
        let fetching = self.turn.generator.worker.egress.download(&url, wanted, until);
        let fetched = fetching.await.map_err(|error| format!("it {error}"))?;
        if fetched.truncated { Err("it is too large".to_owned()) } else { Ok(fetched.bytes) }
    }

    /// A file in the form that its reader takes. What comes from a foreign host is decoded once, all of it, before anybody is
    /// paid to look at it; what is stored was, when it was uploaded.
    async fn read(&self, picture: &VideoPicture, file: Bytes, reader: Reader) -> Result<Picture, Stop> {
        let refuse = |why: String| unusable(&picture.named, why);
        let header = raster::probe(&file).map_err(|error| refuse(error.to_string()))?;
        let (bytes, format) = match reader {
            Reader::Embedded => (file, header.format),
            Reader::Provider(promises) => {
                let pixels = &self.turn.generator.worker.pixels;
                if picture.asset.is_none() {
                    let file = file.clone();
                    let decode = move || raster::decode(&file, DecodeOptions::default()).map(drop);
                    let decoded = self.turn.unless_canceled(pixels.run(header.decoded_bytes(), decode)).await??;
                    decoded.map_err(|error| refuse(error.to_string()))?;
                }
                let fitting = fitted(pixels, file, &header, promises.picture_bytes_max);
                self.turn.unless_canceled(fitting).await??.map_err(refuse)?
            }
        };
        Ok(Picture { bytes, media_type: format.media_type(), role: picture.role })
    }
}
