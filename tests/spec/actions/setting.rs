//! What a run needs: a canvas, an empty node and images.

use e2e::api::{key, text};
use e2e::{Reply, Stack, User};
use raster::Bitmap;
use serde_json::{Value, json};

/// A canvas with an empty node, and an image.
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

    /// A request to resize the image into the node, for the current revision and under a new key.
    pub async fn request(&self, user: &User) -> Value {
        user.resize_request(&self.canvas, &self.target, &self.asset).await
    }

    pub fn target_of(&self, canvas: &Value) -> Value {
        let nodes = canvas["nodes"].as_array().expect("a list");
        nodes.iter().find(|node| node["id"] == self.target.as_str()).expect("the target is there").clone()
    }
}

/// The result of a run.
pub struct ActionResult {
    /// The decoded result.
    pub image: Bitmap,
    /// The media type with which the result is served.
    pub media_type: String,
}

impl ActionResult {
    /// Width and height in pixels.
    pub fn size(&self) -> (u32, u32) {
        (self.image.width(), self.image.height())
    }

    /// Asserts that no channel of the pixel at `x`, `y` differs from `expected` by more than `tolerance`.
    pub fn shows(&self, x: u32, y: u32, expected: [u8; 4], tolerance: u8) {
        let pixel = self.image.pixel(x, y).expect("within the image");
        let near = pixel.iter().zip(expected).all(|(sample, expected)| sample.abs_diff(expected) <= tolerance);
        assert!(near, "{x}, {y}: {pixel:?}, expected {expected:?}");
    }
}

/// Decodes a whole file, with its orientation applied.
pub fn decoded(file: &[u8]) -> Bitmap {
    raster::decode(file).expect("decodes")
}

/// Uploads the files and starts Action `slug` on them, in a new canvas and into a new node.
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

/// Runs Action `slug` and asserts that it succeeds.
pub async fn run(stack: &Stack, user: &User, slug: &str, files: &[Vec<u8>], params: Value) -> ActionResult {
    let job = start(user, slug, files, params.clone()).await.expect(202).json();
    let done = user.finished(&job).await;
    assert_eq!(done["status"], "succeeded", "{slug} {params}: {done}");
    let output = &done["images"][0];
    let file = stack.anonymous().get(text(output, "/previewUrl")).await.expect(200);
    let image = decoded(&file.body);
    assert_eq!(
        (output["width"].as_u64(), output["height"].as_u64()),
        (Some(image.width().into()), Some(image.height().into()))
    );
    ActionResult { image, media_type: text(output, "/mediaType").to_owned() }
}

/// Asserts that the start is rejected because of the stored images, with exactly these `fields`.
pub async fn refused(user: &User, slug: &str, files: &[Vec<u8>], params: Value, fields: &[&str]) {
    start(user, slug, files, params).await.expect_error(422, "unprocessable_entity", fields);
}
