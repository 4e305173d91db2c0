//! `canvas-gateway`: serves the API, migrates the database, administers accounts.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use service::config::{Config, Part};

use crate::{admin, boot, check_config};

/// Exit status of a malformed command line (docs/reference/command-line.md#exit-status).
const MISUSE: u8 = 2;

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
    /// Migrate the database to the version of this build.
    Migrate,
    /// Check the configuration of all processes. Starts nothing.
    CheckConfig,
    /// Administer accounts, tokens, sessions, credits, canvases, assets, jobs, connections, Recipes, keys and webhooks.
    #[command(subcommand)]
    Admin(admin::Admin),
}

/// The whole process. Its futures run here and not in the binary: the crate that runs a future generates its code, so the binary
/// would compile the whole process a second time.
pub fn main() -> ExitCode {
    let CommandLine { command } = match parsed(std::env::args_os()) {
        Ok(line) => line,
        Err(error) if error.use_stderr() => {
            eprintln!("canvas-gateway: {}", in_a_line(&error));
            return ExitCode::from(MISUSE);
        }
        // The user asked for help or the version, which is not an error.
        Err(error) => error.exit(),
    };
    let part = match command {
        Command::CheckConfig => return check_config::run(),
        Command::Serve => Part::Gateway,
        Command::Migrate => Part::Migrate,
        Command::Admin(_) => Part::Admin,
    };
    let config = match Config::from_env(&[part]) {
        Ok(config) => config,
        Err(errors) => {
            // One line; `check-config` lists all errors.
            errors.first().inspect(|error| eprintln!("canvas-gateway: {error}"));
            return ExitCode::FAILURE;
        }
    };
    service::lifecycle::block_on(|| async move {
        match command {
            Command::CheckConfig => check_config::run(),
            Command::Serve => boot::serve(config).await,
            Command::Migrate => boot::migrate(&config).await,
            Command::Admin(command) => admin::run(command, &config).await,
        }
    })
}

/// Parses the command line. The value of an option may begin with a hyphen: the grammar accepts it, and the rules for the value
/// decide (docs/reference/command-line.md#exit-status).
fn parsed<A: Into<OsString> + Clone>(arguments: impl IntoIterator<Item = A>) -> Result<CommandLine, clap::Error> {
    fn with_any_value(command: clap::Command) -> clap::Command {
        let of_option = |arg: clap::Arg| {
            let takes_value = arg.get_long().is_some() && arg.get_action().takes_values();
            if takes_value { arg.allow_hyphen_values(true) } else { arg }
        };
        command.mut_args(of_option).mut_subcommands(with_any_value)
    }
    let mut command = with_any_value(CommandLine::command());
    let matches = command.try_get_matches_from_mut(arguments)?;
    CommandLine::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// The error of a malformed command line, in one line.
fn in_a_line(error: &clap::Error) -> String {
    let reported = error.to_string();
    let of_words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    match reported.strip_prefix("error: ") {
        // The first paragraph is the error; hints and usage follow.
        Some(reported) => of_words(reported.split("\n\n").next().unwrap_or(reported)),
        None => "a command is missing; --help lists the commands".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misuse_is_reported_in_one_line() {
        let reported = |arguments: &[&str]| {
            let line = parsed([&["canvas-gateway"], arguments].concat());
            in_a_line(&line.err().expect("is misuse"))
        };
        assert_eq!(reported(&[]), "a command is missing; --help lists the commands");
        assert_eq!(reported(&["admin", "account"]), "a command is missing; --help lists the commands");
        assert_eq!(reported(&["serve", "--now"]), "unexpected argument '--now' found");
        let lacking = reported(&["admin", "share"]);
        assert!(lacking.starts_with("the following required arguments were not provided: --"), "{lacking}");
        assert!(!lacking.contains('\n') && !lacking.contains("Usage"), "{lacking}");
        let lacking = reported(&["admin", "token", "create", "--account", "a", "--scopes", "all", "--label"]);
        assert!(lacking.starts_with("a value is required for '--label"), "{lacking}");
    }

    #[test]
    fn the_value_of_an_option_may_begin_with_a_hyphen() {
        let line =
            ["canvas-gateway", "admin", "token", "create", "--account", "-a", "--label", "-x", "--scopes", "all"];
        assert!(matches!(parsed(line), Ok(CommandLine { command: Command::Admin(_) })));
        let line = ["canvas-gateway", "admin", "credits", "grant", "--account", "a", "--amount", "-5"];
        assert!(parsed(line).is_ok());
        let line = ["canvas-gateway", "admin", "token", "revoke", "--now"];
        assert!(parsed(line).is_err(), "an unexpected option is not the value of another one");
    }
}
