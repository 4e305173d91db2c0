use std::time::Instant;
use canvas::svg::{Drawing, Picture, Style};
use domain::graph::{Connection, Node, NodeType, Position, Purpose};
use domain::id::{ConnectionId, NodeId};
use serde_json::json;

struct Lcg(u64);
impl Lcg { fn next(&mut self) -> u64 { self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407); self.0 >> 33 } fn below(&mut self, n: u64) -> u64 { self.next() % n } }

fn node(id: String, kind: NodeType, x: f64, y: f64, w: f64, h: f64) -> Node {
    let mut metadata = serde_json::Map::new();
    if kind != NodeType::Image { metadata.insert("content".into(), json!(format!("{id}: a lamp on a window sill at dusk, snow outside"))); }
    Node { id: NodeId::parse(&id).unwrap(), kind, title: id.clone(), position: Position { x, y }, width: w, height: h, agent_owned: true, metadata: metadata.into(), server: Default::default(), asset: None, active_job: None }
}
fn main() {
    let mode = std::env::args().nth(1).unwrap();
    let count: u64 = std::env::args().nth(2).map_or(50, |n| n.parse().unwrap());
    let mut r = Lcg(7);
    let mut nodes = Vec::new();
    let columns = (count as f64).sqrt().ceil() as u64 + 2;
    let kinds = [NodeType::Image, NodeType::Image, NodeType::Text, NodeType::Sticky, NodeType::Video];
    for i in 0..count {
        let kind = kinds[r.below(5) as usize];
        let (w, h) = kind.default_size();
        let (c, row) = ((i % columns) as f64, (i / columns) as f64);
        let (jx, jy) = if mode == "jitter" { (r.below(60) as f64, r.below(60) as f64) } else { (0.0, 0.0) };
        let step = if mode == "jitter" { 560.0 } else { 540.0 };
        nodes.push(node(format!("n{i}"), kind, c * step + jx, row * 400.0 + jy, w, h));
    }
    let mut connections = Vec::new();
    let purposes = [Purpose::Flow, Purpose::Reference, Purpose::List, Purpose::FirstFrame];
    for i in 0..count * 3 / 2 {
        let a = r.below(count);
        let b = if i % 3 > 0 { (a as i64 + [1, 2, columns as i64, columns as i64 + 1, -1, -(columns as i64), 2 * columns as i64][r.below(7) as usize]).clamp(0, count as i64 - 1) as u64 } else if count > 100 { (a + r.below(5 * columns)) % count } else { r.below(count) };
        if a == b { continue; }
        connections.push(Connection { id: ConnectionId::parse(&format!("c{i}")).unwrap(), from: nodes[a as usize].id.clone(), to: nodes[b as usize].id.clone(), purpose: purposes[r.below(4) as usize], role: None });
    }
    if std::env::args().nth(3).is_some() {
        for _ in 0..3 {
        let mut best = [f64::MAX; 2];
        for _ in 0..30 {
            for (k, cs) in [&connections[..], &[]].iter().enumerate() {
                let t = Instant::now();
                let d = Drawing::new("x", &nodes, cs, Style::default());
                std::hint::black_box(d.finish(|_| Picture::Pending));
                best[k] = best[k].min(t.elapsed().as_secs_f64() * 1e3);
            }
        }
        eprintln!("{count} nodes {} connections: with {:.2} ms, without connections {:.2} ms", connections.len(), best[0], best[1]);
        }
        return;
    }
    print!("{}", Drawing::new("x", &nodes, &connections, Style::default()).finish(|_| Picture::Pending));
}
