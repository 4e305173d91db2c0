//! What holds for every command with an idempotency key, shown with batches of operations on a real database.

use std::time::Duration;

use app::canvas::{ApplyBatch, ChangedCanvas};
use app::graphs::Graphs;
use app::{Base, CanvasWrite, Error, Key, Locks};
use canvas::Batch;
use db::canvases::{self, NewCanvas};
use domain::account::Surface;
use domain::canvas::{AccessRole, Actor};
use domain::id::{AccountUid, CanvasHandle, CanvasId};
use domain::idempotency::Fingerprint;
use domain::operation::Operation;
use futures_util::future::join_all;
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
        let account = account(request.account);
        let batch = Batch::new(vec![Operation::CanvasUpdate { title: request.title.to_owned() }]).expect("is valid");
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
    assert!(matches!(setting.by_owner("one", &first, "B").await, Err(Error::Conflict(_))));
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
    assert!(matches!(other, Error::Conflict(_)), "{other}");
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
