//! `GET /console/admin/openapi.json`.

use axum::Extension;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use super::administrator::Administrator;

/// The serialized document of the routes for administrators.
#[derive(Clone)]
pub struct AdminDocument(pub Bytes);

/// Read the document of administration
///
/// Returns the routes for administrators as OpenAPI 3.1.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "getAdminDocument", tag = "Document",
    responses(
        crate::openapi::errors::ScopeErrors,
        (status = 200, description = "The OpenAPI document.", content_type = "application/json", body = Object)
    )
)]
pub async fn serve(_: Administrator, Extension(AdminDocument(document)): Extension<AdminDocument>) -> Response {
    let private = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
    (private, document).into_response()
}
