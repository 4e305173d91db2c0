//! The outputs of a canvas and whether each is stored. Rules: `docs/reference/findings.md#outputs`.

use domain::counted;
use domain::graph::{Node, NodeType};
use domain::job::JobStatus;
use domain::review::{DeliveryClearance, DeliveryReview, DetachedOutput, Outputs, OwingWork, StoredAssets};

use crate::findings::is_empty_slot;
use crate::graph::Graph;

/// Counts the outputs and lists what prevents their delivery.
pub(super) fn assess(
    graph: &Graph,
    assets: &StoredAssets,
    detached: &[DetachedOutput],
    works: &[OwingWork],
) -> (Outputs, DeliveryReview) {
    let mut outputs = Outputs::default();
    let mut delivery = DeliveryReview {
        status: DeliveryClearance::Clear,
        reasons: Vec::new(),
        pending_output_handles: Vec::new(),
        failed_output_handles: Vec::new(),
        non_durable_output_handles: Vec::new(),
    };
    for node in graph.nodes().filter(|node| is_output(node) || node.agent_owned && is_empty_slot(node)) {
        let handle = node.id.handle();
        let is_durable = is_durable(node, assets);
        outputs.count += 1;
        outputs.durable_count += usize::from(is_durable);
        if node.active_job.is_some() {
            outputs.pending_count += 1;
            delivery.pending_output_handles.push(handle.clone());
        } else if unfilled(node).is_some() {
            outputs.failed_count += 1;
            delivery.failed_output_handles.push(handle.clone());
        } else if !is_durable {
            delivery.non_durable_output_handles.push(handle.clone());
        }
        outputs.handles.push(handle);
    }
    for (handles, of_one, of_several) in [
        (&delivery.pending_output_handles, "waits for its job", "wait for their jobs"),
        (
            &delivery.failed_output_handles,
            "failed or was canceled and shows nothing",
            "failed or were canceled and show nothing",
        ),
        (&delivery.non_durable_output_handles, "shows nothing that is stored", "show nothing that is stored"),
    ] {
        if !handles.is_empty() {
            let what = if handles.len() == 1 { of_one } else { of_several };
            delivery.reasons.push(format!("{} {what}", counted(handles.len(), "output")));
        }
    }
    for output in detached {
        let handle = output.node.handle();
        delivery.reasons.push(match &output.asset {
            Some(asset) => {
                format!("{handle} was deleted meanwhile: its output is kept as {asset}, which no node shows")
            }
            None => format!("{handle} was deleted meanwhile: no node shows its output"),
        });
        // One that was restored is an output anyway.
        if !outputs.handles.contains(&handle) {
            delivery.non_durable_output_handles.push(handle.clone());
            outputs.count += 1;
            outputs.handles.push(handle);
        }
    }
    for OwingWork { handle, is_active, made, owed, .. } in works.iter().filter(|work| work.owed > 0) {
        delivery.reasons.push(format!("{handle} has {made} of {}", counted(made + owed, "output")));
        let (count, handles) = if *is_active {
            (&mut outputs.pending_count, &mut delivery.pending_output_handles)
        } else {
            (&mut outputs.failed_count, &mut delivery.failed_output_handles)
        };
        *count += 1;
        handles.push(handle.clone());
        outputs.count += 1;
        outputs.handles.push(handle.clone());
    }
    if !delivery.reasons.is_empty() {
        delivery.status = DeliveryClearance::Blocked;
    }
    let given_up = works.iter().filter(|work| work.given_up > 0);
    delivery.reasons.extend(given_up.map(|work| match work.given_up {
        1 => format!("1 output of {} was given up", work.handle),
        count => format!("{count} outputs of {} were given up", work.handle),
    }));
    (outputs, delivery)
}

/// Returns `true` if a job or Recipe has targeted or filled the node: an image, a video, or a text that the service writes, which a client may have
/// made a sticky.
pub(super) fn is_output(node: &Node) -> bool {
    let is_targeted = node.active_job.is_some() || node.job().is_some();
    match node.kind {
        NodeType::Image | NodeType::Video => is_targeted || node.is_made(),
        NodeType::Text | NodeType::Sticky => is_targeted,
    }
}

/// Returns `true` if what it shows is stored: its asset, or its text, which is stored with the node.
fn is_durable(node: &Node, assets: &StoredAssets) -> bool {
    match node.kind {
        NodeType::Text | NodeType::Sticky => node.content().is_some_and(|content| !content.is_empty()),
        _ => node.asset.as_ref().is_some_and(|asset| assets.contains_key(asset)),
    }
}

/// `failed` or `canceled`, if the node shows nothing and its last work ended so.
pub(crate) fn unfilled(node: &Node) -> Option<JobStatus> {
    let status = node.job().map(|job| job.status);
    let shows_nothing = match node.kind {
        NodeType::Text | NodeType::Sticky => node.content().is_none_or(str::is_empty),
        _ => node.asset.is_none(),
    };
    status.filter(|status| shows_nothing && matches!(status, JobStatus::Failed | JobStatus::Canceled))
}
