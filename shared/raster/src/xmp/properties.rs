//! The statement of a packet about the origin of its file, as RDF/XML (ISO 16684-1; IPTC Photo Metadata 2023.2).

use roxmltree::{Document, Node, ParsingOptions};

/// Namespace of RDF.
pub(crate) const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
/// Namespace of the IPTC Extension schema.
pub(crate) const IPTC_EXTENSION: &str = "http://iptc.org/std/Iptc4xmpExt/2008-02-29/";
const DUBLIN_CORE_TERMS: &str = "http://purl.org/dc/terms/";
/// The prefix of the one kind of `dcterms:provenance` that is kept: a manifest by its label.
const C2PA_URN: &str = "urn:c2pa:";
const PROVENANCE_MAX: usize = 200;

/// The maximum number of nodes of a packet.
const NODES_MAX: u32 = 50_000;
/// The maximum number of attributes of an element, and of declarations of namespaces in a packet. The parser compares each with all
/// others.
const ATTRIBUTES_MAX: usize = 512;

/// The document of a packet; `None` if it is damaged or would take long to parse. Entities are refused, so that the text cannot expand.
pub(crate) fn document(text: &str) -> Option<Document<'_>> {
    // No value of an attribute contains this sign, so that each tag lies between two of them.
    let is_crowded = |tag: &str| memchr::memchr_iter(b'=', tag.as_bytes()).count() > ATTRIBUTES_MAX;
    if text.matches("xmlns").count() > ATTRIBUTES_MAX || text.split('<').any(is_crowded) {
        return None;
    }
    let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).ok()
}

/// A packet with these declarations of namespaces and properties.
pub(crate) fn wrapped(namespaces: &str, properties: &str) -> String {
    format!(
        "<?xpacket begin=\"\u{feff}\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?><x:xmpmeta xmlns:x=\"adobe:ns:meta/\">\
         <rdf:RDF xmlns:rdf=\"{RDF}\"><rdf:Description rdf:about=\"\"{namespaces}>{properties}</rdf:Description>\
         </rdf:RDF></x:xmpmeta><?xpacket end=\"r\"?>"
    )
}

/// The origin that a packet states for its file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties {
    /// The values of `Iptc4xmpExt:DigitalSourceType`, normally one.
    pub digital_source_types: Vec<String>,
    /// `dcterms:provenance`, if it is a `urn:c2pa:`.
    pub provenance: Option<String>,
}

impl Properties {
    /// Reads a packet. Anything that is not well-formed RDF/XML says nothing.
    pub fn parse(packet: &[u8]) -> Self {
        let text = String::from_utf8_lossy(packet);
        let text = text.trim_end_matches(|end| end != '>');
        let mut properties = Self::default();
        let Some(document) = document(text) else { return properties };
        let described = document
            .descendants()
            .filter(|node| node.has_tag_name((RDF, "RDF")))
            .flat_map(|node| node.children())
            .filter(|node| node.has_tag_name((RDF, "Description")));
        for description in described {
            let attributes = description.attributes().map(|it| (it.namespace(), it.name(), Some(it.value())));
            let elements = description.children().filter(Node::is_element).map(|element| {
                let name = element.tag_name();
                (name.namespace(), name.name(), element.attribute((RDF, "resource")).or_else(|| element.text()))
            });
            for (namespace, name, value) in attributes.chain(elements) {
                let value = value.unwrap_or_default().trim();
                match (namespace, name) {
                    (Some(IPTC_EXTENSION), "DigitalSourceType") => properties.digital_source_types.push(value.into()),
                    (Some(DUBLIN_CORE_TERMS), "provenance") if is_c2pa_urn(value) => {
                        properties.provenance = Some(value.into());
                    }
                    _ => {}
                }
            }
        }
        properties
    }

    /// The properties in the packet of a file.
    pub fn of_file(bytes: &[u8]) -> Self {
        super::read_xmp(bytes).map(|packet| Self::parse(&packet)).unwrap_or_default()
    }
}

fn is_c2pa_urn(value: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":.-_".contains(&byte);
    value.starts_with(C2PA_URN) && value.len() <= PROVENANCE_MAX && value.bytes().all(is_plain)
}

/// A packet that says nothing but the origin: `digital_source_type` is the URI of a term, and `provenance` is written if it is a
/// `urn:c2pa:`.
pub fn packet(digital_source_type: &str, provenance: Option<&str>) -> String {
    let provenance = provenance.filter(|value| is_c2pa_urn(value)).map_or_else(String::new, |value| {
        format!("<dcterms:provenance xmlns:dcterms=\"{DUBLIN_CORE_TERMS}\">{value}</dcterms:provenance>")
    });
    let namespaces = format!(" xmlns:Iptc4xmpExt=\"{IPTC_EXTENSION}\"");
    let origin = format!("<Iptc4xmpExt:DigitalSourceType>{digital_source_type}</Iptc4xmpExt:DigitalSourceType>");
    wrapped(&namespaces, &(origin + &provenance))
}
