//! Waiting for work.

use domain::account::Scope;
use futures_util::future::try_join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::call::Call;
use crate::failure::Failure;
use crate::tool::{Hints, Result, Tool};
use crate::work::{self, Work};

/// Seconds that are waited unless the call says otherwise.
const WAIT_SECONDS: u64 = 45;

pub struct RunWait;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    #[schemars(length(min = 1, max = 20))]
    runs: Vec<String>,
    #[schemars(range(min = 0, max = 50))]
    seconds: Option<u64>,
}

#[derive(Serialize)]
pub struct Output {
    runs: Vec<Work>,
}

impl Tool for RunWait {
    const NAME: &'static str = "run_wait";
    const TITLE: &'static str = "Wait for work";
    const ABOUT: &'static str = "Wait for runs and jobs to end, or see how far they are. Images come back small.";
    const HINTS: Hints = Hints::READ;
    const SCOPES: &'static [Scope] = &[Scope::JobManage];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Output>> {
        let seconds = arguments.seconds.unwrap_or(WAIT_SECONDS);
        let wait = |run: String| async move {
            let read = call.client.read_work(&run).await?;
            let (record, at) = work::follow(call, (read.value()?, read.time()), seconds).await;
            Ok::<_, Failure>(Work::from_record(&record, at))
        };
        let mut runs = try_join_all(arguments.runs.into_iter().map(wait)).await?;
        Work::name(call, &mut runs).await;
        let assets: Vec<String> = runs.iter().flat_map(Work::assets).take(work::IMAGES_MAX).cloned().collect();
        Ok(work::show(&call.client, Answer::new(Output { runs }), &assets).await)
    }
}
