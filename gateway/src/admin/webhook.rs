//! `admin webhook …`

use clap::Subcommand;
use db::deliveries::operation::{self, Listed, Replay};
use domain::Timestamp;
use domain::webhook::DeliveryStatus;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Context, Refusal, Result, account};

/// Most deliveries of a listing.
const LISTED_MAX: i64 = 1000;

/// What can be done with deliveries.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List deliveries, newest first.
    List {
        /// Uid or email.
        #[arg(long)]
        account: Option<String>,
        /// `pending`, `delivering`, `delivered` or `failed`.
        #[arg(long)]
        status: Option<String>,
    },
    /// Send a delivery that is over once more: same event, signed fresh, one attempt.
    Replay {
        /// `webhook:<id>`, or the id alone.
        id: String,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    match command {
        Command::List { account, status } => list(context, account.as_deref(), status.as_deref()).await,
        Command::Replay { id } => replay(context, &id).await,
    }
}

async fn list(context: &mut Context, name: Option<&str>, status: Option<&str>) -> Result {
    let status = status
        .map(|status| {
            status.parse::<DeliveryStatus>().map_err(|_| Refusal::rule(format!("{status:?} is no delivery status")))
        })
        .transpose()?;
    let uid = match name {
        Some(name) => Some(account(context, name).await?.uid),
        None => None,
    };
    let deliveries = operation::list(&mut context.connection, uid.as_ref(), status, LISTED_MAX).await?;
    Ok(json!({ "deliveries": deliveries.iter().map(entry).collect::<Vec<_>>() }))
}

fn entry(delivery: &Listed) -> Value {
    json!({
        "id": db::deliveries::handle(delivery.id), "run": delivery.job_id.run_handle(), "status": delivery.status,
        "attempts": delivery.attempts, "lastStatus": delivery.last_status, "errorCode": delivery.error_code,
        "createdAt": Timestamp::from(delivery.created_at),
    })
}

async fn replay(context: &mut Context, text: &str) -> Result {
    let unknown = || Refusal::rule(format!("there is no delivery {text:?}"));
    let id = Uuid::try_parse(text.strip_prefix("webhook:").unwrap_or(text)).map_err(|_| unknown())?;
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let replay = operation::replay(&mut transaction, id).await?.ok_or_else(unknown)?;
    db::pool::commit(transaction).await?;
    match replay {
        Replay::Enqueued(status) => Ok(json!({ "id": db::deliveries::handle(id), "status": status })),
        Replay::Unfinished(status) => Err(Refusal::rule(format!("the delivery is {status}: it is not over yet"))),
    }
}
