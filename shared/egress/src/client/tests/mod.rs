//! Tests with real HTTPS receivers on the loopback interface and scripted name resolution.

mod receiver;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::{BoxFuture, FutureExt};
use service::account;
use service::shares::Key;
use tokio::net::TcpListener;

use self::receiver::{Receiver, Reply};
use super::*;
use crate::{AllowList, UrlRefusal};

/// Long enough for a loaded machine. No test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(20);

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Another address of this machine, which the receivers do not use.
const OTHER_LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
/// A public address; these tests never connect to it.
const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(8, 8, 8, 8));

/// Answers lookups from a script, the last answer forever.
struct Script {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    lookups: AtomicUsize,
}

impl Script {
    fn new<const N: usize>(answers: [&[IpAddr]; N]) -> Arc<Self> {
        let answers = answers.into_iter().map(<[_]>::to_vec).collect();
        Arc::new(Self { answers: Mutex::new(answers), lookups: AtomicUsize::new(0) })
    }
}

impl Lookup for Script {
    fn lookup(&self, _name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        let answer = answer.ok_or_else(|| io::Error::other("no such name"));
        async move { answer }.boxed()
    }
}

/// Records on whose behalf names are looked up, and resolves none.
#[derive(Default)]
struct Noting(Mutex<Vec<Key>>);

impl Lookup for Noting {
    fn lookup(&self, _name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        self.0.lock().unwrap().push(account::key());
        async { Err(io::Error::other("no such name")) }.boxed()
    }
}

#[tokio::test]
async fn the_resolver_knows_on_whose_behalf_a_call_is_made() {
    let receiver = Receiver::start(reply("200 OK", "")).await;
    let noting = Arc::new(Noting::default());
    let client = Client::with_lookup(config(&receiver, ""), Arc::clone(&noting) as Arc<dyn Lookup>).unwrap();
    account::on_behalf_of("alice", client.send(call("a.example", 443))).await.unwrap_err();
    client.send(call("a.example", 443)).await.unwrap_err();
    assert_eq!(*noting.0.lock().unwrap(), [Key::account("alice"), account::key()]);
}

fn config(receiver: &Receiver, allow: &str) -> ClientConfig {
    ClientConfig {
        guard: Guard::new(AllowList::parse(allow).unwrap()),
        extra_ca_pem: Some(receiver.ca_pem.clone().into_bytes()),
    }
}

fn scripted(receiver: &Receiver, allow: &str, script: &Arc<Script>) -> Client {
    Client::with_lookup(config(receiver, allow), Arc::clone(script) as Arc<dyn Lookup>).unwrap()
}

/// A client that reaches the receiver through `127.0.0.1:port`, without a lookup.
fn client(receiver: &Receiver) -> Client {
    Client::new(config(receiver, &format!("127.0.0.1:{}", receiver.port))).unwrap()
}

fn call(host: &str, port: u16) -> Outbound {
    Outbound {
        method: Method::POST,
        url: Url::parse(&format!("https://{host}:{port}/hook?x=1")).unwrap(),
        headers: HeaderMap::from_iter([(
            http::header::USER_AGENT,
            http::HeaderValue::from_static("Canvas-Webhooks/1.0"),
        )]),
        body: Bytes::from_static(b"{\"id\":1}"),
        deadline: PATIENCE,
        response_limit: 64 * 1024,
    }
}

fn reply(head: &str, body: &str) -> Reply {
    Reply::Once(format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
}

#[tokio::test]
async fn a_call_arrives_whole_and_its_answer_comes_back() {
    let receiver = Receiver::start(reply("201 Created\r\nx-id: 7", "thanks")).await;
    let answer = client(&receiver).send(call("127.0.0.1", receiver.port)).await.unwrap();
    assert_eq!(answer.status, StatusCode::CREATED);
    assert_eq!(answer.headers["x-id"], "7");
    assert_eq!(&answer.body[..], b"thanks");
    assert!(!answer.truncated);

    let request = receiver.requests().remove(0);
    assert!(request.starts_with("POST /hook?x=1 HTTP/1.1\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\n{\"id\":1}"), "{request}");
    let request = request.to_ascii_lowercase();
    assert!(request.contains("user-agent: canvas-webhooks/1.0\r\n"), "{request}");
    for header in ["accept-encoding", "cookie", "referer"] {
        assert!(!request.contains(header), "{request}");
    }
}

#[tokio::test]
async fn a_target_listed_by_name_is_reached_through_the_systems_resolver() {
    let receiver = Receiver::start(reply("200 OK", "")).await;
    let client = Client::new(config(&receiver, &format!("localhost:{}", receiver.port))).unwrap();
    let answer = client.send(call("localhost", receiver.port)).await.unwrap();
    assert_eq!(answer.status, StatusCode::OK);
}

#[tokio::test]
async fn a_listed_block_admits_literals_and_names_that_resolve_into_it() {
    let receiver = Receiver::start(reply("200 OK", "")).await;
    let script = Script::new([&[LOOPBACK]]);
    let client = scripted(&receiver, "127.0.0.1/32", &script);
    assert!(client.send(call("127.0.0.1", receiver.port)).await.is_ok());
    assert_eq!(script.lookups.load(Ordering::SeqCst), 0, "literals skip the resolver");
    assert!(client.send(call("hooks.example.com", receiver.port)).await.is_ok());
    assert_eq!(script.lookups.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_redirect_is_returned_and_not_followed() {
    let target = Receiver::start(reply("200 OK", "")).await;
    let location = format!("https://127.0.0.1:{}/", target.port);
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"] {
        let receiver = Receiver::start(reply(&format!("{status}\r\nlocation: {location}"), "")).await;
        let answer = client(&receiver).send(call("127.0.0.1", receiver.port)).await.unwrap();
        assert!(answer.status.is_redirection());
        assert_eq!(answer.headers["location"], location.as_str());
        assert_eq!(receiver.requests().len(), 1);
    }
    assert_eq!(target.accepted(), 0);
}

#[tokio::test]
async fn a_body_is_kept_to_the_limit_and_cut_beyond_it() {
    for (limit, body, truncated) in
        [(5, "1234", false), (5, "12345", false), (5, "12345", true), (0, "", false), (0, "", true)]
    {
        let sent = if truncated { format!("{body}6") } else { body.to_owned() };
        let receiver = Receiver::start(reply("200 OK", &sent)).await;
        let call = Outbound { response_limit: limit, ..call("127.0.0.1", receiver.port) };
        let answer = client(&receiver).send(call).await.unwrap();
        assert_eq!((&answer.body[..], answer.truncated), (body.as_bytes(), truncated));
    }
}

#[tokio::test]
async fn an_endless_body_is_cut_at_the_limit_and_its_connection_dropped() {
    let receiver = Receiver::start(Reply::Endless).await;
    let client = client(&receiver);
    let answer = client.send(call("127.0.0.1", receiver.port)).await.unwrap();
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.body.len(), 64 * 1024);
    assert!(answer.truncated);
    tokio::time::timeout(PATIENCE, receiver.hung_up()).await.expect("the receiver sees the connection go");
}

#[tokio::test]
async fn the_deadline_covers_headers_and_body() {
    for slow in [Reply::Silent, Reply::Drip] {
        let receiver = Receiver::start(slow).await;
        let call = Outbound { deadline: Duration::from_millis(500), ..call("127.0.0.1", receiver.port) };
        let client = client(&receiver);
        let error = client.send(call).await.unwrap_err();
        assert!(matches!(error, SendError::Timeout), "{error:?}");
        assert!(!error.is_before_send());
        assert_eq!(receiver.requests().len(), 1, "it was the answer that was late");
        tokio::time::timeout(PATIENCE, receiver.hung_up()).await.expect("the receiver sees the connection go");
    }
}

#[tokio::test]
async fn the_deadline_covers_lookup_and_handshake() {
    struct Never;
    impl Lookup for Never {
        fn lookup(&self, _name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            std::future::pending().boxed()
        }
    }
    let receiver = Receiver::start(Reply::Silent).await;
    let client = Client::with_lookup(config(&receiver, ""), Arc::new(Never)).unwrap();
    let late = Outbound { deadline: Duration::from_millis(50), ..call("hooks.example.com", receiver.port) };
    assert!(matches!(client.send(late).await, Err(SendError::Timeout)));

    let mute = TcpListener::bind((LOOPBACK, 0)).await.unwrap(); // connects by its backlog, never says a word
    let port = mute.local_addr().unwrap().port();
    let client = scripted(&receiver, "127.0.0.1/32", &Script::new([&[LOOPBACK]]));
    let late = Outbound { deadline: Duration::from_millis(200), ..call("hooks.example.com", port) };
    assert!(matches!(client.send(late).await, Err(SendError::Timeout)));
}

#[tokio::test]
async fn a_name_with_any_address_that_is_not_public_is_refused_before_a_connection() {
    let receiver = Receiver::start(reply("200 OK", "")).await;
    let mapped = IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped());
    for answer in [&[LOOPBACK][..], &[mapped], &[PUBLIC, LOOPBACK], &[LOOPBACK, PUBLIC], &[PUBLIC, PUBLIC, mapped]] {
        let client = scripted(&receiver, "", &Script::new([answer]));
        let error = client.send(call("hooks.example.com", receiver.port)).await.unwrap_err();
        assert!(matches!(error, SendError::AddressRefused), "{answer:?}: {error:?}");
        assert!(error.is_before_send());
        assert!(!format!("{error} {error:?}").contains("127.0.0.1"));
    }
    assert_eq!(receiver.accepted(), 0);
}

#[tokio::test]
async fn a_name_that_changes_its_answer_gains_nothing() {
    let receiver = Receiver::start(reply("200 OK\r\nconnection: close", "")).await;
    let script = Script::new([&[LOOPBACK], &[OTHER_LOOPBACK]]);
    let client = scripted(&receiver, "127.0.0.1/32", &script);
    // The checked answer is the one that is connected to; there is no second lookup.
    assert!(client.send(call("hooks.example.com", receiver.port)).await.is_ok());
    assert_eq!(script.lookups.load(Ordering::SeqCst), 1);
    // The next connect checks its own answer.
    let error = client.send(call("hooks.example.com", receiver.port)).await.unwrap_err();
    assert!(matches!(error, SendError::AddressRefused), "{error:?}");
    assert_eq!(script.lookups.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_listed_target_lends_nothing_to_another_port_of_its_name() {
    let receiver = Receiver::start(reply("200 OK", "")).await;
    let other = Receiver::start(reply("200 OK", "")).await;
    let allow = format!("hooks.example.com:{}", receiver.port);
    let client = scripted(&receiver, &allow, &Script::new([&[LOOPBACK]]));
    assert!(client.send(call("hooks.example.com", receiver.port)).await.is_ok());
    let error = client.send(call("hooks.example.com", other.port)).await.unwrap_err();
    assert!(matches!(error, SendError::AddressRefused), "{error:?}");
    assert_eq!(other.accepted(), 0);
}

#[tokio::test]
async fn a_url_is_judged_again_when_it_is_sent() {
    let receiver = Receiver::start(reply("200 OK", "")).await;
    let script = Script::new([&[LOOPBACK]]);
    let client = scripted(&receiver, "", &script);
    for (text, refusal) in [
        (format!("https://127.0.0.1:{}/", receiver.port), UrlRefusal::NotPublic),
        (format!("https://[::1]:{}/", receiver.port), UrlRefusal::NotPublic),
        (format!("https://localhost:{}/", receiver.port), UrlRefusal::NotPublic),
        (format!("http://hooks.example.com:{}/", receiver.port), UrlRefusal::Scheme),
        ("https://a:b@hooks.example.com/".to_owned(), UrlRefusal::UserInfo),
    ] {
        let call = Outbound { url: Url::parse(&text).unwrap(), ..call("hooks.example.com", 1) };
        let error = client.send(call).await.unwrap_err();
        assert!(matches!(error, SendError::Refused(it) if it == refusal), "{text}: {error:?}");
        assert!(error.is_before_send());
    }
    assert_eq!((script.lookups.load(Ordering::SeqCst), receiver.accepted()), (0, 0));
}

#[tokio::test]
async fn an_absolute_name_is_verified_without_its_dot() {
    let receiver = Receiver::start(reply("200 OK", "")).await;
    let client = scripted(&receiver, "127.0.0.1/32", &Script::new([&[LOOPBACK]]));
    client.send(call("hooks.example.com.", receiver.port)).await.unwrap();
    assert!(
        receiver.requests()[0].to_ascii_lowercase().contains(&format!("host: hooks.example.com:{}\r\n", receiver.port))
    );
}

#[tokio::test]
async fn a_name_without_an_answer_is_a_dns_error_before_the_send() {
    let receiver = Receiver::start(reply("200 OK", "")).await;
    for script in [Script::new([]), Script::new([&[]])] {
        let error = scripted(&receiver, "", &script).send(call("hooks.example.com", 443)).await.unwrap_err();
        assert!(matches!(error, SendError::Dns(_)), "{error:?}");
        assert!(error.is_before_send());
    }
}

#[tokio::test]
async fn a_refused_connection_is_before_the_send() {
    let receiver = Receiver::start(reply("200 OK", "")).await;
    let closed = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let client = scripted(&receiver, "127.0.0.1/32", &Script::new([&[LOOPBACK]]));
    for host in ["hooks.example.com", "127.0.0.1"] {
        let error = client.send(call(host, port)).await.unwrap_err();
        assert!(matches!(error, SendError::Connect(_)), "{error:?}");
        assert!(error.is_before_send());
    }
}

#[tokio::test]
async fn a_failed_handshake_is_before_the_send() {
    let receiver = Receiver::start(reply("200 OK", "")).await;
    let script = Script::new([&[LOOPBACK]]);
    let wrong_name = scripted(&receiver, "127.0.0.1/32", &script).send(call("other.example.com", receiver.port)).await;
    let stranger = Receiver::start(reply("200 OK", "")).await;
    let wrong_root = scripted(&stranger, "127.0.0.1/32", &script).send(call("hooks.example.com", receiver.port)).await;
    let plain = Receiver::start(Reply::NotTls).await;
    let no_tls = scripted(&plain, "127.0.0.1/32", &script).send(call("hooks.example.com", plain.port)).await;
    let mute = Receiver::start(Reply::HangUpBeforeTls).await;
    let no_answer = scripted(&mute, "127.0.0.1/32", &script).send(call("hooks.example.com", mute.port)).await;
    for outcome in [wrong_name, wrong_root, no_tls, no_answer] {
        let error = outcome.unwrap_err();
        assert!(matches!(error, SendError::Tls(_)), "{error:?}");
        assert!(error.is_before_send());
    }
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn an_exchange_that_breaks_off_may_have_been_seen() {
    let receiver = Receiver::start(Reply::Once(String::new())).await;
    let error = client(&receiver).send(call("127.0.0.1", receiver.port)).await.unwrap_err();
    assert!(matches!(error, SendError::Protocol(_)), "{error:?}");
    assert!(!error.is_before_send());

    let receiver = Receiver::start(Reply::Once("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort".to_owned())).await;
    let error = client(&receiver).send(call("127.0.0.1", receiver.port)).await.unwrap_err();
    assert!(matches!(error, SendError::Body(_)), "{error:?}");
    assert!(!error.is_before_send());
}

#[tokio::test]
async fn an_opened_call_has_its_status_whatever_becomes_of_the_body() {
    let broken = "HTTP/1.1 302 Found\r\ncontent-length: 9\r\n\r\nshort".to_owned();
    for (reply, status) in [(Reply::Once(broken), 302), (Reply::Drip, 200), (Reply::Endless, 200)] {
        let goes_on = !matches!(reply, Reply::Once(_));
        let receiver = Receiver::start(reply).await;
        let client = client(&receiver);
        let short = Outbound { deadline: Duration::from_secs(2), ..call("127.0.0.1", receiver.port) };
        let opened = client.open_for(None, short).await.unwrap();
        assert_eq!(opened.status.as_u16(), status);
        opened.body.drain(64 * 1024).await;
        if goes_on {
            tokio::time::timeout(PATIENCE, receiver.hung_up()).await.expect("the receiver sees the connection go");
        }
    }
}

#[tokio::test]
async fn no_error_tells_the_url() {
    let receiver = Receiver::start(Reply::Once(String::new())).await;
    let failure = client(&receiver).send(call("127.0.0.1", receiver.port)).await.unwrap_err();
    let causes = std::iter::successors(Some(&failure as &dyn std::error::Error), |error| error.source());
    let texts: Vec<_> = causes.map(ToString::to_string).collect();
    assert!(texts.len() > 1, "{texts:?}");
    assert!(!texts.concat().contains("/hook"), "{texts:?}");
}

#[tokio::test]
async fn an_extra_ca_that_cannot_be_read_is_refused_at_the_start() {
    let build = |pem: &str| {
        Client::new(ClientConfig { guard: Guard::default(), extra_ca_pem: Some(pem.as_bytes().to_vec()) }).err()
    };
    assert!(matches!(build("").unwrap(), ClientError::ExtraCaEmpty));
    assert!(matches!(build("no PEM at all").unwrap(), ClientError::ExtraCaEmpty));
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(matches!(build(broken).unwrap(), ClientError::ExtraCa(_)));
    let cut = "-----BEGIN CERTIFICATE-----\nAAAA\n";
    assert!(matches!(build(cut).unwrap(), ClientError::ExtraCaPem(_)));
}

/// The environment of a running process cannot be changed safely, so the test runs itself again in a child process with the
/// variables set.
#[tokio::test]
async fn proxies_in_the_environment_are_ignored() {
    const CHILD: &str = "EGRESS_TEST_IN_CHILD";
    const NAME: &str = "client::tests::proxies_in_the_environment_are_ignored";
    if std::env::var_os(CHILD).is_some() {
        let receiver = Receiver::start(reply("200 OK", "")).await;
        let script = Script::new([&[LOOPBACK]]);
        let client = scripted(&receiver, "127.0.0.1/32", &script);
        client.send(call("hooks.example.com", receiver.port)).await.unwrap();
        assert_eq!(receiver.accepted(), 1);
        return;
    }
    let proxy = Receiver::start(Reply::HangUpBeforeTls).await;
    let address = format!("http://127.0.0.1:{}", proxy.port);
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", NAME]).env(CHILD, "1").env_remove("NO_PROXY").env_remove("no_proxy");
    for variable in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"] {
        child.env(variable, &address);
    }
    let output = child.output().await.unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}");
    assert_eq!(proxy.accepted(), 0);
}

/// A receiver of plain HTTP that answers 200 to one call.
async fn plain_receiver() -> u16 {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut tcp, _) = listener.accept().await.unwrap();
        let mut head = [0; 1024];
        let _ = tcp.read(&mut head).await;
        let _ = tcp.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok").await;
    });
    port
}

#[tokio::test]
async fn an_operators_host_is_called_over_plain_http_by_calls_made_for_it_alone() {
    let receiver = Receiver::start(Reply::Silent).await;
    let client = Client::new(config(&receiver, "")).unwrap();
    let port = plain_receiver().await;
    let url = Url::parse(&format!("http://127.0.0.1:{port}/v1")).unwrap();
    let host = crate::OperatorHost::from_url(&url).unwrap();
    let plain = || Outbound { url: url.clone(), ..call("127.0.0.1", port) };

    let refused = client.send(plain()).await.unwrap_err();
    assert!(matches!(refused, SendError::Refused(UrlRefusal::Scheme)), "{refused:?}");
    let stranger = crate::OperatorHost::from_url(&Url::parse("http://127.0.0.2/").unwrap()).unwrap();
    assert!(client.send_for(Some(&stranger), plain()).await.unwrap_err().is_before_send());
    let answer = client.send_for(Some(&host), plain()).await.unwrap();
    assert_eq!(answer.body, "ok");
}

#[tokio::test]
async fn a_host_is_asked_for_four_files_at_once() {
    let (receiver, other) = (Receiver::start(Reply::Silent).await, Receiver::start(reply("200 OK", "ok")).await);
    let config = ClientConfig {
        guard: Guard::new(AllowList::parse(&format!("127.0.0.1:{},127.0.0.1:{}", receiver.port, other.port)).unwrap()),
        extra_ca_pem: Some(format!("{}{}", receiver.ca_pem, other.ca_pem).into_bytes()),
    };
    let client = Client::new(config).unwrap();
    let wanted =
        crate::DownloadRequest { user_agent: "test", accept: "*/*", bytes_max: 9, referrer: None, allowance: None };
    let download = async |port: u16| {
        let url = Url::parse(&format!("https://127.0.0.1:{port}/a.png")).unwrap();
        client.download(&url, wanted, Instant::now() + PATIENCE).await
    };
    let downloads = futures_util::future::join_all((0..6).map(|_| download(receiver.port)));
    let all_wait = async {
        while client.downloads.waiting() < 2 || receiver.requests().len() < 4 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(download(other.port).await.unwrap().bytes, "ok", "another port is another host");
    };
    tokio::select! {
        _ = downloads => panic!("nothing is answered"),
        () = all_wait => {}
    }
    assert_eq!(receiver.requests().len(), 4);
    assert_eq!(client.downloads.held(), 0, "what is given up leaves its place");
}
