//! The source image in the form that the convolution reads.

use crate::bitmap::{Bitmap, Channels};
use crate::geometry::Size;

/// The number of pixels in each direction from which a point is computed.
pub(super) const TAPS: usize = 6;

/// The number of pixels by which the source is extended on each side, for the outermost points.
pub(super) const PAD: usize = TAPS / 2;

/// The number of pixels that are loaded at once. Those after the last tap are ignored.
pub(super) const LOADED: usize = 8;

/// The source with premultiplied alpha and repeated edge pixels.
pub(crate) struct Padded {
    pub(super) pixels: Vec<[u8; 4]>,
    pub(super) stride: usize,
    pub(super) size: Size,
    pub(super) is_opaque: bool,
}

impl Padded {
    /// Creates an empty source whose rows are added from top to bottom.
    pub(crate) fn new(size: Size) -> Self {
        let stride = size.width as usize + 2 * PAD;
        let capacity = stride * (size.height as usize + 2 * PAD) + LOADED;
        Self { pixels: Vec::with_capacity(capacity), stride, size, is_opaque: true }
    }

    pub(crate) fn from_bitmap(source: &Bitmap) -> Self {
        let mut padded = Self::new(source.size());
        padded.push(source);
        padded
    }

    /// Adds the next rows, from an image of the same width.
    pub(crate) fn push(&mut self, rows: &Bitmap) {
        self.is_opaque &= rows.is_opaque();
        for row in rows.pixels().chunks_exact(rows.stride()) {
            let start = self.pixels.len();
            self.pixels.resize(start + PAD, [0; 4]);
            match rows.channels() {
                Channels::Rgb => self.pixels.extend(row.as_chunks().0.iter().map(|[r, g, b]| [*r, *g, *b, 255])),
                Channels::Rgba => self.pixels.extend(row.as_chunks().0.iter().map(premultiplied)),
            }
            let (first, last) = (self.pixels[start + PAD], self.pixels[self.pixels.len() - 1]);
            self.pixels[start..start + PAD].fill(first);
            self.pixels.extend([last; PAD]);
            if start == 0 {
                (0..PAD).for_each(|_| self.pixels.extend_from_within(..self.stride));
            }
        }
        if self.pixels.len() == self.stride * (self.size.height as usize + PAD) {
            let last = self.pixels.len() - self.stride;
            (0..PAD).for_each(|_| self.pixels.extend_from_within(last..last + self.stride));
            self.pixels.extend([[0; 4]; LOADED]);
        }
    }
}

pub(super) fn premultiplied(&[r, g, b, a]: &[u8; 4]) -> [u8; 4] {
    let times = |sample: u8| ((u32::from(sample) * u32::from(a) + 127) / 255) as u8;
    [times(r), times(g), times(b), a]
}
