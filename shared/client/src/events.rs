//! Server-sent events (the HTML standard, section "Server-sent events"), as far as the service uses them.

use bytes::{Buf, BytesMut};
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::Value;

use crate::call::Call;
use crate::problem::{Error, Result};
use crate::transport::{BodyStream, Unreachable};
use crate::work::WorkRecord;

/// An event is at most a run with its review and previews.
const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its name, for example `canvas`, `run` or `gone`.
    pub name: String,
    /// Its data.
    pub data: Value,
}

impl Event {
    /// The run or job of an event `run`; `None` for another event.
    pub fn work(&self) -> Option<WorkRecord> {
        WorkRecord::deserialize(&self.data).ok().filter(|_| self.name == "run")
    }
}

/// An open stream of events.
pub struct Events {
    body: BodyStream,
    buffer: BytesMut,
}

impl<T> Call<T> {
    /// Opens the stream. It is not opened again when it breaks off: the caller knows what it still waits for.
    pub async fn events(self) -> Result<Events> {
        let answer = self.header(http::header::ACCEPT, "text/event-stream").stream().await?;
        Ok(Events { body: answer.into_body(), buffer: BytesMut::new() })
    }
}

impl Events {
    /// The next event; `None` when the service has ended the stream. Comments are skipped.
    pub async fn next(&mut self) -> Result<Option<Event>> {
        loop {
            while let Some(block) = self.block() {
                if let Some(event) = parse(&block)? {
                    return Ok(Some(event));
                }
            }
            match self.body.next().await {
                Some(Ok(piece)) if self.buffer.len() + piece.len() <= EVENT_BYTES_MAX => {
                    self.buffer.extend_from_slice(&piece)
                }
                Some(Ok(_)) => return Err(Error::Unexpected("an event of more than 16 MiB".into())),
                Some(Err(error)) => return Err(Unreachable(error.to_string()).into()),
                None => return Ok(None),
            }
        }
    }

    /// Takes the lines up to the next empty one.
    fn block(&mut self) -> Option<BytesMut> {
        let end = self.buffer.windows(2).position(|pair| pair == b"\n\n")?;
        let block = self.buffer.split_to(end);
        self.buffer.advance(2);
        Some(block)
    }
}

/// `None` for a comment.
fn parse(block: &[u8]) -> Result<Option<Event>> {
    let text = std::str::from_utf8(block).map_err(|_| Error::Unexpected("an event that is not UTF-8".into()))?;
    let (mut name, mut data) = (None, String::new());
    for line in text.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = Some(value),
            "data" if data.is_empty() => data = value.to_owned(),
            "data" => data = format!("{data}\n{value}"),
            _ => {}
        }
    }
    let Some(name) = name else { return Ok(None) };
    let data =
        serde_json::from_str(&data).map_err(|error| Error::Unexpected(format!("the data of {name}: {error}")))?;
    Ok(Some(Event { name: name.to_owned(), data }))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::stream;
    use serde_json::json;

    use super::*;

    /// The same events, however the bytes are cut.
    #[tokio::test]
    async fn events_are_read_from_pieces_of_any_size() {
        let text = ": alive\n\nevent: run\ndata: {\"a\":\ndata: \"ü\"}\n\nevent:gone\ndata:{}\n\n";
        let expected = [("run", json!({"a": "ü"})), ("gone", json!({}))];
        for size in 1..=text.len() {
            let pieces: Vec<_> = text.as_bytes().chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
            let mut events = Events { body: Box::pin(stream::iter(pieces)), buffer: BytesMut::new() };
            for (name, data) in &expected {
                let event = events.next().await.expect("reads").expect("an event");
                assert_eq!((event.name.as_str(), &event.data), (*name, data), "pieces of {size}");
            }
            assert!(events.next().await.expect("reads").is_none());
        }
    }
}
