use domain::idempotency::StoredOutcome;
use domain::job::{Failure, FailureCode, JobStatus};
use serde_json::Value;

use crate::fixture::{CONTEXT, Fixture, PUBLIC_URL, WINDOWS};
use app::job::{Cancellation, Completion};
use db::jobs::{self, Removed};

impl Fixture {
    /// Lets time pass for every job.
    async fn pass(&self, seconds: f64) {
        sqlx::query("UPDATE jobs SET retain_until = retain_until - make_interval(secs => $1)")
            .bind(seconds)
            .execute(&mut *self.conn().await)
            .await
            .expect("passes");
    }

    /// Sweeps, and returns how many records expired and how many were removed.
    async fn sweep(&self) -> (u64, u64) {
        let expired = jobs::expire(&mut *self.conn().await, &WINDOWS, 100).await.expect("expires");
        (expired, self.remove().await.removed)
    }

    async fn remove(&self) -> Removed {
        let mut tx = self.database.pool().begin().await.expect("begins");
        let removed = jobs::remove(&mut tx, PUBLIC_URL, 100).await.expect("removes");
        tx.commit().await.expect("commits");
        removed
    }
}

const NOTHING: (u64, u64) = (0, 0);
const EXPIRED: (u64, u64) = (1, 0);
const REMOVED: (u64, u64) = (0, 1);

/// Longer than a test runs, shorter than any window.
const MARGIN: f64 = 600.0;

#[tokio::test]
async fn an_unread_success_expires_after_its_window_and_its_tombstone_goes_after_another() {
    let fixture = Fixture::new().await;
    let ending = fixture.success().await;
    let record = fixture.ended(ending).await;
    fixture.pass(WINDOWS.unread.as_secs_f64() - MARGIN).await;
    assert_eq!(fixture.sweep().await, NOTHING);
    fixture.pass(MARGIN).await;
    assert_eq!(fixture.sweep().await, EXPIRED);
    let expired = fixture.get(record.id).await;
    assert_eq!((expired.status, expired.version), (JobStatus::Expired, record.version + 1));
    assert_eq!(fixture.history(record.id).await.last().map(String::as_str), Some("expired"));

    fixture.pass(WINDOWS.tombstone.as_secs_f64() - MARGIN).await;
    assert_eq!(fixture.sweep().await, NOTHING);
    fixture.pass(MARGIN).await;
    assert_eq!(fixture.sweep().await, REMOVED);
    assert_eq!(fixture.count("SELECT count(*) FROM jobs").await, 0);
    assert_eq!(fixture.count("SELECT count(*) FROM assets").await, 1, "the asset outlives the record");
    assert!(fixture.node().await.expect("is there").asset.is_some());
}

#[tokio::test]
async fn time_alone_makes_a_success_expire_and_its_tombstone_go() {
    let fixture = Fixture::new().await;
    let ending = fixture.success().await;
    let record = fixture.ended(ending).await;
    fixture.pass(WINDOWS.unread.as_secs_f64() - MARGIN).await;
    assert_eq!(fixture.get(record.id).await, record);
    fixture.pass(MARGIN).await;
    let unswept = fixture.get(record.id).await;
    assert_eq!((unswept.status, unswept.version), (JobStatus::Expired, record.version + 1));
    let mut conn = fixture.conn().await;
    let stopped = app::job::cancel(&mut conn, record.id, &fixture.account, CONTEXT).await.expect("answers");
    assert_eq!(stopped, Some(Cancellation::Unchanged(Box::new(unswept.clone()))));
    assert_eq!(fixture.sweep().await, EXPIRED);
    assert_eq!(fixture.get(record.id).await, unswept, "a sweep changes nothing visible");
    fixture.pass(WINDOWS.tombstone.as_secs_f64() - MARGIN).await;
    assert_eq!(fixture.get(record.id).await, unswept);
    fixture.pass(MARGIN).await;
    assert_eq!(fixture.found(record.id).await, None);
    let stopped = app::job::cancel(&mut conn, record.id, &fixture.account, CONTEXT).await.expect("answers");
    assert_eq!((stopped, fixture.count("SELECT count(*) FROM jobs").await), (None, 1), "nobody swept");
}

#[tokio::test]
async fn both_windows_of_a_success_pass_without_a_sweep() {
    let fixture = Fixture::new().await;
    let ending = fixture.success().await;
    let id = fixture.ended(ending).await.id;
    fixture.pass((WINDOWS.unread + WINDOWS.tombstone).as_secs_f64() - MARGIN).await;
    assert_eq!(fixture.get(id).await.status, JobStatus::Expired);
    fixture.pass(MARGIN).await;
    assert_eq!(fixture.found(id).await, None);
    assert_eq!(fixture.sweep().await, (1, 1), "one round does both");
}

#[tokio::test]
async fn a_late_sweep_lengthens_no_tombstone() {
    let fixture = Fixture::new().await;
    let ending = fixture.success().await;
    fixture.ended(ending).await;
    fixture.pass(WINDOWS.unread.as_secs_f64() + MARGIN).await;
    assert_eq!(fixture.sweep().await, EXPIRED);
    fixture.pass(WINDOWS.tombstone.as_secs_f64() - MARGIN).await;
    assert_eq!(fixture.sweep().await, REMOVED);
}

#[tokio::test]
async fn what_is_overdue_is_not_brought_back_by_being_shown() {
    let fixture = Fixture::new().await;
    let ending = fixture.success().await;
    let id = fixture.ended(ending).await.id;
    fixture.pass(WINDOWS.unread.as_secs_f64()).await;
    let unswept = fixture.get(id).await;
    assert!(!jobs::mark_finalized(&mut *fixture.conn().await, id, WINDOWS.finalized).await.expect("refuses"));
    assert_eq!(fixture.get(id).await, unswept);
    assert_eq!(fixture.sweep().await, EXPIRED);
}

#[tokio::test]
async fn the_first_showing_of_a_success_starts_the_short_window_once() {
    let fixture = Fixture::new().await;
    let ending = fixture.success().await;
    let id = fixture.ended(ending).await.id;
    let mut conn = fixture.conn().await;
    assert!(jobs::mark_finalized(&mut conn, id, WINDOWS.finalized).await.expect("marks"));
    assert!(fixture.get(id).await.finalized_at.is_some());
    fixture.pass(WINDOWS.finalized.as_secs_f64() - MARGIN).await;
    assert!(!jobs::mark_finalized(&mut conn, id, WINDOWS.finalized).await.expect("only once"));
    assert_eq!(fixture.sweep().await, NOTHING);
    fixture.pass(MARGIN).await;
    assert_eq!(fixture.sweep().await, EXPIRED);
}

#[tokio::test]
async fn an_unfinished_job_is_neither_finalized_nor_swept() {
    let fixture = Fixture::new().await;
    let id = fixture.start().await;
    assert!(!jobs::mark_finalized(&mut *fixture.conn().await, id, WINDOWS.finalized).await.expect("refuses"));
    assert_eq!(fixture.sweep().await, NOTHING);
}

#[tokio::test]
async fn a_failure_is_kept_its_window_read_or_not_and_leaves_its_last_form_to_its_key() {
    let fixture = Fixture::new().await;
    let failed = Completion::Failed(Failure::new(FailureCode::RuntimeFailed, "gave up"), Vec::new());
    let id = fixture.ended(failed).await.id;
    let mut conn = fixture.conn().await;
    sqlx::query(
        "INSERT INTO idempotency_keys (account_uid, key, fingerprint, outcome, job_id) VALUES ('me', 'k', '', 'null', $1)",
    )
    .bind(id.0)
    .execute(&mut *conn)
    .await
    .expect("inserts");
    assert!(jobs::mark_finalized(&mut conn, id, WINDOWS.finalized).await.expect("marks"));
    fixture.pass(WINDOWS.failed.as_secs_f64() - MARGIN).await;
    assert_eq!(fixture.sweep().await, NOTHING);
    assert_eq!(fixture.get(id).await.status, JobStatus::Failed);
    fixture.pass(MARGIN).await;
    assert_eq!(fixture.found(id).await, None, "nobody swept yet");
    let last = jobs::last_form(&mut conn, id, PUBLIC_URL).await.expect("reads").expect("is there");
    assert_eq!(fixture.sweep().await, REMOVED);
    assert_eq!(jobs::last_form(&mut conn, id, PUBLIC_URL).await.expect("reads"), None);
    let outcome: Value =
        sqlx::query_scalar("SELECT outcome FROM idempotency_keys").fetch_one(&mut *conn).await.expect("is kept");
    let StoredOutcome::Job { id: kept, snapshot: Some(snapshot), .. } =
        serde_json::from_value(outcome).expect("reads back")
    else {
        panic!("no snapshot")
    };
    assert_eq!((kept, &snapshot["failure"]["code"]), (id.0, &Value::from("runtime_failed")));
    assert_eq!(snapshot, last, "the snapshot equals the last form before the removal");
}

#[tokio::test]
async fn a_snapshot_of_an_expired_success_has_no_images() {
    let fixture = Fixture::new().await;
    let ending = fixture.success().await;
    let id = fixture.ended(ending).await.id;
    sqlx::query("INSERT INTO idempotency_keys (account_uid, key, fingerprint, job_id) VALUES ('me', 'k', '', $1)")
        .bind(id.0)
        .execute(&mut *fixture.conn().await)
        .await
        .expect("inserts");
    fixture.pass(WINDOWS.unread.as_secs_f64()).await;
    let last = jobs::last_form(&mut *fixture.conn().await, id, PUBLIC_URL).await.expect("reads").expect("is there");
    assert_eq!(fixture.sweep().await, EXPIRED);
    fixture.pass(WINDOWS.tombstone.as_secs_f64()).await;
    assert_eq!(fixture.sweep().await, REMOVED);
    let snapshot: Value = sqlx::query_scalar("SELECT outcome -> 'snapshot' FROM idempotency_keys")
        .fetch_one(&mut *fixture.conn().await)
        .await
        .expect("is kept");
    assert_eq!((&snapshot["status"], snapshot.get("images")), (&Value::from("expired"), None));
    assert_eq!(snapshot, last, "swept or not");
}

#[tokio::test]
async fn a_record_that_another_sweeper_holds_is_passed_over() {
    let fixture = Fixture::new().await;
    let ending = fixture.success().await;
    fixture.ended(ending).await;
    fixture.pass(WINDOWS.unread.as_secs_f64()).await;
    let mut other = fixture.database.pool().begin().await.expect("begins");
    sqlx::query("SELECT FROM jobs FOR UPDATE").execute(&mut *other).await.expect("locks");
    assert_eq!(fixture.sweep().await, NOTHING);
    other.rollback().await.expect("rolls back");
    assert_eq!(fixture.sweep().await, EXPIRED);
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_put_off_and_holds_up_no_other() {
    let fixture = Fixture::new().await;
    let failed = || Completion::Failed(Failure::new(FailureCode::RuntimeFailed, "gave up"), Vec::new());
    let unreadable = fixture.ended(failed()).await.id;
    fixture.ended(failed()).await;
    sqlx::query(r#"UPDATE jobs SET request = '{"kind": "of another build"}' WHERE id = $1"#)
        .bind(unreadable.0)
        .execute(&mut *fixture.conn().await)
        .await
        .expect("updates");
    fixture.pass(WINDOWS.failed.as_secs_f64()).await;
    assert_eq!(fixture.remove().await, Removed { removed: 1, unreadable: 1 });
    assert_eq!(fixture.remove().await, Removed::default(), "not before an hour is over");
    fixture.pass(3600.0).await;
    assert_eq!(fixture.remove().await, Removed { removed: 0, unreadable: 1 });
}
