//! `canvas-gateway admin keys`: reports which key encrypts what, and re-encrypts everything under the first key of its ring.

use clap::Subcommand;
use db::audit::{self, Event};
use serde_json::json;
use service::keys::KeyRing;
use uuid::Uuid;

use super::{CommandError, Context, Result};
use crate::installation;

/// Secrets that one statement loads and re-encrypts.
const BATCH: i64 = 500;

/// The subcommands of `admin keys`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Count the secrets encrypted under each key.
    Status,
    /// Reseal every secret under the first key of its ring.
    Rewrap,
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    if let Command::Rewrap = command {
        rewrap(context).await?;
    }
    status(context).await
}

async fn status(context: &mut Context) -> Result {
    let mut sealed = db::deliveries::sealed_counts(&mut context.connection).await?;
    for (id, count) in db::connections::sealed_counts(&mut context.connection).await? {
        *sealed.entry(id).or_default() += count;
    }
    if let Some(key) = db::installation::sealed_key(&mut context.connection).await?
        && let Some(id) = KeyRing::key_id(&key)
    {
        *sealed.entry(id.to_owned()).or_default() += 1;
    }
    Ok(json!({ "primary": context.ring.primary(), "sealed": sealed }))
}

/// Re-encrypts all secrets. Each is replaced only if it is unchanged since it was read, so that concurrent rewraps and deliveries are
/// safe.
async fn rewrap(context: &mut Context) -> Result<()> {
    installation::rewrap(&mut context.connection, &context.config.installation_keys()).await?;
    let (webhooks, connections) = (rewrap_deliveries(context).await?, rewrap_connections(context).await?);
    let event = Event::KeysRewrapped { connections: connections.done, webhooks: webhooks.done };
    audit::write(&mut context.connection, &context.actor, None, &event).await?;
    match webhooks.lost + connections.lost {
        0 => Ok(()),
        lost => Err(CommandError::rule(format!(
            "{lost} secrets are encrypted under keys that the ring does not hold; all others were re-encrypted"
        ))),
    }
}

/// Secrets that were looked at.
#[derive(Default)]
struct Rewrapped {
    /// Those that were encrypted again.
    done: u64,
    /// Those that cannot be decrypted.
    lost: u64,
}

/// Re-encrypts the secrets of webhooks.
async fn rewrap_deliveries(context: &mut Context) -> Result<Rewrapped> {
    let Context { connection, ring, .. } = context;
    let (mut after, mut count) = (Uuid::nil(), Rewrapped::default());
    loop {
        let secrets = db::deliveries::next_to_rewrap(connection, ring.primary(), after, BATCH).await?;
        let Some(last) = secrets.last() else { return Ok(count) };
        after = last.id;
        for secret in secrets {
            match anew(ring, &db::deliveries::handle(secret.id), &secret.sealed) {
                Some(anew) => {
                    db::deliveries::store_reencrypted(connection, secret.id, &secret.sealed, &anew).await?;
                    count.done += 1;
                }
                None => count.lost += 1,
            }
        }
    }
}

/// Re-encrypts the API keys of connections.
async fn rewrap_connections(context: &mut Context) -> Result<Rewrapped> {
    let Context { connection, ring, .. } = context;
    let (mut after, mut count) = (Uuid::nil(), Rewrapped::default());
    loop {
        let keys = db::connections::next_to_rewrap(connection, ring.primary(), after, BATCH).await?;
        let Some(last) = keys.last() else { return Ok(count) };
        after = last.id;
        for key in keys {
            match anew(ring, &db::connections::context(key.id), &key.sealed) {
                Some(anew) => {
                    db::connections::store_reencrypted(connection, key.id, &key.sealed, &anew).await?;
                    count.done += 1;
                }
                None => count.lost += 1,
            }
        }
    }
}

/// A secret re-encrypted under the first key of the ring; `None` when it cannot be decrypted.
fn anew(ring: &KeyRing, place: &str, sealed: &str) -> Option<String> {
    ring.decrypt(place, sealed).ok().map(|plain| ring.encrypt(place, &plain))
}
