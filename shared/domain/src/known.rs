//! Reading values of later releases.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A value of an enumeration in an answer. A client reads one that a later release added as the name that it has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Name<T> {
    /// A value of this release.
    Known(T),
    /// A value of a later release.
    Later(String),
}

impl<T> From<T> for Name<T> {
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

impl<T: PartialEq> PartialEq<T> for Name<T> {
    fn eq(&self, value: &T) -> bool {
        matches!(self, Self::Known(known) if known == value)
    }
}

impl<T: fmt::Display> fmt::Display for Name<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(value) => value.fmt(f),
            Self::Later(name) => f.write_str(name),
        }
    }
}

/// Reads a value, or the default in place of one that this release does not know:
/// `#[serde(default, deserialize_with = "known::or_default")]`.
pub fn or_default<'de, T: DeserializeOwned + Default, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(T::deserialize(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// Reads a list, without the items that this release does not know: `#[serde(deserialize_with = "known::items")]`.
pub fn items<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(Vec::<Value>::deserialize(deserializer)?.into_iter().filter_map(|item| T::deserialize(item).ok()).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::origin::AiGenerated;
    use crate::review::FindingCode;

    #[test]
    fn a_name_of_a_later_release_is_kept() {
        let names: Vec<Name<FindingCode>> =
            serde_json::from_value(json!(["agent_overlap", "too_dark"])).expect("names");
        assert_eq!(names, [FindingCode::AgentOverlap.into(), Name::Later("too_dark".into())]);
        assert!(names[0] == FindingCode::AgentOverlap && names[1] != FindingCode::AgentOverlap);
        assert_eq!(names.iter().map(ToString::to_string).collect::<Vec<_>>(), ["agent_overlap", "too_dark"]);
        assert_eq!(json!(names), json!(["agent_overlap", "too_dark"]));
    }

    #[test]
    fn a_value_of_a_later_release_is_the_default() {
        for (given, read) in [("yes", AiGenerated::Yes), ("in a dream", AiGenerated::Unknown)] {
            assert_eq!(or_default::<AiGenerated, _>(json!(given)).expect("reads"), read);
        }
        let known: Vec<AiGenerated> = items(json!(["no", "in a dream", "yes"])).expect("reads");
        assert_eq!(known, [AiGenerated::No, AiGenerated::Yes]);
    }
}
