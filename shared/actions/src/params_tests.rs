use domain::action::ParameterType;
use serde_json::{Map, Value, json};

use super::*;
use crate::normalize::accept;

fn normalize(params: Value) -> Result<Map<String, Value>, Vec<String>> {
    let action = find("resize").expect("known");
    action
        .normalize(params.as_object().expect("an object"))
        .map_err(|violations| violations.into_iter().map(|violation| violation.field).collect())
}

#[test]
fn defaults_are_filled_in() {
    let filled = json!({"width": 10, "fit": "inside", "anchor": "center", "background": "#00000000", "enlarge": "yes",
                        "format": "auto", "quality": 85});
    assert_eq!(normalize(json!({"width": 10})).map(Value::Object), Ok(filled));
}

#[test]
fn every_wrong_parameter_is_named() {
    let wrong = json!({"width": 0, "height": 16385, "fit": "wide", "background": "red", "quality": 1.5, "depth": 1});
    let mut fields = normalize(wrong).expect_err("all wrong");
    fields.sort();
    assert_eq!(
        fields,
        ["params.background", "params.depth", "params.fit", "params.height", "params.quality", "params.width"]
    );
}

#[test]
fn limits_are_inclusive() {
    for (params, good) in [
        (json!({"width": 1}), true),
        (json!({"width": 0}), false),
        (json!({"height": 16384}), true),
        (json!({"height": 16385}), false),
        (json!({"width": 1, "quality": 100}), true),
        (json!({"width": 1, "quality": 101}), false),
        (json!({"width": 1, "quality": 0}), false),
        (json!({"width": 1, "background": "#FFF"}), true),
        (json!({"width": 1, "background": "#ffff"}), false),
        (json!({}), false),
        (json!({"width": "1"}), false),
        (json!({"width": null}), false),
    ] {
        assert_eq!(normalize(params.clone()).is_ok(), good, "{params}");
    }
}

#[test]
fn every_spelling_of_the_default_color_is_the_default() {
    let action = find("change-aspect-ratio").expect("known");
    let normalized = |more: Value| {
        let mut params = least("change-aspect-ratio");
        params.extend(more.as_object().expect("an object").clone());
        action.normalize(&params).expect("valid")
    };
    for color in ["#fff", "#FFF", "#ffffff", "#FFFFFF", "#ffffffff"] {
        assert_eq!(normalized(json!({"background": color})), normalized(json!({})), "{color}");
    }
    for (color, kept) in [("#F80", "#f80"), ("#fffffffe", "#fffffffe"), ("#FF8800", "#ff8800")] {
        assert_eq!(normalized(json!({"background": color}))["background"], kept);
    }
}

/// The required parameters of an Action, with valid values.
fn least(slug: &str) -> Map<String, Value> {
    let params = match slug {
        "resize" => json!({"width": 1}),
        "crop" => json!({"width": 1, "height": 1}),
        "change-aspect-ratio" => json!({"ratio": "1:1"}),
        "rotate" => json!({"degrees": 0}),
        "add-text-to-image" => json!({"text": "x"}),
        _ => json!({}),
    };
    params.as_object().expect("an object").clone()
}

#[test]
fn the_catalogue_is_well_formed() {
    for action in all() {
        assert_eq!(action.id, format!("action:{}", action.slug));
        assert_eq!(find(&action.slug).map(|found| &found.id), Some(&action.id), "slugs are unique");
        assert!((1..=2).contains(&action.inputs.len()));
        let mut ids: Vec<_> = action.parameters.iter().map(|parameter| &parameter.id).collect();
        assert_eq!(ids[ids.len() - 2..], ["format", "quality"], "every Action has them, last");
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), action.parameters.len(), "{}: ids are unique", action.slug);
        for parameter in &action.parameters {
            let Some(default) = &parameter.default else { continue };
            assert_eq!(accept(parameter, default).as_ref(), Ok(default), "{}.{}", action.slug, parameter.id);
        }
        assert!(action.normalize(&least(&action.slug)).is_ok(), "{}", action.slug);
    }
}

#[test]
fn estimates_grow_with_the_pixels_and_are_at_least_a_second() {
    for action in all() {
        assert_eq!(action.estimated_seconds, 1, "{}: an image of twelve megapixels", action.slug);
        assert_eq!((action.cost.seconds(0, 0), action.cost.seconds(1, 1)), (1, 1));
        // The largest possible result, from an input of equal size.
        let largest = action.cost.seconds(100_000_000, 100_000_000);
        assert!((6..=9).contains(&largest), "{}: {largest}", action.slug);
        assert_eq!(action.cost.seconds(u64::MAX, u64::MAX), i32::MAX);
    }
    let seconds = |slug: &str, read, written| find(slug).expect("known").cost.seconds(read, written);
    // 12 ms for each megapixel read and 51 ms for each megapixel written.
    assert_eq!(seconds("crop", 15_873_015, 15_873_015), 1, "just below 1000 ms");
    assert_eq!(seconds("crop", 15_873_016, 15_873_016), 2, "just above 1000 ms");
    assert!(seconds("rotate", 100_000_000, 100_000_000) > seconds("crop", 100_000_000, 100_000_000));
    assert!(seconds("resize", 100_000_000, 1_000_000) < seconds("resize", 1_000_000, 100_000_000));
}

#[test]
fn every_bound_is_inclusive_and_every_option_is_taken() {
    for action in all() {
        for parameter in &action.parameters {
            let judge = |value: Value| {
                let mut params = least(&action.slug);
                let is_time = value == json!("time");
                params.insert(parameter.id.to_string(), value);
                // Parameters that must be sent together.
                match &*parameter.id {
                    "at" if is_time => drop(params.insert("seconds".into(), json!(0))),
                    "seconds" => drop(params.insert("at".into(), json!("time"))),
                    "x" => drop(params.insert("y".into(), json!(0))),
                    "y" => drop(params.insert("x".into(), json!(0))),
                    _ => {}
                }
                action.normalize(&params).map_err(|wrong| wrong[0].field.clone())
            };
            let named = Err(format!("params.{}", parameter.id));
            let step = if parameter.integer == Some(true) { 1.0 } else { 0.001 };
            for (bound, beyond) in [(parameter.min, -step), (parameter.max, step)] {
                let Some(bound) = bound else { continue };
                assert!(judge(json!(bound)).is_ok(), "{}.{} at {bound}", action.slug, parameter.id);
                assert_eq!(judge(json!(bound + beyond)).map(drop), named, "{}.{}", action.slug, parameter.id);
            }
            for option in &parameter.options {
                assert!(judge(option.value.clone()).is_ok(), "{}.{}", action.slug, parameter.id);
            }
            for wrong in [json!(null), json!(true), json!([]), json!({})] {
                assert_eq!(judge(wrong).map(drop), named, "{}.{}", action.slug, parameter.id);
            }
            if parameter.kind == ParameterType::Number && parameter.integer == Some(true) {
                assert_eq!(judge(json!(1.5)).map(drop), named, "{}.{}", action.slug, parameter.id);
            }
        }
    }
}

#[test]
fn what_is_right_alone_and_wrong_together_is_named() {
    let fields = |slug: &str, params: Value| -> Vec<String> {
        let params = params.as_object().expect("an object").clone();
        let wrong = find(slug).expect("known").normalize(&params).expect_err("wrong");
        wrong.into_iter().map(|violation| violation.field).collect()
    };
    assert_eq!(fields("crop", json!({"width": 1, "height": 1, "x": 0})), ["params.y"]);
    assert_eq!(fields("crop", json!({"width": 1, "height": 1, "y": 0})), ["params.x"]);
    assert_eq!(fields("crop", json!({"y": 0})), ["params.width", "params.height", "params.x"]);
    assert_eq!(fields("change-aspect-ratio", json!({"ratio": "1:0"})), ["params.ratio"]);
    assert_eq!(fields("change-aspect-ratio", json!({"ratio": "16:9:16:9:16:9"})), ["params.ratio"]);
    assert_eq!(fields("change-aspect-ratio", json!({})), ["params.ratio"]);
    assert_eq!(fields("resize", json!({"fit": "cover"})), ["params.width"]);
}

#[test]
fn a_text_is_counted_in_characters() {
    let judge = |text: String| {
        let params = json!({"text": text});
        find("add-text-to-image").expect("known").normalize(params.as_object().expect("an object")).is_ok()
    };
    assert!(judge("😀".repeat(500)) && judge("é".repeat(499)) && judge(String::new()));
    assert!(!judge("a".repeat(501)));
}

#[test]
fn one_number_has_one_spelling() {
    let rotate = |degrees: &str| {
        let params: Value = serde_json::from_str(&format!("{{\"degrees\": {degrees}}}")).expect("JSON");
        find("rotate").expect("known").normalize(params.as_object().expect("an object"))
    };
    assert_eq!(rotate("90"), rotate("90.0"));
    assert_eq!(rotate("90"), rotate("9e1"));
    assert_ne!(rotate("90"), rotate("90.5"));
}
