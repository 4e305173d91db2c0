//! The jobs, and their implementation with our engine.

use std::collections::HashMap;

use raster::crop::{Crop, CropPosition};
use raster::grade::Grade;
use raster::overlay::{Blend, Overlay};
use raster::ratio::{ChangeRatio, Mode};
use raster::rotate::{Flip, Rotate};
use raster::side_by_side::{Align, Direction, SideBySideOptions};
use raster::text::{Caption, Family, Weight};
use raster::{Anchor, Bounds, Color, Finish, FormatChoice, Output, Resize};

/// A row of the table.
pub struct Job {
    /// The name in the protocol of the engines.
    pub name: &'static str,
    /// The name in the table.
    pub title: &'static str,
    /// How the quality of its result is judged.
    pub judged: Judged,
}

/// Criterion for the distance to the reference.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// Relative to sharp's result. For a JPEG with the same settings and the same pixels, apart
    /// from coding loss.
    BesideSharp,
    /// In decibels. For a lossless PNG.
    ByItself,
    /// Not judged, because no reference applies to both.
    NotAtAll,
}

/// All jobs. The goals were set for all but the last one, in this order.
pub const JOBS: [Job; 14] = [
    job("resize", "12 MP JPEG to 1024 wide JPEG", Judged::BesideSharp),
    job("resize-progressive", "the same, progressive input", Judged::BesideSharp),
    job("resize-png", "2048² photo PNG to 512 PNG", Judged::ByItself),
    job("resize-flat-png", "2048² flat PNG to 512 PNG", Judged::ByItself),
    job("crop", "crop of 12 MP JPEG", Judged::BesideSharp),
    job("rotate-90", "rotate 90, 12 MP JPEG", Judged::BesideSharp),
    job("overlay", "overlay PNG on 12 MP JPEG", Judged::BesideSharp),
    job("side-by-side", "side by side, two 12 MP JPEG", Judged::BesideSharp),
    job("grade", "color grade, 12 MP JPEG", Judged::NotAtAll),
    job("webp", "24 MP JPEG to 1600 WebP q80", Judged::NotAtAll),
    job("from-webp", "1600 × 1067 WebP to JPEG", Judged::BesideSharp),
    job("rotate-12", "rotate 12°, 12 MP JPEG", Judged::NotAtAll),
    job("text", "text on 12 MP JPEG", Judged::NotAtAll),
    job(CHANGE_RATIO, "12 MP JPEG padded to 16:9", Judged::BesideSharp),
];

/// The row that is not counted in the goals.
pub const CHANGE_RATIO: &str = "change-ratio";

/// The measured grade: brightness, contrast and saturation.
pub const GRADE: Grade = Grade { brightness: 10.0, contrast: 15.0, saturation: 20.0, ..Grade::NEUTRAL };

const fn job(name: &'static str, title: &'static str, judged: Judged) -> Job {
    Job { name, title, judged }
}

/// Runs one job with our engine.
pub fn ours(job: &str, files: &HashMap<String, Vec<u8>>) -> std::result::Result<Output, raster::Error> {
    let file = |name: &str| files[name].as_slice();
    let finish = Finish { choice: FormatChoice::Auto, quality: 85 };
    let to = |width: u32| Resize::new(Bounds::new(Some(width), None).expect("not zero"));
    let turn = |degrees: f64| Rotate { degrees, expand: true, flip: Flip::None, background: Color::WHITE };
    match job {
        "resize" => raster::transform_resize(file("photo.jpg"), &to(1024), finish.choice, 85),
        "resize-progressive" => raster::transform_resize(file("progressive.jpg"), &to(1024), finish.choice, 85),
        "resize-png" => raster::transform_resize(file("photo.png"), &to(512), finish.choice, 85),
        "resize-flat-png" => raster::transform_resize(file("flat.png"), &to(512), finish.choice, 85),
        "webp" => raster::transform_resize(file("large.jpg"), &to(1600), FormatChoice::Webp, 80),
        "from-webp" => {
            let jpeg = Finish { choice: FormatChoice::Jpeg, ..finish };
            raster::grade::transform(file("photo.webp"), &Grade::NEUTRAL, jpeg)
        }
        "crop" => {
            let crop = Crop { width: 2000, height: 1500, place: CropPosition::At { x: 1000, y: 750 }, degrees: 0.0 };
            raster::crop::transform(file("photo.jpg"), &crop, finish)
        }
        "rotate-90" => raster::rotate::transform(file("photo.jpg"), &turn(90.0), finish),
        "rotate-12" => raster::rotate::transform(file("photo.jpg"), &turn(12.0), finish),
        "overlay" => {
            let params = Overlay {
                anchor: Anchor::BottomRight,
                offset: (0, 0),
                scale: 25.0,
                opacity: 100.0,
                rotate: 0.0,
                blend: Blend::Normal,
            };
            raster::overlay::transform(file("photo.jpg"), file("logo.png"), &params, finish)
        }
        "side-by-side" => {
            let params = SideBySideOptions {
                direction: Direction::Horizontal,
                gap: 0,
                matches: true,
                align: Align::Center,
                background: Color::WHITE,
            };
            raster::side_by_side::transform(file("photo.jpg"), file("photo.jpg"), &params, finish)
        }
        "change-ratio" => {
            let (anchor, background) = (Anchor::Center, Color::WHITE);
            let params = ChangeRatio { ratio: (16, 9), mode: Mode::Pad, anchor, background };
            raster::ratio::transform(file("photo.jpg"), &params, finish)
        }
        "grade" => raster::grade::transform(file("photo.jpg"), &GRADE, finish),
        "text" => raster::text::add_text(file("photo.jpg"), &caption(), finish),
        other => panic!("unknown job {other:?}"),
    }
}

/// White bold text of 6 % of the image's height at its lower edge.
fn caption() -> Caption {
    Caption {
        text: "The quick brown fox".to_owned(),
        anchor: Anchor::Bottom,
        offset: (0, 0),
        family: Family::Sans,
        weight: Weight::Bold,
        size: 6.0,
        color: Color::WHITE,
        align: raster::text::Align::Center,
        max_width: 90.0,
        line_height: 1.2,
        stroke_color: Color::TRANSPARENT,
        stroke_width: 0.0,
        background: Color::TRANSPARENT,
        padding: 30.0,
    }
}
