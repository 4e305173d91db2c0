use super::*;
use crate::testing::{drawn, photo, psnr};

fn opaque(image: &Bitmap) -> Bitmap {
    image.clone().into_rgba()
}

#[test]
fn a_view_of_the_whole_in_its_own_size_is_the_still_itself() {
    let still = opaque(&photo(96, 54));
    let mut seen = frame(still.size(), Color::WHITE);
    Camera::default().shoot(&still, View::whole(still.size()), &mut seen);
    assert_eq!(seen, still);
}

#[test]
fn a_view_moves_by_fractions_of_a_pixel() {
    // A linear gradient: a shift by a quarter of a pixel lowers every sample by a quarter of a
    // step.
    let still = drawn(64, 16, Channels::Rgba, |x, _| [(x * 4) as u8, 0, 0, 255]);
    let mut seen = frame(Size::new(32, 16), Color::WHITE);
    let view = View { left: 8.25, top: 0.0, width: 32.0, height: 16.0 };
    Camera::default().shoot(&still, view, &mut seen);
    for x in 4..28 {
        assert_eq!(seen.pixel(x, 8), Some([((x + 8) * 4 + 1) as u8, 0, 0, 255]), "column {x}");
    }
}

#[test]
fn a_view_that_lies_outside_is_moved_in_and_one_that_is_too_large_shows_all() {
    let still = opaque(&photo(40, 30));
    let shot = |view| {
        let mut seen = frame(Size::new(20, 15), Color::WHITE);
        Camera::default().shoot(&still, view, &mut seen);
        seen
    };
    let corner = shot(View { left: 20.0, top: 15.0, width: 20.0, height: 15.0 });
    assert_eq!(shot(View { left: 1e9, top: 29.0, width: 20.0, height: 15.0 }), corner);
    let whole = shot(View::whole(still.size()));
    assert_eq!(shot(View { left: -7.0, top: -1.0, width: 1e9, height: 300.0 }), whole);
}

#[test]
fn a_dissolve_begins_with_one_image_and_ends_with_the_other() {
    let (first, second) = (opaque(&photo(33, 7)), frame(Size::new(33, 7), Color { r: 255, g: 0, b: 9, a: 255 }));
    let mixed = |share| {
        let mut result = first.clone();
        mix(&mut result, &second, share);
        result
    };
    assert_eq!(mixed(0), first);
    assert_eq!(mixed(WHOLE), second);
    assert_eq!(mixed(u16::MAX), second);
    let (half, one) = (mixed(WHOLE / 2), first.pixel(5, 5).unwrap());
    let [r, g, b, a] = half.pixel(5, 5).unwrap();
    let mean = |a: u8, b: u16| (u16::from(a) + b).div_ceil(2) as u8;
    assert_eq!([r, g, b, a], [mean(one[0], 255), mean(one[1], 0), mean(one[2], 9), 255]);
}

#[test]
fn a_layer_is_blended_by_its_alpha_and_its_opacity_and_cut_off_at_the_edges() {
    let over = |x, y, opacity| {
        let mut below = frame(Size::new(4, 3), Color { r: 100, g: 100, b: 100, a: 255 });
        let above = drawn(2, 2, Channels::Rgba, |x, _| [200, 0, 100, if x == 0 { 255 } else { 128 }]);
        lay(&mut below, &above, x, y, opacity);
        below
    };
    let whole = over(1, 1, 255);
    assert_eq!(whole.pixel(0, 1), Some([100, 100, 100, 255]));
    assert_eq!(whole.pixel(1, 1), Some([200, 0, 100, 255]));
    assert_eq!(whole.pixel(2, 2), Some([150, 50, 100, 255]));
    assert_eq!(over(1, 1, 51).pixel(1, 1), Some([120, 80, 100, 255]));
    assert_eq!(over(1, 1, 0), frame(Size::new(4, 3), Color { r: 100, g: 100, b: 100, a: 255 }));
    let corner = over(-1, -1, 255);
    assert_eq!(corner.pixel(0, 0), Some([150, 50, 100, 255]));
    assert_eq!(corner.pixel(1, 0), Some([100, 100, 100, 255]));
    assert_eq!(over(3, 2, 255).pixel(3, 2), Some([200, 0, 100, 255]));
    for (x, y) in [(4, 0), (0, 3), (-2, 0), (0, -2), (i64::MAX, 0), (0, i64::MIN)] {
        assert_eq!(over(x, y, 255), frame(Size::new(4, 3), Color { r: 100, g: 100, b: 100, a: 255 }));
    }
}

#[test]
fn planes_follow_bt_709_in_the_limited_range() {
    let of = |r: u8, g: u8, b: u8| {
        let mut planes = Planes::new(Size::new(4, 2)).unwrap();
        planes.fill(&frame(Size::new(4, 2), Color { r, g, b, a: 255 }));
        planes.planes().map(|plane| plane[0])
    };
    assert_eq!(of(0, 0, 0), [16, 128, 128]);
    assert_eq!(of(255, 255, 255), [235, 128, 128]);
    for grey in 0..=255 {
        assert_eq!(of(grey, grey, grey)[1..], [128, 128], "gray {grey} has no chroma");
    }
    for r in (0..=255).step_by(15) {
        for g in (0..=255).step_by(17) {
            for b in (0..=255).step_by(51) {
                let [red, green, blue] = [r, g, b].map(|sample| f64::from(sample as u8) / 255.0);
                let luma = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
                let exact = [
                    16.0 + 219.0 * luma,
                    128.0 + 224.0 * (blue - luma) / 1.8556,
                    128.0 + 224.0 * (red - luma) / 1.5748,
                ];
                for (plane, exact) in of(r as u8, g as u8, b as u8).into_iter().zip(exact) {
                    assert!((f64::from(plane) - exact).abs() <= 0.52, "{r} {g} {b}: {plane}, not {exact}");
                }
            }
        }
    }
}

#[test]
fn chroma_stands_on_the_left_column_of_its_pair_and_between_its_rows() {
    // Red starts at column 4. The chroma sample there takes a quarter from column 3 and three
    // quarters from red columns.
    let image = drawn(8, 2, Channels::Rgba, |x, _| if x < 4 { [0, 0, 0, 255] } else { [255, 0, 0, 255] });
    let mut planes = Planes::new(image.size()).unwrap();
    planes.fill(&image);
    let [_, _, red] = planes.planes();
    assert_eq!(red, [128, 128, 212, 240]);
    let rows = drawn(2, 2, Channels::Rgba, |_, y| if y == 0 { [0, 0, 0, 255] } else { [255, 0, 0, 255] });
    let mut planes = Planes::new(rows.size()).unwrap();
    planes.fill(&rows);
    assert_eq!(planes.planes()[2], [184]);
}

#[test]
fn planes_have_even_sides() {
    for (width, height) in [(0, 2), (2, 0), (3, 2), (2, 3)] {
        assert!(Planes::new(Size::new(width, height)).is_none());
    }
    assert_eq!(Planes::new(Size::new(6, 4)).unwrap().planes().map(<[u8]>::len), [24, 6, 6]);
}

#[test]
fn a_still_seen_smaller_stays_close_to_the_same_still_resized() {
    let still = opaque(&photo(180, 120));
    let mut seen = frame(Size::new(160, 106), Color::WHITE);
    Camera::default().shoot(&still, View::whole(still.size()), &mut seen);
    let resized = crate::resize::stretched(&still, seen.size());
    assert!(psnr(seen.pixels(), resized.pixels()) > 40.0);
}
