//! Images whole, in columns that begin and end level.
//!
//! **Mechanism.** In their order, the tiles go to the shortest of columns of equal width, the leftmost of equals. Then the widths
//! are solved: the height of a column is its width times the sum of the inverse ratios of its images, and what does not grow with
//! it, so that one height of all columns determines each width, and their sum determines the height. Widths within
//! [`WIDTHS`] times their mean are kept; where one is held, its column ends uneven. Whatever depends on where the tiles are now is the
//! mean width of what begins at different left edges, which the arrangement keeps, so that repeating it changes nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use domain::limits::{ARRANGED_MAX, NODE_SIDE_MAX};

use super::Cells;
use super::cells::{FEW, RATIO_MAX, distance_to_best};
use super::spot::TOLERANCE;
use crate::geometry::{CAPTION, Fit, has_caption, height_for};

/// The least and the greatest width of a column in multiples of their mean.
const WIDTHS: (f64, f64) = (0.5, 2.0);
/// The least and the greatest height of an image in multiples of its width; more extreme ones are shown whole within.
const SHAPES: (f64, f64) = (0.1, 8.0);
/// The share of its height by which an image may be stretched so that columns of whole units end level: less than anyone can see.
const STRETCH: f64 = 0.009;
/// Halvings of an interval until it is as small as numbers are.
const HALVINGS: u32 = 80;
/// How often widths are solved again because they change which images have captions.
const CAPTION_STEPS: u32 = 8;

/// A node in a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile<'a> {
    pub(crate) title: &'a str,
    /// Left edge, width and height at present.
    pub(crate) left: f64,
    pub(crate) size: (f64, f64),
    /// Width and height of the image that it shows, in pixels; a tile without one keeps its height.
    pub(crate) image: Option<(f64, f64)>,
}

/// The columns of tiles, by their indexes, and the sizes that these have there.
pub(crate) struct Masonry {
    pub(crate) cells: Cells,
    pub(crate) sizes: Vec<(f64, f64)>,
}

/// Arranges tiles; at least one.
pub(crate) fn masonry(tiles: &[Tile<'_>], gap: f64, columns: Option<usize>) -> Masonry {
    if let [tile] = tiles {
        return Masonry { cells: Cells { corners: vec![(0.0, 0.0)], size: tile.size }, sizes: vec![tile.size] };
    }
    let unit = unit(tiles);
    let solve = |columns: usize| Solved::new(tiles, distribute(tiles, unit, gap, columns), unit, gap);
    let solved = match columns {
        Some(columns) => solve(columns.min(tiles.len())),
        None => {
            // Images of usual shapes need far fewer.
            let most = (2.0 * (tiles.len() as f64).sqrt()).ceil() as usize + 2;
            let candidates = (2..=most.min(tiles.len()).min(ARRANGED_MAX)).map(solve);
            let is_narrow = |solved: &Solved| tiles.len() < FEW || solved.ratio() <= RATIO_MAX;
            candidates.filter(is_narrow).reduce(Solved::better).unwrap_or_else(|| solve(1))
        }
    };
    solved.finish(tiles, gap)
}

/// The order in which tiles that are arranged already went to their columns, if their left edges are those of columns.
pub(crate) fn order(tiles: &[(Tile<'_>, f64)], gap: f64) -> Vec<usize> {
    let shown: Vec<Tile<'_>> = tiles.iter().map(|(tile, _)| *tile).collect();
    let unit = unit(&shown);
    let lefts = lefts(&shown);
    let mut columns: Vec<Vec<usize>> = vec![Vec::new(); lefts.len()];
    for (index, tile) in shown.iter().enumerate() {
        columns[column_at(&lefts, tile.left)].push(index);
    }
    for column in &mut columns {
        column.sort_by(|a, b| tiles[*b].1.total_cmp(&tiles[*a].1));
    }
    let mut shortest = Shortest::new(columns.len());
    let mut order = Vec::with_capacity(tiles.len());
    while order.len() < tiles.len() {
        let Some((height, column)) = shortest.take() else { break };
        // A column without more tiles leaves the others to go on.
        let Some(index) = columns[column].pop() else { continue };
        order.push(index);
        shortest.put(height + shown[index].height(unit) + gap, column);
    }
    order
}

/// Columns by their heights, the leftmost of equals first.
struct Shortest(BinaryHeap<Reverse<(u64, usize)>>);

impl Shortest {
    fn new(columns: usize) -> Self {
        Self((0..columns).map(|column| Reverse((0.0_f64.to_bits(), column))).collect())
    }

    fn take(&mut self) -> Option<(f64, usize)> {
        self.0.pop().map(|Reverse((height, column))| (f64::from_bits(height), column))
    }

    fn put(&mut self, height: f64, column: usize) {
        // Numbers that are not negative are in the order of their bits.
        self.0.push(Reverse((height.to_bits(), column)));
    }
}

/// The left edges of the columns. Sums of decimal fractions are not exact.
fn lefts(tiles: &[Tile<'_>]) -> Vec<f64> {
    let mut lefts: Vec<f64> = tiles.iter().map(|tile| tile.left).collect();
    lefts.sort_by(f64::total_cmp);
    lefts.dedup_by(|right, left| *right - *left < TOLERANCE);
    lefts
}

fn column_at(lefts: &[f64], left: f64) -> usize {
    lefts.partition_point(|other| *other < left + TOLERANCE) - 1
}

/// The mean width of the columns.
fn unit(tiles: &[Tile<'_>]) -> f64 {
    let lefts = lefts(tiles);
    let mut widths = vec![0.0; lefts.len()];
    for tile in tiles.iter().rev() {
        widths[column_at(&lefts, tile.left)] = tile.size.0;
    }
    (widths.iter().sum::<f64>() / widths.len() as f64).round().clamp(2.0, NODE_SIDE_MAX / WIDTHS.1)
}

/// The tiles of each column.
fn distribute(tiles: &[Tile<'_>], unit: f64, gap: f64, columns: usize) -> Vec<Vec<usize>> {
    let mut shortest = Shortest::new(columns);
    let mut parts = vec![Vec::new(); columns];
    for (index, tile) in tiles.iter().enumerate() {
        let Some((height, column)) = shortest.take() else { break };
        parts[column].push(index);
        shortest.put(height + tile.height(unit) + gap, column);
    }
    parts
}

impl Tile<'_> {
    /// Height in multiples of the width, if it grows with it.
    fn slope(self) -> Option<f64> {
        self.image.map(|(width, height)| match height / width {
            // One that is only a little more extreme would lose an edge.
            slope if slope > 1.3 * SHAPES.1 => SHAPES.1,
            slope if slope * 1.3 < SHAPES.0 => SHAPES.0,
            slope => slope,
        })
    }

    /// What its height at this width has besides.
    fn fixed(self, width: f64) -> f64 {
        match self.slope() {
            Some(slope) if has_caption(self.title, (width, width * slope + CAPTION)) => CAPTION,
            Some(_) => 0.0,
            None => self.size.1,
        }
    }

    fn height(self, width: f64) -> f64 {
        self.slope().unwrap_or_default() * width + self.fixed(width)
    }
}

/// Columns with widths at which they end level.
struct Solved {
    columns: Vec<Column>,
    /// Height of the whole, and its width without the gaps between columns.
    height: f64,
    width: f64,
    gaps: f64,
}

struct Column {
    tiles: Vec<usize>,
    /// Height in multiples of the width, and the rest of it.
    slope: f64,
    fixed: f64,
    width: f64,
}

impl Solved {
    fn new(tiles: &[Tile<'_>], parts: Vec<Vec<usize>>, unit: f64, gap: f64) -> Self {
        let column = |part: Vec<usize>| {
            let slope = part.iter().filter_map(|index| tiles[*index].slope()).sum();
            let fixed: f64 = part.iter().map(|index| tiles[*index].fixed(unit)).sum();
            let fixed = fixed + gap * part.len().saturating_sub(1) as f64;
            Column { tiles: part, slope, fixed, width: unit }
        };
        let mut columns: Vec<Column> = parts.into_iter().map(column).collect();
        let gaps = gap * columns.len().saturating_sub(1) as f64;
        let width = unit * columns.len() as f64;
        let mut height = solve(&mut columns, unit);
        // A low image has a caption from some width on.
        for _ in 0..CAPTION_STEPS {
            let captioned = |column: &Column| -> f64 {
                let fixed: f64 = column.tiles.iter().map(|index| tiles[*index].fixed(column.width)).sum();
                fixed + gap * column.tiles.len().saturating_sub(1) as f64
            };
            let fixed: Vec<f64> = columns.iter().map(captioned).collect();
            if columns.iter().zip(&fixed).all(|(column, fixed)| column.fixed == *fixed) {
                break;
            }
            columns.iter_mut().zip(fixed).for_each(|(column, fixed)| column.fixed = fixed);
            height = solve(&mut columns, unit);
        }
        Self { columns, height, width, gaps }
    }

    fn ratio(&self) -> f64 {
        (self.width + self.gaps) / self.height
    }

    /// The better one of two: at least as wide as high, then the one with the more even widths, then the one nearer to 3:2.
    fn better(self, other: Self) -> Self {
        let rank = |solved: &Self| {
            // Sums of rounded numbers are not exact.
            let is_high = solved.ratio() < 1.0 - 1e-6 || solved.ratio() > RATIO_MAX;
            let widths = || solved.columns.iter().map(|column| column.width);
            let spread = widths().fold(0.0, f64::max) / widths().fold(f64::INFINITY, f64::min);
            let spread = if is_high { 0.0 } else { (spread * 1e3).round() };
            (is_high, spread, distance_to_best((solved.ratio(), 1.0)))
        };
        if rank(&other) < rank(&self) { other } else { self }
    }

    /// The places in whole units.
    fn finish(self, tiles: &[Tile<'_>], gap: f64) -> Masonry {
        let mut sizes = vec![(0.0, 0.0); tiles.len()];
        let mut corners = sizes.clone();
        let (level, count) = (self.height.round(), self.columns.len());
        let (mut exact, mut taken, mut bottom) = (0.0, 0.0, 0.0_f64);
        for (place, Column { tiles: part, slope, fixed, width }) in self.columns.into_iter().enumerate() {
            let ends = fixed + slope * width;
            exact += width;
            let end = if place + 1 == count { self.width } else { exact.round() };
            let (left, width) = (taken + gap * place as f64, end - taken);
            taken = end;
            let is_level = slope > 0.0 && (ends - self.height).abs() < 1.0;
            let heights = heights(tiles, &part, width, gap, is_level.then_some(level));
            let mut top = 0.0;
            for (index, height) in part.into_iter().zip(heights) {
                sizes[index] = (width, height);
                corners[index] = (left, top);
                top += height + gap;
                bottom = bottom.max(top - gap);
            }
        }
        Masonry { cells: Cells { corners, size: (self.width + self.gaps, bottom) }, sizes }
    }
}

/// Gives columns the widths at which they are equally high, and returns their height.
fn solve(columns: &mut [Column], unit: f64) -> f64 {
    let (least, most) = (WIDTHS.0 * unit, WIDTHS.1 * unit);
    // Columns of texts alone have their height whatever their width.
    let width_at = |column: &Column, height: f64| match column.slope {
        0.0 => unit,
        slope => ((height - column.fixed) / slope).clamp(least, most),
    };
    let highest = |high: f64, column: &Column| high.max(column.fixed + most * column.slope);
    let (mut low, mut high) = (0.0, columns.iter().fold(1.0, highest));
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        let sum: f64 = columns.iter().map(|column| width_at(column, middle)).sum();
        if sum < unit * columns.len() as f64 { low = middle } else { high = middle }
    }
    for column in &mut *columns {
        column.width = width_at(column, high);
    }
    columns.iter().map(|column| column.fixed + column.slope * column.width).fold(0.0, f64::max)
}

/// The heights of the tiles of a column, which ends at `level` if images can be stretched a little for it.
fn heights(tiles: &[Tile<'_>], part: &[usize], width: f64, gap: f64, level: Option<f64>) -> Vec<f64> {
    let whole = |tile: Tile<'_>| match tile.image {
        None => tile.size.1,
        Some((x, y)) if tile.slope() == Some(y / x) => height_for((x, y), tile.title, width).min(NODE_SIDE_MAX),
        Some(_) => tile.height(width).round().clamp(1.0, NODE_SIDE_MAX),
    };
    let mut heights: Vec<f64> = part.iter().map(|index| whole(tiles[*index])).collect();
    let Some(level) = level else { return heights };
    let mut missing = level - heights.iter().sum::<f64>() - gap * part.len().saturating_sub(1) as f64;
    let mut growing: f64 =
        part.iter().filter(|index| tiles[**index].image.is_some()).map(|index| tiles[*index].height(width)).sum();
    for (height, tile) in heights.iter_mut().zip(part.iter().map(|index| tiles[*index])) {
        let Some((x, y)) = tile.image else { continue };
        let most = (STRETCH * *height).floor();
        let step = (missing * tile.height(width) / growing).round().clamp(-most, most);
        growing -= tile.height(width);
        if Fit::new(tile.title, (width, *height + step), x / y) != Fit::Cropped {
            *height += step;
            missing -= step;
        }
    }
    heights
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn picture(left: f64, width: f64, image: (f64, f64)) -> Tile<'static> {
        Tile { title: "", left, size: (width, width), image: Some(image) }
    }

    /// Left edge and width of each column, and where it ends.
    fn columns(masonry: &Masonry) -> Vec<(f64, f64, f64)> {
        let mut columns: Vec<(f64, f64, f64)> = Vec::new();
        for ((left, top), (width, height)) in masonry.cells.corners.iter().zip(&masonry.sizes) {
            match columns.iter_mut().find(|column| column.0 == *left) {
                Some(column) => column.2 = column.2.max(top + height),
                None => columns.push((*left, *width, top + height)),
            }
        }
        columns
    }

    #[test]
    fn equal_squares_are_a_grid() {
        let tiles: Vec<Tile<'_>> = (0..12).map(|at| picture(f64::from(at), 320.0, (1024.0, 1024.0))).collect();
        let masonry = masonry(&tiles, 40.0, None);
        assert_eq!(columns(&masonry).len(), 4);
        assert!(masonry.sizes.iter().all(|size| *size == (320.0, 320.0)));
        assert_eq!(masonry.cells.size, (1400.0, 1040.0));
    }

    #[test]
    fn each_goes_to_the_shortest_column_and_the_widths_make_them_level() {
        let tiles: Vec<Tile<'_>> = [(1.0, 1.0), (1.0, 2.0), (2.0, 1.0)].map(|image| picture(0.0, 300.0, image)).into();
        let masonry = masonry(&tiles, 40.0, Some(2));
        assert_eq!(masonry.cells.corners[2].0, 0.0, "below the square");
        let columns = columns(&masonry);
        assert_eq!(columns.iter().map(|column| column.1).sum::<f64>(), 600.0);
        // The first is 1.5 times as high as wide, and 40; the second twice.
        assert_eq!(columns[0].1, 331.0);
        assert!((columns[0].2 - columns[1].2).abs() <= 1.0, "{columns:?}");
    }

    #[test]
    fn one_tile_and_tiles_without_images_keep_their_heights() {
        let text = |height: f64| Tile { title: "", left: 0.0, size: (300.0, height), image: None };
        assert_eq!(masonry(&[text(77.0)], 40.0, None).sizes, [(300.0, 77.0)]);
        let several = masonry(&[100.0, 200.0, 300.0, 120.0, 80.0, 60.0].map(text), 40.0, None);
        assert!(
            several
                .sizes
                .iter()
                .zip([100.0, 200.0, 300.0, 120.0, 80.0, 60.0])
                .all(|(size, height)| *size == (300.0, height))
        );
    }

    #[test]
    fn widths_are_within_half_and_twice_their_mean_and_images_within_bounds() {
        let tiles = [(1.0, 30_000.0), (1.0, 1.0), (30_000.0, 1.0), (1.0, 1.0)].map(|image| picture(0.0, 320.0, image));
        let masonry = masonry(&tiles, 40.0, Some(2));
        let columns = columns(&masonry);
        assert_eq!(columns.iter().map(|column| column.1).collect::<Vec<_>>(), [160.0, 480.0]);
        assert_eq!(masonry.sizes[0], (160.0, 1280.0), "eight times as high as wide");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn columns_end_level_in_order_and_nothing_is_cropped(
            images in prop::collection::vec((400..3000_u32, 400..3000_u32, any::<bool>()), 2..60),
            width in 200..600_u32,
            gap in 0..100_u32,
        ) {
            let gap = f64::from(gap);
            let tile = |(width_in_pixels, height, has_title): &(u32, u32, bool)| Tile {
                title: if *has_title { "Lamp" } else { "" },
                image: Some((f64::from(*width_in_pixels), f64::from(*height))),
                ..picture(0.0, f64::from(width), (1.0, 1.0))
            };
            let tiles: Vec<Tile<'_>> = images.iter().map(tile).collect();
            let first = masonry(&tiles, gap, None);
            let columns = columns(&first);
            let mean = columns.iter().map(|column| column.1).sum::<f64>() / columns.len() as f64;
            // An image that has a caption only at a greater width than it gets with one.
            let at_bound = |(tile, size): (&Tile<'_>, &(f64, f64))| {
                let (width, height) = tile.image.expect("a picture");
                !tile.title.is_empty() && (40.0..72.0).contains(&(size.0 * height / width))
            };
            let is_held = tiles.iter().zip(&first.sizes).any(at_bound) || columns.iter().any(|column| column.1 <= 0.5 * mean + 1.0 || column.1 >= 2.0 * mean - 1.0);
            for (left, width, bottom) in &columns {
                // A low image cannot be stretched by a unit, so that the half by which it is rounded stays.
                let in_column = first.sizes.iter().zip(&first.cells.corners).filter(|(_, corner)| corner.0 == *left);
                let low = in_column.filter(|((_, height), _)| STRETCH * height < 1.0).count();
                let off = (bottom - first.cells.size.1).abs();
                prop_assert!(is_held || off <= 1.0 + low as f64 / 2.0, "{left} {width} {bottom} {:?}", first.cells.size);
            }
            prop_assert!(images.len() < FEW || columns.len() == 1 || first.cells.size.0 <= 2.02 * first.cells.size.1);
            for (tile, size) in tiles.iter().zip(&first.sizes) {
                let (width, height) = tile.image.expect("a picture");
                prop_assert_ne!(Fit::new(tile.title, *size, width / height), Fit::Cropped, "{:?}", size);
            }
            // In a column, the order is kept; and once more changes nothing, from the places alone.
            let placed: Vec<(Tile<'_>, f64)> = tiles
                .iter()
                .zip(first.cells.corners.iter().zip(&first.sizes))
                .map(|(tile, ((left, top), size))| (Tile { left: *left, size: *size, ..*tile }, *top))
                .collect();
            let again: Vec<Tile<'_>> = placed.iter().map(|(tile, _)| *tile).collect();
            prop_assert_eq!(&masonry(&again, gap, None).sizes, &first.sizes);
            prop_assert_eq!(order(&placed, gap), (0..tiles.len()).collect::<Vec<_>>());
        }
    }
}
