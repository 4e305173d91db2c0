//! Measures the time of codec settings and of two complete jobs, to choose settings: `cargo run
//! --release -p canvas-raster --example measure`.
//!
//! Prints milliseconds (best of five) and bytes, for a photo-like and a flat image. Settings that
//! were chosen by these measurements refer to this example where they are defined (`encode`,
//! `decode::jpeg`).

mod subjects;

use std::time::{Duration, Instant};

use raster::text::{Align, Caption, Family, Weight};
use raster::{Anchor, Bitmap, Bounds, Color, Encoding, Finish, FormatChoice, OutputFormat, Resize};

use subjects::{flat, photo};

fn main() {
    for side in [512, 2048] {
        for (name, image) in [("photo", photo(side, side)), ("flat", flat(side, side))] {
            for level in [1, 2, 3, 4, 6] {
                report(&format!("png {name} {side} level {level}"), || png(&image, level));
            }
            for format in [OutputFormat::Png, OutputFormat::Jpeg, OutputFormat::Webp] {
                let encoding = Encoding { format, quality: 85, flatten: Color::WHITE };
                report(&format!("encode {name} {side} {format:?}"), || {
                    raster::encode(&image, &encoding).unwrap_or_default()
                });
            }
        }
    }
    let large = photo(4000, 3000);
    let jpeg = Encoding { format: OutputFormat::Jpeg, quality: 90, flatten: Color::WHITE };
    let jpeg = raster::encode(&large, &jpeg).unwrap_or_default();
    for width in [512, 1024, 1999, 2001] {
        let Some(bounds) = Bounds::new(Some(width), None) else { continue };
        report(&format!("12 MP JPEG to {width} wide"), || {
            let output = raster::transform_resize(&jpeg, &Resize::new(bounds), FormatChoice::Auto, 85);
            output.map(|output| output.bytes).unwrap_or_default()
        });
    }
    for (name, text) in [("a line", "The quick brown fox"), ("500 letters", &"Quick brown fox ".repeat(32)[..500])] {
        let caption = caption(text);
        report(&format!("12 MP JPEG with {name} of text"), || {
            let finish = Finish { choice: FormatChoice::Auto, quality: 85 };
            raster::text::add_text(&jpeg, &caption, finish).map(|output| output.bytes).unwrap_or_default()
        });
    }
    report("12 MP JPEG decoded and encoded", || {
        let decoded = raster::decode(&jpeg);
        let encoding = Encoding { format: OutputFormat::Jpeg, quality: 85, flatten: Color::WHITE };
        decoded.ok().and_then(|image| raster::encode(&image, &encoding).ok()).unwrap_or_default()
    });
    report("12 MP JPEG rendition 512", || raster::rendition(&jpeg, 512).map(|output| output.bytes).unwrap_or_default());
}

/// The default parameters of the Action, with a stroke.
fn caption(text: &str) -> Caption {
    Caption {
        text: text.to_owned(),
        anchor: Anchor::Bottom,
        offset: (0, 0),
        family: Family::Sans,
        weight: Weight::Bold,
        size: 6.0,
        color: Color::WHITE,
        align: Align::Center,
        max_width: 90.0,
        line_height: 1.2,
        stroke_color: Color { a: 255, ..Color::TRANSPARENT },
        stroke_width: 4.0,
        background: Color::TRANSPARENT,
        padding: 30.0,
    }
}

/// Runs a job five times and prints its best time and the size of its output.
fn report(name: &str, job: impl Fn() -> Vec<u8>) {
    let mut best = Duration::MAX;
    let mut bytes = 0;
    for _ in 0..5 {
        let start = Instant::now();
        bytes = job().len();
        best = best.min(start.elapsed());
    }
    println!("{name:40} {:8.1} ms {bytes:10} bytes", best.as_secs_f64() * 1e3);
}

fn png(image: &Bitmap, level: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, image.width(), image.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_deflate_compression(png::DeflateCompression::Level(level));
    encoder.set_filter(png::Filter::Adaptive);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(image.pixels())?;
        writer.finish()
    });
    written.map(|()| bytes).unwrap_or_default()
}
