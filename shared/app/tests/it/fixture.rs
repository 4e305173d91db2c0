//! An account, a shared canvas with an image node, and a job that will fill it.

use std::time::Duration;

use app::job::{Completion, CompletionContext, CompletionResult, End};
use app::target::{self, Work};
use db::canvases::{self, Change, NewCanvas};
use db::jobs::{self, NewJob, Windows};
use db::tasks::{self, ClaimRequest};
use domain::account::Surface;
use domain::canvas::{AccessRole, Actor, CanvasRecord};
use domain::graph::{GraphWrites, Node, NodeType, Position};
use domain::id::{AccountUid, AssetHandle, AssetId, CanvasHandle, CanvasId, JobId, NodeId};
use domain::job::{ActionRequest, ActionStep, Input, JobOperation, Placement, Record, Request};
use domain::message::{Queue, ReadyTasks};
use domain::metadata::{Provenance, ProvenanceKind};
use serde_json::Map;
use sqlx::{PgConnection, Postgres, pool::PoolConnection};
use testkit::TestDatabase;
use uuid::Uuid;

pub const WINDOWS: Windows = Windows {
    unread: Duration::from_secs(86_400),
    finalized: Duration::from_secs(900),
    tombstone: Duration::from_secs(604_800),
    failed: Duration::from_secs(80_000),
    video: Duration::from_secs(2_592_000),
};

pub const PUBLIC_URL: &str = "https://canvas.example";

static READY: ReadyTasks = ReadyTasks::new();

/// What completing a job requires of a process.
pub static CONTEXT: &CompletionContext<'_> = &CompletionContext {
    public_url: PUBLIC_URL,
    windows: &WINDOWS,
    traceparent: None,
    ready: &READY,
    worker_silent: Duration::from_secs(15),
    review: None,
};

pub struct Fixture {
    pub database: TestDatabase,
    /// The account that starts jobs. It owns the canvas unless the fixture is `shared`.
    pub account: AccountUid,
    pub token: Uuid,
    pub canvas: CanvasRecord,
    pub node: NodeId,
}

pub fn account(uid: &str) -> AccountUid {
    AccountUid::from_stored(uid.into())
}

/// Writes nodes to a canvas, which keeps its revision: only a read of the graph notices.
pub async fn put(conn: &mut PgConnection, canvas_key: i64, nodes: impl IntoIterator<Item = &Node>) {
    let revision = sqlx::query_scalar("SELECT revision FROM canvases WHERE key = $1").bind(canvas_key);
    let revision: String = revision.fetch_one(&mut *conn).await.expect("reads");
    let graph = GraphWrites { nodes: nodes.into_iter().collect(), ..GraphWrites::default() };
    canvases::write(conn, canvas_key, &Change { graph, ..Change::new(&revision) }).await.expect("writes");
}

impl Fixture {
    /// A fixture with the account's own canvas.
    pub async fn new() -> Self {
        Self::with_accounts("me", "me").await
    }

    /// A fixture with a canvas of `you`, in which `me` is an editor.
    pub async fn shared() -> Self {
        let fixture = Self::with_accounts("me", "you").await;
        fixture.share(Some(AccessRole::Editor)).await;
        fixture
    }

    async fn with_accounts(caller: &str, owner: &str) -> Self {
        let database = TestDatabase::new().await;
        let mut conn = database.pool().acquire().await.expect("connects");
        for uid in ["me", "you"] {
            sqlx::query("INSERT INTO accounts (uid, email) VALUES ($1, $1 || '@example.com')")
                .bind(uid)
                .execute(&mut *conn)
                .await
                .expect("inserts an account");
        }
        let (session, token) = (Uuid::now_v7(), Uuid::now_v7());
        sqlx::query("INSERT INTO account_sessions (id, account_uid) VALUES ($1, $2)")
            .bind(session)
            .bind(caller)
            .execute(&mut *conn)
            .await
            .expect("inserts a session");
        sqlx::query(
            "INSERT INTO tokens (id, account_uid, session_id, label, scopes, surface, secret_hash)
             VALUES ($1, $2, $3, 'laptop', '{}', 'cli', '')",
        )
        .bind(token)
        .bind(caller)
        .bind(session)
        .execute(&mut *conn)
        .await
        .expect("inserts a token");
        let handle = CanvasHandle { owner: account(owner), id: CanvasId::from_stored("c".into()) };
        let actor = Actor { owner_uid: account(owner), surface: Surface::Api, label: "t".into() };
        let new = NewCanvas { handle: &handle, canvas_type: None, title: "C", revision: "r0", actor: &actor };
        let canvas = canvases::create(&mut conn, &new).await.expect("creates").expect("is new");
        let node = image_node();
        put(&mut conn, canvas.key, [&node]).await;
        drop(conn);
        Self { database, account: account(caller), token, canvas, node: node.id }
    }

    /// Gives refs to the nodes of the canvas.
    pub async fn give_refs(&self) {
        let mut tx = self.database.pool().begin().await.expect("begins");
        let (mut record, _) =
            canvases::find(&mut tx, &self.account, &self.canvas.handle).await.expect("reads").expect("is there");
        canvases::ensure_refs(&mut tx, &mut record).await.expect("gives refs");
        tx.commit().await.expect("commits");
    }

    pub async fn conn(&self) -> PoolConnection<Postgres> {
        self.database.pool().acquire().await.expect("connects")
    }

    pub async fn share(&self, role: Option<AccessRole>) {
        let shared = canvases::share(&mut *self.conn().await, &self.canvas.handle, &self.account, role).await;
        assert!(shared.expect("shares"));
    }

    pub async fn node(&self) -> Option<Node> {
        canvases::node(&mut *self.conn().await, self.canvas.key, &self.node).await.expect("reads a node")
    }

    pub async fn delete_node(&self) {
        let graph = GraphWrites { deleted_nodes: vec![&self.node], ..GraphWrites::default() };
        let change = Change { graph, ..Change::new("deleted") };
        canvases::write(&mut *self.conn().await, self.canvas.key, &change).await.expect("deletes a node");
    }

    /// The job, if a read shows it at this moment.
    pub async fn found(&self, id: JobId) -> Option<Record> {
        let mut conn = self.conn().await;
        jobs::get(&mut conn, id, &self.account, WINDOWS.tombstone).await.expect("reads a job")
    }

    /// The canvas's present revision.
    pub async fn revision(&self) -> String {
        sqlx::query_scalar("SELECT revision FROM canvases").fetch_one(&mut *self.conn().await).await.expect("reads")
    }

    pub async fn get(&self, id: JobId) -> Record {
        self.found(id).await.expect("there is one")
    }

    /// The number that a counting query returns.
    pub async fn count(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query).fetch_one(&mut *self.conn().await).await.expect("counts")
    }

    /// Waits until a transaction waits for a lock.
    pub async fn waits_for_a_lock(&self, who: &str) {
        let waiting =
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        let is_waiting = async || (self.count(waiting).await == 1).then_some(());
        testkit::wait_for(&format!("{who} to wait"), std::time::Duration::from_secs(5), is_waiting).await;
    }

    /// The states that a job was in.
    pub async fn history(&self, id: JobId) -> Vec<String> {
        sqlx::query_scalar("SELECT status FROM job_history WHERE job_id = $1 ORDER BY version")
            .bind(id.0)
            .fetch_all(&mut *self.conn().await)
            .await
            .expect("reads the history")
    }

    /// Accepts a resize into the node, with its task, and binds the node to it.
    pub async fn start(&self) -> JobId {
        let id = self.accept().await;
        let mut conn = self.conn().await;
        let node = canvases::node(&mut conn, self.canvas.key, &self.node).await.expect("reads a node");
        let mut node = node.expect("is there");
        let bound = target::bind(std::slice::from_mut(&mut node), Work::Job(id, JobOperation::Action), false);
        assert!(bound.is_some());
        put(&mut conn, self.canvas.key, [&node]).await;
        id
    }

    /// Accepts a resize into the node, with its task.
    pub async fn accept(&self) -> JobId {
        let mut conn = self.conn().await;
        let id = JobId::generate();
        let step = ActionStep { slug: "resize".into(), version: "1.0.0".into(), params: Map::new() };
        let inputs = vec![Input { handle: "node:x".into(), asset: asset("input") }];
        let request = Request::Action(ActionRequest::new(vec![step], inputs, self.node.clone()).expect("has a step"));
        let job = NewJob {
            id,
            account: &self.account,
            token_id: self.token,
            operation: JobOperation::Action,
            canvas: Some((self.canvas.key, &self.canvas.handle)),
            canvas_revision: Some("r1"),
            request: &request,
            estimated_seconds: 1,
            credit_cost: 0,
            recipe_run: None,
            about: None,
            traceparent: None,
        };
        let accepted = jobs::insert(&mut conn, &job).await.expect("inserts a job");
        assert_eq!(Some(accepted), self.found(id).await);
        id
    }

    /// Claims the only task in the queue and returns its lease token.
    pub async fn claim(&self) -> Uuid {
        let wanted = ClaimRequest {
            queue: Queue::Image,
            limit: 1,
            quarantined: false,
            caps: None,
            lease: Duration::from_secs(30),
            owner: "test",
        };
        let claims = tasks::claim(&mut *self.conn().await, &wanted).await.expect("claims");
        claims.first().expect("a task").lease_token
    }

    /// Lets a lease expire and its task become ready again.
    pub async fn expire_lease(&self, id: JobId) {
        let mut conn = self.conn().await;
        sqlx::query("UPDATE task_queue SET lease_until = now() - interval '1 s' WHERE id = $1")
            .bind(id.0)
            .execute(&mut *conn)
            .await
            .expect("expires");
        assert_eq!(
            tasks::promote(&mut conn, Queue::Image, 10, &tasks::LowWaterMarks::default(), &[])
                .await
                .expect("promotes")
                .expired,
            1
        );
    }

    /// Starts, claims and ends a job.
    pub async fn ended(&self, ending: Completion) -> Record {
        let id = self.start().await;
        let lease = self.claim().await;
        begin(&mut *self.conn().await, id, lease).await.expect("is ours");
        match self.complete(id, lease, ending).await {
            CompletionResult::Done(record) => *record,
            other => panic!("not completed: {other:?}"),
        }
    }

    /// One attempt to end a job, committed as a worker commits it.
    pub async fn complete(&self, id: JobId, lease: Uuid, completion: Completion) -> CompletionResult {
        let end = end_of(id, lease, &completion, *CONTEXT);
        self.end(&[end]).await.remove(0)
    }

    /// Ends jobs in one transaction, committed as a worker commits it.
    pub async fn end(&self, ends: &[End<'_>]) -> Vec<CompletionResult> {
        let mut tx = self.database.pool().begin().await.expect("begins");
        let completed = app::job::end(&mut tx, ends).await.expect("ends");
        match completed.contains(&CompletionResult::BlobGone) {
            true => tx.rollback().await.expect("rolls back"),
            false => tx.commit().await.expect("commits"),
        }
        completed
    }

    /// A success with one stored image.
    pub async fn success(&self) -> Completion {
        let (key, sha256) = (Uuid::new_v4(), [7; 32]);
        stored_blob(&mut *self.conn().await, key, &sha256, 12).await;
        Completion::Succeeded(vec![Placement {
            node: self.node.clone(),
            asset: AssetId::from_stored("made".into()),
            name: "photo-resize.png".into(),
            mime_type: "image/png".into(),
            width: 3,
            height: 2,
            bytes: 12,
            sha256,
            blob_key: key,
            metadata_removed: Vec::new(),
            masked: None,
            preview: None,
            video: None,
            origin: None,
            provenance: Provenance::new(ProvenanceKind::Action),
        }])
    }
}

/// Begins a job.
pub async fn begin(conn: &mut PgConnection, id: JobId, lease: Uuid) -> Option<Record> {
    jobs::begin(conn, &[(id, lease)]).await.expect("begins").remove(0)
}

/// An end that reviews its canvas, however large.
pub fn end_of<'a>(id: JobId, lease: Uuid, completion: &'a Completion, context: CompletionContext<'a>) -> End<'a> {
    End { id, lease_token: lease, completion, context, reviews_large: true }
}

pub fn asset(id: &str) -> AssetHandle {
    AssetHandle { owner: account("me"), id: AssetId::from_stored(id.into()) }
}

pub fn image_node() -> Node {
    Node {
        id: NodeId::generate(),
        short: None,
        kind: NodeType::Image,
        title: "image".into(),
        position: Position { x: 0.0, y: 0.0 },
        width: 320.0,
        height: 320.0,
        agent_owned: true,
        metadata: Default::default(),
        server: Default::default(),
        asset: None,
        active_job: None,
    }
}

pub async fn stored_blob(conn: &mut PgConnection, key: Uuid, sha256: &[u8; 32], bytes: i64) {
    sqlx::query("INSERT INTO blobs (key, state, sha256, bytes) VALUES ($1, 'stored', $2, $3) ON CONFLICT DO NOTHING")
        .bind(key)
        .bind(&sha256[..])
        .bind(bytes)
        .execute(conn)
        .await
        .expect("inserts a blob");
}
