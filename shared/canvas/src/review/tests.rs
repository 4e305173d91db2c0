//! Reviews of findings, outputs and lineage.

use domain::graph::{Connection, Node, NodeType, Purpose, Role};
use domain::review::{FindingCode, Origin, StoredAsset, StoredAssets};
use serde_json::{Value, json};

use super::*;
use crate::fixture::{agents, asset, at, connection, graph, image, made, section, text, video, with_job, working};

fn stored(names: &[(&str, Origin)]) -> StoredAssets {
    // A ratio at which no card crops them.
    let stored = |origin| StoredAsset { origin, size: (400.0, 100.0), has_sources: None };
    names.iter().map(|(name, origin)| (asset(name), stored(*origin))).collect()
}

fn review(nodes: Vec<Node>, connections: Vec<Connection>, assets: &StoredAssets) -> CompletionReview {
    validate(&graph(nodes, connections), &Touched::default(), assets, &[]).completion_review
}

fn showing(name: &str, shown: &str, x: f64) -> Node {
    Node { asset: Some(asset(shown)), ..at(image(name), x, 0.0) }
}

fn handles(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("node:{name}")).collect()
}

#[test]
fn advice_asks_for_a_look_and_leaves_the_claim() {
    let cropped = Node { width: 320.0, height: 268.0, ..agents(showing("a", "p", 0.0)) };
    let assets = StoredAssets::from([(
        asset("p"),
        StoredAsset { origin: Origin::Brought, size: (350.0, 240.0), has_sources: None },
    )]);
    let review = review(vec![cropped], vec![], &assets);
    assert_eq!((review.status, review.done_claim_allowed), (ReviewStatus::NeedsReview, true));
    assert_eq!(review.instruction, "The work may be called done; ask the user to look at what needs review.");
    assert_eq!(review.advisory_finding_codes, [FindingCode::PictureCropped]);
    assert!(review.blocking_finding_codes.is_empty());
    for group in [&review.overlap, &review.containment, &review.reference_lineage] {
        assert_eq!((group.status, group.finding_codes.len()), (GroupStatus::Clear, 0));
    }
}

#[test]
fn a_cut_text_of_an_agent_holds_the_claim_and_one_of_the_user_does_not() {
    let mut cut = text("t");
    cut.metadata.content = Some("word\n".repeat(9));
    let users = review(vec![cut.clone()], vec![], &StoredAssets::new());
    assert_eq!((users.status, users.done_claim_allowed), (ReviewStatus::Ready, true));
    assert_eq!(users.advisory_finding_codes, [FindingCode::TextTruncated]);
    let agents = review(vec![agents(cut)], vec![], &StoredAssets::new());
    assert_eq!((agents.status, agents.done_claim_allowed), (ReviewStatus::NeedsReview, false));
    assert_eq!(agents.containment.status, GroupStatus::NeedsReview);
    assert_eq!(agents.instruction, "Do not call the work done: resolve text_truncated (1), then validate again.");
}

#[test]
fn an_instruction_names_three_codes_with_their_counts() {
    let cut = |name: &str, y: f64| {
        let mut node = agents(at(text(name), 5000.0, y));
        node.metadata.content = Some("word\n".repeat(9));
        node
    };
    let pair = |name: &str, x: f64| {
        [agents(at(text(&format!("{name}1")), x, 0.0)), at(text(&format!("{name}2")), x + 325.0, 7.0)]
    };
    let over = [agents(at(text("o"), 0.0, 2000.0)), at(text("p"), 9.0, 2000.0)];
    let staggered = [agents(at(section("s"), 0.0, 5000.0)), at(section("t"), 280.0, 5030.0)];
    let nodes = [pair("a", 0.0), pair("b", 1000.0), over, staggered, [cut("c", 0.0), cut("d", 900.0)]].concat();
    let review = review(nodes, vec![], &StoredAssets::new());
    assert_eq!(
        review.instruction,
        "Do not call the work done: resolve agent_overlap (1), frames_touch (2), sections_staggered (1) and others, then \
         validate again."
    );
}

#[test]
fn an_empty_slot_of_an_agent_is_an_output_that_is_not_delivered() {
    for (is_agents, is_placeholder, is_output) in [(true, false, true), (true, true, false), (false, false, false)] {
        for mut node in [image("n"), video("n")] {
            node.agent_owned = is_agents;
            node.metadata.placeholder = is_placeholder.then_some(true);
            let review = review(vec![node], vec![], &StoredAssets::new());
            let expected = if is_output { handles(&["n"]) } else { vec![] };
            assert_eq!((&review.outputs.handles, &review.delivery.non_durable_output_handles), (&expected, &expected));
            assert_eq!(review.done_claim_allowed, !is_output);
        }
    }
}

#[test]
fn an_empty_canvas_is_ready() {
    let validation = validate(&graph(vec![], vec![]), &Touched::default(), &StoredAssets::new(), &[]);
    assert_eq!((validation.status, validation.findings.len(), validation.truncated), (ValidationStatus::Ok, 0, false));
    let review = validation.completion_review;
    assert_eq!((review.status, review.done_claim_allowed), (ReviewStatus::Ready, true));
    assert_eq!(review.outputs, domain::review::Outputs::default());
    assert_eq!(review.product_fidelity.status, FidelityStatus::NotApplicable);
    assert_eq!(review.delivery.status, DeliveryClearance::Clear);
}

#[test]
fn findings_come_to_a_status_by_severity_and_to_a_claim_by_ownership() {
    let pair = |is_agents: bool| vec![Node { agent_owned: is_agents, ..text("a") }, text("b")];
    let validated = |nodes, touched: &Touched| validate(&graph(nodes, vec![]), touched, &StoredAssets::new(), &[]);
    let nothing = Touched::default();
    let infos = validated(pair(false), &nothing);
    assert_eq!((infos.status, infos.completion_review.status), (ValidationStatus::Advisory, ReviewStatus::Ready));
    assert!(infos.completion_review.done_claim_allowed);
    assert_eq!(infos.completion_review.overlap.status, GroupStatus::Clear);
    assert_eq!(infos.completion_review.overlap.node_handles, handles(&["a", "b"]));
    let warnings = validated(pair(true), &nothing);
    assert_eq!(
        (warnings.status, warnings.completion_review.status),
        (ValidationStatus::Advisory, ReviewStatus::NeedsReview)
    );
    assert!(!warnings.completion_review.done_claim_allowed);
    assert_eq!(warnings.completion_review.overlap.status, GroupStatus::NeedsReview);
    assert_eq!(warnings.completion_review.advisory_finding_codes, [domain::review::FindingCode::AgentOverlap]);
    let placed = Touched { placed: [crate::fixture::id("a")].into(), ..Touched::default() };
    let errors = validated(pair(true), &placed);
    assert!(errors.is_blocked());
    let review = errors.completion_review;
    assert_eq!((review.status, review.overlap.status), (ReviewStatus::Blocked, GroupStatus::Blocked));
    assert_eq!((review.containment.status, review.reference_lineage.status), (GroupStatus::Clear, GroupStatus::Clear));
    assert_eq!(review.blocking_finding_codes, [domain::review::FindingCode::AgentOverlap]);
    assert!(review.advisory_finding_codes.is_empty());
}

#[test]
fn a_stand_in_needs_review_and_is_no_obstacle() {
    let mut node = made(agents(showing("a", "p", 0.0)), "generated", json!([]));
    node.server.provenance.as_mut().expect("is made").stand_in = Some(true);
    let validation = validate(&graph(vec![node], vec![]), &Touched::default(), &stored(&[("p", Origin::Job)]), &[]);
    let review = validation.completion_review;
    assert_eq!((validation.status, review.status), (ValidationStatus::Advisory, ReviewStatus::NeedsReview));
    assert!(review.done_claim_allowed);
    assert_eq!(review.advisory_finding_codes, [domain::review::FindingCode::StandInOutput]);
    for group in [&review.overlap, &review.containment, &review.reference_lineage] {
        assert_eq!((group.status, group.finding_codes.len()), (GroupStatus::Clear, 0));
    }
}

#[test]
fn each_group_holds_its_own_codes_once() {
    let nodes = vec![
        Node { width: 100.0, height: 100.0, ..section("s") },
        agents(crate::fixture::member(text("m"), "s")),
        agents(at(image("i"), 5000.0, 0.0)),
        agents(at(video("v"), 9000.0, 0.0)),
        agents(at(image("j"), 9000.0, 0.0)),
    ];
    let links = vec![connection("c", "i", "v", Purpose::FirstFrame), connection("d", "i", "v", Purpose::Reference)];
    let review = review(nodes, links, &StoredAssets::new());
    let codes = |group: &GroupReview| group.finding_codes.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(codes(&review.overlap), ["agent_overlap"]);
    assert_eq!(review.overlap.node_handles, handles(&["v", "j"]));
    assert_eq!(
        (codes(&review.containment), &review.containment.node_handles),
        (vec!["section_overflow".to_owned()], &handles(&["m", "s"]))
    );
    assert_eq!(codes(&review.reference_lineage), ["reference_source_empty"]);
    assert_eq!(review.reference_lineage.node_handles, handles(&["i", "v"]));
    assert_eq!(review.reference_lineage.connection_handles, ["connection:c", "connection:d"]);
}

#[test]
fn outputs_are_what_work_targeted_or_filled() {
    let nodes = vec![
        at(image("slot"), 0.0, 5000.0),
        showing("upload", "u", 1000.0),
        with_job(showing("done", "d", 2000.0), "succeeded"),
        with_job(working(at(image("busy"), 3000.0, 0.0)), "running"),
        with_job(at(image("failed"), 4000.0, 0.0), "failed"),
        with_job(at(image("canceled"), 5000.0, 0.0), "canceled"),
        with_job(showing("kept", "k", 6000.0), "failed"),
        with_job(showing("lost", "gone", 7000.0), "succeeded"),
        made(showing("made", "m", 8000.0), "action", json!([])),
        made(showing("brought", "b", 9000.0), "upload", json!([])),
    ];
    let all = ["u", "d", "k", "m", "b"].map(|name| (name, Origin::Job));
    let review = review(nodes, vec![], &stored(&all));
    let outputs = &review.outputs;
    assert_eq!(outputs.handles, handles(&["done", "busy", "failed", "canceled", "kept", "lost", "made"]));
    assert_eq!((outputs.count, outputs.durable_count, outputs.pending_count, outputs.failed_count), (7, 3, 1, 2));
    let delivery = &review.delivery;
    assert_eq!(delivery.status, DeliveryClearance::Blocked);
    assert_eq!(delivery.pending_output_handles, handles(&["busy"]));
    assert_eq!(delivery.failed_output_handles, handles(&["failed", "canceled"]));
    assert_eq!(delivery.non_durable_output_handles, handles(&["lost"]));
    assert_eq!((review.status, review.done_claim_allowed), (ReviewStatus::Blocked, false));
}

#[test]
fn one_output_that_is_not_there_blocks_delivery() {
    let only = |node: Node| review(vec![node], vec![], &stored(&[("x", Origin::Job)]));
    assert!(only(with_job(showing("n", "x", 0.0), "succeeded")).done_claim_allowed);
    for node in [
        working(showing("n", "x", 0.0)),
        with_job(image("n"), "failed"),
        with_job(showing("n", "gone", 0.0), "succeeded"),
        working(text("n")),
    ] {
        let review = only(node);
        assert_eq!((review.status, review.done_claim_allowed), (ReviewStatus::Blocked, false));
        assert_eq!(review.delivery.reasons.len(), 1);
    }
}

#[test]
fn a_text_that_work_wrote_is_an_output() {
    let mut written = with_job(text("t"), "succeeded");
    written.server.content = Some("words".into());
    // A client may have made it a sticky.
    for kind in [NodeType::Text, NodeType::Sticky] {
        written.kind = kind;
        let written = review(vec![written.clone()], vec![], &StoredAssets::new());
        assert_eq!((written.outputs.count, written.outputs.durable_count), (1, 1), "{kind:?}");
        let empty = Node { kind, ..with_job(text("t"), "canceled") };
        let outputs = review(vec![empty], vec![], &StoredAssets::new()).outputs;
        assert_eq!((outputs.count, outputs.failed_count), (1, 1), "{kind:?}");
    }
}

#[test]
fn an_output_whose_node_is_gone_says_so() {
    let detached = [("gone", Some(asset("made"))), ("erased", None)];
    let detached = detached.map(|(node, asset)| DetachedOutput { node: crate::fixture::id(node), asset });
    let review = review_of_end(vec![], vec![], &StoredAssets::new(), &detached);
    assert_eq!((review.status, review.done_claim_allowed), (ReviewStatus::Blocked, false));
    assert_eq!(review.delivery.non_durable_output_handles, handles(&["gone", "erased"]));
    assert!(review.delivery.reasons[1].contains("node:erased was deleted"), "{:?}", review.delivery.reasons);
    assert!(review.delivery.reasons[0].contains("node:gone was deleted"), "{:?}", review.delivery.reasons);
    assert!(review.delivery.reasons[0].contains("asset:me:made"));
    assert_eq!((review.outputs.count, review.outputs.durable_count), (2, 0));
}

/// The review of an empty canvas with this work.
fn owing(work: OwingWork) -> CompletionReview {
    validate(&graph(vec![], vec![]), &Touched::default(), &StoredAssets::new(), &[work]).completion_review
}

fn work(is_active: bool, made: u32, owed: u32, given_up: u32) -> OwingWork {
    OwingWork { handle: "run:r".into(), is_active, made, owed, given_up }
}

#[test]
fn work_that_owes_outputs_is_an_output_that_is_pending_or_has_failed() {
    let run = vec!["run:r".to_owned()];
    let active = owing(work(true, 4, 2, 0));
    assert_eq!((&active.outputs.handles, &active.delivery.pending_output_handles), (&run, &run));
    assert_eq!((active.outputs.count, active.outputs.pending_count, active.outputs.failed_count), (1, 1, 0));
    let ended = owing(work(false, 4, 2, 0));
    assert_eq!((&ended.outputs.handles, &ended.delivery.failed_output_handles), (&run, &run));
    assert_eq!((ended.outputs.count, ended.outputs.pending_count, ended.outputs.failed_count), (1, 0, 1));
    assert_eq!(ended.delivery.reasons, ["run:r has 4 of 6 outputs"]);
    for review in [active, ended] {
        assert_eq!((review.status, review.done_claim_allowed), (ReviewStatus::Blocked, false));
    }
}

#[test]
fn outputs_that_were_given_up_are_told_and_hold_nothing() {
    let review = owing(work(false, 4, 0, 2));
    assert_eq!((review.status, review.done_claim_allowed), (ReviewStatus::NeedsReview, true));
    assert_eq!((review.outputs.count, review.delivery.status), (0, DeliveryClearance::Clear));
    assert_eq!(review.delivery.reasons, ["2 outputs of run:r were given up"]);
    assert!(review.instruction.contains("tell the user"), "{}", review.instruction);
    let again = owing(work(false, 4, 1, 1));
    assert_eq!((again.status, again.done_claim_allowed), (ReviewStatus::Blocked, false));
    assert_eq!(again.delivery.reasons, ["run:r has 4 of 5 outputs", "1 output of run:r was given up"]);
}

mod fidelity {
    use super::*;

    /// A product image that a reference of the canvas uses as `role`.
    fn product(role: Role) -> (Vec<Node>, Vec<Connection>) {
        let link = Connection { role: Some(role), ..connection("c", "product", "shot", Purpose::Reference) };
        (vec![showing("product", "p", 0.0), at(image("shot"), 1000.0, 0.0)], vec![link])
    }

    fn judged(more: Vec<Node>, role: Role) -> domain::review::ProductFidelity {
        let (nodes, links) = product(role);
        let assets = stored(&[
            ("p", Origin::Brought),
            ("q", Origin::Brought),
            ("m1", Origin::Job),
            ("m2", Origin::Job),
            ("m3", Origin::Job),
        ]);
        review([nodes, more].concat(), links, &assets).product_fidelity
    }

    fn action(name: &str, shown: &str, x: f64, sources: Value) -> Node {
        made(showing(name, shown, x), "action", sources)
    }

    #[test]
    fn only_product_roles_count() {
        let resized = || vec![action("o", "m1", 2000.0, json!([{"handle": "node:product"}]))];
        for role in [Role::Identity, Role::Construction, Role::Texture, Role::Fit] {
            let fidelity = judged(resized(), role);
            assert_eq!((fidelity.status, fidelity.reviewed_output_count), (FidelityStatus::Passed, 1), "{role}");
            assert_eq!(fidelity.reasons.len(), 1);
        }
        assert_eq!(judged(resized(), Role::Style).status, FidelityStatus::NotApplicable);
        assert_eq!(judged(vec![], Role::Fit).status, FidelityStatus::NotApplicable);
    }

    #[test]
    fn an_action_of_what_is_no_product_does_not_count() {
        let other = vec![action("o", "m1", 2000.0, json!([{"handle": "asset:me:q"}]))];
        assert_eq!(judged(other, Role::Fit).status, FidelityStatus::NotApplicable);
    }

    #[test]
    fn a_chain_of_actions_keeps_to_its_beginning() {
        let chain = vec![
            action("last", "m2", 3000.0, json!([{"handle": "node:first"}])),
            action("first", "m1", 2000.0, json!([{"handle": "asset:me:p"}])),
        ];
        let fidelity = judged(chain, Role::Identity);
        assert_eq!((fidelity.status, fidelity.reviewed_output_count), (FidelityStatus::Passed, 2));
    }

    #[test]
    fn what_was_generated_after_a_product_needs_review_and_so_does_what_actions_make_of_it() {
        let nodes = vec![
            made(showing("shot1", "m1", 2000.0), "generated", json!([{"handle": "node:product", "role": "identity"}])),
            action("resized", "m2", 3000.0, json!([{"handle": "asset:me:m1"}])),
            action("pixels", "m3", 4000.0, json!([{"handle": "asset:me:p"}])),
        ];
        // The generation itself makes its source a product, whatever the connections are.
        let fidelity = judged(nodes, Role::Style);
        assert_eq!(fidelity.status, FidelityStatus::NeedsReview);
        assert_eq!(fidelity.needs_review_output_handles, handles(&["shot1", "resized"]));
        assert_eq!((fidelity.reviewed_output_count, fidelity.evidence_missing_output_handles.len()), (1, 0));
        assert_eq!(fidelity.reasons.len(), 3);
    }

    #[test]
    fn a_generation_in_style_alone_needs_none() {
        let nodes = vec![
            made(showing("o", "m1", 2000.0), "generated", json!([{"handle": "node:product", "role": "style"}])),
            action("resized", "m2", 3000.0, json!([{"handle": "node:o"}])),
        ];
        assert_eq!(judged(nodes, Role::Fit).status, FidelityStatus::NotApplicable);
    }

    #[test]
    fn what_cannot_be_determined_needs_review() {
        let nodes = vec![
            action("orphan", "m1", 2000.0, json!([{"handle": "node:gone"}])),
            // Each was made from the other: one of them was filled again later.
            action("x", "m2", 3000.0, json!([{"handle": "node:y"}])),
            action("y", "m3", 4000.0, json!([{"handle": "node:x"}])),
        ];
        let fidelity = judged(nodes, Role::Fit);
        assert_eq!(fidelity.evidence_missing_output_handles, handles(&["orphan", "x", "y"]));
        assert_eq!(fidelity.status, FidelityStatus::NeedsReview);
    }

    #[test]
    fn a_needed_look_asks_for_review_and_keeps_no_claim_back() {
        let nodes =
            vec![made(showing("o", "m1", 2000.0), "generated", json!([{"handle": "asset:me:p", "role": "fit"}]))];
        let review = review(nodes, vec![], &stored(&[("p", Origin::Brought), ("m1", Origin::Job)]));
        assert_eq!((review.status, review.done_claim_allowed), (ReviewStatus::NeedsReview, true));
    }
}
