//! Decodes the items of an image with rav1d, and converts their samples to sRGB.

use std::ptr::NonNull;

use rav1d::include::dav1d::data::Dav1dData;
use rav1d::include::dav1d::dav1d::{Dav1dContext, Dav1dSettings};
use rav1d::include::dav1d::picture::Dav1dPicture;
use rav1d::src::lib::{
    dav1d_close, dav1d_data_create, dav1d_data_unref, dav1d_default_settings, dav1d_get_picture, dav1d_open,
    dav1d_picture_unref, dav1d_send_data,
};

use super::Header;
use super::meta::{Colors, Tiles};
use crate::bitmap::Bitmap;
use crate::decode::{DecodeError, Raw, Samples, convert_coded};
use crate::geometry::Size;
use crate::header::{CodePoints, HeaderError};

/// A sample of which one is 10 000 cd/m² in PQ stands for white at this share of it: 203 cd/m² (ITU-R BT.2408).
const PQ_WHITE: f32 = 203.0 / 10_000.0;
/// The signal of white in HLG (ITU-R BT.2408).
const HLG_WHITE: f32 = 0.75;

/// ITU-T H.273, table 2, 3 and 4.
const BT709: u16 = 1;
const UNSPECIFIED: u16 = 2;
const SRGB_TRANSFER: u16 = 13;
const PQ: u16 = 16;
const HLG: u16 = 18;

/// Entries of a table for a value between 0 and 1.
const STEPS: usize = 4096;

/// Decodes the image as stored.
pub(super) fn decode(file: &[u8], header: &Header) -> Result<Bitmap, DecodeError> {
    let size = header.stored;
    let samples = if header.alpha.is_some() { Samples::Rgba } else { Samples::Rgb };
    let mut data = vec![255; size.pixels() as usize * samples.count()];
    let mut code_points = None;
    each_tile(file, &header.color, size, |picture, x, y| {
        let colors = header.code_points.unwrap_or_else(|| picture.colors());
        code_points.get_or_insert(points(colors)?);
        picture.write_colors(&Conversion::new(colors)?, &mut Target { data: &mut data, size, samples, x, y });
        Ok(())
    })?;
    if let Some(alpha) = &header.alpha {
        each_tile(file, alpha, size, |picture, x, y| {
            picture.write_alpha(&mut Target { data: &mut data, size, samples, x, y });
            Ok(())
        })?;
        if header.is_premultiplied {
            for pixel in data.chunks_exact_mut(4) {
                let alpha = u32::from(pixel[3]).max(1);
                for sample in &mut pixel[..3] {
                    *sample = ((u32::from(*sample) * 255 + alpha / 2) / alpha).min(255) as u8;
                }
            }
        }
    }
    let code_points = if header.icc.is_some() { None } else { code_points.flatten() };
    Ok(convert_coded(Raw { size, samples, data, icc: header.icc.clone() }, code_points))
}

/// What the numbers of a color space say; `None` for sRGB. What is converted by [`Conversion::table`] is sRGB but for its primaries.
fn points(colors: Colors) -> Result<Option<CodePoints>, DecodeError> {
    let primaries = if colors.primaries == UNSPECIFIED { BT709 } else { colors.primaries };
    let transfer = match colors.transfer {
        UNSPECIFIED | PQ | HLG => SRGB_TRANSFER,
        transfer => transfer,
    };
    let byte = |number: u16| u8::try_from(number).map_err(|_| HeaderError::UnsupportedAvif("its color space"));
    match (primaries, transfer) {
        (BT709, SRGB_TRANSFER) => Ok(None),
        _ => Ok(Some(CodePoints::of_rgb(byte(primaries)?, byte(transfer)?)?)),
    }
}

/// Decodes tile after tile, and passes each with its position.
fn each_tile(
    file: &[u8],
    tiles: &Tiles,
    size: Size,
    mut use_tile: impl FnMut(&Picture, u32, u32) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    for (index, place) in (0_u32..).zip(&tiles.places) {
        let data = place.read(file).ok_or(DecodeError::CutShort)?;
        let picture = Decoder::open(tiles.tile)?.decode(&data)?;
        let Size { width, height } = tiles.tile;
        if picture.size() != (width, height) {
            return Err(DecodeError::SizeMismatch);
        }
        let (x, y) = (index % tiles.columns * width, index / tiles.columns * height);
        debug_assert!(x < size.width && y < size.height);
        use_tile(&picture, x, y)?;
    }
    Ok(())
}

/// An open decoder.
struct Decoder(Option<Dav1dContext>);

impl Decoder {
    /// Opens one that refuses frames of more pixels than `largest`. It starts no threads.
    fn open(largest: Size) -> Result<Self, DecodeError> {
        let mut settings = std::mem::MaybeUninit::<Dav1dSettings>::uninit();
        // SAFETY: the pointer is valid for a write, after which the settings are initialized.
        let mut settings = unsafe {
            dav1d_default_settings(NonNull::from(&mut settings).cast());
            settings.assume_init()
        };
        settings.n_threads = 1;
        settings.max_frame_delay = 1;
        settings.all_layers = 0;
        settings.frame_size_limit = largest.pixels().try_into().unwrap_or(u32::MAX);
        let mut context = None;
        // SAFETY: both pointers are those of local variables.
        let result = unsafe { dav1d_open(Some(NonNull::from(&mut context)), Some(NonNull::from(&mut settings))) };
        if result.0 == 0 { Ok(Self(context)) } else { Err(DecodeError::Avif { code: result.0 }) }
    }

    /// The first frame of `data`.
    fn decode(self, data: &[u8]) -> Result<Picture, DecodeError> {
        let failed = |code| if code == 0 { Ok(()) } else { Err(DecodeError::Avif { code }) };
        if data.is_empty() {
            return Err(DecodeError::CutShort);
        }
        let mut input = Dav1dData::default();
        // SAFETY: `input` is a local variable, and what is returned is null or the start of as many bytes.
        unsafe {
            let buffer = dav1d_data_create(Some(NonNull::from(&mut input)), data.len());
            if buffer.is_null() {
                return Err(DecodeError::Avif { code: 0 });
            }
            std::ptr::copy_nonoverlapping(data.as_ptr(), buffer, data.len());
        }
        // SAFETY: the context is open until this is dropped.
        let sent = unsafe { dav1d_send_data(self.0, Some(NonNull::from(&mut input))) };
        let mut picture = Picture(Dav1dPicture::default());
        let result = failed(sent.0).and_then(|()| {
            // SAFETY: as above. The picture is a local variable without data.
            let got = unsafe { dav1d_get_picture(self.0, Some(NonNull::from(&mut picture.0))) };
            failed(got.0)
        });
        // SAFETY: `input` was made above, and is empty if the decoder took it.
        unsafe { dav1d_data_unref(Some(NonNull::from(&mut input))) };
        result.map(|()| picture)
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: the context was opened, and is closed once.
        unsafe { dav1d_close(Some(NonNull::from(&mut self.0))) };
    }
}

/// A decoded frame.
struct Picture(Dav1dPicture);

impl Drop for Picture {
    fn drop(&mut self) {
        // SAFETY: the picture is a valid one, with data or without.
        unsafe { dav1d_picture_unref(Some(NonNull::from(&mut self.0))) };
    }
}

/// Samples of one kind.
#[derive(Clone, Copy)]
struct Plane {
    /// Halved in this direction.
    halves: (bool, bool),
    width: u32,
    height: u32,
    start: NonNull<u8>,
    stride: isize,
    is_wide: bool,
}

impl Plane {
    /// Reads row `y`, counted from 0, into `row`.
    fn read(&self, y: u32, row: &mut [f32]) {
        let width = self.width as usize;
        debug_assert!(y < self.height && row.len() >= width);
        // SAFETY: the plane has `height` rows of `width` samples, `stride` bytes apart.
        unsafe {
            let start = self.start.as_ptr().offset(self.stride * y as isize);
            if self.is_wide {
                let samples = std::slice::from_raw_parts(start.cast::<u16>(), width);
                row.iter_mut().zip(samples).for_each(|(to, sample)| *to = f32::from(*sample));
            } else {
                let samples = std::slice::from_raw_parts(start, width);
                row.iter_mut().zip(samples).for_each(|(to, sample)| *to = f32::from(*sample));
            }
        }
    }

    /// Reads the samples at row `y` of the image, of which this plane may have half the columns or rows: a sample between two is
    /// three quarters of the near one and one quarter of the other.
    fn read_upsampled(&self, y: u32, rows: &mut [Vec<f32>; 2], out: &mut [f32]) {
        let width = self.width as usize;
        let [near, far] = rows;
        let (at, other) = if self.halves.1 {
            let at = y / 2;
            let other = if y.is_multiple_of(2) { at.saturating_sub(1) } else { (at + 1).min(self.height - 1) };
            (at, other)
        } else {
            (y, y)
        };
        self.read(at, near);
        if other != at {
            self.read(other, far);
            near[..width].iter_mut().zip(&far[..width]).for_each(|(near, far)| *near = 0.75 * *near + 0.25 * far);
        }
        if !self.halves.0 {
            out.copy_from_slice(&near[..out.len()]);
            return;
        }
        for (x, sample) in out.iter_mut().enumerate() {
            let at = x / 2;
            let other = if x.is_multiple_of(2) { at.saturating_sub(1) } else { (at + 1).min(width - 1) };
            *sample = 0.75 * near[at] + 0.25 * near[other];
        }
    }
}

/// The pixels of an image, and the place of a tile in it.
struct Target<'a> {
    data: &'a mut [u8],
    size: Size,
    samples: Samples,
    x: u32,
    y: u32,
}

impl Target<'_> {
    /// The part of a row of the image that row `y` of the tile covers; `None` below the image.
    fn row(&mut self, y: u32, width: u32) -> Option<&mut [u8]> {
        let (row, count) = (self.y + y, self.samples.count());
        if row >= self.size.height {
            return None;
        }
        let columns = width.min(self.size.width - self.x) as usize;
        let start = (row as usize * self.size.width as usize + self.x as usize) * count;
        self.data.get_mut(start..start + columns * count)
    }
}

impl Picture {
    fn size(&self) -> (u32, u32) {
        let side = |length: i32| u32::try_from(length).unwrap_or(0);
        (side(self.0.p.w), side(self.0.p.h))
    }

    /// The color space that the bitstream states.
    fn colors(&self) -> Colors {
        // SAFETY: a decoded picture refers to its sequence header as long as it lives.
        let header = self.0.seq_hdr.map(|header| unsafe { header.as_ref() });
        let number = |number: Option<u32>| number.and_then(|it| u16::try_from(it).ok()).unwrap_or(UNSPECIFIED);
        Colors {
            primaries: number(header.map(|it| it.pri)),
            transfer: number(header.map(|it| it.trc)),
            matrix: number(header.map(|it| it.mtrx)),
            is_full_range: header.is_some_and(|it| it.color_range != 0),
        }
    }

    /// Plane 0 is luma; 1 and 2 are chroma, which a gray image lacks.
    fn plane(&self, index: usize) -> Option<Plane> {
        let (width, height) = self.size();
        // As in AV1: without chroma, in a quarter, a half, or all of its samples.
        let (halves_x, halves_y) = match (index, self.0.p.layout) {
            (0, _) | (_, 3) => (false, false),
            (_, 2) => (true, false),
            (_, 1) => (true, true),
            _ => return None,
        };
        let half = |side: u32, is_half: bool| if is_half { side.div_ceil(2) } else { side };
        Some(Plane {
            halves: (halves_x, halves_y),
            width: half(width, halves_x),
            height: half(height, halves_y),
            start: self.0.data[index]?.cast(),
            stride: self.0.stride[usize::from(index > 0)],
            is_wide: self.0.p.bpc > 8,
        })
    }

    /// The values of black and of the largest sample, and of the largest chroma, as luma and chroma have them.
    fn range(&self, is_full: bool) -> Range {
        let bits = self.0.p.bpc.clamp(8, 12);
        let (scale, max) = ((1 << (bits - 8)) as f32, ((1 << bits) - 1) as f32);
        let middle = 128.0 * scale;
        match is_full {
            true => Range { black: 0.0, luma: max, middle, chroma: max },
            false => Range { black: 16.0 * scale, luma: 219.0 * scale, middle, chroma: 224.0 * scale },
        }
    }

    fn write_colors(&self, conversion: &Conversion, target: &mut Target<'_>) {
        let (width, height) = self.size();
        let Some(luma) = self.plane(0) else { return };
        let chroma = self.plane(1).zip(self.plane(2));
        let range = self.range(conversion.is_full_range);
        let row = || vec![0.0_f32; width as usize];
        let (mut y_row, mut u_row, mut v_row) = (row(), row(), row());
        let mut rows = [row(), row()];
        for y in 0..height {
            let count = target.samples.count();
            let Some(out) = target.row(y, width) else { break };
            luma.read(y, &mut y_row);
            y_row.iter_mut().for_each(|sample| *sample = (*sample - range.black) / range.luma);
            if let Some((u, v)) = &chroma {
                for (plane, row) in [(u, &mut u_row), (v, &mut v_row)] {
                    plane.read_upsampled(y, &mut rows, row);
                    let (from, by) =
                        if conversion.is_identity() { (range.black, range.luma) } else { (range.middle, range.chroma) };
                    row.iter_mut().for_each(|sample| *sample = (*sample - from) / by);
                }
            }
            for (pixel, ((y, u), v)) in out.chunks_exact_mut(count).zip(y_row.iter().zip(&u_row).zip(&v_row)) {
                let rgb = if chroma.is_some() { conversion.rgb(*y, *u, *v) } else { [*y; 3] };
                pixel[..3].copy_from_slice(&rgb.map(|value| conversion.sample(value)));
            }
        }
    }

    fn write_alpha(&self, target: &mut Target<'_>) {
        let (width, height) = self.size();
        let Some(luma) = self.plane(0) else { return };
        let range = self.range(self.colors().is_full_range);
        let mut row = vec![0.0_f32; width as usize];
        for y in 0..height {
            let count = target.samples.count();
            let Some(out) = target.row(y, width) else { break };
            luma.read(y, &mut row);
            for (pixel, sample) in out.chunks_exact_mut(count).zip(&row) {
                pixel[3] = byte((sample - range.black) / range.luma);
            }
        }
    }
}

struct Range {
    black: f32,
    luma: f32,
    middle: f32,
    chroma: f32,
}

fn byte(value: f32) -> u8 {
    (value * 255.0 + 0.5).clamp(0.0, 255.0) as u8
}

/// The conversion from luma and chroma to red, green and blue (ITU-T H.273, 8.3).
enum Matrix {
    /// Green, blue and red as they are.
    Identity,
    YCgCo,
    /// The weights of red and blue in luma.
    Weights(f32, f32),
}

struct Conversion {
    matrix: Matrix,
    is_full_range: bool,
    /// From the signal of PQ or HLG to that of sRGB, white being that of the reference and what is brighter being cut off.
    table: Option<Vec<u8>>,
}

impl Conversion {
    fn new(colors: Colors) -> Result<Self, DecodeError> {
        let matrix = match colors.matrix {
            0 => Matrix::Identity,
            1 => Matrix::Weights(0.2126, 0.0722),
            UNSPECIFIED | 5 | 6 => Matrix::Weights(0.299, 0.114),
            4 => Matrix::Weights(0.30, 0.11),
            7 => Matrix::Weights(0.212, 0.087),
            8 => Matrix::YCgCo,
            9 => Matrix::Weights(0.2627, 0.0593),
            _ => return Err(HeaderError::UnsupportedAvif("its matrix coefficients").into()),
        };
        let linear: Option<fn(f32) -> f32> = match colors.transfer {
            PQ => Some(|signal| pq(signal) / PQ_WHITE),
            HLG => Some(|signal| hlg(signal) / hlg(HLG_WHITE)),
            _ => None,
        };
        let entry = |index: usize| index as f32 / (STEPS - 1) as f32;
        let table = linear.map(|linear| (0..STEPS).map(|index| byte(srgb(linear(entry(index))))).collect());
        Ok(Self { matrix, is_full_range: colors.is_full_range, table })
    }

    fn is_identity(&self) -> bool {
        matches!(self.matrix, Matrix::Identity)
    }

    fn rgb(&self, y: f32, u: f32, v: f32) -> [f32; 3] {
        match self.matrix {
            Matrix::Identity => [v, y, u],
            Matrix::YCgCo => [y - u + v, y + u, y - u - v],
            Matrix::Weights(red, blue) => {
                let green = 1.0 - red - blue;
                let (r, b) = (y + 2.0 * (1.0 - red) * v, y + 2.0 * (1.0 - blue) * u);
                [r, (y - red * r - blue * b) / green, b]
            }
        }
    }

    fn sample(&self, value: f32) -> u8 {
        match &self.table {
            Some(table) => table[(value * (STEPS - 1) as f32 + 0.5).clamp(0.0, (STEPS - 1) as f32) as usize],
            None => byte(value),
        }
    }
}

/// The light of a signal, 1 being 10 000 cd/m² (SMPTE ST 2084).
fn pq(signal: f32) -> f32 {
    const M1: f32 = 2610.0 / 16384.0;
    const M2: f32 = 2523.0 / 4096.0 * 128.0;
    const C1: f32 = 3424.0 / 4096.0;
    const C2: f32 = 2413.0 / 4096.0 * 32.0;
    const C3: f32 = 2392.0 / 4096.0 * 32.0;
    let power = libm::powf(signal, 1.0 / M2);
    libm::powf((power - C1).max(0.0) / (C2 - C3 * power), 1.0 / M1)
}

/// The light of a scene for a signal, 0 to 1 (ARIB STD-B67).
fn hlg(signal: f32) -> f32 {
    const A: f32 = 0.178_832_77;
    const B: f32 = 1.0 - 4.0 * A;
    const C: f32 = 0.559_910_7;
    if signal <= 0.5 { signal * signal / 3.0 } else { (libm::expf((signal - C) / A) + B) / 12.0 }
}

/// The signal of sRGB for light (IEC 61966-2-1).
fn srgb(light: f32) -> f32 {
    if light <= 0.003_130_8 { 12.92 * light } else { 1.055 * libm::powf(light, 1.0 / 2.4) - 0.055 }
}
