//! Images of the embedded runtime (docs/reference/models.md#sketch), drawn in a decoder by a pure function, because
//! references are foreign images.
//!
//! Nothing is submitted to a provider, so a canceled job costs nothing. Interrupted work is drawn
//! again: the same brief gives the same bytes.

use bytes::Bytes;
use db::jobs::outputs::JobOutput;
use decoder::{Made, Order, Refusal, Work};
use domain::asset::AssetRecord;
use domain::graph::Role;
use domain::job::{Failure, FailureCode, JobOperation};
use domain::origin::{self, Origin};
use embedded::image;
use providers::Entry;
use raster::{Header, Size};
use serde::{Deserialize, Serialize};
use worker::decode::{header_of_made, refusal};
use worker::files::Content;
use worker::generation::Step;
use worker::image::unusable;
use worker::marks::marked;
use worker::{Error, Interrupt};

use super::Run;
use super::image::{GeneratedImage, MaskOutcome};

/// The size of a frame if neither the request nor the model specifies one.
const SIZE: Size = Size::new(1024, 1024);

impl Run<'_> {
    pub(super) async fn draw(&self, model: &Entry, output: &JobOutput) -> Result<Step<GeneratedImage>, Interrupt> {
        self.task_run.check()?;
        let assets = self.assets().await?;
        if let (Some(mask), Some(source)) = (&self.request.mask, assets.first()) {
            self.prepare_mask(mask, source, None).await?;
        }
        taskqueue::failpoint!("generation.submitting");
        let mut made = self.task_run.unless_canceled(self.frame(model, output, &assets)).await??;
        if let Some(mask) = &self.request.mask {
            let frame = &made.content.content.bytes;
            let header = header_of_made(frame)?;
            let laid = self.masked(mask, frame, &header, made.origin);
            let laid = self.task_run.unless_canceled(laid).await??;
            made = laid.ok_or_else(|| unusable(&mask.handle, "it is gone"))?;
        }
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
        let size = match (&self.request.mask, assets.first()) {
            (Some(_), Some(source)) => Self::drawn_size(source),
            _ => size.and_then(parse).unwrap_or(SIZE),
        };
        let sources: Vec<image::Source> = assets.iter().map(source).collect();
        // Memory is reserved before the files are loaded, so that jobs that wait for memory hold
        // nothing. The decoder has copies of them.
        let copied: u64 = sources.iter().map(|source| source.file_bytes).sum();
        let bytes = copied + image::memory_bytes(size, &sources);
        let memory = self.task_run.generator.worker.pixels.reserve(bytes).await;
        let (mut files, mut roles) = (Vec::with_capacity(assets.len()), Vec::with_capacity(assets.len()));
        for (index, asset) in assets.iter().enumerate() {
            files.push(self.file(index, asset).await?);
            roles.push(self.request.references[index].role);
        }
        let words = self.request.caption.as_ref().unwrap_or(&self.request.prompt);
        let origins: Vec<Option<Origin>> = assets.iter().map(|asset| asset.origin).collect();
        let origin = origin::of_output(origin::Work::Draw, &origins);
        let packet = self.task_run.generator.worker.marks.packet(origin, &[]);
        let work = Draw {
            prompt: words.clone(),
            size: (size.width, size.height),
            roles,
            model: model.name.clone(),
            operation: self.task_run.job.operation,
            output: output.position.unsigned_abs(),
            outputs: u32::try_from(self.request.targets.len()).unwrap_or(u32::MAX),
        };
        let order = Order::new(self.task_run.job.account.as_str(), work, files);
        let drawing = memory.decode(order, move |_, made| {
            let made = made.into_iter().next().unwrap_or_default();
            let header = header_of_made(&made)?;
            Ok::<_, Error>((header, Content::new(marked(made, packet.as_deref()))))
        });
        match drawing.await? {
            Ok(made) => {
                let (Header { format, width, height, .. }, content) = made?;
                let mask = MaskOutcome::Unmasked;
                Ok(GeneratedImage { content: content.into(), format, width, height, origin, mask })
            }
            Err(why) => Err(Failure::new(FailureCode::ActionInputInvalid, why).into()),
        }
    }
}

/// A frame, as a decoder draws it: the members of an [`image::Brief`].
#[derive(Serialize, Deserialize)]
pub(crate) struct Draw {
    prompt: String,
    size: (u32, u32),
    /// The roles of the references, whose files come in the same order.
    roles: Vec<Option<Role>>,
    model: String,
    operation: JobOperation,
    output: u32,
    outputs: u32,
}

impl Work for Draw {
    const NAME: &'static str = "draw";

    fn run(self, files: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        let references = files.iter().zip(&self.roles).map(|(bytes, role)| image::Reference { bytes, role: *role });
        let brief = image::Brief {
            prompt: &self.prompt,
            size: Size::new(self.size.0, self.size.1),
            references: &references.collect::<Vec<_>>(),
            model: &self.model,
            operation: match self.operation {
                JobOperation::Generate | JobOperation::Action => image::Operation::Generate,
                JobOperation::Edit => image::Operation::Edit,
                JobOperation::Variations => image::Operation::Variation,
            },
            output: self.output,
            outputs: self.outputs,
        };
        match image::draw(&brief) {
            Ok(made) => Ok(vec![made]),
            Err(image::Error::Encode(error)) => Err(refusal(error)),
            Err(error) => Err(Refusal::Input(error.to_string())),
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
