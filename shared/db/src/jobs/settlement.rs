//! The final charge of a job (docs/reference/models.md#settlement).
//!
//! **Guarantee.** The transaction that ends a job settles its reservation: the job's `credit_cost` becomes the charge, and
//! what is not charged is [given back](ledger::give_back). A job ends once, so it is settled once.
//!
//! **Mechanism.** The account's row is locked before any other (lock order: account, canvas, job, asset), and only where a
//! reservation exists.

use domain::id::{AccountUid, JobId};
use sqlx::PgConnection;

use crate::ledger::Unused;
use crate::{Result, ledger};

/// Returns the credits reserved for a job. If there are any, its account's row is locked from here on.
pub(super) async fn hold(conn: &mut PgConnection, id: JobId) -> Result<i64> {
    let reserved = sqlx::query_scalar!("SELECT credit_cost FROM jobs WHERE id = $1", id.0).fetch_optional(&mut *conn);
    let reserved = reserved.await?.unwrap_or(0);
    if reserved > 0 {
        sqlx::query!(
            "SELECT FROM accounts WHERE uid = (SELECT account_uid FROM jobs WHERE id = $1) FOR NO KEY UPDATE",
            id.0
        )
        .execute(conn)
        .await?;
    }
    Ok(reserved)
}

/// Charges a job `charge`, at most `reserved`, and returns the rest. `orphans`: how many of the returned outputs a provider may
/// have made all the same.
#[tracing::instrument(skip_all, name = "db.job.settle")]
pub async fn settle(conn: &mut PgConnection, id: JobId, reserved: i64, charge: i64, orphans: i32) -> Result<()> {
    let charge = charge.min(reserved);
    if charge == reserved {
        return Ok(());
    }
    let job = sqlx::query!(
        r#"UPDATE jobs SET credit_cost = $2 WHERE id = $1 RETURNING account_uid, coalesce(recipe_run, id) AS "reserved_under!""#,
        id.0,
        charge,
    )
    .fetch_one(&mut *conn)
    .await?;
    let unused = Unused { id: id.0, reserved_under: job.reserved_under, amount: reserved - charge, orphans };
    ledger::give_back(conn, &AccountUid::from_stored(job.account_uid), unused).await
}
