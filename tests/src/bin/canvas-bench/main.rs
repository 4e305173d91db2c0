//! The benchmarks: the cost of the service relative to its baseline, measured in one run on one machine.
//!
//! **Guarantee.** Every figure with a peer is a ratio of two rates that were measured alternately, seconds apart, by the same
//! load generator with the same number of connections. Other load on the machine slows down both. The run ends by itself.
//!
//! **Mechanism.** A whole service of release builds ([`e2e::Stack`]) on private PostgreSQL (with `fsync`), Redis and
//! RabbitMQ; a bare server with the same HTTP and database libraries ([`baseline`]); `pgbench` with the gateway's own
//! statements ([`batches`]); a load generator with minimal cost ([`load`]).
//!
//! **Reason.** An absolute rate describes the machine. A ratio shows how much can still be gained.
//!
//! `tests/bench` runs it. Like the test harness, it panics where a library would return an error.

mod baseline;
mod batches;
mod cost;
mod ends;
mod films;
mod jobs;
mod lines;
mod load;
mod memory;
mod overhead;
mod peers;
mod pgbench;
mod providers;
mod rates;
mod reads;
mod recipes;
mod seed;
mod sizes;
mod statements;
mod streams;
mod table;
mod webhooks;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand, ValueEnum};
use e2e::Stack;

use table::{BenchRow, Table};

/// The time limit of the whole run. A longer run is assumed to hang.
const LIMIT: Duration = Duration::from_secs(600);
/// A key ring of one key, for benchmarks.
const MASTER_KEYS: &str = "bench:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// The default of the gateway, which the baseline uses as well.
const DATABASE_CONNECTIONS: u32 = 16;

#[derive(Parser)]
#[command(about = "Measures Canvas Service relative to its baselines; tests/bench runs it")]
struct CommandLine {
    /// Only these measurements, comma separated.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Measurement>,
    /// For `peers`, as NAME=COMMAND: a queue to run the same jobs through.
    #[arg(long)]
    peer: Vec<peers::Peer>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// The baseline server for reads, which the benchmark starts itself.
    #[command(hide = true)]
    Baseline(baseline::Arguments),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measurement {
    /// Resident memory of idle processes.
    Memory,
    /// A thousand event streams of one canvas.
    Streams,
    /// A canvas read against a bare server.
    Reads,
    /// A one-operation batch against pgbench.
    Batches,
    /// Latency of a resize from acceptance to end, on an idle service.
    Latency,
    /// Jobs per second, from acceptance to end: small ones and photographs.
    Jobs,
    /// Webhook deliveries per second.
    Webhooks,
    /// Jobs that do nothing, through this queue and through others.
    Peers,
    /// Reads and batches of canvases of growing size.
    Sizes,
    /// The time for which the end of a job locks a large canvas.
    Ends,
    /// A render whose lines lead around nodes, against one whose lines are free.
    Lines,
    /// Time between the steps of a Recipe run.
    Recipes,
    /// Latency of a provider's image from acceptance to end, on an idle service.
    Overhead,
    /// Many concurrent jobs of a provider.
    Carried,
    /// A large video from its download to the store.
    Streamed,
    /// The first range of a large video against a read of its file.
    Films,
    /// Ten thousand videos in progress at a provider.
    Waiting,
}

fn main() -> ExitCode {
    let line = CommandLine::parse();
    match line.command {
        Some(Command::Baseline(arguments)) => baseline::run(arguments),
        None => measure(&line.only, &line.peer),
    }
}

/// One thread, so that the load generator takes no more processors than it needs.
#[tokio::main(flavor = "current_thread")]
async fn measure(only: &[Measurement], peers: &[peers::Peer]) -> ExitCode {
    match tokio::time::timeout(LIMIT, run(only, peers)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => {
            eprintln!("the benchmark did not end within {} s", LIMIT.as_secs());
            ExitCode::FAILURE
        }
    }
}

async fn run(only: &[Measurement], peers: &[peers::Peer]) {
    let began = Instant::now();
    let busy = load::processors_busy(Duration::from_secs(1)).await;
    if cfg!(debug_assertions) {
        println!("These are not release builds: the figures of this run are meaningless.");
    }
    println!("-> Start a service");
    let stack = Stack::builder()
        .image_workers(1)
        .video_workers(1)
        .dispatchers(1)
        .receivers(1)
        .env("CANVAS_MASTER_KEYS", MASTER_KEYS)
        .env("CANVAS_DATABASE_CONNECTIONS", DATABASE_CONNECTIONS)
        .env("CANVAS_RATE_PER_MINUTE", 0)
        .env("CANVAS_ACTIVE_JOBS", 100_000)
        .start()
        .await;
    statements::pause(&stack).await;
    let mut table = Table::default();
    for measurement in Measurement::value_variants() {
        if only.is_empty() || only.contains(measurement) {
            let started = Instant::now();
            println!("-> {measurement:?}");
            table.add(one(*measurement, &stack, peers).await);
            println!("   done ({:.1} s)", started.elapsed().as_secs_f64());
        }
    }
    println!("\n{table}");
    println!(
        "Measured in {:.0} s, rates in turns. In the second before, other programs used {:.0} % of the processors{}",
        began.elapsed().as_secs_f64(),
        busy * 100.0,
        if busy > 0.1 { ": figures without a peer are too low." } else { "." }
    );
}

async fn one(measurement: Measurement, stack: &Stack, peers: &[peers::Peer]) -> Vec<BenchRow> {
    match measurement {
        Measurement::Memory => memory::measure(stack).await,
        Measurement::Streams => streams::measure(stack).await,
        Measurement::Reads => reads::measure(stack).await,
        Measurement::Batches => batches::measure(stack).await,
        Measurement::Latency => jobs::latency(stack).await,
        Measurement::Jobs => rates::measure(stack).await,
        Measurement::Webhooks => webhooks::measure(stack).await,
        Measurement::Peers => peers::measure(peers).await,
        Measurement::Sizes => sizes::measure(stack).await,
        Measurement::Ends => ends::measure(stack).await,
        Measurement::Lines => lines::measure(stack).await,
        Measurement::Recipes => recipes::measure(stack).await,
        Measurement::Overhead => overhead::measure(stack).await,
        Measurement::Carried => providers::carried(stack).await,
        Measurement::Streamed => providers::streamed(stack).await,
        Measurement::Films => films::measure(stack).await,
        Measurement::Waiting => providers::waiting(stack).await,
    }
}

/// The value of a variable in the environment of the stack's processes.
fn setting<'a>(stack: &'a Stack, name: &str) -> &'a str {
    let found = stack.env().iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str()).expect("the harness sets it")
}
