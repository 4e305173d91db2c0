//! The files are of libavif 1.4.2, by Pillow, and of libaom, by FFmpeg. Expected pixels are those of libavif.

use proptest::prelude::*;

use super::*;
use crate::bitmap::{Bitmap, Channels};
use crate::decode::decode;
use crate::header::{MAX_PIXELS, MAX_SIDE};
use crate::testing::{drawn, exif_block, png_chunk, png_with, quarters, written};

macro_rules! sample {
    ($name:literal) => {
        include_bytes!(concat!($name, ".avif")).as_slice()
    };
}

fn image(bytes: &[u8]) -> Bitmap {
    let header = probe(bytes).unwrap();
    header.orientation.apply(frame::decode(bytes, &header).unwrap())
}

fn pixel(image: &Bitmap, x: u32, y: u32) -> &[u8] {
    let count = image.channels().count();
    &image.pixels()[(y * image.width() + x) as usize * count..][..count]
}

fn differ(left: &[u8], right: &[u8]) -> u8 {
    left.iter().zip(right).map(|(left, right)| left.abs_diff(*right)).max().unwrap_or(0)
}

/// Name and content of a file, pixels, and by how much samples may differ.
type Expected = (&'static str, &'static [u8], [&'static [u8]; 5], u8);

#[test]
fn samples_of_each_layout_are_those_of_another_decoder() {
    // Corners in reading order, and the middle.
    let expected: [Expected; 8] = [
        (
            "4:2:0",
            sample!("rgb420"),
            [&[1, 3, 124], &[248, 4, 125], &[4, 253, 129], &[255, 253, 133], &[129, 134, 128]],
            3,
        ),
        (
            "4:2:0 with odd sides",
            sample!("odd420"),
            [&[1, 3, 124], &[250, 2, 124], &[5, 252, 129], &[255, 253, 129], &[127, 127, 127]],
            3,
        ),
        (
            "4:2:2",
            sample!("rgb422"),
            [&[3, 0, 129], &[254, 0, 128], &[1, 255, 127], &[251, 255, 127], &[131, 133, 128]],
            3,
        ),
        (
            "4:4:4",
            sample!("rgb444"),
            [&[1, 2, 129], &[255, 0, 128], &[0, 255, 127], &[254, 255, 128], &[129, 134, 128]],
            1,
        ),
        ("4:0:0", sample!("gray"), [&[1; 3], &[160; 3], &[94; 3], &[255; 3], &[131; 3]], 1),
        (
            "limited range",
            sample!("limited"),
            [&[0, 2, 122], &[250, 5, 124], &[5, 252, 130], &[255, 254, 135], &[131, 134, 129]],
            3,
        ),
        (
            "10 bits",
            sample!("ten"),
            [&[12, 23, 128], &[249, 43, 125], &[1, 207, 125], &[235, 229, 120], &[129, 129, 125]],
            3,
        ),
        (
            "the first frame of an animation",
            sample!("animated"),
            [&[0, 4, 122], &[250, 3, 125], &[5, 252, 130], &[254, 252, 131], &[132, 133, 128]],
            3,
        ),
    ];
    for (name, bytes, pixels, tolerance) in expected {
        let image = image(bytes);
        let (right, bottom) = (image.width() - 1, image.height() - 1);
        let places = [(0, 0), (right, 0), (0, bottom), (right, bottom), (image.width() / 2, image.height() / 2)];
        for ((x, y), expected) in places.into_iter().zip(pixels) {
            let found = pixel(&image, x, y);
            assert!(differ(found, expected) <= tolerance, "{name} at {x},{y}: {found:?}, not {expected:?}");
        }
    }
}

#[test]
fn each_orientation_is_applied() {
    let upright = image(sample!("orient1"));
    assert_eq!((upright.width(), upright.height()), (40, 24));
    let files = [
        sample!("orient2"),
        sample!("orient3"),
        sample!("orient4"),
        sample!("orient5"),
        sample!("orient6"),
        sample!("orient7"),
        sample!("orient8"),
    ];
    for (value, bytes) in (2..).zip(files) {
        let turned = Orientation::from_exif(value).unwrap().apply(upright.clone());
        assert_eq!(probe(bytes).unwrap().size, turned.size(), "{value}");
        assert_eq!(image(bytes), turned, "{value}");
    }
}

#[test]
fn what_is_transparent_becomes_a_png_and_the_rest_a_jpeg() {
    let made = convert(sample!("rgba")).unwrap();
    assert_eq!((made.format, made.width, made.height), (OutputFormat::Png, 40, 24));
    let image = decode(&made.bytes).unwrap();
    assert_eq!((pixel(&image, 0, 0)[3], pixel(&image, 39, 0)[3], pixel(&image, 39, 23)[3]), (255, 0, 255));
    assert!(differ(pixel(&image, 20, 12), &[131, 134, 127, 133]) <= 1);
    let made = convert(sample!("rgb444")).unwrap();
    assert_eq!((made.format, made.width, made.height), (OutputFormat::Jpeg, 40, 24));
    assert!(differ(pixel(&decode(&made.bytes).unwrap(), 20, 12), &[129, 134, 128]) <= 8);
}

#[test]
fn high_dynamic_range_is_cut_off_at_the_white_of_the_reference() {
    let image = image(sample!("pq"));
    // A signal of 0.58 is 203 cd/m², which is white; the left edge has little red.
    assert!(pixel(&image, 39, 23)[..2].iter().all(|sample| *sample == 255), "{:?}", pixel(&image, 39, 23));
    assert_eq!(pixel(&image, 0, 0)[..2], [0, 0]);
}

#[test]
fn the_header_is_read_from_the_beginning_however_much_there_is() {
    let bytes = sample!("rgba");
    let whole = probe(bytes).unwrap();
    let known = (0..bytes.len()).find(|length| probe(&bytes[..*length]).is_ok()).unwrap();
    assert!(known < bytes.len());
    for length in 0..bytes.len() {
        match probe(&bytes[..length]) {
            Ok(header) => assert!(length >= known && header == whole),
            Err(error) => assert!(length < known && error == HeaderError::Truncated, "{length}: {error}"),
        }
    }
    assert_eq!(whole.size, Size::new(40, 24));
    let found = probe(sample!("xmp")).unwrap();
    let packet = xmp(sample!("xmp"), &found).unwrap();
    assert!(packet.windows(24).any(|part| part == b"/trainedAlgorithmicMedia"), "{packet:?}");
    assert!(xmp(bytes, &whole).is_none());
}

/// `bytes` with another declared size of the image.
fn resized(bytes: &[u8], width: u32, height: u32) -> Vec<u8> {
    let at = bytes.windows(4).position(|kind| kind == b"ispe").unwrap() + 8;
    let mut bytes = bytes.to_vec();
    bytes[at..at + 8].copy_from_slice(&[width.to_be_bytes(), height.to_be_bytes()].concat());
    bytes
}

#[test]
fn sizes_are_limited_before_anything_is_decoded() {
    let probe = |width, height| probe(&resized(sample!("rgb420"), width, height)).map(|header| header.size);
    let side = (MAX_PIXELS as f64).sqrt() as u32;
    assert_eq!(probe(side, side), Ok(Size::new(side, side)));
    assert_eq!(probe(side, side + 1), Err(HeaderError::TooManyPixels));
    assert_eq!(probe(MAX_SIDE, 1), Ok(Size::new(MAX_SIDE, 1)));
    assert_eq!(probe(MAX_SIDE + 1, 1), Err(HeaderError::SideTooLong));
    assert_eq!(probe(0, 24), Err(HeaderError::Malformed));
}

#[test]
fn a_frame_of_another_size_than_declared_is_refused() {
    for (width, height) in [(41, 24), (40, 25), (39, 24), (8, 8), (4000, 4000)] {
        let error = convert(&resized(sample!("rgb420"), width, height)).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Image, "{width} x {height}: {error}");
    }
}

#[test]
fn a_file_that_is_cut_off_is_refused() {
    let bytes = sample!("rgb420");
    for length in 0..bytes.len() {
        assert!(convert(&bytes[..length]).is_err(), "{length}");
    }
}

#[test]
fn kinds_are_told_by_their_brands() {
    let ftyp = |brands: &[&[u8; 4]]| {
        let length = 8 + 4 * brands.len() as u32;
        let brands: Vec<u8> = brands.iter().flat_map(|brand| **brand).collect();
        [&length.to_be_bytes(), b"ftyp", brands.as_slice()].concat()
    };
    let version = b"\0\0\0\0";
    for (brands, kind) in [
        (&[b"avif", version, b"mif1"][..], Some(Kind::Avif)),
        (&[b"avis", version], Some(Kind::Avif)),
        (&[b"mif1", version, b"avif"], Some(Kind::Avif)),
        (&[b"heic", version, b"mif1"], Some(Kind::Heif)),
        (&[b"mif1", version, b"heix"], Some(Kind::Heif)),
        (&[b"isom", version, b"avc1"], None),
        (&[b"isom", b"avif"], None),
        (&[b"qt  ", version], None),
        (&[], None),
    ] {
        assert_eq!(sniff(&ftyp(brands)), kind, "{brands:?}");
    }
    let far = [&[*b"isom"; 30].concat()[..], b"avif"].concat();
    let far = [&(8 + far.len() as u32).to_be_bytes(), b"ftyp", far.as_slice()].concat();
    assert_eq!((sniff(&far), sniff(b"\0\0\0\x10free"), sniff(b"")), (None, None, None));
    assert_eq!(sniff(sample!("rgb420")), Some(Kind::Avif));
}

fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    [&(8 + content.len() as u32).to_be_bytes(), kind, content].concat()
}

fn full(kind: &[u8; 4], version: u8, content: &[u8]) -> Vec<u8> {
    boxed(kind, &[&[version, 0, 0, 0], content].concat())
}

/// A file whose items 2 and up are tiles of the image of `file`, in a grid of `rows` and `columns` of this size, which is item 1.
fn grid(file: &[u8], (rows, columns): (u8, u8), size: (u16, u16)) -> Vec<u8> {
    let data = file.windows(4).position(|kind| kind == b"mdat").unwrap() + 4;
    let data = &file[data..];
    let tiles = u16::from(rows) * u16::from(columns);
    let item = |id: u16, kind: &[u8; 4]| full(b"infe", 2, &[&id.to_be_bytes()[..], &[0, 0], kind, &[0]].concat());
    let items: Vec<u8> = (2..2 + tiles).flat_map(|id| item(id, b"av01")).collect();
    let iinf = full(b"iinf", 0, &[&(1 + tiles).to_be_bytes()[..], &item(1, b"grid"), &items].concat());
    let to: Vec<u8> = (2..2 + tiles).flat_map(u16::to_be_bytes).collect();
    let dimg = boxed(b"dimg", &[&1_u16.to_be_bytes()[..], &tiles.to_be_bytes(), &to].concat());
    let iref = full(b"iref", 0, &dimg);
    let ispe = |width: u32, height: u32| full(b"ispe", 0, &[width.to_be_bytes(), height.to_be_bytes()].concat());
    let ipco = boxed(b"ipco", &[ispe(size.0.into(), size.1.into()), ispe(40, 24)].concat());
    let associated: Vec<u8> = (1..2 + tiles).flat_map(|id| [0, id as u8, 1, if id == 1 { 1 } else { 2 }]).collect();
    let ipma = full(b"ipma", 0, &[&u32::from(1 + tiles).to_be_bytes()[..], &associated].concat());
    let iprp = boxed(b"iprp", &[ipco, ipma].concat());
    let [w, h] = [size.0, size.1].map(u16::to_be_bytes);
    let description = [&[0, 0, rows - 1, columns - 1], &w[..], &h].concat();
    let idat = boxed(b"idat", &description);
    let meta = |offset: u32| {
        let place = |id: u16, method: u16, offset: u32, length: u32| {
            let [id, method, none, one] = [id, method, 0, 1].map(u16::to_be_bytes);
            [&id[..], &method, &none, &one, &offset.to_be_bytes(), &length.to_be_bytes()].concat()
        };
        let tiled: Vec<u8> = (2..2 + tiles).flat_map(|id| place(id, 0, offset, data.len() as u32)).collect();
        let places = [place(1, 1, 0, description.len() as u32), tiled].concat();
        let iloc = full(b"iloc", 1, &[&[0x44, 0], &(1 + tiles).to_be_bytes()[..], &places].concat());
        let pitm = full(b"pitm", 0, &1_u16.to_be_bytes());
        full(b"meta", 0, &[&pitm[..], &iinf, &iref, &iprp, &idat, &iloc].concat())
    };
    let ftyp = boxed(b"ftyp", b"avif\0\0\0\0mif1");
    let offset = ftyp.len() + meta(0).len() + 8;
    [ftyp, meta(offset as u32), boxed(b"mdat", data)].concat()
}

#[test]
fn the_tiles_of_a_grid_become_one_image() {
    let tile = image(sample!("rgb444"));
    let whole = image(&grid(sample!("rgb444"), (2, 3), (100, 40)));
    assert_eq!((whole.width(), whole.height()), (100, 40));
    for (x, y) in [(0, 0), (39, 23), (40, 0), (79, 24), (99, 39)] {
        // The numbers of the color space are in the bitstream.
        assert!(differ(pixel(&whole, x, y), pixel(&tile, x % 40, y % 24)) <= 1, "{x},{y}");
    }
}

#[test]
fn a_grid_that_does_not_cover_its_image_is_refused() {
    let probe = |tiles, size| probe(&grid(sample!("rgb444"), tiles, size)).map(drop);
    assert_eq!(probe((2, 2), (80, 48)), Ok(()));
    assert_eq!(probe((2, 2), (41, 25)), Ok(()));
    for size in [(81, 48), (80, 49), (40, 48), (80, 24)] {
        assert_eq!(probe((2, 2), size), Err(HeaderError::Malformed), "{size:?}");
    }
}

#[test]
fn of_a_file_in_another_codec_size_and_xmp_are_read() {
    let hevc = |file: &[u8]| {
        let mut file = file.to_vec();
        let at = file.windows(4).position(|kind| kind == b"av01").expect("an item");
        file[at..at + 4].copy_from_slice(b"hvc1");
        file
    };
    let turned = hevc(sample!("orient6"));
    assert!(matches!(probe(&turned), Err(HeaderError::UnsupportedAvif(_))));
    let header = probe_heif(&turned).expect("a header");
    assert_eq!((header.pixels(), xmp_of_heif(&turned, &header)), (40 * 24, None));
    let described = hevc(sample!("xmp"));
    let packet = xmp(sample!("xmp"), &probe(sample!("xmp")).expect("a header")).expect("a packet").into_owned();
    let header = probe_heif(&described).expect("a header");
    assert_eq!(xmp_of_heif(&described, &header).as_deref(), Some(packet.as_slice()));
    assert_eq!(probe_heif(&turned[..40]), Err(HeaderError::Truncated));
}

#[test]
fn what_a_program_decoded_is_encoded_as_it_is() {
    let image = quarters(40, 24);
    let png = png_with(&image, &[]);
    for (pixels_max, fits) in [(959, false), (960, true), (961, true)] {
        assert_eq!(convert_decoded(&png, pixels_max).is_ok(), fits, "{pixels_max}");
    }
    let format = |png: &[u8]| convert_decoded(png, 960).map(|output| (output.format, output.width, output.height)).ok();
    assert_eq!(format(&png), Some((OutputFormat::Jpeg, 40, 24)));
    let transparent = drawn(40, 24, Channels::Rgba, |_, _| [100; 4]);
    assert_eq!(format(&png_with(&transparent, &[])), Some((OutputFormat::Png, 40, 24)));
    assert_eq!(format(&written(&image, OutputFormat::Jpeg, 90)), None);
    assert_eq!(format(&png[..60]), None);
    // Turned by 90 degrees says the EXIF block, which is a copy of that of the file.
    let turned = png_with(&image, &[png_chunk(b"eXIf", &exif_block(6, false))]);
    assert_eq!(crate::probe(&turned).expect("a header").size(), Size::new(24, 40));
    assert_eq!(format(&turned), Some((OutputFormat::Jpeg, 40, 24)));
}

#[test]
fn hostile_tables_cost_little() {
    // Parts of data that take no bytes, for as many items as fit.
    let entry = [&[0, 1, 0, 0][..], &u16::MAX.to_be_bytes()].concat();
    let places = [&[0, 0][..], &u16::MAX.to_be_bytes(), &entry.repeat(40_000)].concat();
    let many = |kind: &[u8; 4], content: &[u8]| {
        [boxed(b"ftyp", b"avif\0\0\0\0"), full(b"meta", 0, &full(kind, 0, content))].concat()
    };
    let unsupported = |bytes: &[u8]| matches!(probe(bytes), Err(HeaderError::UnsupportedAvif(_)));
    assert!(unsupported(&many(b"iloc", &places)));
    let items = full(b"infe", 2, &[0, 1, 0, 0, b'a', b'v', b'0', b'1', 0]);
    assert!(unsupported(&many(b"iinf", &[&5000_u16.to_be_bytes()[..], &items.repeat(5000)].concat())));
    let reference = boxed(b"auxl", &[0, 1, 0, 0]);
    assert!(unsupported(&many(b"iref", &reference.repeat(5000))));
    let free = |length: usize| [boxed(b"ftyp", b"avif\0\0\0\0"), boxed(b"free", &vec![0; length])].concat();
    assert!(unsupported(&[free(MAX_META_BYTES), boxed(b"meta", &[])].concat()));
    assert_eq!(probe(&free(1000)), Err(HeaderError::Truncated));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damaged_headers_never_panic(
        file in prop::sample::select(vec![sample!("rgb420"), sample!("rgba"), sample!("animated"), sample!("ten")]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = file.to_vec();
        for (place, value) in changes {
            let at = place.index(bytes.len());
            bytes[at] = value;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(header) = probe(&bytes) {
            let _ = xmp(&bytes, &header);
        }
        if let Ok(header) = probe_heif(&bytes) {
            let _ = xmp_of_heif(&bytes, &header);
        }
    }
}
