//! A wrong configuration stops a process at once, with one line that names the variable (decisions 17.1).

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::process::Output;
use std::time::Duration;

use e2e::{Kind, process_command};
use futures_util::{StreamExt, stream};

/// What no line may show: most values can carry a password.
const SECRET: &str = "hunter2";
/// How soon a process has refused: it looks at no service before.
const AT_ONCE: Duration = Duration::from_secs(20);

const KINDS: [Kind; 4] = [Kind::Gateway, Kind::ImageWorker, Kind::VideoWorker, Kind::Dispatcher];
/// Those that go out to foreign servers, with certificates to judge.
const OUTWARD: [Kind; 3] = [Kind::ImageWorker, Kind::VideoWorker, Kind::Dispatcher];
/// Those that know models.
const MODELS: [Kind; 3] = [Kind::Gateway, Kind::ImageWorker, Kind::VideoWorker];

/// An environment in which a process starts; nobody is there.
const SOUND: [(&str, &str); 6] = [
    ("CANVAS_DATABASE_URL", "postgres://canvas@127.0.0.1:1/canvas"),
    ("CANVAS_REDIS_URL", "redis://127.0.0.1:1/0"),
    ("CANVAS_AMQP_URL", "amqp://canvas@127.0.0.1:1/%2f"),
    ("CANVAS_BLOB_URL", "s3://nobody/asks"),
    ("CANVAS_MASTER_KEYS", "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
    ("CANVAS_MANAGED_URL", "http://127.0.0.1:1"),
];

/// A wrong value of each variable, and the processes that judge it.
const WRONG: [(&str, &str, &[Kind]); 49] = [
    ("CANVAS_DATABASE_URL", "", &KINDS),
    ("CANVAS_DATABASE_URL", "mysql://user:hunter2@localhost", &KINDS),
    ("CANVAS_REDIS_URL", "hunter2:6379", &KINDS),
    ("CANVAS_AMQP_URL", "http://hunter2/", &KINDS),
    ("CANVAS_BLOB_URL", "s3://user:hunter2@bucket/", &KINDS),
    ("CANVAS_BLOB_URL", "/var/lib/hunter2", &KINDS),
    ("CANVAS_MASTER_KEYS", "k1:hunter2", &KINDS),
    (
        "CANVAS_MASTER_KEYS",
        "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=,k1:AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        &KINDS,
    ),
    ("CANVAS_PUBLIC_URL", "https://hunter2/path", &KINDS),
    ("CANVAS_LISTEN", "hunter2:80", &KINDS),
    ("CANVAS_ADMIN_LISTEN", "127.0.0.1", &KINDS),
    ("CANVAS_CORS_ORIGINS", "https://a.example,hunter2", &KINDS),
    ("CANVAS_RATE_PER_MINUTE", "-1", &KINDS),
    ("CANVAS_RATE_BURST", "4294967296", &KINDS),
    ("CANVAS_FAILED_AUTH_PER_MINUTE", "1.5", &KINDS),
    ("CANVAS_IDEMPOTENCY_DAYS", "0", &KINDS),
    ("CANVAS_ACTIVE_JOBS", "0", &KINDS),
    ("CANVAS_ACCOUNT_STORAGE_MAX", "1 GiB", &KINDS),
    ("CANVAS_PREVIEW_TTL_SECONDS", "0", &KINDS),
    ("CANVAS_RETENTION_UNREAD_SECONDS", "-1", &KINDS),
    ("CANVAS_RETENTION_FINALIZED_SECONDS", "NaN", &KINDS),
    ("CANVAS_RETENTION_TOMBSTONE_SECONDS", "inf", &KINDS),
    ("CANVAS_RETENTION_FAILED_SECONDS", "315360001", &KINDS),
    ("CANVAS_RETENTION_VIDEO_SECONDS", "soon", &KINDS),
    ("CANVAS_EGRESS_ALLOW", "10.0.0.0/33", &KINDS),
    ("CANVAS_EGRESS_ALLOW", "nowhere", &KINDS),
    ("CANVAS_EGRESS_CA_FILE", "/nowhere/authorities.pem", &OUTWARD),
    ("CANVAS_EGRESS_CA_FILE", "/dev/null", &OUTWARD),
    ("CANVAS_MODEL_CATALOGUE", "/nowhere/models.json", &MODELS),
    ("CANVAS_MODEL_CATALOGUE", "/dev/null", &MODELS),
    ("CANVAS_MANAGED_URL", "http://a:hunter2@b/", &KINDS),
    ("CANVAS_MANAGED_PROTOCOL", "hunter2", &MODELS),
    ("CANVAS_MANAGED_KEY", "hunter2 schlüssel", &MODELS),
    ("CANVAS_WEBHOOK_BACKOFF_SECONDS", "1,hunter2", &KINDS),
    ("CANVAS_WEBHOOK_BACKOFF_SECONDS", "1,2", &KINDS),
    ("CANVAS_LEASE_SECONDS", "0", &KINDS),
    ("CANVAS_IDLE_CLAIM_MILLISECONDS", "0", &KINDS),
    ("CANVAS_SLOTS", "0", &KINDS),
    ("CANVAS_IMAGE_MEMORY_MIB", "0", &KINDS),
    ("CANVAS_GENERATION_SLOTS", "10001", &KINDS),
    ("CANVAS_PROVIDER_CONCURRENCY", "0", &KINDS),
    ("CANVAS_GENERATION_MEMORY_MIB", "much", &KINDS),
    ("CANVAS_DATABASE_CONNECTIONS", "0", &KINDS),
    ("CANVAS_SWEEP_SECONDS", "0", &KINDS),
    ("CANVAS_FAILPOINTS", "nothing", &KINDS),
    ("CANVAS_FAILPOINTS", "task.claimed=explode", &KINDS),
    ("CANVAS_LEGACY_CAMPAIGNS", "yes", &KINDS),
    ("CANVAS_LOG", "db=hunter2", &KINDS),
    ("CANVAS_REDIS_URL", "", &KINDS),
];

/// Runs a process until it ends by itself.
async fn ended(kind: Kind, arguments: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = tokio::process::Command::from(process_command(kind));
    command.args(arguments).envs(SOUND).envs(env.iter().copied()).kill_on_drop(true);
    let ended = tokio::time::timeout(AT_ONCE, command.output()).await;
    ended.unwrap_or_else(|_| panic!("{} runs with {env:?}", kind.binary())).expect("runs")
}

/// The one line about the variable in which the process refuses this environment; panics unless it does.
async fn assert_refused(kind: Kind, name: &str, env: &[(&str, &str)]) -> String {
    let output = ended(kind, kind.arguments(), env).await;
    let told = String::from_utf8(output.stderr).expect("UTF-8");
    let what = format!("{} with {env:?}: {told}", kind.binary());
    assert_eq!((output.status.code(), told.lines().count()), (Some(1), 1), "{what}");
    assert!(told.starts_with(&format!("{}: {name}: ", kind.binary())), "{what}");
    assert!(!told.contains(SECRET), "{what}");
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_wrong_value_is_told_in_one_line_that_names_the_variable() {
    let cases = WRONG.iter().flat_map(|(name, value, kinds)| kinds.iter().map(move |kind| (*kind, *name, *value)));
    let runs = cases.map(|(kind, name, value)| async move { assert_refused(kind, name, &[(name, value)]).await });
    stream::iter(runs).buffer_unordered(4).for_each(|_| std::future::ready(())).await;
}

#[tokio::test]
async fn a_variable_without_the_one_that_it_belongs_to_is_told_with_it() {
    for (name, value, needed) in [
        ("CANVAS_MANAGED_PROTOCOL", "comfy", "CANVAS_MANAGED_URL"),
        ("CANVAS_MANAGED_KEY", SECRET, "CANVAS_MANAGED_URL"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=hunter2", "OTEL_EXPORTER_OTLP_ENDPOINT"),
    ] {
        for kind in KINDS {
            let env = [(name, value), (needed, "")];
            let told = assert_refused(kind, name, &env).await;
            assert!(told.contains(needed), "{told}");
        }
    }
}

#[tokio::test]
async fn there_is_a_wrong_value_for_every_variable_and_help_lists_them_all() {
    let wrong: BTreeSet<&str> = WRONG.iter().map(|(name, _, _)| *name).collect();
    for kind in KINDS {
        let help = String::from_utf8(ended(kind, &["--help"], &[]).await.stdout).expect("UTF-8");
        let names = help.lines().filter_map(|line| line.strip_prefix("  CANVAS_")?.split(' ').next());
        let listed: BTreeSet<String> = names.map(|name| format!("CANVAS_{name}")).collect();
        assert_eq!(listed.iter().map(String::as_str).collect::<BTreeSet<_>>(), wrong, "{}", kind.binary());
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_told_by_its_variable() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("binds a free port");
    let address = taken.local_addr().expect("has an address").to_string();
    for kind in KINDS {
        assert_refused(kind, "CANVAS_ADMIN_LISTEN", &[("CANVAS_ADMIN_LISTEN", &address)]).await;
    }
    let env = [("CANVAS_ADMIN_LISTEN", "127.0.0.1:0"), ("CANVAS_LISTEN", &address)];
    assert_refused(Kind::Gateway, "CANVAS_LISTEN", &env).await;
}

#[tokio::test]
async fn a_directory_for_blobs_that_cannot_be_made_is_told_by_its_variable() {
    for kind in MODELS {
        assert_refused(kind, "CANVAS_BLOB_URL", &[("CANVAS_BLOB_URL", "file:///dev/null/blobs")]).await;
    }
}
