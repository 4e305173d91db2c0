//! Measures the composite of a masked edit: `cargo run --release -p canvas-raster --example masks`.
//!
//! Prints milliseconds (best of five) and bytes for a photo of 12 megapixels, and for the parts of the work.

mod subjects;

use std::time::{Duration, Instant};

use raster::mask::{Channel, Masking, Plane, edit};
use raster::{Bitmap, Color, Encoding, OutputFormat, Size};

use subjects::{flat, photo};

const WIDTH: u32 = 4000;
const HEIGHT: u32 = 3000;

fn main() {
    // As the processes that decode do.
    raster::memory::keep_freed();
    let written = |image: &Bitmap, format| {
        raster::encode(image, &Encoding { format, quality: 90, flatten: Color::WHITE }).unwrap_or_default()
    };
    let large = photo(WIDTH, HEIGHT);
    let (jpeg, webp) = (written(&large, OutputFormat::Jpeg), written(&large, OutputFormat::Webp));
    let result = written(&flat(1536, 1152), OutputFormat::Png);
    for side in [2048, WIDTH] {
        let mask = written(&circle(side, side / 4 * 3), OutputFormat::Png);
        for feather in [0, 8, 64] {
            let masking = Masking { channel: Channel::Auto, invert: false, feather };
            report(&format!("JPEG, mask {side} wide, feather {feather}"), || {
                edit(&jpeg, &mask, &result, &masking).map(|output| output.bytes).unwrap_or_default()
            });
        }
    }
    let mask = written(&circle(2048, 1536), OutputFormat::Png);
    let masking = Masking { channel: Channel::Auto, invert: false, feather: 8 };
    report("WebP", || edit(&webp, &mask, &result, &masking).map(|output| output.bytes).unwrap_or_default());
    report("the plane alone", || {
        let plane = Plane::decode(&mask, &masking, Size::new(WIDTH, HEIGHT)).ok();
        plane.and_then(|plane| plane.white_png().ok()).unwrap_or_default()
    });
    report("JPEG decoded", || raster::decode(&jpeg).map(|_| Vec::new()).unwrap_or_default());
    report("PNG encoded", || written(&large, OutputFormat::Png));
}

/// White within a circle, black around it.
fn circle(width: u32, height: u32) -> Bitmap {
    let (x0, y0, radius) = (i64::from(width) / 2, i64::from(height) / 2, i64::from(height) / 3);
    let inside = |x: i64, y: i64| (x - x0).pow(2) + (y - y0).pow(2) < radius.pow(2);
    let pixels = (0..i64::from(height)).flat_map(|y| (0..i64::from(width)).map(move |x| (x, y)));
    let pixels = pixels.flat_map(|(x, y)| [if inside(x, y) { 255 } else { 0 }; 3]).collect();
    Bitmap::new(Size::new(width, height), raster::Channels::Rgb, pixels).expect("as many as fit")
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
