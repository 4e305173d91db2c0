//! Layout of the Section with the images of a product import (`docs/reference/imports.md#import-product-references`).

use domain::graph::Position;
use domain::operation::{Alignment, Arrangement};

use crate::geometry::HEAD;
use crate::placement::{Cells, Frame, GAP, Style, cells, free_area};

/// Frames of a pack.
#[derive(Clone, Debug, PartialEq)]
pub struct Pack {
    /// Frame of the Section; it contains all places.
    pub section: Frame,
    /// Frame of each image, in order.
    pub places: Vec<Frame>,
}

/// Arranges image nodes of these sizes (at least one) in a grid to the right of the content, each in the middle of its cell.
pub fn arrange(content: impl IntoIterator<Item = Frame>, sizes: &[(f64, f64)]) -> Pack {
    let style = Style { align: Alignment::Center, ..Style::new(Arrangement::Grid, GAP) };
    let Cells { corners, size } = cells(style, sizes);
    let (width, height) = (size.0 + 2.0 * GAP, HEAD + size.1 + GAP);
    // The members must also lie within the bounds of the canvas.
    let at = free_area(content, width, height);
    let places = corners.iter().zip(sizes).map(|((x, y), (width, height))| {
        Frame::new(Position { x: at.x + GAP + x, y: at.y + HEAD + y }, *width, *height)
    });
    Pack { section: Frame::new(at, width, height), places: places.collect() }
}

#[cfg(test)]
mod tests {
    use domain::limits::COORDINATE_MAX;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_pack_on_an_empty_canvas_begins_at_the_origin() {
        let pack = arrange([], &[(320.0, 188.0), (160.0, 348.0)]);
        assert_eq!(pack.section, Frame { left: 0.0, top: 0.0, right: 600.0, bottom: 96.0 + 388.0 });
        assert_eq!(pack.places[0], Frame { left: 40.0, top: 176.0, right: 360.0, bottom: 364.0 });
        assert_eq!(pack.places[1], Frame { left: 400.0, top: 96.0, right: 560.0, bottom: 444.0 });
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
