//! Documents that stay JSON text until they are read.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A JSON object of known members that also keeps all others.
pub trait Document: Clone + Default + Serialize + DeserializeOwned {
    /// The members that it does not know, and those that are not of their type.
    fn others(&self) -> &Map<String, Value>;
    fn others_mut(&mut self) -> &mut Map<String, Value>;
}

/// A document, held as text, as a value, or as both.
///
/// A request for one node reads, writes and serves the whole canvas, which may have ten thousand nodes. A document that
/// is not looked into is neither parsed nor serialized again. [`Deref`] parses it on first access; a change drops the text.
/// A copy shares the text, or the value if there is no text, until one of the two changes.
///
/// No member is ever lost: what `T` does not know, or has another type for, is kept in [`Document::others`].
#[derive(Default)]
pub struct Stored<T> {
    /// Present as long as it equals the value. Without text and value, the document is empty.
    text: Option<Arc<str>>,
    value: OnceLock<Arc<T>>,
}

impl<T: Document> Stored<T> {
    /// Takes the text of an object that this service has written.
    ///
    /// # Errors
    /// Returns the text when it is not the text of an object. Only the first character is checked: the column's type is
    /// `json`, so the database has checked the rest.
    pub fn from_stored(text: String) -> Result<Self, String> {
        match text.starts_with('{') {
            true => Ok(Self { text: Some(text.into()), value: OnceLock::new() }),
            false => Err(text),
        }
    }

    /// A part that is absent unless the document has the member `key`. Does not parse a text that does not contain the key.
    pub fn part<'a, V: ?Sized>(&'a self, key: &str, part: impl FnOnce(&'a T) -> Option<&'a V>) -> Option<&'a V> {
        match (self.value.get(), &self.text) {
            (Some(value), _) => part(value),
            (None, Some(text)) if mentions(text, key) => part(self),
            _ => None,
        }
    }

    /// Sets and removes members by their keys.
    pub fn merge(&mut self, set: &Map<String, Value>, removed: &[String]) {
        let mut members: Map<String, Value> = serde_json::from_str(&self.text()).expect("the text of an object");
        members.retain(|key, _| !removed.contains(key));
        members.extend(set.clone());
        *self = Self { text: Some(Value::Object(members).to_string().into()), value: OnceLock::new() };
    }

    /// Holds the document as text alone.
    pub fn compact(&mut self) {
        if self.text.is_none() {
            self.text = Some(self.text().into());
        }
        self.value = OnceLock::new();
    }

    /// Its JSON.
    pub fn text(&self) -> Cow<'_, str> {
        match (&self.text, self.value.get()) {
            (Some(text), _) => Cow::Borrowed(text),
            (None, Some(value)) => Cow::Owned(serialized(&**value)),
            (None, None) => Cow::Borrowed("{}"),
        }
    }
}

/// Returns `true` if the text contains `key` in quotes: as a key at any level, or as a value. Keys contain no characters that JSON
/// escapes.
fn mentions(text: &str, key: &str) -> bool {
    text.match_indices(key).any(|(at, _)| text[..at].ends_with('"') && text[at + key.len()..].starts_with('"'))
}

fn serialized<T: Document>(value: &T) -> String {
    let text = match value.others().is_empty() {
        true => serde_json::to_string(value),
        // In the order of all keys. A member that was set replaces one that was not of its type.
        false => serde_json::to_value(value).map(|value| value.to_string()),
    };
    text.expect("a document has text keys alone")
}

/// The document that an object is. What no member of it can be is among the others.
fn parsed<T: Document>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_else(|_| {
        let members: Map<String, Value> = serde_json::from_str(text).expect("the text of an object");
        let is_fit = |(key, value): &(String, Value)| {
            serde_json::from_value::<T>(Value::Object(Map::from_iter([(key.clone(), value.clone())]))).is_ok()
        };
        let (fit, others): (Vec<_>, Vec<_>) = members.into_iter().partition(is_fit);
        let mut value: T = serde_json::from_value(Map::from_iter(fit).into()).unwrap_or_default();
        value.others_mut().extend(others);
        value
    })
}

impl<T> Clone for Stored<T> {
    fn clone(&self) -> Self {
        match &self.text {
            Some(text) => Self { text: Some(text.clone()), value: OnceLock::new() },
            None => Self { text: None, value: self.value.clone() },
        }
    }
}

impl<T: Document> Deref for Stored<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.value.get_or_init(|| Arc::new(self.text.as_deref().map(parsed).unwrap_or_default()))
    }
}

impl<T: Document> DerefMut for Stored<T> {
    fn deref_mut(&mut self) -> &mut T {
        let _: &T = self;
        self.text = None;
        Arc::make_mut(self.value.get_mut().expect("made above"))
    }
}

impl<T> From<T> for Stored<T> {
    fn from(value: T) -> Self {
        Self { text: None, value: OnceLock::from(Arc::new(value)) }
    }
}

impl<T: Document> PartialEq for Stored<T> {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl<T: Document> fmt::Debug for Stored<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[serde_with::skip_serializing_none]
    #[derive(Clone, Default, Serialize, Deserialize)]
    struct Note {
        #[serde(flatten)]
        others: Map<String, Value>,
        count: Option<u8>,
        title: Option<String>,
    }

    impl Document for Note {
        fn others(&self) -> &Map<String, Value> {
            &self.others
        }

        fn others_mut(&mut self) -> &mut Map<String, Value> {
            &mut self.others
        }
    }

    fn stored(text: &str) -> Stored<Note> {
        Stored::from_stored(text.to_owned()).expect("an object")
    }

    #[test]
    fn what_nobody_looks_into_stays_the_text_that_it_was() {
        let note = stored(r#"{"b": 1e308, "title": "x"}"#);
        assert_eq!(note.part("count", |note| note.count.as_ref()), None);
        assert!(note.value.get().is_none(), "looking up a key that the text does not contain does not parse it");
        assert_eq!(note.part("title", |note| note.title.as_deref()), Some("x"));
        assert_eq!(note.text(), r#"{"b": 1e308, "title": "x"}"#);
    }

    #[test]
    fn a_part_is_found_at_the_top_alone() {
        let note = stored(r#"{"other":{"title":"s"},"name":"count"}"#);
        assert_eq!(note.part("title", |note| note.title.as_deref()), None);
        assert_eq!(note.part("count", |note| note.count.as_ref()), None);
    }

    #[test]
    fn a_change_is_in_the_text_and_a_copy_has_the_value_only_if_it_has_no_text() {
        let mut note = stored(r#"{"count":1}"#);
        assert_eq!(note.count, Some(1));
        assert!(note.clone().value.get().is_none());
        note.title = Some("t".into());
        assert_eq!(
            (&*note.clone().text(), &*note.text()),
            (r#"{"count":1,"title":"t"}"#, r#"{"count":1,"title":"t"}"#)
        );
        note.compact();
        assert!(note.value.get().is_none() && note == stored(r#"{"count":1,"title":"t"}"#));
        assert_eq!(Stored::<Note>::default().text(), "{}");
        assert_eq!(Stored::from(Note { count: Some(2), ..Note::default() }).text(), r#"{"count":2}"#);
    }

    #[test]
    fn members_of_other_releases_are_kept_in_the_order_of_keys() {
        let mut note = stored(r#"{"area":[1.5,null],"count":1,"more":{"a":1}}"#);
        note.title = Some("t".into());
        assert_eq!(note.text(), r#"{"area":[1.5,null],"count":1,"more":{"a":1},"title":"t"}"#);
    }

    #[test]
    fn a_member_that_is_not_of_its_type_is_kept_until_it_is_set() {
        let mut note = stored(r#"{"count":"many","title":"t"}"#);
        assert_eq!((note.count, note.title.as_deref()), (None, Some("t")));
        note.title = None;
        assert_eq!(note.text(), r#"{"count":"many"}"#);
        note.count = Some(3);
        assert_eq!(note.text(), r#"{"count":3}"#);
        assert_eq!(serde_json::from_str::<Value>(&note.text()).expect("JSON"), json!({"count": 3}));
    }

    #[test]
    fn a_merge_sets_and_removes_members_and_keeps_the_rest() {
        let mut note = stored(r#"{"area":1,"count":1,"title":"t"}"#);
        note.merge(&Map::from_iter([("title".to_owned(), json!("u"))]), &["count".to_owned(), "gone".to_owned()]);
        assert_eq!((&*note.text(), note.count, note.title.as_deref()), (r#"{"area":1,"title":"u"}"#, None, Some("u")));
    }

    #[test]
    fn what_is_no_object_is_given_back() {
        assert_eq!(Stored::<Note>::from_stored("[1]".to_owned()).expect_err("a list"), "[1]");
    }
}
