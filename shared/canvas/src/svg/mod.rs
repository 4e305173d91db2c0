//! A canvas as an image: a self-contained SVG 1.1 document. Rules: `docs/reference/canvases.md#render-formats`.
//!
//! **Guarantee.** Whatever the canvas contains, the document is well-formed, has at most [`DOCUMENT_BYTES_MAX`] bytes,
//! refers to nothing outside of itself, and its `viewBox` contains every node with a margin of [`MARGIN`]. Text is
//! data: it is escaped, set inside its frame and clipped there. The cost is linear in what is drawn, and n log n for
//! the drawing order.
//!
//! **Mechanism.** Two steps, so that a caller knows what fits before it loads an image. [`Drawing::new`] draws
//! everything except images: Sections, connections, nodes by `zIndex`, with a slot for each image.
//! [`Drawing::room`] returns the bytes that are left for images, [`Drawing::finish`] fills the slots. Each node may
//! use an equal share of the remaining bytes for nodes. A node that needs more is drawn with less detail, down to a
//! plain frame, for which a share is always enough.
//!
//! **Coordinates.** Nodes are drawn relative to the top left one, within one translated group, so that a canvas ten
//! million units from the origin is as sharp as one at the origin in renderers with single precision.

mod advance;
mod card;
mod connection;
mod curve;
mod icon;
mod labels;
mod look;
mod media;
mod note;
mod obstacles;
mod route;
mod text;
mod xml;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::canvas::Theme;
use domain::graph::{Connection, Node, NodeType};
use domain::id::NodeId;
use domain::limits::RENDER_SIDE_MAX;

pub use card::whole_font;
pub(crate) use card::{FONT_MIN, crops_image, cuts_text, smaller_font, text_height, title_strip, title_width};
use connection::Curves;
pub use labels::{LABELS_BYTES_MAX, Labels};
use look::{Look, Palette};
pub(crate) use route::Router;
use xml::{Num, put};

/// Largest document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Distance between the outermost nodes and the edge, in canvas units.
pub const MARGIN: f64 = 40.0;

/// Bytes for all Sections and nodes without images: more than a plain frame for each of the most nodes of a canvas.
const NODES_BYTES: usize = 3 * 1024 * 1024;

/// Bytes reserved for the content of a slot except the data of its image.
const SLOT_BYTES: usize = 1200;

/// With a smaller share no node is tried in full detail: hardly any would fit, and a try costs as much as drawing.
const FULL_BYTES_MIN: usize = 256;

/// The end of a document.
const END: &str = "</svg>";

/// Bytes of everything around Sections, connections and nodes.
const ENVELOPE_BYTES: usize = 8 * 1024;

/// Longest side of the document's natural size, used when it is opened by itself.
const NATURAL_SIDE_MAX: f64 = 4096.0;

/// Pixels of a PNG for each unit of the document's natural size, as long as its sides are at most [`RENDER_SIDE_MAX`]
/// (`raster::document`).
const PIXELS_PER_UNIT: f64 = 2.0;

/// Size of the sheet that is drawn for an empty canvas.
const EMPTY: Frame = Frame { x: 0.0, y: 0.0, width: 720.0, height: 400.0 };

/// Font families: the one with which renders are rasterized, then those of operating systems.
const FAMILIES: &str = "Noto Sans, Inter, Helvetica Neue, Helvetica, Arial, sans-serif";

/// A rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Frame {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Frame {
    fn from_node(node: &Node) -> Self {
        Self { x: node.position.x, y: node.position.y, width: node.width, height: node.height }
    }

    /// The smallest frame that contains both.
    fn with(self, other: Self) -> Self {
        let (x, y) = (self.x.min(other.x), self.y.min(other.y));
        let right = (self.x + self.width).max(other.x + other.width);
        let bottom = (self.y + self.height).max(other.y + other.height);
        Self { x, y, width: right - x, height: bottom - y }
    }

    fn relative_to(self, origin: Self) -> Self {
        Self { x: self.x - origin.x, y: self.y - origin.y, ..self }
    }
}

/// Content of the slot of a node that shows an asset.
#[derive(Clone, Copy, Debug)]
pub enum EmbeddedImage<'a> {
    /// A rendition of the image.
    Ready {
        /// `image/jpeg` or `image/png`.
        media_type: &'a str,
        /// Content of the file.
        bytes: &'a [u8],
        /// Width over height of the image.
        ratio: f64,
    },
    /// Its rendition is not made yet.
    Pending,
    /// It has no rendition and will not have one.
    Unreadable,
    /// It was omitted because the document is full or no rendition is small enough.
    LeftOut,
}

/// Length of an image's data in a document, in bytes.
pub const fn embedded_len(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

/// How a canvas is drawn.
#[derive(Clone, Copy)]
pub struct Style<'a> {
    /// Colors.
    pub theme: Theme,
    /// Width of the PNG that is made of the document, in pixels. It is narrower if it would be too high.
    pub width: Option<u32>,
    /// Numbers on the nodes.
    pub labels: Option<&'a Labels<'a>>,
}

impl Default for Style<'_> {
    fn default() -> Self {
        Self { theme: Theme::Light, width: None, labels: None }
    }
}

/// A drawn canvas without its images.
pub struct Drawing<'a> {
    text: String,
    palette: &'static Palette,
    slots: Vec<Slot<'a>>,
}

/// Position of an image.
struct Slot<'a> {
    /// Position in the text.
    at: usize,
    node: &'a Node,
    area: media::Area,
}

impl<'a> Drawing<'a> {
    /// Draws a canvas, or those nodes of it that are shown; nodes and connections are in order of creation. Connections
    /// of other nodes are not drawn.
    pub fn new(title: &str, nodes: &'a [Node], connections: &[Connection], style: Style<'_>) -> Self {
        let bounds = nodes.iter().map(Frame::from_node).reduce(Frame::with);
        let origin = bounds.unwrap_or(EMPTY);
        let palette = Palette::new(style.theme);
        let drawing = Self { text: head(title, origin, palette, style.width), palette, slots: Vec::new() };
        let mut canvas = Sheet { drawing, origin, left: nodes.len(), labels: style.labels };
        let mut ordered: Vec<&Node> = nodes.iter().collect();
        ordered.sort_by(|a, b| look::depth(a).total_cmp(&look::depth(b)));
        let (sections, cards): (Vec<&Node>, Vec<&Node>) = ordered.into_iter().partition(|node| node.is_section());
        let connections = curves(nodes, connections, palette, origin);
        let begin = canvas.drawing.text.len();
        for node in sections {
            canvas.node(node, begin);
        }
        canvas.drawing.text.push_str(&connections);
        for node in cards {
            canvas.node(node, begin + connections.len());
        }
        if bounds.is_none() {
            card::nothing(&mut canvas.drawing.text, palette, EMPTY.width, EMPTY.height);
        }
        if let Some(labels) = style.labels {
            let most = (DOCUMENT_BYTES_MAX - ENVELOPE_BYTES).saturating_sub(canvas.drawing.slots.len() * SLOT_BYTES);
            labels.draw(&mut canvas.drawing.text, most, origin, scale(origin, style.width));
        }
        canvas.drawing.text.push_str("</g>");
        canvas.drawing.text.push_str(END);
        canvas.drawing
    }

    /// The nodes whose images are needed, in document order.
    pub fn slots(&self) -> impl Iterator<Item = &'a NodeId> {
        self.slots.iter().map(|slot| &slot.node.id)
    }

    /// Bytes that the data of all images may take together, as [`embedded_len`] counts them.
    pub fn room(&self) -> usize {
        (DOCUMENT_BYTES_MAX - ENVELOPE_BYTES).saturating_sub(self.text.len() + self.slots.len() * SLOT_BYTES)
    }

    /// Adds metadata: XML of at most 1 KiB, which is written as it is.
    pub fn with_metadata(mut self, metadata: Option<&str>) -> Self {
        if let Some(metadata) = metadata {
            self.text.truncate(self.text.len() - END.len());
            put!(&mut self.text, "<metadata>{metadata}</metadata>{END}");
        }
        self
    }

    /// The document with its slots filled by `image`. An image for which no bytes are left is omitted.
    pub fn finish<'p>(self, mut image: impl FnMut(&NodeId) -> EmbeddedImage<'p>) -> String {
        let mut room = self.room();
        let mut out = String::with_capacity(self.text.len() + self.slots.len() * SLOT_BYTES);
        let mut done = 0;
        for (index, slot) in self.slots.iter().enumerate() {
            out.push_str(&self.text[done..slot.at]);
            done = slot.at;
            match image(&slot.node.id) {
                EmbeddedImage::Ready { media_type, bytes, ratio } if embedded_len(bytes.len()) <= room => {
                    room -= embedded_len(bytes.len());
                    let (before, after) = media::framed(slot.area, slot.node, self.palette, index, ratio);
                    put!(&mut out, "{before}data:");
                    xml::escape(&mut out, media_type);
                    out.push_str(";base64,");
                    STANDARD.encode_string(bytes, &mut out);
                    out.push_str(&after);
                }
                // The card of a video is whole without its poster.
                _ if slot.node.kind == NodeType::Video => {}
                EmbeddedImage::Ready { .. } | EmbeddedImage::LeftOut => {
                    media::absent(&mut out, self.palette, slot.area, "Image not shown")
                }
                EmbeddedImage::Pending => media::absent(&mut out, self.palette, slot.area, "Preview not ready"),
                EmbeddedImage::Unreadable => media::absent(&mut out, self.palette, slot.area, "Image cannot be read"),
            }
        }
        out.push_str(&self.text[done..]);
        out
    }
}

/// A drawing in progress.
struct Sheet<'a, 'l> {
    drawing: Drawing<'a>,
    origin: Frame,
    /// Number of Sections and nodes still to draw.
    left: usize,
    labels: Option<&'l Labels<'l>>,
}

impl<'a> Sheet<'a, '_> {
    /// Draws a Section or node in as much detail as its share of bytes allows. `begin` is the position at which the
    /// Sections and nodes would begin if they were contiguous.
    fn node(&mut self, node: &'a Node, begin: usize) {
        let Drawing { text, palette, slots } = &mut self.drawing;
        let spent = text.len() - begin + slots.len() * SLOT_BYTES;
        let share = NODES_BYTES.saturating_sub(spent) / self.left.max(1);
        self.left = self.left.saturating_sub(1);
        let start = text.len();
        let frame = Frame::from_node(node).relative_to(self.origin);
        let look = Look::from_node(node, palette);
        let label = self.labels.and_then(|labels| labels.number(&node.id));
        if share >= FULL_BYTES_MIN {
            let slot = card::full(text, &card::id(&node.id, label), &look, frame, share);
            let reserved = if slot.is_some() { SLOT_BYTES } else { 0 };
            if text.len() - start + reserved <= share {
                slots.extend(slot.map(|(at, area)| Slot { at, node, area }));
                return;
            }
            text.truncate(start);
        }
        // A labeled node can be found in the document, whatever its detail: by its number alone if its id does not fit.
        if label.is_some() {
            put!(text, "<g {}>", card::id(&node.id, label));
        }
        let content = text.len();
        card::titled(text, &look, frame);
        if text.len() - start > share {
            text.truncate(content);
            card::plain(text, &look, frame);
        }
        if let Some(label) = label {
            text.push_str("</g>");
            if text.len() - start > share {
                text.truncate(start);
                put!(text, "<g data-label=\"{label}\">");
                card::plain(text, &look, frame);
                text.push_str("</g>");
            }
        }
    }
}

/// Width and height of the view.
fn extent(origin: Frame) -> (f64, f64) {
    (origin.width + 2.0 * MARGIN, origin.height + 2.0 * MARGIN)
}

/// Pixels of a canvas unit in the PNG of the document.
fn scale(origin: Frame, wanted: Option<u32>) -> f64 {
    let (width, height) = extent(origin);
    let most = f64::from(RENDER_SIDE_MAX) / width.max(height);
    wanted.map_or(PIXELS_PER_UNIT, |wanted| f64::from(wanted) / width).min(most)
}

/// Everything before the first Section.
fn head(title: &str, origin: Frame, palette: &Palette, wanted: Option<u32>) -> String {
    let (width, height) = extent(origin);
    let scale = match wanted {
        Some(_) => scale(origin, wanted) / PIXELS_PER_UNIT,
        None => (NATURAL_SIDE_MAX / width.max(height)).min(1.0),
    };
    let mut out = String::new();
    // Not rounded: the guarantee of the margin is exact.
    let (x, y) = (origin.x - MARGIN, origin.y - MARGIN);
    put!(
        &mut out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" version=\"1.1\" \
         viewBox=\"{x} {y} {width} {height}\" width=\"{}\" height=\"{}\" font-family=\"{FAMILIES}\"><title>",
        Num((width * scale).max(1.0)),
        Num((height * scale).max(1.0))
    );
    xml::escape(&mut out, title);
    out.push_str("</title><defs>");
    connection::markers(&mut out, palette);
    put!(
        &mut out,
        "</defs><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\
         <g transform=\"translate({} {})\">",
        palette.ground,
        origin.x,
        origin.y
    );
    out
}

/// All connections whose nodes exist.
fn curves(nodes: &[Node], connections: &[Connection], palette: &'static Palette, origin: Frame) -> String {
    let router = Router::new(nodes.iter());
    let mut curves = Curves::new(palette);
    for connection in connections {
        if let Some(route) = router.route(connection) {
            curves.add(connection, &route.path, origin);
        }
    }
    curves.finish()
}

#[cfg(test)]
mod tests;
