//! The server over streamable HTTP, without sessions: any process answers any request.

use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::combinators::BoxBody;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::server::Server;

/// The longest message, in bytes: a picture of 8 MiB in base64, and what stands around it.
pub const BODY_MAX: usize = 12 * 1024 * 1024;

/// The server over HTTP.
#[derive(Clone)]
pub struct Http(StreamableHttpService<Server, NeverSessionManager>);

impl Http {
    /// Serves `server` to pages of these origins, and to every caller that is no page.
    pub fn new(server: Server, origins: impl IntoIterator<Item = String>) -> Self {
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(BODY_MAX)
            // Each request needs a token, which a foreign page does not have.
            .disable_allowed_hosts()
            .with_allowed_origins(origins)
            .enforce_origin_validation();
        let make = move || Ok(server.clone());
        Self(StreamableHttpService::new(make, Arc::new(NeverSessionManager::default()), config))
    }

    /// Answers a request whose credential is valid.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<BoxBody<Bytes, Infallible>>
    where
        B: Body + Send + 'static,
        B::Error: Display,
    {
        self.0.handle(request).await
    }
}
