//! The tone curves: steps 1 to 5 of the grade, as one table per channel.

use super::Grade;

/// The value of white in a table. Tables contain sixteenths of a level, so that later steps are not
/// affected by rounding.
pub(super) const WHITE: i32 = 255 * 16;

/// The tables for red, green and blue. They map a level to sixteenths of a level.
pub(super) fn tables(grade: &Grade) -> [[u16; 256]; 3] {
    let (temperature, tint) = (grade.temperature / 200.0, grade.tint / 200.0);
    let stops = [temperature, -tint, -temperature].map(|stops| stops + grade.exposure);
    stops.map(|stops| {
        std::array::from_fn(|level| {
            let value = level as f64 / 255.0;
            // The value is from 0 to 4080.
            (toned(value, stops, grade) * f64::from(WHITE)).round() as u16
        })
    })
}

/// Applies all steps to one sample. Neutral steps are skipped, so that they cannot cause rounding.
fn toned(mut value: f64, stops: f64, grade: &Grade) -> f64 {
    if stops != 0.0 {
        value = encoded((linear(value) * stops.exp2()).min(1.0));
    }
    if grade.brightness != 0.0 {
        value *= 1.0 + grade.brightness / 100.0;
    }
    if grade.contrast != 0.0 {
        value = (value - 0.5) * (1.0 + grade.contrast / 100.0) + 0.5;
    }
    value = value.clamp(0.0, 1.0);
    let (highlights, shadows) = (grade.highlights / 100.0, grade.shadows / 100.0);
    let dark = 1.0 - value;
    value += highlights * value * value * dark + shadows * value * dark * dark;
    if grade.gamma != 1.0 {
        value = value.clamp(0.0, 1.0).powf(1.0 / grade.gamma);
    }
    value.clamp(0.0, 1.0)
}

/// Converts sRGB to linear light (IEC 61966-2-1).
fn linear(value: f64) -> f64 {
    if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
}

/// Converts linear light to sRGB.
fn encoded(light: f64) -> f64 {
    if light <= 0.003_130_8 { light * 12.92 } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(value: u8, grade: &Grade) -> [u8; 3] {
        tables(grade).map(|table| ((table[usize::from(value)] + 8) / 16) as u8)
    }

    #[test]
    fn neutral_tables_change_nothing() {
        for table in tables(&Grade::NEUTRAL) {
            assert!(table.iter().enumerate().all(|(level, value)| usize::from(*value) == level * 16));
        }
    }

    #[test]
    fn each_step_follows_its_formula() {
        let of = |change: fn(&mut Grade), value: u8| {
            let mut grade = Grade::NEUTRAL;
            change(&mut grade);
            level(value, &grade)
        };
        // One stop doubles linear light: 118 is 0.1812 and 162 is 0.3623.
        assert_eq!(of(|grade| grade.exposure = 1.0, 118), [162; 3]);
        assert_eq!(of(|grade| grade.exposure = -1.0, 162), [118; 3]);
        assert_eq!(of(|grade| grade.exposure = 5.0, 255), [255; 3]);
        assert_eq!(of(|grade| grade.exposure = 5.0, 0), [0; 3]);
        assert_eq!(of(|grade| grade.brightness = 50.0, 100), [150; 3]);
        assert_eq!(of(|grade| grade.brightness = -100.0, 200), [0; 3]);
        assert_eq!(of(|grade| grade.contrast = 100.0, 100), [73; 3]);
        assert_eq!(of(|grade| grade.contrast = -100.0, 7), [128; 3]);
        // (100/255)^(1/2) and (100/255)^2: above 1 brightens.
        assert_eq!(of(|grade| grade.gamma = 2.0, 100), [160; 3]);
        assert_eq!(of(|grade| grade.gamma = 0.5, 100), [39; 3]);
        // 0.2 + 0.2·0.8² and 0.8 - 0.8²·0.2
        assert_eq!(of(|grade| grade.shadows = 100.0, 51), [84; 3]);
        assert_eq!(of(|grade| grade.highlights = -100.0, 204), [171; 3]);
        for value in [0, 255] {
            assert_eq!(of(|grade| (grade.shadows, grade.highlights) = (100.0, -100.0), value), [value; 3]);
        }
        let [r, g, b] = of(|grade| grade.temperature = 100.0, 128);
        assert!(r > 128 && g == 128 && b < 128, "{r} {g} {b}");
        let [r, g, b] = of(|grade| grade.tint = 100.0, 128);
        assert!(r == 128 && g < 128 && b == 128, "{r} {g} {b}");
    }

    #[test]
    fn brightness_comes_before_contrast_and_both_before_gamma() {
        let grade = Grade { brightness: 50.0, contrast: 100.0, gamma: 2.0, ..Grade::NEUTRAL };
        // 100 → 150 → 172.5 → 255·(172.5/255)^(1/2)
        assert_eq!(level(100, &grade), [210; 3]);
    }

    #[test]
    fn no_setting_turns_the_order_of_two_tones() {
        for highlights in [-100.0, -50.0, 0.0, 100.0] {
            for shadows in [-100.0, 0.0, 50.0, 100.0] {
                for (exposure, contrast, gamma) in [(0.0, 0.0, 1.0), (-2.0, 30.0, 0.4), (3.0, -60.0, 5.0)] {
                    let grade = Grade { highlights, shadows, exposure, contrast, gamma, ..Grade::NEUTRAL };
                    assert!(tables(&grade)[0].is_sorted(), "{grade:?}");
                }
            }
        }
    }
}
