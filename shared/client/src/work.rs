//! Runs and jobs as clients read them.

use domain::job::{JobImage, JobStatus, RunKind, VideoDownload};
use domain::message::Queue;
use domain::queue::WaitingFor;
use domain::recipe::run::OutputStatus;
use domain::{Timestamp, known};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Waiting;

/// Returns `true` if work with this status has ended (docs/reference/jobs.md#states).
pub fn is_over(status: &str) -> bool {
    status.parse().is_ok_and(JobStatus::is_terminal)
}

/// The record of a run or job of any kind, and the event `run`: what an [`ImageJob`](domain::job::ImageJob), a
/// [`VideoJob`](domain::job::VideoJob) and a [`RecipeRun`](domain::recipe::run::RecipeRun) have in common, and the results of each.
///
/// Kinds, statuses and codes are texts and every member may be absent, so that work of any release of the service can be followed to
/// its end.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkRecord {
    id: String,
    run: Option<String>,
    pub kind: String,
    pub status: String,
    canvas_id: Option<String>,
    canvas_handle: Option<String>,
    /// Revision of the work's last write to the canvas.
    pub canvas_revision: Option<String>,
    pub credit_cost: i64,
    pub stand_in: bool,
    /// `true` if this is the response to an earlier equal request.
    pub replayed: bool,
    /// Of a video, in percent.
    pub progress: Option<f64>,
    /// Handles of the nodes that receive results.
    pub targets: Vec<String>,
    /// Stored images of an image or Action job.
    pub images: Vec<JobImage>,
    /// Outputs of a Recipe run.
    pub outputs: Vec<WorkOutput>,
    pub video: Option<VideoDownload>,
    pub failure: Option<WorkFailure>,
    pub completion_review: Option<WorkReview>,
    #[serde(deserialize_with = "known::or_default")]
    waiting_for: Option<WaitingFor>,
}

/// An output of a Recipe run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkOutput {
    pub key: String,
    pub status: String,
    pub node_handle: String,
    pub asset_id: Option<String>,
    /// Text of the output.
    pub value: Option<String>,
    pub failure: Option<WorkFailure>,
    job_id: Option<String>,
}

/// The reason why work failed. Serializes as it was received.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct WorkFailure {
    pub code: String,
    pub message: String,
    pub retryable: bool,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// The review of the canvas when the work ended.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkReview {
    pub done_claim_allowed: bool,
    pub instruction: String,
}

impl WorkRecord {
    /// The handle under which the work is read: `run:…`, of a video `job:…`.
    pub fn handle(&self) -> &str {
        self.run.as_ref().unwrap_or(&self.id)
    }

    /// Handle of the canvas that receives the results.
    pub fn canvas(&self) -> Option<&String> {
        self.canvas_handle.as_ref().or(self.canvas_id.as_ref())
    }

    /// Returns `true` if the work has ended.
    pub fn is_over(&self) -> bool {
        is_over(&self.status)
    }

    /// Returns `true` if the work has this status.
    pub fn is(&self, status: JobStatus) -> bool {
        self.status == status.as_str()
    }

    /// Outputs that are made, and all of them, as far as the record tells.
    pub fn counts(&self) -> (usize, usize) {
        match self.outputs.as_slice() {
            [] => (self.images.len(), self.targets.len()),
            outputs => (outputs.iter().filter(|it| it.is(OutputStatus::Succeeded)).count(), outputs.len()),
        }
    }

    /// The cause for which the work waits. The record was read at `at`, by the clock of the service ([`Answer::time`](crate::Answer::time)).
    pub fn waiting(&self, at: Timestamp) -> Option<Waiting> {
        Waiting::new(self.waiting_for.as_ref(), self.queue(), at)
    }

    /// The queue in which the work waits. The image of a Recipe run that is being made is a generation.
    fn queue(&self) -> Option<Queue> {
        Some(match self.kind.parse().ok()? {
            RunKind::Action => Queue::Image,
            RunKind::Image => Queue::Generation,
            RunKind::Video => Queue::Video,
            RunKind::Recipe => {
                let is_made = |output: &WorkOutput| output.is(OutputStatus::Running) && output.job_id.is_some();
                if self.outputs.iter().any(is_made) { Queue::Generation } else { Queue::Recipe }
            }
        })
    }
}

impl WorkOutput {
    /// Returns `true` if the output has this status.
    pub fn is(&self, status: OutputStatus) -> bool {
        self.status == status.as_str()
    }
}

#[cfg(test)]
mod tests {
    use domain::job::JobDocument;
    use domain::recipe::run::RunDocument;
    use serde_json::json;

    use super::*;
    use crate::tests::{contract, examples};

    #[test]
    fn a_record_has_what_the_types_of_the_contract_have() {
        let document = contract();
        let mut kinds = Vec::new();
        for operation in ["generateImages", "getRun", "getJob", "cancelJob"] {
            let records = examples(&document, operation).into_iter().filter(|example| example["status"].is_string());
            for example in records {
                let record = WorkRecord::deserialize(&example).expect("a record");
                let (id, run, status, credit_cost) = match example["kind"].as_str() {
                    Some("video") => match serde_json::from_value(example.clone()).expect("a job") {
                        JobDocument::Video(job) => (job.id, None, job.status.to_string(), job.credit_cost),
                        JobDocument::Image(_) => panic!("{example}"),
                    },
                    _ => match serde_json::from_value(example.clone()).expect("a run") {
                        RunDocument::Work(job) => (job.id, Some(job.run), job.status.to_string(), job.credit_cost),
                        RunDocument::Recipe(run) => (run.id, Some(run.run), run.status.to_string(), run.credit_cost),
                    },
                };
                assert_eq!((&record.id, &record.run), (&id, &run));
                assert_eq!((&record.status, record.credit_cost), (&status, credit_cost));
                kinds.push(record.kind);
            }
        }
        kinds.sort();
        kinds.dedup();
        assert_eq!(kinds, ["action", "image", "recipe", "video"]);
    }

    #[test]
    fn work_of_a_later_release_is_followed_to_its_end() {
        let record = json!({
            "run": "run:1", "kind": "sound", "status": "failed", "waitingFor": {"what": "the moon", "since": "2026-01-01T12:00:00.000Z"},
            "failure": {"code": "too_loud", "message": "it was too loud", "decibels": 130},
        });
        let record: WorkRecord = serde_json::from_value(record).expect("a record");
        assert!(record.is_over() && record.waiting_for.is_none());
        let failure = json!(record.failure.expect("a failure"));
        assert_eq!(
            failure,
            json!({"code": "too_loud", "message": "it was too loud", "retryable": false, "decibels": 130})
        );
        assert!(!is_over("resting"));
    }
}
