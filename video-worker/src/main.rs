//! The video-worker process.

use std::process::ExitCode;

fn main() -> ExitCode {
    spine::main(video_worker::NAME, video_worker::ABOUT, video_worker::run)
}
