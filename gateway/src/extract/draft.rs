//! Drafts of requests: bodies of which each member may be malformed (docs/reference/conventions.md#field-paths).
//!
//! **Guarantee.** Each rule exists once, and all violations of a body are reported together, whether the schema or a rule finds
//! them.
//!
//! **Mechanism.** The members of a draft are of type [`Field`], so that a draft can be read from any object. Its check parses every
//! member once and turns the draft into a request or into violations. The schema reports what makes a member [`Field::Malformed`];
//! the check reports the rest.

use std::fmt::{self, Display, Formatter};
use std::marker::PhantomData;

use domain::Violation;
use domain::graph::Role;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, IntoDeserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

/// A member of a body.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Field<T> {
    /// The body does not have it.
    #[default]
    Absent,
    /// Its form is wrong, as the schema reports.
    Malformed,
    /// It has the right form.
    Given(T),
}

impl<T> Field<T> {
    /// The value, if it has the right form.
    pub fn given(self) -> Option<T> {
        match self {
            Self::Given(value) => Some(value),
            Self::Absent | Self::Malformed => None,
        }
    }

    /// The same by reference.
    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Given(value) => Some(value),
            Self::Absent | Self::Malformed => None,
        }
    }

    /// Whether the body has the member, whatever its form.
    pub fn is_present(&self) -> bool {
        !matches!(self, Self::Absent)
    }
}

impl<T> Field<Vec<T>> {
    /// The items; none when there is no array.
    pub fn items(&self) -> &[T] {
        self.get().map_or(&[], Vec::as_slice)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Every value can be read as a newtype, and only a member that the object does not have cannot. So it differs from `null`, and
        // no value is copied to be looked at.
        Ok(deserializer.deserialize_newtype_struct("Field", GivenVisitor(PhantomData)).unwrap_or(Self::Absent))
    }
}

/// Reads a value that is there.
struct GivenVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for GivenVisitor<T> {
    type Value = Field<T>;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Field<T>, D::Error> {
        Ok(T::deserialize(Known(deserializer)).map_or(Field::Malformed, Field::Given))
    }
}

/// Reads a draft, or the members of one. Members that a struct does not have are left out, because the schema reports them.
pub struct Known<D>(pub D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Known<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_option(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(KnownMembers { fields, inner: visitor })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map
        identifier ignored_any
    }
}

/// The members of an object that a struct has. It is the visitor of the object, and then the access to its members.
struct KnownMembers<T> {
    fields: &'static [&'static str],
    inner: T,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for KnownMembers<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(KnownMembers { fields: self.fields, inner: members })
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for KnownMembers<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(name) = self.inner.next_key::<String>()? {
            if self.fields.contains(&name.as_str()) {
                return seed.deserialize(name.into_deserializer()).map(Some);
            }
            self.inner.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(seed)
    }
}

/// A picture of a draft: its handle or URL alone, or an object with a role.
#[derive(Clone, Debug, Default)]
pub struct ReferenceItem {
    /// The picture, if the item has one.
    pub handle: Option<String>,
    /// Role of the picture.
    pub role: Option<Role>,
}

impl<'de> Deserialize<'de> for ReferenceItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The schema reports an item of another form.
        Ok(deserializer.deserialize_any(ReferenceVisitor).unwrap_or_default())
    }
}

/// Reads a text or an object with a role.
struct ReferenceVisitor;

impl<'de> Visitor<'de> for ReferenceVisitor {
    type Value = ReferenceItem;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a text or an object")
    }

    fn visit_str<E: Error>(self, handle: &str) -> Result<ReferenceItem, E> {
        Ok(ReferenceItem { handle: Some(handle.to_owned()), role: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<ReferenceItem, A::Error> {
        #[derive(serde::Deserialize)]
        struct WithRole {
            handle: Field<String>,
            role: Field<Role>,
        }
        let item = WithRole::deserialize(Known(MapAccessDeserializer::new(members)))?;
        Ok(ReferenceItem { handle: item.handle.given(), role: item.role.given() })
    }
}

/// The violations that a check has found so far.
#[derive(Debug, Default)]
pub struct Check {
    violations: Vec<Violation>,
}

impl Check {
    /// Adds a violation.
    pub fn note(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.violations.push(Violation::new(field, message));
    }

    /// Adds a violation where `is_wrong`.
    pub fn note_if(&mut self, is_wrong: bool, field: impl Into<String>, message: impl Into<String>) {
        if is_wrong {
            self.note(field, message);
        }
    }

    /// Fields of which at most one may be sent, or, where one is `needed`, exactly one; each with whether it is present.
    pub fn at_most_one(&mut self, fields: &[(&str, bool)], needed: bool) {
        let present: Vec<&str> = fields.iter().filter(|(_, is_present)| *is_present).map(|(field, _)| *field).collect();
        let names: Vec<&str> = fields.iter().map(|(field, _)| *field).collect();
        let (noted, message) = match present.len() {
            0 if needed => (&names, "one of them is required"),
            2.. => (&present, "only one of them may be sent"),
            _ => return,
        };
        for field in noted {
            self.note(*field, format!("{}: {message}", names.join(" or ")));
        }
    }

    /// Adds several violations.
    pub fn extend(&mut self, violations: impl IntoIterator<Item = Violation>) {
        self.violations.extend(violations);
    }

    /// A parsed value; an error is the violation of `field`.
    pub fn parsed<T, E: Display>(&mut self, field: impl Into<String>, parsed: Result<T, E>) -> Option<T> {
        parsed.map_err(|error| self.note(field, error.to_string())).ok()
    }

    /// The violations, or, without any, the request. `make` returns `None` when a member is malformed or a required one absent.
    pub fn finish<T>(self, make: impl FnOnce() -> Option<T>) -> Result<T, Vec<Violation>> {
        if self.violations.is_empty() { make().ok_or_else(Vec::new) } else { Err(self.violations) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::counting::peak_of;

    #[test]
    fn a_member_of_the_wrong_form_is_not_copied() {
        #[derive(serde::Deserialize)]
        struct Draft {
            names: Field<Vec<Field<String>>>,
            references: Field<Vec<ReferenceItem>>,
            absent: Field<String>,
        }
        let heavy = json!(vec![json!({"": {"": 0}}); 1000]);
        let body = json!({"names": [heavy], "references": [heavy, {"handle": heavy}], "unknown": heavy});
        let copy = peak_of(|| heavy.clone());
        let mut draft = None;
        let peak = peak_of(|| draft = Draft::deserialize(Known(&body)).ok());
        assert!(peak * 100 < copy, "{peak} bytes, where one copy takes {copy}");
        let draft = draft.expect("a draft can be read from any object");
        assert_eq!((draft.names.items(), draft.absent), (&[Field::Malformed][..], Field::Absent));
        assert!(draft.references.items().iter().all(|item| item.handle.is_none()));
    }
}
