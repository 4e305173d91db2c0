//! Finds frames that overlap or are near to each other without comparing every pair.
//!
//! **Guarantee.** Every pair of frames that share more than a length in both axes (a negative length: are nearer to each
//! other than that) is reported once, exactly as a comparison of every pair would. A search that is stopped after k pairs
//! takes O((n + k) log n) steps, whatever the layout and size of the frames. A grid does not guarantee this: one frame of
//! 100000 × 100000 over 20000 small ones, or all of them at one spot, covers all cells or shares one.
//!
//! **Mechanism.** A sweep from left to right. The frames met so far are leaves of a tournament tree over their lower
//! edges, in the order of their upper edges. A frame overlaps a prefix of that order (the frames whose upper edges are
//! above its lower edge) except those whose lower edge is too high, and the tree skips whole subtrees of these. A frame
//! that the sweep has passed is removed when it is next met. There is one tree for each [`Standing`], so that pairs
//! that are not wanted cost nothing.

use std::ops::ControlFlow;

use crate::placement::Frame;

/// Frames overlap if they share more than this in both axes, in canvas units.
pub(crate) const OVERLAP: f64 = 1.0;

/// The properties of a frame that decide whether its pairs are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Its node is owned by an agent.
    pub(crate) is_agents: bool,
    /// The batch created, moved or resized its node.
    pub(crate) is_placed: bool,
    /// It is a part of the border of a Section.
    pub(crate) is_border: bool,
}

impl Standing {
    const COUNT: usize = 8;

    const fn index(self) -> usize {
        self.is_agents as usize + 2 * self.is_placed as usize + 4 * self.is_border as usize
    }

    /// Every standing, by its index.
    pub(crate) fn all() -> [Self; Self::COUNT] {
        std::array::from_fn(|at| Self { is_agents: at & 1 > 0, is_placed: at & 2 > 0, is_border: at & 4 > 0 })
    }
}

/// Frames to search for pairs.
pub(crate) struct Field {
    /// Sorted by left edge; equal ones by order of creation.
    items: Vec<Item>,
    /// Upper edges in ascending order; positions are the ranks of the trees.
    tops: Vec<f64>,
    /// Item by rank.
    by_rank: Vec<usize>,
    /// Number of frames of each standing.
    counts: [usize; Standing::COUNT],
}

struct Item {
    slot: usize,
    frame: Frame,
    standing: Standing,
    rank: usize,
}

/// Returns `true` if two frames overlap.
pub(crate) fn overlap(a: Frame, b: Frame) -> bool {
    share(a, b, OVERLAP)
}

/// Returns `true` if two frames share more than `length` in both axes.
pub(crate) fn share(a: Frame, b: Frame, length: f64) -> bool {
    exceeds(a.right.min(b.right), a.left.max(b.left), length)
        && exceeds(a.bottom.min(b.bottom), a.top.max(b.top), length)
}

/// Returns `true` if a frame is too thin to overlap anything.
pub(crate) fn is_thin(frame: Frame) -> bool {
    !overlap(frame, frame)
}

/// Returns `true` if more than `length` lies between an end and a start.
fn exceeds(end: f64, start: f64, length: f64) -> bool {
    end - start > length
}

impl Field {
    /// Frames with the slots of their nodes. Frames that are too thin to overlap anything are left out.
    pub(crate) fn new(frames: impl IntoIterator<Item = (usize, Frame, Standing)>) -> Self {
        let mut items: Vec<Item> = frames
            .into_iter()
            .filter(|(_, frame, _)| !is_thin(*frame))
            .map(|(slot, frame, standing)| Item { slot, frame, standing, rank: 0 })
            .collect();
        items.sort_unstable_by(|a, b| a.frame.left.total_cmp(&b.frame.left).then(a.slot.cmp(&b.slot)));
        let mut by_rank: Vec<usize> = (0..items.len()).collect();
        by_rank.sort_unstable_by(|a, b| items[*a].frame.top.total_cmp(&items[*b].frame.top));
        for (rank, item) in by_rank.iter().enumerate() {
            items[*item].rank = rank;
        }
        let tops = by_rank.iter().map(|item| items[*item].frame.top).collect();
        let mut counts = [0; Standing::COUNT];
        for item in &items {
            counts[item.standing.index()] += 1;
        }
        Self { items, tops, by_rank, counts }
    }

    /// Number of frames.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Calls `found` with the slots, the earlier created first, of every pair that shares more than `length`, at most
    /// [`OVERLAP`], in both axes and whose standings are `wanted` in either order, until `found` breaks.
    pub(crate) fn pairs(
        &self,
        length: f64,
        wanted: impl Fn(Standing, Standing) -> bool,
        mut found: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let with = |a: Standing| Standing::all().map(|b| wanted(a, b) || wanted(b, a));
        let partners = Standing::all().map(|a| self.partners(a, with(a)));
        if partners.iter().all(|partners| !partners.contains(&true)) {
            return ControlFlow::Continue(());
        }
        let mut met = Standing::all().map(|_| None::<Tree>);
        for item in &self.items {
            let partners = partners[item.standing.index()];
            if !partners.contains(&true) {
                continue;
            }
            let end = self.tops.partition_point(|top| exceeds(item.frame.bottom, *top, length));
            for tree in partners.iter().zip(&mut met).filter_map(|(wanted, tree)| tree.as_mut().filter(|_| *wanted)) {
                self.pairs_of(item, length, end, tree, &mut found)?;
            }
            met[item.standing.index()]
                .get_or_insert_with(|| Tree::new(self.items.len()))
                .set(item.rank, item.frame.bottom);
        }
        ControlFlow::Continue(())
    }

    /// The standings with which a frame of standing `a` can form a wanted pair, without those that no frame has.
    fn partners(&self, a: Standing, wanted: [bool; Standing::COUNT]) -> [bool; Standing::COUNT] {
        let mut partners = wanted;
        for (b, wanted) in partners.iter_mut().enumerate() {
            let needed = if b == a.index() { 2 } else { 1 };
            *wanted = *wanted && self.counts[b] >= needed && self.counts[a.index()] > 0;
        }
        partners
    }

    fn pairs_of(
        &self,
        item: &Item,
        length: f64,
        end: usize,
        tree: &mut Tree,
        found: &mut impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut from = 0;
        while from < end
            && let Some(rank) =
                tree.next(from, |bottom| exceeds(bottom, item.frame.top, length)).filter(|rank| *rank < end)
        {
            let other = &self.items[self.by_rank[rank]];
            if exceeds(other.frame.right, item.frame.left, length) {
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

    const USER: Standing = Standing { is_agents: false, is_placed: false, is_border: false };
    const AGENT: Standing = Standing { is_agents: true, ..USER };

    fn all(field: &Field, wanted: impl Fn(Standing, Standing) -> bool) -> Vec<(usize, usize)> {
        within(field, OVERLAP, wanted)
    }

    fn within(field: &Field, length: f64, wanted: impl Fn(Standing, Standing) -> bool) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        let _ = field.pairs(length, wanted, |a, b| {
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
            OVERLAP,
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
        let one = (frame(0.0, 0.0, 10.0, 10.0), USER);
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
            let other = (frame(x, y, 10.0, 10.0), USER);
            assert_eq!(all(&field(&[one, other]), |_, _| true).len(), expected, "{x} {y}");
        }
        let thin = (frame(2.0, 2.0, 1.0, 5.0), USER);
        assert!(all(&field(&[one, thin]), |_, _| true).is_empty(), "one unit wide shares no more than one");
    }

    #[test]
    fn crowds_cost_no_step_of_n_squared() {
        let started = std::time::Instant::now();
        let in_one_place: Vec<_> = (0..20_000).map(|_| (frame(0.0, 0.0, 320.0, 320.0), AGENT)).collect();
        assert_eq!(first(&field(&in_one_place), 201), 201);
        let mut under_one: Vec<_> = (0..20_000).map(|at| (frame(5.0 * f64::from(at), 0.0, 3.0, 3.0), AGENT)).collect();
        under_one.push((frame(0.0, 0.0, 100_000.0, 100_000.0), AGENT));
        assert_eq!(first(&field(&under_one), 201), 201);
        // Long frames above each other over the same interval: none overlap.
        let shelves: Vec<_> = (0..20_000).map(|at| (frame(0.0, 3.0 * f64::from(at), 1e5, 3.5), AGENT)).collect();
        assert_eq!(first(&field(&shelves), 201), 0);
        // Many overlaps that are not wanted, and none that are.
        let mut crowd: Vec<_> = (0..10_000).map(|_| (frame(0.0, 0.0, 1e5, 10.0), USER)).collect();
        crowd.extend((0..10_000).map(|at| (frame(9.0 * f64::from(at), 9.5, 8.0, 5.0), AGENT)));
        assert!(all(&field(&crowd), |a, _| a == AGENT).is_empty());
        // Two orders of magnitude above the time of an unoptimized build; a quadratic step would take far longer.
        assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
    }

    fn standing() -> impl Strategy<Value = Standing> {
        prop::sample::select(Standing::all().to_vec())
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_comparing_each_with_each_finds(
            frames in prop::collection::vec(
                (0..40u8, 0..40u8, 1..20u8, 1..20u8, any::<bool>(), standing()), 0..60),
            wanted in prop::collection::vec(any::<bool>(), Standing::COUNT * Standing::COUNT),
            length in prop::sample::select(&[OVERLAP, 0.0, -5.0][..]),
        ) {
            let frames: Vec<(Frame, Standing)> = frames
                .into_iter()
                .map(|(x, y, width, height, half, standing)| {
                    let shift = if half { 0.5 } else { 0.0 };
                    (frame(f64::from(x) + shift, y.into(), width.into(), f64::from(height) + shift), standing)
                })
                .collect();
            let asked = |a: Standing, b: Standing| wanted[Standing::COUNT * a.index() + b.index()];
            let mut expected = Vec::new();
            for (a, (one, of_a)) in frames.iter().enumerate() {
                for (b, (other, of_b)) in frames.iter().enumerate().skip(a + 1) {
                    let are_wide = !is_thin(*one) && !is_thin(*other);
                    if are_wide && share(*one, *other, length) && (asked(*of_a, *of_b) || asked(*of_b, *of_a)) {
                        expected.push((a, b));
                    }
                }
            }
            prop_assert_eq!(within(&field(&frames), length, asked), expected);
        }
    }
}
