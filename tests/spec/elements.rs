//! Elements, versions and collections (docs/reference/elements.md).

use std::collections::BTreeSet;

use e2e::api::text;
use e2e::{Client, Reply, Stack, User, images};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

const TYPES: [&str; 6] = ["character", "product/object", "environment", "style", "material/texture", "lighting"];

fn wanted(name: &str) -> Value {
    json!({"name": name, "type": "style", "sourceAssetIds": [], "guidelines": "As it should be."})
}

async fn make(user: &Client, body: &Value) -> Value {
    user.send("/elements", body).await.expect(201).json()["element"].clone()
}

async fn patch(user: &Client, id: &str, body: Value) -> Reply {
    user.call(Method::PATCH, &format!("/elements/{id}")).body("application/json", body.to_string()).await
}

async fn collection(user: &Client, name: &str) -> String {
    let made = user.send("/element-collections", &json!({"name": name})).await.expect(201).json();
    text(&made, "/collection/id").to_owned()
}

async fn image(user: &User) -> String {
    text(&user.upload("image/png", images::png(4, 4)).await, "/id").to_owned()
}

#[tokio::test]
async fn an_element_is_created_in_version_1() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (source, group) = (image(&user).await, collection(&user, "Heroes").await);
    for kind in TYPES {
        let body = json!({"name": "Mara", "type": kind, "sourceAssetIds": [source], "guidelines": "Red coat.",
            "collectionIds": [group]});
        let reply = user.send("/elements", &body).await.expect(201);
        let (location, made) = (reply.header("location").expect("a location").to_owned(), reply.json());
        let element = &made["element"];
        let id = text(element, "/id");
        assert_eq!(uuid::Uuid::parse_str(id).map(|id| id.get_version_num()), Ok(7), "a UUIDv7");
        let expected = json!({
            "id": id, "handle": format!("element:{id}"), "versionHandle": format!("element:{id}@v1"),
            "name": "Mara", "type": kind, "sourceAssetIds": [source], "collectionIds": [group],
            "guidelines": "Red coat.", "ownerUid": user.uid, "version": 1, "lifecycle": "active",
            "createdAt": element["createdAt"], "updatedAt": element["updatedAt"], "schemaVersion": 1,
            "sourceHealth": {"status": "available", "unavailableSourceAssetIds": []},
        });
        assert_eq!(*element, expected);
        assert_eq!(user.get(&location).await.ok(), made, "the location is the path of the Element");
        for form in [id.to_owned(), format!("element:{id}"), format!("element%3A{id}")] {
            assert_eq!(user.at(stack, 1).get(&format!("/elements/{form}")).await.ok(), made, "{form}");
        }
    }
}

#[tokio::test]
async fn names_guidelines_and_lists_have_their_limits() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let with = |field: &str, value: Value| {
        let mut body = wanted("x");
        body[field] = value;
        body
    };
    let (mut sources, mut groups) = (Vec::new(), Vec::new());
    for index in 0..9 {
        sources.push(image(&user).await);
        groups.push(collection(&user, &index.to_string()).await);
    }
    for index in 9..25 {
        groups.push(collection(&user, &index.to_string()).await);
    }
    for (field, accepted, refused) in [
        (
            "name",
            vec![json!("ü"), json!("ü".repeat(160))],
            vec![json!(""), json!("x".repeat(161)), json!(1), json!(null)],
        ),
        ("guidelines", vec![json!("ü".repeat(2000))], vec![json!("x".repeat(2001)), json!(null), json!([])]),
        ("sourceAssetIds", vec![json!([]), json!(sources[..8])], vec![json!(sources), json!("x"), json!(null)]),
        ("collectionIds", vec![json!([]), json!(groups[..24])], vec![json!(groups), json!({}), json!(null)]),
        ("type", vec![json!("lighting")], vec![json!("Lighting"), json!("product"), json!(null)]),
    ] {
        for value in accepted {
            assert_eq!(make(&user, &with(field, value.clone())).await[field], value);
        }
        for value in refused {
            let reply = user.send("/elements", &with(field, value)).await;
            reply.expect_error(400, "input_validation_error", &[field]);
        }
    }
    // An update follows the same rules. All violations are reported at once, each with its path.
    let element = make(&user, &wanted("x")).await;
    let wrong = json!({"name": "x".repeat(161), "type": "mood", "sourceAssetIds": sources, "guidelines": "x".repeat(2001),
        "collectionIds": []});
    let update = patch(&user, text(&element, "/id"), json!({"operation": "update", "element": wrong})).await;
    let fields =
        ["name", "type", "sourceAssetIds", "guidelines", "collectionIds"].map(|field| format!("element.{field}"));
    update.expect_error(400, "input_validation_error", &fields.each_ref().map(String::as_str));
    user.send("/elements", &json!({})).await.expect_error(
        400,
        "input_validation_error",
        &["name", "type", "sourceAssetIds"],
    );
    user.send("/elements", &with("colour", json!("red"))).await.expect_error(
        400,
        "input_validation_error",
        &["colour"],
    );
}

#[tokio::test]
async fn an_element_needs_images_or_guidelines() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let source = image(&user).await;
    let body = |sources: Value, guidelines: Option<&str>| {
        let mut body = json!({"name": "n", "type": "style", "sourceAssetIds": sources});
        if let Some(guidelines) = guidelines {
            body["guidelines"] = json!(guidelines);
        }
        body
    };
    for good in [body(json!([source]), None), body(json!([]), Some("x")), body(json!([source]), Some("x"))] {
        let made = make(&user, &good).await;
        assert_eq!(made.get("guidelines"), good.get("guidelines"));
    }
    let element = make(&user, &body(json!([]), Some("x"))).await;
    for guidelines in [None, Some(""), Some(" \n\t")] {
        let bad = body(json!([]), guidelines);
        let fields = ["guidelines", "sourceAssetIds"];
        user.send("/elements", &bad).await.expect_error(400, "input_validation_error", &fields);
        let update = patch(&user, text(&element, "/id"), json!({"operation": "update", "element": bad})).await;
        update.expect_error(400, "input_validation_error", &["element.guidelines", "element.sourceAssetIds"]);
    }
}

#[tokio::test]
async fn ids_in_a_body_are_plain_known_and_given_once() {
    let stack = &Stack::without_workers().await;
    let (user, other) = (stack.user().await, stack.user().await);
    let (own, foreign) = (image(&user).await, image(&other).await);
    let (group, theirs) = (collection(&user, "c").await, collection(&other, "c").await);
    // An image in one of the account's canvases counts as the account's.
    let canvas = user.make_canvas().await;
    let placed = user.upload_into(text(&canvas, "/id"), "image/png", images::png(4, 4)).await;
    let body = |sources: Value, groups: Value| json!({"name": "n", "type": "style", "guidelines": "g", "sourceAssetIds": sources, "collectionIds": groups});
    make(&user, &body(json!([own, placed["id"]]), json!([group]))).await;
    for (sources, groups, fields) in [
        (json!([own, "absent"]), json!([]), &["sourceAssetIds[1]"][..]),
        (json!([foreign, own, "absent"]), json!([]), &["sourceAssetIds[0]", "sourceAssetIds[2]"]),
        (json!([]), json!([group, theirs, "absent"]), &["collectionIds[1]", "collectionIds[2]"]),
        (json!(["absent", own]), json!([theirs]), &["sourceAssetIds[0]", "collectionIds[0]"]),
    ] {
        let reply = user.send("/elements", &body(sources, groups)).await;
        reply.expect_error(422, "unprocessable_entity", fields);
    }
    for (sources, groups, fields) in [
        (json!([own, own]), json!([group, group]), &["sourceAssetIds[1]", "collectionIds[1]"][..]),
        (
            json!(["a b", format!("asset:{own}"), 7]),
            json!(["", "element-collection:x"]),
            &["sourceAssetIds[0]", "sourceAssetIds[1]", "sourceAssetIds[2]", "collectionIds[0]", "collectionIds[1]"],
        ),
    ] {
        let reply = user.send("/elements", &body(sources, groups)).await;
        reply.expect_error(400, "input_validation_error", fields);
    }
    assert_eq!(user.get("/elements").await.ok()["elements"].as_array().map(Vec::len), Some(1), "nothing was created");
    let element = make(&user, &wanted("x")).await;
    let update = json!({"operation": "update", "element": {"name": "n", "type": "style", "sourceAssetIds": [foreign]}});
    let refused = patch(&user, text(&element, "/id"), update).await;
    refused.expect_error(422, "unprocessable_entity", &["element.sourceAssetIds[0]"]);
    let organize = json!({"operation": "collections", "collectionIds": [group, theirs]});
    let refused = patch(&user, text(&element, "/id"), organize).await;
    refused.expect_error(422, "unprocessable_entity", &["collectionIds[1]"]);
    assert_eq!(user.get(&format!("/elements/{}", text(&element, "/id"))).await.ok()["element"], element);
}

#[tokio::test]
async fn an_update_appends_a_version_that_replaces_the_content_whole() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (source, group) = (image(&user).await, collection(&user, "c").await);
    let first = make(
        &user,
        &json!({"name": "One", "type": "character", "sourceAssetIds": [source], "guidelines": "g",
        "collectionIds": [group]}),
    )
    .await;
    let id = text(&first, "/id");
    let content = json!({"name": "Two", "type": "lighting", "sourceAssetIds": [source]});
    let updated = patch(&user, id, json!({"operation": "update", "element": content})).await.ok()["element"].clone();
    let mut expected = first.clone();
    for (field, value) in [
        ("name", json!("Two")),
        ("type", json!("lighting")),
        ("version", json!(2)),
        ("versionHandle", json!(format!("element:{id}@v2"))),
        ("updatedAt", updated["updatedAt"].clone()),
    ] {
        expected[field] = value;
    }
    expected.as_object_mut().expect("an object").remove("guidelines");
    assert_eq!(updated, expected, "the membership stays, the guidelines go");
    assert!(text(&updated, "/updatedAt") >= text(&first, "/updatedAt"));
    // The same content again makes a new version.
    let again = patch(&user, &format!("element:{id}"), json!({"operation": "update", "element": content})).await.ok();
    assert_eq!(again["element"]["version"], 3);
    patch(&user, "absent", json!({"operation": "restore"})).await.expect_error(404, "not_found", &[]);
    for malformed in ["a%20b", "asset:x", "element:x@v1"] {
        let refused = patch(&user, malformed, json!({"operation": "restore"})).await;
        refused.expect_error(400, "input_validation_error", &["elementId"]);
    }
}

#[tokio::test]
async fn a_patch_has_one_of_four_shapes() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let element = make(&user, &wanted("x")).await;
    let content = json!({"name": "n", "type": "style", "sourceAssetIds": [], "guidelines": "g"});
    for (body, fields) in [
        (json!({}), &["operation"][..]),
        (json!({"operation": "delete"}), &["operation"]),
        (json!({"operation": null}), &["operation"]),
        (json!({"element": content}), &["operation"]),
        (json!({"operation": "update"}), &["element"]),
        (json!({"operation": "update", "element": null}), &["element"]),
        (json!({"operation": "update", "element": {}}), &["element.name", "element.type", "element.sourceAssetIds"]),
        (json!({"operation": "update", "element": content, "confirm": true}), &["confirm"]),
        (json!({"operation": "collections"}), &["collectionIds"]),
        (json!({"operation": "collections", "collectionIds": [], "element": content}), &["element"]),
        (json!({"operation": "archive"}), &["confirm"]),
        (json!({"operation": "archive", "confirm": false}), &["confirm"]),
        (json!({"operation": "archive", "confirm": "true"}), &["confirm"]),
        (json!({"operation": "archive", "confirm": true, "collectionIds": []}), &["collectionIds"]),
        (json!({"operation": "restore", "confirm": true}), &["confirm"]),
    ] {
        let reply = patch(&user, text(&element, "/id"), body).await;
        reply.expect_error(400, "input_validation_error", fields);
    }
    let empty = user.call(Method::PATCH, &format!("/elements/{}", text(&element, "/id")));
    empty.body("application/json", "").await.expect_error(400, "invalid_json", &[]);
    assert_eq!(user.get(&format!("/elements/{}", text(&element, "/id"))).await.ok()["element"], element);
}

#[tokio::test]
async fn an_archived_element_can_be_restored_and_not_updated() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let element = make(&user, &wanted("x")).await;
    let id = text(&element, "/id");
    patch(&user, id, json!({"operation": "restore"})).await.expect_error(409, "conflict", &[]);
    let archived = patch(&user, id, json!({"operation": "archive", "confirm": true})).await.ok()["element"].clone();
    assert_eq!((&archived["lifecycle"], &archived["version"]), (&json!("archived"), &json!(1)), "no new version");
    assert_eq!(archived["archivedAt"], archived["updatedAt"]);
    assert_eq!(user.get(&format!("/elements/{id}")).await.ok()["element"], archived, "it can still be read");
    patch(&user, id, json!({"operation": "archive", "confirm": true})).await.expect_error(409, "conflict", &[]);
    let update = json!({"operation": "update", "element": wanted("y")});
    patch(&user, id, update.clone()).await.expect_error(409, "conflict", &[]);
    let group = collection(&user, "c").await;
    let organized = patch(&user, id, json!({"operation": "collections", "collectionIds": [group]})).await.ok();
    assert_eq!(organized["element"]["lifecycle"], "archived", "membership does not change the lifecycle");
    let restored = patch(&user, id, json!({"operation": "restore"})).await.ok()["element"].clone();
    assert_eq!((&restored["lifecycle"], &restored["version"]), (&json!("active"), &json!(2)), "a version is appended");
    assert!(restored.get("archivedAt").is_none());
    let versions = user.get(&format!("/elements/{id}/versions")).await.ok()["versions"].clone();
    assert_eq!(versions[0]["elementName"], versions[1]["elementName"]);
    assert_eq!(patch(&user, id, update).await.ok()["element"]["version"], 3);
}

#[tokio::test]
async fn collections_are_set_without_a_new_version() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let element = make(&user, &wanted("x")).await;
    let id = text(&element, "/id");
    let (one, two) = (collection(&user, "one").await, collection(&user, "two").await);
    for groups in [json!([two, one]), json!([one]), json!([])] {
        let body = json!({"operation": "collections", "collectionIds": groups});
        let organized = patch(&user, id, body).await.ok()["element"].clone();
        assert_eq!((&organized["collectionIds"], &organized["version"]), (&groups, &json!(1)));
        assert_eq!(user.get(&format!("/elements/{id}")).await.ok()["element"], organized);
    }
    let too_many = json!({"operation": "collections", "collectionIds": vec!["x"; 25]});
    let refused = patch(&user, id, too_many).await.expect(400).json();
    assert_eq!(refused["error"]["code"], "input_validation_error");
}

#[tokio::test]
async fn a_version_is_read_exactly_and_never_upgraded() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let source = image(&user).await;
    let first = make(&user, &json!({"name": "One", "type": "style", "sourceAssetIds": [source]})).await;
    let id = text(&first, "/id");
    patch(&user, id, json!({"operation": "update", "element": wanted("Two")})).await.ok();
    let expected = json!({"version": {
        "id": "v1", "elementId": id, "handle": format!("element:{id}"), "versionHandle": format!("element:{id}@v1"),
        "elementName": "One", "elementType": "style", "sourceAssetIds": [source], "ownerUid": user.uid, "version": 1,
        "createdAt": user.get(&format!("/elements/{id}?version=1")).await.ok()["version"]["createdAt"],
        "schemaVersion": 1, "sourceHealth": {"status": "available", "unavailableSourceAssetIds": []},
    }});
    for path in [
        format!("{id}?version=1"),
        format!("element:{id}?version=1"),
        format!("element:{id}@v1"),
        format!("element%3A{id}%40v1"),
        format!("element:{id}@v1?version=1"),
    ] {
        assert_eq!(user.get(&format!("/elements/{path}")).await.ok(), expected, "{path}");
    }
    assert_eq!(user.get(&format!("/elements/{id}?version=2")).await.ok()["version"]["elementName"], "Two");
    // Version numbers have no upper limit.
    let beyond = ["2147483647", "2147483648", "4294967296", "99999999999999999999"].map(|version| version.to_owned());
    let beyond =
        beyond.iter().flat_map(|version| [format!("{id}?version={version}"), format!("element:{id}@v{version}")]);
    let absent = [format!("{id}?version=3"), format!("element:{id}@v3"), "absent?version=1".to_owned()];
    for absent in absent.into_iter().chain(beyond) {
        user.get(&format!("/elements/{absent}")).await.expect_error(404, "not_found", &[]);
    }
    for (path, field) in [
        (format!("{id}?version=0"), "version"),
        (format!("{id}?version=-1"), "version"),
        (format!("{id}?version=1.5"), "version"),
        (format!("{id}?version="), "version"),
        (format!("element:{id}@v1?version=2"), "version"),
        (format!("element:{id}@v0"), "elementId"),
        (format!("{id}@v1"), "elementId"),
        ("a%20b".to_owned(), "elementId"),
    ] {
        user.get(&format!("/elements/{path}")).await.expect_error(400, "input_validation_error", &[field]);
    }
}

#[tokio::test]
async fn concurrent_updates_neither_share_nor_skip_a_version() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let elsewhere = user.at(stack, 1);
    let element = make(&user, &wanted("v1")).await;
    let id = text(&element, "/id");
    let updates = (0..24).map(|index| {
        let user = if index % 2 == 0 { &user } else { &elsewhere };
        async move {
            let body = json!({"operation": "update", "element": wanted(&format!("by {index}"))});
            let updated = patch(user, id, body).await.ok()["element"].clone();
            (updated["version"].as_u64().expect("a number"), text(&updated, "/name").to_owned())
        }
    });
    let made = join_all(updates).await;
    let numbers: BTreeSet<u64> = made.iter().map(|(version, _)| *version).collect();
    assert_eq!(numbers, (2..=25).collect(), "each exactly once");
    for (version, name) in made {
        let read = user.get(&format!("/elements/{id}?version={version}")).await.ok();
        assert_eq!(text(&read, "/version/elementName"), name, "each response reported its own version");
    }
    // Of concurrent archive requests, one takes effect.
    let archivings = (0..6).map(|_| patch(&user, id, json!({"operation": "archive", "confirm": true})));
    let mut seen: Vec<u16> = join_all(archivings).await.iter().map(|reply| reply.status).collect();
    seen.sort_unstable();
    assert_eq!(seen, [200, 409, 409, 409, 409, 409]);
    let restorings = (0..6).map(|_| patch(&user, id, json!({"operation": "restore"})));
    assert_eq!(join_all(restorings).await.iter().filter(|reply| reply.status == 200).count(), 1);
    assert_eq!(user.get(&format!("/elements/{id}")).await.ok()["element"]["version"], 26);
}

#[tokio::test]
async fn another_account_sees_nothing() {
    let stack = &Stack::without_workers().await;
    let (owner, stranger) = (stack.user().await, stack.user().await);
    let element = make(&owner, &wanted("mine")).await;
    let group = collection(&owner, "mine").await;
    let id = text(&element, "/id");
    assert_eq!(stranger.get("/elements").await.ok()["elements"], json!([]));
    assert_eq!(stranger.get("/element-collections").await.ok()["collections"], json!([]));
    for path in [format!("/elements/{id}"), format!("/elements/element:{id}@v1"), format!("/elements/{id}/versions")] {
        stranger.get(&path).await.expect_error(404, "not_found", &[]);
    }
    for body in [
        json!({"operation": "update", "element": wanted("theirs")}),
        json!({"operation": "collections", "collectionIds": []}),
        json!({"operation": "archive", "confirm": true}),
        json!({"operation": "restore"}),
    ] {
        patch(&stranger, id, body).await.expect_error(404, "not_found", &[]);
    }
    let path = format!("/element-collections/{group}");
    let rename = stranger.call(Method::PATCH, &path).body("application/json", r#"{"name": "theirs"}"#).await;
    rename.expect_error(404, "not_found", &[]);
    let delete = stranger.delete(&path).body("application/json", r#"{"confirm": true}"#).await;
    delete.expect_error(404, "not_found", &[]);
    assert_eq!(owner.get(&format!("/elements/{id}")).await.ok()["element"], element);
}

/// Deletes the bytes of an asset without the service.
pub async fn lose(stack: &Stack, asset: &str) {
    let key: uuid::Uuid = sqlx::query_scalar("SELECT blob_key FROM assets WHERE id = $1")
        .bind(asset)
        .fetch_one(stack.pool())
        .await
        .expect("is stored");
    let name = key.simple().to_string();
    std::fs::remove_file(stack.blobs().join("blobs").join(&name[30..]).join(&name)).expect("is there");
}

#[tokio::test]
async fn source_health_tells_what_the_store_has() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (kept, lost) = (image(&user).await, image(&user).await);
    let sources = |ids: &[&String]| json!({"name": "n", "type": "style", "sourceAssetIds": ids});
    let whole = make(&user, &sources(&[&kept])).await;
    let torn = make(&user, &sources(&[&lost, &kept])).await;
    assert_eq!(torn["sourceHealth"], json!({"status": "available", "unavailableSourceAssetIds": []}));
    lose(stack, &lost).await;
    let unavailable = json!({"status": "unavailable", "unavailableSourceAssetIds": [lost]});
    let id = text(&torn, "/id");
    assert_eq!(user.get(&format!("/elements/{id}")).await.ok()["element"]["sourceHealth"], unavailable);
    assert_eq!(user.get(&format!("/elements/{id}?version=1")).await.ok()["version"]["sourceHealth"], unavailable);
    let versions = user.get(&format!("/elements/{id}/versions")).await.ok();
    assert_eq!(versions["versions"][0]["sourceHealth"], unavailable);
    let listed = user.get("/elements").await.ok();
    assert_eq!((&listed["elements"][0]["id"], &listed["elements"][0]["sourceHealth"]), (&json!(id), &unavailable));
    assert_eq!(listed["elements"][1]["sourceHealth"], whole["sourceHealth"]);
}

#[tokio::test]
async fn source_health_is_unknown_while_the_store_cannot_be_asked() {
    let stack = &Stack::builder().start().await;
    let user = stack.user().await;
    let source = image(&user).await;
    let pictured = make(&user, &json!({"name": "n", "type": "style", "sourceAssetIds": [source]})).await;
    let written = make(&user, &wanted("without images")).await;
    let aside = stack.blobs().with_extension("aside");
    std::fs::rename(stack.blobs(), &aside).expect("moves the store away");
    let health = async |element: &Value| {
        user.get(&format!("/elements/{}", text(element, "/id"))).await.ok()["element"]["sourceHealth"].clone()
    };
    assert_eq!(health(&pictured).await, json!({"status": "unknown", "unavailableSourceAssetIds": []}));
    assert_eq!(health(&written).await, written["sourceHealth"], "no image to check");
    std::fs::rename(&aside, stack.blobs()).expect("moves the store back");
    assert_eq!(health(&pictured).await, pictured["sourceHealth"]);
}

#[tokio::test]
async fn versions_are_listed_newest_first() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (element, other) = (make(&user, &wanted("v1")).await, make(&user, &wanted("v1")).await);
    let id = text(&element, "/id");
    for version in 2..=5 {
        patch(&user, id, json!({"operation": "update", "element": wanted(&format!("v{version}"))})).await.ok();
    }
    let list = format!("/elements/{id}/versions");
    let page = user.get(&format!("{list}?limit=2")).await.ok();
    let names = |page: &Value| {
        let versions = page["versions"].as_array().expect("a list").clone();
        versions.iter().map(|version| text(version, "/elementName").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&page), ["v5", "v4"]);
    assert!(page["versions"][0].get("schemaVersion").is_none(), "only in a single read");
    assert_eq!((&page["page"]["limit"], &page["page"]["hasMore"]), (&json!(2), &json!(true)));
    let cursor = text(&page, "/page/nextCursor");
    // A version that is appended in the meantime does not shift the pages.
    patch(&user, id, json!({"operation": "update", "element": wanted("v6")})).await.ok();
    let rest = user.get(&format!("/elements/element:{id}/versions?limit=100&cursor={cursor}")).await.ok();
    assert_eq!(
        (names(&rest), &rest["page"]["nextCursor"]),
        (vec!["v3".into(), "v2".into(), "v1".into()], &json!(null))
    );
    let elsewhere = user.get(&format!("/elements/{}/versions?cursor={cursor}", text(&other, "/id"))).await;
    elsewhere.expect_error(400, "input_validation_error", &["cursor"]);
    user.get("/elements/absent/versions").await.expect_error(404, "not_found", &[]);
    user.get(&format!("/elements/element:{id}@v1/versions")).await.expect_error(
        400,
        "input_validation_error",
        &["elementId"],
    );
}

#[tokio::test]
async fn the_list_is_filtered_by_state_and_search() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let body = |name: &str, guidelines: &str| json!({"name": name, "type": "style", "sourceAssetIds": [], "guidelines": guidelines});
    make(&user, &body("Neon ÄRGER", "50% light_grey")).await;
    make(&user, &body("Plain", "No NEON here")).await;
    let archived = make(&user, &body("Neon, put away", "x")).await;
    patch(&user, text(&archived, "/id"), json!({"operation": "archive", "confirm": true})).await.ok();
    let names = async |query: &str| {
        let list = user.get(&format!("/elements{query}")).await.ok();
        let elements = list["elements"].as_array().expect("a list").clone();
        elements.iter().map(|element| text(element, "/name").to_owned()).collect::<Vec<_>>()
    };
    for (query, expected) in [
        ("", &["Plain", "Neon ÄRGER"][..]),
        ("?state=active", &["Plain", "Neon ÄRGER"]),
        ("?state=archived", &["Neon, put away"]),
        ("?search=neon", &["Plain", "Neon ÄRGER"]),
        ("?search=neon&state=archived", &["Neon, put away"]),
        ("?search=%C3%A4rg", &["Neon ÄRGER"]),
        ("?search=50%25", &["Neon ÄRGER"]),
        ("?search=%25", &["Neon ÄRGER"]),
        ("?search=light_", &["Neon ÄRGER"]),
        ("?search=l_ght", &[]),
        ("?search=", &["Plain", "Neon ÄRGER"]),
        ("?search=here", &["Plain"]),
    ] {
        assert_eq!(names(query).await, expected, "{query}");
    }
    assert_eq!(names(&format!("?search={}", "y".repeat(160))).await, Vec::<String>::new());
    for (query, field) in [
        ("?state=gone", "state"),
        ("?state=", "state"),
        (&*format!("?search={}", "y".repeat(161)), "search"),
        ("?limit=0", "limit"),
        ("?limit=101", "limit"),
    ] {
        let refused = user.get(&format!("/elements{query}")).await;
        refused.expect_error(400, "input_validation_error", &[field]);
    }
    // A cursor continues under the filters that it was created with.
    let cursor = text(&user.get("/elements?limit=1").await.ok(), "/page/nextCursor").to_owned();
    for other in ["&search=neon", "&state=archived"] {
        let refused = user.get(&format!("/elements?limit=1&cursor={cursor}{other}")).await;
        refused.expect_error(400, "input_validation_error", &["cursor"]);
    }
    user.get(&format!("/elements?limit=1&state=active&cursor={cursor}")).await.ok();
    let refused = user.get(&format!("/element-collections?cursor={cursor}")).await;
    refused.expect_error(400, "input_validation_error", &["cursor"]);
}

async fn walk(user: &Client, list: &str, limit: usize) -> Vec<String> {
    let name = if list.starts_with("/elements") { "elements" } else { "collections" };
    let (mut walked, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = user.get(&format!("{list}?limit={limit}{cursor}")).await.ok();
        let items = page[name].as_array().expect("a list");
        walked.extend(items.iter().map(|item| text(item, "/handle").to_owned()));
        match page["page"]["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return walked,
        }
    }
}

#[tokio::test]
async fn the_list_is_newest_first_and_walked_by_cursor() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let mut made = Vec::new();
    for index in 0..7 {
        made.push(text(&make(&user, &wanted(&index.to_string())).await, "/handle").to_owned());
    }
    made.reverse();
    let list = user.get("/elements").await.ok();
    assert_eq!(list["page"], json!({"limit": 50, "hasMore": false, "nextCursor": null}));
    assert!(list["elements"][0].get("schemaVersion").is_none() && list["elements"][0]["sourceHealth"].is_object());
    for limit in [1, 3, 7, 100] {
        assert_eq!(walk(&user, "/elements", limit).await, made);
    }
    // An update moves an Element to the top of the list.
    patch(&user, &made[6], json!({"operation": "update", "element": wanted("y")})).await.ok();
    made.rotate_right(1);
    assert_eq!(walk(&user, "/elements", 2).await, made);
    sqlx::query("UPDATE elements SET updated_at = '2026-01-01T00:00:00Z' WHERE owner_uid = $1")
        .bind(&user.uid)
        .execute(stack.pool())
        .await
        .expect("makes them equally old");
    made.sort_by(|one, other| other.as_bytes().cmp(one.as_bytes()));
    assert_eq!(walk(&user, "/elements", 2).await, made, "by descending handle");
}

#[tokio::test]
async fn a_walk_meets_every_element_that_nobody_touches() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let mut still = BTreeSet::new();
    let busy = make(&user, &wanted("busy")).await;
    for index in 0..12 {
        still.insert(text(&make(&user, &wanted(&index.to_string())).await, "/handle").to_owned());
    }
    let writing = async {
        for index in 0..20 {
            make(&user, &wanted(&format!("new {index}"))).await;
            let update = json!({"operation": "update", "element": wanted("busy")});
            patch(&user, text(&busy, "/id"), update).await.ok();
        }
    };
    let walking = async {
        for limit in [1, 2, 5] {
            let walked = walk(&user, "/elements", limit).await;
            for handle in &still {
                assert_eq!(walked.iter().filter(|walked| *walked == handle).count(), 1, "{handle}");
            }
        }
    };
    tokio::join!(writing, walking);
}

#[tokio::test]
async fn collections_are_made_renamed_listed_and_deleted() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let made = user.send("/element-collections", &json!({"name": "ü".repeat(120)})).await.expect(201);
    assert_eq!(made.header("location"), None, "it has no read of its own");
    let made = made.json()["collection"].clone();
    let id = text(&made, "/id").to_owned();
    assert_eq!(
        made,
        json!({"id": id, "handle": format!("element-collection:{id}"), "name": "ü".repeat(120),
        "ownerUid": user.uid, "createdAt": made["createdAt"], "updatedAt": made["updatedAt"], "schemaVersion": 1})
    );
    let twin = collection(&user, "twin").await;
    let rename = async |form: &str, body: Value| {
        let path = format!("/element-collections/{form}");
        user.call(Method::PATCH, &path).body("application/json", body.to_string()).await
    };
    for form in [id.clone(), format!("element-collection:{id}"), format!("element-collection%3A{id}")] {
        let renamed = rename(&form, json!({"name": "twin"})).await.ok()["collection"].clone();
        assert_eq!((&renamed["id"], &renamed["name"]), (&json!(id), &json!("twin")), "names need not be unique");
        assert_eq!(renamed["schemaVersion"], 1);
    }
    for bad in [json!({}), json!({"name": ""}), json!({"name": "x".repeat(121)}), json!({"name": null})] {
        user.send("/element-collections", &bad).await.expect_error(400, "input_validation_error", &["name"]);
        rename(&id, bad).await.expect_error(400, "input_validation_error", &["name"]);
    }
    rename(&id, json!({"name": "x", "colour": 1})).await.expect_error(400, "input_validation_error", &["colour"]);
    rename("a%20b", json!({"name": ""})).await.expect_error(400, "input_validation_error", &["collectionId", "name"]);
    rename("absent", json!({"name": "x"})).await.expect_error(404, "not_found", &[]);
    let list = user.get("/element-collections").await.ok();
    let handles = [&id, &twin].map(|id| format!("element-collection:{id}"));
    assert_eq!(walk(&user, "/element-collections", 1).await, handles, "the last changed first");
    assert!(list["collections"][0].get("schemaVersion").is_none(), "only in the response to a mutation");
    assert_eq!(list["page"]["limit"], 50);
    // Deletion requires a confirmation. The members stay, without the membership.
    let mut body = wanted("member");
    body["collectionIds"] = json!([id, twin]);
    let member = make(&user, &body).await;
    let delete = async |form: &str, body: &str| {
        user.delete(&format!("/element-collections/{form}")).body("application/json", body.to_owned()).await
    };
    for refused in [r#"{}"#, r#"{"confirm": false}"#, r#"{"confirm": 1}"#] {
        delete(&id, refused).await.expect_error(400, "input_validation_error", &["confirm"]);
    }
    user.delete(&format!("/element-collections/{id}")).await.expect(400);
    let deleted = delete(&format!("element-collection:{id}"), r#"{"confirm": true}"#).await.ok();
    assert_eq!((&deleted["deleted"], &deleted["collection"]["id"]), (&json!(true), &json!(id)));
    assert_eq!(deleted["collection"]["schemaVersion"], 1);
    delete(&id, r#"{"confirm": true}"#).await.expect_error(404, "not_found", &[]);
    let left = user.get(&format!("/elements/{}", text(&member, "/id"))).await.ok()["element"].clone();
    assert_eq!((&left["collectionIds"], &left["version"]), (&json!([twin]), &json!(1)));
    assert_eq!(walk(&user, "/element-collections", 5).await, handles[1..]);
    // No membership remains when Elements are added while the collection is being deleted.
    let organizing = (0..8).map(|index| {
        let (user, twin) = (&user, &twin);
        async move {
            let mut body = wanted(&index.to_string());
            body["collectionIds"] = json!([twin]);
            user.send("/elements", &body).await.status
        }
    });
    let (seen, deleted) = tokio::join!(join_all(organizing), delete(&twin, r#"{"confirm": true}"#));
    deleted.expect(200);
    assert!(seen.iter().all(|status| matches!(status, 201 | 422)), "{seen:?}");
    let listed = user.get("/elements").await.ok();
    let elements = listed["elements"].as_array().expect("a list");
    assert!(elements.iter().all(|element| element["collectionIds"] == json!([])), "{listed}");
}
