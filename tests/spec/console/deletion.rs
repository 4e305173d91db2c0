//! Deletion of canvases and assets (docs/reference/console.md#delete-a-canvas, docs/reference/console.md#delete-an-asset).

use e2e::api::text;
use e2e::{Reply, Stack, images};
use reqwest::Method;
use serde_json::{Value, json};

use super::holder::Holder;

fn confirmed() -> Value {
    json!({"confirm": true})
}

impl Holder {
    async fn remove(&self, path: &str, body: &Value) -> Reply {
        self.call(Method::DELETE, path).body("application/json", body.to_string()).await
    }

    /// A canvas that this person shares with `member`.
    async fn shared(&self, stack: &Stack, member: &Holder, role: &str) -> String {
        let canvas = text(&self.user.make_canvas().await, "/id").to_owned();
        stack.share(&self.user, &canvas, &member.user.uid, role).await;
        canvas
    }
}

/// The path of an asset in the console.
fn path_of(asset: &Value) -> String {
    text(asset, "/handle").replacen("asset:", "/assets/", 1).replacen(':', "/", 1)
}

#[tokio::test]
async fn a_canvas_is_deleted_with_what_is_stored_in_it() {
    let stack = &Stack::without_workers().await;
    let (owner, member) = (Holder::new(stack).await, Holder::new(stack).await);
    let canvas = owner.shared(stack, &member, "editor").await;
    let kept = text(&owner.user.make_canvas().await, "/id").to_owned();
    let stored = owner.user.upload_into(&canvas, "image/png", images::png(4, 3)).await;
    let own = owner.user.upload("image/png", images::png(4, 4)).await;
    let handle = format!("canvas:{}:{canvas}", owner.user.uid);
    let deleted = owner.remove(&owner.canvas_path(&canvas), &confirmed()).await.ok();
    assert_eq!(deleted, json!({"canvas": handle, "deleted": true, "nodes": 1, "assets": 1}));
    for reader in [&owner, &member] {
        reader.user.get(&format!("/canvases/{handle}")).await.expect_error(404, "not_found", &[]);
    }
    owner.user.get(&format!("/assets/{}", text(&stored, "/handle"))).await.expect_error(404, "not_found", &[]);
    owner.user.get(&format!("/assets/{}", text(&own, "/handle"))).await.ok();
    owner.user.canvas(&kept).await;
    owner.remove(&owner.canvas_path(&canvas), &confirmed()).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn a_canvas_with_active_work_is_not_deleted() {
    let stack = &Stack::without_workers().await;
    let (owner, editor) = (Holder::new(stack).await, Holder::new(stack).await);
    let canvas = owner.shared(stack, &editor, "editor").await;
    let job = editor.user.start_resize(&format!("canvas:{}:{canvas}", owner.user.uid), json!({})).await;
    owner.remove(&owner.canvas_path(&canvas), &confirmed()).await.expect_error(409, "conflict", &[]);
    owner.user.canvas(&canvas).await;
    editor.user.delete(text(&job, "/pollUrl")).await.expect(200);
    owner.remove(&owner.canvas_path(&canvas), &confirmed()).await.ok();
}

#[tokio::test]
async fn only_its_owner_deletes_a_canvas() {
    let stack = &Stack::without_workers().await;
    let (owner, member, stranger) = (Holder::new(stack).await, Holder::new(stack).await, Holder::new(stack).await);
    for role in ["viewer", "editor"] {
        let canvas = owner.shared(stack, &member, role).await;
        let path = owner.canvas_path(&canvas);
        member.remove(&path, &confirmed()).await.expect_error(403, "forbidden", &[]);
        stranger.remove(&path, &confirmed()).await.expect_error(404, "not_found", &[]);
        let own = stranger.canvas_path(&canvas);
        stranger.remove(&own, &confirmed()).await.expect_error(404, "not_found", &[]);
        owner.user.canvas(&canvas).await;
    }
    let malformed = owner.remove("/canvases/a%20b/c%20d", &json!({})).await;
    malformed.expect_error(400, "input_validation_error", &["ownerUid", "canvasId", "confirm"]);
}

#[tokio::test]
async fn an_asset_that_no_node_shows_is_deleted() {
    let stack = &Stack::without_workers().await;
    let owner = Holder::new(stack).await;
    let asset = owner.user.upload("image/png", images::png(4, 3)).await;
    let deleted = owner.remove(&path_of(&asset), &confirmed()).await.ok();
    assert_eq!(deleted, json!({"asset": asset["handle"], "deleted": true, "bytes": asset["bytes"]}));
    owner.user.get(&format!("/assets/{}", text(&asset, "/handle"))).await.expect_error(404, "not_found", &[]);
    stack.anonymous().get(text(&asset, "/previewUrl")).await.expect_error(404, "not_found", &[]);
    owner.remove(&path_of(&asset), &confirmed()).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn an_asset_that_a_node_shows_is_deleted_only_by_force() {
    let stack = &Stack::without_workers().await;
    let owner = Holder::new(stack).await;
    let canvas = text(&owner.user.make_canvas().await, "/id").to_owned();
    let asset = owner.user.upload_into(&canvas, "image/png", images::png(4, 3)).await;
    for body in [confirmed(), json!({"confirm": true, "force": false})] {
        owner.remove(&path_of(&asset), &body).await.expect_error(409, "conflict", &[]);
    }
    owner.user.get(&format!("/assets/{}", text(&asset, "/handle"))).await.ok();
    let before = owner.user.canvas(&canvas).await["revision"].clone();
    owner.remove(&path_of(&asset), &json!({"confirm": true, "force": true})).await.ok();
    let now = owner.user.canvas(&canvas).await;
    assert_eq!(now["nodes"][0]["asset"], asset["handle"], "the node keeps the handle of its asset");
    // What was drawn of the former revision is not served any more.
    let changes = owner.user.get(&format!("/canvases/{canvas}/changes?since={}", text(&before, ""))).await.ok();
    assert_ne!(now["revision"], before);
    assert_eq!(changes["changedNodeIds"], json!([now["nodes"][0]["id"]]));
}

#[tokio::test]
async fn a_canvas_that_shows_an_image_of_a_deleted_one_has_a_new_revision() {
    let stack = &Stack::without_workers().await;
    let owner = Holder::new(stack).await;
    let [deleted, kept] = [owner.user.make_canvas().await, owner.user.make_canvas().await];
    let [deleted, kept] = [&deleted, &kept].map(|canvas| text(canvas, "/id").to_owned());
    let asset = owner.user.upload_into(&deleted, "image/png", images::png(4, 3)).await;
    let show = json!([{"type": "node.create", "node": {"type": "image", "asset": asset["handle"]}}]);
    owner.user.apply(&kept, show).await;
    let before = owner.user.canvas(&kept).await["revision"].clone();
    owner.remove(&owner.canvas_path(&deleted), &confirmed()).await.ok();
    assert_ne!(owner.user.canvas(&kept).await["revision"], before);
    // An operator's purge does the same.
    let asset = owner.user.upload_into(&kept, "image/png", images::png(5, 3)).await;
    let before = owner.user.canvas(&kept).await["revision"].clone();
    stack.admin(&["admin", "asset", "purge", "--yes", "--asset", text(&asset, "/handle")]).await.expect_success();
    assert_ne!(owner.user.canvas(&kept).await["revision"], before);
}

#[tokio::test]
async fn a_deleted_node_does_not_keep_its_asset() {
    let stack = &Stack::without_workers().await;
    let owner = Holder::new(stack).await;
    let canvas = text(&owner.user.make_canvas().await, "/id").to_owned();
    let asset = owner.user.upload_into(&canvas, "image/png", images::png(5, 3)).await;
    let node = text(&asset, "/node");
    owner.user.apply(&canvas, json!([{"type": "node.delete", "nodeId": node}])).await;
    owner.remove(&path_of(&asset), &confirmed()).await.ok();
    let restored = owner.user.apply(&canvas, json!([{"type": "node.restore", "nodeId": node}])).await;
    let restored = &restored["canvas"]["nodes"][0];
    assert_eq!(restored["asset"], asset["handle"], "as after a deletion by force");
    assert_eq!(restored["metadata"]["provenance"]["kind"], "upload");
    let read = owner.user.get(&format!("/canvases/{canvas}/nodes/{}", text(restored, "/id"))).await.ok();
    assert!(read.get("previewUrl").is_none(), "{read}");
    owner.user.get(&format!("/assets/{}", text(&asset, "/handle"))).await.expect_error(404, "not_found", &[]);
    // It does not count as the image of a new node either.
    let now = owner.user.canvas(&canvas).await;
    let copy = json!([{"type": "node.create", "node": {"type": "image", "asset": asset["handle"]}}]);
    let refused = owner.user.batch(&canvas, text(&now, "/revision"), copy).await;
    refused.expect_error(422, "unprocessable_entity", &["operations[0].node.asset"]);
}

#[tokio::test]
async fn only_its_owner_deletes_an_asset() {
    let stack = &Stack::without_workers().await;
    let (owner, member, stranger) = (Holder::new(stack).await, Holder::new(stack).await, Holder::new(stack).await);
    let canvas = owner.shared(stack, &member, "editor").await;
    let handle = format!("canvas:{}:{canvas}", owner.user.uid);
    // What a member uploads to a shared canvas belongs to the owner of the canvas.
    let shared = member.user.upload_into(&handle, "image/png", images::png(4, 3)).await;
    let own = owner.user.upload("image/png", images::png(4, 4)).await;
    let force = json!({"confirm": true, "force": true});
    member.remove(&path_of(&shared), &force).await.expect_error(403, "forbidden", &[]);
    for (person, asset) in [(&member, &own), (&stranger, &own), (&stranger, &shared)] {
        person.remove(&path_of(asset), &force).await.expect_error(404, "not_found", &[]);
    }
    for asset in [&shared, &own] {
        owner.user.get(&format!("/assets/{}", text(asset, "/handle"))).await.ok();
        owner.remove(&path_of(asset), &force).await.ok();
    }
}

#[tokio::test]
async fn a_deletion_is_confirmed() {
    let stack = &Stack::without_workers().await;
    let owner = Holder::new(stack).await;
    let canvas = text(&owner.user.make_canvas().await, "/id").to_owned();
    let asset = owner.user.upload("image/png", images::png(4, 3)).await;
    for path in [owner.canvas_path(&canvas), path_of(&asset)] {
        for (body, field) in [
            (json!({}), "confirm"),
            (json!({"confirm": false}), "confirm"),
            (json!({"confirm": "true"}), "confirm"),
            (json!({"confirm": true, "now": true}), "now"),
        ] {
            owner.remove(&path, &body).await.expect_error(400, "input_validation_error", &[field]);
        }
        owner.delete(&path).await.expect_error(400, "invalid_json", &[]);
    }
    let forced = json!({"confirm": true, "force": 1});
    owner.remove(&path_of(&asset), &forced).await.expect_error(400, "input_validation_error", &["force"]);
    let forced = json!({"confirm": true, "force": true});
    owner.remove(&owner.canvas_path(&canvas), &forced).await.expect_error(400, "input_validation_error", &["force"]);
    owner.user.canvas(&canvas).await;
    owner.user.get(&format!("/assets/{}", text(&asset, "/handle"))).await.ok();
}
