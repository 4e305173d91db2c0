//! An engine in a separate process that does one job per line of input.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::Result;

/// The process of an engine.
pub struct Engine {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Engine {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Engine {
    pub fn start(command: &str) -> Result<Self> {
        let mut words = command.split(' ');
        let mut child = Command::new(words.next().unwrap_or_default())
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (input, output) = (child.stdin.take().ok_or("piped")?, child.stdout.take().ok_or("piped")?);
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    /// Runs a job and returns its milliseconds.
    pub fn job(&mut self, line: &str) -> Result<f64> {
        writeln!(self.input, "{line}")?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        answer.trim().parse().map_err(|_| format!("no answer to {line:?}").into())
    }

    /// Value of a line of `/proc/<id>/status`, in MiB.
    fn memory(&self, name: &str) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such line")?;
        Ok(line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
    }

    /// Restricts the process, with all its threads, to these processors.
    pub fn pin(&self, processors: &str) -> Result<()> {
        let id = self.child.id().to_string();
        let pinned =
            Command::new("taskset").args(["-a", "-p", "-c", processors, &id]).stdout(Stdio::null()).status()?;
        if pinned.success() { Ok(()) } else { Err("taskset failed".into()) }
    }
}

/// Peak memory of a job in MiB, beyond that of a process that has done a small job.
pub fn peak(command: &str, job: &str) -> Result<f64> {
    let mut engine = Engine::start(command)?;
    engine.job("from-webp 1 1")?;
    let idle = engine.memory("VmRSS")?;
    // Resets the peak.
    std::fs::write(format!("/proc/{}/clear_refs", engine.child.id()), "5")?;
    engine.job(&format!("{job} 1 1"))?;
    Ok(engine.memory("VmHWM")? - idle)
}
