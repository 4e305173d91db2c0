//! A small shop: a product page that says in JSON-LD (schema.org) which pictures belong to its product.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use serde_json::json;

/// A picture with its media type.
pub type Picture = (String, Bytes);

/// The shop. Clones share their pictures.
#[derive(Clone)]
pub struct Shop {
    url: String,
    pictures: Arc<Mutex<Vec<Picture>>>,
}

impl Shop {
    /// An empty shop, to be served at `url`, which ends with `path`.
    pub fn open(url: String, path: &str) -> (Router, Self) {
        let shop = Self { url, pictures: Arc::default() };
        let router = Router::new()
            .route(&format!("{path}/product"), get(page))
            .route(&format!("{path}/{{number}}"), get(picture))
            .with_state(shop.clone());
        (router, shop)
    }

    /// Shows one more picture of the product, and returns its URL.
    pub fn show(&self, media_type: &str, bytes: Bytes) -> String {
        let mut pictures = self.pictures.lock().expect("nothing panics with the lock");
        pictures.push((media_type.to_owned(), bytes));
        format!("{}/{}", self.url, pictures.len() - 1)
    }

    /// The URL of the product page.
    pub fn page(&self) -> String {
        format!("{}/product", self.url)
    }
}

async fn page(State(shop): State<Shop>) -> Html<String> {
    let count = shop.pictures.lock().expect("nothing panics with the lock").len();
    let pictures: Vec<String> = (0..count).map(|number| format!("{}/{number}", shop.url)).collect();
    let product = json!({"@context": "https://schema.org", "@type": "Product", "name": "Espresso", "image": pictures});
    Html(format!(
        "<!doctype html><title>Espresso</title><script type=\"application/ld+json\">{product}</script><h1>Espresso</h1>"
    ))
}

async fn picture(State(shop): State<Shop>, Path(number): Path<usize>) -> Response {
    match shop.pictures.lock().expect("nothing panics with the lock").get(number) {
        Some((media_type, bytes)) => ([(CONTENT_TYPE, media_type.clone())], bytes.clone()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
