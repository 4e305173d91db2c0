use proptest::prelude::*;

use super::*;
use crate::decode::decode;
use crate::geometry::{Anchor, Size};
use crate::testing::*;

fn params(width: impl Into<Option<u32>>, height: impl Into<Option<u32>>) -> Resize {
    Resize::new(Bounds::new(width.into(), height.into()).unwrap())
}

fn fitted(width: u32, height: u32, fit: Fit, enlarge: bool) -> Resize {
    Resize { fit, enlarge, ..params(width, height) }
}

fn output(source: (u32, u32), resize: &Resize) -> (u32, u32) {
    let Size { width, height } = plan(Size::new(source.0, source.1), resize).unwrap().output();
    (width, height)
}

const FITS: [Fit; 5] = [Fit::Inside, Fit::Cover, Fit::Contain, Fit::Fill, Fit::Outside];

#[test]
fn bounds_need_one_side_that_is_not_zero() {
    assert!(Bounds::new(None, None).is_none());
    assert!(Bounds::new(Some(0), None).is_none());
    assert!(Bounds::new(Some(5), Some(0)).is_none());
    assert!(Bounds::new(Some(1), None).is_some());
    assert!(Bounds::new(None, Some(1)).is_some());
}

#[test]
fn fits_are_read_by_name() {
    for (name, fit) in ["inside", "cover", "contain", "fill", "outside"].iter().zip(FITS) {
        assert_eq!(name.parse(), Ok(fit));
    }
    assert!("scale-down".parse::<Fit>().is_err());
}

#[test]
fn with_one_side_the_other_follows_the_ratio_whatever_the_fit() {
    for fit in FITS {
        assert_eq!(output((400, 300), &Resize { fit, ..params(200, None) }), (200, 150));
        assert_eq!(output((400, 300), &Resize { fit, ..params(None, 600) }), (800, 600));
        let kept = Resize { fit, enlarge: false, ..params(None, 600) };
        assert_eq!(output((400, 300), &kept), (400, 300), "{fit:?}");
        let shrunk = Resize { fit, enlarge: false, ..params(100, None) };
        assert_eq!(output((400, 300), &shrunk), (100, 75), "{fit:?}");
    }
}

#[test]
fn sides_round_half_up_and_are_at_least_one() {
    // 3 × 1 at a width of 2 has a height of 0.67; 4 × 1 of 0.5; 5 × 1 of 0.4, but at least 1.
    assert_eq!(output((3, 1), &params(2, None)), (2, 1));
    assert_eq!(output((1000, 1), &params(10, None)), (10, 1));
    // 8 × 3 at a width of 4 has a height of 1.5; 8 × 5 of 2.5. At a width of 10, 100 × 49 has 4.9,
    // 100 × 44 has 4.4, and 100 × 45 has 4.5.
    assert_eq!(output((8, 3), &params(4, None)), (4, 2));
    assert_eq!(output((8, 5), &params(4, None)), (4, 3));
    assert_eq!(output((100, 44), &params(10, None)), (10, 4));
    assert_eq!(output((100, 45), &params(10, None)), (10, 5));
    assert_eq!(output((45, 100), &params(10, 10)), (5, 10));
    assert_eq!(output((100, 45), &fitted(10, 4, Fit::Outside, true)), (10, 5));
}

#[test]
fn every_fit_has_its_size_in_a_box_of_both_sides() {
    for (source, asked, enlarge, expected) in [
        // Shrinking does not depend on `enlarge`.
        ((400, 300), (100, 100), true, [(100, 75), (100, 100), (100, 100), (100, 100), (133, 100)]),
        ((400, 300), (100, 100), false, [(100, 75), (100, 100), (100, 100), (100, 100), (133, 100)]),
        ((300, 400), (100, 100), false, [(75, 100), (100, 100), (100, 100), (100, 100), (100, 133)]),
        // Both sides are enlarged.
        ((40, 30), (100, 100), true, [(100, 75), (100, 100), (100, 100), (100, 100), (133, 100)]),
        ((40, 30), (100, 100), false, [(40, 30), (30, 30), (100, 100), (30, 30), (40, 30)]),
        // Larger on one side only: the box extends beyond the image on the right.
        ((400, 30), (100, 60), true, [(100, 8), (100, 60), (100, 60), (100, 60), (800, 60)]),
        ((400, 30), (100, 60), false, [(100, 8), (50, 30), (100, 60), (50, 30), (400, 30)]),
        // Boxes that are reduced because of `enlarge: no` are rounded down and are at least 1.
        ((10, 10), (100, 33), false, [(10, 10), (10, 3), (100, 33), (10, 3), (10, 10)]),
        ((10, 10), (33, 100), false, [(10, 10), (3, 10), (33, 100), (3, 10), (10, 10)]),
        ((10, 10), (1000, 1), false, [(1, 1), (10, 1), (1000, 1), (10, 1), (10, 10)]),
        // The size of the source.
        ((40, 30), (40, 30), false, [(40, 30), (40, 30), (40, 30), (40, 30), (40, 30)]),
    ] {
        for (fit, expected) in FITS.into_iter().zip(expected) {
            let actual = output(source, &fitted(asked.0, asked.1, fit, enlarge));
            assert_eq!(actual, expected, "{source:?} into {asked:?}, {fit:?}, enlarge: {enlarge}");
        }
    }
}

#[test]
fn results_over_the_limits_are_refused_exactly() {
    let source = Size::new(100, 100);
    let refused = |resize: &Resize, source| plan(source, resize).unwrap_err();
    assert_eq!(output((16_384, 1), &fitted(16_384, 6_103, Fit::Fill, true)), (16_384, 6_103));
    assert_eq!(refused(&fitted(16_384, 6_104, Fit::Fill, true), source), PlanError::TooManyPixels);
    assert_eq!(output((1, 1), &fitted(10_000, 10_000, Fit::Fill, true)), (10_000, 10_000));
    assert_eq!(refused(&params(10_001, 10_001), source), PlanError::TooManyPixels);
    assert_eq!(refused(&fitted(16_385, 1, Fit::Fill, true), source), PlanError::SideTooLong);
    assert_eq!(output((16_384, 3), &params(16_384, None)), (16_384, 3));
    assert_eq!(refused(&params(None, 16_384), Size::new(16_385, 16_384)), PlanError::SideTooLong);
    assert_eq!(refused(&params(16_384, None), Size::new(2, 1)), PlanError::TooManyPixels);
}

#[test]
fn a_source_over_the_output_side_is_refused_when_it_would_stay() {
    let long = Size::new(30_000, 10);
    let kept = Resize { enlarge: false, ..fitted(20, 5_000, Fit::Outside, false) };
    assert_eq!(plan(long, &kept).unwrap_err(), PlanError::SideTooLong);
    assert_eq!(plan(Size::new(0, 5), &params(5, 5)).unwrap_err(), PlanError::EmptySource);
    assert_eq!(plan(Size::new(1, u32::MAX), &params(16_384, None)).unwrap_err(), PlanError::SideTooLong);
}

/// An image whose red values number the columns and whose green values number the rows.
fn numbered(width: u32, height: u32) -> Bitmap {
    drawn(width, height, Channels::Rgb, |x, y| [x as u8, y as u8, 9, 255])
}

#[test]
fn contain_pads_the_unscaled_image_at_every_anchor() {
    let source = numbered(4, 2);
    let background = Color { r: 200, g: 100, b: 50, a: 255 };
    let expected = [(0, 0), (2, 0), (5, 0), (0, 1), (2, 1), (5, 1), (0, 3), (2, 3), (5, 3)];
    for (anchor, (left, top)) in Anchor::ALL.into_iter().zip(expected) {
        let params = Resize { anchor, background, ..fitted(9, 5, Fit::Contain, false) };
        let result = resize(&source, &params).unwrap();
        let placed = drawn(9, 5, Channels::Rgb, |x, y| {
            let inside = x.checked_sub(left).zip(y.checked_sub(top)).and_then(|(x, y)| source.pixel(x, y));
            inside.unwrap_or(background.rgba())
        });
        assert_eq!(result, placed, "{anchor:?}");
    }
}

#[test]
fn cover_keeps_the_anchored_part_pixel_for_pixel() {
    // The box is as high as the source, so nothing is scaled: 9 columns are cropped to 4.
    let source = numbered(9, 3);
    for (anchor, left) in Anchor::ALL.into_iter().zip([0, 2, 5].repeat(3)) {
        let result = resize(&source, &Resize { anchor, ..fitted(4, 3, Fit::Cover, true) }).unwrap();
        assert_eq!(result, drawn(4, 3, Channels::Rgb, |x, y| source.pixel(x + left, y).unwrap()), "{anchor:?}");
    }
    let source = numbered(3, 10);
    for (anchor, top) in Anchor::ALL.into_iter().zip([0, 0, 0, 3, 3, 3, 7, 7, 7]) {
        // The requested box of 30 × 30 is reduced to 3 × 3.
        let result = resize(&source, &Resize { anchor, ..fitted(30, 30, Fit::Cover, false) }).unwrap();
        assert_eq!(result, drawn(3, 3, Channels::Rgb, |x, y| source.pixel(x, y + top).unwrap()), "{anchor:?}");
    }
}

#[test]
fn cover_is_scaling_the_whole_and_cropping() {
    let source = photo(301, 200);
    let result = resize(&source, &fitted(50, 50, Fit::Cover, true)).unwrap();
    let whole = resize(&source, &fitted(75, 50, Fit::Fill, true)).unwrap();
    let cropped = drawn(50, 50, Channels::Rgb, |x, y| whole.pixel(x + 12, y).unwrap());
    let quality = psnr(result.pixels(), cropped.pixels());
    assert!(quality > 55.0, "{quality} dB");
}

#[test]
fn every_fit_and_anchor_has_the_planned_size_on_real_pixels() {
    let source = photo(30, 20);
    for fit in FITS {
        for anchor in Anchor::ALL {
            for enlarge in [true, false] {
                for (width, height) in [(7, 11), (11, 7), (60, 10), (10, 60), (45, 45), (30, 20), (1, 1)] {
                    let params = Resize { anchor, ..fitted(width, height, fit, enlarge) };
                    let planned = plan(source.size(), &params).unwrap().output();
                    assert_eq!(resize(&source, &params).unwrap().size(), planned, "{params:?}");
                }
            }
        }
    }
}

#[test]
fn the_same_size_copies_every_pixel() {
    let source = photo(31, 17);
    for fit in FITS {
        assert_eq!(resize(&source, &fitted(31, 17, fit, true)).unwrap(), source, "{fit:?}");
    }
    assert_eq!(resize(&source, &Resize { enlarge: false, ..params(100, 100) }).unwrap(), source);
}

#[test]
fn padding_brings_alpha_only_when_it_is_transparent_and_there() {
    let source = photo(20, 10);
    let contain = |width, height, background| {
        resize(&source, &Resize { background, ..fitted(width, height, Fit::Contain, true) }).unwrap()
    };
    assert_eq!(contain(10, 10, Color::WHITE).channels(), Channels::Rgb);
    let padded = contain(10, 10, Color::TRANSPARENT);
    assert_eq!((padded.channels(), padded.pixel(0, 0), padded.is_opaque()), (Channels::Rgba, Some([0; 4]), false));
    assert_eq!(padded.pixel(5, 5).unwrap()[3], 255);
    assert_eq!(contain(10, 5, Color::TRANSPARENT).channels(), Channels::Rgb, "nothing is padded");
}

#[test]
fn padding_leaves_the_transparency_of_the_image_alone() {
    let source = drawn(2, 2, Channels::Rgba, |_, _| [10, 20, 30, 40]);
    let params = Resize { background: Color::WHITE, ..fitted(4, 2, Fit::Contain, false) };
    let result = resize(&source, &params).unwrap();
    assert_eq!(result.pixel(1, 0), Some([10, 20, 30, 40]));
    assert_eq!(result.pixel(3, 0), Some([255; 4]));
}

#[test]
fn lanczos_agrees_with_the_reference() {
    let source = photo(640, 480);
    let buffer = image::RgbImage::from_raw(640, 480, source.pixels().to_vec()).unwrap();
    for (width, height) in [(320, 240), (213, 160), (97, 31), (900, 700), (640, 100)] {
        let ours = resize(&source, &fitted(width, height, Fit::Fill, true)).unwrap();
        let reference = image::imageops::resize(&buffer, width, height, image::imageops::FilterType::Lanczos3);
        let quality = psnr(ours.pixels(), reference.as_raw());
        assert!(quality > 45.0, "{quality} dB at {width} × {height}");
    }
}

#[test]
fn transparent_pixels_lend_no_colour_to_their_neighbours() {
    // White, opaque on the left, and transparent black on the right.
    let source = drawn(64, 64, Channels::Rgba, |x, _| if x < 31 { [255; 4] } else { [0; 4] });
    for size in [16, 23, 100] {
        let result = resize(&source, &fitted(size, size, Fit::Fill, true)).unwrap();
        let mut seen_edge = false;
        for x in 0..size {
            let [r, g, b, a] = result.pixel(x, size / 2).unwrap();
            if a > 8 {
                assert!(r.min(g).min(b) >= 250, "a dark fringe at {x} of {size}: {r} {g} {b} {a}");
            }
            seen_edge |= (9..250).contains(&a);
        }
        assert!(seen_edge);
    }
}

#[test]
fn a_result_is_the_same_every_time() {
    let source = photo(200, 133);
    let params = fitted(77, 50, Fit::Cover, true);
    let first = resize(&source, &params).unwrap();
    for _ in 0..3 {
        assert_eq!(resize(&source, &params).unwrap(), first);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn plans_hold_their_promises(
        source in (1u32..=30_000, 1u32..=30_000),
        width in prop::option::of(1u32..=16_384),
        height in prop::option::of(1u32..=16_384),
        fit in prop::sample::select(FITS.to_vec()),
        enlarge in any::<bool>(),
    ) {
        // Not `prop_assume`: a quarter of all cases would be rejected, which is the allowed
        // maximum.
        if width.is_none() && height.is_none() {
            return Ok(());
        }
        let source = Size::new(source.0, source.1);
        let resize = Resize { fit, enlarge, ..params(width, height) };
        let Ok(plan) = plan(source, &resize) else { return Ok(()) };
        let (output, scaled, kept) = (plan.output(), plan.scaled(), plan.kept);
        prop_assert!(output.width >= 1 && output.height >= 1);
        prop_assert!(output.width.max(output.height) <= MAX_OUTPUT_SIDE && output.pixels() <= MAX_OUTPUT_PIXELS);
        prop_assert!(kept.x + kept.size.width <= scaled.width && kept.y + kept.size.height <= scaled.height);
        prop_assert!(plan.offset.0 + kept.size.width <= output.width && plan.offset.1 + kept.size.height <= output.height);
        if !enlarge {
            prop_assert!(scaled.width <= source.width && scaled.height <= source.height);
        }
        if let (Some(width), Some(height), true) = (width, height, enlarge) {
            match fit {
                Fit::Inside => prop_assert!(output.width <= width && output.height <= height && (output.width == width || output.height == height)),
                Fit::Outside => prop_assert!(output.width >= width && output.height >= height && (output.width == width || output.height == height)),
                Fit::Cover | Fit::Contain | Fit::Fill => prop_assert_eq!(output, Size::new(width, height)),
            }
        }
    }

    #[test]
    fn pixels_follow_every_plan(
        source in (1u32..40, 1u32..40),
        asked in (1u32..60, 1u32..60),
        fit in prop::sample::select(FITS.to_vec()),
        anchor in prop::sample::select(Anchor::ALL.to_vec()),
        enlarge in any::<bool>(),
    ) {
        let image = photo(source.0, source.1);
        let params = Resize { anchor, ..fitted(asked.0, asked.1, fit, enlarge) };
        let planned = plan(image.size(), &params).unwrap().output();
        prop_assert_eq!(resize(&image, &params).unwrap().size(), planned);
    }
}

#[test]
fn an_image_that_becomes_narrower_and_taller_is_resampled_in_either_order_alike() {
    let size = Size::new(90, 6);
    let pixels = (0..size.height).flat_map(|y| (0..size.width).flat_map(move |x| [(x * 2) as u8, (y * 40) as u8, 99]));
    let image = Bitmap::new(size, Channels::Rgb, pixels.collect()).unwrap();
    let whole = fir::CropBox { left: 2.5, top: 0.5, width: 80.0, height: 5.0 };
    let tall = Size::new(10, 50);
    let made = resample(&image, whole, tall);
    let height_first = convolve(&image, whole, tall);
    let difference = made.pixels().iter().zip(height_first.pixels()).map(|(a, b)| a.abs_diff(*b)).max();
    assert!(difference <= Some(2), "{difference:?}");
}

#[test]
fn the_memory_estimate_of_a_photograph_is_that_of_some_of_its_rows() {
    let photograph = Header::assumed(Format::Jpeg, Size::new(4000, 3000));
    let of = |header: &Header, width| memory_bytes(header, &plan(header.size(), &params(width, None)).unwrap());
    let (full, output) = (4000 * 3000, 500 * 375);
    // The window, the image between the passes, the result and its file.
    let (steps, band) = (16 + 6, 16 + 2);
    assert_eq!(of(&photograph, 500), 4 * 2000 * (4 * steps + band) + 4 * (500 * 1500) + (4 + 8) * output);
    let crossed = 1024 * 3000;
    assert_eq!(of(&photograph, 1024), 4 * 4000 * (4 * steps + band) + 4 * crossed + (4 + 8) * (1024 * 768));
    let png = Header::assumed(Format::Png, photograph.size());
    assert_eq!(of(&png, 500), (4 + 4) * full + 4 * (4000 * 375) + (4 + 8) * output);
    // Enlarged, the image between the passes is at most as large as the result.
    assert_eq!(of(&photograph, 8000), (3 + 4) * full + 4 * (4000 * 6000 - full) + (4 + 8) * (8000 * 6000));
}

#[test]
fn a_jpeg_is_reduced_while_it_is_decoded_as_long_as_both_sides_stay_four_times_as_long_as_requested() {
    for (asked, expected) in [
        ((400, 301), 1),
        ((100, 75), 1),
        ((51, 1), 1),
        ((50, 37), 2),
        ((25, 18), 4),
        ((25, 19), 2),
        ((12, 9), 8),
        ((13, 9), 4),
        ((1, 1), 8),
        ((u32::MAX, 1), 1),
    ] {
        assert_eq!(reduction(Size::new(400, 301), Size::new(asked.0, asked.1)), expected, "{asked:?}");
    }
}

#[test]
fn the_window_of_a_source_holds_what_the_kernel_reads() {
    for (from, to) in [(1, 1), (16, 16), (3000, 768), (3000, 2999), (3000, 1), (30_000, 7)] {
        let scale = f64::from(from) / f64::from(to);
        let read = scale * f64::from(rows::STEP.min(to)) + 2.0 * (3.0 * scale + 1.0) + f64::from(crate::decode::BAND);
        assert!(f64::from(rows::window_rows(from, to)) >= read.min(f64::from(from)), "{from} to {to}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_jpeg_is_resampled_row_by_row_as_if_at_once(
        source in (1u32..150, 1u32..150),
        asked in (1u32..160, 1u32..160),
        fit in prop::sample::select(FITS.to_vec()),
        orientation in 1u16..=8,
        progressive in any::<bool>(),
        anchor in prop::sample::select(vec![Anchor::Center, Anchor::TopLeft, Anchor::BottomRight]),
    ) {
        let options = Jpeg { progressive, ..Jpeg::default() };
        let file = with_exif(&jpeg(&photo(source.0, source.1), &options), orientation);
        let whole = decode(&file).unwrap();
        let resize = Resize { anchor, background: Color::WHITE, ..fitted(asked.0, asked.1, fit, true) };
        let plan = plan(whole.size(), &resize).unwrap();
        let made = decode_resized(&file, &plan, Color::WHITE).unwrap();
        let orientation = Orientation::from_exif(orientation.into()).unwrap();
        let (stored, scaled) = (orientation.apply_to_size(whole.size()), orientation.apply_to_size(plan.scaled));
        if reduction(stored, scaled) == 1 && orientation == Orientation::Normal {
            // A value that is halfway between two may be rounded to either: its sum is taken in another order.
            let expected = super::resize(&whole, &resize).unwrap();
            prop_assert_eq!(made.size(), expected.size());
            let pairs = made.pixels().iter().zip(expected.pixels());
            prop_assert!(pairs.map(|(made, expected)| made.abs_diff(*expected)).max() <= Some(1));
        } else {
            // Turned, the height is changed before the width, and the other way round in the whole image.
            let expected = super::resize(&whole, &resize).unwrap();
            prop_assert_eq!(made.size(), expected.size());
            prop_assert!(psnr(made.pixels(), expected.pixels()) > 30.0);
        }
    }
}
