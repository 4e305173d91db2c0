//! Videos of the embedded runtime, checked with `ffprobe` and `ffmpeg` as an independent decoder.

mod decoder;
mod video;
