//! The rules over several fields: what the request alone determines and its schema cannot express.

use std::collections::HashSet;
use std::hash::Hash;

use app::job::{Destination, Targets};
use app::{Terms, Wanted};
use domain::Violation;
use domain::element::ElementRef;
use domain::graph::{Named, NodeType, Role};
use domain::id::{AccountUid, CanvasHandle, NodeId};
use domain::job::{JobOperation, MaskMode};
use domain::limits::{IMAGE_REFERENCES_MAX, MASK_FEATHER_DEFAULT};
use domain::webhook::WebhookInput;
use egress::Guard;

use super::body::{ImageStart, MaskItem};
use crate::extract::canvas::canvas_of;
use crate::extract::check::Check;
use crate::models::malformed_name;
use crate::place::destination;
use crate::start::{terms_of, wanted_of, webhook_of};

/// A checked request.
pub struct Checked {
    pub canvas: CanvasHandle,
    pub base_revision: String,
    pub terms: Terms,
    pub destination: Destination,
    /// `true` if the request lists its targets.
    pub is_listed: bool,
    pub count: Option<u32>,
    pub wanted: Wanted,
    pub prompt: Prompt,
    pub references: Option<References>,
    pub source: Option<Named>,
    pub mask: Option<CheckedMask>,
    pub elements: Vec<String>,
    pub connection: Option<String>,
    pub model: Option<String>,
    pub size: Option<String>,
    pub quality: Option<String>,
    pub webhook: Option<WebhookInput>,
}

/// The mask of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedMask {
    pub named: Named,
    pub mode: MaskMode,
    pub invert: bool,
    pub feather: u32,
    pub composite: bool,
}

/// Images with their roles.
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
        self,
        account: &AccountUid,
        operation: JobOperation,
        guard: &Guard,
    ) -> Result<Checked, Vec<Violation>> {
        let mut check = Check::default();
        let canvas = canvas_of(&mut check, &self.canvas_id, None, account);
        let targets = self.targets(&mut check);
        let outputs = self.output_count();
        let wanted = wanted_of(&mut check, self.asked, self.retry_of.as_deref(), outputs);
        let prompt = self.prompt(&mut check, operation);
        let (references, source) = self.references(&mut check, account);
        let mask = self.mask(&mut check, account, operation);
        self.check_elements(&mut check);
        check.extend(self.model.as_deref().and_then(|model| malformed_name("model", model)));
        let place =
            self.place.map(|place| Targets::Place(place.check(&mut check, NodeType::Image, outputs.unwrap_or(1))));
        let webhook = webhook_of(&mut check, guard, self.webhook);
        let terms = terms_of(&mut check, self.idempotency_key, self.max_credits, self.validate_only);
        check.finish(|| {
            Some(Checked {
                canvas: canvas?,
                base_revision: self.base_revision,
                terms,
                destination: destination(place.or(targets.map(Targets::Nodes))?, self.connect, self.fit),
                is_listed: self.target_node_ids.is_some(),
                count: self.count,
                wanted,
                prompt,
                references,
                source,
                mask,
                elements: self.elements,
                connection: self.connection_id,
                model: self.model,
                size: self.size,
                quality: self.quality,
                webhook,
            })
        })
    }

    /// The number of outputs; `None` if the request names targets in several ways or in none.
    fn output_count(&self) -> Option<u32> {
        match (&self.target_node_id, &self.target_node_ids, &self.place) {
            (Some(_), None, None) => Some(1),
            (None, Some(targets), None) => Some(targets.len() as u32),
            (None, None, Some(place)) => Some(place.count().or(self.count).unwrap_or(1)),
            _ => None,
        }
    }

    /// Exactly one way to name or add 1 to 4 distinct targets, and a matching count (docs/reference/images.md#targets). Returns the
    /// targets that the request names.
    fn targets(&self, check: &mut Check) -> Option<Vec<NodeId>> {
        let (one, listed) = (self.target_node_id.as_deref(), self.target_node_ids.as_deref());
        let ways =
            [("targetNodeId", one.is_some()), ("targetNodeIds", listed.is_some()), ("place", self.place.is_some())];
        check.at_most_one(&ways, true);
        if let (Some(number), Some(count)) = (self.output_count(), self.count)
            && number != count
        {
            check.note("count", format!("must be the number of targets, {number}, or be left out"));
        }
        let mut node = |field: String, id: &str| check.parsed(field, NodeId::parse(id));
        let ids = listed.unwrap_or_default().iter().enumerate();
        let ids: Vec<Option<NodeId>> = ids.map(|(index, id)| node(format!("targetNodeIds[{index}]"), id)).collect();
        let target = one.and_then(|id| node("targetNodeId".into(), id));
        note_repeated(check, &ids, |index| format!("targetNodeIds[{index}]"));
        match one {
            Some(_) => target.map(|target| vec![target]),
            None => ids.into_iter().collect(),
        }
    }

    /// A prompt or a node that holds one; optional for variations (docs/reference/images.md#differences-between-operations).
    fn prompt(&self, check: &mut Check, operation: JobOperation) -> Prompt {
        let ways = [("prompt", self.prompt.is_some()), ("promptNodeId", self.prompt_node_id.is_some())];
        check.at_most_one(&ways, operation != JobOperation::Variations);
        match (&self.prompt, &self.prompt_node_id) {
            (Some(text), _) => Prompt::Text(text.clone()),
            (None, Some(id)) => check.parsed("promptNodeId", NodeId::parse(id)).map_or(Prompt::None, Prompt::Node),
            (None, None) => Prompt::None,
        }
    }

    /// References and source: at most 16, each once in whatever spelling (docs/reference/images.md#references).
    fn references(&self, check: &mut Check, account: &AccountUid) -> (Option<References>, Option<Named>) {
        let items = self.references.as_deref().unwrap_or_default();
        let texts = items.iter().map(|item| item.parts().0).chain(self.source.as_deref());
        let field = |index: usize| match index < items.len() {
            true => format!("references[{index}]"),
            false => "source".to_owned(),
        };
        let named = texts.enumerate().map(|(index, text)| {
            check.parsed(field(index), Named::parse(text, account).ok_or("must be a node or asset handle"))
        });
        let mut named: Vec<Option<Named>> = named.collect();
        note_repeated(check, &named, field);
        if items.len() == IMAGE_REFERENCES_MAX && self.source.is_some() {
            let message = format!("references and source must be at most {IMAGE_REFERENCES_MAX} together");
            check.note("references", message.as_str());
            check.note("source", message);
        }
        let source = self.source.is_some().then(|| named.pop().flatten()).flatten();
        let references = named.into_iter().zip(items).filter_map(|(named, item)| Some((named?, item.parts().1)));
        (self.references.is_some().then(|| references.collect()), source)
    }

    /// The mask, which edits of a source take (docs/reference/images.md#masks).
    fn mask(&self, check: &mut Check, account: &AccountUid, operation: JobOperation) -> Option<CheckedMask> {
        let fields = [
            ("mask", self.mask.is_some()),
            ("maskFeather", self.mask_feather.is_some()),
            ("maskComposite", self.mask_composite.is_some()),
        ];
        for (field, _) in fields.iter().filter(|(_, is_present)| *is_present) {
            if operation != JobOperation::Edit {
                check.note(*field, "is for edits alone");
            } else {
                check.note_if(self.mask.is_none(), *field, "needs a mask");
            }
        }
        let item = self.mask.as_ref()?;
        let is_edit = operation == JobOperation::Edit;
        check.note_if(is_edit && self.source.is_none(), "source", "is needed with a mask");
        let (handle, mode, invert) = item.parts();
        let field = if matches!(item, MaskItem::Plain(_)) { "mask" } else { "mask.handle" };
        let named = Named::parse(handle, account).ok_or("must be a node or asset handle");
        Some(CheckedMask {
            named: check.parsed(field, named)?,
            mode,
            invert,
            feather: self.mask_feather.unwrap_or(MASK_FEATHER_DEFAULT),
            composite: self.mask_composite.unwrap_or(true),
        })
    }

    /// Versions of Elements, each once. A version has one spelling, so equal texts are equal versions.
    fn check_elements(&self, check: &mut Check) {
        let is_version = |text: &&String| text.parse::<ElementRef>().is_ok_and(|named| named.version.is_some());
        let versions: Vec<Option<&String>> = self.elements.iter().map(|text| Some(text).filter(is_version)).collect();
        for (index, version) in versions.iter().enumerate() {
            check.note_if(version.is_none(), format!("elements[{index}]"), "must be `element:<id>@v<n>`");
        }
        note_repeated(check, &versions, |index| format!("elements[{index}]"));
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
        let request: ImageStart = serde_json::from_value(body).expect("has the right shape");
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
            let request: ImageStart = serde_json::from_value(body).expect("has the right shape");
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
    fn a_mask_is_for_edits_of_a_source() {
        let masked = json!({"source": "node:s", "mask": "asset:m", "maskFeather": 0, "maskComposite": false});
        assert!(with(masked.clone()).is_empty());
        assert!(with(json!({"source": "node:s", "mask": {"handle": "node:s", "mode": "alpha"}})).is_empty());
        assert_eq!(with(json!({"mask": "asset:m"})), ["source"]);
        assert_eq!(
            with(json!({"source": "node:s", "maskFeather": 3, "maskComposite": true})),
            ["maskFeather", "maskComposite"]
        );
        assert_eq!(with(json!({"source": "node:s", "mask": "m m"})), ["mask"]);
        assert_eq!(with(json!({"source": "node:s", "mask": {"handle": "m m", "invert": true}})), ["mask.handle"]);
        for operation in [JobOperation::Generate, JobOperation::Variations] {
            let mut body = json!({"targetNodeId": "t", "prompt": "p"});
            body.as_object_mut().expect("an object").extend(masked.as_object().cloned().expect("an object"));
            assert_eq!(fields(operation, body), ["mask", "maskFeather", "maskComposite"], "{operation}");
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
