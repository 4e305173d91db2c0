//! The account of the caller.

use client::{Item, queue_in_words};
use domain::account::Scope;
use domain::budget::BudgetState;
use domain::job::{JobStatus, RunSummary};
use domain::queue::{QueueState, QueueStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::call::Call;
use crate::tool::{Hints, Result, Tool};
use crate::work;

/// The states of work under way, in their order: what goes on meanwhile is not missed.
const UNDER_WAY: [JobStatus; 4] = [JobStatus::Queued, JobStatus::Running, JobStatus::Finalizing, JobStatus::Canceling];
/// Maximum number of listed runs of each state, newest first.
const RUNS_MAX: usize = 25;

pub struct Status;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    account: String,
    token: String,
    scopes: Vec<String>,
    credit: i64,
    /// What may be spent of it, and how much is left.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    budgets: Vec<BudgetState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    /// Work under way.
    running: Vec<Value>,
    /// `true` if there is more of it.
    more_running: bool,
    /// Queues that are not ok.
    queues: Vec<Value>,
}

impl Tool for Status {
    const NAME: &'static str = "status";
    const TITLE: &'static str = "Status";
    const ABOUT: &'static str =
        "Who you are here, what you may do, credit and budgets left, work under way, queues in trouble. Call first.";
    const HINTS: Hints = Hints::READ;
    const SCOPES: &'static [Scope] = &[];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, Arguments {}: Arguments) -> Result<Answer<Output>> {
        let who = call.client.get_auth_status().await?.value()?;
        let mut running: Vec<RunSummary> = Vec::new();
        let mut more_running = false;
        if who.scopes.iter().any(|scope| *scope == Scope::JobManage) {
            for status in UNDER_WAY {
                let page = call.client.list_runs().query("status", status).query("limit", RUNS_MAX).await?;
                let (runs, next) = page.items()?;
                for run in runs.iter().filter_map(Item::value) {
                    running.retain(|listed| listed.handle != run.handle);
                    running.push(run);
                }
                more_running |= next.is_some();
            }
        }
        let output = Output {
            account: who.email,
            token: who.agent_label,
            scopes: who.scopes.iter().map(ToString::to_string).collect(),
            credit: who.credit_balance,
            budgets: who.budgets,
            expires_at: who.expires_at.map(|at| at.to_string()),
            running: work::summaries(call, &running).await,
            more_running,
            queues: queues(call).await,
        };
        Ok(Answer::new(output))
    }
}

/// The queues that are not ok. None of a service that does not tell.
async fn queues(call: &Call) -> Vec<Value> {
    let Ok(read) = call.client.get_status().await else { return Vec::new() };
    let Ok(status) = read.value() else { return Vec::new() };
    let troubled = status.queues.iter().filter(|queue| queue.state != QueueState::Ok);
    let words = |queue: &QueueStatus| {
        let about = match queue.state {
            QueueState::Silent => "; work waits until the operator starts one",
            QueueState::Slow | QueueState::Ok => "",
        };
        json!({"queue": queue.queue, "state": queue.state, "about": format!("{}{about}", queue_in_words(queue, read.time()))})
    };
    troubled.map(words).collect()
}
