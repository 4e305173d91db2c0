//! Errors of a provider in the terms of the contract. The mapping is described in
//! `docs/reference/providers.md#error-mapping`.

use std::time::Duration;

use domain::job::{Failure, FailureCode};
use egress::SendError;

use crate::key::ApiKey;

/// The maximum number of characters of a provider's message that are passed on.
const DETAIL_MAX: usize = 300;

/// The class of an error. Classes are finer than the failure codes, because each needs another
/// reaction of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The key is wrong, revoked, or lacks the permission.
    Authentication,
    /// The provider's account has no credit. Waiting does not help.
    OutOfCredit,
    /// Too many calls; the same call may succeed later.
    RateLimited,
    /// The provider's content rules forbid the prompt, a reference or the result.
    Content,
    /// The provider cannot do what was requested: a value, an image, or a retired model.
    Invalid,
    /// The answer did not arrive, or did not arrive in time.
    Timeout,
    /// The provider is unavailable, or its answer does not conform to its protocol.
    Unavailable,
    /// The request could not be made.
    Runtime,
}

impl Class {
    /// The failure code of an image job.
    pub const fn code(self) -> FailureCode {
        match self {
            Class::Authentication => FailureCode::ProviderAuthenticationFailed,
            Class::OutOfCredit | Class::Content | Class::Invalid => FailureCode::ProviderRejected,
            Class::RateLimited => FailureCode::ProviderRateLimited,
            Class::Timeout => FailureCode::ProviderTimeout,
            Class::Unavailable => FailureCode::ProviderUnavailable,
            Class::Runtime => FailureCode::RuntimeFailed,
        }
    }

    /// The first sentence of the failure message. For a video, only this sentence distinguishes the
    /// classes.
    const fn sentence(self) -> &'static str {
        match self {
            Class::Authentication => "The provider refused the credential",
            Class::OutOfCredit => "The provider account is out of credit",
            Class::RateLimited => "The provider limits our rate",
            Class::Content => "The provider refused the content",
            Class::Invalid => "The provider cannot do what was asked",
            Class::Timeout => "The provider did not answer in time",
            Class::Unavailable => "The provider is out of order",
            Class::Runtime => "The provider could not be asked",
        }
    }
}

/// An error. Its texts contain neither the key nor an address.
#[derive(Clone, Debug, PartialEq)]
pub struct CallError {
    pub class: Class,
    /// The provider's message in a cleaned form; empty if there was none. The
    /// [`Provider`](crate::Provider) removes the key from it and truncates it.
    pub detail: String,
    /// The HTTP status of the answer, if it was from 400 to 599.
    pub status: Option<u16>,
    /// The delay that the provider requests before a retry.
    pub retry_after: Option<Duration>,
    /// `true` if the work may have been started, so that it must not be submitted again.
    pub maybe_accepted: bool,
}

impl CallError {
    /// An error before any work was started.
    pub(crate) fn new(class: Class, detail: impl AsRef<str>) -> Self {
        Self { class, detail: clean(detail.as_ref()), status: None, retry_after: None, maybe_accepted: false }
    }

    /// Marks an error after which work may have been started.
    pub(crate) fn maybe_accepted(self) -> Self {
        Self { maybe_accepted: true, ..self }
    }

    /// The form that may be shown and logged. The `key`, which providers quote in error messages,
    /// is removed first and the text is truncated afterwards, because a truncated key is still a
    /// secret.
    pub(crate) fn shown(self, key: Option<&ApiKey>) -> Self {
        let detail = key.map_or_else(|| self.detail.clone(), |key| key.scrub(&self.detail));
        Self { detail: cut(&detail, DETAIL_MAX), ..self }
    }

    /// Returns `true` if an equal request may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.class.code().is_retryable()
    }

    /// The message for users: the class, then the provider's message.
    pub fn message(&self) -> String {
        match self.detail.as_str() {
            "" => format!("{}.", self.class.sentence()),
            detail => format!("{}: {detail}", self.class.sentence()),
        }
    }

    /// The error as the failure of a job.
    pub fn failure(&self) -> Failure {
        Failure { provider_status: self.status, ..Failure::new(self.class.code(), self.message()) }
    }
}

/// Converts a text to one line without control characters. The words are not collected first,
/// because an answer can consist of short words alone.
fn clean(text: &str) -> String {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|it| !it.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Truncates a text to `most` characters, with an ellipsis if any are missing.
fn cut(line: &str, most: usize) -> String {
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Interprets an answer that did not arrive. Acceptance is impossible only if the failure certainly
/// preceded the send.
pub(crate) fn lost(error: &SendError) -> CallError {
    match error {
        SendError::Refused(_) => CallError::new(Class::Runtime, "its address is not allowed"),
        SendError::AddressRefused => {
            CallError::new(Class::Runtime, "its name resolves to an address that is not allowed")
        }
        SendError::Dns(_) => CallError::new(Class::Unavailable, "its name does not resolve"),
        SendError::Connect(_) => CallError::new(Class::Unavailable, "it accepts no connection"),
        SendError::Tls(_) => CallError::new(Class::Unavailable, "no secure connection to it can be made"),
        SendError::Timeout => CallError::new(Class::Timeout, "").maybe_accepted(),
        SendError::Protocol(_) => {
            CallError::new(Class::Timeout, "it closed the connection without an answer").maybe_accepted()
        }
        SendError::Body(_) => CallError::new(Class::Unavailable, "its answer broke off").maybe_accepted(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_class_words_and_status() {
        let call_error = CallError { status: Some(429), ..CallError::new(Class::RateLimited, "slow\r\n down\u{0}") };
        let failure = call_error.failure();
        assert_eq!(failure.code, FailureCode::ProviderRateLimited);
        assert_eq!(failure.message, "The provider limits our rate: slow down");
        assert!(failure.retryable);
        assert_eq!(failure.provider_status, Some(429));
        assert_eq!(CallError::new(Class::Timeout, "").message(), "The provider did not answer in time.");
    }

    #[test]
    fn only_timeout_rate_limit_and_unavailable_are_retryable() {
        use Class::*;
        let all = [Authentication, OutOfCredit, RateLimited, Content, Invalid, Timeout, Unavailable, Runtime];
        let retryable = all.into_iter().filter(|class| CallError::new(*class, "").is_retryable());
        assert_eq!(retryable.collect::<Vec<_>>(), [RateLimited, Timeout, Unavailable]);
    }

    #[test]
    fn a_providers_words_are_cut_at_300_characters() {
        let shown = |letters: usize| CallError::new(Class::Invalid, "é".repeat(letters)).shown(None).detail;
        assert_eq!(shown(300), "é".repeat(300));
        assert_eq!(shown(301), format!("{}…", "é".repeat(300)));
    }

    #[test]
    fn a_key_is_taken_out_whole_wherever_the_words_are_cut() {
        // Up to the maximum length of a connection's key.
        for text in ["sk-0123456789".to_owned(), "k".repeat(4096)] {
            let key = ApiKey::new(text.clone()).unwrap();
            for before in [0, 250, 290, 299, 300, 10_000] {
                let quoted = format!("{text}{} {text} is wrong", "é".repeat(before));
                let detail = CallError::new(Class::Authentication, quoted).shown(Some(&key)).detail;
                assert!(!detail.contains(&text[..4]), "{before}: {detail}");
                assert!(detail.chars().count() <= DETAIL_MAX + 1);
            }
        }
    }
}
