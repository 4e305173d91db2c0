//! Videos of the embedded runtime, made in a decoder by a pure function, because frames are foreign images.
//!
//! Nothing is submitted to a provider, so a canceled job costs nothing. After a crash the video is
//! made again: the same order gives the same bytes.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use app::job::VideoOutput;
use bytes::Bytes;
use decoder::{Made, Order, Refusal, Work};
use domain::job::{Failure, FailureCode, VideoFacts};
use domain::origin;
use embedded::video::{self, Brief, FRAMES_PER_SECOND};
use providers::{Calls, Entry, Shape};
use raster::Size;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use worker::files::Content;
use worker::generation::{GenerationKind, Step};
use worker::marks::marked;
use worker::{Error, Interrupt};

use super::images::Reader;
use super::run::Run;

/// Interval of progress reports.
const REPORT_EVERY: Duration = Duration::from_millis(500);

impl Run<'_> {
    /// Makes the video.
    pub(super) async fn render(&self, model: &Arc<Entry>) -> Result<Step<VideoOutput>, Interrupt> {
        self.task_run.check()?;
        let images = self.images(Reader::Embedded, ready(Some(()))).await?;
        let Some((mut images, ())) = images else { return Ok(Step::Wait(Calls::RETURN)) };
        let admitted = images.admitted.take();
        let origin = origin::of_output(origin::Work::Draw, &images.origins);
        let packet = self.task_run.generator.worker.marks.packet(origin, &[]);
        let brief = brief(self.order(model, images));
        let brief = brief.map_err(|error| failure(FailureCode::RuntimeFailed, error.to_string()))?;
        let bytes = brief.memory_bytes();
        let frames = f64::from(brief.seconds * FRAMES_PER_SECOND);
        let (film, files) = Film::new(brief);
        let copied: u64 = files.iter().map(|file| file.len() as u64).sum();
        let order = Order::new(self.task_run.job.account.as_str(), film, files);
        let painted = order.progress.clone();
        taskqueue::failpoint!("generation.submitting");
        let rendering = async {
            let memory = self.task_run.generator.worker.pixels.reserve(copied + bytes).await;
            let finish = move |_: &[Bytes], made: Vec<Vec<u8>>| {
                let video = made.into_iter().next().unwrap_or_default();
                Content::new(marked(video, packet.as_deref()))
            };
            match memory.decode(order, finish).await {
                Ok(made) => made.map_err(|why| failure(FailureCode::ActionInputInvalid, why)),
                // A retry would fail again.
                Err(Error::Engine(why)) => Err(failure(FailureCode::RuntimeFailed, why)),
                Err(error) => Err(error.into()),
            }
        };
        let rendered = self.task_run.unless_canceled(async {
            tokio::select! {
                rendered = rendering => rendered,
                never = self.report(&painted, frames) => match never {},
            }
        });
        let content = rendered.await??;
        taskqueue::failpoint!("generation.accepted");
        let facts = VideoFacts { origin, ..VideoFacts::default() };
        let kept = self.task_run.retry_during_outage(|| async { Ok(self.keep_whole(&content, facts).await?) }).await?;
        Ok(Step::Finished(kept, admitted))
    }

    /// Reports the progress of a video with this many frames.
    async fn report(&self, painted: &AtomicU32, frames: f64) -> Infallible {
        loop {
            sleep(REPORT_EVERY).await;
            self.progress(f64::from(painted.load(Ordering::Relaxed)) / frames).await;
        }
    }
}

fn brief(order: providers::Order) -> Result<Brief, video::Error> {
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
fn failure(code: FailureCode, why: String) -> Interrupt {
    tracing::warn!("cannot make a video: {why}");
    Failure::new(code, why).into()
}

/// A video, as a decoder makes it: a [`Brief`] without its files, which come in the order of its members.
#[derive(Serialize, Deserialize)]
pub(crate) struct Film {
    prompt: String,
    seconds: u32,
    size: (u32, u32),
    has_first: bool,
    has_last: bool,
}

impl Film {
    fn new(brief: Brief) -> (Self, Vec<Bytes>) {
        let Brief { prompt, first, last, references, seconds, size } = brief;
        let (has_first, has_last) = (first.is_some(), last.is_some());
        let files = first.into_iter().chain(last).chain(references).collect();
        (Self { prompt, seconds, size: (size.width, size.height), has_first, has_last }, files)
    }
}

impl Work for Film {
    const NAME: &'static str = "video";
    // Two minutes in 1080p, on a slow machine.
    const TIME_MAX: Duration = Duration::from_secs(1200);

    fn run(self, files: &[Bytes], report: &mut dyn FnMut(u32)) -> Made {
        let mut files = files.iter().cloned();
        let brief = Brief {
            prompt: self.prompt,
            first: if self.has_first { files.next() } else { None },
            last: if self.has_last { files.next() } else { None },
            references: files.collect(),
            seconds: self.seconds,
            size: Size::new(self.size.0, self.size.1),
        };
        let mut painted = 0;
        let made = video::render(&brief, || {
            painted += 1;
            report(painted);
        });
        match made {
            Ok(video) => Ok(vec![video]),
            Err(error @ video::Error::Image { .. }) => Err(Refusal::Input(error.to_string())),
            Err(error) => Err(Refusal::Internal(error.to_string())),
        }
    }
}
