//! Against a real database: what is seen of workers, and what work waits for.

use domain::message::TaskKind;
use testkit::TestDatabase;

use super::*;
use crate::tasks::{self, ClaimRequest, NewTask};

const SILENT: Duration = Duration::from_secs(15);
const LEASE: Duration = Duration::from_secs(30);

async fn seen(conn: &mut PgConnection, queue: Queue, instance: &str, ago: Duration) {
    report(conn, &Worker { queue, instance, version: "1.0.0", slots: 4, busy: 1 }).await.expect("reports");
    let aged = sqlx::query("UPDATE workers SET seen_at = now() - make_interval(secs => $1) WHERE instance = $2");
    aged.bind(ago.as_secs_f64()).bind(instance).execute(conn).await.expect("ages");
}

async fn enqueue(conn: &mut PgConnection, due_in: Option<Duration>) -> Uuid {
    let id = Uuid::now_v7();
    let task = NewTask { id, queue: Queue::Video, kind: TaskKind::Video, fairness_key: "a", due_in, traceparent: None };
    tasks::enqueue(conn, &task).await.expect("enqueues");
    id
}

async fn claim(conn: &mut PgConnection, owner: &str, lease: Duration) -> Uuid {
    let wanted = ClaimRequest { queue: Queue::Video, limit: 1, quarantined: false, caps: None, lease, owner };
    tasks::claim(conn, &wanted).await.expect("claims").remove(0).lease_token
}

async fn state(conn: &mut PgConnection, queue: Queue) -> QueueStatus {
    let queues = queues(conn, SILENT).await.expect("reads");
    queues.status().into_iter().find(|status| status.queue == queue).expect("every queue")
}

/// The cause of the wait of the work of this id.
async fn wait(conn: &mut PgConnection, id: Uuid) -> Option<WaitingFor> {
    let queues = queues(&mut *conn, SILENT).await.expect("reads");
    waiting_for(conn, &queues, &[id]).await.expect("reads").remove(&id)
}

async fn cause(conn: &mut PgConnection, id: Uuid) -> Option<WaitCause> {
    wait(conn, id).await.map(|waiting| waiting.what)
}

macro_rules! database {
    ($conn:ident) => {
        let database = TestDatabase::new().await;
        let mut $conn = database.pool().acquire().await.expect("connects");
        let $conn = &mut *$conn;
    };
}

#[tokio::test]
async fn a_worker_counts_until_it_was_not_seen_for_the_time_of_silence() {
    database!(conn);
    let status = state(conn, Queue::Video).await;
    assert_eq!((status.state, status.workers, status.last_seen_at), (QueueState::Silent, 0, None));
    seen(conn, Queue::Video, "a", SILENT - Duration::from_secs(2)).await;
    seen(conn, Queue::Image, "b", SILENT + Duration::from_secs(2)).await;
    let status = state(conn, Queue::Video).await;
    assert_eq!((status.state, status.workers, status.last_seen_at.is_some()), (QueueState::Ok, 1, true));
    let status = state(conn, Queue::Image).await;
    assert_eq!((status.state, status.workers, status.last_seen_at.is_some()), (QueueState::Silent, 0, true));
    let queues = queues(conn, SILENT).await.expect("reads");
    assert_eq!(queues.silent_for(Queue::Video), Duration::ZERO);
    assert!(queues.silent_for(Queue::Image) >= SILENT, "{:?}", queues.silent_for(Queue::Image));
}

#[tokio::test]
async fn a_report_forgets_workers_that_were_not_seen_for_an_hour_and_never_its_own() {
    database!(conn);
    for (instance, minutes) in [("old", 61), ("recent", 59), ("own", 90)] {
        seen(conn, Queue::Video, instance, Duration::from_mins(minutes)).await;
    }
    seen(conn, Queue::Video, "own", Duration::ZERO).await;
    let left = sqlx::query_scalar::<_, String>("SELECT instance FROM workers ORDER BY instance").fetch_all(conn).await;
    assert_eq!(left.expect("reads"), ["own", "recent"]);
}

#[tokio::test]
async fn the_oldest_ready_work_is_rounded_to_ten_seconds() {
    database!(conn);
    seen(conn, Queue::Video, "a", Duration::ZERO).await;
    let id = enqueue(conn, None).await;
    for (age, shown) in [(4, 0), (6, 10), (14, 10), (16, 20), (299, 300)] {
        sqlx::query("UPDATE task_queue SET due_at = now() - make_interval(secs => $1) WHERE id = $2")
            .bind(f64::from(age))
            .bind(id)
            .execute(&mut *conn)
            .await
            .expect("ages");
        let status = state(conn, Queue::Video).await;
        assert_eq!((status.oldest_waiting_seconds, status.state), (shown, QueueState::Ok), "{age}");
    }
}

#[tokio::test]
async fn ready_work_waits_for_its_turn_or_for_a_worker() {
    database!(conn);
    let id = enqueue(conn, None).await;
    let waiting = wait(conn, id).await.expect("waits");
    assert_eq!((waiting.what, waiting.last_seen_at), (WaitCause::Worker, None));
    seen(conn, Queue::Video, "a", Duration::from_mins(1)).await;
    let waiting = wait(conn, id).await.expect("waits");
    assert_eq!((waiting.what, waiting.last_seen_at.is_some()), (WaitCause::Worker, true));
    seen(conn, Queue::Video, "b", Duration::ZERO).await;
    let waiting = wait(conn, id).await.expect("waits");
    assert_eq!((waiting.what, waiting.last_seen_at), (WaitCause::Slot, None));
}

#[tokio::test]
async fn claimed_work_waits_only_when_its_lease_has_expired_and_its_holder_is_not_seen() {
    database!(conn);
    seen(conn, Queue::Video, "holder", Duration::ZERO).await;
    let id = enqueue(conn, None).await;
    claim(conn, "holder", LEASE).await;
    assert_eq!(cause(conn, id).await, None, "in progress");
    sqlx::query("UPDATE task_queue SET lease_until = now() - interval '1 s'").execute(&mut *conn).await.expect("ages");
    assert_eq!(cause(conn, id).await, Some(WaitCause::Slot), "its holder lives, and another worker takes it over");
    seen(conn, Queue::Video, "holder", Duration::from_mins(1)).await;
    seen(conn, Queue::Video, "other", Duration::ZERO).await;
    assert_eq!(cause(conn, id).await, Some(WaitCause::Worker));
    assert_eq!(cause(conn, Uuid::now_v7()).await, None, "over");
}

#[tokio::test]
async fn scheduled_work_waits_for_its_next_attempt_unless_no_worker_would_make_it() {
    database!(conn);
    seen(conn, Queue::Video, "a", Duration::ZERO).await;
    let id = enqueue(conn, None).await;
    let lease = claim(conn, "a", LEASE).await;
    assert!(tasks::retry(conn, id, lease, LEASE).await.expect("schedules").is_some());
    let waiting = wait(conn, id).await.expect("waits");
    assert_eq!((waiting.what, waiting.retry_at.is_some()), (WaitCause::Retry, true));
    seen(conn, Queue::Video, "a", Duration::from_mins(1)).await;
    let waiting = wait(conn, id).await.expect("waits");
    assert_eq!((waiting.what, waiting.retry_at), (WaitCause::Worker, None));
}

#[tokio::test]
async fn a_planned_pause_is_a_wait_for_the_next_turn() {
    database!(conn);
    seen(conn, Queue::Video, "a", Duration::ZERO).await;
    let id = enqueue(conn, Some(LEASE)).await;
    assert_eq!(cause(conn, id).await, Some(WaitCause::Slot));
}
