//! Test fixture: an account with credit, a simulated provider, and a generator that calls it.

use std::time::Duration;

use bytes::Bytes;
use db::connections::{BaseUrl, NewConnection};
use db::jobs::NewJob;
use db::jobs::outputs::{JobOutput, OutputState};
use domain::id::{AssetHandle, JobId, NodeId};
use domain::job::{ChosenModel, FailureCode, ImageRequest, JobOperation, JobStatus, Mask, Record, Reference, Request};
use domain::message::Queue;
use domain::model::{Capability, ProviderKind};
use image_worker::jobs::generation::Images;
use providers::catalogue::{EntryType, MaskHandling};
use providers::{Calls, Catalogue, Deadlines, Entry, ManagedProtocol, Server, Setup};
use service::keys::KeyRing;
use service::shares::Held;
use taskqueue::RunnerOptions;
use testkit::providers::{SIMULATOR_KEY, Simulator, Vendor};
use testkit::wait_for;
use uuid::Uuid;
use worker::generation::{Generator, MemoryBudgets, Settings};

use crate::harness::{DEADLINE, Harness, Running, image_node, png, put};

pub const GRANT: i64 = 1000;

const MINUTE: Duration = Duration::from_secs(60);

/// Minimal delays. The provider's own retry hints are tested separately.
pub const HURRIED: Settings = Settings {
    deadlines: Deadlines { result: MINUTE, text: MINUTE, call: MINUTE, download: MINUTE },
    pauses: [Duration::from_millis(20); 2],
    wait_max: Duration::from_millis(20),
    patience: None,
    poll_every: Some(Duration::from_millis(20)),
    foreign_max: MINUTE,
};

/// A GIF of one white pixel.
const GIF: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

pub struct GenerationFixture {
    pub harness: Harness,
    pub simulator: Simulator,
    pub setup: Setup,
    pub settings: Settings,
    pub connection: Option<Uuid>,
    /// Call slots of its workers at the provider.
    pub calls: Calls,
    kind: ProviderKind,
    keys: KeyRing,
    pub reference: AssetHandle,
    /// The mask of further edits.
    pub mask: Option<Mask>,
    /// The model of further jobs, instead of the first one that is able.
    pub model_id: Option<String>,
}

/// Parameters of a job.
pub struct Wish<'a> {
    pub operation: JobOperation,
    pub prompt: &'a str,
    pub targets: usize,
}

/// A job for one image of a prompt.
pub fn image(prompt: &str) -> Wish<'_> {
    Wish { operation: JobOperation::Generate, prompt, targets: 1 }
}

fn kind(vendor: Vendor) -> (ProviderKind, Option<ManagedProtocol>) {
    match vendor {
        Vendor::Compatible => (ProviderKind::Managed, Some(ManagedProtocol::OpenAi)),
        Vendor::Comfy => (ProviderKind::Managed, Some(ManagedProtocol::Comfy)),
        third_party => (third_party.name().parse().expect("a kind of provider"), None),
    }
}

pub const fn capability(operation: JobOperation) -> Capability {
    match operation {
        JobOperation::Edit => Capability::ImageEdit,
        JobOperation::Variations => Capability::ImageVariations,
        _ => Capability::ImageGenerate,
    }
}

impl GenerationFixture {
    /// A fixture with a provider of this vendor.
    pub async fn new(vendor: Vendor) -> Self {
        let (kind, protocol) = kind(vendor);
        let simulator = Simulator::start(vendor).await;
        let base = simulator.url().parse().expect("a URL");
        let server = protocol.map(|protocol| Server { base, protocol, key: None });
        let mut fixture = Self::with_simulator(simulator, kind, server).await;
        if kind != ProviderKind::Managed {
            fixture.connect().await;
        }
        fixture
    }

    /// A fixture with the embedded runtime; its simulator is unused.
    pub async fn embedded() -> Self {
        Self::with_simulator(Simulator::start(Vendor::OpenAi).await, ProviderKind::Managed, None).await
    }

    async fn with_simulator(simulator: Simulator, kind: ProviderKind, server: Option<Server>) -> Self {
        let harness = Harness::new().await;
        db::ledger::grant(&mut *harness.conn().await, &harness.me, GRANT).await.expect("grants");
        let reference = harness.upload("reference", "reference.png", png(8, 8)).await;
        Self {
            harness,
            simulator,
            setup: Setup { catalogue: Catalogue::built_in().expect("is right"), server },
            settings: HURRIED,
            connection: None,
            calls: Calls::new(64),
            kind,
            keys: KeyRing::parse("k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=").expect("a key ring"),
            reference,
            mask: None,
            model_id: None,
        }
    }

    async fn connect(&mut self) {
        let new = NewConnection {
            account: &self.harness.me,
            provider: self.kind,
            name: "mine",
            base_url: BaseUrl::Set(Some(self.simulator.url())),
            masked_key: "masked",
        };
        let encrypt = |context: &str| self.keys.encrypt(context, SIMULATOR_KEY.as_bytes());
        let saved = db::connections::save(&mut *self.harness.conn().await, &new, encrypt).await;
        self.connection = Some(saved.expect("saves").id);
    }

    pub fn images(&self) -> Images {
        Images(self.generator())
    }

    pub fn generator(&self) -> Generator {
        Generator {
            worker: self.harness.worker(),
            keys: self.keys.clone(),
            setup: self.setup.clone(),
            calls: self.calls.clone(),
            memory: MemoryBudgets::new(256 << 20),
            settings: self.settings,
        }
    }

    /// Starts a worker.
    pub fn work(&self) -> Running {
        self.harness.run(self.images(), RunnerOptions::new(Queue::Generation, 64))
    }

    /// Returns `true` if some model of the provider supports the operation.
    pub fn can(&self, operation: JobOperation) -> bool {
        self.model(operation).is_some()
    }

    /// The provider's first model that supports the operation.
    pub fn model(&self, operation: JobOperation) -> Option<ChosenModel> {
        let capability = capability(operation);
        let is_wanted = |entry: &&std::sync::Arc<Entry>| match &self.model_id {
            Some(id) => entry.id == *id,
            None => entry.capabilities.contains(&capability),
        };
        let entry = self.setup.models(self.kind).find(is_wanted)?;
        Some(self.chosen(entry))
    }

    /// The provider's model that edits within a mask alone.
    pub fn mask_model(&self) -> Option<String> {
        self.setup.models(self.kind).find(|entry| entry.mask_required).map(|entry| entry.id.clone())
    }

    /// Returns `true` if the model of an edit is sent a mask.
    pub fn sends_mask(&self) -> bool {
        let model = self.model(JobOperation::Edit).expect("a model that edits");
        let entry = self.setup.catalogue.find(model.provider, &model.id).expect("is in the catalogue");
        entry.mask == Some(MaskHandling::Native)
    }

    /// The provider's text model; for an operator's own server its text model, not the embedded one.
    pub fn text_model(&self) -> ChosenModel {
        let writers = self.setup.models(self.kind).filter(|entry| entry.kind == EntryType::Text);
        self.chosen(writers.last().expect("one that writes"))
    }

    fn chosen(&self, entry: &Entry) -> ChosenModel {
        ChosenModel {
            key: format!("key-{}", entry.name.len()),
            id: entry.id.clone(),
            name: entry.name.clone(),
            provider: entry.provider,
            connection: self.connection.map(|id| id.to_string()),
            credit_cost: entry.credit_cost,
        }
    }

    /// Accepts a job into new nodes.
    pub async fn start(&self, wish: Wish<'_>) -> JobId {
        let nodes: Vec<_> = (0..wish.targets).map(|_| image_node()).collect();
        put(&mut *self.harness.conn().await, self.harness.canvas.key, &nodes).await;
        self.start_in(wish, nodes.into_iter().map(|node| node.id).collect()).await
    }

    /// Accepts a job as the gateway does: credit reserved, nodes marked, task enqueued.
    pub async fn start_in(&self, wish: Wish<'_>, targets: Vec<NodeId>) -> JobId {
        let Wish { operation, prompt, .. } = wish;
        let harness = &self.harness;
        let (id, key) = (JobId::generate(), harness.canvas.key);
        let model = self.model(operation).expect("a model that does this");
        let credit_cost = model.credit_cost * targets.len() as i64;
        let guided = operation != JobOperation::Generate;
        let reference = Reference { handle: self.reference.to_string(), asset: self.reference.clone(), role: None };
        let request = Request::Image(ImageRequest {
            model,
            prompt: prompt.into(),
            caption: None,
            size: None,
            quality: None,
            references: guided.then_some(reference).into_iter().collect(),
            mask: self.mask.clone().filter(|_| operation == JobOperation::Edit),
            elements: Vec::new(),
            targets: targets.clone(),
        });
        let mut transaction = db::pool::begin(harness.database.pool()).await.expect("begins");
        let conn = &mut *transaction;
        db::canvases::lock_with_account(conn, &harness.me, &harness.canvas.handle).await.expect("locks");
        if credit_cost > 0 {
            for statement in [
                "UPDATE accounts SET credit_balance = credit_balance - $3 WHERE uid = $1 AND $2::uuid IS NOT NULL",
                "INSERT INTO ledger (account_uid, amount, reason, job_id) VALUES ($1, -$3, 'reserve', $2)",
            ] {
                let reserve = sqlx::query(statement).bind(harness.me.as_str()).bind(id.0).bind(credit_cost);
                reserve.execute(&mut *conn).await.expect("reserves");
            }
        }
        let job = NewJob {
            id,
            account: &harness.me,
            token_id: harness.token,
            operation,
            canvas: Some((key, &harness.canvas.handle)),
            canvas_revision: Some("r1"),
            request: &request,
            estimated_seconds: 1,
            credit_cost,
            recipe_run: None,
            about: None,
            traceparent: None,
        };
        db::jobs::insert(conn, &job).await.expect("inserts");
        let mut nodes = Vec::new();
        for node in &targets {
            nodes.push(db::canvases::node(conn, key, node).await.expect("reads").expect("is there"));
        }
        app::target::bind(&mut nodes, app::target::Work::Job(id, operation), false).expect("is free");
        put(conn, key, &nodes).await;
        db::pool::commit(transaction).await.expect("commits");
        id
    }

    /// Starts a job and waits for its completion.
    pub async fn make(&self, wish: Wish<'_>) -> Record {
        let id = self.start(wish).await;
        self.ended(id).await
    }

    /// The completed job; checks that its nodes are released and that the ledger is balanced.
    pub async fn ended(&self, id: JobId) -> Record {
        let record = self.harness.ended(id).await;
        for node in record.request.targets() {
            let node = self.harness.node(node).await.expect("is there");
            assert_eq!(node.active_job, None);
        }
        self.check_books().await;
        record
    }

    /// Checks that the sum of the ledger equals the balance, which holds while jobs have reservations as well.
    async fn check_books(&self) {
        let (balance, sum): (i64, i64) = sqlx::query_as(
            "SELECT credit_balance, (SELECT sum(amount)::bigint FROM ledger WHERE account_uid = uid) FROM accounts
             WHERE uid = 'me'",
        )
        .fetch_one(self.harness.database.pool())
        .await
        .expect("reads the books");
        assert_eq!(balance, sum);
    }

    /// Credits spent from the balance.
    pub async fn spent(&self) -> i64 {
        let balance: i64 = sqlx::query_scalar("SELECT credit_balance FROM accounts WHERE uid = 'me'")
            .fetch_one(self.harness.database.pool())
            .await
            .expect("reads the balance");
        GRANT - balance
    }

    /// Number of submits that the provider accepted for an output.
    pub fn accepted(&self, id: JobId, position: usize) -> usize {
        self.simulator.accepted(&format!("{}-{position}", id.0))
    }

    /// Number of outputs that a provider may have made although their jobs failed.
    pub async fn orphans(&self) -> i64 {
        let orphans = sqlx::query_scalar("SELECT count(*) FROM job_outputs WHERE orphan");
        orphans.fetch_one(self.harness.database.pool()).await.expect("counts")
    }

    pub async fn outputs(&self, id: JobId) -> Vec<JobOutput> {
        db::jobs::outputs::list(&mut *self.harness.conn().await, id).await.expect("lists")
    }

    /// Waits until the job's first output is in this state.
    pub async fn until_output_is(&self, id: JobId, state: OutputState) {
        wait_for("the output's state", DEADLINE, async || {
            self.outputs(id).await.first().filter(|output| output.state == state).map(|_| ())
        })
        .await;
    }

    /// Waits until the simulator has received so many submits.
    pub async fn until_submits(&self, count: usize) {
        wait_for("submits", DEADLINE, async || (self.simulator.submits().len() >= count).then_some(())).await;
    }

    /// Occupies every call slot of the provider until the value is dropped.
    pub async fn keep_busy(&mut self) -> Held {
        self.calls = Calls::new(1);
        let line = self.connection.map_or_else(|| self.kind.to_string(), |id| id.to_string());
        self.calls.enter(&line).await.expect("is free")
    }

    /// Adds a reference to an image that no provider accepts unchanged. It must be converted to
    /// PNG, which needs memory for its pixels.
    pub async fn refer_to_a_gif(&mut self) {
        self.reference = self.harness.upload("gif", "reference.gif", Bytes::from_static(GIF)).await;
    }

    /// Waits until a task of the queue is rescheduled.
    pub async fn until_parked(&self, queue: Queue) {
        let scheduled = async || {
            let stats = db::tasks::stats(&mut *self.harness.conn().await, queue).await.expect("counts");
            (stats.scheduled > 0).then_some(())
        };
        wait_for("a scheduled task", DEADLINE, scheduled).await;
    }

    pub async fn provenance(&self, node: &NodeId) -> serde_json::Value {
        serde_json::json!(self.harness.node(node).await.expect("is there").provenance())
    }
}

/// Code and `retryable` of a failed job.
pub fn failure(record: &Record) -> (FailureCode, bool) {
    assert_eq!(record.status, JobStatus::Failed, "{:?}", record.outcome);
    let failure = record.outcome.failure.as_ref().expect("says why");
    (failure.code, failure.retryable)
}
