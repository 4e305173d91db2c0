//! Search.

use client::{Call as Request, Client, Item, List};
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
            let (items, next) = page(&call.client, arguments.kind, query, canvas.as_deref(), limit, cursor).await?;
            let items = items.iter().filter(|item| arguments.kind.is_match(item, query));
            found.extend(items.map(|item| arguments.kind.short(item)));
            cursor = next;
            if cursor.is_none() || found.len() >= limit {
                break;
            }
        }
        Ok(Answer::new(Output { items: found, cursor }))
    }
}

/// A page of items, and the cursor of the next one.
async fn page(
    client: &Client,
    kind: Kind,
    query: Option<&str>,
    canvas: Option<&str>,
    limit: usize,
    cursor: Option<String>,
) -> client::Result<(Vec<Value>, Option<String>)> {
    async fn read<T: List>(request: Request<T>) -> client::Result<(Vec<Value>, Option<String>)> {
        let (items, next) = request.await?.items()?;
        Ok((items.iter().filter_map(Item::read).collect(), next))
    }
    let limit = if kind == Kind::Canvas { limit.min(25) } else { limit };
    macro_rules! read {
        ($request:expr) => {
            read($request.query("limit", limit).query_if("cursor", cursor)).await
        };
    }
    match kind {
        Kind::Canvas => read!(client.list_canvases()),
        Kind::Asset => read!(client.list_assets().query_if("canvasId", canvas)),
        Kind::Element => read!(client.list_elements().query_if("search", query)),
        Kind::Collection => read!(client.list_element_collections()),
        Kind::Recipe => {
            read!(client.list_recipes().query_if("q", query).query("view", "summary").query("visibility", "all"))
        }
        Kind::Action => read!(client.list_actions().query_if("q", query).query("view", "summary")),
        Kind::Model => read!(client.list_models().query_if("q", query)),
        Kind::Run => read!(client.list_runs().query_if("canvasId", canvas)),
    }
}

impl Kind {
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
