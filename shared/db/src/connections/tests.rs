use domain::id::AccountUid;
use domain::model::ProviderKind;
use testkit::TestDatabase;

use super::*;

async fn database() -> TestDatabase {
    let database = TestDatabase::new().await;
    for uid in ["me", "you"] {
        sqlx::query("INSERT INTO accounts (uid, email) VALUES ($1, $1 || '@example.com')")
            .bind(uid)
            .execute(database.pool())
            .await
            .expect("inserts an account");
    }
    database
}

fn account(uid: &str) -> AccountUid {
    AccountUid::from_stored(uid.into())
}

async fn saved(conn: &mut PgConnection, uid: &str, provider: ProviderKind, name: &str, key: &str) -> Uuid {
    let account = account(uid);
    let new = NewConnection { account: &account, provider, name, base_url: BaseUrl::Set(None), masked_key: key };
    save(conn, &new, |context| format!("v1.k1.{context} {key}")).await.expect("saves").id
}

#[tokio::test]
async fn a_connection_is_its_accounts_alone() {
    let database = database().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let mine = saved(&mut conn, "me", ProviderKind::Fal, "f", "key").await;
    let listed = list(&mut conn, &account("me")).await.expect("lists");
    assert_eq!(listed.iter().map(|it| (it.id, it.provider)).collect::<Vec<_>>(), [(mine, ProviderKind::Fal)]);
    assert_eq!(list(&mut conn, &account("you")).await.expect("lists"), []);
    let later = saved(&mut conn, "you", ProviderKind::Fal, "later", "key").await;
    sqlx::query("UPDATE provider_connections SET provider = 'of-a-later-release' WHERE id = $1")
        .bind(later)
        .execute(&mut *conn)
        .await
        .expect("updates");
    assert_eq!(list(&mut conn, &account("you")).await.expect("lists"), [], "a kind that this release does not know");
    let credentials_of =
        async |conn: &mut PgConnection, uid| credentials(conn, &account(uid), mine).await.expect("reads");
    let expected =
        Credentials { provider: ProviderKind::Fal, base_url: None, sealed_key: format!("v1.k1.connection:{mine} key") };
    assert_eq!(credentials_of(&mut conn, "me").await, Some(expected));
    assert_eq!(credentials_of(&mut conn, "you").await, None);
    assert_eq!(delete(&mut conn, mine, Some(&account("you"))).await.expect("looks"), None);
    assert_eq!(delete(&mut conn, mine, Some(&account("me"))).await.expect("deletes"), Some(account("me")));
    assert_eq!(delete(&mut conn, mine, None).await.expect("looks"), None);
    assert_eq!(credentials_of(&mut conn, "me").await, None);
}

#[tokio::test]
async fn saving_again_replaces_the_key_and_keeps_id_and_place() {
    let database = database().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let first = saved(&mut conn, "me", ProviderKind::OpenAi, "a", "old").await;
    let second = saved(&mut conn, "me", ProviderKind::OpenAi, "b", "other").await;
    assert_eq!(saved(&mut conn, "me", ProviderKind::OpenAi, "a", "new").await, first);
    for (uid, provider) in [("you", ProviderKind::OpenAi), ("me", ProviderKind::Google)] {
        assert_ne!(saved(&mut conn, uid, provider, "a", "x").await, first, "another account or provider");
    }
    let listed = list(&mut conn, &account("me")).await.expect("lists");
    let reported: Vec<_> = listed.iter().map(|it| (it.id, it.masked_key.as_str())).collect();
    assert_eq!(reported[..2], [(first, "new"), (second, "other")], "the oldest first");
    let kept = credentials(&mut conn, &account("me"), first).await.expect("reads").expect("is there");
    assert_eq!(kept.sealed_key, format!("v1.k1.connection:{first} new"));
}

#[tokio::test]
async fn a_person_replaces_the_key_and_keeps_the_operators_url() {
    let database = database().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let account = account("me");
    let base = async |conn: &mut PgConnection, base_url: BaseUrl<'_>| {
        let (provider, name) = (ProviderKind::Fal, "f");
        let new = NewConnection { account: &account, provider, name, base_url, masked_key: "" };
        let saved = save(&mut *conn, &new, str::to_owned).await.expect("saves");
        let read = credentials(conn, &account, saved.id).await.expect("reads").expect("is there");
        (saved.is_new, read.base_url)
    };
    let url = Some("https://proxy.example/");
    assert_eq!(base(&mut conn, BaseUrl::Keep).await, (true, None));
    assert_eq!(base(&mut conn, BaseUrl::Set(url)).await, (false, url.map(str::to_owned)));
    assert_eq!(base(&mut conn, BaseUrl::Keep).await, (false, url.map(str::to_owned)));
    assert_eq!(base(&mut conn, BaseUrl::Set(None)).await, (false, None));
    assert_eq!(count(&mut conn, &account).await.expect("counts"), 1);
}

#[tokio::test]
async fn keys_are_counted_and_moved_unless_they_changed() {
    let database = database().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let id = saved(&mut conn, "me", ProviderKind::Runway, "r", "key").await;
    assert_eq!(sealed_counts(&mut conn).await.expect("counts"), [("k1".to_owned(), 1)].into());
    assert_eq!(next_to_rewrap(&mut conn, "k1", Uuid::nil(), 10).await.expect("looks"), []);
    let found = next_to_rewrap(&mut conn, "k2", Uuid::nil(), 10).await.expect("looks");
    assert_eq!(found.iter().map(|key| key.id).collect::<Vec<_>>(), [id]);
    assert_eq!(next_to_rewrap(&mut conn, "k2", id, 10).await.expect("looks"), [], "there is none after it");
    assert!(!store_reencrypted(&mut conn, id, "v1.k1.other", "v1.k2.x").await.expect("tries"));
    assert!(store_reencrypted(&mut conn, id, &found[0].sealed, "v1.k2.x").await.expect("stores"));
    assert_eq!(sealed_counts(&mut conn).await.expect("counts"), [("k2".to_owned(), 1)].into());
}

#[tokio::test]
async fn managed_is_no_connection() {
    let database = database().await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let account = account("me");
    let (provider, base_url) = (ProviderKind::Managed, BaseUrl::Keep);
    let new = NewConnection { account: &account, provider, name: "m", base_url, masked_key: "" };
    let refused = save(&mut conn, &new, |_| String::new()).await.expect_err("the table rejects it");
    assert_eq!(refused.constraint(), Some("provider_connections_provider_check"));
}
