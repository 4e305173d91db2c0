//! Signing people in, and ending what they are signed in by (docs/reference/console.md#sign-in). Each function writes its event into the
//! audit; the caller commits, and announces that access ended.

use db::audit::{self, Actor, Event};
use db::sessions::{self, NewSession};
use db::{PgConnection, accounts};
use domain::Timestamp;
use domain::id::AccountUid;
use service::keys::DerivedKeys;
use uuid::Uuid;

use crate::{Error, Result};

/// Makes a link that signs an account in once within `minutes`, an invitation only as long as nobody has used the account. Returns its URL, with the secret in the fragment, which browsers send to
/// no server, so that no log and no preview of the link can redeem it.
pub async fn create_link(
    conn: &mut PgConnection,
    actor: &Actor,
    (keys, public_url): (&DerivedKeys, &str),
    account: &AccountUid,
    (minutes, is_invitation): (u32, bool),
) -> Result<(String, Timestamp)> {
    let (link, secret) = (Uuid::now_v7(), service::random::token_secret());
    let expires_at =
        sessions::create_link(conn, link, account, &keys.token_hash(&secret), (minutes, is_invitation)).await?;
    audit::write(conn, actor, Some(account), &Event::LinkCreated { link, expires_at }).await?;
    Ok((format!("{public_url}/signin#{link}.{secret}"), expires_at))
}

/// Starts a session that somebody signed in to, `by` which credential. Returns when it expires at the latest.
pub async fn start(
    conn: &mut PgConnection,
    actor: &Actor,
    session: &NewSession<'_>,
    by: &'static str,
) -> Result<Timestamp> {
    let created = sessions::create(conn, session).await?;
    for ended in created.ended {
        audit::write(conn, actor, Some(session.account), &Event::SessionEnded { session: ended }).await?;
    }
    audit::write(conn, actor, Some(session.account), &Event::SignedIn { session: session.id, by }).await?;
    Ok(created.expires_at)
}

/// Ends one session of an account.
///
/// # Errors
///
/// [`Error::NotFound`] when the account has no such active session.
pub async fn end(conn: &mut PgConnection, actor: &Actor, account: &AccountUid, session: Uuid) -> Result<()> {
    if !sessions::end(conn, account, session).await? {
        return Err(Error::NotFound("session"));
    }
    audit::write(conn, actor, Some(account), &Event::SessionEnded { session }).await?;
    Ok(())
}

/// Revokes all sessions of an account; its tokens go on.
pub async fn end_all(conn: &mut PgConnection, actor: &Actor, account: &AccountUid) -> Result<u64> {
    let sessions = sessions::revoke_all(conn, account).await?;
    audit::write(conn, actor, Some(account), &Event::SessionsEnded { sessions, tokens: false }).await?;
    Ok(sessions)
}

/// Revokes all sessions of an account, and every token that was issued under them.
pub async fn revoke_all(conn: &mut PgConnection, actor: &Actor, account: &AccountUid) -> Result<u64> {
    let sessions = accounts::revoke_sessions(conn, account).await?;
    audit::write(conn, actor, Some(account), &Event::SessionsEnded { sessions, tokens: true }).await?;
    Ok(sessions)
}
