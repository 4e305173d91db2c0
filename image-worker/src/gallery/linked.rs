//! JSON-LD: `Product` and `ProductGroup` of schema.org, with `hasVariant`.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::json;
use super::product::{Images, Product, Variant, bounded, scalar};

/// Maximum nesting of entities that is followed.
const NESTING_MAX: usize = 8;

type Entity = Map<String, Value>;

/// Fields of a variant that are handled elsewhere or are no attributes.
const NO_ATTRIBUTES: [&str; 4] = ["description", "url", "image", "inProductGroupWithID"];

/// The product of a page, from its JSON-LD: a group with its variants, or the first product that has pictures.
pub fn product(texts: &[String]) -> Product {
    let mut left = json::WEIGHT_MAX;
    let documents: Vec<Value> = texts.iter().filter_map(|text| parse(text, &mut left)).collect();
    let mut graph = Graph::default();
    for document in &documents {
        graph.collect(document, 0);
    }
    let group = graph.entities.iter().find(|entity| is_a(entity, "ProductGroup") || entity.contains_key("hasVariant"));
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

/// Parses the JSON of a script within `left` bytes of memory, after removing what old templates add around and inside it.
fn parse(text: &str, left: &mut u64) -> Option<Value> {
    let text = text.trim().trim_start_matches("<!--").trim_end_matches("-->").trim();
    let text = text.trim_start_matches("//<![CDATA[").trim_end_matches("//]]>").trim().trim_end_matches(';');
    json::parse_within(text, left).or_else(|| {
        // Line breaks and tabs inside strings are the most common error.
        let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        json::parse_within(&spaced, left)
    })
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
        if depth > NESTING_MAX {
            return;
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.collect(item, depth + 1)),
            Value::Object(entity) => {
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
        let values = ["image", "images"].iter().filter_map(|member| entity.get(*member)).flat_map(items);
        let mut images = Images::default();
        images.add(values.filter_map(|value| match value {
            Value::String(address) => Some(address.as_str()),
            _ => {
                let image = self.resolved(value)?;
                ["contentUrl", "url", "@id"].iter().find_map(|member| image.get(*member)?.as_str())
            }
        }));
        images.list
    }
}

/// The items of a list, or the single value that may replace a list.
fn items<'a>(value: &'a Value) -> impl Iterator<Item = &'a Value> + use<'a> {
    match value {
        Value::Array(items) => items.iter(),
        one => std::slice::from_ref(one).iter(),
    }
}

/// A scalar, or the `name` of an object (`{"@type": "SizeSpecification", "name": "M"}`).
fn named_value(value: &Value) -> Option<String> {
    scalar(value).or_else(|| value.get("name").and_then(scalar))
}

fn is_a(entity: &Entity, kind: &str) -> bool {
    let mut kinds = entity.get("@type").into_iter().flat_map(items).filter_map(Value::as_str);
    kinds.any(|stated| stated.rsplit(['/', ':', '#']).next() == Some(kind))
}

fn is_product(entity: &Entity) -> bool {
    ["Product", "IndividualProduct", "ProductModel", "Vehicle", "Book"].iter().any(|kind| is_a(entity, kind))
}

fn group_id(entity: &Entity) -> Option<String> {
    entity.get("inProductGroupWithID").and_then(scalar)
}
