//! `canvas-video-worker`: runs video generation.

fn main() -> std::process::ExitCode {
    video_worker::main()
}
