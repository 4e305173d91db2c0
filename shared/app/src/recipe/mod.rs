//! Recipes on a canvas: forks, private workflows, and the life of a run.

mod complete;
mod fork;
mod lookup;
mod ports;
mod run;
mod sources;
mod step;
mod targets;
mod workflow;

use ::canvas::Refused;
use domain::Violation;

pub use complete::{RunCompletion, cancel, complete};
pub use fork::ForkRecipe;
pub use lookup::RequestedRecipe;
pub use run::{Choice, NewRecipeRun, StartRun};
pub use sources::Given;
pub use step::{
    ImageStep, StepResult, begin_image, begin_text, bind_outputs, cancel_output, end_image, end_text, picture_of,
};
pub use targets::remove_targets;
pub use workflow::CreateWorkflow;

use crate::Error;

/// The rejection of an instance by the graph engine. The engine names operations, but the request names a canvas, and the only
/// reason is that the canvas is full.
fn instance_refused(refused: Refused) -> Error {
    match refused {
        Refused::Unprocessable(violations) => {
            let of_canvas = violations.into_iter().map(|violation| Violation::new("canvasId", violation.message));
            Error::Unprocessable(of_canvas.collect())
        }
        Refused::Invalid(violations) => Error::Inconsistent(format!("an instance violates {violations:?}")),
    }
}
