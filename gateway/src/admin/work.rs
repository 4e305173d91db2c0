//! Canceling work for an operator, under the same rules as its account (docs/reference/jobs.md#cancel).

use std::time::Duration;

use db::purge::Active;

use super::announcer::Announcer;
use super::{CommandError, Context, Result};
use crate::cancel::{Canceled, cancel as cancel_in, handle};

/// How long a purge waits for canceled work to stop. A worker sees the cancel at its next step or heartbeat, and then cancels at
/// the provider.
const STOPPING: Duration = Duration::from_secs(60);
/// Interval between checks whether the work has stopped.
const LOOK: Duration = Duration::from_millis(200);
/// Attempts of a transaction that conflicts with another one.
const ATTEMPTS_MAX: usize = 5;

/// Cancels a job or run, notifies those who wait for it or for one of its jobs, and returns its state. A terminal one keeps its
/// state.
pub(super) async fn cancel(context: &mut Context, announcer: &Announcer, active: &Active) -> Result<String> {
    let mut attempts = 1;
    let canceled = loop {
        match attempt(context, active).await {
            Err(CommandError::Database(error)) if error.is_transient() && attempts < ATTEMPTS_MAX => attempts += 1,
            done => break done?,
        }
    };
    announcer.announce(&canceled.channels).await;
    Ok(canceled.status)
}

async fn attempt(context: &mut Context, active: &Active) -> Result<Canceled> {
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let canceled = cancel_in(&mut transaction, &context.config, &context.actor, active).await?;
    db::pool::commit(transaction).await?;
    canceled.ok_or_else(|| CommandError::rule(format!("{} no longer exists", handle(active))))
}

/// Lets a purge continue when no work is active. With `cancel_jobs` it cancels the active work first and waits until it has
/// stopped. `look` finds the active work.
pub(super) async fn quiet(
    context: &mut Context,
    cancel_jobs: bool,
    look: impl AsyncFn(&mut db::PgConnection) -> db::Result<Vec<Active>>,
) -> Result<()> {
    let active = look(&mut context.connection).await?;
    if active.is_empty() {
        return Ok(());
    }
    if !cancel_jobs {
        return Err(under_way(active.len()));
    }
    let announcer = Announcer::prepare(&context.config)?;
    for active in &active {
        match cancel(context, &announcer, active).await {
            // It ended and was removed in the meantime.
            Ok(_) | Err(CommandError::Rule(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let stopped = async {
        while !look(&mut context.connection).await?.is_empty() {
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    };
    match tokio::time::timeout(STOPPING, stopped).await {
        Ok(stopped) => stopped,
        Err(_) => Err(CommandError::rule(format!(
            "canceled work has not stopped within {} s: check that the workers are running, and purge again",
            STOPPING.as_secs()
        ))),
    }
}

/// The rejection of a purge while work is active.
pub(super) fn under_way(count: usize) -> CommandError {
    let active = match count {
        1 => "1 job or run is active: cancel it".to_owned(),
        _ => format!("{count} jobs or runs are active: cancel them"),
    };
    CommandError::rule(format!("{active}, or purge with --cancel-jobs"))
}
