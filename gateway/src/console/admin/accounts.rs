//! `/console/admin/accounts`: who has an account, and what it may.

use app::account;
use axum::extract::{OriginalUri, State};
use axum::response::IntoResponse;
use db::account_list::{self, AccountFilter, After, ListedAccount};
use domain::account::Role;
use domain::channel;
use domain::id::AccountUid;
use domain::limits::{PAGE_MAX, SIGNIN_LINK_MINUTES_MAX};
use domain::page::Page;
use domain::{Timestamp, Violation};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::administrator::Administrator;
use crate::extract::check::Check;
use crate::extract::json::{Input, JsonBody, only};
use crate::extract::page::{ListScope, Paged, page, page_request};
use crate::extract::path::PathText;
use crate::extract::query::QueryReader;
use crate::openapi::errors::{ReadErrors, ScopeErrors};
use crate::problem::{Problem, Result, combine_violations};
use crate::reply;
use crate::state::App;

/// A page of accounts, newest first.
#[derive(Serialize, ToSchema)]
pub struct AccountList {
    /// The accounts.
    accounts: Vec<Account>,
    /// Position in the list.
    page: Page,
}

/// An account, in numbers and times.
#[serde_with::skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// Uid of the account.
    id: AccountUid,
    /// Email of the account.
    email: String,
    /// Name under which others see the account.
    display_name: String,
    /// Its role.
    role: Role,
    /// `false`: every request with a credential of it is refused.
    enabled: bool,
    /// Credits of the account.
    credit_balance: i64,
    /// What it stores.
    storage: Storage,
    /// Number of its active tokens.
    tokens: i64,
    /// Number of its active sessions.
    sessions: i64,
    /// When it was created.
    created_at: Timestamp,
    /// When a person signed in last; absent if that was more than 90 days ago, or never.
    last_signed_in_at: Option<Timestamp>,
}

/// What an account stores.
#[serde_with::skip_serializing_none]
#[derive(Serialize, ToSchema)]
pub struct Storage {
    /// Bytes that count.
    bytes: i64,
    /// Maximum bytes; absent: no limit.
    max: Option<i64>,
    /// `true` if the maximum is the default of the configuration.
    default: bool,
}

impl From<ListedAccount> for Account {
    fn from(listed: ListedAccount) -> Self {
        Self {
            id: listed.uid,
            email: listed.email,
            display_name: listed.display_name,
            role: listed.role,
            enabled: listed.enabled,
            credit_balance: listed.credit_balance,
            storage: Storage {
                bytes: listed.storage_bytes,
                max: (listed.storage_max > 0).then_some(listed.storage_max),
                default: !listed.has_own_quota,
            },
            tokens: listed.tokens,
            sessions: listed.sessions,
            created_at: listed.created_at,
            last_signed_in_at: listed.last_signed_in_at,
        }
    }
}

/// State of an account.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AccountStatus {
    /// It may be used.
    Enabled,
    /// Its credentials are refused.
    Disabled,
}

/// Which accounts are listed.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AccountQuery {
    /// A part of the uid, the email or the name.
    #[param(max_length = 254)]
    q: Option<String>,
    /// Only accounts in this state.
    #[param(inline)]
    status: Option<AccountStatus>,
    /// Only accounts with this role.
    role: Option<Role>,
}

/// List accounts
///
/// Returns one page of accounts, newest first. Purged ones are not listed.
#[utoipa::path(
    get, path = "/accounts", operation_id = "listAccounts", tag = "Accounts",
    params(AccountQuery, Paged),
    responses(ScopeErrors, (status = 200, description = "One page of accounts.", body = AccountList))
)]
pub async fn list(State(app): State<App>, admin: Administrator, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let AccountQuery { q, status, role } = query.read().unwrap_or_default();
    let enabled = status.map(|status| status == AccountStatus::Enabled);
    let filter = AccountFilter { uid: None, text: q, enabled, role };
    let scope = ListScope::new("console/admin/accounts", &admin.account, &[&format!("{filter:?}")]);
    let request = page_request::<After, PAGE_MAX>(&app, &mut query, &scope);
    query.finish()?;
    let limit = i64::from(request.limit) + 1;
    let mut found = account_list::list(&mut *app.connection().await?, &filter, request.after.as_ref(), limit).await?;
    let page = page(&app, &scope, request.limit, &mut found, |account| After {
        created_at: account.created_at,
        uid: account.uid.clone(),
    });
    Ok(reply::ok(&AccountList { accounts: found.into_iter().map(Account::from).collect(), page }))
}

/// The account that a path names; 404 when there is none.
pub async fn named(conn: &mut db::PgConnection, uid: &AccountUid) -> Result<ListedAccount> {
    let filter = AccountFilter { uid: Some(uid.clone()), ..AccountFilter::default() };
    account_list::list(conn, &filter, None, 1).await?.pop().ok_or(Problem::NotFound("account"))
}

/// An account.
#[derive(Serialize, ToSchema)]
pub struct AccountRead {
    /// The account.
    account: Account,
}

/// Read an account
///
/// Returns one account.
#[utoipa::path(
    get, path = "/accounts/{accountUid}", operation_id = "getAccount", tag = "Accounts",
    params(("accountUid" = String, Path, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Uid of the account.")),
    responses(ReadErrors, (status = 200, description = "The account.", body = AccountRead))
)]
pub async fn read(State(app): State<App>, _: Administrator, path: PathText) -> Result {
    let uid: AccountUid = path.parameter("accountUid")?;
    let account = named(&mut *app.connection().await?, &uid).await?.into();
    Ok(reply::ok(&AccountRead { account }))
}

/// Request to create an account.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateAccount {
    /// Email of the account, unique whatever its case.
    #[schema(min_length = 3, max_length = 254)]
    email: String,
    /// Name under which others see the account; the part of the email before the `@` when omitted.
    #[schema(max_length = 80, pattern = r"^[^@\x00-\x1f\x7f-\x9f]*$")]
    display_name: Option<String>,
    /// Its role; `member` when omitted.
    role: Option<Role>,
    /// Credits to begin with; 0 when omitted.
    #[schema(minimum = 0, maximum = 1000000000000i64)]
    credits: Option<i64>,
    /// Make a link that signs the person in once within 24 hours. Also for an account that exists, as long as nobody has used it.
    #[schema(schema_with = only::<true>)]
    invite: Option<bool>,
}

impl Input for CreateAccount {}

impl CreateAccount {
    fn check(self) -> Result<Self, Vec<Violation>> {
        let mut check = Check::default();
        check.note_if(!domain::account::is_email(&self.email), "email", "must be an email address");
        check.finish(|| Some(self))
    }
}

/// A new account.
#[serde_with::skip_serializing_none]
#[derive(Serialize, ToSchema)]
pub struct AccountCreated {
    /// The account.
    account: Account,
    /// The link that signs the person in; this response alone contains it.
    invitation: Option<Invitation>,
}

/// A link that signs a person in once.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Invitation {
    /// The link.
    url: String,
    /// When it expires.
    expires_at: Timestamp,
}

/// Create an account
///
/// Creates an account, with `invite` also a link that signs the person in once within 24 hours. With `invite` and the email of an account
/// that nobody has ever used, only a new link is made.
#[utoipa::path(
    post, path = "/accounts", operation_id = "createAccount", tag = "Accounts", request_body = CreateAccount,
    responses(
        ScopeErrors,
        (status = 200, description = "The account existed, and was never used. It has a new link.", body = AccountCreated),
        (status = 201, description = "The account.", body = AccountCreated),
        (status = 409, description = "An account with this email exists, and with `invite`, it was used."),
    )
)]
pub async fn create(State(app): State<App>, admin: Administrator, body: JsonBody) -> Result {
    let wanted = body.checked(CreateAccount::check).await?;
    let mut transaction = app.transaction().await?;
    let existing = db::accounts::find(&mut transaction, &wanted.email).await?;
    let existing = existing.filter(|account| account.email.eq_ignore_ascii_case(&wanted.email));
    let invite = wanted.invite.is_some();
    let (uid, status) = match existing {
        Some(account) if invite && account_list::is_unused(&mut transaction, &account.uid).await? => {
            (account.uid, StatusCode::OK)
        }
        Some(_) => {
            let why = match invite {
                true => "the account has been used; an operator makes sign-in links for it",
                false => "an account with this email exists",
            };
            return Err(Problem::conflict(why));
        }
        None => {
            let uid = AccountUid::generate();
            let credits = wanted.credits.unwrap_or_default();
            account::create(&mut transaction, admin.actor(), &uid, &wanted.email, credits).await?;
            if let Some(name) = wanted.display_name.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
                account::rename(&mut transaction, admin.actor(), (&uid, &wanted.email), name).await?;
            }
            if let Some(role) = wanted.role {
                account::set_role(&mut transaction, admin.actor(), &uid, role).await?;
            }
            (uid, StatusCode::CREATED)
        }
    };
    let invitation = match invite {
        true => {
            let place = (&app.keys, app.config.public_url.as_str());
            let how_long = (SIGNIN_LINK_MINUTES_MAX, true);
            let link = app::session::create_link(&mut transaction, admin.actor(), place, &uid, how_long);
            let (url, expires_at) = link.await?;
            Some(Invitation { url, expires_at })
        }
        false => None,
    };
    let account = named(&mut transaction, &uid).await?.into();
    db::pool::commit(transaction).await?;
    Ok(reply::with_status(status, &AccountCreated { account, invitation }))
}

/// Change of an account. What is omitted stays.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangeAccount {
    /// Whether its credentials are accepted.
    enabled: Option<bool>,
    /// Its role.
    role: Option<Role>,
    /// Name under which others see the account; empty: the part of the email before the `@`.
    #[schema(max_length = 80, pattern = r"^[^@\x00-\x1f\x7f-\x9f]*$")]
    display_name: Option<String>,
    /// Maximum bytes that it may store; 0 for no limit.
    #[schema(minimum = 0)]
    storage_max: Option<i64>,
    /// Give it the default quota of the configuration again.
    #[schema(schema_with = only::<true>)]
    storage_default: Option<bool>,
}

impl Input for ChangeAccount {}

impl ChangeAccount {
    fn check(self) -> Result<Self, Vec<Violation>> {
        let mut check = Check::default();
        let quota = [("storageMax", self.storage_max.is_some()), ("storageDefault", self.storage_default.is_some())];
        check.at_most_one(&quota, false);
        check.finish(|| Some(self))
    }
}

/// Change an account
///
/// Enables or disables an account, changes its role, its name or its quota. A disabled account is refused from its next request on,
/// with all its sessions and tokens. Nobody takes the role from oneself or disables oneself.
#[utoipa::path(
    patch, path = "/accounts/{accountUid}", operation_id = "changeAccount", tag = "Accounts", request_body = ChangeAccount,
    params(("accountUid" = String, Path, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Uid of the account.")),
    responses(
        ReadErrors,
        (status = 200, description = "The account after the change.", body = AccountRead),
        (status = 409, description = "It is one's own account, and one would disable it or take its role."),
    )
)]
pub async fn change(State(app): State<App>, admin: Administrator, path: PathText, body: JsonBody) -> Result {
    let uid = path.parameter::<AccountUid>("accountUid");
    let (wanted, uid) = combine_violations(body.checked(ChangeAccount::check).await, uid)?;
    if wanted.enabled == Some(false) {
        admin.require_other(&uid, "an administrator cannot disable the own account")?;
    }
    if wanted.role == Some(Role::Member) {
        admin.require_other(&uid, "an administrator cannot give up the own role")?;
    }
    let mut transaction = app.transaction().await?;
    let before = named(&mut transaction, &uid).await?;
    if let Some(enabled) = wanted.enabled {
        account::set_enabled(&mut transaction, admin.actor(), &uid, enabled).await?;
    }
    if let Some(role) = wanted.role {
        account::set_role(&mut transaction, admin.actor(), &uid, role).await?;
    }
    if let Some(name) = &wanted.display_name {
        account::rename(&mut transaction, admin.actor(), (&uid, &before.email), name.trim()).await?;
    }
    if wanted.storage_max.is_some() || wanted.storage_default.is_some() {
        account::set_quota(&mut transaction, admin.actor(), &uid, wanted.storage_max).await?;
    }
    let account = named(&mut transaction, &uid).await?.into();
    db::pool::commit(transaction).await?;
    app.announce(vec![channel::access(&uid)]);
    Ok(reply::ok(&AccountRead { account }))
}

/// End all sessions of an account
///
/// Revokes all sessions of the account, and every token that was issued under them.
#[utoipa::path(
    delete, path = "/accounts/{accountUid}/sessions", operation_id = "endAccountSessions", tag = "Accounts",
    params(("accountUid" = String, Path, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Uid of the account.")),
    responses(ReadErrors, (status = 204, description = "All sessions and tokens have ended."))
)]
pub async fn end_sessions(State(app): State<App>, admin: Administrator, path: PathText) -> Result {
    let uid: AccountUid = path.parameter("accountUid")?;
    let mut transaction = app.transaction().await?;
    named(&mut transaction, &uid).await?;
    app::session::revoke_all(&mut transaction, admin.actor(), &uid).await?;
    db::pool::commit(transaction).await?;
    app.announce(vec![channel::access(&uid)]);
    Ok(reply::private(StatusCode::NO_CONTENT.into_response()))
}
