use domain::canvas::Theme;
use domain::graph::{NodeType, Position, Purpose, Role};
use domain::limits::{CANVAS_CONNECTIONS_MAX, CANVAS_NODES_MAX, COORDINATE_MAX, NODE_SIDE_MAX};
use domain::refs::NodeRef;
use proptest::prelude::*;
use roxmltree::Document;
use serde_json::json;

use super::*;
use crate::fixture::{
    asset, at, connection, image, member, node, object, section, sticky, text, video, with_job, written as stored,
};

fn draw(nodes: &[Node], connections: &[Connection]) -> String {
    Drawing::new("Board", nodes, connections, Style::default()).finish(|_| EmbeddedImage::Pending)
}

fn sized(mut node: Node, width: f64, height: f64) -> Node {
    (node.width, node.height) = (width, height);
    node
}

fn with(mut node: Node, metadata: serde_json::Value) -> Node {
    node.metadata.merge(&object(metadata), &[]);
    node
}

fn showing(mut node: Node) -> Node {
    node.asset = Some(asset(node.id.as_str()));
    node
}

/// `x`, `y`, `width`, `height`.
fn view_box(document: &str) -> [f64; 4] {
    let parsed = Document::parse(document).expect("well-formed");
    let numbers = parsed.root_element().attribute("viewBox").expect("a viewBox");
    let numbers: Vec<f64> = numbers.split(' ').map(|number| number.parse().expect("a number")).collect();
    numbers.try_into().expect("four of them")
}

/// All text in the document except its title and those of nodes; lines are joined by `|`.
fn written(document: &str) -> String {
    let parsed = Document::parse(document).expect("well-formed");
    let texts = parsed.descendants().filter(|node| node.has_tag_name("text")).filter_map(|node| node.text());
    texts.map(|text| text.trim_matches(['\u{202b}', '\u{202c}'])).collect::<Vec<_>>().join("|")
}

#[test]
fn a_document_is_svg_1_1_and_refers_to_nothing_outside() {
    let nodes = [showing(image("a")), text("b"), video("c"), section("s")];
    let document = Drawing::new("A <board>", &nodes, &[connection("c1", "a", "b", Purpose::Flow)], Style::default())
        .finish(|_| EmbeddedImage::Ready { media_type: "image/png", bytes: b"picture", ratio: 1.0 });
    let parsed = Document::parse(&document).expect("well-formed");
    let root = parsed.root_element();
    assert_eq!((root.tag_name().name(), root.tag_name().namespace()), ("svg", Some("http://www.w3.org/2000/svg")));
    assert_eq!(root.attribute("version"), Some("1.1"));
    assert_eq!(root.first_element_child().and_then(|title| title.text()), Some("A <board>"));
    let allowed = ["svg", "title", "defs", "marker", "path", "rect", "circle", "g", "text", "clipPath", "image"];
    for element in parsed.descendants().filter(|node| node.is_element()) {
        assert!(allowed.contains(&element.tag_name().name()), "{}", element.tag_name().name());
        for attribute in element.attributes() {
            assert!(!attribute.name().starts_with("on"), "{}", attribute.name());
            if attribute.name() == "href" {
                assert_eq!(attribute.value(), "data:image/png;base64,cGljdHVyZQ==");
            }
            assert!(!attribute.value().contains("url(") || attribute.value().starts_with("url(#"));
        }
    }
}

#[test]
fn ids_are_unique() {
    let nodes: Vec<Node> = (0..40).map(|index| showing(image(&format!("n{index}")))).collect();
    let document = Drawing::new("", &nodes, &[], Style::default()).finish(|_| EmbeddedImage::Ready {
        media_type: "image/png",
        bytes: b"",
        ratio: 1.0,
    });
    let parsed = Document::parse(&document).expect("well-formed");
    let mut seen = std::collections::HashSet::new();
    assert!(parsed.descendants().filter_map(|node| node.attribute("id")).all(|id| seen.insert(id)));
    assert!(seen.contains("node-n39") && seen.contains("clip-39"));
}

#[test]
fn the_view_box_holds_every_node_with_its_margin() {
    assert_eq!(view_box(&draw(&[at(image("a"), 100.0, -50.0)], &[])), [60.0, -90.0, 400.0, 400.0]);
    let far = [at(sticky("a"), -COORDINATE_MAX, -COORDINATE_MAX), at(sticky("b"), COORDINATE_MAX, COORDINATE_MAX)];
    assert_eq!(view_box(&draw(&far, &[])), [-10_000_040.0, -10_000_040.0, 20_000_320.0, 20_000_320.0]);
    let [.., width, height] = view_box(&draw(&[], &[]));
    assert!(width >= 400.0 && height >= 200.0, "an empty canvas is a sheet");
}

#[test]
fn sections_lie_behind_connections_and_those_behind_nodes() {
    let nodes = [member(text("n"), "s"), text("m"), section("s")];
    let document = draw(&nodes, &[connection("c", "n", "m", Purpose::List)]);
    let place = |what: &str| document.find(what).unwrap_or_else(|| panic!("{what} is missing"));
    assert!(place("node-s") < place("url(#arrow-list)") && place("url(#arrow-list)") < place("node-n"));
}

#[test]
fn what_has_the_higher_z_index_is_painted_later_and_equals_in_the_order_of_creation() {
    let nodes = [
        with(text("top"), json!({"zIndex": 7})),
        text("a"),
        with(text("bottom"), json!({"zIndex": -3})),
        text("b"),
        with(text("huge"), json!({"zIndex": u64::MAX})),
    ];
    let document = draw(&nodes, &[]);
    let mut order = ["top", "a", "bottom", "b", "huge"]
        .map(|name| (document.find(&format!("node-{name}\"")).expect("is there"), name));
    order.sort_unstable();
    assert_eq!(order.map(|(_, name)| name), ["bottom", "a", "b", "top", "huge"]);
}

#[test]
fn each_purpose_has_a_stroke_and_an_arrow_of_its_own() {
    let nodes = [image("a"), at(video("b"), 900.0, 0.0)];
    for purpose in Purpose::ALL {
        let document = draw(&nodes, &[connection("c", "a", "b", *purpose)]);
        assert!(document.contains(&format!("marker-end=\"url(#arrow-{purpose})\"><path d=\"M")), "{purpose}");
        assert!(document.contains(&format!("<marker id=\"arrow-{purpose}\"")), "{purpose}");
    }
}

#[test]
fn a_role_is_written_on_its_connection() {
    let mut reference = connection("c", "a", "b", Purpose::Reference);
    reference.role = Some(Role::Texture);
    let nodes = [image("a"), at(image("b"), 900.0, 0.0)];
    assert!(written(&draw(&nodes, &[reference])).starts_with("texture|"));
}

#[test]
fn a_connection_without_both_ends_is_not_drawn() {
    let document = draw(&[image("a")], &[connection("c", "a", "gone", Purpose::Flow)]);
    assert!(!document.contains("marker-end"));
}

#[test]
fn what_an_image_node_lacks_is_said() {
    for (node, label) in [
        (image("a"), "Empty slot"),
        (with_job(image("a"), "queued"), "Queued"),
        (with_job(image("a"), "running"), "Running"),
        (with_job(image("a"), "failed"), "Failed"),
        (with_job(image("a"), "canceled"), "Canceled"),
        (with_job(image("a"), "succeeded"), "Empty slot"),
        (with_job(image("a"), "of another age"), "Empty slot"),
        (with_job(video("a"), "queued"), "Queued"),
    ] {
        let document = draw(std::slice::from_ref(&node), &[]);
        assert_eq!(written(&document).split('|').next(), Some(label), "{:?}", node.server);
    }
    let slot = |content: EmbeddedImage<'_>| {
        written(&Drawing::new("", &[showing(image("Lamp"))], &[], Style::default()).finish(|_| content))
    };
    assert_eq!(slot(EmbeddedImage::Pending), "Preview not ready|Lamp");
    assert_eq!(slot(EmbeddedImage::Unreadable), "Image cannot be read|Lamp");
    assert_eq!(slot(EmbeddedImage::LeftOut), "Image not shown|Lamp");
    assert_eq!(slot(EmbeddedImage::Ready { media_type: "image/png", bytes: b"x", ratio: 1.0 }), "Lamp");
}

#[test]
fn an_image_that_is_being_replaced_shows_both() {
    let document = draw(&[with_job(showing(image("Lamp")), "running")], &[]);
    assert_eq!(written(&document), "Preview not ready|Running|Lamp");
}

#[test]
fn an_image_above_a_caption_fills_its_area_unless_that_would_cut_much_of_it() {
    let fit = |title: &str, ratio| {
        let mut node = showing(sized(image("a"), 400.0, 300.0));
        node.title = title.to_owned();
        let document = Drawing::new("", &[node], &[], Style::default()).finish(|_| EmbeddedImage::Ready {
            media_type: "image/png",
            bytes: b"",
            ratio,
        });
        let parsed = Document::parse(&document).expect("well-formed");
        let image = parsed.descendants().find(|node| node.has_tag_name("image")).expect("an image");
        image.attribute("preserveAspectRatio").map(ToOwned::to_owned)
    };
    // The area is 400 by 272 with a caption, and 400 by 300 without.
    assert_eq!(fit("a", 1.6).as_deref(), Some("xMidYMid slice"));
    assert_eq!(fit("a", 1.0).as_deref(), Some("xMidYMid meet"));
    assert_eq!(fit("a", 3.0).as_deref(), Some("xMidYMid meet"));
    assert_eq!(fit("a", 400.0 / 271.5).as_deref(), Some("none"), "its size is rounded");
    assert_eq!(fit("", 1.4).as_deref(), Some("xMidYMid meet"));
}

fn draw_in(theme: Theme, nodes: &[Node]) -> String {
    Drawing::new("", nodes, &[], Style { theme, ..Style::default() }).finish(|_| EmbeddedImage::Pending)
}

/// The color of each text, and of the last card or frame before it.
fn texts_on_grounds(document: &str) -> Vec<(xml::Rgb, xml::Rgb)> {
    let parsed = Document::parse(document).expect("well-formed");
    let color = |node: roxmltree::Node<'_, '_>| node.attribute("fill").and_then(xml::Rgb::parse);
    let mut ground = None;
    let mut found = Vec::new();
    for node in parsed.descendants() {
        match node.tag_name().name() {
            "rect" | "path" if node.attribute("fill-opacity").is_none() => ground = color(node).or(ground),
            "text" => found.extend(node.ancestors().find_map(color).zip(ground)),
            _ => {}
        }
    }
    found
}

#[test]
fn ground_cards_notes_sections_and_images_differ_in_each_theme() {
    for theme in Theme::ALL {
        let fill = |node: Option<Node>| {
            let document = draw_in(*theme, &Vec::from_iter(node));
            let parsed = Document::parse(&document).expect("well-formed");
            let fills =
                parsed.descendants().filter(|it| it.has_tag_name("rect") && it.attribute("fill-opacity").is_none());
            fills.filter_map(|it| it.attribute("fill").and_then(xml::Rgb::parse)).next_back().expect("a fill")
        };
        let ground = fill(None);
        let nodes = [text("t"), sticky("n"), section("s"), image("i"), video("v")];
        let mut fills: Vec<xml::Rgb> = nodes.map(|node| fill(Some(node))).into_iter().chain([ground]).collect();
        fills.sort_by_key(ToString::to_string);
        fills.dedup();
        assert_eq!(fills.len(), 6, "{theme}: {fills:?}");
        assert_eq!(ground.contrast(xml::Rgb(0, 0, 0)) < 2.0, *theme == Theme::Dark, "{theme}");
    }
}

proptest! {
    #[test]
    fn text_is_legible_whatever_its_color(color: [u8; 3], dark: bool) {
        let theme = if dark { Theme::Dark } else { Theme::Light };
        let [r, g, b] = color;
        let metadata = json!({"color": xml::Rgb(r, g, b).to_string(), "content": "words", "prompt": "a lamp"});
        for node in [text("t"), sticky("n"), section("s"), image("i"), with_job(image("j"), "failed")] {
            let document = draw_in(theme, &[with(sized(node, 400.0, 400.0), metadata.clone())]);
            let texts = texts_on_grounds(&document);
            prop_assert!(texts.len() >= 2, "title and text: {}", document);
            for (ink, ground) in texts {
                prop_assert!(ink.contrast(ground) >= 4.5, "{} on {}: {}", ink, ground, document);
            }
        }
    }
}

#[test]
fn the_title_of_a_section_has_its_font_size() {
    let size_of = |metadata: serde_json::Value| {
        let node = with(sized(section("s"), 900.0, 900.0), metadata);
        let document = draw(&[node], &[]);
        let parsed = Document::parse(&document).expect("well-formed");
        let title = parsed.descendants().find(|node| node.attribute("font-weight") == Some("bold"));
        title.and_then(|title| title.attribute("font-size").map(ToOwned::to_owned)).expect("a title")
    };
    assert_eq!(size_of(json!({"section": true})), "28");
    assert_eq!(size_of(json!({"section": true, "fontSize": 80})), "80");
    assert_eq!(size_of(json!({"section": true, "fontSize": 12.5})), "12.5");
    assert_eq!(size_of(json!({"section": true, "fontSize": 1000})), "450", "half of its height at most");
}

#[test]
fn images_beyond_the_room_are_left_out_and_the_document_stays_within_its_bound() {
    let nodes: Vec<Node> = (0..300).map(|index| showing(image(&format!("n{index}")))).collect();
    let drawing = Drawing::new("", &nodes, &[], Style::default());
    let bytes = vec![7; 60_000];
    let fitting = drawing.room() / embedded_len(bytes.len());
    assert!((90..300).contains(&fitting), "{fitting}");
    let document = drawing.finish(|_| EmbeddedImage::Ready { media_type: "image/jpeg", bytes: &bytes, ratio: 1.0 });
    assert!(document.len() <= DOCUMENT_BYTES_MAX, "{}", document.len());
    assert_eq!(document.matches("<image ").count(), fitting);
    assert_eq!(document.matches("Image not shown").count(), 300 - fitting);
}

#[test]
fn slots_come_in_the_order_of_painting() {
    let nodes = [with(showing(image("top")), json!({"zIndex": 1})), showing(image("low")), image("empty"), text("t")];
    let drawing = Drawing::new("", &nodes, &[], Style::default());
    assert_eq!(drawing.slots().map(NodeId::as_str).collect::<Vec<_>>(), ["low", "top"]);
}

#[test]
fn text_is_escaped_wrapped_and_cut_to_its_frame() {
    let hostile = "</text></svg><script>alert('x')</script>&lt;\0\u{1b}\u{ffff}";
    let document = draw(&[with(text("a"), json!({"content": hostile}))], &[]);
    let shown = written(&document).replace('|', "");
    assert!(shown.contains("</text></svg><script>alert('x')</script>&lt;\u{fffd}\u{fffd}\u{fffd}"), "{shown}");
    let mut titled = text("a");
    titled.title = "<script>\0".into();
    assert!(written(&draw(&[titled], &[])).contains("<script>\u{fffd}"));
    let long = draw(&[with(text("a"), json!({"content": "word ".repeat(4000)}))], &[]);
    assert!(written(&long).ends_with('…') && long.len() < 20_000, "{}", long.len());
    let wide = draw(&[sized(with(text("a"), json!({"content": "one two three four five"})), 100.0, 200.0)], &[]);
    assert_eq!(written(&wide).split('|').count(), 4, "{}", written(&wide));
}

#[test]
fn size_alignment_and_color_are_honored() {
    let styled = |metadata| draw(&[with(text("a"), metadata)], &[]);
    let document = styled(json!({"content": "Hi", "fontSize": 33, "textAlign": "center", "color": "#c92a2a"}));
    assert!(document.contains("font-size=\"33\" fill=\"#c92a2a\""));
    assert!(document.contains("text-anchor=\"middle\">Hi<"));
    assert!(styled(json!({"content": "Hi", "textAlign": "right"})).contains("text-anchor=\"end\">Hi<"));
    assert!(styled(json!({"content": "Hi", "color": "#fffff0"})).contains("fill=\"#222731\""), "on a dark card");
    let note = |color| draw(&[with(sticky("a"), json!({"content": "Hi", "color": color}))], &[]);
    assert!(note("#102a6e").contains("fill=\"#ffffff\"><text"), "light text on a dark note");
    assert!(note("#ffec99").contains("fill=\"#1f242b\"><text"), "dark text on a light note");
}

#[test]
fn a_frame_too_small_for_text_has_none() {
    let nodes = [image("a"), video("b"), with(text("c"), json!({"content": "x"})), section("s")];
    for (width, height) in [(1.0, 1.0), (27.0, 500.0), (1.0, NODE_SIDE_MAX)] {
        let nodes: Vec<Node> = nodes.iter().cloned().map(|node| sized(node, width, height)).collect();
        assert_eq!(written(&draw(&nodes, &[])), "", "{width} × {height}");
    }
}

/// A canvas with the most nodes and connections, each as costly to draw as possible.
fn largest() -> (Vec<Node>, Vec<Connection>) {
    let name = |index: usize| format!("{index:0>180}");
    let kinds = [NodeType::Image, NodeType::Video, NodeType::Text, NodeType::Sticky];
    let nodes = (0..CANVAS_NODES_MAX).map(|index| {
        let side = NODE_SIDE_MAX - 0.01;
        let plain =
            with(sized(node(&name(index), kinds[index % 4]), side, side), json!({"content": "<&>".repeat(999)}));
        let x = if index == 0 { -COORDINATE_MAX } else { COORDINATE_MAX - index as f64 * 0.01 };
        let mut node = showing(at(plain, x, x));
        node.title = "<&>\u{0}".repeat(40);
        node.short = Some(NodeRef::new(index as i32 + 1));
        node
    });
    let connections = (0..CANVAS_CONNECTIONS_MAX).map(|index| {
        let (from, to) = (name(index % CANVAS_NODES_MAX), name((index * 7 + 1) % CANVAS_NODES_MAX));
        let mut connection = connection("c", &from, &to, Purpose::Reference);
        connection.role = Some(Role::Construction);
        connection
    });
    (nodes.collect(), connections.collect())
}

#[test]
fn the_largest_canvas_stays_within_the_bound() {
    let (nodes, connections) = largest();
    let document = draw(&nodes, &connections);
    assert!(document.len() <= DOCUMENT_BYTES_MAX, "{}", document.len());
    let parsed = Document::parse(&document).expect("well-formed");
    let frames = parsed.descendants().filter(|node| node.has_tag_name("rect")).count();
    assert!(frames >= CANVAS_NODES_MAX, "every node is drawn: {frames}");
    assert_eq!(document.matches("<path d=\"M").count() - Purpose::ALL.len(), CANVAS_CONNECTIONS_MAX);
    let labels = Labels::new(&nodes);
    let style = Style { labels: Some(&labels), ..Style::default() };
    let document = Drawing::new("Board", &nodes, &connections, style).finish(|_| EmbeddedImage::Pending);
    assert!(document.len() <= DOCUMENT_BYTES_MAX, "{}", document.len());
    assert_eq!(document.matches(" data-label=\"").count(), CANVAS_NODES_MAX);
    assert!(labeled(&document).len() > 40, "those of the mapping have their id, too");
}

#[test]
fn a_slot_takes_no_more_than_is_kept_for_it() {
    let frame = sized(image("a"), NODE_SIDE_MAX - 0.01, NODE_SIDE_MAX - 0.03);
    for content in [
        EmbeddedImage::Ready { media_type: "image/jpeg", bytes: b"", ratio: 1.0 },
        EmbeddedImage::Pending,
        EmbeddedImage::Unreadable,
        EmbeddedImage::LeftOut,
    ] {
        let nodes = [showing(frame.clone())];
        let drawing = Drawing::new("", &nodes, &[], Style::default());
        let without = drawing.text.len();
        let filled = drawing.finish(|_| content).len() - without;
        assert!(filled <= SLOT_BYTES, "{content:?}: {filled}");
    }
}

/// The numbers in a document: label and id of each node that has one, in the order of the document.
fn labeled(document: &str) -> Vec<(usize, String)> {
    let parsed = Document::parse(document).expect("well-formed");
    let nodes = parsed.descendants().filter_map(|element| {
        let number = element.attribute("data-label")?.parse().expect("a number");
        Some((number, element.attribute("id")?.strip_prefix("node-")?.to_owned()))
    });
    nodes.collect()
}

fn draw_labeled(nodes: &[Node], labels: &Labels<'_>) -> String {
    let style = Style { labels: Some(labels), ..Style::default() };
    Drawing::new("Board", nodes, &[], style).finish(|_| EmbeddedImage::Pending)
}

/// The nodes with refs from `n1` on, in the order of creation.
fn numbered<const N: usize>(mut nodes: [Node; N]) -> [Node; N] {
    for (node, number) in nodes.iter_mut().zip(1..) {
        node.short = Some(NodeRef::new(number));
    }
    nodes
}

#[test]
fn labels_are_the_numbers_of_the_refs_and_are_painted_last_in_reading_order() {
    let nodes = numbered([
        at(text("below"), 0.0, 500.0),
        at(showing(image("right")), 400.0, 0.0),
        at(member(text("left"), "s"), 0.0, 0.0),
        at(section("s"), -50.0, -50.0),
    ]);
    let labels = Labels::new(&nodes);
    assert_eq!(labels.json(), r#"{"4":"node:s","3":"node:left","2":"node:right","1":"node:below"}"#);
    let document = draw_labeled(&nodes, &labels);
    let mut found = labeled(&document);
    found.sort_unstable();
    assert_eq!(found, [(1, "below".into()), (2, "right".into()), (3, "left".into()), (4, "s".into())]);
    assert!(written(&document).ends_with("|4|3|2|1"), "{}", written(&document));
    assert!(!draw(&nodes, &[]).contains("data-label"));
    assert_eq!(Labels::new(&[]).json(), "{}");
}

#[test]
fn a_node_that_the_mapping_has_no_room_for_is_labeled_all_the_same() {
    for length in [1, 36, 180] {
        let node = |number: i32| Node {
            short: Some(NodeRef::new(number)),
            ..text(&format!("{:x>length$}", format!("{number:x}")))
        };
        let nodes: Vec<Node> = (1..=2000).map(node).collect();
        let labels = Labels::new(&nodes);
        let mapping: serde_json::Map<String, serde_json::Value> = serde_json::from_str(labels.json()).expect("is JSON");
        let longest = mapping.len().to_string().len() + r#","":"node:""#.len() + 180;
        assert!(labels.json().len() <= LABELS_BYTES_MAX && labels.json().len() + longest > LABELS_BYTES_MAX);
        for (number, node) in (1..).zip(&nodes).take(mapping.len()) {
            assert_eq!(mapping[&number.to_string()], node.id.handle());
        }
        let document = draw_labeled(&nodes, &labels);
        let mut numbers: Vec<usize> = labeled(&document).into_iter().map(|(number, _)| number).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(1..=2000));
        assert!(written(&document).ends_with("|1999|2000"), "each is painted");
    }
}

#[test]
fn a_label_is_legible_where_the_drawing_is_small_and_no_larger_than_its_node_allows() {
    let size = |nodes: &[Node], width| {
        let labels = Labels::new(nodes);
        let style = Style { width, labels: Some(&labels), ..Style::default() };
        let document = Drawing::new("", nodes, &[], style).finish(|_| EmbeddedImage::Pending);
        let (_, rest) = document.rsplit_once("<g font-size=\"").expect("a label");
        rest.split('"').next().and_then(|size| size.parse::<f64>().ok()).expect("a size")
    };
    let near = numbered([sized(text("a"), 400.0, 400.0)]);
    let far = numbered([sized(text("a"), 400.0, 400.0), sized(at(text("b"), 3616.0, 0.0), 400.0, 400.0)]);
    assert_eq!(size(&near, None), 14.0);
    assert_eq!(size(&far, None), 28.0, "4096 units in 2048 pixels");
    assert_eq!(size(&far, Some(512)), 112.0, "14 pixels");
    assert_eq!(size(&far, Some(256)), 180.0, "the node's share");
    assert_eq!(size(&numbered([sized(text("a"), 1.0, 1.0)]), None), 14.0);
}

#[test]
fn the_natural_size_is_half_the_width_that_the_png_shall_have() {
    let size = |nodes: &[Node], width| {
        let document =
            Drawing::new("", nodes, &[], Style { width, ..Style::default() }).finish(|_| EmbeddedImage::Pending);
        let parsed = Document::parse(&document).expect("well-formed");
        let side = |name| parsed.root_element().attribute(name).and_then(|side| side.parse::<f64>().ok());
        (side("width").expect("a width"), side("height").expect("a height"))
    };
    let card = [sized(text("a"), 320.0, 120.0)];
    assert_eq!(size(&card, None), (400.0, 200.0));
    assert_eq!(size(&card, Some(256)), (128.0, 64.0));
    assert_eq!(size(&card, Some(2048)), (1024.0, 512.0));
    let high = [sized(text("a"), 20.0, 920.0)];
    assert_eq!(size(&high, Some(2048)), (102.4, 1024.0), "at most 2048 pixels high");
}

prop_compose! {
    fn any_node(index: usize)(
        kind in prop::sample::select(NodeType::ALL),
        x in -COORDINATE_MAX..COORDINATE_MAX,
        y in -2000.0..2000.0f64,
        width in 1.0..NODE_SIDE_MAX,
        height in 1.0..600.0f64,
        title in "\\PC{0,20}|[\\x00-\\x7f]{0,20}|.{0,8}",
        content in ".{0,60}",
        color in prop::option::of("#[0-9a-f]{6}"),
        size in prop::option::of(1.0..1000.0f64),
        section: bool,
        shows: bool,
        status in prop::option::of("queued|running|failed|x"),
    ) -> Node {
        let mut node = node(&format!("n{index}"), kind);
        node.short = Some(NodeRef::new(index as i32 + 1));
        node.position = Position { x, y };
        (node.width, node.height, node.title) = (width, height, title);
        let metadata = json!({"content": content, "color": color, "fontSize": size, "section": section, "prompt": content});
        node.metadata = stored(metadata);
        let node = if shows { showing(node) } else { node };
        match status {
            Some(status) => with_job(node, &status),
            None => node,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_canvas_gives_a_well_formed_document_that_holds_it(
        nodes in (0usize..12).prop_flat_map(|count| (0..count).map(any_node).collect::<Vec<_>>()),
        links in prop::collection::vec((0usize..12, 0usize..12, prop::sample::select(Purpose::ALL)), 0..12),
        ready: bool,
    ) {
        let connections: Vec<Connection> = links
            .iter()
            .map(|(from, to, purpose)| connection("c", &format!("n{from}"), &format!("n{to}"), *purpose))
            .collect();
        let image = if ready { EmbeddedImage::Ready { media_type: "image/png", bytes: b"x", ratio: 1.5 } } else { EmbeddedImage::Pending };
        let document = Drawing::new("\u{0}", &nodes, &connections, Style::default()).finish(|_| image);
        let [x, y, width, height] = view_box(&document);
        for node in &nodes {
            // Within the precision of sums of numbers of this size.
            let e = 1e-6;
            prop_assert!(x <= node.position.x - MARGIN + e && y <= node.position.y - MARGIN + e);
            prop_assert!(x + width >= node.position.x + node.width + MARGIN - e);
            prop_assert!(y + height >= node.position.y + node.height + MARGIN - e);
            let id = format!("id=\"node-{}\"", node.id);
            prop_assert!(document.contains(&id) && !document.contains("NaN"), "{}", id);
        }
        let labels = Labels::new(&nodes);
        let numbered = draw_labeled(&nodes, &labels);
        let mapping: serde_json::Value = serde_json::from_str(labels.json()).expect("is JSON");
        let found = labeled(&numbered);
        prop_assert_eq!(found.len(), nodes.len());
        for (number, id) in found {
            prop_assert_eq!(&mapping[number.to_string()], &json!(format!("node:{id}")));
        }
        prop_assert_eq!(view_box(&numbered), [x, y, width, height]);
        prop_assert_eq!(document.contains("<image "), ready && nodes.iter().any(|node| node.asset.is_some() && matches!(node.kind, NodeType::Image | NodeType::Video)));
    }
}

#[test]
fn a_picture_has_its_alternative_text_and_a_decorative_one_is_hidden() {
    let shown = |node: Node, metadata| draw(&[with(sized(showing(node), 320.0, 320.0), metadata)], &[]);
    let group = |document: &str| {
        let parsed = Document::parse(document).expect("well-formed");
        let group = parsed.descendants().find(|node| node.attribute("id").is_some_and(|id| id.starts_with("node-")));
        let group = group.expect("the node");
        let title = group.children().find(|child| child.has_tag_name("title")).and_then(|title| title.text());
        let attribute = |name| group.attribute(name).map(str::to_owned);
        (attribute("role"), attribute("aria-hidden"), title.map(str::to_owned))
    };
    let written = |text: &str| Some(text.to_owned());
    for node in [image("a"), video("a")] {
        let document = shown(node.clone(), json!({"altText": "Boots <in> \"snow\""}));
        assert_eq!(group(&document), (written("img"), None, written("Boots <in> \"snow\"")));
        assert_eq!(group(&shown(node.clone(), json!({"altText": ""}))), (None, written("true"), None));
        assert_eq!(group(&shown(node.clone(), json!({}))), (written("img"), None, Some(node.title)));
    }
    assert_eq!(group(&draw(&[image("a")], &[])), (None, None, written("a")), "an empty slot is no picture");
    assert_eq!(group(&draw(&[text("t")], &[])), (None, None, written("t")));
    let long = shown(image("a"), json!({"altText": "&".repeat(1000)}));
    assert_eq!(group(&long).2.map(|title| title.len()), Some(1000));
}

#[test]
fn alternative_texts_leave_room_for_the_pictures() {
    let many: Vec<Node> = (0..2500)
        .map(|index| with(showing(image(&format!("n{index}"))), json!({"altText": "ü".repeat(1000)})))
        .collect();
    let document = draw(&many, &[]);
    assert!(document.len() <= DOCUMENT_BYTES_MAX);
    let titled = document.matches("<title>ü").count();
    assert_eq!(Drawing::new("", &many, &[], Style::default()).slots().count(), titled, "each that shows its picture");
    assert!(titled > 1000, "{titled}");
}
