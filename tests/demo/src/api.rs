//! The HTTP API as the demo uses it: every request is repeated until the service has answered it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::PATIENCE;
use crate::error::Error;

/// The pause between two attempts.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// How long a poll asks the service to wait for a change, in seconds (docs/reference/conventions.md#long-polls).
const WAIT_SECONDS: u32 = 20;

/// An HTTP client of one service, with a token.
pub struct Api {
    client: Client,
    base: String,
    token: String,
}

impl Api {
    /// Creates a client of the service at `base` (scheme, host and port) that sends `token`.
    pub fn new(base: &str, token: &str) -> Result<Self, Error> {
        #[expect(
            clippy::disallowed_methods,
            reason = "a client of the service, not a part of it: it calls the operator's own URL"
        )]
        let client = Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(u64::from(WAIT_SECONDS) + 20))
            .build()
            .map_err(Error::Client)?;
        Ok(Self { client, base: base.trim_end_matches('/').to_owned(), token: token.to_owned() })
    }

    /// Creates the canvas `id`, or reads it if an earlier attempt created it and its response was lost.
    pub async fn create_canvas(&self, id: &str, title: &str) -> Result<Value, Error> {
        match self.post("/canvases", &json!({"id": id, "title": title})).await {
            Err(Error::Refused { status: 409, .. }) => self.canvas(id).await,
            other => other,
        }
    }

    /// Reads the canvas `id`.
    pub async fn canvas(&self, id: &str) -> Result<Value, Error> {
        let url = self.path(&format!("/canvases/{id}"));
        self.json(&format!("GET {url}"), || self.client.get(&url)).await
    }

    /// Uploads a picture into the canvas `canvas`.
    pub async fn upload(&self, canvas: &str, name: &str, media_type: &str, bytes: Vec<u8>) -> Result<Value, Error> {
        let url = format!("{}?canvasId={canvas}", self.path("/assets"));
        let key = Uuid::new_v4().to_string();
        let bytes = Bytes::from(bytes);
        self.json(&format!("POST {url}"), || {
            self.client
                .post(&url)
                .header("Content-Type", media_type)
                .header("X-Service-File-Name", name)
                .header("Idempotency-Key", &key)
                .body(bytes.clone())
        })
        .await
    }

    /// Reads an asset by its handle.
    pub async fn asset(&self, handle: &str) -> Result<Value, Error> {
        let url = self.path(&format!("/assets/{handle}"));
        self.json(&format!("GET {url}"), || self.client.get(&url)).await
    }

    /// Posts `body`; a mutation must carry its idempotency key.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Error> {
        let url = self.path(path);
        self.json(&format!("POST {url}"), || self.client.post(&url).json(body)).await
    }

    /// Reads the run at `poll_url`, a path of the service, and waits there for a change.
    pub async fn poll(&self, poll_url: &str) -> Result<Value, Error> {
        let url = format!("{}{poll_url}", self.base);
        self.json(&format!("GET {url}"), || self.client.get(&url).header("Prefer", format!("wait={WAIT_SECONDS}")))
            .await
    }

    /// Downloads the picture of a preview URL. The URL has the service's public address; the demo replaces it with the local one.
    pub async fn download(&self, preview_url: &str) -> Result<Vec<u8>, Error> {
        let path = preview_url.find("/api/").map_or(preview_url, |start| &preview_url[start..]);
        let url = format!("{}{path}", self.base);
        Ok(self.answer("GET /assets/preview", || self.client.get(&url)).await?.into())
    }

    fn path(&self, path: &str) -> String {
        format!("{}/api/canvas-agent/v1{path}", self.base)
    }

    async fn json(&self, what: &str, request: impl Fn() -> RequestBuilder) -> Result<Value, Error> {
        let body = self.answer(what, || request().bearer_auth(&self.token)).await?;
        serde_json::from_slice(&body).map_err(|_| Error::Unexpected { what: "an answer of JSON" })
    }

    /// Sends `request` until it gets a complete response: a success, or an error that repeating would not change.
    async fn answer(&self, what: &str, request: impl Fn() -> RequestBuilder) -> Result<Bytes, Error> {
        let began = Instant::now();
        let mut hinted = false;
        loop {
            let patient = began.elapsed() < PATIENCE;
            match exchange(request()).await {
                Ok((status, body)) if status.is_success() => return Ok(body),
                Ok((status, _)) if patient && is_temporary(status) => {}
                Ok((status, body)) => {
                    let body = String::from_utf8_lossy(&body).into_owned();
                    return Err(Error::Refused { what: what.to_owned(), status: status.as_u16(), body });
                }
                Err(_) if patient => {}
                Err(source) => return Err(Error::NoAnswer { what: what.to_owned(), source }),
            }
            if !hinted {
                hinted = true;
                println!("      {what} is not answered; if the gateway is down, deploy/local/up --no-demo restarts it");
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}

async fn exchange(request: RequestBuilder) -> Result<(StatusCode, Bytes), reqwest::Error> {
    let answer = request.send().await?;
    Ok((answer.status(), answer.bytes().await?))
}

/// Whether the same request may succeed later (docs/reference/errors.md#retrying).
fn is_temporary(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}
