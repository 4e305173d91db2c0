//! `canvas-gateway admin webhook`: lists and replays webhook deliveries.

use clap::{Args, Subcommand};
use db::deliveries::operation::{self, ListedDelivery, Replay};
use domain::id::JobId;
use domain::webhook::DeliveryStatus;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{CommandError, Context, Result, account};

/// Maximum deliveries of a listing.
const LISTED_MAX: i64 = 1000;

/// The subcommands of `admin webhook`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List deliveries, newest first.
    List {
        /// Uid or email of the account.
        #[arg(long)]
        account: Option<String>,
        /// Status: `pending`, `delivering`, `delivered` or `failed`.
        #[arg(long)]
        status: Option<String>,
    },
    /// Replay one finished delivery, or all failed ones of an account: same event, new signature, one attempt each.
    Replay(Which),
}

/// Which deliveries to replay.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub struct Which {
    /// `webhook:<id>`, or the id alone.
    id: Option<String>,
    /// Run or video job of the delivery: `run:<uuid>`, `run:recipe-<uuid>`, `job:<uuid>`, or the id alone.
    #[arg(long)]
    run: Option<String>,
    /// Uid or email of an account: replays all its failed deliveries.
    #[arg(long)]
    account: Option<String>,
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    match command {
        Command::List { account, status } => list(context, account.as_deref(), status.as_deref()).await,
        Command::Replay(Which { id: Some(id), .. }) => replay_one(context, &id).await,
        Command::Replay(Which { run: Some(run), .. }) => replay_of_run(context, &run).await,
        Command::Replay(Which { account, .. }) => replay_failed(context, &account.unwrap_or_default()).await,
    }
}

async fn list(context: &mut Context, name: Option<&str>, status: Option<&str>) -> Result {
    let status = status
        .map(|status| {
            status
                .parse::<DeliveryStatus>()
                .map_err(|_| CommandError::rule(format!("{status:?} is not a delivery status")))
        })
        .transpose()?;
    let uid = match name {
        Some(name) => Some(account(context, name).await?.uid),
        None => None,
    };
    let deliveries = operation::list(&mut context.connection, uid.as_ref(), status, None, LISTED_MAX).await?;
    Ok(json!({ "deliveries": deliveries.iter().map(entry).collect::<Vec<_>>() }))
}

fn entry(delivery: &ListedDelivery) -> Value {
    let state = &delivery.state;
    json!({
        "id": state.id, "run": delivery.handle(), "status": state.status, "attempts": state.attempts,
        "lastStatus": state.last_status, "errorCode": state.error_code, "createdAt": delivery.created_at,
    })
}

async fn replay_one(context: &mut Context, text: &str) -> Result {
    let unknown = || CommandError::rule(format!("delivery {text:?} does not exist"));
    let id = Uuid::try_parse(text.strip_prefix("webhook:").unwrap_or(text)).map_err(|_| unknown())?;
    answer(id, replay(context, id).await?.ok_or_else(unknown)?)
}

async fn replay_of_run(context: &mut Context, text: &str) -> Result {
    let unknown = || CommandError::rule(format!("run {text:?} has no delivery"));
    let plain = text.strip_prefix("run:").or_else(|| text.strip_prefix("job:")).unwrap_or(text);
    let run = Uuid::try_parse(plain.strip_prefix("recipe-").unwrap_or(plain)).map_err(|_| unknown())?;
    let id = operation::of_run(&mut context.connection, JobId(run)).await?.ok_or_else(unknown)?;
    answer(id, replay(context, id).await?.ok_or_else(unknown)?)
}

/// Replays each failed delivery in a transaction of its own: deliveries enqueued before a failure are sent and no longer count as
/// failed.
async fn replay_failed(context: &mut Context, name: &str) -> Result {
    let uid = account(context, name).await?.uid;
    let mut replayed = Vec::new();
    for id in operation::failed(&mut context.connection, &uid, None, i64::MAX).await? {
        // A delivery that is no longer failed was replayed concurrently.
        if let Some(replay @ Replay::Enqueued(_)) = replay(context, id).await? {
            replayed.push(answer(id, replay)?);
        }
    }
    Ok(json!({ "deliveries": replayed }))
}

async fn replay(context: &mut Context, id: Uuid) -> Result<Option<Replay>> {
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let replay = match app::delivery::replay(&mut transaction, &context.actor, id, None).await {
        Err(app::Error::NotFound(_)) => return Ok(None),
        replay => replay?,
    };
    db::pool::commit(transaction).await?;
    Ok(Some(replay))
}

fn answer(id: Uuid, replay: Replay) -> Result {
    match replay {
        Replay::Enqueued(status) => Ok(json!({ "id": db::deliveries::handle(id), "status": status })),
        Replay::Unfinished(status) => {
            Err(CommandError::rule(format!("the delivery is {status}: it has not ended yet")))
        }
        Replay::WithoutEvent => {
            Err(CommandError::rule("the run was abandoned without an event, so there is nothing to send"))
        }
    }
}
