//! `GET /runs/{runId}/events`: the record on every change, as server-sent events (decisions 1.10).

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use db::accounts::Credential;
use futures_util::Stream;
use http::header::{ACCEPT, CACHE_CONTROL};
use http::{HeaderMap, HeaderValue};
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep_until};

use super::view::Target;
use crate::extract::caller::{Caller, ManageJobs};
use crate::extract::path::PathText;
use crate::problem::{Problem, Result};
use crate::state::App;
use crate::wait::{Changes, Wait, holds, loss};

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
    let stream = follow(app, caller.credential, target, wait);
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

/// The stream of a run; it ends after the terminal record, as soon as the credential no longer holds, and when the process stops.
fn follow(app: App, caller: Credential, target: Target, wait: Wait) -> impl Stream<Item = Result<Event, Infallible>> {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        tokio::select! {
            () = tell(&app, &caller, target, &sender) => {}
            () = loss(&app, &caller) => {}
        }
        wait.close().await;
    });
    tokio_stream::wrappers::ReceiverStream::new(receiver)
}

/// Tells of a run until it is over or nobody listens. The credential is looked at before each word (decisions 1.10): who does not
/// read at once may long have lost it.
async fn tell(app: &App, caller: &Credential, target: Target, sender: &Sender<Result<Event, Infallible>>) {
    let mut changes = Changes::of(app, &target.channel());
    let mut shown = None;
    let mut heartbeat = Instant::now() + HEARTBEAT;
    loop {
        let Ok(record) = target.load(app, &caller.account).await else { return };
        let tag = record.tag();
        let event = if shown.as_ref() != Some(&tag) {
            shown = Some(tag);
            record.json(app).ok().and_then(|run| Event::default().event("run").json_data(run).ok())
        } else if Instant::now() >= heartbeat {
            Some(Event::default().comment("alive"))
        } else {
            None
        };
        if let Some(event) = event {
            let may_be_told = matches!(holds(app, caller.token).await, Ok(true));
            if !may_be_told || record.note_shown(app).await.is_err() || sender.send(Ok(event)).await.is_err() {
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
