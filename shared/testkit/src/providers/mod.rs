//! Simulators of the providers: HTTP servers on loopback that keep state, reject what the vendors
//! reject, return real images, and fail on demand.
//!
//! A simulator is written from the vendor's API documentation, never from our adapter. It knows
//! every documented field, rejects unknown ones, and answers in the vendor's formats. It serves
//! results from a second port, which rejects any request that carries a key. A test selects a
//! failure with [`Simulator::misbehave`]. For processes that a test cannot reach, the prompt
//! selects it: `[[sim:out-of-credit]]`.

mod black_forest_labs;
mod chat;
mod check;
mod comfy;
mod failure_mode;
mod fal;
mod form;
mod google;
mod image;
mod interactions;
mod mask;
mod openai;
mod replicate;
mod runway;
mod server;
mod stability;
mod state;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use failure_mode::FailureMode;
pub use state::Submit;

use server::Call;
use state::State;

/// The key that every simulator accepts; it rejects any other.
pub const SIMULATOR_KEY: &str = "sim-key-0123456789abcdef";

/// The text that the simulators generate for a prompt.
pub fn written(prompt: &str) -> String {
    format!("Written of: {prompt}")
}

/// Declares the vendors, each with the name of its tests and its own. `$` is passed in, because a macro that defines another one
/// cannot write it.
macro_rules! vendors {
    ($d:tt $($(#[doc = $doc:literal])+ $vendor:ident $test:ident = $name:literal,)+) => {
        /// The vendor whose protocol a simulator speaks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Vendor { $($(#[doc = $doc])+ $vendor,)+ }

        impl Vendor {
            /// Every vendor.
            pub const ALL: &[Vendor] = &[$(Vendor::$vendor),+];

            /// The kind of provider, or the protocol of a self-hosted server.
            pub const fn name(self) -> &'static str {
                match self { $(Vendor::$vendor => $name),+ }
            }
        }

        /// Generates one test per vendor, because each test draws its images on one thread.
        #[macro_export]
        macro_rules! for_every_vendor {
            ($d module:ident, $d check:ident) => {
                mod $d module {
                    $(#[tokio::test]
                    async fn $test() {
                        super::$d check(testkit::providers::Vendor::$vendor).await;
                    })+
                }
            };
        }
    };
}

vendors! { $
    /// OpenAI's Images API and chat completions.
    OpenAi openai = "openai",
    /// Google's Gemini API.
    Google google = "google",
    /// Replicate's predictions API.
    Replicate replicate = "replicate",
    /// fal's queue API.
    Fal fal = "fal",
    /// Stability AI's stable-image API.
    Stability stability = "stability",
    /// Black Forest Labs' FLUX API.
    BlackForestLabs black_forest_labs = "black-forest-labs",
    /// Runway's tasks API.
    Runway runway = "runway",
    /// A self-hosted server with OpenAI's routes, which needs no key.
    Compatible compatible = "compatible",
    /// A self-hosted server with the Comfy API v2, which needs no key.
    Comfy comfy = "comfy",
}

impl Vendor {
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

/// A running simulator. It stops when it is dropped.
pub struct Simulator {
    state: Arc<State>,
    ca_pem: Option<String>,
    _stop: DropGuard,
}

impl Simulator {
    /// Starts a simulator over plain HTTP on two free ports of 127.0.0.1: one for the API and one
    /// for the results.
    pub async fn start(vendor: Vendor) -> Self {
        Self::start_at(vendor, false, [0, 0]).await.expect("binds free ports of loopback")
    }

    /// Starts a simulator on the given ports for the API and the results; 0 selects a free port.
    /// With `https`, it serves HTTPS (see [`ca_pem`](Self::ca_pem)), for clients that accept no
    /// other scheme.
    ///
    /// # Errors
    ///
    /// If a port is taken.
    pub async fn start_at(vendor: Vendor, https: bool, ports: [u16; 2]) -> io::Result<Self> {
        let stop = CancellationToken::new();
        let server::Listening { state, ca_pem } = server::listen(vendor, https, ports, &stop).await?;
        Ok(Self { state, ca_pem, _stop: stop.drop_guard() })
    }

    /// The base URL, without a path: `http://127.0.0.1:<port>`.
    pub fn url(&self) -> &str {
        &self.state.api
    }

    /// For an HTTPS simulator, the certificate of its certificate authority in PEM.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// Makes every submit from now on fail in this way.
    pub fn misbehave(&self, failure_mode: FailureMode) {
        self.state.failure_modes.set(Some(failure_mode));
    }

    /// Makes the next submit fail in this way.
    pub fn misbehave_once(&self, failure_mode: FailureMode) {
        self.state.failure_modes.push(failure_mode);
    }

    /// Ends every failure that was requested.
    pub fn behave(&self) {
        self.state.failure_modes.set(None);
    }

    /// Sets how long work takes from now on; zero by default. Neither an answer nor a run finishes
    /// earlier.
    pub fn take(&self, latency: Duration) {
        *self.state.latency.lock().expect("no holder panics") = latency;
    }

    /// Finishes all started work at once, whatever its latency.
    pub fn finish(&self) {
        self.state.runs.lock().expect("no holder panics").values_mut().for_each(state::Run::finish);
    }

    /// From now on, accepts cancellations but does not act on them: the work runs to its end.
    pub fn ignore_cancels(&self) {
        *self.state.heeds_cancels.lock().expect("no holder panics") = false;
    }

    /// From now on, finishes a video before its submit is answered, and says so in the answer. Only Google's protocol allows this.
    pub fn answer_finished(&self) {
        *self.state.answers_finished.lock().expect("no holder panics") = true;
    }

    /// From now on, receives uploaded images and never answers; the connections stay open.
    pub fn hang_uploads(&self) {
        *self.state.hangs_uploads.lock().expect("no holder panics") = true;
    }

    /// How many images were uploaded.
    pub fn uploads(&self) -> usize {
        self.state.uploads.lock().expect("no holder panics").len()
    }

    /// Sets the minimum size of videos from now on, in bytes.
    pub fn weigh(&self, bytes: usize) {
        *self.state.video_bytes.lock().expect("no holder panics") = bytes;
    }

    /// Appends this many zeros to each video that is downloaded from now on. They are generated
    /// while they are sent, so no copy is held in memory.
    pub fn pad(&self, zeros: usize) {
        *self.state.video_padding.lock().expect("no holder panics") = zeros;
    }

    /// Makes this many downloads of results break off halfway.
    pub fn cut(&self, downloads: usize) {
        *self.state.cuts.lock().expect("no holder panics") = downloads;
    }

    /// Every submit so far in order of arrival, including rejected ones.
    pub fn submits(&self) -> Vec<Submit> {
        self.state.submits.lock().expect("no holder panics").clone()
    }

    /// Keeps the bodies of requests from now on, for [`Self::received`].
    pub fn keep_bodies(&self) {
        self.state.bodies.lock().expect("no holder panics").get_or_insert_default();
    }

    /// Returns `true` if the body of any request since [`Self::keep_bodies`] holds these bytes, as they are or in Base64.
    pub fn received(&self, bytes: &[u8]) -> bool {
        // Three bytes are four digits, so the digits depend on the position. Those at the ends belong to neighbors as well.
        let encoded = [(0, 0), (1, 2), (2, 3)].map(|(before, shared)| {
            let whole = (before + bytes.len()) * 8 / 6;
            STANDARD_NO_PAD.encode([&[0; 2][..before], bytes].concat())[shared..whole].to_owned()
        });
        let forms = std::iter::once(bytes).chain(encoded.iter().map(String::as_bytes));
        let bodies = self.state.bodies.lock().expect("no holder panics");
        let bodies = bodies.as_ref().expect("keep_bodies was called");
        forms.into_iter().any(|form| bodies.iter().any(|body| body.windows(form.len()).any(|part| part == form)))
    }

    /// The number of submits under this idempotency key that were accepted, and would therefore be
    /// charged.
    pub fn accepted(&self, idempotency_key: &str) -> usize {
        let all = self.submits();
        all.iter().filter(|it| it.accepted && it.idempotency_key.as_deref() == Some(idempotency_key)).count()
    }

    /// How often a key was sent to the results host, which must not receive one.
    pub fn leaks(&self) -> usize {
        *self.state.leaks.lock().expect("no holder panics")
    }

    /// How often runs were polled.
    pub fn polls(&self) -> usize {
        *self.state.polls.lock().expect("no holder panics")
    }

    /// How often a cancellation was requested, whether or not it took effect.
    pub fn cancel_requests(&self) -> usize {
        *self.state.cancel_requests.lock().expect("no holder panics")
    }

    /// How many runs were canceled before they finished.
    pub fn cancels(&self) -> usize {
        self.state.runs.lock().expect("no holder panics").values().filter(|run| run.canceled).count()
    }
}
