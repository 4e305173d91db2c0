//! The life of a job: start, end, cancel; and a video that outlives it.

mod abandon;
mod cancel;
mod completion;
mod decision;
mod destination;
mod end;
mod keep;
mod placement;
mod review;
mod start;
mod targets;

pub use abandon::abandon;
pub use cancel::{Cancellation, cancel};
pub use completion::{Completion, CompletionContext, CompletionResult, VideoOutput};
pub use destination::{Destination, ExpectedResult, JobTargets, Targets, link};
pub use end::{End, end};
pub use keep::{KeepVideo, KeptIn, first_frame};
pub use review::{PreparedReview, Reviews};
pub use start::{
    AcceptedJob, Found, JobPlan, JobSettings, JobStart, PlannedJob, Reads, StartJob, Work, insert_delivery,
    require_room, target_is_taken,
};
pub use targets::remove_targets;
