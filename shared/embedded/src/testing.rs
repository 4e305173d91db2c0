//! Images and files for tests.

use raster::{Bitmap, Channels, Color, Encoding, OutputFormat, Size, encode};

/// An image whose pixels are computed by a function.
pub fn drawn(width: u32, height: u32, channels: Channels, pixel: impl Fn(u32, u32) -> [u8; 4]) -> Bitmap {
    let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let pixels = places.flat_map(|(x, y)| pixel(x, y).into_iter().take(channels.count())).collect();
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

/// Four quarters in red, green, blue and white.
pub fn quarters(width: u32, height: u32) -> Bitmap {
    drawn(width, height, Channels::Rgb, |x, y| match (x < width / 2, y < height / 2) {
        (true, true) => [255, 0, 0, 255],
        (false, true) => [0, 255, 0, 255],
        (true, false) => [0, 0, 255, 255],
        (false, false) => [255, 255, 255, 255],
    })
}

pub fn png(image: &Bitmap) -> Vec<u8> {
    encode(image, &Encoding { format: OutputFormat::Png, quality: 100, flatten: Color::WHITE }).unwrap()
}
