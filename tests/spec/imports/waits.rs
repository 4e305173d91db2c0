//! Requests that wait for an import (docs/reference/imports.md#waiting-for-the-outcome).

use e2e::api::text;
use e2e::{Part, Stack, User, images};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use testkit::{Answer, wait_for};

use super::{canvas, image_request, import_image, nodes, png, serve};

#[tokio::test]
async fn after_55_seconds_it_is_504_and_the_key_resumes() {
    let stack = &Stack::builder().image_workers(1).receivers(1).hold("import.gathered").start().await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    serve(&shop, vec![png("/a.png", images::png(10, 10))]);
    let canvas = canvas(&user).await;
    let request = image_request(&canvas, &shop.url("/a.png"));
    let began = std::time::Instant::now();
    user.send("/images/import", &request).await.expect_error(504, "upstream_timeout", &[]);
    assert!((54..65).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    stack.hold("import.gathered").release();
    let import = user.send("/images/import", &request).await.ok();
    assert_eq!((shop.requests().len(), nodes(&user, &canvas).await.len()), (1, 1), "the same import: {import}");
}

#[tokio::test]
async fn imports_take_none_of_the_open_waits_of_a_token() {
    let stack = &Stack::builder()
        .image_workers(1)
        .receivers(1)
        .env("CANVAS_ACTIVE_IMPORTS", 65)
        .env("CANVAS_RATE_PER_MINUTE", 0)
        .hold("import.gathered")
        .start()
        .await;
    /// One more than the limit on open waits of a token (docs/reference/conventions.md#limits-on-open-waits).
    const MANY: i64 = 65;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    serve(&shop, vec![png("/a.png", images::png(10, 10))]);
    let canvas = canvas(&user).await;
    let requests: Vec<Value> = (0..MANY).map(|_| image_request(&canvas, &shop.url("/a.png"))).collect();
    let imports = requests.iter().map(async |request| user.send("/images/import", request).await.expect(200));
    let released = async {
        wait_for("all to be accepted", e2e::PATIENCE, async || {
            (stack.count("SELECT count(*) FROM imports").await >= MANY).then_some(())
        })
        .await;
        stack.hold("import.gathered").release();
    };
    let (imports, ()) = tokio::join!(futures_util::future::join_all(imports), released);
    assert_eq!((imports.len(), nodes(&user, &canvas).await.len()), (MANY as usize, MANY as usize));
}

#[tokio::test]
async fn an_account_has_a_cap_on_imports_under_way() {
    let stack = &Stack::builder()
        .image_workers(1)
        .receivers(1)
        .env("CANVAS_ACTIVE_IMPORTS", 2)
        .hold("import.gathered")
        .start()
        .await;
    let (user, other, shop) = (stack.user().await, stack.user().await, stack.take_receiver());
    serve(&shop, vec![png("/a.png", images::png(10, 10))]);
    let (mine, theirs) = (canvas(&user).await, canvas(&other).await);
    let requests = [(); 2].map(|()| image_request(&mine, &shop.url("/a.png")));
    let third = image_request(&mine, &shop.url("/a.png"));
    let send = async |user: &User, request: &Value| user.send("/images/import", request).await.ok();
    let refused = async {
        shop.wait_for(2, e2e::PATIENCE).await;
        let refused = user.send("/images/import", &third).await;
        assert!(refused.header("retry-after").is_some(), "{refused}");
        refused.expect_error(429, "rate_limited", &[]);
        // A replay starts nothing, and another account has its own count.
        let released = async {
            shop.wait_for(3, e2e::PATIENCE).await;
            stack.hold("import.gathered").release();
        };
        let url = shop.url("/a.png");
        let others = import_image(&other, &theirs, &url);
        let (replay, others, ()) = tokio::join!(send(&user, &requests[0]), others, released);
        others.ok();
        assert_eq!(replay["replayed"], true);
    };
    tokio::join!(send(&user, &requests[0]), send(&user, &requests[1]), refused);
    send(&user, &third).await;
}

#[tokio::test]
async fn starts_at_the_same_moment_do_not_exceed_the_cap_together() {
    // Nobody works: what is accepted stays unfinished. Forty imports at once are more than the burst of a token.
    let stack = &Stack::builder().env("CANVAS_RATE_PER_MINUTE", 0).shared().await;
    /// The cap on unfinished imports of an account (docs/reference/imports.md#concurrent-imports).
    const MOST: i64 = 20;
    let user = stack.user().await;
    let canvas = canvas(&user).await;
    let accepted = async || stack.count_of("SELECT count(*) FROM imports WHERE account_uid = $1", &user.uid).await;
    let requests: Vec<Value> = (0..2 * MOST).map(|_| image_request(&canvas, "https://example.com/a.png")).collect();
    let mut sent: FuturesUnordered<_> =
        requests.iter().map(async |request| user.send("/images/import", request).await).collect();
    // Those beyond the cap are answered at once, the others wait.
    for _ in 0..MOST {
        sent.next().await.expect("is answered").expect_error(429, "rate_limited", &[]);
    }
    wait_for("the others", e2e::PATIENCE, async || (accepted().await == MOST).then_some(())).await;
    assert_eq!(sent.len(), MOST as usize);
}

#[tokio::test]
async fn imports_from_slow_servers_leave_slots_to_other_accounts() {
    // Twenty imports at once are more than the burst of a token.
    let stack = &Stack::builder().image_workers(1).receivers(2).env("CANVAS_RATE_PER_MINUTE", 0).start().await;
    /// The cap on unfinished imports of an account (docs/reference/imports.md#concurrent-imports).
    const MANY: i64 = 20;
    let (busy, late) = (stack.user().await, stack.user().await);
    let (slow, shop) = (stack.take_receiver(), stack.take_receiver());
    slow.answer(Answer::never());
    serve(&shop, vec![png("/a.png", images::png(10, 10))]);
    let (theirs, mine) = (canvas(&busy).await, canvas(&late).await);
    let requests: Vec<Value> = (0..MANY).map(|_| image_request(&theirs, &slow.url("/a.png"))).collect();
    let imports = requests.iter().map(async |request| busy.send("/images/import", request).await);
    let other = async {
        wait_for("all to be accepted", e2e::PATIENCE, async || {
            (stack.count("SELECT count(*) FROM imports").await >= MANY).then_some(())
        })
        .await;
        import_image(&busy, &theirs, &shop.url("/a.png")).await.expect_error(429, "rate_limited", &[]);
        // The other slots of the account wait for memory for a file.
        slow.wait_for(3, e2e::PATIENCE).await;
        let began = std::time::Instant::now();
        import_image(&late, &mine, &shop.url("/a.png")).await.ok();
        assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
        assert_eq!(slow.requests().len(), 3);
        assert!(stack.metric(Part::IMAGE_WORKER, "canvas_reserve_refused_total").await > 0.0);
        slow.answer(Answer::status(404));
    };
    let (imports, ()) = tokio::join!(futures_util::future::join_all(imports), other);
    let count = |status: u16| imports.iter().filter(|reply| reply.status == status).count();
    assert_eq!((count(504), count(502)), (3, MANY as usize - 3), "servers that never answer are dropped");
}

#[tokio::test]
async fn a_worker_that_dies_after_its_commit_brings_nothing_twice() {
    let stack = &Stack::builder()
        .image_workers(1)
        .receivers(1)
        .env("CANVAS_LEASE_SECONDS", "2")
        .hold("import.committed")
        .start()
        .await;
    let (user, shop) = (stack.user().await, stack.take_receiver());
    serve(&shop, vec![png("/a.png", images::png(10, 10))]);
    let canvas = canvas(&user).await;
    let request = image_request(&canvas, &shop.url("/a.png"));
    let hold = stack.hold("import.committed");
    let (import, ()) = tokio::join!(async { user.send("/images/import", &request).await.ok() }, async {
        hold.reached().await;
        stack.kill(Part::IMAGE_WORKER);
        stack.ended(Part::IMAGE_WORKER).await;
    });
    hold.release();
    stack.restart(Part::IMAGE_WORKER).await;
    let again = user.send("/images/import", &request).await.ok();
    assert_eq!((&again["replayed"], text(&import, "/image/nodeId")), (&json!(true), text(&again, "/image/nodeId")));
    assert_eq!(nodes(&user, &canvas).await.len(), 1);
}
