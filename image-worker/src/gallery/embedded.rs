//! Product data that shop systems embed in their pages for their own scripts.
//!
//! There is no standard, but there are few variants. A product is an object with a name, pictures,
//! and a field that indicates a sale. Its location differs (Shopify: a separate script; Next.js and
//! similar: deep in the page state), so it is recognized by its fields. WooCommerce's variations
//! and Magento's galleries have specific formats.

use serde_json::{Map, Value};

use super::product::{Product, Variant, extend_once, scalar};

/// Maximum number of values to examine per document. A page state is large, but a product is near
/// its root.
const VALUES_MAX: usize = 200_000;

/// Names under which programs store the page state for their scripts.
const STATES: [&str; 8] = [
    "__INITIAL_STATE__",
    "__PRELOADED_STATE__",
    "__NUXT__",
    "__NEXT_DATA__",
    "__APOLLO_STATE__",
    "__STATE__",
    "product =",
    "productData",
];

/// Fields that hold pictures, the fuller lists first.
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

/// Fields of a picture that hold its address, the larger sizes first.
const ADDRESS_MEMBERS: [&str; 18] = [
    "full_src",
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

/// Fields that distinguish a product from an article, which also has a name and pictures.
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
    let documents = data.iter().filter_map(|text| serde_json::from_str(text.trim()).ok());
    let states = programs.iter().flat_map(|program| states(program));
    let mut found = Product::default();
    for document in documents.chain(states) {
        let next = in_document(&document);
        if found.variants.is_empty() {
            found.variants = next.variants;
        }
        extend_once(&mut found.images, next.images);
    }
    found
}

/// The JSON that a program assigns to a known name of a page state.
fn states(program: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for name in STATES {
        let Some(at) = program.find(name) else { continue };
        let after = &program[at + name.len()..];
        // Only near the name: further on it is another statement.
        let Some(start) = after.find('{').filter(|start| *start < 64) else { continue };
        let mut values = serde_json::Deserializer::from_str(&after[start..]).into_iter::<Value>();
        found.extend(values.next().and_then(Result::ok));
    }
    found
}

fn in_document(document: &Value) -> Product {
    if let Some(variations) = woocommerce(document) {
        return variations;
    }
    let mut finds = Finds::default();
    finds.look(document);
    let mut product = finds.named.or(finds.shallowest).map(product_of).unwrap_or_default();
    extend_once(&mut product.images, finds.magento.images);
    if product.variants.is_empty() {
        product.variants = finds.magento.variants;
    }
    product
}

/// Candidates for the product in a document.
#[derive(Default)]
struct Finds<'a> {
    /// A product whose type says so.
    named: Option<&'a Object>,
    /// The product nearest to the root that is not an item of a list.
    shallowest: Option<&'a Object>,
    /// Magento's gallery and swatches.
    magento: Product,
}

impl<'a> Finds<'a> {
    /// Searches breadth-first, so that what is nearest to the root is found first.
    fn look(&mut self, document: &'a Value) {
        let mut level = vec![("", document, false)];
        let mut seen = 0;
        while !level.is_empty() && self.named.is_none() && seen < VALUES_MAX {
            let mut next = Vec::new();
            for (name, value, listed) in level {
                seen += 1;
                match value {
                    Value::Object(object) => {
                        self.take(name, object, listed);
                        next.extend(object.iter().map(|(name, value)| (name.as_str(), value, listed)));
                    }
                    Value::Array(items) => next.extend(items.iter().map(|item| (name, item, true))),
                    _ => {}
                }
            }
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
                extend_once(&mut self.magento.images, object.get("data").map(addresses).unwrap_or_default());
            }
            "jsonConfig" => self.magento.variants = swatches(object),
            _ => {}
        }
    }
}

fn is_product(object: &Object) -> bool {
    let has = |members: &[&str]| members.iter().any(|member| object.get(*member).is_some_and(|value| !value.is_null()));
    has(&["title", "name", "productName"]) && has(&IMAGE_MEMBERS) && has(&SALE_MEMBERS)
}

fn product_of(object: &Object) -> Product {
    let mut images = Vec::new();
    for member in IMAGE_MEMBERS {
        extend_once(&mut images, object.get(member).map(addresses).unwrap_or_default());
    }
    let names = option_names(object);
    let variants = VARIANT_MEMBERS.iter().find_map(|member| object.get(*member)).map(unwrapped).unwrap_or_default();
    let variants = variants.into_iter().filter_map(Value::as_object);
    let variants = variants.map(|variant| variant_of(variant, &names, object)).collect();
    Product { images, variants }
}

/// The names that `option1` to `option3` stand for.
fn option_names(product: &Object) -> Vec<String> {
    let options = product.get("options").map(unwrapped).unwrap_or_default();
    options.into_iter().filter_map(|option| scalar(option).or_else(|| option.get("name").and_then(scalar))).collect()
}

fn variant_of(variant: &Object, options: &[String], product: &Object) -> Variant {
    // Magento's GraphQL nests the product of a variant one level deeper.
    let inner = variant.get("product").and_then(Value::as_object);
    let mut attributes = attributes(variant, options);
    let mut images = Vec::new();
    for object in [Some(variant), inner].into_iter().flatten() {
        for member in IMAGE_MEMBERS {
            extend_once(&mut images, object.get(member).map(addresses).unwrap_or_default());
        }
    }
    if let Some(inner) = inner {
        attributes.extend(self::attributes(inner, &[]));
    }
    let all = product.get("images").or_else(|| product.get("media")).map(unwrapped).unwrap_or_default();
    let (id, image_id) = (variant.get("id"), variant.get("image_id").or_else(|| variant.get("imageId")));
    for image in all {
        let is_named = image_id.is_some_and(|id| !id.is_null() && image.get("id") == Some(id));
        let names_it = id.is_some_and(|id| list(image, "variant_ids").contains(&id));
        if is_named || names_it {
            extend_once(&mut images, address(image));
        }
    }
    Variant { attributes, images }
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
    let variants = items.iter().filter_map(Value::as_object).map(|item| variant_of(item, &[], &Map::new()));
    Some(Product { images: Vec::new(), variants: variants.collect() })
}

/// `attribute_pa_color` becomes `color`.
fn bare(name: &str) -> String {
    let name = name.strip_prefix("attribute_").unwrap_or(name);
    name.strip_prefix("pa_").unwrap_or(name).to_owned()
}

/// Magento's swatches: attributes with options that name products, and pictures by product.
fn swatches(config: &Object) -> Vec<Variant> {
    let Some(images) = config.get("images").and_then(Value::as_object) else { return Vec::new() };
    let attributes: Vec<&Value> =
        config.get("attributes").and_then(Value::as_object).into_iter().flat_map(Map::values).collect();
    let variants = images.iter().map(|(product, pictures)| {
        let mut variant = Variant { images: addresses(pictures), attributes: vec![("id".to_owned(), product.clone())] };
        for attribute in &attributes {
            let chosen = list(attribute, "options")
                .into_iter()
                .find(|option| list(option, "products").iter().any(|named| scalar(named).as_deref() == Some(product)));
            let Some(value) = chosen.and_then(|option| option.get("label")).and_then(scalar) else { continue };
            let names = ["code", "label"].iter().filter_map(|name| attribute.get(*name).and_then(scalar));
            variant.attributes.extend(names.map(|name| (name, value.clone())));
        }
        variant
    });
    variants.collect()
}

/// The addresses of a picture or a list of pictures.
fn addresses(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    extend_once(&mut found, unwrapped(value).into_iter().filter_map(address));
    found
}

/// The address of a picture: a string, or a field of an object that is not a video or a 3D model.
fn address(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => looks_like_address(text).then(|| text.clone()),
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

fn list<'a>(value: &'a Value, member: &str) -> Vec<&'a Value> {
    value.get(member).and_then(Value::as_array).map(|items| items.iter().collect()).unwrap_or_default()
}
