//! Debian's ffmpeg as an independent decoder (`tests/run` installs it).

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::thread;

use raster::{Bitmap, Channels, Size};
use serde_json::Value;

/// The format and the streams of a file as ffprobe reports them, with every frame decoded and
/// counted.
pub fn probe(file: &[u8]) -> Value {
    let arguments = ["-v", "error", "-count_frames", "-show_format", "-show_streams", "-of", "json", "-"];
    let output = fed("ffprobe", &arguments, file);
    assert!(output.stderr.is_empty(), "ffprobe: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("ffprobe prints JSON")
}

/// All frames of a file in display order. Any complaint of the decoder fails the test.
pub fn frames(file: &[u8], size: Size) -> Vec<Bitmap> {
    let arguments =
        ["-v", "error", "-xerror", "-err_detect", "explode", "-i", "-", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"];
    let output = fed("ffmpeg", &arguments, file);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let bytes = size.pixels() as usize * 3;
    assert!(output.stdout.len().is_multiple_of(bytes), "frames are of the size that was asked for");
    let image = |pixels: &[u8]| Bitmap::new(size, Channels::Rgb, pixels.to_vec()).expect("a whole frame");
    output.stdout.chunks_exact(bytes).map(image).collect()
}

/// Runs a program with bytes on its standard input. Like a player that reads from a network, it
/// cannot seek.
fn fed(program: &str, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program} (Debian's ffmpeg) is needed: {error}"));
    let mut pipe = child.stdin.take().expect("is piped");
    thread::scope(|scope| {
        scope.spawn(move || pipe.write_all(input));
        child.wait_with_output().expect("ends")
    })
}

/// The peak signal-to-noise ratio of the luma of two images of the same size, in dB. Chroma is
/// ignored, because it is stored at half the resolution.
pub fn psnr(a: &Bitmap, b: &Bitmap) -> f64 {
    assert_eq!(a.size(), b.size());
    let luma = |image: &Bitmap| -> Vec<f64> {
        let pixels = image.clone().into_rgba();
        let weighed = |[r, g, b, _]: &[u8; 4]| 0.2126 * f64::from(*r) + 0.7152 * f64::from(*g) + 0.0722 * f64::from(*b);
        pixels.pixels().as_chunks::<4>().0.iter().map(weighed).collect()
    };
    let (a, b) = (luma(a), luma(b));
    let mean = a.iter().zip(&b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>() / a.len() as f64;
    if mean == 0.0 { f64::INFINITY } else { 10.0 * (255.0 * 255.0 / mean).log10() }
}
