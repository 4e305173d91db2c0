//! The common part of all starts of work: key, price, and dry run (docs/reference/jobs.md#spending-cap).
//!
//! **Guarantee.** No start costs more than its request and the budgets of its caller allow. A dry run is refused for the same reasons as
//! the start, and writes nothing.
//!
//! **Mechanism.** [`Start::plan`] is the check of the start and of its dry run. A start executes it in the transaction that then
//! reserves the price that was checked. [`quote`] executes it without locks, in a read-only transaction on one snapshot.

use db::accounts::Credential;
use db::ledger::Funding;
use db::{PgConnection, PgPool};
use domain::Violation;
use domain::id::{AccountUid, JobId};
use domain::idempotency::Fingerprint;
use domain::job::StartQuote;
use domain::message::Queue;
use uuid::Uuid;

use crate::command::{Command, Key, LockedCanvas, Locks};
use crate::error::Shortage;
use crate::{Error, Result};

/// The terms on which a request starts work.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Idempotency key; `None` for a dry run, which takes no key.
    pub key: Option<String>,
    /// Maximum price in credits.
    pub max_credits: Option<i64>,
}

impl Terms {
    /// Returns `true` if the start is only checked.
    pub fn is_dry_run(&self) -> bool {
        self.key.is_none()
    }

    /// The key, bound to the request.
    pub fn key<'a>(&'a self, fingerprint: &'a Fingerprint) -> Option<Key<'a>> {
        self.key.as_deref().map(|text| Key { text, fingerprint })
    }

    /// The rows to lock before the checks.
    pub fn locks(&self) -> Locks {
        if self.is_dry_run() { Locks::None } else { Locks::AccountAndCanvas }
    }

    /// Rejects a price over the cap.
    fn admit(&self, credit_cost: i64) -> Result<()> {
        match self.max_credits {
            Some(max) if credit_cost > max => {
                Err(Error::PaymentRequired { credit_cost, shortage: Shortage::MaxCredits(max) })
            }
            _ => Ok(()),
        }
    }

    /// Rejects a start that [`reserve`](Self::reserve) would reject now.
    async fn require(&self, conn: &mut PgConnection, caller: &Credential, price: i64, outputs: i64) -> Result<()> {
        self.admit(price)?;
        require_granted(db::ledger::judge(conn, caller.payer(), price, outputs).await?, price)
    }

    /// Reserves the price of each job or run of a start, and counts its outputs, if the cap admits the sum, then every budget of the
    /// caller, then the account's credit.
    pub async fn reserve(
        &self,
        conn: &mut PgConnection,
        caller: &Credential,
        works: &[(Uuid, i64)],
        outputs: i64,
    ) -> Result<()> {
        let price = works.iter().fold(0_i64, |sum, (_, price)| sum.saturating_add(*price));
        self.admit(price)?;
        require_granted(db::ledger::reserve(conn, caller.payer(), works, outputs).await?, price)
    }
}

/// What the user wants of a start beyond what it makes (docs/reference/jobs.md#wanted-outputs).
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// Number of outputs that the user wants and the start does not make.
    pub more: i16,
    /// Ended work that owes as many outputs fewer as the start makes.
    pub retry_of: Option<JobId>,
}

impl Wanted {
    /// Rejects work that this start of the account, about this canvas or none, cannot make up for.
    pub async fn check(&self, conn: &mut PgConnection, account: &AccountUid, canvas_key: Option<i64>) -> Result<()> {
        let Some(id) = self.retry_of else { return Ok(()) };
        if db::jobs::may_be_retried(conn, id, account, canvas_key).await? {
            return Ok(());
        }
        let message = "must be ended work of the account, on the same canvas or on none";
        Err(Error::Unprocessable(vec![Violation::new("retryOf", message)]))
    }

    /// Records that the start makes so many outputs in the place of earlier ones.
    pub async fn make_up(&self, conn: &mut PgConnection, outputs: usize) -> Result<()> {
        if let Some(id) = self.retry_of {
            // A start makes a few outputs.
            db::jobs::make_up(conn, id, outputs as i16).await?;
        }
        Ok(())
    }
}

/// How a start was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// On the revision that it is based on.
    New,
    /// On a later revision than it is based on.
    Lenient,
    /// As a repetition of an earlier, equal request.
    Replayed,
}

impl Acceptance {
    /// The acceptance of a start that is not a repetition.
    pub fn on(canvas: &LockedCanvas) -> Self {
        if canvas.stale_base.is_some() { Self::Lenient } else { Self::New }
    }
}

/// A command that starts work for a price.
pub trait Start: Command {
    /// Checked work.
    type Plan: Send;

    /// Who starts it.
    fn caller(&self) -> &Credential;

    /// The terms of the request.
    fn terms(&self) -> &Terms;

    /// Checks the start against stored state, behind the locks of its terms, and writes nothing. `locked` as in
    /// [`Command::execute`].
    fn plan(
        &self,
        conn: &mut PgConnection,
        subject: Self::Subject,
        locked: Option<LockedCanvas>,
    ) -> impl Future<Output = Result<Self::Plan>> + Send;

    /// The price of the work, its duration, model and targets.
    fn quote(&self, plan: &Self::Plan) -> StartQuote;

    /// How many outputs the work counts in a budget: those of a model.
    fn outputs(&self, plan: &Self::Plan) -> i64;

    /// The queue that the work waits in.
    fn queue(&self, plan: &Self::Plan) -> Queue;

    /// Returns `true` if the start was checked although its base revision is stale.
    fn is_lenient(&self, _: &Self::Plan) -> bool {
        false
    }
}

/// Executes a dry run: the checks of the start, and its quote. Also returns the queue of the work, and whether the base revision
/// is stale.
///
/// # Errors
///
/// The first check that fails, as for the start.
pub async fn quote<S: Start>(pool: &PgPool, start: &S) -> Result<(StartQuote, Queue, bool)> {
    let mut snapshot = db::pool::snapshot(pool).await?;
    let subject = start.authorize(&mut snapshot).await?;
    let plan = start.plan(&mut snapshot, subject, None).await?;
    let quote = start.quote(&plan);
    start.terms().require(&mut snapshot, start.caller(), quote.credit_cost, start.outputs(&plan)).await?;
    Ok((quote, start.queue(&plan), start.is_lenient(&plan)))
}

fn require_granted(funding: Funding, credit_cost: i64) -> Result<()> {
    let shortage = match funding {
        Funding::Granted => return Ok(()),
        Funding::OverBudget(budget) => Shortage::Budget(budget),
        Funding::OverBalance => Shortage::Balance,
    };
    Err(Error::PaymentRequired { credit_cost, shortage })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(max_credits: Option<i64>) -> Terms {
        Terms { key: Some("12345678".into()), max_credits }
    }

    #[test]
    fn a_cap_admits_prices_up_to_itself() {
        for (max, price, admitted) in
            [(None, i64::MAX, true), (Some(0), 0, true), (Some(0), 1, false), (Some(3), 3, true), (Some(3), 4, false)]
        {
            match terms(max).admit(price) {
                Ok(()) => assert!(admitted, "{max:?} {price}"),
                Err(Error::PaymentRequired { credit_cost, shortage: Shortage::MaxCredits(cap) }) => {
                    assert_eq!((admitted, credit_cost, Some(cap)), (false, price, max));
                }
                Err(other) => panic!("{other}"),
            }
        }
    }

    #[test]
    fn a_dry_run_has_no_key_and_locks_nothing() {
        let fingerprint = Fingerprint::from([0; 32]);
        let start = terms(None);
        assert_eq!((start.is_dry_run(), start.locks()), (false, Locks::AccountAndCanvas));
        assert_eq!(start.key(&fingerprint).map(|key| key.text), Some("12345678"));
        let dry = Terms { key: None, max_credits: None };
        assert_eq!((dry.is_dry_run(), dry.locks()), (true, Locks::None));
        assert!(dry.key(&fingerprint).is_none());
    }
}
