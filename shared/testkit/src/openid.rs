//! An OpenID provider that answers what a test tells it to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::signer::Signer;

/// The client that the provider knows.
pub const CLIENT: &str = "canvas";

/// An answer: its status and its body.
pub type Answer = (u16, Vec<u8>);

/// A provider on loopback. It stops when it is dropped.
pub struct OpenId {
    /// Its issuer.
    pub issuer: String,
    /// The key that it signs with.
    pub signer: Signer,
    answers: Arc<Mutex<Answers>>,
    server: JoinHandle<()>,
}

/// What it answers. Tests change it.
pub struct Answers {
    pub metadata: Value,
    /// At `/keys`.
    pub keys: Answer,
    /// At `/token`, by code. Each is given once.
    pub codes: HashMap<String, (u16, Value)>,
    /// At `/userinfo`, by access token.
    pub userinfo: HashMap<String, Value>,
    /// Paths that redirect, with their destinations.
    pub redirects: HashMap<String, String>,
    /// The requests so far: paths, with the body and the authorization of those to `/token`.
    pub requests: Vec<String>,
}

impl OpenId {
    /// Starts a provider that works.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port on loopback");
        let issuer = format!("http://{}", listener.local_addr().expect("an address"));
        let signer = Signer::rsa("k1");
        let answers = Arc::new(Mutex::new(Answers {
            metadata: json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{issuer}/authorize"),
                "token_endpoint": format!("{issuer}/token"),
                "jwks_uri": format!("{issuer}/keys"),
                "userinfo_endpoint": format!("{issuer}/userinfo"),
            }),
            keys: (200, json!({ "keys": [signer.jwk()] }).to_string().into_bytes()),
            codes: HashMap::new(),
            userinfo: HashMap::new(),
            redirects: HashMap::new(),
            requests: Vec::new(),
        }));
        let router = Router::new().fallback(serve).with_state(Arc::clone(&answers));
        let server = tokio::spawn(async move { axum::serve(listener, router).await.expect("serves") });
        Self { issuer, signer, answers, server }
    }

    /// What it answers, to be changed.
    pub fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves these keys from now on.
    pub fn set_keys(&self, keys: &[&Signer]) {
        let keys: Vec<_> = keys.iter().map(|key| key.jwk()).collect();
        self.answers().keys = (200, json!({ "keys": keys }).to_string().into_bytes());
    }

    /// How often a path was asked for.
    pub fn count(&self, path: &str) -> usize {
        self.answers().requests.iter().filter(|request| request.split(' ').next() == Some(path)).count()
    }

    /// The claims of an ID token that is right for this nonce.
    pub fn claims(&self, subject: &str, nonce: &str) -> Value {
        let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_secs();
        json!({ "iss": self.issuer, "aud": CLIENT, "sub": subject, "nonce": nonce, "iat": now, "exp": now + 300 })
    }

    /// A code that is good for this ID token, and for userinfo that knows no more than its subject.
    pub fn grant(&self, id_token: &str) -> String {
        let code = format!("code-{}", uuid::Uuid::new_v4());
        let answer = json!({ "id_token": id_token, "access_token": code, "token_type": "Bearer" });
        let payload = id_token.split('.').nth(1).and_then(|payload| URL_SAFE_NO_PAD.decode(payload).ok());
        let claims: Value = payload.and_then(|payload| serde_json::from_slice(&payload).ok()).unwrap_or_default();
        let mut answers = self.answers();
        answers.codes.insert(code.clone(), (200, answer));
        answers.userinfo.insert(code.clone(), json!({ "sub": claims["sub"] }));
        drop(answers);
        code
    }
}

impl Drop for OpenId {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(State(answers): State<Arc<Mutex<Answers>>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_else(|_| Bytes::new());
    let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
    let path = parts.uri.path().to_owned();
    let authorization = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let authorization = authorization.unwrap_or_default();
    let body = String::from_utf8_lossy(&body).into_owned();
    let recorded = if path == "/token" { format!("{path} {body} {authorization}") } else { path.clone() };
    answers.requests.push(recorded);
    if let Some(to) = answers.redirects.get(&path) {
        return (StatusCode::FOUND, [(header::LOCATION, to.clone())]).into_response();
    }
    let answer = match path.as_str() {
        "/.well-known/openid-configuration" => (200, answers.metadata.to_string().into_bytes()),
        "/keys" => answers.keys.clone(),
        "/token" => {
            let code = url::form_urlencoded::parse(body.as_bytes()).find(|(name, _)| name == "code");
            let answer = code.and_then(|(_, code)| answers.codes.remove(&*code));
            let (status, answer) = answer.unwrap_or((400, json!({ "error": "invalid_grant" })));
            (status, answer.to_string().into_bytes())
        }
        "/userinfo" => match answers.userinfo.get(authorization.trim_start_matches("Bearer ")) {
            Some(claims) => (200, claims.to_string().into_bytes()),
            None => (401, b"{}".to_vec()),
        },
        _ => (404, b"{}".to_vec()),
    };
    let status = StatusCode::from_u16(answer.0).expect("a status");
    (status, [(header::CONTENT_TYPE, "application/json")], answer.1).into_response()
}
