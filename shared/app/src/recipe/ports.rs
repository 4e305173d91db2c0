//! The ports of a run, on an existing instance or on a new one, and the value of each input
//! (docs/reference/recipes.md#input-resolution).

use std::collections::{BTreeMap, HashSet};

use ::canvas::instance::{Filling, Ids};
use ::canvas::{Footprint, Graph};
use domain::Violation;
use domain::graph::{Node, NodeType};
use domain::id::{AccountUid, AssetHandle, NodeId, RecipeId};
use domain::metadata::{InstancePort, RecipeRole};
use domain::recipe::run::RunInput;
use domain::recipe::template::Template;
use domain::recipe::{Definition, Input, Output, PortValue, Version, matching};

use super::sources::{Given, held};
use crate::job::target_is_taken;
use crate::{Error, Result};

/// The nodes of an instance.
pub(super) struct Ports {
    /// Version of the instance.
    pub(super) version: String,
    /// Port nodes, in the order of the definition.
    pub(super) ids: Ids,
    /// Port nodes by key, as the instance's sticky records them, until they are matched with a definition.
    noted: Option<(BTreeMap<String, NodeId>, BTreeMap<String, NodeId>)>,
}

/// Port nodes by key, as the sticky of an instance records them.
fn noted(ports: Option<&Vec<InstancePort>>) -> BTreeMap<String, NodeId> {
    ports.into_iter().flatten().map(|port| (port.key.clone(), port.node_id.clone())).collect()
}

/// The nodes of an instance that a run reads and writes: its sticky, its ports, and nodes connected to its inputs.
pub(super) fn footprint_of_instance(graph: &Graph, id: &NodeId) -> Footprint {
    let note = graph.node(id).and_then(Node::recipe);
    let inputs = noted(note.and_then(|note| note.inputs.as_ref()));
    let outputs = noted(note.and_then(|note| note.outputs.as_ref()));
    let sources = inputs.values().flat_map(|port| graph.incoming(port)).map(|connection| &connection.from);
    let nodes = [id].into_iter().chain(inputs.values()).chain(outputs.values()).chain(sources);
    Footprint::of_nodes(nodes).with_links_into(inputs.values())
}

fn refuse<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::unprocessable("instanceNodeId", message))
}

impl Ports {
    /// Ports for an instance that is yet to be created.
    pub(super) fn fresh(definition: &Definition, version: Version) -> Self {
        let ids = Ids::generate(definition.inputs.len(), definition.outputs.len());
        Self { version: version.to_string(), ids, noted: None }
    }

    /// The ports that the sticky `id` records, if it is an instance of `recipe`; 409 when one of its outputs has an active job.
    pub(super) fn of_instance(graph: &Graph, id: &NodeId, recipe: &RecipeId) -> Result<Self> {
        let Some(node) = graph.node(id) else { return refuse("is not a node of the canvas") };
        let note = node.recipe().filter(|note| note.role == RecipeRole::Instance);
        let Some(note) = note else { return refuse("is not an instance of a Recipe") };
        if note.recipe != Some(recipe.into()) {
            return refuse("is an instance of another Recipe");
        }
        let (inputs, outputs) = (noted(note.inputs.as_ref()), noted(note.outputs.as_ref()));
        if outputs.values().filter_map(|id| graph.node(id)).any(|node| node.active_job.is_some()) {
            return Err(target_is_taken());
        }
        Ok(Self {
            version: note.version.clone().unwrap_or_default(),
            ids: Ids { instance: id.clone(), inputs: Vec::new(), outputs: Vec::new() },
            noted: Some((inputs, outputs)),
        })
    }

    /// The ports in the order of the definition; 422 when a port node is missing.
    pub(super) fn matched(mut self, graph: &Graph, definition: &Definition) -> Result<Self> {
        let (inputs, outputs) = self.noted.take().unwrap_or_default();
        let find = |key: &str, noted: &BTreeMap<String, NodeId>, kind: NodeType| match noted.get(key) {
            Some(id) if graph.node(id).is_some_and(|node| node.kind == kind) => Ok(id.clone()),
            _ => refuse(format!("lacks the node of {key}")),
        };
        for input in &definition.inputs {
            self.ids.inputs.push(find(&input.key, &inputs, input.kind.node_type())?);
        }
        for output in &definition.outputs {
            self.ids.outputs.push(find(&output.key, &outputs, output.kind.node_type())?);
        }
        Ok(self)
    }

    /// The steps: as defined, or, for an existing instance, with the prompts of its output nodes.
    pub(super) fn outputs(&self, graph: &Graph, definition: &Definition, is_new: bool) -> Result<Vec<Output>> {
        let mut outputs = definition.outputs.clone();
        if is_new {
            return Ok(outputs);
        }
        for (output, node) in outputs.iter_mut().zip(&self.ids.outputs) {
            let Some(node) = graph.node(node) else { continue };
            let text = |value: &Option<String>| value.clone().filter(|text| !text.trim().is_empty());
            if let Some(prompt) = text(&node.metadata.prompt) {
                output.prompt = prompt;
            }
            output.model = text(&node.metadata.model);
            output.size = text(&node.metadata.size);
            output.quality = text(&node.metadata.quality);
            let unknown =
                Template::parse(&output.prompt).names().find(|name| !output.input_keys.iter().any(|key| key == name));
            if let Some(name) = unknown {
                return refuse(format!(
                    "has a prompt of {} that names {name}, which is not one of its inputs",
                    output.key
                ));
            }
        }
        Ok(outputs)
    }
}

/// The values that an input of an instance can take, in order: that of its port, those of the nodes connected to it, with
/// these nodes, and the saved default.
fn candidates<'a>(
    graph: &'a Graph,
    port: &'a NodeId,
    input: &'a Input,
) -> impl Iterator<Item = (PortValue, Option<&'a NodeId>)> {
    let fits = |node: &Node| held(node).filter(|held| input.accepts(held).is_ok());
    let own = graph.node(port).and_then(fits).map(|held| (held, None));
    let sources = graph.incoming(port).filter_map(|connection| graph.node(&connection.from));
    let connected = sources.filter_map(move |node| Some((fits(node)?, Some(&node.id))));
    own.into_iter().chain(connected).chain(input.default.clone().map(|held| (held, None)))
}

/// The value of every input, and what a port of a new instance holds with it: what the request gives, else what the instance's port
/// holds, else the saved default. Violations are reported as `inputs.<key>`.
#[expect(clippy::too_many_arguments, reason = "they are one run's parts, and it is called once")]
pub(super) async fn resolve(
    conn: &mut db::PgConnection,
    account: &AccountUid,
    graph: &Graph,
    definition: &Definition,
    ports: &Ports,
    given: &BTreeMap<String, Given>,
    is_new: bool,
    refused: &mut Vec<Violation>,
) -> Result<(Vec<RunInput>, Vec<Filling>)> {
    let nodes: Vec<String> = ports.ids.inputs.iter().map(ToString::to_string).collect();
    let mut named: BTreeMap<usize, &Given> = BTreeMap::new();
    for (name, value) in given {
        match matching::port(&definition.inputs, &nodes, name) {
            Err(error) => refused.push(Violation::new(format!("inputs.{name}"), error.to_string())),
            Ok(at) if named.insert(at, value).is_some() => {
                refused
                    .push(Violation::new(format!("inputs.{name}"), "names an input that another entry already gives"));
            }
            Ok(_) => {}
        }
    }
    let (mut inputs, mut fillings) = (Vec::new(), Vec::new());
    for (at, (input, node)) in definition.inputs.iter().zip(&ports.ids.inputs).enumerate() {
        let (filling, source) = match named.get(&at) {
            Some(value) => match value.resolve(conn, account, graph).await?.and_then(|held| {
                input.accepts(&held)?;
                Ok(held)
            }) {
                Ok(held) => {
                    let source = Some(*value).filter(|value| !matches!(value, Given::Text(_))).map(Given::canonical);
                    (readable(conn, account, Some(held)).await?, source)
                }
                Err(message) => {
                    refused.push(Violation::new(format!("inputs.{}", input.key), message));
                    continue;
                }
            },
            None if is_new => (readable(conn, account, input.default.clone()).await?, None),
            None => {
                let mut found = (Filling::default(), None);
                for (held, source) in candidates(graph, node, input) {
                    found = (readable(conn, account, Some(held)).await?, source.map(NodeId::handle));
                    if found.0.held.is_some() {
                        break;
                    }
                }
                found
            }
        };
        let Some(held) = filling.held.clone() else {
            refused.push(Violation::new(format!("inputs.{}", input.key), "is required and has no default"));
            continue;
        };
        let node_of = |source: &str| NodeId::parse(source).ok().filter(|_| source.starts_with("node:"));
        fillings.push(Filling { source: source.as_deref().and_then(node_of), ..filling });
        inputs.push(RunInput {
            key: input.key.clone(),
            label: input.label.clone(),
            kind: input.kind,
            node: node.clone(),
            source,
            held,
        });
    }
    Ok((inputs, fillings))
}

/// Keeps the images of new ports from being deleted until the transaction ends; 422 when one was deleted since it was looked up.
pub(super) async fn hold(conn: &mut db::PgConnection, fillings: &[Filling]) -> Result<()> {
    let image = |filling: &Filling| match &filling.held {
        Some(PortValue::Asset(asset)) => Some(asset.clone()),
        _ => None,
    };
    let assets: HashSet<AssetHandle> = fillings.iter().filter_map(image).collect();
    if assets.is_empty() || db::assets::hold(conn, assets.iter()).await? == assets.len() as u64 {
        return Ok(());
    }
    Err(Error::unprocessable("inputs", "an image that a port would show was deleted in the meantime"))
}

/// A port with this value, or an empty one if the value is an image that the account cannot read: one that was saved earlier or
/// is on the canvas.
pub(super) async fn readable(
    conn: &mut db::PgConnection,
    account: &AccountUid,
    held: Option<PortValue>,
) -> Result<Filling> {
    let size = size_of(conn, account, held.as_ref()).await?;
    let is_kept = |held: &PortValue| size.is_some() || !matches!(held, PortValue::Asset(_));
    Ok(Filling { held: held.filter(is_kept), size, source: None })
}

/// Width and height in pixels of a value that is an image which the account can read.
async fn size_of(
    conn: &mut db::PgConnection,
    account: &AccountUid,
    held: Option<&PortValue>,
) -> Result<Option<(f64, f64)>> {
    let Some(PortValue::Asset(asset)) = held else { return Ok(None) };
    let found = db::assets::get_readable(conn, account, asset).await?;
    Ok(found.map(|(asset, _)| (asset.width.into(), asset.height.into())))
}
