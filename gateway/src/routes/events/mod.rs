//! `GET /events`: canvases, their participants and the caller's runs, as server-sent events (docs/reference/events.md).

mod stream;

use axum::extract::{OriginalUri, State};
use axum::response::sse::Sse;
use axum::response::{IntoResponse, Response};
use domain::account::Scope;
use domain::id::{AccountUid, CanvasHandle, CanvasRef, CanvasReference};
use http::HeaderMap;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::extract::accept::Accepted;
use crate::extract::caller::{Caller, ReadCanvas};
use crate::extract::names;
use crate::extract::query::QueryReader;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// What a stream follows, as a query names it.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EventsQuery {
    /// Plain id or handle of a canvas. Repeat the parameter for further canvases. Required unless `runs` is sent.
    #[serde(default)]
    #[param(value_type = Option<Vec<CanvasReference>>, style = Form, explode, max_items = 16)]
    canvas: Vec<CanvasRef>,
    /// `mine`: the runs and jobs that the caller's account has started.
    #[param(inline)]
    runs: Option<WhoseRuns>,
    /// `true`: also what others point at on the canvases.
    pointers: Option<bool>,
}

/// The only value of `runs`.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WhoseRuns {
    Mine,
}

/// Subscriptions of a stream.
struct Subscriptions {
    /// Each once, in the order of the request.
    canvases: Vec<CanvasHandle>,
    /// `true` if the runs and jobs of the caller are followed.
    runs: bool,
    /// `true` if the pointers on the canvases are followed.
    pointers: bool,
}

impl Subscriptions {
    async fn from_uri(app: &App, uri: &http::Uri, account: &AccountUid) -> Result<Self> {
        let mut query = QueryReader::new(uri);
        let EventsQuery { canvas: named, runs, pointers } = query.read().unwrap_or_default();
        if !query.has("canvas") && !query.has("runs") {
            query.refuse("canvas", "is required unless `runs=mine` is sent");
        }
        query.finish()?;
        let mut canvases = Vec::new();
        let mut connection = app.connection().await?;
        for canvas in named {
            let canvas = names::resolve(&mut connection, canvas, account).await?;
            if !canvases.contains(&canvas) {
                canvases.push(canvas);
            }
        }
        Ok(Self { canvases, runs: runs.is_some(), pointers: pointers == Some(true) })
    }
}

/// Follow canvases and runs as server-sent events
///
/// Streams the present state of each subscription, then each new state. Use one stream instead of many polls. The
/// event `role` has the caller's role on a canvas, `canvas` its revision, `presence` who follows it, `gone` means that it
/// was deleted or is no longer shared, and `run` has the state of one of the caller's runs and jobs, those started later included.
/// With `pointers=true`, `pointers` has what others point at.
/// `data` is JSON. A state that is followed by a newer one may be left out, and nothing is replayed: after a
/// reconnection the present state comes first. A comment every 15 seconds keeps the connection open. The stream
/// never outlives the credential and counts as one of its 64 open waits and streams. `runs=mine` also needs the
/// scope job:manage.
#[utoipa::path(
    get, path = "/events", operation_id = "followEvents", tag = "Events",
    security(("bearer" = ["canvas:read"])),
    params(EventsQuery),
    responses(ReadErrors, (status = 200, description = "The stream of events.", content_type = "text/event-stream", body = String))
)]
pub async fn events(
    State(app): State<App>,
    caller: Caller<ReadCanvas>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result {
    let subscriptions = Subscriptions::from_uri(&app, &uri, &caller.account).await?;
    if subscriptions.runs {
        caller.require(&[Scope::JobManage])?;
    }
    let followed = stream::Followed::open(&app, &caller.account, subscriptions).await?;
    if Accepted::from_headers(&headers).quality("text", "event-stream") == 0 {
        return Err(Problem::NotAcceptable("text/event-stream".into()));
    }
    let wait = app.waits.open(&caller)?;
    let response: Response = Sse::new(followed.stream(app, caller.credential, wait)).into_response();
    Ok(reply::private(response))
}
