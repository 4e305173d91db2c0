//! Tests of crashes of the dispatcher. Failpoints are armed for the whole process, so each test
//! needs its own process (nextest).

use std::path::PathBuf;
use std::time::Duration;

use domain::webhook::{DeliveryError, DeliveryStatus};
use testkit::{Answer, Receiver, wait_for};
use uuid::Uuid;

use crate::harness::{BODY, PATIENCE, SECRET, Setup, Site};

/// A failpoint at which the first run stops, until its dispatcher is killed.
struct Hold(PathBuf);

impl Hold {
    fn at(name: &str) -> Self {
        let file = std::env::temp_dir().join(format!("canvas-hold-{}", Uuid::new_v4()));
        std::fs::write(&file, "").expect("writes");
        taskqueue::failpoint::arm(&format!("{name}=hold:{}*1", file.display())).expect("a failpoint");
        Self(file)
    }

    /// Waits until a run has reached the failpoint.
    async fn reached(&self) {
        let is_reached = async || std::fs::metadata(&self.0).is_ok_and(|file| file.len() > 0).then_some(());
        wait_for("a run at the failpoint", PATIENCE, is_reached).await;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // A leftover file does no harm.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn a_death_between_begin_and_send_costs_an_attempt_and_no_event() {
    let hold = Hold::at("delivery.begun");
    let receiver = Receiver::start().await;
    let site = Site::new(&[&receiver]).await;
    let sent = site.send(&receiver.url("/")).await;
    let running = site.start(Setup::default());
    hold.reached().await;
    let state = site.state(sent).await;
    assert_eq!((state.status, state.attempts), (DeliveryStatus::Delivering, 1));
    running.kill().await;
    assert!(receiver.requests().is_empty(), "not sent yet");

    let _running = site.start(Setup::default());
    let state = site.ended(sent).await;
    assert_eq!((state.status, state.attempts), (DeliveryStatus::Delivered, 2));
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test]
async fn a_death_between_send_and_record_repeats_the_same_event() {
    let hold = Hold::at("delivery.sent");
    let receiver = Receiver::start().await;
    let site = Site::new(&[&receiver]).await;
    let sent = site.send(&receiver.url("/")).await;
    let running = site.start(Setup::default());
    hold.reached().await;
    running.kill().await;

    let _running = site.start(Setup::default());
    let state = site.ended(sent).await;
    assert_eq!((state.status, state.attempts), (DeliveryStatus::Delivered, 2));
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert_eq!((request.header("service-webhook-id"), &*request.body), (Ok(&*state.id), BODY));
        request.verify_signature(SECRET).expect("signed afresh");
    }
}

#[tokio::test]
async fn a_death_in_the_fourth_attempt_is_not_followed_by_a_fifth() {
    taskqueue::failpoint::arm("delivery.sent=hold*4").expect("a failpoint");
    let receiver = Receiver::start().await;
    let site = Site::new(&[&receiver]).await;
    let sent = site.send(&receiver.url("/")).await;
    for attempts in 1..=4 {
        let running = site.start(Setup::default());
        receiver.wait_for(attempts, PATIENCE).await;
        running.kill().await;
    }
    let _running = site.start(Setup::default());
    let state = site.ended(sent).await;
    assert_eq!((state.status, state.attempts), (DeliveryStatus::Failed, 4));
    assert_eq!(state.error_code, Some(DeliveryError::DeliveryFailed));
    assert_eq!(receiver.requests().len(), 4);
    assert_eq!(site.count("SELECT count(*) FROM task_queue").await, 0);
}

#[tokio::test]
async fn claims_that_came_to_no_attempt_do_not_end_a_delivery() {
    let receiver = Receiver::start().await;
    let site = Site::new(&[&receiver]).await;
    let sent = site.send(&receiver.url("/")).await;
    sqlx::query("UPDATE task_queue SET claims = 9").execute(site.pool()).await.expect("updates");
    let _running = site.start(Setup::default());
    assert_eq!(site.ended(sent).await.status, DeliveryStatus::Delivered);
}

#[tokio::test]
async fn a_delivery_that_is_gone_leaves_no_task_behind() {
    let receiver = Receiver::start().await;
    let site = Site::new(&[&receiver]).await;
    site.send(&receiver.url("/")).await;
    sqlx::query("DELETE FROM webhook_deliveries").execute(site.pool()).await.expect("deletes");
    let _running = site.start(Setup::default());
    wait_for("an empty table", PATIENCE, async || {
        (site.count("SELECT count(*) FROM task_queue").await == 0).then_some(())
    })
    .await;
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn a_stop_finishes_what_is_running_and_claims_nothing_new() {
    let receiver = Receiver::start().await;
    let site = Site::new(&[&receiver]).await;
    receiver.answer(Answer::status(200).after(Duration::from_millis(500)));
    let current = site.send(&receiver.url("/")).await;
    let running = site.start(Setup { slots: 1, ..Setup::default() });
    receiver.wait_for(1, PATIENCE).await;
    let waiting = site.send(&receiver.url("/")).await;
    running.stop().await;
    assert_eq!(site.state(current).await.status, DeliveryStatus::Delivered);
    let state = site.state(waiting).await;
    assert_eq!((state.status, state.attempts), (DeliveryStatus::Pending, 0));
}
