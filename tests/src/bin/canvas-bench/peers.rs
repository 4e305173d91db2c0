//! Jobs that do nothing: through the service's task queue, and through other queues on the same PostgreSQL.
//!
//! Each job is committed by itself before its producer goes on, is run once by one of the slots, and is recorded as done. The
//! queue here is that of the processes: RabbitMQ, claims under leases, and a settlement that waits for the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use broker::{Config, Consumer, Publisher};
use db::PgPool;
use db::tasks::NewTask;
use domain::message::{Queue, TaskKind};
use futures_util::future::join_all;
use taskqueue::{Decision, Handler, HandlerResult, Lease, Runner, RunnerOptions, Task, Waker};
use testkit::{TestDatabase, amqp_prefix, amqp_url};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::table::{BenchRow, median};

const JOBS: usize = 4000;
const PRODUCERS: usize = 8;
const SLOTS: usize = 12;
const TURNS: usize = 3;
const DEADLINE: Duration = Duration::from_secs(60);

/// A program that runs such jobs through another queue: a name, and a command that takes the URL of an empty database, the number of
/// jobs, of producers and of slots, and prints the jobs per second.
#[derive(Clone, Debug)]
pub struct Peer {
    name: String,
    command: String,
}

impl std::str::FromStr for Peer {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, command) = text.split_once('=').ok_or("a peer is NAME=COMMAND")?;
        Ok(Self { name: name.into(), command: command.into() })
    }
}

/// Measures each peer in turns with the queue of the service.
pub async fn measure(peers: &[Peer]) -> Vec<BenchRow> {
    let mut rows = Vec::new();
    for peer in peers {
        let (mut own, mut others, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..TURNS {
            let (ours, theirs) = (own_rate().await, peer.rate().await);
            own.push(ours);
            others.push(theirs);
            ratios.push(ours / theirs);
        }
        rows.push(
            BenchRow::reported(
                format!("jobs that do nothing, beside {}", peer.name),
                format!("{:.2}", median(&ratios)),
            )
            .ours(format!("{:.0} /s", median(&own)))
            .peer(format!("{:.0} /s", median(&others)))
            .note(format!(
                "{JOBS} jobs by {PRODUCERS} producers, each committed by itself, in {SLOTS} slots of one process."
            )),
        );
    }
    rows
}

impl Peer {
    async fn rate(&self) -> f64 {
        let database = TestDatabase::new().await;
        let mut words = self.command.split_whitespace();
        let mut command = Command::new(words.next().expect("a command has a program"));
        let numbers = [JOBS, PRODUCERS, SLOTS].map(|number| number.to_string());
        command.args(words).arg(database.url()).args(numbers).kill_on_drop(true);
        let output = tokio::time::timeout(DEADLINE, command.output()).await;
        let output = output.unwrap_or_else(|_| panic!("{} did not end in time", self.name)).expect("the peer starts");
        let (printed, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        printed.trim().parse().unwrap_or_else(|_| panic!("{} printed {printed}{errors}", self.name))
    }
}

/// Settles each task, and counts.
struct Settle {
    pool: PgPool,
    ended: Arc<AtomicUsize>,
}

impl Handler for Settle {
    async fn run(&self, task: &Task, lease: &Lease) -> HandlerResult {
        let settled = db::tasks::settle(&mut *db::pool::acquire(&self.pool).await?, task.id, lease.token()).await?;
        self.ended.fetch_add(usize::from(settled), Ordering::Relaxed);
        Ok(if settled { Decision::Done } else { Decision::Stale })
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> HandlerResult {
        self.run(task, lease).await
    }
}

/// Jobs per second through the queue of the service.
async fn own_rate() -> f64 {
    let database = TestDatabase::new().await;
    let pool = db::pool::connect(&database.url(), "bench", 16, None).expect("a URL");
    let broker = Config::new(&amqp_url(), &amqp_prefix(), "bench").expect("a URL");
    let (waker, publisher) = Publisher::new(broker.clone());
    let ended = Arc::new(AtomicUsize::new(0));
    let handler = Settle { pool: pool.clone(), ended: ended.clone() };
    let consumer = Consumer::start(broker.clone(), Queue::Image, SLOTS as u16);
    let runner = Runner::new(&pool, consumer, handler, RunnerOptions::new(Queue::Image, SLOTS));
    let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
    let processes = [tokio::spawn(publisher.run(stop.clone())), tokio::spawn(runner.run(stop.clone(), abort))];

    let began = Instant::now();
    join_all((0..PRODUCERS).map(|number| produce(&pool, &waker, number))).await;
    let all = async {
        while ended.load(Ordering::Relaxed) < JOBS {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(DEADLINE, all).await.expect("the tasks end in time");
    let rate = JOBS as f64 / began.elapsed().as_secs_f64();
    stop.cancel();
    for process in processes {
        process.await.expect("ends well");
    }
    broker::remove(&broker).await.expect("removes the queues");
    rate
}

async fn produce(pool: &PgPool, waker: &Waker, number: usize) {
    let account = format!("account {number}");
    for _ in 0..JOBS / PRODUCERS {
        let task = NewTask {
            id: Uuid::now_v7(),
            queue: Queue::Image,
            kind: TaskKind::Action,
            fairness_key: &account,
            due_in: None,
            traceparent: None,
        };
        db::tasks::enqueue(&mut db::pool::acquire(pool).await.expect("connects"), &task).await.expect("enqueues");
        waker.wake(task.queue, task.id);
    }
}
