//! Credit: an append-only ledger whose sum is the balance (docs/reference/models.md#ledger).

use domain::Timestamp;
use domain::account::LedgerReason;
use domain::id::{AccountUid, JobId};
use domain::recipe::run::RunId;
use sqlx::PgConnection;
use tracing::instrument;
use uuid::Uuid;

use crate::Result;
use crate::error::known;

/// Grants `amount` credits and returns the new balance; `None` when there is no such account.
#[instrument(skip_all, name = "db.ledger.grant")]
pub async fn grant(conn: &mut PgConnection, account: &AccountUid, amount: i64) -> Result<Option<i64>> {
    let balance = sqlx::query_scalar!(
        "WITH funded AS (
            UPDATE accounts SET credit_balance = credit_balance + $2 WHERE uid = $1 RETURNING uid, credit_balance
         ), noted AS (
            INSERT INTO ledger (account_uid, amount, reason) SELECT uid, $2, 'grant' FROM funded WHERE $2 <> 0
         )
         SELECT credit_balance FROM funded",
        account.as_str(),
        amount
    )
    .fetch_optional(conn)
    .await?;
    Ok(balance)
}

/// Result of a movement by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adjusted {
    /// Credit moved; this is the balance.
    Done(i64),
    /// An earlier request with this key did the same; this is the balance now.
    Repeated(i64),
    /// An earlier request with this key moved another amount.
    OtherRequest,
    /// The balance would be below 0.
    Overdrawn,
    /// There is no such account.
    NoAccount,
}

/// Adds credits to an account by hand, or takes them away, for the reason in `note`. Of any number of requests with the same `key` one
/// moves credit. The account's row is locked.
#[instrument(skip_all, name = "db.ledger.adjust")]
pub async fn adjust(
    conn: &mut PgConnection,
    account: &AccountUid,
    amount: i64,
    note: Option<&str>,
    key: Option<&str>,
) -> Result<Adjusted> {
    let uid = account.as_str();
    let held = sqlx::query_scalar!(
        "SELECT credit_balance FROM accounts WHERE uid = $1 AND purged_at IS NULL FOR NO KEY UPDATE",
        uid
    );
    let Some(balance) = held.fetch_optional(&mut *conn).await? else { return Ok(Adjusted::NoAccount) };
    let earlier = sqlx::query_scalar!("SELECT amount FROM ledger WHERE account_uid = $1 AND request_key = $2", uid, key);
    match earlier.fetch_optional(&mut *conn).await? {
        Some(earlier) if earlier == amount => return Ok(Adjusted::Repeated(balance)),
        Some(_) => return Ok(Adjusted::OtherRequest),
        None if balance.saturating_add(amount) < 0 => return Ok(Adjusted::Overdrawn),
        None => {}
    }
    let balance = sqlx::query_scalar!(
        "WITH noted AS (
             INSERT INTO ledger (account_uid, amount, reason, note, request_key) VALUES ($1, $2, 'grant', $3, $4)
         )
         UPDATE accounts SET credit_balance = credit_balance + $2 WHERE uid = $1 RETURNING credit_balance",
        uid,
        amount,
        note,
        key
    );
    Ok(Adjusted::Done(balance.fetch_one(conn).await?))
}

/// Reserves `amount` credits for a job, in the transaction that starts it. `false` when the balance does not cover them; then
/// nothing is written. An amount of 0 leaves no row.
///
/// The balance is reduced only where it covers the amount, in one statement, so that concurrent starts never overdraw it. What
/// is not charged in the end is returned when the job is concluded.
#[instrument(skip_all, name = "db.ledger.reserve")]
pub async fn reserve(conn: &mut PgConnection, account: &AccountUid, job: JobId, amount: i64) -> Result<bool> {
    if amount == 0 {
        return Ok(true);
    }
    let reserved = sqlx::query!(
        "WITH held AS (
            UPDATE accounts SET credit_balance = credit_balance - $3
            WHERE uid = $1 AND $3::bigint > 0 AND credit_balance >= $3 RETURNING uid
         )
         INSERT INTO ledger (account_uid, amount, reason, job_id) SELECT uid, -$3, 'reserve', $2 FROM held",
        account.as_str(),
        job.0,
        amount
    )
    .execute(conn)
    .await?;
    Ok(reserved.rows_affected() == 1)
}

/// Returns `true` if the balance covers `amount` credits now. An amount of 0 is always covered, as in [`reserve`].
#[instrument(skip_all, name = "db.ledger.covers")]
pub async fn covers(conn: &mut PgConnection, account: &AccountUid, amount: i64) -> Result<bool> {
    let covered = sqlx::query_scalar!(
        r#"SELECT $2::bigint = 0 OR $2 > 0 AND credit_balance >= $2 AS "covered!" FROM accounts WHERE uid = $1"#,
        account.as_str(),
        amount
    )
    .fetch_optional(conn)
    .await?;
    Ok(covered.unwrap_or(false))
}

/// Moves a reservation from one id to another, for a step of a Recipe run. The balance does not change.
#[instrument(skip_all, name = "db.ledger.transfer")]
pub async fn transfer(conn: &mut PgConnection, account: &AccountUid, from: Uuid, to: Uuid, amount: i64) -> Result<()> {
    sqlx::query!(
        "INSERT INTO ledger (account_uid, amount, reason, job_id)
         SELECT $1, moved.amount, moved.reason, moved.id
         FROM (VALUES ($4::bigint, 'return', $2::uuid), (-$4::bigint, 'reserve', $3::uuid)) AS moved (amount, reason, id)
         WHERE $4::bigint <> 0",
        account.as_str(),
        from,
        to,
        amount
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns what was reserved under an id and not used. The transaction has locked the account.
#[instrument(skip_all, name = "db.ledger.give_back")]
pub async fn give_back(conn: &mut PgConnection, account: &AccountUid, id: Uuid, amount: i64) -> Result<()> {
    sqlx::query!(
        "WITH raised AS (
             UPDATE accounts SET credit_balance = credit_balance + $3 WHERE uid = $1 AND $3::bigint <> 0 RETURNING uid
         )
         INSERT INTO ledger (account_uid, amount, reason, job_id) SELECT uid, $3, 'return', $2 FROM raised",
        account.as_str(),
        id,
        amount
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A movement of credit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Place in the ledger; later entries have greater ones.
    pub id: i64,
    /// Credits that were added, or taken if negative.
    pub amount: i64,
    /// Why credit moved.
    pub reason: LedgerReason,
    /// Why somebody moved it by hand.
    pub note: Option<String>,
    /// The job or Recipe run that the entry belongs to; `None` for a grant.
    pub work: Option<Uuid>,
    /// `true` if a job with this id has a record.
    pub is_job: bool,
    /// The Recipe run that the entry belongs to, itself or through the job, if it has a record.
    pub run: Option<RunId>,
    /// When credit moved.
    pub created_at: Timestamp,
}

/// Lists at most `limit` ledger entries of an account, newest first, before the entry `before`.
#[instrument(skip_all, name = "db.ledger.list")]
pub async fn list(
    conn: &mut PgConnection,
    account: &AccountUid,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<LedgerEntry>> {
    let rows = sqlx::query!(
        r#"SELECT l.id, l.amount, l.reason, l.note, l.job_id, l.created_at, j.id IS NOT NULL AS "is_job!", r.id AS "run?"
           FROM ledger l
           LEFT JOIN jobs j ON j.id = l.job_id AND j.account_uid = l.account_uid
           LEFT JOIN recipe_runs r ON r.id = coalesce(j.recipe_run, l.job_id) AND r.account_uid = l.account_uid
           WHERE l.account_uid = $1 AND ($2::bigint IS NULL OR l.id < $2)
           ORDER BY l.id DESC LIMIT $3"#,
        account.as_str(),
        before,
        limit,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(LedgerEntry {
                id: row.id,
                amount: row.amount,
                reason: known("ledger.reason", &row.reason)?,
                note: row.note,
                work: row.job_id,
                is_job: row.is_job,
                run: row.run.map(RunId),
                created_at: row.created_at.into(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use testkit::TestDatabase;

    use super::*;

    fn me() -> AccountUid {
        AccountUid::from_stored("me".into())
    }

    /// A database with the account `me` and its credits.
    async fn database(credits: i64) -> TestDatabase {
        let database = TestDatabase::new().await;
        let mut conn = database.pool().acquire().await.expect("connects");
        sqlx::query("INSERT INTO accounts (uid, email) VALUES ('me', 'me@example.com')")
            .execute(&mut *conn)
            .await
            .expect("inserts an account");
        assert_eq!(grant(&mut conn, &me(), credits).await.expect("grants"), Some(credits));
        drop(conn);
        database
    }

    /// Balance, sum of the ledger and reservations.
    async fn books(database: &TestDatabase) -> (i64, i64, i64) {
        sqlx::query_as(
            "SELECT credit_balance, (SELECT coalesce(sum(amount), 0)::bigint FROM ledger WHERE account_uid = uid),
                    (SELECT count(*) FROM ledger WHERE account_uid = uid AND reason = 'reserve')
             FROM accounts WHERE uid = 'me'",
        )
        .fetch_one(database.pool())
        .await
        .expect("reads the books")
    }

    #[tokio::test]
    async fn concurrent_reservations_never_overdraw() {
        let database = database(10).await;
        let starts = (0..12).map(|_| {
            let pool = database.pool().clone();
            tokio::spawn(async move {
                let mut tx = pool.begin().await.expect("begins");
                let reserved = reserve(&mut tx, &me(), JobId::generate(), 3).await.expect("answers");
                tx.commit().await.expect("commits");
                reserved
            })
        });
        let mut reserved = 0;
        for start in starts.collect::<Vec<_>>() {
            reserved += i64::from(start.await.expect("ends well"));
        }
        assert_eq!(reserved, 3);
        assert_eq!(books(&database).await, (1, 1, 3));
    }

    #[tokio::test]
    async fn the_whole_balance_can_be_reserved_and_not_a_credit_more() {
        let database = database(2).await;
        let mut conn = database.pool().acquire().await.expect("connects");
        for (amount, covered) in [(3, false), (2, true), (1, false), (0, true)] {
            assert_eq!(covers(&mut conn, &me(), amount).await.expect("answers"), covered, "{amount}");
            let reserved = reserve(&mut conn, &me(), JobId::generate(), amount).await.expect("answers");
            assert_eq!(reserved, covered, "{amount}");
        }
        assert_eq!(books(&database).await, (0, 0, 1), "a rejected or free reservation writes nothing");
    }

    #[tokio::test]
    async fn a_start_that_is_rolled_back_has_reserved_nothing() {
        let database = database(5).await;
        let mut tx = database.pool().begin().await.expect("begins");
        assert!(reserve(&mut tx, &me(), JobId::generate(), 5).await.expect("reserves"));
        tx.rollback().await.expect("rolls back");
        assert_eq!(books(&database).await, (5, 5, 0));
    }

    #[tokio::test]
    async fn the_ledger_names_the_job_and_the_run_of_each_entry() {
        let database = database(10).await;
        let mut conn = database.pool().acquire().await.expect("connects");
        let (run, step, alone, gone) = (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
        sqlx::raw_sql(
            "INSERT INTO account_sessions (id, account_uid) VALUES ('00000000-0000-0000-0000-000000000001', 'me');
             INSERT INTO tokens (id, account_uid, session_id, label, scopes, surface, secret_hash)
             VALUES ('00000000-0000-0000-0000-000000000002', 'me', '00000000-0000-0000-0000-000000000001', 'l', '{}', 'api', '');
             INSERT INTO accounts (uid, email) VALUES ('you', 'you@example.com')",
        )
        .execute(&mut *conn)
        .await
        .expect("inserts a token");
        for (id, run) in [(step, Some(run)), (alone, None)] {
            sqlx::query(
                "INSERT INTO jobs (id, account_uid, token_id, kind, operation, status, request, estimated_seconds, recipe_run)
                 VALUES ($1, 'me', '00000000-0000-0000-0000-000000000002', 'image', 'generate', 'queued', '{}', 1, $2)",
            )
            .bind(id)
            .bind(run)
            .execute(&mut *conn)
            .await
            .expect("inserts a job");
        }
        for id in [alone, gone, step] {
            assert!(reserve(&mut conn, &me(), JobId(id), 1).await.expect("reserves"));
        }
        give_back(&mut conn, &me(), alone, 1).await.expect("returns");
        let entries = list(&mut conn, &me(), None, 10).await.expect("lists");
        let brief: Vec<_> =
            entries.iter().map(|entry| (entry.amount, entry.reason, entry.work, entry.is_job, entry.run)).collect();
        // The record of the Recipe run is gone.
        assert_eq!(
            brief,
            [
                (1, LedgerReason::Return, Some(alone), true, None),
                (-1, LedgerReason::Reserve, Some(step), true, None),
                (-1, LedgerReason::Reserve, Some(gone), false, None),
                (-1, LedgerReason::Reserve, Some(alone), true, None),
                (10, LedgerReason::Grant, None, false, None),
            ]
        );
        let rest = list(&mut conn, &me(), Some(entries[1].id), 2).await.expect("lists");
        assert_eq!(rest, entries[2..4]);
        assert_eq!(list(&mut conn, &AccountUid::from_stored("you".into()), None, 10).await.expect("lists"), []);
    }

    #[tokio::test]
    async fn nobody_gains_by_a_reservation() {
        let database = database(5).await;
        let mut conn = database.pool().acquire().await.expect("connects");
        assert!(!covers(&mut conn, &me(), -5).await.expect("answers"));
        assert!(!reserve(&mut conn, &me(), JobId::generate(), -5).await.expect("refuses"));
        assert!(
            !reserve(&mut conn, &AccountUid::from_stored("you".into()), JobId::generate(), 1).await.expect("refuses")
        );
        assert_eq!(books(&database).await, (5, 5, 0));
    }
}
