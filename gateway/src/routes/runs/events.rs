//! `GET /runs/{runId}/events`: the record on every change, as server-sent events (docs/reference/conventions.md#event-streams).

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{OriginalUri, State};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use db::accounts::Credential;
use futures_util::{Stream, StreamExt, stream};
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderValue, Method};
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep_until};

use crate::extract::accept::Accepted;
use crate::extract::caller::{Caller, ManageJobs};
use crate::extract::path::PathText;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::runs::{Detail, RunView, Target};
use crate::state::App;
use crate::wait::{Changes, Wait, holds, loss};

const HEARTBEAT: Duration = Duration::from_secs(15);

/// Follow a run as server-sent events
///
/// Streams the run as a server-sent event on every change, starting with its present state, and ends after the
/// terminal one. Use it instead of polling. Each event has the name `run` and the run as JSON in `data`. A comment
/// every 15 seconds keeps the connection open. The stream never outlives the credential.
#[utoipa::path(
    get, path = "/runs/{runId}/events", operation_id = "followRun", tag = "Runs",
    security(("bearer" = ["job:manage"])),
    params(
        ("runId" = String, Path, pattern = "^(?:run:)?[A-Za-z0-9_-]{1,180}$", description = "Id or `run:` handle."),
        RunView,
    ),
    responses(ReadErrors, (status = 200, description = "The stream of events.", content_type = "text/event-stream", body = String))
)]
pub async fn events(
    State(app): State<App>,
    caller: Caller<ManageJobs>,
    params: PathText,
    OriginalUri(uri): OriginalUri,
    method: Method,
    headers: HeaderMap,
) -> Result {
    let (run, detail) = combine_violations(params.parameter("runId"), Detail::from_uri(&uri))?;
    let target = Target::of_run(run)?;
    target.load(&app, &caller.account).await?;
    if Accepted::from_headers(&headers).quality("text", "event-stream") == 0 {
        return Err(Problem::NotAcceptable("text/event-stream".into()));
    }
    // HEAD shows nothing of the run, so it must not begin the time that a result is kept.
    let stream = match method {
        Method::HEAD => None,
        _ => {
            let wait = app.waits.open(&caller)?;
            Some(follow(app, caller.credential, (target, detail), wait))
        }
    };
    let mut response: Response = Sse::new(stream::iter(stream).flatten()).into_response();
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    Ok(response)
}

/// The stream of a run. It ends after the terminal record, as soon as the credential is no longer valid, and when the process
/// stops.
fn follow(
    app: App,
    caller: Credential,
    shown: (Target, Detail),
    wait: Wait,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        tokio::select! {
            () = send_events(&app, &caller, shown, &sender) => {}
            () = loss(&app, &caller) => {}
        }
        drop(wait);
    });
    tokio_stream::wrappers::ReceiverStream::new(receiver)
}

/// Sends the record of a run on every change until it is terminal or the client disconnects. The credential is checked before
/// each event, because a slow reader may have lost it since the stream was opened.
async fn send_events(
    app: &App,
    caller: &Credential,
    (target, detail): (Target, Detail),
    sender: &Sender<Result<Event, Infallible>>,
) {
    let mut changes = Changes::subscribe(app, &target.channel());
    let mut shown = None;
    let mut heartbeat = Instant::now() + HEARTBEAT;
    loop {
        let Ok(record) = target.load(app, &caller.account).await else { return };
        let state = (record.tag(), record.waits_for());
        let event = if shown.as_ref() != Some(&state) {
            shown = Some(state);
            record.json(app, detail).ok().and_then(|run| Event::default().event("run").json_data(run).ok())
        } else if Instant::now() >= heartbeat {
            Some(Event::default().comment("alive"))
        } else {
            None
        };
        if let Some(event) = event {
            let is_permitted = matches!(holds(app, caller.token).await, Ok(true));
            if !is_permitted || record.note_shown(app).await.is_err() || sender.send(Ok(event)).await.is_err() {
                return;
            }
            heartbeat = Instant::now() + HEARTBEAT;
        }
        if record.is_terminal() || app.stopping.is_cancelled() {
            return;
        }
        tokio::select! {
            () = changes.next() => {}
            () = sleep_until(heartbeat) => {}
            () = sender.closed() => return,
        }
    }
}
