//! The rules of a request, the capability that it needs, and the values that a model does not offer
//! (docs/reference/videos.md#model-limits).

use app::Terms;
use domain::Violation;
use domain::id::{AccountUid, CanvasHandle};
use domain::model::Capability;
use egress::Guard;
use providers::Entry;
use providers::catalogue::Runtime;

use super::body::VideoStart;
use super::images::Images;
use crate::extract::canvas::canvas_of;
use crate::extract::check::Check;
use crate::models::malformed_name;
use crate::start::terms_of;

/// A checked request.
pub struct Checked {
    pub model: String,
    pub connection: Option<String>,
    pub prompt: String,
    pub terms: Terms,
    pub canvas: Option<CanvasHandle>,
    pub aspect_ratio: Option<String>,
    pub duration_seconds: Option<u32>,
    pub resolution: Option<String>,
    pub generate_audio: Option<bool>,
    pub images: Images,
}

impl VideoStart {
    /// The rules that a schema cannot express.
    pub fn check(self, account: &AccountUid, guard: &Guard) -> Result<Checked, Vec<Violation>> {
        let mut check = Check::default();
        let canvas = self.canvas_id.as_deref();
        let canvas = canvas.and_then(|canvas| canvas_of(&mut check, canvas, self.owner_uid.as_deref(), account));
        check.extend(malformed_name("model", &self.model));
        let images = Images::from_request(&mut check, &self, account, guard);
        let terms = terms_of(&mut check, self.idempotency_key, self.max_credits, self.validate_only);
        check.finish(|| {
            Some(Checked {
                model: self.model,
                connection: self.connection_id,
                prompt: self.prompt,
                terms,
                canvas,
                aspect_ratio: self.aspect_ratio,
                duration_seconds: self.duration_seconds,
                resolution: self.resolution,
                generate_audio: self.generate_audio,
                images,
            })
        })
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
        note("durationSeconds", format!("{} does not offer {seconds} seconds{}", model.name, listed(&model.durations)));
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
