//! Errors that follow from the request alone: 400, with every field named (docs/reference/images.md#request-fields).

use e2e::Stack;
use serde_json::json;

use super::setting::Setting;

#[tokio::test]
async fn required_fields_are_reported_all_at_once() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let always = ["idempotencyKey", "targetNodeId", "targetNodeIds", "place"];
    for (operation, more) in
        [("generate", &["prompt", "promptNodeId"][..]), ("edit", &["prompt", "promptNodeId"]), ("variations", &[])]
    {
        let path = format!("/images/{operation}");
        let refused = user.send(&path, &json!({})).await;
        refused.expect_error(400, "input_validation_error", &["canvasId", "baseRevision"]);
        let refused = user.send(&path, &json!({"canvasId": "c", "baseRevision": "r"})).await;
        refused.expect_error(400, "input_validation_error", &[&always[..], more].concat());
    }
}

#[tokio::test]
async fn every_field_has_its_form_and_range() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    for (field, wrong) in [
        ("canvasId", json!("a b")),
        ("canvasId", json!("canvas:a:b:c")),
        ("canvasId", json!(7)),
        ("baseRevision", json!("")),
        ("baseRevision", json!("r".repeat(201))),
        ("idempotencyKey", json!("k".repeat(7))),
        ("idempotencyKey", json!("k".repeat(201))),
        ("targetNodeId", json!("asset:a")),
        ("targetNodeId", json!("a b")),
        ("references", json!([])),
        ("references", json!("node:a")),
        ("references[0]", json!(["a"])),
        ("references[0]", json!(["asset:a:b:c"])),
        ("references[0]", json!(["https://example.com/a.png"])),
        ("references[0]", json!([7])),
        ("references[0].handle", json!([{"handle": "a"}])),
        ("references[0].handle", json!([{"role": "style"}])),
        ("references[0].role", json!([{"handle": "node:a", "role": "flow"}])),
        ("references[0].role", json!([{"handle": "node:a", "role": null}])),
        ("references[0].weight", json!([{"handle": "node:a", "weight": 1}])),
        ("source", json!("a")),
        ("source", json!(["node:a"])),
        ("elements", json!("element:a@v1")),
        ("count", json!(0)),
        ("count", json!(5)),
        ("count", json!(1.5)),
        ("count", json!("1")),
        ("connectionId", json!("a b")),
        ("connectionId", json!("")),
        ("connectionId", json!("c".repeat(181))),
        ("model", json!("m".repeat(651))),
        ("model", json!("model:short")),
        ("model", json!(format!("model:{}", "k".repeat(601)))),
        ("size", json!("s".repeat(81))),
        ("quality", json!("q".repeat(81))),
        ("webhook", json!("https://example.com/")),
        ("colour", json!("red")),
    ] {
        let named = field.split(['[', '.']).next().expect("a name");
        setting.invalid("edit", json!({"source": setting.asset, named: wrong}), &[field]).await;
    }
    // `null` does not count as an omitted field.
    for field in ["source", "count", "connectionId", "model", "size", "quality", "webhook", "references", "elements"] {
        let mut request = setting.request(json!({})).await;
        request[field] = json!(null);
        let refused = setting.user.send("/images/generate", &request).await;
        refused.expect_error(400, "input_validation_error", &[field]);
    }
}

#[tokio::test]
async fn a_prompt_has_1_to_8000_characters() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    setting.invalid("generate", json!({"prompt": ""}), &["prompt"]).await;
    setting.invalid("generate", json!({"prompt": "x".repeat(8001)}), &["prompt"]).await;
    // The limit counts characters, not bytes.
    setting.invalid("generate", json!({"prompt": "🪑".repeat(8001)}), &["prompt"]).await;
    for prompt in ["x", &"x".repeat(8000), &"🪑".repeat(8000)] {
        let target = setting.user.slot(&setting.canvas).await;
        let guided = json!({"prompt": prompt, "targetNodeId": target,
            "references": [{"handle": setting.asset, "role": "identity"}]});
        setting.job("generate", guided).await;
    }
}

#[tokio::test]
async fn targets_are_named_in_exactly_one_way_and_count_agrees() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let target = &setting.target;
    let both = json!({"targetNodeIds": [target]});
    setting.invalid("generate", both, &["targetNodeId", "targetNodeIds"]).await;
    setting.invalid("generate", json!({"targetNodeId": null}), &["targetNodeId", "targetNodeIds", "place"]).await;
    for count in [2, 4] {
        setting.invalid("generate", json!({"count": count}), &["count"]).await;
    }
    for (targets, count, field) in [
        (json!([]), None, "targetNodeIds"),
        (json!(["a", "b", "c", "d", "e"]), None, "targetNodeIds"),
        (json!(["a", "b", "node:a"]), None, "targetNodeIds[2]"),
        (json!(["a", "b c"]), None, "targetNodeIds[1]"),
        (json!(["a", "b"]), Some(1), "count"),
        (json!(["a", "b"]), Some(3), "count"),
    ] {
        let mut more = json!({"targetNodeId": null, "targetNodeIds": targets});
        if let Some(count) = count {
            more["count"] = json!(count);
        }
        setting.invalid("generate", more, &[field]).await;
    }
    setting.job("generate", json!({"count": 1})).await;
    let one = setting.user.slot(&setting.canvas).await;
    setting.job("generate", json!({"targetNodeId": null, "targetNodeIds": [one], "count": 1})).await;
}

#[tokio::test]
async fn references_and_source_are_sixteen_at_most_and_each_once() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let handles: Vec<String> = setting.assets(17).await.iter().map(|id| format!("asset:{id}")).collect();
    setting.invalid("edit", json!({"references": handles}), &["references"]).await;
    let with_source = json!({"references": handles[..16], "source": handles[16]});
    setting.invalid("edit", with_source, &["references", "source"]).await;
    let full = |handle: &String| handle.replace("asset:", &format!("asset:{}:", setting.user.uid));
    let again = json!({"references": [handles[0], {"handle": full(&handles[0]), "role": "style"}]});
    setting.invalid("edit", again, &["references[1]"]).await;
    setting.invalid("edit", json!({"references": ["node:a", "node:a"]}), &["references[1]"]).await;
    setting.invalid("edit", json!({"references": [handles[0]], "source": full(&handles[0])}), &["source"]).await;
    let job = setting.job("edit", json!({"references": handles[..16]})).await;
    assert_eq!(job["references"], json!(handles[..16].iter().map(full).collect::<Vec<_>>()));
    let target = setting.user.slot(&setting.canvas).await;
    let with_source = json!({"references": handles[..15], "source": handles[15], "targetNodeId": target});
    assert_eq!(setting.job("edit", with_source).await["references"], job["references"], "the source is the last");
}

#[tokio::test]
async fn elements_are_versions_eight_at_most_and_each_once() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let mut elements = Vec::new();
    for _ in 0..9 {
        elements.push(setting.element(json!({"guidelines": "Soft light."})).await);
    }
    setting.invalid("generate", json!({"elements": elements}), &["elements"]).await;
    let unpinned = elements[0].split("@v").next().expect("a handle");
    let id = unpinned.replace("element:", "");
    for wrong in [unpinned, &id, &format!("{id}@v1"), &format!("{unpinned}@v0"), &format!("{unpinned}@v1.5")] {
        setting.invalid("generate", json!({"elements": [elements[1], wrong]}), &["elements[1]"]).await;
    }
    let again = json!({"elements": [elements[0], elements[1], elements[0]]});
    setting.invalid("generate", again, &["elements[2]"]).await;
    setting.job("generate", json!({"elements": elements[..8]})).await;
}

#[tokio::test]
async fn a_prompt_comes_in_one_way() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let note = setting.note("A table").await;
    for operation in ["generate", "edit", "variations"] {
        let both = json!({"promptNodeId": note, "source": setting.asset});
        setting.invalid(operation, both, &["prompt", "promptNodeId"]).await;
    }
    setting.invalid("generate", json!({"prompt": null, "promptNodeId": "a b"}), &["promptNodeId"]).await;
    setting.job("variations", json!({"prompt": null, "source": setting.asset})).await;
}

#[tokio::test]
async fn a_webhook_is_public_by_its_form() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let secret = "s".repeat(32);
    for url in ["https://127.0.0.1/", "https://localhost/", "https://u:p@example.com/", "https://example.com/#f"] {
        let webhook = json!({"url": url, "secret": secret});
        setting.invalid("generate", json!({"webhook": webhook, "count": 2}), &["webhook.url", "count"]).await;
    }
    setting
        .invalid("generate", json!({"webhook": {"url": "http://example.com/", "secret": secret}}), &["webhook.url"])
        .await;
    let short = json!({"webhook": {"url": "https://example.com/", "secret": "s".repeat(31)}});
    setting.invalid("generate", short, &["webhook.secret"]).await;
}

#[tokio::test]
async fn a_request_that_is_wrong_alone_is_refused_before_anything_is_looked_up() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let wrong = json!({"canvasId": "absent", "count": 9, "prompt": "x".repeat(8001)});
    setting.invalid("generate", wrong, &["count", "prompt"]).await;
    let wrong = json!({"canvasId": "absent", "targetNodeIds": ["absent"]});
    setting.invalid("generate", wrong, &["targetNodeId", "targetNodeIds"]).await;
    setting.start("generate", json!({"canvasId": "absent"})).await.expect_error(404, "not_found", &[]);
}
