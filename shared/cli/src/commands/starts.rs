//! Generation of images and videos.

use std::path::Path;

use client::{Client, WorkRecord};
use serde_json::{Value, json};

use super::batch::insert;
use super::pictures::{picture, picture_if, pictures};
use super::work::{Order, start};
use crate::args::{Edit, Generate, GenerationOptions, Position, Vary, Video, Wanted};
use crate::context::{Body, Context, text_or_stdin};
use crate::failure::{Outcome, usage};

pub async fn generate(context: &Context, generate: Generate) -> Outcome {
    let on = context.on(generate.options.start.on.on.as_deref()).await?;
    let body = prompted(context, &on, &generate).await?;
    make(context, "generate", on, body, generate.options, &|client| client.generate_images().cast()).await
}

/// Edits images.
pub async fn edit(context: &Context, edit: Edit) -> Outcome {
    let Edit { generate, source, mask, mask_mode, invert_mask, feather, no_composite } = edit;
    let on = context.on(generate.options.start.on.on.as_deref()).await?;
    let mut body = prompted(context, &on, &generate).await?;
    insert(&mut body, "source", picture_if(context, Some(&on), source).await?);
    if let Some(handle) = picture_if(context, Some(&on), mask).await? {
        let mut mask = Body::from_iter([("handle".into(), json!(handle))]);
        insert(&mut mask, "mode", mask_mode);
        insert(&mut mask, "invert", invert_mask.then_some(true));
        body.insert("mask".into(), mask.into());
        insert(&mut body, "maskFeather", feather);
        insert(&mut body, "maskComposite", no_composite.then_some(false));
    }
    make(context, "edit", on, body, generate.options, &|client| client.edit_images().cast()).await
}

/// The prompt and the references of a request.
async fn prompted(context: &Context, on: &str, generate: &Generate) -> Outcome<Body> {
    let mut body = Body::new();
    if let Some(prompt) = &generate.prompt {
        body.insert("prompt".into(), text_or_stdin(prompt).await?.into());
    }
    insert(&mut body, "promptNodeId", context.node_if(on, generate.prompt_node.clone()).await?);
    let mut references = Vec::new();
    for reference in &generate.references {
        match reference
            .rsplit_once('=')
            .filter(|_| !reference.starts_with("https://") && !Path::new(reference).exists())
        {
            Some((name, role)) => {
                references.push(json!({"handle": picture(context, Some(on), name).await?, "role": role}));
            }
            None => {
                references.extend(
                    pictures(context, Some(on), std::slice::from_ref(reference)).await?.into_iter().map(Value::from),
                );
            }
        }
    }
    if !references.is_empty() {
        body.insert("references".into(), references.into());
    }
    Ok(body)
}

pub async fn vary(context: &Context, vary: Vary) -> Outcome {
    let on = context.on(vary.options.start.on.on.as_deref()).await?;
    let source = picture(context, Some(&on), &vary.source).await?;
    let body = Body::from_iter([("source".into(), json!(source))]);
    make(context, "vary", on, body, vary.options, &|client| client.vary_images().cast()).await
}

async fn make(
    context: &Context,
    name: &str,
    on: String,
    mut body: Body,
    options: GenerationOptions,
    route: &(dyn Fn(&Client) -> client::Call<WorkRecord> + Sync),
) -> Outcome {
    body.insert("canvasId".into(), json!(on));
    if let Some(model) = &options.model {
        body.insert("model".into(), context.model(model).await?.into());
    }
    if !options.elements.is_empty() {
        let mut elements = Vec::new();
        for element in &options.elements {
            elements.push(context.element(element).await?);
        }
        body.insert("elements".into(), json!(elements));
    }
    insert(&mut body, "size", options.size);
    insert(&mut body, "quality", options.quality);
    insert(&mut body, "count", options.count);
    insert_wanted(context, &mut body, options.wanted).await?;
    if options.targets.is_empty() {
        body.insert("place".into(), place(context, &on, options.position, options.title).await?);
    } else {
        body.insert("targetNodeIds".into(), json!(context.nodes(&on, options.targets).await?));
        body.insert("fit".into(), true.into());
    }
    let order = Order { name: name.to_owned(), canvas: Some(on), body, route, is_paid: true };
    start(context, order, &options.start.start).await
}

/// What is wanted beyond what the start makes.
async fn insert_wanted(context: &Context, body: &mut Body, Wanted { asked, retry_of }: Wanted) -> Outcome {
    insert(body, "asked", asked);
    if let Some(run) = retry_of {
        body.insert("retryOf".into(), context.run(&run).await?.into());
    }
    Ok(())
}

/// The place at which the service adds the targets of a start.
pub async fn place(context: &Context, on: &str, position: Position, title: Option<String>) -> Outcome<Value> {
    let Position { x, y, near, section } = position;
    let mut place = Body::new();
    insert(&mut place, "x", x);
    insert(&mut place, "y", y);
    insert(&mut place, "near", context.node_if(on, near).await?);
    insert(&mut place, "sectionId", context.node_if(on, section).await?);
    insert(&mut place, "title", title);
    Ok(place.into())
}

/// Makes a video.
pub async fn video(context: &Context, video: Video) -> Outcome {
    let on = context.on_if_any(video.on.as_deref()).await?;
    let mut body = Body::from_iter([("prompt".into(), text_or_stdin(&video.prompt).await?.into())]);
    body.insert("model".into(), context.model(&video.model).await?.into());
    insert(&mut body, "firstFrame", picture_if(context, on.as_deref(), video.first_frame).await?);
    insert(&mut body, "lastFrame", picture_if(context, on.as_deref(), video.last_frame).await?);
    if !video.references.is_empty() {
        body.insert("references".into(), json!(pictures(context, on.as_deref(), &video.references).await?));
    }
    insert(&mut body, "durationSeconds", video.seconds);
    insert(&mut body, "aspectRatio", video.aspect_ratio);
    insert(&mut body, "resolution", video.resolution);
    insert(&mut body, "generateAudio", video.audio.then_some(true));
    insert_wanted(context, &mut body, video.wanted).await?;
    insert(&mut body, "canvasId", on.clone());
    let Position { x, y, near, section } = &video.position;
    let is_placed =
        video.place || x.is_some() || y.is_some() || near.is_some() || section.is_some() || video.title.is_some();
    let target = match &on {
        Some(on) => {
            if is_placed {
                body.insert("place".into(), place(context, on, video.position, video.title).await?);
            }
            context.node_if(on, video.target).await?
        }
        None if is_placed || video.target.is_some() => {
            return usage("name the canvas that the video goes to: --on CANVAS");
        }
        None => None,
    };
    let is_targeted = is_placed || target.is_some();
    insert(&mut body, "fit", target.is_some().then_some(true));
    insert(&mut body, "targetNodeId", target);
    let order = Order {
        name: "video".into(),
        canvas: on.filter(|_| is_targeted),
        body,
        route: &|client| client.generate_video().cast(),
        is_paid: true,
    };
    start(context, order, &video.start).await
}
