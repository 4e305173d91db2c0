use proptest::prelude::*;

use super::*;
use crate::bitmap::Channels;
use crate::format::{FormatChoice, OutputFormat};
use crate::orientation::Orientation;
use crate::testing::*;

const PNG: Finish = Finish { choice: FormatChoice::Png, quality: 85 };

fn plain() -> Overlay {
    Overlay { anchor: Anchor::TopLeft, offset: (0, 0), scale: 25.0, opacity: 100.0, rotate: 0.0, blend: Blend::Normal }
}

fn read(bytes: &[u8]) -> Bitmap {
    decode(bytes).unwrap()
}

fn png(image: &Bitmap) -> Vec<u8> {
    written(image, OutputFormat::Png, 85)
}

fn run(image: &Bitmap, overlay: &Bitmap, params: &Overlay) -> Bitmap {
    read(&transform(&png(image), &png(overlay), params, PNG).unwrap().bytes)
}

/// The bounds of the changed pixels: left, top, right and bottom, all inclusive.
fn changed(before: &Bitmap, after: &Bitmap) -> Option<(u32, u32, u32, u32)> {
    let differs = |(x, y): &(u32, u32)| before.pixel(*x, *y) != after.pixel(*x, *y);
    let places = (0..before.height()).flat_map(|y| (0..before.width()).map(move |x| (x, y))).filter(differs);
    places.fold(None, |found, (x, y)| match found {
        None => Some((x, y, x, y)),
        Some((left, top, right, bottom)) => Some((left.min(x), top.min(y), right.max(x), bottom.max(y))),
    })
}

fn white(width: u32, height: u32) -> Bitmap {
    Bitmap::filled(Size::new(width, height), Channels::Rgb, Color::WHITE)
}

fn red(width: u32, height: u32) -> Bitmap {
    Bitmap::filled(Size::new(width, height), Channels::Rgb, Color { r: 255, g: 0, b: 0, a: 255 })
}

#[test]
fn an_overlay_of_its_own_size_is_copied_pixel_for_pixel_at_every_anchor_and_offset() {
    let (image, overlay) = (white(100, 80), photo(25, 21));
    for anchor in Anchor::ALL {
        for (offset_x, offset_y) in [(0, 0), (3, -2), (-1, 5)] {
            let params = Overlay { anchor, offset: (offset_x, offset_y), ..plain() };
            let result = run(&image, &overlay, &params);
            let (x, y) = anchor.place(Size::new(25, 21), image.size());
            let mut expected = image.clone();
            let (x, y) = (i64::from(x) + offset_x, i64::from(y) + offset_y);
            for (column, row) in (0..21).flat_map(|y| (0..25).map(move |x| (x, y))) {
                let (to_x, to_y) = (x + i64::from(column), y + i64::from(row));
                if (0..100).contains(&to_x) && (0..80).contains(&to_y) {
                    let at = (to_y * 300 + to_x * 3) as usize;
                    expected.pixels_mut()[at..at + 3].copy_from_slice(&overlay.pixel(column, row).unwrap()[..3]);
                }
            }
            assert_eq!(result, expected, "{anchor:?} {offset_x} {offset_y}");
        }
    }
}

#[test]
fn scaled_sizes_round_half_up_and_are_at_least_one() {
    let size = |image: u32, overlay: (u32, u32), scale: f64| {
        let size = scaled_size(Size::new(image, 9), Size::new(overlay.0, overlay.1), scale);
        (size.width, size.height)
    };
    assert_eq!(size(100, (50, 50), 25.0), (25, 25));
    assert_eq!(size(10, (50, 50), 25.0), (3, 3), "2.5 columns");
    assert_eq!(size(100, (4, 3), 0.1), (1, 1));
    assert_eq!(size(1000, (4, 3), 400.0), (4000, 3000));
    assert_eq!(size(3, (4, 2), 100.0), (3, 2), "1.5 rows");
    assert_eq!(size(16_384, (1, 30_000), 400.0), (65_536, 1_966_080_000));
}

#[test]
fn an_overlay_outside_changes_nothing_and_one_across_the_edge_is_cut() {
    let (image, overlay) = (photo(60, 40), red(30, 30));
    for offset in [(60, 0), (-15, 0), (0, 40), (0, -15), (i64::MAX, i64::MAX), (i64::MIN, i64::MIN)] {
        assert_eq!(run(&image, &overlay, &Overlay { offset, ..plain() }), image, "{offset:?}");
    }
    let cut = run(&image, &overlay, &Overlay { offset: (-14, 38), ..plain() });
    assert_eq!(changed(&image, &cut), Some((0, 38, 0, 39)));
    let huge = run(&image, &overlay, &Overlay { scale: 400.0, anchor: Anchor::Center, ..plain() });
    assert!(huge.pixels().chunks_exact(3).all(|pixel| pixel == [255, 0, 0]));
}

#[test]
fn the_tallest_overlay_costs_no_more_than_the_image() {
    let needle = red(1, 30_000);
    for rotate in [0.0, 90.0, 30.0] {
        let result = run(&white(64, 48), &needle, &Overlay { scale: 400.0, rotate, anchor: Anchor::Center, ..plain() });
        assert!(result.pixels().chunks_exact(3).all(|pixel| pixel == [255, 0, 0]), "{rotate}");
    }
}

#[test]
fn it_is_scaled_then_turned_then_anchored() {
    let (image, overlay) = (white(100, 100), photo(20, 10));
    // 20 × 10 pixels rotated by 90 degrees are 10 × 20 pixels, placed in the lower right corner.
    let params = Overlay { scale: 20.0, rotate: 90.0, anchor: Anchor::BottomRight, ..plain() };
    let result = run(&image, &overlay, &params);
    assert_eq!(changed(&image, &result), Some((90, 80, 99, 99)));
    let turned = Orientation::Rotate90.apply(overlay.clone());
    assert_eq!(result.cropped(Rect { x: 90, y: 80, size: turned.size() }), turned);
    // At 45 degrees, both sides of the bounding box are ceil(30 / √2).
    let red = red(20, 10);
    let result = run(&image, &red, &Overlay { rotate: 45.0, ..params });
    let (left, top, right, bottom) = changed(&image, &result).unwrap();
    assert!((78..=80).contains(&left) && (78..=80).contains(&top) && right == 99 && bottom == 99);
}

#[test]
fn turning_while_enlarging_agrees_with_enlarging_first() {
    let image = white(200, 200);
    let small = photo(40, 30);
    let params = Overlay { scale: 50.0, anchor: Anchor::Center, ..plain() };
    for rotate in [10.0, 45.0, 200.0] {
        let direct = run(&image, &small, &Overlay { rotate, ..params });
        let enlarged = crate::resize::stretched(&small, Size::new(100, 75));
        let first = run(&image, &enlarged, &Overlay { rotate, ..params });
        let quality = psnr(direct.pixels(), first.pixels());
        assert!(quality > 33.0, "{rotate}: {quality:.1} dB");
    }
}

#[test]
fn a_scaled_overlay_has_no_fringe() {
    let disc = drawn(80, 80, Channels::Rgba, |x, y| {
        let (dx, dy) = (f64::from(x) - 39.5, f64::from(y) - 39.5);
        if dx * dx + dy * dy < 900.0 { [255, 255, 255, 255] } else { [0, 0, 0, 0] }
    });
    for rotate in [0.0, 90.0, 33.0] {
        for scale in [10.0, 37.0, 90.0] {
            let result = run(&white(100, 100), &disc, &Overlay { rotate, scale, ..plain() });
            let darkest = result.pixels().iter().min().unwrap();
            assert!(*darkest >= 253, "white on white at {scale} % and {rotate}: {darkest}");
        }
    }
}

#[test]
fn orientation_applies_to_both_images() {
    let image = with_exif(&jpeg(&white(40, 80), &Jpeg::default()), 6);
    let overlay = with_exif(&jpeg(&quarters(40, 20), &Jpeg::default()), 8);
    let output = transform(&image, &overlay, &Overlay { scale: 25.0, ..plain() }, PNG).unwrap();
    assert_eq!((output.width, output.height), (80, 40));
    let result = read(&output.bytes);
    // Rotated counterclockwise: green moves from the top right to the top left of the 20 × 40
    // overlay.
    let corner = result.pixel(3, 4).unwrap();
    assert!(corner[1] > 220 && corner[0] < 40, "{corner:?}");
    assert_eq!(changed(&white(80, 40), &result).map(|(left, top, ..)| (left, top)), Some((0, 0)));
}

#[test]
fn the_format_follows_the_image_below_and_its_alpha() {
    let auto = Finish { choice: FormatChoice::Auto, quality: 85 };
    let clear = png(&drawn(20, 20, Channels::Rgba, |_, _| [1, 2, 3, 40]));
    let file = jpeg(&photo(40, 40), &Jpeg::default());
    assert_eq!(transform(&file, &clear, &plain(), auto).unwrap().format, OutputFormat::Jpeg);
    assert_eq!(transform(&clear, &file, &plain(), auto).unwrap().format, OutputFormat::Png);
    assert_eq!(plan(Size::new(16_385, 1)), Err(PlanError::SideTooLong));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_result_has_the_size_of_the_image_whatever_lies_on_it(
        (width, height) in (1u32..50, 1u32..50),
        overlay in (1u32..50, 1u32..50),
        offset in (-60i64..60, -60i64..60),
        scale in 0.1f64..=400.0,
        rotate in -360.0f64..=360.0,
        anchor in 0usize..9,
        alpha: bool,
    ) {
        let channels = if alpha { Channels::Rgba } else { Channels::Rgb };
        let image = drawn(width, height, channels, |x, y| [x as u8, y as u8, 7, (x * y) as u8]);
        let overlay = drawn(overlay.0, overlay.1, channels, |x, y| [y as u8, 7, x as u8, (x + y) as u8]);
        let params = Overlay { offset, scale, rotate, anchor: Anchor::ALL[anchor], ..plain() };
        let result = run(&image, &overlay, &params);
        prop_assert_eq!(result.size(), image.size());
        prop_assert_eq!(run(&image, &overlay, &params), result);
    }
}
