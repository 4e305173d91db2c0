//! Images and files for tests. Files that no encoder can produce are assembled from bytes.

use std::io::Write;

use crate::bitmap::{Bitmap, Channels};
use crate::color::Color;
use crate::encode::{Encoding, encode};
use crate::format::OutputFormat;
use crate::geometry::Size;

/// A TIFF structure whose only entry is the orientation.
pub fn exif_block(orientation: u16, little: bool) -> Vec<u8> {
    let n16 = |value: u16| if little { value.to_le_bytes() } else { value.to_be_bytes() };
    let n32 = |value: u32| if little { value.to_le_bytes() } else { value.to_be_bytes() };
    let mut block = if little { b"II*\0".to_vec() } else { b"MM\0*".to_vec() };
    block.extend(n32(8));
    block.extend(n16(1));
    block.extend(n16(0x0112));
    block.extend(n16(3));
    block.extend(n32(1));
    block.extend(n16(orientation));
    block.extend([0, 0]);
    block.extend(n32(0));
    block
}

/// An image whose pixels are computed by a function.
pub fn drawn(width: u32, height: u32, channels: Channels, pixel: impl Fn(u32, u32) -> [u8; 4]) -> Bitmap {
    let mut pixels = Vec::new();
    for y in 0..height {
        for x in 0..width {
            pixels.extend(&pixel(x, y)[..channels.count()]);
        }
    }
    Bitmap::new(Size::new(width, height), channels, pixels).unwrap()
}

/// Smooth waves with some texture, similar to a photo.
pub fn photo(width: u32, height: u32) -> Bitmap {
    drawn(width, height, Channels::Rgb, |x, y| {
        let (x, y) = (f64::from(x), f64::from(y));
        let wave = |a: f64, b: f64, c: f64| {
            (127.0 + 60.0 * (x / a).sin() + 50.0 * (y / b).cos() + 12.0 * ((x + y) / c).sin()) as u8
        };
        [wave(37.0, 23.0, 3.1), wave(61.0, 47.0, 4.3), wave(29.0, 83.0, 5.7), 255]
    })
}

/// Four quarters in red, green, blue and white. They distinguish all eight orientations even after
/// lossy compression.
pub fn quarters(width: u32, height: u32) -> Bitmap {
    drawn(width, height, Channels::Rgb, |x, y| match (x < width / 2, y < height / 2) {
        (true, true) => [255, 0, 0, 255],
        (false, true) => [0, 255, 0, 255],
        (true, false) => [0, 0, 255, 255],
        (false, false) => [255, 255, 255, 255],
    })
}

pub fn written(image: &Bitmap, format: OutputFormat, quality: u8) -> Vec<u8> {
    encode(image, &Encoding { format, quality, flatten: Color::WHITE }).unwrap()
}

/// Options of a JPEG test file.
pub struct Jpeg {
    pub quality: i32,
    pub progressive: bool,
    pub subsamp: turbojpeg::Subsamp,
}

impl Default for Jpeg {
    fn default() -> Self {
        Self { quality: 95, progressive: false, subsamp: turbojpeg::Subsamp::None }
    }
}

pub fn jpeg(bitmap: &Bitmap, options: &Jpeg) -> Vec<u8> {
    let mut compressor = turbojpeg::Compressor::new().unwrap();
    compressor.set_quality(options.quality).unwrap();
    compressor.set_progressive(options.progressive).unwrap();
    compressor.set_subsamp(options.subsamp).unwrap();
    let image = turbojpeg::Image {
        pixels: bitmap.pixels(),
        width: bitmap.width() as usize,
        pitch: bitmap.stride(),
        height: bitmap.height() as usize,
        format: turbojpeg::PixelFormat::RGB,
    };
    compressor.compress_to_vec(image).unwrap()
}

/// A CMYK JPEG with an Adobe marker and `inks` as stored samples, which are inverted: 0 is full ink.
pub fn cmyk_jpeg(width: usize, height: usize, inks: [u8; 4], colorspace: turbojpeg::Colorspace) -> Vec<u8> {
    let pixels = inks.repeat(width * height);
    let mut compressor = turbojpeg::Compressor::new().unwrap();
    compressor.set_quality(100).unwrap();
    compressor.set_colorspace(colorspace).unwrap();
    let format = turbojpeg::PixelFormat::CMYK;
    let image = turbojpeg::Image { pixels: pixels.as_slice(), width, pitch: width * 4, height, format };
    compressor.compress_to_vec(image).unwrap()
}

/// The JPEG of a gray block, and the positions of its frame header and its scan header.
fn one_block(grey: u8) -> (Vec<u8>, usize, usize) {
    let image = drawn(8, 8, Channels::Rgb, |_, _| [grey; 4]);
    let file = jpeg(&image, &Jpeg { subsamp: turbojpeg::Subsamp::Gray, ..Jpeg::default() });
    let of = |code| file.windows(2).position(|pair| pair == [0xff, code]).unwrap();
    let (frame, scan) = (of(0xc0), of(0xda));
    (file, frame, scan)
}

/// The entropy-coded data of a gray block that follows no other.
pub fn grey_block(grey: u8) -> Vec<u8> {
    let (file, _, scan) = one_block(grey);
    file[scan + 10..file.len() - 2].to_vec()
}

/// A JPEG of unreduced components, numbered from 1, with a restart interval. Of a single component, `data` is the data of its scan,
/// and what follows; of several, it begins with the header of the first scan.
pub fn grey_jpeg(components: u8, size: Size, interval: u8, data: &[u8]) -> Vec<u8> {
    let (file, frame, scan) = one_block(0);
    let tables = frame + 2 + 11;
    let (height, width) = ((size.height as u16).to_be_bytes(), (size.width as u16).to_be_bytes());
    let mut header = [&[0xff, 0xc0, 0, 8 + 3 * components, 8][..], &height, &width, &[components]].concat();
    header.extend((1..=components).flat_map(|component| [component, 0x11, 0]));
    let restarts = [0xff, 0xdd, 0, 4, 0, interval];
    let head = if components == 1 { &file[scan..scan + 10] } else { &[] };
    [&file[..frame], &header, &file[tables..scan], &restarts, head, data].concat()
}

/// A JPEG with an additional segment after its start marker.
pub fn with_segment(jpeg: &[u8], marker: u8, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len() + 2).unwrap().to_be_bytes();
    [&jpeg[..2], &[0xff, marker], &length, data, &jpeg[2..]].concat()
}

pub fn with_exif(jpeg: &[u8], orientation: u16) -> Vec<u8> {
    with_segment(jpeg, 0xe1, &[b"Exif\0\0", &exif_block(orientation, false)[..]].concat())
}

pub fn png_chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut checksum = flate2::Crc::new();
    checksum.update(name);
    checksum.update(data);
    [&(data.len() as u32).to_be_bytes(), &name[..], data, &checksum.sum().to_be_bytes()].concat()
}

pub fn ihdr(width: u32, height: u32, depth: u8, color: u8, interlaced: bool) -> Vec<u8> {
    let mut data = [width.to_be_bytes(), height.to_be_bytes()].concat();
    data.extend([depth, color, 0, 0, u8::from(interlaced)]);
    png_chunk(b"IHDR", &data)
}

/// A PNG made of chunks: a header, further chunks, `rows` (including filter bytes) as image data,
/// and the end chunk.
pub fn png_file(header: Vec<u8>, chunks: &[Vec<u8>], rows: &[u8]) -> Vec<u8> {
    let mut deflated = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    deflated.write_all(rows).unwrap();
    let data = png_chunk(b"IDAT", &deflated.finish().unwrap());
    [b"\x89PNG\r\n\x1a\n".to_vec(), header, chunks.concat(), data, png_chunk(b"IEND", &[])].concat()
}

/// An `iCCP` chunk.
pub fn iccp(profile: &[u8]) -> Vec<u8> {
    let mut deflated = flate2::write::ZlibEncoder::new(b"p\0\0".to_vec(), flate2::Compression::default());
    deflated.write_all(profile).unwrap();
    png_chunk(b"iCCP", &deflated.finish().unwrap())
}

/// A PNG of an RGB or RGBA image without filters, with further chunks before the image data.
pub fn png_with(image: &Bitmap, chunks: &[Vec<u8>]) -> Vec<u8> {
    let color = match image.channels() {
        Channels::Rgb => 2,
        Channels::Rgba => 6,
    };
    let rows: Vec<u8> = image.pixels().chunks_exact(image.stride()).flat_map(|row| [&[0], row].concat()).collect();
    png_file(ihdr(image.width(), image.height(), 8, color, false), chunks, &rows)
}

pub fn riff_chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let padding = vec![0; data.len() & 1];
    [&name[..], &(data.len() as u32).to_le_bytes(), data, &padding].concat()
}

pub fn riff(chunks: &[Vec<u8>]) -> Vec<u8> {
    let body = chunks.concat();
    [b"RIFF", &(body.len() as u32 + 4).to_le_bytes()[..], b"WEBP", &body].concat()
}

pub fn vp8x(flags: u8, width: u32, height: u32) -> Vec<u8> {
    let mut data = vec![flags, 0, 0, 0];
    data.extend(&(width - 1).to_le_bytes()[..3]);
    data.extend(&(height - 1).to_le_bytes()[..3]);
    riff_chunk(b"VP8X", &data)
}

/// The chunks of a simple WebP file without the container.
pub fn webp_chunks(file: &[u8]) -> Vec<u8> {
    match &file[12..16] {
        b"VP8X" => file[12 + 18..].to_vec(),
        _ => file[12..].to_vec(),
    }
}

/// A GIF with one frame: the screen size, the frame's position and size, its palette indices, and
/// the transparent index.
pub fn gif(screen: (u16, u16), frame: (u16, u16, u16, u16), indices: Vec<u8>, transparent: Option<u8>) -> Vec<u8> {
    let palette = [255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255];
    let mut bytes = Vec::new();
    let mut encoder = gif::Encoder::new(&mut bytes, screen.0, screen.1, &palette).unwrap();
    let (left, top, width, height) = frame;
    let frame = gif::Frame { left, top, width, height, transparent, buffer: indices.into(), ..gif::Frame::default() };
    encoder.write_frame(&frame).unwrap();
    drop(encoder);
    bytes
}

/// Peak signal-to-noise ratio in decibels.
pub fn psnr(a: &[u8], b: &[u8]) -> f64 {
    assert_eq!(a.len(), b.len());
    let squares: f64 = a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
    10.0 * (255.0f64.powi(2) * a.len() as f64 / squares.max(1e-9)).log10()
}
