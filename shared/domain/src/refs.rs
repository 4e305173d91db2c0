//! Refs: short names of nodes and connections, unique in their canvas (`docs/reference/canvases.md#refs`). The name of node 12 is
//! `n12`, that of connection 7 is `c7`. [`crate::id::is_slug`] is about the short names of canvases.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

use crate::id::text_schema;

macro_rules! refs {
    ($($(#[doc = $doc:literal])+ $name:ident, $prefix:literal, $pattern:literal;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(i32);

        impl $name {
            /// The ref of this number, which is at least 1.
            pub const fn new(number: i32) -> Self {
                Self(number)
            }

            pub const fn number(self) -> i32 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = &'static str;

            /// Parses the plain form: a number without sign and leading zeros.
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let digits = text.strip_prefix($prefix).filter(|digits| matches!(digits.as_bytes(), [b'1'..=b'9', ..]));
                let number = digits.and_then(|digits| digits.parse().ok());
                number.map(Self).ok_or(concat!("must be `", $prefix, "` and a number"))
            }
        }

        impl TryFrom<String> for $name {
            type Error = &'static str;
            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.to_string()
            }
        }

        text_schema!($name, $pattern, concat!($($doc),+));
    )+};
}

refs! {
    /// Short name of a node: `n` and a number. It never changes and is never used again in its canvas.
    NodeRef, "n", "^n[1-9][0-9]*$";
    /// Short name of a connection: `c` and a number. It never changes and is never used again in its canvas.
    ConnectionRef, "c", "^c[1-9][0-9]*$";
}

/// The last numbers that a canvas has given to its nodes and connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefCounters {
    pub node: i32,
    pub connection: i32,
}

impl RefCounters {
    /// The next ref of a node. One that equals an id of the canvas is skipped.
    pub fn next_node(&mut self, is_id: impl Fn(String) -> bool) -> NodeRef {
        loop {
            self.node += 1;
            if !is_id(NodeRef(self.node).to_string()) {
                return NodeRef(self.node);
            }
        }
    }

    /// The next ref of a connection, in the same way.
    pub fn next_connection(&mut self, is_id: impl Fn(String) -> bool) -> ConnectionRef {
        loop {
            self.connection += 1;
            if !is_id(ConnectionRef(self.connection).to_string()) {
                return ConnectionRef(self.connection);
            }
        }
    }

    /// Both counters, each at least as high as in `other`.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { node: self.node.max(other.node), connection: self.connection.max(other.connection) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ref_is_a_letter_and_a_number_without_leading_zero() {
        for (text, number) in [("n1", 1), ("n12", 12), ("n2147483647", i32::MAX)] {
            let parsed: NodeRef = text.parse().expect(text);
            assert_eq!((parsed.number(), parsed.to_string().as_str()), (number, text));
        }
        assert_eq!("c7".parse(), Ok(ConnectionRef::new(7)));
        for other in ["", "n", "n0", "n01", "N1", "n-1", "n+1", "n1a", "n99999999999", "n2147483648", "c1", "12"] {
            assert!(other.parse::<NodeRef>().is_err(), "{other:?}");
        }
    }

    #[test]
    fn a_ref_that_equals_an_id_is_skipped() {
        let mut counters = RefCounters { node: 3, connection: 0 };
        let is_id = |text: String| ["n4", "n5", "c2"].contains(&text.as_str());
        assert_eq!(counters.next_node(is_id), NodeRef::new(6));
        assert_eq!(
            (counters.next_connection(is_id), counters.next_connection(is_id)),
            (ConnectionRef::new(1), ConnectionRef::new(3))
        );
        assert_eq!(counters, RefCounters { node: 6, connection: 3 });
    }
}
