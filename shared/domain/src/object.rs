//! JSON objects that stay text until they are read.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// The member that clients keep for themselves. It may be large, and its parsed form may take a hundred times its text.
const UNREAD: &str = "custom";

/// A JSON object, held as text, as a map, or as both.
///
/// A request for one node reads, writes and serves the whole canvas, which may have ten thousand nodes. An object that
/// is not looked into is neither parsed nor serialized again. A [look-up](Self::get) parses all but `custom`. [`Deref`]
/// parses everything on first access; a change drops the text. A copy has what was parsed only if it has no text.
#[derive(Default)]
pub struct Object {
    /// Present as long as it equals the map. At least one of the two is present unless the object is empty.
    text: Option<Box<str>>,
    map: OnceLock<Map<String, Value>>,
    /// The members of the text except `custom`.
    known: OnceLock<Known>,
}

/// The members of an object except `custom`.
#[derive(Default)]
struct Known(Map<String, Value>);

impl<'de> Deserialize<'de> for Known {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self::default())
    }
}

impl<'de> Visitor<'de> for Known {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<Self, A::Error> {
        while let Some(key) = members.next_key::<String>()? {
            if key == UNREAD {
                members.next_value::<IgnoredAny>()?;
            } else {
                self.0.insert(key, members.next_value()?);
            }
        }
        Ok(self)
    }
}

impl Object {
    /// Takes the text of an object that this service has written.
    ///
    /// # Errors
    /// Returns the text when it is not the text of an object. Only the first character is checked: the column's type is
    /// `json`, so the database has checked the rest.
    pub fn from_stored(text: String) -> Result<Self, String> {
        match text.starts_with('{') {
            true => Ok(Self { text: Some(text.into_boxed_str()), ..Self::default() }),
            false => Err(text),
        }
    }

    /// The value of `key`. Does not parse when the text does not contain the key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let text = match (self.map.get(), &self.text) {
            (None, Some(text)) if key != UNREAD => text,
            (None, _) if !self.mentions(key) => return None,
            _ => return self.map().get(key),
        };
        if !self.mentions(key) {
            return None;
        }
        self.known.get_or_init(|| parsed(text)).0.get(key)
    }

    /// Holds the object as text, without a map, which may take a hundred times the memory.
    pub fn compact(&mut self) {
        if self.text.is_none() {
            self.text = Some(self.text().into());
        }
        (self.map, self.known) = (OnceLock::new(), OnceLock::new());
    }

    /// Its members, which are not kept if it is held as text alone.
    pub fn members(&self) -> Cow<'_, Map<String, Value>> {
        match (self.map.get(), &self.text) {
            (None, Some(text)) => Cow::Owned(parsed(text)),
            _ => Cow::Borrowed(self.map()),
        }
    }

    /// Whether there is a value of `key`.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Its JSON.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.text {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(serde_json::to_string(self.map()).expect("a map of text keys serializes")),
        }
    }

    /// Whether the text contains `key` in quotes: as a key at any level, or as a value. False when there is no text.
    /// The keys that this service looks up contain no characters that JSON escapes.
    fn mentions(&self, key: &str) -> bool {
        let Some(text) = &self.text else { return false };
        text.match_indices(key).any(|(at, _)| text[..at].ends_with('"') && text[at + key.len()..].starts_with('"'))
    }

    fn map(&self) -> &Map<String, Value> {
        self.map.get_or_init(|| self.text.as_deref().map(parsed).unwrap_or_default())
    }
}

fn parsed<'a, T: Deserialize<'a>>(text: &'a str) -> T {
    serde_json::from_str(text).expect("the text of an object that this service has written")
}

impl Clone for Object {
    fn clone(&self) -> Self {
        match &self.text {
            Some(text) => Self { text: Some(text.clone()), ..Self::default() },
            None => Self { map: self.map.clone(), ..Self::default() },
        }
    }
}

impl Deref for Object {
    type Target = Map<String, Value>;
    fn deref(&self) -> &Map<String, Value> {
        self.map()
    }
}

impl DerefMut for Object {
    fn deref_mut(&mut self) -> &mut Map<String, Value> {
        self.map();
        (self.text, self.known) = (None, OnceLock::new());
        self.map.get_mut().expect("made above")
    }
}

impl From<Map<String, Value>> for Object {
    fn from(map: Map<String, Value>) -> Self {
        Self { map: OnceLock::from(map), ..Self::default() }
    }
}

impl FromIterator<(String, Value)> for Object {
    fn from_iter<T: IntoIterator<Item = (String, Value)>>(members: T) -> Self {
        Map::from_iter(members).into()
    }
}

impl IntoIterator for Object {
    type Item = (String, Value);
    type IntoIter = serde_json::map::IntoIter;
    fn into_iter(self) -> Self::IntoIter {
        Map::from(self).into_iter()
    }
}

impl From<Object> for Map<String, Value> {
    fn from(object: Object) -> Self {
        object.map();
        object.map.into_inner().unwrap_or_default()
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Value::Object(object.into())
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        matches!((&self.text, &other.text), (Some(one), Some(other)) if one == other)
            || self.members() == other.members()
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.map().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored(text: &str) -> Object {
        Object::from_stored(text.to_owned()).expect("an object")
    }

    #[test]
    fn what_nobody_looks_into_stays_the_text_that_it_was() {
        let object = stored(r#"{"b": 1e308, "a": "x"}"#);
        assert_eq!(object.get("c"), None);
        assert!(object.map.get().is_none(), "looking up a key that the text does not contain does not parse it");
        assert_eq!(object.get("a"), Some(&json!("x")));
        assert_eq!(object.text(), r#"{"b": 1e308, "a": "x"}"#);
    }

    #[test]
    fn a_key_is_found_at_the_top_alone() {
        let object = stored(r#"{"custom":{"sectionId":"s"},"title":"content","prompt":"say \"section\""}"#);
        for absent in ["sectionId", "content", "section", "prom", ""] {
            assert_eq!(object.get(absent), None, "{absent}");
        }
        assert!(object.contains_key("prompt"));
    }

    #[test]
    fn a_look_up_parses_all_but_what_is_not_read() {
        let mut object = stored(r#"{"custom":{"sectionId":0,"a":[{"":0}]},"sectionId":"s"}"#);
        assert_eq!(object.get("sectionId"), Some(&json!("s")));
        assert!(object.map.get().is_none() && !object.known.get().expect("is parsed").0.contains_key("custom"));
        assert_eq!(object.get("custom").map(|custom| &custom["sectionId"]), Some(&json!(0)));
        object.insert("sectionId".into(), json!("t"));
        assert_eq!(object.get("sectionId"), Some(&json!("t")));
        object.compact();
        assert!(object.map.get().is_none() && object.known.get().is_none());
        assert!(object.members().contains_key("custom") && object != stored("{}"));
        assert!(object.map.get().is_none(), "what is measured or compared is not kept");
        assert_eq!(object.text(), r#"{"custom":{"a":[{"":0}],"sectionId":0},"sectionId":"t"}"#);
    }

    #[test]
    fn a_copy_has_what_was_parsed_only_if_it_has_no_text() {
        let object = stored(r#"{"custom":{"a":0},"sectionId":"s"}"#);
        assert!(object.get("sectionId").is_some() && object.get("custom").is_some());
        let copy = object.clone();
        assert!(copy.map.get().is_none() && copy.known.get().is_none() && copy == object);
        let mut changed = object;
        changed.remove("custom");
        assert_eq!(changed.clone().text(), r#"{"sectionId":"s"}"#);
    }

    #[test]
    fn a_change_is_in_the_text() {
        let mut object = stored(r#"{"a":1,"b":2}"#);
        object.remove("a");
        object.insert("c".into(), json!(3));
        assert_eq!(object.text(), r#"{"b":2,"c":3}"#);
        assert_eq!(object, json!({"b": 2, "c": 3}).as_object().cloned().expect("an object").into());
        assert_eq!(Object::default().text(), "{}");
    }

    #[test]
    fn what_is_no_object_is_given_back() {
        assert_eq!(Object::from_stored("[1]".to_owned()).expect_err("a list"), "[1]");
    }
}
