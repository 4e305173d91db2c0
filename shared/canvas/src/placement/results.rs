//! Where the results of work go: in columns to the right of their source, or below a row of sources.

use std::collections::HashSet;

use domain::graph::{Named, Node, Position};
use domain::id::NodeId;
use domain::operation::Arrangement;

use super::cells::{Cells, Style, cells, columns_of};
use super::{Frame, GAP, LAYER_GAP, Wish};
use crate::graph::Graph;

/// Tops of nodes that differ by more are not level.
const LEVEL: f64 = 1.0;
/// Greatest distance between neighbors of a row.
const ROW_GAP_MAX: f64 = 120.0;
/// Nodes that are looked at for the row of a source.
const ROW_MAX: usize = 16;
/// Results that hang further below a row are not its own.
const HANGING_MAX: f64 = 1000.0;

impl Graph {
    /// The cells of results of these sizes, and where they are to be: where the request wants them, or else by what the work reads.
    /// `None` if neither says anything. `section` is the one that they are to lie in.
    pub(crate) fn results(
        &mut self,
        at: Option<Position>,
        sources: &[usize],
        sizes: &[(f64, f64)],
        section: Option<usize>,
    ) -> Option<(Cells, Option<Wish>)> {
        if let Some(at) = at {
            return Some((in_columns(sizes), Some(Wish::At(at, GAP))));
        }
        let whole = section.and_then(|section| self.nodes.get(section)).map(Frame::from_node);
        let is_inside = |frame: Frame| whole.is_none_or(|whole| whole.contains(frame));
        let sources: Vec<usize> = sources.iter().copied().filter(|source| is_inside(self.frame_at(*source))).collect();
        if sources.is_empty() {
            return None;
        }
        let row = self.row_of(&sources);
        // What belongs to no Section is beside that of its source.
        let outer = |slot: usize| match section {
            Some(_) => self.frame_at(slot),
            None => {
                self.home_at(slot).map_or(self.frame_at(slot), |home| self.frame_at(home).union(self.frame_at(slot)))
            }
        };
        let union = |frames: &mut dyn Iterator<Item = Frame>| frames.reduce(Frame::union).expect("there is a source");
        if row.len() > 1 {
            let inner = union(&mut row.iter().map(|slot| self.frame_at(*slot)));
            let below = union(&mut row.iter().map(|slot| outer(*slot))).bottom + GAP;
            let (cells, source) = match sources.as_slice() {
                [source] => (in_columns(sizes), self.frame_at(*source)),
                _ if let Some(cells) = self.each_below(&sources, sizes, inner.left) => (cells, inner),
                _ => (cells(Style { columns: Some(4), ..Style::new(Arrangement::Grid, GAP) }, sizes), inner),
            };
            let y = self.hanging(&row, below).unwrap_or(below);
            let at = Position { x: source.left, y };
            return Some((cells, Some(Wish::Below(at, (source.right, inner.right)))));
        }
        let inner = union(&mut sources.iter().map(|slot| self.frame_at(*slot)));
        let outer = union(&mut sources.iter().map(|slot| outer(*slot)));
        let cells = in_columns(sizes);
        let y = (f64::midpoint(inner.top, inner.bottom) - cells.size.1 / 2.0).floor();
        let wish = Wish::Beside(Position { x: outer.right + LAYER_GAP, y }, outer);
        Some((cells, Some(wish)))
    }

    /// The cells of results that are each as far right as its own source, if they have room there.
    fn each_below(&self, sources: &[usize], sizes: &[(f64, f64)], left: f64) -> Option<Cells> {
        if sources.len() != sizes.len() {
            return None;
        }
        let corners: Vec<(f64, f64)> = sources.iter().map(|source| (self.frame_at(*source).left - left, 0.0)).collect();
        let mut spans: Vec<(f64, f64)> =
            corners.iter().zip(sizes).map(|(corner, size)| (corner.0, corner.0 + size.0)).collect();
        spans.sort_by(|a, b| a.0.total_cmp(&b.0));
        let have_room = spans.windows(2).all(|pair| pair[1].0 - pair[0].1 >= GAP);
        let right = spans.last()?.1;
        let height = sizes.iter().map(|size| size.1).fold(0.0, f64::max);
        have_room.then_some(Cells { corners, size: (right, height) })
    }

    fn frame_at(&self, slot: usize) -> Frame {
        Frame::from_node(self.nodes.get(slot).expect("slots of sources are looked up in the operation that uses them"))
    }

    /// The slot of the Section that a node belongs to.
    pub(crate) fn home_at(&self, slot: usize) -> Option<usize> {
        let section = self.nodes.get(slot)?.section_id()?;
        self.nodes.find(&NodeId::from_stored(section.to_owned()))
    }

    /// The row that the sources are, or that the only one is in, from left to right; one node if there is none.
    fn row_of(&mut self, sources: &[usize]) -> Vec<usize> {
        let mut row = match sources {
            [source] => self.neighbors(*source),
            _ => sources.to_vec(),
        };
        row.sort_by(|a, b| self.frame_at(*a).left.total_cmp(&self.frame_at(*b).left));
        let frames: Vec<Frame> = row.iter().map(|slot| self.frame_at(*slot)).collect();
        let is_row = frames.windows(2).all(|pair| {
            let distance = pair[1].left - pair[0].right;
            (pair[0].top - pair[1].top).abs() <= LEVEL && (0.0..=ROW_GAP_MAX).contains(&distance)
        });
        if is_row { row } else { vec![sources[0]] }
    }

    /// A source with the nodes like it beside it, and beside these.
    fn neighbors(&mut self, source: usize) -> Vec<usize> {
        let _ = self.index();
        let Some(index) = &self.index else { return vec![source] };
        let first = self.frame_at(source);
        let (mut row, mut known) = (vec![source], HashSet::from([source]));
        let mut next = 0;
        while let Some(slot) = row.get(next).copied().filter(|_| row.len() < ROW_MAX) {
            next += 1;
            let frame = self.frame_at(slot);
            let area = Frame {
                left: frame.left - ROW_GAP_MAX - 1.0,
                right: frame.right + ROW_GAP_MAX + 1.0,
                top: first.top - 2.0 * LEVEL,
                bottom: first.top + 2.0 * LEVEL,
            };
            let mut beside: Vec<(usize, Frame)> = index.overlapping(area).collect();
            beside.sort_by(|a, b| a.1.left.total_cmp(&b.1.left).then(a.0.cmp(&b.0)));
            for (other, place) in beside {
                let distance = (place.left - frame.right).max(frame.left - place.right);
                let is_beside = (0.0..=ROW_GAP_MAX).contains(&distance) && (place.top - first.top).abs() <= LEVEL;
                if is_beside && row.len() < ROW_MAX && self.is_like(source, other) && known.insert(other) {
                    row.push(other);
                }
            }
        }
        row
    }

    /// Returns `true` if another node may be a source as this one is: it is of the same kind and home, and neither is made of the
    /// other.
    fn is_like(&self, source: usize, other: usize) -> bool {
        let (Some(one), Some(two)) = (self.nodes.get(source), self.nodes.get(other)) else { return false };
        let is_made_of = |result: &Node, of: &Node| {
            result.sources().any(|read| match read.named {
                Named::Node(id) => id == of.id,
                Named::Asset(asset) => of.asset.as_ref() == Some(&asset),
            })
        };
        let is_connected = || {
            self.outgoing_at(source).any(|link| link.to == two.id)
                || self.outgoing_at(other).any(|link| link.to == one.id)
        };
        one.kind == two.kind
            && one.is_section() == two.is_section()
            && one.asset.is_some() == two.asset.is_some()
            && one.section_id() == two.section_id()
            && !is_connected()
            && !is_made_of(one, two)
            && !is_made_of(two, one)
    }

    /// The top of the results that hang below a row already.
    fn hanging(&self, row: &[usize], below: f64) -> Option<f64> {
        let results = row.iter().flat_map(|slot| self.outgoing_at(*slot)).filter_map(|link| self.node(&link.to));
        let tops = results.map(|node| node.position.y).filter(|top| (below..=below + HANGING_MAX).contains(top));
        tops.reduce(f64::min)
    }
}

/// Columns of at most four.
fn in_columns(sizes: &[(f64, f64)]) -> Cells {
    let mut corners = vec![(0.0, 0.0); sizes.len()];
    let (mut left, mut size) = (0.0, (0.0_f64, 0.0_f64));
    for column in columns_of(0..sizes.len()) {
        let mut top = 0.0;
        for index in column {
            corners[index] = (left, top);
            size = (size.0.max(left + sizes[index].0), size.1.max(top + sizes[index].1));
            top += sizes[index].1 + GAP;
        }
        left = size.0 + LAYER_GAP;
    }
    Cells { corners, size }
}
