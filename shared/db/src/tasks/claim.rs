//! Claims: which ready tasks a worker gets.
//!
//! **By position, skipping full keys.** Without caps, a claim is one statement that reads the ready tasks by position. With
//! caps, it reads first and claims afterwards. Tasks behind a fairness key at its cap are found without reading the backlog of
//! that key: when the first tasks by position do not fill the claim, it visits the keys one by one, with one index step each.
//! Ten thousand deliveries to one slow destination thus do not delay the others.
//!
//! **In batches.** A key with more than half of its cap in flight is skipped until it is down to half, and then filled up:
//! one claim for many tasks costs less than one claim for each.

use std::collections::HashMap;
use std::time::Duration;

use domain::message::{Queue, TaskKind};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{count, seconds};
use crate::Result;
use crate::error::known;

/// How many more tasks than wanted are read by position, before the claim visits the fairness keys one by one.
const MARGIN: usize = 64;
/// How often the claim reads again after other workers took everything that it found.
const LOOKS: usize = 3;

/// Which tasks a worker may claim.
#[derive(Clone, Debug)]
pub struct ClaimRequest<'a> {
    /// The queue to claim from.
    pub queue: Queue,
    /// Maximum number of tasks.
    pub limit: usize,
    /// Whether to claim only quarantined tasks, or only the others.
    pub quarantined: bool,
    /// How many tasks of one fairness key and of one tenant may be in flight, and how many are. Full keys and tenants are
    /// skipped and do not block others.
    pub caps: Option<FairnessCaps<'a>>,
    /// Duration of the lease unless it is renewed.
    pub lease: Duration,
    /// Name of the worker, for operators who read the table.
    pub owner: &'a str,
}

/// Limits on what one worker holds of a fairness key and of a tenant.
#[derive(Clone, Copy, Debug)]
pub struct FairnessCaps<'a> {
    /// Maximum number in flight of a fairness key of which nothing is in flight.
    pub cap: usize,
    /// The fairness keys of which something is in flight now.
    pub held: &'a [HeldKey],
    /// Maximum number in flight of one tenant, over all its fairness keys.
    pub tenant_cap: usize,
    /// Number in flight now, by tenant.
    pub tenants: &'a [(String, usize)],
}

/// A fairness key of which a worker has tasks in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldKey {
    /// The fairness key.
    pub name: String,
    /// Number in flight.
    pub held: usize,
    /// Maximum number in flight of this key.
    pub cap: usize,
}

impl HeldKey {
    /// Returns `true` if claims skip the key: more than half of its cap is in flight.
    fn is_full(&self) -> bool {
        self.held > self.cap / 2
    }
}

impl<'a> FairnessCaps<'a> {
    /// The fairness keys to skip: those with more than half of their cap in flight.
    pub fn full_keys(&self) -> Vec<&'a str> {
        self.held.iter().filter(|key| key.is_full()).map(|key| key.name.as_str()).collect()
    }

    /// The tenants to skip: those at their cap.
    pub fn full_tenants(&self) -> Vec<&'a str> {
        self.tenants.iter().filter(|(_, held)| *held >= self.tenant_cap).map(|(name, _)| name.as_str()).collect()
    }

    /// The most tasks of one fairness key that a claim can get.
    fn most_of_a_key(&self) -> usize {
        let room = self.held.iter().filter(|key| !key.is_full()).map(|key| key.cap - key.held);
        room.fold(self.cap, usize::max)
    }
}

/// A claimed task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Id of the record that it works on.
    pub id: Uuid,
    /// Objects that it works on.
    pub kind: TaskKind,
    /// The fairness key: an account or a destination.
    pub fairness_key: String,
    /// The account whose slots it uses, if the fairness keys of its queue are not accounts.
    pub tenant: Option<String>,
    /// The fencing token.
    pub lease_token: Uuid,
    /// Number of claims so far, including this one.
    pub claims: i32,
    /// `true` if a cancel was requested while another worker held the task.
    pub cancel_requested: bool,
    /// W3C trace context of the work that enqueued it.
    pub traceparent: Option<String>,
    /// How long the task had been due.
    pub waited: Duration,
}

/// A task that a claim leased.
struct TaskRow {
    id: Uuid,
    fair_seq: i64,
    kind: String,
    fairness_key: String,
    tenant: Option<String>,
    lease_token: Uuid,
    claims: i32,
    cancel_requested: bool,
    traceparent: Option<String>,
    waited: f64,
}

impl TaskRow {
    fn claim(self) -> Result<Claim> {
        Ok(Claim {
            id: self.id,
            kind: known("task_queue.kind", &self.kind)?,
            fairness_key: self.fairness_key,
            tenant: self.tenant,
            lease_token: self.lease_token,
            claims: self.claims,
            cancel_requested: self.cancel_requested,
            traceparent: self.traceparent,
            waited: seconds(self.waited).unwrap_or_default(),
        })
    }
}

/// The leased tasks, in the order of their positions.
fn in_fair_order(mut rows: Vec<TaskRow>) -> Result<Vec<Claim>> {
    rows.sort_unstable_by_key(|row| (row.fair_seq, row.id));
    rows.into_iter().map(TaskRow::claim).collect()
}

/// Leases up to `wanted.limit` ready tasks, in the order of their positions.
///
/// Does not wait: rows that another worker is claiming are skipped. Kinds that this build does not know are left to a build
/// that does.
#[tracing::instrument(skip_all, name = "db.task.claim")]
pub async fn claim(conn: &mut PgConnection, wanted: &ClaimRequest<'_>) -> Result<Vec<Claim>> {
    let Some(caps) = &wanted.caps else { return next_in_fair_order(conn, wanted).await };
    for _ in 0..LOOKS {
        let chosen = choose(conn, wanted, caps).await?;
        if chosen.is_empty() {
            break;
        }
        let claims = take(conn, wanted, &chosen).await?;
        if !claims.is_empty() {
            return Ok(claims);
        }
    }
    Ok(Vec::new())
}

/// Names of the kinds that this build knows.
fn kinds() -> Vec<&'static str> {
    TaskKind::ALL.iter().map(|kind| kind.as_str()).collect()
}

async fn next_in_fair_order(conn: &mut PgConnection, wanted: &ClaimRequest<'_>) -> Result<Vec<Claim>> {
    let rows = sqlx::query_as!(
        TaskRow,
        r#"WITH found AS MATERIALIZED (
               SELECT id FROM task_queue
               WHERE queue = $3 AND state = 'ready' AND kind = ANY($4::text[]) AND quarantined = $5 AND fair_seq >= task_floor($3)
               ORDER BY fair_seq, id LIMIT $6 FOR UPDATE SKIP LOCKED
           )
           UPDATE task_queue SET state = 'leased', lease_token = gen_random_uuid(), lease_owner = $2, claims = claims + 1,
               ready_requested = false,
                            lease_until = now() + make_interval(secs => $1)
           WHERE id = ANY(ARRAY(SELECT id FROM found))
           RETURNING id, fair_seq, kind, fairness_key, tenant, lease_token AS "lease_token!", claims, cancel_requested,
                     traceparent,
                     extract(epoch FROM now() - due_at)::float8 AS "waited!""#,
        wanted.lease.as_secs_f64(),
        wanted.owner,
        wanted.queue.as_str(),
        &kinds() as &[&str],
        wanted.quarantined,
        count(wanted.limit),
    );
    in_fair_order(rows.fetch_all(conn).await?)
}

/// Leases those of `chosen` that are still ready.
async fn take(conn: &mut PgConnection, wanted: &ClaimRequest<'_>, chosen: &[Uuid]) -> Result<Vec<Claim>> {
    let rows = sqlx::query_as!(
        TaskRow,
        r#"WITH found AS MATERIALIZED (
               SELECT id FROM task_queue
               WHERE id = ANY($3::uuid[]) AND queue = $4 AND state = 'ready' AND fair_seq >= task_floor($4) FOR UPDATE SKIP LOCKED
           )
           UPDATE task_queue SET state = 'leased', lease_token = gen_random_uuid(), lease_owner = $2, claims = claims + 1,
               ready_requested = false,
                            lease_until = now() + make_interval(secs => $1)
           WHERE id = ANY(ARRAY(SELECT id FROM found))
           RETURNING id, fair_seq, kind, fairness_key, tenant, lease_token AS "lease_token!", claims, cancel_requested,
                     traceparent,
                     extract(epoch FROM now() - due_at)::float8 AS "waited!""#,
        wanted.lease.as_secs_f64(),
        wanted.owner,
        chosen,
        wanted.queue.as_str(),
    );
    in_fair_order(rows.fetch_all(conn).await?)
}

/// A ready task, with the fields that caps need.
struct Candidate {
    id: Uuid,
    fairness_key: String,
    tenant: Option<String>,
}

/// The tasks that a capped claim should get, in the order of their positions.
async fn choose(conn: &mut PgConnection, wanted: &ClaimRequest<'_>, caps: &FairnessCaps<'_>) -> Result<Vec<Uuid>> {
    let window = wanted.limit.saturating_add(MARGIN);
    let first = sqlx::query_as!(
        Candidate,
        "SELECT id, fairness_key, tenant FROM task_queue
         WHERE queue = $1 AND state = 'ready' AND kind = ANY($2::text[]) AND quarantined = $3
           AND fair_seq >= task_floor($1)
         ORDER BY fair_seq, id LIMIT $4",
        wanted.queue.as_str(),
        &kinds() as &[&str],
        wanted.quarantined,
        count(window),
    )
    .fetch_all(&mut *conn)
    .await?;
    let is_all = first.len() < window;
    let chosen = admit(first, caps, wanted.limit);
    if is_all || chosen.len() == wanted.limit { Ok(chosen) } else { choose_by_key(conn, wanted, caps).await }
}

/// Like [`choose`], but visits the fairness keys one by one, so that the backlog of full keys does not matter.
async fn choose_by_key(
    conn: &mut PgConnection,
    wanted: &ClaimRequest<'_>,
    caps: &FairnessCaps<'_>,
) -> Result<Vec<Uuid>> {
    let heads = sqlx::query_as!(
        Candidate,
        r#"WITH RECURSIVE keys AS (
               (SELECT fairness_key FROM task_queue WHERE queue = $1 AND state = 'ready' AND fair_seq >= task_floor($1)
                ORDER BY fairness_key LIMIT 1)
               UNION ALL
               SELECT (SELECT t.fairness_key FROM task_queue t
                       WHERE t.queue = $1 AND t.state = 'ready' AND t.fairness_key > keys.fairness_key
                         AND t.fair_seq >= task_floor($1)
                       ORDER BY t.fairness_key LIMIT 1)
               FROM keys WHERE keys.fairness_key IS NOT NULL
           )
           SELECT head.id AS "id!", head.fairness_key AS "fairness_key!", head.tenant
           FROM keys CROSS JOIN LATERAL (
               SELECT id, fairness_key, tenant, fair_seq FROM task_queue
               WHERE queue = $1 AND state = 'ready' AND fairness_key = keys.fairness_key AND kind = ANY($2::text[])
                 AND quarantined = $3 AND fair_seq >= task_floor($1) AND (tenant IS NULL OR tenant <> ALL($4::text[]))
               ORDER BY fair_seq, id LIMIT $5
           ) head
           WHERE keys.fairness_key <> ALL($6::text[])
           ORDER BY head.fair_seq, head.id LIMIT $7"#,
        wanted.queue.as_str(),
        &kinds() as &[&str],
        wanted.quarantined,
        &caps.full_tenants() as &[&str],
        count(caps.most_of_a_key().min(wanted.limit)),
        &caps.full_keys() as &[&str],
        count(wanted.limit.saturating_add(MARGIN)),
    )
    .fetch_all(conn)
    .await?;
    Ok(admit(heads, caps, wanted.limit))
}

/// The first `limit` of the candidates whose fairness key and tenant are not full.
fn admit(candidates: Vec<Candidate>, caps: &FairnessCaps<'_>, limit: usize) -> Vec<Uuid> {
    let (full_keys, full_tenants) = (caps.full_keys(), caps.full_tenants());
    let mut fairness_keys: HashMap<String, (usize, usize)> =
        caps.held.iter().map(|key| (key.name.clone(), (key.held, key.cap))).collect();
    let mut tenants: HashMap<String, usize> = caps.tenants.iter().cloned().collect();
    let mut admitted = Vec::with_capacity(limit.min(candidates.len()));
    for Candidate { id, fairness_key, tenant } in candidates {
        if admitted.len() == limit {
            break;
        }
        if full_keys.contains(&fairness_key.as_str())
            || tenant.as_deref().is_some_and(|name| full_tenants.contains(&name))
        {
            continue;
        }
        let (in_flight, cap) = fairness_keys.entry(fairness_key).or_insert((0, caps.cap));
        let of_tenant = tenant.map(|name| tenants.entry(name).or_default());
        if in_flight < cap && of_tenant.as_ref().is_none_or(|held| **held < caps.tenant_cap) {
            *in_flight += 1;
            of_tenant.into_iter().for_each(|held| *held += 1);
            admitted.push(id);
        }
    }
    admitted
}
