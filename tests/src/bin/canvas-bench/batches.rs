//! A batch of one operation against `pgbench` running the same statements.
//!
//! `batch.sql` has the statements that the gateway runs for such a batch, authentication included. Every run compares the two by
//! what PostgreSQL recorded ([`statements`]). A figure that was measured against different statements is void.

use std::time::Duration;

use e2e::{API_ROOT, Stack, User};
use serde_json::json;

use crate::load::{Client, Connection, post_with, quoted, rate};
use crate::pgbench::Pgbench;
use crate::seed::{self, Canvas};
use crate::statements;
use crate::table::BenchRow;

/// Clients on either side, each with its own canvas.
const CLIENTS: usize = 8;
const WARM_UP: Duration = Duration::from_secs(1);
const TURN: Duration = Duration::from_secs(5);
const TURNS: usize = 5;
/// Batches of each side for the comparison of their statements.
const COMPARED: i64 = 40;
/// The goal: this share of the rate of `pgbench` with the fewest statements (docs/benchmarks.md).
const GOAL: f64 = 0.5;
/// The first canvas of pgbench.
const PGBENCH_CANVAS: usize = 2000;
/// The revision of the canvases of pgbench when it starts, from which `batch.sql` goes on.
const FIRST_REVISION: &str = "0";
const SCRIPT: &str = include_str!("batch.sql");

/// Moves one node of its own canvas repeatedly.
pub struct Mover {
    connection: Connection,
    path: String,
    token: String,
    canvas: Canvas,
    turn: u32,
    /// `true` if it asks for responses without nodes and connections.
    pub minimal: bool,
}

impl Mover {
    /// Names the canvas by its handle, as `batch.sql` does.
    pub async fn new(stack: &Stack, user: &User, canvas: Canvas) -> Self {
        let path = format!("{API_ROOT}/canvases/canvas:{}:{}/operations", user.uid, canvas.id);
        Self {
            connection: Connection::to(&stack.authority(0)),
            path,
            token: user.token.clone(),
            canvas,
            turn: 0,
            minimal: false,
        }
    }

    /// Applies `operations` and remembers the resulting revision.
    pub async fn apply(&mut self, operations: &[serde_json::Value]) {
        self.turn += 1;
        let Canvas { id, revision, .. } = &self.canvas;
        let operations = serde_json::to_string(operations).expect("serializes");
        let body = format!(
            r#"{{"baseRevision":"{revision}","idempotencyKey":"bench-{id}-{}","operations":{operations}}}"#,
            self.turn
        );
        let headers = if self.minimal { "prefer: return=minimal\r\n" } else { "" };
        let answer = self.connection.exchange(&post_with(headers, &self.path, &self.token, &body)).await;
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(answer.body));
        // The first member of this name is the canvas's revision.
        let revision = quoted(answer.body, br#""revision":""#).expect("the canvas has a revision");
        self.canvas.revision.clear();
        self.canvas.revision.push_str(revision);
    }
}

impl Client for Mover {
    async fn step(&mut self) {
        let position = json!({"x": self.turn, "y": 7});
        self.apply(&[json!({"type": "node.move", "nodeId": self.canvas.node, "position": position})]).await;
    }
}

/// Measures both sides alternately.
pub async fn measure(stack: &Stack) -> Vec<BenchRow> {
    let user = stack.user().await;
    let template = seed::template(stack, &user).await;
    let mut movers = Vec::new();
    for number in 0..CLIENTS {
        let canvas = seed::multiple(stack, &template, &(1000 + number).to_string(), 1).await;
        movers.push(Mover::new(stack, &user, canvas).await);
    }
    let pgbench = Statements::new(stack, &user, &template).await;
    seed::analyze(stack).await;

    rate(&mut movers, WARM_UP).await;
    pgbench.run(CLIENTS, &["-T", "1"]).await;
    let differences = compare(stack, &mut movers[0], &pgbench).await;
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        let ours = rate(&mut movers, TURN).await;
        turns.push((ours, pgbench.run(CLIENTS, &["-T", &TURN.as_secs().to_string()]).await));
    }
    let row = BenchRow::ratio("batch of one operation, 20 nodes", "/s", &turns, GOAL);
    vec![match differences {
        None => row.note(format!(
            "{CLIENTS} clients on canvases of their own; pgbench runs the gateway's statements, prepared, found equal in \
             this run by pg_stat_statements."
        )),
        Some(differences) => BenchRow { met: Some(false), ..row }.note(format!(
            "void: batch.sql no longer matches the statements of the gateway; update it.\n{differences}"
        )),
    }]
}

/// The differences between the statements of the two sides, if there are any.
async fn compare(stack: &Stack, mover: &mut Mover, pgbench: &Statements) -> Option<String> {
    let recorder = statements::Recorder::start(stack).await;
    let background = recorder.record(async || tokio::time::sleep(Duration::from_secs(3)).await, 1).await;
    let ours = recorder
        .record(
            async || {
                for _ in 0..COMPARED {
                    mover.step().await;
                }
            },
            COMPARED,
        )
        .await;
    let transactions = COMPARED.to_string();
    let theirs = recorder
        .record(
            async || {
                pgbench.run(1, &["-t", &transactions]).await;
            },
            COMPARED,
        )
        .await;
    recorder.stop().await;
    let only = |here: &[String], there: &[String], whose: &str| -> String {
        here.iter()
            .filter(|statement| !there.contains(statement) && !background.contains(statement))
            .map(|statement| format!("    only {whose}: {statement}\n"))
            .collect()
    };
    let differences = only(&ours, &theirs, "the gateway") + &only(&theirs, &ours, "batch.sql");
    (!differences.is_empty()).then_some(differences)
}

/// `pgbench` with the statements of the gateway, the peer of this measurement.
struct Statements {
    pool: sqlx::PgPool,
    /// Keys of its canvases, one for each client.
    canvases: Vec<i64>,
    pgbench: Pgbench,
}

impl Statements {
    async fn new(stack: &Stack, user: &User, template: &seed::Template) -> Self {
        let mut canvases = Vec::new();
        for number in 0..CLIENTS {
            canvases.push(seed::multiple(stack, template, &(PGBENCH_CANVAS + number).to_string(), 1).await);
        }
        // `batch.sql` adds the client's number to the first key.
        let first = &canvases[0];
        let keys: Vec<i64> = canvases.iter().map(|canvas| canvas.key).collect();
        let expected: Vec<i64> = (first.key..).take(CLIENTS).collect();
        assert_eq!(keys, expected, "batch.sql relies on consecutive keys");
        let node = &first.node;
        let activity = format!(
            r#"{{"id":"01990000-0000-7000-8000-000000000000","type":"operations.applied","actor":{{"ownerUid":"{}","surface":"api","label":"e2e"}},"summary":"applied 1 operation","nodeIds":["{node}"]}}"#,
            user.uid
        );
        let outcome = format!(
            r#"{{"kind":"operations","resolvedIds":{{}},"changes":{{"changedNodeIds":["{node}"],"deletedNodeIds":[],"changedConnectionIds":[],"deletedConnectionIds":[]}}}}"#
        );
        let metadata: String = sqlx::query_scalar("SELECT metadata::text FROM nodes WHERE canvas_key = $1 AND id = $2")
            .bind(first.key)
            .bind(node)
            .fetch_one(stack.pool())
            .await
            .expect("the node exists");
        let quote = |text: &str| format!("{{\"{}\"}}", text.replace('\\', "\\\\").replace('"', "\\\""));
        let variables = [
            ("key", FIRST_REVISION.to_owned()),
            ("first_key", first.key.to_string()),
            ("tokens", format!("{{{}}}", user.token_id)),
            ("owners", format!("{{{}}}", user.uid)),
            ("asked", format!("{{{}}}", first.id)),
            ("uid", user.uid.clone()),
            ("fingerprint", format!("\\x{}", "5a".repeat(32))),
            ("nodes", format!("{{{node}}}")),
            ("types", "{text}".to_owned()),
            ("titles", quote("Text 0")),
            ("xs", "{3}".to_owned()),
            ("ys", "{7}".to_owned()),
            ("widths", "{340}".to_owned()),
            ("heights", "{240}".to_owned()),
            ("owned", "{false}".to_owned()),
            ("metadata", quote(&metadata)),
            ("server", "{\"{}\"}".to_owned()),
            ("nulls", "{NULL}".to_owned()),
            ("none", "{}".to_owned()),
            ("activity", activity),
            ("kept", "1000".to_owned()),
            ("trim_every", "32".to_owned()),
            ("deleted_bytes_max", (64 * 1024 * 1024).to_string()),
            ("outcome", outcome),
        ];
        Self {
            pool: stack.pool().clone(),
            canvases: keys,
            pgbench: Pgbench::new(stack, "batch.sql", SCRIPT, &variables),
        }
    }

    /// The number of changes of its canvases so far.
    async fn changes(&self) -> i64 {
        sqlx::query_scalar("SELECT sum(sequence)::bigint FROM canvases WHERE key = ANY($1)")
            .bind(&self.canvases)
            .fetch_one(&self.pool)
            .await
            .expect("counts the changes")
    }

    /// Transactions per second.
    async fn run(&self, clients: usize, length: &[&str]) -> f64 {
        sqlx::query("UPDATE canvases SET revision = $1 WHERE key = ANY($2)")
            .bind(FIRST_REVISION)
            .bind(&self.canvases)
            .execute(&self.pool)
            .await
            .expect("resets the revisions");
        let before = self.changes().await;
        let ran = self.pgbench.run(clients, length).await;
        assert_eq!(self.changes().await - before, ran.transactions, "each transaction writes");
        ran.per_second
    }
}
