//! A decoder whose work does what codecs do when a file takes them over, for the tests (`tests/it.rs`).
//!
//! `probe decode` is the decoder. `probe parent` is a process that has one do [`Hang`] and prints its id.

use std::env;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Error};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, ExitCode};
use std::sync::atomic::Ordering;
use std::thread::{park, park_timeout, spawn};
use std::time::{Duration, Instant};

use bytes::Bytes;
use decoder::{COMMAND, Kind, Leash, Made, Order, Pool, Refusal, Work, this_program};
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

impl Work for Attempt {
    const NAME: &'static str = "attempt";

    fn run(self, _: &[Bytes], _: &mut dyn FnMut(u32)) -> Made {
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
        let variables = format!("variables {}\n", env::vars_os().count());
        Ok(vec![attempts.map(line).concat().into_bytes(), variables.into_bytes()])
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
        Some("parent") => parent(),
        _ => ExitCode::FAILURE,
    }
}
