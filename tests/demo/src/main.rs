//! The demo: does one of each thing that the service can do, as a client does, and leaves a canvas that shows them.
//!
//! It uploads a photograph, runs every Image Action on it, generates, edits and varies images, makes a video, runs a Recipe, imports
//! from a web page, verifies a signed webhook, calls a tool and has the canvas drawn. The web page and the receiver of the webhook are
//! its own, on one address with HTTPS.
//!
//! Guarantee: the demo succeeds even if a process of the service is killed in the middle and started again, a gateway within five
//! minutes, another process within the time limit of a step. Every request is repeated with the same idempotency key until it is
//! answered, so a repetition never has a second effect. A step that is not over in time fails.

mod board;
mod error;
mod mcp;
mod server;
mod service;
mod shop;
mod steps;
mod webhook;
mod work;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Parser;
use client::Client;
use serde_json::json;
use uuid::Uuid;

use crate::board::Board;
use crate::error::{Error, Result, list, text};
use crate::service::Service;
use crate::shop::Shop;
use crate::steps::Steps;
use crate::work::{PROMPT, SavedImage};

/// Runs the demo against a running Canvas Service.
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
    /// The directory for the images, the video and the canvas.
    #[arg(long)]
    out: PathBuf,
    /// The address of the receiver and the web page, `host:port`. The service must allow it.
    #[arg(long)]
    receiver: String,
    /// The receiver's certificate, PEM.
    #[arg(long)]
    certificate: PathBuf,
    /// The receiver's private key, PEM.
    #[arg(long)]
    key: PathBuf,
    /// The directory of the processes' logs, to name them in messages.
    #[arg(long)]
    logs: Option<String>,
    /// How many seconds a step may take.
    #[arg(long, default_value_t = 60)]
    limit: u64,
    /// Leave the imports out: the image-worker cannot reach the receiver.
    #[arg(long)]
    without_imports: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("       {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<()> {
    let began = Instant::now();
    let out = &arguments.out;
    let file = |path: &PathBuf, source| Error::File { path: path.clone(), source };
    let photograph = std::fs::read(&arguments.photo).map_err(|source| file(&arguments.photo, source))?;
    std::fs::create_dir_all(out).map_err(|source| file(out, source))?;

    let service = Service::new(&arguments.base_url, &arguments.token, arguments.logs.clone())?;
    // A new path for each demo, because a delivery of an earlier demo can still arrive.
    let id = format!("demo-{}", Uuid::new_v4());
    let secret = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    let url = format!("https://{}/{id}", arguments.receiver);
    let (shop_router, shop) = Shop::open(format!("{url}/shop"), &format!("/{id}/shop"));
    let (receiver, mut inbox) = webhook::receiver(&format!("/{id}"), &secret);
    let router = receiver.merge(shop_router).fallback(|| async { http::StatusCode::GONE });
    server::serve(&arguments.receiver, &arguments.certificate, &arguments.key, router).await?;

    let mut steps = Steps::new(Duration::from_secs(arguments.limit), &service.awaited);
    let status = service.json(Client::get_auth_status).await?;
    let mut board = steps.step("canvas", Board::create(&service, &id)).await?;

    board.row();
    let photo = steps.step("upload", work::upload(&board, photograph.into())).await?;
    board.section("Photograph", 1, std::slice::from_ref(&photo)).await?;

    let actions = service.json(Client::list_actions).await?;
    let section = board.section("Image Actions", 4, &[]).await?;
    let hook = json!({"url": url, "secret": secret});
    let mut made: Vec<SavedImage> = Vec::new();
    let mut first = None;
    for action in list(&actions, "/actions")? {
        let other = made.last().map_or_else(|| photo.clone(), |image| image.node.clone());
        // The webhook of the first one is enough.
        let hook = first.is_none().then_some(&hook);
        let step = work::action(&board, action, &section, [&photo, &other], hook, out);
        let (record, image) = steps.step(text(action, "/slug")?, step).await?;
        first.get_or_insert(record);
        made.push(image);
    }
    let first = first.ok_or_else(|| Error::Unexpected("the service has no Image Actions".into()))?;
    steps.step("webhook", received(&service, &mut inbox, text(&first, "/run")?)).await?;

    let models = service.json(Client::list_models).await?;
    if list(&models, "/models")?.iter().any(|model| model["modelId"] == "sketch") {
        generate(&mut board, &mut steps, text(&status, "/uid")?, &photo, out).await?;
    } else {
        println!(
            "       no generation, video and Recipe: the service does not run its own models (CANVAS_MANAGED_URL)"
        );
    }
    if !arguments.without_imports {
        board.row();
        let mut urls: Vec<String> = Vec::new();
        for image in made.iter().rev().take(3) {
            urls.push(shop.show(&image.media_type, image.bytes.clone()));
        }
        steps.step("import of an image", work::import_image(&mut board, &urls[0])).await?;
        steps.step("import of a product page", work::import_product(&mut board, &shop)).await?;
    }

    let headline = "One of each thing that Canvas Service does, made from a photograph";
    steps.step("board", async { Ok((board.arrange(headline).await?, ())) }).await?;
    let canvas = board.read().await?;
    work::save(&out.join("canvas.json"), format!("{canvas:#}\n").as_bytes())?;
    let handle = text(&canvas, "/canvas/handle")?;
    steps.step("tools (MCP)", async { Ok((mcp::review(&service, handle).await?, ())) }).await?;
    let image = steps.step("render", work::render(&service, &id, out)).await?;

    let now = service.json(Client::get_auth_status).await?;
    let balance = |status: &serde_json::Value| status["creditBalance"].as_i64().unwrap_or_default();
    println!(
        "   All of it took {:.0} s and {} credits.",
        began.elapsed().as_secs_f64(),
        balance(&status) - balance(&now)
    );
    println!("   The images and the video: {}; the canvas as an image: {}", out.display(), image.display());
    println!("   The canvas in the console: {}", text(&first, "/canvasUrl")?);
    Ok(())
}

/// Generates, edits and varies images, makes a video of them, and runs a Recipe.
async fn generate(board: &mut Board<'_>, steps: &mut Steps<'_>, uid: &str, photo: &str, out: &Path) -> Result<()> {
    board.row();
    let section = board.section("Generated, edited, varied", 4, &[]).await?;
    let generate = json!({"prompt": PROMPT, "size": "1536x1024", "place": {"title": "Generated"}});
    let generated = steps.step("generate", work::images(board, "generate", &section, generate, out)).await?;
    let edit = json!({"prompt": "The same cup under rain clouds", "source": photo, "size": "1536x1024", "place": {"title": "Edited"}});
    let edited = steps.step("edit", work::images(board, "edit", &section, edit, out)).await?;
    let vary = json!({"source": generated[0], "size": "1536x1024", "place": {"title": "Variation", "count": 2}});
    steps.step("variations", work::images(board, "variations", &section, vary, out)).await?;
    steps.step("video", work::video(board, uid, &generated[0], &edited[0], out)).await?;

    steps.step("recipe", work::recipe(board, photo)).await?;
    Ok(())
}

/// Waits for the webhook of `run`.
async fn received(service: &Service, inbox: &mut webhook::Inbox, run: &str) -> Result<(String, ())> {
    service.awaited.set(format_args!("the webhook of {run} (log: {})", service.log("webhook-dispatcher")));
    let delivery = inbox.delivery_of(run).await?;
    Ok((format!("signature verified, {} ({})", delivery.kind, delivery.event), ()))
}
