//! The state of a simulator.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::Value;
use uuid::Uuid;

use super::failure_mode::{FailureMode, FailureModes};
use super::image;
use super::server::{Call, Reply, Transmission};

/// A submit as the simulator received it.
#[derive(Clone, Debug)]
pub struct Submit {
    /// The path of the request.
    pub path: String,
    /// The prompt, or an empty text if there was none.
    pub prompt: String,
    /// The number of input images, with the mask.
    pub images: usize,
    /// The file of the mask.
    pub mask: Option<Bytes>,
    /// The `Idempotency-Key` header, whether or not the vendor honors one.
    pub idempotency_key: Option<String>,
    /// The body: JSON, or the texts of a form as a JSON object.
    pub body: Value,
    /// `true` if work was started, which is what a vendor charges for.
    pub accepted: bool,
}

/// The request of a submit.
pub(super) struct Asked {
    pub(super) prompt: String,
    pub(super) images: usize,
    pub(super) mask: Option<Bytes>,
    pub(super) size: (u32, u32),
    pub(super) body: Value,
    /// `true` if a video is requested rather than an image.
    pub(super) video: bool,
}

impl Asked {
    /// A submit that requests a text.
    pub(super) fn text(prompt: String, body: Value) -> Self {
        // `State::submit` always draws an image; for a text it is as small as possible.
        Self { prompt, images: 0, mask: None, size: (1, 1), body, video: false }
    }
}

/// Accepted work.
pub(super) struct Run {
    pub(super) id: String,
    pub(super) path: String,
    pub(super) body: Value,
    pub(super) failure_mode: Option<FailureMode>,
    pub(super) canceled: bool,
    /// The URL of its result.
    pub(super) file: String,
    ready: Instant,
    polls: u32,
}

/// The progress of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Queued,
    Running,
    Finished,
    Canceled,
}

/// A file on the results host.
pub(super) struct File {
    pub(super) bytes: Bytes,
    pub(super) media_type: &'static str,
    pub(super) expired: bool,
}

pub(super) struct State {
    /// The base URL of the API.
    pub(super) api: String,
    /// The base URL of the results host.
    pub(super) files_at: String,
    pub(super) failure_modes: FailureModes,
    pub(super) latency: Mutex<Duration>,
    pub(super) submits: Mutex<Vec<Submit>>,
    /// The bodies of all requests to the API, if they are kept.
    pub(super) bodies: Mutex<Option<Vec<Bytes>>>,
    pub(super) runs: Mutex<HashMap<String, Run>>,
    pub(super) files: Mutex<HashMap<String, File>>,
    /// The uploaded files by id.
    pub(super) uploads: Mutex<HashMap<String, Bytes>>,
    /// Whether uploads are received and never answered.
    pub(super) hangs_uploads: Mutex<bool>,
    /// Whether the answer to the submit of a video already contains its result, where the protocol allows it.
    pub(super) answers_finished: Mutex<bool>,
    pub(super) leaks: Mutex<usize>,
    pub(super) polls: Mutex<usize>,
    /// How many downloads of results are still to break off.
    pub(super) cuts: Mutex<usize>,
    /// The minimum size of a video in bytes.
    pub(super) video_bytes: Mutex<usize>,
    /// The number of zeros appended to a video when it is downloaded.
    pub(super) video_padding: Mutex<usize>,
    /// Whether cancellations take effect; otherwise they are only accepted.
    pub(super) heeds_cancels: Mutex<bool>,
    /// How often the cancellation of a known run was requested.
    pub(super) cancel_requests: Mutex<usize>,
}

impl State {
    pub(super) fn new(api: String, files_at: String) -> Self {
        Self {
            api,
            files_at,
            failure_modes: FailureModes::default(),
            latency: Mutex::default(),
            submits: Mutex::default(),
            bodies: Mutex::default(),
            runs: Mutex::default(),
            files: Mutex::default(),
            uploads: Mutex::default(),
            hangs_uploads: Mutex::default(),
            answers_finished: Mutex::default(),
            leaks: Mutex::default(),
            polls: Mutex::default(),
            cuts: Mutex::default(),
            video_bytes: Mutex::default(),
            video_padding: Mutex::default(),
            heeds_cancels: Mutex::new(true),
            cancel_requests: Mutex::default(),
        }
    }

    /// Keeps the body of a request, if bodies are kept.
    pub(super) fn keep(&self, call: &Call) {
        if let Some(bodies) = &mut *self.bodies.lock().expect("no holder panics") {
            bodies.push(call.body.clone());
        }
    }

    /// Handles a valid submit. `refuse` returns the vendor's answer for a failure mode that it reports
    /// immediately, or `None` if it accepts the submit and reports the failure later. `accept`
    /// returns the answer for an accepted run.
    ///
    /// With `inline`, the answer contains the result, so it takes as long as the work.
    pub(super) fn submit(
        &self,
        call: &Call,
        asked: Asked,
        inline: bool,
        refuse: impl FnOnce(FailureMode) -> Option<Reply>,
        accept: impl FnOnce(&Run, Bytes) -> Reply,
    ) -> Reply {
        let failure_mode = FailureMode::in_prompt(&asked.prompt).or_else(|| self.failure_modes.take());
        let refusal = failure_mode.and_then(refuse);
        assert!(
            refusal.is_some() || !failure_mode.is_some_and(FailureMode::refuses),
            "the vendor's simulator must implement this refusal: {failure_mode:?}"
        );
        // A server error occurs after the work was started.
        let accepted = refusal.is_none() || failure_mode == Some(FailureMode::ServerError);
        let Asked { prompt, images, mask, size, body, video } = asked;
        let idempotency_key = call.header("idempotency-key").map(str::to_owned);
        self.submits.lock().expect("no holder panics").push(Submit {
            path: call.path.clone(),
            prompt: prompt.clone(),
            images,
            mask,
            idempotency_key,
            body: body.clone(),
            accepted,
        });
        if let Some(refusal) = refusal {
            return refusal;
        }

        let latency = *self.latency.lock().expect("no holder panics");
        let id = Uuid::new_v4().to_string();
        let image = match failure_mode {
            Some(FailureMode::HtmlImage) => Bytes::from_static(HTML.as_bytes()),
            _ if video => image::video(&id, *self.video_bytes.lock().expect("no holder panics")).into(),
            _ => image::draw(&prompt, &id, size).into(),
        };
        let path = format!("/files/{id}.{}", if video { "mp4" } else { "png" });
        let file = format!("{}{path}", self.files_at);
        let run = Run {
            id: id.clone(),
            path: call.path.clone(),
            body,
            failure_mode,
            canceled: false,
            file,
            ready: Instant::now() + latency,
            polls: 0,
        };
        let reply = accept(&run, image.clone());
        let html = failure_mode == Some(FailureMode::HtmlImage);
        let media_type = match html {
            true => "text/html",
            false if video => "video/mp4",
            false => "image/png",
        };
        let file = File { bytes: image, media_type, expired: failure_mode == Some(FailureMode::ExpiredUrl) };
        self.files.lock().expect("no holder panics").insert(path, file);
        self.runs.lock().expect("no holder panics").insert(id, run);
        let reply = if inline { reply.after(latency) } else { reply };
        match failure_mode {
            Some(FailureMode::Hang) => reply.fated(Transmission::Hang),
            Some(FailureMode::CutOff) => reply.fated(Transmission::Cut),
            Some(FailureMode::LoseAnswer) => reply.fated(Transmission::Close),
            Some(FailureMode::HtmlAnswer) => Reply::bytes(200, "text/html", HTML),
            _ => reply,
        }
    }

    /// Polls a run. It is queued, running and finished in turn, each for at least one poll. `None`
    /// if the run is unknown.
    pub(super) fn poll<T>(&self, id: &str, read: impl FnOnce(&Run, Phase) -> T) -> Option<T> {
        *self.polls.lock().expect("no holder panics") += 1;
        let mut runs = self.runs.lock().expect("no holder panics");
        let run = runs.get_mut(id)?;
        run.polls += 1;
        let phase = run.phase();
        Some(read(run, phase))
    }

    /// Reads a run without counting a poll.
    pub(super) fn peek<T>(&self, id: &str, read: impl FnOnce(&Run, Phase) -> T) -> Option<T> {
        let runs = self.runs.lock().expect("no holder panics");
        runs.get(id).map(|run| read(run, run.phase()))
    }

    /// Cancels a run. Returns whether it was unfinished, or `None` if it is unknown.
    pub(super) fn cancel(&self, id: &str) -> Option<bool> {
        let mut runs = self.runs.lock().expect("no holder panics");
        let run = runs.get_mut(id)?;
        let unfinished = run.phase() != Phase::Finished;
        *self.cancel_requests.lock().expect("no holder panics") += 1;
        run.canceled |= unfinished && *self.heeds_cancels.lock().expect("no holder panics");
        Some(unfinished)
    }
}

impl Run {
    /// Finishes the run, whatever its latency and however often it was polled.
    pub(super) fn finish(&mut self) {
        self.ready = Instant::now();
        self.polls = self.polls.max(3);
    }

    fn phase(&self) -> Phase {
        match self.polls {
            _ if self.canceled => Phase::Canceled,
            0 | 1 => Phase::Queued,
            2 => Phase::Running,
            _ if Instant::now() < self.ready => Phase::Running,
            _ => Phase::Finished,
        }
    }
}

/// The error page of a broken reverse proxy.
const HTML: &str = "<!doctype html><title>502 Bad Gateway</title><h1>Bad Gateway</h1>";
