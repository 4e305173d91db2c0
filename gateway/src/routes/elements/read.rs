//! `GET /elements/{elementId}`: the Element with its newest version, or exactly the requested version of it
//! (docs/reference/elements.md#read-an-element).

use axum::extract::{OriginalUri, State};
use domain::element::{ElementOrVersion, ElementRead, ElementRef, Listed, VersionRead};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::extract::caller::{Caller, ReadElements};
use crate::extract::path::PathText;
use crate::extract::query::QueryReader;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::reply;
use crate::source_health::Sources;
use crate::state::App;

/// The version that is read.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct VersionQuery {
    /// Exactly this version. Default: the current one.
    #[param(minimum = 1)]
    version: Option<u64>,
}

/// Read an Element or one of its versions
///
/// Returns the Element in its current version, or exactly the version that `version` names. A pinned read never
/// returns a newer version.
#[utoipa::path(
    get, path = "/elements/{elementId}", operation_id = "getElement", tag = "Elements",
    security(("bearer" = ["element:read"])),
    params(
        ("elementId" = String, Path, pattern = "^((element:)?[A-Za-z0-9_-]{1,180}|element:[A-Za-z0-9_-]{1,180}@v[1-9][0-9]*)$", description = "Plain id or handle; `element:<id>@v<n>` asks for that version."),
        VersionQuery,
    ),
    responses(ReadErrors, (status = 200, description = "The Element, or the version asked for.", body = ElementOrVersion))
)]
pub async fn read(
    State(app): State<App>,
    caller: Caller<ReadElements>,
    params: PathText,
    OriginalUri(uri): OriginalUri,
) -> Result {
    let mut query = QueryReader::new(&uri);
    let VersionQuery { version: asked } = query.read().unwrap_or_default();
    let asked = asked.map(|version| i32::try_from(version).unwrap_or(i32::MAX));
    let named = params.parameter::<ElementRef>("elementId");
    if let (Ok(ElementRef { version: Some(pinned), .. }), Some(asked)) = (&named, asked)
        && *pinned != asked
    {
        query.refuse("version", "differs from the version that the handle pins");
    }
    let (ElementRef { id, version }, ()) = combine_violations(named, query.finish())?;
    let account = &caller.account;
    match version.or(asked) {
        None => {
            let found = db::elements::find(&mut *app.connection().await?, account, &id).await?;
            let element = found.ok_or(Problem::NotFound("element"))?;
            let health = Sources::check(&app, account, [&element.content].into_iter()).await?.health(&element.content);
            Ok(reply::ok(&ElementRead { element: element.document(health, Listed::No) }))
        }
        Some(version) => {
            let found = db::elements::version(&mut *app.connection().await?, account, &id, version).await?;
            let version = found.ok_or(Problem::NotFound("element version"))?;
            let health = Sources::check(&app, account, [&version.content].into_iter()).await?.health(&version.content);
            Ok(reply::ok(&VersionRead { version: version.document(health, Listed::No) }))
        }
    }
}
