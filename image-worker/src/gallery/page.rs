//! The images in the tree of a page: its base address, its data, and the images in its body with their region.

use std::collections::{HashMap, HashSet};

use ego_tree::iter::Edge;
use ego_tree::{NodeId, NodeRef};

use super::rules::{self, Meaning};
use super::srcset;
use super::tree::{Element, Page, essence};

/// Maximum number of images, and of files of an image. Each takes many times the memory of its text.
const IMAGES_MAX: usize = 4000;
const FILES_MAX: usize = 64;

/// Attributes with JSON: WooCommerce's variations, PrestaShop's product.
const DATA_ATTRIBUTES: [&str; 3] = ["data-product_variations", "data-product", "data-product-json"];

/// Data that was found in a page.
#[derive(Debug, Default)]
pub struct Finds {
    /// Value of its `<base href>`.
    pub base: Option<String>,
    /// Texts of `application/ld+json` scripts.
    pub linked: Vec<String>,
    /// Texts of scripts and attributes that hold other JSON.
    pub data: Vec<String>,
    /// Texts of scripts that are programs.
    pub programs: Vec<String>,
    /// The addresses of images in the microdata of its product.
    pub microdata: Vec<String>,
    /// The addresses of Open Graph images.
    pub open_graph: Vec<String>,
    /// Images in the body.
    pub images: Vec<PageImage>,
    /// The addresses that count when nothing else is found: backgrounds in a gallery, the image of a card.
    pub last_resorts: Vec<String>,
}

/// An image in a page, with one or more files.
#[derive(Clone, Debug, PartialEq)]
pub struct PageImage {
    /// Addresses of its files, the largest first, without that of `src`.
    pub files: Vec<String>,
    /// The address that is tried last.
    pub src: Option<String>,
    /// Location on the page.
    pub region: Region,
    /// `true` if the page shows it as small as an icon.
    pub is_tiny: bool,
}

/// Location of an image, the most probable one of the product first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Region {
    /// In a product gallery, or in a frame in the main content.
    Gallery,
    /// In a gallery in an aside.
    AsideGallery,
    /// Elsewhere in the main content.
    Text,
    /// In a frame in an aside.
    AsideFrame,
    /// Outside of the main content: header, footer, navigation, other products.
    Aside,
}

impl Region {
    /// The region of an element with this meaning in this region.
    fn enter(self, meaning: Meaning, in_section: bool) -> Self {
        let is_aside = self >= Self::AsideFrame;
        match meaning {
            Meaning::Gallery if is_aside => Self::AsideGallery,
            Meaning::Gallery if self != Self::AsideGallery => Self::Gallery,
            Meaning::Frame if self == Self::Text => Self::Gallery,
            Meaning::Frame if is_aside => Self::AsideFrame,
            Meaning::Aside => Self::Aside,
            Meaning::Beside if self == Self::Text => Self::Aside,
            Meaning::Landmark if !in_section && self == Self::Text => Self::Aside,
            _ => self,
        }
    }

    /// Returns `true` if the region is part of the main content.
    pub fn is_main(self) -> bool {
        matches!(self, Self::Gallery | Self::Text)
    }
}

impl Finds {
    /// Reads the markup of a page.
    pub fn parse(html: &str) -> Self {
        let page = Page::parse(html);
        let mut finds = Self::default();
        for script in page.scripts {
            let place = match &*script.kind {
                "application/ld+json" => &mut finds.linked,
                "application/json" | "text/x-magento-init" | "text/json" => &mut finds.data,
                _ => &mut finds.programs,
            };
            place.push(script.text);
        }
        let root = page.tree.root();
        let mut walk =
            Walk { finds, wrappers: wrappers(root), open: Vec::new(), images: HashSet::new(), items: 0, item: None };
        for edge in root.traverse() {
            match edge {
                Edge::Open(node) => walk.enter(node),
                Edge::Close(_) => {
                    walk.open.pop();
                }
            }
        }
        walk.finds
    }
}

/// An open element: what it means for what is in it.
#[derive(Clone, Copy)]
struct Open<'a> {
    region: Region,
    in_section: bool,
    /// Target of a link that leads to an image file.
    link: Option<&'a str>,
    /// The `picture` around.
    picture: Option<NodeRef<'a, Element>>,
    scope: Scope,
}

/// The item whose microdata an element belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Scope {
    /// A product, by its number. 0 stands for properties outside of items.
    Product(usize),
    /// An image of a product.
    ImageOf(usize),
    Other,
}

struct Walk<'a> {
    finds: Finds,
    wrappers: HashMap<NodeId, Wrapper>,
    open: Vec<Open<'a>>,
    /// The `picture` elements whose sources are used.
    images: HashSet<NodeId>,
    /// Number of products in the microdata so far.
    items: usize,
    /// The first product with an image. Those of others are of other products.
    item: Option<usize>,
}

/// The reason that an element is no aside, whatever its names are.
#[derive(Clone, Copy, PartialEq)]
enum Wrapper {
    /// It holds the main content.
    Page,
    /// It holds everything, but nothing says that this is a page: its images are used if there are no others.
    All,
}

/// The elements that hold the whole page.
fn wrappers(root: NodeRef<'_, Element>) -> HashMap<NodeId, Wrapper> {
    let mut wrappers = HashMap::new();
    let is_main = |element: &Element| element.name() == "main" || element.get("role") == Some("main");
    let mut has_content = false;
    for node in root.descendants() {
        let element = node.value();
        if is_main(element) {
            let mut around = node.parent();
            while let Some(node) = around.filter(|node| wrappers.insert(node.id(), Wrapper::Page).is_none()) {
                around = node.parent();
            }
        }
        has_content |= element.name() == "h1" || meaning(element) == Some(Meaning::Gallery);
    }
    let has_no_image =
        |node: &NodeRef<'_, Element>| matches!(node.value().name(), "link" | "meta" | "base" | "template");
    let mut outer = root.descendants().find(|node| node.value().name() == "body");
    while let Some(node) = outer {
        wrappers.entry(node.id()).or_insert(if has_content { Wrapper::Page } else { Wrapper::All });
        let mut inner = node.children().filter(|child| !has_no_image(child));
        outer = inner.next().filter(|_| inner.next().is_none());
    }
    wrappers
}

/// The meaning that an element has for the images in it, by its names.
fn meaning(element: &Element) -> Option<Meaning> {
    if rules::UNNAMED.contains(&element.name()) {
        return None;
    }
    let names = element.attributes().filter(|(name, _)| rules::NAMING.contains(name));
    rules::meaning(element.name(), names.map(|(_, value)| value))
}

impl<'a> Walk<'a> {
    fn enter(&mut self, node: NodeRef<'a, Element>) {
        let element = node.value();
        let outside =
            Open { region: Region::Text, in_section: false, link: None, picture: None, scope: Scope::Product(0) };
        let around = self.open.last().copied().unwrap_or(outside);
        let mut open = around;
        if let Some(meaning) = meaning(element) {
            let entered = around.region.enter(meaning, around.in_section);
            open.region = match self.wrappers.get(&node.id()) {
                Some(_) if entered != Region::Aside => entered,
                Some(Wrapper::Page) => around.region,
                Some(Wrapper::All) => Region::AsideFrame,
                None => entered,
            };
        }
        open.in_section |= rules::SECTIONS.contains(&element.name());
        match element.name() {
            "base" => {
                if let Some(href) = element.get("href") {
                    self.finds.base.get_or_insert_with(|| href.to_owned());
                }
            }
            "meta" => self.meta(element),
            "link" => {
                let names_image = words(element, "rel").any(|rel| rel.eq_ignore_ascii_case("image_src"));
                self.finds.last_resorts.extend(element.get("href").filter(|_| names_image).map(str::to_owned));
            }
            "a" => {
                open.link = element.get("href").filter(|href| rules::is_image_file(href) && holds_one_image(node));
            }
            "picture" => open.picture = Some(node),
            _ => {}
        }
        let is_image_of_product = self.microdata(element, &mut open);
        if is_image(element) {
            self.read_image(element, if is_image_of_product { Region::Gallery } else { open.region }, open);
        } else if open.region == Region::Gallery {
            self.backgrounds(element);
        }
        for attribute in DATA_ATTRIBUTES {
            let json = element.get(attribute).filter(|text| text.starts_with(['{', '[']));
            self.finds.data.extend(json.map(str::to_owned));
        }
        self.open.push(open);
    }

    fn meta(&mut self, element: &Element) {
        let Some(content) = element.get("content") else { return };
        let property = element.get("property").or_else(|| element.get("name")).unwrap_or_default();
        match &*property.to_ascii_lowercase() {
            "og:image" | "og:image:url" | "og:image:secure_url" => self.finds.open_graph.push(content.to_owned()),
            "twitter:image" | "twitter:image:src" => self.finds.last_resorts.push(content.to_owned()),
            _ => {}
        }
    }

    /// Reads the microdata of an element (WHATWG HTML, 5.2); returns whether it is an image of the product.
    fn microdata(&mut self, element: &Element, open: &mut Open<'a>) -> bool {
        let names = |wanted: &[&str]| words(element, "itemprop").any(|name| wanted.contains(&name));
        let around = open.scope;
        if element.get("itemscope").is_some() {
            let is_part = element.get("itemprop").is_some_and(|_| !names(&["mainEntity", "itemOffered"]));
            open.scope = match around {
                Scope::Product(item) if names(&["image"]) => Scope::ImageOf(item),
                _ if !is_part && open.region.is_main() && is_product(element) => {
                    self.items += 1;
                    Scope::Product(self.items)
                }
                _ => Scope::Other,
            };
            return false;
        }
        let item = match around {
            Scope::Product(item) if names(&["image"]) => item,
            Scope::ImageOf(item) if names(&["url", "contentUrl"]) => item,
            _ => return false,
        };
        // An item counts before properties outside of items.
        let is_of_other = self.item.is_some_and(|known| known != item && known != 0);
        if !open.region.is_main() || is_of_other {
            return false;
        }
        self.item = Some(item);
        let value = match element.name() {
            "a" | "link" | "area" => element.get("href"),
            _ => element.get("content"),
        };
        self.finds.microdata.extend(value.map(str::to_owned));
        true
    }

    fn read_image(&mut self, element: &'a Element, region: Region, open: Open<'a>) {
        let file = |name: &str| element.get(name).filter(|value| is_file(value)).map(str::to_owned);
        let zoom = rules::ZOOM.iter().filter_map(|name| file(name));
        let link = open.link.filter(|_| region != Region::Aside).map(str::to_owned);
        // Of the first `img` only, as in the standard: else many would share many sources.
        let picture = open.picture.filter(|picture| self.images.insert(picture.id()));
        let sources = || {
            let nodes = picture.into_iter().flat_map(|picture| picture.children()).map(|node| node.value());
            nodes.filter(|source| source.name() == "source")
        };
        let largest_first = |sources: &mut dyn Iterator<Item = &'a Element>| {
            let mut candidates: Vec<(String, u32)> = sources.flat_map(sets).collect();
            candidates.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
            candidates.into_iter().map(|(file, _)| file)
        };
        let candidates = largest_first(&mut sources().filter(|source| is_kept(source)).chain([element]));
        let lazy = rules::LAZY.iter().filter_map(|name| file(name));
        let is_other = |name: &str| {
            rules::names_a_file(name) && ![&rules::ZOOM[..], &rules::LAZY].iter().any(|known| known.contains(&name))
        };
        let other = element.attributes().filter(|(name, value)| is_other(name) && rules::is_image_file(value));
        let mut files = zoom
            .chain(link)
            .chain(candidates)
            .chain(lazy)
            .chain(other.map(|(_, value)| value.to_owned()))
            .filter(|file| !file.contains("{width}"))
            .take(FILES_MAX)
            .collect::<Vec<_>>();
        let src = element.get("src").filter(|src| !src.trim().is_empty() && !src.starts_with("data:"));
        let src = src.filter(|src| !src.contains("{width}")).map(str::to_owned);
        if files.is_empty() && src.is_none() {
            files.extend(largest_first(&mut sources().filter(|source| is_converted(source))).take(FILES_MAX));
        }
        if (!files.is_empty() || src.is_some()) && self.finds.images.len() < IMAGES_MAX {
            let is_tiny = files.is_empty() && is_tiny(element);
            self.finds.images.push(PageImage { files, src, region, is_tiny });
        }
    }

    /// Adds the backgrounds of an element in a gallery that is not an image element.
    fn backgrounds(&mut self, element: &Element) {
        let of_style = element.get("style").and_then(background);
        let of_data = element
            .attributes()
            .filter(|(name, value)| rules::names_a_file(name) && rules::is_image_file(value) && is_file(value));
        let found = of_style.into_iter().chain(of_data.map(|(_, value)| value));
        let room = IMAGES_MAX.saturating_sub(self.finds.last_resorts.len());
        self.finds.last_resorts.extend(found.take(room).map(str::to_owned));
    }
}

fn is_image(element: &Element) -> bool {
    matches!(element.name(), "img" | "amp-img")
}

/// Returns `true` if the `img` elements in a link show one file: it may be there a second time for clients without scripts.
fn holds_one_image(link: NodeRef<'_, Element>) -> bool {
    let shown = |element: &'_ Element| {
        let file = rules::LAZY.iter().chain(&["src"]).filter_map(|name| element.get(name)).find(|value| is_file(value));
        file.map(str::to_owned)
    };
    let mut files = link.descendants().filter(|node| is_image(node.value())).filter_map(|node| shown(node.value()));
    let first = files.next();
    files.all(|file| Some(&file) == first.as_ref())
}

fn words<'a>(element: &'a Element, attribute: &str) -> impl Iterator<Item = &'a str> {
    element.get(attribute).unwrap_or_default().split_ascii_whitespace()
}

/// Returns `true` if an item is a product (schema.org).
fn is_product(element: &Element) -> bool {
    words(element, "itemtype").any(super::linked::is_kind_of_product)
}

/// Returns `true` if a value may be the address of a file.
fn is_file(value: &str) -> bool {
    let value = value.trim();
    !value.starts_with("data:") && (value.contains('/') || rules::is_image_file(value))
}

/// Returns `true` if the files of a `<source>` can be stored as they are.
fn is_kept(source: &Element) -> bool {
    let kind = essence(source.get("type").unwrap_or_default());
    kind.is_empty() || rules::TYPES.contains(&&*kind)
}

/// Returns `true` if the files of a `<source>` can be imported in another format.
fn is_converted(source: &Element) -> bool {
    essence(source.get("type").unwrap_or_default()) == rules::CONVERTED
}

/// The address in the `background` of a style.
fn background(style: &str) -> Option<&str> {
    let lower = style.to_ascii_lowercase();
    let at = lower.find("background")?;
    let start = at + lower[at..].find("url(")? + "url(".len();
    let end = start + style[start..].find(')')?;
    let address = style[start..end].trim().trim_matches(['"', '\'']).trim();
    (!address.is_empty() && !address.starts_with("data:")).then_some(address)
}

/// The candidates of `srcset` or of an attribute that becomes one, with their sizes.
fn sets(element: &Element) -> Vec<(String, u32)> {
    let mut candidates = Vec::new();
    for set in rules::SETS.iter().filter_map(|name| element.get(name)) {
        candidates.extend(srcset::candidates(set));
    }
    // Amazon: an object that maps addresses to width and height.
    if let Some(Ok(sizes)) = element.get("data-a-dynamic-image").map(serde_json::from_str::<Sizes>) {
        candidates.extend(sizes.into_iter().map(|(file, [width, _])| (file, width)));
    }
    // Shopify: an address with a placeholder for one of the widths in another attribute.
    if let Some(template) = rules::LAZY.iter().filter_map(|name| element.get(name)).find(|at| at.contains("{width}")) {
        let widths = element.get("data-widths").and_then(|text| serde_json::from_str::<Vec<u32>>(text).ok());
        let width = widths.and_then(|widths| widths.into_iter().max()).unwrap_or(1080);
        candidates.push((template.replace("{width}", &width.to_string()), width));
    }
    candidates.retain(|(file, _)| !file.trim().is_empty() && !file.starts_with("data:"));
    candidates
}

type Sizes = HashMap<String, [u32; 2]>;

/// Returns `true` if both declared sides are those of an icon or a tracking pixel.
fn is_tiny(element: &Element) -> bool {
    let side = |name: &str| element.get(name).and_then(|text| text.trim_end_matches("px").trim().parse::<f64>().ok());
    matches!((side("width"), side("height")), (Some(width), Some(height)) if width.max(height) < 64.0)
}
