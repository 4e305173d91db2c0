//! Recipes on a canvas: forks, private workflows, and the life of a run.

mod abandon;
mod complete;
mod fork;
mod lookup;
mod ports;
mod run;
mod sources;
mod step;
mod targets;
mod workflow;

pub use abandon::abandon;
pub use complete::{RunCompletion, cancel, complete};
pub use fork::ForkRecipe;
pub use lookup::RequestedRecipe;
pub use run::{Choice, NewRecipeRun, StartRun};
pub use sources::Given;
pub use step::{ImageStep, StepResult, begin_image, begin_text, cancel_output, end_image, end_text, image_of};
pub use targets::remove_targets;
pub use workflow::CreateWorkflow;
