//! Pointers on canvases (docs/reference/console.md#pointers, docs/reference/events.md#pointers).

use std::time::{Duration, Instant};

use e2e::api::text;
use e2e::{Person, Reply, Stack};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::holder::Holder;
use crate::events::Followed;

/// Time in which a pointer arrives on a busy machine.
const SOON: Duration = Duration::from_secs(3);

/// A canvas with its owner and a member.
struct Shared {
    owner: Holder,
    member: Holder,
    /// Id and handle of the canvas.
    id: String,
    canvas: String,
    /// Path of its pointers below `/console`.
    path: String,
}

async fn shared(stack: &Stack, role: &str) -> Shared {
    let (owner, member) = (Holder::new(stack).await, Holder::new(stack).await);
    let canvas = owner.user.make_canvas().await;
    stack.share(&owner.user, text(&canvas, "/id"), &member.user.uid, role).await;
    let (id, canvas) = (text(&canvas, "/id").to_owned(), text(&canvas, "/handle").to_owned());
    let path = format!("{}/pointer", owner.canvas_path(&id));
    Shared { owner, member, id, canvas, path }
}

impl Shared {
    /// The stream of a person, once it has its first presence.
    async fn follow(&self, person: &Person) -> Followed {
        let mut followed = Followed::open_in_browser(person, &format!("canvas={}&pointers=true", self.canvas)).await;
        followed.until("presence", |_| true).await;
        followed
    }
}

/// Sends a pointer until it arrives: the subscription of a gateway to a canvas takes a moment.
async fn arrives(person: &Person, path: &str, followed: &mut Followed) -> Value {
    for x in 1..100 {
        person.send(path, &json!({"at": [x, 0]})).await.expect(204);
        let told = followed.until("pointers", |_| true);
        if let Ok(told) = tokio::time::timeout(Duration::from_millis(200), told).await {
            return told;
        }
    }
    panic!("no pointer arrives");
}

#[tokio::test]
async fn others_on_the_canvas_see_a_pointer_at_every_gateway_and_its_sender_does_not() {
    let stack = &Stack::without_workers().await;
    for role in ["viewer", "editor"] {
        let shared = shared(stack, role).await;
        let Shared { owner, member, canvas, path, .. } = &shared;
        let elsewhere = member.at(stack, 1);
        let (mut own, mut theirs) = (shared.follow(owner).await, shared.follow(&elsewhere).await);
        arrives(owner, path, &mut theirs).await;
        let presence = own.until("presence", |data| data["who"].as_array().is_some_and(|who| who.len() == 2)).await;
        let who: Vec<&Value> = presence["who"].as_array().expect("a list").iter().collect();

        let state = json!({"at": [12.5, -3], "selection": ["a", "b"], "moving": [0, 0.25],
            "view": [-100, -50, 1280, 720], "editing": "a"});
        let sent = Instant::now();
        owner.send(path, &state).await.expect(204);
        let told = theirs.until("pointers", |data| data["who"][0]["at"] == json!([12.5, -3.0])).await;
        assert!(sent.elapsed() < SOON, "{:?}", sent.elapsed());
        assert_eq!((&told["canvas"], told["who"].as_array().map(Vec::len)), (&json!(canvas), Some(1)));
        let label = &owner.signed_in["session"]["label"];
        let participant = who.iter().find(|who| who["label"] == *label).expect("the owner is present");
        let mut pointer = told["who"][0].as_object().expect("an object").clone();
        for (member, value) in participant.as_object().expect("an object") {
            assert_eq!(pointer.remove(member).as_ref(), Some(value), "{member}");
        }
        assert_eq!(
            Value::from(pointer),
            json!({"at": [12.5, -3.0], "selection": ["a", "b"], "moving": [0.0, 0.25],
            "view": [-100.0, -50.0, 1280.0, 720.0], "editing": "a"})
        );

        // A member of whatever role shows one, too. It is the first pointer that the owner is told of.
        elsewhere.send(path, &json!({"at": [1, 2]})).await.expect(204);
        let told = own.until("pointers", |_| true).await;
        assert_eq!((&told["who"][0]["at"], told["who"].as_array().map(Vec::len)), (&json!([1.0, 2.0]), Some(1)));

        // Who shows nothing any more has an entry without further members.
        owner.send(path, &json!({})).await.expect(204);
        let told = theirs.until("pointers", |_| true).await;
        assert_eq!(told["who"], json!([participant]));
    }
}

#[tokio::test]
async fn who_comes_later_is_told_the_pointers_that_are_shown() {
    let stack = &Stack::without_workers().await;
    let shared = shared(stack, "viewer").await;
    let mut first = shared.follow(&shared.member).await;
    arrives(&shared.owner, &shared.path, &mut first).await;
    shared.owner.send(&shared.path, &json!({"at": [-7, 7]})).await.expect(204);
    let mut second = shared.follow(&shared.member).await;
    assert_eq!(second.until("pointers", |_| true).await["who"][0]["at"], json!([-7.0, 7.0]));
}

#[tokio::test]
async fn a_pointer_is_gone_10_seconds_after_it_was_sent_last() {
    let stack = &Stack::without_workers().await;
    let shared = shared(stack, "viewer").await;
    let mut followed = shared.follow(&shared.member).await;
    arrives(&shared.owner, &shared.path, &mut followed).await;
    shared.owner.send(&shared.path, &json!({"at": [-1, 0]})).await.expect(204);
    let sent = Instant::now();
    followed.until("pointers", |data| data["who"][0]["at"] == json!([-1.0, 0.0])).await;
    let told = followed.until("pointers", |_| true).await;
    assert!(told["who"][0].get("at").is_none(), "{told}");
    let after = sent.elapsed();
    assert!((Duration::from_millis(9500)..Duration::from_secs(14)).contains(&after), "{after:?}");
}

#[tokio::test]
async fn pointers_are_sent_to_streams_that_ask_for_them_alone() {
    let stack = &Stack::without_workers().await;
    let shared = shared(stack, "viewer").await;
    let mut asked = shared.follow(&shared.member).await;
    let query = format!("canvas={}", shared.canvas);
    let mut others = Vec::new();
    for query in [query.clone(), format!("{query}&pointers=false")] {
        let mut other = Followed::open_in_browser(&shared.member, &query).await;
        other.until("presence", |_| true).await;
        others.push(other);
    }
    arrives(&shared.owner, &shared.path, &mut asked).await;
    let create = json!([{"type": "node.create", "node": {"type": "text"}}]);
    let changed = shared.owner.user.apply(&shared.canvas, create).await;
    for mut other in others {
        let (event, data) = other.next().await.expect("an event");
        assert_eq!((event.as_str(), &data["revision"]), ("canvas", &changed["canvas"]["revision"]));
    }
    // A token with canvas:read is told them as well, though it shows none.
    let mut program = Followed::open(&shared.owner.user, &format!("{query}&pointers=true")).await;
    arrives(&shared.member, &shared.path, &mut program).await;
}

#[tokio::test]
async fn a_stream_sends_pointers_at_most_10_times_a_second() {
    let stack = &Stack::without_workers().await;
    let Shared { owner, member, canvas, path, .. } = &shared(stack, "viewer").await;
    let other = owner.user.make_canvas().await;
    stack.share(&owner.user, text(&other, "/id"), &member.user.uid, "viewer").await;
    let query = format!("canvas={canvas}&canvas={}&pointers=true", text(&other, "/handle"));
    let mut followed = Followed::open_in_browser(member, &query).await;
    let paths = [path.clone(), format!("{}/pointer", owner.canvas_path(text(&other, "/id")))];
    let moving = async {
        for x in 0..60 {
            join_all(paths.iter().map(async |path| owner.send(path, &json!({"at": [x, 0]})).await.expect(204))).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let counting = async {
        let mut canvases = std::collections::BTreeSet::new();
        let (mut events, mut first) = (0, None);
        loop {
            let told = followed.until("pointers", |_| true).await;
            let start = *first.get_or_insert_with(Instant::now);
            events += 1;
            canvases.insert(text(&told, "/canvas").to_owned());
            let most = start.elapsed().as_millis() / 100 + 2;
            assert!(events <= most, "{events} events within {:?}", start.elapsed());
            if events >= 10 && canvases.len() == 2 {
                return;
            }
        }
    };
    tokio::join!(moving, counting);
}

#[tokio::test]
async fn only_a_session_of_somebody_who_may_read_the_canvas_shows_a_pointer() {
    let stack = &Stack::without_workers().await;
    let Shared { owner, member, id, canvas, path } = &shared(stack, "viewer").await;
    let stranger = Holder::new(stack).await;
    stranger.send(path, &json!({"at": [0, 0]})).await.expect_error(404, "not_found", &[]);
    let absent = format!("{}/pointer", owner.canvas_path("absent"));
    owner.send(&absent, &json!({"at": [0, 0]})).await.expect_error(404, "not_found", &[]);
    // The same id of another owner is another canvas.
    let other = path.replace(&owner.user.uid, &stranger.user.uid);
    stranger.send(&other, &json!({"at": [0, 0]})).await.expect_error(404, "not_found", &[]);

    // A session of a token has the token's scopes.
    for (scopes, status) in [("canvas:read", 204), ("job:manage", 403)] {
        let token = stack.user_with(scopes).await;
        stack.share(&owner.user, id, &token.uid, "viewer").await;
        let narrow = stack.signed_in(&json!({"token": token.token})).await;
        assert_eq!(narrow.send(path, &json!({"at": [0, 0]})).await.status, status, "{scopes}");
    }

    let mut followed = Followed::open_in_browser(owner, &format!("canvas={canvas}&pointers=true")).await;
    arrives(member, path, &mut followed).await;
    stack.share(&owner.user, id, &member.user.uid, "none").await;
    member.send(path, &json!({"at": [0, 0]})).await.expect_error(404, "not_found", &[]);
    let at = &format!("{}/console{path}", stack.origin(0));
    let from_page = |call: e2e::Call| {
        let call = call.header("origin", &stack.origin(0)).header("x-canvas-console", "1");
        call.body("application/json", r#"{"at":[0,0]}"#)
    };
    from_page(stack.anonymous().call(reqwest::Method::POST, at)).await.expect_error(401, "unauthorized", &[]);
    from_page(owner.user.call(reqwest::Method::POST, at)).await.expect_error(401, "unauthorized", &[]);
}

#[tokio::test]
async fn a_revoked_session_shows_no_pointer_and_is_told_none() {
    let stack = &Stack::without_workers().await;
    let shared = shared(stack, "viewer").await;
    let mut theirs = shared.follow(&shared.member).await;
    arrives(&shared.owner, &shared.path, &mut theirs).await;
    let revoke = ["admin", "session", "revoke", "--account", &shared.member.user.uid];
    stack.admin(&revoke).await.expect_success();
    while theirs.next().await.is_some() {}
    let reply = shared.member.send(&shared.path, &json!({"at": [0, 0]})).await;
    reply.expect_error(401, "unauthorized", &[]);
}

#[tokio::test]
async fn a_pointer_has_its_limits() {
    let stack = &Stack::without_workers().await;
    let Shared { owner, path, .. } = &shared(stack, "viewer").await;
    let send = async |body: &str| -> Reply {
        owner.call(reqwest::Method::POST, path).body("application/json", body.to_owned()).await
    };
    let ids = |count: usize| -> Vec<String> { (0..count).map(|number| format!("n{number}")).collect() };
    let long = "n".repeat(180);
    for good in [
        json!({}),
        json!({"selection": []}),
        json!({"selection": ids(31)}),
        json!({"selection": ids(32)}),
        json!({"selection": [long], "editing": long}),
        json!({"at": [10_000_000, -10_000_000], "moving": [-10_000_000, 10_000_000.0]}),
        json!({"at": [9_999_999.5, -9_999_999.5]}),
        json!({"view": [-10_000_000, 10_000_000, 0.001, 10_000_000]}),
    ] {
        send(&good.to_string()).await.expect(204);
    }
    for (wrong, fields) in [
        (r#"{"selection": "a"}"#.to_owned(), &["selection"][..]),
        (json!({"selection": ids(33)}).to_string(), &["selection"]),
        (json!({"selection": ["n".repeat(181)]}).to_string(), &["selection[0]"]),
        (json!({"selection": ["a b"], "editing": ""}).to_string(), &["editing", "selection[0]"]),
        (r#"{"at": [10000000.5, -10000000.5]}"#.to_owned(), &["at[0]", "at[1]"]),
        (r#"{"moving": [-10000000.5, 0]}"#.to_owned(), &["moving[0]"]),
        (r#"{"view": [0, 0, 10000001, 1]}"#.to_owned(), &["view[2]"]),
        (r#"{"view": [0, 0, 0, -1]}"#.to_owned(), &["view[2]", "view[3]"]),
        (r#"{"view": [0, 0, 1]}"#.to_owned(), &["view"]),
        (r#"{"at": [0]}"#.to_owned(), &["at"]),
        (r#"{"at": [0, 0, 0]}"#.to_owned(), &["at"]),
        (r#"{"at": [1e300, 0]}"#.to_owned(), &["at[0]"]),
        (r#"{"at": ["0", null]}"#.to_owned(), &["at[0]", "at[1]"]),
        (r#"{"at": null}"#.to_owned(), &["at"]),
        (r#"{"at": [0, 0], "label": "Ana"}"#.to_owned(), &["label"]),
        (r"[]".to_owned(), &[""]),
    ] {
        send(&wrong).await.expect_error(400, "input_validation_error", fields);
    }
    // Numbers that are not finite are no JSON.
    for malformed in ["", "{", r#"{"at": [1e999, 0]}"#, r#"{"at": [NaN, 0]}"#, r#"{"at": [Infinity, 0]}"#] {
        send(malformed).await.expect(400);
    }
    let sized = |bytes: usize| format!("{}{}", r#"{"at":[0,0]}"#, " ".repeat(bytes - 12));
    for (bytes, status) in [(2047, 204), (2048, 204), (2049, 413)] {
        assert_eq!(send(&sized(bytes)).await.status, status, "{bytes}");
    }
    let reply = owner.send("/canvases/a%20b/c%20d/pointer", &json!({"at": 1})).await;
    reply.expect_error(400, "input_validation_error", &["at", "canvasId", "ownerUid"]);
}

#[tokio::test]
async fn a_session_sends_600_pointers_a_minute_and_keeps_its_other_requests() {
    let stack = &Stack::without_workers().await;
    let Shared { owner, member, path, .. } = &shared(stack, "viewer").await;
    let begun = Instant::now();
    let mut sent = 0;
    let refused = loop {
        let replies = join_all((0..30).map(async |x| owner.send(path, &json!({"at": [x, 0]})).await)).await;
        sent += replies.iter().filter(|reply| reply.status == 204).count();
        if let Some(refused) = replies.into_iter().find(|reply| reply.status != 204) {
            break refused;
        }
        assert!(sent < 3000, "never refused");
    };
    // Ten more are admitted every second.
    let most = 601 + usize::try_from(begun.elapsed().as_millis()).expect("short") / 100;
    assert!((600..=most).contains(&sent), "{sent} in {:?}", begun.elapsed());
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.header("ratelimit-limit"), Some("600"));
    refused.expect_error(429, "rate_limited", &[]);
    for _ in 0..3 {
        owner.get(&Person::api("/auth/status")).await.ok();
    }
    member.send(path, &json!({"at": [0, 0]})).await.expect(204);
}

#[tokio::test]
async fn a_pointer_is_neither_stored_nor_logged_nor_in_activity() {
    let stack = &Stack::without_workers().await;
    let shared = shared(stack, "viewer").await;
    let before = shared.owner.user.canvas(&shared.canvas).await;
    let mut followed = shared.follow(&shared.member).await;
    let marker = format!("pointed-{}", shared.owner.user.uid);
    arrives(&shared.owner, &shared.path, &mut followed).await;
    shared.owner.send(&shared.path, &json!({"editing": marker})).await.expect(204);
    followed.until("pointers", |data| data["who"][0]["editing"] == json!(marker)).await;
    let after = shared.owner.user.canvas(&shared.canvas).await;
    assert_eq!((&after["revision"], &after["activity"]), (&before["revision"], &before["activity"]));
    let stored: Vec<String> = sqlx::query_scalar(
        "SELECT table_name::text FROM information_schema.tables
         WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'
           AND query_to_xml(format('SELECT 1 FROM %I x WHERE x::text LIKE %L', table_name, '%' || $1 || '%'),
               true, false, '')::text LIKE '%row%'",
    )
    .bind(&marker)
    .fetch_all(stack.pool())
    .await
    .expect("searches");
    assert_eq!(stored, Vec::<String>::new());
    for part in stack.parts() {
        assert!(!stack.log(part).contains(&marker), "{part:?}");
    }
}
