//! What a tool says when it has no success: each row of the table in docs/reference/tools.md#errors.

use e2e::Stack;
use e2e::api::text;
use serde_json::{Value, json};

use super::{board, tools_of};

#[tokio::test]
async fn a_stale_revision_is_reported_with_what_changed() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, node) = board(&tools).await;
    let rename = |revision: &Value, title: &str| {
        let operations = json!([{"type": "node.update", "nodeId": node, "patch": {"title": title}}]);
        json!({"canvas": canvas, "revision": revision, "operations": operations})
    };
    let other = tools.ok("canvas_edit", rename(&revision, "theirs")).await;
    let stale = tools.call("canvas_edit", rename(&revision, "mine")).await.fails("conflict");
    assert_eq!(stale["retry"], json!({"when": "with_changes"}));
    let changed = text(&stale["error"]["details"]["changes"], "/0");
    assert!(changed.starts_with(r#"n1 by e2e: image "theirs" "#), "{stale}");
    let again = stale["next"].as_array().expect("steps").last().expect("one").clone();
    assert_eq!(
        (&again["tool"], &again["arguments"]["revision"]),
        (&json!("canvas_edit"), &other["revision"]),
        "{stale}"
    );
    tools.ok("canvas_edit", again["arguments"].clone()).await;
    // A start that uses the node gets the same answer.
    let arguments = json!({"canvas": canvas, "revision": revision, "inputs": [node], "steps": [{"action": "rotate", "params": {"degrees": 90}}]});
    let stale = tools.call("action_run", arguments).await.fails("conflict");
    assert_eq!(stale["next"].as_array().expect("steps").last().expect("one")["tool"], "action_run");
}

#[tokio::test]
async fn disjoint_changes_are_merged_unless_that_is_declined() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, _) = board(&tools).await;
    let add = |title: &str| json!([{"type": "node.create", "node": {"type": "text", "title": title}}]);
    tools.ok("canvas_edit", json!({"canvas": canvas, "revision": revision, "operations": add("one")})).await;
    let strict = json!({"canvas": canvas, "revision": revision, "operations": add("two"), "rebase": false});
    tools.call("canvas_edit", strict).await.fails("conflict");
    tools.ok("canvas_edit", json!({"canvas": canvas, "revision": revision, "operations": add("two")})).await;
}

#[tokio::test]
async fn a_batch_that_covers_nodes_is_refused_with_one_that_fits() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, _) = board(&tools).await;
    let far = json!({"type": "text", "position": {"x": 3000, "y": 0}});
    let operations = json!([{"type": "node.create", "clientId": "t", "node": far}]);
    let made = tools.ok("canvas_edit", json!({"canvas": canvas, "revision": revision, "operations": operations})).await;
    let text = &made["created"]["t"];
    for operations in [
        json!([{"type": "node.create", "node": {"type": "text", "title": "over", "position": {"x": 10, "y": 10}}}]),
        json!([{"type": "node.move", "nodeId": text, "position": {"x": 10, "y": 10}}]),
    ] {
        let edit = json!({"canvas": canvas, "revision": made["revision"], "operations": operations});
        let blocked = tools.call("canvas_edit", edit).await.fails("unprocessable_entity");
        let finding = &blocked["error"]["details"]["findings"][0];
        assert_eq!(finding["code"], "agent_overlap", "{blocked}");
        assert_eq!(finding["nodes"].as_array().map(Vec::len), Some(2), "{blocked}");
        assert!(!blocked.to_string().contains("force"), "{blocked}");
        assert_eq!(blocked["next"][0]["tool"], "canvas_edit", "{blocked}");
        let fitting = blocked["next"][0]["arguments"].clone();
        tools.ok("canvas_edit", fitting).await;
    }
    let review = tools.ok("canvas_review", json!({"canvas": canvas})).await;
    assert_eq!((&review["findings"], &review["doneClaimAllowed"]), (&json!([]), &json!(true)));
}

#[tokio::test]
async fn a_review_leaves_what_a_person_made_where_it_is() {
    let stack = &Stack::with_workers().await;
    let account = stack.account().await;
    let tools = tools_of(&stack.user_of(&account, "all").await).await;
    let (canvas, _, node) = board(&tools).await;
    let person = stack.user_by(&account, "all", "browser").await;
    let id = canvas.as_str().expect("a slug");
    let over = json!({"type": "text", "title": "mine", "position": {"x": 10, "y": 10}});
    person.apply(id, json!([{"type": "node.create", "node": over}])).await;
    let review = tools.ok("canvas_review", json!({"canvas": canvas})).await;
    assert_eq!(review["findings"][0]["code"], "agent_overlap", "{review}");
    let apart = review["next"][0]["arguments"].clone();
    let [moved] = apart["operations"].as_array().expect("a list").as_slice() else { panic!("{review}") };
    assert_eq!(moved["type"], "node.move", "{review}");
    assert_eq!(moved["nodeId"], node, "{review}");
    tools.ok("canvas_edit", apart).await;
    let canvas = person.canvas(id).await;
    let mine = canvas["nodes"].as_array().expect("nodes").iter().find(|it| it["title"] == "mine").expect("a node");
    assert_eq!(mine["position"], json!({"x": 10.0, "y": 10.0}));
    let review = tools.ok("canvas_review", json!({"canvas": canvas["handle"]})).await;
    assert_eq!((&review["findings"], &review["next"]), (&json!([]), &json!([])));
}

#[tokio::test]
async fn every_wrong_argument_is_named() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let fields = async |tool: &str, arguments: Value| -> Vec<String> {
        let failure = tools.call(tool, arguments).await.fails("input_validation_error");
        assert_eq!(failure["retry"]["when"], "with_changes");
        let fields = failure["error"]["fields"].as_array().expect("fields").iter();
        let mut fields: Vec<String> = fields.map(|it| it["field"].as_str().expect("a path").to_owned()).collect();
        fields.sort();
        fields
    };
    let wrong = json!({"canvas": "c", "mode": "dream", "count": 9, "seed": 1});
    assert_eq!(fields("image_generate", wrong).await, ["count", "mode", "revision", "seed"]);
    assert_eq!(fields("asset_upload", json!({"data": "AAAA", "paths": ["/etc/passwd"]})).await, ["paths"], "over HTTP");
    assert_eq!(fields("asset_upload", json!({"data": "AAAA", "files": [{"name": "a"}]})).await, ["data"]);
    assert_eq!(fields("asset_upload", json!({"data": "AAAA", "place": {}})).await, ["place"]);
    assert_eq!(fields("asset_upload", json!({"files": [{"name": "a"}], "node": "none"})).await, ["node"]);
    assert_eq!(fields("asset_download", json!({"items": ["asset:a"], "into": "x"})).await, ["into"], "over HTTP");
    assert_eq!(fields("asset_download", json!({"items": ["n"]})).await, ["canvasId"]);
    assert_eq!(fields("asset_upload", json!({})).await, ["data"]);
    assert_eq!(fields("canvas_view", json!({"canvas": "c", "asset": "asset:a"})).await, ["canvas"]);
    assert_eq!(fields("describe", json!({"handle": "boots"})).await, ["handle"]);
    assert_eq!(fields("workflow_create", json!({"canvas": "c"})).await, ["fork"]);
    // A node does not say which canvas it is on.
    for (handle, step) in [("canvas:c", "canvas_read"), ("node:n1", "find")] {
        let failure = tools.call("describe", json!({"handle": handle})).await.fails("input_validation_error");
        assert_eq!(failure["next"][0]["tool"], step, "{failure}");
    }
    // What the service says about the contract's own forms.
    let (canvas, revision, _) = board(&tools).await;
    let operations = json!([{"type": "node.create", "node": {"type": "text", "widht": 1, "title": 7}}]);
    let edit = json!({"canvas": canvas, "revision": revision, "operations": operations});
    assert_eq!(fields("canvas_edit", edit).await, ["operations[0].node.title", "operations[0].node.widht"]);
    let create = |color: &str| json!({"type": "node.create", "node": {"type": "text", "metadata": {"color": color}}});
    let operations = json!([create("#1"), create("#112233"), create("#2"), create("#3"), create("#4")]);
    let edit = json!({"canvas": canvas, "revision": revision, "operations": operations});
    assert_eq!(fields("canvas_edit", edit).await, ["operations[0,2-4].node.metadata.color"], "one rule is told once");
    // Members that are null count as left out.
    tools.ok("canvas_read", json!({"canvas": canvas, "nodes": null, "since": null})).await;
}

#[tokio::test]
async fn a_wrong_parameter_is_reported_with_those_of_the_action() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, node) = board(&tools).await;
    let arguments = json!({"canvas": canvas, "revision": revision, "inputs": [node], "steps": [{"action": "resize", "params": {"widht": 9}}]});
    let failure = tools.call("action_run", arguments).await.fails("input_validation_error");
    assert_eq!(failure["error"]["fields"][0]["field"], "steps[0].params.widht");
    let line = failure["error"]["details"]["parameters"][0].as_str().expect("a line");
    assert!(line.starts_with("width?: int 1.."), "{failure}");
    let made = tools.ok("action_run", failure["next"][0]["arguments"].clone()).await;
    assert_eq!(made["runs"][0]["outputs"][0]["width"], 9);
}

#[tokio::test]
async fn a_missing_port_is_reported_with_the_call_that_has_it() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 100).await;
    let tools = tools_of(&user).await;
    let (canvas, revision, node) = board(&tools).await;
    let arguments = json!({"canvas": canvas, "revision": revision, "recipe": "recipe:product-hero-shot", "inputs": {}});
    let failure = tools.call("recipe_run", arguments).await.fails("unprocessable_entity");
    assert_eq!(failure["error"]["details"]["ports"][0]["key"], "pack", "{failure}");
    let mut again = failure["next"][0]["arguments"].clone();
    assert!(again["inputs"]["pack"].as_str().expect("a hint").starts_with('<'), "{failure}");
    again["inputs"]["pack"] = node;
    tools.ok("recipe_run", again).await;
}

#[tokio::test]
async fn a_price_over_the_balance_is_reported_with_what_fits() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, node) = board(&tools).await;
    let arguments = json!({
        "canvas": canvas, "revision": revision, "mode": "generate", "model": "sketch", "prompt": "a harbor", "count": 4,
    });
    let failure = tools.call("image_generate", arguments.clone()).await.fails("payment_required");
    let price = failure["error"]["details"]["creditCost"].as_i64().expect("a price");
    assert_eq!(
        (&failure["error"]["details"]["balance"], &failure["error"]["details"]["fitting"]),
        (&json!(0), &json!([])),
        "{failure}"
    );
    assert_eq!((&failure["error"]["details"]["missing"], &failure["retry"]["when"]), (&json!(price), &json!("never")));
    assert!(failure["error"]["message"].as_str().expect("a text").contains("operates the service"), "{failure}");
    stack.grant(&user.uid, price / 2).await;
    let failure = tools.call("image_generate", arguments).await.fails("payment_required");
    assert_eq!(failure["error"]["details"]["fitting"][0]["outputsUpTo"], 2, "{failure}");
    assert_eq!(failure["next"][0]["arguments"]["count"], 2, "{failure}");
    let made = tools.ok("image_generate", failure["next"][0]["arguments"].clone()).await;
    assert_eq!(made["creditCost"], price / 2);
    // As many targets as images that can be paid.
    stack.grant(&user.uid, price / 4).await;
    let slot = |id: &str| json!({"type": "node.create", "clientId": id, "node": {"type": "image"}});
    let slots = json!({"canvas": canvas, "revision": made["revision"], "operations": [slot("a"), slot("b")]});
    let slots = tools.ok("canvas_edit", slots).await;
    let mut arguments = json!({
        "canvas": canvas, "revision": slots["revision"], "mode": "generate", "prompt": "a harbor",
        "targets": [slots["created"]["a"], slots["created"]["b"]],
    });
    let failure = tools.call("image_generate", arguments.clone()).await.fails("payment_required");
    assert_eq!(failure["next"][0]["arguments"]["targets"], json!([slots["created"]["a"]]), "{failure}");
    arguments["count"] = json!(2);
    let failure = tools.call("image_generate", arguments).await.fails("payment_required");
    assert_eq!(failure["next"][0]["arguments"]["count"], 1, "{failure}");
    let made = tools.ok("image_generate", failure["next"][0]["arguments"].clone()).await;
    // Three images, of which no model makes all for two thirds of the price.
    stack.grant(&user.uid, price / 2).await;
    let run = json!({
        "canvas": canvas, "revision": made["revision"], "recipe": "recipe:social-trio",
        "inputs": {"visual": node, "message": "It floats"},
    });
    let failure = tools.call("recipe_run", run).await.fails("payment_required");
    assert_eq!((&failure["error"]["details"]["fitting"][0]["outputsUpTo"], &failure["next"]), (&json!(2), &json!([])));
}

#[tokio::test]
async fn eight_images_that_cannot_all_be_paid_are_not_begun() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, _) = board(&tools).await;
    let arguments = json!({
        "canvas": canvas, "revision": revision, "mode": "generate", "model": "sketch", "prompt": "a harbor", "count": 8,
    });
    let failure = tools.call("image_generate", arguments.clone()).await.fails("payment_required");
    let price = failure["error"]["details"]["creditCost"].as_i64().expect("a price");
    assert!(price % 8 == 0 && failure["next"] == json!([]), "{failure}");
    stack.grant(&user.uid, price / 8 * 5).await;
    let failure = tools.call("image_generate", arguments.clone()).await.fails("payment_required");
    let offered = &failure["next"][0]["arguments"];
    assert_eq!((&offered["count"], &offered["asked"]), (&json!(5), &json!(8)), "{failure}");
    assert_eq!(tools.ok("find", json!({"kind": "run"})).await["items"], json!([]), "nothing was started");
    let mut capped = arguments.clone();
    capped["maxCredits"] = json!(price - 1);
    stack.grant(&user.uid, price / 8 * 3).await;
    let failure = tools.call("image_generate", capped).await.fails("payment_required");
    assert_eq!(failure["error"]["details"]["maxCredits"], price - 1, "{failure}");
    let made = tools.ok("image_generate", arguments.clone()).await;
    assert_eq!(tools.ok("status", json!({})).await["credit"], 0);
    // A call that is repeated needs no money.
    let again = tools.ok("image_generate", arguments).await;
    let run = |value: &Value| [value["runs"][0]["run"].clone(), value["runs"][1]["run"].clone()];
    assert_eq!(run(&again), run(&made));
}

#[tokio::test]
async fn a_price_over_the_cap_is_reported() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 1000).await;
    let tools = tools_of(&user).await;
    let (canvas, revision, _) = board(&tools).await;
    let arguments = json!({
        "canvas": canvas, "revision": revision, "mode": "generate", "model": "sketch", "prompt": "a harbor", "maxCredits": 0,
    });
    let failure = tools.call("image_generate", arguments).await.fails("payment_required");
    assert_eq!(
        (&failure["error"]["details"]["maxCredits"], &failure["error"]["details"]["balance"]),
        (&json!(0), &json!(1000))
    );
    assert!(failure["error"]["message"].as_str().expect("a text").contains("higher maxCredits"), "{failure}");
    assert_eq!((&failure["retry"]["when"], &failure["next"]), (&json!("never"), &json!([])), "the cap is the user's");
    assert_eq!(tools.ok("status", json!({})).await["credit"], 1000);
}

#[tokio::test]
async fn a_missing_scope_or_role_is_final() {
    let stack = &Stack::with_workers().await;
    let owner = stack.user().await;
    let tools = tools_of(&owner).await;
    let (canvas, revision, _) = board(&tools).await;
    let operations = json!([{"type": "canvas.update", "title": "New"}]);
    let edit = json!({"canvas": canvas, "revision": revision, "operations": operations});
    let account = stack.account().await;
    let viewer = stack.user_of(&account, "all").await;
    let id = owner.canvas(canvas.as_str().expect("a slug")).await["id"].clone();
    stack.share(&owner, id.as_str().expect("an id"), &account.email, "viewer").await;
    let reader = stack.user_with("canvas:read").await;
    for (user, arguments) in [
        (&viewer, edit),
        (&reader, json!({"canvas": "c", "revision": "r", "operations": [{"type": "canvas.update", "title": "New"}]})),
    ] {
        let failure = tools.with(user).call("canvas_edit", arguments).await.fails("forbidden");
        assert_eq!((&failure["retry"]["when"], &failure["next"]), (&json!("never"), &json!([])), "{failure}");
        assert!(failure["error"]["message"].as_str().expect("a text").contains("a person"), "{failure}");
    }
}

#[tokio::test]
async fn a_name_of_nothing_leads_to_a_search() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    for (tool, arguments, kind) in [
        ("canvas_read", json!({"canvas": "canvas:none"}), "canvas"),
        ("run_wait", json!({"runs": ["run:none"]}), "run"),
        ("describe", json!({"handle": "recipe:none"}), "recipe"),
        ("describe", json!({"handle": "asset:none"}), "asset"),
    ] {
        let failure = tools.call(tool, arguments).await.fails("not_found");
        assert_eq!(
            (&failure["next"][0]["tool"], &failure["next"][0]["arguments"]["kind"]),
            (&json!("find"), &json!(kind)),
            "{failure}"
        );
    }
}

#[tokio::test]
async fn too_many_calls_are_told_when_to_come_back() {
    let stack = Stack::builder().env("CANVAS_RATE_PER_MINUTE", 1).env("CANVAS_RATE_BURST", 3).start().await;
    let user = stack.user().await;
    // The list takes two of the three requests, the message of the call one.
    let tools = tools_of(&user).await;
    let failure = tools.call("status", json!({})).await.fails("rate_limited");
    assert_eq!(failure["retry"]["when"], "after", "{failure}");
    assert!(failure["retry"]["seconds"].as_u64() > Some(30), "{failure}");
    // Then the messages themselves are refused.
    let refused = user.send("/mcp", &json!({})).await;
    assert!(refused.header("retry-after").is_some());
    refused.expect_error(429, "rate_limited", &[]);
}

#[tokio::test]
async fn failed_work_is_reported_with_its_price() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, _) = board(&tools).await;
    let simulator = testkit::providers::Simulator::start(testkit::providers::Vendor::OpenAi).await;
    stack.connect_to(&user.uid, "openai", simulator.url(), testkit::providers::SIMULATOR_KEY).await;
    let arguments = json!({"canvas": canvas, "revision": revision, "mode": "generate", "prompt": "[[sim:content]]"});
    let failure = tools.call("image_generate", arguments.clone()).await.fails("provider_rejected");
    let details = &failure["error"]["details"];
    assert_eq!(
        (&details["charged"], &details["retryable"], &details["outputs"][0]["status"]),
        (&json!(0), &json!(false), &json!("failed"))
    );
    assert_eq!(failure["retry"]["when"], "with_changes");
    assert!(failure["error"]["message"].as_str().expect("a text").contains("new charge"), "{failure}");
    // The same call again is the same record, not another attempt.
    let again = tools.call("image_generate", arguments).await.fails("provider_rejected");
    assert_eq!(again["error"]["details"]["run"], details["run"]);
    // To look at it is no failure.
    let seen = tools.ok("run_wait", json!({"runs": [details["run"]]})).await;
    assert_eq!(seen["runs"][0]["failure"]["code"], "provider_rejected");
}

#[tokio::test]
async fn work_whose_record_has_expired_has_succeeded() {
    let stack = &Stack::builder().image_workers(1).env("CANVAS_RETENTION_FINALIZED_SECONDS", 1).start().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, node) = board(&tools).await;
    let arguments = json!({"canvas": canvas, "revision": revision, "inputs": [node], "steps": [{"action": "rotate", "params": {"degrees": 90}}]});
    let run = tools.ok("action_run", arguments.clone()).await["runs"][0]["run"].clone();
    let expired = testkit::wait_for("the end of the record", e2e::PATIENCE, async || {
        let again = tools.ok("action_run", arguments.clone()).await["runs"][0].clone();
        (again["status"] == "expired").then_some(again)
    })
    .await;
    let seen = tools.ok("run_wait", json!({"runs": [run]})).await["runs"][0].clone();
    for work in [&expired, &seen] {
        assert!(work["run"] == run && work.get("failure").is_none(), "{work}");
        assert!(work["instruction"].as_str().expect("a text").starts_with("It succeeded."), "{work}");
        assert_eq!(work["next"][0]["tool"], "canvas_read", "{work}");
    }
    let waited = stack.shell(&user).run(&["run", "wait", run.as_str().expect("a handle")]).await.expect(0).stdout;
    assert!(waited.contains("expired") && waited.contains("It succeeded."), "{waited}");
}

#[tokio::test]
async fn what_needs_a_person_needs_a_confirmation() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let element =
        tools.ok("element_save", json!({"name": "Calm", "type": "style", "guidelines": "quiet"})).await["element"]
            .clone();
    for confirm in [json!(null), json!(false)] {
        let arguments = json!({"do": "archive", "target": element, "confirm": confirm});
        let failure = tools.call("element_manage", arguments).await.fails("input_validation_error");
        assert_eq!(failure["error"]["fields"][0]["field"], "confirm");
    }
    let facts = tools.ok("describe", json!({"handle": element})).await;
    assert_eq!(facts["facts"]["lifecycle"], "active");
}

#[tokio::test]
async fn a_broken_image_is_refused() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    for data in ["!", "aGVsbG8="] {
        let failure = tools.call("asset_upload", json!({"data": data})).await.fails("input_validation_error");
        assert_eq!(failure["error"]["fields"][0]["field"], "data");
    }
}

#[tokio::test]
async fn an_answer_that_holds_too_much_is_refused() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let canvas = user.make_canvas().await;
    // Parsed, it takes a hundred times the memory of its text.
    let large = json!({"a": vec![json!({"": 0}); 9000]});
    let create = json!({"type": "node.create", "node": {"type": "text", "metadata": {"custom": large}}});
    for _ in 0..3 {
        user.apply(text(&canvas, "/id"), json!(vec![create.clone(); 5])).await;
    }
    let read = json!({"canvas": canvas["handle"], "since": canvas["revision"]});
    tools.call("canvas_read", read).await.fails("unprocessable_entity");
    let read = tools.ok("canvas_read", json!({"canvas": canvas["handle"]})).await;
    assert_ne!(read["revision"], canvas["revision"], "the outline holds no metadata of clients");
}
