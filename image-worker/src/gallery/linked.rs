//! JSON-LD: `Product` and `ProductGroup` of schema.org, with `hasVariant`.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::json;
use super::product::{Images, Product, Variant, bounded, scalar};

/// Maximum nesting of entities that is followed.
const NESTING_MAX: usize = 8;

/// Types of products.
const PRODUCTS: [&str; 6] = ["Product", "ProductGroup", "IndividualProduct", "ProductModel", "Vehicle", "Book"];

type Entity = Map<String, Value>;

/// Fields of a variant that are handled elsewhere or are no attributes.
const NO_ATTRIBUTES: [&str; 4] = ["description", "url", "image", "inProductGroupWithID"];

/// The product of a page, from its JSON-LD: a group with its variants, or the first product that has images.
pub fn product(texts: &[String]) -> Product {
    let mut left = json::WEIGHT_MAX;
    let documents: Vec<Value> = texts.iter().flat_map(|text| json::values(text, &mut left)).collect();
    let mut graph = Graph::default();
    for document in &documents {
        graph.collect(document, 0);
    }
    let group = graph.entities.iter().find(|entity| is_group(entity));
    if let Some(group) = group {
        return graph.group(group);
    }
    let products: Vec<&Entity> = graph.entities.iter().copied().filter(|entity| is_product(entity)).collect();
    // Without an explicit group, products that name the same group are its variants.
    if let Some(id) = products.iter().find_map(|product| group_id(product)) {
        let of_group = products.iter().filter(|product| group_id(product).as_deref() == Some(&id));
        return Product { images: Vec::new(), variants: bounded(of_group.map(|product| graph.variant(product))) };
    }
    let alone = products.iter().map(|product| graph.variant(product)).find(|alone| !alone.images.is_empty());
    alone.map_or_else(Product::default, |alone| Product { images: alone.images.clone(), variants: vec![alone] })
}

/// The entities of a page.
#[derive(Default)]
struct Graph<'a> {
    /// Top-level entities, in order.
    entities: Vec<&'a Entity>,
    /// All entities that have an id.
    by_id: HashMap<&'a str, &'a Entity>,
}

impl<'a> Graph<'a> {
    /// Collects the entities that describe the page: lists, `@graph`, and the `mainEntity` of a page. Lists of other products and
    /// relations to them are ignored.
    fn collect(&mut self, value: &'a Value, depth: usize) {
        match value {
            // The parser limits the depth of lists.
            Value::Array(items) => items.iter().for_each(|item| self.collect(item, depth)),
            Value::Object(entity) if depth <= NESTING_MAX => {
                if let Some(id) = entity.get("@id").and_then(Value::as_str).filter(|_| entity.len() > 1) {
                    self.by_id.entry(id).or_insert(entity);
                }
                self.entities.push(entity);
                for member in ["@graph", "mainEntity", "mainEntityOfPage", "isVariantOf"] {
                    if let Some(inner) = entity.get(member) {
                        self.collect(inner, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    /// The entity at this place, or the one that it refers to by id.
    fn resolved(&self, value: &'a Value) -> Option<&'a Entity> {
        let entity = value.as_object()?;
        let id = entity.get("@id").and_then(Value::as_str).filter(|_| entity.len() == 1);
        id.map_or(Some(entity), |id| self.by_id.get(id).copied())
    }

    fn group(&self, group: &'a Entity) -> Product {
        // A variant that is referred to again and again is read once.
        let mut known = HashSet::new();
        let stated = group.get("hasVariant").into_iter().flat_map(items).filter_map(|item| self.resolved(item));
        let stated = stated.filter(|variant| known.insert(std::ptr::from_ref(*variant)));
        let variants = bounded(stated.map(|variant| self.variant(variant)));
        let mut product = Product { images: self.images(group), variants };
        if product.variants.is_empty() {
            // The inverse relation: each variant names its group.
            let id = group.get("productGroupID").and_then(scalar);
            let names_this = |entity: &&&Entity| {
                is_product(entity) && (entity.contains_key("isVariantOf") || id.is_some() && group_id(entity) == id)
            };
            product.variants = bounded(self.entities.iter().filter(names_this).map(|variant| self.variant(variant)));
        }
        product
    }

    fn variant(&self, entity: &'a Entity) -> Variant {
        let mut attributes: Vec<(String, String)> = entity
            .iter()
            .filter(|(name, _)| !name.starts_with('@') && !NO_ATTRIBUTES.contains(&name.as_str()))
            .filter_map(|(name, value)| Some((name.clone(), named_value(value)?)))
            .collect();
        for property in entity.get("additionalProperty").into_iter().flat_map(items) {
            let name = property.get("name").or_else(|| property.get("propertyID")).and_then(scalar);
            attributes.extend(name.zip(property.get("value").and_then(named_value)));
        }
        Variant { attributes, images: self.images(entity) }
    }

    fn images(&self, entity: &'a Entity) -> Vec<String> {
        let mut images = Images::default();
        for value in ["image", "images"].iter().filter_map(|member| entity.get(*member)).flat_map(items) {
            self.addresses(value, 0, &mut images);
        }
        images.list
    }

    /// Adds the addresses of an image: a text, or what the fields of an object hold.
    fn addresses(&self, value: &'a Value, depth: usize, images: &mut Images) {
        if let Value::String(address) = value {
            images.add([address]);
        } else if let Some(image) = self.resolved(value).filter(|_| depth <= NESTING_MAX) {
            let known = images.list.len();
            for member in ["contentUrl", "url", "@id"] {
                if images.list.len() == known {
                    let values = image.get(member).into_iter().flat_map(items);
                    values.for_each(|value| self.addresses(value, depth + 1, images));
                }
            }
        }
    }
}

/// The items of a list at any depth, or the single value that may replace a list.
fn items(value: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items.iter().rev()),
            one => found.push(one),
        }
    }
    found
}

/// A scalar, or the `name` of an object (`{"@type": "SizeSpecification", "name": "M"}`).
fn named_value(value: &Value) -> Option<String> {
    scalar(value).or_else(|| value.get("name").and_then(scalar))
}

/// The types of an entity.
fn kinds(entity: &Entity) -> impl Iterator<Item = &str> {
    entity.get("@type").into_iter().flat_map(items).filter_map(Value::as_str)
}

/// The name of a type without its vocabulary.
fn bare(kind: &str) -> &str {
    kind.rsplit(['/', ':', '#']).next().unwrap_or_default()
}

/// Returns `true` if a type is that of products, in any case.
pub fn is_kind_of_product(kind: &str) -> bool {
    PRODUCTS.iter().any(|product| bare(kind).eq_ignore_ascii_case(product))
}

fn is_product(entity: &Entity) -> bool {
    kinds(entity).any(is_kind_of_product)
}

fn is_group(entity: &Entity) -> bool {
    entity.contains_key("hasVariant") || kinds(entity).any(|kind| bare(kind).eq_ignore_ascii_case("ProductGroup"))
}

fn group_id(entity: &Entity) -> Option<String> {
    entity.get("inProductGroupWithID").and_then(scalar)
}
