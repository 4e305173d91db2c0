//! The rules of a workflow that its schema cannot express (docs/reference/recipes.md#definition-rules).

use domain::Violation;
use domain::recipe::workflow::NewWorkflow;
use domain::recipe::{Category, NewInput, NewOutput, rules};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::CreateWorkflow;
use crate::extract::draft::Check;
use crate::models::malformed_name;

/// Maximum length of a key, in characters.
const KEY_MAX: usize = 80;

impl CreateWorkflow {
    /// Consequences of a malformed field are not reported: while a key is malformed, references to it are not reported as unknown;
    /// without `inputKeys`, the names in the prompt are not reported as missing from it.
    pub fn check(self) -> Result<NewWorkflow, Vec<Violation>> {
        let blank = json!({"key": "", "label": "", "type": "text", "useAsDefault": false});
        let mut inputs: Vec<NewInput> = Vec::new();
        for (at, item) in self.inputs.given().into_iter().flatten().enumerate() {
            let (mut input, unread) = read::<NewInput>(&item, &blank);
            unlike_others(&mut input.key, "input", at);
            // A field with a default was sent, even if malformed.
            let is_answered = input.value.is_some() || input.source_node_id.is_some();
            input.use_as_default &=
                is_answered || !unread.iter().any(|field| matches!(*field, "value" | "sourceNodeId"));
            inputs.push(input);
        }
        let blank = json!({"key": "", "label": "", "type": "text", "prompt": "", "inputKeys": []});
        let mut outputs: Vec<NewOutput> = Vec::new();
        for (at, item) in self.outputs.given().into_iter().flatten().enumerate() {
            let (mut output, _) = read::<NewOutput>(&item, &blank);
            unlike_others(&mut output.key, "output", at);
            if output.input_keys.is_empty() {
                output.prompt.clear();
            }
            outputs.push(output);
        }
        // The schema reports a tag that is not a string.
        let tags: Vec<String> =
            self.tags.given().into_iter().flatten().map(|tag| tag.given().unwrap_or("tag".into())).collect();
        let mut check = Check::default();
        let mut keys = inputs.iter().map(|input| &input.key).chain(outputs.iter().map(|output| &output.key));
        let has_keys = !inputs.is_empty() && keys.all(|key| is_key(key));
        let violations = rules::violations(&inputs, &outputs).into_iter();
        check.extend(violations.filter(|violation| has_keys || !violation.field.contains("].inputKeys[")));
        for (at, output) in outputs.iter().enumerate() {
            let model = output.model.as_deref();
            check.extend(model.and_then(|model| malformed_name(format!("outputs[{at}].model"), model)));
        }
        check.extend(rules::tag_violations(&tags));
        check.finish(|| {
            Some(NewWorkflow {
                name: self.name.given()?,
                description: self.description.given(),
                category: self.category.given().unwrap_or(Category::Product),
                tags,
                inputs,
                outputs,
                idempotency_key: self.idempotency_key.given()?,
                x: self.x.given(),
                y: self.y.given(),
            })
        })
    }
}

fn is_key(text: &str) -> bool {
    text.len() <= KEY_MAX && domain::id::is_plain_id(text)
}

/// Replaces an unreadable key by a text that is not a valid key and differs from all others.
fn unlike_others(key: &mut String, kind: &str, at: usize) {
    if key.is_empty() {
        *key = format!("{kind} {at}");
    }
}

/// Parses an item. Of a malformed one the fields of the right type are read, and the others come from `blank`, which can be parsed;
/// the names of the fields that were not read are returned.
fn read<'a, T: DeserializeOwned>(item: &'a Value, blank: &Value) -> (T, Vec<&'a str>) {
    // An array could be read as a struct, too.
    if let (true, Ok(whole)) = (item.is_object(), T::deserialize(item)) {
        return (whole, Vec::new());
    }
    let (mut read, mut unread) = (blank.clone(), Vec::new());
    // Each field is tried separately, so that a long field is copied at most twice.
    for (field, value) in item.as_object().into_iter().flatten() {
        let mut alone = blank.clone();
        alone[field] = value.clone();
        match T::deserialize(&alone) {
            Ok(_) => read[field] = alone[field].take(),
            Err(_) => unread.push(field.as_str()),
        }
    }
    (T::deserialize(read).expect("what is taken into a blank leaves it readable"), unread)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(more: Value) -> Vec<String> {
        let mut body = json!({
            "name": "w", "idempotencyKey": "12345678",
            "inputs": [{"key": "a", "label": "A", "type": "text", "useAsDefault": false}],
            "outputs": [{"key": "o", "label": "O", "type": "text", "prompt": "{{a}}", "inputKeys": ["a"]}],
        });
        body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        let draft: CreateWorkflow = serde_json::from_value(body).expect("a draft");
        draft.check().err().unwrap_or_default().into_iter().map(|violation| violation.field).collect()
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
    fn what_follows_from_a_malformed_field_alone_is_not_reported() {
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
