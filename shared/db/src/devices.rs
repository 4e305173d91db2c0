//! Device codes: programs without a browser that wait for a person's decision (docs/reference/oauth.md#device-authorization).
//!
//! **Guarantee.** At most [`DEVICES_MAX`] codes wait, whoever asks for them. An account that typed [`DEVICE_MISSES_MAX`] wrong codes within
//! an hour can try no other one.
//!
//! **Mechanism.** Creations take turns. The account is locked while a code that it typed is looked up.

use domain::Timestamp;
use domain::account::Scopes;
use domain::id::AccountUid;
use domain::limits::{DEVICE_INTERVAL, DEVICE_INTERVAL_MAX, DEVICE_MISSES_MAX, DEVICE_SECONDS, DEVICES_MAX};
use sqlx::PgConnection;
use tracing::instrument;
use uuid::Uuid;

use crate::Result;
use crate::accounts::{lock, scopes};

/// Seconds by which a request may come early.
const EARLY_SECONDS: i32 = 1;

/// A device code to create.
pub struct NewDevice<'a> {
    /// Its id, and later that of the grant.
    pub id: Uuid,
    /// Keyed hash of its secret.
    pub secret_hash: &'a [u8],
    /// What the person types.
    pub user_code: &'a str,
    /// What the program asks for.
    pub scopes: Scopes,
    /// Where it asks from.
    pub address: &'a str,
}

/// Result of creating a device code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceCreated {
    /// It was created.
    Done,
    /// Another one has this user code.
    CodeTaken,
    /// Too many wait.
    TooMany,
}

/// Creates a device code.
#[instrument(skip_all, name = "db.device.create")]
pub async fn create(conn: &mut PgConnection, device: &NewDevice<'_>) -> Result<DeviceCreated> {
    sqlx::query!("SELECT pg_advisory_xact_lock(hashtext('canvas.oauth.devices'))").execute(&mut *conn).await?;
    let waiting = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM oauth_devices WHERE is_allowed IS NULL AND until > clock_timestamp()"#
    );
    if waiting.fetch_one(&mut *conn).await? >= DEVICES_MAX {
        return Ok(DeviceCreated::TooMany);
    }
    let scopes: Vec<String> = device.scopes.iter().map(|scope| scope.to_string()).collect();
    let created = sqlx::query!(
        "INSERT INTO oauth_devices (id, secret_hash, user_code, scopes, address, until, interval_seconds)
         VALUES ($1, $2, $3, $4, $5, clock_timestamp() + make_interval(secs => $6), $7) ON CONFLICT (user_code) DO NOTHING",
        device.id,
        device.secret_hash,
        device.user_code,
        &scopes,
        device.address,
        f64::from(DEVICE_SECONDS),
        DEVICE_INTERVAL.cast_signed(),
    )
    .execute(conn)
    .await?;
    Ok(if created.rows_affected() == 1 { DeviceCreated::Done } else { DeviceCreated::CodeTaken })
}

/// A device code that its program presents.
#[derive(Debug)]
pub struct Device {
    /// Keyed hash of its secret.
    pub secret_hash: Vec<u8>,
    /// `true` if nobody has decided and there is still time to.
    pub is_waiting: bool,
    /// What a person has decided.
    pub is_allowed: Option<bool>,
    /// `true` if the program asks too early after the last time.
    pub is_early: bool,
}

/// Reads a device code, which stays locked until the transaction ends.
#[instrument(skip_all, name = "db.device.lock")]
pub async fn lock_device(conn: &mut PgConnection, id: Uuid) -> Result<Option<Device>> {
    let device = sqlx::query_as!(
        Device,
        r#"SELECT secret_hash, is_allowed, (is_allowed IS NULL AND until > clock_timestamp()) AS "is_waiting!",
                  coalesce(polled_at > clock_timestamp() - make_interval(secs => interval_seconds - $2), false) AS "is_early!"
           FROM oauth_devices WHERE id = $1 FOR UPDATE"#,
        id,
        EARLY_SECONDS
    );
    Ok(device.fetch_optional(conn).await?)
}

/// Records that the program of a device code asked. One that asked too early has to wait longer from now on.
#[instrument(skip_all, name = "db.device.record_poll")]
pub async fn record_poll(conn: &mut PgConnection, id: Uuid, is_early: bool) -> Result<()> {
    sqlx::query!(
        "UPDATE oauth_devices SET polled_at = clock_timestamp(),
                interval_seconds = CASE WHEN $2 THEN least(interval_seconds + $3, $4) ELSE interval_seconds END
         WHERE id = $1",
        id,
        is_early,
        DEVICE_INTERVAL.cast_signed(),
        DEVICE_INTERVAL_MAX.cast_signed(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A device code that waits for a person.
#[derive(Debug)]
pub struct WaitingDevice {
    /// Its id.
    pub id: Uuid,
    /// Keyed hash of its secret.
    pub secret_hash: Vec<u8>,
    /// What its program asks for.
    pub scopes: Scopes,
    /// Where it asks from.
    pub address: String,
    /// When it asked.
    pub created_at: Timestamp,
}

/// Result of looking a user code up. It must be committed: a miss counts.
#[derive(Debug)]
pub enum Lookup {
    /// The device code, which stays locked until the transaction ends.
    Found(WaitingDevice),
    /// None waits with this user code.
    Missed,
    /// The account has typed too many wrong ones, and may try again after so many seconds.
    Locked(u64),
}

/// Looks up what waits with a user code that the person of an account typed. Locks the account.
#[instrument(skip_all, name = "db.device.look_up")]
pub async fn look_up(conn: &mut PgConnection, account: &AccountUid, user_code: &str) -> Result<Lookup> {
    lock(&mut *conn, account).await?;
    // In an hour from the oldest of the last ten misses, there are less.
    let locked = sqlx::query_scalar!(
        r#"SELECT ceil(extract(epoch FROM at + interval '1 hour' - clock_timestamp()))::bigint AS "seconds!" FROM device_misses
           WHERE account_uid = $1 AND at > clock_timestamp() - interval '1 hour' ORDER BY at DESC OFFSET $2 LIMIT 1"#,
        account.as_str(),
        DEVICE_MISSES_MAX - 1
    );
    if let Some(seconds) = locked.fetch_optional(&mut *conn).await? {
        return Ok(Lookup::Locked(seconds.unsigned_abs()));
    }
    let device = sqlx::query!(
        "SELECT id, secret_hash, scopes, address, created_at FROM oauth_devices
         WHERE user_code = $1 AND is_allowed IS NULL AND until > clock_timestamp() FOR UPDATE",
        user_code
    );
    let Some(device) = device.fetch_optional(&mut *conn).await? else {
        sqlx::query!("INSERT INTO device_misses (account_uid) VALUES ($1)", account.as_str()).execute(conn).await?;
        return Ok(Lookup::Missed);
    };
    Ok(Lookup::Found(WaitingDevice {
        id: device.id,
        secret_hash: device.secret_hash,
        scopes: scopes(&device.scopes)?,
        address: device.address,
        created_at: device.created_at.into(),
    }))
}

/// Records what a person has decided about a locked device code.
#[instrument(skip_all, name = "db.device.decide")]
pub async fn decide(conn: &mut PgConnection, id: Uuid, is_allowed: bool) -> Result<()> {
    sqlx::query!("UPDATE oauth_devices SET is_allowed = $2 WHERE id = $1", id, is_allowed).execute(conn).await?;
    Ok(())
}

/// Deletes device codes ten minutes after their end, and wrong user codes that do not count any more.
#[instrument(skip_all, name = "db.device.sweep")]
pub async fn sweep(conn: &mut PgConnection) -> Result<()> {
    sqlx::query!("DELETE FROM oauth_devices WHERE until < now() - interval '10 minutes'").execute(&mut *conn).await?;
    sqlx::query!("DELETE FROM device_misses WHERE at < now() - interval '1 hour'").execute(conn).await?;
    Ok(())
}
