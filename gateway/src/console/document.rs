//! `GET /console/openapi.json`.

use axum::Extension;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use crate::compression::Unchanging;

/// The serialized document of the console's routes.
#[derive(Clone)]
pub struct ConsoleDocument(pub Bytes);

/// Read the console's document
///
/// Returns the routes of the console as OpenAPI 3.1. It needs no session and is the same for every caller.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "getConsoleDocument", tag = "Document",
    security(()),
    responses((status = 200, description = "The OpenAPI document.", content_type = "application/json", body = Object))
)]
pub async fn serve(Extension(ConsoleDocument(document)): Extension<ConsoleDocument>) -> Response {
    let kept = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "public, max-age=300")];
    (Unchanging::named("console/openapi.json"), kept, document).into_response()
}
