//! The Action `crop`: a rectangle of the image as displayed, unchanged (`docs/reference/actions.md#crop`).

use crate::color::Color;
use crate::geometry::{Anchor, Rect, Size};
use crate::input::Input;
use crate::pipeline::{Change, Error, Finish, Output};
use crate::resize::{PlanError, check_output};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crop {
    /// Columns of the rectangle.
    pub width: i64,
    /// Rows of the rectangle.
    pub height: i64,
    /// Position of the rectangle.
    pub place: CropPosition,
}

/// The rectangle in an image with the displayed size `source`.
///
/// # Errors
/// `OutOfBounds` when a part of it lies outside, and the limits of results.
pub fn plan(source: Size, crop: &Crop) -> Result<Rect, PlanError> {
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

/// Runs the Action. A JPEG is decoded only as far as the rectangle requires. The result may be written row by row if `rows` says
/// how.
///
/// # Errors
///
/// Any [`Error`]. A rectangle beyond the image is rejected before anything is decoded.
pub fn change(image: Input, crop: &Crop, rows: Option<Finish>) -> Result<Change, Error> {
    let rect = plan(image.size(), crop)?;
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
        Crop { width, height, place: CropPosition::At { x, y } }
    }

    fn whole(bytes: &[u8]) -> Bitmap {
        decode(bytes).unwrap()
    }

    #[test]
    fn a_rectangle_touches_every_edge_and_crosses_none() {
        let source = Size::new(30, 20);
        let good = |crop: Crop| plan(source, &crop).unwrap();
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
            Crop { width: 31, height: 1, place: CropPosition::Anchored(Anchor::Center) },
        ] {
            assert_eq!(plan(source, &crop), Err(PlanError::OutOfBounds), "{crop:?}");
        }
        let anchored =
            |anchor| plan(source, &Crop { width: 9, height: 9, place: CropPosition::Anchored(anchor) }).unwrap();
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
    }
}
