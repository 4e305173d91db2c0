//! `/console/canvases/{ownerUid}/{canvasId}/members`: whom a canvas is shared with.

use std::str::FromStr;

use axum::extract::{OriginalUri, State};
use axum::response::IntoResponse;
use db::canvases;
use domain::account::is_email;
use domain::canvas::AccessRole;
use domain::channel;
use domain::id::{AccountUid, CanvasHandle};
use domain::limits::PAGE_MAX;
use domain::page::Page;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::console::owned::{named_canvas, owned_canvas};
use crate::console::person::Person;
use crate::extract::json::{Input, JsonBody};
use crate::extract::page::{ListScope, Paged, page, page_request};
use crate::extract::path::PathText;
use crate::extract::query::QueryReader;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::rates::{self, Rate};
use crate::reply;
use crate::state::App;

/// A page of the members of a canvas, ordered by email.
#[derive(Serialize, ToSchema)]
pub struct MemberList {
    /// Accounts that the canvas is shared with; never the owner.
    members: Vec<Member>,
    /// Position in the list.
    page: Page,
}

/// An account that a canvas is shared with.
#[derive(Serialize, ToSchema)]
pub struct Member {
    /// Email of the account.
    email: String,
    /// Role of the account.
    role: MemberRole,
}

/// Role of a member.
#[derive(Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemberRole {
    /// May read the canvas.
    Viewer,
    /// May read and change the canvas.
    Editor,
}

impl From<MemberRole> for AccessRole {
    fn from(role: MemberRole) -> Self {
        match role {
            MemberRole::Viewer => AccessRole::Viewer,
            MemberRole::Editor => AccessRole::Editor,
        }
    }
}

/// The email in a path.
struct Email(String);

impl FromStr for Email {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if is_email(text) { Ok(Self(text.to_owned())) } else { Err("must be an email address") }
    }
}

/// List the members of a canvas
///
/// Returns one page of the accounts that a canvas of the person is shared with, ordered by email.
#[utoipa::path(
    get, path = "/canvases/{ownerUid}/{canvasId}/members", operation_id = "listMembers", tag = "Members",
    params(
        ("ownerUid" = String, Path, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Uid of the person's account."),
        ("canvasId" = String, Path, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Plain id of the canvas."),
        Paged,
    ),
    responses(ReadErrors, (status = 200, description = "One page of members.", body = MemberList))
)]
pub async fn list(State(app): State<App>, person: Person, path: PathText, OriginalUri(uri): OriginalUri) -> Result {
    let named = named_canvas(&path);
    let mut query = QueryReader::new(&uri);
    let filter = named.as_ref().map(ToString::to_string).unwrap_or_default();
    let scope = ListScope::new("console/members", &person.account, &[&filter]);
    let request = page_request::<String, PAGE_MAX>(&app, &mut query, &scope);
    let (canvas, ()) = combine_violations(named, query.finish())?;
    let mut connection = app.connection().await?;
    let record = owned_canvas(&mut connection, &person.account, &canvas).await?;
    let (after, limit) = (request.after.as_deref(), i64::from(request.limit) + 1);
    let mut found = canvases::members(&mut connection, record.key, after, limit).await?;
    let page = page(&app, &scope, request.limit, &mut found, |member| member.email.clone());
    let member = |it: canvases::Member| match it.role {
        AccessRole::Editor => Member { email: it.email, role: MemberRole::Editor },
        AccessRole::Viewer | AccessRole::Owner => Member { email: it.email, role: MemberRole::Viewer },
    };
    Ok(reply::ok(&MemberList { members: found.into_iter().map(member).collect(), page }))
}

/// Request to share a canvas with an account, or to change its role.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetMember {
    /// Role of the account.
    role: MemberRole,
}

impl Input for SetMember {}

/// An account that a canvas is shared with now.
#[derive(Serialize, ToSchema)]
pub struct MemberSet {
    /// The member.
    member: Member,
}

/// Share a canvas
///
/// Shares a canvas of the person with the account of an email, or changes the role of that account. Members are changed at most 20
/// times a minute.
#[utoipa::path(
    put, path = "/canvases/{ownerUid}/{canvasId}/members/{email}", operation_id = "setMember", tag = "Members",
    request_body = SetMember,
    params(
        ("ownerUid" = String, Path, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Uid of the person's account."),
        ("canvasId" = String, Path, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Plain id of the canvas."),
        ("email" = String, Path, max_length = 254, description = "Email of the account, whatever its case."),
    ),
    responses(ReadErrors, (status = 422), (status = 200, description = "The member with its role.", body = MemberSet))
)]
pub async fn set(State(app): State<App>, person: Person, path: PathText, body: JsonBody) -> Result {
    let named = combine_violations(named_canvas(&path), path.parameter::<Email>("email"));
    let (SetMember { role }, (canvas, Email(email))) = combine_violations(body.json().await, named)?;
    let mut connection = app.connection().await?;
    owned_canvas(&mut connection, &person.account, &canvas).await?;
    rates::take(&app, Rate::Members, &person.account).await?;
    let account = db::accounts::find(&mut connection, &email).await?;
    let account = account.ok_or_else(|| Problem::unprocessable("email", "is not that of an account"))?;
    if account.uid == canvas.owner {
        return Err(Problem::unprocessable("email", "is that of the canvas's owner"));
    }
    drop(connection);
    share(&app, &person, &canvas, &account.uid, Some(role.into())).await?;
    announce(&app, &canvas).await;
    Ok(reply::ok(&MemberSet { member: Member { email: account.email, role } }))
}

/// Stop sharing a canvas with an account
///
/// Takes the role of a member away. Work that the member started goes on.
#[utoipa::path(
    delete, path = "/canvases/{ownerUid}/{canvasId}/members/{email}", operation_id = "removeMember", tag = "Members",
    params(
        ("ownerUid" = String, Path, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Uid of the person's account."),
        ("canvasId" = String, Path, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Plain id of the canvas."),
        ("email" = String, Path, max_length = 254, description = "Email of the member, whatever its case."),
    ),
    responses(ReadErrors, (status = 204, description = "The canvas is no longer shared with the account."))
)]
pub async fn remove(State(app): State<App>, person: Person, path: PathText) -> Result {
    let (canvas, Email(email)) = combine_violations(named_canvas(&path), path.parameter("email"))?;
    let mut connection = app.connection().await?;
    let record = owned_canvas(&mut connection, &person.account, &canvas).await?;
    rates::take(&app, Rate::Members, &person.account).await?;
    let member = canvases::member(&mut connection, record.key, &email).await?;
    let member = member.ok_or(Problem::NotFound("member"))?;
    drop(connection);
    share(&app, &person, &canvas, &member, None).await?;
    announce(&app, &canvas).await;
    Ok(reply::private(StatusCode::NO_CONTENT.into_response()))
}

async fn share(
    app: &App,
    person: &Person,
    canvas: &CanvasHandle,
    with: &AccountUid,
    role: Option<AccessRole>,
) -> Result<()> {
    let mut transaction = app.transaction().await?;
    app::sharing::share(&mut transaction, person.actor(), canvas, with, role).await?;
    Ok(db::pool::commit(transaction).await?)
}

async fn announce(app: &App, canvas: &CanvasHandle) {
    app.announce(vec![channel::canvas(canvas)]);
}
