//! Names and addresses: what others see of an account, and what a purge leaves of it (docs/reference/console.md#name).

use e2e::api::{key, text};
use e2e::{Stack, contract, images};
use reqwest::Method;
use serde_json::{Value, json};

use super::holder::Holder;
use crate::events::Followed;

const NAME: &str = "Zo\u{eb} Nonpareil";

impl Holder {
    async fn rename(&self, name: &str) -> e2e::Reply {
        self.call(Method::PATCH, "/account").body("application/json", json!({"displayName": name}).to_string()).await
    }

    /// Creates a canvas as a person does in a browser. Returns its handle.
    async fn draw(&self) -> String {
        let made = self.send(&e2e::Person::api("/canvases"), &json!({})).await.expect(201).json();
        text(&made, "/canvas/handle").to_owned()
    }

    /// Adds a note to a canvas as a person does in a browser.
    async fn note(&self, canvas: &str) {
        let path = e2e::Person::api(&format!("/canvases/{canvas}"));
        let revision = self.get(&path).await.ok()["canvas"]["revision"].clone();
        let note = json!({"type": "sticky", "position": {"x": 0, "y": 0}});
        let body = json!({"baseRevision": revision, "idempotencyKey": key(), "operations": [
            {"type": "node.create", "node": note}
        ]});
        self.send(&format!("{path}/operations"), &body).await.ok();
    }
}

/// A canvas on which its owner and an editor worked, in the browser and with a token, and a viewer.
struct Shared {
    owner: Holder,
    editor: Holder,
    viewer: Holder,
    canvas: String,
    first_revision: String,
    asset: String,
    job: String,
    /// The name of the editor, which nobody else has.
    name: String,
}

async fn shared(stack: &Stack) -> Shared {
    let (owner, editor, viewer) = (Holder::new(stack).await, Holder::new(stack).await, Holder::new(stack).await);
    let canvas = owner.draw().await;
    let first_revision =
        text(&owner.user.get(&format!("/canvases/{canvas}")).await.ok(), "/canvas/revision").to_owned();
    for (member, role) in [(&editor, "editor"), (&viewer, "viewer")] {
        let share = ["admin", "share", "--canvas", &canvas, "--with", &member.email, "--role", role];
        stack.admin(&share).await.expect_success();
    }
    let name = format!("{NAME} {}", editor.user.uid);
    editor.rename(&name).await.ok();
    for person in [&owner, &editor] {
        person.note(&canvas).await;
    }
    let upload = editor.user.post(&format!("/assets?canvasId={canvas}")).body("image/png", images::png(8, 8)).await;
    let asset = text(&upload.expect(201).json(), "/asset/handle").to_owned();
    let revision = owner.user.get(&format!("/canvases/{canvas}")).await.ok()["canvas"]["revision"].clone();
    let resize = json!({"canvasId": canvas, "baseRevision": revision, "idempotencyKey": key(), "inputs": [asset],
        "params": {"width": 4}, "place": {"x": 500, "y": 500}});
    let started = editor.user.send("/actions/resize/runs", &resize).await.expect(202).json();
    let job = text(&started, "/id").to_owned();
    editor.user.finished(&started).await;
    Shared { owner, editor, viewer, canvas, first_revision, asset, job, name }
}

/// All that the holder of a token and of a session may read of the canvas, as one text.
async fn all_answers(reader: &Holder, shared: &Shared) -> String {
    let Shared { canvas, asset, job, .. } = shared;
    let graph = reader.user.get(&format!("/canvases/{canvas}")).await.ok();
    let node = text(&graph, "/canvas/nodes/0/id").to_owned();
    let filled = |path: &str| {
        let mut path = path.to_owned();
        for (parameter, value) in [
            ("{canvasId}", canvas.as_str()),
            ("{nodeId}", &node),
            ("{assetId}", asset),
            ("{jobId}", job),
            ("{runId}", job),
            ("{ownerUid}", &shared.owner.user.uid),
            ("{actionKey}", "resize"),
        ] {
            path = path.replace(parameter, value);
        }
        while let (Some(start), Some(end)) = (path.find('{'), path.find('}')) {
            path.replace_range(start..=end, "absent");
        }
        path
    };
    let mut answers = String::new();
    let mut take = |answer: &e2e::Reply| {
        answers += &format!("{:?}\n{}\n", answer.headers, String::from_utf8_lossy(&answer.body));
    };
    for endpoint in contract::built().filter(|endpoint| endpoint.method == "GET") {
        let path = filled(endpoint.path);
        let query = match endpoint.path {
            "/canvases/{canvasId}/changes" => format!("?since={}", shared.first_revision),
            "/assets" => format!("?canvasId={canvas}"),
            "/events" | "/runs/{runId}/events" => continue,
            _ => String::new(),
        };
        take(&reader.user.get(&format!("{path}{query}")).await);
    }
    let document = reader.get("/openapi.json").await.ok();
    for (path, item) in document["paths"].as_object().expect("paths") {
        if item.get("get").is_some() {
            let path = filled(path.strip_prefix("/console").expect("a route of the console"));
            let plain = canvas.rsplit(':').next().expect("an id");
            take(&reader.get(&path.replace(canvas.as_str(), plain)).await);
        }
    }
    let path = e2e::Person::api(&format!("/events?canvas={canvas}"));
    let _present = shared.owner.get(&path).streamed().await;
    let mut events = Followed::open(&reader.user, &format!("canvas={canvas}")).await;
    let is_present = |data: &Value| data["who"].as_array().is_some_and(|who| who.len() > 1);
    answers + &events.until("presence", is_present).await.to_string()
}

#[tokio::test]
async fn others_see_the_name_of_a_person() {
    let stack = &Stack::with_workers().await;
    let person = Holder::new(stack).await;
    let part = person.email.split('@').next().expect("a part").to_owned();
    let canvas = person.draw().await;
    for (chosen, name) in [(None, part.as_str()), (Some(NAME), NAME), (Some(" Ana "), "Ana"), (Some(""), &part)] {
        if let Some(chosen) = chosen {
            let renamed = person.rename(chosen).await.ok();
            let expected = json!({"id": person.user.uid, "email": person.email, "displayName": name});
            assert_eq!(renamed, json!({ "account": expected }));
        }
        let session = person.get("/session").await.ok();
        assert_eq!((text(&session, "/account/displayName"), text(&session, "/session/label")), (name, name));
        assert_eq!(person.user.get("/auth/status").await.ok()["displayName"], name);
        person.note(&canvas).await;
        let newest = person.user.get(&format!("/canvases/{canvas}")).await.ok()["activity"][0].clone();
        assert_eq!(newest["actor"], json!({"ownerUid": person.user.uid, "surface": "browser", "label": name}));
    }
    // A session that a token signed in has the token's label.
    let narrow = stack.signed_in(&json!({"token": person.user.token})).await;
    person.rename(NAME).await.ok();
    assert_eq!(narrow.get("/session").await.ok()["session"]["label"], "e2e");
}

#[tokio::test]
async fn a_name_has_at_most_80_characters_and_is_no_address() {
    let stack = &Stack::with_workers().await;
    let person = Holder::new(stack).await;
    for length in [79, 80] {
        person.rename(&"\u{fc}".repeat(length)).await.ok();
    }
    for wrong in [&"x".repeat(81)[..], "ana@example.com", "Ana <ana@example.com>", "a\nb"] {
        person.rename(wrong).await.expect_error(400, "input_validation_error", &["displayName"]);
    }
}

#[tokio::test]
async fn a_viewer_finds_no_address_of_owner_or_editor() {
    let stack = &Stack::with_workers().await;
    let shared = shared(stack).await;
    let answers = all_answers(&shared.viewer, &shared).await;
    assert!(answers.contains(&shared.name), "the activity names the editor");
    for account in [&shared.owner, &shared.editor] {
        let at = answers.find(&account.email);
        assert_eq!(at.map(|at| &answers[at.saturating_sub(200)..at + 80]), None);
    }
    let members = shared.canvas.replacen("canvas:", "/canvases/", 1).replace(':', "/") + "/members";
    let members = shared.owner.get(&members).await.ok().to_string();
    assert!(members.contains(&shared.editor.email), "its owner sees the members");
}

#[tokio::test]
async fn a_purge_leaves_neither_address_nor_name() {
    let stack = &Stack::with_workers().await;
    let shared = shared(stack).await;
    let purge = ["admin", "account", "purge", "--account", &shared.editor.email, "--yes"];
    stack.admin(&purge).await.expect_success();
    let answers = all_answers(&shared.owner, &shared).await;
    for text in [&shared.name, &shared.editor.email] {
        assert!(!answers.contains(text), "{text} is shown");
        let left: Vec<String> = sqlx::query_scalar(
            "SELECT table_name::text FROM information_schema.tables
             WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'
               AND query_to_xml(format(
                   'SELECT 1 FROM %I x WHERE x::text ILIKE %L OR x::text ILIKE %L', table_name, '%' || $1 || '%',
                   '%' || encode(convert_to($1, 'UTF8'), 'hex') || '%'), true, false, '')::text LIKE '%row%'",
        )
        .bind(text)
        .fetch_all(stack.pool())
        .await
        .expect("searches");
        assert_eq!(left, Vec::<String>::new(), "{text} is stored");
    }
    assert!(answers.contains("deleted account"));
    assert!(answers.contains(&shared.owner.user.uid), "what others did stays");
}
