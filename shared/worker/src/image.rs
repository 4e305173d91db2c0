//! Converts images that guide an output to a form that every provider accepts.

use bytes::Bytes;
use decoder::{Made, Order, Refusal, Work};
use domain::id::AccountUid;
use domain::job::{Failure, FailureCode};
use raster::{Bounds, Format, FormatChoice, Header, Resize};
use serde::{Deserialize, Serialize};

use crate::decode::{header_of_made, refusal};
use crate::{Error, Pixels};

/// JPEG and WebP quality of an image that must be encoded again. Models give the same results as
/// with the original.
pub const QUALITY: u8 = 90;
/// Longest side of an image that must be encoded again.
pub const SIDE_MAX: u32 = 4096;
/// The number of attempts to make an image small enough. One is usually enough; the others are for
/// images that compress unevenly.
pub const SHRINKS_MAX: usize = 6;
/// Bytes per decoded pixel, and per pixel of the result.
const PIXEL_BYTES: u64 = 4;

/// The failure for an image that cannot be used. `named` is its name in the request.
pub fn unusable(named: &str, why: impl std::fmt::Display) -> Failure {
    Failure::new(FailureCode::ActionInputInvalid, format!("the image {named} cannot be used: {why}"))
}

/// Returns `file` as PNG, JPEG or WebP of at most `bytes_max` bytes. It is unchanged if it already
/// satisfies that; otherwise it is encoded again for `account` once there is memory for its pixels. The inner
/// error says why that is impossible.
///
/// # Errors
///
/// If the service is at fault.
pub async fn fitted(
    pixels: &Pixels,
    account: &AccountUid,
    file: Bytes,
    header: &Header,
    bytes_max: usize,
) -> Result<Result<(Bytes, Format), String>, Error> {
    if header.format != Format::Gif && file.len() <= bytes_max {
        return Ok(Ok((file, header.format)));
    }
    let pixel_bytes = header.decoded_bytes() + 2 * PIXEL_BYTES * header.size().pixels();
    let memory = pixels.reserve(file.len() as u64 + pixel_bytes).await;
    let order = Order::new(account.as_str(), Fit { bytes_max }, vec![file]);
    let made = match memory.decode(order, |_, made| made).await? {
        Ok(made) => made.into_iter().next().unwrap_or_default(),
        Err(why) => return Ok(Err(why)),
    };
    let format = header_of_made(&made)?.format;
    Ok(Ok((made.into(), format)))
}

/// Encodes an image again ([`fitted`]).
#[derive(Serialize, Deserialize)]
pub(crate) struct Fit {
    bytes_max: usize,
}

impl Work for Fit {
    const NAME: &'static str = "fit";

    fn run(self, files: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        let header = raster::probe(&files[0]).map_err(|error| Refusal::Input(error.to_string()))?;
        let side = header.size().width.max(header.size().height);
        match convert(&files[0], header.format, side, self.bytes_max).map_err(refusal)? {
            Some(made) => Ok(vec![made]),
            None => Err(Refusal::Input("it cannot be made small enough".to_owned())),
        }
    }
}

/// Encodes an image again, at decreasing sizes until it has at most `bytes_max` bytes. A JPEG
/// stays a JPEG and a GIF becomes a PNG. Other formats may have alpha and become WebP, which keeps
/// it and takes a fraction of the size of a PNG.
fn convert(file: &[u8], format: Format, side: u32, bytes_max: usize) -> Result<Option<Vec<u8>>, raster::Error> {
    let choice = match format {
        Format::Jpeg => FormatChoice::Jpeg,
        Format::Gif => FormatChoice::Png,
        Format::Png | Format::Webp => FormatChoice::Webp,
    };
    let mut side = side.min(SIDE_MAX);
    for _ in 0..SHRINKS_MAX {
        let Some(bounds) = Bounds::new(Some(side), Some(side)) else { return Ok(None) };
        let resize = Resize { enlarge: false, ..Resize::new(bounds) };
        let written = raster::transform_resize(file, &resize, choice, QUALITY)?;
        let length = written.bytes.len();
        if length <= bytes_max {
            return Ok(Some(written.bytes));
        }
        // The file size grows with the area. The factor is slightly smaller than computed, so that
        // the next attempt fits.
        let scale = (bytes_max as f64 / length as f64).sqrt() * 0.9;
        side = (f64::from(side) * scale) as u32;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use raster::{Bitmap, Channels, Color, Encoding, OutputFormat, Size};

    use super::*;

    /// Noise, which no codec compresses well.
    fn noise(format: OutputFormat, channels: Channels) -> Vec<u8> {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let pixels = (0..256 * 128 * channels.count()).map(|_| next()).collect();
        let image = Bitmap::new(Size::new(256, 128), channels, pixels).expect("as many as fit");
        raster::encode(&image, &Encoding { format, quality: 95, flatten: Color::WHITE }).expect("encodes")
    }

    /// The file in the form in which it is sent, or why it cannot be sent.
    fn made_to_fit(file: &[u8], bytes_max: usize) -> Result<(Vec<u8>, Format), Refusal> {
        let made = Fit { bytes_max }.run(&[Bytes::copy_from_slice(file)], &mut |_| ())?.remove(0);
        let format = raster::probe(&made).expect("an image").format;
        Ok((made, format))
    }

    #[test]
    fn what_is_too_large_is_made_smaller_and_keeps_its_shape() {
        for (format, wanted) in
            [(OutputFormat::Jpeg, Format::Jpeg), (OutputFormat::Png, Format::Webp), (OutputFormat::Webp, Format::Webp)]
        {
            let file = noise(format, Channels::Rgba);
            for bytes_max in [file.len() / 3, 2000] {
                let (bytes, reported) = made_to_fit(&file, bytes_max).expect("fits");
                let header = raster::probe(&bytes).expect("an image");
                assert_eq!((reported, header.format), (wanted, wanted));
                assert!(bytes.len() <= bytes_max, "{} of {bytes_max}", bytes.len());
                let ratio = f64::from(header.width) / f64::from(header.height);
                assert!((ratio - 2.0).abs() < 0.2, "{header:?}");
            }
        }
    }

    #[tokio::test]
    async fn what_is_just_small_enough_is_left_as_it_is() {
        let file = Bytes::from(noise(OutputFormat::Png, Channels::Rgb));
        // Nothing is decoded.
        let pixels = Pixels::new(1, u64::MAX, "");
        let (account, header) = (AccountUid::parse("me").expect("a plain id"), raster::probe(&file).expect("an image"));
        let left = fitted(&pixels, &account, file.clone(), &header, file.len()).await.expect("needs no decoder");
        assert_eq!(left, Ok((file.clone(), Format::Png)));
        let (bytes, _) = made_to_fit(&file, file.len() - 1).expect("fits");
        assert!(bytes.len() < file.len());
    }

    #[test]
    fn what_only_has_the_wrong_format_keeps_its_size() {
        let file = noise(OutputFormat::Png, Channels::Rgb);
        let bytes = convert(&file, Format::Gif, 256, usize::MAX).expect("decodes").expect("fits");
        let written = raster::probe(&bytes).expect("an image");
        assert_eq!((written.format, written.size()), (Format::Png, Size::new(256, 128)));
    }

    #[test]
    fn what_cannot_be_made_small_enough_is_refused_in_time() {
        let refused = made_to_fit(&noise(OutputFormat::Png, Channels::Rgb), 10).expect_err("cannot be");
        assert_eq!(refused, Refusal::Input("it cannot be made small enough".to_owned()));
    }
}
