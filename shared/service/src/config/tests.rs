use std::collections::HashMap;

use http::HeaderValue;

use super::*;

/// 32 bytes of zeros in base64.
const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// The configuration of the required variables, changed by `changes`.
fn load(changes: &[(&str, &str)]) -> Result<Config, ConfigError> {
    load_all(changes).map_err(|mut errors| errors.swap_remove(0))
}

/// The same with every error.
fn load_all(changes: &[(&str, &str)]) -> Result<Config, Vec<ConfigError>> {
    let keys = format!("k1:{KEY}");
    let mut values = HashMap::from([
        ("CANVAS_DATABASE_URL", "postgres://canvas:hunter2@db/canvas"),
        ("CANVAS_REDIS_URL", "redis://:hunter2@redis/0"),
        ("CANVAS_AMQP_URL", "amqp://canvas:hunter2@rabbit/vhost"),
        ("CANVAS_BLOB_URL", "file:///var/lib/canvas/blobs"),
        ("CANVAS_MASTER_KEYS", keys.as_str()),
    ]);
    values.extend(changes.iter().copied());
    Config::from_lookup(Part::ALL, |name| values.get(name).map(|value| (*value).to_owned()))
}

fn loaded(changes: &[(&str, &str)]) -> Config {
    load(changes).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn defaults_hold_for_everything_that_is_not_required() {
    let config = loaded(&[]);
    assert_eq!(config.database_url.expose(), "postgres://canvas:hunter2@db/canvas");
    assert_eq!(config.public_url, "http://127.0.0.1:8080");
    assert_eq!(config.listen, SocketAddr::from(([127, 0, 0, 1], 8080)));
    assert_eq!(config.admin_listen, SocketAddr::from(([127, 0, 0, 1], 9090)));
    assert!(config.cors_origins.is_empty());
    assert_eq!((config.rate_per_minute, config.rate_burst, config.failed_auth_per_minute), (1200, 200, 60));
    assert_eq!((config.account_rate_per_minute, config.account_rate_burst), (6000, 1000));
    assert_eq!(config.account_cpu_seconds, 7200);
    assert_eq!(config.oauth, OauthMode::Open);
    assert_eq!(config.oauth_redirect_schemes, ["cursor"]);
    assert_eq!((config.oauth_access_seconds, config.oauth_idle_days), (3600, 30));
    assert_eq!(config.oauth_default_credits, 100);
    assert_eq!(config.idempotency_window, Duration::from_secs(30 * 86400));
    assert_eq!((config.active_jobs, config.active_imports, config.storage_max), (1000, 20, None));
    assert_eq!(config.upload_metadata, "auto");
    assert_eq!(config.preview_ttl, Duration::from_secs(900));
    assert_eq!(config.retention_unread, Duration::from_secs(86400));
    assert_eq!(config.retention_finalized, Duration::from_secs(900));
    assert_eq!(config.retention_tombstone, Duration::from_secs(604_800));
    assert_eq!(config.retention_failed, Duration::from_secs(86400));
    assert_eq!(config.retention_video, Duration::from_secs(2_592_000));
    assert_eq!(config.egress_allow, "");
    assert_eq!(config.egress_ca_file, None);
    assert!(config.model_catalogue.is_none() && config.managed_url.is_none() && config.managed_key.is_none());
    assert_eq!(config.managed_protocol, "openai");
    assert_eq!(config.webhook_backoff, [10, 60, 300].map(Duration::from_secs));
    assert_eq!((config.lease, config.heartbeat()), (Duration::from_secs(30), Duration::from_secs(10)));
    assert_eq!(config.idle_claim, Duration::from_secs(2));
    assert_eq!(config.slots, None);
    assert_eq!((config.generation_slots, config.provider_concurrency), (64, 8));
    assert_eq!(config.generation_memory_bytes, 512 << 20);
    assert_eq!(config.database_connections, 16);
    assert_eq!(config.sweep, Duration::from_secs(60));
    assert_eq!((config.failpoints.as_str(), config.log.as_str()), ("", "info"));
    assert_eq!((config.otlp_endpoint, config.otlp_service_name.as_str()), (None, ""));
    assert!(config.otlp_headers.is_empty());
}

#[test]
fn an_optional_variable_that_is_empty_counts_as_unset() {
    for Variable { name, .. } in VARIABLES {
        if part::needing(name).is_empty() {
            assert_eq!(format!("{:?}", loaded(&[(name, " ")])), format!("{:?}", loaded(&[])), "{name}");
        }
    }
}

#[test]
fn passwords_of_roles_name_each_process_at_most_once() {
    let given = "gateway:a:b%,  video-worker:\"c\"";
    let passwords = loaded(&[("CANVAS_DATABASE_PASSWORDS", given)]).database_passwords.expect("is set");
    let passwords: serde_json::Value = serde_json::from_str(passwords.expose()).expect("is JSON");
    assert_eq!(passwords, serde_json::json!({"gateway": "a:b%", "video_worker": "\"c\""}));
    for wrong in ["gateway", "gateway:", ":a", "gateway:a,", "gateway:a,gateway:b", "migrate:a", "image_worker:a"] {
        let error = load(&[("CANVAS_DATABASE_PASSWORDS", wrong)]).expect_err(wrong).to_string();
        assert!(error.starts_with("CANVAS_DATABASE_PASSWORDS: expected each process at most once"), "{error}");
    }
}

#[test]
fn a_required_variable_that_is_unset_or_empty_is_named() {
    for (name, _) in part::REQUIRED {
        let error = load(&[(name, "")]).expect_err("required");
        assert_eq!(error.to_string(), format!("{name}: is required and not set"));
    }
}

#[test]
fn a_part_needs_its_own_variables_and_no_others() {
    for part in Part::ALL {
        let missing = Config::from_lookup(&[*part], |_| None).expect_err("nothing is set");
        let named: Vec<String> = missing.iter().map(|error| error.variable().to_owned()).collect();
        let needed = part::REQUIRED.iter().filter(|(_, parts)| parts.contains(part));
        assert_eq!(named, needed.map(|(name, _)| *name).collect::<Vec<_>>(), "{part:?}");
    }
    let keys = format!("k1:{KEY}");
    let values = HashMap::from([
        ("CANVAS_DATABASE_URL", "postgres://canvas@db/canvas"),
        ("CANVAS_AMQP_URL", "amqp://rabbit/vhost"),
        ("CANVAS_MASTER_KEYS", keys.as_str()),
    ]);
    let lookup = |name: &str| values.get(name).map(|value| (*value).to_owned());
    let config = Config::from_lookup(&[Part::WebhookDispatcher], lookup).expect("is complete for a dispatcher");
    assert_eq!(config.amqp_url().map(Secret::expose), Ok("amqp://rabbit/vhost"));
    assert_eq!(config.redis_url().map(Secret::expose), Err(ConfigError::Missing { variable: "CANVAS_REDIS_URL" }));
    assert_eq!(config.blob_url().map(Url::as_str), Err(ConfigError::Missing { variable: "CANVAS_BLOB_URL" }));
}

#[test]
fn a_value_that_a_part_does_not_need_must_still_be_valid() {
    let keys = format!("k1:{KEY}");
    let values = HashMap::from([
        ("CANVAS_DATABASE_URL", "postgres://canvas@db/canvas"),
        ("CANVAS_REDIS_URL", "http://redis"),
        ("CANVAS_MASTER_KEYS", keys.as_str()),
    ]);
    let errors = Config::from_lookup(&[Part::Migrate], |name| values.get(name).map(|value| (*value).to_owned()))
        .expect_err("the URL of Redis is invalid");
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["CANVAS_REDIS_URL: expected a URL such as redis://host:6379/0"]);
}

#[test]
fn a_wrong_value_gives_one_line_that_names_the_variable_and_not_the_value() {
    for (name, value) in [
        ("CANVAS_DATABASE_URL", "mysql://hunter2"),
        ("CANVAS_REDIS_URL", "hunter2:6379"),
        ("CANVAS_AMQP_URL", "http://hunter2/"),
        ("CANVAS_BLOB_URL", "file://host/hunter2"),
        ("CANVAS_BLOB_URL", "file:///"),
        ("CANVAS_BLOB_URL", "s3:///hunter2"),
        ("CANVAS_BLOB_URL", "gs://bucket/?key=hunter2"),
        ("CANVAS_BLOB_URL", "az://account:hunter2@container/"),
        ("CANVAS_BLOB_URL", "s3://user:hunter2@bucket/"),
        ("CANVAS_MASTER_KEYS", "k1:hunter2\nhunter2"),
        ("CANVAS_PUBLIC_URL", "https://hunter2/path"),
        ("CANVAS_PUBLIC_URL", "ftp://hunter2"),
        ("CANVAS_PUBLIC_URL", "https://a:hunter2@b"),
        ("CANVAS_LISTEN", "hunter2:80"),
        ("CANVAS_ADMIN_LISTEN", "127.0.0.1"),
        ("CANVAS_CORS_ORIGINS", "https://a.example,hunter2"),
        ("CANVAS_CORS_ORIGINS", "*"),
        ("CANVAS_OAUTH", "on"),
        ("CANVAS_OAUTH_REDIRECT_SCHEMES", "cursor,javascript"),
        ("CANVAS_OAUTH_REDIRECT_SCHEMES", "cursor,https"),
        ("CANVAS_OAUTH_REDIRECT_SCHEMES", "Hunter2"),
        ("CANVAS_OAUTH_REDIRECT_SCHEMES", "hunter2://"),
        ("CANVAS_OAUTH_ACCESS_SECONDS", "0"),
        ("CANVAS_OAUTH_ACCESS_SECONDS", "86401"),
        ("CANVAS_OAUTH_IDLE_DAYS", "0"),
        ("CANVAS_OAUTH_IDLE_DAYS", "3651"),
        ("CANVAS_TRUSTED_PROXIES", "10.0.0.0/8,hunter2"),
        ("CANVAS_TRUSTED_PROXIES", "10.0.0.0/8;hunter2/8"),
        ("CANVAS_CONNECTIONS_MAX", "0"),
        ("CANVAS_CONNECTIONS_PER_ADDRESS", "0"),
        ("CANVAS_RATE_PER_MINUTE", "-1"),
        ("CANVAS_RATE_BURST", "4294967296"),
        ("CANVAS_ACCOUNT_RATE_BURST", "-1"),
        ("CANVAS_ACCOUNT_CPU_SECONDS", "1.5"),
        ("CANVAS_FAILED_AUTH_PER_MINUTE", "1.5"),
        ("CANVAS_IDEMPOTENCY_DAYS", "0"),
        ("CANVAS_IDEMPOTENCY_DAYS", "3651"),
        ("CANVAS_ACTIVE_JOBS", "0"),
        ("CANVAS_ACTIVE_IMPORTS", "0"),
        ("CANVAS_ACCOUNT_STORAGE_MAX", "-1"),
        ("CANVAS_ACCOUNT_STORAGE_MAX", "9223372036854775808"),
        ("CANVAS_ACCOUNT_STORAGE_MAX", "1 GiB"),
        ("CANVAS_UPLOAD_METADATA", "Auto"),
        ("CANVAS_UPLOAD_METADATA", "remove"),
        ("CANVAS_PREVIEW_TTL_SECONDS", "0"),
        ("CANVAS_PREVIEW_TTL_SECONDS", "1.5"),
        ("CANVAS_RETENTION_UNREAD_SECONDS", "-1"),
        ("CANVAS_RETENTION_FINALIZED_SECONDS", "NaN"),
        ("CANVAS_RETENTION_TOMBSTONE_SECONDS", "inf"),
        ("CANVAS_RETENTION_FAILED_SECONDS", "315360001"),
        ("CANVAS_MANAGED_URL", "hunter2:8000"),
        ("CANVAS_MANAGED_URL", "ftp://hunter2/"),
        ("CANVAS_MANAGED_URL", "http://a:hunter2@b/"),
        ("CANVAS_MANAGED_URL", "http://b/?key=hunter2"),
        ("CANVAS_MANAGED_URL", "http://b/#hunter2"),
        ("CANVAS_WEBHOOK_BACKOFF_SECONDS", "1,2"),
        ("CANVAS_WEBHOOK_BACKOFF_SECONDS", "1,2,3,4"),
        ("CANVAS_WEBHOOK_BACKOFF_SECONDS", "1,0,3"),
        ("CANVAS_LEASE_SECONDS", "0"),
        ("CANVAS_LEASE_SECONDS", "0.0009"),
        ("CANVAS_IDLE_CLAIM_MILLISECONDS", "0"),
        ("CANVAS_WORKER_SILENT_SECONDS", "9"),
        ("CANVAS_WORKER_SILENT_SECONDS", "601"),
        ("CANVAS_WORKER_SILENT_SECONDS", "15.5"),
        ("CANVAS_SLOTS", "0"),
        ("CANVAS_SLOTS", "10001"),
        ("CANVAS_GENERATION_SLOTS", "0"),
        ("CANVAS_GENERATION_SLOTS", "10001"),
        ("CANVAS_PROVIDER_CONCURRENCY", "0"),
        ("CANVAS_GENERATION_MEMORY_MIB", "0"),
        ("CANVAS_DATABASE_CONNECTIONS", "0"),
        ("CANVAS_SWEEP_SECONDS", "soon"),
        ("CANVAS_ORIGIN_MARKS", "1"),
        ("CANVAS_ORIGIN_MARKS", "ON"),
        ("CANVAS_HEIF_COMMAND", "hunter2"),
        ("CANVAS_HEIF_COMMAND", "hunter2 --quiet"),
        ("CANVAS_LOG", "db=hunter2"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "hunter2:4318"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:hunter2@collector/"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "hunter2"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=b,c d=hunter2"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=hunter2%0a"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=hunter2%ff"),
    ] {
        let error = load(&[(name, value)]).err().unwrap_or_else(|| panic!("{name}={value} is wrong")).to_string();
        assert!(error.starts_with(&format!("{name}: ")), "{error}");
        assert!(!error.contains('\n') && !error.contains("hunter2"), "{error}");
    }
}

#[test]
fn values_at_their_limits_are_accepted() {
    let config = loaded(&[
        ("CANVAS_CONNECTIONS_MAX", "1"),
        ("CANVAS_CONNECTIONS_PER_ADDRESS", "4294967295"),
        ("CANVAS_RATE_PER_MINUTE", "0"),
        ("CANVAS_RATE_BURST", "4294967295"),
        ("CANVAS_ACCOUNT_RATE_PER_MINUTE", "0"),
        ("CANVAS_ACCOUNT_CPU_SECONDS", "0"),
        ("CANVAS_IDEMPOTENCY_DAYS", "1"),
        ("CANVAS_OAUTH", "listed"),
        ("CANVAS_OAUTH_REDIRECT_SCHEMES", "cursor, com.example+app-1"),
        ("CANVAS_OAUTH_ACCESS_SECONDS", "86400"),
        ("CANVAS_OAUTH_IDLE_DAYS", "1"),
        ("CANVAS_OAUTH_DEFAULT_CREDITS", "0"),
        ("CANVAS_ACTIVE_JOBS", "1"),
        ("CANVAS_ACTIVE_IMPORTS", "1"),
        ("CANVAS_PREVIEW_TTL_SECONDS", "1"),
        ("CANVAS_RETENTION_UNREAD_SECONDS", "0"),
        ("CANVAS_RETENTION_FAILED_SECONDS", "315360000"),
        ("CANVAS_LEASE_SECONDS", "0.001"),
        ("CANVAS_IDLE_CLAIM_MILLISECONDS", "1"),
        ("CANVAS_WORKER_SILENT_SECONDS", "10"),
        ("CANVAS_SLOTS", "1"),
        ("CANVAS_WEBHOOK_BACKOFF_SECONDS", "0.2, 0.5,1"),
    ]);
    assert_eq!((config.rate_per_minute, config.rate_burst), (0, u32::MAX));
    assert_eq!((config.account_rate_per_minute, config.account_cpu_seconds), (0, 0));
    assert_eq!(config.retention_unread, Duration::ZERO);
    assert_eq!(config.lease, Duration::from_millis(1));
    assert_eq!(config.worker_silent, Duration::from_secs(10));
    let longest = loaded(&[("CANVAS_WORKER_SILENT_SECONDS", "600")]);
    assert_eq!(longest.worker_silent, Duration::from_secs(600));
    assert_eq!(config.slots, Some(1));
    assert_eq!((config.oauth, config.oauth_access_seconds, config.oauth_idle_days), (OauthMode::Listed, 86_400, 1));
    assert_eq!(config.oauth_redirect_schemes, ["cursor", "com.example+app-1"]);
    assert_eq!(config.oauth_default_credits, 0);
    assert_eq!(config.webhook_backoff, [200, 500, 1000].map(Duration::from_millis));
}

#[test]
fn origins_are_kept_in_their_serialised_form() {
    let config = loaded(&[
        ("CANVAS_PUBLIC_URL", "HTTPS://Canvas.Example:443/"),
        ("CANVAS_CORS_ORIGINS", "https://a.example/, http://b.example:8080"),
    ]);
    assert_eq!(config.public_url, "https://canvas.example");
    assert_eq!(config.cors_origins, ["https://a.example", "http://b.example:8080"]);
}

#[test]
fn trusted_proxies_are_blocks_of_addresses() {
    let blocks = |text: &str| loaded(&[("CANVAS_TRUSTED_PROXIES", text)]).trusted_proxies;
    assert!(blocks("").is_empty() && blocks(" , ,").is_empty());
    let written = " 10.0.0.0/8,192.0.2.1/32 ,fd00::/8,, ::1/128,0.0.0.0/0";
    let shown: Vec<String> = blocks(written).iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["10.0.0.0/8", "192.0.2.1/32", "fd00::/8", "::1/128", "0.0.0.0/0"]);
    for wrong in [
        "10.0.0.1",
        "10.0.0.1/8",
        "10.0.0.0/33",
        "10.0.0/8",
        "010.0.0.0/8",
        "::/129",
        "[fd00::]/8",
        "::ffff:10.0.0.0/104",
        "/8",
    ] {
        let error =
            load(&[("CANVAS_TRUSTED_PROXIES", &format!("::1/128, ,{wrong}"))]).expect_err("is wrong").to_string();
        assert!(error.starts_with("CANVAS_TRUSTED_PROXIES: entry 2 is not a CIDR block"), "{wrong}: {error}");
    }
}

#[test]
fn blobs_live_in_a_directory_or_a_bucket() {
    for url in ["file:///var/lib/canvas", "s3://bucket", "s3://bucket/a/prefix", "gs://bucket/a", "az://container/a"] {
        assert_eq!(loaded(&[("CANVAS_BLOB_URL", url)]).blob_url().map(Url::as_str), Ok(url));
    }
}

const SERVER: (&str, &str) = ("CANVAS_MANAGED_URL", "http://inference:8000");
const COLLECTOR: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");

#[test]
fn what_means_nothing_without_another_variable_is_refused_without_it() {
    for (name, value, other) in [
        ("CANVAS_MANAGED_PROTOCOL", "comfy", SERVER),
        ("CANVAS_MANAGED_PROTOCOL", "grpc", SERVER),
        ("CANVAS_MANAGED_KEY", "hunter2", SERVER),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=hunter2", COLLECTOR),
    ] {
        for without in [&[(name, value)][..], &[(name, value), (other.0, " ")]] {
            let error = load(without).err().unwrap_or_else(|| panic!("{name} alone is wrong")).to_string();
            assert!(error.starts_with(&format!("{name}: ")) && error.contains(other.0), "{error}");
            assert!(!error.contains('\n') && !error.contains("hunter2"), "{error}");
        }
        loaded(&[(name, value), other]);
        loaded(&[(name, " "), (other.0, "")]);
    }
}

#[test]
fn a_default_that_is_written_out_needs_no_other_variable() {
    for protocol in ["openai", " openai "] {
        let config = loaded(&[("CANVAS_MANAGED_PROTOCOL", protocol)]);
        assert_eq!((config.managed_protocol.as_str(), config.managed_url), ("openai", None));
        loaded(&[("CANVAS_MANAGED_PROTOCOL", protocol), SERVER]);
    }
}

#[test]
fn headers_of_the_collector_are_percent_decoded() {
    let headers =
        loaded(&[COLLECTOR, ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20a%3Db , x-tenant = c=d,")])
            .otlp_headers;
    assert_eq!(
        (headers.len(), &headers["authorization"], &headers["x-tenant"]),
        (2, &HeaderValue::from_static("Bearer a=b"), &HeaderValue::from_static("c=d"))
    );
}

#[test]
fn debug_hides_every_secret() {
    let hidden = [("CANVAS_MANAGED_KEY", "hunter2"), ("OTEL_EXPORTER_OTLP_HEADERS", "a=hunter2")];
    let shown = format!("{:?}", loaded(&[&hidden[..], &[SERVER, COLLECTOR]].concat()));
    assert!(!shown.contains("hunter2") && !shown.contains(KEY), "{shown}");
    assert!(shown.contains("[hidden]"), "{shown}");
}

#[test]
fn help_lists_every_variable_with_its_default() {
    let help = Config::help();
    for Variable { name, help: meaning, .. } in VARIABLES {
        assert!(help.contains(&format!("  {name}")) && help.contains(meaning), "{name}");
    }
    assert!(help.contains("CANVAS_DATABASE_URL (required)\n"));
    assert!(help.contains("CANVAS_REDIS_URL (required by gateway, image-worker, video-worker, admin)\n"));
    assert!(help.contains("CANVAS_RATE_PER_MINUTE (default 1200)\n"));
    assert!(help.contains("CANVAS_SLOTS\n"));
}

#[test]
fn every_wrong_variable_is_reported() {
    let wrong =
        [("CANVAS_REDIS_URL", "x"), ("CANVAS_AMQP_URL", ""), ("CANVAS_SLOTS", "0"), ("CANVAS_MANAGED_KEY", "k")];
    let errors = load_all(&wrong).expect_err("wrong");
    let named: Vec<String> = errors.iter().map(|error| error.to_string()).collect();
    let names: Vec<&str> = named.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(names, ["CANVAS_REDIS_URL", "CANVAS_AMQP_URL", "CANVAS_SLOTS", "CANVAS_MANAGED_KEY"]);
}

#[test]
fn variables_that_no_process_reads_are_unknown() {
    let names = ["PATH", "CANVAS_RATE_BURTS", "CANVAS_SLOTS", "CANVAS_TOKEN", "CANVAS_A", "XCANVAS_A"];
    let found: Vec<String> = unknown(names.into_iter().map(str::to_owned)).collect();
    assert_eq!(found, ["CANVAS_A", "CANVAS_RATE_BURTS"]);
}

/// The scripts write an environment that `check-config` finds nothing unknown in: the settings that they choose, and the variables
/// of clients.
#[test]
fn every_variable_that_the_scripts_set_is_known() {
    let script = include_str!("../../../../deploy/local/lib/processes.sh");
    let is_of_name = |character: char| character.is_ascii_uppercase() || character == '_';
    let names = |text: &str| -> Vec<String> {
        let words = text.split(|character| !is_of_name(character));
        words.filter(|word| word.starts_with("CANVAS_")).map(str::to_owned).collect()
    };
    let mut listed = 0;
    for list in ["\nSETTINGS=(", "\nCLIENT_SETTINGS=("] {
        let (_, rest) = script.split_once(list).unwrap_or_else(|| panic!("{list:?} is not in the script"));
        let found = names(rest.split(')').next().expect("a first part"));
        assert_eq!(unknown(found.iter().cloned()).collect::<Vec<_>>(), [""; 0], "{list:?}");
        listed += found.len();
    }
    assert!(listed > 10, "{listed}");
    let exported: Vec<String> =
        script.split("'export ").skip(1).filter_map(|text| names(text).into_iter().next()).collect();
    assert!(exported.contains(&"CANVAS_BIN".to_owned()), "{exported:?}");
    assert_eq!(unknown(exported.into_iter()).collect::<Vec<_>>(), [""; 0]);
}

/// The configuration of the required variables in an environment, changed by `changes`.
fn from_variables(changes: &[(&str, &str)]) -> Result<Config, Vec<ConfigError>> {
    let keys = format!("k1:{KEY}");
    let mut values = HashMap::from([
        ("CANVAS_DATABASE_URL", "postgres://canvas@db/canvas"),
        ("CANVAS_REDIS_URL", "redis://redis/0"),
        ("CANVAS_AMQP_URL", "amqp://rabbit/vhost"),
        ("CANVAS_BLOB_URL", "file:///var/lib/canvas/blobs"),
        ("CANVAS_MASTER_KEYS", keys.as_str()),
    ]);
    values.extend(changes.iter().copied());
    Config::from_variables(Part::ALL, |name| values.get(name).map(OsString::from))
}

#[test]
fn the_value_of_every_secret_can_be_in_a_file() {
    let path = std::env::temp_dir().join(format!("canvas-secret-{}", std::process::id()));
    let file = path.to_str().expect("a path in UTF-8");
    std::fs::write(&path, " postgres://canvas:hunter2@elsewhere/canvas\n").expect("writes a file");
    let config = from_variables(&[("CANVAS_DATABASE_URL", ""), ("CANVAS_DATABASE_URL_FILE", file)]).expect("is valid");
    assert_eq!(config.database_url.expose(), "postgres://canvas:hunter2@elsewhere/canvas");

    std::fs::remove_file(&path).expect("removes the file");
    for secret in SECRETS {
        let name = format!("{secret}_FILE");
        let errors = from_variables(&[(secret, ""), (&name, file)]).expect_err("the file does not exist");
        let [error] = &errors[..] else { panic!("one error for one variable: {errors:?}") };
        let text = error.to_string();
        assert!(text.starts_with(&format!("{secret}: expected a readable file in {secret}_FILE: ")), "{text}");
        assert_eq!(unknown([name].into_iter()).count(), 0);
    }
}

#[test]
fn a_secret_is_given_once() {
    let errors = from_variables(&[("CANVAS_DATABASE_URL_FILE", "/anything")]).expect_err("both are set");
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["CANVAS_DATABASE_URL: expected either this variable or CANVAS_DATABASE_URL_FILE, not both"]);
}

#[test]
fn only_secrets_are_read_from_files() {
    let config = from_variables(&[("CANVAS_LOG_FILE", "/missing")]).expect("is ignored");
    assert_eq!(config.log, "info");
    assert_eq!(unknown(["CANVAS_LOG_FILE".to_owned()].into_iter()).collect::<Vec<_>>(), ["CANVAS_LOG_FILE"]);
}

#[test]
fn the_installation_key_has_the_master_keys_unless_it_has_a_ring_of_its_own() {
    assert_eq!(loaded(&[]).installation_keys().primary(), "k1");
    let own = format!("i1:{KEY}");
    assert_eq!(loaded(&[("CANVAS_INSTALLATION_KEYS", &own)]).installation_keys().primary(), "i1");
    for (wrong, named) in [(format!("i1:{KEY},k1:{KEY}"), "k1"), ("i1".to_owned(), "entry 1")] {
        let message = load(&[("CANVAS_INSTALLATION_KEYS", &wrong)]).expect_err("refused").to_string();
        assert!(message.starts_with("CANVAS_INSTALLATION_KEYS: ") && message.contains(named), "{message}");
    }
}
