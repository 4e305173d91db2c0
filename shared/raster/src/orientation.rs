//! EXIF orientation: how a stored image must be transformed for display.
//!
//! Sources: Exif 2.32, 4.6.4, tag 0x0112 (the meaning of the eight values); 4.6.2 and TIFF 6.0,
//! section 2 (the structure that contains it).

use crate::bitmap::Bitmap;
use crate::geometry::{Rect, Size};

/// One of the eight orientations in which an image can be stored, with the value of the EXIF tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Orientation {
    /// 1: stored as displayed.
    #[default]
    Normal,
    /// 2: mirrored left to right.
    FlippedHorizontally,
    /// 3: rotated by 180 degrees.
    Rotated180,
    /// 4: mirrored top to bottom.
    FlippedVertically,
    /// 5: mirrored along the main diagonal.
    Transposed,
    /// 6: must be rotated by 90 degrees clockwise for display.
    Rotate90,
    /// 7: mirrored along the other diagonal.
    Transversed,
    /// 8: must be rotated by 90 degrees counterclockwise for display.
    Rotate270,
}

impl Orientation {
    /// The orientation for an EXIF value; `None` for a value outside 1 to 8.
    pub fn from_exif(value: u32) -> Option<Self> {
        Some(match value {
            1 => Self::Normal,
            2 => Self::FlippedHorizontally,
            3 => Self::Rotated180,
            4 => Self::FlippedVertically,
            5 => Self::Transposed,
            6 => Self::Rotate90,
            7 => Self::Transversed,
            8 => Self::Rotate270,
            _ => return None,
        })
    }

    /// The EXIF value of the orientation, from 1 to 8.
    pub(crate) fn exif_value(self) -> u16 {
        self as u16 + 1
    }

    /// The orientation in an EXIF block (a TIFF structure, with or without its `Exif\0\0` prefix).
    ///
    /// `None` if the block is damaged or contains no orientation: damaged metadata does not make
    /// the pixels unusable.
    pub(crate) fn from_exif_block(block: &[u8]) -> Option<Self> {
        const ORIENTATION: u16 = 0x0112;
        const SHORT: u16 = 3;
        const LONG: u16 = 4;
        let tiff = block.strip_prefix(b"Exif\0\0").unwrap_or(block);
        let little = match tiff.get(..4)? {
            b"II*\0" => true,
            b"MM\0*" => false,
            _ => return None,
        };
        let u16_at = |at: usize| {
            let bytes = tiff.get(at..at.checked_add(2)?)?.try_into().ok()?;
            Some(if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
        };
        let u32_at = |at: usize| {
            let bytes = tiff.get(at..at.checked_add(4)?)?.try_into().ok()?;
            Some(if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
        };
        let directory = u32_at(4)? as usize;
        let entries = usize::from(u16_at(directory)?);
        for entry in 0..entries {
            let at = directory.checked_add(2 + entry * 12)?;
            if u16_at(at)? == ORIENTATION {
                // Some writers store a LONG although the standard requires a SHORT.
                return match u16_at(at + 2)? {
                    SHORT => Self::from_exif(u32::from(u16_at(at + 8)?)),
                    LONG => Self::from_exif(u32_at(at + 8)?),
                    _ => None,
                };
            }
        }
        None
    }

    /// Returns `true` if width and height are swapped.
    pub fn swaps_sides(self) -> bool {
        matches!(self, Self::Transposed | Self::Rotate90 | Self::Transversed | Self::Rotate270)
    }

    /// Returns `true` if the first displayed column (or row, if sides are swapped) is the last stored one.
    fn flips_columns(self) -> bool {
        matches!(self, Self::FlippedHorizontally | Self::Rotated180 | Self::Transversed | Self::Rotate270)
    }

    /// Returns `true` if the first displayed row (or column, if sides are swapped) is the last stored one.
    fn flips_rows(self) -> bool {
        matches!(self, Self::Rotated180 | Self::FlippedVertically | Self::Rotate90 | Self::Transversed)
    }

    /// The displayed size of an image with this stored size. The reverse mapping is the same,
    /// because the swap is its own inverse.
    pub fn apply_to_size(self, size: Size) -> Size {
        if self.swaps_sides() { size.transposed() } else { size }
    }

    /// The combination of this transformation with `next`, which is applied after it.
    pub fn then(self, next: Self) -> Self {
        let (columns, rows) = (next.flips_columns(), next.flips_rows());
        // A transformation maps positions of its output to positions of its input. The input of
        // `next` is the output of this one.
        let (columns, rows) = if self.swaps_sides() { (rows, columns) } else { (columns, rows) };
        let swaps = self.swaps_sides() != next.swaps_sides();
        let flips = (self.flips_columns() != columns, self.flips_rows() != rows);
        match (swaps, flips) {
            (false, (false, false)) => Self::Normal,
            (false, (true, false)) => Self::FlippedHorizontally,
            (false, (true, true)) => Self::Rotated180,
            (false, (false, true)) => Self::FlippedVertically,
            (true, (false, false)) => Self::Transposed,
            (true, (false, true)) => Self::Rotate90,
            (true, (true, true)) => Self::Transversed,
            (true, (true, false)) => Self::Rotate270,
        }
    }

    /// The rectangle of the stored image, of size `stored`, that `displayed` shows.
    pub(crate) fn rect_in_stored(self, displayed: Rect, stored: Size) -> Rect {
        let mut rect = displayed;
        if self.swaps_sides() {
            rect = Rect { x: displayed.y, y: displayed.x, size: displayed.size.transposed() };
        }
        if self.flips_columns() {
            rect.x = stored.width - rect.x - rect.size.width;
        }
        if self.flips_rows() {
            rect.y = stored.height - rect.y - rect.size.height;
        }
        rect
    }

    /// Transforms a stored image to its displayed form. Pixels are moved but not changed.
    pub fn apply(self, image: Bitmap) -> Bitmap {
        if self == Self::Normal {
            return image;
        }
        let size = self.apply_to_size(image.size());
        let channels = image.channels();
        let pixels = match channels {
            crate::bitmap::Channels::Rgb => self.turn::<3>(image.pixels(), image.size()),
            crate::bitmap::Channels::Rgba => self.turn::<4>(image.pixels(), image.size()),
        };
        Bitmap::made(size, channels, pixels)
    }

    fn turn<const N: usize>(self, stored: &[u8], size: Size) -> Vec<u8> {
        let mut turned = vec![0; stored.len()];
        self.place::<N>(stored, 0, size, &mut turned);
        turned
    }

    /// Copies rows of a stored image without alpha, from row `first` onwards, to their displayed
    /// position in `turned`.
    pub(crate) fn place_rows(self, rows: &[u8], first: u32, stored: Size, turned: &mut [u8]) {
        self.place::<3>(rows, first as usize, stored, turned);
    }

    fn place<const N: usize>(self, rows: &[u8], first: usize, stored: Size, turned: &mut [u8]) {
        // For a transposed image, squares of this size are copied at once, so that source and
        // destination stay in the cache.
        const TILE: usize = 64;
        let (width, height) = (stored.width as usize, stored.height as usize);
        let (stored, _) = rows.as_chunks::<N>();
        let (out, _) = turned.as_chunks_mut::<N>();
        let count = stored.len() / width;
        // The range of displayed rows (or columns, if transposed) that the given rows fill.
        let begin = if self.flips_rows() { height - first - count } else { first };
        let column = |x: usize| if self.flips_columns() { width - 1 - x } else { x };
        // The index of the given row that is displayed in row or column `y`.
        let row = |y: usize| if self.flips_rows() { begin + count - 1 - y } else { y - begin };
        if !self.swaps_sides() {
            for (y, out) in out.chunks_exact_mut(width).enumerate().skip(begin).take(count) {
                let source = &stored[row(y) * width..][..width];
                out.copy_from_slice(source);
                if self.flips_columns() {
                    out.reverse();
                }
            }
            return;
        }
        let mut tile = [[[0; N]; TILE]; TILE];
        for tile_y in (begin..begin + count).step_by(TILE) {
            let rows = TILE.min(begin + count - tile_y);
            for tile_x in (0..width).step_by(TILE) {
                let columns = TILE.min(width - tile_x);
                // The columns of the tile are contiguous in each row, forwards or backwards. A
                // stored column becomes a displayed row.
                let left = column(tile_x).min(column(tile_x + columns - 1));
                for (y, line) in tile.iter_mut().enumerate().take(rows) {
                    line[..columns].copy_from_slice(&stored[row(tile_y + y) * width + left..][..columns]);
                }
                for x in 0..columns {
                    let at = if self.flips_columns() { columns - 1 - x } else { x };
                    let target = &mut out[(tile_x + x) * height + tile_y..][..rows];
                    for (pixel, line) in target.iter_mut().zip(&tile) {
                        *pixel = line[at];
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bitmap::Channels;
    use crate::testing::exif_block;

    /// An image of three columns and two rows whose red values number the pixels:
    ///
    /// ```text
    /// 1 2 3
    /// 4 5 6
    /// ```
    fn numbered(channels: Channels) -> Bitmap {
        let mut pixels = Vec::new();
        for number in 1..=6 {
            pixels.extend(&[number, 0, 0, 255][..channels.count()]);
        }
        Bitmap::new(Size::new(3, 2), channels, pixels).unwrap()
    }

    fn numbers(image: &Bitmap) -> Vec<Vec<u8>> {
        let rows = image.pixels().chunks_exact(image.stride());
        rows.map(|row| row.iter().step_by(image.channels().count()).copied().collect()).collect()
    }

    #[test]
    fn all_eight_values_turn_the_image_as_exif_says() {
        // The orientation is defined as "row 0 is the visual …, column 0 is the visual …" of the
        // stored image.
        let expected: [(u32, Vec<Vec<u8>>); 8] = [
            (1, vec![vec![1, 2, 3], vec![4, 5, 6]]),
            (2, vec![vec![3, 2, 1], vec![6, 5, 4]]),
            (3, vec![vec![6, 5, 4], vec![3, 2, 1]]),
            (4, vec![vec![4, 5, 6], vec![1, 2, 3]]),
            (5, vec![vec![1, 4], vec![2, 5], vec![3, 6]]),
            (6, vec![vec![4, 1], vec![5, 2], vec![6, 3]]),
            (7, vec![vec![6, 3], vec![5, 2], vec![4, 1]]),
            (8, vec![vec![3, 6], vec![2, 5], vec![1, 4]]),
        ];
        for channels in [Channels::Rgb, Channels::Rgba] {
            for (value, rows) in &expected {
                let orientation = Orientation::from_exif(*value).unwrap();
                assert_eq!(&numbers(&orientation.apply(numbered(channels))), rows, "orientation {value}");
            }
        }
        assert_eq!(Orientation::from_exif(0), None);
        assert_eq!(Orientation::from_exif(9), None);
    }

    #[test]
    fn one_turn_after_another_is_one_turn() {
        for first in (1..=8).filter_map(Orientation::from_exif) {
            for next in (1..=8).filter_map(Orientation::from_exif) {
                let expected = next.apply(first.apply(numbered(Channels::Rgb)));
                assert_eq!(first.then(next).apply(numbered(Channels::Rgb)), expected, "{first:?} then {next:?}");
            }
        }
    }

    #[test]
    fn images_larger_than_a_tile_are_turned_whole() {
        let size = Size::new(70, 45);
        let pixels: Vec<u8> = (0..size.pixels()).flat_map(|n| [(n % 251) as u8, (n / 251) as u8, 7]).collect();
        let image = Bitmap::new(size, Channels::Rgb, pixels).unwrap();
        let turned = Orientation::Rotate90.apply(image.clone());
        assert_eq!(turned.size(), Size::new(45, 70));
        for y in 0..70 {
            for x in 0..45 {
                assert_eq!(turned.pixel(x, y), image.pixel(y, 44 - x));
            }
        }
        assert_eq!(Orientation::Rotate270.apply(turned), image);
    }

    #[test]
    fn a_displayed_rectangle_is_found_in_the_stored_image() {
        for value in 1..=8 {
            let orientation = Orientation::from_exif(value).unwrap();
            let stored = numbered(Channels::Rgb);
            let displayed = orientation.apply(stored.clone());
            for y in 0..displayed.height() {
                for x in 0..displayed.width() {
                    let found = orientation.rect_in_stored(Rect { x, y, size: Size::new(1, 1) }, stored.size());
                    assert_eq!(stored.pixel(found.x, found.y), displayed.pixel(x, y), "orientation {value}");
                }
            }
        }
    }

    #[test]
    fn the_tag_is_read_in_both_byte_orders_and_as_long() {
        for little in [true, false] {
            for value in 1..=8 {
                let block = exif_block(value, little);
                assert_eq!(Orientation::from_exif_block(&block), Orientation::from_exif(u32::from(value)));
                let prefixed = [b"Exif\0\0", &block[..]].concat();
                assert_eq!(Orientation::from_exif_block(&prefixed), Orientation::from_exif(u32::from(value)));
            }
        }
        let mut long = exif_block(6, true);
        long[12..14].copy_from_slice(&4u16.to_le_bytes());
        assert_eq!(Orientation::from_exif_block(&long), Some(Orientation::Rotate90));
    }

    #[test]
    fn a_broken_block_names_no_orientation() {
        let block = exif_block(6, true);
        for length in 0..20 {
            assert_eq!(Orientation::from_exif_block(&block[..length]), None, "cut to {length}");
        }
        assert_eq!(Orientation::from_exif_block(&exif_block(0, true)), None);
        assert_eq!(Orientation::from_exif_block(&exif_block(9, true)), None);
        let mut far = block.clone();
        far[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Orientation::from_exif_block(&far), None);
    }
}
