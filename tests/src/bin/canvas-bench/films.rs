//! The start of a film in a player: the first range that it asks for, relative to a read of the file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use e2e::api::text;
use e2e::{API_ROOT, Stack};
use serde_json::json;
use testkit::providers::{Simulator, Vendor};

use crate::load::{Connection, get_with};
use crate::providers::ordered;
use crate::table::{BenchRow, quantile};

/// Size of the film.
const FILM_MIB: u64 = 200;
/// Size of a range.
const RANGE: u64 = 1 << 20;
/// Measured ranges. The first begins the film, the others are places to which a viewer jumps.
const SAMPLES: u64 = 200;
const WARM_UP: u64 = 10;
const STEP: u64 = (FILM_MIB - 1) * RANGE / SAMPLES;
/// The goal in milliseconds for the 95th percentile.
const GOAL_MS: f64 = 200.0;

/// Measures ranges of a video of a provider that was kept as an asset, each followed by the same range of its file.
pub async fn measure(stack: &Stack) -> Vec<BenchRow> {
    let simulator = Simulator::start(Vendor::Runway).await;
    simulator.weigh((FILM_MIB * RANGE) as usize);
    let (user, job) = ordered(stack, &simulator).await;
    user.finished(&job).await;
    let kept = user.send(&format!("/jobs/{}/asset", text(&job, "/rawId")), &json!({})).await.expect(201).json();
    let bytes = kept["asset"]["bytes"].as_u64().expect("a size");
    let film = File::open(of_size(&stack.blobs(), bytes)).expect("the local store has it");
    let content = format!("{API_ROOT}/assets/{}/content", text(&kept, "/asset/handle"));
    let mut gateway = Connection::to(&stack.authority(0));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for sample in 0..WARM_UP + SAMPLES {
        let start = sample.saturating_sub(WARM_UP) * STEP;
        let request = get_with(&format!("range: bytes={start}-{}\r\n", start + RANGE - 1), &content, Some(&user.token));
        let began = Instant::now();
        let answer = gateway.exchange(&request).await;
        ours.push(began.elapsed().as_secs_f64() * 1e3);
        assert!(answer.status == 206 && answer.body.len() as u64 == RANGE, "status {}", answer.status);
        let began = Instant::now();
        let mut read = vec![0; RANGE as usize];
        film.read_exact_at(&mut read, start).expect("reads");
        theirs.push(began.elapsed().as_secs_f64() * 1e3);
        assert!(answer.body == read, "the same bytes");
    }
    let of = |times: &[f64], q| quantile(&times[WARM_UP as usize..], q);
    let p95 = of(&ours, 0.95);
    vec![
        BenchRow::reported("first range of a film, 1 MiB, p95", format!("{p95:.1} ms"))
            .ours(format!("{:.1} ms median", of(&ours, 0.5)))
            .peer(format!("{:.1} ms p95", of(&theirs, 0.95)))
            .goal(format!("<= {GOAL_MS} ms"), p95 <= GOAL_MS)
            .note(format!(
                "{SAMPLES} ranges of a film of {FILM_MIB} MiB on the local store, one after the other on one connection, from the \
                 request to the last byte; the baseline reads the same bytes from the file. Both come from the cache of the system."
            )),
    ]
}

/// The file of this size in a directory of blobs.
fn of_size(directory: &Path, bytes: u64) -> PathBuf {
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).expect("lists") {
            let path = entry.expect("is there").path();
            match path.metadata().expect("is there") {
                found if found.is_dir() => directories.push(path),
                found if found.len() == bytes => return path,
                _ => {}
            }
        }
    }
    panic!("no blob of {bytes} bytes")
}
