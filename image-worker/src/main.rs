//! `canvas-image-worker`: Image Actions, image generation and renditions.

use std::process::ExitCode;

fn main() -> ExitCode {
    spine::main(
        image_worker::NAME,
        "carries out Image Actions and image generation and makes smaller copies of pictures",
        image_worker::run,
    )
}
