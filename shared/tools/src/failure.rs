//! Failures of tools, with the next steps of the caller.

use client::{Error, Problem};
use domain::problem::ErrorDetails;
use domain::review::{Finding, Severity};
use domain::{Timestamp, Violation};
use http::StatusCode;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::{Value, json};

use crate::answer::{Next, cut};
use crate::fields::merged;

/// Seconds after which a failure of the service may have passed, when it does not say so itself.
const PAUSE_SECONDS: u64 = 5;
/// A caller is told to wait for the next period of a budget when it begins within an hour.
const RESET_SECONDS_MAX: u64 = 3600;
/// Maximum number of findings in an answer.
const FINDINGS_MAX: usize = 20;

/// Advice on a repetition of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "when", rename_all = "snake_case")]
pub enum Retry {
    /// It will fail again.
    Never,
    /// The same call may succeed, and takes effect once.
    SameCall,
    /// The same call may succeed after some seconds, and takes effect once.
    After { seconds: u64 },
    /// Another call may succeed.
    WithChanges,
}

/// The failure of a tool.
#[derive(Debug)]
pub struct Failure {
    pub code: String,
    pub message: String,
    pub fields: Vec<Violation>,
    pub details: Value,
    /// The details of a refusal by the service.
    pub refusal: ErrorDetails,
    pub request_id: Option<String>,
    pub next: Vec<Next>,
    pub retry: Retry,
}

impl Failure {
    /// A call that has to be made differently.
    pub fn invalid(fields: Vec<Violation>) -> Self {
        Self { fields, ..Self::new("input_validation_error", "invalid arguments", Retry::WithChanges) }
    }

    /// One argument that has to be different.
    pub fn argument(field: &str, message: impl Into<String>) -> Self {
        Self::invalid(vec![Violation { field: field.to_owned(), message: message.into() }])
    }

    pub fn new(code: &str, message: impl Into<String>, retry: Retry) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            fields: Vec::new(),
            details: Value::Null,
            refusal: ErrorDetails::default(),
            request_id: None,
            next: Vec::new(),
            retry,
        }
    }

    /// Adds a step that may come next.
    pub fn then(mut self, next: Next) -> Self {
        self.next.push(next);
        self
    }

    /// Adds a member to the details.
    pub fn with_detail(mut self, name: &str, value: Value) -> Self {
        self.set_detail(name, value);
        self
    }

    /// Sets a member of the details.
    pub fn set_detail(&mut self, name: &str, value: Value) {
        if !self.details.is_object() {
            self.details = json!({});
        }
        self.details[name] = value;
    }

    /// If the failure leaves the outcome unknown, adds the effect of a repetition. A call that `repeats`, as one with a key does, has
    /// no further effect; another call may take effect a second time.
    pub fn with_repetition(mut self, repeats: bool) -> Self {
        match self.retry {
            Retry::SameCall if repeats => self.message += "; the same call is safe, it takes effect once",
            Retry::SameCall | Retry::After { .. }
                if !repeats && !["rate_limited", "payment_required"].contains(&self.code.as_str()) =>
            {
                self.message += "; it may have taken effect: look with find before you call again";
                self.retry = Retry::WithChanges;
            }
            _ => {}
        }
        self
    }

    /// Returns `true` if a field of the request, or one below it, is wrong.
    pub fn concerns(&self, field: &str) -> bool {
        self.fields
            .iter()
            .any(|it| it.field.strip_prefix(field).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)))
    }

    fn refused(problem: Problem) -> Self {
        let after = || problem.retry_after.map_or(PAUSE_SECONDS, |pause| pause.as_secs().max(1));
        let budget = problem.details.budget.as_ref();
        let retry = match problem.status {
            StatusCode::PAYMENT_REQUIRED if budget.is_some() => {
                until_reset(budget.and_then(|budget| budget.resets_at), problem.time)
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::GONE => Retry::Never,
            StatusCode::TOO_MANY_REQUESTS => Retry::After { seconds: after() },
            status if status.is_server_error() => Retry::After { seconds: after() },
            _ => Retry::WithChanges,
        };
        let advice = match problem.status {
            StatusCode::UNAUTHORIZED => "the token is not valid: a person has to give you another one; do not retry",
            StatusCode::FORBIDDEN => "a person has to give you a token or a role that may do this; do not retry",
            StatusCode::PAYMENT_REQUIRED if budget.is_some() => {
                "a person can raise the budget in the console (Settings, Tokens or Apps), or an operator that of the account"
            }
            StatusCode::NOT_FOUND => "nothing that you can see has this name: look for it with find",
            _ => "",
        };
        let message = match advice {
            // The service names a way to override them, which is for people.
            "" if problem.details.findings.is_some() => "findings block this batch; nothing was changed".to_owned(),
            "" => problem.message,
            advice => format!("{}: {advice}", problem.message),
        };
        Self {
            code: problem.code,
            message,
            fields: problem.fields,
            details: shortened(&problem.details),
            refusal: problem.details,
            request_id: problem.request_id,
            next: Vec::new(),
            retry,
        }
    }

    /// The result of the protocol. It is text alone: it does not have the form of an answer.
    pub fn into_result(self) -> CallToolResult {
        let mut error = json!({"code": self.code, "message": self.message});
        if !self.fields.is_empty() {
            error["fields"] =
                merged(self.fields).iter().map(|it| json!({"field": it.field, "message": it.message})).collect();
        }
        if !self.details.is_null() {
            error["details"] = self.details;
        }
        if let Some(id) = self.request_id {
            error["requestId"] = id.into();
        }
        let body = json!({"error": error, "next": self.next, "retry": self.retry});
        CallToolResult::error(vec![ContentBlock::text(cut(body.to_string(), "ask for less"))])
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(problem) => Self::refused(*problem),
            Error::Unreachable(cause) => {
                Self::new("service_unavailable", format!("no answer ({cause})"), Retry::SameCall)
            }
            Error::Unexpected(what) => Self::new("request_failed", what, Retry::SameCall),
        }
    }
}

/// Advice on a call that a budget refuses: it may wait for the next period if that begins soon.
fn until_reset(resets_at: Option<Timestamp>, now: Timestamp) -> Retry {
    let seconds = resets_at.map(|reset| reset.millis_since(now).div_ceil(1000).max(1));
    match seconds.filter(|seconds| *seconds <= RESET_SECONDS_MAX) {
        Some(seconds) => Retry::After { seconds },
        None => Retry::Never,
    }
}

/// The details without what a tool does not need: the review, paths, and findings beyond the first.
fn shortened(details: &ErrorDetails) -> Value {
    if *details == ErrorDetails::default() {
        return Value::Null;
    }
    let kept = ErrorDetails { findings: None, completion_review: None, changes_url: None, ..details.clone() };
    let mut shown = json!(kept);
    if let Some(findings) = &details.findings {
        let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
        shown["findings"] = first_findings(errors);
    }
    shown
}

/// The first findings, in short.
pub fn first_findings<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Value {
    findings.into_iter().take(FINDINGS_MAX).map(finding).collect()
}

/// A finding in short.
pub fn finding(finding: &Finding) -> Value {
    let mut short = json!({"code": finding.code, "message": finding.message});
    for (name, handles, refs) in [
        ("nodes", &finding.node_handles, json!(finding.node_refs)),
        ("connections", &finding.connection_handles, json!(finding.connection_refs)),
    ] {
        if !handles.is_empty() {
            // A service without refs tells handles alone.
            let has_all = refs.as_array().is_some_and(|refs| refs.len() == handles.len());
            short[name] = if has_all { refs } else { json!(handles) };
        }
    }
    if finding.holds_claim {
        short["holdsClaim"] = json!(true);
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        serde_json::from_value(json!(text)).expect("a time")
    }

    #[test]
    fn a_call_over_a_budget_waits_for_the_next_period_when_it_begins_within_an_hour() {
        let reset = time("2026-12-01T00:00:00.000Z");
        for (now, retry) in [
            ("2026-11-30T22:59:59.999Z", Retry::Never),
            ("2026-11-30T23:00:00.000Z", Retry::After { seconds: 3600 }),
            ("2026-11-30T23:59:58.900Z", Retry::After { seconds: 2 }),
            // The clock of the service is a little ahead.
            ("2026-12-01T00:00:00.500Z", Retry::After { seconds: 1 }),
        ] {
            assert_eq!(until_reset(Some(reset), time(now)), retry, "{now}");
        }
        assert_eq!(until_reset(None, reset), Retry::Never);
    }
}
