//! Destinations do not stand in each other's way.

use std::time::{Duration, Instant};

use domain::webhook::DeliveryStatus;
use testkit::{Answer, Receiver};
use webhook_dispatcher::DESTINATION_CAP;

use crate::harness::{Setup, Site};

#[tokio::test]
async fn a_black_hole_delays_nobody_else() {
    let (hole, healthy) = (Receiver::start().await, Receiver::start().await);
    hole.answer(Answer::never());
    let site = Site::new(&[&hole, &healthy]).await;
    for _ in 0..20 {
        site.send(&hole.url("/")).await;
    }
    let mut sent = Vec::new();
    for _ in 0..20 {
        sent.push(site.send(&healthy.url("/")).await);
    }
    let start = Instant::now();
    let _running = site.start(Setup { slots: 2 * DESTINATION_CAP, ..Setup::default() });
    for sent in sent {
        assert_eq!(site.ended(sent).await.status, DeliveryStatus::Delivered);
    }
    assert!(start.elapsed() < Duration::from_secs(10), "before the first attempt at the hole has ended");
    assert!(hole.requests().len() <= DESTINATION_CAP, "{} at the hole", hole.requests().len());
}
