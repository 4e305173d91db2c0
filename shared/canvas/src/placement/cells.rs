//! The cells of an arrangement: where each of several areas lies in a row, a column or a grid.

use domain::limits::ARRANGED_MAX;
use domain::operation::{Alignment, Arrangement, Direction};

use super::GAP;

/// How an arrangement arranges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) layout: Arrangement,
    pub(crate) gap: f64,
    /// Of a grid or a masonry; `None` for the number that suits it best.
    pub(crate) columns: Option<usize>,
    pub(crate) align: Alignment,
    /// Of a flow.
    pub(crate) direction: Direction,
}

impl Style {
    /// An arrangement with defaults.
    pub(crate) fn new(layout: Arrangement, gap: f64) -> Self {
        Self { layout, gap, columns: None, align: Alignment::Start, direction: Direction::Right }
    }
}

/// Most areas of a block that are a row.
const ROW_MAX: usize = 4;

/// The cells of areas that are placed as one: a row of up to four, or a grid.
pub(crate) fn block_cells(sizes: &[(f64, f64)]) -> Cells {
    let layout = if sizes.len() <= ROW_MAX { Arrangement::Row } else { Arrangement::Grid };
    cells(Style::new(layout, GAP), sizes)
}

/// The top left corners of areas, relative to that of the whole, and the size of the whole.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cells {
    pub(crate) corners: Vec<(f64, f64)>,
    pub(crate) size: (f64, f64),
}

/// Fewer areas are in a grid without an empty cell, however wide it is.
pub(super) const FEW: usize = 5;
/// Most nodes in a column of results.
const ROWS_MAX: usize = 4;
/// How many times wider than high an arrangement is at most, if a number of columns allows it.
pub(super) const RATIO_MAX: f64 = 2.0;
/// Values that differ by less are equal.
const EXACT: f64 = 1e-6;
/// The best quotient of width and height of an arrangement.
const RATIO: f64 = 1.5;

/// Arranges areas of these sizes in a row, a column, or otherwise a grid. A column of a grid is as wide as its widest area, a row as
/// high as its highest.
pub(crate) fn cells(style: Style, sizes: &[(f64, f64)]) -> Cells {
    let columns = match style.layout {
        Arrangement::Row => sizes.len(),
        Arrangement::Column => 1,
        _ => style.columns.unwrap_or_else(|| columns_for(sizes, style.gap)),
    };
    let columns = columns.clamp(1, sizes.len().max(1));
    let (widths, heights) = tracks(sizes, columns);
    let (lefts, width) = edges(&widths, style.gap);
    let (tops, height) = edges(&heights, style.gap);
    let offset = |cell: f64, side: f64| match style.align {
        Alignment::Start => 0.0,
        Alignment::Center => down((cell - side) / 2.0),
        Alignment::End => cell - side,
    };
    let corner = |(index, size): (usize, &(f64, f64))| {
        let (column, row) = (index % columns, index / columns);
        (lefts[column] + offset(widths[column], size.0), tops[row] + offset(heights[row], size.1))
    };
    Cells { corners: sizes.iter().enumerate().map(corner).collect(), size: (width, height) }
}

/// The whole unit below, and above. Sums of decimal fractions are not exact.
pub(super) fn down(value: f64) -> f64 {
    (value + EXACT).floor()
}

pub(super) fn up(value: f64) -> f64 {
    (value - EXACT).ceil()
}

/// How far a quotient of width and height is from the best one: 1 at it, more on both sides, as the logarithms differ.
pub(super) fn distance_to_best((width, height): (f64, f64)) -> f64 {
    let quotient = width / height / RATIO;
    quotient.max(1.0 / quotient)
}

/// The number of columns of a grid: of those at which it is at most twice as wide as high, one without an empty cell, else one whose
/// last row has more than one area, if the grid is then not higher than wide; of several, and otherwise, the one nearest to 3:2; of
/// equals, the one that leaves fewer cells empty. A grid of fewer than [`FEW`] has no empty cell, and may be wider.
fn columns_for(sizes: &[(f64, f64)], gap: f64) -> usize {
    let count = sizes.len();
    let empty = |columns: usize| count.div_ceil(columns) * columns - count;
    let mut best = (Rest::Any, f64::INFINITY, usize::MAX, 1);
    for columns in (1..=count.min(ARRANGED_MAX)).filter(|columns| count >= FEW || empty(*columns) == 0) {
        let (widths, heights) = tracks(sizes, columns);
        let size = (edges(&widths, gap).1, edges(&heights, gap).1);
        if count >= FEW && size.0 > RATIO_MAX * size.1 + EXACT {
            continue;
        }
        let (distance, empty) = (distance_to_best(size), empty(columns));
        let is_flat = (size.1 - EXACT..=RATIO_MAX * size.1 + EXACT).contains(&size.0);
        let rest = match (is_flat, empty) {
            (true, 0) => Rest::None,
            (true, empty) if empty + 1 < columns => Rest::Several,
            _ => Rest::Any,
        };
        let is_nearer = distance < best.1 - EXACT || (distance < best.1 + EXACT && empty < best.2);
        if rest < best.0 || rest == best.0 && is_nearer {
            best = (rest, distance, empty, columns);
        }
    }
    best.3
}

/// What the last row of a grid has, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rest {
    /// As many areas as the others.
    None,
    /// More than one area.
    Several,
    /// One area alone, or the grid is higher than wide.
    Any,
}

/// The widths of the columns and the heights of the rows of a grid.
fn tracks(sizes: &[(f64, f64)], columns: usize) -> (Vec<f64>, Vec<f64>) {
    let mut widths = vec![0.0_f64; columns];
    for (index, (width, _)) in sizes.iter().enumerate() {
        widths[index % columns] = widths[index % columns].max(*width);
    }
    let heights = sizes.chunks(columns).map(|row| row.iter().fold(0.0_f64, |most, (_, height)| most.max(*height)));
    (widths, heights.collect())
}

/// Where lengths with gaps between them begin, and where the last one ends.
fn edges(lengths: &[f64], gap: f64) -> (Vec<f64>, f64) {
    let (mut begins, mut end) = (Vec::with_capacity(lengths.len()), -gap);
    for length in lengths {
        begins.push(end + gap);
        end += gap + length;
    }
    (begins, end.max(0.0))
}

/// Columns of about equal height with at most four each.
pub(crate) fn columns_of<T: Clone>(items: impl IntoIterator<Item = T>) -> Vec<Vec<T>> {
    split(&items.into_iter().collect::<Vec<_>>(), ROWS_MAX)
}

/// As few parts of about equal length as have at most `most` each; one at least.
pub(super) fn split<T: Clone>(items: &[T], most: usize) -> Vec<Vec<T>> {
    let parts = items.len().div_ceil(most).max(1);
    items.chunks(items.len().div_ceil(parts).max(1)).map(<[T]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [(f64, f64); 5] = [(100.0, 50.0), (300.0, 80.0), (200.0, 10.0), (50.0, 200.0), (80.0, 20.0)];

    fn arranged(layout: Arrangement, sizes: &[(f64, f64)], gap: f64, columns: Option<usize>) -> Cells {
        cells(Style { columns, ..Style::new(layout, gap) }, sizes)
    }

    /// The number of columns of a grid of equal areas.
    fn columns(count: usize, size: (f64, f64), gap: f64) -> usize {
        let width = arranged(Arrangement::Grid, &vec![size; count], gap, None).size.0;
        ((width + gap) / (size.0 + gap)).round() as usize
    }

    #[test]
    fn a_row_a_column_and_a_grid_are_aligned_at_the_top_left() {
        let row = arranged(Arrangement::Row, &SIZES, 40.0, None);
        assert_eq!(row.corners, [(0.0, 0.0), (140.0, 0.0), (480.0, 0.0), (720.0, 0.0), (810.0, 0.0)]);
        assert_eq!(row.size, (890.0, 200.0));
        let column = arranged(Arrangement::Column, &SIZES[..3], 0.0, None);
        assert_eq!(column.corners, [(0.0, 0.0), (0.0, 50.0), (0.0, 130.0)]);
        assert_eq!(column.size, (300.0, 140.0));
        let grid = arranged(Arrangement::Grid, &SIZES, 10.0, Some(2));
        assert_eq!(grid.corners, [(0.0, 0.0), (210.0, 0.0), (0.0, 90.0), (210.0, 90.0), (0.0, 300.0)]);
        assert_eq!(grid.size, (510.0, 320.0));
    }

    #[test]
    fn areas_are_aligned_across_a_row_or_column_and_in_the_cells_of_a_grid() {
        let corners =
            |layout, align| cells(Style { align, columns: None, ..Style::new(layout, 10.0) }, &SIZES[..2]).corners;
        assert_eq!(corners(Arrangement::Row, Alignment::Center), [(0.0, 15.0), (110.0, 0.0)]);
        assert_eq!(corners(Arrangement::Row, Alignment::End), [(0.0, 30.0), (110.0, 0.0)]);
        assert_eq!(corners(Arrangement::Column, Alignment::Center), [(100.0, 0.0), (0.0, 60.0)]);
        assert_eq!(corners(Arrangement::Column, Alignment::End), [(200.0, 0.0), (0.0, 60.0)]);
        let grid =
            |align| cells(Style { align, columns: Some(2), ..Style::new(Arrangement::Grid, 0.0) }, &SIZES).corners;
        assert_eq!(grid(Alignment::Center), [(50.0, 15.0), (200.0, 0.0), (0.0, 175.0), (325.0, 80.0), (60.0, 280.0)]);
        assert_eq!(grid(Alignment::End), [(100.0, 30.0), (200.0, 0.0), (0.0, 270.0), (450.0, 80.0), (120.0, 280.0)]);
    }

    #[test]
    fn a_grid_is_complete_or_as_near_to_three_by_two_as_can_be_and_at_most_twice_as_wide_as_high() {
        let square = (320.0, 320.0);
        let counts = [5, 6, 7, 8, 9, 10, 12, 50].map(|count| columns(count, square, 40.0));
        assert_eq!(counts, [3, 3, 3, 3, 3, 4, 4, 9]);
        assert_eq!([16, 20, 25, 30].map(|count| columns(count, square, 40.0)), [4, 5, 5, 6], "without an empty cell");
        assert_eq!([13, 17, 26].map(|count| columns(count, square, 40.0)), [5, 5, 7], "without one alone");
        assert_eq!(columns(9, (480.0, 160.0), 40.0), 2, "rather one alone than higher than wide");
        assert_eq!(columns(8, square, 0.0), 4, "at twice the height");
        assert_eq!(columns(8, (320.0, 319.0), 0.0), 3, "beyond");
        assert_eq!(columns(50, (240.0, 240.0), 40.0), 9, "fifty notes");
        assert_eq!(columns(5, (1000.0, 10.0), 0.0), 1, "a column is nearest where all are too wide");
    }

    #[test]
    fn a_grid_of_fewer_than_five_has_no_empty_cell() {
        let of = |size| [1, 2, 3, 4].map(|count| columns(count, size, 40.0));
        assert_eq!(of((320.0, 320.0)), [1, 2, 3, 2], "squares");
        assert_eq!(of((200.0, 400.0)), [1, 2, 3, 4], "high ones");
        assert_eq!(of((480.0, 160.0)), [1, 1, 1, 2], "wide ones");
    }

    #[test]
    fn a_grid_has_no_empty_columns() {
        assert_eq!(arranged(Arrangement::Grid, &SIZES[..2], 40.0, Some(200)).size, (440.0, 80.0));
    }

    #[test]
    fn columns_of_results_have_at_most_four_rows_and_about_equal_heights() {
        let lengths = |count: usize| columns_of(0..count).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!([1, 4].map(lengths), [vec![1], vec![4]]);
        assert_eq!([5, 8, 9].map(lengths), [vec![3, 2], vec![4, 4], vec![3, 3, 3]]);
    }
}
