//! `GET /runs/{runId}/events`: the record on every change, as server-sent events (decisions 1.10).

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use domain::account::Scope;
use domain::id::AccountUid;
use futures_util::Stream;
use http::header::{ACCEPT, CACHE_CONTROL};
use http::{HeaderMap, HeaderValue};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::view::Target;
use crate::extract::caller::{Caller, ManageJobs};
use crate::extract::path::PathText;
use crate::problem::{Problem, Result};
use crate::state::App;
use crate::wait::Changes;

const HEARTBEAT: Duration = Duration::from_secs(15);

/// Follow a run as server-sent events
///
/// `event: run` with the run as `data` on every change, a comment every 15 seconds; ends after the terminal record (an extension).
#[utoipa::path(
    get, path = "/runs/{runId}/events", operation_id = "followRun", tag = "Runs",
    security(("bearer" = ["job:manage"])),
    params(("runId" = String, Path, pattern = "^(?:run:)?[A-Za-z0-9_-]{1,180}$", description = "Id or `run:` handle.")),
    responses((status = 200, content_type = "text/event-stream", body = String))
)]
pub async fn events(
    State(app): State<App>,
    caller: Caller<ManageJobs>,
    params: PathText,
    headers: HeaderMap,
) -> Result {
    let target = Target::of_run(params.parameter("runId")?)?;
    target.load(&app, &caller.account).await?;
    if !accepts_event_stream(&headers) {
        return Err(Problem::NotAcceptable("text/event-stream"));
    }
    let wait = app.waits.open(caller.token).await?;
    let (token, account) = (caller.token, caller.credential.account);
    let stream = follow(app, token, account, target, wait);
    let mut response: Response = Sse::new(stream).into_response();
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    Ok(response)
}

fn accepts_event_stream(headers: &HeaderMap) -> bool {
    let mut accepts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    accepts.peek().is_none()
        || accepts.flat_map(|value| value.split(',')).any(|range| {
            let range = range.split(';').next().unwrap_or_default().trim();
            matches!(range.to_ascii_lowercase().as_str(), "*/*" | "text/*" | "text/event-stream")
        })
}

/// The stream of a run; it ends after the terminal record, when the credential no longer holds, and when the process stops.
fn follow(
    app: App,
    token: Uuid,
    account: AccountUid,
    target: Target,
    wait: crate::wait::Wait,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        let mut changes = Changes::of(&app, &target.channel());
        let mut shown = None;
        let mut heartbeat = Instant::now() + HEARTBEAT;
        loop {
            let Ok(record) = target.load(&app, &account).await else { break };
            let tag = record.tag();
            let event = if shown.as_ref() != Some(&tag) {
                shown = Some(tag);
                record.json(&app).ok().and_then(|run| Event::default().event("run").json_data(run).ok())
            } else if Instant::now() >= heartbeat {
                Some(Event::default().comment("alive"))
            } else {
                None
            };
            if let Some(event) = event {
                if !holds(&app, token).await || record.note_shown(&app).await.is_err() {
                    break;
                }
                if sender.send(Ok(event)).await.is_err() {
                    break;
                }
                heartbeat = Instant::now() + HEARTBEAT;
            }
            if record.is_terminal() || app.stopping.is_cancelled() {
                break;
            }
            tokio::select! {
                () = changes.next() => {}
                () = sleep_until(heartbeat) => {}
                () = sender.closed() => break,
            }
        }
        wait.close().await;
    });
    tokio_stream::wrappers::ReceiverStream::new(receiver)
}

/// Whether the token still stands for somebody who may manage jobs.
async fn holds(app: &App, token: Uuid) -> bool {
    let looked = app.credentials.look_up(token, None).await;
    matches!(looked, Ok(Some((credential, _))) if credential.valid && credential.scopes.contains(Scope::JobManage))
}
