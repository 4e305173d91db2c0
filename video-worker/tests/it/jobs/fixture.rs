//! Test fixture: an account with credit, a simulated provider, and a video worker.

use std::path::PathBuf;
use std::time::Duration;

use app::job::{Cancellation, CompletionContext};
use blob::BlobKey;
use bytes::Bytes;
use db::assets::NewAsset;
use db::blobs::Staged;
use db::connections::{BaseUrl, NewConnection};
use db::jobs::outputs::{JobOutput, OutputState};
use db::jobs::{NewJob, Windows};
use db::ledger::{Funding, Payer};
use db::tokens::NewToken;
use domain::account::{Scopes, Surface};
use domain::asset::AssetKind;
use domain::budget::BudgetOwner;
use domain::canvas::Actor;
use domain::id::{AccountUid, AssetHandle, AssetId, JobId};
use domain::job::{ChosenModel, FailureCode, JobOperation, JobStatus, Record, Request, VideoImage, VideoRequest};
use domain::lineage::Made;
use domain::message::{Queue, ReadyTasks};
use domain::model::{Capability, ProviderKind};
use providers::{Calls, Catalogue, Deadlines, ManagedProtocol, Server, Setup};
use raster::{Bitmap, Channels, Color, Encoding, OutputFormat, Size};
use service::keys::KeyRing;
use sha2::{Digest, Sha256};
use taskqueue::{Runner, RunnerOptions, Waker};
use testkit::providers::{SIMULATOR_KEY, Simulator, Vendor};
use testkit::{Receiver, TestDatabase, wait_for};
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;
use video_worker::jobs::Videos;
use worker::generation::{Generator, MemoryBudgets, Settings};
use worker::{Pixels, Worker};

/// Long enough for a busy machine. No test waits for it to pass.
pub const DEADLINE: Duration = Duration::from_secs(90);
pub const GRANT: i64 = 1000;
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const WINDOWS: Windows = Windows { unread: HOUR, finalized: HOUR, tombstone: HOUR, failed: HOUR, video: HOUR };
const PUBLIC_URL: &str = "https://canvas.example";

/// Settings with the shortest possible delays.
const HURRIED: Settings = Settings {
    deadlines: Deadlines { result: MINUTE, text: MINUTE, call: MINUTE, download: MINUTE },
    pauses: [Duration::from_millis(20); 2],
    wait_max: Duration::from_millis(20),
    patience: None,
    poll_every: Some(Duration::from_millis(20)),
    foreign_max: HOUR,
};

pub struct VideoFixture {
    pub database: TestDatabase,
    pub simulator: Simulator,
    /// A host of images for import by URL, which the egress policy allows.
    pub host: Receiver,
    /// The provider calls of its workers.
    pub calls: Calls,
    store: blob::Store,
    me: AccountUid,
    token: Uuid,
    setup: Setup,
    kind: ProviderKind,
    connection: Option<Uuid>,
    keys: KeyRing,
    root: PathBuf,
}

impl Drop for VideoFixture {
    fn drop(&mut self) {
        // Best effort: leftovers stay in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// A PNG of one color.
pub fn png(width: u32, height: u32) -> Bytes {
    let pixels = [10, 200, 30].repeat((width * height) as usize);
    let image = Bitmap::new(Size::new(width, height), Channels::Rgb, pixels).expect("as many as fit");
    let encoding = Encoding { format: OutputFormat::Png, quality: 85, flatten: Color::WHITE };
    raster::encode(&image, &encoding).expect("encodes").into()
}

impl VideoFixture {
    /// A fixture with a saved connection to a provider of this vendor.
    pub async fn new(vendor: Vendor) -> Self {
        if vendor == Vendor::Comfy {
            return Self::with_server().await;
        }
        let kind = vendor.name().parse().expect("a kind of provider");
        let mut fixture = Self::with_simulator(Simulator::start(vendor).await, kind).await;
        let new = NewConnection {
            account: &fixture.me,
            provider: kind,
            name: "mine",
            base_url: BaseUrl::Set(Some(fixture.simulator.url())),
            masked_key: "masked",
        };
        let encrypt = |context: &str| fixture.keys.encrypt(context, SIMULATOR_KEY.as_bytes());
        let saved = db::connections::save(&mut *fixture.conn().await, &new, encrypt).await.expect("saves");
        fixture.connection = Some(saved.id);
        fixture
    }

    /// A fixture with a managed server that speaks the Comfy API.
    async fn with_server() -> Self {
        let mut fixture = Self::with_simulator(Simulator::start(Vendor::Comfy).await, ProviderKind::Managed).await;
        let base = fixture.simulator.url().parse().expect("a URL");
        fixture.setup.server = Some(Server { base, protocol: ManagedProtocol::Comfy, key: None });
        fixture
    }

    /// A fixture with the embedded runtime. Nothing uses the simulator.
    pub async fn embedded() -> Self {
        Self::with_simulator(Simulator::start(Vendor::Runway).await, ProviderKind::Managed).await
    }

    async fn with_simulator(simulator: Simulator, kind: ProviderKind) -> Self {
        let database = TestDatabase::new().await;
        let root = std::env::temp_dir().join(format!("canvas-video-worker-{}", Uuid::new_v4()));
        std::fs::create_dir(&root).expect("makes a directory");
        let store = blob::Store::open(&format!("file://{}", root.display())).expect("opens the store");
        let (me, token) = (AccountUid::parse("me").expect("a plain id"), Uuid::now_v7());
        let mut conn = db::pool::acquire(database.pool()).await.expect("connects");
        db::accounts::create(&mut conn, &me, "me@example.com").await.expect("creates").expect("is new");
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
        db::ledger::grant(&mut conn, &me, GRANT).await.expect("grants");
        drop(conn);
        Self {
            database,
            simulator,
            host: Receiver::start().await,
            calls: Calls::new(64),
            store,
            me,
            token,
            setup: Setup { catalogue: Catalogue::built_in().expect("is right"), server: None },
            kind,
            connection: None,
            keys: KeyRing::parse("k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=").expect("a key ring"),
            root,
        }
    }

    pub async fn conn(&self) -> db::Connection {
        db::pool::acquire(self.database.pool()).await.expect("connects")
    }

    /// Creates another account with credit.
    pub async fn other(&self) -> AccountUid {
        let you = AccountUid::parse("you").expect("a plain id");
        let mut conn = self.conn().await;
        db::accounts::create(&mut conn, &you, "you@example.com").await.expect("creates").expect("is new");
        db::ledger::grant(&mut conn, &you, GRANT).await.expect("grants");
        you
    }

    /// Starts a worker that polls for tasks frequently. It stops when the returned guard is
    /// dropped.
    pub fn work(&self) -> DropGuard {
        let worker = Worker {
            pool: self.database.pool().clone(),
            blobs: self.store.clone(),
            cache: cache::Cache::connect(&testkit::redis_url(), &testkit::redis_prefix()).expect("a URL"),
            waker: Waker::new().0,
            reviews: Default::default(),
            pixels: Pixels::new(1, 1 << 30, env!("CARGO_BIN_EXE_canvas-video-worker")),
            egress: egress::Client::new(self.egress()).expect("has roots"),
            public_url: PUBLIC_URL.into(),
            windows: WINDOWS,
            upload_metadata: domain::asset::UploadMetadata::Auto,
            worker_silent: Duration::from_secs(15),
            heif: None,
            marks: worker::marks::OriginMarks(true),
            free_work: service::account::FreeWork::new().0,
        };
        let generator = Generator {
            worker,
            keys: self.keys.clone(),
            setup: self.setup.clone(),
            calls: self.calls.clone(),
            memory: MemoryBudgets::new(256 << 20),
            settings: HURRIED,
        };
        // Nothing listens at this address, so the runner finds tasks by polling alone.
        let nowhere = broker::Config::new("amqp://127.0.0.1:9", "test.", "test").expect("a URL");
        let options = RunnerOptions { idle_claim: Duration::from_millis(20), ..RunnerOptions::new(Queue::Video, 4) };
        let (videos, watching) = Videos::new(generator);
        tokio::spawn(watching);
        let consumer = broker::Consumer::start(nowhere, options.queue, 1);
        let runner = Runner::new(self.database.pool(), consumer, videos, options);
        let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
        tokio::spawn({
            let abort = abort.clone();
            async move {
                tokio::select! {
                    () = runner.run(stop, abort.clone()) => {}
                    () = abort.cancelled() => {}
                }
            }
        });
        abort.drop_guard()
    }

    /// The egress configuration, which allows the host of foreign images.
    fn egress(&self) -> egress::ClientConfig {
        let allow = egress::AllowList::parse(&self.host.authority()).expect("a target");
        egress::ClientConfig { guard: egress::Guard::new(allow), extra_ca_pem: Some(self.host.ca_pem().into()) }
    }

    /// An image on the foreign host.
    pub fn foreign(&self, path: &str) -> VideoImage {
        VideoImage { named: self.host.url(path), asset: None, role: None }
    }

    /// Stores a file as an image of the account.
    pub async fn upload(&self, id: &str, file: Bytes) -> VideoImage {
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
        let blob_key = db::blobs::adopt(&mut conn, key, &sha256, bytes).await.expect("adopts").expect("is there");
        let handle = AssetHandle { owner: self.me.clone(), id: AssetId::parse(id).expect("valid") };
        let asset = NewAsset {
            handle: handle.clone(),
            canvas_key: None,
            node: None,
            kind: AssetKind::Image,
            name: format!("{id}.png"),
            mime_type: "image/png".into(),
            width: 1,
            height: 1,
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
        VideoImage { named: handle.to_string(), asset: Some(handle), role: None }
    }

    /// Returns `true` if some model of the provider has this capability.
    pub fn can(&self, capability: Capability) -> bool {
        self.setup.models(self.kind).any(|entry| entry.capabilities.contains(&capability))
    }

    /// A request for a video with this capability.
    pub fn wish(&self, capability: Capability) -> VideoRequest {
        let entry = self.setup.models(self.kind).find(|entry| entry.capabilities.contains(&capability));
        let entry = entry.expect("a model that does this");
        let is_embedded = self.kind == ProviderKind::Managed && self.setup.server.is_none();
        VideoRequest {
            model: ChosenModel {
                key: "key".into(),
                id: entry.id.clone(),
                name: entry.name.clone(),
                provider: entry.provider,
                connection: self.connection.map(|id| id.to_string()),
                credit_cost: 7,
            },
            capability,
            prompt: "a kite".into(),
            duration_seconds: is_embedded.then_some(1),
            aspect_ratio: None,
            resolution: is_embedded.then(|| "480p".into()),
            generate_audio: None,
            first_frame: None,
            last_frame: None,
            references: Vec::new(),
            target: None,
        }
    }

    /// Accepts a job as the gateway does: charges it and enqueues its task.
    pub async fn start(&self, wish: VideoRequest) -> JobId {
        self.start_as(&self.me, wish).await
    }

    /// Like [`start`](Self::start), for another account.
    pub async fn start_as(&self, account: &AccountUid, wish: VideoRequest) -> JobId {
        let id = JobId::generate();
        let credit_cost = wish.model.credit_cost;
        let request = Request::Video(wish);
        let mut transaction = db::pool::begin(self.database.pool()).await.expect("begins");
        let conn = &mut *transaction;
        let payer = Payer { account, authority: self.token, owner: BudgetOwner::Token };
        let funding = db::ledger::reserve(conn, payer, &[(id.0, credit_cost)], 1).await.expect("reserves");
        assert_eq!(funding, Funding::Granted);
        let job = NewJob {
            id,
            account,
            token_id: self.token,
            operation: JobOperation::Generate,
            canvas: None,
            canvas_revision: None,
            request: &request,
            estimated_seconds: 1,
            credit_cost,
            recipe_run: None,
            about: None,
            traceparent: None,
        };
        db::jobs::insert(conn, &job).await.expect("inserts");
        db::pool::commit(transaction).await.expect("commits");
        id
    }

    /// Requests the cancellation of a job as the gateway does.
    pub async fn cancel(&self, id: JobId) -> Cancellation {
        let context = CompletionContext {
            public_url: PUBLIC_URL,
            windows: &WINDOWS,
            traceparent: None,
            ready: &ReadyTasks::new(),
            worker_silent: Duration::from_secs(15),
            review: None,
        };
        let mut transaction = db::pool::begin(self.database.pool()).await.expect("begins");
        let cancellation = app::job::cancel(&mut transaction, id, &self.me, &context).await.expect("cancels");
        db::pool::commit(transaction).await.expect("commits");
        cancellation.expect("is mine")
    }

    pub async fn job(&self, id: JobId) -> Record {
        let mut conn = self.conn().await;
        db::jobs::get(&mut conn, id, &self.me, WINDOWS.tombstone).await.expect("reads").expect("is there")
    }

    /// Waits until `wanted` accepts the job, and returns it.
    pub async fn job_when(&self, id: JobId, what: &str, wanted: impl Fn(&Record) -> bool) -> Record {
        wait_for(what, DEADLINE, async || Some(self.job(id).await).filter(|job| wanted(job))).await
    }

    /// Waits until the job has ended, checks the account's ledger, and returns the job.
    pub async fn ended(&self, id: JobId) -> Record {
        let record = self.job_when(id, "the end of the job", |job| job.status.is_terminal()).await;
        let (balance, sum): (i64, i64) = sqlx::query_as(
            "SELECT credit_balance, (SELECT sum(amount)::bigint FROM ledger WHERE account_uid = uid) FROM accounts",
        )
        .fetch_one(self.database.pool())
        .await
        .expect("reads the books");
        assert_eq!((balance, GRANT - balance), (sum, record.credit_cost));
        record
    }

    /// The video that a successful job made.
    pub async fn video(&self, record: &Record) -> Bytes {
        assert_eq!(record.status, JobStatus::Succeeded, "{:?}", record.outcome);
        let video = record.outcome.video.as_ref().expect("a video");
        let bytes = self.store.get(BlobKey(video.blob_key), 1 << 30).await.expect("is stored");
        assert_eq!(bytes.len() as u64, video.bytes);
        bytes
    }

    /// The number of submits that the provider accepted.
    pub fn accepted(&self, id: JobId) -> usize {
        self.simulator.accepted(&format!("{}-0", id.0))
    }

    pub async fn output(&self, id: JobId) -> Option<JobOutput> {
        let outputs = db::jobs::outputs::list(&mut *self.conn().await, id).await.expect("lists");
        outputs.into_iter().next()
    }

    /// The number of outputs that a provider may have made without being paid.
    pub async fn orphans(&self) -> i64 {
        let count = sqlx::query_scalar("SELECT count(*) FROM job_outputs WHERE orphan");
        count.fetch_one(self.database.pool()).await.expect("counts")
    }

    /// Waits until the job's output has this state.
    pub async fn until_output_is(&self, id: JobId, state: OutputState) {
        let look = async || self.output(id).await.filter(|output| output.state == state).map(|_| ());
        wait_for("the output's state", DEADLINE, look).await;
    }

    /// Waits until a task is rescheduled.
    pub async fn until_parked(&self) {
        let scheduled = async || {
            let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM task_queue WHERE state = 'parked'");
            (count.fetch_one(self.database.pool()).await.expect("counts") > 0).then_some(())
        };
        wait_for("a scheduled task", DEADLINE, scheduled).await;
    }

    /// Runs a statement that changes what no function of `db` may change.
    pub async fn execute(&self, sql: &'static str) {
        sqlx::query(sql).execute(self.database.pool()).await.expect("takes place");
    }
}

/// The code and the message of a failed job.
pub fn failure(record: &Record) -> (FailureCode, &str) {
    assert_eq!(record.status, JobStatus::Failed, "{:?}", record.outcome);
    let failure = record.outcome.failure.as_ref().expect("says why");
    (failure.code, &failure.message)
}
