//! The images that guide a generation (docs/reference/images.md#references).

use app::LockedCanvas;
use app::job::{Destination, link};
use canvas::Footprint;
use canvas::targets::Link;
use db::PgConnection;
use db::assets::InputImage;
use db::canvases::IncomingReference;
use domain::Violation;
use domain::graph::{Named, Purpose, Role};
use domain::id::NodeId;
use domain::job::Reference;
use domain::limits::IMAGE_REFERENCES_MAX;

use super::elements::Elements;

/// The images that a request names, or leaves to its target.
pub struct Images {
    /// References with roles, if the request names any.
    pub references: Option<Vec<(Named, Option<Role>)>>,
    /// Image appended to the references.
    pub source: Option<Named>,
    /// `true` if the operation starts from images, so that the request or a connection must provide one. Images of Elements
    /// guide the result and do not count.
    pub needed: bool,
}

impl Images {
    /// The images that the request names: references, then the source.
    pub fn named(&self) -> impl Iterator<Item = &Named> {
        self.references.iter().flatten().map(|(named, _)| named).chain(&self.source)
    }

    /// The nodes that the request names as images.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeId> {
        self.named().filter_map(Named::node)
    }

    /// The target whose incoming `reference` connections bring the references: the only one of a request that names none.
    pub fn connected_to<'a>(&self, destination: &'a Destination) -> Option<&'a NodeId> {
        match destination.existing() {
            [only] if self.references.is_none() => Some(only),
            _ => None,
        }
    }

    /// The connections that show them: `reference` with its role, and `flow` from the source.
    pub fn links(&self) -> Vec<Link> {
        let references = self.references.iter().flatten();
        let references = references.filter_map(|(named, role)| link(named, Purpose::Reference, *role));
        references.chain(self.source.as_ref().and_then(|source| link(source, Purpose::Flow, None))).collect()
    }

    /// The images in the order in which they are sent: references (or those of the `reference` connections into `target`), the
    /// source, those of the Elements. `found` are those that the request [names](Self::named). Violations are added to `refused`.
    pub async fn resolve(
        &self,
        conn: &mut PgConnection,
        canvas: &LockedCanvas,
        target: Option<&NodeId>,
        found: Vec<Option<InputImage>>,
        elements: &Elements,
        refused: &mut Vec<Violation>,
    ) -> app::Result<Vec<Reference>> {
        let (mut resolved, mut found) = (Vec::new(), found.into_iter().map(|image| image.map(|it| it.handle)));
        match (&self.references, target) {
            (Some(named), _) => {
                for (index, ((named, role), found)) in named.iter().zip(found.by_ref()).enumerate() {
                    match found {
                        Some(asset) => resolved.push(Reference { handle: named.to_string(), asset, role: *role }),
                        None => refused.push(unreadable(format!("references[{index}]"))),
                    }
                }
            }
            (None, Some(target)) => resolved = incoming(conn, canvas, target).await?,
            (None, None) => {}
        }
        if self.needed && self.references.is_none() && self.source.is_none() && resolved.is_empty() {
            let message = "or a source, or incoming reference connections that bring an image, are needed";
            refused.push(Violation::new("references", message));
        }
        if let Some(source) = &self.source {
            match found.next().flatten() {
                Some(asset) => add(&mut resolved, Reference { handle: source.to_string(), asset, role: None }),
                None => refused.push(unreadable("source")),
            }
        }
        for (image, role) in elements.images() {
            let reference = Reference { handle: image.to_string(), asset: image.clone(), role: Some(role) };
            add(&mut resolved, reference);
        }
        if resolved.len() > IMAGE_REFERENCES_MAX {
            let field = if elements.handles.is_empty() { "references" } else { "elements" };
            let message = format!(
                "{} images in total would guide the result, at most {IMAGE_REFERENCES_MAX} are allowed",
                resolved.len()
            );
            refused.push(Violation::new(field, message));
        }
        Ok(resolved)
    }
}

/// Adds a reference unless its handle is present already; the earlier one keeps its position and role.
fn add(references: &mut Vec<Reference>, reference: Reference) {
    if references.iter().all(|there| there.handle != reference.handle) {
        references.push(reference);
    }
}

/// The images of the `reference` connections into `target`, in the order in which the connections were created: those of image
/// nodes that show an asset.
async fn incoming(conn: &mut PgConnection, canvas: &LockedCanvas, target: &NodeId) -> app::Result<Vec<Reference>> {
    let incoming = db::canvases::references_into(conn, canvas.record.key, target).await?;
    canvas.admit(&Footprint::of_nodes(incoming.iter().map(|reference| &reference.from)))?;
    let references = incoming.into_iter().filter_map(|IncomingReference { from, role, image }| {
        Some(Reference { handle: Named::Node(from).to_string(), asset: image?, role })
    });
    Ok(references.collect())
}

fn unreadable(field: impl Into<String>) -> Violation {
    Violation::new(field, "holds no image that you can read")
}
