//! What the claims of a person mean to this service (docs/reference/signin.md#claims).

use domain::account::is_email;
use serde_json::Value;

use crate::jwt::Claims;
use crate::settings::{Rule, Settings};

/// Longest name that is kept, in characters.
const NAME_MAX: usize = 80;

/// Where a claim is: its name, or a JSON pointer if it begins with a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimPath(pub(crate) String);

impl ClaimPath {
    /// The value in `claims`. `null` counts as absent.
    fn find<'a>(&self, claims: &'a Claims) -> Option<&'a Value> {
        let found = match self.0.strip_prefix('/') {
            None => claims.get(&self.0)?,
            Some(path) => {
                let unescaped = |part: &str| part.replace("~1", "/").replace("~0", "~");
                let (first, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
                claims.get(&unescaped(first))?.pointer(rest)?
            }
        };
        Some(found).filter(|value| !value.is_null())
    }

    /// The path as the operator wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A configured claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed<T> {
    /// The provider says nothing.
    Absent,
    /// It has the wrong type. It changes nothing.
    Malformed,
    Given(T),
}

impl<T> Claimed<T> {
    /// A configured claim's value; absent if none is configured.
    fn read(value: Option<&Value>, parse: impl Fn(&Value) -> Option<T>) -> Self {
        match value.map(parse) {
            None => Self::Absent,
            Some(None) => Self::Malformed,
            Some(Some(value)) => Self::Given(value),
        }
    }
}

/// A person as a provider describes them at a sign-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The person's id at the provider.
    pub subject: String,
    /// The session at the provider, which a back-channel logout may name.
    pub session: Option<String>,
    /// The email, if it looks like one.
    pub email: Option<String>,
    /// Whether the email is the person's, by the provider's word or because the operator trusts its emails.
    pub email_verified: bool,
    /// The name that people read.
    pub name: Option<String>,
    pub groups: Claimed<Vec<String>>,
    /// Credits of this month.
    pub credits: Claimed<i64>,
    /// Quota in bytes.
    pub storage: Claimed<i64>,
}

/// The claims of the ID token, and those of userinfo behind them.
pub(crate) struct Sources {
    pub id_token: Claims,
    pub userinfo: Option<Claims>,
}

impl Sources {
    fn find(&self, path: &ClaimPath) -> Option<&Value> {
        path.find(&self.id_token).or_else(|| path.find(self.userinfo.as_ref()?))
    }

    fn named(&self, name: &str) -> Option<&Value> {
        self.find(&ClaimPath(name.to_owned()))
    }

    /// The email, and whether a document that has this very email says that it is verified.
    fn email(&self) -> Option<(&str, bool)> {
        let of = |claims: &Claims| -> Option<(String, bool)> {
            let email = claims.get("email")?.as_str()?.trim();
            let verified = claims.get("email_verified").is_some_and(|value| *value == true || *value == "true");
            Some((email.to_owned(), verified))
        };
        let email = self.named("email").and_then(Value::as_str).map(str::trim).filter(|email| is_email(email))?;
        let documents = [Some(&self.id_token), self.userinfo.as_ref()].into_iter().flatten();
        // What the ID token says of its email is not changed by userinfo.
        let said = documents.filter_map(of).filter(|(said, _)| said == email);
        let is_silent = self.id_token.get("email_verified").is_none();
        Some((email, said.take(if is_silent { 2 } else { 1 }).any(|(_, verified)| verified)))
    }

    /// Whether a claim that the service reads is missing.
    pub fn lack_any(&self, settings: &Settings) -> bool {
        let configured = [&settings.groups_claim, &settings.credits_claim, &settings.storage_claim];
        ["email", "email_verified", "name"].iter().any(|name| self.named(name).is_none())
            || configured.into_iter().flatten().any(|path| self.find(path).is_none())
    }

    /// The person whom the claims describe.
    pub fn person(&self, settings: &Settings, subject: String) -> Person {
        let configured = |path: &Option<ClaimPath>| path.as_ref().and_then(|path| self.find(path));
        let (email, says_verified) = self.email().unzip();
        let name = self.named("name").and_then(Value::as_str).map(display_name).filter(|name| !name.is_empty());
        Person {
            subject,
            session: self.id_token.get("sid").and_then(Value::as_str).map(str::to_owned),
            email: email.map(str::to_owned),
            email_verified: email.is_some() && (says_verified == Some(true) || settings.trust_email),
            name,
            groups: Claimed::read(configured(&settings.groups_claim), groups),
            credits: Claimed::read(configured(&settings.credits_claim), amount),
            storage: Claimed::read(configured(&settings.storage_claim), amount),
        }
    }
}

impl Person {
    /// The email, if it is verified.
    pub fn verified_email(&self) -> Option<&str> {
        self.email.as_deref().filter(|_| self.email_verified)
    }

    /// The person's groups, of which there are none if the provider names none.
    fn groups(&self) -> &[String] {
        if let Claimed::Given(groups) = &self.groups { groups } else { &[] }
    }

    /// Whether a rule of `settings` admits the person. Without rules nobody is admitted by one.
    pub fn is_admitted_by_rule(&self, settings: &Settings) -> bool {
        settings.admit.iter().any(|rule| match rule {
            Rule::Anyone => true,
            Rule::Group(group) => self.groups().contains(group),
            Rule::Domain(domain) => {
                let own = self.verified_email().and_then(|email| email.rsplit_once('@'));
                own.is_some_and(|(_, own)| own.eq_ignore_ascii_case(domain))
            }
        })
    }

    /// The configured claims that say nothing: their setting, and whether they are `absent` or of a wrong `type`.
    pub fn ignored(&self, settings: &Settings) -> impl Iterator<Item = (&'static str, &'static str)> {
        fn why<T>(claimed: &Claimed<T>) -> Option<&'static str> {
            match claimed {
                Claimed::Given(_) => None,
                Claimed::Absent => Some("absent"),
                Claimed::Malformed => Some("type"),
            }
        }
        // Groups are read without being asked for, too.
        let reads_groups =
            !settings.admin_groups.is_empty() || settings.admit.iter().any(|rule| matches!(rule, Rule::Group(_)));
        let groups = if reads_groups { why(&self.groups) } else { None };
        let credits = if settings.credits_claim.is_some() { why(&self.credits) } else { None };
        let storage = if settings.storage_claim.is_some() { why(&self.storage) } else { None };
        let named = [("groups", groups), ("credits", credits), ("storage", storage)];
        named.into_iter().filter_map(|(claim, why)| Some((claim, why?)))
    }

    /// Whether the person is an administrator by their groups; `None` if the provider decides nothing.
    pub fn is_admin(&self, settings: &Settings) -> Option<bool> {
        if settings.admin_groups.is_empty() || self.groups == Claimed::Malformed {
            return None;
        }
        Some(settings.admin_groups.iter().any(|group| self.groups().contains(group)))
    }
}

/// A name in one line.
fn display_name(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.trim().chars().take(NAME_MAX).collect::<String>().trim_end().to_owned()
}

/// Groups: a list of strings, one string, or the keys of an object.
fn groups(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(one) => Some(vec![one.clone()]),
        Value::Array(all) => all.iter().map(|group| group.as_str().map(str::to_owned)).collect(),
        Value::Object(members) => Some(members.keys().cloned().collect()),
        _ => None,
    }
}

/// A whole number that is not negative.
fn amount(value: &Value) -> Option<i64> {
    value.as_i64().filter(|amount| *amount >= 0)
}

#[cfg(test)]
mod tests;
