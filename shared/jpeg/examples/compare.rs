//! Compares this encoder with libjpeg-turbo at quality 85, 4:2:0, with optimized Huffman tables and without:
//! `cargo run --release -p jpeg --example compare`.
//!
//! Prints the best time of nine runs that alternate between the encoders, and the size of the file, for a computed
//! image of 12 megapixels.

use std::error::Error;
use std::time::{Duration, Instant};

use jpeg::{Encoder, PixelFormat};

const WIDTH: u16 = 4000;
const HEIGHT: u16 = 3000;
const QUALITY: u8 = 85;

fn main() -> Result<(), Box<dyn Error>> {
    let pixels = photo();
    let names = ["this encoder", "libjpeg-turbo, optimized tables", "libjpeg-turbo, fixed tables"];
    let mut results = [(Duration::MAX, 0); 3];
    for _ in 0..9 {
        for (encoder, (best, bytes)) in results.iter_mut().enumerate() {
            let start = Instant::now();
            let file = if encoder == 0 { ours(&pixels) } else { turbo(&pixels, encoder == 1)? };
            (*best, *bytes) = (start.elapsed().min(*best), file.len());
        }
    }
    for (name, (best, bytes)) in names.iter().zip(results) {
        println!("{name:32} {:6.1} ms {bytes:9} bytes", best.as_secs_f64() * 1e3);
    }
    Ok(())
}

fn ours(pixels: &[u8]) -> Vec<u8> {
    let mut encoder = Encoder::new(WIDTH, HEIGHT, PixelFormat::Rgb, QUALITY);
    encoder.write(pixels);
    encoder.finish()
}

fn turbo(pixels: &[u8], optimize: bool) -> turbojpeg::Result<Vec<u8>> {
    let (width, height) = (usize::from(WIDTH), usize::from(HEIGHT));
    let mut compressor = turbojpeg::Compressor::new()?;
    compressor.set_quality(i32::from(QUALITY))?;
    compressor.set_subsamp(turbojpeg::Subsamp::Sub2x2)?;
    compressor.set_optimize(optimize)?;
    let format = turbojpeg::PixelFormat::RGB;
    compressor.compress_to_vec(turbojpeg::Image { pixels, width, pitch: width * 3, height, format })
}

/// Waves, fine texture and sensor noise.
fn photo() -> Vec<u8> {
    let mut noise = 1u32;
    let mut pixel = |x: f64, y: f64| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let grain = f64::from(noise >> 28) - 7.5;
        let sample = |a: f64, b: f64| {
            127.0 + 60.0 * (x / a).sin() + 45.0 * (y / b).cos() + 8.0 * ((x * y) / 9e3).sin() + grain * 0.6
        };
        [sample(137.0, 93.0) as u8, sample(161.0, 147.0) as u8, sample(229.0, 83.0) as u8]
    };
    (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (x, y))).flat_map(|(x, y)| pixel(x.into(), y.into())).collect()
}
