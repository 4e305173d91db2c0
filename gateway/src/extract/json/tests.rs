//! Which JSON bodies are accepted and which are rejected.

use serde::Deserialize;

use super::*;
use crate::extract::check::Check;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only its form counts")]
struct Sample {
    #[schema(max_length = 3)]
    name: String,
    #[schema(minimum = 1, maximum = 9)]
    count: Option<u32>,
    #[serde(default)]
    shapes: Vec<Shape>,
    #[serde(default)]
    others: Vec<Shape>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", deny_unknown_fields)]
#[expect(dead_code, reason = "only its form counts")]
enum Shape {
    #[serde(rename = "circle")]
    Circle {
        #[schema(minimum = 1)]
        radius: f64,
    },
    #[serde(rename = "box")]
    Box { width: f64, height: f64 },
}

impl Input for Sample {}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its form counts")]
enum Name {
    Short(String),
    Full(FullName),
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its form counts")]
struct FullName {
    first: String,
    last: u8,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Named {
    #[expect(dead_code, reason = "only its form counts")]
    name: Name,
}

impl Input for Named {}

/// A union as the whole body.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "operation", deny_unknown_fields)]
#[expect(dead_code, reason = "only its form counts")]
enum Change {
    #[serde(rename = "rename")]
    Rename { to: FullName },
    #[serde(rename = "remove")]
    Remove {},
}

impl Input for Change {}

/// The fields that a rejection names.
fn refused<T: std::fmt::Debug>(outcome: Result<T>) -> Vec<String> {
    let refused = match outcome {
        Ok(input) => panic!("accepted {input:?}"),
        Err(Problem::Invalid(violations)) => violations,
        Err(other) => panic!("{other:?}"),
    };
    let mut fields: Vec<String> = refused.into_iter().map(|violation| violation.field).collect();
    fields.sort();
    fields
}

fn judged<T: Input>(value: Value) -> Result<T> {
    judge(value, Ok)
}

fn fields(text: &str) -> Vec<String> {
    refused(parse(text.as_bytes()).and_then(judged::<Sample>))
}

#[test]
fn every_violation_is_told_with_its_path() {
    assert_eq!(fields(r#"{"name": "four", "count": 10, "extra": 1}"#), ["count", "extra", "name"]);
    assert_eq!(fields(r#"{"count": null}"#), ["count", "name"]);
}

#[test]
fn of_several_forms_the_one_that_is_meant_is_judged() {
    assert_eq!(
        fields(
            r#"{"name": "a", "shapes": [{"type": "circle", "radius": 0}, {"type": "box", "width": 1, "depth": 1}]}"#
        ),
        ["shapes[0].radius", "shapes[1].depth", "shapes[1].height"]
    );
    assert_eq!(fields(r#"{"name": "a", "shapes": [{"type": "line"}, {}]}"#), ["shapes[0].type", "shapes[1].type"]);
}

#[test]
fn a_body_may_be_a_union() {
    assert!(judged::<Change>(json!({"operation": "rename", "to": {"first": "a", "last": 1}})).is_ok());
    for (body, fields) in [
        (json!({"operation": "rename", "to": {"last": "b"}}), &["to.first", "to.last"][..]),
        (json!({"operation": "remove", "to": 1}), &["to"]),
        (json!({"operation": "add"}), &["operation"]),
        (json!({}), &["operation"]),
        (json!([]), &[""]),
    ] {
        assert_eq!(refused(judged::<Change>(body)), fields);
    }
}

#[test]
fn of_forms_without_a_tag_the_one_of_the_values_type_is_judged() {
    for (name, fields) in [
        (json!({"first": "a", "last": "b"}), &["name.last"][..]),
        (json!({"first": 1, "last": "b", "middle": 1}), &["name.first", "name.last", "name.middle"]),
        (json!(7), &["name"]),
    ] {
        assert_eq!(refused(judged::<Named>(json!({"name": name}))), fields);
    }
}

#[test]
fn a_fraction_where_a_whole_number_is_meant_is_refused() {
    assert_eq!(fields(r#"{"name": "a", "count": 1.5}"#), ["count"]);
    assert_eq!(fields(r#"{"name": "a", "count": 99999999999999999999}"#), ["count"]);
}

#[test]
fn a_whole_number_may_be_written_with_a_fraction_of_nothing() {
    let parsed = |text: &str| parse(text.as_bytes()).expect("parses");
    assert_eq!(parsed(r#"[1.0, -2.50e1, -0.0, 1.5, 1e300]"#), json!([1, -25, 0, 1.5, 1e300]));
    assert_eq!(parsed(r#"{"custom": {"a": 1.0}}"#).to_string(), r#"{"custom":{"a":1.0}}"#);
    assert!(judged::<Sample>(parsed(r#"{"name": "a", "count": 9.0}"#)).is_ok());
    assert_eq!(fields(r#"{"name": "a", "count": 10.0}"#), ["count"]);
}

#[test]
fn nul_is_refused_wherever_it_stands() {
    assert_eq!(fields(r#"{"name": "a\u0000"}"#), ["name"]);
    assert_eq!(fields(r#"{"name": "a", "shapes": [{"type": "\u0000"}]}"#), ["shapes[0].type"]);
    assert_eq!(fields(r#"{"a\u0000": 1}"#), ["a\u{fffd}", "name"], "together with the other violations, once each");
    assert_eq!(fields(r#"{"name": "four\u0000", "count": 10}"#), ["count", "name"]);
}

/// A body with a rule over two fields, and a field that is ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Span {
    #[schema(maximum = 9)]
    from: u32,
    to: u32,
    #[serde(default, rename = "note")]
    #[schema(value_type = Value, required = false)]
    _note: serde::de::IgnoredAny,
}

impl Input for Span {
    fn ignored(_: &Value) -> &'static [&'static str] {
        &["note"]
    }
}

fn judged_span(value: Value) -> Result<Span> {
    let check = |span: Span| {
        let mut check = Check::default();
        check.note_if(span.to < span.from, "to", "must not be less than from");
        check.finish(|| Some(span))
    };
    judge(value, check)
}

#[test]
fn rules_judge_only_a_body_of_the_right_shape() {
    assert_eq!(refused(judged_span(json!({"from": 3, "to": 1}))), ["to"]);
    assert_eq!(refused(judged_span(json!({"from": 10, "to": 1}))), ["from"]);
    assert_eq!(refused(judged_span(json!({"from": 10}))), ["from", "to"]);
    assert_eq!(refused(judged_span(json!(["a", 1]))), [""]);
}

#[test]
fn a_field_of_the_wrong_type_is_told_once() {
    for from in [json!("x"), json!(9.5), json!(null), json!([10])] {
        let Err(Problem::Invalid(reported)) = judged_span(json!({"from": from, "to": 1})) else { panic!("{from}") };
        assert_eq!(reported.iter().map(|it| it.field.as_str()).collect::<Vec<_>>(), ["from"], "{from}");
    }
}

#[test]
fn a_field_that_does_not_count_is_not_looked_at() {
    for note in [json!(null), json!("\0"), json!({"\0": 1}), json!(vec![0; WIDTH_MAX + 1])] {
        assert!(judged_span(json!({"from": 1, "to": 1, "note": note})).is_ok());
    }
    let wide = json!(vec![0; WIDTH_MAX + 1]);
    assert_eq!(refused(judged_span(json!({"from": wide, "to": 1, "note": 1}))), ["from"]);
}

#[test]
fn a_body_is_nested_at_most_64_levels() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse(nested(64).as_bytes()).is_ok());
    assert!(matches!(parse(nested(65).as_bytes()), Err(Problem::InvalidJson(_))));
    assert!(matches!(parse(nested(100_000).as_bytes()), Err(Problem::InvalidJson(_))));
}

#[test]
fn what_does_not_parse_is_invalid_json() {
    for text in ["", "{", "nul", "{\"a\": 1e999}", "\u{feff}{}", "{} {}"] {
        assert!(matches!(parse(text.as_bytes()), Err(Problem::InvalidJson(_))), "{text:?}");
    }
}

#[test]
fn an_object_or_array_has_at_most_1000_members_or_items_outside_of_custom() {
    let circle = json!({"type": "circle", "radius": 1});
    let mut shapes = vec![circle; WIDTH_MAX];
    shapes[1] = json!({"type": "circle", "radius": 0});
    assert_eq!(refused(judged::<Sample>(json!({"name": "four", "shapes": shapes}))), ["name", "shapes[1].radius"]);
    shapes.push(json!({"type": "line"}));
    let reported = refused(judged::<Sample>(json!({"name": "four", "shapes": shapes})));
    assert_eq!(reported, ["name", "shapes", "shapes[1000].type", "shapes[1].radius"]);
    let found = |value: Value| {
        let mut found = Vec::new();
        find_unfit(&value, false, &mut String::new(), &mut found);
        found.len()
    };
    assert_eq!((found(json!(vec![0; WIDTH_MAX])), found(json!(vec![0; WIDTH_MAX + 1]))), (0, 1));
    assert_eq!(found(json!({"custom": {"wide": vec![0; WIDTH_MAX + 1]}})), 0);
}

#[test]
fn what_is_refused_everywhere_is_counted_up_to_10000() {
    let found = |count: usize| {
        let mut found = Vec::new();
        find_unfit(&json!({"custom": vec!["\0"; count]}), false, &mut String::new(), &mut found);
        found.len()
    };
    assert_eq!((found(9_999), found(10_000), found(10_001)), (9_999, 10_000, 10_000));
}

#[test]
fn the_place_of_a_mistake_is_told_unless_the_body_has_too_many_values() {
    let long = "x".repeat(5_000_000);
    let heavy = json!({"type": "box", "width": "x".repeat(20_000), "height": 1});
    let reported = refused(judged::<Sample>(json!({"name": "four", "shapes": vec![heavy; 500], "extra": long})));
    assert_eq!(reported.len(), 502);
    assert_eq!(reported[..3], ["extra", "name", "shapes[0].width"]);
    let values = |count: usize| refused(judged::<Sample>(json!({"name": vec![vec![0; 999]; count]})));
    assert_eq!((values(131), values(132)), (vec!["name".to_owned()], vec![String::new()]));
}

#[test]
fn a_long_key_is_cut_in_a_path() {
    let key = "k".repeat(300);
    let reported = refused(judged::<Sample>(json!({"name": "a", "shapes": [], &key: 1})));
    assert_eq!(reported, [format!("{}…", "k".repeat(200))]);
}

#[tokio::test]
async fn without_a_credential_a_body_has_at_most_sixteen_kib() {
    let send = async |bytes: usize, principal: Option<Principal>| {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, "application/json".parse().expect("a value"));
        let text = format!("{{\"name\": \"a\"{}}}", " ".repeat(bytes - 13));
        JsonBody { headers, principal, names: None, body: Body::from(text) }.json::<Sample>().await
    };
    for (bytes, fits) in [(16 * 1024 - 1, true), (16 * 1024, true), (16 * 1024 + 1, false)] {
        match send(bytes, None).await {
            Ok(_) => assert!(fits, "{bytes}"),
            Err(problem) => assert!(!fits && matches!(problem, Problem::PayloadTooLarge(16384)), "{bytes}"),
        }
    }
    let key = service::shares::Key::account("a");
    let principal = Principal { key, large_work: crate::admission::large_work(), charges: Default::default() };
    assert!(send(16 * 1024 + 1, Some(principal)).await.is_ok());
}
