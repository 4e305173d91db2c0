//! Decoders that misbehave ([`probe`]), and what their parent makes of it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread::{park_timeout, spawn};
use std::time::{Duration, Instant};

use bytes::Bytes;
use decoder::{Failure, Leash, Order, Outcome, Pool, Program, Refusal, Work};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Metadata, Recorder, SharedString, Unit};

#[allow(dead_code, reason = "the program of an example")]
#[path = "../examples/probe.rs"]
mod probe;

use probe::{Abort, Allocate, Attempt, Babble, Compute, Echo, Exit, Foreign, Hang, Hold, Id, Panic, Refuse, Spin};

/// Longer than anything here takes.
const DEADLINE: Duration = Duration::from_secs(60);

/// The example, which cargo builds with the tests.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("is a file");
    let program = test.ancestors().nth(2).expect("a directory").join("examples/probe");
    assert!(program.exists(), "cargo build -p canvas-decoder --examples");
    program
}

fn pool() -> Pool {
    Pool::new(program(), u64::MAX)
}

fn run(pool: &Pool, owner: &str, work: impl Work) -> Outcome {
    pool.run(&Order::new(owner, work, Vec::new()), 0, &Leash::default()).0
}

/// The process that serves an owner.
fn id(pool: &Pool, owner: &str) -> u32 {
    id_of(pool, owner, Id(0))
}

/// The process that does this work, which makes its id.
fn id_of(pool: &Pool, owner: &str, work: impl Work) -> u32 {
    let made = run(pool, owner, work).expect("is done").expect("is accepted");
    String::from_utf8_lossy(&made[0]).parse().expect("a number")
}

fn refused(outcome: Outcome) -> String {
    match outcome.expect("is done") {
        Err(Refusal::Input(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// Waits for a number other than `before`.
fn reported(progress: &AtomicU32, before: u32) -> u32 {
    until(|| Some(progress.load(Ordering::Relaxed)).filter(|number| *number != before))
}

fn until<T>(look: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "in vain");
        park_timeout(Duration::from_millis(1));
    }
}

/// Whether a process is there and no zombie.
fn runs(pid: u32) -> bool {
    let state = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    // The state follows the name in parentheses.
    state.is_ok_and(|state| !state.rsplit_once(") ").expect("has a name").1.starts_with('Z'))
}

fn kill(pid: u32, signal: i32) {
    // SAFETY: a decoder of this test, which its pool has not waited for.
    assert_eq!(unsafe { libc::kill(pid.cast_signed(), signal) }, 0);
}

#[test]
fn files_go_to_a_decoder_and_come_back() {
    let pool = pool();
    let large = Bytes::from((0..9 << 20).map(|n: u32| (n >> 3) as u8).collect::<Vec<u8>>());
    let order = Order::new("me", Echo, vec![large.clone(), Bytes::new()]);
    for _ in 0..2 {
        let made = pool.run(&order, 32 << 20, &Leash::default()).0.expect("is done").expect("is accepted");
        assert_eq!(made.len(), 2);
        assert!(made[0] == large && made[1].is_empty());
    }
}

#[test]
fn a_refusal_comes_back_and_the_decoder_goes_on() {
    let pool = pool();
    let before = id(&pool, "me");
    let refusal = Refusal::Input("truncated".into());
    assert_eq!(run(&pool, "me", Refuse(refusal.clone())).expect("is done"), Err(refusal));
    assert_eq!(id(&pool, "me"), before);
}

#[test]
fn what_fails_in_a_decoder_that_has_worked_is_tried_in_a_new_one() {
    let pool = pool();
    let before = id(&pool, "me");
    let refusal = Refusal::Internal("no memory".into());
    assert_eq!(run(&pool, "me", Refuse(refusal.clone())).expect("is done"), Err(refusal), "it fails there as well");
    assert_ne!(id(&pool, "me"), before);
    until(|| (!runs(before)).then_some(()));
}

#[test]
fn a_decoder_serves_one_owner() {
    let pool = pool();
    let (mine, yours) = (id(&pool, "me"), id(&pool, "you"));
    assert_ne!(mine, yours);
    assert_eq!((id(&pool, "me"), id(&pool, "you")), (mine, yours));
}

#[test]
fn decoders_that_hold_too_much_memory_together_end_the_one_that_was_not_used_for_longest_first() {
    const MIB: usize = 1 << 20;
    let pool = Pool::new(program(), 128 * MIB as u64);
    let others: Vec<u32> = (0..8).map(|number| id(&pool, &number.to_string())).collect();
    let [mine, yours] = ["me", "you"].map(|owner| id_of(&pool, owner, Hold(48 * MIB)));
    assert!([mine, yours].iter().chain(&others).all(|pid| runs(*pid)), "they hold less together");
    let theirs = id_of(&pool, "them", Hold(48 * MIB));
    // The next order finds that they hold more.
    id(&pool, "somebody");
    until(|| others.iter().chain([&mine]).all(|pid| !runs(*pid)).then_some(()));
    assert_eq!((id(&pool, "you"), id(&pool, "them")), (yours, theirs));
}

#[test]
fn a_decoder_is_replaced_after_256_orders() {
    let pool = pool();
    let first = id(&pool, "me");
    for order in 2..=256 {
        assert_eq!(id(&pool, "me"), first, "order {order}");
    }
    assert_ne!(id(&pool, "me"), first);
    assert!(!runs(first));
}

#[test]
fn what_kills_a_decoder_twice_is_refused_and_the_next_order_is_done() {
    let pool = pool();
    assert_eq!(refused(run(&pool, "me", Abort)), "the image could not be processed");
    assert_eq!(refused(run(&pool, "me", Panic)), "the image could not be processed");
    assert!(run(&pool, "me", Echo).expect("is done").is_ok());
}

#[test]
fn a_decoder_that_ends_or_talks_nonsense_says_nothing_about_the_files() {
    let pool = pool();
    for outcome in [run(&pool, "me", Exit), run(&pool, "me", Babble)] {
        assert!(matches!(outcome, Err(Failure::Ended(_))), "{outcome:?}");
    }
    assert!(run(&pool, "me", Echo).expect("is done").is_ok());
}

#[test]
fn decoders_that_were_killed_while_they_did_nothing_are_replaced() {
    let pool = pool();
    pool.check().expect("starts");
    let used = id(&pool, "me");
    // One that is used, and one that is fresh.
    for pid in children() {
        kill(pid, libc::SIGKILL);
        until(|| (!runs(pid)).then_some(()));
    }
    assert_ne!(id(&pool, "me"), used);
}

/// The decoders of this test, which has a process of its own.
fn children() -> Vec<u32> {
    let own = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").expect("lists").filter_map(|entry| {
        let pid: u32 = entry.expect("is there").file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // State and parent follow the name in parentheses.
        (stat.rsplit_once(") ")?.1.split(' ').nth(1)? == own).then_some(pid)
    });
    processes.collect()
}

/// Runs work that takes a while and kills its decoders with these signals, one after the other.
fn killed_by(signals: &[i32]) -> Outcome {
    let order = Order::new("me", Id(1000), Vec::new());
    let progress = order.progress.clone();
    let done = spawn(move || pool().run(&order, 0, &Leash::default()).0);
    let mut last = 0;
    for signal in signals {
        last = reported(&progress, last);
        kill(last, *signal);
    }
    done.join().expect("does not panic")
}

#[test]
fn an_order_is_tried_in_two_decoders() {
    assert_eq!(killed_by(&[libc::SIGABRT]).expect("is done").expect("is accepted").len(), 1);
    assert_eq!(refused(killed_by(&[libc::SIGABRT, libc::SIGABRT])), "the image could not be processed");
    // The system has ended them because it is out of memory.
    assert!(matches!(killed_by(&[libc::SIGKILL, libc::SIGKILL]), Err(Failure::Ended(_))));
}

#[test]
fn a_decoder_that_computes_too_long_is_ended() {
    let began = Instant::now();
    let pool = pool();
    assert_eq!(refused(run(&pool, "me", Spin)), "the image takes too long to process");
    assert!(began.elapsed() >= Duration::from_millis(900));
    // The limit counts from the start of an order.
    for _ in 0..3 {
        assert!(run(&pool, "me", Compute(600)).expect("is done").is_ok());
    }
}

/// Counters by their reason.
#[derive(Default)]
struct Counted(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Counted {
    fn values(&self) -> Vec<(String, u64)> {
        let counters = self.0.lock().expect("nothing panics");
        counters.iter().map(|(reason, count)| (reason.clone(), count.load(Ordering::Relaxed))).collect()
    }
}

impl Recorder for Counted {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        assert_eq!(key.name(), "canvas_decoder_deaths_total");
        let reason = key.labels().map(Label::value).collect();
        Counter::from_arc(self.0.lock().expect("nothing panics").entry(reason).or_default().clone())
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn decoders_that_die_at_work_are_counted_by_their_reason() {
    let counted = Counted::default();
    metrics::with_local_recorder(&counted, || {
        let pool = pool();
        let _ = (run(&pool, "me", Abort), run(&pool, "me", Exit), run(&pool, "me", Babble), run(&pool, "me", Panic));
        let _ = run(&pool, "me", Spin);
        let order = Order::new("me", Id(1000), Vec::new());
        let progress = order.progress.clone();
        let killer = spawn(move || kill(reported(&progress, 0), libc::SIGILL));
        assert!(pool.run(&order, 0, &Leash::default()).0.is_ok(), "the second one lives");
        killer.join().expect("kills it");
        // What was refused or canceled is no death.
        let _ = run(&pool, "me", Refuse(Refusal::Input("truncated".into())));
        let leash = Leash::default();
        leash.cancel();
        let _ = pool.run(&Order::new("me", Echo, Vec::new()), 0, &leash);
    });
    let expected = [("abort", 2), ("crash", 1), ("exit", 2), ("kill", 2), ("panic", 1), ("time", 1)];
    assert_eq!(counted.values(), expected.map(|(reason, count)| (reason.to_owned(), count)));
}

#[test]
fn the_processor_time_of_decoders_is_told() {
    let pool = pool();
    let spent = |outcome: (Outcome, Duration)| outcome.1.as_millis();
    for milliseconds in [200, 300, 100] {
        let order = Order::new("me", Compute(milliseconds), Vec::new());
        // The start of the first one counts as well.
        let told = spent(pool.run(&order, 0, &Leash::default()));
        assert!((milliseconds.into()..u128::from(milliseconds) + 90).contains(&told), "{milliseconds}: {told}");
    }
    assert!(spent(pool.run(&Order::new("me", Spin, Vec::new()), 0, &Leash::default())) >= 900);
}

#[test]
fn a_decoder_has_twice_the_memory_that_is_granted_and_its_own() {
    const OWN: usize = 192 << 20;
    const GRANTED: usize = 256 << 20;
    let pool = pool();
    // The rest is what the program itself takes.
    for (bytes, fits) in [(GRANTED, true), (2 * GRANTED + OWN - (16 << 20), true), (2 * GRANTED + OWN, false)] {
        let order = Order::new("me", Allocate(bytes), Vec::new());
        let outcome = pool.run(&order, GRANTED as u64, &Leash::default()).0.expect("is done");
        assert_eq!(outcome.is_ok(), fits, "{bytes}: {outcome:?}");
    }
}

#[test]
fn a_reply_has_at_most_the_memory_that_is_granted() {
    let file = Bytes::from(vec![7; 20 << 20]);
    let order = Order::new("me", Echo, vec![file]);
    for (granted, fits) in [(15 << 20, false), (20 << 20, true)] {
        let outcome = pool().run(&order, granted, &Leash::default()).0;
        assert_eq!(outcome.is_ok(), fits, "{granted}: {:?}", outcome.err());
    }
}

#[test]
fn a_canceled_order_ends_at_once_with_its_decoder() {
    let order = Order::new("me", Hang, Vec::new());
    let (progress, leash) = (order.progress.clone(), Leash::default());
    let pool = pool();
    let done = spawn({
        let (pool, leash) = (pool.clone(), leash.clone());
        move || pool.run(&order, 0, &leash).0
    });
    let pid = reported(&progress, 0);
    leash.cancel();
    assert!(matches!(done.join().expect("does not panic"), Err(Failure::Canceled)));
    assert!(!runs(pid));
    // It is canceled for good.
    assert!(matches!(pool.run(&Order::new("me", Echo, Vec::new()), 0, &leash).0, Err(Failure::Canceled)));
    assert!(run(&pool, "me", Echo).expect("is done").is_ok());
}

#[test]
fn a_cancel_after_the_end_has_no_effect() {
    let (pool, leash) = (pool(), Leash::default());
    let made = pool.run(&Order::new("me", Id(0), Vec::new()), 0, &leash).0.expect("is done").expect("is accepted");
    leash.cancel();
    assert_eq!(made[0], id(&pool, "me").to_string().into_bytes());
}

#[test]
fn decoders_work_at_the_same_time() {
    let (pool, barrier) = (pool(), Arc::new(Barrier::new(4)));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (pool, barrier) = (pool.clone(), barrier.clone());
            spawn(move || {
                let order = Order::new("me", Hang, Vec::new());
                let (progress, leash) = (order.progress.clone(), Leash::default());
                let waiting = spawn({
                    let leash = leash.clone();
                    move || {
                        let pid = reported(&progress, 0);
                        // None ends before all hang.
                        barrier.wait();
                        leash.cancel();
                        pid
                    }
                });
                assert!(matches!(pool.run(&order, 0, &leash).0, Err(Failure::Canceled)));
                waiting.join().expect("does not panic")
            })
        })
        .collect();
    let mut ids: Vec<u32> = threads.into_iter().map(|thread| thread.join().expect("does not panic")).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 4);
}

#[test]
fn a_decoder_reaches_nothing() {
    let pool = pool();
    let confinement = pool.check().expect("starts");
    assert!(confinement.seccomp, "every kernel that the service supports has it");
    let there = TcpListener::bind("127.0.0.1:0").expect("listens");
    let attempt = Attempt {
        file: program().display().to_string(),
        port: there.local_addr().expect("has an address").port(),
        parent: std::process::id().cast_signed(),
        descriptor: inherited(),
    };
    let made = run(&pool, "me", attempt).expect("is done").expect("is accepted");
    let [attempts, variables] = &made[..] else { panic!("{made:?}") };
    assert_eq!(String::from_utf8_lossy(variables), "variables 0\n");
    let refused = |name: &str| format!("{name} {}\n", libc::EPERM);
    let others =
        ["open", "environment", "create", "listen", "connect", "send", "local", "run", "fork", "kill", "signal"];
    let expected = others.map(refused).concat() + &format!("inherited {}\n", libc::EBADF);
    assert_eq!(String::from_utf8_lossy(attempts), expected);
}

/// A descriptor that children inherit.
fn inherited() -> i32 {
    let file = std::fs::File::open(program()).expect("opens");
    // SAFETY: the descriptor is open. The copy stays open to the end of the process.
    let copy = unsafe { libc::dup(file.as_raw_fd()) };
    assert!(copy > libc::STDERR_FILENO);
    copy
}

#[test]
fn decoders_end_with_their_parent() {
    let mut command = Command::new(program());
    let mut parent = command.arg("parent").stdout(Stdio::piped()).spawn().expect("starts");
    let mut line = String::new();
    BufReader::new(parent.stdout.take().expect("is piped")).read_line(&mut line).expect("reads");
    let pid = line.trim().parse().expect("a number");
    assert!(runs(pid));
    parent.kill().expect("is there");
    parent.wait().expect("ends");
    until(|| (!runs(pid)).then_some(()));
}

#[test]
fn decoders_end_with_their_pool() {
    let pool = pool();
    let pid = id(&pool, "me");
    assert!(runs(pid));
    drop(pool);
    assert!(!runs(pid));
}

#[test]
fn what_a_killed_process_left_of_a_foreign_program_is_deleted_by_the_next_one() {
    let [old, new] = ["old", "new"].map(|name| {
        let path = std::env::temp_dir().join(format!("canvas-heif-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).expect("is new");
        std::fs::write(path.join("in.heic"), b"a photograph").expect("is written");
        path
    });
    std::fs::File::open(&old).and_then(|directory| directory.set_modified(std::time::UNIX_EPOCH)).expect("is set");
    // Whether the kernel can confine the program makes no difference here.
    let _ = Program::new(program(), "/bin/true").check();
    assert!(!old.exists() && new.exists());
    std::fs::remove_dir_all(new).expect("is there");
}

#[test]
fn a_program_that_cannot_be_started_is_a_failure() {
    let pool = Pool::new("/nowhere/decoder", 0);
    assert!(pool.check().is_err());
    assert!(matches!(run(&pool, "me", Echo), Err(Failure::Start(_))));
}

/// Sizes of the results of foreign programs here.
const FILE_MAX: u64 = 1 << 20;

fn foreign() -> Program {
    Program::new(program(), program())
}

fn converted(program: &Program, order: &Foreign, memory_bytes: u64) -> Outcome {
    let order = serde_json::to_vec(order).expect("writes");
    program.convert(&order, (memory_bytes, FILE_MAX), &Leash::default()).0
}

fn refused_by_program(order: &Foreign) -> String {
    refused(converted(&foreign().within(Duration::from_secs(1)), order, 0))
}

#[test]
fn a_file_goes_to_a_foreign_program_and_comes_back() {
    foreign().check().expect("can run");
    let path = converted(&foreign(), &Foreign::Path, 0).expect("is done").expect("is accepted");
    let path = PathBuf::from(String::from_utf8(path.concat()).expect("UTF-8"));
    assert_eq!(path.extension().expect("has one"), "png");
    assert!(!path.parent().expect("is in a directory").exists(), "nothing is left");
    let first = converted(&foreign(), &Foreign::Numbered, 0).expect("is done");
    assert_eq!(first, Ok(vec![b"first".to_vec()]), "that of a file with several images");
}

#[test]
fn a_foreign_program_that_fails_refuses_the_file() {
    for order in [Foreign::Fail, Foreign::Nothing] {
        assert_eq!(refused_by_program(&order), "the image could not be decoded");
    }
}

#[test]
fn a_foreign_program_has_limited_time() {
    for order in [Foreign::Spin, Foreign::Hang] {
        let began = Instant::now();
        assert_eq!(refused_by_program(&order), "the image takes too long to process");
        assert!(began.elapsed() >= Duration::from_millis(900));
    }
}

#[test]
fn a_foreign_program_writes_limited_files() {
    for (bytes, fits) in [(FILE_MAX - 1, true), (FILE_MAX, true), (FILE_MAX + 1, false)] {
        let made = converted(&foreign(), &Foreign::Write(bytes), 0).expect("is done");
        assert_eq!(made.as_ref().map(|files| files[0].len() as u64).ok(), fits.then_some(bytes));
    }
    let many = converted(&foreign(), &Foreign::Files(3, FILE_MAX), 0).expect("is done");
    assert_eq!(many, Err(Refusal::Input("the image is larger than it declares".into())), "all together");
}

#[test]
fn a_foreign_program_has_the_memory_of_a_decoder() {
    const OWN: usize = 192 << 20;
    const GRANTED: usize = 64 << 20;
    for (bytes, fits) in [(GRANTED, true), (2 * GRANTED + OWN - (16 << 20), true), (2 * GRANTED + OWN, false)] {
        let made = converted(&foreign(), &Foreign::Allocate(bytes), GRANTED as u64).expect("is done");
        assert_eq!(made.is_ok(), fits, "{bytes}: {made:?}");
    }
}

#[test]
fn a_foreign_program_reaches_nothing() {
    let there = TcpListener::bind("127.0.0.1:0").expect("listens");
    let attempt = Attempt {
        file: Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml").display().to_string(),
        port: there.local_addr().expect("has an address").port(),
        parent: std::process::id().cast_signed(),
        descriptor: inherited(),
    };
    let made = converted(&foreign(), &Foreign::Attempt(attempt), 0).expect("is done").expect("is accepted");
    let text = String::from_utf8(made.concat()).expect("UTF-8");
    let (refused, absent) = (libc::EPERM, libc::EACCES);
    let expected: Vec<String> = ["open", "environment", "create"]
        .map(|name| format!("{name} {absent}"))
        .into_iter()
        .chain(
            ["listen", "connect", "send", "local", "run", "fork", "kill", "signal"]
                .map(|name| format!("{name} {refused}")),
        )
        .chain([
            format!("inherited {}", libc::EBADF),
            "variables 0".into(),
            "links and limits [false, false, false]".into(),
        ])
        .collect();
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_canceled_foreign_program_ends() {
    let leash = Leash::default();
    let done = spawn({
        let leash = leash.clone();
        move || {
            let order = serde_json::to_vec(&Foreign::Hang).expect("writes");
            foreign().convert(&order, (0, FILE_MAX), &leash).0
        }
    });
    let pid = until(|| children().pop());
    leash.cancel();
    assert!(matches!(done.join().expect("does not panic"), Err(Failure::Canceled)));
    assert!(!runs(pid));
}

#[test]
fn a_foreign_program_that_cannot_run_says_nothing_about_the_file() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    for path in [Path::new("/nowhere/heif-dec"), Path::new("/usr"), file.as_path()] {
        let program = Program::new(program(), path);
        assert!(program.check().is_err(), "{}", path.display());
        let outcome = converted(&program, &Foreign::Path, 0);
        assert!(matches!(outcome, Err(Failure::Start(_))), "{}: {outcome:?}", path.display());
    }
}
