//! Outputs of the embedded runtime in Recipe runs (docs/reference/models.md#stand-ins).

use serde_json::Value;

use super::runs::{SECRET, Setting};
use super::*;

#[tokio::test]
async fn what_the_embedded_runtime_makes_is_marked_and_has_the_form_that_is_asked_for() {
    let stack = &Stack::with_workers().await;
    let setting = Setting::new(stack, 5).await;
    let receiver = stack.take_receiver();
    let webhook = json!({"url": receiver.url("/run"), "secret": SECRET});
    let run = setting.start(json!({"webhook": webhook})).await.expect(202).json();
    let done = setting.user.finished(&run).await;
    let [copy, banner] = [&done["outputs"][0], &done["outputs"][1]];
    let labels: Vec<_> = text(copy, "/value").lines().filter_map(|line| line.split_once(": ")).map(|it| it.0).collect();
    assert_eq!(labels, ["Headline", "Copy", "Call to action"], "{copy}");
    let child = setting.user.get(&format!("/runs/{}", text(banner, "/runHandle"))).await.expect(200).json();
    let event: Value = serde_json::from_slice(&receiver.wait_for(1, e2e::PATIENCE).await[0].body).expect("JSON");
    let event = &event["data"]["run"];
    for marked in [&done, copy, banner, &child, event, &event["outputs"][0], &event["outputs"][1]] {
        assert_eq!(marked["standIn"], true, "{marked}");
    }
    let canvas = setting.now().await;
    for output in [copy, banner] {
        assert_eq!(nodes(&canvas)[text(output, "/nodeId")]["metadata"]["provenance"]["standIn"], true);
    }
    let review = &done["completionReview"];
    assert_eq!((&review["status"], &review["doneClaimAllowed"]), (&json!("needs-review"), &json!(true)), "{review}");
    assert!(review["advisoryFindingCodes"].as_array().expect("codes").contains(&json!("stand_in_output")), "{review}");
    let path = format!("/canvases/{}/review", text(&setting.canvas, "/id"));
    let finding = async || {
        let review = setting.user.get(&path).await.ok();
        let findings = review["validation"]["findings"].as_array().expect("a list");
        findings.iter().find(|finding| finding["code"] == "stand_in_output").cloned().expect("is found")
    };
    let found = finding().await;
    assert_eq!(found["severity"], "warning", "{found}");
    assert_eq!(found["nodeHandles"], json!([copy["nodeHandle"], banner["nodeHandle"]]));
    let edit =
        json!([{"type": "node.update", "nodeId": copy["nodeId"], "patch": {"metadata": {"content": "My own."}}}]);
    setting.user.apply(text(&setting.canvas, "/id"), edit).await;
    assert_eq!(finding().await["nodeHandles"], json!([banner["nodeHandle"]]), "the text is the client's now");
}
