//! Any request, for what has no command.

use bytes::Bytes;
use http::HeaderName;

use crate::args::Api;
use crate::context::{Context, text_or_stdin};
use crate::failure::{Failure, Outcome, file, usage};
use crate::output::put;

/// Sends a request and prints the body of its answer. It is repeated only if a repetition has no second effect.
pub async fn run(context: &Context, api: &Api) -> Outcome {
    let path = api.path.strip_prefix(domain::API_ROOT).unwrap_or(&api.path);
    let mut call = context.client.request(api.method.clone(), path);
    for header in &api.headers {
        let Some((name, value)) = header.split_once(':') else {
            return usage(format!("{header} is not `Name: value`"));
        };
        let name: HeaderName =
            name.trim().parse().map_err(|_| Failure::Usage(format!("{name} is not the name of a header")))?;
        call = call.header(name, value.trim());
    }
    if let Some(data) = &api.data {
        let bytes = match data.strip_prefix('@') {
            Some("-") => text_or_stdin("-").await?.into_bytes(),
            Some(path) => tokio::fs::read(path).await.map_err(|error| file(path.as_ref(), &error))?,
            None => data.clone().into_bytes(),
        };
        let is_typed = api.headers.iter().any(|it| it.to_lowercase().starts_with("content-type:"));
        call = match serde_json::from_slice::<serde_json::Value>(&bytes) {
            _ if is_typed => call.bytes(Bytes::from(bytes)),
            Ok(value) => call.json(&value),
            // The service says what is wrong with it.
            Err(_) => call.body("application/json", Bytes::from(bytes)),
        };
    }
    let answer = call.await?;
    let is_text = answer.header("content-type").is_some_and(|it| it.contains("json") || it.starts_with("text/"));
    put(&answer.body);
    if is_text && !answer.body.ends_with(b"\n") {
        put(b"\n");
    }
    Ok(())
}
