//! Lists, access and origins of assets against a real database.

use testkit::TestDatabase;

use super::*;

fn account(uid: &str) -> AccountUid {
    AccountUid::from_stored(uid.into())
}

fn handle(id: &str) -> AssetHandle {
    AssetHandle { owner: account("me"), id: AssetId::from_stored(id.into()) }
}

/// A database with the accounts `me` and `you`, canvas 1 of `me`, and assets of `me` that all have the same timestamp.
async fn database(own: &[&str], in_canvas: &[&str]) -> TestDatabase {
    let database = TestDatabase::new().await;
    let mut tx = database.pool().begin().await.expect("begins");
    let blob_key = Uuid::new_v4();
    for statement in [
        "INSERT INTO accounts (uid, email) VALUES ('me', 'me@example.com'), ('you', 'you@example.com')",
        "INSERT INTO canvases (owner_uid, id, title, revision) VALUES ('me', 'c', 'C', 'r0')",
    ] {
        sqlx::query(statement).execute(&mut *tx).await.expect("inserts");
    }
    sqlx::query("INSERT INTO blobs (key, state, sha256, bytes) VALUES ($1, 'stored', '', 1)")
        .bind(blob_key)
        .execute(&mut *tx)
        .await
        .expect("inserts a blob");
    let all = own.iter().map(|id| (id, None)).chain(in_canvas.iter().map(|id| (id, Some(1))));
    for (id, canvas_key) in all {
        let asset = NewAsset {
            handle: handle(id),
            canvas_key,
            node: None,
            kind: AssetKind::Image,
            name: "a.png".into(),
            mime_type: "image/png".into(),
            width: 1,
            height: 1,
            bytes: 1,
            blob_key,
        };
        let stored = insert(&mut tx, &asset).await.expect("inserts");
        assert_eq!(get(&mut tx, &asset.handle).await.expect("reads"), Some(stored));
    }
    tx.commit().await.expect("commits");
    database
}

fn ids(assets: &[AssetRecord]) -> Vec<&str> {
    assets.iter().map(|asset| asset.handle.id.as_str()).collect()
}

fn after(asset: &AssetRecord) -> After {
    After { updated_at: asset.updated_at, handle: asset.handle.to_string() }
}

#[tokio::test]
async fn lists_go_by_handle_bytewise_within_a_moment_and_page_without_gap_or_repeat() {
    let database = database(&["a", "B", "_", "b"], &["x", "Y"]).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let first = list_own(&mut conn, &account("me"), None, 3).await.expect("lists");
    assert_eq!(ids(&first), ["b", "a", "_"]);
    let second = list_own(&mut conn, &account("me"), Some(&after(&first[2])), 3).await.expect("lists");
    assert_eq!(ids(&second), ["B"]);
    let first = list_canvas(&mut conn, 1, None, 1).await.expect("lists");
    let second = list_canvas(&mut conn, 1, Some(&after(&first[0])), 5).await.expect("lists");
    assert_eq!((ids(&first), ids(&second)), (vec!["x"], vec!["Y"]));
}

#[tokio::test]
async fn what_changed_last_comes_first() {
    let database = database(&["a", "b"], &[]).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    sqlx::query("UPDATE assets SET updated_at = updated_at + interval '1 s' WHERE id = 'a'")
        .execute(&mut *conn)
        .await
        .expect("updates");
    let page = list_own(&mut conn, &account("me"), None, 5).await.expect("lists");
    assert_eq!(ids(&page), ["a", "b"]);
    let rest = list_own(&mut conn, &account("me"), Some(&after(&page[0])), 5).await.expect("lists");
    assert_eq!(ids(&rest), ["b"]);
}

#[tokio::test]
async fn an_asset_is_readable_by_its_owner_and_by_members_of_its_canvas_alone() {
    let database = database(&["own"], &["shared"]).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    for (caller, id, role) in
        [("me", "own", Some(AccessRole::Owner)), ("me", "shared", Some(AccessRole::Owner)), ("you", "shared", None)]
    {
        let read = get_readable(&mut conn, &account(caller), &handle(id)).await.expect("reads");
        assert_eq!(read.map(|(_, role)| role), role, "{caller} {id}");
    }
    sqlx::query("INSERT INTO canvas_shares (canvas_key, account_uid, role) VALUES (1, 'you', 'viewer')")
        .execute(&mut *conn)
        .await
        .expect("shares");
    for (id, role) in [("shared", Some(AccessRole::Viewer)), ("own", None), ("none", None)] {
        let read = get_readable(&mut conn, &account("you"), &handle(id)).await.expect("reads");
        assert_eq!(read.map(|(_, role)| role), role, "{id}");
    }
}

#[tokio::test]
async fn of_named_assets_the_stored_ones_are_returned_with_their_origin_and_size() {
    let database = database(&["own"], &["placed", "made"]).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    sqlx::query("UPDATE assets SET node_id = 'n' WHERE id = 'placed'").execute(&mut *conn).await.expect("updates");
    let named = ["own", "placed", "made", "gone"].map(handle).into();
    let expected = [("own", Origin::Brought), ("placed", Origin::Brought), ("made", Origin::Made)];
    assert_eq!(
        origins(&mut conn, &named).await.expect("reads"),
        expected.map(|(id, origin)| (handle(id), StoredAsset { origin, size: (1.0, 1.0) })).into()
    );
    assert!(origins(&mut conn, &HashSet::new()).await.expect("reads").is_empty());
}

#[tokio::test]
async fn a_node_leads_to_what_it_shows() {
    let database = database(&[], &["shown"]).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    for (id, asset) in [("full", Some("shown")), ("empty", None)] {
        sqlx::query(
            "INSERT INTO nodes (canvas_key, id, type, title, x, y, width, height, agent_owned, asset_owner, asset_id)
             VALUES (1, $1, 'image', '', 0, 0, 1, 1, true, CASE WHEN $2 IS NOT NULL THEN 'me' END, $2)",
        )
        .bind(id)
        .bind(asset)
        .execute(&mut *conn)
        .await
        .expect("inserts a node");
    }
    for (id, asset) in [("full", Some("shown")), ("empty", None), ("gone", None)] {
        let node = NodeId::from_stored(id.into());
        let shown = of_node(&mut conn, 1, &node).await.expect("reads");
        assert_eq!(shown.as_ref().map(|asset| asset.handle.id.as_str()), asset, "{id}");
    }
    let shown = shown_in(&mut conn, 1).await.expect("reads");
    assert_eq!(shown.iter().map(|shown| shown.node.as_str()).collect::<Vec<_>>(), ["full"]);
    assert_eq!((shown[0].owner.as_str(), shown[0].width, shown[0].height), ("me", 1, 1));
}

#[tokio::test]
async fn a_node_may_show_what_its_canvas_or_its_owner_has() {
    let database = database(&["own"], &["stored"]).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let named = ["own", "stored", "gone"].map(handle);
    let both = placeable(&mut conn, 1, Some(&account("me")), named.iter()).await.expect("reads");
    assert_eq!(both, HashMap::from([(handle("own"), (1, 1)), (handle("stored"), (1, 1))]));
    for owner in [None, Some(account("you"))] {
        let stored = placeable(&mut conn, 1, owner.as_ref(), named.iter()).await.expect("reads");
        assert_eq!(stored, HashMap::from([(handle("stored"), (1, 1))]));
    }
    assert!(placeable(&mut conn, 2, None, named.iter()).await.expect("reads").is_empty());
}
