//! Storing videos.

use app::job::VideoOutput;
use domain::job::{Failure, FailureCode};
use providers::Incoming;
use worker::files::Content;
use worker::{Error, Interrupt};

use super::run::Run;

/// Memory reserved to transfer a video from the provider to the store: the buffer of the store's
/// writer, and the part being sent.
pub(super) const RESULT_BYTES: u64 = 16 * 1024 * 1024;

impl Run<'_> {
    /// Stores a provider's video as it arrives, without holding all of it in memory. It must be an
    /// MP4. If the transfer breaks off, nothing refers to the stored part
    /// (docs/reference/videos.md#stored-video).
    pub(super) async fn keep(&self, mut result: Incoming) -> Result<Result<VideoOutput, Failure>, Interrupt> {
        if result.media_type() != "video/mp4" {
            return Ok(Err(Failure::new(
                FailureCode::ProviderUnavailable,
                "The provider's result is not an MP4 file.",
            )));
        }
        let (blob_key, mut writer) = self.task_run.generator.worker.begin_file().await?;
        loop {
            match result.next().await {
                Ok(Some(piece)) => writer.write(&piece).await.map_err(Error::Store)?,
                Ok(None) => break,
                Err(call_error) => return Ok(Err(call_error.failure())),
            }
        }
        let written = writer.finish().await.map_err(Error::Store)?;
        Ok(Ok(VideoOutput { blob_key, sha256: written.sha256, bytes: written.bytes }))
    }

    /// Stores a video that was made in this process.
    pub(super) async fn keep_whole(&self, video: &Content) -> Result<VideoOutput, Error> {
        let blob_key = self.task_run.generator.worker.put(video).await?;
        Ok(VideoOutput { blob_key, sha256: video.sha256, bytes: video.bytes.len() as u64 })
    }
}
