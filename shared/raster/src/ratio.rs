//! The Action `change-aspect-ratio`: crops or pads to an aspect ratio
//! (`docs/reference/actions.md#change-aspect-ratio`).
//!
//! **Formulas.** With the ratio in whole hundredths, `crop` keeps the largest rectangle, rounded
//! down and at least 1 in each direction. `pad` and `blur` make the smallest rectangle that
//! contains the image, rounded up. The image itself is not scaled.
//!
//! **Blur.** The padding is filled with the image itself, scaled to cover the result, cropped
//! evenly, and blurred by three passes of a box filter, which approximate a Gaussian (W3C Filter
//! Effects, `feGaussianBlur`). The blur is computed at a small size, where a wide blur is cheap,
//! and scaled up: an image this soft has no detail to lose.

use std::str::FromStr;

use crate::bitmap::{Bitmap, Channels};
use crate::color::Color;
use crate::geometry::{Anchor, ParseError, Rect, Size};
use crate::input::Input;
use crate::pipeline::{Change, Error, Finish, Output};
use crate::resize::{Bounds, Fit, PlanError, Resize, check_output, resize, stretched};

/// The longer side of the image to blur.
const BLUR_SIDE: u32 = 128;

/// The radius of a pass in pixels of that size. Three passes have a standard deviation of `sqrt(3 ·
/// ((2·3+1)² - 1) / 12)`, which is 3.5 pixels or a 37th of the longer side.
const BLUR_REACH: usize = 3;

/// How the ratio is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// By cropping.
    Crop,
    /// By padding with the background.
    Pad,
    /// By padding with the blurred image.
    Blur,
}

impl FromStr for Mode {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "crop" => Ok(Self::Crop),
            "pad" => Ok(Self::Pad),
            "blur" => Ok(Self::Blur),
            _ => Err(ParseError),
        }
    }
}

/// The parameters of the Action `change-aspect-ratio`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeRatio {
    /// The width and height in any unit; neither is zero.
    pub ratio: (u32, u32),
    /// How the ratio is reached.
    pub mode: Mode,
    /// The part that is kept, or the position of the image.
    pub anchor: Anchor,
    /// Color of the padding of `pad`.
    pub background: Color,
}

/// Layout for an image of a certain size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Size of the result.
    pub output: Size,
    /// Left and top edge: of the kept part in the image, or of the image in the result.
    pub offset: (u32, u32),
}

/// The layout for an image with the displayed size `source`.
///
/// # Errors
/// The limits of results.
pub fn plan(source: Size, change: &ChangeRatio) -> Result<Plan, PlanError> {
    if source.pixels() == 0 {
        return Err(PlanError::EmptySource);
    }
    let (ratio_width, ratio_height) = (u64::from(change.ratio.0), u64::from(change.ratio.1));
    let (width, height) = (u64::from(source.width), u64::from(source.height));
    let is_wider = width * ratio_height >= height * ratio_width;
    let grows = change.mode != Mode::Crop;
    // One side stays the same: the one with which the other side shrinks or grows.
    let (width, height) = match (is_wider, grows) {
        (true, false) => ((height * ratio_width / ratio_height).max(1), height),
        (false, false) => (width, (width * ratio_height / ratio_width).max(1)),
        (true, true) => (width, (width * ratio_height).div_ceil(ratio_width)),
        (false, true) => ((height * ratio_width).div_ceil(ratio_height), height),
    };
    let side = |side: u64| u32::try_from(side).map_err(|_| PlanError::SideTooLong);
    let output = Size::new(side(width)?, side(height)?);
    check_output(output)?;
    let offset = if grows { change.anchor.place(source, output) } else { change.anchor.place(output, source) };
    Ok(Plan { output, offset })
}

/// Runs the Action. The result may be written row by row if `rows` says how.
///
/// # Errors
/// Any [`Error`].
pub fn change(image: Input, to: &ChangeRatio, rows: Option<Finish>) -> Result<Change, Error> {
    let plan = plan(image.size(), to)?;
    let (x, y) = plan.offset;
    let part = Rect { x, y, size: plan.output };
    if to.mode == Mode::Crop
        && let Some((bands, finish)) = image.bands(rows, part)?
    {
        return finish.stream(bands, |_, _| ());
    }
    let image = match to.mode {
        Mode::Crop => image.decode_part(part)?,
        Mode::Pad | Mode::Blur => {
            let image = image.decode()?;
            if plan.output == image.size() {
                image
            } else if to.mode == Mode::Pad {
                padded(image, &plan, to.background)
            } else {
                let mut result = blurred(&image, plan.output);
                result.paste(&image, x, y);
                result
            }
        }
    };
    Ok(Change::Pixels { image, background: to.background })
}

/// Runs the Action on a file.
///
/// # Errors
/// As [`change`].
pub fn transform(bytes: &[u8], to: &ChangeRatio, finish: Finish) -> Result<Output, Error> {
    finish.transform(bytes, |image, rows| change(image, to, rows))
}

fn padded(image: Bitmap, plan: &Plan, background: Color) -> Bitmap {
    let (image, channels) = match image.channels() {
        Channels::Rgb if background.is_opaque() => (image, Channels::Rgb),
        _ => (image.into_rgba(), Channels::Rgba),
    };
    let mut canvas = Bitmap::filled(plan.output, channels, background);
    canvas.paste(&image, plan.offset.0, plan.offset.1);
    canvas
}

/// Scales an image to cover `size` and blurs it.
fn blurred(image: &Bitmap, size: Size) -> Bitmap {
    let longer = size.width.max(size.height);
    let scaled = |side: u32| if longer <= BLUR_SIDE { side } else { (side * BLUR_SIDE / longer).max(1) };
    let small = Size::new(scaled(size.width), scaled(size.height));
    let bounds = Bounds::new(Some(small.width), Some(small.height)).expect("neither side is zero");
    let cover = Resize { fit: Fit::Cover, ..Resize::new(bounds) };
    // The small size is no larger than the result, whose limits were checked.
    let mut small = resize(image, &cover).expect("within the limits");
    for _ in 0..3 {
        small = box_blurred_rows(&box_blurred_rows(&small));
    }
    stretched(&small, size)
}

/// Replaces each pixel by the mean of its neighbors in the row, with repeated edges and weighted by
/// alpha. The result is transposed, so that two calls blur in both directions.
fn box_blurred_rows(image: &Bitmap) -> Bitmap {
    let (width, height) = (image.width() as usize, image.height() as usize);
    let count = image.channels().count();
    let mut pixels = vec![0; image.pixels().len()];
    for (y, row) in image.pixels().chunks_exact(width * count).enumerate() {
        for x in 0..width {
            let mut sums = [0u32; 3];
            let (mut weight, mut alphas, mut taps) = (0, 0, 0);
            for at in x as isize - BLUR_REACH as isize..=(x + BLUR_REACH) as isize {
                let at = at.clamp(0, width as isize - 1) as usize * count;
                let alpha = if count == 4 { u32::from(row[at + 3]) } else { 1 };
                for (sum, sample) in sums.iter_mut().zip(&row[at..at + 3]) {
                    *sum += u32::from(*sample) * alpha;
                }
                weight += alpha;
                alphas += alpha;
                taps += 1;
            }
            let target = &mut pixels[(x * height + y) * count..][..count];
            for (sample, sum) in target.iter_mut().zip(sums) {
                *sample = ((sum + weight / 2) / weight.max(1)) as u8;
            }
            if count == 4 {
                target[3] = ((alphas + taps / 2) / taps) as u8;
            }
        }
    }
    Bitmap::made(image.size().transposed(), image.channels(), pixels)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decode::decode;
    use crate::format::{FormatChoice, OutputFormat};
    use crate::testing::*;

    const PNG: Finish = Finish { choice: FormatChoice::Png, quality: 85 };

    fn change(ratio: (u32, u32), mode: Mode) -> ChangeRatio {
        ChangeRatio { ratio, mode, anchor: Anchor::Center, background: Color::WHITE }
    }

    fn output(source: (u32, u32), ratio: (u32, u32), mode: Mode) -> (u32, u32) {
        let plan = plan(Size::new(source.0, source.1), &change(ratio, mode)).unwrap();
        (plan.output.width, plan.output.height)
    }

    fn read(bytes: &[u8]) -> Bitmap {
        decode(bytes).unwrap()
    }

    #[test]
    fn crops_round_down_and_pads_round_up() {
        for (source, ratio, cropped, padded) in [
            ((100, 100), (1, 1), (100, 100), (100, 100)),
            ((1000, 1000), (16, 9), (1000, 562), (1778, 1000)),
            ((1920, 1080), (1, 1), (1080, 1080), (1920, 1920)),
            ((1920, 1080), (16, 9), (1920, 1080), (1920, 1080)),
            ((1921, 1080), (16, 9), (1920, 1080), (1921, 1081)),
            ((100, 100), (191, 100), (100, 52), (191, 100)),
            ((1, 1), (100, 1), (1, 1), (100, 1)),
            ((3, 50), (2, 1), (3, 1), (100, 50)),
        ] {
            assert_eq!(output(source, ratio, Mode::Crop), cropped, "{source:?} to {ratio:?}");
            assert_eq!(output(source, ratio, Mode::Pad), padded, "{source:?} to {ratio:?}");
            assert_eq!(output(source, ratio, Mode::Blur), padded, "{source:?} to {ratio:?}");
        }
        let long = plan(Size::new(9000, 9000), &change((2, 1), Mode::Pad));
        assert_eq!(long, Err(PlanError::SideTooLong));
        assert_eq!(plan(Size::new(8192, 8192), &change((2, 1), Mode::Pad)), Err(PlanError::TooManyPixels));
        assert_eq!(plan(Size::new(30_000, 20), &change((100, 1), Mode::Crop)).unwrap().output, Size::new(2000, 20));
    }

    #[test]
    fn no_pixel_of_the_image_is_changed() {
        let source = photo(90, 60);
        let file = written(&source, OutputFormat::Png, 85);
        for anchor in Anchor::ALL {
            let square = |mode| ChangeRatio { anchor, ..change((1, 1), mode) };
            let cropped = read(&transform(&file, &square(Mode::Crop), PNG).unwrap().bytes);
            let (left, _) = anchor.place(Size::new(60, 60), Size::new(90, 60));
            assert_eq!(cropped, source.cropped(Rect { x: left, y: 0, size: Size::new(60, 60) }), "{anchor:?}");
            let (_, top) = anchor.place(Size::new(90, 60), Size::new(90, 90));
            for mode in [Mode::Pad, Mode::Blur] {
                let padded = read(&transform(&file, &square(mode), PNG).unwrap().bytes);
                assert_eq!(padded.size(), Size::new(90, 90));
                assert_eq!(padded.cropped(Rect { x: 0, y: top, size: source.size() }), source, "{anchor:?} {mode:?}");
            }
        }
    }

    #[test]
    fn the_room_is_background_or_the_blurred_image() {
        let file = written(&quarters(90, 60), OutputFormat::Png, 85);
        let red = Color { r: 255, g: 0, b: 0, a: 255 };
        let pad = ChangeRatio { background: red, ..change((1, 1), Mode::Pad) };
        assert_eq!(read(&transform(&file, &pad, PNG).unwrap().bytes).pixel(80, 5), Some([255, 0, 0, 255]));
        let through = ChangeRatio { background: Color::TRANSPARENT, ..pad };
        let output = transform(&file, &through, Finish { choice: FormatChoice::Auto, ..PNG }).unwrap();
        assert_eq!(read(&output.bytes).pixel(80, 5), Some([0, 0, 0, 0]));
        let soft = read(&transform(&file, &change((1, 1), Mode::Blur), PNG).unwrap().bytes);
        // The red quarter is on the left, the green one on the right, with a soft transition
        // between them.
        let (left, middle, right) = (soft.pixel(3, 3), soft.pixel(45, 3), soft.pixel(87, 3));
        let (left, middle, right) = (left.unwrap(), middle.unwrap(), right.unwrap());
        assert!(left[0] > 230 && right[1] > 230, "{left:?} {right:?}");
        assert!((60..200).contains(&middle[0]) && (60..200).contains(&middle[1]), "{middle:?}");
    }

    #[test]
    fn a_blur_of_one_colour_is_that_colour_and_lends_none_of_what_is_transparent() {
        let grey = Bitmap::filled(Size::new(300, 40), Channels::Rgb, Color { r: 90, g: 91, b: 92, a: 255 });
        let blurred = blurred(&grey, Size::new(300, 600));
        assert!(blurred.pixels().chunks_exact(3).all(|pixel| pixel == [90, 91, 92]));
        let half = drawn(40, 40, Channels::Rgba, |x, _| if x < 20 { [200, 0, 0, 255] } else { [0, 255, 0, 0] });
        let blurred = super::blurred(&half, Size::new(40, 80));
        for pixel in blurred.pixels().chunks_exact(4).filter(|pixel| pixel[3] > 8) {
            assert!(pixel[0] >= 190 && pixel[1] <= 10, "{pixel:?}");
        }
    }

    #[test]
    fn a_crop_of_a_line_is_a_pixel() {
        let plan = plan(Size::new(9, 1), &change((1, 100), Mode::Crop)).expect("planned");
        assert_eq!(plan.output, Size::new(1, 1));
    }

    proptest! {
        #[test]
        fn every_plan_has_the_ratio_as_near_as_pixels_allow(
            (width, height) in (1u32..4000, 1u32..4000),
            ratio in (100u32..=10_000, 100u32..=10_000),
        ) {
            let source = Size::new(width, height);
            let (w, h) = (u64::from(ratio.0), u64::from(ratio.1));
            if let Ok(plan) = plan(source, &change(ratio, Mode::Crop)) {
                let (cw, ch) = (u64::from(plan.output.width), u64::from(plan.output.height));
                prop_assert!(cw <= u64::from(width) && ch <= u64::from(height));
                prop_assert!(cw == u64::from(width) || ch == u64::from(height));
                // One more pixel would be too wide or too high, unless a side has its minimum of
                // one.
                let is_least = cw == 1 || ch == 1;
                prop_assert!(is_least || ((cw + 1) * h > ch * w && (ch + 1) * w > cw * h));
            }
            if let Ok(plan) = plan(source, &change(ratio, Mode::Pad)) {
                let (pw, ph) = (u64::from(plan.output.width), u64::from(plan.output.height));
                prop_assert!(pw >= u64::from(width) && ph >= u64::from(height));
                prop_assert!(pw == u64::from(width) || ph == u64::from(height));
                prop_assert!((pw - 1) * h < ph * w && (ph - 1) * w < pw * h);
            }
        }
    }
}
