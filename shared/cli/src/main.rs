//! `canvas`: the command line of Canvas Service. Reference: docs/reference/canvas.md.

mod args;
mod commands;
mod context;
mod failure;
mod journal;
mod output;
mod profile;
#[cfg(test)]
mod reference;
mod terminal;

use clap::CommandFactory;

use args::{Arguments, Command};
use context::Context;
use failure::{Failure, Outcome, file, usage};

/// What a shell reports for a program that an interrupt ended.
const INTERRUPTED: u8 = 130;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (outcome, as_json) = match Arguments::read() {
        Ok(arguments) => {
            let as_json = arguments.global.json;
            (run(arguments).await, as_json)
        }
        // Without arguments that are understood, the option is looked for as it was typed. Help is no error.
        Err(error) if error.use_stderr() && std::env::args_os().any(|it| it == "--json") => {
            (usage(error.to_string().trim_start_matches("error: ").trim_end()), true)
        }
        Err(error) => error.exit(),
    };
    let status = outcome.unwrap_or_else(|failure| {
        failure.report(as_json);
        failure.status()
    });
    // A return would drop the runtime, which waits for a thread that reads standard input until something is typed.
    std::process::exit(status.into())
}

async fn run(arguments: Arguments) -> Outcome<u8> {
    let Arguments { global, command } = arguments;
    let context = match command {
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "canvas", &mut script);
            output::put(&script);
            return Ok(0);
        }
        Command::Man { directory } => return manual(directory.as_deref()).map(|()| 0),
        Command::Login(login) => return commands::account::login(&global, &login).await.map(|()| 0),
        Command::Logout => return commands::account::logout(&global).map(|()| 0),
        Command::Profile(profile) => return commands::account::profile(&global, &profile).map(|()| 0),
        _ => Context::new(&global)?,
    };
    tokio::select! {
        outcome = commands::run(&context, command) => outcome.map(|()| 0),
        _ = tokio::signal::ctrl_c() => {
            let farewell = context.farewell.lock().ok().and_then(|mut farewell| farewell.take());
            if let Some(farewell) = farewell {
                eprintln!("{farewell}");
            }
            Ok(INTERRUPTED)
        }
    }
}

/// Writes the manual pages of all commands to a directory, or that of `canvas` to standard output.
fn manual(directory: Option<&std::path::Path>) -> Outcome {
    let command = Arguments::command();
    let Some(directory) = directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).map_err(|error| Failure::Usage(error.to_string()))?;
        output::put(&page);
        return Ok(());
    };
    let write = || {
        std::fs::create_dir_all(directory)?;
        clap_mangen::generate_to(command, directory)
    };
    write().map_err(|error| file(directory, &error))
}
