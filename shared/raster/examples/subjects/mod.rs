//! Images for measurements.

use raster::{Bitmap, Channels, Size};

/// Waves, fine texture and sensor noise.
pub fn photo(width: u32, height: u32) -> Bitmap {
    let mut noise = 1u32;
    drawn(width, height, move |x, y| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let grain = f64::from(noise >> 28) - 7.5;
        let (x, y) = (f64::from(x), f64::from(y));
        let sample = |a: f64, b: f64| {
            127.0 + 60.0 * (x / a).sin() + 45.0 * (y / b).cos() + 8.0 * ((x * y) / 9e3).sin() + grain * 0.6
        };
        [sample(137.0, 93.0) as u8, sample(161.0, 147.0) as u8, sample(229.0, 83.0) as u8]
    })
}

/// Discs of uniform color on a uniform background, as in a drawing.
pub fn flat(width: u32, height: u32) -> Bitmap {
    drawn(width, height, |x, y| {
        let (cell_x, cell_y) = (x / 128, y / 128);
        let (dx, dy) = (i64::from(x % 128) - 64, i64::from(y % 128) - 64);
        if dx * dx + dy * dy < 50 * 50 { [(cell_x * 40) as u8, (cell_y * 70) as u8, 180] } else { [250, 248, 240] }
    })
}

fn drawn(width: u32, height: u32, mut pixel: impl FnMut(u32, u32) -> [u8; 3]) -> Bitmap {
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y))).flat_map(|(x, y)| pixel(x, y)).collect();
    Bitmap::new(Size::new(width, height), Channels::Rgb, pixels).expect("one pixel was drawn for each place")
}
