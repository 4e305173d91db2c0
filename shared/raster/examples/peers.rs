//! The Image Actions beside other engines: `tests/bench --only images`.
//!
//! Every engine, ours included, is a process that holds the files and does a job a line: the same way in and out for
//! all. Engines take turns, so that whatever else the machine does hits all of them; a ratio is the median of the turns'
//! ratios. Quality is the distance to a reference without a lossy step, peak memory that of a fresh process for one job
//! beyond what it held before.

mod subjects;

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use raster::beside::{Align, Beside, Direction};
use raster::crop::{Crop, Place};
use raster::grade::Grade;
use raster::overlay::{Blend, Overlay};
use raster::rotate::{Flip, Rotate};
use raster::{
    Anchor, Bounds, Channels, Color, DecodeOptions, Decoded, Encoding, Finish, FormatChoice, Output, OutputFormat,
    Picture, Resize, Size,
};

use subjects::{flat, photo};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Turns of each job; the first one warms up and does not count.
const TURNS: usize = 8;

/// Jobs and what they are called in the table.
const JOBS: [(&str, &str); 12] = [
    ("resize", "12 MP JPEG to 1024 wide JPEG"),
    ("resize-progressive", "the same, progressive input"),
    ("resize-png", "2048² photo PNG to 512 PNG"),
    ("resize-flat-png", "2048² flat PNG to 512 PNG"),
    ("crop", "crop of 12 MP JPEG"),
    ("rotate-90", "rotate 90, 12 MP JPEG"),
    ("overlay", "overlay PNG on 12 MP JPEG"),
    ("side-by-side", "side by side, two 12 MP JPEG"),
    ("grade", "colour grade, 12 MP JPEG"),
    ("webp", "24 MP JPEG to 1600 WebP q80"),
    ("from-webp", "1600 × 1067 WebP to JPEG"),
    ("rotate-12", "rotate 12°, 12 MP JPEG"),
];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [mode, pictures] if mode == "serve" => serve(Path::new(pictures)),
        [pictures, peers @ ..] => compare(Path::new(pictures), peers),
        [] => Err("usage: peers DIRECTORY [--peer NAME=COMMAND]…".into()),
    }
}

/// Does jobs: "<job> <at once> <count> [<file to write>]" in, milliseconds out.
fn serve(pictures: &Path) -> Result<()> {
    let mut files = HashMap::new();
    for entry in std::fs::read_dir(pictures)? {
        let path = entry?.path();
        files.insert(path.file_name().unwrap_or_default().to_string_lossy().into_owned(), std::fs::read(&path)?);
    }
    for line in std::io::stdin().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let (job, at_once, count): (&str, usize, usize) = (words[0], words[1].parse()?, words[2].parse()?);
        let began = Instant::now();
        let work = || (0..count / at_once).fold(None, |_, _| Some(ours(job, &files)));
        let output = std::thread::scope(|scope| {
            let others: Vec<_> = (1..at_once).map(|_| scope.spawn(work)).collect();
            let own = work();
            others.into_iter().for_each(|other| drop(other.join()));
            own
        });
        println!("{}", began.elapsed().as_secs_f64() * 1e3);
        if let (Some(out), Some(output)) = (words.get(3), output) {
            std::fs::write(out, output?.bytes)?;
        }
    }
    Ok(())
}

/// One job with our engine.
fn ours(job: &str, files: &HashMap<String, Vec<u8>>) -> std::result::Result<Output, raster::Error> {
    let file = |name: &str| files[name].as_slice();
    let finish = Finish { choice: FormatChoice::Auto, quality: 85 };
    let to = |width: u32| Resize::new(Bounds::new(Some(width), None).expect("not zero"));
    let turn = |degrees: f64| Rotate { degrees, expand: true, flip: Flip::None, background: Color::WHITE };
    match job {
        "resize" => raster::transform_resize(file("photo.jpg"), &to(1024), finish.choice, 85),
        "resize-progressive" => raster::transform_resize(file("progressive.jpg"), &to(1024), finish.choice, 85),
        "resize-png" => raster::transform_resize(file("photo.png"), &to(512), finish.choice, 85),
        "resize-flat-png" => raster::transform_resize(file("flat.png"), &to(512), finish.choice, 85),
        "webp" => raster::transform_resize(file("large.jpg"), &to(1600), FormatChoice::Webp, 80),
        "from-webp" => {
            let jpeg = Finish { choice: FormatChoice::Jpeg, ..finish };
            raster::grade::transform(file("photo.webp"), &Grade::NEUTRAL, jpeg)
        }
        "crop" => {
            let crop = Crop { width: 2000, height: 1500, place: Place::At { x: 1000, y: 750 } };
            raster::crop::transform(file("photo.jpg"), &crop, finish)
        }
        "rotate-90" => raster::rotate::transform(file("photo.jpg"), &turn(90.0), finish),
        "rotate-12" => raster::rotate::transform(file("photo.jpg"), &turn(12.0), finish),
        "overlay" => {
            let params = Overlay {
                anchor: Anchor::BottomRight,
                offset: (0, 0),
                scale: 25.0,
                opacity: 100.0,
                rotate: 0.0,
                blend: Blend::Normal,
            };
            raster::overlay::transform(file("photo.jpg"), file("logo.png"), &params, finish)
        }
        "side-by-side" => {
            let params = Beside {
                direction: Direction::Horizontal,
                gap: 0,
                matches: true,
                align: Align::Center,
                background: Color::WHITE,
            };
            raster::beside::transform(file("photo.jpg"), file("photo.jpg"), &params, finish)
        }
        _ => {
            let params = Grade { brightness: 10.0, contrast: 15.0, saturation: 20.0, ..Grade::NEUTRAL };
            raster::grade::transform(file("photo.jpg"), &params, finish)
        }
    }
}

/// An engine's process.
struct Engine {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Engine {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Engine {
    fn start(command: &str) -> Result<Self> {
        let mut words = command.split(' ');
        let mut child = Command::new(words.next().unwrap_or_default())
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (input, output) = (child.stdin.take().ok_or("piped")?, child.stdout.take().ok_or("piped")?);
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    /// Milliseconds of a job.
    fn job(&mut self, line: &str) -> Result<f64> {
        writeln!(self.input, "{line}")?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        answer.trim().parse().map_err(|_| format!("no answer to {line:?}").into())
    }

    /// A line of `/proc/<id>/status`, in MiB.
    fn memory(&self, name: &str) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such line")?;
        Ok(line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
    }

    /// Lets the process run on these processors alone, with every thread that it has or will have.
    fn pin(&self, processors: &str) -> Result<()> {
        let id = self.child.id().to_string();
        let pinned =
            Command::new("taskset").args(["-a", "-p", "-c", processors, &id]).stdout(Stdio::null()).status()?;
        if pinned.success() { Ok(()) } else { Err("taskset failed".into()) }
    }
}

/// Memory that a job takes at its peak, in MiB, beyond a process that has done a small one.
fn peak(command: &str, job: &str) -> Result<f64> {
    let mut engine = Engine::start(command)?;
    engine.job("from-webp 1 1")?;
    let idle = engine.memory("VmRSS")?;
    // From here on the peak counts anew.
    std::fs::write(format!("/proc/{}/clear_refs", engine.child.id()), "5")?;
    engine.job(&format!("{job} 1 1"))?;
    Ok(engine.memory("VmHWM")? - idle)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn compare(pictures: &Path, arguments: &[String]) -> Result<()> {
    make_pictures(pictures)?;
    let own = format!("{} serve {}", std::env::current_exe()?.display(), pictures.display());
    let mut commands = vec![("ours", own.as_str())];
    let peers = arguments.iter().filter(|argument| *argument != "--peer");
    commands.extend(peers.filter_map(|peer| peer.split_once('=')));
    let mut engines = Vec::new();
    for (name, command) in &commands {
        engines.push((*name, *command, Engine::start(command)?));
    }
    println!(
        "Median milliseconds and ratios of {} turns: one job on one processor, then two at once on two.\n",
        TURNS - 1
    );
    let names: Vec<&str> = commands.iter().skip(1).map(|(name, _)| *name).collect();
    println!(
        "{:32} {:>8} | ours / {} : one processor, two | kB ours, peers | dB ours, peers | MiB ours, peers",
        "job",
        "ours ms",
        names.join(", ")
    );
    let mut ratios = Vec::new();
    for (job, title) in JOBS {
        let (mut single, mut double) = (vec![Vec::new(); engines.len()], vec![Vec::new(); engines.len()]);
        let mut quality = Vec::new();
        let reference = reference(job, pictures)?;
        for turn in 0..TURNS {
            for (at, (name, _, engine)) in engines.iter_mut().enumerate() {
                let out = pictures.join(format!("../{job}-{name}.out"));
                let write = if turn == 0 { format!(" {}", out.display()) } else { String::new() };
                engine.pin("0")?;
                let alone = engine.job(&format!("{job} 1 1{write}"))?;
                engine.pin("0,1")?;
                let two = engine.job(&format!("{job} 2 2"))?;
                if turn == 0 {
                    quality.push(out);
                } else {
                    single[at].push(alone);
                    double[at].push(two);
                }
            }
        }
        let ratio = |times: &[Vec<f64>], at: usize| {
            median(times[0].iter().zip(&times[at]).map(|(ours, theirs)| ours / theirs).collect())
        };
        let mut line = format!("{title:32} {:8.1} |", median(single[0].clone()));
        for at in 1..engines.len() {
            line += &format!(" {:5.2} {:5.2}", ratio(&single, at), ratio(&double, at));
        }
        line += " |";
        for out in &quality {
            line += &format!(" {:5}", std::fs::metadata(out)?.len() / 1000);
        }
        line += " |";
        for out in &quality {
            match &reference {
                Some(reference) => line += &format!(" {:5.1}", psnr(reference, &read(&std::fs::read(out)?)?)),
                None => line += "     –",
            }
        }
        line += " |";
        for (_, command, _) in &engines {
            line += &format!(" {:4.0}", peak(command, job)?);
        }
        println!("{line}");
        if engines.len() > 1 {
            ratios.push(ratio(&single, 1));
        }
    }
    if !ratios.is_empty() {
        let worst = ratios.iter().copied().fold(0.0, f64::max);
        println!(
            "\nOne processor, ours / {}: median {:.2} (goal 0.65), worst {worst:.2} (goal 0.85)",
            names[0],
            median(ratios)
        );
    }
    Ok(())
}

/// What a job gives without a lossy step: for scaling an exact Lanczos-3, for moved pixels themselves.
fn reference(job: &str, pictures: &Path) -> Result<Option<Picture>> {
    let source = |name: &str| -> Result<Picture> { read(&std::fs::read(pictures.join(name))?) };
    let scaled = |picture: Picture, width: u32| {
        let height = (f64::from(picture.height()) * f64::from(width) / f64::from(picture.width())).round() as u32;
        let buffer = image::RgbImage::from_raw(picture.width(), picture.height(), picture.pixels().to_vec())?;
        let scaled = image::imageops::resize(&buffer, width, height, image::imageops::FilterType::Lanczos3);
        Picture::new(Size::new(width, height), Channels::Rgb, scaled.into_raw())
    };
    Ok(match job {
        "resize" | "resize-progressive" => scaled(source("photo.jpg")?, 1024),
        "resize-png" => scaled(source("photo.png")?, 512),
        "resize-flat-png" => scaled(source("flat.png")?, 512),
        "webp" => scaled(source("large.jpg")?, 1600),
        "from-webp" => Some(source("photo.webp")?),
        _ => None,
    })
}

fn read(bytes: &[u8]) -> Result<Picture> {
    Ok(raster::decode(bytes, DecodeOptions::default()).map(Decoded::into_picture)?)
}

/// Peak signal-to-noise ratio in decibels; not a number when the sizes differ.
fn psnr(a: &Picture, b: &Picture) -> f64 {
    if a.size() != b.size() || a.channels() != b.channels() {
        return f64::NAN;
    }
    let squares: f64 = a.pixels().iter().zip(b.pixels()).map(|(a, b)| f64::from(a.abs_diff(*b)).powi(2)).sum();
    10.0 * (255.0f64.powi(2) * a.pixels().len() as f64 / squares.max(1e-9)).log10()
}

/// Writes the sources, unless they are there.
fn make_pictures(pictures: &Path) -> Result<()> {
    let put = |name: &str, make: &dyn Fn() -> Result<Vec<u8>>| -> Result<()> {
        let path = pictures.join(name);
        if !path.exists() {
            std::fs::write(path, make()?)?;
        }
        Ok(())
    };
    let encoded = |picture: &Picture, format| -> Result<Vec<u8>> {
        Ok(raster::encode(picture, &Encoding { format, quality: 90, flatten: Color::WHITE })?)
    };
    put("photo.jpg", &|| encoded(&photo(4000, 3000), OutputFormat::Jpeg))?;
    put("large.jpg", &|| encoded(&photo(6000, 4000), OutputFormat::Jpeg))?;
    put("photo.png", &|| encoded(&photo(2048, 2048), OutputFormat::Png))?;
    put("flat.png", &|| encoded(&flat(2048, 2048), OutputFormat::Png))?;
    put("photo.webp", &|| encoded(&photo(1600, 1067), OutputFormat::Webp))?;
    put("logo.png", &|| {
        let pixels = (0..800u32 * 800).flat_map(|at| {
            let (x, y) = (i64::from(at % 800) - 400, i64::from(at / 800) - 400);
            let inside = x * x + y * y < 390 * 390;
            [200, (at / 3200) as u8, 60, if inside { 230 } else { 0 }]
        });
        let logo = Picture::new(Size::new(800, 800), Channels::Rgba, pixels.collect()).ok_or("as many as fit")?;
        encoded(&logo, OutputFormat::Png)
    })?;
    put("progressive.jpg", &|| {
        let picture = photo(4000, 3000);
        let mut compressor = turbojpeg::Compressor::new()?;
        compressor.set_quality(90)?;
        compressor.set_subsamp(turbojpeg::Subsamp::Sub2x2)?;
        compressor.set_progressive(true)?;
        let image = turbojpeg::Image {
            pixels: picture.pixels(),
            width: 4000,
            pitch: picture.stride(),
            height: 3000,
            format: turbojpeg::PixelFormat::RGB,
        };
        Ok(compressor.compress_to_vec(image)?)
    })
}
