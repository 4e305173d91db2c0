//! A new canvas.

use domain::account::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::answer::Answer;
use crate::call::Call;
use crate::names::NamedCanvas;
use crate::tool::{Hints, Result, Tool};

pub struct CanvasCreate;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    #[schemars(length(max = 160))]
    title: Option<String>,
    /// The account's one Agent Canvas
    agent: Option<bool>,
}

#[derive(Serialize)]
pub struct Output {
    #[serde(flatten)]
    on: NamedCanvas,
    title: String,
    revision: String,
}

#[derive(Deserialize)]
struct Created {
    handle: String,
    slug: Option<String>,
    title: String,
    revision: String,
}

impl Tool for CanvasCreate {
    const NAME: &'static str = "canvas_create";
    const TITLE: &'static str = "Create a canvas";
    const ABOUT: &'static str =
        "Make a canvas: a new one with each call. With agent=true, get the account's Agent Canvas.";
    const HINTS: Hints = Hints::ADD;
    const SCOPES: &'static [Scope] = &[Scope::CanvasRead, Scope::CanvasWrite];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Output>> {
        let mut body = json!({});
        if let Some(title) = arguments.title {
            body["title"] = title.into();
        }
        if arguments.agent == Some(true) {
            body["destination"] = "agent-canvas".into();
        }
        #[derive(Deserialize)]
        struct Read {
            canvas: Created,
        }
        let Read { canvas: Created { handle, slug, title, revision } } =
            call.client.create_canvas().json(&body).await?.cast().value()?;
        Ok(Answer::new(Output { on: NamedCanvas::new(call, &handle, slug.as_deref()), title, revision }))
    }
}
