//! Tests of gallery discovery with pages like those of common shop systems.

use super::*;
use product::VARIANTS_MAX;

const PAGE: &str = "https://shop.example/products/item?ref=1";

macro_rules! page {
    ($name:literal) => {
        Gallery::read(include_str!(concat!("fixtures/", $name, ".html")), &Url::parse(PAGE).expect("a URL"))
    };
}

/// The file of each chosen picture that is tried first, without the page's own origin.
fn chosen(gallery: &Gallery, selector: Option<&str>) -> Vec<String> {
    let choice = gallery.choose(selector).unwrap_or_else(|refusal| panic!("{refusal:?}"));
    let expected = if selector.is_some() { Evidence::Exact } else { Evidence::NotRequested };
    assert_eq!(choice.evidence, expected);
    choice.pictures.iter().map(|files| files[0].as_str().replace("https://shop.example", "")).collect()
}

fn refused(gallery: &Gallery, selector: Option<&str>) -> (ReviewReason, Evidence) {
    let refusal = gallery.choose(selector).expect_err("is refused");
    (refusal.reason, refusal.evidence)
}

const SELECTION: (ReviewReason, Evidence) = (ReviewReason::VariantSelectionRequired, Evidence::SelectionRequired);
const UNTIED: (ReviewReason, Evidence) = (ReviewReason::VariantEvidenceUnavailable, Evidence::Unavailable);

#[test]
fn variants_of_a_linked_group_are_tied_to_their_pictures() {
    let page = page!("linked_group");
    assert_eq!(refused(&page, None), SELECTION);
    for selector in ["color=Red", "sku=TJ-R-L", "size=L", "size=M"] {
        assert_eq!(chosen(&page, Some(selector)), ["/media/jacket-red-1.png", "/media/jacket-red-2.png"], "{selector}");
    }
    for selector in ["color=Blue", "Lining=Fleece"] {
        assert_eq!(chosen(&page, Some(selector)), ["/media/jacket-blue-1.png"], "{selector}");
    }
    for selector in ["color=red", "Color=Red", "color = Red", "colour=Red", "color=Green", "color=", "Red"] {
        assert_eq!(refused(&page, Some(selector)), UNTIED, "{selector}");
    }
    assert_eq!(page.discovered(), 3);
}

#[test]
fn a_linked_product_gives_its_own_pictures_and_not_its_relations() {
    let page = page!("linked_product");
    let pictures = ["/media/mug-1.png", "/products/media/mug-2.png"];
    assert_eq!(chosen(&page, None), pictures);
    assert_eq!(chosen(&page, Some("color=White")), pictures);
    assert_eq!(refused(&page, Some("color=Black")), UNTIED);
}

#[test]
fn an_embedded_product_with_options_is_read_as_shopify_writes_it() {
    let page = page!("shopify");
    assert_eq!(refused(&page, None), SELECTION);
    let at = |name: &str| format!("https://cdn.shop.example/s/files/1/products/{name}?v=1");
    for selector in ["Color=Black", "sku=T-B-M", "Size=M", "id=12"] {
        assert_eq!(chosen(&page, Some(selector)), [at("tee-black.jpg")], "{selector}");
    }
    assert_eq!(chosen(&page, Some("Color=White")), [at("tee-white.jpg")], "tied by the picture's list of variants");
    for selector in ["Size=XL", "color=Black"] {
        assert_eq!(refused(&page, Some(selector)), UNTIED, "{selector}");
    }
    // Black, white and the shop's logo: different sizes are one picture, and the still of a video
    // is not a picture of the product.
    assert_eq!(page.discovered(), 3);
}

#[test]
fn variations_are_read_as_woocommerce_writes_them() {
    let page = page!("woocommerce");
    assert_eq!(refused(&page, None), SELECTION);
    assert_eq!(chosen(&page, Some("finish=steel")), ["/wp-content/uploads/lamp-steel.jpg"]);
    assert_eq!(chosen(&page, Some("variation_id=7")), ["/wp-content/uploads/lamp-brass.jpg"]);
    assert_eq!(page.discovered(), 4, "brass, steel, detail, and one of another product");
}

#[test]
fn galleries_and_swatches_are_read_as_magento_writes_them() {
    let page = page!("magento");
    assert_eq!(refused(&page, None), SELECTION);
    assert_eq!(chosen(&page, Some("color=Navy")), ["/media/catalog/product/n/a/navy.jpg"]);
    assert_eq!(page.discovered(), 4);
}

#[test]
fn the_product_of_an_applications_state_is_found() {
    let page = page!("next");
    assert_eq!(refused(&page, None), SELECTION);
    assert_eq!(chosen(&page, Some("Wood=Ash")), ["https://cdn.shop.example/chair/ash.jpg"]);
    assert_eq!(page.discovered(), 3, "front, back and ash; nothing of what is recommended");
    assert_eq!(chosen(&page!("state"), None), ["/i/kettle-zoom.jpg", "/i/kettle-top.jpg"]);
    assert_eq!(chosen(&page!("prestashop"), None), ["/12-large_default/rug.jpg", "/13-large_default/rug.jpg"]);
}

#[test]
fn what_a_page_proposes_to_show_of_itself_is_taken() {
    assert_eq!(chosen(&page!("open_graph"), None), ["/media/vase-1.jpg", "https://cdn.shop.example/vase-2.jpg"]);
}

#[test]
fn a_logo_that_a_page_proposes_is_skipped() {
    let page = "<meta property=og:image content=/logo.png><meta property=og:image content=/media/vase-1.jpg>";
    let page = Gallery::read(page, &Url::parse(PAGE).expect("a URL"));
    assert_eq!(chosen(&page, None), ["/media/vase-1.jpg"]);
    assert_eq!(page.discovered(), 2);
}

#[test]
fn the_largest_candidate_of_a_set_is_taken_relative_to_the_pages_base() {
    let page = page!("srcset");
    let at = |name: &str| format!("https://static.shop.example/{name}");
    assert_eq!(chosen(&page, None), [at("img/boot-1-1600.webp"), at("boot-2-large.jpg"), at("img/boot-3.jpg")]);
    assert_eq!(page.discovered(), 4, "with the banner, which is not in the gallery");
}

#[test]
fn lazily_loaded_pictures_are_found_behind_their_placeholders() {
    let expected = ["/p/one.jpg", "/p/two-900.jpg", "/p/three-zoom.jpg", "/p/four.jpg", "/p/five._AC_SX900_.jpg"];
    assert_eq!(chosen(&page!("lazy"), None), expected);
}

#[test]
fn one_picture_at_many_sizes_is_one_candidate() {
    let page = page!("duplicates");
    assert_eq!(chosen(&page, None), ["/m/watch.jpg?width=2048&quality=80", "/m/watch-strap.jpg"]);
    assert_eq!(page.discovered(), 2);
}

#[test]
fn without_a_gallery_every_picture_of_the_text_counts_and_icons_do_not() {
    let page = page!("bare");
    assert_eq!(chosen(&page, None), ["/products/stool1.jpg", "/products/stool2.jpg"]);
    assert_eq!(page.discovered(), 8, "icons and what is beside the text are counted");
}

#[test]
fn a_page_without_pictures_has_none() {
    let nothing = (ReviewReason::NoGalleryImagesDiscovered, Evidence::NotRequested);
    assert_eq!(refused(&page!("nothing"), None), nothing);
    assert_eq!(refused(&page!("nothing"), Some("color=Red")), UNTIED);
    for html in ["", "<", "<!--", "<script>", "<img>", "<img src='data:image/png;base64,AA'>", "plain text", "\0"] {
        assert_eq!(refused(&Gallery::read(html, &Url::parse(PAGE).expect("a URL")), None), nothing, "{html:?}");
    }
}

#[test]
fn hostile_markup_is_read_in_time_and_without_a_stack() {
    let url = Url::parse(PAGE).expect("a URL");
    let deep = "<div>".repeat(200_000) + "<img src=/a.png>";
    assert_eq!(chosen(&Gallery::read(&deep, &url), None), ["/a.png"]);
    let json = "[".repeat(100_000);
    let nested = format!("<script type='application/ld+json'>{json}</script><img src=/a.png>");
    assert_eq!(chosen(&Gallery::read(&nested, &url), None), ["/a.png"]);
    let many: String = (0..10_000).map(|n| format!("<img src=/a{n}.png></i>")).collect();
    assert_eq!(Gallery::read(&many, &url).discovered(), ADDRESSES_MAX);
}

fn shop() -> Url {
    Url::parse(PAGE).expect("a URL")
}

/// A list of JSON, without its brackets, whose items differ by their number.
fn numbered(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(",")
}

/// `product` as JSON of a script, as JSON-LD, and as the state of an application.
fn pages(product: &str) -> [String; 3] {
    [
        format!("<script type='application/json'>{product}</script>"),
        format!("<script type='application/ld+json'>{product}</script>"),
        format!("<script>window.__NEXT_DATA__ = {product};</script>"),
    ]
}

#[test]
fn json_that_takes_too_much_memory_is_ignored_and_the_rest_of_the_page_is_read() {
    let json = format!(
        r#"{{"@type":"Product","name":"x","price":1,"image":"/b.png","a":[{}]}}"#,
        numbered(120_000, |_| r#"{"":0}"#.into())
    );
    for page in pages(&json) {
        assert_eq!(chosen(&Gallery::read(&(page + "<img src=/a.png>"), &shop()), None), ["/a.png"]);
    }
    // With fewer objects it is read.
    let json = json.replacen(&r#"{"":0},"#.repeat(50_000), "", 1);
    for page in pages(&json) {
        let gallery = Gallery::read(&(page + "<img src=/a.png>"), &shop());
        assert_eq!(chosen(&gallery, None), ["/b.png", "/a.png"]);
    }
}

#[test]
fn documents_of_linked_data_share_their_memory() {
    let product = |name: &str, count: usize| {
        let heavy = numbered(count, |_| r#"{"":0}"#.into());
        format!(
            r#"<script type="application/ld+json">{{"@type":"Product","image":"/{name}.png","a":[{heavy}]}}</script>"#
        )
    };
    let read = |pages: &[String]| chosen(&Gallery::read(&pages.concat(), &shop()), None);
    // The first product with pictures counts.
    let (one, other) = (product("one", 60_000), product("other", 60_000));
    assert_eq!(read(&[one.clone(), other.clone()]), ["/one.png"]);
    let without = one.replace(r#""image":"/one.png","#, "");
    assert_eq!(
        refused(&Gallery::read(&(without.clone() + &other), &shop()), None).0,
        ReviewReason::NoGalleryImagesDiscovered
    );
    assert_eq!(read(&[without, product("light", 1)]), ["/light.png"]);
}

#[test]
fn many_pictures_and_variants_are_read_up_to_their_limits() {
    let images = numbered(60_000, |n| format!(r#""/{n}.png""#));
    for page in pages(&format!(r#"{{"@type":"Product","name":"x","price":1,"images":[{images}]}}"#)) {
        assert_eq!(Gallery::read(&page, &shop()).discovered(), ADDRESSES_MAX);
    }
    let group = |count: usize| {
        let variants = numbered(count, |n| format!(r#"{{"@type":"Product","sku":"{n}","image":"/{n}.png"}}"#));
        format!(r#"<script type="application/ld+json">{{"@type":"ProductGroup","hasVariant":[{variants}]}}</script>"#)
    };
    let gallery = Gallery::read(&group(10_000), &shop());
    assert_eq!(gallery.linked.variants.len(), VARIANTS_MAX);
    assert_eq!(chosen(&gallery, Some("sku=999")), ["/999.png"]);
    assert_eq!(refused(&gallery, Some("sku=1000")), UNTIED);
}

#[test]
fn pictures_that_all_variants_share_are_copied_up_to_a_size() {
    let images = numbered(10_000, |n| format!(r#"{{"id":1,"src":"/{n}-{}.png"}}"#, "x".repeat(100)));
    let variants = numbered(10_000, |n| format!(r#"{{"id":{n},"image_id":1}}"#));
    let product = format!(r#"{{"name":"x","images":[{images}],"variants":[{variants}]}}"#);
    let gallery = Gallery::read(&format!("<script type='application/json'>{product}</script>"), &shop());
    let variants = &gallery.embedded.variants;
    assert!(variants.iter().all(|variant| variant.images.len() == ADDRESSES_MAX));
    assert!((2..100).contains(&variants.len()), "{}", variants.len());
    assert_eq!(gallery.discovered(), ADDRESSES_MAX);
}

#[test]
fn variants_and_pictures_that_name_each_other_are_tied_in_the_order_of_the_pictures() {
    let product = r#"{"name":"x","images":[
        {"id":7,"src":"/7.png","variant_ids":[2]}, {"id":8,"src":"/8.png","variant_ids":[1, 1]},
        {"id":9,"src":"/9.png","variant_ids":[1, 3]}, {"id":null,"src":"/null.png"}
    ], "variants":[{"id":1,"image_id":7},{"id":2,"image_id":null},{"id":4,"image_id":9}]}"#;
    let gallery = Gallery::read(&format!("<script type='application/json'>{product}</script>"), &shop());
    assert_eq!(chosen(&gallery, Some("id=1")), ["/7.png", "/8.png", "/9.png"]);
    assert_eq!(chosen(&gallery, Some("id=2")), ["/7.png"]);
    assert_eq!(chosen(&gallery, Some("id=4")), ["/9.png"]);
}

#[test]
fn many_swatches_are_read_up_to_their_limit() {
    let images = numbered(5000, |n| format!(r#""{n:04}":[{{"img":"/{n:04}.png"}}]"#));
    let options = numbered(5000, |n| format!(r#"{{"label":"l{n}","products":["{n:04}","0001"]}}"#));
    let config = format!(r#"{{"attributes":{{"1":{{"code":"color","options":[{options}]}}}},"images":{{{images}}}}}"#);
    let page = format!(r#"<script type="text/x-magento-init">{{"jsonConfig":{config}}}</script>"#);
    let gallery = Gallery::read(&page, &shop());
    assert_eq!(gallery.embedded.variants.len(), VARIANTS_MAX);
    assert_eq!(chosen(&gallery, Some("color=l999")), ["/0999.png"]);
    assert_eq!(chosen(&gallery, Some("color=l0")), ["/0000.png", "/0001.png"], "the first option that names it");
    assert_eq!(refused(&gallery, Some("color=l1")), UNTIED);
}

#[test]
fn long_addresses_and_long_lists_of_files_are_ignored() {
    let long = "x".repeat(address::BYTES_MAX);
    for (page, expected) in [
        (format!("<base href=/{long}/><img src=a.png>"), "/products/a.png"),
        (format!("<div class=gallery><a href=/{long}.png><img src=/a.png></a></div>"), "/a.png"),
        (format!("<img srcset='/{long}.png 2x, /a.png'>"), "/a.png"),
    ] {
        assert_eq!(chosen(&Gallery::read(&page, &shop()), None), [expected]);
    }
    let files: String = (0..100_000).map(|n| format!("/{n}.png, ")).collect();
    let gallery = Gallery::read(&format!("<img srcset='{files}'>"), &shop());
    assert_eq!(gallery.candidates[0].files.len(), FILES_KEPT);
    assert!(gallery.by_key.len() < 100, "{}", gallery.by_key.len());
}

#[test]
fn a_source_counts_however_its_type_is_written() {
    for (kind, first) in [
        ("image/jpeg", "/media/first.jpg"),
        ("image/jpg", "/media/first.jpg"),
        ("image/pjpeg", "/media/first.jpg"),
        ("IMAGE/JPEG", "/media/first.jpg"),
        ("image/avif", "/media/second.jpg"),
    ] {
        let html = format!(
            "<div class='product-gallery'><picture><source type='{kind}' srcset='/media/first.jpg 1600w'>\
             <img src='/media/second.jpg'></picture></div>"
        );
        let page = Gallery::read(&html, &Url::parse(PAGE).expect("a URL"));
        assert_eq!(chosen(&page, None), [first], "{kind}");
    }
}
