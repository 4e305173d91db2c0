//! What is read and what is refused of a JSON body.

use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only its form counts")]
struct Sample {
    #[schema(max_length = 3)]
    name: String,
    #[schema(minimum = 1, maximum = 9, nullable = false)]
    count: Option<u32>,
    #[serde(default)]
    shapes: Vec<Shape>,
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

/// What a refusal names.
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

fn fields(text: &str) -> Vec<String> {
    refused(parse(text.as_bytes()).and_then(validate::<Sample>))
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
fn of_forms_without_a_tag_the_one_of_the_values_type_is_judged() {
    for (name, fields) in [
        (json!({"first": "a", "last": "b"}), &["name.last"][..]),
        (json!({"first": 1, "last": "b", "middle": 1}), &["name.first", "name.last", "name.middle"]),
        (json!(7), &["name"]),
    ] {
        assert_eq!(refused(validate::<Named>(json!({"name": name}))), fields);
    }
}

#[test]
fn rules_speak_of_what_the_schema_has_not_refused() {
    let rules = |_: &Value| vec![Violation::new("count", "too many"), Violation::new("shapes", "too few")];
    assert_eq!(refused(validate_by::<Sample, _>(json!({"name": "a", "count": 1}), rules)), ["count", "shapes"]);
    let told = refused(validate_by::<Sample, _>(json!({"name": 1, "count": 10}), rules));
    assert_eq!(told, ["count", "name", "shapes"], "once each");
    assert_eq!(refused(validate_by::<Sample, _>(json!([]), rules)), [""], "what is no object has no fields");
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
    assert!(validate::<Sample>(parsed(r#"{"name": "a", "count": 9.0}"#)).is_ok());
    assert_eq!(fields(r#"{"name": "a", "count": 10.0}"#), ["count"]);
}

#[test]
fn nul_is_refused_wherever_it_stands() {
    assert_eq!(fields(r#"{"name": "a\u0000"}"#), ["name"]);
    assert_eq!(fields(r#"{"name": "a", "shapes": [{"type": "\u0000"}]}"#), ["shapes[0].type"]);
    assert_eq!(fields(r#"{"a\u0000": 1}"#), ["a\u{fffd}", "name"], "with what else is wrong, once each");
    assert_eq!(fields(r#"{"name": "four\u0000", "count": 10}"#), ["count", "name"]);
}

/// What has a rule over two fields, and a field that does not count.
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
    const IGNORED: &[&str] = &["note"];

    fn check(&self) -> Vec<Violation> {
        if self.to < self.from { vec![Violation::new("to", "must not be less than from")] } else { Vec::new() }
    }
}

#[test]
fn rules_are_asked_of_a_refused_body_that_can_be_read() {
    assert_eq!(refused(validate::<Span>(json!({"from": 3, "to": 1}))), ["to"]);
    assert_eq!(refused(validate::<Span>(json!({"from": 10, "to": 1}))), ["from", "to"]);
    assert_eq!(refused(validate::<Span>(json!({"from": 10}))), ["from", "to"]);
}

#[test]
fn a_field_of_the_wrong_type_is_told_once() {
    for from in [json!("x"), json!(9.5), json!(null), json!([10])] {
        let Err(Problem::Invalid(told)) = validate::<Span>(json!({"from": from, "to": 1})) else { panic!("{from}") };
        assert_eq!(told.iter().map(|it| it.field.as_str()).collect::<Vec<_>>(), ["from"], "{from}");
    }
}

#[test]
fn a_field_that_does_not_count_is_not_looked_at() {
    for note in [json!(null), json!("\0"), json!({"\0": 1}), json!(vec![0; WIDTH_MAX + 1])] {
        assert!(validate::<Span>(json!({"from": 1, "to": 1, "note": note})).is_ok());
    }
    let wide = json!(vec![0; WIDTH_MAX + 1]);
    assert_eq!(refused(validate::<Span>(json!({"from": wide, "to": 1, "note": 1}))), ["from"]);
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
