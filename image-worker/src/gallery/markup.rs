//! One pass over a page's markup: its base address, its data and its pictures.
//!
//! Reads tokens and builds no tree: markup of any depth takes memory for [`DEPTH_MAX`] elements and no stack.

use std::collections::HashMap;

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};
use raster::Format;

use super::{address, srcset};

/// Open elements that are tracked; deeper ones count as part of their ancestor.
const DEPTH_MAX: usize = 256;

/// Maximum number of pictures, of files of a picture, and of attributes of an element. Each takes many times the memory of its text.
const PICTURES_MAX: usize = 4000;
const FILES_MAX: usize = 64;
const ATTRIBUTES_MAX: usize = 1000;

/// Void elements (WHATWG HTML, 13.1.2).
const VOID: [&str; 14] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr", "param"];

/// Words in classes, ids and similar attributes that mark a product gallery.
const GALLERY_WORDS: [&str; 16] = [
    "gallery",
    "carousel",
    "slideshow",
    "product-media",
    "product__media",
    "product-image",
    "product_image",
    "productimage",
    "product-photo",
    "product__photo",
    "product-single__photo",
    "swiper",
    "slick",
    "flexslider",
    "fotorama",
    "image-viewer",
];

/// Words that mark other products, and the parts that every page of a shop has.
const ASIDE_WORDS: [&str; 18] = [
    "related",
    "recommend",
    "upsell",
    "up-sell",
    "cross-sell",
    "crosssell",
    "similar",
    "recently",
    "complementary",
    "review",
    "site-header",
    "footer",
    "menu",
    "breadcrumb",
    "newsletter",
    "cookie",
    "payment",
    "mini-cart",
];

/// Attributes that hold the largest size of a picture, for a magnifier.
const ZOOM_ATTRIBUTES: [&str; 12] = [
    "data-large_image",
    "data-large-image",
    "data-zoom-image",
    "data-zoom-src",
    "data-zoom",
    "data-full",
    "data-full-src",
    "data-old-hires",
    "data-hires",
    "data-original-src",
    "data-magnify-src",
    "data-image-large-src",
];

/// Attributes that hold the candidates of a picture until a script copies them to `srcset`.
const LAZY_SETS: [&str; 3] = ["data-srcset", "data-lazy-srcset", "data-original-set"];

/// Attributes that hold a picture's address until a script copies it to `src`.
const LAZY_SOURCES: [&str; 8] = [
    "data-src",
    "data-lazy-src",
    "data-lazy",
    "data-original",
    "data-image",
    "data-img",
    "data-url",
    "data-flickity-lazyload",
];

/// What was found in a page.
#[derive(Debug, Default)]
pub struct Markup {
    /// Value of its `<base href>`.
    pub base: Option<String>,
    /// Texts of `application/ld+json` scripts.
    pub linked: Vec<String>,
    /// Texts of scripts and attributes that hold other JSON.
    pub data: Vec<String>,
    /// Texts of scripts that are programs.
    pub programs: Vec<String>,
    /// The addresses of Open Graph pictures.
    pub open_graph: Vec<String>,
    /// Pictures in the body.
    pub pictures: Vec<Picture>,
}

/// A picture in a page, with one or more files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// Addresses of its files, the largest first.
    pub files: Vec<String>,
    /// Location on the page.
    pub place: PageRegion,
    /// Whether the page shows it as small as an icon.
    pub is_tiny: bool,
}

/// Location of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageRegion {
    /// In what looks like the product gallery.
    Gallery,
    /// Elsewhere in the main content.
    #[default]
    Text,
    /// Outside of the main content: header, footer, navigation, other products.
    Aside,
}

impl Markup {
    /// Parses the markup of a page.
    pub fn read(html: &str) -> Self {
        let mut markup = Self::default();
        Walk::over(html, &mut markup, false);
        markup
    }
}

/// An open element and what it means for the pictures in it.
struct Open {
    name: String,
    place: PageRegion,
    /// Target of a link that leads to a picture file.
    link: Option<String>,
}

struct Walk<'a> {
    markup: &'a mut Markup,
    open: Vec<Open>,
    /// Number of open elements beyond [`DEPTH_MAX`].
    beyond: usize,
    /// Candidates of the `<source>` elements of the open `<picture>`.
    sources: Option<Vec<(String, u32)>>,
    /// Kind and content so far of the text that is being read, which arrives in pieces.
    text: Option<(Text, String)>,
    in_noscript: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Text {
    Linked,
    Data,
    Program,
    Noscript,
}

type Attributes = HashMap<String, String>;

impl<'a> Walk<'a> {
    fn over(html: &str, markup: &'a mut Markup, in_noscript: bool) {
        let mut walk = Self { markup, open: Vec::new(), beyond: 0, sources: None, text: None, in_noscript };
        let mut emitter = DefaultEmitter::default();
        // The content of scripts, styles and similar elements is text.
        emitter.naively_switch_states(true);
        for token in Tokenizer::new_with_emitter(html, emitter) {
            match token {
                Ok(Token::StartTag(tag)) => walk.start(&tag),
                Ok(Token::EndTag(tag)) => walk.end(&String::from_utf8_lossy(&tag.name)),
                Ok(Token::String(piece)) => walk.piece(&String::from_utf8_lossy(&piece)),
                Ok(_) => {}
                Err(never) => match never {},
            }
        }
        walk.finish_text();
    }

    fn start(&mut self, tag: &StartTag<()>) {
        self.finish_text();
        let name = String::from_utf8_lossy(&tag.name).into_owned();
        let attributes = tag.attributes.iter().take(ATTRIBUTES_MAX);
        let attributes: Attributes = attributes.map(|(name, value)| (lossy(name), lossy(value))).collect();
        match &*name {
            "base" => {
                if let Some(href) = attributes.get("href") {
                    self.markup.base.get_or_insert_with(|| href.clone());
                }
            }
            "meta" => self.meta(&attributes),
            "script" => self.text = Some((script(&attributes), String::new())),
            "noscript" => self.text = Some((Text::Noscript, String::new())),
            "picture" => self.sources = Some(Vec::new()),
            "source" => self.source(&attributes),
            "img" => self.picture(&attributes),
            _ => {}
        }
        // JSON in attributes: WooCommerce's variations, PrestaShop's product.
        for attribute in ["data-product_variations", "data-product", "data-product-json"] {
            let json = attributes.get(attribute).filter(|text| text.starts_with(['{', '[']));
            self.markup.data.extend(json.cloned());
        }
        if !tag.self_closing && !VOID.contains(&&*name) {
            self.push(name, &attributes);
        }
    }

    fn push(&mut self, name: String, attributes: &Attributes) {
        if self.open.len() == DEPTH_MAX {
            self.beyond += 1;
            return;
        }
        let around = self.open.last();
        let outer = around.map_or(PageRegion::Text, |open| open.place);
        let link = match &*name {
            "a" => attributes.get("href").filter(|href| is_picture_file(href)).cloned(),
            _ => around.and_then(|open| open.link.clone()),
        };
        let place = match outer {
            PageRegion::Aside => PageRegion::Aside,
            outer => place_of(&name, attributes).unwrap_or(outer),
        };
        self.open.push(Open { name, place, link });
    }

    fn end(&mut self, name: &str) {
        self.finish_text();
        if name == "picture" {
            self.sources = None;
        }
        if self.beyond > 0 {
            self.beyond -= 1;
        } else if let Some(at) = self.open.iter().rposition(|open| open.name == name) {
            self.open.truncate(at);
        }
    }

    fn piece(&mut self, piece: &str) {
        if let Some((_, text)) = &mut self.text {
            text.push_str(piece);
        }
    }

    fn finish_text(&mut self) {
        match self.text.take() {
            Some((Text::Linked, text)) => self.markup.linked.push(text),
            Some((Text::Data, text)) => self.markup.data.push(text),
            Some((Text::Program, text)) => self.markup.programs.push(text),
            // The content for clients without scripts often holds the real picture. It is parsed once, without recursion.
            Some((Text::Noscript, text)) if !self.in_noscript => {
                let before = self.markup.pictures.len();
                Walk::over(&text, self.markup, true);
                let place = self.place();
                for picture in &mut self.markup.pictures[before..] {
                    if picture.place == PageRegion::Text {
                        picture.place = place;
                    }
                }
            }
            _ => {}
        }
    }

    fn meta(&mut self, attributes: &Attributes) {
        let property = attributes.get("property").or_else(|| attributes.get("name"));
        let is_image = property.is_some_and(|property| {
            matches!(&*property.to_ascii_lowercase(), "og:image" | "og:image:url" | "og:image:secure_url")
        });
        if is_image {
            self.markup.open_graph.extend(attributes.get("content").cloned());
        }
    }

    /// Reads a `<source>` of a `<picture>`, unless its format is unsupported.
    fn source(&mut self, attributes: &Attributes) {
        let Some(sources) = &mut self.sources else { return };
        let kind = attributes.get("type").map_or("", String::as_str);
        if kind.is_empty() || Format::of_media_type(kind).is_some() {
            sources.extend(sets(attributes));
        }
    }

    fn picture(&mut self, attributes: &Attributes) {
        let place = match attributes.get("itemprop") {
            Some(property) if property == "image" && self.place() != PageRegion::Aside => PageRegion::Gallery,
            _ => self.place(),
        };
        let mut candidates = self.sources.as_mut().map(std::mem::take).unwrap_or_default();
        candidates.extend(sets(attributes));
        candidates.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
        let zoom = ZOOM_ATTRIBUTES.iter().filter_map(|name| attributes.get(*name).cloned());
        let link = self.open.last().filter(|_| place == PageRegion::Gallery).and_then(|open| open.link.clone());
        let lazy: Vec<String> = LAZY_SOURCES.iter().filter_map(|name| attributes.get(*name).cloned()).collect();
        // While a script loads the picture, `src` is a placeholder that all pictures share.
        let is_lazy = !lazy.is_empty() || LAZY_SETS.iter().any(|name| attributes.contains_key(*name));
        let src = attributes.get("src").filter(|_| !is_lazy).cloned();
        let files = zoom
            .chain(link)
            .chain(candidates.into_iter().map(|(file, _)| file))
            .chain(lazy)
            .chain(src)
            .filter(|file| !file.trim().is_empty() && !file.starts_with("data:") && !file.contains("{width}"))
            .take(FILES_MAX)
            .collect::<Vec<_>>();
        if !files.is_empty() && self.markup.pictures.len() < PICTURES_MAX {
            self.markup.pictures.push(Picture { files, place, is_tiny: is_tiny(attributes) });
        }
    }

    fn place(&self) -> PageRegion {
        self.open.last().map_or(PageRegion::Text, |open| open.place)
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The kind of a script's text.
fn script(attributes: &Attributes) -> Text {
    let kind = attributes.get("type").map(|kind| kind.trim().to_ascii_lowercase()).unwrap_or_default();
    match kind.split(';').next().unwrap_or_default() {
        "application/ld+json" => Text::Linked,
        "application/json" | "text/x-magento-init" | "text/json" => Text::Data,
        _ => Text::Program,
    }
}

/// The location that an element implies for the pictures in it, if any.
fn place_of(name: &str, attributes: &Attributes) -> Option<PageRegion> {
    if matches!(name, "nav" | "header" | "footer" | "aside") {
        return Some(PageRegion::Aside);
    }
    if matches!(name, "html" | "body" | "main") {
        return None;
    }
    let named = ["class", "id", "data-gallery-role", "data-section-type", "data-component", "role", "aria-label"];
    let words: String =
        named.iter().filter_map(|name| attributes.get(*name)).map(|value| value.to_ascii_lowercase() + " ").collect();
    if ASIDE_WORDS.iter().any(|word| words.contains(word)) {
        return Some(PageRegion::Aside);
    }
    GALLERY_WORDS.iter().any(|word| words.contains(word)).then_some(PageRegion::Gallery)
}

/// The candidates of `srcset` or of an attribute that becomes one, with their sizes.
fn sets(attributes: &Attributes) -> Vec<(String, u32)> {
    let mut candidates = Vec::new();
    for name in ["srcset"].iter().chain(&LAZY_SETS) {
        candidates.extend(attributes.get(*name).map(|set| srcset::candidates(set)).unwrap_or_default());
    }
    // Amazon: an object that maps addresses to width and height.
    if let Some(Ok(sizes)) = attributes.get("data-a-dynamic-image").map(|text| serde_json::from_str::<Sizes>(text)) {
        candidates.extend(sizes.into_iter().map(|(file, [width, _])| (file, width)));
    }
    // Shopify: an address with a placeholder for one of the widths in another attribute.
    if let Some(template) =
        LAZY_SOURCES.iter().filter_map(|name| attributes.get(*name)).find(|at| at.contains("{width}"))
    {
        let widths = attributes.get("data-widths").and_then(|text| serde_json::from_str::<Vec<u32>>(text).ok());
        let width = widths.and_then(|widths| widths.into_iter().max()).unwrap_or(1080);
        candidates.push((template.replace("{width}", &width.to_string()), width));
    }
    candidates.retain(|(file, _)| !file.starts_with("data:") && !file.contains("{width}"));
    candidates
}

type Sizes = HashMap<String, [u32; 2]>;

/// Whether both declared sides are those of an icon or a tracking pixel.
fn is_tiny(attributes: &Attributes) -> bool {
    let side =
        |name: &str| attributes.get(name).and_then(|text| text.trim_end_matches("px").trim().parse::<f64>().ok());
    matches!((side("width"), side("height")), (Some(width), Some(height)) if width.max(height) < 64.0)
}

/// Whether a link leads to a picture, judging by the end of its path.
fn is_picture_file(href: &str) -> bool {
    if href.len() > address::BYTES_MAX {
        return false;
    }
    let path = href.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    [".jpg", ".jpeg", ".png", ".webp", ".gif"].iter().any(|end| path.ends_with(end))
}
