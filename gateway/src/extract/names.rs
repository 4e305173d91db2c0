//! Short names in requests (docs/reference/canvases.md#refs): slugs of canvases, refs of nodes and connections.
//!
//! **Guarantee.** What follows a body's validation sees ids alone, so that fingerprints, comparisons and what is stored do not depend on
//! the form in which a request names something.
//!
//! **Mechanism.** The members that name nodes and connections are known by their keys. Those that have the form of a ref are looked up
//! in the canvas of the path, or in the one that the body names, in one statement. A body without such members costs no statement. A
//! ref that names nothing is left as it is: an id that the canvas does not have.

use std::collections::HashSet;
use std::str::FromStr;

use db::PgConnection;
use db::canvases::NamedByRef;
use domain::id::{AccountUid, CanvasHandle, CanvasRef, NodeId};
use domain::refs::{ConnectionRef, NodeRef};
use serde_json::Value;

use super::owner::with_owner;
use crate::problem::Result;
use crate::state::App;

/// The full handle of a canvas that a request names. A slug of no canvas that the account can see becomes a handle of none.
pub async fn resolve(conn: &mut PgConnection, named: CanvasRef, account: &AccountUid) -> Result<CanvasHandle> {
    let found = match named.slug() {
        Some(slug) => db::canvases::handle_of_slug(conn, account, slug).await?,
        None => None,
    };
    let found = found.filter(|found| named.owner.as_ref().is_none_or(|owner| *owner == found.owner));
    Ok(found.unwrap_or_else(|| named.resolve(account)))
}

/// [`resolve`] for a canvas that may be left out.
pub async fn resolve_some(
    conn: &mut PgConnection,
    named: Option<CanvasRef>,
    account: &AccountUid,
) -> Result<Option<CanvasHandle>> {
    match named {
        Some(named) => resolve(conn, named, account).await.map(Some),
        None => Ok(None),
    }
}

/// Replaces refs among nodes of a canvas by their ids.
pub async fn resolve_nodes(app: &App, canvas_key: i64, nodes: &mut [NodeId]) -> Result<()> {
    let refs: Vec<NodeRef> = nodes.iter().filter_map(|node| node.as_str().parse().ok()).collect();
    if refs.is_empty() {
        return Ok(());
    }
    let named = db::canvases::ids_of_refs(&mut *app.connection().await?, canvas_key, &refs, &[]).await?;
    for node in nodes {
        let id = node.as_str().parse().ok().and_then(|name: NodeRef| named.nodes.get(&name));
        if let Some(id) = id {
            *node = NodeId::from_stored(id.clone());
        }
    }
    Ok(())
}

/// Who sent a body, and the canvas of its path: what short names in it belong to. In the extensions of the request.
#[derive(Clone)]
pub struct Names {
    pub app: App,
    pub account: AccountUid,
    /// Key of the canvas in the path, if there is one that the account can see.
    pub canvas_key: Option<i64>,
}

impl Names {
    /// Replaces the slug and the refs in a body by ids. The body has the shape of its schema.
    pub async fn replace(&self, body: &mut Value) -> Result<()> {
        self.replace_slug(body).await?;
        let made = client_ids(body);
        let (mut nodes, mut connections) = (HashSet::new(), HashSet::new());
        visit(body, None, &made, &mut |kind, plain| {
            match kind {
                Kind::Connection => connections.extend(ConnectionRef::from_str(plain)),
                Kind::Node | Kind::Image => nodes.extend(NodeRef::from_str(plain)),
            }
            None
        });
        if nodes.is_empty() && connections.is_empty() {
            return Ok(());
        }
        let conn = &mut *self.app.connection().await?;
        let Some(canvas_key) = self.canvas_of(conn, body).await? else { return Ok(()) };
        let (nodes, connections): (Vec<_>, Vec<_>) = (nodes.into_iter().collect(), connections.into_iter().collect());
        let NamedByRef { nodes, connections } =
            db::canvases::ids_of_refs(conn, canvas_key, &nodes, &connections).await?;
        visit(body, None, &made, &mut |kind, plain| match kind {
            Kind::Connection => connections.get(&plain.parse::<ConnectionRef>().ok()?).cloned(),
            Kind::Node | Kind::Image => nodes.get(&plain.parse::<NodeRef>().ok()?).cloned(),
        });
        Ok(())
    }

    async fn replace_slug(&self, body: &mut Value) -> Result<()> {
        let Some(named) = body.get("canvasId").and_then(Value::as_str) else { return Ok(()) };
        let Some(named) = CanvasRef::parse(named).ok().filter(|named| named.slug().is_some()) else { return Ok(()) };
        let slug = named.slug().unwrap_or_default();
        let conn = &mut *self.app.connection().await?;
        if let Some(handle) = db::canvases::handle_of_slug(conn, &self.account, slug).await? {
            body["canvasId"] = handle.to_string().into();
        }
        Ok(())
    }

    /// The key of the canvas that refs in a body belong to.
    async fn canvas_of(&self, conn: &mut PgConnection, body: &Value) -> Result<Option<i64>> {
        if self.canvas_key.is_some() {
            return Ok(self.canvas_key);
        }
        let text = |member: &str| body.get(member).and_then(Value::as_str);
        let Some(canvas) = text("canvasId").and_then(|canvas| CanvasRef::parse(canvas).ok()) else { return Ok(None) };
        let owner = text("ownerUid").and_then(|owner| AccountUid::parse(owner).ok());
        let Ok(canvas) = with_owner(canvas, owner) else { return Ok(None) };
        let found = db::canvases::find(conn, &self.account, &canvas.resolve(&self.account)).await?;
        Ok(found.map(|(canvas, _)| canvas.key))
    }
}

/// What a member of a body names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A node, by id or handle.
    Node,
    /// A connection, by id or handle.
    Connection,
    /// An image, of a node by its handle alone.
    Image,
}

impl Kind {
    /// What the member `key` names. `connectionId` names a connection in an operation, and a saved connection to a provider elsewhere.
    fn of_member(key: &str, in_connection_operation: bool) -> Option<Self> {
        match key {
            "near" | "sectionId" | "nodeId" | "nodeIds" | "fromNodeId" | "toNodeId" | "targetNodeId"
            | "targetNodeIds" | "promptNodeId" | "instanceNodeId" | "sourceNodeId" => Some(Self::Node),
            "connectionId" if in_connection_operation => Some(Self::Connection),
            "references" | "source" | "mask" | "firstFrame" | "lastFrame" | "inputs" | "with" | "handle" | "value" => {
                Some(Self::Image)
            }
            _ => None,
        }
    }

    /// The prefix of handles.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Node | Self::Image => "node:",
            Self::Connection => "connection:",
        }
    }
}

/// The `clientId`s of a batch.
fn client_ids(body: &Value) -> HashSet<String> {
    let operations = body.get("operations").and_then(Value::as_array).into_iter().flatten();
    operations.filter_map(|operation| Some(operation.get("clientId")?.as_str()?.to_owned())).collect()
}

/// Calls `id_of` with the plain form of each text that names a node or connection, and puts the id that it returns in its place. What is
/// `made` in the batch is left out, except in handles, which name what the canvas has.
fn visit(
    value: &mut Value,
    kind: Option<Kind>,
    made: &HashSet<String>,
    id_of: &mut impl FnMut(Kind, &str) -> Option<String>,
) {
    match value {
        Value::String(text) => {
            let Some(kind) = kind else { return };
            let id = match text.strip_prefix(kind.prefix()) {
                Some(plain) => id_of(kind, plain).map(|id| format!("{}{id}", kind.prefix())),
                None if kind == Kind::Image || made.contains(text.as_str()) => None,
                None => id_of(kind, text),
            };
            if let Some(id) = id {
                *text = id;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, kind, made, id_of)),
        Value::Object(members) => {
            let operation = members.get("type").and_then(Value::as_str).unwrap_or_default();
            let is_connection_operation = operation.starts_with("connection.");
            for (key, member) in members.iter_mut().filter(|(key, _)| *key != "custom") {
                // The inputs of a Recipe have names of their own.
                let inherited = kind.filter(|kind| *kind == Kind::Image);
                visit(member, Kind::of_member(key, is_connection_operation).or(inherited), made, id_of);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::router::documented;

    /// The body with every ref replaced by its ref in capitals.
    fn replaced(mut body: Value) -> Value {
        let made = client_ids(&body);
        visit(&mut body, None, &made, &mut |kind, plain| match kind {
            Kind::Connection => plain.parse::<ConnectionRef>().ok().map(|name| name.to_string().to_uppercase()),
            _ => plain.parse::<NodeRef>().ok().map(|name| name.to_string().to_uppercase()),
        });
        body
    }

    #[test]
    fn refs_are_found_in_members_that_name_nodes_and_connections() {
        for (sent, resolved) in [
            (
                json!({"targetNodeIds": ["n1", "node:n2", "other"]}),
                json!({"targetNodeIds": ["N1", "node:N2", "other"]}),
            ),
            (
                json!({"place": {"near": "n3", "sectionId": "node:n4"}}),
                json!({"place": {"near": "N3", "sectionId": "node:N4"}}),
            ),
            (
                json!({"inputs": ["node:n1"], "steps": [{"with": "node:n2", "params": {"text": "node:n1"}}]}),
                json!({"inputs": ["node:N1"], "steps": [{"with": "node:N2", "params": {"text": "node:n1"}}]}),
            ),
            (
                json!({"references": ["node:n1", {"handle": "node:n2"}]}),
                json!({"references": ["node:N1", {"handle": "node:N2"}]}),
            ),
            (
                json!({"inputs": {"photo": "node:n1", "text": "n1"}}),
                json!({"inputs": {"photo": "node:N1", "text": "n1"}}),
            ),
            (
                json!({"operations": [{"type": "connection.delete", "connectionId": "c7"}]}),
                json!({"operations": [{"type": "connection.delete", "connectionId": "C7"}]}),
            ),
            (json!({"patch": {"metadata": {"sectionId": "n1"}}}), json!({"patch": {"metadata": {"sectionId": "N1"}}})),
        ] {
            assert_eq!(replaced(sent), resolved);
        }
    }

    #[test]
    fn what_is_no_name_of_a_node_or_connection_stays() {
        for body in [
            json!({"prompt": "node:n1", "title": "n1", "content": "n1"}),
            json!({"connectionId": "c1", "model": "n1"}),
            json!({"patch": {"metadata": {"custom": {"nodeId": "n1"}}}}),
            json!({"nodeId": "n0", "near": "n01", "sectionId": "N1"}),
            json!({"nodeId": "connection:n1", "references": ["n1"]}),
        ] {
            assert_eq!(replaced(body.clone()), body);
        }
    }

    #[test]
    fn a_client_id_wins_in_its_plain_form() {
        let batch = |near: &str, other: &str| json!({"operations": [{"type": "node.create", "clientId": "n1", "near": near}, {"nodeId": other}]});
        assert_eq!(replaced(batch("node:n1", "n1")), batch("node:N1", "n1"));
        assert_eq!(replaced(batch("n2", "node:n1")), batch("N2", "node:N1"));
    }

    /// Every member of a request whose schema says that it names a node, a connection or an image.
    #[test]
    fn every_member_that_names_a_node_is_known() {
        let document = documented().1;
        let schemas = &document["components"]["schemas"];
        let mut found = HashSet::new();
        // Those of objects within an object are its own.
        fn members(schema: &Value) -> Vec<(String, Value)> {
            let forms = schema["oneOf"].as_array().into_iter().flatten().chain([schema]);
            let all = forms.flat_map(|form| form["properties"].as_object().cloned().unwrap_or_default());
            let (objects, others): (Vec<_>, Vec<_>) = all.partition(|(_, member)| member.get("properties").is_some());
            others.into_iter().chain(objects.iter().flat_map(|(_, object)| members(object))).collect()
        }
        for (name, schema) in schemas.as_object().expect("schemas") {
            for (key, member) in members(schema) {
                let text = member.to_string();
                let names = |kind: &str| text.contains(&format!("#/components/schemas/{kind}\""));
                if names("NodeReference") {
                    assert!(Kind::of_member(&key, false) == Some(Kind::Node), "{name}.{key}");
                    found.insert(key);
                } else if names("ConnectionReference") {
                    assert!(Kind::of_member(&key, true) == Some(Kind::Connection), "{name}.{key}");
                    found.insert(key);
                }
            }
        }
        assert!(found.len() >= 10, "{found:?}");
    }
}
