//! `GET /canvases/{canvasId}/changes?since=<revision>`: what a client that knows a revision has to read again, or the changes in
//! full (docs/reference/canvases.md#changes-since-a-revision).

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::{OriginalUri, State};
use db::PgConnection;
use domain::canvas::{CanvasChanges, Changes, Connection, Node};
use domain::id::{AccountUid, CanvasHandle, CanvasReference};
use domain::limits::CHANGES_GRAPH_MAX;
use http::HeaderMap;
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};
use utoipa::{IntoParams, ToSchema};

use crate::extract::caller::ReadCanvas;
use crate::extract::canvas::CanvasAccess;
use crate::extract::prefer;
use crate::extract::query::{OwnerQuery, QueryReader};
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::reply;
use crate::state::App;
use crate::wait::{during, preferred_wait};

/// Which changes are read.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ChangesQuery {
    /// A known revision.
    #[param(min_length = 1, max_length = 200)]
    since: String,
    /// `graph`: return the changed nodes and connections in full; `authors`: return who changed the nodes.
    #[param(inline)]
    include: Option<Included>,
}

/// What is returned besides the ids.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Included {
    Graph,
    Authors,
    #[serde(rename = "graph,authors")]
    Both,
}

/// Read what changed since a revision, or wait for a change
///
/// Returns the ids of nodes and connections that were created, changed or deleted since a known revision, each
/// once; with `include=graph` also the changed ones in full. Use it to follow a canvas without reading it whole:
/// with `Prefer: wait=N` the answer comes as soon as the revision differs from `since`. Whatever was both created
/// and deleted since then is in no list. The last 1000 revisions are covered; for an older or unknown one
/// `complete` is false and the canvas must be read again.
#[utoipa::path(
    get, path = "/canvases/{canvasId}/changes", operation_id = "getCanvasChanges", tag = "Canvases",
    security(("bearer" = ["canvas:read"])),
    params(
        ("canvasId" = CanvasReference, Path, description = "Plain id or handle."),
        ChangesQuery,
        OwnerQuery,
        ("Prefer" = Option<String>, Header, description = "`wait=N`: wait up to N seconds, 1 to 30, until the revision differs from `since`."),
    ),
    responses(ReadErrors, (status = 200, description = "The changes since `since`.", body = CanvasChanges))
)]
pub async fn changes(
    State(app): State<App>,
    on: CanvasAccess<ReadCanvas>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result {
    let mut query = QueryReader::new(&uri);
    let asked = query.read::<ChangesQuery>();
    combine_violations(on.named(), query.finish())?;
    let ChangesQuery { since, include } =
        asked.ok_or_else(|| Problem::internal("a query was refused without a violation"))?;
    let with_graph = matches!(include, Some(Included::Graph | Included::Both));
    let (handle, admitted, _) = on.readable()?;
    let account = &on.caller.account;
    let wait = preferred_wait(&headers);
    if let Some(seconds) = wait {
        during(&app, &on.caller, differs(&app, account, handle, &since, Duration::from_secs(seconds))).await?;
    }
    // Taken before a connection, so that no connection is held while waiting for memory.
    let room = if with_graph { Some(app.documents.reserve(account, admitted.graph_bytes).await?) } else { None };
    let answer = read(&app, account, handle, since, include).await?;
    let reply = match room {
        Some(room) => reply::private(reply::document(room.into_json(&answer)?)),
        None => reply::ok(&answer),
    };
    Ok(match wait {
        Some(seconds) => prefer::applied_wait(reply, seconds),
        None => reply,
    })
}

/// Returns once the revision differs from `since`, or after `wait`; 404 as soon as the account cannot read the canvas.
async fn differs(app: &App, account: &AccountUid, canvas: &CanvasHandle, since: &str, wait: Duration) -> Result<()> {
    let deadline = Instant::now() + wait;
    let mut revisions = app.live.canvas(canvas, account);
    let followed = [(canvas.clone(), account.clone())];
    let mut state = app.live.canvases_now(&followed).await?.pop().flatten().ok_or(Problem::NotFound("canvas"))?;
    while state.revision == since {
        match app.stopping.run_until_cancelled(timeout_at(deadline, revisions.next())).await {
            Some(Ok(next)) => {
                let next = next.ok_or(Problem::NotFound("canvas"))?;
                // What was read before this wait began may arrive after it.
                if next.key != state.key || next.sequence > state.sequence {
                    state = next;
                }
            }
            Some(Err(_)) | None => break,
        }
    }
    Ok(())
}

/// The changes, all of one revision.
async fn read(
    app: &App,
    account: &AccountUid,
    handle: &CanvasHandle,
    since: String,
    include: Option<Included>,
) -> Result<CanvasChanges> {
    let with_graph = matches!(include, Some(Included::Graph | Included::Both));
    let with_authors = matches!(include, Some(Included::Authors | Included::Both));
    let mut snapshot = db::pool::snapshot(&app.pool).await?;
    let (record, _) = db::canvases::find(&mut snapshot, account, handle).await?.ok_or(Problem::NotFound("canvas"))?;
    let found = db::canvases::changes_since(&mut snapshot, record.key, &since).await?.filter(|found| {
        let changes = &found.changes;
        !with_graph || changes.changed_node_ids.len() + changes.changed_connection_ids.len() <= CHANGES_GRAPH_MAX
    });
    let complete = found.is_some();
    let (changes, activity) = found.map(|found| (found.changes, found.activity)).unwrap_or_default();
    let (nodes, connections): (Option<Vec<Node>>, Option<Vec<Connection>>) = if with_graph {
        let (nodes, connections) = (&changes.changed_node_ids, &changes.changed_connection_ids);
        let (nodes, connections) = db::canvases::part(&mut snapshot, record.key, nodes, connections).await?;
        let nodes = nodes.into_iter().map(Into::into).collect();
        (Some(nodes), Some(connections.into_iter().map(Into::into).collect()))
    } else {
        (None, None)
    };
    let authors = match with_authors {
        true => {
            let nodes = [&changes.changed_node_ids[..], &changes.deleted_node_ids].concat();
            Some(db::canvases::authors_since(&mut snapshot, record.key, &since, &nodes).await?)
        }
        false => None,
    };
    let refs = match include {
        Some(_) => Some(refs(&mut snapshot, record.key, &changes, connections.iter().flatten()).await?),
        None => None,
    };
    Ok(CanvasChanges {
        since,
        revision: record.revision,
        slug: record.slug,
        complete,
        changes,
        nodes,
        connections,
        authors,
        refs,
        activity,
    })
}

/// The refs of what changed, deleted things included, and of the ends of these connections.
async fn refs<'a>(
    snapshot: &mut PgConnection,
    canvas_key: i64,
    changes: &Changes,
    connections: impl Iterator<Item = &'a Connection>,
) -> Result<BTreeMap<String, String>> {
    let ends = connections.flat_map(|connection| [&connection.from_node_id, &connection.to_node_id]);
    let nodes = changes.changed_node_ids.iter().chain(&changes.deleted_node_ids).chain(ends);
    let nodes: Vec<String> = nodes.map(ToString::to_string).collect();
    let connections = changes.changed_connection_ids.iter().chain(&changes.deleted_connection_ids);
    let connections: Vec<String> = connections.map(ToString::to_string).collect();
    Ok(db::canvases::refs_of_ids(snapshot, canvas_key, &nodes, &connections).await?)
}
