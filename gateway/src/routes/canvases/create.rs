//! `POST /canvases` (decisions 3.8).

use axum::extract::State;
use db::canvases::NewCanvas;
use domain::Violation;
use domain::canvas::{CanvasRecord, CanvasType};
use domain::id::{CanvasHandle, CanvasId};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::read::{CanvasRead, document_of};
use crate::extract::caller::{Caller, WriteCanvas};
use crate::extract::json::{Input, Unread};
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// A canvas to make, or the Agent Canvas to resolve.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateCanvas {
    /// A plain id of the caller's choice.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,180}$", nullable = false)]
    id: Option<String>,
    /// `Untitled` when left out.
    #[schema(max_length = 160, nullable = false)]
    title: Option<String>,
    /// Makes it, or resolves, the account's one Agent Canvas.
    #[schema(nullable = false)]
    canvas_type: Option<CanvasType>,
    /// `agent-canvas` resolves the account's one Agent Canvas.
    #[schema(nullable = false)]
    destination: Option<Destination>,
}

/// Where work is to go.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, ToSchema)]
pub enum Destination {
    /// The account's one Agent Canvas.
    #[serde(rename = "agent-canvas")]
    AgentCanvas,
}

impl Input for CreateCanvas {
    const MAY_BE_EMPTY: bool = true;
}

/// An id is chosen, or a destination.
fn violation(body: &Value) -> Option<Violation> {
    let both = body.get("destination").is_some() && body.get("id").is_some();
    both.then(|| Violation::new("id", "cannot be chosen together with a destination"))
}

/// Create a canvas, or resolve the Agent Canvas
#[utoipa::path(
    post, path = "/canvases", operation_id = "createCanvas", tag = "Canvases", request_body = CreateCanvas,
    security(("bearer" = ["canvas:read", "canvas:write"])),
    responses((status = 201, body = CanvasRead))
)]
pub async fn create(State(app): State<App>, caller: Caller<WriteCanvas>, body: Unread) -> Result {
    let wanted: CreateCanvas = body.json_by(violation).await?;
    let resolves = wanted.destination.is_some() || (wanted.canvas_type.is_some() && wanted.id.is_none());
    let record =
        if resolves { resolve_agent(&app, &caller, wanted).await? } else { make(&app, &caller, wanted).await? };
    let location = format!("/canvases/{}", record.handle);
    let mut snapshot = db::pool::snapshot(&app.pool).await?;
    let (record, _) = db::canvases::find(&mut snapshot, &caller.account, &record.handle)
        .await?
        .ok_or_else(|| Problem::internal("a canvas that was just made is not there"))?;
    Ok(reply::created(&location, &document_of(&mut snapshot, &record).await?))
}

/// Makes the Agent Canvas or finds it; of equal calls at one moment one makes it and all find the same.
async fn resolve_agent(app: &App, caller: &Caller<WriteCanvas>, wanted: CreateCanvas) -> Result<CanvasRecord> {
    let mut connection = app.connection().await?;
    if let Some(record) = db::canvases::agent(&mut connection, &caller.account).await? {
        return Ok(record);
    }
    let title = wanted.title.as_deref().unwrap_or("Agent Canvas");
    match insert(&mut connection, caller, CanvasId::generate(), Some(CanvasType::Agent), title).await? {
        Some(record) => Ok(record),
        None => db::canvases::agent(&mut connection, &caller.account)
            .await?
            .ok_or_else(|| Problem::internal("an Agent Canvas could neither be made nor found")),
    }
}

async fn make(app: &App, caller: &Caller<WriteCanvas>, wanted: CreateCanvas) -> Result<CanvasRecord> {
    let mut connection = app.connection().await?;
    let id = wanted.id.map_or_else(CanvasId::generate, CanvasId::from_stored);
    let title = wanted.title.as_deref().unwrap_or("Untitled");
    insert(&mut connection, caller, id, wanted.canvas_type, title).await?.ok_or_else(|| {
        let message = match wanted.canvas_type {
            Some(CanvasType::Agent) => "the account has a canvas of this id, or an Agent Canvas, already",
            None => "the account has a canvas of this id already",
        };
        Problem::Conflict(message.into(), None)
    })
}

async fn insert(
    connection: &mut db::PgConnection,
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
    Ok(db::canvases::create(connection, &canvas).await?)
}
