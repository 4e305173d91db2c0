//! Draws a sheet with images before and after each Image Action, made by the Actions themselves:
//! `deploy/local/demo actions`.
//!
//! Usage: `contact_sheet PHOTO OUT`. There is one row per Action, in the order of
//! `docs/reference/actions.md`, with the photograph on the left.

use std::error::Error;

use raster::crop::{Crop, CropPosition};
use raster::grade::{Grade, Preset};
use raster::overlay::{Blend, Overlay};
use raster::ratio::{ChangeRatio, Mode};
use raster::rotate::{Flip, Rotate};
use raster::side_by_side::{Align, Direction, SideBySideOptions};
use raster::text::{self, Caption, Family, Weight};
use raster::{Anchor, Bounds, Color, Finish, Fit, FormatChoice, Output, Resize};

type File = Vec<u8>;
type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Width and height of an image on the sheet.
const CELL: (u32, u32) = (320, 240);
const PAPER: Color = Color { r: 244, g: 242, b: 238, a: 255 };
const PNG: Finish = Finish { choice: FormatChoice::Png, quality: 90 };

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [photo, out] = &arguments[..] else { return Err("usage: contact_sheet PHOTO OUT".into()) };
    let photo = within(&std::fs::read(photo)?, 1200)?;
    let mut sheet: Option<File> = None;
    for (name, results) in rows(&photo)? {
        println!("   {name}");
        let mut row = cell(&photo)?;
        for result in results {
            row = joined(&row, &cell(&result)?, Direction::Horizontal)?;
        }
        sheet = Some(match sheet {
            Some(above) => joined(&above, &row, Direction::Vertical)?,
            None => row,
        });
    }
    std::fs::write(out, sheet.ok_or("no rows")?)?;
    Ok(())
}

/// Each Action with three results of it.
fn rows(photo: &File) -> Result<Vec<(&'static str, [File; 3])>> {
    let logo = logo(photo)?;
    let resized = |width: u32, height: u32, fit: Fit| {
        let bounds = Bounds::new(Some(width), Some(height)).expect("not zero");
        let resize = Resize { fit, background: Color { r: 40, g: 70, b: 90, a: 255 }, ..Resize::new(bounds) };
        file(raster::transform_resize(photo, &resize, PNG.choice, PNG.quality))
    };
    let cropped = |anchor| {
        file(raster::crop::transform(
            photo,
            &Crop { width: 400, height: 300, place: CropPosition::Anchored(anchor), degrees: 0.0 },
            PNG,
        ))
    };
    let ratio = |ratio, mode| {
        let background = Color { r: 200, g: 120, b: 60, a: 255 };
        file(raster::ratio::transform(photo, &ChangeRatio { ratio, mode, anchor: Anchor::Center, background }, PNG))
    };
    let graded = |grade: Grade| file(raster::grade::transform(photo, &grade, PNG));
    let turned = |degrees, expand, flip| {
        file(raster::rotate::transform(photo, &Rotate { degrees, expand, flip, background: PAPER }, PNG))
    };
    let overlaid = |anchor, rotate, blend, scale| {
        let params = Overlay { anchor, offset: (0, 0), scale, opacity: 90.0, rotate, blend };
        file(raster::overlay::transform(photo, &logo, &params, PNG))
    };
    let captioned = |caption: Caption| file(raster::text::add_text(photo, &caption, PNG));
    let beside = |first: &File, second: &File, direction, align, matches| {
        let params = SideBySideOptions { direction, gap: 24, matches, align, background: Color::WHITE };
        file(raster::side_by_side::transform(first, second, &params, PNG))
    };
    Ok(vec![
        (
            "resize: cover, contain, fill",
            [resized(300, 300, Fit::Cover)?, resized(300, 300, Fit::Contain)?, resized(400, 150, Fit::Fill)?],
        ),
        (
            "crop: top left, center, bottom right",
            [cropped(Anchor::TopLeft)?, cropped(Anchor::Center)?, cropped(Anchor::BottomRight)?],
        ),
        (
            "change-aspect-ratio: crop 1:1, pad 21:9, blur 9:16",
            [ratio((1, 1), Mode::Crop)?, ratio((21, 9), Mode::Pad)?, ratio((9, 16), Mode::Blur)?],
        ),
        (
            "side-by-side-composite: horizontal, vertical, not matched",
            [
                beside(photo, &logo, Direction::Horizontal, Align::Center, true)?,
                beside(photo, &logo, Direction::Vertical, Align::Center, true)?,
                beside(photo, &logo, Direction::Horizontal, Align::End, false)?,
            ],
        ),
        (
            "add-text-to-image: outlined, on a band and wrapped, right to left and with symbols",
            [
                captioned(Caption { weight: Weight::Bold, stroke_width: 12.0, ..caption("Espresso, 30 ml") })?,
                captioned(Caption {
                    anchor: Anchor::Center,
                    family: Family::Serif,
                    background: Color { r: 20, g: 20, b: 20, a: 160 },
                    padding: 40.0,
                    ..caption("Ein Kaffee, der den Morgen wach macht · Καλημέρα · Доброе утро")
                })?,
                captioned(Caption {
                    anchor: Anchor::Top,
                    stroke_width: 12.0,
                    ..caption("قهوة الصباح ☕ 朝のコーヒー")
                })?,
            ],
        ),
        (
            "overlay-image: normal, rotated 30°, multiply",
            [
                overlaid(Anchor::BottomRight, 0.0, Blend::Normal, 25.0)?,
                overlaid(Anchor::Center, 30.0, Blend::Normal, 40.0)?,
                overlaid(Anchor::Center, 0.0, Blend::Multiply, 70.0)?,
            ],
        ),
        (
            "color-grade: noir, sepia, vivid",
            [
                graded(Grade { preset: Preset::Noir, ..Grade::NEUTRAL })?,
                graded(Grade { preset: Preset::Sepia, ..Grade::NEUTRAL })?,
                graded(Grade { preset: Preset::Vivid, shadows: 40.0, ..Grade::NEUTRAL })?,
            ],
        ),
        (
            "color-grade: warm, cool, faded",
            [
                graded(Grade { preset: Preset::Warm, ..Grade::NEUTRAL })?,
                graded(Grade { preset: Preset::Cool, ..Grade::NEUTRAL })?,
                graded(Grade { preset: Preset::Faded, ..Grade::NEUTRAL })?,
            ],
        ),
        (
            "rotate: 90°, 12°, 12° of the same size and mirrored",
            [turned(90.0, true, Flip::None)?, turned(12.0, true, Flip::None)?, turned(12.0, false, Flip::Horizontal)?],
        ),
    ])
}

/// White text of a uniform size at the bottom of the image.
fn caption(text: &str) -> Caption {
    Caption {
        text: text.to_owned(),
        anchor: Anchor::Bottom,
        offset: (0, 0),
        family: Family::Sans,
        weight: Weight::Regular,
        size: 9.0,
        color: Color::WHITE,
        align: text::Align::Center,
        max_width: 80.0,
        line_height: 1.2,
        stroke_color: Color { r: 30, g: 20, b: 10, a: 255 },
        stroke_width: 0.0,
        background: Color::TRANSPARENT,
        padding: 0.0,
    }
}

/// An image to overlay: the center of the photograph, rotated by 45 degrees, on a transparent
/// background.
fn logo(photo: &File) -> Result<File> {
    let square = Crop { width: 300, height: 300, place: CropPosition::Anchored(Anchor::Center), degrees: 0.0 };
    let square = file(raster::crop::transform(photo, &square, PNG))?;
    let turn = Rotate { degrees: 45.0, expand: true, flip: Flip::None, background: Color::TRANSPARENT };
    file(raster::rotate::transform(&square, &turn, PNG))
}

/// An image in a cell with a margin.
fn cell(image: &File) -> Result<File> {
    let shown = boxed(image, CELL.0 - 16, CELL.1 - 16)?;
    boxed(&shown, CELL.0, CELL.1)
}

/// An image centered on a box of the paper color, never enlarged.
fn boxed(image: &File, width: u32, height: u32) -> Result<File> {
    let bounds = Bounds::new(Some(width), Some(height)).ok_or("not zero")?;
    let resize = Resize { fit: Fit::Contain, background: PAPER, enlarge: false, ..Resize::new(bounds) };
    // Transparent images are drawn onto the paper color first, because the JPEG would otherwise
    // be flattened on white.
    let boxed = file(raster::transform_resize(image, &resize, PNG.choice, PNG.quality))?;
    let paper = Overlay {
        anchor: Anchor::Center,
        offset: (0, 0),
        scale: 100.0,
        opacity: 100.0,
        rotate: 0.0,
        blend: Blend::Normal,
    };
    file(raster::overlay::transform(&blank(width, height)?, &boxed, &paper, PNG))
}

/// A box of the paper color without an image.
fn blank(width: u32, height: u32) -> Result<File> {
    let pixels = PAPER.rgb().repeat(width as usize * height as usize);
    let image = raster::Bitmap::new(raster::Size::new(width, height), raster::Channels::Rgb, pixels);
    let encoding = raster::Encoding { format: raster::OutputFormat::Png, quality: 90, flatten: PAPER };
    Ok(raster::encode(&image.ok_or("as many as fit")?, &encoding)?)
}

fn within(image: &File, side: u32) -> Result<File> {
    let bounds = Bounds::new(Some(side), Some(side)).ok_or("not zero")?;
    let resize = Resize { enlarge: false, ..Resize::new(bounds) };
    file(raster::transform_resize(image, &resize, PNG.choice, PNG.quality))
}

fn joined(first: &File, second: &File, direction: Direction) -> Result<File> {
    let params = SideBySideOptions { direction, gap: 0, matches: false, align: Align::Start, background: PAPER };
    file(raster::side_by_side::transform(first, second, &params, PNG))
}

fn file(output: std::result::Result<Output, raster::Error>) -> Result<File> {
    Ok(output?.bytes)
}
