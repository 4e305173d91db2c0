//! What a load starts, and what may come of it.

use serde_json::{Value, json};

/// The Recipe of a load: a text, and the picture that needs it, both by the embedded runtime and for credit.
const RECIPE: &str = "ad-copy-and-banner";

/// One kind of start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// An Action: a picture resized.
    Resize,
    /// A picture by a provider, whose simulator counts what it is asked for.
    Picture,
    /// A run of a Recipe.
    Recipe,
    /// A video by the embedded runtime; it has no webhook.
    Video,
}

/// Where and for whom something is started.
pub(crate) struct Terms<'a> {
    pub(crate) canvas: &'a str,
    pub(crate) revision: &'a str,
    /// An empty node of the start's own.
    pub(crate) target: &'a str,
    /// A picture.
    pub(crate) input: &'a str,
    /// Of a resize.
    pub(crate) width: usize,
    /// To the provider's simulator.
    pub(crate) connection: Option<&'a str>,
    pub(crate) webhook: Value,
}

impl Work {
    /// The turns of a load of everything: what is dear in processor time comes seldom, so that it stays one of many jobs.
    pub const MIXED: &[Self] = {
        use Work::{Picture as P, Recipe as C, Resize as R, Video as V};
        &[R, P, R, R, R, R, C, R, R, R, P, R, R, V, R, R, P, R, R, R]
    };

    /// Where it is started.
    pub(crate) fn path(self) -> String {
        match self {
            Self::Resize => "/actions/resize/runs".to_owned(),
            Self::Picture => "/images/generate".to_owned(),
            Self::Recipe => format!("/recipes/{RECIPE}/runs"),
            Self::Video => "/videos/generate".to_owned(),
        }
    }

    /// Whether its end is told to a webhook (specification, Webhooks: Recipe, image and Action starts).
    pub fn is_told(self) -> bool {
        self != Self::Video
    }

    /// The start, under a key of its own.
    pub(crate) fn request(self, terms: &Terms<'_>) -> Value {
        let mut request = match self {
            Self::Resize => {
                json!({"targetNodeId": terms.target, "inputs": [terms.input], "params": {"width": terms.width}})
            }
            Self::Picture => json!({
                "targetNodeId": terms.target, "model": "black-forest-labs/flux-schnell", "prompt": "a kite",
                "connectionId": terms.connection,
            }),
            Self::Recipe => {
                json!({"inputs": {"product": terms.input, "offer": "Chairs, a fifth off until Sunday."}})
            }
            Self::Video => {
                json!({"model": "animatic", "prompt": "a kite", "durationSeconds": 1, "resolution": "480p"})
            }
        };
        request["idempotencyKey"] = json!(crate::api::key());
        if self != Self::Video {
            request["canvasId"] = json!(terms.canvas);
            request["baseRevision"] = json!(terms.revision);
        }
        if self.is_told() {
            request["webhook"] = terms.webhook.clone();
        }
        request
    }

    /// The failures that faults may cost it by the rules themselves: what may have been submitted and cannot be looked up is not
    /// submitted again, and what five workers lost is given up (reliability.md 2). An Action is over too soon for either.
    pub(crate) fn may_fail_with(self) -> &'static [&'static str] {
        match self {
            Self::Resize => &[],
            Self::Picture => &["provider_timeout"],
            Self::Recipe => &["recipe_step_failed", "runtime_failed"],
            Self::Video => &["runtime_failed"],
        }
    }
}
