//! Finds overlapping frames without comparing every pair.
//!
//! **Guarantee.** Every pair of frames that share more than one unit in both axes is reported once, exactly as a
//! comparison of every pair would. A search that is stopped after k pairs takes O((n + k) log n) steps, whatever the
//! layout and size of the frames. A grid does not guarantee this: one frame of 100000 × 100000 over 20000 small ones,
//! or all of them at one spot, covers all cells or shares one.
//!
//! **Mechanism.** A sweep from left to right. The frames met so far are leaves of a tournament tree over their lower
//! edges, in the order of their upper edges. A frame overlaps a prefix of that order (the frames whose upper edges are
//! above its lower edge) except those whose lower edge is too high, and the tree skips whole subtrees of these. A frame
//! that the sweep has passed is removed when it is next met. There is one tree for each [`Standing`], so that pairs
//! that are not wanted cost nothing.

use std::ops::ControlFlow;

use crate::placement::Frame;

/// Frames overlap if they share more than this in both axes, in canvas units.
const SLACK: f64 = 1.0;

/// The properties of a frame's node that decide the severity of an overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Owned by an agent, and created, moved or resized by the batch.
    PlacedAgent,
    /// Owned by an agent.
    Agent,
    /// Owned by the user, and created, moved or resized by the batch.
    PlacedUser,
    /// Owned by the user.
    User,
}

impl Standing {
    pub(crate) const ALL: [Self; 4] = [Self::PlacedAgent, Self::Agent, Self::PlacedUser, Self::User];
}

/// Frames to search for overlaps.
pub(crate) struct Field {
    /// Sorted by left edge; equal ones by order of creation.
    items: Vec<Item>,
    /// Upper edges in ascending order; positions are the ranks of the trees.
    tops: Vec<f64>,
    /// Item by rank.
    by_rank: Vec<usize>,
    /// Number of frames of each standing.
    counts: [usize; 4],
}

struct Item {
    slot: usize,
    frame: Frame,
    standing: Standing,
    rank: usize,
}

/// Returns `true` if two frames overlap.
pub(crate) fn overlap(a: Frame, b: Frame) -> bool {
    shares(a.right.min(b.right), a.left.max(b.left)) && shares(a.bottom.min(b.bottom), a.top.max(b.top))
}

/// Returns `true` if more than the slack lies between an end and a start.
fn shares(end: f64, start: f64) -> bool {
    end - start > SLACK
}

impl Field {
    /// Frames with the slots of their nodes. Frames that are too thin to overlap anything are left out.
    pub(crate) fn new(frames: impl IntoIterator<Item = (usize, Frame, Standing)>) -> Self {
        let mut items: Vec<Item> = frames
            .into_iter()
            .filter(|(_, frame, _)| shares(frame.right, frame.left) && shares(frame.bottom, frame.top))
            .map(|(slot, frame, standing)| Item { slot, frame, standing, rank: 0 })
            .collect();
        items.sort_unstable_by(|a, b| a.frame.left.total_cmp(&b.frame.left).then(a.slot.cmp(&b.slot)));
        let mut by_rank: Vec<usize> = (0..items.len()).collect();
        by_rank.sort_unstable_by(|a, b| items[*a].frame.top.total_cmp(&items[*b].frame.top));
        for (rank, item) in by_rank.iter().enumerate() {
            items[*item].rank = rank;
        }
        let tops = by_rank.iter().map(|item| items[*item].frame.top).collect();
        let mut counts = [0; 4];
        for item in &items {
            counts[item.standing as usize] += 1;
        }
        Self { items, tops, by_rank, counts }
    }

    /// Calls `found` with the slots, the earlier created first, of every overlapping pair whose standings are `wanted`
    /// in either order, until `found` breaks.
    pub(crate) fn pairs(
        &self,
        wanted: impl Fn(Standing, Standing) -> bool,
        mut found: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let with = |a: Standing| Standing::ALL.map(|b| wanted(a, b) || wanted(b, a));
        let partners = Standing::ALL.map(|a| self.partners(a, with(a)));
        if partners.iter().all(|partners| !partners.contains(&true)) {
            return ControlFlow::Continue(());
        }
        let mut met = Standing::ALL.map(|_| None::<Tree>);
        for item in &self.items {
            let partners = partners[item.standing as usize];
            if !partners.contains(&true) {
                continue;
            }
            let end = self.tops.partition_point(|top| shares(item.frame.bottom, *top));
            for tree in partners.iter().zip(&mut met).filter_map(|(wanted, tree)| tree.as_mut().filter(|_| *wanted)) {
                self.overlaps_of(item, end, tree, &mut found)?;
            }
            met[item.standing as usize]
                .get_or_insert_with(|| Tree::new(self.items.len()))
                .set(item.rank, item.frame.bottom);
        }
        ControlFlow::Continue(())
    }

    /// The standings with which a frame of standing `a` can form a wanted pair, without those that no frame has.
    fn partners(&self, a: Standing, wanted: [bool; 4]) -> [bool; 4] {
        let mut partners = wanted;
        for (b, wanted) in partners.iter_mut().enumerate() {
            let needed = if b == a as usize { 2 } else { 1 };
            *wanted = *wanted && self.counts[b] >= needed && self.counts[a as usize] > 0;
        }
        partners
    }

    fn overlaps_of(
        &self,
        item: &Item,
        end: usize,
        tree: &mut Tree,
        found: &mut impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut from = 0;
        while from < end
            && let Some(rank) = tree.next(from, |bottom| shares(bottom, item.frame.top)).filter(|rank| *rank < end)
        {
            let other = &self.items[self.by_rank[rank]];
            if shares(other.frame.right, item.frame.left) {
                found(item.slot.min(other.slot), item.slot.max(other.slot))?;
            } else {
                tree.set(rank, f64::NEG_INFINITY);
            }
            from = rank + 1;
        }
        ControlFlow::Continue(())
    }
}

/// A tournament tree: each inner node holds the larger of its two children.
struct Tree {
    /// The root is at 1, the children of `i` are at `2i` and `2i + 1`, the leaves are the second half.
    largest: Vec<f64>,
}

impl Tree {
    fn new(leaves: usize) -> Self {
        Self { largest: vec![f64::NEG_INFINITY; 2 * leaves.next_power_of_two()] }
    }

    fn leaves(&self) -> usize {
        self.largest.len() / 2
    }

    fn set(&mut self, leaf: usize, value: f64) {
        let mut at = self.leaves() + leaf;
        self.largest[at] = value;
        while at > 1 {
            at /= 2;
            self.largest[at] = self.largest[2 * at].max(self.largest[2 * at + 1]);
        }
    }

    /// The first leaf at or after `from` whose value is a hit. Every value larger than a hit must be a hit.
    fn next(&self, from: usize, is_hit: impl Fn(f64) -> bool) -> Option<usize> {
        let mut at = self.leaves() + from;
        loop {
            // Climb to the largest subtree that begins here.
            while at.is_multiple_of(2) {
                at /= 2;
            }
            if is_hit(self.largest[at]) {
                while at < self.leaves() {
                    at = if is_hit(self.largest[2 * at]) { 2 * at } else { 2 * at + 1 };
                }
                return Some(at - self.leaves());
            }
            at += 1;
            // A power of two is the left edge of a level: the previous level has ended.
            if at.is_power_of_two() {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::graph::Position;
    use proptest::prelude::*;

    use super::*;

    fn frame(x: f64, y: f64, width: f64, height: f64) -> Frame {
        Frame::new(Position { x, y }, width, height)
    }

    fn field(frames: &[(Frame, Standing)]) -> Field {
        Field::new(frames.iter().enumerate().map(|(slot, (frame, standing))| (slot, *frame, *standing)))
    }

    fn all(field: &Field, wanted: impl Fn(Standing, Standing) -> bool) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        let _ = field.pairs(wanted, |a, b| {
            pairs.push((a, b));
            ControlFlow::Continue(())
        });
        pairs.sort_unstable();
        pairs
    }

    /// Time of a search for `limit` pairs; it must not grow with n².
    fn first(field: &Field, limit: usize) -> usize {
        let mut count = 0;
        let _ = field.pairs(
            |_, _| true,
            |_, _| {
                count += 1;
                if count < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            },
        );
        count
    }

    #[test]
    fn frames_overlap_when_they_share_more_than_one_unit_in_both_axes() {
        let one = (frame(0.0, 0.0, 10.0, 10.0), Standing::User);
        for (x, y, expected) in [
            (9.0, 0.0, 0),
            (8.9, 0.0, 1),
            (0.0, 9.0, 0),
            (0.0, 8.9, 1),
            (8.9, 9.0, 0),
            (-8.9, -8.9, 1),
            (-9.0, 0.0, 0),
            (3.0, 3.0, 1),
        ] {
            let other = (frame(x, y, 10.0, 10.0), Standing::User);
            assert_eq!(all(&field(&[one, other]), |_, _| true).len(), expected, "{x} {y}");
        }
        let thin = (frame(2.0, 2.0, 1.0, 5.0), Standing::User);
        assert!(all(&field(&[one, thin]), |_, _| true).is_empty(), "one unit wide shares no more than one");
    }

    #[test]
    fn crowds_cost_no_step_of_n_squared() {
        let started = std::time::Instant::now();
        let in_one_place: Vec<_> = (0..20_000).map(|_| (frame(0.0, 0.0, 320.0, 320.0), Standing::Agent)).collect();
        assert_eq!(first(&field(&in_one_place), 201), 201);
        let mut under_one: Vec<_> =
            (0..20_000).map(|at| (frame(5.0 * f64::from(at), 0.0, 3.0, 3.0), Standing::Agent)).collect();
        under_one.push((frame(0.0, 0.0, 100_000.0, 100_000.0), Standing::Agent));
        assert_eq!(first(&field(&under_one), 201), 201);
        // Long frames above each other over the same interval: none overlap.
        let shelves: Vec<_> =
            (0..20_000).map(|at| (frame(0.0, 3.0 * f64::from(at), 1e5, 3.5), Standing::Agent)).collect();
        assert_eq!(first(&field(&shelves), 201), 0);
        // Many overlaps that are not wanted, and none that are.
        let mut crowd: Vec<_> = (0..10_000).map(|_| (frame(0.0, 0.0, 1e5, 10.0), Standing::User)).collect();
        crowd.extend((0..10_000).map(|at| (frame(9.0 * f64::from(at), 9.5, 8.0, 5.0), Standing::Agent)));
        assert!(all(&field(&crowd), |a, _| a == Standing::Agent).is_empty());
        // Two orders of magnitude above the time of an unoptimized build; a quadratic step would take far longer.
        assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
    }

    fn standing() -> impl Strategy<Value = Standing> {
        prop::sample::select(&Standing::ALL[..])
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_comparing_each_with_each_finds(
            frames in prop::collection::vec(
                (0..40u8, 0..40u8, 1..20u8, 1..20u8, any::<bool>(), standing()), 0..60),
            wanted in prop::collection::vec(any::<bool>(), 16),
        ) {
            let frames: Vec<(Frame, Standing)> = frames
                .into_iter()
                .map(|(x, y, width, height, half, standing)| {
                    let shift = if half { 0.5 } else { 0.0 };
                    (frame(f64::from(x) + shift, y.into(), width.into(), f64::from(height) + shift), standing)
                })
                .collect();
            let asked = |a: Standing, b: Standing| wanted[4 * a as usize + b as usize];
            let mut expected = Vec::new();
            for (a, (one, of_a)) in frames.iter().enumerate() {
                for (b, (other, of_b)) in frames.iter().enumerate().skip(a + 1) {
                    if overlap(*one, *other) && (asked(*of_a, *of_b) || asked(*of_b, *of_a)) {
                        expected.push((a, b));
                    }
                }
            }
            prop_assert_eq!(all(&field(&frames), asked), expected);
        }
    }
}
