//! Results: looked at before they are believed, and made durable.

use db::jobs::Placement;
use db::jobs::outputs::{self, JobOutput};
use domain::id::AssetId;
use domain::job::{Failure, FailureCode};
use providers::Artifact;
use raster::{DecodeOptions, Format};
use workshop::files::Content;
use workshop::{Error, Stop};

use super::Run;

/// A picture that decodes.
pub(super) struct Made {
    /// The file.
    pub content: Content,
    /// By its own bytes.
    pub format: Format,
    /// Columns, as displayed.
    pub width: u32,
    /// Rows, as displayed.
    pub height: u32,
}

/// What a result that is no picture fails with.
fn no_picture() -> Failure {
    Failure::new(FailureCode::ProviderUnavailable, "The provider's result is no picture that can be read.")
}

impl Run<'_> {
    /// Decodes a result, all of it, as soon as there is memory for its pixels: what passes can be worked with from then on.
    pub(super) async fn decoded(&self, artifact: Artifact) -> Result<Made, Failure> {
        let header = raster::probe(&artifact.bytes).map_err(|_| no_picture())?;
        let bytes = artifact.bytes;
        let looking = self.turn.generator.worker.pixels.run(header.decoded_bytes(), move || {
            raster::decode(&bytes, DecodeOptions::default()).map(|_| Content::of(bytes))
        });
        // A codec that panics over a picture does so the next time, too.
        let looked_at = looking.await.map_err(|panicked| {
            tracing::error!(error = &panicked as &dyn std::error::Error, "a codec panicked over a result");
            no_picture()
        })?;
        let content = looked_at.map_err(|_| no_picture())?;
        let raster::Header { format, width, height, .. } = header;
        Ok(Made { content, format, width, height })
    }

    /// Stores an output's picture and puts it on record. What fails for want of the store or the database is tried again here:
    /// of many results there is no other copy. `sent` is the prompt that it was made from.
    pub(super) async fn keep(&self, output: &JobOutput, made: &Made, sent: &str) -> Result<(), Stop> {
        match self.turn.patiently(|| self.try_to_keep(output, made, sent)).await {
            Err(Stop::Error(Error::Store(source))) => {
                let id = self.turn.job.id;
                tracing::error!(error = &source as &dyn std::error::Error, job.id = %id, "a result of {id} cannot be stored");
                let failure = Failure::new(FailureCode::OutputFinalizationFailed, "the result could not be stored");
                self.turn.fail(output, &failure, false).await
            }
            Err(stop) => Err(stop),
            Ok(()) => {
                spine::failpoint!("generation.stored");
                Ok(())
            }
        }
    }

    async fn try_to_keep(&self, output: &JobOutput, made: &Made, sent: &str) -> Result<(), Stop> {
        if !self.turn.lease.check() {
            return Err(Stop::Stale);
        }
        let worker = &self.turn.generator.worker;
        let blob_key = worker.put(&made.content).await?;
        let index = usize::try_from(output.position).expect("positions begin at 0");
        let placement = Placement {
            node: self.request.targets[index].clone(),
            asset: AssetId::generate(),
            name: format!("{}-{}.{}", self.turn.job.operation, index + 1, made.format.extension()),
            mime_type: made.format.media_type().to_owned(),
            width: made.width,
            height: made.height,
            bytes: made.content.bytes.len() as u64,
            sha256: made.content.sha256,
            blob_key,
            provenance: self.provenance(sent),
        };
        let mut connection = worker.connection().await?;
        let held = self.turn.held(output.position);
        if outputs::stored(&mut connection, held, &placement).await? { Ok(()) } else { Err(Stop::Stale) }
    }
}
