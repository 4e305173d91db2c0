//! Recipe files: the input of `admin recipe publish` and the form of the shipped catalog. Format:
//! `docs/reference/recipes.md#recipe-file`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Category, Definition, Input, InputKind, NewInput, NewOutput, Output, PortValue, rules};
use crate::Violation;
use crate::id::RecipeId;
use crate::limits::PLAIN_ID_MAX;

/// A Recipe to publish. Its ranges are those of a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecipeFile {
    /// Plain id; derived from the name when omitted.
    #[serde(default)]
    #[schema(pattern = "^[A-Za-z0-9_-]{1,180}$")]
    pub id: Option<String>,
    /// Name for people.
    #[schema(min_length = 1, max_length = 160)]
    pub name: String,
    /// Summary in one line.
    #[serde(default)]
    #[schema(max_length = 300)]
    pub summary: Option<String>,
    /// Description for people.
    #[serde(default)]
    #[schema(max_length = 1200)]
    pub description: Option<String>,
    /// Category of the Recipe.
    pub category: Category,
    /// Tags for the search.
    #[serde(default)]
    #[schema(max_items = 12)]
    pub tags: Vec<String>,
    /// Inputs.
    #[schema(min_items = 1, max_items = 16)]
    pub inputs: Vec<NewInput>,
    /// Outputs in the order of their steps.
    #[schema(min_items = 1, max_items = 8)]
    pub outputs: Vec<NewOutput>,
}

impl RecipeFile {
    /// The violations that the schema cannot express: those of [`rules`], and names of records of an account or canvas.
    pub fn violations(&self) -> Vec<Violation> {
        let mut violations = rules::violations(&self.inputs, &self.outputs);
        for (at, input) in self.inputs.iter().enumerate() {
            let mut refuse = |field, message| violations.push(Violation::new(format!("inputs[{at}].{field}"), message));
            if input.source_node_id.is_some() {
                refuse("sourceNodeId", "names a node of a canvas, which a published Recipe cannot refer to");
            }
            if input.kind == InputKind::Image && input.value.as_deref().is_some_and(|value| !value.is_empty()) {
                refuse("value", "names an image of an account, which a published Recipe cannot refer to");
            }
        }
        if self.recipe_id().is_none() {
            violations.push(Violation::new("id", "is required, because the name cannot be turned into a plain id"));
        }
        violations.extend(rules::tag_violations(&self.tags));
        violations
    }

    /// The id under which it is published: the given id, or the name in lower case with `-` between words.
    pub fn recipe_id(&self) -> Option<RecipeId> {
        let made = || {
            let lower = self.name.to_lowercase();
            let words = lower.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
            let id: String = words.collect::<Vec<_>>().join("-");
            id.chars().take(PLAIN_ID_MAX).collect()
        };
        RecipeId::parse(&self.id.clone().unwrap_or_else(made)).ok()
    }

    /// The content of the version. Ports are named after their keys.
    pub fn definition(self) -> Definition {
        let inputs = self.inputs.into_iter().map(|input| {
            let node_id = format!("input-{}", input.key);
            let value = input.value.clone().filter(|value| input.use_as_default && !value.is_empty());
            Input::from_new(input, node_id, value.map(PortValue::Text))
        });
        let outputs = self.outputs.into_iter().map(|output| {
            let node_id = format!("output-{}", output.key);
            Output::from_new(output, node_id)
        });
        Definition {
            name: self.name,
            summary: self.summary,
            description: self.description,
            category: self.category,
            tags: self.tags,
            inputs: inputs.collect(),
            outputs: outputs.collect(),
        }
    }
}

/// The files that the service ships with, by name. A migration publishes them.
pub const SHIPPED: &[(&str, &str)] = &[
    ("product-hero-shot", include_str!("../../recipes/product-hero-shot.json")),
    ("seasonal-variants", include_str!("../../recipes/seasonal-variants.json")),
    ("palette-and-type-board", include_str!("../../recipes/palette-and-type-board.json")),
    ("ad-copy-and-banner", include_str!("../../recipes/ad-copy-and-banner.json")),
    ("social-trio", include_str!("../../recipes/social-trio.json")),
    ("storyboard", include_str!("../../recipes/storyboard.json")),
    ("material-close-up", include_str!("../../recipes/material-close-up.json")),
];

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use serde_json::json;

    use super::*;
    use crate::recipe::OutputKind;

    fn shipped() -> Vec<(&'static str, RecipeFile)> {
        let read = |(name, text): &(&'static str, &str)| {
            (*name, serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}")))
        };
        SHIPPED.iter().map(read).collect()
    }

    fn file(more: serde_json::Value) -> RecipeFile {
        let mut file = json!({
            "name": "Größe & Co", "category": "Content Package",
            "inputs": [{"key": "a", "label": "A", "type": "text", "useAsDefault": false}],
            "outputs": [{"key": "b", "label": "B", "type": "text", "prompt": "{{a}}", "inputKeys": ["a"]}],
        });
        for (key, value) in more.as_object().expect("an object") {
            file[key] = value.clone();
        }
        serde_json::from_value(file).expect("a file")
    }

    #[test]
    fn what_ships_follows_the_rules_and_is_called_as_its_file() {
        for (name, file) in shipped() {
            assert_eq!(file.violations(), [], "{name}");
            assert_eq!(file.recipe_id().map(String::from).as_deref(), Some(name));
            assert!(file.summary.is_some() && file.description.is_some() && !file.tags.is_empty(), "{name}");
            let described = file.inputs.iter().map(|input| &input.description);
            let described = described.chain(file.outputs.iter().map(|output| &output.description));
            assert!(described.into_iter().all(|text| !text.is_empty()), "{name}: every port has a description");
        }
    }

    #[test]
    fn what_ships_is_on_every_shelf_and_makes_texts_images_and_images_of_texts() {
        let shipped = shipped();
        assert!(shipped.len() >= 6);
        let shelves: HashSet<Category> = shipped.iter().map(|(_, file)| file.category).collect();
        assert_eq!(shelves.len(), Category::ALL.len());
        let kinds: BTreeSet<OutputKind> =
            shipped.iter().flat_map(|(_, f)| &f.outputs).map(|output| output.kind).collect();
        assert_eq!(kinds.len(), 2);
        let chains = |file: &RecipeFile| {
            let texts: Vec<&str> =
                file.outputs.iter().filter(|o| o.kind == OutputKind::Text).map(|o| o.key.as_str()).collect();
            let images = file.outputs.iter().filter(|output| output.kind == OutputKind::Image);
            images.into_iter().any(|image| image.input_keys.iter().any(|key| texts.contains(&key.as_str())))
        };
        assert!(shipped.iter().filter(|(_, file)| chains(file)).count() >= 2);
    }

    #[test]
    fn an_id_is_made_of_the_name() {
        for (name, id) in [("Größe & Co", Some("gr-e-co")), ("  One Two ", Some("one-two")), ("漢字", None)] {
            let made = file(json!({ "name": name }));
            assert_eq!(made.recipe_id().map(String::from).as_deref(), id, "{name}");
            assert_eq!(made.violations().len(), usize::from(id.is_none()), "{name}");
        }
        assert_eq!(file(json!({"id": "mine"})).recipe_id().map(String::from).as_deref(), Some("mine"));
    }

    #[test]
    fn a_published_recipe_names_nothing_of_a_canvas() {
        let input = json!({"key": "a", "label": "A", "type": "image", "useAsDefault": false});
        let with = |field: &str, value: &str| {
            let mut input = input.clone();
            input[field] = value.into();
            file(json!({"inputs": [input]}))
                .violations()
                .into_iter()
                .map(|violation| violation.field)
                .collect::<Vec<_>>()
        };
        assert_eq!(with("sourceNodeId", "n1"), ["inputs[0].sourceNodeId"]);
        assert_eq!(with("value", "asset:me:a"), ["inputs[0].value"]);
    }

    #[test]
    fn only_a_value_to_be_saved_is_a_default() {
        for (saved, default) in [(true, Some(PortValue::Text("v".into()))), (false, None)] {
            let input = json!({"key": "a", "label": "A", "type": "sticky", "value": "v", "useAsDefault": saved});
            let definition = file(json!({"inputs": [input]})).definition();
            assert_eq!(
                (definition.inputs[0].default.clone(), definition.inputs[0].node_id.as_str()),
                (default, "input-a")
            );
        }
    }
}
