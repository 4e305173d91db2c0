//! What a caller can do about a refusal: the steps that come next (docs/reference/tools.md#errors).
//!
//! **Guarantee.** A refusal that the caller can do something about has a step. One without a remark about `<>` can be called as it is.
//! **Mechanism.** What the violated rules say is [corrected](Corrected); what only the service knows, such as the present revision or the
//! handle of what a title names, is read now. These requests read, or are dry runs.

use std::collections::BTreeMap;

use client::answers::NodeRead;
use domain::action::Parameter;
use domain::metadata::ServerMetadata;
use domain::refs::{ConnectionRef, NodeRef};
use domain::review::DryRun;
use domain::violation::Rule;
use domain::{Violation, counted};
use serde::Deserialize;
use serde_json::{Map, Number, Value, json};

use crate::answer::Next;
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::correct::{Corrected, nearest};
use crate::failure::{Failure, Retry};
use crate::resubmit;
use crate::tool::Tool;
use crate::tools::action_run::ActionRun;
use crate::tools::describe;
use crate::tools::find::Find;

/// Longest call with placeholders, in bytes: a longer one is not written again only to show what is missing.
const OPEN_CALL_MAX: usize = 2000;
/// Most changes that are told of a corrected call.
const CHANGES_MAX: usize = 6;
/// Matches that a search for a name looks at.
const MATCHES_MAX: usize = 25;
/// Longest text that is searched for, in characters.
const QUERY_MAX: usize = 200;

/// Arguments that name a thing, and its kind.
const THINGS: [(&str, &str); 19] = [
    ("handle", ANY),
    ("canvas", "canvas"),
    ("recipe", "recipe"),
    ("fork", "recipe"),
    ("model", "model"),
    ("action", "action"),
    ("element", "element"),
    ("target", "element"),
    ("elements", "element"),
    ("collection", "collection"),
    ("run", "run"),
    ("runs", "run"),
    ("retryOf", "run"),
    ("asset", "asset"),
    ("inputs", "asset"),
    ("references", "asset"),
    ("source", "asset"),
    ("mask", "asset"),
    ("items", "asset"),
];
/// The kind of a thing that only the service can tell.
const ANY: &str = "any";
/// The kinds that it is searched for as, in their order.
const KINDS: [&str; 6] = ["asset", "element", "recipe", "model", "collection", "canvas"];

/// Members that name a node or a connection of the canvas, or several.
const NODES: [&str; 15] = [
    "nodeId",
    "nodeIds",
    "fromNodeId",
    "toNodeId",
    "connectionId",
    "near",
    "sectionId",
    "section",
    "nodes",
    "target",
    "targets",
    "instance",
    "promptNode",
    "node",
    "items",
];

/// Adds the next steps to a failure that has none. `schema` is that of the tool's arguments.
pub async fn add_next(mut failure: Failure, call: &Call, schema: &Value) -> Failure {
    for step in &mut failure.next {
        resubmit::shorten(call, step).await;
    }
    if failure.next.is_empty() && failure.retry == Retry::WithChanges {
        failure.next = steps(&mut failure, call, schema).await;
        if failure.next.is_empty() {
            failure.next.push(upload_link(call).unwrap_or_else(|| look(call.tool, &call.arguments)));
        }
    }
    failure
}

async fn steps(failure: &mut Failure, call: &Call, schema: &Value) -> Vec<Next> {
    if failure.code == "not_found" {
        return not_found(&failure.message, call).await;
    }
    if is_about_active_work(failure)
        && let Some(next) = wait_for_work(failure, call, schema).await
    {
        return vec![next];
    }
    corrected(failure, call, schema).await
}

/// The call as it may be, or what tells how it may be.
async fn corrected(failure: &mut Failure, call: &Call, schema: &Value) -> Vec<Next> {
    let (sent, mut again) = (Corrected::new(&call.arguments), Corrected::new(&call.arguments));
    if call.tool == ActionRun::NAME {
        again.gather_steps();
    }
    let mut left = Vec::new();
    let mut fields: Vec<(String, Violation)> =
        failure.fields.iter().map(|it| (again.path(&it.field, schema), it.clone())).collect();
    // A wrong name may be that of a member that is missing.
    fields.sort_by_key(|(_, violation)| violation.rule() != Some(Rule::Unknown));
    for (path, violation) in fields {
        let is_given = again.get(&path).is_some();
        // It was given under another name, or is left out already.
        if violation.rule() == Some(Rule::Required) && is_given || !is_given && sent.get(&path).is_some() {
            continue;
        }
        if path == "revision" {
            let revision = present_revision(call).await;
            if revision.is_some_and(|revision| again.set("revision", revision.into())) {
                continue;
            }
            // The canvas cannot be read by the name that it has here.
            return thing("canvas", "canvas", again, false, call).await;
        }
        // The schema does not have the names of parameters.
        let is_unknown_parameter = violation.rule() == Some(Rule::Unknown) && path.contains("params.");
        if is_unknown_parameter || !again.correct(&path, &violation, schema) {
            left.push((path, violation));
        }
    }
    let parameters = params(&mut again, &mut left, call).await;
    if !parameters.is_empty() {
        failure.set_detail("parameters", parameters.into());
    }
    if let Some((path, violation)) = left.first().cloned() {
        let is_last = left.len() == 1;
        let names_a_node = is_node(&path) && again.get(&path).and_then(Value::as_str).is_some();
        let is_about_a_name = !matches!(violation.rule(), Some(Rule::Type(_) | Rule::OneOf(_) | Rule::ItemsMax(_)));
        if names_a_node && violation.rule() != Some(Rule::Required) && is_about_a_name {
            return node(&path, again, is_last, call).await;
        }
        if let Some(kind) = kind(&path).filter(|_| is_about_a_name) {
            return thing(&path, kind, again, is_last, call).await;
        }
    }
    for (path, violation) in &left {
        // Only the rules of a schema say what is wrong with the value itself.
        let is_open = violation.rule().is_some() && again.leave_open(path, violation, schema);
        if !is_open {
            return vec![];
        }
    }
    if !again.holes.is_empty() && again.arguments.to_string().len() > OPEN_CALL_MAX {
        return vec![];
    }
    same_call(again, call).await
}

/// The corrected call, and the one for the rest.
async fn same_call(again: Corrected, call: &Call) -> Vec<Next> {
    let Corrected { arguments, changes, rest, holes } = again;
    if changes.is_empty() && holes.is_empty() {
        return vec![];
    }
    if call.tool == "asset_upload" && arguments.get("files").or_else(|| arguments.get("paths")).is_none() {
        // The bytes are not repeated.
        return vec![];
    }
    let more = changes.len().saturating_sub(CHANGES_MAX);
    let more = (more > 0).then(|| format!("and {}", counted(more, "more change")));
    let changes = changes.into_iter().take(CHANGES_MAX).chain(more);
    let why = ["the same".to_owned()].into_iter().chain(changes).collect::<Vec<_>>().join(", ");
    let rest = rest.map(|rest| {
        let is_open = rest["revision"].as_str().is_some_and(|revision| revision.starts_with('<'));
        Next::new(
            call.tool,
            rest,
            if is_open { "then the rest; replace what is in <>: revision" } else { "then the rest" },
        )
    });
    if !holes.is_empty() {
        let why = format!("{why}; replace what is in <>: {}", holes.join(", "));
        return vec![Next::new(call.tool, arguments, why)];
    }
    let mut steps: Vec<Next> = [Next::new(call.tool, arguments, why)].into_iter().chain(rest).collect();
    for step in &mut steps {
        resubmit::shorten(call, step).await;
    }
    steps
}

/// Corrects parameters of an Action: a wrong name becomes the nearest known one, a wrong value the default. Returns a line for each
/// parameter that is wrong.
async fn params(again: &mut Corrected, left: &mut Vec<(String, Violation)>, call: &Call) -> Vec<String> {
    let sent = Corrected::new(&call.arguments);
    let mut actions: BTreeMap<String, Vec<Parameter>> = BTreeMap::new();
    let (mut lines, mut still_left) = (Vec::new(), Vec::new());
    for (path, violation) in std::mem::take(left) {
        let Some((at, name)) = path.split_once("params.") else {
            still_left.push((path, violation));
            continue;
        };
        let slug = again.get(&format!("{at}action")).and_then(Value::as_str).unwrap_or_default().to_owned();
        if !actions.contains_key(&slug) {
            let read = call.client.get_action(&slug).await.and_then(|read| read.value());
            actions.insert(slug.clone(), read.map(|read| read.action.parameters).unwrap_or_default());
        }
        let Some(parameters) = actions.get(&slug).filter(|parameters| !parameters.is_empty()) else {
            still_left.push((path, violation));
            continue;
        };
        let ids = || parameters.iter().map(|parameter| parameter.id.as_ref());
        let meant = if ids().any(|id| id == name) { Some(name) } else { nearest(name, ids()) };
        let known = parameters.iter().find(|parameter| meant == Some(parameter.id.as_ref()));
        if let Some(line) = known.map(describe::parameter).filter(|line| !lines.contains(line)) {
            lines.push(line);
        }
        let was_given = sent.get(&path).is_some();
        let done = match (known, again.get(&path).cloned()) {
            (_, Some(_)) if meant != Some(name) => again.rename(&path, ids()),
            // Given under another name.
            (Some(_), Some(_)) if !was_given => true,
            (Some(Parameter { default: Some(default), .. }), _) => again.set(&path, default.clone()),
            (Some(parameter), Some(given)) => match within(parameter, &given) {
                Some(value) => again.set(&path, value),
                None => !parameter.required && again.leave_out(&path),
            },
            _ => false,
        };
        if !done {
            still_left.push((path, violation));
        }
    }
    *left = still_left;
    lines
}

/// A number within the bounds of a parameter.
fn within(parameter: &Parameter, given: &Value) -> Option<Value> {
    let number = given.as_f64()?;
    let bounded = number.max(parameter.min.unwrap_or(number)).min(parameter.max.unwrap_or(f64::INFINITY));
    match parameter.integer {
        // Bounds of whole numbers may be between two of them.
        Some(true) => Some((bounded.round().min(parameter.max.unwrap_or(bounded).floor()) as i64).into()),
        _ => Number::from_f64(bounded).map(Value::Number),
    }
}

/// The kind of the thing that a path names, if it names one.
fn kind(path: &str) -> Option<&'static str> {
    if let Some((_, member)) = path.strip_prefix("steps[").and_then(|path| path.split_once("].")) {
        return [("action", "action"), ("with", "asset")]
            .into_iter()
            .find(|(name, _)| *name == member)
            .map(|(_, kind)| kind);
    }
    let root = path.split(['.', '[']).next().unwrap_or_default();
    let rest = path[root.len()..].trim_start_matches(|it: char| it == '[' || it == ']' || it.is_ascii_digit());
    let known = THINGS.iter().find(|(argument, _)| *argument == root && matches!(rest, "" | ".handle"));
    known.map(|(_, kind)| *kind)
}

fn is_node(path: &str) -> bool {
    let path = path.trim_end_matches(|it: char| it == '[' || it == ']' || it.is_ascii_digit());
    NODES.contains(&path.rsplit(['.', ']']).next().unwrap_or_default())
}

/// The arguments of a search.
fn query(kind: &str, words: Option<&str>, canvas: Option<&str>) -> Value {
    let mut search = json!({"kind": kind});
    for (name, value) in [("query", words), ("canvas", canvas)] {
        if let Some(value) = value {
            search[name] = value.into();
        }
    }
    search
}

/// What a search finds.
async fn matches(search: &Value, call: &Call) -> Vec<Value> {
    let mut search = search.clone();
    search["limit"] = MATCHES_MAX.into();
    let Ok(arguments) = Deserialize::deserialize(search) else { return vec![] };
    let Ok(answer) = Find::run(call, arguments).await else { return vec![] };
    match json!(answer.output)["items"].take() {
        Value::Array(items) => items,
        _ => vec![],
    }
}

/// The words of a name: without the kind and the owner of a handle.
fn words(name: &str) -> Option<&str> {
    let words = match name.contains(char::is_whitespace) {
        true => name,
        false => name.rsplit([':', '/']).next().unwrap_or(name),
    };
    let words = words.trim();
    (!words.is_empty() && words.chars().count() <= QUERY_MAX).then_some(words)
}

/// The handle of a match. A start takes a version of an Element.
fn handle<'a>(found: &'a Value, path: &str) -> Option<&'a str> {
    let members: &[&str] = if path.starts_with("elements") { &["versionHandle"] } else { &["handle", "run", "canvas"] };
    members.iter().find_map(|member| found[member].as_str())
}

/// The search for a thing by what stands at a path, and, if that finds one thing alone, the call with its handle. `is_last`:
/// nothing else is wrong.
async fn thing(path: &str, kind: &str, mut again: Corrected, is_last: bool, call: &Call) -> Vec<Next> {
    let given = again.get(path).and_then(Value::as_str).map(str::to_owned);
    // A plain id is that of a node.
    if kind == "asset" && given.as_deref().is_some_and(is_ref) {
        return node(path, again, is_last, call).await;
    }
    let words = given.as_deref().and_then(words).filter(|words| !is_ref(words));
    if kind == ANY && words.is_none() {
        return vec![];
    }
    let kinds: &[&str] = if kind == ANY { &KINDS[..] } else { &[kind] };
    for kind in kinds {
        let canvas = canvas(call).filter(|_| matches!(*kind, "asset" | "run"));
        let named = query(kind, words, canvas.as_deref());
        let found = matches(&named, call).await;
        if let [only] = found.as_slice()
            && is_last
            && let Some(handle) = handle(only, path)
            && again.set(path, handle.into())
        {
            let find = Next::new("find", named, format!("this {kind} is the only one that it finds"));
            return same_call(again, call).await.into_iter().chain([find]).collect();
        }
        if !found.is_empty() {
            return vec![Next::new("find", named, "the handles of that name")];
        }
    }
    vec![Next::new("find", query(kinds[0], None, None), "the handles that exist")]
}

/// What the message of a 404 says is not there.
async fn not_found(message: &str, call: &Call) -> Vec<Next> {
    let kind = match message.split(' ').next().unwrap_or_default() {
        "element" if message.starts_with("element collection") => "collection",
        "node" => "node",
        kind @ ("asset" | "element" | "recipe" | "action" | "model" | "run") => kind,
        "job" => "run",
        "video" | "original" | "preview" => "asset",
        _ => "canvas",
    };
    let again = Corrected::new(&call.arguments);
    let names_it = |argument: &&str| match kind {
        "node" => NODES.contains(argument),
        _ => self::kind(argument).is_some_and(|of| of == kind || of == ANY),
    };
    let named = call.arguments.iter().map(|(name, value)| (name.as_str(), value)).filter(|(name, _)| names_it(name));
    // Of several names, it is not known which one names nothing.
    let paths = named.filter_map(|(name, value)| match value {
        Value::String(_) => Some(name.to_owned()),
        Value::Array(items) => (items.len() == 1 && items[0].is_string()).then(|| format!("{name}[0]")),
        _ => None,
    });
    match (paths.collect::<Vec<_>>().as_slice(), kind) {
        ([path], "node") => node(path, again, true, call).await,
        (_, "node") => vec![look(call.tool, &call.arguments)],
        ([path], kind) => thing(path, kind, again, true, call).await,
        (_, kind) => vec![Next::new("find", query(kind, None, None), "the handles that exist")],
    }
}

/// What is known about a node, or a connection, that cannot be what the call needs at a path. `is_last`: nothing else is wrong.
async fn node(path: &str, mut again: Corrected, is_last: bool, call: &Call) -> Vec<Next> {
    let (Some(canvas), Some(given)) = (canvas(call), again.get(path).and_then(Value::as_str).map(str::to_owned)) else {
        return vec![];
    };
    let plain = given.rsplit(':').next().unwrap_or(&given);
    let read = |more: &str, value: Value, why: &str| {
        vec![Next::new("canvas_read", json!({"canvas": canvas, more: value}), why)]
    };
    if plain.parse::<ConnectionRef>().is_err() && is_there(&canvas, plain, call).await {
        return read("nodes", json!([plain]), "what it is");
    }
    let kind = if plain.parse::<ConnectionRef>().is_ok() { "connection" } else { "node" };
    let restore = json!([{"type": format!("{kind}.restore"), format!("{kind}Id"): plain}]);
    if is_ref(plain)
        && let Some(tried) = tried(&canvas, &restore, call).await
    {
        let edit = json!({"canvas": canvas, "revision": tried.canvas.revision, "operations": restore});
        let step = Next::new("canvas_edit", edit, format!("{plain} was deleted; this restores it"));
        return vec![step, Next::new("canvas_read", json!({"canvas": canvas}), "the canvas without it")];
    }
    if is_ref(plain) {
        return vec![Next::new("canvas_read", json!({"canvas": canvas}), "the refs that exist")];
    }
    let found = match words(plain) {
        Some(words) => nodes_of(&canvas, words, call).await,
        None => vec![],
    };
    match found.as_slice() {
        [] => vec![Next::new("canvas_read", json!({"canvas": canvas}), "the refs that exist")],
        [only] if is_last && again.set(path, only.as_str().into()) => {
            let step = read("query", plain.into(), "it is the only node with these words");
            same_call(again, call).await.into_iter().chain(step).collect()
        }
        _ => read("query", plain.into(), "the nodes with these words"),
    }
}

fn is_ref(id: &str) -> bool {
    id.parse::<NodeRef>().is_ok() || id.parse::<ConnectionRef>().is_ok()
}

async fn is_there(canvas: &str, node: &str, call: &Call) -> bool {
    call.client.get_node(canvas, node).await.is_ok()
}

/// The dry run of operations that would be applied.
async fn tried(canvas: &str, operations: &Value, call: &Call) -> Option<DryRun> {
    let tried = call.dry_run(canvas, operations).await.ok()?;
    (!tried.validation.is_blocked()).then_some(tried)
}

/// The refs of the nodes with all of these words, from the lines of an outline.
async fn nodes_of(canvas: &str, words: &str, call: &Call) -> Vec<String> {
    let outline = call.client.get_canvas_outline(canvas).query("ids", "refs").query("query", words);
    let Ok(read) = outline.query("text", "none").await else { return vec![] };
    let first = |line: &str| line.trim_start().split(' ').next().unwrap_or_default().to_owned();
    read.text().lines().map(first).filter(|word| word.parse::<NodeRef>().is_ok()).collect()
}

/// The canvas of the call.
fn canvas(call: &Call) -> Option<String> {
    let given = call.arguments.get("canvas")?;
    Some(CanvasName::deserialize(given).ok()?.handle())
}

/// The present revision of the call's canvas. No revision is called `none`, so the answer has that alone.
async fn present_revision(call: &Call) -> Option<String> {
    let changes = call.client.get_canvas_changes(&canvas(call)?).query("since", "none");
    Some(changes.await.ok()?.value().ok()?.revision)
}

/// Returns `true` if work that is under way is in the way.
fn is_about_active_work(failure: &Failure) -> bool {
    failure.message.contains("active job") || failure.fields.iter().any(|it| it.message.contains("active job"))
}

/// The wait for the work that is under way on a node that the call would change.
async fn wait_for_work(failure: &Failure, call: &Call, schema: &Value) -> Option<Next> {
    let canvas = canvas(call)?;
    let again = Corrected::new(&call.arguments);
    let named = failure.fields.iter().map(|it| again.path(&it.field, schema));
    let of_operations =
        named.filter_map(|path| path.split_once(']').map(|(operation, _)| format!("{operation}].nodeId")));
    let targets = ["target", "instance", "targets"].iter().filter_map(|name| call.arguments.get(*name));
    let targets = targets.flat_map(|given| given.as_array().cloned().unwrap_or_else(|| vec![given.clone()]));
    let nodes: Vec<Value> = of_operations.filter_map(|path| again.get(&path).cloned()).chain(targets).collect();
    for node in nodes.iter().filter_map(Value::as_str) {
        let read = call.client.get_node(&canvas, node).await.and_then(|read| read.value());
        let job = read.ok().and_then(|NodeRead { node, .. }| node.metadata.read::<ServerMetadata>().job);
        if let Some(job) = job {
            return Some(Next::wait(job.run.as_str()));
        }
    }
    Some(Next::new("find", json!({"kind": "run", "canvas": canvas}), "the work under way; run_wait waits for it"))
}

/// The way to upload from a shell, where the bytes that came with a call are no file.
fn upload_link(call: &Call) -> Option<Next> {
    let is_of_bytes = call.tool == "asset_upload" && call.root.is_none() && !call.arguments.contains_key("files");
    let name = call.arguments.get("name").and_then(Value::as_str).unwrap_or("<its path>");
    let why = "sends the file from your shell; replace what is in <>: name";
    is_of_bytes.then(|| Next::new("asset_upload", json!({"files": [{"name": name}]}), why))
}

/// Where to look when nothing better is known.
pub fn look(tool: &str, arguments: &Map<String, Value>) -> Next {
    let find = |kind: &str| Next::new("find", json!({"kind": kind}), "the handles that exist");
    match (tool, arguments.get("canvas"), arguments.get("model")) {
        ("image_generate" | "video_generate", _, Some(Value::String(model))) => match model.starts_with("model:") {
            true => Next::new("describe", json!({"handle": model}), "what this model takes"),
            false => {
                Next::new("find", json!({"kind": "model", "query": model}), "the model; describe says what it takes")
            }
        },
        ("run_cancel", ..) => match arguments.get("run") {
            Some(run) => Next::new("run_wait", json!({"runs": [run], "seconds": 0}), "how far it is"),
            None => find("run"),
        },
        ("run_wait" | "video_keep", ..) => find("run"),
        ("element_save" | "element_manage", ..) => find("element"),
        ("canvas_create", ..) => find("canvas"),
        ("canvas_read", Some(canvas), _) if arguments.len() == 1 => {
            Next::new("canvas_read", json!({"canvas": canvas, "maxChars": 8192}), "less of it")
        }
        (_, Some(canvas), _) => Next::new("canvas_read", json!({"canvas": canvas}), "the canvas as it is now"),
        (_, None, _) if tool.starts_with("asset_") || ["canvas_view", "describe"].contains(&tool) => find("asset"),
        _ => Next::new("status", json!({}), "what you may do here, and what is under way"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_what_it_names() {
        for (path, named) in [
            ("canvas", Some("canvas")),
            ("inputs[1]", Some("asset")),
            ("references[0].handle", Some("asset")),
            ("references[0].role", None),
            ("handle", Some(ANY)),
            ("params.width", None),
        ] {
            assert_eq!(kind(path), named, "{path}");
        }
        for path in [
            "operations[0].nodeId",
            "operations[3].nodeIds[2]",
            "targets[0]",
            "near",
            "operations[0].node.metadata.sectionId",
        ] {
            assert!(is_node(path), "{path}");
        }
        for path in ["operations[0]", "canvas", "operations[0].node.title", "nodeIdx"] {
            assert!(!is_node(path), "{path}");
        }
    }

    #[test]
    fn a_name_is_searched_for_by_its_words() {
        for (name, searched) in [
            ("Spring board", Some("Spring board")),
            ("Title: spring", Some("Title: spring")),
            ("canvas:ana:board", Some("board")),
            ("node:boot.png", Some("boot.png")),
            (" ", None),
            ("recipe:", None),
        ] {
            assert_eq!(words(name), searched, "{name}");
        }
        assert_eq!((words(&"x".repeat(200)).is_some(), words(&"x".repeat(201))), (true, None));
    }

    #[test]
    fn a_number_is_brought_within_the_bounds_of_its_parameter() {
        let mut parameter = json!({"id": "p", "title": "P", "type": "number", "required": false, "min": 1, "max": 9.5});
        let within = |parameter: &Value, given: Value| {
            let parameter = serde_json::from_value(parameter.clone()).expect("a parameter");
            super::within(&parameter, &given)
        };
        for (given, bounded) in [(json!(0), Some(json!(1.0))), (json!(99), Some(json!(9.5))), (json!("9"), None)] {
            assert_eq!(within(&parameter, given), bounded);
        }
        parameter["integer"] = true.into();
        for (given, bounded) in [(0.0, 1), (2.6, 3), (99.0, 9)] {
            assert_eq!(within(&parameter, json!(given)), Some(json!(bounded)));
        }
    }

    #[test]
    fn there_is_always_a_place_to_look() {
        for (tool, arguments, step) in [
            ("canvas_edit", json!({"canvas": "c", "operations": []}), ("canvas_read", json!({"canvas": "c"}))),
            ("canvas_read", json!({"canvas": "c"}), ("canvas_read", json!({"canvas": "c", "maxChars": 8192}))),
            ("image_generate", json!({"model": "model:m"}), ("describe", json!({"handle": "model:m"}))),
            ("video_generate", json!({"model": "m"}), ("find", json!({"kind": "model", "query": "m"}))),
            ("run_cancel", json!({"run": "run:1"}), ("run_wait", json!({"runs": ["run:1"], "seconds": 0}))),
            ("element_save", json!({}), ("find", json!({"kind": "element"}))),
            ("asset_upload", json!({}), ("find", json!({"kind": "asset"}))),
            ("workflow_create", json!({}), ("status", json!({}))),
        ] {
            let next = look(tool, arguments.as_object().expect("an object"));
            assert_eq!((next.tool, next.arguments), step, "{tool}");
        }
    }
}
