//! The contract document: OpenAPI 3.1.0, generated from the code's own types.
//!
//! utoipa collects routes and types. [`complete`] then adds what the types cannot say, on the JSON form of the document: the
//! parameters of Actions, names of the variants of unions, headers, shared responses and parameters, and examples.

mod actions;
#[cfg(test)]
mod descriptions;
pub mod digest;
pub mod errors;
mod examples;
mod headers;
#[cfg(test)]
mod layout;
mod metadata;
mod parameters;
mod samples;
mod shapes;
mod webhook;

use axum::Extension;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use domain::asset::UploadMetadata;
use domain::id::ChangesUrl;
use domain::job::RunKind;
use domain::problem::{ErrorBody, ErrorCode, ErrorDetails, ErrorEnvelope, ErrorReason};
use domain::recipe::VisibilityFilter;
use domain::stream::{
    CanvasStreamEvent, Coordinate, GoneStreamEvent, Participant, Pointer, PointerState, PointersStreamEvent,
    PresenceStreamEvent, RoleStreamEvent, RunStreamEvent,
};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::schema::{AdditionalProperties, KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::{Tag, TagBuilder};
use utoipa::openapi::{
    ComponentsBuilder, ContactBuilder, Info, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, RefOr, ServerBuilder,
};
use utoipa::{PartialSchema, ToSchema};

pub use self::examples::Recorded;
pub use self::shapes::join_inlined;
use crate::compression::Unchanging;
use crate::routes::assets::image::RenditionWidth;

/// Tags with their descriptions, in the order in which a reader meets them.
const TAGS: [(&str, &str); 17] = [
    ("Authentication", "Check a token: whose it is and what it may do."),
    (
        "Canvases",
        "A canvas is one graph of nodes and connections under a single revision. Read it, and change it in batches.",
    ),
    ("Batches", "Batches that are set aside for some minutes: a client names one instead of sending it again."),
    ("Assets", "Stored images: uploads, imports and results."),
    ("Elements", "Reusable visual references with immutable versions, and collections of them."),
    ("Image Actions", "Deterministic transformations of images. They cost no credit."),
    ("Images", "Generation, edits and variations by a model, which can cost credit, and the import of one image."),
    ("Videos", "Generation of videos. It can cost credit."),
    ("Models and providers", "The models that the caller can run, and its saved connections to providers."),
    ("Runs", "Image, Action and Recipe work by run id: read, wait, follow, cancel."),
    ("Jobs", "Image, Action and video work by job id: read, wait, cancel, and download videos."),
    ("Status", "The queues of the service and their workers."),
    ("Events", "One stream of server-sent events for canvases, their participants and the caller's runs."),
    ("Webhooks", "The signed request that the service sends when a run ends."),
    ("Recipes", "Sequences of text and image steps with typed inputs and outputs: search, fork, run."),
    ("Legacy campaigns", "Deprecated. Kept for clients of an earlier release."),
    ("Contract", "This document and its digest. The operations need no credential."),
];

/// The document without routes.
pub fn base() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Canvas Service")
        .version("1.0.0")
        // The contract is stable. OpenAPI has no field that says so.
        .extensions(Some(ExtensionsBuilder::new().add("x-stability", "stable").build()))
        .description(Some(include_str!("front.txt").trim_end()))
        .license(Some(LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build()))
        .contact(None::<ContactBuilder>.map(ContactBuilder::build))
        .build();
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("`cba_<token-id>.<secret>`: a UUID, a dot and 43 characters of base64url."))
        .build();
    let tags = TAGS.map(|(name, description)| TagBuilder::new().name(name).description(Some(description)).build());
    let mut document = with_components(info, tags.into(), ("bearer", SecurityScheme::Http(bearer)));
    // The types of parameters are not collected with the routes.
    let schemas = &mut document.components.get_or_insert_default().schemas;
    schemas.insert(RenditionWidth::name().into(), RenditionWidth::schema());
    schemas.insert(UploadMetadata::name().into(), UploadMetadata::schema());
    schemas.insert(VisibilityFilter::name().into(), VisibilityFilter::schema());
    document
}

/// A document without routes, with the types of failures and one kind of credential.
pub fn with_components(info: Info, tags: Vec<Tag>, (credential, scheme): (&str, SecurityScheme)) -> OpenApi {
    let components = ComponentsBuilder::new()
        .security_scheme(credential, scheme)
        .schema(ErrorEnvelope::name(), ErrorEnvelope::schema())
        .schema(ErrorBody::name(), ErrorBody::schema())
        .schema(ErrorCode::name(), ErrorCode::schema())
        .schema(ErrorDetails::name(), ErrorDetails::schema())
        .schema(ErrorReason::name(), ErrorReason::schema())
        .schema(ChangesUrl::name(), ChangesUrl::schema())
        // The events of streams, which are described as text.
        .schema(RoleStreamEvent::name(), RoleStreamEvent::schema())
        .schema(CanvasStreamEvent::name(), CanvasStreamEvent::schema())
        .schema(PresenceStreamEvent::name(), PresenceStreamEvent::schema())
        .schema(Participant::name(), Participant::schema())
        .schema(PointersStreamEvent::name(), PointersStreamEvent::schema())
        .schema(Pointer::name(), Pointer::schema())
        .schema(PointerState::name(), PointerState::schema())
        .schema(Coordinate::name(), Coordinate::schema())
        .schema(GoneStreamEvent::name(), GoneStreamEvent::schema())
        .schema(RunStreamEvent::name(), RunStreamEvent::schema())
        .schema(RunKind::name(), RunKind::schema())
        .schema(domain::Violation::name(), domain::Violation::schema())
        .build();
    let server = ServerBuilder::new().url(SERVER).description(Some("The server that serves this document."));
    OpenApiBuilder::new()
        .info(info)
        .servers(Some([server.build()]))
        .tags(Some(tags))
        .components(Some(components))
        .security(Some([SecurityRequirement::new(credential, Vec::<String>::new())]))
        .build()
}

/// Where the service is reached, in the committed document. The served one names the public URL of the installation.
const SERVER: &str = "/";

/// Bytes of a file, at least one, for the document.
pub struct Binary;

impl PartialSchema for Binary {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::Binary);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).min_length(Some(1)).into()
    }
}

impl ToSchema for Binary {}

/// Completes the document that the routes declare.
pub fn complete(mut document: OpenApi) -> Value {
    webhook::add(&mut document);
    let mut document = serialize(document);
    metadata::add(&mut document);
    actions::add(&mut document);
    shapes::refine(&mut document);
    document = complete_shared(document, Recorded::Contract);
    parameters::share(&mut document);
    document
}

/// The document as JSON, with the variants of unions closed and without `null` for optional members.
pub fn serialize(mut document: OpenApi) -> Value {
    if let Some(components) = &mut document.components {
        components.schemas.values_mut().for_each(close_variants);
    }
    let mut document = serde_json::to_value(document).expect("an OpenAPI document serializes");
    exclude_null(&mut document);
    document
}

/// Adds failures, headers and examples: what every document has.
pub fn complete_shared(mut document: Value, recorded: Recorded) -> Value {
    let schemas = document["components"]["schemas"].as_object_mut().expect("the schemas are components");
    schemas.values_mut().for_each(shapes::refine_schema);
    errors::add(&mut document);
    headers::add(&mut document);
    examples::add(&mut document, recorded);
    document
}

/// Closes the variants of a tagged union to unknown fields. The derive closes structs that deny them, and forgets the
/// variants of enums that do.
pub fn close_variants(schema: &mut RefOr<Schema>) {
    let RefOr::T(Schema::OneOf(union)) = schema else { return };
    for variant in &mut union.items {
        if let RefOr::T(Schema::Object(object)) = variant
            && !object.properties.is_empty()
        {
            object.additional_properties.get_or_insert_with(|| Box::new(AdditionalProperties::FreeForm(false)));
        }
    }
}

/// Marks a member that `null` removes. It stays in the document as an extension.
const NULL_REMOVES: &str = "x-null-removes";

/// Excludes `null` as the value of optional members, here and in all schemas within. Clients leave out what they do not want to say,
/// and the service what there is not. The derive admits `null` for every `Option`.
pub fn exclude_null(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(exclude_null),
        Value::Object(members) => {
            let required = members.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            if let Some(Value::Object(properties)) = members.get_mut("properties") {
                let optional = properties.iter_mut().filter(|(name, _)| !required.contains(&json!(name)));
                optional.filter_map(|(_, property)| property.as_object_mut()).for_each(exclude_null_here);
            }
            members.values_mut().for_each(exclude_null);
        }
        _ => {}
    }
}

fn exclude_null_here(property: &mut Map<String, Value>) {
    if property.contains_key(NULL_REMOVES) {
        return;
    }
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            property["type"] = only.clone();
        }
    }
    if let Some(Value::Array(forms)) = property.get_mut("oneOf") {
        forms.retain(|form| form["type"] != "null");
        if let [Value::Object(only)] = forms.as_mut_slice() {
            let only = std::mem::take(only);
            property.remove("oneOf");
            property.extend(only);
        }
    }
}

/// The operations of a document, each with its path.
fn operations(document: &mut Value) -> impl Iterator<Item = (&str, &mut Map<String, Value>)> {
    let paths = document["paths"].as_object_mut().expect("a document has paths");
    paths.iter_mut().flat_map(|(path, item)| {
        let operations = item.as_object_mut().expect("a path has operations");
        operations.values_mut().map(|it| (path.as_str(), it.as_object_mut().expect("an operation is an object")))
    })
}

/// The name of an operation.
fn id(operation: &Map<String, Value>) -> &str {
    operation["operationId"].as_str().expect("a route names its operation")
}

/// The members of a document, in the order of the OpenAPI specification.
const MEMBERS: [&str; 8] = ["openapi", "info", "servers", "tags", "security", "paths", "webhooks", "components"];

/// Those that a document has.
fn members(document: &Value) -> impl Iterator<Item = (&'static str, &Value)> {
    MEMBERS.into_iter().filter_map(|name| Some((name, document.get(name)?)))
}

/// A document whose members are serialized in that order.
struct Ordered<'a>(&'a Value);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(members(self.0))
    }
}

/// The document as it is committed.
#[cfg(test)]
pub fn committed(document: &Value) -> String {
    layout::text(&members(document).collect::<Vec<_>>())
}

/// The serialized document.
#[derive(Clone)]
pub struct Document(Bytes);

impl Document {
    /// Serializes `document` for an installation that is reached at `public_url`, with a sample call of each operation.
    pub fn new(mut document: Value, public_url: &str) -> Self {
        document["servers"][0]["url"] = public_url.into();
        samples::add(&mut document);
        Self(Bytes::from(serde_json::to_vec(&Ordered(&document)).expect("a document serializes")))
    }
}

/// Read this document
///
/// Returns the contract as OpenAPI 3.1. Use it to generate clients. It needs no credential and is the same for
/// every caller.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "getContract", tag = "Contract",
    security(()),
    responses((status = 200, description = "The OpenAPI document.", content_type = "application/json", body = Object))
)]
pub async fn serve(Extension(Document(document)): Extension<Document>) -> Response {
    let kept = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "public, max-age=300")];
    (Unchanging::named("openapi.json"), kept, document).into_response()
}
