//! The Image Actions beside other engines: `tests/bench --only images`.
//!
//! Every engine, ours included, is a process that holds the files and does a job a line: the same way in and out for
//! all. Engines take turns, so that whatever else the machine does hits all of them; a ratio is the median of the turns'
//! ratios. Quality is the distance to a reference without a lossy step, peak memory that of a fresh process for one job
//! beyond what it held before.

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

/// Turns of each job; the first one warms up and does not count.
const TURNS: usize = 8;

/// The peer that the goals are about.
const SHARP: &str = "sharp";

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

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// An engine with its name and the command that starts it.
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

fn compare(pictures: &Path, arguments: &[String]) -> Result<()> {
    sources::write(pictures)?;
    let own = format!("{} serve {}", std::env::current_exe()?.display(), pictures.display());
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
        let measured = measure(job, pictures, &mut engines)?;
        println!("{}", measured.row(job));
        figures.extend(sharp.map(|at| measured.beside(job, at)));
    }
    match sharp {
        Some(_) => goals::print(&figures),
        None => println!("\nThe goals are ratios to {SHARP}, which is not here."),
    }
    println!(
        "\ndB: peak signal to noise to what the job gives without loss. None of rotate 12° (engines differ in kernel and origin) \
         nor text (in shaping and hinting); of colour grade of ours alone, for each engine has formulas of its own."
    );
    Ok(())
}

/// What engines took for a job, in their order: ours comes first.
struct Measured {
    /// Milliseconds of each turn, one job on one processor.
    one: Vec<Vec<f64>>,
    /// The same of two at once on two.
    two: Vec<Vec<f64>>,
    /// Bytes of the result.
    bytes: Vec<u64>,
    /// Decibels to the reference.
    quality: Vec<Option<f64>>,
    /// MiB at the peak.
    memory: Vec<f64>,
}

impl Measured {
    fn ratio(times: &[Vec<f64>], at: usize) -> f64 {
        median(times[0].iter().zip(&times[at]).map(|(ours, theirs)| ours / theirs).collect())
    }

    /// The figures beside one of the peers.
    fn beside(&self, job: &'static Job, at: usize) -> Figures {
        Figures {
            job,
            one: Self::ratio(&self.one, at),
            two: Self::ratio(&self.two, at),
            // A small job may fit into what an idle process holds.
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

/// Lets the engines take turns.
fn measure(job: &Job, pictures: &Path, engines: &mut [Peer]) -> Result<Measured> {
    let name = job.name;
    let (mut one, mut two) = (vec![Vec::new(); engines.len()], vec![Vec::new(); engines.len()]);
    let mut files: Vec<PathBuf> = Vec::new();
    for turn in 0..TURNS {
        for (at, peer) in engines.iter_mut().enumerate() {
            let out = pictures.join(format!("../{name}-{}.out", peer.name));
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
    let reference = reference(name, pictures)?;
    let (mut bytes, mut quality) = (Vec::new(), Vec::new());
    for (at, file) in files.iter().enumerate() {
        let file = std::fs::read(file)?;
        bytes.push(file.len() as u64);
        // The formulas of the grade are ours.
        let reference = reference.as_ref().filter(|_| at == 0 || name != "grade");
        quality.push(match reference {
            Some(reference) => psnr(reference, &read(&file)?),
            None => None,
        });
    }
    let memory = engines.iter().map(|peer| peak(&peer.command, name)).collect::<Result<_>>()?;
    Ok(Measured { one, two, bytes, quality, memory })
}
