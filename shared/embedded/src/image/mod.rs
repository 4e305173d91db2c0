//! The image model, `sketch`. It draws a storyboard frame from a prompt and
//! references (`docs/reference/models.md#sketch`).
//!
//! **Guarantee.** Equal briefs give equal bytes on every machine. Whatever the prompt, the
//! references and the size are, all text is within the frame, and only the references contribute
//! foreign pixels.
//!
//! **Mechanism.** References are read (sizes first, so that an invalid one is rejected before any
//! is decoded), ranked by role and placed in justified rows on a stage ([`grid`]). Each is decoded
//! no larger than its tile. Five colors are extracted from them by k-means in Oklab ([`palette`]).
//! Without references, a color harmony and a composition of basic shapes ([`motif`]) are derived
//! from the hash of the prompt. Five hex values in the prompt are the colors ([`swatch`]). The prompt's first sentence becomes a
//! headline, the rest the text below it ([`words`], [`block`]), each at the largest of several sizes that fits. [`page`] lays out
//! everything on one grid. Computations use the four basic operations and the square root of IEEE 754, and functions of `libm`,
//! which round in the same way everywhere.
//!
//! **Reason.** A runtime without a key, a GPU or a network must not pretend to be a model. A frame
//! that shows the request, its sources and its colors is useful on a board until a model
//! has made the real image.

mod block;
mod grid;
mod headline;
mod motif;
mod oklab;
mod page;
mod palette;
mod seed;
mod swatch;
mod vector;

#[cfg(test)]
mod tests;

use domain::graph::Role;
use raster::header::decoded_bytes_max;
use raster::resize::{self, check_output};
use raster::text::fill_path;
use raster::{
    Anchor, Bitmap, Bounds, Channels, Color, DecodeError, EncodeError, Encoding, Fit, Format, OutputFormat, PlanError,
    Rect, Resize, Size, decode_resized, encode, probe,
};

use block::{Block, LABEL};
use grid::Tile;
use headline::Headline;
use page::{Page, Scale, Text};
use palette::{Palette, Theme};
use seed::Seed;
use vector::{Area, lay, rounded};

pub(crate) use swatch::{contrasting, harmony, hex, hue_name};

/// The maximum number of references that are shown, which is also the maximum of a job.
const REFERENCES_MAX: usize = 16;

/// A reference image and its role.
#[derive(Debug, Clone, Copy)]
pub struct Reference<'a> {
    /// Content of the file: PNG, JPEG, WebP or GIF.
    pub bytes: &'a [u8],
    /// Role of the reference.
    pub role: Option<Role>,
}

/// The requested operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A new image from the prompt.
    Generate,
    /// Another form of the first reference.
    Edit,
    /// Another image like the first reference.
    Variation,
}

/// The input of a frame.
#[derive(Debug, Clone, Copy)]
pub struct Brief<'a> {
    /// The prompt in any script; may be empty.
    pub prompt: &'a str,
    /// The size of the frame in pixels. The design supports sides of 256 to 2048.
    pub size: Size,
    /// The references in the order of the request.
    pub references: &'a [Reference<'a>],
    /// The name of the model, for the caption.
    pub model: &'a str,
    /// The requested operation, for the caption.
    pub operation: Operation,
    /// The index of the output in its job, from 0. Each output looks different.
    pub output: u32,
    /// The number of outputs of the job, at least 1.
    pub outputs: u32,
}

/// The properties of a reference before its bytes are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Format of the file.
    pub format: Format,
    /// The displayed size.
    pub size: Size,
    /// The size of the file in bytes.
    pub file_bytes: u64,
}

/// The number of frame-sized layers that exist at once, with four bytes per pixel: the frame, its
/// stage, and the encoded output.
const LAYERS: u64 = 4;

/// The memory that a frame needs at any size: outlines of its letters, and a band of pixels.
const DRAWING_BYTES: u64 = 16 << 20;

/// An upper estimate of the memory that [`draw`] needs, including the files of the references, in
/// bytes.
///
/// References are decoded one after another, so only the largest is counted with its pixels and a
/// working copy of them.
pub fn memory_bytes(size: Size, references: &[Source]) -> u64 {
    let files: u64 = references.iter().map(|source| source.file_bytes).sum();
    let pixels =
        references.iter().map(|source| decoded_bytes_max(source.format, source.size) + 4 * source.size.pixels()).max();
    files + pixels.unwrap_or(0) + LAYERS * 4 * size.pixels() + DRAWING_BYTES
}

/// The share of a tile that an image with transparency covers; the rest is a margin.
const FREE_SHARE: f64 = 0.84;

/// The maximum ratio between the aspect ratios of an image and its tile at which the image is
/// cropped. Above it, the whole image is shown. A swatch is always cropped.
const CROP_MAX: f64 = 2.0;
const SWATCH_CROP_MAX: f64 = 12.0;

/// The maximum share of the frame's height for text below the stage, and below a stage with many
/// images.
const TEXT_SHARE: f64 = 0.42;
const TEXT_SHARE_BUSY: f64 = 0.30;

/// The number of images from which a stage counts as busy.
const BUSY: usize = 5;

/// The preferred aspect ratio of a stage without references, width to height.
const STAGE_RATIO: f64 = 1.25;

/// The reason why a frame could not be drawn.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A reference cannot be decoded. The message may be shown to its owner.
    #[error("reference {number} cannot be read")]
    Reference {
        /// Number of the reference, counted from 1.
        number: usize,
        source: DecodeError,
    },
    /// The size is empty or exceeds the limits of results.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The service: the frame cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// Draws the frame of a brief as an opaque PNG of the requested size.
///
/// # Errors
///
/// [`Error::Reference`] for the first reference that cannot be decoded, and [`Error::Plan`] for a
/// size that is empty or above the limits of results. As far as headers show it, both are detected
/// before anything is drawn.
pub fn draw(brief: &Brief<'_>) -> Result<Vec<u8>, Error> {
    let image = frame(brief)?;
    let encoding = Encoding { format: OutputFormat::Png, quality: 100, flatten: Color::WHITE };
    Ok(encode(&image, &encoding)?)
}

/// Draws the pixels for [`draw`].
fn frame(brief: &Brief<'_>) -> Result<Bitmap, Error> {
    if brief.size.pixels() == 0 {
        return Err(PlanError::EmptySource.into());
    }
    check_output(brief.size)?;
    let shown = PlacedReference::all(brief)?;
    let words = Headline::new(brief.prompt, brief.operation.noun());
    let size = format!("{} × {}", brief.size.width, brief.size.height);
    let facts = format!("{} · {size}", brief.operation.noun());
    let counter = match brief.outputs {
        0 | 1 => String::new(),
        outputs => format!("{} of {outputs}", brief.output + 1),
    };
    let share = if shown.len() < BUSY { TEXT_SHARE } else { TEXT_SHARE_BUSY };
    let text = Text { words: &words, model: brief.model, facts: &facts, counter: &counter, share };
    let page = Page::new(brief.size, &text, wished_ratio(&shown), brief.output % 2 == 1);
    let scale = Scale::for_size(brief.size);
    let tiles: Vec<Tile> = shown.iter().map(|shown| shown.tile).collect();
    let places: Vec<Rect> = grid::arrange(&tiles, page.stage, scale.gap * 0.5)
        .into_iter()
        .map(|area| area.pixels(brief.size.width, brief.size.height))
        .collect();
    let images = shown.iter().zip(&places).map(|(shown, place)| shown.image(place.size));
    let images: Vec<Bitmap> = images.collect::<Result<_, _>>()?;
    let seed = Seed::from_parts(&[brief.prompt.as_bytes()]);
    let palette = swatch::named(brief.prompt).unwrap_or_else(|| Palette::new(&images, &seed));
    let theme = Theme::new(&palette, brief.output);
    let mut image = Bitmap::filled(brief.size, Channels::Rgb, theme.ground);
    if shown.is_empty() {
        let place = page.stage.pixels(brief.size.width, brief.size.height);
        let stage = motif::compose(place.size, &palette, &seed, brief.output);
        lay(&mut image, &stage, (place.x, place.y), scale.radius);
    }
    for ((shown, place), tile) in shown.iter().zip(places).zip(images) {
        draw_tile(&mut image, place, tile, &theme, scale);
        draw_label(&mut image, place, shown.label, &theme, scale);
    }
    page.draw(&mut image, &theme, &palette);
    Ok(image)
}

/// A reference on the stage.
struct PlacedReference<'a> {
    index: usize,
    bytes: &'a [u8],
    size: Size,
    tile: Tile,
    /// The label of its role; empty without a role.
    label: &'static str,
}

impl<'a> PlacedReference<'a> {
    /// The references in order of importance, with their sizes.
    fn all(brief: &Brief<'a>) -> Result<Vec<Self>, Error> {
        let mut all = Vec::new();
        for (index, reference) in brief.references.iter().take(REFERENCES_MAX).enumerate() {
            let size = probe(reference.bytes).map_err(|error| unreadable(index, error.into()))?.size();
            let is_source = index == 0 && brief.operation != Operation::Generate && reference.role.is_none();
            let label = reference.role.map_or(if is_source { "Source" } else { "" }, role_name);
            let tile = Tile {
                ratio: f64::from(size.width) / f64::from(size.height),
                is_small: reference.role.is_some_and(is_swatch),
            };
            all.push(Self { index, bytes: reference.bytes, size, tile, label });
        }
        let rank = |shown: &Self| match brief.references[shown.index].role {
            Some(Role::Identity) => 0,
            None => 1,
            Some(Role::Construction) => 2,
            Some(Role::Fit) => 3,
            Some(Role::Texture) => 4,
            Some(Role::Style) => 5,
        };
        all.sort_by_key(rank);
        Ok(all)
    }

    /// The pixels for a tile of size `size`. The result is as large as the tile, or smaller if the
    /// image is shown as a whole.
    fn image(&self, size: Size) -> Result<Bitmap, Error> {
        let ratio = f64::from(size.width) / f64::from(size.height) / self.tile.ratio;
        let most = if self.tile.is_small { SWATCH_CROP_MAX } else { CROP_MAX };
        let fit = if (1.0 / most..=most).contains(&ratio) { Fit::Cover } else { Fit::Inside };
        let plan = resize::plan(self.size, &Resize { fit, ..Resize::new(bounds(size)) })?;
        let scaled =
            |plan| decode_resized(self.bytes, plan, Color::TRANSPARENT).map_err(|error| unreadable(self.index, error));
        let image = scaled(&plan)?;
        if image.is_opaque() {
            return Ok(image);
        }
        let share = |side: u32| ((f64::from(side) * FREE_SHARE) as u32).max(1);
        let plan = resize::plan(self.size, &Resize::new(bounds(Size::new(share(size.width), share(size.height)))))?;
        scaled(&plan)
    }
}

/// Resize bounds for a size without a zero side.
fn bounds(size: Size) -> Bounds {
    Bounds::new(Some(size.width), Some(size.height)).expect("a tile has at least a pixel")
}

/// The preferred aspect ratio of the stage: that of the only important image, or slightly wide.
fn wished_ratio(shown: &[PlacedReference<'_>]) -> f64 {
    let mut large = shown.iter().filter(|shown| !shown.tile.is_small);
    match (large.next(), large.next()) {
        (Some(only), None) => only.tile.ratio.clamp(0.6, 1.8),
        _ => STAGE_RATIO,
    }
}

/// Draws an image in its tile, on a matte if it does not fill the tile.
fn draw_tile(image: &mut Bitmap, place: Rect, tile: Bitmap, theme: &Theme, scale: Scale) {
    let tile = match tile.channels() {
        Channels::Rgb => tile,
        Channels::Rgba => tile.flattened(theme.matte),
    };
    let mut matte = Bitmap::filled(place.size, Channels::Rgb, theme.matte);
    let (x, y) = Anchor::Center.place(tile.size(), place.size);
    matte.paste(&tile, x, y);
    let (width, height) = (f64::from(place.size.width), f64::from(place.size.height));
    let area = Area::new(f64::from(place.x), f64::from(place.y), width, height);
    // The border separates an image from a background of the same color.
    fill_path(image, rounded(area.inset(-scale.hairline()), scale.radius + scale.hairline()), theme.line);
    lay(image, &matte, (place.x, place.y), scale.radius);
}

/// Draws the role in the lower left corner of an image, if there is room.
fn draw_label(image: &mut Bitmap, place: Rect, label: &str, theme: &Theme, scale: Scale) {
    let size = scale.caption * 0.86;
    let (width, height) = (f64::from(place.size.width), f64::from(place.size.height));
    let block = Block::new(label, LABEL, size, width, 1);
    let (padding, inset) = (size * 0.6, size * 0.6);
    let chip = (block.text_width() + 2.0 * padding, block.height() * 1.1);
    if label.is_empty() || chip.0 + 2.0 * inset > width || chip.1 * 2.5 > height {
        return;
    }
    let x = f64::from(place.x) + inset;
    let y = f64::from(place.y) + height - inset - chip.1;
    fill_path(image, rounded(Area::new(x, y, chip.0, chip.1), scale.radius * 0.6), theme.ground);
    block.draw(image, x + padding, y + block.height() * 0.05, theme.ink);
}

/// The label of a role.
fn role_name(role: Role) -> &'static str {
    match role {
        Role::Identity => "Identity",
        Role::Construction => "Construction",
        Role::Texture => "Texture",
        Role::Fit => "Fit",
        Role::Style => "Style",
    }
}

/// Returns `true` if a role is about appearance rather than content.
fn is_swatch(role: Role) -> bool {
    matches!(role, Role::Texture | Role::Style)
}

impl Operation {
    /// The heading of the operation.
    fn noun(self) -> &'static str {
        match self {
            Self::Generate => "New image",
            Self::Edit => "Edit",
            Self::Variation => "Variation",
        }
    }
}

/// The error for the reference at `index`.
fn unreadable(index: usize, source: DecodeError) -> Error {
    Error::Reference { number: index + 1, source }
}
