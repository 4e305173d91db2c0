//! What the token may do.

use client::{Client, queue_in_words};
use domain::Timestamp;
use domain::account::{AccountStorage, AuthStatus, Scope};
use domain::budget::BudgetState;
use domain::known::Name;
use domain::model::ProviderConnection;
use domain::queue::QueueState;
use serde::Serialize;
use serde_json::{Value, json};

use super::canvases::listed;
use crate::args::{Global, Listing, Profile as ProfileCommand};
use crate::context::Context;
use crate::failure::{Failure, Outcome, usage};
use crate::output::{Output, joined, rows, text, time};
use crate::profile::Configuration;

/// A clock that is further off than this makes signatures and expiries look wrong.
const SKEW_MAX_SECONDS: i64 = 30;

pub async fn profile(global: &Global, command: &ProfileCommand) -> Outcome {
    let configuration = match command {
        ProfileCommand::List => Configuration::load()?,
        ProfileCommand::Use { name } => {
            Configuration::change(|configuration| {
                if !configuration.profiles.contains_key(name) {
                    return usage(format!("there is no profile {name}: `canvas profile list` shows them"));
                }
                configuration.current = Some(name.clone());
                Ok(configuration.clone())
            })
            .await?
        }
    };
    let is_current = |name: &String| configuration.current.as_ref() == Some(name);
    let profiles = &configuration.profiles;
    let list: Vec<Value> = profiles
        .iter()
        .map(|(name, it)| json!({"name": name, "baseUrl": it.base_url, "current": is_current(name)}))
        .collect();
    let output = Output::new(global.json, global.quiet);
    output.value(&json!({"profiles": list}), || {
        if output.quiet {
            return joined(profiles.keys(), "\n");
        }
        rows(&["", "profile", "service"], profiles, |(name, it)| {
            vec![if is_current(name) { "*".into() } else { String::new() }, text(name), text(&it.base_url)]
        })
    });
    Ok(())
}

pub async fn whoami(context: &Context) -> Outcome {
    let status = context.client.get_auth_status().await?;
    context.output.answer(&status, |it| {
        format!(
            "{} ({}) at {}\nname     {}\ntoken    {} ({})\nexpires  {}\ncredits  {}\nbudgets  {}\nstorage  {}\nscopes   {}",
            text(it.email),
            it.uid,
            context.origin,
            text(it.display_name),
            text(it.agent_label),
            it.agent_token_id,
            expiry(it.expires_at),
            it.credit_balance,
            budgets(&it.budgets),
            stored(&it.storage),
            joined(it.scopes, " "),
        )
    });
    Ok(())
}

/// Shows the balance and the budgets of the token.
pub async fn credits(context: &Context) -> Outcome {
    let status = context.client.get_auth_status().await?;
    context.output.answer(&status, |it| format!("credits  {}\nbudgets  {}", it.credit_balance, budgets(&it.budgets)));
    Ok(())
}

pub async fn connections(context: &Context, listing: &Listing) -> Outcome {
    let row = |it: ProviderConnection| {
        vec![text(it.name), text(it.id), text(it.provider), text(it.masked_key), text(it.models.len())]
    };
    let head = ["name", "connection", "provider", "key", "models"];
    listed(context, listing, || context.client.list_providers(), &head, row).await
}

fn budgets(budgets: &[BudgetState]) -> String {
    let lines = budgets.iter().map(|budget| {
        let reset = budget.resets_at.map(|at| format!(", until {}", time(at))).unwrap_or_default();
        format!("{}, of the {}: {} left{reset}", budget.in_words(), budget.of, budget.left)
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { "none".to_owned() } else { lines.join("\n         ") }
}

fn stored(AccountStorage { bytes, max }: &AccountStorage) -> String {
    match max {
        Some(max) => format!("{bytes} of {max} bytes"),
        None => format!("{bytes} bytes, without a limit"),
    }
}

fn expiry(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "never".to_owned(), time)
}

/// Makes the checks one after the other, without those that depend on a failed one. Returns the failure of the first failed
/// check.
pub async fn doctor(context: &Context) -> Outcome {
    let mut checks = Vec::new();
    let mut first = None;
    let mut check = |name: &str, result: Outcome<String>| {
        let (ok, detail) = match result {
            Ok(detail) => (true, detail),
            Err(failure) => {
                let detail = failure.message();
                first.get_or_insert(failure);
                (false, detail)
            }
        };
        checks.push(Check { name: name.to_owned(), ok, detail });
        ok
    };
    // The digest needs no credential.
    let digest = context.client.get_digest().await;
    let clock = digest.as_ref().ok().map(|answer| clock(answer.header("date")));
    if check("reach", digest.map(|_| context.origin.clone()).map_err(Failure::from)) {
        if let Some(clock) = clock {
            check("clock", clock);
        }
        check("version", version(&context.client).await);
        let status = context.client.get_auth_status().await.and_then(|answer| answer.value());
        let scopes = status.as_ref().ok().map(|status| scopes(&status.scopes));
        let who = |it: AuthStatus| format!("{}, expires {}", text(it.agent_label), expiry(it.expires_at));
        check("token", status.map(who).map_err(Failure::from));
        if let Some(scopes) = scopes {
            check("scopes", Ok(scopes));
        }
        // An earlier release does not report this, which is no failure.
        let status = context.client.get_status().await.ok();
        let at = status.as_ref().map(client::Answer::time);
        for queue in status.iter().filter_map(|answer| answer.value().ok()).flat_map(|status| status.queues) {
            let words = at.map(|at| queue_in_words(&queue, at)).unwrap_or_default();
            let is_silent = queue.state == QueueState::Silent;
            check(&format!("queue {}", queue.queue), if is_silent { Err(Failure::Silent(words)) } else { Ok(words) });
        }
    }
    context.output.value(&json!({"checks": checks}), || {
        rows(&["check", "", "detail"], &checks, |it| {
            vec![text(&it.name), if it.ok { "ok".into() } else { "FAILED".into() }, text(&it.detail)]
        })
    });
    first.map_or(Ok(()), Err)
}

/// A check of `canvas doctor`.
#[derive(Serialize)]
struct Check {
    name: String,
    ok: bool,
    detail: String,
}

fn clock(date: Option<&str>) -> Outcome<String> {
    let Some(there) = date.and_then(|date| chrono::DateTime::parse_from_rfc2822(date).ok()) else {
        return Ok("the service does not say its time".into());
    };
    #[expect(clippy::disallowed_methods, reason = "the clock of this machine is what is checked")]
    let here = chrono::Utc::now();
    let off = (here - there.to_utc()).num_seconds();
    let side = if off < 0 { "behind" } else { "ahead of" };
    let message = format!("this machine's clock is {} s {side} the service's", off.abs());
    if off.abs() <= SKEW_MAX_SECONDS { Ok(message) } else { usage(format!("{message}: set it")) }
}

/// Checks that the service has the version of the contract that this program was made for.
async fn version(client: &Client) -> Outcome<String> {
    let document = client.get_contract().await?.value()?;
    let spoken = text(document["info"]["version"].as_str().unwrap_or_default());
    match spoken.split('.').next() {
        Some("1") => Ok(format!("contract {spoken}, canvas {}", env!("CARGO_PKG_VERSION"))),
        _ => {
            usage(format!("the contract of the service is {spoken}, and canvas {} knows 1", env!("CARGO_PKG_VERSION")))
        }
    }
}

fn scopes(granted: &[Name<Scope>]) -> String {
    let missing: Vec<&str> =
        Scope::ALL.iter().filter(|scope| !granted.iter().any(|it| it == *scope)).map(|it| it.as_str()).collect();
    match missing.is_empty() {
        true => "all".to_owned(),
        false => format!("all but {}", missing.join(", ")),
    }
}
