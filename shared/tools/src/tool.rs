//! The trait of tools.

use std::future::Future;

use domain::account::Scope;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::answer::Answer;
use crate::call::Call;
use crate::failure::Failure;

/// The result of a tool.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Properties of a tool that a host may assume.
#[derive(Clone, Copy)]
pub struct Hints {
    /// It changes nothing.
    pub reads: bool,
    /// It may take something away.
    pub destroys: bool,
    /// A repeated call has no further effect.
    pub repeats: bool,
    /// It reaches beyond the service: the web, or a provider.
    pub reaches_out: bool,
}

impl Hints {
    /// A tool that only reads.
    pub const READ: Self = Self { reads: true, destroys: false, repeats: true, reaches_out: false };
    /// A tool that adds or changes something, each time it is called.
    pub const ADD: Self = Self { reads: false, destroys: false, repeats: false, reaches_out: false };
    /// A tool that adds or changes something once.
    pub const ADD_ONCE: Self = Self { repeats: true, ..Self::ADD };
    /// A tool that may take something away.
    pub const CHANGE: Self = Self { destroys: true, ..Self::ADD_ONCE };
    /// A tool that adds something once, with the help of others.
    pub const REACH_OUT: Self = Self { reaches_out: true, ..Self::ADD_ONCE };
}

/// A tool.
pub trait Tool: Send + 'static {
    const NAME: &'static str;
    const TITLE: &'static str;
    const ABOUT: &'static str;
    const HINTS: Hints;
    /// The scopes without which it is not offered.
    const SCOPES: &'static [Scope];
    /// Scopes of which it needs one, unless there are none.
    const ANY_SCOPE: &'static [Scope] = &[];
    type Arguments: DeserializeOwned + JsonSchema + Send;
    type Output: Serialize;

    /// Adds to the refusal of arguments that do not fit the schema what the caller can do instead.
    fn add_instead(_arguments: &Value, failure: Failure) -> Failure {
        failure
    }

    fn run(call: &Call, arguments: Self::Arguments) -> impl Future<Output = Result<Answer<Self::Output>>> + Send;
}
