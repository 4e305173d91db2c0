//! `PATCH /elements/{elementId}`: update, organize, archive, restore (docs/reference/elements.md#change-an-element).

use axum::extract::State;
use domain::Violation;
use domain::constant::True;
use domain::element::{Content, ElementRead, ElementRecord, Lifecycle, Listed};
use domain::id::{ElementCollectionId, ElementId};
use domain::limits::ELEMENT_VERSIONS_MAX;
use serde::Deserialize;
use utoipa::ToSchema;

use super::body::{ElementContent, note_repeated, require_known, unknown_collections, unknown_images};
use crate::extract::caller::{Caller, WriteElements};
use crate::extract::check::Check;
use crate::extract::json::{Input, JsonBody};
use crate::extract::path::PathText;
use crate::openapi::errors::WriteErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::reply;
use crate::source_health::Sources;
use crate::state::{App, retrying};

/// Change of an Element.
#[derive(Deserialize, ToSchema)]
#[serde(tag = "operation", deny_unknown_fields)]
pub enum ElementPatch {
    /// Appends a version with exactly this content.
    #[serde(rename = "update")]
    #[schema(title = "ElementUpdate")]
    Update {
        /// Complete content of the new version.
        element: ElementContent,
    },
    /// Sets the collections of the Element; appends no version.
    #[serde(rename = "collections")]
    #[schema(title = "ElementSetCollections")]
    Collections {
        /// Plain ids of collections of the account. None is named twice.
        #[serde(rename = "collectionIds")]
        #[schema(max_items = 24)]
        collection_ids: Vec<ElementCollectionId>,
    },
    /// Archives the Element; nothing is deleted.
    #[serde(rename = "archive")]
    #[schema(title = "ElementArchive")]
    Archive {
        /// Must be `true`. Agents must ask a person for confirmation first.
        #[serde(rename = "confirm")]
        #[schema(value_type = True, inline)]
        _confirm: bool,
    },
    /// Restores an archived Element by appending a version with the content of the last one.
    #[serde(rename = "restore")]
    #[schema(title = "ElementRestore")]
    Restore {},
}

impl Input for ElementPatch {}

/// A checked change.
#[derive(Clone)]
enum Change {
    Update(Content),
    Collections(Vec<ElementCollectionId>),
    Archive,
    Restore,
}

impl ElementPatch {
    fn check(self) -> Result<Change, Vec<Violation>> {
        let mut check = Check::default();
        let change = match self {
            Self::Update { element } => Change::Update(element.check(&mut check, "element.")),
            Self::Collections { collection_ids } => {
                note_repeated(&mut check, "collectionIds", &collection_ids);
                Change::Collections(collection_ids)
            }
            Self::Archive { .. } => Change::Archive,
            Self::Restore {} => Change::Restore,
        };
        check.finish(|| Some(change))
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
    responses(WriteErrors, (status = 200, description = "The Element after the change.", body = ElementRead))
)]
pub async fn update(State(app): State<App>, caller: Caller<WriteElements>, params: PathText, body: JsonBody) -> Result {
    let change = body.checked(ElementPatch::check).await;
    let (change, id) = combine_violations(change, params.parameter::<ElementId>("elementId"))?;
    let record = retrying(|| attempt(&app, &caller, &id, &change)).await?;
    let health = Sources::check(&app, &caller.account, [&record.content].into_iter()).await?.health(&record.content);
    Ok(reply::ok(&ElementRead { element: record.document(health, Listed::No) }))
}

/// Rejects another version of an Element with the newest version `version`, whose row is locked.
fn require_fewer_versions(version: i32) -> Result<()> {
    match version < ELEMENT_VERSIONS_MAX {
        true => Ok(()),
        false => {
            let message =
                format!("cannot be done: the element has {ELEMENT_VERSIONS_MAX} versions, the most that it may have");
            Err(Problem::unprocessable("operation", message))
        }
    }
}

async fn attempt(app: &App, caller: &Caller<WriteElements>, id: &ElementId, change: &Change) -> Result<ElementRecord> {
    let mut transaction = app.transaction().await?;
    let (conn, account) = (&mut *transaction, &caller.account);
    let element = db::elements::lock(conn, account, id).await?.ok_or(Problem::NotFound("element"))?;
    caller.require_acceptable()?;
    let conflict = |message: &str| Problem::conflict(message);
    match (change, element.lifecycle) {
        (Change::Update(_), Lifecycle::Archived) => {
            return Err(conflict("the element is archived; restore it first"));
        }
        (Change::Archive, Lifecycle::Archived) => return Err(conflict("the element is already archived")),
        (Change::Restore, Lifecycle::Active) => return Err(conflict("the element is not archived")),
        (Change::Update(content), Lifecycle::Active) => {
            require_known(unknown_images(conn, account, "element.sourceAssetIds", &content.sources).await?)?;
            require_fewer_versions(element.version)?;
            db::elements::append(conn, account, id, content).await?;
        }
        (Change::Collections(ids), _) => {
            require_known(unknown_collections(conn, account, ids).await?)?;
            db::elements::organize(conn, account, id, ids).await?;
        }
        (Change::Archive, Lifecycle::Active) => db::elements::archive(conn, account, id).await?,
        (Change::Restore, Lifecycle::Archived) => {
            require_fewer_versions(element.version)?;
            db::elements::append(conn, account, id, &element.content).await?;
        }
    }
    let gone = || Problem::internal("an element whose row is locked was not found");
    let record = db::elements::find(conn, account, id).await?.ok_or_else(gone)?;
    db::pool::commit(transaction).await?;
    Ok(record)
}
