//! Valid and invalid images. Except for [`same_png`] and [`scene`], each call returns different bytes, so that no two tests
//! share a stored blob.

use raster::{Bitmap, Channels, Color, Encoding, OutputFormat, Size};
pub use testkit::photo::PLACE;

use crate::api::unique;

/// A PNG with three channels.
pub fn png(width: u32, height: u32) -> Vec<u8> {
    written(width, height, OutputFormat::Png)
}

/// The same PNG in every run.
pub fn same_png(width: u32, height: u32) -> Vec<u8> {
    let pixels = gradient(width, height, 1).flatten().collect();
    encoded(Bitmap::new(Size::new(width, height), Channels::Rgb, pixels), OutputFormat::Png)
}

/// A JPEG file.
pub fn jpeg(width: u32, height: u32) -> Vec<u8> {
    written(width, height, OutputFormat::Jpeg)
}

/// A WebP file.
pub fn webp(width: u32, height: u32) -> Vec<u8> {
    written(width, height, OutputFormat::Webp)
}

/// A PNG with soft colors chosen by `seed`: the same image at every size, and a different one for every seed.
pub fn scene(width: u32, height: u32, seed: u8) -> Vec<u8> {
    let part = |at: u32, of: u32| (at * 255 / of) as u8;
    let color = |x, y| [part(x, width), part(y, height), seed.wrapping_mul(53)];
    let pixels = (0..height).flat_map(|y| (0..width).flat_map(move |x| color(x, y))).collect();
    encoded(Bitmap::new(Size::new(width, height), Channels::Rgb, pixels), OutputFormat::Png)
}

/// A PNG of random pixels, which no encoding makes small: about `3 * side * side` bytes.
pub fn noise_png(side: u32) -> Vec<u8> {
    let mut state = unique() | 1;
    let pixels = (0..side * side * 3).map(|_| {
        // Xorshift64 (Marsaglia, Xorshift RNGs, 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    });
    encoded(Bitmap::new(Size::new(side, side), Channels::Rgb, pixels.collect()), OutputFormat::Png)
}

/// The same PNG with another unique comment, so that it is stored as another file.
pub fn commented(png: &[u8]) -> Vec<u8> {
    let mut file = png.to_vec();
    // After the header: a signature of 8 bytes and a chunk of 25.
    file.splice(33..33, chunk(b"tEXt", format!("n\0{}", unique()).as_bytes()));
    file
}

/// A PNG with transparent pixels.
pub fn transparent_png(width: u32, height: u32) -> Vec<u8> {
    let pixels = gradient(width, height, unique()).flat_map(|[r, g, b]| [r, g, b, r]).collect();
    encoded(Bitmap::new(Size::new(width, height), Channels::Rgba, pixels), OutputFormat::Png)
}

/// A PNG of one color, with a unique comment.
pub fn plain_png(width: u32, height: u32, color: [u8; 3]) -> Vec<u8> {
    let pixels = color.repeat(width as usize * height as usize);
    commented(&encoded(Bitmap::new(Size::new(width, height), Channels::Rgb, pixels), OutputFormat::Png))
}

/// A JPEG whose EXIF data has this orientation, one of eight values.
pub fn turned_jpeg(width: u32, height: u32, orientation: u8) -> Vec<u8> {
    let mut block = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    block.extend([orientation, 0, 0, 0, 0, 0, 0]);
    let mut segment = vec![0xff, 0xe1, 0, block.len() as u8 + 2];
    segment.extend(block);
    let mut file = jpeg(width, height);
    file.splice(2..2, segment);
    file
}

/// A JPEG that must be rotated by 90 degrees for display, with an author and a place.
pub fn photo_with_place(width: u32, height: u32) -> Vec<u8> {
    testkit::photo::with_place(&jpeg(width, height))
}

/// A GIF of one black pixel (GIF89a: header, screen with two colors, a frame of LZW codes, trailer).
pub fn gif() -> Vec<u8> {
    let mut bytes = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff".to_vec();
    // A comment that makes the file unique.
    let comment = unique().to_string();
    bytes.extend([0x21, 0xfe, comment.len() as u8]);
    bytes.extend(comment.as_bytes());
    bytes.push(0);
    bytes.extend(b"\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00\x3b");
    bytes
}

/// A PNG that is broken after its header. It can be stored, and the job that decodes it fails.
pub fn broken_png(width: u32, height: u32) -> Vec<u8> {
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend([8, 2, 0, 0, 0]);
    let comment = format!("n\0{}", unique());
    let chunks = [chunk(b"IHDR", &header), chunk(b"tEXt", comment.as_bytes()), chunk(b"IDAT", b"no deflate stream")];
    [b"\x89PNG\r\n\x1a\n".to_vec(), chunks.concat(), chunk(b"IEND", b"")].concat()
}

/// The width and height of a stored file in pixels.
pub fn size(bytes: &[u8]) -> (u32, u32) {
    let header = raster::probe(bytes).expect("an image");
    (header.size().width, header.size().height)
}

fn written(width: u32, height: u32, format: OutputFormat) -> Vec<u8> {
    encoded(
        Bitmap::new(Size::new(width, height), Channels::Rgb, gradient(width, height, unique()).flatten().collect()),
        format,
    )
}

fn encoded(image: Option<Bitmap>, format: OutputFormat) -> Vec<u8> {
    let encoding = Encoding { format, quality: 90, flatten: Color::WHITE };
    raster::encode(&image.expect("sides of at least 1"), &encoding).expect("encodes")
}

/// A gradient that encodes a number.
fn gradient(width: u32, height: u32, number: u64) -> impl Iterator<Item = [u8; 3]> {
    let seed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    (0..height).flat_map(move |y| {
        (0..width).map(move |x| {
            let [r, g, b, ..] = seed;
            [r.wrapping_add((x * 3) as u8), g.wrapping_add((y * 5) as u8), b.wrapping_add((x + y) as u8)]
        })
    })
}

fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let checked = [&name[..], data].concat();
    [&(data.len() as u32).to_be_bytes(), &checked[..], &crc32(&checked).to_be_bytes()].concat()
}

/// CRC-32 as in PNG (third edition, annex D), computed bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_what_they_claim_and_differ() {
        for (first, second) in [(png(9, 7), png(9, 7)), (jpeg(9, 7), jpeg(9, 7)), (webp(9, 7), webp(9, 7))] {
            assert_eq!(size(&first), (9, 7));
            assert_ne!(first, second);
        }
        assert_eq!(size(&gif()), (1, 1));
        assert_eq!(size(&plain_png(9, 7, [1, 2, 3])), (9, 7));
        assert_ne!(plain_png(9, 7, [1, 2, 3]), plain_png(9, 7, [1, 2, 3]));
        assert_eq!(size(&noise_png(9)), (9, 9));
        assert_eq!(size(&turned_jpeg(9, 7, 6)), (7, 9));
        assert_eq!(size(&broken_png(30_000, 3)), (30_000, 3));
        assert!(raster::decode(&gif()).is_ok());
        assert!(raster::decode(&broken_png(3, 3)).is_err());
    }
}

/// An AVIF file, one of [`avif`], with a unique box at its end.
pub fn avif(file: &[u8]) -> Vec<u8> {
    [file, b"\0\0\0\x10free", &unique().to_be_bytes()].concat()
}

/// A file that declares itself as a HEIC image of this size, stored as displayed, for [`heif_command`]: its data is a PNG.
pub fn heic(width: u32, height: u32, png: &[u8]) -> Vec<u8> {
    let boxed =
        |kind: &[u8; 4], content: &[u8]| [&(content.len() as u32 + 8).to_be_bytes()[..], kind, content].concat();
    let size = boxed(b"ispe", &[[0; 4], width.to_be_bytes(), height.to_be_bytes()].concat());
    let associations = boxed(b"ipma", &[0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 1]);
    let properties = boxed(b"iprp", &[boxed(b"ipco", &size), associations].concat());
    let meta = [vec![0; 4], boxed(b"pitm", &[0, 0, 0, 0, 0, 1]), properties].concat();
    [boxed(b"ftyp", b"heic\0\0\0\0mif1"), boxed(b"meta", &meta), boxed(b"mdat", png)].concat()
}

/// A program for `CANVAS_HEIF_COMMAND` that decodes files of [`heic`].
pub fn heif_command() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/lib/heif-dec")
}

/// A GIF of one pixel with this many frames.
pub fn animated_gif(frames: usize) -> Vec<u8> {
    let head = b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0";
    let comment = [&b"!\xfe\x08"[..], &unique().to_be_bytes(), b"\0"].concat();
    let frame = b",\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0";
    [head, comment.as_slice(), &frame.repeat(frames), b";"].concat()
}

/// A GIF of two frames with a place in its XMP packet and a comment, and the same file without both.
pub fn gif_with_place() -> (Vec<u8>, Vec<u8>) {
    let gif = animated_gif(2);
    // The screen and its table, and the comment.
    let (head, frames) = (&gif[..19], &gif[19 + 12..]);
    let comment = &gif[19..19 + 12];
    let place = std::str::from_utf8(PLACE).unwrap_or_default();
    let packet = format!(
        "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\
         <rdf:Description xmlns:exif=\"http://ns.adobe.com/exif/1.0/\" exif:GPSLatitude=\"{place}\"/></rdf:RDF></x:xmpmeta>"
    );
    // The packet stands in the file without sub-blocks; its trailer leads to their end (XMP specification, part 3, 1.1.2).
    let trailer: Vec<u8> = std::iter::once(1).chain((0..=255).rev()).chain([0]).collect();
    let xmp = [b"!\xff\x0bXMP DataXMP", packet.as_bytes(), &trailer].concat();
    ([head, comment, &xmp, frames].concat(), [head, frames].concat())
}

/// AVIF files, of 40 × 24 pixels if nothing else is said.
pub mod avif {
    /// Of 320 × 240 pixels.
    pub const LARGE: &[u8] = include_bytes!("../../shared/raster/src/avif/tests/large.avif");
    /// To be turned to 24 × 40 pixels.
    pub const TURNED: &[u8] = include_bytes!("../../shared/raster/src/avif/tests/orient6.avif");
    /// With an alpha channel.
    pub const TRANSPARENT: &[u8] = include_bytes!("../../shared/raster/src/avif/tests/rgba.avif");
    /// Its XMP packet says that a model made it.
    pub const GENERATED: &[u8] = include_bytes!("../../shared/raster/src/avif/tests/xmp.avif");
}
