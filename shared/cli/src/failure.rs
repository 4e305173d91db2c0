//! The failures of commands, and their exit statuses (decisions of the command line: docs/reference/canvas.md#exit-status).

use std::io::{self, Write};
use std::path::Path;

use client::Problem;
use domain::Violation;
use domain::violation::Rule;
use serde_json::{Value, json};

use crate::args;
use crate::output::{joined, plain};

pub type Outcome<T = ()> = Result<T, Failure>;

/// The failure of a command.
#[derive(Debug)]
pub enum Failure {
    /// The service refused a request, or did not answer.
    Service(client::Error),
    /// The work failed or was canceled, or the review says no. The details are on standard output.
    Work,
    /// A queue has no worker. The details are on standard output.
    Silent(String),
    /// The command cannot be carried out as it was given.
    Usage(String),
    /// Standard output cannot be written.
    Unwritten(String),
    /// There is no token to send.
    NoToken(String),
    /// The service has nothing of this name.
    NotFound(String),
    /// The service has several things of this name.
    Ambiguous(String),
    /// The work is still running at the timeout: how to wait for it again.
    Running(String),
    /// The program at the other end of standard input and output is gone.
    Disconnected(String),
    /// The command was interrupted: what to do about work that goes on.
    Interrupted(Option<String>),
}

impl From<client::Error> for Failure {
    fn from(error: client::Error) -> Self {
        Failure::Service(error)
    }
}

/// A file that cannot be read or written.
pub fn file(path: &Path, error: &io::Error) -> Failure {
    Failure::Usage(format!("{}: {error}", path.display()))
}

pub fn usage<T>(message: impl Into<String>) -> Outcome<T> {
    Err(Failure::Usage(message.into()))
}

pub fn no_token<T>(message: impl Into<String>) -> Outcome<T> {
    Err(Failure::NoToken(message.into()))
}

pub fn not_found<T>(message: impl Into<String>) -> Outcome<T> {
    Err(Failure::NotFound(message.into()))
}

/// The outcome of two pieces of work: the first failure, which decides the exit status and is reported at the end. The second one is
/// reported at once.
pub fn both(first: Outcome, second: Outcome, as_json: bool) -> Outcome {
    match (first, second) {
        (Err(first), Err(second)) => {
            second.report(as_json);
            Err(first)
        }
        (first, second) => first.and(second),
    }
}

impl Failure {
    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Failure::Work | Failure::Silent(_) | Failure::Unwritten(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Ambiguous(_) => 3,
            Failure::NoToken(_) => 4,
            Failure::NotFound(_) => 5,
            Failure::Running(_) => 9,
            // A shell reports this status for a program that an interrupt ended.
            Failure::Interrupted(_) => 130,
            Failure::Service(client::Error::Refused(problem)) => match problem.status.as_u16() {
                401 | 403 => 4,
                404 => 5,
                409 => 6,
                402 => 7,
                429 | 500.. => 8,
                _ => 3,
            },
            Failure::Service(_) | Failure::Disconnected(_) => 8,
        }
    }

    /// What failed, without what to do.
    pub fn message(&self) -> String {
        match self {
            Failure::Service(error) => error.to_string(),
            Failure::Usage(text)
            | Failure::Unwritten(text)
            | Failure::NoToken(text)
            | Failure::NotFound(text)
            | Failure::Ambiguous(text)
            | Failure::Running(text)
            | Failure::Silent(text)
            | Failure::Disconnected(text) => text.clone(),
            Failure::Work | Failure::Interrupted(_) => String::new(),
        }
    }

    /// Says on standard error what failed and what to do. As JSON, it is the envelope of the service with its request id.
    pub fn report(&self, as_json: bool) {
        let mut stderr = io::stderr().lock();
        let text = if as_json { self.envelope().map(|envelope| envelope.to_string()) } else { self.text() };
        if let Some(text) = text {
            // A report that cannot be written is lost: there is nowhere else to write it.
            let _ = writeln!(stderr, "{text}");
        }
    }

    fn envelope(&self) -> Option<Value> {
        let local = |code: &str, message: &str| Some(json!({"error": {"code": code, "message": message}}));
        match self {
            Failure::Work | Failure::Silent(_) => None,
            Failure::Usage(message) => local("usage", message),
            Failure::Unwritten(message) => local("unwritten", message),
            Failure::NoToken(message) => local("unauthorized", message),
            Failure::NotFound(message) => local("not_found", message),
            Failure::Ambiguous(message) => local("ambiguous", message),
            Failure::Running(message) => local("still_running", message),
            Failure::Disconnected(message) => local("unreachable", message),
            Failure::Interrupted(message) => local("interrupted", message.as_deref().unwrap_or("interrupted")),
            Failure::Service(client::Error::Refused(problem)) if problem.envelope["error"].is_object() => {
                let mut envelope = problem.envelope.clone();
                envelope["error"]["requestId"] = json!(problem.request_id);
                Some(envelope)
            }
            Failure::Service(client::Error::Refused(problem)) => local(&problem.code, &problem.message),
            Failure::Service(error) => local("unreachable", &error.to_string()),
        }
    }

    fn text(&self) -> Option<String> {
        match self {
            Failure::Work | Failure::Silent(_) => None,
            Failure::Usage(message)
            | Failure::Unwritten(message)
            | Failure::NoToken(message)
            | Failure::NotFound(message)
            | Failure::Ambiguous(message)
            | Failure::Running(message)
            | Failure::Disconnected(message) => Some(format!("canvas: {message}")),
            Failure::Interrupted(message) => message.clone(),
            Failure::Service(client::Error::Refused(problem)) => Some(refusal(problem)),
            Failure::Service(error) => Some(format!("canvas: {error}")),
        }
    }
}

/// Options that are named otherwise than the field that they set.
const OPTIONS: &[(&str, &str)] = &[
    ("canvasId", "--on"),
    ("durationSeconds", "--seconds"),
    ("generateAudio", "--audio"),
    ("promptNodeId", "--prompt-node"),
    ("q", "--search"),
    ("references", "--reference"),
    ("elements", "--element"),
    ("targetNodeId", "--target"),
    ("targetNodeIds", "--target"),
    ("params", "--param"),
    ("sectionId", "--section"),
    ("sourceAssetIds", "--source"),
    ("collectionIds", "--collection"),
    ("variantSelector", "--variant"),
    ("w", "--width"),
];

/// A field of a request with the option that sets it, if there is one.
fn field_in_words(field: &str) -> String {
    let mut parts = field.split(['.', '[']);
    let first = parts.next().unwrap_or_default();
    let renamed = OPTIONS.iter().find(|(name, _)| *name == first).map(|(_, option)| (*option).to_owned());
    let option = renamed.or_else(|| {
        let separate =
            |c: char| if c.is_ascii_uppercase() { format!("-{}", c.to_ascii_lowercase()) } else { c.to_string() };
        let name: String = first.chars().map(separate).collect();
        has_option(&args::command(), &name).then(|| format!("--{name}"))
    });
    match (option, first, parts.next()) {
        (Some(option), "params", Some(parameter)) => format!("{option} {}", plain(parameter)),
        (Some(option), ..) if option.trim_start_matches('-') == field => option,
        (Some(option), ..) => format!("{option} ({})", plain(field)),
        (None, ..) => plain(field),
    }
}

/// Returns `true` if a command or one of its subcommands has this long option.
fn has_option(command: &clap::Command, name: &str) -> bool {
    command.get_arguments().any(|it| it.get_long() == Some(name))
        || command.get_subcommands().any(|it| has_option(it, name))
}

/// A violation in the words of the command line, without the pattern of a value.
fn violation(it: &Violation) -> String {
    let message = match it.rule() {
        Some(Rule::Pattern(_)) => "does not have the form of such a value".to_owned(),
        _ => plain(&it.message),
    };
    format!("{}: {message}", field_in_words(&it.field))
}

fn refusal(problem: &Problem) -> String {
    let mut lines = match problem.fields.as_slice() {
        [one] => vec![format!("canvas: {}", violation(one))],
        several => {
            let head = format!("canvas: {}", plain(&problem.message));
            std::iter::once(head).chain(several.iter().map(|it| format!("  {}", violation(it)))).collect()
        }
    };
    let details = &problem.details;
    lines.extend(details.more.map(|more| format!("  and {more} more")));
    lines.extend(details.findings.iter().flatten().map(|finding| format!("  {}", plain(&finding.message))));
    if let Some(changed) = details.changed_node_ids.as_ref().filter(|changed| !changed.is_empty()) {
        lines.push(format!("  changed by others: {}", joined(changed, ", ")));
    }
    let advice = match problem.code.as_str() {
        "unauthorized" => Some("run `canvas login`, or make a token in the console (Settings, Tokens)"),
        "conflict" if details.current_revision.is_some() => {
            Some("the canvas has changed: look at it again, or repeat with --rebase")
        }
        "payment_required" => Some("`canvas whoami` shows the balance and the budgets, `canvas model list` the prices"),
        _ => None,
    };
    lines.extend(advice.map(|advice| format!("hint: {advice}")));
    lines.extend(problem.request_id.as_ref().map(|id| format!("request {id}")));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16) -> Failure {
        Failure::Service(client::Error::Refused(Box::new(Problem {
            status: http::StatusCode::from_u16(status).expect("a status"),
            code: "code".into(),
            message: "message".into(),
            fields: Vec::new(),
            details: domain::problem::ErrorDetails::default(),
            request_id: None,
            retry_after: None,
            time: chrono::DateTime::UNIX_EPOCH.into(),
            envelope: Value::Null,
        })))
    }

    #[test]
    fn violations_that_are_not_listed_are_counted() {
        let Failure::Service(client::Error::Refused(mut problem)) = refused(400) else { unreachable!() };
        let violation = |field: &str| domain::Violation::new(field, "is required");
        problem.fields = vec![violation("a"), violation("b")];
        assert_eq!(refusal(&problem), "canvas: message\n  a: is required\n  b: is required");
        problem.details.more = Some(7);
        assert_eq!(refusal(&problem), "canvas: message\n  a: is required\n  b: is required\n  and 7 more");
    }

    #[test]
    fn violations_are_in_the_words_of_the_command_line() {
        for (field, message, expected) in [
            ("canvasId", "must match ^canvas:[a-z]+$", "--on (canvasId): does not have the form of such a value"),
            ("limit", "must be at most 25", "--limit: must be at most 25"),
            ("maxCredits", "must be at least 0", "--max-credits (maxCredits): must be at least 0"),
            ("params.width", "must be at least 1", "--param width: must be at least 1"),
            ("operations[0].nodeId", "is required", "operations[0].nodeId: is required"),
        ] {
            assert_eq!(violation(&Violation::new(field, message)), expected);
        }
    }

    #[test]
    fn each_status_of_the_service_has_an_exit_status() {
        let expected = [
            (400, 3),
            (401, 4),
            (402, 7),
            (403, 4),
            (404, 5),
            (405, 3),
            (406, 3),
            (409, 6),
            (410, 3),
            (413, 3),
            (415, 3),
            (422, 3),
            (429, 8),
            (500, 8),
            (502, 8),
            (503, 8),
            (504, 8),
        ];
        for (status, exit) in expected {
            assert_eq!(refused(status).status(), exit, "{status}");
        }
    }
}
