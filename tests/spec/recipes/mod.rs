//! Recipes, forks and private workflows (docs/reference/recipes.md).

mod catalogue;
mod fork;
mod inputs;
mod runs;
mod stand_ins;
mod stops;
mod workflows;

use std::collections::BTreeMap;

use e2e::api::{key, text};
use e2e::{Client, Reply, Stack, User, images};
use serde_json::{Value, json};

/// An input that every run must provide.
fn input(key: &str, kind: &str) -> Value {
    json!({"key": key, "label": format!("The {key}"), "description": "d", "type": kind, "useAsDefault": false})
}

/// An output that depends on `from` and whose prompt names all of them.
fn output(key: &str, kind: &str, from: &[&str]) -> Value {
    let places: Vec<String> = from.iter().map(|key| format!("{{{{{key}}}}}")).collect();
    json!({
        "key": key, "label": format!("The {key}"), "description": "d", "type": kind, "prompt": places.join(" "),
        "inputKeys": from,
    })
}

/// A workflow with a text and an image as inputs, which makes a text and then an image from that text.
fn workflow() -> Value {
    json!({
        "name": "Two steps", "description": "A text, then its image.", "category": "Content Package",
        "tags": ["test"], "idempotencyKey": key(),
        "inputs": [input("brief", "text"), input("pack", "image")],
        "outputs": [output("copy", "text", &["brief"]), output("hero", "image", &["copy", "pack"])],
    })
}

/// `base` with the members of `more`.
fn with(mut base: Value, more: Value) -> Value {
    for (name, value) in more.as_object().expect("an object") {
        base[name] = value.clone();
    }
    base
}

async fn make_workflow(user: &Client, canvas: &str, body: &Value) -> Reply {
    user.send(&format!("/canvases/{canvas}/workflows"), body).await
}

/// Forks a Recipe onto the current revision of the canvas. `more` is merged into the request.
async fn fork_onto(user: &Client, recipe: &str, canvas: &Value, more: Value) -> Reply {
    let now = user.canvas(text(canvas, "/handle")).await;
    let body = json!({"canvasId": canvas["id"], "baseRevision": now["revision"], "idempotencyKey": key()});
    user.send(&format!("/recipes/{recipe}/fork"), &with(body, more)).await
}

/// The nodes of a canvas by id.
fn nodes(canvas: &Value) -> BTreeMap<String, Value> {
    let nodes = canvas["nodes"].as_array().expect("nodes").iter();
    nodes.map(|node| (text(node, "/id").to_owned(), node.clone())).collect()
}

/// The sources and the targets of the connections of a node, in the order of creation.
fn neighbours(canvas: &Value, node: &str) -> (Vec<String>, Vec<String>) {
    let ends = |far: &str, near: &str| {
        let connections = canvas["connections"].as_array().expect("connections").iter();
        let of_node = connections.filter(|connection| connection[near] == node);
        of_node.map(|connection| text(connection, &format!("/{far}")).to_owned()).collect()
    };
    (ends("fromNodeId", "toNodeId"), ends("toNodeId", "fromNodeId"))
}
