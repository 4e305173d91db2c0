//! `admin keys …`: what hangs on which key of the ring, and moving it to the first.

use clap::Subcommand;
use serde_json::json;
use service::keys::KeyRing;
use uuid::Uuid;

use super::{Context, Refusal, Result};
use crate::installation;

/// Secrets that are re-sealed between two looks.
const BATCH: i64 = 500;

/// What can be done with the key ring.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Count what is sealed under each key.
    Status,
    /// Seal everything under the first key of the ring.
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

/// Each secret is replaced only if it is still what was opened, so that several at once, and deliveries meanwhile, are safe.
async fn rewrap(context: &mut Context) -> Result<()> {
    installation::rewrap(&mut context.connection, &context.ring).await?;
    match rewrap_deliveries(context).await? + rewrap_connections(context).await? {
        0 => Ok(()),
        lost => Err(Refusal::rule(format!(
            "{lost} secrets hang on keys that the ring does not hold; all others were moved"
        ))),
    }
}

/// Moves the secrets of webhooks; how many cannot be opened.
async fn rewrap_deliveries(context: &mut Context) -> Result<u64> {
    let Context { connection, ring, .. } = context;
    let (mut after, mut lost) = (Uuid::nil(), 0);
    loop {
        let secrets = db::deliveries::next_to_rewrap(connection, ring.primary(), after, BATCH).await?;
        let Some(last) = secrets.last() else { return Ok(lost) };
        after = last.id;
        for secret in secrets {
            match anew(ring, &db::deliveries::handle(secret.id), &secret.sealed) {
                Some(anew) => {
                    db::deliveries::store_resealed(connection, secret.id, &secret.sealed, &anew).await?;
                }
                None => lost += 1,
            }
        }
    }
}

/// Moves the keys of connections; how many cannot be opened.
async fn rewrap_connections(context: &mut Context) -> Result<u64> {
    let Context { connection, ring, .. } = context;
    let (mut after, mut lost) = (Uuid::nil(), 0);
    loop {
        let keys = db::connections::next_to_rewrap(connection, ring.primary(), after, BATCH).await?;
        let Some(last) = keys.last() else { return Ok(lost) };
        after = last.id;
        for key in keys {
            match anew(ring, &db::connections::context(key.id), &key.sealed) {
                Some(anew) => {
                    db::connections::store_resealed(connection, key.id, &key.sealed, &anew).await?;
                }
                None => lost += 1,
            }
        }
    }
}

/// What is sealed under the first key of the ring instead; `None` when it cannot be opened.
fn anew(ring: &KeyRing, place: &str, sealed: &str) -> Option<String> {
    ring.open(place, sealed).ok().map(|plain| ring.seal(place, &plain))
}
