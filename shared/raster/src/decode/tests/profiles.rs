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

/// A CMYK profile with one `mft1` table (ICC.1:2022, 10.11): four inks at two levels, to Lab.
pub(super) fn cmyk_profile(lab: impl Fn(u8, u8, u8, u8) -> [u8; 3]) -> Vec<u8> {
    let mut table = b"mft1\0\0\0\0\x04\x03\x02\0".to_vec();
    for cell in 0..9i32 {
        table.extend((if cell % 4 == 0 { 0x1_0000i32 } else { 0 }).to_be_bytes());
    }
    let ramp: Vec<u8> = (0..=255).collect();
    table.extend(ramp.repeat(4));
    for corner in 0..16u8 {
        table.extend(lab(corner >> 3 & 1, corner >> 2 & 1, corner >> 1 & 1, corner & 1));
    }
    table.extend(ramp.repeat(3));
    let mut profile = vec![0; 128];
    profile[8] = 2;
    profile[12..16].copy_from_slice(b"prtr");
    profile[16..20].copy_from_slice(b"CMYK");
    profile[20..24].copy_from_slice(b"Lab ");
    profile[36..40].copy_from_slice(b"acsp");
    profile[68..80].copy_from_slice(&[0, 0, 0xf6, 0xd6, 0, 1, 0, 0, 0, 0, 0xd3, 0x2d]);
    profile.extend(1u32.to_be_bytes());
    profile.extend(b"A2B0");
    profile.extend(144u32.to_be_bytes());
    profile.extend((table.len() as u32).to_be_bytes());
    profile.extend(table);
    let length = profile.len() as u32;
    profile[..4].copy_from_slice(&length.to_be_bytes());
    profile
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
