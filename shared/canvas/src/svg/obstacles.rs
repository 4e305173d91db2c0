//! The cards and titles of Sections that connections avoid: a packed R-tree over their frames.
//!
//! **Guarantee.** A search that skips most of the canvas costs O(log n) and what it finds. A [`Search`] examines at most
//! [`EFFORT`] frames in total, whatever the layout; after that it reports that it is exhausted, and its results must not
//! be used.

use std::cell::Cell;
use std::ops::{ControlFlow, Range};

use crate::placement::Frame;

/// Frames in a group of the tree.
const FANOUT: usize = 4;

/// Frames that the searches for one connection examine at most: far more than a legible canvas needs.
const EFFORT: usize = 3000;

/// A card, or a group of cards, by its frame. The value of a card is its slot.
pub(super) struct Obstacles {
    /// Frames of the cards, then of the groups of these, and so on up to a single one.
    levels: Vec<Vec<Frame>>,
    /// The cards, in the order of their frames.
    cards: Vec<(usize, Kind)>,
}

/// What is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Card,
    /// The title of a Section, which a connection passes behind if there is no other way.
    Title,
}

impl Obstacles {
    /// The frames of cards and titles, by the slot of their node.
    pub(super) fn new(mut cards: Vec<((usize, Kind), Frame)>) -> Self {
        // Columns of about as many cards as each column has groups; within a column from top to bottom.
        let groups = cards.len().div_ceil(FANOUT);
        let column = FANOUT * (groups as f64).sqrt().ceil().max(1.0) as usize;
        cards.sort_by(|(_, a), (_, b)| (a.left + a.right).total_cmp(&(b.left + b.right)));
        for column in cards.chunks_mut(column) {
            column.sort_by(|(_, a), (_, b)| (a.top + a.bottom).total_cmp(&(b.top + b.bottom)));
        }
        let (cards, frames): (Vec<(usize, Kind)>, Vec<Frame>) = cards.into_iter().unzip();
        let mut levels = vec![frames];
        while let Some(below) = levels.last().filter(|level| level.len() > 1) {
            levels.push(below.chunks(FANOUT).filter_map(|group| group.iter().copied().reduce(Frame::union)).collect());
        }
        Self { levels, cards }
    }

    /// Begins the searches for one connection, for which titles are in the way or not.
    pub(super) fn search(&self, avoids_titles: bool) -> Search<'_> {
        Search { obstacles: self, left: Cell::new(EFFORT), avoids_titles, has_met_title: Cell::new(false) }
    }
}

/// The searches for one connection.
pub(super) struct Search<'a> {
    obstacles: &'a Obstacles,
    /// Frames that may still be examined.
    left: Cell<usize>,
    avoids_titles: bool,
    has_met_title: Cell<bool>,
}

impl Search<'_> {
    /// Returns `true` if not everything that was asked for could be examined.
    pub(super) fn is_exhausted(&self) -> bool {
        self.left.get() == 0
    }

    /// Returns `true` if a title was in the way of something.
    pub(super) fn has_met_title(&self) -> bool {
        self.has_met_title.get()
    }

    /// Calls `found` for each card whose frame is `met`, until it breaks. A frame that contains one that is met must be
    /// met.
    pub(super) fn visit(
        &self,
        met: impl Fn(Frame) -> bool,
        found: impl FnMut(usize, Frame) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.visit_along(1.0, met, found)
    }

    /// [`visit`](Self::visit), roughly from left to right and from top to bottom; in reverse if `way` is negative.
    pub(super) fn visit_along(
        &self,
        way: f64,
        met: impl Fn(Frame) -> bool,
        mut found: impl FnMut(usize, Frame) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let top = self.obstacles.levels.len() - 1;
        self.descend(top, 0..self.obstacles.levels[top].len(), way < 0.0, &met, &mut found)
    }

    fn descend(
        &self,
        level: usize,
        range: Range<usize>,
        is_reverse: bool,
        met: &impl Fn(Frame) -> bool,
        found: &mut impl FnMut(usize, Frame) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(left) = self.left.get().checked_sub(range.len()) else {
            self.left.set(0);
            return ControlFlow::Break(());
        };
        self.left.set(left);
        let Obstacles { levels, cards } = self.obstacles;
        for step in 0..range.len() {
            let at = if is_reverse { range.end - 1 - step } else { range.start + step };
            let frame = levels[level][at];
            if !met(frame) {
                continue;
            }
            match level.checked_sub(1) {
                None if cards[at].1 == Kind::Title && !self.avoids_titles => {}
                None => {
                    self.has_met_title.set(self.has_met_title.get() || cards[at].1 == Kind::Title);
                    found(cards[at].0, frame)?;
                }
                Some(below) => {
                    let end = levels[below].len().min((at + 1) * FANOUT);
                    self.descend(below, at * FANOUT..end, is_reverse, met, found)?;
                }
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame() -> impl Strategy<Value = Frame> {
        (-500.0..500.0, -500.0..500.0, 1.0..300.0, 1.0..300.0).prop_map(
            |(left, top, width, height): (f64, f64, f64, f64)| Frame {
                left,
                top,
                right: left + width,
                bottom: top + height,
            },
        )
    }

    proptest! {
        #[test]
        fn a_search_finds_what_a_comparison_with_every_card_finds(
            frames in prop::collection::vec(frame(), 0..200),
            area in frame(),
            avoids_titles in any::<bool>(),
        ) {
            // Every third one is a title.
            let kind = |slot: usize| if slot % 3 == 2 { Kind::Title } else { Kind::Card };
            let cards = frames.iter().enumerate().map(|(slot, frame)| ((slot, kind(slot)), *frame));
            let obstacles = Obstacles::new(cards.collect());
            let search = obstacles.search(avoids_titles);
            let mut found = Vec::new();
            let end = search.visit(|frame| frame.overlaps(area), |slot, frame| {
                found.push((slot, frame));
                ControlFlow::Continue(())
            });
            found.sort_unstable_by_key(|(slot, _)| *slot);
            let overlaps = |(slot, frame): &(usize, Frame)| {
                frame.overlaps(area) && (avoids_titles || kind(*slot) == Kind::Card)
            };
            let expected: Vec<_> = frames.iter().copied().enumerate().filter(overlaps).collect();
            prop_assert_eq!(found, expected);
            prop_assert!(end.is_continue() && !search.is_exhausted());
        }
    }

    #[test]
    fn the_effort_of_a_connection_is_bounded() {
        let card = Frame { left: 0.0, top: 0.0, right: 10.0, bottom: 10.0 };
        let obstacles = Obstacles::new((0..20_000).map(|slot| ((slot, Kind::Card), card)).collect());
        let search = obstacles.search(true);
        let mut count = 0;
        let end = search.visit(
            |_| true,
            |_, _| {
                count += 1;
                ControlFlow::Continue(())
            },
        );
        assert!(end.is_break() && search.is_exhausted());
        assert!(count < EFFORT, "{count}");
    }
}
