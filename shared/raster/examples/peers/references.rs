//! Reference results of jobs, without lossy steps and intermediate rounding, where they are simple
//! to compute.
//!
//! A resize is compared with an exact Lanczos-3; crop, quarter turn, padding and side by side with
//! the decoded pixels; overlay with Lanczos-3 and source-over in floating point. A grade is
//! compared with our own formulas in floating point. The peers use other formulas (sharp works in
//! CIE LCh, Pillow around the mean gray), so this reference measures our accuracy and not theirs.
//! There is no reference for a rotation by 12°, for which the kernels and origins of engines differ
//! by more than the coding loss, nor for text, for which they differ in shaping, hinting and
//! position.

use std::path::Path;

use image::imageops::{FilterType, resize};
use image::{ImageBuffer, Rgba};
use raster::{Bitmap, Channels, Orientation, Size};

use crate::Result;
use crate::jobs::GRADE;

/// The reference of a job, if there is one.
pub fn reference(job: &str, images: &Path) -> Result<Option<Bitmap>> {
    let source = |name: &str| -> Result<Bitmap> { read(&std::fs::read(images.join(name))?) };
    Ok(match job {
        "resize" | "resize-progressive" => scaled(&source("photo.jpg")?, 1024),
        "resize-png" => scaled(&source("photo.png")?, 512),
        "resize-flat-png" => scaled(&source("flat.png")?, 512),
        "webp" => scaled(&source("large.jpg")?, 1600),
        "from-webp" => Some(source("photo.webp")?),
        "crop" => placed(&source("photo.jpg")?, Size::new(2000, 1500), &[(-1000, -750)]),
        "rotate-90" => Some(Orientation::Rotate90.apply(source("photo.jpg")?)),
        "side-by-side" => placed(&source("photo.jpg")?, Size::new(8000, 3000), &[(0, 0), (4000, 0)]),
        // ceil(3000 · 16 / 9), the image in the middle.
        "change-ratio" => placed(&source("photo.jpg")?, Size::new(5334, 3000), &[(667, 0)]),
        "overlay" => overlaid(source("photo.jpg")?, &source("logo.png")?, 1000),
        "grade" => graded(&source("photo.jpg")?),
        _ => None,
    })
}

/// The decoded pixels of a file.
pub fn read(bytes: &[u8]) -> Result<Bitmap> {
    Ok(raster::decode(bytes)?)
}

/// Peak signal-to-noise ratio in decibels; `None` when the sizes differ.
pub fn psnr(a: &Bitmap, b: &Bitmap) -> Option<f64> {
    if a.size() != b.size() || a.channels() != b.channels() {
        return None;
    }
    let squares: f64 = a.pixels().iter().zip(b.pixels()).map(|(a, b)| f64::from(a.abs_diff(*b)).powi(2)).sum();
    Some(10.0 * (255.0f64.powi(2) * a.pixels().len() as f64 / squares.max(1e-9)).log10())
}

fn scaled(image: &Bitmap, width: u32) -> Option<Bitmap> {
    let height = (f64::from(image.height()) * f64::from(width) / f64::from(image.width())).round() as u32;
    let buffer = image::RgbImage::from_raw(image.width(), image.height(), image.pixels().to_vec())?;
    let scaled = resize(&buffer, width, height, FilterType::Lanczos3);
    Bitmap::new(Size::new(width, height), Channels::Rgb, scaled.into_raw())
}

/// An image at each of `places`, its left and top edge, on a white canvas that clips it.
fn placed(image: &Bitmap, size: Size, places: &[(i64, i64)]) -> Option<Bitmap> {
    let (width, height) = (image.width() as usize, image.height() as usize);
    let mut pixels = vec![255; size.pixels() as usize * 3];
    for &(left, top) in places {
        for (y, row) in pixels.chunks_exact_mut(size.width as usize * 3).enumerate() {
            let Some(from) = usize::try_from(y as i64 - top).ok().filter(|row| *row < height) else { continue };
            let from = &image.pixels()[from * width * 3..][..width * 3];
            let (skipped, start) = (left.min(0).unsigned_abs() as usize * 3, left.max(0) as usize * 3);
            let count = (from.len() - skipped).min(row.len() - start);
            row[start..start + count].copy_from_slice(&from[skipped..skipped + count]);
        }
    }
    Bitmap::new(size, Channels::Rgb, pixels)
}

/// A logo, scaled to `width` and drawn over the lower right corner: source-over of premultiplied colors.
fn overlaid(image: Bitmap, logo: &Bitmap, width: u32) -> Option<Bitmap> {
    let premultiplied = logo.pixels().chunks_exact(4).flat_map(|pixel| {
        let alpha = f32::from(pixel[3]) / 255.0;
        [0, 1, 2].map(|c| f32::from(pixel[c]) / 255.0 * alpha).into_iter().chain([alpha])
    });
    let buffer: ImageBuffer<Rgba<f32>, Vec<f32>> =
        ImageBuffer::from_raw(logo.width(), logo.height(), premultiplied.collect())?;
    let height = (f64::from(logo.height()) * f64::from(width) / f64::from(logo.width())).round() as u32;
    let layer = resize(&buffer, width, height, FilterType::Lanczos3);
    let (size, mut pixels) = (image.size(), image.pixels().to_vec());
    let (left, top) = (size.width - width, size.height - height);
    for (x, y, over) in layer.enumerate_pixels() {
        let at = ((top + y) as usize * size.width as usize + (left + x) as usize) * 3;
        for c in 0..3 {
            let under = f32::from(pixels[at + c]) / 255.0;
            pixels[at + c] = ((over[c] + under * (1.0 - over[3])).clamp(0.0, 1.0) * 255.0).round() as u8;
        }
    }
    Bitmap::new(size, Channels::Rgb, pixels)
}

/// The grade by the formulas of `raster::grade`, each step in floating point.
fn graded(image: &Bitmap) -> Option<Bitmap> {
    let [brightness, contrast, saturation] =
        [GRADE.brightness, GRADE.contrast, GRADE.saturation].map(|percent| 1.0 + percent / 100.0);
    let toned: Vec<f64> = (0..=255)
        .map(|level| ((f64::from(level) / 255.0 * brightness - 0.5) * contrast + 0.5).clamp(0.0, 1.0))
        .collect();
    let pixels = image.pixels().chunks_exact(3).flat_map(|pixel| {
        let [r, g, b] = [0, 1, 2].map(|c| toned[usize::from(pixel[c])]);
        let luma = (54.0 * r + 183.0 * g + 19.0 * b) / 256.0;
        [r, g, b].map(|v| ((luma + (v - luma) * saturation).clamp(0.0, 1.0) * 255.0).round() as u8)
    });
    Bitmap::new(image.size(), Channels::Rgb, pixels.collect())
}
