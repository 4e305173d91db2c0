//! Batches that a caller names instead of writing them again (docs/reference/tools.md#resubmit).

use std::collections::BTreeMap;

use http::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::answer::Next;
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::failure::{Failure, Retry};
use crate::tool::Result;
use crate::tools::canvas_delete;

/// The longest batch that is written into an answer, in bytes.
const WRITTEN_MAX: usize = 600;
/// Most things that are named of each kind of change.
const NAMES_MAX: usize = 6;

/// Sets the batch of a step aside if it is long. The step then names it by `resubmit` and says what it does. It stays as it is when the
/// service does not take the batch.
pub async fn shorten(call: &Call, step: &mut Next) {
    let list = |name: &str| step.arguments[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let (written, operations): (&[&str], _) = match step.tool {
        "canvas_edit" => (&["operations"], list("operations").to_vec()),
        "canvas_delete" => (&["nodes", "connections"], canvas_delete::operations(list("nodes"), list("connections"))),
        _ => return,
    };
    let bytes = written.iter().filter_map(|name| step.arguments.get(*name)).map(|it| it.to_string().len());
    if bytes.sum::<usize>() <= WRITTEN_MAX {
        return;
    }
    let Ok(canvas) = CanvasName::deserialize(&step.arguments["canvas"]) else { return };
    let kept = call.client.set_batch_aside(&canvas.handle()).json(&json!({"operations": operations})).await;
    let Ok(kept) = kept.and_then(|read| read.value()) else { return };
    step.why = format!("{}: {}", step.why, in_words(&operations, &BTreeMap::new()));
    if let Some(arguments) = step.arguments.as_object_mut() {
        arguments.retain(|name, _| !written.contains(&name.as_str()));
        arguments.insert("resubmit".to_owned(), kept.id.into());
    }
}

/// The operations of a batch that was set aside.
pub async fn read<T: DeserializeOwned>(call: &Call, canvas: &str, id: &str) -> Result<Vec<T>> {
    match call.client.get_batch_set_aside(canvas, id).await.and_then(|read| read.value()) {
        Ok(kept) => {
            let read = |operation| T::deserialize(Value::Object(operation));
            let operations: Result<_, _> = kept.operations.into_iter().map(read).collect();
            operations.map_err(|error| Failure::argument("resubmit", error.to_string()))
        }
        Err(error) => Err(match error.problem() {
            Some(problem) if problem.status == StatusCode::BAD_REQUEST || problem.message.starts_with("batch") => {
                let message = "no batch of this canvas is kept under this name, or it has ended: write the batch again";
                let read = Next::new("canvas_read", json!({"canvas": canvas}), "the canvas, to write the batch again");
                Failure::new("not_found", message, Retry::WithChanges).then(read)
            }
            _ => error.into(),
        }),
    }
}

/// The idempotency key of a batch that was set aside: it is applied once, however often it is named.
pub fn key(id: &str) -> String {
    format!("resubmit-{id}")
}

/// What operations do, in a few words: `moves n12, n14; fits n3`. `refs` are names of ids.
pub fn in_words(operations: &[Value], refs: &BTreeMap<String, String>) -> String {
    // In the order in which they first occur.
    let mut changes: Vec<(&str, Vec<(String, usize)>)> = Vec::new();
    for operation in operations {
        let (verb, name) = of_operation(operation, refs);
        let names = match changes.iter().position(|(of, _)| *of == verb) {
            Some(at) => &mut changes[at].1,
            None => {
                changes.push((verb, Vec::new()));
                &mut changes.last_mut().expect("one was added").1
            }
        };
        match names.iter_mut().find(|(of, _)| *of == name) {
            Some((_, count)) => *count += 1,
            None => names.push((name, 1)),
        }
    }
    let in_words = changes.iter().map(|(verb, names)| {
        let shown = names.iter().take(NAMES_MAX).map(|(name, count)| match count {
            1 => name.clone(),
            count => format!("{count} × {name}"),
        });
        let shown = shown.collect::<Vec<_>>().join(", ");
        match names.len().saturating_sub(NAMES_MAX) {
            0 => format!("{verb} {shown}"),
            more => format!("{verb} {shown} and {more} more"),
        }
    });
    in_words.collect::<Vec<_>>().join("; ")
}

/// What an operation does, and to what.
fn of_operation(operation: &Value, refs: &BTreeMap<String, String>) -> (&'static str, String) {
    let plain = |id: &Value| {
        let id = id.as_str()?.rsplit(':').next()?;
        Some(refs.get(id).map_or(id, String::as_str).to_owned())
    };
    let named = |member: &str| plain(&operation[member]).unwrap_or_default();
    let kind = operation["type"].as_str().unwrap_or_default();
    let nodes = || match operation["nodeIds"].as_array() {
        Some(nodes) => nodes.iter().filter_map(plain).collect::<Vec<_>>().join(" "),
        None => named("sectionId"),
    };
    match kind {
        "node.create" => ("makes", plain(&operation["node"]["type"]).unwrap_or_default()),
        "section.create" => ("makes", format!("Section {}", operation["title"])),
        "node.duplicate" => ("copies", named("nodeId")),
        "node.move" => ("moves", named("nodeId")),
        "node.delete" => ("deletes", named("nodeId")),
        "node.restore" => ("restores", named("nodeId")),
        "node.fit" | "section.fit" => ("fits", named("nodeId")),
        "connection.create" => ("connects", format!("{} -> {}", named("fromNodeId"), named("toNodeId"))),
        "connection.update" => ("changes", named("connectionId")),
        "connection.delete" => ("deletes", named("connectionId")),
        "connection.restore" => ("restores", named("connectionId")),
        "layout.arrange" => ("arranges", nodes()),
        "canvas.update" => ("renames", "the canvas".to_owned()),
        _ => ("changes", named("nodeId")),
    }
}

#[cfg(test)]
mod tests {
    use domain::operation::Operation;

    use super::*;

    #[test]
    fn a_batch_is_told_in_words() {
        let moves = |node: &str| json!({"type": "node.move", "nodeId": node, "position": {"x": 0, "y": 0}});
        let create = json!({"type": "node.create", "node": {"type": "text"}});
        for (operations, words) in [
            (json!([]), ""),
            (
                json!([moves("n12"), {"type": "section.fit", "nodeId": "node:n3"}, moves("node:n14")]),
                "moves n12, n14; fits n3",
            ),
            (json!([create, create, {"type": "section.create", "title": "A"}]), r#"makes 2 × text, Section "A""#),
            (json!([{"type": "connection.create", "fromNodeId": "n1", "toNodeId": "n2"}]), "connects n1 -> n2"),
            (
                json!([{"type": "layout.arrange", "layout": "row", "nodeIds": ["n1", "n2"]}, {"type": "canvas.update", "title": "T"}]),
                "arranges n1 n2; renames the canvas",
            ),
            (
                json!((1..=8).map(|at| moves(&format!("n{at}"))).collect::<Vec<_>>()),
                "moves n1, n2, n3, n4, n5, n6 and 2 more",
            ),
        ] {
            assert_eq!(in_words(operations.as_array().expect("a list"), &BTreeMap::new()), words);
        }
        let refs = BTreeMap::from([("0198c5a0".to_owned(), "n4".to_owned())]);
        assert_eq!(in_words(&[moves("node:0198c5a0")], &refs), "moves n4");
    }

    #[test]
    fn every_operation_has_a_word() {
        for form in Operation::forms() {
            let kind = form["properties"]["type"]["enum"][0].as_str().expect("a type");
            let (verb, _) = of_operation(&json!({"type": kind}), &BTreeMap::new());
            assert!(verb != "changes" || kind.ends_with(".update"), "{kind}");
        }
    }
}
