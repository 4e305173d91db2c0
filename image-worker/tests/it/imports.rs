//! Tests of fairness between the imports of different accounts
//! (docs/reliability.md#r16-fairness-between-accounts).

use std::sync::{Arc, Mutex};

use db::imports::NewImport;
use db::tasks::{NewTask, QueueStats};
use domain::import::{FailureKind, ImportOutcome, Request};
use domain::message::{Queue, TaskKind};
use image_worker::jobs::Imports;
use service::shares::{Key, Shares};
use taskqueue::{Handler, Lease, RunnerOptions, Task};
use testkit::wait_for;
use uuid::Uuid;

use crate::harness::{DEADLINE, Harness, account};

/// Enqueues an import for an account in this queue. It fails when it runs, since the egress guard rejects its URL.
async fn start(harness: &Harness, uid: &str, queue: Queue) -> Uuid {
    let (id, account) = (Uuid::now_v7(), account(uid));
    let request = Request::Image { url: "https://127.0.0.1/a.png".into(), title: None, x: None, y: None };
    let (token_id, canvas_key) = (harness.token, harness.canvas.key);
    let new = NewImport { id, account: &account, token_id, canvas_key, request: &request };
    let (kind, fairness_key) = (TaskKind::Import, account.as_str());
    let task = NewTask { id, queue, kind, fairness_key, due_in: None, traceparent: None };
    let mut transaction = db::pool::begin(harness.database.pool()).await.expect("begins");
    db::imports::insert(&mut transaction, &new).await.expect("inserts");
    db::tasks::enqueue(&mut transaction, &task).await.expect("enqueues");
    db::pool::commit(transaction).await.expect("commits");
    id
}

async fn stats(harness: &Harness, queue: Queue) -> QueueStats {
    db::tasks::stats(&mut *harness.conn().await, queue).await.expect("counts")
}

/// A handler that records the fairness keys of its tasks.
struct Noted<H> {
    handler: H,
    fairness_keys: Arc<Mutex<Vec<String>>>,
}

impl<H: Handler> Handler for Noted<H> {
    async fn run(&self, task: &Task, lease: &Lease) -> taskqueue::HandlerResult {
        self.fairness_keys.lock().expect("is whole").push(task.fairness_key.clone());
        self.handler.run(task, lease).await
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> taskqueue::HandlerResult {
        self.handler.exhausted(task, lease).await
    }
}

#[tokio::test]
async fn a_backlog_of_one_account_is_claimed_once_each_and_lets_another_in_at_once() {
    const PLACES: usize = 4;
    /// The places that an account alone gets: one is reserved for others.
    const OPEN: usize = 3;
    const BACKLOG: usize = 30;
    let harness = Harness::new().await;
    for _ in 0..BACKLOG {
        start(&harness, "me", Queue::Import).await;
    }
    // The memory fits one file and is occupied, so running imports wait, as they would for slow
    // servers.
    let files = Shares::new("files", 1, 1);
    let held = files.hold(&Key::name("test"), 1).await;
    let fairness_keys = Arc::new(Mutex::new(Vec::new()));
    let handler = Noted { handler: Imports::new(harness.worker(), files), fairness_keys: fairness_keys.clone() };
    let _running = harness.run(handler, RunnerOptions::new(Queue::Import, PLACES));
    let taken = async |count| {
        let taken = async || (fairness_keys.lock().expect("is whole").len() == count).then_some(());
        wait_for("imports in their places", DEADLINE, taken).await;
    };
    taken(OPEN).await;
    start(&harness, "you", Queue::Import).await;
    taken(PLACES).await;
    assert_eq!(fairness_keys.lock().expect("is whole")[OPEN], "you");
    let waiting = stats(&harness, Queue::Import).await;
    assert_eq!((waiting.leased, waiting.scheduled, waiting.ready), (PLACES as i64, 0, (BACKLOG - OPEN) as i64));
    drop(held);
    let over = async || (stats(&harness, Queue::Import).await == QueueStats::default()).then_some(());
    wait_for("the end of all imports", DEADLINE, over).await;
    let fairness_keys = fairness_keys.lock().expect("is whole");
    assert_eq!(fairness_keys.len(), BACKLOG + 1, "each is claimed once");
}

#[tokio::test]
async fn an_import_that_the_release_before_queued_among_actions_is_carried_out() {
    let harness = Harness::new().await;
    let id = start(&harness, "me", Queue::Image).await;
    let of_images = harness.run(Harness::tasks(harness.worker()), RunnerOptions::new(Queue::Image, 1));
    let moved = async || (stats(&harness, Queue::Import).await.ready == 1).then_some(());
    wait_for("the import in its queue", DEADLINE, moved).await;
    assert_eq!(stats(&harness, Queue::Image).await, QueueStats::default());
    drop(of_images);
    let imports = Imports::new(harness.worker(), Shares::new("files", 1, 1));
    let _running = harness.run(imports, RunnerOptions::new(Queue::Import, 1));
    let outcome = wait_for("its outcome", DEADLINE, async || {
        db::imports::outcome(&mut *harness.conn().await, id, &harness.me).await.expect("reads").expect("is there")
    });
    assert!(matches!(outcome.await, ImportOutcome::Failed(_)));
}

#[tokio::test]
async fn an_import_that_cannot_be_read_fails_after_its_last_claim() {
    let harness = Harness::new().await;
    let id = start(&harness, "me", Queue::Import).await;
    harness.execute(r#"UPDATE imports SET request = '{"kind": "of another build"}'"#).await;
    harness.exhaust_claims().await;
    let imports = Imports::new(harness.worker(), Shares::new("files", 1, 1));
    let _running = harness.run(imports, RunnerOptions::new(Queue::Import, 1));
    let outcome = wait_for("its outcome", DEADLINE, async || {
        db::imports::outcome(&mut *harness.conn().await, id, &harness.me).await.expect("reads").expect("is there")
    });
    let ImportOutcome::Failed(failure) = outcome.await else { panic!("it failed") };
    assert_eq!(failure.kind, FailureKind::Internal);
}
