//! Innocent accounts: four requests a second of a fixed mix, each timed from the moment at which it was due.
//!
//! The victims run on a thread of their own, so that the attacker's work in this process does not delay them. Each request has a
//! connection of its own.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use e2e::api::{key, text};
use e2e::figures::quantile;
use e2e::tools::STATELESS;
use e2e::{Call, Client, Reply, Stack, User, images};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use testkit::{Answer, Receiver};
use tokio::sync::oneshot;

use crate::rows::Row;
use crate::scene::{Scene, address};

/// The time between two requests of the mix.
const INTERVAL: Duration = Duration::from_millis(250);
/// Every so many requests of the mix, an image is imported, and the row's additional requests are made.
const IMPORT_EVERY: u32 = 40;
const EXTRA_EVERY: u32 = 4;
/// Canvases of a victim that batches change in turn.
const BOARDS: usize = 8;
/// The side of an uploaded image of about 200 KB.
const UPLOAD_SIDE: u32 = 260;
/// The credit of a victim.
const CREDIT: i64 = 100_000;
/// The time that a victim waits for the end of its work or for a webhook.
const PATIENCE: Duration = Duration::from_secs(60);

/// The kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A read of a canvas.
    Read,
    /// Its outline.
    Outline,
    /// A batch of one operation.
    Batch,
    /// The start of an image of the embedded runtime.
    Start,
    /// The time from that start until the job is no longer queued.
    Running,
    /// An upload of 200 KB.
    Upload,
    /// A preview of 512 pixels.
    Preview,
    /// The list of tools.
    Tools,
    /// An event stream, to its first event.
    Stream,
    /// An import of an image from a shop that answers at once.
    Import,
    /// An Action, from its start to its end.
    Action,
    /// A PNG render.
    Render,
    /// A dry run with a body of 100 KB.
    Large,
    /// The list of canvases.
    List,
    /// A webhook, from the start of its Action to its arrival.
    Delivery,
    /// A batch of the owner on a canvas that the attacker may edit.
    Shared,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Outline => "outline",
            Self::Batch => "batch",
            Self::Start => "start",
            Self::Running => "start to running",
            Self::Upload => "upload",
            Self::Preview => "preview",
            Self::Tools => "list of tools",
            Self::Stream => "stream",
            Self::Import => "import",
            Self::Action => "Action",
            Self::Render => "PNG render",
            Self::Large => "body of 100 KB",
            Self::List => "list of canvases",
            Self::Delivery => "webhook",
            Self::Shared => "batch on the shared canvas",
        })
    }
}

/// The mix, in turn.
const MIX: [Kind; 8] =
    [Kind::Read, Kind::Batch, Kind::Outline, Kind::Start, Kind::Preview, Kind::Upload, Kind::Tools, Kind::Stream];

/// The measurements of a period.
#[derive(Debug, Default)]
pub struct Samples {
    /// Milliseconds of the requests that succeeded.
    times: BTreeMap<Kind, Vec<f64>>,
    /// What else the victims saw, and how often.
    pub wrong: BTreeMap<String, usize>,
}

impl Samples {
    /// The kinds of requests that succeeded at least once.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.times.keys().copied()
    }

    /// The number of requests of a kind that succeeded.
    pub fn count(&self, kind: Kind) -> usize {
        self.times.get(&kind).map_or(0, Vec::len)
    }

    /// The 95th percentile of a kind in milliseconds.
    pub fn p95(&self, kind: Kind) -> Option<f64> {
        self.times.get(&kind).map(|times| quantile(times, 0.95))
    }

    fn add(&mut self, Sample { kind, took, outcome }: Sample) {
        match outcome {
            Ok(()) => self.times.entry(kind).or_default().push(took.as_secs_f64() * 1000.0),
            Err(error) => *self.wrong.entry(format!("{kind}: {error}")).or_default() += 1,
        }
    }
}

struct Sample {
    kind: Kind,
    took: Duration,
    outcome: Result<(), String>,
}

/// The victims of a scene.
pub struct Victims {
    people: Vec<Person>,
    extra: &'static [Kind],
    /// A shop from which they import. It stops when it is dropped.
    shop: Receiver,
    /// The receiver of their webhooks, and when each path was requested.
    hooks: Receiver,
    delivered: Arc<Mutex<HashMap<String, Instant>>>,
    /// A canvas of the first victim that the attacker may edit.
    pub shared: SharedCanvas,
}

/// A canvas of a victim that others may edit.
#[derive(Clone)]
pub struct SharedCanvas {
    /// The owner's account.
    pub owner: User,
    /// The plain id of the canvas.
    pub id: String,
}

struct Person {
    /// The gateways, in the order in which they are asked. The next one is asked when one cannot be reached.
    clients: Vec<Client>,
    canvas: String,
    /// Images are started on it, all for its first revision.
    starts: (String, String),
    boards: Mutex<Vec<Board>>,
    shared: Mutex<Board>,
    preview: String,
    image: String,
}

#[derive(Clone)]
struct Board {
    id: String,
    revision: String,
}

impl Victims {
    /// Creates the accounts of the victims, their canvases and images.
    pub async fn prepare(scene: &Scene, row: &Row) -> Self {
        let (shop, hooks) = (scene.stack.take_receiver(), scene.stack.take_receiver());
        let image = images::png(64, 64);
        shop.answer(Answer::status(200).header("content-type", "image/png").body(image));
        let delivered = Arc::<Mutex<HashMap<String, Instant>>>::default();
        let arrivals = Arc::clone(&delivered);
        hooks.answer_with(move |received| {
            lock(&arrivals).insert(received.path.clone(), received.at);
            Answer::status(200)
        });
        let mut people = Vec::new();
        let owner = scene.stack.user().await;
        let shared = SharedCanvas { id: text(&owner.make_canvas().await, "/id").to_owned(), owner };
        for number in 0..2 {
            let user = match number {
                0 => shared.owner.clone(),
                _ => scene.stack.user().await,
            };
            let from = (row.neighbor && number == 1).then(|| address(0));
            people.push(Person::new(&scene.stack, &user, number, from, &shared.id).await);
        }
        Self { people, extra: row.extra, shop, hooks, delivered, shared }
    }

    /// Makes requests for a period and waits for all of them.
    pub async fn run(self: &Arc<Self>, period: Duration) -> Samples {
        let (victims, (done, samples)) = (Arc::clone(self), oneshot::channel());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            // Nobody receives the samples of a row that took too long.
            let _ = done.send(runtime.block_on(victims.measure(period)));
        });
        samples.await.expect("the victims do not panic")
    }

    async fn measure(&self, period: Duration) -> Samples {
        let mut samples = Samples::default();
        let mut open = FuturesUnordered::new();
        let began = Instant::now();
        let mut tick = 0;
        while INTERVAL * tick < period {
            let due = began + INTERVAL * tick;
            tokio::select! {
                () = tokio::time::sleep_until(due.into()) => {
                    open.extend(self.requests(tick).into_iter().map(|(person, kind)| self.ask(person, kind, due)));
                    tick += 1;
                }
                Some(done) = open.next() => done.into_iter().for_each(|sample| samples.add(sample)),
            }
        }
        while let Some(done) = open.next().await {
            done.into_iter().for_each(|sample| samples.add(sample));
        }
        samples
    }

    /// The requests that are due.
    fn requests(&self, tick: u32) -> Vec<(&Person, Kind)> {
        let turn = tick as usize;
        // Each victim makes every kind of request in turn.
        let person = &self.people[turn / MIX.len() % 2];
        let mut requests = vec![(person, MIX[turn % MIX.len()])];
        if tick % IMPORT_EVERY == IMPORT_EVERY / 8 {
            requests.push((person, Kind::Import));
        }
        if tick % EXTRA_EVERY == 1 && !self.extra.is_empty() {
            let turn = (tick / EXTRA_EVERY) as usize;
            let kind = self.extra[turn % self.extra.len()];
            let person = if kind == Kind::Shared { &self.people[0] } else { person };
            requests.push((person, kind));
        }
        requests
    }

    async fn ask(&self, person: &Person, kind: Kind, due: Instant) -> Vec<Sample> {
        let answered = self.answered(person, kind).await;
        let sample = |kind, outcome| Sample { kind, took: due.elapsed(), outcome };
        match answered {
            Ok(Some(job)) if kind == Kind::Start => {
                let accepted = sample(kind, Ok(()));
                let running = person.until(&job, |status| status != "queued").await;
                vec![accepted, sample(Kind::Running, running)]
            }
            answered => vec![sample(kind, answered.map(|_| ()))],
        }
    }

    /// Makes a request. Returns the job that it started, or what is wrong with its answer.
    async fn answered(&self, person: &Person, kind: Kind) -> Result<Option<Value>, String> {
        match kind {
            Kind::Read => person.get(200, |client| client.get(&format!("/canvases/{}", person.canvas))).await?,
            Kind::Outline => {
                person.get(200, |client| client.get(&format!("/canvases/{}/outline", person.canvas))).await?
            }
            Kind::List => person.get(200, |client| client.get("/canvases")).await?,
            Kind::Preview => person.get(200, |client| client.get(&person.preview)).await?,
            Kind::Tools => person.get(200, |client| client.mcp_call(STATELESS, "tools/list", json!({}))).await?,
            Kind::Upload => {
                let image = images::noise_png(UPLOAD_SIDE);
                person.get(201, |client| client.post("/assets").body("image/png", image.clone())).await?
            }
            Kind::Render => {
                // Equal renders are drawn once.
                let width = 256 + e2e::api::unique() % 1024;
                let path = format!("/canvases/{}/render?width={width}", person.canvas);
                person.get(200, |client| client.get(&path).header("accept", "image/png")).await?
            }
            Kind::Large => {
                let custom = json!({"text": "x".repeat(50_000)});
                let create = json!({"type": "node.create", "node": {"type": "text", "metadata": {"custom": custom}}});
                let body = e2e::api::trial(json!([create, create]));
                let path = format!("/canvases/{}/operations", person.canvas);
                person.get(200, |client| client.send(&path, &body)).await?
            }
            Kind::Import => {
                let url = self.shop.url(&format!("/{}.png", key()));
                let body = json!({"canvasId": person.starts.0, "imageUrl": url, "idempotencyKey": key()});
                person.get(200, |client| client.send("/images/import", &body)).await?
            }
            Kind::Stream => {
                person.stream().await?;
                return Ok(None);
            }
            Kind::Batch => {
                let board = lock(&person.boards).pop().ok_or("every canvas has an unanswered batch")?;
                let done = person.batch(board.clone()).await;
                lock(&person.boards).insert(0, done.as_ref().unwrap_or(&board).clone());
                return done.map(|_| None);
            }
            Kind::Shared => {
                let board = lock(&person.shared).clone();
                let board = person.batch(board).await?;
                *lock(&person.shared) = board;
                return Ok(None);
            }
            Kind::Start => {
                let request = json!({"model": "sketch", "prompt": "a kite"});
                return person.start("/images/generate", request).await.map(Some);
            }
            Kind::Action => {
                let job = person.start("/actions/resize/runs", person.resize()).await?;
                person.until(&job, |status| status == "succeeded").await?;
                return Ok(None);
            }
            Kind::Delivery => {
                let path = format!("/{}", key());
                let mut request = person.resize();
                request["webhook"] = json!({"url": self.hooks.url(&path), "secret": "s".repeat(32)});
                person.start("/actions/resize/runs", request).await?;
                let arrival = async {
                    while !lock(&self.delivered).contains_key(&path) {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                };
                tokio::time::timeout(PATIENCE, arrival).await.map_err(|_| "it did not arrive".to_owned())?;
                return Ok(None);
            }
            Kind::Running => unreachable!("it is measured with a start"),
        };
        Ok(None)
    }
}

impl Person {
    async fn new(stack: &Stack, user: &User, number: usize, from: Option<Ipv4Addr>, shared: &str) -> Self {
        stack.grant(&user.uid, CREDIT).await;
        let gateways = stack.parts().iter().filter(|part| part.0 == e2e::Kind::Gateway).count();
        let clients = (0..gateways).map(|index| {
            let client = stack.anonymous_at((number + index) % gateways).with_token(&user.token);
            from.map_or_else(|| client.clone(), |from| client.from_address(from.octets()))
        });
        let canvas = text(&user.make_canvas().await, "/id").to_owned();
        let create = |index: usize| {
            let node =
                json!({"type": "text", "position": {"x": 400 * index, "y": 0}, "metadata": {"content": "a note"}});
            json!({"type": "node.create", "node": node})
        };
        user.apply(&canvas, (0..20).map(create).collect()).await;
        let starts = user.make_canvas().await;
        let mut boards = Vec::new();
        for _ in 0..BOARDS {
            boards.push(Board::new(&user.make_canvas().await));
        }
        let asset = user.upload("image/png", images::png(1024, 768)).await;
        let preview = format!("{}&w=512", text(&asset, "/previewUrl"));
        user.get(&preview).await.expect(200);
        let shared = match number {
            0 => Board::new(&user.canvas(shared).await),
            _ => boards[0].clone(),
        };
        Self {
            clients: clients.collect(),
            canvas,
            starts: (text(&starts, "/id").to_owned(), text(&starts, "/revision").to_owned()),
            boards: Mutex::new(boards),
            shared: Mutex::new(shared),
            // Relative, so that it can be requested at any gateway.
            preview: preview.split_once("/api/").map(|(_, rest)| format!("/api/{rest}")).expect("a URL of the API"),
            image: text(&asset, "/handle").to_owned(),
        }
    }

    /// Makes a request at the first gateway that can be reached.
    async fn call(&self, call: impl Fn(&Client) -> Call) -> Result<Reply, String> {
        let mut error = String::new();
        for client in &self.clients {
            match call(client).attempt().await {
                Ok(reply) => return Ok(reply),
                Err(failed) => error = shown(&failed),
            }
        }
        Err(error)
    }

    /// Makes a request that must have this status.
    async fn get(&self, status: u16, call: impl Fn(&Client) -> Call) -> Result<Reply, String> {
        let reply = self.call(call).await?;
        if reply.status == status { Ok(reply) } else { Err(refusal(&reply)) }
    }

    async fn stream(&self) -> Result<(), String> {
        let path = format!("/events?canvas={}", self.canvas);
        let mut error = String::new();
        for client in &self.clients {
            match client.get(&path).try_streamed().await {
                Ok(response) if response.status().as_u16() != 200 => return Err(response.status().to_string()),
                Ok(mut response) => {
                    let mut read = Vec::new();
                    while let Some(chunk) = response.chunk().await.map_err(|error| shown(&error))? {
                        read.extend(chunk);
                        if read.windows(13).any(|window| window == b"event: canvas") {
                            return Ok(());
                        }
                    }
                    return Err("it ended without an event".to_owned());
                }
                Err(failed) => error = shown(&failed),
            }
        }
        Err(error)
    }

    /// Adds a node to a board and returns it with its new revision.
    async fn batch(&self, board: Board) -> Result<Board, String> {
        // Batches can overlap in time, and nodes must not overlap.
        let place = json!({"x": 400 * (e2e::api::unique() % 20_000), "y": -1000});
        let create = json!({"type": "node.create", "node": {"type": "text", "position": place}});
        let body = json!({"baseRevision": board.revision, "idempotencyKey": key(), "operations": [create]});
        let path = format!("/canvases/{}/operations", board.id);
        let reply = self.get(200, |client| client.send(&path, &body).header("prefer", "handling=lenient")).await?;
        let revision = text(&reply.json(), "/canvas/revision").to_owned();
        Ok(Board { revision, ..board })
    }

    fn resize(&self) -> Value {
        // Each result differs, so that each is made.
        json!({"inputs": [self.image], "params": {"width": 16 + e2e::api::unique() % 900}})
    }

    /// Starts a job into a new node.
    async fn start(&self, path: &str, mut request: Value) -> Result<Value, String> {
        let (canvas, revision) = &self.starts;
        request["canvasId"] = json!(canvas);
        request["baseRevision"] = json!(revision);
        request["idempotencyKey"] = json!(key());
        request["place"] = json!({});
        let call = |client: &Client| client.send(path, &request).header("prefer", "handling=lenient");
        Ok(self.get(202, call).await?.json())
    }

    /// Waits until a job has a state.
    async fn until(&self, job: &Value, wanted: impl Fn(&str) -> bool) -> Result<(), String> {
        let path = text(job, "/pollUrl").to_owned();
        let began = Instant::now();
        let mut status = text(job, "/status").to_owned();
        while !wanted(&status) {
            if matches!(status.as_str(), "succeeded" | "failed" | "canceled") {
                return Err(format!("the job is {status}"));
            }
            if began.elapsed() > PATIENCE {
                return Err(format!("the job is still {status}"));
            }
            let reply = self.call(|client| client.get(&path).header("prefer", "wait=5")).await?;
            if !matches!(reply.status, 200 | 202) {
                return Err(refusal(&reply));
            }
            text(&reply.json(), "/status").clone_into(&mut status);
        }
        Ok(())
    }
}

impl Board {
    fn new(canvas: &Value) -> Self {
        Self { id: text(canvas, "/id").to_owned(), revision: text(canvas, "/revision").to_owned() }
    }
}

/// A refusal with its reason.
fn refusal(reply: &Reply) -> String {
    let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    format!("{} {}", reply.status, body["error"]["message"].as_str().unwrap_or_default())
}

/// The cause of a failed transport without the URL, so that equal failures are counted together.
fn shown(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    if error.is_timeout() { "no answer in time".to_owned() } else { cause.to_string() }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_and_only_successes_timed() {
        let sample = |took, outcome| Sample { kind: Kind::Read, took: Duration::from_millis(took), outcome };
        let mut samples = Samples::default();
        (1..=20).for_each(|took| samples.add(sample(took, Ok(()))));
        (0..2).for_each(|_| samples.add(sample(9000, Err("503 busy".to_owned()))));
        assert_eq!((samples.p95(Kind::Read), samples.count(Kind::Read)), (Some(19.0), 20));
        assert_eq!(samples.wrong, BTreeMap::from([("read: 503 busy".to_owned(), 2)]));
        assert_eq!(samples.p95(Kind::Import), None);
    }
}
