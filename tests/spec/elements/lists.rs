//! Lists of Elements, versions and collections: pages and search (docs/reference/elements.md#list-elements).

use std::collections::BTreeSet;

use e2e::api::text;
use e2e::{Client, Stack};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::{collection, make, patch, wanted};

pub(super) async fn versions_are_listed_newest_first(stack: &Stack) {
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

pub(super) async fn the_list_is_filtered_by_state_and_search(stack: &Stack) {
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

pub(super) async fn the_list_is_newest_first_and_walked_by_cursor(stack: &Stack) {
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

pub(super) async fn a_walk_meets_every_element_that_nobody_touches(stack: &Stack) {
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

pub(super) async fn collections_are_made_renamed_listed_and_deleted(stack: &Stack) {
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
