//! Rows of finished tasks are not read forever.

use super::*;

async fn mark(conn: &mut PgConnection, queue: Queue) -> i64 {
    sqlx::query_scalar("SELECT task_floor($1)").bind(queue.as_str()).fetch_one(conn).await.expect("has a floor")
}

/// Two refreshes, so that the mark is where the queue begins.
async fn settle_marks(conn: &mut PgConnection) -> LowWaterMarks {
    let first = refresh_low_water(conn, Queue::Image, &LowWaterMarks::default(), true).await.expect("looks");
    refresh_low_water(conn, Queue::Image, &first, false).await.expect("looks")
}

/// Number of entries of the indexes of `task_queue` that were read so far, including those of deleted rows, and that the shared
/// statistics do not contain yet.
async fn entries_read(conn: &mut PgConnection) -> i64 {
    sqlx::query_scalar(
        "SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid))::bigint FROM pg_index WHERE indrelid = 'task_queue'::regclass",
    )
    .fetch_one(conn)
    .await
    .expect("counts")
}

#[tokio::test]
async fn what_was_done_beside_an_open_transaction_is_not_read_again() {
    /// Number of finished tasks; far fewer entries are read if those of finished tasks are skipped.
    const DONE: i64 = 5000;
    const FEW: i64 = 1500;
    let database = TestDatabase::new().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let mut reader = database.pool().begin().await.expect("begins");
    sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").execute(&mut *reader).await.expect("sets");
    sqlx::query("SELECT count(*) FROM task_queue").execute(&mut *reader).await.expect("takes its snapshot");
    for done in [
        "INSERT INTO task_queue (id, queue, kind, fairness_key, state, fair_seq, due_at)
         SELECT gen_random_uuid(), 'image', 'action', 'a', 'parked', nextval('task_turns'), now() - interval '1 min'
         FROM generate_series(1, $1)",
        "UPDATE task_queue SET state = 'ready' WHERE $1 > 0",
        "UPDATE task_queue SET state = 'leased', lease_token = id, lease_until = now() - interval '30 s' WHERE $1 > 0",
        "DELETE FROM task_queue WHERE $1 > 0",
    ] {
        sqlx::query(done).bind(DONE).execute(&mut *conn).await.expect("is done");
    }
    // With statistics of an empty table, the planner considers all access paths equally cheap.
    sqlx::query("VACUUM ANALYZE task_queue").execute(&mut *conn).await.expect("counts");
    sqlx::query("SET enable_seqscan = off").execute(&mut *conn).await.expect("sets");
    let marks = settle_marks(&mut conn).await;

    sqlx::query("BEGIN").execute(&mut *conn).await.expect("begins");
    let work = &mut *conn;
    let before = entries_read(work).await;
    let id = enqueue_in(work, "a", None).await;
    let held = only(work).await;
    assert_eq!(heartbeat(work, &[(id, held.lease_token)], LEASE).await.expect("renews").len(), 1);
    assert_eq!(reschedule_all(work, &[(id, held.lease_token, HOUR)]).await.expect("reschedules").len(), 1);
    assert!(make_ready(work, id).await.expect("makes it ready"));
    // More tasks of a full fairness key than a claim reads, so that it goes from fairness key to fairness key.
    for _ in 0..70 {
        enqueue_in(work, "b", None).await;
    }
    let late = enqueue_in(work, "c", Some(Duration::ZERO)).await;
    // Stored times are rounded to milliseconds, sometimes up.
    let due = sqlx::query("UPDATE task_queue SET due_at = due_at - interval '1 ms' WHERE id = $1").bind(late);
    due.execute(&mut *work).await.expect("is due");
    assert_eq!(super::super::promote(work, Queue::Image, 10, &marks, &[]).await.expect("promotes").due, 1);
    let fairness_keys = [HeldKey { name: "b".to_owned(), held: 2, cap: 2 }];
    let caps = Some(FairnessCaps { cap: 2, held: &fairness_keys, tenant_cap: 2, tenants: &[] });
    let wanted = ClaimRequest { queue: Queue::Image, limit: 3, quarantined: false, caps, lease: LEASE, owner: "test" };
    let claimed: HashSet<Uuid> =
        claim(work, &wanted).await.expect("claims").into_iter().map(|claim| claim.id).collect();
    assert_eq!(claimed, HashSet::from([id, late]));
    let again = refresh_low_water(work, Queue::Image, &marks, false).await.expect("looks");
    assert!(again.fair_seq >= marks.fair_seq);
    let read = entries_read(work).await - before;
    assert!(read <= FEW, "{read} entries were read, with {DONE} deleted rows");
    // A search from the start reads them, which shows that the measurement works.
    let before = entries_read(work).await;
    refresh_low_water(work, Queue::Image, &marks, true).await.expect("looks");
    assert!(entries_read(work).await - before >= DONE);
}

#[tokio::test]
async fn a_floor_stays_below_everything_that_lives() {
    database!(conn);
    let first = enqueue_in(conn, "a", None).await;
    for _ in 0..9 {
        enqueue_in(conn, "a", None).await;
    }
    let claimed = claim_up_to(conn, 5, LEASE).await;
    for claim in claimed.iter().filter(|claim| claim.id != first) {
        assert!(settle(conn, claim.id, claim.lease_token).await.expect("settles"));
    }
    settle_marks(conn).await;
    // The first task is still leased, and becomes ready again at the position that it had.
    let token = claimed.iter().find(|claim| claim.id == first).expect("was claimed").lease_token;
    assert!(release(conn, first, token).await.expect("releases"));
    assert_eq!(claim_up_to(conn, 1, LEASE).await[0].id, first);
    assert_eq!(claim_up_to(conn, 10, LEASE).await.len(), 5);
}

#[tokio::test]
async fn a_floor_rises_to_what_the_survey_before_has_found() {
    database!(conn);
    for _ in 0..3 {
        enqueue_in(conn, "a", None).await;
    }
    let found = refresh_low_water(conn, Queue::Image, &LowWaterMarks::default(), true).await.expect("looks");
    assert_eq!(mark(conn, Queue::Image).await, 0, "nothing was found before");
    for claim in claim_up_to(conn, 3, LEASE).await {
        assert!(settle(conn, claim.id, claim.lease_token).await.expect("settles"));
    }
    refresh_low_water(conn, Queue::Image, &found, false).await.expect("looks");
    assert_eq!(mark(conn, Queue::Image).await, found.fair_seq);
    // What another worker has raised stays.
    refresh_low_water(conn, Queue::Image, &LowWaterMarks::default(), false).await.expect("looks");
    assert_eq!(mark(conn, Queue::Image).await, found.fair_seq);
}

#[tokio::test]
async fn a_floor_that_is_too_high_is_lowered_by_the_next_survey_of_everything() {
    database!(conn);
    let id = enqueue_in(conn, "a", None).await;
    sqlx::query("SELECT setval('task_turns', 2000), setval('task_floor_image', 1000)")
        .execute(&mut *conn)
        .await
        .expect("sets");
    assert!(claim_up_to(conn, 1, LEASE).await.is_empty());
    refresh_low_water(conn, Queue::Image, &LowWaterMarks::default(), false).await.expect("looks");
    assert!(claim_up_to(conn, 1, LEASE).await.is_empty());
    refresh_low_water(conn, Queue::Image, &LowWaterMarks::default(), true).await.expect("looks");
    assert_eq!(only(conn).await.id, id);
}

#[tokio::test]
async fn whoever_was_parked_comes_back_above_the_floor() {
    database!(conn);
    let scheduled = [enqueue_in(conn, "a", Some(HOUR)).await, enqueue_in(conn, "a", Some(HOUR)).await];
    for _ in 0..20 {
        enqueue_in(conn, "b", None).await;
        let claim = only(conn).await;
        assert!(settle(conn, claim.id, claim.lease_token).await.expect("settles"));
    }
    settle_marks(conn).await;
    assert!(make_ready_to_cancel(conn, scheduled[0]).await.expect("makes it ready"));
    assert!(make_ready(conn, scheduled[1]).await.expect("makes it ready"));
    let mut claimed: Vec<Uuid> = claim_up_to(conn, 2, LEASE).await.iter().map(|claim| claim.id).collect();
    claimed.sort();
    assert_eq!(claimed, scheduled);
}

#[tokio::test]
async fn every_queue_has_a_floor() {
    database!(conn);
    sqlx::query("SELECT nextval('task_turns')").execute(&mut *conn).await.expect("draws");
    for queue in Queue::ALL {
        let found = refresh_low_water(conn, *queue, &LowWaterMarks::default(), true).await.expect("looks");
        refresh_low_water(conn, *queue, &found, false).await.expect("looks");
        assert_eq!((found.fair_seq, mark(conn, *queue).await), (1, 1), "{queue}");
    }
}
