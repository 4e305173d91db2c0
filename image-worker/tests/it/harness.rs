//! Test fixture: a database, an object store and a worker, and an account with a canvas, images
//! and Actions.

use app::target::{self, Work};
use std::path::PathBuf;
use std::time::Duration;

use blob::BlobKey;
use bytes::Bytes;
use db::assets::NewAsset;
use db::blobs::Staged;
use db::canvases::{Change, NewCanvas};
use db::jobs::{NewJob, Windows};
use db::tasks::QueueStats;
use db::tokens::NewToken;
use domain::account::{Scopes, Surface};
use domain::asset::AssetKind;
use domain::canvas::{AccessRole, Actor, CanvasRecord};
use domain::graph::{GraphWrites, Node, NodeType, Position};
use domain::id::{AccountUid, AssetHandle, AssetId, CanvasHandle, CanvasId, JobId, NodeId};
use domain::job::{ActionRequest, ActionStep, Input, JobOperation, JobStatus, Record, Request};
use domain::lineage::Made;
use domain::message::Queue;
use image_worker::jobs::Tasks;
use image_worker::sweep::Sweeper;
use raster::{Bitmap, Channels, Color, Encoding, OutputFormat, Size};
use serde_json::Value;
use sha2::{Digest, Sha256};
use taskqueue::{Handler, Runner, RunnerOptions, Waker};
use testkit::{TestDatabase, wait_for};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use worker::{Pixels, Worker};

/// Long enough for a busy machine. No test waits for it to pass.
pub const DEADLINE: Duration = Duration::from_secs(90);
/// The memory budget for pixels.
pub const PIXEL_MEMORY_BYTES: u64 = 1 << 28;
pub const PUBLIC_URL: &str = "https://canvas.example";
pub const WINDOWS: Windows = Windows {
    unread: Duration::from_secs(3600),
    finalized: Duration::from_secs(900),
    tombstone: Duration::from_secs(3600),
    failed: Duration::from_secs(3600),
    video: Duration::from_secs(3600),
};

pub struct Harness {
    pub database: TestDatabase,
    pub store: blob::Store,
    pub pixels: Pixels,
    pub me: AccountUid,
    pub canvas: CanvasRecord,
    pub token: Uuid,
    root: PathBuf,
}

impl Drop for Harness {
    fn drop(&mut self) {
        // Best effort: leftovers stay in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// A running runner; it is stopped when this value is dropped.
pub struct Running {
    abort: CancellationToken,
    _task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.abort.cancel();
    }
}

/// An object store whose directory is replaced by a file.
pub struct BrokenStore {
    objects: PathBuf,
    aside: PathBuf,
}

impl Drop for BrokenStore {
    fn drop(&mut self) {
        std::fs::remove_file(&self.objects).expect("removes the file");
        std::fs::rename(&self.aside, &self.objects).expect("moves the objects back");
    }
}

pub fn account(uid: &str) -> AccountUid {
    AccountUid::parse(uid).expect("a plain id")
}

/// Writes nodes to a canvas, which keeps its revision.
pub async fn put(conn: &mut db::PgConnection, canvas_key: i64, nodes: impl IntoIterator<Item = &Node>) {
    let revision = sqlx::query_scalar("SELECT revision FROM canvases WHERE key = $1").bind(canvas_key);
    let revision: String = revision.fetch_one(&mut *conn).await.expect("reads");
    let graph = GraphWrites { nodes: nodes.into_iter().collect(), ..GraphWrites::default() };
    db::canvases::write(conn, canvas_key, &Change { graph, ..Change::new(&revision) }).await.expect("writes");
}

/// A PNG of one color.
pub fn png(width: u32, height: u32) -> Bytes {
    let pixels = [10, 200, 30].repeat((width * height) as usize);
    let image = Bitmap::new(Size::new(width, height), Channels::Rgb, pixels).expect("as many as fit");
    let encoding = Encoding { format: OutputFormat::Png, quality: 85, flatten: Color::WHITE };
    raster::encode(&image, &encoding).expect("encodes").into()
}

impl Harness {
    /// A harness with the account `me` and its canvas.
    pub async fn new() -> Self {
        Self::in_canvas_of("me").await
    }

    /// A harness with `me` as an editor of a canvas of `you`.
    pub async fn shared() -> Self {
        let harness = Self::in_canvas_of("you").await;
        harness.share(Some(AccessRole::Editor)).await;
        harness
    }

    async fn in_canvas_of(owner: &str) -> Self {
        let database = TestDatabase::new().await;
        let root = std::env::temp_dir().join(format!("canvas-image-worker-{}", Uuid::new_v4()));
        std::fs::create_dir(&root).expect("makes a directory");
        let store = blob::Store::open(&format!("file://{}", root.display())).expect("opens the store");
        let mut conn = db::pool::acquire(database.pool()).await.expect("connects");
        for uid in ["me", "you"] {
            let email = format!("{uid}@example.com");
            db::accounts::create(&mut conn, &account(uid), &email).await.expect("creates").expect("is new");
        }
        let (me, token) = (account("me"), Uuid::now_v7());
        let new = NewToken {
            id: token,
            account: &me,
            label: "laptop",
            scopes: Scopes::default(),
            surface: Surface::Cli,
            secret_hash: b"",
            expires_days: None,
        };
        db::tokens::create(&mut conn, &new).await.expect("creates a token");
        let handle = CanvasHandle { owner: account(owner), id: CanvasId::parse("c").expect("valid") };
        let actor = Actor { owner_uid: account(owner), surface: Surface::Api, label: "t".into() };
        let new = NewCanvas { handle: &handle, canvas_type: None, title: "C", revision: "r0", actor: &actor };
        let canvas = db::canvases::create(&mut conn, &new).await.expect("creates").expect("is new");
        Self {
            database,
            store,
            pixels: Pixels::new(1, PIXEL_MEMORY_BYTES, env!("CARGO_BIN_EXE_canvas-image-worker")),
            me,
            canvas,
            token,
            root,
        }
    }

    pub async fn conn(&self) -> db::Connection {
        db::pool::acquire(self.database.pool()).await.expect("connects")
    }

    pub async fn share(&self, role: Option<AccessRole>) {
        let shared = db::canvases::share(&mut *self.conn().await, &self.canvas.handle, &self.me, role).await;
        assert!(shared.expect("shares"));
    }

    pub fn worker(&self) -> Worker {
        Worker {
            pool: self.database.pool().clone(),
            blobs: self.store.clone(),
            cache: cache::Cache::connect(&testkit::redis_url(), &testkit::redis_prefix()).expect("a URL"),
            waker: Waker::new().0,
            reviews: Default::default(),
            pixels: self.pixels.clone(),
            egress: egress::Client::new(egress::ClientConfig::default()).expect("has roots"),
            public_url: PUBLIC_URL.into(),
            windows: WINDOWS,
            upload_metadata: domain::asset::UploadMetadata::Auto,
            worker_silent: Duration::from_secs(15),
            heif: None,
            marks: worker::marks::OriginMarks(true),
            free_work: service::account::FreeWork::new().0,
        }
    }

    pub fn sweeper(&self, windows: Windows) -> Sweeper {
        Sweeper {
            pool: self.database.pool().clone(),
            blobs: self.store.clone(),
            public_url: PUBLIC_URL.into(),
            windows,
        }
    }

    /// The path of an object in the store.
    pub fn object_path(&self, key: Uuid) -> PathBuf {
        let name = key.simple().to_string();
        self.root.join("blobs").join(&name[30..]).join(&name)
    }

    /// Runs a statement for which `db` has no function.
    pub async fn execute(&self, sql: &'static str) {
        sqlx::query(sql).execute(self.database.pool()).await.expect("takes place");
    }

    /// Lets all tasks reach their last claim.
    pub async fn exhaust_claims(&self) {
        let query = sqlx::query("UPDATE task_queue SET claims = $1").bind(domain::limits::TASK_CLAIMS_MAX);
        query.execute(self.database.pool()).await.expect("ages");
    }

    /// Makes every access to the store fail until the value is dropped.
    pub fn break_store(&self) -> BrokenStore {
        let broken = BrokenStore { objects: self.root.join("blobs"), aside: self.root.join("aside") };
        std::fs::rename(&broken.objects, &broken.aside).expect("moves the objects aside");
        std::fs::write(&broken.objects, "").expect("puts a file where the directory was");
        broken
    }

    /// Starts a worker.
    pub fn work(&self) -> Running {
        self.work_with(RunnerOptions::new(Queue::Image, 4))
    }

    /// Starts a worker that polls often.
    pub fn work_with(&self, options: RunnerOptions) -> Running {
        self.run(Self::tasks(self.worker()), options)
    }

    /// The handler of Actions and renditions.
    pub fn tasks(worker: Worker) -> Tasks {
        let (tasks, steps) = Tasks::new(worker);
        tokio::spawn(steps);
        tasks
    }

    /// Starts a handler that polls often.
    pub fn run(&self, handler: impl Handler, options: RunnerOptions) -> Running {
        // Nothing listens at this address, so the runner finds tasks by polling alone.
        let nowhere = broker::Config::new("amqp://127.0.0.1:9", "test.", "test").expect("a URL");
        let consumer = broker::Consumer::start(nowhere, options.queue, 1);
        let options = RunnerOptions { idle_claim: Duration::from_millis(20), ..options };
        let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
        let runner = Runner::new(self.database.pool(), consumer, handler, options);
        let task = tokio::spawn({
            let abort = abort.clone();
            async move {
                tokio::select! {
                    () = runner.run(stop, abort.clone()) => {}
                    () = abort.cancelled() => {}
                }
            }
        });
        Running { abort, _task: task }
    }

    /// Stores a file as an asset of `me`, under any claimed media type.
    pub async fn upload(&self, id: &str, name: &str, file: Bytes) -> AssetHandle {
        let sha256: [u8; 32] = Sha256::digest(&file).into();
        let mut conn = self.conn().await;
        let key = match db::blobs::stage(&mut conn, &sha256).await.expect("stages") {
            Staged::Existing(key) => key,
            Staged::New(key) => {
                self.store.put(BlobKey(key), file.clone()).await.expect("puts");
                key
            }
        };
        let bytes = file.len() as i64;
        let (width, height) = raster::probe(&file).map_or((1, 1), |it| (it.width as i32, it.height as i32));
        let blob_key = db::blobs::adopt(&mut conn, key, &sha256, bytes).await.expect("adopts").expect("is there");
        let handle = AssetHandle { owner: self.me.clone(), id: AssetId::parse(id).expect("valid") };
        let asset = NewAsset {
            handle: handle.clone(),
            canvas_key: None,
            node: None,
            kind: AssetKind::Image,
            name: name.into(),
            mime_type: "image/png".into(),
            width,
            height,
            bytes,
            blob_key,
            origin: worker::marks::claimed_origin(&file),
            metadata_removed: Vec::new(),
            original: None,
            video: None,
            made: Made::uploaded(&Actor { owner_uid: self.me.clone(), surface: Surface::Api, label: String::new() }),
            parents: Vec::new(),
        };
        db::assets::insert(&mut conn, &asset).await.expect("inserts");
        handle
    }

    /// Starts a resize of `input` into a new node.
    pub async fn resize(&self, input: &AssetHandle, params: Value) -> (JobId, NodeId) {
        let Value::Object(params) = params else { panic!("an object") };
        let action = actions::find("resize").expect("known");
        let (id, mut node) = (JobId::generate(), image_node());
        let step = ActionStep {
            slug: "resize".into(),
            version: action.version.clone().into(),
            params: action.normalize(&params).expect("valid parameters"),
        };
        let inputs = vec![Input { handle: input.to_string(), asset: input.clone() }];
        let request = Request::Action(ActionRequest::new(vec![step], inputs, node.id.clone()).expect("has a step"));
        let mut transaction = db::pool::begin(self.database.pool()).await.expect("begins");
        let conn = &mut *transaction;
        let key = self.canvas.key;
        let bound = target::bind(std::slice::from_mut(&mut node), Work::Job(id, JobOperation::Action), false);
        bound.expect("is free");
        put(conn, key, [&node]).await;
        let job = NewJob {
            id,
            account: &self.me,
            token_id: self.token,
            operation: JobOperation::Action,
            canvas: Some((key, &self.canvas.handle)),
            canvas_revision: Some("r1"),
            request: &request,
            estimated_seconds: 1,
            credit_cost: 0,
            recipe_run: None,
            about: None,
            traceparent: None,
        };
        db::jobs::insert(conn, &job).await.expect("inserts");
        db::pool::commit(transaction).await.expect("commits");
        (id, node.id)
    }

    /// Waits until the only task is rescheduled.
    pub async fn until_parked(&self) {
        self.until("a scheduled task", |stats| stats.scheduled == 1).await;
    }

    /// Waits until every task is settled.
    pub async fn until_no_task_is_left(&self) {
        self.until("the end of all tasks", |stats| stats == QueueStats::default()).await;
    }

    async fn until(&self, what: &str, wanted: impl Fn(QueueStats) -> bool) {
        let look = async || {
            let stats = db::tasks::stats(&mut *self.conn().await, Queue::Image).await.expect("counts");
            wanted(stats).then_some(())
        };
        wait_for(what, DEADLINE, look).await;
    }

    pub async fn job(&self, id: JobId) -> Record {
        let mut conn = self.conn().await;
        db::jobs::get(&mut conn, id, &self.me, WINDOWS.tombstone).await.expect("reads").expect("is there")
    }

    /// The job once its state satisfies `wanted`.
    pub async fn job_when(&self, id: JobId, what: &str, wanted: impl Fn(JobStatus) -> bool) -> Record {
        wait_for(what, DEADLINE, async || Some(self.job(id).await).filter(|job| wanted(job.status))).await
    }

    /// The completed job.
    pub async fn ended(&self, id: JobId) -> Record {
        self.job_when(id, "the end of the job", JobStatus::is_terminal).await
    }

    pub async fn node(&self, id: &NodeId) -> Option<Node> {
        db::canvases::node(&mut *self.conn().await, self.canvas.key, id).await.expect("reads")
    }

    pub async fn asset(&self, handle: &AssetHandle) -> Option<domain::asset::AssetRecord> {
        db::assets::get(&mut *self.conn().await, handle).await.expect("reads")
    }
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
