//! What can go wrong with the database.

/// A failure of the database, or a row that does not read back as what was written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The statement or the connection failed.
    #[error("database statement failed")]
    Sql(#[from] sqlx::Error),
    /// The migrations failed.
    #[error("database migration failed")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// A stored value is none that this build knows.
    #[error("stored value of {column} is unknown: {value}")]
    Unreadable {
        /// Table and column.
        column: &'static str,
        /// What was found.
        value: String,
    },
}

/// The result of a database function.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The name of the constraint that refused a write, if one did.
    pub fn constraint(&self) -> Option<&str> {
        match self {
            Error::Sql(sqlx::Error::Database(error)) => error.constraint(),
            _ => None,
        }
    }

    /// Whether Postgres could not be reached or asked, as against having refused.
    pub fn is_outage(&self) -> bool {
        match self {
            Error::Sql(
                sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Tls(_),
            ) => true,
            // Class 57: shutting down or starting up; class 53: out of connections or disk.
            Error::Sql(sqlx::Error::Database(error)) => {
                error.code().is_some_and(|code| code.starts_with("57P") || code.starts_with("53"))
            }
            _ => false,
        }
    }

    /// Whether the transaction may simply be run again: a deadlock or a serialization failure.
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::Sql(sqlx::Error::Database(error)) if matches!(error.code().as_deref(), Some("40P01" | "40001")))
    }
}

/// Reads a stored name back.
pub(crate) fn known<T: std::str::FromStr>(column: &'static str, value: &str) -> Result<T> {
    value.parse().map_err(|_| Error::Unreadable { column, value: value.to_owned() })
}
