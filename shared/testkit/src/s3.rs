//! A real S3 server for tests: moto's, installed from PyPI by `tests/s3`. Each test makes its own
//! buckets.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::environment::{free_ports, unique};
use crate::wait_for;

/// Creates the server's virtual environment if it is missing, then executes the server.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/s3");
/// Allows for the installation on a busy machine, if `tests/run` has not done it before.
const STARTING: Duration = Duration::from_secs(240);

/// The server, on a loopback port. It keeps everything in memory and ends when it is dropped.
pub struct S3 {
    child: Child,
    port: u16,
    /// The file in which the server records every request, for replay after a restart.
    recording: Option<PathBuf>,
}

impl S3 {
    /// Starts a server and waits until it answers.
    pub async fn start() -> Self {
        Self::start_on(free_ports(1)[0], None).await
    }

    /// Starts a server that can be [killed](Self::kill) and restarted with its objects. Objects of
    /// multipart uploads are lost, because the replayed upload has another id.
    pub async fn start_durable() -> Self {
        let recording = std::env::temp_dir().join(format!("canvas-s3-{}", unique()));
        Self::start_on(free_ports(1)[0], Some(recording)).await
    }

    async fn start_on(port: u16, recording: Option<PathBuf>) -> Self {
        let mut command = Command::new(SCRIPT);
        if let Some(file) = &recording {
            command.env("MOTO_ENABLE_RECORDING", "true").env("MOTO_RECORDER_FILEPATH", file);
        }
        let child = command
            .args(["serve", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {SCRIPT}: {error}"));
        let mut server = Self { child, port, recording };
        wait_for("the S3 server (tests/s3 serve)", STARTING, async || {
            if let Ok(Some(status)) = server.child.try_wait() {
                panic!("tests/s3 ended with {status}: {}", server.complaint());
            }
            server.request("GET", "/", "").await.map(drop)
        })
        .await;
        // Nothing reads the server's request log, and a full pipe would block it.
        drop(server.child.stderr.take());
        server
    }

    /// Kills the server without warning, whatever it is doing.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Restarts a durable server on the same port after [`kill`](Self::kill) and replays its
    /// requests. Nothing else may use it until this returns, because it has only part of its
    /// objects.
    pub async fn start_again(&mut self) {
        let recording = self.recording.take().expect("a server that was started as a durable one");
        *self = Self::start_on(self.port, Some(recording)).await;
        self.ask("POST", "/moto-api/recorder/replay-recording", "").await;
    }

    /// The URL `http://127.0.0.1:<port>`.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The environment variables that an operator sets for a server at `endpoint`, which is this
    /// one's or that of a proxy in front of it.
    pub fn environment(endpoint: &str) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT", endpoint.to_owned()),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
        ]
    }

    /// Makes a bucket with a unique name, and returns the name. It has letters and digits alone: the client of Google Cloud Storage
    /// encodes everything else, and moto does not decode names of buckets.
    pub async fn make_bucket(&self) -> String {
        let name = format!("test{}", unique());
        self.ask("PUT", &format!("/{name}"), "").await;
        name
    }

    /// Deletes an empty bucket.
    pub async fn delete_bucket(&self, name: &str) {
        self.ask("DELETE", &format!("/{name}"), "").await;
    }

    /// The keys of all objects of a bucket.
    pub async fn objects(&self, bucket: &str) -> Vec<String> {
        keys(&self.ask("GET", &format!("/{bucket}?list-type=2"), "").await)
    }

    /// The keys of the multipart uploads of a bucket that were neither completed nor aborted.
    pub async fn unfinished_uploads(&self, bucket: &str) -> Vec<String> {
        keys(&self.ask("GET", &format!("/{bucket}?uploads"), "").await)
    }

    /// From now on, every signature is checked and every key is unknown.
    pub async fn refuse_everybody(&self) {
        self.ask("POST", "/moto-api/reset-auth", "0").await;
    }

    async fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let answer = self.request(method, path, body).await.expect("the S3 server answers");
        let status = answer.split(' ').nth(1).unwrap_or_default();
        assert!(status.starts_with('2'), "{method} {path}: {answer}");
        answer
    }

    /// Sends one unsigned request and returns the head and the body of the answer, or `None` if the
    /// connection fails.
    async fn request(&self, method: &str, path: &str, body: &str) -> Option<String> {
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.ok()?;
        let (port, length) = (self.port, body.len());
        let head = format!("{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {length}\r\n");
        let request = format!("{head}\r\n{body}");
        connection.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.ok()?;
        Some(answer)
    }

    fn complaint(&mut self) -> String {
        self.child.stderr.take().and_then(|pipe| std::io::read_to_string(pipe).ok()).unwrap_or_default()
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.kill();
        if let Some(file) = &self.recording {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// The texts of all `Key` elements of a listing. Our keys need no XML escapes.
fn keys(listing: &str) -> Vec<String> {
    let after = listing.split("<Key>").skip(1);
    after.filter_map(|rest| rest.split("</Key>").next()).map(str::to_owned).collect()
}
