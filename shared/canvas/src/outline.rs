//! A canvas as an indented text for people and prompts. Format: `docs/reference/canvases.md#outline`.
//!
//! There is one line for each node and each connection. Nodes and connections are named by their refs, and have their plain ids where
//! they are asked for, so that a node takes less than 40 tokens on average, and about half without ids. User-authored text is quoted
//! as JSON, so that no title can imitate a line of the outline.

use std::fmt::Write;

use domain::canvas::{CanvasRecord, OutlineText};
use domain::counted;
use domain::graph::{Connection, Node, NodeType, Purpose};
use domain::id::NodeId;
use domain::refs::{ConnectionRef, NodeRef};
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::Graph;
use crate::review::unfilled;

/// Longest page, in bytes.
pub const OUTLINE_MAX: usize = 64 * 1024;
/// Bytes reserved for the line with the cursor.
const LAST_LINE: usize = 384;
/// Characters of a node's text that are shown.
const EXCERPT: usize = 60;
/// Characters of an alternative text that are shown.
const ALT_EXCERPT: usize = 80;
/// Characters of a title where there is no room for more.
const TITLE_EXCERPT: usize = 20;

/// What an outline shows.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// `true` if nodes, connections and assets have their plain ids.
    pub ids: bool,
    /// `true` if connections are named.
    pub connections: bool,
    /// How much of the texts is shown.
    pub texts: OutlineText,
    /// Only the nodes that match, without connections.
    pub query: Option<Query>,
    /// Only this Section and its members.
    pub section: Option<&'a NodeId>,
    /// Longest page with its last line, in bytes.
    pub bytes_max: usize,
    /// Where the page begins.
    pub after: Option<&'a Position>,
}

impl Default for View<'_> {
    fn default() -> Self {
        Self {
            ids: true,
            connections: false,
            texts: OutlineText::Short,
            query: None,
            section: None,
            bytes_max: OUTLINE_MAX,
            after: None,
        }
    }
}

/// Words that title, text, prompt and tags of a node contain, whatever their case and accents.
#[derive(Clone, Debug)]
pub struct Query(Vec<String>);

impl Query {
    /// `None` without a word.
    pub fn parse(text: &str) -> Option<Self> {
        let words: Vec<String> = folded(text).split_whitespace().map(str::to_owned).collect();
        (!words.is_empty()).then_some(Self(words))
    }

    fn matches(&self, node: &Node) -> bool {
        let prompt = node.metadata.part("prompt", |metadata| metadata.prompt.as_deref());
        let tags = node.metadata.part("tags", |metadata| metadata.tags.as_deref());
        let parts = [Some(node.title.as_str()), node.content(), prompt].into_iter().flatten();
        let parts: Vec<String> = parts.chain(tags.into_iter().flatten().map(String::as_str)).map(folded).collect();
        self.0.iter().all(|word| parts.iter().any(|part| part.contains(word)))
    }
}

fn folded(text: &str) -> String {
    text.nfd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase).collect()
}

/// The last line of a page, by the refs of what it names. It is found again after changes of the canvas: what was deleted since is taken
/// for the place of its ref.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// The revision of the first page.
    #[serde(rename = "r")]
    pub revision: String,
    /// The Section that the node is or belongs to.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    section: Option<i32>,
    #[serde(rename = "n")]
    node: i32,
    /// The last connection of the node that was shown, 0 before the first, if not all were.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    connection: Option<i32>,
}

/// A page of an outline.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub text: String,
    /// Where the next page begins, if there is one.
    pub next: Option<Position>,
}

/// A page of the outline: Sections with their members, then all other nodes, each followed by its outgoing connections, all in order of
/// creation. It has room for a last line with the cursor of the next page.
pub fn outline(canvas: &CanvasRecord, graph: &Graph, view: &View<'_>) -> Page {
    let items = items(graph, view);
    let start = view.after.map_or(Start::default(), |after| Start::of(&items, after));
    let revision = view.after.map_or(&canvas.revision, |after| &after.revision);
    let mut lines = Lines { canvas, graph, view, text: String::new(), is_empty: true };
    lines.head();
    let mut last = view.after.cloned();
    for (at, item) in items.iter().enumerate().skip(start.item) {
        let shown = start.connection.filter(|_| at == start.item);
        let described = match shown {
            Some(_) => lines.push(item.depth, &format!("{} (continued)", name(item.node))),
            None => lines.node(item),
        };
        if !described {
            return Page { text: lines.text, next: last };
        }
        let position = |connection| Position { revision: revision.clone(), connection, ..item.position() };
        if view.query.is_none() {
            let outgoing: Vec<&Connection> = graph.outgoing(&item.node.id).collect();
            for at in after_connection(&outgoing, shown)..outgoing.len() {
                let before = if at == 0 { Some(0) } else { Some(connection_number(outgoing[at - 1])) };
                let here = position(before);
                if !lines.push(item.depth + 1, &lines.connected(outgoing[at])) {
                    return Page { text: lines.text, next: Some(here) };
                }
            }
        }
        last = Some(position(None));
    }
    Page { text: lines.text, next: None }
}

/// A node in the order of the outline.
struct Item<'a> {
    depth: usize,
    /// The Section that it is or belongs to.
    section: Option<&'a Node>,
    node: &'a Node,
}

impl Item<'_> {
    fn position(&self) -> Position {
        Position {
            revision: String::new(),
            section: self.section.map(number),
            node: number(self.node),
            connection: None,
        }
    }

    /// Its place among all items: Sections first, a Section before its members.
    fn is_after(&self, position: &Position) -> bool {
        match (self.section.map(number), position.section) {
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (None, None) => number(self.node) > position.node,
            (Some(section), Some(of)) if section != of => section > of,
            (Some(section), Some(_)) => {
                number(self.node) != section && (position.node == section || number(self.node) > position.node)
            }
        }
    }
}

fn items<'a>(graph: &'a Graph, view: &View<'_>) -> Vec<Item<'a>> {
    let sections = graph.nodes().filter(|node| node.is_section());
    let sections = sections.filter(|node| view.section.is_none_or(|section| *section == node.id));
    let inside = sections.flat_map(|section| {
        let members = graph.members(&section.id).map(|node| (2, node));
        std::iter::once((1, section)).chain(members).map(|(depth, node)| Item { depth, section: Some(section), node })
    });
    let is_outside = |node: &&Node| view.section.is_none() && !node.is_section() && node.section_id().is_none();
    let outside = graph.nodes().filter(is_outside).map(|node| Item { depth: 1, section: None, node });
    let all = inside.chain(outside);
    all.filter(|item| view.query.as_ref().is_none_or(|query| query.matches(item.node))).collect()
}

/// Where a page begins.
#[derive(Default)]
struct Start {
    item: usize,
    /// Set if the connections of the item are continued after this one.
    connection: Option<i32>,
}

impl Start {
    fn of(items: &[Item<'_>], after: &Position) -> Self {
        let is_last = |item: &Item<'_>| {
            item.position() == Position { revision: String::new(), connection: None, ..after.clone() }
        };
        match (items.iter().position(is_last), after.connection) {
            (Some(item), Some(connection)) => Self { item, connection: Some(connection) },
            (Some(item), None) => Self { item: item + 1, connection: None },
            (None, _) => {
                let next = items.iter().position(|item| item.is_after(after));
                Self { item: next.unwrap_or(items.len()), connection: None }
            }
        }
    }
}

fn number(node: &Node) -> i32 {
    node.short.map_or(0, NodeRef::number)
}

fn connection_number(connection: &Connection) -> i32 {
    connection.short.map_or(0, ConnectionRef::number)
}

/// The index of the first connection after the one of this number.
fn after_connection(outgoing: &[&Connection], shown: Option<i32>) -> usize {
    let Some(shown) = shown.filter(|shown| *shown > 0) else { return 0 };
    match outgoing.iter().position(|connection| connection_number(connection) == shown) {
        Some(at) => at + 1,
        None => outgoing.iter().position(|it| connection_number(it) > shown).unwrap_or(outgoing.len()),
    }
}

/// The ref of a node, or its handle until it has one.
fn name(node: &Node) -> String {
    node.short.map_or_else(|| node.id.handle(), |short| short.to_string())
}

/// How much a line says of a node.
#[derive(Clone, Copy)]
struct Detail {
    ids: bool,
    texts: OutlineText,
    title_max: usize,
}

struct Lines<'a> {
    canvas: &'a CanvasRecord,
    graph: &'a Graph,
    view: &'a View<'a>,
    text: String,
    /// `true` until a node is shown.
    is_empty: bool,
}

impl Lines<'_> {
    /// Adds a line, if the page has room for it.
    fn push(&mut self, depth: usize, line: &str) -> bool {
        let width = 2 * depth;
        // With its line break.
        let has_room = self.text.len() + width + line.len() < self.view.bytes_max - LAST_LINE;
        if has_room {
            // Writing to a String cannot fail.
            let _ = writeln!(self.text, "{:width$}{line}", "");
        }
        has_room
    }

    fn head(&mut self) {
        let Self { canvas, graph, view, .. } = self;
        let handle = match &canvas.slug {
            Some(slug) if !view.ids => slug.clone(),
            _ => canvas.handle.to_string(),
        };
        let state = match view.after {
            Some(after) if after.revision == canvas.revision => "continued".to_owned(),
            Some(after) => format!("continued, changed since the first page, which was of revision {}", after.revision),
            None => format!(
                "{}, {}{}",
                counted(graph.node_count(), "node"),
                counted(graph.connection_count(), "connection"),
                without_alt_text(graph)
            ),
        };
        let line = |title: &str| format!("{handle} {title} revision {} ({state})", canvas.revision);
        let whole = line(&quoted(graph.title()));
        let line = match whole.len() > view.bytes_max / 4 {
            true => line(&excerpt(graph.title(), TITLE_EXCERPT)),
            false => whole,
        };
        self.text.push_str(&line);
        self.text.push('\n');
    }

    /// Adds the line of a node. On a page of its own it is cut to what there is room for.
    fn node(&mut self, item: &Item<'_>) -> bool {
        let wanted = Detail { ids: self.view.ids, texts: self.view.texts, title_max: usize::MAX };
        let cut = [
            Detail { texts: OutlineText::Short, ..wanted },
            Detail { ids: false, texts: OutlineText::None, title_max: TITLE_EXCERPT },
        ];
        let attempts = if self.is_empty { [&[wanted][..], &cut].concat() } else { vec![wanted] };
        let is_shown = attempts.into_iter().any(|detail| self.push(item.depth, &self.described(item.node, detail)));
        self.is_empty &= !is_shown;
        is_shown
    }

    fn described(&self, node: &Node, Detail { ids, texts, title_max }: Detail) -> String {
        let kind = if node.is_section() { "section" } else { node.kind.as_str() };
        // Without a sign for a zero.
        let [x, y, width, height] =
            [node.position.x, node.position.y, node.width, node.height].map(|length| length.round() + 0.0);
        let mut line = format!("{} {kind}", name(node));
        // Writing to a String cannot fail.
        if ids {
            let _ = write!(line, " {}", node.id);
        }
        let _ = write!(line, " {} {x},{y} {width}x{height}", excerpt(&node.title, title_max));
        if let Some(asset) = &node.asset {
            let _ = match (ids, asset.owner == self.canvas.handle.owner) {
                (false, _) => write!(line, " shows"),
                (true, true) => write!(line, " shows {}", asset.id),
                (true, false) => write!(line, " shows {asset}"),
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
        let (text_max, alt_max) = match texts {
            OutlineText::Short => (EXCERPT, ALT_EXCERPT),
            OutlineText::Full => (usize::MAX, usize::MAX),
            OutlineText::None => return line,
        };
        if let Some(content) = node.content().filter(|content| !content.is_empty()) {
            let _ = write!(line, ": {}", excerpt(content, text_max));
        }
        if let Some(alt) = node.alt_text() {
            let _ = write!(line, " alt {}", excerpt(alt, alt_max));
        }
        line
    }

    fn connected(&self, connection: &Connection) -> String {
        let target = self.graph.node(&connection.to).map_or_else(|| connection.to.handle(), name);
        let mut line = format!("-> {target}");
        if self.view.connections {
            if let Some(short) = connection.short {
                let _ = write!(line, " {short}");
            }
            if self.view.ids {
                let _ = write!(line, " {}", connection.id);
            }
        }
        if connection.purpose != Purpose::Flow {
            let _ = write!(line, " {}", connection.purpose);
        }
        if let Some(role) = connection.role {
            let _ = write!(line, " as {role}");
        }
        line
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

#[cfg(test)]
mod tests {
    use domain::Timestamp;
    use domain::graph::NodeType;
    use domain::id::{AccountUid, AssetHandle, AssetId, CanvasHandle, CanvasId};
    use domain::refs::RefCounters;
    use serde_json::json;

    use super::*;
    use crate::fixture::{asset, at, connection, image, member, section, text, with_job, working};

    fn record() -> CanvasRecord {
        let at: Timestamp = serde_json::from_value(json!("2026-01-02T03:04:05.678Z")).expect("a time");
        CanvasRecord {
            key: 1,
            slug: Some("~7kq2m9xa".into()),
            handle: CanvasHandle { owner: AccountUid::from_stored("me".into()), id: CanvasId::from_stored("c".into()) },
            canvas_type: None,
            title: String::new(),
            revision: "r7".into(),
            sequence: 7,
            referenced: 7,
            refs: RefCounters::default(),
            node_count: 0,
            connection_count: 0,
            graph_bytes: 0,
            created_at: at,
            updated_at: at,
        }
    }

    /// The graph of these nodes and connections, with refs in their order.
    fn board(title: &str, mut nodes: Vec<Node>, mut connections: Vec<Connection>) -> Graph {
        for (node, number) in nodes.iter_mut().zip(1..) {
            node.short = Some(NodeRef::new(number));
        }
        for (connection, number) in connections.iter_mut().zip(1..) {
            connection.short = Some(ConnectionRef::new(number));
        }
        Graph::new(title.into(), 0, nodes, connections)
    }

    fn of(title: &str, nodes: Vec<Node>, connections: Vec<Connection>) -> String {
        outline(&record(), &board(title, nodes, connections), &View::default()).text
    }

    #[test]
    fn sections_hold_their_members_and_nodes_their_connections() {
        let nodes = vec![text("t"), member(image("a"), "s"), section("s"), image("b")];
        let connections =
            vec![connection("c1", "a", "b", Purpose::Reference), connection("c2", "t", "a", Purpose::Flow)];
        let outline = of("Board", nodes, connections);
        let lines: Vec<&str> = outline.lines().collect();
        assert_eq!(lines[0], r#"canvas:me:c "Board" revision r7 (4 nodes, 2 connections)"#);
        let starts = ["  n3 section s ", "    n2 image a ", "      -> n4 reference"];
        let ends = ["  n1 text t ", "    -> n2", "  n4 image b "];
        for (line, start) in lines[1..].iter().zip(starts.iter().chain(&ends)) {
            assert!(line.starts_with(start), "{line:?} begins with {start:?}");
        }
        assert_eq!(lines.len(), 7);
        let alone = of("Board", vec![text("t"), text("u")], vec![connection("c", "t", "u", Purpose::Flow)]);
        assert!(alone.starts_with(r#"canvas:me:c "Board" revision r7 (2 nodes, 1 connection)"#), "{alone}");
    }

    #[test]
    fn connections_are_named_where_they_are_asked_for() {
        let nodes = vec![text("t"), text("u")];
        let connections =
            vec![connection("k1", "t", "u", Purpose::Flow), connection("k2", "t", "u", Purpose::Reference)];
        let lines = |connections_named, ids| {
            let graph = board("", nodes.clone(), connections.clone());
            let text =
                outline(&record(), &graph, &View { connections: connections_named, ids, ..View::default() }).text;
            text.lines().filter_map(|line| Some(line.trim().strip_prefix("-> ")?.to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(lines(false, true), ["n2", "n2 reference"]);
        assert_eq!(lines(true, true), ["n2 c1 k1", "n2 c2 k2 reference"]);
        assert_eq!(lines(true, false), ["n2 c1", "n2 c2 reference"]);
    }

    #[test]
    fn with_refs_alone_there_is_no_plain_id() {
        let shown = Node { asset: Some(asset("picture")), ..image("node-id") };
        let graph =
            board("Board", vec![shown, text("other-id")], vec![connection("k", "node-id", "other-id", Purpose::List)]);
        let text = outline(&record(), &graph, &View { ids: false, ..View::default() }).text;
        assert_eq!(
            text,
            "~7kq2m9xa \"Board\" revision r7 (2 nodes, 1 connection, 1 of 1 picture without altText)\n\
             \u{20} n1 image \"node-id\" 0,0 320x320 shows\n\u{20}   -> n2 list\n\u{20} n2 text \"other-id\" 0,0 320x160\n"
        );
    }

    #[test]
    fn a_node_without_a_ref_is_named_by_its_handle() {
        let graph =
            Graph::new(String::new(), 0, vec![text("a"), text("b")], vec![connection("k", "a", "b", Purpose::Flow)]);
        let text = outline(&record(), &graph, &View::default()).text;
        assert!(text.contains("  node:a text a ") && text.contains("-> node:b"), "{text}");
    }

    #[test]
    fn texts_are_shown_as_their_beginnings_whole_or_not_at_all() {
        let mut node = Node { asset: Some(asset("p")), ..image("a") };
        node.metadata.alt_text = Some("y".repeat(ALT_EXCERPT + 1));
        let mut note = text("t");
        note.metadata.content = Some("x".repeat(EXCERPT + 1));
        let graph = board("", vec![node, note], vec![]);
        let lines = |texts| outline(&record(), &graph, &View { texts, ..View::default() }).text;
        let (text, alt) = ("x".repeat(EXCERPT), "y".repeat(ALT_EXCERPT));
        let short = lines(OutlineText::Short);
        assert!(
            short.contains(&format!(": \"{text}\"...\n")) && short.contains(&format!(" alt \"{alt}\"...\n")),
            "{short}"
        );
        let full = lines(OutlineText::Full);
        assert!(full.contains(&format!(": \"{text}x\"\n")) && full.contains(&format!(" alt \"{alt}y\"\n")), "{full}");
        let none = lines(OutlineText::None);
        assert!(none.contains(" shows p\n") && none.ends_with(" 320x160\n"), "{none}");
    }

    #[test]
    fn a_query_finds_every_word_in_title_text_prompt_and_tags_whatever_case_and_accents() {
        let mut note = text("a");
        note.title = "Crème brûlée".into();
        note.metadata.content = Some("For the SUMMER menu".into());
        let mut slot = image("b");
        slot.metadata.prompt = Some("a (red) lamp".into());
        slot.metadata.tags = Some(vec!["Hero".into()]);
        let graph = board("", vec![note, slot], vec![connection("k", "a", "b", Purpose::Flow)]);
        let found = |query: &str| {
            let query = Query::parse(query);
            assert!(query.is_some());
            let text = outline(&record(), &graph, &View { query, ..View::default() }).text;
            text.lines()
                .skip(1)
                .map(|line| line.trim().split(' ').next().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        for (query, nodes) in [
            ("creme", &["n1"][..]),
            ("BRÛLÉE summer", &["n1"]),
            ("hero lamp", &["n2"]),
            ("(red)", &["n2"]),
            (".*", &[]),
            ("lamp summer", &[]),
            ("e", &["n1", "n2"]),
        ] {
            assert_eq!(found(query), nodes, "{query}");
        }
        assert!(Query::parse(" \t").is_none());
    }

    #[test]
    fn a_section_is_shown_with_its_members_and_their_connections() {
        let nodes = vec![section("s"), member(text("a"), "s"), section("other"), text("out")];
        let graph = board("", nodes, vec![connection("k", "a", "out", Purpose::Flow)]);
        let section = NodeId::parse("s").expect("an id");
        let text = outline(&record(), &graph, &View { section: Some(&section), ids: false, ..View::default() }).text;
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert!(lines[0].starts_with("  n1 section ") && lines[1].starts_with("    n2 text "), "{text}");
        assert_eq!(lines[2..], ["      -> n4"]);
    }

    /// Every page, without its first line and the lines that continue a node.
    fn pages(graph: &Graph, view: &View<'_>) -> Vec<String> {
        let mut pages: Vec<String> = Vec::new();
        let mut after: Option<Position> = None;
        loop {
            let page = outline(&record(), graph, &View { after: after.as_ref(), ..view.clone() });
            assert!(page.text.len() + LAST_LINE <= view.bytes_max, "{}", page.text.len());
            let lines: Vec<&str> = page.text.lines().skip(1).filter(|line| !line.ends_with(" (continued)")).collect();
            assert!(!lines.is_empty() || pages.is_empty(), "a page goes on");
            pages.push(lines.join("\n"));
            match page.next {
                Some(next) => after = Some(next),
                None => return pages,
            }
        }
    }

    #[test]
    fn the_pages_together_are_the_outline() {
        let mut nodes: Vec<Node> = Vec::new();
        for at in 0..60 {
            let name = format!("node-{at}");
            let mut node = match at % 5 {
                0 => section(&name),
                1 | 2 => member(text(&name), &format!("node-{}", at - at % 5)),
                _ => text(&name),
            };
            node.metadata.content = Some("word ".repeat(at));
            nodes.push(node);
        }
        let connections = (0..120)
            .map(|at| connection(&format!("k{at}"), "node-3", &format!("node-{}", at % 60), Purpose::ALL[at / 60]))
            .collect();
        let graph = board("Board", nodes, connections);
        for texts in [OutlineText::Short, OutlineText::None] {
            for connections in [true, false] {
                let whole = View { texts, connections, ..View::default() };
                let [all] = &pages(&graph, &whole)[..] else { panic!("one page") };
                for bytes_max in [1024, 1500, 4096] {
                    let pages = pages(&graph, &View { bytes_max, ..whole.clone() });
                    assert!(pages.len() > 1);
                    assert_eq!(pages.join("\n"), *all, "{bytes_max}");
                }
            }
        }
    }

    #[test]
    fn a_page_goes_on_after_what_was_deleted_and_says_that_the_canvas_changed() {
        let nodes = || (0..40).map(|at| text(&format!("node-{at}"))).collect::<Vec<_>>();
        let graph = board("Board", nodes(), vec![]);
        let view = View { bytes_max: 1024, ..View::default() };
        let first = outline(&record(), &graph, &view);
        let next = first.next.expect("there is more");
        let last = graph.nodes().find(|node| number(node) == next.node).expect("the last node").id.clone();
        let left = graph.nodes().filter(|node| node.id != last).cloned().collect();
        let graph = Graph::new("Board".into(), 0, left, vec![]);
        let record = CanvasRecord { revision: "r8".into(), ..record() };
        let second = outline(&record, &graph, &View { after: Some(&next), ..view }).text;
        let head =
            "canvas:me:c \"Board\" revision r8 (continued, changed since the first page, which was of revision r7)";
        assert_eq!(second.lines().next(), Some(head));
        assert!(
            second.lines().nth(1).is_some_and(|line| line.starts_with(&format!("  n{} ", next.node + 1))),
            "{second}"
        );
    }

    #[test]
    fn a_line_that_no_page_has_room_for_is_cut() {
        let mut node = text("a");
        node.metadata.content = Some("\u{1}".repeat(24_000));
        node.title = "\u{1}".repeat(160);
        let graph = board(&"\u{1}".repeat(160), vec![node], vec![]);
        let page = outline(&record(), &graph, &View { texts: OutlineText::Full, bytes_max: 1024, ..View::default() });
        assert_eq!(page.next, None);
        assert!(page.text.lines().nth(1).is_some_and(|line| line.starts_with("  n1 text ")), "{}", page.text);
        assert!(page.text.len() + LAST_LINE <= 1024);
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
        assert_eq!(showing("me").lines().nth(1), Some(r#"  n1 image a "a" 0,2 320x320 shows p"#));
        assert_eq!(showing("other").lines().nth(1), Some(r#"  n1 image a "a" 0,2 320x320 shows asset:other:p"#));
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
}
