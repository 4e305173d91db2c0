//! XMP packets (ISO 16684-1; IPTC Photo Metadata 2023.2; PLUS 1.2).

use roxmltree::Node;

use super::{Block, Budget, Class};
use crate::xmp::{IPTC_EXTENSION, RDF, document, wrapped};

const XML: &str = "http://www.w3.org/XML/1998/namespace";
const DC: &str = "http://purl.org/dc/elements/1.1/";
const RIGHTS: &str = "http://ns.adobe.com/xap/1.0/rights/";
const PLUS: &str = "http://ns.useplus.org/ldf/xmp/1.0/";
const TIFF: &str = "http://ns.adobe.com/tiff/1.0/";
const PHOTOSHOP: &str = "http://ns.adobe.com/photoshop/1.0/";
const IPTC_CORE: &str = "http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/";
const REGIONS: &str = "http://www.metadataworkinggroup.com/schemas/regions/";
const MICROSOFT_PHOTO: &str = "http://ns.microsoft.com/photo/1.2/";

/// The namespaces of what is kept, with the prefixes with which it is written.
const PREFIXES: [(&str, &str); 7] = [
    (RDF, "rdf"),
    (DC, "dc"),
    (RIGHTS, "xmpRights"),
    (PLUS, "plus"),
    (IPTC_EXTENSION, "Iptc4xmpExt"),
    (TIFF, "tiff"),
    (XML, "xml"),
];

/// The maximum depth of a kept property. Structures in lists have four.
const DEPTH_MAX: usize = 8;

/// Examines a packet. It keeps origin, authorship and rights.
pub(super) fn examine(packet: &[u8], _: &mut Budget) -> Block {
    let end = packet.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let text = packet[..end].strip_prefix("\u{feff}".as_bytes()).unwrap_or(&packet[..end]);
    if text.is_empty() {
        return Block::default();
    }
    let Some(document) = std::str::from_utf8(text).ok().and_then(document) else { return Block::damaged() };
    let mut block = Block::default();
    for element in document.root().descendants().filter(Node::is_element) {
        let tag = element.tag_name();
        let attributes = element.attributes().map(|attribute| (attribute.namespace(), attribute.name()));
        for (namespace, name) in std::iter::once((tag.namespace(), tag.name())).chain(attributes) {
            if let Some(class) = private_class(namespace.unwrap_or_default(), name) {
                block.private(class);
            }
        }
    }
    let mut kept = String::new();
    let is_rdf = |element: &Node<'_, '_>| element.has_tag_name((RDF, "RDF"));
    let descriptions = document.root().descendants().filter(is_rdf).flat_map(|rdf| rdf.children());
    for description in descriptions.filter(Node::is_element) {
        for attribute in description.attributes() {
            match (attribute.namespace(), attribute.name()) {
                (None | Some(XML | RDF), _) => {}
                (Some(namespace), name) if is_kept(namespace, name) => {
                    let name = qualified(namespace, name).unwrap_or_default();
                    kept += &format!("<{name}>{}</{name}>", escaped(attribute.value()));
                }
                _ => block.removed.add(Class::Other),
            }
        }
        for property in description.children().filter(Node::is_element) {
            let tag = property.tag_name();
            if is_kept(tag.namespace().unwrap_or_default(), tag.name()) {
                write(property, DEPTH_MAX, &mut kept);
            } else {
                block.removed.add(Class::Other);
            }
        }
    }
    block.kept = (!kept.is_empty()).then(|| packet_of(&kept).into_bytes());
    block
}

/// Returns `true` if a property is kept: where the image comes from, who made it, who has which rights, and how it is turned.
fn is_kept(namespace: &str, name: &str) -> bool {
    match namespace {
        RIGHTS | PLUS => true,
        DC => matches!(name, "creator" | "rights"),
        IPTC_EXTENSION => name == "DigitalSourceType",
        TIFF => name == "Orientation",
        _ => false,
    }
}

/// The class of a private property, or field of one.
fn private_class(namespace: &str, name: &str) -> Option<Class> {
    let lower = name.to_ascii_lowercase();
    let is_place = lower.starts_with("gps")
        || lower.ends_with("location")
        || ["latitude", "longitude", "geotag"].iter().any(|it| lower.contains(it));
    match (namespace, name) {
        (RDF | DC | RIGHTS | PLUS, _) => None,
        (PHOTOSHOP, "City" | "State" | "Country") => Some(Class::Location),
        (IPTC_CORE, "CountryCode") => Some(Class::Location),
        (IPTC_EXTENSION, "LocationCreated" | "LocationShown") => Some(Class::Location),
        (IPTC_CORE, "CreatorContactInfo") => Some(Class::Person),
        (IPTC_EXTENSION, "ImageRegion" | "PersonInImage" | "PersonInImageWDetails") => Some(Class::Person),
        (REGIONS, "Regions") | (MICROSOFT_PHOTO, "RegionInfo") => Some(Class::Person),
        (_, "OwnerName" | "CameraOwnerName") => Some(Class::Person),
        (_, "UserComment") => Some(Class::Text),
        (_, "MakerNote" | "HostComputer") => Some(Class::Device),
        _ if lower.ends_with("serialnumber") => Some(Class::Device),
        _ if is_place => Some(Class::Location),
        _ => None,
    }
}

/// Writes a kept property, or a part of one. Elements of other namespaces are left out.
fn write(element: Node<'_, '_>, depth: usize, output: &mut String) {
    let tag = element.tag_name();
    let Some(name) = qualified(tag.namespace().unwrap_or_default(), tag.name()).filter(|_| depth > 0) else { return };
    *output += &format!("<{name}");
    for attribute in element.attributes() {
        if let Some(name) = qualified(attribute.namespace().unwrap_or_default(), attribute.name()) {
            *output += &format!(" {name}=\"{}\"", escaped(attribute.value()));
        }
    }
    output.push('>');
    if element.children().any(|child| child.is_element()) {
        for child in element.children().filter(Node::is_element) {
            write(child, depth - 1, output);
        }
    } else {
        let text: String = element.children().filter_map(|child| child.text().filter(|_| child.is_text())).collect();
        *output += &escaped(&text);
    }
    *output += &format!("</{name}>");
}

/// The name with the prefix of its namespace; `None` for names that are not kept within a property.
fn qualified(namespace: &str, name: &str) -> Option<String> {
    let (_, prefix) = PREFIXES.into_iter().find(|(known, _)| *known == namespace)?;
    match namespace {
        RDF | XML => Some(format!("{prefix}:{name}")),
        _ => is_kept(namespace, name).then(|| format!("{prefix}:{name}")),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A packet with these properties.
fn packet_of(properties: &str) -> String {
    let is_used = |prefix: &str| properties.contains(&format!("{prefix}:"));
    let used = PREFIXES.into_iter().filter(|(namespace, prefix)| !matches!(*namespace, RDF | XML) && is_used(prefix));
    let namespaces: String = used.map(|(namespace, prefix)| format!(" xmlns:{prefix}=\"{namespace}\"")).collect();
    wrapped(&namespaces, properties)
}
