//! What went wrong with a provider, in the words of the contract (decisions 12.5).

use std::time::Duration;

use domain::job::{Failure, FailureCode};

use crate::key::ApiKey;

/// Characters of a provider's own words that are passed on.
const DETAIL_MAX: usize = 300;

/// What kind of fault it is. Finer than the failure codes, because each asks for something else of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The key is wrong, revoked, or not allowed to do this.
    Authentication,
    /// The provider's account cannot pay. Waiting does not help.
    OutOfCredit,
    /// Too many calls at once; the same one may succeed later.
    RateLimited,
    /// The provider's rules forbid the prompt, a reference or the result.
    Content,
    /// The provider cannot do what was asked: a value, a picture, or a model that is gone.
    Invalid,
    /// No answer in time, or none at all.
    Timeout,
    /// The provider is out of order, or answered what its protocol does not know.
    Unavailable,
    /// We could not ask.
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

    /// The sentence that begins the message of a failure; for a video it is what tells one class from another.
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

/// A fault. Its texts hold neither key nor address.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// What kind.
    pub class: Class,
    /// The provider's own words, cleaned; empty when it had none. Without the key, and cut, once the fault has left the
    /// [`Provider`](crate::Provider).
    pub detail: String,
    /// The provider's HTTP status, when it answered one of 400 to 599.
    pub status: Option<u16>,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
    /// Whether the work may have been begun all the same, so that it must not be submitted again.
    pub maybe_accepted: bool,
}

impl Fault {
    /// A fault before anything was begun.
    pub(crate) fn new(class: Class, detail: impl AsRef<str>) -> Self {
        Self { class, detail: clean(detail.as_ref()), status: None, retry_after: None, maybe_accepted: false }
    }

    /// A fault that leaves open whether work was begun.
    pub(crate) fn maybe_accepted(self) -> Self {
        Self { maybe_accepted: true, ..self }
    }

    /// As it may be shown and logged: without `key`, which providers quote in their refusals, and then cut, because half a key is a
    /// secret, too.
    pub(crate) fn shown(self, key: Option<&ApiKey>) -> Self {
        let detail = key.map_or_else(|| self.detail.clone(), |key| key.scrub(&self.detail));
        Self { detail: cut(&detail, DETAIL_MAX), ..self }
    }

    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.class.code().is_retryable()
    }

    /// For people: the class, then the provider's words.
    pub fn message(&self) -> String {
        match self.detail.as_str() {
            "" => format!("{}.", self.class.sentence()),
            detail => format!("{}: {detail}", self.class.sentence()),
        }
    }

    /// As a job's failure.
    pub fn failure(&self) -> Failure {
        Failure { provider_status: self.status, ..Failure::new(self.class.code(), self.message()) }
    }
}

/// One line without control characters. Its words are not collected first: an answer may be nothing but short ones.
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

/// At most so many characters, and a sign where some are missing.
fn cut(line: &str, most: usize) -> String {
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_class_words_and_status() {
        let fault = Fault { status: Some(429), ..Fault::new(Class::RateLimited, "slow\r\n down\u{0}") };
        let failure = fault.failure();
        assert_eq!(failure.code, FailureCode::ProviderRateLimited);
        assert_eq!(failure.message, "The provider limits our rate: slow down");
        assert!(failure.retryable);
        assert_eq!(failure.provider_status, Some(429));
        assert_eq!(Fault::new(Class::Timeout, "").message(), "The provider did not answer in time.");
    }

    #[test]
    fn only_timeout_rate_limit_and_unavailable_are_retryable() {
        use Class::*;
        let all = [Authentication, OutOfCredit, RateLimited, Content, Invalid, Timeout, Unavailable, Runtime];
        let retryable = all.into_iter().filter(|class| Fault::new(*class, "").is_retryable());
        assert_eq!(retryable.collect::<Vec<_>>(), [RateLimited, Timeout, Unavailable]);
    }

    #[test]
    fn a_providers_words_are_cut_at_300_characters() {
        let shown = |letters: usize| Fault::new(Class::Invalid, "é".repeat(letters)).shown(None).detail;
        assert_eq!(shown(300), "é".repeat(300));
        assert_eq!(shown(301), format!("{}…", "é".repeat(300)));
    }

    #[test]
    fn a_key_is_taken_out_whole_wherever_the_words_are_cut() {
        // The longest that a connection has.
        for text in ["sk-0123456789".to_owned(), "k".repeat(4096)] {
            let key = ApiKey::new(text.clone()).unwrap();
            for before in [0, 250, 290, 299, 300, 10_000] {
                let quoted = format!("{text}{} {text} is wrong", "é".repeat(before));
                let detail = Fault::new(Class::Authentication, quoted).shown(Some(&key)).detail;
                assert!(!detail.contains(&text[..4]), "{before}: {detail}");
                assert!(detail.chars().count() <= DETAIL_MAX + 1);
            }
        }
    }
}
