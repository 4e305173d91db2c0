//! `canvas-gateway check-config`: validates the environment as each process would, and reports every error.
//!
//! All four processes share one configuration. A wrong value stops each of them, and a missing one those that need it. The command
//! starts nothing, binds no address, makes no directory and connects to nothing; it reads the files that variables name.

use std::path::Path;
use std::process::ExitCode;

use egress::{AllowList, Client};
use providers::Setup;
use service::chain;
use service::config::{Config, Part};

use crate::boot::Error;
use crate::output::print_line;

/// Prints one line for each variable that is wrong, or one JSON object when none is.
pub fn run() -> ExitCode {
    let problems = problems();
    for problem in &problems {
        eprintln!("canvas-gateway: {}", problem.replace('\n', " "));
    }
    if !problems.is_empty() {
        return ExitCode::FAILURE;
    }
    print_line(serde_json::json!({ "valid": true, "unknown": Config::unknown_variables() }))
}

/// Everything that is wrong, each with the variable's name first. The variables are read one by one, since there is no
/// configuration as a whole when one of them is wrong.
fn problems() -> Vec<String> {
    let mut problems = Vec::new();
    if let Err(errors) = Config::from_env(Part::ALL) {
        problems.extend(errors.iter().map(ToString::to_string));
    }
    // What only the drivers of the services can judge, such as options in a URL.
    let [database, amqp, redis, blobs] =
        ["CANVAS_DATABASE_URL", "CANVAS_AMQP_URL", "CANVAS_REDIS_URL", "CANVAS_BLOB_URL"].map(Config::text_of);
    let mut of_drivers = Vec::new();
    if let Err(errors) = taskqueue::check_urls(&database, &amqp) {
        of_drivers.extend(errors.iter().map(|error| chain(error)));
    }
    note(&mut of_drivers, cache::Cache::check_url(&redis).map_err(Error::Cache));
    note(&mut of_drivers, blob::Store::check_url(&blobs).map_err(Error::Blobs));
    // One line for each variable: one that is malformed is no valid URL either.
    let variable = |problem: &str| problem.split(": ").next().unwrap_or_default().to_owned();
    let named: Vec<String> = problems.iter().map(|problem| variable(problem)).collect();
    problems.extend(of_drivers.into_iter().filter(|problem| !named.contains(&variable(problem))));
    let [allow, ca_file] = ["CANVAS_EGRESS_ALLOW", "CANVAS_EGRESS_CA_FILE"].map(Config::text_of);
    let [catalogue, protocol, key] =
        ["CANVAS_MODEL_CATALOGUE", "CANVAS_MANAGED_PROTOCOL", "CANVAS_MANAGED_KEY"].map(Config::text_of);
    let sound = providers::Settings { catalogue: None, url: None, protocol: "openai", key: None };
    let path = |text: &str| (!text.is_empty()).then(|| Path::new(text).to_owned());
    let (ca_file, catalogue) = (path(&ca_file), path(&catalogue));
    note(&mut problems, AllowList::parse(&allow).map_err(egress::SetupError::Allow));
    note(&mut problems, Client::load(egress::Settings { allow: "", ca_file: ca_file.as_deref() }));
    for settings in [
        providers::Settings { catalogue: catalogue.as_deref(), ..sound },
        providers::Settings { protocol: &protocol, ..sound },
        providers::Settings { key: Some(key.as_str()).filter(|key| !key.is_empty()), ..sound },
    ] {
        note(&mut problems, Setup::load(settings));
    }
    // The providers as a whole need all of the configuration; what is wrong with a single variable was noted.
    if let Ok(config) = Config::from_env(Part::ALL) {
        note(&mut problems, identity::settings::load(&config));
    }
    note(&mut problems, taskqueue::failpoint::check(&Config::text_of("CANVAS_FAILPOINTS")));
    problems
}

fn note<T, E: std::error::Error + 'static>(problems: &mut Vec<String>, checked: Result<T, E>) {
    problems.extend(checked.err().map(|error| chain(&error)));
}
