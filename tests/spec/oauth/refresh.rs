//! Refresh tokens.

use e2e::Stack;
use futures_util::future::join_all;
use serde_json::json;

use super::{Flow, Tokens, expect_invalid_grant, expect_oauth_error, parts, pass, register, stack};

#[tokio::test]
async fn a_refresh_gives_new_tokens_and_the_earlier_access_token_stays_valid_for_a_while() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let first = flow.app().await;
    let second = Tokens::from(flow.refresh(&first.refresh, &[]).await.ok());
    assert!(second.access != first.access && second.refresh != first.refresh);
    assert_eq!((parts(&second.access).0, &second.scope), (parts(&first.access).0, &first.scope), "the same app");
    assert_eq!((flow.status(&first.access).await, flow.status(&second.access).await), (200, 200));
    pass(stack, &first.access, 118.0).await;
    assert_eq!(flow.status(&first.access).await, 200);
    pass(stack, &first.access, 3.0).await;
    assert_eq!((flow.status(&first.access).await, flow.status(&second.access).await), (401, 200));
    // The app was one all the time.
    assert_eq!(flow.person.get("/apps").await.ok()["apps"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn an_access_token_ends_after_an_hour_and_its_app_goes_on() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let app = flow.app().await;
    pass(stack, &app.access, 3595.0).await;
    assert_eq!(flow.status(&app.access).await, 200);
    pass(stack, &app.access, 6.0).await;
    assert_eq!(flow.status(&app.access).await, 401);
    let next = Tokens::from(flow.refresh(&app.refresh, &[]).await.ok());
    assert_eq!((flow.status(&next.access).await, flow.status(&app.access).await), (200, 401), "it does not come back");
}

/// Row 30: 20 processes at once, at two gateways.
#[tokio::test]
async fn refreshes_at_once_give_one_pair() {
    let stack = &stack().await;
    let flow = &Flow::new(stack).await;
    let mut app = flow.app().await;
    for round in 0..5 {
        let gateways = [stack.anonymous(), stack.anonymous_at(1)];
        let replies = (0..20).map(|number| {
            let (client, token) = (gateways[number % 2].clone(), app.refresh.clone());
            async move { flow.refresh_at(&client, &token, &[]).await }
        });
        let pairs: Vec<Tokens> = join_all(replies).await.into_iter().map(|reply| reply.ok().into()).collect();
        assert!(pairs.iter().all(|pair| *pair == pairs[0]), "{round}");
        app = pairs[0].clone();
    }
    assert_eq!(flow.status(&app.access).await, 200);
    let generation = "SELECT generation::bigint FROM oauth_grants WHERE id = $1::uuid";
    assert_eq!(stack.count_of(generation, parts(&app.access).0).await, 6);
}

#[tokio::test]
async fn a_refresh_is_repeated_for_a_minute() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let first = flow.app().await;
    let second = Tokens::from(flow.refresh(&first.refresh, &[]).await.ok());
    pass(stack, &first.access, 58.0).await;
    assert_eq!(Tokens::from(flow.refresh(&first.refresh, &[]).await.ok()), second);
    pass(stack, &first.access, 3.0).await;
    expect_invalid_grant(&flow.refresh(&first.refresh, &[]).await);
    assert_eq!(flow.status(&second.access).await, 401, "the app has ended");
}

/// Row 31.
#[tokio::test]
async fn a_stolen_refresh_token_ends_the_app_at_once() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let first = flow.app().await;
    let second = Tokens::from(flow.refresh(&first.refresh, &[]).await.ok());
    let third = Tokens::from(flow.refresh(&second.refresh, &[]).await.ok());
    // Within the minute, but its successor was used.
    expect_invalid_grant(&flow.refresh(&first.refresh, &[]).await);
    for access in [&second.access, &third.access] {
        assert_eq!(flow.status(access).await, 401);
        stack.anonymous_at(1).with_token(access).get("/auth/status").await.expect(401);
    }
    expect_invalid_grant(&flow.refresh(&third.refresh, &[]).await);
    assert_eq!(flow.person.get("/apps").await.ok()["apps"], json!([]));
}

/// Row 32.
#[tokio::test]
async fn a_refresh_names_no_more_than_was_granted() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    let app = flow.app_with(&[("scope", Some("canvas:read asset:read"))]).await;
    let send = async |changes| flow.refresh(&app.refresh, &[changes]).await;
    expect_oauth_error(&send(("scope", "canvas:read job:manage")).await, 400, "invalid_scope");
    expect_oauth_error(&send(("scope", "canvas:admin")).await, 400, "invalid_scope");
    expect_oauth_error(&send(("resource", "https://other.example")).await, 400, "invalid_target");
    let other = register(stack, "https://other.example/callback").await;
    expect_invalid_grant(&send(("client_id", other.as_str())).await);
    let next = Tokens::from(send(("scope", "canvas:read")).await.ok());
    assert_eq!(next.scope, app.scope, "a part changes nothing");
}

#[tokio::test]
async fn what_only_looks_like_a_refresh_token_has_no_effect() {
    let stack = &stack().await;
    let (flow, other) = (Flow::new(stack).await, Flow::new(stack).await);
    let (app, foreign) = (flow.app().await, other.app().await);
    let id = parts(&app.refresh).0;
    for token in [
        String::new(),
        "cbr_".to_owned(),
        format!("cbr_{id}.{}", "A".repeat(43)),
        format!("cbr_{id}.{}", parts(&foreign.refresh).1),
        app.refresh.replace("cbr_", "cba_"),
    ] {
        let error = if token.is_empty() { "invalid_request" } else { "invalid_grant" };
        expect_oauth_error(&flow.refresh(&token, &[]).await, 400, error);
    }
    assert_eq!(flow.status(&app.access).await, 200);
    flow.refresh(&app.refresh, &[]).await.ok();
}

#[tokio::test]
async fn an_app_ends_by_itself_when_it_is_idle_or_its_time_is_over() {
    let stack = &stack().await;
    let flow = Flow::new(stack).await;
    const DAY: f64 = 86_400.0;
    let idle = flow.app().await;
    pass(stack, &idle.access, 29.9 * DAY).await;
    let idle = Tokens::from(flow.refresh(&idle.refresh, &[]).await.ok());
    pass(stack, &idle.access, 30.1 * DAY).await;
    expect_invalid_grant(&flow.refresh(&idle.refresh, &[]).await);
    let old = flow.app().await;
    let old = {
        pass(stack, &old.access, 29.0 * DAY).await;
        let old = Tokens::from(flow.refresh(&old.refresh, &[]).await.ok());
        pass(stack, &old.access, 29.0 * DAY).await;
        let old = Tokens::from(flow.refresh(&old.refresh, &[]).await.ok());
        pass(stack, &old.access, 29.0 * DAY).await;
        Tokens::from(flow.refresh(&old.refresh, &[]).await.ok())
    };
    pass(stack, &old.access, 3.1 * DAY).await;
    expect_invalid_grant(&flow.refresh(&old.refresh, &[]).await);
    assert_eq!(flow.status(&old.access).await, 401);
    assert_eq!(flow.person.get("/apps").await.ok()["apps"], json!([]));
}

#[tokio::test]
async fn the_lifetime_of_access_tokens_is_configured() {
    let stack = &Stack::builder().env("CANVAS_OAUTH_ACCESS_SECONDS", 5).shared().await;
    let flow = Flow::new(stack).await;
    let code = flow.code(&[]).await;
    let answer = flow.exchange(&code, &[]).await.ok();
    assert!(answer["expires_in"].as_i64().is_some_and(|seconds| seconds <= 5), "{answer}");
    let app = Tokens::from(answer);
    pass(stack, &app.access, 6.0).await;
    assert_eq!(flow.status(&app.access).await, 401);
}
