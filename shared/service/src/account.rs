//! The account on whose behalf a task works.
//!
//! **Guarantee.** What a task holds of [`Shares`](crate::shares::Shares) by [`key`] is held for its account.
//!
//! **Mechanism.** A value of the tokio task, set where the work of the account begins. Tasks that the work spawns do not inherit it.

use crate::shares::Key;

tokio::task_local! {
    static KEY: Key;
}

/// Does `work` on behalf of an account.
pub async fn on_behalf_of<F: Future>(account: &str, work: F) -> F::Output {
    KEY.scope(Key::account(account), work).await
}

/// The account on whose behalf the current task works; the service itself if there is none.
pub fn key() -> Key {
    KEY.try_with(Key::clone).unwrap_or_else(|_| Key::name("service"))
}
