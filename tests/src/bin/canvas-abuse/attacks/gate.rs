//! Connections and heads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use e2e::{API_ROOT, Part};
use tokio::time::{Instant, sleep};

use crate::leftovers::{metrics, series};
use crate::scene::{Pace, Scene, address, crowd};
use crate::wire::{Line, Outcome, Wire, drip, get};

/// The time within which an incomplete head ends its connection, and some more because the machine is busy.
const HEAD_MAX: Duration = Duration::from_secs(15);
/// The pause before an attacker opens a connection again that was closed.
const REST: Duration = Duration::from_secs(10);
/// Connections of one address (docs/reference/limits.md), and as many more as may be on their way to be closed.
const OF_ADDRESS: usize = 256 + 64;

/// Requests with distinct methods of 30 KB. A method must not become the label of a metric or a long line of a log.
pub async fn methods(scene: &Scene) {
    const SERIES_MORE: usize = 20;
    const LOGGED: usize = 1024;
    let logged = || scene.stack.log(Part::GATEWAY).len();
    let (known, size, asked) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let attack = async {
        // The victims' requests have their series since the baseline.
        known.store(series(&metrics(&scene.stack).await), Ordering::Relaxed);
        size.store(logged(), Ordering::Relaxed);
        crowd(4, async |number| {
            let (mut line, mut pace) = (Line::new(address(number), scene.gateway()), Pace::new(50.0));
            loop {
                pace.wait().await;
                let method = format!("M{}{}", asked.fetch_add(1, Ordering::Relaxed), "X".repeat(30_000));
                let request = format!("{method} {API_ROOT}/canvases HTTP/1.1\r\nhost: abuse\r\n\r\n");
                scene.saw(line.ask(request.as_bytes()).await);
            }
        })
        .await;
    };
    scene.during(attack).await;
    let (after, asked) = (series(&metrics(&scene.stack).await), asked.into_inner());
    let more = after.saturating_sub(known.into_inner());
    let each = (logged() - size.into_inner()) / asked.max(1);
    scene.note(format!("{more} series more, {each} bytes of log for each request"));
    if more > SERIES_MORE {
        scene.fail(format!("{asked} methods made {more} series, more than {SERIES_MORE}"));
    }
    if each > LOGGED {
        scene.fail(format!("each request with a long method takes {each} bytes of the log, more than {LOGGED}"));
    }
}

/// Opens a connection, waits in silence until it is closed, and opens it again.
async fn silent(scene: &Scene, count: usize, addresses: usize, live: &AtomicUsize) {
    crowd(count, async |number| {
        // Not all in the same moment.
        sleep(Duration::from_millis(number as u64 / 4)).await;
        loop {
            match Wire::open(address(number % addresses), scene.gateway()).await {
                Err(_) => scene.saw(Outcome::Unreachable),
                Ok(mut wire) => {
                    live.fetch_add(1, Ordering::Relaxed);
                    // An answer that refuses the connection has a status, "HTTP/1.1 503".
                    let mut wait = 0;
                    let outcome = loop {
                        let read = wire.take(4096).await;
                        wait += read;
                        if read == 0 {
                            break if wait > 0 { Outcome::Status(503) } else { Outcome::Closed };
                        }
                    };
                    live.fetch_sub(1, Ordering::Relaxed);
                    scene.saw(outcome);
                }
            }
            sleep(REST).await;
        }
    })
    .await;
}

/// More silent sockets of one address than a gateway has connections.
pub async fn silent_address(scene: &Scene) {
    let live = AtomicUsize::new(0);
    let most = AtomicUsize::new(0);
    let watched = async {
        // While they are opened, some are accepted by the kernel only.
        sleep(Duration::from_secs(5)).await;
        loop {
            most.fetch_max(live.load(Ordering::Relaxed), Ordering::Relaxed);
            sleep(Duration::from_millis(200)).await;
        }
    };
    let attack = async { tokio::join!(silent(scene, 10_020, 1, &live), watched).0 };
    scene.during(attack).await;
    let most = most.into_inner();
    scene.note(format!("at most {most} silent connections of the address at once"));
    if most > OF_ADDRESS {
        scene.fail(format!("one address held {most} silent connections, more than {OF_ADDRESS}"));
    }
}

/// The same from 40 addresses.
pub async fn silent_addresses(scene: &Scene) {
    scene.during(silent(scene, 10_020, 40, &AtomicUsize::new(0))).await;
}

/// Heads of one byte a second.
pub async fn slow_heads(scene: &Scene) {
    let longest = std::sync::Mutex::new(Duration::ZERO);
    let head = format!("GET {API_ROOT}/canvases HTTP/1.1\r\nhost: abuse\r\nx-slow: ");
    let attack = crowd(256, async |_| {
        loop {
            let (outcome, took) =
                drip(address(0), scene.gateway(), head.as_bytes(), b"x", Duration::from_secs(1)).await;
            scene.saw(outcome);
            let mut longest = longest.lock().expect("no holder panics");
            *longest = took.max(*longest);
        }
    });
    scene.during(attack).await;
    let longest = longest.into_inner().expect("no holder panics");
    scene.note(format!("the slowest head was ended after {:.1} s", longest.as_secs_f64()));
    if longest > HEAD_MAX {
        scene.fail(format!("a head was ended after {longest:.1?}, later than {HEAD_MAX:?}"));
    }
}

/// Connections that idle after a request, 256 of each of 40 addresses.
pub async fn idle(scene: &Scene) {
    let request = b"GET /llms.txt HTTP/1.1\r\nhost: abuse\r\n\r\n";
    let attack = crowd(256 * 40, async |number| {
        sleep(Duration::from_millis(number as u64)).await;
        loop {
            match Wire::open(address(number % 40), scene.gateway()).await {
                Err(_) => scene.saw(Outcome::Unreachable),
                Ok(mut wire) => match wire.exchange(request).await {
                    Err(_) => scene.saw(Outcome::Closed),
                    Ok(answer) => {
                        scene.saw(Outcome::Status(answer.status));
                        while wire.take(64).await > 0 {}
                    }
                },
            }
            sleep(REST).await;
        }
    });
    scene.during(attack).await;
}

/// `X-Forwarded-For` of a peer that is no trusted proxy: its failed credentials count for the peer.
pub async fn forged_address(scene: &Scene) {
    let began = Instant::now();
    let attack = crowd(4, async |number| {
        let (mut line, mut pace) = (Line::new(address(0), scene.gateway()), Pace::new(10.0));
        let mut sent = 0;
        loop {
            pace.wait().await;
            sent += 1;
            let forged = format!("x-forwarded-for: 1.{number}.{}.{}\r\n", sent / 250, 1 + sent % 250);
            let request = get(&format!("{API_ROOT}/auth/status"), &super::rates::bad_token(), &forged);
            scene.saw(line.ask(&request).await);
        }
    });
    scene.during(attack).await;
    super::rates::judge_failures(scene, began.elapsed(), 1);
}

/// A hundred thousand entries in `X-Forwarded-For`, and as many as fit into a head, behind a trusted proxy.
pub async fn many_entries(scene: &Scene) {
    let request = |entries: usize| {
        let forged = format!("x-forwarded-for: {}203.0.113.9\r\n", "198.51.100.7, ".repeat(entries));
        get(&format!("{API_ROOT}/auth/status"), "", &forged)
    };
    let (most, fitting) = (request(100_000), request(2_000));
    let attack = crowd(8, async |number| {
        let mut line = Line::new(address(0), scene.gateway());
        loop {
            let request = if number % 2 == 0 { &most } else { &fitting };
            scene.saw(line.ask(request).await);
            sleep(Duration::from_millis(20)).await;
        }
    });
    scene.during(attack).await;
}
