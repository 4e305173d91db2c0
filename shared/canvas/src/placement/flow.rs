//! Layers along connections, for what is connected.
//!
//! **Mechanism.** Connections that close a cycle in a walk through the list are left out. A node's layer is the longest way to it. In
//! four sweeps the nodes of each layer are ordered by the mean place of their neighbors; the order with the fewest crossings is
//! kept. Then each node is pulled to the median of its neighbors, once from each side, as near as the order allows. Ties are decided by
//! the list. What is connected is one part; parts are placed one after the other, and what has no connection is a grid below.
//! O((n + m) log n) for n nodes and m connections.

use std::collections::BTreeMap;

use domain::operation::{Arrangement, Direction};

use super::cells::{Cells, Style, cells, down, split, up};

/// Distance between layers: room for the curves of connections and their arrowheads.
pub(crate) const LAYER_GAP: f64 = 120.0;
/// Distance between parts that are not connected.
const PART_GAP: f64 = 80.0;
/// Most nodes in a column; a layer with more has several.
const ROWS_MAX: usize = 12;
const SWEEPS: usize = 4;

/// Arranges areas of these sizes along edges between their indexes. Without edges it is a grid.
pub(crate) fn flow(style: Style, sizes: &[(f64, f64)], edges: &[(usize, usize)]) -> Cells {
    // Everything is laid out from left to right.
    let turn = |(x, y): (f64, f64)| if style.direction == Direction::Down { (y, x) } else { (x, y) };
    let turned: Vec<(f64, f64)> = sizes.iter().copied().map(turn).collect();
    let links = Links::new(sizes.len(), edges);
    let mut corners = vec![(0.0, 0.0); sizes.len()];
    let mut size = (0.0_f64, 0.0_f64);
    let part_gap = style.gap.max(PART_GAP);
    for part in links.parts() {
        let top = if size.1 > 0.0 { up(size.1 + part_gap) } else { 0.0 };
        let placed = Part::new(&links, &part, &turned).place(style.gap);
        for (index, (x, y)) in placed.corners {
            corners[index] = (x, top + y);
        }
        size = (size.0.max(placed.size.0), top + placed.size.1);
    }
    for corner in &mut corners {
        *corner = turn(*corner);
    }
    size = turn(size);
    let bare: Vec<usize> = (0..sizes.len()).filter(|index| links.is_bare(*index)).collect();
    if !bare.is_empty() {
        let top = if size.1 > 0.0 { up(size.1 + part_gap) } else { 0.0 };
        let bare_sizes: Vec<(f64, f64)> = bare.iter().map(|index| sizes[*index]).collect();
        let grid = cells(Style::new(Arrangement::Grid, style.gap), &bare_sizes);
        for (index, (x, y)) in bare.into_iter().zip(grid.corners) {
            corners[index] = (x, top + y);
        }
        size = (size.0.max(grid.size.0), top + grid.size.1);
    }
    Cells { corners, size }
}

/// Edges without those that close a cycle, and the layers along them.
struct Links {
    /// The neighbors of each node, in the order of the list: all, those before it, those after it.
    all: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
    layers: Vec<usize>,
}

impl Links {
    fn new(count: usize, edges: &[(usize, usize)]) -> Self {
        let mut edges: Vec<(usize, usize)> = edges.iter().copied().filter(|(from, to)| from != to).collect();
        edges.sort_unstable();
        edges.dedup();
        let (mut all, mut out) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for (from, to) in edges {
            out[from].push(to);
            all[from].push(to);
            all[to].push(from);
        }
        // A walk in depth: an edge to a node that the walk is still in closes a cycle.
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done,
        }
        let mut states = vec![State::New; count];
        let mut finished = Vec::with_capacity(count);
        let (mut before, mut after) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for start in 0..count {
            if states[start] != State::New {
                continue;
            }
            states[start] = State::Open;
            let mut walk = vec![(start, 0)];
            while let Some((node, next)) = walk.last_mut() {
                let Some(to) = out[*node].get(*next).copied() else {
                    states[*node] = State::Done;
                    finished.push(*node);
                    walk.pop();
                    continue;
                };
                *next += 1;
                let node = *node;
                if states[to] == State::Open {
                    continue;
                }
                after[node].push(to);
                before[to].push(node);
                if states[to] == State::New {
                    states[to] = State::Open;
                    walk.push((to, 0));
                }
            }
        }
        let mut layers = vec![0; count];
        for node in finished.into_iter().rev() {
            for to in &after[node] {
                layers[*to] = layers[*to].max(layers[node] + 1);
            }
        }
        before.iter_mut().for_each(|neighbors| neighbors.sort_unstable());
        Self { all, before, after, layers }
    }

    fn is_bare(&self, node: usize) -> bool {
        self.all[node].is_empty()
    }

    /// The nodes of each part that is connected, in the order of the list.
    fn parts(&self) -> Vec<Vec<usize>> {
        let mut known = vec![false; self.all.len()];
        let mut parts = Vec::new();
        for start in 0..self.all.len() {
            if known[start] || self.is_bare(start) {
                continue;
            }
            known[start] = true;
            let mut part = vec![start];
            let mut next = 0;
            while let Some(node) = part.get(next).copied() {
                next += 1;
                for other in &self.all[node] {
                    if !std::mem::replace(&mut known[*other], true) {
                        part.push(*other);
                    }
                }
            }
            part.sort_unstable();
            parts.push(part);
        }
        parts
    }
}

/// The nodes of a part in layers.
struct Part<'a> {
    links: &'a Links,
    sizes: &'a [(f64, f64)],
    layers: Vec<Vec<usize>>,
    /// The place of each node in its layer.
    places: BTreeMap<usize, usize>,
}

/// Where the nodes of a part lie.
struct Placed {
    corners: Vec<(usize, (f64, f64))>,
    size: (f64, f64),
}

impl<'a> Part<'a> {
    fn new(links: &'a Links, nodes: &[usize], sizes: &'a [(f64, f64)]) -> Self {
        let count = nodes.iter().map(|node| links.layers[*node] + 1).max().unwrap_or_default();
        let mut layers = vec![Vec::new(); count];
        for node in nodes {
            layers[links.layers[*node]].push(*node);
        }
        let mut part = Self { links, sizes, layers, places: BTreeMap::new() };
        for layer in 0..count {
            part.number(layer);
        }
        part.uncross();
        part
    }

    fn number(&mut self, layer: usize) {
        self.places.extend(self.layers[layer].iter().enumerate().map(|(place, node)| (*node, place)));
    }

    /// Orders the layers so that few edges cross.
    fn uncross(&mut self) {
        let links = self.links;
        let (mut best, mut least) = (self.layers.clone(), self.crossings());
        for sweep in 0..SWEEPS {
            if least == 0 {
                break;
            }
            let count = self.layers.len();
            for step in 1..count {
                match sweep % 2 {
                    0 => self.sort(step, &links.before),
                    _ => self.sort(count - 1 - step, &links.after),
                }
            }
            let crossings = self.crossings();
            if crossings < least {
                (best, least) = (self.layers.clone(), crossings);
            }
        }
        self.layers = best;
    }

    /// Sorts a layer by the mean place of the neighbors of each node.
    fn sort(&mut self, layer: usize, neighbors: &[Vec<usize>]) {
        let place = |node: usize| {
            let count = self.layers[self.links.layers[node]].len();
            (self.places[&node] as f64 + 0.5) / count as f64
        };
        let mut keyed: Vec<(f64, usize)> = self.layers[layer]
            .iter()
            .map(|node| match neighbors[*node].as_slice() {
                [] => (place(*node), *node),
                others => (others.iter().map(|other| place(*other)).sum::<f64>() / others.len() as f64, *node),
            })
            .collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        self.layers[layer] = keyed.into_iter().map(|(_, node)| node).collect();
        self.number(layer);
    }

    /// How many pairs of edges between the same two layers cross.
    fn crossings(&self) -> u64 {
        let mut edges: BTreeMap<(usize, usize), Vec<(usize, usize)>> = BTreeMap::new();
        for node in self.layers.iter().flatten() {
            for to in &self.links.after[*node] {
                let layers = (self.links.layers[*node], self.links.layers[*to]);
                edges.entry(layers).or_default().push((self.places[node], self.places[to]));
            }
        }
        let cross = |mut edges: Vec<(usize, usize)>| {
            edges.sort_unstable();
            let most = edges.iter().map(|(_, to)| *to).max().unwrap_or_default();
            // A Fenwick tree of the ends so far.
            let mut tree = vec![0_u64; most + 2];
            let mut crossings = 0;
            for (seen, (_, to)) in edges.into_iter().enumerate() {
                let (mut at, mut no_further) = (to + 1, 0);
                while at > 0 {
                    no_further += tree[at];
                    at &= at - 1;
                }
                crossings += seen as u64 - no_further;
                let mut at = to + 1;
                while at < tree.len() {
                    tree[at] += 1;
                    at += at & at.wrapping_neg();
                }
            }
            crossings
        };
        edges.into_values().map(cross).sum()
    }

    /// The places of the nodes in columns.
    fn place(self, gap: f64) -> Placed {
        let columns: Vec<Vec<usize>> = self.layers.iter().flat_map(|layer| split(layer, ROWS_MAX)).collect();
        let mut middles: BTreeMap<usize, f64> = BTreeMap::new();
        for column in &columns {
            let height = column.iter().map(|node| self.sizes[*node].1 + gap).sum::<f64>() - gap;
            let mut top = -height / 2.0;
            for node in column {
                middles.insert(*node, top + self.sizes[*node].1 / 2.0);
                top += self.sizes[*node].1 + gap;
            }
        }
        for column in &columns {
            self.pull(column, &self.links.before, &mut middles, gap);
        }
        for column in columns.iter().rev() {
            self.pull(column, &self.links.after, &mut middles, gap);
        }
        let top = |node: &usize| middles[node] - self.sizes[*node].1 / 2.0;
        let highest = columns.iter().filter_map(|column| column.first()).map(top).fold(f64::INFINITY, f64::min);
        let (mut corners, mut left, mut bottom) = (Vec::with_capacity(middles.len()), 0.0, 0.0_f64);
        let mut right = 0.0;
        for column in &columns {
            let mut free = 0.0;
            for node in column {
                let (width, height) = self.sizes[*node];
                let y = down(top(node) - highest).max(free);
                corners.push((*node, (left, y)));
                free = up(y + height + gap);
                bottom = bottom.max(y + height);
                right = f64::max(right, left + width);
            }
            left = up(right + LAYER_GAP);
        }
        Placed { corners, size: (right, bottom) }
    }

    /// Moves the nodes of a column as near to the medians of their neighbors as their order and distances allow.
    fn pull(&self, column: &[usize], neighbors: &[Vec<usize>], middles: &mut BTreeMap<usize, f64>, gap: f64) {
        // Places without what is above in the column: nodes whose wishes are out of order share the mean of them.
        let mut blocks: Vec<(f64, usize)> = Vec::new();
        let mut above = 0.0;
        let mut offsets = Vec::with_capacity(column.len());
        for node in column {
            let half = self.sizes[*node].1 / 2.0;
            offsets.push(above + half);
            above += self.sizes[*node].1 + gap;
            let wish = median(neighbors[*node].iter().map(|other| middles[other])).unwrap_or(middles[node]);
            let mut block = (wish - offsets[offsets.len() - 1], 1);
            while let Some((sum, count)) = blocks.last().copied()
                && sum / count as f64 > block.0 / block.1 as f64
            {
                block = (block.0 + sum, block.1 + count);
                blocks.pop();
            }
            blocks.push(block);
        }
        let places = blocks.into_iter().flat_map(|(sum, count)| std::iter::repeat_n(sum / count as f64, count));
        for ((node, offset), place) in column.iter().zip(offsets).zip(places) {
            middles.insert(*node, place + offset);
        }
    }
}

/// The middle value, or the mean of the two in the middle.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::placement::Frame;
    use domain::graph::Position;

    const SQUARE: (f64, f64) = (100.0, 100.0);

    fn style(direction: Direction) -> Style {
        Style { direction, ..Style::new(Arrangement::Flow, 40.0) }
    }

    fn arranged(count: usize, edges: &[(usize, usize)]) -> Vec<(f64, f64)> {
        flow(style(Direction::Right), &vec![SQUARE; count], edges).corners
    }

    #[test]
    fn a_chain_is_a_row_or_a_column() {
        assert_eq!(arranged(3, &[(0, 1), (1, 2)]), [(0.0, 0.0), (220.0, 0.0), (440.0, 0.0)]);
        let down = flow(style(Direction::Down), &[SQUARE; 2], &[(1, 0)]);
        assert_eq!((down.corners, down.size), (vec![(0.0, 220.0), (0.0, 0.0)], (100.0, 320.0)));
    }

    #[test]
    fn a_node_is_in_the_middle_of_its_neighbors() {
        assert_eq!(
            arranged(4, &[(0, 1), (0, 2), (0, 3)]),
            [(0.0, 140.0), (220.0, 0.0), (220.0, 140.0), (220.0, 280.0)]
        );
        assert_eq!(arranged(3, &[(0, 2), (1, 2)]), [(0.0, 0.0), (0.0, 140.0), (220.0, 70.0)]);
    }

    #[test]
    fn edges_that_cross_are_ordered() {
        let corners = arranged(4, &[(0, 3), (1, 2)]);
        assert_eq!(corners, [(0.0, 0.0), (0.0, 180.0), (220.0, 180.0), (220.0, 0.0)], "two parts");
        let corners = arranged(5, &[(0, 3), (1, 2), (4, 0), (4, 1)]);
        assert_eq!(corners[0].1.total_cmp(&corners[1].1), corners[3].1.total_cmp(&corners[2].1), "{corners:?}");
    }

    #[test]
    fn a_layer_of_more_than_twelve_has_several_columns() {
        let fan = |count: usize| {
            let edges: Vec<(usize, usize)> = (1..=count).map(|to| (0, to)).collect();
            let mut lefts: Vec<f64> = arranged(count + 1, &edges)[1..].iter().map(|corner| corner.0).collect();
            lefts.dedup();
            lefts
        };
        assert_eq!(fan(12), [220.0]);
        assert_eq!(fan(13), [220.0, 440.0]);
    }

    #[test]
    fn a_cycle_is_cut_and_what_has_no_connection_is_a_grid_below() {
        assert_eq!(arranged(3, &[(0, 1), (1, 2), (2, 0), (1, 1), (0, 1)]), arranged(3, &[(0, 1), (1, 2)]));
        assert_eq!(arranged(4, &[(2, 3)]), [(0.0, 180.0), (140.0, 180.0), (0.0, 0.0), (220.0, 0.0)]);
        assert_eq!(arranged(2, &[]), [(0.0, 0.0), (140.0, 0.0)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn no_two_overlap_and_no_edge_of_an_acyclic_graph_leads_back(
            sizes in prop::collection::vec((1..600_u32, 1..600_u32), 1..60),
            edges in prop::collection::vec((0..60_usize, 0..60_usize), 0..90),
            shuffle in any::<u64>(),
            is_down in any::<bool>(),
            gap in 0..100_u32,
        ) {
            let sizes: Vec<(f64, f64)> = sizes.into_iter().map(|(width, height)| (f64::from(width), f64::from(height) + 0.5)).collect();
            // Acyclic: from a lower rank to a higher one, where the ranks are not the order of the list.
            let rank = |node: usize| (node as u64).wrapping_mul(shuffle | 1).wrapping_add(shuffle >> 7);
            let edges: Vec<(usize, usize)> = edges
                .into_iter()
                .map(|(a, b)| (a % sizes.len(), b % sizes.len()))
                .map(|(a, b)| if rank(a) < rank(b) { (a, b) } else { (b, a) })
                .collect();
            let direction = if is_down { Direction::Down } else { Direction::Right };
            let style = Style { direction, ..Style::new(Arrangement::Flow, f64::from(gap)) };
            let Cells { corners, size } = flow(style, &sizes, &edges);
            let frames: Vec<Frame> = corners
                .iter()
                .zip(&sizes)
                .map(|((x, y), (width, height))| Frame::new(Position { x: *x, y: *y }, *width, *height))
                .collect();
            for (at, frame) in frames.iter().enumerate() {
                prop_assert!(frame.left >= 0.0 && frame.top >= 0.0 && frame.right <= size.0 && frame.bottom <= size.1);
                prop_assert!(frames[..at].iter().all(|other| !frame.widened(f64::from(gap) - 1e-6).overlaps(*other)));
            }
            for (from, to) in edges.iter().filter(|(from, to)| from != to) {
                let distance = match direction {
                    Direction::Right => frames[*to].left - frames[*from].right,
                    Direction::Down => frames[*to].top - frames[*from].bottom,
                };
                prop_assert!(distance >= LAYER_GAP, "{from} {to}: {distance}");
            }
        }
    }
}
