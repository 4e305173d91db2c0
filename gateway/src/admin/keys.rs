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
    let (mut after, mut lost) = (Uuid::nil(), 0);
    loop {
        let primary = context.ring.primary().to_owned();
        let secrets = db::deliveries::next_to_rewrap(&mut context.connection, &primary, after, BATCH).await?;
        let Some(last) = secrets.last() else { break };
        after = last.id;
        for secret in secrets {
            let seal_context = db::deliveries::handle(secret.id);
            match context.ring.open(&seal_context, &secret.sealed) {
                Ok(plain) => {
                    let anew = context.ring.seal(&seal_context, &plain);
                    db::deliveries::store_resealed(&mut context.connection, secret.id, &secret.sealed, &anew).await?;
                }
                Err(_) => lost += 1,
            }
        }
    }
    match lost {
        0 => Ok(()),
        _ => Err(Refusal::rule(format!(
            "{lost} secrets hang on keys that the ring does not hold; all others were moved"
        ))),
    }
}
