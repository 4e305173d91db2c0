use std::error::Error;

use super::*;

#[expect(clippy::disallowed_methods, reason = "the receiver is tested with a plain client, which shared/egress is not")]
fn client(receiver: &Receiver) -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let authority = reqwest::Certificate::from_pem(receiver.ca_pem().as_bytes()).expect("a certificate");
    reqwest::Client::builder()
        .tls_certs_only([authority])
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .timeout(Duration::from_secs(10))
        .build()
        .expect("a client")
}

async fn post(receiver: &Receiver, path: &str, body: &'static str) -> reqwest::Result<reqwest::Response> {
    client(receiver).post(receiver.url(path)).header("x-test", "1").body(body).send().await
}

#[tokio::test]
async fn a_request_is_recorded_as_it_came() {
    let receiver = Receiver::start().await;
    assert_eq!(post(&receiver, "/a/b?c=d", "raw \u{e9}").await.expect("answers").status(), 200);
    let all = receiver.wait_for(1, Duration::from_secs(5)).await;
    assert_eq!(
        (all[0].method.as_str(), all[0].path.as_str(), &all[0].body[..]),
        ("POST", "/a/b?c=d", "raw é".as_bytes())
    );
    assert_eq!(all[0].header("x-test"), Ok("1"));
}

#[tokio::test]
async fn answers_come_in_turn_and_the_last_one_stays() {
    let receiver = Receiver::start().await;
    receiver.answer_in_turn(vec![
        Answer::status(503).header("retry-after", "7"),
        Answer::redirect("https://example.test/"),
        Answer::status(204),
    ]);
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(post(&receiver, "/", "").await.expect("answers").status().as_u16());
    }
    assert_eq!(seen, [503, 302, 204, 204]);
}

#[tokio::test]
async fn a_program_may_answer_by_path() {
    let receiver = Receiver::start().await;
    receiver.answer_with(|request| match request.path.as_str() {
        "/text" => Answer::status(400).body("no"),
        _ => Answer::close(),
    });
    let response = post(&receiver, "/text", "").await.expect("answers");
    assert_eq!((response.status().as_u16(), response.text().await.expect("a body").as_str()), (400, "no"));
    assert!(post(&receiver, "/other", "").await.is_err());
    assert_eq!(receiver.requests().len(), 2);
}

#[tokio::test]
async fn endless_and_dripping_bodies_go_on() {
    let receiver = Receiver::start().await;
    receiver.answer(Answer::endless());
    let mut response = post(&receiver, "/", "").await.expect("answers");
    let mut read = 0;
    while read < 1_000_000 {
        read += response.chunk().await.expect("reads").expect("more").len();
    }
    receiver.answer(Answer::drip(Duration::from_millis(1)));
    let mut response = post(&receiver, "/", "").await.expect("answers");
    for _ in 0..3 {
        assert_eq!(response.chunk().await.expect("reads").expect("more"), "x");
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_an_answer_with_an_error() {
    let receiver = Receiver::start().await;
    receiver.answer(Answer::status(302).breaking_off());
    let mut response = post(&receiver, "/", "").await.expect("answers");
    assert_eq!(response.status(), 302);
    assert_eq!(response.chunk().await.expect("reads").expect("more"), "x");
    assert!(response.chunk().await.is_err());
}

#[tokio::test]
async fn silence_lasts_until_the_client_gives_up() {
    let receiver = Receiver::start().await;
    receiver.answer(Answer::never());
    let request = client(&receiver).post(receiver.url("/")).timeout(Duration::from_millis(200));
    assert!(request.send().await.expect_err("no answer").is_timeout());
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test]
async fn a_client_with_another_authority_is_not_served() {
    let (one, other) = (Receiver::start().await, Receiver::start().await);
    let error = client(&other).post(one.url("/")).send().await.expect_err("distrusted");
    assert!(error.source().is_some() && one.requests().is_empty());
}

#[tokio::test]
#[should_panic(expected = "for 2 requests and saw 1, at ")]
async fn waiting_in_vain_says_how_many_came() {
    let receiver = Receiver::start().await;
    post(&receiver, "/", "").await.expect("answers");
    receiver.wait_for(2, Duration::from_millis(20)).await;
}

#[tokio::test]
async fn a_reserved_port_refuses_until_a_receiver_listens_on_it() {
    let (reserved, identity) = (Reserved::new(), Identity::new(&[]));
    let port = reserved.port();
    let connect = async || tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
    assert!(connect().await.is_err(), "nobody listens");
    assert!(std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err(), "it is taken");
    for body in ["one", "another"] {
        let receiver = Receiver::start_on(port, &identity);
        assert_eq!(post(&receiver, "/", body).await.expect("answers").status(), 200);
        assert_eq!(receiver.requests().len(), 1);
        drop(receiver);
        crate::wait_for("the receiver to stop", Duration::from_secs(5), async || connect().await.err()).await;
    }
}
