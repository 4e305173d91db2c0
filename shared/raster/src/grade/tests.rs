use proptest::prelude::*;

use super::*;
use crate::bitmap::Channels;
use crate::decode::decode;
use crate::format::{FormatChoice, OutputFormat};
use crate::testing::*;

const AUTO: Finish = Finish { choice: FormatChoice::Auto, quality: 85 };

fn graded(color: [u8; 3], params: &Grade) -> [u8; 3] {
    let mut image = Bitmap::new(Size::new(1, 1), Channels::Rgb, color.to_vec()).unwrap();
    grade(&mut image, params);
    [image.pixels()[0], image.pixels()[1], image.pixels()[2]]
}

/// The module's formulas in floating point, without tables.
fn reference(color: [u8; 3], params: &Grade) -> [f64; 3] {
    let light = |v: f64| if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) };
    let encoded = |v: f64| if v <= 0.0031308 { v * 12.92 } else { 1.055 * v.powf(1.0 / 2.4) - 0.055 };
    let stops = [params.temperature / 200.0, -params.tint / 200.0, -params.temperature / 200.0];
    let mut v: [f64; 3] = std::array::from_fn(|c| {
        let v = encoded((light(f64::from(color[c]) / 255.0) * (stops[c] + params.exposure).exp2()).min(1.0));
        let v = (v * (1.0 + params.brightness / 100.0) - 0.5) * (1.0 + params.contrast / 100.0) + 0.5;
        let v = v.clamp(0.0, 1.0);
        let (h, s) = (params.highlights / 100.0, params.shadows / 100.0);
        let v = v + h * v * v * (1.0 - v) + s * v * (1.0 - v) * (1.0 - v);
        v.clamp(0.0, 1.0).powf(1.0 / params.gamma)
    });
    let luma = (54.0 * v[0] + 183.0 * v[1] + 19.0 * v[2]) / 256.0;
    let spread = v.iter().fold(0.0f64, |a, b| a.max(*b)) - v.iter().fold(1.0f64, |a, b| a.min(*b));
    let factor = (1.0 + params.saturation / 100.0) * (1.0 + params.vibrance / 100.0 * (1.0 - spread));
    v = v.map(|v| (luma + (v - luma) * factor).clamp(0.0, 1.0));
    v.map(|v| v * 255.0)
}

#[test]
fn all_zero_changes_no_pixel_of_any_kind() {
    for image in [photo(67, 41), drawn(67, 41, Channels::Rgba, |x, y| [x as u8, y as u8, 9, (x * y) as u8])] {
        let mut same = image.clone();
        grade(&mut same, &Grade::NEUTRAL);
        assert_eq!(same, image);
        grade(&mut same, &Grade { preset: Preset::Sepia, intensity: 0.0, ..Grade::NEUTRAL });
        assert_eq!(same, image);
        let output = transform(&written(&image, OutputFormat::Png, 85), &Grade::NEUTRAL, AUTO).unwrap();
        let read = decode(&output.bytes).unwrap();
        assert_eq!(read, image);
    }
}

#[test]
fn saturation_and_vibrance_follow_their_formulas() {
    let saturation = |saturation: f64| Grade { saturation, ..Grade::NEUTRAL };
    let vibrance = |vibrance: f64| Grade { vibrance, ..Grade::NEUTRAL };
    // Luma of (200, 100, 50): (54·200 + 183·100 + 19·50) / 256 = 117.4
    assert_eq!(graded([200, 100, 50], &saturation(-100.0)), [117; 3]);
    assert_eq!(graded([200, 100, 50], &saturation(50.0)), [241, 91, 16]);
    for amount in [-100.0, -33.0, 50.0, 100.0] {
        assert_eq!(graded([91; 3], &saturation(amount)), [91; 3], "gray stays gray");
        assert_eq!(graded([255, 0, 0], &vibrance(amount)), [255, 0, 0], "fully saturated stays");
    }
    let moved = |color: [u8; 3]| {
        let after = graded(color, &vibrance(100.0));
        f64::from(after[0] - after[2]) / f64::from(color[0] - color[2])
    };
    assert!(moved([120, 110, 100]) > 1.8 && moved([220, 110, 20]) < 1.35);
}

#[test]
fn presets_follow_their_formulas_and_their_intensity() {
    let preset = |preset, intensity| Grade { preset, intensity, ..Grade::NEUTRAL };
    // Luma 117.4·1.3 - 0.15·255.
    assert_eq!(graded([200, 100, 50], &preset(Preset::Noir, 100.0)), [114; 3]);
    // W3C: 0.393·200 + 0.769·100 + 0.189·50 …
    assert_eq!(graded([200, 100, 50], &preset(Preset::Sepia, 100.0)), [165, 147, 114]);
    // At half intensity, within one level: (200 + 164.95) / 2 …
    let half = graded([200, 100, 50], &preset(Preset::Sepia, 50.0));
    assert!(half.iter().zip([182u8, 123, 82]).all(|(sample, exact)| sample.abs_diff(exact) <= 1), "{half:?}");
    assert_eq!(graded([200, 100, 50], &preset(Preset::Warm, 100.0)), [216, 102, 44]);
    assert_eq!(graded([200, 100, 50], &preset(Preset::Cool, 100.0)), [180, 100, 55]);
    assert_eq!(graded([0; 3], &preset(Preset::Faded, 100.0)), [26; 3]);
    assert_eq!(graded([255; 3], &preset(Preset::Faded, 100.0)), [240; 3]);
    let vivid = graded([200, 100, 50], &preset(Preset::Vivid, 100.0));
    assert!(vivid[0] > 215 && vivid[2] < 25, "{vivid:?}");
    for grey in [0, 1, 64, 128, 200, 254, 255] {
        for look in [Preset::Noir, Preset::Vivid, Preset::Faded] {
            let [r, g, b] = graded([grey; 3], &preset(look, 70.0));
            assert!(r.abs_diff(g) <= 1 && g.abs_diff(b) <= 1, "{look:?} shifts gray {grey}: {r} {g} {b}");
        }
    }
}

#[test]
fn greys_stay_grey_and_alpha_stays() {
    let image = drawn(256, 1, Channels::Rgba, |x, _| [x as u8, x as u8, x as u8, 255 - x as u8]);
    let mut after = image.clone();
    let params = Grade {
        exposure: 0.7,
        brightness: 5.0,
        contrast: 20.0,
        saturation: 60.0,
        vibrance: 40.0,
        highlights: -30.0,
        shadows: 30.0,
        gamma: 1.2,
        ..Grade::NEUTRAL
    };
    grade(&mut after, &params);
    for (before, after) in image.pixels().chunks_exact(4).zip(after.pixels().chunks_exact(4)) {
        assert!(after[0] == after[1] && after[1] == after[2] && after[3] == before[3], "{before:?} {after:?}");
    }
}

#[test]
fn wide_and_plain_loops_agree_at_every_length() {
    // Compares blocks of 64 pixels and a remainder with single pixels.
    let params = Grade { saturation: 30.0, vibrance: -20.0, preset: Preset::Vivid, intensity: 40.0, ..Grade::NEUTRAL };
    for width in [1, 63, 64, 65, 131] {
        let image = photo(width, 3);
        let mut whole = image.clone();
        grade(&mut whole, &params);
        for (before, after) in image.pixels().chunks_exact(3).zip(whole.pixels().chunks_exact(3)) {
            assert_eq!(graded([before[0], before[1], before[2]], &params), after);
        }
    }
}

proptest! {
    #[test]
    fn every_colour_is_within_a_level_of_the_formulas(
        color: [u8; 3],
        exposure in -5.0f64..=5.0,
        (brightness, contrast, saturation, vibrance) in
            (-100.0f64..=100.0, -100.0f64..=100.0, -100.0f64..=100.0, -100.0f64..=100.0),
        (temperature, tint, highlights, shadows) in
            (-100.0f64..=100.0, -100.0f64..=100.0, -100.0f64..=100.0, -100.0f64..=100.0),
        gamma in 0.1f64..=5.0,
    ) {
        let params = Grade {
            exposure, brightness, contrast, saturation, vibrance, temperature, tint, highlights, shadows, gamma,
            ..Grade::NEUTRAL
        };
        let after = graded(color, &params);
        for (sample, exact) in after.iter().zip(reference(color, &params)) {
            prop_assert!((f64::from(*sample) - exact).abs() <= 1.0, "{:?} → {:?}, exactly {:?}", color, after, reference(color, &params));
        }
    }
}
