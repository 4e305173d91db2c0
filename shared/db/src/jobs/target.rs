//! The nodes that take a job's results: marked at its start, filled or freed at its end (decisions 3.7: `metadata.job`
//! changes at no other time).

use domain::Timestamp;
use domain::canvas;
use domain::graph::Node;
use domain::id::{AssetHandle, JobId};
use domain::job::{JobOperation, JobStatus};
use serde_json::{Map, Value, json};

use crate::{Error, Result};

/// Earlier assets that a node remembers (decisions 10.2).
const HISTORY_MAX: usize = 50;

/// Binds nodes to the job that will fill them, as the transaction read them in a canvas whose row it holds; they are the
/// caller's to write. By how many bytes the serialized graph grows, or `None` when another job has one.
pub fn mark_targets(nodes: &mut [Node], job: JobId, operation: JobOperation) -> Result<Option<i64>> {
    let mut bytes_delta = 0;
    for node in nodes {
        if node.active_job.is_some() {
            return Ok(None);
        }
        bytes_delta -= serialized_bytes(node)?;
        node.active_job = Some(job.0);
        note_job(node, job, JobStatus::Queued, operation);
        bytes_delta += serialized_bytes(node)?;
    }
    Ok(Some(bytes_delta))
}

/// Frees a node of a job that ended.
pub(super) fn free(node: &mut Node, job: JobId, status: JobStatus, operation: JobOperation) {
    node.active_job = None;
    note_job(node, job, status, operation);
}

/// Lets a node show what a job made at `at`; what it showed before moves to its history, with the run that replaced it.
pub(super) fn fill(node: &mut Node, job: JobId, asset: AssetHandle, mut provenance: Map<String, Value>, at: Timestamp) {
    if let Some(earlier) = node.asset.replace(asset) {
        let mut history = vec![json!({"asset": earlier, "run": job.run_handle(), "at": at})];
        if let Some(Value::Array(entries)) = node.server.remove("history") {
            history.extend(entries.into_iter().take(HISTORY_MAX - 1));
        }
        node.server.insert("history".into(), history.into());
    }
    provenance.insert("createdAt".into(), json!(at));
    node.server.insert("provenance".into(), provenance.into());
}

/// `metadata.job`.
fn note_job(node: &mut Node, job: JobId, status: JobStatus, operation: JobOperation) {
    let note = json!({"id": job.job_handle(), "run": job.run_handle(), "status": status, "operation": operation});
    node.server.insert("job".into(), note);
}

/// The node's share in the serialized size of its canvas (decisions 3.7).
pub(crate) fn serialized_bytes(node: &Node) -> Result<i64> {
    let bytes = serde_json::to_vec(&canvas::Node::from(node.clone()))
        .map_err(|error| Error::Unreadable { column: "nodes", value: error.to_string() })?;
    // A length in memory is below 2^63.
    Ok(bytes.len() as i64)
}

#[cfg(test)]
mod tests {
    use domain::graph::{NodeType, Position};
    use domain::id::{AccountUid, AssetId, NodeId};

    use super::*;

    fn asset(id: &str) -> AssetHandle {
        AssetHandle { owner: AccountUid::from_stored("me".into()), id: AssetId::from_stored(id.into()) }
    }

    fn node() -> Node {
        Node {
            id: NodeId::generate(),
            kind: NodeType::Image,
            title: "image".into(),
            position: Position { x: 0.0, y: 0.0 },
            width: 320.0,
            height: 320.0,
            agent_owned: true,
            metadata: Default::default(),
            server: Default::default(),
            asset: None,
            active_job: None,
        }
    }

    fn at() -> Timestamp {
        serde_json::from_str("\"2026-01-02T03:04:05.678Z\"").expect("a time")
    }

    #[test]
    fn an_empty_node_gets_provenance_and_no_history() {
        let mut node = node();
        fill(&mut node, JobId::generate(), asset("a"), Map::new(), at());
        assert_eq!(node.asset, Some(asset("a")));
        assert_eq!(node.server["provenance"]["createdAt"], "2026-01-02T03:04:05.678Z");
        assert!(!node.server.contains_key("history"));
    }

    #[test]
    fn the_newest_fifty_earlier_assets_are_remembered() {
        let mut node = node();
        for index in 0..=51 {
            fill(&mut node, JobId::generate(), asset(&index.to_string()), Map::new(), at());
        }
        let history = node.server["history"].as_array().expect("a history");
        assert_eq!(history.len(), 50);
        assert_eq!((&history[0]["asset"], &history[49]["asset"]), (&json!("asset:me:50"), &json!("asset:me:1")));
    }
}
