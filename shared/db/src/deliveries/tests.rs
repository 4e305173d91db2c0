use std::time::Duration;

use domain::webhook::{DeliveryError, DeliveryStatus};
use sqlx::PgPool;
use testkit::TestDatabase;

use super::attempts::{Attempt, AttemptRecord, BeginResult, LeasedDelivery, Next, begin, record};
use super::operation::{After, Replay, list, replay, sweep};
use super::*;
use crate::tasks::{self, ClaimRequest};

const FINALIZED: Duration = Duration::from_secs(900);
const URL: &str = "https://hooks.example.com/in?key=1";

/// A run's delivery in its own database.
struct Case {
    database: TestDatabase,
    account: AccountUid,
    id: Uuid,
    job: JobId,
}

impl Case {
    /// A run that has not ended.
    async fn new() -> Self {
        let database = TestDatabase::new().await;
        let account = AccountUid::parse("owner").expect("valid");
        run(database.pool(), "INSERT INTO accounts (uid, email) VALUES ('owner', 'owner@example.com')").await;
        let (id, job) = insert_one(database.pool(), &account).await;
        Self { database, account, id, job }
    }

    /// A run that has ended, with its event.
    async fn ended() -> Self {
        let case = Self::new().await;
        assert!(complete_one(case.database.pool(), case.job).await);
        case
    }

    fn pool(&self) -> &PgPool {
        self.database.pool()
    }

    async fn state(&self) -> DeliveryState {
        state(&mut *conn(self.pool()).await, self.job).await.expect("reads").expect("is there")
    }

    /// Claims the only ready task.
    async fn claim(&self) -> LeasedDelivery {
        let leased = claim(self.pool(), 10).await;
        assert_eq!(leased.len(), 1, "one ready task");
        leased[0]
    }

    /// The state after a crash: an expired lease, whose task is made ready and claimed again.
    async fn claim_after_crash(&self) -> LeasedDelivery {
        run(self.pool(), "UPDATE task_queue SET lease_until = now() - interval '1 second' WHERE state = 'leased'")
            .await;
        self.claim_when_due().await
    }

    /// Makes the only task due and claims it. Due means a moment in the past, because stored times are rounded to milliseconds,
    /// sometimes up.
    async fn claim_when_due(&self) -> LeasedDelivery {
        run(self.pool(), "UPDATE task_queue SET due_at = now() - interval '1 ms' WHERE state = 'parked'").await;
        tasks::promote(&mut *conn(self.pool()).await, Queue::Webhook, 10, &tasks::LowWaterMarks::default(), &[])
            .await
            .expect("promotes");
        self.claim().await
    }

    async fn begin(&self, leased: LeasedDelivery) -> BeginResult {
        begin(&mut *conn(self.pool()).await, &[leased], FINALIZED).await.expect("begins").remove(0)
    }

    async fn attempt(&self, leased: LeasedDelivery) -> Attempt {
        match self.begin(leased).await {
            BeginResult::Attempt(attempt) => *attempt,
            other => panic!("no attempt but {other:?}"),
        }
    }

    async fn record(&self, leased: LeasedDelivery, attempt: &Attempt, status: Option<u16>, next: Next) -> bool {
        let attempt = Some((attempt.number, attempt.replay));
        let outcome = AttemptRecord { leased, attempt, status, error: status.is_none().then_some("timeout"), next };
        record(&mut *conn(self.pool()).await, &[outcome]).await.expect("records")[0]
    }

    /// Claims, begins and records one attempt.
    async fn try_once(&self, status: u16, next: Next) -> Attempt {
        let leased = self.claim_when_due().await;
        let attempt = self.attempt(leased).await;
        assert!(self.record(leased, &attempt, Some(status), next).await);
        attempt
    }

    async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(self.pool()).await.expect("counts")
    }
}

async fn conn(pool: &PgPool) -> sqlx::pool::PoolConnection<sqlx::Postgres> {
    pool.acquire().await.expect("connects")
}

async fn run(pool: &PgPool, sql: &'static str) {
    sqlx::raw_sql(sql).execute(pool).await.expect("runs");
}

async fn insert_one(pool: &PgPool, account: &AccountUid) -> (Uuid, JobId) {
    let (id, job_id) = (Uuid::now_v7(), JobId::generate());
    let new = NewDelivery { id, account, job_id, url: URL, sealed_secret: "v1.k1.abc" };
    insert(&mut *conn(pool).await, &new).await.expect("inserts");
    (id, job_id)
}

async fn complete_one(pool: &PgPool, job: JobId) -> bool {
    let event = NewEvent {
        id: Uuid::nil(),
        kind: EventType::ImageJobSucceeded,
        body: br#"{"id":"event"}"#,
        traceparent: Some("00-1-2-01"),
    };
    complete(&mut *conn(pool).await, job, &event).await.expect("completes").is_some()
}

async fn claim(pool: &PgPool, limit: usize) -> Vec<LeasedDelivery> {
    let mut claims = Vec::new();
    for quarantined in [false, true] {
        let lease = Duration::from_secs(30);
        let wanted = ClaimRequest { queue: Queue::Webhook, limit, quarantined, caps: None, lease, owner: "test" };
        claims.extend(tasks::claim(&mut *conn(pool).await, &wanted).await.expect("claims"));
    }
    claims.into_iter().map(|claim| LeasedDelivery { id: claim.id, lease_token: claim.lease_token }).collect()
}

#[test]
fn the_lane_is_the_destination_with_its_port() {
    for (url, fairness_key) in [
        ("https://hooks.example.com/a?b#c", "hooks.example.com:443"),
        ("https://HOOKS.example.com:8443/", "hooks.example.com:8443"),
        ("https://[2606:4700::1]/", "[2606:4700::1]:443"),
        ("no url", "none"),
    ] {
        assert_eq!(destination(url), fairness_key, "{url}");
    }
}

#[tokio::test]
async fn a_delivery_waits_for_the_runs_end_and_takes_one_event() {
    let case = Case::new().await;
    let state = case.state().await;
    assert_eq!((state.id, state.status, state.attempts), (handle(case.id), DeliveryStatus::Pending, 0));
    assert_eq!(state.next_attempt_at, None);
    assert_eq!(case.count("SELECT count(*) FROM task_queue").await, 0);

    assert!(complete_one(case.pool(), case.job).await);
    assert!(!complete_one(case.pool(), case.job).await, "its event is fixed");
    assert!(!complete_one(case.pool(), JobId::generate()).await, "a run without webhook");
    assert!(case.state().await.next_attempt_at.is_some());
    let tasks =
        "SELECT count(*) FROM task_queue JOIN webhook_deliveries d ON d.id = task_queue.id
                 WHERE fairness_key = 'hooks.example.com:443' AND queue = 'webhook' AND kind = 'delivery' AND state = 'ready'
                   AND traceparent = '00-1-2-01' AND d.event_id = 'event:00000000-0000-0000-0000-000000000000'";
    assert_eq!(case.count(tasks).await, 1);
}

#[tokio::test]
async fn an_attempt_counts_before_it_is_sent() {
    let case = Case::ended().await;
    let leased = case.claim().await;
    let attempt = case.attempt(leased).await;
    assert_eq!((attempt.number, attempt.replay, attempt.job_id), (1, false, case.job));
    assert_eq!((&*attempt.url, &*attempt.body), (URL, &br#"{"id":"event"}"#[..]));
    let state = case.state().await;
    assert_eq!((state.status, state.attempts), (DeliveryStatus::Delivering, 1));
    assert!(state.last_attempt_at.is_some() && state.next_attempt_at.is_none());
    assert_eq!(case.count("SELECT count(*) FROM webhook_attempts WHERE finished_at IS NULL").await, 1);
}

#[tokio::test]
async fn an_acknowledged_delivery_is_over() {
    let case = Case::ended().await;
    case.try_once(204, Next::Delivered).await;
    let state = case.state().await;
    assert_eq!((state.status, state.attempts, state.last_status), (DeliveryStatus::Delivered, 1, Some(204)));
    assert!(state.delivered_at.is_some() && state.error_code.is_none());
    assert_eq!(case.count("SELECT count(*) FROM task_queue").await, 0);
    assert_eq!(
        case.count("SELECT count(*) FROM webhook_attempts WHERE status = 204 AND finished_at IS NOT NULL").await,
        1
    );
}

#[tokio::test]
async fn a_retry_is_parked_until_the_time_that_is_shown() {
    let case = Case::ended().await;
    case.try_once(503, Next::RetryAfter(Duration::from_millis(10_250))).await;
    let state = case.state().await;
    assert_eq!((state.status, state.attempts, state.last_status), (DeliveryStatus::Pending, 1, Some(503)));
    let same = "SELECT count(*) FROM task_queue JOIN webhook_deliveries d USING (id)
                WHERE state = 'parked' AND claims = 0 AND due_at = next_attempt_at
                  AND due_at - last_attempt_at BETWEEN interval '10.25 s' AND interval '11 s'";
    assert_eq!(case.count(same).await, 1);
    assert_eq!(case.try_once(200, Next::Delivered).await.number, 2);
}

#[tokio::test]
async fn there_is_no_fifth_attempt_even_after_crashes() {
    let case = Case::ended().await;
    let mut leased = case.claim().await;
    for number in 1..=4 {
        assert_eq!(case.attempt(leased).await.number, number);
        leased = case.claim_after_crash().await;
    }
    assert!(matches!(case.begin(leased).await, BeginResult::Spent));
    let next = Next::Failed(DeliveryError::DeliveryFailed);
    let outcome = AttemptRecord { leased, attempt: None, status: None, error: None, next };
    assert_eq!(record(&mut *conn(case.pool()).await, &[outcome]).await.expect("records"), [true]);
    let state = case.state().await;
    assert_eq!((state.status, state.attempts), (DeliveryStatus::Failed, 4));
    assert_eq!(state.error_code, Some(DeliveryError::DeliveryFailed));
    assert_eq!(case.count("SELECT count(*) FROM task_queue").await, 0);
}

#[tokio::test]
async fn whoever_lost_the_lease_begins_and_records_nothing() {
    let case = Case::ended().await;
    let stale = case.claim().await;
    let attempt = case.attempt(stale).await;
    let leased = case.claim_after_crash().await;
    assert!(matches!(case.begin(stale).await, BeginResult::LeaseLost));
    assert!(!case.record(stale, &attempt, Some(200), Next::Delivered).await);
    assert_eq!(case.state().await.status, DeliveryStatus::Delivering);
    assert_eq!(case.attempt(leased).await.number, 2);
}

#[tokio::test]
async fn begun_again_under_one_lease_it_is_the_attempt_that_was_counted() {
    let case = Case::ended().await;
    let leased = case.claim().await;
    let (first, again) = (case.attempt(leased).await, case.attempt(leased).await);
    assert_eq!((first.number, again.number), (1, 1));
    assert_eq!((&first.event_id, &first.body, &first.url), (&again.event_id, &again.body, &again.url));
    assert_eq!(case.state().await.attempts, 1);
    assert_eq!(case.count("SELECT count(*) FROM webhook_attempts").await, 1);
    // The same holds for the last attempt, and the next lease counts again.
    for number in 2..=4 {
        let leased = case.claim_after_crash().await;
        assert_eq!((case.attempt(leased).await.number, case.attempt(leased).await.number), (number, number));
    }
    assert!(matches!(case.begin(case.claim_after_crash().await).await, BeginResult::Spent));
}

#[tokio::test]
async fn two_begins_at_once_under_one_lease_count_one_attempt() {
    let case = Case::ended().await;
    let leased = case.claim().await;
    let mut first = case.pool().begin().await.expect("begins");
    begin(&mut first, &[leased], FINALIZED).await.expect("counts");
    let second = tokio::spawn({
        let pool = case.pool().clone();
        async move { begin(&mut *conn(&pool).await, &[leased], FINALIZED).await.map(drop) }
    });
    testkit::wait_for("the second to wait for the first", Duration::from_secs(10), async || {
        (case
            .count(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
            )
            .await
            > 0)
        .then_some(())
    })
    .await;
    first.commit().await.expect("commits");
    assert!(second.await.expect("ends").is_err(), "the index rejects it");
    assert_eq!((case.state().await.attempts, case.attempt(leased).await.number), (1, 1));
}

#[tokio::test]
async fn in_a_batch_each_delivery_stands_for_itself() {
    let case = Case::ended().await;
    for _ in 0..3 {
        let (_, job) = insert_one(case.pool(), &case.account).await;
        sqlx::query("UPDATE webhook_deliveries SET event_id = 'e' || id, body = 'x' WHERE job_id = $1")
            .bind(job.0)
            .execute(case.pool())
            .await
            .expect("updates");
    }
    sqlx::query(
        "INSERT INTO task_queue (id, queue, kind, fairness_key, fair_seq) SELECT id, 'webhook', 'delivery', 'x', 1
         FROM webhook_deliveries d WHERE NOT EXISTS (SELECT FROM task_queue t WHERE t.id = d.id)",
    )
    .execute(case.pool())
    .await
    .expect("enqueues");
    let leased = claim(case.pool(), 10).await;
    assert_eq!(leased.len(), 4);
    let mut wanted = leased.clone();
    wanted[1].lease_token = Uuid::nil();
    sqlx::query("UPDATE webhook_deliveries SET attempts = 4 WHERE id = $1")
        .bind(leased[2].id)
        .execute(case.pool())
        .await
        .expect("updates");
    sqlx::query("DELETE FROM webhook_deliveries WHERE id = $1")
        .bind(leased[3].id)
        .execute(case.pool())
        .await
        .expect("deletes");
    let begun = begin(&mut *conn(case.pool()).await, &wanted, FINALIZED).await.expect("begins");
    assert!(
        matches!(&begun[..], [BeginResult::Attempt(_), BeginResult::LeaseLost, BeginResult::Spent, BeginResult::Gone]),
        "{begun:?}"
    );
    let outcomes: Vec<_> = wanted[..2]
        .iter()
        .map(|leased| AttemptRecord {
            leased: *leased,
            attempt: Some((1, false)),
            status: None,
            error: None,
            next: Next::Delivered,
        })
        .collect();
    assert_eq!(record(&mut *conn(case.pool()).await, &outcomes).await.expect("records"), [true, false]);
}

/// Inserts a succeeded job for each delivery.
async fn succeeded(case: &Case) {
    run(
        case.pool(),
        "INSERT INTO account_sessions (id, account_uid) VALUES ('00000000-0000-0000-0000-000000000001', 'owner');
         INSERT INTO tokens (id, account_uid, session_id, label, scopes, surface, secret_hash)
         VALUES ('00000000-0000-0000-0000-000000000002', 'owner', '00000000-0000-0000-0000-000000000001', 'l', '{}', 'api', '');
         INSERT INTO jobs (id, account_uid, token_id, kind, operation, status, request, estimated_seconds, retain_until)
         SELECT job_id, 'owner', '00000000-0000-0000-0000-000000000002', 'image', 'generate', 'succeeded', '{}', 1,
                now() + interval '1 day'
         FROM webhook_deliveries",
    )
    .await;
}

#[tokio::test]
async fn an_attempt_brings_back_no_result_that_is_overdue() {
    let case = Case::ended().await;
    succeeded(&case).await;
    run(case.pool(), "UPDATE jobs SET retain_until = now() - interval '1 s'").await;
    case.try_once(200, Next::Delivered).await;
    assert_eq!(case.count("SELECT count(*) FROM jobs WHERE finalized_at IS NULL AND retain_until <= now()").await, 1);
}

#[tokio::test]
async fn the_first_attempt_starts_the_window_of_the_result() {
    let case = Case::ended().await;
    succeeded(&case).await;
    case.try_once(503, Next::RetryAfter(Duration::ZERO)).await;
    let kept = "SELECT count(*) FROM jobs JOIN webhook_deliveries d ON d.job_id = jobs.id
                WHERE finalized_at = last_attempt_at AND retain_until = finalized_at + interval '900 s'";
    assert_eq!(case.count(kept).await, 1);
    run(case.pool(), "UPDATE jobs SET finalized_at = finalized_at - interval '1 s'").await;
    case.try_once(200, Next::Delivered).await;
    assert_eq!(case.count("SELECT count(*) FROM jobs WHERE retain_until = finalized_at + interval '901 s'").await, 1);
}

#[tokio::test]
async fn a_replay_is_one_more_attempt_recorded_apart() {
    let case = Case::ended().await;
    let ask =
        async || replay(&mut *conn(case.pool()).await, case.id, None).await.expect("replays").map(|(_, replay)| replay);
    assert_eq!(ask().await, Some(Replay::Unfinished(DeliveryStatus::Pending)));
    let first = case.try_once(200, Next::Delivered).await;
    for number in 1..=2 {
        assert_eq!(ask().await, Some(Replay::Enqueued(DeliveryStatus::Pending)));
        let again = case.try_once(500, Next::Failed(DeliveryError::DeliveryFailed)).await;
        assert_eq!((again.number, again.replay), (number, true));
        assert_eq!((&again.event_id, &again.body), (&first.event_id, &first.body));
        let state = case.state().await;
        assert_eq!((state.status, state.attempts), (DeliveryStatus::Failed, 1));
    }
    assert_eq!(ask().await, Some(Replay::Enqueued(DeliveryStatus::Pending)));
    case.try_once(200, Next::Delivered).await;
    let state = case.state().await;
    assert_eq!((state.status, state.attempts, state.error_code), (DeliveryStatus::Delivered, 1, None));
    assert_eq!(case.count("SELECT count(*) FROM webhook_attempts WHERE replay").await, 3);
    assert_eq!(replay(&mut *conn(case.pool()).await, Uuid::nil(), None).await.expect("replays"), None);
}

#[tokio::test]
async fn a_replay_survives_crashes_but_not_for_ever() {
    let case = Case::ended().await;
    case.try_once(410, Next::Failed(DeliveryError::EndpointRejected)).await;
    replay(&mut *conn(case.pool()).await, case.id, None).await.expect("replays");
    let mut leased = case.claim().await;
    for number in 1..=4 {
        let attempt = case.attempt(leased).await;
        assert_eq!((attempt.number, attempt.replay), (number, true));
        leased = case.claim_after_crash().await;
    }
    assert!(matches!(case.begin(leased).await, BeginResult::Spent));
    assert_eq!(case.state().await.attempts, 1);
}

#[tokio::test]
async fn operators_see_the_newest_first_by_account_and_status() {
    let case = Case::ended().await;
    case.try_once(301, Next::Failed(DeliveryError::RedirectNotAllowed)).await;
    run(case.pool(), "UPDATE webhook_deliveries SET created_at = created_at - interval '1 hour'").await;
    let (newer, _) = insert_one(case.pool(), &case.account).await;
    let ids = async |account: Option<&AccountUid>, status, limit| -> Vec<Uuid> {
        let listed = list(&mut *conn(case.pool()).await, account, status, None, limit).await.expect("lists");
        listed.into_iter().map(|listed| listed.id).collect()
    };
    assert_eq!(ids(None, None, 10).await, [newer, case.id]);
    assert_eq!(ids(None, None, 1).await, [newer]);
    assert_eq!(ids(Some(&case.account), Some(DeliveryStatus::Failed), 10).await, [case.id]);
    assert_eq!(ids(Some(&AccountUid::parse("other").expect("valid")), None, 10).await, [] as [Uuid; 0]);
    let listed =
        list(&mut *conn(case.pool()).await, None, Some(DeliveryStatus::Failed), None, 10).await.expect("lists");
    let state = &listed[0].state;
    assert_eq!((state.last_status, state.error_code), (Some(301), Some(DeliveryError::RedirectNotAllowed)));
}

#[tokio::test]
async fn a_list_of_deliveries_pages_without_gap_or_repeat() {
    let case = Case::ended().await;
    for _ in 0..2 {
        insert_one(case.pool(), &case.account).await;
    }
    // All at the same time, so that the order is that of the ids.
    run(case.pool(), "UPDATE webhook_deliveries SET created_at = date_trunc('second', created_at)").await;
    let page = async |after: Option<&After>, limit| {
        list(&mut *conn(case.pool()).await, Some(&case.account), None, after, limit).await.expect("lists")
    };
    let all = page(None, 10).await;
    let first = page(None, 2).await;
    let after = After { created_at: first[1].created_at, id: first[1].id };
    assert_eq!([first, page(Some(&after), 2).await].concat(), all);
    assert_eq!(all.len(), 3);
}

#[tokio::test]
async fn an_account_replays_its_own_deliveries_alone() {
    let case = Case::ended().await;
    case.try_once(410, Next::Failed(DeliveryError::EndpointRejected)).await;
    let other = AccountUid::parse("other").expect("valid");
    let ask = async |account| {
        replay(&mut *conn(case.pool()).await, case.id, account).await.expect("answers").map(|(_, replay)| replay)
    };
    assert_eq!(ask(Some(&other)).await, None);
    assert_eq!(ask(Some(&case.account)).await, Some(Replay::Enqueued(DeliveryStatus::Pending)));
}

#[tokio::test]
async fn a_delivery_goes_thirty_days_after_its_last_attempt_and_never_before_its_end() {
    let case = Case::ended().await;
    let swept = async || sweep(&mut *conn(case.pool()).await, 10).await.expect("sweeps");
    run(case.pool(), "UPDATE webhook_deliveries SET created_at = now() - interval '60 days'").await;
    assert_eq!(swept().await, 0, "pending");
    case.try_once(200, Next::Delivered).await;
    run(
        case.pool(),
        "UPDATE webhook_deliveries SET last_attempt_at = now() - interval '30 days' + interval '1 minute'",
    )
    .await;
    assert_eq!(swept().await, 0, "29 days");
    run(
        case.pool(),
        "UPDATE webhook_deliveries SET last_attempt_at = now() - interval '30 days' - interval '1 second'",
    )
    .await;
    assert_eq!(swept().await, 1);
    assert_eq!(case.count("SELECT count(*) FROM webhook_attempts").await, 0);
}

#[tokio::test]
async fn secrets_move_to_another_key_one_by_one() {
    let case = Case::new().await;
    let (other, _) = insert_one(case.pool(), &case.account).await;
    let mut conn = conn(case.pool()).await;
    assert_eq!(sealed_counts(&mut conn).await.expect("counts"), [("k1".to_owned(), 2)].into());
    let old = next_to_rewrap(&mut conn, "k2", Uuid::nil(), 10).await.expect("lists");
    assert_eq!(old.iter().map(|secret| secret.id).collect::<Vec<_>>(), [case.id, other]);
    assert_eq!(next_to_rewrap(&mut conn, "k2", case.id, 10).await.expect("lists").len(), 1);
    assert!(store_reencrypted(&mut conn, case.id, &old[0].sealed, "v1.k2.new").await.expect("stores"));
    assert!(
        !store_reencrypted(&mut conn, case.id, &old[0].sealed, "v1.k2.other").await.expect("stores"),
        "not what it was"
    );
    assert_eq!(sealed_counts(&mut conn).await.expect("counts"), [("k1".to_owned(), 1), ("k2".to_owned(), 1)].into());
    assert_eq!(next_to_rewrap(&mut conn, "k2", Uuid::nil(), 10).await.expect("lists").len(), 1);
}
