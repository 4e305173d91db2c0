//! What a read and a batch cost on canvases of 100, 1000 and 10000 nodes: no cost may grow faster than the canvas.

use std::time::{Duration, Instant};

use e2e::{API_ROOT, Stack};

use crate::batches::Mover;
use crate::load::{Client, Connection, get};
use crate::seed;
use crate::table::{Row, median};

const SIZES: [usize; 3] = [100, 1000, 10_000];
/// Each a batch, a read of the new revision (cold), and one more (warm).
const ROUNDS: usize = 25;
/// All rounds of one size; at least three are made.
const LIMIT: Duration = Duration::from_secs(12);
/// For ten times the nodes: linear, and a half for noise. A square would be 100.
const GROWTH_MAX: f64 = 15.0;

/// Milliseconds, in the order of [`KINDS`].
type Costs = [f64; 3];
const KINDS: [&str; 3] = ["cold read", "warm read", "batch of one operation"];

/// Measures each size and compares it with the one before.
pub async fn measure(stack: &Stack) -> Vec<Row> {
    let user = stack.user().await;
    let template = seed::template(stack, &user).await;
    let mut costs = Vec::new();
    for size in SIZES {
        let canvas = seed::multiple(stack, &template, &format!("size-{size}"), (size / seed::NODES) as i32).await;
        seed::analyze(stack).await;
        let read = get(&format!("{API_ROOT}/canvases/{}", canvas.id), Some(&user.token));
        let mover = Mover::new(stack, &user, canvas).await;
        costs.push(of(stack, mover, &read).await);
    }
    (0..KINDS.len()).map(|kind| row(kind, &costs)).collect()
}

/// Medians over the rounds.
async fn of(stack: &Stack, mut mover: Mover, read: &[u8]) -> Costs {
    let mut connection = Connection::open(&stack.authority(0)).await;
    let mut samples: [Vec<f64>; 3] = Default::default();
    let began = Instant::now();
    while samples[0].len() < 3 || (samples[0].len() < ROUNDS && began.elapsed() < LIMIT) {
        samples[2].push(timed(mover.step()).await);
        for sample in &mut samples[..2] {
            let reading = async { assert_eq!(connection.exchange(read).await.status, 200) };
            sample.push(timed(reading).await);
        }
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
