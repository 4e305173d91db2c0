//! Configuration: one validated type for all four processes, read once from the environment before anything else starts
//! (docs/reference/configuration.md). A wrong value stops every process; a required variable may be missing where it is not used.
//!
//! One table, at the end of this module, declares each variable's name, default, help and type. The struct, the parser and
//! [`Config::help`] are generated from it, so that they always agree. An invalid value stops the process with one line that
//! names the variable and what is expected. It never repeats the value, since most values can contain a password.

mod parse;
mod part;
mod secret;

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderMap;
use ipnet::IpNet;
use thiserror::Error;
use url::Url;

use crate::keys::KeyRing;
pub use parse::OauthMode;
pub use part::Part;
pub use secret::Secret;

/// The reason why the configuration was rejected. Displays as one line that names the variable.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// A required variable is unset or empty.
    #[error("{variable}: is required and not set")]
    Missing { variable: &'static str },
    /// A value is invalid.
    #[error("{variable}: {problem}")]
    Invalid {
        variable: &'static str,
        /// The problem, with the expected form and without the value.
        problem: String,
    },
    /// A variable is set that has no effect without another one.
    #[error("{variable}: has no effect unless {needed} is set")]
    Orphan {
        variable: &'static str,
        /// Name of the missing variable.
        needed: &'static str,
    },
}

impl ConfigError {
    fn variable(&self) -> &'static str {
        match self {
            Self::Missing { variable } | Self::Invalid { variable, .. } | Self::Orphan { variable, .. } => variable,
        }
    }
}

/// Pairs of a variable and the variable without which it has no effect. An operator who sets only
/// the first expects something that would silently not happen, such as calls to their own server or
/// traces sent to their collector. The default value is permitted.
const BELONGING: [(&str, &str); 16] = [
    ("CANVAS_MANAGED_PROTOCOL", "CANVAS_MANAGED_URL"),
    ("CANVAS_MANAGED_KEY", "CANVAS_MANAGED_URL"),
    ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_ENDPOINT"),
    ("CANVAS_OIDC_CLIENT_ID", "CANVAS_OIDC_ISSUER"),
    ("CANVAS_OIDC_CLIENT_SECRET", "CANVAS_OIDC_ISSUER"),
    ("CANVAS_OIDC_NAME", "CANVAS_OIDC_ISSUER"),
    ("CANVAS_OIDC_SCOPES", "CANVAS_OIDC_ISSUER"),
    ("CANVAS_OIDC_ADMIT", "CANVAS_OIDC_ISSUER"),
    ("CANVAS_OIDC_LINK", "CANVAS_OIDC_ISSUER"),
    ("CANVAS_OIDC_TRUST_EMAIL", "CANVAS_OIDC_ISSUER"),
    ("CANVAS_OIDC_GROUPS_CLAIM", "CANVAS_OIDC_ISSUER"),
    ("CANVAS_OIDC_ADMIN_GROUPS", "CANVAS_OIDC_ISSUER"),
    ("CANVAS_OIDC_CREDITS_CLAIM", "CANVAS_OIDC_ISSUER"),
    ("CANVAS_OIDC_STORAGE_CLAIM", "CANVAS_OIDC_ISSUER"),
    ("CANVAS_OIDC_NEW_CREDITS", "CANVAS_OIDC_ISSUER"),
    ("CANVAS_OIDC_CONFIRM_DAYS", "CANVAS_OIDC_ISSUER"),
];

/// One row of the table.
struct Variable {
    name: &'static str,
    /// The default for an unset or empty variable; `None` if every part requires the variable.
    default: Option<&'static str>,
    help: &'static str,
}

/// Generates `Config`, its parser and `VARIABLES` from one table.
macro_rules! variables {
    ($($name:literal => $field:ident: $type:ty = $default:expr, $parse:expr, $help:literal;)*) => {
        /// The configuration of a process. `Debug` hides secrets.
        #[derive(Clone, Debug)]
        pub struct Config {
            $(#[doc = concat!("`", $name, "`: ", $help)] pub $field: $type,)*
        }

        const VARIABLES: &[Variable] = &[$(Variable { name: $name, default: $default, help: $help },)*];

        impl Config {
            /// Reads the configuration of `parts` through `lookup`, which returns the value of a variable.
            /// Leading and trailing white space is removed; an empty value counts as unset.
            ///
            /// # Errors
            ///
            /// A [`ConfigError`] for every missing or invalid variable, in the order of the table,
            /// and then for every variable that has no effect because another one is unset.
            pub fn from_lookup(
                parts: &[Part],
                lookup: impl Fn(&str) -> Option<String>,
            ) -> Result<Self, Vec<ConfigError>> {
                let mut errors = Vec::new();
                let is_missing = |name: &str| given(&lookup, name).is_none() && needed(parts, name);
                $(let $field = if is_missing($name) {
                    errors.push(ConfigError::Missing { variable: $name });
                    None
                } else {
                    read(&lookup, $name, $default, $parse).map_err(|error| errors.push(error)).ok()
                };)*
                let orphans = BELONGING.iter().filter(|(variable, needed)| {
                    let is_meant = given(&lookup, variable).is_some_and(|value| Some(&*value) != default_of(variable));
                    is_meant && given(&lookup, needed).is_none()
                });
                errors.extend(orphans.map(|&(variable, needed)| ConfigError::Orphan { variable, needed }));
                match ($($field,)*) {
                    ($(Some($field),)*) if errors.is_empty() => Self { $($field,)* }.consistent(),
                    _ => Err(errors),
                }
            }
        }
    };
}

/// Variables that hold secrets. For each of them `<name>_FILE` may name a file with the value instead, so that the secret
/// is not in the environment.
const SECRETS: [&str; 9] = [
    "CANVAS_DATABASE_URL",
    "CANVAS_DATABASE_PASSWORDS",
    "CANVAS_REDIS_URL",
    "CANVAS_AMQP_URL",
    "CANVAS_MASTER_KEYS",
    "CANVAS_INSTALLATION_KEYS",
    "CANVAS_MANAGED_KEY",
    "CANVAS_OIDC_CLIENT_SECRET",
    "OTEL_EXPORTER_OTLP_HEADERS",
];

impl Config {
    /// Reads the configuration of `parts` from the environment of the process.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] for every variable that is invalid, or that a part requires and that is missing.
    pub fn from_env(parts: &[Part]) -> Result<Self, Vec<ConfigError>> {
        Self::from_variables(parts, |name| std::env::var_os(name))
    }

    fn from_variables(
        parts: &[Part],
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, Vec<ConfigError>> {
        let mut values = HashMap::new();
        let mut errors = Vec::new();
        for row in VARIABLES {
            match value(&environment, row.name) {
                Ok(value) => drop(values.insert(row.name, value)),
                Err(error) => errors.push(error),
            }
        }
        match Self::from_lookup(parts, |name| values.get(name).cloned().flatten()) {
            Ok(config) if errors.is_empty() => Ok(config),
            Ok(_) => Err(errors),
            Err(more) => {
                // A value that could not be read is not missing as well.
                let unread = |error: &ConfigError| errors.iter().any(|other| other.variable() == error.variable());
                let more: Vec<_> = more.into_iter().filter(|error| !unread(error)).collect();
                errors.extend(more);
                Err(errors)
            }
        }
    }

    /// The value of a variable or its default; empty if neither. For checks that continue when the
    /// configuration is invalid.
    pub fn text_of(variable: &'static str) -> String {
        let read = |_: &str| value(|name| std::env::var_os(name), variable).ok().flatten();
        given(read, variable).unwrap_or_else(|| default_of(variable).unwrap_or_default().to_owned())
    }

    /// The names of set environment variables that begin with `CANVAS_` and that no process reads,
    /// sorted.
    pub fn unknown_variables() -> Vec<String> {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        unknown(names).collect()
    }

    /// All variables with their defaults and meanings, for `--help`.
    pub fn help() -> String {
        let mut help = String::from("Environment:\n");
        for Variable { name, default, help: meaning } in VARIABLES {
            let presence = match (part::requirement(name), default) {
                (Some(requirement), _) => format!(" ({requirement})"),
                (None, None | Some("")) => String::new(),
                (None, Some(value)) => format!(" (default {value})"),
            };
            let or_file =
                if SECRETS.contains(name) { " Or in the file that the variable with _FILE names." } else { "" };
            write!(help, "  {name}{presence}\n      {meaning}{or_file}\n").expect("writing to a String does not fail");
        }
        help
    }

    /// The URL of Redis, of the parts that need it.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Missing`] if it is not set.
    pub fn redis_url(&self) -> Result<&Secret, ConfigError> {
        self.redis_url.as_ref().ok_or(ConfigError::Missing { variable: "CANVAS_REDIS_URL" })
    }

    /// The URL of RabbitMQ, of the parts that need it.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Missing`] if it is not set.
    pub fn amqp_url(&self) -> Result<&Secret, ConfigError> {
        self.amqp_url.as_ref().ok_or(ConfigError::Missing { variable: "CANVAS_AMQP_URL" })
    }

    /// The URL of the object store, of the parts that need it.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Missing`] if it is not set.
    pub fn blob_url(&self) -> Result<&Url, ConfigError> {
        self.blob_url.as_ref().ok_or(ConfigError::Missing { variable: "CANVAS_BLOB_URL" })
    }

    /// The ring of the installation key: its own keys, if there are any, followed by the master keys, under which it may have been
    /// encrypted before.
    pub fn installation_keys(&self) -> KeyRing {
        match &self.installation_keys {
            Some(own) => own.followed_by(&self.master_keys).expect("`consistent` refuses equal ids"),
            None => self.master_keys.clone(),
        }
    }

    /// Checks rules that involve several variables.
    fn consistent(self) -> Result<Self, Vec<ConfigError>> {
        match self.installation_keys.as_ref().map(|own| own.followed_by(&self.master_keys)) {
            Some(Err(id)) => Err(vec![ConfigError::Invalid {
                variable: "CANVAS_INSTALLATION_KEYS",
                problem: format!("the id {id:?} is also in CANVAS_MASTER_KEYS"),
            }]),
            _ => Ok(self),
        }
    }

    /// The interval at which a lease is renewed: a third of the lease, so that it survives two lost
    /// heartbeats.
    pub fn heartbeat(&self) -> Duration {
        self.lease / 3
    }
}

/// Variables of clients and scripts, which are often set in the same environment: those that `canvas` reads, that `deploy/local/up`
/// writes to `.local/env`, and the switch of the console's build.
const OF_CLIENTS: [&str; 7] = [
    "CANVAS_BASE_URL",
    "CANVAS_TOKEN",
    "CANVAS_GATEWAY_BIN",
    "CANVAS_BIN",
    "CANVAS_PROFILE",
    "CANVAS_WEBHOOK_SECRET",
    "CANVAS_CONSOLE",
];

/// Names of `CANVAS_*` variables that no process knows.
fn unknown(names: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    let is_file = |name: &str| name.strip_suffix("_FILE").is_some_and(|name| SECRETS.contains(&name));
    let is_known =
        |name: &str| VARIABLES.iter().any(|row| row.name == name) || is_file(name) || OF_CLIENTS.contains(&name);
    let found: std::collections::BTreeSet<String> =
        names.filter(|name| name.starts_with("CANVAS_") && !is_known(name)).collect();
    found.into_iter()
}

/// The value of a variable in the environment, or for a secret that of the file that `<name>_FILE` names.
fn value(
    environment: impl Fn(&str) -> Option<OsString>,
    variable: &'static str,
) -> Result<Option<String>, ConfigError> {
    let invalid = |problem: String| ConfigError::Invalid { variable, problem };
    let own = match environment(variable).map(OsString::into_string) {
        Some(Err(_)) => return Err(invalid("expected UTF-8".to_owned())),
        Some(Ok(own)) => Some(own).filter(|own| !own.trim().is_empty()),
        None => None,
    };
    let file = SECRETS.contains(&variable).then(|| environment(&format!("{variable}_FILE"))).flatten();
    match (own, file.filter(|file| !file.is_empty())) {
        (own, None) => Ok(own),
        (Some(_), Some(_)) => Err(invalid(format!("expected either this variable or {variable}_FILE, not both"))),
        (None, Some(file)) => std::fs::read_to_string(file)
            .map(Some)
            .map_err(|error| invalid(format!("expected a readable file in {variable}_FILE: {error}"))),
    }
}

/// The value of a variable, if it is set.
fn given(lookup: impl Fn(&str) -> Option<String>, variable: &str) -> Option<String> {
    lookup(variable).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Returns `true` if one of the parts requires a variable.
fn needed(parts: &[Part], variable: &str) -> bool {
    part::needing(variable).iter().any(|part| parts.contains(part))
}

/// The default of a variable.
fn default_of(variable: &str) -> Option<&'static str> {
    VARIABLES.iter().find(|row| row.name == variable)?.default
}

/// Parses the value of a variable, or its default.
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
    "CANVAS_DATABASE_PASSWORDS" => database_passwords: Option<Secret> = Some(""), parse::role_passwords,
        "Passwords of the database roles of the processes, which migrate makes: gateway:password,image-worker:password,...";
    "CANVAS_REDIS_URL" => redis_url: Option<Secret> = Some(""), parse::redis_url,
        "Redis (rate limits, change notification): redis://host:6379/0; rediss:// for TLS.";
    "CANVAS_AMQP_URL" => amqp_url: Option<Secret> = Some(""), parse::amqp_url,
        "RabbitMQ: amqp://user:password@host:5672/vhost; amqps:// for TLS.";
    "CANVAS_BLOB_URL" => blob_url: Option<Url> = Some(""), parse::blob_url,
        "Blob storage: file:///absolute/directory, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix.";
    "CANVAS_MASTER_KEYS" => master_keys: KeyRing = None, parse::master_keys,
        "Key ring for secrets at rest: id:base64[,id:base64...], 32 bytes each; the first encrypts, every one decrypts.";
    "CANVAS_INSTALLATION_KEYS" => installation_keys: Option<KeyRing> = Some(""), parse::optional_keys,
        "Key ring for the installation key, of the same form and with other ids; if empty, CANVAS_MASTER_KEYS. Only the gateway and its commands use it.";
    "CANVAS_PUBLIC_URL" => public_url: String = Some("http://127.0.0.1:8080"), parse::origin,
        "Public origin of the gateway: scheme, host and port, no path.";
    "CANVAS_LISTEN" => listen: SocketAddr = Some("127.0.0.1:8080"), parse::address,
        "Address and port on which the gateway listens.";
    "CANVAS_ADMIN_LISTEN" => admin_listen: SocketAddr = Some("127.0.0.1:9090"), parse::address,
        "Address and port of /healthz, /readyz and /metrics of this process.";
    "CANVAS_CORS_ORIGINS" => cors_origins: Vec<String> = Some(""), parse::origins,
        "Origins from which browsers may call, comma separated; if empty, none.";
    "CANVAS_OAUTH" => oauth: OauthMode = Some("open"), parse::oauth_mode,
        "Programs that people may authorize: open (each that registers itself), listed (those of canvas-gateway admin app client) or off.";
    "CANVAS_OAUTH_REDIRECT_SCHEMES" => oauth_redirect_schemes: Vec<String> = Some("cursor"), parse::schemes,
        "Private URL schemes to which such a program may have its answer sent, comma separated.";
    "CANVAS_OAUTH_ACCESS_SECONDS" => oauth_access_seconds: u32 = Some("3600"), parse::access_seconds,
        "Seconds that the access token of an app is valid, 1 to 86400.";
    "CANVAS_OAUTH_IDLE_DAYS" => oauth_idle_days: u32 = Some("30"), parse::idle_days,
        "Days after which an app ends that was not refreshed, 1 to 3650.";
    "CANVAS_OAUTH_DEFAULT_CREDITS" => oauth_default_credits: u32 = Some("100"), parse::count,
        "Credits a month that a program which may generate is allowed, unless the person decides otherwise.";
    "CANVAS_TRUSTED_PROXIES" => trusted_proxies: Vec<IpNet> = Some(""), parse::blocks,
        "Reverse proxies whose X-Forwarded-For is believed: CIDR blocks, comma separated; if empty, none.";
    "CANVAS_CONNECTIONS_MAX" => connections_max: u32 = Some("10000"), parse::positive_count,
        "Open connections of the gateway.";
    "CANVAS_CONNECTIONS_PER_ADDRESS" => connections_per_address: u32 = Some("256"), parse::positive_count,
        "Open connections of one address, unless it is a trusted proxy, and requests in progress of a client address behind one.";
    "CANVAS_RATE_PER_MINUTE" => rate_per_minute: u32 = Some("1200"), parse::count,
        "Requests per token and minute; 0 disables the limit.";
    "CANVAS_RATE_BURST" => rate_burst: u32 = Some("200"), parse::count,
        "Burst of requests per token; 0 disables the limit.";
    "CANVAS_ACCOUNT_RATE_PER_MINUTE" => account_rate_per_minute: u32 = Some("6000"), parse::count,
        "Requests per account and minute, by all of its tokens and sessions; 0 disables the limit.";
    "CANVAS_ACCOUNT_RATE_BURST" => account_rate_burst: u32 = Some("1000"), parse::count,
        "Burst of requests per account; 0 disables the limit.";
    "CANVAS_FAILED_AUTH_PER_MINUTE" => failed_auth_per_minute: u32 = Some("60"), parse::count,
        "Failed credentials of a client address in a minute, in one gateway; 0 disables this limit and those of sign-ins and of OAuth.";
    "CANVAS_ACCOUNT_CPU_SECONDS" => account_cpu_seconds: u32 = Some("7200"), parse::count,
        "Seconds of processor time that free work of an account may use in an hour, a sixth of them at once; 0: no limit.";
    "CANVAS_IDEMPOTENCY_DAYS" => idempotency_window: Duration = Some("30"), parse::days,
        "Days that an idempotency key is kept.";
    "CANVAS_ACTIVE_JOBS" => active_jobs: u32 = Some("1000"), parse::positive_count,
        "Unfinished jobs and Recipe runs per account.";
    "CANVAS_ACTIVE_IMPORTS" => active_imports: u32 = Some("20"), parse::positive_count,
        "Unfinished imports per account.";
    "CANVAS_ACCOUNT_STORAGE_MAX" => storage_max: Option<i64> = Some(""), parse::optional_bytes,
        "Maximum bytes of the assets, videos and canvases of an account without its own quota; 0: no limit; if empty, 21474836480 (20 GiB), and no limit for accounts made before migration 0043.";
    "CANVAS_UPLOAD_METADATA" => upload_metadata: String = Some("auto"), parse::upload_metadata,
        "Private metadata of images: auto removes it and keeps the upload for its owner, keep leaves it, strip removes it for good.";
    "CANVAS_PREVIEW_TTL_SECONDS" => preview_ttl: Duration = Some("900"), parse::whole_seconds,
        "Whole seconds that a preview link is valid.";
    "CANVAS_RETENTION_UNREAD_SECONDS" => retention_unread: Duration = Some("86400"), parse::window,
        "Seconds that a succeeded job is kept if nobody reads it.";
    "CANVAS_RETENTION_FINALIZED_SECONDS" => retention_finalized: Duration = Some("900"), parse::window,
        "Seconds that a succeeded job is kept after it was first read or delivered.";
    "CANVAS_RETENTION_TOMBSTONE_SECONDS" => retention_tombstone: Duration = Some("604800"), parse::window,
        "Seconds that an expired job is still reported as expired.";
    "CANVAS_RETENTION_FAILED_SECONDS" => retention_failed: Duration = Some("86400"), parse::window,
        "Seconds that a failed or canceled job is kept.";
    "CANVAS_RETENTION_VIDEO_SECONDS" => retention_video: Duration = Some("2592000"), parse::window,
        "Seconds that a video job and its video are kept after the end of the job.";
    "CANVAS_EGRESS_ALLOW" => egress_allow: String = Some(""), parse::raw,
        "Non-public targets that webhooks and imports may reach: CIDR or host:port, comma separated.";
    "CANVAS_EGRESS_CA_FILE" => egress_ca_file: Option<PathBuf> = Some(""), parse::path,
        "PEM file of certificate authorities trusted for outbound calls in addition to the machine's.";
    "CANVAS_OIDC_ISSUER" => oidc_issuer: Option<String> = Some(""), parse::optional_text,
        "Issuer of the OpenID provider that people sign in with; https, or http on loopback. If empty, none.";
    "CANVAS_OIDC_FILE" => oidc_file: Option<PathBuf> = Some(""), parse::path,
        "JSON file of up to eight OpenID providers, instead of CANVAS_OIDC_ISSUER.";
    "CANVAS_OIDC_CLIENT_ID" => oidc_client_id: String = Some(""), parse::raw,
        "Id of this service at the OpenID provider.";
    "CANVAS_OIDC_CLIENT_SECRET" => oidc_client_secret: Option<Secret> = Some(""), parse::optional_secret,
        "Its secret; if empty, it is a public client.";
    "CANVAS_OIDC_NAME" => oidc_name: String = Some("Single sign-on"), parse::raw,
        "Name on the button of the sign-in page.";
    "CANVAS_OIDC_SCOPES" => oidc_scopes: String = Some("openid email profile"), parse::raw,
        "Scopes to ask the provider for, separated by spaces.";
    "CANVAS_OIDC_ADMIT" => oidc_admit: String = Some(""), parse::raw,
        "Who may sign in: group:NAME, domain:DOMAIN of the verified email, anyone; comma separated. If empty, only people who have an account.";
    "CANVAS_OIDC_LINK" => oidc_link: String = Some("email"), parse::raw,
        "email: a verified email signs in to the account of that email at the first time; off: never.";
    "CANVAS_OIDC_TRUST_EMAIL" => oidc_trust_email: bool = Some("0"), parse::switch,
        "1: every email of the provider counts as verified.";
    "CANVAS_OIDC_GROUPS_CLAIM" => oidc_groups_claim: String = Some("groups"), parse::raw,
        "Claim with the groups of a person; a JSON pointer if it begins with a slash.";
    "CANVAS_OIDC_ADMIN_GROUPS" => oidc_admin_groups: String = Some(""), parse::raw,
        "Groups whose members are administrators, comma separated.";
    "CANVAS_OIDC_CREDITS_CLAIM" => oidc_credits_claim: String = Some(""), parse::raw,
        "Claim with the credits to which the balance is raised at the first sign-in of a month.";
    "CANVAS_OIDC_STORAGE_CLAIM" => oidc_storage_claim: String = Some(""), parse::raw,
        "Claim with the storage quota in bytes.";
    "CANVAS_OIDC_NEW_CREDITS" => oidc_new_credits: u32 = Some("0"), parse::count,
        "Credits of an account that a first sign-in makes.";
    "CANVAS_OIDC_CONFIRM_DAYS" => oidc_confirm_days: u32 = Some("90"), parse::count,
        "Days after a sign-in for which the account's tokens work; 0: for ever.";
    "CANVAS_SIGNIN_TOKENS" => signin_tokens: bool = Some("1"), parse::switch,
        "0: nobody signs in to the console by pasting a token.";
    "CANVAS_MODEL_CATALOGUE" => model_catalogue: Option<PathBuf> = Some(""), parse::path,
        "JSON file of models that add to, replace or retire built-in models: {\"models\": [...], \"retired\": [...]}.";
    "CANVAS_MANAGED_URL" => managed_url: Option<Url> = Some(""), parse::server_url,
        "Self-hosted inference server that runs the managed models; if empty, the embedded runtime runs them.";
    "CANVAS_MANAGED_PROTOCOL" => managed_protocol: String = Some("openai"), parse::raw,
        "Protocol of that server: openai (its image routes) or comfy (Comfy API v2).";
    "CANVAS_MANAGED_KEY" => managed_key: Option<Secret> = Some(""), parse::optional_secret,
        "Bearer key for that server, if it needs one.";
    "CANVAS_WEBHOOK_BACKOFF_SECONDS" => webhook_backoff: [Duration; 3] = Some("10,60,300"), parse::backoff,
        "Seconds before the second, third and fourth attempt of a webhook delivery; fractions allowed.";
    "CANVAS_LEASE_SECONDS" => lease: Duration = Some("30"), parse::seconds,
        "Seconds until the lease of a claimed task expires without a heartbeat; fractions allowed. Renewed after a third of the time.";
    "CANVAS_IDLE_CLAIM_MILLISECONDS" => idle_claim: Duration = Some("2000"), parse::milliseconds,
        "Milliseconds between checks of an idle worker for due tasks that no message announced.";
    "CANVAS_WORKER_SILENT_SECONDS" => worker_silent: Duration = Some("15"), parse::silent_seconds,
        "Seconds without a sign of a queue's workers after which the queue counts as silent, 10 to 600.";
    "CANVAS_SLOTS" => slots: Option<usize> = Some(""), parse::slots,
        "Tasks that this process runs at once; if empty, the process chooses.";
    "CANVAS_IMAGE_MEMORY_MIB" => image_memory_bytes: u64 = Some("1024"), parse::mebibytes,
        "MiB for images being processed, files and pixels; a larger image is processed alone. Imports may use a further quarter for fetched files.";
    "CANVAS_GENERATION_SLOTS" => generation_slots: usize = Some("64"), parse::positive_slots,
        "Image jobs (and as many Recipe runs) that an image-worker processes at once, and videos of one account in a video-worker (eight times as many in total). Waiting jobs are not counted.";
    "CANVAS_PROVIDER_CONCURRENCY" => provider_concurrency: u32 = Some("8"), parse::positive_count,
        "Concurrent calls to a provider per connection and worker; downloads of results are not counted.";
    "CANVAS_GENERATION_MEMORY_MIB" => generation_memory_bytes: u64 = Some("512"), parse::mebibytes,
        "MiB for provider traffic: a quarter for foreign images, half for uploads, the rest for results; a larger file is transferred alone.";
    "CANVAS_DATABASE_CONNECTIONS" => database_connections: u32 = Some("16"), parse::positive_count,
        "Maximum number of PostgreSQL connections of this process.";
    "CANVAS_AUDIT_DAYS" => audit_days: u32 = Some("365"), parse::optional_days,
        "Days that the audit keeps rows, which it drops by whole months; 0 for ever.";
    "CANVAS_AUDIT_ADDRESS_DAYS" => audit_address_days: u32 = Some("90"), parse::optional_days,
        "Days that the audit keeps the addresses and names of clients; 0 as long as their rows.";
    "CANVAS_SWEEP_SECONDS" => sweep: Duration = Some("60"), parse::seconds,
        "Seconds between cleanup runs; fractions allowed. Reads hide expired records regardless.";
    "CANVAS_FAILPOINTS" => failpoints: String = Some(""), parse::raw,
        "Faults to inject for tests: name=action[;name=action...].";
    "CANVAS_LEGACY_CAMPAIGNS" => legacy_campaigns: bool = Some("0"), parse::switch,
        "1 permits planning, starting, reviewing and canceling the deprecated campaigns; 0 leaves them readable.";
    "CANVAS_ORIGIN_MARKS" => origin_marks: bool = Some("on"), parse::on_off,
        "on writes the origin of outputs, renditions and renders into their files; off leaves the files without it.";
    "CANVAS_HEIF_COMMAND" => heif_command: Option<PathBuf> = Some(""), parse::program,
        "Program that decodes HEIC and HEIF images, called as PROGRAM IN OUT.png, such as /usr/bin/heif-dec; if empty, they are refused.";
    "CANVAS_LOG" => log: String = Some("info"), parse::log_filter,
        "Log filter: a level, or comma separated target=level directives.";
    "OTEL_EXPORTER_OTLP_ENDPOINT" => otlp_endpoint: Option<Url> = Some(""), parse::server_url,
        "Base URL of the collector for traces, OTLP over HTTP (commonly port 4318); if empty, no traces are exported.";
    "OTEL_EXPORTER_OTLP_HEADERS" => otlp_headers: HeaderMap = Some(""), parse::headers,
        "Headers for the collector: name=value[,name=value...], values percent-encoded.";
    "OTEL_SERVICE_NAME" => otlp_service_name: String = Some(""), parse::raw,
        "service.name of exported traces; if empty, the name of the process.";
}

#[cfg(test)]
mod tests;
