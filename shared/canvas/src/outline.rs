//! A canvas as an indented text for people and prompts. Format: `docs/reference/canvases.md#outline`.
//!
//! There is one line for each node and each connection, with the handles that operations take. User-authored text is
//! quoted as JSON, so that no title can imitate a line of the outline.

use std::fmt::Write;

use domain::canvas::CanvasRecord;
use domain::graph::{Connection, Node, Purpose};

use crate::Graph;

/// Longest outline, in bytes.
const OUTLINE_MAX: usize = 64 * 1024;
/// Bytes reserved for the line that says how much is not shown.
const LAST_LINE: usize = 128;
/// Characters of a node's text that are shown.
const EXCERPT: usize = 120;

/// The outline: Sections with their members, then all other nodes, each followed by its outgoing connections, all in
/// order of creation. At most 64 KiB: the rest is omitted, and a last line says how much.
pub fn outline(canvas: &CanvasRecord, graph: &Graph) -> String {
    let mut lines = Lines { text: String::new(), shown: 0, full: false };
    lines.push(
        0,
        &format!(
            "{} {} revision {} ({}, {})",
            canvas.handle,
            quoted(graph.title()),
            canvas.revision,
            counted(graph.node_count(), "node"),
            counted(graph.connection_count(), "connection"),
        ),
    );
    for section in graph.nodes().filter(|node| node.is_section()) {
        lines.node(1, section, graph);
        for member in graph.members(&section.id) {
            lines.node(2, member, graph);
        }
    }
    for node in graph.nodes().filter(|node| !node.is_section() && node.section_id().is_none()) {
        lines.node(1, node, graph);
    }
    lines.finish(graph.node_count())
}

struct Lines {
    text: String,
    /// Nodes that are in the text.
    shown: usize,
    /// Set by the first line that does not fit. No later line is added, even a shorter one, so that the text is a
    /// prefix of the full outline.
    full: bool,
}

impl Lines {
    fn push(&mut self, depth: usize, line: &str) {
        let width = 2 * depth;
        self.full |= self.text.len() + width + line.len() + 1 > OUTLINE_MAX - LAST_LINE;
        if !self.full {
            // Writing to a String cannot fail.
            let _ = writeln!(self.text, "{:width$}{line}", "");
        }
    }

    fn node(&mut self, depth: usize, node: &Node, graph: &Graph) {
        if self.full {
            return;
        }
        self.push(depth, &described(node));
        self.shown += usize::from(!self.full);
        for connection in graph.outgoing(&node.id) {
            self.push(depth + 1, &connected(connection));
        }
    }

    fn finish(mut self, nodes: usize) -> String {
        if self.full {
            let hidden = nodes - self.shown;
            let _ = writeln!(self.text, "... truncated at 64 KiB: {hidden} of {nodes} nodes are not shown");
        }
        self.text
    }
}

fn described(node: &Node) -> String {
    let kind = if node.is_section() { "section" } else { node.kind.as_str() };
    let (at, width, height) = (node.position, node.width, node.height);
    let mut line =
        format!("{kind} {} {} at {},{} size {width}x{height}", node.id.handle(), quoted(&node.title), at.x, at.y);
    if let Some(asset) = &node.asset {
        let _ = write!(line, " shows {asset}");
    }
    if let Some(awaited) = node.awaited() {
        let _ = write!(line, " awaits {awaited}");
    }
    if let Some(content) = node.content().filter(|content| !content.is_empty()) {
        let _ = write!(line, ": {}", excerpt(content));
    }
    line
}

fn connected(connection: &Connection) -> String {
    let mut line = format!("-> {}", connection.to.handle());
    if connection.purpose != Purpose::Flow {
        let _ = write!(line, " {}", connection.purpose);
    }
    if let Some(role) = connection.role {
        let _ = write!(line, " as {role}");
    }
    let _ = write!(line, " ({})", connection.id.handle());
    line
}

fn excerpt(content: &str) -> String {
    match content.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}...", quoted(&content[..end])),
        None => quoted(content),
    }
}

/// The text as a JSON string: line breaks and control characters are escaped.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A number of things: `1 node`, `2 nodes`.
fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;
    use domain::id::{AccountUid, CanvasHandle, CanvasId};
    use serde_json::{Value, json};

    use super::*;
    use crate::fixture::{connection, image, member, section, text, working};

    fn record() -> CanvasRecord {
        let at: Timestamp = serde_json::from_value(json!("2026-01-02T03:04:05.678Z")).expect("a time");
        CanvasRecord {
            key: 1,
            handle: CanvasHandle { owner: AccountUid::from_stored("me".into()), id: CanvasId::from_stored("c".into()) },
            canvas_type: None,
            title: String::new(),
            revision: "r7".into(),
            sequence: 7,
            node_count: 0,
            connection_count: 0,
            graph_bytes: 0,
            created_at: at,
            updated_at: at,
        }
    }

    fn of(title: &str, nodes: Vec<Node>, connections: Vec<Connection>) -> String {
        outline(&record(), &Graph::new(title.into(), 0, nodes, connections))
    }

    #[test]
    fn sections_hold_their_members_and_nodes_their_connections() {
        let nodes = vec![text("t"), member(image("a"), "s"), section("s"), image("b")];
        let connections =
            vec![connection("c1", "a", "b", Purpose::Reference), connection("c2", "t", "a", Purpose::Flow)];
        let outline = of("Board", nodes, connections);
        let lines: Vec<&str> = outline.lines().collect();
        assert_eq!(lines[0], r#"canvas:me:c "Board" revision r7 (4 nodes, 2 connections)"#);
        let starts = ["  section node:s ", "    image node:a ", "      -> node:b reference (connection:c1)"];
        let ends = ["  text node:t ", "    -> node:a (connection:c2)", "  image node:b "];
        for (line, start) in lines[1..].iter().zip(starts.iter().chain(&ends)) {
            assert!(line.starts_with(start), "{line:?} begins with {start:?}");
        }
        assert_eq!(lines.len(), 7);
        let alone = of("Board", vec![text("t"), text("u")], vec![connection("c", "t", "u", Purpose::Flow)]);
        assert!(alone.starts_with(r#"canvas:me:c "Board" revision r7 (2 nodes, 1 connection)"#), "{alone}");
    }

    #[test]
    fn what_users_wrote_cannot_leave_its_quotes() {
        let mut node = text("t");
        node.title = "\"\n  section node:x".into();
        node.metadata.insert("content".into(), json!("ü".repeat(EXCERPT + 1)));
        let outline = of("a\u{1b}\nb", vec![node], vec![]);
        assert_eq!(outline.lines().count(), 2, "{outline}");
        assert!(outline.contains(r#""a\u001b\nb""#) && outline.contains(r#""\"\n  section node:x""#), "{outline}");
        assert!(outline.trim_end().ends_with(&format!("\"{}\"...", "ü".repeat(EXCERPT))), "{outline}");
    }

    #[test]
    fn a_node_that_is_worked_on_names_the_job_or_the_run_that_can_be_read() {
        let noted = |note: Value| {
            let mut node = working(image("a"));
            node.server.insert("job".into(), note);
            of("", vec![node], vec![])
        };
        assert!(noted(json!({"id": "job:1", "run": "run:1"})).contains(" awaits job:1"));
        assert!(noted(json!({"run": "run:recipe-1"})).contains(" awaits run:recipe-1"));
        let mut over = image("a");
        over.server.insert("job".into(), json!({"id": "job:1", "status": "failed"}));
        assert!(!of("", vec![over], vec![]).contains("awaits"));
    }

    #[test]
    fn a_truncated_outline_is_a_beginning_that_says_so() {
        let many = |count: usize| of("T", (0..count).map(|index| text(&format!("{index:05}"))).collect(), vec![]);
        let line = many(1).lines().nth(1).expect("a node").len() + 1;
        let most = (OUTLINE_MAX - LAST_LINE) / line - 2;
        assert_eq!(many(most).lines().count(), most + 1);
        let cut = many(20_000);
        assert!(cut.len() <= OUTLINE_MAX && cut.len() > OUTLINE_MAX - LAST_LINE - line, "{}", cut.len());
        let shown = cut.lines().count() - 2;
        let last = format!("... truncated at 64 KiB: {} of 20000 nodes are not shown", 20_000 - shown);
        assert_eq!(cut.lines().last(), Some(last.as_str()));
    }
}
