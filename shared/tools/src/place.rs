//! Images that work takes, and where its results go.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Where new nodes go; a free place is found when all is left out
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Place {
    /// Node to be beside
    pub near: Option<String>,
    /// Section to be in
    pub section_id: Option<String>,
    pub x: Option<f64>,
    pub y: Option<f64>,
    pub title: Option<String>,
}

impl Place {
    /// The place for `count` nodes. Without any hint they go beside `source`, if that is a node.
    pub fn resolve(given: Option<Place>, source: Option<&str>, count: Option<u32>) -> Value {
        let mut place = given.unwrap_or_default();
        let is_open = place.near.is_none() && place.section_id.is_none() && place.x.is_none() && place.y.is_none();
        if is_open {
            place.near = source.filter(|source| source.starts_with("node:")).map(str::to_owned);
        }
        let mut place = json!(place);
        if let Some(count) = count {
            place["count"] = count.into();
        }
        place
    }
}

/// The handle of an image. A plain id, as an outline has it, is that of a node.
pub fn image(given: &str) -> String {
    match given.contains(':') {
        true => given.to_owned(),
        false => format!("node:{given}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_go_beside_their_source_unless_a_place_is_given() {
        assert_eq!(Place::resolve(None, Some("node:a"), Some(2)), json!({"near": "node:a", "count": 2}));
        assert_eq!(Place::resolve(None, Some("asset:me:a"), None), json!({}));
        let given = Place { section_id: Some("s".into()), title: Some("Shot".into()), ..Place::default() };
        assert_eq!(Place::resolve(Some(given), Some("node:a"), None), json!({"sectionId": "s", "title": "Shot"}));
        assert_eq!((image("n1"), image("asset:me:a")), ("node:n1".into(), "asset:me:a".into()));
    }
}
