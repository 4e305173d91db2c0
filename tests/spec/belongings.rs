//! Ownership: every route that names an asset, a job, an Element, a private workflow or a model, called by accounts that do not
//! own it (docs/reference/authentication.md#rejected-credentials, docs/reference/conventions.md#choosing-400-404-or-422).

use e2e::api::{key, text};
use e2e::contract::{self, Endpoint};
use e2e::{Stack, User, images};
use serde_json::{Value, json};

use super::access::{addressed, call};

/// One resource of every kind that belongs to an account.
struct Belongings {
    owner: User,
    canvas: Value,
    asset: String,
    job: String,
    delivery: String,
    element: String,
    collection: String,
    workflow: String,
    model: String,
}

impl Belongings {
    async fn new(stack: &Stack) -> Self {
        let owner = stack.user().await;
        let canvas = owner.make_canvas().await;
        let id = text(&canvas, "/id");
        let asset = owner.upload("image/png", images::png(2, 2)).await;
        let webhook = json!({"url": "https://example.com/hook", "secret": "s".repeat(32)});
        let job = owner.start_resize(id, json!({"webhook": webhook})).await;
        let element = json!({"name": "n", "type": "style", "sourceAssetIds": [], "guidelines": "g"});
        let element = owner.send("/elements", &element).await.expect(201).json();
        let collection = owner.send("/element-collections", &json!({"name": "c"})).await.expect(201).json();
        let workflows = contract::built().find(|endpoint| endpoint.path.ends_with("/workflows")).expect("a route");
        let (path, body) = addressed(&workflows, id, "any").expect("a row");
        let workflow = owner.send(&path, &body.expect("a body")).await.expect(201).json();
        let models = owner.get("/models").await.ok();
        Self {
            asset: text(&asset, "/handle").to_owned(),
            job: text(&job, "/rawId").to_owned(),
            delivery: text(&job, "/webhook/id").to_owned(),
            element: text(&element, "/element/id").to_owned(),
            collection: text(&collection, "/collection/id").to_owned(),
            workflow: text(&workflow, "/workflow/id").to_owned(),
            model: text(&models, "/models/0/id").to_owned(),
            owner,
            canvas,
        }
    }

    /// A request to a route that names a resource of the account, by a caller with a `canvas` of its own. It is valid except for
    /// the ownership. `None` for a route that names no such resource.
    fn addressed(&self, endpoint: &Endpoint, canvas: &Value) -> Option<(String, Option<Value>)> {
        let named = [
            ("{assetId}", &self.asset),
            ("{jobId}", &self.job),
            ("{deliveryId}", &self.delivery),
            ("{runId}", &self.job),
            ("{elementId}", &self.element),
            ("{collectionId}", &self.collection),
            ("{recipeId}", &self.workflow),
            ("{modelKey}", &self.model),
        ];
        let (parameter, id) = named.into_iter().find(|(parameter, _)| endpoint.path.contains(parameter))?;
        let body = match (endpoint.method, endpoint.path) {
            ("PATCH", "/elements/{elementId}") => Some(json!({"operation": "archive", "confirm": true})),
            ("PATCH", _) => Some(json!({"name": "mine"})),
            ("DELETE", "/element-collections/{collectionId}") => Some(json!({"confirm": true})),
            ("POST", "/jobs/{jobId}/asset") => Some(json!({"canvasId": canvas["id"]})),
            ("POST", "/webhook-deliveries/{deliveryId}/replay") => None,
            ("POST", _) => Some(json!({
                "canvasId": canvas["id"], "baseRevision": canvas["revision"], "idempotencyKey": key(),
            })),
            _ => None,
        };
        Some((endpoint.path.replace(parameter, id), body))
    }
}

/// Routes of campaigns, which are retired in this configuration. `campaigns.rs` checks their ownership.
fn is_campaign(endpoint: &Endpoint) -> bool {
    endpoint.path.starts_with("/campaigns")
}

#[tokio::test]
async fn every_route_that_names_something_has_its_row() {
    let stack = &Stack::without_workers().await;
    let belongings = Belongings::new(stack).await;
    for endpoint in contract::built().filter(|endpoint| endpoint.path.contains('{') && !is_campaign(endpoint)) {
        let of_canvas = addressed(&endpoint, "c", "r").is_some();
        let of_account = belongings.addressed(&endpoint, &belongings.canvas).is_some();
        // Actions are public.
        let is_public = endpoint.path.starts_with("/actions/");
        assert!(of_canvas || of_account || is_public, "{} {} has no row in the table", endpoint.method, endpoint.path);
    }
}

#[tokio::test]
async fn what_belongs_to_an_account_is_404_to_all_others() {
    let stack = &Stack::without_workers().await;
    let belongings = Belongings::new(stack).await;
    let (owner, canvas) = (&belongings.owner, text(&belongings.canvas, "/id"));
    let before = owner.canvas(canvas).await;
    let mut others = Vec::new();
    for role in ["editor", "viewer", "stranger"] {
        let other = stack.user().await;
        if role != "stranger" {
            stack.share(owner, canvas, &other.uid, role).await;
        }
        let own = other.make_canvas().await;
        others.push((role, other, own));
    }
    for endpoint in contract::built().filter(|endpoint| !is_campaign(endpoint)) {
        for (role, other, own) in &others {
            let Some((path, body)) = belongings.addressed(&endpoint, own) else { break };
            let reply = call(other, &endpoint, &path, body.as_ref()).await;
            assert_eq!(reply.status, 404, "{} {path} to {role}: {reply}", endpoint.method);
            reply.expect_error(404, "not_found", &[]);
        }
    }
    assert_eq!(owner.canvas(canvas).await, before, "nothing was changed");
    // The owner can read them. Event streams are excluded because they do not end, and an image is not a video.
    for endpoint in contract::built().filter(|endpoint| endpoint.method == "GET" && !is_campaign(endpoint)) {
        let Some((path, _)) = belongings.addressed(&endpoint, &before) else { continue };
        if !path.ends_with("/events") && !path.ends_with("/output") {
            let reply = call(owner, &endpoint, &path, None).await;
            assert!(matches!(reply.status, 200 | 202), "{path}: {reply}");
        }
    }
}

#[tokio::test]
async fn an_asset_of_a_canvas_is_read_by_its_members_alone() {
    let stack = &Stack::without_workers().await;
    let (owner, stranger) = (stack.user().await, stack.user().await);
    let canvas = owner.make_canvas().await;
    let id = text(&canvas, "/id");
    let mut members = vec![("owner", owner.clone())];
    for role in ["editor", "viewer"] {
        let member = stack.user().await;
        stack.share(&owner, id, &member.uid, role).await;
        members.push((role, member));
    }
    let stored = owner.upload_into(id, "image/png", images::png(2, 2)).await;
    let names = |asset: &Value| {
        let (id, handle) = (text(asset, "/id"), text(asset, "/handle"));
        let by_owner = format!("?ownerUid={}", owner.uid);
        [(handle.to_owned(), String::new()), (id.to_owned(), by_owner.clone()), (format!("asset:{id}"), by_owner)]
    };
    for endpoint in contract::built().filter(|endpoint| endpoint.path.contains("{assetId}")) {
        for (name, query) in names(&stored) {
            let path = endpoint.path.replace("{assetId}", &name) + &query;
            for (role, member) in &members {
                let read = call(member, &endpoint, &path, None).await;
                assert_eq!(read.status, 200, "{path} to {role}: {read}");
                if endpoint.path == "/assets/{assetId}" {
                    assert_eq!(read.json()["asset"]["handle"], stored["handle"], "{path} to {role}");
                }
            }
            call(&stranger, &endpoint, &path, None).await.expect_error(404, "not_found", &[]);
        }
        // Without `ownerUid`, the asset is looked up among the caller's own.
        let path = endpoint.path.replace("{assetId}", text(&stored, "/id"));
        for (role, member) in &members {
            let read = call(member, &endpoint, &path, None).await;
            assert_eq!(read.status, if *role == "owner" { 200 } else { 404 }, "{path} to {role}: {read}");
        }
        // A former member can no longer read it.
        let (_, former) = &members[1];
        stack.share(&owner, id, &former.uid, "none").await;
        let path = endpoint.path.replace("{assetId}", text(&stored, "/handle"));
        call(former, &endpoint, &path, None).await.expect_error(404, "not_found", &[]);
        stack.share(&owner, id, &former.uid, "editor").await;
    }
}
