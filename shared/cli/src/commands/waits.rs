//! Messages about work that waits (docs/reference/status.md).

use std::io::{IsTerminal, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use client::{Waiting, WorkRecord};
use domain::Timestamp;
use serde_json::json;

use crate::output::Output;

/// The time for which work waits for something other than a worker before the wait is printed. Most of these waits end sooner.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Prints on standard error what work waits for: at once if there is no worker, otherwise after [`PATIENCE`], and again when it
/// changes. Without progress (`--quiet`), it only prints the first time that there is no worker. With `--json`, it prints a
/// document on a line.
pub struct Waits<'a> {
    output: &'a Output,
    run: &'a str,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    present: Option<(Waiting, Instant)>,
    said: Option<Waiting>,
    has_said: bool,
    /// The state that was printed last, where no bar shows it.
    status: String,
}

impl<'a> Waits<'a> {
    pub fn new(output: &'a Output, run: &'a str) -> Self {
        Self { output, run, state: Mutex::default() }
    }

    /// Prints a state that has changed where no terminal shows a bar. That work is queued is no change.
    pub fn saw_status(&self, status: &str, is_queued: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut state.status, status.to_owned());
        let is_change = before != status && !(before.is_empty() && is_queued);
        if is_change && !self.output.quiet && !stderr().is_terminal() {
            match self.output.json {
                true => self.say(status),
                false => self.say(&format!("{} {status}", self.run)),
            }
        }
    }

    /// Records the present cause of the wait, and returns it.
    pub fn saw(&self, waiting: Option<Waiting>) -> Option<Waiting> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.present = waiting.clone().map(|waiting| match &state.present {
            Some((before, since)) if before.is_as(&waiting) => (waiting, *since),
            _ => (waiting, Instant::now()),
        });
        if state.present.is_none() && state.said.take().is_some() && !self.output.quiet {
            self.say("the work goes on");
        }
        drop(state);
        self.remind();
        waiting
    }

    /// Prints the cause of the wait if it is time to.
    pub fn remind(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((waiting, since)) = &state.present else { return };
        let is_due = waiting.is_for_worker() || since.elapsed() >= PATIENCE;
        let is_said = state.said.as_ref().is_some_and(|said| said.is_as(waiting));
        let is_wanted = !self.output.quiet || (waiting.is_for_worker() && !state.has_said);
        if is_due && !is_said && is_wanted {
            self.say(&format!("waiting: {waiting}"));
            state.said = Some(waiting.clone());
            state.has_said = true;
        }
    }

    fn say(&self, text: &str) {
        say(self.output, self.run, text);
    }
}

/// Prints a warning if no worker is there to do the work of a record, which was read at `at`.
pub fn warn(output: &Output, run: &str, record: &WorkRecord, at: Timestamp) {
    if let Some(waiting) = record.waiting(at).filter(Waiting::is_for_worker) {
        say(output, run, &format!("waiting: {waiting}"));
    }
}

/// Prints a line on standard error, which consists of JSON with `--json`.
pub fn say(output: &Output, run: &str, text: &str) {
    match output.json {
        true if run.is_empty() => output.error_line(json!({"note": {"message": text}})),
        true => output.error_line(json!({"note": {"run": run, "message": text}})),
        false => output.error_line(text),
    }
}
