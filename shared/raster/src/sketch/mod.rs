//! The picture of the embedded runtime: a storyboard frame of prompt and references (decisions 12.2).
//!
//! **Guarantee.** The same brief gives the same bytes on every machine. Whatever the prompt, the references and the size, all
//! text stands within the frame, and nothing but the references' pixels is foreign.
//!
//! **Mechanism.** References are read (sizes first, so that a wrong one is refused before any is decoded), ranked by role and
//! placed in justified rows on a stage ([`grid`]); each is decoded no larger than its tile. Five colours are found in them by
//! k-means in Oklab ([`palette`]), or a harmony and a composition of plain shapes ([`motif`]) follow from the prompt's hash. The
//! prompt's first sentence becomes a headline, the rest text below it ([`words`], [`block`]), each set in the largest of a few
//! sizes that fits; [`page`] puts it all on one grid. Arithmetic is IEEE's own four operations, square roots and `libm`'s
//! functions, which round alike everywhere.
//!
//! **Reason.** What runs without a key, a GPU or a network must not pretend to be a model; a frame that says what was asked
//! for, from what, in which colours, is of use on a wall until there is a picture.

mod block;
mod grid;
mod motif;
mod oklab;
mod page;
mod palette;
mod plate;
mod seed;
mod vector;
mod words;

#[cfg(test)]
mod tests;

use crate::color::Color;
use crate::decode::{DecodeError, DecodeOptions, decode};
use crate::encode::{Encoding, encode};
use crate::format::{Format, OutputFormat};
use crate::geometry::{Anchor, Rect, Size};
use crate::header::{self, probe};
use crate::picture::{Channels, Picture};
use crate::pipeline::Error;
use crate::resize::{self, Bounds, Fit, PlanError, Resize, check_output};

use block::{Block, LABEL};
use grid::Tile;
use page::{Page, Scale, Text};
use palette::{Palette, Theme};
use seed::Seed;
use vector::{Area, lay, paint, rounded};
use words::Words;

pub use plate::{PlacedPlate, Plate};

/// How many references are shown; those of a job are no more.
const REFERENCES_MAX: usize = 16;

/// What a reference is for (decisions 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Who or what is shown.
    Identity,
    /// How it is built.
    Construction,
    /// Its material.
    Texture,
    /// How it sits.
    Fit,
    /// How the picture looks.
    Style,
}

/// A picture that goes along.
#[derive(Debug, Clone, Copy)]
pub struct Reference<'a> {
    /// The file: PNG, JPEG, WebP or GIF.
    pub bytes: &'a [u8],
    /// What it is for.
    pub role: Option<Role>,
}

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A new picture.
    Generate,
    /// Another form of the first reference.
    Edit,
    /// Another picture like the first reference.
    Variation,
}

/// What a frame is drawn from.
#[derive(Debug, Clone, Copy)]
pub struct Brief<'a> {
    /// What the picture is to show, in any script; may be empty.
    pub prompt: &'a str,
    /// Of the frame, in pixels: made for 256 to 2048 a side.
    pub size: Size,
    /// In the order of the request.
    pub references: &'a [Reference<'a>],
    /// The model's name, for the caption.
    pub model: &'a str,
    /// What was asked for, for the caption.
    pub operation: Operation,
    /// Which output of its job the frame is, from 0 on: each looks different.
    pub output: u32,
    /// How many outputs the job has, at least 1.
    pub outputs: u32,
}

/// What is known of a reference before its bytes are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Of the file.
    pub format: Format,
    /// As displayed.
    pub size: Size,
    /// Of the file.
    pub file_bytes: u64,
}

/// Layers of the frame's size that exist at once, four bytes a pixel: the frame, its stage, and what is written.
const LAYERS: u64 = 4;

/// What a frame takes however small it is: outlines of its letters and a band of pixels.
const DRAWING_BYTES: u64 = 16 << 20;

/// An upper estimate of the memory that [`draw`] takes, the references' files included, in bytes.
///
/// References are decoded one after another, so that only the largest counts with its pixels and a working copy of them.
pub fn memory_bytes(size: Size, references: &[Source]) -> u64 {
    let files: u64 = references.iter().map(|source| source.file_bytes).sum();
    let pixels = references
        .iter()
        .map(|source| header::decoded_bytes_max(source.format, source.size) + 4 * source.size.pixels())
        .max();
    files + pixels.unwrap_or(0) + LAYERS * 4 * size.pixels() + DRAWING_BYTES
}

/// The share of a tile that a picture with transparency takes: it stands free, with air around it.
const FREE_SHARE: f64 = 0.84;

/// A picture whose ratio is off its tile's by more than this is shown whole rather than cropped. Any part of a swatch shows
/// what it is about.
const CROP_MAX: f64 = 2.0;
const SWATCH_CROP_MAX: f64 = 12.0;

/// The most that text takes of a frame's height below its stage, and below one of many pictures.
const TEXT_SHARE: f64 = 0.42;
const TEXT_SHARE_BUSY: f64 = 0.30;

/// How many pictures make a stage busy.
const BUSY: usize = 5;

/// What a stage without references would like to be, in width by height.
const STAGE_RATIO: f64 = 1.25;

/// Draws the frame of a brief, an opaque PNG of its size.
///
/// # Errors
/// [`Error::Reference`] for the first reference that cannot be decoded, [`Error::Plan`] for a size over the limits of results
/// or without pixels; both before anything is drawn, as far as headers tell.
pub fn draw(brief: &Brief<'_>) -> Result<Vec<u8>, Error> {
    let picture = frame(brief)?;
    let encoding = Encoding { format: OutputFormat::Png, quality: 100, flatten: Color::WHITE };
    Ok(encode(&picture, &encoding)?)
}

/// The pixels of [`draw`].
fn frame(brief: &Brief<'_>) -> Result<Picture, Error> {
    if brief.size.pixels() == 0 {
        return Err(PlanError::EmptySource.into());
    }
    check_output(brief.size)?;
    let shown = Shown::all(brief)?;
    let words = Words::new(brief.prompt, brief.operation.noun());
    let size = format!("{} × {}", brief.size.width, brief.size.height);
    let facts = format!("{} · {size}", brief.operation.noun());
    let counter = match brief.outputs {
        0 | 1 => String::new(),
        outputs => format!("{} of {outputs}", brief.output + 1),
    };
    let share = if shown.len() < BUSY { TEXT_SHARE } else { TEXT_SHARE_BUSY };
    let text = Text { words: &words, model: brief.model, facts: &facts, counter: &counter, share };
    let page = Page::new(brief.size, &text, wished_ratio(&shown), brief.output % 2 == 1);
    let scale = Scale::of(brief.size);
    let tiles: Vec<Tile> = shown.iter().map(|shown| shown.tile).collect();
    let places: Vec<Rect> = grid::arrange(&tiles, page.stage, scale.gap * 0.5)
        .into_iter()
        .map(|area| area.pixels(brief.size.width, brief.size.height))
        .collect();
    let pictures = shown.iter().zip(&places).map(|(shown, place)| shown.picture(place.size));
    let pictures: Vec<Picture> = pictures.collect::<Result<_, _>>()?;
    let seed = Seed::of(&[brief.prompt.as_bytes()]);
    let palette = Palette::new(&pictures, &seed);
    let theme = Theme::new(&palette, brief.output);
    let mut picture = Picture::filled(brief.size, Channels::Rgb, theme.ground);
    if shown.is_empty() {
        let place = page.stage.pixels(brief.size.width, brief.size.height);
        let stage = motif::compose(place.size, &palette, &seed, brief.output);
        lay(&mut picture, &stage, (place.x, place.y), scale.radius);
    }
    for ((shown, place), tile) in shown.iter().zip(places).zip(pictures) {
        hang(&mut picture, place, tile, &theme, scale);
        label(&mut picture, place, shown.label, &theme, scale);
    }
    page.draw(&mut picture, &theme, &palette);
    Ok(picture)
}

/// A reference on the stage.
struct Shown<'a> {
    index: usize,
    bytes: &'a [u8],
    size: Size,
    tile: Tile,
    /// What it is for; empty when nothing was said.
    label: &'static str,
}

impl<'a> Shown<'a> {
    /// The references in the order of what they matter, with their sizes.
    fn all(brief: &Brief<'a>) -> Result<Vec<Self>, Error> {
        let mut all = Vec::new();
        for (index, reference) in brief.references.iter().take(REFERENCES_MAX).enumerate() {
            let size = probe(reference.bytes).map_err(|error| unreadable(index, error.into()))?.size();
            let is_source = index == 0 && brief.operation != Operation::Generate && reference.role.is_none();
            let label = reference.role.map_or(if is_source { "Source" } else { "" }, Role::name);
            let tile = Tile {
                ratio: f64::from(size.width) / f64::from(size.height),
                is_small: reference.role.is_some_and(Role::is_swatch),
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

    /// Its pixels for a tile of `size`: as large as the tile, or smaller where it is to be shown whole.
    fn picture(&self, size: Size) -> Result<Picture, Error> {
        let ratio = f64::from(size.width) / f64::from(size.height) / self.tile.ratio;
        let most = if self.tile.is_small { SWATCH_CROP_MAX } else { CROP_MAX };
        let fit = if (1.0 / most..=most).contains(&ratio) { Fit::Cover } else { Fit::Inside };
        let plan = resize::plan(self.size, &Resize { fit, ..Resize::new(bounds(size)) })?;
        let options = DecodeOptions { at_least: Some(plan.scaled()) };
        let decoded = decode(self.bytes, options).map_err(|error| unreadable(self.index, error))?;
        if decoded.is_opaque() {
            return Ok(resize::apply(&decoded, &plan, Color::TRANSPARENT));
        }
        let share = |side: u32| ((f64::from(side) * FREE_SHARE) as u32).max(1);
        let plan = resize::plan(self.size, &Resize::new(bounds(Size::new(share(size.width), share(size.height)))))?;
        Ok(resize::apply(&decoded, &plan, Color::TRANSPARENT))
    }
}

/// A box that is not empty.
fn bounds(size: Size) -> Bounds {
    Bounds::new(Some(size.width), Some(size.height)).expect("a tile has at least a pixel")
}

/// What the stage would like to be: as the only picture that matters, or a little wide.
fn wished_ratio(shown: &[Shown<'_>]) -> f64 {
    let mut large = shown.iter().filter(|shown| !shown.tile.is_small);
    match (large.next(), large.next()) {
        (Some(only), None) => only.tile.ratio.clamp(0.6, 1.8),
        _ => STAGE_RATIO,
    }
}

/// Hangs a picture in its place, on a matte where it does not fill it.
fn hang(picture: &mut Picture, place: Rect, tile: Picture, theme: &Theme, scale: Scale) {
    let tile = match tile.is_opaque() {
        true => tile.into_rgb(),
        false => tile.flattened(theme.matte),
    };
    let mut matte = Picture::filled(place.size, Channels::Rgb, theme.matte);
    let (x, y) = Anchor::Center.place(tile.size(), place.size);
    matte.paste(&tile, x, y);
    let (width, height) = (f64::from(place.size.width), f64::from(place.size.height));
    let area = Area::new(f64::from(place.x), f64::from(place.y), width, height);
    // A rim, so that a picture of the ground's own colour has an edge.
    paint(picture, rounded(area.inset(-scale.hairline()), scale.radius + scale.hairline()), theme.line);
    lay(picture, &matte, (place.x, place.y), scale.radius);
}

/// Says in the lower left corner of a picture what it is for, where there is room.
fn label(picture: &mut Picture, place: Rect, label: &str, theme: &Theme, scale: Scale) {
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
    paint(picture, rounded(Area::new(x, y, chip.0, chip.1), scale.radius * 0.6), theme.ground);
    block.draw(picture, x + padding, y + block.height() * 0.05, theme.ink);
}

impl Role {
    /// As a label.
    fn name(self) -> &'static str {
        match self {
            Self::Identity => "Identity",
            Self::Construction => "Construction",
            Self::Texture => "Texture",
            Self::Fit => "Fit",
            Self::Style => "Style",
        }
    }

    /// Whether it is about how things look rather than what is seen.
    fn is_swatch(self) -> bool {
        matches!(self, Self::Texture | Self::Style)
    }
}

impl Operation {
    /// As a heading.
    fn noun(self) -> &'static str {
        match self {
            Self::Generate => "New picture",
            Self::Edit => "Edit",
            Self::Variation => "Variation",
        }
    }
}

/// Names the reference at `index`.
fn unreadable(index: usize, source: DecodeError) -> Error {
    Error::Reference { number: index + 1, source }
}
