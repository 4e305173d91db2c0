//! Members that always have one value: the type of each for its schema, as `value_type` and `inline`.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

macro_rules! constants {
    ($(#[doc = $doc:literal] $name:ident: $kind:ident = $value:expr;)+) => {$(
        #[doc = $doc]
        pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new().schema_type(Type::$kind).enum_values(Some([$value])).into()
            }
        }

        impl ToSchema for $name {}
    )+};
}

constants! {
    /// `true`.
    True: Boolean = true;
    /// `false`.
    False: Boolean = false;
    /// The version of a form that has one version.
    One: Integer = 1;
    /// What a token of an agent is called.
    AgentToken: String = "agent_token";
    /// The version of events.
    EventVersion: String = "v1";
    /// A Recipe run, by kind and by operation.
    RecipeWork: String = "recipe";
    /// A video, as a kind of job.
    VideoWork: String = "video";
    /// The operation of videos.
    Generation: String = "generate";
}
