//! Which tasks are made ready, and which of them the caller announces.

use super::*;

#[tokio::test]
async fn a_parked_task_that_is_woken_is_ready_in_the_next_turn_and_announced() {
    database!(conn);
    let id = enqueue_in(conn, "late", Some(HOUR)).await;
    for _ in 0..3 {
        enqueue_in(conn, "busy", None).await;
    }
    assert!(make_ready(conn, id).await.expect("makes it ready"));
    assert!(!make_ready(conn, id).await.expect("it is ready already"));
    let order = claim_up_to(conn, 4, LEASE).await;
    assert!(
        order.iter().take(2).any(|claim| claim.id == id),
        "at most the first task of the other key comes before it"
    );
    assert!(!make_ready(conn, Uuid::now_v7()).await.expect("there is no task to make ready"));
}

#[tokio::test]
async fn a_task_that_is_woken_in_a_workers_hands_is_not_parked_once() {
    database!(conn);
    let id = enqueue_in(conn, "a", None).await;
    for plan in [true, false] {
        let claim = only(conn).await;
        for _ in 0..2 {
            assert!(!make_ready(conn, id).await.expect("a worker has it"));
        }
        let due_in = if plan {
            reschedule(conn, id, claim.lease_token, HOUR).await.expect("reschedules")
        } else {
            let plans = [(id, claim.lease_token, HOUR)];
            reschedule_all(conn, &plans).await.expect("reschedules").remove(&id)
        };
        assert_eq!(due_in, Some(Duration::ZERO));
    }
    // The claim reset the earlier wake-up.
    let claim = only(conn).await;
    assert_eq!(reschedule(conn, id, claim.lease_token, HOUR).await.expect("reschedules"), Some(HOUR));
    assert!(claim_up_to(conn, 1, LEASE).await.is_empty());
}

#[tokio::test]
async fn of_a_wake_up_and_a_park_at_one_moment_none_is_lost() {
    let database = TestDatabase::new().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let id = enqueue_in(&mut conn, "a", None).await;
    for wakes_first in [true, false] {
        let token = only(&mut conn).await.lease_token;
        let mut first = database.pool().begin().await.expect("begins");
        if wakes_first {
            assert!(!make_ready(&mut first, id).await.expect("a worker has it"));
        } else {
            assert_eq!(reschedule(&mut first, id, token, HOUR).await.expect("reschedules"), Some(HOUR));
        }
        let pool = database.pool().clone();
        let second = tokio::spawn(async move {
            let conn = &mut *pool.acquire().await.expect("connects");
            if wakes_first {
                assert_eq!(reschedule(conn, id, token, HOUR).await.expect("reschedules"), Some(Duration::ZERO));
            } else {
                assert!(make_ready(conn, id).await.expect("makes it ready"));
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
    }
}
