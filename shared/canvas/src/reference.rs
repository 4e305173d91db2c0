//! References to the objects of a canvas, as requests write them.

use std::str::FromStr;

use domain::id::MalformedId;

/// An id as a request wrote it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ref<Id> {
    pub(crate) id: Id,
    /// `true` if it was written as a handle, which never names a `clientId`.
    pub(crate) is_handle: bool,
}

impl<Id: FromStr<Err = MalformedId>> Ref<Id> {
    pub(crate) fn parse(text: &str) -> Result<Self, MalformedId> {
        Ok(Self { id: text.parse()?, is_handle: text.contains(':') })
    }
}

impl<Id: Clone> Ref<Id> {
    /// A reference to an object of the canvas, whatever a `clientId` names.
    pub(crate) fn to(id: &Id) -> Self {
        Self { id: id.clone(), is_handle: true }
    }
}
