use std::time::Duration;

use app::job::Cancellation;
use bytes::Bytes;
use db::jobs::outputs::OutputState;
use domain::job::{CancelReason, FailureCode, JobStatus, Record, VideoImage};
use domain::limits::TASK_CLAIMS_MAX;
use domain::model::Capability;
use domain::origin::DigitalSourceType;
use sha2::{Digest, Sha256};
use testkit::providers::Vendor;

use super::fixture::{VideoFixture, failure, png};

/// The term that a video carries.
fn mark(video: &[u8]) -> Vec<String> {
    raster::xmp::Properties::of_file(video).digital_source_types
}

/// A latency longer than any test.
const AGES: Duration = Duration::from_secs(600);

#[tokio::test]
async fn every_provider_of_videos_makes_one() {
    use Vendor::{BlackForestLabs, Comfy, Fal, Google, Replicate, Runway};
    for vendor in [Runway, Fal, Replicate, BlackForestLabs, Google, Comfy] {
        let fixture = VideoFixture::new(vendor).await;
        let _running = fixture.work();
        let id = fixture.start(fixture.wish(Capability::VideoGenerate)).await;
        let record = fixture.ended(id).await;
        let video = fixture.video(&record).await;
        assert_eq!(&video[4..8], b"ftyp", "{vendor:?}");
        assert_eq!(mark(&video), [DigitalSourceType::TrainedAlgorithmicMedia.uri()], "{vendor:?}");
        assert_eq!((record.credit_cost, fixture.accepted(id), fixture.orphans().await), (7, 1, 0), "{vendor:?}");
        assert_eq!(fixture.simulator.leaks(), 0, "{vendor:?}: the key goes to the provider alone");
    }
}

#[tokio::test]
async fn the_run_of_a_video_that_is_in_the_answer_is_recorded() {
    let fixture = VideoFixture::new(Vendor::Google).await;
    fixture.simulator.answer_finished();
    let _running = fixture.work();
    let id = fixture.start(fixture.wish(Capability::VideoGenerate)).await;
    let record = fixture.ended(id).await;
    assert_eq!(&fixture.video(&record).await[4..8], b"ftyp");
    assert!(record.provider_run.is_some());
    assert_eq!((fixture.accepted(id), fixture.simulator.polls()), (1, 0));
}

#[tokio::test]
async fn frames_go_along() {
    for (vendor, capability) in [
        (Vendor::Runway, Capability::VideoFromImage),
        (Vendor::Comfy, Capability::VideoFromImage),
        (Vendor::Comfy, Capability::VideoFromFrames),
    ] {
        let fixture = VideoFixture::new(vendor).await;
        let _running = fixture.work();
        let mut wish = fixture.wish(capability);
        wish.first_frame = Some(fixture.upload("first", png(64, 36)).await);
        if capability == Capability::VideoFromFrames {
            wish.last_frame = Some(fixture.upload("last", png(36, 64)).await);
        }
        let frames = wish.images().count();
        let id = fixture.start(wish).await;
        let record = fixture.ended(id).await;
        let video = fixture.video(&record).await;
        assert_eq!(mark(&video), [DigitalSourceType::CompositeWithTrainedAlgorithmicMedia.uri()], "{vendor:?}");
        assert_eq!(fixture.simulator.submits()[0].images, frames, "{vendor:?} {capability}");
    }
}

#[tokio::test]
async fn a_video_comes_whole_however_large_and_however_often_it_breaks_off() {
    /// More than the buffer of the blob store's writer.
    const LARGE: usize = 20 << 20;
    let fixture = VideoFixture::new(Vendor::Runway).await;
    fixture.simulator.weigh(LARGE);
    fixture.simulator.cut(1);
    let _running = fixture.work();
    let id = fixture.start(fixture.wish(Capability::VideoGenerate)).await;
    let record = fixture.ended(id).await;
    let video = fixture.video(&record).await;
    let movie = video.windows(4).rposition(|kind| kind == b"moov").expect("its last box");
    let origin = video.windows(4).rposition(|kind| kind == b"uuid").expect("the mark");
    assert!(video.len() > LARGE && (0..200).contains(&(origin - movie)), "the end is where it belongs");
    let stored: Vec<u8> = sqlx::query_scalar("SELECT sha256 FROM blobs WHERE state = 'stored' AND bytes = $1")
        .bind(video.len() as i64)
        .fetch_one(fixture.database.pool())
        .await
        .expect("is stored once");
    assert_eq!(stored, Sha256::digest(&video).as_slice());
    assert_eq!((fixture.accepted(id), record.credit_cost), (1, 7));
}

#[tokio::test]
async fn the_embedded_runtime_videos_from_frame_to_frame() {
    let fixture = VideoFixture::embedded().await;
    let _running = fixture.work();
    let mut wish = fixture.wish(Capability::VideoFromFrames);
    wish.first_frame = Some(fixture.upload("first", png(64, 36)).await);
    wish.last_frame = Some(fixture.upload("last", png(36, 64)).await);
    let id = fixture.start(wish).await;
    let record = fixture.ended(id).await;
    let video = fixture.video(&record).await;
    assert_eq!(&video[4..8], b"ftyp");
    assert_eq!(mark(&video), [DigitalSourceType::CompositeSynthetic.uri()]);
    assert_eq!(record.credit_cost, 7);
    assert!(fixture.simulator.submits().is_empty());
}

#[tokio::test]
async fn a_video_of_the_embedded_runtime_says_what_is_in_it() {
    let ai = DigitalSourceType::TrainedAlgorithmicMedia.uri();
    let made = raster::xmp::insert_xmp(png(64, 36).into(), raster::xmp::packet(&ai, None).as_bytes());
    for (capability, frame, expected) in [
        (Capability::VideoGenerate, None, DigitalSourceType::AlgorithmicMedia),
        (Capability::VideoFromImage, Some(made.into()), DigitalSourceType::CompositeWithTrainedAlgorithmicMedia),
    ] {
        let fixture = VideoFixture::embedded().await;
        let _running = fixture.work();
        let mut wish = fixture.wish(capability);
        wish.first_frame = match frame {
            Some(file) => Some(fixture.upload("first", file).await),
            None => None,
        };
        let id = fixture.start(wish).await;
        let record = fixture.ended(id).await;
        assert_eq!(mark(&fixture.video(&record).await), [expected.uri()]);
    }
}

#[tokio::test]
async fn an_image_that_cannot_be_used_fails_the_job_and_is_named() {
    let fixture = VideoFixture::embedded().await;
    let _running = fixture.work();
    let mut gone = fixture.upload("here", png(8, 8)).await;
    gone.asset.as_mut().expect("an asset").id = domain::id::AssetId::parse("gone").expect("valid");
    let inward = VideoImage { named: "https://127.0.0.1/a.png".into(), asset: None, role: None };
    let broken = fixture.upload("broken", Bytes::from_static(b"no picture")).await;
    for image in [gone, inward, broken] {
        let named = image.named.clone();
        let mut wish = fixture.wish(Capability::VideoFromImage);
        wish.first_frame = Some(image);
        let record = fixture.ended(fixture.start(wish).await).await;
        let (code, message) = failure(&record);
        assert!(code == FailureCode::ActionInputInvalid && message.contains(&named), "{code:?}: {message}");
        assert_eq!(record.credit_cost, 0);
    }
}

#[tokio::test]
async fn a_model_that_is_gone_fails_the_job() {
    let fixture = VideoFixture::embedded().await;
    let _running = fixture.work();
    let mut wish = fixture.wish(Capability::VideoGenerate);
    wish.model.id = "gone".into();
    let record = fixture.ended(fixture.start(wish).await).await;
    assert_eq!((failure(&record).0, record.credit_cost), (FailureCode::ProviderRejected, 0));
}

#[tokio::test]
async fn work_that_a_provider_has_is_stopped_there_and_charged() {
    for vendor in [Vendor::Runway, Vendor::Fal] {
        let fixture = VideoFixture::new(vendor).await;
        fixture.simulator.take(AGES);
        let _running = fixture.work();
        let id = fixture.start(fixture.wish(Capability::VideoGenerate)).await;
        fixture.until_output_is(id, OutputState::Submitted).await;
        assert!(matches!(fixture.cancel(id).await, Cancellation::Requested(_)), "{vendor:?}");
        let record = fixture.ended(id).await;
        assert_eq!((record.status, record.cancel_reason), (JobStatus::Canceled, Some(CancelReason::UserRequested)));
        assert_eq!((fixture.simulator.cancels(), record.credit_cost), (1, 7), "{vendor:?}: what it accepted");
    }
}

#[tokio::test]
async fn a_canceled_video_that_the_provider_finishes_anyway_is_charged_once_and_never_kept() {
    for vendor in [Vendor::Runway, Vendor::Fal] {
        let fixture = VideoFixture::new(vendor).await;
        fixture.simulator.take(AGES);
        fixture.simulator.ignore_cancels();
        let _running = fixture.work();
        let id = fixture.start(fixture.wish(Capability::VideoGenerate)).await;
        fixture.until_output_is(id, OutputState::Submitted).await;
        assert!(matches!(fixture.cancel(id).await, Cancellation::Requested(_)), "{vendor:?}");
        let ended = fixture.ended(id).await;
        assert!(fixture.simulator.cancel_requests() >= 1 && fixture.simulator.cancels() == 0, "{vendor:?}");
        fixture.simulator.finish();
        assert_canceled_for_good(&fixture, &ended).await;
    }
}

#[tokio::test]
async fn a_cancel_after_the_providers_end_is_a_cancel_all_the_same() {
    // fal answers that the request is already finished.
    for vendor in [Vendor::Fal, Vendor::Runway] {
        let fixture = VideoFixture::new(vendor).await;
        fixture.simulator.take(AGES);
        let doomed = fixture.work();
        let id = fixture.start(fixture.wish(Capability::VideoGenerate)).await;
        fixture.until_output_is(id, OutputState::Submitted).await;
        // The worker is stopped, so nothing observes that the work is finished before the
        // cancellation.
        drop(doomed);
        fixture.simulator.finish();
        assert!(matches!(fixture.cancel(id).await, Cancellation::Requested(_)), "{vendor:?}");
        fixture.execute("UPDATE task_queue SET lease_until = now() - interval '1 s' WHERE state = 'leased'").await;
        let _running = fixture.work();
        let ended = fixture.ended(id).await;
        assert!(fixture.simulator.cancel_requests() >= 1 && fixture.simulator.cancels() == 0, "{vendor:?}");
        assert_canceled_for_good(&fixture, &ended).await;
    }
}

/// Asserts that a job is canceled and charged for what the provider accepted, and that nothing is
/// left that could change it or be displayed.
async fn assert_canceled_for_good(fixture: &VideoFixture, ended: &Record) {
    assert_eq!((ended.status, ended.cancel_reason), (JobStatus::Canceled, Some(CancelReason::UserRequested)));
    assert_eq!((ended.credit_cost, fixture.simulator.submits().len()), (7, 1), "what it accepted, once");
    for nothing in [
        "SELECT count(*) FROM task_queue",
        "SELECT count(*) FROM blobs",
        "SELECT count(*) FROM assets",
        "SELECT count(*) FROM jobs WHERE video_blob IS NOT NULL",
    ] {
        let count: i64 = sqlx::query_scalar(nothing).fetch_one(fixture.database.pool()).await.expect("counts");
        assert_eq!(count, 0, "{nothing}");
    }
    assert_eq!(&fixture.ended(ended.id).await, ended);
}

#[tokio::test]
async fn a_video_is_stopped_and_charges_nothing() {
    let fixture = VideoFixture::embedded().await;
    let _running = fixture.work();
    let mut wish = fixture.wish(Capability::VideoGenerate);
    (wish.duration_seconds, wish.resolution) = (Some(30), Some("720p".into()));
    let id = fixture.start(wish).await;
    let record = fixture.job_when(id, "progress", |job| job.progress > 0.0).await;
    assert!(record.progress < 100.0 && record.status == JobStatus::Running);
    assert!(matches!(fixture.cancel(id).await, Cancellation::Requested(_)));
    let record = fixture.ended(id).await;
    assert_eq!((record.status, record.credit_cost), (JobStatus::Canceled, 0));
}

#[tokio::test]
async fn a_job_that_kills_its_workers_is_given_up_and_returned() {
    let fixture = VideoFixture::embedded().await;
    let id = fixture.start(fixture.wish(Capability::VideoGenerate)).await;
    let aged = sqlx::query("UPDATE task_queue SET claims = $1").bind(TASK_CLAIMS_MAX);
    aged.execute(fixture.database.pool()).await.expect("ages");
    let _running = fixture.work();
    let record = fixture.ended(id).await;
    assert_eq!((failure(&record).0, record.credit_cost), (FailureCode::RuntimeFailed, 0));
}
