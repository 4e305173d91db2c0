//! Numbers on nodes, by which a reader of the image names them (`docs/reference/canvases.md#labels`).

use std::collections::HashMap;

use domain::graph::Node;
use domain::id::NodeId;

use super::advance::Face;
use super::look::{INK, WHITE};
use super::text::{self, Align};
use super::xml::{Num, put};
use super::{Frame, MARGIN};

/// Longest mapping of numbers to nodes, in bytes.
pub const LABELS_BYTES_MAX: usize = 8 * 1024;
/// More bytes than a drawn label takes.
const LABEL_BYTES: usize = 1024;

/// Font size where a canvas unit is at least a pixel, in canvas units. Below, labels grow to this many pixels.
const SIZE: f64 = 14.0;
/// Largest font size, as a share of the shorter side of the node.
const SHARE_MAX: f64 = 0.45;
/// Height of a label, in multiples of its font size.
const HEIGHT: f64 = 1.5;
/// Part of a label's height by which it extends beyond the node's corner, so that it covers little of the node.
const OUTSIDE: f64 = 0.4;

/// The numbers of nodes, which are those of their refs, and the mapping of the numbers to nodes as JSON.
pub struct Labels<'a> {
    numbers: HashMap<&'a NodeId, i32>,
    /// Top to bottom, then left to right, by their top left corners.
    nodes: Vec<(i32, &'a Node)>,
    json: String,
}

impl<'a> Labels<'a> {
    /// Labels all `nodes`. The mapping names as many as it has room for, in reading order.
    pub fn new(nodes: &'a [Node]) -> Self {
        let mut ordered: Vec<(i32, &Node)> =
            nodes.iter().filter_map(|node| Some((node.short?.number(), node))).collect();
        ordered.sort_by(|(_, a), (_, b)| {
            let (a, b) = (a.position, b.position);
            a.y.total_cmp(&b.y).then(a.x.total_cmp(&b.x))
        });
        let mut json = "{".to_owned();
        for (number, node) in &ordered {
            let separator = if json.len() == 1 { "" } else { "," };
            // An id needs no escaping.
            let entry = format!("{separator}\"{number}\":\"{}\"", node.id.handle());
            if json.len() + entry.len() + "}".len() > LABELS_BYTES_MAX {
                break;
            }
            json.push_str(&entry);
        }
        json.push('}');
        Self { numbers: ordered.iter().map(|(number, node)| (&node.id, *number)).collect(), nodes: ordered, json }
    }

    /// The mapping, `{"1":"node:<id>",…}`: at most [`LABELS_BYTES_MAX`] bytes of ASCII.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// The number of a node.
    pub(super) fn number(&self, node: &NodeId) -> Option<i32> {
        self.numbers.get(node).copied()
    }

    /// Appends the labels, each at the top left corner of its node, as long as `out` has less than `most` bytes. `scale` is the
    /// number of pixels of a canvas unit.
    pub(super) fn draw(&self, out: &mut String, most: usize, origin: Frame, scale: f64) {
        // White on black with a white edge is legible on any image.
        put!(out, "<g font-weight=\"bold\" fill=\"{WHITE}\">");
        for (number, node) in &self.nodes {
            if out.len() + LABEL_BYTES > most {
                break;
            }
            let frame = Frame::from_node(node).relative_to(origin);
            let wanted = SIZE / scale.min(1.0);
            let size = wanted.min(SHARE_MAX * frame.width.min(frame.height)).max(SIZE);
            let Some(line) = text::single(&number.to_string(), Face::bold(size), f64::INFINITY) else { continue };
            let height = HEIGHT * size;
            let width = (line.width + 0.8 * size).max(height);
            // With its edge it stays within the margin.
            let outside = (OUTSIDE * height).min(0.75 * MARGIN);
            let (x, y) = (frame.x - outside, frame.y - outside);
            put!(
                out,
                "<g font-size=\"{}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\" fill=\"{}\" stroke=\"{}\" \
                 stroke-width=\"{}\"/>",
                Num(size),
                Num(x),
                Num(y),
                Num(width),
                Num(height),
                Num(height / 4.0),
                INK,
                WHITE,
                Num(size / 7.0)
            );
            text::draw(out, &line, Align::Center, x, x + width, y + 0.5 * height + 0.36 * size);
            out.push_str("</g>");
        }
        out.push_str("</g>");
    }
}
