//! Members of canvases (docs/reference/console.md#members).

use e2e::api::text;
use e2e::{Reply, Stack};
use serde_json::{Value, json};

use super::holder::Holder;

impl Holder {
    async fn make_canvas(&self) -> String {
        text(&self.user.make_canvas().await, "/id").to_owned()
    }

    fn members_path(&self, canvas: &str) -> String {
        format!("{}/members", self.canvas_path(canvas))
    }

    async fn share(&self, canvas: &str, email: &str, role: &str) -> Reply {
        let path = format!("{}/{}", self.members_path(canvas), email.replace('@', "%40"));
        self.put(&path, &json!({"role": role})).await
    }
}

#[tokio::test]
async fn a_canvas_is_shared_by_email_and_unshared() {
    let stack = &Stack::without_workers().await;
    let (owner, member) = (Holder::new(stack).await, Holder::new(stack).await);
    let canvas = owner.make_canvas().await;
    let handle = format!("canvas:{}:{canvas}", owner.user.uid);
    let read = async || member.user.get(&format!("/canvases/{handle}")).await;
    let revision = owner.user.canvas(&canvas).await["revision"].clone();
    let change = async || {
        let create = json!([{"type": "node.create", "node": {"type": "sticky", "position": {"x": 0, "y": 0}}}]);
        member.user.batch(&handle, revision.as_str().expect("a revision"), create).await.status
    };
    read().await.expect_error(404, "not_found", &[]);
    let shared = owner.share(&canvas, &member.email.to_uppercase(), "viewer").await.ok();
    assert_eq!(shared, json!({"member": {"email": member.email, "role": "viewer"}}));
    read().await.ok();
    assert_eq!(change().await, 403);
    owner.share(&canvas, &member.email, "editor").await.ok();
    assert_eq!(change().await, 200);
    let listed = owner.get(&owner.members_path(&canvas)).await.ok();
    assert_eq!(listed["members"], json!([{"email": member.email, "role": "editor"}]));
    let path = format!("{}/{}", owner.members_path(&canvas), member.email);
    owner.delete(&path).await.expect(204);
    read().await.expect_error(404, "not_found", &[]);
    owner.delete(&path).await.expect_error(404, "not_found", &[]);
    assert_eq!(owner.get(&owner.members_path(&canvas)).await.ok()["members"], json!([]));
}

#[tokio::test]
async fn members_are_listed_by_email() {
    let stack = &Stack::without_workers().await;
    let owner = Holder::new(stack).await;
    let canvas = owner.make_canvas().await;
    let mut expected = Vec::new();
    for role in ["viewer", "editor", "viewer", "editor", "viewer"] {
        let account = stack.account().await;
        owner.share(&canvas, &account.email, role).await.ok();
        expected.push(json!({"email": account.email, "role": role}));
    }
    expected.sort_by_key(|member| text(member, "/email").to_owned());
    assert_eq!(owner.pages(&owner.members_path(&canvas), "members").await, expected);
    // A share that an operator made is listed as well.
    let other = owner.make_canvas().await;
    let account = stack.account().await;
    stack.share(&owner.user, &other, &account.uid, "viewer").await;
    assert_eq!(owner.pages(&owner.members_path(&other), "members").await[0]["email"], json!(account.email));
}

#[tokio::test]
async fn what_is_wrong_with_a_member_is_reported_by_its_field() {
    let stack = &Stack::without_workers().await;
    let (owner, member) = (Holder::new(stack).await, Holder::new(stack).await);
    let canvas = owner.make_canvas().await;
    for email in ["nobody@example.com", &owner.email] {
        let reply = owner.share(&canvas, email, "viewer").await;
        reply.expect_error(422, "unprocessable_entity", &["email"]);
    }
    let longest = format!("{}@b", "a".repeat(252));
    owner.share(&canvas, &longest, "viewer").await.expect_error(422, "unprocessable_entity", &["email"]);
    // A uid is not an email, though it names an account.
    for email in [&member.user.uid, "a@b@c", "a%20b@c", "@c", &format!("a{longest}")] {
        let reply = owner.share(&canvas, email, "viewer").await;
        reply.expect_error(400, "input_validation_error", &["email"]);
        let reply = owner.delete(&format!("{}/{email}", owner.members_path(&canvas))).await;
        reply.expect_error(400, "input_validation_error", &["email"]);
    }
    let path = format!("{}/{}", owner.members_path(&canvas), member.email);
    for (body, field) in [
        (json!({}), "role"),
        (json!({"role": "owner"}), "role"),
        (json!({"role": "none"}), "role"),
        (json!({"role": null}), "role"),
        (json!({"role": "viewer", "message": "hello"}), "message"),
    ] {
        owner.put(&path, &body).await.expect_error(400, "input_validation_error", &[field]);
    }
    let malformed = format!("/canvases/a%20b/c%20d/members/{}", member.user.uid);
    let reply = owner.put(&malformed, &json!({"role": 1})).await;
    reply.expect_error(400, "input_validation_error", &["ownerUid", "canvasId", "email", "role"]);
    assert_eq!(owner.get(&owner.members_path(&canvas)).await.ok()["members"], json!([]));
}

#[tokio::test]
async fn only_the_owner_sees_and_changes_members() {
    let stack = &Stack::without_workers().await;
    let (owner, member, stranger) = (Holder::new(stack).await, Holder::new(stack).await, Holder::new(stack).await);
    let canvas = owner.make_canvas().await;
    let path = owner.members_path(&canvas);
    let entry = format!("{path}/{}", stranger.email);
    let editor = json!({"role": "editor"});
    for role in ["viewer", "editor"] {
        owner.share(&canvas, &member.email, role).await.ok();
        member.get(&path).await.expect_error(403, "forbidden", &[]);
        member.put(&entry, &editor).await.expect_error(403, "forbidden", &[]);
        member.delete(&entry).await.expect_error(403, "forbidden", &[]);
        let own = format!("{path}/{}", member.email);
        member.delete(&own).await.expect_error(403, "forbidden", &[]);
    }
    stranger.get(&path).await.expect_error(404, "not_found", &[]);
    stranger.put(&entry, &editor).await.expect_error(404, "not_found", &[]);
    stranger.delete(&entry).await.expect_error(404, "not_found", &[]);
    // The same id under the stranger's own uid is another canvas.
    stranger.get(&stranger.members_path(&canvas)).await.expect_error(404, "not_found", &[]);
    assert_eq!(owner.get(&path).await.ok()["members"], json!([{"email": member.email, "role": "editor"}]));
}

#[tokio::test]
async fn members_are_changed_20_times_a_minute() {
    let stack = &Stack::without_workers().await;
    let (owner, other, member) = (Holder::new(stack).await, Holder::new(stack).await, Holder::new(stack).await);
    let canvas = owner.make_canvas().await;
    // What is rejected from the request alone is no change.
    for _ in 0..3 {
        owner.share(&canvas, &member.email, "owner").await.expect(400);
    }
    let mut changes: Vec<Value> = Vec::new();
    for place in 0..20 {
        let email = if place % 2 == 0 { member.email.as_str() } else { "nobody@example.com" };
        changes.push(owner.share(&canvas, email, "viewer").await.status.into());
    }
    assert_eq!(changes, [200, 422].repeat(10), "an unknown email counts as well");
    // One more change is admitted every 3 s.
    let mut refused = None;
    for _ in 0..20 {
        let reply = owner.share(&canvas, "nobody@example.com", "viewer").await;
        if reply.status == 429 {
            refused = Some(reply);
            break;
        }
    }
    let refused = refused.expect("a change is refused");
    assert!(
        refused.header("retry-after").is_some_and(|seconds| seconds.parse().is_ok_and(|it: u64| (1..=3).contains(&it)))
    );
    refused.expect_error(429, "rate_limited", &[]);
    let path = format!("{}/{}", owner.members_path(&canvas), member.email);
    assert!(matches!(owner.delete(&path).await.status, 204 | 429), "a removal counts as well");
    owner.get(&owner.members_path(&canvas)).await.ok();
    let theirs = other.make_canvas().await;
    other.share(&theirs, &member.email, "viewer").await.ok();
}
