//! Tests of gallery discovery with pages like those of common shop systems.

use super::*;

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
