//! Tests of frames and references that are fetched from URLs.

use std::time::Duration;

use db::jobs::outputs::OutputState;
use domain::job::FailureCode;
use domain::limits::UPLOAD_MAX;
use domain::model::{Capability, ProviderKind};
use providers::Calls;
use testkit::Answer;
use testkit::providers::Vendor;

use super::fixture::{DEADLINE, VideoFixture, failure, png};

#[tokio::test]
async fn a_foreign_frame_goes_along_with_one_that_is_stored() {
    let fixture = VideoFixture::new(Vendor::Comfy).await;
    fixture.host.answer(Answer::status(200).body(png(64, 36)));
    let _running = fixture.work();
    let mut wish = fixture.wish(Capability::VideoFromFrames);
    wish.first_frame = Some(fixture.foreign("/first.png"));
    wish.last_frame = Some(fixture.upload("last", png(36, 64)).await);
    let record = fixture.ended(fixture.start(wish).await).await;
    fixture.video(&record).await;
    assert_eq!((fixture.simulator.submits()[0].images, fixture.host.requests().len()), (2, 1));
}

#[tokio::test]
async fn foreign_images_together_may_be_as_large_as_an_upload() {
    let fixture = VideoFixture::embedded().await;
    let (small, most) = (png(8, 8), UPLOAD_MAX as usize);
    let (mut fitting, mut large) = (small.to_vec(), small.to_vec());
    // Bytes after the end of the image are ignored, but they count towards the size limit.
    fitting.resize(most - small.len(), 0);
    large.resize(most - small.len() + 1, 0);
    let (fitting, large) = (Answer::status(200).body(fitting), Answer::status(200).body(large));
    fixture.host.answer_with(move |request| match request.path.as_str() {
        "/fitting.png" => fitting.clone(),
        "/large.png" => large.clone(),
        _ => Answer::status(200).body(small.clone()),
    });
    let _running = fixture.work();
    for (first, fits) in [("/fitting.png", true), ("/large.png", false)] {
        let mut wish = fixture.wish(Capability::VideoFromFrames);
        wish.first_frame = Some(fixture.foreign(first));
        wish.last_frame = Some(fixture.foreign("/last.png"));
        let record = fixture.job_when(fixture.start(wish).await, "its end", |job| job.status.is_terminal()).await;
        if fits {
            fixture.video(&record).await;
        } else {
            let (code, message) = failure(&record);
            let reported = message.contains("/last.png") && message.contains("too large");
            assert!(code == FailureCode::ActionInputInvalid && reported, "{code:?}: {message}");
        }
    }
}

#[tokio::test]
async fn frames_are_fetched_once_and_not_before_their_provider_has_a_place() {
    let mut fixture = VideoFixture::new(Vendor::Comfy).await;
    fixture.calls = Calls::new(1);
    fixture.host.answer(Answer::status(200).body(png(64, 36)));
    let busy = fixture.calls.enter(ProviderKind::Managed.as_str()).await;
    assert!(busy.is_some());
    let _running = fixture.work();
    let mut jobs = Vec::new();
    for _ in 0..2 {
        let mut wish = fixture.wish(Capability::VideoFromImage);
        wish.first_frame = Some(fixture.foreign("/first.png"));
        jobs.push(fixture.start(wish).await);
    }
    fixture.until_parked().await;
    assert!(fixture.host.requests().is_empty(), "the provider is busy");
    drop(busy);
    for id in jobs {
        let record = fixture.job_when(id, "the end of the job", |job| job.status.is_terminal()).await;
        fixture.video(&record).await;
    }
    assert_eq!(fixture.host.requests().len(), 2, "one for each job");
}

#[tokio::test]
async fn slow_hosts_of_one_account_hold_up_nobody_elses_videos() {
    let fixture = VideoFixture::new(Vendor::Comfy).await;
    fixture.host.answer(Answer::drip(Duration::from_millis(100)));
    // A latency longer than any test.
    fixture.simulator.take(Duration::from_secs(600));
    let _running = fixture.work();
    let under_way = fixture.start(fixture.wish(Capability::VideoGenerate)).await;
    fixture.until_output_is(under_way, OutputState::Submitted).await;
    let other = fixture.other().await;
    for _ in 0..3 {
        let mut wish = fixture.wish(Capability::VideoFromFrames);
        wish.first_frame = Some(fixture.foreign("/first.png"));
        wish.last_frame = Some(fixture.foreign("/last.png"));
        fixture.start_as(&other, wish).await;
    }
    fixture.host.wait_for(1, DEADLINE).await;
    let mut wish = fixture.wish(Capability::VideoFromImage);
    wish.first_frame = Some(fixture.upload("first", png(64, 36)).await);
    let mine = fixture.start(wish).await;
    fixture.until_output_is(mine, OutputState::Submitted).await;
    assert_eq!(fixture.host.requests().len(), 1, "an account has one job's images fetched at a time");
    fixture.simulator.finish();
    for id in [under_way, mine] {
        let record = fixture.job_when(id, "the end of the job", |job| job.status.is_terminal()).await;
        fixture.video(&record).await;
    }
}
