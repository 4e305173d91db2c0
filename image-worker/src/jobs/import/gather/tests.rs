//! Fetches the images of a gallery from a shop on the loopback interface.

use std::path::PathBuf;

use db::jobs::Windows;
use domain::asset::UploadMetadata;
use egress::{AllowList, Client, ClientConfig, Guard};
use raster::{Channels, Color, Encoding, OutputFormat};
use taskqueue::Waker;
use testkit::{Answer, Receiver};
use worker::Pixels;

use super::*;

/// Far longer than a response over loopback takes.
const PATIENCE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const WINDOWS: Windows = Windows { unread: HOUR, finalized: HOUR, tombstone: HOUR, failed: HOUR, video: HOUR };

fn png(side: u32) -> Vec<u8> {
    let pixels = vec![7; 3 * (side * side) as usize];
    let image = raster::Bitmap::new(Size::new(side, side), Channels::Rgb, pixels).expect("as many as fit");
    let encoding = Encoding { format: OutputFormat::Png, quality: 85, flatten: Color::WHITE };
    raster::encode(&image, &encoding).expect("encodes")
}

/// A shop with one image and the other responses that can take its place.
async fn shop() -> Receiver {
    let shop = Receiver::start().await;
    let (image, small) = (png(200), png(199));
    shop.answer_with(move |request| match request.path.as_str() {
        "/a.png" => Answer::status(200).body(image.clone()),
        "/small.png" => Answer::status(200).body(small.clone()),
        "/text" => Answer::status(200).body("no image"),
        "/silent" => Answer::never(),
        "/dripping" => Answer::drip(Duration::from_millis(10)),
        "/broken" => Answer::status(200).breaking_off(),
        _ => Answer::status(404),
    });
    shop
}

/// The image-worker, which is built with its tests and lies one directory above them.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("is a file");
    test.ancestors().nth(2).expect("a directory").join(crate::NAME)
}

/// A worker that can reach the shop. Fetching uses neither the database nor the store.
fn worker(shop: &Receiver) -> Worker {
    let guard = Guard::new(AllowList::parse(&shop.authority()).expect("a list"));
    let config = ClientConfig { guard, extra_ca_pem: Some(shop.ca_pem().as_bytes().to_vec()) };
    let nowhere = format!("file://{}", std::env::temp_dir().display());
    Worker {
        pool: sqlx::PgPool::connect_lazy("postgres://nobody@127.0.0.1:9/none").expect("a URL"),
        blobs: blob::Store::open(&nowhere).expect("a directory"),
        cache: cache::Cache::connect("redis://127.0.0.1:9/0", "test").expect("a URL"),
        waker: Waker::new().0,
        reviews: Default::default(),
        pixels: Pixels::new(1, 1 << 28, program()),
        egress: Client::new(config).expect("a client"),
        public_url: "https://canvas.example".into(),
        windows: WINDOWS,
        storage_max: 0,
        upload_metadata: UploadMetadata::Auto,
        worker_silent: Duration::from_secs(15),
        marks: worker::marks::OriginMarks(true),
    }
}

fn page() -> Url {
    Url::parse("https://shop.example/product").expect("a URL")
}

fn urls(shop: &Receiver, paths: &[&str]) -> Vec<Url> {
    paths.iter().map(|path| Url::parse(&shop.url(path)).expect("a URL")).collect()
}

#[tokio::test]
async fn the_first_file_that_is_an_image_is_taken() {
    let shop = shop().await;
    let worker = worker(&shop);
    let deadline = Instant::now() + PATIENCE;
    let files = urls(&shop, &["/absent", "/text", "/broken", "/small.png", "/a.png", "/silent"]);
    let fetched = first(&worker, "me", &page(), files, deadline).await.expect("fetches");
    let Fetched::Image(url, image) = fetched else { panic!("{fetched:?}") };
    assert_eq!((url.path(), image.size), ("/a.png", Size::new(200, 200)));
    for (paths, expected) in [
        (&["/absent", "/broken"][..], SkipReason::Unreachable),
        (&["/absent", "/text", "/broken"], SkipReason::Unusable),
        (&["/text", "/small.png", "/absent", "/text"], SkipReason::TooSmall),
    ] {
        let none = first(&worker, "me", &page(), urls(&shop, paths), deadline).await.expect("fetches");
        assert!(matches!(none, Fetched::Nothing(reason) if reason == expected), "{paths:?}: {none:?}");
    }
}

#[tokio::test]
async fn what_the_deadline_cuts_off_is_distinguished_from_what_is_no_image() {
    let shop = shop().await;
    let worker = worker(&shop);
    for path in ["/silent", "/dripping"] {
        let soon = Instant::now() + Duration::from_millis(200);
        let cut = first(&worker, "me", &page(), urls(&shop, &[path, "/a.png"]), soon).await.expect("fetches");
        assert!(matches!(cut, Fetched::OutOfTime), "{path}: {cut:?}");
        assert!(Instant::now() >= soon - Duration::from_millis(1), "{path}");
    }
    let over = Instant::now();
    let late = first(&worker, "me", &page(), urls(&shop, &["/a.png"]), over).await.expect("fetches");
    assert!(matches!(late, Fetched::OutOfTime), "{late:?}");
}

#[tokio::test]
async fn a_page_that_is_not_read_by_the_deadline_is_given_up() {
    let worker = worker(&shop().await);
    let page = Downloaded {
        url: Url::parse("https://shop.example/").expect("a URL"),
        content_type: None,
        bytes: "<img src=/a.png>".into(),
        truncated: false,
    };
    let held = worker.pixels.reserve(u64::MAX).await;
    let late = read(&worker, &page, None, Instant::now() + Duration::from_millis(50)).await;
    assert_eq!(late.expect_err("nothing is free"), (FailureKind::Timeout, "took too long"));
    drop(held);
    let (discovered, chosen) = read(&worker, &page, None, Instant::now() + PATIENCE).await.expect("is read");
    assert_eq!((discovered, chosen.is_ok()), (1, true));
}
