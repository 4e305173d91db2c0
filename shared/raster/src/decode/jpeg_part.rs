//! A rectangle of a JPEG through libjpeg-turbo, without transforming what lies elsewhere.
//!
//! The safe binding has no call for it, so that this speaks to the C interface itself.

use std::ffi::{CStr, c_int};

use turbojpeg::{Decompressor, raw};

use super::jpeg::layout;
use super::jpeg_segments::{self, MAX_SCANS};
use super::{DecodeError, Raw, Samples};
use crate::geometry::{Rect, Size};

/// The left edge of a region lies on a block of the widest subsampling (4:1:1: four times eight columns).
const BLOCK: u32 = 32;

/// Columns and rows that are decoded around the rectangle: smoothing of chroma at the edge of a region sees no further
/// than its neighbours, so that within the margin's inner half all is as in the whole picture.
const MARGIN: u32 = 32;

/// A decompressor's handle.
struct Handle(raw::tjhandle);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle came from `tj3Init` and is not used again.
        unsafe { raw::tj3Destroy(self.0) };
    }
}

impl Handle {
    fn new() -> Result<Self, DecodeError> {
        // SAFETY: no precondition; null is answered when there is no memory.
        let handle = unsafe { raw::tj3Init(raw::TJINIT_TJINIT_DECOMPRESS as c_int) };
        if handle.is_null() { Err(DecodeError::Jpeg(turbojpeg::Error::Null)) } else { Ok(Self(handle)) }
    }

    /// The outcome of a call on this handle.
    fn check(&self, status: c_int) -> Result<(), DecodeError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the handle is alive; its message is a C string that lives until the next call, and is copied at once.
        let message = unsafe { CStr::from_ptr(raw::tj3GetErrorStr(self.0)) }.to_string_lossy().into_owned();
        Err(DecodeError::Jpeg(turbojpeg::Error::TurboJpegError(message)))
    }
}

/// Decodes the surroundings of `wanted`, and tells where in them it lies. `None` where there is no shortcut: the whole
/// picture is needed (lossless JPEG), or the rectangle with its margin is as good as all of it.
pub(super) fn decode(bytes: &[u8], stored: Size, wanted: Rect) -> Result<Option<(Raw, Rect)>, DecodeError> {
    let mut decompressor = Decompressor::new().map_err(DecodeError::Jpeg)?;
    let header = decompressor.read_header(bytes).map_err(DecodeError::Jpeg)?;
    if (header.width, header.height) != (stored.width as usize, stored.height as usize) {
        return Err(DecodeError::SizeMismatch);
    }
    if header.is_lossless {
        return Ok(None);
    }
    let left = (wanted.x / BLOCK * BLOCK).saturating_sub(MARGIN);
    let top = (wanted.y / BLOCK * BLOCK).saturating_sub(MARGIN);
    let right = (wanted.x + wanted.size.width + MARGIN).min(stored.width);
    let bottom = (wanted.y + wanted.size.height + MARGIN).min(stored.height);
    let size = Size::new(right - left, bottom - top);
    if size == stored {
        return Ok(None);
    }
    let segments = jpeg_segments::read(bytes)?;
    let (format, samples) = layout(header.colorspace);
    let pitch = size.width as usize * samples.count();
    let mut data = vec![0; pitch * size.height as usize];
    let handle = Handle::new()?;
    // Sides are at most 30000 and the data 400 million bytes: all of it fits a `c_int`.
    let region = raw::tjregion { x: left as c_int, y: top as c_int, w: size.width as c_int, h: size.height as c_int };
    // SAFETY: the handle is alive, pointer and length are of one live slice, which the calls only read.
    unsafe {
        handle.check(raw::tj3Set(handle.0, raw::TJPARAM_TJPARAM_SCANLIMIT as c_int, MAX_SCANS as c_int))?;
        handle.check(raw::tj3DecompressHeader(handle.0, bytes.as_ptr(), bytes.len() as _))?;
        handle.check(raw::tj3SetCroppingRegion(handle.0, region))?;
    }
    // SAFETY: as above; the call writes `h` rows of `w` pixels of the format, `pitch` bytes apart, which is what `data`
    // was made for: the header was read from the same bytes.
    let status = unsafe {
        raw::tj3Decompress8(
            handle.0,
            bytes.as_ptr(),
            bytes.len() as _,
            data.as_mut_ptr(),
            pitch as c_int,
            format as c_int,
        )
    };
    handle.check(status)?;
    if samples == Samples::Cmyk && segments.adobe {
        data.iter_mut().for_each(|sample| *sample = 255 - *sample);
    }
    let inner = Rect { x: wanted.x - left, y: wanted.y - top, size: wanted.size };
    Ok(Some((Raw { size, samples, data, icc: segments.icc }, inner)))
}
