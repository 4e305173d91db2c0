//! Waits that end with the credential under which they were opened (decisions 1.10, 2.2).
//!
//! **Guarantee.** Who waits is told nothing once the token, its session or its account is revoked, and the wait is over at once:
//! not with the next record, heartbeat or answer.
//!
//! **Mechanism.** A revocation is announced on a channel of the account, by one message; Postgres alone is believed. `cache::Watch`
//! wakes its waiter by time, too, so that a message that is lost costs five seconds, and half a second while Redis is out of order.
//!
//! **What ends no wait**: a share that is withdrawn. Jobs and runs belong to the account that started them, which goes on reading
//! how they end (decisions 3.11).

use db::accounts::Credential;
use domain::id::AccountUid;
use uuid::Uuid;

use crate::problem::{Problem, Result};
use crate::state::App;

/// The channel on which it is announced that credentials of an account no longer hold.
pub fn access_channel(account: &AccountUid) -> String {
    format!("access:{account}")
}

/// Whether a token stands for somebody at this moment.
///
/// # Errors
/// When that cannot be told.
pub async fn holds(app: &App, token: Uuid) -> Result<bool> {
    let found = app.credentials.look_up(token, None).await?;
    Ok(found.is_some_and(|(credential, _)| credential.valid))
}

/// Ends as soon as a caller's credential no longer holds. It listens from this call on, and looks at what came before as well.
pub fn loss(app: &App, caller: &Credential) -> impl Future<Output = ()> + Send + use<> {
    let (app, token) = (app.clone(), caller.token);
    let mut announced = app.cache.subscribe(&access_channel(&caller.account));
    async move {
        loop {
            announced.changed().await;
            // What cannot be told is looked at again, and before anything is told to who waits.
            if let Ok(false) = holds(&app, token).await {
                return;
            }
        }
    }
}

/// Does something under an open wait of the caller's; 401 as soon as its credential no longer holds. The wait is closed before the
/// outcome is there, so that who is answered can wait again.
///
/// `work` may be dropped wherever it waits, as when the caller hangs up.
pub async fn during<T>(app: &App, caller: &Credential, work: impl Future<Output = Result<T>>) -> Result<T> {
    let wait = app.waits.open(caller.token).await?;
    let outcome = while_held(app, caller, work).await;
    wait.close().await;
    outcome
}

/// Does something that may take a minute; 401 as soon as the caller's credential no longer holds. `work` may be dropped as above.
pub async fn while_held<T>(app: &App, caller: &Credential, work: impl Future<Output = Result<T>>) -> Result<T> {
    let outcome = tokio::select! {
        outcome = work => outcome,
        () = loss(app, caller) => Err(Problem::Unauthorized),
    };
    // The news of a revocation may be late.
    match outcome {
        Ok(told) if holds(app, caller.token).await? => Ok(told),
        Ok(_) => Err(Problem::Unauthorized),
        refused => refused,
    }
}
