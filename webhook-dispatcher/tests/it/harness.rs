//! Test fixture: a dispatcher in this process, its database and its deliveries.

use std::time::Duration;

use broker::Consumer;
use db::deliveries::{self, NewDelivery, NewEvent};
use db::{PgPool, deliveries::operation};
use domain::event::EventType;
use domain::id::{AccountUid, JobId};
use domain::message::Queue;
use domain::webhook::{DeliveryState, DeliveryStatus};
use egress::{AllowList, Client, ClientConfig, Guard};
use service::keys::KeyRing;
use taskqueue::{Runner, RunnerOptions};
use testkit::{Receiver, TestDatabase, wait_for};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use webhook_dispatcher::{Backoff, CLAIMED_INITIAL, Dispatcher, Journal, Settings, account_cap};

/// A deadline far longer than anything in these tests takes.
pub const PATIENCE: Duration = Duration::from_secs(20);
pub const SECRET: &str = "0123456789abcdef0123456789abcdef";
pub const BODY: &[u8] = br#"{"id":"event:1","type":"image_job.succeeded"}"#;
pub const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
pub const OLD_KEY: &str = "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
pub const NEW_KEY: &str = "k2:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
/// A short lease, so that a crash is noticed quickly.
const LEASE: Duration = Duration::from_millis(1500);

/// A database with one account, and the receivers that may be reached.
pub struct Site {
    database: TestDatabase,
    account: AccountUid,
    prefix: String,
    pub client: Client,
}

/// A delivery whose run has ended.
#[derive(Clone, Copy)]
pub struct Sent {
    pub id: Uuid,
    pub job: JobId,
}

/// Configuration of a dispatcher.
#[derive(Clone, Copy)]
pub struct Setup {
    pub settings: Settings,
    pub keys: &'static str,
    pub slots: usize,
}

impl Default for Setup {
    /// Immediate retries; everything else as in production.
    fn default() -> Self {
        let settings = Settings { backoff: Backoff([Duration::from_millis(1); 3]), ..Settings::default() };
        Self { settings, keys: OLD_KEY, slots: 16 }
    }
}

/// A running dispatcher. Dropping it has the effect of SIGKILL: its tasks stay leased.
pub struct Running {
    stop: CancellationToken,
    runner: JoinHandle<()>,
}

impl Running {
    /// Stops gracefully and waits until it has ended.
    pub async fn stop(mut self) {
        self.stop.cancel();
        (&mut self.runner).await.expect("ends");
    }

    /// Aborts it, whatever is in progress.
    pub async fn kill(mut self) {
        self.runner.abort();
        assert!((&mut self.runner).await.is_err_and(|error| error.is_cancelled()), "it was running");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.runner.abort();
    }
}

impl Site {
    /// A site whose dispatchers may reach `receivers`.
    pub async fn new(receivers: &[&Receiver]) -> Self {
        let allowed: Vec<String> = receivers.iter().map(|receiver| receiver.authority()).collect();
        let roots: String = receivers.iter().map(|receiver| receiver.ca_pem()).collect();
        let guard = Guard::new(AllowList::parse(&allowed.join(",")).expect("a list"));
        let client = Client::new(ClientConfig { guard, extra_ca_pem: Some(roots.into_bytes()) }).expect("a client");
        let database = TestDatabase::new().await;
        sqlx::query("INSERT INTO accounts (uid, email) VALUES ('owner', 'owner@example.com')")
            .execute(database.pool())
            .await
            .expect("inserts");
        let account = AccountUid::parse("owner").expect("valid");
        Self { database, account, prefix: testkit::amqp_prefix(), client }
    }

    pub fn pool(&self) -> &PgPool {
        self.database.pool()
    }

    /// A delivery to `url` whose run has ended, its secret encrypted under `keys`.
    pub async fn send_sealed(&self, url: &str, keys: &str) -> Sent {
        self.send_for(&self.account, url, keys).await
    }

    /// A delivery of another account, which is created if needed.
    pub async fn send_of(&self, account: &str, url: &str) -> Sent {
        sqlx::query("INSERT INTO accounts (uid, email) VALUES ($1, $1 || '@example.com') ON CONFLICT DO NOTHING")
            .bind(account)
            .execute(self.pool())
            .await
            .expect("inserts");
        self.send_for(&AccountUid::parse(account).expect("valid"), url, OLD_KEY).await
    }

    async fn send_for(&self, account: &AccountUid, url: &str, keys: &str) -> Sent {
        let (id, job) = (Uuid::now_v7(), JobId::generate());
        let keys = KeyRing::parse(keys).expect("a key ring");
        let encrypted = keys.encrypt(&deliveries::handle(id), SECRET.as_bytes());
        let new = NewDelivery { id, account, job_id: job, url, sealed_secret: &encrypted };
        let traceparent = format!("00-{TRACE}-b7ad6b7169203331-01");
        let kind = EventType::ImageJobSucceeded;
        let event = NewEvent { id: Uuid::now_v7(), kind, body: BODY, traceparent: Some(&traceparent) };
        let mut conn = self.pool().acquire().await.expect("connects");
        deliveries::insert(&mut conn, &new).await.expect("inserts");
        assert!(deliveries::complete(&mut conn, job, &event).await.expect("completes").is_some());
        Sent { id, job }
    }

    /// A delivery to `url` whose run has ended.
    pub async fn send(&self, url: &str) -> Sent {
        self.send_sealed(url, OLD_KEY).await
    }

    /// Requests a replay.
    pub async fn replay(&self, sent: Sent) {
        let mut conn = self.pool().acquire().await.expect("connects");
        let asked = operation::replay(&mut conn, sent.id, None).await.expect("replays");
        assert_eq!(asked.map(|(_, replay)| replay), Some(operation::Replay::Enqueued(DeliveryStatus::Pending)));
    }

    /// Starts a dispatcher.
    pub fn start(&self, setup: Setup) -> Running {
        let (journal, writing) = Journal::new(self.pool().clone(), Duration::from_secs(900));
        tokio::spawn(writing);
        let keys = KeyRing::parse(setup.keys).expect("a key ring");
        let dispatcher = Dispatcher::new(self.pool().clone(), journal, keys, self.client.clone(), setup.settings);
        let broker = broker::Config::new(&testkit::amqp_url(), &self.prefix, "test").expect("a broker");
        let consumer = Consumer::start(broker, Queue::Webhook, 1);
        let options = RunnerOptions {
            fairness_key_cap: Some(CLAIMED_INITIAL),
            tenant_cap: Some(account_cap(setup.slots)),
            lease: LEASE,
            heartbeat: LEASE / 3,
            idle_claim: Duration::from_millis(20),
            retry_pause: Duration::from_millis(1),
            ..RunnerOptions::new(Queue::Webhook, setup.slots)
        };
        let stop = CancellationToken::new();
        let runner = Runner::new(self.pool(), consumer, dispatcher, options);
        let runner = tokio::spawn(runner.run(stop.clone(), CancellationToken::new()));
        Running { stop, runner }
    }

    pub async fn state(&self, sent: Sent) -> DeliveryState {
        let mut conn = self.pool().acquire().await.expect("connects");
        deliveries::state(&mut conn, sent.job).await.expect("reads").expect("is there")
    }

    /// Waits until a delivery has finished.
    pub async fn ended(&self, sent: Sent) -> DeliveryState {
        wait_for("the end of a delivery", PATIENCE, async || {
            let state = self.state(sent).await;
            matches!(state.status, DeliveryStatus::Delivered | DeliveryStatus::Failed).then_some(state)
        })
        .await
    }

    pub async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(self.pool()).await.expect("counts")
    }
}
