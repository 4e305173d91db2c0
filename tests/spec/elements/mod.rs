//! Elements, versions and collections (docs/reference/elements.md).

mod lists;

use std::collections::BTreeSet;

use e2e::api::text;
use e2e::{Client, Reply, Stack, User, pictures, suite};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use lists::{
    a_walk_meets_every_element_that_nobody_touches, collections_are_made_renamed_listed_and_deleted,
    the_list_is_filtered_by_state_and_search, the_list_is_newest_first_and_walked_by_cursor,
    versions_are_listed_newest_first,
};

const TYPES: [&str; 6] = ["character", "product/object", "environment", "style", "material/texture", "lighting"];

suite! {
    elements on Stack::builder().gateways(2);
    an_element_is_created_in_version_1,
    names_guidelines_and_lists_have_their_limits,
    an_element_needs_pictures_or_guidelines,
    ids_in_a_body_are_plain_known_and_given_once,
    an_update_appends_a_version_that_replaces_the_content_whole,
    a_patch_has_one_of_four_shapes,
    an_archived_element_can_be_restored_and_not_updated,
    collections_are_set_without_a_new_version,
    a_version_is_read_exactly_and_never_upgraded,
    versions_are_listed_newest_first,
    concurrent_updates_neither_share_nor_skip_a_version,
    the_list_is_filtered_by_state_and_search,
    the_list_is_newest_first_and_walked_by_cursor,
    a_walk_meets_every_element_that_nobody_touches,
    another_account_sees_nothing,
    source_health_tells_what_the_store_has,
    collections_are_made_renamed_listed_and_deleted,
}

suite! {
    elements_without_a_store on Stack::builder();
    source_health_is_unknown_while_the_store_cannot_be_asked,
}

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

async fn picture(user: &User) -> String {
    text(&user.upload("image/png", pictures::png(4, 4)).await, "/id").to_owned()
}

async fn an_element_is_created_in_version_1(stack: &Stack) {
    let user = stack.user().await;
    let (source, group) = (picture(&user).await, collection(&user, "Heroes").await);
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

async fn names_guidelines_and_lists_have_their_limits(stack: &Stack) {
    let user = stack.user().await;
    let with = |field: &str, value: Value| {
        let mut body = wanted("x");
        body[field] = value;
        body
    };
    let (mut sources, mut groups) = (Vec::new(), Vec::new());
    for index in 0..9 {
        sources.push(picture(&user).await);
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

async fn an_element_needs_pictures_or_guidelines(stack: &Stack) {
    let user = stack.user().await;
    let source = picture(&user).await;
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

async fn ids_in_a_body_are_plain_known_and_given_once(stack: &Stack) {
    let (user, other) = (stack.user().await, stack.user().await);
    let (own, foreign) = (picture(&user).await, picture(&other).await);
    let (group, theirs) = (collection(&user, "c").await, collection(&other, "c").await);
    // A picture in one of the account's canvases counts as the account's.
    let canvas = user.make_canvas().await;
    let placed = user.upload_into(text(&canvas, "/id"), "image/png", pictures::png(4, 4)).await;
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

async fn an_update_appends_a_version_that_replaces_the_content_whole(stack: &Stack) {
    let user = stack.user().await;
    let (source, group) = (picture(&user).await, collection(&user, "c").await);
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

async fn a_patch_has_one_of_four_shapes(stack: &Stack) {
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

async fn an_archived_element_can_be_restored_and_not_updated(stack: &Stack) {
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

async fn collections_are_set_without_a_new_version(stack: &Stack) {
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

async fn a_version_is_read_exactly_and_never_upgraded(stack: &Stack) {
    let user = stack.user().await;
    let source = picture(&user).await;
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

async fn concurrent_updates_neither_share_nor_skip_a_version(stack: &Stack) {
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

async fn another_account_sees_nothing(stack: &Stack) {
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

async fn source_health_tells_what_the_store_has(stack: &Stack) {
    let user = stack.user().await;
    let (kept, lost) = (picture(&user).await, picture(&user).await);
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

async fn source_health_is_unknown_while_the_store_cannot_be_asked(stack: &Stack) {
    let user = stack.user().await;
    let source = picture(&user).await;
    let pictured = make(&user, &json!({"name": "n", "type": "style", "sourceAssetIds": [source]})).await;
    let written = make(&user, &wanted("without pictures")).await;
    let aside = stack.blobs().with_extension("aside");
    std::fs::rename(stack.blobs(), &aside).expect("moves the store away");
    let health = async |element: &Value| {
        user.get(&format!("/elements/{}", text(element, "/id"))).await.ok()["element"]["sourceHealth"].clone()
    };
    assert_eq!(health(&pictured).await, json!({"status": "unknown", "unavailableSourceAssetIds": []}));
    assert_eq!(health(&written).await, written["sourceHealth"], "no picture to check");
    std::fs::rename(&aside, stack.blobs()).expect("moves the store back");
    assert_eq!(health(&pictured).await, pictured["sourceHealth"]);
}
