//! Secrets never leak (docs/reference/configuration.md#secrets-at-rest, docs/reference/models.md#connection-secrets). No log and
//! no response contains a provider's key, a master key, a webhook secret, a bearer token or a service's password, and no log
//! contains a prompt. The test uses providers that quote the credential they received in every response.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::model::ProviderKind;
use e2e::api::{key, text};
use e2e::{Reply, Stack, User};
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::providers::{FailureMode, SIMULATOR_KEY, Simulator, Vendor};
use testkit::{Receiver, wait_for};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

/// Providers with text models.
const WRITING: [(&str, &str); 2] = [("openai", "gpt-6-luna"), ("google", "gemini-3.8-flash")];
/// The maximum number of characters that are passed on from a provider's message.
const WORDS_MAX: usize = 300;
/// How many characters of a key are searched for. A prefix of a longer key is a leak as well.
const SEARCHED_CHARS: usize = 12;
/// Part of every prompt.
const PROMPT: &str = "a kite that nobody may hear of";
/// A call to a provider's queue times out after 60 s (docs/reference/providers.md#deadlines). The rest allows for a busy machine.
const HANG_PATIENCE: Duration = Duration::from_secs(120);

/// How a [`Parrot`] answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Responds with 401 and quotes the credential.
    Refuses,
    /// Responds with 401 and quotes the credential at the position where messages are truncated.
    Late,
    /// Responds with 500 and quotes the credential, so that the outcome of the submit is unknown.
    Breaks,
    /// Responds with 200 and quotes the credential in place of a result.
    Babbles,
}

const MANNERS: [Manner; 4] = [Manner::Refuses, Manner::Late, Manner::Breaks, Manner::Babbles];

/// A provider of every kind that quotes the credential it received, in each [`Manner`].
struct Parrot {
    origin: String,
    _serving: DropGuard,
}

impl Parrot {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds a free port");
        let origin = format!("http://{}", listener.local_addr().expect("has an address"));
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let router = Router::new().fallback(quote);
        tokio::spawn(async move { axum::serve(listener, router).with_graceful_shutdown(stopped).await });
        Self { origin, _serving: stop.drop_guard() }
    }

    /// The base URL of a provider with this manner.
    fn url(&self, manner: Manner, provider: &str) -> String {
        format!("{}/{manner:?}/{provider}/v1", self.origin)
    }
}

async fn quote(uri: Uri, headers: HeaderMap) -> Response {
    let credentials: Vec<&str> = ["authorization", "x-key", "x-goog-api-key"]
        .iter()
        .filter_map(|name| headers.get(*name)?.to_str().ok())
        .collect();
    let (path, credential) = (uri.path(), credentials.join(" "));
    let manner = MANNERS.into_iter().find(|manner| path.starts_with(&format!("/{manner:?}/"))).expect("a manner");
    let (status, words) = match manner {
        Manner::Refuses => (StatusCode::UNAUTHORIZED, format!("Incorrect API key provided: {credential}")),
        Manner::Late => {
            (StatusCode::UNAUTHORIZED, format!("{}{credential}", "x".repeat(WORDS_MAX - credential.len() / 2)))
        }
        Manner::Breaks => (StatusCode::INTERNAL_SERVER_ERROR, credential),
        Manner::Babbles => (StatusCode::OK, credential),
    };
    // Two forms of error contain every field that the vendors use.
    let error = match path.split('/').nth(2) {
        Some("openai" | "google" | "managed") => json!({"message": words}),
        _ => json!(words),
    };
    let body = json!({"error": error, "detail": words, "message": words, "title": words, "errors": [words]});
    (status, [("x-error", words)], axum::Json(body)).into_response()
}

/// Every response that a client received, and every text that must not be in one.
#[derive(Default)]
struct Transcript {
    answers: Mutex<Vec<String>>,
    secrets: Mutex<Vec<String>>,
}

impl Transcript {
    /// A new secret.
    fn secret(&self, prefix: &str) -> String {
        let secret = format!("{prefix}{}", Uuid::new_v4().simple());
        self.hide(&secret);
        secret
    }

    fn hide(&self, secret: &str) {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner).push(secret.to_owned());
    }

    fn hear(&self, answer: impl Into<String>) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push(answer.into());
    }

    fn reply(&self, reply: Reply) -> Reply {
        self.hear(format!("{:?} {}", reply.headers, String::from_utf8_lossy(&reply.body)));
        reply
    }

    /// The secrets that occur in `heard`.
    fn leaks(&self, heard: &str) -> Vec<String> {
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        secrets.iter().filter(|secret| heard.contains(&secret[..SEARCHED_CHARS.min(secret.len())])).cloned().collect()
    }
}

/// An account, and the responses that it received.
struct Client<'a> {
    transcript: &'a Transcript,
    user: User,
}

impl<'a> Client<'a> {
    async fn new(stack: &Stack, transcript: &'a Transcript) -> Self {
        let user = stack.user().await;
        stack.grant(&user.uid, 1000).await;
        // The id before the dot is not secret.
        transcript.hide(user.token.split_once('.').expect("a dot").1);
        Self { transcript, user }
    }

    /// The handle of a provider's first model with this capability.
    async fn model(&self, provider: &str, capability: &str) -> Value {
        let models = self.user.get(&format!("/models?provider={provider}&capability={capability}")).await;
        self.transcript.reply(models).ok()["models"][0]["handle"].clone()
    }

    /// Starts an image on a new canvas, which no other job changes.
    async fn image(&self, provider: &str, more: Value) -> Value {
        let canvas = text(&self.user.make_canvas().await, "/id").to_owned();
        let (target, model) = (self.user.slot(&canvas).await, self.model(provider, "image.generate").await);
        let mut request = json!({
            "canvasId": canvas, "baseRevision": self.user.canvas(&canvas).await["revision"],
            "idempotencyKey": key(), "targetNodeId": target, "prompt": PROMPT, "model": model,
        });
        request.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        self.started("/images/generate", &request).await
    }

    async fn video(&self, provider: &str) -> Value {
        let model = self.model(provider, "video.generate").await;
        let request = json!({"model": model, "prompt": PROMPT, "idempotencyKey": key()});
        self.started("/videos/generate", &request).await
    }

    /// Starts a run of a workflow that writes a text with `model`.
    async fn writing(&self, model: &str) -> Value {
        let workflow = json!({
            "name": "Words", "idempotencyKey": key(),
            "inputs": [{"key": "thing", "label": "Thing", "type": "text", "useAsDefault": false}],
            "outputs": [{"key": "copy", "label": "Copy", "type": "text", "prompt": format!("{PROMPT} {{{{thing}}}}"),
                         "inputKeys": ["thing"], "model": model}],
        });
        let canvas = text(&self.user.make_canvas().await, "/id").to_owned();
        let made = self.user.send(&format!("/canvases/{canvas}/workflows"), &workflow).await.expect(201).json();
        let request = json!({
            "canvasId": canvas, "baseRevision": self.user.canvas(&canvas).await["revision"],
            "idempotencyKey": key(), "inputs": {"thing": "a kite"},
        });
        self.started(&format!("/recipes/{}/runs", text(&made, "/workflow/id")), &request).await
    }

    async fn started(&self, path: &str, request: &Value) -> Value {
        self.transcript.reply(self.user.send(path, request).await.expect(202)).json()
    }

    /// The end of a job or run, read in every way.
    async fn ended(&self, job: &Value, patience: Duration) -> Value {
        let path = text(job, "/pollUrl");
        wait_for(&format!("the end of {path}"), patience, async || {
            let record = self.transcript.reply(self.user.get(path).await).json();
            let over = ["succeeded", "failed", "canceled"].contains(&text(&record, "/status"));
            over.then_some(record)
        })
        .await
    }

    /// Reads every resource that shows data of jobs and connections.
    async fn look_around(&self) {
        for path in ["/providers", "/auth/status"] {
            self.transcript.reply(self.user.get(path).await.expect(200));
        }
        let canvases = self.transcript.reply(self.user.get("/canvases").await).ok();
        for canvas in canvases["canvases"].as_array().expect("a list") {
            self.transcript.reply(self.user.get(&format!("/canvases/{}", text(canvas, "/id"))).await.expect(200));
        }
    }
}

/// Images, videos and texts by providers that quote the credential.
async fn quoted(stack: &Stack, transcript: &Transcript, parrot: &Parrot, manner: Manner) {
    let client = Client::new(stack, transcript).await;
    let providers: Vec<&str> = ProviderKind::third_parties().map(ProviderKind::as_str).collect();
    for provider in providers.iter().copied() {
        stack.connect_to(&client.user.uid, provider, &parrot.url(manner, provider), &transcript.secret("sk-")).await;
    }
    // After an unknown outcome, a provider with lookup of runs is polled for minutes, so it is left out here.
    let is_asked = |provider: &&str| *provider != "replicate" || matches!(manner, Manner::Refuses | Manner::Late);
    let mut jobs = Vec::new();
    let managed = (manner == Manner::Refuses).then_some("managed");
    for provider in providers.iter().copied().filter(is_asked).chain(managed) {
        jobs.push((provider, client.image(provider, json!({})).await));
        if provider != "managed" && !client.model(provider, "video.generate").await.is_null() {
            jobs.push((provider, client.video(provider).await));
        }
    }
    for (provider, model) in WRITING {
        jobs.push((provider, client.writing(model).await));
    }
    for (provider, job) in jobs {
        let ended = client.ended(&job, HANG_PATIENCE).await;
        assert_eq!(ended["status"], "failed", "{manner:?} {provider}: {ended}");
        let message = text(&ended, "/failure/message");
        // The provider's message is passed on where its protocol has one, so a leak would be possible. What babbles has none of most
        // protocols.
        assert!(message.contains("[hidden]") || manner == Manner::Babbles, "{manner:?} {provider}: {ended}");
    }
    client.look_around().await;
}

/// Successful work: images with a webhook, a video and a text.
async fn succeeding(stack: &Stack, transcript: &Transcript, receiver: &Receiver) {
    let (client, secret) = (Client::new(stack, transcript).await, transcript.secret("whsec-"));
    let simulators = [(Vendor::OpenAi, "openai"), (Vendor::Replicate, "replicate")];
    let mut running = Vec::new();
    for (vendor, provider) in simulators {
        let simulator = Simulator::start(vendor).await;
        stack.connect_to(&client.user.uid, provider, simulator.url(), SIMULATOR_KEY).await;
        running.push(simulator);
    }
    let webhook = json!({"webhook": {"url": receiver.url("/hook?capability=whisper"), "secret": secret}});
    let jobs =
        [client.image("openai", webhook).await, client.video("replicate").await, client.writing("gpt-6-luna").await];
    for job in &jobs {
        let ended = client.ended(job, HANG_PATIENCE).await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
    }
    for request in receiver.wait_for(1, e2e::PATIENCE).await {
        transcript.hear(format!("{:?} {}", request.headers, String::from_utf8_lossy(&request.body)));
    }
    client.look_around().await;
    assert!(running.iter().all(|simulator| simulator.leaks() == 0));
}

/// A provider that never responds.
async fn hanging(stack: &Stack, transcript: &Transcript) {
    let (client, simulator) = (Client::new(stack, transcript).await, Simulator::start(Vendor::Fal).await);
    simulator.misbehave(FailureMode::Hang);
    stack.connect_to(&client.user.uid, "fal", simulator.url(), SIMULATOR_KEY).await;
    let job = client.image("fal", json!({})).await;
    let ended = client.ended(&job, HANG_PATIENCE).await;
    assert_eq!(ended["failure"]["code"], "provider_timeout", "{ended}");
}

/// Rejected requests with credentials in unexpected places.
async fn refused(stack: &Stack, transcript: &Transcript) {
    let client = Client::new(stack, transcript).await;
    let (wrong, token) = (transcript.secret("not-"), &client.user.token);
    let forged = stack.anonymous().with_token(&format!("{}.{wrong}", token.split_once('.').expect("a dot").0));
    transcript.reply(forged.get("/auth/status").await.expect(401));
    transcript.reply(stack.anonymous().with_token(&wrong).get("/auth/status").await.expect(401));
    transcript.reply(client.user.get(&format!("/canvases?token={token}&key={wrong}")).await.expect(200));
    transcript.reply(stack.anonymous().get(&format!("/assets/preview?token={wrong}")).await);
    let body = json!({"webhook": {"url": format!("https://127.0.0.1/?key={wrong}"), "secret": wrong}, "secret": wrong});
    transcript.reply(client.user.send("/images/generate", &body).await.expect(400));
    let create = ["admin", "connection", "create", "--account", &client.user.uid, "--api-key-stdin"];
    let create = [&create[..], &["--provider", "fal", "--name", "n"]].concat();
    let two = stack.admin_with_input(&create, &format!("{wrong} {wrong}")).await;
    transcript.hear(two.expect_refusal());
    transcript.hear(stack.admin_with_input(&create, &wrong).await.expect_success().to_string());
    let list = ["admin", "connection", "list", "--account", &client.user.uid];
    transcript.hear(stack.admin(&list).await.expect_success().to_string());
    client.look_around().await;
}

/// The passwords in the addresses of the stack's services.
fn passwords(stack: &Stack) -> Vec<String> {
    let urls = stack.env().iter().filter(|(name, _)| name.ends_with("_URL"));
    let found: Vec<String> =
        urls.filter_map(|(_, value)| url::Url::parse(value).ok()?.password().map(str::to_owned)).collect();
    assert_eq!(found.len(), 3, "PostgreSQL, Redis and RabbitMQ have one each");
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_in_any_log_or_answer() {
    let (transcript, parrot) = (Transcript::default(), Parrot::start().await);
    let ring = STANDARD.encode([Uuid::new_v4(), Uuid::new_v4()].map(Uuid::into_bytes).concat());
    let managed = transcript.secret("managed-");
    transcript.hide(&ring);
    let stack = Stack::builder()
        .image_workers(1)
        .video_workers(1)
        .dispatchers(1)
        .receivers(1)
        // At trace level, which includes the logs of libraries.
        .env("CANVAS_LOG", "trace")
        .env("CANVAS_RATE_PER_MINUTE", 0)
        .env("CANVAS_MASTER_KEYS", format!("secrets:{ring}"))
        .env("CANVAS_MANAGED_URL", parrot.url(Manner::Refuses, "managed"))
        .env("CANVAS_MANAGED_KEY", &managed)
        .start()
        .await;
    transcript.hide(SIMULATOR_KEY);
    passwords(&stack).iter().for_each(|password| transcript.hide(password));
    let receiver = stack.take_receiver();
    let parroted = join_all(MANNERS.map(|manner| quoted(&stack, &transcript, &parrot, manner)));
    tokio::join!(
        parroted,
        succeeding(&stack, &transcript, &receiver),
        hanging(&stack, &transcript),
        refused(&stack, &transcript)
    );
    let answers = transcript.answers.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
    assert_eq!(transcript.leaks(&answers), [""; 0], "in an answer");
    for part in stack.parts() {
        let log = stack.log(part);
        assert!(log.lines().count() > 10, "{part} logs");
        assert_eq!(transcript.leaks(&log), [""; 0], "in the log of {part}");
        for hidden in [PROMPT, "whisper"] {
            assert!(!log.contains(hidden), "{hidden:?} in the log of {part}");
        }
    }
}
