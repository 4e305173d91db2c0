//! What no schema can say of a workflow, told of a body as it came: of one with malformed fields, too (decisions 1.2, 13.1).

use domain::Violation;
use domain::recipe::{NewInput, NewOutput, rules};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::extract::json::items;
use crate::models::malformed_name;

/// Longest tag, in characters.
const TAG_MAX: usize = 80;
/// Longest key, in characters.
const KEY_MAX: usize = 80;

/// Every violation of the rules. What follows from a malformed field alone is none: while a key is malformed it is not told
/// that nobody has it, and without `inputKeys` not what of the prompt is missing among them.
pub fn violations(body: &Value) -> Vec<Violation> {
    let input = json!({"key": "", "label": "", "type": "text", "useAsDefault": false});
    let output = json!({"key": "", "label": "", "type": "text", "prompt": "", "inputKeys": []});
    let mut inputs: Vec<NewInput> = items(&body["inputs"]).iter().map(|item| readable(item, &input)).collect();
    let mut outputs: Vec<NewOutput> = items(&body["outputs"]).iter().map(|item| readable(item, &output)).collect();
    for (at, (input, item)) in inputs.iter_mut().zip(items(&body["inputs"])).enumerate() {
        unlike_others(&mut input.key, "input", at);
        let is_given = |field: &str| !item[field].is_null();
        // What it takes as default was sent, if perhaps not as it should be.
        let is_answered = input.value.is_some() || input.source_node_id.is_some();
        input.use_as_default &= is_answered || !(is_given("value") || is_given("sourceNodeId"));
    }
    for (at, output) in outputs.iter_mut().enumerate() {
        unlike_others(&mut output.key, "output", at);
        if output.input_keys.is_empty() {
            output.prompt.clear();
        }
    }
    let mut keys = inputs.iter().map(|input| &input.key).chain(outputs.iter().map(|output| &output.key));
    let has_keys = !inputs.is_empty() && keys.all(|key| is_key(key));
    let mut violations = rules::violations(&inputs, &outputs);
    violations.retain(|violation| has_keys || !violation.field.contains("].inputKeys["));
    let outputs = items(&body["outputs"]).iter().enumerate();
    violations.extend(outputs.filter_map(|(at, item)| malformed_name(&format!("outputs[{at}].model"), &item["model"])));
    // Of a tag that is no text the schema speaks.
    let tags = items(&body["tags"]).iter().map(|tag| tag.as_str().unwrap_or("tag").to_owned());
    violations.extend(blank_or_long_tags(&tags.collect::<Vec<_>>()));
    violations
}

/// Tags are words of 1 to 80 characters.
pub fn blank_or_long_tags(tags: &[String]) -> Vec<Violation> {
    let is_tag = |tag: &String| (1..=TAG_MAX).contains(&tag.chars().count());
    let wrong = tags.iter().enumerate().filter(|(_, tag)| !is_tag(tag));
    wrong.map(|(at, _)| Violation::new(format!("tags[{at}]"), format!("must have 1 to {TAG_MAX} characters"))).collect()
}

fn is_key(text: &str) -> bool {
    text.len() <= KEY_MAX && domain::id::is_plain_id(text)
}

/// In place of a key that could not be read, one that is no key and nobody else's.
fn unlike_others(key: &mut String, kind: &str, at: usize) {
    if key.is_empty() {
        *key = format!("{kind} {at}");
    }
}

/// An item as far as its fields are of their types; the others as in `blank`, which can be read.
fn readable<T: DeserializeOwned>(item: &Value, blank: &Value) -> T {
    let mut read = blank.clone();
    // Each field is tried alone, so that a long one is copied twice and not as often as there are others.
    for (field, value) in item.as_object().into_iter().flatten() {
        let mut alone = blank.clone();
        alone[field] = value.clone();
        if T::deserialize(&alone).is_ok() {
            read[field] = alone[field].take();
        }
    }
    T::deserialize(read).expect("what is taken into a blank leaves it readable")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(more: Value) -> Vec<String> {
        let mut body = json!({
            "inputs": [{"key": "a", "label": "A", "type": "text", "useAsDefault": false}],
            "outputs": [{"key": "o", "label": "O", "type": "text", "prompt": "{{a}}", "inputKeys": ["a"]}],
        });
        body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        violations(&body).into_iter().map(|violation| violation.field).collect()
    }

    fn output(more: Value) -> Value {
        let mut output = json!({"key": "o", "label": "O", "type": "text", "prompt": "{{x}}", "inputKeys": ["y"]});
        output.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        json!({ "outputs": [output] })
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn what_is_right_passes() {
        assert_eq!(fields(json!({})), NONE);
    }

    #[test]
    fn an_item_with_malformed_fields_is_judged_by_its_others() {
        let wrong = ["outputs[0].inputKeys[0]", "outputs[0].prompt"];
        for malformed in
            [json!({}), json!({"label": 7}), json!({"type": "video"}), json!({"size": null}), json!({"more": 1})]
        {
            assert_eq!(fields(output(malformed.clone())), wrong, "{malformed}");
        }
        let input = json!([{"key": "a", "type": "image", "value": "a text", "useAsDefault": "yes"}, 7]);
        assert_eq!(fields(json!({ "inputs": input })), ["inputs[0].value"]);
    }

    #[test]
    fn a_model_is_an_id_or_a_whole_handle() {
        let right = json!({"prompt": "{{a}}", "inputKeys": ["a"]});
        let with = |model: &str| {
            let mut body = output(right.clone());
            body["outputs"][0]["model"] = json!(model);
            fields(body)
        };
        for named in ["outline", "", "model:a_handle-of-9"] {
            assert_eq!(with(named), NONE, "{named}");
        }
        for malformed in ["model:", "model:short", "model:not/a/key"] {
            assert_eq!(with(malformed), ["outputs[0].model"], "{malformed}");
        }
    }

    #[test]
    fn what_follows_from_a_malformed_field_alone_is_not_told() {
        for input in [json!({"label": "A"}), json!({"key": "a b"}), json!({"key": "k".repeat(81)}), json!("a")] {
            assert_eq!(fields(json!({ "inputs": [input] })), NONE);
        }
        for inputs in [json!([]), json!("a"), json!(null)] {
            assert_eq!(fields(json!({ "inputs": inputs })), NONE);
        }
        for keys in [json!([]), json!("a"), json!([7])] {
            assert_eq!(fields(output(json!({ "inputKeys": keys }))), NONE);
        }
    }

    #[test]
    fn items_that_cannot_be_read_are_not_taken_for_each_other() {
        assert_eq!(fields(json!({"inputs": [7, 7]})), NONE);
        assert_eq!(fields(json!({"outputs": [7, 7]})), NONE);
        let mistyped = json!([{"key": "a", "label": "A", "type": "text", "useAsDefault": true, "value": 7}]);
        assert_eq!(fields(json!({ "inputs": mistyped })), NONE);
    }

    #[test]
    fn the_largest_body_is_judged_at_once() {
        let many: serde_json::Map<_, _> = (0..999).map(|at| (format!("f{at}"), json!(at))).collect();
        let mut item = json!({"key": "a", "label": "A", "type": "text", "useAsDefault": false, "description": "x".repeat(1 << 19)});
        item.as_object_mut().expect("an object").extend(many);
        assert_eq!(fields(json!({ "inputs": [item] })), NONE);
        let prompt = "{{zz}}".repeat(80_000) + &"}}".repeat(200_000);
        let keys: Vec<_> = (0..1000).map(|at| format!("k{at}")).collect();
        let found = fields(output(json!({"prompt": prompt, "inputKeys": keys})));
        assert_eq!(found.iter().filter(|field| *field == "outputs[0].prompt").count(), 1);
    }

    #[test]
    fn tags_are_words_of_at_most_80_characters() {
        let tags = json!(["a", "", "ä".repeat(80), "ä".repeat(81), 7]);
        assert_eq!(fields(json!({ "tags": tags })), ["tags[1]", "tags[3]"]);
    }
}
