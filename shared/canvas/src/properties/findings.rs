//! Findings after random batches: equal in a dry run and after the write, and equal to those of a comparison of every
//! pair. Findings on places on random boards: equal to those of a comparison of every pair.

use std::collections::BTreeSet;

use domain::known::Name;
use domain::review::{Finding, FindingCode, Severity, StoredAssets};

use super::*;
use crate::fixture::{section, sticky};
use crate::placement::Frame;
use crate::repair::repair;
use crate::svg::title_strip;
use crate::{Touched, is_blocked, validate};

fn handles(list: &[String], rename: &Rename) -> Vec<String> {
    list.iter().filter_map(|handle| handle.split_once(':')).map(|(_, id)| rename.name(id).to_owned()).collect()
}

/// A finding, with the names of the batch.
type Said = (Name<FindingCode>, Severity, Vec<String>, Vec<String>);

/// The findings, with the names of the batch.
fn said(findings: &[Finding], rename: &Rename) -> Vec<Said> {
    let all = findings.iter().map(|finding| {
        let nodes = handles(&finding.node_handles, rename);
        (finding.code.clone(), finding.severity, nodes, handles(&finding.connection_handles, rename))
    });
    all.collect()
}

/// Every overlap of the graph by definition: each pair is compared.
fn overlaps(graph: &Graph, touched: &Touched) -> BTreeSet<(Name<FindingCode>, Severity, Vec<String>)> {
    let nodes: Vec<&Node> = graph.nodes().collect();
    let mut found = BTreeSet::new();
    for (at, a) in nodes.iter().enumerate() {
        for b in &nodes[at + 1..] {
            let (one, other) = (Frame::from_node(a), Frame::from_node(b));
            let wide = one.right.min(other.right) - one.left.max(other.left);
            let high = one.bottom.min(other.bottom) - one.top.max(other.top);
            if a.is_section() != b.is_section() || wide <= 1.0 || high <= 1.0 {
                continue;
            }
            let placed_by_agent = |node: &Node| node.agent_owned && touched.placed.contains(&node.id);
            let (code, severity) = match (a.agent_owned || b.agent_owned, placed_by_agent(a) || placed_by_agent(b)) {
                (true, true) => (FindingCode::AgentOverlap, Severity::Error),
                (true, false) => (FindingCode::AgentOverlap, Severity::Warning),
                (false, _) => (FindingCode::UserOverlap, Severity::Info),
            };
            found.insert((code.into(), severity, vec![a.id.handle(), b.id.handle()]));
        }
    }
    found
}

fn severity(is_agents: bool) -> Severity {
    if is_agents { Severity::Warning } else { Severity::Info }
}

/// How much two frames share along each axis; negative if they are apart.
fn shared(a: Frame, b: Frame) -> (f64, f64) {
    (a.right.min(b.right) - a.left.max(b.left), a.bottom.min(b.bottom) - a.top.max(b.top))
}

fn is_thin(frame: Frame) -> bool {
    frame.right - frame.left <= 1.0 || frame.bottom - frame.top <= 1.0
}

fn touches(node: &Node, other: &Node) -> bool {
    let (a, b) = (Frame::from_node(node), Frame::from_node(other));
    if is_thin(a) || is_thin(b) {
        return false;
    }
    let (wide, high) = shared(a, b);
    let overlaps = wide > 1.0 && high > 1.0;
    let is_near = !overlaps && wide > -16.0 && high > -16.0;
    match (node.is_section(), other.is_section()) {
        (false, false) => {
            let alike = |a: f64, b: f64| (a - b).abs() <= 1.0;
            let is_row = alike(a.top, b.top) && alike(a.bottom - a.top, b.bottom - b.top);
            let is_column = alike(a.left, b.left) && alike(a.right - a.left, b.right - b.left);
            is_near && !is_row && !is_column
        }
        (true, true) => is_near,
        (true, false) => unreachable!("the Section is the second"),
        (false, true) if node.section_id() == Some(other.id.as_str()) => {
            let inside = [a.left - b.left, b.right - a.right, b.bottom - a.bottom, a.top - b.top];
            let is_out = inside.iter().any(|distance| *distance < -1e-6);
            let is_at_edge = inside[..3].iter().any(|distance| *distance < 16.0 - 1e-6);
            let on_title = title_strip(other).map(|title| shared(title, a));
            !is_out && (is_at_edge || on_title.is_some_and(|(wide, high)| wide > 1.0 && high > 1.0))
        }
        (false, true) => {
            let beyond = [b.left - a.left, a.right - b.right, b.top - a.top, a.bottom - b.bottom];
            is_near || overlaps && beyond.iter().any(|distance| *distance > 1.0)
        }
    }
}

fn staggered(section: &Node, others: &[&Node]) -> Option<Vec<String>> {
    let frame = Frame::from_node(section);
    let mut neighbours: Vec<(f64, usize, bool)> = Vec::new();
    for (at, other) in others.iter().enumerate().filter(|(_, other)| other.is_section() && other.id != section.id) {
        let other = Frame::from_node(other);
        let (wide, high) = shared(frame, other);
        if wide > 1.0 && high > 1.0 || is_thin(frame) || is_thin(other) {
            continue;
        }
        let shorter = |a: f64, b: f64| a.min(b) / 2.0;
        let level =
            |of: Frame| [of.left, (of.left + of.right) / 2.0, of.right, of.top, (of.top + of.bottom) / 2.0, of.bottom];
        let is_level = level(frame).iter().zip(level(other)).any(|(a, b)| (a - b).abs() <= 1.0);
        if (-200.0..=1.0).contains(&wide) && high >= shorter(frame.bottom - frame.top, other.bottom - other.top) {
            neighbours.push(((-wide).max(0.0), at, is_level));
        } else if (-200.0..=1.0).contains(&high) && wide >= shorter(frame.right - frame.left, other.right - other.left)
        {
            neighbours.push(((-high).max(0.0), at, is_level));
        }
    }
    neighbours.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let is_alone = neighbours.is_empty() || neighbours.iter().any(|(.., is_level)| *is_level);
    let named = neighbours.iter().take(2).map(|(_, at, _)| others[*at].id.handle());
    (!is_alone).then(|| std::iter::once(section.id.handle()).chain(named).collect())
}

/// Every finding on places by definition: each pair is compared.
fn places(graph: &Graph) -> BTreeSet<(Name<FindingCode>, Severity, Vec<String>)> {
    let nodes: Vec<&Node> = graph.nodes().collect();
    let mut found = overlaps(graph, &Touched::default());
    for (at, first) in nodes.iter().enumerate() {
        for second in &nodes[at + 1..] {
            let (a, b) = if first.is_section() && !second.is_section() { (second, first) } else { (first, second) };
            if touches(a, b) {
                let nodes = vec![a.id.handle(), b.id.handle()];
                found.insert((FindingCode::FramesTouch.into(), severity(a.agent_owned || b.agent_owned), nodes));
            }
        }
        if let Some(named) = first.is_section().then(|| staggered(first, &nodes)).flatten() {
            found.insert((FindingCode::SectionsStaggered.into(), severity(first.agent_owned), named));
        }
    }
    found
}

/// Boards on which frames are often near to each other, aligned or members of a Section.
fn boards() -> impl Strategy<Value = Vec<Node>> {
    let place = || (0..40_i16).prop_map(|at| f64::from(at) * 15.5);
    let side = || prop_oneof![Just(1.0), Just(40.0), Just(62.0), 2.0..400.0];
    let node =
        (place(), place(), side(), side(), any::<bool>(), any::<bool>(), prop::option::of(0..12_usize), any::<bool>());
    prop::collection::vec(node, 0..14).prop_map(|nodes| {
        let is_section: Vec<bool> = nodes.iter().map(|node| node.5).collect();
        let made = nodes.into_iter().enumerate().map(|(at, (x, y, width, height, agent_owned, _, home, is_titled))| {
            let id = format!("n{at}");
            let mut node = if is_section[at] { section(&id) } else { sticky(&id) };
            let home = home.filter(|home| !is_section[at] && is_section.get(*home) == Some(&true));
            node.metadata.section_id = home.map(|home| crate::fixture::id(&format!("n{home}")));
            if !is_titled {
                node.title = String::new();
            }
            Node { position: Position { x, y }, width, height, agent_owned, ..node }
        });
        made.collect()
    })
}

/// Place and size of the nodes of people.
fn frames_of_people(graph: &Graph) -> Vec<(NodeId, Position, f64, f64)> {
    let theirs = graph.nodes().filter(|node| !node.agent_owned);
    theirs.map(|node| (node.id.clone(), node.position, node.width, node.height)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_repair_is_one_batch_that_is_accepted_and_moves_nothing_of_a_person(nodes in boards()) {
        let mut graph = crate::fixture::graph(nodes, vec![]);
        let assets = StoredAssets::new();
        let repaired = repair(graph.clone(), &assets);
        prop_assert!(repaired.deletions.is_empty(), "there are only notes and Sections");
        let before = frames_of_people(&graph);
        if !repaired.operations.is_empty() {
            let batch = Batch::new(repaired.operations.clone()).expect("is well formed");
            let applied = apply(&mut graph, &batch, Options { agent: true, force: false }).expect("is accepted");
            prop_assert!(!is_blocked(&mut graph, &applied.touched));
        }
        prop_assert_eq!(frames_of_people(&graph), before);
        let held = validate(&graph, &Touched::default(), &assets, &[]).findings;
        let held: Vec<Finding> = held.into_iter().filter(|finding| finding.holds_claim).collect();
        prop_assert_eq!(held, repaired.leaves);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn the_findings_on_places_are_those_that_comparing_each_with_each_finds(nodes in boards()) {
        let graph = crate::fixture::graph(nodes, vec![]);
        let codes = [
            FindingCode::AgentOverlap,
            FindingCode::UserOverlap,
            FindingCode::FramesTouch,
            FindingCode::SectionsStaggered,
        ];
        let validation = validate(&graph, &Touched::default(), &StoredAssets::new(), &[]);
        let of_places = validation.findings.iter().filter(|finding| codes.iter().any(|code| finding.code == *code));
        let listed: Vec<_> = of_places
            .map(|finding| (finding.code.clone(), finding.severity, finding.node_handles.clone()))
            .collect();
        let found: BTreeSet<_> = listed.iter().cloned().collect();
        prop_assert_eq!(found.len(), listed.len(), "each once");
        prop_assert!(!validation.truncated);
        prop_assert_eq!(found, places(&graph));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_dry_run_finds_what_the_write_finds_and_leaves(operations in operations(), options in options()) {
        let batch = Batch::new(operations).expect("only batches without violations are generated");
        let (mut tried, mut written) = (graph(), graph());
        let assets = StoredAssets::new();
        let outcomes = [apply(&mut tried, &batch, options), apply(&mut written, &batch, options)];
        let [Ok(dry), Ok(wet)] = outcomes else { return Ok(()) };
        let (of_dry, of_wet) = (validate(&tried, &dry.touched, &assets, &[]), validate(&written, &wet.touched, &assets, &[]));
        prop_assert_eq!(said(&of_dry.findings, &Rename::from_applied(&dry)), said(&of_wet.findings, &Rename::from_applied(&wet)));
        prop_assert_eq!((of_dry.status, of_dry.truncated), (of_wet.status, of_wet.truncated));
        prop_assert_eq!(is_blocked(&mut written, &wet.touched), of_wet.is_blocked());
        // The graph that the next request loads has the same findings.
        let mut store = restore::Store::start();
        store.write(&wet, &written);
        let (nodes, connections) = store.present();
        let read = crate::fixture::graph(nodes, connections);
        prop_assert_eq!(validate(&read, &wet.touched, &assets, &[]), of_wet);
    }

    #[test]
    fn the_overlaps_found_are_those_that_comparing_each_with_each_finds(
        operations in operations(),
        options in options(),
    ) {
        let batch = Batch::new(operations).expect("only batches without violations are generated");
        let mut graph = graph();
        let Ok(applied) = apply(&mut graph, &batch, options) else { return Ok(()) };
        for touched in [&applied.touched, &Touched::default()] {
            let expected = overlaps(&graph, touched);
            let validation = validate(&graph, touched, &StoredAssets::new(), &[]);
            let codes = [FindingCode::AgentOverlap, FindingCode::UserOverlap];
            let of_overlap = |finding: &&Finding| codes.iter().any(|code| finding.code == *code);
            let listed: Vec<_> = validation
                .findings
                .iter()
                .filter(of_overlap)
                .map(|finding| (finding.code.clone(), finding.severity, finding.node_handles.clone()))
                .collect();
            let found: BTreeSet<_> = listed.iter().cloned().collect();
            prop_assert_eq!(found.len(), listed.len(), "each pair once");
            prop_assert!(found.is_subset(&expected));
            prop_assert!(validation.truncated || found == expected);
            prop_assert!(validation.findings.is_sorted_by_key(|finding| finding.severity));
        }
    }
}
