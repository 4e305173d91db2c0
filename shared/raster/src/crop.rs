//! The Action `crop`: a rectangle of the image as displayed (`docs/reference/actions.md#crop`).
//!
//! **Formulas.** An upright rectangle is cut without changing pixels. Another one is turned by `-degrees` about its middle, so that
//! the result shows the image turned by `degrees` clockwise, as `rotate` turns it. A pixel of the result whose center is `(x, y)` from the
//! middle shows the point `(x·cos + y·sin, y·cos − x·sin)` from there, by the filter of `rotate` (`sample`). The edges of the image are
//! repeated: there is no background.

use crate::color::Color;
use crate::geometry::{Anchor, Rect, Size};
use crate::input::Input;
use crate::pipeline::{Change, Error, Finish, Output};
use crate::resize::{PlanError, check_output};
use crate::sample::{Rotation, Turning};

/// How far a corner of a turned rectangle may lie outside of the image, in pixels. The centers of its pixels lie inside then.
const TOLERANCE: f64 = 0.5;

/// How far the filter reads around the center of a pixel, in pixels.
const REACH: f64 = 3.0;

/// Position of the rectangle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CropPosition {
    /// By its distances from the left and the top.
    At {
        /// Columns left of it.
        x: i64,
        /// Rows above it.
        y: i64,
    },
    /// At an anchor.
    Anchored(Anchor),
}

/// The parameters of the Action `crop`, as requested. [`plan`] checks that they fit the image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crop {
    /// Columns of the rectangle.
    pub width: i64,
    /// Rows of the rectangle.
    pub height: i64,
    /// Position of the rectangle before it is turned.
    pub place: CropPosition,
    /// By how many degrees the rectangle is turned counterclockwise: -45 to 45.
    pub degrees: f64,
}

impl Crop {
    fn is_turned(&self) -> bool {
        self.degrees != 0.0
    }
}

/// Size of the result for an image with the displayed size `source`.
///
/// # Errors
/// `OutOfBounds` when a part of the rectangle lies outside, and the limits of results.
pub fn plan(source: Size, crop: &Crop) -> Result<Size, PlanError> {
    if crop.is_turned() {
        return turned(source, crop).map(|turned| turned.size);
    }
    upright(source, crop).map(|rect| rect.size)
}

/// The rectangle, which is not turned.
fn upright(source: Size, crop: &Crop) -> Result<Rect, PlanError> {
    let side = |length: i64, of: u32| {
        u32::try_from(length).ok().filter(|length| (1..=of).contains(length)).ok_or(PlanError::OutOfBounds)
    };
    let size = Size::new(side(crop.width, source.width)?, side(crop.height, source.height)?);
    let (x, y) = match crop.place {
        CropPosition::Anchored(anchor) => anchor.place(size, source),
        CropPosition::At { x, y } => {
            let start = |at: i64, length: u32, of: u32| {
                u32::try_from(at).ok().filter(|at| *at <= of - length).ok_or(PlanError::OutOfBounds)
            };
            (start(x, size.width, source.width)?, start(y, size.height, source.height)?)
        }
    };
    check_output(size)?;
    Ok(Rect { x, y, size })
}

/// A turned rectangle.
struct Turned {
    size: Size,
    rotation: Rotation,
    /// The middle, relative to `part`.
    middle: (f64, f64),
    /// What is read of the image.
    part: Rect,
}

fn turned(source: Size, crop: &Crop) -> Result<Turned, PlanError> {
    let side = |length: i64| u32::try_from(length).ok().filter(|length| *length > 0).ok_or(PlanError::OutOfBounds);
    let size = Size::new(side(crop.width)?, side(crop.height)?);
    let (x, y) = match crop.place {
        CropPosition::Anchored(anchor) => anchor.place_any((crop.width, crop.height), source),
        CropPosition::At { x, y } => (x, y),
    };
    let rotation = Rotation::clockwise(crop.degrees);
    let (width, height) = (f64::from(size.width) / 2.0, f64::from(size.height) / 2.0);
    let (cos, sin) = (rotation.cos.abs(), rotation.sin.abs());
    let (left, columns, middle_x) = span(x as f64 + width, width * cos + height * sin, source.width)?;
    let (top, rows, middle_y) = span(y as f64 + height, width * sin + height * cos, source.height)?;
    check_output(size)?;
    let part = Rect { x: left, y: top, size: Size::new(columns, rows) };
    Ok(Turned { size, rotation, middle: (middle_x, middle_y), part })
}

/// What is read of a side of length `of` for what lies up to `half` from `middle`: where it begins, its length, and the middle from there.
fn span(middle: f64, half: f64, of: u32) -> Result<(u32, u32, f64), PlanError> {
    let (first, last, end) = (middle - half, middle + half, f64::from(of));
    if first < -TOLERANCE || last > end + TOLERANCE {
        return Err(PlanError::OutOfBounds);
    }
    let (first, last) = ((first.floor() - REACH).max(0.0), (last.ceil() + REACH).min(end));
    // Within the image, whose sides are `u32`.
    Ok((first as u32, (last - first) as u32, middle - first))
}

/// Runs the Action. A JPEG is decoded only as far as the rectangle requires. The result may be written row by row if `rows` says
/// how.
///
/// # Errors
///
/// Any [`Error`]. A rectangle beyond the image is rejected before anything is decoded.
pub fn change(image: Input, crop: &Crop, rows: Option<Finish>) -> Result<Change, Error> {
    if crop.is_turned() {
        let Turned { size, rotation, middle, part } = turned(image.size(), crop)?;
        let jpeg = rows.filter(|finish| finish.is_jpeg(image.format()));
        return Ok(Turning::inside(image.padded(part)?, rotation, middle, size).change(size, jpeg));
    }
    let rect = upright(image.size(), crop)?;
    if let Some((bands, finish)) = image.bands(rows, rect)? {
        return finish.stream(bands, |_, _| ());
    }
    Ok(Change::Pixels { image: image.decode_part(rect)?, background: Color::WHITE })
}

/// Runs the Action on a file.
///
/// # Errors
///
/// As [`change`].
pub fn transform(bytes: &[u8], crop: &Crop, finish: Finish) -> Result<Output, Error> {
    finish.transform(bytes, |image, rows| change(image, crop, rows))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bitmap::{Bitmap, Channels};
    use crate::decode::{decode, decode_part};
    use crate::format::{FormatChoice, OutputFormat};
    use crate::orientation::Orientation;
    use crate::pipeline::ErrorKind;
    use crate::testing::*;

    const PNG: Finish = Finish { choice: FormatChoice::Png, quality: 85 };

    fn at(width: i64, height: i64, x: i64, y: i64) -> Crop {
        Crop { width, height, place: CropPosition::At { x, y }, degrees: 0.0 }
    }

    fn whole(bytes: &[u8]) -> Bitmap {
        decode(bytes).unwrap()
    }

    #[test]
    fn a_rectangle_touches_every_edge_and_crosses_none() {
        let source = Size::new(30, 20);
        let good = |crop: Crop| upright(source, &crop).unwrap();
        assert_eq!(good(at(30, 20, 0, 0)), Rect { x: 0, y: 0, size: source });
        assert_eq!(good(at(1, 1, 29, 19)), Rect { x: 29, y: 19, size: Size::new(1, 1) });
        for crop in [
            at(31, 20, 0, 0),
            at(30, 21, 0, 0),
            at(30, 20, 1, 0),
            at(30, 20, 0, 1),
            at(1, 1, 30, 0),
            at(1, 1, 0, 20),
            at(1, 1, -1, 0),
            at(1, 1, 0, -1),
            at(0, 1, 0, 0),
            at(1, 0, 0, 0),
            at(i64::MAX, i64::MAX, i64::MAX, i64::MAX),
            at(i64::MIN, 1, i64::MIN, 0),
            Crop { place: CropPosition::Anchored(Anchor::Center), ..at(31, 1, 0, 0) },
        ] {
            assert_eq!(plan(source, &crop), Err(PlanError::OutOfBounds), "{crop:?}");
        }
        let anchored =
            |anchor| upright(source, &Crop { place: CropPosition::Anchored(anchor), ..at(9, 9, 0, 0) }).unwrap();
        assert_eq!((anchored(Anchor::Center).x, anchored(Anchor::Center).y), (10, 5));
        assert_eq!((anchored(Anchor::BottomRight).x, anchored(Anchor::BottomRight).y), (21, 11));
        assert_eq!(plan(Size::new(30_000, 9), &at(16_385, 9, 0, 0)), Err(PlanError::SideTooLong));
    }

    #[test]
    fn every_format_is_cropped_pixel_for_pixel_whatever_its_orientation() {
        let source = photo(101, 67);
        let alpha = drawn(101, 67, Channels::Rgba, |x, y| [x as u8, y as u8, (x ^ y) as u8, (x + y) as u8]);
        let jpeg_file = jpeg(&source, &Jpeg::default());
        let mut files = vec![
            written(&source, OutputFormat::Png, 85),
            written(&alpha, OutputFormat::Png, 85),
            written(&source, OutputFormat::Webp, 85),
            gif((101, 67), (3, 5, 90, 60), (0..90 * 60).map(|n| (n % 4) as u8).collect(), Some(2)),
        ];
        files.extend((1..=8).map(|value| with_exif(&jpeg_file, value)));
        for file in files {
            let upright = whole(&file);
            let crop = at(40, 30, 17, 21);
            let result = whole(&transform(&file, &crop, PNG).unwrap().bytes);
            for (x, y) in (0..30).flat_map(|y| (0..40).map(move |x| (x, y))) {
                assert_eq!(result.pixel(x, y), upright.pixel(x + 17, y + 21), "{x}, {y}");
            }
            assert_eq!(result.size(), Size::new(40, 30));
        }
    }

    #[test]
    fn what_is_broken_outside_the_rectangle_is_refused_too() {
        let mut file = jpeg(&photo(400, 400), &Jpeg::default());
        file.truncate(file.len() * 9 / 10);
        let error = transform(&file, &at(10, 10, 0, 0), PNG).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Image);
        // The segments are complete, but the last quarter of the data is missing.
        let mut file = jpeg(&photo(400, 400), &Jpeg::default());
        let end = file.len() - 2;
        file.drain(end * 3 / 4..end);
        assert!(decode(&file).is_err());
        for crop in [at(10, 10, 0, 0), at(400, 10, 0, 0), at(10, 400, 0, 0)] {
            let error = transform(&file, &crop, PNG).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Image, "{crop:?}");
        }
        let error = transform(&file, &at(10, 10, 391, 0), PNG).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Limit, "the rectangle extends beyond the image")
        );
    }

    /// The image that a lossless result of a turned crop shows.
    fn cut(file: &[u8], crop: Crop, degrees: f64) -> Bitmap {
        whole(&transform(file, &Crop { degrees, ..crop }, PNG).unwrap().bytes)
    }

    /// The point of the image at the center of a pixel of a turned crop, in pixels from the center of the first one.
    fn point(crop: &Crop, degrees: f64, (x, y): (u32, u32)) -> (f64, f64) {
        let CropPosition::At { x: left, y: top } = crop.place else { panic!("{crop:?}") };
        let (sin, cos) = degrees.to_radians().sin_cos();
        let (dx, dy) = (f64::from(x) + 0.5 - crop.width as f64 / 2.0, f64::from(y) + 0.5 - crop.height as f64 / 2.0);
        let middle = (left as f64 + crop.width as f64 / 2.0, top as f64 + crop.height as f64 / 2.0);
        (middle.0 + dx * cos + dy * sin - 0.5, middle.1 + dy * cos - dx * sin - 0.5)
    }

    /// Lanczos-3 over an image with repeated edges, by its formula.
    fn lanczos(image: &Bitmap, (u, v): (f64, f64), channel: usize) -> f64 {
        let lobe = |x: f64| match std::f64::consts::PI * x {
            angle if angle.abs() < 1e-9 => 1.0,
            angle if x.abs() < 3.0 => angle.sin() * (angle / 3.0).sin() * 3.0 / angle.powi(2),
            _ => 0.0,
        };
        let near = |at: f64| (at.floor() as i64 - 2)..=(at.floor() as i64 + 3);
        let inside = |at: i64, of: u32| at.clamp(0, i64::from(of) - 1) as u32;
        let (mut sum, mut weights) = (0.0, 0.0);
        for (x, y) in near(v).flat_map(|y| near(u).map(move |x| (x, y))) {
            let weight = lobe(u - x as f64) * lobe(v - y as f64);
            let pixel = image.pixel(inside(x, image.width()), inside(y, image.height())).unwrap();
            sum += weight * f64::from(pixel[channel]);
            weights += weight;
        }
        (sum / weights).clamp(0.0, 255.0)
    }

    #[test]
    fn a_turned_crop_shows_the_image_turned_by_its_degrees() {
        let checks = drawn(61, 47, Channels::Rgb, |x, y| {
            if (x / 5 + y / 5) % 2 == 0 { [230, 40, 90, 255] } else { [20, 200, 120, 255] }
        });
        let smooth = drawn(61, 47, Channels::Rgb, |x, y| [4 * x as u8, 5 * y as u8, (2 * x + 2 * y) as u8, 255]);
        for image in [checks, smooth] {
            let file = written(&image, OutputFormat::Png, 85);
            for degrees in [-45.0, -12.0, -0.001, 0.001, 3.7, 30.0, 45.0] {
                // One in the middle, and one whose corners are near the edges.
                for crop in [at(15, 12, 23, 17), at(25, 30, 18, 8)] {
                    let result = cut(&file, crop, degrees);
                    assert_eq!((result.size(), result.channels()), (plan(image.size(), &crop).unwrap(), Channels::Rgb));
                    let mut squares = 0.0;
                    for (x, y) in (0..result.height()).flat_map(|y| (0..result.width()).map(move |x| (x, y))) {
                        let pixel = result.pixel(x, y).unwrap();
                        for (channel, sample) in pixel.iter().take(3).enumerate() {
                            let exact = lanczos(&image, point(&crop, degrees, (x, y)), channel);
                            squares += (f64::from(*sample) - exact).powi(2);
                        }
                    }
                    let quality = 10.0 * (255.0f64.powi(2) * 3.0 * result.size().pixels() as f64 / squares).log10();
                    assert!(quality > 56.0, "{degrees} {crop:?}: {quality:.1} dB");
                }
            }
        }
    }

    #[test]
    fn a_turned_crop_of_the_middle_is_that_of_the_turned_image() {
        use crate::rotate::{Flip, Rotate};
        let source = photo(101, 67);
        let alpha = drawn(101, 67, Channels::Rgba, |x, y| [x as u8, y as u8, (x ^ y) as u8, (x + y) as u8]);
        for image in [source, alpha] {
            let file = written(&image, OutputFormat::Png, 85);
            for degrees in [-45.0, 7.0, 33.3, 45.0] {
                let rotate = Rotate { degrees, expand: false, flip: Flip::None, background: Color::TRANSPARENT };
                let turned = crate::rotate::transform(&file, &rotate, PNG).unwrap().bytes;
                let middle = at(31, 27, 35, 20);
                assert!(cut(&turned, middle, 0.0) == cut(&file, middle, degrees), "{degrees}");
            }
        }
    }

    #[test]
    fn every_format_and_orientation_is_turned_as_its_pixels() {
        let source = photo(101, 67);
        let alpha = drawn(101, 67, Channels::Rgba, |x, y| [x as u8, y as u8, (x ^ y) as u8, (x + y) as u8]);
        let jpeg_file = jpeg(&source, &Jpeg::default());
        let mut files = vec![
            written(&alpha, OutputFormat::Png, 85),
            written(&source, OutputFormat::Webp, 85),
            gif((101, 67), (3, 5, 90, 60), (0..90 * 60).map(|n| (n % 4) as u8).collect(), Some(2)),
        ];
        files.extend((1..=8).map(|value| with_exif(&jpeg_file, value)));
        for file in files {
            let upright = whole(&file);
            let crop = at(30, 24, 18, 19);
            let pixels = written(&upright, OutputFormat::Png, 85);
            assert!(cut(&file, crop, -17.0) == cut(&pixels, crop, -17.0));
            // Written row by row where the file allows it, and as a whole.
            let (jpeg, crop) = (Finish { choice: FormatChoice::Jpeg, quality: 85 }, Crop { degrees: 9.0, ..crop });
            let input = Input::file(&file).unwrap();
            let format = input.format();
            let apart = jpeg.encode(change(input, &crop, None).unwrap(), format).unwrap();
            assert!(transform(&file, &crop, jpeg).unwrap() == apart);
        }
    }

    #[test]
    fn the_edges_of_the_image_do_not_fade_out() {
        let red = [255, 0, 0, 255];
        for channels in [Channels::Rgb, Channels::Rgba] {
            let image = drawn(40, 40, channels, |_, _| red);
            let file = written(&image, OutputFormat::Png, 85);
            // The corners lie 0.37 and 0.49 pixels outside.
            for image in [40.0, -40.0].map(|degrees| cut(&file, at(28, 30, 6, 5), degrees)) {
                let (width, height) = (image.width(), image.height());
                let mut all = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
                assert!(all.all(|(x, y)| image.pixel(x, y) == Some(red)));
            }
        }
    }

    #[test]
    fn a_corner_of_a_turned_rectangle_lies_up_to_half_a_pixel_outside() {
        let good = |source: (u32, u32), crop: Crop| match plan(Size::new(source.0, source.1), &crop) {
            Ok(size) => {
                assert_eq!((i64::from(size.width), i64::from(size.height)), (crop.width, crop.height));
                true
            }
            Err(error) => {
                assert_eq!(error, PlanError::OutOfBounds);
                false
            }
        };
        // Half of the height of a turned square of 100, from its middle at 60.
        let reach = |degrees: f64| 50.0 * (degrees.to_radians().cos() + degrees.to_radians().sin().abs());
        let degrees_for = |reached: f64| {
            let (mut low, mut high) = (0.0, 45.0);
            for _ in 0..60 {
                let middle = (low + high) / 2.0;
                if reach(middle) < reached { low = middle } else { high = middle }
            }
            low
        };
        for sign in [-1.0, 1.0] {
            for (beyond, is_good) in [(-0.1, true), (0.0, true), (0.49999, true), (0.50001, false), (1.0, false)] {
                let degrees = sign * degrees_for(60.0 + beyond);
                // Above, below, left and right.
                for (source, x, y) in
                    [((400, 400), 100, 10), ((400, 120), 100, 10), ((400, 400), 10, 100), ((120, 400), 10, 100)]
                {
                    let crop = Crop { degrees, ..at(100, 100, x, y) };
                    assert_eq!(good(source, crop), is_good, "{beyond} {source:?} {crop:?}");
                }
            }
        }
        // Only where it lies after the turn counts.
        assert!(good((100, 100), Crop { degrees: 45.0, ..at(120, 1, -10, 50) }));
        assert!(!good((100, 100), at(120, 1, -10, 50)));
        let anchored = |anchor| Crop { degrees: 45.0, place: CropPosition::Anchored(anchor), ..at(120, 1, 0, 0) };
        assert!(good((100, 100), anchored(Anchor::Center)) && !good((100, 100), anchored(Anchor::Top)));
        for crop in [
            at(0, 1, 0, 0),
            at(1, -1, 0, 0),
            at(i64::MAX, i64::MAX, i64::MAX, i64::MAX),
            at(i64::MIN, 1, i64::MIN, 0),
            at(1, 1, i64::MAX, 0),
            at(4_294_967_295, 1, 0, 0),
        ] {
            assert!(!good((100, 100), Crop { degrees: 10.0, ..crop }), "{crop:?}");
        }
        let long = Crop { degrees: 0.01, ..at(16_385, 9, 20, 20) };
        assert_eq!(plan(Size::new(30_000, 60), &long), Err(PlanError::SideTooLong));
    }

    /// 400 × 16 pixels whose color is sampled at every third column.
    const SAMPLED_3X1: &[u8] = include_bytes!("decode/tests/sampled-3x1.jpg");

    #[test]
    fn a_part_of_a_jpeg_with_three_columns_per_color_is_as_in_the_whole() {
        let upright = whole(SAMPLED_3X1);
        for x in [0, 31, 63, 64, 96, 127, 128, 130, 200, 390] {
            let rect = Rect { x, y: 3, size: Size::new(10, 9) };
            assert_eq!(decode_part(SAMPLED_3X1, rect).unwrap(), upright.cropped(rect), "{x}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

        #[test]
        fn a_part_of_a_jpeg_is_as_in_the_whole(
            (width, height) in (1u32..200, 1u32..200),
            (left, top, right, bottom) in (0.0..1.0, 0.0..1.0, 0.0..1.0, 0.0..1.0),
            subsamp in 0usize..5,
            progressive: bool,
            orientation in 1u16..=8,
        ) {
            use turbojpeg::Subsamp::{None, Sub1x2, Sub2x1, Sub2x2, Sub4x1};
            let subsamp = [None, Sub2x1, Sub2x2, Sub1x2, Sub4x1][subsamp];
            let file = with_exif(&jpeg(&photo(width, height), &Jpeg { quality: 80, progressive, subsamp }), orientation);
            let upright = whole(&file);
            let pick = |a: f64, b: f64, of: u32| {
                let (a, b) = ((a.min(b) * f64::from(of)) as u32, (a.max(b) * f64::from(of)) as u32);
                (a, (b - a).max(1).min(of - a))
            };
            let ((x, w), (y, h)) = (pick(left, right, upright.width()), pick(top, bottom, upright.height()));
            let rect = Rect { x, y, size: Size::new(w, h) };
            prop_assert!(Orientation::from_exif(u32::from(orientation)).is_some());
            prop_assert_eq!(decode_part(&file, rect).unwrap(), upright.cropped(rect));
        }

        #[test]
        fn what_is_read_of_an_image_is_enough_and_every_pixel_is_covered(
            (width, height) in (1u32..80, 1u32..80),
            (columns, rows) in (1i64..80, 1i64..80),
            (x, y) in (-9i64..80, -9i64..80),
            degrees in -45.0f64..=45.0,
        ) {
            let red = drawn(width, height, Channels::Rgba, |_, _| [255, 0, 0, 128]);
            let crop = Crop { degrees, ..at(columns, rows, x, y) };
            if let Ok(size) = plan(red.size(), &crop) {
                let Change::Pixels { image, .. } = change(Input::Pixels(red), &crop, None).unwrap() else {
                    panic!("nothing is written row by row")
                };
                prop_assert_eq!(image.size(), size);
                prop_assert!(image.pixels().chunks_exact(4).all(|pixel| pixel[0] >= 254 && pixel[3] == 128));
            }
        }
    }
}
