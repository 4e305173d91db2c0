//! Results: looked at before they are believed, and made durable.

use std::time::Duration;

use db::jobs::Placement;
use db::jobs::outputs::{self, JobOutput};
use domain::id::AssetId;
use domain::job::{Failure, FailureCode};
use providers::Artifact;
use raster::{DecodeOptions, Format};
use tokio::time::sleep;

use super::{Run, Step, Stop, recorded};
use crate::jobs::Error;
use crate::jobs::store::{self, Content};

/// Pauses while a result in hand cannot be stored or recorded: it is paid for, and nowhere else. Together shorter than the
/// restart of a server that takes long, and longer than that of one that does not.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(20)];

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
    pub(super) async fn look_at(&self, artifact: Artifact) -> Result<Result<Made, Failure>, Stop> {
        let Ok(header) = raster::probe(&artifact.bytes) else { return Ok(Err(no_picture())) };
        let bytes = artifact.bytes;
        let looking = self.generator.worker.pixels.run(header.decoded_bytes(), move || {
            raster::decode(&bytes, DecodeOptions::default()).map(|_| Content::of(bytes))
        });
        match looking.await {
            Ok(Ok(content)) => {
                let raster::Header { format, width, height, .. } = header;
                Ok(Ok(Made { content, format, width, height }))
            }
            Ok(Err(_)) => Ok(Err(no_picture())),
            // A codec that panics over a picture does so the next time, too.
            Err(panicked) => {
                tracing::error!(error = &panicked as &dyn std::error::Error, "a codec panicked over a result");
                Ok(Err(no_picture()))
            }
        }
    }

    /// Stores an output's picture and puts it on record. What fails for want of the store or the database is tried again here:
    /// of many results there is no other copy. `sent` is the prompt that it was made from.
    pub(super) async fn keep(&self, output: &JobOutput, made: &Made, sent: &str) -> Result<Step, Stop> {
        match self.patiently(|| self.try_to_keep(output, made, sent)).await {
            Err(Stop::Error(Error::Store(source))) => {
                let id = self.job.id;
                tracing::error!(error = &source as &dyn std::error::Error, job.id = %id, "a result of {id} cannot be stored");
                let failure = Failure::new(FailureCode::OutputFinalizationFailed, "the result could not be stored");
                self.fail(output, &failure, false).await
            }
            Err(stop) => Err(stop),
            Ok(()) => {
                spine::failpoint!("generation.stored");
                Ok(Step::Over)
            }
        }
    }

    async fn try_to_keep(&self, output: &JobOutput, made: &Made, sent: &str) -> Result<(), Stop> {
        if !self.lease.check() {
            return Err(Stop::Stale);
        }
        let worker = &self.generator.worker;
        let blob_key = store::put(worker, &made.content).await?;
        let index = usize::try_from(output.position).expect("positions begin at 0");
        let placement = Placement {
            node: self.request.targets[index].clone(),
            asset: AssetId::generate(),
            name: format!("{}-{}.{}", self.job.operation, index + 1, made.format.extension()),
            mime_type: made.format.media_type().to_owned(),
            width: made.width,
            height: made.height,
            bytes: made.content.bytes.len() as u64,
            sha256: made.content.sha256,
            blob_key,
            provenance: self.provenance(sent),
        };
        let mut connection = worker.connection().await?;
        recorded(outputs::stored(&mut connection, self.held(output), &placement).await?)
    }

    /// Tries again for a while what an outage kept from being stored or recorded.
    pub(super) async fn patiently<T, F: Future<Output = Result<T, Stop>>>(
        &self,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, Stop> {
        for pause in PAUSES {
            match attempt().await {
                Err(Stop::Error(error)) if error.is_outage() => {
                    let id = self.job.id;
                    tracing::warn!(error = &error as &dyn std::error::Error, job.id = %id, "what {id} has waits for {pause:?}");
                    sleep(pause).await;
                }
                outcome => return outcome,
            }
        }
        attempt().await
    }
}
