//! An index of frames: what is near a place costs what is near it, however large the canvas is.
//!
//! Each frame is on the level whose cells are at least as large as it, so that it lies in at most four cells. A frame that
//! is larger than a cell would otherwise be in very many.

use std::collections::HashMap;

use super::Frame;

/// Side of the smallest cells, in canvas units: a little more than that of a new node.
const CELL: f64 = 512.0;
/// Levels; the cells of each are twice as large as those of the one before. A node's side is at most 100000.
const LEVELS: usize = 9;

/// Frames by slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    levels: [Level; LEVELS],
    /// The smallest frame that contains all; `None` when it is to be computed.
    bounds: Option<Frame>,
}

#[derive(Clone, Debug, Default)]
struct Level {
    cells: HashMap<(i64, i64), Vec<(usize, Frame)>>,
}

impl Index {
    pub(crate) fn new(frames: impl IntoIterator<Item = (usize, Frame)>) -> Self {
        let mut index = Self::default();
        for (slot, frame) in frames {
            index.replace(slot, None, Some(frame));
        }
        index
    }

    /// Replaces, adds or removes the frame of a slot.
    pub(crate) fn replace(&mut self, slot: usize, old: Option<Frame>, new: Option<Frame>) {
        if old == new {
            return;
        }
        if let Some(old) = old {
            let level = level(old);
            for cell in cells(level, old) {
                if let Some(frames) = self.levels[level].cells.get_mut(&cell) {
                    frames.retain(|(other, _)| *other != slot);
                    if frames.is_empty() {
                        self.levels[level].cells.remove(&cell);
                    }
                }
            }
            self.bounds = None;
        }
        if let Some(new) = new {
            let level = level(new);
            for cell in cells(level, new) {
                self.levels[level].cells.entry(cell).or_default().push((slot, new));
            }
            self.bounds = self.bounds.map(|bounds| bounds.union(new));
        }
    }

    /// The frames that overlap `area`, each once or more.
    pub(crate) fn overlapping(&self, area: Frame) -> impl Iterator<Item = (usize, Frame)> {
        self.near(area).filter(move |(_, frame)| frame.overlaps(area))
    }

    /// The frames in the cells of `area`, each once or more.
    pub(crate) fn near(&self, area: Frame) -> impl Iterator<Item = (usize, Frame)> {
        self.levels.iter().enumerate().flat_map(move |(at, level)| level.near(at, area))
    }

    /// The smallest frame that contains all.
    pub(crate) fn bounds(&mut self) -> Option<Frame> {
        if self.bounds.is_none() {
            let frames = self.levels.iter().flat_map(|level| level.cells.values().flatten());
            self.bounds = frames.map(|(_, frame)| *frame).reduce(Frame::union);
        }
        self.bounds
    }
}

impl Level {
    /// The frames in the cells that overlap `area`: through the cells of the area, or through all if these are fewer.
    fn near(&self, at: usize, area: Frame) -> impl Iterator<Item = (usize, Frame)> {
        let [left, right] = [area.left, area.right].map(|x| cell(at, x));
        let [top, bottom] = [area.top, area.bottom].map(|y| cell(at, y));
        let count = (right - left + 1).saturating_mul(bottom - top + 1);
        let is_small = usize::try_from(count).is_ok_and(|count| count <= self.cells.len());
        let within = (left..=right).flat_map(move |x| (top..=bottom).map(move |y| (x, y)));
        let by_cell = is_small.then(|| within.filter_map(move |cell| self.cells.get(&cell)).flatten());
        let all = (!is_small).then(|| self.cells.values().flatten());
        by_cell.into_iter().flatten().chain(all.into_iter().flatten()).copied()
    }
}

/// The level of a frame.
fn level(frame: Frame) -> usize {
    let side = (frame.right - frame.left).max(frame.bottom - frame.top);
    (0..LEVELS - 1).find(|level| side <= size(*level)).unwrap_or(LEVELS - 1)
}

/// Side of the cells of a level.
fn size(level: usize) -> f64 {
    CELL * f64::from(1_u32 << level)
}

fn cell(level: usize, coordinate: f64) -> i64 {
    // Coordinates are at most some ten millions.
    (coordinate / size(level)).floor() as i64
}

/// The cells of a level that a frame lies in.
fn cells(level: usize, frame: Frame) -> impl Iterator<Item = (i64, i64)> {
    let [left, right] = [frame.left, frame.right].map(|x| cell(level, x));
    let [top, bottom] = [frame.top, frame.bottom].map(|y| cell(level, y));
    (left..=right).flat_map(move |x| (top..=bottom).map(move |y| (x, y)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use domain::graph::Position;
    use proptest::prelude::*;

    use super::*;

    fn frame() -> impl Strategy<Value = Frame> {
        let side = || prop_oneof![1.0..700.0, 1.0..100_000.0];
        (-9000.0..9000.0, -9000.0..9000.0, side(), side())
            .prop_map(|(x, y, width, height)| Frame::new(Position { x, y }, width, height))
    }

    proptest! {
        #[test]
        fn the_index_finds_what_a_comparison_with_every_frame_finds(
            frames in prop::collection::vec(frame(), 1..40),
            changes in prop::collection::vec((0..40_usize, prop::option::of(frame())), 0..40),
            area in frame(),
        ) {
            let mut now: Vec<Option<Frame>> = frames.iter().copied().map(Some).collect();
            let mut index = Index::new(frames.into_iter().enumerate());
            let _ = index.bounds();
            let count = now.len();
            for (slot, new) in changes.into_iter().filter(|(slot, _)| *slot < count) {
                index.replace(slot, now[slot], new);
                now[slot] = new;
            }
            let present = || now.iter().enumerate().filter_map(|(slot, frame)| Some((slot, (*frame)?)));
            let expected: BTreeSet<usize> =
                present().filter(|(_, frame)| frame.overlaps(area)).map(|(slot, _)| slot).collect();
            let found: BTreeSet<usize> = index.overlapping(area).map(|(slot, _)| slot).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(index.bounds(), present().map(|(_, frame)| frame).reduce(Frame::union));
        }
    }
}
