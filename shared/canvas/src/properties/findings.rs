//! Findings after random batches: equal in a dry run and after the write, and equal to those of a comparison of every
//! pair.

use std::collections::BTreeSet;

use domain::known::Name;
use domain::review::{Finding, FindingCode, Group, Severity, StoredAssets};

use super::*;
use crate::placement::Frame;
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_dry_run_finds_what_the_write_finds_and_leaves(operations in operations(), options in options()) {
        let batch = Batch::new(operations).expect("only batches without violations are generated");
        let (mut tried, mut written) = (graph(), graph());
        let assets = StoredAssets::new();
        let outcomes = [apply(&mut tried, &batch, options), apply(&mut written, &batch, options)];
        let [Ok(dry), Ok(wet)] = outcomes else { return Ok(()) };
        let (of_dry, of_wet) = (validate(&tried, &dry.touched, &assets), validate(&written, &wet.touched, &assets));
        prop_assert_eq!(said(&of_dry.findings, &Rename::from_applied(&dry)), said(&of_wet.findings, &Rename::from_applied(&wet)));
        prop_assert_eq!((of_dry.status, of_dry.truncated), (of_wet.status, of_wet.truncated));
        prop_assert_eq!(is_blocked(&mut written, &wet.touched), of_wet.is_blocked());
        // The graph that the next request loads has the same findings.
        let mut store = restore::Store::start();
        store.write(&wet, &written);
        let (nodes, connections) = store.present();
        let read = crate::fixture::graph(nodes, connections);
        prop_assert_eq!(validate(&read, &wet.touched, &assets), of_wet);
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
            let validation = validate(&graph, touched, &StoredAssets::new());
            let of_overlap = |finding: &&Finding| finding.group() == Some(Group::Overlap);
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
