//! `canvas skills`: the skills for agents, without a service.

use std::fs;

use e2e::Shell;
use serde_json::json;

const NAMES: [&str; 6] = ["moodboard", "product-shots", "storyboard", "tidy-and-finish", "hand-over", "deliver"];

#[tokio::test]
async fn skills_are_copied_to_a_directory_of_an_agent() {
    let shell = Shell::new();
    let paths = NAMES.map(|name| format!(".agent/skills/{name}/SKILL.md"));
    let printed = shell.run(&["skills", "install", ".agent/skills"]).await.expect(0);
    assert_eq!(printed.stdout.lines().collect::<Vec<_>>(), paths);
    for (name, path) in NAMES.iter().zip(&paths) {
        let text = fs::read_to_string(shell.home().join(path)).expect("a skill");
        assert!(text.starts_with(&format!("---\nname: {name}\ndescription: ")), "{text}");
    }
    // Those of an earlier release are replaced, and nothing else.
    shell.file(&paths[0], "old");
    shell.file(".agent/skills/own/SKILL.md", "own");
    let again = shell.run(&["skills", "install", ".agent/skills", "--json"]).await.json();
    assert_eq!(again, json!({"skills": paths}));
    let read = |path: &str| fs::read_to_string(shell.home().join(path)).expect("a skill");
    assert!(read(&paths[0]).starts_with("---\nname: moodboard\n"));
    assert_eq!(read(".agent/skills/own/SKILL.md"), "own");
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_is_named() {
    let shell = Shell::new();
    shell.file("taken", "");
    let refused = shell.run(&["skills", "install", "taken", "--json"]).await.error(2);
    assert!(refused["message"].as_str().expect("a text").contains("taken/moodboard"), "{refused}");
    shell.run(&["skills", "install"]).await.expect(2);
}
