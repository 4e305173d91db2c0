//! The kinds of work of a load, and their allowed outcomes.

use serde_json::{Value, json};

/// The Recipe of a load: a text and an image that depends on it, both made by the embedded runtime for credit.
const RECIPE: &str = "ad-copy-and-banner";

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// An Action that resizes an image.
    Resize,
    /// An image of a provider, whose simulator counts the submits.
    Image,
    /// A Recipe run.
    Recipe,
    /// A video of the embedded runtime. It has no webhook.
    Video,
}

/// The parameters of a start.
pub(crate) struct StartParams<'a> {
    pub(crate) canvas: &'a str,
    pub(crate) revision: &'a str,
    /// An empty node that only this start uses.
    pub(crate) target: &'a str,
    /// The handle of an image.
    pub(crate) input: &'a str,
    /// The width in pixels, for a resize.
    pub(crate) width: usize,
    /// The id of the connection to the provider's simulator.
    pub(crate) connection: Option<&'a str>,
    pub(crate) webhook: Value,
}

impl Work {
    /// The rotation of a mixed load. Work that needs much processor time is rare, so that many jobs run.
    pub const MIXED: &[Self] = {
        use Work::{Image as P, Recipe as C, Resize as R, Video as V};
        &[R, P, R, R, R, R, C, R, R, R, P, R, R, V, R, R, P, R, R, R]
    };

    /// The path of the start.
    pub(crate) fn path(self) -> String {
        match self {
            Self::Resize => "/actions/resize/runs".to_owned(),
            Self::Image => "/images/generate".to_owned(),
            Self::Recipe => format!("/recipes/{RECIPE}/runs"),
            Self::Video => "/videos/generate".to_owned(),
        }
    }

    /// Returns `true` if it has a webhook. Recipe, image and Action starts can have one (docs/reference/webhooks.md#webhook-input).
    pub fn has_webhook(self) -> bool {
        self != Self::Video
    }

    /// The body of the start, under a new key.
    pub(crate) fn request(self, params: &StartParams<'_>) -> Value {
        let mut request = match self {
            Self::Resize => {
                json!({"targetNodeId": params.target, "inputs": [params.input], "params": {"width": params.width}})
            }
            Self::Image => json!({
                "targetNodeId": params.target, "model": "black-forest-labs/flux-schnell", "prompt": "a kite",
                "connectionId": params.connection,
            }),
            Self::Recipe => {
                json!({"inputs": {"product": params.input, "offer": "Chairs, a fifth off until Sunday."}})
            }
            Self::Video => {
                json!({"model": "animatic", "prompt": "a kite", "durationSeconds": 1, "resolution": "480p"})
            }
        };
        request["idempotencyKey"] = json!(crate::api::key());
        if self != Self::Video {
            request["canvasId"] = json!(params.canvas);
            request["baseRevision"] = json!(params.revision);
        }
        if self.has_webhook() {
            request["webhook"] = params.webhook.clone();
        }
        request
    }

    /// The failure codes that a fault can cause without a defect: a submit that cannot be looked up is not repeated, and a
    /// task that five workers lost is given up (docs/reliability.md#provider-submits, docs/reliability.md#retries). Actions
    /// are too short for either.
    pub(crate) fn may_fail_with(self) -> &'static [&'static str] {
        match self {
            Self::Resize => &[],
            Self::Image => &["provider_timeout"],
            Self::Recipe => &["recipe_step_failed", "runtime_failed"],
            Self::Video => &["runtime_failed"],
        }
    }
}
