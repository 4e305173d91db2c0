//! `POST /images/import`: imports one public image as an image node (docs/reference/imports.md#import-an-image).

use axum::Extension;
use axum::extract::State;
use db::accounts::Credential;
use domain::Violation;
use domain::id::{AccountUid, CanvasHandle, CanvasReference, IdempotencyKey};
use domain::import::{ImageImport, ImportOutcome, Request};
use domain::job::canvas_url;
use egress::Guard;
use serde::Deserialize;
use serde_json::json;
use url::Url;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Start, answer, image_documents};
use crate::extract::caller::{Caller, ImportImage};
use crate::extract::canvas::canvas_of;
use crate::extract::check::Check;
use crate::extract::idempotency::fingerprint;
use crate::extract::json::{Input, JsonBody};
use crate::observe::Trace;
use crate::openapi::errors::WriteErrors;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

const PATH: &str = "/images/import";

/// Request to import an image.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageImportRequest {
    /// Plain id or handle of the canvas.
    #[schema(value_type = CanvasReference)]
    canvas_id: String,
    /// Public HTTPS URL of the image.
    #[schema(min_length = 9, max_length = 4096, pattern = "^https://", format = Uri)]
    image_url: String,
    /// Title of the node; the name of the file when omitted.
    #[schema(min_length = 1, max_length = 160)]
    title: Option<String>,
    /// Idempotency key: an equal request with the same key imports the image once.
    #[schema(value_type = IdempotencyKey)]
    idempotency_key: String,
    /// Left edge of the node, in canvas units; the first free spot to the right of the content when omitted.
    #[schema(minimum = -10_000_000, maximum = 10_000_000)]
    x: Option<f64>,
    /// Top edge of the node, in canvas units; placed like `x` when omitted.
    #[schema(minimum = -10_000_000, maximum = 10_000_000)]
    y: Option<f64>,
}

impl Input for ImageImportRequest {}

/// A checked request.
struct Checked {
    canvas: CanvasHandle,
    key: String,
    url: Url,
    title: Option<String>,
    x: Option<f64>,
    y: Option<f64>,
}

impl ImageImportRequest {
    fn check(self, account: &AccountUid, guard: &Guard) -> Result<Checked, Vec<Violation>> {
        let mut check = Check::default();
        let url = check.parsed("imageUrl", guard.check_url(&self.image_url));
        let canvas = canvas_of(&mut check, &self.canvas_id, None, account);
        let Self { idempotency_key: key, title, x, y, .. } = self;
        check.finish(|| Some(Checked { canvas: canvas?, key, url: url?, title, x, y }))
    }
}

/// Import a public image
///
/// Fetches one image from a public HTTPS URL, stores it as an asset and shows it in a new image node. Use it to
/// bring an image from the web onto a canvas. Private addresses are refused, also behind redirects. It never
/// calls a model and spends no credit. The call waits up to 55 seconds; repeat it with the same key after a
/// timeout.
#[utoipa::path(
    post, path = "/images/import", operation_id = "importImage", tag = "Images", request_body = ImageImportRequest,
    security(("bearer" = ["canvas:read", "canvas:write", "asset:read", "image:generate"])),
    responses(
        WriteErrors,
        (status = 200, description = "The imported image.", body = ImageImport),
        (status = 502, description = "The image's server cannot be reached or returns an error."),
        (status = 504, description = "The import takes too long. The same key resumes it."),
    )
)]
pub async fn import(
    State(app): State<App>,
    caller: Caller<ImportImage>,
    Extension(trace): Extension<Trace>,
    body: JsonBody,
) -> Result {
    let check = |request: ImageImportRequest| request.check(&caller.account, &app.guard);
    let start = start(&app, &caller, body.checked(check).await?, trace);
    let answer = answer(&caller, &start).await?;
    let ImportOutcome::Imported(imported) = &answer.outcome else {
        return Err(Problem::internal("an image import was left for review"));
    };
    let mut images = image_documents(&app, &start.canvas, &imported.images).await?;
    images.truncate(1);
    let image = images.pop().ok_or_else(|| Problem::internal("an image import without an image"))?;
    Ok(reply::ok(&ImageImport {
        canvas_revision: imported.revision.clone(),
        canvas_url: canvas_url(&app.config.public_url, &start.canvas),
        replayed: answer.replayed,
        image,
        canvas_id: start.canvas,
    }))
}

/// The start of an import. Different spellings of one request have the same fingerprint.
fn start<'a>(app: &'a App, caller: &'a Credential, request: Checked, trace: Trace) -> Start<'a> {
    let Checked { canvas, key, url, title, x, y } = request;
    let body = json!({ "imageUrl": url, "title": title, "x": x, "y": y });
    Start {
        app,
        caller,
        id: Uuid::now_v7(),
        fingerprint: fingerprint(PATH, &canvas.to_string(), &body),
        canvas,
        key,
        request: Request::Image { url: url.into(), title, x, y },
        trace,
    }
}
