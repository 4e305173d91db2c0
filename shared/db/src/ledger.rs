//! Credit: an append-only ledger whose sum is the balance (docs/reference/models.md#ledger).

use domain::id::{AccountUid, JobId};
use sqlx::PgConnection;
use tracing::instrument;
use uuid::Uuid;

use crate::Result;

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

/// Whether the balance covers `amount` credits now. An amount of 0 is always covered, as in [`reserve`].
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
