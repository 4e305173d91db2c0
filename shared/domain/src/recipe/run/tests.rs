use super::*;
use crate::model::ProviderKind;

fn asset(id: &str) -> AssetHandle {
    AssetHandle::try_from(format!("asset:me:{id}")).expect("a handle")
}

fn given(key: &str, held: PortValue) -> RunInput {
    let node = NodeId::parse(&format!("node-{key}")).expect("an id");
    RunInput { key: key.into(), label: format!("The {key}"), kind: InputKind::Text, node, source: None, held }
}

fn step(key: &str, kind: OutputKind, prompt: &str, keys: &[&str]) -> Step {
    Step {
        key: key.into(),
        label: format!("The {key}"),
        kind,
        node: NodeId::parse(&format!("node-{key}")).expect("an id"),
        prompt: prompt.into(),
        input_keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        model: ChosenModel {
            key: "key-of-model".into(),
            id: "sketch".into(),
            name: "Sketch".into(),
            provider: ProviderKind::Managed,
            connection: None,
            credit_cost: 2,
        },
        size: None,
        quality: None,
        estimated_seconds: 3,
    }
}

fn outputs(statuses: &[OutputStatus]) -> Vec<RunOutput> {
    let output = |status: &OutputStatus| RunOutput {
        status: *status,
        job: None,
        asset: None,
        value: None,
        failure: None,
        started_at: None,
        completed_at: None,
    };
    statuses.iter().map(output).collect()
}

/// Two inputs; a text of the first, an image of the text, and a text of the second.
fn plan() -> Plan {
    Plan {
        inputs: vec![
            given("brief", PortValue::Text("{{pack}} & {{copy}}".into())),
            given("pack", PortValue::Asset(asset("a"))),
        ],
        steps: vec![
            step("copy", OutputKind::Text, "Write of {{brief}}", &["brief"]),
            step("hero", OutputKind::Image, "{{copy}} with {{pack}}", &["copy", "pack"]),
            step("note", OutputKind::Text, "Note {{pack}}", &["pack"]),
        ],
    }
}

use OutputStatus::{Canceled, Failed, Pending, Running, Succeeded};

#[test]
fn the_model_of_a_plan_is_that_of_its_images_or_else_of_its_texts() {
    let with = |kinds_and_models: &[(OutputKind, &str)]| {
        let steps = kinds_and_models.iter().map(|(kind, model)| {
            let mut step = step("key", *kind, "prompt", &[]);
            step.model.key = (*model).into();
            step
        });
        let plan = Plan { inputs: Vec::new(), steps: steps.collect() };
        plan.model().map(|model| model.key.clone())
    };
    use OutputKind::{Image, Text};
    for (steps, model) in [
        (&[][..], None),
        (&[(Image, "a")], Some("a")),
        (&[(Text, "t"), (Image, "a"), (Image, "a")], Some("a")),
        (&[(Image, "a"), (Image, "b")], None),
        (&[(Text, "t"), (Text, "t")], Some("t")),
        (&[(Text, "t"), (Text, "u")], None),
    ] {
        assert_eq!(with(steps).as_deref(), model, "{steps:?}");
    }
}

#[test]
fn the_estimate_of_a_plan_is_the_sum_of_its_steps_and_at_least_a_second() {
    assert_eq!(plan().estimated_seconds(), 9);
    assert_eq!(Plan { inputs: Vec::new(), steps: Vec::new() }.estimated_seconds(), 1);
}

#[test]
fn steps_follow_each_other() {
    for (statuses, next) in [
        ([Pending, Pending, Pending], Next::Begin(0)),
        ([Running, Pending, Pending], Next::Follow(0)),
        ([Succeeded, Pending, Pending], Next::Begin(1)),
        ([Succeeded, Running, Pending], Next::Follow(1)),
        ([Succeeded, Succeeded, Succeeded], Next::End),
    ] {
        assert_eq!(plan().next(&outputs(&statuses)), next, "{statuses:?}");
    }
}

#[test]
fn what_depends_on_a_missing_output_is_canceled_and_the_rest_goes_on() {
    for missing in [Failed, Canceled] {
        assert_eq!(plan().next(&outputs(&[missing, Pending, Pending])), Next::Cancel(1));
        assert_eq!(plan().next(&outputs(&[missing, Canceled, Pending])), Next::Begin(2));
        assert_eq!(plan().next(&outputs(&[missing, Canceled, Succeeded])), Next::End);
    }
}

#[test]
fn a_prompt_holds_texts_as_they_are_and_names_images() {
    let mut outputs = outputs(&[Succeeded, Pending, Pending]);
    outputs[0].value = Some("A {{brief}}".into());
    // The value of an input is data, even if it looks like a placeholder.
    assert_eq!(plan().prompt(0, &outputs, 100), "Write of {{pack}} & {{copy}}");
    assert_eq!(plan().prompt(1, &outputs, 100), "A {{brief}} with The pack");
}

#[test]
fn a_prompt_is_cut_at_its_limit_between_two_letters() {
    let mut outputs = outputs(&[Succeeded, Pending, Pending]);
    outputs[0].value = Some("🪁ä🪁".into());
    let whole = "🪁ä🪁 with The pack";
    for (max, cut) in
        [(0, ""), (1, ""), (2, "🪁"), (3, "🪁ä"), (4, "🪁ä"), (5, "🪁ä🪁"), (18, &whole[..23]), (19, whole)]
    {
        assert_eq!(plan().prompt(1, &outputs, max), cut, "{max}");
    }
}

#[test]
fn images_go_along_in_the_order_of_the_input_keys() {
    let mut plan = plan();
    plan.steps[2].input_keys = vec!["hero".into(), "pack".into(), "brief".into()];
    plan.inputs[1].source = Some("node:photo".into());
    let mut outputs = outputs(&[Succeeded, Succeeded, Pending]);
    outputs[1].asset = Some(asset("b"));
    let wanted = [("node:node-hero".to_owned(), asset("b")), ("node:photo".to_owned(), asset("a"))];
    assert_eq!(plan.references(2, &outputs), wanted);
}

#[test]
fn a_run_costs_what_its_steps_cost() {
    assert_eq!(plan().credit_cost(), 6);
}

#[test]
fn a_run_is_named_with_and_without_its_kind() {
    let id = RunId::generate();
    for named in [id.to_string(), id.handle()] {
        assert_eq!(RunId::parse(&named), Some(id), "{named}");
    }
    for wrong in
        ["", "recipe-", "recipe-x", &id.0.to_string(), &format!("run:{}", id.0), &id.to_string().to_uppercase()]
    {
        assert_eq!(RunId::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn a_text_value_has_at_most_24000_characters() {
    assert_eq!(text_value(&"ä".repeat(24_001)).chars().count(), 24_000);
    assert_eq!(text_value("a\0b"), "ab");
}
