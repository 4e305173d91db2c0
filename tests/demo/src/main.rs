//! The first-canvas demo: sends one photograph through the whole service, as a client does.
//!
//! It creates a canvas, uploads the photograph, asks for a smaller one in a new node, follows the run by long poll, receives the
//! signed webhook with an HTTPS receiver of its own, and saves the pictures and the canvas.
//!
//! Guarantee: the demo succeeds even if a process of the service is killed in the middle and restarted within five minutes.
//! Every request is repeated with the same idempotency key until it is answered, so a repetition never has a second effect.

mod api;
mod error;
mod receiver;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Parser;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::api::Api;
use crate::error::{Error, text};
use crate::receiver::{Delivery, Receiver};

/// The time limit of a step: enough to restart a killed process, and for three attempts of a
/// webhook.
const PATIENCE: Duration = Duration::from_secs(300);

/// After this long without progress the demo prints what it waits for.
const HINT_AFTER: Duration = Duration::from_secs(15);

/// The requested width in pixels. The photograph is wider.
const WIDTH: u32 = 320;

/// Runs the first-canvas demo against a running Canvas Service.
#[derive(Parser)]
#[command(name = "canvas-demo")]
struct Arguments {
    /// The address of the service, without a path.
    #[arg(long, env = "CANVAS_BASE_URL")]
    base_url: String,
    /// An access token with all scopes.
    #[arg(long, env = "CANVAS_TOKEN", hide_env_values = true)]
    token: String,
    /// The JPEG to upload.
    #[arg(long)]
    photo: PathBuf,
    /// The directory for the pictures and the canvas.
    #[arg(long)]
    out: PathBuf,
    /// The address of the webhook receiver, `host:port`. The service must allow it.
    #[arg(long)]
    receiver: String,
    /// The receiver's certificate, PEM.
    #[arg(long)]
    certificate: PathBuf,
    /// The receiver's private key, PEM.
    #[arg(long)]
    key: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    // Receiver and client use the process's crypto provider. This only fails if one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match run(Arguments::parse()).await {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("   {}", error::chain(&error));
            std::process::ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<(), Error> {
    let secret = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    let id = format!("demo-{}", Uuid::new_v4());
    // A new path for each demo, because a delivery of an earlier demo can still arrive.
    let path = format!("/{id}");
    let mut receiver =
        Receiver::start(&arguments.receiver, &path, &arguments.certificate, &arguments.key, secret.clone()).await?;
    let api = Api::new(&arguments.base_url, &arguments.token)?;
    let mut steps = Steps::default();

    let created = api.create_canvas(&id, "First canvas").await?;
    steps.done(&format!("canvas created: {}", text(&created, "/canvas/handle")?));

    let photo = read(&arguments.photo)?;
    let uploaded = api.upload(&id, "demo-photo.jpg", "image/jpeg", photo).await?;
    let asset = text(&uploaded, "/asset/handle")?;
    steps.done(&format!("photograph uploaded: {asset}"));

    let target = create_target(&api, &id, text(&uploaded, "/asset/node")?).await?;
    steps.done(&format!("empty image node connected: node:{target}"));

    let url = format!("https://{}{path}", arguments.receiver);
    let started = start_resize(&api, &id, asset, &target, json!({"url": url, "secret": secret})).await?;
    steps.done(&format!("resize to {WIDTH} pixels queued: {}", text(&started, "/run")?));

    let run = follow(&api, text(&started, "/pollUrl")?).await?;
    steps.done("run succeeded: its picture is stored and shown in the node");

    let delivery = receive(&mut receiver, text(&run, "/run")?).await?;
    steps.done(&format!("webhook received, signature verified: {} ({})", delivery.kind, delivery.event));

    save(&api, &id, asset, &run, &arguments.out).await?;
    steps.done(&format!("saved: before.jpg, after.jpg and canvas.json in {}", arguments.out.display()));
    Ok(())
}

/// Adds an empty image node to the right of the photograph's and connects the two. Returns the new node's id.
async fn create_target(api: &Api, canvas: &str, source: &str) -> Result<String, Error> {
    let read = api.canvas(canvas).await?;
    let nodes = read.pointer("/canvas/nodes").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let node = nodes
        .iter()
        .find(|node| node["handle"] == source)
        .ok_or(Error::Unexpected { what: "the canvas to show the photograph" })?;
    let right = node["position"]["x"].as_f64().unwrap_or(0.0) + node["width"].as_f64().unwrap_or(0.0) + 80.0;
    let applied = api
        .post(
            &format!("/canvases/{canvas}/operations"),
            &json!({
                "baseRevision": text(&read, "/canvas/revision")?,
                "idempotencyKey": Uuid::new_v4(),
                "operations": [
                    {"type": "node.create", "clientId": "small", "node": {
                        "type": "image",
                        "title": "Smaller",
                        "position": {"x": right, "y": node["position"]["y"]},
                    }},
                    {"type": "connection.create", "fromNodeId": source, "toNodeId": "small"},
                ],
            }),
        )
        .await?;
    Ok(text(&applied, "/resolvedIds/small")?.to_owned())
}

/// Queues the resize of `asset` into the node `target`.
async fn start_resize(api: &Api, canvas: &str, asset: &str, target: &str, webhook: Value) -> Result<Value, Error> {
    let read = api.canvas(canvas).await?;
    api.post(
        "/actions/resize/runs",
        &json!({
            "canvasId": canvas,
            "baseRevision": text(&read, "/canvas/revision")?,
            "idempotencyKey": Uuid::new_v4(),
            "targetNodeId": target,
            "inputs": [asset],
            "params": {"width": WIDTH},
            "webhook": webhook,
        }),
    )
    .await
}

/// Long-polls the run at `poll_url` until it has succeeded, and returns it.
async fn follow(api: &Api, poll_url: &str) -> Result<Value, Error> {
    let began = Instant::now();
    let mut hinted = false;
    while began.elapsed() < PATIENCE {
        let run = api.poll(poll_url).await?;
        let status = text(&run, "/status")?;
        match status {
            "succeeded" => return Ok(run),
            "failed" | "canceled" | "expired" => return Err(Error::Run { record: run.to_string() }),
            _ if !hinted && began.elapsed() > HINT_AFTER => {
                hinted = true;
                println!(
                    "      the run is {status}; if the image-worker is down, deploy/local/up --no-demo restarts it"
                );
            }
            _ => {}
        }
    }
    Err(Error::TooLong { what: "the run to end" })
}

/// Waits for the webhook of `run` (a run handle). The service can deliver an event more than once; the first delivery is enough.
async fn receive(receiver: &mut Receiver, run: &str) -> Result<Delivery, Error> {
    let began = Instant::now();
    let mut limit = HINT_AFTER;
    loop {
        match tokio::time::timeout(limit.saturating_sub(began.elapsed()), receiver.next()).await {
            Ok(delivery) => {
                let delivery = delivery?;
                if delivery.run == run {
                    return Ok(delivery);
                }
            }
            Err(_) if limit == HINT_AFTER => {
                limit = PATIENCE;
                println!(
                    "      no webhook yet; if the webhook-dispatcher is down, deploy/local/up --no-demo restarts it"
                );
            }
            Err(_) => return Err(Error::TooLong { what: "the webhook" }),
        }
    }
}

/// Downloads the picture before and after the resize, and saves both with the current canvas.
async fn save(api: &Api, canvas: &str, asset: &str, run: &Value, out: &Path) -> Result<(), Error> {
    if run.pointer("/images/0/width").and_then(Value::as_u64) != Some(WIDTH.into()) {
        return Err(Error::Unexpected { what: "a picture of the width asked for" });
    }
    let before = api.asset(asset).await?;
    let after = api.asset(text(run, "/images/0/assetId")?).await?;
    let canvas = api.canvas(canvas).await?;
    std::fs::create_dir_all(out).map_err(|source| Error::Write { path: out.to_owned(), source })?;
    write(&out.join("before.jpg"), &api.download(text(&before, "/asset/previewUrl")?).await?)?;
    write(&out.join("after.jpg"), &api.download(text(&after, "/asset/previewUrl")?).await?)?;
    write(&out.join("canvas.json"), format!("{canvas:#}\n").as_bytes())
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    std::fs::write(path, bytes).map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// Prints each step with the time it took.
struct Steps {
    number: u32,
    began: Instant,
}

impl Default for Steps {
    fn default() -> Self {
        Self { number: 0, began: Instant::now() }
    }
}

impl Steps {
    fn done(&mut self, what: &str) {
        self.number += 1;
        println!("   {}. {what} ({} ms)", self.number, self.began.elapsed().as_millis());
        self.began = Instant::now();
    }
}
