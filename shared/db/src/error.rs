//! What can go wrong with the database.

use sqlx::migrate::MigrateError;

/// A failure of the database, or a row that does not read back as what was written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The statement or the connection failed.
    #[error("database statement failed")]
    Sql(#[source] sqlx::Error),
    /// The migrations failed.
    #[error("database migration failed")]
    Migrate(#[from] MigrateError),
    /// The database did not answer in time; what was asked of it may have taken place.
    #[error("the database did not answer in time")]
    Timeout,
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

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let error = Error::Sql(error);
        if error.is_outage() {
            crate::pool::note_trouble();
        }
        error
    }
}

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
            Error::Timeout => true,
            other => match other.statement() {
                // A server that goes away in the midst of a greeting, or a proxy before one that is away, breaks the protocol.
                Some(
                    sqlx::Error::Io(_)
                    | sqlx::Error::PoolTimedOut
                    | sqlx::Error::PoolClosed
                    | sqlx::Error::Protocol(_)
                    | sqlx::Error::Tls(_),
                ) => true,
                // Class 57: shutting down, starting up or out of time for a statement; class 53: out of connections or disk;
                // 55P03 and 25P03: out of time for a lock and for a transaction.
                Some(sqlx::Error::Database(error)) => error.code().is_some_and(|code| {
                    code.starts_with("57") || code.starts_with("53") || matches!(&*code, "55P03" | "25P03")
                }),
                _ => false,
            },
        }
    }

    /// The SQLSTATE that Postgres refused with.
    fn code(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.statement()?.as_database_error()?.code()
    }

    /// What a statement failed with, be it one of a migration.
    fn statement(&self) -> Option<&sqlx::Error> {
        match self {
            Error::Sql(error)
            | Error::Migrate(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) => Some(error),
            _ => None,
        }
    }

    /// Whether a table is not there: the database was not migrated yet.
    pub fn is_undefined_table(&self) -> bool {
        self.code().as_deref() == Some("42P01")
    }

    /// Whether the connection was found to be lost, as all are after a restart of the server: on another one the same
    /// statement may well succeed. It may also have taken place.
    pub fn is_connection_lost(&self) -> bool {
        match self {
            Error::Sql(sqlx::Error::Io(_)) => true,
            // Ended by an administrator or by the crash of another backend (PostgreSQL manual, Appendix A).
            Error::Sql(sqlx::Error::Database(error)) => matches!(error.code().as_deref(), Some("57P01" | "57P02")),
            _ => false,
        }
    }

    /// Whether a stored value does not read back: whoever asks again gets the same answer.
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Error::Unreadable { .. } | Error::Sql(sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)))
    }

    /// Whether the transaction may simply be run again: a deadlock or a serialization failure.
    pub fn is_transient(&self) -> bool {
        matches!(self.code().as_deref(), Some("40P01" | "40001"))
    }
}

/// Reads a stored name back.
pub(crate) fn known<T: std::str::FromStr>(column: &'static str, value: &str) -> Result<T> {
    value.parse().map_err(|_| Error::Unreadable { column, value: value.to_owned() })
}
