//! The skeleton of every write that an idempotency key makes repeatable.
//!
//! **Guarantee.** What a command writes and the outcome of its key are committed together or not at all, and once for each key: of
//! concurrent equal requests one executes, and the others return its outcome. A rejected command takes no key.
//!
//! **Mechanism.** [`run`] executes one transaction: what the command addresses, key, the command, outcome. The insert of the key
//! waits for a concurrent request with the same key. A command that writes to a canvas begins with [`CanvasWrite::lock_checked`]; the
//! locks for it are taken in the common order (docs/reliability.md#lock-order) by the statement that inserts the key. A
//! transaction that PostgreSQL aborted to resolve a deadlock is run again. A command that knows what it will write may do all of
//! this in one statement ([`Command::try_single_statement`]), which writes nothing where a check would fail.
//!
//! **Reason.** The order of the checks is part of the contract (docs/reference/conventions.md#order-of-checks), and each statement
//! under a lock is a round trip that other writers wait for.

use ::canvas::Footprint;
use db::idempotency::{NewKey, Taken};
use db::{PgConnection, PgPool};
use domain::canvas::{AccessRole, CanvasRecord, ConcurrentChanges};
use domain::id::{AccountUid, CanvasHandle};
use domain::idempotency::{Fingerprint, StoredOutcome};
use domain::problem::ErrorReason;
use uuid::Uuid;

use crate::{Error, Result};

/// Attempts of one transaction.
const ATTEMPTS_MAX: usize = 5;

/// An idempotency key, bound to the request by its fingerprint.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The key, unique within the account.
    pub text: &'a str,
    /// Digest of the request.
    pub fingerprint: &'a Fingerprint,
}

/// An outcome that is known before the command executes, because it is an id. It is stored together with the key, which saves a
/// statement.
#[derive(Clone, Debug)]
pub struct KnownOutcome {
    pub outcome: StoredOutcome,
    /// Id of the job or import, by which the key is found after that record was removed.
    pub record: Option<Uuid>,
}

/// A write that an idempotency key makes repeatable.
pub trait Command: Sync {
    /// The object besides a canvas that the command addresses, such as a Recipe.
    type Subject: Send;
    /// The reply to the caller.
    type Reply: Send;

    /// The account that the command acts for.
    fn account(&self) -> &AccountUid;

    /// The key; `None`: the command is not repeatable.
    fn key(&self) -> Option<Key<'_>>;

    /// The outcome of the key, if it is known beforehand.
    fn known_outcome(&self) -> Option<KnownOutcome> {
        None
    }

    /// The channels on which its commit is announced (`domain::channel`): those of all it changes that clients can follow.
    fn channels(&self) -> Vec<String>;

    /// Looks up what the command addresses. This precedes replays, which are refused to an account that lost access.
    fn authorize(&self, conn: &mut PgConnection) -> impl Future<Output = Result<Self::Subject>> + Send;

    /// Checks access to what `execute` and `replay` alone look up. This precedes the conflict of a key, which nobody without
    /// access learns of, and a response that the client rejects.
    fn check_access(&self, _: &mut PgConnection) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// The canvas that `execute` locks before anything else, so that it can be locked together with the key.
    fn writes_to(&self) -> Option<CanvasWrite<'_>> {
        None
    }

    /// Executes and commits the command in one statement, in the common case that all it has to read is in memory. `None`: nothing
    /// was written, and the transaction decides.
    fn try_single_statement(&self, _: &PgPool) -> impl Future<Output = Result<Option<Self::Reply>>> + Send {
        async { Ok(None) }
    }

    /// Checks the command against stored state and writes. `locked` is the canvas of `writes_to`, to be passed to
    /// [`CanvasWrite::lock_checked`].
    fn execute(
        &self,
        conn: &mut PgConnection,
        subject: Self::Subject,
        locked: Option<LockedCanvas>,
    ) -> impl Future<Output = Result<Self::Reply>> + Send;

    /// The outcome to store with the key, unless it was known beforehand.
    fn outcome(&self, reply: &Self::Reply) -> Option<StoredOutcome>;

    /// The reply to an equal, later request: the stored outcome with the state as it is now.
    fn replay(
        &self,
        conn: &mut PgConnection,
        outcome: StoredOutcome,
    ) -> impl Future<Output = Result<Self::Reply>> + Send;
}

/// Runs a command to its end. `announce` receives its channels once it has committed; a replay commits nothing.
///
/// # Errors
///
/// The first check that fails.
pub async fn run<C: Command>(pool: &PgPool, command: &C, announce: impl FnOnce(Vec<String>)) -> Result<C::Reply> {
    let (reply, is_new) = match command.try_single_statement(pool).await? {
        Some(reply) => (reply, true),
        None => retrying(|| attempt(pool, command)).await?,
    };
    if is_new {
        announce(command.channels());
    }
    Ok(reply)
}

/// The reply that a command gives to a repetition of an earlier, equal request; `None` if it would execute. Writes nothing.
///
/// # Errors
///
/// The first check that fails, as for [`run`].
pub async fn replay<C: Command>(pool: &PgPool, command: &C) -> Result<Option<C::Reply>> {
    retrying(async || {
        let mut transaction = db::pool::begin(pool).await?;
        let conn = &mut *transaction;
        command.authorize(conn).await?;
        match take_key(conn, command).await? {
            KeyOutcome::Replay(outcome) => command.replay(conn, outcome).await.map(Some),
            KeyOutcome::Execute(_) => command.check_access(conn).await.map(|()| None),
        }
    })
    .await
}

/// Runs a transaction, and again when PostgreSQL aborted it to resolve a deadlock.
pub async fn retrying<T, F: Future<Output = Result<T>>>(mut attempt: impl FnMut() -> F) -> Result<T> {
    for _ in 1..ATTEMPTS_MAX {
        match attempt().await {
            Err(error) if error.is_transient() => {
                tracing::info!("transaction aborted to resolve a deadlock, retrying");
            }
            done => return done,
        }
    }
    attempt().await
}

/// Returns the reply, and whether it was executed now.
async fn attempt<C: Command>(pool: &PgPool, command: &C) -> Result<(C::Reply, bool)> {
    let mut transaction = db::pool::begin(pool).await?;
    let conn = &mut *transaction;
    let subject = command.authorize(conn).await?;
    let locked = match take_key(conn, command).await? {
        KeyOutcome::Execute(locked) => locked.map(|locked| *locked),
        // The transaction has written nothing and is rolled back.
        KeyOutcome::Replay(outcome) => return Ok((command.replay(conn, outcome).await?, false)),
    };
    let reply = command.execute(conn, subject, locked).await?;
    if let (Some(key), Some(outcome)) = (command.key(), command.outcome(&reply)) {
        db::idempotency::store(conn, command.account(), key.text, &outcome).await?;
    }
    db::pool::commit(transaction).await?;
    Ok((reply, true))
}

/// The next step, given the state of a command's key.
enum KeyOutcome {
    /// The key is new: the command executes. Its canvas may be locked already.
    Execute(Option<Box<LockedCanvas>>),
    /// An equal, earlier request had this outcome.
    Replay(StoredOutcome),
}

/// Takes the command's key, and locks its canvas where the key is new.
async fn take_key<C: Command>(conn: &mut PgConnection, command: &C) -> Result<KeyOutcome> {
    let Some(Key { text, fingerprint }) = command.key() else { return Ok(KeyOutcome::Execute(None)) };
    let known = command.known_outcome();
    let (outcome, job) = known.as_ref().map_or((None, None), |known| (Some(&known.outcome), known.record));
    let key = NewKey { account: command.account(), text, fingerprint, outcome, job };
    let (taken, locked) = match command.writes_to() {
        Some(target) if target.locks != Locks::None => target.lock_with_key(conn, &key).await?,
        _ => (db::idempotency::take(conn, &key).await?, None),
    };
    match taken {
        Taken::Fresh => Ok(KeyOutcome::Execute(locked.map(Box::new))),
        Taken::Replay(outcome) => Ok(KeyOutcome::Replay(outcome)),
        Taken::Conflict => {
            command.check_access(conn).await?;
            Err(Error::Conflict(ErrorReason::IdempotencyKey, "the idempotency key was used for a different request"))
        }
    }
}

/// The rows that a write to a canvas locks before it executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locks {
    /// None: for dry runs, which write nothing.
    None,
    Canvas,
    /// The account, then the canvas: for commands that reserve credit or start work.
    AccountAndCanvas,
}

/// The revision that a request is based on.
#[derive(Clone, Debug)]
pub struct Base {
    pub revision: String,
    /// `true` if an earlier revision than the present one is accepted when nothing that the request reads or writes changed since
    /// (docs/reference/conventions.md#stale-revisions).
    pub lenient: bool,
}

impl Base {
    /// Accepts the present revision, for which the result is `None`, or an earlier one, as far as `footprint` allows.
    ///
    /// # Errors
    ///
    /// [`Error::Stale`].
    pub async fn check(
        &self,
        conn: &mut PgConnection,
        canvas: &CanvasRecord,
        footprint: &Footprint,
    ) -> Result<Option<StaleBase>> {
        if self.revision == canvas.revision {
            return Ok(None);
        }
        let changes = db::canvases::concurrent_changes(conn, canvas.key, &self.revision).await?;
        match changes.map(|changes| StaleBase { revision: self.revision.clone(), changes }) {
            Some(stale) if self.lenient => stale.admit(canvas, footprint).map(|()| Some(stale)),
            stale => Err(Error::Stale {
                canvas: Box::new(canvas.clone()),
                base_revision: self.revision.clone(),
                changed_nodes: stale.map(|stale| footprint.conflict(&stale.changes).unwrap_or_default()),
            }),
        }
    }
}

/// An earlier revision that a request is based on, and what changed since.
#[derive(Debug)]
pub struct StaleBase {
    revision: String,
    changes: ConcurrentChanges,
}

impl StaleBase {
    /// Requires that nothing in `footprint` changed: for what is known to be read only later.
    ///
    /// # Errors
    ///
    /// [`Error::Stale`].
    pub fn admit(&self, canvas: &CanvasRecord, footprint: &Footprint) -> Result<()> {
        match footprint.conflict(&self.changes) {
            None => Ok(()),
            changed_nodes => Err(Error::Stale {
                canvas: Box::new(canvas.clone()),
                base_revision: self.revision.clone(),
                changed_nodes,
            }),
        }
    }
}

/// A write to a canvas, and the condition for it.
#[derive(Clone, Copy, Debug)]
pub struct CanvasWrite<'a> {
    /// The account that writes.
    pub account: &'a AccountUid,
    pub canvas: &'a CanvasHandle,
    /// Revision that the write is based on; `None` for a write that only adds.
    pub base: Option<&'a Base>,
    /// Rows to lock.
    pub locks: Locks,
}

/// A canvas whose row the transaction has locked, unless it is a dry run, and the account's role on it.
#[derive(Debug)]
pub struct LockedCanvas {
    pub record: CanvasRecord,
    /// The account's role, which allows writes.
    pub role: AccessRole,
    /// The revision that the write is based on, if it is an earlier one.
    pub stale_base: Option<StaleBase>,
}

impl LockedCanvas {
    /// Nodes and connections of a locked canvas have their refs.
    async fn new(conn: &mut PgConnection, locks: Locks, found: Option<(CanvasRecord, AccessRole)>) -> Result<Self> {
        let (mut record, role) = writable(found)?;
        if locks != Locks::None {
            db::canvases::ensure_refs(conn, &mut record).await?;
        }
        Ok(Self { record, role, stale_base: None })
    }

    /// Requires that nothing in `footprint` changed since the revision that the write is based on.
    ///
    /// # Errors
    ///
    /// [`Error::Stale`].
    pub fn admit(&self, footprint: &Footprint) -> Result<()> {
        self.stale_base.as_ref().map_or(Ok(()), |stale| stale.admit(&self.record, footprint))
    }
}

impl CanvasWrite<'_> {
    /// Locks the rows unless `locked` is the canvas already, and checks role and revision. `footprint` is what is known by now of
    /// what the write depends on; pass the rest to [`LockedCanvas::admit`].
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] when the account cannot see the canvas, [`Error::Forbidden`] for a viewer, [`Error::Stale`] for another
    /// revision.
    pub async fn lock_checked(
        &self,
        conn: &mut PgConnection,
        locked: Option<LockedCanvas>,
        footprint: &Footprint,
    ) -> Result<LockedCanvas> {
        let mut canvas = match locked {
            Some(locked) => locked,
            None => self.lock(conn).await?,
        };
        if let Some(base) = self.base {
            canvas.stale_base = base.check(conn, &canvas.record, footprint).await?;
        }
        Ok(canvas)
    }

    /// Locks the rows and checks the role, whatever the revision: for replays that read the graph, which must be of one revision.
    pub async fn lock(&self, conn: &mut PgConnection) -> Result<LockedCanvas> {
        let locked = match self.locks {
            Locks::None => db::canvases::find(conn, self.account, self.canvas).await?,
            Locks::Canvas => db::canvases::lock(conn, self.account, self.canvas).await?,
            Locks::AccountAndCanvas => db::canvases::lock_with_account(conn, self.account, self.canvas).await?,
        };
        LockedCanvas::new(conn, self.locks, locked).await
    }

    /// Takes a key. If it is new, locks the rows as well, and checks the role.
    async fn lock_with_key(&self, conn: &mut PgConnection, key: &NewKey<'_>) -> Result<(Taken, Option<LockedCanvas>)> {
        let with_account = self.locks == Locks::AccountAndCanvas;
        match db::idempotency::take_and_lock(conn, key, self.canvas, with_account).await? {
            (Taken::Fresh, locked) => Ok((Taken::Fresh, Some(LockedCanvas::new(conn, self.locks, locked).await?))),
            (taken, _) => Ok((taken, None)),
        }
    }

    /// Checks the role without a lock: for replays that read no graph.
    pub async fn check_access(&self, conn: &mut PgConnection) -> Result<CanvasRecord> {
        writable(db::canvases::find(conn, self.account, self.canvas).await?).map(|(record, _)| record)
    }
}

/// Requires a canvas that the account can see and may write to.
fn writable(found: Option<(CanvasRecord, AccessRole)>) -> Result<(CanvasRecord, AccessRole)> {
    match found.ok_or(Error::NotFound("canvas"))? {
        (_, role) if !role.may_write() => Err(Error::Forbidden("a viewer of a canvas may not change it")),
        found => Ok(found),
    }
}
