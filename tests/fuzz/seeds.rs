//! Valid inputs to mutate: a small file for every path through a decoder, and parameters of Actions.

use std::io::Write;

use e2e::{films, images};
use flate2::write::ZlibEncoder;
use moxcms::ColorProfile;
use turbojpeg::{Colorspace, Compressor, Image, PixelFormat, Subsamp};

pub fn pngs() -> Vec<Vec<u8>> {
    let profile = [b"p\0\0".to_vec(), deflated(&profile())].concat();
    vec![
        images::png(23, 17),
        images::transparent_png(16, 9),
        images::plain_png(40, 30, [9, 8, 7]),
        // A palette of three colors with two bits for each pixel. The first color is half transparent.
        png((5, 2), (2, 3), &[(b"PLTE", vec![9, 8, 7, 60, 50, 40, 200, 210, 220]), (b"tRNS", vec![128])], |row| {
            [[0b0001_1000, 0b0100_0000], [0b1001_0010, 0]][row].to_vec()
        }),
        // Grayscale with one transparent value.
        png((7, 3), (8, 0), &[(b"tRNS", vec![0, 30])], |row| (0..7).map(|x| (x * 30 + row) as u8).collect()),
        png((3, 2), (16, 6), &[(b"gAMA", 45_455_u32.to_be_bytes().to_vec())], |row| vec![17 + row as u8; 24]),
        // Interlaced by Adam7: the first pixel of the row is in pass 1, the second in pass 6.
        png_of((2, 1), [16, 2, 0, 0, 1], &[], &[0, 1, 128, 2, 3, 4, 5, 0, 255, 127, 0, 9, 8, 7]),
        // 3 × 3 gray pixels, numbered from 1: passes 1, 4 (column 2 of row 0), 5 (row 2), 6 (column 1) and 7 (row 1).
        png_of((3, 3), [8, 0, 0, 0, 1], &[], &[0, 1, 0, 3, 0, 7, 9, 0, 2, 0, 8, 0, 4, 5, 6]),
        png((2, 2), (8, 2), &[(b"iCCP", profile)], |row| vec![row as u8 * 90, 30, 60, 90, 120, 150]),
    ]
}

pub fn jpegs() -> Vec<Vec<u8>> {
    let plain = images::jpeg(24, 19);
    let profile = [b"ICC_PROFILE\0\x01\x01".to_vec(), profile()].concat();
    vec![
        images::jpeg(70, 50),
        images::turned_jpeg(40, 60, 6),
        jpeg(PixelFormat::RGB, |_| ()),
        jpeg(PixelFormat::RGB, |compressor| compressor.set_progressive(true).expect("is known")),
        jpeg(PixelFormat::RGB, |compressor| compressor.set_subsamp(Subsamp::Gray).expect("is known")),
        jpeg(PixelFormat::CMYK, |compressor| compressor.set_colorspace(Colorspace::CMYK).expect("is known")),
        jpeg(PixelFormat::CMYK, |compressor| compressor.set_colorspace(Colorspace::YCCK).expect("is known")),
        with_segment(&plain, 0xe2, &profile),
    ]
}

pub fn films() -> Vec<Vec<u8>> {
    [films::REORDERED, films::SILENT, films::TURNED, films::AV1, films::PLACE].map(<[u8]>::to_vec).into()
}

pub fn webps() -> Vec<Vec<u8>> {
    let lossy = |width, height| images::webp(width, height)[12..].to_vec();
    let lossless = riff_chunk(b"VP8L", &vp8l());
    // A frame of 9 × 6 pixels at column 2 of row 4, and a second frame that is never displayed.
    let frame = |image: Vec<u8>| {
        riff_chunk(b"ANMF", &[&[1, 0, 0, 2, 0, 0, 8, 0, 0, 5, 0, 0, 100, 0, 0, 0][..], &image].concat())
    };
    let animated = |first| vec![vp8x(2, 16, 12), riff_chunk(b"ANIM", &[0; 6]), frame(first), frame(lossy(9, 6))];
    vec![
        images::webp(33, 21),
        riff(std::slice::from_ref(&lossless)),
        riff(&animated(lossy(9, 6))),
        riff(&animated(lossless)),
        riff(&[vp8x(0x20, 20, 10), riff_chunk(b"ICCP", &profile()), lossy(20, 10)]),
    ]
}

pub fn avifs() -> Vec<Vec<u8>> {
    [images::avif::TURNED, images::avif::TRANSPARENT, images::avif::GENERATED].map(<[u8]>::to_vec).to_vec()
}

/// Valid parameters for every Action, by its slug.
pub fn params() -> Vec<(&'static str, &'static str)> {
    vec![
        (
            "resize",
            r##"{"width": 10, "height": 20, "fit": "cover", "anchor": "top-left", "background": "#a0b1c2d3", "enlarge": "no"}"##,
        ),
        ("crop", r##"{"width": 10, "height": 20, "x": 0, "y": 1, "format": "webp", "quality": 85}"##),
        (
            "crop",
            r##"{"width": 10, "height": 8, "anchor": "center", "degrees": -44.5, "format": "auto", "quality": 85}"##,
        ),
        ("change-aspect-ratio", r##"{"ratio": "16:9", "mode": "blur", "background": "#fff", "anchor": "right"}"##),
        ("rotate", r##"{"degrees": -90.5, "flip": "both", "expand": "no", "background": "#00000000"}"##),
        (
            "add-text-to-image",
            r##"{"text": "Zürich\nשלום 🙂", "font": "serif", "weight": "regular", "size": 6.5, "color": "#123456", "align": "left", "maxWidth": 90, "lineHeight": 1.2, "strokeColor": "#000", "strokeWidth": 20, "background": "#00000080", "padding": 30, "offsetX": -7}"##,
        ),
        (
            "overlay-image",
            r##"{"blend": "multiply", "opacity": 55.5, "rotate": -360, "scale": 0.1, "offsetX": -3, "offsetY": 4, "anchor": "bottom-right"}"##,
        ),
        (
            "color-grade",
            r##"{"exposure": 1e0, "gamma": 0.1, "preset": "sepia", "intensity": 50.25, "tint": -100, "vibrance": 7}"##,
        ),
        ("video-frame", r##"{"at": "time", "seconds": 1.25, "format": "jpeg", "quality": 90}"##),
        (
            "side-by-side-composite",
            r##"{"direction": "vertical", "gap": 1024, "scale": "match", "align": "end", "background": "#ffffff"}"##,
        ),
    ]
}

/// Parameters that no Action accepts. Each is close to valid ones.
pub fn wrong_params() -> Vec<&'static str> {
    vec![
        r##"{"width": 10, "height": 20, "x": 0, "format": "webp", "quality": 85}"##,
        r##"{"ratio": "16:9", "mode": "blur", "background": "#fff", "degrees": -90.5, "flip": "both", "expand": "no"}"##,
        r##"{"direction": "vertical", "gap": 1024, "scale": 0.1, "opacity": 100, "offsetX": 9223372036854775807}"##,
        r##"{"text": "", "blend": "dodge", "size": 50.1, "strokeWidth": -0.0, "font": "Sans"}"##,
    ]
}

/// Recomputes the checksums of a PNG as far as its chunks can be parsed, so that decoders reach the mutated data.
pub fn mend_checksums(data: &mut [u8]) {
    let mut at = 8;
    while let Some(head) = data.get(at..at + 8) {
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let Some(end) = at.checked_add(8 + length).filter(|end| end + 4 <= data.len()) else { return };
        let checksum = checksum(&data[at + 4..end]);
        data[end..end + 4].copy_from_slice(&checksum);
        at = end + 4;
    }
}

/// A color profile other than sRGB, so that it is applied.
fn profile() -> Vec<u8> {
    ColorProfile::new_display_p3().encode().expect("encodes")
}

/// A zlib stream without compression, so that a changed byte changes exactly one decoded byte.
fn deflated(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(data).expect("writes into memory");
    encoder.finish().expect("writes into memory")
}

fn checksum(data: &[u8]) -> [u8; 4] {
    let mut checksum = flate2::Crc::new();
    checksum.update(data);
    checksum.sum().to_be_bytes()
}

fn png_chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let checked = [&name[..], data].concat();
    [&(data.len() as u32).to_be_bytes(), &checked[..], &checksum(&checked)].concat()
}

type PngChunk<'a> = (&'a [u8; 4], Vec<u8>);

/// A PNG of this size, bit depth and color type, with chunks before its image data.
fn png(size: (u32, u32), (depth, color): (u8, u8), chunks: &[PngChunk], row: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let rows: Vec<u8> = (0..size.1 as usize).flat_map(|at| [vec![0], row(at)].concat()).collect();
    png_of(size, [depth, color, 0, 0, 0], chunks, &rows)
}

/// A PNG of this size and with these remaining header fields, with chunks before its image data. `rows` includes filter bytes.
fn png_of((width, height): (u32, u32), kind: [u8; 5], chunks: &[PngChunk], rows: &[u8]) -> Vec<u8> {
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &kind].concat();
    let mut file = [b"\x89PNG\r\n\x1a\n".to_vec(), png_chunk(b"IHDR", &header)].concat();
    file.extend(chunks.iter().flat_map(|(name, data)| png_chunk(name, data)));
    file.extend(png_chunk(b"IDAT", &deflated(rows)));
    file.extend(png_chunk(b"IEND", &[]));
    file
}

/// A JPEG of 24 × 19 pixels with 3 or 4 samples, configured by `set`.
fn jpeg(format: PixelFormat, set: impl Fn(&mut Compressor)) -> Vec<u8> {
    let (width, height, count) = (24, 19, format.size());
    let pixels: Vec<u8> = (0..width * height * count).map(|at| (at * 7 + at / 11) as u8).collect();
    let mut compressor = Compressor::new().expect("is there");
    set(&mut compressor);
    let image = Image { pixels: pixels.as_slice(), width, pitch: width * count, height, format };
    compressor.compress_to_vec(image).expect("encodes")
}

/// A JPEG with an additional segment after its start marker.
fn with_segment(jpeg: &[u8], marker: u8, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len() + 2).expect("fits").to_be_bytes();
    [&jpeg[..2], &[0xff, marker], &length, data, &jpeg[2..]].concat()
}

fn riff_chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let padding = vec![0; data.len() & 1];
    [&name[..], &(data.len() as u32).to_le_bytes(), data, &padding].concat()
}

fn riff(chunks: &[Vec<u8>]) -> Vec<u8> {
    let body = chunks.concat();
    [b"RIFF", &(body.len() as u32 + 4).to_le_bytes()[..], b"WEBP", &body].concat()
}

fn vp8x(flags: u8, width: u32, height: u32) -> Vec<u8> {
    let side = |side: u32| (side - 1).to_le_bytes()[..3].to_vec();
    riff_chunk(b"VP8X", &[vec![flags, 0, 0, 0], side(width), side(height)].concat())
}

/// A lossless WebP bitstream (RFC 9649, section 3) of 9 × 6 pixels in two greens, without transforms or a cache, with one
/// group of simple codes.
fn vp8l() -> Vec<u8> {
    let (width, height) = (9, 6);
    let mut bits = Vec::new();
    let mut put = |value: u32, count: u32| bits.extend((0..count).map(|at| (value >> at & 1) as u8));
    put(0x2f, 8);
    put(width - 1, 14);
    put(height - 1, 14);
    // No alpha, version 0, no transform, no color cache, no groups.
    put(0, 1 + 3 + 1 + 1 + 1);
    // Green: a simple code with two symbols of 8 bits.
    put(0b111, 3);
    put(40, 8);
    put(200, 8);
    // Red, blue and alpha: a code with one symbol of 8 bits, which needs no bits in the data.
    for symbol in [90, 60, 255] {
        put(0b101, 3);
        put(symbol, 8);
    }
    // Distances: a code with one symbol of 1 bit.
    put(0b001, 3);
    put(0, 1);
    for at in 0..width * height {
        put(at % 3 % 2, 1);
    }
    bits.chunks(8).map(|byte| byte.iter().rev().fold(0, |sum, bit| sum << 1 | bit)).collect()
}
