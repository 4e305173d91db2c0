//! The rules of a workflow that its schema cannot express (docs/reference/recipes.md#definition-rules).

use domain::Violation;
use domain::recipe::rules;
use domain::recipe::workflow::NewWorkflow;

use crate::extract::check::Check;
use crate::models::malformed_name;

/// The workflow, if it breaks no rule.
pub fn check(workflow: NewWorkflow) -> Result<NewWorkflow, Vec<Violation>> {
    let mut check = Check::default();
    check.extend(rules::violations(&workflow.inputs, &workflow.outputs));
    for (at, output) in workflow.outputs.iter().enumerate() {
        let model = output.model.as_deref();
        check.extend(model.and_then(|model| malformed_name(format!("outputs[{at}].model"), model)));
    }
    check.extend(rules::tag_violations(&workflow.tags));
    check.finish(|| Some(workflow))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fields(more: Value) -> Vec<String> {
        let mut body = json!({
            "name": "w", "idempotencyKey": "12345678",
            "inputs": [{"key": "a", "label": "A", "type": "text", "useAsDefault": false}],
            "outputs": [{"key": "o", "label": "O", "type": "text", "prompt": "{{a}}", "inputKeys": ["a"]}],
        });
        body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        let workflow: NewWorkflow = serde_json::from_value(body).expect("has the right shape");
        check(workflow).err().unwrap_or_default().into_iter().map(|violation| violation.field).collect()
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
    fn inputs_and_outputs_are_judged() {
        assert_eq!(fields(output(json!({}))), ["outputs[0].inputKeys[0]", "outputs[0].prompt"]);
        let input = json!([{"key": "a", "label": "A", "type": "image", "value": "a text", "useAsDefault": true}]);
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
    fn tags_are_words_of_at_most_80_characters() {
        let tags = json!(["a", "", "ä".repeat(80), "ä".repeat(81)]);
        assert_eq!(fields(json!({ "tags": tags })), ["tags[1]", "tags[3]"]);
    }
}
