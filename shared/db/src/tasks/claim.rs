//! Claims: which ready tasks a worker gets.
//!
//! **In turn, and past who is full.** Without caps a claim is one statement that walks the ready tasks by turn. With caps it looks
//! first and takes then. Who waits behind a lane that is full is found without reading that lane's backlog: when the first
//! tasks by turn do not fill the claim, it goes from lane to lane, one step in the index each. Ten thousand deliveries to one slow
//! destination thus cost the others nothing.
//!
//! **In batches.** A lane that has more than half of its cap in flight is passed over until it is down to that, and then filled
//! up: one claim for many tasks, where one for each would cost more than many a task.

use std::collections::HashMap;
use std::time::Duration;

use domain::message::{Queue, TaskKind};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{count, seconds};
use crate::Result;
use crate::error::known;

/// How many more tasks than wanted are looked at by turn, before it is gone from lane to lane.
const MARGIN: usize = 64;
/// How often it is looked again after other workers took all that was found.
const LOOKS: usize = 3;

/// Which tasks a worker may have.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// Where to look.
    pub queue: Queue,
    /// How many at most.
    pub limit: usize,
    /// Whether suspects are wanted, and nothing else, or anything but suspects.
    pub suspects: bool,
    /// How many of one lane and of one tenant may be in flight, and what is. Who is full is passed over, and holds up nobody.
    pub lanes: Option<LaneCap<'a>>,
    /// How long the lease lasts unless it is renewed.
    pub lease: Duration,
    /// Who asks; for people who look into the table.
    pub owner: &'a str,
}

/// Limits on what one worker holds of a lane and of a tenant.
#[derive(Clone, Copy, Debug)]
pub struct LaneCap<'a> {
    /// The most in flight of one lane.
    pub cap: usize,
    /// What is in flight now, by lane.
    pub held: &'a [(String, usize)],
    /// The most in flight of one tenant, over all its lanes.
    pub tenant_cap: usize,
    /// What is in flight now, by tenant.
    pub tenants: &'a [(String, usize)],
}

impl<'a> LaneCap<'a> {
    /// The lanes that are passed over: those with more than half of their cap in flight.
    pub fn full_lanes(&self) -> Vec<&'a str> {
        names(self.held, |held| held > self.cap / 2)
    }

    /// The tenants that are passed over: those at their cap.
    pub fn full_tenants(&self) -> Vec<&'a str> {
        names(self.tenants, |held| held >= self.tenant_cap)
    }
}

fn names(counts: &[(String, usize)], is_full: impl Fn(usize) -> bool) -> Vec<&str> {
    counts.iter().filter(|(_, held)| is_full(*held)).map(|(name, _)| name.as_str()).collect()
}

/// A task in hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// That of the record it works on.
    pub id: Uuid,
    /// What it works on.
    pub kind: TaskKind,
    /// Whom it belongs to, for fairness.
    pub lane: String,
    /// Whose share of slots it takes, if lanes are no tenants in its queue.
    pub tenant: Option<String>,
    /// The fencing token.
    pub lease_token: Uuid,
    /// Claims so far, this one included.
    pub claims: i32,
    /// Whether somebody asked to stop it while it was in another worker's hands.
    pub cancel_requested: bool,
    /// W3C trace context of what caused it.
    pub traceparent: Option<String>,
    /// How long it had been due.
    pub waited: Duration,
}

/// A query that leases the tasks which the statement `$found` finds and locks, as [`Row`]s. Its arguments begin with the seconds of the
/// lease and the owner; then follow those of `$found`.
macro_rules! lease_found {
    ($found:literal, $wanted:expr $(, $argument:expr)*) => {
        sqlx::query_as!(
            Row,
            "WITH found AS MATERIALIZED (" + $found + r#")
             UPDATE tasks SET state = 'leased', lease_token = gen_random_uuid(), lease_owner = $2, claims = claims + 1, woken = false,
                              lease_until = now() + make_interval(secs => $1)
             WHERE id = ANY(ARRAY(SELECT id FROM found))
             RETURNING id, turn, kind, lane, tenant, lease_token AS "lease_token!", claims, cancel_requested, traceparent,
                       extract(epoch FROM now() - due_at)::float8 AS "waited!""#,
            $wanted.lease.as_secs_f64(),
            $wanted.owner
            $(, $argument)*
        )
    };
}

struct Row {
    id: Uuid,
    turn: i64,
    kind: String,
    lane: String,
    tenant: Option<String>,
    lease_token: Uuid,
    claims: i32,
    cancel_requested: bool,
    traceparent: Option<String>,
    waited: f64,
}

impl Row {
    fn claim(self) -> Result<Claim> {
        Ok(Claim {
            id: self.id,
            kind: known("tasks.kind", &self.kind)?,
            lane: self.lane,
            tenant: self.tenant,
            lease_token: self.lease_token,
            claims: self.claims,
            cancel_requested: self.cancel_requested,
            traceparent: self.traceparent,
            waited: seconds(self.waited).unwrap_or_default(),
        })
    }
}

/// What was leased, in the order in which it is to be served.
fn in_turn(mut rows: Vec<Row>) -> Result<Vec<Claim>> {
    rows.sort_unstable_by_key(|row| (row.turn, row.id));
    rows.into_iter().map(Row::claim).collect()
}

/// Leases up to `wanted.limit` ready tasks, in the order of their turns.
///
/// Nothing waits: rows that another worker is claiming are skipped. Kinds that this build does not know are left to a build that does.
#[tracing::instrument(skip_all, name = "db.task.claim")]
pub async fn claim(conn: &mut PgConnection, wanted: &Wanted<'_>) -> Result<Vec<Claim>> {
    let Some(caps) = &wanted.lanes else { return next_in_turn(conn, wanted).await };
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

/// The names of the kinds that this build knows.
fn kinds() -> Vec<&'static str> {
    TaskKind::ALL.iter().map(|kind| kind.as_str()).collect()
}

async fn next_in_turn(conn: &mut PgConnection, wanted: &Wanted<'_>) -> Result<Vec<Claim>> {
    let rows = lease_found!(
        "SELECT id FROM tasks WHERE queue = $3 AND state = 'ready' AND kind = ANY($4::text[]) AND suspect = $5
           AND turn >= task_floor($3)
         ORDER BY turn, id LIMIT $6 FOR UPDATE SKIP LOCKED",
        wanted,
        wanted.queue.as_str(),
        &kinds() as &[&str],
        wanted.suspects,
        count(wanted.limit)
    );
    in_turn(rows.fetch_all(conn).await?)
}

/// Leases those of `chosen` that are still ready.
async fn take(conn: &mut PgConnection, wanted: &Wanted<'_>, chosen: &[Uuid]) -> Result<Vec<Claim>> {
    let rows = lease_found!(
        "SELECT id FROM tasks
         WHERE id = ANY($3::uuid[]) AND queue = $4 AND state = 'ready' AND turn >= task_floor($4) FOR UPDATE SKIP LOCKED",
        wanted,
        chosen,
        wanted.queue.as_str()
    );
    in_turn(rows.fetch_all(conn).await?)
}

/// A ready task, as far as caps look at it.
struct Candidate {
    id: Uuid,
    lane: String,
    tenant: Option<String>,
}

/// The tasks that a capped claim should get, in the order of their turns.
async fn choose(conn: &mut PgConnection, wanted: &Wanted<'_>, caps: &LaneCap<'_>) -> Result<Vec<Uuid>> {
    let window = wanted.limit.saturating_add(MARGIN);
    let first = sqlx::query_as!(
        Candidate,
        "SELECT id, lane, tenant FROM tasks
         WHERE queue = $1 AND state = 'ready' AND kind = ANY($2::text[]) AND suspect = $3
           AND turn >= task_floor($1)
         ORDER BY turn, id LIMIT $4",
        wanted.queue.as_str(),
        &kinds() as &[&str],
        wanted.suspects,
        count(window),
    )
    .fetch_all(&mut *conn)
    .await?;
    let is_all = first.len() < window;
    let chosen = admit(first, caps, wanted.limit);
    if is_all || chosen.len() == wanted.limit { Ok(chosen) } else { choose_by_lane(conn, wanted, caps).await }
}

/// The same however much waits in the lanes that are full: from lane to lane.
async fn choose_by_lane(conn: &mut PgConnection, wanted: &Wanted<'_>, caps: &LaneCap<'_>) -> Result<Vec<Uuid>> {
    let heads = sqlx::query_as!(
        Candidate,
        r#"WITH RECURSIVE lanes AS (
               (SELECT lane FROM tasks WHERE queue = $1 AND state = 'ready' AND turn >= task_floor($1)
                ORDER BY lane LIMIT 1)
               UNION ALL
               SELECT (SELECT t.lane FROM tasks t WHERE t.queue = $1 AND t.state = 'ready' AND t.lane > lanes.lane
                         AND t.turn >= task_floor($1)
                       ORDER BY t.lane LIMIT 1)
               FROM lanes WHERE lanes.lane IS NOT NULL
           )
           SELECT head.id AS "id!", head.lane AS "lane!", head.tenant
           FROM lanes CROSS JOIN LATERAL (
               SELECT id, lane, tenant, turn FROM tasks
               WHERE queue = $1 AND state = 'ready' AND lane = lanes.lane AND kind = ANY($2::text[]) AND suspect = $3
                 AND turn >= task_floor($1) AND (tenant IS NULL OR tenant <> ALL($4::text[]))
               ORDER BY turn, id LIMIT $5
           ) head
           WHERE lanes.lane <> ALL($6::text[])
           ORDER BY head.turn, head.id LIMIT $7"#,
        wanted.queue.as_str(),
        &kinds() as &[&str],
        wanted.suspects,
        &caps.full_tenants() as &[&str],
        count(caps.cap.min(wanted.limit)),
        &caps.full_lanes() as &[&str],
        count(wanted.limit.saturating_add(MARGIN)),
    )
    .fetch_all(conn)
    .await?;
    Ok(admit(heads, caps, wanted.limit))
}

/// The first `limit` of the candidates whose lane and tenant have room.
fn admit(candidates: Vec<Candidate>, caps: &LaneCap<'_>, limit: usize) -> Vec<Uuid> {
    let (full_lanes, full_tenants) = (caps.full_lanes(), caps.full_tenants());
    let tally = |held: &[(String, usize)]| held.iter().cloned().collect::<HashMap<String, usize>>();
    let (mut lanes, mut tenants) = (tally(caps.held), tally(caps.tenants));
    let mut admitted = Vec::with_capacity(limit.min(candidates.len()));
    for Candidate { id, lane, tenant } in candidates {
        if admitted.len() == limit {
            break;
        }
        if full_lanes.contains(&lane.as_str()) || tenant.as_deref().is_some_and(|name| full_tenants.contains(&name)) {
            continue;
        }
        let in_lane = lanes.entry(lane).or_default();
        let of_tenant = tenant.map(|name| tenants.entry(name).or_default());
        if *in_lane < caps.cap && of_tenant.as_ref().is_none_or(|held| **held < caps.tenant_cap) {
            *in_lane += 1;
            of_tenant.into_iter().for_each(|held| *held += 1);
            admitted.push(id);
        }
    }
    admitted
}
