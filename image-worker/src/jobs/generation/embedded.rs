//! Images of the embedded runtime (docs/reference/models.md#sketch), drawn in this process by a
//! pure function.
//!
//! Nothing is submitted to a provider, so a canceled job costs nothing. Interrupted work is drawn
//! again: the same brief gives the same bytes.

use db::jobs::outputs::JobOutput;
use domain::asset::AssetRecord;
use domain::job::{Failure, FailureCode, JobOperation};
use domain::origin::{self, Origin, Work};
use embedded::image;
use providers::Entry;
use raster::{Format, Size};
use worker::files::Content;
use worker::generation::Step;
use worker::marks::marked;
use worker::{Error, Interrupt};

use super::Run;
use super::keep::GeneratedImage;

/// The size of a frame if neither the request nor the model specifies one.
const SIZE: Size = Size::new(1024, 1024);

impl Run<'_> {
    pub(super) async fn draw(&self, model: &Entry, output: &JobOutput) -> Result<Step<GeneratedImage>, Interrupt> {
        self.task_run.check()?;
        let assets = self.assets().await?;
        taskqueue::failpoint!("generation.submitting");
        let made = self.task_run.unless_canceled(self.frame(model, output, &assets)).await??;
        taskqueue::failpoint!("generation.accepted");
        Ok(Step::Finished(made, None))
    }

    /// Draws the frame once there is memory for it.
    async fn frame(
        &self,
        model: &Entry,
        output: &JobOutput,
        assets: &[AssetRecord],
    ) -> Result<GeneratedImage, Interrupt> {
        let size = self.request.size.as_deref().or(model.sizes.first().map(String::as_str));
        let size = size.and_then(parse).unwrap_or(SIZE);
        let sources: Vec<image::Source> = assets.iter().map(source).collect();
        // Memory is reserved before the files are loaded, so that jobs that wait for memory hold
        // nothing.
        let memory = self.task_run.generator.worker.pixels.reserve(image::memory_bytes(size, &sources)).await;
        let mut files = Vec::with_capacity(assets.len());
        for (index, asset) in assets.iter().enumerate() {
            files.push((self.file(index, asset).await?, self.request.references[index].role));
        }
        let words = self.request.caption.as_ref().unwrap_or(&self.request.prompt);
        let (prompt, model) = (words.clone(), model.name.clone());
        let operation = match self.task_run.job.operation {
            JobOperation::Generate | JobOperation::Action => image::Operation::Generate,
            JobOperation::Edit => image::Operation::Edit,
            JobOperation::Variations => image::Operation::Variation,
        };
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let origins: Vec<Option<Origin>> = assets.iter().map(|asset| asset.origin).collect();
        let origin = origin::of_output(Work::Draw, &origins);
        let packet = self.task_run.generator.worker.marks.packet(origin, &[]);
        let (place, places) = (output.position.unsigned_abs(), number(self.request.targets.len()));
        let drawing = memory.run(move || {
            let references: Vec<image::Reference<'_>> =
                files.iter().map(|(bytes, role)| image::Reference { bytes, role: *role }).collect();
            let brief = image::Brief {
                prompt: &prompt,
                size,
                references: &references,
                model: &model,
                operation,
                output: place,
                outputs: places,
            };
            image::draw(&brief).map(|file| Content::new(marked(file, packet.as_deref())))
        });
        match drawing.await? {
            Ok(content) => {
                let content = content.into();
                Ok(GeneratedImage { content, format: Format::Png, width: size.width, height: size.height, origin })
            }
            Err(image::Error::Encode(error)) => Err(Error::Raster(error.into()).into()),
            Err(error) => Err(Failure::new(FailureCode::ActionInputInvalid, error.to_string()).into()),
        }
    }
}

/// Parses a size in the form `WxH`.
fn parse(size: &str) -> Option<Size> {
    let (width, height) = size.split_once('x')?;
    Some(Size::new(width.parse().ok()?, height.parse().ok()?)).filter(|size| size.pixels() > 0)
}

/// A reference in the form that memory admission needs.
fn source(asset: &AssetRecord) -> image::Source {
    let actions::Source { format, size, file_bytes } = crate::jobs::action::source(asset);
    image::Source { format, size, file_bytes }
}
