//! Credit: an append-only ledger whose sum is the balance (docs/reference/models.md#ledger).

use domain::Timestamp;
use domain::account::LedgerReason;
use domain::budget::{BudgetOwner, BudgetRefusal, BudgetState};
use domain::id::{AccountUid, JobId};
use domain::recipe::run::RunId;
use sqlx::PgConnection;
use sqlx::types::chrono::{DateTime, Utc};
use tracing::instrument;
use uuid::Uuid;

use crate::Result;
use crate::budgets::BudgetRow;
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
    let earlier =
        sqlx::query_scalar!("SELECT amount FROM ledger WHERE account_uid = $1 AND request_key = $2", uid, key);
    match earlier.fetch_optional(&mut *conn).await? {
        Some(earlier) if earlier == amount => return Ok(Adjusted::Repeated(balance)),
        Some(_) => return Ok(Adjusted::OtherRequest),
        None if balance.saturating_add(amount) < 0 => return Ok(Adjusted::Overdrawn),
        None => {}
    }
    let balance = sqlx::query_scalar!(
        "WITH noted AS (
             INSERT INTO ledger (account_uid, amount, reason, request_key) VALUES ($1, $2, 'grant', $4) RETURNING id
         ), said AS (
             INSERT INTO ledger_notes (ledger_id, account_uid, note) SELECT id, $1, $3 FROM noted WHERE $3::text IS NOT NULL
         )
         UPDATE accounts SET credit_balance = credit_balance + $2 WHERE uid = $1 RETURNING credit_balance",
        uid,
        amount,
        note,
        key
    );
    Ok(Adjusted::Done(balance.fetch_one(conn).await?))
}

/// Who pays for a start.
#[derive(Clone, Copy, Debug)]
pub struct Payer<'a> {
    /// The account.
    pub account: &'a AccountUid,
    /// The token or app whose budgets the start counts in, beside those of the account.
    pub authority: Uuid,
    /// Which of the two it is.
    pub owner: BudgetOwner,
}

/// Whether a start may spend what it costs.
#[derive(Debug, PartialEq)]
pub enum Funding {
    /// It may.
    Granted,
    /// A budget does not admit it: of several, the one with least left.
    OverBudget(Box<BudgetState>),
    /// The balance does not cover it.
    OverBalance,
}

/// Reserves credits for each job or Recipe run of a start that makes so many outputs, and counts both in the budgets of the payer.
/// Unless the start is granted, nothing is written. An amount of 0 leaves no row in the ledger.
///
/// The transaction has locked the account, as everybody does who changes its budgets: so no interleaving takes a budget past its
/// maximum. The balance is reduced only where it covers the amount, whoever holds the lock. What is not charged in the end is
/// [given back](give_back).
#[instrument(skip_all, name = "db.ledger.reserve")]
pub async fn reserve(
    conn: &mut PgConnection,
    payer: Payer<'_>,
    works: &[(Uuid, i64)],
    outputs: i64,
) -> Result<Funding> {
    let total = works.iter().fold(0_i64, |sum, (_, amount)| sum.saturating_add(*amount));
    if total == 0 && outputs == 0 {
        return Ok(Funding::Granted);
    }
    let (ids, amounts): (Vec<Uuid>, Vec<i64>) = works.iter().copied().unzip();
    let row = sqlx::query_as!(
        FundingRow,
        r#"WITH moment AS MATERIALIZED (
               SELECT clock_timestamp()::timestamptz(3) AS at
           ), due AS MATERIALIZED (
               SELECT b.*, CASE b.unit WHEN 'credits' THEN $3::bigint ELSE $4::bigint END AS needed
               FROM moment CROSS JOIN LATERAL budgets_at($1, ARRAY[$2::uuid], moment.at) AS b
           ), refused AS MATERIALIZED (
               SELECT * FROM due WHERE needed > 0 AND needed > max - spent ORDER BY max - spent, id LIMIT 1
           ), reserved AS MATERIALIZED (
               -- Not before the windows that count it, whatever the clock says.
               SELECT greatest(at, (SELECT max(window_from) FROM due)) AS at FROM moment
           ), funded AS (
               UPDATE accounts SET credit_balance = credit_balance - $3
               WHERE uid = $1 AND $3 > 0 AND credit_balance >= $3 AND NOT EXISTS (SELECT FROM refused) RETURNING uid
           ), counted AS (
               UPDATE budgets b SET spent = due.spent + due.needed, window_from = due.window_from
               FROM due
               WHERE b.id = due.id AND due.needed > 0 AND NOT EXISTS (SELECT FROM refused)
                 AND ($3 = 0 OR EXISTS (SELECT FROM funded))
           ), noted AS (
               INSERT INTO ledger (account_uid, amount, reason, job_id, authority, created_at)
               SELECT funded.uid, -work.amount, 'reserve', work.id, $2, reserved.at
               FROM funded CROSS JOIN reserved
               CROSS JOIN unnest($5::uuid[], $6::bigint[]) WITH ORDINALITY AS work (id, amount, place)
               WHERE work.amount <> 0 ORDER BY work.place
           )
           SELECT $3 = 0 OR EXISTS (SELECT FROM funded) AS "is_covered!", r.authority, r.unit AS "unit?", r.period AS "period?",
                  r.max AS "max?", r.spent AS "spent?", r.next_window
           FROM (SELECT) AS one LEFT JOIN refused r ON true"#,
        payer.account.as_str(),
        payer.authority,
        total,
        outputs,
        &ids,
        &amounts,
    )
    .fetch_one(conn)
    .await?;
    row.funding(payer.owner)
}

/// Judges a start that costs `amount` credits and makes so many outputs as [`reserve`] would now, and writes nothing.
#[instrument(skip_all, name = "db.ledger.judge")]
pub async fn judge(conn: &mut PgConnection, payer: Payer<'_>, amount: i64, outputs: i64) -> Result<Funding> {
    let row = sqlx::query_as!(
        FundingRow,
        r#"SELECT $3::bigint = 0 OR $3 > 0 AND a.credit_balance >= $3 AS "is_covered!", r.authority, r.unit AS "unit?",
                  r.period AS "period?", r.max AS "max?", r.spent AS "spent?", r.next_window
           FROM accounts a LEFT JOIN LATERAL (
               SELECT * FROM (
                   SELECT b.*, CASE b.unit WHEN 'credits' THEN $3 ELSE $4::bigint END AS needed
                   FROM budgets_at($1, ARRAY[$2::uuid], clock_timestamp()) AS b
               ) AS due
               WHERE needed > 0 AND needed > max - spent ORDER BY max - spent, id LIMIT 1
           ) AS r ON true
           WHERE a.uid = $1"#,
        payer.account.as_str(),
        payer.authority,
        amount,
        outputs,
    )
    .fetch_optional(conn)
    .await?;
    row.map_or(Ok(Funding::OverBalance), |row| row.funding(payer.owner))
}

/// A verdict, with the budget that refuses.
struct FundingRow {
    is_covered: bool,
    authority: Option<Uuid>,
    unit: Option<String>,
    period: Option<String>,
    max: Option<i64>,
    spent: Option<i64>,
    next_window: Option<DateTime<Utc>>,
}

impl FundingRow {
    fn funding(self, owner: BudgetOwner) -> Result<Funding> {
        let (Some(unit), Some(period), Some(max), Some(spent)) = (self.unit, self.period, self.max, self.spent) else {
            return Ok(if self.is_covered { Funding::Granted } else { Funding::OverBalance });
        };
        let row = BudgetRow { authority: self.authority, unit, period, max, spent, next_window: self.next_window };
        let reason = Some(BudgetRefusal::Exceeded.into());
        Ok(Funding::OverBudget(Box::new(BudgetState { reason, ..row.state(owner)? })))
    }
}

/// Moves a reservation from a Recipe run to the job of one of its steps. Neither the balance nor a budget changes.
#[instrument(skip_all, name = "db.ledger.transfer")]
pub async fn transfer(
    conn: &mut PgConnection,
    account: &AccountUid,
    run: RunId,
    job: JobId,
    amount: i64,
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO ledger (account_uid, amount, reason, job_id, authority)
         SELECT $1, moved.amount, moved.reason, moved.id,
                (SELECT authority FROM ledger WHERE job_id = $2 AND reason = 'reserve' LIMIT 1)
         FROM (VALUES ($4::bigint, 'return', $2::uuid), (-$4::bigint, 'reserve', $3::uuid)) AS moved (amount, reason, id)
         WHERE $4::bigint <> 0",
        account.as_str(),
        run.0,
        job.0,
        amount
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Credit that was reserved and not used.
#[derive(Clone, Copy, Debug)]
pub struct Unused {
    /// Id of the job or Recipe run that held it.
    pub id: Uuid,
    /// Id under which the start reserved it: that of the run, for a step of one.
    pub reserved_under: Uuid,
    /// The credits.
    pub amount: i64,
    /// How many of the unused outputs a provider may have made all the same.
    pub orphans: i32,
}

impl Unused {
    /// What a Recipe run has left when it ends.
    pub fn of_run(run: RunId, amount: i64) -> Self {
        Self { id: run.0, reserved_under: run.0, amount, orphans: 0 }
    }
}

/// Returns credit to the account, and to the budgets in whose present window it was reserved. The transaction has locked the account.
#[instrument(skip_all, name = "db.ledger.give_back")]
pub async fn give_back(conn: &mut PgConnection, account: &AccountUid, unused: Unused) -> Result<()> {
    sqlx::query!(
        "WITH moment AS MATERIALIZED (
             SELECT clock_timestamp()::timestamptz(3) AS at
         ), raised AS (
             UPDATE accounts SET credit_balance = credit_balance + $3 WHERE uid = $1 AND $3::bigint <> 0 RETURNING uid
         ), reserved AS MATERIALIZED (
             SELECT l.authority, l.created_at FROM ledger l
             WHERE l.job_id = $4 AND l.account_uid = $1 AND l.reason = 'reserve' LIMIT 1
         ), uncounted AS (
             UPDATE budgets b SET spent = greatest(b.spent - $3, 0)
             FROM reserved CROSS JOIN moment CROSS JOIN LATERAL budgets_at($1, ARRAY[reserved.authority], moment.at) AS due
             WHERE b.id = due.id AND due.unit = 'credits' AND reserved.authority IS NOT NULL
               AND due.window_from <= reserved.created_at
         )
         INSERT INTO ledger (account_uid, amount, reason, job_id, possible_orphans, authority, created_at)
         SELECT raised.uid, $3, 'return', $2, $5, reserved.authority, moment.at
         FROM raised CROSS JOIN moment LEFT JOIN reserved ON true",
        account.as_str(),
        unused.id,
        unused.amount,
        unused.reserved_under,
        unused.orphans,
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
        r#"SELECT l.id, l.amount, l.reason, n.note AS "note?", l.job_id, l.created_at, j.id IS NOT NULL AS "is_job!", r.id AS "run?"
           FROM ledger l
           LEFT JOIN ledger_notes n ON n.ledger_id = l.id
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

    fn payer(account: &AccountUid) -> Payer<'_> {
        Payer { account, authority: Uuid::nil(), owner: BudgetOwner::Token }
    }

    async fn try_reserve(conn: &mut PgConnection, account: &AccountUid, job: JobId, amount: i64) -> bool {
        reserve(conn, payer(account), &[(job.0, amount)], 0).await.expect("answers") == Funding::Granted
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
                let reserved = try_reserve(&mut tx, &me(), JobId::generate(), 3).await;
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
            assert_eq!(
                judge(&mut conn, payer(&me()), amount, 0).await.expect("answers") == Funding::Granted,
                covered,
                "{amount}"
            );
            let reserved = try_reserve(&mut conn, &me(), JobId::generate(), amount).await;
            assert_eq!(reserved, covered, "{amount}");
        }
        assert_eq!(books(&database).await, (0, 0, 1), "a rejected or free reservation writes nothing");
    }

    #[tokio::test]
    async fn a_start_that_is_rolled_back_has_reserved_nothing() {
        let database = database(5).await;
        let mut tx = database.pool().begin().await.expect("begins");
        assert!(try_reserve(&mut tx, &me(), JobId::generate(), 5).await);
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
            assert!(try_reserve(&mut conn, &me(), JobId(id), 1).await);
        }
        let unused = Unused { id: alone, reserved_under: alone, amount: 1, orphans: 0 };
        give_back(&mut conn, &me(), unused).await.expect("returns");
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
        assert_eq!(judge(&mut conn, payer(&me()), -5, 0).await.expect("answers"), Funding::OverBalance);
        assert!(!try_reserve(&mut conn, &me(), JobId::generate(), -5).await);
        assert!(!try_reserve(&mut conn, &AccountUid::from_stored("you".into()), JobId::generate(), 1).await);
        assert_eq!(books(&database).await, (5, 5, 0));
    }
}
