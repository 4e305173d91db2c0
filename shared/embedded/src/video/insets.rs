//! Reference images as insets: prints with a white border and a soft shadow that appear in the
//! frame one after another.

use bytes::Bytes;
use raster::motion::{lay, layer};
use raster::text::fill_rect;
use raster::{Bitmap, Color, Fit, Size};

use super::still::scaled;
use super::{Error, Which};

const PAPER: Color = Color { r: 250, g: 249, b: 246, a: 255 };

/// Lengths as fractions of the frame's shorter side.
const EDGE: f64 = 0.008;
const SHADOW: f64 = 0.022;
const GAP: f64 = 0.05;
const RISE: f64 = 0.035;

/// The opacity of the shadow below the print, 0 to 255.
const SHADOW_ALPHA: f64 = 110.0;

/// The height of the strip of insets in a frame with an image, as a fraction of the frame's
/// height.
const STRIP: f64 = 0.24;

/// The part of the frame in which insets are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// The whole frame except for some rows at the bottom.
    Wall {
        /// The number of rows at the bottom to keep free.
        below: u32,
    },
    /// A strip at the top, so that the image stays visible.
    Strip,
}

/// A reference image with its position.
pub struct Inset {
    image: Bitmap,
    x: i64,
    y: i64,
    rise: f64,
}

impl Inset {
    /// The insets of all references in order, for frames of `size`.
    ///
    /// # Errors
    ///
    /// [`Error::Image`] for the first image that cannot be decoded.
    pub fn all(references: &[Bytes], room: Room, size: Size) -> Result<Vec<Self>, Error> {
        let short = f64::from(size.width.min(size.height));
        let places = places(references.len(), room, size, GAP * short);
        let mut insets = Vec::with_capacity(references.len());
        for (index, (file, place)) in references.iter().zip(places).enumerate() {
            let broken = |source| Error::Image { which: Which::Reference(index + 1), source };
            let edge = (EDGE * short).round().max(1.0) as u32;
            let inner = Size::new((place.width as u32).max(3) - 2, (place.height as u32).max(3) - 2);
            let inner =
                Size::new(inner.width.saturating_sub(2 * edge).max(1), inner.height.saturating_sub(2 * edge).max(1));
            let print = scaled(file, inner, Fit::Inside).map_err(broken)?;
            let shadow = (SHADOW * short).round().max(1.0) as u32;
            let image = printed(&print, edge, shadow);
            let centred =
                |start: f64, room: f64, length: u32| (start + (room - f64::from(length)) / 2.0).round() as i64;
            let x = centred(place.left, place.width, image.width());
            let y = centred(place.top, place.height, image.height());
            insets.push(Self { image, x, y, rise: RISE * short });
        }
        Ok(insets)
    }

    /// Draws the inset. `settled` is the progress of its entrance from 0 to 1.
    pub fn draw(&self, frame: &mut Bitmap, settled: f64, opacity: f64) {
        let down = ((1.0 - settled) * self.rise).round() as i64;
        lay(frame, &self.image, self.x, self.y + down, (settled * opacity * 255.0).round() as u8);
    }
}

/// Draws an image on white paper with a border of `edge` pixels, and a shadow that fades over
/// `shadow` pixels.
fn printed(print: &Bitmap, edge: u32, shadow: u32) -> Bitmap {
    let paper = Size::new(print.width() + 2 * edge, print.height() + 2 * edge);
    let size = Size::new(paper.width + 2 * shadow, paper.height + 2 * shadow);
    let reach = f64::from(shadow);
    let mut pixels = Vec::with_capacity(size.pixels() as usize * 4);
    for y in 0..size.height {
        for x in 0..size.width {
            // The distance of a row or column from the paper. The shadow is offset slightly
            // downwards.
            let beyond = |at: u32, length: u32, lower: f64| {
                let at = f64::from(at) + 0.5 - reach - lower;
                (-at).max(at - f64::from(length)).max(0.0)
            };
            let (dx, dy) = (beyond(x, paper.width, 0.0), beyond(y, paper.height, reach / 4.0));
            let near = (1.0 - (dx * dx + dy * dy).sqrt() / reach).clamp(0.0, 1.0);
            pixels.extend([0, 0, 0, (SHADOW_ALPHA * near * near).round() as u8]);
        }
    }
    let mut inset = Bitmap::new(size, raster::Channels::Rgba, pixels).unwrap_or_else(|| layer(size));
    let (left, inner) = (i64::from(shadow), i64::from(shadow + edge));
    fill_rect(&mut inset, left, left, u64::from(paper.width), u64::from(paper.height), PAPER);
    // The inset is opaque where the paper is.
    lay(&mut inset, print, inner, inner, 255);
    inset
}

/// The position and size of a inset.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CardRect {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

/// Positions for `count` insets, row by row with a gap of `gap` pixels. Rows are filled evenly and
/// centered.
fn places(count: usize, room: Room, size: Size, gap: f64) -> Vec<CardRect> {
    let (width, height) = (f64::from(size.width), f64::from(size.height));
    match room {
        Room::Strip => {
            let height = height * STRIP;
            // Insets become smaller only if more than four are in a row.
            let most = (width - gap) / count.max(1) as f64 - gap;
            let each = most.min(height * 4.0 / 3.0);
            let right = width - gap;
            let left = |index: usize| right - (count - index) as f64 * (each + gap) + gap;
            (0..count).map(|index| CardRect { left: left(index), top: gap, width: each, height }).collect()
        }
        Room::Wall { below } => {
            let free = (height - f64::from(below)).max(height / 2.0);
            let cell = |columns: usize| {
                let rows = count.div_ceil(columns);
                ((width - gap) / columns as f64 - gap, (free - gap) / rows as f64 - gap)
            };
            // Maximizes the area of a 4:3 image, which is between portrait and wide formats.
            let area = |columns: &usize| {
                let (width, height) = cell(*columns);
                width.min(height * 4.0 / 3.0)
            };
            let Some(columns) = (1..=count).max_by(|a, b| area(a).total_cmp(&area(b))) else { return Vec::new() };
            let rows = count.div_ceil(columns);
            let (cell_width, cell_height) = cell(columns);
            (0..count)
                .map(|index| {
                    let row = index * rows / count;
                    let first = (row * count).div_ceil(rows);
                    let in_row = ((row + 1) * count).div_ceil(rows) - first;
                    let used = in_row as f64 * (cell_width + gap) - gap;
                    let left = (width - used) / 2.0 + (index - first) as f64 * (cell_width + gap);
                    let top = gap + row as f64 * (cell_height + gap);
                    CardRect { left, top, width: cell_width, height: cell_height }
                })
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lie_within_the_frame_and_apart_from_each_other() {
        for size in [Size::new(1280, 720), Size::new(480, 854), Size::new(720, 720)] {
            for room in [Room::Strip, Room::Wall { below: size.height / 4 }, Room::Wall { below: size.height }] {
                for count in 0..=9 {
                    let places = places(count, room, size, 24.0);
                    assert_eq!(places.len(), count);
                    for (index, a) in places.iter().enumerate() {
                        assert!(a.width > 10.0 && a.height > 10.0, "{size:?} {room:?} {count}: {a:?}");
                        assert!(a.left >= 0.0 && a.top >= 0.0, "{size:?} {room:?} {count}: {a:?}");
                        assert!(a.left + a.width <= f64::from(size.width) + 1e-9, "{size:?} {room:?} {count}: {a:?}");
                        assert!(a.top + a.height <= f64::from(size.height) + 1e-9, "{size:?} {room:?} {count}: {a:?}");
                        for b in &places[..index] {
                            let apart = a.left >= b.left + b.width + 23.0 || a.top >= b.top + b.height + 23.0;
                            assert!(apart, "{size:?} {room:?} {count}: {a:?} {b:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn rows_are_filled_evenly() {
        let rows = |count| {
            let mut rows: Vec<(f64, usize)> = Vec::new();
            for place in places(count, Room::Wall { below: 180 }, Size::new(1280, 720), 24.0) {
                match rows.last_mut() {
                    Some((top, count)) if *top == place.top => *count += 1,
                    _ => rows.push((place.top, 1)),
                }
            }
            rows.into_iter().map(|(_, count)| count).collect::<Vec<_>>()
        };
        assert_eq!(rows(1), [1]);
        assert_eq!(rows(3), [3]);
        assert_eq!(rows(8), [4, 4]);
        assert_eq!(rows(7), [4, 3]);
    }
}
