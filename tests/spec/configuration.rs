//! A wrong configuration stops a process at once with one line that names the variable
//! (docs/reference/configuration.md#wrong-values).

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::process::{Output, Stdio};
use std::time::Duration;

use e2e::{Kind, process_command};
use futures_util::{StreamExt, stream};
use serde_json::json;

/// A value that no line may contain, because most variables can carry a password.
const SECRET: &str = "hunter2";
/// The time within which a process must exit. It contacts no service before it has checked its configuration.
const AT_ONCE: Duration = Duration::from_secs(20);

const KINDS: [Kind; 4] = [Kind::Gateway, Kind::ImageWorker, Kind::VideoWorker, Kind::Dispatcher];
/// The processes that open the object store.
const STORING: [Kind; 3] = [Kind::Gateway, Kind::ImageWorker, Kind::VideoWorker];

/// A valid environment. No service listens at its addresses.
const SOUND: [(&str, &str); 8] = [
    ("CANVAS_DATABASE_URL", "postgres://canvas@127.0.0.1:1/canvas"),
    ("CANVAS_REDIS_URL", "redis://127.0.0.1:1/0"),
    ("CANVAS_AMQP_URL", "amqp://canvas@127.0.0.1:1/%2f"),
    ("CANVAS_BLOB_URL", "s3://nobody/asks"),
    ("CANVAS_MASTER_KEYS", "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
    ("CANVAS_MANAGED_URL", "http://127.0.0.1:1"),
    // Ports that are free.
    ("CANVAS_LISTEN", "127.0.0.1:0"),
    ("CANVAS_ADMIN_LISTEN", "127.0.0.1:0"),
];

/// A wrong value of each variable. It stops every process, whether or not the process itself has a use for it.
const WRONG: [(&str, &str); 75] = [
    ("CANVAS_DATABASE_URL", ""),
    ("CANVAS_DATABASE_URL", "mysql://user:hunter2@localhost"),
    ("CANVAS_DATABASE_PASSWORDS", "gateway:hunter2,admin:hunter2"),
    ("CANVAS_REDIS_URL", "hunter2:6379"),
    ("CANVAS_AMQP_URL", "http://hunter2/"),
    ("CANVAS_BLOB_URL", "s3://user:hunter2@bucket/"),
    ("CANVAS_BLOB_URL", "/var/lib/hunter2"),
    ("CANVAS_MASTER_KEYS", "k1:hunter2"),
    ("CANVAS_INSTALLATION_KEYS", "i1:hunter2"),
    ("CANVAS_INSTALLATION_KEYS", "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
    (
        "CANVAS_MASTER_KEYS",
        "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=,k1:AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    ),
    ("CANVAS_PUBLIC_URL", "https://hunter2/path"),
    ("CANVAS_LISTEN", "hunter2:80"),
    ("CANVAS_ADMIN_LISTEN", "127.0.0.1"),
    ("CANVAS_CORS_ORIGINS", "https://a.example,hunter2"),
    ("CANVAS_AUDIT_DAYS", "-1"),
    ("CANVAS_AUDIT_ADDRESS_DAYS", "-1"),
    ("CANVAS_SIGNIN_TOKENS", "perhaps"),
    ("CANVAS_OAUTH", "on"),
    ("CANVAS_OAUTH_REDIRECT_SCHEMES", "cursor,https"),
    ("CANVAS_OAUTH_ACCESS_SECONDS", "86401"),
    ("CANVAS_OAUTH_IDLE_DAYS", "0"),
    ("CANVAS_OAUTH_DEFAULT_CREDITS", "-1"),
    ("CANVAS_TRUSTED_PROXIES", "10.0.0.0/8,hunter2"),
    ("CANVAS_CONNECTIONS_MAX", "0"),
    ("CANVAS_CONNECTIONS_PER_ADDRESS", "-1"),
    ("CANVAS_RATE_PER_MINUTE", "-1"),
    ("CANVAS_RATE_BURST", "4294967296"),
    ("CANVAS_ACCOUNT_RATE_PER_MINUTE", "-1"),
    ("CANVAS_ACCOUNT_RATE_BURST", "4294967296"),
    ("CANVAS_FAILED_AUTH_PER_MINUTE", "1.5"),
    ("CANVAS_ACCOUNT_CPU_SECONDS", "1.5"),
    ("CANVAS_IDEMPOTENCY_DAYS", "0"),
    ("CANVAS_ACTIVE_JOBS", "0"),
    ("CANVAS_ACTIVE_IMPORTS", "0"),
    ("CANVAS_ACCOUNT_STORAGE_MAX", "1 GiB"),
    ("CANVAS_UPLOAD_METADATA", "remove"),
    ("CANVAS_PREVIEW_TTL_SECONDS", "0"),
    ("CANVAS_RETENTION_UNREAD_SECONDS", "-1"),
    ("CANVAS_RETENTION_FINALIZED_SECONDS", "NaN"),
    ("CANVAS_RETENTION_TOMBSTONE_SECONDS", "inf"),
    ("CANVAS_RETENTION_FAILED_SECONDS", "315360001"),
    ("CANVAS_RETENTION_VIDEO_SECONDS", "soon"),
    ("CANVAS_EGRESS_ALLOW", "10.0.0.0/33"),
    ("CANVAS_EGRESS_ALLOW", "nowhere"),
    ("CANVAS_EGRESS_CA_FILE", "/nowhere/authorities.pem"),
    ("CANVAS_EGRESS_CA_FILE", "/dev/null"),
    ("CANVAS_MODEL_CATALOGUE", "/nowhere/models.json"),
    ("CANVAS_MODEL_CATALOGUE", "/dev/null"),
    ("CANVAS_MANAGED_URL", "http://a:hunter2@b/"),
    ("CANVAS_MANAGED_PROTOCOL", "hunter2"),
    ("CANVAS_MANAGED_KEY", "hunter2 schlüssel"),
    ("CANVAS_WEBHOOK_BACKOFF_SECONDS", "1,hunter2"),
    ("CANVAS_WEBHOOK_BACKOFF_SECONDS", "1,2"),
    ("CANVAS_LEASE_SECONDS", "0"),
    ("CANVAS_IDLE_CLAIM_MILLISECONDS", "0"),
    ("CANVAS_WORKER_SILENT_SECONDS", "9"),
    ("CANVAS_WORKER_SILENT_SECONDS", "601"),
    ("CANVAS_SLOTS", "0"),
    ("CANVAS_IMAGE_MEMORY_MIB", "0"),
    ("CANVAS_GENERATION_SLOTS", "10001"),
    ("CANVAS_PROVIDER_CONCURRENCY", "0"),
    ("CANVAS_GENERATION_MEMORY_MIB", "much"),
    ("CANVAS_DATABASE_CONNECTIONS", "0"),
    ("CANVAS_SWEEP_SECONDS", "0"),
    ("CANVAS_FAILPOINTS", "nothing"),
    ("CANVAS_FAILPOINTS", "task.claimed=explode"),
    ("CANVAS_LEGACY_CAMPAIGNS", "yes"),
    ("CANVAS_ORIGIN_MARKS", "1"),
    ("CANVAS_HEIF_COMMAND", "heif-dec"),
    ("CANVAS_LOG", "db=hunter2"),
    ("CANVAS_DATABASE_URL", "postgres://a:hunter2@h/db?sslmode=maybe"),
    ("CANVAS_AMQP_URL", "amqp://a:hunter2@h/v?heartbeat=often"),
    // Only the driver rejects these two.
    ("CANVAS_REDIS_URL", "redis://:hunter2@h/first"),
    ("CANVAS_BLOB_URL", "s3://bucket/a//b"),
];

/// The required variables, and the processes that need each of them.
const REQUIRED: [(&str, &[Kind]); 5] = [
    ("CANVAS_DATABASE_URL", &KINDS),
    ("CANVAS_REDIS_URL", &STORING),
    ("CANVAS_AMQP_URL", &KINDS),
    ("CANVAS_BLOB_URL", &STORING),
    ("CANVAS_MASTER_KEYS", &KINDS),
];

/// Runs a process until it exits by itself.
async fn ended(kind: Kind, arguments: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = tokio::process::Command::from(process_command(kind));
    command.args(arguments).envs(SOUND).envs(env.iter().copied()).kill_on_drop(true);
    let ended = tokio::time::timeout(AT_ONCE, command.output()).await;
    ended.unwrap_or_else(|_| panic!("{} runs with {env:?}", kind.binary())).expect("runs")
}

/// Returns the one line in which the process rejects the variable. Panics unless it does.
async fn assert_refused(kind: Kind, name: &str, env: &[(&str, &str)]) -> String {
    let output = ended(kind, kind.arguments(), env).await;
    let message = String::from_utf8(output.stderr).expect("UTF-8");
    let what = format!("{} with {env:?}: {message}", kind.binary());
    assert_eq!((output.status.code(), message.lines().count()), (Some(1), 1), "{what}");
    assert!(message.starts_with(&format!("{}: {name}: ", kind.binary())), "{what}");
    assert!(!message.contains(SECRET), "{what}");
    message
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_wrong_value_is_reported_in_one_line_that_names_the_variable() {
    let cases = WRONG.iter().flat_map(|&(name, value)| KINDS.map(move |kind| (kind, name, value)));
    let runs = cases.map(|(kind, name, value)| async move { assert_refused(kind, name, &[(name, value)]).await });
    stream::iter(runs).buffer_unordered(4).for_each(|_| std::future::ready(())).await;
}

#[tokio::test]
async fn a_process_needs_the_variables_that_it_uses_and_no_others() {
    for kind in KINDS {
        for (name, needing) in REQUIRED {
            let unset = [(name, "")];
            if needing.contains(&kind) {
                assert!(assert_refused(kind, name, &unset).await.ends_with("is required and not set\n"));
            } else {
                // The process gets as far as its last check, the address of its probes.
                assert_refused(kind, "CANVAS_ADMIN_LISTEN", &[unset[0], ("CANVAS_ADMIN_LISTEN", "192.0.2.1:1")]).await;
            }
        }
    }
    // `check-config` is about every process; `migrate` needs the database and the key ring alone.
    let others = [("CANVAS_REDIS_URL", ""), ("CANVAS_AMQP_URL", ""), ("CANVAS_BLOB_URL", "")];
    let output = ended(Kind::Gateway, &["check-config"], &others).await;
    let message = String::from_utf8(output.stderr).expect("UTF-8");
    let missing = others.map(|(name, _)| format!("canvas-gateway: {name}: is required and not set\n"));
    assert_eq!(message, missing.concat());
    for name in ["CANVAS_DATABASE_URL", "CANVAS_MASTER_KEYS"] {
        let output = ended(Kind::Gateway, &["migrate"], &[&others[..], &[(name, "")]].concat()).await;
        let message = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(message, format!("canvas-gateway: {name}: is required and not set\n"));
    }
}

#[tokio::test]
async fn check_config_lists_everything_that_is_wrong_and_starts_nothing() {
    let check = async |env: &[(&str, &str)]| {
        let output = ended(Kind::Gateway, &["check-config"], env).await;
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, report, wrong) = check(&[("CANVAS_RATE_BURTS", "1"), ("CANVAS_TOKEN", "t")]).await;
    let report: serde_json::Value = serde_json::from_str(&report).expect("one JSON object");
    assert_eq!((code, report, wrong.as_str()), (Some(0), json!({"valid": true, "unknown": ["CANVAS_RATE_BURTS"]}), ""));
    for (name, value) in WRONG {
        let (code, report, wrong) = check(&[(name, value)]).await;
        assert_eq!((code, report.as_str(), wrong.lines().count()), (Some(1), "", 1), "{name}={value}: {wrong}");
        assert!(wrong.starts_with(&format!("canvas-gateway: {name}: ")) && !wrong.contains(SECRET), "{wrong}");
    }
    // A value that only the driver rejects is reported beside one that the configuration rejects.
    let (_, _, wrong) = check(&[("CANVAS_SLOTS", "0"), ("CANVAS_REDIS_URL", "redis://h/first")]).await;
    let names: BTreeSet<&str> = wrong.lines().filter_map(|line| line.split(": ").nth(1)).collect();
    assert_eq!(names, BTreeSet::from(["CANVAS_REDIS_URL", "CANVAS_SLOTS"]), "{wrong}");
    // All wrong values at once; each variable is reported with its first wrong value.
    let mut all: Vec<(&str, &str)> = Vec::new();
    for (name, value) in WRONG {
        if all.iter().all(|(named, _)| *named != name) {
            all.push((name, value));
        }
    }
    let (code, _, wrong) = check(&all).await;
    let named = |line: &str| line.split(": ").nth(1).map(str::to_owned);
    let named: BTreeSet<String> = wrong.lines().filter_map(named).collect();
    assert_eq!((code, named), (Some(1), all.iter().map(|(name, _)| (*name).to_owned()).collect()), "{wrong}");
    // Whether a port is taken or a directory can be created is not part of the configuration.
    let taken = TcpListener::bind("127.0.0.1:0").expect("binds a free port");
    let address = taken.local_addr().expect("has an address").to_string();
    assert_eq!(check(&[("CANVAS_ADMIN_LISTEN", &address)]).await.0, Some(0));
}

#[tokio::test]
async fn a_result_that_nobody_reads_is_no_failure() {
    let mut command = tokio::process::Command::from(process_command(Kind::Gateway));
    command.arg("check-config").envs(SOUND).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn().expect("starts");
    drop(process.stdout.take());
    let output = tokio::time::timeout(AT_ONCE, process.wait_with_output()).await.expect("ends").expect("runs");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[tokio::test]
async fn a_variable_without_the_one_that_it_belongs_to_is_reported_with_it() {
    for (name, value, needed) in [
        ("CANVAS_MANAGED_PROTOCOL", "comfy", "CANVAS_MANAGED_URL"),
        ("CANVAS_MANAGED_KEY", SECRET, "CANVAS_MANAGED_URL"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=hunter2", "OTEL_EXPORTER_OTLP_ENDPOINT"),
    ] {
        for kind in KINDS {
            let env = [(name, value), (needed, "")];
            let message = assert_refused(kind, name, &env).await;
            assert!(message.contains(needed), "{message}");
        }
    }
}

#[tokio::test]
async fn there_is_a_wrong_value_for_every_variable_and_help_lists_them_all() {
    let wrong: BTreeSet<&str> = WRONG.iter().map(|(name, _)| *name).collect();
    for kind in KINDS {
        let help = String::from_utf8(ended(kind, &["--help"], &[]).await.stdout).expect("UTF-8");
        let names = help.lines().filter_map(|line| line.strip_prefix("  CANVAS_")?.split(' ').next());
        // The wrong settings of providers are in shared/identity/src/settings/tests.rs.
        let names = names.filter(|name| !name.starts_with("OIDC_"));
        let listed: BTreeSet<String> = names.map(|name| format!("CANVAS_{name}")).collect();
        assert_eq!(listed.iter().map(String::as_str).collect::<BTreeSet<_>>(), wrong, "{}", kind.binary());
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_reported_by_its_variable() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("binds a free port");
    let address = taken.local_addr().expect("has an address").to_string();
    for kind in KINDS {
        assert_refused(kind, "CANVAS_ADMIN_LISTEN", &[("CANVAS_ADMIN_LISTEN", &address)]).await;
    }
    let env = [("CANVAS_ADMIN_LISTEN", "127.0.0.1:0"), ("CANVAS_LISTEN", &address)];
    assert_refused(Kind::Gateway, "CANVAS_LISTEN", &env).await;
}

#[tokio::test]
async fn a_directory_for_blobs_that_cannot_be_made_is_reported_by_its_variable() {
    for kind in STORING {
        assert_refused(kind, "CANVAS_BLOB_URL", &[("CANVAS_BLOB_URL", "file:///dev/null/blobs")]).await;
    }
}

#[tokio::test]
async fn a_decoder_that_is_not_there_is_reported_by_its_variable() {
    for path in ["/nowhere/hunter2", "/dev/null"] {
        assert_refused(Kind::ImageWorker, "CANVAS_HEIF_COMMAND", &[("CANVAS_HEIF_COMMAND", path)]).await;
    }
}
