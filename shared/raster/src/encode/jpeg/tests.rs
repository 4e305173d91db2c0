use super::*;
use crate::decode::{DecodeOptions, Decoded, decode};
use crate::picture::Picture;
use crate::testing::*;

fn ours(picture: &Picture, quality: u8) -> Vec<u8> {
    let mut writer = Writer::new(picture.size(), picture.channels(), quality);
    writer.write(picture.pixels());
    writer.finish()
}

/// By libjpeg-turbo, with tables made for the picture.
fn theirs(picture: &Picture, quality: u8) -> Vec<u8> {
    let mut compressor = turbojpeg::Compressor::new().unwrap();
    compressor.set_quality(i32::from(quality)).unwrap();
    compressor.set_subsamp(turbojpeg::Subsamp::Sub2x2).unwrap();
    compressor.set_optimize(true).unwrap();
    let image = turbojpeg::Image {
        pixels: picture.pixels(),
        width: picture.width() as usize,
        pitch: picture.stride(),
        height: picture.height() as usize,
        format: turbojpeg::PixelFormat::RGB,
    };
    compressor.compress_to_vec(image).unwrap()
}

fn read(file: &[u8]) -> Picture {
    decode(file, DecodeOptions::default()).map(Decoded::into_picture).unwrap()
}

/// What makes every coefficient large.
fn noise(width: u32, height: u32) -> Picture {
    drawn(width, height, Channels::Rgb, |x, y| {
        let mixed = (x * 7919 + y * 104_729).wrapping_mul(2_654_435_761);
        let sample = |shift: u32| if mixed >> shift & 1 == 1 { 255 } else { 0 };
        [sample(9), sample(17), sample(23), 255]
    })
}

#[test]
fn a_file_is_as_good_and_as_small_as_libjpegs() {
    // The second has blocks of nothing at its right and its bottom edge.
    for picture in [photo(403, 301), noise(130, 70), quarters(64, 64)] {
        for quality in [1, 20, 50, 85, 100] {
            let (ours, theirs) = (ours(&picture, quality), theirs(&picture, quality));
            let distance = |file: &[u8]| psnr(read(file).pixels(), picture.pixels());
            let (own, other) = (distance(&ours), distance(&theirs));
            assert!(own > other - 0.05, "quality {quality}: {own} against {other} dB");
            let most = theirs.len() * 1005 / 1000 + 8;
            assert!(ours.len() <= most, "quality {quality}: {} against {} bytes", ours.len(), theirs.len());
        }
    }
}

#[test]
fn quantisation_is_libjpegs_at_every_quality() {
    let picture = photo(16, 16);
    let tables = |file: &[u8]| -> Vec<Vec<u8>> {
        let starts = file.windows(2).enumerate().filter(|(_, pair)| *pair == [0xff, 0xdb]);
        starts.map(|(at, _)| file[at + 4..at + 69].to_vec()).collect()
    };
    for quality in 1..=100 {
        assert_eq!(tables(&ours(&picture, quality)), tables(&theirs(&picture, quality)), "quality {quality}");
    }
}

#[test]
fn every_size_up_to_two_units_and_beyond_is_written_whole() {
    for width in (1..=33).chain([63, 64, 65, 129]) {
        for height in [1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33] {
            let picture = photo(width, height);
            let read = read(&ours(&picture, 95));
            assert_eq!(read.size(), picture.size());
            let distance = psnr(read.pixels(), picture.pixels());
            assert!(distance > 38.0, "{width} × {height}: {distance} dB");
        }
    }
}

#[test]
fn rows_come_in_any_portions() {
    let picture = photo(45, 70);
    let whole = ours(&picture, 85);
    for rows in [1, 3, 15, 16, 17, 40] {
        let mut writer = Writer::new(picture.size(), Channels::Rgb, 85);
        picture.pixels().chunks(rows * picture.stride()).for_each(|rows| writer.write(rows));
        assert!(writer.finish() == whole, "{rows} at a time");
    }
    assert!(ours(&picture.clone().into_rgba(), 85) == whole, "alpha is not looked at");
}

#[test]
fn greys_stay_grey_and_extremes_are_reached() {
    for level in [0, 1, 127, 128, 254, 255] {
        let file = ours(
            &Picture::filled(Size::new(40, 24), Channels::Rgb, crate::Color { r: level, g: level, b: level, a: 255 }),
            100,
        );
        assert!(read(&file).pixels().iter().all(|sample| *sample == level), "{level}");
    }
}

#[test]
fn a_table_is_a_prefix_code_without_the_code_of_ones() {
    // Fibonacci's numbers make the deepest tree there is: forty levels, of which sixteen are allowed.
    let mut counts = vec![0u32; 256];
    (counts[0], counts[1]) = (1, 1);
    for at in 2..40 {
        counts[at] = counts[at - 1] + counts[at - 2];
    }
    let flat: Vec<u32> = vec![1; 162];
    for counts in [counts, flat, vec![7], vec![0, 0, 9, 0]] {
        let table = Table::of(&counts);
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
    let codes = Table::of(&[1, 100, 10, 1000]).codes();
    assert!(codes[3].length < codes[1].length && codes[1].length < codes[2].length);
    assert!(codes[2].length <= codes[0].length);
}
