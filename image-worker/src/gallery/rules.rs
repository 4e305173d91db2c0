//! The words by which parts of a page and files are recognized: one table.
//!
//! Names of classes, ids and the like are compared whole, in lower case and without `-` and `_`:
//! `up-sells`, `upSells` and `up_sells` are one word, and `has-sticky-footer` is none.

/// The meaning that an element has for the images in it, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meaning {
    /// The gallery of a product.
    Gallery,
    /// Other products, and the parts that every page of a shop has.
    Aside,
    /// Navigation or a remark; in a gallery, a part of it.
    Beside,
    /// Head or foot of the page; of an article or a section, if it is in one.
    Landmark,
    /// A frame for images, which shops use for galleries and for other products: a carousel, or the image of one product.
    Frame,
}

use Meaning::{Aside, Beside, Frame, Gallery, Landmark};

/// The words of each meaning. If the names of an element have several, the first meaning of [`Meaning`] counts.
const NAMES: [(Meaning, &[&str]); 4] = [
    (
        Gallery,
        &[
            "gallery",
            "galleryplaceholder",
            "galleryviewer",
            "imagegallery",
            "mediagallery",
            "photogallery",
            "productgallery",
            "productimagegallery",
            "productmediagallery",
            "productphotogallery",
            "productdetailgallery",
            "productimages",
            "productimagescontainer",
            "productimageswrapper",
            "productimageslider",
            "productimagescarousel",
            "productmedia",
            "productmedialist",
            "productmediaitem",
            "productmediawrapper",
            "productmediacontainer",
            "productphotos",
            "productphotocontainer",
            "productslideshow",
            "productsinglephotos",
            "productsinglephoto",
            "productsinglemedia",
            "productsinglemediagroup",
            "productdetailimages",
            "productdetailmedia",
            "productdetailsmedia",
            "pdpgallery",
            "pdpimages",
            "pdpmedia",
            "itemgallery",
            "itemimages",
            "imageviewer",
            "imagezoom",
            "primaryimages",
            "imagecarousel",
            "listingpageimagecarousel",
            "uximagecarousel",
            "wpblockgallery",
            // WooCommerce, Magento, BigCommerce, Squarespace, Shopware, PrestaShop, OpenCart, Wix, Ecwid, Amazon.
            "woocommerceproductgallery",
            "wpblockwoocommerceproductgallery",
            "wpblockwoocommerceproductimagegallery",
            "wcblockproductgallery",
            "productimgbox",
            "moreviews",
            "fotorama",
            "productviewimages",
            "productviewimage",
            "productitemgallery",
            "productitemgalleryslides",
            "productgalleryslides",
            "galleryslider",
            "galleryslidercontainer",
            "imagescontainer",
            "productcover",
            "imageadditional",
            "productgalleryroot",
            "detailsgallery",
            "imageblock",
            "altimages",
            "imgtagwrapper",
        ],
    ),
    (
        Frame,
        &[
            "carousel",
            "carouselinner",
            "slideshow",
            "slider",
            "swiper",
            "swipercontainer",
            "swiperwrapper",
            "slick",
            "slickslider",
            "slicktrack",
            "splide",
            "flickityslider",
            "flexslider",
            "owlcarousel",
            "glide",
            "bxslider",
            "lightbox",
            "thumbnails",
            "productimage",
            "productimagemain",
            "productimagecontainer",
            "productimagewrapper",
            "productphoto",
            "productpicture",
            "mainimage",
            "mainproductimage",
            "primaryimage",
        ],
    ),
    (
        Aside,
        &[
            "related",
            "relateditems",
            "relatedproduct",
            "relatedproducts",
            "productrelated",
            "productsrelated",
            "productitemrelatedproducts",
            "recommended",
            "recommendedproducts",
            "recommendation",
            "recommendations",
            "productrecommendations",
            "upsell",
            "upsells",
            "upsellproducts",
            "crosssell",
            "crosssells",
            "crossselling",
            "crosssellproducts",
            "productcrossselling",
            "similar",
            "similaritems",
            "similarproducts",
            "recentlyviewed",
            "recentlyviewedproducts",
            "viewedproducts",
            "complementary",
            "complementaryproducts",
            "productaccessories",
            "featuredproducts",
            "productcarousel",
            "productslider",
            "boxupsell",
            "alsobought",
            "customersalsobought",
            "youmayalsolike",
            "youmaylike",
            "frequentlyboughttogether",
            "review",
            "reviews",
            "productreview",
            "productreviews",
            "customerreviews",
            "sitefooter",
            "sitenav",
            "sitenavigation",
            "menu",
            "mainmenu",
            "megamenu",
            "mobilemenu",
            "dropdownmenu",
            "navigation",
            "navbar",
            "breadcrumb",
            "breadcrumbs",
            "newsletter",
            "cookie",
            "cookies",
            "cookiebanner",
            "cookieconsent",
            "payment",
            "payments",
            "paymenticons",
            "paymentmethods",
            "minicart",
            "cartdrawer",
            "minibasket",
            "footer",
            "pagefooter",
            "mainfooter",
            "colophon",
            "contentinfo",
        ],
    ),
    (Landmark, &["siteheader", "pageheader", "mainheader", "masthead", "banner", "header"]),
];

/// Elements whose name has a meaning. `header` and `footer` count for the page outside of articles and sections only (HTML-AAM 1.0).
const ELEMENTS: [(Meaning, &[&str]); 2] = [(Beside, &["nav", "aside"]), (Landmark, &["header", "footer"])];

/// Elements that make a `header` or `footer` their own.
pub const SECTIONS: [&str; 5] = ["article", "aside", "main", "nav", "section"];

/// Attributes that name an element, and the elements that none of them describes: they hold the whole page.
pub const NAMING: [&str; 10] = [
    "class",
    "id",
    "role",
    "aria-label",
    "data-gallery-role",
    "data-section-type",
    "data-component",
    "data-role",
    "data-hook",
    "data-testid",
];
pub const UNNAMED: [&str; 4] = ["html", "head", "body", "main"];

/// Words in an address that occur only in images that do not show a product. They count in the text of a page only, where nothing
/// else says what an image shows.
const ICONS: [&str; 14] = [
    "sprite",
    "sprites",
    "icon",
    "icons",
    "favicon",
    "spacer",
    "spinner",
    "placeholder",
    "blank",
    "pixel",
    "loader",
    "loading",
    "logo",
    "logos",
];

/// `data-*` attributes with the largest file of an image, for a magnifier; then those with its address until a script copies it
/// to `src`. They name a file also without the extension of one.
pub const ZOOM: [&str; 10] = [
    "data-large_image",
    "data-large-image",
    "data-zoom-image",
    "data-zoom-src",
    "data-full-src",
    "data-old-hires",
    "data-hires",
    "data-original-src",
    "data-magnify-src",
    "data-image-large-src",
];
pub const LAZY: [&str; 6] =
    ["data-src", "data-lazy-src", "data-lazy", "data-original", "data-flickity-lazyload", "data-src-retina"];

/// Attributes that hold the candidates of an image until a script copies them to `srcset`.
pub const SETS: [&str; 5] = ["srcset", "data-srcset", "data-lazy-srcset", "data-original-set", "data-src-set"];

/// Words in the name of a `data-*` attribute that names a smaller file, or another image.
const OTHER_FILES: [&str; 17] = [
    "alt",
    "back",
    "blur",
    "hover",
    "icon",
    "logo",
    "low",
    "lqip",
    "mini",
    "pin",
    "placeholder",
    "poster",
    "preview",
    "secondary",
    "small",
    "swatch",
    "thumb",
];

/// Media types of the files that can be imported and stored as they are, as servers and pages write them.
pub const TYPES: [&str; 8] =
    ["image/png", "image/x-png", "image/apng", "image/jpeg", "image/jpg", "image/pjpeg", "image/webp", "image/gif"];

/// Media type of files that are converted, which are taken where there is no other.
pub const CONVERTED: &str = "image/avif";

const EXTENSIONS: [&str; 9] = [".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".webp", ".gif", ".avif"];

/// The meaning of an element by its name and by the words that name it.
pub fn meaning<'a>(element: &'a str, names: impl Iterator<Item = &'a str>) -> Option<Meaning> {
    let of_element = ELEMENTS.iter().filter(|(_, elements)| elements.contains(&element)).map(|(meaning, _)| *meaning);
    // Custom elements are named like classes.
    let custom = Some(element).filter(|element| element.contains('-'));
    names.flat_map(str::split_ascii_whitespace).chain(custom).filter_map(of_name).chain(of_element).min()
}

fn of_name(name: &str) -> Option<Meaning> {
    let of = |name: &str| {
        let bare: String = name.chars().filter(|c| !matches!(c, '-' | '_')).collect::<String>().to_ascii_lowercase();
        NAMES.iter().find(|(_, words)| words.contains(&&*bare)).map(|(meaning, _)| *meaning)
    };
    // An element or a modifier of a block (`product-gallery__slide`) is in its gallery; a modifier such as `menu--closed` may stand
    // anywhere.
    let block =
        || of(name.split("__").next()?.split("--").next()?).filter(|meaning| matches!(meaning, Gallery | Frame));
    (name.len() <= 100).then(|| of(name).or_else(block)).flatten()
}

/// Returns `true` if one of these words says that a file is an icon, a logo or a placeholder.
pub fn is_icon(path: &str) -> bool {
    path.to_ascii_lowercase().split(|c: char| !c.is_ascii_alphanumeric()).any(|word| ICONS.contains(&word))
}

/// Returns `true` if a `data-*` attribute names a file of its element if its value is one.
pub fn names_a_file(attribute: &str) -> bool {
    attribute.starts_with("data-")
        && !attribute.split(['-', '_']).any(|word| OTHER_FILES.iter().any(|other| word.starts_with(other)))
}

/// Returns `true` if an address leads to an image, judging by the end of its path.
pub fn is_image_file(address: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or_default().trim().to_ascii_lowercase();
    path.len() <= super::address::BYTES_MAX && EXTENSIONS.iter().any(|end| path.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(element: &str, names: &str) -> Option<Meaning> {
        meaning(element, [names].into_iter())
    }

    #[test]
    fn whole_names_decide_however_they_are_joined() {
        for name in
            ["product-gallery", "productGallery", "Product_Gallery", "a product-gallery b", "product-gallery__slide"]
        {
            assert_eq!(of("div", name), Some(Gallery), "{name}");
        }
        for name in ["has-sticky-footer", "menu--closed", "previewed", "no-reviews-yet", "not-a-gallery"] {
            assert_eq!(of("div", name), None, "{name}");
        }
        assert_eq!(of("div", "footer"), Some(Aside));
        assert_eq!(of("media-gallery", ""), Some(Gallery));
    }

    #[test]
    fn a_gallery_wins_over_an_aside_and_an_aside_over_a_frame() {
        assert_eq!(of("div", "related product-gallery"), Some(Gallery));
        assert_eq!(of("aside", "product-gallery"), Some(Gallery));
        assert_eq!(of("header", "product-gallery"), Some(Gallery));
        assert_eq!(of("div", "related"), Some(Aside));
        assert_eq!(of("nav", "carousel"), Some(Beside));
        assert_eq!(of("aside", "related carousel"), Some(Aside));
    }

    #[test]
    fn attributes_of_smaller_or_other_files_are_known() {
        for name in ["data-hi-res", "data-url", "data-image", "data-zoom", "data-full"] {
            assert!(names_a_file(name), "{name}");
        }
        for name in ["data-thumb", "data-thumbnail-src", "data-hover-image", "data-pin-media", "src"] {
            assert!(!names_a_file(name), "{name}");
        }
    }

    #[test]
    fn each_name_has_one_meaning() {
        let mut names: Vec<&str> = NAMES.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase())));
    }
}
