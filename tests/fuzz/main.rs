//! The fuzz targets on stable Rust: seeded mutation of good inputs, for a few seconds each.
//!
//! `FUZZ_SECONDS` (3) is the time for each target and kind of seed, `FUZZ_SEED` (1) where the random numbers begin. A panic names
//! both with the round, which repeat it: every round depends on the seed and its number alone.

#[path = "../../fuzz/targets.rs"]
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use e2e::pictures;

/// Xorshift64* (Vigna, 2016).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound.max(1)
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect("a whole number"))
}

/// Runs a target on mutations of `seeds` until the time is up.
fn drive(target: fn(&[u8]), seeds: &[Vec<u8>]) {
    let (seed, time) = (setting("FUZZ_SEED", 1), Duration::from_secs(setting("FUZZ_SECONDS", 3)));
    for good in seeds {
        target(good);
    }
    let began = Instant::now();
    let mut round = 0;
    while began.elapsed() < time {
        round += 1;
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (round << 20) | 1);
        let input = mutated(&mut random, seeds);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(&input))) {
            let hex: String = input.iter().take(400).map(|byte| format!("{byte:02x}")).collect();
            eprintln!("FUZZ_SEED={seed}, round {round}, {} bytes: {hex}", input.len());
            resume_unwind(panic);
        }
    }
    println!("{round} rounds");
    assert!(round > 10, "only {round} rounds in {time:?}");
}

/// One of the seeds with some bytes changed, cut, doubled or taken from another one.
fn mutated(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut data = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(6) {
        let (at, value) = (random.below(data.len()), random.next() as u8);
        // Half of the time near the start, where headers are.
        let at = if value & 1 == 0 { at.min(random.below(64)) } else { at };
        match random.below(8) {
            _ if data.is_empty() => data.push(value),
            0 | 1 => data[at] = value,
            2 => data[at] ^= 1 << (value & 7),
            3 => data[at] = [0, 1, 0x7f, 0x80, 0xff][usize::from(value) % 5],
            4 => data.truncate(at),
            5 => drop(data.drain(at..(at + random.below(32)).min(data.len()))),
            6 => {
                let piece = data[at..(at + random.below(32)).min(data.len())].to_vec();
                data.splice(at..at, piece);
            }
            _ => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len());
                let piece = &other[from..(from + 16).min(other.len())];
                let end = (at + piece.len()).min(data.len());
                data.splice(at..end, piece.iter().copied());
            }
        }
    }
    data
}

fn pngs() -> Vec<Vec<u8>> {
    vec![pictures::png(23, 17), pictures::transparent_png(16, 9), pictures::plain_png(40, 30, [9, 8, 7])]
}

fn jpegs() -> Vec<Vec<u8>> {
    vec![pictures::jpeg(70, 50), pictures::turned_jpeg(40, 60, 6)]
}

fn webps() -> Vec<Vec<u8>> {
    vec![pictures::webp(33, 21), pictures::webp(8, 8)]
}

#[test]
fn decoding_png() {
    drive(targets::decode, &pngs());
}

#[test]
fn decoding_jpeg() {
    drive(targets::decode, &jpegs());
}

#[test]
fn decoding_webp() {
    drive(targets::decode, &webps());
}

#[test]
fn decoding_gif() {
    drive(targets::decode, &[pictures::gif()]);
}

#[test]
fn transforming_every_format() {
    drive(targets::transform, &[pngs(), jpegs(), webps(), vec![pictures::gif()]].concat());
}

#[test]
fn parsing_parameters() {
    let seeds = [
        r##"{"width": 10, "height": 20, "fit": "cover", "anchor": "top-left", "background": "#a0b1c2d3", "enlarge": "no"}"##,
        r##"{"width": 10, "height": 20, "x": 0, "y": -1, "format": "webp", "quality": 85}"##,
        r##"{"ratio": "16:9", "mode": "blur", "background": "#fff", "degrees": -90.5, "flip": "both", "expand": "no"}"##,
        r##"{"exposure": 1e0, "gamma": 0.1, "preset": "sepia", "intensity": 50.25, "tint": -100, "scale": "match"}"##,
        r##"{"direction": "vertical", "gap": 1024, "scale": 0.1, "opacity": 100, "offsetX": 9223372036854775807}"##,
    ];
    drive(targets::params, &seeds.map(|seed| seed.as_bytes().to_vec()));
}
