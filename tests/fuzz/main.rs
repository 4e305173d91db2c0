//! The fuzz targets on stable Rust: seeded mutations of valid inputs, for a few seconds each.
//!
//! `FUZZ_SECONDS` (default 3) is the time for each target and kind of seed, and `FUZZ_SEED` (default 1) seeds the random numbers.
//! A panic prints the seed and the round, which reproduce it: a round depends on nothing else.

mod seeds;
#[path = "../../fuzz/targets.rs"]
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use e2e::images;

/// The signature of a PNG file.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The random number generator Xorshift64* (Vigna, 2016).
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

/// Runs a target on mutations of `seeds` until the time is over.
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
        let mut input = mutated(&mut random, seeds);
        if input.starts_with(PNG) && random.below(4) > 0 {
            // Without a valid checksum, the decoder would never reach the mutated data.
            seeds::mend_checksums(&mut input);
        }
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(&input))) {
            let hex: String = input.iter().take(400).map(|byte| format!("{byte:02x}")).collect();
            eprintln!("FUZZ_SEED={seed}, round {round}, {} bytes: {hex}", input.len());
            resume_unwind(panic);
        }
    }
    println!("{round} rounds");
    assert!(round > 10, "only {round} rounds in {time:?}");
}

/// One of the seeds with some bytes changed, removed, duplicated or copied from another seed.
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

#[test]
fn decoding_png() {
    drive(targets::decode, &seeds::pngs());
}

#[test]
fn decoding_jpeg() {
    drive(targets::decode, &seeds::jpegs());
}

#[test]
fn decoding_webp() {
    drive(targets::decode, &seeds::webps());
}

#[test]
fn decoding_gif() {
    drive(targets::decode, &[images::gif()]);
}

#[test]
fn decoding_avif() {
    drive(targets::avif, &seeds::avifs());
}

#[test]
fn transforming_every_format() {
    drive(targets::transform, &[seeds::pngs(), seeds::jpegs(), seeds::webps(), vec![images::gif()]].concat());
}

#[test]
fn reading_films() {
    drive(targets::film, &seeds::films());
}

#[test]
fn parsing_parameters() {
    let good = seeds::params().into_iter().map(|(_, params)| params);
    let seeds: Vec<Vec<u8>> = good.chain(seeds::wrong_params()).map(|params| params.as_bytes().to_vec()).collect();
    drive(targets::params, &seeds);
}

#[test]
fn every_seed_is_what_it_is_meant_to_be() {
    for (kind, files) in [("PNG", seeds::pngs()), ("JPEG", seeds::jpegs()), ("WebP", seeds::webps())] {
        for (number, file) in files.iter().enumerate() {
            let decoded = raster::decode(file);
            assert!(decoded.is_ok(), "{kind} {number}: {:?}", decoded.err());
        }
    }
    for (number, file) in seeds::films().iter().enumerate() {
        let mut scanner = film::Scanner::new();
        let index = scanner.stream(0, file).and_then(|()| scanner.finish(file.len() as u64));
        let index = index.unwrap_or_else(|error| panic!("film {number}: {error}"));
        let movie = film::Movie::read(&index).unwrap_or_else(|error| panic!("film {number}: {error}"));
        let samples = movie.video().expect("has pictures").samples(movie.timescale);
        assert!(samples.is_ok_and(|samples| samples.first().is_some()), "film {number}");
    }
    let object = |params: &str| match serde_json::from_str(params) {
        Ok(serde_json::Value::Object(params)) => params,
        other => panic!("{params}: {other:?}"),
    };
    let slugs: Vec<&str> = seeds::params().iter().map(|(slug, _)| *slug).collect();
    assert!(actions::all().iter().all(|action| slugs.contains(&&*action.slug)), "{slugs:?}");
    for (slug, params) in seeds::params() {
        let action = actions::find(slug).expect("is there");
        assert!(action.normalize(&object(params)).is_ok(), "{slug} takes {params}");
    }
    for params in seeds::wrong_params() {
        let taken = actions::all().iter().any(|action| action.normalize(&object(params)).is_ok());
        assert!(!taken, "no Action takes {params}");
    }
}

#[test]
fn checksums_are_mended_up_to_where_chunks_can_be_told() {
    let good = seeds::pngs().swap_remove(0);
    let mut mended = good.clone();
    let end = mended.len();
    mended[29] ^= 1;
    mended[end - 1] ^= 1;
    seeds::mend_checksums(&mut mended);
    assert_eq!(mended, good);
    for cut in 0..end {
        seeds::mend_checksums(&mut mended[..cut]);
    }
    assert_eq!(mended, good);
}
