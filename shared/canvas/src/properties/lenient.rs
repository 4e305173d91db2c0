//! Writers on stale revisions. The oracle knows no footprint and no list of changes: it applies a batch to the graph of its base
//! revision and to every later one, and compares all that the batch names or changes, before and after.

use std::collections::BTreeSet;

use domain::canvas::ConcurrentChanges;
use serde::Deserialize;

use super::restore::Store;
use super::*;
use crate::Footprint;

/// Nodes, connections and the title by name, each as a text.
type State = BTreeMap<String, String>;

/// The effect of a batch on a graph: the states before and after of all that it names or changes; `None` when the graph rejects it.
type Effect = Option<BTreeMap<String, [Option<String>; 2]>>;

fn state(graph: &Graph, rename: &Rename) -> State {
    let nodes = graph.nodes().map(|node| rename.node(node)).map(|node| (node.id.to_string(), format!("{node:?}")));
    let links = graph.connections().map(|link| rename.connection(link));
    let links = links.map(|link| (link.id.to_string(), format!("{link:?}")));
    nodes.chain(links).chain([("title".to_owned(), graph.title().to_owned())]).collect()
}

fn effect(store: &Store, operations: &[Operation], options: Options) -> Effect {
    let batch = Batch::new(operations.to_vec()).expect("only batches without violations are generated");
    let mut graph = store.load(&batch);
    let named = named(&graph, operations);
    let mut before = state(&graph, &Rename(BTreeMap::new()));
    before.extend(graph.sources.nodes.iter().map(|deleted| {
        let DeletedNode { node, members, .. } = deleted;
        (node.id.to_string(), format!("deleted {node:?} {members:?}"))
    }));
    before.extend(
        graph
            .sources
            .connections
            .iter()
            .map(|deleted| (deleted.connection.id.to_string(), format!("deleted {:?}", deleted.connection))),
    );
    let applied = apply(&mut graph, &batch, options).ok()?;
    let after = state(&graph, &Rename::from_applied(&applied));
    let touched = before.keys().chain(after.keys()).filter(|name| before.get(*name) != after.get(*name));
    let touched: BTreeSet<&String> = touched.chain(&named).collect();
    // A deleted node that is not restored differs in form only.
    let states = |name: &String| [before.get(name).cloned(), after.get(name).cloned()];
    Some(touched.into_iter().map(|name| (name.clone(), states(name))).collect())
}

/// The names of what operations name on a graph, or look at: the Section of a node that is placed, what a restored node had, and the
/// connections next to one that is made.
fn named(graph: &Graph, operations: &[Operation]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut made: BTreeMap<String, [Option<NodeId>; 2]> = BTreeMap::new();
    for operation in operations {
        let operation = serde_json::to_value(operation).expect("serializes");
        let text = |pointer: &str| operation.pointer(pointer).and_then(Value::as_str);
        let plain = |pointer: &str| {
            let text = text(pointer).filter(|text| !made.contains_key(*text))?;
            Some(text.split(':').next_back().expect("a part").to_owned())
        };
        let node = |pointer: &str| plain(pointer).as_deref().map(id);
        let fields = ["/nodeId", "/fromNodeId", "/toNodeId", "/connectionId", "/sectionId"];
        let fields = fields.into_iter().chain(["/node/metadata/sectionId", "/patch/metadata/sectionId"]);
        names.extend(fields.filter_map(plain));
        let kind = text("/type").expect("a type");
        if kind == "canvas.update" {
            names.insert("title".to_owned());
        }
        let is_placed = matches!(kind, "node.move" | "node.duplicate") || operation.pointer("/patch/width").is_some();
        let section = |node: &Node| node.section_id().map(str::to_owned);
        if let Some(node) = node("/nodeId").filter(|_| is_placed || kind == "node.restore") {
            names.extend(graph.node(&node).and_then(section));
            let deleted = graph.sources.nodes.iter().find(|deleted| deleted.node.id == node);
            if let Some(deleted) = deleted.filter(|_| kind == "node.restore") {
                names.extend(section(&deleted.node));
                names.extend(deleted.members.iter().map(ToString::to_string));
            }
        }
        let purpose = operation.get("purpose").map(|purpose| Purpose::deserialize(purpose).expect("a purpose"));
        let stored = plain("/connectionId").and_then(|link| {
            let deleted = graph.sources.connections.iter().map(|deleted| &deleted.connection);
            graph.connections().chain(deleted).find(|other| other.id.as_str() == link)
        });
        let ends = match (kind, stored) {
            ("connection.create", _) => [node("/fromNodeId"), node("/toNodeId")],
            (_, Some(link)) => [Some(link.from.clone()), Some(link.to.clone())],
            _ => text("/connectionId").and_then(|link| made.get(link).cloned()).unwrap_or_default(),
        };
        let purpose = match kind {
            "connection.create" => Some(purpose.unwrap_or(Purpose::Flow)),
            "connection.restore" => stored.map(|link| link.purpose),
            _ => purpose,
        };
        if kind == "connection.restore" {
            names.extend(ends.iter().flatten().map(ToString::to_string));
        }
        if let (Some(purpose), [from, Some(to)]) = (purpose, &ends) {
            let is_beside =
                |link: &&Connection| link.to == *to && (purpose.is_frame() || Some(&link.from) == from.as_ref());
            names.extend(graph.connections().filter(is_beside).map(|link| link.id.to_string()));
        }
        if let Some(client_id) = text("/clientId") {
            made.insert(client_id.to_owned(), ends);
        }
    }
    names
}

/// All revisions of a canvas, and what each changed.
struct History {
    stores: Vec<Store>,
    changes: Vec<ConcurrentChanges>,
}

impl History {
    fn present(&self) -> &Store {
        self.stores.last().expect("there is a first revision")
    }

    /// The changes after a revision, as the database collects them.
    fn since(&self, base: usize) -> ConcurrentChanges {
        let mut all = ConcurrentChanges::default();
        for changes in self.changes[base..].iter().cloned() {
            all.nodes.extend(changes.nodes);
            all.connections.extend(changes.connections);
            all.regrouped.extend(changes.regrouped);
            all.renamed |= changes.renamed;
        }
        all
    }

    /// Applies a batch of a lenient writer that knows revision `base`. Returns whether it was accepted.
    fn write(&mut self, operations: &[Operation], options: Options, base: usize) -> bool {
        let batch = Batch::new(operations.to_vec()).expect("only batches without violations are generated");
        let since = self.since(base);
        if Footprint::from_batch(&batch, &self.present().load(&batch)).conflict(&since).is_some() {
            return false;
        }
        assert_eq!(
            Footprint::named_by(&batch).conflict(&since),
            None,
            "the batch alone yields no more than with the graph"
        );
        let mut store = self.present().clone();
        let (_, before) = store.present();
        let Ok(applied) = store.apply(&batch, options) else { return false };
        let (_, after) = store.present();
        let changes = &applied.changes;
        let ends = before.into_iter().chain(after).map(|link| (link.id, (link.from, link.to)));
        let is_changed =
            |id: &_| changes.changed_connection_ids.contains(id) || changes.deleted_connection_ids.contains(id);
        self.changes.push(ConcurrentChanges {
            nodes: changes.changed_node_ids.iter().chain(&changes.deleted_node_ids).cloned().collect(),
            connections: ends.filter(|(id, _)| is_changed(id)).collect(),
            regrouped: applied.regrouped.into_iter().collect(),
            renamed: applied.title.is_some(),
        });
        self.stores.push(store);
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A strict writer is one that knows the present revision.
    #[test]
    fn a_stale_batch_is_accepted_exactly_when_its_effect_is_that_on_every_revision_since(
        writes in prop::collection::vec((operations_up_to(3), options(), 0..6usize), 3..10),
    ) {
        let mut history = History { stores: vec![Store::start()], changes: Vec::new() };
        for (operations, options, lag) in writes {
            let present = history.stores.len() - 1;
            let base = present.saturating_sub(lag);
            let effects: Vec<Effect> =
                history.stores[base..].iter().map(|store| effect(store, &operations, options)).collect();
            let is_same = effects[0].is_some() && effects.iter().all(|effect| *effect == effects[0]);
            let since = format!("{:?}", history.since(base));
            let accepted = history.write(&operations, options, base);
            prop_assert_eq!(accepted, is_same, "{:?}\n{}\n{:?}", operations, since, effects);
        }
    }
}
