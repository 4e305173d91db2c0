//! The cost of reads, batches, dry runs, renders, reviews and placements on canvases of 100, 1000 and 10000 nodes. No cost may grow
//! faster than linearly with the canvas.

use std::time::{Duration, Instant};

use e2e::{API_ROOT, Stack, User};
use serde_json::json;

use crate::batches::Mover;
use crate::load::{Client, Connection, get, post};
use crate::seed;
use crate::table::{BenchRow, median};

const SIZES: [usize; 3] = [100, 1000, 10_000];
/// Each round has one request of every kind.
const ROUNDS: usize = 25;
/// The time limit for all rounds of one size. At least three rounds are made.
const LIMIT: Duration = Duration::from_secs(20);
/// The limit for ten times the nodes: linear growth, plus half of it for noise. Quadratic growth would be 100.
const GROWTH_MAX: f64 = 15.0;
/// The limit for a batch of one operation on the largest canvas, relative to a cold read of it.
const BATCH_MAX: f64 = 1.5;
/// The largest batch (docs/reference/limits.md#batches).
const OPERATIONS: usize = 200;

/// Milliseconds, in the order of [`KINDS`].
type Costs = [f64; KINDS.len()];
const KINDS: [&str; 9] = [
    "batch of one operation",
    "cold read",
    "warm read",
    "dry run of one operation",
    "render (SVG)",
    "batch of 200 operations",
    "batch of one operation, return=minimal",
    "review",
    "placement of a node beside another, dry run",
];

/// Measures each size and compares it with the previous one.
pub async fn measure(stack: &Stack) -> Vec<BenchRow> {
    let user = stack.user().await;
    let template = seed::template(stack, &user).await;
    let mut costs = Vec::new();
    for size in SIZES {
        let canvas = seed::multiple(stack, &template, &format!("size-{size}"), (size / seed::NODES) as i32).await;
        seed::analyze(stack).await;
        costs.push(of(stack, &user, canvas).await);
    }
    let [batch, read, ..] = costs[costs.len() - 1];
    let share = BenchRow::reported(
        format!("batch of one operation in cold reads, {} nodes", SIZES[2]),
        format!("{:.2}", batch / read),
    );
    let mut rows: Vec<BenchRow> = (0..KINDS.len()).map(|kind| row(kind, &costs)).collect();
    rows.push(share.goal(format!("<= {BATCH_MAX}"), batch <= BATCH_MAX * read));
    rows
}

/// The medians over the rounds.
async fn of(stack: &Stack, user: &User, canvas: seed::Canvas) -> Costs {
    let path = format!("{API_ROOT}/canvases/{}", canvas.id);
    let nodes = seed::some_nodes(stack, &canvas, OPERATIONS).await;
    // In a row above all other nodes, each at its own position, because overlaps are rejected.
    let moves = |count: usize, round: usize| -> Vec<_> {
        let to = |place: usize| json!({"x": 1000 * place, "y": -5000.0 - round as f64});
        let nodes = nodes.iter().cycle().take(count).enumerate();
        nodes.map(|(place, id)| json!({"type": "node.move", "nodeId": id, "position": to(place)})).collect()
    };
    let read = get(&path, Some(&user.token));
    let render = get(&format!("{path}/render"), Some(&user.token));
    let dry_run = json!({"validateOnly": true, "operations": moves(1, 0)}).to_string();
    let dry_run = post(&format!("{path}/operations"), &user.token, &dry_run);
    let review = get(&format!("{path}/review"), Some(&user.token));
    let beside =
        json!({"type": "node.create", "near": nodes[0], "node": {"type": "text", "width": 240, "height": 160}});
    let placement = json!({"validateOnly": true, "operations": [beside]}).to_string();
    let placement = post(&format!("{path}/operations"), &user.token, &placement);
    let mut mover = Mover::new(stack, user, canvas).await;
    let mut connection = Connection::to(&stack.authority(0));
    let mut samples: [Vec<f64>; KINDS.len()] = Default::default();
    let began = Instant::now();
    while samples[0].len() < 3 || (samples[0].len() < ROUNDS && began.elapsed() < LIMIT) {
        samples[0].push(timed(mover.step()).await);
        for (kind, request) in [(1, &read), (2, &read), (3, &dry_run), (4, &render), (7, &review), (8, &placement)] {
            let asking = async { assert_eq!(connection.exchange(request).await.status, 200, "{}", KINDS[kind]) };
            samples[kind].push(timed(asking).await);
        }
        let batch = moves(OPERATIONS, samples[0].len());
        samples[5].push(timed(mover.apply(&batch)).await);
        mover.minimal = true;
        samples[6].push(timed(mover.step()).await);
        mover.minimal = false;
    }
    samples.map(|samples| median(&samples))
}

async fn timed(work: impl Future<Output = ()>) -> f64 {
    let began = Instant::now();
    work.await;
    began.elapsed().as_secs_f64() * 1e3
}

fn row(kind: usize, costs: &[Costs]) -> BenchRow {
    let list = |figures: Vec<String>| figures.join(" / ");
    let growth: Vec<f64> = costs.windows(2).map(|pair| pair[1][kind] / pair[0][kind]).collect();
    BenchRow::reported(
        format!("{}, {} nodes", KINDS[kind], list(SIZES.map(|size| size.to_string()).into())),
        format!("grows x{}", growth.iter().map(|factor| format!("{factor:.1}")).collect::<Vec<_>>().join(", x")),
    )
    .ours(format!("{} ms", list(costs.iter().map(|costs| format!("{:.1}", costs[kind])).collect())))
    .goal(format!("<= x{GROWTH_MAX} each"), growth.iter().all(|factor| *factor <= GROWTH_MAX))
}
