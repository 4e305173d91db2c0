//! Storing videos.

use app::job::VideoOutput;
use domain::asset::{AssetMediaType, ImageMediaType};
use domain::id::{AssetId, NodeId};
use domain::job::{Failure, FailureCode, PlacedVideo, Placement, Preview, VideoFacts};
use providers::Incoming;
use raster::xmp::{XmpReader, mp4_xmp_box};
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
        let worker = &self.task_run.generator.worker;
        let origin = self.request.provider_origin();
        let packet = worker.marks.packet(origin, &[]);
        let mut reader = XmpReader::default();
        let (blob_key, mut writer) = worker.begin_file().await?;
        loop {
            match result.next().await {
                Ok(Some(piece)) => {
                    reader.push(&piece);
                    writer.write(&piece).await.map_err(Error::Store)?;
                }
                Ok(None) => break,
                Err(call_error) => return Ok(Err(call_error.failure())),
            }
        }
        let found = reader.finish();
        if let Some(packet) = packet.filter(|_| found.is_whole && !found.has_manifest) {
            writer.write(&mp4_xmp_box(packet.as_bytes())).await.map_err(Error::Store)?;
        }
        let written = writer.finish().await.map_err(Error::Store)?;
        let facts = VideoFacts { origin, ..VideoFacts::default() };
        Ok(Ok(VideoOutput { blob_key, sha256: written.sha256, bytes: written.bytes, facts, poster: None }))
    }

    /// Stores a video that was made in this process.
    pub(super) async fn keep_whole(&self, video: &Content, facts: VideoFacts) -> Result<VideoOutput, Error> {
        let blob_key = self.task_run.generator.worker.put(video).await?;
        Ok(VideoOutput { blob_key, sha256: video.sha256, bytes: video.bytes.len() as u64, facts, poster: None })
    }

    /// Adds to a stored video what its file says, and its poster. A video of which nothing can be read is stored all the same.
    pub(super) async fn described(&self, mut kept: VideoOutput) -> VideoOutput {
        let (worker, job) = (&self.task_run.generator.worker, self.task_run.job);
        let read = async {
            let film = worker.film(job.account.as_str(), kept.blob_key).await?;
            let poster = match &film.poster {
                None => None,
                Some(content) => Some(Preview {
                    mime_type: ImageMediaType::Jpeg.to_string(),
                    bytes: content.bytes.len() as u64,
                    sha256: content.sha256,
                    blob_key: worker.put(content).await?,
                }),
            };
            Ok::<_, Error>((film, poster))
        };
        match read.await {
            Ok((film, poster)) => {
                let (width, height) = film.size.unwrap_or_default();
                kept.facts.width = width.into();
                kept.facts.height = height.into();
                kept.facts.duration_ms = film.duration_ms.and_then(|duration| duration.try_into().ok());
                kept.facts.has_audio = film.has_audio;
                kept.poster = poster;
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, job.id = %job.id, "cannot read the video of job {}", job.id);
            }
        }
        taskqueue::failpoint!("video.described");
        kept
    }

    /// A stored video as the asset that `node` will show. Without a poster, the image that it begins with stands for it.
    pub(super) async fn placement(&self, node: &NodeId, kept: VideoOutput) -> Result<Placement, Error> {
        let VideoOutput { blob_key, sha256, bytes, facts, mut poster } = kept;
        if poster.is_none() {
            let mut connection = self.task_run.generator.worker.connection().await?;
            poster = app::job::first_frame(&mut connection, self.request).await?;
        }
        Ok(Placement {
            node: node.clone(),
            asset: AssetId::generate(),
            name: self.request.file_name(),
            mime_type: AssetMediaType::Mp4.to_string(),
            width: facts.width,
            height: facts.height,
            bytes,
            sha256,
            blob_key,
            origin: facts.origin,
            metadata_removed: Vec::new(),
            masked: None,
            preview: None,
            provenance: self.request.provenance(self.task_run.job.id, &facts),
            video: Some(PlacedVideo { facts, poster }),
        })
    }
}
