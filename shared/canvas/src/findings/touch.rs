//! Frames that are too near to each other (`docs/reference/findings.md#frames_touch`).
//!
//! **Mechanism.** Pairs of nodes and pairs of Sections are found by the sweep that finds overlaps. A node that is near to a
//! Section from outside, or crosses an edge of it, meets the border of [`DISTANCE`] units around the Section; these borders are
//! swept together with the nodes. The Section of a member is known.
//!
//! **Cost.** A search ends when the list is full, or when it has met [`Touches::SPARE_PER_NODE`] pairs for each node that are no
//! finding: overlaps, which are listed before, and frames in a row or a column. Only thousands of very small frames are that many.

use std::cell::{Cell, OnceCell};
use std::ops::ControlFlow;

use domain::graph::Node;
use domain::review::{Finding, FindingCode};

use super::sweep::{self, Field, Standing};
use super::{Draft, Found, Level, ROUNDING, ownership, standing, standing_severity, touch_level};
use crate::apply::Touched;
use crate::geometry::head;
use crate::graph::Graph;
use crate::placement::Frame;
use crate::svg::title_strip;

/// Least distance of two frames, in canvas units.
pub(crate) const DISTANCE: f64 = 16.0;
/// By how much the frames of a row or a column may differ, in canvas units.
const ALIGNED: f64 = 1.0;
/// Parts of the border of a Section.
const PARTS: usize = 4;

/// The search for nodes and Sections that touch.
pub(super) struct Touches<'a> {
    graph: &'a Graph,
    touched: &'a Touched,
    fields: &'a [Field; 2],
    /// The frames of all nodes, and the borders of all Sections.
    borders: OnceCell<Field>,
    /// Pairs that may still be met without a finding.
    spare: Cell<usize>,
}

impl<'a> Touches<'a> {
    const SPARE_PER_NODE: usize = 16;
    const SPARE_MIN: usize = 4096;

    pub(super) fn new(graph: &'a Graph, touched: &'a Touched, fields: &'a [Field; 2]) -> Self {
        let spare = Cell::new(Self::SPARE_PER_NODE * graph.node_count() + Self::SPARE_MIN);
        Self { graph, touched, fields, borders: OnceCell::new(), spare }
    }

    /// Lists the findings of a level, those among nodes first.
    pub(super) fn search(&self, level: Level, found: &mut Found) -> ControlFlow<()> {
        let is_of_level = |a, b| touch_level(a, b) == level;
        for field in self.fields {
            self.visit(field, -DISTANCE, is_of_level, found, |a, b| {
                let (a, b) = (self.graph.nodes.get(a)?, self.graph.nodes.get(b)?);
                pair_touches(a, b).then_some((a, b))
            })?;
        }
        let [_, sections] = self.fields;
        if sections.len() == 0 {
            return ControlFlow::Continue(());
        }
        let of_section = |a: Standing, b: Standing| a.is_border != b.is_border && is_of_level(a, b);
        let borders = self.borders.get_or_init(|| self.borders());
        self.visit(borders, 0.0, of_section, found, |node, part| {
            let (section, part) = self.section_of(part);
            let (node, section) = (self.graph.nodes.get(node)?, self.graph.nodes.get(section)?);
            meets_border(node, section, part).then_some((node, section))
        })
    }

    /// Lists the pairs of a field that `touching` confirms.
    fn visit(
        &self,
        field: &Field,
        length: f64,
        wanted: impl Fn(Standing, Standing) -> bool,
        found: &mut Found,
        touching: impl Fn(usize, usize) -> Option<(&'a Node, &'a Node)>,
    ) -> ControlFlow<()> {
        if self.spare.get() == 0 {
            return ControlFlow::Continue(());
        }
        let end = field.pairs(length, wanted, |a, b| match touching(a, b) {
            Some((a, b)) => found.push(|| finding(a, b, self.touched)),
            None => {
                self.spare.set(self.spare.get() - 1);
                if self.spare.get() == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }
        });
        if end.is_break() && self.spare.get() == 0 {
            found.truncated = true;
            return ControlFlow::Continue(());
        }
        end
    }

    /// A part of a border has a slot after those of all nodes.
    fn borders(&self) -> Field {
        let entries = || self.graph.nodes.entries();
        let nodes = entries().filter(|(_, node)| !node.is_section());
        let nodes = nodes.map(|(slot, node)| (slot, Frame::from_node(node), standing(node, self.touched)));
        let sections = entries().filter(|(_, node)| node.is_section() && !sweep::is_thin(Frame::from_node(node)));
        let parts = sections.flat_map(|(slot, node)| {
            let standing = Standing { is_border: true, ..standing(node, self.touched) };
            let first = self.graph.nodes.end() + PARTS * slot;
            border(Frame::from_node(node)).into_iter().zip(first..).map(move |(part, slot)| (slot, part, standing))
        });
        Field::new(nodes.chain(parts))
    }

    /// The slot of the Section and the number of the part that is in a slot of [`Self::borders`].
    fn section_of(&self, slot: usize) -> (usize, usize) {
        let at = slot - self.graph.nodes.end();
        (at / PARTS, at % PARTS)
    }
}

/// Members that are too near to an edge of their Section, or over its title. One that lies partly outside is another finding.
pub(super) fn members<'a>(graph: &'a Graph, touched: &'a Touched) -> impl Iterator<Item = Draft> + 'a {
    graph.nodes().filter_map(|node| {
        let section = graph.section_of(node)?;
        crowds_section(node, section).then(|| draft(node, section, touched))
    })
}

fn crowds_section(member: &Node, section: &Node) -> bool {
    let [inner, outer] = [member, section].map(Frame::from_node);
    if sweep::is_thin(inner) || !outer.widened(ROUNDING).contains(inner) {
        return false;
    }
    // Above an edge that a Section was given by its members there may be a rounding error less.
    let least = DISTANCE - ROUNDING;
    let is_near =
        inner.left - outer.left < least || outer.right - inner.right < least || outer.bottom - inner.bottom < least;
    let is_high = || inner.top - outer.top < head(section);
    is_near || is_high() && title_strip(section).is_some_and(|title| sweep::overlap(title, inner))
}

/// Returns `true` if two nodes, or two Sections, touch.
fn pair_touches(a: &Node, b: &Node) -> bool {
    let is_section = a.is_section();
    let [a, b] = [a, b].map(Frame::from_node);
    !sweep::overlap(a, b) && (is_section || !is_row(a, b))
}

/// Returns `true` if the frames are of equal top and height, or of equal left and width.
fn is_row(a: Frame, b: Frame) -> bool {
    let alike = |one: (f64, f64), other: (f64, f64)| {
        (one.0 - other.0).abs() <= ALIGNED && ((one.1 - one.0) - (other.1 - other.0)).abs() <= ALIGNED
    };
    alike((a.top, a.bottom), (b.top, b.bottom)) || alike((a.left, a.right), (b.left, b.right))
}

/// Returns `true` if a node that meets this part of a Section's border, and none before it, is near to the Section from outside or
/// crosses an edge of it, and is no member.
fn meets_border(node: &Node, section: &Node, part: usize) -> bool {
    let [inner, outer] = [node, section].map(Frame::from_node);
    let is_first = border(outer)[..part].iter().all(|part| !sweep::share(*part, inner, 0.0));
    let is_within = sweep::overlap(inner, outer) && outer.widened(sweep::OVERLAP).contains(inner);
    is_first && !is_within && node.section_id() != Some(section.id.as_str())
}

/// The border around a Section.
fn border(Frame { left, top, right, bottom }: Frame) -> [Frame; PARTS] {
    let outer = Frame { left, top, right, bottom }.widened(DISTANCE);
    [
        Frame { right: left, ..outer },
        Frame { left: right, ..outer },
        Frame { left, right, top: outer.top, bottom: top },
        Frame { left, right, top: bottom, bottom: outer.bottom },
    ]
}

fn finding(a: &Node, b: &Node, touched: &Touched) -> Finding {
    draft(a, b, touched).finding()
}

/// The Section is the last one.
fn draft(a: &Node, b: &Node, touched: &Touched) -> Draft {
    let is_agent_owned = a.agent_owned || b.agent_owned;
    let message = match (a.is_section(), b.is_section()) {
        (false, false) => "two nodes touch or nearly do",
        (true, true) => "two Sections touch or nearly do",
        _ if a.section_id() == Some(b.id.as_str()) => "the node touches an edge of its Section, or lies over its title",
        _ => "the node touches or crosses an edge of a Section that it is no member of",
    };
    Draft {
        code: FindingCode::FramesTouch,
        severity: standing_severity(is_agent_owned),
        ownership: ownership(is_agent_owned),
        touched: [a, b].iter().any(|node| touched.placed.contains(&node.id)),
        message: message.to_owned(),
        nodes: [a, b].map(|node| node.id.handle()).into(),
        connections: Vec::new(),
    }
}
