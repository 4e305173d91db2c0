//! Holds the reference of the commands (docs/reference/canvas.md) equal to what the program takes, and each command to what all
//! commands have in common. `UPDATE_REFERENCE=1` rewrites the reference.

use clap::{Arg, ArgAction, Command};

use crate::args;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/canvas.md");
const BEGIN: &str = "<!-- Generated from the program: UPDATE_REFERENCE=1 cargo test -p canvas-cli -->\n";

/// Every command without subcommands, by its whole name.
fn leaves(command: &Command, name: &str) -> Vec<(String, Command)> {
    let inner = command.get_subcommands().filter(|it| it.get_name() != "help");
    let found: Vec<_> = inner.flat_map(|it| leaves(it, &format!("{name} {}", it.get_name()))).collect();
    if found.is_empty() { vec![(name.to_owned(), command.clone())] } else { found }
}

fn commands() -> Vec<(String, Command)> {
    let mut command = args::command();
    command.build();
    leaves(&command, "canvas")
}

fn shown(arg: &Arg) -> String {
    let value =
        arg.get_value_names().into_iter().flatten().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" ");
    let takes = arg.get_action().takes_values();
    let names = [arg.get_short().map(|short| format!("-{short}")), arg.get_long().map(|long| format!("--{long}"))];
    let names = names.into_iter().flatten().collect::<Vec<_>>().join(", ");
    match (names.is_empty(), takes) {
        (true, _) => format!("`{value}`"),
        (false, true) => format!("`{names} {value}`"),
        (false, false) => format!("`{names}`"),
    }
}

/// Returns `true` if an argument asks for help or for the program's version.
fn is_about_itself(arg: &Arg) -> bool {
    use ArgAction::{Help, HelpLong, HelpShort, Version};
    matches!(arg.get_action(), Help | HelpLong | HelpShort | Version)
}

fn section(name: &str, command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").split_whitespace().collect::<Vec<_>>().join(" ");
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let own = command.get_arguments().filter(|arg| !arg.is_global_set() && !is_about_itself(arg));
    let rows: Vec<String> = own
        .map(|arg| {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let default: Vec<String> =
                arg.get_default_values().iter().map(|it| format!("`{}`", it.to_string_lossy())).collect();
            let default = if arg.get_action().takes_values() && !default.is_empty() {
                format!(" (default {})", default.join(" "))
            } else {
                String::new()
            };
            let values: Vec<String> =
                arg.get_possible_values().iter().map(|it| format!("`{}`", it.get_name())).collect();
            let values = match values.is_empty() || !arg.get_action().takes_values() {
                true => String::new(),
                false => format!(": {}", values.join(", ")),
            };
            format!("| {} | {help}{values}{default} |\n", shown(arg).replace('|', "\\|"))
        })
        .collect();
    let table = if rows.is_empty() {
        String::new()
    } else {
        format!("\n| Argument | Meaning |\n| --- | --- |\n{}", rows.concat())
    };
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let examples = examples.lines().skip(1).map(str::trim_start).collect::<Vec<_>>().join("\n");
    format!("### {name}\n\n{about}.\n\n```text\n{usage}\n```\n{table}\n```text\n{examples}\n```\n")
}

#[test]
fn the_reference_names_every_command_and_argument() {
    let sections: Vec<String> = commands().iter().map(|(name, command)| section(name, command)).collect();
    let generated = format!("{BEGIN}\n{}", sections.join("\n"));
    let text = std::fs::read_to_string(PATH).expect("docs/reference/canvas.md");
    let (written, found) = text.split_at(text.find(BEGIN).expect("the mark of the generated part"));
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(PATH, format!("{written}{generated}")).expect("writes the reference");
    } else {
        assert!(found == generated, "docs/reference/canvas.md differs: UPDATE_REFERENCE=1 cargo test -p canvas-cli");
    }
}

#[test]
fn the_reference_names_the_version_of_a_recipe() {
    for wanted in ["canvas recipe show", "canvas recipe run", "canvas recipe fork"] {
        let commands = commands();
        let (name, command) = commands.iter().find(|(name, _)| name == wanted).expect("a command");
        assert!(section(name, command).contains("| `--version <VERSION>` |"), "{name}");
    }
}

#[test]
fn every_command_takes_json_and_says_what_it_does() {
    for (name, command) in commands() {
        assert!(command.get_arguments().any(|arg| arg.get_long() == Some("json")), "{name}");
        assert!(command.get_about().is_some(), "{name}");
        assert!(command.get_after_help().is_some(), "{name} has no example");
        for arg in command.get_arguments() {
            assert!(arg.get_help().is_some(), "{name}: {}", arg.get_id());
        }
    }
}

#[test]
fn no_argument_is_in_doubt() {
    args::command().debug_assert();
}
