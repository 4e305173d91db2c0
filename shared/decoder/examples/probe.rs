//! A decoder whose work does what codecs do when a file takes them over, for the tests (`tests/it.rs`).
//!
//! `probe decode` is the decoder. `probe parent` is a process that has one do [`Hang`] and prints its id. `probe program` becomes a
//! foreign program, and `probe IN OUT` is one, which does what its input says ([`Foreign`]).

use std::env;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Error, Read};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::Ordering;
use std::thread::{park, park_timeout, spawn};
use std::time::{Duration, Instant};

use bytes::Bytes;
use decoder::{COMMAND, Kind, Leash, Made, Order, PROGRAM_COMMAND, Pool, Refusal, Work, this_program};
use serde::{Deserialize, Serialize};

/// Makes copies of the files.
#[derive(Serialize, Deserialize)]
pub struct Echo;

impl Work for Echo {
    const NAME: &'static str = "echo";

    fn run(self, files: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        Ok(files.iter().map(|file| file.to_vec()).collect())
    }
}

/// Refuses the files.
#[derive(Serialize, Deserialize)]
pub struct Refuse(pub Refusal);

impl Work for Refuse {
    const NAME: &'static str = "refuse";

    fn run(self, _: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        Err(self.0)
    }
}

/// Panics.
#[derive(Serialize, Deserialize)]
pub struct Panic;

impl Work for Panic {
    const NAME: &'static str = "panic";

    fn run(self, _: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        panic!("an index out of bounds")
    }
}

/// Aborts, as libraries in C do.
#[derive(Serialize, Deserialize)]
pub struct Abort;

impl Work for Abort {
    const NAME: &'static str = "abort";

    fn run(self, _: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        std::process::abort()
    }
}

/// Exits without a reply.
#[derive(Serialize, Deserialize)]
pub struct Exit;

impl Work for Exit {
    const NAME: &'static str = "exit";

    fn run(self, _: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        std::process::exit(3)
    }
}

/// Writes what is no message and goes on.
#[derive(Serialize, Deserialize)]
pub struct Babble;

impl Work for Babble {
    const NAME: &'static str = "babble";

    fn run(self, _: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        // SAFETY: the bytes are valid for reads.
        unsafe { libc::write(libc::STDIN_FILENO, [0xff_u8; 64].as_ptr().cast(), 64) };
        loop {
            park();
        }
    }
}

/// Computes without end.
#[derive(Serialize, Deserialize)]
pub struct Spin;

impl Work for Spin {
    const NAME: &'static str = "spin";
    const TIME_MAX: Duration = Duration::from_secs(1);

    fn run(self, _: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        loop {
            black_box(());
        }
    }
}

/// Reports its process and does nothing without end.
#[derive(Serialize, Deserialize)]
pub struct Hang;

impl Work for Hang {
    const NAME: &'static str = "hang";

    fn run(self, _: &[Bytes], report: &mut dyn FnMut(u32)) -> Made {
        report(std::process::id());
        loop {
            park();
        }
    }
}

/// Reports its process and computes for this time in milliseconds. Makes the id of the process.
#[derive(Serialize, Deserialize)]
pub struct Id(pub u64);

impl Work for Id {
    const NAME: &'static str = "id";

    fn run(self, _: &[Bytes], report: &mut dyn FnMut(u32)) -> Made {
        report(std::process::id());
        let until = Instant::now() + Duration::from_millis(self.0);
        while Instant::now() < until {}
        Ok(vec![std::process::id().to_string().into_bytes()])
    }
}

/// Holds this much memory in bytes from now on. Makes the id of the process.
#[derive(Serialize, Deserialize)]
pub struct Hold(pub usize);

impl Work for Hold {
    const NAME: &'static str = "hold";

    fn run(self, _: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        vec![1_u8; self.0].leak();
        Ok(vec![std::process::id().to_string().into_bytes()])
    }
}

/// Computes for this processor time in milliseconds.
#[derive(Serialize, Deserialize)]
pub struct Compute(pub u64);

impl Work for Compute {
    const NAME: &'static str = "compute";
    const TIME_MAX: Duration = Duration::from_secs(1);

    fn run(self, _: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        let now = || {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: the structure is valid for writes.
            assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) }, 0);
            Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
        };
        let until = now() + Duration::from_millis(self.0);
        while now() < until {}
        Ok(Vec::new())
    }
}

/// Allocates and touches this many bytes.
#[derive(Serialize, Deserialize)]
pub struct Allocate(pub usize);

impl Work for Allocate {
    const NAME: &'static str = "allocate";

    fn run(self, _: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        black_box(vec![1_u8; self.0]);
        Ok(Vec::new())
    }
}

/// Tries to reach everything outside. Makes a line for each attempt: what was tried, and the number of the error or `done`.
#[derive(Serialize, Deserialize)]
pub struct Attempt {
    /// A file that anyone may read.
    pub file: String,
    /// A port that listens.
    pub port: u16,
    /// The parent.
    pub parent: i32,
    /// A descriptor that the parent has open.
    pub descriptor: i32,
}

impl Attempt {
    /// The lines, and the number of variables.
    fn lines(&self) -> (String, String) {
        let mut byte = 0_u8;
        let checked = |result: isize| if result < 0 { Err(Error::last_os_error()) } else { Ok(()) };
        // SAFETY: signal 0 only asks whether a signal could be sent; the byte is valid for writes; a child of this process
        // would do nothing but exit.
        let (killed, read, forked) = unsafe {
            let killed = checked(libc::kill(self.parent, 0) as isize);
            let thread = checked(libc::syscall(libc::SYS_tgkill, self.parent, self.parent, 0) as isize);
            let read = checked(libc::read(self.descriptor, (&raw mut byte).cast(), 1));
            let forked = libc::fork();
            if forked == 0 {
                libc::_exit(0);
            }
            ([killed, thread], read, checked(forked as isize))
        };
        let [killed, signaled] = killed;
        let attempts: [(&str, io::Result<()>); 12] = [
            ("open", File::open(&self.file).map(drop)),
            ("environment", File::open("/proc/self/environ").map(drop)),
            ("create", File::create("/tmp/decoder-was-here").map(drop)),
            ("listen", TcpListener::bind("127.0.0.1:0").map(drop)),
            ("connect", TcpStream::connect(("127.0.0.1", self.port)).map(drop)),
            ("send", UdpSocket::bind("127.0.0.1:0").map(drop)),
            ("local", UnixDatagram::unbound().map(drop)),
            ("run", Command::new("/bin/true").spawn().map(drop)),
            ("fork", forked),
            ("kill", killed),
            ("signal", signaled),
            ("inherited", read),
        ];
        let line = |(name, result): (&str, io::Result<()>)| match result {
            Ok(()) => format!("{name} done\n"),
            Err(error) => format!("{name} {}\n", error.raw_os_error().unwrap_or(-1)),
        };
        (attempts.map(line).concat(), format!("variables {}\n", env::vars_os().count()))
    }
}

impl Work for Attempt {
    const NAME: &'static str = "attempt";

    fn run(self, _: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
        let (attempts, variables) = self.lines();
        Ok(vec![attempts.into_bytes(), variables.into_bytes()])
    }
}

/// What a foreign program does, as its input in JSON says.
#[derive(Serialize, Deserialize)]
pub enum Foreign {
    /// Writes the path of the output to it, from another thread.
    Path,
    /// Writes the output with a number in its name.
    Numbered,
    /// Succeeds without an output.
    Nothing,
    /// Fails with a message.
    Fail,
    Spin,
    Hang,
    Allocate(usize),
    /// Writes an output of this size.
    Write(u64),
    /// Writes this many files of this size.
    Files(usize, u64),
    /// Tries to reach everything outside, and to put links in the place of the output.
    Attempt(Attempt),
}

impl Foreign {
    fn run(self, out: &Path) -> io::Result<()> {
        let file = |path: &Path, bytes: u64| io::copy(&mut io::repeat(7).take(bytes), &mut File::create(path)?);
        match self {
            Self::Path => spawn({
                let out = out.to_owned();
                move || std::fs::write(&out, out.display().to_string())
            })
            .join()
            .expect("does not panic")?,
            Self::Numbered => std::fs::write(out.with_file_name("out-1.png"), "first")?,
            Self::Nothing => {}
            Self::Fail => return Err(Error::other("not a HEIF")),
            Self::Spin => loop {
                black_box(());
            },
            Self::Hang => loop {
                park();
            },
            Self::Allocate(bytes) => std::fs::write(out, [*black_box(vec![1_u8; bytes]).last().unwrap_or(&0)])?,
            Self::Write(bytes) => {
                file(out, bytes)?;
            }
            Self::Files(count, bytes) => {
                for number in 0..count {
                    file(&out.with_file_name(number.to_string()), bytes)?;
                }
                park_timeout(Duration::from_secs(60));
            }
            Self::Attempt(attempt) => {
                let links = [
                    std::os::unix::fs::symlink(&attempt.file, out).is_ok(),
                    std::fs::hard_link(&attempt.file, out).is_ok(),
                    // SAFETY: the limit is valid for reads.
                    unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &libc::rlimit { rlim_cur: 1, rlim_max: 1 }) == 0 },
                ];
                let (attempts, variables) = attempt.lines();
                std::fs::write(out, format!("{attempts}{variables}links and limits {links:?}\n"))?;
            }
        }
        Ok(())
    }
}

/// A foreign program.
fn foreign(input: &str, out: &str) -> ExitCode {
    let order = std::fs::read(input).and_then(|text| Ok(serde_json::from_slice::<Foreign>(&text)?));
    match order.and_then(|order| order.run(Path::new(out))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Has a decoder hang, and prints its id.
fn parent() -> ! {
    let order = Order::new("me", Hang, Vec::new());
    let progress = order.progress.clone();
    spawn(move || {
        while progress.load(Ordering::Relaxed) == 0 {
            park_timeout(Duration::from_millis(1));
        }
        println!("{}", progress.load(Ordering::Relaxed));
    });
    let ended = Pool::new(this_program(), 0).run(&order, 0, &Leash::default()).0;
    panic!("it hangs: {ended:?}")
}

fn main() -> ExitCode {
    match env::args().nth(1).as_deref() {
        Some(COMMAND) => decoder::serve(&[
            Kind::of::<Echo>(),
            Kind::of::<Refuse>(),
            Kind::of::<Panic>(),
            Kind::of::<Abort>(),
            Kind::of::<Exit>(),
            Kind::of::<Babble>(),
            Kind::of::<Spin>(),
            Kind::of::<Hang>(),
            Kind::of::<Id>(),
            Kind::of::<Hold>(),
            Kind::of::<Compute>(),
            Kind::of::<Allocate>(),
            Kind::of::<Attempt>(),
        ]),
        Some(PROGRAM_COMMAND) => decoder::become_program(),
        Some("parent") => parent(),
        Some(input) => foreign(input, &env::args().nth(2).unwrap_or_default()),
        _ => ExitCode::FAILURE,
    }
}
