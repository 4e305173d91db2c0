//! The targets of work: image and video nodes that a start adds to the canvas, and connections from what the work reads into them.
//! Rules: `docs/reference/jobs.md#new-targets`.
//!
//! Both are ordinary batches. A start has no `force`, so what findings of severity error would block is refused.

use std::collections::HashSet;

use domain::Violation;
use domain::alt::without_extension;
use domain::graph::{NodeType, Position, Purpose, Role};
use domain::id::{AssetHandle, NodeId};
use domain::known::Name;
use domain::limits::TITLE_MAX;
use domain::metadata::ServerMetadata;
use domain::review::{FindingCode, Severity, StoredAssets};

use crate::apply::{Applied, Options, Refused, apply};
use crate::batch::{Aim, Batch, Draft, Given, Step};
use crate::graph::{Ends, Graph};
use crate::metadata::{Home, MetadataPatch};
use crate::placement::{Hint, Location, block_cells};
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
    /// Title of each; defaults to that of their source, or the beginning of the prompt, with a number.
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
    /// The titles of the targets.
    fn titles(&self, graph: &Graph, work: &Work<'_>) -> Vec<String> {
        if let Some(title) = &self.title {
            return vec![title.clone(); self.count];
        }
        let bases: Vec<String> = (0..self.count).map(|index| self.base(graph, work, work.of(index))).collect();
        let is_base = |title: &str| bases.iter().any(|base| title.starts_with(base.as_str()));
        let mut taken: HashSet<String> =
            graph.nodes().filter(|node| is_base(&node.title)).map(|node| node.title.clone()).collect();
        let titles = bases.iter().map(|base| {
            let mut numbered = (1..).map(|number| format!("{base} {number}"));
            numbered.find(|title| taken.insert(title.clone())).unwrap_or_default()
        });
        titles.collect()
    }

    /// What a target is called after.
    fn base(&self, graph: &Graph, work: &Work<'_>, read: &[Link]) -> String {
        let source = read.first().and_then(|link| graph.node(&link.from));
        let source = source.map(|source| (without_extension(source.title.trim()).trim_end(), source.kind));
        let is_default =
            |title: &str, kind: NodeType| [kind.as_str(), UPLOAD].iter().any(|it| title.eq_ignore_ascii_case(it));
        let source = source.filter(|(title, kind)| !title.is_empty() && !is_default(title, *kind));
        let prompt = || {
            let words: Vec<&str> = work.prompt?.split_whitespace().take(PROMPT_WORDS).collect();
            Some(words.join(" ").trim_end_matches(|c: char| c.is_ascii_punctuation()).to_owned())
        };
        let base = source.map(|(title, _)| title.to_owned()).or_else(prompt).filter(|base| !base.is_empty());
        let base: String = base.unwrap_or_else(|| self.kind.to_string()).chars().take(TITLE_MAX - NUMBER_MAX).collect();
        base.trim_end().to_owned()
    }
}

/// What an upload without a name is called.
const UPLOAD: &str = "upload";
/// Words of a prompt that are the title of what is made of it.
const PROMPT_WORDS: usize = 6;
/// Room in a title for its number: more than a canvas has nodes.
const NUMBER_MAX: usize = 8;

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

/// The work that is to fill targets.
#[derive(Clone, Debug, Default)]
pub struct Work<'a> {
    /// What it reads for all targets or for each of them, as connections from there. The first one of each is its source.
    pub read: Vec<Vec<Link>>,
    /// `true` if these connections are added.
    pub connect: bool,
    pub prompt: Option<&'a str>,
}

impl Work<'_> {
    /// What it reads for a target.
    fn of(&self, index: usize) -> &[Link] {
        of_target(&self.read, index)
    }

    /// The nodes beside which the targets are placed, each once: what it reads for all, or the source of each.
    fn sources(&self) -> Vec<NodeId> {
        let first = if self.read.len() > 1 { 1 } else { usize::MAX };
        let sources = self.read.iter().flat_map(|read| read.iter().take(first)).map(|link| &link.from);
        let mut known = HashSet::new();
        sources.filter(|source| known.insert(*source)).cloned().collect()
    }
}

/// The connections of a target: those of all, or its own.
fn of_target(links: &[Vec<Link>], index: usize) -> &[Link] {
    if links.len() == 1 { &links[0] } else { links.get(index).map_or(&[], Vec::as_slice) }
}

/// Adds empty nodes for work, each of its own size or all of one, and the connections into them if they are wanted. Returns their ids.
/// The graph of a refused addition is of no use.
pub fn add(
    graph: &mut Graph,
    place: &Place,
    sizes: &[(f64, f64)],
    work: Work<'_>,
    options: Options,
) -> Result<(Vec<NodeId>, Applied), Refused> {
    let ids: Vec<NodeId> = (0..place.count).map(|_| NodeId::generate()).collect();
    let titles = place.titles(graph, &work);
    let targets = ids.iter().zip(titles).zip(sizes.iter().cycle());
    let mut steps: Vec<Step> = targets
        .map(|((id, title), size)| Step::CreateNode {
            client_id: None,
            draft: Box::new(draft(place, title, *size, id)),
        })
        .collect();
    steps.extend(connections(graph, &ids, if work.connect { &work.read } else { &[] }));
    let sources = place.location.near.clone().map_or_else(|| work.sources(), |near| vec![near]);
    let batch = Batch { steps, aim: Some(Aim { at: place.at, sources }) };
    let applied = apply(graph, &batch, options).map_err(causes)?;
    Ok((ids, allowed(graph, applied)?))
}

/// Leaves out what only follows from a target that was refused.
fn causes(refused: Refused) -> Refused {
    match refused {
        Refused::Unprocessable(mut violations) => {
            violations.retain(|violation| !violation.field.ends_with("toNodeId"));
            Refused::Unprocessable(violations)
        }
        other => other,
    }
}

/// Links into targets that exist: the same into all, or some into each. The graph of refused links is of no use.
pub fn connect(
    graph: &mut Graph,
    targets: &[NodeId],
    links: &[Vec<Link>],
    options: Options,
) -> Result<Applied, Refused> {
    let steps = connections(graph, targets, links);
    let applied = apply(graph, &Batch::of(steps), options)?;
    allowed(graph, applied)
}

/// Where nodes of this size lie that are added later, each by [`show`]: in one block on a free place. The graph is not changed.
pub fn block(graph: &mut Graph, place: &Place, size: (f64, f64)) -> Vec<Position> {
    let block = block_cells(&vec![size; place.count]);
    let reach = block.corners.iter().fold((0.0_f64, 0.0_f64), |(x, y), corner| (x.max(corner.0), y.max(corner.1)));
    let hint = place.location.hint(graph).map(|hint| Hint { at: place.at, ..hint }).unwrap_or_default();
    let Position { x, y } = graph.spot_of(block.size, reach, hint).position;
    block.corners.into_iter().map(|(left, top)| Position { x: x + left, y: y + top }).collect()
}

/// A node that shows an asset.
pub struct Shown {
    pub id: NodeId,
    pub kind: NodeType,
    pub title: String,
    pub size: (f64, f64),
    pub asset: AssetHandle,
    pub server: ServerMetadata,
}

/// Adds a node as near as possible to a position, or to the right of the content. It joins the Section, which grows if it has no room; one that is no longer there is
/// ignored. The graph of a refused addition is of no use.
pub fn show(
    graph: &mut Graph,
    shown: Shown,
    (at, location): (Option<Position>, Location),
    options: Options,
) -> Result<Applied, Refused> {
    let Shown { id, kind, title, size, asset, server } = shown;
    let place = Place { kind, location: location.present(graph), ..Place::default() };
    let mut draft = draft(&place, title, size, &id);
    draft.given = Given { server, asset: Some(asset), ..draft.given };
    let steps = vec![Step::CreateNode { client_id: None, draft: Box::new(draft) }];
    let aim = at.map(|at| Aim { at: Some(at), sources: Vec::new() });
    let applied = apply(graph, &Batch { steps, aim }, options)?;
    allowed(graph, applied)
}

fn draft(place: &Place, title: String, (width, height): (f64, f64), id: &NodeId) -> Draft {
    let section = place.location.section.as_ref();
    Draft {
        kind: place.kind,
        title,
        position: None,
        near: None,
        width: Some(width),
        height: Some(height),
        metadata: MetadataPatch::of_home(section.map_or(Home::Keep, |section| Home::Join(Ref::to(section)))),
        section_field: "sectionId",
        asset: None,
        given: Given { id: Some(id.clone()), contained: true, ..Given::default() },
    }
}

/// The connections that are not there yet. A target that the work reads itself is not connected to itself.
fn connections(graph: &Graph, targets: &[NodeId], links: &[Vec<Link>]) -> Vec<Step> {
    let is_there = |from: &NodeId, to: &NodeId, purpose| {
        let ends = graph.nodes.find(from).zip(graph.nodes.find(to)).map(|(from, to)| Ends { from, to, purpose });
        ends.is_some_and(|ends| graph.is_connected(ends))
    };
    let mut steps = Vec::new();
    for (index, to) in targets.iter().enumerate() {
        let mut known = HashSet::new();
        for Link { from, purpose, role } in of_target(links, index) {
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

    /// Work that is connected with what it reads.
    fn work(read: &[Link]) -> Work<'static> {
        Work { read: vec![read.to_vec()], connect: true, prompt: None }
    }

    fn positions(graph: &Graph, ids: &[NodeId]) -> Vec<(f64, f64)> {
        let nodes = ids.iter().filter_map(|id| graph.node(id));
        nodes.map(|node| (node.position.x, node.position.y)).collect()
    }

    fn refused(graph: &mut Graph, place: &Place, links: &[Link]) -> Vec<String> {
        match add(graph, place, &[(320.0, 320.0)], work(links), AGENT) {
            Err(Refused::Unprocessable(violations)) => fields(&violations).into_iter().map(str::to_owned).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_block_of_cells_is_a_row_of_up_to_four_or_a_grid_on_a_free_place() {
        let mut graph = graph(vec![at(image("a"), 0.0, 0.0)], Vec::new());
        let mut cells = |count| {
            let block = block(&mut graph, &place(None, None, count), (320.0, 320.0));
            block.iter().map(|at| (at.x, at.y)).collect::<Vec<_>>()
        };
        assert_eq!(cells(1), [(360.0, 0.0)]);
        assert_eq!(cells(4), [(360.0, 0.0), (720.0, 0.0), (1080.0, 0.0), (1440.0, 0.0)]);
        let grid = [(360.0, 0.0), (720.0, 0.0), (1080.0, 0.0), (360.0, 360.0), (720.0, 360.0)];
        assert_eq!(cells(5), grid);
        assert_eq!(cells(20).len(), 20);
        assert_eq!(graph.node_count(), 1, "nothing is added");
    }

    #[test]
    fn what_is_shown_later_takes_its_cell_or_the_nearest_free_place_and_joins_a_section_that_is_still_there() {
        let mut graph = graph(vec![section("s")], Vec::new());
        let mut show_at = |name: &str, section: Option<&str>, (x, y)| {
            let shown = Shown {
                id: id(name),
                kind: NodeType::Image,
                title: name.into(),
                size: (320.0, 320.0),
                asset: AssetHandle::try_from("asset:me:a1".to_owned()).expect("valid"),
                server: ServerMetadata::default(),
            };
            let location = Location { near: None, section: section.map(id) };
            show(&mut graph, shown, (Some(Position { x, y }), location), AGENT).expect("added");
            let node = graph.node(&id(name)).expect("is there").clone();
            assert!(node.asset.is_some() && node.agent_owned);
            node
        };
        let first = show_at("n1", None, (5000.0, 0.0));
        assert_eq!(first.position, Position { x: 5000.0, y: 0.0 });
        let second = show_at("n2", None, (5000.0, 0.0));
        assert!(!Frame::from_node(&first).overlaps(Frame::from_node(&second)));
        assert_eq!(show_at("n3", Some("s"), (0.0, 0.0)).section_id(), Some("s"));
        assert_eq!(show_at("n4", Some("gone"), (9000.0, 0.0)).section_id(), None);
    }

    #[test]
    fn new_targets_are_a_column_of_empty_images_beside_their_source() {
        let mut graph = graph(vec![at(image("a"), 0.0, 0.0)], Vec::new());
        let wanted = Place { title: Some("Wide".into()), ..place(Some("a"), None, 3) };
        let (ids, applied) = add(&mut graph, &wanted, &[(320.0, 180.0)], work(&[]), AGENT).expect("added");
        assert_eq!(positions(&graph, &ids), [(440.0, -150.0), (440.0, 70.0), (440.0, 290.0)]);
        assert_eq!((applied.nodes_delta, &applied.changes.changed_node_ids), (3, &ids));
        let node = graph.node(&ids[2]).expect("is there");
        assert_eq!((node.kind, node.title.as_str(), node.agent_owned), (NodeType::Image, "Wide", true));
        assert_eq!((node.width, node.height, &node.asset), (320.0, 180.0, &None));
        let (ids, _) =
            add(&mut graph, &place(None, None, 1), &[(320.0, 320.0)], work(&[]), Options::default()).expect("added");
        let node = graph.node(&ids[0]).expect("is there");
        assert_eq!((node.title.as_str(), node.agent_owned), ("image 1", false));
        assert_eq!(positions(&graph, &ids), [(800.0, -150.0)], "to the right of the content");
    }

    #[test]
    fn targets_are_called_after_their_source_or_the_prompt_with_the_next_numbers() {
        let titles = |graph: &mut Graph, work: Work<'_>, place: Place| {
            let (ids, _) = add(graph, &place, &[(320.0, 320.0)], work, AGENT).expect("added");
            ids.iter().filter_map(|id| graph.node(id)).map(|node| node.title.clone()).collect::<Vec<_>>()
        };
        let named = |title: &str, x: f64| Node { title: title.into(), ..at(image("a"), x, 0.0) };
        let mut graph = graph(vec![named("Lamp", 0.0), Node { id: id("b"), ..named("image", 900.0) }], Vec::new());
        let prompt = Some("  A brass lamp at dusk, on a sill");
        let from = |source| [flow(source)];
        let two = || place(None, None, 2);
        assert_eq!(titles(&mut graph, work(&from("a")), two()), ["Lamp 1", "Lamp 2"]);
        assert_eq!(titles(&mut graph, Work { prompt, ..work(&from("a")) }, two()), ["Lamp 3", "Lamp 4"]);
        assert_eq!(
            titles(&mut graph, Work { prompt, ..work(&from("b")) }, two()),
            ["A brass lamp at dusk, on 1", "A brass lamp at dusk, on 2"]
        );
        assert_eq!(titles(&mut graph, work(&from("b")), two()), ["image 1", "image 2"]);
        let files = [("c", "shot 0.png"), ("d", "Image.JPG"), ("e", "upload.webp"), ("f", "v1.2")];
        for (at, (name, title)) in files.into_iter().enumerate() {
            let node = Node { id: id(name), ..named(title, 900.0 * at as f64) };
            let mut graph = crate::fixture::graph(vec![node], Vec::new());
            let expected = ["shot 0 1", "image 1", "image 1", "v1.2 1"][at];
            assert_eq!(titles(&mut graph, work(&from(name)), place(None, None, 1)), [expected], "{title}");
        }
        assert_eq!(titles(&mut graph, work(&[]), Place { title: Some("T".into()), ..two() }), ["T", "T"]);
        let long = Some("x".repeat(500));
        let [title] =
            &titles(&mut graph, Work { prompt: long.as_deref(), ..Work::default() }, place(None, None, 1))[..]
        else {
            panic!("one title")
        };
        assert!(title.len() <= TITLE_MAX && title.ends_with("x 1"));
    }

    #[test]
    fn results_of_a_source_are_columns_of_four_beside_it_and_go_left_or_up_last() {
        let mut graph = graph(vec![at(image("a"), 0.0, 0.0)], Vec::new());
        let mut added = |count| {
            let (ids, _) = add(&mut graph, &place(None, None, count), &[(100.0, 100.0)], work(&[flow("a")]), AGENT)
                .expect("added");
            positions(&graph, &ids)
        };
        assert_eq!(added(4), [(440.0, -100.0), (440.0, 40.0), (440.0, 180.0), (440.0, 320.0)]);
        assert_eq!(added(5), [(580.0, -30.0), (580.0, 110.0), (580.0, 250.0), (800.0, -30.0), (800.0, 110.0)]);
    }

    #[test]
    fn results_of_sources_in_a_row_hang_below_them_level() {
        let high = Node { height: 400.0, ..at(image("b"), 360.0, 0.5) };
        let nodes = vec![at(image("a"), 0.0, 0.0), high, at(image("c"), 800.0, 0.0), at(image("far"), 1241.0, 0.0)];
        let mut graph = graph(nodes, Vec::new());
        let mut added = |sources: &[&str], count| {
            let read: Vec<Link> = sources.iter().map(|source| flow(source)).collect();
            let (ids, _) =
                add(&mut graph, &place(None, None, count), &[(100.0, 100.0)], work(&read), AGENT).expect("added");
            positions(&graph, &ids)
        };
        assert_eq!(added(&["a"], 1), [(0.0, 440.5)]);
        assert_eq!(added(&["c"], 1), [(800.0, 440.5)]);
        assert_eq!(added(&["b"], 2), [(360.0, 440.5), (360.0, 580.5)]);
        assert_eq!(added(&["far"], 1), [(1681.0, 110.0)], "more than 120 from the row");
        assert_eq!(added(&["a", "b", "c"], 2), [(500.0, 440.5), (640.0, 440.5)], "where there is room");
    }

    #[test]
    fn results_of_a_member_are_beside_its_section_unless_they_are_to_lie_in_it() {
        let section = Node { width: 1000.0, height: 600.0, ..agents(at(section("s"), 0.0, 0.0)) };
        let source = crate::fixture::member(at(image("a"), 40.0, 96.0), "s");
        let added = |place: Place| {
            let mut graph = graph(vec![section.clone(), source.clone()], Vec::new());
            let (ids, _) = add(&mut graph, &place, &[(100.0, 100.0)], work(&[flow("a")]), AGENT).expect("added");
            positions(&graph, &ids)
        };
        assert_eq!(added(place(None, None, 1)), [(1120.0, 206.0)]);
        assert_eq!(added(place(None, Some("s"), 1)), [(480.0, 206.0)]);
    }

    #[test]
    fn the_first_target_is_where_it_is_wanted() {
        let mut graph = graph(vec![at(image("a"), 0.0, 0.0)], Vec::new());
        let wanted = Place { at: Some(Position { x: 10.0, y: 300.0 }), ..place(None, None, 2) };
        let (ids, _) = add(&mut graph, &wanted, &[(320.0, 320.0)], work(&[]), AGENT).expect("added");
        assert_eq!(positions(&graph, &ids), [(10.0, 360.0), (10.0, 720.0)]);
    }

    #[test]
    fn targets_lie_in_their_section_which_grows_once() {
        let frame = Node { width: 760.0, height: 456.0, ..at(section("s"), 0.0, 0.0) };
        let mut graph = graph(vec![frame, at(image("a"), 40.0, 96.0)], Vec::new());
        let (ids, applied) =
            add(&mut graph, &place(None, Some("s"), 3), &[(320.0, 320.0)], work(&[]), AGENT).expect("added");
        assert_eq!(positions(&graph, &ids), [(40.0, 456.0), (400.0, 456.0), (760.0, 456.0)]);
        let grown = graph.node(&id("s")).map(Frame::from_node);
        assert_eq!(grown, Some(Frame { left: 0.0, top: 0.0, right: 1120.0, bottom: 816.0 }));
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
    fn targets_with_sources_of_their_own_are_named_after_them_and_hang_below_their_row() {
        let sources = vec![at(image("a"), 0.0, 0.0), at(image("b"), 360.0, 0.0), at(image("logo"), -5000.0, 900.0)];
        let mut graph = graph(sources, Vec::new());
        let read = vec![vec![flow("a"), flow("logo")], vec![flow("b"), flow("logo")], vec![flow("a")]];
        let work = Work { read, connect: true, prompt: None };
        let sizes = [(100.0, 60.0), (200.0, 90.0), (50.0, 50.0)];
        let (ids, _) = add(&mut graph, &place(None, None, 3), &sizes, work, AGENT).expect("added");
        let nodes: Vec<&Node> = ids.iter().filter_map(|id| graph.node(id)).collect();
        assert_eq!(nodes.iter().map(|node| (node.width, node.height)).collect::<Vec<_>>(), sizes);
        let top = nodes[0].position.y;
        assert!(nodes.iter().all(|node| node.position.y == top) && top > 300.0, "{nodes:?}");
        assert_eq!(nodes[0].position.x, 0.0);
        let incoming: Vec<Vec<&str>> =
            ids.iter().map(|id| graph.incoming(id).map(|link| link.from.as_str()).collect()).collect();
        assert_eq!(incoming, [vec!["a", "logo"], vec!["b", "logo"], vec!["a"]]);
        assert_eq!(nodes.iter().map(|node| node.title.as_str()).collect::<Vec<_>>(), ["a 1", "b 1", "a 2"]);
    }

    #[test]
    fn what_the_work_reads_is_connected_once() {
        let nodes = || vec![at(image("a"), 0.0, 0.0), at(image("b"), 400.0, 0.0), at(image("t"), 800.0, 0.0)];
        let links = [flow("a"), flow("a"), reference("b", Role::Style)];
        let mut fresh = graph(nodes(), Vec::new());
        let (ids, applied) =
            add(&mut fresh, &place(None, None, 2), &[(320.0, 320.0)], work(&links), AGENT).expect("added");
        assert_eq!(applied.connections_delta, 4);
        for target in &ids {
            let incoming = fresh.incoming(target).map(|link| (link.from.as_str(), link.purpose, link.role));
            let expected = [("a", Purpose::Flow, None), ("b", Purpose::Reference, Some(Role::Style))];
            assert_eq!(incoming.collect::<Vec<_>>(), expected);
        }
        let mut linked = graph(nodes(), vec![connection("c", "a", "t", Purpose::Flow)]);
        let links = [flow("a"), reference("a", Role::Fit), flow("t")];
        let applied = connect(&mut linked, &[id("t")], &[links.to_vec()], AGENT).expect("connected");
        assert_eq!(applied.connections_delta, 1, "the reference alone");
        let again = connect(&mut linked, &[id("t")], &[links.to_vec()], AGENT).expect("connected");
        assert_eq!(again, Applied::default());
    }

    #[test]
    fn a_cycle_is_refused() {
        let nodes = vec![agents(at(image("a"), 0.0, 0.0)), at(image("t"), 400.0, 0.0)];
        let mut graph = graph(nodes, vec![connection("c", "t", "a", Purpose::Flow)]);
        let refused = connect(&mut graph, &[id("t")], &[vec![flow("a")]], AGENT).expect_err("a cycle");
        let Refused::Unprocessable(violations) = refused else { panic!("{refused:?}") };
        assert_eq!(fields(&violations), ["connect"]);
    }

    #[test]
    fn a_canvas_holds_a_limited_number_of_nodes() {
        let nodes = (1..CANVAS_NODES_MAX).map(|n| at(image(&format!("n{n}")), n as f64 * 360.0, 0.0)).collect();
        let mut graph = graph(nodes, Vec::new());
        assert_eq!(refused(&mut graph, &place(None, None, 2), &[]), ["operations"]);
        add(&mut graph, &place(None, None, 1), &[(320.0, 320.0)], work(&[]), AGENT).expect("one more");
        assert_eq!(refused(&mut graph, &place(None, None, 1), &[]), ["operations"]);
    }
}
