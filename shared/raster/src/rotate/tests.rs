use proptest::prelude::*;

use super::*;
use crate::decode::decode;
use crate::format::{FormatChoice, OutputFormat};
use crate::testing::*;

const PNG: Finish = Finish { choice: FormatChoice::Png, quality: 85 };

fn by(degrees: f64) -> Rotate {
    Rotate { degrees, expand: true, flip: Flip::None, background: Color::TRANSPARENT }
}

fn read(bytes: &[u8]) -> Bitmap {
    decode(bytes).unwrap()
}

fn run(image: &Bitmap, rotate: &Rotate) -> Bitmap {
    read(&transform(&written(image, OutputFormat::Png, 85), rotate, PNG).unwrap().bytes)
}

#[test]
fn quarter_turns_and_flips_move_pixels_and_change_none() {
    let source = photo(31, 20);
    for (degrees, rotation) in [
        (0.0, Orientation::Normal),
        (-0.0, Orientation::Normal),
        (90.0, Orientation::Rotate90),
        (-270.0, Orientation::Rotate90),
        (180.0, Orientation::Rotated180),
        (-180.0, Orientation::Rotated180),
        (270.0, Orientation::Rotate270),
        (-90.0, Orientation::Rotate270),
        (360.0, Orientation::Normal),
        (-360.0, Orientation::Normal),
    ] {
        for flip in [Flip::None, Flip::Horizontal, Flip::Vertical, Flip::Both] {
            let expected = rotation.apply(Orientation::from(flip).apply(source.clone()));
            assert_eq!(run(&source, &Rotate { flip, ..by(degrees) }), expected, "{degrees} {flip:?}");
        }
    }
    let turned = run(&source, &by(90.0));
    assert_eq!(turned.pixel(19, 0), source.pixel(0, 0), "clockwise: top left goes to top right");
}

#[test]
fn a_flip_comes_before_the_turn() {
    let source = photo(31, 20);
    let result = run(&source, &Rotate { flip: Flip::Horizontal, ..by(90.0) });
    assert_eq!(result.pixel(19, 30), source.pixel(0, 0));
}

#[test]
fn a_quarter_turn_that_keeps_its_size_is_centred() {
    let source = photo(9, 4);
    let blue = Color { r: 0, g: 0, b: 255, a: 255 };
    let kept = run(&source, &Rotate { expand: false, background: blue, ..by(90.0) });
    assert_eq!((kept.size(), kept.channels()), (source.size(), Channels::Rgb));
    let turned = Orientation::Rotate90.apply(source.clone());
    // Four columns are centered in nine: two remain on the left, three on the right. Nine rows are
    // centered in four: two are cut off above, three below.
    for (x, y) in (0..4).flat_map(|y| (0..9).map(move |x| (x, y))) {
        let expected = if (2..6).contains(&x) { turned.pixel(x - 2, y + 2) } else { Some([0, 0, 255, 255]) };
        assert_eq!(kept.pixel(x, y), expected, "{x}, {y}");
    }
    assert_eq!(run(&source, &Rotate { expand: false, ..by(180.0) }).size(), source.size());
}

#[test]
fn sizes_follow_the_formula() {
    let size = |degrees: f64, expand: bool| plan(Size::new(100, 50), &Rotate { expand, ..by(degrees) }).unwrap();
    assert_eq!(size(30.0, true), Size::new(112, 94));
    assert_eq!(size(-30.0, true), Size::new(112, 94));
    assert_eq!(size(150.0, true), Size::new(112, 94));
    assert_eq!(size(30.0, false), Size::new(100, 50));
    assert_eq!(size(90.0, true), Size::new(50, 100));
    assert_eq!(size(90.0, false), Size::new(100, 50));
    assert_eq!(plan(Size::new(16_384, 1000), &by(5.0)), Err(PlanError::SideTooLong));
    assert_eq!(plan(Size::new(9_999, 9_999), &by(45.0)), Err(PlanError::TooManyPixels));
    assert!(plan(Size::new(9_999, 9_999), &Rotate { expand: false, ..by(45.0) }).is_ok());
    assert_eq!(plan(Size::new(20_000, 100), &Rotate { expand: false, ..by(0.0) }), Err(PlanError::SideTooLong));
}

/// A smooth image that is defined at any point, relative to its center.
fn analytic(x: f64, y: f64) -> [f64; 3] {
    [
        127.5 + 90.0 * (x / 9.0).sin() * (y / 11.0).cos(),
        127.5 + 90.0 * ((x + 2.0 * y) / 17.0).cos(),
        127.5 + 1.2 * x - 0.7 * y,
    ]
}

#[test]
fn any_angle_agrees_with_an_analytic_image_at_pixel_centres() {
    let (width, height) = (91u32, 64u32);
    let at = |x: u32, of: u32| f64::from(x) + 0.5 - f64::from(of) / 2.0;
    let source = drawn(width, height, Channels::Rgb, |x, y| {
        let [r, g, b] = analytic(at(x, width), at(y, height)).map(|sample| sample.round().clamp(0.0, 255.0) as u8);
        [r, g, b, 255]
    });
    for degrees in [0.001, 1.0, 12.0, 33.3, 45.0, 89.9, 90.1, 135.0, 201.0, 300.0, -12.0] {
        for expand in [true, false] {
            let result = run(&source, &Rotate { expand, ..by(degrees) });
            let (sin, cos) = degrees.to_radians().sin_cos();
            let (mut worst, mut squares, mut count) = (0.0f64, 0.0, 0u32);
            for (x, y) in (0..result.height()).flat_map(|y| (0..result.width()).map(move |x| (x, y))) {
                let (dx, dy) = (at(x, result.width()), at(y, result.height()));
                let (sx, sy) = (cos * dx + sin * dy, cos * dy - sin * dx);
                let inside = f64::from(width) / 2.0 - sx.abs() > 2.0 && f64::from(height) / 2.0 - sy.abs() > 2.0;
                let outside = sx.abs() - f64::from(width) / 2.0 > 1.0 || sy.abs() - f64::from(height) / 2.0 > 1.0;
                let pixel = result.pixel(x, y).unwrap();
                if outside {
                    assert_eq!(pixel, [0; 4], "{degrees}: {x}, {y}");
                } else if inside {
                    assert_eq!(pixel[3], 255, "{degrees}: {x}, {y}");
                    for (sample, expected) in pixel.iter().zip(analytic(sx, sy)) {
                        let off = f64::from(*sample) - expected.clamp(0.0, 255.0);
                        worst = worst.max(off.abs());
                        squares += off * off;
                        count += 1;
                    }
                }
            }
            let quality = 10.0 * (255.0f64.powi(2) * f64::from(count) / squares).log10();
            assert!(quality > 50.0 && worst < 3.0, "{degrees}: {quality:.1} dB, worst {worst:.2}");
        }
    }
}

#[test]
fn edges_are_smooth_and_show_no_fringe() {
    let red = Color { r: 255, g: 0, b: 0, a: 255 };
    let square = Bitmap::filled(Size::new(40, 40), Channels::Rgb, red);
    let clear = run(&square, &by(30.0));
    let mut partial = 0;
    for pixel in clear.pixels().chunks_exact(4) {
        match pixel[3] {
            0 => {}
            alpha => {
                assert_eq!(pixel[..3], [255, 0, 0], "the color of the image at every alpha");
                partial += u32::from(alpha < 255);
            }
        }
    }
    assert!(partial > 100, "an edge of {partial} pixels");
    // The covered area equals that of the square, to one percent.
    let area: f64 = clear.pixels().chunks_exact(4).map(|pixel| f64::from(pixel[3]) / 255.0).sum();
    assert!((area - 1600.0).abs() < 16.0, "{area}");
    let over = run(&square, &Rotate { background: Color { r: 0, g: 0, b: 255, a: 255 }, ..by(30.0) });
    assert_eq!(over.channels(), Channels::Rgb);
    for pixel in over.pixels().chunks_exact(3) {
        assert!(pixel[1] == 0 && (254..=256).contains(&(u16::from(pixel[0]) + u16::from(pixel[2]))), "{pixel:?}");
    }
}

#[test]
fn hidden_colours_stay_hidden() {
    let source = drawn(40, 40, Channels::Rgba, |x, _| if x < 20 { [200, 40, 0, 255] } else { [0, 255, 255, 0] });
    for pixel in run(&source, &by(17.0)).pixels().chunks_exact(4).filter(|pixel| pixel[3] > 16) {
        assert!(pixel[0].abs_diff(200) <= 8 && pixel[1].abs_diff(40) <= 8 && pixel[2] <= 8, "{pixel:?}");
    }
}

#[test]
fn the_background_shows_through_in_its_own_alpha() {
    let half = Color { r: 10, g: 200, b: 30, a: 128 };
    let result = run(&photo(30, 30), &Rotate { background: half, ..by(45.0) });
    assert_eq!(result.pixel(0, 0), Some([10, 200, 30, 128]));
    let auto = Finish { choice: FormatChoice::Auto, quality: 85 };
    let file = jpeg(&photo(30, 30), &Jpeg::default());
    let format = |rotate: &Rotate| transform(&file, rotate, auto).unwrap().format;
    assert_eq!(format(&by(45.0)), OutputFormat::Png);
    assert_eq!(format(&by(90.0)), OutputFormat::Jpeg);
    assert_eq!(format(&Rotate { background: Color::WHITE, ..by(45.0) }), OutputFormat::Jpeg);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_angle_gives_its_planned_size(
        (width, height) in (1u32..60, 1u32..60),
        degrees in -360.0f64..=360.0,
        expand: bool,
        alpha: bool,
    ) {
        let channels = if alpha { Channels::Rgba } else { Channels::Rgb };
        let source = drawn(width, height, channels, |x, y| [x as u8, y as u8, 7, (x * y) as u8]);
        let rotate = Rotate { expand, ..by(degrees) };
        let result = run(&source, &rotate);
        prop_assert_eq!(result.size(), plan(source.size(), &rotate).unwrap());
        prop_assert_eq!(run(&source, &rotate), result);
    }
}
