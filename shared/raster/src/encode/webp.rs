//! Encodes lossy WebP with libwebp. Alpha is stored losslessly.

use std::ffi::c_int;
use std::ptr;

use libwebp_sys as ffi;

use super::EncodeError;
use crate::picture::{Channels, Picture};

/// The maximum side of a WebP picture: 14 bits (RFC 9649, 2.5).
pub const MAX_SIDE: u32 = 16_383;

/// The compression effort, 0 to 6. At quality 85, a textured picture of 1600 × 1067 took 97 ms and
/// 193 kB (39.1 dB) with 2, and 208 ms and 189 kB (37.9 dB) with 4. Method 2 thus takes half the
/// time for 2 % more bytes and no loss of quality.
const METHOD: c_int = 2;

/// A libwebp picture and the writer that collects its bytes. Both are freed on drop.
struct Session {
    picture: ffi::WebPPicture,
    writer: ffi::WebPMemoryWriter,
}

impl Session {
    fn new() -> Option<Self> {
        let picture = ffi::WebPPicture::new().ok()?;
        Some(Self { picture, writer: ffi::WebPMemoryWriter { mem: ptr::null_mut(), size: 0, max_size: 0, pad: [0] } })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: both were initialized by the library or are in their empty state, and are not
        // used again.
        unsafe {
            ffi::WebPPictureFree(&raw mut self.picture);
            ffi::WebPMemoryWriterClear(&raw mut self.writer);
        }
    }
}

pub(super) fn encode(picture: &Picture, quality: u8) -> Result<Vec<u8>, EncodeError> {
    if picture.width().max(picture.height()) > MAX_SIDE {
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
    config.quality = f32::from(quality);
    config.method = METHOD;
    session.picture.width = picture.width() as c_int;
    session.picture.height = picture.height() as c_int;
    session.picture.writer = Some(ffi::WebPMemoryWrite);
    session.picture.custom_ptr = (&raw mut session.writer).cast();
    let (pixels, stride) = (picture.pixels().as_ptr(), picture.stride() as c_int);
    // SAFETY: the buffer of the picture contains `height` rows of `stride` bytes in the given
    // layout, and the library copies them.
    let imported = unsafe {
        match picture.channels() {
            Channels::Rgb => ffi::WebPPictureImportRGB(&raw mut session.picture, pixels, stride),
            Channels::Rgba => ffi::WebPPictureImportRGBA(&raw mut session.picture, pixels, stride),
        }
    };
    // SAFETY: the configuration and the picture are initialized. The writer to which `custom_ptr`
    // points is part of `session`, which is not moved before the call returns.
    if imported == 0 || unsafe { ffi::WebPEncode(&raw const config, &raw mut session.picture) } == 0 {
        return Err(EncodeError::Webp { code: session.picture.error_code as u32 });
    }
    if session.writer.mem.is_null() {
        return Err(EncodeError::Webp { code: 0 });
    }
    // SAFETY: the writer owns `size` initialized bytes at `mem`, which is not null.
    Ok(unsafe { std::slice::from_raw_parts(session.writer.mem, session.writer.size) }.to_vec())
}
