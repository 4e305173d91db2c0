//! `canvas-image-worker`: Image Actions and renditions.

use std::process::ExitCode;

fn main() -> ExitCode {
    spine::main(image_worker::NAME, "carries out Image Actions and makes smaller copies of pictures", image_worker::run)
}
