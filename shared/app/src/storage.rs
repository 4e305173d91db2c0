//! Room in the storage of an account (docs/reference/assets.md#storage-quota).
//!
//! **Guarantee.** Whatever adds to a full account is refused, and nothing else is: deletions and moves never ask, and neither do ends of
//! accepted work, but for a video that becomes an asset.
//! **Mechanism.** The function `admit_storage` of the schema decides for all, also within the statement of a batch.

use db::PgConnection;
use db::kept::Kept;
use db::storage::Storage;
use domain::id::AccountUid;
use domain::limits::STORED_MIN;

use crate::{Error, Result};

/// What the results of a start count at least, in bytes. Their sizes are not known yet, and what was accepted is stored.
pub fn of_outputs(outputs: usize) -> i64 {
    i64::try_from(outputs).unwrap_or(i64::MAX).saturating_mul(STORED_MIN)
}

/// What files of these sizes count, in bytes.
pub fn of_files(sizes: impl IntoIterator<Item = i64>) -> i64 {
    sizes.into_iter().map(|bytes| bytes.max(STORED_MIN)).fold(0, i64::saturating_add)
}

/// Where something is to be stored.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The account that will own it.
    pub owner: &'a AccountUid,
    /// The account that asks. Only the owner is told the size of the storage.
    pub caller: &'a AccountUid,
    /// The member of the request that names where it goes.
    pub field: Option<&'static str>,
}

impl Place<'_> {
    /// Requires room for `more` bytes that are stored later.
    ///
    /// # Errors
    ///
    /// [`Error::StorageFull`].
    pub async fn require(self, conn: &mut PgConnection, more: i64) -> Result<()> {
        self.admitted(db::storage::look(conn, self.owner, more).await?)
    }

    /// Requires room for what the transaction is about to store: the answer stays true until it ends.
    ///
    /// # Errors
    ///
    /// [`Error::StorageFull`].
    pub async fn hold(self, conn: &mut PgConnection, more: i64) -> Result<()> {
        self.admitted(db::storage::hold(conn, self.owner, more).await?)
    }

    /// Rejects what found the storage full.
    ///
    /// # Errors
    ///
    /// [`Error::StorageFull`].
    pub fn admitted(self, full: Option<Storage>) -> Result<()> {
        let Self { owner, caller, field } = self;
        full.map_or(Ok(()), |storage| Err(Error::StorageFull { field, own: Some(storage).filter(|_| owner == caller) }))
    }
}

/// Requires that the account may keep one more. `field` is a member of the request. The transaction locks the account.
///
/// # Errors
///
/// [`Error::Unprocessable`].
pub async fn require_fewer(conn: &mut PgConnection, account: &AccountUid, kept: Kept, field: &str) -> Result<()> {
    match db::kept::admits(conn, account, kept).await? {
        true => Ok(()),
        false => {
            let message =
                format!("cannot be added: the account has {} {}, the most that it may have", kept.max(), kept.name());
            Err(Error::unprocessable(field, message))
        }
    }
}
