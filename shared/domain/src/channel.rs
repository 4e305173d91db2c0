//! Names of the channels on which changes are announced. But for pointers, a message on a channel only says that
//! it is time to look at PostgreSQL (docs/reliability.md#redis).

use crate::id::{AccountUid, CanvasHandle, JobId};

/// Revocations of an account's credentials.
pub fn access(account: &AccountUid) -> String {
    format!("access:{account}")
}

/// Revisions and shares of a canvas, its deletion, and who follows it.
pub fn canvas(canvas: &CanvasHandle) -> String {
    canvas.to_string()
}

/// Pointers on a canvas: messages that are the state themselves, and that nobody keeps.
pub fn pointers(canvas: &CanvasHandle) -> String {
    format!("pointers:{canvas}")
}

/// Changes of a job, or of a Recipe run, whose id is in the same form.
pub fn job(id: JobId) -> String {
    format!("job:{id}")
}

/// Starts and changes of any job or run of an account.
pub fn runs(account: &AccountUid) -> String {
    format!("runs:{account}")
}
