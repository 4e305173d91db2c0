//! Pictures of the embedded runtime (decisions 12.2): drawn here, at once, by a pure function.
//!
//! Nothing is submitted to anybody, so that a cancel charges nothing, and what a crash interrupted is simply drawn again:
//! the same brief gives the same bytes.

use db::jobs::outputs::JobOutput;
use domain::asset::AssetRecord;
use domain::graph::Role;
use domain::job::{Failure, FailureCode, JobOperation};
use providers::Entry;
use raster::{Fault, Format, Size, sketch};

use workshop::files::Content;
use workshop::generation::Step;
use workshop::{Error, Stop};

use super::Run;
use super::keep::Made;

/// The size of a frame when neither the request nor the model names one.
const SIZE: Size = Size::new(1024, 1024);

impl Run<'_> {
    /// Draws an output.
    pub(super) async fn draw(&self, model: &Entry, output: &JobOutput) -> Result<Step<Made>, Stop> {
        self.turn.check()?;
        let assets = self.assets().await?;
        spine::failpoint!("generation.submitting");
        let made = self.turn.unless_canceled(self.frame(model, output, &assets)).await??;
        spine::failpoint!("generation.accepted");
        Ok(Step::Made(made, None))
    }

    /// The frame, as soon as there is memory for it.
    async fn frame(&self, model: &Entry, output: &JobOutput, assets: &[AssetRecord]) -> Result<Made, Stop> {
        let size = self.request.size.as_deref().or(model.sizes.first().map(String::as_str));
        let size = size.and_then(parse).unwrap_or(SIZE);
        let sources: Vec<sketch::Source> = assets.iter().map(source).collect();
        // Before the files are loaded: however many jobs are in hand, those that wait hold nothing.
        let memory = self.turn.generator.worker.pixels.reserve(sketch::memory_bytes(size, &sources)).await;
        let mut files = Vec::with_capacity(assets.len());
        for (index, asset) in assets.iter().enumerate() {
            files.push((self.file(index, asset).await?, self.request.references[index].role.map(role)));
        }
        let (prompt, model) = (self.request.prompt.clone(), model.name.clone());
        let operation = match self.turn.job.operation {
            JobOperation::Generate | JobOperation::Action => sketch::Operation::Generate,
            JobOperation::Edit => sketch::Operation::Edit,
            JobOperation::Variations => sketch::Operation::Variation,
        };
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (place, places) = (output.position.unsigned_abs(), number(self.request.targets.len()));
        let drawing = memory.run(move || {
            let references: Vec<sketch::Reference<'_>> =
                files.iter().map(|(bytes, role)| sketch::Reference { bytes, role: *role }).collect();
            let brief = sketch::Brief {
                prompt: &prompt,
                size,
                references: &references,
                model: &model,
                operation,
                output: place,
                outputs: places,
            };
            sketch::draw(&brief).map(Content::of)
        });
        match drawing.await? {
            Ok(content) => Ok(Made { content, format: Format::Png, width: size.width, height: size.height }),
            Err(error) if error.fault() == Fault::Internal => Err(Error::Raster(error).into()),
            Err(error) => Err(Failure::new(FailureCode::ActionInputInvalid, error.to_string()).into()),
        }
    }
}

/// `WxH`.
fn parse(size: &str) -> Option<Size> {
    let (width, height) = size.split_once('x')?;
    Some(Size::new(width.parse().ok()?, height.parse().ok()?)).filter(|size| size.pixels() > 0)
}

fn role(role: Role) -> sketch::Role {
    match role {
        Role::Identity => sketch::Role::Identity,
        Role::Construction => sketch::Role::Construction,
        Role::Texture => sketch::Role::Texture,
        Role::Fit => sketch::Role::Fit,
        Role::Style => sketch::Role::Style,
    }
}

/// A reference as the admission to memory sees it.
fn source(asset: &AssetRecord) -> sketch::Source {
    let crate::actions::Source { format, size, file_bytes } = crate::jobs::action::source(asset);
    sketch::Source { format, size, file_bytes }
}
