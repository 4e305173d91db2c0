//! Budgets of tokens, apps and accounts (docs/reference/authentication.md#budgets). [`ledger`](crate::ledger) counts in them.
//!
//! **Guarantee.** Within a window no budget counts more than its maximum was when it was counted.
//!
//! **Mechanism.** Whoever changes a budget, or what it counts, holds the lock on the row of its account until the commit.

use std::collections::HashMap;

use domain::budget::{Budget, BudgetOwner, BudgetState};
use domain::id::AccountUid;
use sqlx::PgConnection;
use sqlx::types::chrono::{DateTime, Utc};
use tracing::instrument;
use uuid::Uuid;

use crate::Result;
use crate::accounts::lock;
use crate::error::known;

/// Replaces the budgets of a token or app, or without an `authority` those of the account. A budget of the same unit and period keeps
/// what it has counted; another one counts from now on. Locks the account.
///
/// The hashes of an agent token with budgets and of the sessions that it signed in get a mark in front (`DerivedKeys::verify_token`), so
/// that a gateway of an earlier release refuses them, which would overlook the budgets. They keep it.
#[instrument(skip_all, name = "db.budget.set")]
pub async fn set(
    conn: &mut PgConnection,
    account: &AccountUid,
    authority: Option<Uuid>,
    budgets: &[Budget],
) -> Result<()> {
    lock(&mut *conn, account).await?;
    let column = |of: fn(&Budget) -> &'static str| budgets.iter().map(|it| of(it).to_owned()).collect::<Vec<_>>();
    let max: Vec<i64> = budgets.iter().map(|budget| budget.max).collect();
    sqlx::query!(
        r"WITH wanted AS (
             SELECT * FROM unnest($3::text[], $4::text[], $5::bigint[]) AS w (unit, period, max)
         ), gone AS (
             DELETE FROM budgets b WHERE account_uid = $1 AND authority IS NOT DISTINCT FROM $2
               AND NOT EXISTS (SELECT FROM wanted w WHERE w.unit = b.unit AND w.period = b.period)
         ), marked AS (
             UPDATE tokens SET secret_hash = '\x01'::bytea || secret_hash
             WHERE id IN (SELECT $2 UNION ALL SELECT id FROM tokens WHERE parent = $2) AND account_uid = $1
               AND kind <> 'oauth' AND octet_length(secret_hash) = 32 AND EXISTS (SELECT FROM wanted)
         )
         INSERT INTO budgets (account_uid, authority, unit, period, max, window_from)
         -- After all that was reserved before, to the millisecond.
         SELECT $1, $2, unit, period, max, clock_timestamp() + interval '1 millisecond' FROM wanted
         ON CONFLICT (account_uid, authority, unit, period) DO UPDATE SET max = excluded.max",
        account.as_str(),
        authority,
        &column(|budget| budget.unit.as_str()),
        &column(|budget| budget.period.as_str()),
        &max,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The budgets of an account and of these tokens or apps, with what is spent: the account's first. `owner` is what the tokens or apps are.
#[instrument(skip_all, name = "db.budget.list")]
pub async fn list(
    conn: &mut PgConnection,
    account: &AccountUid,
    authorities: &[Uuid],
    owner: BudgetOwner,
) -> Result<Vec<(Option<Uuid>, BudgetState)>> {
    let rows = sqlx::query_as!(
        BudgetRow,
        r#"SELECT authority, unit AS "unit!", period AS "period!", max AS "max!", spent AS "spent!", next_window
           FROM budgets_at($1, $2, clock_timestamp()) ORDER BY authority NULLS FIRST, unit, period"#,
        account.as_str(),
        authorities,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(|row| Ok((row.authority, row.state(owner)?))).collect()
}

/// The budgets of these tokens or apps of an account, by whose they are, with what is spent. One without budgets is not there.
pub async fn of_each(
    conn: &mut PgConnection,
    account: &AccountUid,
    authorities: &[Uuid],
    owner: BudgetOwner,
) -> Result<HashMap<Uuid, Vec<BudgetState>>> {
    let mut budgets: HashMap<Uuid, Vec<BudgetState>> = HashMap::new();
    for (authority, budget) in list(conn, account, authorities, owner).await? {
        if let Some(authority) = authority {
            budgets.entry(authority).or_default().push(budget);
        }
    }
    Ok(budgets)
}

/// A budget at a moment.
pub(crate) struct BudgetRow {
    pub authority: Option<Uuid>,
    pub unit: String,
    pub period: String,
    pub max: i64,
    pub spent: i64,
    pub next_window: Option<DateTime<Utc>>,
}

impl BudgetRow {
    /// The budget, of the account or of such an owner.
    pub fn state(self, owner: BudgetOwner) -> Result<BudgetState> {
        let of = if self.authority.is_some() { owner } else { BudgetOwner::Account };
        Ok(BudgetState {
            of: of.into(),
            unit: known::<domain::budget::BudgetUnit>("budgets.unit", &self.unit)?.into(),
            period: known::<domain::budget::BudgetPeriod>("budgets.period", &self.period)?.into(),
            max: self.max,
            spent: self.spent,
            left: (self.max - self.spent).max(0),
            resets_at: self.next_window.map(Into::into),
            reason: None,
        })
    }
}

#[cfg(test)]
mod tests;
