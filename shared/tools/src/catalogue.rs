//! All tools, in the order in which they are listed.

use std::sync::LazyLock;

use domain::account::Scope;
use futures_util::future::{BoxFuture, FutureExt};
use jsonschema::Validator;
use rmcp::model::{CallToolResult, ToolAnnotations};
use serde_json::{Map, Value};

use crate::call::Call;
use crate::failure::Failure;
use crate::remedy;
use crate::schema;
use crate::tool::{Result, Tool};
use crate::tools;

/// A tool as the server knows it.
pub struct Entry {
    /// The definition that hosts get.
    pub definition: rmcp::model::Tool,
    /// `true` if a repeated call has no further effect.
    pub repeats: bool,
    scopes: &'static [Scope],
    any_scope: &'static [Scope],
    schema: Value,
    validator: Validator,
    add_instead: fn(&Value, Failure) -> Failure,
    run: fn(&Call, Value) -> BoxFuture<'_, Result<CallToolResult>>,
}

/// Arguments of callers whose files are on this machine, and of the others, whose shell is given links.
const LOCAL: [&str; 2] = ["paths", "into"];
const REMOTE: [&str; 2] = ["files", "expiresInSeconds"];

impl Entry {
    /// `local`: the caller may name files of this machine.
    fn new<T: Tool>(local: bool) -> Self {
        let mut input = schema::of_arguments::<T::Arguments>();
        if let Some(Value::Object(properties)) = input.get_mut("properties") {
            for name in if local { REMOTE } else { LOCAL } {
                properties.remove(name);
            }
        }
        let schema = Value::Object(input.clone());
        let validator = jsonschema::draft202012::new(&schema).expect("a derived schema is valid: a test compiles each");
        // Hints that equal the protocol's default are left out, except for what a host may ask a person about.
        let mut annotations = ToolAnnotations::new().open_world(T::HINTS.reaches_out);
        match T::HINTS.reads {
            true => annotations = annotations.read_only(true),
            false => annotations = annotations.destructive(T::HINTS.destroys),
        }
        if T::HINTS.repeats && !T::HINTS.reads {
            annotations = annotations.idempotent(true);
        }
        let definition = rmcp::model::Tool::new(T::NAME, T::ABOUT, schema::listed(&input))
            .with_title(T::TITLE)
            .with_annotations(annotations);
        Self {
            definition,
            repeats: T::HINTS.repeats,
            scopes: T::SCOPES,
            any_scope: T::ANY_SCOPE,
            schema,
            validator,
            add_instead: T::add_instead,
            run: run::<T>,
        }
    }

    /// The scopes that it needs: all of the first, and one of the second, unless it is empty.
    pub fn scopes(&self) -> (&'static [Scope], &'static [Scope]) {
        (self.scopes, self.any_scope)
    }

    /// Returns `true` if a token with these scopes is offered the tool.
    pub fn is_for(&self, scopes: &[Scope]) -> bool {
        self.scopes.iter().all(|scope| scopes.contains(scope))
            && (self.any_scope.is_empty() || self.any_scope.iter().any(|scope| scopes.contains(scope)))
    }

    /// Runs the tool; a failure has its next steps. A member that is `null` counts as left out: some hosts send all that a schema knows.
    pub async fn run(&self, mut call: Call, mut arguments: Map<String, Value>) -> Result<CallToolResult> {
        arguments.retain(|_, value| !value.is_null());
        let given = Value::Object(arguments);
        let violations = schema::violations(&self.validator, &given);
        // The bytes of an image (`data`) are neither part of the key of a call nor of a call that an answer proposes.
        let kept = given.as_object().into_iter().flatten().filter(|(name, _)| *name != "data");
        call.arguments = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        let ended = match violations.is_empty() {
            true => (self.run)(&call, given).await,
            false => Err((self.add_instead)(&given, Failure::invalid(violations))),
        };
        match ended {
            Ok(result) => Ok(result),
            Err(failure) => {
                let failure = failure.with_repetition(self.repeats);
                Err(remedy::add_next(failure, &call, &self.schema).await)
            }
        }
    }
}

fn run<T: Tool>(call: &Call, arguments: Value) -> BoxFuture<'_, Result<CallToolResult>> {
    async move {
        let arguments = serde_json::from_value(arguments).map_err(|error| Failure::argument("", error.to_string()))?;
        Ok(T::run(call, arguments).await?.into_result())
    }
    .boxed()
}

/// The tools, for callers with local files or without.
pub fn all(local: bool) -> &'static [Entry] {
    static LOCAL: LazyLock<Vec<Entry>> = LazyLock::new(|| entries(true));
    static REMOTE: LazyLock<Vec<Entry>> = LazyLock::new(|| entries(false));
    if local { &LOCAL } else { &REMOTE }
}

fn entries(local: bool) -> Vec<Entry> {
    vec![
        Entry::new::<tools::status::Status>(local),
        Entry::new::<tools::find::Find>(local),
        Entry::new::<tools::describe::Describe>(local),
        Entry::new::<tools::canvas_create::CanvasCreate>(local),
        Entry::new::<tools::canvas_read::CanvasRead>(local),
        Entry::new::<tools::canvas_view::CanvasView>(local),
        Entry::new::<tools::canvas_edit::CanvasEdit>(local),
        Entry::new::<tools::canvas_delete::CanvasDelete>(local),
        Entry::new::<tools::canvas_review::CanvasReview>(local),
        Entry::new::<tools::asset_upload::AssetUpload>(local),
        Entry::new::<tools::asset_download::AssetDownload>(local),
        Entry::new::<tools::import_url::ImportUrl>(local),
        Entry::new::<tools::action_run::ActionRun>(local),
        Entry::new::<tools::image_generate::ImageGenerate>(local),
        Entry::new::<tools::video_generate::VideoGenerate>(local),
        Entry::new::<tools::video_keep::VideoKeep>(local),
        Entry::new::<tools::recipe_run::RecipeRun>(local),
        Entry::new::<tools::workflow_create::WorkflowCreate>(local),
        Entry::new::<tools::run_wait::RunWait>(local),
        Entry::new::<tools::run_cancel::RunCancel>(local),
        Entry::new::<tools::element_save::ElementSave>(local),
        Entry::new::<tools::element_manage::ElementManage>(local),
    ]
}

/// The tool with a name.
pub fn find(local: bool, name: &str) -> Option<&'static Entry> {
    all(local).iter().find(|entry| entry.definition.name == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Each host reads the whole list before its first call.
    const LIST_BYTES_MAX: usize = 26_000;
    /// 6000 tokens of o200k_base: of lists of tools the estimate is 12 % above that, of the forms of operations 18 to 21 %.
    const LIST_ESTIMATE_MAX: usize = 6_700;

    const NAMES: [&str; 22] = [
        "status",
        "find",
        "describe",
        "canvas_create",
        "canvas_read",
        "canvas_view",
        "canvas_edit",
        "canvas_delete",
        "canvas_review",
        "asset_upload",
        "asset_download",
        "import_url",
        "action_run",
        "image_generate",
        "video_generate",
        "video_keep",
        "recipe_run",
        "workflow_create",
        "run_wait",
        "run_cancel",
        "element_save",
        "element_manage",
    ];

    /// Counts the pieces of a text: words cut where a capital follows a small letter and after every eight letters, numbers after
    /// every three digits, and other characters in a row after every three. Spaces belong to what follows them.
    fn estimate(text: &str) -> usize {
        let kind = |c: char| match c {
            c if c.is_alphabetic() => Some((0, 8)),
            c if c.is_numeric() => Some((1, 3)),
            c if c.is_whitespace() => None,
            _ => Some((2, 3)),
        };
        let (mut pieces, mut last, mut length, mut was_small) = (0, None, 0, false);
        for c in text.chars() {
            let is_hump = was_small && c.is_uppercase();
            was_small = c.is_lowercase();
            let Some((kind, most)) = kind(c) else {
                last = None;
                continue;
            };
            if last == Some(kind) && length < most && !is_hump {
                length += 1;
            } else {
                pieces += 1;
                (last, length) = (Some(kind), 1);
            }
        }
        pieces
    }

    fn names(scopes: &[Scope]) -> Vec<&'static str> {
        all(false).iter().filter(|entry| entry.is_for(scopes)).map(|entry| entry.definition.name.as_ref()).collect()
    }

    #[test]
    fn the_list_has_a_stable_order_and_is_short() {
        assert_eq!(names(Scope::ALL), NAMES);
        for local in [false, true] {
            let list: Vec<_> = all(local).iter().map(|entry| &entry.definition).collect();
            let bytes = json!(list).to_string().len();
            assert!(bytes <= LIST_BYTES_MAX, "{bytes} bytes");
            let tokens = estimate(&json!(list).to_string());
            assert!(tokens <= LIST_ESTIMATE_MAX, "about {tokens} tokens");
        }
    }

    #[test]
    fn a_token_is_offered_what_it_may_do() {
        let reading = ["status", "find", "describe", "canvas_read", "canvas_view", "canvas_review", "asset_download"];
        assert_eq!(names(&[Scope::CanvasRead, Scope::AssetRead]), reading);
        assert_eq!(names(&[]), ["status", "find", "describe"]);
        let uploads = |scope| names(&[Scope::AssetRead, scope]).contains(&"asset_upload");
        assert!(uploads(Scope::VideoGenerate) && uploads(Scope::ImageGenerate) && !uploads(Scope::JobManage));
    }

    #[test]
    fn local_files_are_named_by_local_callers_alone() {
        let takes = |tool, local, name| {
            find(local, tool).expect("is there").definition.input_schema["properties"].get(name).is_some()
        };
        for (tool, of_local, of_remote) in
            [("asset_upload", "paths", "files"), ("asset_download", "into", "expiresInSeconds")]
        {
            assert!(takes(tool, true, of_local) && !takes(tool, false, of_local), "{tool}");
            assert!(takes(tool, false, of_remote) && !takes(tool, true, of_remote), "{tool}");
        }
    }

    #[test]
    fn every_schema_is_a_plain_one_of_an_object() {
        for entry in all(true).iter().chain(all(false)) {
            let definition = &entry.definition;
            let schema = Value::Object(definition.input_schema.as_ref().clone());
            assert_eq!(
                (&schema["type"], &schema["additionalProperties"]),
                (&json!("object"), &json!(false)),
                "{}",
                definition.name
            );
            // Some hosts refuse the whole list for a union at the top, or for a reference.
            for keyword in ["oneOf", "anyOf", "allOf", "$ref", "$defs"] {
                assert!(schema.get(keyword).is_none(), "{}: {keyword}", definition.name);
            }
            assert!(!schema.to_string().contains("$ref"), "{}", definition.name);
            assert_eq!(definition.output_schema, None, "{}", definition.name);
        }
    }

    #[test]
    fn only_deletions_cancellations_and_what_a_person_confirms_are_destructive() {
        let destructive = |entry: &&Entry| {
            entry.definition.annotations.as_ref().is_some_and(|hints| hints.destructive_hint == Some(true))
        };
        let names: Vec<&str> = all(false).iter().filter(destructive).map(|it| it.definition.name.as_ref()).collect();
        assert_eq!(names, ["canvas_delete", "run_cancel", "element_manage"]);
    }

    #[test]
    fn wrong_arguments_are_all_named() {
        let validator = &find(false, "image_generate").expect("is there").validator;
        let given = json!({"canvas": "c", "mode": "dream", "count": 9, "place": {"nearby": "n"}, "references": ["a", {"handle": "b"}]});
        let mut fields: Vec<String> = schema::violations(validator, &given).into_iter().map(|it| it.field).collect();
        fields.sort();
        assert_eq!(fields, ["count", "mode", "place.nearby", "references[1].role", "revision"]);
        assert!(schema::violations(validator, &json!({"canvas": "c", "revision": "r", "mode": "edit"})).is_empty());
    }
}
