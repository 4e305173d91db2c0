//! Tests of a single delivery.

use std::time::{Duration, Instant};

use domain::webhook::{DeliveryError, DeliveryStatus};
use testkit::{Answer, Receiver, wait_for};
use webhook_dispatcher::{Backoff, Settings};

use crate::harness::{BODY, NEW_KEY, OLD_KEY, PATIENCE, SECRET, Setup, Site, TRACE};

#[tokio::test]
async fn an_event_arrives_once_whole_signed_and_traced() {
    let receiver = Receiver::start().await;
    let site = Site::new(&[&receiver]).await;
    let sent = site.send(&receiver.url("/in?key=1")).await;
    let _running = site.start(Setup::default());
    let state = site.ended(sent).await;
    assert_eq!((state.status, state.attempts, state.last_status), (DeliveryStatus::Delivered, 1, Some(200)));
    assert!(state.delivered_at.is_some() && state.next_attempt_at.is_none() && state.error_code.is_none());

    let requests = receiver.requests();
    assert_eq!(requests.len(), 1);
    let request = &requests[0];
    assert_eq!((request.method.as_str(), request.path.as_str(), &*request.body), ("POST", "/in?key=1", BODY));
    request.verify_signature(SECRET).expect("signed by the caller's secret");
    assert_eq!(request.header("service-webhook-id"), Ok(&*state.id));
    assert_eq!(request.header("content-type"), Ok("application/json"));
    assert_eq!(request.header("user-agent"), Ok("Canvas-Webhooks/1.0"));
    let age = service::clock::now().timestamp()
        - request.header("service-webhook-timestamp").expect("dated").parse::<i64>().expect("seconds");
    assert!((0..60).contains(&age), "{age} s old");
    let traceparent = request.header("traceparent").expect("traced");
    assert!(traceparent.starts_with(&format!("00-{TRACE}-")), "{traceparent}");
    assert_eq!(site.count("SELECT count(*) FROM task_queue").await, 0);
}

#[tokio::test]
async fn each_status_has_its_meaning() {
    let receiver = Receiver::start().await;
    let site = Site::new(&[&receiver]).await;
    receiver.answer_with(|request| match request.path[1..].parse() {
        Ok(307) => Answer::status(307).header("location", "/elsewhere"),
        Ok(status) => Answer::status(status),
        Err(_) => Answer::close(),
    });
    let _running = site.start(Setup::default());
    let rejected = (DeliveryStatus::Failed, Some(DeliveryError::EndpointRejected), 1);
    let redirected = (DeliveryStatus::Failed, Some(DeliveryError::RedirectNotAllowed), 1);
    let given_up = (DeliveryStatus::Failed, Some(DeliveryError::DeliveryFailed), 4);
    let expected = [
        ("200", (DeliveryStatus::Delivered, None, 1)),
        ("299", (DeliveryStatus::Delivered, None, 1)),
        ("307", redirected),
        ("304", redirected),
        ("400", rejected),
        ("404", rejected),
        ("410", rejected),
        ("408", given_up),
        ("425", given_up),
        ("429", given_up),
        ("500", given_up),
        ("503", given_up),
        ("hang-up", given_up),
    ];
    let mut sent = Vec::new();
    for (path, _) in expected {
        sent.push(site.send(&receiver.url(&format!("/{path}"))).await);
    }
    for ((path, expected), sent) in expected.into_iter().zip(sent) {
        let state = site.ended(sent).await;
        assert_eq!((state.status, state.error_code, state.attempts), expected, "{path}");
        assert_eq!(state.last_status, path.parse().ok(), "{path}");
        assert_eq!(state.delivered_at.is_some(), state.status == DeliveryStatus::Delivered, "{path}");
    }
    assert!(receiver.requests().iter().all(|request| request.path != "/elsewhere"), "a redirect was followed");
}

#[tokio::test]
async fn a_receiver_that_gives_no_status_in_time_is_tried_again() {
    let receiver = Receiver::start().await;
    let site = Site::new(&[&receiver]).await;
    receiver.answer(Answer::never());
    let sent = site.send(&receiver.url("/")).await;
    let deadline = Duration::from_millis(400);
    let _running =
        site.start(Setup { settings: Settings { deadline, backoff: Backoff::default() }, ..Setup::default() });
    let start = Instant::now();
    let state = wait_for("a recorded attempt", PATIENCE, async || {
        let state = site.state(sent).await;
        (state.status == DeliveryStatus::Pending && state.attempts == 1).then_some(state)
    })
    .await;
    assert!(start.elapsed() >= deadline);
    assert_eq!((state.last_status, state.error_code), (None, None));
    assert_eq!(site.count("SELECT count(*) FROM webhook_attempts WHERE error = 'timeout'").await, 1);
}

#[tokio::test]
async fn a_status_counts_whatever_becomes_of_the_body_behind_it() {
    const DRIP: Duration = Duration::from_millis(50);
    let receiver = Receiver::start().await;
    let site = Site::new(&[&receiver]).await;
    receiver.answer_with(|request| {
        let (status, body) = request.path[1..].split_once('/').expect("two segments");
        let answer = Answer::status(status.parse().expect("a status"));
        if body == "drips" { answer.dripping(DRIP) } else { answer.breaking_off() }
    });
    let _running = site.start(Setup::default());
    let expected = [
        (200, DeliveryStatus::Delivered, None, 1),
        (302, DeliveryStatus::Failed, Some(DeliveryError::RedirectNotAllowed), 1),
        (400, DeliveryStatus::Failed, Some(DeliveryError::EndpointRejected), 1),
        (503, DeliveryStatus::Failed, Some(DeliveryError::DeliveryFailed), 4),
    ];
    let mut sent = Vec::new();
    for (status, ..) in expected {
        for body in ["breaks-off", "drips"] {
            sent.push(site.send(&receiver.url(&format!("/{status}/{body}"))).await);
        }
    }
    for (index, sent) in sent.into_iter().enumerate() {
        let state = site.ended(sent).await;
        let (last, status, error, attempts) = expected[index / 2];
        assert_eq!((state.status, state.error_code, state.attempts), (status, error, attempts), "{last}");
        assert_eq!(state.last_status, Some(last), "{last}");
        assert_eq!(state.delivered_at.is_some(), status == DeliveryStatus::Delivered, "{last}");
    }
    assert_eq!(receiver.requests().len(), 2 * (1 + 1 + 1 + 4));
}

#[tokio::test]
async fn an_endless_acknowledgement_is_one_and_is_not_read_to_the_end() {
    let receiver = Receiver::start().await;
    let site = Site::new(&[&receiver]).await;
    receiver.answer(Answer::endless());
    let sent = site.send(&receiver.url("/")).await;
    let _running = site.start(Setup::default());
    let state = site.ended(sent).await;
    assert_eq!((state.status, state.attempts), (DeliveryStatus::Delivered, 1));
}

#[tokio::test]
async fn four_attempts_are_made_at_the_configured_times_with_the_same_event() {
    let receiver = Receiver::start().await;
    let site = Site::new(&[&receiver]).await;
    receiver.answer(Answer::status(503));
    let sent = site.send(&receiver.url("/")).await;
    let settings = Settings { backoff: Backoff::default(), ..Settings::default() };
    let _running = site.start(Setup { settings, ..Setup::default() });
    for (attempts, least) in [(1, 10.0), (2, 60.0), (3, 300.0)] {
        let state = wait_for("a pause", PATIENCE, async || {
            let state = site.state(sent).await;
            (state.status == DeliveryStatus::Pending && state.attempts == attempts).then_some(state)
        })
        .await;
        assert_eq!((state.last_status, state.error_code), (Some(503), None));
        assert!(state.next_attempt_at > state.last_attempt_at);
        let delay: f64 = sqlx::query_scalar(
            "SELECT extract(epoch FROM due_at - finished_at)::float8 FROM task_queue JOIN webhook_attempts ON delivery_id = id
             WHERE state = 'parked' ORDER BY number DESC LIMIT 1",
        )
        .fetch_one(site.pool())
        .await
        .expect("is rescheduled");
        assert!((least..=1.1 * least).contains(&delay), "{delay} s after attempt {attempts}");
        assert_eq!(receiver.requests().len(), usize::try_from(attempts).expect("small"), "no attempt before its time");
        sqlx::query("UPDATE task_queue SET due_at = now()").execute(site.pool()).await.expect("updates");
    }
    let state = site.ended(sent).await;
    assert_eq!((state.status, state.attempts), (DeliveryStatus::Failed, 4));
    assert_eq!(state.error_code, Some(DeliveryError::DeliveryFailed));
    let requests = receiver.requests();
    assert_eq!(requests.len(), 4);
    for request in requests {
        assert_eq!(request.body, BODY);
        assert_eq!(request.header("service-webhook-id"), Ok(&*state.id));
        request.verify_signature(SECRET).expect("signed afresh");
    }
}

#[tokio::test]
async fn a_replay_is_one_more_attempt_whatever_comes_of_it() {
    let receiver = Receiver::start().await;
    let site = Site::new(&[&receiver]).await;
    receiver.answer_in_turn(vec![Answer::status(410), Answer::status(503), Answer::status(200)]);
    let sent = site.send(&receiver.url("/")).await;
    let _running = site.start(Setup::default());
    assert_eq!(site.ended(sent).await.error_code, Some(DeliveryError::EndpointRejected));
    site.replay(sent).await;
    let state = site.ended(sent).await;
    assert_eq!((state.error_code, state.attempts), (Some(DeliveryError::DeliveryFailed), 1));
    site.replay(sent).await;
    let state = site.ended(sent).await;
    assert_eq!((state.status, state.error_code, state.attempts), (DeliveryStatus::Delivered, None, 1));
    let requests = receiver.requests();
    assert_eq!(requests.len(), 3);
    for request in requests {
        assert_eq!((request.header("service-webhook-id"), &*request.body), (Ok(&*state.id), BODY));
        request.verify_signature(SECRET).expect("signed afresh");
    }
    assert_eq!(site.count("SELECT count(*) FROM webhook_attempts WHERE replay").await, 2);
}

#[tokio::test]
async fn a_destination_that_is_not_public_ends_the_delivery() {
    let (receiver, private) = (Receiver::start().await, Receiver::start().await);
    let site = Site::new(&[&receiver]).await;
    let _running = site.start(Setup::default());
    for url in
        [private.url("/"), "https://10.0.0.1/".to_owned(), "https://printer.local/".to_owned(), "no url".to_owned()]
    {
        let sent = site.send(&url).await;
        let state = site.ended(sent).await;
        assert_eq!((state.error_code, state.last_status), (Some(DeliveryError::InvalidDestination), None), "{url}");
    }
    assert!(private.requests().is_empty());
}

#[tokio::test]
async fn a_secret_whose_key_is_gone_ends_the_delivery() {
    let receiver = Receiver::start().await;
    let site = Site::new(&[&receiver]).await;
    let sent = site.send_sealed(&receiver.url("/"), OLD_KEY).await;
    let _running = site.start(Setup { keys: NEW_KEY, ..Setup::default() });
    let state = site.ended(sent).await;
    assert_eq!((state.status, state.error_code), (DeliveryStatus::Failed, Some(DeliveryError::SecretUnavailable)));
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn a_rotated_ring_decrypts_what_either_key_encrypted() {
    const ROTATED: &str =
        "k2:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=,k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let receiver = Receiver::start().await;
    let site = Site::new(&[&receiver]).await;
    let old = site.send_sealed(&receiver.url("/"), OLD_KEY).await;
    let new = site.send_sealed(&receiver.url("/"), ROTATED).await;
    let _running = site.start(Setup { keys: ROTATED, ..Setup::default() });
    for sent in [old, new] {
        assert_eq!(site.ended(sent).await.status, DeliveryStatus::Delivered);
    }
    for request in receiver.requests() {
        request.verify_signature(SECRET).expect("signed by the caller's secret");
    }
}
