//! A small shop: a product page that says in JSON-LD (schema.org) which images belong to its product.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use serde_json::json;

/// An image with its media type.
pub type ShopImage = (String, Bytes);

/// The shop. Clones share their images.
#[derive(Clone)]
pub struct Shop {
    url: String,
    images: Arc<Mutex<Vec<ShopImage>>>,
}

impl Shop {
    /// An empty shop, to be served at `url`, which ends with `path`.
    pub fn open(url: String, path: &str) -> (Router, Self) {
        let shop = Self { url, images: Arc::default() };
        let router = Router::new()
            .route(&format!("{path}/product"), get(page))
            .route(&format!("{path}/{{number}}"), get(image))
            .with_state(shop.clone());
        (router, shop)
    }

    /// Shows one more image of the product, and returns its URL.
    pub fn show(&self, media_type: &str, bytes: Bytes) -> String {
        let mut images = self.images.lock().expect("nothing panics with the lock");
        images.push((media_type.to_owned(), bytes));
        format!("{}/{}", self.url, images.len() - 1)
    }

    /// The URL of the product page.
    pub fn page(&self) -> String {
        format!("{}/product", self.url)
    }
}

async fn page(State(shop): State<Shop>) -> Html<String> {
    let count = shop.images.lock().expect("nothing panics with the lock").len();
    let images: Vec<String> = (0..count).map(|number| format!("{}/{number}", shop.url)).collect();
    let product = json!({"@context": "https://schema.org", "@type": "Product", "name": "Espresso", "image": images});
    Html(format!(
        "<!doctype html><title>Espresso</title><script type=\"application/ld+json\">{product}</script><h1>Espresso</h1>"
    ))
}

async fn image(State(shop): State<Shop>, Path(number): Path<usize>) -> Response {
    match shop.images.lock().expect("nothing panics with the lock").get(number) {
        Some((media_type, bytes)) => ([(CONTENT_TYPE, media_type.clone())], bytes.clone()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
