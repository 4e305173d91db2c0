//! Waits that end with the credential under which they were opened (docs/reference/conventions.md#waits-and-credentials).
//!
//! **Guarantee.** A waiting client receives nothing more once its token, session or account is revoked, and the wait ends
//! immediately, not with the next record, heartbeat or response.
//!
//! **Mechanism.** A revocation is announced by one message on a channel of the account; only Postgres is authoritative.
//! `cache::Watch` also wakes its waiter periodically, so that a lost message costs five seconds, and half a second while Redis is
//! unavailable.
//!
//! **A withdrawn share ends no wait.** Jobs and runs belong to the account that started them, which can still read how they end
//! (docs/reference/canvases.md#withdrawn-roles).

use db::accounts::Credential;
use domain::channel;
use uuid::Uuid;

use crate::extract::caller::Caller;
use crate::problem::{Problem, Result};
use crate::state::App;

/// Returns `true` if a token is valid at this moment.
///
/// # Errors
///
/// When the database cannot answer.
pub async fn holds(app: &App, token: Uuid) -> Result<bool> {
    let found = app.credentials.look_up(token, None).await?;
    Ok(found.is_some_and(|(credential, _)| credential.valid))
}

/// Completes as soon as a caller's credential is no longer valid. Subscribes at the call, and also detects an earlier revocation.
pub fn loss(app: &App, caller: &Credential) -> impl Future<Output = ()> + Send + use<> {
    let (app, token) = (app.clone(), caller.token);
    let mut announced = app.cache.subscribe(&channel::access(&caller.account));
    async move {
        loop {
            announced.changed().await;
            // When the database cannot answer, the check is repeated, and in any case before anything is sent to the client.
            if let Ok(false) = holds(&app, token).await {
                return;
            }
        }
    }
}

/// Runs `work` under an open wait of the caller; 401 as soon as its credential is no longer valid. The wait is closed before the
/// response is sent, so that the client can wait again at once.
///
/// `work` may be dropped at any await point, as when the client disconnects.
pub async fn during<G, T>(app: &App, caller: &Caller<G>, work: impl Future<Output = Result<T>>) -> Result<T> {
    let _wait = app.waits.open(caller)?;
    while_held(app, caller, work).await
}

/// Runs `work`, which may take a minute; 401 as soon as the caller's credential is no longer valid. `work` may be dropped as
/// above.
pub async fn while_held<T>(app: &App, caller: &Credential, work: impl Future<Output = Result<T>>) -> Result<T> {
    let outcome = tokio::select! {
        outcome = work => outcome,
        () = loss(app, caller) => Err(Problem::Unauthorized),
    };
    // The announcement of a revocation may be late.
    match outcome {
        Ok(reported) if holds(app, caller.token).await? => Ok(reported),
        Ok(_) => Err(Problem::Unauthorized),
        refused => refused,
    }
}
