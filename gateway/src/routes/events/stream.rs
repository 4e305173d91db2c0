//! The sending side of an event stream.
//!
//! **Guarantee.** The first events are the present state of each subscription. Afterwards a canvas never goes back to an earlier
//! revision and a run never to an earlier state; the last role on a canvas and each run's last state are sent. The credential is
//! checked before each event.
//!
//! **Mechanism.** The feeds are subscribed to before the first states are read, so no change is missed between the two. A reader
//! that is too slow finds the newest state of each subscription, so what waits for it is at most one event.

use std::collections::{HashMap, HashSet, VecDeque};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::Event;
use db::accounts::Credential;
use db::streams::{CanvasState, RunState};
use domain::id::{AccountUid, CanvasHandle};
use domain::job::JobStatus;
use domain::stream::{
    CanvasStreamEvent, GoneStreamEvent, Participant, Pointer, PointerState, PointersStreamEvent, PresenceStreamEvent,
    RoleStreamEvent, RunStreamEvent,
};
use futures_util::{Stream, StreamExt, stream};
use serde::Serialize;
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep_until};
use tokio_stream::StreamMap;
use tokio_stream::wrappers::ReceiverStream;
use uuid::Uuid;

use super::Subscriptions;
use crate::live::{Attendee, LISTED_MAX, Present, Shown};
use crate::problem::{Problem, Result};
use crate::state::App;
use crate::wait::{Wait, holds, loss};

const HEARTBEAT: Duration = Duration::from_secs(15);
/// Minimum time between two events about pointers, of whichever canvases.
const POINTERS_PACE: Duration = Duration::from_millis(100);

/// A new state of a subscription.
enum News {
    /// Of the canvas at this place of the request.
    Canvas(usize, Option<CanvasState>),
    Participants(usize, Arc<[Attendee]>),
    Pointers(usize, Shown),
    Runs(Arc<[RunState]>),
}

/// The subscriptions of a stream: a canvas and its participants under its place in the request, the runs after all of them. A
/// canvas that is gone is removed; when nothing is left, the stream ends.
type AllNews = StreamMap<usize, Pin<Box<dyn Stream<Item = News> + Send>>>;

/// Subscriptions of a stream, with the present state.
pub(super) struct Followed {
    news: AllNews,
    canvases: Vec<(CanvasHandle, CanvasState)>,
    runs: Vec<RunState>,
    with_pointers: bool,
}

impl Followed {
    /// Subscribes, and reads the present state; 404 when the account cannot read one of the canvases.
    pub(super) async fn open(app: &App, account: &AccountUid, subscriptions: Subscriptions) -> Result<Self> {
        let Subscriptions { canvases, runs: with_runs, pointers: with_pointers } = subscriptions;
        let mut news = AllNews::new();
        for (place, canvas) in canvases.iter().enumerate() {
            let revisions = stream::unfold(app.live.canvas(canvas, account), move |mut revisions| async move {
                Some((News::Canvas(place, revisions.next().await), revisions))
            });
            let participants = stream::unfold(app.live.participants(canvas), move |mut participants| async move {
                Some((News::Participants(place, participants.next().await), participants))
            });
            let changes = stream::select(revisions, participants);
            let pointers = with_pointers.then(|| {
                stream::unfold(app.live.pointers().follow(canvas), move |mut pointers| async move {
                    Some((News::Pointers(place, pointers.next().await), pointers))
                })
            });
            news.insert(
                place,
                match pointers {
                    Some(pointers) => Box::pin(stream::select(changes, pointers)),
                    None => Box::pin(changes),
                },
            );
        }
        if with_runs {
            let changes = stream::unfold(app.live.runs(account), |mut runs| async move {
                Some((News::Runs(runs.next().await), runs))
            });
            news.insert(canvases.len(), Box::pin(changes));
        }
        let followed: Vec<_> = canvases.into_iter().map(|canvas| (canvas, account.clone())).collect();
        let states = match followed.is_empty() {
            true => Vec::new(),
            false => app.live.canvases_now(&followed).await?,
        };
        let known = followed.into_iter().zip(states).map(|((canvas, _), state)| Some((canvas, state?)));
        let canvases = known.collect::<Option<_>>().ok_or(Problem::NotFound("canvas"))?;
        let runs = if with_runs { app.live.runs_now(account, &[]).await? } else { Vec::new() };
        Ok(Self { news, canvases, runs, with_pointers })
    }

    /// The stream. It ends when nothing is left to follow, as soon as the credential is no longer valid, and when the process
    /// stops.
    pub(super) fn stream(
        self,
        app: App,
        caller: Credential,
        wait: Wait,
    ) -> impl Stream<Item = Result<Event, Infallible>> + use<> {
        let (sender, receiver) = tokio::sync::mpsc::channel::<Box<Event>>(1);
        tokio::spawn(async move {
            let lost = loss(&app, &caller);
            tokio::select! {
                _ = self.send(&app, &caller, sender) => {}
                () = lost => {}
            }
            drop(wait);
        });
        ReceiverStream::new(receiver).map(|event| Ok(*event))
    }

    /// Sends the present states and then each new one; `None` when the stream ends.
    async fn send(self, app: &App, caller: &Credential, sender: Sender<Box<Event>>) -> Option<()> {
        let Self { mut news, canvases, runs, with_pointers } = self;
        let join = |(handle, state): (CanvasHandle, CanvasState)| {
            let present = app.live.presence().join(&handle, caller);
            let id = app.keys.participant_id(&handle.to_string(), caller.token.as_bytes());
            let (who, shown, sent) = Default::default();
            Some(FollowedCanvas { handle, state, id, who, shown, sent, _present: present })
        };
        let canvases: Vec<_> = canvases.into_iter().map(join).collect();
        let (now, runs_sent) = (Instant::now(), HashMap::new());
        let mut events = EventSender {
            app,
            caller,
            sender,
            canvases,
            runs: runs_sent,
            pointed: VecDeque::new(),
            pointers_at: now,
            heartbeat: now,
        };
        // What is large and rare is not part of the future, which is held as long as the stream is open.
        Box::pin(events.present_state(runs, with_pointers)).await?;
        loop {
            tokio::select! {
                next = news.next() => match next?.1 {
                    News::Canvas(place, state) => {
                        if events.canvas(place, state).await? {
                            news.remove(&place);
                        }
                    }
                    News::Participants(place, who) => events.participants(place, who).await?,
                    News::Pointers(place, shown) => events.pointers_changed(place, shown),
                    News::Runs(runs) => events.runs(&runs).await?,
                },
                () = sleep_until(events.pointers_at), if !events.pointed.is_empty() => events.pointers().await?,
                () = sleep_until(events.heartbeat) => events.send(Event::default().comment("alive")).await?,
                () = events.sender.closed() => return None,
                () = app.stopping.cancelled() => return None,
            }
        }
    }
}

/// A canvas that is followed, in the state that was sent last.
struct FollowedCanvas {
    handle: CanvasHandle,
    state: CanvasState,
    /// Id of the caller here.
    id: String,
    who: Arc<[Attendee]>,
    /// The present pointers, and those that were sent last.
    shown: Shown,
    sent: Shown,
    _present: Present,
}

/// A run in the state that was sent last.
#[derive(Clone, Copy)]
struct SentRun {
    version: i32,
    done: i64,
    status: JobStatus,
    progress: f64,
}

impl SentRun {
    fn from_state(run: &RunState) -> Self {
        let RunStreamEvent { done, status, progress, .. } = run.event;
        Self { version: run.version, done, status, progress }
    }

    /// Returns `true` if `later` is a later state.
    fn precedes(self, later: Self) -> bool {
        !self.status.is_terminal() && (self.version, self.done) < (later.version, later.done)
    }

    /// Returns `true` if the events of both states are the same.
    fn looks_like(self, other: Self) -> bool {
        (self.status, self.done, self.progress) == (other.status, other.done, other.progress)
    }
}

/// Sends the events of one stream and remembers the last state that was sent. Every function returns `None` when the stream ends.
struct EventSender<'a> {
    app: &'a App,
    caller: &'a Credential,
    /// A channel has room for 32 messages, whatever its capacity; hence a small type.
    sender: Sender<Box<Event>>,
    /// `None`: it is gone.
    canvases: Vec<Option<FollowedCanvas>>,
    runs: HashMap<Uuid, SentRun>,
    /// Places of the canvases with pointers that may have changed, each once.
    pointed: VecDeque<usize>,
    /// When the next event about pointers may be sent.
    pointers_at: Instant,
    /// When the next comment is due.
    heartbeat: Instant,
}

impl EventSender<'_> {
    /// The first events. A run that is over already is not part of the present state.
    async fn present_state(&mut self, runs: Vec<RunState>, with_pointers: bool) -> Option<()> {
        let handles: Vec<CanvasHandle> = self.canvases.iter().flatten().map(|canvas| canvas.handle.clone()).collect();
        let lists = if handles.is_empty() { Vec::new() } else { self.app.live.presence().list(&handles).await };
        for (place, who) in lists.into_iter().enumerate() {
            let canvas = self.canvases[place].as_ref()?;
            let (handle, CanvasState { revision, role, .. }) = (canvas.handle.clone(), canvas.state.clone());
            self.event("role", &RoleStreamEvent { canvas: handle.clone(), access_role: role }).await?;
            self.event("canvas", &CanvasStreamEvent { canvas: handle, revision }).await?;
            self.participants(place, who).await?;
            if with_pointers {
                self.pointers_changed(place, self.app.live.pointers().shown(&handles[place]));
            }
        }
        for run in &runs {
            self.runs.insert(run.id, SentRun::from_state(run));
            if !run.is_over() {
                self.event("run", &run.event).await?;
            }
        }
        Some(())
    }

    /// A state of a canvas; returns whether it is gone.
    async fn canvas(&mut self, place: usize, state: Option<CanvasState>) -> Option<bool> {
        let Some(canvas) = &mut self.canvases[place] else { return Some(true) };
        let handle = canvas.handle.clone();
        match state.filter(|state| state.key == canvas.state.key) {
            Some(CanvasState { sequence, revision, role, .. }) => {
                let sent = &mut canvas.state;
                let is_later = sequence > sent.sequence;
                if is_later {
                    (sent.sequence, sent.revision) = (sequence, revision.clone());
                }
                if std::mem::replace(&mut sent.role, role) != role {
                    self.event("role", &RoleStreamEvent { canvas: handle.clone(), access_role: role }).await?;
                }
                if is_later {
                    self.event("canvas", &CanvasStreamEvent { canvas: handle, revision }).await?;
                }
                Some(false)
            }
            None => {
                self.canvases[place] = None;
                self.event("gone", &GoneStreamEvent { canvas: handle }).await?;
                Some(true)
            }
        }
    }

    async fn participants(&mut self, place: usize, who: Arc<[Attendee]>) -> Option<()> {
        let Some(canvas) = &mut self.canvases[place] else { return Some(()) };
        // A list without this stream was read before it joined.
        let is_stale = who.len() < LISTED_MAX && who.iter().all(|it| it.token != self.caller.token);
        if is_stale || canvas.who == who {
            return Some(());
        }
        canvas.who = who.clone();
        let handle = canvas.handle.to_string();
        let participant = |it: &Attendee| Participant {
            id: self.app.keys.participant_id(&handle, it.token.as_bytes()),
            label: it.label.clone(),
            surface: it.surface,
        };
        let event = PresenceStreamEvent { canvas: canvas.handle.clone(), who: who.iter().map(participant).collect() };
        self.event("presence", &event).await
    }

    /// Remembers the pointers on a canvas until they may be sent.
    fn pointers_changed(&mut self, place: usize, shown: Shown) {
        if let Some(canvas) = &mut self.canvases[place] {
            canvas.shown = shown;
            if !self.pointed.contains(&place) {
                self.pointed.push_back(place);
            }
        }
    }

    /// Sends the pointers of one canvas that changed, without the caller's own.
    async fn pointers(&mut self) -> Option<()> {
        let Some(place) = self.pointed.pop_front() else { return Some(()) };
        let Some(canvas) = &mut self.canvases[place] else { return Some(()) };
        let sent = std::mem::replace(&mut canvas.sent, canvas.shown.clone());
        let changed = canvas.shown.iter().filter(|pointer| !sent.contains(pointer)).map(|pointer| (**pointer).clone());
        let is_gone = |before: &&Arc<Pointer>| canvas.shown.iter().all(|pointer| pointer.who.id != before.who.id);
        let gone = sent.iter().filter(is_gone);
        let gone = gone.map(|before| Pointer { who: before.who.clone(), state: PointerState::default() });
        let who: Vec<Pointer> = changed.chain(gone).filter(|pointer| pointer.who.id != canvas.id).collect();
        if who.is_empty() {
            return Some(());
        }
        let event = PointersStreamEvent { canvas: canvas.handle.clone(), who };
        self.pointers_at = Instant::now() + POINTERS_PACE;
        self.event("pointers", &event).await
    }

    /// The runs that are not over, and those started within the last minute. One that was sent as active and is missing among
    /// them has ended: its last state is read.
    async fn runs(&mut self, runs: &[RunState]) -> Option<()> {
        let listed: HashSet<Uuid> = runs.iter().map(|run| run.id).collect();
        self.runs.retain(|id, sent| !sent.status.is_terminal() || listed.contains(id));
        let missing: Vec<Uuid> = self.runs.keys().filter(|id| !listed.contains(id)).copied().collect();
        let ended = match missing.is_empty() {
            true => Vec::new(),
            // The next read of the feed repeats the attempt.
            false => Box::pin(self.app.live.runs_now(&self.caller.account, &missing)).await.unwrap_or_default(),
        };
        for run in runs.iter().chain(&ended) {
            let now = SentRun::from_state(run);
            let sent = self.runs.get(&run.id).copied();
            if sent.is_none_or(|sent| sent.precedes(now)) {
                self.runs.insert(run.id, now);
                if !sent.is_some_and(|sent| sent.looks_like(now)) {
                    self.event("run", &run.event).await?;
                }
            }
        }
        Some(())
    }

    async fn event(&mut self, name: &'static str, data: &impl Serialize) -> Option<()> {
        let event = Event::default().event(name).json_data(data).ok()?;
        self.send(event).await
    }

    /// Sends an event, unless the credential is no longer valid.
    async fn send(&mut self, event: Event) -> Option<()> {
        if !matches!(holds(self.app, self.caller.token).await, Ok(true)) {
            return None;
        }
        self.sender.send(Box::new(event)).await.ok()?;
        self.heartbeat = Instant::now() + HEARTBEAT;
        Some(())
    }
}
