use proptest::prelude::*;

use super::*;
use crate::bitmap::{Bitmap, Channels};
use crate::format::OutputFormat;
use crate::testing::*;

fn small() -> Bitmap {
    photo(21, 13)
}

/// A valid file for each path through the reader.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let webp = written(&small(), OutputFormat::Webp, 80);
    vec![
        ("png", written(&small(), OutputFormat::Png, 80)),
        ("png with exif", png_with(&small(), &[png_chunk(b"eXIf", &exif_block(6, true))])),
        ("png with code points and exif", {
            let code_points = png_chunk(b"cICP", &[12, 13, 0, 1]);
            png_with(&small(), &[code_points, png_chunk(b"eXIf", &exif_block(8, true))])
        }),
        ("jpeg", jpeg(&small(), &Jpeg::default())),
        ("progressive jpeg", jpeg(&small(), &Jpeg { progressive: true, ..Jpeg::default() })),
        ("jpeg with bytes between segments", {
            let file = with_exif(&jpeg(&small(), &Jpeg::default()), 1);
            [&file[..2], b"\xff\xe2\0\x02\0pad\xff\0pad", &file[2..]].concat()
        }),
        ("jpeg with exif", with_exif(&jpeg(&small(), &Jpeg::default()), 8)),
        ("webp", webp.clone()),
        ("webp with exif", riff(&[vp8x(8, 21, 13), webp_chunks(&webp), riff_chunk(b"EXIF", &exif_block(6, false))])),
        ("gif", gif((21, 13), (0, 0, 21, 13), vec![1; 21 * 13], None)),
    ]
}

fn feed(bytes: &[u8], chunk: usize) -> Result<Header, HeaderError> {
    let mut reader = HeaderReader::new();
    for part in bytes.chunks(chunk) {
        reader.push(part)?;
        assert!(reader.kept.len() <= MAX_KEPT_BYTES);
    }
    reader.finish()
}

#[test]
fn every_format_is_read_with_its_displayed_size() {
    for (name, file) in files() {
        let header = probe(&file).unwrap();
        let turned = name.contains("exif");
        assert_eq!((header.width, header.height), if turned { (13, 21) } else { (21, 13) }, "{name}");
        assert_eq!(header.stored_size(), Size::new(21, 13), "{name}");
        assert!(name.contains(header.format.extension()) || header.format == Format::Jpeg, "{name}");
    }
}

#[test]
fn byte_by_byte_and_all_at_once_agree_on_every_prefix() {
    for (name, file) in files() {
        for length in 0..=file.len() {
            let prefix = &file[..length];
            let whole = probe(prefix);
            for chunk in [1, 2, 7, 64] {
                assert_eq!(feed(prefix, chunk), whole, "{name} cut to {length}, in chunks of {chunk}");
            }
        }
    }
}

#[test]
fn a_prefix_is_truncated_or_says_what_the_whole_says_but_for_the_orientation() {
    for (name, file) in files() {
        let whole = probe(&file).unwrap();
        for length in 0..file.len() {
            match probe(&file[..length]) {
                Ok(header) => assert_eq!(header.stored_size(), whole.stored_size(), "{name} cut to {length}"),
                Err(error) => assert!(
                    error == HeaderError::Truncated || (length < 12 && error == HeaderError::UnknownFormat),
                    "{name} cut to {length}: {error}"
                ),
            }
        }
    }
}

#[test]
fn the_format_is_known_after_twelve_bytes() {
    for (name, file) in files() {
        let mut reader = HeaderReader::new();
        reader.push(&file[..11]).unwrap();
        assert_eq!(reader.format(), None);
        reader.push(&file[11..12]).unwrap();
        assert_eq!(reader.format(), Format::sniff(&file), "{name}");
    }
}

#[test]
fn foreign_bytes_are_of_unknown_format() {
    for bytes in [&b"<svg xmlns='http://www.w3.org/2000/svg'/>"[..], b"%PDF-1.7 and so on", b"", b"x", &[0; 64]] {
        assert_eq!(probe(bytes), Err(HeaderError::UnknownFormat));
    }
}

#[test]
fn large_jpeg_segments_are_passed_over_without_being_kept() {
    let mut file = jpeg(&small(), &Jpeg::default());
    for _ in 0..40 {
        file = with_segment(&file, 0xe2, &[0x55; 65_000]);
    }
    let mut reader = HeaderReader::new();
    let mut done = None;
    for part in file.chunks(1000) {
        if let Progress::Done(header) = reader.push(part).unwrap() {
            done = Some(header);
            break;
        }
        assert!(reader.kept.len() < 64, "{}", reader.kept.len());
    }
    assert_eq!(done.unwrap().size(), Size::new(21, 13));
}

#[test]
fn an_exif_block_of_the_largest_segment_is_read() {
    let mut data = [b"Exif\0\0", &exif_block(6, false)[..]].concat();
    data.resize(65_533, 0);
    let file = with_segment(&jpeg(&small(), &Jpeg::default()), 0xe1, &data);
    assert_eq!(probe(&file).unwrap().size(), Size::new(13, 21));
    assert_eq!(feed(&file, 1).unwrap().size(), Size::new(13, 21));
}

#[test]
fn the_first_exif_block_of_a_jpeg_counts_and_a_broken_one_is_none() {
    let plain = jpeg(&small(), &Jpeg::default());
    let two = with_exif(&with_exif(&plain, 3), 6);
    assert_eq!(probe(&two).unwrap().orientation, Orientation::Rotate90);
    let broken = with_segment(&plain, 0xe1, b"Exif\0\0II*\0\xff\xff\xff\xff");
    assert_eq!(probe(&broken).unwrap().orientation, Orientation::Normal);
    let xmp = with_segment(&plain, 0xe1, b"http://ns.adobe.com/xap/1.0/\0<x/>");
    assert_eq!(probe(&xmp).unwrap().orientation, Orientation::Normal);
    let short = with_segment(&plain, 0xe1, b"Ex");
    assert_eq!(probe(&short).unwrap().size(), Size::new(21, 13));
}

#[test]
fn sides_and_pixels_are_held_to_their_limits() {
    let png = |width, height| probe(&png_file(ihdr(width, height, 8, 2, false), &[], &[]));
    assert!(png(30_000, 1).is_ok());
    assert!(png(1, 30_000).is_ok());
    assert_eq!(png(30_001, 1), Err(HeaderError::SideTooLong));
    assert_eq!(png(1, 30_001), Err(HeaderError::SideTooLong));
    assert!(png(10_000, 10_000).is_ok());
    assert_eq!(png(10_000, 10_001), Err(HeaderError::TooManyPixels));
    assert_eq!(png(11_111, 9_001), Err(HeaderError::TooManyPixels));
    assert_eq!(png(u32::MAX, u32::MAX), Err(HeaderError::SideTooLong));
    assert_eq!(png(0, 5), Err(HeaderError::Malformed));
    assert_eq!(png(5, 0), Err(HeaderError::Malformed));
    let gif = |width: u16, height: u16| probe(&gif((width, height), (0, 0, 1, 1), vec![0], None));
    assert_eq!(gif(65_535, 1), Err(HeaderError::SideTooLong));
    assert_eq!(gif(20_000, 5_001), Err(HeaderError::TooManyPixels));
    assert_eq!(gif(0, 0), Err(HeaderError::Malformed));
    let webp = |width, height| probe(&riff(&[vp8x(0, width, height), riff_chunk(b"VP8 ", &[0; 10])]));
    assert_eq!(webp(1 << 24, 1 << 24), Err(HeaderError::SideTooLong));
    assert_eq!(webp(16_383, 6_104), Err(HeaderError::TooManyPixels));
}

#[test]
fn a_jpeg_that_claims_giant_sides_is_refused_by_its_header() {
    let mut file = jpeg(&small(), &Jpeg::default());
    let frame = file.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    file[frame + 5..frame + 9].copy_from_slice(&[0xff, 0xff, 0xff, 0xff]);
    assert_eq!(probe(&file), Err(HeaderError::SideTooLong));
    file[frame + 5..frame + 9].copy_from_slice(&[0, 0, 0, 9]);
    assert_eq!(probe(&file), Err(HeaderError::Malformed));
}

#[test]
fn contradictions_are_malformed() {
    let mut checksum = written(&small(), OutputFormat::Png, 80);
    checksum[20] ^= 1;
    assert_eq!(probe(&checksum), Err(HeaderError::Malformed));
    for (depth, color) in [(3, 0), (16, 3), (4, 2), (8, 1), (8, 5), (1, 6)] {
        let file = png_file(ihdr(2, 2, depth, color, false), &[], &[]);
        assert_eq!(probe(&file), Err(HeaderError::Malformed), "depth {depth} of color type {color}");
    }
    assert_eq!(probe(&[b"\x89PNG\r\n\x1a\n", &png_chunk(b"IDAT", &[0; 30])[..]].concat()), Err(HeaderError::Malformed));
    assert_eq!(probe(b"\xff\xd8\xff\xda\0\x08 and then pixels"), Err(HeaderError::Malformed));
    assert_eq!(probe(b"\xff\xd8\xff\xd9 nothing at all"), Err(HeaderError::Malformed));
    assert_eq!(probe(b"\xff\xd8\xff\xe0\0\x01 too short a segment"), Err(HeaderError::Malformed));
    assert_eq!(probe(b"\xff\xd8\xff\xe0\0\x02bytes between, \xff\0 \xff\xd9"), Err(HeaderError::Malformed));
    assert_eq!(probe(&riff(&[riff_chunk(b"ICCP", &[0; 30])])), Err(HeaderError::Malformed));
    assert_eq!(probe(&riff(&[riff_chunk(b"VP8L", &[0; 30])])), Err(HeaderError::Malformed));
    assert_eq!(probe(&riff(&[riff_chunk(b"VP8 ", &[0; 30])])), Err(HeaderError::Malformed));
}

#[test]
fn an_exif_block_behind_the_image_data_of_a_png_is_ignored() {
    let file = written(&small(), OutputFormat::Png, 80);
    let (front, end) = file.split_at(file.len() - 12);
    let late = [front, &png_chunk(b"eXIf", &exif_block(6, true)), end].concat();
    assert_eq!(probe(&late).unwrap().orientation, Orientation::Normal);
}

#[test]
fn code_points_that_are_not_supported_are_refused_with_their_value() {
    let read = |code_points: [u8; 4]| probe(&png_with(&small(), &[png_chunk(b"cICP", &code_points)]));
    let refused = |code_points, message: &str| {
        let message = format!("the colors of the PNG (cICP) are not supported: {message}");
        assert_eq!(read(code_points).unwrap_err().to_string(), message);
    };
    // The numbers that ITU-T H.273 assigns, without "unspecified" (2) and CIE XYZ (primaries 10); of the transfer functions
    // without logarithmic ones (9, 10), PQ (16) and HLG (18).
    const PRIMARIES: [u8; 10] = [1, 4, 5, 6, 7, 8, 9, 11, 12, 22];
    const TRANSFERS: [u8; 12] = [1, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 17];
    for value in 0..=255 {
        match PRIMARIES.contains(&value) {
            true => assert!(read([value, 13, 0, 1]).is_ok(), "{value}"),
            false => refused([value, 13, 0, 1], &format!("color primaries {value}")),
        }
        match TRANSFERS.contains(&value) {
            true => assert!(read([1, value, 0, 1]).is_ok(), "{value}"),
            false => refused([1, value, 0, 1], &format!("transfer function {value}")),
        }
    }
    refused([1, 13, 1, 1], "matrix coefficients 1");
    refused([1, 13, 0, 0], "full range flag 0");
    refused([1, 13, 0, 2], "full range flag 2");
    // They are read at any place before the pixels.
    let (orientation, hdr) = (png_chunk(b"eXIf", &exif_block(6, true)), png_chunk(b"cICP", &[9, 16, 0, 1]));
    assert!(probe(&png_with(&small(), &[orientation.clone(), hdr.clone()])).is_err());
    assert!(probe(&png_with(&small(), &[hdr, orientation])).is_err());
    for nothing in [&[2, 2, 0, 1][..], &[9, 16, 0], &[9, 16, 0, 1, 0]] {
        assert!(probe(&png_with(&small(), &[png_chunk(b"cICP", nothing)])).is_ok(), "{nothing:?}");
    }
}

#[test]
fn a_webp_that_announces_exif_and_has_none_is_upright() {
    let webp = written(&small(), OutputFormat::Webp, 80);
    let file = riff(&[vp8x(8, 21, 13), webp_chunks(&webp)]);
    assert_eq!(feed(&file, 5).unwrap().size(), Size::new(21, 13));
    let followed = [&file[..], &riff_chunk(b"EXIF", &exif_block(6, true))].concat();
    assert_eq!(probe(&followed).unwrap().size(), Size::new(21, 13), "what follows the RIFF is not of it");
}

#[test]
fn a_jpeg_that_is_damaged_after_its_frame_header_has_a_header() {
    let file = jpeg(&small(), &Jpeg::default());
    let frame = file.windows(2).position(|marker| marker == [0xff, 0xc0]).unwrap();
    let end = frame + 2 + usize::from(file[frame + 3]);
    for damaged in
        [&file[..end], &file[..end + 5], &[&file[..end], b"\xff\xd9"].concat(), &[&file[..end], b"noise"].concat()]
    {
        assert_eq!(probe(damaged).unwrap().size(), Size::new(21, 13));
        assert_eq!(feed(damaged, 3), probe(damaged));
    }
    assert_eq!(probe(&file[..end - 1]), Err(HeaderError::Truncated));
}

#[test]
fn the_memory_estimate_covers_the_pixels_and_what_codecs_keep() {
    let of = |file: &[u8]| probe(file).unwrap().decoded_bytes();
    let pixels = 21 * 13;
    assert_eq!(of(&jpeg(&small(), &Jpeg::default())), pixels * 3);
    assert_eq!(of(&jpeg(&small(), &Jpeg { progressive: true, ..Jpeg::default() })), pixels * 9);
    let separate = jpeg(&small(), &Jpeg::default());
    let scan = separate.windows(2).position(|marker| marker == [0xff, 0xda]).unwrap();
    let separate = [&separate[..scan + 4], &[1], &separate[scan + 5..]].concat();
    assert_eq!(of(&separate), pixels * 9, "the first scan has one component of three");
    assert_eq!(of(&with_exif(&jpeg(&small(), &Jpeg::default()), 6)), pixels * 7);
    assert_eq!(of(&png_file(ihdr(21, 13, 16, 6, true), &[], &[])), pixels * 8);
    assert_eq!(of(&png_file(ihdr(21, 13, 16, 6, false), &[], &[])), pixels * 4);
    let opaque = Bitmap::filled(Size::new(21, 13), Channels::Rgba, crate::Color::WHITE);
    assert_eq!(of(&png_with(&opaque, &[])), pixels * 4);
}

proptest! {
    #[test]
    fn random_bytes_behind_any_signature_never_panic(
        signature in prop::sample::select(vec![
            &b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"[..], b"\xff\xd8\xff", b"GIF89a", b"RIFF\xff\0\0\0WEBPVP8X", b"",
        ]),
        tail in prop::collection::vec(any::<u8>(), 0..300),
        chunk in 1usize..50,
    ) {
        let bytes = [signature, &tail].concat();
        prop_assert_eq!(feed(&bytes, chunk), probe(&bytes));
    }

    #[test]
    fn mutated_files_never_panic(file in 0usize..10, at in any::<prop::sample::Index>(), value in any::<u8>()) {
        let mut bytes = files().swap_remove(file).1;
        let at = at.index(bytes.len());
        bytes[at] = value;
        prop_assert_eq!(feed(&bytes, 3), probe(&bytes));
    }
}
