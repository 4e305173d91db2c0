//! Changes of a canvas: every one is a batch of operations.

use std::collections::BTreeMap;
use std::path::Path;

use client::Answer;
use client::answers::MutationResult;
use domain::canvas::Node as CanvasNode;
use domain::review::DryRun;
use serde_json::{Value, json};

use super::canvases::findings;
use super::files::is_stdio;
use super::pictures::picture_if;
use crate::args::{Apply, Connect, Disconnect, Node, NodeAdd, NodeKind, NodeSet, Position, Write};
use crate::context::{Body, Context, text_or_stdin};
use crate::failure::{Outcome, file, usage};
use crate::journal;
use crate::output::text;

/// A batch, with the other members of the caller's file.
#[derive(Default)]
struct Batch {
    operations: Value,
    /// The revision that it is based on.
    base: Option<String>,
    /// The idempotency key.
    key: Option<String>,
    force: bool,
    dry_run: bool,
}

impl Batch {
    fn new(operations: Value) -> Self {
        Self { operations, ..Self::default() }
    }

    /// The body of the operations route. A member that would not be sent as it is written is refused.
    fn of_body(mut body: Body) -> Result<Self, String> {
        let mut text = |name: &str| match body.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("`{name}` must be a text")),
        };
        let (base, key) = (text("baseRevision")?, text("idempotencyKey")?);
        let mut flag = |name: &str| match body.remove(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(format!("`{name}` must be true or false")),
        };
        let (force, dry_run) = (flag("force")?, flag("validateOnly")?);
        let operations = body.remove("operations").unwrap_or_default();
        match body.keys().next() {
            Some(name) => Err(format!("a batch has no member `{name}`")),
            None => Ok(Self { operations, base, key, force, dry_run }),
        }
    }
}

pub async fn apply(context: &Context, apply: &Apply) -> Outcome {
    let path = apply.file.as_deref().unwrap_or(Path::new("-"));
    let content = match is_stdio(path) {
        true => text_or_stdin("-").await?,
        false => tokio::fs::read_to_string(path).await.map_err(|error| file(path, &error))?,
    };
    let batch = match serde_json::from_str(&content) {
        Ok(Value::Array(operations)) => Batch::new(operations.into()),
        Ok(Value::Object(body)) => match Batch::of_body(body) {
            Ok(batch) => batch,
            Err(error) => return usage(format!("{}: {error}", path.display())),
        },
        Ok(_) => return usage(format!("{}: is neither a batch nor an array of operations", path.display())),
        Err(error) => return usage(format!("{}: {error}", path.display())),
    };
    let on = context.on(apply.write.on.on.as_deref()).await?;
    write(context, batch, &on, &apply.write).await
}

pub async fn node(context: &Context, node: Node) -> Outcome {
    let (Node::Add(NodeAdd { write: options, .. })
    | Node::Set(NodeSet { write: options, .. })
    | Node::Move { write: options, .. }
    | Node::Rm { write: options, .. }) = &node;
    let options = options.clone();
    let on = context.on(options.on.on.as_deref()).await?;
    let operations = match node {
        Node::Add(add) => {
            let mut node = Body::new();
            let kind = match add.kind {
                NodeKind::Text => "text",
                NodeKind::Sticky => "sticky",
                NodeKind::Image => "image",
                NodeKind::Video => "video",
            };
            node.insert("type".into(), json!(kind));
            insert(&mut node, "title", add.title);
            insert(
                &mut node,
                "asset",
                match picture_if(context, Some(&on), add.asset).await? {
                    Some(picture) => Some(context.asset_of(Some(&on), &picture).await?),
                    None => None,
                },
            );
            insert(&mut node, "width", add.width);
            insert(&mut node, "height", add.height);
            insert(&mut node, "metadata", metadata(add.text.as_deref(), add.alt).await?);
            let Position { x, y, near, section } = add.position;
            if let (Some(x), Some(y)) = (x, y) {
                node.insert("position".into(), json!({"x": x, "y": y}));
            }
            let mut operation =
                Body::from_iter([("type".into(), json!("node.create")), ("clientId".into(), json!("new"))]);
            operation.insert("node".into(), node.into());
            insert(&mut operation, "near", context.node_if(&on, near).await?);
            insert(&mut operation, "sectionId", context.node_if(&on, section).await?);
            json!([operation])
        }
        Node::Set(set) => {
            let mut patch = Body::new();
            insert(&mut patch, "title", set.title);
            insert(&mut patch, "width", set.width);
            insert(&mut patch, "height", set.height);
            insert(&mut patch, "metadata", metadata(set.text.as_deref(), set.alt).await?);
            if patch.is_empty() {
                return usage("nothing to set: --title, --text, --alt, --width or --height");
            }
            json!([{"type": "node.update", "nodeId": context.node(&on, &set.node).await?, "patch": patch}])
        }
        Node::Move { node, x, y, with_members, .. } => {
            let node = context.node(&on, &node).await?;
            let mut operation = json!({"type": "node.move", "nodeId": node, "position": {"x": x, "y": y}});
            if with_members {
                operation["withMembers"] = json!(true);
            }
            json!([operation])
        }
        Node::Rm { nodes, .. } => {
            let nodes = context.nodes(&on, nodes).await?;
            nodes.iter().map(|node| json!({"type": "node.delete", "nodeId": node})).collect()
        }
    };
    write(context, Batch::new(operations), &on, &options).await
}

pub async fn connect(context: &Context, connect: Connect) -> Outcome {
    let on = context.on(connect.write.on.on.as_deref()).await?;
    let ends = context.nodes(&on, vec![connect.from, connect.to]).await?;
    let mut operation = json!({
        "type": "connection.create", "clientId": "new",
        "fromNodeId": ends[0], "toNodeId": ends[1], "purpose": connect.purpose,
    });
    if let Some(role) = &connect.role {
        operation["role"] = json!(role);
    }
    write(context, Batch::new(json!([operation])), &on, &connect.write).await
}

pub async fn disconnect(context: &Context, disconnect: Disconnect) -> Outcome {
    let delete = |connection: &String| json!({"type": "connection.delete", "connectionId": connection});
    let on = context.on(disconnect.write.on.on.as_deref()).await?;
    let connections = context.connections(&on, disconnect.connections).await?;
    let operations = connections.iter().map(delete).collect();
    write(context, Batch::new(operations), &on, &disconnect.write).await
}

/// Sets a member if there is a value.
pub fn insert(body: &mut Body, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        body.insert(name.into(), value.into());
    }
}

/// The metadata of a node that the options name, if they name any.
async fn metadata(text: Option<&str>, alt: Option<String>) -> Outcome<Option<Body>> {
    let mut metadata = Body::new();
    if let Some(text) = text {
        metadata.insert("content".into(), text_or_stdin(text).await?.into());
    }
    insert(&mut metadata, "altText", alt);
    Ok((!metadata.is_empty()).then_some(metadata))
}

/// Applies operations.
pub async fn write_all(context: &Context, operations: Value, on: &str, options: &Write) -> Outcome {
    write(context, Batch::new(operations), on, options).await
}

async fn write(context: &Context, batch: Batch, on: &str, options: &Write) -> Outcome {
    let force = batch.force || options.force;
    if options.dry_run || batch.dry_run {
        let mut body = Body::from_iter([("validateOnly".into(), json!(true)), ("operations".into(), batch.operations)]);
        insert(&mut body, "baseRevision", batch.base);
        insert(&mut body, "force", force.then_some(true));
        let answer = call::<DryRun>(context, on, options, &body).await?;
        // What changes is read for people alone.
        let nodes = if context.output.json { Vec::new() } else { context.graph(on).await?.nodes.values().collect() };
        context.output.answer(&answer, |it| {
            let plan = plan(&body["operations"], &it.proposal.resolved_ids, &BTreeMap::new(), &nodes);
            let detached = it.destructive_impact.detached_assets;
            let detached = detached.into_iter().map(|asset| format!("! no node shows {asset} any more"));
            plan.into_iter().chain(detached).chain([findings(&it.validation)]).collect::<Vec<_>>().join("\n")
        });
        return Ok(());
    }
    let content = batch.operations.to_string();
    let [base, key] = [&batch.base, &batch.key].map(|it| it.as_deref().unwrap_or_default());
    let name = journal::hash(&[&context.origin, "apply", on, &content, base, key, if force { "force" } else { "" }]);
    let entry = match journal::find(&name)? {
        Some(entry) => entry,
        None => {
            let revision = match batch.base {
                Some(base) => base,
                None => context.revision(on).await?,
            };
            let key = batch.key.unwrap_or_else(|| format!("cli-{}", journal::hash(&[&name, &revision])));
            let mut body =
                Body::from_iter([("baseRevision".into(), json!(revision)), ("idempotencyKey".into(), json!(key))]);
            body.insert("operations".into(), batch.operations);
            insert(&mut body, "force", force.then_some(true));
            journal::begin(&name, body)?
        }
    };
    let answer = call::<MutationResult>(context, on, options, &entry.body).await;
    let operations = entry.body["operations"].clone();
    if !answer.as_ref().is_err_and(client::Error::is_temporary) {
        entry.end();
    }
    let answer = answer?;
    let made = |it: &MutationResult| created(&operations, &it.resolved_ids);
    context.output.made(&answer, made, |it| {
        let plan = plan(&operations, &it.resolved_ids, &it.refs, &[]);
        plan.into_iter().chain([format!("revision {}", text(it.canvas.revision()))]).collect::<Vec<_>>().join("\n")
    });
    if answer.value().is_ok_and(|it| it.replayed) {
        context.output.remark("This was applied before; nothing was applied twice.");
    }
    Ok(())
}

async fn call<T: 'static>(context: &Context, on: &str, options: &Write, body: &Body) -> client::Result<Answer<T>> {
    let call = context.client.apply_operations(on).cast().prefer("return=minimal").json(body);
    if options.rebase { call.prefer("handling=lenient").await } else { call.await }
}

/// The handle of what an operation creates, by its `clientId`.
fn created_by(operation: &Value, resolved: &BTreeMap<String, String>) -> Option<String> {
    let kind = operation["type"].as_str()?.split('.').next()?;
    let id = resolved.get(operation["clientId"].as_str()?)?;
    Some(format!("{}:{}", if kind == "connection" { kind } else { "node" }, text(id)))
}

/// The handles of what operations create.
fn created(operations: &Value, resolved: &BTreeMap<String, String>) -> Vec<String> {
    operations.as_array().into_iter().flatten().filter_map(|it| created_by(it, resolved)).collect()
}

/// A line for each operation: what it adds (+), changes (~) or deletes (-), by its ref if it is known, with its title and, of one of
/// these nodes, what it was and becomes. What is added has its handle without a ref.
fn plan(
    operations: &Value,
    resolved: &BTreeMap<String, String>,
    refs: &BTreeMap<String, String>,
    nodes: &[CanvasNode],
) -> Vec<String> {
    let known = |name: &str| {
        let name = name.strip_prefix("node:").unwrap_or(name);
        nodes.iter().find(|it| it.id.as_str() == name || it.short.is_some_and(|short| short.to_string() == name))
    };
    let short = |name: String| known(&name).and_then(|it| it.short).map_or(name, |short| short.to_string());
    let line = |operation: &Value| {
        let member = |value: &Value| value.as_str().filter(|it| !it.is_empty()).map(text);
        let kind = member(&operation["type"]).unwrap_or_default();
        let sign = match kind.rsplit('.').next() {
            Some("create" | "duplicate" | "restore") => '+',
            Some("delete") => '-',
            _ => '~',
        };
        let named = ["nodeId", "connectionId", "sectionId"].iter().find_map(|key| member(&operation[*key]));
        let created = created_by(operation, resolved).map(|handle| {
            let short = handle.split_once(':').and_then(|(_, id)| refs.get(id)).map(text);
            short.unwrap_or(handle)
        });
        let node = named.as_deref().and_then(known);
        let before = node.map(|it| text(&it.title)).filter(|title| !title.is_empty());
        let title = [&operation["node"], &operation["patch"], operation].iter().find_map(|it| member(&it["title"]));
        let title = match (before, title) {
            (Some(before), Some(after)) => Some(format!("{before} → {after}")),
            (before, after) => after.or(before),
        };
        let moved = node.filter(|_| kind == "node.move").map(|it| {
            let to = &operation["position"];
            let [x, y] = ["x", "y"].map(|key| to[key].as_f64().unwrap_or_default());
            format!("{},{} → {x},{y}", it.position.x, it.position.y)
        });
        let ends = member(&operation["fromNodeId"]).zip(member(&operation["toNodeId"]));
        let ends = ends.map(|(from, to)| format!("{} → {}", short(from), short(to)));
        let parts = [Some(format!("{sign} {kind}")), created.or(named.map(&short)), title, moved, ends];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    operations.as_array().into_iter().flatten().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_a_line_for_each_operation() {
        let operations = json!([
            {"type": "node.create", "clientId": "a", "node": {"type": "text", "title": "Brief"}},
            {"type": "node.update", "nodeId": "n1", "patch": {"title": "New"}},
            {"type": "node.delete", "nodeId": "n2"},
            {"type": "connection.create", "clientId": "c", "fromNodeId": "n1", "toNodeId": "a"},
        ]);
        let expected = [
            "+ node.create n7 Brief",
            "~ node.update n1 New",
            "- node.delete n2",
            "+ connection.create connection:8 n1 → a",
        ];
        let resolved = BTreeMap::from([("a".into(), "9".into()), ("c".into(), "8".into())]);
        assert_eq!(plan(&operations, &resolved, &BTreeMap::from([("9".into(), "n7".into())]), &[]), expected);
    }
}
