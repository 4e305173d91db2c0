//! What a simulator can be told to do wrong.

use std::collections::VecDeque;
use std::sync::Mutex;

/// A way in which a submit, or what comes of it, goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// Too many requests; try again after a second.
    RateLimited,
    /// The account cannot pay.
    OutOfCredit,
    /// The content is refused, in the way and at the time of the vendor.
    Content,
    /// A parameter is refused.
    Invalid,
    /// 503, before anything was accepted.
    Down,
    /// 500, after it was accepted.
    ServerError,
    /// It is accepted and never answered; the connection stays open.
    Hang,
    /// It is accepted and the answer breaks off in the middle.
    CutOff,
    /// It is accepted and the connection is closed without an answer.
    LoseAnswer,
    /// It is accepted and answered with an HTML page, status 200.
    HtmlAnswer,
    /// The picture is an HTML page.
    HtmlPicture,
    /// The URL of the picture has expired (in an answer without a URL: there is no picture, or no text).
    ExpiredUrl,
    /// The work fails.
    WorkFails,
}

impl Trouble {
    /// Every trouble by its name in a prompt.
    pub const ALL: [(&str, Trouble); 13] = [
        ("rate-limited", Trouble::RateLimited),
        ("out-of-credit", Trouble::OutOfCredit),
        ("content", Trouble::Content),
        ("invalid", Trouble::Invalid),
        ("down", Trouble::Down),
        ("server-error", Trouble::ServerError),
        ("hang", Trouble::Hang),
        ("cut-off", Trouble::CutOff),
        ("lose-answer", Trouble::LoseAnswer),
        ("html-answer", Trouble::HtmlAnswer),
        ("html-picture", Trouble::HtmlPicture),
        ("expired-url", Trouble::ExpiredUrl),
        ("work-fails", Trouble::WorkFails),
    ];

    /// The trouble that a prompt asks for: `[[sim:<name>]]`.
    pub(super) fn in_prompt(prompt: &str) -> Option<Self> {
        let name = prompt.split_once("[[sim:")?.1.split_once("]]")?.0;
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        Some(found.unwrap_or_else(|| panic!("a prompt asks for unknown trouble: {name}")).1)
    }

    /// Whether it is told before anything is accepted, whatever the vendor.
    pub(super) fn refuses(self) -> bool {
        matches!(self, Trouble::RateLimited | Trouble::OutOfCredit | Trouble::Invalid | Trouble::Down)
    }
}

/// The troubles to come.
#[derive(Default)]
pub(super) struct Troubles {
    next: Mutex<(VecDeque<Trouble>, Option<Trouble>)>,
}

impl Troubles {
    pub(super) fn set(&self, always: Option<Trouble>) {
        *self.next.lock().expect("no holder panics") = (VecDeque::new(), always);
    }

    pub(super) fn push(&self, trouble: Trouble) {
        self.next.lock().expect("no holder panics").0.push_back(trouble);
    }

    pub(super) fn take(&self) -> Option<Trouble> {
        let mut next = self.next.lock().expect("no holder panics");
        let (once, always) = &mut *next;
        once.pop_front().or(*always)
    }
}
