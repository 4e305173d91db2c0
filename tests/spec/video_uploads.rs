//! Uploads of videos (docs/reference/assets.md#upload-of-a-video).

use bytes::Bytes;
use e2e::api::{key, text};
use e2e::{PATIENCE, Reply, Stack, User, films, images};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

const MP4: &str = "video/mp4";

fn part(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    [&(8 + content.len() as u32).to_be_bytes()[..], name, content].concat()
}

/// A film with some bytes replaced at the first place where they are.
fn with(film: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = film.windows(from.len()).position(|part| part == from).expect("is there");
    let mut changed = films::unique(film);
    changed[at..at + to.len()].copy_from_slice(to);
    changed
}

async fn upload(user: &User, path: &str, media_type: &str, film: Vec<u8>) -> Reply {
    user.post(path).body(media_type, film).await
}

/// Waits until the asset has a poster.
async fn with_poster(user: &User, handle: &str) -> Value {
    let until = Instant::now() + PATIENCE;
    loop {
        let read = user.get(&format!("/assets/{handle}")).await.ok();
        if read["asset"]["previewUrl"].is_string() {
            return read["asset"].clone();
        }
        assert!(Instant::now() < until, "no poster: {read}");
        sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_video_becomes_an_asset_with_size_duration_sound_and_poster() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    for (film, size, seconds, audio, poster) in [
        (films::REORDERED, (96, 64), 1.2, true, Some((96, 64))),
        (films::SILENT, (96, 64), 1.0, false, Some((96, 64))),
        (films::TURNED, (64, 96), 0.4, false, Some((64, 96))),
        (films::AV1, (96, 64), 0.4, true, None),
    ] {
        let file = films::unique(film);
        let asset = user.upload(MP4, file.clone()).await;
        assert_eq!((&asset["kind"], &asset["mimeType"]), (&json!("video"), &json!(MP4)), "{asset}");
        assert_eq!((asset["width"].as_u64(), asset["height"].as_u64()), (Some(size.0), Some(size.1)), "{asset}");
        let lasts = asset["durationSeconds"].as_f64().expect("is known");
        assert!((lasts - seconds).abs() < 0.06, "{asset}");
        assert_eq!(asset["hasAudio"], audio, "{asset}");
        let handle = text(&asset, "/handle");
        let played = stack.anonymous().get(text(&asset, "/videoUrl")).await.expect(200);
        assert_eq!(played.body, file, "stored as it came");
        if let Some(expected) = poster {
            let asset = with_poster(&user, handle).await;
            let picture = stack.anonymous().get(text(&asset, "/previewUrl")).await.expect(200).body;
            assert_eq!(images::size(&picture), expected);
            // The same film again has its poster at once.
            let again = user.upload(MP4, file).await;
            assert!(again["previewUrl"].is_string(), "{again}");
        }
    }
}

#[tokio::test]
async fn a_canvas_shows_an_uploaded_video_in_a_video_node() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let reply = upload(&user, &format!("/assets?canvasId={canvas}"), MP4, films::unique(films::SILENT)).await;
    let asset = reply.expect(201).json()["asset"].clone();
    let read = user.canvas(&canvas).await;
    let node = &read["nodes"][0];
    assert_eq!((&node["type"], &node["asset"]), (&json!("video"), &asset["handle"]), "{read}");
    let path = format!("/assets?canvasId={canvas}&node=none");
    let hidden = upload(&user, &path, MP4, films::unique(films::SILENT)).await.expect(201).json();
    let nodes = user.canvas(&canvas).await["nodes"].as_array().map(Vec::len);
    assert_eq!((nodes, hidden["asset"]["kind"].as_str()), (Some(1), Some("video")), "{hidden}");
    // In the place of an image it is refused.
    let image = json!({"type": "image", "position": {"x": 0, "y": 0}, "asset": hidden["asset"]["handle"]});
    let batch = json!({
        "baseRevision": user.canvas(&canvas).await["revision"], "idempotencyKey": key(),
        "operations": [{"type": "node.create", "node": image}],
    });
    let refused = user.send(&format!("/canvases/{canvas}/operations"), &batch).await;
    refused.expect_error(422, "unprocessable_entity", &["operations[0].node.asset"]);
}

#[tokio::test]
async fn what_is_no_such_video_is_refused_with_its_format() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    for (film, format) in [
        (films::HEVC.to_vec(), "hevc"),
        (films::FRAGMENTED.to_vec(), "fragmented"),
        (films::MP3.to_vec(), "mp4a"),
        (with(films::SILENT, b"isom", b"qt  "), "quicktime"),
        (with(films::SILENT, b"isom", b"heic"), "heic"),
        (with(films::SILENT, b"isom", b"avif"), "avif"),
        (with(films::SILENT, b"avc1\0\0\0\0\0\0\0\x01", b"mp4v"), "mp4v"),
        (with(films::SILENT, b"vide", b"soun"), "audio"),
        (images::png(4, 4), "unknown"),
        (b"no video".to_vec(), "unknown"),
    ] {
        let reply = upload(&user, "/assets", MP4, film).await;
        let refused = reply.expect(415).json();
        assert_eq!(refused["error"]["code"], "unsupported_media_type", "{refused}");
        assert_eq!(refused["error"]["details"]["format"], format, "{refused}");
    }
    for declared in ["application/octet-stream", "image/png"] {
        upload(&user, "/assets", declared, films::SILENT.to_vec()).await.expect(415);
    }
}

#[tokio::test]
async fn a_damaged_video_and_one_beyond_a_limit_are_refused() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let cut = films::SILENT[..films::SILENT.len() - 1].to_vec();
    let wide = |side: u16| {
        let at = films::SILENT.windows(4).position(|part| part == [0, 96, 0, 64]).expect("is there");
        let mut film = films::unique(films::SILENT);
        film[at..at + 2].copy_from_slice(&side.to_be_bytes());
        film
    };
    let lasting = |milliseconds: u32| {
        let at = films::SILENT.windows(4).position(|part| part == b"mvhd").expect("is there");
        let mut film = films::unique(films::SILENT);
        film[at + 20..at + 24].copy_from_slice(&milliseconds.to_be_bytes());
        film
    };
    // Its index is at the end, so that what the tables say of the file stays true.
    let with_tracks = |count: usize| {
        let at = |name: &[u8; 4]| films::SILENT.windows(4).position(|part| part == name).expect("is there") - 4;
        let (index, track, user) = (at(b"moov"), at(b"trak"), at(b"udta"));
        let subtitles = with(&films::SILENT[track..user], b"vide", b"sbtl");
        let subtitles = &subtitles[..user - track];
        let tracks = [&films::SILENT[index + 8..user], &subtitles.repeat(count - 1)].concat();
        [with(films::SILENT, b"moov", b"free"), part(b"moov", &tracks)].concat()
    };
    for (name, film, good) in [
        ("31 tracks", with_tracks(31), true),
        ("32 tracks", with_tracks(32), true),
        ("33 tracks", with_tracks(33), false),
        ("cut off", cut, false),
        ("a box of no size", with(films::SILENT, b"\0\0\0\x08free", b"\0\0\0\x07"), false),
        ("an index that is larger than the file", [&films::SILENT[..28], &part(b"moov", b"")[..4]].concat(), false),
        ("two indexes", [films::SILENT, &part(b"moov", b"")].concat(), false),
        ("an empty index", [&films::SILENT[..32], &part(b"moov", b"")].concat(), false),
        ("4095 pixels", wide(4095), true),
        ("4096 pixels", wide(4096), true),
        ("4097 pixels", wide(4097), false),
        ("no pixels", wide(0), false),
        ("just below ten minutes", lasting(599_999), true),
        ("ten minutes", lasting(600_000), true),
        ("beyond ten minutes", lasting(600_001), false),
    ] {
        let reply = upload(&user, "/assets", MP4, film).await;
        let (status, answer) = (reply.status, reply.json());
        assert_eq!(status, if good { 201 } else { 422 }, "{name}: {answer}");
        assert!(good || answer["error"]["fields"][0]["field"] == "body", "{name}: {answer}");
    }
}

/// A film and free space, of `bytes` in all, without a declared length.
fn padded(film: &[u8], bytes: usize) -> reqwest::Body {
    static ZEROS: [u8; 256 * 1024] = [0; 256 * 1024];
    let free = bytes - film.len();
    let head = [film, &(free as u32).to_be_bytes(), b"free"].concat();
    let rest = bytes - head.len();
    let starts = (0..rest).step_by(ZEROS.len());
    let zeros = starts.map(move |start| Bytes::from_static(&ZEROS[..ZEROS.len().min(rest - start)]));
    let pieces = std::iter::once(head.into()).chain(zeros).map(Ok::<_, std::io::Error>);
    reqwest::Body::wrap_stream(futures_util::stream::iter(pieces))
}

#[tokio::test]
async fn an_upload_of_a_video_has_at_most_500_mebibytes() {
    const LIMIT: usize = 524_288_000;
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let film = films::unique(films::SILENT);
    let stored = user.post("/assets").body(MP4, padded(&film, LIMIT)).await.expect(201).json();
    assert_eq!(stored["asset"]["bytes"], LIMIT);
    // A client that is still sending can see the connection close before it reads the response.
    if let Ok(reply) = user.post("/assets").body(MP4, padded(&film, LIMIT + 1)).attempt().await {
        reply.expect_error(413, "payload_too_large", &[]);
    }
    let listed = user.get("/assets?kind=video").await.ok();
    assert_eq!(listed["assets"].as_array().map(Vec::len), Some(1), "an upload that was too large is not listed");
    // Images keep their own limit, whatever the body is.
    if let Ok(reply) = user.post("/assets").body("image/png", padded(&images::png(4, 4), 52_428_801)).attempt().await {
        reply.expect_error(413, "payload_too_large", &[]);
    }
    user.delete(&format!("/assets/{}", text(&stored, "/asset/handle"))).await;
}

#[tokio::test]
async fn place_and_device_are_removed_and_the_owner_keeps_the_original() {
    let stack = &Stack::without_workers().await;
    let owner = stack.user().await;
    for (film, classes) in [(films::PLACE, json!(["location", "device"])), (films::PLACE_3GP, json!(["location"]))] {
        let file = films::unique(film);
        let has_place = |bytes: &[u8]| bytes.windows(8).any(|part| part == b"+48.2082" || part == b"earth\0\0\0");
        let asset = owner.upload(MP4, file.clone()).await;
        assert_eq!(asset["metadataRemoved"], classes, "{asset}");
        assert_eq!(asset["bytes"].as_u64(), Some(file.len() as u64), "free boxes of equal size");
        let handle = text(&asset, "/handle");
        let served = owner.get(&format!("/assets/{handle}/content")).await.expect(200).body;
        assert!(!has_place(&served) && served != file && served.len() == file.len());
        let data = |bytes: &[u8]| bytes.windows(4).position(|part| part == b"mdat");
        assert_eq!(data(&served), data(&file), "nothing moves");
        let original = owner.get(&format!("/assets/{handle}/content?original=true")).await.expect(200).body;
        assert_eq!(original, file);
        let kept = upload(&owner, "/assets?metadata=keep", MP4, films::unique(film)).await.expect(201).json();
        assert!(kept["asset"]["metadataRemoved"].is_null() || kept["asset"]["metadataRemoved"] == json!([]));
        let stripped = upload(&owner, "/assets?metadata=strip", MP4, films::unique(film)).await.expect(201).json();
        assert!(stripped["asset"]["original"].is_null(), "{stripped}");
    }
}

#[tokio::test]
async fn a_repeated_upload_of_a_video_is_a_replay() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (film, key) = (films::unique(films::SILENT), key());
    let first = user.post("/assets").header("Idempotency-Key", &key).body(MP4, film.clone()).await.expect(201).json();
    let again = user.post("/assets").header("Idempotency-Key", &key).body(MP4, film).await.expect(200).json();
    assert_eq!((&again["replayed"], &again["asset"]["handle"]), (&json!(true), &first["asset"]["handle"]));
}
