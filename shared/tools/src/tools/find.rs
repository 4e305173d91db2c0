//! Search.

use client::{Call as Request, Item, List};
use domain::account::Scope;
use domain::asset::Asset;
use domain::canvas::CanvasSummary;
use domain::element::{Element, ElementCollection};
use domain::job::RunSummary;
use domain::model::Model;
use domain::page::CatalogEntry;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::{Answer, present};
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::names::{NamedCanvas, Names};
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

#[derive(Serialize)]
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
            let (items, next) = page(call, arguments.kind, query, canvas.as_deref(), limit, cursor).await?;
            found.extend(items.into_iter().filter(|it| it.has(query)).map(|it| it.short));
            cursor = next;
            if cursor.is_none() || found.len() >= limit {
                break;
            }
        }
        Ok(Answer::new(Output { items: found, cursor }))
    }
}

/// An item of a list.
struct Found {
    /// The text that must contain the words of a query, for lists that the service does not search.
    name: Option<String>,
    /// The members that distinguish one item from another.
    short: Value,
}

impl Found {
    /// Returns `true` if the item's text contains the words of a query.
    fn has(&self, query: Option<&str>) -> bool {
        let (Some(name), Some(query)) = (&self.name, query) else { return true };
        let name = name.to_lowercase();
        query.to_lowercase().split_whitespace().all(|word| name.contains(word))
    }
}

/// A page of items, and the cursor of the next one.
async fn page(
    call: &Call,
    kind: Kind,
    query: Option<&str>,
    canvas: Option<&str>,
    limit: usize,
    cursor: Option<String>,
) -> client::Result<(Vec<Found>, Option<String>)> {
    async fn read<T: List, I: DeserializeOwned>(
        request: Request<T>,
        found: impl Fn(I) -> (Option<String>, Value),
    ) -> client::Result<(Vec<Found>, Option<String>)> {
        let (items, next) = request.await?.items()?;
        let found = items.iter().filter_map(Item::read).map(found);
        Ok((found.map(|(name, short)| Found { name, short: present(short) }).collect(), next))
    }
    let client = &call.client;
    let limit = if kind == Kind::Canvas { limit.min(25) } else { limit };
    macro_rules! read {
        ($request:expr, $found:expr) => {
            read($request.query("limit", limit).query_if("cursor", cursor), $found).await
        };
    }
    // The key of a summary is a handle.
    let entry = |it: CatalogEntry| (None, json!({"handle": it.key, "name": it.name, "summary": it.summary}));
    match kind {
        Kind::Canvas => read!(client.list_canvases(), |it: CanvasSummary| {
            let NamedCanvas { canvas, url } = NamedCanvas::of(call, &it);
            let short = json!({
                "canvas": canvas, "url": url, "title": it.title, "accessRole": it.access_role, "nodeCount": it.node_count,
                "revision": it.revision, "updatedAt": it.updated_at, "canvasType": it.canvas_type,
            });
            (Some(it.title), short)
        }),
        Kind::Asset => {
            let list = client.list_assets().query("kind", "all").query_if("canvasId", canvas);
            let (assets, next) = list.query("limit", limit).query_if("cursor", cursor).await?.items()?;
            let assets: Vec<Asset> = assets.iter().filter_map(Item::read).collect();
            // A node has a ref on its canvas alone.
            let on = |asset: &Asset| Some((canvas?.to_owned(), Some(asset.node.clone()?)));
            let named = assets.iter().filter_map(on).collect();
            let names = Names::read(call, named).await;
            let found = assets.into_iter().map(|it| {
                let node = it.node.as_deref().map(|node| names.node(canvas.unwrap_or_default(), node));
                let short = json!({
                    "handle": it.handle, "name": it.name, "width": it.width, "height": it.height, "mimeType": it.mime_type,
                    "durationSeconds": it.duration_seconds, "node": node,
                });
                Found { name: Some(it.name), short: present(short) }
            });
            Ok((found.collect(), next))
        }
        Kind::Element => read!(client.list_elements().query_if("search", query), |it: Element| {
            let short = json!({
                "handle": it.handle, "versionHandle": it.version_handle, "name": it.name, "type": it.kind,
                "lifecycle": it.lifecycle, "guidelines": it.guidelines,
            });
            (None, short)
        }),
        Kind::Collection => read!(client.list_element_collections(), |it: ElementCollection| {
            let short = json!({"handle": it.handle, "name": it.name});
            (Some(it.name), short)
        }),
        Kind::Recipe => {
            let list = client.list_recipes().query_if("q", query).query("view", "summary");
            read!(list.query("visibility", "all"), entry)
        }
        Kind::Action => {
            let list = || client.list_actions().query_if("q", query).query("view", "summary").query("limit", limit);
            let (mut found, next) = read(list().query_if("cursor", cursor), entry).await?;
            // Those of videos are listed apart, and there are few.
            if next.is_none() {
                found.extend(read(list().query("medium", "video"), entry).await?.0);
            }
            Ok((found, next))
        }
        Kind::Model => read!(client.list_models().query_if("q", query), |it: Model| {
            let short = json!({
                "handle": it.handle, "name": it.name, "modelId": it.model_id, "capabilities": it.capabilities,
                "creditCost": it.credit_cost, "standIn": it.stand_in,
            });
            (None, short)
        }),
        Kind::Run => {
            let list = client.list_runs().query_if("canvasId", canvas).query("limit", limit).query_if("cursor", cursor);
            let (runs, next) = list.await?.items()?;
            let runs: Vec<RunSummary> = runs.iter().filter_map(Item::value).collect();
            let shorts = work::summaries(call, &runs).await;
            let found = runs.iter().zip(shorts).map(|(run, short)| Found { name: Some(run.status.to_string()), short });
            Ok((found.collect(), next))
        }
    }
}
