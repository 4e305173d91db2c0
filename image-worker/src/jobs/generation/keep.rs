//! Verifies results and makes them durable.

use db::jobs::outputs::{self, JobOutput};
use decoder::Order;
use domain::asset::made_name;
use domain::id::AssetId;
use domain::job::Placement;
use domain::job::{Failure, FailureCode};
use domain::origin::{self, Work};
use providers::Artifact;
use worker::decode::Check;
use worker::files::{CleanContent, Content};
use worker::marks::marked;
use worker::{Error, Interrupt};

use super::Run;
use super::image::{GeneratedImage, MaskOutcome};

/// The failure of a result that is not an image.
fn no_image() -> Failure {
    Failure::new(FailureCode::ProviderUnavailable, "The provider's result is no image that can be read.")
}

impl Run<'_> {
    /// Decodes a result completely, once there is memory for its pixels. An image that passes can
    /// be used as an input afterwards. With a mask, it is laid over the source. Private metadata is
    /// removed, except from an image with a C2PA manifest, which a change of the file would break.
    pub(super) async fn decoded(&self, artifact: Artifact) -> Result<Result<GeneratedImage, Failure>, Error> {
        let Ok(header) = raster::probe(&artifact.bytes) else { return Ok(Err(no_image())) };
        let bytes = artifact.bytes;
        let worker = &self.task_run.generator.worker;
        let origin = origin::of_output(Work::of_model(self.task_run.job.operation), &[]);
        let mask = match &self.request.mask {
            None => MaskOutcome::Unmasked,
            Some(mask) if !mask.composite => MaskOutcome::NotWanted,
            Some(mask) => match self.masked(mask, &bytes, &header, origin).await? {
                Some(made) => return Ok(Ok(made)),
                None => MaskOutcome::NotApplied,
            },
        };
        let (marks, rule) = (worker.marks, worker.upload_metadata);
        let memory = worker.pixels.reserve(bytes.len() as u64 + header.decoded_bytes()).await;
        let order = Order::new(self.task_run.job.account.as_str(), Check, vec![bytes]);
        let looking = memory.decode(order, move |files, _| {
            let bytes = files[0].clone();
            // A mark or the removal of metadata would break a signature.
            let content = if raster::metadata::has_manifest(&bytes) {
                Content::new(bytes).into()
            } else {
                let packet = marks.packet(origin, &bytes);
                CleanContent::new(marked(bytes.into(), packet.as_deref()).into(), rule).ok()?
            };
            let header = raster::probe(&content.content.bytes).ok()?;
            Some((content, header))
        });
        let Some((content, header)) = looking.await?.ok().flatten() else { return Ok(Err(no_image())) };
        let raster::Header { format, width, height, .. } = header;
        Ok(Ok(GeneratedImage { content, format, width, height, origin, mask }))
    }

    /// Stores the image of an output and records it. Failures of the store or the database are
    /// retried here, because many results have no other copy. `sent` is the prompt that was sent.
    pub(super) async fn keep(&self, output: &JobOutput, made: &GeneratedImage, sent: &str) -> Result<(), Interrupt> {
        match self.task_run.retry_during_outage(|| self.try_to_keep(output, made, sent)).await {
            Err(Interrupt::Error(Error::Store(source))) => {
                let id = self.task_run.job.id;
                tracing::error!(error = &source as &dyn std::error::Error, job.id = %id, "cannot store a result of job {id}");
                let failure = Failure::new(FailureCode::OutputFinalizationFailed, "the result could not be stored");
                self.task_run.fail(output, &failure, false).await
            }
            Err(stop) => Err(stop),
            Ok(()) => {
                taskqueue::failpoint!("generation.stored");
                Ok(())
            }
        }
    }

    async fn try_to_keep(&self, output: &JobOutput, made: &GeneratedImage, sent: &str) -> Result<(), Interrupt> {
        if !self.task_run.lease.check() {
            return Err(Interrupt::Stale);
        }
        let worker = &self.task_run.generator.worker;
        let blob_key = worker.put(&made.content.content).await?;
        if raster::animation::is_animated(&made.content.content.bytes) {
            db::blobs::set_animated(&mut *worker.connection().await?, blob_key).await?;
        }
        let index = usize::try_from(output.position).expect("positions begin at 0");
        let placement = Placement {
            node: self.request.targets[index].clone(),
            asset: AssetId::generate(),
            name: made_name(
                &self.request.prompt,
                self.task_run.job.operation.as_str(),
                index + 1,
                made.format.extension(),
            ),
            mime_type: made.format.media_type().to_owned(),
            width: made.width,
            height: made.height,
            bytes: made.content.content.bytes.len() as u64,
            sha256: made.content.content.sha256,
            blob_key,
            origin: made.origin,
            metadata_removed: made.content.metadata_removed.clone(),
            masked: made.mask.masked(),
            preview: None,
            video: None,
            provenance: self.provenance(sent, made.mask),
        };
        let mut connection = worker.connection().await?;
        let leased = self.task_run.leased(output.position);
        if !outputs::stored(&mut connection, leased, &placement).await? {
            return Err(Interrupt::Stale);
        }
        drop(connection);
        let job = self.task_run.job;
        worker.announce(&job.account, job.id, None).await;
        Ok(())
    }
}
