//! Simulators of the providers: HTTP servers on loopback that keep state, refuse what the vendors refuse, make real
//! pictures, and misbehave as told.
//!
//! A simulator is written from the vendor's contract, never from our adapter: it knows every field that the vendor
//! documents and refuses the others, answers in the vendor's forms, and serves results from a second port that refuses
//! any request with a key in it. What it is told to do wrong comes from the test ([`Simulator::misbehave`]) or, for
//! processes that a test cannot reach into, from the prompt: `[[sim:out-of-credit]]`.

mod black_forest_labs;
mod chat;
mod check;
mod comfy;
mod fal;
mod form;
mod google;
mod interactions;
mod openai;
mod picture;
mod replicate;
mod runway;
mod server;
mod stability;
mod state;
mod trouble;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::{CancellationToken, DropGuard};

pub use state::Submit;
pub use trouble::Trouble;

use server::Call;
use state::State;

/// The key that every simulator takes; any other is refused.
pub const SIMULATOR_KEY: &str = "sim-key-0123456789abcdef";

/// The text that simulators write of a prompt.
pub fn written(prompt: &str) -> String {
    format!("Written of: {prompt}")
}

/// Whose protocol a simulator speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// OpenAI's Images API.
    OpenAi,
    /// Google's Gemini API.
    Google,
    /// Replicate.
    Replicate,
    /// fal's queue.
    Fal,
    /// Stability AI's stable-image API.
    Stability,
    /// Black Forest Labs.
    BlackForestLabs,
    /// Runway.
    Runway,
    /// A self-hosted server with OpenAI's routes, which needs no key.
    Compatible,
    /// A self-hosted server with the Comfy API v2, which needs no key.
    Comfy,
}

impl Vendor {
    /// Every vendor, by the name that `canvas-simulators` has for it.
    pub const ALL: [(&str, Vendor); 9] = [
        ("openai", Vendor::OpenAi),
        ("google", Vendor::Google),
        ("replicate", Vendor::Replicate),
        ("fal", Vendor::Fal),
        ("stability", Vendor::Stability),
        ("black-forest-labs", Vendor::BlackForestLabs),
        ("runway", Vendor::Runway),
        ("compatible", Vendor::Compatible),
        ("comfy", Vendor::Comfy),
    ];

    fn answer(self, state: &State, call: &Call) -> server::Reply {
        match self {
            Vendor::OpenAi => openai::answer(state, call, openai::Flavor::Vendor),
            Vendor::Compatible => openai::answer(state, call, openai::Flavor::Compatible),
            Vendor::Google => google::answer(state, call),
            Vendor::Replicate => replicate::answer(state, call),
            Vendor::Fal => fal::answer(state, call),
            Vendor::Stability => stability::answer(state, call),
            Vendor::BlackForestLabs => black_forest_labs::answer(state, call),
            Vendor::Runway => runway::answer(state, call),
            Vendor::Comfy => comfy::answer(state, call),
        }
    }
}

/// A running simulator. It stops when dropped.
pub struct Simulator {
    state: Arc<State>,
    ca_pem: Option<String>,
    _stop: DropGuard,
}

impl Simulator {
    /// Starts one over plain HTTP on two free ports of 127.0.0.1: the API, and the host of its results.
    pub async fn start(vendor: Vendor) -> Self {
        Self::start_at(vendor, false, [0, 0]).await.expect("binds free ports of loopback")
    }

    /// The same on these ports, the API's and that of the results, where 0 is a free one; over HTTPS if so asked, for clients
    /// that know no other (see [`ca_pem`](Self::ca_pem)).
    ///
    /// # Errors
    ///
    /// When a port is taken.
    pub async fn start_at(vendor: Vendor, https: bool, ports: [u16; 2]) -> io::Result<Self> {
        let stop = CancellationToken::new();
        let server::Listening { state, ca_pem } = server::listen(vendor, https, ports, &stop).await?;
        Ok(Self { state, ca_pem, _stop: stop.drop_guard() })
    }

    /// The base URL, without a path: `http://127.0.0.1:<port>`.
    pub fn url(&self) -> &str {
        &self.state.api
    }

    /// Of an HTTPS simulator: the certificate of the authority that signed its own, in PEM.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// Every submit from now on meets this trouble.
    pub fn misbehave(&self, trouble: Trouble) {
        self.state.troubles.set(Some(trouble));
    }

    /// The next submit alone meets this trouble.
    pub fn misbehave_once(&self, trouble: Trouble) {
        self.state.troubles.push(trouble);
    }

    /// From now on everything goes well.
    pub fn behave(&self) {
        self.state.troubles.set(None);
    }

    /// How long work takes from now on; nothing, until told. An answer or a run is finished no earlier.
    pub fn take(&self, latency: Duration) {
        *self.state.latency.lock().expect("no holder panics") = latency;
    }

    /// What was begun so far is finished at once, however long it was to take.
    pub fn finish(&self) {
        self.state.runs.lock().expect("no holder panics").values_mut().for_each(state::Run::finish);
    }

    /// From now on cancels are answered as ever and change nothing: the work goes on to its end.
    pub fn ignore_cancels(&self) {
        *self.state.heeds_cancels.lock().expect("no holder panics") = false;
    }

    /// Videos have at least so many bytes from now on.
    pub fn weigh(&self, bytes: usize) {
        *self.state.film_bytes.lock().expect("no holder panics") = bytes;
    }

    /// Videos that are downloaded from now on are followed by so many zeros, which are made as they are sent: nobody holds them.
    pub fn pad(&self, zeros: usize) {
        *self.state.film_padding.lock().expect("no holder panics") = zeros;
    }

    /// So many downloads of results break off in the middle.
    pub fn cut(&self, downloads: usize) {
        *self.state.cuts.lock().expect("no holder panics") = downloads;
    }

    /// Every submit so far, refused ones included, in the order in which they came.
    pub fn submits(&self) -> Vec<Submit> {
        self.state.submits.lock().expect("no holder panics").clone()
    }

    /// The submits that were accepted, and would be charged, under this idempotency key.
    pub fn accepted(&self, idempotency_key: &str) -> usize {
        let all = self.submits();
        all.iter().filter(|it| it.accepted && it.idempotency_key.as_deref() == Some(idempotency_key)).count()
    }

    /// How often a key was sent to the host of the results, where none belongs.
    pub fn leaks(&self) -> usize {
        *self.state.leaks.lock().expect("no holder panics")
    }

    /// How often runs were polled.
    pub fn polls(&self) -> usize {
        *self.state.polls.lock().expect("no holder panics")
    }

    /// How often a cancel was asked for, heeded or not.
    pub fn cancel_requests(&self) -> usize {
        *self.state.cancel_requests.lock().expect("no holder panics")
    }

    /// How often a run was canceled before its end.
    pub fn cancels(&self) -> usize {
        self.state.runs.lock().expect("no holder panics").values().filter(|run| run.canceled).count()
    }
}
