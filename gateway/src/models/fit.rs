//! The check before acceptance that a model can do what a request asks (docs/reference/images.md#model-selection).

use domain::Violation;
use domain::graph::Role;
use domain::limits::IMAGE_REFERENCES_MAX;
use domain::model::Capability;
use providers::Entry;

/// The demands of a request on a model.
pub struct Asked<'a> {
    /// Capability that the request needs.
    pub capability: Capability,
    /// Prompt, including the guidelines of the Elements.
    pub prompt: &'a str,
    /// Field that the prompt came from.
    pub prompt_field: &'a str,
    /// Roles of the images that are sent, one entry for each image.
    pub roles: &'a [Option<Role>],
    /// `true` if the request has a mask.
    pub masked: bool,
    /// Size as requested.
    pub size: Option<&'a str>,
    /// Quality as requested.
    pub quality: Option<&'a str>,
}

/// Everything that `model` does not offer, by field. A request to a provider is checked against the same bounds before it is sent,
/// so that what is accepted here does not fail there.
pub fn violations(model: &Entry, asked: &Asked<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut refuse = |field: &str, message: String| violations.push(Violation::new(field, message));
    for (field, value, offered) in [("size", asked.size, &model.sizes), ("quality", asked.quality, &model.qualities)] {
        if value.is_some_and(|value| offered.iter().all(|offer| offer != value)) {
            refuse(field, not_offered(model, field, offered));
        }
    }
    match model.mask {
        None if asked.masked => refuse("mask", format!("{} takes no mask", model.name)),
        Some(_) if !asked.masked && model.mask_required && asked.capability == Capability::ImageEdit => {
            refuse("mask", format!("{} edits with a mask alone", model.name));
        }
        _ => {}
    }
    let least = usize::from(asked.capability != Capability::ImageGenerate).max(model.references_min());
    let (given, most) = (asked.roles.len(), model.references_max());
    // Other checks report an edit without images, and more images than any request may send.
    let is_reported = given == 0 && asked.capability != Capability::ImageGenerate || given > IMAGE_REFERENCES_MAX;
    if !is_reported && !(least..=most).contains(&given) {
        refuse("references", format!("{} takes {least} to {most} images, and would get {given}", model.name));
    }
    let sent = providers::instruction(asked.capability, asked.prompt, asked.roles.iter().copied());
    let length = sent.encode_utf16().count();
    if length > model.prompt_max {
        let message = format!(
            "{} takes at most {} UTF-16 code units, and would get {length} with what Elements and roles add",
            model.name, model.prompt_max
        );
        refuse(asked.prompt_field, message);
    }
    violations
}

/// Width and height of what `model` makes, in any unit, where the request and the catalog determine them.
pub fn image_size(model: &Entry, asked: &Asked<'_>) -> Option<(f64, f64)> {
    let follows_reference = model.wire.size_from_reference && !asked.roles.is_empty();
    let default = || model.sizes.first().filter(|_| !follows_reference).map(String::as_str);
    let (width, height) = asked.size.or_else(default)?.split_once(['x', ':'])?;
    let side = |text: &str| text.parse().ok().filter(|side| (1.0..=1e6).contains(side));
    Some((side(width)?, side(height)?))
}

fn not_offered(model: &Entry, field: &str, offered: &[String]) -> String {
    match offered {
        [] => format!("{} takes no {field}", model.name),
        _ => format!("{} offers {}", model.name, offered.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use providers::catalogue::Range;
    use serde_json::json;

    use super::*;

    fn model() -> Entry {
        serde_json::from_value(json!({
            "id": "m", "name": "M", "provider": "managed", "type": "image", "capabilities": ["image.generate", "image.edit"],
            "estimatedSeconds": 1, "promptMax": 100, "references": {"max": 2}, "sizes": ["1x1", "2x1"], "creditCost": 1
        }))
        .expect("an entry")
    }

    /// A generation that every model can do.
    fn asked() -> Asked<'static> {
        Asked {
            capability: Capability::ImageGenerate,
            prompt: "p",
            prompt_field: "prompt",
            roles: &[],
            masked: false,
            size: None,
            quality: None,
        }
    }

    fn fields(model: &Entry, asked: &Asked<'_>) -> Vec<String> {
        violations(model, asked).into_iter().map(|violation| violation.field).collect()
    }

    #[test]
    fn the_size_of_an_image_is_that_of_the_request_or_the_first_of_the_model() {
        let size = |model: &Entry, size: Option<&str>, roles: &[Option<Role>]| {
            let capability = Capability::ImageGenerate;
            image_size(
                model,
                &Asked { capability, prompt: "p", prompt_field: "prompt", roles, masked: false, size, quality: None },
            )
        };
        assert_eq!(size(&model(), Some("1536x1024"), &[]), Some((1536.0, 1024.0)));
        assert_eq!(size(&model(), Some("16:9"), &[None]), Some((16.0, 9.0)));
        assert_eq!(size(&model(), None, &[None]), Some((1.0, 1.0)));
        for unknown in ["auto", "0x1", "1xx", "large", "1e9x1"] {
            assert_eq!(size(&model(), Some(unknown), &[]), None, "{unknown}");
        }
        assert_eq!(size(&Entry { sizes: Vec::new(), ..model() }, None, &[]), None);
        let mut follows = model();
        follows.wire.size_from_reference = true;
        assert_eq!(size(&follows, None, &[None]), None);
        assert_eq!(size(&follows, None, &[]), Some((1.0, 1.0)));
    }

    #[test]
    fn size_and_quality_are_among_those_offered() {
        assert!(fields(&model(), &Asked { size: Some("2x1"), ..asked() }).is_empty());
        assert_eq!(fields(&model(), &Asked { size: Some("2X1"), ..asked() }), ["size"]);
        assert_eq!(fields(&model(), &Asked { quality: Some("high"), ..asked() }), ["quality"], "it takes none");
    }

    #[test]
    fn a_mask_is_for_models_that_take_one() {
        let fields = |mask: Option<&str>, mask_required: bool, masked: bool| {
            let mask = mask.map(|mask| serde_json::from_value(json!(mask)).expect("a way"));
            let model = Entry { mask, mask_required, ..model() };
            let edit = Asked { capability: Capability::ImageEdit, roles: &[None], masked, ..asked() };
            fields(&model, &edit)
        };
        for mask in ["native", "composited"] {
            assert!(fields(Some(mask), false, true).is_empty() && fields(Some(mask), false, false).is_empty());
        }
        assert_eq!(fields(None, false, true), ["mask"]);
        assert!(fields(None, false, false).is_empty() && fields(Some("native"), true, true).is_empty());
        assert_eq!(fields(Some("native"), true, false), ["mask"]);
    }

    #[test]
    fn images_are_as_many_as_the_model_takes() {
        let (most, over) = ([None; IMAGE_REFERENCES_MAX], [None; IMAGE_REFERENCES_MAX + 1]);
        for (roles, refused) in
            [(&[][..], false), (&[None; 2], false), (&[None; 3], true), (&most, true), (&over, false)]
        {
            assert_eq!(!fields(&model(), &Asked { roles, ..asked() }).is_empty(), refused, "{roles:?}");
        }
        let demanding = Entry { references: Some(Range { min: 2, max: 4 }), ..model() };
        assert_eq!(fields(&demanding, &Asked { roles: &[None], ..asked() }), ["references"]);
        assert_eq!(fields(&demanding, &asked()), ["references"]);
    }

    #[test]
    fn a_prompt_is_measured_as_it_is_sent() {
        let (whole, long) = ("p".repeat(100), "p".repeat(101));
        assert!(fields(&model(), &Asked { prompt: &whole, ..asked() }).is_empty());
        assert_eq!(fields(&model(), &Asked { prompt: &long, ..asked() }), ["prompt"]);
        let with_role = Asked { prompt: &whole, prompt_field: "promptNodeId", roles: &[Some(Role::Style)], ..asked() };
        assert_eq!(fields(&model(), &with_role), ["promptNodeId"], "the role is described in the prompt");
    }
}
