//! Canceling work.

use domain::account::Scope;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::Answer;
use crate::call::Call;
use crate::tool::{Hints, Result, Tool};
use crate::work::Work;

pub struct RunCancel;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    run: String,
    /// Delete its empty nodes; of ended work, give up what it owes
    remove_targets: Option<bool>,
}

impl Tool for RunCancel {
    const NAME: &'static str = "run_cancel";
    const TITLE: &'static str = "Cancel work";
    const ABOUT: &'static str = "Stop a run or job. Work that a provider has begun may still be charged.";
    const HINTS: Hints = Hints::CHANGE;
    const SCOPES: &'static [Scope] = &[Scope::JobManage];
    type Arguments = Arguments;
    type Output = Work;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Work>> {
        let request = call.client.cancel_work(&arguments.run).query_if("removeTargets", arguments.remove_targets);
        let canceled = request.await?;
        let mut works = [Work::from_record(&canceled.value()?, canceled.time())];
        Work::name(call, &mut works).await;
        let [mut work] = works;
        if arguments.remove_targets == Some(true) {
            work.add_removal(call).await;
        }
        Ok(Answer::new(work))
    }
}
