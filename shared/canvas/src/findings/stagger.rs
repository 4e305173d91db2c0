//! Sections that stand out of line (`docs/reference/findings.md#sections_staggered`).

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use domain::review::FindingCode;

use super::sweep::{self, Field};
use super::{Draft, ownership, standing_severity};
use crate::apply::Touched;
use crate::graph::Graph;
use crate::placement::Frame;

/// Greatest distance of neighbours, in canvas units.
const GAP_MAX: f64 = 200.0;
/// By how much lines may differ, in canvas units.
const ALIGNED: f64 = 1.0;
/// Pairs of Sections that are examined at most, beside [`PAIRS_PER_SECTION`] for each. Those of a legible canvas are far fewer.
const PAIRS_MIN: usize = 4096;
const PAIRS_PER_SECTION: usize = 16;

/// What is beside a Section.
#[derive(Default)]
struct Beside {
    is_level: bool,
    /// Distance and slot of the neighbours, the nearest first, at most two.
    nearest: Vec<(f64, usize)>,
}

/// The Sections that have neighbours and share a line with none of them. None is listed where too many are near each other.
pub(super) fn sections(graph: &Graph, field: &Field, touched: &Touched, drafts: &mut Vec<Draft>) {
    for (slot, Beside { nearest, .. }) in staggered(graph, field) {
        let Some(section) = graph.nodes.get(slot) else { continue };
        let neighbours = nearest.iter().filter_map(|(_, slot)| graph.nodes.get(*slot));
        drafts.push(Draft {
            code: FindingCode::SectionsStaggered,
            severity: standing_severity(section.agent_owned),
            ownership: ownership(section.agent_owned),
            touched: touched.placed.contains(&section.id),
            message: "the Section stands beside others and is in line with none of them".to_owned(),
            nodes: [section].into_iter().chain(neighbours).map(|node| node.id.handle()).collect(),
            connections: Vec::new(),
        });
    }
}

/// The slots of the Sections of agents that are out of line.
pub(crate) fn out_of_line(graph: &Graph) -> HashSet<usize> {
    let field = super::field(graph, &Touched::default(), true);
    let slots = staggered(graph, &field).into_iter().map(|(slot, _)| slot);
    slots.filter(|slot| graph.nodes.get(*slot).is_some_and(|section| section.agent_owned)).collect()
}

/// The slots of the Sections that are out of line, in order, and what is beside them.
fn staggered(graph: &Graph, field: &Field) -> Vec<(usize, Beside)> {
    let mut beside: BTreeMap<usize, Beside> = BTreeMap::new();
    let mut left = PAIRS_MIN + PAIRS_PER_SECTION * field.len();
    let end = field.pairs(
        -GAP_MAX - sweep::OVERLAP,
        |_, _| true,
        |a, b| {
            let Some(rest) = left.checked_sub(1) else { return ControlFlow::Break(()) };
            left = rest;
            let frames = [a, b].map(|slot| graph.nodes.get(slot).map(Frame::from_node));
            if let [Some(one), Some(other)] = frames
                && let Some(gap) = gap_between(one, other)
            {
                let is_level = shares_line(one, other);
                beside.entry(a).or_default().add(is_level, gap, b);
                beside.entry(b).or_default().add(is_level, gap, a);
            }
            ControlFlow::Continue(())
        },
    );
    if end.is_break() {
        return Vec::new();
    }
    beside.into_iter().filter(|(_, beside)| !beside.is_level).collect()
}

impl Beside {
    fn add(&mut self, is_level: bool, gap: f64, slot: usize) {
        self.is_level |= is_level;
        self.nearest.push((gap, slot));
        self.nearest.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        self.nearest.truncate(2);
    }
}

/// The distance of two neighbours: along one axis they are at most [`GAP_MAX`] apart, along the other they share at least half of
/// the shorter one. `None` if they are none.
fn gap_between(a: Frame, b: Frame) -> Option<f64> {
    if sweep::overlap(a, b) {
        return None;
    }
    let shared = |(a_start, a_end): (f64, f64), (b_start, b_end): (f64, f64)| {
        (a_end.min(b_end) - a_start.max(b_start), (a_end - a_start).min(b_end - b_start))
    };
    let (wide, narrowest) = shared((a.left, a.right), (b.left, b.right));
    let (high, lowest) = shared((a.top, a.bottom), (b.top, b.bottom));
    let is_gap = |shared: f64| (-GAP_MAX..=sweep::OVERLAP).contains(&shared);
    if is_gap(wide) && high >= lowest / 2.0 {
        Some((-wide).max(0.0))
    } else if is_gap(high) && wide >= narrowest / 2.0 {
        Some((-high).max(0.0))
    } else {
        None
    }
}

/// Returns `true` if two frames share an edge or middle line.
fn shares_line(a: Frame, b: Frame) -> bool {
    let lines = |frame: Frame| {
        let Frame { left, top, right, bottom } = frame;
        [left, (left + right) / 2.0, right, top, (top + bottom) / 2.0, bottom]
    };
    lines(a).into_iter().zip(lines(b)).any(|(a, b)| (a - b).abs() <= ALIGNED)
}
