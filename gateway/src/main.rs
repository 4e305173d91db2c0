//! `canvas-gateway`: serves the API, migrates the database, administers accounts.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use service::config::Config;

#[derive(Parser)]
#[command(name = "canvas-gateway", version, about = "The HTTP process of Canvas Service", after_help = Config::help())]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the API.
    Serve,
    /// Bring the database to this build's version.
    Migrate,
    /// Administer accounts, tokens, credit, sharing, connections, keys and webhooks.
    #[command(subcommand)]
    Admin(gateway::admin::Admin),
}

fn main() -> ExitCode {
    let CommandLine { command } = CommandLine::parse();
    let config = match Config::from_env() {
        Ok(config) => config,
        Err(error) => {
            eprintln!("canvas-gateway: {error}");
            return ExitCode::FAILURE;
        }
    };
    service::lifecycle::block_on(async {
        match command {
            Command::Serve => gateway::serve(config).await,
            Command::Migrate => gateway::migrate(&config).await,
            Command::Admin(command) => gateway::admin::run(command, &config).await,
        }
    })
}
