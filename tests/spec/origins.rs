//! Origins: what uploads claim, what outputs are made of, and the marks in files (docs/reference/assets.md#origin).

use e2e::api::{key, text};
use e2e::{Stack, User, images};
use serde_json::{Value, json};

const IPTC: &str = "http://cv.iptc.org/newscodes/digitalsourcetype/";
const YES: &str = "trainedAlgorithmicMedia";
const PARTLY: &str = "compositeWithTrainedAlgorithmicMedia";

/// An XMP packet as other programs write it: some properties, and this one.
fn packet(property: &str) -> Vec<u8> {
    format!(
        "<?xpacket begin='\u{feff}' id='W5M0MpCehiHzreSzNTczkc9d'?><x:xmpmeta xmlns:x='adobe:ns:meta/'>\
         <rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>\
         <rdf:Description rdf:about='' xmlns:xmp='http://ns.adobe.com/xap/1.0/' xmp:CreatorTool='A tool' \
         xmlns:Iptc4xmpExt='http://iptc.org/std/Iptc4xmpExt/2008-02-29/' {property}\
         </rdf:Description></rdf:RDF></x:xmpmeta>{}<?xpacket end='w'?>",
        " ".repeat(2000)
    )
    .into_bytes()
}

/// A JPEG with this property in its metadata (XMP Specification, part 3, 1.1.3).
fn jpeg(property: &str) -> Vec<u8> {
    let data = [b"http://ns.adobe.com/xap/1.0/\0", &packet(property)[..]].concat();
    let length = u16::try_from(data.len() + 2).expect("fits").to_be_bytes();
    let plain = images::jpeg(64, 48);
    [&plain[..2], &[0xff, 0xe1], &length, &data, &plain[2..]].concat()
}

/// A WebP with this property in its metadata, in its last chunk (RFC 9649, 2.7).
fn webp(property: &str) -> Vec<u8> {
    let (plain, packet) = (images::webp(64, 48), packet(property));
    let chunk = |name: &[u8; 4], data: &[u8]| {
        [&name[..], &(data.len() as u32).to_le_bytes(), data, &vec![0; data.len() % 2]].concat()
    };
    let head = chunk(b"VP8X", &[4, 0, 0, 0, 63, 0, 0, 47, 0, 0]);
    let chunks = [b"WEBP", &head[..], &plain[12..], &chunk(b"XMP ", &packet)].concat();
    [b"RIFF", &(chunks.len() as u32).to_le_bytes()[..], &chunks].concat()
}

fn of(term: &str) -> String {
    format!("><Iptc4xmpExt:DigitalSourceType>{IPTC}{term}</Iptc4xmpExt:DigitalSourceType>")
}

/// The term that a file or document carries, read as text.
fn mark(file: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(file).into_owned();
    let (_, after) = text.split_once("<Iptc4xmpExt:DigitalSourceType>")?;
    let (uri, after) = after.split_once("</Iptc4xmpExt:DigitalSourceType>")?;
    assert!(!after.contains("DigitalSourceType>"), "there is one");
    uri.strip_prefix(IPTC).map(str::to_owned)
}

fn origin(asset: &Value) -> (Option<&str>, Option<&str>, &str) {
    (asset["origin"].as_str(), asset["originFrom"].as_str(), text(asset, "/aiGenerated"))
}

async fn content(user: &User, asset: &str) -> Vec<u8> {
    user.get(&format!("/assets/{asset}/content")).await.expect(200).body.to_vec()
}

/// The asset that an Action makes of these inputs.
async fn made(user: &User, canvas: &str, action: &str, inputs: &[&Value], params: Value) -> Value {
    let target = user.slot(canvas).await;
    let inputs: Vec<&str> = inputs.iter().map(|input| text(input, "/handle")).collect();
    let request = json!({
        "canvasId": canvas, "baseRevision": user.canvas(canvas).await["revision"], "idempotencyKey": key(),
        "targetNodeId": target, "inputs": inputs, "params": params,
    });
    let job = user.send(&format!("/actions/{action}/runs"), &request).await.expect(202).json();
    let job = user.finished(&job).await;
    let image = &job["images"][0];
    let asset = user.get(&format!("/assets/{}", text(image, "/assetId"))).await.ok()["asset"].clone();
    assert_eq!(image["aiGenerated"], asset["aiGenerated"], "{job}");
    let node = user.get(&format!("/canvases/{canvas}/nodes/{target}")).await.ok();
    assert_eq!(node["aiGenerated"], asset["aiGenerated"], "{node}");
    asset
}

#[tokio::test]
async fn an_upload_has_the_origin_that_its_metadata_claim() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let attribute = format!("Iptc4xmpExt:DigitalSourceType='https://cv.iptc.org/newscodes/digitalsourcetype/{YES}'>");
    let resource = format!("><Iptc4xmpExt:DigitalSourceType rdf:resource='{IPTC}{PARTLY}'/>");
    let bare = format!("Iptc4xmpExt:DigitalSourceType='{YES}'>");
    let claim = Some("metadata");
    for (media_type, file, expected) in [
        ("image/jpeg", jpeg(&of(YES)), (Some(YES), claim, "yes")),
        ("image/jpeg", jpeg(&attribute), (Some(YES), claim, "yes")),
        ("image/jpeg", jpeg(&resource), (Some(PARTLY), claim, "partly")),
        ("image/webp", webp(&bare), (Some(YES), claim, "yes")),
        ("image/webp", webp(&of("digitalCapture")), (Some("digitalCapture"), claim, "unknown")),
        ("image/jpeg", jpeg(&of("madeUp")), (None, None, "unknown")),
        ("image/jpeg", jpeg(">"), (None, None, "unknown")),
        ("image/png", images::png(64, 48), (None, None, "unknown")),
    ] {
        let asset = user.upload(media_type, file.clone()).await;
        assert_eq!(origin(&asset), expected, "{asset}");
        let handle = text(&asset, "/handle");
        assert_eq!(origin(&user.get(&format!("/assets/{handle}")).await.ok()["asset"]), expected);
        assert_eq!(content(&user, handle).await, file, "stored as it came");
    }
}

#[tokio::test]
async fn assets_are_listed_by_whether_ai_made_them() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/handle").to_owned();
    for place in ["", &format!("&canvasId={canvas}")] {
        let upload = async |file: Vec<u8>| match place {
            "" => user.upload("image/jpeg", file).await,
            _ => user.upload_into(&canvas, "image/jpeg", file).await,
        };
        let yes = upload(jpeg(&of(YES))).await;
        let partly = upload(jpeg(&of(PARTLY))).await;
        let unknown = [upload(images::jpeg(6, 4)).await, upload(jpeg(&of("print"))).await];
        let listed = async |wanted: &str| {
            let list = user.get(&format!("/assets?aiGenerated={wanted}{place}")).await.ok();
            let assets = list["assets"].as_array().expect("a list").clone();
            let mut handles: Vec<Value> = assets.into_iter().map(|asset| asset["handle"].clone()).collect();
            handles.sort_by_key(ToString::to_string);
            handles
        };
        let mut both = unknown.map(|asset| asset["handle"].clone()).to_vec();
        both.sort_by_key(ToString::to_string);
        assert_eq!(listed("yes").await, [yes["handle"].clone()]);
        assert_eq!(listed("partly").await, [partly["handle"].clone()]);
        assert_eq!(listed("no").await, [] as [Value; 0]);
        assert_eq!(listed("unknown").await, both);
    }
    for wrong in ["", "Yes", "true", "yes,no"] {
        let refused = user.get(&format!("/assets?aiGenerated={wrong}")).await;
        refused.expect_error(400, "input_validation_error", &["aiGenerated"]);
    }
    // A cursor belongs to its filter.
    user.upload("image/jpeg", jpeg(&of(YES))).await;
    let page = user.get("/assets?aiGenerated=yes&limit=1").await.ok();
    let cursor = text(&page, "/page/nextCursor");
    user.get(&format!("/assets?aiGenerated=yes&limit=1&cursor={cursor}")).await.expect(200);
    user.get(&format!("/assets?limit=1&cursor={cursor}")).await.expect(400);
}

#[tokio::test]
async fn what_was_made_with_ai_stays_so_through_actions() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/handle").to_owned();
    let ai = user.upload_into(&canvas, "image/jpeg", jpeg(&of(YES))).await;
    let photo = user.upload_into(&canvas, "image/jpeg", jpeg(&of("digitalCapture"))).await;
    let service = Some("service");
    let small = made(&user, &canvas, "resize", &[&ai], json!({"width": 16, "format": "webp"})).await;
    let titled = made(&user, &canvas, "add-text-to-image", &[&ai], json!({"text": "a"})).await;
    let beside = made(&user, &canvas, "side-by-side-composite", &[&photo, &small], json!({"format": "png"})).await;
    for (asset, term, answer) in [(&small, YES, "yes"), (&titled, PARTLY, "partly"), (&beside, PARTLY, "partly")] {
        assert_eq!(origin(asset), (Some(term), service, answer));
        let handle = text(asset, "/handle");
        assert_eq!(mark(&content(&user, handle).await).as_deref(), Some(term));
        let preview = stack.anonymous().get(text(asset, "/previewUrl")).await.expect(200).body;
        assert_eq!(mark(&preview).as_deref(), Some(term));
        let rendition = user.get(&format!("/assets/{handle}/content?w=64")).await.expect(200).body;
        assert_eq!(mark(&rendition).as_deref(), Some(term));
    }
    let photo = made(&user, &canvas, "resize", &[&photo], json!({"width": 16})).await;
    assert_eq!(origin(&photo), (None, None, "unknown"));
    assert_eq!(mark(&content(&user, text(&photo, "/handle")).await), None);
}

/// An image of the embedded runtime.
async fn sketch(user: &User, canvas: &str) -> Value {
    let target = user.slot(canvas).await;
    let request = json!({
        "canvasId": canvas, "baseRevision": user.canvas(canvas).await["revision"], "targetNodeId": target,
        "model": "sketch", "prompt": key(), "idempotencyKey": key(),
    });
    let job = user.finished(&user.send("/images/generate", &request).await.expect(202).json()).await;
    user.get(&format!("/assets/{}", text(&job, "/images/0/assetId"))).await.ok()["asset"].clone()
}

#[tokio::test]
async fn an_output_that_is_uploaded_again_is_known() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 10).await;
    let canvas = text(&user.make_canvas().await, "/handle").to_owned();
    let drawn = sketch(&user, &canvas).await;
    let term = Some("algorithmicMedia");
    assert_eq!(origin(&drawn), (term, Some("service"), "no"));
    let file = content(&user, text(&drawn, "/handle")).await;
    assert_eq!(mark(&file).as_deref(), term);
    assert_eq!(origin(&user.upload("image/png", file.clone()).await), (term, Some("service"), "no"));
    // Of another account, only the file itself is known.
    let other = stack.user().await;
    assert_eq!(origin(&other.upload("image/png", file).await), (term, Some("metadata"), "unknown"));
}

/// The render of a canvas in a form, once every image is in it.
async fn render(user: &User, canvas: &str, form: &str) -> Vec<u8> {
    let path = format!("/canvases/{canvas}/render");
    let drawn = testkit::wait_for("a complete render", std::time::Duration::from_secs(30), async || {
        let reply = user.get(&path).header("accept", form).await.expect(200);
        reply.header("etag").is_some().then_some(reply.body.to_vec())
    });
    drawn.await
}

#[tokio::test]
async fn a_render_says_that_an_image_in_it_was_made_with_ai() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/handle").to_owned();
    user.upload_into(&canvas, "image/jpeg", jpeg(&of("digitalCapture"))).await;
    for form in ["image/svg+xml", "image/png"] {
        assert_eq!(mark(&render(&user, &canvas, form).await), None, "{form}");
    }
    user.upload_into(&canvas, "image/jpeg", jpeg(&of(YES))).await;
    let document = render(&user, &canvas, "image/svg+xml").await;
    assert_eq!(mark(&document).as_deref(), Some(PARTLY));
    let document = String::from_utf8(document).expect("UTF-8");
    let document = roxmltree::Document::parse(&document).expect("well-formed");
    let metadata = document.root_element().children().find(|child| child.has_tag_name("metadata")).expect("has some");
    assert_eq!(
        metadata.descendants().filter(roxmltree::Node::is_text).filter_map(|it| it.text()).collect::<String>(),
        format!("{IPTC}{PARTLY}")
    );
    assert_eq!(mark(&render(&user, &canvas, "image/png").await).as_deref(), Some(PARTLY));
}

#[tokio::test]
async fn files_and_renders_carry_no_origin() {
    let stack = &Stack::builder().image_workers(1).env("CANVAS_ORIGIN_MARKS", "off").start().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/handle").to_owned();
    let ai = user.upload_into(&canvas, "image/jpeg", jpeg(&of(YES))).await;
    let small = made(&user, &canvas, "resize", &[&ai], json!({"width": 16})).await;
    assert_eq!(origin(&small), (Some(YES), Some("service"), "yes"));
    assert_eq!(mark(&content(&user, text(&small, "/handle")).await), None);
    for form in ["image/svg+xml", "image/png"] {
        assert_eq!(mark(&render(&user, &canvas, form).await), None, "{form}");
    }
    assert_eq!(mark(&content(&user, text(&ai, "/handle")).await).as_deref(), Some(YES), "uploads are never changed");
}
