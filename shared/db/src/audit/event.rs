//! The events of the audit, in one list.

use domain::budget::Budget;
use domain::id::{AccountUid, AssetHandle, CanvasHandle, RecipeId};
use domain::{Timestamp, account, canvas, model};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::seal::Proof;

/// What an event may say: an id, a number, a time, or a value of a closed set. A text that somebody has written is none of them, so that
/// no secret and no name gets into the audit.
pub trait Detail {
    /// The value in `details`; null is left out.
    fn to_json(&self) -> Value;
}

macro_rules! displayed {
    ($($type:ty),+ $(,)?) => {
        $(impl Detail for $type {
            fn to_json(&self) -> Value {
                Value::String(self.to_string())
            }
        })+
    };
}

displayed! {
    AccountUid, AssetHandle, Budget, CanvasHandle, RecipeId, Timestamp, Uuid, account::Role, account::Scope, account::Surface, canvas::AccessRole, model::ProviderKind,
}

macro_rules! plain {
    ($($type:ty),+ $(,)?) => {
        $(impl Detail for $type {
            fn to_json(&self) -> Value {
                (*self).into()
            }
        })+
    };
}

// A text with this lifetime is one of the program.
plain! { bool, u32, i64, u64, &'static str }

impl<T: Detail> Detail for Option<T> {
    fn to_json(&self) -> Value {
        self.as_ref().map_or(Value::Null, Detail::to_json)
    }
}

impl<T: Detail> Detail for Vec<T> {
    fn to_json(&self) -> Value {
        self.iter().map(Detail::to_json).collect()
    }
}

macro_rules! outcome {
    () => {
        "ok"
    };
    (refused) => {
        "refused"
    };
}

/// The list: a variant, its name, `refused` if the act did not happen, and its details, whose names in JSON are those of the fields in
/// camel case.
macro_rules! events {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal $($refused:ident)? { $($field:ident: $type:ty),* $(,)? },)+) => {
        /// An event of the audit.
        #[derive(Clone, Debug)]
        pub enum Event {
            $($(#[doc = $doc])+ $variant { $($field: $type),* },)+
        }

        impl Event {
            /// The names and the descriptions of all events, in the order of the list.
            pub const DESCRIBED: &[(&str, &str)] = &[$(($name, concat!($($doc),+))),+];

            /// The name of the event.
            pub fn name(&self) -> &'static str {
                match self { $(Event::$variant { .. } => $name),+ }
            }

            /// `ok` or `refused`.
            pub(super) fn outcome(&self) -> &'static str {
                match self { $(Event::$variant { .. } => outcome!($($refused)?)),+ }
            }

            /// The details.
            pub(super) fn details(&self) -> Map<String, Value> {
                match self {
                    $(Event::$variant { $($field),* } => {
                        let details: &[(&str, &dyn Detail)] = &[$((stringify!($field), $field)),*];
                        details
                            .iter()
                            .map(|(name, detail)| (camel_case(name), detail.to_json()))
                            .filter(|(_, value)| !value.is_null())
                            .collect()
                    })+
                }
            }
        }
    };
}

/// A name in camel case.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
}

events! {
    /// A person signed in.
    SignedIn = "signin.ok" { session: Uuid, by: &'static str },
    /// A sign-in was refused.
    SignInRefused = "signin.refused" refused { by: &'static str, why: Option<&'static str> },
    /// A sign-in link was made.
    LinkCreated = "signin.link" { link: Uuid, expires_at: Timestamp },
    /// A session ended: its person signed it out, or an administrator did.
    SessionEnded = "session.ended" { session: Uuid },
    /// All sessions of an account ended, with `tokens` also its tokens.
    SessionsEnded = "session.all" { sessions: u64, tokens: bool },
    /// An identity of a provider was linked to an account.
    IdentityLinked = "identity.linked" { identity: Uuid },
    /// An identity was taken from an account.
    IdentityUnlinked = "identity.unlinked" { identity: Uuid },
    /// The verified email of an identity replaced that of its account.
    IdentityEmail = "identity.email" { identity: Uuid },
    /// A configured claim of a sign-in was ignored: the provider does not say it (`absent`), or in a wrong type (`type`).
    ClaimIgnored = "identity.claim" { identity: Uuid, claim: &'static str, why: &'static str },
    /// An account was created.
    AccountCreated = "account.created" { credits: i64 },
    /// An account was enabled.
    AccountEnabled = "account.enabled" {},
    /// An account was disabled.
    AccountDisabled = "account.disabled" {},
    /// An account has another role.
    AccountRole = "account.role" { role: account::Role },
    /// An account has another display name.
    AccountRenamed = "account.renamed" {},
    /// Credits were added by hand, or taken away.
    AccountCredit = "account.credit" { amount: i64, balance: i64 },
    /// The storage quota of an account was set, or is the default again. 0 is no limit.
    AccountQuota = "account.quota" { max: Option<i64> },
    /// The budgets of an account were set.
    AccountBudget = "account.budget" { budgets: Vec<Budget> },
    /// The stored bytes of accounts were counted again.
    AccountsRecounted = "account.recounted" { accounts: u64, corrected: u64 },
    /// An account was deleted with everything that it owned.
    AccountPurged = "account.purged" { canvases: u64, assets: u64, tokens: u64 },
    /// A token was created.
    TokenCreated = "token.created" { token: Uuid, scopes: Vec<account::Scope>, surface: account::Surface, expires_at: Option<Timestamp> },
    /// The budgets of a token were set.
    TokenLimits = "token.limits" { token: Uuid, budgets: Vec<Budget> },
    /// A token was revoked.
    TokenRevoked = "token.revoked" { token: Uuid },
    /// A person allowed a program to use the account, as an app.
    AppAllowed = "app.allowed" { app: Uuid, scopes: Vec<account::Scope>, surface: account::Surface, budgets: Vec<Budget>, expires_days: Option<u32> },
    /// A person denied a program what it asked for.
    AppDenied = "app.denied" {},
    /// The budgets of an app were set.
    AppLimits = "app.limits" { app: Uuid, budgets: Vec<Budget> },
    /// An app was ended by its person, its program or an operator.
    AppRevoked = "app.revoked" { app: Uuid },
    /// An app has ended because its code was used twice.
    AppCodeReused = "app.reuse_code" { app: Uuid },
    /// An app has ended because a refresh token was used that had been replaced long before.
    AppRefreshReused = "app.reuse_refresh" { app: Uuid },
    /// An OAuth client was listed.
    ClientListed = "client.listed" { client: Uuid },
    /// A listed OAuth client was deleted, and its apps have ended.
    ClientDeleted = "client.deleted" { client: Uuid, apps: u64 },
    /// A connection to a provider was saved, or its key was replaced.
    ConnectionSaved = "connection.saved" { connection: Uuid, provider: model::ProviderKind },
    /// A connection to a provider was deleted.
    ConnectionDeleted = "connection.deleted" { connection: Uuid },
    /// A canvas was shared with an account, or its role there was changed.
    CanvasShared = "canvas.shared" { canvas: CanvasHandle, with: AccountUid, role: canvas::AccessRole },
    /// A canvas is not shared with an account any more.
    CanvasUnshared = "canvas.unshared" { canvas: CanvasHandle, with: AccountUid },
    /// A canvas was deleted with everything stored in it.
    CanvasDeleted = "canvas.deleted" { canvas: CanvasHandle, nodes: i64, assets: i64 },
    /// An asset was deleted.
    AssetDeleted = "asset.deleted" { asset: AssetHandle, bytes: i64 },
    /// Private metadata was removed from the files of assets.
    AssetsCleaned = "asset.cleaned" { assets: u64 },
    /// A version of a Recipe was published in the catalog.
    RecipePublished = "recipe.published" { recipe: RecipeId, version: i64 },
    /// A webhook delivery was sent once more.
    DeliveryReplayed = "delivery.replayed" { delivery: Uuid },
    /// A job or a Recipe run was canceled by somebody else than its account.
    WorkCanceled = "work.canceled" { work: Uuid, recipe: bool },
    /// Secrets were encrypted again, under the first key of the ring.
    KeysRewrapped = "keys.rewrapped" { connections: u64, webhooks: u64 },
    /// The audit was exported.
    AuditExported = "audit.exported" {},
    /// Whole months of the audit before this time were deleted.
    MonthsDropped = "audit.dropped" { before: Timestamp, seal: i64, proof: Proof },
    /// Refused sign-ins of the past minute that have no row of their own, because there were too many.
    RefusalsCapped = "audit.capped" { refusals: u64 },
}
