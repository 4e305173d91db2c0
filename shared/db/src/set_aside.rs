//! Batches of operations that are set aside (docs/reference/operations.md#batches-that-are-set-aside).

use domain::id::AccountUid;
use domain::limits::{SET_ASIDE_MAX, SET_ASIDE_SECONDS};
use domain::operation::BatchSetAside;
use serde_json::{Map, Value};
use sqlx::PgConnection;
use sqlx::types::Json;
use tracing::instrument;

use crate::Result;
use crate::accounts::lock;

/// Sets operations aside under a new id of the account, whose oldest batches make room. Locks the account's row, so that concurrent
/// calls cannot exceed the limit together.
#[instrument(skip_all, name = "db.set_aside.create")]
pub async fn create(
    conn: &mut PgConnection,
    account: &AccountUid,
    (canvas_key, id): (i64, &str),
    operations: Vec<Map<String, Value>>,
) -> Result<BatchSetAside> {
    lock(&mut *conn, account).await?;
    sqlx::query!(
        "DELETE FROM set_aside WHERE account_uid = $1 AND id IN (
             SELECT id FROM set_aside WHERE account_uid = $1 ORDER BY expires_at DESC, id OFFSET $2)",
        account.as_str(),
        SET_ASIDE_MAX - 1
    )
    .execute(&mut *conn)
    .await?;
    let expires_at = sqlx::query_scalar!(
        r#"INSERT INTO set_aside (account_uid, id, canvas_key, body, expires_at)
           VALUES ($1, $2, $3, $4, now() + make_interval(secs => $5::integer)) RETURNING expires_at"#,
        account.as_str(),
        id,
        canvas_key,
        Json(&operations) as _,
        SET_ASIDE_SECONDS
    );
    let expires_at = expires_at.fetch_one(conn).await?.into();
    Ok(BatchSetAside { id: id.to_owned(), operations, expires_at })
}

/// The batch that the account has set aside for the canvas under this id.
#[instrument(skip_all, name = "db.set_aside.find")]
pub async fn find(
    conn: &mut PgConnection,
    account: &AccountUid,
    (canvas_key, id): (i64, &str),
) -> Result<Option<BatchSetAside>> {
    let row = sqlx::query!(
        r#"SELECT body AS "body: Json<Vec<Map<String, Value>>>", expires_at
           FROM set_aside WHERE account_uid = $1 AND id = $2 AND canvas_key = $3 AND expires_at > now()"#,
        account.as_str(),
        id,
        canvas_key
    );
    Ok(row.fetch_optional(conn).await?.map(|row| BatchSetAside {
        id: id.to_owned(),
        operations: row.body.0,
        expires_at: row.expires_at.into(),
    }))
}

/// Deletes at most `limit` batches whose time has ended. Returns their number.
#[instrument(skip_all, name = "db.set_aside.sweep")]
pub async fn sweep(conn: &mut PgConnection, limit: i64) -> Result<u64> {
    let swept = sqlx::query!(
        "DELETE FROM set_aside WHERE (account_uid, id) IN (
             SELECT account_uid, id FROM set_aside WHERE expires_at <= now()
             ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)",
        limit
    );
    Ok(swept.execute(conn).await?.rows_affected())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use testkit::TestDatabase;

    use super::*;

    async fn database() -> (TestDatabase, AccountUid) {
        let database = TestDatabase::new().await;
        sqlx::raw_sql(
            "INSERT INTO accounts (uid, email) VALUES ('me', 'me@example.com'), ('other', 'other@example.com');
             INSERT INTO canvases (owner_uid, id, key, title, revision) OVERRIDING SYSTEM VALUE VALUES ('me', 'a', 1, 'A', 'r'), ('me', 'b', 2, 'B', 'r')",
        )
        .execute(database.pool())
        .await
        .expect("inserts");
        (database, AccountUid::parse("me").expect("valid"))
    }

    fn operations(title: &str) -> Vec<Map<String, Value>> {
        vec![json!({"type": "canvas.update", "title": title}).as_object().expect("an object").clone()]
    }

    #[tokio::test]
    async fn a_batch_is_found_by_its_account_on_its_canvas_until_it_ends() {
        let (database, me) = database().await;
        let conn = &mut *database.pool().acquire().await.expect("connects");
        let made = create(conn, &me, (1, "abcdef"), operations("T")).await.expect("creates");
        assert_eq!((made.id.as_str(), &made.operations), ("abcdef", &operations("T")));
        assert_eq!(find(conn, &me, (1, "abcdef")).await.expect("reads"), Some(made));
        let other = AccountUid::parse("other").expect("valid");
        for (account, of) in [(&me, (2, "abcdef")), (&me, (1, "abcdeg")), (&other, (1, "abcdef"))] {
            assert_eq!(find(conn, account, of).await.expect("reads"), None, "{of:?}");
        }
        assert_eq!(sweep(conn, 10).await.expect("sweeps"), 0);
        sqlx::query("UPDATE set_aside SET expires_at = now() - interval '1 s'")
            .execute(&mut *conn)
            .await
            .expect("ends");
        assert_eq!(find(conn, &me, (1, "abcdef")).await.expect("reads"), None);
        assert_eq!((sweep(conn, 10).await.expect("sweeps"), sweep(conn, 10).await.expect("sweeps")), (1, 0));
    }

    #[tokio::test]
    async fn the_oldest_batch_of_an_account_makes_room() {
        let (database, me) = database().await;
        let conn = &mut *database.pool().acquire().await.expect("connects");
        let id = |at: i64| format!("aaaaa{}", char::from(b'a' + u8::try_from(at).expect("is small")));
        for at in 0..=SET_ASIDE_MAX {
            create(conn, &me, (1, &id(at)), operations("T")).await.expect("creates");
            sqlx::query("UPDATE set_aside SET expires_at = expires_at - interval '1 second'")
                .execute(&mut *conn)
                .await
                .expect("ages");
        }
        let kept: i64 =
            sqlx::query_scalar("SELECT count(*) FROM set_aside").fetch_one(&mut *conn).await.expect("counts");
        assert_eq!(kept, SET_ASIDE_MAX);
        assert_eq!(find(conn, &me, (1, &id(0))).await.expect("reads"), None, "the oldest");
        assert!(find(conn, &me, (1, &id(1))).await.expect("reads").is_some());
    }
}
