//! Administration: subcommands that print one JSON object, or refuse with one line (decisions 2.4).
//!
//! Exit status 0: done. 1: the rules refuse a value, whichever. 2: the command line's grammar does.

mod account;
mod asset;
mod canvas;
mod connection;
mod credits;
mod job;
mod keys;
mod recipe;
mod revocation;
mod session;
mod token;
mod webhook;
mod work;

use std::process::ExitCode;

use clap::Subcommand;
use db::accounts::Account;
use service::chain;
use service::config::Config;
use service::keys::KeyRing;

use crate::installation;

/// What an administrator can ask for.
#[derive(Debug, Subcommand)]
pub enum Admin {
    /// Accounts.
    #[command(subcommand)]
    Account(account::Command),
    /// Agent tokens.
    #[command(subcommand)]
    Token(token::Command),
    /// Account sessions.
    #[command(subcommand)]
    Session(session::Command),
    /// Credit.
    #[command(subcommand)]
    Credits(credits::Command),
    /// Share a canvas with an account, or stop.
    Share(canvas::Share),
    /// Canvases.
    #[command(subcommand)]
    Canvas(canvas::Command),
    /// Assets.
    #[command(subcommand)]
    Asset(asset::Command),
    /// Jobs and runs of Recipes.
    #[command(subcommand)]
    Job(job::Command),
    /// Saved connections to providers.
    #[command(subcommand)]
    Connection(connection::Command),
    /// The catalogue of Recipes.
    #[command(subcommand)]
    Recipe(recipe::Command),
    /// The key ring that secrets at rest are sealed under.
    #[command(subcommand)]
    Keys(keys::Command),
    /// Webhook deliveries.
    #[command(subcommand)]
    Webhook(webhook::Command),
}

/// Why a command was not done.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    /// The rules refuse it.
    #[error("{0}")]
    Rule(String),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] db::Error),
    /// The installation key cannot be had.
    #[error(transparent)]
    Installation(#[from] installation::Error),
    /// The gateways cannot be told.
    #[error("CANVAS_REDIS_URL: not understood")]
    Cache(#[from] cache::Error),
    /// The models cannot be loaded.
    #[error(transparent)]
    Models(#[from] providers::SetupError),
}

impl Refusal {
    fn rule(message: impl Into<String>) -> Self {
        Refusal::Rule(message.into())
    }
}

type Result<T = serde_json::Value> = std::result::Result<T, Refusal>;

/// What every command works with.
struct Context {
    connection: db::Connection,
    ring: KeyRing,
    models: providers::Setup,
    config: Config,
}

/// Carries out `command`.
pub async fn run(command: Admin, config: &Config) -> ExitCode {
    match carry_out(command, config).await {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(refusal) => {
            eprintln!("{}", chain(&refusal).replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}

async fn carry_out(command: Admin, config: &Config) -> Result {
    let pool = db::pool::connect_for_maintenance(config.database_url.expose(), "canvas-admin")?;
    let mut context = Context {
        models: providers::Setup::load(config)?,
        connection: db::pool::acquire(&pool).await?,
        ring: config.master_keys.clone(),
        config: config.clone(),
    };
    match command {
        Admin::Account(command) => account::run(command, &mut context).await,
        Admin::Token(command) => token::run(command, &mut context).await,
        Admin::Session(command) => session::run(command, &mut context).await,
        Admin::Credits(command) => credits::run(command, &mut context).await,
        Admin::Share(share) => canvas::share(share, &mut context).await,
        Admin::Canvas(command) => canvas::run(command, &mut context).await,
        Admin::Asset(command) => asset::run(command, &mut context).await,
        Admin::Job(command) => job::run(command, &mut context).await,
        Admin::Connection(command) => connection::run(command, &mut context).await,
        Admin::Recipe(command) => recipe::run(command, &mut context).await,
        Admin::Keys(command) => keys::run(command, &mut context).await,
        Admin::Webhook(command) => webhook::run(command, &mut context).await,
    }
}

/// The account that a uid or an email names.
async fn account(context: &mut Context, uid_or_email: &str) -> Result<Account> {
    db::accounts::find(&mut context.connection, uid_or_email)
        .await?
        .ok_or_else(|| Refusal::rule(format!("there is no account {uid_or_email:?}")))
}

/// A whole number of credits from `least` up.
fn amount(text: &str, least: i64) -> Result<i64> {
    text.parse()
        .ok()
        .filter(|amount| (least..=1_000_000_000_000).contains(amount))
        .ok_or_else(|| Refusal::rule(format!("{text:?} is no number of credits from {least} to 1000000000000")))
}
