//! Device codes: a program without a browser gets access that a person allows elsewhere (docs/reference/oauth.md#device-authorization).

use db::PgConnection;
use db::audit::{self, Actor, Event, Origin};
use db::devices::{DeviceCreated, NewDevice, WaitingDevice};
use db::oauth::Lifetimes;
use domain::account::Scopes;
use domain::id::AccountUid;
use service::keys::{AppKeys, AppSecret};
use uuid::Uuid;

use crate::Result;
use crate::oauth::{Allowed, Exchange, Outcome, Presented, Proof, exchange, grant};

/// Letters of user codes: consonants, so that no word comes about.
pub const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
/// Length of a user code.
pub const LENGTH: usize = 8;

/// A new device code.
pub struct DeviceCode {
    /// What the program presents, `cbd_<id>.<secret>`.
    pub device_code: String,
    /// What the person types.
    pub user_code: String,
}

/// Creates a device code; `None` if too many wait.
///
/// # Errors
///
/// Failures of the database.
pub async fn create(
    conn: &mut PgConnection,
    keys: &AppKeys,
    scopes: Scopes,
    address: &str,
) -> Result<Option<DeviceCode>> {
    let (id, secret) = (Uuid::now_v7(), service::random::token_secret());
    let secret_hash = &keys.hash(AppSecret::Device, &secret);
    loop {
        let user_code = service::random::code::<LENGTH>(LETTERS);
        let device = NewDevice { id, secret_hash, user_code: &user_code, scopes, address };
        match db::devices::create(conn, &device).await? {
            DeviceCreated::Done => {
                return Ok(Some(DeviceCode { device_code: format!("cbd_{id}.{secret}"), user_code }));
            }
            DeviceCreated::CodeTaken => {}
            DeviceCreated::TooMany => return Ok(None),
        }
    }
}

/// A user code as it is stored, from what a person typed; `None` if it is none.
pub fn parse_user_code(typed: &str) -> Option<String> {
    let is_separator = |letter: &char| *letter == '-' || letter.is_whitespace();
    let code: String = typed.chars().filter(|letter| !is_separator(letter)).map(|it| it.to_ascii_uppercase()).collect();
    let is_code = code.len() == LENGTH && code.bytes().all(|letter| LETTERS.contains(&letter));
    is_code.then_some(code)
}

/// What a program is told about its device code. It must be committed.
#[derive(Debug, PartialEq, Eq)]
pub enum Polled {
    /// Nobody has decided.
    Pending,
    /// Nobody has decided, and the program asks too often.
    TooEarly,
    /// A person denied access.
    Denied,
    /// Nobody has decided in time, or the program has not asked in time after the decision.
    Expired,
    /// The outcome of an exchange.
    Outcome(Outcome),
}

/// Judges a device code that its program presents, and exchanges it if a person allowed access.
///
/// # Errors
///
/// Failures of the database.
pub async fn poll(
    conn: &mut PgConnection,
    keys: &AppKeys,
    (lifetimes, origin): (Lifetimes, &Origin),
    code: Presented<'_>,
    client_id: &str,
) -> Result<Polled> {
    let (id, secret) = code;
    let Some(device) = db::devices::lock_device(conn, id).await? else {
        return Ok(Polled::Outcome(Outcome::Refused));
    };
    if !keys.verify(AppSecret::Device, secret, &device.secret_hash) {
        return Ok(Polled::Outcome(Outcome::Refused));
    }
    match device.is_allowed {
        Some(true) => {
            let by_device = Exchange { code, client_id, proof: Proof::Device };
            Ok(match exchange(conn, keys, (lifetimes, origin), &by_device).await? {
                Outcome::Refused => Polled::Expired,
                outcome => Polled::Outcome(outcome),
            })
        }
        Some(false) => Ok(Polled::Denied),
        None if !device.is_waiting => Ok(Polled::Expired),
        None => {
            db::devices::record_poll(conn, id, device.is_early).await?;
            Ok(if device.is_early { Polled::TooEarly } else { Polled::Pending })
        }
    }
}

/// Lets the program of a device code have what a person allowed.
///
/// # Errors
///
/// The rules of budgets.
pub async fn allow(
    conn: &mut PgConnection,
    actor: &Actor,
    device: &WaitingDevice,
    allowed: &Allowed<'_>,
) -> Result<()> {
    grant(conn, actor, allowed, (device.id, &device.secret_hash), None).await?;
    Ok(db::devices::decide(conn, device.id, true).await?)
}

/// Records that a person denied access to the program of a device code.
///
/// # Errors
///
/// Failures of the database.
pub async fn deny(conn: &mut PgConnection, actor: &Actor, account: &AccountUid, device: &WaitingDevice) -> Result<()> {
    db::devices::decide(conn, device.id, false).await?;
    Ok(audit::write(conn, actor, Some(account), &Event::AppDenied {}).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_code_is_read_as_people_type_it() {
        for typed in ["BCDFGHJK", "bcdf-ghjk", " bcdf ghjk ", "B-C-D-F-G-H-J-K"] {
            assert_eq!(parse_user_code(typed).as_deref(), Some("BCDFGHJK"), "{typed}");
        }
        for wrong in ["", "BCDFGHJ", "BCDFGHJKL", "BCDFGHJA", "BCDFGHJ1", "BCDFGHJ\u{130}", "BCDF_GHJK"] {
            assert_eq!(parse_user_code(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_new_user_code_is_one() {
        let code = service::random::code::<LENGTH>(LETTERS);
        assert_eq!(parse_user_code(&code), Some(code));
    }
}
