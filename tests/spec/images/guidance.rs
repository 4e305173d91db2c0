//! The inputs of a generation: references with roles, connections, notes and Elements (docs/reference/images.md#references,
//! docs/reference/images.md#incoming-connections, docs/reference/images.md#elements-in-a-request).

use e2e::Stack;
use e2e::api::text;
use serde_json::{Value, json};

use super::setting::{Setting, stored};

#[tokio::test]
async fn references_keep_their_full_handle_and_role() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let image = setting.image().await;
    let roles = ["identity", "construction", "texture", "fit", "style"];
    let ids = setting.assets(5).await;
    let mut references: Vec<Value> =
        ids.iter().zip(roles).map(|(id, role)| json!({"handle": format!("asset:{id}"), "role": role})).collect();
    references.push(json!({"handle": image}));
    let job = setting.job("edit", json!({"references": references, "source": setting.asset})).await;
    let full = |id: &String| format!("asset:{}:{id}", setting.user.uid);
    let mut expected: Vec<Value> =
        ids.iter().zip(roles).map(|(id, role)| json!({"handle": full(id), "role": role})).collect();
    expected.extend([json!({"handle": image}), json!({"handle": setting.asset})]);
    assert_eq!(job["referenceInputs"], json!(expected));
    let handles: Vec<&Value> = expected.iter().map(|reference| &reference["handle"]).collect();
    assert_eq!(job["references"], json!(handles));
    // The job uses the image that the node showed at the start.
    let shown = setting.read(&image).await["asset"].clone();
    assert_eq!(stored(stack, &job).await["references"][5], json!({"handle": image, "asset": shown}));
}

#[tokio::test]
async fn connections_bring_references_where_none_are_named() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let (first, second, flow) = (setting.image().await, setting.image().await, setting.image().await);
    setting.refer(&second, &setting.target, Some("identity")).await;
    setting.refer(&first, &setting.target, None).await;
    let empty = setting.user.slot(&setting.canvas).await;
    setting.refer(&empty, &setting.target, None).await;
    let connection = json!({"type": "connection.create", "fromNodeId": flow, "toNodeId": setting.target});
    setting.user.apply(&setting.canvas, json!([connection])).await;
    let brought = json!([{"handle": second, "role": "identity"}, {"handle": first}]);
    let cancel = async |job: &Value| setting.user.delete(text(job, "/pollUrl")).await.ok();
    for operation in ["generate", "edit", "variations"] {
        let job = setting.job(operation, json!({})).await;
        assert_eq!(job["referenceInputs"], brought, "{operation}");
        cancel(&job).await;
    }
    let listed = setting.job("edit", json!({"targetNodeId": null, "targetNodeIds": [setting.target]})).await;
    assert_eq!(listed["referenceInputs"], brought, "a target counts once, in either form");
    cancel(&listed).await;
    // The source comes after the references, unless it is one of them.
    let job = setting.job("edit", json!({"source": setting.asset})).await;
    assert_eq!(job["references"], json!([second, first, setting.asset]));
    cancel(&job).await;
    let job = setting.job("edit", json!({"source": second})).await;
    assert_eq!(job["referenceInputs"], brought);
    cancel(&job).await;
    // Explicit references replace the connections, and several targets have no connections of their own.
    let job = setting.job("edit", json!({"references": [setting.asset]})).await;
    assert_eq!(job["references"], json!([setting.asset]));
    cancel(&job).await;
    let job = setting.job("generate", json!({"targetNodeId": null, "targetNodeIds": [setting.target, empty]})).await;
    assert_eq!((&job["references"], job.get("referenceInputs")), (&json!([]), None));
}

#[tokio::test]
async fn a_note_is_the_prompt() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let sticky = setting.node(json!({"type": "sticky", "metadata": {"content": "A table\nof oak"}})).await;
    for (id, note) in
        [(&setting.target, setting.note("A chair").await), (&setting.user.slot(&setting.canvas).await, sticky)]
    {
        let more = json!({"targetNodeId": id, "prompt": null, "promptNodeId": format!("node:{note}")});
        let job = setting.job("generate", more).await;
        let content = setting.read(&note).await["metadata"]["content"].clone();
        assert_eq!(stored(stack, &job).await["prompt"], content);
    }
}

#[tokio::test]
async fn an_element_guides_by_words_and_images() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let cast = [
        ("character", "identity"),
        ("product/object", "identity"),
        ("material/texture", "texture"),
        ("environment", "style"),
        ("style", "style"),
        ("lighting", "style"),
    ];
    let ids = setting.assets(cast.len()).await;
    let mut elements = Vec::new();
    let mut expected = vec![json!({"handle": setting.asset})];
    for ((kind, role), id) in cast.into_iter().zip(&ids) {
        let element = json!({"name": format!("My {kind}"), "type": kind, "sourceAssetIds": [id],
            "guidelines": format!("Mind the {kind}.")});
        elements.push(setting.element(element).await);
        expected.push(json!({"handle": format!("asset:{}:{id}", setting.user.uid), "role": role}));
    }
    let job = setting.job("edit", json!({"source": setting.asset, "elements": elements})).await;
    assert_eq!(job["referenceInputs"], json!(expected));
    let stored = stored(stack, &job).await;
    assert_eq!(stored["elements"], json!(elements));
    let prompt = text(&stored, "/prompt");
    assert!(prompt.starts_with("A chair in a bright room"), "{prompt}");
    let mut rest = prompt;
    for (kind, _) in cast {
        for part in [format!("My {kind}"), format!("Mind the {kind}.")] {
            rest = rest.split_once(&part).unwrap_or_else(|| panic!("{part} is missing or out of order: {prompt}")).1;
        }
    }
    // A later version of the Element does not change the request.
    let path = format!("/elements/{}", elements[0].split("@v").next().expect("a handle"));
    let update = json!({"operation": "update", "element": {"name": "New", "type": "style", "sourceAssetIds": [],
        "guidelines": "New words."}});
    let patch = setting.user.call(reqwest::Method::PATCH, &path).body("application/json", update.to_string());
    patch.await.expect(200);
    let target = setting.user.slot(&setting.canvas).await;
    let job = setting.job("generate", json!({"targetNodeId": target, "elements": [elements[0]]})).await;
    assert!(text(&super::setting::stored(stack, &job).await, "/prompt").contains("Mind the character."));
}

#[tokio::test]
async fn images_of_elements_share_the_budget_of_sixteen() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let ids = setting.assets(17).await;
    let element = setting.element(json!({"sourceAssetIds": ids[..8]})).await;
    let other = setting.element(json!({"sourceAssetIds": ids[8..12]})).await;
    let handles: Vec<String> = ids.iter().map(|id| format!("asset:{id}")).collect();
    let named = |references: &[String]| json!({"references": references, "elements": [element, other]});
    setting.unprocessable("edit", named(&handles[12..17]), &["elements"]).await;
    let job = setting.job("edit", named(&handles[12..16])).await;
    assert_eq!(job["references"].as_array().map(Vec::len), Some(16));
    // An image that several inputs name counts once, with the role of the request.
    let target = setting.user.slot(&setting.canvas).await;
    let mut again = named(&[]);
    again["targetNodeId"] = json!(target);
    again["references"] =
        json!([{"handle": handles[0], "role": "fit"}, handles[12], handles[13], handles[14], handles[15]]);
    let job = setting.job("edit", again).await;
    let inputs = job["referenceInputs"].as_array().expect("a list");
    assert_eq!((inputs.len(), &inputs[0]["role"]), (16, &json!("fit")));
}

#[tokio::test]
async fn a_variation_under_an_element_still_says_what_it_is() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let element = setting.element(json!({"guidelines": "Soft light."})).await;
    let job = setting.job("variations", json!({"prompt": null, "source": setting.asset, "elements": [element]})).await;
    let prompt = stored(stack, &job).await["prompt"].clone();
    let (asked, guidelines) = prompt.as_str().and_then(|prompt| prompt.split_once("\n\n")).expect("two parts");
    assert!(asked.contains("variation"), "{prompt}");
    assert_eq!(guidelines, "Studio:\nSoft light.");
    // Without a prompt in the request or on the canvas, none is stored: the worker adds the provider's default.
    let target = setting.user.slot(&setting.canvas).await;
    let bare = json!({"prompt": null, "source": setting.asset, "targetNodeId": target});
    assert_eq!(stored(stack, &setting.job("variations", bare).await).await["prompt"], "");
}
