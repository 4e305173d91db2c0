use super::*;

/// Pixels with three samples.
struct Bitmap {
    width: u16,
    height: u16,
    pixels: Vec<u8>,
}

impl Bitmap {
    fn new(width: u16, height: u16, pixel: impl Fn(u32, u32) -> [u8; 3]) -> Self {
        let places = (0..u32::from(height)).flat_map(|y| (0..u32::from(width)).map(move |x| (x, y)));
        Self { width, height, pixels: places.flat_map(|(x, y)| pixel(x, y)).collect() }
    }

    fn encoder(&self, format: PixelFormat, quality: u8) -> Encoder {
        Encoder::new(self.width, self.height, format, quality)
    }
}

fn ours(image: &Bitmap, quality: u8) -> Vec<u8> {
    let mut encoder = image.encoder(PixelFormat::Rgb, quality);
    encoder.write(&image.pixels);
    encoder.finish()
}

/// Encodes with libjpeg-turbo and optimized tables.
fn theirs(bitmap: &Bitmap, quality: u8) -> Vec<u8> {
    let mut compressor = turbojpeg::Compressor::new().unwrap();
    compressor.set_quality(i32::from(quality)).unwrap();
    compressor.set_subsamp(turbojpeg::Subsamp::Sub2x2).unwrap();
    compressor.set_optimize(true).unwrap();
    let image = turbojpeg::Image {
        pixels: bitmap.pixels.as_slice(),
        width: usize::from(bitmap.width),
        pitch: usize::from(bitmap.width) * 3,
        height: usize::from(bitmap.height),
        format: turbojpeg::PixelFormat::RGB,
    };
    compressor.compress_to_vec(image).unwrap()
}

/// The pixels of a file, decoded by libjpeg-turbo, which must have the size of `image`.
fn read(file: &[u8], bitmap: &Bitmap) -> Vec<u8> {
    let image = turbojpeg::decompress(file, turbojpeg::PixelFormat::RGB).unwrap();
    assert_eq!((image.width, image.height), (bitmap.width.into(), bitmap.height.into()));
    image.pixels
}

/// Peak signal-to-noise ratio of a file in decibels.
fn psnr(file: &[u8], image: &Bitmap) -> f64 {
    let read = read(file, image);
    let squares: f64 = read.iter().zip(&image.pixels).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
    10.0 * (255.0f64.powi(2) * read.len() as f64 / squares.max(1e-9)).log10()
}

/// Smooth waves with some texture, similar to a photo.
fn photo(width: u16, height: u16) -> Bitmap {
    Bitmap::new(width, height, |x, y| {
        let (x, y) = (f64::from(x), f64::from(y));
        let wave = |a: f64, b: f64, c: f64| {
            (127.0 + 60.0 * (x / a).sin() + 50.0 * (y / b).cos() + 12.0 * ((x + y) / c).sin()) as u8
        };
        [wave(37.0, 23.0, 3.1), wave(61.0, 47.0, 4.3), wave(29.0, 83.0, 5.7)]
    })
}

/// Four quarters in red, green, blue and white.
fn quarters(width: u16, height: u16) -> Bitmap {
    Bitmap::new(width, height, |x, y| match (x < u32::from(width) / 2, y < u32::from(height) / 2) {
        (true, true) => [255, 0, 0],
        (false, true) => [0, 255, 0],
        (true, false) => [0, 0, 255],
        (false, false) => [255, 255, 255],
    })
}

/// Noise, which makes all coefficients large.
fn noise(width: u16, height: u16) -> Bitmap {
    Bitmap::new(width, height, |x, y| {
        let mixed = (x * 7919 + y * 104_729).wrapping_mul(2_654_435_761);
        let sample = |shift: u32| if mixed >> shift & 1 == 1 { 255 } else { 0 };
        [sample(9), sample(17), sample(23)]
    })
}

#[test]
fn a_file_is_as_good_and_as_small_as_libjpegs() {
    // The second image has blocks outside of the image at its right and bottom edges.
    for image in [photo(403, 301), noise(130, 70), quarters(64, 64)] {
        for quality in [1, 20, 50, 85, 100] {
            let (ours, theirs) = (ours(&image, quality), theirs(&image, quality));
            let (own, other) = (psnr(&ours, &image), psnr(&theirs, &image));
            assert!(own > other - 0.05, "quality {quality}: {own} against {other} dB");
            let most = theirs.len() * 1005 / 1000 + 8;
            assert!(ours.len() <= most, "quality {quality}: {} against {} bytes", ours.len(), theirs.len());
        }
    }
}

#[test]
fn quantization_is_libjpegs_at_every_quality() {
    let image = photo(16, 16);
    let tables = |file: &[u8]| -> Vec<Vec<u8>> {
        let starts = file.windows(2).enumerate().filter(|(_, pair)| *pair == [0xff, 0xdb]);
        starts.map(|(at, _)| file[at + 4..at + 69].to_vec()).collect()
    };
    for quality in 1..=100 {
        assert_eq!(tables(&ours(&image, quality)), tables(&theirs(&image, quality)), "quality {quality}");
    }
}

#[test]
fn every_size_up_to_two_units_and_beyond_is_written_whole() {
    for width in (1..=33).chain([63, 64, 65, 129]) {
        for height in [1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33] {
            let image = photo(width, height);
            let distance = psnr(&ours(&image, 95), &image);
            assert!(distance > 38.0, "{width} × {height}: {distance} dB");
        }
    }
}

#[test]
fn rows_come_in_any_portions() {
    let image = photo(45, 70);
    let whole = ours(&image, 85);
    for rows in [1, 3, 15, 16, 17, 40] {
        let mut encoder = image.encoder(PixelFormat::Rgb, 85);
        image.pixels.chunks(rows * 3 * 45).for_each(|rows| encoder.write(rows));
        assert!(encoder.finish() == whole, "{rows} at a time");
    }
}

#[test]
fn the_fourth_sample_is_ignored() {
    let image = photo(45, 70);
    let mut encoder = image.encoder(PixelFormat::Rgba, 85);
    encoder.write(&image.pixels.as_chunks().0.iter().flat_map(|[r, g, b]| [*r, *g, *b, 7]).collect::<Vec<u8>>());
    assert!(encoder.finish() == ours(&image, 85));
}

#[test]
fn grays_stay_gray_and_extremes_are_reached() {
    for level in [0, 1, 127, 128, 254, 255] {
        let image = Bitmap::new(40, 24, |_, _| [level; 3]);
        assert!(read(&ours(&image, 100), &image).iter().all(|sample| *sample == level), "{level}");
    }
}

#[test]
fn a_table_is_a_prefix_code_without_the_code_of_ones() {
    // Fibonacci numbers as frequencies give the deepest tree: forty levels, of which sixteen are
    // allowed.
    let mut counts = vec![0u32; 256];
    (counts[0], counts[1]) = (1, 1);
    for at in 2..40 {
        counts[at] = counts[at - 1] + counts[at - 2];
    }
    let flat: Vec<u32> = vec![1; 162];
    for counts in [counts, flat, vec![7], vec![0, 0, 9, 0]] {
        let table = Table::from_counts(&counts);
        let codes = table.codes();
        let used: Vec<_> =
            counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(at, _)| codes[at]).collect();
        assert_eq!(used.len(), table.symbols.len());
        for (at, code) in used.iter().enumerate() {
            assert!((1..=16).contains(&code.length) && u32::from(code.bits) + 1 < 1 << code.length, "no code of ones");
            for other in &used[at + 1..] {
                let length = code.length.min(other.length);
                assert_ne!(code.bits >> (code.length - length), other.bits >> (other.length - length));
            }
        }
    }
}

#[test]
fn frequent_symbols_have_short_codes() {
    let codes = Table::from_counts(&[1, 100, 10, 1000]).codes();
    assert!(codes[3].length < codes[1].length && codes[1].length < codes[2].length);
    assert!(codes[2].length <= codes[0].length);
}
