//! The failures that a simulator can produce.

use std::collections::VecDeque;
use std::sync::Mutex;

/// How a submit or its result fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureMode {
    /// 429 Too Many Requests; a retry is possible after one second.
    RateLimited,
    /// The vendor's answer for an account without credit.
    OutOfCredit,
    /// The content is refused, in the vendor's format and at the time when the vendor does it.
    Content,
    /// The vendor's answer to an invalid parameter.
    Invalid,
    /// 503, before anything was accepted.
    Down,
    /// 500, after the submit was accepted.
    ServerError,
    /// The submit is accepted and never answered; the connection stays open.
    Hang,
    /// The submit is accepted, and the answer breaks off halfway.
    CutOff,
    /// The submit is accepted, and the connection is closed without an answer.
    LoseAnswer,
    /// The submit is accepted and answered with an HTML page and status 200.
    HtmlAnswer,
    /// The result is an HTML page instead of an image.
    HtmlImage,
    /// The URL of the result has expired. In an answer without a URL, the image or the text is
    /// missing.
    ExpiredUrl,
    /// The submit is accepted, and the work fails.
    WorkFails,
}

impl FailureMode {
    /// Every failure mode with its name in a prompt.
    pub const ALL: [(&str, FailureMode); 13] = [
        ("rate-limited", FailureMode::RateLimited),
        ("out-of-credit", FailureMode::OutOfCredit),
        ("content", FailureMode::Content),
        ("invalid", FailureMode::Invalid),
        ("down", FailureMode::Down),
        ("server-error", FailureMode::ServerError),
        ("hang", FailureMode::Hang),
        ("cut-off", FailureMode::CutOff),
        ("lose-answer", FailureMode::LoseAnswer),
        ("html-answer", FailureMode::HtmlAnswer),
        ("html-image", FailureMode::HtmlImage),
        ("expired-url", FailureMode::ExpiredUrl),
        ("work-fails", FailureMode::WorkFails),
    ];

    /// The failure mode that a prompt requests with `[[sim:<name>]]`.
    pub(super) fn in_prompt(prompt: &str) -> Option<Self> {
        let name = prompt.split_once("[[sim:")?.1.split_once("]]")?.0;
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        Some(found.unwrap_or_else(|| panic!("the prompt requests an unknown failure mode: {name}")).1)
    }

    /// Returns `true` if every vendor reports it before it accepts anything.
    pub(super) fn refuses(self) -> bool {
        matches!(self, FailureMode::RateLimited | FailureMode::OutOfCredit | FailureMode::Invalid | FailureMode::Down)
    }
}

/// The failure modes of the next submits.
#[derive(Default)]
pub(super) struct FailureModes {
    next: Mutex<(VecDeque<FailureMode>, Option<FailureMode>)>,
}

impl FailureModes {
    pub(super) fn set(&self, always: Option<FailureMode>) {
        *self.next.lock().expect("no holder panics") = (VecDeque::new(), always);
    }

    pub(super) fn push(&self, failure_mode: FailureMode) {
        self.next.lock().expect("no holder panics").0.push_back(failure_mode);
    }

    pub(super) fn take(&self) -> Option<FailureMode> {
        let mut next = self.next.lock().expect("no holder panics");
        let (once, always) = &mut *next;
        once.pop_front().or(*always)
    }
}
