//! `POST /images/import`: one public picture as a durable node (decisions 14.1).

use axum::Extension;
use axum::extract::State;
use domain::id::{AccountUid, CanvasHandle};
use domain::import::{Outcome, Request};
use domain::job::canvas_url;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{ImportedImage, Start, answer};
use crate::extract::caller::{Caller, ImportImage};
use crate::extract::canvas::canvas_of;
use crate::extract::idempotency::fingerprint;
use crate::extract::json::{Input, Unread};
use crate::observe::Trace;
use crate::problem::{ErrorEnvelope, Problem, Result};
use crate::reply;
use crate::start::url_violation;
use crate::state::App;

const PATH: &str = "/images/import";

/// A picture to import.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageImportRequest {
    /// Plain id or handle.
    #[schema(min_length = 1, max_length = 600, pattern = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$")]
    canvas_id: String,
    /// A public HTTPS URL.
    #[schema(min_length = 9, max_length = 4096, pattern = "^https://", format = Uri)]
    image_url: String,
    /// The node's title; the file's name when it is left out.
    #[schema(min_length = 1, max_length = 160, nullable = false)]
    title: Option<String>,
    /// Names this import, so that sending it again brings nothing twice.
    #[schema(min_length = 8, max_length = 200)]
    idempotency_key: String,
    /// Left edge of the node; the first free spot to the right of the content when it is left out (an extension).
    #[schema(minimum = -10_000_000, maximum = 10_000_000, nullable = false)]
    x: Option<f64>,
    /// Top edge of the node, likewise (an extension).
    #[schema(minimum = -10_000_000, maximum = 10_000_000, nullable = false)]
    y: Option<f64>,
}

impl Input for ImageImportRequest {}

/// What an image import made.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageImport {
    /// `canvas:<ownerUid>:<id>`.
    canvas_id: CanvasHandle,
    /// The revision that it made.
    canvas_revision: String,
    /// For people.
    #[schema(format = Uri)]
    canvas_url: String,
    /// Whether this is the answer to an earlier, equal request.
    replayed: bool,
    /// The picture.
    image: ImportedImage,
}

/// Import a public picture
#[utoipa::path(
    post, path = "/images/import", operation_id = "importImage", tag = "Images", request_body = ImageImportRequest,
    security(("bearer" = ["canvas:read", "canvas:write", "asset:read", "image:generate"])),
    responses(
        (status = 200, body = ImageImport),
        (status = 502, body = ErrorEnvelope, description = "The picture's server answers an error or cannot be reached."),
        (status = 504, body = ErrorEnvelope, description = "It took too long; the same key takes the import up again."),
    )
)]
pub async fn import(
    State(app): State<App>,
    caller: Caller<ImportImage>,
    Extension(trace): Extension<Trace>,
    body: Unread,
) -> Result {
    let rules = |body: &Value| url_violation(&app, "imageUrl", &body["imageUrl"]);
    let start = judge(&app, &caller.account, body.json_by(rules).await?, trace)?;
    let answer = answer(&app, &caller, &start).await?;
    let Outcome::Imported(imported) = &answer.outcome else {
        return Err(Problem::internal("an image import was left for review"));
    };
    let image = imported.images.first().ok_or_else(|| Problem::internal("an image import without an image"))?;
    Ok(reply::ok(&ImageImport {
        canvas_revision: imported.revision.clone(),
        canvas_url: canvas_url(&app.config.public_url, &start.canvas),
        replayed: answer.replayed,
        image: ImportedImage::of(&app, &start.canvas, image),
        canvas_id: start.canvas,
    }))
}

/// A request whose form and rules hold. Two spellings of one request have one fingerprint.
fn judge(app: &App, account: &AccountUid, request: ImageImportRequest, trace: Trace) -> Result<Start> {
    let canvas = canvas_of(&request.canvas_id, None, account)?;
    let url = app.guard.check_url(&request.image_url);
    let url = url.map_err(|refusal| Problem::invalid("imageUrl", refusal.to_string()))?;
    let ImageImportRequest { title, x, y, idempotency_key: key, .. } = request;
    let body = json!({ "imageUrl": url, "title": title, "x": x, "y": y });
    Ok(Start {
        fingerprint: fingerprint(PATH, &canvas.to_string(), &body),
        canvas,
        key,
        request: Request::Image { url: url.into(), title, x, y },
        trace,
    })
}
