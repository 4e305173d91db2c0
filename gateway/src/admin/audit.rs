//! `canvas-gateway admin audit`: exports the audit, and compares it with its seals.

use clap::{Args, Subcommand};
use db::audit::read::{After, Filter, page};
use db::audit::seal::{Broken, verify};
use db::audit::{Event, write};
use domain::Timestamp;
use serde_json::json;

use super::{CommandError, Context, Result, account};
use crate::audit::{hex, seal_rows};
use crate::console::AuditEntry;
use crate::installation;
use crate::output::print_line;

/// Rows that are read at a time.
const PAGE: i64 = 1000;

/// The subcommands of `admin audit`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print entries as JSON lines, newest first.
    Export(Which),
    /// Compare all rows with their seals.
    Verify,
}

/// Which entries to export.
#[derive(Args, Debug)]
pub struct Which {
    /// What the event begins with.
    #[arg(long)]
    event: Option<String>,
    /// Uid or email of the account that is concerned.
    #[arg(long)]
    account: Option<String>,
    /// Uid or email of the account that acted.
    #[arg(long)]
    actor: Option<String>,
    /// The earliest time, such as 2026-01-01T00:00:00Z.
    #[arg(long)]
    from: Option<String>,
    /// The time before which it was.
    #[arg(long)]
    to: Option<String>,
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    match command {
        Command::Export(which) => export(context, which).await,
        Command::Verify => verified(context).await,
    }
}

fn time(text: &str) -> Result<Timestamp> {
    serde_json::from_value(json!(text)).map_err(|_| CommandError::rule(format!("{text:?} is not a time (RFC 3339)")))
}

/// The result is the lines alone.
async fn export(context: &mut Context, which: Which) -> Result {
    let mut uids = [None, None];
    for (uid, name) in uids.iter_mut().zip([&which.account, &which.actor]) {
        if let Some(name) = name {
            *uid = Some(account(context, name).await?.uid);
        }
    }
    let [account, actor] = uids;
    let (from, to) = (which.from.as_deref().map(time).transpose()?, which.to.as_deref().map(time).transpose()?);
    let filter = Filter { event: which.event, account, actor, from, to, ..Filter::default() };
    write(&mut context.connection, &context.actor, None, &Event::AuditExported {}).await?;
    let mut after = None;
    loop {
        let found = page(&mut context.connection, &filter, after.as_ref(), PAGE).await?;
        let Some(last) = found.last() else { break };
        after = Some(After(last.id));
        for entry in found {
            print_line(json!(AuditEntry::from(entry)));
        }
    }
    Ok(serde_json::Value::Null)
}

/// Seals first, so that a row without a seal is one that was inserted with an old time.
async fn verified(context: &mut Context) -> Result {
    let keys = installation::keys(&mut context.connection, &context.config.installation_keys()).await?;
    seal_rows(&mut context.connection, &keys).await?;
    let mut snapshot = db::pool::snapshot_on(&mut context.connection).await?;
    let found = verify(&mut snapshot, &|rows| keys.audit_seal(rows)).await?;
    drop(snapshot);
    let broken = found.first_broken.map(|broken| match broken {
        Broken::Seal(seal) => json!({ "seal": seal }),
        Broken::Row(row) => json!({ "row": row }),
    });
    let head = found.head.as_deref().map(hex);
    let mut answer = json!({ "ok": broken.is_none(), "rows": found.rows, "seals": found.seals, "head": head });
    if let Some(broken) = broken {
        answer["firstBroken"] = broken;
    }
    Ok(answer)
}
