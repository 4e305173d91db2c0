use domain::account::Scopes;
use domain::canvas::AccessRole;
use domain::idempotency::{self, Fingerprint};
use domain::import::{Failure, FailureKind, Imported};
use testkit::TestDatabase;

use super::*;
use crate::accounts;
use crate::canvases::NewCanvas;
use crate::idempotency::{NewKey, Taken, take, take_and_lock};
use crate::tokens::{self, NewToken};

const FINGERPRINT: [u8; 32] = [1; 32];

struct Fixture {
    database: TestDatabase,
    me: AccountUid,
    token: Uuid,
    canvas: CanvasRecord,
}

/// `me` as an editor of a canvas of `you`.
async fn fixture() -> Fixture {
    let database = TestDatabase::new().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let account = |uid: &str| AccountUid::parse(uid).expect("valid");
    let (me, you, token) = (account("me"), account("you"), Uuid::now_v7());
    for uid in [&me, &you] {
        accounts::create(&mut conn, uid, &format!("{uid}@example.com")).await.expect("creates").expect("is new");
    }
    let new = NewToken {
        id: token,
        account: &me,
        label: "laptop",
        scopes: Scopes::default(),
        surface: Surface::Cli,
        secret_hash: b"",
        expires_days: None,
    };
    tokens::create(&mut conn, &new).await.expect("creates a token");
    let handle = CanvasHandle { owner: you.clone(), id: CanvasId::parse("c").expect("valid") };
    let actor = Actor { owner_uid: you, surface: Surface::Api, label: "t".into() };
    let new = NewCanvas { handle: &handle, canvas_type: None, title: "C", revision: "r0", actor: &actor };
    let canvas = canvases::create(&mut conn, &new).await.expect("creates").expect("is new");
    canvases::share(&mut conn, &handle, &me, Some(AccessRole::Editor)).await.expect("shares");
    drop(conn);
    Fixture { database, me, token, canvas }
}

fn request() -> Request {
    Request::Image { url: "https://a.example/a.png".into(), title: None, x: None, y: None }
}

fn failed() -> ImportOutcome {
    ImportOutcome::Failed(Failure {
        kind: FailureKind::Upstream,
        field: "imageUrl".into(),
        message: "is down".into(),
        full: None,
        is_heic: false,
    })
}

fn imported() -> ImportOutcome {
    ImportOutcome::Imported(Imported { revision: "r1".into(), images: Vec::new(), pack: None })
}

impl Fixture {
    async fn conn(&self) -> crate::Connection {
        self.database.pool().acquire().await.expect("connects")
    }

    fn key<'a>(&'a self, fingerprint: &'a Fingerprint) -> NewKey<'a> {
        NewKey { account: &self.me, text: "a key of mine", fingerprint, outcome: None, job: None }
    }

    async fn take(&self, fingerprint: [u8; 32]) -> Taken {
        let fingerprint = fingerprint.into();
        take(&mut *self.conn().await, &self.key(&fingerprint)).await.expect("takes")
    }

    /// Starts an import under the key.
    async fn start(&self) -> Uuid {
        let (id, request, mut conn) = (Uuid::now_v7(), request(), self.conn().await);
        let outcome = idempotency::StoredOutcome::Import { id };
        let fingerprint = FINGERPRINT.into();
        let key = NewKey { outcome: Some(&outcome), job: Some(id), ..self.key(&fingerprint) };
        assert_eq!(take(&mut conn, &key).await.expect("takes"), Taken::Fresh);
        let (account, token_id, canvas_key) = (&self.me, self.token, self.canvas.key);
        let new = NewImport { id, account, token_id, canvas_key, request: &request };
        insert(&mut conn, &new).await.expect("inserts");
        id
    }

    async fn end(&self, id: Uuid, outcome: &ImportOutcome) {
        finish(&mut *self.conn().await, id, outcome).await.expect("finishes");
    }

    async fn outcome(&self, id: Uuid) -> Option<Option<ImportOutcome>> {
        outcome(&mut *self.conn().await, id, &self.me).await.expect("reads")
    }

    async fn age(&self, minutes: i32) {
        sqlx::query("UPDATE imports SET ended_at = ended_at - make_interval(mins => $1)")
            .bind(minutes)
            .execute(self.database.pool())
            .await
            .expect("ages");
    }

    async fn sweep(&self) -> u64 {
        sweep(&mut *self.conn().await, 10).await.expect("sweeps")
    }
}

#[tokio::test]
async fn an_import_is_worked_on_as_whoever_asked_until_it_has_ended() {
    let fixture = fixture().await;
    let id = fixture.start().await;
    let mut conn = fixture.conn().await;
    let import = of_task(&mut conn, id).await.expect("reads").expect("is there");
    assert_eq!((&import.request, &import.canvas), (&request(), &fixture.canvas.handle));
    assert_eq!((import.actor.owner_uid.as_str(), import.actor.label.as_str()), ("me", "laptop"));
    assert!(import.lock_canvas(&mut conn).await.expect("locks").is_some());
    canvases::share(&mut conn, &import.canvas, &fixture.me, Some(AccessRole::Viewer)).await.expect("shares");
    assert!(import.lock_canvas(&mut conn).await.expect("locks").is_none(), "a viewer writes nothing");
    assert_eq!(fixture.outcome(id).await, Some(None));
    fixture.end(id, &failed()).await;
    assert_eq!(of_task(&mut conn, id).await.expect("reads"), None);
    fixture.end(id, &imported()).await;
    assert_eq!(fixture.outcome(id).await, Some(Some(failed())), "it ends once");
    let stranger = AccountUid::parse("you").expect("valid");
    assert_eq!(outcome(&mut conn, id, &stranger).await.expect("reads"), None);
}

#[tokio::test]
async fn imports_that_are_still_to_end_are_counted_up_to_the_cap() {
    let fixture = fixture().await;
    let count = async |uid: &str| {
        let account = AccountUid::parse(uid).expect("valid");
        count_pending(&mut *fixture.conn().await, &account, 2).await.expect("counts")
    };
    let insert = async || {
        let id = Uuid::now_v7();
        let (account, token_id, canvas_key) = (&fixture.me, fixture.token, fixture.canvas.key);
        let new = NewImport { id, account, token_id, canvas_key, request: &request() };
        insert(&mut *fixture.conn().await, &new).await.expect("inserts");
        id
    };
    assert_eq!(count("me").await, 0);
    let first = insert().await;
    insert().await;
    assert_eq!((count("me").await, count("you").await), (2, 0));
    insert().await;
    assert_eq!(count("me").await, 2, "no further than the cap");
    fixture.end(first, &failed()).await;
    fixture.end(insert().await, &imported()).await;
    assert_eq!(
        count_pending(&mut *fixture.conn().await, &fixture.me, 9).await.expect("counts"),
        2,
        "an ended import does not count"
    );
}

#[tokio::test]
async fn a_failure_holds_its_key_for_those_who_ask_for_it_and_against_nobody_else() {
    let fixture = fixture().await;
    let id = fixture.start().await;
    assert_eq!(fixture.take([2; 32]).await, Taken::Conflict, "while it is worked on");
    fixture.end(id, &failed()).await;
    let replay = Taken::Replay(idempotency::StoredOutcome::Import { id });
    assert_eq!(fixture.take(FINGERPRINT).await, replay);
    release(&mut *fixture.conn().await, id).await.expect("releases");
    assert_eq!(fixture.take(FINGERPRINT).await, Taken::Fresh, "it was received");
    assert_eq!(fixture.outcome(id).await, Some(Some(failed())), "a concurrent waiter gets the outcome as well");

    let fixture = self::fixture().await;
    let id = fixture.start().await;
    fixture.end(id, &failed()).await;
    assert_eq!(fixture.take([2; 32]).await, Taken::Fresh);
}

#[tokio::test]
async fn who_takes_over_a_key_also_gets_the_canvas_locked() {
    let fixture = fixture().await;
    for with_account in [false, true] {
        let id = fixture.start().await;
        fixture.end(id, &failed()).await;
        let mut tx = fixture.database.pool().begin().await.expect("begins");
        let (fingerprint, canvas) = ([2; 32].into(), &fixture.canvas.handle);
        let (taken, found) =
            take_and_lock(&mut tx, &fixture.key(&fingerprint), canvas, with_account).await.expect("takes");
        let found = found.map(|(record, role)| (record.key, role));
        assert_eq!((taken, found), (Taken::Fresh, Some((fixture.canvas.key, AccessRole::Editor))));
        for (row, is_held) in [
            ("SELECT FROM canvases FOR NO KEY UPDATE NOWAIT", true),
            ("SELECT FROM accounts WHERE uid = 'me' FOR NO KEY UPDATE NOWAIT", with_account),
        ] {
            let locked = sqlx::query(row).fetch_all(fixture.database.pool()).await;
            assert_eq!(locked.is_err(), is_held, "{row}");
        }
        tx.rollback().await.expect("rolls back");
        release(&mut *fixture.conn().await, id).await.expect("frees the key");
    }
}

#[tokio::test]
async fn equal_requests_that_take_over_a_key_at_once_are_one() {
    let fixture = fixture().await;
    let id = fixture.start().await;
    fixture.end(id, &failed()).await;
    let mut first = fixture.database.pool().begin().await.expect("begins");
    sqlx::query("SELECT FROM idempotency_keys FOR UPDATE").execute(&mut *first).await.expect("holds the key");
    let second = fixture.take([2; 32]);
    let takes_over = async {
        // The second has found the failure, and waits to free its key.
        testkit::wait_for("the second to wait", std::time::Duration::from_secs(20), async || {
            let waiting = "SELECT count(*) FROM pg_stat_activity
                           WHERE datname = current_database() AND wait_event_type = 'Lock'";
            let count: i64 = sqlx::query_scalar(waiting).fetch_one(fixture.database.pool()).await.expect("counts");
            (count == 1).then_some(())
        })
        .await;
        assert!(release_key(&mut first, &fixture.me, "a key of mine").await.expect("frees"));
        let outcome = idempotency::StoredOutcome::Import { id: Uuid::nil() };
        let fingerprint = [2; 32].into();
        let key = NewKey { outcome: Some(&outcome), ..fixture.key(&fingerprint) };
        assert_eq!(take(&mut first, &key).await.expect("takes"), Taken::Fresh);
        first.commit().await.expect("commits");
        outcome
    };
    let (second, outcome) = tokio::join!(second, takes_over);
    assert_eq!(second, Taken::Replay(outcome));
}

#[tokio::test]
async fn a_success_stands_for_its_key() {
    let fixture = fixture().await;
    let id = fixture.start().await;
    fixture.end(id, &imported()).await;
    release(&mut *fixture.conn().await, id).await.expect("releases nothing");
    assert_eq!(fixture.take(FINGERPRINT).await, Taken::Replay(idempotency::StoredOutcome::Import { id }));
    assert_eq!(fixture.take([2; 32]).await, Taken::Conflict);
    fixture.age(11).await;
    assert_eq!(fixture.sweep().await, 0);
    sqlx::query("DELETE FROM idempotency_keys").execute(fixture.database.pool()).await.expect("deletes");
    assert_eq!(fixture.sweep().await, 1);
    assert_eq!(fixture.outcome(id).await, None);
}

#[tokio::test]
async fn an_outcome_that_nobody_received_is_kept_ten_minutes() {
    let fixture = fixture().await;
    let id = fixture.start().await;
    assert_eq!(fixture.sweep().await, 0, "never an active import");
    fixture.end(id, &failed()).await;
    fixture.age(9).await;
    assert_eq!(fixture.sweep().await, 0);
    fixture.age(2).await;
    assert_eq!(fixture.sweep().await, 1);
    assert_eq!((fixture.outcome(id).await, fixture.take(FINGERPRINT).await), (None, Taken::Fresh));
}

/// Rows of imports that this connection has read. Postgres does not report them to others before the transaction ends.
async fn rows_read(conn: &mut PgConnection) -> i64 {
    sqlx::query_scalar("SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'imports'")
        .fetch_one(conn)
        .await
        .expect("reads")
}

#[tokio::test]
async fn a_sweep_looks_at_the_oldest_successes_alone() {
    let fixture = fixture().await;
    // Recent successes with their keys, and the oldest one without a key.
    sqlx::query(
        "INSERT INTO imports (id, account_uid, token_id, canvas_key, request, state, outcome, ended_at)
         SELECT lpad(to_hex(n), 32, '0')::uuid, 'me', $1, $2, '{}', 'succeeded', '{}', now() - n * interval '1 minute'
         FROM generate_series(100, 5000) AS n",
    )
    .bind(fixture.token)
    .bind(fixture.canvas.key)
    .execute(fixture.database.pool())
    .await
    .expect("fills");
    sqlx::raw_sql(
        "INSERT INTO idempotency_keys (account_uid, key, fingerprint, job_id)
         SELECT 'me', id::text, '', id FROM imports WHERE id < lpad(to_hex(5000), 32, '0')::uuid;
         ANALYZE imports, idempotency_keys",
    )
    .execute(fixture.database.pool())
    .await
    .expect("fills");
    for swept in [1, 0] {
        let mut transaction = fixture.database.pool().begin().await.expect("begins");
        // The planner settings of every process (`pool::PLANS`).
        sqlx::raw_sql("SET LOCAL enable_seqscan = off").execute(&mut *transaction).await.expect("sets");
        let before = rows_read(&mut transaction).await;
        assert_eq!(sweep(&mut transaction, 10).await.expect("sweeps"), swept);
        let read = rows_read(&mut transaction).await - before;
        // Each row is found, read again under its lock, and deleted.
        assert!(read <= 3 * 10, "{read} rows were read");
        transaction.commit().await.expect("commits");
    }
}
