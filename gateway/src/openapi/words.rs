//! Descriptions that the derive leaves out: of members whose schema the code writes by itself.

use serde_json::Value;

/// Members, and what they are.
const WORDS: &[(&str, &str, &str)] = &[
    ("ApplyOperations", "validateOnly", "`false` or absent: the batch is applied."),
    ("CollectionDeleted", "deleted", "Always `true`."),
    ("DeleteCollection", "confirm", "Must be `true`. Agents must ask a person for confirmation first."),
    ("ElementArchive", "confirm", "Must be `true`. Agents must ask a person for confirmation first."),
    ("ImageJob", "kind", "Kind of the job."),
    (
        "ImageStart",
        "references",
        "Pictures that guide the results, each with a role or without. When omitted with a single target: the pictures of its \
         incoming `reference` connections.",
    ),
    ("ImageStart", "targetNodeIds", "Image nodes that receive one result each, in this order."),
    ("ImportReview", "reviewRequired", "Always `true`."),
    ("ProviderConnection", "provider", "Kind of provider."),
    ("RecipePort", "nodeType", "Type of the port; an output is `image` or `text`."),
    (
        "RunRecipe",
        "inputs",
        "Value of each input, under the port's key, node id or normalized label. An image port takes a node or asset handle; a text \
         or sticky port takes text or a node handle, and with `writtenReference` also a picture's handle. A port with a default \
         may be left out.",
    ),
    ("ValidateOperations", "validateOnly", "Always `true`: the batch is validated and nothing is written."),
    ("VideoJob", "kind", "Kind of the job."),
    ("VideoJob", "operation", "Operation of the job."),
    ("VideoStart", "references", "Pictures that guide the video, each with a role or without."),
];

pub fn add(document: &mut Value) {
    for (schema, member, description) in WORDS {
        let property = &mut document["components"]["schemas"][schema]["properties"][member];
        assert!(property.is_object(), "{schema}.{member} is not in the document");
        property["description"] = (*description).into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::documented;

    #[test]
    fn every_member_is_described() {
        fn lacking(document: &Value, path: &str, schema: &Value, found: &mut Vec<String>) {
            let inner = ["oneOf", "allOf", "anyOf"].into_iter().filter_map(|keyword| schema[keyword].as_array());
            inner.flatten().for_each(|part| lacking(document, path, part, found));
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let path = format!("{path}.{name}");
                let choices = property["oneOf"].as_array().into_iter().flatten();
                let of_type = property["$ref"].as_str().and_then(|path| document.pointer(&path[1..]));
                if !choices.chain([property]).chain(of_type).any(|choice| choice["description"].is_string()) {
                    found.push(path.clone());
                }
                lacking(document, &path, property, found);
            }
        }
        let document = documented().1;
        let mut found = Vec::new();
        for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
            lacking(&document, name, schema, &mut found);
        }
        assert_eq!(found, [""; 0]);
    }
}
