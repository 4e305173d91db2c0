//! Messages as lines of standard input and output.
//!
//! **Guarantee.** Every line is served or answered with an error, also one that is damaged or too long, and the last one without its
//! end. The answers to a batch are one line.
//!
//! **Mechanism.** A task reads lines and answers those that are not messages; the library takes the others from a queue. Each answer of the
//! library passes [`Output::settle`], which keeps those of a batch until it has all of them.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, ClientRequest, ProtocolVersion, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, mpsc};

use crate::message::{self, Incoming, MESSAGE_MAX, Refused};

/// Messages that wait for the library.
const QUEUE_MAX: usize = 16;
/// Bytes of the rest of an overlong line that are read at a time.
const SKIPPED_AT_ONCE: u64 = 64 * 1024;

/// The transport.
pub struct Lines<W> {
    messages: mpsc::Receiver<ClientJsonRpcMessage>,
    output: Arc<Output<W>>,
}

impl<W: AsyncWrite + Send + Unpin + 'static> Lines<W> {
    /// Reads messages from `input` until its end and writes those of the server to `output`.
    pub fn new(input: impl AsyncRead + Send + Unpin + 'static, output: W) -> Self {
        let (queue, messages) = mpsc::channel(QUEUE_MAX);
        let output = Arc::new(Output { writer: Mutex::new(output), batches: Mutex::default() });
        tokio::spawn(read(BufReader::new(input), queue, Arc::clone(&output)));
        Self { messages, output }
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer> for Lines<W> {
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = Arc::clone(&self.output);
        async move {
            let message = serde_json::to_value(&message)?;
            match message.get("method") {
                Some(_) => output.write(&message).await,
                None => output.settle(message::id(&message), Some(message)).await,
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.writer.lock().await.shutdown().await
    }
}

/// A batch of which answers are missing.
#[derive(Default)]
struct Batch {
    /// Ids of the requests without an answer.
    open: Vec<Value>,
    answers: Vec<Value>,
}

struct Output<W> {
    writer: Mutex<W>,
    batches: Mutex<VecDeque<Batch>>,
}

impl<W: AsyncWrite + Unpin> Output<W> {
    async fn write(&self, message: &Value) -> io::Result<()> {
        let line = format!("{message}\n");
        let mut writer = self.writer.lock().await;
        writer.write_all(line.as_bytes()).await?;
        writer.flush().await
    }

    /// Writes an answer, or keeps it for the batch of its request. `None` for a request that will have none, because it was canceled.
    async fn settle(&self, id: Value, answer: Option<Value>) -> io::Result<()> {
        let whole = {
            let mut batches = self.batches.lock().await;
            let Some(at) = batches.iter().position(|batch| batch.open.contains(&id)) else {
                drop(batches);
                return match answer {
                    Some(answer) => self.write(&answer).await,
                    None => Ok(()),
                };
            };
            let batch = &mut batches[at];
            if let Some(answered) = batch.open.iter().position(|open| *open == id) {
                batch.open.swap_remove(answered);
            }
            batch.answers.extend(answer);
            batch.open.is_empty().then(|| batches.remove(at)).flatten()
        };
        match whole {
            Some(batch) if !batch.answers.is_empty() => self.write(&batch.answers.into()).await,
            _ => Ok(()),
        }
    }
}

/// Reads lines until their end, or until nobody takes messages or reads answers any more.
async fn read<W: AsyncWrite + Unpin>(
    mut input: impl AsyncBufRead + Unpin,
    queue: mpsc::Sender<ClientJsonRpcMessage>,
    output: Arc<Output<W>>,
) {
    let (mut line, mut takes_batches) = (Vec::new(), false);
    while let Ok(true) = read_line(&mut input, &mut line).await {
        let Ok(messages) = messages(std::mem::take(&mut line), takes_batches, &output).await else { return };
        for message in messages {
            match &message {
                // The version is supported, so that it is the negotiated one.
                ClientJsonRpcMessage::Request(request) => {
                    if let ClientRequest::InitializeRequest(initialize) = &request.request {
                        takes_batches = initialize.params.protocol_version == ProtocolVersion::V_2025_03_26;
                    }
                }
                ClientJsonRpcMessage::Notification(notification) => {
                    if let ClientNotification::CancelledNotification(canceled) = &notification.notification
                        && let Some(id) = &canceled.params.request_id
                        && output.settle(id.clone().into_json_value(), None).await.is_err()
                    {
                        return;
                    }
                }
                _ => {}
            }
            if queue.send(message).await.is_err() {
                return;
            }
        }
    }
}

/// The messages of a line. A line without a valid message is answered with an error.
async fn messages<W: AsyncWrite + Unpin>(
    line: Vec<u8>,
    takes_batches: bool,
    output: &Output<W>,
) -> io::Result<Vec<ClientJsonRpcMessage>> {
    if line.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    let (parsed, is_batch) = match line.len() > MESSAGE_MAX {
        true => (vec![Err(Refused::invalid(Value::Null, format!("a message has at most {MESSAGE_MAX} bytes")))], false),
        false => match message::read(line, takes_batches) {
            Ok(Incoming::One(message)) => (vec![parse(message)], false),
            Ok(Incoming::Batch(messages)) => (messages.into_iter().map(parse).collect(), true),
            Err(refused) => (vec![Err(refused)], false),
        },
    };
    let (mut batch, mut messages) = (Batch::default(), Vec::new());
    for message in parsed {
        match message {
            Ok(ClientJsonRpcMessage::Request(request)) if is_batch => {
                let id = request.id.clone().into_json_value();
                if batch.open.contains(&id) {
                    batch.answers.push(Refused::invalid(id, "id: another message of the batch has it").answer());
                } else {
                    batch.open.push(id);
                    messages.push(ClientJsonRpcMessage::Request(request));
                }
            }
            Ok(message) => messages.push(message),
            Err(refused) if is_batch => batch.answers.push(refused.answer()),
            Err(refused) => output.write(&refused.answer()).await?,
        }
    }
    match (batch.open.is_empty(), batch.answers.is_empty()) {
        (true, true) => {}
        (true, false) => output.write(&batch.answers.into()).await?,
        (false, _) => output.batches.lock().await.push_back(batch),
    }
    Ok(messages)
}

fn parse(message: Value) -> Result<ClientJsonRpcMessage, Refused> {
    message::check(&message)?;
    let id = message::id(&message);
    serde_json::from_value(message).map_err(|error| Refused::invalid(id, error.to_string()))
}

/// Reads a line without its end; false when there is none left. Of a line that is too long more than [`MESSAGE_MAX`] bytes remain.
async fn read_line(input: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    (&mut *input).take(MESSAGE_MAX as u64 + 1).read_until(b'\n', line).await?;
    if line.is_empty() {
        return Ok(false);
    }
    if line.pop_if(|last| *last == b'\n').is_none() && line.len() > MESSAGE_MAX {
        let mut rest = Vec::new();
        while !rest.ends_with(b"\n") {
            rest.clear();
            if (&mut *input).take(SKIPPED_AT_ONCE).read_until(b'\n', &mut rest).await? == 0 {
                break;
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use rmcp::ServiceExt;
    use serde_json::json;

    use super::*;
    use crate::server::tests::server;

    /// The lines that the server writes when it reads this to the end.
    async fn output(input: impl Into<Vec<u8>>) -> Vec<Value> {
        let (mut read, written) = tokio::io::simplex(64 * 1024);
        let lines = Lines::new(io::Cursor::new(input.into()), written);
        let serve = async {
            let service = server().serve(lines).await.expect("a handshake");
            service.waiting().await.expect("ends");
        };
        let mut text = String::new();
        let (_, result) = tokio::join!(serve, read.read_to_string(&mut text));
        result.expect("UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
    }

    fn handshake(version: &str) -> String {
        let params =
            json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let request = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        format!("{request}\n{}\n", json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    }

    /// The answer with this id.
    fn answer<'a>(written: &'a [Value], id: &Value) -> &'a Value {
        let mut found = written.iter().filter(|message| message.get("id") == Some(id));
        let answer = found.next().unwrap_or_else(|| panic!("no answer to {id}: {written:?}"));
        assert_eq!(found.next(), None, "one answer");
        answer
    }

    #[tokio::test]
    async fn damaged_lines_are_answered_and_the_next_ones_are_served() {
        for (line, code, id) in [
            (r#"{"jsonrpc":"2.0","id":3,"method":"tools/list""#, -32700, json!(null)),
            ("[1,", -32700, json!(null)),
            ("{}", -32600, json!(null)),
            ("7", -32600, json!(null)),
            (r#"{"jsonrpc":"2.0","id":4,"method":5}"#, -32600, json!(4)),
            (r#"[{"jsonrpc":"2.0","id":4,"method":"ping"}]"#, -32600, json!(null)),
            (
                r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"status","arguments":"x"}}"#,
                -32602,
                json!(4),
            ),
            (r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":["status"]}"#, -32602, json!("a")),
            (r#"{"jsonrpc":"2.0","id":4,"method":"prompts/get"}"#, -32602, json!(4)),
            (r#"{"jsonrpc":"2.0","id":4,"method":"tools/unknown"}"#, -32601, json!(4)),
        ] {
            let input = format!(
                "{}{line}\n\n \r\n{}\r\n",
                handshake("2025-11-25"),
                r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#
            );
            let written = output(input).await;
            assert_eq!(answer(&written, &id)["error"]["code"], code, "{line}");
            assert_eq!(answer(&written, &json!(9))["result"], json!({}), "{line}");
            assert_eq!(written.len(), 3, "{line}: {written:?}");
        }
    }

    #[tokio::test]
    async fn the_last_line_is_a_message_without_its_end() {
        let written =
            output(format!("{}{}", handshake("2025-11-25"), r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#)).await;
        assert_eq!(answer(&written, &json!(9))["result"], json!({}));
        let written = output(format!("{}{{", handshake("2025-11-25"))).await;
        assert_eq!(answer(&written, &json!(null))["error"]["code"], -32700);
    }

    #[tokio::test]
    async fn half_a_character_is_replaced() {
        let call = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"half \ud83d"}}"#;
        let written = output(format!("{}{call}\n", handshake("2025-11-25"))).await;
        let message = answer(&written, &json!(9))["error"]["message"].as_str().expect("a text");
        assert!(message.contains("half \u{fffd}"), "{message}");
    }

    #[tokio::test]
    async fn a_line_has_at_most_12_mebibytes() {
        let ping = |id: u8, length: usize| {
            let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            format!("{message}{}", " ".repeat(length - message.len()))
        };
        for end in ["\n", ""] {
            let lines = [ping(1, MESSAGE_MAX - 1), ping(2, MESSAGE_MAX), ping(3, MESSAGE_MAX + 1)].join("\n");
            let written = output(format!("{}{lines}{end}", handshake("2025-11-25"))).await;
            for id in [1, 2] {
                assert_eq!(answer(&written, &json!(id))["result"], json!({}));
            }
            assert_eq!(answer(&written, &json!(null))["error"]["code"], -32600);
            assert_eq!(written.len(), 4);
        }
        let lines = [ping(3, 2 * MESSAGE_MAX), ping(4, 100)].join("\n");
        let written = output(format!("{}{lines}", handshake("2025-11-25"))).await;
        assert_eq!(answer(&written, &json!(4))["result"], json!({}), "after a line that is too long");
    }

    #[tokio::test]
    async fn the_answers_to_a_batch_are_one_line() {
        let batch = json!([
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "nothing"},
            7,
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        ]);
        let silent = json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]);
        let damaged = json!([{"jsonrpc": "2.0", "id": 5}]);
        let single = json!({"jsonrpc": "2.0", "id": 6, "method": "ping"});
        let lines = format!("{}{batch}\n{silent}\n{damaged}\n[]\n{single}\n", handshake("2025-03-26"));
        let written = output(lines).await;
        let batches: Vec<&Vec<Value>> = written.iter().filter_map(Value::as_array).collect();
        let of = |answers: &Vec<Value>| {
            let mut of: Vec<String> =
                answers.iter().map(|it| format!("{} {}", it["id"], it["error"]["code"])).collect();
            of.sort();
            of
        };
        assert_eq!(batches.len(), 2, "{written:?}");
        assert!(batches.iter().any(|answers| of(answers) == ["5 -32600"]));
        assert!(
            batches.iter().any(|answers| of(answers) == ["1 -32600", "1 null", "2 -32601", "null -32600"]),
            "{batches:?}"
        );
        assert_eq!(answer(&written, &json!(null))["error"]["code"], -32600, "the empty batch");
        assert_eq!(answer(&written, &json!(6))["result"], json!({}));
    }

    #[tokio::test]
    async fn a_canceled_request_of_a_batch_is_not_waited_for() {
        let (read, written) = tokio::io::simplex(1024);
        let output = Output {
            writer: Mutex::new(written),
            batches: Mutex::new([Batch { open: vec![json!(1), json!(2)], answers: Vec::new() }].into()),
        };
        output.settle(json!(1), None).await.expect("writes");
        output.settle(json!(2), Some(json!({"id": 2}))).await.expect("writes");
        let mut line = String::new();
        BufReader::new(read).read_line(&mut line).await.expect("reads");
        assert_eq!(line, "[{\"id\":2}]\n");
    }
}
