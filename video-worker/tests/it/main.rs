//! Tests of the video-worker beside the tools that judge it: `ffprobe` and `ffmpeg`, a decoder that is not ours.

mod animatic;
mod decoder;
