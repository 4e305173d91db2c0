//! A seeded stream of jobs, each with a webhook, by clients that do what the specification tells clients to do: when they do
//! not know what came of a start they send it again under its key (specification, Errors, retry guidance).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::Receiver;
use uuid::Uuid;

use crate::api::text;
use crate::seed::Chance;
use crate::{Kind, PATIENCE, Stack, User, pictures};

/// The caller's secret of every webhook.
pub const SECRET: &str = "the secret of every webhook of a load";
/// What a client is told by a gateway that is down or takes no new connections.
const NOBODY_LISTENS: &str = "nobody listens";
/// How long a client insists on one start: longer than any outage a test makes.
const INSISTENCE: Duration = Duration::from_secs(90);
/// Before it sends again what was refused for the moment or not answered.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// What a load is to be.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Jobs altogether.
    pub jobs: usize,
    /// Clients at once, each an account with a canvas of its own.
    pub clients: usize,
    /// The longest pause of a client between two starts; how long it is each time is chance.
    pub pause: Duration,
}

/// A job that the service has accepted.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// Its id.
    pub job: Uuid,
    /// Whose it is.
    pub uid: String,
    /// The node that it fills.
    pub target: String,
    /// The path that its webhook goes to, which no other's does.
    pub path: String,
}

/// A load on a stack.
pub struct Load<'a> {
    stack: &'a Stack,
    plan: Plan,
    chance: Chance,
    receiver: Receiver,
    clients: Vec<Starter>,
    accepted: Mutex<Vec<Accepted>>,
    count: AtomicUsize,
    trouble: Mutex<BTreeMap<String, usize>>,
}

struct Starter {
    number: usize,
    user: User,
    canvas: String,
    /// That its canvas had before the load.
    revision: String,
    targets: Vec<String>,
    input: String,
}

impl<'a> Load<'a> {
    /// Makes accounts, canvases, targets and inputs. The stack has a receiver left, which this takes.
    pub async fn prepare(stack: &'a Stack, chance: &Chance, plan: Plan) -> Self {
        let share = |number: usize| plan.jobs / plan.clients + usize::from(number < plan.jobs % plan.clients);
        let made = (0..plan.clients).map(|number| Starter::make(stack, number, share(number)));
        Self {
            stack,
            plan,
            chance: chance.clone(),
            receiver: stack.take_receiver(),
            clients: futures_util::future::join_all(made).await,
            accepted: Mutex::default(),
            count: AtomicUsize::new(0),
            trouble: Mutex::default(),
        }
    }

    /// Starts every job, each until it is accepted.
    pub async fn run(&self) {
        futures_util::future::join_all(self.clients.iter().map(|client| self.drive(client))).await;
    }

    /// Waits until so many jobs are accepted.
    pub async fn until(&self, count: usize) {
        testkit::wait_for("jobs to be accepted", INSISTENCE, async || {
            (self.count.load(Ordering::Relaxed) >= count).then_some(())
        })
        .await;
    }

    /// The jobs that were accepted so far.
    pub fn accepted(&self) -> Vec<Accepted> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where the webhooks go.
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// The seed, for messages.
    pub fn seed(&self) -> u64 {
        self.chance.seed()
    }

    /// What clients were told other than yes, and how often: a status, `nobody listens` or `no answer`.
    pub fn trouble(&self) -> BTreeMap<String, usize> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Panics if a client ever saw a failure of the service, an answer that did not come included.
    pub fn assert_untroubled(&self) {
        let trouble = self.trouble();
        assert!(trouble.is_empty(), "seed {}: clients saw {trouble:?}", self.seed());
    }

    /// The same, but that a client may have found a gateway closed and gone to another.
    pub fn assert_served(&self) {
        let mut trouble = self.trouble();
        trouble.remove(NOBODY_LISTENS);
        assert!(trouble.is_empty(), "seed {}: clients saw {trouble:?}", self.seed());
    }

    async fn drive(&self, client: &Starter) {
        let mut chance = self.chance.fork(client.number as u64);
        let mut revision = client.revision.clone();
        for (index, target) in client.targets.iter().enumerate() {
            tokio::time::sleep(chance.time(self.plan.pause)).await;
            let path = format!("/{}/{index}", client.number);
            let mut request = json!({
                "canvasId": client.canvas, "baseRevision": revision, "idempotencyKey": crate::api::key(),
                "targetNodeId": target, "inputs": [client.input], "params": {"width": 8 + chance.below(40)},
                "webhook": {"url": self.receiver.url(&path), "secret": SECRET},
            });
            let job = self.insist(client, &mut request, &mut chance).await;
            revision = text(&job, "/canvasRevision").to_owned();
            let job = text(&job, "/rawId").parse().expect("a UUID");
            let accepted = Accepted { job, uid: client.user.uid.clone(), target: target.clone(), path };
            self.accepted.lock().unwrap_or_else(PoisonError::into_inner).push(accepted);
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends a start until it is accepted.
    async fn insist(&self, client: &Starter, request: &mut Value, chance: &mut Chance) -> Value {
        let began = Instant::now();
        let gateways = self.stack.parts().iter().filter(|part| part.0 == Kind::Gateway).count();
        loop {
            let user = client.user.at(self.stack, chance.below(gateways));
            let what = match user.send("/actions/resize/runs", request).attempt().await {
                // Nothing of it was taken; a load balancer asks another gateway, and so does the next turn.
                Err(error) if error.is_connect() => NOBODY_LISTENS.to_owned(),
                Err(_) => "no answer".to_owned(),
                Ok(reply) => match reply.status {
                    202 => return reply.json(),
                    // A job of before has ended meanwhile. The refused request has not used its key.
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
        let canvas = text(&user.make_canvas().await, "/id").to_owned();
        let asset = user.upload("image/png", pictures::png(64, 48)).await;
        let (mut targets, mut revision) = (Vec::with_capacity(jobs), String::new());
        // 200 operations a batch (specification, Limits).
        for batch in (0..jobs).collect::<Vec<_>>().chunks(200) {
            let create = |index: &usize| {
                let node = json!({"type": "image", "position": {"x": 400 * index, "y": 0}});
                json!({"type": "node.create", "clientId": format!("t{index}"), "node": node})
            };
            let made = user.apply(&canvas, batch.iter().map(create).collect()).await;
            text(&made, "/canvas/revision").clone_into(&mut revision);
            targets.extend(batch.iter().map(|index| text(&made, &format!("/resolvedIds/t{index}")).to_owned()));
        }
        Self { number, user, canvas, revision, targets, input: text(&asset, "/handle").to_owned() }
    }
}

/// Waits longer than anything after a fault may take: leases, backoffs and a busy machine.
pub const SETTLING: Duration = Duration::from_secs(3 * PATIENCE.as_secs());
