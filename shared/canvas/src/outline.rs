//! A canvas as an indented text for people and prompts. Format: `docs/reference/canvases.md#outline`.
//!
//! There is one line for each node and each connection. The handle of the canvas names the owner; nodes and assets have
//! their plain ids, and connections name nodes by their numbers, so that a node takes less than 40 tokens on average.
//! User-authored text is quoted as JSON, so that no title can imitate a line of the outline.

use std::collections::HashMap;
use std::fmt::Write;

use domain::canvas::CanvasRecord;
use domain::graph::{Connection, Node, NodeType, Purpose};
use domain::id::{AccountUid, NodeId};

use crate::Graph;
use crate::review::unfilled;

/// Longest outline, in bytes.
const OUTLINE_MAX: usize = 64 * 1024;
/// Bytes reserved for the line that says how much is not shown.
const LAST_LINE: usize = 128;
/// Characters of a node's text that are shown.
const EXCERPT: usize = 60;
/// Characters of an alternative text that are shown.
const ALT_EXCERPT: usize = 80;

/// The outline: Sections with their members, then all other nodes, each followed by its outgoing connections, all in
/// order of creation. At most 64 KiB: the rest is omitted, and a last line says how much. With `connection_ids`, connections are
/// named.
pub fn outline(canvas: &CanvasRecord, graph: &Graph, connection_ids: bool) -> String {
    let sections = graph.nodes().filter(|node| node.is_section());
    let inside = sections
        .flat_map(|section| std::iter::once((1, section)).chain(graph.members(&section.id).map(|member| (2, member))));
    let outside = graph.nodes().filter(|node| !node.is_section() && node.section_id().is_none());
    let order: Vec<(usize, &Node)> = inside.chain(outside.map(|node| (1, node))).collect();
    let numbers = order.iter().map(|(_, node)| &node.id).zip(1..).collect();
    let owner = &canvas.handle.owner;
    let mut lines = Lines { owner, numbers, connection_ids, text: String::new(), shown: 0, full: false };
    lines.push(
        0,
        &format!(
            "{} {} revision {} ({}, {}{})",
            canvas.handle,
            quoted(graph.title()),
            canvas.revision,
            counted(graph.node_count(), "node"),
            counted(graph.connection_count(), "connection"),
            without_alt_text(graph),
        ),
    );
    for (depth, node) in order {
        lines.node(depth, node, graph);
    }
    lines.finish(graph.node_count())
}

struct Lines<'a> {
    /// Owner of the canvas.
    owner: &'a AccountUid,
    numbers: HashMap<&'a NodeId, usize>,
    connection_ids: bool,
    text: String,
    /// Nodes that are in the text.
    shown: usize,
    /// Set by the first line that does not fit. No later line is added, even a shorter one, so that the text is a
    /// prefix of the full outline.
    full: bool,
}

impl Lines<'_> {
    fn push(&mut self, depth: usize, line: &str) {
        let width = 2 * depth;
        self.full |= self.text.len() + width + line.len() + 1 > OUTLINE_MAX - LAST_LINE;
        if !self.full {
            let _ = writeln!(self.text, "{:width$}{line}", "");
        }
    }

    fn node(&mut self, depth: usize, node: &Node, graph: &Graph) {
        if self.full {
            return;
        }
        self.push(depth, &self.described(node));
        self.shown += usize::from(!self.full);
        for connection in graph.outgoing(&node.id) {
            self.push(depth + 1, &self.connected(connection));
        }
    }

    fn described(&self, node: &Node) -> String {
        let kind = if node.is_section() { "section" } else { node.kind.as_str() };
        // Without a sign for a zero.
        let [x, y, width, height] =
            [node.position.x, node.position.y, node.width, node.height].map(|length| length.round() + 0.0);
        let mut line =
            format!("#{} {kind} {} {} {x},{y} {width}x{height}", self.number(&node.id), node.id, quoted(&node.title));
        // Writing to a String cannot fail.
        if let Some(asset) = &node.asset {
            let _ = match &asset.owner == self.owner {
                true => write!(line, " shows {}", asset.id),
                false => write!(line, " shows {asset}"),
            };
            if let Some(seconds) = node.duration_seconds().filter(|_| node.kind == NodeType::Video) {
                let _ = write!(line, " {seconds} s");
            }
        }
        if let Some(awaited) = node.awaited() {
            let _ = write!(line, " awaits {awaited}");
        } else if let Some(status) = unfilled(node) {
            let _ = write!(line, " {status} (delete, or run again)");
        }
        if let Some(content) = node.content().filter(|content| !content.is_empty()) {
            let _ = write!(line, ": {}", excerpt(content, EXCERPT));
        }
        if let Some(alt) = node.alt_text() {
            let _ = write!(line, " alt {}", excerpt(alt, ALT_EXCERPT));
        }
        line
    }

    fn connected(&self, connection: &Connection) -> String {
        let mut line = format!("-> #{}", self.number(&connection.to));
        if self.connection_ids {
            let _ = write!(line, " {}", connection.id);
        }
        if connection.purpose != Purpose::Flow {
            let _ = write!(line, " {}", connection.purpose);
        }
        if let Some(role) = connection.role {
            let _ = write!(line, " as {role}");
        }
        line
    }

    /// Number of a node of the canvas.
    fn number(&self, id: &NodeId) -> usize {
        self.numbers.get(id).copied().unwrap_or_default()
    }

    fn finish(mut self, nodes: usize) -> String {
        if self.full {
            let hidden = nodes - self.shown;
            let _ = writeln!(self.text, "... truncated at 64 KiB: {hidden} of {nodes} nodes are not shown");
        }
        self.text
    }
}

/// How many of the pictures have no `altText`, unless all have one.
fn without_alt_text(graph: &Graph) -> String {
    let pictures = || graph.nodes().filter(|node| node.shows_picture());
    match pictures().filter(|node| node.alt_text().is_none()).count() {
        0 => String::new(),
        missing => format!(", {missing} of {} without altText", counted(pictures().count(), "picture")),
    }
}

fn excerpt(content: &str, max: usize) -> String {
    match content.char_indices().nth(max) {
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
    use domain::graph::NodeType;
    use domain::id::{AssetHandle, AssetId, CanvasHandle, CanvasId};
    use serde_json::json;

    use super::*;
    use crate::fixture::{asset, at, connection, image, member, section, text, with_job, working};

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
        outline(&record(), &Graph::new(title.into(), 0, nodes, connections), false)
    }

    #[test]
    fn sections_hold_their_members_and_nodes_their_connections() {
        let nodes = vec![text("t"), member(image("a"), "s"), section("s"), image("b")];
        let connections =
            vec![connection("c1", "a", "b", Purpose::Reference), connection("c2", "t", "a", Purpose::Flow)];
        let outline = of("Board", nodes, connections);
        let lines: Vec<&str> = outline.lines().collect();
        assert_eq!(lines[0], r#"canvas:me:c "Board" revision r7 (4 nodes, 2 connections)"#);
        let starts = ["  #1 section s ", "    #2 image a ", "      -> #4 reference"];
        let ends = ["  #3 text t ", "    -> #2", "  #4 image b "];
        for (line, start) in lines[1..].iter().zip(starts.iter().chain(&ends)) {
            assert!(line.starts_with(start), "{line:?} begins with {start:?}");
        }
        assert_eq!(lines.len(), 7);
        let alone = of("Board", vec![text("t"), text("u")], vec![connection("c", "t", "u", Purpose::Flow)]);
        assert!(alone.starts_with(r#"canvas:me:c "Board" revision r7 (2 nodes, 1 connection)"#), "{alone}");
    }

    #[test]
    fn connections_have_their_ids_where_they_are_asked_for() {
        let nodes = vec![text("t"), text("u")];
        let connections =
            vec![connection("c1", "t", "u", Purpose::Flow), connection("c2", "t", "u", Purpose::Reference)];
        let lines = |connection_ids| {
            let graph = Graph::new(String::new(), 0, nodes.clone(), connections.clone());
            let text = outline(&record(), &graph, connection_ids);
            text.lines().filter_map(|line| Some(line.trim().strip_prefix("-> ")?.to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(lines(false), ["#2", "#2 reference"]);
        assert_eq!(lines(true), ["#2 c1", "#2 c2 reference"]);
    }

    #[test]
    fn what_users_wrote_cannot_leave_its_quotes() {
        let mut node = text("t");
        node.title = "\"\n  section node:x".into();
        node.metadata.content = Some("ü".repeat(EXCERPT + 1));
        let outline = of("a\u{1b}\nb", vec![node], vec![]);
        assert_eq!(outline.lines().count(), 2, "{outline}");
        assert!(outline.contains(r#""a\u001b\nb""#) && outline.contains(r#""\"\n  section node:x""#), "{outline}");
        assert!(outline.trim_end().ends_with(&format!("\"{}\"...", "ü".repeat(EXCERPT))), "{outline}");
    }

    #[test]
    fn the_owner_of_the_canvas_is_named_once() {
        let showing = |owner: &str| {
            let asset =
                AssetHandle { owner: AccountUid::from_stored(owner.into()), id: AssetId::from_stored("p".into()) };
            of("", vec![at(Node { asset: Some(asset), ..image("a") }, -0.2, 1.5)], vec![])
        };
        assert_eq!(showing("me").lines().nth(1), Some(r#"  #1 image a "a" 0,2 320x320 shows p"#));
        assert_eq!(showing("other").lines().nth(1), Some(r#"  #1 image a "a" 0,2 320x320 shows asset:other:p"#));
    }

    #[test]
    fn pictures_have_their_alternative_text_and_the_head_counts_those_without() {
        let shown = |id: &str, alt: Option<&str>| {
            let mut node = Node { asset: Some(asset("p")), ..image(id) };
            node.metadata.alt_text = alt.map(str::to_owned);
            node
        };
        let long = "ü".repeat(ALT_EXCERPT);
        let nodes = vec![shown("a", Some(&long)), shown("b", Some("")), shown("c", None), image("slot"), text("t")];
        let outline = of("", nodes, vec![]);
        let lines: Vec<&str> = outline.lines().collect();
        assert!(lines[0].ends_with(" (5 nodes, 0 connections, 1 of 3 pictures without altText)"), "{}", lines[0]);
        assert!(lines[1].ends_with(&format!(" shows p alt {}", quoted(&long))), "{}", lines[1]);
        assert!(lines[2].ends_with(" shows p alt \"\"") && lines[3].ends_with(" shows p"), "{outline}");
        let cut = of("", vec![shown("a", Some(&format!("{long}x")))], vec![]);
        assert!(cut.ends_with(&format!(" alt {}...\n", quoted(&long))), "{cut}");
        assert!(cut.starts_with("canvas:me:c \"\" revision r7 (1 node, 0 connections)\n"), "{cut}");
        assert!(of("", vec![shown("c", None)], vec![]).contains(", 1 of 1 picture without altText)"));
    }

    #[test]
    fn an_empty_slot_says_what_became_of_its_work_and_what_to_do() {
        let ended = |node: Node, status: &str| of("", vec![with_job(node, status)], vec![]);
        for status in ["failed", "canceled"] {
            assert!(ended(image("a"), status).ends_with(&format!(" 320x320 {status} (delete, or run again)\n")));
            let shown = Node { asset: Some(asset("p")), ..image("a") };
            assert!(ended(shown, status).ends_with(" shows p\n"), "shows an earlier image");
        }
        assert!(ended(image("a"), "succeeded").ends_with(" 320x320\n"));
    }

    #[test]
    fn a_node_takes_less_than_forty_tokens() {
        let uuid = |number: u128| uuid::Uuid::from_u128(0x0198_c5a2_11aa_7e0b_9d3c_5a8f_0000_0000 + number).to_string();
        // Half images, two fifths texts that are longer than their excerpts, Sections; one connection from each.
        let nodes = (0..200_u32).map(|index| {
            let id = uuid(index.into());
            let mut node = match index % 10 {
                0..5 => Node { asset: Some(asset(&uuid(u128::from(index) + 1000))), ..image(&id) },
                5..9 => text(&id),
                _ => section(&id),
            };
            node.title = format!("Variation {index}");
            if node.kind == NodeType::Text {
                node.metadata.content = Some("A lamp on a window sill at dusk, snow outside. ".repeat(4));
            }
            at(node, f64::from(index % 14) * 380.0, f64::from(index / 14) * 420.0)
        });
        let purposes = [Purpose::Flow, Purpose::Reference, Purpose::List];
        let nodes: Vec<Node> = nodes.collect();
        let connections = (0..199_u32).map(|index| {
            let purpose = purposes[index as usize % purposes.len()];
            connection(&uuid(u128::from(index) + 2000), &uuid(index.into()), &uuid(u128::from(index) + 1), purpose)
        });
        let connections: Vec<Connection> = connections.collect();
        let text = of("Board", nodes, connections);
        // A token of a usual tokenizer is some four bytes of such text.
        let tokens = text.len() / 4 / 200;
        assert!((25..40).contains(&tokens), "{tokens}");
    }

    #[test]
    fn a_node_that_is_worked_on_names_the_job_or_the_run_that_can_be_read() {
        let mut node = with_job(working(image("a")), "queued");
        assert!(of("", vec![node.clone()], vec![]).contains(" awaits job:1"));
        node.server.job.as_mut().expect("has one").id = None;
        assert!(of("", vec![node], vec![]).contains(" awaits run:1"));
        assert!(!of("", vec![with_job(image("a"), "failed")], vec![]).contains("awaits"));
    }

    #[test]
    fn a_truncated_outline_is_a_beginning_that_says_so() {
        let many = |count: usize| of("T", (0..count).map(|index| text(&format!("{index:05}"))).collect(), vec![]);
        let cut = many(20_000);
        let shown = cut.lines().count() - 2;
        let line = cut.lines().nth(shown).expect("a node").len() + 1;
        assert!(cut.len() <= OUTLINE_MAX && cut.len() > OUTLINE_MAX - LAST_LINE - line, "{}", cut.len());
        assert_eq!(many(shown).lines().count(), shown + 1, "all of them");
        // The number of nodes in the first line is one digit shorter: there is room for no other line.
        assert!(many(shown + 1).lines().last().is_some_and(|last| last.starts_with("... truncated")));
        let last = format!("... truncated at 64 KiB: {} of 20000 nodes are not shown", 20_000 - shown);
        assert_eq!(cut.lines().last(), Some(last.as_str()));
    }
}
