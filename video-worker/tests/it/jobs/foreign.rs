//! Frames and references behind URLs.

use std::time::Duration;

use db::jobs::outputs::OutputState;
use domain::job::FailureCode;
use domain::limits::UPLOAD_MAX;
use domain::model::{Capability, ProviderKind};
use providers::Calls;
use testkit::Answer;
use testkit::providers::Vendor;

use super::studio::{DEADLINE, Studio, failure, png};

#[tokio::test]
async fn a_foreign_frame_goes_along_with_one_that_is_stored() {
    let studio = Studio::new(Vendor::Comfy).await;
    studio.host.answer(Answer::status(200).body(png(64, 36)));
    let _running = studio.work();
    let mut wish = studio.wish(Capability::VideoFromFrames);
    wish.first_frame = Some(studio.foreign("/first.png"));
    wish.last_frame = Some(studio.upload("last", png(36, 64)).await);
    let record = studio.ended(studio.start(wish).await).await;
    studio.video(&record).await;
    assert_eq!((studio.simulator.submits()[0].pictures, studio.host.requests().len()), (2, 1));
}

#[tokio::test]
async fn foreign_pictures_together_may_be_as_large_as_an_upload() {
    let studio = Studio::embedded().await;
    let (small, most) = (png(8, 8), UPLOAD_MAX as usize);
    let (mut fitting, mut large) = (small.to_vec(), small.to_vec());
    // What follows a picture's end is nobody's business, but it counts.
    fitting.resize(most - small.len(), 0);
    large.resize(most - small.len() + 1, 0);
    let (fitting, large) = (Answer::status(200).body(fitting), Answer::status(200).body(large));
    studio.host.answer_with(move |request| match request.path.as_str() {
        "/fitting.png" => fitting.clone(),
        "/large.png" => large.clone(),
        _ => Answer::status(200).body(small.clone()),
    });
    let _running = studio.work();
    for (first, fits) in [("/fitting.png", true), ("/large.png", false)] {
        let mut wish = studio.wish(Capability::VideoFromFrames);
        wish.first_frame = Some(studio.foreign(first));
        wish.last_frame = Some(studio.foreign("/last.png"));
        let record = studio.job_when(studio.start(wish).await, "its end", |job| job.status.is_terminal()).await;
        if fits {
            studio.video(&record).await;
        } else {
            let (code, message) = failure(&record);
            let told = message.contains("/last.png") && message.contains("too large");
            assert!(code == FailureCode::ActionInputInvalid && told, "{code:?}: {message}");
        }
    }
}

#[tokio::test]
async fn frames_are_fetched_once_and_not_before_their_provider_has_a_place() {
    let mut studio = Studio::new(Vendor::Comfy).await;
    studio.calls = Calls::new(1);
    studio.host.answer(Answer::status(200).body(png(64, 36)));
    let busy = studio.calls.enter(ProviderKind::Managed.as_str()).await;
    assert!(busy.is_some());
    let _running = studio.work();
    let mut jobs = Vec::new();
    for _ in 0..2 {
        let mut wish = studio.wish(Capability::VideoFromImage);
        wish.first_frame = Some(studio.foreign("/first.png"));
        jobs.push(studio.start(wish).await);
    }
    studio.until_parked().await;
    assert!(studio.host.requests().is_empty(), "the provider is busy");
    drop(busy);
    for id in jobs {
        let record = studio.job_when(id, "the end of the job", |job| job.status.is_terminal()).await;
        studio.video(&record).await;
    }
    assert_eq!(studio.host.requests().len(), 2, "one for each job");
}

#[tokio::test]
async fn slow_hosts_of_one_account_hold_up_nobody_elses_videos() {
    let studio = Studio::new(Vendor::Comfy).await;
    studio.host.answer(Answer::drip(Duration::from_millis(100)));
    // Longer than any test.
    studio.simulator.take(Duration::from_secs(600));
    let _running = studio.work();
    let under_way = studio.start(studio.wish(Capability::VideoGenerate)).await;
    studio.until_output_is(under_way, OutputState::Submitted).await;
    let other = studio.other().await;
    for _ in 0..3 {
        let mut wish = studio.wish(Capability::VideoFromFrames);
        wish.first_frame = Some(studio.foreign("/first.png"));
        wish.last_frame = Some(studio.foreign("/last.png"));
        studio.start_as(&other, wish).await;
    }
    studio.host.wait_for(1, DEADLINE).await;
    let mut wish = studio.wish(Capability::VideoFromImage);
    wish.first_frame = Some(studio.upload("first", png(64, 36)).await);
    let mine = studio.start(wish).await;
    studio.until_output_is(mine, OutputState::Submitted).await;
    studio.simulator.finish();
    for id in [under_way, mine] {
        let record = studio.job_when(id, "the end of the job", |job| job.status.is_terminal()).await;
        studio.video(&record).await;
    }
    assert_eq!(studio.host.requests().len(), 1, "an account has one job's pictures fetched at a time");
}
