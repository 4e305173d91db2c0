use testkit::TestDatabase;

use super::*;

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
    get(&mut conn, account, 0).await.expect("reads").expect("an account").bytes
}

#[test]
fn a_limit_admits_up_to_itself_and_none_anything() {
    let storage = Storage { bytes: 60, max: 100 };
    assert!(storage.admits(0) && storage.admits(39) && storage.admits(40) && !storage.admits(41));
    assert!(!Storage { bytes: 101, max: 100 }.admits(0), "a limit that was lowered admits nothing");
    assert!(!storage.admits(i64::MAX));
    assert!(Storage { bytes: 60, max: 0 }.admits(i64::MAX));
}

#[tokio::test]
async fn assets_count_for_their_owner_while_they_are_stored() {
    let database = database().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    assert_eq!(bytes(&database, &me()).await, 0);
    for (owner, id, canvas, size) in [("me", "a", None, 10), ("me", "b", Some(1), 20), ("me", "c", Some(1), 40)] {
        store(&mut conn, owner, id, canvas, size).await;
    }
    store(&mut conn, "you", "a", None, 1000).await;
    assert_eq!(bytes(&database, &me()).await, 70);
    run(&database, "DELETE FROM canvases WHERE id = 'c'").await;
    assert_eq!(bytes(&database, &me()).await, 10, "the assets of a canvas are deleted with it");
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
         SELECT owner_uid, 'b', name, mime_type, width, height, 20, blob_key, blob_key, mime_type, 300, 'private-metadata'
         FROM assets",
    )
    .execute(&mut *conn)
    .await
    .expect("stores an asset with an original");
    assert_eq!(bytes(&database, &me()).await, 330);
    run(&database, "DELETE FROM assets WHERE id = 'b'").await;
    assert_eq!(bytes(&database, &me()).await, 10);
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
    assert_eq!(bytes(&database, &me()).await, 0);
    run(&database, "UPDATE jobs SET status = 'succeeded', video_blob = '00000000-0000-0000-0000-000000000003'").await;
    run(&database, "UPDATE jobs SET version = version + 1").await;
    assert_eq!(bytes(&database, &me()).await, 7, "once");
    run(&database, "DELETE FROM jobs").await;
    assert_eq!(bytes(&database, &me()).await, 0);
}

#[tokio::test]
async fn a_limit_of_ones_own_wins_over_the_default() {
    let database = database().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let max = async |conn: &mut PgConnection| {
        let (held, read) = (hold(conn, &me(), 5).await.expect("holds"), get(conn, &me(), 5).await.expect("reads"));
        assert_eq!(Some(held), read);
        held.max
    };
    assert_eq!(max(&mut conn).await, 5);
    for (own, expected) in [(Some(9), 9), (Some(0), 0), (None, 5)] {
        set_max(&mut conn, &me(), own).await.expect("sets");
        assert_eq!(max(&mut conn).await, expected);
    }
    assert_eq!(get(&mut conn, &AccountUid::from_stored("nobody".into()), 5).await.expect("reads"), None);
}

#[tokio::test]
async fn together_transactions_store_no_more_than_the_limit() {
    let database = database().await;
    let uploads = (0..12).map(|number| {
        let pool = database.pool().clone();
        tokio::spawn(async move {
            let mut tx = pool.begin().await.expect("begins");
            let admitted = hold(&mut tx, &me(), 30).await.expect("holds").admits(10);
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
    assert_eq!((admitted, bytes(&database, &me()).await), (3, 30));
}

#[tokio::test]
async fn without_a_limit_nobody_waits_for_another() {
    let database = database().await;
    let mut first = database.pool().begin().await.expect("begins");
    hold(&mut first, &me(), 0).await.expect("holds");
    store(&mut first, "me", "a", None, 10).await;
    let mut second = database.pool().begin().await.expect("begins");
    hold(&mut second, &me(), 0).await.expect("holds");
    store(&mut second, "me", "b", None, 10).await;
    second.commit().await.expect("commits before the first");
    first.commit().await.expect("commits");
    assert_eq!(bytes(&database, &me()).await, 20);
}
