//! The targets of work: image and video nodes that a start adds to the canvas, and connections from what the work reads into them.
//! Rules: `docs/reference/jobs.md#new-targets`.
//!
//! Both are ordinary batches. A start has no `force`, so what findings of severity error would block is refused.

use std::collections::HashSet;

use domain::Violation;
use domain::graph::{NodeType, Position, Purpose, Role};
use domain::id::NodeId;
use domain::known::Name;
use domain::review::{FindingCode, Severity, StoredAssets};

use crate::apply::{Applied, Options, Refused, apply};
use crate::batch::{Batch, Draft, Given, Step};
use crate::graph::{Ends, Graph};
use crate::metadata::{Home, MetadataPatch};
use crate::placement::Location;
use crate::reference::Ref;
use crate::review::{is_blocked, validate};

/// Targets to add.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Type of each: `image` or `video`.
    pub kind: NodeType,
    /// Where the request wants them.
    pub location: Location,
    /// The position that it wants for the first one.
    pub at: Option<Position>,
    /// Title of each; defaults to the name of the type.
    pub title: Option<String>,
    /// How many to add.
    pub count: usize,
}

impl Default for Place {
    fn default() -> Self {
        Self { kind: NodeType::Image, location: Location::default(), at: None, title: None, count: 0 }
    }
}

impl Place {
    /// The title of each target.
    pub fn title(&self) -> String {
        self.title.clone().unwrap_or_else(|| self.kind.to_string())
    }
}

/// A connection from a node that work reads into its targets.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The node.
    pub from: NodeId,
    /// How the work uses it.
    pub purpose: Purpose,
    /// Role of a reference.
    pub role: Option<Role>,
}

/// Adds empty nodes of this size, each after the first next to the one before, and links into them. Returns their
/// ids. The graph of a refused addition is of no use.
pub fn add(
    graph: &mut Graph,
    place: &Place,
    size: (f64, f64),
    links: &[Link],
    options: Options,
) -> Result<(Vec<NodeId>, Applied), Refused> {
    let ids: Vec<NodeId> = (0..place.count).map(|_| NodeId::generate()).collect();
    let mut steps = Vec::new();
    for (index, id) in ids.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| &ids[before]);
        steps.push(Step::CreateNode { client_id: None, draft: Box::new(draft(place, size, id, before)) });
    }
    steps.extend(connections(graph, &ids, links));
    let applied = apply(graph, &Batch { steps }, options).map_err(causes)?;
    Ok((ids, allowed(graph, applied)?))
}

/// Leaves out what only follows from a target that was refused.
fn causes(refused: Refused) -> Refused {
    match refused {
        Refused::Unprocessable(mut violations) => {
            violations.retain(|violation| !["near", "toNodeId"].iter().any(|end| violation.field.ends_with(end)));
            Refused::Unprocessable(violations)
        }
        other => other,
    }
}

/// Links into targets that exist. The graph of refused links is of no use.
pub fn connect(graph: &mut Graph, targets: &[NodeId], links: &[Link], options: Options) -> Result<Applied, Refused> {
    let steps = connections(graph, targets, links);
    let applied = apply(graph, &Batch { steps }, options)?;
    allowed(graph, applied)
}

fn draft(place: &Place, (width, height): (f64, f64), id: &NodeId, before: Option<&NodeId>) -> Draft {
    let Location { near, section } = &place.location;
    let home = section.as_ref().map_or(Home::Keep, |section| Home::Join(Ref::to(section)));
    let at = place.at.filter(|_| before.is_none());
    Draft {
        kind: place.kind,
        title: place.title(),
        position: None,
        near: before.or(near.as_ref()).map(Ref::to),
        width: Some(width),
        height: Some(height),
        metadata: MetadataPatch::of_home(home),
        section_field: "sectionId",
        asset: None,
        given: Given { id: Some(id.clone()), at, contained: true, ..Given::default() },
    }
}

/// The connections that are not there yet. A target that the work reads itself is not connected to itself.
fn connections(graph: &Graph, targets: &[NodeId], links: &[Link]) -> Vec<Step> {
    let is_there = |from: &NodeId, to: &NodeId, purpose| {
        let ends = graph.nodes.find(from).zip(graph.nodes.find(to)).map(|(from, to)| Ends { from, to, purpose });
        ends.is_some_and(|ends| graph.is_connected(ends))
    };
    let mut steps = Vec::new();
    for to in targets {
        let mut known = HashSet::new();
        for Link { from, purpose, role } in links {
            if from != to && known.insert((from, purpose)) && !is_there(from, to, *purpose) {
                let (from, to) = (Ref::to(from), Ref::to(to));
                steps.push(Step::CreateConnection { client_id: None, from, to, purpose: *purpose, role: *role });
            }
        }
    }
    steps
}

/// Refuses what findings of severity error would block.
fn allowed(graph: &mut Graph, applied: Applied) -> Result<Applied, Refused> {
    if !is_blocked(graph, &applied.touched) {
        return Ok(applied);
    }
    // Errors depend on no assets.
    let findings = validate(graph, &applied.touched, &StoredAssets::default(), &[]).findings;
    let errors = findings.into_iter().filter(|finding| finding.severity == Severity::Error).map(|finding| {
        let field = match finding.code {
            Name::Known(FindingCode::ReferenceCycle) => "connect",
            Name::Known(FindingCode::SectionOverflow) => "sectionId",
            _ => "place",
        };
        Violation::new(field, format!("{}: {}", finding.message, finding.node_handles.join(", ")))
    });
    Err(Refused::Unprocessable(errors.collect()))
}

#[cfg(test)]
mod tests {
    use domain::graph::Node;
    use domain::limits::CANVAS_NODES_MAX;

    use super::*;
    use crate::fixture::{AGENT, agents, at, connection, fields, graph, id, image, section, seen, text};
    use crate::placement::Frame;

    fn place(near: Option<&str>, section: Option<&str>, count: usize) -> Place {
        let location = Location { near: near.map(id), section: section.map(id) };
        Place { location, count, ..Place::default() }
    }

    fn flow(from: &str) -> Link {
        Link { from: id(from), purpose: Purpose::Flow, role: None }
    }

    fn reference(from: &str, role: Role) -> Link {
        Link { from: id(from), purpose: Purpose::Reference, role: Some(role) }
    }

    fn positions(graph: &Graph, ids: &[NodeId]) -> Vec<(f64, f64)> {
        let nodes = ids.iter().filter_map(|id| graph.node(id));
        nodes.map(|node| (node.position.x, node.position.y)).collect()
    }

    fn refused(graph: &mut Graph, place: &Place, links: &[Link]) -> Vec<String> {
        match add(graph, place, (320.0, 320.0), links, AGENT) {
            Err(Refused::Unprocessable(violations)) => fields(&violations).into_iter().map(str::to_owned).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn new_targets_are_a_row_of_empty_images_of_the_size_of_the_result() {
        let mut graph = graph(vec![at(image("a"), 0.0, 0.0)], Vec::new());
        let wanted = Place { title: Some("Wide".into()), ..place(Some("a"), None, 3) };
        let (ids, applied) = add(&mut graph, &wanted, (320.0, 180.0), &[], AGENT).expect("added");
        assert_eq!(positions(&graph, &ids), [(360.0, 0.0), (720.0, 0.0), (1080.0, 0.0)]);
        assert_eq!((applied.nodes_delta, &applied.changes.changed_node_ids), (3, &ids));
        let node = graph.node(&ids[2]).expect("is there");
        assert_eq!((node.kind, node.title.as_str(), node.agent_owned), (NodeType::Image, "Wide", true));
        assert_eq!((node.width, node.height, &node.asset), (320.0, 180.0, &None));
        let (ids, _) = add(&mut graph, &place(None, None, 1), (320.0, 320.0), &[], Options::default()).expect("added");
        let node = graph.node(&ids[0]).expect("is there");
        assert_eq!((node.title.as_str(), node.agent_owned), ("image", false));
        assert_eq!(positions(&graph, &ids), [(1440.0, 0.0)], "to the right of the content");
    }

    #[test]
    fn the_first_target_is_where_it_is_wanted() {
        let mut graph = graph(vec![at(image("a"), 0.0, 0.0)], Vec::new());
        let wanted = Place { at: Some(Position { x: 10.0, y: 300.0 }), ..place(None, None, 2) };
        let (ids, _) = add(&mut graph, &wanted, (320.0, 320.0), &[], AGENT).expect("added");
        assert_eq!(positions(&graph, &ids), [(10.0, 360.0), (370.0, 360.0)]);
    }

    #[test]
    fn targets_lie_in_their_section_which_grows_once() {
        let frame = Node { width: 760.0, height: 456.0, ..at(section("s"), 0.0, 0.0) };
        let mut graph = graph(vec![frame, at(image("a"), 40.0, 96.0)], Vec::new());
        let (ids, applied) = add(&mut graph, &place(None, Some("s"), 3), (320.0, 320.0), &[], AGENT).expect("added");
        assert_eq!(positions(&graph, &ids), [(400.0, 96.0), (40.0, 456.0), (400.0, 456.0)]);
        let grown = graph.node(&id("s")).map(Frame::from_node);
        assert_eq!(grown, Some(Frame { left: 0.0, top: 0.0, right: 760.0, bottom: 816.0 }));
        assert!(ids.iter().all(|target| graph.node(target).and_then(Node::section_id) == Some("s")));
        assert_eq!((applied.nodes_delta, applied.changes.changed_node_ids.len()), (3, 4));
    }

    #[test]
    fn a_section_without_room_that_cannot_grow_is_refused() {
        let frame = Node { width: 400.0, height: 456.0, ..at(section("s"), 0.0, 0.0) };
        let around = [
            at(text("below"), 0.0, 496.0),
            at(text("beside"), 440.0, 0.0),
            at(text("before"), -360.0, 0.0),
            at(text("above"), 0.0, -200.0),
        ];
        let nodes = [vec![frame, at(image("a"), 40.0, 96.0)], around.to_vec()].concat();
        let mut full = graph(nodes, Vec::new());
        let before = seen(&full);
        assert_eq!(refused(&mut full, &place(None, Some("s"), 2), &[]), ["operations[0].sectionId"]);
        assert_eq!(seen(&full), before);
    }

    #[test]
    fn what_the_work_reads_is_connected_once() {
        let nodes = || vec![at(image("a"), 0.0, 0.0), at(image("b"), 400.0, 0.0), at(image("t"), 800.0, 0.0)];
        let links = [flow("a"), flow("a"), reference("b", Role::Style)];
        let mut fresh = graph(nodes(), Vec::new());
        let (ids, applied) = add(&mut fresh, &place(None, None, 2), (320.0, 320.0), &links, AGENT).expect("added");
        assert_eq!(applied.connections_delta, 4);
        for target in &ids {
            let incoming = fresh.incoming(target).map(|link| (link.from.as_str(), link.purpose, link.role));
            let expected = [("a", Purpose::Flow, None), ("b", Purpose::Reference, Some(Role::Style))];
            assert_eq!(incoming.collect::<Vec<_>>(), expected);
        }
        let mut linked = graph(nodes(), vec![connection("c", "a", "t", Purpose::Flow)]);
        let links = [flow("a"), reference("a", Role::Fit), flow("t")];
        let applied = connect(&mut linked, &[id("t")], &links, AGENT).expect("connected");
        assert_eq!(applied.connections_delta, 1, "the reference alone");
        let again = connect(&mut linked, &[id("t")], &links, AGENT).expect("connected");
        assert_eq!(again, Applied::default());
    }

    #[test]
    fn a_cycle_is_refused() {
        let nodes = vec![agents(at(image("a"), 0.0, 0.0)), at(image("t"), 400.0, 0.0)];
        let mut graph = graph(nodes, vec![connection("c", "t", "a", Purpose::Flow)]);
        let refused = connect(&mut graph, &[id("t")], &[flow("a")], AGENT).expect_err("a cycle");
        let Refused::Unprocessable(violations) = refused else { panic!("{refused:?}") };
        assert_eq!(fields(&violations), ["connect"]);
    }

    #[test]
    fn a_canvas_holds_a_limited_number_of_nodes() {
        let nodes = (1..CANVAS_NODES_MAX).map(|n| at(image(&format!("n{n}")), n as f64 * 360.0, 0.0)).collect();
        let mut graph = graph(nodes, Vec::new());
        assert_eq!(refused(&mut graph, &place(None, None, 2), &[]), ["operations"]);
        add(&mut graph, &place(None, None, 1), (320.0, 320.0), &[], AGENT).expect("one more");
        assert_eq!(refused(&mut graph, &place(None, None, 1), &[]), ["operations"]);
    }
}
