//! The rules over several fields: everything that the request alone can tell and its schema cannot (decisions 1.3).
//!
//! They look at the body as it came, so that they speak of one with malformed fields, too; of a malformed field itself the
//! schema has spoken.

use std::collections::HashSet;

use domain::Violation;
use domain::element::ElementRef;
use domain::graph::Named;
use domain::id::{AccountUid, NodeId};
use domain::job::JobOperation;
use domain::limits::IMAGE_REFERENCES_MAX;
use serde_json::Value;

use super::body::ReferenceItem;
use crate::extract::json::items;
use crate::models::malformed_name;
use crate::start::webhook_violation;
use crate::state::App;

/// Every violation of a request for `operation`.
pub fn violations(app: &App, account: &AccountUid, operation: JobOperation, body: &Value) -> Vec<Violation> {
    let mut violations = of_body(account, operation, body);
    violations.extend(webhook_violation(app, body));
    violations
}

fn of_body(account: &AccountUid, operation: JobOperation, body: &Value) -> Vec<Violation> {
    let mut rules = Rules { body, violations: Vec::new() };
    rules.targets();
    rules.prompt(operation);
    rules.references(account);
    rules.elements();
    rules.violations.extend(malformed_name("model", &body["model"]));
    rules.violations
}

struct Rules<'a> {
    body: &'a Value,
    violations: Vec<Violation>,
}

impl Rules<'_> {
    fn note(&mut self, field: impl Into<String>, message: &str) {
        self.violations.push(Violation::new(field, message));
    }

    fn has(&self, field: &str) -> bool {
        self.body.get(field).is_some()
    }

    fn items(&self, field: &str) -> &[Value] {
        items(&self.body[field])
    }

    /// One of two fields, which exclude each other; `needed`: and not none.
    fn either(&mut self, fields: [&str; 2], needed: bool) {
        let message = match fields.map(|field| self.has(field)) {
            [true, true] => "one of the two excludes the other",
            [false, false] if needed => "one of the two is required",
            _ => return,
        };
        let [first, second] = fields;
        self.note(first, &format!("{first} or {second}: {message}"));
        self.note(second, &format!("{first} or {second}: {message}"));
    }

    /// Exactly one way to name 1 to 4 targets, each once, and a count that agrees (rule 1).
    fn targets(&mut self) {
        self.either(["targetNodeId", "targetNodeIds"], true);
        let targets = match (self.has("targetNodeId"), self.body["targetNodeIds"].as_array()) {
            (true, None) => Some(1),
            (false, Some(targets)) => Some(targets.len()),
            _ => None,
        };
        let counted = self.body["count"].as_u64();
        if let (Some(targets), Some(counted)) = (targets, counted)
            && targets as u64 != counted
        {
            self.note("count", &format!("must be the number of targets, {targets}, or be left out"));
        }
        let ids = self.items("targetNodeIds").iter().map(|item| NodeId::parse(item.as_str()?).ok());
        for index in repeated(ids) {
            self.note(format!("targetNodeIds[{index}]"), "was given before");
        }
    }

    /// A prompt or a node with one, which variations can do without (rule 3).
    fn prompt(&mut self, operation: JobOperation) {
        self.either(["prompt", "promptNodeId"], operation != JobOperation::Variations);
    }

    /// References and source: at most 16, each once, whichever way it is spelled (rule 2).
    fn references(&mut self, account: &AccountUid) {
        let references = self.items("references").len();
        let named = |text: &str| Named::parse(text, account);
        let listed = self.items("references").iter().map(|item| named(ReferenceItem::handle_in(item)?));
        let source = self.body.get("source").map(|source| named(source.as_str()?));
        for index in repeated(listed.chain(source)) {
            let field = if index < references { format!("references[{index}]") } else { "source".to_owned() };
            self.note(field, "was given before");
        }
        if references == IMAGE_REFERENCES_MAX && self.has("source") {
            let message = format!("references and source must be at most {IMAGE_REFERENCES_MAX} together");
            self.note("references", &message);
            self.note("source", &message);
        }
    }

    /// Versions of Elements, each once.
    fn elements(&mut self) {
        let parse = |item: &Value| item.as_str()?.parse::<ElementRef>().ok().filter(|named| named.version.is_some());
        let elements: Vec<Option<ElementRef>> = self.items("elements").iter().map(parse).collect();
        for index in elements.iter().enumerate().filter(|(_, element)| element.is_none()).map(|(index, _)| index) {
            self.note(format!("elements[{index}]"), "must be `element:<id>@v<n>`");
        }
        for index in repeated(elements.into_iter()) {
            self.note(format!("elements[{index}]"), "was given before");
        }
    }
}

/// The places of what was there before; what could not be understood equals nothing.
fn repeated<T: Eq + std::hash::Hash>(items: impl Iterator<Item = Option<T>>) -> Vec<usize> {
    let mut seen = HashSet::new();
    let again = items.enumerate().filter_map(|(index, item)| (!seen.insert(item?)).then_some(index));
    again.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(operation: JobOperation, body: Value) -> Vec<String> {
        let violations = of_body(&AccountUid::from_stored("me".into()), operation, &body);
        violations.into_iter().map(|violation| violation.field).collect()
    }

    /// The violations of an edit that is right but for `more`.
    fn with(more: Value) -> Vec<String> {
        let mut body = json!({"targetNodeId": "t", "prompt": "p", "references": ["asset:a"]});
        body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        fields(JobOperation::Edit, body)
    }

    #[test]
    fn targets_are_named_in_exactly_one_way() {
        assert_eq!(with(json!({"targetNodeIds": ["u"]})), ["targetNodeId", "targetNodeIds"]);
        assert_eq!(fields(JobOperation::Generate, json!({"prompt": "p"})), ["targetNodeId", "targetNodeIds"]);
        assert!(fields(JobOperation::Generate, json!({"prompt": "p", "targetNodeIds": ["u", "v"]})).is_empty());
    }

    #[test]
    fn a_count_agrees_with_the_targets() {
        assert!(with(json!({"count": 1})).is_empty());
        assert_eq!(with(json!({"count": 2})), ["count"]);
        let listed = |count: u32| {
            fields(JobOperation::Generate, json!({"prompt": "p", "targetNodeIds": ["u", "v"], "count": count}))
        };
        assert_eq!((listed(1), listed(2), listed(3)), (vec!["count".to_owned()], vec![], vec!["count".to_owned()]));
    }

    #[test]
    fn what_is_named_twice_is_told_however_it_is_spelled() {
        let targets = json!({"prompt": "p", "targetNodeIds": ["u", "v", "node:u"]});
        assert_eq!(fields(JobOperation::Generate, targets), ["targetNodeIds[2]"]);
        let references =
            json!(["asset:a", {"handle": "asset:me:a", "role": "style"}, "asset:you:a", "node:a", "node:a"]);
        assert_eq!(with(json!({"references": references})), ["references[1]", "references[4]"]);
        assert_eq!(with(json!({"source": "asset:me:a"})), ["source"]);
        assert_eq!(with(json!({"elements": ["element:e@v1", "element:e@v2", "element:e@v1"]})), ["elements[2]"]);
    }

    #[test]
    fn references_and_source_are_sixteen_at_most() {
        let references = |count: usize| (0..count).map(|index| format!("asset:a{index}")).collect::<Vec<_>>();
        assert!(with(json!({"references": references(16)})).is_empty());
        assert!(with(json!({"references": references(15), "source": "node:s"})).is_empty());
        assert_eq!(with(json!({"references": references(16), "source": "node:s"})), ["references", "source"]);
    }

    #[test]
    fn a_prompt_comes_in_one_way_and_variations_do_without() {
        assert_eq!(with(json!({"promptNodeId": "n"})), ["prompt", "promptNodeId"]);
        let bare = json!({"targetNodeId": "t", "source": "node:s"});
        for (operation, refused) in [
            (JobOperation::Generate, &["prompt", "promptNodeId"][..]),
            (JobOperation::Edit, &["prompt", "promptNodeId"]),
            (JobOperation::Variations, &[]),
        ] {
            assert_eq!(fields(operation, bare.clone()), refused, "{operation}");
        }
    }

    #[test]
    fn elements_are_pinned_to_a_version() {
        for wrong in ["element:e", "e", "e@v1", "element:e@v0", "element:e@v99999999999"] {
            assert_eq!(with(json!({"elements": [wrong]})), ["elements[0]"], "{wrong}");
        }
    }

    #[test]
    fn a_model_handle_is_whole() {
        for (model, refused) in
            [("sketch", false), ("model:abcdefgh", false), ("model:short", true), ("model:a b c d e", true)]
        {
            assert_eq!(!with(json!({"model": model})).is_empty(), refused, "{model}");
        }
    }
}
