//! The life of a job: start, completion, cancel.

mod abandon;
mod cancel;
mod complete;
mod completion;
mod destination;
mod placement;
mod review;
mod start;
mod start_together;
mod targets;
mod together;

pub use abandon::abandon;
pub use cancel::{Cancellation, cancel};
pub use complete::complete;
pub use completion::{Completion, CompletionContext, CompletionResult, VideoOutput};
pub use destination::{Destination, JobTargets, Targets, link};
pub use review::{PreparedReview, Reviews};
pub use start::{
    AcceptedJob, Found, JobPlan, JobSettings, JobStart, Reads, StartJob, Work, insert_deliveries, require_room,
    target_is_taken,
};
pub use start_together::start_together;
pub use targets::remove_targets;
pub use together::{Attempt, Success, complete_together};
