//! What the outbox announces, and which tasks are made ready.

use super::*;

/// The tasks that the outbox announces, once each.
async fn announced(conn: &mut PgConnection) -> Vec<Uuid> {
    let rows = outbox::claim_batch(conn, 0, 100, LEASE).await.expect("looks").rows;
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
    make_ready(conn, id).await.expect("makes it ready");
    assert_eq!(announced(conn).await, [id]);
    let order = claim_up_to(conn, 4, LEASE).await;
    assert!(
        order.iter().take(2).any(|claim| claim.id == id),
        "at most the first task of the other key comes before it"
    );
    make_ready(conn, Uuid::now_v7()).await.expect("there is no task to make ready");
    assert!(announced(conn).await.is_empty());
}

#[tokio::test]
async fn a_task_that_is_woken_in_a_workers_hands_is_not_parked_once() {
    database!(conn);
    let id = enqueue_in(conn, "a", None).await;
    for plan in [true, false] {
        let claim = only(conn).await;
        make_ready(conn, id).await.expect("makes it ready");
        make_ready(conn, id).await.expect("makes it ready");
        announced(conn).await;
        if plan {
            assert!(reschedule(conn, id, claim.lease_token, HOUR).await.expect("reschedules"));
        } else {
            assert_eq!(reschedule_all(conn, &[(id, claim.lease_token, HOUR)]).await.expect("reschedules"), [id]);
        }
        assert_eq!(announced(conn).await, [id]);
    }
    // The claim reset the earlier wake-up.
    let claim = only(conn).await;
    assert!(reschedule(conn, id, claim.lease_token, HOUR).await.expect("reschedules"));
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
            make_ready(&mut first, id).await.expect("makes it ready");
        } else {
            assert!(reschedule(&mut first, id, token, HOUR).await.expect("reschedules"));
        }
        let pool = database.pool().clone();
        let second = tokio::spawn(async move {
            let conn = &mut *pool.acquire().await.expect("connects");
            if wakes_first {
                assert!(reschedule(conn, id, token, HOUR).await.expect("reschedules"));
            } else {
                make_ready(conn, id).await.expect("makes it ready");
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
        assert_eq!(announced(&mut conn).await, [id], "whichever was first");
    }
}

#[tokio::test]
async fn the_outbox_announces_ready_tasks_until_it_is_confirmed() {
    database!(conn);
    let id = enqueue_in(conn, "a", None).await;
    let batch = outbox::claim_batch(conn, 0, 1, Duration::ZERO).await.expect("looks");
    assert_eq!((batch.rows.len(), batch.rows[0].task, batch.full), (1, id, true));
    // After the lease of the row expired another relay claims it, and not before.
    let again = outbox::claim_batch(conn, 0, 2, LEASE).await.expect("looks");
    assert_eq!((&again.rows, again.full), (&batch.rows, false));
    assert!(outbox::claim_batch(conn, 0, 2, LEASE).await.expect("looks").rows.is_empty());
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
    let batch = outbox::claim_batch(conn, 0, 10, LEASE).await.expect("looks");
    assert_eq!(batch.rows.iter().map(|row| row.task).collect::<Vec<_>>(), [needed]);
    assert_eq!(outbox::stats(conn).await.expect("counts").rows, 1);
}

#[tokio::test]
async fn a_released_task_is_announced_again() {
    database!(conn);
    let id = enqueue_in(conn, "a", None).await;
    let first = outbox::claim_batch(conn, 0, 10, LEASE).await.expect("looks").rows;
    outbox::confirm(conn, &[first[0].id]).await.expect("confirms");
    let claim = only(conn).await;
    assert!(release(conn, id, claim.lease_token).await.expect("releases"));
    assert_eq!(outbox::claim_batch(conn, 0, 10, LEASE).await.expect("looks").rows[0].task, id);
}
