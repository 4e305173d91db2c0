//! Writes whose revision is no longer the present one.

use serde_json::json;

use crate::answer::Next;
use crate::call::Call;
use crate::failure::Failure;
use crate::tools::canvas_read::changes_of;

/// Adds to a revision conflict what has changed since `revision`, also by the caller, and the revision to go on with.
pub async fn add_changes(failure: Failure, call: &Call, canvas: &str, revision: &str) -> Failure {
    let Some(present) = failure.refusal.current_revision.clone() else { return failure };
    let read = call.client.get_canvas_changes(canvas).query("since", revision).query("include", "graph,authors").await;
    let failure = match read.and_then(|read| read.value()) {
        // The ids of the changed nodes are among the changes.
        Ok(read) => {
            let changes = changes_of(&read).map_or_else(|| json!("too much has changed"), |lines| json!(lines));
            Failure { details: json!({"currentRevision": present, "changes": changes}), ..failure }
        }
        Err(_) => failure,
    };
    let mut again = call.arguments.clone();
    again.insert("revision".to_owned(), present.clone().into());
    let mut failure = failure
        .then(Next::new("canvas_read", json!({"canvas": canvas}), "the canvas as it is now, to plan again"))
        .then(Next::new(
            call.tool,
            again.into(),
            "the same for the present revision, if it is still right after these changes",
        ));
    failure.message = format!(
        "what this call uses has changed since its revision, which is now {present}. Look at the changes, then call with it"
    );
    failure
}
