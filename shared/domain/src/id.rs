//! Ids and handles. Rules: `docs/reference/conventions.md#handles`.
//!
//! A *plain id* is what a record is stored under; a *handle* is its kind and id in one string. Requests take either,
//! responses carry both. In responses, handles of canvases and assets always name the owner.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use uuid::Uuid;

use crate::limits::PLAIN_ID_MAX;
use crate::recipe::run::RunId;

/// A text that is not an id or handle of the expected kind.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("must be {expected}")]
pub struct MalformedId {
    expected: &'static str,
}

/// Returns `true` if `text` matches `^[A-Za-z0-9_-]{1,180}$`.
pub fn is_plain_id(text: &str) -> bool {
    (1..=PLAIN_ID_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// The OpenAPI schema of a type that is a text with one pattern: a component with the type's name.
macro_rules! text_schema {
    ($name:ident, $pattern:expr, $description:expr) => {
        impl utoipa::PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some($pattern));
                text.description(Some($description.trim())).into()
            }
        }

        impl ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
        }
    };
}

pub(crate) use text_schema;

macro_rules! plain_id {
    ($(#[doc = $doc:literal] $name:ident, $kind:literal, $expected:literal;)+) => {$(
        #[doc = $doc]
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        text_schema!($name, "^[A-Za-z0-9_-]{1,180}$", $doc);

        impl $name {
            /// A new id: a UUIDv7, so that ids sort by creation time.
            pub fn generate() -> Self {
                Self(Uuid::now_v7().to_string())
            }

            /// Parses a plain id or a handle of this kind without an owner.
            pub fn parse(text: &str) -> Result<Self, MalformedId> {
                let id = text.strip_prefix(concat!($kind, ":")).unwrap_or(text);
                if is_plain_id(id) { Ok(Self(id.to_owned())) } else { Err(MalformedId { expected: $expected }) }
            }

            /// Restores an id that was parsed before it was stored.
            pub fn from_stored(id: String) -> Self {
                Self(id)
            }

            /// The plain id.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The handle without an owner.
            pub fn handle(&self) -> String {
                format!(concat!($kind, ":{}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = MalformedId;
            fn try_from(text: String) -> Result<Self, MalformedId> {
                Self::parse(&text)
            }
        }

        impl FromStr for $name {
            type Err = MalformedId;
            fn from_str(text: &str) -> Result<Self, MalformedId> {
                Self::parse(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }
    )+};
}

plain_id! {
    /// Plain id of an account, as handles contain it.
    AccountUid, "account", "an account id of 1 to 180 letters, digits, `_` or `-`";
    /// Plain id of a canvas; unique for its owner.
    CanvasId, "canvas", "a canvas id or handle";
    /// Plain id of a node; unique in its canvas.
    NodeId, "node", "a node id or handle";
    /// Plain id of a connection; unique in its canvas.
    ConnectionId, "connection", "a connection id or handle";
    /// Plain id of an asset; unique for its owner.
    AssetId, "asset", "an asset id or handle";
    /// Plain id of an Element; unique for its owner.
    ElementId, "element", "an element id or handle";
    /// Plain id of a collection of Elements; unique for its owner.
    ElementCollectionId, "element-collection", "an element collection id or handle";
    /// Plain id of a Recipe or private workflow; unique among all of them.
    RecipeId, "recipe", "a recipe id or handle";
}

/// Returns `true` if `text` is the short name of a canvas: `~` and 8 characters of an alphabet without similar ones.
pub fn is_slug(text: &str) -> bool {
    let is_of_alphabet =
        |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'h' | b'j' | b'k' | b'm' | b'n' | b'p'..=b't' | b'v'..=b'z');
    text.strip_prefix('~').is_some_and(|name| name.len() == 8 && name.bytes().all(is_of_alphabet))
}

macro_rules! owned_ref {
    (
        $(#[$doc:meta])* $name:ident, $handle:ident, $id:ident, $kind:literal, $expected:literal $(, short $is_short:ident)?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name {
            /// The owner, if the reference names one.
            pub owner: Option<AccountUid>,
            /// The plain id.
            pub id: $id,
        }

        impl $name {
            /// Parses the plain id, the handle, or the handle with an owner.
            pub fn parse(text: &str) -> Result<Self, MalformedId> {
                let malformed = || MalformedId { expected: $expected };
                $(if $is_short(text) {
                    return Ok(Self { owner: None, id: $id(text.to_owned()) });
                })?
                let rest = text.strip_prefix(concat!($kind, ":"));
                let (owner, id) = match rest.and_then(|rest| rest.split_once(':')) {
                    Some((owner, id)) if is_plain_id(owner) => (Some(AccountUid(owner.to_owned())), id),
                    Some(_) => return Err(malformed()),
                    None => (None, rest.unwrap_or(text)),
                };
                if is_plain_id(id) { Ok(Self { owner, id: $id(id.to_owned()) }) } else { Err(malformed()) }
            }

            /// The full form. A reference without an owner names a record of `caller`.
            pub fn resolve(self, caller: &AccountUid) -> $handle {
                $handle { owner: self.owner.unwrap_or_else(|| caller.clone()), id: self.id }
            }
        }

        impl FromStr for $name {
            type Err = MalformedId;
            fn from_str(text: &str) -> Result<Self, MalformedId> {
                Self::parse(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = MalformedId;
            fn try_from(text: String) -> Result<Self, MalformedId> {
                Self::parse(&text)
            }
        }

        #[doc = concat!("`", $kind, ":<ownerUid>:<id>`, which means the same to every reader.")]
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $handle {
            /// The owner's uid.
            pub owner: AccountUid,
            /// The plain id.
            pub id: $id,
        }

        text_schema!(
            $handle,
            $expected,
            concat!("`", $kind, ":<ownerUid>:<id>`, which means the same to every reader.")
        );

        impl fmt::Display for $handle {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($kind, ":{}:{}"), self.owner, self.id)
            }
        }

        impl TryFrom<String> for $handle {
            type Error = MalformedId;
            fn try_from(text: String) -> Result<Self, MalformedId> {
                match $name::parse(&text)? {
                    $name { owner: Some(owner), id } => Ok(Self { owner, id }),
                    _ => Err(MalformedId { expected: $expected }),
                }
            }
        }

        impl From<$handle> for String {
            fn from(handle: $handle) -> String {
                handle.to_string()
            }
        }
    };
}

owned_ref!(
    /// A canvas as a request names it.
    CanvasRef, CanvasHandle, CanvasId, "canvas", "^canvas:[A-Za-z0-9_-]+:[A-Za-z0-9_-]+$", short is_slug
);

impl CanvasRef {
    /// The slug, if it is one. No id of a canvas has its form, so that one which names no canvas is resolved to a handle that names
    /// none, either.
    pub fn slug(&self) -> Option<&str> {
        is_slug(self.id.as_str()).then_some(self.id.as_str())
    }
}

owned_ref!(
    /// An asset as a request names it.
    AssetRef, AssetHandle, AssetId, "asset", "^asset:(?:[A-Za-z0-9_-]{1,180}:)?[A-Za-z0-9_-]{1,180}$"
);

/// The id of a job or run: a UUID. Its handles are `job:<uuid>` and `run:<uuid>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub Uuid);

impl JobId {
    /// A new id.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }

    /// `job:<uuid>`.
    pub fn job_handle(self) -> String {
        format!("job:{}", self.0)
    }

    /// `run:<uuid>`.
    pub fn run_handle(self) -> String {
        format!("run:{}", self.0)
    }
}

/// A handle as it is served: a text of its own type, so that its form is described once.
macro_rules! handle {
    ($(#[doc = $doc:literal] $name:ident, $pattern:literal;)+) => {$(
        #[doc = $doc]
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        text_schema!($name, $pattern, $doc);
    )+};
}

handle! {
    /// `job:<uuid>`.
    JobHandle, "^job:[0-9a-f-]{36}$";
    /// `run:<uuid>`; of a Recipe run, `run:recipe-<uuid>`.
    RunHandle, "^run:(recipe-)?[0-9a-f-]{36}$";
    /// `recipe:<id>`.
    RecipeHandle, "^recipe:[A-Za-z0-9_-]{1,180}$";
}

/// Forms of texts that requests and responses have as `String`. A member names its form as the `value_type` of its schema.
macro_rules! forms {
    ($(#[doc = $doc:literal] $name:ident, $pattern:literal;)+) => {$(
        #[doc = $doc]
        pub struct $name;

        text_schema!($name, $pattern, $doc);
    )+};
}

forms! {
    /// `node:<id>`.
    NodeHandle, "^node:[A-Za-z0-9_-]{1,180}$";
    /// An output: a node, or work that no node stands for.
    OutputHandle, "^(?:node|run|job):[A-Za-z0-9_-]{1,180}$";
    /// `connection:<id>`.
    ConnectionHandle, "^connection:[A-Za-z0-9_-]{1,180}$";
    /// `element:<id>`.
    ElementHandle, "^element:[A-Za-z0-9_-]{1,160}$";
    /// `element:<id>@v<n>`: one immutable version.
    ElementVersionHandle, "^element:[A-Za-z0-9_-]{1,160}@v[1-9][0-9]*$";
    /// `element-collection:<id>`.
    ElementCollectionHandle, "^element-collection:[A-Za-z0-9_-]{1,160}$";
    /// `model:<key>`.
    ModelHandle, "^model:[A-Za-z0-9_-]{8,600}$";
    /// Opaque: never build or decode one.
    ModelKey, "^[A-Za-z0-9_-]{8,600}$";
    /// `run:recipe-<uuid>`.
    RecipeRunHandle, "^run:recipe-[0-9a-f-]{36}$";
    /// `recipe-<uuid>`.
    RecipeRunId, "^recipe-[0-9a-f-]{36}$";
    /// `webhook:<id>`: one delivery.
    WebhookHandle, "^webhook:[A-Za-z0-9_-]+$";
    /// `event:<uuid>`.
    EventId, "^event:[0-9a-f-]{36}$";
    /// A node or an asset: `node:<id>`, `asset:<id>` or `asset:<ownerUid>:<id>`.
    ImageHandle, "^(node:|asset:([A-Za-z0-9_-]{1,180}:)?)[A-Za-z0-9_-]{1,180}$";
    /// `asset:<id>` or `asset:<ownerUid>:<id>`.
    AssetReference, "^asset:([A-Za-z0-9_-]{1,180}:)?[A-Za-z0-9_-]{1,180}$";
    /// A path on this server.
    RunUrl, "^/api/canvas-agent/v1/runs/";
    /// A path on this server.
    JobUrl, "^/api/canvas-agent/v1/jobs/";
    /// A path on this server.
    JobOutputUrl, "^/api/canvas-agent/v1/jobs/[^/]+/output$";
    /// A path on this server.
    ChangesUrl, "^/api/canvas-agent/v1/canvases/[^/]+/changes\\?since=";
    /// Plain id, ref or handle; in a batch also a `clientId`.
    NodeReference, "^(node:)?[A-Za-z0-9_-]{1,180}$";
    /// Plain id, ref, handle or `clientId`.
    ConnectionReference, "^(connection:)?[A-Za-z0-9_-]{1,180}$";
    /// A name that other operations of the batch can use.
    ClientId, "^[A-Za-z0-9_-]{1,180}$";
    /// Plain id, `canvas:<id>`, `canvas:<ownerUid>:<id>` or slug.
    CanvasReference, "^((canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}|~[0-9a-hjkmnp-tv-z]{8})$";
    /// `~` and 8 characters.
    CanvasSlug, "^~[0-9a-hjkmnp-tv-z]{8}$";
}

/// The `revision` that the request is based on.
#[derive(ToSchema)]
#[schema(min_length = 1, max_length = 200)]
pub struct BaseRevision(pub String);

/// Chosen by the client. An equal request with the same key returns the first result.
#[derive(ToSchema)]
#[schema(min_length = 8, max_length = 200)]
pub struct IdempotencyKey(pub String);

/// A provider's model id, or a `model:` handle.
#[derive(ToSchema)]
#[schema(max_length = 650)]
pub struct ModelReference(pub String);

/// A node handle, an asset handle, or the public HTTPS URL of an image.
#[derive(ToSchema)]
#[schema(max_length = 2048)]
pub struct ImageSource(pub String);

impl From<JobId> for JobHandle {
    fn from(id: JobId) -> Self {
        Self(id.job_handle())
    }
}

impl From<JobId> for RunHandle {
    fn from(id: JobId) -> Self {
        Self(id.run_handle())
    }
}

impl From<RunId> for RunHandle {
    fn from(id: RunId) -> Self {
        Self(id.handle())
    }
}

impl From<&RecipeId> for RecipeHandle {
    fn from(id: &RecipeId) -> Self {
        Self(id.handle())
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_id_has_1_to_180_characters_of_its_alphabet() {
        assert!(is_plain_id("a") && is_plain_id(&"x".repeat(180)) && is_plain_id("A-z_09"));
        for wrong in ["", "a b", "ä", "a:b", "a/b", "a\0"] {
            assert!(!is_plain_id(wrong), "{wrong:?}");
        }
        assert!(!is_plain_id(&"x".repeat(181)));
    }

    #[test]
    fn a_canvas_is_named_in_three_ways() {
        let caller = AccountUid::parse("me").expect("valid");
        for (text, full) in [("c1", "canvas:me:c1"), ("canvas:c1", "canvas:me:c1"), ("canvas:you:c1", "canvas:you:c1")]
        {
            assert_eq!(CanvasRef::parse(text).expect(text).resolve(&caller).to_string(), full);
        }
        for wrong in ["", "canvas:", "canvas::c1", "canvas:a:b:c", "asset:c1", "a:c1", "canvas:you:"] {
            assert!(CanvasRef::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_slug_is_a_tilde_and_eight_characters_of_its_alphabet() {
        let parsed = CanvasRef::parse("~7kq2m9xa").expect("a slug");
        assert_eq!(parsed.slug(), Some("~7kq2m9xa"));
        assert_eq!(CanvasRef::parse("c1").expect("an id").slug(), None);
        for wrong in [
            "~",
            "~7kq2m9x",
            "~7kq2m9xaa",
            "~7KQ2M9XA",
            "~7kq2m9xi",
            "~7kq2m9xl",
            "canvas:~7kq2m9xa",
            "canvas:me:~7kq2m9xa",
        ] {
            assert!(CanvasRef::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_node_handle_is_the_kind_and_the_id() {
        assert_eq!(NodeId::parse("node:n1").expect("valid"), NodeId::parse("n1").expect("valid"));
        assert!(NodeId::parse("node:").is_err() && NodeId::parse("connection:n1").is_err());
    }
}
