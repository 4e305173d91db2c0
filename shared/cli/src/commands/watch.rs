//! Following canvases and runs.

use std::collections::BTreeMap;
use std::time::Duration;

use client::WorkRecord;
use client::events::{Event, Events};
use domain::stream::{CanvasStreamEvent, GoneStreamEvent, PresenceStreamEvent, RoleStreamEvent, RunStreamEvent};
use serde::Deserialize;
use serde_json::{Value, json};

use super::waits::warn;
use super::work::succeeded;
use crate::args::Watch;
use crate::context::{Context, canvas};
use crate::failure::{Failure, Outcome};
use crate::output::{is_unread, joined, text};

/// Pauses between attempts to open the stream.
const PAUSES: [u64; 5] = [1, 2, 4, 8, 15];

pub async fn watch(context: &Context, watch: &Watch) -> Outcome {
    let follow = follow(context, &watch.subjects);
    match watch.timeout {
        None => follow.await,
        Some(seconds) => match tokio::time::timeout(Duration::from_secs(seconds), follow).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::Running(format!("runs are still active after {seconds} s"))),
        },
    }
}

/// Prints every event until all named runs are over or, without any, the one canvas is gone.
async fn follow(context: &Context, subjects: &[String]) -> Outcome {
    let (runs, canvases): (Vec<&String>, Vec<&String>) =
        subjects.iter().partition(|it| it.starts_with("run:") || it.starts_with("job:"));
    let canvases = canvases.into_iter().map(|it| canvas(it)).collect::<Outcome<Vec<_>>>()?;
    let mut pending: BTreeMap<&str, &str> = runs.iter().map(|it| (id(it), it.as_str())).collect();
    let with_runs = !runs.is_empty() || subjects.is_empty();
    let mut ended = Ok(());
    let mut stream = Stream::new(context, canvases.clone(), with_runs);
    loop {
        // After the stream is open, so that no end falls between the two.
        let is_new = stream.open().await?;
        if is_new {
            for (id, run) in pending.clone() {
                let read = context.client.read_work(run).query("view", "summary").await?;
                let record = read.value()?;
                warn(&context.output, run, &record, read.time());
                if record.is_over() {
                    pending.remove(id);
                    print_event(context, "run", &json!({"run": run, "status": record.status}));
                    ended = ended.and(succeeded(&record));
                }
            }
            if !runs.is_empty() && pending.is_empty() {
                return ended;
            }
        }
        // Nobody reads the events to come.
        if is_unread() {
            return ended;
        }
        let Some(event) = stream.next().await? else { continue };
        let work = event.work();
        let run = work.as_ref().map_or("", |work| id(work.handle()));
        if work.is_some() && !subjects.is_empty() && !runs.iter().any(|it| id(it) == run) {
            continue;
        }
        print_event(context, &event.name, &event.data);
        if let Some(work) = work.as_ref().filter(|work| work.is_over())
            && pending.remove(run).is_some()
        {
            ended = ended.and(succeeded(work));
            if pending.is_empty() {
                return ended;
            }
        }
        if event.name == "gone" && canvases.len() == 1 && runs.is_empty() {
            return ended;
        }
    }
}

/// The id in a handle. Work with a run is named by `run:` and `job:` handles that have the same one, and events name one of the two.
fn id(handle: &str) -> &str {
    handle.split_once(':').map_or(handle, |(_, id)| id)
}

fn print_event(context: &Context, name: &str, data: &Value) {
    context.output.value(&json!({"event": name, "data": data}), || {
        let line = match name {
            "role" => RoleStreamEvent::deserialize(data).map(|it| format!("{} role {}", it.canvas, it.access_role)),
            "canvas" => {
                CanvasStreamEvent::deserialize(data).map(|it| format!("{} revision {}", it.canvas, text(it.revision)))
            }
            "presence" => PresenceStreamEvent::deserialize(data)
                .map(|it| format!("{} followed by {}", it.canvas, joined(it.who.into_iter().map(|it| it.label), ", "))),
            "gone" => GoneStreamEvent::deserialize(data).map(|it| format!("{} is gone", it.canvas)),
            "run" => RunStreamEvent::deserialize(data)
                .map(|it| format!("{} {} {}/{} {:?} %", text(it.run), it.status, it.done, it.total, it.progress))
                .or_else(|_| {
                    WorkRecord::deserialize(data).map(|it| format!("{} {}", text(it.handle()), text(&it.status)))
                }),
            _ => Err(serde::de::Error::custom("another event")),
        };
        line.unwrap_or_else(|_| text(format!("{name} {data}")))
    });
}

/// A stream of events that is opened again when it breaks off.
pub struct Stream<'a> {
    context: &'a Context,
    canvases: Vec<String>,
    with_runs: bool,
    open: Option<Events>,
    failures: usize,
}

impl<'a> Stream<'a> {
    pub fn new(context: &'a Context, canvases: Vec<String>, with_runs: bool) -> Self {
        Self { context, canvases, with_runs, open: None, failures: 0 }
    }

    /// Opens the stream unless it is open; `true` if it was opened now. Fails when the service refuses it.
    pub async fn open(&mut self) -> Outcome<bool> {
        if self.open.is_some() {
            return Ok(false);
        }
        let call =
            self.canvases.iter().fold(self.context.client.follow_events(), |call, canvas| call.query("canvas", canvas));
        self.open = Some(call.query_if("runs", self.with_runs.then_some("mine")).events().await?);
        Ok(true)
    }

    /// The next event. `None`: the stream broke off; open it again.
    pub async fn next(&mut self) -> Outcome<Option<Event>> {
        let Some(open) = &mut self.open else { return Ok(None) };
        match open.next().await {
            Ok(Some(event)) => {
                self.failures = 0;
                return Ok(Some(event));
            }
            Ok(None) => {}
            Err(error) if error.is_temporary() => {}
            Err(error) => return Err(error.into()),
        }
        self.open = None;
        let pause = PAUSES[self.failures.min(PAUSES.len() - 1)];
        self.failures += 1;
        self.context.output.remark(format!("The stream broke off; it is opened again in {pause} s."));
        tokio::time::sleep(Duration::from_secs(pause)).await;
        Ok(None)
    }
}
