//! Scopes and surfaces of tokens, emails of accounts, reasons of ledger entries.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Timestamp;
use crate::budget::BudgetState;
use crate::constant::{AgentToken, True};
use crate::graph::named;
use crate::id::AccountUid;
use crate::known::Name;
use crate::limits::{EMAIL_MAX, TOKEN_LABEL_MAX};
use crate::link::OpenLinks;

named! {
    /// Permission of a token. The order is that of lists and error messages.
    Scope {
        /// Read canvases, nodes, connections, revisions, renders, Recipes, Actions.
        CanvasRead = "canvas:read",
        /// Apply graph operations, create canvases and workflows, fork Recipes.
        CanvasWrite = "canvas:write",
        /// Read and list assets.
        AssetRead = "asset:read",
        /// List Elements and collections, read exact versions.
        ElementRead = "element:read",
        /// Create, revise, organize, archive, restore Elements, manage collections.
        ElementWrite = "element:write",
        /// Queue image work and Recipe runs.
        ImageGenerate = "image:generate",
        /// Queue video work.
        VideoGenerate = "video:generate",
        /// Read and cancel jobs and Runs, download video output.
        JobManage = "job:manage",
    }
}

impl Scope {
    /// The scopes that a grant of this one requires.
    pub const fn needs(self) -> &'static [Scope] {
        match self {
            Scope::CanvasWrite => &[Scope::CanvasRead],
            Scope::ElementWrite => &[Scope::ElementRead],
            Scope::ImageGenerate => &[Scope::CanvasRead, Scope::CanvasWrite, Scope::AssetRead],
            Scope::VideoGenerate => &[Scope::CanvasRead, Scope::AssetRead],
            _ => &[],
        }
    }
}

/// A name that is not a value of the enumeration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown name `{0}`")]
pub struct UnknownName(pub String);

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// The set of `scopes`.
    pub const fn from_slice(scopes: &[Scope]) -> Self {
        let mut bits = 0;
        let mut index = 0;
        while index < scopes.len() {
            bits |= 1 << scopes[index] as u8;
            index += 1;
        }
        Self(bits)
    }

    /// Returns `true` if `scope` is in the set.
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }

    /// The scopes of `wanted` that are not in the set.
    pub const fn missing(self, wanted: Scopes) -> Scopes {
        Scopes(wanted.0 & !self.0)
    }

    /// Returns `true` if nothing is in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The members, in the order of [`Scope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.iter().copied().filter(move |scope| self.contains(*scope))
    }

    /// The set with every scope that its members require.
    pub fn with_dependencies(self) -> Scopes {
        self.iter().chain(self.iter().flat_map(|scope| scope.needs().iter().copied())).collect()
    }

    /// The first scope whose required scope is not in the set, with that scope.
    pub fn lacking_dependency(self) -> Option<(Scope, Scope)> {
        self.iter().find_map(|scope| {
            scope.needs().iter().find(|needed| !self.contains(**needed)).map(|needed| (scope, *needed))
        })
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | 1 << scope as u8))
    }
}

named! {
    /// Kind of client that uses a token. It decides who owns the nodes that the client creates: the user or an agent.
    Surface {
        /// A program.
        Api = "api",
        /// The command-line client.
        Cli = "cli",
        /// A tool of an AI agent.
        Tool = "tool",
        /// The browser application, used by a person.
        Browser = "browser",
    }
}

#[expect(clippy::derivable_impls, reason = "`named!` takes no attributes but documentation")]
impl Default for Surface {
    fn default() -> Self {
        Surface::Api
    }
}

impl Surface {
    /// Returns `true` if the nodes that it creates are owned by an agent.
    pub const fn is_agent(self) -> bool {
        !matches!(self, Surface::Browser)
    }
}

named! {
    /// What an account may do beyond its own affairs.
    Role {
        /// Nothing.
        Member = "member",
        /// Manage the installation in the console.
        Admin = "admin",
    }
}

named! {
    /// The kind of client that a token is a credential of.
    TokenKind {
        /// A program or agent. Presented as a bearer token.
        Agent = "agent",
        /// A person in the browser. Presented as a cookie of the console alone.
        Session = "session",
        /// A program that a person authorized. Presented as a bearer token.
        Oauth = "oauth",
    }
}

named! {
    /// How the service knows an OAuth client.
    AppKind {
        /// It registered itself: its name is what it says.
        Registered = "registered",
        /// The operator listed it.
        Listed = "listed",
        /// It is the command line of the service.
        CommandLine = "command_line",
    }
}

/// The OAuth client whose access token was presented.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppStatus {
    /// The `client_id`.
    pub client_id: String,
    /// Its name.
    pub name: String,
    /// The host that vouches for it, if one does.
    pub host: Option<String>,
}

named! {
    /// Why credit moved.
    LedgerReason {
        /// An operator granted it.
        Grant = "grant",
        /// A job or a Recipe run reserved it.
        Reserve = "reserve",
        /// A job or a Recipe run returned what it did not use.
        Return = "return",
    }
}

/// Returns `true` if a text has the form of an email address: two non-empty parts around one `@`, without white space. Only sending mail
/// could verify more.
pub fn is_email(text: &str) -> bool {
    let parts = text.split_once('@');
    text.len() <= EMAIL_MAX
        && parts.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'))
        && !text.chars().any(|character| character.is_whitespace() || character.is_control())
}

/// The name under which others see an account: what the person chose, or else the part of the email before the `@`.
pub fn display_name(chosen: &str, email: &str) -> String {
    let name = if chosen.is_empty() { email.split('@').next().unwrap_or_default() } else { chosen };
    name.chars().take(TOKEN_LABEL_MAX).collect()
}

/// What an account stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccountStorage {
    /// Bytes that its assets, videos and canvases count.
    pub bytes: i64,
    /// Maximum bytes; null: no limit.
    #[schema(required = true)]
    pub max: Option<i64>,
}

/// The account and the permissions of the presented token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthStatus {
    /// Always true; a rejected credential is a 401.
    #[schema(value_type = True, inline)]
    pub authenticated: bool,
    /// Always `agent_token`.
    #[schema(value_type = AgentToken, inline)]
    pub auth_type: Cow<'static, str>,
    /// Email of the account.
    pub email: String,
    /// Name under which others see the account.
    #[serde(default)]
    #[schema(required = true)]
    pub display_name: String,
    /// Scopes of the token, in a fixed order.
    #[schema(value_type = Vec<Scope>)]
    pub scopes: Vec<Name<Scope>>,
    /// Id of the token.
    pub agent_token_id: Uuid,
    /// Label of the token.
    pub agent_label: String,
    /// Uid of the account.
    pub uid: AccountUid,
    /// Credits of the account.
    pub credit_balance: i64,
    /// The budgets that starts of the token count in: the account's, then its own. Not in answers of earlier releases.
    #[serde(default)]
    #[schema(required = true)]
    pub budgets: Vec<BudgetState>,
    /// The storage of the account; not in answers of earlier releases.
    #[serde(default)]
    #[schema(required = true)]
    pub storage: AccountStorage,
    /// The capability links of the account that are open; not in answers of earlier releases.
    #[serde(default)]
    #[schema(required = true)]
    pub open_links: OpenLinks,
    /// When the token, or the app that it belongs to, ends; null if it does not end by itself.
    #[schema(required = true)]
    pub expires_at: Option<Timestamp>,
    /// The tokens of the account stop at this time unless its owner signs in before. Absent: they need no sign-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_by: Option<Timestamp>,
    /// The app, if the token is the access token of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<AppStatus>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_email_has_two_parts_around_one_at_sign() {
        let longest = format!("{}@b", "a".repeat(EMAIL_MAX - 2));
        for good in ["a@b", "a.b+c@example.com", "ü@example.com", &longest] {
            assert!(is_email(good), "{good}");
        }
        for wrong in ["", "a", "@", "a@", "@b", "a@b@c", "a b@c", "a@b\n", &format!("{longest}c")] {
            assert!(!is_email(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn the_name_of_an_account_is_its_own_or_the_first_part_of_its_email() {
        for (chosen, email, name) in [
            ("", "ana.b+c@example.com", "ana.b+c"),
            ("Ana", "ana.b+c@example.com", "Ana"),
            ("", &format!("{}@b", "ü".repeat(81)), &"ü".repeat(80)),
        ] {
            assert_eq!(display_name(chosen, email), name);
        }
    }

    #[test]
    fn scopes_require_their_documented_dependencies() {
        let lacking = |scopes: &[Scope]| Scopes::from_slice(scopes).lacking_dependency();
        assert_eq!(lacking(&[Scope::CanvasWrite]), Some((Scope::CanvasWrite, Scope::CanvasRead)));
        assert_eq!(lacking(&[Scope::ElementWrite]), Some((Scope::ElementWrite, Scope::ElementRead)));
        assert_eq!(
            lacking(&[Scope::CanvasRead, Scope::AssetRead, Scope::ImageGenerate]),
            Some((Scope::ImageGenerate, Scope::CanvasWrite))
        );
        assert_eq!(lacking(&[Scope::VideoGenerate, Scope::CanvasRead]), Some((Scope::VideoGenerate, Scope::AssetRead)));
        assert_eq!(lacking(Scope::ALL), None);
    }

    #[test]
    fn missing_scopes_are_named_in_table_order() {
        let missing = Scopes::from_slice(&[Scope::CanvasRead])
            .missing(Scopes::from_slice(&[Scope::JobManage, Scope::CanvasWrite]));
        assert_eq!(missing.iter().collect::<Vec<_>>(), [Scope::CanvasWrite, Scope::JobManage]);
    }
}
