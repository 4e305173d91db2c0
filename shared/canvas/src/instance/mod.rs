//! Puts a Recipe on a canvas: a sticky note that describes it, a port node for each input, connected into it, and a
//! node for each output, connected out of it. Rules: `docs/reference/recipes.md#instance-metadata`.
//!
//! Server-owned `metadata.recipe` marks the nodes as those of a Recipe: on the instance `{role: "instance", recipe,
//! version, name, inputs, outputs}` with `{key, nodeId}` for each port, on a port `{role: "input" | "output", key,
//! instance}`. The user may change everything else: a run of the instance uses the text or image of a port node as
//! input, and the prompt of an output node as template.

pub mod layout;

use std::fmt::Write as _;

use domain::Violation;
use domain::graph::{NodeType, Position, Purpose};
use domain::id::{NodeId, RecipeId};
use domain::limits::{COORDINATE_MAX, TITLE_MAX};
use domain::metadata::{InstancePort, NodeRecipe, RecipeRole, ServerMetadata};
use domain::recipe::{Definition, Input, Output, PortValue, Version};
use serde_json::{Value, json};

use crate::apply::{Applied, Options, Refused, apply};
use crate::batch::{Batch, Draft, Given, Patch, Step};
use crate::graph::Graph;
use crate::metadata::{Home, MetadataPatch};
use crate::placement::{Frame, Location, NO_ROOM, free_area};
use crate::reference::Ref;
use layout::Layout;

/// Ids of an instance's nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Ids {
    /// The sticky note.
    pub instance: NodeId,
    /// The port nodes, in the order of the inputs.
    pub inputs: Vec<NodeId>,
    /// The output nodes, in the order of the outputs.
    pub outputs: Vec<NodeId>,
}

impl Ids {
    /// New ids.
    pub fn generate(inputs: usize, outputs: usize) -> Self {
        let some = |count| (0..count).map(|_| NodeId::generate()).collect();
        Self { instance: NodeId::generate(), inputs: some(inputs), outputs: some(outputs) }
    }
}

/// Initial value of a port node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filling {
    /// The value.
    pub held: Option<PortValue>,
    /// Width and height in pixels of the image that it is.
    pub size: Option<(f64, f64)>,
    /// The node of the canvas that the value was taken from. It is connected into the port.
    pub source: Option<NodeId>,
}

/// An instance to put on a canvas.
#[derive(Clone, Debug)]
pub struct Instance<'a> {
    pub recipe: &'a RecipeId,
    /// Version of the Recipe.
    pub version: Version,
    /// Content of the version.
    pub definition: &'a Definition,
    /// Ids of the nodes.
    pub ids: &'a Ids,
    /// Initial values of the ports, in the order of the inputs.
    pub fillings: &'a [Filling],
    /// Left edge of the whole, limited to the canvas; defaults to a free spot.
    pub x: Option<f64>,
    /// Top edge of the whole, limited to the canvas; defaults to a free spot.
    pub y: Option<f64>,
    /// Where the free spot is to be; its nodes belong to the Section.
    pub location: &'a Location,
}

/// Puts an instance on a canvas: an ordinary batch with server-owned metadata added. If it is rejected (the canvas or the
/// Section is full, a source was deleted), the graph is unchanged.
pub fn place(graph: &mut Graph, instance: &Instance<'_>, options: Options) -> Result<Applied, Refused> {
    let layout = Layout::new(instance.definition, instance.fillings);
    let mut steps = Vec::new();
    let free = spot(graph, instance.location, (layout.width, layout.height), &mut steps)?;
    // Every node must lie within the bounds of the canvas.
    let at = Position {
        x: instance.x.map_or(free.x, |x| x.min(COORDINATE_MAX - layout.width)),
        y: instance.y.map_or(free.y, |y| y.min(COORDINATE_MAX - layout.height)),
    };
    for (index, input) in instance.definition.inputs.iter().enumerate() {
        let draft = port(instance, index, input, layout.inputs[index]);
        steps.push(create(format!("input-{}", input.key), draft, at, instance.location));
    }
    steps.push(create("recipe".into(), heart(instance, layout.instance), at, instance.location));
    for (index, output) in instance.definition.outputs.iter().enumerate() {
        let draft = result(instance, index, output, layout.outputs[index]);
        steps.push(create(format!("output-{}", output.key), draft, at, instance.location));
    }
    let Ids { instance: heart, inputs, outputs } = instance.ids;
    for (port, filling) in inputs.iter().zip(instance.fillings) {
        steps.extend(filling.source.as_ref().map(|source| connect(source, port)));
    }
    steps.extend(inputs.iter().map(|port| connect(port, heart)));
    steps.extend(outputs.iter().map(|result| connect(heart, result)));
    apply(graph, &Batch::of(steps), options)
}

/// A free spot for the whole. A Section that must grow for it does so in `steps`.
fn spot(
    graph: &mut Graph,
    location: &Location,
    (width, height): (f64, f64),
    steps: &mut Vec<Step>,
) -> Result<Position, Refused> {
    let hint = location.hint(graph).filter(|_| *location != Location::default());
    let Some(hint) = hint else { return Ok(free_area(graph.nodes().map(Frame::from_node), width, height)) };
    let spot = graph.spot_of((width, height), (width, height), hint);
    let section = location.section.as_ref().and_then(|section| graph.node(section));
    if let Some(section) = section {
        let frame = spot.section.unwrap_or(Frame::from_node(section));
        if !frame.contains(Frame::new(spot.position, width, height)) {
            return Err(Refused::Unprocessable(vec![Violation::new("sectionId", NO_ROOM)]));
        }
        if spot.section.is_some() {
            let size = (frame.right - frame.left, frame.bottom - frame.top);
            let position = Position { x: frame.left, y: frame.top };
            steps.push(Step::MoveNode { node: Ref::to(&section.id), position, with_members: false });
            steps.push(Step::UpdateNode { node: Ref::to(&section.id), patch: Patch::of_size(size) });
        }
    }
    Ok(spot.position)
}

fn create(client_id: String, mut draft: Draft, at: Position, location: &Location) -> Step {
    draft.position = draft.position.map(|position| Position { x: at.x + position.x, y: at.y + position.y });
    if let Some(section) = &location.section {
        draft.metadata.home = Home::Join(Ref::to(section));
    }
    Step::CreateNode { client_id: Some(client_id), draft: Box::new(draft) }
}

/// A plain dependency. A `reference` from an empty port would be a finding.
fn connect(from: &NodeId, to: &NodeId) -> Step {
    Step::CreateConnection { client_id: None, from: Ref::to(from), to: Ref::to(to), purpose: Purpose::Flow, role: None }
}

fn draft(kind: NodeType, title: &str, frame: Frame, metadata: Value, given: Given) -> Draft {
    let Value::Object(metadata) = metadata else { unreachable!("metadata is written as an object") };
    let mut violations = Vec::new();
    let metadata = MetadataPatch::parse(metadata, "metadata", &mut violations);
    debug_assert!(violations.is_empty(), "a definition's texts fit into metadata: {violations:?}");
    Draft {
        kind,
        title: title.chars().take(TITLE_MAX).collect(),
        position: Some(Position { x: frame.left, y: frame.top }),
        near: None,
        width: Some(frame.right - frame.left),
        height: Some(frame.bottom - frame.top),
        metadata,
        section_field: "metadata.sectionId",
        asset: None,
        given,
    }
}

/// The sticky note in the middle.
fn heart(instance: &Instance<'_>, frame: Frame) -> Draft {
    let definition = instance.definition;
    let port = |(key, node_id): (&String, &NodeId)| InstancePort { key: key.clone(), node_id: node_id.clone() };
    let inputs = definition.inputs.iter().map(|input| &input.key).zip(&instance.ids.inputs);
    let outputs = definition.outputs.iter().map(|output| &output.key).zip(&instance.ids.outputs);
    let mut server = owned(NodeRecipe {
        recipe: Some(instance.recipe.into()),
        version: Some(instance.version.to_string()),
        name: Some(definition.name.clone()),
        inputs: Some(inputs.map(port).collect()),
        outputs: Some(outputs.map(port).collect()),
        ..NodeRecipe::new(RecipeRole::Instance)
    });
    // Server-owned, because the labels of a whole definition can exceed the limit of client-written metadata.
    server.content = Some(steps_of(definition));
    let given = Given { id: Some(instance.ids.instance.clone()), server, ..Given::default() };
    draft(NodeType::Sticky, &definition.name, frame, json!({}), given)
}

/// Text of the sticky note: the purpose in one line, and the steps with their sources.
pub fn steps_of(definition: &Definition) -> String {
    let mut text = definition.summary.clone().unwrap_or_default();
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    let label = |key: &String| {
        let output = || definition.outputs.iter().find(|output| output.key == *key).map(|output| output.label.as_str());
        definition.input(key).map(|input| input.label.as_str()).or_else(output).unwrap_or_default()
    };
    for (index, output) in definition.outputs.iter().enumerate() {
        let from: Vec<&str> = output.input_keys.iter().map(label).collect();
        let line_break = if index == 0 { "" } else { "\n" };
        let _ = write!(text, "{line_break}{}. {} ({}) from {}", index + 1, output.label, output.kind, from.join(", "));
    }
    text
}

/// The node of an input.
fn port(instance: &Instance<'_>, index: usize, input: &Input, frame: Frame) -> Draft {
    let held = instance.fillings.get(index).and_then(|filling| filling.held.as_ref());
    let mut server = owned(port_note(instance, RecipeRole::Input, &input.key));
    let mut asset = None;
    match held {
        // Server-owned, because a text that was taken from a node can exceed the limit of client-written text.
        Some(PortValue::Text(text)) if input.kind.node_type().holds_text() => {
            server.content = Some(text.clone());
        }
        Some(PortValue::Asset(handle)) => asset = Some(handle.clone()),
        _ => {}
    }
    let given = Given { id: instance.ids.inputs.get(index).cloned(), server, asset, ..Given::default() };
    draft(input.kind.node_type(), &input.label, frame, json!({}), given)
}

/// The node of an output.
fn result(instance: &Instance<'_>, index: usize, output: &Output, frame: Frame) -> Draft {
    let mut metadata = json!({"prompt": output.prompt});
    for (key, value) in [("model", &output.model), ("size", &output.size), ("quality", &output.quality)] {
        if let Some(value) = value {
            metadata[key] = value.as_str().into();
        }
    }
    let server = owned(port_note(instance, RecipeRole::Output, &output.key));
    let given = Given { id: instance.ids.outputs.get(index).cloned(), server, ..Given::default() };
    draft(output.kind.node_type(), &output.label, frame, metadata, given)
}

fn port_note(instance: &Instance<'_>, role: RecipeRole, key: &str) -> NodeRecipe {
    NodeRecipe { key: Some(key.to_owned()), instance: Some(instance.ids.instance.clone()), ..NodeRecipe::new(role) }
}

fn owned(note: NodeRecipe) -> ServerMetadata {
    ServerMetadata { recipe: Some(Box::new(note)), ..ServerMetadata::default() }
}

#[cfg(test)]
mod tests;
