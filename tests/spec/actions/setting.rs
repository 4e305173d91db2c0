//! What a run needs: a canvas, an empty node, pictures.

use e2e::api::{key, text};
use e2e::{Reply, Stack, User};
use raster::{DecodeOptions, Decoded, Picture};
use serde_json::{Value, json};

/// A canvas with an empty node, and a picture.
pub struct Setting {
    pub canvas: String,
    pub target: String,
    pub asset: String,
}

impl Setting {
    pub async fn new(user: &User, bytes: Vec<u8>) -> Self {
        let canvas = text(&user.make_canvas().await, "/id").to_owned();
        let target = user.slot(&canvas).await;
        let asset = user.upload("application/octet-stream", bytes).await;
        Self { canvas, target, asset: text(&asset, "/handle").to_owned() }
    }

    /// A resize of the picture into the node, for the canvas as it is now, under a key of its own.
    pub async fn request(&self, user: &User) -> Value {
        user.resize_request(&self.canvas, &self.target, &self.asset).await
    }

    pub fn target_of(&self, canvas: &Value) -> Value {
        let nodes = canvas["nodes"].as_array().expect("a list");
        nodes.iter().find(|node| node["id"] == self.target.as_str()).expect("the target is there").clone()
    }
}

/// What a run made.
pub struct Made {
    /// Its pixels.
    pub picture: Picture,
    /// As served.
    pub media_type: String,
}

impl Made {
    /// Columns and rows.
    pub fn size(&self) -> (u32, u32) {
        (self.picture.width(), self.picture.height())
    }

    /// The pixel at `x`, `y`, with no channel further than `tolerance` from `expected`.
    pub fn shows(&self, x: u32, y: u32, expected: [u8; 4], tolerance: u8) {
        let pixel = self.picture.pixel(x, y).expect("within the picture");
        let near = pixel.iter().zip(expected).all(|(sample, expected)| sample.abs_diff(expected) <= tolerance);
        assert!(near, "{x}, {y}: {pixel:?}, expected {expected:?}");
    }
}

/// Decodes a file whole, as displayed.
pub fn decoded(file: &[u8]) -> Picture {
    raster::decode(file, DecodeOptions::default()).map(Decoded::into_picture).expect("decodes")
}

/// Uploads the files and starts Action `slug` on them, in a canvas and into a node of their own.
pub async fn start(user: &User, slug: &str, files: &[Vec<u8>], params: Value) -> Reply {
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let target = user.slot(&canvas).await;
    let mut inputs = Vec::new();
    for file in files {
        let asset = user.upload("application/octet-stream", file.clone()).await;
        inputs.push(text(&asset, "/handle").to_owned());
    }
    let request = json!({
        "canvasId": canvas, "baseRevision": user.canvas(&canvas).await["revision"], "idempotencyKey": key(),
        "targetNodeId": target, "inputs": inputs, "params": params,
    });
    user.send(&format!("/actions/{slug}/runs"), &request).await
}

/// Runs Action `slug` to its good end.
pub async fn run(stack: &Stack, user: &User, slug: &str, files: &[Vec<u8>], params: Value) -> Made {
    let job = start(user, slug, files, params.clone()).await.expect(202).json();
    let done = user.finished(&job).await;
    assert_eq!(done["status"], "succeeded", "{slug} {params}: {done}");
    let image = &done["images"][0];
    let file = stack.anonymous().get(text(image, "/previewUrl")).await.expect(200);
    let picture = decoded(&file.body);
    assert_eq!(
        (image["width"].as_u64(), image["height"].as_u64()),
        (Some(picture.width().into()), Some(picture.height().into()))
    );
    Made { picture, media_type: text(image, "/mediaType").to_owned() }
}

/// The start is refused for what the stored pictures are, each of `fields` named.
pub async fn refused(user: &User, slug: &str, files: &[Vec<u8>], params: Value, fields: &[&str]) {
    start(user, slug, files, params).await.expect_error(422, "unprocessable_entity", fields);
}
