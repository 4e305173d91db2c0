//! Caps on what an account keeps: canvases, private workflows, Elements and their collections (docs/reference/limits.md).
//!
//! **Guarantee.** Concurrent requests never exceed a cap together. **Mechanism.** A request locks the account's row before it counts
//! and adds. Only creations wait for each other there. A count reads one index, and at most as many entries as the cap.

use domain::id::AccountUid;
use domain::limits::{CANVASES_MAX, COLLECTIONS_MAX, ELEMENTS_MAX, WORKFLOWS_MAX};
use sqlx::PgConnection;
use tracing::instrument;

use crate::Result;

/// What an account keeps at most a number of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    Canvases,
    Workflows,
    Elements,
    Collections,
}

impl Kept {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Kept::Canvases => "canvases",
            Kept::Workflows => "workflows",
            Kept::Elements => "Elements",
            Kept::Collections => "collections",
        }
    }

    /// The cap.
    pub fn max(self) -> i64 {
        match self {
            Kept::Canvases => CANVASES_MAX,
            Kept::Workflows => WORKFLOWS_MAX,
            Kept::Elements => ELEMENTS_MAX,
            Kept::Collections => COLLECTIONS_MAX,
        }
    }
}

/// Returns `true` if the account may keep one more. The transaction locks the account until it ends.
#[instrument(skip_all, name = "db.kept.admits")]
pub async fn admits(conn: &mut PgConnection, account: &AccountUid, kept: Kept) -> Result<bool> {
    crate::accounts::lock(conn, account).await?;
    let count = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM (
               SELECT FROM canvases WHERE $2 = 'canvases' AND owner_uid = $1
               UNION ALL SELECT FROM recipes WHERE $2 = 'workflows' AND owner_uid = $1
               UNION ALL SELECT FROM elements WHERE $2 = 'Elements' AND owner_uid = $1
               UNION ALL SELECT FROM element_collections WHERE $2 = 'collections' AND owner_uid = $1
               LIMIT $3
           ) AS kept"#,
        account.as_str(),
        kept.name(),
        kept.max()
    );
    Ok(count.fetch_one(conn).await? < kept.max())
}

#[cfg(test)]
mod tests {
    use testkit::TestDatabase;

    use super::*;

    #[tokio::test]
    async fn each_cap_admits_up_to_itself() {
        let database = TestDatabase::new().await;
        let mut conn = database.pool().acquire().await.expect("connects");
        sqlx::query("INSERT INTO accounts (uid, email) VALUES ('me', 'me@example.com'), ('you', 'you@example.com')")
            .execute(&mut *conn)
            .await
            .expect("inserts");
        let me = AccountUid::from_stored("me".into());
        for (kept, insert) in [
            (
                Kept::Canvases,
                "INSERT INTO canvases (owner_uid, id, title, revision) SELECT $1, n::text, '', 'r' FROM generate_series($2, $3) n",
            ),
            (
                Kept::Workflows,
                "INSERT INTO recipes (id, owner_uid, search) SELECT $1 || n, $1, '' FROM generate_series($2, $3) n",
            ),
            (
                Kept::Elements,
                "INSERT INTO elements (owner_uid, id, search_name, search_guidelines)
                 SELECT $1, n::text, '', '' FROM generate_series($2, $3) n",
            ),
            (
                Kept::Collections,
                "INSERT INTO element_collections (owner_uid, id, name) SELECT $1, n::text, '' FROM generate_series($2, $3) n",
            ),
        ] {
            let add = async |conn: &mut PgConnection, owner: &str, first: i64, last: i64| {
                sqlx::query(insert).bind(owner).bind(first).bind(last).execute(conn).await.expect("inserts");
            };
            add(&mut conn, "you", 1, kept.max()).await;
            add(&mut conn, "me", 1, kept.max() - 1).await;
            assert!(admits(&mut conn, &me, kept).await.expect("counts"), "{kept:?} below the cap");
            add(&mut conn, "me", kept.max(), kept.max()).await;
            assert!(!admits(&mut conn, &me, kept).await.expect("counts"), "{kept:?} at the cap");
            add(&mut conn, "me", kept.max() + 1, kept.max() + 1).await;
            assert!(!admits(&mut conn, &me, kept).await.expect("counts"), "{kept:?} above the cap");
        }
    }

    #[tokio::test]
    async fn together_requests_stay_within_a_cap() {
        let database = TestDatabase::new().await;
        let me = AccountUid::from_stored("me".into());
        for statement in [
            "INSERT INTO accounts (uid, email) VALUES ('me', 'me@example.com')".to_owned(),
            format!(
                "INSERT INTO element_collections (owner_uid, id, name)
                 SELECT 'me', n::text, '' FROM generate_series(1, {}) n",
                COLLECTIONS_MAX - 3
            ),
        ] {
            sqlx::query(sqlx::AssertSqlSafe(statement)).execute(database.pool()).await.expect("inserts");
        }
        let requests = (0..12).map(|_| {
            let (pool, me) = (database.pool().clone(), me.clone());
            tokio::spawn(async move {
                let mut tx = pool.begin().await.expect("begins");
                let admitted = admits(&mut tx, &me, Kept::Collections).await.expect("counts");
                if admitted {
                    crate::element_collections::create(&mut tx, &me, "c").await.expect("creates");
                    tx.commit().await.expect("commits");
                }
                admitted
            })
        });
        let mut admitted = 0;
        for request in requests.collect::<Vec<_>>() {
            admitted += i64::from(request.await.expect("ends well"));
        }
        assert_eq!(admitted, 3);
    }
}
