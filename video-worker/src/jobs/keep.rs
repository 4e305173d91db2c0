//! Videos on their way into the store.

use db::jobs::Film;
use domain::job::{Failure, FailureCode};
use providers::Incoming;
use workshop::files::Content;
use workshop::{Error, Stop};

use super::run::Run;

/// What a video takes in memory while it goes from its provider into the store: what the store's writer gathers, and what of it is
/// being sent.
pub(super) const IN_HAND: u64 = 16 * 1024 * 1024;

impl Run<'_> {
    /// Stores a provider's video as it comes: what a job's output is served as, an MP4 (decisions 9.9). It is never held whole. One
    /// that breaks off leaves nothing that anybody refers to.
    pub(super) async fn keep(&self, mut result: Incoming) -> Result<Result<Film, Failure>, Stop> {
        if result.media_type() != "video/mp4" {
            return Ok(Err(Failure::new(FailureCode::ProviderUnavailable, "The provider's result is no MP4.")));
        }
        let (blob_key, mut writer) = self.turn.generator.worker.begin_file().await?;
        loop {
            match result.next().await {
                Ok(Some(piece)) => writer.write(&piece).await.map_err(Error::Store)?,
                Ok(None) => break,
                Err(fault) => return Ok(Err(fault.failure())),
            }
        }
        let written = writer.finish().await.map_err(Error::Store)?;
        Ok(Ok(Film { blob_key, sha256: written.sha256, bytes: written.bytes }))
    }

    /// Stores a video that was filmed here.
    pub(super) async fn keep_whole(&self, video: &Content) -> Result<Film, Error> {
        let blob_key = self.turn.generator.worker.put(video).await?;
        Ok(Film { blob_key, sha256: video.sha256, bytes: video.bytes.len() as u64 })
    }
}
