//! Videos of the embedded runtime (decisions 12.2): filmed here, by a pure function.
//!
//! Nothing is submitted to anybody, so that a cancel charges nothing, and what a crash interrupted is filmed again: the same
//! order gives the same bytes.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use db::jobs::Film;
use domain::job::{Failure, FailureCode};
use providers::{Calls, Entry};
use tokio::time::sleep;
use workshop::Stop;
use workshop::files::Content;
use workshop::generation::{Craft, Step};

use super::pictures::Reader;
use super::run::Run;
use crate::animatic::{self, Brief, FRAMES_PER_SECOND};

/// How often it is told how far a film is.
const TELL_EVERY: Duration = Duration::from_millis(500);

/// What the thread that films and those who wait for it know of each other.
struct Set {
    wanted: AtomicBool,
    frames: AtomicU32,
}

/// Whoever waits for a film. Gone, it stops the film at its next frame: a thread cannot be stopped from outside.
struct Audience(Arc<Set>);

impl Drop for Audience {
    fn drop(&mut self) {
        self.0.wanted.store(false, Ordering::Relaxed);
    }
}

impl Run<'_> {
    /// Films the video.
    pub(super) async fn film(&self, model: &Arc<Entry>) -> Result<Step<Film>, Stop> {
        self.turn.check()?;
        let pictures = self.pictures(Reader::Embedded, ready(Some(()))).await?;
        let Some((mut pictures, ())) = pictures else { return Ok(Step::Wait(Calls::RETURN)) };
        let admitted = pictures.admitted.take();
        let brief = Brief::of(&self.order(model, pictures)).map_err(failure)?;
        let frames = f64::from(brief.seconds * FRAMES_PER_SECOND);
        let set = Arc::new(Set { wanted: AtomicBool::new(true), frames: AtomicU32::new(0) });
        let audience = Audience(set.clone());
        spine::failpoint!("generation.submitting");
        let filming = self.turn.generator.worker.pixels.run(brief.memory_bytes(), move || {
            let is_wanted = || {
                set.frames.fetch_add(1, Ordering::Relaxed);
                set.wanted.load(Ordering::Relaxed)
            };
            animatic::film(&brief, is_wanted)
        });
        let filmed = self.turn.unless_canceled(async {
            tokio::select! {
                filmed = filming => filmed,
                never = self.tell(&audience.0, frames) => match never {},
            }
        });
        let video = filmed.await??.map_err(failure)?;
        spine::failpoint!("generation.accepted");
        let content = self.turn.generator.worker.pixels.run(0, move || Content::of(video)).await?;
        let kept = self.turn.patiently(|| async { Ok(self.keep_whole(&content).await?) }).await?;
        Ok(Step::Made(kept, admitted))
    }

    /// Tells now and then how far a film of so many frames is.
    async fn tell(&self, set: &Set, frames: f64) -> Infallible {
        loop {
            sleep(TELL_EVERY).await;
            self.progress(f64::from(set.frames.load(Ordering::Relaxed)) / frames).await;
        }
    }
}

/// What a film that cannot be made fails with. The same order would fail again.
fn failure(error: animatic::Error) -> Stop {
    let code = match &error {
        animatic::Error::Picture { .. } => FailureCode::ActionInputInvalid,
        animatic::Error::Shape | animatic::Error::Encoder(_) => FailureCode::RuntimeFailed,
        // Only whoever waits for it stops it, and nobody does any more.
        animatic::Error::Stopped => return Stop::Stale,
    };
    tracing::warn!(error = &error as &dyn std::error::Error, "a film cannot be made");
    Failure::new(code, error.to_string()).into()
}
