//! Generation of pictures and videos.

use client::Client;
use serde_json::{Value, json};

use super::batch::insert;
use super::work::{Order, start};
use crate::args::{Generate, Making as Options, Position, Vary, Video};
use crate::context::{Body, Context, canvas, text_or_stdin};
use crate::failure::Outcome;

/// What is done with a prompt.
#[derive(Clone, Copy)]
pub enum Making {
    Generate,
    Edit,
}

pub async fn generate(context: &Context, generate: Generate, making: Making) -> Outcome {
    let mut body = Body::new();
    if let Some(prompt) = &generate.prompt {
        body.insert("prompt".into(), text_or_stdin(prompt).await?.into());
    }
    insert(&mut body, "promptNodeId", generate.prompt_node);
    if !generate.references.is_empty() {
        let reference = |it: &String| match it.split_once('=') {
            Some((handle, role)) => json!({"handle": handle, "role": role}),
            None => json!(it),
        };
        body.insert("references".into(), generate.references.iter().map(reference).collect());
    }
    match making {
        Making::Generate => {
            make(context, "generate", body, generate.making, &|client| client.generate_images().cast()).await
        }
        Making::Edit => make(context, "edit", body, generate.making, &|client| client.edit_images().cast()).await,
    }
}

pub async fn vary(context: &Context, vary: Vary) -> Outcome {
    let body = Body::from_iter([("source".into(), json!(vary.source))]);
    make(context, "vary", body, vary.making, &|client| client.vary_images().cast()).await
}

async fn make(
    context: &Context,
    name: &str,
    mut body: Body,
    options: Options,
    route: &(dyn Fn(&Client) -> client::Call<Value> + Sync),
) -> Outcome {
    let on = canvas(&options.start.on)?;
    body.insert("canvasId".into(), json!(on));
    if let Some(model) = &options.model {
        body.insert("model".into(), context.model(model).await?.into());
    }
    if !options.elements.is_empty() {
        body.insert("elements".into(), json!(options.elements));
    }
    insert(&mut body, "size", options.size);
    insert(&mut body, "quality", options.quality);
    insert(&mut body, "count", options.count);
    if options.targets.is_empty() {
        body.insert("place".into(), place(options.position, options.title));
    } else {
        body.insert("targetNodeIds".into(), json!(options.targets));
    }
    let order = Order { name: name.to_owned(), canvas: Some(on), body, route, is_paid: true };
    start(context, order, &options.start.start).await.map(|_| ())
}

/// Where the service adds the targets of a start.
pub fn place(position: Position, title: Option<String>) -> Value {
    let Position { x, y, near, section } = position;
    let mut place = Body::new();
    insert(&mut place, "x", x);
    insert(&mut place, "y", y);
    insert(&mut place, "near", near);
    insert(&mut place, "sectionId", section);
    insert(&mut place, "title", title);
    place.into()
}

pub async fn video(context: &Context, video: Video) -> Outcome {
    let mut body = Body::from_iter([("prompt".into(), text_or_stdin(&video.prompt).await?.into())]);
    body.insert("model".into(), context.model(&video.model).await?.into());
    insert(&mut body, "firstFrame", video.first_frame);
    insert(&mut body, "lastFrame", video.last_frame);
    if !video.references.is_empty() {
        body.insert("references".into(), json!(video.references));
    }
    insert(&mut body, "durationSeconds", video.seconds);
    insert(&mut body, "aspectRatio", video.aspect_ratio);
    insert(&mut body, "resolution", video.resolution);
    insert(&mut body, "generateAudio", video.audio.then_some(true));
    if let Some(on) = &video.on {
        body.insert("canvasId".into(), canvas(on)?.into());
    }
    let order = Order {
        name: "video".into(),
        canvas: None,
        body,
        route: &|client| client.generate_video().cast(),
        is_paid: true,
    };
    let record = start(context, order, &video.start).await?;
    match (record, &video.output) {
        (Some(record), Some(path)) => {
            super::runs::download(context, record["id"].as_str().unwrap_or_default(), path).await
        }
        _ => Ok(()),
    }
}
