//! The skills for agents. These commands need no service.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use tools::skills;

use crate::args::{Global, Skills};
use crate::failure::{Outcome, file};
use crate::output::{Output, text};

pub fn run(global: &Global, Skills::Install { directory }: &Skills) -> Outcome {
    let mut paths: Vec<PathBuf> = Vec::new();
    for skill in skills::all() {
        let folder = directory.join(skill.name);
        fs::create_dir_all(&folder).map_err(|error| file(&folder, &error))?;
        let path = folder.join("SKILL.md");
        fs::write(&path, skill.text).map_err(|error| file(&path, &error))?;
        paths.push(path);
    }
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    Output::new(global.json, global.quiet)
        .value(&json!({"skills": names}), || names.iter().map(text).collect::<Vec<_>>().join("\n"));
    Ok(())
}
