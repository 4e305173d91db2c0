//! Compares the Image Actions with other engines: `tests/bench --only images`.
//!
//! Every engine, including ours, is a process that holds the files and does one job per line of
//! input, so that input and output are the same for all. Engines take turns, so that other load on
//! the machine affects all of them. A ratio is the median of the ratios of all turns. Quality is
//! the distance to a reference without a lossy step. Peak memory is that of a new process for one
//! job, beyond what the process used before.

mod engine;
mod goals;
mod jobs;
mod references;
mod sources;
#[path = "../subjects/mod.rs"]
mod subjects;

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use engine::{Engine, peak};
use goals::Figures;
use jobs::{JOBS, Job, ours};
use references::{psnr, read, reference};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Turns of each job. The first one is a warm-up and is not counted.
const TURNS: usize = 8;

/// The peer that the goals refer to.
const SHARP: &str = "sharp";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [mode, images] if mode == "serve" => serve(Path::new(images)),
        [images, peers @ ..] => compare(Path::new(images), peers),
        [] => Err("usage: peers DIRECTORY [--peer NAME=COMMAND]…".into()),
    }
}

/// Serves as an engine: reads "<job> <at once> <count> [<file to write>]" and writes milliseconds.
fn serve(images: &Path) -> Result<()> {
    // As the image-worker does.
    raster::memory::keep_freed();
    let mut files = HashMap::new();
    for entry in std::fs::read_dir(images)? {
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

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// An engine: its name and the command that starts it.
struct Peer {
    name: String,
    command: String,
    engine: Engine,
}

impl Peer {
    fn start(name: &str, command: &str) -> Result<Self> {
        Ok(Self { name: name.to_owned(), command: command.to_owned(), engine: Engine::start(command)? })
    }
}

fn compare(images: &Path, arguments: &[String]) -> Result<()> {
    sources::write(images)?;
    let own = format!("{} serve {}", std::env::current_exe()?.display(), images.display());
    let mut engines = vec![Peer::start("ours", &own)?];
    let peers = arguments.iter().filter(|argument| *argument != "--peer");
    for (name, command) in peers.filter_map(|peer| peer.split_once('=')) {
        engines.push(Peer::start(name, command)?);
    }
    println!(
        "Median milliseconds and ratios of {} turns: one job on one processor, then two at once on two.\n",
        TURNS - 1
    );
    let names: Vec<&str> = engines.iter().skip(1).map(|peer| peer.name.as_str()).collect();
    println!(
        "{:32} {:>8} | ours / {} : one processor, two | kB ours, peers | dB ours, peers | MiB ours, peers",
        "job",
        "ours ms",
        names.join(", ")
    );
    let sharp = engines.iter().position(|peer| peer.name == SHARP);
    let mut figures = Vec::new();
    for job in &JOBS {
        let measured = measure(job, images, &mut engines)?;
        println!("{}", measured.row(job));
        figures.extend(sharp.map(|at| measured.beside(job, at)));
    }
    match sharp {
        Some(_) => goals::print(&figures),
        None => println!("\nThe goals are ratios to {SHARP}, which is not installed."),
    }
    println!(
        "\ndB: peak signal-to-noise ratio to the lossless result. There is none for rotate 12° (engines differ in kernel and \
         origin) and text (in shaping and hinting). For color grade it is ours alone, because each engine has its own formulas."
    );
    Ok(())
}

/// Measurements of a job for all engines, ours first.
struct Measured {
    /// The milliseconds of each turn, for one job on one processor.
    one: Vec<Vec<f64>>,
    /// The milliseconds of each turn, for two jobs at once on two processors.
    two: Vec<Vec<f64>>,
    /// The size of the result in bytes.
    bytes: Vec<u64>,
    /// The distance to the reference in decibels.
    quality: Vec<Option<f64>>,
    /// The peak memory in MiB.
    memory: Vec<f64>,
}

impl Measured {
    fn ratio(times: &[Vec<f64>], at: usize) -> f64 {
        median(times[0].iter().zip(&times[at]).map(|(ours, theirs)| ours / theirs).collect())
    }

    /// The figures relative to one of the peers.
    fn beside(&self, job: &'static Job, at: usize) -> Figures {
        Figures {
            job,
            one: Self::ratio(&self.one, at),
            two: Self::ratio(&self.two, at),
            // A small job may fit into the memory of an idle process, so the difference may be
            // zero.
            memory: self.memory[0].max(0.0) / self.memory[at].max(f64::EPSILON),
            quality: self.quality[0].zip(self.quality[at]),
        }
    }

    /// A line of the table.
    fn row(&self, job: &Job) -> String {
        let mut line = format!("{:32} {:8.1} |", job.title, median(self.one[0].clone()));
        for at in 1..self.one.len() {
            line += &format!(" {:5.2} {:5.2}", Self::ratio(&self.one, at), Self::ratio(&self.two, at));
        }
        line += " |";
        for bytes in &self.bytes {
            line += &format!(" {:5}", bytes / 1000);
        }
        line += " |";
        for quality in &self.quality {
            match quality {
                Some(quality) => line += &format!(" {quality:5.1}"),
                None => line += "     –",
            }
        }
        line += " |";
        for memory in &self.memory {
            line += &format!(" {memory:4.0}");
        }
        line
    }
}

/// Measures all engines in turns.
fn measure(job: &Job, images: &Path, engines: &mut [Peer]) -> Result<Measured> {
    let name = job.name;
    let (mut one, mut two) = (vec![Vec::new(); engines.len()], vec![Vec::new(); engines.len()]);
    let mut files: Vec<PathBuf> = Vec::new();
    for turn in 0..TURNS {
        for (at, peer) in engines.iter_mut().enumerate() {
            let out = images.join(format!("../{name}-{}.out", peer.name));
            let write = if turn == 0 { format!(" {}", out.display()) } else { String::new() };
            peer.engine.pin("0")?;
            let alone = peer.engine.job(&format!("{name} 1 1{write}"))?;
            peer.engine.pin("0,1")?;
            let both = peer.engine.job(&format!("{name} 2 2"))?;
            if turn == 0 {
                files.push(out);
            } else {
                one[at].push(alone);
                two[at].push(both);
            }
        }
    }
    let reference = reference(name, images)?;
    let (mut bytes, mut quality) = (Vec::new(), Vec::new());
    for (at, file) in files.iter().enumerate() {
        let file = std::fs::read(file)?;
        bytes.push(file.len() as u64);
        // The reference of a grade uses our formulas, so it applies only to our engine.
        let reference = reference.as_ref().filter(|_| at == 0 || name != "grade");
        quality.push(match reference {
            Some(reference) => psnr(reference, &read(&file)?),
            None => None,
        });
    }
    let memory = engines.iter().map(|peer| peak(&peer.command, name)).collect::<Result<_>>()?;
    Ok(Measured { one, two, bytes, quality, memory })
}
