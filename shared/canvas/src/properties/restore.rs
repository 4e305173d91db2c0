//! Sequences of batches on rows that are written and read as the database does it: what is deleted is kept aside and restored
//! in its place.

use std::collections::HashMap;

use domain::id::ConnectionId;
use domain::refs::RefCounters;

use super::*;

/// The rows of one canvas.
#[derive(Clone, Default)]
pub(super) struct Store {
    title: String,
    next: usize,
    nodes: BTreeMap<usize, Node>,
    connections: BTreeMap<usize, Connection>,
    deleted_nodes: HashMap<NodeId, (usize, DeletedNode)>,
    deleted_connections: HashMap<ConnectionId, (usize, DeletedConnection)>,
    /// The last refs that rows were written with.
    refs: RefCounters,
}

impl Store {
    /// The rows of a canvas from which nothing was deleted.
    pub(super) fn new(nodes: Vec<Node>, connections: Vec<Connection>) -> Self {
        let mut store = Self { title: "Board".into(), next: 1000, ..Self::default() };
        store.refs = refs_of(nodes.iter(), connections.iter());
        store.nodes = nodes.into_iter().enumerate().collect();
        store.connections = connections.into_iter().enumerate().collect();
        store
    }

    /// The ids of what can be restored, by refs.
    pub(super) fn deleted(&self) -> (Vec<NodeId>, Vec<ConnectionId>) {
        let mut nodes: Vec<&Node> = self.deleted_nodes.values().map(|(_, deleted)| &deleted.node).collect();
        nodes.sort_by_key(|node| node.short);
        let mut links: Vec<&Connection> =
            self.deleted_connections.values().map(|(_, deleted)| &deleted.connection).collect();
        links.sort_by_key(|link| link.short);
        let (nodes, links) = (nodes.into_iter().map(|it| it.id.clone()), links.into_iter().map(|it| it.id.clone()));
        (nodes.collect(), links.collect())
    }

    /// The rows of [`start`] and [`deleted`].
    pub(super) fn start() -> Self {
        let mut store = Self { title: "Board".into(), next: 100, ..Self::default() };
        let (nodes, connections) = start();
        store.nodes = nodes.into_iter().enumerate().map(|(at, node)| (at * 10 + 10, node)).collect();
        store.connections = connections.into_iter().enumerate().map(|(at, link)| (at * 10 + 10, link)).collect();
        let (nodes, connections) = deleted();
        for deleted in nodes {
            store.deleted_nodes.insert(deleted.node.id.clone(), (deleted.preceding * 10 + 5, deleted));
        }
        for deleted in connections {
            let place = deleted.preceding * 10 + 5;
            store.deleted_connections.insert(deleted.connection.id.clone(), (place, deleted));
        }
        store
    }

    pub(super) fn present(&self) -> (Vec<Node>, Vec<Connection>) {
        (self.nodes.values().cloned().collect(), self.connections.values().cloned().collect())
    }

    /// The graph, with what the batch restores.
    pub(super) fn load(&self, batch: &Batch) -> Graph {
        let (nodes, connections) = batch.restored();
        let mut places: Vec<_> = nodes.iter().filter_map(|id| self.deleted_nodes.get(id)).cloned().collect();
        places.sort_by_key(|(place, _)| *place);
        places.dedup_by_key(|(place, _)| *place);
        let before = |place: usize| self.nodes.range(..place).count();
        let deleted = |(place, deleted): (usize, DeletedNode)| DeletedNode { preceding: before(place), ..deleted };
        let nodes = places.into_iter().map(deleted).collect();
        let links = connections.iter().filter_map(|id| self.deleted_connections.get(id));
        let mut places: Vec<_> = links.cloned().collect();
        places.sort_by_key(|(place, _)| *place);
        places.dedup_by_key(|(place, _)| *place);
        let before = |place: usize| self.connections.range(..place).count();
        let deleted =
            |(place, deleted): (usize, DeletedConnection)| DeletedConnection { preceding: before(place), ..deleted };
        let connections = places.into_iter().map(deleted).collect();
        let sources = Sources { nodes, connections, ..Sources::default() };
        let (nodes, connections) = self.present();
        let bytes = crate::fixture::graph(nodes.clone(), connections.clone()).bytes();
        Graph::with_sources(self.title.clone(), bytes, nodes, connections, sources).after_refs(self.refs)
    }

    /// Applies a batch and writes what it changes.
    pub(super) fn apply(&mut self, batch: &Batch, options: Options) -> Result<Applied, Refused> {
        let mut graph = self.load(batch);
        let applied = apply(&mut graph, batch, options)?;
        self.write(&applied, &graph);
        assert_eq!(self.present(), graph.clone().into_parts());
        Ok(applied)
    }

    pub(super) fn write(&mut self, applied: &Applied, graph: &Graph) {
        let writes = applied.writes(graph);
        self.title = graph.title().into();
        let given = refs_of(writes.nodes.iter().copied(), writes.connections.iter().copied());
        self.refs = self.refs.max(given);
        for id in writes.deleted_connections {
            let place = place_of(&self.connections, |link| link.id == *id).expect("is there");
            let connection = self.connections.remove(&place).expect("is there");
            self.deleted_connections.insert(id.clone(), (place, DeletedConnection { connection, preceding: 0 }));
        }
        for id in writes.deleted_nodes {
            let place = place_of(&self.nodes, |node| node.id == *id).expect("is there");
            let node = self.nodes.remove(&place).expect("is there");
            let members = writes.freed.iter().filter(|(section, _)| *section == id);
            let members = members.map(|(_, member)| (*member).clone()).collect();
            self.deleted_nodes.insert(id.clone(), (place, DeletedNode { node, members, preceding: 0 }));
        }
        for node in writes.nodes {
            let restored = writes.restored_nodes.contains(&&node.id).then(|| self.deleted_nodes.remove(&node.id));
            let restored = restored.map(|deleted| deleted.expect("was deleted").0);
            let place = restored.or_else(|| place_of(&self.nodes, |row| row.id == node.id)).unwrap_or(self.next);
            self.next += 1;
            self.nodes.insert(place, node.clone());
        }
        for link in writes.connections {
            let is_restored = writes.restored_connections.contains(&&link.id);
            let restored = is_restored.then(|| self.deleted_connections.remove(&link.id).expect("was deleted").0);
            let place = restored.or_else(|| place_of(&self.connections, |row| row.id == link.id)).unwrap_or(self.next);
            self.next += 1;
            self.connections.insert(place, link.clone());
        }
    }
}

/// The last refs of nodes and connections.
fn refs_of<'a>(
    nodes: impl Iterator<Item = &'a Node>,
    connections: impl Iterator<Item = &'a Connection>,
) -> RefCounters {
    let node = nodes.filter_map(|node| node.short).map(NodeRef::number).max();
    let connection = connections.filter_map(|link| link.short).map(ConnectionRef::number).max();
    RefCounters { node: node.unwrap_or_default(), connection: connection.unwrap_or_default() }
}

fn place_of<T>(rows: &BTreeMap<usize, T>, is_it: impl Fn(&T) -> bool) -> Option<usize> {
    rows.iter().find(|(_, row)| is_it(row)).map(|(place, _)| *place)
}

/// Everything that the rules forbid in a graph.
fn valid(graph: &Graph) -> Result<(), TestCaseError> {
    let mut ends = std::collections::HashSet::new();
    for link in graph.connections() {
        let (Some(from), Some(to)) = (graph.node(&link.from), graph.node(&link.to)) else {
            return Err(TestCaseError::fail(format!("{link:?} has an end that is not there")));
        };
        prop_assert!(ends.insert((link.from.clone(), link.to.clone(), link.purpose)), "{link:?} is there twice");
        if link.purpose.is_frame() {
            prop_assert_eq!((from.kind, to.kind), (NodeType::Image, NodeType::Video));
            let frames = graph.incoming(&to.id).filter(|other| other.purpose == link.purpose);
            prop_assert_eq!(frames.count(), 1);
        }
        prop_assert!(link.purpose != Purpose::Reference || from.kind != NodeType::Video);
    }
    for node in graph.nodes() {
        if let Some(section) = node.section_id() {
            prop_assert!(graph.node(&id(section)).is_some_and(Node::is_section), "{} has no Section", node.id);
            prop_assert!(!node.is_section());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Each writer knows only what it did itself, so its batches restore, delete and change what others restored, deleted or
    /// changed meanwhile.
    #[test]
    fn whatever_writers_create_delete_and_restore_the_graph_is_valid(
        batches in prop::collection::vec((operations(), options()), 1..6),
    ) {
        let mut store = Store::start();
        for (operations, options) in batches {
            let batch = Batch::new(operations).expect("only batches without violations are generated");
            let before = store.present();
            if store.apply(&batch, options).is_err() {
                prop_assert_eq!(store.present(), before);
            }
            let graph = store.load(&batch);
            valid(&graph)?;
            consistent(&graph)?;
            let is_present = |node: &DeletedNode| graph.node(&node.node.id).is_some();
            prop_assert!(!graph.sources.nodes.iter().any(is_present), "nothing is both there and deleted");
        }
    }

    #[test]
    fn the_undo_of_deletes_restores_everything_that_was_deleted(
        batches in prop::collection::vec(
            (prop::collection::btree_set(0..8usize, 0..5), prop::collection::btree_set(0..5usize, 0..4)),
            1..4,
        ),
        seed in any::<u64>(),
    ) {
        let mut store = Store::start();
        // What waits for a job is restored without it.
        store.nodes.values_mut().for_each(|node| node.active_job = None);
        let before = store.present();
        let mut undo = Vec::new();
        for (nodes, links) in batches {
            let (present, connections) = store.present();
            let is_there = |text: &String| present.iter().any(|node| node.id.as_str() == text);
            let is_linked = |text: &String| connections.iter().any(|link| link.id.as_str() == text);
            let links = links.into_iter().map(|at| format!("k{at}")).filter(is_linked);
            let delete = links.map(|link| json!({"type": "connection.delete", "connectionId": link}));
            let nodes = nodes.into_iter().map(|at| format!("n{at}")).filter(is_there);
            let delete: Vec<Value> = delete.chain(nodes.map(|node| json!({"type": "node.delete", "nodeId": node}))).collect();
            if delete.is_empty() {
                continue;
            }
            let applied = store.apply(&crate::fixture::batch(delete.into()), Options::default()).expect("deletes");
            let mut nodes = applied.changes.deleted_node_ids;
            // The nodes of one batch come back in any order.
            if !nodes.is_empty() {
                let by = seed as usize % nodes.len();
                nodes.rotate_left(by);
            }
            let nodes = nodes.into_iter().map(|id| json!({"type": "node.restore", "nodeId": id}));
            let links = applied.changes.deleted_connection_ids.into_iter();
            let links = links.map(|id| json!({"type": "connection.restore", "connectionId": id}));
            undo.push(nodes.chain(links).collect::<Vec<Value>>());
        }
        for restore in undo.into_iter().rev() {
            let restored = store.apply(&crate::fixture::batch(restore.into()), Options::default());
            prop_assert!(restored.is_ok(), "{restored:?}");
        }
        prop_assert_eq!(store.present(), before);
    }
}
