//! The rules over several fields: what the request alone determines and its schema cannot express.

use std::collections::HashSet;
use std::hash::Hash;

use app::Terms;
use app::job::{Destination, Targets};
use domain::Violation;
use domain::element::ElementRef;
use domain::graph::{Named, Role};
use domain::id::{AccountUid, CanvasHandle, NodeId};
use domain::job::JobOperation;
use domain::limits::IMAGE_REFERENCES_MAX;
use domain::webhook::WebhookInput;
use egress::Guard;

use super::body::ImageStart;
use crate::extract::canvas::canvas_of;
use crate::extract::draft::{Check, Field};
use crate::models::malformed_name;
use crate::place::destination;
use crate::start::{terms_of, webhook_of};

/// A checked request.
pub struct Checked {
    pub canvas: CanvasHandle,
    pub base_revision: String,
    pub terms: Terms,
    pub destination: Destination,
    /// Whether the request lists its targets.
    pub is_listed: bool,
    pub count: Option<u64>,
    pub prompt: Prompt,
    pub references: Option<References>,
    pub source: Option<Named>,
    pub elements: Vec<String>,
    pub connection: Option<String>,
    pub model: Option<String>,
    pub size: Option<String>,
    pub quality: Option<String>,
    pub webhook: Option<WebhookInput>,
}

/// Pictures with their roles.
pub type References = Vec<(Named, Option<Role>)>;

/// Source of the prompt.
pub enum Prompt {
    /// None; variations do not need a prompt.
    None,
    Text(String),
    Node(NodeId),
}

impl ImageStart {
    /// Checks a request for `operation`.
    pub fn check(
        mut self,
        account: &AccountUid,
        operation: JobOperation,
        guard: &Guard,
    ) -> Result<Checked, Vec<Violation>> {
        let mut check = Check::default();
        let canvas = canvas_of(&mut check, std::mem::take(&mut self.canvas_id), Field::Absent, account);
        let targets = self.targets(&mut check);
        let prompt = self.prompt(&mut check, operation);
        let pictures = self.references(&mut check, account);
        let elements = self.elements(&mut check);
        check.extend(self.model.get().and_then(|model| malformed_name("model", model)));
        let webhook = webhook_of(&mut check, guard, self.webhook);
        let terms = terms_of(&mut check, self.idempotency_key, self.max_credits, &self.validate_only);
        check.finish(|| {
            let (references, source) = pictures?;
            Some(Checked {
                canvas: canvas?,
                base_revision: self.base_revision.given()?,
                terms: terms?,
                destination: destination(targets?, &self.connect),
                is_listed: self.target_node_ids.is_present(),
                count: self.count.given(),
                prompt,
                references,
                source,
                elements,
                connection: self.connection_id.given(),
                model: self.model.given(),
                size: self.size.given(),
                quality: self.quality.given(),
                webhook,
            })
        })
    }

    /// Exactly one way to name or add 1 to 4 distinct targets, and a matching count (docs/reference/images.md#targets).
    fn targets(&mut self, check: &mut Check) -> Option<Targets> {
        let place = std::mem::take(&mut self.place);
        let (one, listed) = (&self.target_node_id, &self.target_node_ids);
        let ways =
            [("targetNodeId", one.is_present()), ("targetNodeIds", listed.is_present()), ("place", place.is_present())];
        check.at_most_one(&ways, true);
        let number = match (one.is_present(), listed.get(), place.get()) {
            (true, None, None) => Some(1),
            (false, Some(targets), None) => Some(targets.len() as u64),
            (false, None, Some(place)) => place.count(),
            _ => None,
        };
        if let (Some(number), Some(count)) = (number, self.count.get())
            && number != *count
        {
            check.note("count", format!("must be the number of targets, {number}, or be left out"));
        }
        let mut node = |field: String, id: &Field<String>| check.parsed(field, NodeId::parse(id.get()?));
        let ids = listed.items().iter().enumerate().map(|(index, id)| node(format!("targetNodeIds[{index}]"), id));
        let ids: Vec<Option<NodeId>> = ids.collect();
        let targets = match one.is_present() {
            true => node("targetNodeId".into(), one).map(|target| vec![target]),
            false => ids.iter().cloned().collect::<Option<_>>(),
        };
        note_repeated(check, &ids, |index| format!("targetNodeIds[{index}]"));
        match place {
            Field::Given(place) => {
                let count = place.count().or(self.count.get().copied()).unwrap_or(1);
                Some(Targets::Place(place.check(check, count)))
            }
            Field::Malformed => None,
            Field::Absent => targets.map(Targets::Nodes),
        }
    }

    /// A prompt or a node that holds one; optional for variations (docs/reference/images.md#differences-between-operations).
    fn prompt(&mut self, check: &mut Check, operation: JobOperation) -> Prompt {
        let ways = [("prompt", self.prompt.is_present()), ("promptNodeId", self.prompt_node_id.is_present())];
        check.at_most_one(&ways, operation != JobOperation::Variations);
        match (std::mem::take(&mut self.prompt).given(), self.prompt_node_id.get()) {
            (Some(text), _) => Prompt::Text(text),
            (None, Some(id)) => check.parsed("promptNodeId", NodeId::parse(id)).map_or(Prompt::None, Prompt::Node),
            (None, None) => Prompt::None,
        }
    }

    /// References and source: at most 16, each once in whatever spelling (docs/reference/images.md#references). `None` when one of
    /// them is malformed, which the schema reports.
    fn references(&self, check: &mut Check, account: &AccountUid) -> Option<(Option<References>, Option<Named>)> {
        let items = self.references.items();
        let texts = items.iter().map(|item| item.handle.as_ref()).chain([self.source.get()]);
        let mut named: Vec<Option<Named>> = texts.map(|text| Named::parse(text?, account)).collect();
        note_repeated(check, &named, |index| match index < items.len() {
            true => format!("references[{index}]"),
            false => "source".to_owned(),
        });
        if items.len() == IMAGE_REFERENCES_MAX && self.source.is_present() {
            let message = format!("references and source must be at most {IMAGE_REFERENCES_MAX} together");
            check.note("references", message.as_str());
            check.note("source", message);
        }
        let source = named.pop().flatten();
        let roles = items.iter().map(|item| item.role);
        let references =
            named.into_iter().zip(roles).map(|(named, role)| Some((named?, role))).collect::<Option<_>>()?;
        let is_read = source.is_some() == self.source.is_present();
        is_read.then(|| (self.references.get().map(|_| references), source))
    }

    /// Versions of Elements, each once.
    fn elements(&self, check: &mut Check) -> Vec<String> {
        // A version has one spelling, so equal texts are equal versions.
        let is_version = |text: &&String| text.parse::<ElementRef>().is_ok_and(|named| named.version.is_some());
        let elements: Vec<Option<String>> =
            self.elements.items().iter().map(|item| item.get().filter(is_version).cloned()).collect();
        for (index, element) in elements.iter().enumerate() {
            check.note_if(element.is_none(), format!("elements[{index}]"), "must be `element:<id>@v<n>`");
        }
        note_repeated(check, &elements, |index| format!("elements[{index}]"));
        elements.into_iter().flatten().collect()
    }
}

/// Notes repeated items; an item that could not be parsed equals no other.
fn note_repeated<T: Eq + Hash>(check: &mut Check, items: &[Option<T>], field: impl Fn(usize) -> String) {
    let mut seen = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let is_repeated = item.as_ref().is_some_and(|item| !seen.insert(item));
        check.note_if(is_repeated, field(index), "was given before");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fields(operation: JobOperation, body: Value) -> Vec<String> {
        let mut body = body;
        body.as_object_mut().expect("an object").extend([
            ("canvasId".to_owned(), json!("c")),
            ("baseRevision".to_owned(), json!("r")),
            ("idempotencyKey".to_owned(), json!("12345678")),
        ]);
        let request: ImageStart = serde_json::from_value(body).expect("a draft");
        let checked = request.check(&AccountUid::from_stored("me".into()), operation, &Guard::default());
        checked.err().unwrap_or_default().into_iter().map(|violation| violation.field).collect()
    }

    /// The violations of a valid edit with the fields of `more` replaced.
    fn with(more: Value) -> Vec<String> {
        let mut body = json!({"targetNodeId": "t", "prompt": "p", "references": ["asset:a"]});
        body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        fields(JobOperation::Edit, body)
    }

    #[test]
    fn targets_are_named_in_exactly_one_way() {
        assert_eq!(with(json!({"targetNodeIds": ["u"]})), ["targetNodeId", "targetNodeIds"]);
        assert_eq!(with(json!({"place": {}})), ["targetNodeId", "place"]);
        let nowhere = fields(JobOperation::Generate, json!({"prompt": "p"}));
        assert_eq!(nowhere, ["targetNodeId", "targetNodeIds", "place"]);
        assert!(fields(JobOperation::Generate, json!({"prompt": "p", "place": {"near": "n"}})).is_empty());
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
    fn a_place_adds_as_many_targets_as_it_or_the_start_counts() {
        let count = |body: Value| {
            let mut body = body;
            body.as_object_mut().expect("an object").extend([
                ("canvasId".to_owned(), json!("c")),
                ("baseRevision".to_owned(), json!("r")),
                ("idempotencyKey".to_owned(), json!("12345678")),
                ("prompt".to_owned(), json!("p")),
            ]);
            let request: ImageStart = serde_json::from_value(body).expect("a draft");
            let checked =
                request.check(&AccountUid::from_stored("me".into()), JobOperation::Generate, &Guard::default());
            checked.map(|checked| checked.destination.count()).map_err(|refused| refused[0].field.clone())
        };
        assert_eq!(count(json!({"place": {}})), Ok(1));
        assert_eq!(count(json!({"place": {"count": 3}})), Ok(3));
        assert_eq!(count(json!({"place": {}, "count": 4})), Ok(4));
        assert_eq!(count(json!({"place": {"count": 2}, "count": 2})), Ok(2));
        assert_eq!(count(json!({"place": {"count": 2}, "count": 3})), Err("count".to_owned()));
    }

    #[test]
    fn what_is_named_twice_is_reported_however_it_is_spelled() {
        let targets = json!({"prompt": "p", "targetNodeIds": ["u", "v", "node:u"]});
        assert_eq!(fields(JobOperation::Generate, targets), ["targetNodeIds[2]"]);
        let references =
            json!(["asset:a", {"handle": "asset:me:a", "role": "style"}, "asset:you:a", "node:a", "node:a"]);
        assert_eq!(with(json!({"references": references})), ["references[1]", "references[4]"]);
        assert_eq!(with(json!({"source": "asset:me:a"})), ["source"]);
        assert_eq!(with(json!({"elements": ["element:e@v1", "element:e@v2", "element:e@v1"]})), ["elements[2]"]);
    }

    #[test]
    fn a_malformed_reference_is_left_to_the_schema() {
        for malformed in [json!("a"), json!({"handle": "a"}), json!({"role": "style"}), json!(7)] {
            assert!(with(json!({"references": [malformed]})).is_empty());
        }
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
        for wrong in ["element:e", "e", "e@v1", "element:e@v0", "element:e@v1.0"] {
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
