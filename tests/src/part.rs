//! The processes of a stack.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The program of a process.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Kind {
    /// `canvas-gateway serve`.
    Gateway,
    /// `canvas-image-worker`.
    ImageWorker,
    /// `canvas-video-worker`.
    VideoWorker,
    /// `canvas-webhook-dispatcher`.
    Dispatcher,
}

/// A process of a stack: its kind, and its number among the processes of this kind, from 0.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Part(pub Kind, pub usize);

impl Part {
    /// The first gateway.
    pub const GATEWAY: Self = Self(Kind::Gateway, 0);
    /// The first image-worker.
    pub const IMAGE_WORKER: Self = Self(Kind::ImageWorker, 0);
    /// The first video-worker.
    pub const VIDEO_WORKER: Self = Self(Kind::VideoWorker, 0);
    /// The first webhook-dispatcher.
    pub const DISPATCHER: Self = Self(Kind::Dispatcher, 0);
}

impl Kind {
    /// The file name of the program.
    pub fn binary(self) -> &'static str {
        match self {
            Self::Gateway => "canvas-gateway",
            Self::ImageWorker => "canvas-image-worker",
            Self::VideoWorker => "canvas-video-worker",
            Self::Dispatcher => "canvas-webhook-dispatcher",
        }
    }

    /// The arguments of the program.
    pub fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Gateway => &["serve"],
            _ => &[],
        }
    }

    /// The suffix of its database role. Processes of another release connect as the owner of the schema, as they did.
    pub fn role(self) -> Option<&'static str> {
        match self {
            _ if std::env::var_os("E2E_BIN_DIR").is_some() => None,
            Self::Gateway => Some("gateway"),
            Self::ImageWorker => Some("image_worker"),
            Self::VideoWorker => Some("video_worker"),
            Self::Dispatcher => Some("webhook_dispatcher"),
        }
    }

    /// The services' variables that the process has no use for. The harness does not set them, as deployments do not. Processes of
    /// another release may need them.
    pub(crate) fn without(self) -> &'static [&'static str] {
        match self {
            Self::Dispatcher if std::env::var_os("E2E_BIN_DIR").is_none() => &["CANVAS_REDIS_URL", "CANVAS_BLOB_URL"],
            _ => &[],
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0.binary(), self.1)
    }
}
