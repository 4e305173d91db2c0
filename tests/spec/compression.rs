//! Compression of long answers (docs/reference/conventions.md#compression).

use std::io::Read;

use e2e::api::text;
use e2e::{Reply, Stack, User};
use flate2::read::GzDecoder;
use futures_util::future::join_all;
use serde_json::{Value, json};

/// The body of a reply without its coding; `br` is not decoded.
fn decoded(reply: &Reply) -> Vec<u8> {
    match reply.header("content-encoding") {
        None => reply.body.to_vec(),
        Some("zstd") => zstd::decode_all(&*reply.body).expect("zstd"),
        Some("gzip") => {
            let mut plain = Vec::new();
            GzDecoder::new(&*reply.body).read_to_end(&mut plain).expect("gzip");
            plain
        }
        other => panic!("{other:?}: {reply}"),
    }
}

/// A canvas whose document is a little longer than `bytes`.
async fn canvas_of(user: &User, bytes: usize) -> String {
    let id = text(&user.make_canvas().await, "/id").to_owned();
    let nodes: Vec<Value> = (0..bytes / 10_000 + 1)
        .map(|number| {
            let custom: String = (0..9_500).map(|at| char::from(b'a' + ((at * at + number) % 23) as u8)).collect();
            json!({"type": "node.create", "node": {"type": "text", "metadata": {"custom": {"a": custom}}}})
        })
        .collect();
    user.apply(&id, json!(nodes)).await;
    id
}

#[tokio::test]
async fn the_longer_an_answer_is_the_cheaper_is_its_coding() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let get = async |path: &str, accepted: &str| {
        let reply = user.get(path).header("accept-encoding", accepted).await.expect(200);
        let vary = reply.header("vary").expect("varies").to_ascii_lowercase();
        assert!(vary.contains("accept-encoding"), "{vary}");
        reply
    };
    // Up to 256 KiB in three codings, above in two.
    let short = format!("/canvases/{}", canvas_of(&user, 180_000).await);
    let long = format!("/canvases/{}", canvas_of(&user, 300_000).await);
    // The document of the contract is long, and is no canvas.
    for (path, br) in [(&*short, Some("br")), (&*long, None), ("/openapi.json", None)] {
        let plain = user.get(path).await.expect(200);
        assert_eq!(plain.header("content-encoding"), None);
        assert_eq!(plain.body.len() > 256 * 1024, br.is_none(), "{path}");
        for (accepted, coding) in [
            ("br", br),
            ("zstd", Some("zstd")),
            ("gzip", Some("gzip")),
            ("gzip, deflate, br, zstd", Some("zstd")),
            ("br;q=0.1, gzip;q=0.5", Some("gzip")),
            // Of a canvas and of a long answer, the forms that the gateway makes itself come first.
            ("br, gzip;q=0.5", Some("gzip")),
            ("identity;q=0", None),
        ] {
            // Made, and then cached.
            for _ in 0..2 {
                let reply = get(path, accepted).await;
                assert_eq!(reply.header("content-encoding"), coding, "{path}: {accepted}");
                assert_eq!(reply.header("etag"), plain.header("etag"), "{path}: {accepted}");
                if coding != Some("br") {
                    assert!(decoded(&reply) == plain.body, "{path}: {accepted}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_compressed_canvas_is_the_one_of_its_revision() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let id = canvas_of(&user, 300_000).await;
    let path = format!("/canvases/{id}");
    for round in 0..3 {
        let title = format!("round {round}");
        user.apply(&id, json!([{"type": "canvas.update", "title": title}])).await;
        let readers = ["zstd", "gzip", "identity"].iter().cycle().take(12);
        let replies =
            join_all(readers.map(async |coding| user.get(&path).header("accept-encoding", coding).await)).await;
        let etag = replies[0].header("etag").expect("an entity tag").to_owned();
        for reply in replies {
            let reply = reply.expect(200);
            assert_eq!(reply.header("etag"), Some(&*etag));
            let read: Value = serde_json::from_slice(&decoded(&reply)).expect("JSON");
            assert_eq!(text(&read, "/canvas/title"), title);
        }
        user.get(&path).header("accept-encoding", "zstd").header("if-none-match", &etag).await.expect(304);
    }
    // A compressed form is for those alone who may read the canvas.
    stack.user().await.get(&path).header("accept-encoding", "zstd").await.expect(404);
}

#[tokio::test]
async fn what_anybody_may_read_has_forms_that_are_made_once() {
    let stack = &Stack::without_workers().await;
    let anyone = stack.anonymous();
    for path in [
        "/openapi.json",
        "/digest.md",
        "/console/openapi.json",
        "/llms.txt",
        "/docs/guides/agents",
        "/docs/guides.json",
    ] {
        let plain = anyone.get(path).await.expect(200);
        assert_eq!(plain.header("content-encoding"), None);
        // Brotli takes longest, and nothing limits how often a stranger asks.
        for (accepted, coding) in [("br", None), ("gzip", Some("gzip")), ("gzip, deflate, br, zstd", Some("zstd"))] {
            let replies =
                join_all((0..8).map(async |_| anyone.get(path).header("accept-encoding", accepted).await)).await;
            for reply in replies {
                let reply = reply.expect(200);
                assert_eq!(reply.header("content-encoding"), coding, "{path}: {accepted}");
                assert!(reply.headers.get_all("vary").iter().any(|vary| vary == "accept-encoding"), "{path}");
                assert!(decoded(&reply) == plain.body, "{path}: {accepted}");
            }
        }
    }
}
