//! Examples of every command, for its help and the reference.

use clap::Command;

/// The lines of examples by the name of the command.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "login",
        &[
            "canvas login --base-url https://canvas.example.com",
            "canvas login --device",
            "canvas login --token-stdin <token.txt",
        ],
    ),
    ("logout", &["canvas logout"]),
    ("whoami", &["canvas whoami", "canvas whoami --json | jq .creditBalance"]),
    ("profile list", &["canvas profile list"]),
    ("profile use", &["canvas profile use staging"]),
    ("doctor", &["canvas doctor"]),
    ("list", &["canvas list", "canvas list --all -q"]),
    ("new", &["canvas new \"Autumn drop\"", "canvas use \"$(canvas new Moodboard)\""]),
    ("rename", &["canvas rename Moodboard \"Autumn drop\""]),
    ("find", &["canvas find mug", "canvas find mug --json"]),
    ("export", &["canvas export Moodboard -o backup"]),
    ("credits", &["canvas credits"]),
    ("connection list", &["canvas connection list"]),
    ("use", &["canvas use Moodboard", "canvas use --none"]),
    ("open", &["canvas open Moodboard"]),
    ("show", &["canvas show Moodboard", "canvas show -q | canvas asset get - -o pictures/"]),
    ("view", &["canvas view Moodboard", "canvas view --section Hero --labels -o hero.png"]),
    ("apply", &["canvas apply batch.json --on Moodboard --dry-run", "canvas apply --example node.create >batch.json"]),
    (
        "node add",
        &[
            "canvas node add text --title Brief --text \"A mug at dawn\"",
            "canvas node add image --asset photo.jpg --near Brief",
        ],
    ),
    ("node set", &["canvas node set n12 --title Hero", "canvas node set Brief --text - <brief.txt"]),
    ("node move", &["canvas node move n12 400 -80"]),
    ("node rm", &["canvas node rm n12 \"Old brief\""]),
    ("connect", &["canvas connect Brief Hero", "canvas connect n3 n12 --purpose reference --role identity"]),
    ("disconnect", &["canvas disconnect c7"]),
    ("watch", &["canvas watch Moodboard", "canvas watch --timeout 600 --json"]),
    ("review", &["canvas review Moodboard && echo done"]),
    ("asset put", &["canvas asset put *.jpg --on Moodboard", "canvas asset put -r cover.jpg shoot --on Moodboard"]),
    ("asset get", &["canvas asset get Hero n12 -o pictures/", "canvas asset get n12 --width 512 -o - >small.png"]),
    ("asset show", &["canvas asset show Hero"]),
    ("asset list", &["canvas asset list --kind all --sort size", "canvas asset list -s mug -q"]),
    ("action list", &["canvas action list", "canvas action list --medium video"]),
    ("action show", &["canvas action show resize"]),
    (
        "action run",
        &[
            "canvas action run resize photo.jpg -p width=1080 -o small.jpg",
            "canvas action run overlay-image Hero --with logo.png",
            "canvas show -q | canvas action run rotate - -p degrees=90",
        ],
    ),
    (
        "generate",
        &[
            "canvas generate --prompt \"a mug at dawn\" -n 4 --max-credits 8",
            "canvas generate --prompt - -r photo.jpg=identity -o mugs/ <prompt.txt",
        ],
    ),
    ("edit", &["canvas edit --prompt \"make it blue\" --source Hero --mask mask.png --yes"]),
    ("vary", &["canvas vary Hero -n 2 --dry-run"]),
    ("video", &["canvas video --prompt \"a walk\" -m animatic --first-frame Hero --max-credits 90 -o walk.mp4"]),
    ("recipe list", &["canvas recipe list"]),
    ("recipe show", &["canvas recipe show storyboard"]),
    ("recipe run", &["canvas recipe run storyboard -i brief=- --max-credits 20 <brief.txt"]),
    ("recipe fork", &["canvas recipe fork storyboard --on Moodboard"]),
    ("model list", &["canvas model list", "canvas model list -s sketch"]),
    ("model show", &["canvas model show sketch"]),
    ("run list", &["canvas run list --status running", "canvas run list --on Moodboard -q"]),
    ("run show", &["canvas run show \"a mug at\""]),
    ("run wait", &["canvas generate --prompt fog --yes --no-wait | canvas run wait - -o fog.png"]),
    ("run cancel", &["canvas run cancel \"a mug at\"", "canvas run list --status queued -q | canvas run cancel -"]),
    ("run keep", &["canvas run keep \"a walk\" --on Moodboard"]),
    ("run output", &["canvas run output \"a walk\" -o walk.mp4"]),
    ("webhook list", &["canvas webhook list --status failed"]),
    (
        "webhook replay",
        &[
            "canvas webhook replay --since 2026-01-02T03:04:05Z",
            "canvas webhook list --status failed -q | canvas webhook replay -",
        ],
    ),
    (
        "webhook trigger",
        &["canvas webhook trigger \"a mug at\" --forward-to http://127.0.0.1:3000/hooks --secret \"$SECRET\""],
    ),
    ("element list", &["canvas element list --state archived"]),
    ("element show", &["canvas element show Mug"]),
    ("element versions", &["canvas element versions Mug"]),
    ("element create", &["canvas element create Mug --type product/object --source mug.jpg"]),
    ("element update", &["canvas element update Mug --guidelines \"always with its handle\""]),
    ("element archive", &["canvas element archive Mug"]),
    ("element restore", &["canvas element restore Mug"]),
    ("collection list", &["canvas collection list"]),
    ("collection create", &["canvas collection create Mugs"]),
    ("collection rename", &["canvas collection rename Mugs Cups"]),
    ("collection delete", &["canvas collection delete Cups"]),
    ("import image", &["canvas import image https://example.com/mug.jpg --title Mug"]),
    ("import product", &["canvas import product https://example.com/mugs/blue --variant color=blue"]),
    ("api", &["canvas api GET /auth/status", "canvas api POST /canvases -d '{\"title\": \"Moodboard\"}'"]),
    ("listen", &["canvas listen --forward-to http://127.0.0.1:3000/hooks"]),
    ("mcp", &["canvas mcp --root pictures"]),
    ("skills install", &["canvas skills install .claude/skills"]),
    ("completions", &["canvas completions bash >~/.local/share/bash-completion/completions/canvas"]),
    ("man", &["canvas man ~/.local/share/man/man1"]),
];

/// A command with the examples of its subcommands.
pub fn with_examples(command: Command) -> Command {
    add(command, "")
}

fn add(command: Command, name: &str) -> Command {
    let subcommands: Vec<String> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    let lines = EXAMPLES.iter().find(|(of, _)| *of == name).map(|(_, lines)| lines.join("\n  "));
    let command = match lines {
        Some(lines) => command.after_help(format!("Examples:\n  {lines}")),
        None => command,
    };
    subcommands.into_iter().fold(command, |command, subcommand| {
        let inner = format!("{name} {subcommand}").trim_start().to_owned();
        command.mut_subcommand(subcommand, |it| add(it, &inner))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::command;

    /// The words of a line of a shell, up to a redirection.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut quote) = (vec![String::new()], None);
        for c in line.chars() {
            match quote {
                Some(end) if c == end => quote = None,
                None if c == '"' || c == '\'' => quote = Some(c),
                None if c == ' ' => words.push(String::new()),
                _ => words.last_mut().expect("a word").push(c),
            }
        }
        words.retain(|word| !word.is_empty() && !word.starts_with(['<', '>']));
        words
    }

    #[test]
    fn every_example_is_a_command_that_is_understood() {
        for (name, lines) in EXAMPLES {
            let own = format!("canvas {name}");
            assert!(lines.iter().all(|line| line.contains(&own)), "{name}");
            for part in lines.iter().flat_map(|line| line.split(['|', '&'])).map(str::trim) {
                if part.starts_with("canvas ")
                    && let Err(error) = command().try_get_matches_from(words(part))
                {
                    panic!("{part}: {error}");
                }
            }
        }
    }
}
