//! The cells of an arrangement: where each of several areas lies in a row, a column or a grid.

use domain::operation::Arrangement;

/// The top left corners of areas, relative to that of the whole, and the size of the whole.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cells {
    pub(crate) corners: Vec<(f64, f64)>,
    pub(crate) size: (f64, f64),
}

/// Arranges areas of these sizes, with their top left corners aligned. A column of a grid is as wide as its widest area,
/// a row as high as its highest. A grid without a number of columns has as many as rows, or one more.
pub(crate) fn cells(layout: Arrangement, sizes: &[(f64, f64)], gap: f64, columns: Option<usize>) -> Cells {
    let columns = match layout {
        Arrangement::Row => sizes.len(),
        Arrangement::Column => 1,
        Arrangement::Grid => columns.unwrap_or_else(|| (1..).find(|side| side * side >= sizes.len()).unwrap_or(1)),
    };
    let columns = columns.clamp(1, sizes.len().max(1));
    let mut widths = vec![0.0_f64; columns];
    for (index, (width, _)) in sizes.iter().enumerate() {
        widths[index % columns] = widths[index % columns].max(*width);
    }
    let heights = sizes.chunks(columns).map(|row| row.iter().fold(0.0_f64, |most, (_, height)| most.max(*height)));
    let (lefts, width) = edges(widths, gap);
    let (tops, height) = edges(heights, gap);
    let corners = (0..sizes.len()).map(|index| (lefts[index % columns], tops[index / columns])).collect();
    Cells { corners, size: (width, height) }
}

/// Where lengths with gaps between them begin, and where the last one ends.
fn edges(lengths: impl IntoIterator<Item = f64>, gap: f64) -> (Vec<f64>, f64) {
    let (mut begins, mut end) = (Vec::new(), -gap);
    for length in lengths {
        begins.push(end + gap);
        end += gap + length;
    }
    (begins, end.max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [(f64, f64); 5] = [(100.0, 50.0), (300.0, 80.0), (200.0, 10.0), (50.0, 200.0), (80.0, 20.0)];

    #[test]
    fn a_row_a_column_and_a_grid_are_aligned_at_the_top_left() {
        let row = cells(Arrangement::Row, &SIZES, 40.0, None);
        assert_eq!(row.corners, [(0.0, 0.0), (140.0, 0.0), (480.0, 0.0), (720.0, 0.0), (810.0, 0.0)]);
        assert_eq!(row.size, (890.0, 200.0));
        let column = cells(Arrangement::Column, &SIZES[..3], 0.0, None);
        assert_eq!(column.corners, [(0.0, 0.0), (0.0, 50.0), (0.0, 130.0)]);
        assert_eq!(column.size, (300.0, 140.0));
        let grid = cells(Arrangement::Grid, &SIZES, 10.0, Some(2));
        assert_eq!(grid.corners, [(0.0, 0.0), (210.0, 0.0), (0.0, 90.0), (210.0, 90.0), (0.0, 300.0)]);
        assert_eq!(grid.size, (510.0, 320.0));
    }

    #[test]
    fn a_grid_is_about_as_wide_as_high() {
        let columns = |count: usize| {
            let grid = cells(Arrangement::Grid, &vec![(1.0, 1.0); count], 0.0, None);
            grid.size.0
        };
        assert_eq!([1, 2, 3, 4, 5, 9, 10].map(columns), [1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 4.0]);
    }

    #[test]
    fn a_grid_has_no_empty_columns() {
        assert_eq!(cells(Arrangement::Grid, &SIZES[..2], 40.0, Some(200)).size, (440.0, 80.0));
    }
}
