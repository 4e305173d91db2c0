//! The rules of a request, the capability that it needs, and the values that a model does not offer
//! (docs/reference/videos.md#model-limits).

use app::job::{Destination, Targets};
use app::{Terms, Wanted};
use domain::graph::NodeType;
use domain::id::{AccountUid, CanvasHandle, NodeId};
use domain::model::Capability;
use domain::webhook::WebhookInput;
use domain::{Violation, counted};
use egress::Guard;
use providers::Entry;
use providers::catalogue::Runtime;

use super::body::VideoStart;
use super::images::Images;
use crate::extract::canvas::canvas_of;
use crate::extract::check::Check;
use crate::models::malformed_name;
use crate::place::destination;
use crate::start::{terms_of, wanted_of, webhook_of};

/// A checked request.
pub struct Checked {
    pub model: String,
    pub connection: Option<String>,
    pub prompt: String,
    pub terms: Terms,
    pub wanted: Wanted,
    pub canvas: Option<CanvasHandle>,
    /// Where the video goes; `None`: the job alone has it.
    pub target: Option<Target>,
    pub aspect_ratio: Option<String>,
    pub duration_seconds: Option<u32>,
    pub resolution: Option<String>,
    pub generate_audio: Option<bool>,
    pub images: Images,
    pub webhook: Option<WebhookInput>,
}

/// Where a video goes, and the canvas revision that this is based on.
pub struct Target {
    pub canvas: CanvasHandle,
    pub base_revision: String,
    pub destination: Destination,
}

impl VideoStart {
    /// The rules that a schema cannot express.
    pub fn check(mut self, account: &AccountUid, guard: &Guard) -> Result<Checked, Vec<Violation>> {
        let mut check = Check::default();
        let canvas = self.canvas_id.as_deref();
        let canvas = canvas.and_then(|canvas| canvas_of(&mut check, canvas, self.owner_uid.as_deref(), account));
        check.extend(malformed_name("model", &self.model));
        let images = Images::from_request(&mut check, &self, account, guard);
        let (is_targeted, targets) = self.targets(&mut check);
        let wanted = wanted_of(&mut check, self.asked, self.retry_of.as_deref(), Some(1));
        let webhook = webhook_of(&mut check, guard, self.webhook.take());
        let terms = terms_of(&mut check, self.idempotency_key, self.max_credits, self.validate_only);
        check.finish(|| {
            let target = match is_targeted {
                true => Some(Target {
                    canvas: canvas.clone()?,
                    base_revision: self.base_revision?,
                    destination: destination(targets?, self.connect, self.fit),
                }),
                false => None,
            };
            Some(Checked {
                model: self.model,
                connection: self.connection_id,
                prompt: self.prompt,
                terms,
                wanted,
                canvas,
                target,
                aspect_ratio: self.aspect_ratio,
                duration_seconds: self.duration_seconds,
                resolution: self.resolution,
                generate_audio: self.generate_audio,
                images,
                webhook,
            })
        })
    }
}

impl VideoStart {
    /// Whether the request names a target, and which: a node or a place, with a canvas and its revision. What only a target needs is
    /// refused without one, since it would have no effect.
    fn targets(&mut self, check: &mut Check) -> (bool, Option<Targets>) {
        let (node, place) = (self.target_node_id.take(), self.place.take());
        check.at_most_one(&[("targetNodeId", node.is_some()), ("place", place.is_some())], false);
        let is_targeted = node.is_some() || place.is_some();
        if is_targeted {
            check.note_if(self.canvas_id.is_none(), "canvasId", "is required with a target");
            check.note_if(self.base_revision.is_none(), "baseRevision", "is required with a target");
        } else {
            check.note_if(self.base_revision.is_some(), "baseRevision", "needs targetNodeId or place");
            check.note_if(self.connect.is_some(), "connect", "needs targetNodeId or place");
            check.note_if(self.fit, "fit", "needs targetNodeId or place");
        }
        let node = node.and_then(|node| check.parsed("targetNodeId", NodeId::parse(&node)));
        let place = place.map(|place| {
            check.note_if(place.count().is_some_and(|count| count != 1), "place.count", "must be 1 for a video");
            place.check(check, NodeType::Video, 1)
        });
        (is_targeted, place.map(Targets::Place).or(node.map(|node| Targets::Nodes(vec![node]))))
    }
}

/// The capability that the images need: the frames decide, or, without frames, the references.
pub fn capability(images: &Images) -> Capability {
    match (&images.first, &images.last, images.references.is_empty()) {
        (Some(_), Some(_), _) => Capability::VideoFromFrames,
        (Some(_), None, _) => Capability::VideoFromImage,
        (None, _, false) => Capability::VideoFromReferences,
        (None, _, true) => Capability::VideoGenerate,
    }
}

/// Everything that the model does not offer, by field.
pub fn not_offered(model: &Entry, request: &Checked) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut note = |field: &str, message: String| violations.push(Violation::new(field, message));
    if let Some(seconds) = request.duration_seconds.filter(|seconds| !model.durations.contains(seconds)) {
        note(
            "durationSeconds",
            format!("{} does not offer {}{}", model.name, counted(seconds, "second"), listed(&model.durations)),
        );
    }
    let texts = [
        ("aspectRatio", &request.aspect_ratio, &model.aspect_ratios),
        ("resolution", &request.resolution, &model.resolutions),
    ];
    for (field, value, offered) in texts {
        if value.as_ref().is_some_and(|value| !offered.contains(value)) {
            note(field, format!("{} does not offer this{}", model.name, listed(offered)));
        }
    }
    if request.generate_audio.is_some() && !model.audio_optional {
        note("generateAudio", format!("{} does not offer a choice of sound", model.name));
    }
    let (count, framed) = (request.images.references.len(), request.images.first.is_some());
    if framed && count > 0 && !takes_both(model) {
        note("references", format!("{} takes frames or references, not both", model.name));
    } else if count > 0 && !(model.references_min()..=model.references_max()).contains(&count) {
        let range = format!("{} to {}", model.references_min(), model.references_max());
        note("references", format!("{} takes {range}", model.name));
    }
    if request.prompt.encode_utf16().count() > model.prompt_max {
        note("prompt", format!("{} takes at most {} UTF-16 code units", model.name, model.prompt_max));
    }
    violations
}

/// Returns `true` if the model takes frames and references together. The embedded runtime inserts references between frames; no provider's
/// protocol has fields for both.
fn takes_both(model: &Entry) -> bool {
    model.runtime == Runtime::Embedded && model.capabilities.contains(&Capability::VideoFromReferences)
}

/// The offered values, appended to the message of a violation.
fn listed<T: ToString>(offered: &[T]) -> String {
    match offered {
        [] => String::new(),
        _ => format!(": {}", offered.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use domain::model::ProviderKind;
    use providers::Catalogue;
    use serde_json::{Value, json};

    use super::*;

    fn request(more: Value) -> Checked {
        let mut body = json!({"model": "m", "prompt": "p", "idempotencyKey": "12345678", "canvasId": "c"});
        body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        let start: VideoStart = serde_json::from_value(body).expect("has the right shape");
        start.check(&AccountUid::from_stored("me".into()), &Guard::default()).expect("a request")
    }

    fn refused(model: &Entry, more: Value) -> Vec<String> {
        not_offered(model, &request(more)).into_iter().map(|violation| violation.field).collect()
    }

    fn animatic() -> Entry {
        let catalogue = Catalogue::built_in().expect("is right");
        catalogue.find(ProviderKind::Managed, "animatic").map(|entry| Entry::clone(entry)).expect("is there")
    }

    #[test]
    fn the_frames_decide_what_is_asked_for_and_without_them_the_references() {
        for (more, expected) in [
            (json!({}), Capability::VideoGenerate),
            (json!({"firstFrame": "node:a"}), Capability::VideoFromImage),
            (json!({"firstFrame": "node:a", "lastFrame": "node:b"}), Capability::VideoFromFrames),
            (json!({"references": ["node:a"]}), Capability::VideoFromReferences),
            (json!({"firstFrame": "node:a", "references": ["node:b"]}), Capability::VideoFromImage),
        ] {
            assert_eq!(capability(&request(more.clone()).images), expected, "{more}");
        }
    }

    #[test]
    fn a_target_has_a_canvas_and_a_revision_and_is_one() {
        let fields = |more: Value| {
            let mut body = json!({"model": "m", "prompt": "p", "idempotencyKey": "12345678"});
            body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
            let start: VideoStart = serde_json::from_value(body).expect("has the right shape");
            let checked = start.check(&AccountUid::from_stored("me".into()), &Guard::default());
            checked.err().unwrap_or_default().into_iter().map(|violation| violation.field).collect::<Vec<_>>()
        };
        let on = |more: Value| {
            let mut body = json!({"canvasId": "c", "baseRevision": "r"});
            body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
            fields(body)
        };
        assert_eq!(on(json!({"targetNodeId": "n", "connect": true})), [""; 0]);
        assert_eq!(on(json!({"place": {"count": 1, "near": "n"}, "connect": false})), [""; 0]);
        for (request, expected) in [
            (on(json!({"targetNodeId": "n", "place": {}})), &["targetNodeId", "place"][..]),
            (on(json!({"targetNodeId": "a b"})), &["targetNodeId"]),
            (on(json!({"place": {"count": 2}})), &["place.count"]),
            (on(json!({"place": {"x": 1}})), &["place.y"]),
            (on(json!({})), &["baseRevision"]),
            (fields(json!({"connect": true, "fit": true})), &["connect", "fit"]),
            (fields(json!({"fit": false})), &[]),
            (fields(json!({"targetNodeId": "n"})), &["canvasId", "baseRevision"]),
            (fields(json!({"place": {}, "baseRevision": "r"})), &["canvasId"]),
            (fields(json!({"place": {}, "canvasId": "c"})), &["baseRevision"]),
        ] {
            assert_eq!(request, expected);
        }
    }

    #[test]
    fn what_the_model_offers_passes() {
        let more = json!({"durationSeconds": 5, "aspectRatio": "16:9", "resolution": "720p", "firstFrame": "node:a",
                          "references": ["node:b"]});
        assert_eq!(refused(&animatic(), more), [""; 0]);
        assert_eq!(refused(&Entry { audio_optional: true, ..animatic() }, json!({"generateAudio": false})), [""; 0]);
    }

    #[test]
    fn every_value_that_the_model_does_not_offer_is_reported() {
        let more = json!({"durationSeconds": 11, "aspectRatio": "4:3", "resolution": "8k", "generateAudio": false});
        assert_eq!(refused(&animatic(), more), ["durationSeconds", "aspectRatio", "resolution", "generateAudio"]);
        let short = Entry { prompt_max: 3, ..animatic() };
        assert_eq!(refused(&short, json!({"prompt": "ab𝄞"})), ["prompt"], "counted as the vendors count");
    }

    #[test]
    fn the_embedded_runtime_takes_every_prompt_that_the_contract_takes() {
        // Each is one character and two UTF-16 code units.
        let longest = "🪁".repeat(domain::limits::PROMPT_MAX);
        assert_eq!(refused(&animatic(), json!({"prompt": longest})), [""; 0]);
    }

    #[test]
    fn references_go_with_frames_in_the_embedded_runtime_alone() {
        let more = json!({"firstFrame": "node:a", "references": ["node:b"]});
        let provided = Entry { runtime: Runtime::OpenAi, ..animatic() };
        assert_eq!(refused(&provided, more), ["references"]);
        let two = Entry { references: Some(providers::catalogue::Range { min: 0, max: 1 }), ..animatic() };
        assert_eq!(refused(&two, json!({"references": ["node:a", "node:b"]})), ["references"]);
        assert_eq!(refused(&two, json!({"references": ["node:a"]})), [""; 0]);
    }
}
