//! The shared context of all commands, and the parts of their requests.

use std::io::{self, Stdin, stdin};
use std::sync::Mutex;

use client::network::Network;
use client::{Call, Client};
use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

use crate::args::Global;
use crate::failure::{Failure, Outcome, no_token, usage};
use crate::journal::Entry;
use crate::output::Output;
use crate::profile::{Configuration, Profile};
use crate::refreshing::Refreshing;

/// The client, the output and the address that a command works with.
pub struct Context {
    pub client: Client,
    /// Address of the service.
    pub origin: String,
    pub output: Output,
    /// The message when the command is interrupted.
    pub interrupt_message: Mutex<Option<String>>,
    /// Entries of the journal that end with the command.
    entries: Mutex<Vec<Entry>>,
}

/// The header that names the program behind a request. The service logs it.
const SURFACE: HeaderName = HeaderName::from_static("x-service-agent-surface");

/// An object, which a request consists of.
pub type Body = Map<String, Value>;

/// What is sent to the service as the credential.
pub enum Credential {
    /// A token.
    Token(String),
    /// The token of the profile with this name, which may be replaced meanwhile.
    Profile(String, Profile),
}

/// The address and credential in use: flags, then the environment, then the profile.
fn credentials(global: &Global) -> Outcome<(String, Credential)> {
    let environment = std::env::var("CANVAS_TOKEN").ok().filter(|token| !token.is_empty()).map(Credential::Token);
    let named = global.profile.as_ref().filter(|_| !global.address_precedes_profile);
    let stored = |(name, profile): (&String, &Profile)| Credential::Profile(name.clone(), profile.clone());
    if let (None, Some(url)) = (named, &global.base_url) {
        let credential = match environment {
            Some(token) => Some(token),
            // A token is sent to the service it is from, and to no other.
            None => Configuration::load()?.of_service(url).map(stored),
        };
        return match credential {
            Some(credential) => Ok((url.clone(), credential)),
            None => no_token(format!(
                "there is no token for {url}: run `canvas login --base-url {url}`, or set CANVAS_TOKEN"
            )),
        };
    }
    let configuration = Configuration::load()?;
    let Some(name) = named.or(configuration.current.as_ref()) else {
        let advice = "no service is named: run `canvas login --base-url URL`, or set CANVAS_BASE_URL and CANVAS_TOKEN";
        return if environment.is_some() { usage(advice) } else { no_token(advice) };
    };
    let Some(profile) = configuration.profiles.get_key_value(name) else {
        return usage(format!("there is no profile {name}: `canvas profile list` shows them"));
    };
    let credential = environment.filter(|_| named.is_none()).unwrap_or_else(|| stored(profile));
    Ok((profile.1.base_url.clone(), credential))
}

/// The service at `origin`.
pub fn network(origin: &str) -> Outcome<Network> {
    if !origin.starts_with("https://") && !origin.starts_with("http://") {
        return usage(format!("{origin} is not an address: it begins with https:// or http://"));
    }
    let agent = concat!("canvas/", env!("CARGO_PKG_VERSION"));
    Ok(Network::new(origin, agent).map_err(client::Error::from)?)
}

/// A client of the service at `origin`.
pub fn connect(origin: &str, credential: Credential) -> Outcome<Client> {
    let network = network(origin)?;
    let client = match credential {
        Credential::Token(token) => Client::new(network).with_token(&token),
        Credential::Profile(name, profile) => Some(Client::new(Refreshing::new(network, name, profile))),
    };
    match client {
        Some(client) => Ok(client.with_header(SURFACE, HeaderValue::from_static("cli"))),
        None => usage("the token has characters that no token has"),
    }
}

impl Context {
    pub fn new(global: &Global) -> Outcome<Self> {
        let (origin, credential) = credentials(global)?;
        let client = connect(&origin, credential)?;
        let origin = origin.trim_end_matches('/').to_owned();
        let output = Output::new(global.json, global.quiet);
        Ok(Self { client, origin, output, interrupt_message: Mutex::default(), entries: Mutex::default() })
    }

    /// The client for the tools of agents.
    pub fn tools(&self) -> Client {
        self.client.clone().with_header(SURFACE, HeaderValue::from_static("tool"))
    }

    /// Sets the message for an interrupt from now on.
    pub fn on_interruption(&self, text: Option<String>) {
        if let Ok(mut message) = self.interrupt_message.lock() {
            *message = text;
        }
    }

    /// Ends this entry of the journal when the command has ended.
    pub fn end_with_command(&self, entry: Entry) {
        if let Ok(mut entries) = self.entries.lock() {
            entries.push(entry);
        }
    }

    /// Ends the entries of the command, unless the same command would continue it.
    pub fn ended(&self, outcome: &Outcome) {
        let goes_on = match outcome {
            Err(Failure::Running(_) | Failure::Interrupted(_)) => true,
            Err(Failure::Service(error)) => error.is_temporary(),
            _ => false,
        };
        if !goes_on && let Ok(mut entries) = self.entries.lock() {
            entries.drain(..).for_each(Entry::end);
        }
    }

    /// The current revision of a canvas. An unknown `since` returns the current revision and no changes.
    pub async fn revision(&self, canvas: &str) -> Outcome<String> {
        Ok(self.client.get_canvas_changes(canvas).query("since", "none").await?.value()?.revision)
    }

    /// The uid of the account.
    pub async fn uid(&self) -> Outcome<String> {
        Ok(self.client.get_auth_status().await?.value()?.uid.to_string())
    }
}

/// A text argument: itself, or standard input for `-`.
pub async fn text_or_stdin(argument: &str) -> Outcome<String> {
    match argument {
        "-" => typed(io::read_to_string).await,
        text => Ok(text.to_owned()),
    }
}

/// The result of `read` on standard input. It has a thread of its own, so that an interrupt is noticed while nothing is typed.
pub async fn typed<T: Send + 'static>(read: impl FnOnce(Stdin) -> io::Result<T> + Send + 'static) -> Outcome<T> {
    #[expect(clippy::disallowed_methods, reason = "a command reads its input once: there is nothing to bound")]
    let reading = tokio::task::spawn_blocking(|| read(stdin()));
    let read = reading.await.unwrap_or_else(|error| Err(error.into()));
    read.map_err(|error| Failure::Usage(format!("standard input: {error}")))
}

/// The next page of a list, as its options ask.
pub fn page<T>(call: Call<T>, listing: &crate::args::Listing) -> Call<T> {
    call.query_if("limit", listing.limit).query_if("cursor", listing.cursor.as_deref())
}
