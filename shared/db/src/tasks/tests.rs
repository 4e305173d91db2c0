//! Against a real database: the guarantees that the statements alone give.

use std::collections::HashSet;

use testkit::TestDatabase;

use super::*;
use crate::outbox;

const LEASE: Duration = Duration::from_secs(30);
const EXPIRED: Duration = Duration::ZERO;
const HOUR: Duration = Duration::from_secs(3600);

async fn enqueue_in(conn: &mut PgConnection, lane: &str, due_in: Option<Duration>) -> Uuid {
    let id = Uuid::now_v7();
    let task =
        NewTask { id, queue: Queue::Image, kind: TaskKind::Action, lane, due_in, traceparent: Some("00-a-b-01") };
    enqueue(conn, &task).await.expect("enqueues");
    id
}

/// Promotes, as a moment later: stored times are rounded to milliseconds, upwards too.
async fn promote(conn: &mut PgConnection, queue: Queue, limit: usize) -> Result<Promoted> {
    sqlx::query("UPDATE tasks SET due_at = due_at - interval '1 ms' WHERE state = 'parked'")
        .execute(&mut *conn)
        .await?;
    super::promote(conn, queue, limit).await
}

async fn claim_up_to(conn: &mut PgConnection, limit: usize, lease: Duration) -> Vec<Claim> {
    let wanted = Wanted { queue: Queue::Image, limit, suspects: false, lanes: None, lease, owner: "test" };
    claim(conn, &wanted).await.expect("claims")
}

async fn claim_capped(conn: &mut PgConnection, limit: usize, cap: usize, held: &[(String, usize)]) -> Vec<Claim> {
    let lanes = Some(LaneCap { cap, held, tenant_cap: usize::MAX, tenants: &[] });
    let wanted = Wanted { queue: Queue::Image, limit, suspects: false, lanes, lease: LEASE, owner: "test" };
    claim(conn, &wanted).await.expect("claims")
}

async fn only(conn: &mut PgConnection) -> Claim {
    let mut claims = claim_up_to(conn, 2, LEASE).await;
    assert_eq!(claims.len(), 1);
    claims.remove(0)
}

async fn is_empty(conn: &mut PgConnection) -> bool {
    stats(conn, Queue::Image).await.expect("counts") == QueueStats::default()
}

macro_rules! database {
    ($conn:ident) => {
        let database = TestDatabase::new().await;
        let mut $conn = database.pool().acquire().await.expect("connects");
        let $conn = &mut *$conn;
    };
}

#[tokio::test]
async fn a_task_is_claimed_once_and_settled_by_its_token_alone() {
    database!(conn);
    let id = enqueue_in(conn, "a", None).await;
    let claim = only(conn).await;
    assert_eq!((claim.id, claim.claims, claim.lane.as_str()), (id, 1, "a"));
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
        retry(conn, id, stale.lease_token, LEASE).await,
        reschedule(conn, id, stale.lease_token, LEASE).await,
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
    let token = leases.iter().find(|(id, _)| *id == first).expect("is claimed").1;
    assert!(settle(&mut other, first, token).await.expect("settles"));
    let beats = heartbeat(&mut conn, &leases, LEASE).await.expect("answers");
    let renewed = |id| beats.iter().find(|beat| beat.id == id).map(|beat| beat.renewed);
    assert_eq!((renewed(first), renewed(second)), (Some(false), Some(true)));
    other.commit().await.expect("commits");
    assert_eq!(heartbeat(&mut conn, &leases, LEASE).await.expect("answers").len(), 1);
}

#[tokio::test]
async fn a_lane_that_comes_late_stands_in_the_next_turn() {
    database!(conn);
    for _ in 0..50 {
        enqueue_in(conn, "busy", None).await;
    }
    assert_eq!(claim_up_to(conn, 10, LEASE).await.len(), 10);
    let late = enqueue_in(conn, "late", None).await;
    let next: Vec<Uuid> = claim_up_to(conn, 2, LEASE).await.iter().map(|claim| claim.id).collect();
    assert!(next.contains(&late), "one task of the busy lane at most comes first");
}

#[tokio::test]
async fn lanes_take_turns() {
    database!(conn);
    for lane in ["a", "a", "a", "a", "b", "b", "c"] {
        enqueue_in(conn, lane, None).await;
    }
    let mut order = Vec::new();
    while let Some(claim) = claim_up_to(conn, 1, LEASE).await.pop() {
        order.push(claim.lane);
    }
    assert_eq!(order, ["a", "b", "c", "a", "b", "a", "a"]);
}

#[tokio::test]
async fn an_idle_lane_saves_up_no_credit() {
    database!(conn);
    // "a" works alone for long; when "b" and "a" both come again, neither owes the other anything.
    for _ in 0..20 {
        let id = enqueue_in(conn, "a", None).await;
        let claim = only(conn).await;
        assert!(settle(conn, id, claim.lease_token).await.expect("settles"));
    }
    for lane in ["a", "b", "b", "a"] {
        enqueue_in(conn, lane, None).await;
    }
    let first_turn: HashSet<String> = claim_up_to(conn, 2, LEASE).await.into_iter().map(|claim| claim.lane).collect();
    assert_eq!(first_turn.len(), 2);
}

#[tokio::test]
async fn promoted_tasks_of_one_lane_stand_in_turns_of_their_own() {
    database!(conn);
    for _ in 0..5 {
        enqueue_in(conn, "busy", Some(Duration::ZERO)).await;
    }
    assert_eq!(promote(conn, Queue::Image, 10).await.expect("promotes").due, 5);
    let late = enqueue_in(conn, "late", None).await;
    let next: Vec<Uuid> = claim_up_to(conn, 2, LEASE).await.iter().map(|claim| claim.id).collect();
    assert!(next.contains(&late));
    // And one that is enqueued after them in their lane comes last.
    let last = enqueue_in(conn, "busy", None).await;
    let rest: Vec<Uuid> = claim_up_to(conn, 3, LEASE).await.iter().map(|claim| claim.id).collect();
    assert!(!rest.contains(&last));
}

#[tokio::test]
async fn a_lane_that_stays_at_its_cap_gives_those_that_come_later_no_credit() {
    database!(conn);
    for _ in 0..5 {
        enqueue_in(conn, "dead", None).await;
    }
    let dead = [("dead".to_owned(), claim_capped(conn, 10, 2, &[]).await.len())];
    for _ in 0..30 {
        enqueue_in(conn, "early", None).await;
    }
    // The early lane has been served for long when another one comes with as many tasks.
    for _ in 0..20 {
        let claim = claim_capped(conn, 1, 2, &dead).await.remove(0);
        assert!(settle(conn, claim.id, claim.lease_token).await.expect("settles"));
    }
    let in_service = claim_capped(conn, 1, 2, &dead).await;
    assert_eq!(in_service[0].lane, "early");
    for _ in 0..9 {
        enqueue_in(conn, "late", None).await;
        enqueue_in(conn, "later", Some(Duration::ZERO)).await;
    }
    promote(conn, Queue::Image, 100).await.expect("promotes");
    let lanes: Vec<String> =
        claim_capped(conn, 20, 9, &[("dead".to_owned(), 9)]).await.into_iter().map(|claim| claim.lane).collect();
    for lane in ["early", "late", "later"] {
        let served = lanes.iter().filter(|served| *served == lane).count();
        assert!(served >= 5, "{lane} is served {served} times of {}: {lanes:?}", lanes.len());
    }
}

#[tokio::test]
async fn a_task_whose_worker_died_keeps_its_turn() {
    database!(conn);
    let first = enqueue_in(conn, "a", None).await;
    for _ in 0..5 {
        enqueue_in(conn, "a", None).await;
    }
    assert_eq!(claim_up_to(conn, 1, EXPIRED).await[0].id, first);
    promote(conn, Queue::Image, 10).await.expect("promotes");
    assert_eq!(claim_up_to(conn, 1, LEASE).await[0].id, first);
}

#[tokio::test]
async fn a_task_that_lost_two_workers_is_a_suspect_until_it_goes_as_planned() {
    database!(conn);
    let id = enqueue_in(conn, "a", None).await;
    for _ in 0..2 {
        assert_eq!(claim_up_to(conn, 1, EXPIRED).await.len(), 1, "not yet a suspect");
        assert!(!promote(conn, Queue::Image, 10).await.expect("promotes").suspects);
    }
    let other = enqueue_in(conn, "a", None).await;
    assert!(promote(conn, Queue::Image, 10).await.expect("promotes").suspects);
    assert_eq!(claim_up_to(conn, 10, LEASE).await.iter().map(|claim| claim.id).collect::<Vec<_>>(), [other]);
    let wanted = Wanted { queue: Queue::Image, limit: 10, suspects: true, lanes: None, lease: LEASE, owner: "test" };
    let suspects = claim(conn, &wanted).await.expect("claims");
    assert_eq!(suspects.iter().map(|claim| (claim.id, claim.claims)).collect::<Vec<_>>(), [(id, 3)]);
    assert!(reschedule(conn, id, suspects[0].lease_token, Duration::ZERO).await.expect("parks"));
    promote(conn, Queue::Image, 10).await.expect("promotes");
    assert_eq!(only(conn).await.id, id);
}

#[tokio::test]
async fn a_full_lane_is_passed_over() {
    database!(conn);
    for _ in 0..6 {
        enqueue_in(conn, "full", None).await;
    }
    let other = enqueue_in(conn, "other", None).await;
    let claims = claim_capped(conn, 10, 2, &[("full".to_owned(), 2)]).await;
    assert_eq!(claims.iter().map(|claim| claim.id).collect::<Vec<_>>(), [other]);
    // At, below and above the cap.
    assert_eq!(claim_capped(conn, 10, 2, &[("full".to_owned(), 1)]).await.len(), 1);
    assert_eq!(claim_capped(conn, 10, 2, &[("full".to_owned(), 3)]).await.len(), 0);
    assert_eq!(claim_capped(conn, 10, 2, &[]).await.len(), 2);
    assert_eq!(stats(conn, Queue::Image).await.expect("counts").ready, 3);
}

#[tokio::test]
async fn who_stands_behind_the_long_backlog_of_a_full_lane_is_found() {
    database!(conn);
    for _ in 0..200 {
        enqueue_in(conn, "full", None).await;
    }
    // Awakened with the turn in service, as who comes later is; here it stands behind all the others.
    let other = enqueue_in(conn, "other", None).await;
    sqlx::query("UPDATE tasks SET turn = turn + 1000 WHERE id = $1")
        .bind(other)
        .execute(&mut *conn)
        .await
        .expect("moves");
    let claims = claim_capped(conn, 10, 4, &[("full".to_owned(), 3)]).await;
    assert_eq!(claims.iter().map(|claim| claim.id).collect::<Vec<_>>(), [other]);
    // Down to half of its cap it is filled up.
    assert_eq!(claim_capped(conn, 10, 4, &[("full".to_owned(), 2)]).await.len(), 2);
}

#[tokio::test]
async fn concurrent_claims_never_share_a_task_and_leave_none() {
    let database = TestDatabase::new().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let mut expected = HashSet::new();
    for number in 0..200 {
        expected.insert(enqueue_in(&mut conn, &format!("lane {}", number % 7), None).await);
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
    // A claimer may find nothing while the last rows are locked by another, who takes them.
    claimed.extend(claim_up_to(&mut conn, 200, LEASE).await.into_iter().map(|claim| claim.id));
    assert_eq!(claimed.len(), 200);
    assert_eq!(claimed.into_iter().collect::<HashSet<_>>(), expected);
}

#[tokio::test]
async fn a_parked_task_is_ready_when_its_time_has_come_and_not_before() {
    database!(conn);
    let id = enqueue_in(conn, "a", Some(Duration::from_secs(60))).await;
    assert!(outbox::claim_batch(conn, 10, LEASE).await.expect("looks").rows.is_empty());
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
    assert!(retry(conn, id, claim.lease_token, Duration::ZERO).await.expect("parks"));
    promote(conn, Queue::Image, 10).await.expect("promotes");
    let claim = only(conn).await;
    assert_eq!(claim.claims, 2);
    assert!(release(conn, id, claim.lease_token).await.expect("releases"));
    let claim = only(conn).await;
    assert_eq!(claim.claims, 2);
    assert!(reschedule(conn, id, claim.lease_token, Duration::ZERO).await.expect("parks"));
    promote(conn, Queue::Image, 10).await.expect("promotes");
    assert_eq!(only(conn).await.claims, 1);
}

#[tokio::test]
async fn a_cancel_takes_what_nobody_has_and_tells_who_has_it() {
    database!(conn);
    let (ready, parked) = (enqueue_in(conn, "a", None).await, enqueue_in(conn, "a", Some(LEASE)).await);
    assert_eq!(request_cancel(conn, ready).await.expect("cancels"), Some(TaskState::Ready));
    assert_eq!(request_cancel(conn, parked).await.expect("cancels"), Some(TaskState::Parked));
    assert_eq!(request_cancel(conn, parked).await.expect("answers"), None);
    assert!(is_empty(conn).await);

    let id = enqueue_in(conn, "a", None).await;
    let claim = only(conn).await;
    assert!(cancel_requests(conn, &[id]).await.expect("looks").is_empty());
    assert_eq!(request_cancel(conn, id).await.expect("asks"), Some(TaskState::Leased));
    assert_eq!(cancel_requests(conn, &[id]).await.expect("looks"), [id]);
    assert!(heartbeat(conn, &[(id, claim.lease_token)], LEASE).await.expect("renews")[0].cancel_requested);
    // The wish outlives the worker, and does not wait for what was planned.
    assert!(release(conn, id, claim.lease_token).await.expect("releases"));
    let claim = only(conn).await;
    assert!(claim.cancel_requested);
    assert!(reschedule(conn, id, claim.lease_token, LEASE).await.expect("parks"));
    assert!(only(conn).await.cancel_requested);
}

/// The tasks that the outbox announces; they are not announced again.
async fn announced(conn: &mut PgConnection) -> Vec<Uuid> {
    let rows = outbox::claim_batch(conn, 100, LEASE).await.expect("looks").rows;
    rows.iter().map(|row| row.task).collect()
}

#[tokio::test]
async fn a_parked_task_that_is_woken_is_ready_in_the_next_turn_and_announced() {
    database!(conn);
    let id = enqueue_in(conn, "late", Some(HOUR)).await;
    for _ in 0..3 {
        enqueue_in(conn, "busy", None).await;
    }
    announced(conn).await;
    wake(conn, id).await.expect("wakes");
    assert_eq!(announced(conn).await, [id]);
    let order = claim_up_to(conn, 4, LEASE).await;
    assert!(order.iter().take(2).any(|claim| claim.id == id), "beside the other lane's first");
    wake(conn, Uuid::now_v7()).await.expect("there is nobody to wake");
    assert!(announced(conn).await.is_empty());
}

#[tokio::test]
async fn a_task_that_is_woken_in_a_workers_hands_is_not_parked_once() {
    database!(conn);
    let id = enqueue_in(conn, "a", None).await;
    for plan in [true, false] {
        let claim = only(conn).await;
        wake(conn, id).await.expect("wakes");
        wake(conn, id).await.expect("wakes");
        announced(conn).await;
        if plan {
            assert!(reschedule(conn, id, claim.lease_token, HOUR).await.expect("parks"));
        } else {
            assert_eq!(reschedule_all(conn, &[(id, claim.lease_token, HOUR)]).await.expect("parks"), [id]);
        }
        assert_eq!(announced(conn).await, [id]);
    }
    // The claim looked, whatever woke it before.
    let claim = only(conn).await;
    assert!(reschedule(conn, id, claim.lease_token, HOUR).await.expect("parks"));
    assert!(announced(conn).await.is_empty() && claim_up_to(conn, 1, LEASE).await.is_empty());
}

#[tokio::test]
async fn of_a_wake_up_and_a_park_at_one_moment_none_is_lost() {
    let database = TestDatabase::new().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let id = enqueue_in(&mut conn, "a", None).await;
    for wakes_first in [true, false] {
        let token = only(&mut conn).await.lease_token;
        announced(&mut conn).await;
        let mut first = database.pool().begin().await.expect("begins");
        if wakes_first {
            wake(&mut first, id).await.expect("wakes");
        } else {
            assert!(reschedule(&mut first, id, token, HOUR).await.expect("parks"));
        }
        let pool = database.pool().clone();
        let second = tokio::spawn(async move {
            let conn = &mut *pool.acquire().await.expect("connects");
            if wakes_first {
                assert!(reschedule(conn, id, token, HOUR).await.expect("parks"));
            } else {
                wake(conn, id).await.expect("wakes");
            }
        });
        let waits = async || {
            let waiting =
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
            let waiting: i64 = sqlx::query_scalar(waiting).fetch_one(database.pool()).await.expect("looks");
            (waiting > 0).then_some(())
        };
        testkit::wait_for("the other to wait", LEASE, waits).await;
        first.commit().await.expect("commits");
        second.await.expect("ends");
        assert_eq!(announced(&mut conn).await, [id], "whoever was first");
    }
}

#[tokio::test]
async fn many_are_parked_at_once_each_for_its_own_time() {
    database!(conn);
    let ids = [enqueue_in(conn, "a", None).await, enqueue_in(conn, "b", None).await, enqueue_in(conn, "c", None).await];
    let claims = claim_up_to(conn, 3, LEASE).await;
    let token = |id: Uuid| claims.iter().find(|claim| claim.id == id).expect("was claimed").lease_token;
    let plans =
        [(ids[0], token(ids[0]), Duration::ZERO), (ids[1], token(ids[1]), HOUR), (ids[2], Uuid::now_v7(), HOUR)];
    let mut parked = reschedule_all(conn, &plans).await.expect("parks");
    parked.sort();
    assert_eq!(parked, ids[..2], "a stale token parks nothing");
    assert_eq!(promote(conn, Queue::Image, 10).await.expect("promotes").due, 1);
    let claim = only(conn).await;
    assert_eq!((claim.id, claim.claims), (ids[0], 1), "counted anew");
}

#[tokio::test]
async fn the_outbox_announces_ready_tasks_until_it_is_confirmed() {
    database!(conn);
    let id = enqueue_in(conn, "a", None).await;
    let batch = outbox::claim_batch(conn, 1, Duration::ZERO).await.expect("looks");
    assert_eq!((batch.rows.len(), batch.rows[0].task, batch.full), (1, id, true));
    // The lease of the row is over: another relay takes it; while it lasts none does.
    let again = outbox::claim_batch(conn, 2, LEASE).await.expect("looks");
    assert_eq!((&again.rows, again.full), (&batch.rows, false));
    assert!(outbox::claim_batch(conn, 2, LEASE).await.expect("looks").rows.is_empty());
    assert_eq!(outbox::stats(conn).await.expect("counts").rows, 1);
    outbox::confirm(conn, &[batch.rows[0].id]).await.expect("confirms");
    assert_eq!(outbox::stats(conn).await.expect("counts"), outbox::OutboxStats::default());
}

#[tokio::test]
async fn a_wake_up_that_nobody_needs_any_more_is_dropped_unpublished() {
    database!(conn);
    enqueue_in(conn, "a", None).await;
    only(conn).await;
    let needed = enqueue_in(conn, "a", None).await;
    let batch = outbox::claim_batch(conn, 10, LEASE).await.expect("looks");
    assert_eq!(batch.rows.iter().map(|row| row.task).collect::<Vec<_>>(), [needed]);
    assert_eq!(outbox::stats(conn).await.expect("counts").rows, 1);
}

#[tokio::test]
async fn a_released_task_is_announced_again() {
    database!(conn);
    let id = enqueue_in(conn, "a", None).await;
    let first = outbox::claim_batch(conn, 10, LEASE).await.expect("looks").rows;
    outbox::confirm(conn, &[first[0].id]).await.expect("confirms");
    let claim = only(conn).await;
    assert!(release(conn, id, claim.lease_token).await.expect("releases"));
    assert_eq!(outbox::claim_batch(conn, 10, LEASE).await.expect("looks").rows[0].task, id);
}

#[tokio::test]
async fn a_tenant_at_its_cap_is_passed_over_in_all_its_lanes() {
    database!(conn);
    for lane in 0..6 {
        let (id, lane) = (Uuid::now_v7(), format!("tarpit {lane}"));
        let new =
            NewTask { id, queue: Queue::Image, kind: TaskKind::Action, lane: &lane, due_in: None, traceparent: None };
        enqueue_for(conn, &new, "attacker").await.expect("enqueues");
    }
    let healthy = enqueue_in(conn, "healthy", None).await;
    let claim_with = async |conn: &mut PgConnection, tenants: &[(String, usize)]| {
        let lanes = Some(LaneCap { cap: 4, held: &[], tenant_cap: 2, tenants });
        let wanted = Wanted { queue: Queue::Image, limit: 10, suspects: false, lanes, lease: LEASE, owner: "test" };
        claim(conn, &wanted).await.expect("claims")
    };
    let first = claim_with(conn, &[]).await;
    let tenants: Vec<_> = first.iter().filter_map(|claim| claim.tenant.as_deref()).collect();
    assert_eq!((tenants, first.len()), (vec!["attacker"; 2], 3));
    assert!(first.iter().any(|claim| claim.id == healthy), "who has no tenant has no share");
    assert!(claim_with(conn, &[("attacker".to_owned(), 2)]).await.is_empty());
    assert_eq!(claim_with(conn, &[("attacker".to_owned(), 1)]).await.len(), 1);
}
