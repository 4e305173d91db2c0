//! Frames and references: found, fetched, and brought into a form that a provider takes.

use std::time::Duration;

use bytes::Bytes;
use domain::job::{Failure, FailureCode, VideoPicture};
use egress::Wanted;
use providers::{Picture, Promises};
use raster::DecodeOptions;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use url::Url;
use workshop::generation::order_bytes;
use workshop::{Stop, picture};

use super::run::Run;

/// What of a foreign picture is asked for: as many bytes as an upload may have (decisions 1.5).
const WANTED: Wanted = Wanted {
    user_agent: "Canvas-Videos/1.0",
    accept: "image/png, image/jpeg, image/webp, image/gif;q=0.9",
    bytes_max: domain::limits::UPLOAD_MAX as usize,
};

/// How long a foreign picture may take, redirects included.
const FETCH_LIMIT: Duration = Duration::from_secs(30);

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
    pub admitted: Option<OwnedSemaphorePermit>,
}

/// A picture that cannot be used.
fn unusable(named: &str, why: impl std::fmt::Display) -> Failure {
    Failure::new(FailureCode::ActionInputInvalid, format!("the picture {named} cannot be used: {why}"))
}

impl Run<'_> {
    /// Loads the request's pictures as soon as there is memory for them.
    pub(super) async fn pictures(&self, reader: Reader) -> Result<Pictures, Stop> {
        let mut bytes = 0;
        let mut sources = Vec::new();
        for picture in self.request.pictures() {
            let source = match &picture.asset {
                Some(handle) => {
                    let asset = db::assets::get(&mut *self.turn.generator.worker.connection().await?, handle).await?;
                    let asset = asset.ok_or_else(|| unusable(&picture.named, "it is gone"))?;
                    bytes += asset.bytes.unsigned_abs();
                    Some(asset.blob_key)
                }
                None => {
                    bytes += domain::limits::UPLOAD_MAX;
                    None
                }
            };
            sources.push(source);
        }
        let bytes = match reader {
            Reader::Embedded => bytes,
            Reader::Provider(promises) => order_bytes(&promises, bytes, 1),
        };
        let admitted = self.turn.unless_canceled(self.turn.generator.memory.admit(bytes)).await?;
        let mut sources = sources.into_iter();
        let mut next = async |picture: &VideoPicture| {
            let file = match sources.next().flatten() {
                Some(key) => {
                    let file = self.turn.generator.worker.get(key).await?;
                    file.ok_or_else(|| unusable(&picture.named, "it is gone"))?
                }
                None => {
                    let fetched = self.turn.unless_canceled(self.fetch(&picture.named)).await?;
                    fetched.map_err(|why| unusable(&picture.named, why))?
                }
            };
            self.read(picture, file, reader).await
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
        Ok(pictures)
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

    /// A foreign picture, or why there is none.
    async fn fetch(&self, url: &str) -> Result<Bytes, String> {
        let url = Url::parse(url).map_err(|_| "it is no URL".to_owned())?;
        let fetching = self.turn.generator.worker.egress.download(&url, WANTED, Instant::now() + FETCH_LIMIT);
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
                let fitting = picture::fitted(pixels, file, &header, promises.picture_bytes_max);
                self.turn.unless_canceled(fitting).await??.map_err(refuse)?
            }
        };
        Ok(Picture { bytes, media_type: format.media_type(), role: picture.role })
    }
}
