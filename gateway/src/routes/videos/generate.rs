//! `POST /videos/generate`: accepts a video job in one transaction (docs/reference/jobs.md#acceptance).
//!
//! With a target it is a start on a canvas, as that of an image ([`plan`](super::plan)). Without one it writes to no canvas, so that
//! a viewer may start it as well.

use app::job::{AcceptedJob, insert_delivery, require_room};
use app::{Acceptance, Command, Key, KnownOutcome, LockedCanvas, Start, Terms, storage};
use axum::Extension;
use axum::extract::State;
use db::PgConnection;
use db::accounts::Credential;
use db::jobs::{NewJob, StartQuestion};
use domain::account::Scope;
use domain::asset::AssetKind;
use domain::channel;
use domain::id::{AccountUid, JobId};
use domain::idempotency::{Fingerprint, StoredOutcome};
use domain::job::{JobOperation, Request, StartQuote, VideoJob};
use domain::message::Queue;
use http::HeaderMap;

use super::body::VideoStart;
use super::plan::{Chosen, PATH, canonical, on_canvas};
use super::rules::Checked;
use crate::extract::caller::{Caller, GenerateVideo};
use crate::extract::idempotency::fingerprint;
use crate::extract::json::JsonBody;
use crate::extract::prefer;
use crate::observe::Trace;
use crate::openapi::errors::WriteErrors;
use crate::problem::Result;
use crate::start::{Accepted, answer, quote, start};
use crate::state::App;

/// Generate a video
///
/// Queues one video. Use it with a model that makes videos, and read that model first: durations, aspect ratios
/// and resolutions that it does not declare are refused. With `targetNodeId` or `place`, and then `canvasId`,
/// `baseRevision` and the scope canvas:write, the video becomes an asset of the canvas, which a video node shows and
/// which stays. Without a target it changes no canvas: download the video from `video.downloadUrl` when the job has
/// succeeded, or keep it with `POST /jobs/{jobId}/asset`. Credit works as in image generation.
#[utoipa::path(
    post, path = "/videos/generate", operation_id = "generateVideo", tag = "Videos", request_body = VideoStart,
    security(("bearer" = ["canvas:read", "asset:read", "video:generate"])),
    params(("Prefer" = Option<String>, Header, description = "`handling=lenient` accepts a stale `baseRevision` where nothing that the request reads or writes has changed since.")),
    responses(
        WriteErrors,
        (status = 200, description = "The quote, with `validateOnly: true`; nothing is started.", body = StartQuote),
        (status = 202, description = "The job is queued, or is a replay of an earlier start.", body = VideoJob),
        (status = 402),
    )
)]
pub async fn generate(
    State(app): State<App>,
    caller: Caller<GenerateVideo>,
    Extension(trace): Extension<Trace>,
    headers: HeaderMap,
    body: JsonBody,
) -> Result {
    let mut request = body.checked(|request: VideoStart| request.check(&caller.account, &app.guard)).await?;
    if let Some(target) = request.target.take() {
        caller.require(&[Scope::CanvasWrite])?;
        let on_canvas = on_canvas(&app, &caller, request, target, prefer::lenient(&headers), trace);
        return start(&app, &caller, on_canvas, Accepted::Job).await;
    }
    let start = StartVideo::new(&app, &caller, request, trace);
    if start.request.terms.is_dry_run() {
        return quote(&app, &caller, &start).await;
    }
    answer(&app, &caller, caller.run(&app, &start).await?).await
}

/// A checked start request without a target.
struct StartVideo<'a> {
    app: &'a App,
    caller: &'a Credential,
    id: JobId,
    request: Checked,
    fingerprint: Fingerprint,
    traceparent: String,
}

impl<'a> StartVideo<'a> {
    /// Different spellings of one request have the same fingerprint.
    fn new(app: &'a App, caller: &'a Credential, request: Checked, trace: Trace) -> Self {
        let resource = request.canvas.as_ref().map(ToString::to_string).unwrap_or_default();
        let fingerprint = fingerprint(PATH, &resource, &canonical(&request));
        Self { app, caller, id: JobId::generate(), request, fingerprint, traceparent: trace.0.to_string() }
    }
}

impl Command for StartVideo<'_> {
    /// Key of the canvas whose nodes the request names, if it names one.
    type Subject = Option<i64>;
    type Reply = AcceptedJob;

    fn account(&self) -> &AccountUid {
        &self.caller.account
    }

    fn key(&self) -> Option<Key<'_>> {
        self.request.terms.key(&self.fingerprint)
    }

    fn known_outcome(&self) -> Option<KnownOutcome> {
        let outcome = StoredOutcome::Job { id: self.id.0, more: Vec::new(), snapshot: None };
        Some(KnownOutcome { outcome, record: Some(self.id.0) })
    }

    fn channels(&self) -> Vec<String> {
        vec![channel::runs(self.account())]
    }

    async fn authorize(&self, conn: &mut PgConnection) -> app::Result<Option<i64>> {
        let Some(canvas) = &self.request.canvas else { return Ok(None) };
        let found = db::canvases::find(conn, &self.caller.account, canvas).await?;
        found.map(|(record, _)| Some(record.key)).ok_or(app::Error::NotFound("canvas"))
    }

    async fn execute(
        &self,
        conn: &mut PgConnection,
        canvas_key: Option<i64>,
        _: Option<LockedCanvas>,
    ) -> app::Result<AcceptedJob> {
        let account = &self.caller.account;
        let wanted = self.request.wanted;
        let Plan { request, estimated_seconds, credit_cost } = self.plan(conn, canvas_key, None).await?;
        self.request.terms.reserve(conn, self.caller, &[(self.id.0, credit_cost)], 1).await?;
        // Stored before the job, whose record shows it.
        if let Some(webhook) = &self.request.webhook {
            insert_delivery(conn, self.app.job_settings().ring, account, self.id, webhook).await?;
        }
        let job = NewJob {
            id: self.id,
            account,
            token_id: self.caller.token,
            operation: JobOperation::Generate,
            canvas: None,
            canvas_revision: None,
            request: &request,
            estimated_seconds,
            credit_cost,
            recipe_run: None,
            // It owes itself until it has succeeded.
            about: canvas_key.map(|key| (key, 1 + wanted.more)),
            traceparent: Some(&self.traceparent),
        };
        let record = Box::new(db::jobs::insert(conn, &job).await?);
        wanted.make_up(conn, 1).await?;
        Ok(AcceptedJob::Record(record, Acceptance::New))
    }

    fn outcome(&self, _: &AcceptedJob) -> Option<StoredOutcome> {
        None
    }

    async fn replay(&self, conn: &mut PgConnection, outcome: StoredOutcome) -> app::Result<AcceptedJob> {
        let jobs =
            AcceptedJob::of_replay(conn, self.app.job_settings(), &self.caller.account, self.key(), outcome).await?;
        jobs.into_iter().next().ok_or_else(|| app::Error::Inconsistent("a start of a video without a job".into()))
    }
}

/// A checked job.
struct Plan {
    request: Request,
    estimated_seconds: i32,
    credit_cost: i64,
}

impl Start for StartVideo<'_> {
    type Plan = Plan;

    fn caller(&self) -> &Credential {
        self.caller
    }

    fn terms(&self) -> &Terms {
        &self.request.terms
    }

    /// Checks the request against stored state (422, every violation), and returns the job to accept.
    async fn plan(
        &self,
        conn: &mut PgConnection,
        canvas_key: Option<i64>,
        _: Option<LockedCanvas>,
    ) -> app::Result<Plan> {
        let (account, request) = (&self.caller.account, &self.request);
        if !request.terms.is_dry_run() {
            db::accounts::lock(conn, account).await?;
        }
        let settings = self.app.job_settings();
        require_room(conn, settings, account, 1).await?;
        let question = StartQuestion {
            account,
            canvas_key,
            nodes: Vec::new(),
            images: request.images.stored().collect(),
            kind: AssetKind::Image,
            outputs: (account, storage::of_outputs(1)),
        };
        let facts = db::jobs::read_for_start(conn, i64::from(settings.active_jobs), &question).await?;
        let Chosen { model, estimated_seconds, request } =
            Chosen::choose(self.app, conn, account, request, facts.images, Vec::new()).await?;
        self.request.wanted.check(conn, account, canvas_key).await?;
        storage::Place { owner: account, caller: account, field: None }.admitted(facts.full)?;
        Ok(Plan { request: Request::Video(request), estimated_seconds, credit_cost: model.credit_cost })
    }

    fn outputs(&self, _: &Plan) -> i64 {
        1
    }

    fn queue(&self, plan: &Plan) -> Queue {
        plan.request.route().1
    }

    fn quote(&self, plan: &Plan) -> StartQuote {
        StartQuote::of_jobs([&plan.request], plan.credit_cost, plan.estimated_seconds)
    }
}
