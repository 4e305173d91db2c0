//! Configuration: one validated type for all four processes, read from the environment once, before anything else starts (decisions 17.1).
//!
//! One table, at the foot of this module, declares each variable's name, default, help and type; the struct, the parser and
//! [`Config::help`] are all made from it, so that they cannot disagree. A wrong value stops the process with one line that names the
//! variable and says what is expected, and never repeats the value: most of them can carry a password.

mod parse;
mod secret;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderMap;
use thiserror::Error;
use url::Url;

use crate::keys::KeyRing;
pub use secret::Secret;

/// Why the configuration was refused. Displays as one line that names the variable.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// A variable without a default is unset or empty.
    #[error("{variable}: is required and not set")]
    Missing {
        /// Name of the variable.
        variable: &'static str,
    },
    /// A value was not understood.
    #[error("{variable}: {problem}")]
    Invalid {
        /// Name of the variable.
        variable: &'static str,
        /// What was expected; without the value.
        problem: String,
    },
    /// A variable is set that means nothing without another one.
    #[error("{variable}: is set, but not {needed}, without which it means nothing")]
    Orphan {
        /// Name of the variable.
        variable: &'static str,
        /// Name of the one that is missing.
        needed: &'static str,
    },
}

/// Variables that mean nothing without another one, and that one. Whoever sets the first expects something that would, without a word,
/// not happen: their own server be asked, their collector be told. A default that is written out expects nothing.
const BELONGING: [(&str, &str); 3] = [
    ("CANVAS_MANAGED_PROTOCOL", "CANVAS_MANAGED_URL"),
    ("CANVAS_MANAGED_KEY", "CANVAS_MANAGED_URL"),
    ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_ENDPOINT"),
];

/// One row of the table.
struct Variable {
    name: &'static str,
    /// What holds when the variable is unset or empty; `None`: it is required.
    default: Option<&'static str>,
    help: &'static str,
}

/// Makes `Config`, its parser and `VARIABLES` out of one table.
macro_rules! variables {
    ($($name:literal => $field:ident: $type:ty = $default:expr, $parse:expr, $help:literal;)*) => {
        /// Everything a process is told from outside. `Debug` hides what is secret.
        #[derive(Clone, Debug)]
        pub struct Config {
            $(#[doc = concat!("`", $name, "`: ", $help)] pub $field: $type,)*
        }

        const VARIABLES: &[Variable] = &[$(Variable { name: $name, default: $default, help: $help },)*];

        impl Config {
            /// Reads the configuration through `lookup`, which gives the value of a variable. Surrounding white space is dropped; an empty
            /// value counts as unset.
            ///
            /// # Errors
            ///
            /// [`ConfigError`] for the first variable, in the order of the table, that is missing or wrong; then for the first that is
            /// set, to anything but its default, without the one that it belongs to.
            pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
                let config = Self { $($field: read(&lookup, $name, $default, $parse)?,)* };
                let orphan = BELONGING.iter().find(|(variable, needed)| {
                    let is_meant = given(&lookup, variable).is_some_and(|value| Some(&*value) != default_of(variable));
                    is_meant && given(&lookup, needed).is_none()
                });
                match orphan {
                    Some(&(variable, needed)) => Err(ConfigError::Orphan { variable, needed }),
                    None => Ok(config),
                }
            }
        }
    };
}

impl Config {
    /// Reads the configuration from the environment of the process.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for the first variable that is missing or wrong.
    pub fn from_env() -> Result<Self, ConfigError> {
        for &Variable { name: variable, .. } in VARIABLES {
            if std::env::var_os(variable).is_some_and(|value| value.to_str().is_none()) {
                return Err(ConfigError::Invalid { variable, problem: "expected UTF-8".to_owned() });
            }
        }
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// All variables with their defaults and meanings, for `--help`.
    pub fn help() -> String {
        let mut help = String::from("Environment:\n");
        for Variable { name, default, help: meaning } in VARIABLES {
            let presence = match default {
                None => " (required)".to_owned(),
                Some("") => String::new(),
                Some(value) => format!(" (default {value})"),
            };
            write!(help, "  {name}{presence}\n      {meaning}\n").expect("writing to a String does not fail");
        }
        help
    }

    /// How often the holder of a lease renews it: a third of the lease, so that two lost heartbeats do not lose it.
    pub fn heartbeat(&self) -> Duration {
        self.lease / 3
    }
}

/// What a variable is set to, if it is.
fn given(lookup: impl Fn(&str) -> Option<String>, variable: &str) -> Option<String> {
    lookup(variable).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// What holds when a variable is not set.
fn default_of(variable: &str) -> Option<&'static str> {
    VARIABLES.iter().find(|row| row.name == variable)?.default
}

/// One variable's value, or its default's.
fn read<T>(
    lookup: impl Fn(&str) -> Option<String>,
    variable: &'static str,
    default: Option<&'static str>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<T, ConfigError> {
    let given = given(lookup, variable);
    let text = given.as_deref().or(default).ok_or(ConfigError::Missing { variable })?;
    parse(text).map_err(|problem| ConfigError::Invalid { variable, problem })
}

variables! {
    "CANVAS_DATABASE_URL" => database_url: Secret = None, parse::database_url,
        "PostgreSQL: postgres://user:password@host:5432/database.";
    "CANVAS_REDIS_URL" => redis_url: Secret = None, parse::redis_url,
        "Redis (rate limits, change notification): redis://host:6379/0; rediss:// for TLS.";
    "CANVAS_AMQP_URL" => amqp_url: Secret = None, parse::amqp_url,
        "RabbitMQ: amqp://user:password@host:5672/vhost; amqps:// for TLS.";
    "CANVAS_BLOB_URL" => blob_url: Url = None, parse::blob_url,
        "Where blobs are kept: file:///absolute/directory or s3://bucket/prefix.";
    "CANVAS_MASTER_KEYS" => master_keys: KeyRing = None, parse::master_keys,
        "Key ring for secrets at rest: id:base64[,id:base64...], 32 bytes each; the first seals, every one opens.";
    "CANVAS_PUBLIC_URL" => public_url: String = Some("http://127.0.0.1:8080"), parse::origin,
        "Origin under which clients reach the gateway: scheme, host and port, no path.";
    "CANVAS_LISTEN" => listen: SocketAddr = Some("127.0.0.1:8080"), parse::address,
        "Address and port the gateway serves.";
    "CANVAS_ADMIN_LISTEN" => admin_listen: SocketAddr = Some("127.0.0.1:9090"), parse::address,
        "Address and port of /healthz, /readyz and /metrics of this process.";
    "CANVAS_CORS_ORIGINS" => cors_origins: Vec<String> = Some(""), parse::origins,
        "Origins that browsers may call from, comma separated; none when empty.";
    "CANVAS_RATE_PER_MINUTE" => rate_per_minute: u32 = Some("1200"), parse::count,
        "Requests a token may make a minute; 0 turns the limit off.";
    "CANVAS_RATE_BURST" => rate_burst: u32 = Some("200"), parse::count,
        "Requests a token may make at once; 0 turns the limit off.";
    "CANVAS_FAILED_AUTH_PER_MINUTE" => failed_auth_per_minute: u32 = Some("60"), parse::count,
        "Failed credentials an address may send a minute; 0 turns the limit off.";
    "CANVAS_IDEMPOTENCY_DAYS" => idempotency_window: Duration = Some("30"), parse::days,
        "Days an idempotency key is remembered.";
    "CANVAS_ACTIVE_JOBS" => active_jobs: u32 = Some("1000"), parse::positive_count,
        "Jobs and Recipe runs an account may have unfinished at once, and as many imports.";
    "CANVAS_ACCOUNT_STORAGE_MAX" => storage_max: i64 = Some("0"), parse::bytes,
        "Bytes that the assets and videos of an account without a quota of its own may take; 0: no limit.";
    "CANVAS_PREVIEW_TTL_SECONDS" => preview_ttl: Duration = Some("900"), parse::whole_seconds,
        "Whole seconds a preview link lives.";
    "CANVAS_RETENTION_UNREAD_SECONDS" => retention_unread: Duration = Some("86400"), parse::window,
        "Seconds a succeeded job is kept that nobody has read.";
    "CANVAS_RETENTION_FINALIZED_SECONDS" => retention_finalized: Duration = Some("900"), parse::window,
        "Seconds a succeeded job is kept after it was first read or delivered.";
    "CANVAS_RETENTION_TOMBSTONE_SECONDS" => retention_tombstone: Duration = Some("604800"), parse::window,
        "Seconds an expired job still answers as expired.";
    "CANVAS_RETENTION_FAILED_SECONDS" => retention_failed: Duration = Some("86400"), parse::window,
        "Seconds a failed or canceled job is kept.";
    "CANVAS_RETENTION_VIDEO_SECONDS" => retention_video: Duration = Some("2592000"), parse::window,
        "Seconds a video job is kept after its end, with its video.";
    "CANVAS_EGRESS_ALLOW" => egress_allow: String = Some(""), parse::raw,
        "Targets admitted although not public, for webhooks and imports: CIDR or host:port, comma separated.";
    "CANVAS_EGRESS_CA_FILE" => egress_ca_file: Option<PathBuf> = Some(""), parse::path,
        "PEM file of certificate authorities trusted for outbound calls in addition to the machine's.";
    "CANVAS_MODEL_CATALOGUE" => model_catalogue: Option<PathBuf> = Some(""), parse::path,
        "JSON file of models that come beside, instead of or off the built-in ones: {\"models\": [...], \"retired\": [...]}.";
    "CANVAS_MANAGED_URL" => managed_url: Option<Url> = Some(""), parse::server_url,
        "Self-hosted inference server that runs the managed models; when empty the embedded runtime does.";
    "CANVAS_MANAGED_PROTOCOL" => managed_protocol: String = Some("openai"), parse::raw,
        "What that server speaks: openai (its image routes) or comfy (Comfy API v2).";
    "CANVAS_MANAGED_KEY" => managed_key: Option<Secret> = Some(""), parse::optional_secret,
        "Bearer key that server asks for, if any.";
    "CANVAS_WEBHOOK_BACKOFF_SECONDS" => webhook_backoff: [Duration; 3] = Some("10,60,300"), parse::backoff,
        "Seconds before the second, third and fourth attempt of a webhook delivery; fractions allowed.";
    "CANVAS_LEASE_SECONDS" => lease: Duration = Some("30"), parse::seconds,
        "Seconds a claimed task is protected without a heartbeat; fractions allowed, renewed every third of it.";
    "CANVAS_IDLE_CLAIM_MILLISECONDS" => idle_claim: Duration = Some("2000"), parse::milliseconds,
        "Milliseconds between the looks of an idle worker for due work that no message announced.";
    "CANVAS_SLOTS" => slots: Option<usize> = Some(""), parse::slots,
        "Tasks this process runs at once; when empty the process chooses.";
    "CANVAS_IMAGE_MEMORY_MIB" => image_memory_bytes: u64 = Some("1024"), parse::mebibytes,
        "MiB that pictures in work may take in an image-worker, files and pixels; a larger picture is worked on alone. Files that imports fetch may take a quarter of it, beside it.";
    "CANVAS_GENERATION_SLOTS" => generation_slots: usize = Some("64"), parse::positive_slots,
        "Image jobs, and as many Recipe runs, that an image-worker has in hand at once while it asks providers, and videos of one account at a video-worker, which has eight times as many in hand; those that wait take no place.";
    "CANVAS_PROVIDER_CONCURRENCY" => provider_concurrency: u32 = Some("8"), parse::positive_count,
        "Calls in flight to a provider at once, for each connection and worker; downloads of results not counted.";
    "CANVAS_GENERATION_MEMORY_MIB" => generation_memory_bytes: u64 = Some("512"), parse::mebibytes,
        "MiB that a worker holds at once for providers: a quarter for pictures from foreign hosts, a half for what is sent, the rest, a quarter at least, for results; a larger file goes alone.";
    "CANVAS_DATABASE_CONNECTIONS" => database_connections: u32 = Some("16"), parse::positive_count,
        "PostgreSQL connections this process opens at most.";
    "CANVAS_SWEEP_SECONDS" => sweep: Duration = Some("60"), parse::seconds,
        "Seconds between runs of the sweepers that delete what has had its time; fractions allowed. What reads show follows the time alone.";
    "CANVAS_FAILPOINTS" => failpoints: String = Some(""), parse::raw,
        "Named faults to inject, for tests: name=action[;name=action...].";
    "CANVAS_LEGACY_CAMPAIGNS" => legacy_campaigns: bool = Some("0"), parse::switch,
        "1 lets the deprecated campaigns be planned, started, reviewed and canceled; 0 leaves them readable.";
    "CANVAS_LOG" => log: String = Some("info"), parse::log_filter,
        "Log filter: a level, or comma separated target=level directives.";
    "OTEL_EXPORTER_OTLP_ENDPOINT" => otlp_endpoint: Option<Url> = Some(""), parse::server_url,
        "Base URL of a collector that traces are exported to, by OTLP over HTTP (commonly port 4318); none when empty.";
    "OTEL_EXPORTER_OTLP_HEADERS" => otlp_headers: HeaderMap = Some(""), parse::headers,
        "Headers that the collector asks for: name=value[,name=value...], values percent-encoded.";
    "OTEL_SERVICE_NAME" => otlp_service_name: String = Some(""), parse::raw,
        "service.name of exported traces; when empty the name of the process.";
}

#[cfg(test)]
mod tests;
