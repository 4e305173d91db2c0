//! Imports of images and product references (docs/reference/imports.md).

mod images;
mod pages;
mod products;
mod waits;

use e2e::api::{key, text};
use e2e::{Reply, User};
use serde_json::{Value, json};
use testkit::{Answer, Receiver};

/// A file that a shop serves.
struct File {
    path: &'static str,
    answer: Answer,
}

fn file(path: &'static str, media_type: &str, body: impl Into<Vec<u8>>) -> File {
    File { path, answer: Answer::status(200).header("content-type", media_type).body(body.into()) }
}

fn html(path: &'static str, body: &str) -> File {
    file(path, "text/html; charset=utf-8", body)
}

fn png(path: &'static str, body: Vec<u8>) -> File {
    file(path, "image/png", body)
}

/// Serves these files by their paths, with the query or without, and 404 for every other path.
fn serve(shop: &Receiver, files: Vec<File>) {
    shop.answer_with(move |request| {
        let path = request.path.split('?').next().unwrap_or_default();
        let found = files.iter().find(|file| file.path == request.path);
        let found = found.or_else(|| files.iter().find(|file| file.path == path));
        found.map_or_else(|| Answer::status(404), |file| file.answer.clone())
    });
}

/// Creates a canvas of `user` and returns its plain id.
async fn canvas(user: &User) -> String {
    text(&user.make_canvas().await, "/id").to_owned()
}

fn image_request(canvas: &str, url: &str) -> Value {
    json!({"canvasId": canvas, "imageUrl": url, "idempotencyKey": key()})
}

async fn import_image(user: &User, canvas: &str, url: &str) -> Reply {
    user.send("/images/import", &image_request(canvas, url)).await
}

fn product_request(canvas: &str, url: &str, more: Value) -> Value {
    let mut request = json!({"canvasId": canvas, "productPageUrl": url, "idempotencyKey": key()});
    request.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
    request
}

async fn import_product(user: &User, canvas: &str, url: &str, more: Value) -> Reply {
    user.send("/product-references/import", &product_request(canvas, url, more)).await
}

/// The nodes of a canvas.
async fn nodes(user: &User, canvas: &str) -> Vec<Value> {
    user.canvas(canvas).await["nodes"].as_array().cloned().expect("nodes")
}
