//! `POST /product-references/import`: the gallery of a public product page as a pack (decisions 14.2 to 14.4).

use axum::Extension;
use axum::extract::State;
use domain::id::{AccountUid, CanvasHandle, NodeId};
use domain::import::{Discovery, Outcome, ProductPage, Request, ReviewReason, Variant};
use domain::job::canvas_url;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{ImportedImage, Start, answer};
use crate::extract::caller::{Caller, ImportProduct};
use crate::extract::canvas::canvas_of;
use crate::extract::idempotency::fingerprint;
use crate::extract::json::{Input, Unread, only};
use crate::observe::Trace;
use crate::problem::{ErrorEnvelope, Problem, Result};
use crate::reply;
use crate::start::url_violation;
use crate::state::App;

const PATH: &str = "/product-references/import";

fn default_title() -> String {
    "Product References".to_owned()
}

/// A product page to import from.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProductImportRequest {
    /// Plain id or handle.
    #[schema(min_length = 1, max_length = 600, pattern = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$")]
    canvas_id: String,
    /// A public HTTPS URL.
    #[schema(min_length = 9, max_length = 4096, pattern = "^https://", format = Uri)]
    product_page_url: String,
    /// The variant wanted, exactly as the page's own data names it: `key=value`.
    #[schema(min_length = 3, max_length = 300, pattern = "^[^=]+=.", nullable = false)]
    variant_selector: Option<String>,
    /// The Section's title.
    #[serde(default = "default_title")]
    #[schema(min_length = 1, max_length = 160, default = default_title)]
    title: String,
    /// Names this import, so that sending it again brings nothing twice.
    #[schema(min_length = 8, max_length = 200)]
    idempotency_key: String,
}

impl Input for ProductImportRequest {}

/// What a product import came to.
#[derive(Serialize, ToSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ProductImport {
    /// A pack stands on the canvas.
    Succeeded(ImportedPack),
    /// A person has to decide or to look first; nothing was made.
    ReviewRequired(ImportReview),
}

/// A pack of pictures.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportedPack {
    /// Whether this is the answer to an earlier, equal request.
    replayed: bool,
    /// `canvas:<ownerUid>:<id>`.
    canvas_id: CanvasHandle,
    /// The revision that it made.
    canvas_revision: String,
    /// For people.
    #[schema(format = Uri)]
    canvas_url: String,
    /// The page.
    page: ProductPage,
    /// The variant that the pictures show.
    variant: Variant,
    /// The Section.
    pack: PackSection,
    /// The pictures, in the order of the page.
    #[schema(min_items = 1, max_items = 12)]
    images: Vec<ImportedImage>,
    /// How they were found.
    discovery: Discovery,
}

/// The Section of a pack.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackSection {
    /// Its plain id, as `metadata.sectionId` of its members has it.
    section_id: NodeId,
    /// Its title.
    title: String,
    /// How many pictures it holds.
    #[schema(minimum = 1, maximum = 12)]
    image_count: usize,
}

/// What a person has to decide or to look at.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportReview {
    /// Always true.
    #[schema(schema_with = only::<true>)]
    review_required: bool,
    /// Why.
    reason: ReviewReason,
    /// `canvas:<ownerUid>:<id>`.
    canvas_id: CanvasHandle,
    /// The page.
    page: ProductPage,
    /// What is known of variants.
    variant: Variant,
    /// What was found.
    discovery: Discovery,
}

/// Import a product page's gallery
#[utoipa::path(
    post, path = "/product-references/import", operation_id = "importProductReferences", tag = "Assets",
    request_body = ProductImportRequest, security(("bearer" = ["canvas:read", "canvas:write", "asset:read"])),
    responses(
        (status = 200, body = ProductImport),
        (status = 502, body = ErrorEnvelope, description = "The page's server answers an error or cannot be reached."),
        (status = 504, body = ErrorEnvelope, description = "It took too long; the same key takes the import up again."),
    )
)]
pub async fn import(
    State(app): State<App>,
    caller: Caller<ImportProduct>,
    Extension(trace): Extension<Trace>,
    body: Unread,
) -> Result {
    let rules = |body: &Value| url_violation(&app, "productPageUrl", &body["productPageUrl"]);
    let start = judge(&app, &caller.account, body.json_by(rules).await?, trace)?;
    let answer = answer(&app, &caller, &start).await?;
    let canvas = start.canvas;
    let document = match answer.outcome {
        Outcome::Imported(imported) => {
            let pack = imported.pack.ok_or_else(|| Problem::internal("a product import without a pack"))?;
            ProductImport::Succeeded(ImportedPack {
                replayed: answer.replayed,
                canvas_revision: imported.revision,
                canvas_url: canvas_url(&app.config.public_url, &canvas),
                page: pack.page,
                variant: pack.variant,
                pack: PackSection { section_id: pack.section, title: pack.title, image_count: imported.images.len() },
                images: imported.images.iter().map(|image| ImportedImage::of(&app, &canvas, image)).collect(),
                discovery: pack.discovery,
                canvas_id: canvas,
            })
        }
        Outcome::Review(review) => ProductImport::ReviewRequired(ImportReview {
            review_required: true,
            reason: review.reason,
            canvas_id: canvas,
            page: review.page,
            variant: review.variant,
            discovery: review.discovery,
        }),
        Outcome::Failed(_) => return Err(Problem::internal("a failed import was answered")),
    };
    Ok(reply::ok(&document))
}

/// A request whose form and rules hold. Two spellings of one request have one fingerprint.
fn judge(app: &App, account: &AccountUid, request: ProductImportRequest, trace: Trace) -> Result<Start> {
    let canvas = canvas_of(&request.canvas_id, None, account)?;
    let url = app.guard.check_url(&request.product_page_url);
    let url = url.map_err(|refusal| Problem::invalid("productPageUrl", refusal.to_string()))?;
    let ProductImportRequest { variant_selector: selector, title, idempotency_key: key, .. } = request;
    let body = json!({ "productPageUrl": url, "variantSelector": selector, "title": title });
    Ok(Start {
        fingerprint: fingerprint(PATH, &canvas.to_string(), &body),
        canvas,
        key,
        request: Request::Product { url: url.into(), selector, title },
        trace,
    })
}
