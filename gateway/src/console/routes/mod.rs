//! The routes below `/console`.

mod account;
mod apps;
mod assets;
pub mod audit;
mod authorizations;
mod canvases;
mod connections;
mod credit;
mod deliveries;
mod devices;
mod identities;
mod members;
mod oidc;
mod pointer;
pub mod session;
mod sessions;
pub mod tokens;

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
        .routes(routes!(oidc::list))
        .routes(routes!(oidc::start))
        .routes(routes!(oidc::callback))
        .routes(routes!(oidc::link))
        .routes(routes!(oidc::logout))
        .routes(routes!(identities::list))
        .routes(routes!(identities::unlink))
        .routes(routes!(account::rename))
        .routes(routes!(sessions::list, sessions::revoke_all))
        .routes(routes!(sessions::end))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::revoke))
        .routes(routes!(tokens::set_budgets))
        .routes(routes!(authorizations::preview))
        .routes(routes!(authorizations::decide))
        .routes(routes!(devices::preview))
        .routes(routes!(devices::decide))
        .routes(routes!(apps::list))
        .routes(routes!(apps::revoke))
        .routes(routes!(apps::set_budgets))
        .routes(routes!(connections::list, connections::save))
        .routes(routes!(connections::delete))
        .routes(routes!(members::list))
        .routes(routes!(members::set, members::remove))
        .routes(routes!(canvases::delete))
        .routes(routes!(pointer::show))
        .routes(routes!(assets::delete))
        .routes(routes!(deliveries::list))
        .routes(routes!(deliveries::replay))
        .routes(routes!(credit::read))
        .routes(routes!(audit::list))
        .routes(routes!(document::serve));
    let (router, document) =
        OpenApiRouter::with_openapi(openapi::base(&openapi::CONSOLE)).nest(ROOT, console).split_for_parts();
    (router, openapi::complete(document, &openapi::CONSOLE))
}
