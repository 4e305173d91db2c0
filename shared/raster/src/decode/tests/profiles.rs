//! Tests of embedded ICC profiles for color, gray and CMYK.

use super::*;

#[test]
fn an_embedded_profile_is_converted_to_srgb_in_every_format() {
    let profile = ColorProfile::new_display_p3().encode().unwrap();
    // Display P3 (200, 100, 50) in sRGB, computed from the primaries and the shared transfer curve.
    let expected = p3_to_srgb([200, 100, 50]);
    assert!(expected[0] > 205, "the conversion is far from idle: {expected:?}");
    let source = drawn(16, 16, Channels::Rgb, |_, _| [200, 100, 50, 255]);
    let icc = [b"ICC_PROFILE\0\x01\x01", &profile[..]].concat();
    let webp = written(&source, OutputFormat::Webp, 100);
    let files = [
        png_with(&source, &[iccp(&profile)]),
        with_segment(&jpeg(&source, &Jpeg { quality: 100, ..Jpeg::default() }), 0xe2, &icc),
        riff(&[vp8x(0x20, 16, 16), riff_chunk(b"ICCP", &profile), webp_chunks(&webp)]),
    ];
    for (file, tolerance) in files.iter().zip([1, 2, 4]) {
        let [r, g, b] = expected;
        close(&full(file).unwrap(), 8, 8, [r, g, b, 255], tolerance);
    }
    let translucent = drawn(4, 4, Channels::Rgba, |_, _| [200, 100, 50, 90]);
    let [r, g, b] = expected;
    close(&full(&png_with(&translucent, &[iccp(&profile)])).unwrap(), 1, 1, [r, g, b, 90], 1);
}

/// Converts Display P3 to sRGB by the definitions: linearize, change primaries (both D65), apply
/// the curve, clip.
fn p3_to_srgb(samples: [u8; 3]) -> [u8; 3] {
    let linear = samples.map(|sample| {
        let value = f64::from(sample) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    });
    let matrix = [[1.2249, -0.2247, 0.0], [-0.0420, 1.0419, 0.0], [-0.0197, -0.0786, 1.0979]];
    matrix.map(|row| {
        let value: f64 = row.iter().zip(linear).map(|(a, b)| a * b).sum();
        let value = if value <= 0.003_130_8 { value * 12.92 } else { 1.055 * value.powf(1.0 / 2.4) - 0.055 };
        (value.clamp(0.0, 1.0) * 255.0).round() as u8
    })
}

#[test]
fn a_profile_in_many_segments_is_put_together_in_order() {
    let profile = ColorProfile::new_display_p3().encode().unwrap();
    let source = drawn(16, 16, Channels::Rgb, |_, _| [200, 100, 50, 255]);
    let mut file = jpeg(&source, &Jpeg { quality: 100, ..Jpeg::default() });
    let (front, back) = profile.split_at(200);
    // Each segment is inserted before the previous one, so they are stored as 2, 1.
    file = with_segment(&file, 0xe2, &[b"ICC_PROFILE\0\x01\x02", front].concat());
    file = with_segment(&file, 0xe2, &[b"ICC_PROFILE\0\x02\x02", back].concat());
    let [r, g, b] = p3_to_srgb([200, 100, 50]);
    close(&full(&file).unwrap(), 8, 8, [r, g, b, 255], 2);
}

#[test]
fn a_grey_profile_is_applied_to_grey() {
    let profile = ColorProfile::new_gray_with_gamma(1.0).encode().unwrap();
    let file = |color, row: &[u8]| full(&png_file(ihdr(1, 1, 8, color, false), &[iccp(&profile)], row)).unwrap();
    // Linear 0.2157 (55 / 255) is 128 in sRGB.
    close(&file(0, &[0, 55]), 0, 0, [128, 128, 128, 255], 2);
    close(&file(4, &[0, 55, 30]), 0, 0, [128, 128, 128, 30], 2);
}

#[test]
fn an_srgb_a_foreign_and_a_broken_profile_change_nothing() {
    let source = photo(20, 20);
    let mut broken = ColorProfile::new_display_p3().encode().unwrap();
    broken.truncate(150);
    for profile in [
        ColorProfile::new_srgb().encode().unwrap(),
        // The sRGB profile that LittleCMS embeds, and thus Pillow and GIMP. Its rounded numbers
        // change dark samples by 2.
        include_bytes!("littlecms-srgb.icc").to_vec(),
        ColorProfile::new_gray_with_gamma(2.2).encode().unwrap(),
        broken,
        b"no profile at all".to_vec(),
        vec![],
    ] {
        assert_eq!(full(&png_with(&source, &[iccp(&profile)])).unwrap(), source);
    }
}

/// A profile of version 2 (ICC.1:2022, 7) with these tags.
fn profile(space: &[u8; 4], connection: &[u8; 4], class: &[u8; 4], tags: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let mut profile = vec![0; 128];
    profile[8] = 2;
    profile[12..16].copy_from_slice(class);
    profile[16..20].copy_from_slice(space);
    profile[20..24].copy_from_slice(connection);
    profile[36..40].copy_from_slice(b"acsp");
    profile[68..80].copy_from_slice(&[0, 0, 0xf6, 0xd6, 0, 1, 0, 0, 0, 0, 0xd3, 0x2d]);
    profile.extend((tags.len() as u32).to_be_bytes());
    let mut at = 132 + 12 * tags.len();
    for (name, data) in tags {
        profile.extend(*name);
        profile.extend([at, data.len()].into_iter().flat_map(|number| (number as u32).to_be_bytes()));
        at += data.len().next_multiple_of(4);
    }
    for (_, data) in tags {
        profile.extend(data);
        profile.resize(profile.len().next_multiple_of(4), 0);
    }
    let length = profile.len() as u32;
    profile[..4].copy_from_slice(&length.to_be_bytes());
    profile
}

/// An `mft1` table (ICC.1:2022, 10.11) of `N` channels at two levels. Bit 0 of `corner` is the last channel.
fn table<const TO: usize>(from: u8, colors: impl Fn(u8) -> [u8; TO]) -> Vec<u8> {
    let mut table = [b"mft1\0\0\0\0", &[from, TO as u8, 2, 0][..]].concat();
    for cell in 0..9i32 {
        table.extend((if cell % 4 == 0 { 0x1_0000i32 } else { 0 }).to_be_bytes());
    }
    let ramp: Vec<u8> = (0..=255).collect();
    table.extend(ramp.repeat(from.into()));
    table.extend((0..1 << from).flat_map(colors));
    table.extend(ramp.repeat(TO));
    table
}

/// A table from four inks, of 0 or 1, to Lab.
fn inks_to_lab(lab: impl Fn(u8, u8, u8, u8) -> [u8; 3]) -> Vec<u8> {
    table(4, |corner| lab(corner >> 3 & 1, corner >> 2 & 1, corner >> 1 & 1, corner & 1))
}

/// A table from Lab to inks that prints dark colors with black alone.
fn lab_to_inks() -> Vec<u8> {
    table(3, |corner| [0, 0, 0, 255 - (corner >> 2) * 255])
}

/// A CMYK profile with one table in each direction.
pub(super) fn cmyk_profile(lab: impl Fn(u8, u8, u8, u8) -> [u8; 3]) -> Vec<u8> {
    profile(b"CMYK", b"Lab ", b"prtr", &[(b"A2B0", inks_to_lab(lab)), (b"B2A0", lab_to_inks())])
}

#[test]
fn a_cmyk_profile_is_applied_to_inks() {
    // Any ink takes a third of the lightness, and black takes all of it. The result is neutral,
    // which only the profile can cause.
    let profile = cmyk_profile(|c, m, y, k| [if k == 1 { 0 } else { 255 - 85 * (c + m + y) }, 128, 128]);
    let icc = [b"ICC_PROFILE\0\x01\x01", &profile[..]].concat();
    let tagged = |stored| {
        let file = with_segment(&cmyk_jpeg(16, 16, stored, turbojpeg::Colorspace::CMYK), 0xe2, &icc);
        full(&file).unwrap()
    };
    close(&tagged([255, 255, 255, 255]), 8, 8, [255, 255, 255, 255], 3);
    close(&tagged([255, 255, 255, 0]), 8, 8, [0, 0, 0, 255], 3);
    // An L* of 66.7 is 162 in sRGB. Without the profile, full cyan would have no red at all.
    close(&tagged([0, 255, 255, 255]), 8, 8, [162, 162, 162, 255], 4);
}

/// The expected values are those of LittleCMS 2.19 (Pillow's `ImageCms.profileToProfile` to sRGB, relative colorimetric,
/// with `Flags.BLACKPOINTCOMPENSATION`) for the same profiles.
#[test]
fn inks_are_converted_relative_to_white_with_black_point_compensation() {
    // Black ink alone has a lightness of 29. The perceptual table differs.
    let colorimetric = || inks_to_lab(|c, m, y, k| [255 - 180 * k - 25 * (c + m + y), 128, 128]);
    let perceptual = || inks_to_lab(|c, m, y, k| [255 - 240 * k - 5 * (c + m + y), 128, 128]);
    let printer = |tags: &[(&[u8; 4], Vec<u8>)]| profile(b"CMYK", b"Lab ", b"prtr", tags);
    let compensated = [255, 0, 225, 147, 80, 165, 0];
    let not_compensated = [255, 69, 227, 157, 103, 173, 0];
    for (kind, profile, expected) in [
        (
            "tables of both intents",
            printer(&[(b"A2B0", perceptual()), (b"A2B1", colorimetric()), (b"B2A0", lab_to_inks())]),
            compensated,
        ),
        ("one table for all intents", printer(&[(b"A2B0", colorimetric()), (b"B2A0", lab_to_inks())]), compensated),
        ("nothing to print black", printer(&[(b"A2B0", perceptual()), (b"A2B1", colorimetric())]), not_compensated),
    ] {
        let inks = [
            [0, 0, 0, 0],
            [0, 0, 0, 255],
            [255, 0, 0, 0],
            [0, 0, 0, 128],
            [0, 0, 0, 204],
            [255, 255, 255, 0],
            [255, 255, 255, 255],
        ];
        let size = Size::new(inks.len() as u32, 1);
        let raw = Raw { size, samples: Samples::Cmyk, data: inks.concat(), icc: Some(profile) };
        let colors = srgb::convert(raw, None);
        for (color, expected) in colors.pixels().chunks(3).zip(expected) {
            assert!(color.iter().all(|channel| channel.abs_diff(expected) <= 2), "{kind}: {:?}", colors.pixels());
        }
    }
}

/// The expected values are those of LittleCMS 2.19 (Pillow's `ImageCms.profileToProfile` to sRGB) for the same profiles.
#[test]
fn grey_is_converted_by_the_curve_of_its_profile_with_either_connection_space() {
    let samples = [0, 10, 55, 128, 200, 255];
    // 1, 1.8 and 2.2 in 1 / 256.
    let exponents = [0x100u16, 0x1cc, 0x233];
    for (connection, expected) in [
        (b"XYZ ", [[0, 55, 128, 188, 229, 255], [0, 10, 71, 147, 210, 255], [0, 3, 52, 129, 201, 255]]),
        (b"Lab ", [[0, 14, 52, 119, 194, 255], [0, 1, 20, 68, 157, 255], [0, 0, 12, 53, 141, 255]]),
    ] {
        for (exponent, expected) in exponents.into_iter().zip(expected) {
            let curve = [b"curv\0\0\0\0\0\0\0\x01", &exponent.to_be_bytes()[..]].concat();
            let icc = iccp(&profile(b"GRAY", connection, b"mntr", &[(b"kTRC", curve)]));
            let row = [&[0][..], &samples].concat();
            let image = full(&png_file(ihdr(6, 1, 8, 0, false), std::slice::from_ref(&icc), &row)).unwrap();
            let translucent: Vec<u8> = [0].into_iter().chain(samples.into_iter().flat_map(|grey| [grey, 77])).collect();
            let translucent = full(&png_file(ihdr(6, 1, 8, 4, false), &[icc], &translucent)).unwrap();
            for (x, grey) in (0..).zip(expected) {
                close(&image, x, 0, [grey, grey, grey, 255], 1);
                close(&translucent, x, 0, [grey, grey, grey, 77], 1);
            }
        }
    }
}

fn cicp(code_points: [u8; 4]) -> Vec<u8> {
    png_chunk(b"cICP", &code_points)
}

/// The expected values were computed with numpy from the tables of ITU-T H.273: linearize, change primaries, adapt the
/// white point by Bradford's matrix as in ICC.1:2022 (annex E), apply the curve of sRGB, clip.
#[test]
fn the_code_points_of_a_png_are_converted_to_srgb() {
    let convert = |code_points, [r, g, b]: [u8; 3]| {
        let source = drawn(4, 4, Channels::Rgb, |_, _| [r, g, b, 255]);
        full(&png_with(&source, &[cicp(code_points)])).unwrap()
    };
    for (primaries, [r, g, b]) in [
        (1, [200, 90, 60]),
        (4, [233, 83, 47]),
        (5, [203, 90, 60]),
        (6, [195, 93, 59]),
        (7, [195, 93, 59]),
        (8, [224, 80, 49]),
        (9, [243, 59, 48]),
        (11, [211, 81, 49]),
        (12, [216, 81, 49]),
        (22, [202, 93, 59]),
    ] {
        close(&convert([primaries, 13, 0, 1], [200, 90, 60]), 1, 1, [r, g, b, 255], 1);
    }
    for (transfer, [light, dark]) in [
        (1, [[206, 104, 75], [23, 36, 140]]),
        (4, [[201, 90, 57], [3, 12, 129]]),
        (5, [[189, 66, 36], [0, 3, 106]]),
        (6, [[206, 104, 75], [23, 36, 140]]),
        (7, [[206, 106, 77], [25, 38, 141]]),
        (8, [[229, 160, 133], [56, 79, 188]]),
        (11, [[206, 104, 75], [23, 36, 140]]),
        (12, [[206, 104, 75], [23, 36, 140]]),
        (13, [[200, 90, 60], [10, 20, 128]]),
        (14, [[206, 104, 75], [23, 36, 140]]),
        (15, [[206, 104, 75], [23, 36, 140]]),
        (17, [[200, 76, 44], [1, 5, 118]]),
    ] {
        for (sample, [r, g, b]) in [([200, 90, 60], light), ([10, 20, 128], dark)] {
            close(&convert([1, transfer, 0, 1], sample), 1, 1, [r, g, b, 255], 1);
        }
        // Gray: the transfer function alone, with any primaries.
        let grey = full(&png_file(ihdr(3, 1, 8, 0, false), &[cicp([9, transfer, 0, 1])], &[0, 200, 90, 10])).unwrap();
        for (x, grey_sample) in [(0, light[0]), (1, light[1]), (2, dark[0])] {
            close(&grey, x, 0, [grey_sample, grey_sample, grey_sample, 255], 1);
        }
    }
}

#[test]
fn the_code_points_of_a_png_count_before_its_profile_unless_they_are_unspecified() {
    let source = drawn(4, 4, Channels::Rgb, |_, _| [200, 90, 60, 255]);
    let profile = iccp(&ColorProfile::new_adobe_rgb().encode().unwrap());
    let alone = full(&png_with(&source, std::slice::from_ref(&profile))).unwrap();
    assert_ne!(alone, source);
    for (code_points, [r, g, b, a]) in [
        // Display P3, as in the test above; sRGB.
        ([12, 13, 0, 1], [216, 81, 49, 255]),
        ([1, 13, 0, 1], [200, 90, 60, 255]),
        ([2, 2, 0, 1], alone.pixel(1, 1).unwrap()),
    ] {
        for chunks in [[profile.clone(), cicp(code_points)], [cicp(code_points), profile.clone()]] {
            close(&full(&png_with(&source, &chunks)).unwrap(), 1, 1, [r, g, b, a], 1);
        }
    }
    let mut damaged = cicp([12, 13, 0, 1]);
    damaged[8] = 9;
    assert_eq!(
        full(&png_with(&source, &[damaged, profile])).unwrap(),
        alone,
        "a chunk with a wrong checksum is ignored"
    );
}
