//! Videos of the embedded runtime, made in this process by a pure function.
//!
//! Nothing is submitted to a provider, so a canceled job costs nothing. After a crash the video is
//! made again: the same order gives the same bytes.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use app::job::VideoOutput;
use domain::job::{Failure, FailureCode};
use domain::origin::{self, Work};
use embedded::video::{self, Brief, FRAMES_PER_SECOND};
use providers::{Calls, Entry, Order, Shape};
use tokio::time::sleep;
use worker::Interrupt;
use worker::files::Content;
use worker::generation::{GenerationKind, Step};
use worker::marks::marked;

use super::images::Reader;
use super::run::Run;

/// Interval of progress reports.
const REPORT_EVERY: Duration = Duration::from_millis(500);

/// State shared by the encoding thread and the waiting task.
struct Shared {
    wanted: AtomicBool,
    frames: AtomicU32,
}

/// Held by the task that waits for a video. Dropping it stops the encoding before the next frame,
/// because a thread cannot be stopped from outside.
struct StopOnDrop(Arc<Shared>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.wanted.store(false, Ordering::Relaxed);
    }
}

impl Run<'_> {
    /// Makes the video.
    pub(super) async fn render(&self, model: &Arc<Entry>) -> Result<Step<VideoOutput>, Interrupt> {
        self.task_run.check()?;
        let images = self.images(Reader::Embedded, ready(Some(()))).await?;
        let Some((mut images, ())) = images else { return Ok(Step::Wait(Calls::RETURN)) };
        let admitted = images.admitted.take();
        let origin = origin::of_output(Work::Draw, &images.origins);
        let packet = self.task_run.generator.worker.marks.packet(origin, &[]);
        let brief = brief(self.order(model, images)).map_err(failure)?;
        let frames = f64::from(brief.seconds * FRAMES_PER_SECOND);
        let shared = Arc::new(Shared { wanted: AtomicBool::new(true), frames: AtomicU32::new(0) });
        let stop = StopOnDrop(shared.clone());
        taskqueue::failpoint!("generation.submitting");
        let rendering = self.task_run.generator.worker.pixels.run(brief.memory_bytes(), move || {
            let is_wanted = || {
                shared.frames.fetch_add(1, Ordering::Relaxed);
                shared.wanted.load(Ordering::Relaxed)
            };
            video::render(&brief, is_wanted)
        });
        let rendered = self.task_run.unless_canceled(async {
            tokio::select! {
                rendered = rendering => rendered,
                never = self.report(&stop.0, frames) => match never {},
            }
        });
        let video = rendered.await??.map_err(failure)?;
        taskqueue::failpoint!("generation.accepted");
        let content = self
            .task_run
            .generator
            .worker
            .pixels
            .run(0, move || Content::new(marked(video, packet.as_deref())))
            .await?;
        let kept = self.task_run.retry_during_outage(|| async { Ok(self.keep_whole(&content).await?) }).await?;
        Ok(Step::Finished(kept, admitted))
    }

    /// Reports the progress of a video with this many frames.
    async fn report(&self, shared: &Shared, frames: f64) -> Infallible {
        loop {
            sleep(REPORT_EVERY).await;
            self.progress(f64::from(shared.frames.load(Ordering::Relaxed)) / frames).await;
        }
    }
}

fn brief(order: Order) -> Result<Brief, video::Error> {
    let Shape::Video { first_frame, last_frame, duration_seconds, aspect_ratio, resolution, .. } = order.shape else {
        return Err(video::Error::Shape);
    };
    let brief = Brief::new(order.prompt, duration_seconds, aspect_ratio.as_deref(), resolution.as_deref())?;
    Ok(Brief {
        first: first_frame.map(|image| image.bytes),
        last: last_frame.map(|image| image.bytes),
        references: order.references.into_iter().map(|image| image.bytes).collect(),
        ..brief
    })
}

/// The failure of a job whose video cannot be made. A retry would fail again.
fn failure(error: video::Error) -> Interrupt {
    let code = match &error {
        video::Error::Image { .. } => FailureCode::ActionInputInvalid,
        video::Error::Shape | video::Error::Encoder(_) => FailureCode::RuntimeFailed,
        // Only the waiting task stops the encoding, and it is gone.
        video::Error::Canceled => return Interrupt::Stale,
    };
    tracing::warn!(error = &error as &dyn std::error::Error, "cannot make a video");
    Failure::new(code, error.to_string()).into()
}
