//! Draws boards on which the service has chosen every place, for visual inspection:
//! `cargo run -p canvas-canvas --example placed DIRECTORY` writes one SVG for each.

use std::collections::HashMap;
use std::path::Path;

use canvas::svg::{Drawing, EmbeddedImage, Style};
use canvas::targets::{self, Link, Place, Work};
use canvas::{Batch, Graph, Options, apply};
use domain::Timestamp;
use domain::graph::{NodeType, Purpose};
use domain::id::{AccountUid, AssetRef, NodeId};
use serde_json::{Value, json};

const AGENT: Options = Options { agent: true, force: false };

/// The name of a file, and what is drawn in it.
type Named = (&'static str, fn() -> Board);

/// A board under construction.
struct Board {
    graph: Graph,
    /// Ids of what is on it, by the name in its operations.
    names: HashMap<String, String>,
}

impl Board {
    fn new(title: &str) -> Self {
        Self { graph: Graph::new(title.to_owned(), 0, Vec::new(), Vec::new()), names: HashMap::new() }
    }

    /// Applies operations as an agent. Images are named after their width and height, as `asset:1024x768-1`.
    fn run(&mut self, operations: Vec<Value>) {
        let mut text = Value::from(operations).to_string();
        for (name, id) in &self.names {
            text = text.replace(&format!("\"{name}\""), &format!("\"{id}\""));
        }
        let batch = Batch::new(serde_json::from_str(&text).expect("operations")).expect("a batch");
        let (mut assets, mut sizes) = (HashMap::new(), HashMap::new());
        let shown = self.graph.nodes().filter_map(|node| node.asset.clone());
        let named = batch.assets().map(|asset| asset.clone().resolve(&owner()));
        for asset in shown.chain(named) {
            let (width, height) = size(asset.id.as_str());
            let named = AssetRef::parse(&format!("asset:{}", asset.id)).expect("a handle");
            let at: Timestamp = serde_json::from_value(json!("2026-01-02T03:04:05.678Z")).expect("a time");
            let shown_by = NodeType::Image;
            assets.insert(
                named,
                canvas::graph::AssetImage { asset: asset.clone(), shown_by, size: Some((width, height)), at },
            );
            sizes.insert(asset, (width, height));
        }
        self.graph.set_images(assets, sizes);
        let applied = apply(&mut self.graph, &batch, AGENT).expect("applied");
        self.names.extend(applied.resolved_ids);
    }

    /// Starts work that reads these nodes and makes so many results.
    fn start(&mut self, sources: &[&str], count: usize) {
        let link = |name: &&str| Link { from: self.id(name), purpose: Purpose::Flow, role: None };
        let read: Vec<Link> = sources.iter().map(link).collect();
        let work = Work { read: vec![read], connect: true, prompt: Some("A brass lamp at dusk, on a window sill") };
        targets::add(&mut self.graph, &Place { count, ..Place::default() }, &[(320.0, 240.0)], work, AGENT)
            .expect("added");
    }

    fn id(&self, name: &str) -> NodeId {
        NodeId::parse(&self.names[name]).expect("an id")
    }

    fn write(self, directory: &Path, name: &str) -> std::io::Result<()> {
        let title = self.graph.title().to_owned();
        let (nodes, connections) = self.graph.into_parts();
        let drawing = Drawing::new(&title, &nodes, &connections, Style::default());
        std::fs::write(directory.join(format!("{name}.svg")), drawing.finish(|_| EmbeddedImage::Pending))
    }
}

fn owner() -> AccountUid {
    AccountUid::parse("me").expect("an account")
}

/// The size that the id of an image says.
fn size(id: &str) -> (f64, f64) {
    let (width, rest) = id.split_once('x').expect("width and height");
    let (height, _) = rest.split_once('-').expect("a number");
    (width.parse().expect("a width"), height.parse().expect("a height"))
}

fn note(name: &str, text: &str) -> Value {
    json!({"type": "node.create", "clientId": name, "node": {"type": "sticky", "metadata": {"content": text}}})
}

fn text(name: &str, title: &str, text: &str) -> Value {
    json!({"type": "node.create", "clientId": name, "node": {"type": "text", "title": title, "metadata": {"content": text}}})
}

fn image(name: &str, size: (u32, u32)) -> Value {
    let asset = format!("asset:{}x{}-{name}", size.0, size.1);
    json!({"type": "node.create", "clientId": name, "node": {"type": "image", "title": name, "asset": asset}})
}

fn into(section: &str, mut operation: Value) -> Value {
    operation["sectionId"] = section.into();
    operation
}

fn connect(from: &str, to: &str) -> Value {
    json!({"type": "connection.create", "fromNodeId": from, "toNodeId": to})
}

fn section(name: &str, title: &str) -> Value {
    json!({"type": "section.create", "clientId": name, "title": title})
}

fn arrange(nodes: &[String], more: Value) -> Value {
    let mut operation = json!({"type": "layout.arrange", "nodeIds": nodes});
    let more = more.as_object().expect("an object").clone();
    operation.as_object_mut().expect("an object").extend(more);
    operation
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|at| format!("{prefix}{at}")).collect()
}

/// Shapes of photographs, posters, panoramas and phones.
const SHAPES: [(u32, u32); 8] =
    [(1024, 1024), (1600, 1067), (1080, 1350), (1920, 1080), (1080, 1920), (2400, 800), (1200, 900), (800, 1000)];

fn fifty_notes() -> Board {
    let mut board = Board::new("Fifty notes");
    board.run((0..50).map(|at| note(&format!("n{at}"), &format!("Idea {at}"))).collect());
    board
}

fn connected_batch() -> Board {
    let mut board = Board::new("A batch that is connected");
    let texts =
        ["Brief", "Audience", "Moods", "Colors", "Hero", "Detail", "Poster", "Film", "Sizes", "Texts", "Hand-over"];
    let mut operations: Vec<Value> =
        texts.iter().map(|title| text(title, title, &format!("{title} in two words"))).collect();
    operations.extend([note("loose1", "Not connected"), note("loose2", "Nor this one"), note("loose3", "Nor this")]);
    let edges = [
        ("Brief", "Moods"),
        ("Brief", "Colors"),
        ("Audience", "Moods"),
        ("Moods", "Hero"),
        ("Colors", "Hero"),
        ("Colors", "Detail"),
        ("Hero", "Poster"),
        ("Hero", "Film"),
        ("Detail", "Poster"),
        ("Poster", "Sizes"),
        ("Texts", "Poster"),
        ("Sizes", "Hand-over"),
        ("Film", "Hand-over"),
    ];
    operations.extend(edges.map(|(from, to)| connect(from, to)));
    board.run(operations);
    board
}

fn flow_down() -> Board {
    let mut board = Board::new("A flow downward");
    let mut operations: Vec<Value> = (0..9).map(|at| image(&format!("i{at}"), SHAPES[at % 8])).collect();
    operations.extend(
        [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 5), (4, 6), (5, 6), (6, 7), (6, 8)]
            .map(|(from, to)| connect(&format!("i{from}"), &format!("i{to}"))),
    );
    operations.push(arrange(&names("i", 9), json!({"layout": "flow", "direction": "down"})));
    board.run(operations);
    board
}

fn moodboard() -> Board {
    let mut board = Board::new("Moodboard");
    let mut operations = vec![section("s", "Moodboard for the Aurora lamp")];
    operations.extend((0..14).map(|at| into("s", image(&format!("Picture-{at}"), SHAPES[(at * 5 + at / 3) % 8]))));
    operations.push(json!({"type": "layout.arrange", "sectionId": "s", "layout": "masonry", "gap": 24}));
    operations.push(json!({"type": "section.fit", "nodeId": "s"}));
    board.run(operations);
    board
}

fn few_in_masonry() -> Board {
    let mut board = Board::new("Five, three and two pictures in masonry");
    for (name, count) in [("a", 5), ("b", 3), ("c", 2)] {
        let mut operations: Vec<Value> =
            (0..count).map(|at| image(&format!("{name}{at}"), SHAPES[(at * 3 + count) % 8])).collect();
        operations.push(arrange(&names(name, count), json!({"layout": "masonry"})));
        board.run(operations);
    }
    board
}

fn results_of_one() -> Board {
    let mut board = Board::new("Results of one source");
    board.run(vec![image("Lamp", (1024, 1024))]);
    board.start(&["Lamp"], 4);
    board.start(&["Lamp"], 2);
    board
}

fn results_of_a_row() -> Board {
    let mut board = Board::new("Results of a row");
    board.run(vec![
        section("s", "Products"),
        into("s", image("Lamp", (1024, 1024))),
        into("s", image("Vase", (1080, 1350))),
        into("s", image("Chair", (1600, 1067))),
    ]);
    for source in ["Lamp", "Vase", "Chair"] {
        board.start(&[source], 1);
    }
    board.start(&["Vase"], 2);
    board.start(&["Lamp", "Vase", "Chair"], 3);
    board
}

fn section_without_room() -> Board {
    let mut board = Board::new("A Section without room");
    board.run(vec![section("s", "Notes"), into("s", note("a", "The first"))]);
    let around = |name: &str, x: f64, y: f64| json!({"type": "node.create", "clientId": name, "node": {"type": "sticky", "position": {"x": x, "y": y}, "metadata": {"content": name}}});
    board.run(vec![
        around("right", 680.0, 60.0),
        around("below", 200.0, 520.0),
        around("left", -280.0, 60.0),
        around("above", 200.0, -280.0),
    ]);
    board.run((0..6).map(|at| into("s", note(&format!("n{at}"), &format!("Another {at}")))).collect());
    board
}

fn storyboard() -> Board {
    let mut board = Board::new("Storyboard");
    let mut operations = Vec::new();
    for (scene, title) in ["Dawn", "Noon, in the harbor", "Dusk and the way home"].iter().enumerate() {
        operations.push(section(&format!("s{scene}"), title));
        for shot in 0..4 {
            let words = "The light comes in from the left, slowly, and the lamp is still on. ".repeat(1 + shot % 3 * 2);
            operations.push(into(
                &format!("s{scene}"),
                text(&format!("t{scene}{shot}"), &format!("Shot {}", shot + 1), &words),
            ));
        }
    }
    board.run(operations);
    board
}

fn grids() -> Board {
    let mut board = Board::new("Grids of two to nine squares");
    for count in 2..10 {
        let name = format!("g{count}-");
        let mut operations: Vec<Value> = (0..count).map(|at| image(&format!("{name}{at}"), (1024, 1024))).collect();
        operations.push(arrange(&names(&name, count), json!({"layout": "grid"})));
        board.run(operations);
    }
    board
}

fn aligned() -> Board {
    let mut board = Board::new("Rows, columns and grids that are aligned");
    for (row, (layout, align)) in
        [("row", "center"), ("row", "end"), ("column", "center"), ("grid", "center"), ("grid", "end")]
            .iter()
            .enumerate()
    {
        let name = format!("a{row}-");
        let mut operations: Vec<Value> = (0..6).map(|at| image(&format!("{name}{at}"), SHAPES[at])).collect();
        operations.push(arrange(&names(&name, 6), json!({"layout": layout, "align": align})));
        board.run(operations);
    }
    board
}

fn texts() -> Board {
    let mut board = Board::new("Texts as high as they need");
    let words = "Warm, quiet, Nordic. One hero still, two variations, then a film that moves from dawn to dusk. ";
    let mut operations: Vec<Value> =
        [1, 3, 8, 30].map(|times| text(&format!("t{times}"), "Brief", &words.repeat(times))).into();
    operations.extend([1, 3, 6, 20].map(|times| note(&format!("s{times}"), &words.repeat(times))));
    board.run(operations);
    let fit = |name: &str| json!({"type": "node.fit", "nodeId": name});
    board.run(vec![fit("t1"), fit("t8"), fit("t30"), fit("s1"), fit("s20")]);
    board
}

fn lines_and_titles() -> Board {
    let mut board = Board::new("Lines around titles");
    board.run(vec![
        json!({"type": "node.create", "clientId": "a", "node": {"type": "image", "title": "Above", "position": {"x": 100, "y": -500}}}),
        section("s", "A title that a line would cross"),
        into("s", note("b", "In the Section")),
        json!({"type": "node.create", "clientId": "left", "node": {"type": "image", "title": "Left", "position": {"x": -700, "y": 30}}}),
        json!({"type": "node.create", "clientId": "right", "node": {"type": "image", "title": "Right", "position": {"x": 900, "y": -100}}}),
        json!({"type": "node.move", "nodeId": "s", "position": {"x": 0, "y": 0}, "withMembers": true}),
        connect("a", "b"),
        connect("left", "right"),
    ]);
    board
}

fn main() -> std::io::Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let directory = Path::new(&directory);
    let boards: [Named; 13] = [
        ("notes", fifty_notes),
        ("flow", connected_batch),
        ("flow-down", flow_down),
        ("moodboard", moodboard),
        ("masonry", few_in_masonry),
        ("results-one", results_of_one),
        ("results-row", results_of_a_row),
        ("section", section_without_room),
        ("storyboard", storyboard),
        ("grids", grids),
        ("aligned", aligned),
        ("texts", texts),
        ("titles", lines_and_titles),
    ];
    for (name, board) in boards {
        board().write(directory, name)?;
    }
    Ok(())
}
