//! The statement that takes an idempotency key and locks what the command writes to.

use std::sync::Arc;
use std::time::Duration;

use db::canvases;
use db::idempotency::{self, NewKey, Taken};
use db::{PgConnection, Transaction};
use domain::canvas::{AccessRole, CanvasRecord};
use domain::idempotency::{Fingerprint, StoredOutcome};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::fixture::Fixture;

type Entered = (Taken, Option<(CanvasRecord, AccessRole)>);

const ACCOUNT: &str = "SELECT FROM accounts WHERE uid = 'me' FOR NO KEY UPDATE NOWAIT";
const CANVAS: &str = "SELECT FROM canvases WHERE id = 'c' FOR NO KEY UPDATE NOWAIT";

/// The outcome of the request whose fingerprint consists of `request`.
fn outcome(request: u8) -> StoredOutcome {
    StoredOutcome::Job { id: Uuid::from_bytes([request; 16]), more: Vec::new(), snapshot: None }
}

impl Fixture {
    /// The key, which is the same for all requests.
    fn key<'a>(&'a self, fingerprint: &'a Fingerprint, outcome: &'a StoredOutcome) -> NewKey<'a> {
        NewKey { account: &self.account, text: "a key of mine", fingerprint, outcome: Some(outcome), job: None }
    }

    /// Enters as `me`.
    async fn enter(&self, conn: &mut PgConnection, request: u8, with_account: bool) -> Entered {
        let (fingerprint, outcome) = (Fingerprint::from([request; 32]), outcome(request));
        let key = self.key(&fingerprint, &outcome);
        idempotency::take_and_lock(conn, &key, &self.canvas.handle, with_account).await.expect("enters")
    }

    /// Enters in a transaction of its own, which is returned as well.
    fn entering(self: &Arc<Self>, request: u8, with_account: bool) -> JoinHandle<(Entered, Transaction)> {
        let fixture = self.clone();
        tokio::spawn(async move {
            let mut tx = fixture.database.pool().begin().await.expect("begins");
            (fixture.enter(&mut tx, request, with_account).await, tx)
        })
    }

    async fn wait_for_waiting(&self, transactions: i64) {
        let waiting =
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        let are_waiting = async || (self.count(waiting).await == transactions).then_some(());
        testkit::wait_for("the transactions to wait", Duration::from_secs(5), are_waiting).await;
    }

    async fn run(&self, sql: &'static str) {
        sqlx::query(sql).execute(&mut *self.conn().await).await.expect("executes");
    }

    async fn keys(&self) -> i64 {
        self.count("SELECT count(*) FROM idempotency_keys").await
    }

    async fn is_held(&self, row: &'static str) -> bool {
        sqlx::query(row).fetch_all(&mut *self.conn().await).await.is_err()
    }

    /// A transaction that holds the canvas.
    async fn holding_the_canvas(&self) -> Transaction {
        let mut tx = self.database.pool().begin().await.expect("begins");
        let held = canvases::lock(&mut tx, &self.canvas.handle.owner, &self.canvas.handle).await;
        assert!(held.expect("locks").is_some());
        tx
    }
}

fn revision((taken, found): Entered) -> (Taken, Option<String>) {
    (taken, found.map(|(record, _)| record.revision))
}

#[tokio::test]
async fn a_new_key_locks_the_account_and_the_canvas_until_the_end() {
    let fixture = Fixture::shared().await;
    for (with_account, locks_account) in [(true, true), (false, false)] {
        let mut tx = fixture.database.pool().begin().await.expect("begins");
        let (taken, found) = fixture.enter(&mut tx, 1, with_account).await;
        let found = found.map(|(record, role)| (record.key, role));
        assert_eq!((taken, found), (Taken::Fresh, Some((fixture.canvas.key, AccessRole::Editor))));
        assert_eq!((fixture.is_held(ACCOUNT).await, fixture.is_held(CANVAS).await), (locks_account, true));
        tx.rollback().await.expect("ends");
        assert_eq!(
            (fixture.is_held(ACCOUNT).await, fixture.is_held(CANVAS).await, fixture.keys().await),
            (false, false, 0)
        );
    }
}

#[tokio::test]
async fn of_equal_requests_at_once_the_second_gets_the_outcome_of_the_first_and_holds_nothing() {
    let fixture = Arc::new(Fixture::new().await);
    let (first, tx) = fixture.entering(1, true).await.expect("ends well");
    assert_eq!(revision(first), (Taken::Fresh, Some("r0".into())));
    let second = fixture.entering(1, true);
    fixture.wait_for_waiting(1).await;
    tx.commit().await.expect("commits");
    let (second, _tx) = second.await.expect("ends well");
    assert_eq!(second, (Taken::Replay(outcome(1)), None));
    assert_eq!((fixture.is_held(ACCOUNT).await, fixture.is_held(CANVAS).await), (false, false));
}

#[tokio::test]
async fn when_the_first_of_two_equal_requests_is_rejected_the_second_enters_what_is_there_then() {
    let fixture = Arc::new(Fixture::new().await);
    // It holds the key alone, so that the account and the canvas change while the second waits for the key.
    let mut first = fixture.database.pool().begin().await.expect("begins");
    let (fingerprint, outcome) = (Fingerprint::from([1; 32]), outcome(1));
    let key = fixture.key(&fingerprint, &outcome);
    assert_eq!(idempotency::take(&mut first, &key).await.expect("takes"), Taken::Fresh);
    let second = fixture.entering(1, true);
    fixture.wait_for_waiting(1).await;
    fixture.run("UPDATE canvases SET revision = 'r1'").await;
    fixture.run("UPDATE accounts SET credit_balance = 7").await;
    first.rollback().await.expect("rolls back");
    let (second, tx) = second.await.expect("ends well");
    assert_eq!(revision(second), (Taken::Fresh, Some("r1".into())));
    assert_eq!((fixture.is_held(ACCOUNT).await, fixture.is_held(CANVAS).await), (true, true));
    tx.commit().await.expect("commits");
    assert_eq!(fixture.keys().await, 1);
}

#[tokio::test]
async fn a_different_request_with_the_key_of_one_that_waits_for_the_canvas_is_a_conflict() {
    let fixture = Arc::new(Fixture::new().await);
    let holder = fixture.holding_the_canvas().await;
    let first = fixture.entering(1, true);
    fixture.wait_for_waiting(1).await;
    let other = fixture.entering(2, true);
    fixture.wait_for_waiting(2).await;
    holder.commit().await.expect("commits");
    let (first, tx) = first.await.expect("ends well");
    assert_eq!(revision(first), (Taken::Fresh, Some("r0".into())));
    fixture.wait_for_waiting(1).await;
    tx.commit().await.expect("commits");
    let (other, _tx) = other.await.expect("ends well");
    assert_eq!(other, (Taken::Conflict, None));
    assert_eq!((fixture.is_held(ACCOUNT).await, fixture.is_held(CANVAS).await), (false, false));
}

#[tokio::test]
async fn the_account_and_the_canvas_are_read_as_they_are_after_the_waits() {
    let fixture = Arc::new(Fixture::new().await);
    let mut holder = fixture.database.pool().begin().await.expect("begins");
    db::accounts::lock(&mut holder, &fixture.account).await.expect("locks");
    let entering = fixture.entering(1, true);
    fixture.wait_for_waiting(1).await;
    assert!(!fixture.is_held(CANVAS).await, "the account comes first");
    fixture.run("UPDATE canvases SET revision = 'r1'").await;
    sqlx::query("UPDATE accounts SET credit_balance = 7").execute(&mut *holder).await.expect("changes the account");
    let mut next = fixture.holding_the_canvas().await;
    holder.commit().await.expect("commits");
    fixture.wait_for_waiting(1).await;
    sqlx::query("UPDATE canvases SET revision = 'r2'").execute(&mut *next).await.expect("changes the canvas");
    next.commit().await.expect("commits");
    let (entered, _tx) = entering.await.expect("ends well");
    assert_eq!(revision(entered), (Taken::Fresh, Some("r2".into())));
    assert_eq!((fixture.is_held(ACCOUNT).await, fixture.is_held(CANVAS).await), (true, true));
}

#[tokio::test]
async fn a_role_that_changes_during_the_wait_for_the_canvas_counts() {
    let fixture = Arc::new(Fixture::shared().await);
    for with_account in [true, false] {
        for (role, expected) in [(Some(AccessRole::Viewer), Some(AccessRole::Viewer)), (None, None)] {
            fixture.share(Some(AccessRole::Editor)).await;
            let holder = fixture.holding_the_canvas().await;
            let entering = fixture.entering(1, with_account);
            fixture.wait_for_waiting(1).await;
            fixture.share(role).await;
            holder.commit().await.expect("commits");
            let ((taken, found), tx) = entering.await.expect("ends well");
            assert_eq!((taken, found.map(|(_, role)| role)), (Taken::Fresh, expected));
            tx.rollback().await.expect("rolls back");
            assert_eq!(fixture.keys().await, 0);
        }
    }
}

#[tokio::test]
async fn a_canvas_that_is_purged_during_the_wait_is_not_there() {
    for with_account in [true, false] {
        let fixture = Arc::new(Fixture::shared().await);
        let mut purge = fixture.database.pool().begin().await.expect("begins");
        let key = db::purge::lock_canvas(&mut purge, &fixture.canvas.handle).await.expect("locks").expect("is there");
        let entering = fixture.entering(1, with_account);
        fixture.wait_for_waiting(1).await;
        db::purge::canvas(&mut purge, key).await.expect("purges");
        purge.commit().await.expect("commits");
        let (entered, tx) = entering.await.expect("ends well");
        assert_eq!(entered, (Taken::Fresh, None));
        tx.rollback().await.expect("rolls back");
        assert_eq!(fixture.keys().await, 0);
    }
}

#[tokio::test]
async fn who_cannot_see_a_canvas_gets_none() {
    let fixture = Fixture::shared().await;
    fixture.share(None).await;
    for with_account in [true, false] {
        let mut tx = fixture.database.pool().begin().await.expect("begins");
        assert_eq!(fixture.enter(&mut tx, 1, with_account).await, (Taken::Fresh, None));
    }
}
