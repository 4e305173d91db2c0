//! Tests of the video-worker: its jobs are run against simulated providers.

mod jobs;
