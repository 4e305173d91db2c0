//! Random writers on stale revisions (docs/reference/conventions.md#stale-revisions). The oracle applies a batch, by rules of its own,
//! to the canvas as it was at the base revision and at every later one, and compares what the batch does and names.

use std::collections::{BTreeMap, BTreeSet};

use e2e::api::{key, placed, text};
use e2e::{Chance, Stack};
use serde_json::{Value, json};

const WRITES: usize = 150;

/// Nodes, connections and the title by id.
type Graph = BTreeMap<String, Value>;

/// What a batch does: before and after of all that it names or changes; `None` when the graph rejects it.
type Effect = Option<BTreeMap<String, [Value; 2]>>;

fn graph(canvas: &Value) -> Graph {
    let items = ["/nodes", "/connections"].map(|list| canvas.pointer(list).and_then(Value::as_array).expect("a list"));
    let items = items.into_iter().flatten().map(|item| (text(item, "/id").to_owned(), item.clone()));
    items.chain([("title".to_owned(), canvas["title"].clone())]).collect()
}

fn is_link(item: &Value, from: &str, to: &str) -> bool {
    item["fromNodeId"] == from && item["toNodeId"] == to
}

fn section_of(item: &Value) -> Option<String> {
    item["metadata"]["sectionId"].as_str().map(str::to_owned)
}

/// Applies an operation and adds what it names; `None` when it breaks a rule.
fn apply(graph: &mut Graph, operation: &Value, at: usize, named: &mut BTreeSet<String>) -> Option<()> {
    let id = |field: &str| operation[field].as_str().map(str::to_owned);
    named.extend(["nodeId", "fromNodeId", "toNodeId", "connectionId"].into_iter().filter_map(id));
    match text(operation, "/type") {
        "node.create" => drop(graph.insert(format!("new {at}"), operation["node"].clone())),
        "node.move" => {
            graph.get_mut(&id("nodeId")?)?["position"] = operation["position"].clone();
        }
        "node.update" => {
            let metadata = &operation["patch"]["metadata"];
            let section = metadata["sectionId"].as_str();
            named.extend(section.map(str::to_owned));
            if section.is_some_and(|section| !graph.contains_key(section)) {
                return None;
            }
            let node = graph.get_mut(&id("nodeId")?)?;
            if let Some(title) = operation["patch"].get("title") {
                node["title"] = title.clone();
            }
            match metadata.get("sectionId") {
                Some(Value::Null) => drop(node["metadata"].as_object_mut()?.remove("sectionId")),
                Some(section) => node["metadata"]["sectionId"] = section.clone(),
                None => {}
            }
        }
        "node.delete" => {
            let id = id("nodeId")?;
            graph.remove(&id)?;
            graph.retain(|_, item| item["fromNodeId"] != id && item["toNodeId"] != id);
            for item in graph.values_mut().filter(|item| section_of(item).as_ref() == Some(&id)) {
                item["metadata"].as_object_mut()?.remove("sectionId");
            }
        }
        "connection.create" => {
            let (from, to) = (id("fromNodeId")?, id("toNodeId")?);
            let is_there = |id| graph.contains_key(id);
            if from == to || !is_there(&from) || !is_there(&to) || graph.values().any(|item| is_link(item, &from, &to))
            {
                return None;
            }
            graph.insert(format!("new {at}"), operation.clone());
        }
        "connection.delete" => drop(graph.remove(&id("connectionId")?)?),
        _ => {
            named.insert("title".to_owned());
            graph.insert("title".to_owned(), operation["title"].clone());
        }
    }
    Some(())
}

fn effect(before: &Graph, operations: &[Value]) -> Effect {
    let (mut after, mut touched) = (before.clone(), BTreeSet::new());
    for (at, operation) in operations.iter().enumerate() {
        // A position is chosen with the Section in view.
        let moved = operation["nodeId"].as_str().filter(|_| operation["type"] == "node.move");
        touched.extend(moved.and_then(|node| section_of(before.get(node)?)));
        apply(&mut after, operation, at, &mut touched)?;
    }
    touched.extend(before.keys().chain(after.keys()).filter(|id| before.get(*id) != after.get(*id)).cloned());
    let state = |graph: &Graph, id: &String| graph.get(id).cloned().unwrap_or_default();
    Some(touched.into_iter().map(|id| (id.clone(), [state(before, &id), state(&after, &id)])).collect())
}

/// An operation on what a writer has ever seen.
fn operation(chance: &mut Chance, seen: &Seen) -> Value {
    let [node, other] = [(); 2].map(|()| seen.nodes[chance.below(seen.nodes.len())].clone());
    let update = |patch: Value| json!({"type": "node.update", "nodeId": node, "patch": patch});
    let number = chance.below(1000);
    match chance.below(12) {
        0 | 1 => update(json!({"title": format!("t{number}")})),
        2 | 3 => json!({"type": "node.move", "nodeId": node, "position": {"x": number, "y": number}}),
        4 => json!({"type": "node.create", "node": {"type": "text"}}),
        5 => json!({"type": "node.delete", "nodeId": node}),
        6 if node != seen.section => update(json!({"metadata": {"sectionId": seen.section}})),
        7 => update(json!({"metadata": {"sectionId": null}})),
        8 if !seen.links.is_empty() => {
            json!({"type": "connection.delete", "connectionId": seen.links[chance.below(seen.links.len())]})
        }
        9 => json!({"type": "canvas.update", "title": format!("c{number}")}),
        _ => json!({"type": "connection.create", "fromNodeId": node, "toNodeId": other}),
    }
}

/// The ids of all nodes and connections that there ever were, and the Section.
struct Seen {
    nodes: Vec<String>,
    links: Vec<String>,
    section: String,
}

impl Seen {
    fn note(&mut self, canvas: &Value) {
        for (list, ids) in [("nodes", &mut self.nodes), ("connections", &mut self.links)] {
            for item in canvas[list].as_array().expect("a list") {
                let id = text(item, "/id");
                if !ids.iter().any(|known| known == id) {
                    ids.push(id.to_owned());
                }
            }
        }
    }
}

#[tokio::test]
async fn random_writers_are_accepted_exactly_when_their_effect_is_the_same() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let id = text(&user.make_canvas().await, "/id").to_owned();
    let create = |name: &str, node: Value| json!({"type": "node.create", "clientId": name, "node": node});
    let mut operations = vec![create("s", json!({"type": "sticky", "metadata": {"section": true}}))];
    operations.extend((0..9).map(|at| create(&format!("n{at}"), json!({"type": "text"}))));
    let made = user.apply(&id, operations.into()).await;
    let section = text(&made, "/resolvedIds/s").to_owned();
    let mut seen = Seen { nodes: Vec::new(), links: Vec::new(), section };
    seen.note(&made["canvas"]);
    let mut revisions = vec![made["canvas"].clone()];
    let (mut chance, mut counts) = (Chance::new(), BTreeMap::<_, usize>::new());
    for _ in 0..WRITES {
        let operations: Vec<Value> = (0..=chance.below(2)).map(|_| operation(&mut chance, &seen)).collect();
        let base = (revisions.len() - 1).saturating_sub(chance.below(8));
        let (is_stale, lenient) = (base + 1 < revisions.len(), chance.below(4) > 0);
        let effects: Vec<Effect> = revisions[base..].iter().map(|canvas| effect(&graph(canvas), &operations)).collect();
        let is_same = effects[0].is_some() && effects.iter().all(|effect| *effect == effects[0]);
        // Findings are no part of the rule.
        let body = json!({"baseRevision": revisions[base]["revision"], "idempotencyKey": key(), "force": true,
            "operations": placed(operations.clone().into())});
        let prefer = if lenient { "handling=lenient" } else { "handling=strict" };
        let path = format!("/canvases/{id}/operations");
        let reply = user.post(&path).header("prefer", prefer).body("application/json", body.to_string()).await;
        let expected = is_same && (lenient || !is_stale);
        assert_eq!(reply.status == 200, expected, "{prefer}, {} behind: {body} {reply} {effects:?}", effects.len() - 1);
        *counts.entry((lenient, is_stale, expected)).or_default() += 1;
        if expected {
            let applied = (is_stale && lenient).then_some("handling=lenient");
            assert_eq!(reply.header("preference-applied"), applied);
            let canvas = reply.json()["canvas"].clone();
            seen.note(&canvas);
            revisions.push(canvas);
        } else {
            assert!(matches!(reply.status, 409 | 422), "{reply}");
        }
    }
    println!("accepted or not by (lenient, stale, accepted): {counts:?}");
    for case in [(true, true, true), (true, true, false), (false, true, false)] {
        assert!(counts.contains_key(&case), "{case:?} is tried: {counts:?}");
    }
}
