//! Types that many members share: handles, ids, paths, and enumerations of which only some values are possible.
//!
//! The derive writes each of these out where it is used, as a text with a pattern or without. Generators of client libraries make
//! one type of a component, and the document becomes shorter.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// A component, and the members that are of it: `Schema.member`, or `Schema.member[]` for the items of a list.
struct Type {
    name: &'static str,
    /// Empty for an enumeration that speaks for itself.
    description: &'static str,
    form: Form,
    members: &'static [&'static str],
}

enum Form {
    Pattern(&'static str),
    OneOf(&'static [&'static str]),
    /// Minimum and maximum length.
    Length(u32, u32),
    /// A component that exists.
    Known,
}

use Form::{Known, Length, OneOf, Pattern};

const fn handle(
    name: &'static str,
    description: &'static str,
    pattern: &'static str,
    members: &'static [&'static str],
) -> Type {
    Type { name, description, form: Pattern(pattern), members }
}

const fn one_of(name: &'static str, values: &'static [&'static str], members: &'static [&'static str]) -> Type {
    Type { name, description: "", form: OneOf(values), members }
}

const fn known(name: &'static str, members: &'static [&'static str]) -> Type {
    Type { name, description: "", form: Known, members }
}

const fn plain_id(name: &'static str, description: &'static str, members: &'static [&'static str]) -> Type {
    Type { name, description, form: Known, members }
}

/// A node or an asset.
pub const PICTURE: &str = "^(node:|asset:([A-Za-z0-9_-]{1,180}:)?)[A-Za-z0-9_-]{1,180}$";

const TYPES: &[Type] = &[
    handle(
        "NodeHandle",
        "`node:<id>`",
        "^node:[A-Za-z0-9_-]{1,180}$",
        &[
            "Node.handle",
            "Connection.from",
            "Connection.to",
            "Asset.node",
            "JobImage.nodeId",
            "ImportedImage.nodeId",
            "FidelityReason.nodeHandle",
            "RecipeRun.recipeInstanceNodeHandle",
            "RecipeRun.targets[]",
            "RunInput.nodeHandle",
            "RunOutput.nodeHandle",
            "Finding.nodeHandles[]",
            "GroupReview.nodeHandles[]",
            "Outputs.handles[]",
            "ProductFidelity.needsReviewOutputHandles[]",
            "ProductFidelity.evidenceMissingOutputHandles[]",
            "DeliveryReview.pendingOutputHandles[]",
            "DeliveryReview.failedOutputHandles[]",
            "DeliveryReview.nonDurableOutputHandles[]",
            "ImageJob.targets[]",
            "StartQuote.targets[]",
        ],
    ),
    handle(
        "ConnectionHandle",
        "`connection:<id>`",
        "^connection:[A-Za-z0-9_-]{1,180}$",
        &["Connection.handle", "Finding.connectionHandles[]", "GroupReview.connectionHandles[]"],
    ),
    handle(
        "ElementHandle",
        "`element:<id>`",
        "^element:[A-Za-z0-9_-]{1,160}$",
        &["Element.handle", "ElementVersion.handle"],
    ),
    handle(
        "ElementVersionHandle",
        "`element:<id>@v<n>`: one immutable version",
        "^element:[A-Za-z0-9_-]{1,160}@v[1-9][0-9]*$",
        &["Element.versionHandle", "ElementVersion.versionHandle", "ImageStart.elements[]", "Provenance.elements[]"],
    ),
    handle(
        "ElementCollectionHandle",
        "`element-collection:<id>`",
        "^element-collection:[A-Za-z0-9_-]{1,160}$",
        &["ElementCollection.handle"],
    ),
    known("RecipeHandle", &["Recipe.handle", "Workflow.handle", "RecipeRun.recipeHandle"]),
    handle("ModelHandle", "`model:<key>`", "^model:[A-Za-z0-9_-]{8,600}$", &["Model.handle"]),
    handle(
        "ModelKey",
        "Opaque: never build or decode one",
        "^[A-Za-z0-9_-]{8,600}$",
        &["Model.id", "VideoModel.id", "QuotedModel.id"],
    ),
    known("JobHandle", &["ImageJob.id", "VideoJob.id"]),
    known("RunHandle", &["ImageJob.run", "RunOutput.runHandle", "CampaignShot.runHandle"]),
    handle(
        "RecipeRunHandle",
        "`run:recipe-<uuid>`",
        "^run:recipe-[0-9a-f-]{36}$",
        &["RecipeRun.handle", "RecipeRun.run", "EventRecipeRun.run"],
    ),
    handle(
        "RecipeRunId",
        "`recipe-<uuid>`",
        "^recipe-[0-9a-f-]{36}$",
        &["RecipeRun.id", "RecipeRun.rawId", "EventRecipeRun.id"],
    ),
    handle("WebhookHandle", "`webhook:<id>`: one delivery", "^webhook:[A-Za-z0-9_-]+$", &["DeliveryState.id"]),
    handle("EventId", "`event:<uuid>`", "^event:[0-9a-f-]{36}$", &["Event.id"]),
    handle(
        "PictureHandle",
        "A node or an asset: `node:<id>`, `asset:<id>` or `asset:<ownerUid>:<id>`",
        PICTURE,
        &[
            "ImageJob.references[]",
            "ReferenceInput.handle",
            "RunInput.sourceHandle",
            "RunAction.inputs[]",
            "ImageStart.source",
        ],
    ),
    handle(
        "AssetReference",
        "`asset:<id>` or `asset:<ownerUid>:<id>`",
        "^asset:([A-Za-z0-9_-]{1,180}:)?[A-Za-z0-9_-]{1,180}$",
        &["NewNode.asset"],
    ),
    handle(
        "RunUrl",
        "A path on this server",
        "^/api/canvas-agent/v1/runs/",
        &["ImageJob.pollUrl", "RecipeRun.pollUrl"],
    ),
    handle("JobUrl", "A path on this server", "^/api/canvas-agent/v1/jobs/", &["VideoJob.pollUrl"]),
    handle(
        "JobOutputUrl",
        "A path on this server",
        "^/api/canvas-agent/v1/jobs/[^/]+/output$",
        &["VideoDownload.downloadUrl"],
    ),
    handle(
        "ChangesUrl",
        "A path on this server",
        "^/api/canvas-agent/v1/canvases/[^/]+/changes\\?since=",
        &["ErrorDetails.changesUrl"],
    ),
    handle(
        "NodeReference",
        "Plain id or handle; in a batch also a `clientId`",
        "^(node:)?[A-Za-z0-9_-]{1,180}$",
        &[
            "ConnectionCreate.fromNodeId",
            "ConnectionCreate.toNodeId",
            "ImageStart.promptNodeId",
            "ImageStart.targetNodeId",
            "ImageStart.targetNodeIds[]",
            "ForkRecipe.near",
            "ForkRecipe.sectionId",
            "NewInput.sourceNodeId",
            "NodeCreate.near",
            "NodeCreate.sectionId",
            "NodeDelete.nodeId",
            "NodeDuplicate.nodeId",
            "NodeMove.nodeId",
            "NodeRestore.nodeId",
            "NodeUpdate.nodeId",
            "RunAction.targetNodeId",
            "RunRecipe.instanceNodeId",
            "RunRecipe.near",
            "RunRecipe.sectionId",
            "TargetPlace.near",
            "TargetPlace.sectionId",
        ],
    ),
    handle(
        "ConnectionReference",
        "Plain id, handle or `clientId`",
        "^(connection:)?[A-Za-z0-9_-]{1,180}$",
        &["ConnectionDelete.connectionId", "ConnectionRestore.connectionId", "ConnectionUpdate.connectionId"],
    ),
    handle(
        "ClientId",
        "A name that other operations of the batch can use",
        "^[A-Za-z0-9_-]{1,180}$",
        &["NodeCreate.clientId", "NodeDuplicate.clientId", "ConnectionCreate.clientId"],
    ),
    handle(
        "CanvasReference",
        "Plain id, `canvas:<id>` or `canvas:<ownerUid>:<id>`",
        "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$",
        &[
            "CampaignPlanRequest.canvasId",
            "CampaignStartRequest.canvasId",
            "ForkRecipe.canvasId",
            "ImageStart.canvasId",
            "RunAction.canvasId",
            "VideoStart.canvasId",
        ],
    ),
    handle("CanvasHandle", "`canvas:<ownerUid>:<id>`", "^canvas:[A-Za-z0-9_-]+:[A-Za-z0-9_-]+$", &[]),
    handle("AssetHandle", "`asset:<ownerUid>:<id>`", "^asset:(?:[A-Za-z0-9_-]{1,180}:)?[A-Za-z0-9_-]{1,180}$", &[]),
    Type {
        name: "BaseRevision",
        description: "The `revision` that the request is based on",
        form: Length(1, 200),
        members: &[
            "ApplyOperations.baseRevision",
            "CampaignStartRequest.baseRevision",
            "ForkRecipe.baseRevision",
            "ImageStart.baseRevision",
            "RunAction.baseRevision",
            "RunRecipe.baseRevision",
            "ValidateOperations.baseRevision",
        ],
    },
    Type {
        name: "IdempotencyKey",
        description: "Chosen by the client. An equal request with the same key returns the first result",
        form: Length(8, 200),
        members: &[
            "ApplyOperations.idempotencyKey",
            "CampaignStartRequest.idempotencyKey",
            "CreateWorkflow.idempotencyKey",
            "ForkRecipe.idempotencyKey",
            "ImageImportRequest.idempotencyKey",
            "ImageStart.idempotencyKey",
            "ProductImportRequest.idempotencyKey",
            "RunAction.idempotencyKey",
            "RunRecipe.idempotencyKey",
            "VideoStart.idempotencyKey",
        ],
    },
    one_of(
        "ImageMediaType",
        &["image/png", "image/jpeg", "image/webp", "image/gif"],
        &["Asset.mimeType", "JobImage.mediaType", "ImportedImage.mediaType"],
    ),
    one_of("ImageJobKind", &["image", "action"], &["ImageJob.kind"]),
    one_of("TextNodeType", &["text", "sticky"], &["NodePatch.type"]),
    one_of("TerminalRunStatus", &["succeeded", "failed", "canceled"], &["EventRecipeRun.status"]),
    known("InputKind", &["RecipePort.nodeType", "RunInput.type"]),
    known("OutputKind", &["RunOutput.type"]),
    plain_id("AccountUid", "Plain id of an account", &["ForkRecipe.ownerUid", "VideoStart.ownerUid"]),
    plain_id("CanvasId", "Plain id of a canvas", &[]),
    plain_id("NodeId", "Plain id of a node", &[]),
    plain_id("ConnectionId", "Plain id of a connection", &[]),
    plain_id("AssetId", "Plain id of an asset", &[]),
    plain_id("ElementId", "Plain id of an Element", &[]),
    plain_id("ElementCollectionId", "Plain id of a collection of Elements", &[]),
    plain_id("RecipeId", "Plain id of a Recipe", &[]),
    known("ActionHandle", &["Action.id", "ImageJob.actionId", "Provenance.actionId"]),
    known("ActionSlug", &["Action.slug"]),
    known("ActionVersion", &["Action.version", "ImageJob.actionVersion", "Provenance.actionVersion"]),
];

/// Adds the types, and refers to them.
pub fn share(document: &mut Value) {
    let schemas = document["components"]["schemas"].as_object_mut().expect("the schemas are components");
    let slugs: Vec<&str> = actions::all().iter().map(|action| &*action.slug).collect();
    let ids: Vec<&str> = actions::all().iter().map(|action| action.id.as_str()).collect();
    let about: Vec<&str> = actions::all().iter().map(|action| &*action.summary).collect();
    schemas.insert("ActionSlug".into(), json!({"type": "string", "enum": slugs, "x-enum-descriptions": about}));
    schemas.insert("ActionHandle".into(), json!({"type": "string", "enum": ids, "x-enum-descriptions": about}));
    schemas.insert("ActionVersion".into(), json!({"type": "string", "const": domain::action::ACTION_VERSION}));
    for Type { name, description, form, members } in TYPES {
        let mut schema = match form {
            Pattern(pattern) => json!({"type": "string", "pattern": pattern}),
            OneOf(values) => json!({"type": "string", "enum": values}),
            Length(least, most) => json!({"type": "string", "minLength": least, "maxLength": most}),
            Known => schemas.get(*name).cloned().expect("a known type is a component"),
        };
        if !description.is_empty() {
            schema["description"] = format!("{description}.").into();
        }
        schemas.insert((*name).to_owned(), schema);
        members.iter().for_each(|member| refer(schemas, member, name));
    }
    let is_described = |(name, schema): (&String, &Value)| schema.get("description").map(|_| name.clone());
    let described: BTreeSet<String> = schemas.iter().filter_map(is_described).collect();
    for schema in schemas.values_mut() {
        for (name, property) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
            let property = property.as_object_mut().expect("a schema");
            let of_type = property.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
            let reported = property.get("description").and_then(Value::as_str);
            let (Some(of_type), Some(reported)) = (of_type, reported) else { continue };
            if described.contains(of_type) && is_said_by_the_type(name, reported) {
                property.remove("description");
            } else {
                let reported = without_form(reported);
                property.insert("description".into(), reported.into());
            }
        }
    }
}

/// A reference to a component.
pub fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Makes a member refer to a type, under its own description.
fn refer(schemas: &mut Map<String, Value>, member: &str, name: &str) {
    let (schema, property) = member.split_once('.').expect("a member is named with its schema");
    let (property, is_list) = property.strip_suffix("[]").map_or((property, false), |property| (property, true));
    let documented = schemas.get_mut(schema).and_then(|schema| schema.pointer_mut(&format!("/properties/{property}")));
    let documented = documented.unwrap_or_else(|| panic!("{member} is not in the document"));
    if is_list {
        documented["items"] = reference(name);
        return;
    }
    let description = documented["description"].as_str().map(str::to_owned);
    *documented = reference(name);
    if let Some(description) = description {
        documented["description"] = description.into();
    }
}

/// Whether the description of a member says no more than that of its type.
fn is_said_by_the_type(member: &str, description: &str) -> bool {
    let begins = |texts: &[&str]| texts.iter().any(|text| description.starts_with(text));
    match member {
        "baseRevision" => !description.contains("omitted"),
        "canvasId" => begins(&["Plain id or handle of the canvas", "Handle of the canvas"]),
        "clientId" | "idempotencyKey" | "page" => true,
        "id" if description.contains(';') => false,
        "id" | "handle" | "ownerUid" => {
            begins(&["Plain id of the", "Handle of the", "Id of the run", "Uid of the account"])
        }
        "nodeId" | "connectionId" => description.ends_with(": id, handle or `clientId`."),
        "canvasHandle" => begins(&["Handle of the canvas"]),
        _ => false,
    }
}

/// A description without the form of a handle, which the type has: "Handle of the node, `node:<id>`." is "Handle of the node."
fn without_form(description: &str) -> String {
    match description.rsplit_once(", `") {
        Some((reported, form)) if form.ends_with("`.") && form.contains('<') && !form.contains(' ') => {
            format!("{reported}.")
        }
        _ => description.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::documented;

    #[test]
    fn a_handle_is_one_type_wherever_it_is_served() {
        let document = documented().1;
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["Node"]["properties"]["handle"], reference("NodeHandle"));
        let reported =
            json!({"$ref": "#/components/schemas/NodeHandle", "description": "Handle of the output's node."});
        assert_eq!(schemas["FidelityReason"]["properties"]["nodeHandle"], reported);
        assert_eq!(schemas["Outputs"]["properties"]["handles"]["items"], reference("NodeHandle"));
        assert_eq!(schemas["ActionHandle"]["enum"][0], "action:resize");
        assert_eq!(schemas["ElementVersionHandle"]["pattern"], "^element:[A-Za-z0-9_-]{1,160}@v[1-9][0-9]*$");
    }

    #[test]
    fn a_description_loses_the_form_of_a_handle_and_nothing_else() {
        for (whole, rest) in [
            ("Handle of the run, `run:recipe-<uuid>`.", "Handle of the run."),
            ("Id of the run, `recipe-<uuid>`.", "Id of the run."),
            ("Kind of the job: `image` or `action`.", "Kind of the job: `image` or `action`."),
            ("Text, then `node:<id>`, then more.", "Text, then `node:<id>`, then more."),
        ] {
            assert_eq!(without_form(whole), rest);
        }
    }
}
