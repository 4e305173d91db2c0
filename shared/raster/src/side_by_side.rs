//! The Action `side-by-side-composite`: two images in one
//! (`docs/reference/actions.md#side-by-side-composite`).
//!
//! **Formulas.** The cross size is the height for images next to each other, and the width for
//! images above each other. With `match`, the image with the larger cross size is scaled down
//! to the other's. Its other side keeps the aspect ratio, rounded half up and at least 1. The
//! length of the result is the sum of both lengths and the gap; its cross size is the larger of the
//! two.

use std::str::FromStr;

use crate::bitmap::{Bitmap, Channels};
use crate::color::Color;
use crate::decode::{BAND, Bands, DecodeError};
use crate::encode::jpeg_encoder;
use crate::geometry::{ParseError, Rect, Size};
use crate::input::Input;
use crate::pipeline::{Change, Error, Finish, Output};
use crate::resize::{self, PlanError, check_output, rounded_ratio};

/// Arrangement of the images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The second to the right of the first.
    Horizontal,
    /// The second below the first.
    Vertical,
}

impl FromStr for Direction {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "horizontal" => Ok(Self::Horizontal),
            "vertical" => Ok(Self::Vertical),
            _ => Err(ParseError),
        }
    }
}

/// Position of the image with the smaller cross size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// At the top or left.
    Start,
    /// In the middle; an odd pixel is below or to the right.
    Center,
    /// At the bottom or right.
    End,
}

impl FromStr for Align {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "start" => Ok(Self::Start),
            "center" => Ok(Self::Center),
            "end" => Ok(Self::End),
            _ => Err(ParseError),
        }
    }
}

/// The parameters of the Action `side-by-side-composite`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SideBySideOptions {
    /// Arrangement of the images.
    pub direction: Direction,
    /// Pixels between the images.
    pub gap: u32,
    /// `true` if the image with the larger cross size is scaled down to the other.
    pub matches: bool,
    /// Position of the smaller image.
    pub align: Align,
    /// Color of the area that neither image covers.
    pub background: Color,
}

/// Layout of two images of certain sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Size of the result.
    pub output: Size,
    /// Rectangle of each image in the result, after scaling.
    pub places: [Rect; 2],
}

/// The layout of two images with these displayed sizes.
///
/// # Errors
/// The limits of results.
pub fn plan(sources: [Size; 2], options: &SideBySideOptions) -> Result<Plan, PlanError> {
    if sources.iter().any(|source| source.pixels() == 0) {
        return Err(PlanError::EmptySource);
    }
    // Computed for images next to each other. Images above each other are computed likewise,
    // transposed.
    let turned = |size: Size| if options.direction == Direction::Vertical { size.transposed() } else { size };
    let [first, second] = sources.map(turned);
    let height = first.height.min(second.height);
    let scaled = |size: Size| match options.matches && size.height > height {
        // Never wider than the source, so it fits a `u32`.
        true => Size::new(rounded_ratio(size.width, height, size.height) as u32, height),
        false => size,
    };
    let (first, second) = (scaled(first), scaled(second));
    let across = first.height.max(second.height);
    // Sides of an input are at most 30000, and the gap is at most 1024.
    let output = Size::new(first.width.saturating_add(options.gap).saturating_add(second.width), across);
    check_output(turned(output))?;
    let lower = |size: Size| match options.align {
        Align::Start => 0,
        Align::Center => (across - size.height) / 2,
        Align::End => across - size.height,
    };
    let place = |x: u32, size: Size| match options.direction {
        Direction::Horizontal => Rect { x, y: lower(size), size },
        Direction::Vertical => Rect { x: lower(size), y: x, size: size.transposed() },
    };
    let places = [place(0, first), place(first.width + options.gap, second)];
    Ok(Plan { output: turned(output), places })
}

/// Runs the Action. The format `auto` follows the first image. The result may be written row by row if `rows` says how.
///
/// # Errors
///
/// Any [`Error`]. A result above the limits is rejected before either image is decoded.
pub fn change(first: Input, second: &[u8], options: &SideBySideOptions, rows: Option<Finish>) -> Result<Change, Error> {
    let second = Input::file(second)?;
    let plan = plan([first.size(), second.size()], options)?;
    if let Some(finish) = rows
        && let Some(output) = stream([&first, &second], &plan, options.background, finish)?
    {
        return Ok(Change::Written(output));
    }
    let scaled = |image: Input, place: Rect| image.decode_resized(&resize::Plan::whole(place.size), Color::TRANSPARENT);
    let images = [scaled(first, plan.places[0])?, scaled(second, plan.places[1])?];
    let covered: u64 = plan.places.iter().map(|place| place.size.pixels()).sum();
    let is_opaque =
        images.iter().all(Bitmap::is_opaque) && (options.background.is_opaque() || covered == plan.output.pixels());
    let channels = if is_opaque { Channels::Rgb } else { Channels::Rgba };
    let mut canvas = Bitmap::filled(plan.output, channels, options.background);
    for (image, place) in images.into_iter().zip(plan.places) {
        let image = match channels {
            Channels::Rgb => image.into_rgb(),
            Channels::Rgba => image.into_rgba(),
        };
        canvas.paste(&image, place.x, place.y);
    }
    Ok(Change::Pixels { image: canvas, background: options.background })
}

/// Runs the Action on files.
///
/// # Errors
///
/// As [`change`].
pub fn transform(first: &[u8], second: &[u8], options: &SideBySideOptions, finish: Finish) -> Result<Output, Error> {
    finish.transform(first, |first, rows| change(first, second, options, rows))
}

/// The source of the rows of an image.
enum Rows<'a> {
    /// A file that is decoded in bands.
    Bands(Bands<'a>),
    /// An image in memory, because it had to be scaled, and the number of rows that were already
    /// read.
    Buffered(Bitmap, u32),
}

impl Rows<'_> {
    /// The next `count` rows, which must exist.
    fn next(&mut self, count: u32, buffer: Vec<u8>) -> Result<Option<Bitmap>, DecodeError> {
        match self {
            Self::Bands(bands) => bands.next(count, buffer),
            Self::Buffered(image, taken) => {
                let rect = Rect { x: 0, y: *taken, size: Size::new(image.width(), count) };
                *taken += count;
                Ok(Some(image.cropped(rect)))
            }
        }
    }
}

/// Writes the result row by row while its images are decoded. This is possible for two upright
/// JPEGs if the result is a JPEG and nothing is transparent.
fn stream(images: [&Input; 2], plan: &Plan, background: Color, finish: Finish) -> Result<Option<Output>, Error> {
    let covered: u64 = plan.places.iter().map(|place| place.size.pixels()).sum();
    if !background.is_opaque() && covered != plan.output.pixels() {
        return Ok(None);
    }
    let mut parts = Vec::new();
    for (image, place) in images.into_iter().zip(plan.places) {
        let whole = Rect { x: 0, y: 0, size: image.size() };
        // Only a file has bands. Format `auto` follows the first image.
        let (Some((bands, _)), Input::File(file, _)) = (image.bands(Some(finish), whole)?, image) else {
            return Ok(None);
        };
        let rows = match image.size() == place.size {
            true => Rows::Bands(bands),
            false => {
                let plan = resize::Plan::whole(place.size);
                Rows::Buffered(resize::decode_resized(file, &plan, Color::TRANSPARENT)?, 0)
            }
        };
        parts.push((rows, place, Vec::new()));
    }
    let Size { width, height } = plan.output;
    let mut encoder = jpeg_encoder(plan.output, Channels::Rgb, finish.quality);
    for first in (0..height).step_by(BAND as usize) {
        let last = height.min(first + BAND);
        let mut band = Bitmap::filled(Size::new(width, last - first), Channels::Rgb, background);
        for (rows, place, buffer) in &mut parts {
            let (from, to) = (first.max(place.y), last.min(place.y + place.size.height));
            if from < to
                && let Some(part) = rows.next(to - from, std::mem::take(buffer))?
            {
                band.paste(&part, place.x, from - first);
                *buffer = part.into_pixels();
            }
        }
        encoder.write(band.pixels());
    }
    for (rows, ..) in parts {
        if let Rows::Bands(bands) = rows {
            bands.finish()?;
        }
    }
    Ok(Some(Output::jpeg(encoder, plan.output)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decode::decode;
    use crate::format::{FormatChoice, OutputFormat};
    use crate::testing::*;

    const PNG: Finish = Finish { choice: FormatChoice::Png, quality: 85 };

    fn options(direction: Direction, matches: bool) -> SideBySideOptions {
        SideBySideOptions { direction, gap: 0, matches, align: Align::Center, background: Color::WHITE }
    }

    fn read(bytes: &[u8]) -> Bitmap {
        decode(bytes).unwrap()
    }

    fn png(image: &Bitmap) -> Vec<u8> {
        written(image, OutputFormat::Png, 85)
    }

    #[test]
    fn the_larger_is_scaled_to_the_smaller_across_and_rounded_half_up() {
        let sizes = |first: (u32, u32), second: (u32, u32), options: &SideBySideOptions| {
            let plan = plan([Size::new(first.0, first.1), Size::new(second.0, second.1)], options).unwrap();
            (plan.output, plan.places.map(|place| place.size))
        };
        let across = options(Direction::Horizontal, true);
        let (output, [first, second]) = sizes((400, 300), (201, 100), &across);
        assert_eq!((first, second, output), (Size::new(133, 100), Size::new(201, 100), Size::new(334, 100)));
        let (output, [first, second]) = sizes((5, 10), (3, 5), &SideBySideOptions { gap: 7, ..across });
        assert_eq!((first, second, output), (Size::new(3, 5), Size::new(3, 5), Size::new(13, 5)));
        let (output, [first, _]) = sizes((1, 1000), (9, 4), &across);
        assert_eq!((first, output), (Size::new(1, 4), Size::new(10, 4)));
        let down = options(Direction::Vertical, true);
        let (output, [first, second]) = sizes((400, 300), (100, 201), &down);
        assert_eq!((first, second, output), (Size::new(100, 75), Size::new(100, 201), Size::new(100, 276)));
        let (output, _) = sizes((400, 300), (100, 201), &options(Direction::Vertical, false));
        assert_eq!(output, Size::new(400, 501));
    }

    #[test]
    fn alignment_leaves_the_odd_pixel_below_or_on_the_right() {
        let (large, small) = (Size::new(10, 10), Size::new(3, 7));
        for (align, at) in [(Align::Start, 0), (Align::Center, 1), (Align::End, 3)] {
            let across = SideBySideOptions { align, gap: 2, ..options(Direction::Horizontal, false) };
            let place = plan([large, small], &across).unwrap().places[1];
            assert_eq!((place.x, place.y), (12, at));
            let down = SideBySideOptions { direction: Direction::Vertical, ..across };
            let place = plan([large, small.transposed()], &down).unwrap().places[1];
            assert_eq!((place.x, place.y), (at, 12));
        }
    }

    #[test]
    fn results_over_the_limits_are_refused() {
        let across = options(Direction::Horizontal, false);
        let wide = Size::new(8192, 10);
        assert!(plan([wide, wide], &across).is_ok());
        assert_eq!(plan([wide, wide], &SideBySideOptions { gap: 1, ..across }), Err(PlanError::SideTooLong));
        let large = Size::new(7072, 7072);
        assert_eq!(plan([large, large], &across), Err(PlanError::TooManyPixels));
        assert_eq!(plan([wide, Size::new(0, 1)], &across), Err(PlanError::EmptySource));
    }

    #[test]
    fn images_of_one_size_are_copied_pixel_for_pixel() {
        let (first, second) = (photo(40, 30), quarters(50, 30));
        let blue = Color { r: 0, g: 0, b: 255, a: 255 };
        let across = SideBySideOptions { gap: 3, background: blue, ..options(Direction::Horizontal, true) };
        let output = transform(&png(&first), &png(&second), &across, PNG).unwrap();
        let result = read(&output.bytes);
        assert_eq!((output.width, output.height), (93, 30));
        assert_eq!(result.cropped(Rect { x: 0, y: 0, size: first.size() }), first);
        assert_eq!(result.cropped(Rect { x: 43, y: 0, size: second.size() }), second);
        assert_eq!(result.pixel(41, 10), Some([0, 0, 255, 255]));
    }

    #[test]
    fn alpha_is_kept_and_follows_what_is_seen() {
        let (opaque, clear) = (photo(8, 8), drawn(8, 4, Channels::Rgba, |_, _| [9, 8, 7, 100]));
        let auto = Finish { choice: FormatChoice::Auto, quality: 85 };
        let jpeg_file = jpeg(&opaque, &Jpeg::default());
        let across = options(Direction::Horizontal, false);
        let formats = |first: &[u8], second: &[u8], options: &SideBySideOptions| {
            transform(first, second, options, auto).unwrap().format
        };
        assert_eq!(formats(&jpeg_file, &jpeg_file, &across), OutputFormat::Jpeg);
        assert_eq!(formats(&jpeg_file, &png(&opaque), &across), OutputFormat::Jpeg, "as the first one");
        assert_eq!(formats(&png(&opaque), &jpeg_file, &across), OutputFormat::Png);
        assert_eq!(formats(&jpeg_file, &png(&clear), &across), OutputFormat::Png, "alpha is needed");
        let hollow = SideBySideOptions { background: Color::TRANSPARENT, ..across };
        assert_eq!(formats(&jpeg_file, &jpeg_file, &hollow), OutputFormat::Jpeg, "nothing of it is seen");
        assert_eq!(formats(&jpeg_file, &jpeg_file, &SideBySideOptions { gap: 1, ..hollow }), OutputFormat::Png);
        let result = read(&transform(&png(&opaque), &png(&clear), &across, PNG).unwrap().bytes);
        assert_eq!((result.pixel(9, 3), result.pixel(9, 0)), (Some([9, 8, 7, 100]), Some([255; 4])));
    }

    #[test]
    fn a_turned_photo_is_scaled_upright() {
        let file = with_exif(&jpeg(&quarters(160, 120), &Jpeg::default()), 6);
        let output = transform(&file, &png(&photo(10, 40)), &options(Direction::Horizontal, true), PNG).unwrap();
        assert_eq!((output.width, output.height), (40, 40));
        // Rotated by 90 degrees clockwise, the blue quarter is at the top left.
        let corner = read(&output.bytes).pixel(4, 4).unwrap();
        assert!(corner[2] > 230 && corner[0] < 25, "{corner:?}");
    }

    proptest! {
        #[test]
        fn images_never_overlap_and_the_result_is_no_larger_than_they_need(
            first in (1u32..3000, 1u32..3000),
            second in (1u32..3000, 1u32..3000),
            gap in 0u32..=1024,
            vertical: bool,
            matches: bool,
        ) {
            let direction = if vertical { Direction::Vertical } else { Direction::Horizontal };
            let sizes = [Size::new(first.0, first.1), Size::new(second.0, second.1)];
            let plan = plan(sizes, &SideBySideOptions { gap, ..options(direction, matches) }).unwrap();
            let [a, b] = plan.places;
            let turned = |size: Size| if vertical { size.transposed() } else { size };
            let (a_size, b_size, output) = (turned(a.size), turned(b.size), turned(plan.output));
            prop_assert_eq!(output.width, a_size.width + gap + b_size.width);
            prop_assert_eq!(output.height, a_size.height.max(b_size.height));
            prop_assert!(!matches || a_size.height == b_size.height);
            prop_assert!(a.size.width <= first.0 && b.size.height <= second.1);
        }
    }
}
