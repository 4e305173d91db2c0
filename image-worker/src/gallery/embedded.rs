//! Product data that shop systems embed in their pages for their own scripts.
//!
//! There is no standard, but there are few variants. A product is an object with a name, images,
//! and a field that indicates a sale. Its location differs (Shopify: a separate script; Next.js and
//! similar: deep in the page state), so it is recognized by its fields. WooCommerce's variations
//! and Magento's galleries have specific formats.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;
use serde_json::{Deserializer, Map, Value};

use super::json;
use super::product::{ADDRESSES_MAX, Images, Product, VARIANTS_MAX, Variant, bounded, scalar};

/// Maximum number of objects and lists to examine per document. A page state is large, but a
/// product is near its root.
const VALUES_MAX: usize = 200_000;

/// Maximum number of options of a product, such as color and size.
const OPTIONS_MAX: usize = 100;

/// Names under which programs store the page state for their scripts.
const STATES: [&str; 10] = [
    "__INITIAL_STATE__",
    "__PRELOADED_STATE__",
    "__NUXT__",
    "__NEXT_DATA__",
    "__APOLLO_STATE__",
    "__STATE__",
    "__remixContext",
    "SQUARESPACE_CONTEXT",
    "product =",
    "productData",
];

/// Fields that hold images, the fuller lists first.
const IMAGE_MEMBERS: [&str; 14] = [
    "images",
    "media",
    "gallery",
    "galleryImages",
    "imageGallery",
    "mediaGallery",
    "media_gallery",
    "pictures",
    "photos",
    "featured_image",
    "featuredImage",
    "featured_media",
    "image",
    "mainImage",
];

/// Fields of an image that hold its address, the larger sizes first.
const ADDRESS_MEMBERS: [&str; 19] = [
    "full_src",
    "fullUrl",
    "full",
    "zoom",
    "zoomUrl",
    "large",
    "largeUrl",
    "originalSrc",
    "original",
    "contentUrl",
    "url",
    "src",
    "href",
    "link",
    "preview_image",
    "previewImage",
    "image",
    "img",
    "path",
];

/// Fields that hold variants.
const VARIANT_MEMBERS: [&str; 4] = ["variants", "variations", "skus", "productVariants"];

/// Fields that distinguish a product from an article, which also has a name and images.
const SALE_MEMBERS: [&str; 14] = [
    "variants",
    "variations",
    "price",
    "prices",
    "priceRange",
    "price_range",
    "sku",
    "skus",
    "offers",
    "options",
    "vendor",
    "availability",
    "available",
    "compare_at_price",
];

type Object = Map<String, Value>;

/// The product of a page, from the JSON in its scripts and attributes, and from its programs.
pub fn product(data: &[String], programs: &[String]) -> Product {
    // Parsed one at a time, since each may take all the memory.
    let documents = data.iter().filter_map(|text| json::parse(text.trim()));
    let states = programs.iter().flat_map(|program| states(program)).filter_map(json::parse);
    let mut images = Images::default();
    let mut variants = Vec::new();
    for document in documents.chain(states) {
        let next = in_document(&document);
        if variants.is_empty() {
            variants = next.variants;
        }
        images.add(next.images);
    }
    Product { images: images.list, variants }
}

/// The JSON objects that a program assigns to known names of a page state. An object near several names is given once.
fn states(program: &str) -> impl Iterator<Item = &str> {
    let mut known = HashSet::new();
    STATES.iter().filter_map(move |name| {
        let after = program.find(name)? + name.len();
        // Only near the name: further on it is another statement.
        let start = after + program[after..].find('{').filter(|distance| *distance < 64)?;
        if !known.insert(start) {
            return None;
        }
        // What follows the object does not count as its text.
        Some(Deserializer::from_str(&program[start..]).into_iter::<&RawValue>().next()?.ok()?.get())
    })
}

fn in_document(document: &Value) -> Product {
    if let Some(variations) = woocommerce(document) {
        return variations;
    }
    let mut finds = Finds::default();
    finds.look(document);
    let product = finds.named.or(finds.shallowest).map(product_of).unwrap_or_default();
    let mut images = Images::default();
    images.add(product.images.into_iter().chain(finds.magento_images.list));
    let variants = if product.variants.is_empty() { finds.magento_variants } else { product.variants };
    Product { images: images.list, variants }
}

/// Candidates for the product in a document.
#[derive(Default)]
struct Finds<'a> {
    /// A product whose type says so.
    named: Option<&'a Object>,
    /// The product nearest to the root that is not an item of a list.
    shallowest: Option<&'a Object>,
    /// Magento's gallery.
    magento_images: Images,
    /// Magento's swatches.
    magento_variants: Vec<Variant>,
}

impl<'a> Finds<'a> {
    /// Searches breadth-first, so that what is nearest to the root is found first.
    fn look(&mut self, document: &'a Value) {
        let mut level = vec![("", document, false)];
        let mut left = VALUES_MAX;
        while !level.is_empty() && self.named.is_none() {
            let mut next = Vec::new();
            for (name, value, listed) in level {
                let room = left - next.len();
                match value {
                    Value::Object(object) => {
                        self.take(name, object, listed);
                        let fields = object.iter().filter(|(_, value)| is_nested(value)).take(room);
                        next.extend(fields.map(|(name, value)| (name.as_str(), value, listed)));
                    }
                    Value::Array(items) => {
                        let items = items.iter().filter(|item| is_nested(item)).take(room);
                        next.extend(items.map(|item| (name, item, true)));
                    }
                    _ => {}
                }
            }
            left -= next.len();
            level = next;
        }
    }

    fn take(&mut self, name: &str, object: &'a Object, listed: bool) {
        if is_product(object) && !listed {
            let is_named = matches!(name, "product" | "productData" | "currentProduct" | "pdp" | "productDetail");
            let place = if is_named { &mut self.named } else { &mut self.shallowest };
            place.get_or_insert(object);
        }
        match name {
            "mage/gallery/gallery" => {
                self.magento_images.add(object.get("data").into_iter().flat_map(addresses));
            }
            "jsonConfig" => self.magento_variants = swatches(object),
            _ => {}
        }
    }
}

fn is_nested(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

fn is_product(object: &Object) -> bool {
    let has = |members: &[&str]| members.iter().any(|member| object.get(*member).is_some_and(|value| !value.is_null()));
    has(&["title", "name", "productName"]) && has(&IMAGE_MEMBERS) && has(&SALE_MEMBERS)
}

fn product_of(object: &Object) -> Product {
    let mut images = Images::default();
    images.add(image_addresses(object));
    let names = option_names(object);
    let variants = VARIANT_MEMBERS.iter().find_map(|member| object.get(*member)).map(unwrapped).unwrap_or_default();
    let variants: Vec<&Object> = variants.into_iter().filter_map(Value::as_object).take(VARIANTS_MAX).collect();
    let shared = Shared::new(object, &variants);
    let variants = bounded(variants.iter().map(|variant| variant_of(variant, &names, &shared)));
    Product { images: images.list, variants }
}

/// The names that `option1` to `option3` stand for.
fn option_names(product: &Object) -> Vec<String> {
    let options = product.get("options").map(unwrapped).unwrap_or_default();
    let names = options.into_iter().filter_map(|option| scalar(option).or_else(|| option.get("name").and_then(scalar)));
    names.take(OPTIONS_MAX).collect()
}

/// The images of a product by the ids that tie them to variants, each with its position.
#[derive(Default)]
struct Shared<'a> {
    by_id: HashMap<&'a Value, Vec<(usize, &'a str)>>,
    by_variant: HashMap<&'a Value, Vec<(usize, &'a str)>>,
}

impl<'a> Shared<'a> {
    fn new(product: &'a Object, variants: &[&'a Object]) -> Self {
        let mut by_id: HashMap<_, Vec<_>> = HashMap::new();
        // No other ids, of which there may be far more.
        let ids = variants.iter().filter_map(|variant| variant.get("id"));
        let mut by_variant: HashMap<_, Vec<_>> = ids.map(|id| (id, Vec::new())).collect();
        let all = product.get("images").or_else(|| product.get("media")).map(unwrapped).unwrap_or_default();
        for (at, image) in all.into_iter().take(ADDRESSES_MAX).enumerate() {
            let Some(address) = address(image) else { continue };
            if let Some(id) = image.get("id").filter(|id| !id.is_null()) {
                by_id.entry(id).or_default().push((at, address));
            }
            for id in list(image, "variant_ids") {
                if let Some(tied) = by_variant.get_mut(id)
                    && tied.last().is_none_or(|(last, _)| *last != at)
                {
                    tied.push((at, address));
                }
            }
        }
        Self { by_id, by_variant }
    }

    /// The images with an id, and those that name a variant, in order.
    fn tied(&self, id: Option<&'a Value>, variant: Option<&'a Value>) -> impl Iterator<Item = &'a str> + use<'a> {
        let named = id.and_then(|id| self.by_id.get(id));
        let naming = variant.and_then(|id| self.by_variant.get(id));
        let mut tied: Vec<_> = named.into_iter().chain(naming).flatten().copied().collect();
        tied.sort_unstable();
        tied.into_iter().map(|(_, address)| address)
    }
}

fn variant_of<'a>(variant: &'a Object, options: &[String], shared: &Shared<'a>) -> Variant {
    // Magento's GraphQL nests the product of a variant one level deeper.
    let inner = variant.get("product").and_then(Value::as_object);
    let mut attributes = attributes(variant, options);
    let mut images = Images::default();
    images.add([Some(variant), inner].into_iter().flatten().flat_map(image_addresses));
    if let Some(inner) = inner {
        attributes.extend(self::attributes(inner, &[]));
    }
    let image_id = variant.get("image_id").or_else(|| variant.get("imageId"));
    images.add(shared.tied(image_id, variant.get("id")));
    Variant { attributes, images: images.list }
}

/// The attributes that distinguish a variant from the others.
fn attributes(variant: &Object, options: &[String]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = variant
        .iter()
        .filter(|(name, _)| !IMAGE_MEMBERS.contains(&name.as_str()))
        .filter_map(|(name, value)| Some((name.clone(), scalar(value)?)))
        .collect();
    for (index, name) in options.iter().enumerate() {
        let numbered = variant.get(&format!("option{}", index + 1)).and_then(scalar);
        let listed = variant.get("options").and_then(|options| options.get(index)).and_then(scalar);
        found.extend(numbered.or(listed).map(|value| (name.clone(), value)));
    }
    for member in ["selectedOptions", "attributes", "options", "optionValues", "specs"] {
        match variant.get(member) {
            Some(Value::Object(map)) => {
                let pairs = map.iter().filter_map(|(name, value)| Some((bare(name), scalar(value)?)));
                found.extend(pairs);
            }
            Some(Value::Array(items)) => found.extend(items.iter().filter_map(|item| {
                let name = ["name", "code", "optionName", "key", "id"]
                    .iter()
                    .find_map(|name| item.get(*name).and_then(scalar))?;
                let value = ["value", "label", "valueName"].iter().find_map(|name| item.get(*name).and_then(scalar))?;
                Some((name, value))
            })),
            _ => {}
        }
    }
    found
}

/// WooCommerce's `data-product_variations`: a list of variations with `attributes` and one `image` each.
fn woocommerce(document: &Value) -> Option<Product> {
    let items = document.as_array()?;
    let is_variation = |item: &Value| item.get("variation_id").is_some() && item.get("attributes").is_some();
    if items.is_empty() || !items.iter().all(is_variation) {
        return None;
    }
    let variants = items.iter().filter_map(Value::as_object);
    let variants = bounded(variants.map(|item| variant_of(item, &[], &Shared::default())));
    Some(Product { images: Vec::new(), variants })
}

/// `attribute_pa_color` becomes `color`.
fn bare(name: &str) -> String {
    let name = name.strip_prefix("attribute_").unwrap_or(name);
    name.strip_prefix("pa_").unwrap_or(name).to_owned()
}

/// Magento's swatches: attributes with options that name products, and images by product.
fn swatches(config: &Object) -> Vec<Variant> {
    let Some(images) = config.get("images").and_then(Value::as_object) else { return Vec::new() };
    let attributes = config.get("attributes").and_then(Value::as_object).into_iter().flat_map(Map::values);
    // The attributes of each product, with the first option that names it.
    let products = images.keys().take(VARIANTS_MAX);
    let mut chosen: HashMap<&str, Vec<(&Value, &Value)>> =
        products.map(|product| (product.as_str(), Vec::new())).collect();
    for attribute in attributes.take(OPTIONS_MAX) {
        for option in list(attribute, "options") {
            for product in list(option, "products").iter().filter_map(scalar) {
                if let Some(options) = chosen.get_mut(product.as_str())
                    && options.last().is_none_or(|(last, _)| !std::ptr::eq(*last, attribute))
                {
                    options.push((attribute, option));
                }
            }
        }
    }
    bounded(images.iter().map(|(product, listed)| {
        let mut images = Images::default();
        images.add(addresses(listed));
        let mut attributes = vec![("id".to_owned(), product.clone())];
        for (attribute, option) in chosen.get(product.as_str()).into_iter().flatten() {
            let Some(value) = option.get("label").and_then(scalar) else { continue };
            let names = ["code", "label"].iter().filter_map(|name| attribute.get(*name).and_then(scalar));
            attributes.extend(names.map(|name| (name, value.clone())));
        }
        Variant { attributes, images: images.list }
    }))
}

/// The addresses of the images of an object.
fn image_addresses(object: &Object) -> impl Iterator<Item = &str> {
    IMAGE_MEMBERS.iter().filter_map(move |member| object.get(*member)).flat_map(addresses)
}

/// The addresses of an image or a list of images.
fn addresses(value: &Value) -> impl Iterator<Item = &str> {
    unwrapped(value).into_iter().filter_map(address)
}

/// The address of an image: a string, or a field of an object that is not a video or a 3D model.
fn address(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => looks_like_address(text).then_some(text),
        Value::Object(object) => {
            let kinds = ["media_type", "mediaType", "mediaContentType", "type"];
            let kind = kinds.iter().find_map(|member| object.get(*member)?.as_str()).unwrap_or_default().to_lowercase();
            if kind.contains("video") || kind.contains("model") {
                return None;
            }
            ADDRESS_MEMBERS.iter().find_map(|member| object.get(*member).and_then(address))
        }
        _ => None,
    }
}

fn looks_like_address(text: &str) -> bool {
    !text.contains(char::is_whitespace) && (text.starts_with("http") || text.starts_with('/') || text.contains('.'))
}

/// The items of a list; GraphQL wraps them in `edges` or `nodes`.
fn unwrapped(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().map(|item| item.get("node").unwrap_or(item)).collect(),
        Value::Object(object) => match object.get("edges").or_else(|| object.get("nodes")) {
            Some(inner) => unwrapped(inner),
            None => vec![value],
        },
        Value::Null => Vec::new(),
        one => vec![one],
    }
}

fn list<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value.get(member).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_near_several_names_is_one_state() {
        let object = r#"{"a":[{"":0}]}"#;
        let program = format!("__APOLLO_STATE____NEXT_DATA____NUXT____STATE__product =productData{object};f({{}})");
        assert_eq!(states(&program).collect::<Vec<_>>(), [object]);
        let program = format!("__NUXT__={object};__NEXT_DATA__={object}");
        assert_eq!(states(&program).count(), 2, "two objects with equal text");
    }
}
