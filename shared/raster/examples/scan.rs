//! Measures what the gateway reads of an upload while it passes: `cargo run --release -p canvas-raster --example scan`.
//!
//! Prints microseconds (best of 20) for files of 12 megapixels without private metadata, in pieces of 64 KiB: the header alone, all
//! readers together, and a copy of the bytes, as the least that any upload costs.

#[allow(dead_code, reason = "other examples use the rest")]
mod subjects;

use std::hint::black_box;
use std::time::{Duration, Instant};

use raster::animation::FrameCounter;
use raster::metadata::Cleaner;
use raster::xmp::XmpReader;
use raster::{Color, Encoding, HeaderReader, OutputFormat, encode};

use subjects::photo;

const PIECE: usize = 64 * 1024;

fn main() {
    let image = photo(4000, 3000);
    println!("{:>5} {:>10} {:>10} {:>10} {:>10}", "", "bytes", "header", "all", "copy");
    for format in [OutputFormat::Jpeg, OutputFormat::Png, OutputFormat::Webp] {
        let file = encode(&image, &Encoding { format, quality: 90, flatten: Color::WHITE }).expect("encodes");
        let header = best(|| {
            let mut reader = HeaderReader::new();
            for piece in file.chunks(PIECE) {
                let _ = black_box(reader.push(piece));
            }
        });
        let all = best(|| {
            let (mut reader, mut xmp) = (HeaderReader::new(), XmpReader::default());
            let (mut frames, mut cleaner) = (FrameCounter::default(), Cleaner::new());
            for piece in file.chunks(PIECE) {
                let _ = black_box(reader.push(piece));
                xmp.push(piece);
                frames.push(piece);
                cleaner.push(piece);
            }
            assert!(cleaner.finish().expect("few places").is_none(), "nothing is private");
            black_box((xmp.finish(), frames.is_animated()));
        });
        let copy = best(|| {
            let mut to = Vec::with_capacity(PIECE);
            for piece in file.chunks(PIECE) {
                to.clear();
                to.extend_from_slice(piece);
                black_box(&to);
            }
        });
        let micros = [header, all, copy].map(|time| time.as_micros());
        println!("{format:>5?} {:>10} {:>10} {:>10} {:>10}", file.len(), micros[0], micros[1], micros[2]);
    }
}

/// The best time of twenty runs.
fn best(job: impl Fn()) -> Duration {
    let times = (0..20).map(|_| {
        let start = Instant::now();
        job();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}
