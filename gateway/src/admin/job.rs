//! `canvas-gateway admin job`: lists, shows and cancels jobs and Recipe runs.

use clap::{Args, Subcommand};
use db::jobs::operation::{self, JobFilter, ListedJob};
use db::purge::{self, Active};
use domain::Timestamp;
use domain::id::{AccountUid, JobId};
use domain::job::JobStatus;
use domain::recipe::run::RunId;
use serde_json::{Value, json};

use super::announcer::Announcer;
use super::{CommandError, Context, Result, account, work};
use crate::cancel::handle;

/// Maximum entries of a listing.
const LISTED_MAX: i64 = 1000;
/// Filter value that stands for every state that is not terminal.
const ACTIVE: &str = "active";

/// The subcommands of `admin job`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List jobs and Recipe runs, newest first.
    List {
        /// Uid or email of the account.
        #[arg(long)]
        account: Option<String>,
        /// Status, or `active` for all that are not terminal.
        #[arg(long)]
        status: Option<String>,
    },
    /// Show everything recorded about one job or run: its document, its task, its history and its requests to providers.
    Show {
        /// `job:<uuid>`, `run:<uuid>`, `run:recipe-<uuid>`, or the id alone.
        id: String,
    },
    /// Cancel a job or run as its account could, or all active ones of an account.
    Cancel(Which),
}

/// Which jobs or runs to cancel.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub struct Which {
    /// `job:<uuid>`, `run:<uuid>`, `run:recipe-<uuid>`, or the id alone.
    id: Option<String>,
    /// Uid or email of the account.
    #[arg(long)]
    account: Option<String>,
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    match command {
        Command::List { account, status } => list(context, account.as_deref(), status.as_deref()).await,
        Command::Show { id } => show(context, &id).await,
        Command::Cancel(Which { id: Some(id), .. }) => cancel(context, &id).await,
        Command::Cancel(Which { account, .. }) => cancel_all(context, &account.unwrap_or_default()).await,
    }
}

async fn list(context: &mut Context, name: Option<&str>, status: Option<&str>) -> Result {
    let statuses = status.map(statuses).transpose()?;
    let uid = match name {
        Some(name) => Some(account(context, name).await?.uid),
        None => None,
    };
    let wanted = JobFilter { id: None, account: uid.as_ref(), statuses: statuses.as_deref(), before: None };
    let listed = operation::list(&mut context.connection, wanted, LISTED_MAX).await?;
    Ok(json!({ "jobs": listed.iter().map(entry).collect::<Vec<_>>() }))
}

/// The states that a filter selects.
fn statuses(text: &str) -> Result<Vec<String>> {
    let names = |wanted: &dyn Fn(&JobStatus) -> bool| -> Vec<String> {
        JobStatus::ALL.iter().filter(|status| wanted(status)).map(ToString::to_string).collect()
    };
    let found = match text {
        ACTIVE => names(&|status| !status.is_terminal()),
        text => names(&|status| status.as_str() == text),
    };
    if found.is_empty() { Err(CommandError::rule(format!("{text:?} is not a job status"))) } else { Ok(found) }
}

fn active(listed: &ListedJob) -> Active {
    let account = AccountUid::from_stored(listed.account.clone());
    Active { id: listed.id, is_recipe: listed.is_recipe(), account }
}

fn entry(listed: &ListedJob) -> Value {
    let mut entry = json!(listed);
    entry["id"] = json!(handle(&active(listed)));
    for (name, time) in [
        ("dueAt", listed.due_at),
        ("createdAt", Some(listed.created_at)),
        ("startedAt", listed.started_at),
        ("completedAt", listed.completed_at),
    ] {
        entry[name] = json!(time.map(Timestamp::from));
    }
    entry
}

/// Finds the job or run that `text` identifies.
async fn find(context: &mut Context, text: &str) -> Result<ListedJob> {
    let unknown = || CommandError::rule(format!("job or run {text:?} does not exist"));
    let id = operation::parse_id(text).ok_or_else(unknown)?;
    let wanted = JobFilter { id: Some(id), ..JobFilter::default() };
    operation::list(&mut context.connection, wanted, 1).await?.pop().ok_or_else(unknown)
}

async fn show(context: &mut Context, text: &str) -> Result {
    let listed = find(context, text).await?;
    let (document, unreadable) = match document(context, &listed).await {
        Ok(document) => (document, None),
        // This build cannot read the record of the job: everything else is shown all the same.
        Err(CommandError::Database(error)) if error.is_unreadable() => (Value::Null, Some(error.to_string())),
        Err(error) => return Err(error),
    };
    let history = operation::history(&mut context.connection, listed.id).await?;
    let submits = operation::submits(&mut context.connection, listed.id).await?;
    let history: Vec<Value> =
        history.iter().map(|step| json!({ "status": step.status, "at": Timestamp::from(step.at) })).collect();
    let mut shown = json!({ "job": entry(&listed), "document": document, "history": history, "submits": submits });
    if let Some(why) = unreadable {
        shown["unreadable"] = json!(why);
    }
    Ok(shown)
}

/// The record as its account reads it.
async fn document(context: &mut Context, listed: &ListedJob) -> Result {
    let Active { id, is_recipe, account } = active(listed);
    let Context { connection, config, .. } = context;
    let document = if is_recipe {
        let run = db::recipe_runs::get(connection, RunId(id), &account).await?;
        json!(run.map(|run| run.document(&config.public_url)))
    } else {
        let job = db::jobs::get(connection, JobId(id), &account, config.retention_tombstone).await?;
        json!(job.map(|job| job.document(&config.public_url, |_| None)))
    };
    Ok(document)
}

async fn cancel(context: &mut Context, text: &str) -> Result {
    let active = active(&find(context, text).await?);
    let announcer = Announcer::prepare(&context.config)?;
    let status = work::cancel(context, &announcer, &active).await?;
    Ok(json!({ "id": handle(&active), "status": status }))
}

async fn cancel_all(context: &mut Context, name: &str) -> Result {
    let uid = account(context, name).await?.uid;
    let announcer = Announcer::prepare(&context.config)?;
    let mut canceled = Vec::new();
    // Runs first: canceling a run also cancels its jobs, so their entries may be terminal or `canceling` by then.
    for active in purge::active_of_account(&mut context.connection, &uid).await? {
        let status = work::cancel(context, &announcer, &active).await?;
        canceled.push(json!({ "id": handle(&active), "status": status }));
    }
    Ok(json!({ "jobs": canceled }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_stands_for_every_state_that_is_not_the_last() {
        assert_eq!(statuses("failed").ok(), Some(vec!["failed".to_owned()]));
        let active = statuses(ACTIVE).unwrap_or_default();
        assert_eq!(active, ["preparing", "queued", "running", "finalizing", "canceling"]);
        assert!(statuses("Failed").is_err() && statuses("").is_err());
    }
}
