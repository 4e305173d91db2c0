//! Capability links: who has the secret of one downloads a file, or uploads one (docs/reference/assets.md#capability-links).
//!
//! **Guarantee.** An upload link makes one asset. **Mechanism.** A request takes the link's lease, which ends by itself if the process
//! dies; the transaction that stores the asset also [fills](fill) the link, and only under that lease. Only hashes of secrets are stored.

use domain::Timestamp;
use domain::id::{AccountUid, AssetHandle, AssetId, CanvasHandle, CanvasId, JobId};
use domain::limits::{DOWNLOAD_LINKS_MAX, UPLOAD_LINKS_MAX};
use domain::link::{Filled, OpenLinks, Slot};
use sqlx::PgConnection;
use sqlx::types::Json;
use tracing::instrument;
use uuid::Uuid;

use crate::Result;
use crate::accounts::lock;

/// SHA-256 of a secret.
pub type SecretHash = [u8; 32];

/// What a download link serves.
#[derive(Clone, Debug, PartialEq)]
pub enum Served {
    Asset(AssetHandle),
    /// The video of a job of the account.
    Video(JobId),
}

/// Links to make.
pub enum NewLinks<'a> {
    /// Each serves a file under a name.
    Downloads(&'a [(SecretHash, Served, String)]),
    /// Each takes an upload into the canvas, if there is one.
    Uploads(&'a [(SecretHash, Slot)], Option<i64>),
}

/// Makes links of a token that end after `seconds`. Returns when they end; `None` if the account would have more open ones than it
/// may have. Locks the account's row, so that concurrent calls cannot exceed the limit together.
#[instrument(skip_all, name = "db.link.create")]
pub async fn create(
    conn: &mut PgConnection,
    (account, token): (&AccountUid, Uuid),
    links: NewLinks<'_>,
    seconds: u32,
) -> Result<Option<Timestamp>> {
    lock(&mut *conn, account).await?;
    let open = open(&mut *conn, account).await?;
    let mut rows = Rows::default();
    let (kind, present, max, canvas_key) = match links {
        NewLinks::Downloads(links) => {
            for (hash, served, name) in links {
                let (asset, job) = match served {
                    Served::Asset(asset) => (Some(asset), None),
                    Served::Video(job) => (None, Some(job.0)),
                };
                rows.push(hash, asset, job, &Slot { name: Some(name.clone()), ..Slot::default() });
            }
            ("download", open.downloads, DOWNLOAD_LINKS_MAX, None)
        }
        NewLinks::Uploads(links, canvas_key) => {
            for (hash, slot) in links {
                rows.push(hash, None, None, slot);
            }
            ("upload", open.uploads, UPLOAD_LINKS_MAX, canvas_key)
        }
    };
    if present + i64::try_from(rows.hashes.len()).unwrap_or(i64::MAX) > max {
        return Ok(None);
    }
    let expires_at = sqlx::query_scalar!(
        r#"WITH made AS (
             INSERT INTO capability_links (hash, kind, account_uid, token_id, asset_owner, asset_id, job_id, canvas_key, spec, expires_at)
             SELECT hash, $1, $2, $3, asset_owner, asset_id, job_id, $4, spec, now() + make_interval(secs => $5::integer)
             FROM unnest($6::bytea[], $7::text[], $8::text[], $9::uuid[], $10::jsonb[])
                  AS l (hash, asset_owner, asset_id, job_id, spec)
         ) SELECT (now() + make_interval(secs => $5::integer))::timestamptz(3) AS "at!""#,
        kind,
        account.as_str(),
        token,
        canvas_key,
        i32::try_from(seconds).unwrap_or(i32::MAX),
        &rows.hashes,
        &rows.owners as &[Option<String>],
        &rows.ids as &[Option<String>],
        &rows.jobs as &[Option<Uuid>],
        &rows.slots as &[Json<Slot>],
    )
    .fetch_one(conn)
    .await?;
    Ok(Some(expires_at.into()))
}

/// The columns of links to insert.
#[derive(Default)]
struct Rows {
    hashes: Vec<Vec<u8>>,
    owners: Vec<Option<String>>,
    ids: Vec<Option<String>>,
    jobs: Vec<Option<Uuid>>,
    slots: Vec<Json<Slot>>,
}

impl Rows {
    fn push(&mut self, hash: &SecretHash, asset: Option<&AssetHandle>, job: Option<Uuid>, slot: &Slot) {
        self.hashes.push(hash.to_vec());
        self.owners.push(asset.map(|asset| asset.owner.to_string()));
        self.ids.push(asset.map(|asset| asset.id.to_string()));
        self.jobs.push(job);
        self.slots.push(Json(slot.clone()));
    }
}

/// Counts the open links of an account: those that have not ended, of tokens that are not revoked. One that received its upload is
/// not open.
#[instrument(skip_all, name = "db.link.open")]
pub async fn open(conn: &mut PgConnection, account: &AccountUid) -> Result<OpenLinks> {
    let open = sqlx::query_as!(
        OpenLinks,
        r#"SELECT count(*) FILTER (WHERE l.kind = 'download') AS "downloads!",
                  count(*) FILTER (WHERE l.kind = 'upload' AND l.sha256 IS NULL) AS "uploads!"
           FROM capability_links l JOIN tokens t ON t.id = l.token_id AND t.revoked_at IS NULL
           WHERE l.account_uid = $1 AND l.expires_at > now()"#,
        account.as_str(),
    );
    Ok(open.fetch_one(conn).await?)
}

/// A download link that has not ended. What it serves may be gone, and so may its token.
#[derive(Clone, Debug, PartialEq)]
pub struct Download {
    /// The token that made it.
    pub token: Uuid,
    pub served: Served,
    /// The name of the file.
    pub name: String,
}

/// Finds a download link.
#[instrument(skip_all, name = "db.link.find_download")]
pub async fn find_download(conn: &mut PgConnection, hash: &SecretHash) -> Result<Option<Download>> {
    let row = sqlx::query!(
        r#"SELECT token_id, asset_owner, asset_id, job_id, spec AS "spec: Json<Slot>"
           FROM capability_links WHERE hash = $1 AND kind = 'download' AND expires_at > now()"#,
        hash
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.and_then(|row| {
        let served = match (row.asset_owner.zip(row.asset_id), row.job_id) {
            (Some((owner, id)), _) => {
                Served::Asset(AssetHandle { owner: AccountUid::from_stored(owner), id: AssetId::from_stored(id) })
            }
            (None, Some(job)) => Served::Video(JobId(job)),
            (None, None) => return None,
        };
        Some(Download { token: row.token_id, served, name: row.spec.0.name.unwrap_or_default() })
    }))
}

/// An upload link that has not ended. Its canvas may be out of reach of its account, and its token gone.
#[derive(Clone, Debug, PartialEq)]
pub struct Upload {
    /// The token that made it.
    pub token: Uuid,
    pub canvas: Option<CanvasHandle>,
    pub slot: Slot,
    /// SHA-256 of what it received, and what became of it.
    pub filled: Option<(Vec<u8>, Filled)>,
}

/// Finds an upload link.
#[instrument(skip_all, name = "db.link.find_upload")]
pub async fn find_upload(conn: &mut PgConnection, hash: &SecretHash) -> Result<Option<Upload>> {
    let row = sqlx::query!(
        r#"SELECT l.token_id, l.spec AS "spec: Json<Slot>", l.sha256, l.result AS "result: Json<Filled>",
                  c.owner_uid AS "owner?", c.id AS "id?"
           FROM capability_links l LEFT JOIN canvases c ON c.key = l.canvas_key
           WHERE l.hash = $1 AND l.kind = 'upload' AND l.expires_at > now()"#,
        hash
    )
    .fetch_optional(conn)
    .await?;
    let canvas = |owner, id| CanvasHandle { owner: AccountUid::from_stored(owner), id: CanvasId::from_stored(id) };
    Ok(row.map(|row| Upload {
        token: row.token_id,
        canvas: row.owner.zip(row.id).map(|(owner, id)| canvas(owner, id)),
        slot: row.spec.0,
        filled: row.sha256.zip(row.result).map(|(sha256, Json(filled))| (sha256, filled)),
    }))
}

/// Takes the lease of an upload link for some seconds, or renews it. `false`: another request has it, the link is filled, or it is gone.
#[instrument(skip_all, name = "db.link.lease")]
pub async fn lease(conn: &mut PgConnection, hash: &SecretHash, lease: Uuid, seconds: i32) -> Result<bool> {
    let taken = sqlx::query!(
        "UPDATE capability_links SET lease = $2, leased_until = now() + make_interval(secs => $3::integer)
         WHERE hash = $1 AND sha256 IS NULL AND (lease = $2 OR lease IS NULL OR leased_until <= now())",
        hash,
        lease,
        seconds
    );
    Ok(taken.execute(conn).await?.rows_affected() == 1)
}

/// Gives the lease of an upload link back, if it is still held.
#[instrument(skip_all, name = "db.link.release")]
pub async fn release(conn: &mut PgConnection, hash: &SecretHash, lease: Uuid) -> Result<()> {
    sqlx::query!(
        "UPDATE capability_links SET lease = NULL, leased_until = NULL WHERE hash = $1 AND lease = $2",
        hash,
        lease
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Fills an upload link, whose lease this request must still hold. `false`: it does not.
#[instrument(skip_all, name = "db.link.fill")]
pub async fn fill(
    conn: &mut PgConnection,
    (hash, lease): (&SecretHash, Uuid),
    sha256: &[u8],
    filled: &Filled,
) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE capability_links SET sha256 = $3, result = $4, lease = NULL, leased_until = NULL
         WHERE hash = $1 AND lease = $2 AND sha256 IS NULL",
        hash,
        lease,
        sha256,
        Json(filled) as _,
    );
    Ok(done.execute(conn).await?.rows_affected() == 1)
}

/// Deletes at most `limit` links that have ended and that no upload is using. Returns their number.
#[instrument(skip_all, name = "db.link.sweep")]
pub async fn sweep(conn: &mut PgConnection, limit: i64) -> Result<u64> {
    let swept = sqlx::query!(
        "DELETE FROM capability_links WHERE hash IN (
             SELECT hash FROM capability_links
             WHERE expires_at <= now() AND (leased_until IS NULL OR leased_until <= now())
             ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)",
        limit
    );
    Ok(swept.execute(conn).await?.rows_affected())
}

#[cfg(test)]
mod tests {
    use domain::account::TokenKind;
    use testkit::TestDatabase;

    use super::*;

    struct Fixture {
        database: TestDatabase,
        account: AccountUid,
        token: Uuid,
    }

    impl Fixture {
        async fn new() -> Self {
            let (database, token) = (TestDatabase::new().await, Uuid::now_v7());
            sqlx::raw_sql(
                "INSERT INTO accounts (uid, email) VALUES ('me', 'me@example.com');
                 INSERT INTO account_sessions (id, account_uid) VALUES (gen_random_uuid(), 'me')",
            )
            .execute(database.pool())
            .await
            .expect("inserts");
            sqlx::query(
                "INSERT INTO tokens (id, account_uid, session_id, label, scopes, surface, secret_hash)
                 SELECT $1, 'me', id, 't', '{}', 'api', '' FROM account_sessions",
            )
            .bind(token)
            .execute(database.pool())
            .await
            .expect("inserts");
            Self { database, account: AccountUid::parse("me").expect("valid"), token }
        }

        async fn conn(&self) -> crate::Connection {
            self.database.pool().acquire().await.expect("connects")
        }

        async fn upload(&self, hash: u8) -> SecretHash {
            let links = [([hash; 32], Slot { name: Some("a".into()), ..Slot::default() })];
            let of = (&self.account, self.token);
            let made = create(&mut *self.conn().await, of, NewLinks::Uploads(&links, None), 60).await.expect("creates");
            assert!(made.is_some());
            links[0].0
        }

        async fn later(&self) {
            sqlx::query(
                "UPDATE capability_links SET expires_at = now() - interval '1 s', leased_until = leased_until - interval '1 hour'",
            )
            .execute(self.database.pool())
            .await
            .expect("ages");
        }
    }

    #[tokio::test]
    async fn a_link_has_one_lease_until_it_is_given_back_or_ends_and_is_filled_under_it_once() {
        let fixture = Fixture::new().await;
        let (conn, hash) = (&mut *fixture.conn().await, fixture.upload(1).await);
        let (one, other) = (Uuid::now_v7(), Uuid::now_v7());
        let filled = Filled { asset: AssetHandle::try_from("asset:me:a".to_owned()).expect("valid"), revision: None };
        assert!(lease(conn, &hash, one, 60).await.expect("leases"));
        assert!(lease(conn, &hash, one, 60).await.expect("renews"));
        assert!(!lease(conn, &hash, other, 60).await.expect("is taken"));
        assert!(!fill(conn, (&hash, other), b"x", &filled).await.expect("is not its lease"));
        release(conn, &hash, other).await.expect("does nothing");
        assert!(!lease(conn, &hash, other, 60).await.expect("is taken"));
        release(conn, &hash, one).await.expect("releases");
        assert!(lease(conn, &hash, other, -1).await.expect("leases"));
        assert!(lease(conn, &hash, one, 60).await.expect("it had ended"));
        assert!(!fill(conn, (&hash, other), b"x", &filled).await.expect("was lost"));
        assert!(fill(conn, (&hash, one), b"x", &filled).await.expect("fills"));
        assert!(!fill(conn, (&hash, one), b"x", &filled).await.expect("is filled"));
        assert!(!lease(conn, &hash, one, 60).await.expect("is filled"));
        let found = find_upload(conn, &hash).await.expect("reads").expect("is there");
        assert_eq!((found.token, found.filled), (fixture.token, Some((b"x".to_vec(), filled))));
        assert_eq!(find_download(conn, &hash).await.expect("reads"), None, "it is of another kind");
    }

    #[tokio::test]
    async fn links_that_have_ended_are_swept_unless_an_upload_uses_them() {
        let fixture = Fixture::new().await;
        let conn = &mut *fixture.conn().await;
        let (_, used, _) = (fixture.upload(1).await, fixture.upload(2).await, fixture.upload(3).await);
        assert!(lease(conn, &used, Uuid::now_v7(), 60).await.expect("leases"));
        assert_eq!(sweep(conn, 10).await.expect("sweeps"), 0);
        let end = "UPDATE capability_links SET expires_at = now() - interval '1 s'";
        sqlx::query(end).execute(&mut *conn).await.expect("ends");
        assert_eq!(find_upload(conn, &used).await.expect("reads"), None);
        assert_eq!((sweep(conn, 1).await.expect("sweeps"), sweep(conn, 10).await.expect("sweeps")), (1, 1));
        fixture.later().await;
        assert_eq!(sweep(conn, 10).await.expect("sweeps"), 1);
    }

    #[tokio::test]
    async fn links_of_a_revoked_token_are_not_open() {
        let fixture = Fixture::new().await;
        let conn = &mut *fixture.conn().await;
        let asset = Served::Asset(AssetHandle::try_from("asset:me:a".to_owned()).expect("valid"));
        let links =
            [([9; 32], asset.clone(), "a.png".to_owned()), ([8; 32], Served::Video(JobId::generate()), "b".into())];
        let of = (&fixture.account, fixture.token);
        create(conn, of, NewLinks::Downloads(&links), 60).await.expect("creates").expect("there is room");
        fixture.upload(1).await;
        assert_eq!(open(conn, &fixture.account).await.expect("counts"), OpenLinks { downloads: 2, uploads: 1 });
        let found = find_download(conn, &[9; 32]).await.expect("reads");
        assert_eq!(found, Some(Download { token: fixture.token, served: asset, name: "a.png".into() }));
        crate::tokens::revoke(conn, TokenKind::Agent, fixture.token, None).await.expect("revokes");
        assert_eq!(open(conn, &fixture.account).await.expect("counts"), OpenLinks::default());
    }
}
