//! The audit of the gateway: who acts in a request, refused sign-ins, and the task that seals and drops
//! (docs/reference/administration.md#audit).

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::FromRequestParts;
use db::audit::seal;
use db::audit::{Actor, Event, Origin, Refused, write, write_refusal};
use domain::id::AccountUid;
use http::header::USER_AGENT;
use http::request::Parts;
use service::chain;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::address::ClientAddress;
use crate::problem::Result;
use crate::state::App;

/// Longest name of a client that is kept, in characters.
const CLIENT_MAX: usize = 200;
/// Interval between seals.
const SEALED_EVERY: Duration = Duration::from_secs(60);
/// Rows that are deleted with one statement.
const BATCH: i64 = 1000;

/// The id of a request, in its extensions.
#[derive(Clone, Copy)]
pub struct RequestId(pub Uuid);

/// Where the request of a handler comes from.
pub struct Origined(pub Origin);

impl<S: Sync> FromRequestParts<S> for Origined {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(origin(parts)))
    }
}

/// Where a request comes from.
pub fn origin(parts: &Parts) -> Origin {
    Origin {
        request: parts.extensions.get().map_or_else(Uuid::now_v7, |RequestId(id)| *id),
        address: ClientAddress::from_extensions(&parts.extensions).to_string(),
        client: client(parts),
    }
}

/// The client of a request, as it names itself.
pub fn client(parts: &Parts) -> Option<String> {
    let agent = parts.headers.get(USER_AGENT)?.to_str().ok()?;
    Some(agent.chars().take(CLIENT_MAX).collect())
}

/// Refusals of the present minute that get no row any more. Memory of it is bounded: each address has had [`db::audit::REFUSALS_OF_ADDRESS`]
/// rows of the [`db::audit::REFUSALS`] before it is in here.
#[derive(Default)]
pub struct Refusals(Mutex<Capped>);

#[derive(Default)]
struct Capped {
    /// Until when no refusal gets a row.
    all: Option<Instant>,
    /// Until when refusals of an address get no row.
    addresses: HashMap<String, Instant>,
    /// Refusals without a row since they were last reported.
    refusals: u64,
}

impl Capped {
    fn contains(&mut self, address: &str, now: Instant) -> bool {
        self.all = self.all.filter(|until| *until > now);
        self.addresses.retain(|_, until| *until > now);
        self.all.is_some() || self.addresses.contains_key(address)
    }
}

impl Refusals {
    fn lock(&self) -> MutexGuard<'_, Capped> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records that somebody was refused, by itself, up to the caps of a minute.
pub async fn refuse(app: &App, origin: Origin, account: Option<&AccountUid>, event: &Event) {
    {
        let mut capped = app.refused_sign_ins.lock();
        if capped.contains(&origin.address, Instant::now()) {
            capped.refusals += 1;
            return;
        }
    }
    let address = origin.address.clone();
    let written = async {
        let mut transaction = db::pool::begin(&app.pool).await?;
        let written = write_refusal(&mut transaction, &Actor::nobody(origin), account, event).await?;
        db::pool::commit(transaction).await?;
        Ok::<_, db::Error>(written)
    };
    match written.await {
        Ok(Refused::Written) => {}
        Ok(Refused::Capped { of_all, seconds }) => {
            let until = Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 60.0));
            let mut capped = app.refused_sign_ins.lock();
            capped.refusals += 1;
            match of_all {
                true => capped.all = Some(until),
                false => drop(capped.addresses.insert(address, until)),
            }
        }
        Err(error) => tracing::warn!(error = chain(&error), event = event.name(), "a refusal was not audited"),
    }
}

/// Seals new rows every minute, and once more at the end.
pub async fn keep(app: App, stopping: CancellationToken) {
    let mut goes_on = true;
    while goes_on {
        goes_on = stopping.run_until_cancelled(tokio::time::sleep(SEALED_EVERY)).await.is_some();
        if let Err(error) = seal_all(&app).await {
            tracing::warn!(error = chain(&error), "the audit was not sealed, retrying in a minute");
        }
    }
}

async fn seal_all(app: &App) -> Result<(), db::Error> {
    let mut connection = db::pool::acquire(&app.pool).await?;
    let refusals = app.refused_sign_ins.lock().refusals;
    if refusals > 0 {
        write(&mut connection, &Actor::system(), None, &Event::RefusalsCapped { refusals }).await?;
        app.refused_sign_ins.lock().refusals -= refusals;
    }
    seal_rows(&mut connection, &app.keys).await
}

/// Seals all rows that no seal names, and says so in the log, where who can write the database does not reach it.
pub async fn seal_rows(conn: &mut db::PgConnection, keys: &service::keys::DerivedKeys) -> Result<(), db::Error> {
    let mut transaction = db::pool::begin_on(conn).await?;
    let seals = seal::all(&mut transaction, &|rows| keys.audit_seal(rows)).await?;
    db::pool::commit(transaction).await?;
    for sealed in seals {
        tracing::info!(seal = sealed.id, rows = sealed.rows, head = hex(&sealed.head), "audit sealed");
    }
    Ok(())
}

/// Drops the months and the addresses that are kept no longer.
pub async fn sweep(app: &App, conn: &mut db::PgConnection) -> Result<(), db::Error> {
    let days = |days: u32| i32::try_from(days).unwrap_or(i32::MAX);
    if app.config.audit_days > 0 {
        let mut transaction = db::pool::begin_on(conn).await?;
        let before =
            seal::drop_months(&mut transaction, &|rows| app.keys.audit_seal(rows), days(app.config.audit_days)).await?;
        db::pool::commit(transaction).await?;
        if let Some(before) = before {
            while seal::sweep(conn, before, BATCH).await? == BATCH.unsigned_abs() {}
        }
    }
    if app.config.audit_address_days > 0 {
        let days = days(app.config.audit_address_days);
        while db::audit::sweep_origins(conn, days, BATCH).await? == BATCH.unsigned_abs() {}
    }
    Ok(())
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_capped_ends_with_the_minute() {
        let (now, mut capped) = (Instant::now(), Capped::default());
        let second = Duration::from_secs(1);
        assert!(!capped.contains("a", now));
        capped.addresses.insert("a".into(), now + second);
        assert!(capped.contains("a", now) && !capped.contains("b", now));
        capped.all = Some(now + 2 * second);
        assert!(capped.contains("b", now) && capped.contains("a", now + second));
        assert!(!capped.contains("a", now + 2 * second) && capped.addresses.is_empty());
    }
}
