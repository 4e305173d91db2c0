//! Lists, access and origins of assets against a real database.

use domain::account::Surface;
use domain::asset::{AssetSort, OriginalReason};
use domain::canvas::Actor;
use domain::lineage::{InputRole, LineageDirection};
use domain::origin::{AiGenerated, OriginFrom};
use testkit::TestDatabase;

use super::*;

/// The account's own assets of every kind.
fn any() -> Wanted<'static> {
    Wanted { kinds: AssetKind::ALL, ..Wanted::default() }
}

/// Those of canvas 1.
fn on_canvas() -> Wanted<'static> {
    Wanted { canvas_key: Some(1), ..any() }
}

async fn listed(
    conn: &mut PgConnection,
    wanted: &Wanted<'_>,
    after: Option<&AssetRecord>,
    limit: i64,
) -> Vec<AssetRecord> {
    let after = after.map(|asset| AssetAfter::new(asset, wanted.sort));
    list(conn, &account("me"), wanted, after.as_ref(), limit).await.expect("lists")
}

fn account(uid: &str) -> AccountUid {
    AccountUid::from_stored(uid.into())
}

fn handle(id: &str) -> AssetHandle {
    AssetHandle { owner: account("me"), id: AssetId::from_stored(id.into()) }
}

fn made_by(uid: &str) -> Made {
    Made::uploaded(&Actor { owner_uid: account(uid), surface: Surface::Api, label: "L".into() })
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
            origin: None,
            metadata_removed: Vec::new(),
            original: None,
            video: None,
            made: made_by("me"),
            parents: Vec::new(),
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

#[tokio::test]
async fn what_was_removed_and_the_original_are_stored_with_an_asset() {
    let database = database(&["a"], &[]).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let read = get(&mut conn, &handle("a")).await.expect("reads").expect("is there");
    assert_eq!((read.metadata_removed, read.original), (Vec::new(), None));
    let new = |id: &str, metadata_removed: &[MetadataClass], original| NewAsset {
        handle: handle(id),
        canvas_key: None,
        node: None,
        kind: AssetKind::Image,
        name: "b.jpg".into(),
        mime_type: "image/jpeg".into(),
        width: 1,
        height: 1,
        bytes: 1,
        blob_key: read.blob_key,
        origin: None,
        metadata_removed: metadata_removed.to_vec(),
        original,
        video: None,
        made: made_by("me"),
        parents: Vec::new(),
    };
    let reason = OriginalReason::PrivateMetadata;
    let original = OriginalFile { blob_key: read.blob_key, mime_type: "image/jpeg".into(), bytes: 9, reason };
    let with_original = new("b", &[MetadataClass::Location, MetadataClass::Text], Some(original));
    let stored = insert(&mut conn, &with_original).await.expect("inserts");
    assert_eq!(
        (&stored.metadata_removed, &stored.original),
        (&with_original.metadata_removed, &with_original.original)
    );
    let several = [new("c", MetadataClass::ALL, None), new("d", &[], None)];
    insert_all(&mut conn, &several).await.expect("inserts");
    for asset in &several {
        let read = get_readable(&mut conn, &account("me"), &asset.handle).await.expect("reads").expect("is there").0;
        assert_eq!((&read.metadata_removed, &read.original), (&asset.metadata_removed, &asset.original));
    }
    let listed = listed(&mut conn, &any(), None, 9).await;
    assert!(listed.contains(&stored));
}

#[tokio::test]
async fn lists_go_by_handle_bytewise_within_a_moment_and_page_without_gap_or_repeat() {
    let database = database(&["a", "B", "_", "b"], &["x", "Y"]).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let first = listed(&mut conn, &any(), None, 3).await;
    assert_eq!(ids(&first), ["b", "a", "_"]);
    let second = listed(&mut conn, &any(), Some(&first[2]), 3).await;
    assert_eq!(ids(&second), ["B"]);
    let first = listed(&mut conn, &on_canvas(), None, 1).await;
    let second = listed(&mut conn, &on_canvas(), Some(&first[0]), 5).await;
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
    let page = listed(&mut conn, &any(), None, 5).await;
    assert_eq!(ids(&page), ["a", "b"]);
    let rest = listed(&mut conn, &any(), Some(&page[0]), 5).await;
    assert_eq!(ids(&rest), ["b"]);
}

#[tokio::test]
async fn every_order_is_walked_without_gap_or_repeat() {
    let database = database(&["a", "b", "c", "d"], &["e", "f"]).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    sqlx::query(
        "UPDATE assets SET name = v.name, bytes = v.bytes, created_at = now() + v.created * interval '1 s',
                           updated_at = now() + v.updated * interval '1 s'
         FROM (VALUES ('a', 'Kite', 2, 2, 9), ('b', 'kite', 2, 2, 9), ('c', 'Élan', 7, 1, 3), ('d', 'anchor', 1, 5, 1),
                      ('e', 'b', 2, 1, 1), ('f', 'A', 1, 2, 2)) AS v (id, name, bytes, created, updated)
         WHERE assets.id = v.id",
    )
    .execute(&mut *conn)
    .await
    .expect("updates");
    // Within equal values, by id, descending.
    for (sort, own, in_canvas) in [
        (None, ["b", "a", "c", "d"], ["f", "e"]),
        (Some(AssetSort::New), ["d", "b", "a", "c"], ["f", "e"]),
        (Some(AssetSort::Old), ["c", "b", "a", "d"], ["e", "f"]),
        (Some(AssetSort::Name), ["d", "b", "a", "c"], ["f", "e"]),
        (Some(AssetSort::Size), ["c", "b", "a", "d"], ["e", "f"]),
    ] {
        for (wanted, expected) in [(any(), &own[..]), (on_canvas(), &in_canvas)] {
            let wanted = Wanted { sort, ..wanted };
            assert_eq!(ids(&listed(&mut conn, &wanted, None, 9).await), expected, "{sort:?}");
            let (mut walked, mut last) = (Vec::new(), None);
            while let Some(next) = listed(&mut conn, &wanted, last.as_ref(), 1).await.pop() {
                walked.push(next.clone());
                last = Some(next);
            }
            assert_eq!(ids(&walked), expected, "{sort:?}");
        }
    }
}

/// Nodes that show assets of `me`, on canvas 1 of `me` and on canvas 2 of `you`: asset, canvas, title, tags.
async fn show(conn: &mut PgConnection, nodes: &[(&str, i64, &str, &[&str])]) {
    sqlx::query(
        "INSERT INTO canvases (owner_uid, id, title, revision) VALUES ('you', 'y', 'Y', 'r0') ON CONFLICT DO NOTHING",
    )
    .execute(&mut *conn)
    .await
    .expect("inserts");
    for (asset, canvas, title, tags) in nodes {
        let insert = "INSERT INTO nodes (canvas_key, id, type, title, x, y, width, height, agent_owned, metadata, asset_owner, asset_id)
             VALUES ($1, gen_random_uuid(), 'image', $2, 0, 0, 1, 1, false, json_build_object('tags', $3::text[]), 'me', $4)";
        let insert = sqlx::query(insert).bind(canvas).bind(title).bind(tags).bind(asset);
        insert.execute(&mut *conn).await.expect("inserts");
    }
}

#[tokio::test]
async fn a_search_finds_words_of_name_prompt_and_readable_titles_literally_and_whatever_their_case() {
    let database = database(&["a", "b"], &["c"]).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let texts =
        [("a", "100%_Élan.png", "A brass lamp"), ("b", "plain.png", "a Kite over the SEA"), ("c", "x.png", "lamp")];
    for (id, name, prompt) in texts {
        sqlx::query("UPDATE assets SET name = $2, made = made || jsonb_build_object('prompt', $3::text) WHERE id = $1")
            .bind(id)
            .bind(name)
            .bind(prompt)
            .execute(&mut *conn)
            .await
            .expect("updates");
    }
    show(&mut conn, &[("b", 1, "Hero still", &[]), ("b", 2, "Secret cover", &[]), ("a", 2, "Secret", &[])]).await;
    let mut found = async |words: &[&str], reader: &str| {
        let wanted = Wanted { words: words.to_vec(), ..any() };
        let listed = list(&mut conn, &account(reader), &wanted, None, 9).await.expect("lists");
        ids(&listed).into_iter().map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    for (words, expected) in [
        (&["lamp"][..], &["a"][..]),
        (&["LAMP", "élan"], &["a"]),
        (&["ÉLAN"], &["a"]),
        (&["sea", "hero", "plain"], &["b"]),
        (&["sea", "lamp"], &[]),
        (&["%"], &["a"]),
        (&["0%_É"], &["a"]),
        (&["_"], &["a"]),
        (&["l%mp"], &[]),
        (&["l_mp"], &[]),
        (&["\\"], &[]),
        (&["png"], &["b", "a"]),
        (&["secret"], &[]),
    ] {
        assert_eq!(found(words, "me").await, expected, "{words:?}");
    }
    assert_eq!(found(&["lamp"], "you").await, [""; 0], "the assets of others");
    sqlx::query("INSERT INTO canvas_shares (canvas_key, account_uid, role) SELECT key, 'me', 'viewer' FROM canvases WHERE id = 'y'")
        .execute(&mut *conn)
        .await
        .expect("shares");
    let wanted = Wanted { words: vec!["secret"], ..any() };
    assert_eq!(ids(&listed(&mut conn, &wanted, None, 9).await), ["b", "a"]);
}

#[tokio::test]
async fn a_list_is_of_those_with_a_tag_on_a_canvas_that_the_reader_can_read() {
    let database = database(&["a", "b", "c"], &["d"]).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let nodes = [
        ("a", 1, "", &["favorite", "rating:5"][..]),
        ("b", 2, "", &["favorite"]),
        ("c", 1, "", &["favorites"]),
        ("d", 1, "", &["favorite"]),
    ];
    show(&mut conn, &nodes).await;
    let tagged = |tag| Wanted { tag: Some(tag), ..any() };
    for (tag, expected) in
        [("favorite", &["a"][..]), ("rating:5", &["a"]), ("favorites", &["c"]), ("FAVORITE", &[]), ("fav%", &[])]
    {
        assert_eq!(ids(&listed(&mut conn, &tagged(tag), None, 9).await), expected, "{tag}");
    }
    let in_canvas = Wanted { tag: Some("favorite"), ..on_canvas() };
    assert_eq!(ids(&listed(&mut conn, &in_canvas, None, 9).await), ["d"]);
    sqlx::query("INSERT INTO canvas_shares (canvas_key, account_uid, role) SELECT key, 'me', 'viewer' FROM canvases WHERE id = 'y'")
        .execute(&mut *conn)
        .await
        .expect("shares");
    assert_eq!(ids(&listed(&mut conn, &tagged("favorite"), None, 9).await), ["b", "a"]);
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
    // Assets of earlier releases do not say it: what a canvas stores without a node of its own was made by a job.
    for sql in ["UPDATE assets SET origin_kind = NULL", "UPDATE assets SET node_id = 'n' WHERE id = 'placed'"] {
        sqlx::query(sql).execute(&mut *conn).await.expect("updates");
    }
    let named = ["own", "placed", "made", "gone"].map(handle).into();
    let expected =
        [("own", review::Origin::Brought), ("placed", review::Origin::Brought), ("made", review::Origin::Job)];
    assert_eq!(
        origins(&mut conn, &named).await.expect("reads"),
        expected.map(|(id, origin)| (handle(id), StoredAsset { origin, size: (1.0, 1.0), has_sources: None })).into()
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
    let image = Placeable { kind: AssetKind::Image, size: (1, 1) };
    assert_eq!(both, HashMap::from([(handle("own"), image), (handle("stored"), image)]));
    for owner in [None, Some(account("you"))] {
        let stored = placeable(&mut conn, 1, owner.as_ref(), named.iter()).await.expect("reads");
        assert_eq!(stored, HashMap::from([(handle("stored"), image)]));
    }
    assert!(placeable(&mut conn, 2, None, named.iter()).await.expect("reads").is_empty());
}

const FILE: [u8; 32] = [7; 32];

fn origin(term: DigitalSourceType, from: OriginFrom) -> Option<Origin> {
    Some(Origin { term, from })
}

/// Stores assets of this account with these origins and equal bytes: what was made before what was brought.
async fn store(
    conn: &mut PgConnection,
    owner: &str,
    made: &[(&str, Option<Origin>)],
    brought: &[(&str, Option<Origin>)],
) {
    let staged = crate::blobs::stage(conn, &FILE).await.expect("stages");
    let (crate::blobs::Staged::Existing(key) | crate::blobs::Staged::New(key)) = staged;
    let blob_key = crate::blobs::adopt(conn, key, &FILE, 1).await.expect("adopts").expect("is there");
    let asset = |(id, origin): &(&str, Option<Origin>)| NewAsset {
        handle: AssetHandle { owner: account(owner), id: AssetId::from_stored((*id).into()) },
        canvas_key: None,
        node: None,
        kind: AssetKind::Image,
        name: "a.png".into(),
        mime_type: "image/png".into(),
        width: 1,
        height: 1,
        bytes: 1,
        blob_key,
        metadata_removed: Vec::new(),
        original: None,
        video: None,
        origin: *origin,
        made: made_by(owner),
        parents: Vec::new(),
    };
    insert_all(conn, &made.iter().map(asset).collect::<Vec<_>>()).await.expect("inserts");
    for brought in brought {
        insert(conn, &asset(brought)).await.expect("inserts");
    }
}

#[tokio::test]
async fn what_is_uploaded_again_has_the_origin_of_the_accounts_own_output() {
    let database = database(&[], &[]).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let drawn = origin(DigitalSourceType::AlgorithmicMedia, OriginFrom::Service);
    let made = origin(DigitalSourceType::TrainedAlgorithmicMedia, OriginFrom::Service);
    let claimed = origin(DigitalSourceType::AlgorithmicMedia, OriginFrom::Metadata);
    store(&mut conn, "me", &[("a", drawn)], &[("b", claimed), ("c", None)]).await;
    store(&mut conn, "you", &[], &[("d", claimed), ("e", None)]).await;
    // Of several, one with AI counts.
    store(&mut conn, "me", &[("f", made)], &[("g", None)]).await;
    for (owner, id, expected) in [
        ("me", "a", drawn),
        ("me", "b", drawn),
        ("me", "c", drawn),
        ("you", "d", claimed),
        ("you", "e", None),
        ("me", "f", made),
        ("me", "g", made),
    ] {
        let handle = AssetHandle { owner: account(owner), id: AssetId::from_stored(id.into()) };
        assert_eq!(get(&mut conn, &handle).await.expect("reads").expect("is there").origin, expected, "{id}");
    }
}

#[tokio::test]
async fn a_list_is_of_those_that_say_whether_ai_made_them() {
    let database = database(&[], &[]).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let all: Vec<(String, Option<Origin>)> = AiGenerated::ALL
        .iter()
        .flat_map(|answer| {
            answer.origins().enumerate().map(move |(index, origin)| (format!("{answer}-{index:02}"), origin))
        })
        .collect();
    let made: Vec<(&str, Option<Origin>)> = all.iter().map(|(id, origin)| (id.as_str(), *origin)).collect();
    store(&mut conn, "me", &made, &[]).await;
    let every = listed(&mut conn, &any(), None, 100).await;
    assert_eq!(every.len(), all.len());
    for answer in AiGenerated::ALL {
        let listed = listed(&mut conn, &Wanted { ai_generated: Some(*answer), ..any() }, None, 100).await;
        let expected: HashSet<&str> =
            all.iter().map(|(id, _)| id.as_str()).filter(|id| id.starts_with(&format!("{answer}-"))).collect();
        assert_eq!(ids(&listed).into_iter().collect::<HashSet<_>>(), expected, "{answer}");
    }
    sqlx::query("UPDATE assets SET canvas_key = 1").execute(&mut *conn).await.expect("updates");
    for answer in AiGenerated::ALL {
        let listed = listed(&mut conn, &Wanted { ai_generated: Some(*answer), ..on_canvas() }, None, 100).await;
        assert_eq!(listed.len(), answer.origins().count(), "{answer}");
    }
}

#[tokio::test]
async fn the_origin_of_bytes_is_one_that_counts() {
    let database = database(&[], &[]).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let drawn = origin(DigitalSourceType::AlgorithmicMedia, OriginFrom::Service);
    let photo = origin(DigitalSourceType::DigitalCapture, OriginFrom::Metadata);
    let claimed = origin(DigitalSourceType::TrainedAlgorithmicMedia, OriginFrom::Metadata);
    for (id, stored, expected) in [
        ("a", None, None),
        ("b", photo, None),
        ("c", drawn, Some(DigitalSourceType::AlgorithmicMedia)),
        ("d", claimed, Some(DigitalSourceType::TrainedAlgorithmicMedia)),
    ] {
        store(&mut conn, "me", &[(id, stored)], &[]).await;
        let handle = AssetHandle { owner: account("me"), id: AssetId::from_stored(id.into()) };
        let blob_key = get(&mut conn, &handle).await.expect("reads").expect("is there").blob_key;
        assert_eq!(believed_origin(&mut conn, blob_key).await.expect("reads"), expected, "{id}");
    }
}

/// The statement of the migration that records the origins of earlier outputs.
fn backfill() -> &'static str {
    let migration = include_str!("../../migrations/0036_origins.sql");
    &migration[migration.find("UPDATE assets").expect("has one")..]
}

#[tokio::test]
async fn the_outputs_of_models_that_are_still_recorded_are_known_after_the_upgrade() {
    let database = database(&["upload"], &["made", "edited", "drawn", "resized"]).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let token = Uuid::from_u128(2);
    sqlx::raw_sql(
        "INSERT INTO account_sessions (id, account_uid) VALUES ('00000000-0000-0000-0000-000000000001', 'me');
         INSERT INTO tokens (id, account_uid, session_id, label, scopes, surface, secret_hash)
         VALUES ('00000000-0000-0000-0000-000000000002', 'me', '00000000-0000-0000-0000-000000000001', '', '{}', 'api', '')",
    )
    .execute(&mut *conn)
    .await
    .expect("inserts a token");
    for (id, kind, operation, model) in [
        ("made", "image", "variations", Some(("openai", "gpt-image-1"))),
        ("edited", "image", "edit", Some(("managed", "flux"))),
        ("drawn", "image", "generate", Some(("managed", "sketch"))),
        ("resized", "action", "action", None),
        ("gone", "image", "generate", Some(("openai", "gpt-image-1"))),
    ] {
        let request = match model {
            Some((provider, id)) => serde_json::json!({"kind": kind, "model": {"provider": provider, "id": id}}),
            None => serde_json::json!({"kind": kind}),
        };
        let outcome = domain::job::JobOutcome {
            images: vec![domain::job::Output {
                asset: handle(id),
                node: NodeId::from_stored("n".into()),
                media_type: "image/png".into(),
                width: 1,
                height: 1,
                bytes: 1,
                ai_generated: None,
                alt: None,
                masked: None,
            }],
            ..Default::default()
        };
        sqlx::query(
            "INSERT INTO jobs (id, account_uid, token_id, kind, operation, status, request, outcome, estimated_seconds)
             VALUES ($1, 'me', $2, $3, $4, 'succeeded', $5, $6, 1)",
        )
        .bind(Uuid::new_v4())
        .bind(token)
        .bind(kind)
        .bind(operation)
        .bind(request)
        .bind(sqlx::types::Json(outcome))
        .execute(&mut *conn)
        .await
        .expect("inserts a job");
    }
    sqlx::raw_sql(backfill()).execute(&mut *conn).await.expect("updates");
    for (id, expected) in [
        ("upload", None),
        ("made", Some(DigitalSourceType::TrainedAlgorithmicMedia)),
        ("edited", Some(DigitalSourceType::CompositeWithTrainedAlgorithmicMedia)),
        ("drawn", None),
        ("resized", None),
    ] {
        let origin = get(&mut conn, &handle(id)).await.expect("reads").expect("is there").origin;
        assert_eq!(origin, expected.map(Origin::service), "{id}");
    }
}

#[tokio::test]
async fn a_video_is_listed_on_request_and_its_poster_stands_for_it() {
    let database = database(&[], &["image"]).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let image = get(&mut conn, &handle("image")).await.expect("reads").expect("is there");
    let poster = Some(Poster { blob_key: image.blob_key, mime_type: "image/jpeg".into() });
    let new = |id: &str, video: VideoDetails| NewAsset {
        handle: handle(id),
        canvas_key: Some(1),
        node: None,
        kind: AssetKind::Video,
        name: "v.mp4".into(),
        mime_type: "video/mp4".into(),
        width: 640,
        height: 360,
        bytes: 9,
        blob_key: image.blob_key,
        origin: None,
        metadata_removed: Vec::new(),
        original: None,
        video: Some(video),
        made: made_by("me"),
        parents: Vec::new(),
    };
    let known = VideoDetails { duration_ms: Some(5200), has_audio: Some(true), poster };
    let videos = [new("known", known), new("unknown", VideoDetails::default())];
    insert_all(&mut conn, &videos).await.expect("inserts");
    for video in &videos {
        let stored = get(&mut conn, &video.handle).await.expect("reads").expect("is stored");
        assert_eq!((stored.kind, &stored.video), (AssetKind::Video, &video.video));
        let content = content(&mut conn, &video.handle, None).await.expect("reads").expect("is stored");
        assert_eq!(content.mime_type, "video/mp4");
        let image = content.into_image().map(|image| image.mime_type);
        assert_eq!(image.as_deref(), video.poster().map(|_| "image/jpeg"));
    }
    for (kinds, expected) in [
        (&[AssetKind::Image, AssetKind::Prompt][..], &["image"][..]),
        (&[AssetKind::Video], &["unknown", "known"]),
        (AssetKind::ALL, &["unknown", "known", "image"]),
    ] {
        let mut listed = listed(&mut conn, &Wanted { kinds, ..on_canvas() }, None, 9).await;
        listed.sort_by(|a, b| b.handle.id.as_str().cmp(a.handle.id.as_str()));
        assert_eq!(ids(&listed), expected);
    }
}

/// Stores an output of a job in canvas 1, made from these.
async fn store_made(conn: &mut PgConnection, id: &str, parents: &[(&str, Option<InputRole>)]) {
    let blob_key = sqlx::query_scalar("SELECT key FROM blobs LIMIT 1").fetch_one(&mut *conn).await.expect("reads");
    let parents = parents.iter().map(|(id, role)| Parent { asset: handle(id), role: *role }).collect();
    let asset = NewAsset {
        handle: handle(id),
        canvas_key: Some(1),
        node: None,
        kind: AssetKind::Image,
        name: format!("{id}.png"),
        mime_type: "image/png".into(),
        width: 1,
        height: 1,
        bytes: 1,
        blob_key,
        origin: None,
        metadata_removed: Vec::new(),
        original: None,
        video: None,
        made: made_by("you"),
        parents,
    };
    insert_all(conn, &[asset]).await.expect("inserts");
}

async fn run(conn: &mut PgConnection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(conn).await.expect("runs");
}

#[tokio::test]
async fn what_an_asset_was_made_from_is_known_to_those_who_may_read_it() {
    let database = database(&["photo"], &["board"]).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    let style = Some(InputRole::Style);
    store_made(&mut conn, "out", &[("photo", style), ("board", None), ("photo", Some(InputRole::Mask))]).await;
    store_made(&mut conn, "next", &[("out", None)]).await;
    run(&mut conn, "INSERT INTO canvas_shares (canvas_key, account_uid, role) VALUES (1, 'you', 'viewer')").await;
    let (me, you) = (account("me"), account("you"));

    let made = lineage::made(&mut conn, &handle("out")).await.expect("reads").expect("is recorded");
    assert_eq!(made, Made { at: made.at, ..made_by("you") });
    assert!(made.at.is_some());
    let read = async |conn: &mut PgConnection, reader: &AccountUid| {
        let (inputs, hidden) = lineage::inputs(conn, reader, &handle("out")).await.expect("reads");
        (inputs.into_iter().map(|input| (input.handle.id.to_string(), input.gone)).collect::<Vec<_>>(), hidden)
    };
    let all = ["photo", "board", "photo"].map(|id| (id.to_owned(), false)).to_vec();
    assert_eq!(read(&mut conn, &me).await, (all, 0));
    assert_eq!(read(&mut conn, &you).await, (vec![("board".to_owned(), false)], 2));

    let (parents, children) = (LineageDirection::Parents, LineageDirection::Children);
    let found = async |conn: &mut PgConnection, reader: &AccountUid, of: &str, direction, max| {
        let found = lineage::relatives(conn, reader, &[handle(of)], direction, &[handle("next")], max).await;
        let found = found.expect("reads").into_iter();
        found.map(|it| (it.asset.id.to_string(), it.is_stored, it.is_readable)).collect::<Vec<_>>()
    };
    let is = |id: &str, is_stored, is_readable| (id.to_owned(), is_stored, is_readable);
    assert_eq!(found(&mut conn, &me, "out", parents, 9).await, [is("board", true, true), is("photo", true, true)]);
    assert_eq!(found(&mut conn, &you, "out", parents, 9).await, [is("board", true, true), is("photo", true, false)]);
    assert_eq!(found(&mut conn, &me, "out", parents, 1).await, [is("board", true, true)]);
    assert_eq!(found(&mut conn, &me, "photo", children, 9).await, [is("out", true, true)], "once");
    assert_eq!(found(&mut conn, &me, "out", children, 9).await, [], "it was seen");
    let edges = lineage::edges(&mut conn, &["out", "photo", "next"].map(handle)).await.expect("reads");
    let edges: Vec<_> = edges.iter().map(|it| (it.child.id.as_str(), it.parent.id.as_str(), it.role.clone())).collect();
    let role = |role: InputRole| Some(role.into());
    let expected =
        [("next", "out", None), ("out", "photo", role(InputRole::Style)), ("out", "photo", role(InputRole::Mask))];
    assert_eq!(edges, expected);

    // A mask that is gone is no source that is gone.
    let has_sources = async |conn: &mut PgConnection| {
        let found = lineage::has_sources(conn, &["out", "next", "photo"].map(handle).into()).await.expect("reads");
        ["out", "next", "photo"].map(|id| found.get(&handle(id)).copied())
    };
    assert_eq!(has_sources(&mut conn).await, [Some(true), Some(true), None]);
    run(
        &mut conn,
        "DELETE FROM asset_parents WHERE parent_id = 'photo' AND role = 'style'; DELETE FROM assets WHERE id = 'photo'",
    )
    .await;
    assert_eq!(has_sources(&mut conn).await, [Some(true), Some(true), None]);
    assert_eq!(read(&mut conn, &me).await.0.last(), Some(&("photo".to_owned(), true)));
    assert_eq!(read(&mut conn, &you).await.1, 1, "a deleted asset is its owner's alone");
    assert_eq!(found(&mut conn, &me, "out", parents, 9).await[1], is("photo", false, true));
    assert_eq!(found(&mut conn, &you, "out", parents, 9).await[1], is("photo", false, false));
    run(&mut conn, "DELETE FROM assets WHERE id = 'board'").await;
    assert_eq!(has_sources(&mut conn).await[0], Some(false));

    // The label of a purged account goes; what was made goes with its asset.
    crate::purge::forget_actor(&mut conn, &you).await.expect("forgets");
    let made = lineage::made(&mut conn, &handle("out")).await.expect("reads").expect("is recorded");
    assert_eq!(made.by.map(|by| by.label).as_deref(), Some("deleted account"));
    run(&mut conn, "DELETE FROM assets WHERE id = 'out'").await;
    let left: Vec<String> = sqlx::query_scalar("SELECT child_id || ' ' || parent_id FROM asset_parents")
        .fetch_all(&mut *conn)
        .await
        .expect("reads");
    assert_eq!(left, ["next out"]);
}

#[tokio::test]
async fn the_nodes_that_show_an_asset_are_listed_newest_first_for_those_who_may_read_them() {
    let database = database(&["photo", "other"], &[]).await;
    let mut conn = database.pool().acquire().await.expect("connects");
    // As the previous release makes them: without refs.
    run(
        &mut conn,
        "INSERT INTO canvases (owner_uid, id, title, revision) VALUES ('me', 'd', 'D', 'r0');
         INSERT INTO nodes (canvas_key, id, type, title, x, y, width, height, agent_owned, asset_owner, asset_id)
         VALUES (1, 'a', 'image', 'A', 0, 0, 9, 9, false, 'me', 'photo'), (2, 'b', 'image', 'B', 0, 0, 9, 9, false, 'me', 'photo'),
                (1, 'c', 'image', 'C', 0, 0, 9, 9, false, 'me', 'photo');
         INSERT INTO canvas_shares (canvas_key, account_uid, role) VALUES (1, 'you', 'viewer')",
    )
    .await;
    let photo = handle("photo");
    let listed = async |conn: &mut PgConnection, reader: &str, max| {
        let assets = [photo.clone(), handle("other")];
        let mut places = lineage::places(conn, &account(reader), &assets, max).await.expect("reads");
        assert_eq!(places.get(&assets[1]), None);
        let places = places.remove(&photo).unwrap_or_default().into_iter();
        places.map(|it| format!("{} {} {}", it.title, it.short.expect("a ref"), it.canvas.id)).collect::<Vec<_>>()
    };
    assert_eq!(listed(&mut conn, "me", 9).await, ["C n2 c", "B n1 d", "A n1 c"]);
    assert_eq!(listed(&mut conn, "me", 2).await, ["C n2 c", "B n1 d"]);
    assert_eq!(listed(&mut conn, "you", 9).await, ["C n2 c", "A n1 c"]);
    assert_eq!(listed(&mut conn, "they", 9).await, [""; 0]);
    for (reader, hidden) in [("me", 0), ("you", 1), ("they", 3)] {
        assert_eq!(lineage::hidden_places(&mut conn, &account(reader), &photo).await.expect("counts"), hidden);
    }
}
