//! A seeded stream of jobs with webhooks. Its clients follow the retry guidance (docs/reference/errors.md#retrying): if the
//! outcome of a start is unknown, they send it again under the same key.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::limits::OPERATIONS_MAX;
use serde_json::{Value, json};
use testkit::Receiver;
use testkit::providers::{SIMULATOR_KEY, Simulator, Vendor};
use uuid::Uuid;

use crate::api::text;
use crate::seed::Chance;
use crate::work::{StartParams, Work};
use crate::{Kind, PATIENCE, Stack, User, images};

/// The secret of every webhook of a load.
pub const SECRET: &str = "the secret of every webhook of a load";
/// The outcome of a request to a gateway that is down or accepts no new connections.
const NOBODY_LISTENS: &str = "nobody listens";
/// The time for which a client retries one start: longer than any outage of a test.
const INSISTENCE: Duration = Duration::from_secs(90);
/// The pause before a retry.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// The credit of each client: more than it ever needs.
const CREDIT: i64 = 100_000;

/// The size of a load.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The number of jobs.
    pub jobs: usize,
    /// The number of concurrent clients. Each has an account and canvases of its own.
    pub clients: usize,
    /// The longest pause of a client between two starts. Each pause is random.
    pub pause: Duration,
}

/// A job that the service has accepted.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The id of the job.
    pub job: Uuid,
    /// The uid of the account that started it.
    pub uid: String,
    /// The kind of work.
    pub work: Work,
    /// The unique path of its webhook. `None` if it has no webhook.
    pub path: Option<String>,
}

/// A load on a stack.
pub struct Load<'a> {
    stack: &'a Stack,
    plan: Plan,
    chance: Chance,
    /// The kinds of work that are started in rotation.
    works: &'static [Work],
    /// The simulator of the provider that makes images.
    simulator: Option<Simulator>,
    receiver: Receiver,
    clients: Vec<Starter>,
    accepted: Mutex<Vec<Accepted>>,
    count: AtomicUsize,
    is_over: AtomicBool,
    trouble: Mutex<BTreeMap<String, usize>>,
}

struct Starter {
    number: usize,
    user: User,
    canvases: Vec<Canvas>,
    input: String,
    /// The client's saved connection to the simulator.
    connection: Option<String>,
}

/// A canvas with targets for as many jobs as one batch can create. The last 1000 changes of a canvas are kept, so all changes of
/// its jobs can be checked (docs/reference/canvases.md#changes-since-a-revision).
struct Canvas {
    id: String,
    /// The revision before the load.
    revision: String,
    targets: Vec<String>,
}

impl<'a> Load<'a> {
    /// A load of Actions. Creates accounts, canvases, targets and inputs, and takes a receiver of the stack.
    pub async fn prepare(stack: &'a Stack, chance: &Chance, plan: Plan) -> Self {
        Self::new(stack, chance, plan, &[Work::Resize]).await
    }

    /// A load of these kinds of work in rotation. Videos require a stack with a video-worker and without a self-hosted server.
    pub async fn new(stack: &'a Stack, chance: &Chance, plan: Plan, works: &'static [Work]) -> Self {
        // The only provider whose runs can be looked up, so an unknown outcome of a submit can be resolved.
        let simulator = match works.contains(&Work::Image) {
            true => Some(Simulator::start(Vendor::Replicate).await),
            false => None,
        };
        let is_paid = works.iter().any(|work| *work != Work::Resize);
        let share = |number: usize| plan.jobs / plan.clients + usize::from(number < plan.jobs % plan.clients);
        let made = (0..plan.clients).map(|number| async move {
            let client = Starter::make(stack, number, share(number)).await;
            if is_paid {
                stack.grant(&client.user.uid, CREDIT).await;
            }
            client
        });
        let mut clients = futures_util::future::join_all(made).await;
        if let Some(simulator) = &simulator {
            for client in &mut clients {
                let id = stack.connect_to(&client.user.uid, "replicate", simulator.url(), SIMULATOR_KEY).await;
                client.connection = Some(id);
            }
        }
        Self {
            stack,
            plan,
            chance: chance.clone(),
            works,
            receiver: stack.take_receiver(),
            clients,
            simulator,
            is_over: AtomicBool::new(false),
            accepted: Mutex::default(),
            count: AtomicUsize::new(0),
            trouble: Mutex::default(),
        }
    }

    /// Starts every job and retries each until it is accepted.
    pub async fn run(&self) {
        futures_util::future::join_all(self.clients.iter().map(|client| self.drive(client))).await;
    }

    /// Starts no more jobs. Each client completes its current start.
    pub fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Waits until this many jobs are accepted, as long as the count keeps growing.
    pub async fn until(&self, count: usize) {
        loop {
            let before = self.count.load(Ordering::Relaxed);
            if before >= count {
                return;
            }
            testkit::wait_for("one more job to be accepted", INSISTENCE, async || {
                (self.count.load(Ordering::Relaxed) > before).then_some(())
            })
            .await;
        }
    }

    /// The jobs that have been accepted so far.
    pub fn accepted(&self) -> Vec<Accepted> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The receiver of the webhooks.
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// The provider's simulator, if the load includes images.
    pub fn simulator(&self) -> Option<&Simulator> {
        self.simulator.as_ref()
    }

    /// The seed, for error messages.
    pub fn seed(&self) -> u64 {
        self.chance.seed()
    }

    /// The failures that clients saw, and how often: a status, `nobody listens` or `no answer`.
    pub fn trouble(&self) -> BTreeMap<String, usize> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Panics if a client saw any failure of the service, including a missing response.
    pub fn assert_untroubled(&self) {
        let trouble = self.trouble();
        assert!(trouble.is_empty(), "seed {}: clients saw {trouble:?}", self.seed());
    }

    /// Like [`Self::assert_untroubled`], but permits attempts at a closed gateway that were repeated at another one.
    pub fn assert_served(&self) {
        let mut trouble = self.trouble();
        trouble.remove(NOBODY_LISTENS);
        assert!(trouble.is_empty(), "seed {}: clients saw {trouble:?}", self.seed());
    }

    async fn drive(&self, client: &Starter) {
        let mut chance = self.chance.fork(client.number as u64);
        let mut index = 0;
        for canvas in &client.canvases {
            let mut revision = canvas.revision.clone();
            for target in &canvas.targets {
                tokio::time::sleep(chance.time(self.plan.pause)).await;
                if self.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let path = format!("/{}/{index}", client.number);
                // Each client begins at another position, so that even a short load includes every kind.
                let work = self.works[(client.number * 7 + index) % self.works.len()];
                let mut request = work.request(&StartParams {
                    canvas: &canvas.id,
                    revision: &revision,
                    target,
                    input: &client.input,
                    width: 8 + chance.below(40),
                    connection: client.connection.as_deref(),
                    webhook: json!({"url": self.receiver.url(&path), "secret": SECRET}),
                });
                let job = self.start_until_accepted(client, work, &mut request, &mut chance).await;
                if let Some(current) = job["canvasRevision"].as_str() {
                    current.clone_into(&mut revision);
                }
                let raw = text(&job, "/rawId");
                let job = raw.strip_prefix("recipe-").unwrap_or(raw).parse().expect("a UUID");
                let path = work.has_webhook().then_some(path);
                let accepted = Accepted { job, uid: client.user.uid.clone(), work, path };
                self.accepted.lock().unwrap_or_else(PoisonError::into_inner).push(accepted);
                self.count.fetch_add(1, Ordering::Relaxed);
                index += 1;
            }
        }
    }

    /// Retries a start until it is accepted.
    async fn start_until_accepted(
        &self,
        client: &Starter,
        work: Work,
        request: &mut Value,
        chance: &mut Chance,
    ) -> Value {
        let began = Instant::now();
        let path = work.path();
        let gateways = self.stack.parts().iter().filter(|part| part.0 == Kind::Gateway).count();
        loop {
            let user = client.user.at(self.stack, chance.below(gateways));
            let what = match user.send(&path, request).attempt().await {
                // The request was not received. Like a load balancer, the next attempt can use another gateway.
                Err(error) if error.is_connect() => NOBODY_LISTENS.to_owned(),
                Err(_) => "no answer".to_owned(),
                Ok(reply) => match reply.status {
                    202 => return reply.json(),
                    // An earlier job has ended in the meantime. The rejected request did not consume its key.
                    409 => match reply.json().pointer("/error/details/currentRevision") {
                        Some(current) => {
                            request["baseRevision"] = current.clone();
                            continue;
                        }
                        None => panic!("seed {}: {reply}", self.seed()),
                    },
                    500.. => reply.status.to_string(),
                    _ => panic!("seed {}: {reply}", self.seed()),
                },
            };
            *self.trouble.lock().unwrap_or_else(PoisonError::into_inner).entry(what.clone()).or_default() += 1;
            assert!(began.elapsed() < INSISTENCE, "seed {}: a start is not accepted: {what}", self.seed());
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}

impl Starter {
    async fn make(stack: &Stack, number: usize, jobs: usize) -> Self {
        let user = stack.user().await;
        let asset = user.upload("image/png", images::png(64, 48)).await;
        let mut canvases = Vec::with_capacity(jobs.div_ceil(OPERATIONS_MAX));
        for batch in (0..jobs).collect::<Vec<_>>().chunks(OPERATIONS_MAX) {
            let id = text(&user.make_canvas().await, "/id").to_owned();
            let create = |index: &usize| {
                let node = json!({"type": "image", "position": {"x": 400 * index, "y": 0}});
                json!({"type": "node.create", "clientId": format!("t{index}"), "node": node})
            };
            let made = user.apply(&id, batch.iter().map(create).collect()).await;
            let target = |index: &usize| text(&made, &format!("/resolvedIds/t{index}")).to_owned();
            let targets = batch.iter().map(target).collect();
            canvases.push(Canvas { id, revision: text(&made, "/canvas/revision").to_owned(), targets });
        }
        Self { number, user, canvases, input: text(&asset, "/handle").to_owned(), connection: None }
    }
}

/// Longer than anything takes after a fault: leases, backoffs and a busy machine.
pub const SETTLING: Duration = Duration::from_secs(3 * PATIENCE.as_secs());
