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
use e2e::{Client, Reply, Stack, User, pictures, suite};
use serde_json::{Value, json};

use catalogue::{
    a_published_version_never_changes, a_recipe_is_read_in_the_version_asked_for,
    a_recipe_shows_what_makes_its_outputs_for_the_caller, an_operator_is_told_what_a_file_breaks,
    the_catalogue_has_recipes_for_every_shelf, the_catalogue_is_searched_and_walked,
};
use fork::{
    a_fork_is_an_instance_connected_in_and_out, a_fork_is_made_for_a_revision, a_fork_is_near_a_node_or_in_a_section,
    a_fork_is_placed_where_it_is_wanted, a_fork_stands_clear_of_everything,
    a_fork_that_is_sent_again_makes_no_second_one, an_editor_forks_on_a_shared_canvas,
    an_unknown_recipe_is_404_and_an_unknown_version_422, the_ports_of_a_fork_are_the_users_to_edit,
};
use workflows::{
    a_source_whose_picture_was_deleted_is_empty, a_workflow_begins_with_its_sources_and_values,
    a_workflow_is_its_makers_alone, a_workflow_is_made_with_its_instance,
    a_workflow_that_is_sent_again_makes_no_second_one, definitions_that_contradict_themselves_are_400,
    models_that_do_not_fit_are_422, sources_that_do_not_fit_are_422, the_ranges_of_a_workflow,
};

suite! {
    recipes on Stack::builder().gateways(2);
    the_catalogue_has_recipes_for_every_shelf,
    the_catalogue_is_searched_and_walked,
    a_recipe_is_read_in_the_version_asked_for,
    a_recipe_shows_what_makes_its_outputs_for_the_caller,
    a_published_version_never_changes,
    an_operator_is_told_what_a_file_breaks,
    a_fork_is_an_instance_connected_in_and_out,
    a_fork_stands_clear_of_everything,
    a_fork_is_placed_where_it_is_wanted,
    a_fork_is_near_a_node_or_in_a_section,
    a_fork_is_made_for_a_revision,
    a_fork_that_is_sent_again_makes_no_second_one,
    an_unknown_recipe_is_404_and_an_unknown_version_422,
    an_editor_forks_on_a_shared_canvas,
    the_ports_of_a_fork_are_the_users_to_edit,
    a_workflow_is_made_with_its_instance,
    a_workflow_begins_with_its_sources_and_values,
    a_workflow_that_is_sent_again_makes_no_second_one,
    a_workflow_is_its_makers_alone,
    definitions_that_contradict_themselves_are_400,
    models_that_do_not_fit_are_422,
    sources_that_do_not_fit_are_422,
    a_source_whose_picture_was_deleted_is_empty,
    the_ranges_of_a_workflow,
}

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

/// A workflow with a text and a picture as inputs, which makes a text and then a picture from that text.
fn workflow() -> Value {
    json!({
        "name": "Two steps", "description": "A text, then its picture.", "category": "Content Package",
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
