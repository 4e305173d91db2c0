//! Following canvases and runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use client::events::{Event, Events};
use client::{Item, Pages, WorkRecord};
use domain::account::Scope;
use domain::job::RunSummary;
use domain::stream::{CanvasStreamEvent, GoneStreamEvent, PresenceStreamEvent, RoleStreamEvent, RunStreamEvent};
use serde::Deserialize;
use serde_json::{Value, json};

use super::waits::warn;
use super::work::succeeded;
use crate::args::Watch;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::names::with_stdin;
use crate::output::{is_unread, joined, text};

/// Runs among which those that are not over are looked for: the newest ones.
const RUNS_MAX: usize = 200;
/// Pauses between attempts to open the stream.
const PAUSES: [u64; 5] = [1, 2, 4, 8, 15];

pub async fn watch(context: &Context, watch: &Watch) -> Outcome {
    let subjects = subjects(context, watch.subjects.clone()).await?;
    let follow = follow(context, &subjects);
    match watch.timeout {
        None => follow.await,
        Some(seconds) => match tokio::time::timeout(Duration::from_secs(seconds), follow).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::Running(format!("runs are still active after {seconds} s"))),
        },
    }
}

/// Canvases, runs and jobs by their names. What names no canvas names a run.
async fn subjects(context: &Context, names: Vec<String>) -> Outcome<Vec<String>> {
    let mut subjects = Vec::new();
    for name in with_stdin(names).await? {
        subjects.push(match name.starts_with("run:") || name.starts_with("job:") {
            true => name,
            false => match context.canvas(&name).await {
                Err(Failure::NotFound(_)) => context.run(&name).await?,
                found => found?,
            },
        });
    }
    Ok(subjects)
}

/// The runs of the caller that are not over, by id: all, or those that write to one of these canvases.
async fn active(context: &Context, canvases: &[String]) -> Outcome<BTreeMap<String, String>> {
    let newest = Pages::new(|| context.client.list_runs()).take(RUNS_MAX).await?;
    let is_here = |run: &RunSummary| {
        let on = run.canvas_id.as_ref().map(ToString::to_string);
        canvases.is_empty() || on.is_some_and(|on| canvases.contains(&on))
    };
    let runs = newest.iter().filter_map(Item::value).filter(|run| !run.status.is_terminal() && is_here(run));
    Ok(runs.map(|run| (id(&run.handle).to_owned(), run.handle)).collect())
}

/// Prints every event until all named runs are over or, if none is named, no run of the caller on the canvases, or of all, is left.
async fn follow(context: &Context, subjects: &[String]) -> Outcome {
    let (runs, mut canvases): (Vec<String>, Vec<String>) =
        subjects.iter().cloned().partition(|it| it.starts_with("run:") || it.starts_with("job:"));
    let is_named = !runs.is_empty();
    for canvas in &mut canvases {
        if !canvas.starts_with("canvas:") {
            *canvas = context.client.get_canvas(canvas).await?.value()?.canvas.handle.to_string();
        }
    }
    // Without the scope for runs, a canvas is followed until it is gone.
    let scopes = context.client.get_auth_status().await?.value()?.scopes;
    let with_runs = is_named || canvases.is_empty() || scopes.iter().any(|it| *it == Scope::JobManage);
    let mut pending: BTreeMap<String, String> = runs.iter().map(|it| (id(it).to_owned(), it.clone())).collect();
    // Canvases whose present state has not been printed.
    let mut unseen: BTreeSet<String> = if is_named { BTreeSet::new() } else { canvases.iter().cloned().collect() };
    let mut ended = Ok(());
    let mut stream = Stream::new(context, canvases.clone(), with_runs);
    loop {
        // After the stream is open, so that no end falls between the two.
        let is_new = stream.open().await?;
        if is_new && is_named {
            for (id, run) in pending.clone() {
                let read = context.client.read_work(&run).query("view", "summary").await?;
                let record = read.value()?;
                warn(&context.output, &run, &record, read.time());
                if record.is_over() {
                    pending.remove(&id);
                    print_event(context, "run", &json!({"run": run, "status": record.status}));
                    ended = ended.and(succeeded(&record));
                }
            }
        } else if is_new && with_runs {
            pending = active(context, &canvases).await?;
        }
        if with_runs && pending.is_empty() && unseen.is_empty() {
            if is_named {
                return ended;
            }
            // Its first event may come after the last one of another run.
            pending = active(context, &canvases).await?;
            if pending.is_empty() {
                return ended;
            }
        }
        // Nobody reads the events to come.
        if is_unread() {
            return ended;
        }
        let Some(event) = stream.next().await? else { continue };
        let on = event.data["canvas"].as_str().unwrap_or_default();
        match event.work() {
            Some(work) => {
                let run = id(work.handle()).to_owned();
                let is_meant = match is_named {
                    true => runs.iter().any(|it| id(it) == run),
                    false => canvases.is_empty() || canvases.iter().any(|canvas| canvas == on),
                };
                if !is_meant {
                    continue;
                }
                print_event(context, &event.name, &event.data);
                if !work.is_over() {
                    pending.entry(run).or_insert_with(|| work.handle().to_owned());
                } else if pending.remove(&run).is_some() {
                    ended = ended.and(succeeded(&work));
                }
            }
            None => {
                print_event(context, &event.name, &event.data);
                if event.name == "canvas" || event.name == "gone" {
                    unseen.remove(on);
                }
                if event.name == "gone" && canvases.len() == 1 && !is_named {
                    return ended;
                }
            }
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
