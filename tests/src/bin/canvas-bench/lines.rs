//! The time that a render takes to lead lines around nodes: 1000 nodes whose lines are blocked, and the same with free lines.

use std::time::Instant;

use e2e::api::text;
use e2e::{API_ROOT, Stack, User};
use serde_json::{Value, json};

use crate::load::{Connection, get};
use crate::table::{BenchRow, median};

/// Nodes in rows, and a line from each of the first to a later one.
const NODES: usize = 1000;
const LINES: usize = 800;
const COLUMNS: usize = 32;
/// Distance of nodes, in canvas units: room for two lines between them.
const PITCH: (usize, usize) = (400, 240);
/// Operations in a batch.
const BATCH: usize = 200;
const ROUNDS: usize = 15;
const RATIO: f64 = 2.0;

/// Renders both canvases alternately, each time with a new revision, so that no drawing is cached.
pub async fn measure(stack: &Stack) -> Vec<BenchRow> {
    let user = stack.user().await;
    // To the neighbor below; and over one to seven columns and up to three rows.
    let free = lines(&user, |_| COLUMNS).await;
    let routed = lines(&user, |node| 1 + node % 7 + COLUMNS * (node % 4)).await;
    let mut connection = Connection::to(&stack.authority(0));
    let mut samples = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        for (id, samples) in [&free, &routed].into_iter().zip(&mut samples) {
            user.apply(id, json!([{"type": "canvas.update", "title": format!("Round {round}")}])).await;
            let request = get(&format!("{API_ROOT}/canvases/{id}/render"), Some(&user.token));
            let began = Instant::now();
            assert_eq!(connection.exchange(&request).await.status, 200);
            samples.push(began.elapsed().as_secs_f64() * 1e3);
        }
    }
    let [free, routed] = samples.map(|samples| median(&samples));
    vec![
        BenchRow::reported(format!("render of {NODES} nodes, lines around nodes"), format!("{:.2}", routed / free))
            .ours(format!("{routed:.1} ms"))
            .peer(format!("{free:.1} ms"))
            .goal(format!("<= {RATIO}"), routed <= RATIO * free)
            .note(format!("SVG of the same nodes with {LINES} lines, which lead around nodes or are free.")),
    ]
}

/// A canvas of [`NODES`] nodes with [`LINES`] lines, each to the node that is `step` further; its id.
async fn lines(user: &User, step: impl Fn(usize) -> usize) -> String {
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id").to_owned();
    let mut nodes = Vec::new();
    for first in (0..NODES).step_by(BATCH) {
        let create = |node: usize| {
            let position = json!({"x": node % COLUMNS * PITCH.0, "y": node / COLUMNS * PITCH.1});
            let node_of = json!({"type": "text", "title": format!("Node {node}"), "position": position});
            json!({"type": "node.create", "clientId": format!("n{node}"), "node": node_of})
        };
        let made = user.apply(&id, (first..first + BATCH).map(create).collect::<Value>()).await;
        nodes.extend((first..first + BATCH).map(|node| made["resolvedIds"][format!("n{node}")].clone()));
    }
    for first in (0..LINES).step_by(BATCH) {
        let connect = |from: usize| {
            let to = &nodes[from + step(from)];
            json!({"type": "connection.create", "fromNodeId": nodes[from], "toNodeId": to, "purpose": "flow"})
        };
        user.apply(&id, (first..first + BATCH).map(connect).collect::<Value>()).await;
    }
    id
}
