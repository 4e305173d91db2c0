//! What generation holds at once, in bytes (`CANVAS_GENERATION_MEMORY_MIB`): orders on their way to providers, results on their
//! way from them, and pictures on their way from foreign hosts.
//!
//! **Guarantee.** All of it together stays within the budget, as [`Memory`] has it. A result, which is paid for, waits for
//! results alone; an order for orders and results; and nobody but who wants foreign pictures waits for foreign pictures. Of
//! those an account fetches for one job at a time, and accounts take turns, so that one whose hosts are slow keeps others from
//! theirs for no longer than [`Settings::foreign_max`](super::Settings::foreign_max).
//!
//! **Mechanism.** A quarter of the budget is for foreign pictures alone. Orders have at most half of it and results what orders
//! leave, a quarter at least. Who has a foreign room may wait for an order's, never the other way round, so that no two wait for
//! each other.
//!
//! **Reason.** How large a foreign file is shows only when it is there, and when that is, its host decides.

use std::time::Duration;

use domain::id::AccountUid;
use domain::limits::UPLOAD_MAX;
use providers::Calls;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::Memory;

/// How long a foreign room is waited for before the slot is handed back: enough to keep one's turn while a few others have theirs,
/// and so little that the slowest submit after it ends well within a run.
const ROOM_PATIENCE: Duration = Duration::from_secs(120);

/// The budgets. Clones share them.
#[derive(Clone, Debug)]
pub struct InHand {
    /// For orders and results.
    files: Memory,
    /// What orders may have of it.
    orders: Memory,
    /// For foreign pictures.
    foreign: Memory,
    /// The accounts that have foreign pictures fetched.
    fetching: Calls,
}

/// A place in memory, given back when it is dropped.
#[derive(Debug)]
pub struct Admitted {
    _held: OwnedSemaphorePermit,
    /// The turn that came with it.
    _turn: Option<OwnedSemaphorePermit>,
}

impl InHand {
    /// A budget of so many bytes for all of it.
    pub fn new(budget_bytes: u64) -> Self {
        Self {
            files: Memory::new(budget_bytes / 4 * 3),
            orders: Memory::new(budget_bytes / 2),
            foreign: Memory::new(budget_bytes / 4),
            fetching: Calls::new(1),
        }
    }

    /// Waits until orders of so many bytes may be held. Larger than what orders may have: as the only ones.
    pub async fn order(&self, bytes: u64) -> Admitted {
        let turn = self.orders.admit(bytes).await;
        let held = self.files.admit(bytes.min(self.orders.budget_bytes())).await;
        Admitted { _held: held, _turn: Some(turn) }
    }

    /// Waits until a result of so many bytes may be held.
    pub async fn result(&self, bytes: u64) -> Admitted {
        Admitted { _held: self.files.admit(bytes).await, _turn: None }
    }

    /// Room for the foreign pictures of one of the account's jobs, [`UPLOAD_MAX`] bytes together; nothing when its turn did not
    /// come in time.
    pub async fn foreign(&self, account: &AccountUid) -> Option<Admitted> {
        let turn = self.fetching.enter(account.as_str()).await?;
        let held = timeout(ROOM_PATIENCE, self.foreign.admit(UPLOAD_MAX)).await.ok()?;
        Some(Admitted { _held: held, _turn: Some(turn) })
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

    /// With room for two foreign files.
    fn in_hand() -> InHand {
        InHand::new(8 * UPLOAD_MAX)
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_stands_behind_foreign_pictures_and_no_result_behind_orders() {
        let in_hand = in_hand();
        let slow = (in_hand.foreign(&account("a")).await, in_hand.foreign(&account("b")).await);
        assert!(slow.0.is_some() && slow.1.is_some());
        let order = timeout(SOON, in_hand.order(u64::MAX)).await.expect("does not wait for what is foreign");
        let mut next = pin!(in_hand.order(1));
        assert!(timeout(SOON, &mut next).await.is_err(), "orders wait for orders");
        let result = timeout(SOON, in_hand.result(2 * UPLOAD_MAX)).await.expect("does not wait for orders");
        assert!(timeout(SOON, in_hand.result(1)).await.is_err(), "all is held");
        drop(result);
        assert!(timeout(SOON, in_hand.result(1)).await.is_ok());
        drop(order);
        assert!(timeout(SOON, next).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_has_one_turn_at_a_time_and_accounts_take_turns() {
        let in_hand = in_hand();
        let (a, b, c) = (account("a"), account("b"), account("c"));
        let first = in_hand.foreign(&a).await;
        assert!(first.is_some() && in_hand.foreign(&a).await.is_none(), "one at a time");
        let second = in_hand.foreign(&b).await;
        let mut third = pin!(in_hand.foreign(&c));
        assert!(timeout(SOON, &mut third).await.is_err(), "both rooms are taken");
        drop(first);
        let mut again = pin!(in_hand.foreign(&a));
        assert!(timeout(SOON, &mut again).await.is_err(), "it is another's turn");
        assert!(timeout(SOON, third).await.expect("has its turn").is_some());
        assert!(second.is_some() && timeout(SOON, again).await.expect("has its turn").is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_budget_smaller_than_a_file_lets_one_in_at_a_time() {
        let in_hand = InHand::new(1 << 20);
        let held = (in_hand.foreign(&account("a")).await, in_hand.order(UPLOAD_MAX).await);
        assert!(held.0.is_some());
        assert!(timeout(SOON, in_hand.foreign(&account("b"))).await.is_err());
        assert!(timeout(SOON, in_hand.result(1)).await.is_ok());
    }
}
