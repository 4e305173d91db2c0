//! Tests that destinations do not delay each other.

use std::time::{Duration, Instant};

use domain::webhook::DeliveryStatus;
use testkit::{Answer, Receiver, wait_for};
use webhook_dispatcher::{CLAIMED_INITIAL, COUNTED_CAP, DESTINATION_CAP, account_cap};

use crate::harness::{PATIENCE, Setup, Site};

/// The slots of a dispatcher; one account may have half of them.
const SLOTS: usize = 4 * CLAIMED_INITIAL;

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
    let _running = site.start(Setup { slots: 2 * CLAIMED_INITIAL, ..Setup::default() });
    for sent in sent {
        assert_eq!(site.ended(sent).await.status, DeliveryStatus::Delivered);
    }
    assert!(start.elapsed() < Duration::from_secs(10), "healthy deliveries waited for the unresponsive destination");
    assert!(hole.requests().len() <= DESTINATION_CAP, "{} at the hole", hole.requests().len());
}

#[tokio::test]
async fn a_fast_destination_that_falls_silent_gives_back_what_was_not_counted() {
    const FAST: usize = 100;
    let (turning, healthy) = (Receiver::start().await, Receiver::start().await);
    turning.answer_in_turn([vec![Answer::status(200); FAST], vec![Answer::never()]].concat());
    let site = Site::new(&[&turning, &healthy]).await;
    for _ in 0..2 * FAST {
        site.send(&turning.url("/")).await;
    }
    let _running = site.start(Setup { slots: SLOTS, ..Setup::default() });
    turning.wait_for(FAST + DESTINATION_CAP, PATIENCE).await;
    wait_for("the release of all but a few", PATIENCE, async || {
        let leased = site.count("SELECT count(*) FROM task_queue WHERE state = 'leased'").await;
        (leased <= COUNTED_CAP as i64).then_some(())
    })
    .await;
    let open = site.count("SELECT count(*) FROM webhook_attempts WHERE finished_at IS NULL").await;
    assert!(open <= COUNTED_CAP as i64, "{open} attempts are counted");
    assert_eq!(site.count("SELECT count(*) FROM task_queue WHERE state = 'ready' AND claims > 0").await, 0);
    assert_eq!(turning.requests().len(), FAST + DESTINATION_CAP);
    // A destination of the same account.
    let start = Instant::now();
    let sent = site.send(&healthy.url("/")).await;
    assert_eq!(site.ended(sent).await.status, DeliveryStatus::Delivered);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[tokio::test]
async fn an_account_of_many_dead_destinations_takes_its_share_of_slots_and_no_more() {
    let healthy = Receiver::start().await;
    let mut holes = Vec::new();
    for _ in 0..SLOTS {
        let hole = Receiver::start().await;
        hole.answer(Answer::never());
        holes.push(hole);
    }
    let receivers: Vec<&Receiver> = holes.iter().chain([&healthy]).collect();
    let site = Site::new(&receivers).await;
    for hole in &holes {
        site.send_of("attacker", &hole.url("/")).await;
    }
    let mut sent = Vec::new();
    for _ in 0..20 {
        sent.push(site.send(&healthy.url("/")).await);
    }
    let start = Instant::now();
    let _running = site.start(Setup { slots: SLOTS, ..Setup::default() });
    for sent in sent {
        assert_eq!(site.ended(sent).await.status, DeliveryStatus::Delivered);
    }
    assert!(start.elapsed() < Duration::from_secs(10), "before the first attempt at a hole has ended");
    let held: usize = holes.iter().map(|hole| hole.requests().len()).sum();
    assert_eq!(held, account_cap(SLOTS));
}
