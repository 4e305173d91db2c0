use domain::graph::Role;
use domain::limits::PROMPT_MAX;
use domain::model::{Capability, ModelParameterType, ProviderKind, STAND_INS};
use serde_json::{Value, json};

use super::*;

fn valid() -> Value {
    json!({
        "id": "m-1", "name": "M 1", "provider": "openai", "type": "image",
        "capabilities": ["image.generate", "image.edit"], "estimatedSeconds": 20, "promptMax": 8000,
        "references": {"max": 16}, "sizes": ["1024x1024"]
    })
}

fn extend(change: impl FnOnce(&mut Value)) -> Result<Catalogue, String> {
    let mut entry = valid();
    change(&mut entry);
    let file = json!({"models": [entry]}).to_string();
    Catalogue::built_in().unwrap().extended("own.json", &file).map_err(|error| match error {
        CatalogueError::Form { source, .. } => source.to_string(),
        other => other.to_string(),
    })
}

#[test]
fn the_built_in_catalogue_is_valid_and_has_models_of_every_provider() {
    let catalogue = Catalogue::built_in().unwrap();
    for provider in ProviderKind::ALL {
        assert!(catalogue.for_provider(*provider).next().is_some(), "{provider}");
    }
    for id in STAND_INS {
        assert_eq!(catalogue.find(ProviderKind::Managed, id).unwrap().runtime, Runtime::Embedded);
    }
}

#[test]
fn every_file_holds_one_provider() {
    for kind in ProviderKind::ALL {
        let file: File = serde_json::from_str(built_in(*kind)).unwrap();
        assert!(file.models.iter().all(|entry| entry.provider == *kind), "{kind}");
    }
}

#[test]
fn parameters_tell_what_a_model_takes() {
    let catalogue = extend(|_| ()).unwrap();
    let entry = catalogue.find(ProviderKind::OpenAi, "m-1").unwrap();
    let names: Vec<_> = entry.parameters().into_iter().map(|it| (it.name, it.required)).collect();
    assert_eq!(names, [("prompt".into(), true), ("references".into(), false), ("size".into(), false)]);
    assert!(entry.parameters()[2].offers(&json!("1024x1024")) && !entry.parameters()[2].offers(&json!("1x1")));
}

#[test]
fn a_mask_is_a_parameter_of_edits() {
    let catalogue = Catalogue::built_in().unwrap();
    let of = |provider, id| {
        let parameters = catalogue.find(provider, id).unwrap().parameters();
        let mask = parameters.into_iter().find(|it| it.name == "mask")?;
        assert_eq!((mask.kind, mask.max), (ModelParameterType::Images, Some(1.0)));
        assert_eq!(mask.capabilities, [Capability::ImageEdit]);
        Some((mask.options[0].value.as_str().unwrap().to_owned(), mask.required, mask.min))
    };
    let native = |is_required: bool| Some(("native".to_owned(), is_required, Some(f64::from(u8::from(is_required)))));
    assert_eq!(of(ProviderKind::OpenAi, "gpt-image-2"), native(false));
    assert_eq!(of(ProviderKind::Stability, "stable-image-inpaint"), native(true));
    assert_eq!(of(ProviderKind::Stability, "stable-image-ultra"), Some(("composited".into(), false, Some(0.0))));
    assert_eq!(of(ProviderKind::Stability, "stable-image-core"), None);
    for entry in catalogue.entries() {
        assert_eq!(entry.mask.is_some(), entry.capabilities.contains(&Capability::ImageEdit), "{}", entry.id);
    }
}

#[test]
fn the_size_of_a_masked_edit_is_one_of_the_shape_of_its_source() {
    let entry = |sizes: Value| {
        extend(|entry| entry["sizes"] = sizes).unwrap().find(ProviderKind::OpenAi, "m-1").unwrap().as_ref().clone()
    };
    let wide = entry(json!(["auto", "1024x1024", "1536x1024", "3:2", "16:9"]));
    for (source, size) in [
        ((600, 400), Some("1536x1024")),
        ((606, 400), Some("1536x1024")),
        ((610, 400), None),
        ((1920, 1080), Some("16:9")),
    ] {
        assert_eq!(wide.size_like(source), size, "{source:?}");
    }
    let mut follows = entry(json!(["3:2"]));
    follows.wire.size_from_reference = true;
    assert_eq!(follows.size_like((600, 400)), None);
}

#[test]
fn an_image_without_which_every_start_is_refused_is_required() {
    let catalogue = Catalogue::built_in().unwrap();
    let mut found = std::collections::BTreeSet::new();
    for entry in catalogue.entries().filter(|entry| entry.kind != EntryType::Text) {
        let parameters = entry.parameters();
        let required = |name: &str| parameters.iter().any(|it| it.name == name && it.required);
        let all = |of: &[Capability]| entry.capabilities.iter().all(|it| of.contains(it));
        let first = all(&[Capability::VideoFromImage, Capability::VideoFromFrames]);
        let last = all(&[Capability::VideoFromFrames]);
        let references = all(&[Capability::VideoFromReferences]);
        assert_eq!((required("firstFrame"), required("lastFrame")), (first, last), "{}", entry.id);
        if entry.kind == EntryType::Video {
            assert_eq!(required("references"), references, "{}", entry.id);
        }
        let least = parameters.iter().find(|it| it.name == "references").and_then(|it| it.min);
        assert!(!references || least >= Some(1.0), "{}", entry.id);
        found.insert((first, last, references));
    }
    assert_eq!(found.len(), 4, "the catalogue has models of each kind");
}

#[test]
fn every_managed_model_takes_whatever_a_request_may_hold() {
    // The longest prompt in characters that take two UTF-16 code units each: the prompt itself,
    // eight Elements with a name and guidelines, and sixteen spelled-out roles.
    let elements = 8 * (160 + 2000 + ":\n\n\n".len());
    let words = "🪁".repeat(PROMPT_MAX + elements);
    let reported = |role: &Role| crate::instruction(Capability::ImageEdit, &words, [Some(*role); 16].into_iter());
    let longest = Role::ALL.iter().map(|role| reported(role).encode_utf16().count()).max().unwrap();
    let catalogue = Catalogue::built_in().unwrap();
    for entry in catalogue.for_provider(ProviderKind::Managed).filter(|entry| entry.kind != EntryType::Text) {
        assert!(entry.prompt_max >= longest, "{} takes {} of {longest}", entry.id, entry.prompt_max);
    }
}

#[test]
fn the_limit_of_a_prompt_is_stated_as_the_model_counts() {
    for (most, reported) in [(1000, 1000.0), (8000, 8000.0), (8001, 8000.0), (65_536, 8000.0)] {
        let catalogue = extend(|entry| entry["promptMax"] = json!(most)).unwrap();
        let prompt = catalogue.find(ProviderKind::OpenAi, "m-1").unwrap().parameters().remove(0);
        assert_eq!((prompt.name.as_str(), prompt.max), ("prompt", Some(reported)));
        assert!(prompt.description.contains(&format!("at most {most} UTF-16 code units")), "{}", prompt.description);
    }
}

#[test]
fn a_file_adds_replaces_and_retires() {
    let catalogue = Catalogue::built_in().unwrap();
    let first = catalogue.for_provider(ProviderKind::OpenAi).next().unwrap().id.clone();
    let mut entry = valid();
    entry["id"] = json!(first);
    let file = json!({"models": [entry, valid()], "retired": ["managed/sketch"]}).to_string();
    let changed = catalogue.extended("own.json", &file).unwrap();
    let openai: Vec<_> = changed.for_provider(ProviderKind::OpenAi).collect();
    assert_eq!((openai[0].id.as_str(), openai[0].name.as_str()), (first.as_str(), "M 1"));
    assert_eq!(openai.last().unwrap().id, "m-1");
    assert!(changed.find(ProviderKind::Managed, "sketch").is_none());
    let again = changed.extended("own.json", r#"{"retired": ["managed/sketch"]}"#).unwrap_err();
    assert!(again.to_string().contains("retires `managed/sketch`"), "{again}");
}

#[test]
fn every_broken_rule_is_named() {
    let cases: [(&str, Value, &str); 21] = [
        ("id", json!(""), "1 to 240"),
        ("id", json!("x".repeat(241)), "1 to 240"),
        ("id", json!("model:x"), "handle"),
        ("name", json!(" "), "name"),
        ("estimatedSeconds", json!(0), "at least 1"),
        ("promptMax", json!(0), "promptMax"),
        ("runtime", json!("comfy"), "runtime"),
        ("creditCost", json!(1), "creditCost must be 0"),
        ("provider", json!("managed"), "creditCost must be at least 1"),
        ("capabilities", json!([]), "capabilities"),
        ("capabilities", json!(["video.generate"]), "does not match the type"),
        ("capabilities", json!(["image.edit", "image.edit"]), "distinct"),
        ("references", json!(null), "need references"),
        ("references", json!({"max": 17}), "at most 16"),
        ("references", json!({"min": 2, "max": 1}), "exceed"),
        ("sizes", json!(["a", "a"]), "distinct"),
        ("durations", json!([121]), "1 to 120"),
        ("wire", json!({"size": {"form": "box"}, "workflow": {}}), "workflow"),
        ("mask", json!("sometimes"), "unknown variant"),
        ("maskRequired", json!(true), "needs a mask"),
        ("unknown", json!(1), "unknown field"),
    ];
    for (field, value, expected) in cases {
        let error = extend(|entry| entry[field] = value.clone()).unwrap_err();
        assert!(error.contains(expected), "{field} = {value}: {error}");
    }
    let masked = |change: &dyn Fn(&mut Value)| {
        extend(|entry| {
            (entry["mask"], entry["maskRequired"]) = (json!("native"), json!(true));
            (entry["provider"], entry["wire"]) = (json!("fal"), json!({"mask": "mask_url"}));
            change(entry);
        })
        .map(drop)
    };
    assert_eq!(masked(&|_| ()), Ok(()));
    for (field, value, expected) in [
        ("capabilities", json!(["image.generate"]), "with image.edit"),
        ("maskRequired", json!(false), "must have maskRequired"),
        ("wire", json!({}), "needs wire.mask"),
    ] {
        let error = masked(&|entry| entry[field] = value.clone()).unwrap_err();
        assert!(error.contains(expected), "{field} = {value}: {error}");
    }
    for (id, runtime, is_valid) in
        [("m-1", "embedded", false), ("sketch", "openai", false), ("sketch", "embedded", true), ("m-1", "openai", true)]
    {
        let managed = extend(|entry| {
            (entry["id"], entry["runtime"]) = (json!(id), json!(runtime));
            (entry["provider"], entry["creditCost"]) = (json!("managed"), json!(1));
        });
        match managed {
            Ok(_) => assert!(is_valid, "{id} on {runtime}"),
            Err(error) => assert!(!is_valid && error.contains("embedded runtime"), "{id} on {runtime}: {error}"),
        }
    }
    let boxed = extend(|entry| {
        entry["wire"] = json!({"size": {"form": "box"}});
        entry["sizes"] = json!(["16:9"]);
    });
    assert!(boxed.unwrap_err().contains("WxH"));
    let comfy = |wire: Value| {
        extend(|entry| {
            let video = json!({
                "provider": "managed", "type": "video", "runtime": "comfy", "creditCost": 1,
                "capabilities": ["video.generate"], "references": null, "sizes": [], "durations": [5],
                "aspectRatios": ["16:9", "1:1"], "resolutions": ["720p"], "wire": wire
            });
            entry.as_object_mut().unwrap().extend(video.as_object().unwrap().clone());
        })
    };
    let both = json!({"16:9 720p": "1280x720", "1:1 720p": "720x720"});
    assert!(comfy(json!({"workflow": {}, "framesPerSecond": 16, "boxes": both})).is_ok());
    for (wire, expected) in [
        (json!({"workflow": {}, "framesPerSecond": 16, "boxes": {"16:9 720p": "1280x720"}}), "wire.boxes"),
        (
            json!({"workflow": {}, "framesPerSecond": 16, "boxes": {"16:9 720p": "wide", "1:1 720p": "1x1"}}),
            "wire.boxes",
        ),
        (json!({"workflow": {}, "boxes": both}), "framesPerSecond"),
    ] {
        assert!(comfy(wire).unwrap_err().contains(expected), "{expected}");
    }
    let duplicate = json!({"models": [valid(), valid()]}).to_string();
    assert!(
        Catalogue::built_in()
            .unwrap()
            .extended("own.json", &duplicate)
            .unwrap_err()
            .to_string()
            .contains("is a duplicate")
    );
}

#[test]
fn ids_of_240_characters_and_16_references_are_taken() {
    assert!(extend(|entry| entry["id"] = json!("x".repeat(240))).is_ok());
    assert!(extend(|entry| entry["references"] = json!({"max": 16})).is_ok());
}
