//! Errors of the database.

use sqlx::migrate::MigrateError;

/// A failure of the database, or a stored row that this build cannot read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The statement or the connection failed.
    #[error("database statement failed")]
    Sql(#[source] sqlx::Error),
    /// The migrations failed.
    #[error("database migration failed")]
    Migrate(#[from] MigrateError),
    /// The database did not answer in time. The statement may have taken effect.
    #[error("the database did not answer in time")]
    Timeout,
    /// A stored value is not known to this build.
    #[error("stored value of {column} is unknown: {value}")]
    Unreadable {
        /// Table and column.
        column: &'static str,
        /// The stored value.
        value: String,
    },
}

/// Result of a database function.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let error = Error::Sql(error);
        // That a lock was not obtained in time says nothing of the connections.
        if error.is_outage() && error.code().as_deref() != Some("55P03") {
            crate::outage::note();
        }
        error
    }
}

impl Error {
    /// Name of the constraint that rejected a write, if any.
    pub fn constraint(&self) -> Option<&str> {
        match self {
            Error::Sql(sqlx::Error::Database(error)) => error.constraint(),
            _ => None,
        }
    }

    /// Returns `true` if Postgres was unreachable or unable to execute statements, as opposed to rejecting one.
    pub fn is_outage(&self) -> bool {
        match self {
            Error::Timeout => true,
            other => match other.statement() {
                // A server that disconnects during the startup handshake, or a proxy in front of an unavailable server,
                // violates the protocol.
                Some(
                    sqlx::Error::Io(_)
                    | sqlx::Error::PoolTimedOut
                    | sqlx::Error::PoolClosed
                    | sqlx::Error::Protocol(_)
                    | sqlx::Error::Tls(_),
                ) => true,
                // Class 57: shutdown, startup or statement timeout. Class 53: out of connections or disk. 55P03 and 25P03: lock
                // and transaction timeout.
                Some(sqlx::Error::Database(error)) => error.code().is_some_and(|code| {
                    code.starts_with("57") || code.starts_with("53") || matches!(&*code, "55P03" | "25P03")
                }),
                _ => false,
            },
        }
    }

    /// The SQLSTATE of the error.
    fn code(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.statement()?.as_database_error()?.code()
    }

    /// The error of the statement, including one of a migration.
    fn statement(&self) -> Option<&sqlx::Error> {
        match self {
            Error::Sql(error)
            | Error::Migrate(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) => Some(error),
            _ => None,
        }
    }

    /// Returns `true` if a table does not exist: the database has not been migrated.
    pub fn is_undefined_table(&self) -> bool {
        self.code().as_deref() == Some("42P01")
    }

    /// Returns `true` if the role does not exist or may not do this: `canvas-gateway migrate` has not made or granted it yet.
    pub fn is_forbidden(&self) -> bool {
        matches!(self.code().as_deref(), Some("42501" | "28P01" | "28000"))
    }

    /// Returns `true` if the connection was lost, as all connections are after a restart of the server. The statement may have taken
    /// effect; on another connection it may well succeed.
    pub fn is_connection_lost(&self) -> bool {
        match self {
            Error::Sql(sqlx::Error::Io(_)) => true,
            // Terminated by an administrator or by the crash of another backend (PostgreSQL manual, Appendix A).
            Error::Sql(sqlx::Error::Database(error)) => matches!(error.code().as_deref(), Some("57P01" | "57P02")),
            _ => false,
        }
    }

    /// Returns `true` if a stored value cannot be read. A retry gets the same result.
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Error::Unreadable { .. } | Error::Sql(sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)))
    }

    /// Returns `true` if the statement cast a text to a type whose form it does not have.
    pub(crate) fn is_failed_cast(&self) -> bool {
        self.code().as_deref() == Some("22P02")
    }

    /// Returns `true` if the transaction can simply be repeated: a deadlock or a serialization failure.
    pub fn is_transient(&self) -> bool {
        matches!(self.code().as_deref(), Some("40P01" | "40001"))
    }
}

/// Parses a stored name.
pub(crate) fn known<T: std::str::FromStr>(column: &'static str, value: &str) -> Result<T> {
    value.parse().map_err(|_| Error::Unreadable { column, value: value.to_owned() })
}
