use domain::canvas::AccessRole;

use db::canvases;

use crate::fixture::{Fixture, account};

/// Returns `true` if the rows that `sql` selects are locked by another transaction.
async fn is_held(fixture: &Fixture, sql: &'static str) -> bool {
    sqlx::query(sql).fetch_all(&mut *fixture.conn().await).await.is_err()
}

#[tokio::test]
async fn a_start_holds_the_account_and_the_canvas_until_it_ends() {
    let fixture = Fixture::shared().await;
    let (me, canvas) = (&fixture.account, &fixture.canvas.handle);
    let mut tx = fixture.database.pool().begin().await.expect("begins");
    let held = canvases::lock_with_account(&mut tx, me, canvas).await.expect("locks");
    let (record, role) = held.expect("is shared");
    assert_eq!((record.key, role), (fixture.canvas.key, AccessRole::Editor));
    let rows = [
        "SELECT FROM accounts WHERE uid = 'me' FOR NO KEY UPDATE NOWAIT",
        "SELECT FROM canvases WHERE id = 'c' FOR NO KEY UPDATE NOWAIT",
    ];
    for row in rows {
        assert!(is_held(&fixture, row).await, "{row}");
    }
    assert!(!is_held(&fixture, "SELECT FROM accounts WHERE uid = 'you' FOR NO KEY UPDATE NOWAIT").await, "the owner");
    tx.rollback().await.expect("ends");
    for row in rows {
        assert!(!is_held(&fixture, row).await, "{row}");
    }
}

#[tokio::test]
async fn a_start_waits_for_the_account_and_sees_the_canvas_as_it_is_then() {
    let fixture = Fixture::new().await;
    let mut first = fixture.database.pool().begin().await.expect("begins");
    db::accounts::lock(&mut first, &fixture.account).await.expect("locks");
    let second = tokio::spawn({
        let (pool, me) = (fixture.database.pool().clone(), fixture.account.clone());
        let canvas = fixture.canvas.handle.clone();
        async move {
            let mut tx = pool.begin().await.expect("begins");
            canvases::lock_with_account(&mut tx, &me, &canvas).await.expect("locks").expect("is mine").0.revision
        }
    });
    fixture.waits_for_a_lock("the second").await;
    sqlx::query("UPDATE canvases SET revision = 'r1'").execute(&mut *first).await.expect("changes the canvas");
    first.commit().await.expect("commits");
    assert_eq!(second.await.expect("ends well"), "r1");
}

#[tokio::test]
async fn a_role_that_is_withdrawn_while_a_writer_waits_is_gone() {
    let fixture = Fixture::shared().await;
    for with_account in [false, true] {
        fixture.share(Some(AccessRole::Editor)).await;
        let mut first = fixture.database.pool().begin().await.expect("begins");
        canvases::lock(&mut first, &account("you"), &fixture.canvas.handle).await.expect("locks").expect("is theirs");
        let second = tokio::spawn({
            let (pool, canvas) = (fixture.database.pool().clone(), fixture.canvas.handle.clone());
            async move {
                let mut tx = pool.begin().await.expect("begins");
                match with_account {
                    true => canvases::lock_with_account(&mut tx, &account("me"), &canvas).await,
                    false => canvases::lock(&mut tx, &account("me"), &canvas).await,
                }
                .expect("looks")
            }
        });
        fixture.waits_for_a_lock("the second").await;
        fixture.share(None).await;
        first.commit().await.expect("commits");
        assert_eq!(second.await.expect("ends well"), None);
    }
}

#[tokio::test]
async fn who_may_not_see_a_canvas_starts_nothing_there() {
    let fixture = Fixture::shared().await;
    let lock = async |uid: &str| {
        let mut tx = fixture.database.pool().begin().await.expect("begins");
        canvases::lock_with_account(&mut tx, &account(uid), &fixture.canvas.handle).await.expect("looks")
    };
    assert_eq!(lock("you").await.map(|(_, role)| role), Some(AccessRole::Owner));
    fixture.share(Some(AccessRole::Viewer)).await;
    assert_eq!(
        lock("me").await.map(|(_, role)| role),
        Some(AccessRole::Viewer),
        "the role is returned, for the caller to reject"
    );
    fixture.share(None).await;
    assert_eq!(lock("me").await, None);
    assert_eq!(lock("nobody").await, None);
}
