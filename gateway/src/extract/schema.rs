//! The compiled schema of a request type.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, RwLock};

use jsonschema::Validator;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::openapi::{close_variants, exclude_null, join_inlined};

/// The schema of `T`, compiled at its first use.
pub(super) fn validator<T: ToSchema + 'static>() -> Arc<Validator> {
    static VALIDATORS: LazyLock<RwLock<HashMap<TypeId, Arc<Validator>>>> = LazyLock::new(RwLock::default);
    let poisoned = "a schema's compilation does not panic while the map is held";
    if let Some(validator) = VALIDATORS.read().expect(poisoned).get(&TypeId::of::<T>()) {
        return validator.clone();
    }
    let mut referenced = Vec::new();
    T::schemas(&mut referenced);
    let components: serde_json::Map<String, Value> = referenced
        .into_iter()
        .map(|(name, mut schema)| {
            close_variants(&mut schema);
            (name, serde_json::to_value(schema).expect("an OpenAPI schema serializes"))
        })
        .collect();
    let mut schema = T::schema();
    close_variants(&mut schema);
    let mut schema = serde_json::to_value(schema).expect("an OpenAPI schema serializes");
    schema["components"] = json!({ "schemas": components });
    exclude_null(&mut schema);
    select_by_tag(&mut schema);
    let compiled =
        jsonschema::draft202012::new(&schema).expect("a derived schema is valid: a test of the router compiles each");
    let compiled = Arc::new(compiled);
    VALIDATORS.write().expect(poisoned).insert(TypeId::of::<T>(), compiled.clone());
    compiled
}

/// The fields that discriminate the variants of a union.
const TAGS: [&str; 2] = ["type", "operation"];

/// Replaces each union of tagged objects by one condition for each tag. `oneOf` reports a copy of the value for each variant, and
/// conditions report the violations of the variant that the tag names, without a copy.
fn select_by_tag(schema: &mut Value) {
    join_inlined(schema);
    match schema {
        Value::Array(items) => items.iter_mut().for_each(select_by_tag),
        Value::Object(members) => {
            members.values_mut().for_each(select_by_tag);
            if let Some((tag, variants)) = members.get("oneOf").and_then(tagged) {
                let names: Vec<&Value> = variants.iter().map(|(name, _)| name).collect();
                let of_tag =
                    |names: Value| json!({"type": "object", "required": [tag], "properties": {tag: {"enum": names}}});
                let selects =
                    variants.iter().map(|(name, variant)| json!({"if": of_tag(json!([name])), "then": variant}));
                let mut union = of_tag(json!(names));
                union["allOf"] = selects.collect();
                let Value::Object(union) = union else { unreachable!("an object") };
                members.remove("oneOf");
                members.extend(union);
            }
        }
        _ => {}
    }
}

/// The tag of a union, and its variants with the values of the tag; `None` when a variant has no tag.
fn tagged(variants: &Value) -> Option<(&'static str, Vec<(Value, Value)>)> {
    let variants = variants.as_array()?;
    TAGS.into_iter().find_map(|tag| {
        let name = |variant: &Value| match variant["properties"][tag]["enum"].as_array()?.as_slice() {
            [name] => Some((name.clone(), variant.clone())),
            _ => None,
        };
        Some((tag, variants.iter().map(name).collect::<Option<_>>()?))
    })
}
