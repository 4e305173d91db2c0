//! `canvas-video-worker`: video generation.

fn main() -> std::process::ExitCode {
    video_worker::main()
}
