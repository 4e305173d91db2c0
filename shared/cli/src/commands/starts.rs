//! Generation of images and videos.

use std::path::Path;

use client::{Client, WorkRecord};
use serde_json::{Value, json};

use super::batch::insert;
use super::work::{Order, ended, start, start_and_wait, succeeded};
use crate::args::{Edit, Generate, GenerationOptions, Position, Vary, Video, Wanted};
use crate::context::{Body, Context, canvas, text_or_stdin};
use crate::failure::{Outcome, usage};

pub async fn generate(context: &Context, generate: Generate) -> Outcome {
    let body = prompted(&generate).await?;
    make(context, "generate", body, generate.options, &|client| client.generate_images().cast()).await
}

/// Edits images. A mask in a file is uploaded to the canvas, where no node shows it.
pub async fn edit(context: &Context, edit: Edit) -> Outcome {
    let Edit { generate, source, mask, mask_mode, invert_mask, feather, no_composite } = edit;
    let mut body = prompted(&generate).await?;
    insert(&mut body, "source", source);
    if let Some(mask) = mask {
        let handle = match mask.starts_with("node:") || mask.starts_with("asset:") {
            true => mask,
            false => super::assets::upload_hidden(context, Path::new(&mask), &generate.options.start.on).await?,
        };
        let mut mask = Body::from_iter([("handle".into(), json!(handle))]);
        insert(&mut mask, "mode", mask_mode);
        insert(&mut mask, "invert", invert_mask.then_some(true));
        body.insert("mask".into(), mask.into());
        insert(&mut body, "maskFeather", feather);
        insert(&mut body, "maskComposite", no_composite.then_some(false));
    }
    make(context, "edit", body, generate.options, &|client| client.edit_images().cast()).await
}

/// The prompt and the references of a request.
async fn prompted(generate: &Generate) -> Outcome<Body> {
    let mut body = Body::new();
    if let Some(prompt) = &generate.prompt {
        body.insert("prompt".into(), text_or_stdin(prompt).await?.into());
    }
    insert(&mut body, "promptNodeId", generate.prompt_node.as_deref());
    if !generate.references.is_empty() {
        let reference = |it: &String| match it.split_once('=') {
            Some((handle, role)) => json!({"handle": handle, "role": role}),
            None => json!(it),
        };
        body.insert("references".into(), generate.references.iter().map(reference).collect());
    }
    Ok(body)
}

pub async fn vary(context: &Context, vary: Vary) -> Outcome {
    let body = Body::from_iter([("source".into(), json!(vary.source))]);
    make(context, "vary", body, vary.options, &|client| client.vary_images().cast()).await
}

async fn make(
    context: &Context,
    name: &str,
    mut body: Body,
    options: GenerationOptions,
    route: &(dyn Fn(&Client) -> client::Call<WorkRecord> + Sync),
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
    insert_wanted(&mut body, options.wanted);
    if options.targets.is_empty() {
        body.insert("place".into(), place(options.position, options.title));
    } else {
        body.insert("targetNodeIds".into(), json!(options.targets));
        body.insert("fit".into(), true.into());
    }
    let order = Order { name: name.to_owned(), canvas: Some(on), body, route, is_paid: true };
    start(context, order, &options.start.start).await
}

/// What is wanted beyond what the start makes.
fn insert_wanted(body: &mut Body, Wanted { asked, retry_of }: Wanted) {
    insert(body, "asked", asked);
    insert(body, "retryOf", retry_of);
}

/// The place at which the service adds the targets of a start.
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

/// Makes a video. When it goes to standard output, its record goes to standard error.
pub async fn video(context: &Context, video: Video) -> Outcome {
    let is_piped = video.output.as_ref().is_some_and(|path| path.as_os_str() == "-");
    if is_piped && context.output.json {
        return usage("name a file for the video: --output FILE");
    }
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
    insert_wanted(&mut body, video.wanted);
    let on = video.on.as_deref().map(canvas).transpose()?;
    insert(&mut body, "canvasId", on.clone());
    let Position { x, y, near, section } = &video.position;
    let is_placed =
        video.place || x.is_some() || y.is_some() || near.is_some() || section.is_some() || video.title.is_some();
    if is_placed && on.is_none() {
        return usage("name the canvas that the video goes to: --on CANVAS");
    }
    let is_targeted = is_placed || video.target.is_some();
    if is_placed {
        body.insert("place".into(), place(video.position.clone(), video.title.clone()));
    }
    insert(&mut body, "targetNodeId", video.target.clone());
    insert(&mut body, "fit", video.target.is_some().then_some(true));
    let order = Order {
        name: "video".into(),
        canvas: on.filter(|_| is_targeted),
        body,
        route: &|client| client.generate_video().cast(),
        is_paid: true,
    };
    let Some(last) = start_and_wait(context, order, &video.start).await? else { return Ok(()) };
    let record = last.value()?;
    match is_piped {
        true => context.output.error_line(ended(&record)),
        false => context.output.body(&last, || ended(&record)),
    }
    succeeded(&record)?;
    match &video.output {
        Some(path) => super::runs::download(context, record.handle(), path).await,
        None => Ok(()),
    }
}
