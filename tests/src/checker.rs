//! Invariants that must hold after a fault (docs/reliability.md#checks-after-every-fault).
//!
//! The checker reads the database, the queues of the broker and the requests of the webhook receiver. It reports all violations
//! at once, with the seed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::job::JobStatus;
use domain::limits::WEBHOOK_ATTEMPTS_MAX;
use sqlx::types::chrono::{DateTime, Utc};
use testkit::Received;
use uuid::Uuid;

use crate::load::{Accepted, Load, SECRET};
use crate::{PATIENCE, Stack, Work};

/// Records that are not in a terminal state, with a query for the count of each.
const UNSETTLED: [(&str, &str); 4] = [
    ("jobs", "SELECT count(*) FROM jobs WHERE status NOT IN ('succeeded', 'failed', 'canceled', 'expired')"),
    ("Recipe runs", "SELECT count(*) FROM recipe_runs WHERE completed_at IS NULL"),
    ("tasks", "SELECT count(*) FROM task_queue"),
    ("deliveries", "SELECT count(*) FROM webhook_deliveries WHERE status NOT IN ('delivered', 'failed')"),
];

/// The nodes that a job `j` fills. A video job may have none.
macro_rules! targets {
    () => {
        "SELECT ARRAY(SELECT jsonb_array_elements_text(CASE
             WHEN j.kind = 'video' AND j.request ->> 'target' IS NULL THEN '[]'
             ELSE coalesce(j.request::jsonb -> 'targets', jsonb_build_array(j.request ->> 'target')) END)) AS targets"
    };
}

/// Rows that must never exist. A job in `expired` had succeeded, because only successes expire.
const NEVER: [(&str, &str); 17] = [
    ("a job's history does not begin with queued", "SELECT count(*) FROM job_history WHERE version = 1 AND status <> 'queued'"),
    (
        // A video's progress changes the version, but not the state.
        "a job's history has a gap or does not end with its state",
        "SELECT count(*) FROM jobs j CROSS JOIN LATERAL (SELECT count(*) AS entries FROM job_history h WHERE h.job_id = j.id) AS of_job
         WHERE entries > j.version OR (entries < j.version AND j.kind <> 'video')
            OR (SELECT h.status FROM job_history h WHERE h.job_id = j.id ORDER BY h.version DESC LIMIT 1) IS DISTINCT FROM j.status",
    ),
    (
        "a job was terminal more than once",
        "SELECT count(*) FROM (SELECT job_id FROM job_history WHERE status IN ('succeeded', 'failed', 'canceled')
                               GROUP BY job_id HAVING count(*) <> 1) AS twice",
    ),
    ("a node still waits for a job", "SELECT count(*) FROM nodes WHERE active_job IS NOT NULL"),
    (
        "a success without its assets, or an asset of something else",
        concat!(
            "SELECT count(*) FROM jobs j CROSS JOIN LATERAL (",
            targets!(),
            ") AS of_job CROSS JOIN LATERAL (
                 SELECT count(*) AS assets FROM nodes n JOIN assets a ON a.owner_uid = n.asset_owner AND a.id = n.asset_id
                 WHERE n.canvas_key = j.canvas_key AND n.id = ANY(targets) AND a.canvas_key = j.canvas_key) AS shown
             WHERE shown.assets <> CASE WHEN j.status IN ('succeeded', 'expired') THEN cardinality(targets) ELSE 0 END"
        ),
    ),
    (
        "assets that no success made",
        concat!(
            "SELECT abs((SELECT count(*) FROM assets WHERE canvas_key IS NOT NULL AND node_id IS NULL)
                      - (SELECT coalesce(sum(cardinality(targets)), 0) FROM jobs j CROSS JOIN LATERAL (",
            targets!(),
            ") AS of_job WHERE status IN ('succeeded', 'expired')))::bigint"
        ),
    ),
    (
        "a job that shows something without exactly one finishing revision change, or a step of a Recipe run with any",
        concat!(
            "SELECT count(*) FROM jobs j CROSS JOIN LATERAL (",
            targets!(),
            ") AS of_job WHERE cardinality(targets) > 0 AND (j.recipe_run IS NULL)::integer <> (
                 SELECT count(*) FROM canvas_changes c WHERE c.canvas_key = j.canvas_key
                   AND c.activity ->> 'type' = 'job.finished' AND targets && c.changed_nodes)"
        ),
    ),
    ("more than four attempts", "SELECT count(*) FROM webhook_deliveries WHERE attempts > 4"),
    (
        "attempts that were not counted",
        "SELECT count(*) FROM webhook_deliveries d
         WHERE d.attempts <> (SELECT count(*) FROM webhook_attempts a WHERE a.delivery_id = d.id AND NOT a.replay)",
    ),
    ("a delivery without an event", "SELECT count(*) FROM webhook_deliveries WHERE event_id IS NULL"),
    (
        "a balance that is not the sum of its ledger",
        "SELECT count(*) FROM accounts a
         WHERE credit_balance <> (SELECT coalesce(sum(amount), 0) FROM ledger l WHERE l.account_uid = a.uid)",
    ),
    (
        // What the present window reserved and has returned. A step of a Recipe run was reserved under the run.
        "a budget of credits that is not what the ledger says",
        "SELECT count(*) FROM budgets b CROSS JOIN LATERAL (
             SELECT coalesce(-sum(l.amount), 0) AS spent FROM ledger l
             LEFT JOIN jobs j ON j.id = l.job_id
             JOIN LATERAL (SELECT created_at FROM ledger r WHERE r.job_id = coalesce(j.recipe_run, l.job_id)
                           AND r.reason = 'reserve' LIMIT 1) r ON r.created_at >= b.window_from
             WHERE l.account_uid = b.account_uid AND l.authority IS NOT NULL
               AND (b.authority IS NULL OR b.authority = l.authority)) AS counted
         WHERE b.unit = 'credits' AND b.spent <> counted.spent",
    ),
    (
        "an account whose count of stored bytes is not the sum of what it stores",
        "SELECT count(*) FROM accounts a LEFT JOIN account_storage s ON s.account_uid = a.uid
         WHERE coalesce(s.bytes, 0) <> (SELECT coalesce(sum(bytes), 0) FROM (
             SELECT asset_counted(bytes, original_bytes) AS bytes FROM assets WHERE owner_uid = a.uid
             UNION ALL
             SELECT counted FROM canvases WHERE owner_uid = a.uid
             UNION ALL
             SELECT b.bytes FROM jobs j JOIN blobs b ON b.key = j.video_blob WHERE j.account_uid = a.uid) AS stored)",
    ),
    (
        "a canvas whose history is not the sum of its records",
        "SELECT count(*) FROM canvases c
         WHERE history_bytes <> (SELECT coalesce(sum(bytes), 0) FROM canvas_changes WHERE canvas_key = c.key)
                                + (SELECT coalesce(sum(bytes), 0) FROM deleted_nodes WHERE canvas_key = c.key)
                                + (SELECT coalesce(sum(bytes), 0) FROM deleted_connections WHERE canvas_key = c.key)",
    ),
    (
        "a job whose ledger is not what it cost",
        "SELECT count(*) FROM jobs j
         WHERE -j.credit_cost <> (SELECT coalesce(sum(amount), 0) FROM ledger l WHERE l.job_id = j.id)",
    ),
    (
        "a Recipe run that is over and holds credit",
        "SELECT count(*) FROM recipe_runs WHERE completed_at IS NOT NULL AND reserved <> 0",
    ),
    (
        "a job that was paid for or settled twice",
        "SELECT count(*) FROM (SELECT FROM ledger l JOIN jobs j ON j.id = l.job_id
                               GROUP BY l.job_id, l.reason HAVING count(*) > 1) AS twice",
    ),
];

/// Waits until no work is left and returns how long that took. Panics after `limit` and lists the remaining work.
pub async fn settled(stack: &Stack, limit: Duration) -> Duration {
    let began = std::time::Instant::now();
    loop {
        let mut left = Vec::new();
        for (what, sql) in UNSETTLED {
            match sqlx::query_scalar::<_, i64>(sql).fetch_one(stack.pool()).await {
                Ok(0) => {}
                Ok(count) => left.push(format!("{count} {what}")),
                // The database is restarting.
                Err(error) => left.push(format!("{what}: {error}")),
            }
        }
        if left.is_empty() {
            return began.elapsed();
        }
        assert!(began.elapsed() < limit, "stuck after {limit:?}: {}\n{}", left.join(", "), stuck(stack).await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The jobs, Recipe runs and deliveries that were accepted before a time and are not terminal.
const UNDRAINED: &str = "
    SELECT (SELECT count(*) FROM jobs WHERE created_at <= $1
              AND status NOT IN ('succeeded', 'failed', 'canceled', 'expired'))
         + (SELECT count(*) FROM recipe_runs WHERE created_at <= $1 AND completed_at IS NULL)
         + (SELECT count(*) FROM webhook_deliveries WHERE created_at <= $1 AND status NOT IN ('delivered', 'failed'))";

/// Waits until all work that was accepted before this call is done, even if more arrives, and returns how long that took.
/// Panics after `limit`. The database must be available.
pub async fn drained(stack: &Stack, limit: Duration) -> Duration {
    let began = std::time::Instant::now();
    let now: DateTime<Utc> = sqlx::query_scalar("SELECT now()").fetch_one(stack.pool()).await.expect("reads the time");
    testkit::wait_for("accepted work to end", limit, async || {
        let left: i64 = sqlx::query_scalar(UNDRAINED).bind(now).fetch_one(stack.pool()).await.expect("counts");
        (left == 0).then_some(())
    })
    .await;
    began.elapsed()
}

/// The remaining rows as text, for error messages.
async fn stuck(stack: &Stack) -> String {
    let rows: Result<Vec<String>, _> = sqlx::query_scalar(
        "(SELECT 'task ' || t::text FROM task_queue t LIMIT 10)
         UNION ALL (SELECT concat_ws(' ', 'job', id, status, version) FROM jobs
                    WHERE status NOT IN ('succeeded', 'failed', 'canceled', 'expired') LIMIT 10)
         UNION ALL (SELECT concat_ws(' ', 'delivery', id, job_id, status, attempts) FROM webhook_deliveries
                    WHERE status NOT IN ('delivered', 'failed') LIMIT 10)",
    )
    .fetch_all(stack.pool())
    .await;
    rows.map_or_else(|error| error.to_string(), |rows| rows.join("\n"))
}

/// Waits at most `limit` until no work is left, and panics with all violations.
pub async fn check(stack: &Stack, load: &Load<'_>, limit: Duration) {
    settled(stack, limit).await;
    let mut wrong = invariants(stack).await;
    let accepted = load.accepted();
    wrong.extend(statuses(stack, &accepted).await);
    wrong.extend(submits(stack, load).await);
    wrong.extend(events(stack, &accepted, &load.receiver().requests()).await);
    wrong.extend(queues(stack).await);
    assert!(wrong.is_empty(), "seed {}: after the fault\n  {}", load.seed(), wrong.join("\n  "));
}

/// Deletes what a load left, because the checker would report it in the next round on the same stack.
pub async fn forget(stack: &Stack) {
    // TRUNCATE runs no triggers, so the counters that they maintain are truncated as well.
    stack.execute("TRUNCATE jobs, job_history, webhook_deliveries, webhook_attempts, recipe_runs, canvases, assets, account_storage CASCADE").await;
}

/// All violations in the stored data, whichever load created it.
pub async fn invariants(stack: &Stack) -> Vec<String> {
    let mut wrong = Vec::new();
    for (what, sql) in NEVER {
        let count = stack.count(sql).await;
        if count != 0 {
            wrong.push(format!("{what}: {count}"));
        }
    }
    let history: Vec<(Uuid, String)> =
        sqlx::query_as("SELECT job_id, status FROM job_history ORDER BY job_id, version")
            .fetch_all(stack.pool())
            .await
            .expect("reads");
    for pair in history.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let status = |index: usize| pair[index].1.parse::<JobStatus>().expect("a known state");
        if !status(0).may_become(status(1)) {
            wrong.push(format!("job {} went from {} to {}", pair[0].0, pair[0].1, pair[1].1));
        }
    }
    wrong
}

/// Jobs and Recipe runs that clients started, with their final state and failure code. Jobs of a Recipe run's steps are left out.
/// Only a success expires (docs/reference/jobs.md#expired-records), so an expired job counts as succeeded.
const STARTED: &str = "
    SELECT id, account_uid, CASE status WHEN 'expired' THEN 'succeeded' ELSE status END, outcome #>> '{failure,code}'
    FROM jobs WHERE recipe_run IS NULL
    UNION ALL SELECT id, account_uid, status, failure ->> 'code' FROM recipe_runs";

/// Checks that every accepted job exists with an allowed outcome, and that no other job exists.
async fn statuses(stack: &Stack, accepted: &[Accepted]) -> Vec<String> {
    let rows: Vec<(Uuid, String, String, Option<String>)> =
        sqlx::query_as(STARTED).fetch_all(stack.pool()).await.expect("reads");
    let kept: BTreeMap<Uuid, (String, String, Option<String>)> =
        rows.into_iter().map(|(id, uid, status, code)| (id, (uid, status, code))).collect();
    let mut wrong = Vec::new();
    let mut ends: BTreeMap<Work, BTreeMap<&str, usize>> = BTreeMap::new();
    for Accepted { job, uid, work, .. } in accepted {
        let Some((owner, status, code)) = kept.get(job) else {
            wrong.push(format!("accepted job {job} is lost"));
            continue;
        };
        if owner != uid {
            wrong.push(format!("job {job} is {owner}'s, not {uid}'s"));
        }
        let code = code.as_deref().unwrap_or_default();
        let as_it_may = status == "succeeded" || status == "failed" && work.may_fail_with().contains(&code);
        if !as_it_may {
            wrong.push(format!("{work:?} {job} {status} {code}"));
        }
        *ends.entry(*work).or_default().entry(status).or_default() += 1;
    }
    // If no job of a kind succeeded, the kind was not tested.
    for (work, ends) in ends.iter().filter(|(_, ends)| !ends.contains_key("succeeded")) {
        wrong.push(format!("no {work:?} succeeded: {ends:?}"));
    }
    let known: BTreeSet<Uuid> = accepted.iter().map(|accepted| accepted.job).collect();
    if known.len() != accepted.len() {
        wrong.push(format!("{} starts were answered with {} jobs", accepted.len(), known.len()));
    }
    wrong.extend(kept.keys().filter(|job| !known.contains(job)).map(|job| format!("job {job} was never accepted")));
    wrong
}

/// Checks that the provider started each output once, or not at all if the job failed, because a second submit costs money twice.
/// The load does not know the ids of the jobs of Recipe runs.
async fn submits(stack: &Stack, load: &Load<'_>) -> Vec<String> {
    let Some(simulator) = load.simulator() else { return Vec::new() };
    let mut begun: BTreeMap<String, usize> = BTreeMap::new();
    for submit in simulator.submits().into_iter().filter(|submit| submit.accepted) {
        *begun.entry(submit.idempotency_key.unwrap_or_default()).or_default() += 1;
    }
    let outputs = "SELECT job_id::text || '-' || position FROM job_outputs";
    let ordered: BTreeSet<String> =
        sqlx::query_scalar::<_, String>(outputs).fetch_all(stack.pool()).await.expect("reads").into_iter().collect();
    let twice =
        begun.iter().filter(|(_, count)| **count > 1).map(|(order, count)| format!("{order} was begun {count} times"));
    let strange =
        begun.keys().filter(|order| !ordered.contains(*order)).map(|order| format!("{order} was never ordered"));
    twice.chain(strange).collect()
}

/// Checks that the one event of each run arrived: signed, with the same bytes under the same ids, and at most four times.
async fn events(stack: &Stack, accepted: &[Accepted], requests: &[Received]) -> Vec<String> {
    let rows: Vec<(Uuid, Uuid, String, Vec<u8>, String)> =
        sqlx::query_as("SELECT job_id, id, event_id, body, status FROM webhook_deliveries WHERE event_id IS NOT NULL")
            .fetch_all(stack.pool())
            .await
            .expect("reads");
    let kept: BTreeMap<Uuid, _> =
        rows.into_iter().map(|(job, id, event, body, status)| (job, (id, event, body, status))).collect();
    let mut wrong = Vec::new();
    let mut by_path: BTreeMap<&str, Vec<&Received>> = BTreeMap::new();
    for request in requests {
        by_path.entry(&request.path).or_default().push(request);
    }
    let mut seen = BTreeSet::new();
    for (job, path) in accepted.iter().filter_map(|accepted| Some((accepted.job, accepted.path.as_deref()?))) {
        let got = by_path.remove(path).unwrap_or_default();
        let Some((id, event, body, status)) = kept.get(&job) else {
            wrong.push(format!("job {job} has no delivery"));
            continue;
        };
        if !seen.insert(event) {
            wrong.push(format!("event {event} belongs to two jobs"));
        }
        if status != "delivered" || got.is_empty() {
            wrong.push(format!("the event of job {job} arrived {} times and is {status}", got.len()));
        }
        if got.len() > WEBHOOK_ATTEMPTS_MAX as usize {
            wrong.push(format!("the event of job {job} was sent {} times", got.len()));
        }
        for request in got {
            let reported = serde_json::from_slice::<serde_json::Value>(&request.body).unwrap_or_default();
            let is_it = request.body == body.as_slice()
                && reported["id"] == event.as_str()
                && request.header("service-webhook-id").is_ok_and(|header| header == format!("webhook:{id}"));
            // The processes may be of a release that signed in this form alone.
            if !is_it || request.verify_own(SECRET).is_err() {
                wrong.push(format!("the event of job {job} arrived with other content: {reported}"));
            }
        }
    }
    wrong.extend(by_path.keys().map(|path| format!("an event of no accepted job arrived at {path}")));
    wrong
}

/// Checks that queues and dead letters become empty once idle workers have polled.
async fn queues(stack: &Stack) -> Vec<String> {
    let began = std::time::Instant::now();
    loop {
        let left: Option<Vec<_>> =
            stack.queue_depths().await.map(|depths| depths.into_iter().filter(|(_, depth)| *depth > 0).collect());
        match left {
            Some(left) if left.is_empty() => return Vec::new(),
            left if began.elapsed() > PATIENCE => return vec![format!("messages are left: {left:?}")],
            _ => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}
