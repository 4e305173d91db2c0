//! `POST /images/edit`.

use axum::Extension;
use axum::extract::State;
use domain::job::{ImageJob, JobOperation};

use super::body::ImageStart;
use crate::extract::caller::{Caller, GenerateImages};
use crate::extract::json::Unread;
use crate::observe::Trace;
use crate::problem::{ErrorEnvelope, Result};
use crate::state::App;

/// Edit images
#[utoipa::path(
    post, path = "/images/edit", operation_id = "editImages", tag = "Images", request_body = ImageStart,
    security(("bearer" = ["canvas:read", "canvas:write", "asset:read", "image:generate"])),
    responses(
        (status = 202, body = ImageJob),
        (status = 402, body = ErrorEnvelope, description = "The account's credit does not cover the work."),
    )
)]
pub async fn edit(
    State(app): State<App>,
    caller: Caller<GenerateImages>,
    Extension(trace): Extension<Trace>,
    body: Unread,
) -> Result {
    super::start(&app, &caller, JobOperation::Edit, body, trace).await
}
