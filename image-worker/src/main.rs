//! `canvas-image-worker`: runs Image Actions, image generation, imports, Recipe runs and
//! renditions.

fn main() -> std::process::ExitCode {
    image_worker::main()
}
