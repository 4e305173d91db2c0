//! Decodes JPEG with libjpeg-turbo, row by row. The image can be reduced in scale or decoded in
//! part.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::marker::PhantomData;
use std::ptr::NonNull;

// Links libjpeg-turbo, which the functions below call.
use turbojpeg_sys as _;

use super::jpeg_segments::{self, MAX_SCANS, Segments};
use super::{DecodeError, Samples};
use crate::geometry::{Rect, Size};

/// The alignment of the left edge of a region: a multiple of the blocks of every horizontal sampling
/// factor (one to four times eight columns).
const COLUMNS: u32 = 96;

/// The alignment of the first row that is decoded: a multiple of every vertical sampling factor.
const ROWS: u32 = 32;

/// The number of columns and rows that are decoded around a region. Chroma smoothing at an edge
/// depends only on neighboring samples, so within the inner half of the margin the result equals
/// that of the whole image.
const MARGIN: u32 = 32;

/// The state of the decoder in C (`jpeg_rows.c`).
#[repr(C)]
struct Opaque {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn raster_jpeg_open(bytes: *const u8, length: usize, scans_max: c_int) -> *mut Opaque;
    fn raster_jpeg_message(jpeg: *const Opaque) -> *const c_char;
    fn raster_jpeg_header(jpeg: *const Opaque, header: *mut c_uint);
    fn raster_jpeg_start(
        jpeg: *mut Opaque,
        color_space: c_uint,
        reduction: c_uint,
        left: c_uint,
        width: c_uint,
        size: *mut c_uint,
    ) -> c_int;
    fn raster_jpeg_read(jpeg: *mut Opaque, pixels: *mut u8, pitch: usize, rows: c_uint) -> c_int;
    fn raster_jpeg_skip(jpeg: *mut Opaque, rows: c_uint) -> c_int;
    fn raster_jpeg_finish(jpeg: *mut Opaque) -> c_int;
    fn raster_jpeg_close(jpeg: *mut Opaque);
}

/// The error message of libjpeg-turbo.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct JpegError(String);

/// A decoder that borrows the bytes of the file.
struct Decoder<'a> {
    jpeg: NonNull<Opaque>,
    bytes: PhantomData<&'a [u8]>,
}

impl Drop for Decoder<'_> {
    fn drop(&mut self) {
        // SAFETY: the decoder was opened and is not used afterwards.
        unsafe { raster_jpeg_close(self.jpeg.as_ptr()) };
    }
}

impl<'a> Decoder<'a> {
    /// Reads the header. Returns the decoder, the size, and the sample format with libjpeg's number
    /// for it.
    fn open(bytes: &'a [u8]) -> Result<(Self, Size, (c_uint, Samples)), DecodeError> {
        // SAFETY: the pointer and the length are those of one live slice.
        let jpeg = unsafe { raster_jpeg_open(bytes.as_ptr(), bytes.len(), MAX_SCANS as c_int) };
        let jpeg = NonNull::new(jpeg).ok_or_else(|| failed("there is no memory"))?;
        let decoder = Self { jpeg, bytes: PhantomData };
        if let Some(message) = decoder.message() {
            return Err(failed(&message));
        }
        let mut header = [0; 4];
        // SAFETY: the decoder is alive, and four numbers are written to an array of four.
        unsafe { raster_jpeg_header(decoder.jpeg.as_ptr(), header.as_mut_ptr()) };
        let [width, height, precision, color_space] = header;
        // The numbers are those of `J_COLOR_SPACE`.
        let output = match (color_space, precision) {
            (1, 8) => (1, Samples::Grey),
            (2 | 3, 8) => (2, Samples::Rgb),
            (4 | 5, 8) => (4, Samples::Cmyk),
            _ => return Err(failed("its samples are of an unsupported kind")),
        };
        Ok((decoder, Size::new(width, height), output))
    }

    /// The first error message.
    fn message(&self) -> Option<String> {
        // SAFETY: the decoder is alive. Its message, if there is one, is a C string that is copied
        // immediately.
        unsafe {
            let message = raster_jpeg_message(self.jpeg.as_ptr());
            (!message.is_null()).then(|| CStr::from_ptr(message).to_string_lossy().into_owned())
        }
    }

    /// Converts the status of a call to a result.
    fn check(&self, status: c_int) -> Result<(), DecodeError> {
        match status {
            0 => Ok(()),
            _ => Err(failed(&self.message().unwrap_or_default())),
        }
    }
}

fn failed(message: &str) -> DecodeError {
    DecodeError::Jpeg(JpegError(message.to_owned()))
}

/// The rows of a JPEG, or of a part of it, from top to bottom.
pub(super) struct Rows<'a> {
    decoder: Decoder<'a>,
    segments: Segments,
    samples: Samples,
    /// The size of all rows together.
    size: Size,
    reduction: u8,
    /// The number of rows that were read.
    read: u32,
}

impl<'a> Rows<'a> {
    /// Opens a whole image of size `stored`, with each side divided by `reduction`: 1, 2, 4 or 8.
    /// A lossless JPEG is never reduced.
    pub(super) fn whole(bytes: &'a [u8], stored: Size, reduction: u8) -> Result<Self, DecodeError> {
        let (decoder, segments, output) = open(bytes, stored)?;
        let reduction = if segments.is_lossless { 1 } else { reduction };
        start(decoder, segments, output, reduction, None)
    }

    /// Opens the rows of a rectangle, and returns which of the decoded columns belong to it. Only
    /// what the rectangle needs is transformed; what is below it is never read.
    pub(super) fn part(bytes: &'a [u8], stored: Size, wanted: Rect) -> Result<(Self, u32), DecodeError> {
        let (decoder, segments, output) = open(bytes, stored)?;
        let left = wanted.x.saturating_sub(MARGIN) / COLUMNS * COLUMNS;
        let right = (wanted.x + wanted.size.width + MARGIN).min(stored.width);
        let columns = (!segments.is_lossless && right - left < stored.width).then_some((left, right - left));
        let skipped = if segments.is_lossless { 0 } else { (wanted.y / ROWS * ROWS).saturating_sub(MARGIN) };
        let mut rows = start(decoder, segments, output, 1, columns)?;
        rows.skip(skipped)?;
        let mut passed = vec![0; rows.row_bytes()];
        for _ in skipped..wanted.y {
            rows.read(&mut passed)?;
        }
        Ok((rows, wanted.x - columns.map_or(0, |(left, _)| left)))
    }

    /// The size of all rows together.
    pub(super) fn size(&self) -> Size {
        self.size
    }

    /// By how much each side was reduced.
    pub(super) fn reduction(&self) -> u8 {
        self.reduction
    }

    /// The kind of the samples.
    pub(super) fn samples(&self) -> Samples {
        self.samples
    }

    /// The embedded ICC profile.
    pub(super) fn icc(&self) -> Option<&[u8]> {
        self.segments.icc.as_deref()
    }

    /// The number of bytes per row.
    pub(super) fn row_bytes(&self) -> usize {
        self.size.width as usize * self.samples.count()
    }

    /// Reads as many whole rows as `data` has room for. That many rows must remain.
    pub(super) fn read(&mut self, data: &mut [u8]) -> Result<(), DecodeError> {
        let pitch = self.row_bytes();
        // The number is at most the height.
        let count = (data.len() / pitch) as u32;
        debug_assert!(count <= self.size.height - self.read);
        // SAFETY: the decoder is alive and started. `count` rows of `pitch` bytes are written to a
        // buffer of that size.
        let status = unsafe { raster_jpeg_read(self.decoder.jpeg.as_ptr(), data.as_mut_ptr(), pitch, count) };
        self.decoder.check(status)?;
        self.read += count;
        // CMYK is stored inverted. Files without an Adobe marker do not say so, but browsers show them like that.
        if self.samples == Samples::Cmyk {
            data.iter_mut().for_each(|sample| *sample = 255 - *sample);
        }
        Ok(())
    }

    /// Skips rows without transforming them.
    fn skip(&mut self, count: u32) -> Result<(), DecodeError> {
        // SAFETY: the decoder is alive and started.
        let status = unsafe { raster_jpeg_skip(self.decoder.jpeg.as_ptr(), count) };
        self.decoder.check(status)?;
        self.read += count;
        Ok(())
    }

    /// Reads to the end of the file.
    ///
    /// # Errors
    ///
    /// If there was any error or damage in the file.
    pub(super) fn finish(mut self) -> Result<(), DecodeError> {
        let rest = self.size.height - self.read;
        // The last row is read, because a skip to the very end would check nothing. Lossless data
        // cannot be skipped.
        let read = if self.segments.is_lossless { rest } else { rest.min(1) };
        if rest > read {
            self.skip(rest - read)?;
        }
        let mut passed = vec![0; self.row_bytes()];
        for _ in 0..read {
            self.read(&mut passed)?;
        }
        // SAFETY: the decoder is alive and started, and all its rows were read.
        let status = unsafe { raster_jpeg_finish(self.decoder.jpeg.as_ptr()) };
        self.decoder.check(status)
    }
}

type Opened<'a> = (Decoder<'a>, Segments, (c_uint, Samples));

fn open(bytes: &[u8], stored: Size) -> Result<Opened<'_>, DecodeError> {
    let segments = jpeg_segments::parse(bytes)?;
    let (decoder, size, output) = Decoder::open(bytes)?;
    if size != stored {
        return Err(DecodeError::SizeMismatch);
    }
    Ok((decoder, segments, output))
}

fn start<'a>(
    decoder: Decoder<'a>,
    segments: Segments,
    (color_space, samples): (c_uint, Samples),
    reduction: u8,
    columns: Option<(u32, u32)>,
) -> Result<Rows<'a>, DecodeError> {
    let (left, width) = columns.unwrap_or_default();
    let mut size = [0; 2];
    // SAFETY: the decoder is alive and has read its header. Two numbers are written to an array of
    // two.
    let status = unsafe {
        raster_jpeg_start(decoder.jpeg.as_ptr(), color_space, reduction.into(), left, width, size.as_mut_ptr())
    };
    decoder.check(status)?;
    Ok(Rows { decoder, segments, samples, size: Size::new(size[0], size[1]), reduction, read: 0 })
}
