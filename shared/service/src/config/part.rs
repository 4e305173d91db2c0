//! The variables that each part of the service requires.

use Part::{Admin, Gateway, ImageWorker, Migrate, VideoWorker, WebhookDispatcher};

/// A process, or a command of the gateway's binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// `canvas-gateway serve`.
    Gateway,
    /// `canvas-image-worker`.
    ImageWorker,
    /// `canvas-video-worker`.
    VideoWorker,
    /// `canvas-webhook-dispatcher`.
    WebhookDispatcher,
    /// `canvas-gateway migrate`.
    Migrate,
    /// `canvas-gateway admin …`.
    Admin,
}

/// The required variables and the parts that need each of them. A part starts without the others, so that it can be given only the
/// secrets that it uses. `deploy/lib/privileges.py` reads this table and holds the manifests to it.
pub(super) const REQUIRED: [(&str, &[Part]); 5] = [
    ("CANVAS_DATABASE_URL", &[Gateway, ImageWorker, VideoWorker, WebhookDispatcher, Migrate, Admin]),
    ("CANVAS_REDIS_URL", &[Gateway, ImageWorker, VideoWorker, Admin]),
    ("CANVAS_AMQP_URL", &[Gateway, ImageWorker, VideoWorker, WebhookDispatcher]),
    ("CANVAS_BLOB_URL", &[Gateway, ImageWorker, VideoWorker]),
    ("CANVAS_MASTER_KEYS", &[Gateway, ImageWorker, VideoWorker, WebhookDispatcher, Migrate, Admin]),
];

impl Part {
    /// Every part, for a check of the whole configuration.
    pub const ALL: &[Self] = &[Gateway, ImageWorker, VideoWorker, WebhookDispatcher, Migrate, Admin];

    /// The processes, each of which can have a database role of its own.
    pub(super) const PROCESSES: [Self; 4] = [Gateway, ImageWorker, VideoWorker, WebhookDispatcher];

    /// The name in the documentation.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Gateway => "gateway",
            ImageWorker => "image-worker",
            VideoWorker => "video-worker",
            WebhookDispatcher => "webhook-dispatcher",
            Migrate => "migrate",
            Admin => "admin",
        }
    }
}

/// The parts that need `variable`; none if it is not required.
pub(super) fn needing(variable: &str) -> &'static [Part] {
    REQUIRED.iter().find(|(name, _)| *name == variable).map_or(&[], |(_, parts)| parts)
}

/// How the help describes a required variable: `required`, or the parts that need it. `None` if it is not required.
pub(super) fn requirement(variable: &str) -> Option<String> {
    match needing(variable) {
        [] => None,
        parts if parts == Part::ALL => Some("required".to_owned()),
        parts => {
            let names: Vec<&str> = parts.iter().map(|part| part.name()).collect();
            Some(format!("required by {}", names.join(", ")))
        }
    }
}
