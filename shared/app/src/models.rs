//! The models that an account can run, which the process knows.

use db::PgConnection;
use domain::Violation;
use domain::id::{AccountUid, NodeId};
use domain::job::ChosenModel;
use domain::recipe::run::{RunInput, Step};
use domain::recipe::{NewOutput, Output};

use crate::Result;
use crate::recipe::Choice;

/// Chooses models for commands. The rules are those of docs/reference/models.md#model-order.
pub trait Models: Sync {
    /// The account's first model that makes images of prompts, and the estimated duration of a job with it, in seconds; 422 when it
    /// does not take one of the prompts.
    fn first(
        &self,
        conn: &mut PgConnection,
        account: &AccountUid,
        prompts: &[String],
    ) -> impl Future<Output = Result<(ChosenModel, i32)>> + Send;

    /// Violations of the models that outputs name.
    fn unfit(
        &self,
        conn: &mut PgConnection,
        account: &AccountUid,
        outputs: &[NewOutput],
    ) -> impl Future<Output = Result<Vec<Violation>>> + Send;

    /// The steps of `outputs` on `nodes` from `inputs`.
    fn steps(
        &self,
        conn: &mut PgConnection,
        account: &AccountUid,
        outputs: &[Output],
        nodes: &[NodeId],
        inputs: &[RunInput],
        choice: &Choice,
    ) -> impl Future<Output = Result<Vec<Step>>> + Send;
}
