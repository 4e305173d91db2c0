use super::convolve::WEIGHTS;
use super::*;
use crate::geometry::Size;

#[test]
fn weights_add_up_and_a_whole_position_copies() {
    assert_eq!(WEIGHTS[0], [0, 0, 2048, 0, 0, 0]);
    assert!(WEIGHTS.iter().all(|row| row.iter().sum::<i16>() == 2048));
    // At phase one half, by the formula: sinc(1/2)·sinc(1/6) is 0.6079, sinc(3/2)·sinc(1/2) is
    // -0.1351, sinc(5/2)·sinc(5/6) is 0.0243.
    assert_eq!(WEIGHTS[128], [50, -278, 1252, 1252, -278, 50]);
}

/// An image of extreme values, for which the sums are largest.
fn extremes(size: Size, channels: Channels) -> Bitmap {
    let mut state = 1u32;
    let count = size.pixels() as usize * channels.count();
    let pixels = (0..count).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        match state >> 30 {
            0 => 0,
            1 => 255,
            _ => (state >> 16) as u8,
        }
    });
    Bitmap::made(size, channels, pixels.collect())
}

#[test]
fn wide_and_plain_convolution_agree_to_the_bit() {
    for channels in [Channels::Rgb, Channels::Rgba] {
        let source = Padded::from_bitmap(&extremes(Size::new(67, 45), channels));
        for (degrees, scale) in [(0.5, 1.0), (12.0, 1.0), (133.0, 1.0), (200.0, 3.7)] {
            let rotation = Rotation { scale: (scale, scale), ..Rotation::clockwise(degrees) };
            let part = Rect { x: 0, y: 0, size: Size::new(80, 80) };
            let map = Map::new(source.size, rotation, (80.0, 80.0), part);
            let filled = |convolve: Convolve| {
                let (mut rgb, mut rgba) = (vec![7; 80 * 80 * 3], vec![7; 80 * 80 * 4]);
                convolve.fill_rgb(&source, &map, Color::WHITE, 0, &mut rgb);
                convolve.fill_rgba(&source, &map, Color::TRANSPARENT, 0, &mut rgba);
                (rgb, rgba)
            };
            assert!(filled(Convolve::get()) == filled(Convolve::Plain), "{degrees} degrees");
        }
    }
}

#[test]
fn a_turn_is_that_of_exact_lanczos() {
    let size = Size::new(60, 44);
    // Fine detail, where kernels differ most, but below half the sampling rate.
    let level = |x: u32, y: u32| {
        let (x, y) = (f64::from(x), f64::from(y));
        128.0 + 50.0 * (x * 1.9).sin() + 40.0 * (y * 1.7 + x * 0.3).cos()
    };
    let source = crate::testing::drawn(size.width, size.height, Channels::Rgb, |x, y| [level(x, y) as u8; 4]);
    let lobe = |x: f64| match x.abs() {
        x if x < 1e-9 => 1.0,
        x if x >= 3.0 => 0.0,
        x => {
            (std::f64::consts::PI * x).sin() * (std::f64::consts::PI * x / 3.0).sin() * 3.0
                / (std::f64::consts::PI * x).powi(2)
        }
    };
    for degrees in [7.0f64, 45.0, 161.0] {
        let result =
            turned(&source, Rotation::clockwise(degrees), (60.0, 44.0), Rect { x: 0, y: 0, size }, Color::WHITE);
        let (sin, cos) = degrees.to_radians().sin_cos();
        let (mut squares, mut count) = (0.0, 0.0);
        for (x, y) in (0..44).flat_map(|y| (0..60).map(move |x| (x, y))) {
            let (dx, dy) = (f64::from(x) + 0.5 - 30.0, f64::from(y) + 0.5 - 22.0);
            let (u, v) = (cos * dx + sin * dy + 29.5, cos * dy - sin * dx + 21.5);
            if !(3.0..56.0).contains(&u) || !(3.0..40.0).contains(&v) {
                continue;
            }
            let (mut sum, mut weights) = (0.0, 0.0);
            for (sx, sy) in (0..44).flat_map(|sy| (0..60).map(move |sx| (sx, sy))) {
                let weight = lobe(u - f64::from(sx)) * lobe(v - f64::from(sy));
                sum += weight * f64::from(source.pixel(sx, sy).unwrap()[0]);
                weights += weight;
            }
            let exact = (sum / weights).clamp(0.0, 255.0);
            squares += (f64::from(result.pixel(x, y).unwrap()[0]) - exact).powi(2);
            count += 1.0;
        }
        let quality = 10.0 * (255.0f64.powi(2) * count / squares).log10();
        assert!(count > 900.0 && quality > 54.0, "{degrees}: {quality:.1} dB over {count} pixels");
    }
}

#[test]
fn a_box_holds_what_is_turned_and_no_more() {
    let bounding = |degrees: f64, size: (f64, f64)| Rotation::clockwise(degrees).bounding(size);
    assert_eq!(bounding(45.0, (100.0, 100.0)), (142.0, 142.0));
    assert_eq!(bounding(30.0, (100.0, 50.0)), (112.0, 94.0));
    assert_eq!(bounding(0.000_01, (100.0, 50.0)), (100.0, 50.0));
    assert_eq!(bounding(180.0, (100.0, 50.0)), (100.0, 50.0));
    assert_eq!(bounding(45.0, (1.0, 1.0)), (2.0, 2.0));
}
