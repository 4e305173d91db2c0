//! Masks of edits (docs/reference/images.md#masks).

use e2e::api::{key, text};
use e2e::tools::{STATELESS, Tools};
use e2e::{Stack, images};
use raster::{decode, probe};
use serde_json::{Value, json};

use super::setting::Setting;

/// An image that is black on the left and white on the right.
fn halves(width: u32, height: u32) -> Vec<u8> {
    let gray = |x: u32| if x < width / 2 { 0 } else { 255 };
    let pixels = (0..height).flat_map(|_| (0..width).flat_map(|x| [gray(x); 3])).collect();
    let size = raster::Size::new(width, height);
    let image = raster::Bitmap::new(size, raster::Channels::Rgb, pixels).expect("as many as fit");
    let encoding = raster::Encoding { format: raster::OutputFormat::Png, quality: 90, flatten: raster::Color::WHITE };
    images::commented(&raster::encode(&image, &encoding).expect("encodes"))
}

/// A setting with a source of this size.
struct Masked {
    setting: Setting,
    source: String,
}

impl Masked {
    async fn new(stack: &Stack, width: u32, height: u32) -> Self {
        let setting = Setting::new(stack).await;
        let source = text(&setting.user.upload("image/png", images::png(width, height)).await, "/handle").to_owned();
        Self { setting, source }
    }

    async fn mask(&self, width: u32, height: u32) -> String {
        text(&self.setting.user.upload("image/png", halves(width, height)).await, "/handle").to_owned()
    }
}

#[tokio::test]
async fn a_mask_has_its_form_and_range() {
    let stack = &Stack::without_workers().await;
    let masked = Masked::new(stack, 60, 40).await;
    let (setting, mask) = (&masked.setting, masked.mask(60, 40).await);
    for (member, wrong, field) in [
        ("mask", json!(7), "mask"),
        ("mask", json!("asset:a:b:c"), "mask"),
        ("mask", json!({"mode": "alpha"}), "mask.handle"),
        ("mask", json!({"handle": mask, "mode": "red"}), "mask.mode"),
        ("mask", json!({"handle": mask, "invert": "yes"}), "mask.invert"),
        ("mask", json!({"handle": mask, "feather": 3}), "mask.feather"),
        ("maskFeather", json!(-1), "maskFeather"),
        ("maskFeather", json!(65), "maskFeather"),
        ("maskFeather", json!(1.5), "maskFeather"),
        ("maskComposite", json!("no"), "maskComposite"),
    ] {
        let mut request = json!({"source": masked.source, "mask": mask});
        request[member] = wrong;
        setting.invalid("edit", request, &[field]).await;
    }
    setting.invalid("edit", json!({"references": [masked.source], "mask": mask}), &["source"]).await;
    setting.invalid("edit", json!({"source": masked.source, "maskFeather": 1}), &["maskFeather"]).await;
    for operation in ["generate", "variations"] {
        setting.invalid(operation, json!({"source": masked.source, "mask": mask}), &["mask"]).await;
    }
    for feather in [0, 64] {
        let quote = json!({"source": masked.source, "mask": mask, "maskFeather": feather, "validateOnly": true});
        setting.start("edit", quote).await.expect(200);
    }
}

#[tokio::test]
async fn a_mask_is_a_readable_image_of_the_shape_of_the_source() {
    let stack = &Stack::without_workers().await;
    let masked = Masked::new(stack, 60, 40).await;
    let setting = &masked.setting;
    let elsewhere = Masked::new(stack, 60, 40).await.mask(60, 40).await;
    let empty = format!("node:{}", setting.user.slot(&setting.canvas).await);
    for refused in [elsewhere, empty, "asset:absent".to_owned(), masked.mask(40, 60).await, masked.mask(60, 43).await] {
        setting.unprocessable("edit", json!({"source": masked.source, "mask": refused}), &["mask"]).await;
    }
    for (width, height) in [(60, 40), (30, 20), (60, 41), (61, 40), (600, 400)] {
        let mask = masked.mask(width, height).await;
        let quote = json!({"source": masked.source, "mask": mask, "validateOnly": true});
        setting.start("edit", quote).await.expect(200);
    }
}

#[tokio::test]
async fn a_source_that_no_result_may_be_as_large_as_is_refused() {
    let stack = &Stack::without_workers().await;
    for (width, is_refused) in [(16_384, false), (16_385, true)] {
        let masked = Masked::new(stack, width, 1).await;
        let mask = masked.mask(width, 1).await;
        let quote = json!({"source": masked.source, "mask": mask, "validateOnly": true});
        match is_refused {
            true => masked.setting.unprocessable("edit", quote, &["source"]).await,
            false => drop(masked.setting.start("edit", quote).await.expect(200)),
        }
    }
}

#[tokio::test]
async fn a_model_says_how_it_takes_a_mask_and_others_are_refused() {
    let stack = &Stack::without_workers().await;
    let masked = Masked::new(stack, 60, 40).await;
    let (setting, mask) = (&masked.setting, masked.mask(60, 40).await);
    let connection =
        stack.connect_to(&setting.user.uid, "stability", "http://127.0.0.1:9", "sim-key-0123456789abcdef").await;
    let models = setting.user.get("/models?type=image").await.ok();
    let parameter = |id: &str| {
        let model = models["models"].as_array().expect("a list").iter().find(|model| model["modelId"] == id);
        let parameters = model.expect("is listed")["parameters"].as_array().expect("a list");
        parameters.iter().find(|parameter| parameter["name"] == "mask").cloned()
    };
    for (id, handling, is_required) in [
        ("sketch", "native", false),
        ("stable-image-ultra", "composited", false),
        ("stable-image-inpaint", "native", true),
    ] {
        let mask = parameter(id).expect("takes one");
        let options = mask["options"].as_array().expect("a list");
        let said = (&mask["type"], &mask["max"], &mask["required"], options.len(), &options[0]["value"]);
        assert_eq!(said, (&json!("image[]"), &json!(1.0), &json!(is_required), 1, &json!(handling)), "{mask}");
    }
    assert_eq!(parameter("stable-image-core"), None);
    let with = |model: &str| json!({"source": masked.source, "mask": mask, "model": model, "connectionId": connection});
    for model in ["stable-image-inpaint", "stable-image-ultra"] {
        let mut quote = with(model);
        quote["validateOnly"] = json!(true);
        setting.start("edit", quote).await.expect(200);
    }
    let unmasked = json!({"source": masked.source, "model": "stable-image-inpaint", "connectionId": connection});
    setting.unprocessable("edit", unmasked, &["mask"]).await;
}

#[tokio::test]
async fn two_spellings_of_a_mask_are_one_and_another_mask_is_another_request() {
    let stack = &Stack::without_workers().await;
    let masked = Masked::new(stack, 60, 40).await;
    let (setting, mask) = (&masked.setting, masked.mask(60, 40).await);
    let request = setting.request(json!({"source": masked.source, "mask": mask})).await;
    let job = setting.user.send("/images/edit", &request).await.expect(202).json();
    assert_eq!(job["references"], json!([masked.source, mask]), "what the job reads");
    assert_eq!(job["referenceInputs"], json!([{"handle": masked.source}]));
    let mut spelled = request.clone();
    spelled["mask"] = json!({"handle": mask, "mode": "auto", "invert": false});
    (spelled["maskFeather"], spelled["maskComposite"]) = (json!(8), json!(true));
    let replay = setting.user.send("/images/edit", &spelled).await.expect(202).json();
    assert_eq!((&replay["id"], &replay["replayed"]), (&job["id"], &json!(true)));
    for (member, other) in [
        ("mask", json!({"handle": mask, "invert": true})),
        ("mask", json!({"handle": mask, "mode": "alpha"})),
        ("maskFeather", json!(9)),
        ("maskComposite", json!(false)),
    ] {
        let mut changed = request.clone();
        changed[member] = other;
        setting.user.send("/images/edit", &changed).await.expect_error(409, "conflict", &[]);
    }
}

#[tokio::test]
async fn a_repetition_answers_from_the_record_when_the_mask_is_gone() {
    let stack = &Stack::without_workers().await;
    let masked = Masked::new(stack, 60, 40).await;
    let (setting, mask) = (&masked.setting, masked.mask(60, 40).await);
    let request = setting.request(json!({"source": masked.source, "mask": mask})).await;
    let job = setting.user.send("/images/edit", &request).await.expect(202).json();
    stack.admin(&["admin", "asset", "purge", "--asset", &mask, "--yes"]).await.expect_success();
    let replay = setting.user.send("/images/edit", &request).await.expect(202).json();
    assert_eq!((&replay["id"], &replay["replayed"]), (&job["id"], &json!(true)));
    setting.user.delete(text(&job, "/pollUrl")).await.expect(200);
    setting.unprocessable("edit", json!({"source": masked.source, "mask": mask}), &["mask"]).await;
}

#[tokio::test]
async fn a_masked_edit_that_owes_an_image_is_retried_with_its_mask() {
    let stack = &Stack::without_workers().await;
    let masked = Masked::new(stack, 60, 40).await;
    let (setting, mask) = (&masked.setting, masked.mask(60, 40).await);
    let tools = Tools::new(&setting.user, STATELESS).await;
    for (is_restored, more) in [
        (true, json!({"mask": mask})),
        (
            false,
            json!({"mask": {"handle": mask, "mode": "luminance", "invert": true}, "maskFeather": 3, "maskComposite": false}),
        ),
    ] {
        let mut request = json!({"source": masked.source, "references": [setting.asset], "asked": 2});
        request.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        let job = setting.job("edit", request).await;
        setting.user.delete(text(&job, "/pollUrl")).await.expect(200);
        let review = setting.user.get(&format!("/canvases/{}/review?repairs=true", setting.canvas)).await.ok();
        let works = review["repairs"]["works"].as_array().expect("works");
        let of_job = |work: &&Value| work["handle"] == job["run"] || work["handle"] == job["id"];
        let retry = &works.iter().find(of_job).expect("owes an image")["remedies"][0];
        assert_eq!((&retry["kind"], &retry["path"]), (&json!("retry"), &json!("/images/edit")), "{review}");
        let mut body = retry["body"].clone();
        assert_eq!((&body["source"], &body["mask"]["handle"]), (&json!(masked.source), &json!(mask)));
        assert_eq!(body["references"].as_array().map(Vec::len), Some(1));
        assert_eq!(body["references"][0]["handle"], json!(setting.asset));
        // The tool has no argument for an image that is not restored.
        let offered = tools.ok("canvas_review", json!({"canvas": setting.canvas})).await["next"].clone();
        let is_retry =
            |step: &&Value| step["tool"] == "image_generate" && step["arguments"]["retryOf"] == body["retryOf"];
        let offered = offered.as_array().expect("steps").iter().find(is_retry).cloned();
        assert_eq!(offered.is_some(), is_restored, "{offered:?}");
        if let Some(step) = offered {
            let mut call = step["arguments"].clone();
            call["wait"] = json!(0);
            tools.ok("image_generate", call).await;
            continue;
        }
        body["idempotencyKey"] = json!(key());
        let again = setting.user.send("/images/edit", &body).await.expect(202).json();
        assert_eq!(again["references"], job["references"]);
    }
}

#[tokio::test]
async fn an_edit_changes_what_the_mask_says_and_nothing_else() {
    let stack = &Stack::with_workers().await;
    let masked = Masked::new(stack, 90, 60).await;
    let setting = &masked.setting;
    // The mask is in the canvas, and no node shows it.
    let before = setting.user.canvas(&setting.canvas).await;
    let path = format!("/assets?canvasId={}&node=none", setting.canvas);
    let mask = setting.user.post(&path).body("image/png", halves(45, 30)).await.expect(201).json()["asset"].clone();
    assert_eq!(mask.get("node"), None, "{mask}");
    let after = setting.user.canvas(&setting.canvas).await;
    assert_eq!((&after["nodes"], &after["revision"]), (&before["nodes"], &before["revision"]));
    let mask = text(&mask, "/handle");

    let job = setting.job("edit", json!({"source": masked.source, "mask": mask})).await;
    let end = setting.user.finished(&job).await;
    assert_eq!((&end["status"], &end["images"][0]["masked"]), (&json!("succeeded"), &json!(true)), "{end}");
    let node = setting.read(&setting.target).await;
    assert_eq!(node["metadata"]["provenance"]["mask"], mask, "{node}");
    assert_eq!(node["metadata"]["provenance"].get("maskNotApplied"), None, "{node}");
    let content = |handle: &str| setting.user.get(&format!("/assets/{handle}/content"));
    let file = content(text(&end, "/images/0/assetId")).await.expect(200).body;
    let header = probe(&file).expect("an image");
    assert_eq!((header.width, header.height, header.format), (90, 60, raster::Format::Png));
    let source = decode(&content(&masked.source).await.expect(200).body).expect("decodes");
    let output = decode(&file).expect("decodes");
    let differs = |x, y| output.pixel(x, y) != source.pixel(x, y);
    let kept = (0..60).flat_map(|y| (0..44).map(move |x| (x, y)));
    assert!(kept.into_iter().all(|(x, y)| !differs(x, y)), "the left half is the source's");
    assert!((0..60).any(|y| (60..90).any(|x| differs(x, y))), "the right half is not");
}

#[tokio::test]
async fn an_upload_without_a_node_knows_no_other_word() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    for wrong in ["None", "image", ""] {
        let path = format!("/assets?canvasId={}&node={wrong}", setting.canvas);
        let refused = setting.user.post(&path).body("image/png", images::png(2, 2)).await;
        refused.expect_error(400, "input_validation_error", &["node"]);
    }
    // Without a canvas there is no node anyway.
    setting.user.post("/assets?node=none").body("image/png", images::png(2, 2)).await.expect(201);
}
