use domain::graph::Node;
use domain::limits::{RECIPE_INPUTS_MAX, RECIPE_OUTPUTS_MAX};
use domain::recipe::{Category, InputKind, OutputKind};
use domain::review::{Origin, StoredAsset, StoredAssets};
use proptest::prelude::*;

use super::*;
use crate::fixture::{AGENT, agents, asset, at, graph, id, image, member, section, text};
use crate::placement::LAYER_GAP;
use crate::{is_blocked, validate};

fn input(key: &str, kind: InputKind) -> Input {
    Input {
        key: key.into(),
        label: format!("The {key}"),
        description: String::new(),
        kind,
        node_id: key.into(),
        default: None,
        written_reference: false,
    }
}

fn output(key: &str, kind: OutputKind, from: &[&str]) -> Output {
    Output {
        key: key.into(),
        label: format!("The {key}"),
        description: String::new(),
        kind,
        node_id: key.into(),
        prompt: format!("Make {{{{{}}}}}", from[0]),
        input_keys: from.iter().map(|key| (*key).to_owned()).collect(),
        model: None,
        size: None,
        quality: None,
    }
}

fn definition(inputs: Vec<Input>, outputs: Vec<Output>) -> Definition {
    Definition {
        name: "Hero shot".into(),
        summary: Some("A product in its best light.".into()),
        description: None,
        category: Category::Product,
        tags: vec![],
        inputs,
        outputs,
    }
}

/// Two inputs; a text, and an image made from it.
fn chain() -> Definition {
    definition(
        vec![input("pack", InputKind::Image), input("brief", InputKind::Text)],
        vec![output("copy", OutputKind::Text, &["brief"]), output("hero", OutputKind::Image, &["copy", "pack"])],
    )
}

/// Width and height of the image in a filled port, in pixels.
const WIDE: (f64, f64) = (1600.0, 900.0);

struct PlacedInstance {
    graph: Graph,
    ids: Ids,
    applied: Applied,
}

fn placed(graph: Graph, definition: &Definition, fillings: Vec<Filling>, at: Option<Position>) -> PlacedInstance {
    let (made, outcome) = tried(graph, definition, fillings, at, &Location::default());
    PlacedInstance { applied: outcome.expect("is placed"), ..made }
}

/// The graph after an instance was placed or refused, and the outcome.
fn tried(
    mut graph: Graph,
    definition: &Definition,
    fillings: Vec<Filling>,
    at: Option<Position>,
    location: &Location,
) -> (PlacedInstance, Result<Applied, Refused>) {
    let ids = Ids::generate(definition.inputs.len(), definition.outputs.len());
    let recipe = RecipeId::parse("recipe:r1").expect("an id");
    let instance = Instance {
        recipe: &recipe,
        version: Version(3),
        definition,
        ids: &ids,
        fillings: &fillings,
        x: at.map(|at| at.x),
        y: at.map(|at| at.y),
        location,
    };
    let outcome = place(&mut graph, &instance, AGENT);
    (PlacedInstance { graph, ids, applied: Applied::default() }, outcome)
}

fn filled() -> Vec<Filling> {
    let pack = Filling { held: Some(PortValue::Asset(asset("a1"))), size: Some(WIDE), source: Some(id("photo")) };
    vec![pack, Filling { held: Some(PortValue::Text("Warm light".into())), ..Filling::default() }]
}

fn board() -> Graph {
    let mut photo = agents(at(image("photo"), 100.0, 50.0));
    photo.metadata.placeholder = Some(true);
    graph(vec![photo, at(text("note"), 100.0, 500.0)], vec![])
}

#[test]
fn an_instance_is_a_sticky_with_its_ports_connected_in_and_its_outputs_connected_out() {
    let PlacedInstance { graph, ids, applied } = placed(board(), &chain(), filled(), None);
    assert_eq!((applied.nodes_delta, applied.connections_delta), (5, 5));
    let kinds = |ids: &[NodeId]| ids.iter().map(|id| graph.node(id).expect("is there").kind).collect::<Vec<_>>();
    assert_eq!(kinds(std::slice::from_ref(&ids.instance)), [NodeType::Sticky]);
    assert_eq!(kinds(&ids.inputs), [NodeType::Image, NodeType::Text]);
    assert_eq!(kinds(&ids.outputs), [NodeType::Text, NodeType::Image]);
    let into: Vec<_> = graph.incoming(&ids.instance).map(|connection| connection.from.clone()).collect();
    let out: Vec<_> = graph.outgoing(&ids.instance).map(|connection| connection.to.clone()).collect();
    assert_eq!((into, out), (ids.inputs.clone(), ids.outputs.clone()));
    let source: Vec<_> = graph.incoming(&ids.inputs[0]).map(|connection| connection.from.clone()).collect();
    assert_eq!(source, [id("photo")]);
    assert_eq!(applied.resolved_ids["recipe"], ids.instance.as_str());
    assert_eq!(applied.resolved_ids["input-pack"], ids.inputs[0].as_str());
    assert_eq!(applied.resolved_ids["output-hero"], ids.outputs[1].as_str());
}

#[test]
fn the_largest_definition_can_be_placed_although_its_labels_are_longer_than_clients_may_write() {
    // Six bytes for each character in JSON.
    let label = "\u{1}".repeat(80);
    let keys: Vec<String> = (0..RECIPE_INPUTS_MAX).map(|number| format!("in{number}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let inputs = keys.iter().map(|key| Input { label: label.clone(), ..input(key, InputKind::Text) });
    let made = |number| Output { label: label.clone(), ..output(&format!("out{number}"), OutputKind::Text, &keys) };
    let largest = definition(inputs.collect(), (0..RECIPE_OUTPUTS_MAX).map(made).collect());
    let PlacedInstance { graph, ids, .. } = placed(board(), &largest, Vec::new(), None);
    let sticky = graph.node(&ids.instance).expect("is there");
    assert_eq!(sticky.content(), Some(steps_of(&largest).as_str()));
    assert!(serde_json::to_vec(&sticky.content()).expect("serializes").len() > 64 * 1024);
}

#[test]
fn server_owned_metadata_says_which_node_is_what() {
    let PlacedInstance { graph, ids, .. } = placed(board(), &chain(), filled(), None);
    let note = |id: &NodeId| json!(graph.node(id).expect("is there").recipe());
    assert_eq!(
        note(&ids.instance),
        json!({
            "role": "instance", "recipe": "recipe:r1", "version": "1.0.3", "name": "Hero shot",
            "inputs": [{"key": "pack", "nodeId": ids.inputs[0]}, {"key": "brief", "nodeId": ids.inputs[1]}],
            "outputs": [{"key": "copy", "nodeId": ids.outputs[0]}, {"key": "hero", "nodeId": ids.outputs[1]}],
        })
    );
    assert_eq!(note(&ids.inputs[1]), json!({"role": "input", "key": "brief", "instance": ids.instance}));
    assert_eq!(note(&ids.outputs[1]), json!({"role": "output", "key": "hero", "instance": ids.instance}));
}

#[test]
fn ports_hold_what_they_begin_with_and_outputs_their_templates() {
    let PlacedInstance { graph, ids, .. } = placed(board(), &chain(), filled(), None);
    let node = |id: &NodeId| graph.node(id).expect("is there");
    assert_eq!(node(&ids.inputs[0]).asset, Some(asset("a1")));
    assert_eq!(node(&ids.inputs[1]).content(), Some("Warm light"));
    assert_eq!(node(&ids.outputs[1]).metadata.prompt.as_deref(), Some("Make {{copy}}"));
    assert!(node(&ids.outputs[1]).asset.is_none() && node(&ids.outputs[0]).content().is_none());
    assert_eq!(
        node(&ids.instance).content(),
        Some(
            "A product in its best light.\n\n1. The copy (text) from The brief\n2. The hero (image) from The copy, The pack"
        )
    );
}

#[test]
fn an_instance_stands_right_of_the_content_or_where_it_is_wanted() {
    let PlacedInstance { graph, applied, .. } = placed(board(), &chain(), filled(), None);
    let new = |id: &&NodeId| graph.node(id).expect("is there").position;
    let left = applied.changes.changed_node_ids.iter().map(|id| new(&id).x).fold(f64::MAX, f64::min);
    assert_eq!(left, 420.0 + crate::placement::GAP);
    let at = Position { x: -5000.0, y: 7000.0 };
    let PlacedInstance { graph, ids, .. } = placed(board(), &chain(), filled(), Some(at));
    let frames = ids.inputs.iter().chain(&ids.outputs).chain([&ids.instance]);
    let frames = frames.map(|id| Frame::from_node(graph.node(id).expect("is there")));
    let all = frames.reduce(Frame::union).expect("some");
    assert_eq!((all.left, all.top), (at.x, at.y));
}

#[test]
fn an_instance_that_is_wanted_at_the_edge_stands_within_it() {
    let at = Position { x: COORDINATE_MAX, y: COORDINATE_MAX };
    let PlacedInstance { graph, ids, .. } = placed(board(), &chain(), filled(), Some(at));
    let frames = ids.inputs.iter().chain(&ids.outputs).chain([&ids.instance]);
    let frames = frames.map(|id| Frame::from_node(graph.node(id).expect("is there")));
    let all = frames.reduce(Frame::union).expect("some");
    assert_eq!((all.right, all.bottom), (at.x, at.y));
}

#[test]
fn an_instance_near_a_node_or_in_a_section_at_the_edge_stands_within_the_canvas() {
    for (x, y) in [(COORDINATE_MAX - 1000.0, 0.0), (0.0, COORDINATE_MAX - 100.0), (COORDINATE_MAX, COORDINATE_MAX)] {
        let near = Location { near: Some(id("a")), section: None };
        let graph = graph(vec![at(image("a"), x, y)], vec![]);
        let (PlacedInstance { graph, ids, .. }, outcome) =
            tried(graph, &chain(), vec![Filling::default(); 2], None, &near);
        outcome.expect("is placed");
        for id in ids.inputs.iter().chain(&ids.outputs).chain([&ids.instance]) {
            let Position { x, y } = graph.node(id).expect("is there").position;
            assert!(x <= COORDINATE_MAX && y <= COORDINATE_MAX, "{x}, {y}");
        }
    }
    let inside = Location { near: None, section: Some(id("s")) };
    let wide = Node { width: 5000.0, height: 5000.0, ..at(section("s"), COORDINATE_MAX - 1000.0, 0.0) };
    let (_, outcome) = tried(graph(vec![wide], vec![]), &chain(), vec![Filling::default(); 2], None, &inside);
    let Err(Refused::Unprocessable(violations)) = outcome else { panic!("it has no room within the canvas") };
    assert_eq!(violations[0].field, "sectionId");
}

#[test]
fn what_is_placed_gives_no_findings() {
    let PlacedInstance { mut graph, applied, .. } = placed(board(), &chain(), vec![Filling::default(); 2], None);
    assert!(!is_blocked(&mut graph, &applied.touched));
    let found = validate(&graph, &applied.touched, &Default::default(), &[]);
    assert_eq!(found.findings, []);
    assert!(found.completion_review.done_claim_allowed, "an instance that has not run promises nothing");
}

#[test]
fn a_filled_port_shows_its_image_whole_and_an_empty_one_is_a_square() {
    let size = |fillings| {
        let PlacedInstance { graph, ids, applied } = placed(board(), &chain(), fillings, None);
        let stored = StoredAsset { origin: Origin::Brought, size: WIDE, has_sources: None };
        let found = validate(&graph, &applied.touched, &StoredAssets::from([(asset("a1"), stored)]), &[]);
        assert_eq!(found.findings, [], "no image is cropped");
        let port = graph.node(&ids.inputs[0]).expect("is there");
        (port.width, port.height)
    };
    assert_eq!(size(vec![Filling::default(); 2]), (240.0, 240.0));
    assert_eq!(size(filled()), (240.0, 135.0 + 28.0));
}

#[test]
fn a_chain_of_outputs_reads_from_left_to_right() {
    let layout = Layout::new(&chain(), &[]);
    assert!(layout.inputs.iter().all(|input| input.right + LAYER_GAP <= layout.instance.left));
    assert!(layout.instance.right + LAYER_GAP <= layout.outputs[0].left);
    assert!(layout.outputs[0].right + LAYER_GAP <= layout.outputs[1].left);
    assert_eq!(layout.inputs[0].left, layout.inputs[1].left, "inputs stand above each other");
    assert!(layout.inputs[0].bottom < layout.inputs[1].top, "in their order");
}

#[test]
fn a_source_that_is_gone_is_refused_and_nothing_is_written() {
    let mut graph = graph(vec![], vec![]);
    let definition = chain();
    let ids = Ids::generate(2, 2);
    let recipe = RecipeId::parse("r").expect("an id");
    let instance = Instance {
        recipe: &recipe,
        version: Version(0),
        definition: &definition,
        ids: &ids,
        fillings: &filled(),
        x: None,
        y: None,
        location: &Location::default(),
    };
    assert!(matches!(place(&mut graph, &instance, AGENT), Err(Refused::Unprocessable(_))));
    assert_eq!((graph.node_count(), graph.connection_count()), (0, 0));
}

#[test]
fn an_instance_is_near_a_node_or_in_a_section_that_grows_for_it() {
    let layout = Layout::new(&chain(), &[]);
    let far = at(text("far"), 9000.0, 0.0);
    let nodes = vec![agents(at(image("photo"), 0.0, 0.0)), far];
    let near = Location { near: Some(id("photo")), section: None };
    let (made, outcome) = tried(graph(nodes, vec![]), &chain(), filled(), None, &near);
    outcome.expect("is placed");
    let frames = |made: &PlacedInstance| {
        let own = made.ids.inputs.iter().chain(&made.ids.outputs).chain([&made.ids.instance]);
        own.map(|id| Frame::from_node(made.graph.node(id).expect("is there"))).reduce(Frame::union).expect("some")
    };
    assert_eq!(frames(&made).left, 360.0, "right of it");
    let section = Node { width: 400.0, height: 456.0, ..at(section("s"), 0.0, 0.0) };
    let member = agents(at(member(image("photo"), "s"), 40.0, 96.0));
    let location = Location { near: None, section: Some(id("s")) };
    let (mut made, outcome) =
        tried(graph(vec![section.clone(), member.clone()], vec![]), &chain(), filled(), None, &location);
    let applied = outcome.expect("is placed");
    let grown = Frame::from_node(made.graph.node(&id("s")).expect("is there"));
    assert_eq!(frames(&made).top, 456.0, "below the member");
    assert!(grown.contains(frames(&made)) && grown.right >= layout.width + 80.0, "{grown:?}");
    assert_eq!((made.graph.members(&id("s")).count(), applied.nodes_delta), (6, 5));
    assert!(applied.changes.changed_node_ids.contains(&id("s")));
    assert!(!is_blocked(&mut made.graph, &applied.touched));
    // No room on any side.
    let around = [("below", 0.0, 500.0), ("beside", 440.0, 0.0), ("before", -360.0, 0.0), ("above", 0.0, -200.0)];
    let around = around.map(|(name, x, y)| at(text(name), x, y));
    let enclosed = graph([vec![section, member], around.to_vec()].concat(), vec![]);
    let before = enclosed.node_count();
    let (made, outcome) = tried(enclosed, &chain(), filled(), None, &location);
    let Err(Refused::Unprocessable(violations)) = outcome else { panic!("{outcome:?}") };
    assert_eq!((violations[0].field.as_str(), made.graph.node_count()), ("sectionId", before));
}

fn any_definition() -> impl Strategy<Value = Definition> {
    let kinds = prop::collection::vec(0..3_usize, 1..=RECIPE_INPUTS_MAX);
    let steps = prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..=RECIPE_OUTPUTS_MAX);
    (kinds, steps).prop_map(|(kinds, steps)| {
        let inputs =
            kinds.iter().enumerate().map(|(at, kind)| input(&format!("i{at}"), InputKind::ALL[*kind])).collect();
        let outputs = steps.iter().enumerate().map(|(at, (is_image, from))| {
            let from = from.index(kinds.len() + at);
            let from = if from < kinds.len() { format!("i{from}") } else { format!("o{}", from - kinds.len()) };
            let kind = if *is_image { OutputKind::Image } else { OutputKind::Text };
            output(&format!("o{at}"), kind, &[&from])
        });
        definition(inputs, outputs.collect())
    })
}

proptest! {
    #[test]
    fn no_two_nodes_of_any_instance_overlap(
        definition in any_definition(),
        sizes in prop::collection::vec(prop::option::of((1.0..2000.0, 1.0..2000.0)), 0..=RECIPE_INPUTS_MAX),
    ) {
        let fillings: Vec<_> = sizes.into_iter().map(|size| Filling { size, ..Filling::default() }).collect();
        let layout = Layout::new(&definition, &fillings);
        let frames: Vec<Frame> =
            layout.inputs.iter().chain(&layout.outputs).chain([&layout.instance]).copied().collect();
        for (index, a) in frames.iter().enumerate() {
            prop_assert!(a.left >= 0.0 && a.top >= 0.0 && a.right <= layout.width && a.bottom <= layout.height);
            for b in &frames[index + 1..] {
                let apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
                prop_assert!(apart, "{a:?} {b:?}");
            }
        }
        let columns = layout.inputs.iter().map(|frame| frame.left.to_bits()).collect::<std::collections::HashSet<_>>();
        prop_assert_eq!(columns.len(), definition.inputs.len().div_ceil(4));
    }
}
