//! The benchmarks: what the service costs, beside the floor it stands on, measured in one run on one machine.
//!
//! **Guarantee.** Every figure with a peer is a ratio of two rates that were measured in turns, seconds apart, by the same
//! load generator with the same number of connections; a neighbour that takes the processor takes it from both. The run
//! ends by itself.
//!
//! **Mechanism.** A whole service of release builds ([`e2e::Stack`]) on private PostgreSQL (with `fsync`), Redis and
//! RabbitMQ; a bare server of the same HTTP and database libraries ([`floor`]); `pgbench` with the gateway's own
//! statements ([`batches`]); a load generator that does as little as possible ([`load`]).
//!
//! **Reason.** A rate without a floor tells about the machine. A ratio tells what is left to gain.
//!
//! `tests/bench` runs it. Like the harness it panics where a library would return an error.

mod batches;
mod floor;
mod jobs;
mod load;
mod memory;
mod overhead;
mod providers;
mod rates;
mod reads;
mod recipes;
mod seed;
mod sizes;
mod statements;
mod table;
mod webhooks;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand, ValueEnum};
use e2e::Stack;

use table::{Row, Table};

/// The whole run; what takes longer has hung.
const LIMIT: Duration = Duration::from_secs(600);
/// A key ring of one key, for benchmarks.
const MASTER_KEYS: &str = "bench:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// The product's default, and the floor's: neither side has more than the other.
const DATABASE_CONNECTIONS: u32 = 16;

#[derive(Parser)]
#[command(about = "Measures Canvas Service beside its floors; tests/bench runs it")]
struct CommandLine {
    /// Only these measurements, comma separated.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Measurement>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// The bare server that reads are measured against; the benchmark starts it itself.
    #[command(hide = true)]
    Floor(floor::Arguments),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measurement {
    /// Resident memory of idle processes.
    Memory,
    /// A canvas read against a bare server.
    Reads,
    /// A one-operation batch against pgbench.
    Batches,
    /// A resize from its acceptance to its end, on an idle service.
    Latency,
    /// Jobs per second, from acceptance to end: empty ones, and photographs.
    Jobs,
    /// Webhook deliveries per second.
    Webhooks,
    /// Reads and batches of growing canvases.
    Sizes,
    /// What lies between the steps of a Recipe run.
    Recipes,
    /// A picture by a provider from its acceptance to its end, on an idle service.
    Overhead,
    /// Many jobs of a provider at once.
    Carried,
    /// A large video on its way into the store.
    Streamed,
    /// Ten thousand videos that a provider is working on.
    Waiting,
}

fn main() -> ExitCode {
    let line = CommandLine::parse();
    match line.command {
        Some(Command::Floor(arguments)) => floor::run(arguments),
        None => measure(&line.only),
    }
}

/// One thread: the load generator must not take more processors than it needs.
#[tokio::main(flavor = "current_thread")]
async fn measure(only: &[Measurement]) -> ExitCode {
    match tokio::time::timeout(LIMIT, run(only)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => {
            eprintln!("the benchmark did not end within {} s", LIMIT.as_secs());
            ExitCode::FAILURE
        }
    }
}

async fn run(only: &[Measurement]) {
    let began = Instant::now();
    let busy = load::processors_busy(Duration::from_secs(1)).await;
    if cfg!(debug_assertions) {
        println!("These are no release builds: no figure of this run means anything.");
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
            table.add(one(*measurement, &stack).await);
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

async fn one(measurement: Measurement, stack: &Stack) -> Vec<Row> {
    match measurement {
        Measurement::Memory => memory::measure(stack).await,
        Measurement::Reads => reads::measure(stack).await,
        Measurement::Batches => batches::measure(stack).await,
        Measurement::Latency => jobs::latency(stack).await,
        Measurement::Jobs => rates::measure(stack).await,
        Measurement::Webhooks => webhooks::measure(stack).await,
        Measurement::Sizes => sizes::measure(stack).await,
        Measurement::Recipes => recipes::measure(stack).await,
        Measurement::Overhead => overhead::measure(stack).await,
        Measurement::Carried => providers::carried(stack).await,
        Measurement::Streamed => providers::streamed(stack).await,
        Measurement::Waiting => providers::waiting(stack).await,
    }
}

/// A variable of the environment of the stack's processes.
fn setting<'a>(stack: &'a Stack, name: &str) -> &'a str {
    let found = stack.env().iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str()).expect("the harness sets it")
}
