//! The administrator who is signed in.

use std::ops::Deref;

use axum::extract::FromRequestParts;
use domain::account::Role;
use domain::id::AccountUid;
use http::request::Parts;

use crate::console::person::Person;
use crate::problem::{Problem, Result};
use crate::state::App;

/// How long after signing in a session may administer, in milliseconds.
const FRESH: u64 = 12 * 60 * 60 * 1000;

/// The caller of a route for administrators: a person with the role, who signed in within 12 hours. The role is read with each request.
pub struct Administrator(Person);

impl Administrator {
    /// Rejects an act on the administrator's own account, after which nobody might be left who can undo it.
    ///
    /// # Errors
    ///
    /// 409.
    pub fn require_other(&self, account: &AccountUid, why: &str) -> Result<()> {
        if self.account == *account { Err(Problem::conflict(why)) } else { Ok(()) }
    }
}

impl Deref for Administrator {
    type Target = Person;
    fn deref(&self) -> &Person {
        &self.0
    }
}

impl FromRequestParts<App> for Administrator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let person = Person::from_request_parts(parts, app).await?;
        if person.role != Role::Admin {
            return Err(Problem::Forbidden("only administrators may do this".into()));
        }
        let now: domain::Timestamp = service::clock::now().into();
        if now.millis_since(person.signed_in_at) >= FRESH {
            return Err(Problem::SignInAgain);
        }
        Ok(Self(person))
    }
}
