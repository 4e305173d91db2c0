//! What a simulator remembers.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::Value;
use uuid::Uuid;

use super::picture;
use super::server::{Call, Fate, Reply};
use super::trouble::{Trouble, Troubles};

/// A submit, as the simulator saw it.
#[derive(Clone, Debug)]
pub struct Submit {
    /// The path.
    pub path: String,
    /// The prompt; empty where there was none.
    pub prompt: String,
    /// The pictures that went along.
    pub pictures: usize,
    /// `Idempotency-Key`, whether or not the vendor honours one.
    pub idempotency_key: Option<String>,
    /// The body: JSON, or the texts of a form.
    pub body: Value,
    /// Whether work was begun, which is what a vendor charges.
    pub accepted: bool,
}

/// What a vendor's submit is about.
pub(super) struct Asked {
    pub(super) prompt: String,
    pub(super) pictures: usize,
    pub(super) size: (u32, u32),
    pub(super) body: Value,
    /// Whether a video is to be made; else a picture.
    pub(super) video: bool,
}

impl Asked {
    /// A submit that asks for a text.
    pub(super) fn text(prompt: String, body: Value) -> Self {
        // The picture that every submit comes with is drawn as small as can be.
        Self { prompt, pictures: 0, size: (1, 1), body, video: false }
    }
}

/// Accepted work.
pub(super) struct Run {
    pub(super) id: String,
    pub(super) path: String,
    pub(super) body: Value,
    pub(super) trouble: Option<Trouble>,
    pub(super) canceled: bool,
    /// Where its picture lies.
    pub(super) file: String,
    ready: Instant,
    polls: u32,
}

/// Where a run stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Queued,
    Running,
    Finished,
    Canceled,
}

/// A file on the host of the results.
pub(super) struct File {
    pub(super) bytes: Bytes,
    pub(super) media_type: &'static str,
    pub(super) expired: bool,
}

pub(super) struct State {
    /// The base URL of the API.
    pub(super) api: String,
    /// The base URL of the results.
    pub(super) files_at: String,
    pub(super) troubles: Troubles,
    pub(super) latency: Mutex<Duration>,
    pub(super) submits: Mutex<Vec<Submit>>,
    pub(super) runs: Mutex<HashMap<String, Run>>,
    pub(super) files: Mutex<HashMap<String, File>>,
    /// Ids of what was uploaded.
    pub(super) uploads: Mutex<HashSet<String>>,
    pub(super) leaks: Mutex<usize>,
    pub(super) polls: Mutex<usize>,
    /// Downloads of results that are to break off.
    pub(super) cuts: Mutex<usize>,
    /// The least that a video has, in bytes.
    pub(super) film_bytes: Mutex<usize>,
    /// Zeros that a video is followed by when it is downloaded.
    pub(super) film_padding: Mutex<usize>,
    /// Whether a cancel is taken and heeded, or only taken.
    pub(super) heeds_cancels: Mutex<bool>,
    /// How often a cancel of a known run was asked for.
    pub(super) cancel_requests: Mutex<usize>,
}

impl State {
    pub(super) fn new(api: String, files_at: String) -> Self {
        Self {
            api,
            files_at,
            troubles: Troubles::default(),
            latency: Mutex::default(),
            submits: Mutex::default(),
            runs: Mutex::default(),
            files: Mutex::default(),
            uploads: Mutex::default(),
            leaks: Mutex::default(),
            polls: Mutex::default(),
            cuts: Mutex::default(),
            film_bytes: Mutex::default(),
            film_padding: Mutex::default(),
            heeds_cancels: Mutex::new(true),
            cancel_requests: Mutex::default(),
        }
    }

    /// Takes a submit whose form is right. `refuse` is the vendor's answer to a trouble that it tells at once (`None`: it
    /// accepts, and tells later); `accept` its answer to work of this run id.
    ///
    /// `inline` says that the answer is the result: it then takes as long as the work.
    pub(super) fn submit(
        &self,
        call: &Call,
        asked: Asked,
        inline: bool,
        refuse: impl FnOnce(Trouble) -> Option<Reply>,
        accept: impl FnOnce(&Run, Bytes) -> Reply,
    ) -> Reply {
        let trouble = Trouble::in_prompt(&asked.prompt).or_else(|| self.troubles.take());
        let refusal = trouble.and_then(refuse);
        assert!(
            refusal.is_some() || !trouble.is_some_and(Trouble::refuses),
            "a vendor knows how to refuse: {trouble:?}"
        );
        // An error of the server comes after it began.
        let accepted = refusal.is_none() || trouble == Some(Trouble::ServerError);
        let Asked { prompt, pictures, size, body, video } = asked;
        let idempotency_key = call.header("idempotency-key").map(str::to_owned);
        self.submits.lock().expect("no holder panics").push(Submit {
            path: call.path.clone(),
            prompt: prompt.clone(),
            pictures,
            idempotency_key,
            body: body.clone(),
            accepted,
        });
        if let Some(refusal) = refusal {
            return refusal;
        }

        let latency = *self.latency.lock().expect("no holder panics");
        let id = Uuid::new_v4().to_string();
        let picture = match trouble {
            Some(Trouble::HtmlPicture) => Bytes::from_static(HTML.as_bytes()),
            _ if video => picture::film(&id, *self.film_bytes.lock().expect("no holder panics")).into(),
            _ => picture::draw(&prompt, &id, size).into(),
        };
        let path = format!("/files/{id}.{}", if video { "mp4" } else { "png" });
        let file = format!("{}{path}", self.files_at);
        let run = Run {
            id: id.clone(),
            path: call.path.clone(),
            body,
            trouble,
            canceled: false,
            file,
            ready: Instant::now() + latency,
            polls: 0,
        };
        let reply = accept(&run, picture.clone());
        let html = trouble == Some(Trouble::HtmlPicture);
        let media_type = match html {
            true => "text/html",
            false if video => "video/mp4",
            false => "image/png",
        };
        let file = File { bytes: picture, media_type, expired: trouble == Some(Trouble::ExpiredUrl) };
        self.files.lock().expect("no holder panics").insert(path, file);
        self.runs.lock().expect("no holder panics").insert(id, run);
        let reply = if inline { reply.after(latency) } else { reply };
        match trouble {
            Some(Trouble::Hang) => reply.fated(Fate::Hang),
            Some(Trouble::CutOff) => reply.fated(Fate::Cut),
            Some(Trouble::LoseAnswer) => reply.fated(Fate::Close),
            Some(Trouble::HtmlAnswer) => Reply::bytes(200, "text/html", HTML),
            _ => reply,
        }
    }

    /// Polls a run: queued at first, then running, then finished, each for at least one poll; `None` when it is not known.
    pub(super) fn poll<T>(&self, id: &str, read: impl FnOnce(&Run, Phase) -> T) -> Option<T> {
        *self.polls.lock().expect("no holder panics") += 1;
        let mut runs = self.runs.lock().expect("no holder panics");
        let run = runs.get_mut(id)?;
        run.polls += 1;
        let phase = run.phase();
        Some(read(run, phase))
    }

    /// Reads a run without counting it as a poll.
    pub(super) fn peek<T>(&self, id: &str, read: impl FnOnce(&Run, Phase) -> T) -> Option<T> {
        let runs = self.runs.lock().expect("no holder panics");
        runs.get(id).map(|run| read(run, run.phase()))
    }

    /// Cancels a run; whether it was still to be stopped, `None` when it is not known.
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
    /// Finishes it, however long it was to take and however often it was polled.
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

/// What a broken front end answers.
const HTML: &str = "<!doctype html><title>502 Bad Gateway</title><h1>Bad Gateway</h1>";
