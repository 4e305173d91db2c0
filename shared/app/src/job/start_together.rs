//! Starts of several jobs in one transaction.
//!
//! **Guarantee.** As for each start by itself (`start`): whatever a start writes is committed together, once for each key.
//!
//! **Mechanism.** The same steps, each as one statement for all starts. A start that meets anything but the common course is left out,
//! has written nothing, and is executed by itself, which also finds its error. The common course: an Image Action into a node of the
//! canvas, at its present revision, with a new key and without credit. Accounts and canvases are not waited for. What else
//! is waited for, such as an equal key, has the short limit of [`db::pool::begin_briefly`].
//!
//! **Reason.** Small jobs cost their statements. Together, several need as many as one.

use std::collections::HashMap;
use std::{mem, slice};

use db::canvases::WorkChange;
use db::idempotency::KeyedWrite;
use db::{PgConnection, Result};
use domain::canvas::{Actor, CanvasRecord};
use domain::graph::Node;
use domain::id::{AccountUid, JobId};
use domain::job::Record;
use domain::webhook::WebhookInput;
use service::keys::KeyRing;
use uuid::Uuid;

use super::start::{JobPlan, JobStart, insert_deliveries};
use crate::command::{Key, LockedCanvas};
use crate::target;

impl JobStart {
    /// Whether the request is one of those that [`start_together`] takes.
    pub fn is_common(&self) -> bool {
        !self.terms.is_dry_run() && self.work.is_given_all() && !self.work.destination().reads_graph()
    }
}

/// A start that passed its checks.
struct Part<'a> {
    start: &'a JobStart,
    canvas: CanvasRecord,
    /// The canvas's next revision.
    revision: String,
    plan: JobPlan,
    /// The target, bound to the job.
    target: Node,
    /// Growth of the graph in bytes.
    grown: i64,
    actor: Actor,
}

/// Starts those of the jobs that can be started together, and returns their records. All are [common](JobStart::is_common). `cap` is
/// the maximum number of active jobs of an account; `ring` seals the secrets of webhooks. When none is started, the caller rolls back.
///
/// # Errors
///
/// If the database fails. The caller rolls back.
#[tracing::instrument(skip_all, name = "app.job.start_together")]
pub async fn start_together(
    conn: &mut PgConnection,
    starts: &[&JobStart],
    cap: u32,
    ring: &KeyRing,
) -> Result<HashMap<JobId, Record>> {
    let locked = lock(conn, starts).await?;
    let parts = check(conn, locked, i64::from(cap)).await?;
    let jobs: Vec<_> = parts.iter().map(|part| part.start.job(&part.canvas, &part.revision, &part.plan)).collect();
    let mut records = HashMap::with_capacity(parts.len());
    if !parts.is_empty() {
        let webhooks: Vec<_> = parts.iter().filter_map(Part::webhook).collect();
        if !webhooks.is_empty() {
            // Before the jobs, whose records show them.
            insert_deliveries(conn, ring, &webhooks).await?;
        }
        records.extend(db::jobs::insert_all(conn, &jobs).await?.into_iter().map(|record| (record.id, record)));
        let changes: Vec<_> = parts.iter().map(Part::change).collect();
        db::canvases::commit_works(conn, &changes).await?;
    }
    let left: Vec<Uuid> =
        starts.iter().filter(|start| !records.contains_key(&start.id)).map(|start| start.id.0).collect();
    if !left.is_empty() && !records.is_empty() {
        db::idempotency::release(conn, &left).await?;
    }
    Ok(records)
}

/// Takes keys and locks accounts and canvases. Returns the starts on the present revision of a canvas that the account may write to.
async fn lock<'a>(conn: &mut PgConnection, starts: &[&'a JobStart]) -> Result<Vec<(&'a JobStart, LockedCanvas)>> {
    let outcomes: Vec<_> = starts.iter().map(|start| start.outcome()).collect();
    let writes: Vec<KeyedWrite<'_>> = starts
        .iter()
        .zip(&outcomes)
        .filter_map(|(start, outcome)| {
            let Key { text, fingerprint } = start.key()?;
            let JobStart { caller, id, canvas, .. } = start;
            Some(KeyedWrite { job: id.0, account: &caller.account, text, fingerprint, outcome, canvas })
        })
        .collect();
    let mut locked = db::idempotency::take_and_lock_free(conn, &writes).await?;
    let writable = starts.iter().filter_map(|&start| {
        let (record, role) = locked.remove(&start.id.0)?;
        let canvas = LockedCanvas { record, role, stale_base: None };
        (role.may_write() && canvas.record.revision == start.base.revision).then_some((start, canvas))
    });
    Ok(writable.collect())
}

/// Checks starts against stored state, and returns those that pass.
async fn check<'a>(
    conn: &mut PgConnection,
    locked: Vec<(&'a JobStart, LockedCanvas)>,
    cap: i64,
) -> Result<Vec<Part<'a>>> {
    let questions: Vec<_> = locked.iter().map(|(start, canvas)| start.question(canvas.record.key)).collect();
    let facts = match questions.is_empty() {
        true => Vec::new(),
        false => db::jobs::read_for_starts(conn, cap, &questions).await?,
    };
    let mut added: HashMap<&AccountUid, i64> = HashMap::new();
    let mut parts = Vec::with_capacity(locked.len());
    for ((start, canvas), facts) in locked.into_iter().zip(facts) {
        let added = added.entry(&start.caller.account).or_default();
        if let Ok(facts) = facts
            && facts.active + *added < cap
            && let Ok(plan) = start.work.plan(conn, &start.caller, &canvas, start.found(facts)).await
            && let Some(part) = Part::of(start, canvas.record, plan)
        {
            parts.push(part);
            *added += 1;
        }
    }
    Ok(parts)
}

impl<'a> Part<'a> {
    /// `None` for a plan that does more than the common one, or whose target is taken.
    fn of(start: &'a JobStart, canvas: CanvasRecord, mut plan: JobPlan) -> Option<Self> {
        if plan.credit_cost > 0 || plan.targets.addition.is_some() {
            return None;
        }
        let grown = target::bind(&mut plan.targets.nodes, target::Work::Job(start.id, plan.operation))?;
        let [target] = <[Node; 1]>::try_from(mem::take(&mut plan.targets.nodes)).ok()?;
        let (revision, actor) = (service::random::revision(), start.caller.actor());
        Some(Self { start, canvas, revision, plan, target, grown, actor })
    }

    fn webhook(&self) -> Option<(&'a AccountUid, JobId, &'a WebhookInput)> {
        Some((&self.start.caller.account, self.start.id, self.start.webhook.as_ref()?))
    }

    fn change(&self) -> WorkChange<'_> {
        let targets = slice::from_ref(&self.target.id);
        WorkChange {
            canvas_key: self.canvas.key,
            revision: &self.revision,
            nodes: slice::from_ref(&self.target),
            bytes_delta: self.grown,
            activity: Some(self.start.activity(&self.actor, self.plan.summary.clone(), targets)),
        }
    }
}
