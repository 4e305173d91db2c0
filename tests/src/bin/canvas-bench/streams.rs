//! Many event streams of one canvas: how soon a change reaches all of them, and the memory that each costs.

use std::time::{Duration, Instant};

use e2e::api::text;
use e2e::{API_ROOT, Kind, Stack};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::load;
use crate::memory::resident_mib;
use crate::table::{BenchRow, quantile};

const STREAMS: usize = 1000;
/// Streams of one token, which may have 64 open waits and streams, and tokens of one account, which may have 256.
const STREAMS_OF_A_TOKEN: usize = 60;
const TOKENS_OF_AN_ACCOUNT: usize = 4;
const CHANGES: usize = 100;
/// The time limit for a change to reach all streams.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time after which the gateway has sent every list of participants.
const SETTLE: Duration = Duration::from_secs(3);
const REACHED_MS: f64 = 500.0;
const STREAM_KIB: f64 = 32.0;

/// Opens the streams, changes the canvas, and waits after each change until every stream has it.
pub async fn measure(stack: &Stack) -> Vec<BenchRow> {
    let account = stack.account().await;
    let user = stack.user_of(&account, "all").await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let mut tokens = Vec::new();
    let mut reader = account;
    for number in 0..STREAMS.div_ceil(STREAMS_OF_A_TOKEN) {
        if number > 0 && number % TOKENS_OF_AN_ACCOUNT == 0 {
            reader = stack.account().await;
            stack.share(&user, id, &reader.uid, "viewer").await;
        }
        tokens.push(stack.user_of(&reader, "canvas:read").await.token);
    }
    // Whatever a first request allocates does not count.
    let (arrivals, mut arrived) = mpsc::unbounded_channel();
    let mut revision = text(&canvas, "/revision").to_owned();
    let path = format!("{API_ROOT}/events?canvas=canvas:{}:{id}", user.uid);
    let mut streams = vec![open(&stack.authority(0), &path, &tokens[0], arrivals.clone()).await];
    reached(&mut arrived, &revision, 1).await;
    let before = resident_mib(Kind::Gateway.binary());
    for number in 1..STREAMS {
        let token = &tokens[number / STREAMS_OF_A_TOKEN];
        streams.push(open(&stack.authority(0), &path, token, arrivals.clone()).await);
    }
    reached(&mut arrived, &revision, STREAMS - 1).await;
    tokio::time::sleep(SETTLE).await;
    let after = resident_mib(Kind::Gateway.binary());
    let mut times = Vec::with_capacity(CHANGES);
    for number in 0..CHANGES {
        let rename = json!([{"type": "canvas.update", "title": format!("Title {number}")}]);
        let sent = Instant::now();
        let changed = user.batch(id, &revision, rename).await.ok();
        text(&changed, "/canvas/revision").clone_into(&mut revision);
        let last = reached(&mut arrived, &revision, STREAMS).await;
        times.push(last.duration_since(sent).as_secs_f64() * 1000.0);
    }
    streams.iter().for_each(tokio::task::JoinHandle::abort);
    let (median, p99) = (quantile(&times, 0.5), quantile(&times, 0.99));
    let kib = (after - before) * 1024.0 / (STREAMS - 1) as f64;
    vec![
        BenchRow::reported(format!("change to the last of {STREAMS} event streams, p99"), format!("{p99:.0} ms"))
            .ours(format!("median {median:.0} ms"))
            .goal(format!("<= {REACHED_MS} ms"), p99 <= REACHED_MS)
            .note(format!(
                "{CHANGES} changes of one canvas, one gateway; from sending the batch, so its commit is included."
            )),
        BenchRow::reported("memory of an open event stream", format!("{kib:.1} KiB"))
            .ours(format!("{before:.0} to {after:.0} MiB"))
            .goal(format!("<= {STREAM_KIB} KiB"), kib <= STREAM_KIB),
    ]
}

/// A revision that a stream has shown, and when.
type Arrival = (String, Instant);

/// Opens a stream, which reports each revision that it shows.
async fn open(
    authority: &str,
    path: &str,
    token: &str,
    arrivals: mpsc::UnboundedSender<Arrival>,
) -> tokio::task::JoinHandle<()> {
    let mut socket = TcpStream::connect(authority).await.expect("connects");
    socket.write_all(&load::get(path, Some(token))).await.expect("the server reads");
    tokio::spawn(async move {
        let mut read = Vec::new();
        while socket.read_buf(&mut read).await.is_ok_and(|count| count > 0) {
            while let Some(end) = load::find(&read, b"\n\n") {
                let event: Vec<u8> = read.drain(..end + 2).collect();
                if let Some(revision) = load::quoted(&event, b"\"revision\":\"") {
                    // Nobody receives it once the measurement is over.
                    let _ = arrivals.send((revision.to_owned(), Instant::now()));
                }
            }
        }
    })
}

/// Waits until this many streams have shown `revision`. Returns when the last one did.
async fn reached(arrived: &mut mpsc::UnboundedReceiver<Arrival>, revision: &str, streams: usize) -> Instant {
    let mut last = Instant::now();
    let all = async {
        let mut count = 0;
        while count < streams {
            let (shown, at) = arrived.recv().await.expect("a stream is open");
            if shown == revision {
                (count, last) = (count + 1, at);
            }
        }
    };
    tokio::time::timeout(PATIENCE, all).await.unwrap_or_else(|_| panic!("{revision} does not reach every stream"));
    last
}
