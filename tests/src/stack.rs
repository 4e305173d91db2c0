//! A whole service: processes with their own database, virtual host, blob directory and ports.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use testkit::{Identity, Receiver, Reserved, free_ports, wait_for};
use uuid::Uuid;

use crate::ground::{Ground, Networks};
use crate::process::{Launch, Process};
use crate::services::{Services, Urls};
use crate::shared::Visit;
use crate::{Client, Kind, PATIENCE, Part};

/// A key ring of one key, for tests.
const MASTER_KEYS: &str = "e2e:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// The passwords with which the migration makes the roles of the processes.
const PASSWORDS: &str = "CANVAS_DATABASE_PASSWORDS";
/// The number of log lines of a process that a failed test shows.
const LOG_TAIL: usize = 60;
/// The configuration of the resolver in the directory of a stack with [`Builder::nameserver`].
const RESOLVER: &str = "resolv.conf";
/// The file in the directory of a shared stack that says that a test failed on it.
const KEPT: &str = "kept";

/// The configuration of a stack. [`Builder::start`] starts one for the test, [`Builder::shared`] one for all tests with an equal
/// configuration.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Builder {
    counts: BTreeMap<Kind, usize>,
    receivers: usize,
    env: BTreeMap<String, String>,
    holds: Vec<String>,
    services: Option<Urls>,
    networks: bool,
    disk: Option<String>,
    nameserver: Option<String>,
    cold: bool,
}

impl Builder {
    /// Sets the number of gateways (default 1).
    pub fn gateways(mut self, count: usize) -> Self {
        self.counts.insert(Kind::Gateway, count);
        self
    }

    /// Sets the number of image-workers (default 0).
    pub fn image_workers(mut self, count: usize) -> Self {
        self.counts.insert(Kind::ImageWorker, count);
        self
    }

    /// Sets the number of video-workers (default 0).
    pub fn video_workers(mut self, count: usize) -> Self {
        self.counts.insert(Kind::VideoWorker, count);
        self
    }

    /// Sets the number of webhook-dispatchers (default 0).
    pub fn dispatchers(mut self, count: usize) -> Self {
        self.counts.insert(Kind::Dispatcher, count);
        self
    }

    /// Sets the number of receivers that tests can take, which the egress guard allows (default 0).
    pub fn receivers(mut self, count: usize) -> Self {
        self.receivers = count;
        self
    }

    /// Sets an environment variable of all processes. It overrides the harness's value.
    pub fn env(mut self, name: &str, value: impl ToString) -> Self {
        self.env.insert(name.to_owned(), value.to_string());
        self
    }

    /// Makes every process stop at this failpoint until [`Hold::release`].
    pub fn hold(mut self, failpoint: &str) -> Self {
        self.holds.push(failpoint.to_owned());
        self
    }

    /// Uses the test's own services instead of those of the test run. They must outlive the stack.
    pub fn on(mut self, services: &Services) -> Self {
        self.services = Some(services.urls().clone());
        self
    }

    /// Puts a proxy that can fail in front of each service ([`Stack::networks`]).
    pub fn behind_networks(mut self) -> Self {
        self.networks = true;
        self
    }

    /// Gives every process its own disk of this size (`1m`) for blobs, small enough to be filled.
    pub fn disk(mut self, size: &str) -> Self {
        self.disk = Some(size.to_owned());
        self
    }

    /// Lets every process resolve names at this address of loopback. Not together with [`Self::disk`].
    pub fn nameserver(mut self, address: &str) -> Self {
        self.nameserver = Some(address.to_owned());
        self
    }

    /// Runs no migrations and does not wait for readiness.
    pub fn cold(mut self) -> Self {
        self.cold = true;
        self
    }

    /// Starts the stack and waits until every part is ready.
    pub async fn start(self) -> Stack {
        Stack::start(self).await
    }
}

/// A running service. Its owner removes processes and data when it is dropped. If a test fails, it prints the ends of the logs, and
/// the directory with the whole logs and the blobs is kept.
pub struct Stack {
    site: Site,
    ground: Ground,
    disk: Option<String>,
    processes: Mutex<BTreeMap<Part, Process>>,
    /// Keeps the ports of the receivers.
    _reserved: Vec<Reserved>,
    /// Present if another process owns the stack.
    visit: Option<Visit>,
}

/// The data by which another process uses a stack.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Site {
    directory: PathBuf,
    services: Urls,
    env: Vec<(String, String)>,
    listeners: Vec<Listener>,
    receivers: Option<Receivers>,
}

/// The ports of a part: of the API, which only a gateway has, and of the admin listener.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Listener {
    part: Part,
    api: u16,
    admin: u16,
}

#[derive(Debug, Deserialize, Serialize)]
struct Receivers {
    identity: Identity,
    ports: Vec<u16>,
}

impl Stack {
    /// A builder for one gateway and no other process.
    pub fn builder() -> Builder {
        let counts = BTreeMap::from([(Kind::Gateway, 1)]);
        Builder {
            counts,
            receivers: 0,
            env: BTreeMap::new(),
            holds: Vec::new(),
            services: None,
            networks: false,
            disk: None,
            nameserver: None,
            cold: false,
        }
    }

    async fn start(builder: Builder) -> Self {
        let directory = std::env::temp_dir().join(format!("canvas-e2e-{}", Uuid::new_v4().simple()));
        fs::create_dir_all(directory.join("blobs")).expect("makes a directory for the stack");
        let ground = match &builder.services {
            Some(urls) => Ground::of(urls),
            None => Ground::shared().await,
        };
        let ground = if builder.networks { ground.behind_networks().await } else { ground };
        let parts: Vec<Part> =
            builder.counts.iter().flat_map(|(kind, count)| (0..*count).map(|index| Part(*kind, index))).collect();
        let free = free_ports(parts.len() * 2);
        let listeners: Vec<Listener> = parts
            .iter()
            .zip(free.chunks(2))
            .map(|(part, ports)| Listener { part: *part, api: ports[0], admin: ports[1] })
            .collect();
        let reserved: Vec<Reserved> = (0..builder.receivers).map(|_| Reserved::new()).collect();
        let receivers = (builder.receivers > 0)
            .then(|| Receivers { identity: Identity::new(&[]), ports: reserved.iter().map(Reserved::port).collect() });
        let origin =
            listeners.iter().find(|listener| listener.part == Part::GATEWAY).map_or(0, |listener| listener.api);
        let env = environment(&builder, &directory, &ground.seen_by_processes(), origin, receivers.as_ref());
        let site = Site { directory, services: ground.urls().clone(), env, listeners, receivers };
        if let Some(address) = &builder.nameserver {
            let config = format!("nameserver {address}\noptions timeout:5 attempts:2\n");
            fs::write(site.directory.join(RESOLVER), config).expect("writes a configuration of the resolver");
        }
        let stack =
            Self { site, ground, disk: builder.disk, processes: Mutex::default(), _reserved: reserved, visit: None };
        if !builder.cold {
            stack.admin(&["migrate"]).await.expect_success();
        }
        for part in &parts {
            stack.launch(*part, &[]);
        }
        for part in parts.iter().filter(|_| !builder.cold) {
            stack.ready(*part).await;
        }
        stack
    }

    /// A stack that another process owns.
    pub(crate) fn visit(site: Site, visit: impl FnOnce(&Self) -> Visit) -> Self {
        let (ground, processes) = (Ground::of(&site.services), Mutex::default());
        let mut stack = Self { site, ground, disk: None, processes, _reserved: Vec::new(), visit: None };
        stack.visit = Some(visit(&stack));
        stack
    }

    pub(crate) fn site(&self) -> &Site {
        &self.site
    }

    /// A client of a gateway, without a credential.
    pub fn anonymous(&self) -> Client {
        self.anonymous_at(0)
    }

    /// A client of the gateway with this number, without a credential.
    pub fn anonymous_at(&self, gateway: usize) -> Client {
        Client::new(&self.origin(gateway))
    }

    /// The origin `http://127.0.0.1:<port>` of a gateway.
    pub fn origin(&self, gateway: usize) -> String {
        format!("http://{}", self.authority(gateway))
    }

    /// The authority `127.0.0.1:<port>` of a gateway.
    pub fn authority(&self, gateway: usize) -> String {
        format!("127.0.0.1:{}", self.listener(Part(Kind::Gateway, gateway)).api)
    }

    /// A client of a part's admin listener.
    pub fn probes(&self, part: Part) -> Client {
        Client::new(&format!("http://127.0.0.1:{}", self.listener(part).admin))
    }

    /// Connections to the database, for state that HTTP does not show.
    pub fn pool(&self) -> &sqlx::PgPool {
        self.ground.pool()
    }

    /// The only number in the result of `sql`.
    pub async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(self.pool()).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The only number in the result of `sql`, in which `$1` is `of`.
    pub async fn count_of(&self, sql: &'static str, of: &str) -> i64 {
        let query = sqlx::query_scalar(sql).bind(of);
        query.fetch_one(self.pool()).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Runs `sql`, for state that otherwise only time or a defect would create.
    pub async fn execute(&self, sql: &'static str) {
        sqlx::query(sql).execute(self.pool()).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// The environment of the service; each process gets what it uses, and connects to the database with its own role instead of the
    /// owner of the schema.
    pub fn env(&self) -> &[(String, String)] {
        &self.site.env
    }

    /// The environment of whoever connects with the database role of this suffix; without one, of the migration.
    pub(crate) fn env_of(&self, role: Option<&str>) -> Vec<(String, String)> {
        let Some(role) = role else { return self.site.env.clone() };
        let variables = self.site.env.iter().filter(|(name, _)| name != PASSWORDS).cloned();
        let with_role = |(name, value): (String, String)| match name.as_str() {
            "CANVAS_DATABASE_URL" => (name, testkit::role_url(&value, role)),
            _ => (name, value),
        };
        variables.map(with_role).collect()
    }

    /// The directory of the blobs.
    pub fn blobs(&self) -> PathBuf {
        self.site.directory.join("blobs")
    }

    /// The directory of the blobs of a running part that has its own disk ([`Builder::disk`]).
    pub fn disk_of(&self, part: Part) -> PathBuf {
        self.with(part, |process| process.sees(&self.blobs()))
    }

    /// The URL of the broker, with the stack's virtual host.
    pub fn amqp_url(&self) -> String {
        self.site.services.broker.clone()
    }

    /// The proxies between processes and services. Requires [`Builder::behind_networks`].
    pub fn networks(&self) -> &Networks {
        self.ground.networks().expect("the stack has networks: call Builder::behind_networks")
    }

    /// The parts of the stack, including those that were killed.
    pub fn parts(&self) -> Vec<Part> {
        self.site.listeners.iter().map(|listener| listener.part).collect()
    }

    /// The sum of a part's metric over all labels, as its admin listener reports it. 0 if the metric does not exist.
    pub async fn metric(&self, part: Part, name: &str) -> f64 {
        let (_, _, text) = self.probes(part).fetch("/metrics").await;
        let samples = text.lines().filter(|line| line.split(['{', ' ']).next() == Some(name));
        samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// Takes a receiver. There are as many as [`Builder::receivers`] set, each for one test, so that a late request of another
    /// test does not reach it.
    pub fn take_receiver(&self) -> Receiver {
        let Receivers { identity, ports } = self.site.receivers.as_ref().expect("the stack has receivers");
        let taken = |port: &u16| fs::File::create_new(self.site.directory.join(format!("receiver-{port}"))).is_err();
        let port = ports.iter().find(|port| !taken(port));
        Receiver::start_on(*port.expect("a receiver is left: set a higher number with Builder::receivers"), identity)
    }

    /// A hold that [`Builder::hold`] requested.
    pub fn hold(&self, failpoint: &str) -> Hold {
        Hold { file: hold_file(&self.site.directory, failpoint), failpoint: failpoint.to_owned() }
    }

    /// Creates a hold for parts that are [restarted](Self::restart_with) with `CANVAS_FAILPOINTS` set to the returned text.
    pub fn make_hold(&self, failpoint: &str) -> (Hold, String) {
        let file = self.site.directory.join(format!("hold-{failpoint}-{}", Uuid::new_v4().simple()));
        (Hold::make(file.clone(), failpoint), format!("{failpoint}=hold:{}", file.display()))
    }

    /// Sends SIGKILL.
    pub fn kill(&self, part: Part) {
        self.with(part, Process::kill);
    }

    /// Sends SIGTERM and waits until the process has ended.
    pub async fn stop(&self, part: Part) -> ExitStatus {
        let mut process = self.processes().remove(&part).expect("the part runs");
        let status = process.stop().await;
        self.processes().insert(part, process);
        status
    }

    /// Sends SIGSTOP: the process exists but does not run.
    pub fn pause(&self, part: Part) {
        self.with(part, |process| process.signal("STOP"));
    }

    /// Sends SIGCONT: the process continues.
    pub fn resume(&self, part: Part) {
        self.with(part, |process| process.signal("CONT"));
    }

    /// Stops a part if it is running, starts it again, and waits until it is ready.
    pub async fn restart(&self, part: Part) {
        self.restart_with(part, &[]).await;
    }

    /// Restarts a part with additional variables.
    pub async fn restart_with(&self, part: Part, env: &[(&str, &str)]) {
        self.launch_with(part, env);
        self.ready(part).await;
    }

    /// Stops a part if it is running and starts it again with additional variables, without waiting until it is ready.
    pub fn launch_with(&self, part: Part, env: &[(&str, &str)]) {
        drop(self.processes().remove(&part));
        self.launch(part, env);
    }

    /// The exit status of a part that has exited.
    pub fn has_ended(&self, part: Part) -> Option<ExitStatus> {
        self.with(part, Process::ended)
    }

    /// Waits until a part has exited by itself.
    pub async fn ended(&self, part: Part) -> ExitStatus {
        wait_for(&format!("{part} to end"), PATIENCE * 2, async || self.with(part, Process::ended)).await
    }

    /// The process id of a part.
    pub fn process_id(&self, part: Part) -> u32 {
        self.with(part, |process| process.id())
    }

    /// The maximum resident memory of a part so far, in bytes.
    pub fn peak_resident(&self, part: Part) -> u64 {
        self.with(part, |process| process.peak_resident())
    }

    /// The whole output of a part.
    pub fn log(&self, part: Part) -> String {
        self.log_from(part, 0)
    }

    /// Waits until `/readyz` of a part reports `ready`.
    pub async fn ready(&self, part: Part) {
        self.readiness(part, "ready").await;
    }

    /// Waits until `/readyz` of a part reports `ready`, `degraded` or `unready`, and returns the report.
    pub async fn readiness(&self, part: Part, status: &str) -> Value {
        let probes = self.probes(part);
        wait_for(&format!("{part} to be {status}"), PATIENCE, async || {
            if let Some(status) = self.with(part, Process::ended) {
                panic!("{part} ended with {status}");
            }
            let report = probes.probe("/readyz").await?;
            (report["status"] == status).then_some(report)
        })
        .await
    }

    fn launch(&self, part: Part, more: &[(&str, &str)]) {
        let Listener { api: port, admin, .. } = self.listener(part);
        let mut env = self.env_of(part.0.role());
        env.retain(|(name, _)| !part.0.without().contains(&name.as_str()));
        env.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let log = self.log_file(part);
        let blobs = self.blobs();
        let disk = self.disk.as_deref().map(|size| (blobs.as_path(), size));
        let resolver = Some(self.site.directory.join(RESOLVER)).filter(|file| file.exists());
        let process = Process::start(Launch { part, env: &env, port, admin, log, disk, resolver });
        self.processes().insert(part, process);
    }

    fn with<T>(&self, part: Part, act: impl FnOnce(&mut Process) -> T) -> T {
        act(self
            .processes()
            .get_mut(&part)
            .unwrap_or_else(|| panic!("the test has no {part} of its own: Builder::start")))
    }

    fn listener(&self, part: Part) -> Listener {
        let mut listeners = self.site.listeners.iter();
        *listeners.find(|listener| listener.part == part).unwrap_or_else(|| panic!("the stack has no {part}"))
    }

    fn log_file(&self, part: Part) -> PathBuf {
        self.site.directory.join(format!("{part}.log"))
    }

    /// The present lengths of the logs.
    pub(crate) fn log_lengths(&self) -> BTreeMap<Part, u64> {
        let length = |part| fs::metadata(self.log_file(part)).map_or(0, |file| file.len());
        self.parts().into_iter().map(|part| (part, length(part))).collect()
    }

    fn log_from(&self, part: Part, start: u64) -> String {
        let bytes = fs::read(self.log_file(part)).unwrap_or_default();
        let start = usize::try_from(start).unwrap_or_default().min(bytes.len());
        String::from_utf8_lossy(&bytes[start..]).into_owned()
    }

    /// Prints what the processes logged since the test began, without informational lines.
    fn show_logs(&self) {
        for Listener { part, admin, .. } in &self.site.listeners {
            let start = self.visit.as_ref().and_then(|visit| visit.log_lengths.get(part)).copied().unwrap_or_default();
            let text = self.log_from(*part, start);
            let lines: Vec<&str> = text.lines().filter(|line| !line.contains(r#""level":"INFO""#)).collect();
            let tail = lines[lines.len().saturating_sub(LOG_TAIL)..].join("\n");
            eprintln!("---- the end of the log of {part} (http://127.0.0.1:{admin}) ----\n{tail}");
        }
        eprintln!("---- whole logs and blobs: {} ----", self.site.directory.display());
    }

    fn processes(&self) -> MutexGuard<'_, BTreeMap<Part, Process>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let mut processes = std::mem::take(&mut *self.processes());
        processes.values_mut().for_each(Process::kill);
        let (directory, failed) = (&self.site.directory, std::thread::panicking());
        if failed {
            self.show_logs();
        }
        if self.visit.is_some() {
            if failed {
                let _ = fs::write(directory.join(KEPT), "");
            }
        } else if directory.join(KEPT).exists() {
            self.ground.keep_database();
        } else if !failed {
            let _ = fs::remove_dir_all(directory);
        }
    }
}

/// A failpoint at which processes stop until it is released.
pub struct Hold {
    file: PathBuf,
    failpoint: String,
}

impl Hold {
    fn make(file: PathBuf, failpoint: &str) -> Self {
        let hold = Self { file, failpoint: failpoint.to_owned() };
        hold.arm();
        hold
    }

    /// Waits until a process is held here, and returns how many have arrived so far.
    pub async fn reached(&self) -> usize {
        self.reached_by(1).await
    }

    /// Waits until this many processes have arrived.
    pub async fn reached_by(&self, count: usize) -> usize {
        let came = async || fs::read_to_string(&self.file).map(|pids| pids.lines().count()).ok();
        let what = format!("{} to be reached", self.failpoint);
        wait_for(&what, PATIENCE, async || came().await.filter(|came| *came >= count)).await
    }

    /// Stops processes here again after a release.
    pub fn arm(&self) {
        fs::write(&self.file, "").expect("makes the file of a hold");
    }

    /// Releases all processes. Later ones are not stopped.
    pub fn release(&self) {
        let _ = fs::remove_file(&self.file);
    }
}

fn hold_file(directory: &Path, failpoint: &str) -> PathBuf {
    directory.join(format!("hold-{failpoint}"))
}

fn environment(
    builder: &Builder,
    directory: &Path,
    services: &Urls,
    port: u16,
    receivers: Option<&Receivers>,
) -> Vec<(String, String)> {
    let ports = receivers.map(|receivers| &receivers.ports[..]).unwrap_or_default();
    let allowed: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let holds: Vec<String> = builder
        .holds
        .iter()
        .map(|failpoint| {
            let file = hold_file(directory, failpoint);
            Hold::make(file.clone(), failpoint);
            format!("{failpoint}=hold:{}", file.display())
        })
        .collect();
    let mut env = BTreeMap::from(
        [
            ("CANVAS_DATABASE_URL", services.database.clone()),
            ("CANVAS_REDIS_URL", services.redis.clone()),
            ("CANVAS_AMQP_URL", services.broker.clone()),
            ("CANVAS_BLOB_URL", format!("file://{}", directory.join("blobs").display())),
            ("CANVAS_MASTER_KEYS", MASTER_KEYS.to_owned()),
            ("CANVAS_PUBLIC_URL", format!("http://127.0.0.1:{port}")),
            ("CANVAS_EGRESS_ALLOW", allowed.join(",")),
            ("CANVAS_FAILPOINTS", holds.join(";")),
            // All tests use the same address. The tests of these limits set them.
            ("CANVAS_FAILED_AUTH_PER_MINUTE", "0".to_owned()),
            ("CANVAS_CONNECTIONS_PER_ADDRESS", "10000".to_owned()),
            // Few connections, so that many stacks fit on one server.
            ("CANVAS_DATABASE_CONNECTIONS", "8".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    if let Some(Receivers { identity, .. }) = receivers {
        let authority = directory.join("authority.pem");
        fs::write(&authority, identity.authority()).expect("writes the authority of the receivers");
        env.insert("CANVAS_EGRESS_CA_FILE".to_owned(), authority.display().to_string());
    }
    // The server of the test run has the roles already, and no two tests can make them at the same time.
    if builder.services.is_some() {
        let owner: url::Url = services.database.parse().expect("a URL");
        let password = owner.password().expect("has a password");
        let kinds = [Kind::Gateway, Kind::ImageWorker, Kind::VideoWorker, Kind::Dispatcher];
        let passwords = kinds.map(|kind| format!("{}:{password}", kind.binary().trim_start_matches("canvas-")));
        env.insert(PASSWORDS.to_owned(), passwords.join(","));
    }
    env.extend(builder.env.clone());
    // A test that switches the rate of tokens off sends more than an account may.
    if env.get("CANVAS_RATE_PER_MINUTE").is_some_and(|rate| rate == "0") {
        env.entry("CANVAS_ACCOUNT_RATE_PER_MINUTE".to_owned()).or_insert_with(|| "0".to_owned());
    }
    env.into_iter().collect()
}
