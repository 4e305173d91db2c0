//! `POST /elements` (docs/reference/elements.md#create-an-element).

use axum::extract::State;
use db::kept::Kept;
use domain::Violation;
use domain::element::{Content, ElementRead, ElementRecord, ElementType, Listed};
use domain::id::{AssetId, ElementCollectionId};
use serde::Deserialize;
use utoipa::ToSchema;

use super::body::{ElementContent, note_repeated, require_known, unknown_collections, unknown_images};
use crate::extract::caller::{Caller, WriteElements};
use crate::extract::check::Check;
use crate::extract::json::{Input, JsonBody};
use crate::openapi::errors::ScopeErrors;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::source_health::Sources;
use crate::state::{App, retrying};

/// Request to create an Element from guidelines, from one to eight images, or from both.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateElement {
    /// Name, shown to people and used in prompts.
    #[schema(min_length = 1, max_length = 160)]
    name: String,
    /// Type of what the Element represents.
    #[serde(rename = "type")]
    kind: ElementType,
    /// Plain ids of image assets of the account. None is named twice.
    #[schema(max_items = 8)]
    source_asset_ids: Vec<AssetId>,
    /// Guidelines, appended to prompts that use the Element.
    #[schema(max_length = 2000)]
    guidelines: Option<String>,
    /// Plain ids of collections of the account. None is named twice.
    #[serde(default)]
    #[schema(max_items = 24)]
    collection_ids: Vec<ElementCollectionId>,
}

impl Input for CreateElement {}

impl CreateElement {
    /// The content and the collections.
    fn check(self) -> Result<(Content, Vec<ElementCollectionId>), Vec<Violation>> {
        let Self { name, kind, source_asset_ids, guidelines, collection_ids } = self;
        let mut check = Check::default();
        let content = ElementContent { name, kind, source_asset_ids, guidelines }.check(&mut check, "");
        note_repeated(&mut check, "collectionIds", &collection_ids);
        check.finish(|| Some((content, collection_ids)))
    }
}

/// Create an Element
///
/// Creates version 1 of a reusable visual reference. Use it for what should look the same in many images. It is
/// made from written guidelines, from one to eight images of the account, or from both. It never copies images
/// and spends no credit. Repeating the call creates another Element.
#[utoipa::path(
    post, path = "/elements", operation_id = "createElement", tag = "Elements", request_body = CreateElement,
    security(("bearer" = ["element:write"])),
    responses(ScopeErrors, (status = 422), (status = 201, description = "The Element.", body = ElementRead))
)]
pub async fn create(State(app): State<App>, caller: Caller<WriteElements>, body: JsonBody) -> Result {
    let (content, collections) = body.checked(CreateElement::check).await?;
    caller.require_acceptable()?;
    let record = retrying(|| attempt(&app, &caller, &content, &collections)).await?;
    let health = Sources::check(&app, &caller.account, [&record.content].into_iter()).await?.health(&record.content);
    let location = format!("/elements/{}", record.id);
    Ok(reply::created(&location, &ElementRead { element: record.document(health, Listed::No) }))
}

async fn attempt(
    app: &App,
    caller: &Caller<WriteElements>,
    content: &Content,
    collections: &[ElementCollectionId],
) -> Result<ElementRecord> {
    let mut transaction = app.transaction().await?;
    let account = &caller.account;
    let made = || Problem::internal("an element that was just created was not found");
    app::storage::require_fewer(&mut transaction, account, Kept::Elements, "name").await?;
    let mut unknown = unknown_images(&mut transaction, account, "sourceAssetIds", &content.sources).await?;
    if !collections.is_empty() {
        unknown.extend(unknown_collections(&mut transaction, account, collections).await?);
    }
    require_known(unknown)?;
    let id = db::elements::create(&mut transaction, account, content).await?;
    if !collections.is_empty() {
        db::elements::organize(&mut transaction, account, &id, collections).await?;
    }
    let record = db::elements::find(&mut transaction, account, &id).await?.ok_or_else(made)?;
    db::pool::commit(transaction).await?;
    Ok(record)
}
