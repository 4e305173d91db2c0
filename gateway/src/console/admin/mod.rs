//! Below `/console/admin`: what administrators do (docs/reference/administration.md).
//!
//! **Guarantee.** Every route here takes an [`Administrator`]. None shows what accounts make: no titles, prompts, images, keys or secrets.
//!
//! **Mechanism.** Routes and the `admin` commands call the same functions of `app`, which write into the audit.

mod accounts;
mod administrator;
mod audit;
mod credits;
mod deliveries;
mod document;
mod health;
mod jobs;
mod openapi;
mod recipes;
mod tokens;

use axum::Router;
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use accounts::Account as ListedAccount;
pub use document::AdminDocument;

use crate::state::App;

/// The routes and their document.
pub fn documented() -> (Router<App>, Value) {
    let admin = OpenApiRouter::new()
        .routes(routes!(accounts::list, accounts::create))
        .routes(routes!(accounts::read, accounts::change))
        .routes(routes!(accounts::end_sessions))
        .routes(routes!(credits::move_credit))
        .routes(routes!(tokens::list))
        .routes(routes!(tokens::revoke))
        .routes(routes!(recipes::list, recipes::publish))
        .routes(routes!(deliveries::list))
        .routes(routes!(deliveries::replay))
        .routes(routes!(jobs::list))
        .routes(routes!(jobs::cancel))
        .routes(routes!(health::read))
        .routes(routes!(audit::list))
        .routes(routes!(document::serve));
    let (router, document) =
        OpenApiRouter::with_openapi(openapi::base()).nest("/console/admin", admin).split_for_parts();
    (router, openapi::complete(document))
}
