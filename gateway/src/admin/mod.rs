//! Administration: subcommands that print one JSON object, or one line on standard error when they fail.
//!
//! Exit status 0: success. 1: a value was rejected or the command failed. 2: the command line is malformed
//! (docs/reference/command-line.md#exit-status).

mod account;
mod announcer;
mod app;
mod asset;
mod audit;
mod canvas;
mod connection;
mod credits;
mod identity;
mod job;
mod keys;
mod recipe;
mod session;
mod signin;
mod token;
mod webhook;
mod work;

use std::process::ExitCode;

use clap::Subcommand;
use db::accounts::Account;
use db::audit::Actor;
use domain::budget::Budget;
use service::chain;
use service::config::{Config, ConfigError};
use service::keys::KeyRing;

use crate::installation;
use crate::output::print_line;

/// The `admin` commands.
#[derive(Debug, Subcommand)]
pub enum Admin {
    /// Create, enable, disable, limit and delete accounts.
    #[command(subcommand)]
    Account(account::Command),
    /// Create, list and revoke agent tokens.
    #[command(subcommand)]
    Token(token::Command),
    /// Create sign-in links for the console and revoke sessions.
    #[command(subcommand)]
    Session(session::Command),
    /// List, link and unlink the people at OpenID providers who sign in to an account.
    #[command(subcommand)]
    Identity(identity::Command),
    /// Check the OpenID providers that people sign in with.
    #[command(subcommand)]
    Signin(signin::Command),
    /// List and end apps, and list the OAuth clients that people may authorize.
    #[command(subcommand)]
    App(app::Command),
    /// Grant credits.
    #[command(subcommand)]
    Credits(credits::Command),
    /// Share a canvas with an account, or stop sharing it.
    Share(canvas::Share),
    /// Delete canvases.
    #[command(subcommand)]
    Canvas(canvas::Command),
    /// Delete assets, and remove private metadata from old ones.
    #[command(subcommand, visible_alias = "assets")]
    Asset(asset::Command),
    /// List, show and cancel jobs and Recipe runs.
    #[command(subcommand)]
    Job(job::Command),
    /// Create, list and delete saved connections to providers.
    #[command(subcommand)]
    Connection(connection::Command),
    /// Publish Recipes in the catalog.
    #[command(subcommand)]
    Recipe(recipe::Command),
    /// Inspect and change the keys that encrypt secrets at rest.
    #[command(subcommand)]
    Keys(keys::Command),
    /// List and replay webhook deliveries.
    #[command(subcommand)]
    Webhook(webhook::Command),
    /// Export and verify the audit.
    #[command(subcommand)]
    Audit(audit::Command),
}

impl Admin {
    /// The name of the command in the audit.
    const fn name(&self) -> &'static str {
        match self {
            Admin::Account(_) => "admin account",
            Admin::Token(_) => "admin token",
            Admin::Session(_) => "admin session",
            Admin::Identity(_) => "admin identity",
            Admin::Signin(_) => "admin signin",
            Admin::App(_) => "admin app",
            Admin::Credits(_) => "admin credits",
            Admin::Share(_) => "admin share",
            Admin::Canvas(_) => "admin canvas",
            Admin::Asset(_) => "admin asset",
            Admin::Job(_) => "admin job",
            Admin::Connection(_) => "admin connection",
            Admin::Recipe(_) => "admin recipe",
            Admin::Keys(_) => "admin keys",
            Admin::Webhook(_) => "admin webhook",
            Admin::Audit(_) => "admin audit",
        }
    }
}

/// Why a command was rejected or failed.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    /// The value violates a rule, or the state does not allow the command.
    #[error("{0}")]
    Rule(String),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] db::Error),
    /// The installation key is unavailable.
    #[error(transparent)]
    Installation(#[from] installation::Error),
    /// The notification of the gateways cannot be set up.
    #[error("CANVAS_REDIS_URL: invalid URL")]
    Cache(#[from] cache::Error),
    /// A variable is missing or wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The client for outbound calls cannot be made.
    #[error(transparent)]
    Egress(#[from] egress::SetupError),
    /// The object store failed.
    #[error(transparent)]
    Blobs(#[from] blob::Error),
    /// The models cannot be loaded.
    #[error(transparent)]
    Models(#[from] providers::SetupError),
}

impl CommandError {
    fn rule(message: impl Into<String>) -> Self {
        CommandError::Rule(message.into())
    }
}

impl From<::app::Error> for CommandError {
    fn from(error: ::app::Error) -> Self {
        match error {
            ::app::Error::Database(error) => CommandError::Database(error),
            ::app::Error::Invalid(violations) | ::app::Error::Unprocessable(violations) => {
                let rules = violations.iter().map(|it| format!("{} {}", it.field, it.message)).collect::<Vec<_>>();
                CommandError::Rule(rules.join("; "))
            }
            other => CommandError::Rule(other.to_string()),
        }
    }
}

type Result<T = serde_json::Value> = std::result::Result<T, CommandError>;

/// The resources that every command uses.
struct Context {
    /// The command, for the audit.
    actor: Actor,
    connection: db::Connection,
    ring: KeyRing,
    models: providers::Setup,
    config: Config,
}

pub async fn run(command: Admin, config: &Config) -> ExitCode {
    match carry_out(command, config).await {
        // The command has printed its result.
        Ok(serde_json::Value::Null) => ExitCode::SUCCESS,
        Ok(answer) => print_line(answer),
        Err(refusal) => {
            eprintln!("{}", chain(&refusal).replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}

async fn carry_out(command: Admin, config: &Config) -> Result {
    let pool = db::pool::connect_for_maintenance(config.database_url.expose(), "canvas-admin", config.storage_max)?;
    let mut context = Context {
        actor: Actor::command(command.name()),
        models: providers::Setup::load(config)?,
        connection: db::pool::acquire(&pool).await?,
        ring: config.master_keys.clone(),
        config: config.clone(),
    };
    match command {
        Admin::Account(command) => account::run(command, &mut context).await,
        Admin::Token(command) => token::run(command, &mut context).await,
        Admin::Session(command) => session::run(command, &mut context).await,
        Admin::Identity(command) => identity::run(command, &mut context).await,
        Admin::Signin(command) => signin::run(command, &mut context).await,
        Admin::App(command) => app::run(command, &mut context).await,
        Admin::Credits(command) => credits::run(command, &mut context).await,
        Admin::Share(share) => canvas::share(share, &mut context).await,
        Admin::Canvas(command) => canvas::run(command, &mut context).await,
        Admin::Asset(command) => asset::run(command, &mut context).await,
        Admin::Job(command) => job::run(command, &mut context).await,
        Admin::Connection(command) => connection::run(command, &mut context).await,
        Admin::Recipe(command) => recipe::run(command, &mut context).await,
        Admin::Keys(command) => keys::run(command, &mut context).await,
        Admin::Webhook(command) => webhook::run(command, &mut context).await,
        Admin::Audit(command) => audit::run(command, &mut context).await,
    }
}

/// Finds an account by uid or email.
async fn account(context: &mut Context, uid_or_email: &str) -> Result<Account> {
    db::accounts::find(&mut context.connection, uid_or_email)
        .await?
        .ok_or_else(|| CommandError::rule(format!("account {uid_or_email:?} does not exist")))
}

/// Parses budgets, each `UNIT:PERIOD:MAX`.
fn budgets_of(texts: &[String]) -> Result<Vec<Budget>> {
    texts.iter().map(|text| text.parse().map_err(CommandError::Rule)).collect()
}

/// Parses a whole number of credits, at least `least`.
fn amount(text: &str, least: i64) -> Result<i64> {
    text.parse()
        .ok()
        .filter(|amount| (least..=1_000_000_000_000).contains(amount))
        .ok_or_else(|| CommandError::rule(format!("{text:?} is not a number of credits from {least} to 1000000000000")))
}
