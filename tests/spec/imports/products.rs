//! `POST /product-references/import` (docs/reference/imports.md#import-product-references).

use e2e::api::text;
use e2e::{Stack, images};
use serde_json::{Value, json};
use testkit::Receiver;

use super::{canvas, file, html, import_product, nodes, png, product_request, serve};

/// A page whose JSON-LD describes a product with these images.
fn linked(images: &[&str]) -> String {
    let product = json!({"@context": "https://schema.org", "@type": "Product", "name": "Boots", "image": images});
    format!("<html><head><script type='application/ld+json'>{product}</script></head><body></body></html>")
}

fn variant_page() -> String {
    let variant = |color: &str, size: &str, image: &str| json!({"@type": "Product", "color": color, "size": size, "image": image});
    let group = json!({
        "@context": "https://schema.org", "@type": "ProductGroup", "name": "Boots", "variesBy": ["https://schema.org/color"],
        "hasVariant": [variant("Red", "41", "/red.png"), variant("Red", "42", "/red.png"), variant("Blue", "41", "/blue.png")],
    });
    format!("<script type='application/ld+json'>{group}</script>")
}

fn variants(shop: &Receiver) {
    serve(
        shop,
        vec![
            html("/boots", &variant_page()),
            png("/red.png", images::scene(300, 200, 1)),
            png("/blue.png", images::scene(300, 200, 2)),
        ],
    );
}

#[tokio::test]
async fn images_that_exist_as_avif_alone_are_converted() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let picture =
        "<div class=product-gallery><picture><source type=image/avif srcset='/2.avif 320w'><img alt=2></picture></div>";
    serve(
        &shop,
        vec![
            html("/linked", &linked(&["/1.avif"])),
            html("/picture", picture),
            file("/1.avif", "image/avif", images::avif(images::avif::LARGE)),
            file("/2.avif", "image/avif", images::avif(images::avif::LARGE)),
        ],
    );
    let canvas = canvas(&user).await;
    for (page, source) in [("/linked", "/1.avif"), ("/picture", "/2.avif")] {
        let import = import_product(&user, &canvas, &shop.url(page), json!({})).await.ok();
        assert_eq!((text(&import, "/status"), &import["pack"]["imageCount"]), ("succeeded", &json!(1)), "{page}");
        let image = &import["images"][0];
        assert_eq!(
            (text(image, "/mediaType"), text(image, "/sourceImageUrl")),
            ("image/jpeg", shop.url(source).as_str())
        );
        assert_eq!((&image["width"], &image["height"]), (&json!(320), &json!(240)));
    }
}

#[tokio::test]
async fn a_gallery_becomes_a_section_of_images() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let body =
        linked(&["/1.png", "media/2.jpg"]) + "<img src='/icons/cart.png'><img src=/small.png><img src=/3.webp alt=3>";
    serve(
        &shop,
        vec![
            html("/p/boots", &body),
            png("/1.png", images::scene(600, 600, 1)),
            file("/p/media/2.jpg", "image/jpeg", images::jpeg(400, 300)),
            png("/small.png", images::scene(199, 400, 3)),
            file("/3.webp", "image/webp", images::webp(200, 200)),
            png("/icons/cart.png", images::scene(32, 32, 4)),
        ],
    );
    let canvas = canvas(&user).await;
    let url = shop.url("/p/boots");
    let import = import_product(&user, &canvas, &url, json!({})).await.ok();
    assert_eq!((text(&import, "/status"), &import["replayed"]), ("succeeded", &json!(false)));
    assert_eq!(import["canvasId"], format!("canvas:{}:{canvas}", user.uid));
    assert_eq!(import["page"], json!({"url": url, "resolvedUrl": url}));
    assert_eq!(import["variant"], json!({"evidence": "not_requested"}));
    let skipped = json!([{"reason": "icon", "count": 1}, {"reason": "too_small", "count": 1}]);
    assert_eq!(import["discovery"], json!({"discoveredCandidateCount": 5, "skippedImageCount": 2, "skipped": skipped}));
    assert_eq!((&import["pack"]["title"], &import["pack"]["imageCount"]), (&json!("Product References"), &json!(3)));
    let images = import["images"].as_array().expect("images");
    let sources: Vec<_> = images.iter().map(|image| text(image, "/sourceImageUrl").to_owned()).collect();
    assert_eq!(sources, ["/1.png", "/p/media/2.jpg", "/3.webp"].map(|path| shop.url(path)));
    let kinds: Vec<_> = images.iter().map(|image| text(image, "/mediaType")).collect();
    assert_eq!(kinds, ["image/png", "image/jpeg", "image/webp"]);
    let now = user.canvas(&canvas).await;
    assert_eq!(import["canvasRevision"], now["revision"]);
    let nodes = now["nodes"].as_array().expect("nodes");
    let section = nodes.iter().find(|node| node["id"] == import["pack"]["sectionId"]).expect("the Section");
    assert_eq!((&section["type"], &section["metadata"]["section"]), (&json!("sticky"), &json!(true)));
    assert_eq!(section["title"], "Product References");
    assert_eq!((&section["metadata"]["source"]["pageUrl"], nodes.len()), (&json!(url), 4));
    for image in images {
        let node = nodes.iter().find(|node| node["handle"] == image["nodeId"]).expect("its node");
        assert_eq!((&node["asset"], &node["metadata"]["sectionId"]), (&image["assetId"], &section["id"]));
        assert_eq!(
            (&node["metadata"]["provenance"]["kind"], &node["metadata"]["source"]["pageUrl"]),
            (&json!("import"), &json!(url))
        );
        stack.anonymous().get(text(image, "/previewUrl")).await.expect(200);
    }
    let activity = &user.get(&format!("/canvases/{canvas}")).await.ok()["activity"][0];
    assert_eq!(
        (&activity["type"], activity["nodeIds"].as_array().map(Vec::len)),
        (&json!("references.imported"), Some(4))
    );
}

#[tokio::test]
async fn a_pack_stands_tidily_beside_the_content() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let sizes = [(600, 400), (400, 600), (500, 500), (900, 300), (300, 800)];
    let names = ["/0.png", "/1.png", "/2.png", "/3.png", "/4.png"];
    let mut files = vec![html("/boots", &linked(&names))];
    for (index, (name, (width, height))) in names.into_iter().zip(sizes).enumerate() {
        files.push(png(name, images::scene(width, height, index as u8 + 1)));
    }
    serve(&shop, files);
    let canvas = canvas(&user).await;
    let note = json!({"type": "node.create", "node": {"type": "text", "position": {"x": 100, "y": -50}, "metadata": {"content": "Boots"}}});
    user.apply(&canvas, json!([note])).await;
    for title in ["Boots", "Boots again"] {
        import_product(&user, &canvas, &shop.url("/boots"), json!({"title": title})).await.ok();
    }
    let review = user.get(&format!("/canvases/{canvas}/review")).await.ok();
    assert_eq!((&review["validation"]["status"], &review["validation"]["findings"]), (&json!("ok"), &json!([])));
    assert_eq!(review["validation"]["completionReview"]["doneClaimAllowed"], true);
    let sections: Vec<Value> =
        nodes(&user, &canvas).await.into_iter().filter(|node| node["type"] == "sticky").collect();
    assert!(sections.iter().all(|section| section["position"]["y"] == -50.0), "level with the content: {sections:?}");
    // Renders have the images once their renditions exist.
    let png = testkit::wait_for("a render with all images", e2e::PATIENCE, async || {
        let render = user.get(&format!("/canvases/{canvas}/render")).header("accept", "image/png").await;
        (render.status == 200 && render.header("etag").is_some()).then_some(render.body)
    });
    let png = png.await;
    assert!(images::size(&png).0 > images::size(&png).1, "two packs side by side");
    if let Ok(directory) = std::env::var("E2E_KEEP") {
        std::fs::write(format!("{directory}/pack.png"), &png).expect("writes the render");
    }
}

#[tokio::test]
async fn a_variant_is_taken_when_the_page_ties_it_to_images() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    variants(&shop);
    let canvas = canvas(&user).await;
    let import =
        import_product(&user, &canvas, &shop.url("/boots"), json!({"variantSelector": "color=Blue"})).await.ok();
    assert_eq!(import["variant"], json!({"selector": "color=Blue", "evidence": "exact"}));
    assert_eq!(
        (&import["pack"]["imageCount"], text(&import, "/images/0/sourceImageUrl")),
        (&json!(1), &*shop.url("/blue.png"))
    );
    let skipped = json!([{"reason": "variant", "count": 1}]);
    assert_eq!(import["discovery"], json!({"discoveredCandidateCount": 2, "skippedImageCount": 1, "skipped": skipped}));
    assert_eq!(nodes(&user, &canvas).await.len(), 2);
}

/// Asserts a review with this reason and evidence, and that nothing was created.
async fn reviewed(user: &e2e::User, canvas: &str, import: &Value, reason: &str, evidence: &str) {
    assert_eq!((text(import, "/status"), &import["reviewRequired"]), ("review_required", &json!(true)), "{import}");
    assert_eq!((text(import, "/reason"), text(import, "/variant/evidence")), (reason, evidence), "{import}");
    assert_eq!(import["canvasId"], format!("canvas:{}:{canvas}", user.uid));
    assert!(import["page"]["resolvedUrl"].is_string() && import["discovery"]["discoveredCandidateCount"].is_u64());
    assert!(import.get("pack").is_none() && import.get("images").is_none());
    assert!(nodes(user, canvas).await.is_empty(), "nothing was created");
}

#[tokio::test]
async fn several_variants_in_different_images_need_a_selection() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    variants(&shop);
    let canvas = canvas(&user).await;
    let import = import_product(&user, &canvas, &shop.url("/boots"), json!({})).await.ok();
    reviewed(&user, &canvas, &import, "variant_selection_required", "selection_required").await;
    assert_eq!(import["discovery"]["discoveredCandidateCount"], 2);
    assert_eq!(shop.requests().len(), 1, "no image was fetched");
    let product = ["import", "product", &shop.url("/boots"), "--on", &canvas];
    let stdout = stack.shell(&user).run(&product).await.expect(1).stdout;
    assert_eq!(stdout, "nothing was imported: variant_selection_required\n");
    assert!(nodes(&user, &canvas).await.is_empty());
    let chosen = stack.shell(&user).run(&[&product[..], &["--variant", "color=Blue"]].concat()).await.expect(0).stdout;
    assert!(chosen.starts_with("node:") && chosen.contains(" asset:"), "{chosen}");
}

#[tokio::test]
async fn a_selector_that_nothing_ties_to_images_needs_a_review() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    variants(&shop);
    let canvas = canvas(&user).await;
    for selector in ["color=Green", "color=blue", "Color=Blue", "color = Blue", "width=Wide"] {
        let import =
            import_product(&user, &canvas, &shop.url("/boots"), json!({"variantSelector": selector})).await.ok();
        assert_eq!(import["variant"]["selector"], selector);
        reviewed(&user, &canvas, &import, "variant_evidence_unavailable", "unavailable").await;
    }
}

#[tokio::test]
async fn a_page_without_images_needs_a_review() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    serve(&shop, vec![html("/about", "<!doctype html><title>About</title><p>No pictures.")]);
    let canvas = canvas(&user).await;
    let import = import_product(&user, &canvas, &shop.url("/about"), json!({})).await.ok();
    reviewed(&user, &canvas, &import, "no_gallery_images_discovered", "not_requested").await;
    assert_eq!(import["discovery"], json!({"discoveredCandidateCount": 0, "skippedImageCount": 0, "skipped": []}));
}

#[tokio::test]
async fn a_page_of_unusable_images_needs_a_review() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let body = linked(&["/a.svg", "/gone.png", "/small.png", "/broken.png", "/text.png"]);
    serve(
        &shop,
        vec![
            html("/boots", &body),
            file("/a.svg", "image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg' width='400' height='400'/>"),
            png("/small.png", images::scene(400, 199, 1)),
            png("/broken.png", images::broken_png(400, 400)),
            html("/text.png", "<p>Not found"),
        ],
    );
    let canvas = canvas(&user).await;
    let import = import_product(&user, &canvas, &shop.url("/boots"), json!({})).await.ok();
    reviewed(&user, &canvas, &import, "no_supported_raster_images", "not_requested").await;
    let skipped = json!([
        {"reason": "too_small", "count": 1}, {"reason": "unusable", "count": 3}, {"reason": "unreachable", "count": 1},
    ]);
    assert_eq!(import["discovery"], json!({"discoveredCandidateCount": 5, "skippedImageCount": 5, "skipped": skipped}));
}

#[tokio::test]
async fn a_review_takes_no_key() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    variants(&shop);
    let canvas = canvas(&user).await;
    let mut request = product_request(&canvas, &shop.url("/boots"), json!({}));
    for _ in 0..2 {
        let import = user.send("/product-references/import", &request).await.ok();
        assert_eq!(import["status"], "review_required");
    }
    request["variantSelector"] = json!("color=Red");
    let import = user.send("/product-references/import", &request).await.ok();
    assert_eq!((text(&import, "/status"), &import["replayed"]), ("succeeded", &json!(false)));
    let again = user.send("/product-references/import", &request).await.ok();
    assert_eq!(again["replayed"], true);
    for same in ["canvasRevision", "page", "variant", "pack", "discovery"] {
        assert_eq!(import[same], again[same], "{same}");
    }
    assert_eq!(nodes(&user, &canvas).await.len(), 2);
}

#[tokio::test]
async fn twelve_images_are_brought_and_more_are_reported() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    const NAMES: [&str; 13] = [
        "/0.png", "/1.png", "/2.png", "/3.png", "/4.png", "/5.png", "/6.png", "/7.png", "/8.png", "/9.png", "/10.png",
        "/11.png", "/12.png",
    ];
    let mut files = vec![html("/twelve", &linked(&NAMES[..12])), html("/thirteen", &linked(&NAMES))];
    files.extend(NAMES.into_iter().enumerate().map(|(index, name)| png(name, images::scene(200, 200, index as u8))));
    serve(&shop, files);
    let canvas = canvas(&user).await;
    let twelve = import_product(&user, &canvas, &shop.url("/twelve"), json!({})).await.ok();
    assert_eq!(
        (&twelve["pack"]["imageCount"], &twelve["discovery"]),
        (&json!(12), &json!({"discoveredCandidateCount": 12, "skippedImageCount": 0, "skipped": []}))
    );
    let thirteen = import_product(&user, &canvas, &shop.url("/thirteen"), json!({})).await.ok();
    let skipped = json!([{"reason": "limit", "count": 1}]);
    assert_eq!(
        thirteen["discovery"],
        json!({"discoveredCandidateCount": 13, "skippedImageCount": 1, "skipped": skipped, "limited": true})
    );
    assert_eq!((&thirteen["pack"]["imageCount"], thirteen["images"].as_array().map(Vec::len)), (&json!(12), Some(12)));
}

#[tokio::test]
async fn one_image_at_several_sizes_is_brought_once_and_large() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let large = images::scene(1200, 900, 1);
    let small = raster::rendition(&large, 400).expect("is made").bytes;
    let body = linked(&["/hero.jpg", "/copy.png"])
        + "<div class=gallery><img src=/view-300x225.png srcset='/view-300x225.png 300w, /view.png 1200w'>\
           <img src=/twin.png><img src=/other.png></div>";
    serve(
        &shop,
        vec![
            html("/boots", &body),
            // The same image under another name, small and large, and a byte-identical copy.
            file("/hero.jpg", "image/jpeg", small),
            png("/copy.png", large.clone()),
            png("/twin.png", large),
            png("/view.png", images::scene(1200, 900, 3)),
            png("/view-300x225.png", images::scene(300, 225, 3)),
            png("/other.png", images::scene(300, 225, 4)),
        ],
    );
    let canvas = canvas(&user).await;
    let import = import_product(&user, &canvas, &shop.url("/boots"), json!({})).await.ok();
    let sizes: Vec<_> = import["images"].as_array().into_iter().flatten().map(|image| image["width"].clone()).collect();
    assert_eq!(sizes, [1200, 1200, 300], "{import}");
    let skipped = json!([{"reason": "duplicate", "count": 2}]);
    assert_eq!(import["discovery"], json!({"discoveredCandidateCount": 5, "skippedImageCount": 2, "skipped": skipped}));
    assert!(!shop.requests().iter().any(|request| request.path.contains("300x225")), "only the largest is fetched");
}

#[tokio::test]
async fn different_images_at_similar_addresses_are_all_brought() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let paths = ["/rug-160x230.png", "/rug-200x300.png", "/img?id=1&crop=left", "/img?id=1&crop=right"];
    let gallery: String = paths.iter().map(|path| format!("<li><img src='{path}'>")).collect();
    let mut files = vec![html("/rugs", &format!("<ul class=product-gallery>{gallery}</ul>"))];
    files.extend(paths.into_iter().enumerate().map(|(n, path)| png(path, images::scene(400, 300, n as u8 + 1))));
    serve(&shop, files);
    let canvas = canvas(&user).await;
    let import = import_product(&user, &canvas, &shop.url("/rugs"), json!({})).await.ok();
    assert_eq!((&import["pack"]["imageCount"], &import["discovery"]["skipped"]), (&json!(4), &json!([])), "{import}");
}

#[tokio::test]
async fn what_is_no_image_gives_way_to_src() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let body = "<div class=gallery><img data-src=/page src=/1.png><img data-lazy=true data-src='' src=/2.png>\
                <img srcset='/gone-4.png 4x, /gone-3.png 3x, /gone-2.png 2x, /gone-1.png 1x' src=/3.png>\
                <img data-src=/loading.png src=/4.png></div>";
    let mut files =
        vec![html("/boots", body), html("/page", "<p>A page"), png("/loading.png", images::scene(32, 32, 9))];
    let names = ["/1.png", "/2.png", "/3.png", "/4.png"];
    files.extend(names.into_iter().enumerate().map(|(n, name)| png(name, images::scene(400, 300, n as u8 + 1))));
    serve(&shop, files);
    let canvas = canvas(&user).await;
    let import = import_product(&user, &canvas, &shop.url("/boots"), json!({})).await.ok();
    let images = import["images"].as_array().expect("images");
    let sources: Vec<_> = images.iter().map(|image| text(image, "/sourceImageUrl").to_owned()).collect();
    assert_eq!(sources, names.map(|name| shop.url(name)));
}

#[tokio::test]
async fn skipped_images_are_counted_by_reason() {
    let stack = &Stack::with_workers().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    let body = "<header><img src=/house.png></header><p><img src=/sprite.png><img src=/a.png><img src=/copy.png>\
                <img src=/a.svg><img src=/gone.png><img src=/flat.png><img src=/b.png>";
    serve(
        &shop,
        vec![
            html("/boots", body),
            png("/a.png", images::scene(400, 300, 1)),
            png("/copy.png", images::scene(400, 300, 1)),
            png("/b.png", images::scene(200, 200, 2)),
            png("/flat.png", images::scene(400, 199, 3)),
            file("/a.svg", "image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg' width='400' height='400'/>"),
        ],
    );
    let canvas = canvas(&user).await;
    let import = import_product(&user, &canvas, &shop.url("/boots"), json!({})).await.ok();
    let reasons = ["outside_gallery", "icon", "too_small", "duplicate", "unusable", "unreachable"];
    let skipped: Vec<Value> = reasons.iter().map(|reason| json!({"reason": reason, "count": 1})).collect();
    assert_eq!(import["discovery"], json!({"discoveredCandidateCount": 8, "skippedImageCount": 6, "skipped": skipped}));
    assert_eq!(import["pack"]["imageCount"], 2);
}
