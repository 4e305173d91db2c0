//! The installation key: created once and encrypted under a key ring of the operator; all other keys derive from it
//! (docs/reference/configuration.md#installation-key).

use service::keys::{DecryptError, DerivedKeys, InstallationKey, KeyRing};

const CONTEXT: &str = "installation";

/// Why the installation key is unavailable.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Database(#[from] db::Error),
    /// No migration has created the key.
    #[error("the database has no installation key: run canvas-gateway migrate")]
    Missing,
    /// The ring does not hold the key that encrypts it, or the encrypted key is damaged.
    #[error("the installation key cannot be decrypted with CANVAS_INSTALLATION_KEYS or CANVAS_MASTER_KEYS")]
    Open(#[source] DecryptError),
    /// The opened key is not 32 bytes long.
    #[error("the installation key is damaged")]
    Damaged,
}

impl Error {
    /// Returns `true` if the key may become available without intervention: the database is unavailable, or its schema or roles
    /// are not there yet.
    pub fn is_temporary(&self) -> bool {
        match self {
            Error::Database(error) => error.is_outage() || error.is_undefined_table() || error.is_forbidden(),
            Error::Missing => true,
            Error::Open(_) | Error::Damaged => false,
        }
    }
}

/// Creates the key unless it exists. Of concurrent calls one takes effect.
pub async fn ensure(connection: &mut db::PgConnection, ring: &KeyRing) -> Result<(), Error> {
    if db::installation::sealed_key(connection).await?.is_none() {
        let encrypted = ring.encrypt(CONTEXT, InstallationKey::generate().as_bytes());
        db::installation::store_if_absent(connection, &encrypted).await?;
    }
    keys(connection, ring).await.map(drop)
}

/// Opens the key and derives all others.
pub async fn keys(connection: &mut db::PgConnection, ring: &KeyRing) -> Result<DerivedKeys, Error> {
    let encrypted = db::installation::sealed_key(connection).await?.ok_or(Error::Missing)?;
    let plain = ring.decrypt(CONTEXT, &encrypted).map_err(Error::Open)?;
    let bytes = <[u8; 32]>::try_from(plain.as_slice()).map_err(|_| Error::Damaged)?;
    Ok(DerivedKeys::derive(&InstallationKey::from_bytes(bytes)))
}

/// Re-encrypts the key under the first key of the ring.
pub async fn rewrap(connection: &mut db::PgConnection, ring: &KeyRing) -> Result<(), Error> {
    let encrypted = db::installation::sealed_key(connection).await?.ok_or(Error::Missing)?;
    if KeyRing::key_id(&encrypted) != Some(ring.primary()) {
        let plain = ring.decrypt(CONTEXT, &encrypted).map_err(Error::Open)?;
        db::installation::reencrypt(connection, &encrypted, &ring.encrypt(CONTEXT, &plain)).await?;
    }
    Ok(())
}
