//! Webhooks for a receiver that the service cannot reach, because it runs on this machine.
//!
//! The events are made from the same records and signed in the same way as those that the service delivers
//! (docs/reference/webhooks.md), with one attempt for each run.

use std::collections::HashSet;
use std::io::{IsTerminal, stdin};
use std::ops::RangeInclusive;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use client::network::Network;
use client::{Payload, Transport, WorkRecord};
use domain::event::Event;
use domain::webhook::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, standard};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderValue, Request};
use serde_json::json;
use sha2::Sha256;

use super::watch::Stream;
use crate::args::Listen;
use crate::context::{Context, text_or_stdin};
use crate::failure::{Failure, Outcome, usage};
use crate::output::{is_unread, text};
use crate::terminal;

/// Characters of a secret (docs/reference/webhooks.md#webhook-input).
const SECRET_CHARACTERS: RangeInclusive<usize> = 32..=512;

/// The secret: the argument, or typed without an echo, or from standard input.
async fn secret(listen: &Listen) -> Outcome<String> {
    const SOURCES: &str = "give it with --secret, in CANVAS_WEBHOOK_SECRET or on standard input";
    let secret = match &listen.secret {
        Some(secret) => secret.clone(),
        None if stdin().is_terminal() => terminal::secret("Secret of the webhooks", SOURCES).await?,
        None => text_or_stdin("-").await?.trim().to_owned(),
    };
    match SECRET_CHARACTERS.contains(&secret.chars().count()) {
        true => Ok(secret),
        false => usage(format!("the secret must have 32 to 512 characters: {SOURCES}")),
    }
}

/// Where webhooks are sent.
pub struct Receiver {
    network: Network,
    path: String,
    secret: String,
}

impl Receiver {
    /// The receiver that the arguments name.
    pub async fn new(listen: &Listen) -> Outcome<Self> {
        let secret = secret(listen).await?;
        let uri: http::Uri =
            listen.forward_to.parse().map_err(|_| Failure::Usage(format!("{} is not a URL", listen.forward_to)))?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return usage(format!("{} is not a URL", listen.forward_to));
        };
        let network =
            Network::new(&format!("{scheme}://{authority}"), "Canvas-Webhooks/1.0").map_err(client::Error::from)?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { network, path, secret })
    }

    /// Sends the event of work that has ended, and prints the status of the answer.
    pub async fn send(&self, context: &Context, work: &WorkRecord) -> Outcome {
        let (id, handle) = (uuid::Uuid::now_v7(), work.handle());
        let event = match handle.starts_with("job:") {
            true => Event::of_served_job(id, context.client.get_job(handle).await?.value()?),
            false => Event::of_served_run(id, context.client.get_run(handle).await?.value()?),
        };
        let body = json!(event).to_string();
        let answer = self.network.send(request(&self.path, self.secret.as_bytes(), body.as_bytes())).await;
        let status = answer.map(|answer| answer.status().as_u16());
        let said = json!({"run": handle, "status": status.as_ref().ok(), "error": status.as_ref().err().map(ToString::to_string)});
        context.output.value(&said, || {
            let status = status.map_or_else(text, text);
            format!("{} {} -> {status}", text(handle), text(&work.status))
        });
        Ok(())
    }
}

pub async fn run(context: &Context, listen: &Listen) -> Outcome {
    let receiver = Receiver::new(listen).await?;
    context
        .output
        .remark(format!("Webhooks of runs that end from now on go to {}. Interrupt to stop.", listen.forward_to));
    let mut sent = HashSet::new();
    let mut stream = Stream::new(context, Vec::new(), true);
    loop {
        stream.open().await?;
        if is_unread() {
            return Ok(());
        }
        let Some(event) = stream.next().await? else { continue };
        let Some(work) = event.work().filter(WorkRecord::is_over) else { continue };
        if sent.insert(work.handle().to_owned()) {
            receiver.send(context, &work).await?;
        }
    }
}

fn request(path: &str, secret: &[u8], body: &[u8]) -> Request<Payload> {
    let id = format!("webhook:{}", uuid::Uuid::now_v7());
    #[expect(clippy::disallowed_methods, reason = "a signature carries the time at which it is made")]
    let at = chrono::Utc::now().timestamp();
    let hex: String = sign(secret, &format!("{at}."), body).iter().map(|byte| format!("{byte:02x}")).collect();
    let standard_signature = BASE64_STANDARD.encode(sign(secret, &format!("{id}.{at}."), body));
    let mut request = Request::new(Payload { bytes: body.to_vec().into(), sent: None });
    *request.method_mut() = http::Method::POST;
    if let Ok(path) = path.parse() {
        *request.uri_mut() = path;
    }
    let headers = [
        ("content-type", "application/json".to_owned()),
        (ID_HEADER, id.clone()),
        (TIMESTAMP_HEADER, at.to_string()),
        (SIGNATURE_HEADER, format!("v1={hex}")),
        (standard::ID_HEADER, id),
        (standard::TIMESTAMP_HEADER, at.to_string()),
        (standard::SIGNATURE_HEADER, format!("v1,{standard_signature}")),
    ];
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            request.headers_mut().insert(name, value);
        }
    }
    request
}

/// HMAC-SHA256 of a head and a body.
fn sign(secret: &[u8], head: &str, body: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of every length");
    mac.update(head.as_bytes());
    mac.update(body);
    mac.finalize().into_bytes().to_vec()
}
