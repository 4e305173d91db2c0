//! Search.

use client::{Call as Request, Client};
use domain::account::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::answer::Answer;
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::tool::{Hints, Result, Tool};
use crate::work;

const LIMIT: usize = 20;
/// Pages that are read at most where the service itself does not search.
const PAGES_MAX: usize = 10;

pub struct Find;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    kind: Kind,
    /// Words of its name
    query: Option<String>,
    /// Only assets or runs of this canvas
    canvas: Option<CanvasName>,
    #[schemars(range(min = 1, max = 50))]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Canvas,
    Asset,
    Element,
    Collection,
    Recipe,
    Action,
    Model,
    Run,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    items: Vec<Value>,
    /// Where to go on; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

impl Tool for Find {
    const NAME: &'static str = "find";
    const TITLE: &'static str = "Find";
    const ABOUT: &'static str =
        "Search one kind of thing, newest or best first. Gives the handles that other tools take.";
    const HINTS: Hints = Hints::READ;
    const SCOPES: &'static [Scope] = &[];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Output>> {
        let limit = arguments.limit.unwrap_or(LIMIT);
        let canvas = arguments.canvas.as_ref().map(CanvasName::handle);
        let query = arguments.query.as_deref().filter(|query| !query.trim().is_empty());
        let mut cursor = arguments.cursor;
        let mut found = Vec::new();
        for _ in 0..PAGES_MAX {
            let page = list(&call.client, arguments.kind, query, canvas.as_deref(), limit);
            let read = page.query_if("cursor", cursor.as_ref()).await?.json();
            let items = read[arguments.kind.member()].as_array().into_iter().flatten();
            found.extend(
                items.filter(|item| arguments.kind.is_match(item, query)).map(|item| arguments.kind.short(item)),
            );
            cursor = read["page"]["nextCursor"].as_str().map(str::to_owned);
            if cursor.is_none() || found.len() >= limit {
                break;
            }
        }
        Ok(Answer::new(Output { items: found, cursor }))
    }
}

fn list(client: &Client, kind: Kind, query: Option<&str>, canvas: Option<&str>, limit: usize) -> Request<Value> {
    let request = match kind {
        Kind::Canvas => client.list_canvases().cast(),
        Kind::Asset => client.list_assets().cast().query_if("canvasId", canvas),
        Kind::Element => client.list_elements().cast().query_if("search", query),
        Kind::Collection => client.list_element_collections().cast(),
        Kind::Recipe => {
            client.list_recipes().cast().query_if("q", query).query("view", "summary").query("visibility", "all")
        }
        Kind::Action => client.list_actions().cast().query_if("q", query).query("view", "summary"),
        Kind::Model => client.list_models().cast().query_if("q", query),
        Kind::Run => client.list_runs().cast().query_if("canvasId", canvas),
    };
    request.query("limit", if kind == Kind::Canvas { limit.min(25) } else { limit })
}

impl Kind {
    /// The member of a page that holds its items.
    fn member(self) -> &'static str {
        match self {
            Kind::Canvas => "canvases",
            Kind::Asset => "assets",
            Kind::Element => "elements",
            Kind::Collection => "collections",
            Kind::Recipe => "recipes",
            Kind::Action => "actions",
            Kind::Model => "models",
            Kind::Run => "runs",
        }
    }

    /// Whether an item has the words of a query, where the service does not look for them itself.
    fn is_match(self, item: &Value, query: Option<&str>) -> bool {
        let name = match self {
            Kind::Canvas => &item["title"],
            Kind::Asset | Kind::Collection => &item["name"],
            Kind::Run => &item["status"],
            _ => return true,
        };
        let name = name.as_str().unwrap_or_default().to_lowercase();
        query.is_none_or(|query| query.to_lowercase().split_whitespace().all(|word| name.contains(word)))
    }

    /// The members that distinguish one item from another.
    fn short(self, item: &Value) -> Value {
        let pick = |names: &[&str]| -> Value {
            let present = names.iter().filter(|name| !item[**name].is_null());
            present.map(|name| ((*name).to_owned(), item[*name].clone())).collect::<Map<_, _>>().into()
        };
        match self {
            Kind::Canvas => {
                pick(&["handle", "title", "accessRole", "nodeCount", "revision", "updatedAt", "canvasType"])
            }
            Kind::Asset => pick(&["handle", "name", "width", "height", "mimeType", "node"]),
            Kind::Element => pick(&["handle", "versionHandle", "name", "type", "lifecycle", "guidelines"]),
            Kind::Collection => pick(&["handle", "name"]),
            // The key of a summary is a handle.
            Kind::Recipe | Kind::Action => {
                json!({"handle": item["key"], "name": item["name"], "summary": item["summary"]})
            }
            Kind::Model => pick(&["handle", "name", "modelId", "capabilities", "creditCost", "standIn"]),
            Kind::Run => work::summary(item),
        }
    }
}
