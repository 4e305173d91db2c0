//! What holds for every command with an idempotency key, shown with batches of operations on a real database.

use std::time::Duration;

use app::canvas::{ApplyBatch, ChangedCanvas};
use app::graphs::Graphs;
use app::{Base, CanvasWrite, Error, Key, Locks};
use canvas::Batch;
use db::canvases::{self, NewCanvas};
use db::storage::Storage;
use domain::account::Surface;
use domain::canvas::{AccessRole, Actor};
use domain::id::{AccountUid, CanvasHandle, CanvasId};
use domain::idempotency::Fingerprint;
use domain::operation::Operation;
use domain::problem::ErrorReason;
use futures_util::future::join_all;
use serde_json::json;
use testkit::TestDatabase;

struct Setting {
    database: TestDatabase,
    canvas: CanvasHandle,
    /// Those of one process: a write after the first one is tried in one statement.
    graphs: Graphs,
}

/// A batch as an account sends it.
struct Request<'a> {
    account: &'a str,
    key: &'a str,
    base_revision: Option<&'a str>,
    title: &'a str,
}

fn account(uid: &str) -> AccountUid {
    AccountUid::from_stored(uid.into())
}

impl Setting {
    /// A canvas of `owner` at revision `r0`. `viewer` may read it; `stranger` has no access.
    async fn new() -> Self {
        let database = TestDatabase::new().await;
        let mut conn = database.pool().acquire().await.expect("connects");
        for uid in ["owner", "viewer", "stranger"] {
            let insert = "INSERT INTO accounts (uid, email) VALUES ($1, $1 || '@example.com')";
            sqlx::query(insert).bind(uid).execute(&mut *conn).await.expect("inserts an account");
        }
        let canvas = CanvasHandle { owner: account("owner"), id: CanvasId::from_stored("c".into()) };
        let actor = Actor { owner_uid: account("owner"), surface: Surface::Api, label: "test".into() };
        let new = NewCanvas { handle: &canvas, canvas_type: None, title: "C", revision: "r0", actor: &actor };
        canvases::create(&mut conn, &new).await.expect("creates").expect("is new");
        let shared = canvases::share(&mut conn, &canvas, &account("viewer"), Some(AccessRole::Viewer)).await;
        assert!(shared.expect("shares"));
        drop(conn);
        Self { database, canvas, graphs: Graphs::default() }
    }

    /// Applies a batch that renames the canvas. The title stands for the request in the fingerprint.
    async fn rename(&self, request: Request<'_>) -> app::Result<ChangedCanvas> {
        let title = request.title.to_owned();
        self.apply(request, vec![Operation::CanvasUpdate { title }]).await
    }

    async fn apply(&self, request: Request<'_>, operations: Vec<Operation>) -> app::Result<ChangedCanvas> {
        let account = account(request.account);
        let batch = Batch::new(operations).expect("is valid");
        let mut digest = [0; 32];
        digest[..request.title.len()].copy_from_slice(request.title.as_bytes());
        let base = request.base_revision.map(|revision| Base { revision: revision.to_owned(), lenient: false });
        let command = ApplyBatch {
            target: CanvasWrite { account: &account, canvas: &self.canvas, base: base.as_ref(), locks: Locks::Canvas },
            canvas_key: 1,
            key: Key { text: request.key, fingerprint: &Fingerprint::from(digest) },
            actor: Actor { owner_uid: account.clone(), surface: Surface::Api, label: "test".into() },
            batch: &batch,
            force: false,
            graphs: &self.graphs,
        };
        app::run(self.database.pool(), &command, |channels| assert_eq!(channels, [self.canvas.to_string()])).await
    }

    async fn by_owner(&self, key: &str, base_revision: &str, title: &str) -> app::Result<ChangedCanvas> {
        self.rename(Request { account: "owner", key, base_revision: Some(base_revision), title }).await
    }

    async fn count(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query).fetch_one(self.database.pool()).await.expect("counts")
    }
}

#[tokio::test]
async fn of_equal_requests_at_once_one_executes_and_the_others_are_replays() {
    let setting = Setting::new().await;
    let requests = (0..8).map(|_| setting.by_owner("key", "r0", "A"));
    let replies: Vec<_> = join_all(requests).await.into_iter().map(|reply| reply.expect("is accepted")).collect();
    assert_eq!(replies.iter().filter(|reply| !reply.replayed).count(), 1);
    assert!(replies.iter().all(|reply| reply.record.revision == replies[0].record.revision));
    assert_eq!(setting.count("SELECT count(*) FROM canvas_changes").await, 2, "the creation and one batch");
    assert_eq!(setting.count("SELECT count(*) FROM idempotency_keys WHERE outcome IS NOT NULL").await, 1);
}

#[tokio::test]
async fn of_equal_requests_at_once_one_executes_whether_in_a_transaction_or_in_one_statement() {
    let setting = Setting::new().await;
    let mut revision = "r0".to_owned();
    for round in 0..20 {
        // The first of a round finds the graph of the round before.
        let (key, title) = (format!("key-{round}"), format!("Round {round}"));
        let replies = join_all((0..6).map(|_| setting.by_owner(&key, &revision, &title))).await;
        let replies: Vec<_> = replies.into_iter().map(|reply| reply.expect("is accepted")).collect();
        assert_eq!(replies.iter().filter(|reply| !reply.replayed).count(), 1);
        revision.clone_from(&replies[0].record.revision);
        assert!(replies.iter().all(|reply| reply.record.revision == revision && reply.record.title == title));
    }
    assert_eq!(
        setting.count("SELECT count(*) FROM canvas_changes").await,
        21,
        "the creation and a batch of each round"
    );
}

#[tokio::test]
async fn a_write_in_one_statement_is_judged_as_any_other() {
    let setting = Setting::new().await;
    let first = setting.by_owner("one", "r0", "A").await.expect("is accepted").record.revision;
    // The key of another request.
    assert!(matches!(setting.by_owner("one", &first, "B").await, Err(Error::Conflict(ErrorReason::IdempotencyKey, _))));
    let second = setting.by_owner("two", &first, "B").await.expect("is accepted").record.revision;
    let replay = setting.by_owner("two", &first, "B").await.expect("is replayed");
    assert!(replay.replayed);
    // Another process has written since.
    let elsewhere = "UPDATE canvases SET revision = 'elsewhere', sequence = sequence + 1";
    sqlx::query(elsewhere).execute(setting.database.pool()).await.expect("updates");
    let stale = setting.by_owner("three", &second, "C").await.expect_err("is stale");
    assert!(matches!(&stale, Error::Stale { canvas, .. } if canvas.revision == "elsewhere"), "{stale}");
    assert_eq!(setting.count("SELECT count(*) FROM idempotency_keys").await, 2);
    assert_eq!(setting.count("SELECT count(*) FROM canvases WHERE title = 'B'").await, 1);
}

#[tokio::test]
async fn a_rejected_command_takes_no_key_and_writes_nothing() {
    let setting = Setting::new().await;
    let stale = setting.by_owner("key", "r9", "A").await.expect_err("is stale");
    assert!(matches!(&stale, Error::Stale { canvas, base_revision, changed_nodes: None }
            if canvas.revision == "r0" && base_revision == "r9"));
    assert_eq!(setting.count("SELECT count(*) FROM idempotency_keys").await, 0);
    assert!(!setting.by_owner("key", "r0", "B").await.expect("is accepted").replayed);
}

#[tokio::test]
async fn a_key_is_of_one_request_and_a_replay_looks_at_no_revision() {
    let setting = Setting::new().await;
    let first = setting.by_owner("key", "r0", "A").await.expect("is accepted");
    let other = setting.by_owner("key", "r0", "B").await.expect_err("is another request");
    assert!(matches!(other, Error::Conflict(ErrorReason::IdempotencyKey, _)), "{other}");
    let second = setting.by_owner("more", &first.record.revision, "B").await.expect("is accepted");
    let replay = setting.by_owner("key", "r0", "A").await.expect("is replayed");
    assert_eq!((replay.replayed, &replay.record.revision), (true, &second.record.revision), "the state as it is now");
    assert_eq!(replay.changes, first.changes);
}

#[tokio::test]
async fn an_account_without_access_is_rejected_before_revision_and_key() {
    let setting = Setting::new().await;
    setting.by_owner("key", "r0", "A").await.expect("is accepted");
    let by = async |account| {
        let request = Request { account, key: "key", base_revision: Some("r0"), title: "A" };
        setting.rename(request).await.expect_err("is rejected")
    };
    assert!(matches!(by("viewer").await, Error::Forbidden(_)));
    assert!(matches!(by("stranger").await, Error::NotFound("canvas")));
    assert_eq!(setting.count("SELECT count(*) FROM idempotency_keys").await, 1, "that of the owner");
}

#[tokio::test]
async fn a_role_that_is_withdrawn_while_a_command_waits_for_the_canvas_does_not_count() {
    let setting = Setting::new().await;
    let share = async |role| {
        let mut conn = setting.database.pool().acquire().await.expect("connects");
        assert!(canvases::share(&mut conn, &setting.canvas, &account("viewer"), role).await.expect("shares"));
    };
    for (role, rejected_as_viewer) in [(Some(AccessRole::Viewer), true), (None, false)] {
        share(Some(AccessRole::Editor)).await;
        let mut holder = setting.database.pool().begin().await.expect("begins");
        canvases::lock(&mut holder, &account("owner"), &setting.canvas).await.expect("locks").expect("is there");
        let request = Request { account: "viewer", key: "key", base_revision: Some("r0"), title: "A" };
        let withdraws = async {
            let is_waiting = async || {
                let waiting = "SELECT count(*) FROM pg_stat_activity
                               WHERE wait_event_type = 'Lock' AND datname = current_database()";
                (setting.count(waiting).await == 1).then_some(())
            };
            testkit::wait_for("the command to wait", Duration::from_secs(5), is_waiting).await;
            share(role).await;
            holder.commit().await.expect("commits");
        };
        match tokio::join!(setting.rename(request), withdraws).0.expect_err("is rejected") {
            Error::Forbidden(_) => assert!(rejected_as_viewer),
            Error::NotFound("canvas") => assert!(!rejected_as_viewer),
            other => panic!("{other}"),
        }
        assert_eq!(setting.count("SELECT count(*) FROM idempotency_keys").await, 0);
    }
}

#[tokio::test]
async fn a_write_that_only_adds_needs_no_revision() {
    let setting = Setting::new().await;
    for (key, title) in [("one", "A"), ("two", "B")] {
        let request = Request { account: "owner", key, base_revision: None, title };
        setting.rename(request).await.expect("is accepted");
    }
    assert_eq!(setting.count("SELECT count(*) FROM canvas_changes").await, 3);
}

#[tokio::test]
async fn a_full_storage_takes_what_does_not_add_to_it_in_a_transaction_and_in_one_statement() {
    for is_kept in [true, false] {
        let setting = Setting::new().await;
        let revision = std::cell::RefCell::new("r0".to_owned());
        let apply = async |key: &str, operations: serde_json::Value| {
            if !is_kept {
                // Another process has written since, so that the graph has to be read.
                let elsewhere = "UPDATE canvases SET revision = revision || '-', sequence = sequence + 1";
                sqlx::query(elsewhere).execute(setting.database.pool()).await.expect("updates");
                revision.borrow_mut().push('-');
            }
            let base = revision.borrow().clone();
            let request = Request { account: "owner", key, base_revision: Some(&base), title: key };
            let changed = setting.apply(request, serde_json::from_value(operations).expect("operations")).await;
            if let Ok(changed) = &changed {
                revision.borrow_mut().clone_from(&changed.record.revision);
            }
            changed
        };
        let create = |name: &str, bytes: usize| {
            let metadata = json!({"custom": {"text": "x".repeat(bytes)}});
            let node = json!({"type": "text", "position": {"x": 0, "y": i64::from(name.as_bytes()[0]) * 1000}, "metadata": metadata});
            json!([{"type": "node.create", "clientId": name, "node": node}])
        };
        let made = apply("create", create("a", 30_000)).await.expect("is accepted");
        let node = made.resolved_ids["a"].clone();
        let quota = "UPDATE accounts SET storage_max = 65536 WHERE uid = 'owner'";
        sqlx::query(quota).execute(setting.database.pool()).await.expect("sets");

        apply("within", create("b", 30_000)).await.expect("the step has room");
        for key in ["beyond", "again"] {
            let refused = apply(key, create("c", 10_000)).await.expect_err("another step");
            let storage = Storage { bytes: 65536, max: 65536 };
            assert!(
                matches!(refused, Error::StorageFull { field: Some("operations"), own: Some(full) } if full == storage)
            );
        }
        // The graph ends right below the next step, and a move makes numbers longer.
        let at_end = "UPDATE canvases SET graph_bytes = counted - history_bytes - 10";
        sqlx::query(at_end).execute(setting.database.pool()).await.expect("fills");
        let far = json!({"x": 123456.789012, "y": -123456.789012});
        for (key, operation) in [
            ("move", json!({"type": "node.move", "nodeId": node, "position": far})),
            ("delete", json!({"type": "node.delete", "nodeId": node})),
            ("restore", json!({"type": "node.restore", "nodeId": node})),
        ] {
            apply(key, json!([operation])).await.unwrap_or_else(|error| panic!("{key}: {error}"));
        }
        let stored = setting.count("SELECT bytes FROM account_storage WHERE account_uid = 'owner'").await;
        assert!(stored > 65536, "what is deleted is counted, too: {stored}");
        apply("shrink", json!([{"type": "node.update", "nodeId": node, "patch": {"metadata": {"custom": {}}}}]))
            .await
            .expect("shrinks");
        let stored =
            setting.count("SELECT bytes - counted FROM account_storage JOIN canvases ON owner_uid = account_uid").await;
        assert_eq!(stored, 0);
    }
}
