//! `PATCH /elements/{elementId}`: update, organize, archive, restore (docs/reference/elements.md#change-an-element).

use axum::extract::State;
use domain::Violation;
use domain::element::{Content, ElementRead, ElementRecord, Lifecycle, Listed};
use domain::id::{ElementCollectionId, ElementId};
use serde::Deserialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use super::body::{ElementContent, all, note_repeated, require_known, unknown_collections, unknown_images};
use crate::extract::caller::{Caller, WriteElements};
use crate::extract::draft::{Check, Field};
use crate::extract::json::{Input, JsonBody, only};
use crate::extract::path::PathText;
use crate::problem::{Problem, Result, combine_violations};
use crate::reply;
use crate::source_health::Sources;
use crate::state::{App, retrying};

/// Change of an Element.
#[derive(ToSchema)]
#[serde(tag = "operation", deny_unknown_fields)]
#[expect(dead_code, reason = "the document's form; a request is read as a `Patch`")]
pub enum ElementPatch {
    /// Appends a version with exactly this content.
    #[serde(rename = "update")]
    Update {
        /// Complete content of the new version.
        element: ElementContent,
    },
    /// Sets the collections of the Element; appends no version.
    #[serde(rename = "collections")]
    Collections {
        /// Plain ids of collections of the account.
        #[serde(rename = "collectionIds")]
        #[schema(max_items = 24)]
        collection_ids: Vec<ElementCollectionId>,
    },
    /// Archives the Element; nothing is deleted.
    #[serde(rename = "archive")]
    Archive {
        /// Must be `true`. Agents must ask a person for confirmation first.
        #[schema(schema_with = only::<true>)]
        confirm: bool,
    },
    /// Restores an archived Element by appending a version with the content of the last one.
    #[serde(rename = "restore")]
    Restore {},
}

/// The draft of an [`ElementPatch`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Patch {
    operation: Field<String>,
    element: Field<ElementContent>,
    collection_ids: Field<Vec<Field<ElementCollectionId>>>,
}

impl PartialSchema for Patch {
    fn schema() -> RefOr<Schema> {
        ElementPatch::schema()
    }
}

impl ToSchema for Patch {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        ElementPatch::schemas(schemas);
    }
}

impl Input for Patch {}

/// A checked change.
#[derive(Clone)]
enum Change {
    Update(Content),
    Collections(Vec<ElementCollectionId>),
    Archive,
    Restore,
}

impl Patch {
    fn check(self) -> Result<Change, Vec<Violation>> {
        let mut check = Check::default();
        let change = match self.operation.get().map(String::as_str) {
            Some("update") => {
                let content = self.element.given().and_then(|element| element.check(&mut check, "element."));
                content.map(Change::Update)
            }
            Some("collections") => {
                note_repeated(&mut check, "collectionIds", self.collection_ids.items());
                all(self.collection_ids).map(Change::Collections)
            }
            Some("archive") => Some(Change::Archive),
            Some("restore") => Some(Change::Restore),
            _ => None,
        };
        check.finish(|| change)
    }
}

/// Revise, organize, archive or restore an Element
///
/// Changes an Element; `operation` selects how. Use `update` for new content and `restore` for an archived
/// Element: both append an immutable version. Use `collections` to replace the memberships, and `archive` to hide
/// the Element after a person has confirmed it. It never deletes anything, and earlier versions stay readable.
#[utoipa::path(
    patch, path = "/elements/{elementId}", operation_id = "updateElement", tag = "Elements", request_body = ElementPatch,
    security(("bearer" = ["element:write"])),
    params(("elementId" = String, Path, pattern = "^(element:)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle.")),
    responses((status = 200, description = "The Element after the change.", body = ElementRead))
)]
pub async fn update(State(app): State<App>, caller: Caller<WriteElements>, params: PathText, body: JsonBody) -> Result {
    let (change, id) =
        combine_violations(body.checked(Patch::check).await, params.parameter::<ElementId>("elementId"))?;
    let record = retrying(|| attempt(&app, &caller, &id, &change)).await?;
    let health = Sources::of(&app, &caller.account, [&record.content].into_iter()).await?.health(&record.content);
    Ok(reply::ok(&ElementRead { element: record.document(health, Listed::No) }))
}

async fn attempt(app: &App, caller: &Caller<WriteElements>, id: &ElementId, change: &Change) -> Result<ElementRecord> {
    let mut transaction = app.transaction().await?;
    let (conn, account) = (&mut *transaction, &caller.account);
    let element = db::elements::lock(conn, account, id).await?.ok_or(Problem::NotFound("element"))?;
    caller.require_acceptable()?;
    let conflict = |message: &str| Problem::Conflict(message.into(), None);
    match (change, element.lifecycle) {
        (Change::Update(_), Lifecycle::Archived) => {
            return Err(conflict("the element is archived; restore it first"));
        }
        (Change::Archive, Lifecycle::Archived) => return Err(conflict("the element is already archived")),
        (Change::Restore, Lifecycle::Active) => return Err(conflict("the element is not archived")),
        (Change::Update(content), Lifecycle::Active) => {
            require_known(unknown_images(conn, account, "element.sourceAssetIds", &content.sources).await?)?;
            db::elements::append(conn, account, id, content).await?;
        }
        (Change::Collections(ids), _) => {
            require_known(unknown_collections(conn, account, ids).await?)?;
            db::elements::organize(conn, account, id, ids).await?;
        }
        (Change::Archive, Lifecycle::Active) => db::elements::archive(conn, account, id).await?,
        (Change::Restore, Lifecycle::Archived) => {
            db::elements::append(conn, account, id, &element.content).await?;
        }
    }
    let gone = || Problem::internal("an element whose row is locked was not found");
    let record = db::elements::find(conn, account, id).await?.ok_or_else(gone)?;
    db::pool::commit(transaction).await?;
    Ok(record)
}
