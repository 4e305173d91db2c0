//! Starts of work on a stale revision (docs/reference/conventions.md#stale-revisions). No worker runs.

use e2e::api::{key, text};
use e2e::{Reply, Stack, pictures, suite};
use serde_json::{Value, json};

use crate::starts::Setting;

suite! {
    lenient_starts on Stack::builder().env("CANVAS_LEGACY_CAMPAIGNS", 1);
    every_start_accepts_a_stale_base_when_nothing_that_it_uses_changed,
    a_start_whose_target_was_taken_since_is_a_conflict,
    a_start_conflicts_with_a_change_of_what_it_uses,
    a_run_conflicts_with_a_change_of_its_instance,
}

const RECIPE: &str = "/recipes/ad-copy-and-banner";

async fn send(setting: &Setting, prefer: &str, path: &str, body: &Value) -> Reply {
    setting.user.post(path).header("prefer", prefer).body("application/json", body.to_string()).await
}

async fn revision(setting: &Setting) -> Value {
    setting.user.canvas(&setting.canvas).await["revision"].clone()
}

/// Asserts that a lenient start conflicts, and names these nodes.
async fn conflicts(setting: &Setting, path: &str, body: &Value, nodes: &[&str]) {
    let before = setting.user.canvas(&setting.canvas).await;
    let refused = send(setting, "handling=lenient", path, body).await.expect(409);
    assert_eq!(refused.header("preference-applied"), None);
    let details = &refused.json()["error"]["details"];
    let mut nodes = nodes.to_vec();
    nodes.sort_unstable();
    assert_eq!(
        (&details["currentRevision"], &details["changedNodeIds"]),
        (&before["revision"], &json!(nodes)),
        "{body}"
    );
    assert_eq!(setting.user.canvas(&setting.canvas).await, before);
}

async fn every_start_accepts_a_stale_base_when_nothing_that_it_uses_changed(stack: &Stack) {
    let setting = Setting::of(stack, 100).await;
    let mut starts: Vec<(String, Value, u16)> = Vec::new();
    for start in setting.starts().await.into_iter().filter(|start| start.path != "/videos/generate") {
        starts.push((start.path.to_owned(), start.with(json!({"idempotencyKey": key()})), 202));
    }
    let fork = json!({"canvasId": setting.canvas, "baseRevision": revision(&setting).await, "idempotencyKey": key()});
    starts.push((format!("{RECIPE}/fork"), fork, 201));
    setting.user.slot(&setting.canvas).await;
    // All of them are based on one revision, so that each is stale for the one before it as well.
    for (path, body, status) in starts {
        let refused = send(&setting, "handling=strict", &path, &body).await.expect(409).json();
        assert_eq!(refused["error"]["details"]["changedNodeIds"], json!([]), "{path}");
        if status == 202 {
            let mut trial = body.clone();
            trial["validateOnly"] = json!(true);
            let quote = send(&setting, "wait=1, handling=lenient", &path, &trial).await.expect(200);
            assert_eq!(quote.header("preference-applied"), Some("handling=lenient"), "{path}");
            send(&setting, "handling=strict", &path, &trial).await.expect_error(409, "conflict", &[]);
        }
        let reply = send(&setting, "handling=lenient", &path, &body).await.expect(status);
        assert_eq!(reply.header("preference-applied"), Some("handling=lenient"), "{path}");
        let replay = send(&setting, "handling=strict", &path, &body).await;
        assert_eq!((replay.status, replay.header("preference-applied")), (if status == 201 { 200 } else { 202 }, None));
        assert_eq!(replay.json()["replayed"], true, "{path}");
    }
}

async fn a_start_whose_target_was_taken_since_is_a_conflict(stack: &Stack) {
    let setting = Setting::of(stack, 100).await;
    let (user, canvas) = (&setting.user, setting.canvas.as_str());
    let target = user.slot(canvas).await;
    let base = revision(&setting).await;
    let action = json!({"canvasId": canvas, "baseRevision": base, "idempotencyKey": key(), "targetNodeId": target,
        "inputs": [setting.picture], "params": {"width": 4}});
    send(&setting, "handling=lenient", "/actions/resize/runs", &action).await.expect(202);
    let image = json!({"canvasId": canvas, "baseRevision": base, "idempotencyKey": key(), "prompt": "A chair"});
    let mut one = image.clone();
    one["targetNodeId"] = json!(target);
    conflicts(&setting, "/images/generate", &one, &[&target]).await;
    let mut several = image;
    several["targetNodeIds"] = json!([user.slot(canvas).await, target]);
    // The first target did not exist at the base revision.
    let new = text(&several, "/targetNodeIds/0").to_owned();
    conflicts(&setting, "/images/generate", &several, &[&target, &new]).await;
    let mut again = action;
    again["idempotencyKey"] = json!(key());
    conflicts(&setting, "/actions/resize/runs", &again, &[&target]).await;
}

async fn a_start_conflicts_with_a_change_of_what_it_uses(stack: &Stack) {
    let setting = Setting::of(stack, 100).await;
    let (user, canvas) = (&setting.user, setting.canvas.as_str());
    user.upload_into(canvas, "image/png", pictures::png(8, 8)).await;
    let picture = text(&user.canvas(canvas).await, "/nodes/0/id").to_owned();
    let prompt =
        json!([{"type": "node.create", "clientId": "p", "node": {"type": "text", "metadata": {"content": "A chair"}}}]);
    let prompt = text(&user.apply(canvas, prompt).await, "/resolvedIds/p").to_owned();
    let handle = format!("node:{picture}");
    let retitle = |node: &str| json!({"type": "node.update", "nodeId": node, "patch": {"title": key()}});
    let link = |to: &str| json!({"type": "connection.create", "clientId": "l", "fromNodeId": picture, "toNodeId": to, "purpose": "reference"});
    for (path, uses, changed) in [
        ("/actions/resize/runs", json!({"inputs": [handle], "params": {"width": 4}}), Some(&picture)),
        ("/actions/resize/runs", json!({"inputs": [setting.picture], "params": {"width": 4}}), None),
        ("/images/generate", json!({"promptNodeId": prompt}), Some(&prompt)),
        ("/images/generate", json!({"prompt": "A chair", "references": [handle]}), Some(&picture)),
        ("/images/edit", json!({"prompt": "A chair", "source": handle}), Some(&picture)),
        ("/images/variations", json!({"references": [{"handle": handle}]}), Some(&picture)),
        ("/images/variations", json!({"references": [setting.picture]}), None),
    ] {
        let target = user.slot(canvas).await;
        let mut body = json!({"canvasId": canvas, "baseRevision": revision(&setting).await, "idempotencyKey": key(), "targetNodeId": target});
        body.as_object_mut().expect("an object").extend(uses.as_object().expect("an object").clone());
        user.apply(canvas, json!([retitle(&picture), retitle(&prompt)])).await;
        match changed {
            Some(node) => conflicts(&setting, path, &body, &[node]).await,
            None => drop(send(&setting, "handling=lenient", path, &body).await.expect(202)),
        }
    }
    // Reference connections count where the request names no references.
    for (is_linked, names_references, change, conflict) in [
        (true, false, "link", true),
        (true, false, "unlink", true),
        (true, false, "source", true),
        (false, false, "link", true),
        (true, true, "unlink", false),
        (false, false, "other", false),
    ] {
        let target = user.slot(canvas).await;
        let made = match is_linked {
            true => user.apply(canvas, json!([link(&target)])).await,
            false => json!(null),
        };
        let mut body = json!({"canvasId": canvas, "baseRevision": revision(&setting).await, "idempotencyKey": key(),
            "targetNodeId": target, "prompt": "A chair"});
        if names_references {
            body["references"] = json!([setting.picture]);
        }
        let other = user.slot(canvas).await;
        body["baseRevision"] = revision(&setting).await;
        let (operation, named) = match (change, is_linked) {
            ("link", false) => (link(&target), vec![target.as_str()]),
            ("link", true) => {
                (json!({"type": "connection.create", "fromNodeId": prompt, "toNodeId": target}), vec![target.as_str()])
            }
            ("unlink", _) => {
                (json!({"type": "connection.delete", "connectionId": made["resolvedIds"]["l"]}), vec![target.as_str()])
            }
            ("source", _) => (retitle(&picture), vec![picture.as_str()]),
            _ => (link(&other), vec![]),
        };
        user.apply(canvas, json!([operation])).await;
        match conflict {
            true => conflicts(&setting, "/images/generate", &body, &named).await,
            false => drop(send(&setting, "handling=lenient", "/images/generate", &body).await.expect(202)),
        }
    }
}

async fn a_run_conflicts_with_a_change_of_its_instance(stack: &Stack) {
    let setting = Setting::of(stack, 100).await;
    let (user, canvas) = (&setting.user, setting.canvas.as_str());
    let source =
        json!([{"type": "node.create", "clientId": "t", "node": {"type": "text", "metadata": {"content": "Chairs"}}}]);
    let source = text(&user.apply(canvas, source).await, "/resolvedIds/t").to_owned();
    let fork = json!({"canvasId": canvas, "baseRevision": revision(&setting).await, "idempotencyKey": key()});
    let fork = user.send(&format!("{RECIPE}/fork"), &fork).await.expect(201).json();
    let nodes = fork["canvas"]["nodes"].as_array().expect("nodes").clone();
    let port = |role: &str, key: &str| {
        let is_it = |node: &&Value| {
            let note = &node["metadata"]["recipe"];
            note["role"] == role && (key.is_empty() || note["key"] == key)
        };
        text(nodes.iter().find(is_it).unwrap_or_else(|| panic!("a port {role} {key}: {nodes:?}")), "/id").to_owned()
    };
    let (instance, offer, output) = (port("instance", ""), port("input", "offer"), port("output", ""));
    let link = json!({"type": "connection.create", "clientId": "l", "fromNodeId": source, "toNodeId": offer});
    let link = user.apply(canvas, json!([link])).await["resolvedIds"]["l"].clone();
    let retitle = |node: &str| json!({"type": "node.update", "nodeId": node, "patch": {"title": key()}});
    let path = format!("{RECIPE}/runs");
    let inputs = |offer: Value| json!({"product": setting.picture, "offer": offer});
    for (change, uses, named) in [
        (retitle(&instance), json!({"instanceNodeId": instance, "inputs": inputs(json!("Chairs"))}), vec![&instance]),
        (retitle(&offer), json!({"instanceNodeId": instance, "inputs": inputs(json!("Chairs"))}), vec![&offer]),
        (retitle(&output), json!({"instanceNodeId": instance, "inputs": inputs(json!("Chairs"))}), vec![&output]),
        (retitle(&source), json!({"instanceNodeId": instance, "inputs": {"product": setting.picture}}), vec![&source]),
        (
            json!({"type": "connection.update", "connectionId": link, "purpose": "list"}),
            json!({"instanceNodeId": instance, "inputs": {"product": setting.picture}}),
            vec![&offer, &source],
        ),
        (retitle(&source), json!({"inputs": inputs(json!(format!("node:{source}")))}), vec![&source]),
    ] {
        let mut body = json!({"canvasId": canvas, "baseRevision": revision(&setting).await, "idempotencyKey": key()});
        body.as_object_mut().expect("an object").extend(uses.as_object().expect("an object").clone());
        user.apply(canvas, json!([change])).await;
        let named: Vec<&str> = named.into_iter().map(String::as_str).collect();
        conflicts(&setting, &path, &body, &named).await;
    }
    // A new instance depends on no other.
    let body = json!({"canvasId": canvas, "baseRevision": revision(&setting).await, "idempotencyKey": key(), "inputs": inputs(json!("Chairs"))});
    user.apply(canvas, json!([retitle(&instance), retitle(&source)])).await;
    let reply = send(&setting, "handling=lenient", &path, &body).await.expect(202);
    assert_eq!(reply.header("preference-applied"), Some("handling=lenient"));
}
