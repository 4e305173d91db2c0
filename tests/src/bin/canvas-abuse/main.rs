//! The tier of attacks: an account, an address or a file that takes all it can get must not take the service from others.
//!
//! **Guarantee.** Each row runs on a stack of its own and ends by itself. It fails if a victim is refused, if the 95th percentile of a
//! kind of its requests exceeds the bound of the row, if the attacker gets an answer that it must not get, or if anything is left
//! afterwards: descriptors, tasks, rows of the purged accounts, files, keys.
//!
//! **Mechanism.** Victims make four requests a second ([`victim`]). First they are undisturbed, then attacked ([`attacks`]) by raw
//! sockets and clients from other addresses of loopback. Then the attacker's accounts are purged and the leftovers counted
//! ([`leftovers`]).
//!
//! **Reason.** A limit that nobody attacks holds only on paper. The baseline is measured in the same run, just before, because the
//! machine is not the same tomorrow.
//!
//! `tests/abuse` runs it. Like the test harness, it panics where a library would return an error.

mod attacks;
mod leftovers;
mod processor;
mod rows;
mod scene;
mod victim;
mod wire;

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use e2e::Part;
use futures_util::FutureExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use rows::{ROWS, Row, SHORT};
use scene::Scene;
use victim::{Samples, Victims};
use wire::Outcome;

/// The lengths of the baseline and of an attack.
const FULL: Periods = Periods { baseline: Duration::from_secs(30), attack: Duration::from_secs(60) };
const SHORTENED: Periods = Periods { baseline: Duration::from_secs(8), attack: Duration::from_secs(10) };
/// The time limit of a row. A longer one is assumed to hang.
const LIMIT: Duration = Duration::from_secs(420);

struct Periods {
    baseline: Duration,
    attack: Duration,
}

#[derive(Parser)]
#[command(about = "Attacks Canvas Service and measures what innocent accounts notice; tests/abuse runs it")]
struct CommandLine {
    /// Only these rows, comma separated. By default all, in the short form one for each mechanism.
    #[arg(long, value_delimiter = ',')]
    only: Vec<u8>,
    /// Attacks of 10 s, which do not judge small differences in time. A row that fails is run again, and the second run counts.
    #[arg(long)]
    short: bool,
    /// Prints the rows.
    #[arg(long)]
    list: bool,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let mut ended = signal(SignalKind::terminate()).expect("handles signals");
    // The stack of the row is stopped and removed.
    tokio::select! {
        code = run(CommandLine::parse()) => code,
        _ = ended.recv() => ExitCode::from(143),
        _ = tokio::signal::ctrl_c() => ExitCode::from(130),
    }
}

async fn run(line: CommandLine) -> ExitCode {
    let only: &[u8] = if line.only.is_empty() && line.short { &SHORT } else { &line.only };
    let unknown: Vec<&u8> = only.iter().filter(|number| ROWS.iter().all(|row| row.number != **number)).collect();
    if !unknown.is_empty() {
        eprintln!("there is no row {unknown:?}: see --list");
        return ExitCode::from(2);
    }
    let wanted = ROWS.iter().filter(|row| only.is_empty() || only.contains(&row.number));
    if line.list {
        wanted.for_each(|row| println!("{:2}  {}", row.number, row.name));
        return ExitCode::SUCCESS;
    }
    if cfg!(debug_assertions) && !line.short {
        println!("These are not release builds: bounds on time mean nothing.");
    }
    let began = Instant::now();
    let mut verdicts = Vec::new();
    for row in wanted {
        let mut faults = verdict(row, line.short).await;
        // Other programs may have used the processors in those seconds.
        if line.short && !faults.is_empty() {
            faults = verdict(row, line.short).await;
        }
        verdicts.push((row, faults));
    }
    println!();
    for (row, faults) in &verdicts {
        println!("{:2}  {:48}  {}", row.number, row.name, if faults.is_empty() { "ok" } else { "FAILED" });
    }
    let failed = verdicts.iter().filter(|(_, faults)| !faults.is_empty()).count();
    println!("{} of {} rows failed ({:.0} s).", failed, verdicts.len(), began.elapsed().as_secs_f64());
    ExitCode::from(u8::from(failed > 0))
}

/// Runs a row to its end or its time limit, and prints what it found. Returns its faults.
async fn verdict(row: &'static Row, short: bool) -> Vec<String> {
    println!("-> {:2} {}", row.number, row.name);
    let started = Instant::now();
    // A panic of one row, whose message was printed, leaves the others.
    let attacked = AssertUnwindSafe(attacked(row, short)).catch_unwind();
    let faults = match tokio::time::timeout(LIMIT, attacked).await {
        Ok(Ok(faults)) => faults,
        Ok(Err(_)) => vec!["the row panicked".to_owned()],
        Err(_) => vec![format!("the row did not end within {} s", LIMIT.as_secs())],
    };
    faults.iter().for_each(|fault| println!("   FAILED: {fault}"));
    println!("   {:.0} s", started.elapsed().as_secs_f64());
    faults
}

/// Runs a row and returns its faults.
async fn attacked(row: &'static Row, short: bool) -> Vec<String> {
    let periods = if short { SHORTENED } else { FULL };
    let scene = Arc::new(Scene::start(row, short).await);
    let victims = Arc::new(Victims::prepare(&scene, row).await);
    let processors = || scene.parts().into_iter().map(|part| processor::seconds(&scene.stack, part)).sum::<f64>();
    let course = async {
        scene.prepared().await;
        let baseline = victims.run(periods.baseline).await;
        let (before, used) = (leftovers::before(&scene).await, processors());
        scene.begin();
        let attacked = victims.run(periods.attack).await;
        let used = processors() - used;
        scene.end();
        (baseline, before, attacked, used)
    };
    let (course, ()) = tokio::join!(course, attack(row, &scene, &victims));
    let (baseline, before, attacked, used) = course;
    report(&scene, row, &baseline, &attacked, &before, used).await;
    judge_victims(&scene, row, &baseline, &attacked);
    judge_attacker(&scene, row);
    leftovers::look(&scene, &before).await;
    scene.faults()
}

/// Runs the attack of a row on a thread that takes only what the service and the victims leave of the processors: attackers have
/// machines of their own.
async fn attack(row: &'static Row, scene: &Arc<Scene>, victims: &Arc<Victims>) {
    // If the row is abandoned at its limit of time.
    let _end = scene.ends_when_dropped();
    let (scene, victims, (done, ended)) = (Arc::clone(scene), Arc::clone(victims), oneshot::channel());
    std::thread::spawn(move || {
        processor::yield_to_others();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on((row.attack)(&scene, &victims));
        // Nobody waits for the attack of an abandoned row.
        let _ = done.send(());
    });
    ended.await.expect("the attack does not panic");
}

/// Prints the figures of a row.
async fn report(
    scene: &Scene,
    row: &Row,
    baseline: &Samples,
    attacked: &Samples,
    before: &leftovers::Before,
    used: f64,
) {
    for kind in attacked.kinds() {
        let (then, now) = (baseline.p95(kind).unwrap_or_default(), attacked.p95(kind).unwrap_or_default());
        let bound = row.bound(kind).of(then, scene.short);
        println!(
            "   {:28} p95 {then:6.0} ms, attacked {now:6.0} ms of {bound:6.0}, {} requests",
            kind.to_string(),
            attacked.count(kind)
        );
    }
    let seen: Vec<String> = scene.seen().iter().map(|(outcome, seen)| format!("{} × {outcome}", seen.count)).collect();
    println!("   attacker: {}", if seen.is_empty() { "no answers".to_owned() } else { seen.join(", ") });
    let metrics = leftovers::metrics(&scene.stack).await;
    println!(
        "   gateway: at most {} MiB, /metrics {} KiB with {} series ({:+}); processors of the parts: {used:.1} s",
        scene.stack.peak_resident(Part::GATEWAY) >> 20,
        metrics.len() / 1024,
        leftovers::series(&metrics),
        leftovers::series(&metrics) as i64 - before.series as i64,
    );
    scene.notes().iter().for_each(|note| println!("   {note}"));
}

/// Reports refusals of the victims, and requests that took too long.
fn judge_victims(scene: &Scene, row: &Row, baseline: &Samples, attacked: &Samples) {
    for (wrong, count) in &baseline.wrong {
        scene.fail(format!("before the attack, {count} × {wrong}"));
    }
    for (wrong, count) in &attacked.wrong {
        scene.fail(format!("a victim is hit: {count} × {wrong}"));
    }
    for kind in attacked.kinds() {
        let Some((then, now)) = baseline.p95(kind).zip(attacked.p95(kind)) else { continue };
        let bound = row.bound(kind).of(then, scene.short);
        if now > bound {
            scene.fail(format!("{kind}: p95 {now:.0} ms, more than {bound:.0} ms ({then:.0} ms without the attack)"));
        }
    }
}

/// Reports answers that the attacker must not get, and those that it should have got.
fn judge_attacker(scene: &Scene, row: &Row) {
    let seen = scene.seen();
    for (outcome, seen) in &seen {
        if let Outcome::Status(status) = outcome
            && !row.may.contains(status)
        {
            let (count, reason) = (seen.count, seen.reason.as_deref().unwrap_or_default());
            scene.fail(format!("the attacker got {count} × {status}, which is none of {:?}: {reason}", row.may));
        }
    }
    // Some time limits are longer than an attack of the short form.
    if seen.is_empty() && !scene.short {
        scene.fail("the attacker got no answer, and its connections were not ended");
    }
    for status in row.must.iter().filter(|status| scene.count(**status) == 0) {
        scene.fail(format!("the attacker never got {status}"));
    }
}
