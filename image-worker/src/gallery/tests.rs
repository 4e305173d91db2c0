//! Tests of gallery discovery with pages like those of common shop systems.
//!
//! Each file of `corpus` begins with a comment that says what must come of it, without selector: `+` an image by the file that is
//! tried first, `-` how many were skipped for a reason (when it is said of any), `!` why a review is needed.

use super::*;
use product::VARIANTS_MAX;

const PAGE: &str = "https://shop.example/products/item?ref=1";

macro_rules! page {
    ($name:literal) => {
        Gallery::parse(include_str!(concat!("corpus/", $name, ".html")), &Url::parse(PAGE).expect("a URL"))
    };
}

/// The file of each chosen image that is tried first, without the page's own origin.
fn chosen(gallery: &Gallery, selector: Option<&str>) -> Vec<String> {
    let choice = gallery.choose(selector).unwrap_or_else(|refusal| panic!("{refusal:?}"));
    let expected = if selector.is_some() { Evidence::Exact } else { Evidence::NotRequested };
    assert_eq!(choice.evidence, expected);
    choice.images.iter().map(|files| files[0].as_str().replace("https://shop.example", "")).collect()
}

fn refused(gallery: &Gallery, selector: Option<&str>) -> (ReviewReason, Evidence) {
    let refusal = gallery.choose(selector).expect_err("is refused");
    (refusal.reason, refusal.evidence)
}

const SELECTION: (ReviewReason, Evidence) = (ReviewReason::VariantSelectionRequired, Evidence::SelectionRequired);
const UNTIED: (ReviewReason, Evidence) = (ReviewReason::VariantEvidenceUnavailable, Evidence::Unavailable);

#[test]
fn the_pages_of_the_corpus_give_what_they_must() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/gallery/corpus");
    let mut failures = Vec::new();
    let mut pages = 0;
    for entry in std::fs::read_dir(directory).expect("the corpus") {
        let path = entry.expect("a file").path();
        let html = std::fs::read_to_string(&path).expect("a page");
        let (head, _) = html.split_once("-->").expect("a comment");
        let said = |mark: &str| head.lines().filter_map(|line| line.strip_prefix(mark)).map(str::to_owned).collect();
        let expected: [Vec<String>; 3] = [said("+ "), said("- "), said("! ")];
        assert!(!expected.concat().is_empty(), "{}", path.display());
        let listed = |skipped: &Skips| skipped.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        let gallery = Gallery::parse(&html, &shop());
        let (found, skipped, review) = match gallery.choose(None) {
            Ok(choice) => {
                let first =
                    |files: &Vec<Url>| files[0].as_str().replace("https://shop.example", "").replace("https:", "");
                (choice.images.iter().map(first).collect(), listed(&choice.skipped), Vec::new())
            }
            Err(needed) => (Vec::new(), Vec::new(), vec![needed.reason.to_string()]),
        };
        let found: [Vec<String>; 3] = [found, skipped, review];
        if found != expected {
            failures.push(format!("{}:\n  found    {found:?}\n  expected {expected:?}", path.display()));
        }
        pages += 1;
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(pages >= 40, "{pages}");
}

#[test]
fn variants_of_a_linked_group_are_tied_to_their_images() {
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
fn a_linked_product_gives_its_own_images_and_not_its_relations() {
    let page = page!("linked_product");
    let images = ["/media/mug-1.png", "/products/media/mug-2.png"];
    assert_eq!(chosen(&page, None), images);
    assert_eq!(chosen(&page, Some("color=White")), images);
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
    assert_eq!(chosen(&page, Some("Color=White")), [at("tee-white.jpg")], "tied by the image's list of variants");
    for selector in ["Size=XL", "color=Black"] {
        assert_eq!(refused(&page, Some(selector)), UNTIED, "{selector}");
    }
    // Black and white, each also in Open Graph or in the gallery by another address, and the logo; the still of a video is not an
    // image of the product.
    assert_eq!(page.discovered(), 6);
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
fn a_page_without_images_has_none() {
    let nothing = (ReviewReason::NoGalleryImagesDiscovered, Evidence::NotRequested);
    assert_eq!(refused(&page!("nothing"), None), nothing);
    assert_eq!(refused(&page!("nothing"), Some("color=Red")), UNTIED);
    for html in ["", "<", "<!--", "<script>", "<img>", "<img src='data:image/png;base64,AA'>", "plain text", "\0"] {
        assert_eq!(refused(&Gallery::parse(html, &Url::parse(PAGE).expect("a URL")), None), nothing, "{html:?}");
    }
}

/// Whatever is repeated in a page, reading it takes time in proportion to its size: here at most half a second without optimization.
/// A search of all open elements or attributes for each tag takes minutes.
#[test]
fn hostile_markup_is_read_in_time_and_without_a_stack() {
    const BYTES: usize = 512 * 1024;
    let read = |part: &dyn Fn(usize) -> String| {
        let mut page = "<img src=/a.png>".to_owned();
        for part in (0..).map(part) {
            if page.len() + part.len() > BYTES {
                break;
            }
            page.push_str(&part);
        }
        let began = std::time::Instant::now();
        assert_eq!(chosen(&Gallery::parse(&page, &shop()), None), ["/a.png"], "{}", part(0));
        assert!(began.elapsed().as_secs() < 10, "{}: {:?}", part(0), began.elapsed());
    };
    for part in [
        "<div>",
        "<p>",
        "<b>",
        "<b><p>",
        "<a><p>",
        "<table><tr><td>",
        "<svg>",
        "<math><mi>",
        "<template>",
        "<i></p>",
        "<table><a>",
        "</x>",
        "</br>",
        "<noscript>",
        "<main>",
        "<body class=a>",
        "<div itemscope>",
        "<",
        "<!--",
        "&amp;",
    ] {
        read(&|_| part.to_owned());
    }
    read(&|n| format!("<b id={n}><p>"));
    read(&|n| format!("<x{n}>"));
    read(&|n| format!("{} data-a{n}=/b.png", if n == 0 { "<p" } else { "" }));
    read(&|n| format!("<b><i><u><table><tr><td id={n}>"));
}

#[test]
fn deep_markup_keeps_its_images_and_what_follows() {
    let deep =
        "<div>".repeat(200_000) + "<img src=/a.png>" + &"</div>".repeat(200_000) + "<footer><img src=/b.png></footer>";
    let gallery = Gallery::parse(&deep, &shop());
    assert_eq!((chosen(&gallery, None), gallery.discovered()), (vec!["/a.png".to_owned()], 2));
}

#[test]
fn nested_json_and_many_images_are_read_up_to_their_limits() {
    let json = "[".repeat(100_000);
    let nested = format!("<script type='application/ld+json'>{json}</script><img src=/a.png>");
    assert_eq!(chosen(&Gallery::parse(&nested, &shop()), None), ["/a.png"]);
    let many: String = (0..10_000).map(|n| format!("<img src=/a{n}.png></i>")).collect();
    assert_eq!(Gallery::parse(&many, &shop()).discovered(), ADDRESSES_MAX);
}

#[test]
fn elements_are_read_up_to_their_limit() {
    // `html`, `head` and `body` are elements of every page.
    for (before, found) in [(tree::ELEMENTS_MAX - 4, 1), (tree::ELEMENTS_MAX - 3, 0)] {
        let page = "<br>".repeat(before) + "<img src=/a.png>";
        assert_eq!(Gallery::parse(&page, &shop()).discovered(), found, "{before}");
    }
    for (before, found) in [(tree::TAGS_MAX - 1, 1), (tree::TAGS_MAX, 0)] {
        let page = "</i>".repeat(before) + "<img src=/a.png>";
        assert_eq!(Gallery::parse(&page, &shop()).discovered(), found, "{before}");
    }
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
        assert_eq!(chosen(&Gallery::parse(&(page + "<img src=/a.png>"), &shop()), None), ["/a.png"]);
    }
    // With fewer objects it is read.
    let json = json.replacen(&r#"{"":0},"#.repeat(50_000), "", 1);
    for page in pages(&json) {
        let gallery = Gallery::parse(&(page + "<img src=/a.png>"), &shop());
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
    let read = |pages: &[String]| chosen(&Gallery::parse(&pages.concat(), &shop()), None);
    // The first product with images counts.
    let (one, other) = (product("one", 60_000), product("other", 60_000));
    assert_eq!(read(&[one.clone(), other.clone()]), ["/one.png"]);
    let without = one.replace(r#""image":"/one.png","#, "");
    assert_eq!(
        refused(&Gallery::parse(&(without.clone() + &other), &shop()), None).0,
        ReviewReason::NoGalleryImagesDiscovered
    );
    assert_eq!(read(&[without, product("light", 1)]), ["/light.png"]);
}

#[test]
fn many_images_and_variants_are_read_up_to_their_limits() {
    let images = numbered(60_000, |n| format!(r#""/{n}.png""#));
    for page in pages(&format!(r#"{{"@type":"Product","name":"x","price":1,"images":[{images}]}}"#)) {
        assert_eq!(Gallery::parse(&page, &shop()).discovered(), ADDRESSES_MAX);
    }
    let group = |count: usize| {
        let variants = numbered(count, |n| format!(r#"{{"@type":"Product","sku":"{n}","image":"/{n}.png"}}"#));
        format!(r#"<script type="application/ld+json">{{"@type":"ProductGroup","hasVariant":[{variants}]}}</script>"#)
    };
    let gallery = Gallery::parse(&group(10_000), &shop());
    assert_eq!(gallery.linked.variants.len(), VARIANTS_MAX);
    assert_eq!(chosen(&gallery, Some("sku=999")), ["/999.png"]);
    assert_eq!(refused(&gallery, Some("sku=1000")), UNTIED);
}

#[test]
fn images_that_all_variants_share_are_copied_up_to_a_size() {
    let images = numbered(10_000, |n| format!(r#"{{"id":1,"src":"/{n}-{}.png"}}"#, "x".repeat(100)));
    let variants = numbered(10_000, |n| format!(r#"{{"id":{n},"image_id":1}}"#));
    let product = format!(r#"{{"name":"x","images":[{images}],"variants":[{variants}]}}"#);
    let gallery = Gallery::parse(&format!("<script type='application/json'>{product}</script>"), &shop());
    let variants = &gallery.embedded.variants;
    assert!(variants.iter().all(|variant| variant.images.len() == ADDRESSES_MAX));
    assert!((2..100).contains(&variants.len()), "{}", variants.len());
    assert_eq!(gallery.discovered(), ADDRESSES_MAX);
}

#[test]
fn variants_and_images_that_name_each_other_are_tied_in_the_order_of_the_images() {
    let product = r#"{"name":"x","images":[
        {"id":7,"src":"/7.png","variant_ids":[2]}, {"id":8,"src":"/8.png","variant_ids":[1, 1]},
        {"id":9,"src":"/9.png","variant_ids":[1, 3]}, {"id":null,"src":"/null.png"}
    ], "variants":[{"id":1,"image_id":7},{"id":2,"image_id":null},{"id":4,"image_id":9}]}"#;
    let gallery = Gallery::parse(&format!("<script type='application/json'>{product}</script>"), &shop());
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
    let gallery = Gallery::parse(&page, &shop());
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
        assert_eq!(chosen(&Gallery::parse(&page, &shop()), None), [expected]);
    }
    let files: String = (0..100_000).map(|n| format!("/{n}.png, ")).collect();
    let gallery = Gallery::parse(&format!("<img srcset='{files}'>"), &shop());
    assert_eq!(gallery.candidates[0].files.len(), FILES_KEPT);
    assert!(gallery.by_url.len() < 100, "{}", gallery.by_url.len());
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
        let page = Gallery::parse(&html, &Url::parse(PAGE).expect("a URL"));
        assert_eq!(chosen(&page, None), [first], "{kind}");
    }
}

#[test]
fn a_source_of_avif_counts_where_there_is_no_other_file() {
    let avif = "<source type='image/avif' srcset='/small.avif 320w, /large.avif 1600w'>";
    for (rest, expected) in [
        ("<img alt=shoe>", "/large.avif"),
        ("<img src='data:image/gif;base64,R0lG'>", "/large.avif"),
        ("<img src=/shoe.jpg>", "/shoe.jpg"),
        ("<source type='image/webp' srcset=/shoe.webp><img alt=shoe>", "/shoe.webp"),
    ] {
        let html = format!("<div class='product-gallery'><picture>{avif}{rest}</picture></div>");
        let page = Gallery::parse(&html, &Url::parse(PAGE).expect("a URL"));
        assert_eq!(chosen(&page, None), [expected], "{rest}");
    }
}
