//! Stills, and how the camera moves over them.
//!
//! An image becomes a still that covers the frame with one pixel per pixel of the frame. A video
//! that begins with it shows it unchanged, without a second resampling. Zooming in costs a little
//! sharpness. Generated images are drawn at the size of the closest zoom instead.

use bytes::Bytes;
use raster::motion::{View, frame, lay};
use raster::resize::plan;
use raster::{Bitmap, Bounds, Color, DecodeError, Fit, Resize, Size, decode_resized};

use super::{Error, Which};

/// The largest zoom factor.
pub const CLOSEST: f64 = 1.125;

/// The maximum length of a still relative to the frame in one direction. The rest is cropped
/// evenly at both ends.
const LONGEST: u32 = 3;

/// The length relative to the frame from which the camera pans along a still instead of zooming in.
const ALONG: f64 = 1.3;

/// The background color of transparent pixels.
const BACKING: Color = Color { r: 24, g: 26, b: 32, a: 255 };

/// The position of the camera.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Framing {
    /// 1 shows the largest part of the still that fits into the frame; larger values show less.
    pub zoom: f64,
    /// The horizontal position in the remaining space: -1 is far left, 1 is far right.
    pub across: f64,
    /// The vertical position: -1 is at the top, 1 is at the bottom.
    pub down: f64,
}

impl Framing {
    /// The largest centered part that fits.
    pub const WHOLE: Self = Self { zoom: 1.0, across: 0.0, down: 0.0 };

    /// Interpolates between two framings; `part` is 0 to 1.
    pub fn towards(self, other: Self, part: f64) -> Self {
        let between = |from: f64, to: f64| from + (to - from) * part;
        Self {
            zoom: between(self.zoom, other.zoom),
            across: between(self.across, other.across),
            down: between(self.down, other.down),
        }
    }
}

/// The direction in which a still is longer than the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// Neither direction by a relevant amount.
    None,
    /// The still is wider.
    Across,
    /// The still is higher.
    Down,
}

/// An image prepared for display.
pub struct Still {
    image: Bitmap,
    frame: Size,
}

impl Still {
    /// Creates a still from an opaque image with four channels.
    pub fn new(image: Bitmap, frame: Size) -> Self {
        Self { image, frame }
    }

    /// The size of a still that has one pixel per pixel of the frame at the closest zoom.
    pub fn closest(frame: Size) -> Size {
        let side = |side: u32| (f64::from(side) * CLOSEST).ceil() as u32;
        Size::new(side(frame.width), side(frame.height))
    }

    /// Decodes an input image and scales it to cover the frame.
    ///
    /// # Errors
    ///
    /// [`Error::Image`] if it cannot be decoded.
    pub fn load(file: &Bytes, which: Which, frame: Size) -> Result<Self, Error> {
        let broken = |source| Error::Image { which, source };
        let header = raster::probe(file).map_err(|error| broken(error.into()))?;
        let target = Self::covering(header.size(), frame);
        let image = scaled(file, target, Fit::Cover).map_err(broken)?;
        Ok(Self::new(image, frame))
    }

    /// The part of the still that the camera sees.
    pub fn view(&self, framing: Framing) -> View {
        let (width, height) = (f64::from(self.image.width()), f64::from(self.image.height()));
        let ratio = f64::from(self.frame.width) / f64::from(self.frame.height);
        let seen = (width.min(height * ratio) / framing.zoom, height.min(width / ratio) / framing.zoom);
        let at = |length: f64, seen: f64, share: f64| (length - seen) * (1.0 + share) / 2.0;
        View {
            left: at(width, seen.0, framing.across),
            top: at(height, seen.1, framing.down),
            width: seen.0,
            height: seen.1,
        }
    }

    pub fn image(&self) -> &Bitmap {
        &self.image
    }

    /// The direction in which the still is longer than the frame.
    pub fn excess(&self) -> Excess {
        let whole = self.view(Framing::WHOLE);
        if f64::from(self.image.width()) > whole.width * ALONG {
            Excess::Across
        } else if f64::from(self.image.height()) > whole.height * ALONG {
            Excess::Down
        } else {
            Excess::None
        }
    }

    /// The size of an image of size `source` that covers `least`, limited to [`LONGEST`] times
    /// `least`.
    fn covering(source: Size, least: Size) -> Size {
        let long = |short: u32, by: u32, of: u32, least: u32| {
            let long = (u64::from(short) * u64::from(by)).div_ceil(u64::from(of));
            // A still that the camera does not pan along is cropped to the exact size.
            if long as f64 <= f64::from(least) * ALONG { least } else { long.min(u64::from(least * LONGEST)) as u32 }
        };
        let Size { width, height } = source;
        if u64::from(width) * u64::from(least.height) >= u64::from(height) * u64::from(least.width) {
            Size::new(long(least.height, width, height, least.width), least.height)
        } else {
            Size::new(least.width, long(least.width, height, width, least.height))
        }
    }
}

/// Decodes a file and scales it to `target`, opaque and with four channels. A JPEG is decoded at
/// the smallest sufficient scale.
///
/// # Errors
///
/// [`DecodeError`] if it cannot be decoded.
pub fn scaled(file: &[u8], target: Size, fit: Fit) -> Result<Bitmap, DecodeError> {
    let bounds = Bounds::new(Some(target.width), Some(target.height)).expect("frames have pixels");
    let resize = Resize { fit, ..Resize::new(bounds) };
    let header = raster::probe(file)?;
    let plan = plan(header.size(), &resize).expect("a few frames are within the limits of results");
    let image = decode_resized(file, &plan, BACKING)?.into_rgba();
    if image.is_opaque() {
        return Ok(image);
    }
    let mut backed = frame(image.size(), BACKING);
    lay(&mut backed, &image, 0, 0, 255);
    Ok(backed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_still_covers_the_frame_and_is_cut_when_it_is_far_too_long() {
        let covering = |width, height| Still::covering(Size::new(width, height), Size::new(160, 90));
        assert_eq!(covering(1600, 900), Size::new(160, 90));
        assert_eq!(covering(16, 9), Size::new(160, 90));
        assert_eq!(covering(200, 100), Size::new(160, 90));
        assert_eq!(covering(300, 200), Size::new(160, 90));
        assert_eq!(covering(240, 100), Size::new(216, 90));
        assert_eq!(covering(100, 100), Size::new(160, 160));
        assert_eq!(covering(10_000, 1), Size::new(480, 90));
        assert_eq!(covering(1, 30_000), Size::new(160, 270));
    }

    #[test]
    fn a_framing_stays_within_the_still_and_keeps_the_ratio_of_the_frame() {
        let frame_size = Size::new(160, 90);
        let still = Still::new(frame(Size::new(360, 100), BACKING), frame_size);
        assert_eq!(still.excess(), Excess::Across);
        for zoom in [1.0, 1.05, CLOSEST] {
            for (across, down) in [(-1.0, -1.0), (0.0, 0.0), (0.3, -0.7), (1.0, 1.0)] {
                let View { left, top, width, height } = still.view(Framing { zoom, across, down });
                assert!((width / height - 160.0 / 90.0).abs() < 1e-9);
                assert!(left > -1e-9 && top > -1e-9 && left + width < 360.0 + 1e-9 && top + height < 100.0 + 1e-9);
            }
        }
        let whole = still.view(Framing::WHOLE);
        assert!((whole.height - 100.0).abs() < 1e-9 && (whole.left - (360.0 - whole.width) / 2.0).abs() < 1e-9);
        let upright = Still::new(frame(Size::new(160, 200), BACKING), frame_size);
        assert_eq!(upright.excess(), Excess::Down);
        assert_eq!(Still::new(frame(Still::closest(frame_size), BACKING), frame_size).excess(), Excess::None);
    }
}
