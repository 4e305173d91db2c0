//! Rules of a Recipe's inputs and outputs beyond the ranges of their schemas. They depend on the request alone, so
//! every violation is reported with `400`, each under its field.

use std::collections::HashSet;

use super::template::Template;
use super::{InputKind, NewInput, NewOutput};
use crate::Violation;
use crate::id::{AssetRef, NodeId};

/// Every violation of: keys are unique; `inputKeys` name inputs or earlier outputs, which excludes cycles; every
/// `{{key}}` names one of the `inputKeys`; an input accepts its own initial value.
pub fn violations(inputs: &[NewInput], outputs: &[NewOutput]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut keys = HashSet::new();
    for (at, input) in inputs.iter().enumerate() {
        if !keys.insert(input.key.as_str()) {
            found.push(Violation::new(format!("inputs[{at}].key"), "names another input already"));
        }
        beginning(at, input, &mut found);
    }
    let later: HashSet<&str> = outputs.iter().map(|output| output.key.as_str()).collect();
    for (at, output) in outputs.iter().enumerate() {
        sources(at, output, &keys, &later, &mut found);
        // Later outputs can name it.
        if !keys.insert(output.key.as_str()) {
            found.push(Violation::new(format!("outputs[{at}].key"), "names an input or another output already"));
        }
    }
    found
}

/// Maximum length of a tag, in characters.
const TAG_MAX: usize = 80;

/// Violations of tags, which have 1 to 80 characters.
pub fn tag_violations<'a>(tags: impl IntoIterator<Item = &'a String>) -> Vec<Violation> {
    let is_tag = |tag: &String| (1..=TAG_MAX).contains(&tag.chars().count());
    let wrong = tags.into_iter().enumerate().filter(|(_, tag)| !is_tag(tag));
    wrong.map(|(at, _)| Violation::new(format!("tags[{at}]"), format!("must have 1 to {TAG_MAX} characters"))).collect()
}

/// Checks the initial value of an input.
fn beginning(at: usize, input: &NewInput, found: &mut Vec<Violation>) {
    let mut refuse = |field: &str, message: &str| found.push(Violation::new(format!("inputs[{at}].{field}"), message));
    let value = input.value.as_deref().unwrap_or_default();
    if input.use_as_default && value.is_empty() && input.source_node_id.is_none() {
        refuse("useAsDefault", "requires a value or a source node to save");
    }
    if input.kind == InputKind::Image && !value.is_empty() && !is_handle(value) {
        refuse("value", "of an image input must be a node or asset handle");
    }
    if input.kind == InputKind::Image && input.written_reference {
        refuse("writtenReference", "is only for text and sticky inputs");
    }
}

/// Checks the keys and the prompt of an output.
fn sources(at: usize, output: &NewOutput, known: &HashSet<&str>, later: &HashSet<&str>, found: &mut Vec<Violation>) {
    let mut given = HashSet::new();
    for (index, key) in output.input_keys.iter().enumerate() {
        let message = if !given.insert(key.as_str()) {
            "was given before"
        } else if known.contains(key.as_str()) {
            continue;
        } else if *key == output.key {
            "is this output itself"
        } else if later.contains(key.as_str()) {
            "is an output that is made later"
        } else {
            "names no input and no earlier output"
        };
        found.push(Violation::new(format!("outputs[{at}].inputKeys[{index}]"), message));
    }
    found.extend(prompt_violations(&format!("outputs[{at}].prompt"), &output.prompt, &output.input_keys));
}

/// Maximum number of unknown placeholders reported for one prompt. A body may contain a hundred thousand.
const PLACES_TOLD: usize = 20;

/// The placeholders of a template that are not among `keys`: the first 20, each once.
pub fn prompt_violations(field: &str, prompt: &str, keys: &[String]) -> Vec<Violation> {
    let mut known: HashSet<&str> = keys.iter().map(String::as_str).collect();
    let template = Template::parse(prompt);
    template
        .names()
        .filter(|name| known.insert(name))
        .take(PLACES_TOLD)
        .map(|name| Violation::new(field, format!("holds `{{{{{name}}}}}`, which is not among its inputKeys")))
        .collect()
}

/// Returns `true` if a text is a node or asset handle. A plain id is neither, because it could name a node or an asset.
pub fn is_handle(text: &str) -> bool {
    (text.starts_with("node:") && NodeId::parse(text).is_ok())
        || (text.starts_with("asset:") && AssetRef::parse(text).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::tests::{input, output};

    fn fields(inputs: &[NewInput], outputs: &[NewOutput]) -> Vec<String> {
        violations(inputs, outputs).into_iter().map(|violation| violation.field).collect()
    }

    fn of_outputs(outputs: &[NewOutput]) -> Vec<String> {
        fields(&[input("a", "text"), input("b", "image")], outputs)
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn an_output_is_made_from_inputs_and_earlier_outputs() {
        assert_eq!(of_outputs(&[output("c", "{{a}} {{b}}", &["a", "b"]), output("d", "{{c}}", &["c", "a"])]), NONE);
    }

    #[test]
    fn a_key_is_unique_among_inputs_and_outputs() {
        let inputs = [input("a", "text"), input("a", "image")];
        let outputs = [output("a", "p", &["a"]), output("c", "p", &["a"]), output("c", "p", &["a"])];
        assert_eq!(fields(&inputs, &outputs), ["inputs[1].key", "outputs[0].key", "outputs[2].key"]);
    }

    #[test]
    fn keys_tell_case_apart() {
        assert_eq!(fields(&[input("a", "text"), input("A", "text")], &[output("c", "p", &["A"])]), NONE);
        assert_eq!(of_outputs(&[output("c", "{{A}}", &["a"])]), ["outputs[0].prompt"]);
    }

    #[test]
    fn circles_and_forward_references_are_refused() {
        assert_eq!(of_outputs(&[output("c", "p", &["c"])]), ["outputs[0].inputKeys[0]"]);
        assert_eq!(of_outputs(&[output("c", "p", &["a", "d"]), output("d", "p", &["c"])]), ["outputs[0].inputKeys[1]"]);
    }

    #[test]
    fn input_keys_are_known_and_given_once() {
        assert_eq!(
            of_outputs(&[output("c", "p", &["a", "x", "a", ""])]),
            ["outputs[0].inputKeys[1]", "outputs[0].inputKeys[2]", "outputs[0].inputKeys[3]"]
        );
    }

    #[test]
    fn a_place_names_one_of_the_outputs_own_input_keys() {
        for (prompt, wrong) in [
            ("{{a}} {{a}}", 0),
            ("{{b}}", 1),
            ("{{x}}", 1),
            ("{{}}", 1),
            ("{{a b}}", 1),
            ("{{x}} {{x}} {{y}}", 2),
            ("{{x", 0),
        ] {
            assert_eq!(of_outputs(&[output("c", prompt, &["a"])]), vec!["outputs[0].prompt"; wrong], "{prompt}");
        }
    }

    #[test]
    fn an_input_begins_with_what_it_can_take() {
        let begins = |kind: &str, value: Option<&str>, source: Option<&str>, saved: bool| {
            let mut new = input("a", kind);
            (new.value, new.source_node_id) = (value.map(Into::into), source.map(Into::into));
            new.use_as_default = saved;
            fields(&[new], &[output("c", "p", &["a"])])
        };
        assert_eq!(begins("text", None, None, true), ["inputs[0].useAsDefault"]);
        assert_eq!(begins("text", Some(""), None, true), ["inputs[0].useAsDefault"]);
        for (kind, value, source) in [
            ("text", Some("v"), None),
            ("sticky", None, Some("n")),
            ("image", Some("asset:me:a"), None),
            ("image", None, Some("n")),
        ] {
            assert_eq!(begins(kind, value, source, true), NONE, "{kind}");
        }
        for wrong in ["a plain text", "a1", "node:", "asset:a:b:c", "element:e"] {
            assert_eq!(begins("image", Some(wrong), None, false), ["inputs[0].value"], "{wrong}");
        }
        let written = NewInput { written_reference: true, ..input("a", "image") };
        assert_eq!(fields(&[written], &[output("c", "p", &["a"])]), ["inputs[0].writtenReference"]);
    }
}
