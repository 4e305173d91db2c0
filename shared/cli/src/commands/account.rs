//! Signing in, and what the token may do.

use std::io::{IsTerminal, stdin};

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
use crate::args::{Global, Listing, Login, Profile as ProfileCommand};
use crate::context::{Context, connect, text_or_stdin};
use crate::failure::{Failure, Outcome, usage};
use crate::output::{Output, joined, rows, text, time};
use crate::profile::{Configuration, Profile};
use crate::terminal;

/// A clock that is further off than this makes signatures and expiries look wrong.
const SKEW_MAX_SECONDS: i64 = 30;

pub async fn login(global: &Global, login: &Login) -> Outcome {
    let mut configuration = Configuration::load()?;
    let name = global.profile.clone().or_else(|| configuration.current.clone());
    let known = name.as_ref().and_then(|name| configuration.profiles.get(name));
    let Some(url) = global.base_url.clone().or_else(|| known.map(|profile| profile.base_url.clone())) else {
        return usage("name the service: canvas login --base-url URL");
    };
    let token = token(login, &url).await?;
    let client = connect(&url, &token)?;
    let status = client.get_auth_status().await?;
    let host = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest).trim_end_matches('/');
    // The profile that is in use keeps its name and gets the new token, unless it is of another service.
    let known = configuration.current.clone().filter(|_| configuration.current().is_some_and(|it| it.is_of(&url)));
    let name = global.profile.clone().or(known).unwrap_or_else(|| host.to_owned());
    configuration.profiles.insert(name.clone(), Profile { base_url: url.trim_end_matches('/').to_owned(), token });
    configuration.current = Some(name.clone());
    configuration.save()?;
    Output::new(global.json, global.quiet).answer(&status, |it| {
        format!("Signed in to {url} as {}. The profile {name} is used from now on.", text(it.email))
    });
    Ok(())
}

/// The token, from standard input or typed without an echo. Never an argument: those are seen by others and kept by shells.
async fn token(login: &Login, url: &str) -> Outcome<String> {
    let token = if login.token_stdin || !stdin().is_terminal() {
        text_or_stdin("-").await?.trim().to_owned()
    } else {
        let question = format!("Token for {url} (make one in the console: Settings, Tokens)");
        terminal::secret(&question, "--token-stdin reads the token from standard input").await?
    };
    match token.is_empty() {
        true => usage("no token was given"),
        false => Ok(token),
    }
}

pub fn logout(global: &Global) -> Outcome {
    let mut configuration = Configuration::load()?;
    let Some(name) = global.profile.clone().or_else(|| configuration.current.clone()) else {
        return usage("no profile is in use");
    };
    if configuration.profiles.remove(&name).is_none() {
        return usage(format!("there is no profile {name}"));
    }
    if configuration.current.as_ref() == Some(&name) {
        configuration.current = None;
    }
    configuration.save()?;
    Output::new(global.json, global.quiet).value(&json!({"profile": name}), || {
        format!("The token of {name} is forgotten here. It stays valid: revoke it in the console (Settings, Tokens).")
    });
    Ok(())
}

pub fn profile(global: &Global, command: &ProfileCommand) -> Outcome {
    let mut configuration = Configuration::load()?;
    if let ProfileCommand::Use { name } = command {
        if !configuration.profiles.contains_key(name) {
            return usage(format!("there is no profile {name}: `canvas profile list` shows them"));
        }
        configuration.current = Some(name.clone());
        configuration.save()?;
    }
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
                let detail = match &failure {
                    Failure::Service(error) => error.to_string(),
                    Failure::Usage(text)
                    | Failure::Unwritten(text)
                    | Failure::NoToken(text)
                    | Failure::NotFound(text)
                    | Failure::Ambiguous(text)
                    | Failure::Running(text)
                    | Failure::Silent(text)
                    | Failure::Disconnected(text) => text.clone(),
                    Failure::Work | Failure::Interrupted(_) => String::new(),
                };
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
