//! Against a real database: the guarantees of the statements themselves.

use std::collections::{HashMap, HashSet};

use testkit::TestDatabase;

use super::*;

macro_rules! database {
    ($conn:ident) => {
        let database = TestDatabase::new().await;
        let mut $conn = database.pool().acquire().await.expect("connects");
        let $conn = &mut *$conn;
    };
}

mod announcements;
mod fairness;
mod low_water;

const LEASE: Duration = Duration::from_secs(30);
const EXPIRED: Duration = Duration::ZERO;
const HOUR: Duration = Duration::from_secs(3600);

async fn enqueue_in(conn: &mut PgConnection, fairness_key: &str, due_in: Option<Duration>) -> Uuid {
    let id = Uuid::now_v7();
    let task = NewTask {
        id,
        queue: Queue::Image,
        kind: TaskKind::Action,
        fairness_key,
        due_in,
        traceparent: Some("00-a-b-01"),
    };
    enqueue(conn, &task).await.expect("enqueues");
    id
}

/// Promotes, as if a moment later: stored times are rounded to milliseconds, sometimes up.
async fn promote(conn: &mut PgConnection, queue: Queue, limit: usize) -> Result<Promoted> {
    sqlx::query("UPDATE task_queue SET due_at = due_at - interval '1 ms' WHERE state = 'parked'")
        .execute(&mut *conn)
        .await?;
    super::promote(conn, queue, limit, &LowWaterMarks::default(), &[]).await
}

async fn claim_up_to(conn: &mut PgConnection, limit: usize, lease: Duration) -> Vec<Claim> {
    claim(conn, &wanted(limit, lease)).await.expect("claims")
}

fn wanted(limit: usize, lease: Duration) -> ClaimRequest<'static> {
    ClaimRequest { queue: Queue::Image, limit, quarantined: false, caps: None, lease, owner: "test" }
}

async fn only(conn: &mut PgConnection) -> Claim {
    let mut claims = claim_up_to(conn, 2, LEASE).await;
    assert_eq!(claims.len(), 1);
    claims.remove(0)
}

async fn is_empty(conn: &mut PgConnection) -> bool {
    stats(conn, Queue::Image).await.expect("counts") == QueueStats::default()
}

#[tokio::test]
async fn a_task_is_claimed_once_and_settled_by_its_token_alone() {
    database!(conn);
    let id = enqueue_in(conn, "a", None).await;
    let claim = only(conn).await;
    assert_eq!((claim.id, claim.claims, claim.fairness_key.as_str()), (id, 1, "a"));
    assert_eq!(claim.traceparent.as_deref(), Some("00-a-b-01"));
    assert!(claim_up_to(conn, 1, LEASE).await.is_empty());
    assert!(!settle(conn, id, Uuid::new_v4()).await.expect("answers"));
    assert!(settle(conn, id, claim.lease_token).await.expect("settles"));
    assert!(!settle(conn, id, claim.lease_token).await.expect("answers"));
    assert!(is_empty(conn).await);
}

#[tokio::test]
async fn an_expired_lease_is_taken_over_and_its_holder_can_write_nothing() {
    database!(conn);
    let id = enqueue_in(conn, "a", None).await;
    let stale = claim_up_to(conn, 1, EXPIRED).await.remove(0);
    let promoted = promote(conn, Queue::Image, 10).await.expect("promotes");
    assert_eq!((promoted.due, promoted.expired, promoted.next_due), (0, 1, None));
    let fresh = only(conn).await;
    assert_eq!((fresh.id, fresh.claims), (id, 2));
    for refused in [
        settle(conn, id, stale.lease_token).await,
        retry(conn, id, stale.lease_token, LEASE).await.map(|due_in| due_in.is_some()),
        reschedule(conn, id, stale.lease_token, LEASE).await.map(|due_in| due_in.is_some()),
        release(conn, id, stale.lease_token).await,
    ] {
        assert!(!refused.expect("answers"));
    }
    assert!(heartbeat(conn, &[(id, stale.lease_token)], LEASE).await.expect("answers").is_empty());
    assert!(settle(conn, id, fresh.lease_token).await.expect("settles"));
}

#[tokio::test]
async fn a_lease_that_expired_unnoticed_is_still_renewed() {
    database!(conn);
    let id = enqueue_in(conn, "a", None).await;
    let claim = claim_up_to(conn, 1, EXPIRED).await.remove(0);
    let beats = heartbeat(conn, &[(id, claim.lease_token)], LEASE).await.expect("renews");
    assert_eq!(beats, [Beat { id, renewed: true, cancel_requested: false }]);
    assert_eq!(promote(conn, Queue::Image, 10).await.expect("promotes").expired, 0);
}

#[tokio::test]
async fn a_locked_row_does_not_hold_up_the_heartbeat_of_the_others() {
    let database = TestDatabase::new().await;
    let (mut conn, mut other) =
        (database.pool().acquire().await.expect("connects"), database.pool().begin().await.expect("begins"));
    let (first, second) = (enqueue_in(&mut conn, "a", None).await, enqueue_in(&mut conn, "b", None).await);
    let leases: Vec<(Uuid, Uuid)> =
        claim_up_to(&mut conn, 2, LEASE).await.iter().map(|claim| (claim.id, claim.lease_token)).collect();
    let token = leases.iter().find(|(id, _)| *id == first).expect("was claimed").1;
    assert!(settle(&mut other, first, token).await.expect("settles"));
    let beats = heartbeat(&mut conn, &leases, LEASE).await.expect("answers");
    let renewed = |id| beats.iter().find(|beat| beat.id == id).map(|beat| beat.renewed);
    assert_eq!((renewed(first), renewed(second)), (Some(false), Some(true)));
    other.commit().await.expect("commits");
    assert_eq!(heartbeat(&mut conn, &leases, LEASE).await.expect("answers").len(), 1);
}

#[tokio::test]
async fn a_task_that_lost_two_workers_is_quarantined_until_it_goes_as_planned() {
    database!(conn);
    let id = enqueue_in(conn, "a", None).await;
    for _ in 0..2 {
        assert_eq!(claim_up_to(conn, 1, EXPIRED).await.len(), 1, "not yet quarantined");
        assert!(!promote(conn, Queue::Image, 10).await.expect("promotes").quarantined);
    }
    let other = enqueue_in(conn, "a", None).await;
    assert!(promote(conn, Queue::Image, 10).await.expect("promotes").quarantined);
    assert_eq!(claim_up_to(conn, 10, LEASE).await.iter().map(|claim| claim.id).collect::<Vec<_>>(), [other]);
    let quarantined = claim(conn, &ClaimRequest { quarantined: true, ..wanted(10, LEASE) }).await.expect("claims");
    assert_eq!(quarantined.iter().map(|claim| (claim.id, claim.claims)).collect::<Vec<_>>(), [(id, 3)]);
    assert!(reschedule(conn, id, quarantined[0].lease_token, Duration::ZERO).await.expect("reschedules").is_some());
    promote(conn, Queue::Image, 10).await.expect("promotes");
    assert_eq!(only(conn).await.id, id);
}

#[tokio::test]
async fn a_task_waits_longer_after_each_claim_whose_lease_ran_out() {
    database!(conn);
    let id = enqueue_in(conn, "a", None).await;
    let pauses = [0, 4, 16].map(Duration::from_secs);
    for pause in [0, 4, 16, 16] {
        let wanted = |quarantined| ClaimRequest { quarantined, ..wanted(1, EXPIRED) };
        let claims =
            [claim(conn, &wanted(false)).await.expect("claims"), claim(conn, &wanted(true)).await.expect("claims")];
        assert_eq!(claims.concat().len(), 1);
        let promoted =
            super::promote(conn, Queue::Image, 10, &LowWaterMarks::default(), &pauses).await.expect("promotes");
        assert_eq!(promoted.expired, 1);
        let until_due =
            "SELECT round(extract(epoch FROM due_at - now()))::bigint FROM task_queue WHERE state = 'parked'";
        let waits: Option<i64> = sqlx::query_scalar(until_due).fetch_optional(&mut *conn).await.expect("reads");
        assert_eq!(waits.unwrap_or(0), pause);
        // As if the task had become due.
        sqlx::query("UPDATE task_queue SET due_at = now() - interval '1 s'").execute(&mut *conn).await.expect("ages");
        promote(conn, Queue::Image, 10).await.expect("promotes");
    }
    assert_eq!(stats(conn, Queue::Image).await.expect("reads").ready, 1);
    assert_eq!(request_cancel(conn, id).await.expect("cancels"), Some(TaskState::Ready));
}

#[tokio::test]
async fn concurrent_claims_never_share_a_task_and_leave_none() {
    let database = TestDatabase::new().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let mut expected = HashSet::new();
    for number in 0..200 {
        expected.insert(enqueue_in(&mut conn, &format!("key {}", number % 7), None).await);
    }
    let claimers = (0..8).map(|_| {
        let pool = database.pool().clone();
        tokio::spawn(async move {
            let mut conn = pool.acquire().await.expect("connects");
            let mut mine = Vec::new();
            loop {
                let claims = claim_up_to(&mut conn, 3, LEASE).await;
                if claims.is_empty() {
                    return mine;
                }
                mine.extend(claims.into_iter().map(|claim| claim.id));
            }
        })
    });
    let mut claimed = Vec::new();
    for claimer in claimers.collect::<Vec<_>>() {
        claimed.extend(claimer.await.expect("ends"));
    }
    // A claim may find nothing while another one has locked the last rows.
    claimed.extend(claim_up_to(&mut conn, 200, LEASE).await.into_iter().map(|claim| claim.id));
    assert_eq!(claimed.len(), 200);
    assert_eq!(claimed.into_iter().collect::<HashSet<_>>(), expected);
}

#[tokio::test]
async fn a_parked_task_is_ready_when_its_time_has_come_and_not_before() {
    database!(conn);
    let id = enqueue_in(conn, "a", Some(Duration::from_secs(60))).await;
    let promoted = promote(conn, Queue::Image, 10).await.expect("promotes");
    assert_eq!(promoted.due, 0);
    let next_due = promoted.next_due.expect("is known");
    assert!(next_due > Duration::from_secs(50) && next_due <= Duration::from_secs(60), "{next_due:?}");
    assert!(claim_up_to(conn, 1, LEASE).await.is_empty());

    enqueue_in(conn, "a", Some(Duration::ZERO)).await;
    assert_eq!(promote(conn, Queue::Image, 10).await.expect("promotes").due, 1);
    assert_ne!(only(conn).await.id, id);
}

#[tokio::test]
async fn retries_count_claims_plans_do_not_and_a_release_takes_its_own_back() {
    database!(conn);
    let id = enqueue_in(conn, "a", None).await;
    let claim = only(conn).await;
    assert!(retry(conn, id, claim.lease_token, Duration::ZERO).await.expect("reschedules").is_some());
    promote(conn, Queue::Image, 10).await.expect("promotes");
    let claim = only(conn).await;
    assert_eq!(claim.claims, 2);
    assert!(release(conn, id, claim.lease_token).await.expect("releases"));
    let claim = only(conn).await;
    assert_eq!(claim.claims, 2);
    assert!(reschedule(conn, id, claim.lease_token, Duration::ZERO).await.expect("reschedules").is_some());
    promote(conn, Queue::Image, 10).await.expect("promotes");
    assert_eq!(only(conn).await.claims, 1);
}

#[tokio::test]
async fn a_cancel_takes_what_nobody_has_and_tells_who_has_it() {
    database!(conn);
    let (ready, scheduled) = (enqueue_in(conn, "a", None).await, enqueue_in(conn, "a", Some(LEASE)).await);
    assert_eq!(request_cancel(conn, ready).await.expect("cancels"), Some(TaskState::Ready));
    assert_eq!(request_cancel(conn, scheduled).await.expect("cancels"), Some(TaskState::Scheduled));
    assert_eq!(request_cancel(conn, scheduled).await.expect("answers"), None);
    assert!(is_empty(conn).await);

    let id = enqueue_in(conn, "a", None).await;
    let claim = only(conn).await;
    assert!(cancel_requests(conn, &[id]).await.expect("looks").is_empty());
    assert_eq!(request_cancel(conn, id).await.expect("asks"), Some(TaskState::Leased));
    assert_eq!(cancel_requests(conn, &[id]).await.expect("looks"), [id]);
    assert!(heartbeat(conn, &[(id, claim.lease_token)], LEASE).await.expect("renews")[0].cancel_requested);
    // The cancel request outlives the worker, and does not wait for the planned time.
    assert!(release(conn, id, claim.lease_token).await.expect("releases"));
    let claim = only(conn).await;
    assert!(claim.cancel_requested);
    assert!(reschedule(conn, id, claim.lease_token, LEASE).await.expect("reschedules").is_some());
    assert!(only(conn).await.cancel_requested);
}

#[tokio::test]
async fn many_are_parked_at_once_each_for_its_own_time() {
    database!(conn);
    let ids = [enqueue_in(conn, "a", None).await, enqueue_in(conn, "b", None).await, enqueue_in(conn, "c", None).await];
    let claims = claim_up_to(conn, 3, LEASE).await;
    let token = |id: Uuid| claims.iter().find(|claim| claim.id == id).expect("was claimed").lease_token;
    let plans =
        [(ids[0], token(ids[0]), Duration::ZERO), (ids[1], token(ids[1]), HOUR), (ids[2], Uuid::now_v7(), HOUR)];
    let scheduled = reschedule_all(conn, &plans).await.expect("reschedules");
    let expected = HashMap::from([(ids[0], Duration::ZERO), (ids[1], HOUR)]);
    assert_eq!(scheduled, expected, "a stale token reschedules nothing");
    assert_eq!(promote(conn, Queue::Image, 10).await.expect("promotes").due, 1);
    let claim = only(conn).await;
    assert_eq!((claim.id, claim.claims), (ids[0], 1), "the count restarts");
}
