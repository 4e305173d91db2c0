//! Where the service places nodes that it adds to a canvas or arranges: next to a node, in a Section, or at the first free
//! spot to the right of the content.

mod block;
mod cells;
mod flow;
#[cfg(test)]
mod golden;
mod index;
mod location;
mod masonry;
mod results;
mod spot;

use domain::graph::{Node, Position};
use domain::limits::COORDINATE_MAX;

pub(crate) use block::{Block, Moved, Wish};
pub(crate) use cells::{Cells, Style, block_cells, cells, columns_of};
/// Distance between the content and what is placed next to it, in canvas units.
pub use domain::operation::GAP;
pub(crate) use flow::{LAYER_GAP, flow};
pub(crate) use index::Index;
pub use location::Location;
pub(crate) use masonry::{Masonry, Tile, masonry, order};
pub(crate) use spot::Side;
pub use spot::{Hint, Spot};

/// Least distance from everything else at which what is arranged stays where it is, in canvas units.
pub(crate) const KEPT_GAP: f64 = 16.0;
/// Violation of a Section in which something must lie that neither fits nor can be made room for.
pub(crate) const NO_ROOM: &str = "has no room and cannot grow";
/// Rows that are searched for a gap when neither side of the content is free. It bounds the work and is far more than
/// any known canvas needs.
const ROWS_MAX: usize = 64;

/// The area of a node: `[left, right] × [top, bottom]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Smallest x.
    pub left: f64,
    /// Smallest y.
    pub top: f64,
    /// Largest x.
    pub right: f64,
    /// Largest y.
    pub bottom: f64,
}

impl Frame {
    /// The frame of a node.
    pub fn from_node(node: &Node) -> Self {
        Self::new(node.position, node.width, node.height)
    }

    /// The frame with this top left corner.
    pub fn new(position: Position, width: f64, height: f64) -> Self {
        Self { left: position.x, top: position.y, right: position.x + width, bottom: position.y + height }
    }

    /// The frame, larger by `margin` on every side.
    pub fn widened(self, margin: f64) -> Self {
        let Self { left, top, right, bottom } = self;
        Self { left: left - margin, top: top - margin, right: right + margin, bottom: bottom + margin }
    }

    /// Returns `true` if the two frames have an area in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }

    /// Returns `true` if `other` lies within the frame.
    pub fn contains(self, other: Self) -> bool {
        other.left >= self.left && other.top >= self.top && other.right <= self.right && other.bottom <= self.bottom
    }

    /// The smallest frame that contains both.
    pub fn union(self, other: Self) -> Self {
        Self {
            left: self.left.min(other.left),
            top: self.top.min(other.top),
            right: self.right.max(other.right),
            bottom: self.bottom.max(other.bottom),
        }
    }
}

/// The first free spot for an area of this size: to the right of the content, aligned with its top; the origin on an
/// empty canvas. If the right edge of the canvas is too near, the spot is below the content; if the bottom edge is too
/// near as well, it is the first gap in the content that is wide and high enough. If there is no gap, frames must
/// overlap: the spot is then as far to the right as a node may be.
pub fn free_spot(frames: impl IntoIterator<Item = Frame>, width: f64, height: f64) -> Position {
    spot_up_to(frames, width, height, Position { x: COORDINATE_MAX, y: COORDINATE_MAX })
}

/// [`free_spot`] for several nodes within an area of this size: every one of them lies within the bounds of the canvas.
pub fn free_area(frames: impl IntoIterator<Item = Frame>, width: f64, height: f64) -> Position {
    spot_up_to(frames, width, height, Position { x: COORDINATE_MAX - width, y: COORDINATE_MAX - height })
}

/// The first free spot that is no further to the right and no lower than `last`.
fn spot_up_to(frames: impl IntoIterator<Item = Frame>, width: f64, height: f64, last: Position) -> Position {
    let frames: Vec<Frame> = frames.into_iter().collect();
    let Some(content) = frames.iter().copied().reduce(Frame::union) else {
        return Position { x: 0.0, y: 0.0 };
    };
    let (right, below) = (content.right + GAP, content.bottom + GAP);
    if right <= last.x && content.top <= last.y {
        Position { x: right, y: content.top }
    } else if below <= last.y && content.left <= last.x {
        Position { x: content.left, y: below }
    } else {
        let edge = Position { x: last.x, y: content.top.min(last.y) };
        gap_between(&frames, content.top, (width, height), last).unwrap_or(edge)
    }
}

/// The first gap in the rows that begin at the top of the content and below each of its frames.
fn gap_between(frames: &[Frame], top: f64, (width, height): (f64, f64), last: Position) -> Option<Position> {
    let mut tops: Vec<f64> = frames.iter().map(|frame| frame.bottom + GAP).chain([top]).collect();
    tops.sort_by(f64::total_cmp);
    tops.dedup();
    tops.into_iter().filter(|y| *y <= last.y).take(ROWS_MAX).find_map(|y| {
        let mut row: Vec<&Frame> =
            frames.iter().filter(|frame| frame.top < y + height + GAP && frame.bottom > y - GAP).collect();
        row.sort_by(|a, b| a.left.total_cmp(&b.left));
        let mut x = -COORDINATE_MAX;
        for frame in row {
            if x + width + GAP <= frame.left {
                break;
            }
            x = x.max(frame.right + GAP);
        }
        (x <= last.x).then_some(Position { x, y })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(x: f64, y: f64, width: f64, height: f64) -> Frame {
        Frame::new(Position { x, y }, width, height)
    }

    fn spot(frames: &[Frame]) -> (f64, f64) {
        let spot = free_spot(frames.iter().copied(), 320.0, 320.0);
        (spot.x, spot.y)
    }

    #[test]
    fn the_first_node_is_at_the_origin() {
        assert_eq!(spot(&[]), (0.0, 0.0));
    }

    #[test]
    fn a_node_is_to_the_right_of_everything_level_with_the_top() {
        assert_eq!(spot(&[frame(10.0, 20.0, 100.0, 50.0)]), (150.0, 20.0));
        assert_eq!(spot(&[frame(-500.0, -70.0, 100.0, 50.0), frame(10.0, 20.0, 100.0, 50.0)]), (150.0, -70.0));
    }

    #[test]
    fn near_the_right_edge_a_node_is_below() {
        let last = COORDINATE_MAX - GAP - 100.0;
        assert_eq!(spot(&[frame(last, 0.0, 100.0, 100.0)]), (COORDINATE_MAX, 0.0));
        assert_eq!(spot(&[frame(last + 1.0, 0.0, 100.0, 100.0)]), (last + 1.0, 140.0));
    }

    #[test]
    fn content_at_both_edges_is_filled_from_its_first_gap() {
        let corner = frame(COORDINATE_MAX, COORDINATE_MAX, 100.0, 100.0);
        let origin = frame(-COORDINATE_MAX, -COORDINATE_MAX, 100.0, 100.0);
        assert_eq!(spot(&[corner, origin]), (-COORDINATE_MAX + 140.0, -COORDINATE_MAX));
    }

    #[test]
    fn a_full_canvas_gets_the_node_at_the_edge() {
        let wall = Frame { left: -COORDINATE_MAX, top: -COORDINATE_MAX, right: 1.1e7, bottom: 1.1e7 };
        assert_eq!(spot(&[wall]), (COORDINATE_MAX, -COORDINATE_MAX));
    }

    proptest! {
        #[test]
        fn the_spot_is_free_and_on_the_canvas(
            frames in prop::collection::vec(
                (-COORDINATE_MAX..=COORDINATE_MAX, -COORDINATE_MAX..=COORDINATE_MAX, 1.0..100_000.0, 1.0..100_000.0),
                0..40,
            ),
            width in 1.0..100_000.0,
            height in 1.0..100_000.0,
            edge in any::<bool>(),
        ) {
            let mut frames: Vec<Frame> = frames.into_iter().map(|(x, y, w, h)| frame(x, y, w, h)).collect();
            if edge {
                frames.push(frame(COORDINATE_MAX, COORDINATE_MAX, 1.0, 1.0));
            }
            let spot = free_spot(frames.iter().copied(), width, height);
            prop_assert!(spot.x.abs() <= COORDINATE_MAX && spot.y.abs() <= COORDINATE_MAX);
            let area = free_area(frames.iter().copied(), width, height);
            prop_assert!(area.x.abs() <= COORDINATE_MAX && area.x + width <= COORDINATE_MAX);
            prop_assert!(area.y.abs() <= COORDINATE_MAX && area.y + height <= COORDINATE_MAX);
            for at in [spot, area] {
                let new = Frame::new(at, width, height);
                for old in &frames {
                    let apart =
                        new.left >= old.right || old.left >= new.right || new.top >= old.bottom || old.top >= new.bottom;
                    prop_assert!(apart, "{new:?} {old:?}");
                }
            }
        }
    }
}
