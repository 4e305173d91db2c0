//! Starts of jobs that write to a canvas: Actions and generation (docs/reference/jobs.md#acceptance). Other starts use the parts.
//!
//! **Guarantee.** Key, credit reservation, job, marked targets with the canvas's new revision, webhook and task are committed
//! together or not at all, and once for each key. A rejected start takes no key.
//!
//! **Mechanism.** The steps of [`Command`] in the common lock order (key, account, canvas, job) with few statements, since each is
//! a round trip under these locks. The wake-up message follows the commit, so that an unavailable broker delays work but rejects
//! none.

use std::time::Duration;

use ::canvas::Footprint;
use db::PgConnection;
use db::accounts::Credential;
use db::assets::InputImage;
use db::canvases::{Change, NewActivity};
use db::deliveries::NewDelivery;
use db::idempotency::Taken;
use db::jobs::{NewJob, StartFacts, StartQuestion};
use domain::asset::AssetKind;
use domain::canvas::{ActivityType, Actor, CanvasRecord};
use domain::channel;
use domain::graph::{Named, Node};
use domain::id::{AccountUid, CanvasHandle, JobId, NodeId};
use domain::idempotency::{Fingerprint, StoredOutcome};
use domain::job::{JobOperation, Record, Request, StartQuote};
use domain::message::Queue;
use domain::problem::ErrorReason;
use domain::webhook::WebhookInput;
use futures_util::future::BoxFuture;
use serde_json::Value;
use service::keys::KeyRing;
use uuid::Uuid;

use super::destination::{Destination, JobTargets};
use crate::command::{Base, CanvasWrite, Command, Key, KnownOutcome, LockedCanvas};
use crate::start::{Acceptance, Start, Terms, Wanted};
use crate::{Error, Result, canvas, storage, target};

/// Settings of the process that starts of work need.
#[derive(Clone, Copy)]
pub struct JobSettings<'a> {
    /// Maximum active jobs of an account.
    pub active_jobs: u32,
    /// How long records of expired jobs are kept.
    pub retention_tombstone: Duration,
    /// Origin of `canvasUrl`.
    pub public_url: &'a str,
    /// Key ring that encrypts webhook secrets.
    pub ring: &'a KeyRing,
}

/// The parts of a start that differ between kinds of work.
pub trait Work: Send + Sync {
    /// Returns `true` if the work costs no credit, so that its processor time is limited instead
    /// (docs/reference/conventions.md#processor-time-of-free-work).
    fn is_free(&self) -> bool {
        false
    }

    /// Where the results go.
    fn destination(&self) -> &Destination;

    /// What the user wants beyond them; `None` for work that owes nothing.
    fn wanted(&self) -> Option<Wanted> {
        None
    }

    /// The parts of the canvas that the work reads besides its destination, as far as the request determines them.
    fn footprint(&self) -> Footprint;

    /// The nodes and images of the request that the plan reads, besides the targets.
    fn reads(&self) -> Reads<'_>;

    /// Checks the work against stored state, conflicts first, then rules with every violation, and returns the job to accept. The
    /// revision of the canvas is that of the request, or nothing in the footprint changed since; what else the plan reads is
    /// [admitted](LockedCanvas::admit). A start has locked the account and the canvas; a dry run has locked nothing and cannot
    /// write.
    fn plan<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        caller: &'a Credential,
        canvas: &'a LockedCanvas,
        found: Found,
    ) -> BoxFuture<'a, Result<JobPlan>>;
}

/// The nodes and images named in the request that a start reads, without its targets.
#[derive(Clone, Debug)]
pub struct Reads<'a> {
    /// Nodes to read whole.
    pub nodes: Vec<&'a NodeId>,
    /// Images, by the node that shows it or by the asset.
    pub images: Vec<&'a Named>,
    /// What the assets of `images` must be.
    pub kind: AssetKind,
}

/// The stored targets and [`Reads`] of a start, in their order.
#[derive(Clone, Debug)]
pub struct Found {
    /// The targets; `None`: the canvas has no such node.
    pub targets: Vec<Option<Node>>,
    /// The other nodes; `None`: the canvas has no such node.
    pub nodes: Vec<Option<Node>>,
    /// The images; `None`: there is none that the account may read.
    pub images: Vec<Option<InputImage>>,
}

/// The jobs to accept, as many as the start has ids.
pub struct JobPlan {
    pub operation: JobOperation,
    pub jobs: Vec<PlannedJob>,
    /// The target nodes of the jobs, one job after the other, and what the start adds to the canvas.
    pub targets: JobTargets,
    /// Summary for the canvas's activity; contains no prompt text.
    pub summary: String,
}

/// A job to accept.
pub struct PlannedJob {
    /// The request, resolved and normalized.
    pub request: Request,
    /// Estimated duration in seconds, at least 1.
    pub estimated_seconds: i32,
    /// Credits to reserve for all outputs together.
    pub credit_cost: i64,
}

/// A request for jobs on a canvas, all or none of which are accepted.
pub struct JobStart {
    /// Who starts it.
    pub caller: Credential,
    /// Ids of the jobs, if they are accepted; at least one.
    pub ids: Vec<JobId>,
    /// Canvas that receives the results.
    pub canvas: CanvasHandle,
    /// Canvas revision that the request is based on.
    pub base: Base,
    /// Key and maximum price.
    pub terms: Terms,
    /// Fingerprint that the key is bound to.
    pub fingerprint: Fingerprint,
    /// Webhook of each job; its URL has been checked.
    pub webhook: Option<WebhookInput>,
    /// W3C trace context of the request.
    pub traceparent: String,
    pub work: Box<dyn Work>,
}

/// Starts jobs on a canvas.
pub struct StartJob<'a> {
    pub start: &'a JobStart,
    pub settings: JobSettings<'a>,
}

/// A job of a start.
pub enum AcceptedJob {
    /// A new job, or the job of an earlier, equal request in its present state.
    Record(Box<Record>, Acceptance),
    /// The last state of an earlier job whose record was removed (docs/reference/conventions.md#replay).
    Snapshot(Value),
}

impl Command for StartJob<'_> {
    type Subject = ();
    /// The jobs, in the order of their ids.
    type Reply = Vec<AcceptedJob>;

    fn account(&self) -> &AccountUid {
        &self.start.caller.account
    }

    fn key(&self) -> Option<Key<'_>> {
        self.start.key()
    }

    fn known_outcome(&self) -> Option<KnownOutcome> {
        // The last state of several is kept with keys of their own.
        let record = match self.start.ids.as_slice() {
            [id] => Some(id.0),
            _ => None,
        };
        Some(KnownOutcome { outcome: self.start.outcome()?, record })
    }

    fn channels(&self) -> Vec<String> {
        vec![channel::canvas(&self.start.canvas), channel::runs(self.account())]
    }

    async fn authorize(&self, _: &mut PgConnection) -> Result<()> {
        Ok(())
    }

    async fn check_access(&self, conn: &mut PgConnection) -> Result<()> {
        self.target().check_access(conn).await.map(drop)
    }

    fn writes_to(&self) -> Option<CanvasWrite<'_>> {
        Some(self.target())
    }

    async fn execute(&self, conn: &mut PgConnection, (): (), locked: Option<LockedCanvas>) -> Result<Vec<AcceptedJob>> {
        let (canvas, plan) = self.plan(conn, (), locked).await?;
        let works: Vec<_> = self.start.ids.iter().zip(&plan.jobs).map(|(id, job)| (id.0, job.credit_cost)).collect();
        self.start.terms.reserve(conn, &self.start.caller, &works, plan.outputs()).await?;
        let records = self.accept(conn, &canvas.record, plan).await?;
        let acceptance = Acceptance::on(&canvas);
        Ok(records.into_iter().map(|record| AcceptedJob::Record(Box::new(record), acceptance)).collect())
    }

    fn outcome(&self, _: &Vec<AcceptedJob>) -> Option<StoredOutcome> {
        None
    }

    async fn replay(&self, conn: &mut PgConnection, outcome: StoredOutcome) -> Result<Vec<AcceptedJob>> {
        self.target().check_access(conn).await?;
        AcceptedJob::of_replay(conn, self.settings, self.account(), self.key(), outcome).await
    }
}

impl Start for StartJob<'_> {
    type Plan = (LockedCanvas, JobPlan);

    fn caller(&self) -> &Credential {
        &self.start.caller
    }

    fn terms(&self) -> &Terms {
        &self.start.terms
    }

    async fn plan(
        &self,
        conn: &mut PgConnection,
        (): (),
        locked: Option<LockedCanvas>,
    ) -> Result<(LockedCanvas, JobPlan)> {
        let JobStart { caller, work, .. } = self.start;
        let footprint = work.destination().add_to(work.footprint());
        let canvas = self.target().lock_checked(conn, locked, &footprint).await?;
        let question = self.start.question(&canvas.record);
        let facts = db::jobs::read_for_start(conn, self.settings.cap(), &question).await?;
        self.settings.require_room(facts.active, self.start.ids.len())?;
        let full = facts.full;
        let plan = work.plan(conn, caller, &canvas, self.start.found(facts)).await?;
        if plan.jobs.is_empty() || plan.jobs.len() != self.start.ids.len() {
            return Err(Error::Inconsistent(format!("a start of {} jobs has another number of ids", plan.jobs.len())));
        }
        if let Some(wanted) = work.wanted() {
            wanted.check(conn, self.account(), Some(canvas.record.key)).await?;
        }
        let owner = &canvas.record.handle.owner;
        storage::Place { owner, caller: self.account(), field: Some("canvasId") }.admitted(full)?;
        Ok((canvas, plan))
    }

    fn quote(&self, (_, plan): &(LockedCanvas, JobPlan)) -> StartQuote {
        let seconds = plan.jobs.iter().fold(0, |sum, job| job.estimated_seconds.saturating_add(sum));
        let requests = plan.jobs.iter().map(|job| &job.request);
        let quote = StartQuote::of_jobs(requests, plan.credit_cost(), seconds);
        if plan.targets.are_new { quote.with_new(&plan.targets.nodes) } else { quote }
    }

    fn outputs(&self, (_, plan): &(LockedCanvas, JobPlan)) -> i64 {
        plan.outputs()
    }

    fn queue(&self, (_, plan): &(LockedCanvas, JobPlan)) -> Queue {
        plan.jobs[0].request.route().1
    }

    fn is_lenient(&self, (canvas, _): &(LockedCanvas, JobPlan)) -> bool {
        Acceptance::on(canvas) == Acceptance::Lenient
    }
}

impl StartJob<'_> {
    fn target(&self) -> CanvasWrite<'_> {
        let JobStart { canvas, base, terms, .. } = self.start;
        CanvasWrite { account: self.account(), canvas, base: Some(base), locks: terms.locks() }
    }

    async fn accept(&self, conn: &mut PgConnection, canvas: &CanvasRecord, plan: JobPlan) -> Result<Vec<Record>> {
        let start = self.start;
        // Stored before the jobs, whose records show them.
        if let Some(webhook) = &start.webhook {
            for id in &start.ids {
                insert_delivery(conn, self.settings.ring, self.account(), *id, webhook).await?;
            }
        }
        let revision = service::random::revision();
        let jobs = start.ids.iter().zip(&plan.jobs);
        let jobs: Vec<NewJob> = jobs.map(|(id, job)| start.job(canvas, &revision, plan.operation, *id, job)).collect();
        let mut records = db::jobs::insert_all(conn, &jobs).await?;
        records.sort_by_key(|record| start.ids.iter().position(|id| *id == record.id));
        if let (Some(Key { fingerprint, .. }), [_, _, ..]) = (start.key(), start.ids.as_slice()) {
            db::idempotency::keep_jobs(conn, self.account(), fingerprint, &start.ids).await?;
        }
        if let Some(wanted) = start.work.wanted() {
            wanted.make_up(conn, plan.targets.nodes.len()).await?;
        }
        let JobTargets { mut nodes, addition, .. } = plan.targets;
        let actor = start.caller.actor();
        let targets: Vec<NodeId> = nodes.iter().map(|node| node.id.clone()).collect();
        let fit = start.work.destination().fit;
        let (mut rest, mut bound) = (nodes.as_mut_slice(), 0);
        for (id, job) in start.ids.iter().zip(&plan.jobs) {
            let (own, others) = rest
                .split_at_mut_checked(job.request.targets().len())
                .ok_or_else(|| Error::Inconsistent("a start has fewer targets than its jobs".into()))?;
            bound += target::bind(own, target::Work::Job(*id, plan.operation), fit).ok_or_else(target_is_taken)?;
            rest = others;
        }
        let mut change = match &addition {
            Some((graph, applied)) => canvas::change(&revision, graph, applied),
            None => Change::new(&revision),
        };
        change.graph.put_nodes(&nodes);
        change.bytes_delta += bound;
        change.activity = Some(start.activity(&actor, plan.summary, &targets));
        db::canvases::write(conn, canvas.key, &change).await?;
        Ok(records)
    }
}

impl JobPlan {
    /// Credits to reserve for all jobs together.
    fn credit_cost(&self) -> i64 {
        self.jobs.iter().fold(0, |sum, job| job.credit_cost.saturating_add(sum))
    }

    /// Outputs that models make.
    fn outputs(&self) -> i64 {
        let by_model = self.jobs.iter().filter(|job| job.request.model().is_some());
        by_model.map(|job| job.request.targets().len() as i64).sum()
    }
}

impl JobStart {
    /// The key; `None` for a dry run.
    fn key(&self) -> Option<Key<'_>> {
        self.terms.key(&self.fingerprint)
    }

    /// The outcome of the key.
    fn outcome(&self) -> Option<StoredOutcome> {
        let (first, more) = self.ids.split_first()?;
        Some(StoredOutcome::Job { id: first.0, more: more.iter().map(|id| id.0).collect(), snapshot: None })
    }

    /// The rows to look up for the request.
    fn question<'a>(&'a self, canvas: &'a CanvasRecord) -> StartQuestion<'a> {
        let Reads { nodes, images, kind } = self.work.reads();
        let nodes = self.work.destination().existing().iter().chain(nodes).collect();
        let outputs = (&canvas.handle.owner, storage::of_outputs(self.work.destination().count()));
        StartQuestion { account: &self.caller.account, canvas_key: Some(canvas.key), nodes, images, kind, outputs }
    }

    /// The answer to the [question](Self::question).
    fn found(&self, mut facts: StartFacts) -> Found {
        let nodes = facts.nodes.split_off(self.work.destination().existing().len());
        Found { targets: facts.nodes, nodes, images: facts.images }
    }

    /// A job to insert. `revision` is the canvas's next revision.
    fn job<'a>(
        &'a self,
        canvas: &'a CanvasRecord,
        revision: &'a str,
        operation: JobOperation,
        id: JobId,
        job: &'a PlannedJob,
    ) -> NewJob<'a> {
        NewJob {
            id,
            account: &self.caller.account,
            token_id: self.caller.token,
            operation,
            canvas: Some((canvas.key, &canvas.handle)),
            canvas_revision: Some(revision),
            request: &job.request,
            estimated_seconds: job.estimated_seconds,
            credit_cost: job.credit_cost,
            recipe_run: None,
            about: self.work.wanted().map(|wanted| (canvas.key, wanted.more)),
            traceparent: Some(&self.traceparent),
        }
    }

    /// The activity entry of the start. `actor` is the caller.
    fn activity<'a>(&self, actor: &'a Actor, summary: String, targets: &'a [NodeId]) -> NewActivity<'a> {
        NewActivity { kind: ActivityType::JobStarted, actor, summary, nodes: targets }
    }
}

/// The conflict of a target that has an active job.
pub fn target_is_taken() -> Error {
    Error::Conflict(ErrorReason::TargetTaken, "the target node has an active job")
}

impl JobSettings<'_> {
    fn cap(&self) -> i64 {
        i64::from(self.active_jobs)
    }

    /// Rejects an account with `active` jobs that would exceed the cap with `new` more.
    fn require_room(&self, active: i64, new: usize) -> Result<()> {
        let cap = self.cap();
        // A start creates only a few jobs.
        if active + new as i64 > cap {
            return Err(Error::TooMuchWork(format!("an account has at most {cap} active jobs")));
        }
        Ok(())
    }
}

/// Rejects an account that would exceed the cap on active jobs with `new` more (docs/reference/jobs.md#cap-on-active-jobs).
pub async fn require_room(
    conn: &mut PgConnection,
    settings: JobSettings<'_>,
    account: &AccountUid,
    new: usize,
) -> Result<()> {
    settings.require_room(db::jobs::count_active(conn, account, settings.cap()).await?, new)
}

/// Stores the webhook of a job or run of an account with its encrypted secret (docs/reference/configuration.md#secrets-at-rest).
pub async fn insert_delivery(
    conn: &mut PgConnection,
    ring: &KeyRing,
    account: &AccountUid,
    job_id: JobId,
    webhook: &WebhookInput,
) -> Result<(), db::Error> {
    let id = Uuid::now_v7();
    let sealed_secret = ring.encrypt(&db::deliveries::handle(id), webhook.secret.as_bytes());
    let delivery = NewDelivery { id, account, job_id, url: &webhook.url, sealed_secret: &sealed_secret };
    db::deliveries::insert(conn, &delivery).await
}

impl AcceptedJob {
    /// The jobs of a start in their present state, each in its last state when its record was removed.
    pub async fn of_replay(
        conn: &mut PgConnection,
        settings: JobSettings<'_>,
        account: &AccountUid,
        key: Option<Key<'_>>,
        outcome: StoredOutcome,
    ) -> Result<Vec<Self>> {
        let StoredOutcome::Job { id, more, snapshot } = outcome else {
            return Err(Error::Inconsistent("the key of a start holds an outcome of another kind".into()));
        };
        if more.is_empty() {
            return Ok(vec![Self::replayed(conn, settings, account, key, (JobId(id), snapshot)).await?]);
        }
        let mut jobs = Vec::with_capacity(1 + more.len());
        for id in std::iter::once(id).chain(more) {
            let own = db::idempotency::key_of_job(JobId(id));
            let key = key.map(|key| Key { text: &own, ..key });
            jobs.push(Self::replayed(conn, settings, account, key, (JobId(id), None)).await?);
        }
        Ok(jobs)
    }

    /// A job in its present state, or its last state, which is kept with its key, when its record was removed.
    async fn replayed(
        conn: &mut PgConnection,
        settings: JobSettings<'_>,
        account: &AccountUid,
        key: Option<Key<'_>>,
        (id, snapshot): (JobId, Option<Value>),
    ) -> Result<Self> {
        if let Some(record) = db::jobs::get(conn, id, account, settings.retention_tombstone).await? {
            return Ok(Self::Record(Box::new(record), Acceptance::Replayed));
        }
        // Terminal and not removed yet; or removed since the key was looked up, in which case the last state is stored with the
        // key by now.
        let left = match snapshot {
            Some(snapshot) => Some(snapshot),
            None => db::jobs::last_form(conn, id, settings.public_url).await?,
        };
        if let Some(snapshot) = left {
            return Ok(Self::Snapshot(snapshot));
        }
        let taken = match key {
            Some(Key { text, fingerprint }) => db::idempotency::look_up(conn, account, text, fingerprint).await?,
            None => None,
        };
        match taken {
            Some(Taken::Replay(StoredOutcome::Job { snapshot: Some(snapshot), .. })) => Ok(Self::Snapshot(snapshot)),
            _ => Err(Error::Inconsistent("a replayed job is gone and left no snapshot".into())),
        }
    }
}
