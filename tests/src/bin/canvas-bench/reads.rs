//! An authenticated read of a canvas of 20 nodes, relative to the bare server.

use std::time::Duration;

use e2e::{API_ROOT, Stack};

use crate::load::{Client, Connection, get, rate};
use crate::table::BenchRow;
use crate::{baseline, seed, setting};

/// Keep-alive connections: as many as the gateway has database connections.
const CONNECTIONS: usize = 16;
const WARM_UP: Duration = Duration::from_secs(1);
const TURN: Duration = Duration::from_secs(4);
const TURNS: usize = 5;
/// The goal: this share of the bare server's rate (docs/benchmarks.md).
const GOAL: f64 = 0.6;

/// Repeats one request.
struct Reader {
    connection: Connection,
    request: Vec<u8>,
    length: usize,
}

impl Client for Reader {
    async fn step(&mut self) {
        let answer = self.connection.exchange(&self.request).await;
        assert!(answer.status == 200 && answer.body.len() == self.length, "status {}", answer.status);
    }
}

async fn readers(authority: &str, request: &[u8], length: usize) -> Vec<Reader> {
    let mut readers = Vec::new();
    for _ in 0..CONNECTIONS {
        let connection = Connection::to(authority);
        readers.push(Reader { connection, request: request.to_vec(), length });
    }
    readers
}

/// Measures both alternately.
pub async fn measure(stack: &Stack) -> Vec<BenchRow> {
    let user = stack.user().await;
    let template = seed::template(stack, &user).await;
    seed::analyze(stack).await;
    let request = get(&format!("{API_ROOT}/canvases/{}", template.id), Some(&user.token));
    let gateway = stack.authority(0);
    let document = Connection::to(&gateway).exchange(&request).await.body.to_vec();
    let (_baseline, bare) = baseline::start(setting(stack, "CANVAS_DATABASE_URL"), template.key, &document).await;

    let mut ours = readers(&gateway, &request, document.len()).await;
    let mut theirs = readers(&bare, &get("/", None), document.len()).await;
    rate(&mut ours, WARM_UP).await;
    rate(&mut theirs, WARM_UP).await;
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        turns.push((rate(&mut ours, TURN).await, rate(&mut theirs, TURN).await));
    }
    let note = format!(
        "{CONNECTIONS} keep-alive connections, {} bytes of JSON; the baseline is axum, hyper and sqlx with the same threads and \
         database connections, one select by primary key a request and the document from memory.",
        document.len()
    );
    vec![BenchRow::ratio("canvas read, 20 nodes", "/s", &turns, GOAL).note(note)]
}
