use sqlx::PgPool;
use testkit::TestDatabase;

use super::*;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn hash(content: u8) -> [u8; 32] {
    [content; 32]
}

async fn staged(conn: &mut PgConnection, content: u8) -> Uuid {
    match stage(conn, &hash(content)).await.expect("stages") {
        Staged::New(key) => key,
        Staged::Existing(key) => panic!("{key} is stored already"),
    }
}

/// Inserts a stored blob and returns its key.
async fn stored(pool: &PgPool, content: u8) -> Uuid {
    let mut transaction = pool.begin().await.expect("begins");
    let key = staged(&mut transaction, content).await;
    let adopted = adopt(&mut transaction, key, &hash(content), 1).await.expect("adopts");
    transaction.commit().await.expect("commits");
    adopted.expect("is there")
}

async fn state(pool: &PgPool, key: Uuid) -> Option<String> {
    sqlx::query_scalar("SELECT state FROM blobs WHERE key = $1").bind(key).fetch_optional(pool).await.expect("reads")
}

/// Makes all blobs as old as the sweeper requires, or a second younger.
async fn age(pool: &PgPool, seconds: i64) {
    sqlx::query("UPDATE blobs SET touched_at = now() - make_interval(secs => $1)")
        .bind(seconds as f64)
        .execute(pool)
        .await
        .expect("ages");
}

async fn account(pool: &PgPool) {
    sqlx::query("INSERT INTO accounts (uid, email) VALUES ('a', 'a@example.com')")
        .execute(pool)
        .await
        .expect("inserts");
}

/// Runs one sweep to the end of the walk and returns what may be removed.
async fn removable(conn: &mut PgConnection, grace: Duration) -> Vec<Uuid> {
    let mut found = unsettled(conn, grace, Uuid::nil(), 10).await.expect("lists");
    let walked = walk(conn, grace, 10).await.expect("walks");
    assert!(!walked.has_more);
    found.extend(walked.unreferenced);
    found
}

/// Inserts an asset that refers to a blob.
async fn refer(conn: &mut PgConnection, id: &str, key: Uuid) {
    sqlx::query(
        "INSERT INTO assets (owner_uid, id, name, mime_type, width, height, bytes, blob_key)
         VALUES ('a', $1, 'x.png', 'image/png', 1, 1, 1, $2)",
    )
    .bind(id)
    .bind(key)
    .execute(conn)
    .await
    .expect("refers");
}

#[tokio::test]
async fn content_that_is_stored_is_used_again() {
    let database = TestDatabase::new().await;
    let key = stored(database.pool(), 1).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    assert_eq!(stage(&mut conn, &hash(1)).await.expect("stages"), Staged::Existing(key));
    assert!(matches!(stage(&mut conn, &hash(2)).await.expect("stages"), Staged::New(_)));
}

#[tokio::test]
async fn content_that_was_stored_meanwhile_wins_and_the_other_copy_goes() {
    let database = TestDatabase::new().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let late = stage_unknown(&mut conn).await.expect("stages");
    let first = stored(database.pool(), 1).await;
    assert_eq!(adopt(&mut conn, late, &hash(1), 1).await.expect("adopts"), Some(first));
    assert_eq!(state(database.pool(), late).await.as_deref(), Some("removing"));
    assert_eq!(removable(&mut conn, DAY).await, [late], "a blob within the grace period stays");
    assert_eq!(
        adopt(&mut conn, late, &hash(1), 1).await.expect("asks"),
        None,
        "a blob under removal is never referred to"
    );
}

#[tokio::test]
async fn equal_contents_that_arrive_at_once_become_one_blob() {
    let database = TestDatabase::new().await;
    let uploads = (0..8).map(|_| {
        let pool = database.pool().clone();
        tokio::spawn(async move {
            let mut keys = Vec::new();
            for content in 0..20 {
                let mut transaction = pool.begin().await.expect("begins");
                let key = stage_unknown(&mut transaction).await.expect("stages");
                let adopted = adopt(&mut transaction, key, &hash(content), 1).await.expect("adopts");
                transaction.commit().await.expect("commits");
                keys.push(adopted.expect("is there"));
            }
            keys
        })
    });
    let mut seen = Vec::new();
    for upload in uploads.collect::<Vec<_>>() {
        seen.push(upload.await.expect("uploads"));
    }
    assert!(seen.iter().all(|keys| *keys == seen[0]), "all writers refer to the same blobs");
}

#[tokio::test]
async fn files_that_are_adopted_together_refer_to_one_blob_for_each_content() {
    let database = TestDatabase::new().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let before = stored(database.pool(), 1).await;
    let mut files = vec![PutFile { key: before, sha256: hash(1), bytes: 1 }];
    for content in [1, 2, 2, 3] {
        let key = stage_unknown(&mut conn).await.expect("stages");
        files.push(PutFile { key, sha256: hash(content), bytes: 1 });
    }
    files.push(PutFile { key: Uuid::now_v7(), sha256: hash(4), bytes: 1 });
    let adopted = adopt_all(&mut conn, &files).await.expect("adopts");
    let of = |number: usize| adopted.get(&files[number].key).copied();
    assert_eq!((of(0), of(1)), (Some(before), Some(before)), "content that was stored before");
    assert!(of(2).is_some() && of(2) == of(3), "equal content in one call");
    assert_eq!(of(4), Some(files[4].key));
    assert_eq!(of(5), None, "a blob that was removed");
    let mut states = Vec::new();
    for file in &files[..5] {
        states.push(state(database.pool(), file.key).await.expect("has a row"));
    }
    states[2..4].sort_unstable();
    assert_eq!(states, ["stored", "removing", "removing", "stored", "stored"]);
}

#[tokio::test]
async fn files_that_are_adopted_together_in_different_orders_do_not_deadlock() {
    let database = TestDatabase::new().await;
    let adoptions = (0..8).map(|number| {
        let pool = database.pool().clone();
        tokio::spawn(async move {
            for round in 0..10 {
                let mut transaction = pool.begin().await.expect("begins");
                let mut files = Vec::new();
                // The first byte of a hash is the sign of the number that is locked.
                for content in [2 * round, 255 - 2 * round, 2 * round + 1] {
                    let key = stage_unknown(&mut transaction).await.expect("stages");
                    files.push(PutFile { key, sha256: hash(content), bytes: 1 });
                }
                if number % 2 == 0 {
                    files.reverse();
                }
                let adopted = adopt_all(&mut transaction, &files).await.expect("adopts without a deadlock");
                assert_eq!(adopted.len(), 3);
                transaction.commit().await.expect("commits");
            }
        })
    });
    for adoption in adoptions.collect::<Vec<_>>() {
        adoption.await.expect("adopts");
    }
}

#[tokio::test]
async fn a_blob_is_removed_after_its_grace_and_not_before() {
    let database = TestDatabase::new().await;
    let pool = database.pool();
    let key = stored(pool, 1).await;
    let mut conn = pool.acquire().await.expect("connects");
    age(pool, 24 * 3600 - 60).await;
    assert!(removable(&mut conn, DAY).await.is_empty());
    assert!(!begin_removal(&mut conn, key, DAY).await.expect("asks"));
    age(pool, 24 * 3600 + 1).await;
    assert_eq!(removable(&mut conn, DAY).await, [key]);
    assert!(begin_removal(&mut conn, key, DAY).await.expect("begins"));
    assert!(begin_removal(&mut conn, key, DAY).await.expect("resumes"), "an interrupted removal is resumed");
    assert!(matches!(stage(&mut conn, &hash(1)).await.expect("stages"), Staged::New(fresh) if fresh != key));
    forget(&mut conn, key).await.expect("forgets");
    assert_eq!(state(pool, key).await, None);
}

#[tokio::test]
async fn a_blob_that_somebody_means_to_use_or_refers_to_stays() {
    let database = TestDatabase::new().await;
    let pool = database.pool();
    account(pool).await;
    let (meant, used, original) = (stored(pool, 1).await, stored(pool, 2).await, stored(pool, 3).await);
    let mut conn = pool.acquire().await.expect("connects");
    refer(&mut conn, "x", used).await;
    sqlx::query(
        "UPDATE assets SET original_blob = $1, original_mime_type = mime_type, original_bytes = bytes,
                           original_reason = 'private-metadata'",
    )
    .bind(original)
    .execute(&mut *conn)
    .await
    .expect("refers");
    age(pool, 2 * 24 * 3600).await;
    assert_eq!(removable(&mut conn, DAY).await, [meant]);
    stage(&mut conn, &hash(1)).await.expect("touches");
    assert!(!begin_removal(&mut conn, meant, DAY).await.expect("asks"), "touched since it was listed");
    for referred in [used, original] {
        assert!(!begin_removal(&mut conn, referred, DAY).await.expect("asks"));
    }
    sqlx::query("DELETE FROM assets").execute(&mut *conn).await.expect("deletes");
    assert_eq!(removable(&mut conn, DAY).await, [used, original], "both go with their asset");
    forget(&mut conn, used).await.expect("forgets only what is being removed");
    assert_eq!(state(pool, used).await.as_deref(), Some("stored"));
}

#[tokio::test]
async fn what_was_never_stored_comes_in_pages() {
    let database = TestDatabase::new().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let mut keys = Vec::new();
    for _ in 0..3 {
        keys.push(stage_unknown(&mut conn).await.expect("stages"));
    }
    keys.sort();
    age(database.pool(), 24 * 3600 - 60).await;
    assert!(unsettled(&mut conn, DAY, Uuid::nil(), 2).await.expect("lists").is_empty(), "within the grace");
    age(database.pool(), 24 * 3600 + 1).await;
    assert_eq!(unsettled(&mut conn, DAY, Uuid::nil(), 2).await.expect("lists"), keys[..2]);
    assert_eq!(unsettled(&mut conn, DAY, keys[1], 2).await.expect("lists"), keys[2..]);
    assert_eq!(walk(&mut conn, DAY, 10).await.expect("walks"), Walked::default(), "they are found without a walk");
}

#[tokio::test]
async fn the_walk_goes_on_where_it_stood_and_begins_anew_at_its_end() {
    let database = TestDatabase::new().await;
    let mut keys =
        [stored(database.pool(), 1).await, stored(database.pool(), 2).await, stored(database.pool(), 3).await];
    keys.sort();
    age(database.pool(), 2 * 24 * 3600).await;
    // A new connection for each step, as if another process ran it.
    let step = async || walk(&mut database.pool().acquire().await.expect("connects"), DAY, 2).await.expect("walks");
    for _ in 0..2 {
        assert_eq!(step().await, Walked { unreferenced: keys[..2].to_vec(), has_more: true });
        assert_eq!(step().await, Walked { unreferenced: keys[2..].to_vec(), has_more: false });
    }
    let mut other = database.pool().begin().await.expect("begins");
    assert!(walk(&mut other, DAY, 2).await.expect("walks").has_more);
    assert_eq!(step().await, Walked::default(), "another process runs a step");
    other.commit().await.expect("commits");
    assert_eq!(step().await.unreferenced, keys[2..]);
}

/// Rows of a table that this connection has read, by an index or without. Postgres does not report them to others before the
/// transaction ends.
async fn rows_read(conn: &mut PgConnection, table: &str) -> i64 {
    sqlx::query_scalar(
        "SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relname = $1",
    )
    .bind(table)
    .fetch_one(conn)
    .await
    .expect("reads")
}

#[tokio::test]
async fn a_step_of_the_walk_reads_its_window_and_the_last_blob_is_reached_all_the_same() {
    const WINDOW: i64 = 1000;
    let database = TestDatabase::new().await;
    let pool = database.pool();
    account(pool).await;
    // Keys in ascending order. Nothing refers to the last one.
    sqlx::raw_sql(
        "INSERT INTO blobs (key, state, sha256, bytes, touched_at)
         SELECT lpad(to_hex(n), 32, '0')::uuid, 'stored', sha256(n::text::bytea), 1, now() - interval '2 days'
         FROM generate_series(1, 20001) AS n;
         INSERT INTO assets (owner_uid, id, name, mime_type, width, height, bytes, blob_key)
         SELECT 'a', n::text, 'x.png', 'image/png', 1, 1, 1, lpad(to_hex(n), 32, '0')::uuid
         FROM generate_series(1, 20000) AS n;
         ANALYZE blobs, assets",
    )
    .execute(pool)
    .await
    .expect("fills");
    let mut steps = 0;
    let orphan = loop {
        let mut transaction = pool.begin().await.expect("begins");
        // The planner settings of every process (`pool::PLANS`).
        sqlx::raw_sql("SET LOCAL enable_seqscan = off").execute(&mut *transaction).await.expect("sets");
        let before = (rows_read(&mut transaction, "blobs").await, rows_read(&mut transaction, "assets").await);
        let walked = walk(&mut transaction, DAY, WINDOW).await.expect("walks");
        let blobs = rows_read(&mut transaction, "blobs").await - before.0;
        let assets = rows_read(&mut transaction, "assets").await - before.1;
        // The planner reads both ends of an index.
        let most = WINDOW + 10;
        assert!(blobs <= most && assets <= most, "step {steps} read {blobs} blobs and {assets} assets");
        transaction.commit().await.expect("commits");
        steps += 1;
        if let [orphan] = walked.unreferenced[..] {
            break orphan;
        }
        assert!(walked.has_more && steps <= 20, "the walk ended without the orphan");
    };
    assert_eq!((orphan, steps), (Uuid::from_u128(20001), 21));
    assert!(begin_removal(&mut pool.acquire().await.expect("connects"), orphan, DAY).await.expect("begins"));
}

/// Runs one referrer that staged the blob long ago against one sweeper, each on its own connection, many times. Either the
/// reference succeeds and the blob stays, or the blob is removed and the referrer is notified.
#[tokio::test]
async fn of_a_sweeper_and_a_referrer_exactly_one_has_the_blob() {
    let database = TestDatabase::new().await;
    let pool = database.pool();
    account(pool).await;
    let (mut kept, mut removed) = (0, 0);
    for round in 0..300_u32 {
        let key = stored(pool, 1).await;
        age(pool, 2 * 24 * 3600).await;
        let refer = async {
            let mut transaction = pool.begin().await.expect("begins");
            if round % 2 == 0 {
                tokio::task::yield_now().await;
            }
            let adopted = adopt(&mut transaction, key, &hash(1), 1).await.expect("adopts");
            if let Some(key) = adopted {
                refer(&mut transaction, &format!("r{round}"), key).await;
            }
            transaction.commit().await.expect("commits");
            adopted.is_some()
        };
        let sweep = async {
            let mut conn = pool.acquire().await.expect("connects");
            begin_removal(&mut conn, key, DAY).await.expect("begins")
        };
        let (referred, removing) = tokio::join!(refer, sweep);
        assert!(!(referred && removing), "round {round}: a blob under removal is referred to");
        assert_eq!(state(pool, key).await.as_deref(), Some(if removing { "removing" } else { "stored" }));
        if referred {
            kept += 1
        } else {
            removed += 1
        }
        sqlx::raw_sql("DELETE FROM assets; DELETE FROM blobs").execute(pool).await.expect("clears");
    }
    println!("referred {kept} times, removed {removed} times");
}

/// Forces each of the two orders in which the race can end.
#[tokio::test]
async fn a_referrer_waits_for_a_removal_and_a_sweeper_passes_over_a_referrer() {
    let database = TestDatabase::new().await;
    let pool = database.pool();
    account(pool).await;
    let key = stored(pool, 1).await;
    age(pool, 2 * 24 * 3600).await;

    let mut referrer = pool.begin().await.expect("begins");
    assert_eq!(adopt(&mut referrer, key, &hash(1), 1).await.expect("adopts"), Some(key));
    let mut conn = pool.acquire().await.expect("connects");
    assert!(!begin_removal(&mut conn, key, Duration::ZERO).await.expect("passes over what is locked"));
    refer(&mut referrer, "x", key).await;
    referrer.commit().await.expect("commits");
    age(pool, 2 * 24 * 3600).await;
    assert!(!begin_removal(&mut conn, key, DAY).await.expect("sees the reference"));

    sqlx::query("DELETE FROM assets").execute(pool).await.expect("deletes");
    let mut sweeper = pool.begin().await.expect("begins");
    assert!(begin_removal(&mut sweeper, key, DAY).await.expect("begins"));
    let waiting = {
        let pool = pool.clone();
        tokio::spawn(async move {
            let mut transaction = pool.begin().await.expect("begins");
            adopt(&mut transaction, key, &hash(1), 1).await.expect("asks")
        })
    };
    testkit::wait_for("the referrer to wait", Duration::from_secs(10), async || {
        let waits: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')",
        )
        .fetch_one(&mut *conn)
        .await
        .expect("reads");
        waits.then_some(())
    })
    .await;
    sweeper.commit().await.expect("commits");
    assert_eq!(waiting.await.expect("ends"), None);
}

#[tokio::test]
async fn a_blob_is_touched_again_after_an_hour() {
    let database = TestDatabase::new().await;
    let pool = database.pool();
    let key = stored(pool, 1).await;
    let mut conn = pool.acquire().await.expect("connects");
    for (seconds, is_touched) in [(3590, false), (3610, true)] {
        age(pool, seconds).await;
        assert_eq!(stage(&mut conn, &hash(1)).await.expect("stages"), Staged::Existing(key));
        let recent = "SELECT touched_at > now() - interval '1 minute' FROM blobs WHERE key = $1";
        let touched: bool = sqlx::query_scalar(recent).bind(key).fetch_one(pool).await.expect("reads");
        assert_eq!(touched, is_touched, "after {seconds} s");
    }
}
