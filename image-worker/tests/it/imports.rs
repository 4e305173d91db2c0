//! Whose import is taken when (decisions 14.2, reliability R16).

use std::sync::{Arc, Mutex};

use db::imports::NewImport;
use db::tasks::{NewTask, QueueStats};
use domain::import::{Outcome, Request};
use domain::message::{Queue, TaskKind};
use image_worker::jobs::{Imports, Tasks};
use spine::{Handler, Lease, RunnerOptions, Task};
use testkit::wait_for;
use uuid::Uuid;
use workshop::Memory;

use crate::world::{DEADLINE, World, account};

/// Starts an import for an account, in the queue that it waits in. It fails when its turn has come: nobody may fetch from there.
async fn start(world: &World, uid: &str, queue: Queue) -> Uuid {
    let (id, account) = (Uuid::now_v7(), account(uid));
    let request = Request::Image { url: "https://127.0.0.1/a.png".into(), title: None, x: None, y: None };
    let (token_id, canvas_key) = (world.token, world.canvas.key);
    let new = NewImport { id, account: &account, token_id, canvas_key, request: &request };
    let (kind, lane) = (TaskKind::Import, account.as_str());
    let task = NewTask { id, queue, kind, lane, due_in: None, traceparent: None };
    let mut transaction = db::pool::begin(world.database.pool()).await.expect("begins");
    db::imports::insert(&mut transaction, &new).await.expect("inserts");
    db::tasks::enqueue(&mut transaction, &task).await.expect("enqueues");
    db::pool::commit(transaction).await.expect("commits");
    id
}

async fn stats(world: &World, queue: Queue) -> QueueStats {
    db::tasks::stats(&mut *world.conn().await, queue).await.expect("counts")
}

/// A handler that notes the lanes of what it is given.
struct Noted<H> {
    handler: H,
    lanes: Arc<Mutex<Vec<String>>>,
}

impl<H: Handler> Handler for Noted<H> {
    async fn run(&self, task: &Task, lease: &Lease) -> spine::Outcome {
        self.lanes.lock().expect("is whole").push(task.lane.clone());
        self.handler.run(task, lease).await
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> spine::Outcome {
        self.handler.exhausted(task, lease).await
    }
}

#[tokio::test]
async fn a_backlog_of_one_account_is_claimed_once_each_and_lets_another_in_by_turn() {
    const PLACES: usize = 2;
    const BACKLOG: usize = 30;
    let world = World::new().await;
    for _ in 0..BACKLOG {
        start(&world, "me", Queue::Import).await;
    }
    // Room for one file, and it is taken: what is in hand waits, as for slow servers.
    let files = Memory::new(1);
    let room = files.admit(1).await;
    let lanes = Arc::new(Mutex::new(Vec::new()));
    let handler = Noted { handler: Imports::new(world.worker(), files), lanes: lanes.clone() };
    let _running = world.run(handler, RunnerOptions::new(Queue::Import, PLACES));
    let taken = async || (lanes.lock().expect("is whole").len() == PLACES).then_some(());
    wait_for("as many imports as there are places", DEADLINE, taken).await;
    start(&world, "you", Queue::Import).await;
    let waiting = stats(&world, Queue::Import).await;
    assert_eq!((waiting.leased, waiting.parked, waiting.ready), (PLACES as i64, 0, (BACKLOG - PLACES) as i64 + 1));
    drop(room);
    let over = async || (stats(&world, Queue::Import).await == QueueStats::default()).then_some(());
    wait_for("the end of all imports", DEADLINE, over).await;
    let lanes = lanes.lock().expect("is whole");
    assert_eq!(lanes.len(), BACKLOG + 1, "each is claimed once");
    let place = lanes.iter().position(|lane| lane == "you").expect("is among them");
    assert!(place < 2 * PLACES, "within twice the time of a place: {lanes:?}");
}

#[tokio::test]
async fn an_import_that_the_release_before_queued_among_actions_is_carried_out() {
    let world = World::new().await;
    let id = start(&world, "me", Queue::Image).await;
    let of_images = world.run(Tasks(world.worker()), RunnerOptions::new(Queue::Image, 1));
    let moved = async || (stats(&world, Queue::Import).await.ready == 1).then_some(());
    wait_for("the import in its queue", DEADLINE, moved).await;
    assert_eq!(stats(&world, Queue::Image).await, QueueStats::default());
    drop(of_images);
    let imports = Imports::new(world.worker(), Memory::new(1));
    let _running = world.run(imports, RunnerOptions::new(Queue::Import, 1));
    let outcome = wait_for("its outcome", DEADLINE, async || {
        db::imports::outcome(&mut *world.conn().await, id, &world.me).await.expect("reads").expect("is there")
    });
    assert!(matches!(outcome.await, Outcome::Failed(_)));
}
