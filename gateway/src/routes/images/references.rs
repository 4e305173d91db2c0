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
use domain::job::{Mask, Reference};
use domain::limits::IMAGE_REFERENCES_MAX;
use raster::Size;
use raster::resize::check_output;

use super::elements::Elements;
use super::rules::CheckedMask;

/// The images that a request names, or leaves to its target.
pub struct Images {
    /// References with roles, if the request names any.
    pub references: Option<Vec<(Named, Option<Role>)>>,
    /// Image appended to the references; with a mask, the first image.
    pub source: Option<Named>,
    /// The mask of the source.
    pub mask: Option<CheckedMask>,
    /// `true` if the operation starts from images, so that the request or a connection must provide one. Images of Elements
    /// guide the result and do not count.
    pub needed: bool,
}

impl Images {
    /// The images that the request names: references, then the source, then the mask.
    pub fn named(&self) -> impl Iterator<Item = &Named> {
        let references = self.references.iter().flatten().map(|(named, _)| named);
        references.chain(&self.source).chain(self.mask.iter().map(|mask| &mask.named))
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
    /// source, those of the Elements. Also the mask, with the size of the source. `found` are those that the request
    /// [names](Self::named). Violations are added to `refused`.
    pub async fn resolve(
        &self,
        conn: &mut PgConnection,
        canvas: &LockedCanvas,
        target: Option<&NodeId>,
        found: Vec<Option<InputImage>>,
        elements: &Elements,
        refused: &mut Vec<Violation>,
    ) -> app::Result<(Vec<Reference>, Option<(Mask, Size)>)> {
        let mask = self.mask(&found, refused);
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
                Some(asset) => {
                    add(&mut resolved, Reference { handle: source.to_string(), asset, role: None });
                    if self.mask.is_some() {
                        // A mask is that of the first image that a model is sent.
                        let handle = source.to_string();
                        let at = resolved.iter().position(|reference| reference.handle == handle).unwrap_or_default();
                        resolved[..=at].rotate_right(1);
                    }
                }
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
        Ok((resolved, mask))
    }

    /// The mask, which must have the shape of the source, and the size of the source. `found` are the images that the request
    /// [names](Self::named).
    fn mask(&self, found: &[Option<InputImage>], refused: &mut Vec<Violation>) -> Option<(Mask, Size)> {
        let mask = self.mask.as_ref()?;
        let [.., source, image] = found else { return None };
        let Some(image) = image else {
            refused.push(unreadable("mask"));
            return None;
        };
        let size = |image: &InputImage| {
            let side = |side: i32| u32::try_from(side).unwrap_or_default();
            Size::new(side(image.width), side(image.height))
        };
        // Without it, the source is a violation itself.
        let source = size(source.as_ref()?);
        if let Err(error) = check_output(source) {
            refused.push(Violation::new("source", format!("cannot be edited with a mask: {error}")));
        }
        if !has_shape_of(size(image), source) {
            let message = format!(
                "has {} x {} pixels; it must have the {} x {} of the source, or their aspect ratio",
                image.width, image.height, source.width, source.height
            );
            refused.push(Violation::new("mask", message));
        }
        let CheckedMask { named, mode, invert, feather, composite } = mask.clone();
        let asset = image.handle.clone();
        Some((Mask { handle: named.to_string(), asset, mode, invert, feather, composite }, source))
    }
}

/// Returns `true` if two images have the same shape within a pixel of the smaller one: the larger one, scaled to a side of the
/// smaller one, differs in the other side by at most 1.
fn has_shape_of(one: Size, other: Size) -> bool {
    let larger = if one.pixels() > other.pixels() { one } else { other };
    let across = u64::from(one.width) * u64::from(other.height);
    let down = u64::from(other.width) * u64::from(one.height);
    across.abs_diff(down) <= u64::from(larger.width.max(larger.height))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_the_shape_of_its_source_within_a_pixel_of_the_smaller() {
        let fits = |mask: (u32, u32), source: (u32, u32)| {
            let fits = has_shape_of(Size::new(mask.0, mask.1), Size::new(source.0, source.1));
            assert_eq!(fits, has_shape_of(Size::new(source.0, source.1), Size::new(mask.0, mask.1)));
            fits
        };
        for (mask, source, wanted) in [
            ((1500, 1000), (1500, 1000), true),
            ((750, 500), (1500, 1000), true),
            ((100, 67), (1500, 1000), true),
            ((100, 66), (1500, 1000), true),
            ((100, 68), (1500, 1000), false),
            ((1500, 1001), (1500, 1000), true),
            ((1500, 1002), (1500, 1000), false),
            ((1000, 1500), (1500, 1000), false),
            ((3000, 2002), (1500, 1000), true),
            ((3000, 2003), (1500, 1000), false),
            ((1, 1), (1, 1), true),
            ((1, 1), (2, 1), true),
            ((1, 1), (3, 1), true),
            ((3, 3), (9, 1), false),
        ] {
            assert_eq!(fits(mask, source), wanted, "{mask:?} {source:?}");
        }
    }
}
