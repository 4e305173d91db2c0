//! Layout of the Section with the images of a product import (`docs/reference/imports.md#import-product-references`).

use crate::geometry::HEAD;
use crate::placement::{Frame, GAP, free_spot};
use domain::graph::Position;
use domain::limits::COORDINATE_MAX;

/// Width of a cell, in canvas units: the greatest of a node that is sized for an image.
const CELL: f64 = 320.0;
/// Most columns: a pack of twelve has three rows of four.
const COLUMNS_MAX: usize = 4;

/// Frames of a pack.
#[derive(Clone, Debug, PartialEq)]
pub struct Pack {
    /// Frame of the Section; it contains all places.
    pub section: Frame,
    /// Frame of each image, in order.
    pub places: Vec<Frame>,
}

/// Arranges image nodes of these sizes (at least one, none wider than a new image node) in a grid to the right of the
/// content, row by row. Each is centered in its cell; a row is as high as its highest node.
pub fn arrange(content: impl IntoIterator<Item = Frame>, sizes: &[(f64, f64)]) -> Pack {
    let columns = columns(sizes.len());
    let rows: Vec<&[(f64, f64)]> = sizes.chunks(columns).collect();
    let heights: Vec<f64> =
        rows.iter().map(|row| row.iter().fold(1.0, |most: f64, (_, height)| most.max(*height))).collect();
    let width = columns as f64 * (CELL + GAP) + GAP;
    let height = HEAD + heights.iter().map(|height| height + GAP).sum::<f64>();
    let spot = free_spot(content, width, height);
    // The members must also lie within the bounds of the canvas.
    let at = Position { x: spot.x.min(COORDINATE_MAX - width), y: spot.y.min(COORDINATE_MAX - height) };
    let mut places = Vec::with_capacity(sizes.len());
    let mut top = at.y + HEAD;
    for (row, row_height) in rows.iter().zip(&heights) {
        for (column, (width, height)) in row.iter().enumerate() {
            let x = at.x + GAP + column as f64 * (CELL + GAP) + ((CELL - width) / 2.0).floor();
            let y = top + ((row_height - height) / 2.0).floor();
            places.push(Frame::new(Position { x, y }, *width, *height));
        }
        top += row_height + GAP;
    }
    Pack { section: Frame::new(at, width, height), places }
}

/// The number of columns that leaves the fewest cells empty in a grid that is no higher than wide.
fn columns(count: usize) -> usize {
    let grids = (1..=COLUMNS_MAX).filter(|columns| count.div_ceil(*columns) <= *columns);
    grids.min_by_key(|columns| count.div_ceil(*columns) * columns - count).unwrap_or(COLUMNS_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_grid_is_no_higher_than_wide_and_as_full_as_can_be() {
        assert_eq!([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12].map(columns), [1, 2, 3, 2, 3, 3, 4, 4, 3, 4, 4, 4]);
        assert_eq!(columns(17), 4);
    }

    #[test]
    fn a_pack_on_an_empty_canvas_begins_at_the_origin() {
        let pack = arrange([], &[(320.0, 188.0), (160.0, 348.0)]);
        assert_eq!(pack.section, Frame { left: 0.0, top: 0.0, right: 760.0, bottom: 96.0 + 388.0 });
        assert_eq!(pack.places[0], Frame { left: 40.0, top: 176.0, right: 360.0, bottom: 364.0 });
        assert_eq!(pack.places[1], Frame { left: 480.0, top: 96.0, right: 640.0, bottom: 444.0 });
    }

    fn apart(one: Frame, other: Frame) -> bool {
        one.left >= other.right || other.left >= one.right || one.top >= other.bottom || other.top >= one.bottom
    }

    proptest! {
        #[test]
        fn no_two_images_overlap_and_all_stand_in_the_section(
            sizes in prop::collection::vec((1.0..=320.0, 1.0..=348.0), 1..=12),
            x in -COORDINATE_MAX..=COORDINATE_MAX,
            y in -COORDINATE_MAX..=COORDINATE_MAX,
        ) {
            let content = Frame::new(Position { x, y }, 300.0, 200.0);
            let Pack { section, places } = arrange([content], &sizes);
            prop_assert_eq!(places.len(), sizes.len());
            prop_assert!(section.right <= COORDINATE_MAX && section.bottom <= COORDINATE_MAX);
            for (index, place) in places.iter().enumerate() {
                prop_assert!(place.left >= section.left && place.right <= section.right);
                prop_assert!(place.top >= section.top && place.bottom <= section.bottom);
                prop_assert!(places[..index].iter().all(|other| apart(*place, *other)));
            }
            if x < COORDINATE_MAX / 2.0 {
                prop_assert!(apart(section, content));
            }
        }
    }
}
