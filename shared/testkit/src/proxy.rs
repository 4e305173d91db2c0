//! A TCP proxy on loopback that simulates network failures in front of any service.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

/// How the proxy treats traffic at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    Flowing,
    Delayed(Duration),
    Dripping(Duration),
    Refusing(&'static str),
    Swallowing(&'static str),
    Paused,
    Cut,
}

/// The client sent the text that is to be refused.
struct Refused;

#[derive(Clone, Copy)]
struct State {
    traffic: Traffic,
    /// Connections of an earlier generation are reset.
    generation: u64,
}

/// The proxy. It forwards everything until a test requests a failure. Dropping it ends its
/// connections.
pub struct Proxy {
    address: SocketAddr,
    upstream: Url,
    state: Arc<watch::Sender<State>>,
    _stop: DropGuard,
}

impl Proxy {
    /// Listens on a free port of 127.0.0.1, in front of the host and port of `upstream`, a URL such
    /// as `redis://user:password@host:port/0`.
    pub async fn in_front_of(upstream: &str) -> Self {
        let upstream: Url = upstream.parse().unwrap_or_else(|error| panic!("invalid URL: {error}"));
        let target = match (upstream.host_str(), upstream.port_or_known_default()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            _ => panic!("the upstream URL needs a host and a port"),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds a free port of loopback");
        let address = listener.local_addr().expect("has an address");
        let state = Arc::new(watch::Sender::new(State { traffic: Traffic::Flowing, generation: 0 }));
        let stop = CancellationToken::new();
        let serving = serve(listener, target, state.clone(), stop.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(serving));
        Self { address, upstream, state, _stop: stop.drop_guard() }
    }

    /// The address that the proxy listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the service with the proxy's host and port instead of its own.
    pub fn url(&self) -> String {
        let mut url = self.upstream.clone();
        url.set_ip_host(self.address.ip()).expect("the URL has a host");
        url.set_port(Some(self.address.port())).expect("the URL has a host");
        url.into()
    }

    /// Forwards everything; paused connections continue.
    pub fn resume(&self) {
        self.set(Traffic::Flowing);
    }

    /// Resets every connection, and every new one until [`resume`](Self::resume) is called.
    pub fn cut(&self) {
        self.set(Traffic::Cut);
        self.reset();
    }

    /// Resets every current connection. New ones are forwarded.
    pub fn reset(&self) {
        self.state.send_modify(|state| state.generation += 1);
    }

    /// Keeps connections open and accepts new ones, but forwards no byte in either direction.
    pub fn pause(&self) {
        self.set(Traffic::Paused);
    }

    /// Delays every read of up to 16 KiB by `delay`.
    pub fn delay(&self, delay: Duration) {
        self.set(Traffic::Delayed(delay));
    }

    /// Forwards one byte per `interval` in each direction.
    pub fn drip(&self, interval: Duration) {
        self.set(Traffic::Dripping(interval));
    }

    /// From now on, resets every connection on which a client sends `words`, before they are
    /// forwarded. Everything else is forwarded. `words` must arrive in one read, such as a part of
    /// the head of an HTTP request.
    pub fn refuse(&self, words: &'static str) {
        self.set(Traffic::Refusing(words));
    }

    /// From now on, discards `words` and everything after them on each connection on which a client
    /// sends them. The connection stays open, even after the traffic mode changes. Everything else
    /// is forwarded.
    pub fn swallow(&self, words: &'static str) {
        self.set(Traffic::Swallowing(words));
    }

    fn set(&self, traffic: Traffic) {
        self.state.send_modify(|state| state.traffic = traffic);
    }
}

async fn serve(listener: TcpListener, target: String, state: Arc<watch::Sender<State>>, stop: CancellationToken) {
    loop {
        let (client, _) = listener.accept().await.expect("accepts");
        let connection = pass(client, target.clone(), state.subscribe());
        tokio::spawn(stop.clone().run_until_cancelled_owned(connection));
    }
}

/// Forwards bytes between a client and the service until either closes both directions or the
/// connection is reset.
async fn pass(mut client: TcpStream, target: String, mut state: watch::Receiver<State>) {
    let State { traffic, generation } = *state.borrow();
    if traffic == Traffic::Cut {
        let _ = client.set_zero_linger();
        return;
    }
    let Ok(mut service) = TcpStream::connect(&target).await else { return };
    let _ = (client.set_nodelay(true), service.set_nodelay(true));
    let broken = {
        let (from_client, to_client) = client.split();
        let (from_service, to_service) = service.split();
        let up = carry(from_client, to_service, state.clone(), true);
        let down = carry(from_service, to_client, state.clone(), false);
        tokio::select! {
            ended = async { tokio::try_join!(up, down) } => ended.is_err(),
            _ = state.wait_for(|now| now.generation != generation) => true,
        }
    };
    if broken {
        // Closing with linger zero sends a reset. An orderly close must not, because a reset
        // discards data in flight.
        let _ = (client.set_zero_linger(), service.set_zero_linger());
    }
}

/// Forwards one direction until its end, and forwards the end of input too. `is_up` marks the
/// direction from the client.
async fn carry(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    mut state: watch::Receiver<State>,
    is_up: bool,
) -> Result<(), Refused> {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let mut rest = &buffer[..read];
        while !rest.is_empty() {
            let now = state.wait_for(|now| now.traffic != Traffic::Paused).await.map(|now| *now);
            let Ok(now) = now else { return Ok(()) };
            let (piece, pause) = match now.traffic {
                Traffic::Dripping(interval) => (1, interval),
                Traffic::Delayed(delay) => (rest.len(), delay),
                Traffic::Refusing(words) if is_up && says(rest, words) => return Err(Refused),
                Traffic::Swallowing(words) if is_up && says(rest, words) => std::future::pending().await,
                Traffic::Flowing | Traffic::Refusing(_) | Traffic::Swallowing(_) | Traffic::Paused | Traffic::Cut => {
                    (rest.len(), Duration::ZERO)
                }
            };
            tokio::time::sleep(pause).await;
            if to.write_all(&rest[..piece]).await.is_err() {
                return Ok(());
            }
            rest = &rest[piece..];
        }
    }
    let _ = to.shutdown().await;
    Ok(())
}

fn says(bytes: &[u8], words: &str) -> bool {
    bytes.windows(words.len()).any(|window| window == words.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);
    /// How long a test waits to conclude that nothing arrives.
    const SILENCE: Duration = Duration::from_millis(100);

    async fn echo() -> (Proxy, DropGuard) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let url = format!("echo://{}/", listener.local_addr().expect("has an address"));
        let stop = CancellationToken::new();
        tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        }));
        (Proxy::in_front_of(&url).await, stop.drop_guard())
    }

    async fn exchange(stream: &mut TcpStream, text: &[u8]) -> std::io::Result<()> {
        stream.write_all(text).await?;
        let mut back = vec![0; text.len()];
        tokio::time::timeout(LIMIT, stream.read_exact(&mut back)).await.expect("answers in time")?;
        assert_eq!(back, text);
        Ok(())
    }

    #[tokio::test]
    async fn everything_passes_at_first_and_the_end_of_input_too() {
        let (proxy, _service) = echo().await;
        let mut stream = TcpStream::connect(proxy.address()).await.expect("connects");
        exchange(&mut stream, &[7; 100_000]).await.expect("passes");
        stream.shutdown().await.expect("ends");
        assert_eq!(stream.read(&mut [0]).await.expect("ends too"), 0);
    }

    #[tokio::test]
    async fn a_cut_resets_old_and_new_connections_until_the_network_resumes() {
        let (proxy, _service) = echo().await;
        let mut stream = TcpStream::connect(proxy.address()).await.expect("connects");
        exchange(&mut stream, b"before").await.expect("passes");
        proxy.cut();
        assert!(exchange(&mut stream, b"after").await.is_err());
        let mut fresh = TcpStream::connect(proxy.address()).await.expect("is accepted");
        assert!(exchange(&mut fresh, b"fresh").await.is_err());
        proxy.resume();
        let mut fresh = TcpStream::connect(proxy.address()).await.expect("connects");
        exchange(&mut fresh, b"again").await.expect("passes");
    }

    #[tokio::test]
    async fn a_reset_spares_new_connections() {
        let (proxy, _service) = echo().await;
        let mut stream = TcpStream::connect(proxy.address()).await.expect("connects");
        exchange(&mut stream, b"before").await.expect("passes");
        proxy.reset();
        assert!(exchange(&mut stream, b"after").await.is_err());
        let mut fresh = TcpStream::connect(proxy.address()).await.expect("connects");
        exchange(&mut fresh, b"fresh").await.expect("passes");
    }

    #[tokio::test]
    async fn what_is_refused_resets_its_connection_and_no_other_until_the_network_resumes() {
        let (proxy, _service) = echo().await;
        let (mut one, mut other) = (
            TcpStream::connect(proxy.address()).await.expect("connects"),
            TcpStream::connect(proxy.address()).await.expect("connects"),
        );
        exchange(&mut one, b"part=2").await.expect("passes");
        proxy.refuse("part=2");
        exchange(&mut one, b"part=1").await.expect("passes");
        assert!(exchange(&mut one, b"GET part=2").await.is_err());
        exchange(&mut other, b"part=3").await.expect("passes");
        proxy.resume();
        exchange(&mut other, b"part=2").await.expect("passes again");
    }

    #[tokio::test]
    async fn a_paused_connection_goes_on_where_it_was() {
        let (proxy, _service) = echo().await;
        let mut stream = TcpStream::connect(proxy.address()).await.expect("connects");
        proxy.pause();
        stream.write_all(b"held").await.expect("is taken");
        let mut back = [0; 4];
        assert!(tokio::time::timeout(SILENCE, stream.read_exact(&mut back)).await.is_err());
        proxy.resume();
        tokio::time::timeout(LIMIT, stream.read_exact(&mut back)).await.expect("in time").expect("passes");
        assert_eq!(&back, b"held");
    }

    #[tokio::test]
    async fn a_slow_network_passes_everything_in_the_end() {
        let (proxy, _service) = echo().await;
        let mut stream = TcpStream::connect(proxy.address()).await.expect("connects");
        proxy.drip(Duration::from_millis(2));
        exchange(&mut stream, b"byte by byte").await.expect("passes");
        proxy.delay(Duration::from_millis(20));
        let start = std::time::Instant::now();
        exchange(&mut stream, b"late").await.expect("passes");
        assert!(start.elapsed() >= Duration::from_millis(40), "delayed both ways");
    }

    #[tokio::test]
    async fn its_url_keeps_everything_but_host_and_port() {
        let proxy = Proxy::in_front_of("redis://user:secret@127.0.0.1:1/0?a=b").await;
        assert_eq!(proxy.url(), format!("redis://user:secret@127.0.0.1:{}/0?a=b", proxy.address().port()));
    }
}
