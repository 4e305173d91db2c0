//! Sending webhook deliveries once more (docs/reference/webhooks.md#replay).

use db::PgConnection;
use db::audit::{self, Actor, Event};
use db::deliveries::operation::{self, Replay};
use domain::id::AccountUid;
use uuid::Uuid;

use crate::{Error, Result};

/// Enqueues one more attempt of a delivery, of `account` if one is named, and writes that into the audit. The caller commits, and announces
/// what was enqueued.
///
/// # Errors
///
/// [`Error::NotFound`] when there is no such delivery.
pub async fn replay(
    conn: &mut PgConnection,
    actor: &Actor,
    delivery: Uuid,
    account: Option<&AccountUid>,
) -> Result<Replay> {
    let replayed = operation::replay(conn, delivery, account).await?;
    let (account, replay) = replayed.ok_or(Error::NotFound("delivery"))?;
    if let Replay::Enqueued(_) = replay {
        audit::write(conn, actor, Some(&account), &Event::DeliveryReplayed { delivery }).await?;
    }
    Ok(replay)
}
