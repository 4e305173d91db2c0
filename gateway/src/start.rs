//! Starts of work: what all kinds of work have in common (decisions 1.2, 1.12, 9.2). [`Start`] is that of work that writes a
//! canvas; videos, which write none, take the parts.
//!
//! **Guarantee.** Key, credit reservation, job, marked targets with the canvas's new revision, webhook and task are
//! committed together or not at all, and once a key: of equal requests at one moment one starts the work and the others
//! answer with its record. A refused start takes no key.
//!
//! **Mechanism.** One transaction in the one lock order (key, account, canvas, job), and few statements: every one is a round
//! trip under these locks. The broker's message follows from the outbox, so that a broker that is down delays work and refuses
//! none.

use db::PgConnection;
use db::accounts::Credential;
use db::canvases::{Change, NewActivity};
use db::deliveries::NewDelivery;
use db::idempotency::Taken;
use db::jobs::NewJob;
use domain::Violation;
use domain::canvas::{ActivityType, CanvasRecord, Changes};
use domain::graph::Node;
use domain::id::{AccountUid, CanvasHandle, JobId, NodeId};
use domain::idempotency::Outcome;
use domain::job::{JobOperation, Record, Request};
use domain::webhook::WebhookInput;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::extract::canvas::require_writer;
use crate::extract::idempotency::replay;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::routes::runs::document;
use crate::state::{App, retrying};

/// When to come back after the cap on active jobs, or on imports, in seconds.
pub const CAP_RETRY: u64 = 5;

/// Work, as far as its kinds differ.
pub trait Work: Sync {
    /// Judges the work by what is stored, state first (409), then meaning (422, every violation), and says what to accept.
    /// The transaction holds the account and the canvas, whose revision is the request's.
    fn plan(
        &self,
        app: &App,
        conn: &mut PgConnection,
        caller: &Credential,
        canvas: &CanvasRecord,
    ) -> impl Future<Output = Result<Plan>> + Send;
}

/// A job to accept.
pub struct Plan {
    /// What is asked for, in the contract's word.
    pub operation: JobOperation,
    /// What is asked for, resolved and normalized.
    pub request: Request,
    /// The request's targets as they are now, all free.
    pub targets: Vec<Node>,
    /// Guidance, at least 1.
    pub estimated_seconds: i32,
    /// Credits to reserve, for all outputs together.
    pub credit_cost: i64,
    /// What the canvas's activity says; no prompt text.
    pub summary: String,
}

/// A start that is right by itself.
pub struct Start<W> {
    /// The canvas that the results go to.
    pub canvas: CanvasHandle,
    /// The revision that the request was made for.
    pub base_revision: String,
    /// The idempotency key.
    pub key: String,
    /// What the key is bound to.
    pub fingerprint: [u8; 32],
    /// Where to announce the end; its URL has been checked.
    pub webhook: Option<WebhookInput>,
    /// W3C trace context of the request.
    pub traceparent: String,
    /// What is to be started.
    pub work: W,
}

/// What a start came to.
pub enum Accepted {
    /// A new job.
    New(Box<Record>),
    /// The job of an earlier, equal request, as it is now.
    Replayed(Box<Record>),
    /// What is left of one whose record is gone (decisions 1.12).
    Snapshot(Value),
}

impl<W: Work> Start<W> {
    /// Starts the work, or finds what an equal request started: 202 with the job's record.
    pub async fn run(&self, app: &App, caller: &Credential) -> Result {
        let turn = app.writers.pass(&self.canvas.to_string()).await?;
        let accepted = retrying(|| self.attempt(app, caller)).await?;
        drop(turn);
        answer(app, caller, accepted)
    }

    async fn attempt(&self, app: &App, caller: &Credential) -> Result<Accepted> {
        let mut transaction = app.transaction().await?;
        let conn = &mut *transaction;
        let (id, key) = (JobId::generate(), (self.key.as_str(), &self.fingerprint));
        let outcome = Outcome::Job { id: id.0, snapshot: None };
        let taken = take_key(conn, &caller.account, key, &self.canvas, (&outcome, Some(id))).await?;
        if let Some(outcome) = taken {
            return replayed(app, conn, &caller.account, key, outcome).await;
        }
        let canvas = hold(conn, &caller.account, &self.canvas).await?;
        if canvas.revision != self.base_revision {
            return Err(Problem::stale(&canvas, &self.base_revision));
        }
        require_room(app, conn, &caller.account, 1).await?;
        let plan = self.work.plan(app, conn, caller, &canvas).await?;
        if !db::ledger::reserve(conn, &caller.account, id, plan.credit_cost).await? {
            return Err(Problem::PaymentRequired);
        }
        let record = self.accept(app, conn, caller, &canvas, id, plan).await?;
        db::pool::commit(transaction).await?;
        spine::failpoint!("start.committed");
        Ok(Accepted::New(Box::new(record)))
    }

    async fn accept(
        &self,
        app: &App,
        conn: &mut PgConnection,
        caller: &Credential,
        canvas: &CanvasRecord,
        id: JobId,
        mut plan: Plan,
    ) -> Result<Record> {
        // Before the job, whose record tells of it.
        if let Some(webhook) = &self.webhook {
            insert_delivery(app, conn, &caller.account, id, webhook).await?;
        }
        let revision = service::random::revision();
        let job = NewJob {
            id,
            account: &caller.account,
            token_id: caller.token,
            operation: plan.operation,
            canvas: Some((canvas.key, &canvas.handle)),
            canvas_revision: Some(&revision),
            request: &plan.request,
            estimated_seconds: plan.estimated_seconds,
            credit_cost: plan.credit_cost,
            recipe_run: None,
            traceparent: Some(&self.traceparent),
        };
        let record = db::jobs::insert(conn, &job).await?;
        let targets: Vec<NodeId> = plan.targets.iter().map(|node| node.id.clone()).collect();
        let bytes_delta = db::jobs::mark_targets(&mut plan.targets, id, plan.operation)?.ok_or_else(target_is_taken)?;
        let change = Change {
            revision: &revision,
            title: None,
            nodes_delta: 0,
            connections_delta: 0,
            bytes_delta,
            changes: &Changes { changed_node_ids: targets.clone(), ..Changes::default() },
            activity: Some(NewActivity {
                kind: ActivityType::JobStarted,
                actor: &caller.actor(),
                summary: plan.summary,
                nodes: &targets,
            }),
        };
        db::canvases::commit_work(conn, canvas.key, &plan.targets, &change).await?;
        Ok(record)
    }
}

/// Takes the key of a start that writes a canvas for `outcome`, which names the job if it is one; what an earlier, equal
/// request came to, if there was one. A fresh key tells nothing, so that the canvas is judged with its lock ([`hold`]).
pub async fn take_key(
    conn: &mut PgConnection,
    account: &AccountUid,
    (key, fingerprint): (&str, &[u8; 32]),
    canvas: &CanvasHandle,
    (outcome, job): (&Outcome, Option<JobId>),
) -> Result<Option<Outcome>> {
    let taken = db::idempotency::take_for(conn, account, key, fingerprint, outcome, job.map(|id| id.0)).await?;
    if taken != Taken::Fresh {
        // Who has no access is told so before anything of the key (decisions 1.2).
        let (_, role) = db::canvases::find(conn, account, canvas).await?.ok_or(Problem::NotFound("canvas"))?;
        require_writer(role)?;
    }
    replay(taken)
}

/// Holds the account and a canvas that it may write to, in that order.
pub async fn hold(conn: &mut PgConnection, account: &AccountUid, canvas: &CanvasHandle) -> Result<CanvasRecord> {
    let held = db::canvases::lock_with_account(conn, account, canvas).await?;
    let (canvas, role) = held.ok_or(Problem::NotFound("canvas"))?;
    require_writer(role)?;
    Ok(canvas)
}

/// A target that another job will fill.
pub fn target_is_taken() -> Problem {
    Problem::Conflict("the target node has an active job".into(), None)
}

/// Refuses an account that would have more active jobs than it may have with so many new ones (decisions 1.12, 18.13).
pub async fn require_room(app: &App, conn: &mut PgConnection, account: &AccountUid, new: usize) -> Result<()> {
    let cap = i64::from(app.config.active_jobs);
    // A start makes a handful.
    match db::jobs::count_active(conn, account, cap).await? + new as i64 > cap {
        true => Err(Problem::RateLimited(format!("an account has at most {cap} active jobs"), CAP_RETRY)),
        false => Ok(()),
    }
}

/// What keeps a URL, where a body has one, from being public by its form (decisions 14.2, 15.3).
pub fn url_violation(app: &App, field: &str, url: &Value) -> Option<Violation> {
    let refusal = app.guard.check_url(url.as_str()?).err()?;
    Some(Violation::new(field, refusal.to_string()))
}

/// The same of the webhook of a body.
pub fn webhook_violation(app: &App, body: &Value) -> Option<Violation> {
    url_violation(app, "webhook.url", &body["webhook"]["url"])
}

/// A webhook with its URL as parsed, which is public by its form.
pub fn checked_webhook(app: &App, webhook: WebhookInput) -> Result<WebhookInput> {
    match app.guard.check_url(&webhook.url) {
        Ok(url) => Ok(WebhookInput { url: url.into(), ..webhook }),
        Err(refusal) => Err(Problem::invalid("webhook.url", refusal.to_string())),
    }
}

/// Stores the webhook of a job or run, its secret sealed (decisions 15).
pub async fn insert_delivery(
    app: &App,
    conn: &mut PgConnection,
    account: &AccountUid,
    job_id: JobId,
    webhook: &WebhookInput,
) -> Result<(), db::Error> {
    let id = Uuid::now_v7();
    let sealed = app.ring.seal(&db::deliveries::handle(id), webhook.secret.as_bytes());
    let delivery = NewDelivery { id, account, job_id, url: &webhook.url, sealed_secret: &sealed };
    db::deliveries::insert(conn, &delivery).await
}

/// The original job as it is now, or what is left of it.
pub async fn replayed(
    app: &App,
    conn: &mut PgConnection,
    account: &AccountUid,
    (key, fingerprint): (&str, &[u8; 32]),
    outcome: Outcome,
) -> Result<Accepted> {
    let Outcome::Job { id, snapshot } = outcome else {
        return Err(Problem::internal("the outcome of a start is of another kind"));
    };
    let id = JobId(id);
    if let Some(record) = db::jobs::get(conn, id, account, app.config.retention_tombstone).await? {
        return Ok(Accepted::Replayed(Box::new(record)));
    }
    // Over, and not removed yet; or removed since the key was looked at, and then stored with the key by now.
    let left = match snapshot {
        Some(snapshot) => Some(snapshot),
        None => db::jobs::last_form(conn, id, &app.config.public_url).await?,
    };
    if let Some(snapshot) = left {
        return Ok(Accepted::Snapshot(snapshot));
    }
    match db::idempotency::look_up(conn, account, key, fingerprint).await? {
        Some(Taken::Replay(Outcome::Job { snapshot: Some(snapshot), .. })) => Ok(Accepted::Snapshot(snapshot)),
        _ => Err(Problem::internal("a replayed job is gone and left no snapshot")),
    }
}

/// 202 with the job's record, and the relay nudged where it is new.
pub fn answer(app: &App, caller: &Credential, accepted: Accepted) -> Result {
    let served =
        |record: &Record| serde_json::to_value(document(app, caller.scopes, record)).map_err(Problem::internal);
    let (mut job, is_new) = match accepted {
        Accepted::New(record) => (served(&record)?, true),
        Accepted::Replayed(record) => (served(&record)?, false),
        Accepted::Snapshot(snapshot) => (snapshot, false),
    };
    match is_new {
        true => app.nudge.nudge(),
        false => job["replayed"] = json!(true),
    }
    let poll_url = job["pollUrl"].as_str().unwrap_or_default().to_owned();
    Ok(reply::accepted(&poll_url, &job))
}
