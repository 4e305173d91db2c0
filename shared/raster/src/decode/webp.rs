//! Decodes WebP with libwebp: still images, and the first frame of animations on their canvas.

use libwebp_sys::{
    VP8StatusCode, WEBP_CSP_MODE, WebPBitstreamFeatures, WebPDecode, WebPDecoderConfig, WebPGetFeatures, WebPRGBABuffer,
};

use super::{DecodeError, Raw, Samples};
use crate::geometry::Size;
use crate::header::check_limits;

/// The relevant chunks of the container.
struct Chunks<'a> {
    icc: Option<&'a [u8]>,
    image: Frame<'a>,
}

/// The first frame.
enum Frame<'a> {
    /// The chunks of a still image: its alpha channel, if it has one, and its bitstream.
    Still(&'a [u8]),
    /// The data of an `ANMF` chunk.
    Animated(&'a [u8]),
}

pub(super) fn decode(bytes: &[u8], canvas: Size) -> Result<Raw, DecodeError> {
    let Chunks { icc, image } = read_chunks(bytes).ok_or(DecodeError::CutShort)?;
    let mut raw = match image {
        Frame::Still(chunks) => decode_bitstream(chunks, canvas)?,
        Frame::Animated(frame) => decode_frame(frame, canvas)?,
    };
    raw.icc = icc.map(<[u8]>::to_vec);
    Ok(raw)
}

/// Parses the container (RFC 9649, 2.3 and 2.7) up to the end of the first frame. Later bytes are ignored. `None`
/// if the file ends before.
fn read_chunks(bytes: &[u8]) -> Option<Chunks<'_>> {
    let declared = (le32(bytes, 4)? as usize).saturating_add(8);
    let mut rest = bytes.get(12..declared.min(bytes.len()))?;
    let mut icc = None;
    // The rest of the file from the alpha channel on.
    let mut with_alpha: Option<&[u8]> = None;
    loop {
        let (data, after) = chunk_data(rest)?;
        match rest.get(..4)? {
            b"ICCP" if icc.is_none() => icc = Some(data),
            b"ALPH" if with_alpha.is_none() => with_alpha = Some(rest),
            b"ANMF" => return Some(Chunks { icc, image: Frame::Animated(data) }),
            b"VP8 " | b"VP8L" => {
                let chunks = with_alpha.unwrap_or(rest);
                let length = chunks.len() - rest.len() + 8 + data.len();
                return Some(Chunks { icc, image: Frame::Still(&chunks[..length]) });
            }
            _ => {}
        }
        rest = after;
    }
}

/// The data of the first chunk in `rest`, and the bytes after the chunk.
fn chunk_data(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = le32(rest, 4)? as usize;
    let end = 8usize.checked_add(length)?;
    let data = rest.get(8..end)?;
    // Some encoders omit the padding byte of the last chunk.
    Some((data, rest.get(end + (length & 1)..).unwrap_or_default()))
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Decodes an `ANMF` chunk (RFC 9649, 2.7.1.1) onto a transparent canvas.
fn decode_frame(frame: &[u8], canvas: Size) -> Result<Raw, DecodeError> {
    let (head, bitstream) = frame.split_at_checked(16).ok_or(DecodeError::CutShort)?;
    let le24 = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], 0]);
    let (x, y) = (le24(0) * 2, le24(3) * 2);
    let size = Size::new(le24(6) + 1, le24(9) + 1);
    if x + size.width > canvas.width || y + size.height > canvas.height {
        return Err(DecodeError::SizeMismatch);
    }
    let inner = decode_bitstream(bitstream, size)?;
    if size == canvas {
        return Ok(inner);
    }
    let (width, left) = (canvas.width as usize, x as usize);
    let mut data = vec![0; width * canvas.height as usize * 4];
    let rows = inner.data.chunks_exact(size.width as usize * inner.samples.count());
    for (target, row) in data.chunks_exact_mut(width * 4).skip(y as usize).zip(rows) {
        for (pixel, source) in target.chunks_exact_mut(4).skip(left).zip(row.chunks_exact(inner.samples.count())) {
            pixel[3] = 255;
            pixel[..source.len()].copy_from_slice(source);
        }
    }
    Ok(Raw { size: canvas, samples: Samples::Rgba, data, icc: None })
}

/// Decodes a still image of size `declared`, given by its chunks. An image of another size is
/// refused before memory is allocated: what was reserved is for the declared one.
fn decode_bitstream(bytes: &[u8], declared: Size) -> Result<Raw, DecodeError> {
    let failed = |status: VP8StatusCode| DecodeError::Webp { status: status as u32 };
    let mut features =
        WebPBitstreamFeatures { width: 0, height: 0, has_alpha: 0, has_animation: 0, format: 0, pad: [0; 5] };
    // SAFETY: the pointer and length are of one live slice, and `features` is valid for writes.
    let status = unsafe { WebPGetFeatures(bytes.as_ptr(), bytes.len(), &raw mut features) };
    if status != VP8StatusCode::VP8_STATUS_OK {
        return Err(failed(status));
    }
    let (Ok(width), Ok(height)) = (u32::try_from(features.width), u32::try_from(features.height)) else {
        return Err(DecodeError::SizeMismatch);
    };
    let size = Size::new(width, height);
    if size != declared {
        return Err(DecodeError::SizeMismatch);
    }
    check_limits(size)?;
    let (samples, colorspace) = match features.has_alpha {
        0 => (Samples::Rgb, WEBP_CSP_MODE::MODE_RGB),
        _ => (Samples::Rgba, WEBP_CSP_MODE::MODE_RGBA),
    };
    let stride = width as usize * samples.count();
    let mut data = vec![0; stride * height as usize];
    // The constructor fails only if the version of the library differs from that of the bindings.
    let mut config = WebPDecoderConfig::new().map_err(|()| DecodeError::Webp { status: 0 })?;
    config.output.colorspace = colorspace;
    config.output.is_external_memory = 1;
    // A side is at most 16383 (14 bits), or 16777216 for animations, whose large frames were
    // rejected above. Four bytes per pixel of a size within the limits fit an `i32`.
    config.output.u.RGBA = WebPRGBABuffer { rgba: data.as_mut_ptr(), stride: stride as i32, size: data.len() };
    // SAFETY: the input is one live slice. The output refers to `data` as external memory with its
    // actual length and stride. The library checks these against the size of the image, fills the
    // memory, and does not keep the pointer.
    let status = unsafe { WebPDecode(bytes.as_ptr(), bytes.len(), &raw mut config) };
    if status != VP8StatusCode::VP8_STATUS_OK {
        return Err(failed(status));
    }
    Ok(Raw { size, samples, data, icc: None })
}
