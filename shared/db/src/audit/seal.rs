//! Seals: a chain of HMACs over the rows of the audit.
//!
//! A row is sealed after its transaction has committed, whatever the order of ids, so that no act waits for another one. A row that was
//! inserted with a time long before the last seal is never sealed, and is reported.

use domain::Timestamp;
use serde_json::json;
use sqlx::PgConnection;
use sqlx::types::chrono::{DateTime, Utc};
use tracing::instrument;
use uuid::Uuid;

use super::{Actor, Detail, Event, write};
use crate::Result;

/// Most rows of one seal.
const ROWS_MAX: i64 = 1000;
/// Seals that are verified with one statement.
const PAGE: i64 = 50;

/// An HMAC under a key that the database does not have.
pub type Mac<'a> = &'a (dyn Fn(&[u8]) -> [u8; 32] + Sync);

/// A row as it is sealed.
struct SealedRow {
    id: i64,
    at: DateTime<Utc>,
    event: String,
    outcome: String,
    actor_uid: Option<String>,
    via: String,
    via_id: Option<String>,
    account_uid: Option<String>,
    request_id: Option<Uuid>,
    details: String,
    origin: Option<Vec<u8>>,
}

impl SealedRow {
    /// One line for each row, in which every column is told from the next.
    fn append_to(&self, message: &mut Vec<u8>) {
        let line = json!([
            self.id,
            self.at.timestamp_millis(),
            self.event,
            self.outcome,
            self.actor_uid,
            self.via,
            self.via_id,
            self.account_uid,
            self.request_id,
            self.details,
            self.origin,
        ]);
        message.extend_from_slice(line.to_string().as_bytes());
        message.push(b'\n');
    }
}

/// What a seal covers: the head before, which is empty for the first seal, the ids, and the rows in their order.
fn message<'a>(head_before: &[u8], ids: &str, rows: impl IntoIterator<Item = &'a SealedRow>) -> Vec<u8> {
    let mut message = vec![u8::from(!head_before.is_empty())];
    message.extend_from_slice(head_before);
    message.extend_from_slice(ids.as_bytes());
    message.push(b'\n');
    rows.into_iter().for_each(|row| row.append_to(&mut message));
    message
}

/// A new seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    /// Its number.
    pub id: i64,
    /// Number of its rows.
    pub rows: usize,
    /// Its head.
    pub head: Vec<u8>,
}

/// Seals all rows that no seal names, in as many seals as they need. There are none when another process is sealing. The lock is held until
/// the transaction ends.
///
/// A row is sealed if it is later than ten minutes before the last seal was made. All seals of a backlog are made in one transaction, so that
/// the first of them does not make the rest of the backlog late, whoever is stopped in between.
#[instrument(skip_all, name = "db.audit.seal")]
pub async fn all(conn: &mut PgConnection, mac: Mac<'_>) -> Result<Vec<Seal>> {
    let locked = sqlx::query_scalar!(r#"SELECT pg_try_advisory_xact_lock(hashtext('canvas.audit.seal')) AS "locked!""#);
    if !locked.fetch_one(&mut *conn).await? {
        return Ok(Vec::new());
    }
    let after = sqlx::query_scalar!("SELECT max(sealed_at) - interval '10 minutes' FROM audit_seals");
    let after = after.fetch_one(&mut *conn).await?;
    let mut seals = Vec::new();
    while let Some(seal) = next(conn, mac, after).await? {
        seals.push(seal);
    }
    Ok(seals)
}

/// Seals the oldest rows after a time that no seal names, at most 1000 of one month.
async fn next(conn: &mut PgConnection, mac: Mac<'_>, after: Option<DateTime<Utc>>) -> Result<Option<Seal>> {
    let rows = sqlx::query_as!(
        SealedRow,
        r#"WITH due AS (
               SELECT a.id, date_trunc('month', a.at, 'UTC') AS month FROM audit a
               WHERE a.at > coalesce($2::timestamptz, '-infinity')
                 AND NOT EXISTS (SELECT FROM audit_seals s WHERE s.ids @> a.id)
           )
           SELECT a.id, a.at, a.event, a.outcome, a.actor_uid, a.via, a.via_id, a.account_uid, a.request_id,
                  a.details::text AS "details!", a.origin
           FROM due JOIN audit a USING (id) WHERE month = (SELECT min(month) FROM due) ORDER BY a.id LIMIT $1"#,
        ROWS_MAX,
        after
    )
    .fetch_all(&mut *conn)
    .await?;
    let Some(at) = rows.iter().map(|row| row.at).max() else { return Ok(None) };
    let named: Vec<i64> = rows.iter().map(|row| row.id).collect();
    let ids = sqlx::query_scalar!(
        r#"SELECT range_agg(int8range(id, id, '[]'))::text AS "ids!" FROM unnest($1::bigint[]) AS id"#,
        &named
    );
    let ids = ids.fetch_one(&mut *conn).await?;
    let before = sqlx::query_scalar!("SELECT head FROM audit_seals ORDER BY id DESC LIMIT 1");
    let before = before.fetch_optional(&mut *conn).await?.unwrap_or_default();
    let head = mac(&message(&before, &ids, &rows)).to_vec();
    let id = sqlx::query_scalar!(
        "INSERT INTO audit_seals (at, ids, rows, head) VALUES ($1, ($2::text)::int8multirange, $3, $4) RETURNING id",
        at,
        ids,
        i64::try_from(rows.len()).unwrap_or(i64::MAX),
        &head
    );
    let id = id.fetch_one(conn).await?;
    Ok(Some(Seal { id, rows: rows.len(), head }))
}

/// What a verification found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Number of rows.
    pub rows: u64,
    /// Number of seals.
    pub seals: u64,
    /// Head of the last seal.
    pub head: Option<Vec<u8>>,
    /// The first contradiction.
    pub first_broken: Option<Broken>,
}

/// Where the audit contradicts its seals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A row of the seal with this number, or its address or client, was changed, is missing, or a seal before it is.
    Seal(i64),
    /// The row with this id was inserted later than it says.
    Row(i64),
}

/// Compares all rows with their seals, and addresses and clients with their rows. Every row that could be sealed is: [`all`] was called
/// before. The transaction reads one snapshot.
#[instrument(skip_all, name = "db.audit.verify")]
pub async fn verify(conn: &mut PgConnection, mac: Mac<'_>) -> Result<Verification> {
    let dropped = dropped_before(conn, mac).await?;
    let mut found = Verification::default();
    let mut last = 0;
    loop {
        let seals = sqlx::query!(
            r#"SELECT id, at, ids::text AS "ids!", lower(ids) AS "first!", upper(ids) AS "end!", rows, head FROM audit_seals
               WHERE id > $1 ORDER BY id LIMIT $2"#,
            last,
            PAGE
        );
        let seals = seals.fetch_all(&mut *conn).await?;
        let Some(newest) = seals.last() else { break };
        last = newest.id;
        for seal in seals {
            found.seals += 1;
            let before = found.head.replace(seal.head.clone());
            // The rows of a dropped month are gone. The head of its last seal is what the next one continues.
            if dropped.is_some_and(|dropped| seal.id <= dropped.seal && seal.at < dropped.before) {
                continue;
            }
            let rows = sqlx::query_as!(
                SealedRow,
                r#"SELECT id, at, event, outcome, actor_uid, via, via_id, account_uid, request_id, details::text AS "details!", origin
                   FROM audit WHERE id >= $1 AND id < $2 AND (($3::text)::int8multirange) @> id ORDER BY id"#,
                seal.first,
                seal.end,
                seal.ids
            );
            let rows = rows.fetch_all(&mut *conn).await?;
            found.rows += rows.len() as u64;
            let foreign = sqlx::query_scalar!(
                r#"SELECT EXISTS (
                       SELECT FROM audit a JOIN audit_origins o ON o.audit_id = a.id
                       WHERE a.id >= $1 AND a.id < $2 AND (($3::text)::int8multirange) @> a.id AND a.origin IS DISTINCT FROM
                           sha256(uuid_send(o.salt) || convert_to(concat(o.address, chr(10), o.client), 'UTF8'))
                   ) AS "foreign!""#,
                seal.first,
                seal.end,
                seal.ids
            );
            let is_foreign = foreign.fetch_one(&mut *conn).await?;
            let expected = mac(&message(&before.unwrap_or_default(), &seal.ids, &rows));
            let is_right =
                !is_foreign && expected.as_slice() == seal.head && i64::try_from(rows.len()) == Ok(seal.rows);
            if !is_right && found.first_broken.is_none() {
                found.first_broken = Some(Broken::Seal(seal.id));
            }
        }
    }
    let unsealed = sqlx::query!(
        r#"SELECT count(*) AS "rows!",
                  min(id) FILTER (WHERE at <= (SELECT max(sealed_at) - interval '10 minutes' FROM audit_seals)) AS late
           FROM audit a
           WHERE at >= coalesce($1::timestamptz, '-infinity') AND NOT EXISTS (SELECT FROM audit_seals s WHERE s.ids @> a.id)"#,
        dropped.map(|dropped| dropped.before)
    );
    let unsealed = unsealed.fetch_one(conn).await?;
    found.rows += unsealed.rows.unsigned_abs();
    found.first_broken = found.first_broken.or(unsealed.late.map(Broken::Row));
    Ok(found)
}

/// What a row that drops months is proven by. The last seal of these months is part of it, so that no later one can be passed off as one of
/// theirs by another time.
fn proof(mac: Mac<'_>, before: Timestamp, seal: i64) -> Proof {
    Proof(mac(format!("audit.dropped {before} {seal}").as_bytes()))
}

/// The months that were dropped.
#[derive(Clone, Copy)]
struct Dropped {
    /// The start of the first month that was not.
    before: DateTime<Utc>,
    /// Number of their last seal.
    seal: i64,
}

/// The proof that the service dropped months, and not who can write the database alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof([u8; 32]);

impl Detail for Proof {
    fn to_json(&self) -> serde_json::Value {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
    }
}

/// The months that were dropped, as far as it is proven.
async fn dropped_before(conn: &mut PgConnection, mac: Mac<'_>) -> Result<Option<Dropped>> {
    let rows = sqlx::query!(
        r#"SELECT (details ->> 'before')::timestamptz AS "before!", coalesce((details ->> 'seal')::bigint, 0) AS "seal!",
                  details ->> 'proof' AS proof FROM audit
           WHERE event = 'audit.dropped' ORDER BY id"#
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    let proven = rows
        .filter(|row| Some(proof(mac, row.before.into(), row.seal).to_json()) == row.proof.as_deref().map(Into::into));
    Ok(proven.map(|row| Dropped { before: row.before, seal: row.seal }).max_by_key(|dropped| dropped.before))
}

/// Drops the months whose rows are all older than `days`: says so in a row, with which the database lets go of them. Returns the start of
/// the first month that is kept, if there was one to drop.
#[instrument(skip_all, name = "db.audit.drop_months")]
pub async fn drop_months(conn: &mut PgConnection, mac: Mac<'_>, days: i32) -> Result<Option<Timestamp>> {
    let before = sqlx::query_scalar!(
        r#"SELECT date_trunc('month', now() - make_interval(days => $1), 'UTC') AS "before!"
           WHERE EXISTS (SELECT FROM audit WHERE at < date_trunc('month', now() - make_interval(days => $1), 'UTC'))"#,
        days
    );
    let Some(before) = before.fetch_optional(&mut *conn).await?.map(Timestamp::from) else { return Ok(None) };
    let dropped = dropped_before(&mut *conn, mac).await?;
    if dropped.is_none_or(|dropped| dropped.before < before.get()) {
        let seal = sqlx::query_scalar!(
            r#"SELECT coalesce(max(id), 0) AS "seal!" FROM audit_seals WHERE at < $1"#,
            before.get()
        );
        let seal = seal.fetch_one(&mut *conn).await?;
        let event = Event::MonthsDropped { before, seal, proof: proof(mac, before, seal) };
        write(conn, &Actor::system(), None, &event).await?;
    }
    Ok(Some(before))
}

/// Deletes at most `limit` rows of months that were dropped, and the seals before the last one of them. Returns the number of rows.
#[instrument(skip_all, name = "db.audit.sweep")]
pub async fn sweep(conn: &mut PgConnection, before: Timestamp, limit: i64) -> Result<u64> {
    let swept = sqlx::query!(
        "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < $1 ORDER BY at LIMIT $2)",
        before.get(),
        limit
    );
    let swept = swept.execute(&mut *conn).await?.rows_affected();
    sqlx::query!(
        "DELETE FROM audit_seals WHERE at < $1 AND id < (
             SELECT max(id) FROM audit_seals
             WHERE at < $1 AND id < coalesce((SELECT min(id) FROM audit_seals WHERE at >= $1), 9223372036854775807))",
        before.get()
    )
    .execute(conn)
    .await?;
    Ok(swept)
}
