//! Tests of the video-worker: its films beside the tools that judge them (`ffprobe` and `ffmpeg`, a decoder that is not ours),
//! and its jobs against simulated providers.

mod animatic;
mod decoder;
mod jobs;
