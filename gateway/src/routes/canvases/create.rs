//! `POST /canvases` (docs/reference/canvases.md#create-a-canvas).

use app::storage;
use axum::extract::State;
use db::canvases::NewCanvas;
use db::kept::Kept;
use domain::Violation;
use domain::canvas::{CanvasRead, CanvasRecord, CanvasType};
use domain::id::{AccountUid, CanvasHandle, CanvasId};
use domain::limits::STORED_MIN;
use serde::Deserialize;
use utoipa::ToSchema;

use super::read::document_of;
use crate::extract::caller::{Caller, WriteCanvas};
use crate::extract::check::Check;
use crate::extract::json::{Input, JsonBody};
use crate::openapi::errors::ScopeErrors;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// Request to create a canvas, or to resolve the Agent Canvas.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateCanvas {
    /// Plain id that the caller chooses; generated when omitted. Excludes `destination`.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,180}$")]
    id: Option<String>,
    /// Title; `Untitled` when omitted.
    #[schema(max_length = 160)]
    title: Option<String>,
    /// Canvas type; `agent` creates or resolves the account's one Agent Canvas.
    canvas_type: Option<CanvasType>,
    /// Destination; `agent-canvas` resolves the account's one Agent Canvas.
    destination: Option<Destination>,
}

/// Destination of work.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, ToSchema)]
pub enum Destination {
    /// The account's one Agent Canvas.
    #[serde(rename = "agent-canvas")]
    AgentCanvas,
}

impl Input for CreateCanvas {
    const MAY_BE_EMPTY: bool = true;
}

impl CreateCanvas {
    fn check(self) -> Result<Self, Vec<Violation>> {
        let mut check = Check::default();
        let is_both = self.destination.is_some() && self.id.is_some();
        check.note_if(is_both, "id", "cannot be chosen together with a destination");
        check.finish(|| Some(self))
    }
}

/// Create a canvas, or resolve the Agent Canvas
///
/// Creates an empty canvas. Use it to begin new work. With `destination: "agent-canvas"` it returns the account's
/// one Agent Canvas and creates it the first time. It never changes an existing canvas: an `id` that is already in
/// use is a conflict. Every call without `id` and `destination` creates another canvas.
#[utoipa::path(
    post, path = "/canvases", operation_id = "createCanvas", tag = "Canvases", request_body = CreateCanvas,
    security(("bearer" = ["canvas:read", "canvas:write"])),
    responses(ScopeErrors, (status = 409), (status = 422), (status = 201, description = "The canvas, with its whole graph.", body = CanvasRead))
)]
pub async fn create(State(app): State<App>, caller: Caller<WriteCanvas>, body: JsonBody) -> Result {
    let wanted = body.checked(CreateCanvas::check).await?;
    caller.require_acceptable()?;
    let resolves = wanted.destination.is_some() || (wanted.canvas_type.is_some() && wanted.id.is_none());
    let record =
        if resolves { resolve_agent(&app, &caller, wanted).await? } else { make(&app, &caller, wanted).await? };
    let location = format!("/canvases/{}", record.handle);
    let mut snapshot = db::pool::snapshot(&app.pool).await?;
    let (record, _) = db::canvases::find(&mut snapshot, &caller.account, &record.handle)
        .await?
        .ok_or_else(|| Problem::internal("a canvas that was just created was not found"))?;
    Ok(reply::created(&location, &document_of(&app, &mut snapshot, &record).await?))
}

/// Creates the Agent Canvas or finds it. Of concurrent calls one creates it and all return the same canvas.
async fn resolve_agent(app: &App, caller: &Caller<WriteCanvas>, wanted: CreateCanvas) -> Result<CanvasRecord> {
    if let Some(record) = db::canvases::agent(&mut *app.connection().await?, &caller.account).await? {
        return Ok(record);
    }
    let title = wanted.title.as_deref().unwrap_or("Agent Canvas");
    match insert(app, caller, CanvasId::generate(), Some(CanvasType::Agent), title).await? {
        Some(record) => Ok(record),
        None => db::canvases::agent(&mut *app.connection().await?, &caller.account)
            .await?
            .ok_or_else(|| Problem::internal("an Agent Canvas could neither be created nor found")),
    }
}

async fn make(app: &App, caller: &Caller<WriteCanvas>, wanted: CreateCanvas) -> Result<CanvasRecord> {
    let id = wanted.id.map_or_else(CanvasId::generate, CanvasId::from_stored);
    let title = wanted.title.as_deref().unwrap_or("Untitled");
    insert(app, caller, id, wanted.canvas_type, title).await?.ok_or_else(|| {
        let message = match wanted.canvas_type {
            Some(CanvasType::Agent) => "the account already has a canvas with this id, or an Agent Canvas",
            None => "the account already has a canvas with this id",
        };
        Problem::conflict(message)
    })
}

async fn require_room(conn: &mut db::PgConnection, account: &AccountUid) -> app::Result<()> {
    storage::require_fewer(conn, account, Kept::Canvases, "title").await?;
    storage::Place { owner: account, caller: account, field: None }.hold(conn, STORED_MIN).await
}

/// Creates a canvas, unless there is one. The account must have room for it.
async fn insert(
    app: &App,
    caller: &Caller<WriteCanvas>,
    id: CanvasId,
    canvas_type: Option<CanvasType>,
    title: &str,
) -> Result<Option<CanvasRecord>> {
    let canvas = NewCanvas {
        handle: &CanvasHandle { owner: caller.account.clone(), id },
        canvas_type,
        title,
        revision: &service::random::revision(),
        actor: &caller.actor(),
    };
    let mut transaction = app.transaction().await?;
    let admitted = require_room(&mut transaction, &caller.account).await;
    let made = db::canvases::create(&mut transaction, &canvas).await?;
    if made.is_some() {
        // A conflict comes first.
        admitted?;
        db::pool::commit(transaction).await?;
    }
    Ok(made)
}
