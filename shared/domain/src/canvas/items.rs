//! Lists of served items that stay JSON.

use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// The JSON of a served item.
pub type Text = Arc<RawValue>;

/// A list of items as their JSON, which may be shared: a canvas of which one node changed is served again without serializing the
/// others.
#[derive(Clone, Debug)]
pub struct Items<T> {
    texts: Vec<Text>,
    of: PhantomData<fn() -> T>,
}

impl<T: Serialize> Items<T> {
    /// The JSON of an item.
    pub fn text(item: &T) -> Text {
        to_raw_value(item).expect("a served item serializes").into()
    }

    /// The list of these items.
    pub fn of_texts(texts: impl Iterator<Item = Text>) -> Self {
        Self { texts: texts.collect(), of: PhantomData }
    }
}

impl<T: DeserializeOwned> Items<T> {
    /// The items, without those that this release cannot read.
    pub fn values(&self) -> impl Iterator<Item = T> {
        self.texts.iter().filter_map(|text| serde_json::from_str(text.get()).ok())
    }
}

impl<T: Serialize> FromIterator<T> for Items<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::of_texts(items.into_iter().map(|item| Self::text(&item)))
    }
}

impl<T> Serialize for Items<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.texts.serialize(serializer)
    }
}

/// The items are read as values, because within an untagged enum no text is left of them.
impl<'de, T: Serialize + Deserialize<'de>> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<T>::deserialize(deserializer).map(Self::from_iter)
    }
}

impl<T> PartialEq for Items<T> {
    fn eq(&self, other: &Self) -> bool {
        self.texts.iter().map(|text| text.get()).eq(other.texts.iter().map(|text| text.get()))
    }
}
