//! `POST /videos/generate`: accepts a video job in one transaction (decisions 9.2, 11). It writes no canvas, so that a viewer
//! may start it, too (decisions 3.11).

use axum::Extension;
use axum::extract::State;
use db::PgConnection;
use db::jobs::NewJob;
use domain::Violation;
use domain::id::{AccountUid, CanvasHandle, JobId};
use domain::idempotency::Outcome;
use domain::job::{JobOperation, Request, VideoJob, VideoRequest};
use serde_json::{Value, json};

use super::body::VideoStart;
use super::pictures::{self, Pictures};
use super::rules::{capability, not_offered};
use crate::extract::caller::{Caller, GenerateVideo};
use crate::extract::canvas::{canvas_of, canvas_violations};
use crate::extract::idempotency::{fingerprint, replay};
use crate::extract::json::Unread;
use crate::models::{choose, malformed_name};
use crate::observe::Trace;
use crate::problem::{ErrorEnvelope, Problem, Result};
use crate::start::{Accepted, answer, replayed, require_room};
use crate::state::{App, retrying};

const PATH: &str = "/videos/generate";

/// Queue the generation of a video
#[utoipa::path(
    post, path = "/videos/generate", operation_id = "generateVideo", tag = "Videos", request_body = VideoStart,
    security(("bearer" = ["canvas:read", "asset:read", "video:generate"])),
    responses(
        (status = 202, body = VideoJob),
        (status = 402, body = ErrorEnvelope, description = "The account's credit does not cover the work."),
    )
)]
pub async fn generate(
    State(app): State<App>,
    caller: Caller<GenerateVideo>,
    Extension(trace): Extension<Trace>,
    body: Unread,
) -> Result {
    let request = body.json_by(|body| violations(&app, &caller.account, body)).await?;
    let start = Start::judge(&app, &caller.account, request, trace)?;
    let accepted = retrying(|| start.attempt(&app, &caller)).await?;
    answer(&app, &caller, accepted)
}

/// Everything that the request alone can tell and its schema cannot, of a body as it came.
fn violations(app: &App, account: &AccountUid, body: &Value) -> Vec<Violation> {
    let mut violations = canvas_violations(body, account);
    violations.extend(malformed_name("model", &body["model"]));
    violations.extend(pictures::violations(body, account, &app.guard));
    violations
}

/// A start that is right by itself.
struct Start {
    request: VideoStart,
    canvas: Option<CanvasHandle>,
    pictures: Pictures,
    fingerprint: [u8; 32],
    traceparent: String,
}

impl Start {
    /// A request whose form and rules hold. Two spellings of one request have one fingerprint.
    fn judge(app: &App, account: &AccountUid, request: VideoStart, trace: Trace) -> Result<Self> {
        let owner = request.owner_uid.as_deref();
        let canvas = request.canvas_id.as_deref().map(|canvas| canvas_of(canvas, owner, account)).transpose()?;
        let pictures = Pictures::named(&request, account, &app.guard)?;
        let reference = |it: &pictures::Wanted| json!({"handle": it.named.to_string(), "role": it.role});
        let body = json!({
            "model": request.model, "connectionId": request.connection_id, "prompt": request.prompt,
            "aspectRatio": request.aspect_ratio, "durationSeconds": request.duration_seconds,
            "resolution": request.resolution, "generateAudio": request.generate_audio,
            "firstFrame": pictures.first.as_ref().map(|it| it.named.to_string()),
            "lastFrame": pictures.last.as_ref().map(|it| it.named.to_string()),
            "references": pictures.references.iter().map(reference).collect::<Vec<_>>(),
        });
        let resource = canvas.as_ref().map(ToString::to_string).unwrap_or_default();
        Ok(Self {
            fingerprint: fingerprint(PATH, &resource, &body),
            request,
            canvas,
            pictures,
            traceparent: trace.0.to_string(),
        })
    }

    /// One transaction: canvas, key, account, credit, job, task, outcome.
    async fn attempt(&self, app: &App, caller: &Caller<GenerateVideo>) -> Result<Accepted> {
        let mut transaction = app.transaction().await?;
        let conn = &mut *transaction;
        // Who has no access is told so before the key is looked at (decisions 1.2).
        let canvas_key = match &self.canvas {
            Some(canvas) => {
                let found = db::canvases::find(conn, &caller.account, canvas).await?;
                Some(found.ok_or(Problem::NotFound("canvas"))?.0.key)
            }
            None => None,
        };
        let (id, key) = (JobId::generate(), &self.request.idempotency_key);
        let (account, outcome) = (&caller.account, Outcome::Job { id: id.0, snapshot: None });
        let taken = db::idempotency::take_for(conn, account, key, &self.fingerprint, &outcome, Some(id.0)).await?;
        if let Some(outcome) = replay(taken)? {
            return replayed(app, conn, &caller.account, (key, &self.fingerprint), outcome).await;
        }
        db::accounts::lock(conn, &caller.account).await?;
        require_room(app, conn, &caller.account, 1).await?;
        let (request, estimated_seconds) = self.plan(app, conn, &caller.account, canvas_key).await?;
        let credit_cost = request.model.credit_cost;
        let request = Request::Video(request);
        if !db::ledger::reserve(conn, &caller.account, id, credit_cost).await? {
            return Err(Problem::PaymentRequired);
        }
        let job = NewJob {
            id,
            account: &caller.account,
            token_id: caller.token,
            operation: JobOperation::Generate,
            canvas: None,
            canvas_revision: None,
            request: &request,
            estimated_seconds,
            credit_cost,
            recipe_run: None,
            traceparent: Some(&self.traceparent),
        };
        let record = db::jobs::insert(conn, &job).await?;
        db::pool::commit(transaction).await?;
        spine::failpoint!("start.committed");
        Ok(Accepted::New(Box::new(record)))
    }

    /// Judges the request by what is stored (422, every violation), and says what to accept.
    async fn plan(
        &self,
        app: &App,
        conn: &mut PgConnection,
        account: &AccountUid,
        canvas_key: Option<i64>,
    ) -> Result<(VideoRequest, i32)> {
        let request = &self.request;
        let mut violations = Vec::new();
        let capability = capability(request);
        let models = app.runnable(conn, account).await?;
        let chosen = choose(&models, Some(&request.model), request.connection_id.as_deref(), capability);
        let model = chosen.map_err(|violation| violations.push(violation)).ok();
        if let Some(model) = model {
            violations.extend(not_offered(&model.entry, request));
        }
        let found = self.pictures.find(conn, account, canvas_key, &mut violations).await?;
        let Some(model) = model.filter(|_| violations.is_empty()) else {
            return Err(Problem::Unprocessable(violations));
        };
        let video = VideoRequest {
            model: model.chosen(),
            capability,
            prompt: request.prompt.clone(),
            duration_seconds: request.duration_seconds,
            aspect_ratio: request.aspect_ratio.clone(),
            resolution: request.resolution.clone(),
            generate_audio: request.generate_audio,
            first_frame: found.first,
            last_frame: found.last,
            references: found.references,
        };
        Ok((video, i32::try_from(model.entry.estimated_seconds).unwrap_or(i32::MAX)))
    }
}
