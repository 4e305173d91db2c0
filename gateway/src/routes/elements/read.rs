//! `GET /elements/{elementId}`: the Element with its newest version, or one version of it, never another (decisions 1.4).

use axum::extract::{OriginalUri, State};
use domain::element::{ElementRef, ElementVersion, Listed};
use serde::Serialize;
use utoipa::ToSchema;

use super::body::ElementRead;
use super::sources::Sources;
use crate::extract::caller::{Caller, ReadElements};
use crate::extract::path::PathText;
use crate::extract::query::QueryReader;
use crate::problem::{Problem, Result, both};
use crate::reply;
use crate::state::App;

/// Versions that can be asked for.
const VERSION_MAX: u32 = i32::MAX.unsigned_abs();

/// One version.
#[derive(Serialize, ToSchema)]
pub struct VersionRead {
    /// As it was appended, and as it will always be.
    version: ElementVersion,
}

/// What was asked for.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "names the two forms of the answer for the contract document")]
pub enum ElementOrVersion {
    /// Without a version.
    Element(ElementRead),
    /// With one.
    Version(VersionRead),
}

/// Read an Element, or one version of it
#[utoipa::path(
    get, path = "/elements/{elementId}", operation_id = "getElement", tag = "Elements",
    security(("bearer" = ["element:read"])),
    params(
        ("elementId" = String, Path, pattern = "^((element:)?[A-Za-z0-9_-]{1,180}|element:[A-Za-z0-9_-]{1,180}@v[1-9][0-9]{0,8})$", description = "Plain id or handle; `element:<id>@v<n>` asks for that version."),
        ("version" = Option<u32>, Query, minimum = 1, maximum = 2147483647, description = "Exactly this version."),
    ),
    responses((status = 200, body = ElementOrVersion))
)]
pub async fn read(
    State(app): State<App>,
    caller: Caller<ReadElements>,
    params: PathText,
    OriginalUri(uri): OriginalUri,
) -> Result {
    let mut query = QueryReader::new(&uri);
    let asked = query.integer("version", 1..=VERSION_MAX).and_then(|version| i32::try_from(version).ok());
    let named = params.parameter::<ElementRef>("elementId");
    if let (Ok(ElementRef { version: Some(pinned), .. }), Some(asked)) = (&named, asked)
        && *pinned != asked
    {
        query.refuse("version", "differs from the version that the handle pins");
    }
    let (ElementRef { id, version }, ()) = both(named, query.finish())?;
    let account = &caller.account;
    match version.or(asked) {
        None => {
            let found = db::elements::find(&mut *app.connection().await?, account, &id).await?;
            let element = found.ok_or(Problem::NotFound("element"))?;
            let health = Sources::of(&app, account, [&element.content].into_iter()).await?.health(&element.content);
            Ok(reply::ok(&ElementRead { element: element.document(health, Listed::No) }))
        }
        Some(version) => {
            let found = db::elements::version(&mut *app.connection().await?, account, &id, version).await?;
            let version = found.ok_or(Problem::NotFound("element version"))?;
            let health = Sources::of(&app, account, [&version.content].into_iter()).await?.health(&version.content);
            Ok(reply::ok(&VersionRead { version: version.document(health, Listed::No) }))
        }
    }
}
