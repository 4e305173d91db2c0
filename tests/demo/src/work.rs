//! Work of every kind: Image Actions, generated images, a video, a Recipe, imports. Each is started, followed to its end and looked at.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use client::answers::{ImageJob, Started};
use client::{Call, Client};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::board::Board;
use crate::error::{Error, Result, list, text};
use crate::service::Service;
use crate::shop::Shop;

/// What is to be seen, for prompts and texts.
pub const PROMPT: &str = "A cup of espresso on dark wood at dawn, seen from above";

/// An image that was made, and saved in a file.
pub struct SavedImage {
    pub node: String,
    pub media_type: String,
    pub bytes: Bytes,
    about: String,
}

/// Uploads the photograph onto the canvas. Returns its node.
pub async fn upload(board: &Board<'_>, photo: Bytes) -> Result<(String, String)> {
    let key = Uuid::new_v4().to_string();
    let send = |client: &Client| {
        let call = client.upload_asset().query("canvasId", &board.id).key(&key);
        let name = http::HeaderName::from_static("x-service-file-name");
        call.header(name, "Photograph.jpg").body("image/jpeg", photo.clone())
    };
    let uploaded = board.service.json(send).await?;
    let asset = &uploaded["asset"];
    let made = format!("{} x {} pixels, {}", asset["width"], asset["height"], text(&uploaded, "/asset/handle")?);
    Ok((made, text(&uploaded, "/asset/node")?.to_owned()))
}

/// Runs an Action on the photograph, and on a second image where it takes two. Returns the record and the image.
pub async fn action(
    board: &Board<'_>,
    action: &Value,
    section: &str,
    inputs: [&str; 2],
    webhook: Option<&Value>,
    out: &Path,
) -> Result<(String, (Value, SavedImage))> {
    let slug = text(action, "/slug")?;
    let inputs = &inputs[..list(action, "/inputs")?.len().min(2)];
    let mut body = json!({
        "inputs": inputs,
        "params": params(slug, list(action, "/parameters")?),
        "place": {"sectionId": section, "title": text(action, "/title")?},
        "connect": false,
    });
    if let Some(webhook) = webhook {
        body["webhook"] = webhook.clone();
    }
    let (record, mut images) = make_images(board, body, out, slug, |client| client.run_action(slug)).await?;
    let image = images.swap_remove(0);
    Ok((image.about.clone(), (record, image)))
}

/// Parameters that show what an Action does. One that is not known here gets the least that it needs.
fn params(slug: &str, parameters: &[Value]) -> Value {
    match slug {
        "resize" => json!({"width": 320}),
        "crop" => json!({"width": 300, "height": 300}),
        "change-aspect-ratio" => json!({"ratio": "4:5", "mode": "blur"}),
        "side-by-side-composite" => json!({"gap": 12}),
        "add-text-to-image" => json!({"text": "Good morning", "font": "serif", "size": 12, "anchor": "bottom"}),
        "overlay-image" => json!({"scale": 30, "offsetX": -20, "offsetY": -20}),
        "color-grade" => json!({"preset": "noir"}),
        "rotate" => json!({"degrees": 8, "background": "#ffffff"}),
        _ => {
            parameters.iter().filter(|parameter| parameter["required"] == true).map(least).collect::<Map<_, _>>().into()
        }
    }
}

fn least(parameter: &Value) -> (String, Value) {
    let given = [&parameter["default"], &parameter["options"][0]["value"], &parameter["min"]];
    let value = match given.into_iter().find(|value| !value.is_null()) {
        Some(value) => value.clone(),
        None if parameter["type"] == "color" => json!("#ffffff"),
        None if parameter["type"] == "number" => json!(1),
        None => json!("Espresso"),
    };
    (parameter["id"].as_str().unwrap_or_default().to_owned(), value)
}

/// Generates images with the model `sketch`, as `operation` says. Returns their nodes.
pub async fn images(
    board: &Board<'_>,
    operation: &str,
    section: &str,
    mut body: Value,
    out: &Path,
) -> Result<(String, Vec<String>)> {
    body["model"] = json!("sketch");
    body["connect"] = json!(false);
    body["place"]["sectionId"] = json!(section);
    let call = |client: &Client| match operation {
        "generate" => client.generate_images(),
        "edit" => client.edit_images(),
        _ => client.vary_images(),
    };
    let (_, images) = make_images(board, body, out, operation, call).await?;
    let about: Vec<&str> = images.iter().map(|image| image.about.as_str()).collect();
    Ok((about.join(", "), images.into_iter().map(|image| image.node).collect()))
}

/// Starts work that makes images, follows it, and saves the images as `name`. Returns the record and the images.
async fn make_images(
    board: &Board<'_>,
    body: Value,
    out: &Path,
    name: &str,
    call: impl Fn(&Client) -> Call<Started<ImageJob>>,
) -> Result<(Value, Vec<SavedImage>)> {
    let service = board.service;
    let body = board.body(body).await?;
    let started = service.json(|client| call(client).prefer("handling=lenient").json(&body)).await?;
    let run = text(&started, "/run")?;
    let record = service.finish(run, "image-worker").await?;
    let mut images = Vec::new();
    for (number, image) in list(&record, "/images")?.iter().enumerate() {
        let asset = text(image, "/assetId")?;
        let bytes = service.send(|client| client.get_asset_content(asset)).await?.body;
        if image["bytes"] != bytes.len() {
            return Err(Error::Unexpected(format!(
                "{asset} has {} bytes, and its record says {}",
                bytes.len(),
                image["bytes"]
            )));
        }
        let media_type = text(image, "/mediaType")?.to_owned();
        let number = if number == 0 { String::new() } else { format!("-{}", number + 1) };
        let extension = media_type.trim_start_matches("image/").replace("jpeg", "jpg");
        let file = format!("{name}{number}.{extension}");
        save(&out.join(&file), &bytes)?;
        let about = format!("{} x {} pixels, {file}", image["width"], image["height"]);
        images.push(SavedImage { node: text(image, "/nodeId")?.to_owned(), media_type, bytes, about });
    }
    match images.is_empty() {
        true => Err(Error::Unexpected(format!("{run} succeeded without an image"))),
        false => Ok((record, images)),
    }
}

/// Makes a video with the model `animatic` that goes from one image to another, saves it, and shows it on the canvas.
pub async fn video(board: &mut Board<'_>, uid: &str, first: &str, last: &str, out: &Path) -> Result<(String, ())> {
    let service = board.service;
    let body = json!({
        "model": "animatic", "prompt": PROMPT, "durationSeconds": 3, "resolution": "480p", "canvasId": board.id,
        "firstFrame": first, "lastFrame": last, "idempotencyKey": Uuid::new_v4(),
    });
    let started = service.json(|client| client.generate_video().json(&body)).await?;
    let job = text(&started, "/id")?;
    service.finish(job, "video-worker").await?;
    let video = service.send(|client| client.get_job_output(job)).await?.body;
    // ISO 14496-12: a file begins with its type, and has its index in the box `moov`.
    if video.get(4..8) != Some(b"ftyp") || !video.windows(4).any(|name| name == b"moov") {
        return Err(Error::Unexpected(format!("the output of {job} is not an MP4")));
    }
    save(&out.join("video.mp4"), &video)?;
    // The console plays the video of a video node that names its job (docs/guides/console.md#make-videos).
    let made = board
        .apply(json!([
            {"type": "node.create", "clientId": "video", "node": {"type": "video", "title": "Animatic",
                "metadata": {"prompt": PROMPT, "custom": {"console": {"video": {"job": job, "by": uid, "resolution": "480p"}}}}}},
            {"type": "connection.create", "fromNodeId": first, "toNodeId": "video", "purpose": "first-frame"},
            {"type": "connection.create", "fromNodeId": last, "toNodeId": "video", "purpose": "last-frame"},
        ]))
        .await?
        .json();
    let node = text(&made, "/resolvedIds/video")?.to_owned();
    // Then it stays on the canvas when the job's record is removed.
    let mut body = board.body(json!({"targetNodeId": node})).await?;
    if let Some(members) = body.as_object_mut() {
        members.remove("idempotencyKey");
    }
    service.json(|client| client.keep_job_video(job).prefer("handling=lenient").json(&body)).await?;
    board.section("Video", 1, &[node]).await?;
    Ok((format!("3 s, {} kB, video.mp4", video.len() / 1000), ()))
}

/// Runs a Recipe that makes texts and images: the first one of those that are approved.
pub async fn recipe(board: &mut Board<'_>, photo: &str) -> Result<(String, ())> {
    let service = board.service;
    let recipes = service.json(|client| client.list_recipes().query("visibility", "approved")).await?;
    let has = |recipe: &Value, ports: &str, kind: &str| {
        recipe[ports].as_array().is_some_and(|ports| ports.iter().any(|port| port["nodeType"] == kind))
    };
    let fits = |recipe: &&Value| {
        has(recipe, "inputs", "image") && has(recipe, "outputs", "text") && has(recipe, "outputs", "image")
    };
    let recipe = list(&recipes, "/recipes")?
        .iter()
        .find(fits)
        .ok_or_else(|| Error::Unexpected("no approved Recipe makes texts and images of an image".into()))?;
    let (key, name) = (text(recipe, "/id")?, text(recipe, "/name")?);
    let section = board.section_beside(&format!("Recipe: {name}")).await?;
    let needed = list(recipe, "/inputs")?.iter().filter(|port| port["useAsPreset"] != true);
    let inputs: Map<String, Value> = needed
        .map(|port| {
            let value = if port["nodeType"] == "image" {
                photo
            } else {
                "Every second espresso is on us, weekdays before nine."
            };
            (port["key"].as_str().unwrap_or_default().to_owned(), json!(value))
        })
        .collect();
    let body = board.body(json!({"sectionId": section, "inputs": inputs})).await?;
    let started = service.json(|client| client.run_recipe(key).prefer("handling=lenient").json(&body)).await?;
    let record = service.finish(text(&started, "/run")?, "image-worker").await?;
    let outputs: Vec<String> = list(&record, "/outputs")?
        .iter()
        .map(|output| {
            format!(
                "{} ({})",
                output["label"].as_str().unwrap_or_default(),
                output["type"].as_str().unwrap_or_default()
            )
        })
        .collect();
    Ok((format!("{name}: {}", outputs.join(", ")), ()))
}

/// Imports one image of the shop.
pub async fn import_image(board: &mut Board<'_>, url: &str) -> Result<(String, ())> {
    let body = json!({"canvasId": board.id, "imageUrl": url, "title": "From a URL", "idempotencyKey": Uuid::new_v4()});
    let imported = board.service.json(|client| client.import_image().json(&body)).await?;
    board.section("Imported image", 1, &[text(&imported, "/image/nodeId")?.to_owned()]).await?;
    Ok((format!("{} x {} pixels", imported["image"]["width"], imported["image"]["height"]), ()))
}

/// Imports the images of the shop's product page.
pub async fn import_product(board: &mut Board<'_>, shop: &Shop) -> Result<(String, ())> {
    let body = json!({
        "canvasId": board.id, "productPageUrl": shop.page(), "title": "Imported product page", "idempotencyKey": Uuid::new_v4(),
    });
    let imported = board.service.json(|client| client.import_product_references().json(&body)).await?;
    if imported["status"] != "succeeded" {
        return Err(Error::Unexpected(format!("the product page was not imported: {imported}")));
    }
    board.add(text(&imported, "/pack/sectionId")?, 3);
    Ok((format!("{} images of a product page", imported["pack"]["imageCount"]), ()))
}

/// Has the canvas drawn as a PNG, with all its images.
pub async fn render(service: &Service, canvas: &str, out: &Path) -> Result<(String, PathBuf)> {
    loop {
        let drawn = service
            .send(|client| client.render_canvas(canvas).query("width", 2048).header(http::header::ACCEPT, "image/png"))
            .await?;
        // Without an `ETag`, some thumbnails are not made yet (docs/reference/canvases.md#render-caching).
        if drawn.header("etag").is_some() {
            let file = out.join("board.png");
            save(&file, &drawn.body)?;
            return Ok((format!("{} kB, board.png", drawn.body.len() / 1000), file));
        }
        service.awaited.set(format_args!("thumbnails of the canvas (log: {})", service.log("image-worker")));
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    }
}

/// Writes a file of the demo.
pub fn save(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).map_err(|source| Error::File { path: path.to_owned(), source })
}
