//! Parsers of single values. Their errors say what is expected and never repeat the value.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;
use percent_encoding::percent_decode_str;
use tracing_subscriber::EnvFilter;
use url::Url;

use super::Part;
use super::secret::Secret;
use crate::keys::KeyRing;

/// The maximum duration of ten years: long enough for any use, and short enough that PostgreSQL
/// intervals and timers do not overflow.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// The minimum interval of one millisecond, the resolution of timers. A shorter one would be a busy
/// loop.
const SHORTEST: Duration = Duration::from_millis(1);

pub(super) fn raw(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

pub(super) fn optional_text(text: &str) -> Result<Option<String>, String> {
    given(text, raw)
}

pub(super) fn switch(text: &str) -> Result<bool, String> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("expected 0 or 1".to_owned()),
    }
}

pub(super) fn on_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("expected on or off".to_owned()),
    }
}

pub(super) fn upload_metadata(text: &str) -> Result<String, String> {
    match text {
        "auto" | "keep" | "strip" => raw(text),
        _ => Err("expected auto, keep or strip".to_owned()),
    }
}

pub(super) fn database_url(text: &str) -> Result<Secret, String> {
    service_url(text, &["postgres", "postgresql"], "postgres://user:password@host:5432/database")
}

pub(super) fn redis_url(text: &str) -> Result<Option<Secret>, String> {
    given(text, |text| service_url(text, &["redis", "rediss", "redis+unix", "unix"], "redis://host:6379/0"))
}

pub(super) fn amqp_url(text: &str) -> Result<Option<Secret>, String> {
    given(text, |text| service_url(text, &["amqp", "amqps"], "amqp://user:password@host:5672/vhost"))
}

/// The value of a variable that only some parts need.
fn given<T>(text: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    if text.is_empty() { Ok(None) } else { parse(text).map(Some) }
}

fn service_url(text: &str, schemes: &[&str], example: &str) -> Result<Secret, String> {
    match Url::parse(text) {
        Ok(url) if schemes.contains(&url.scheme()) => Ok(Secret::new(text)),
        _ => Err(format!("expected a URL such as {example}")),
    }
}

pub(super) fn blob_url(text: &str) -> Result<Option<Url>, String> {
    given(text, store_url)
}

fn store_url(text: &str) -> Result<Url, String> {
    let plain = |url: &Url| {
        url.query().is_none() && url.fragment().is_none() && url.username().is_empty() && url.password().is_none()
    };
    Url::parse(text)
        .ok()
        .filter(|url| match url.scheme() {
            "file" => plain(url) && url.to_file_path().is_ok_and(|path| path.parent().is_some()),
            "s3" | "gs" | "az" => {
                plain(url) && url.host_str().is_some_and(|bucket| !bucket.is_empty()) && url.port().is_none()
            }
            _ => false,
        })
        .ok_or_else(|| {
            "expected file:///absolute/directory, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix"
                .to_owned()
        })
}

pub(super) fn master_keys(text: &str) -> Result<KeyRing, String> {
    KeyRing::parse(text).map_err(|error| error.to_string())
}

pub(super) fn optional_keys(text: &str) -> Result<Option<KeyRing>, String> {
    if text.is_empty() { Ok(None) } else { master_keys(text).map(Some) }
}

/// Headers in the format of OpenTelemetry's variable. They are hidden from `Debug`, because they
/// often contain credentials.
pub(super) fn headers(text: &str) -> Result<HeaderMap, String> {
    let header = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let decoded = percent_decode_str(value.trim()).decode_utf8().ok()?;
        let mut value = HeaderValue::from_str(&decoded).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::from_bytes(name.trim().as_bytes()).ok()?, value))
    };
    let pairs = text.split(',').filter(|pair| !pair.trim().is_empty());
    pairs
        .map(header)
        .collect::<Option<HeaderMap>>()
        .ok_or_else(|| "expected name=value[,name=value...], values percent-encoded".to_owned())
}

/// The URL of a server that the operator runs. Any host is permitted, and so is plain HTTP.
pub(super) fn server_url(text: &str) -> Result<Option<Url>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    Url::parse(text)
        .ok()
        .filter(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
                && url.fragment().is_none()
        })
        .map(Some)
        .ok_or_else(|| {
            "expected a URL such as http://inference:8000, without credentials, query and fragment".to_owned()
        })
}

pub(super) fn optional_secret(text: &str) -> Result<Option<Secret>, String> {
    Ok((!text.is_empty()).then(|| Secret::new(text)))
}

/// Passwords by process, as JSON with the suffixes of the roles: `{"image_worker": "…"}`.
pub(super) fn role_passwords(text: &str) -> Result<Option<Secret>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let mut passwords = serde_json::Map::new();
    for pair in text.split(',') {
        let (process, password) = pair.trim().split_once(':').unwrap_or_default();
        let is_process = Part::PROCESSES.iter().any(|part| part.name() == process);
        let is_new = passwords.insert(process.replace('-', "_"), password.into()).is_none();
        if !is_process || !is_new || password.is_empty() {
            let names = Part::PROCESSES.map(|part| format!("{}:password", part.name()));
            return Err(format!("expected each process at most once, comma separated: {}", names.join(",")));
        }
    }
    Ok(Some(Secret::new(serde_json::Value::from(passwords).to_string())))
}

/// A web origin in its serialized form: lower-case host, no default port, no trailing slash.
pub(super) fn origin(text: &str) -> Result<String, String> {
    Url::parse(text)
        .ok()
        .filter(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.path() == "/"
                && url.query().is_none()
                && url.fragment().is_none()
                && url.username().is_empty()
                && url.password().is_none()
        })
        .map(|url| url.origin().ascii_serialization())
        .ok_or_else(|| "expected an origin such as https://canvas.example.com, without a path".to_owned())
}

pub(super) fn origins(text: &str) -> Result<Vec<String>, String> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(origin).collect()
}

/// Which programs people may authorize (docs/reference/oauth.md#clients).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OauthMode {
    /// Each that registers itself, and those that the operator listed.
    Open,
    /// Those that the operator listed.
    Listed,
    /// None.
    Off,
}

pub(super) fn oauth_mode(text: &str) -> Result<OauthMode, String> {
    match text {
        "open" => Ok(OauthMode::Open),
        "listed" => Ok(OauthMode::Listed),
        "off" => Ok(OauthMode::Off),
        _ => Err("expected open, listed or off".to_owned()),
    }
}

/// Private URL schemes. Those that browsers give a meaning of their own are refused, because an address with one could run a script or
/// open a file.
pub(super) fn schemes(text: &str) -> Result<Vec<String>, String> {
    const RESERVED: [&str; 12] =
        ["about", "blob", "data", "file", "filesystem", "ftp", "http", "https", "javascript", "vbscript", "ws", "wss"];
    let is_private = |scheme: &str| {
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte);
        scheme.starts_with(|first: char| first.is_ascii_lowercase())
            && scheme.bytes().all(is_letter)
            && !RESERVED.contains(&scheme)
    };
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let scheme = |entry: &str| if is_private(entry) { Some(entry.to_owned()) } else { None };
    entries.map(scheme).collect::<Option<_>>().ok_or_else(|| {
        "expected private URL schemes in lower case, comma separated, such as cursor; none that browsers define"
            .to_owned()
    })
}

pub(super) fn access_seconds(text: &str) -> Result<u32, String> {
    at_least_one(text, 86_400)
}

pub(super) fn idle_days(text: &str) -> Result<u32, String> {
    at_least_one(text, 3650)
}

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an IP address and a port, such as 127.0.0.1:8080".to_owned())
}

/// Blocks of addresses. Bits beyond the prefix are more likely a mistake than an intention, and addresses are compared in canonical
/// form, with which an IPv4-mapped block would never agree.
pub(super) fn blocks(text: &str) -> Result<Vec<IpNet>, String> {
    let block = |entry: &str| {
        let (network, prefix) = entry.split_once('/')?;
        // `IpNet` itself accepts leading zeros, which other programs read as octal.
        let network: IpAddr = network.parse().ok()?;
        let block = IpNet::new(network, prefix.parse().ok()?).ok()?;
        (block.network() == network && network.to_canonical() == network).then_some(block)
    };
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let named = entries.enumerate().map(|(at, entry)| {
        let problem = "is not a CIDR block such as 10.20.0.0/16 or 192.0.2.1/32 (no bits may be set beyond the prefix)";
        block(entry).ok_or_else(|| format!("entry {} {problem}", at + 1))
    });
    named.collect()
}

pub(super) fn path(text: &str) -> Result<Option<PathBuf>, String> {
    Ok((!text.is_empty()).then(|| PathBuf::from(text)))
}

/// The path of a program, which is called without a search path.
pub(super) fn program(text: &str) -> Result<Option<PathBuf>, String> {
    match path(text)? {
        Some(path) if path.is_relative() => {
            Err("expected the absolute path of a program, without arguments".to_owned())
        }
        path => Ok(path),
    }
}

pub(super) fn count(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}", u32::MAX))
}

/// A number of bytes in the database's type.
pub(super) fn optional_bytes(text: &str) -> Result<Option<i64>, String> {
    let bytes = text.parse().ok().filter(|bytes| *bytes >= 0);
    match text {
        "" => Ok(None),
        _ => bytes.map(Some).ok_or_else(|| format!("expected a whole number of bytes from 0 to {}", i64::MAX)),
    }
}

pub(super) fn positive_count(text: &str) -> Result<u32, String> {
    at_least_one(text, u32::MAX)
}

pub(super) fn slots(text: &str) -> Result<Option<usize>, String> {
    if text.is_empty() { Ok(None) } else { positive_slots(text).map(Some) }
}

pub(super) fn positive_slots(text: &str) -> Result<usize, String> {
    /// The maximum number of slots. More are a mistake, because each one needs memory for a task.
    const SLOTS_MAX: usize = 10_000;
    at_least_one(text, SLOTS_MAX)
}

fn at_least_one<T: FromStr + PartialOrd + From<u8> + std::fmt::Display>(text: &str, most: T) -> Result<T, String> {
    match text.parse::<T>() {
        Ok(number) if number >= T::from(1) && number <= most => Ok(number),
        _ => Err(format!("expected a whole number from 1 to {most}")),
    }
}

/// Mebibytes, converted to bytes.
pub(super) fn mebibytes(text: &str) -> Result<u64, String> {
    /// One pebibyte: more than any machine has, and small enough not to overflow.
    const MOST: u64 = 1 << 30;
    at_least_one::<u64>(text, MOST).map(|count| count << 20)
}

pub(super) fn days(text: &str) -> Result<Duration, String> {
    at_least_one::<u64>(text, 3650).map(|days| Duration::from_secs(days * 24 * 60 * 60))
}

/// A number of days; 0 is none.
pub(super) fn optional_days(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(days @ 0..=3650) => Ok(days),
        _ => Err("expected a whole number from 0 to 3650".to_owned()),
    }
}

pub(super) fn whole_seconds(text: &str) -> Result<Duration, String> {
    at_least_one(text, LONGEST.as_secs()).map(Duration::from_secs)
}

/// Workers report every 5 s: a shorter time would call a queue silent because of one late report.
pub(super) fn silent_seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<u64>() {
        Ok(seconds @ 10..=600) => Ok(Duration::from_secs(seconds)),
        _ => Err("expected a whole number from 10 to 600".to_owned()),
    }
}

pub(super) fn milliseconds(text: &str) -> Result<Duration, String> {
    at_least_one::<u64>(text, 3_600_000).map(Duration::from_millis)
}

/// A positive number of seconds, fractions allowed.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    match number_of_seconds(text) {
        Some(duration) if duration >= SHORTEST => Ok(duration),
        _ => Err(format!("expected a number of seconds from 0.001 to {}", LONGEST.as_secs())),
    }
}

/// A number of seconds that may be zero, fractions allowed.
pub(super) fn window(text: &str) -> Result<Duration, String> {
    number_of_seconds(text).ok_or_else(|| format!("expected a number of seconds from 0 to {}", LONGEST.as_secs()))
}

fn number_of_seconds(text: &str) -> Option<Duration> {
    let duration = Duration::try_from_secs_f64(text.parse().ok()?).ok()?;
    (duration <= LONGEST).then_some(duration)
}

pub(super) fn backoff(text: &str) -> Result<[Duration; 3], String> {
    let steps: Result<Vec<Duration>, String> = text.split(',').map(|step| seconds(step.trim())).collect();
    steps
        .ok()
        .and_then(|steps| steps.try_into().ok())
        .ok_or_else(|| "expected exactly three positive numbers of seconds, such as 10,60,300".to_owned())
}

pub(super) fn log_filter(text: &str) -> Result<String, String> {
    match EnvFilter::try_new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("expected a log filter such as info or warn,db=debug".to_owned()),
    }
}
