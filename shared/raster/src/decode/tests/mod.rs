mod profiles;

use std::error::Error as _;

use moxcms::ColorProfile;
use proptest::prelude::*;

use self::profiles::cmyk_profile;
use super::*;
use crate::bitmap::Channels;
use crate::color::Color;
use crate::format::OutputFormat;
use crate::header::probe;
use crate::resize::{Plan, decode_resized};
use crate::testing::*;

fn full(bytes: &[u8]) -> Result<Bitmap, DecodeError> {
    decode(bytes)
}

/// The image as it is stored.
fn stored(bytes: &[u8]) -> Result<Bitmap, DecodeError> {
    decode_stored(bytes, &probe(bytes)?)
}

fn close(image: &Bitmap, x: u32, y: u32, expected: [u8; 4], tolerance: u8) {
    let actual = image.pixel(x, y).unwrap();
    let far = actual.iter().zip(expected).any(|(a, b)| a.abs_diff(b) > tolerance);
    assert!(!far, "pixel {x}, {y} is {actual:?}, not {expected:?}");
}

fn transparent_photo() -> Bitmap {
    drawn(24, 18, Channels::Rgba, |x, y| [(x * 10) as u8, (y * 12) as u8, 77, (x * 11) as u8])
}

#[test]
fn png_of_every_colour_type_and_depth_is_read() {
    let one = |depth, color, chunks: &[Vec<u8>], rows: &[u8]| {
        full(&png_file(ihdr(2, 1, depth, color, false), chunks, rows)).unwrap()
    };
    // Gray with 1, 2, 4, 8 and 16 bits.
    assert_eq!(one(1, 0, &[], &[0, 0b0100_0000]).pixels(), [0, 0, 0, 255, 255, 255]);
    assert_eq!(one(2, 0, &[], &[0, 0b0111_0000]).pixels(), [85, 85, 85, 255, 255, 255]);
    assert_eq!(one(4, 0, &[], &[0, 0x3f]).pixels(), [51, 51, 51, 255, 255, 255]);
    assert_eq!(one(8, 0, &[], &[0, 7, 200]).pixels(), [7, 7, 7, 200, 200, 200]);
    assert_eq!(one(16, 0, &[], &[0, 0x01, 0x01, 0xff, 0x00]).pixels(), [1, 1, 1, 254, 254, 254]);
    // Gray with alpha, and gray with one transparent value.
    assert_eq!(one(8, 4, &[], &[0, 7, 9, 200, 255]).pixels(), [7, 7, 7, 9, 200, 200, 200, 255]);
    let transparent = png_chunk(b"tRNS", &[0, 7]);
    assert_eq!(one(8, 0, &[transparent], &[0, 7, 8]).pixels(), [7, 7, 7, 0, 8, 8, 8, 255]);
    // RGB with 8 and 16 bits and a transparent color, and RGBA.
    assert_eq!(one(8, 2, &[], &[0, 1, 2, 3, 4, 5, 6]).pixels(), [1, 2, 3, 4, 5, 6]);
    let transparent = png_chunk(b"tRNS", &[0, 1, 0, 2, 0, 3]);
    assert_eq!(one(8, 2, &[transparent], &[0, 1, 2, 3, 4, 5, 6]).pixels(), [1, 2, 3, 0, 4, 5, 6, 255]);
    assert_eq!(one(8, 6, &[], &[0, 1, 2, 3, 4, 5, 6, 7, 8]).pixels(), [1, 2, 3, 4, 5, 6, 7, 8]);
    // Palettes, one of them with alpha.
    let palette = png_chunk(b"PLTE", &[9, 8, 7, 6, 5, 4]);
    assert_eq!(one(8, 3, std::slice::from_ref(&palette), &[0, 1, 0]).pixels(), [6, 5, 4, 9, 8, 7]);
    let alpha = png_chunk(b"tRNS", &[128]);
    assert_eq!(one(1, 3, &[palette, alpha], &[0, 0b0100_0000]).pixels(), [9, 8, 7, 128, 6, 5, 4, 255]);
}

#[test]
fn sixteen_bits_are_rounded_to_eight_interlaced_or_not() {
    // 0x0180 is 384, which is nearer to 257 than to 514. 0x0181 is 385, the first value nearer to
    // 514.
    let rows = [0, 0x01, 0x80, 0x01, 0x81, 0xff, 0x7f, 0, 0, 0, 0xff, 0, 0];
    let expected = [1, 1, 255, 0, 1, 0];
    for interlaced in [false, true] {
        let header = ihdr(2, 1, 16, 2, interlaced);
        // Adam7 with two pixels in a row: the first is in pass 1, the second in pass 6.
        let rows = if interlaced { [&rows[..7], &[0], &rows[7..]].concat() } else { rows.to_vec() };
        assert_eq!(full(&png_file(header, &[], &rows)).unwrap().pixels(), expected, "interlaced: {interlaced}");
    }
}

#[test]
fn interlaced_png_is_put_together() {
    // Adam7 with 3 × 3 gray pixels numbered from 1: passes 1, 4 (column 2 of row 0), 5 (row 2), 6
    // (column 1), 7 (row 1).
    let rows = [0, 1, 0, 3, 0, 7, 9, 0, 2, 0, 8, 0, 4, 5, 6];
    let image = full(&png_file(ihdr(3, 3, 8, 0, true), &[], &rows)).unwrap();
    let greys: Vec<u8> = image.pixels().iter().step_by(3).copied().collect();
    assert_eq!(greys, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn png_round_trips_exactly() {
    for image in [photo(33, 17), transparent_photo()] {
        assert_eq!(full(&written(&image, OutputFormat::Png, 80)).unwrap(), image);
    }
}

#[test]
fn jpeg_of_every_kind_is_read() {
    let source = photo(61, 43);
    for progressive in [false, true] {
        for subsamp in [turbojpeg::Subsamp::None, turbojpeg::Subsamp::Sub2x2, turbojpeg::Subsamp::Sub2x1] {
            let image = full(&jpeg(&source, &Jpeg { progressive, subsamp, quality: 95 })).unwrap();
            assert_eq!((image.size(), image.channels()), (source.size(), Channels::Rgb));
            let quality = psnr(image.pixels(), source.pixels());
            assert!(quality > 30.0, "{quality} dB, progressive: {progressive}, {subsamp:?}");
        }
    }
    let grey = drawn(16, 16, Channels::Rgb, |x, _| [(x * 16) as u8; 4]);
    let image = full(&jpeg(&grey, &Jpeg { subsamp: turbojpeg::Subsamp::Gray, ..Jpeg::default() })).unwrap();
    assert_eq!(image.channels(), Channels::Rgb);
    assert!(psnr(image.pixels(), grey.pixels()) > 35.0);
}

#[test]
fn ink_is_turned_to_light_with_and_without_the_adobe_marker() {
    use turbojpeg::Colorspace::{CMYK, YCCK};
    // Stored inverted, as Adobe does: full cyan ink and a fifth of black.
    for colorspace in [CMYK, YCCK] {
        let file = cmyk_jpeg(16, 16, [0, 255, 255, 204], colorspace);
        close(&full(&file).unwrap(), 8, 8, [0, 204, 204, 255], 2);
    }
    // Without the marker, they are inverted as well. The colors are those of Pillow and browsers.
    for (stored, color) in
        [([0, 255, 255, 204], [0, 204, 204, 255]), ([255, 0, 255, 255], [255, 0, 255, 255]), ([255; 4], [255; 4])]
    {
        let file = cmyk_jpeg(16, 16, stored, CMYK);
        let adobe = marker(&file, 0xee);
        let length = 2 + usize::from(u16::from_be_bytes([file[adobe + 2], file[adobe + 3]]));
        let unmarked = [&file[..adobe], &file[adobe + length..]].concat();
        close(&full(&unmarked).unwrap(), 8, 8, color, 2);
        let rect = Rect { x: 3, y: 9, size: Size::new(4, 2) };
        close(&decode_part(&unmarked, rect).unwrap(), 1, 1, color, 2);
    }
}

#[test]
fn webp_is_read_lossy_lossless_and_with_alpha() {
    let source = photo(61, 43);
    let image = full(&written(&source, OutputFormat::Webp, 95)).unwrap();
    assert_eq!(image.channels(), Channels::Rgb);
    assert!(psnr(image.pixels(), source.pixels()) > 30.0);
    let source = transparent_photo();
    let image = full(&written(&source, OutputFormat::Webp, 90)).unwrap();
    assert_eq!(image.channels(), Channels::Rgba);
    for (x, y) in [(0, 0), (5, 9), (23, 17)] {
        assert_eq!(image.pixel(x, y).unwrap()[3], source.pixel(x, y).unwrap()[3], "alpha is stored without loss");
    }
    let opaque = photo(19, 7);
    assert_eq!(full(&lossless_webp(&opaque)).unwrap(), opaque);
}

fn lossless_webp(image: &Bitmap) -> Vec<u8> {
    let mut bytes = std::ptr::null_mut();
    let (width, height, stride) = (image.width() as i32, image.height() as i32, image.stride() as i32);
    // SAFETY: the buffer contains the given rows. The result is copied and then freed once.
    unsafe {
        let length = libwebp_sys::WebPEncodeLosslessRGB(image.pixels().as_ptr(), width, height, stride, &raw mut bytes);
        let file = std::slice::from_raw_parts(bytes, length).to_vec();
        libwebp_sys::WebPFree(bytes.cast());
        file
    }
}

/// An animation whose first frame has 8 × 6 pixels at column 4 of row 2.
fn animated_webp(frame: &Bitmap, canvas: (u32, u32)) -> Vec<u8> {
    let mut data = vec![2, 0, 0, 1, 0, 0];
    data.extend(&(frame.width() - 1).to_le_bytes()[..3]);
    data.extend(&(frame.height() - 1).to_le_bytes()[..3]);
    data.extend([100, 0, 0, 0]);
    data.extend(webp_chunks(&written(frame, OutputFormat::Webp, 90)));
    let second =
        riff_chunk(b"ANMF", &[vec![0; 16], webp_chunks(&written(&photo(3, 3), OutputFormat::Webp, 50))].concat());
    riff(&[vp8x(2, canvas.0, canvas.1), riff_chunk(b"ANIM", &[0; 6]), riff_chunk(b"ANMF", &data), second])
}

#[test]
fn the_first_frame_of_an_animated_webp_lies_on_its_canvas() {
    for frame in [quarters(8, 6), quarters(8, 6).into_rgba()] {
        let image = full(&animated_webp(&frame, (16, 12))).unwrap();
        assert_eq!((image.size(), image.channels()), (Size::new(16, 12), Channels::Rgba));
        assert_eq!(image.pixel(3, 2).unwrap()[3], 0);
        assert_eq!(image.pixel(4, 1).unwrap()[3], 0);
        assert_eq!(image.pixel(12, 2).unwrap()[3], 0);
        assert_eq!(image.pixel(4, 8).unwrap()[3], 0);
        close(&image, 11, 7, [255, 255, 255, 255], 12);
        assert_eq!(image.pixel(4, 2).unwrap()[3], 255);
    }
    let outside = animated_webp(&quarters(8, 6), (11, 12));
    assert!(matches!(full(&outside), Err(DecodeError::SizeMismatch)));
    // The size that the frame declares is that of its image, for which memory is reserved.
    let mut other = animated_webp(&quarters(8, 6), (16, 12));
    let frame = other.windows(4).position(|bytes| bytes == b"ANMF").unwrap() + 8;
    other[frame + 6..frame + 9].copy_from_slice(&[8, 0, 0]);
    assert!(matches!(full(&other), Err(DecodeError::SizeMismatch)));
}

#[test]
fn a_frame_of_a_gif_is_not_much_larger_than_its_screen() {
    let of =
        |width: u16, height: u16| gif((2, 2), (0, 0, width, height), vec![0; width as usize * height as usize], None);
    assert_eq!(full(&of(1024, 1024)).unwrap().size(), Size::new(2, 2));
    assert!(matches!(full(&of(1024, 1025)), Err(DecodeError::SizeMismatch)));
}

#[test]
fn the_first_frame_of_a_gif_lies_on_its_transparent_screen() {
    let image = full(&gif((5, 4), (1, 2, 2, 1), vec![0, 2], None)).unwrap();
    let expected = drawn(5, 4, Channels::Rgba, |x, y| match (x, y) {
        (1, 2) => [255, 0, 0, 255],
        (2, 2) => [0, 0, 255, 255],
        _ => [0; 4],
    });
    assert_eq!(image, expected);
    let clipped = full(&gif((2, 2), (1, 1, 3, 3), vec![0, 1, 2, 1, 1, 1, 1, 1, 1], None)).unwrap();
    assert_eq!(clipped.pixel(1, 1), Some([255, 0, 0, 255]));
    assert_eq!(clipped.pixel(0, 1), Some([0; 4]));
    let off_screen = full(&gif((2, 2), (5, 5, 1, 1), vec![0], None)).unwrap();
    assert!(off_screen.pixels().iter().all(|sample| *sample == 0));
}

#[test]
fn a_gif_has_alpha_only_where_something_is_transparent() {
    let opaque = full(&gif((2, 1), (0, 0, 2, 1), vec![0, 1], None)).unwrap();
    assert_eq!((opaque.channels(), opaque.pixels()), (Channels::Rgb, &[255, 0, 0, 0, 255, 0][..]));
    let transparent = full(&gif((2, 1), (0, 0, 2, 1), vec![0, 1], Some(1))).unwrap();
    assert_eq!((transparent.channels(), transparent.pixels()), (Channels::Rgba, &[255, 0, 0, 255, 0, 0, 0, 0][..]));
    let unused = full(&gif((2, 1), (0, 0, 2, 1), vec![0, 1], Some(3))).unwrap();
    assert_eq!(unused.channels(), Channels::Rgb);
}

#[test]
fn exif_orientation_is_applied_in_every_format_that_has_it() {
    let source = quarters(32, 16);
    let webp = written(&source, OutputFormat::Webp, 95);
    for value in 1..=8 {
        let expected = Orientation::from_exif(u32::from(value)).unwrap().apply(source.clone());
        let files = [
            with_exif(&jpeg(&source, &Jpeg::default()), value),
            png_with(&source, &[png_chunk(b"eXIf", &exif_block(value, false))]),
            riff(&[vp8x(8, 32, 16), webp_chunks(&webp), riff_chunk(b"EXIF", &exif_block(value, true))]),
        ];
        for file in files {
            let image = full(&file).unwrap();
            assert_eq!(image.size(), expected.size());
            assert_eq!(probe(&file).unwrap().size(), expected.size());
            let (right, bottom) = (image.width() - 3, image.height() - 3);
            for (x, y) in [(2, 2), (right, 2), (2, bottom), (right, bottom)] {
                close(&image, x, y, expected.pixel(x, y).unwrap(), 20);
            }
        }
    }
}

#[test]
fn a_jpeg_of_hundreds_of_scans_is_refused() {
    let file = jpeg(&photo(16, 16), &Jpeg { progressive: true, ..Jpeg::default() });
    let scan = file.windows(2).rposition(|pair| pair == [0xff, 0xda]).unwrap();
    let (front, end) = file.split_at(file.len() - 2);
    let with = |scans: usize| [front, &front[scan..].repeat(scans), end].concat();
    let before = file.windows(2).filter(|pair| *pair == [0xff, 0xda]).count();
    assert!(jpeg_segments::parse(&with(MAX_SCANS as usize - before)).is_ok());
    assert!(matches!(full(&with(MAX_SCANS as usize - before + 1)), Err(DecodeError::TooManyScans)));
    assert!(matches!(full(&with(600)), Err(DecodeError::TooManyScans)));
}

#[test]
fn a_small_file_that_claims_giant_sides_is_refused_without_its_pixels() {
    for (width, height) in [(30_001, 1), (10_000, 10_001), (u32::MAX, 1)] {
        let file = png_file(ihdr(width, height, 8, 6, false), &[], &[0; 64]);
        assert!(matches!(full(&file), Err(DecodeError::Header(_))));
    }
    let mut gif = gif((4, 4), (0, 0, 4, 4), vec![0; 16], None);
    let frame = gif.windows(5).position(|bytes| bytes == [0x2c, 0, 0, 0, 0]).unwrap();
    for (width, height) in [(30_001u16, 1u16), (20_000, 5_001), (65_535, 65_535), (0, 4)] {
        gif[frame + 5..frame + 7].copy_from_slice(&width.to_le_bytes());
        gif[frame + 7..frame + 9].copy_from_slice(&height.to_le_bytes());
        assert!(matches!(full(&gif), Err(DecodeError::Header(_))), "a frame of {width} × {height} on a small screen");
    }
}

/// A small valid file for each decoder or path through one.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let source = photo(17, 11);
    let webp = written(&source, OutputFormat::Webp, 80);
    let profile = ColorProfile::new_display_p3().encode().unwrap();
    vec![
        ("png", written(&source, OutputFormat::Png, 80)),
        ("png with profile", png_with(&photo(5, 3), &[iccp(&profile)])),
        ("interlaced png", png_file(ihdr(3, 3, 8, 0, true), &[], &[0, 1, 0, 3, 0, 7, 9, 0, 2, 0, 8, 0, 4, 5, 6])),
        ("jpeg", jpeg(&source, &Jpeg::default())),
        ("progressive jpeg", jpeg(&source, &Jpeg { progressive: true, ..Jpeg::default() })),
        ("cmyk jpeg", cmyk_jpeg(9, 9, [9, 99, 199, 50], turbojpeg::Colorspace::YCCK)),
        ("webp", webp.clone()),
        ("lossless webp", lossless_webp(&source)),
        ("webp with exif", riff(&[vp8x(8, 17, 11), webp_chunks(&webp), riff_chunk(b"EXIF", &exif_block(6, false))])),
        ("animated webp", animated_webp(&quarters(8, 6), (16, 12))),
        ("gif", gif((17, 11), (0, 0, 17, 11), (0..17 * 11).map(|n| (n % 4) as u8).collect(), Some(2))),
    ]
}

/// The number of bytes after which a file contains its whole image.
fn needed(name: &str, file: &[u8]) -> usize {
    let after_chunk = |name: &[u8; 4]| {
        let at = file.windows(4).position(|window| window == name)?;
        Some(at + 8 + u32::from_le_bytes(file[at + 4..at + 8].try_into().unwrap()) as usize)
    };
    match name.rsplit(' ').next() {
        // An end marker or a trailer says nothing about the image.
        Some("jpeg") => file.len() - 2,
        Some("gif") => file.len() - 1,
        _ if name.contains("webp") => [b"ANMF", b"VP8L", b"VP8 "].into_iter().find_map(after_chunk).unwrap(),
        _ => file.len(),
    }
}

#[test]
fn a_file_cut_anywhere_is_an_error_or_the_whole_image_and_never_half_of_it() {
    for (name, file) in files() {
        let whole = stored(&file).unwrap();
        for length in 0..file.len() {
            let cut = stored(&file[..length]);
            if length < needed(name, &file) {
                assert!(cut.is_err(), "{name} cut to {length} of {}", file.len());
            } else {
                assert_eq!(cut.unwrap(), whole, "{name} cut to {length} of {}", file.len());
            }
        }
    }
}

/// The position of the first marker with this code that begins a segment.
fn marker(jpeg: &[u8], code: u8) -> usize {
    let mut at = 2;
    while jpeg[at + 1] != code {
        at += 2 + usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]]));
    }
    at
}

#[test]
fn what_a_jpeg_states_beside_its_samples_does_not_matter() {
    let file = jpeg(&photo(61, 43), &Jpeg { subsamp: turbojpeg::Subsamp::Sub2x2, ..Jpeg::default() });
    let expected = full(&file).unwrap();
    let parameters = |first: u8, last: u8, bits: u8| {
        let mut file = file.clone();
        let scan = marker(&file, 0xda);
        file[scan + 11..scan + 14].copy_from_slice(&[first, last, bits]);
        file
    };
    let mut version = file.clone();
    version[marker(&file, 0xe0) + 9] = 7;
    let adobe = |transform| {
        let without = [&file[..2], &file[marker(&file, 0xdb)..]].concat();
        with_segment(&without, 0xee, &[b"Adobe\0\x64\0\0\0\0", &[transform][..]].concat())
    };
    for (kind, odd) in [
        ("a scan from 0 to 0", parameters(0, 0, 0)),
        ("a scan from 1 to 5 with bits", parameters(1, 5, 0x21)),
        ("a scan to 255", parameters(0, 255, 0)),
        ("an unknown version", version),
        ("a known transform", adobe(1)),
        ("an unknown transform", adobe(3)),
        ("an unknown transform", adobe(200)),
    ] {
        assert_eq!(full(&odd).unwrap(), expected, "{kind}");
        assert_eq!(full(&odd[..odd.len() - 2]).unwrap(), expected, "{kind}, without an end marker");
        let small = |file: &[u8]| decode_resized(file, &Plan::whole(Size::new(7, 5)), Color::WHITE).unwrap();
        assert_eq!(small(&odd), small(&file), "{kind}, reduced");
        let rect = Rect { x: 30, y: 20, size: Size::new(9, 8) };
        assert_eq!(decode_part(&odd, rect).unwrap(), expected.clone().cropped(rect), "{kind}, in part");
    }
    let inks = cmyk_jpeg(16, 16, [0, 255, 255, 204], turbojpeg::Colorspace::YCCK);
    let mut odd = inks.clone();
    let transform = marker(&odd, 0xee) + 15;
    assert_eq!(odd[transform], 2);
    odd[transform] = 77;
    assert_eq!(full(&odd).unwrap(), full(&inks).unwrap());
}

#[test]
fn bytes_between_the_segments_of_a_jpeg_are_passed_over() {
    for options in [Jpeg::default(), Jpeg { progressive: true, ..Jpeg::default() }] {
        let file = jpeg(&photo(21, 13), &options);
        let expected = full(&file).unwrap();
        let frame = if options.progressive { 0xc2 } else { 0xc0 };
        for at in [marker(&file, 0xdb), marker(&file, frame), marker(&file, 0xda), file.len() - 2] {
            for bytes in [&b"\0"[..], b"pad pad", b"\0\xff\0\0", b"\xff\xff"] {
                let odd = [&file[..at], bytes, &file[at..]].concat();
                assert_eq!(full(&odd).unwrap(), expected, "{bytes:?} at {at}");
            }
        }
    }
}

#[test]
fn damage_within_the_intervals_of_a_scan_is_refused() {
    let blocks = [20, 90, 160, 230].map(grey_block);
    let file = |between: [&[u8]; 3], end: &[u8]| {
        let [a, b, c, d] = &blocks;
        grey_jpeg(1, Size::new(32, 8), 1, &[a, between[0], b, between[1], c, between[2], d, end].concat())
    };
    let restarts: [&[u8]; 3] = [b"\xff\xd0", b"\xff\xd1", b"\xff\xd2"];
    let image = full(&file(restarts, b"\xff\xd9")).unwrap();
    for (x, grey) in [(4, 20), (12, 90), (20, 160), (28, 230)] {
        close(&image, x, 4, [grey, grey, grey, 255], 2);
    }
    // The whole scan is there: what follows does not matter.
    for end in [&b""[..], b"\xff", b"pad", b"pad\xff\xd9", b"\xff\xd3\xff\xd9", b"\xff\xd9 and more"] {
        assert_eq!(full(&file(restarts, end)).unwrap(), image, "{end:?}");
    }
    let [first, _, third] = restarts;
    for (kind, between) in [
        ("an interval is missing", [first, third, b"\xff\xd3"]),
        ("a marker is missing", [first, b"", third]),
        ("a marker of another number", [first, b"\xff\xd6", third]),
        ("more bytes before a marker than the decoder reads ahead", [first, b"twenty bytes that pad\xff\xd1", third]),
        ("an end within the scan", [first, b"\xff\xd9", third]),
        ("another segment within the scan", [first, b"\xff\xfe\0\x04ab", third]),
    ] {
        assert!(matches!(full(&file(between, b"\xff\xd9")), Err(DecodeError::Jpeg(_))), "{kind}");
    }
    assert!(full(&file([first, b"\xff\x02", third], b"\xff\xd9")).is_err(), "an unknown marker within the scan");
    assert!(full(&file(restarts, b"twenty bytes that pad\xff\xd3")).is_err(), "an interval too many");
    let whole = file(restarts, b"");
    for length in 0..whole.len() {
        assert!(full(&whole[..length]).is_err(), "cut to {length}");
    }
    let codes = grey_jpeg(1, Size::new(8, 8), 0, &[&[0xff, 0].repeat(20)[..], b"\xff\xd9"].concat());
    assert!(matches!(full(&codes), Err(DecodeError::Jpeg(_))), "codes that are none");
    let marker = grey_jpeg(1, Size::new(16, 8), 0, &[&blocks[0], &b"\xff\xd0"[..], &blocks[1], b"\xff\xd9"].concat());
    assert!(matches!(full(&marker), Err(DecodeError::Jpeg(_))), "a restart marker in a scan without intervals");
}

#[test]
fn a_jpeg_without_an_end_marker_has_a_scan_of_each_component() {
    let scans = [(1, 120), (2, 60), (3, 200)]
        .map(|(component, value)| [&[0xff, 0xda, 0, 8, 1, component, 0, 0, 63, 0][..], &grey_block(value)].concat());
    let file = grey_jpeg(3, Size::new(8, 8), 0, &scans.concat());
    let image = full(&file).unwrap();
    // From (120, 60, 200) in YCbCr.
    close(&image, 4, 4, [221, 92, 0, 255], 3);
    assert_eq!(full(&[&file[..], b"\xff\xd9"].concat()).unwrap(), image);
    assert!(matches!(full(&file[..file.len() - scans[2].len()]), Err(DecodeError::CutShort)));
}

/// The position of the checksum of the first chunk with this name.
fn checksum_of(file: &[u8], name: &[u8; 4]) -> usize {
    let data = 4 + file.windows(4).position(|window| window == name).unwrap();
    data + u32::from_be_bytes(file[data - 8..data - 4].try_into().unwrap()) as usize
}

#[test]
fn a_wrong_checksum_of_a_chunk_that_the_pixels_need_is_refused() {
    let palette = png_chunk(b"PLTE", &[9, 8, 7, 6, 5, 4]);
    let wide = [0, 0x01, 0x80, 0x01, 0x81, 0xff, 0x7f, 0, 0, 0, 0xff, 0, 0];
    for (kind, file) in [
        ("palette", png_file(ihdr(2, 1, 8, 3, false), &[palette], &[0, 1, 0])),
        ("8 bits", png_with(&photo(9, 7), &[])),
        ("16 bits", png_file(ihdr(2, 1, 16, 2, false), &[], &wide)),
        ("interlaced", png_file(ihdr(3, 3, 8, 0, true), &[], &[0, 1, 0, 3, 0, 7, 9, 0, 2, 0, 8, 0, 4, 5, 6])),
    ] {
        assert!(full(&file).is_ok(), "{kind}");
        for name in [b"IHDR", b"PLTE", b"IDAT", b"IEND"] {
            if name == b"PLTE" && kind != "palette" {
                continue;
            }
            for byte in 0..4 {
                let mut wrong = file.clone();
                wrong[checksum_of(&file, name) + byte] ^= 1;
                assert!(full(&wrong).is_err(), "{} of {kind}, byte {byte} of the checksum", name.escape_ascii());
            }
        }
    }
}

#[test]
fn a_wrong_checksum_of_a_chunk_beside_the_pixels_does_not_matter() {
    let file = png_with(&photo(9, 7), &[png_chunk(b"tIME", &[7, 0xea, 1, 2, 3, 4, 5])]);
    let mut wrong = file.clone();
    wrong[checksum_of(&file, b"tIME")] ^= 1;
    assert_eq!(full(&wrong).unwrap(), full(&file).unwrap());
}

#[test]
fn what_follows_the_first_frame_does_not_matter() {
    let noise = b"\xff\xff\xff\xff chunks and blocks that are none";
    for (name, file) in files() {
        if name.contains("webp") || name == "gif" {
            let expected = stored(&file).unwrap();
            let mut odd = [&file[..needed(name, &file)], noise].concat();
            assert_eq!(stored(&odd).unwrap(), expected, "{name}");
            if name.contains("webp") {
                let length = odd.len() as u32 - 8;
                odd[4..8].copy_from_slice(&length.to_le_bytes());
                assert_eq!(stored(&odd).unwrap(), expected, "{name}");
            }
        }
    }
}

#[test]
fn an_animated_png_is_its_still_image_whatever_follows() {
    let control = |sequence: u32| {
        let numbers = [sequence, 9, 7, 0, 0].map(u32::to_be_bytes).concat();
        png_chunk(b"fcTL", &[&numbers[..], &[0, 1, 0, 10, 0, 0]].concat())
    };
    let frames = png_chunk(b"acTL", &[0, 0, 0, 2, 0, 0, 0, 0]);
    let image = photo(9, 7);
    for chunks in [vec![frames.clone(), control(0)], vec![frames]] {
        let file = png_with(&image, &chunks);
        let still = &file[..file.len() - 12];
        let end = &file[file.len() - 12..];
        for (kind, rest) in [
            ("nothing", vec![]),
            ("the end", end.to_vec()),
            ("a frame that is cut off", control(1)),
            ("a wrong sequence", [&control(7), &png_chunk(b"fdAT", &[0, 0, 0, 3, 1, 2, 3]), end].concat()),
            ("a frame without control", [&png_chunk(b"fdAT", &[0, 0, 0, 1, 1, 2, 3]), end].concat()),
            ("a wrong checksum", [&control(1)[..control(1).len() - 1], b"?", end].concat()),
            ("no chunks", b"\xff\xff\xff\xff noise".to_vec()),
        ] {
            assert_eq!(full(&[still, &rest].concat()).unwrap(), image, "{kind}");
        }
        for length in 0..still.len() {
            assert!(full(&file[..length]).is_err(), "cut to {length} of {}", still.len());
        }
        let mut wrong = file.clone();
        wrong[checksum_of(&file, b"IDAT")] ^= 1;
        assert!(full(&wrong).is_err());
    }
}

#[test]
fn nul_bytes_between_the_blocks_of_a_gif_are_skipped() {
    let file = gif((3, 2), (1, 0, 2, 2), vec![0, 1, 2, 3], Some(2));
    let expected = full(&file).unwrap();
    let tables = 13 + 12;
    let control = file.windows(3).position(|bytes| bytes == [0x21, 0xf9, 4]).unwrap();
    let image = file.windows(5).position(|bytes| bytes == [0x2c, 1, 0, 0, 0]).unwrap();
    for at in [tables, control, image, file.len() - 1, file.len()] {
        for count in [1, 2, 300] {
            let odd = [&file[..at], &vec![0; count], &file[at..]].concat();
            assert_eq!(full(&odd).unwrap(), expected, "{count} at {at}");
        }
    }
    assert!(full(&[&file[..image], b"\0\0;"].concat()).is_err(), "no frame");
}

#[test]
fn what_follows_the_end_of_a_file_does_not_matter() {
    for (name, file) in files() {
        let followed = [&file[..], b"trailing bytes \xff\xd8\xff\xda"].concat();
        assert_eq!(full(&followed).unwrap(), full(&file).unwrap(), "{name}");
    }
}

#[test]
fn messages_do_not_repeat_their_source() {
    let file = written(&photo(17, 11), OutputFormat::Png, 80);
    let error = full(&file[..file.len() - 20]).unwrap_err();
    assert_eq!(error.to_string(), "the PNG data is broken or cut short");
    assert!(!error.to_string().contains(&error.source().unwrap().to_string()));
    let error = full(b"").unwrap_err();
    assert_eq!(error.to_string(), "the file is not a PNG, JPEG, WebP or GIF image");
    assert!(error.source().is_none());
}

#[test]
fn the_alpha_channel_is_known_to_be_idle() {
    let opaque = Bitmap::filled(Size::new(9, 9), Channels::Rgba, Color::WHITE);
    let decoded = decode(&png_with(&opaque, &[])).unwrap();
    assert!(decoded.is_opaque());
    let decoded = decode(&png_with(&transparent_photo(), &[])).unwrap();
    assert!(!decoded.is_opaque());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn mutated_files_never_panic(
        file in 0usize..11,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        (width, height) in (1u32..20, 1u32..20),
    ) {
        let mut bytes = files().swap_remove(file).1;
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(decoded) = decode(&bytes) {
            prop_assert_eq!(decoded.size(), probe(&bytes).unwrap().size());
        }
        let size = Size::new(width, height);
        if let Ok(resized) = decode_resized(&bytes, &Plan::whole(size), Color::WHITE) {
            prop_assert_eq!(resized.size(), size);
        }
    }

    #[test]
    fn mutated_profiles_never_panic(
        grey in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        length in any::<prop::sample::Index>(),
    ) {
        let profile = if grey { ColorProfile::new_gray_with_gamma(1.8) } else { ColorProfile::new_adobe_rgb() };
        let mut profile = profile.encode().unwrap();
        for (at, value) in changes {
            let at = at.index(profile.len());
            profile[at] = value;
        }
        let cut = profile.len() - length.index(profile.len()) / 8;
        let chunk = iccp(&profile[..cut]);
        let file = if grey {
            png_file(ihdr(2, 1, 8, 0, false), &[chunk], &[0, 1, 2])
        } else {
            png_with(&photo(2, 2), &[chunk])
        };
        prop_assert!(full(&file).is_ok());
    }

    #[test]
    fn mutated_ink_profiles_never_panic(
        changes in prop::collection::vec((0usize..220, any::<u8>()), 1..6),
        cut in 0usize..1300,
    ) {
        let mut profile = cmyk_profile(|c, m, y, k| [255 - 60 * (c + m + y + k), 128, 128]);
        for (at, value) in changes {
            profile[at] = value;
        }
        profile.truncate(profile.len().saturating_sub(cut).max(1));
        let icc = [b"ICC_PROFILE\0\x01\x01", &profile[..]].concat();
        let file = with_segment(&cmyk_jpeg(8, 8, [3, 60, 90, 200], turbojpeg::Colorspace::CMYK), 0xe2, &icc);
        prop_assert!(full(&file).is_ok());
    }
}
