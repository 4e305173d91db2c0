//! The service as the demo uses it: every request is repeated until it is answered, and work is followed to its end.

use std::time::{Duration, Instant};

use client::network::Network;
use client::{Answer, Call, Client, is_over};
use serde_json::Value;

use crate::error::{Error, Result, text};
use crate::steps::Awaited;

/// How long a request without an answer is repeated: enough to start a gateway again.
const PATIENCE: Duration = Duration::from_secs(300);

/// The pause between two attempts.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// A service, and the token of an account.
pub struct Service {
    client: Client,
    pub network: Network,
    pub token: String,
    /// The directory of the logs, if it is known.
    pub logs: Option<String>,
    /// What is awaited at the moment.
    pub awaited: Awaited,
}

impl Service {
    /// The service at `base` (scheme, host and port).
    pub fn new(base: &str, token: &str, logs: Option<String>) -> Result<Self> {
        let network =
            Network::new(base, concat!("canvas-demo/", env!("CARGO_PKG_VERSION"))).map_err(|_| Error::Settings)?;
        let client = Client::new(network.clone()).without_retries().with_token(token).ok_or(Error::Settings)?;
        Ok(Self { client, network, token: token.to_owned(), logs, awaited: Awaited::default() })
    }

    /// Sends a request until it is answered. A mutation must have the same idempotency key each time.
    pub async fn send<T: 'static>(&self, call: impl Fn(&Client) -> Call<T>) -> Result<Answer<T>> {
        let name = call(&self.client).name();
        self.awaited.set(&name);
        self.repeat(&name, || call(&self.client)).await
    }

    /// Like [`Service::send`], for the JSON of the answer.
    pub async fn json<T: 'static>(&self, call: impl Fn(&Client) -> Call<T>) -> Result<Value> {
        Ok(self.send(call).await?.json())
    }

    /// Makes attempts until one is answered: with a success, or with an error that a repetition would not change.
    pub async fn repeat<T, A>(&self, name: &str, attempt: impl Fn() -> A) -> Result<T>
    where
        A: IntoFuture<Output = client::Result<T>>,
    {
        let began = Instant::now();
        loop {
            let tried = Instant::now();
            match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(error) if error.is_temporary() && began.elapsed() < PATIENCE => {
                    self.awaited.set(format_args!(
                        "{name} has no answer: {error}; if the gateway is down, deploy/local/up --no-demo starts it (log: {})",
                        self.log("gateway")
                    ));
                    tokio::time::sleep(RETRY_PAUSE).await;
                    if matches!(error, client::Error::Unreachable(_)) {
                        self.awaited.add_away(tried.elapsed());
                    }
                }
                Err(source) => return Err(Error::Request { request: name.to_owned(), source }),
            }
        }
    }

    /// Follows work, which the process `part` does, until it has succeeded, and returns its record.
    pub async fn finish(&self, work: &str, part: &str) -> Result<Value> {
        loop {
            let record = self
                .repeat(&format!("the record of {work}"), || self.client.read_work(work).prefer("wait=5"))
                .await?
                .json();
            match text(&record, "/status")? {
                "succeeded" => return Ok(record),
                status if is_over(status) => {
                    return Err(Error::Work {
                        work: work.to_owned(),
                        status: status.to_owned(),
                        code: text(&record, "/failure/code").unwrap_or("no failure code").to_owned(),
                        message: text(&record, "/failure/message").unwrap_or_default().to_owned(),
                        log: self.log(part),
                    });
                }
                status => {
                    let reason = reason(&record);
                    self.awaited.set(format_args!("{work} is {status}{reason} (log: {})", self.log(part)));
                }
            }
        }
    }

    /// Where the process `part` writes its log.
    pub fn log(&self, part: &str) -> String {
        match &self.logs {
            Some(directory) => format!("{directory}/{part}.log"),
            None => format!("that of the {part}"),
        }
    }
}

/// What a record says about why its work does not go on.
fn reason(record: &Value) -> String {
    let waiting = &record["waitingFor"];
    let parts = [
        ("what", ", waiting for "),
        ("since", " since "),
        ("lastSeenAt", ", last seen "),
        ("retryAt", ", next attempt "),
    ];
    parts.iter().filter_map(|(member, words)| Some(format!("{words}{}", waiting[member].as_str()?))).collect()
}
