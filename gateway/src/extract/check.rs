//! Rules of a request that no schema can express (docs/reference/conventions.md#all-violations-at-once).
//!
//! They judge a body of the right shape, and all violations of them are reported together.

use std::fmt::Display;

use domain::Violation;

/// The violations that a check has found so far.
#[derive(Debug, Default)]
pub struct Check {
    violations: Vec<Violation>,
}

impl Check {
    /// Adds a violation.
    pub fn note(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.violations.push(Violation::new(field, message));
    }

    /// Adds a violation where `is_wrong`.
    pub fn note_if(&mut self, is_wrong: bool, field: impl Into<String>, message: impl Into<String>) {
        if is_wrong {
            self.note(field, message);
        }
    }

    /// Fields of which at most one may be sent, or, where one is `needed`, exactly one; each with whether it is present.
    pub fn at_most_one(&mut self, fields: &[(&str, bool)], needed: bool) {
        let present: Vec<&str> = fields.iter().filter(|(_, is_present)| *is_present).map(|(field, _)| *field).collect();
        let names: Vec<&str> = fields.iter().map(|(field, _)| *field).collect();
        let (noted, message) = match present.len() {
            0 if needed => (&names, "one of them is required"),
            2.. => (&present, "only one of them may be sent"),
            _ => return,
        };
        for field in noted {
            self.note(*field, format!("{}: {message}", names.join(" or ")));
        }
    }

    /// Adds several violations.
    pub fn extend(&mut self, violations: impl IntoIterator<Item = Violation>) {
        self.violations.extend(violations);
    }

    /// A parsed value; an error is the violation of `field`.
    pub fn parsed<T, E: Display>(&mut self, field: impl Into<String>, parsed: Result<T, E>) -> Option<T> {
        parsed.map_err(|error| self.note(field, error.to_string())).ok()
    }

    /// The violations, or, without any, the request. `make` returns `None` only when a value could not be parsed, which is a violation.
    pub fn finish<T>(self, make: impl FnOnce() -> Option<T>) -> Result<T, Vec<Violation>> {
        if self.violations.is_empty() { make().ok_or_else(Vec::new) } else { Err(self.violations) }
    }
}
