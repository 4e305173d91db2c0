//! Uploads through links whose gateway dies (docs/reference/assets.md#upload-links).

use std::time::Duration;

use bytes::Bytes;
use e2e::api::text;
use e2e::{Part, SETTLING, Stack, checker, images};
use futures_util::StreamExt;
use futures_util::stream;
use reqwest::Method;
use serde_json::json;
use testkit::wait_for;

use super::{mortal, start};

/// A lease that a dead gateway left ends after 15 s.
const PATIENCE: Duration = Duration::from_secs(40);
/// Deaths in the middle of the body, and of the transaction that stores the asset.
const BODY: &str = "body";
const TRANSACTION: &str = "transaction";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_through_a_link_is_stored_once_wherever_the_gateway_dies() {
    let stack = start(mortal()).await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let kills = ["link.leased", BODY, "upload.received", TRANSACTION, "upload.committed", "link.released"];
    for (count, point) in (1..).zip(kills) {
        let links = json!({"files": [{"name": "a.png"}], "canvasId": canvas});
        let links = user.send("/assets/uploads", &links).await.expect(201).json();
        let (url, png) = (text(&links, "/uploads/0/url").to_owned(), images::png(8, 8));
        let put = |body: reqwest::Body| stack.anonymous().call(Method::PUT, &url).untyped(body);
        match point {
            BODY => {
                let begin = Bytes::copy_from_slice(&png[..png.len() / 2]);
                let pieces = stream::iter([Ok::<_, std::io::Error>(begin)]).chain(stream::pending());
                let broken = tokio::spawn(put(reqwest::Body::wrap_stream(pieces)).attempt());
                let leased = "SELECT count(*) FROM capability_links WHERE lease IS NOT NULL AND leased_until > now()";
                wait_for("the lease", PATIENCE, async || (stack.count(leased).await == 1).then_some(())).await;
                stack.kill(Part::GATEWAY);
                broken.await.expect("ends").expect_err("is not answered");
            }
            TRANSACTION => {
                let mut holder = stack.pool().begin().await.expect("begins");
                sqlx::query("SELECT FROM canvases FOR UPDATE").execute(&mut *holder).await.expect("locks");
                let broken = tokio::spawn(put(png.clone().into()).attempt());
                let waiting = "SELECT count(*) FROM pg_stat_activity
                               WHERE datname = current_database() AND wait_event_type = 'Lock'";
                wait_for("the transaction", PATIENCE, async || (stack.count(waiting).await == 1).then_some(())).await;
                stack.kill(Part::GATEWAY);
                broken.await.expect("ends").expect_err("is not answered");
                holder.rollback().await.expect("ends");
            }
            failpoint => {
                stack.restart_with(Part::GATEWAY, &[("CANVAS_FAILPOINTS", &format!("{failpoint}=kill"))]).await;
                put(png.clone().into()).attempt().await.expect_err("is not answered");
                assert_eq!(stack.ended(Part::GATEWAY).await.code(), None, "{failpoint}: killed");
            }
        }
        let is_stored = ["upload.committed", "link.released"].contains(&point);
        stack.restart(Part::GATEWAY).await;
        // What was stored is a replay at once; otherwise the lease of the dead gateway has to end.
        let stored = wait_for("the link to be free", PATIENCE, async || {
            let reply = put(png.clone().into()).await;
            if reply.status == 409 {
                assert!(!is_stored, "{reply}");
                tokio::time::sleep(Duration::from_millis(500)).await;
                return None;
            }
            Some(reply)
        })
        .await;
        let stored = stored.expect(if is_stored { 200 } else { 201 }).json();
        put(png.clone().into()).await.expect(200);
        put(images::png(8, 8).into()).await.expect_error(409, "conflict", &[]);
        let content = user.get(&format!("/assets/{}/content", text(&stored, "/asset/id"))).await.expect(200);
        assert!(content.body == png, "{point}");
        assert_eq!(stack.count("SELECT count(*) FROM assets").await, count, "{point}: one asset");
        assert_eq!(stack.count("SELECT count(*) FROM nodes").await, count, "{point}: one node");
    }
    checker::settled(&stack, SETTLING).await;
    assert_eq!(checker::invariants(&stack).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_uploads_through_two_gateways_one_is_stored() {
    let stack: Stack = start(mortal().gateways(2)).await;
    let user = stack.user().await;
    for _ in 0..10 {
        let links = user.send("/assets/uploads", &json!({"files": [{"name": "a.png"}]})).await.expect(201).json();
        let url = text(&links, "/uploads/0/url").to_owned();
        let path = url.strip_prefix(&stack.origin(0)).expect("is of the first gateway").to_owned();
        let uploads = [0, 1].map(|gateway| {
            let url = format!("{}{path}", stack.origin(gateway));
            stack.anonymous_at(gateway).call(Method::PUT, &url).untyped(images::png(8, 8)).into_future()
        });
        let replies = futures_util::future::join_all(uploads).await;
        let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409]);
    }
    assert_eq!(stack.count("SELECT count(*) FROM assets").await, 10);
}
