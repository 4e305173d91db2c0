//! The Image Actions (`docs/reference/actions.md`): one module for each.
//!
//! A module has all of an Action: what is served and documented of it, its parameters, the size of its result, the memory that it
//! takes, and its pixels. The gateway validates and plans with it, and the image-worker runs it, so that what is accepted does not
//! fail. [`ActionSlug`] is the list of Actions.
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
use domain::action::ActionSlug;
use raster::header::Header;
use raster::resize::PlanError;
use raster::{Finish, Format, Output, OutputFormat, Size};
use serde_json::{Map, Value};

pub use definition::DefinedAction;
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
    /// The number of inputs differs from what the Action takes.
    #[error("the stored request has a wrong number of inputs: {0}")]
    Inputs(usize),
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
    /// [`FIXED_BYTES`].
    fn memory_bytes(&self, sources: &[Header], output: Size, _: Finish) -> u64 {
        held_as_a_whole(sources, output)
    }

    /// Makes the result from the input files. Their number matches the Action.
    fn run(&self, files: &[Bytes], finish: Finish) -> Result<Output, raster::Error>;
}

/// The memory for an Action that holds all images as a whole: for every input its pixels and a
/// working copy, the result, and its encoder.
fn held_as_a_whole(sources: &[Header], output: Size) -> u64 {
    sources.iter().fold(2 * PIXEL_BYTES * output.pixels(), |sum, source| {
        sum + source.decoded_bytes() + PIXEL_BYTES * source.size().pixels()
    })
}

/// The estimate of a run.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// Estimated duration in seconds.
    pub seconds: i32,
    /// Size of the result in pixels.
    pub output: Size,
}

/// An Action with its parameters, ready to run.
#[derive(Debug)]
pub struct Prepared {
    action: &'static DefinedAction,
    stored: Stored<Box<dyn Run>>,
    inputs: Vec<Source>,
}

impl Prepared {
    /// Parses the stored request of Action `slug`. The inputs are in the declared order.
    ///
    /// # Errors
    ///
    /// [`NotUnderstood`] if the request is invalid. The gateway accepts no such request.
    pub fn new(slug: &str, params: &Map<String, Value>, inputs: Vec<Source>) -> Result<Self, NotUnderstood> {
        let action = find(slug).ok_or_else(|| NotUnderstood::Action(slug.to_owned()))?;
        let stored = (action.parse)(params)?;
        if inputs.len() != action.inputs.len() {
            return Err(NotUnderstood::Inputs(inputs.len()));
        }
        Ok(Self { action, stored, inputs })
    }

    /// The Action.
    pub fn action(&self) -> &'static DefinedAction {
        self.action
    }

    /// The frame that is read of an input that is a video. The caller decodes it, and [runs](Self::run) the Action on it as an image
    /// without loss.
    pub fn frame(&self) -> Option<Frame> {
        self.stored.params.frame()
    }

    /// The estimate for the inputs, or why the Action cannot succeed
    /// (`docs/reference/actions.md#size-limits-of-a-result`).
    ///
    /// # Errors
    ///
    /// If the sizes of the inputs or of the result violate a limit; the error names the member of the request.
    pub fn estimate(&self) -> Result<Estimate, Violation> {
        let sizes: Vec<Size> = self.inputs.iter().map(|input| input.size).collect();
        let output = self.stored.params.plan(&sizes);
        let output = output.map_err(|refused| Violation::new(refused.field, refused.error.to_string()))?;
        // A WebP side is one pixel short of the longest side of a result.
        let is_webp =
            OutputFormat::resolve(self.stored.finish().choice, self.inputs[0].format, false) == OutputFormat::Webp;
        if is_webp && output.width.max(output.height) > raster::encode::MAX_WEBP_SIDE {
            return Err(Violation::new("params.format", raster::EncodeError::WebpSideTooLong.to_string()));
        }
        let seconds = self.action.seconds_for(sizes.iter().map(|size| size.pixels()).sum(), output.pixels());
        Ok(Estimate { seconds, output })
    }

    /// Memory to reserve for running the Action, including the input files, in bytes. It suffices for
    /// upright files in the usual coding of their format.
    pub fn memory_bytes(&self) -> u64 {
        let assumed: Vec<Header> = self.inputs.iter().map(Source::assumed).collect();
        self.memory_for(&assumed)
    }

    /// Upper bound of the memory for running the Action on these files, in bytes.
    pub fn memory_bytes_of(&self, files: &[Bytes]) -> u64 {
        let headers: Result<Vec<Header>, _> = files.iter().map(|file| raster::probe(file)).collect();
        // A file without a header is rejected before anything is decoded.
        headers.map_or_else(|_| self.file_bytes(), |headers| self.memory_for(&headers))
    }

    fn memory_for(&self, headers: &[Header]) -> u64 {
        let Stored { params, .. } = &self.stored;
        let sizes: Vec<Size> = headers.iter().map(Header::size).collect();
        match params.plan(&sizes) {
            // The preview is made once the inputs are freed, and takes no more than they did or than the encoder.
            Ok(output) => self.file_bytes() + params.memory_bytes(headers, output, self.stored.finish()) + FIXED_BYTES,
            // The Action is rejected before anything is decoded.
            Err(_) => self.file_bytes(),
        }
    }

    /// Sizes of the input files together, in bytes.
    fn file_bytes(&self) -> u64 {
        self.inputs.iter().map(|input| input.file_bytes).sum()
    }

    /// Makes the result from the input files. Blocks the thread.
    ///
    /// # Errors
    ///
    /// [`raster::Error`]. Its `kind` says whether the message may be shown to the owner.
    pub fn run(&self, files: &[Bytes]) -> Result<Output, raster::Error> {
        self.stored.params.run(files, self.stored.finish())
    }
}
