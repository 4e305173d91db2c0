//! Starting: from a configuration to a serving process, and `canvas-gateway migrate`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use identity::provider::Provider;
use service::chain;
use service::config::{Config, Secret};
use service::keys::DerivedKeys;
use service::probes::{ComponentHandle, watch_component};
use taskqueue::{BootError, Process};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::admission;
use crate::credentials::Credentials;
use crate::documents::Documents;
use crate::failures::Failures;
use crate::installation;
use crate::live::Live;
use crate::output::print_line;
use crate::preview::Previews;
use crate::router::router;
use crate::server::descriptors;
use crate::server::gate::{Gate, Limits};
use crate::state::{App, Shared};

const NAME: &str = "canvas-gateway";
/// Grace period for requests that are being handled when the process is told to stop (docs/reference/command-line.md#signals).
const GRACE: Duration = Duration::from_secs(60);
/// Message for operators in `/readyz` and in the log while Redis is unavailable.
const CACHE_AWAY: &str = "redis does not answer: start Redis, or correct CANVAS_REDIS_URL";
/// Interval between attempts to open the installation key while the database is unavailable.
const KEY_RETRY: Duration = Duration::from_secs(1);

/// Why the gateway does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Boot(#[from] BootError),
    #[error("CANVAS_BLOB_URL: the object store cannot be decrypted")]
    Blobs(#[source] blob::Error),
    #[error("CANVAS_REDIS_URL: invalid URL")]
    Cache(#[source] cache::Error),
    #[error(transparent)]
    Egress(#[from] egress::SetupError),
    #[error(transparent)]
    Models(#[from] providers::SetupError),
    #[error("CANVAS_LISTEN: cannot listen on this address")]
    Listen(#[source] std::io::Error),
    #[error(transparent)]
    Database(#[from] db::Error),
    #[error(transparent)]
    Installation(#[from] installation::Error),
    #[error("the roles of the processes cannot be made or granted (deploy/README.md#database-roles)")]
    Roles(#[source] db::Error),
}

/// Serves until the process is told to stop.
pub async fn serve(config: Config) -> ExitCode {
    match run(config).await {
        Ok(code) => code,
        Err(error) => refuse(&error),
    }
}

fn refuse(error: &(dyn std::error::Error + 'static)) -> ExitCode {
    eprintln!("{NAME}: {}", chain(error));
    ExitCode::FAILURE
}

async fn run(config: Config) -> Result<ExitCode, Error> {
    let guard = egress::Guard::new(egress::AllowList::parse(&config.egress_allow).map_err(egress::SetupError::Allow)?);
    // The gateway calls the providers that people sign in with.
    let outward = egress::Settings { allow: &config.egress_allow, ca_file: config.egress_ca_file.as_deref() };
    let outward = egress::Client::load(outward)?;
    let providers = identity::settings::load(&config).map_err(BootError::from)?;
    let providers = providers.into_iter().map(|settings| Provider::new(settings, outward.clone())).collect::<Vec<_>>();
    let models = providers::Setup::load(&config)?;
    let upload_metadata = config.upload_metadata.parse().map_err(|error| BootError::Setting(Box::new(error)))?;
    let blobs = blob::Store::open(config.blob_url().map_err(BootError::from)?.as_str()).map_err(Error::Blobs)?;
    cache::Cache::check_url(config.redis_url().map_err(BootError::from)?.expose()).map_err(Error::Cache)?;
    // Bound before the process starts and logs, so that a failure is reported in a single line.
    let listener = TcpListener::bind(config.listen).await.map_err(Error::Listen)?;
    let process = Process::start(NAME, config.clone()).await?;
    let cache = cache::Cache::connect(config.redis_url().map_err(BootError::from)?.expose(), cache::PREFIX)
        .map_err(Error::Cache)?;
    cache.limit_cpu(config.account_cpu_seconds);
    let key_watch = process.readiness().component("installation key", true);
    let aborted = process.lifecycle().aborted();
    let gate = Gate::new(gate_limits(&config), process.readiness().component("connections", true));

    process.lifecycle().spawn_support("object store watch", {
        let (blobs, handle) = (blobs.clone(), process.readiness().component("object store", true));
        let check = move || {
            let blobs = blobs.clone();
            async move { blobs.check().await.map_err(|error| chain(&error)) }
        };
        watch_component(handle, check, aborted.clone())
    });
    process.lifecycle().spawn_support("object store writes watch", {
        // Reads of stored objects still work: the process is degraded, not down.
        let (blobs, handle) = (blobs.clone(), process.readiness().component("object store writes", false));
        let check = move || {
            let blobs = blobs.clone();
            async move { blobs.check_writable().await.map_err(|error| chain(&error)) }
        };
        watch_component(handle, check, aborted.clone())
    });
    process.lifecycle().spawn_support("cache watch", {
        let (cache, handle) = (cache.clone(), process.readiness().component("cache", false));
        let check = move || {
            let up = cache.is_up();
            async move { if up { Ok(()) } else { Err(CACHE_AWAY.to_owned()) } }
        };
        watch_component(handle, check, aborted.clone())
    });

    let (credentials, looking_up) = Credentials::new(process.pool(), crate::state::confirm_tokens(&providers));
    let (live, following) = Live::new(process.pool().clone(), &cache);
    for (name, task) in [("credentials", looking_up.boxed()), ("followed states", following.boxed())] {
        let aborted = aborted.clone();
        process.lifecycle().spawn_support(name, async move {
            tokio::select! {
                () = task => {}
                () = aborted.cancelled() => {}
            }
        });
    }

    let (pool, waker) = (process.pool().clone(), process.waker());
    let (documents, graphs) = (Documents::default(), Arc::<app::graphs::Graphs>::default());
    process.spawn("http", |stopping| async move {
        let Some(keys) = wait_for_keys(&pool, &config, &key_watch, &stopping).await? else { return Ok(()) };
        let app = App::new(Shared {
            upload_metadata,
            pool,
            credentials,
            failures: Failures::new(config.failed_auth_per_minute),
            keys,
            ring: config.master_keys.clone(),
            waits: Default::default(),
            live,
            cache,
            blobs,
            models,
            guard,
            waker,
            reviews: app::job::Reviews::new(Arc::clone(&graphs), documents.large()),
            documents,
            graphs,
            providers,
            previews: Previews::new(&config.public_url, config.preview_ttl),
            requests: admission::requests(),
            uploads: admission::uploads(),
            renders: admission::renders(),
            large_work: admission::large_work(),
            writers: Default::default(),
            recording: Default::default(),
            refused_sign_ins: Default::default(),
            refusals: Default::default(),
            last_seen: Default::default(),
            stopping: stopping.clone(),
            config,
        });
        tracing::info!(address = %app.config.listen, "serving");
        tokio::join!(
            sweep(app.clone(), stopping.clone()),
            crate::audit::keep(app.clone(), stopping.clone()),
            crate::queues::measure(app.clone(), stopping.clone()),
            crate::server::serve(listener, router(app), gate, stopping),
        );
        Ok::<_, installation::Error>(())
    });
    Ok(process.finish_within(GRACE).await)
}

/// The limits of the gate. Each connection is an open file.
fn gate_limits(config: &Config) -> Limits {
    let wanted = config.connections_max as usize;
    let possible = descriptors::raise_limit().unwrap_or_else(|error| {
        tracing::warn!(%error, "the limit of open files cannot be raised");
        wanted
    });
    if possible < wanted {
        tracing::warn!(possible, "the system permits fewer open files than CANVAS_CONNECTIONS_MAX");
    }
    Limits {
        connections: wanted.min(possible),
        per_address: config.connections_per_address as usize,
        trusted: config.trusted_proxies.clone(),
    }
}

/// Waits until the database is up and migrated; the migration creates the installation key. `None` when the process is told to
/// stop. A key ring that does not open the key ends the process, since only the operator can correct it.
async fn wait_for_keys(
    pool: &db::PgPool,
    config: &Config,
    watch: &ComponentHandle,
    stopping: &CancellationToken,
) -> Result<Option<DerivedKeys>, installation::Error> {
    loop {
        let opened = match db::pool::acquire(pool).await {
            Ok(mut connection) => installation::keys(&mut connection, &config.installation_keys()).await,
            Err(error) => Err(error.into()),
        };
        let not_yet = match opened {
            Ok(keys) => {
                watch.set_ok();
                return Ok(Some(keys));
            }
            Err(error) if error.is_temporary() => error,
            Err(error) => return Err(error),
        };
        watch.set_failing(&chain(&not_yet));
        if stopping.run_until_cancelled(tokio::time::sleep(KEY_RETRY)).await.is_none() {
            return Ok(None);
        }
    }
}

/// Deletes expired idempotency keys, tokens that were revoked long ago, grants, device codes, batches that were set aside, and what the
/// audit keeps no longer; the gateway owns them.
async fn sweep(app: App, stopping: CancellationToken) {
    const BATCH: i64 = 1000;
    let days = i32::try_from(app.config.idempotency_window.as_secs() / 86_400).unwrap_or(i32::MAX);
    while stopping.run_until_cancelled(tokio::time::sleep(app.config.sweep)).await.is_some() {
        let swept = async {
            let mut connection = db::pool::acquire(&app.pool).await?;
            while db::idempotency::sweep(&mut connection, days, BATCH).await? == BATCH.unsigned_abs() {}
            while db::tokens::sweep(&mut connection, BATCH).await? == BATCH.unsigned_abs() {}
            while db::oauth::sweep(&mut connection, BATCH).await? == BATCH.unsigned_abs() {}
            db::devices::sweep(&mut connection).await?;
            while db::set_aside::sweep(&mut connection, BATCH).await? == BATCH.unsigned_abs() {}
            crate::audit::sweep(&app, &mut connection).await?;
            Ok::<_, db::Error>(())
        };
        if let Err(error) = db::deadline::with_long_deadline(swept).await {
            tracing::warn!(
                error = chain(&error),
                "idempotency keys, tokens, grants, device codes, batches and the audit were not swept, retrying later"
            );
        }
    }
}

/// Migrates the schema to the version of this build, creates the installation key, publishes the shipped Recipes, grants the roles of
/// the processes what they need, and prints the version and these roles.
pub async fn migrate(config: &Config) -> ExitCode {
    let migrated = async {
        let pool = db::pool::connect_for_maintenance(config.database_url.expose(), "canvas-migrate", None)?;
        db::pool::migrate(&pool, |error| eprintln!("{NAME}: waits: {}", chain(error))).await?;
        let mut connection = db::pool::acquire(&pool).await?;
        installation::ensure(&mut connection, &config.installation_keys()).await?;
        crate::catalogue::publish_shipped(&mut connection).await?;
        // There is no other connection.
        drop(connection);
        let passwords = config.database_passwords.as_ref().map(Secret::expose);
        db::roles::grant(&pool, passwords).await.map_err(Error::Roles)
    };
    match migrated.await {
        Ok(roles) => print_line(serde_json::json!({"schemaVersion": db::pool::schema_version(), "roles": roles})),
        Err(error) => refuse(&error),
    }
}
