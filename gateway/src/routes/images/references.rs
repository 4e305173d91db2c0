//! The pictures that guide a generation (specification, Images rules 2 to 5; decisions 10.4).

use db::PgConnection;
use db::accounts::Credential;
use domain::Violation;
use domain::canvas::CanvasRecord;
use domain::graph::{Named, NodeType, Purpose, Role};
use domain::id::NodeId;
use domain::job::Reference;
use domain::limits::IMAGE_REFERENCES_MAX;

use super::elements::Elements;
use crate::problem::Result;

/// The pictures that a request names, or leaves to its target.
pub struct Pictures {
    /// Each with what it is for.
    pub references: Option<Vec<(Named, Option<Role>)>>,
    /// Comes after them.
    pub source: Option<Named>,
    /// Whether the work starts from pictures, so that it needs one that the request names or a connection brings (decisions
    /// 1.3); those of Elements guide, they are no start.
    pub needed: bool,
}

impl Pictures {
    /// The pictures as they are now, in the order in which they are sent: references (or, where none are named and
    /// `target` is the only one, what its incoming `reference` connections bring), the source, those of the Elements.
    /// What is wrong goes to `refused`.
    pub async fn resolve(
        &self,
        conn: &mut PgConnection,
        caller: &Credential,
        canvas: &CanvasRecord,
        target: Option<&NodeId>,
        elements: &Elements,
        refused: &mut Vec<Violation>,
    ) -> Result<Vec<Reference>> {
        let mut resolved = Vec::new();
        match (&self.references, target) {
            (Some(named), _) => {
                for (index, (named, role)) in named.iter().enumerate() {
                    match reference(conn, caller, canvas, named, *role).await? {
                        Some(reference) => resolved.push(reference),
                        None => refused.push(unreadable(format!("references[{index}]"))),
                    }
                }
            }
            (None, Some(target)) => resolved = incoming(conn, caller, canvas, target).await?,
            (None, None) => {}
        }
        if self.needed && self.references.is_none() && self.source.is_none() && resolved.is_empty() {
            let message = "or a source, or incoming reference connections that bring a picture, are needed";
            refused.push(Violation::new("references", message));
        }
        if let Some(source) = &self.source {
            match reference(conn, caller, canvas, source, None).await? {
                Some(reference) => add(&mut resolved, reference),
                None => refused.push(unreadable("source")),
            }
        }
        for (picture, role) in elements.pictures() {
            let reference = Reference { handle: picture.to_string(), asset: picture.clone(), role: Some(role) };
            add(&mut resolved, reference);
        }
        if resolved.len() > IMAGE_REFERENCES_MAX {
            let field = if elements.handles.is_empty() { "references" } else { "elements" };
            let message = format!(
                "with them {} pictures would guide the result, at most {IMAGE_REFERENCES_MAX} may",
                resolved.len()
            );
            refused.push(Violation::new(field, message));
        }
        Ok(resolved)
    }
}

/// Adds what is not there under the same handle, which keeps its place and role.
fn add(references: &mut Vec<Reference>, reference: Reference) {
    if references.iter().all(|there| there.handle != reference.handle) {
        references.push(reference);
    }
}

async fn reference(
    conn: &mut PgConnection,
    caller: &Credential,
    canvas: &CanvasRecord,
    named: &Named,
    role: Option<Role>,
) -> Result<Option<Reference>> {
    let asset = db::assets::named(conn, &caller.account, canvas.key, named).await?;
    Ok(asset.map(|asset| Reference { handle: named.to_string(), asset: asset.handle, role }))
}

/// What the `reference` connections into `target` bring, in the order in which they were made: the pictures of image
/// nodes that show one.
async fn incoming(
    conn: &mut PgConnection,
    caller: &Credential,
    canvas: &CanvasRecord,
    target: &NodeId,
) -> Result<Vec<Reference>> {
    let mut references = Vec::new();
    let (incoming, _) = db::canvases::connections_of(conn, canvas.key, target).await?;
    for connection in incoming.into_iter().filter(|connection| connection.purpose == Purpose::Reference) {
        let from = db::canvases::node(conn, canvas.key, &connection.from).await?;
        if from.is_some_and(|node| node.kind == NodeType::Image) {
            let named = Named::Node(connection.from);
            references.extend(reference(conn, caller, canvas, &named, connection.role).await?);
        }
    }
    Ok(references)
}

fn unreadable(field: impl Into<String>) -> Violation {
    Violation::new(field, "holds no picture that you can read")
}
