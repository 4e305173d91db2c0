//! Memory budgets of generation (`CANVAS_GENERATION_MEMORY_MIB`): orders sent to providers, results
//! received from them, and images fetched from foreign hosts.
//!
//! **Guarantee.** Their total size stays within the budget, each part a [`Shares`]. A result,
//! which is paid for, waits only for other results. An order waits for orders and results. Only
//! jobs with foreign images wait for foreign images. Each account fetches these for one job at
//! a time, and accounts take turns, so that an account with slow hosts delays the others for at
//! most [`Settings::foreign_max`](super::Settings::foreign_max).
//!
//! **Mechanism.** A quarter of the budget is reserved for foreign images. Orders may use at most
//! half of the budget, and results use what orders leave, at least a quarter. A holder of memory
//! for foreign images may wait for memory for an order, but never the other way round, so
//! deadlocks are impossible.
//!
//! **Reason.** The size of a foreign file is known only when it has arrived, and its host decides
//! when that is.

use std::time::Duration;

use domain::id::AccountUid;
use domain::limits::UPLOAD_MAX;
use service::account;
use service::shares::{Held, Key, Shares};
use tokio::time::timeout;

/// Maximum wait for the account's turn to fetch foreign images.
const TURN_PATIENCE: Duration = Duration::from_secs(1);
/// Maximum wait for memory for foreign images before the slot is released. It is long enough to
/// wait for the turns of a few other accounts, and short enough that the slowest submit after it
/// ends well within the time limit of a run.
const MEMORY_PATIENCE: Duration = Duration::from_secs(120);

/// The memory budgets of generation. Clones share them.
#[derive(Clone, Debug)]
pub struct MemoryBudgets {
    /// Budget of orders and results.
    files: Shares,
    /// The part of it that orders may use.
    orders: Shares,
    /// Budget of foreign images. An account has room for those of one job.
    foreign: Shares,
}

/// Admitted memory, released on drop.
#[derive(Debug)]
pub struct Admitted {
    _held: Held,
    /// The share of what orders may use.
    _order: Option<Held>,
}

impl MemoryBudgets {
    /// Creates the budgets within a total of `budget_bytes`.
    pub fn new(budget_bytes: u64) -> Self {
        let (files, orders) = (budget_bytes / 4 * 3, budget_bytes / 2);
        Self {
            files: Shares::new("provider_files", files, files),
            orders: Shares::new("provider_orders", orders, orders),
            foreign: Shares::new("foreign_images", budget_bytes / 4, UPLOAD_MAX),
        }
    }

    /// Waits until orders of this size fit. Orders larger than their budget are admitted alone.
    pub async fn order(&self, bytes: u64) -> Admitted {
        let account = account::key();
        let order = self.orders.hold(&account, bytes).await;
        let held = self.files.hold(&account, order.units()).await;
        Admitted { _held: held, _order: Some(order) }
    }

    /// Waits until a result of this size fits.
    pub async fn result(&self, bytes: u64) -> Admitted {
        Admitted { _held: self.files.hold(&account::key(), bytes).await, _order: None }
    }

    /// Waits for memory for the foreign images of one of the account's jobs, [`UPLOAD_MAX`] bytes
    /// in total; `None` if it does not become available in time.
    pub async fn foreign(&self, account: &AccountUid) -> Option<Admitted> {
        let account = Key::account(account.as_str());
        let is_own = self.foreign.blocker(&account, UPLOAD_MAX).is_some_and(|blocker| blocker == account);
        let patience = if is_own { TURN_PATIENCE } else { MEMORY_PATIENCE };
        let held = timeout(patience, self.foreign.hold(&account, UPLOAD_MAX)).await.ok()?;
        Some(Admitted { _held: held, _order: None })
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    const SOON: Duration = Duration::from_millis(1);

    fn account(uid: &str) -> AccountUid {
        AccountUid::parse(uid).expect("a plain id")
    }

    /// Budgets that fit two foreign files.
    fn budgets() -> MemoryBudgets {
        MemoryBudgets::new(8 * UPLOAD_MAX)
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_stands_behind_foreign_images_and_no_result_behind_orders() {
        let budgets = budgets();
        let slow = (budgets.foreign(&account("a")).await, budgets.foreign(&account("b")).await);
        assert!(slow.0.is_some() && slow.1.is_some());
        let order = timeout(SOON, budgets.order(u64::MAX)).await.expect("does not wait for what is foreign");
        let mut next = pin!(budgets.order(1));
        assert!(timeout(SOON, &mut next).await.is_err(), "orders wait for orders");
        let result = timeout(SOON, budgets.result(2 * UPLOAD_MAX)).await.expect("does not wait for orders");
        assert!(timeout(SOON, budgets.result(1)).await.is_err(), "all is held");
        drop(result);
        assert!(timeout(SOON, budgets.result(1)).await.is_ok());
        drop(order);
        assert!(timeout(SOON, next).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_has_one_turn_at_a_time_and_accounts_take_turns() {
        let budgets = budgets();
        let (a, b, c) = (account("a"), account("b"), account("c"));
        let first = budgets.foreign(&a).await;
        assert!(first.is_some() && budgets.foreign(&a).await.is_none(), "one at a time");
        let second = budgets.foreign(&b).await;
        let mut third = pin!(budgets.foreign(&c));
        assert!(timeout(SOON, &mut third).await.is_err(), "both rooms are taken");
        drop(first);
        let mut again = pin!(budgets.foreign(&a));
        assert!(timeout(SOON, &mut again).await.is_err(), "it is another's turn");
        assert!(timeout(SOON, third).await.expect("has its turn").is_some());
        assert!(second.is_some() && timeout(SOON, again).await.expect("has its turn").is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_budget_smaller_than_a_file_lets_one_in_at_a_time() {
        let budgets = MemoryBudgets::new(1 << 20);
        let leased = (budgets.foreign(&account("a")).await, budgets.order(UPLOAD_MAX).await);
        assert!(leased.0.is_some());
        assert!(timeout(SOON, budgets.foreign(&account("b"))).await.is_err());
        assert!(timeout(SOON, budgets.result(1)).await.is_ok());
    }
}
