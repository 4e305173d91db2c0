//! The routes below `/console`.

mod session;
mod sessions;

use axum::Router;
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{ROOT, document, openapi};
use crate::state::App;

/// The routes and their document.
pub fn documented() -> (Router<App>, Value) {
    let console = OpenApiRouter::new()
        .routes(routes!(session::sign_in, session::read, session::sign_out))
        .routes(routes!(sessions::list, sessions::revoke_all))
        .routes(routes!(sessions::end))
        .routes(routes!(document::serve));
    let (router, document) = OpenApiRouter::with_openapi(openapi::base()).nest(ROOT, console).split_for_parts();
    (router, openapi::complete(document))
}
