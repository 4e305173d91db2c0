#![no_main]

#[path = "../targets.rs"]
#[allow(dead_code, reason = "one target a binary")]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::avif(data));
