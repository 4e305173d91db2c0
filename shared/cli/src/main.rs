//! `canvas`: the command line of Canvas Service. Reference: docs/reference/canvas.md.

mod args;
mod commands;
mod context;
mod failure;
mod journal;
mod names;
mod oauth;
mod output;
mod profile;
#[cfg(test)]
mod reference;
mod refreshing;
mod terminal;

use args::{Apply, Arguments, Command};
use context::Context;
use failure::{Failure, Outcome, both, file, usage};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (outcome, as_json) = match Arguments::from_env() {
        Ok(arguments) => {
            let as_json = arguments.global.json;
            (run(arguments).await, as_json)
        }
        // Help is no error.
        Err(help) if !help.use_stderr() => {
            output::note(help.print());
            (Ok(()), is_json_typed())
        }
        Err(error) if is_json_typed() => (usage(error.to_string().trim_start_matches("error: ").trim_end()), true),
        Err(error) => error.exit(),
    };
    let status = both(outcome, output::written(), as_json).map_or_else(
        |failure| {
            failure.report(as_json);
            failure.status()
        },
        |()| 0,
    );
    // A return would drop the runtime, which waits for a thread that reads standard input until something is typed.
    std::process::exit(status.into())
}

/// Returns `true` if `--json` is among the arguments as they were typed, for when they are not understood.
fn is_json_typed() -> bool {
    std::env::args_os().any(|it| it == "--json")
}

async fn run(arguments: Arguments) -> Outcome {
    let Arguments { global, command } = arguments;
    let context = match command {
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut args::command(), "canvas", &mut script);
            output::put(&script);
            return Ok(());
        }
        Command::Man { directory } => return manual(directory.as_deref()),
        Command::Apply(Apply { example: Some(kind), .. }) => {
            output::put(format!("{:#}\n", args::example(&kind)).as_bytes());
            return Ok(());
        }
        Command::Login(login) => return interruptible(commands::login::login(&global, &login)).await,
        Command::Logout => return interruptible(commands::login::logout(&global)).await,
        Command::Profile(profile) => return interruptible(commands::account::profile(&global, &profile)).await,
        Command::Skills(skills) => return commands::skills::run(&global, &skills),
        _ => Context::new(&global)?,
    };
    tokio::select! {
        outcome = commands::run(&context, command) => {
            context.ended(&outcome);
            outcome
        }
        _ = tokio::signal::ctrl_c() => {
            let message = context.interrupt_message.lock().ok().and_then(|mut message| message.take());
            Err(Failure::Interrupted(message))
        }
    }
}

/// The outcome of a command that leaves nothing behind when it is interrupted.
async fn interruptible(command: impl Future<Output = Outcome>) -> Outcome {
    tokio::select! {
        outcome = command => outcome,
        _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted(None)),
    }
}

/// Writes the manual pages of all commands to a directory, or that of `canvas` to standard output.
fn manual(directory: Option<&std::path::Path>) -> Outcome {
    let command = args::command();
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
