use testkit::TestDatabase;

use super::*;

/// What a canvas counts at least, and an asset.
const STEP: i64 = 65536;

fn me() -> AccountUid {
    AccountUid::from_stored("me".into())
}

/// The accounts `me` and `you`, and a token, a canvas (key 1) and a blob of `me`.
async fn database() -> TestDatabase {
    let database = TestDatabase::new().await;
    run(
        &database,
        "INSERT INTO accounts (uid, email) VALUES ('me', 'me@example.com'), ('you', 'you@example.com');
         INSERT INTO account_sessions (id, account_uid) VALUES ('00000000-0000-0000-0000-000000000001', 'me');
         INSERT INTO tokens (id, account_uid, session_id, label, scopes, surface, secret_hash)
         VALUES ('00000000-0000-0000-0000-000000000002', 'me', '00000000-0000-0000-0000-000000000001', '', '{}', 'api', '');
         INSERT INTO canvases (owner_uid, id, title, revision) VALUES ('me', 'c', '', 'r');
         INSERT INTO blobs (key, state, sha256, bytes)
         VALUES ('00000000-0000-0000-0000-000000000003', 'stored', 'x', 7)",
    )
    .await;
    database
}

async fn run(database: &TestDatabase, sql: &'static str) {
    sqlx::raw_sql(sql).execute(database.pool()).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// Stores an asset of `bytes` bytes.
async fn store(conn: &mut PgConnection, owner: &str, id: &str, canvas: Option<i64>, bytes: i64) {
    sqlx::query(
        "INSERT INTO assets (owner_uid, id, canvas_key, name, mime_type, width, height, bytes, blob_key)
         VALUES ($1, $2, $3, '', 'image/png', 1, 1, $4, '00000000-0000-0000-0000-000000000003')",
    )
    .bind(owner)
    .bind(id)
    .bind(canvas)
    .bind(bytes)
    .execute(conn)
    .await
    .expect("stores an asset");
}

async fn bytes(database: &TestDatabase, account: &AccountUid) -> i64 {
    let mut conn = database.pool().acquire().await.expect("connects");
    get(&mut conn, account).await.expect("reads").expect("an account").bytes
}

#[tokio::test]
async fn a_limit_admits_up_to_itself_and_none_anything() {
    let database = database().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    for (max, more, is_admitted) in [
        (STEP + 40, 0, true),
        (STEP + 40, 39, true),
        (STEP + 40, 40, true),
        (STEP + 40, 41, false),
        (STEP, 0, true),
        (STEP - 1, 0, false),
        (0, i64::MAX - STEP, true),
    ] {
        set_max(&mut conn, &me(), Some(max)).await.expect("sets");
        let full = (!is_admitted).then_some(Storage { bytes: STEP, max });
        assert_eq!(look(&mut conn, &me(), more).await.expect("asks"), full, "{more} more of {max}");
        assert_eq!(hold(&mut conn, &me(), more).await.expect("asks"), full, "{more} more of {max}");
    }
}

#[tokio::test]
async fn assets_count_for_their_owner_while_they_are_stored() {
    let database = database().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    assert_eq!(bytes(&database, &me()).await, STEP, "the canvas");
    for (owner, id, canvas, size) in [("me", "a", None, 10), ("me", "b", Some(1), STEP), ("me", "c", Some(1), STEP + 1)]
    {
        store(&mut conn, owner, id, canvas, size).await;
    }
    store(&mut conn, "you", "a", None, 1000).await;
    assert_eq!(bytes(&database, &me()).await, 4 * STEP + 1, "each at least 64 KiB, and the canvas");
    run(&database, "DELETE FROM canvases WHERE id = 'c'").await;
    assert_eq!(bytes(&database, &me()).await, STEP, "the assets of a canvas are deleted with it");
    run(&database, "DELETE FROM assets").await;
    assert_eq!(bytes(&database, &me()).await, 0);
    assert_eq!(bytes(&database, &AccountUid::from_stored("you".into())).await, 0);
}

#[tokio::test]
async fn an_original_counts_beside_the_file_that_is_served() {
    let database = database().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    store(&mut conn, "me", "a", None, 10).await;
    sqlx::query(
        "INSERT INTO assets (owner_uid, id, name, mime_type, width, height, bytes, blob_key, original_blob,
                             original_mime_type, original_bytes, original_reason)
         SELECT owner_uid, 'b', name, mime_type, width, height, 200000, blob_key, blob_key, mime_type, 300, 'private-metadata'
         FROM assets",
    )
    .execute(&mut *conn)
    .await
    .expect("stores an asset with an original");
    assert_eq!(bytes(&database, &me()).await, STEP + STEP + 200_000 + STEP, "canvas, asset, asset and its original");
    let parts = parts(&mut conn, &me()).await.expect("measures");
    assert_eq!(parts, Parts { assets: STEP + 200_000, originals: STEP, videos: 0, canvases: STEP });
    run(&database, "DELETE FROM assets WHERE id = 'b'").await;
    assert_eq!(bytes(&database, &me()).await, STEP + STEP);
}

#[tokio::test]
async fn a_video_counts_for_whoever_started_its_job_until_the_record_goes() {
    let database = database().await;
    run(
        &database,
        "INSERT INTO jobs (id, account_uid, token_id, kind, operation, status, request, estimated_seconds)
         VALUES ('00000000-0000-0000-0000-000000000004', 'me', '00000000-0000-0000-0000-000000000002', 'video', 'generate',
                 'running', '{}', 1)",
    )
    .await;
    assert_eq!(bytes(&database, &me()).await, STEP);
    run(&database, "UPDATE jobs SET status = 'succeeded', video_blob = '00000000-0000-0000-0000-000000000003'").await;
    run(&database, "UPDATE jobs SET version = version + 1").await;
    assert_eq!(bytes(&database, &me()).await, STEP + 7, "once");
    run(&database, "DELETE FROM jobs").await;
    assert_eq!(bytes(&database, &me()).await, STEP);
}

#[tokio::test]
async fn a_limit_of_ones_own_wins_over_the_default() {
    let database = database().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let max = async |conn: &mut PgConnection| get(conn, &me()).await.expect("reads").expect("an account").max;
    const DEFAULT: i64 = 20 << 30;
    assert_eq!(max(&mut conn).await, DEFAULT);
    for (own, expected) in [(Some(9), 9), (Some(0), 0), (None, DEFAULT)] {
        set_max(&mut conn, &me(), own).await.expect("sets");
        assert_eq!(max(&mut conn).await, expected);
    }
    for (of_process, expected) in [(5, 5), (0, 0)] {
        let pool = crate::pool::connect(&database.url(), "test", 1, Some(of_process)).expect("a URL");
        let mut conn = pool.acquire().await.expect("connects");
        assert_eq!(max(&mut conn).await, expected, "the operator's default");
        set_max(&mut conn, &me(), Some(9)).await.expect("sets");
        assert_eq!(max(&mut conn).await, 9);
        set_max(&mut conn, &me(), None).await.expect("sets");
        run(&database, "UPDATE accounts SET storage_default = 0").await;
        assert_eq!(max(&mut conn).await, expected, "the operator's default holds for old accounts, too");
    }
    assert_eq!(max(&mut conn).await, 0, "an account from before the default has no limit");
    assert_eq!(get(&mut conn, &AccountUid::from_stored("nobody".into())).await.expect("reads"), None);
}

#[tokio::test]
async fn accounts_from_before_the_default_keep_what_they_had() {
    let database = TestDatabase::migrated_to(42).await;
    run(
        &database,
        "INSERT INTO accounts (uid, email) VALUES ('me', 'me@example.com');
         INSERT INTO accounts (uid, email, storage_max) VALUES ('you', 'you@example.com', 7)",
    )
    .await;
    run(&database, include_str!("../../migrations/0043_storage_default.sql")).await;
    run(&database, "INSERT INTO accounts (uid, email) VALUES ('new', 'new@example.com')").await;
    let mut conn = database.pool().acquire().await.expect("connects");
    for (uid, max) in [("me", 0), ("you", 7), ("new", 20 << 30)] {
        let storage = get(&mut conn, &AccountUid::from_stored(uid.into())).await.expect("reads");
        assert_eq!(storage, Some(Storage { bytes: 0, max }), "{uid}");
    }
}

#[tokio::test]
async fn together_transactions_store_no_more_than_the_limit() {
    let database = database().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    set_max(&mut conn, &me(), Some(4 * STEP)).await.expect("sets");
    let uploads = (0..12).map(|number| {
        let pool = database.pool().clone();
        tokio::spawn(async move {
            let mut tx = pool.begin().await.expect("begins");
            let admitted = hold(&mut tx, &me(), STEP).await.expect("holds").is_none();
            if admitted {
                store(&mut tx, "me", &format!("a{number}"), None, 10).await;
                tx.commit().await.expect("commits");
            }
            admitted
        })
    });
    let mut admitted = 0;
    for upload in uploads.collect::<Vec<_>>() {
        admitted += i64::from(upload.await.expect("ends well"));
    }
    assert_eq!((admitted, bytes(&database, &me()).await), (3, 4 * STEP));
}

#[tokio::test]
async fn without_a_limit_nobody_waits_for_another() {
    let database = database().await;
    run(&database, "UPDATE accounts SET storage_max = 0").await;
    let mut first = database.pool().begin().await.expect("begins");
    hold(&mut first, &me(), 0).await.expect("holds");
    store(&mut first, "me", "a", None, 10).await;
    let mut second = database.pool().begin().await.expect("begins");
    hold(&mut second, &me(), 0).await.expect("holds");
    store(&mut second, "me", "b", None, 10).await;
    second.commit().await.expect("commits before the first");
    first.commit().await.expect("commits");
    assert_eq!(bytes(&database, &me()).await, 3 * STEP);
}

async fn graph_bytes(conn: &mut PgConnection, bytes: i64) {
    sqlx::query("UPDATE canvases SET graph_bytes = $1").bind(bytes).execute(conn).await.expect("writes");
}

#[tokio::test]
async fn a_canvas_counts_in_steps_of_64_kib() {
    let database = database().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    for (size, steps) in [(0, 1), (STEP - 1, 1), (STEP, 1), (STEP + 1, 2), (2 * STEP, 2), (64 << 20, 1024), (1, 1)] {
        graph_bytes(&mut conn, size).await;
        assert_eq!(bytes(&database, &me()).await, steps * STEP, "a graph of {size} bytes");
    }
    sqlx::query("UPDATE canvases SET history_bytes = $1").bind(STEP).execute(&mut *conn).await.expect("writes");
    assert_eq!(bytes(&database, &me()).await, 2 * STEP, "graph and history together");
    run(
        &database,
        "INSERT INTO canvases (owner_uid, id, title, revision, graph_bytes) VALUES ('me', 'd', '', 'r', 65537)",
    )
    .await;
    assert_eq!(bytes(&database, &me()).await, 4 * STEP);
    run(&database, "DELETE FROM canvases").await;
    assert_eq!(bytes(&database, &me()).await, 0);
}

#[tokio::test]
async fn an_edit_within_its_step_does_not_wait_for_the_storage_of_the_account() {
    let database = database().await;
    let mut held = database.pool().begin().await.expect("begins");
    hold(&mut held, &me(), 1).await.expect("holds");
    let mut conn = database.pool().acquire().await.expect("connects");
    sqlx::query("SET lock_timeout = '100ms'").execute(&mut *conn).await.expect("sets");
    graph_bytes(&mut conn, STEP).await;
    let grown = sqlx::query("UPDATE canvases SET graph_bytes = $1").bind(STEP + 1).execute(&mut *conn).await;
    let error = grown.expect_err("the next step waits for whoever holds the storage");
    assert_eq!(error.as_database_error().and_then(|error| error.code()).as_deref(), Some("55P03"), "{error}");
    held.commit().await.expect("commits");
    assert_eq!(bytes(&database, &me()).await, STEP);
}

#[tokio::test]
async fn a_recount_repairs_what_was_not_counted() {
    let database = database().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    store(&mut conn, "me", "a", None, 2 * STEP).await;
    for sql in [
        "INSERT INTO canvas_changes (canvas_key, sequence, revision, bytes) VALUES (1, 1, 'r', 65537)",
        "INSERT INTO canvases (owner_uid, id, title, revision) VALUES ('you', 'c', '', 'r')",
        "ALTER TABLE canvases DISABLE TRIGGER canvases_stepped",
        "UPDATE canvases SET counted = 0",
        "ALTER TABLE canvases ENABLE TRIGGER canvases_stepped",
        "UPDATE account_storage SET bytes = bytes - 1000",
    ] {
        run(&database, sql).await;
    }
    assert_eq!(recount_canvases(&mut conn, Some(&me()), 0, 10).await.expect("recounts"), Some(1));
    assert_eq!(recount_canvases(&mut conn, Some(&me()), 1, 10).await.expect("recounts"), None);
    assert_eq!(bytes(&database, &me()).await, 4 * STEP - 1000, "two steps of the canvas, and the asset");
    assert_eq!(recount(&mut conn, &me()).await.expect("recounts"), 1000);
    assert_eq!(recount(&mut conn, &me()).await.expect("recounts"), 0);
    assert_eq!(bytes(&database, &me()).await, 4 * STEP);
    let you = AccountUid::from_stored("you".into());
    assert_eq!(bytes(&database, &you).await, -1000, "another account is left alone");
    assert_eq!(recount_canvases(&mut conn, None, 0, 1).await.expect("recounts"), Some(1));
    assert_eq!(recount_canvases(&mut conn, None, 1, 1).await.expect("recounts"), Some(2));
    assert_eq!(recount(&mut conn, &you).await.expect("recounts"), 1000);
    assert_eq!(accounts(&mut conn, "", 9).await.expect("lists"), [me(), you.clone()]);
    assert_eq!(accounts(&mut conn, "me", 1).await.expect("lists"), [you]);
}

#[tokio::test]
async fn the_migration_counts_small_assets_as_64_kib() {
    let database = TestDatabase::migrated_to(41).await;
    run(
        &database,
        "INSERT INTO accounts (uid, email) VALUES ('me', 'me@example.com'), ('you', 'you@example.com');
         INSERT INTO blobs (key, state, sha256, bytes)
         VALUES ('00000000-0000-0000-0000-000000000003', 'stored', 'x', 7)",
    )
    .await;
    let mut conn = database.pool().acquire().await.expect("connects");
    for (owner, id, size) in [("me", "a", 10), ("me", "b", 2 * STEP), ("you", "a", STEP)] {
        store(&mut conn, owner, id, None, size).await;
    }
    run(&database, include_str!("../../migrations/0042_counted_assets.sql")).await;
    let stored: Vec<i64> = sqlx::query_scalar("SELECT bytes FROM account_storage ORDER BY account_uid")
        .fetch_all(&mut *conn)
        .await
        .expect("reads");
    assert_eq!(stored, [3 * STEP, STEP]);
    run(&database, "DELETE FROM assets").await;
    let left: i64 = sqlx::query_scalar("SELECT sum(bytes)::bigint FROM account_storage")
        .fetch_one(&mut *conn)
        .await
        .expect("reads");
    assert_eq!(left, 0);
}
