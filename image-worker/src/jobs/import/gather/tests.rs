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
        upload_metadata: UploadMetadata::Auto,
        worker_silent: Duration::from_secs(15),
        heif: None,
        marks: worker::marks::OriginMarks(true),
        free_work: service::account::FreeWork::new().0,
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
    let budget = Budget::new(PATIENCE, IMPORT_BYTES_MAX);
    let files = urls(&shop, &["/absent", "/text", "/broken", "/small.png", "/a.png", "/silent"]);
    let fetched = first(&worker, "me", &page(), files, &budget).await.expect("fetches");
    let Fetched::Image(url, image) = fetched else { panic!("{fetched:?}") };
    assert_eq!((url.path(), image.size), ("/a.png", Size::new(200, 200)));
    for (paths, expected) in [
        (&["/absent", "/broken"][..], SkipReason::Unreachable),
        (&["/absent", "/text", "/broken"], SkipReason::Unusable),
        (&["/text", "/small.png", "/absent", "/text"], SkipReason::TooSmall),
    ] {
        let none = first(&worker, "me", &page(), urls(&shop, paths), &budget).await.expect("fetches");
        assert!(matches!(none, Fetched::Nothing(reason) if reason == expected), "{paths:?}: {none:?}");
    }
}

#[tokio::test]
async fn what_the_deadline_cuts_off_is_distinguished_from_what_is_no_image() {
    let shop = shop().await;
    let worker = worker(&shop);
    for path in ["/silent", "/dripping"] {
        let soon = Budget::new(Duration::from_millis(200), IMPORT_BYTES_MAX);
        let cut = first(&worker, "me", &page(), urls(&shop, &[path, "/a.png"]), &soon).await.expect("fetches");
        assert!(matches!(cut, Fetched::OverBudget), "{path}: {cut:?}");
        assert!(Instant::now() >= soon.deadline - Duration::from_millis(1), "{path}");
    }
    let over = Budget::new(Duration::ZERO, IMPORT_BYTES_MAX);
    let late = first(&worker, "me", &page(), urls(&shop, &["/a.png"]), &over).await.expect("fetches");
    assert!(matches!(late, Fetched::OverBudget), "{late:?}");
}

#[tokio::test]
async fn the_bytes_of_an_import_are_counted_over_all_files() {
    let shop = shop().await;
    let worker = worker(&shop);
    let size = png(200).len() as u64;
    for (bytes, enough) in [(2 * size - 1, false), (2 * size, true), (2 * size + 1, true)] {
        let budget = Budget::new(PATIENCE, bytes);
        let fetch = async || first(&worker, "me", &page(), urls(&shop, &["/a.png"]), &budget).await.expect("fetches");
        assert!(matches!(fetch().await, Fetched::Image(..)));
        assert_eq!(matches!(fetch().await, Fetched::Image(..)), enough, "{bytes}");
    }
    // What breaks off or is no image counts too.
    let budget = Budget::new(PATIENCE, size);
    let files = urls(&shop, &["/text", "/broken", "/a.png"]);
    let none = first(&worker, "me", &page(), files, &budget).await.expect("fetches");
    assert!(matches!(none, Fetched::OverBudget), "{none:?}");
    let asked = shop.requests().len();
    let late = first(&worker, "me", &page(), urls(&shop, &["/a.png"]), &budget).await.expect("fetches");
    assert!(matches!(late, Fetched::OverBudget), "{late:?}");
    assert_eq!(shop.requests().len(), asked, "nothing more is asked for");
}

#[tokio::test]
async fn a_server_that_sends_too_slowly_is_dropped_and_the_next_file_is_taken() {
    let shop = shop().await;
    let worker = worker(&shop);
    let (budget, began) = (Budget::new(PATIENCE, IMPORT_BYTES_MAX), Instant::now());
    let page = page();
    let fetch = |path| first(&worker, "me", &page, urls(&shop, &[path, "/a.png"]), &budget);
    let fetched = futures_util::future::join_all(["/silent", "/dripping"].map(fetch)).await;
    for fetched in fetched {
        assert!(matches!(fetched, Ok(Fetched::Image(..))), "{fetched:?}");
    }
    assert!((8..20).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
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
