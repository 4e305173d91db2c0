//! Encodes WebP with libwebp: lossy with lossless alpha, or lossless.

use std::ffi::c_int;
use std::ptr;

use libwebp_sys as ffi;

use super::EncodeError;
use crate::bitmap::{Bitmap, Channels};

/// The maximum side of a WebP image: 14 bits (RFC 9649, 2.5).
pub const MAX_SIDE: u32 = 16_383;

/// The compression effort, 0 to 6. At quality 85, a textured image of 1600 × 1067 took 97 ms and
/// 193 kB (39.1 dB) with 2, and 208 ms and 189 kB (37.9 dB) with 4. Method 2 thus takes half the
/// time for 2 % more bytes and no loss of quality.
const METHOD: c_int = 2;

/// The effort of a lossless image: libwebp's second fastest preset.
const LOSSLESS: (c_int, f32) = (1, 20.0);

/// What a file keeps of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// As much as this quality, 1 to 100, preserves.
    Lossy(u8),
    /// All, also those of transparent pixels.
    Lossless,
}

/// A libwebp image and the writer that collects its bytes. Both are freed on drop.
struct Session {
    image: ffi::WebPPicture,
    writer: ffi::WebPMemoryWriter,
}

impl Session {
    fn new() -> Option<Self> {
        let image = ffi::WebPPicture::new().ok()?;
        Some(Self { image, writer: ffi::WebPMemoryWriter { mem: ptr::null_mut(), size: 0, max_size: 0, pad: [0] } })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: both were initialized by the library or are in their empty state, and are not
        // used again.
        unsafe {
            ffi::WebPPictureFree(&raw mut self.image);
            ffi::WebPMemoryWriterClear(&raw mut self.writer);
        }
    }
}

pub(super) fn encode(image: &Bitmap, coding: Coding) -> Result<Vec<u8>, EncodeError> {
    if image.width().max(image.height()) > MAX_SIDE {
        return Err(EncodeError::WebpSideTooLong);
    }
    // The constructors fail only if the version of the library differs from that of the bindings.
    let version_mismatch = EncodeError::Webp { code: 0 };
    let Ok(mut config) = ffi::WebPConfig::new() else {
        return Err(version_mismatch);
    };
    let Some(mut session) = Session::new() else {
        return Err(version_mismatch);
    };
    match coding {
        Coding::Lossy(quality) => (config.method, config.quality) = (METHOD, f32::from(quality)),
        Coding::Lossless => {
            (config.method, config.quality) = LOSSLESS;
            (config.lossless, config.exact, session.image.use_argb) = (1, 1, 1);
        }
    }
    session.image.width = image.width() as c_int;
    session.image.height = image.height() as c_int;
    session.image.writer = Some(ffi::WebPMemoryWrite);
    session.image.custom_ptr = (&raw mut session.writer).cast();
    let (pixels, stride) = (image.pixels().as_ptr(), image.stride() as c_int);
    // SAFETY: the buffer of the image contains `height` rows of `stride` bytes in the given
    // layout, and the library copies them.
    let imported = unsafe {
        match image.channels() {
            Channels::Rgb => ffi::WebPPictureImportRGB(&raw mut session.image, pixels, stride),
            Channels::Rgba => ffi::WebPPictureImportRGBA(&raw mut session.image, pixels, stride),
        }
    };
    // SAFETY: the configuration and the image are initialized. The writer to which `custom_ptr`
    // points is part of `session`, which is not moved before the call returns.
    if imported == 0 || unsafe { ffi::WebPEncode(&raw const config, &raw mut session.image) } == 0 {
        return Err(EncodeError::Webp { code: session.image.error_code as u32 });
    }
    if session.writer.mem.is_null() {
        return Err(EncodeError::Webp { code: 0 });
    }
    // SAFETY: the writer owns `size` initialized bytes at `mem`, which is not null.
    Ok(unsafe { std::slice::from_raw_parts(session.writer.mem, session.writer.size) }.to_vec())
}
