//! Whose account a person is, and what a sign-in changes on it (docs/reference/signin.md#whose-account).
//!
//! One transaction decides, in which the identity is locked first and then the account. So of concurrent first sign-ins one makes the
//! account, and the others find it.

use db::audit::{self, Actor, Event};
use db::identities::{Changes, Identity, Locked};
use domain::account::{Scope, Scopes};
use domain::channel;
use domain::id::AccountUid;
use domain::limits::IDENTITIES_MAX;
use http::request::Parts;
use identity::person::{Claimed, Person};
use identity::settings::Settings;
use uuid::Uuid;

use super::Failure;
use crate::audit::origin;
use crate::console::routes::session::{Beginning, Begun, begin};
use crate::problem::{Problem, Result};
use crate::state::{App, retrying};

/// A refusal, and the account that it disabled.
struct Refusal {
    failure: Failure,
    disabled: Option<AccountUid>,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self { failure, disabled: None }
    }
}

/// Signs a person in: finds or makes the account, applies the claims, and begins a session.
///
/// # Errors
///
/// The failure of the sign-in. The outer error is that of the service.
pub async fn sign_in(app: &App, settings: &Settings, person: &Person, parts: &Parts) -> Result<Result<Begun, Failure>> {
    let attempt = || async {
        let mut transaction = app.transaction().await?;
        let (identity, account) = match admit(&mut transaction, settings, person, parts).await? {
            Ok(admitted) => admitted,
            Err(Refusal { failure, disabled: None }) => return Ok(Err(failure)),
            Err(Refusal { failure, disabled: Some(account) }) => {
                db::pool::commit(transaction).await?;
                app.announce(vec![channel::access(&account)]);
                return Ok(Err(failure));
            }
        };
        apply(&mut transaction, settings, person, (&identity, &account), parts).await?;
        let scopes = Scopes::from_slice(Scope::ALL);
        let label = &account.display_name;
        let beginning = Beginning { account: &account.account, label, scopes, parent: None };
        let begun = begin(app, &mut transaction, parts, "provider", beginning).await?;
        let session = person.session.as_deref();
        db::identities::begin_session(&mut transaction, begun.id, identity.id, session).await?;
        db::pool::commit(transaction).await?;
        app.announce(vec![channel::access(&account.account)]);
        Ok(Ok(begun))
    };
    match retrying(attempt).await {
        // Another transaction took the email since. The second attempt sees it.
        Err(Problem::Internal(error)) if is_of_email(&*error) => retrying(attempt).await,
        done => done,
    }
}

fn is_of_email(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    error.downcast_ref::<db::Error>().is_some_and(|error| error.constraint() == Some("accounts_email"))
}

/// Links a person to the account of somebody who is signed in.
///
/// # Errors
///
/// As [`sign_in`].
pub async fn link(
    app: &App,
    settings: &Settings,
    person: &Person,
    (account, session): (&AccountUid, Uuid),
    parts: &Parts,
) -> Result<Result<(), Failure>> {
    retrying(|| async {
        let mut transaction = app.transaction().await?;
        let identity = lock(&mut transaction, settings, person).await?;
        match &identity.account {
            Some(owner) if owner == account => return Ok(Ok(())),
            Some(_) => return Ok(Err(Failure::IdentityTaken)),
            None => {}
        }
        if !is_admitted(settings, person) {
            return Ok(Err(Failure::NotAdmitted));
        }
        let Some(account) = db::identities::lock_account(&mut transaction, Some(account), None).await? else {
            return Ok(Err(Failure::Expired));
        };
        if account.identities >= IDENTITIES_MAX {
            return Ok(Err(Failure::Refused));
        }
        let actor = Actor::session(account.account.clone(), session, origin(parts));
        link_to(&mut transaction, &actor, &identity, &account).await?;
        apply(&mut transaction, settings, person, (&identity, &account), parts).await?;
        db::pool::commit(transaction).await?;
        Ok(Ok(()))
    })
    .await
}

async fn link_to(conn: &mut db::PgConnection, actor: &Actor, identity: &Identity, account: &Locked) -> Result<()> {
    db::identities::link(conn, identity.id, &account.account).await?;
    audit::write(conn, actor, Some(&account.account), &Event::IdentityLinked { identity: identity.id }).await?;
    Ok(())
}

async fn lock(conn: &mut db::PgConnection, settings: &Settings, person: &Person) -> Result<Identity> {
    Ok(db::identities::lock(conn, &settings.id, &settings.issuer, &person.subject).await?)
}

/// Without rules everybody is, and then only an account lets them in.
fn is_admitted(settings: &Settings, person: &Person) -> bool {
    settings.admit.is_empty() || person.is_admitted_by_rule(settings)
}

/// Finds or makes the account of a person.
async fn admit(
    conn: &mut db::PgConnection,
    settings: &Settings,
    person: &Person,
    parts: &Parts,
) -> Result<Result<(Identity, Locked), Refusal>> {
    let identity = lock(conn, settings, person).await?;
    let account = match &identity.account {
        Some(owner) => {
            let locked = db::identities::lock_account(conn, Some(owner), None).await?;
            let locked = locked.ok_or_else(|| Problem::internal("an identity without an account"))?;
            if !is_admitted(settings, person) {
                if db::identities::disable(conn, owner).await? {
                    let actor = Actor::provider(owner.clone(), identity.id, origin(parts));
                    audit::write(conn, &actor, Some(owner), &Event::AccountDisabled {}).await?;
                }
                return Ok(Err(Refusal { failure: Failure::NotAdmitted, disabled: Some(owner.clone()) }));
            }
            locked
        }
        None if !is_admitted(settings, person) => return Ok(Err(Failure::NotAdmitted.into())),
        None => match find_or_make(conn, settings, person, (&identity, parts)).await? {
            Ok(account) => {
                let actor = Actor::provider(account.account.clone(), identity.id, origin(parts));
                link_to(conn, &actor, &identity, &account).await?;
                account
            }
            Err(failure) => return Ok(Err(failure.into())),
        },
    };
    // Last, so that whoever is refused for another reason learns nothing about the account.
    if !account.enabled && !account.disabled_by_sign_in {
        return Ok(Err(Failure::Disabled.into()));
    }
    Ok(Ok((identity, account)))
}

/// The account of a person who signs in for the first time: that of the verified email, or a new one.
async fn find_or_make(
    conn: &mut db::PgConnection,
    settings: &Settings,
    person: &Person,
    (identity, parts): (&Identity, &Parts),
) -> Result<Result<Locked, Failure>> {
    let Some(email) = person.verified_email() else {
        let failure = if person.email.is_some() { Failure::EmailUnverified } else { Failure::NoAccount };
        return Ok(Err(failure));
    };
    if let Some(account) = db::identities::lock_account(conn, None, Some(email)).await? {
        // A second identity may be a weaker provider, or the address somebody else's by now; an administrator links it by hand.
        let may_link = settings.links_by_email && !account.is_admin && account.identities == 0;
        return Ok(if may_link { Ok(account) } else { Err(Failure::EmailTaken) });
    }
    if !person.is_admitted_by_rule(settings) {
        return Ok(Err(Failure::NoAccount));
    }
    let uid = AccountUid::generate();
    if db::accounts::create(conn, &uid, email).await?.is_none() {
        // Another transaction made one of this email since.
        return Ok(Err(Failure::EmailTaken));
    }
    if let Some(name) = &person.name {
        db::accounts::rename(conn, &uid, name, name).await?;
    }
    let credits = settings.new_credits;
    db::ledger::grant(conn, &uid, credits).await?;
    let actor = Actor::provider(uid.clone(), identity.id, origin(parts));
    audit::write(conn, &actor, Some(&uid), &Event::AccountCreated { credits }).await?;
    let made = db::identities::lock_account(conn, Some(&uid), None).await?;
    Ok(Ok(made.ok_or_else(|| Problem::internal("a new account is missing"))?))
}

/// Records the sign-in of an admitted person, and applies what the claims say.
async fn apply(
    conn: &mut db::PgConnection,
    settings: &Settings,
    person: &Person,
    (identity, account): (&Identity, &Locked),
    parts: &Parts,
) -> Result<()> {
    let email = person.verified_email();
    let known = identity.email.as_deref();
    let changed = email.filter(|email| known.is_some_and(|known| !known.eq_ignore_ascii_case(email)));
    let changes = Changes {
        email: changed,
        is_admin: person.is_admin(settings),
        credits: if let Claimed::Given(credits) = person.credits { Some(credits) } else { None },
        storage: match person.storage {
            Claimed::Given(bytes) => Some(Some(bytes)),
            Claimed::Absent => Some(None),
            Claimed::Malformed => None,
        },
        confirm_days: settings.confirm_days,
    };
    let (id, provider) = (identity.id, settings.id.as_str());
    let changed = db::identities::sign_in(conn, (id, provider), &account.account, email, &changes).await?;
    let events = [
        changed.enabled.then_some(Event::AccountEnabled {}),
        changed.email.then_some(Event::IdentityEmail { identity: id }),
        changed.role.map(|role| Event::AccountRole { role }),
        changed.storage.map(|max| Event::AccountQuota { max }),
        changed.credits.map(|(amount, balance)| Event::AccountCredit { amount, balance }),
    ];
    let actor = Actor::provider(account.account.clone(), id, origin(parts));
    let ignored = person.ignored(settings);
    let ignored = ignored.map(|(claim, why)| Event::ClaimIgnored { identity: id, claim, why });
    for event in events.into_iter().flatten().chain(ignored) {
        audit::write(conn, &actor, Some(&account.account), &event).await?;
    }
    Ok(())
}
