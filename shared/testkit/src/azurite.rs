//! A server of Azure Blob Storage for tests: Azurite, installed from npm by `tests/azurite/run`. Each test
//! makes its own containers.

use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::environment::{free_ports, unique};
use crate::wait_for;

/// Installs the server if it is missing, then executes it.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/azurite/run");
/// Allows for the installation on a busy machine.
const STARTING: Duration = Duration::from_secs(280);
/// The account that every Azurite has, and its key, which is public.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const VERSION: &str = "2021-12-02";

/// The server, on a loopback port. It keeps everything in memory and ends when it is dropped.
pub struct Azurite {
    child: Child,
    port: u16,
}

impl Azurite {
    /// Starts a server and waits until it answers.
    pub async fn start() -> Self {
        let port = free_ports(1)[0];
        let child = Command::new(SCRIPT)
            .args(["serve", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {SCRIPT}: {error}"));
        let mut server = Self { child, port };
        wait_for("Azurite (tests/azurite/run serve)", STARTING, async || {
            if let Ok(Some(status)) = server.child.try_wait() {
                panic!("tests/azurite/run ended with {status}");
            }
            server.request("GET", "", &[("comp", "list")]).await.map(drop)
        })
        .await;
        server
    }

    /// The environment variables that an operator sets for this server.
    pub fn environment(&self) -> [(&'static str, String); 4] {
        [
            ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT.to_owned()),
            ("AZURE_STORAGE_ACCOUNT_KEY", KEY.to_owned()),
            ("AZURE_STORAGE_ENDPOINT", format!("http://127.0.0.1:{}/{ACCOUNT}", self.port)),
            ("AZURE_ALLOW_HTTP", "true".to_owned()),
        ]
    }

    /// Makes a container with a unique name, and returns the name.
    pub async fn make_container(&self) -> String {
        let name = format!("test-{}", unique());
        self.ask("PUT", &name, &[("restype", "container")]).await;
        name
    }

    /// Deletes a container.
    pub async fn delete_container(&self, name: &str) {
        self.ask("DELETE", name, &[("restype", "container")]).await;
    }

    /// The names of all blobs of a container. Blocks that no blob consists of are not listed.
    pub async fn blobs(&self, container: &str) -> Vec<String> {
        let listing = self.ask("GET", container, &[("comp", "list"), ("restype", "container")]).await;
        let after = listing.split("<Name>").skip(1);
        after.filter_map(|rest| rest.split("</Name>").next()).map(str::to_owned).collect()
    }

    async fn ask(&self, method: &str, container: &str, query: &[(&str, &str)]) -> String {
        let answer = self.request(method, container, query).await.expect("Azurite answers");
        let status = answer.split(' ').nth(1).unwrap_or_default();
        assert!(status.starts_with('2'), "{method} {container}: {answer}");
        answer
    }

    /// Sends one request, signed with the key of the account, and returns the head and the body of the answer, or `None` if the
    /// connection fails. The parameters of the query must be sorted.
    async fn request(&self, method: &str, container: &str, query: &[(&str, &str)]) -> Option<String> {
        let date = Command::new("date").args(["-u", "+%a, %d %b %Y %H:%M:%S GMT"]).env("LC_ALL", "C").output();
        let date = String::from_utf8(date.expect("runs date").stdout).expect("prints UTF-8");
        let date = date.trim();
        let path = format!("/{ACCOUNT}/{container}");
        let canonical: String = query.iter().map(|(name, value)| format!("\n{name}:{value}")).collect();
        let text = format!(
            "{method}\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:{VERSION}\n/{ACCOUNT}{path}{canonical}"
        );
        let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(KEY).expect("is base64")).expect("any length");
        mac.update(text.as_bytes());
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        let parameters: Vec<String> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let (port, parameters) = (self.port, parameters.join("&"));
        let request = format!(
            "{method} {path}?{parameters} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nContent-Length: 0\r\n\
             x-ms-date: {date}\r\nx-ms-version: {VERSION}\r\nAuthorization: SharedKey {ACCOUNT}:{signature}\r\n\r\n"
        );
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.ok()?;
        connection.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.ok()?;
        Some(answer)
    }
}

impl Drop for Azurite {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
