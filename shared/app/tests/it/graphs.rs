//! Kept graphs: whichever process writes a canvas, and however a write ends, each has the graph that is stored.

use std::cell::RefCell;

use app::canvas::{ApplyBatch, ChangedCanvas};
use app::command::Command as _;
use app::graphs::Graphs;
use app::{Base, CanvasWrite, Error, Key, Locks};
use canvas::size::serialized_size;
use canvas::{Batch, Graph, Options};
use db::canvases::{self, NewCanvas};
use domain::account::Surface;
use domain::canvas::{Actor, CanvasRecord};
use domain::graph::Node;
use domain::id::{AccountUid, CanvasHandle, CanvasId};
use domain::idempotency::Fingerprint;
use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::TestDatabase;

/// What one writer does.
#[derive(Clone, Debug)]
enum Step {
    Create {
        section: bool,
        x: f64,
        count: usize,
    },
    Rename {
        node: usize,
    },
    Move {
        node: usize,
        x: f64,
    },
    Join {
        node: usize,
        section: usize,
    },
    Delete {
        node: usize,
    },
    Restore {
        node: usize,
    },
    Connect {
        from: usize,
        to: usize,
    },
    Disconnect {
        connection: usize,
    },
    Title,
    /// Names a node that does not exist, after a change.
    Refused {
        node: usize,
    },
    /// Changes a node as a job does, which keeps no graph.
    Work {
        node: usize,
    },
}

/// A step, the process that takes it, whether an agent does, and whether its transaction is rolled back at the end.
#[derive(Clone, Debug)]
struct Turn {
    step: Step,
    process: usize,
    agent: bool,
    lost: bool,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let index = || any::<usize>();
    let x = || (0..30_i32).prop_map(|x| f64::from(x) * 100.0);
    let step = prop_oneof![
        4 => (any::<bool>(), x()).prop_map(|(section, x)| Step::Create { section, x, count: 1 }),
        2 => index().prop_map(|node| Step::Rename { node }),
        2 => (index(), x()).prop_map(|(node, x)| Step::Move { node, x }),
        2 => (index(), index()).prop_map(|(node, section)| Step::Join { node, section }),
        2 => index().prop_map(|node| Step::Delete { node }),
        2 => index().prop_map(|node| Step::Restore { node }),
        3 => (index(), index()).prop_map(|(from, to)| Step::Connect { from, to }),
        1 => index().prop_map(|connection| Step::Disconnect { connection }),
        1 => Just(Step::Title),
        1 => index().prop_map(|node| Step::Refused { node }),
        2 => index().prop_map(|node| Step::Work { node }),
    ];
    let turn = (step, 0..2_usize, any::<bool>(), prop::bool::weighted(0.15));
    let turn = turn.prop_map(|(step, process, agent, lost)| Turn { step, process, agent, lost });
    prop::collection::vec(turn, 1..24)
}

/// A canvas, and what its processes keep.
struct Setting {
    database: TestDatabase,
    canvas: CanvasHandle,
    processes: [Graphs; 2],
    /// Nodes that were deleted, and not restored.
    deleted: RefCell<Vec<String>>,
    keys: RefCell<usize>,
}

fn pick<T>(items: &[T], index: usize) -> Option<&T> {
    items.get(index.checked_rem(items.len())?)
}

fn owner() -> AccountUid {
    AccountUid::from_stored("owner".into())
}

impl Setting {
    async fn new() -> Self {
        let database = TestDatabase::new().await;
        let mut conn = database.pool().acquire().await.expect("connects");
        let insert = "INSERT INTO accounts (uid, email) VALUES ('owner', 'owner@example.com')";
        sqlx::query(insert).execute(&mut *conn).await.expect("inserts an account");
        let canvas = CanvasHandle { owner: owner(), id: CanvasId::from_stored("c".into()) };
        let actor = Actor { owner_uid: owner(), surface: Surface::Api, label: "test".into() };
        let new = NewCanvas { handle: &canvas, canvas_type: None, title: "C", revision: "r0", actor: &actor };
        canvases::create(&mut conn, &new).await.expect("creates").expect("is new");
        drop(conn);
        let processes = [Graphs::default(), Graphs::default()];
        Self { database, canvas, processes, deleted: RefCell::default(), keys: RefCell::default() }
    }

    async fn stored(&self) -> (CanvasRecord, Graph) {
        let mut conn = self.database.pool().acquire().await.expect("connects");
        let (record, _) = canvases::find(&mut conn, &owner(), &self.canvas).await.expect("reads").expect("is there");
        let graph = app::graphs::load(&mut conn, &record).await.expect("reads");
        (record, graph)
    }

    /// The operations of a step; `None` when there is nothing that it could name.
    fn operations(&self, step: &Step, graph: &Graph) -> Option<Value> {
        let nodes: Vec<&Node> = graph.nodes().collect();
        let id = |index: &usize| pick(&nodes, *index).map(|node| node.id.to_string());
        Some(match step {
            Step::Create { section, x, count } => {
                let kind = if *section { "sticky" } else { "text" };
                let metadata = if *section { json!({ "section": true }) } else { json!({ "content": "text" }) };
                let node = json!({ "type": kind, "position": { "x": x, "y": 0 }, "metadata": metadata });
                json!(vec![json!({ "type": "node.create", "node": node }); *count])
            }
            Step::Rename { node } => {
                json!([{ "type": "node.update", "nodeId": id(node)?, "patch": { "title": "New" } }])
            }
            Step::Move { node, x } => {
                json!([{ "type": "node.move", "nodeId": id(node)?, "position": { "x": x, "y": 0 } }])
            }
            Step::Join { node, section } => {
                let sections: Vec<_> = nodes.iter().filter(|node| node.is_section()).collect();
                let section = pick(&sections, *section).map(|section| section.id.to_string());
                json!([{ "type": "node.update", "nodeId": id(node)?, "patch": { "metadata": { "sectionId": section } } }])
            }
            Step::Delete { node } => json!([{ "type": "node.delete", "nodeId": id(node)? }]),
            Step::Restore { node } => {
                let deleted = self.deleted.borrow();
                json!([{ "type": "node.restore", "nodeId": pick(&deleted, *node)? }])
            }
            Step::Connect { from, to } => json!([{
                "type": "connection.create", "fromNodeId": id(from)?, "toNodeId": id(to)?, "purpose": "flow",
            }]),
            Step::Disconnect { connection } => {
                let all: Vec<_> = graph.connections().collect();
                json!([{ "type": "connection.delete", "connectionId": pick(&all, *connection)?.id }])
            }
            Step::Title => json!([{ "type": "canvas.update", "title": format!("Title {}", self.keys.borrow()) }]),
            Step::Refused { node } => json!([
                { "type": "node.update", "nodeId": id(node)?, "patch": { "title": "Refused" } },
                { "type": "node.delete", "nodeId": "missing" },
            ]),
            Step::Work { .. } => return None,
        })
    }

    async fn take(&self, turn: &Turn) {
        let (record, before) = self.stored().await;
        if let Step::Work { node } = &turn.step {
            return self.work(&record, &before, node).await;
        }
        let Some(operations) = self.operations(&turn.step, &before) else { return };
        let operations = serde_json::from_value(operations).expect("operations");
        let batch = Batch::new(operations).expect("has a valid form");
        let surface = if turn.agent { Surface::Api } else { Surface::Browser };
        let key = self.keys.replace_with(|keys| *keys + 1).to_string();
        let base = Base { revision: record.revision.clone(), lenient: false };
        let command = ApplyBatch {
            target: CanvasWrite { account: &owner(), canvas: &self.canvas, base: Some(&base), locks: Locks::Canvas },
            canvas_key: record.key,
            key: Key { text: &key, fingerprint: &Fingerprint::from([0; 32]) },
            actor: Actor { owner_uid: owner(), surface, label: "test".into() },
            batch: &batch,
            force: false,
            graphs: &self.processes[turn.process],
        };
        if turn.lost {
            let mut transaction = db::pool::begin(self.database.pool()).await.expect("begins");
            let _ = command.execute(&mut transaction, (), None).await;
            transaction.rollback().await.expect("rolls back");
            let mut conn = self.database.pool().acquire().await.expect("connects");
            let graph = self.processes[turn.process].copy(&mut conn, &record).await.expect("reads");
            return assert_same(&graph, &before);
        }
        let written = app::run(self.database.pool(), &command, |_| ()).await;
        self.check(&command, before, written).await;
    }

    /// What was accepted is what the stored graph accepts, and what is stored is what was answered.
    async fn check(&self, command: &ApplyBatch<'_>, mut before: Graph, written: app::Result<ChangedCanvas>) {
        let (_, stored) = self.stored().await;
        let restores = command.batch.restored() != (Vec::new(), Vec::new());
        let options = Options { agent: command.actor.surface.is_agent(), force: false };
        let expected = canvas::apply(&mut before.clone(), command.batch, options);
        let is_blocked = expected.is_ok() && {
            let applied = canvas::apply(&mut before, command.batch, options).expect("as before");
            canvas::is_blocked(&mut before, &applied.touched)
        };
        match written {
            Ok(changed) => {
                assert!(restores || expected.is_ok() && !is_blocked, "refused by the stored graph: {expected:?}");
                assert_same(&changed.graph, &stored);
                let mut deleted = self.deleted.borrow_mut();
                deleted.extend(changed.changes.deleted_node_ids.iter().map(ToString::to_string));
                deleted.retain(|id| !changed.changes.changed_node_ids.iter().any(|changed| changed.as_str() == id));
            }
            Err(Error::Blocked(_)) => assert!(restores || is_blocked),
            Err(_) => assert!(restores || expected.is_err()),
        }
    }

    async fn work(&self, record: &CanvasRecord, before: &Graph, node: &usize) {
        let nodes: Vec<&Node> = before.nodes().collect();
        let Some(mut node) = pick(&nodes, *node).map(|node| Node::clone(node)) else { return };
        let bytes = serialized_size(&node);
        node.server.content = Some(self.keys.borrow().to_string());
        let revision = format!("work {}", self.keys.replace_with(|keys| *keys + 1));
        let mut conn = self.database.pool().acquire().await.expect("connects");
        let bytes_delta = serialized_size(&node) - bytes;
        let written = app::canvas::write_nodes(&mut conn, record.key, &revision, &[node], bytes_delta).await;
        written.expect("writes");
    }
}

fn assert_same(graph: &Graph, stored: &Graph) {
    assert_eq!(graph.nodes().collect::<Vec<_>>(), stored.nodes().collect::<Vec<_>>());
    assert_eq!(graph.connections().collect::<Vec<_>>(), stored.connections().collect::<Vec<_>>());
    assert_eq!((graph.title(), graph.bytes()), (stored.title(), stored.bytes()));
    assert_eq!(json!(graph.served_nodes()), json!(stored.served_nodes()));
    assert_eq!(json!(graph.served_connections()), json!(stored.served_connections()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_process_has_the_graph_that_is_stored(turns in turns()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(1).build().expect("starts");
        runtime.block_on(async {
            let setting = Setting::new().await;
            for turn in &turns {
                setting.take(turn).await;
            }
            let (record, stored) = setting.stored().await;
            let mut conn = setting.database.pool().acquire().await.expect("connects");
            for process in &setting.processes {
                if let Some(present) = process.present(&record) {
                    assert_same(&present, &stored);
                }
                assert_same(&process.copy(&mut conn, &record).await.expect("reads"), &stored);
            }
        });
    }
}

#[tokio::test]
async fn a_graph_that_is_kept_is_not_read_again() {
    let setting = Setting::new().await;
    for x in 0..3 {
        let step = Step::Create { section: false, x: f64::from(x) * 300.0, count: 1 };
        setting.take(&Turn { step, process: 0, agent: false, lost: false }).await;
    }
    let (record, stored) = setting.stored().await;
    let mut conn = setting.database.pool().acquire().await.expect("connects");
    // What changed without a revision shows who reads.
    sqlx::query("UPDATE nodes SET title = 'Unseen'").execute(&mut *conn).await.expect("writes");
    assert_same(&setting.processes[0].copy(&mut conn, &record).await.expect("reads"), &stored);
    assert_same(&setting.processes[0].present(&record).expect("is kept"), &stored);
    assert!(setting.processes[1].present(&record).is_none());
    let other = setting.processes[1].copy(&mut conn, &record).await.expect("reads");
    assert!(other.nodes().all(|node| node.title == "Unseen"));
    let mut later = record.clone();
    let node = stored.nodes().next().expect("a node").clone();
    later.revision = "r9".into();
    assert!(setting.processes[0].present(&later).is_none());
    app::canvas::write_nodes(&mut conn, record.key, "r9", &[node], 0).await.expect("writes");
    sqlx::query("UPDATE nodes SET title = 'Unseen'").execute(&mut *conn).await.expect("writes");
    let advanced = setting.processes[0].copy(&mut conn, &later).await.expect("reads");
    assert_eq!(advanced.nodes().filter(|node| node.title == "Unseen").count(), 1, "only what changed is read");
}

#[tokio::test]
async fn what_another_process_restores_is_in_its_place() {
    let setting = Setting::new().await;
    let create = |x: f64| Step::Create { section: false, x, count: 1 };
    let steps = [(0, create(0.0)), (0, create(300.0)), (0, Step::Delete { node: 0 }), (1, Step::Restore { node: 0 })];
    for (process, step) in steps {
        setting.take(&Turn { step, process, agent: false, lost: false }).await;
    }
    let (record, stored) = setting.stored().await;
    assert_eq!(stored.node_count(), 2);
    let mut conn = setting.database.pool().acquire().await.expect("connects");
    assert_same(&setting.processes[0].copy(&mut conn, &record).await.expect("reads"), &stored);
}

#[tokio::test]
async fn a_graph_that_differs_in_more_than_500_nodes_is_read_anew() {
    for (changed, is_read) in [(499, false), (500, false), (501, true)] {
        let setting = Setting::new().await;
        for count in [200, 200, 102] {
            let step = Step::Create { section: false, x: 0.0, count };
            setting.take(&Turn { step, process: 0, agent: false, lost: false }).await;
        }
        let (mut record, stored) = setting.stored().await;
        let nodes: Vec<Node> = stored.nodes().take(changed).cloned().collect();
        let mut conn = setting.database.pool().acquire().await.expect("connects");
        app::canvas::write_nodes(&mut conn, record.key, "r9", &nodes, 0).await.expect("writes");
        // What changed without a revision shows what is read.
        sqlx::query("UPDATE nodes SET title = 'Unseen'").execute(&mut *conn).await.expect("writes");
        record.revision = "r9".into();
        let graph = setting.processes[0].copy(&mut conn, &record).await.expect("reads");
        let expected = if is_read { stored.node_count() } else { changed };
        assert_eq!(graph.nodes().filter(|node| node.title == "Unseen").count(), expected, "{changed} changed");
    }
}
