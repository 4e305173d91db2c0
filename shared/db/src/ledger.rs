//! Credit: an append-only ledger whose sum is the balance (decisions 12.4).

use domain::id::AccountUid;
use sqlx::PgConnection;
use tracing::instrument;

use crate::Result;

/// Grants `amount` credits and gives the new balance; `None` when there is no such account.
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
