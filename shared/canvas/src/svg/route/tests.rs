//! Routes around cards.

use domain::graph::{NodeType, Purpose};
use proptest::prelude::*;

use super::*;
use crate::fixture::{at, connection, node, section};

fn card(name: &str, x: f64, y: f64, width: f64, height: f64) -> Node {
    Node { width, height, ..at(node(name, NodeType::Image), x, y) }
}

fn route(nodes: &[Node], from: &str, to: &str) -> Route {
    Router::new(nodes.iter()).route(&connection("c", from, to, Purpose::Flow)).expect("both nodes are drawn")
}

fn lines(route: Route) -> Vec<Point> {
    match route.path {
        Path::Lines(points) if route.is_free => points,
        other => panic!("{other:?}"),
    }
}

/// Returns `true` if a path enters a frame.
fn enters(path: &Path, frame: Frame) -> bool {
    match path {
        Path::Curve(curve) => curve.meets(frame),
        Path::Lines(points) => points.windows(2).any(|ends| {
            let (across, down) = (Span::between(ends[0].0, ends[1].0), Span::between(ends[0].1, ends[1].1));
            frame.overlaps(Axis::Horizontal.frame(across, down))
        }),
    }
}

/// Cards in a grid whose gutters are `gap` wide; each card is at the place in its cell that `inset` says.
fn grid(columns: usize, insets: &[(f64, f64)], gap: f64) -> Vec<Node> {
    let cards = insets.iter().enumerate().map(|(index, (inset_x, inset_y))| {
        let (column, row) = ((index % columns) as f64, (index / columns) as f64);
        let (x, y) = (column * (200.0 + gap), row * (150.0 + gap));
        // What remains of the cell to the right and below is at least half of it.
        let (width, height) = (200.0 - 100.0 * inset_x, 150.0 - 75.0 * inset_y);
        card(&format!("n{index}"), x + (200.0 - width) * inset_y, y + (150.0 - height) * inset_x, width, height)
    });
    cards.collect()
}

#[test]
fn a_free_curve_stays() {
    let nodes = [card("a", 0.0, 0.0, 100.0, 100.0), card("b", 400.0, 300.0, 100.0, 100.0), section("s")];
    let curve = Curve::between(Frame::from_node(&nodes[0]), Frame::from_node(&nodes[1]));
    assert_eq!(route(&nodes, "a", "b"), Route { path: Path::Curve(curve), is_free: true });
}

#[test]
fn a_line_leads_around_the_title_of_a_section_and_through_the_rest_of_it() {
    let titled = Node { title: "A title".into(), width: 500.0, height: 400.0, ..at(section("s"), 200.0, 0.0) };
    let title = title_strip(&titled).expect("a title");
    let ends = |y: f64| [card("a", 0.0, y, 100.0, 100.0), card("b", 800.0, y, 100.0, 100.0), titled.clone()];
    assert!(!enters(&Path::Lines(lines(route(&ends(-20.0), "a", "b"))), title));
    assert!(matches!(route(&ends(200.0), "a", "b"), Route { path: Path::Curve(_), is_free: true }));
    // A title that no way leads around is passed behind, and reported.
    let wide =
        Node { title: "A title ".repeat(900), width: 60_000.0, height: 60_000.0, ..at(section("s"), -200.0, 0.0) };
    let wide =
        Node { metadata: crate::fixture::written(serde_json::json!({"section": true, "fontSize": 1000})), ..wide };
    let nodes = [card("a", 2000.0, -300.0, 100.0, 100.0), card("b", 2000.0, 3000.0, 100.0, 100.0), wide];
    assert!(!route(&nodes, "a", "b").is_free);
    let crossed = Router::new(nodes.iter()).crossed(&connection("c", "a", "b", Purpose::Flow));
    assert_eq!(crossed.iter().map(|node| node.id.as_str()).collect::<Vec<_>>(), ["s"]);
}

#[test]
fn a_line_leads_over_a_card_in_the_same_row() {
    let nodes = [
        card("a", 0.0, 0.0, 100.0, 100.0),
        card("wall", 200.0, 0.0, 100.0, 100.0),
        card("b", 400.0, 0.0, 100.0, 100.0),
    ];
    let over = lines(route(&nodes, "a", "b"));
    let height = over[1].1;
    assert!((-36.0..=-16.0).contains(&height), "{height}");
    assert_eq!(over, [(50.0, 0.0), (50.0, height), (450.0, height), (450.0, -GAP)]);
}

#[test]
fn a_line_bends_once_where_that_is_free() {
    let nodes = [
        card("a", 0.0, 0.0, 100.0, 100.0),
        card("wall", 150.0, 120.0, 180.0, 200.0),
        card("b", 400.0, 400.0, 100.0, 100.0),
    ];
    assert_eq!(lines(route(&nodes, "a", "b")), [(100.0, 50.0), (450.0, 50.0), (450.0, 397.0)]);
    assert_eq!(lines(route(&nodes, "b", "a")), [(400.0, 450.0), (50.0, 450.0), (50.0, 103.0)], "and back");
}

#[test]
fn a_node_behind_a_wall_is_reached_through_two_gutters() {
    let nodes = [
        card("a", 0.0, 0.0, 100.0, 100.0),
        card("wall", 150.0, -500.0, 100.0, 1400.0),
        card("roof", -300.0, -200.0, 410.0, 150.0),
        card("floor", -300.0, 150.0, 410.0, 150.0),
        card("b", 600.0, 0.0, 100.0, 100.0),
    ];
    let Route { path, is_free } = route(&nodes, "a", "b");
    assert!(is_free, "{path:?}");
    assert!(nodes[1..4].iter().all(|node| !enters(&path, Frame::from_node(node))));
}

#[test]
fn a_node_that_is_enclosed_keeps_its_curve() {
    let wall = |name: &str, x, y, width, height| card(name, x, y, width, height);
    let nodes = [
        card("a", 20.0, 20.0, 100.0, 100.0),
        wall("left", -120.0, -100.0, 130.0, 340.0),
        wall("right", 130.0, -100.0, 130.0, 340.0),
        wall("above", 12.0, -100.0, 116.0, 110.0),
        wall("below", 12.0, 130.0, 116.0, 110.0),
        card("b", 600.0, 20.0, 100.0, 100.0),
    ];
    let curve = Curve::between(Frame::from_node(&nodes[0]), Frame::from_node(&nodes[5]));
    assert_eq!(route(&nodes, "a", "b"), Route { path: Path::Curve(curve), is_free: false });
    let crossed = |nodes: &[Node]| {
        let router = Router::new(nodes.iter());
        let crossed = router.crossed(&connection("c", "a", "b", Purpose::Flow));
        crossed.iter().map(|node| node.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(crossed(&nodes), ["right"]);
    let many: Vec<Node> = nodes
        .iter()
        .cloned()
        .chain(
            (0..12).map(|index| card(&format!("w{index:02}"), 270.0 + 25.0 * f64::from(index), -2000.0, 20.0, 4000.0)),
        )
        .collect();
    assert_eq!(crossed(&many).len(), CROSSED_MAX);
}

#[test]
fn a_crowd_costs_a_bounded_effort_and_leaves_the_curves() {
    let mut nodes: Vec<Node> =
        (0..5000).map(|index| card(&format!("n{index}"), 150.0, -2000.0, 300.0, 4000.0)).collect();
    nodes.extend([card("a", 0.0, 0.0, 100.0, 100.0), card("b", 600.0, 0.0, 100.0, 100.0)]);
    assert!(!route(&nodes, "a", "b").is_free);
}

proptest! {
    #[test]
    fn a_free_route_enters_no_card_and_ends_at_its_nodes(
        cards in prop::collection::vec((0..30_u8, 0..30_u8, 1..8_u8, 1..8_u8), 2..40),
    ) {
        let side = |cells: u8| 40.0 * f64::from(cells);
        let cards = cards.iter().enumerate().map(|(index, (x, y, width, height))| {
            card(&format!("n{index}"), side(*x), side(*y), side(*width), side(*height))
        });
        let nodes: Vec<Node> = cards.collect();
        let route = route(&nodes, "n0", "n1");
        let [from, to] = [0, 1].map(|index: usize| Frame::from_node(&nodes[index]));
        if route.is_free {
            for other in &nodes[2..] {
                prop_assert!(!enters(&route.path, Frame::from_node(other)), "{} {:?}", other.id, route.path);
            }
        }
        if let Path::Lines(points) = &route.path {
            prop_assert!(!enters(&route.path, from) && !enters(&route.path, to), "{:?}", route.path);
            let (start, end) = (points[0], points[points.len() - 1]);
            let on = |frame: Frame, (x, y): Point| {
                let (middle_x, middle_y) = middle(frame);
                x == middle_x && (y == frame.top || y == frame.bottom)
                    || y == middle_y && (x == frame.left || x == frame.right)
            };
            prop_assert!(on(from, start) && on(to.widened(GAP), end), "{:?}", route.path);
        }
    }

    #[test]
    fn through_gutters_every_card_reaches_every_other(
        insets in prop::collection::vec((0.0..1.0, 0.0..1.0), 4..30),
        columns in 1..7_usize,
        gap in 33.0..120.0,
        ends in (0..30_usize, 0..30_usize),
    ) {
        let nodes = grid(columns, &insets, gap);
        let (from, to) = (ends.0 % nodes.len(), ends.1 % nodes.len());
        prop_assume!(from != to);
        let route = route(&nodes, nodes[from].id.as_str(), nodes[to].id.as_str());
        prop_assert!(route.is_free, "{:?}", route.path);
    }

    #[test]
    fn a_route_depends_on_what_is_near_it_alone(
        insets in prop::collection::vec((0.0..1.0, 0.0..1.0), 9..=9),
        far in (5000.0..9000.0, -9000.0..9000.0),
        shift in (-1e6..1e6, -1e6..1e6),
    ) {
        let nodes = grid(3, &insets, 60.0);
        let before = route(&nodes, "n0", "n8");
        let mut more = nodes.clone();
        more.insert(0, card("far", far.0, far.1, 300.0, 300.0));
        prop_assert_eq!(&route(&more, "n0", "n8"), &before);
        // Whole units, so that no rounding differs.
        let (x, y): (f64, f64) = (shift.0, shift.1);
        let (x, y) = (x.round(), y.round());
        let moved: Vec<Node> =
            nodes.iter().map(|node| at(node.clone(), node.position.x + x, node.position.y + y)).collect();
        let after = route(&moved, "n0", "n8");
        let points = |route: &Route, x: f64, y: f64| match &route.path {
            Path::Curve(curve) => curve.0.iter().map(|point| (point.0 - x, point.1 - y)).collect::<Vec<_>>(),
            Path::Lines(points) => points.iter().map(|point| (point.0 - x, point.1 - y)).collect(),
        };
        let (before, after) = (points(&before, 0.0, 0.0), points(&after, x, y));
        prop_assert_eq!(before.len(), after.len());
        for (one, other) in before.iter().zip(&after) {
            prop_assert!((one.0 - other.0).abs() < 1e-6 && (one.1 - other.1).abs() < 1e-6);
        }
    }
}
