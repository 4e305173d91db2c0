//! `POST /product-references/import`: imports the gallery of a public product page as a pack
//! (docs/reference/imports.md#gallery-discovery).

use axum::Extension;
use axum::extract::State;
use db::accounts::Credential;
use domain::Violation;
use domain::id::{AccountUid, CanvasHandle, CanvasReference, IdempotencyKey};
use domain::import::{ImportOutcome, ImportReview, ImportedPack, PackSection, ProductImport, Request};
use domain::job::canvas_url;
use egress::Guard;
use serde::Deserialize;
use serde_json::json;
use url::Url;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Start, answer, image_documents};
use crate::extract::caller::{Caller, ImportProduct};
use crate::extract::canvas::canvas_of;
use crate::extract::check::Check;
use crate::extract::idempotency::fingerprint;
use crate::extract::json::{Input, JsonBody};
use crate::observe::Trace;
use crate::openapi::errors::WriteErrors;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

const PATH: &str = "/product-references/import";

fn default_title() -> String {
    "Product References".to_owned()
}

/// Request to import the gallery of a product page.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProductImportRequest {
    /// Plain id or handle of the canvas.
    #[schema(value_type = CanvasReference)]
    canvas_id: String,
    /// Public HTTPS URL of the product page.
    #[schema(min_length = 9, max_length = 4096, pattern = "^https://", format = Uri)]
    product_page_url: String,
    /// Variant to import, `key=value` exactly as the page's own data names it.
    #[schema(min_length = 3, max_length = 300, pattern = "^[^=]+=.")]
    variant_selector: Option<String>,
    /// Title of the Section.
    #[serde(default = "default_title")]
    #[schema(min_length = 1, max_length = 160, default = default_title)]
    title: String,
    /// Idempotency key: an equal request with the same key imports the gallery once.
    #[schema(value_type = IdempotencyKey)]
    idempotency_key: String,
}

impl Input for ProductImportRequest {}

/// A checked request.
struct Checked {
    canvas: CanvasHandle,
    key: String,
    url: Url,
    selector: Option<String>,
    title: String,
}

impl ProductImportRequest {
    fn check(self, account: &AccountUid, guard: &Guard) -> Result<Checked, Vec<Violation>> {
        let mut check = Check::default();
        let url = check.parsed("productPageUrl", guard.check_url(&self.product_page_url));
        let canvas = canvas_of(&mut check, &self.canvas_id, None, account);
        let Self { idempotency_key: key, variant_selector: selector, title, .. } = self;
        check.finish(|| Some(Checked { canvas: canvas?, key, url: url?, selector, title }))
    }
}

/// Import a product page's gallery
///
/// Reads a public product page and stores up to 12 images of its gallery as assets and nodes in one new
/// Section. Use it to collect references of a product. A variant is never guessed: when the images depend on
/// one, the answer is `review_required` and nothing is created. No model is called and no credit is spent. The
/// call waits up to 55 seconds; repeat it with the same key after a timeout.
#[utoipa::path(
    post, path = "/product-references/import", operation_id = "importProductReferences", tag = "Assets",
    request_body = ProductImportRequest, security(("bearer" = ["canvas:read", "canvas:write", "asset:read"])),
    responses(
        WriteErrors,
        (status = 200, description = "The imported pack, or the reason why a person must decide.", body = ProductImport),
        (status = 502, description = "The page's server cannot be reached or returns an error."),
        (status = 504, description = "The import takes too long. The same key resumes it."),
    )
)]
pub async fn import(
    State(app): State<App>,
    caller: Caller<ImportProduct>,
    Extension(trace): Extension<Trace>,
    body: JsonBody,
) -> Result {
    let check = |request: ProductImportRequest| request.check(&caller.account, &app.guard);
    let start = start(&app, &caller, body.checked(check).await?, trace);
    let answer = answer(&caller, &start).await?;
    let canvas = start.canvas;
    let document = match answer.outcome {
        ImportOutcome::Imported(imported) => {
            let pack = imported.pack.ok_or_else(|| Problem::internal("a product import without a pack"))?;
            ProductImport::Succeeded(ImportedPack {
                replayed: answer.replayed,
                canvas_revision: imported.revision,
                canvas_url: canvas_url(&app.config.public_url, &canvas),
                page: pack.page,
                variant: pack.variant,
                pack: PackSection { section_id: pack.section, title: pack.title, image_count: imported.images.len() },
                images: image_documents(&app, &canvas, &imported.images).await?,
                discovery: pack.discovery,
                canvas_id: canvas,
            })
        }
        ImportOutcome::Review(review) => ProductImport::ReviewRequired(ImportReview {
            review_required: true,
            reason: review.reason.into(),
            canvas_id: canvas,
            page: review.page,
            variant: review.variant,
            discovery: review.discovery,
        }),
        ImportOutcome::Failed(_) => return Err(Problem::internal("a failed import was answered")),
    };
    Ok(reply::ok(&document))
}

/// The start of an import. Different spellings of one request have the same fingerprint.
fn start<'a>(app: &'a App, caller: &'a Credential, request: Checked, trace: Trace) -> Start<'a> {
    let Checked { canvas, key, url, selector, title } = request;
    let body = json!({ "productPageUrl": url, "variantSelector": selector, "title": title });
    Start {
        app,
        caller,
        id: Uuid::now_v7(),
        fingerprint: fingerprint(PATH, &canvas.to_string(), &body),
        canvas,
        key,
        request: Request::Product { url: url.into(), selector, title },
        trace,
    }
}
