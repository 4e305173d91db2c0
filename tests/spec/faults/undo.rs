//! Deletions and their undo while gateways die and PostgreSQL restarts (docs/reference/operations.md#noderestore).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use e2e::api::{key, text};
use e2e::{Chance, Kind, Part, SETTLING, Service, Services, Stack, User, checker, images};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::scale::{Scale, scale};

const WRITERS: usize = 3;
const GATEWAYS: usize = 2;
/// Deaths of a gateway, each followed by one of PostgreSQL.
const ROUNDS: Scale<usize> = scale(3, 40);
/// Batches after which a writer restores everything, because what was deleted 1000 revisions ago cannot be restored.
const UNDO_WITHIN: i64 = 500;
/// The longest time between two faults.
const PAUSE: Duration = Duration::from_millis(500);
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// What a canvas should show, in order.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    nodes: Vec<Value>,
    connections: Vec<Value>,
}

impl Model {
    fn from_canvas(canvas: &Value) -> Self {
        let list = |name: &str| canvas[name].as_array().expect("a list").clone();
        Self { nodes: list("nodes"), connections: list("connections") }
    }

    /// Deletes nodes with their connections, and these connections. The members of a Section stay.
    fn delete(&mut self, nodes: &BTreeSet<String>, connections: &BTreeSet<String>) {
        let is_deleted = |value: &Value| value.as_str().is_some_and(|id| nodes.contains(id));
        self.connections.retain(|connection| {
            let ends = [&connection["fromNodeId"], &connection["toNodeId"]];
            !connections.contains(text(connection, "/id")) && !ends.into_iter().any(is_deleted)
        });
        self.nodes.retain(|node| !is_deleted(&node["id"]));
        for node in &mut self.nodes {
            if is_deleted(&node["metadata"]["sectionId"]) {
                node["metadata"].as_object_mut().expect("an object").remove("sectionId");
            }
        }
    }
}

/// Up to three of the ids of these.
fn some(of: &[Value], chance: &mut Chance) -> BTreeSet<String> {
    let count = chance.below(of.len().min(3) + 1);
    (0..count).map(|_| text(&of[chance.below(of.len())], "/id").to_owned()).collect()
}

/// The undo of a batch that deleted something.
struct Undo {
    operations: Vec<Value>,
    before: Model,
    /// The number of the batch.
    batch: i64,
}

/// A writer with a canvas of its own, who knows what it should show.
struct Writer<'a> {
    stack: &'a Stack,
    user: User,
    chance: Chance,
    canvas: String,
    revision: String,
    model: Model,
    undo: Vec<Undo>,
    batches: i64,
    /// Attempts that failed.
    trouble: usize,
}

impl<'a> Writer<'a> {
    /// A canvas with two Sections, an image and a text in each, and connections between them.
    async fn make(stack: &'a Stack, chance: Chance) -> Self {
        let user = stack.user().await;
        let canvas = text(&user.make_canvas().await, "/id").to_owned();
        let mut operations = Vec::new();
        for (place, name) in ["a", "b"].into_iter().enumerate() {
            let asset = user.upload_into(&canvas, "image/png", images::png(64, 48)).await;
            let (image, section, note, x) =
                (text(&asset, "/node"), format!("s{name}"), format!("t{name}"), 5000 * place);
            operations.extend([
                json!({"type": "node.create", "clientId": section, "node": {"type": "sticky", "title": name,
                    "position": {"x": x, "y": 0}, "width": 4000, "height": 4000, "metadata": {"section": true}}}),
                json!({"type": "node.update", "nodeId": image, "patch": {"title": name, "metadata": {"sectionId": section, "prompt": "p"}}}),
                json!({"type": "node.move", "nodeId": image, "position": {"x": x + 100, "y": 200}}),
                json!({"type": "node.create", "clientId": note, "node": {"type": "text",
                    "position": {"x": x + 2000, "y": 200}, "metadata": {"content": "c", "sectionId": section}}}),
                json!({"type": "connection.create", "fromNodeId": note, "toNodeId": image}),
                json!({"type": "connection.create", "fromNodeId": note, "toNodeId": image, "purpose": "reference", "role": "style"}),
            ]);
        }
        operations.push(json!({"type": "connection.create", "fromNodeId": "ta", "toNodeId": "tb", "purpose": "list"}));
        let made = user.apply(&canvas, operations.into()).await["canvas"].clone();
        let (revision, model) = (text(&made, "/revision").to_owned(), Model::from_canvas(&made));
        Self { stack, user, chance, canvas, revision, model, undo: Vec::new(), batches: 0, trouble: 0 }
    }

    /// Deletes and restores until the faults are over, and then restores what is left.
    async fn run(&mut self, is_over: &AtomicBool) {
        let first = self.model.clone();
        while !is_over.load(Ordering::Relaxed) {
            let is_old = self.undo.first().is_some_and(|undo| self.batches - undo.batch > UNDO_WITHIN);
            if !is_old && !self.model.nodes.is_empty() && self.chance.below(2) == 0 {
                self.delete().await;
            } else {
                self.restore().await;
            }
        }
        while !self.undo.is_empty() {
            self.restore().await;
        }
        assert_eq!(self.model, first, "seed {}", self.chance.seed());
    }

    async fn delete(&mut self) {
        let nodes = some(&self.model.nodes, &mut self.chance);
        let connections = some(&self.model.connections, &mut self.chance);
        if nodes.is_empty() && connections.is_empty() {
            return;
        }
        let before = self.model.clone();
        self.model.delete(&nodes, &connections);
        let delete = |id| json!({"type": "connection.delete", "connectionId": id});
        let operations = connections.into_iter().map(delete);
        let delete = |id| json!({"type": "node.delete", "nodeId": id});
        let changed = self.send(operations.chain(nodes.into_iter().map(delete)).collect()).await;
        let ids = |name: &str| changed[name].as_array().expect("a list").clone();
        let nodes = ids("deletedNodeIds").into_iter();
        let mut restore: Vec<Value> = nodes.map(|id| json!({"type": "node.restore", "nodeId": id})).collect();
        // The nodes of one batch come back in any order.
        let by = self.chance.below(restore.len().max(1));
        restore.rotate_left(by);
        let links = ids("deletedConnectionIds").into_iter();
        restore.extend(links.map(|id| json!({"type": "connection.restore", "connectionId": id})));
        self.undo.push(Undo { operations: restore, before, batch: self.batches });
    }

    async fn restore(&mut self) {
        let Some(Undo { operations, before, .. }) = self.undo.pop() else { return };
        self.model = before;
        self.send(operations).await;
    }

    /// Sends a batch until it is answered, each time under the same key. The canvas is then as the model says.
    async fn send(&mut self, operations: Vec<Value>) -> Value {
        let path = format!("/canvases/{}/operations", self.canvas);
        let body = json!({"baseRevision": self.revision, "idempotencyKey": key(), "operations": operations});
        let began = Instant::now();
        let changed = loop {
            let gateway = self.chance.below(GATEWAYS);
            match self.user.at(self.stack, gateway).send(&path, &body).attempt().await {
                Ok(reply) if reply.status < 500 => break reply.ok(),
                Ok(_) | Err(_) => self.trouble += 1,
            }
            assert!(began.elapsed() < SETTLING, "seed {}: a batch is not accepted", self.chance.seed());
            tokio::time::sleep(RETRY_PAUSE).await;
        };
        self.batches += 1;
        self.revision = text(&changed, "/canvas/revision").to_owned();
        assert_eq!(Model::from_canvas(&changed["canvas"]), self.model, "seed {}: after {body}", self.chance.seed());
        changed
    }

    /// Asserts that the canvas shows the model, that each batch took effect once, and that nothing is still deleted.
    async fn check(&self) {
        let canvas = self.user.canvas(&self.canvas).await;
        assert_eq!(Model::from_canvas(&canvas), self.model, "seed {}", self.chance.seed());
        for asset in self.model.nodes.iter().filter_map(|node| node["asset"].as_str()) {
            self.user.get(&format!("/assets/{asset}")).await.ok();
        }
        let count = async |sql: &'static str| -> i64 {
            sqlx::query_scalar(sql).bind(&self.canvas).fetch_one(self.stack.pool()).await.expect("counts")
        };
        // The canvas, two uploads and the batch that made the board came before.
        assert_eq!(count("SELECT sequence - 4 FROM canvases WHERE id = $1").await, self.batches);
        for deleted in [
            "SELECT count(*) FROM deleted_nodes d JOIN canvases c ON c.key = d.canvas_key WHERE c.id = $1",
            "SELECT count(*) FROM deleted_connections d JOIN canvases c ON c.key = d.canvas_key WHERE c.id = $1",
        ] {
            assert_eq!(count(deleted).await, 0, "what was restored is no longer deleted");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_deleted_and_restored_during_faults_is_there_once() {
    let (mut chance, services) = (Chance::new(), Services::start().await);
    let stack = Stack::builder().gateways(GATEWAYS).env("CANVAS_RATE_PER_MINUTE", 0).on(&services).start().await;
    let writers = (0..WRITERS).map(|number| Writer::make(&stack, chance.fork(number as u64)));
    let mut writers = join_all(writers).await;
    let is_over = AtomicBool::new(false);
    let faults = async {
        for _ in 0..ROUNDS.now() {
            let gateway = Part(Kind::Gateway, chance.below(GATEWAYS));
            tokio::time::sleep(chance.time(PAUSE)).await;
            stack.kill(gateway);
            stack.restart(gateway).await;
            tokio::time::sleep(chance.time(PAUSE)).await;
            services.kill(Service::Postgres).await;
            services.start_again().await;
        }
        is_over.store(true, Ordering::Relaxed);
    };
    tokio::join!(faults, join_all(writers.iter_mut().map(|writer| writer.run(&is_over))));
    for writer in &writers {
        writer.check().await;
        assert!(writer.batches > 0, "seed {}", writer.chance.seed());
    }
    // A writer whose requests wait for the database may notice nothing.
    assert!(writers.iter().any(|writer| writer.trouble > 0), "seed {}: the faults were felt", writers[0].chance.seed());
    assert_eq!(checker::invariants(&stack).await, [""; 0], "seed {}", writers[0].chance.seed());
}
