//! RabbitMQ virtual hosts for stacks, from a small pool that is reused.
//!
//! Queue names are fixed, so every stack needs its own virtual host. Creating one takes about a second, so the first process
//! creates all of them. A stack reserves one with an advisory lock of the test database server, which is released even if the
//! process dies. Messages of an earlier stack are wake-up messages for unknown tasks; each costs one empty claim.

use std::path::{Path, PathBuf};
use std::process::Command;

use sqlx::{Connection, PgConnection};
use url::Url;

use crate::PATIENCE;

/// The maximum number of stacks at a time, over all test processes of a machine.
const SLOTS: i32 = 12;
/// The first key of the advisory locks ("host" in ASCII). The second is the slot.
const LOCK: i32 = 0x68_6f_73_74;

/// A virtual host that is reserved while this exists.
pub(crate) struct VirtualHost {
    slot: i32,
    /// The session that holds the lock.
    _lock: PgConnection,
}

impl VirtualHost {
    /// Waits for a free virtual host and reserves it.
    pub(crate) async fn take() -> Self {
        ensure().await;
        let mut lock = connect().await;
        let slot = testkit::wait_for("a free virtual host", PATIENCE * 10, async || {
            for slot in 0..SLOTS {
                if try_lock(&mut lock, slot).await {
                    return Some(slot);
                }
            }
            None
        })
        .await;
        Self { slot, _lock: lock }
    }

    /// The URL of the broker with this virtual host.
    pub(crate) fn url(&self) -> String {
        let mut url: Url = testkit::amqp_url().parse().expect("TEST_AMQP_URL is a URL");
        url.set_path(&format!("e2e-{}", self.slot));
        url.into()
    }
}

async fn connect() -> PgConnection {
    let url = std::env::var("TEST_DATABASE_URL").expect("TEST_DATABASE_URL is set: run through tests/run");
    PgConnection::connect(&url).await.expect("connects to the test database server")
}

async fn try_lock(connection: &mut PgConnection, slot: i32) -> bool {
    sqlx::query_scalar("SELECT pg_try_advisory_lock($1, $2)")
        .bind(LOCK)
        .bind(slot)
        .fetch_one(connection)
        .await
        .expect("takes an advisory lock")
}

/// Creates all virtual hosts once for a data directory of the broker. A marker file in that directory records it.
async fn ensure() {
    let services =
        PathBuf::from(std::env::var("TEST_SERVICES_DIR").expect("TEST_SERVICES_DIR is set: run through tests/run"));
    let mark = services.join("data/rabbitmq").join(format!("e2e-{SLOTS}"));
    if mark.exists() {
        return;
    }
    let mut lock = connect().await;
    sqlx::query("SELECT pg_advisory_lock($1, $2)").bind(LOCK).bind(-1).execute(&mut lock).await.expect("takes a lock");
    if !mark.exists() {
        make(&services);
        std::fs::write(&mark, "").expect("writes the marker file");
    }
}

fn make(services: &Path) {
    let broker: Url = testkit::amqp_url().parse().expect("TEST_AMQP_URL is a URL");
    let data = services.join("data/rabbitmq");
    let ports = std::fs::read_to_string(services.join("ports")).expect("reads the ports of the test services");
    let epmd = ports.lines().find_map(|line| line.strip_prefix("epmd=")).expect("the port of epmd is known");
    let made = Command::new("/usr/lib/rabbitmq/bin/rabbitmqctl")
        .env("HOME", &data)
        .env("RABBITMQ_CONF_ENV_FILE", data.join("rabbitmq-env.conf"))
        .env("ERL_EPMD_PORT", epmd)
        .args(["-n", &node(&data), "eval"])
        .arg(format!(
            r#"lists:foreach(fun(Slot) ->
                   Name = iolist_to_binary(["e2e-", integer_to_list(Slot)]),
                   rabbit_vhost:add(Name, <<"e2e">>),
                   rabbit_auth_backend_internal:set_permissions(<<"{}">>, Name, <<".*">>, <<".*">>, <<".*">>, <<"e2e">>)
               end, lists:seq(0, {}))."#,
            broker.username(),
            SLOTS - 1
        ))
        .output()
        .expect("runs rabbitmqctl");
    assert!(made.status.success(), "rabbitmqctl: {}", String::from_utf8_lossy(&made.stderr));
}

/// The name of the node, which contains the directory of its data.
fn node(data: &Path) -> String {
    let entries = std::fs::read_dir(data.join("mnesia")).expect("reads the broker's data directory");
    let names = entries.map(|entry| entry.expect("reads an entry").file_name().to_string_lossy().into_owned());
    names.into_iter().find(|name| name.ends_with("@localhost")).expect("the broker has a node")
}
