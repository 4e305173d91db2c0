//! Rules for an entry that its JSON structure does not express.

use domain::limits::IMAGE_REFERENCES_MAX;
use domain::model::{Capability, ProviderKind, is_stand_in};

use super::entry::{Entry, EntryType, MaskHandling, Runtime, SizeForm};

/// The maximum length of `Model.modelId`, and of `model` without its longest prefix.
const ID_MAX: usize = 240;
/// The maximum length of `size` and `quality` of a request.
const CHOICE_MAX: usize = 80;

/// The first rule that `entry` violates, worded to follow the entry's name.
pub(super) fn check(entry: &Entry) -> Result<(), String> {
    let require = |holds: bool, rule: &str| if holds { Ok(()) } else { Err(rule.to_owned()) };
    let managed = entry.provider == ProviderKind::Managed;
    let text = entry.kind == EntryType::Text;

    require((1..=ID_MAX).contains(&entry.id.chars().count()), "the id must have 1 to 240 characters")?;
    require(!entry.id.starts_with("model:"), "the id must not look like a handle")?;
    require(!entry.name.trim().is_empty(), "the name must not be empty")?;
    require(entry.estimated_seconds >= 1, "estimatedSeconds must be at least 1")?;
    require(entry.prompt_max >= 1, "promptMax must be at least 1")?;
    require(managed || entry.runtime == Runtime::default(), "only managed models have a runtime")?;
    require(
        (entry.runtime == Runtime::Embedded) == is_stand_in(entry.provider, &entry.id),
        "the embedded runtime runs `sketch`, `outline` and `animatic`, and no other runtime runs these ids",
    )?;
    match managed && !text {
        true => require(entry.credit_cost >= 1, "creditCost must be at least 1")?,
        false => require(entry.credit_cost == 0, "creditCost must be 0: only managed images and videos are charged")?,
    }

    require(
        text == entry.capabilities.is_empty(),
        "capabilities are required, except for text models, which must have none",
    )?;
    let video = entry.kind == EntryType::Video;
    require(
        entry.capabilities.iter().all(|it| it.is_video() == video),
        "a capability does not match the type of the model",
    )?;
    let mut seen = Vec::new();
    for capability in &entry.capabilities {
        require(!seen.contains(capability), "capabilities must be distinct")?;
        seen.push(*capability);
    }

    let takes_images = |it: &Capability| {
        matches!(it, Capability::ImageEdit | Capability::ImageVariations | Capability::VideoFromReferences)
    };
    if entry.capabilities.iter().any(takes_images) {
        require(entry.references_max() >= 1, "capabilities that take images need references")?;
    }
    require(entry.references_max() <= IMAGE_REFERENCES_MAX, "references.max must be at most 16")?;
    require(entry.references_min() <= entry.references_max(), "references.min must not exceed references.max")?;

    if entry.mask.is_some() {
        require(entry.capabilities.contains(&Capability::ImageEdit), "mask is for models with image.edit")?;
    }
    require(!entry.mask_required || entry.mask.is_some(), "maskRequired needs a mask")?;
    // A workflow without its mask cannot run.
    let is_native = entry.mask == Some(MaskHandling::Native);
    if is_native && (entry.wire.workflow.is_some() || entry.wire.mask.is_some()) {
        require(entry.mask_required, "a native mask in a workflow or field must have maskRequired")?;
    }
    let needs_field = matches!(
        entry.provider,
        ProviderKind::Replicate | ProviderKind::Fal | ProviderKind::Stability | ProviderKind::BlackForestLabs
    );
    require(!is_native || !needs_field || entry.wire.mask.is_some(), "a native mask of this provider needs wire.mask")?;

    require(entry.durations.iter().all(|it| (1..=120).contains(it)), "durations must be from 1 to 120")?;
    let choices = [
        ("sizes", &entry.sizes),
        ("qualities", &entry.qualities),
        ("aspectRatios", &entry.aspect_ratios),
        ("resolutions", &entry.resolutions),
    ];
    for (what, values) in choices {
        let fits = |value: &String| (1..=CHOICE_MAX).contains(&value.chars().count());
        require(values.iter().all(fits), &format!("{what} must have 1 to 80 characters each"))?;
        let distinct = values.iter().enumerate().all(|(index, value)| !values[..index].contains(value));
        require(distinct, &format!("{what} must be distinct"))?;
    }
    if entry.wire.size.as_ref().is_some_and(|size| size.form == SizeForm::Box) {
        require(entry.sizes.iter().all(|size| parse_box(size).is_some()), "sizes must be WxH for the form `box`")?;
    }
    let comfy = entry.runtime == Runtime::Comfy;
    require(
        comfy == entry.wire.workflow.is_some(),
        "wire.workflow is required for the runtime `comfy` and allowed for no other",
    )?;
    if comfy && video {
        let fits = |name: &String| entry.wire.boxes.get(name).is_some_and(|size| parse_box(size).is_some());
        let rule = "wire.boxes must have WxH for every aspect ratio with every resolution";
        require(box_names(entry).iter().all(fits), rule)?;
        let counts =
            entry.durations.is_empty() || entry.wire.frames_per_second.is_some_and(|rate| (1..=120).contains(&rate));
        require(counts, "wire.framesPerSecond must be from 1 to 120 where there are durations")?;
    }
    Ok(())
}

/// The keys of all sizes that a video can have; empty if there is no choice.
fn box_names(entry: &Entry) -> Vec<String> {
    let choices = |values: &[String]| match values {
        [] => vec![None],
        values => values.iter().cloned().map(Some).collect::<Vec<_>>(),
    };
    let resolutions = choices(&entry.resolutions);
    let of = |ratio: &Option<String>| {
        let name = |resolution: &Option<String>| Entry::box_name(ratio.as_deref(), resolution.as_deref());
        resolutions.iter().map(name).collect::<Vec<_>>()
    };
    choices(&entry.aspect_ratios).iter().flat_map(of).filter(|name| !name.is_empty()).collect()
}

/// Parses the width and height of `WxH`.
pub(crate) fn parse_box(size: &str) -> Option<(u32, u32)> {
    let (width, height) = size.split_once('x')?;
    Some((width.parse().ok()?, height.parse().ok()?)).filter(|(width, height)| *width > 0 && *height > 0)
}
