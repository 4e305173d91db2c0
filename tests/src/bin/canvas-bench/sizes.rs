//! What reads, batches, dry runs and renders cost on canvases of 100, 1000 and 10000 nodes: no cost may grow faster than the
//! canvas (issue 4).

use std::time::{Duration, Instant};

use e2e::{API_ROOT, Stack, User};
use serde_json::json;

use crate::batches::Mover;
use crate::load::{Client, Connection, get, post};
use crate::seed;
use crate::table::{Row, median};

const SIZES: [usize; 3] = [100, 1000, 10_000];
/// Each one of every kind.
const ROUNDS: usize = 25;
/// All rounds of one size; at least three are made.
const LIMIT: Duration = Duration::from_secs(20);
/// For ten times the nodes: linear, and a half for noise. A square would be 100.
const GROWTH_MAX: f64 = 15.0;
/// A batch of one operation on the largest canvas, in cold reads of it.
const BATCH_MAX: f64 = 1.5;
/// The most that one batch takes (specification, Operations).
const OPERATIONS: usize = 200;

/// Milliseconds, in the order of [`KINDS`].
type Costs = [f64; KINDS.len()];
const KINDS: [&str; 6] = [
    "batch of one operation",
    "cold read",
    "warm read",
    "dry run of one operation",
    "render (SVG)",
    "batch of 200 operations",
];

/// Measures each size and compares it with the one before.
pub async fn measure(stack: &Stack) -> Vec<Row> {
    let user = stack.user().await;
    let template = seed::template(stack, &user).await;
    let mut costs = Vec::new();
    for size in SIZES {
        let canvas = seed::multiple(stack, &template, &format!("size-{size}"), (size / seed::NODES) as i32).await;
        seed::analyze(stack).await;
        costs.push(of(stack, &user, canvas).await);
    }
    let [batch, read, ..] = costs[costs.len() - 1];
    let share =
        Row::told(format!("batch of one operation in cold reads, {} nodes", SIZES[2]), format!("{:.2}", batch / read));
    let mut rows: Vec<Row> = (0..KINDS.len()).map(|kind| row(kind, &costs)).collect();
    rows.push(share.goal(format!("<= {BATCH_MAX}"), batch <= BATCH_MAX * read));
    rows
}

/// Medians over the rounds.
async fn of(stack: &Stack, user: &User, canvas: seed::Canvas) -> Costs {
    let path = format!("{API_ROOT}/canvases/{}", canvas.id);
    let nodes = seed::some_nodes(stack, &canvas, OPERATIONS).await;
    // A row above all others, and each in a place of its own: overlaps are refused.
    let moves = |count: usize, round: usize| -> Vec<_> {
        let to = |place: usize| json!({"x": 1000 * place, "y": -5000.0 - round as f64});
        let nodes = nodes.iter().cycle().take(count).enumerate();
        nodes.map(|(place, id)| json!({"type": "node.move", "nodeId": id, "position": to(place)})).collect()
    };
    let read = get(&path, Some(&user.token));
    let render = get(&format!("{path}/render"), Some(&user.token));
    let dry_run = json!({"validateOnly": true, "operations": moves(1, 0)}).to_string();
    let dry_run = post(&format!("{path}/operations"), &user.token, &dry_run);
    let mut mover = Mover::new(stack, user, canvas).await;
    let mut connection = Connection::open(&stack.authority(0)).await;
    let mut samples: [Vec<f64>; KINDS.len()] = Default::default();
    let began = Instant::now();
    while samples[0].len() < 3 || (samples[0].len() < ROUNDS && began.elapsed() < LIMIT) {
        samples[0].push(timed(mover.step()).await);
        for (kind, request) in [&read, &read, &dry_run, &render].into_iter().enumerate() {
            let asking = async { assert_eq!(connection.exchange(request).await.status, 200, "{}", KINDS[kind + 1]) };
            samples[kind + 1].push(timed(asking).await);
        }
        let batch = moves(OPERATIONS, samples[0].len());
        samples[5].push(timed(mover.apply(&batch)).await);
    }
    samples.map(|samples| median(&samples))
}

async fn timed(work: impl Future<Output = ()>) -> f64 {
    let began = Instant::now();
    work.await;
    began.elapsed().as_secs_f64() * 1e3
}

fn row(kind: usize, costs: &[Costs]) -> Row {
    let list = |figures: Vec<String>| figures.join(" / ");
    let growth: Vec<f64> = costs.windows(2).map(|pair| pair[1][kind] / pair[0][kind]).collect();
    Row::told(
        format!("{}, {} nodes", KINDS[kind], list(SIZES.map(|size| size.to_string()).into())),
        format!("grows x{}", growth.iter().map(|factor| format!("{factor:.1}")).collect::<Vec<_>>().join(", x")),
    )
    .ours(format!("{} ms", list(costs.iter().map(|costs| format!("{:.1}", costs[kind])).collect())))
    .goal(format!("<= x{GROWTH_MAX} each"), growth.iter().all(|factor| *factor <= GROWTH_MAX))
}
