//! What was done is not walked past for ever.

use super::*;

async fn floor(conn: &mut PgConnection, queue: Queue) -> i64 {
    sqlx::query_scalar("SELECT task_floor($1)").bind(queue.as_str()).fetch_one(conn).await.expect("has a floor")
}

/// Two surveys, so that the floor is where the queue begins.
async fn settle_floors(conn: &mut PgConnection) -> Floors {
    let first = survey(conn, Queue::Image, &Floors::default(), true).await.expect("looks");
    survey(conn, Queue::Image, &first, false).await.expect("looks")
}

/// How many entries of the indexes of `table` this transaction has read, those of deleted rows included.
async fn entries_read(conn: &mut PgConnection, table: &str) -> i64 {
    sqlx::query_scalar(
        "SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid))::bigint FROM pg_index WHERE indrelid = $1::regclass",
    )
    .bind(table)
    .fetch_one(conn)
    .await
    .expect("counts")
}

#[tokio::test]
async fn what_was_done_beside_an_open_transaction_is_not_read_again() {
    /// How many tasks were done, and how few entries of them are read.
    const DONE: i64 = 5000;
    const FEW: i64 = 50;
    let database = TestDatabase::new().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let mut reader = database.pool().begin().await.expect("begins");
    sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").execute(&mut *reader).await.expect("sets");
    sqlx::query("SELECT count(*) FROM tasks").execute(&mut *reader).await.expect("takes its snapshot");
    for done in [
        "INSERT INTO tasks (id, queue, kind, lane, state, turn, due_at)
         SELECT gen_random_uuid(), 'image', 'action', 'a', 'parked', nextval('task_turns'), now() - interval '1 min'
         FROM generate_series(1, $1)",
        "UPDATE tasks SET state = 'ready' WHERE $1 > 0",
        "INSERT INTO outbox (queue, task_id) SELECT 'image', id FROM tasks WHERE $1 > 0",
        "UPDATE tasks SET state = 'leased', lease_token = id, lease_until = now() - interval '30 s' WHERE $1 > 0",
        "DELETE FROM outbox WHERE $1 > 0",
        "DELETE FROM tasks WHERE $1 > 0",
    ] {
        sqlx::query(done).bind(DONE).execute(&mut *conn).await.expect("is done");
    }
    let floors = settle_floors(&mut conn).await;
    let lowest = outbox::lowest(&mut conn, 0).await.expect("looks");

    let mut work = database.pool().begin().await.expect("begins");
    let id = enqueue_in(&mut work, "a", None).await;
    let batch = outbox::claim_batch(&mut work, lowest, 10, LEASE).await.expect("looks");
    assert_eq!(batch.rows.iter().map(|row| row.task).collect::<Vec<_>>(), [id]);
    let claim = only(&mut work).await;
    assert!(reschedule(&mut work, id, claim.lease_token, HOUR).await.expect("parks"));
    wake(&mut work, id).await.expect("wakes");
    super::super::promote(&mut work, Queue::Image, 10, &floors).await.expect("promotes");
    let lanes = [("b".to_owned(), 2)];
    let caps = Some(LaneCap { cap: 2, held: &lanes, tenant_cap: 2, tenants: &[] });
    let wanted = Wanted { queue: Queue::Image, limit: 1, suspects: false, lanes: caps, lease: LEASE, owner: "test" };
    assert_eq!(super::super::claim(&mut work, &wanted).await.expect("claims").len(), 1);
    let again = survey(&mut work, Queue::Image, &floors, false).await.expect("looks");
    assert!(again.turn >= floors.turn);
    for table in ["tasks", "outbox"] {
        let read = entries_read(&mut work, table).await;
        assert!(read <= FEW, "{read} entries of {table} were read, of {DONE} that are gone");
    }
    // Who begins at the beginning does read them: the measure is one.
    outbox::claim_batch(&mut work, 0, 10, LEASE).await.expect("looks");
    survey(&mut work, Queue::Image, &floors, true).await.expect("looks");
    for table in ["tasks", "outbox"] {
        assert!(entries_read(&mut work, table).await >= DONE, "{table}");
    }
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
    settle_floors(conn).await;
    // The first is still in a worker's hands, and comes back in the turn that it had.
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
    let found = survey(conn, Queue::Image, &Floors::default(), true).await.expect("looks");
    assert_eq!(floor(conn, Queue::Image).await, 0, "nothing was found before");
    for claim in claim_up_to(conn, 3, LEASE).await {
        assert!(settle(conn, claim.id, claim.lease_token).await.expect("settles"));
    }
    survey(conn, Queue::Image, &found, false).await.expect("looks");
    assert_eq!(floor(conn, Queue::Image).await, found.turn);
    // What another worker has raised stays.
    survey(conn, Queue::Image, &Floors::default(), false).await.expect("looks");
    assert_eq!(floor(conn, Queue::Image).await, found.turn);
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
    survey(conn, Queue::Image, &Floors::default(), false).await.expect("looks");
    assert!(claim_up_to(conn, 1, LEASE).await.is_empty());
    survey(conn, Queue::Image, &Floors::default(), true).await.expect("looks");
    assert_eq!(only(conn).await.id, id);
}

#[tokio::test]
async fn whoever_was_parked_comes_back_above_the_floor() {
    database!(conn);
    let parked = [enqueue_in(conn, "a", Some(HOUR)).await, enqueue_in(conn, "a", Some(HOUR)).await];
    for _ in 0..20 {
        enqueue_in(conn, "b", None).await;
        let claim = only(conn).await;
        assert!(settle(conn, claim.id, claim.lease_token).await.expect("settles"));
    }
    settle_floors(conn).await;
    assert!(wake_to_cancel(conn, parked[0]).await.expect("wakes"));
    wake(conn, parked[1]).await.expect("wakes");
    let mut claimed: Vec<Uuid> = claim_up_to(conn, 2, LEASE).await.iter().map(|claim| claim.id).collect();
    claimed.sort();
    assert_eq!(claimed, parked);
}

#[tokio::test]
async fn every_queue_has_a_floor() {
    database!(conn);
    sqlx::query("SELECT nextval('task_turns')").execute(&mut *conn).await.expect("draws");
    for queue in Queue::ALL {
        let found = survey(conn, *queue, &Floors::default(), true).await.expect("looks");
        survey(conn, *queue, &found, false).await.expect("looks");
        assert_eq!((found.turn, floor(conn, *queue).await), (1, 1), "{queue}");
    }
}
