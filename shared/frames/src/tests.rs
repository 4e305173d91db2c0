//! Films of x264 in all of its forms, compared with FFmpeg, an independent decoder. H.264 leaves no choice to a decoder, so every sample
//! must be equal.

use std::process::{Command, id};

use film::{Movie, Samples, Scanner};

use super::*;

const WIDTH: usize = 176;
const HEIGHT: usize = 144;
const FRAMES: usize = 30;

/// A film, and its frames as FFmpeg decodes them: I420, in the order in which they are shown.
struct Film {
    file: Vec<u8>,
    frames: Vec<Vec<u8>>,
}

fn ffmpeg(arguments: &[&str]) {
    let ran = Command::new("ffmpeg").args(["-v", "error", "-y", "-nostdin"]).args(arguments).output();
    let ran = ran.unwrap_or_else(|error| panic!("ffmpeg (Debian's) is needed: {error}"));
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// Makes a film with these settings of the encoder.
fn film(name: &str, settings: &[&str]) -> Film {
    let directory = std::env::temp_dir().join(format!("canvas-frames-{}-{name}", id()));
    std::fs::create_dir_all(&directory).expect("there is space");
    let [film, raw] = ["film.mp4", "raw.yuv"].map(|name| directory.join(name).to_str().expect("is UTF-8").to_owned());
    let source = format!("testsrc2=size={WIDTH}x{HEIGHT}:rate=10:duration={}", FRAMES / 10);
    let input = ["-f", "lavfi", "-i", &source, "-pix_fmt", "yuv420p", "-c:v", "libx264", "-threads", "1"];
    ffmpeg(&[&input[..], settings, &[&film]].concat());
    ffmpeg(&["-noautorotate", "-i", &film, "-vsync", "passthrough", "-f", "rawvideo", "-pix_fmt", "yuv420p", &raw]);
    let read = |path| std::fs::read(path).expect("was written");
    let made =
        Film { frames: read(&raw).chunks(WIDTH * HEIGHT * 3 / 2).map(<[u8]>::to_vec).collect(), file: read(&film) };
    std::fs::remove_dir_all(&directory).expect("is ours");
    made
}

/// Calls `with` with the samples of a film, and what decodes the one at an index.
fn with<T>(
    file: &[u8],
    with: impl FnOnce(&Samples, &dyn Fn(usize) -> Result<(Frame, Option<Color>), Error>) -> T,
) -> T {
    let mut scanner = Scanner::new();
    scanner.stream(0, file).expect("is a film");
    let index = scanner.finish(file.len() as u64).expect("is a film");
    let movie = Movie::read(&index).expect("is a film");
    let video = movie.video().expect("has pictures");
    let samples = video.samples(movie.timescale).expect("is whole");
    let config = video.avc.expect("is H.264");
    let decode = |wanted| {
        let bytes: Vec<&[u8]> =
            samples.all().iter().map(|it| &file[it.offset as usize..][..it.size as usize]).collect();
        let parameters = Config::read(config).expect("is whole");
        let key = samples.keys(wanted).find(|key| parameters.is_start(bytes[*key])).expect("begins with a key frame");
        let bytes = &bytes[key..=wanted];
        picture(&Wanted { config, samples: bytes, turn: Turn::None, color: None })
    };
    with(&samples, &decode)
}

#[test]
fn every_frame_is_that_of_an_independent_decoder() {
    let mut wrong = Vec::new();
    for (name, settings) in [
        ("baseline", &["-profile:v", "baseline"][..]),
        ("main-cavlc", &["-profile:v", "main", "-bf", "0", "-x264-params", "cabac=0"]),
        ("main-cabac", &["-profile:v", "main", "-bf", "0"]),
        ("one-b", &["-profile:v", "main", "-bf", "1", "-x264-params", "b-adapt=0"]),
        ("two-b", &["-profile:v", "main", "-bf", "2", "-x264-params", "b-adapt=0:weightb=0"]),
        ("three-b-high", &["-profile:v", "high", "-bf", "3", "-x264-params", "b-adapt=0:b-pyramid=none:keyint=12"]),
        ("pyramid", &["-profile:v", "high", "-bf", "3", "-x264-params", "b-adapt=0:b-pyramid=normal:ref=4"]),
        ("default", &[]),
        ("slow", &["-preset", "veryslow", "-bf", "8"]),
        ("spatial", &["-bf", "3", "-x264-params", "direct=spatial:b-adapt=0"]),
        ("temporal", &["-bf", "3", "-x264-params", "direct=temporal:b-adapt=0"]),
        ("weighted", &["-bf", "3", "-x264-params", "weightb=1:weightp=2:b-adapt=0", "-vf", "fade=in:0:20"]),
        ("slices", &["-bf", "2", "-x264-params", "slices=4"]),
        ("open-gop", &["-bf", "3", "-x264-params", "open-gop=1:keyint=8:b-adapt=0"]),
        ("still", &["-tune", "stillimage", "-vf", "loop=loop=30:size=1"]),
        ("lossless-like", &["-qp", "1", "-bf", "2"]),
        ("animation", &["-tune", "animation"]),
        ("film", &["-tune", "film", "-preset", "slower"]),
        ("zero-latency", &["-tune", "zerolatency"]),
        ("faststart", &["-movflags", "+faststart", "-bf", "2"]),
    ] {
        let Film { file, frames } = film(name, settings);
        with(&file, |samples, decode| {
            assert_eq!(samples.all().len(), frames.len(), "{name}");
            for (number, expected) in frames.iter().enumerate() {
                let wanted = samples.at(number as f64 / 10.0).expect("is within");
                match decode(wanted) {
                    Ok((frame, _)) if frame.planes.concat() == *expected => {}
                    Ok((frame, _)) => {
                        let like = frames.iter().position(|other| *other == frame.planes.concat());
                        wrong.push(format!("{name}: {number} (sample {wanted}) is {like:?}"));
                    }
                    Err(error) => wrong.push(format!("{name}: {number} (sample {wanted}): {error}")),
                }
            }
            assert_eq!(samples.first(), samples.at(0.0), "{name}");
            assert_eq!(samples.last(), samples.at((frames.len() - 1) as f64 / 10.0), "{name}");
        });
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_damaged_or_begins_in_the_middle_is_an_error() {
    let Film { file, frames } = film("damaged", &["-bf", "2", "-x264-params", "b-adapt=0:keyint=10"]);
    with(&file, |samples, _| {
        let mut scanner = Scanner::new();
        scanner.stream(0, &file).expect("is a film");
        let index = scanner.finish(file.len() as u64).expect("is a film");
        let movie = Movie::read(&index).expect("is a film");
        let config = movie.video().and_then(|video| video.avc).expect("is H.264");
        let bytes: Vec<&[u8]> =
            samples.all().iter().map(|it| &file[it.offset as usize..][..it.size as usize]).collect();
        let decode = |samples: &[&[u8]]| picture(&Wanted { config, samples, turn: Turn::None, color: None });
        assert!(decode(&bytes[..3]).is_ok());
        assert!(matches!(decode(&bytes[1..3]), Err(Error::Frame(_))), "it needs the key frame");
        assert!(matches!(decode(&[]), Err(Error::Frame(_))));
        assert!(matches!(decode(&[bytes[0], &bytes[1][..bytes[1].len() - 1]]), Err(Error::Frame(_))), "is cut off");
        // Any byte of a sample: an error, or a picture of the same size, but never a panic.
        for at in (5..bytes[0].len()).step_by(37) {
            let mut damaged = bytes[0].to_vec();
            damaged[at] ^= 0x55;
            if let Ok((frame, _)) = decode(&[&damaged]) {
                assert_eq!(frame.planes.concat().len(), frames[0].len());
            }
        }
    });
}

#[test]
fn a_form_that_is_not_built_in_is_named() {
    for (format, said) in [
        ("yuv420p10le", "H.264 with 10 bits per sample"),
        ("yuv422p", "H.264 with 4:2:2 chroma"),
        ("yuv444p", "H.264 with 4:4:4 chroma"),
    ] {
        let Film { file, .. } = film(format, &["-pix_fmt", format]);
        with(&file, |_, decode| match decode(0) {
            Err(error) => assert!(error.to_string().contains(said), "{error}"),
            Ok(_) => panic!("{format} was decoded"),
        });
    }
}
