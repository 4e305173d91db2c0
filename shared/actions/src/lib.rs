//! The Image Actions (`docs/reference/actions.md`): one module for each.
//!
//! A module has all of an Action: what is served and documented of it, its parameters, the size of its result, the memory that it
//! takes, and its pixels. The gateway validates and plans with it, and the image-worker runs it, so that what is accepted does not
//! fail. [`ActionSlug`] is the list of Actions. [`Prepared`] runs one of them, or several one after the other.
//!
//! The functions are pure and block the thread: they do no I/O, use no clock, and give the same output for the same input
//! (`docs/reference/actions.md#determinism`).

mod add_text_to_image;
mod change_aspect_ratio;
mod color_grade;
mod cost;
mod crop;
mod definition;
mod normalize;
mod overlay_image;
mod resize;
mod rotate;
mod side_by_side_composite;
mod stored;
mod video_frame;

#[cfg(test)]
mod params_tests;
#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::sync::LazyLock;

use bytes::Bytes;
use domain::Violation;
use domain::action::{ActionSlug, Medium};
use domain::job::ActionStep;
use raster::header::Header;
use raster::resize::PlanError;
use raster::{Change, Finish, Format, Input, Output, OutputFormat, Size};

pub use definition::{DefinedAction, Effect};
use stored::Stored;

/// Bytes per pixel of a result (RGBA).
const PIXEL_BYTES: u64 = 4;

/// Upper bound of the memory that an Action needs in addition to the images, whatever their size: the
/// state of the codecs.
const FIXED_BYTES: u64 = 2 << 20;

/// Every Action, also those of other media than images, in the order in which lists serve them.
pub fn all() -> &'static [DefinedAction] {
    static ACTIONS: LazyLock<Vec<DefinedAction>> = LazyLock::new(|| {
        let define = |slug: &ActionSlug| match slug {
            ActionSlug::Resize => resize::action(),
            ActionSlug::Crop => crop::action(),
            ActionSlug::ChangeAspectRatio => change_aspect_ratio::action(),
            ActionSlug::SideBySideComposite => side_by_side_composite::action(),
            ActionSlug::AddTextToImage => add_text_to_image::action(),
            ActionSlug::OverlayImage => overlay_image::action(),
            ActionSlug::ColorGrade => color_grade::action(),
            ActionSlug::Rotate => rotate::action(),
            ActionSlug::VideoFrame => video_frame::action(),
        };
        ActionSlug::ALL.iter().map(define).collect()
    });
    &ACTIONS
}

/// The Action with this slug or id (`action:<slug>`).
pub fn find(key: &str) -> Option<&'static DefinedAction> {
    let slug = key.strip_prefix("action:").unwrap_or(key);
    all().iter().find(|action| action.slug == slug)
}

/// A stored request that this build cannot execute, because another version wrote it or because it
/// is damaged.
#[derive(Debug, thiserror::Error)]
pub enum NotUnderstood {
    /// No Action has this name.
    #[error("there is no Action `{0}`")]
    Action(String),
    /// The parameters do not match the Action's schema.
    #[error("the stored parameters do not match the Action")]
    Params(#[source] serde_json::Error),
    /// The number of inputs differs from what the Actions take.
    #[error("the stored request has a wrong number of inputs: {0}")]
    Inputs(usize),
    /// There is no Action, or one that reads a video is not the first.
    #[error("the stored request has Actions that do not follow each other: {0}")]
    Steps(usize),
}

/// An input whose bytes are not loaded yet.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The format of the stored file.
    pub format: Format,
    /// The size as displayed.
    pub size: Size,
    /// The size of the stored file in bytes.
    pub file_bytes: u64,
}

/// The frame of a video that an Action reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Frame {
    /// The one that is shown first.
    First,
    /// The one that is shown last.
    Last,
    /// The one that is shown after this many seconds.
    Seconds(f64),
}

impl Source {
    /// An input from what is stored of it. Of a video, it is the frame that is read, as a PNG. The service stores no other formats; one
    /// would be assumed to take as much memory as the most expensive.
    pub fn stored(media_type: &str, (width, height): (i32, i32), file_bytes: i64) -> Self {
        let format = match media_type {
            "video/mp4" => return Self::frame((width, height)),
            "image/png" => Format::Png,
            "image/gif" => Format::Gif,
            "image/jpeg" => Format::Jpeg,
            _ => Format::Webp,
        };
        let side = |side: i32| u32::try_from(side).unwrap_or(0);
        let size = Size::new(side(width), side(height));
        Self { format, size, file_bytes: u64::try_from(file_bytes).unwrap_or(0) }
    }

    /// A frame of a video of this size.
    fn frame((width, height): (i32, i32)) -> Self {
        /// Of noise, which does not compress.
        const FRAME_PIXEL_BYTES: u64 = 3;
        let as_image = Self::stored("image/png", (width, height), 0);
        Self { file_bytes: FRAME_PIXEL_BYTES * as_image.size.pixels(), ..as_image }
    }

    fn assumed(&self) -> Header {
        Header::assumed(self.format, self.size)
    }
}

/// The reason why an Action has no result for inputs of some sizes.
#[derive(Debug)]
struct Refusal {
    /// The member of the request at fault.
    field: &'static str,
    error: PlanError,
}

impl Refusal {
    fn for_field(field: &'static str) -> impl Fn(PlanError) -> Self {
        move |error| Self { field, error }
    }
}

/// An Action with its parameters.
trait Run: Debug + Send + Sync {
    /// The size of the result for inputs of these sizes. Their number matches the Action.
    fn plan(&self, sources: &[Size]) -> Result<Size, Refusal>;

    /// The frame that is read of an input that is a video.
    fn frame(&self) -> Option<Frame> {
        None
    }

    /// Upper bound in bytes of the memory for a result of size `output`, in addition to the files and to
    /// [`FIXED_BYTES`]. `rows` is there if the result may be written row by row.
    fn memory_bytes(&self, sources: &[Header], output: Size, _rows: Option<Finish>) -> u64 {
        held_as_a_whole(sources, output)
    }

    /// Makes the result from the image and the file of the second input, which is empty for an Action with one. It may be written row
    /// by row if `rows` says how.
    fn run(&self, image: Input, second: &[u8], rows: Option<Finish>) -> Result<Change, raster::Error>;
}

/// The memory for an Action that holds all images as a whole: for every input its pixels and a
/// working copy, the result, and its encoder.
fn held_as_a_whole(sources: &[Header], output: Size) -> u64 {
    sources.iter().fold(2 * PIXEL_BYTES * output.pixels(), |sum, source| {
        sum + source.decoded_bytes() + PIXEL_BYTES * source.size().pixels()
    })
}

/// The memory for an Action whose result is written row by row; `None` if it is not.
fn stream_bytes(rows: Option<Finish>, sources: &[Header], output: Size) -> Option<u64> {
    rows?.stream_bytes(&sources[0], output)
}

/// The estimate of a run.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// Estimated duration in seconds.
    pub seconds: i32,
    /// Size of the result in pixels.
    pub output: Size,
}

/// The step that failed.
#[derive(Debug, thiserror::Error)]
#[error("step {step} failed")]
pub struct StepError {
    /// Index of the step.
    pub step: usize,
    /// The reason.
    #[source]
    pub error: raster::Error,
}

/// The step that cannot succeed, by its index, and the member of the request at fault.
#[derive(Debug)]
pub struct Unfit {
    /// Index of the step.
    pub step: usize,
    /// The reason, under the member of a request that has this step alone.
    pub violation: Violation,
}

/// One Action of a [`Prepared`].
#[derive(Debug)]
struct Step {
    action: &'static DefinedAction,
    stored: Stored<Box<dyn Run>>,
    /// Index of its second input.
    second: Option<usize>,
}

/// Actions with their parameters, ready to run. Each reads what the one before it made, as a PNG of it would be read, and the file of the
/// last one is the result. The files are decoded once, and nothing between is encoded.
#[derive(Debug)]
pub struct Prepared {
    steps: Vec<Step>,
    inputs: Vec<Source>,
}

impl Prepared {
    /// Parses a stored request. The inputs are the image that the first step reads, and the second images of the steps, in order.
    ///
    /// # Errors
    ///
    /// [`NotUnderstood`] if the request is invalid. The gateway accepts no such request.
    pub fn new(steps: &[ActionStep], inputs: Vec<Source>) -> Result<Self, NotUnderstood> {
        let mut count = 1;
        let mut parse = |(index, step): (usize, &ActionStep)| {
            let action = find(&step.slug).ok_or_else(|| NotUnderstood::Action(step.slug.clone()))?;
            if index > 0 && action.medium != Medium::Image {
                return Err(NotUnderstood::Steps(index));
            }
            let second = (action.inputs.len() > 1).then_some(count);
            count += usize::from(second.is_some());
            Ok(Step { action, stored: (action.parse)(&step.params)?, second })
        };
        let steps: Vec<Step> = steps.iter().enumerate().map(&mut parse).collect::<Result<_, _>>()?;
        match steps.is_empty() {
            true => Err(NotUnderstood::Steps(0)),
            false if inputs.len() != count => Err(NotUnderstood::Inputs(inputs.len())),
            false => Ok(Self { steps, inputs }),
        }
    }

    /// The effects of the Actions on the origin of what they read, each with the index of its second input.
    pub fn effects(&self) -> impl Iterator<Item = (Effect, Option<usize>)> {
        self.steps.iter().map(|step| (step.action.effect(), step.second))
    }

    /// The frame that is read of an input that is a video. The caller decodes it, and [runs](Self::run) the Actions on it as an image
    /// without loss.
    pub fn frame(&self) -> Option<Frame> {
        self.steps[0].stored.params.frame()
    }

    /// The estimate for the inputs, or why a step cannot succeed
    /// (`docs/reference/actions.md#size-limits-of-a-result`).
    ///
    /// # Errors
    ///
    /// If the sizes of the inputs or of a result violate a limit.
    pub fn estimate(&self) -> Result<Estimate, Unfit> {
        let sizes: Vec<Size> = self.inputs.iter().map(|input| input.size).collect();
        let outputs = self.plan(&sizes).map_err(|(step, refused)| Unfit {
            step,
            violation: Violation::new(refused.field, refused.error.to_string()),
        })?;
        let (step, output) = (outputs.len() - 1, outputs[outputs.len() - 1]);
        // A WebP side is one pixel short of the longest side of a result.
        let source = if step == 0 { self.inputs[0].format } else { Format::Png };
        let is_webp = OutputFormat::resolve(self.finish().choice, source, false) == OutputFormat::Webp;
        if is_webp && output.width.max(output.height) > raster::encode::MAX_WEBP_SIDE {
            let violation = Violation::new("params.format", raster::EncodeError::WebpSideTooLong.to_string());
            return Err(Unfit { step, violation });
        }
        let costs = self.steps.iter().zip(&outputs).map(|(step, output)| (step.action.cost, output.pixels()));
        let read = sizes.iter().map(|size| size.pixels()).sum();
        Ok(Estimate { seconds: cost::seconds(read, &costs.collect::<Vec<_>>()), output })
    }

    /// The size of the result of each step for inputs of these sizes, or the step that has none.
    fn plan(&self, sizes: &[Size]) -> Result<Vec<Size>, (usize, Refusal)> {
        let mut outputs: Vec<Size> = Vec::with_capacity(self.steps.len());
        for (index, step) in self.steps.iter().enumerate() {
            let read = outputs.last().copied().unwrap_or(sizes[0]);
            let sources: Vec<Size> = std::iter::once(read).chain(step.second.map(|at| sizes[at])).collect();
            outputs.push(step.stored.params.plan(&sources).map_err(|refused| (index, refused))?);
        }
        Ok(outputs)
    }

    /// The parameters of the output file: those of the last step.
    fn finish(&self) -> Finish {
        self.steps[self.steps.len() - 1].stored.finish()
    }

    /// How the result of a step may be written row by row: only the last one is written.
    fn rows(&self, step: usize) -> Option<Finish> {
        (step + 1 == self.steps.len()).then(|| self.finish())
    }

    /// Memory to reserve for running the Actions, including the input files, in bytes. It suffices for
    /// upright files in the usual coding of their format.
    pub fn memory_bytes(&self) -> u64 {
        let assumed: Vec<Header> = self.inputs.iter().map(Source::assumed).collect();
        self.memory_for(&assumed)
    }

    /// Upper bound of the memory for running the Actions on these files, in bytes.
    pub fn memory_bytes_of(&self, files: &[Bytes]) -> u64 {
        let headers: Result<Vec<Header>, _> = files.iter().map(|file| raster::probe(file)).collect();
        // A file without a header is rejected before anything is decoded.
        headers.map_or_else(|_| self.file_bytes(), |headers| self.memory_for(&headers))
    }

    /// The files are held until the end; of the steps, one at a time takes memory, with the image that it reads.
    fn memory_for(&self, headers: &[Header]) -> u64 {
        let sizes: Vec<Size> = headers.iter().map(Header::size).collect();
        // Actions that have no result are rejected before anything is decoded.
        let Ok(outputs) = self.plan(&sizes) else { return self.file_bytes() };
        let read = outputs.iter().map(|output| Header::assumed(Format::Png, *output));
        let read = std::iter::once(headers[0]).chain(read);
        let steps = self.steps.iter().zip(read).zip(&outputs).enumerate();
        let bytes = steps.map(|(index, ((step, read), output))| {
            let sources: Vec<Header> = std::iter::once(read).chain(step.second.map(|at| headers[at])).collect();
            step.stored.params.memory_bytes(&sources, *output, self.rows(index))
        });
        // The preview is made once the inputs are freed, and takes no more than they did or than the encoder.
        self.file_bytes() + bytes.max().unwrap_or(0) + FIXED_BYTES
    }

    /// Sizes of the input files together, in bytes.
    fn file_bytes(&self) -> u64 {
        self.inputs.iter().map(|input| input.file_bytes).sum()
    }

    /// Makes the result from the input files. Blocks the thread.
    ///
    /// # Errors
    ///
    /// [`raster::Error`], with the step that failed. Its `kind` says whether the message may be shown to the owner.
    pub fn run(&self, files: &[Bytes]) -> Result<Output, StepError> {
        let sizes = self.sizes_of(files)?;
        self.plan(&sizes).map_err(|(step, refused)| StepError { step, error: refused.error.into() })?;
        let mut image = Input::file(&files[0]).map_err(|error| StepError { step: 0, error: error.into() })?;
        let mut source = image.format();
        let last = self.steps.len() - 1;
        for (index, step) in self.steps[..last].iter().enumerate() {
            let made = step.run(image, files, None).and_then(|made| Ok(made.into_input()?));
            image = made.map_err(|error| StepError { step: index, error })?;
            source = image.format();
        }
        let finish = self.finish();
        let made = self.steps[last].run(image, files, Some(finish));
        made.and_then(|made| finish.encode(made, source)).map_err(|error| StepError { step: last, error })
    }

    /// The displayed sizes of the files.
    fn sizes_of(&self, files: &[Bytes]) -> Result<Vec<Size>, StepError> {
        let reader = |index| self.steps.iter().position(|step| step.second == Some(index)).unwrap_or(0);
        let sizes = files.iter().enumerate().map(|(index, file)| match raster::probe(file) {
            Ok(header) => Ok(header.size()),
            Err(error) => Err(StepError { step: reader(index), error: raster::DecodeError::from(error).into() }),
        });
        sizes.collect()
    }
}

impl Step {
    fn run(&self, image: Input, files: &[Bytes], rows: Option<Finish>) -> Result<Change, raster::Error> {
        let second = self.second.map_or(&[][..], |at| &files[at]);
        self.stored.params.run(image, second, rows)
    }
}
