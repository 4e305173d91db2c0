//! The recorder of examples: requests and responses with everything that differs from run to run replaced.

use std::collections::BTreeMap;

use domain::id::is_slug;
use e2e::api::text;
use e2e::{API_ROOT, Client, Reply, Stack};
use serde_json::{Map, Value, json};
use uuid::Uuid;

pub(super) const PUBLIC_URL: &str = "https://canvas.example.com";
/// What stands for every time until [`date`] replaces it.
const TIME: &str = "2026-01-15T09:30:00.000Z";
/// How the ids in the examples begin.
const ID_BEGIN: &str = "01990000-0000";
/// The contract document and that of the console, whose paths name the path parameters of a request.
pub(super) const DOCUMENTS: [&str; 2] = [
    concat!(env!("CARGO_MANIFEST_DIR"), "/../gateway/openapi.json"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/../gateway/console.json"),
];
/// The name of an example that is the only one of its body.
pub(super) const ONLY: &str = "example";
/// The committed examples.
pub(super) const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../gateway/src/openapi/examples.json");

/// A committed document.
pub(super) fn committed(path: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("committed")).expect("JSON")
}

/// The requests and responses so far, with everything that differs from run to run replaced.
pub(super) struct Recorder {
    pub(super) client: Client,
    /// The paths of the operations, by name.
    pub(super) paths: BTreeMap<String, String>,
    pub(super) operations: Map<String, Value>,
    pub(super) failures: Map<String, Value>,
    /// The failures that differ in the console.
    console_failures: Map<String, Value>,
    /// The placeholder for each value that differs between runs. Ids are numbered in order of appearance.
    pub(super) names: BTreeMap<String, String>,
    pub(super) receiver: testkit::Receiver,
    /// The asset that everything begins with.
    pub(super) asset: Value,
}

impl Recorder {
    pub(super) async fn new(stack: &Stack) -> Self {
        let account =
            ["admin", "account", "create", "--email", "studio@example.com", "--uid", "studio", "--credits", "100"];
        stack.admin(&account).await.expect_success();
        let token = ["admin", "token", "create", "--account", "studio", "--label", "design agent", "--scopes", "all"];
        let token = stack.admin(&token).await.expect_success();
        let receiver = stack.take_receiver();
        let client = stack.anonymous().with_token(text(&token, "/token"));
        let paths = DOCUMENTS.map(committed).into_iter().flat_map(|document| {
            let items = document["paths"].as_object().expect("paths").clone();
            items.into_iter().flat_map(|(path, item)| {
                let operations = item.as_object().expect("an item").clone().into_iter();
                operations.map(move |(_, operation)| (text(&operation, "/operationId").to_owned(), path.clone()))
            })
        });
        let mut recorder = Self {
            client,
            paths: paths.collect(),
            operations: Map::new(),
            failures: Map::new(),
            console_failures: Map::new(),
            names: BTreeMap::new(),
            receiver,
            asset: Value::Null,
        };
        recorder.names.insert(recorder.receiver.url(""), "https://shop.example.com".to_owned());
        recorder.get("getAuthStatus", "/auth/status").await;
        recorder.get("getStatus", "/status").await;
        recorder
    }

    /// Records a request and its answer as the example of this name. Without a body `request` is null.
    pub(super) fn record(&mut self, id: &str, name: &str, path: &str, request: Value, reply: Reply) -> Value {
        let answered = match reply.header("content-type").expect("a type").split(';').next().expect("a type") {
            "application/json" => reply.json(),
            kind @ ("image/svg+xml" | "text/plain" | "text/html") => {
                json!({kind: String::from_utf8(reply.body.to_vec()).expect("a text")})
            }
            kind => json!({kind: format!("({kind} bytes)")}),
        };
        let mut response = self.named(&answered);
        shorten(&mut response, id.starts_with("list"));
        let request = self.named(&request);
        for (parameter, value) in self.parameters(id, path) {
            self.parameter(id, &parameter, &value);
        }
        let entry = self.entry(id);
        if !request.is_null() {
            entry["request"][name] = request;
        }
        entry["responses"][reply.status.to_string()][name] = response;
        answered
    }

    pub(super) fn entry(&mut self, id: &str) -> &mut Value {
        self.operations.entry(id).or_insert_with(|| json!({"responses": {}}))
    }

    pub(super) async fn post(&mut self, id: &str, path: &str, request: Value, status: u16) -> Value {
        let reply = self.client.send(path, &request).await.expect(status);
        self.record(id, ONLY, path, request, reply)
    }

    pub(super) async fn get(&mut self, id: &str, path: &str) -> Value {
        let reply = self.client.get(path).await.expect(200);
        self.record(id, ONLY, path, Value::Null, reply)
    }

    /// A page of a list in both views. Both have the same parameters.
    pub(super) async fn list(&mut self, id: &str, path: &str) -> Value {
        let short = self.client.get(&format!("{path}&view=summary")).await.expect(200);
        self.record(id, "summary", path, Value::Null, short);
        let full = self.client.get(path).await.expect(200);
        self.record(id, "full", path, Value::Null, full)
    }

    pub(super) fn failure(&mut self, response: &str, name: &str, reply: Reply) {
        let mut body = self.named(&reply.json());
        shorten(&mut body, false);
        let failures = self.failures.entry(response).or_insert_with(|| json!({}));
        failures[name] = body;
    }

    /// [`Self::failure`] for the document of the console.
    pub(super) fn console_failure(&mut self, response: &str, name: &str, reply: Reply) {
        let body = self.named(&reply.json());
        self.console_failures.entry(response).or_insert_with(|| json!({}))[name] = body;
    }

    /// Records the value of a header or of another parameter. The first one stays.
    pub(super) fn parameter(&mut self, id: &str, name: &str, value: &str) {
        let value = match value.parse::<u64>() {
            Ok(number) if matches!(name, "limit" | "w") => json!(number),
            _ => self.named(&json!(value)),
        };
        let known = &mut self.entry(id)["parameters"][name];
        if known.is_null() {
            *known = value;
        }
    }

    /// The parameters of a request in its path and query.
    pub(super) fn parameters(&self, id: &str, path: &str) -> Vec<(String, String)> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let pattern = self.paths[id].strip_prefix(API_ROOT).unwrap_or(&self.paths[id]);
        let segments = pattern.split('/').zip(path.split('/'));
        let named = segments.filter_map(|(name, value)| Some((name.strip_prefix('{')?.strip_suffix('}')?, value)));
        let queried = query.split('&').filter_map(|pair| pair.split_once('='));
        named.chain(queried).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// A value with everything replaced that differs from run to run.
    pub(super) fn named(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(members) => {
                members.iter().map(|(key, value)| (self.text(key), self.member(key, value))).collect()
            }
            Value::Array(items) => items.iter().map(|item| self.named(item)).collect(),
            Value::String(text) => Value::String(self.text(text)),
            other => other.clone(),
        }
    }

    pub(super) fn member(&mut self, key: &str, value: &Value) -> Value {
        match (key, value) {
            ("previewExpiresInSeconds" | "videoExpiresInSeconds", Value::Number(_)) => json!(900),
            ("nextCursor", Value::String(_)) => json!("NEXT_CURSOR"),
            // Of an upload link.
            ("id", Value::String(id)) if id.len() == 16 && id.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
                json!("0123456789abcdef")
            }
            // Of a participant.
            ("id", Value::String(id)) if id.len() == 22 => json!("Q0eUuGm1cfr3bqvxJxhVDw"),
            // Of `waitingFor`; that of a query is a revision.
            ("since", Value::String(time)) if time.len() == TIME.len() && time.ends_with('Z') => self.named(value),
            ("revision" | "baseRevision" | "currentRevision" | "canvasRevision" | "since", Value::String(revision)) => {
                let count = self.names.values().filter(|name| name.starts_with("rev-")).count();
                let name = self.names.entry(revision.clone()).or_insert_with(|| format!("rev-{:04}", count + 1));
                json!(name)
            }
            _ => self.named(value),
        }
    }

    pub(super) fn text(&mut self, text: &str) -> String {
        if text.len() == TIME.len() && text.as_bytes()[10] == b'T' && text.ends_with('Z') {
            return TIME.to_owned();
        }
        if is_slug(text) {
            return "~h4rb0r26".to_owned();
        }
        let mut text = text.to_owned();
        for (path, name) in [
            ("/assets/preview?token=", "PREVIEW_TOKEN"),
            ("/assets/video?token=", "VIDEO_TOKEN"),
            ("canvas.example.com/d/", "DOWNLOAD_SECRET"),
            ("canvas.example.com/u/", "UPLOAD_SECRET"),
        ] {
            if let Some((before, token)) = text.split_once(path) {
                let rest =
                    token.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric() || "-_%".contains(letter));
                text = format!("{before}{path}{name}{rest}");
            }
        }
        if let Some((before, _)) = text.split_once("/changes?since=") {
            text = format!("{before}/changes?since=BASE_REVISION");
        }
        for (value, name) in &self.names {
            text = text.replace(value, name);
        }
        // The ids that are left have not been seen before.
        let mut at = 0;
        while at < text.len() {
            let id = text.get(at..at + 36).filter(|id| Uuid::parse_str(id).is_ok()).map(str::to_owned);
            if let Some(id) = id.filter(|id| !id.starts_with(ID_BEGIN)) {
                let count = self.names.values().filter(|name| name.starts_with(ID_BEGIN)).count();
                let name = format!("{ID_BEGIN}-7000-8000-{:012}", count + 1);
                text = text.replace(&id, &name);
                self.names.insert(id, name);
            }
            at += 1;
        }
        text
    }

    pub(super) async fn now(&self, canvas: &str) -> Value {
        self.client.canvas(canvas).await["revision"].clone()
    }

    /// Compares with the committed file, or writes it.
    pub(super) fn compare(mut self) {
        // Internal failures cannot be requested. A gateway test checks that these bodies match its errors.
        for (name, code, message) in [
            ("InternalServerError", "internal_error", "the service failed; try again"),
            ("ServiceUnavailable", "service_unavailable", "the service is temporarily unable to answer; try again"),
            (
                "GatewayTimeout",
                "upstream_timeout",
                "a server that the request depends on takes too long; the same idempotency key resumes the request",
            ),
        ] {
            let body = json!({"error": {"code": code, "message": message}});
            self.failures.insert(name.to_owned(), json!({"failure": body}));
        }
        let mut operations = Value::Object(self.operations);
        date(&mut operations, 0);
        // The data of an event is one line of text.
        let stream = &mut operations["followRun"]["responses"]["200"][ONLY]["text/event-stream"];
        *stream = json!(format!("event: run\ndata: {stream}\n\n"));
        let mut failures = Value::Object(self.failures);
        date(&mut failures, 0);
        let recorded =
            json!({"operations": operations, "failures": failures, "consoleFailures": self.console_failures});
        let recorded = serde_json::to_string_pretty(&recorded).expect("serializes") + "\n";
        if std::env::var_os("UPDATE_EXAMPLES").is_some() {
            std::fs::write(FILE, &recorded).expect("the examples can be written");
        }
        let committed = std::fs::read_to_string(FILE).expect("the examples are committed");
        let differs = committed.lines().zip(recorded.lines()).find(|(committed, recorded)| committed != recorded);
        assert!(
            committed == recorded,
            "the examples are stale: UPDATE_EXAMPLES=1 cargo nextest run -p canvas-e2e examples; first difference: {differs:?}"
        );
    }
}

/// Removes what readers of an example do not need: the review of an ended run, which is that of reviewCanvas, and further items of lists.
pub(super) fn shorten(value: &mut Value, is_list: bool) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| shorten(item, is_list)),
        Value::Object(members) => {
            let is_run = ["pollUrl", "findings"].iter().any(|member| members.contains_key(*member));
            if is_run && !members.contains_key("truncated") {
                members.remove("completionReview");
            }
            for (key, member) in members.iter_mut() {
                let most = match key.as_str() {
                    "parameters" | "inputs" | "outputs" | "capabilities" if is_list => 1,
                    "parameters" => 2,
                    "options" | "activity" => 1,
                    _ => usize::MAX,
                };
                if let Value::Array(items) = member {
                    items.truncate(most);
                }
                shorten(member, is_list);
            }
        }
        _ => {}
    }
}

/// Milliseconds from a start to its first step and to its end.
const BEGUN: i64 = 350;
const ENDED: i64 = 2350;

/// Replaces times and durations by plausible ones that are the same in every recording: canvas times are derived from the
/// revision, Element times from the version, and times of work from the number in its id. `at` is the time of the enclosing object.
fn date(value: &mut Value, at: i64) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| date(item, at)),
        Value::Object(members) => {
            let at = moment(members).unwrap_or(at);
            let is_over =
                matches!(members.get("status").and_then(Value::as_str), Some("succeeded" | "failed" | "canceled"));
            // A canvas and an Element are older than their present state.
            let first = match members.keys().find(|key| matches!(key.as_str(), "lifecycle" | "nodes" | "nodeCount")) {
                Some(key) if key == "lifecycle" => 600_000,
                Some(_) => 10_000,
                None => at,
            };
            let is_event = members.contains_key("apiVersion");
            for (key, member) in members.iter_mut() {
                match (key.as_str(), member.as_str()) {
                    ("queueDurationMs", _) => *member = json!(BEGUN),
                    ("executionDurationMs", _) => *member = json!(ENDED - BEGUN),
                    ("totalDurationMs" | "durationMs", _) => *member = json!(ENDED),
                    (key, Some(TIME)) => {
                        let after = match key {
                            "createdAt" if is_event => ENDED,
                            "createdAt" => first - at,
                            "startedAt" => BEGUN,
                            "completedAt" | "canceledAt" => ENDED,
                            "updatedAt" if is_over => ENDED,
                            "lastAttemptAt" => ENDED + 60,
                            "deliveredAt" => ENDED + 85,
                            _ => 0,
                        };
                        *member = json!(instant(at + after));
                    }
                    _ => date(member, at),
                }
            }
        }
        _ => {}
    }
}

/// The creation time of a record, in milliseconds from the start of the examples. `None`: it has no revision, version or numbered id.
fn moment(members: &Map<String, Value>) -> Option<i64> {
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    if let Some(number) = text("revision").and_then(|revision| revision.strip_prefix("rev-")) {
        return Some(10_000 * number.parse::<i64>().ok()?);
    }
    if let (Some(_), Some(version)) = (text("versionHandle"), members.get("version").and_then(Value::as_i64)) {
        return Some(600_000 * version);
    }
    if members.contains_key("apiVersion") {
        return moment(members.get("data")?.get("run")?.as_object()?);
    }
    let is_work = ["timing", "progress", "shots", "standIn"].iter().any(|member| members.contains_key(*member));
    let id = text("id").filter(|_| is_work)?;
    Some(60_000 * id.rsplit('-').next()?.parse::<i64>().ok()?)
}

/// An instant of the day of the examples.
fn instant(millis: i64) -> String {
    let (seconds, millis) = (millis / 1000 + 9 * 3600 + 30 * 60, millis % 1000);
    format!("2026-01-15T{:02}:{:02}:{:02}.{millis:03}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
