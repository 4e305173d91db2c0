//! Draws a board with every kind of content, for visual inspection: `cargo run -p canvas-canvas --example board -- [--dark]
//! [image.jpg…] > board.svg`.
//!
//! Images given as arguments fill the image nodes in turn. Without arguments the placeholders of missing images are
//! drawn.

use std::collections::HashMap;

use canvas::svg::{Drawing, EmbeddedImage, Style};
use domain::canvas::Theme;
use domain::graph::{Connection, Node, NodeType, Position, Purpose, Role};
use domain::id::{AccountUid, AssetHandle, AssetId, ConnectionId, NodeId};
use domain::stored::Stored;
use serde_json::{Value, json};

fn node(id: &str, kind: NodeType, title: &str, place: [f64; 4], metadata: Value) -> Node {
    let [x, y, width, height] = place;
    Node {
        id: NodeId::parse(id).expect("a plain id"),
        short: None,
        kind,
        title: title.into(),
        position: Position { x, y },
        width,
        height,
        agent_owned: true,
        metadata: Stored::from_stored(metadata.to_string()).expect("an object"),
        server: Default::default(),
        asset: None,
        active_job: None,
    }
}

fn filled(mut node: Node) -> Node {
    let owner = AccountUid::parse("me").expect("a plain id");
    node.asset = Some(AssetHandle { owner, id: AssetId::parse(node.id.as_str()).expect("a plain id") });
    node
}

fn at(mut node: Node, status: &str) -> Node {
    let job = json!({"job": {"operation": "generate", "run": "run:r", "status": status}});
    node.server = Stored::from_stored(job.to_string()).expect("an object");
    node
}

fn connection(from: &str, to: &str, purpose: Purpose, role: Option<Role>) -> Connection {
    Connection {
        id: ConnectionId::parse(&format!("{from}-{to}")).expect("a plain id"),
        short: None,
        from: NodeId::parse(from).expect("a plain id"),
        to: NodeId::parse(to).expect("a plain id"),
        purpose,
        role,
    }
}

fn nodes() -> Vec<Node> {
    use NodeType::{Image, Sticky, Text, Video};
    let section = |id, title, place, color| node(id, Sticky, title, place, json!({"section": true, "color": color}));
    vec![
        section("s1", "Brief and references", [0.0, 0.0, 800.0, 900.0], json!("#f08c00")),
        section("s2", "Key visuals", [920.0, 0.0, 1180.0, 900.0], Value::Null),
        section("s3", "Film", [920.0, 1000.0, 1180.0, 640.0], json!("#e64980")),
        section("s4", "Languages", [0.0, 1000.0, 800.0, 900.0], json!("#12b886")),
        node(
            "brief",
            Text,
            "Creative brief",
            [40.0, 90.0, 340.0, 300.0],
            json!({"content":
            "Launch video for the Aurora lamp.\n\nWarm, quiet, Nordic. One hero still, two variations, then an eight second video that moves from dawn to dusk. No people, no text in the image.", }),
        ),
        node("hint", Sticky, "", [420.0, 90.0, 170.0, 170.0], json!({"content": "Keep the brass visible!"})),
        node(
            "dark",
            Sticky,
            "Legal",
            [610.0, 90.0, 160.0, 170.0],
            json!({"content": "Client logo must not be shown before 1 March.", "color": "#364fc7"}),
        ),
        node(
            "list",
            Text,
            "Prompt list",
            [420.0, 300.0, 340.0, 200.0],
            json!({"content": "1. Dawn, window light\n2. Noon, hard shadows\n3. Dusk, lamp on", "fontSize": 18}),
        ),
        filled(node("ref1", Image, "Lamp, front", [40.0, 540.0, 320.0, 320.0], json!({}))),
        filled(node(
            "ref2",
            Image,
            "Brass swatch with a rather long name that cannot be shown in full",
            [440.0, 560.0, 320.0, 240.0],
            json!({}),
        )),
        filled(node("hero", Image, "Hero still", [960.0, 90.0, 480.0, 360.0], json!({}))),
        at(filled(node("redo", Image, "Variation A", [1500.0, 90.0, 260.0, 260.0], json!({}))), "running"),
        at(
            node(
                "queued",
                Image,
                "Variation B",
                [1800.0, 90.0, 260.0, 260.0],
                json!({"prompt": "The lamp on a window sill at dusk, snow outside, seen through the glass, shallow depth of field"}),
            ),
            "queued",
        ),
        at(node("running", Image, "Variation C", [1500.0, 400.0, 260.0, 220.0], json!({})), "running"),
        at(node("failed", Image, "Variation D", [1800.0, 400.0, 260.0, 220.0], json!({})), "failed"),
        at(node("canceled", Image, "Variation E", [1500.0, 660.0, 260.0, 200.0], json!({})), "canceled"),
        node("empty", Image, "Image", [1800.0, 660.0, 260.0, 200.0], json!({})),
        filled(node("missing", Image, "Just uploaded", [960.0, 520.0, 480.0, 340.0], json!({}))),
        node(
            "video",
            Video,
            "Dawn to dusk",
            [960.0, 1090.0, 620.0, 360.0],
            json!({"durationSeconds": 8, "prompt": "Slow push-in while the light moves from dawn to dusk"}),
        ),
        at(node("clip", Video, "Cut-down", [1640.0, 1090.0, 420.0, 250.0], json!({"durationSeconds": 4})), "queued"),
        node("tiny1", Image, "tiny", [1640.0, 1380.0, 60.0, 60.0], json!({})),
        node("tiny2", Text, "tiny", [1720.0, 1380.0, 24.0, 60.0], json!({"content": "hidden"})),
        node("tiny3", Sticky, "", [1760.0, 1380.0, 90.0, 60.0], json!({"content": "small note"})),
        node("tiny4", Video, "v", [1870.0, 1380.0, 80.0, 60.0], json!({})),
        node(
            "light",
            Text,
            "Caption",
            [1640.0, 1480.0, 420.0, 120.0],
            json!({"content": "White on dark, centered", "color": "#ffffff", "textAlign": "center", "fontSize": 24}),
        ),
        node(
            "red",
            Text,
            "Right",
            [960.0, 1480.0, 300.0, 120.0],
            json!({"content": "Red, right aligned", "color": "#c92a2a", "textAlign": "right"}),
        ),
        node("blank", Text, "Text", [1300.0, 1480.0, 280.0, 120.0], json!({})),
        node(
            "cjk",
            Text,
            "中文 · 日本語 · 한국어",
            [40.0, 1090.0, 340.0, 240.0],
            json!({"content":
            "画布显示工作，节点与资产是持久的结果，运行记录只是临时收据。\n夕暮れの窓辺に置かれたランプ、外は雪。\n창가의 램프, 밖에는 눈이 내린다."}),
        ),
        node(
            "arabic",
            Text,
            "عربي",
            [420.0, 1090.0, 340.0, 160.0],
            json!({"content":
            "مصباح نحاسي على حافة النافذة عند الغروب، والثلج في الخارج (Aurora 2.0)."}),
        ),
        node(
            "hebrew",
            Sticky,
            "",
            [420.0, 1280.0, 200.0, 200.0],
            json!({"content": "מנורת פליז על אדן החלון, Aurora 2.0!", "color": "#b2f2bb"}),
        ),
        node("emoji", Sticky, "", [640.0, 1280.0, 130.0, 130.0], json!({"content": "👩‍👩‍👧‍👦 🎉 🇩🇪 👍🏽", "color": "#ffc9c9"})),
        node(
            "hindi",
            Text,
            "हिन्दी · ไทย",
            [40.0, 1360.0, 340.0, 150.0],
            json!({"content":
            "खिड़की पर रखा पीतल का दीपक, बाहर बर्फ़ गिर रही है।\nโคมไฟทองเหลืองบนขอบหน้าต่าง"}),
        ),
        node(
            "hostile",
            Text,
            "<script>alert(1)</script> & \"quotes\"",
            [40.0, 1540.0, 340.0, 150.0],
            json!({"content":
            "</text></svg><script>alert('x')</script> &lt; &amp; \u{0} \u{1b} \u{202e}txet desrever\u{202c} z\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}algo"}),
        ),
        node(
            "long",
            Text,
            "Cut",
            [420.0, 1540.0, 340.0, 150.0],
            json!({"content": "Lorem ipsum dolor sit amet, consetetur sadipscing elitr. ".repeat(40)}),
        ),
        node(
            "word",
            Text,
            "Word",
            [40.0, 1720.0, 340.0, 140.0],
            json!({"content": "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft https://example.com/a/very/long/path?with=query"}),
        ),
        node(
            "greek",
            Text,
            "Ελληνικά · Русский · Tiếng Việt",
            [420.0, 1720.0, 340.0, 140.0],
            json!({"content": "Ορειχάλκινη λάμπα στο περβάζι.\nЛатунная лампа на подоконнике.\nĐèn đồng bên bệ cửa sổ."}),
        ),
        node(
            "over",
            Sticky,
            "",
            [720.0, 220.0, 110.0, 110.0],
            json!({"content": "on top", "zIndex": 5, "color": "#99e9f2"}),
        ),
    ]
}

fn connections() -> Vec<Connection> {
    vec![
        connection("brief", "list", Purpose::Flow, None),
        connection("list", "hero", Purpose::List, None),
        connection("ref1", "hero", Purpose::Reference, Some(Role::Identity)),
        connection("ref2", "hero", Purpose::Reference, Some(Role::Texture)),
        connection("hero", "redo", Purpose::Flow, None),
        connection("hero", "running", Purpose::Flow, None),
        connection("redo", "queued", Purpose::Reference, None),
        connection("missing", "video", Purpose::FirstFrame, None),
        connection("canceled", "video", Purpose::LastFrame, None),
        connection("video", "clip", Purpose::Flow, None),
        connection("hint", "dark", Purpose::Flow, None),
    ]
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1).peekable();
    let is_dark = arguments.next_if_eq("--dark").is_some();
    let files = arguments.map(std::fs::read).collect::<Result<Vec<_>, _>>()?;
    let (nodes, connections) = (nodes(), connections());
    let theme = if is_dark { Theme::Dark } else { Theme::Light };
    let style = Style { theme, ..Style::default() };
    let drawing = Drawing::new("Aurora launch", &nodes, &connections, style);
    let shown: HashMap<NodeId, usize> =
        drawing.slots().filter(|id| id.as_str() != "missing").cloned().zip(0..).collect();
    let document = drawing.finish(|id| match shown.get(id).filter(|_| !files.is_empty()) {
        Some(index) => {
            EmbeddedImage::Ready { media_type: "image/jpeg", bytes: &files[index % files.len()], ratio: 4.0 / 3.0 }
        }
        None => EmbeddedImage::Pending,
    });
    print!("{document}");
    Ok(())
}
