//! All tools, in the order in which they are listed.

use std::sync::{Arc, LazyLock};

use domain::account::Scope;
use futures_util::future::{BoxFuture, FutureExt};
use jsonschema::Validator;
use rmcp::model::{CallToolResult, ToolAnnotations};
use serde_json::{Map, Value};

use crate::call::Call;
use crate::failure::Failure;
use crate::schema;
use crate::tool::{Result, Tool};
use crate::tools;

/// A tool as the server knows it.
pub struct Entry {
    /// What hosts are told.
    pub definition: rmcp::model::Tool,
    scopes: &'static [Scope],
    any_scope: &'static [Scope],
    validator: Validator,
    run: fn(Call, Value) -> BoxFuture<'static, Result<CallToolResult>>,
}

impl Entry {
    /// `local`: the caller may name files of this machine.
    fn of<T: Tool>(local: bool) -> Self {
        let mut input = schema::of_arguments::<T::Arguments>();
        if !local && let Some(Value::Object(properties)) = input.get_mut("properties") {
            properties.remove("path");
        }
        let validator = jsonschema::draft202012::new(&Value::Object(input.clone()))
            .expect("a derived schema is valid: a test compiles each");
        let annotations = ToolAnnotations::new()
            .read_only(T::HINTS.reads)
            .destructive(T::HINTS.destroys)
            .idempotent(T::HINTS.repeats)
            .open_world(T::HINTS.reaches_out);
        let definition = rmcp::model::Tool::new(T::NAME, T::ABOUT, input)
            .with_title(T::TITLE)
            .with_raw_output_schema(Arc::new(schema::of_answer::<T::Output>()))
            .with_annotations(annotations);
        Self { definition, scopes: T::SCOPES, any_scope: T::ANY_SCOPE, validator, run: run::<T> }
    }

    /// Whether a token with these scopes is offered the tool.
    pub fn is_for(&self, scopes: &[Scope]) -> bool {
        self.scopes.iter().all(|scope| scopes.contains(scope))
            && (self.any_scope.is_empty() || self.any_scope.iter().any(|scope| scopes.contains(scope)))
    }

    /// Runs the tool. A member that is `null` counts as left out: some hosts send all that a schema knows.
    pub async fn run(&self, mut call: Call, mut arguments: Map<String, Value>) -> Result<CallToolResult> {
        arguments.retain(|_, value| !value.is_null());
        let given = Value::Object(arguments);
        let violations = schema::violations(&self.validator, &given);
        if !violations.is_empty() {
            return Err(Failure::invalid(violations));
        }
        call.arguments = given.as_object().cloned().unwrap_or_default();
        (self.run)(call, given).await
    }
}

fn run<T: Tool>(call: Call, arguments: Value) -> BoxFuture<'static, Result<CallToolResult>> {
    async move {
        let arguments = serde_json::from_value(arguments).map_err(|error| Failure::argument("", error.to_string()))?;
        Ok(T::run(&call, arguments).await?.into_result())
    }
    .boxed()
}

/// The tools, for callers with local files or without.
pub fn all(local: bool) -> &'static [Entry] {
    static HERE: LazyLock<Vec<Entry>> = LazyLock::new(|| entries(true));
    static AFAR: LazyLock<Vec<Entry>> = LazyLock::new(|| entries(false));
    if local { &HERE } else { &AFAR }
}

fn entries(local: bool) -> Vec<Entry> {
    vec![
        Entry::of::<tools::status::Status>(local),
        Entry::of::<tools::find::Find>(local),
        Entry::of::<tools::describe::Describe>(local),
        Entry::of::<tools::canvas_create::CanvasCreate>(local),
        Entry::of::<tools::canvas_read::CanvasRead>(local),
        Entry::of::<tools::canvas_view::CanvasView>(local),
        Entry::of::<tools::canvas_edit::CanvasEdit>(local),
        Entry::of::<tools::canvas_review::CanvasReview>(local),
        Entry::of::<tools::asset_upload::AssetUpload>(local),
        Entry::of::<tools::import_url::ImportUrl>(local),
        Entry::of::<tools::action_run::ActionRun>(local),
        Entry::of::<tools::image_generate::ImageGenerate>(local),
        Entry::of::<tools::video_generate::VideoGenerate>(local),
        Entry::of::<tools::recipe_run::RecipeRun>(local),
        Entry::of::<tools::workflow_create::WorkflowCreate>(local),
        Entry::of::<tools::run_wait::RunWait>(local),
        Entry::of::<tools::run_cancel::RunCancel>(local),
        Entry::of::<tools::element_save::ElementSave>(local),
        Entry::of::<tools::element_manage::ElementManage>(local),
    ]
}

/// The tool with a name.
pub fn find(local: bool, name: &str) -> Option<&'static Entry> {
    all(local).iter().find(|entry| entry.definition.name == name)
}
