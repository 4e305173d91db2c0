//! What an attack leaves behind: descriptors, tasks, rows, files and keys.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use e2e::{Part, Stack, checker};
use sqlx::AssertSqlSafe;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use url::Url;

use crate::scene::Scene;

/// The time in which what an attack uses is given back: longer than any lease and any time limit of a connection.
const SETTLING: Duration = Duration::from_secs(90);
/// Descriptors that a process may have more than before: connections to its services.
const DESCRIPTORS_MORE: usize = 24;
/// The largest resident memory of a gateway, which is the limit of its container.
const RESIDENT_MAX: u64 = 1536 << 20;
/// The largest answer of `/metrics`.
const METRICS_MAX: usize = 1_000_000;
/// Tables that keep rows of an account that was purged: its record, its ledger and its audit.
const KEPT: [&str; 3] = ["accounts", "audit", "ledger"];

/// What there is before an attack.
pub struct Before {
    descriptors: BTreeMap<Part, usize>,
    keys: i64,
    pub series: usize,
}

/// The text of `/metrics` of a gateway.
pub async fn metrics(stack: &Stack) -> String {
    stack.probes(Part::GATEWAY).fetch("/metrics").await.2
}

/// The number of series in the text of `/metrics`. The buckets of a histogram count as one with its sum.
pub fn series(metrics: &str) -> usize {
    let is_series = |line: &&str| {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        !name.is_empty() && !name.starts_with('#') && !name.ends_with("_bucket")
    };
    metrics.lines().filter(is_series).count()
}

/// Looks before an attack.
pub async fn before(scene: &Scene) -> Before {
    Before {
        descriptors: scene.parts().into_iter().map(|part| (part, descriptors(&scene.stack, part))).collect(),
        keys: keys_for_ever(&scene.stack).await,
        series: series(&metrics(&scene.stack).await),
    }
}

/// Purges the accounts of the attacker, and reports what is left of the attack as faults.
pub async fn look(scene: &Scene, before: &Before) {
    let stack = &scene.stack;
    processes(scene).await;
    for account in scene.attackers() {
        let purge = ["admin", "account", "purge", "--account", &account.uid, "--cancel-jobs", "--yes"];
        let purged = stack.admin(&purge).await;
        if purged.code != 0 {
            scene.fail(format!("the attacker's account is not purged: {}", purged.stderr.trim()));
        }
    }
    let began = Instant::now();
    let left = loop {
        let left = left(scene, before).await;
        if left.is_empty() || began.elapsed() > SETTLING {
            break left;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    };
    left.into_iter().for_each(|left| scene.fail(format!("{left} after {} s", SETTLING.as_secs())));
    for wrong in checker::invariants(stack).await {
        scene.fail(wrong);
    }
}

/// Checks the processes: that they run, are ready, have little memory, few series, and no defect in the log.
async fn processes(scene: &Scene) {
    let stack = &scene.stack;
    for part in scene.parts() {
        if let Some(status) = stack.has_ended(part) {
            scene.fail(format!("{part} has ended with {status}"));
            continue;
        }
        let (status, _, report) = stack.probes(part).fetch("/readyz").await;
        if status != 200 {
            scene.fail(format!("{part} is not ready: {report}"));
        }
        let log = stack.log(part);
        let is_defect = |line: &&str| line.contains("panicked") || line.contains(r#""level":"ERROR""#);
        if let Some(line) = log.lines().find(is_defect) {
            scene.fail(format!("{part} logs a defect: {}", &line[..line.len().min(400)]));
        }
    }
    if scene.parts().contains(&Part::GATEWAY) {
        let resident = stack.peak_resident(Part::GATEWAY);
        if resident > RESIDENT_MAX {
            scene.fail(format!("the gateway took {} MiB, more than {}", resident >> 20, RESIDENT_MAX >> 20));
        }
        let size = metrics(stack).await.len();
        if size > METRICS_MAX {
            scene.fail(format!("/metrics has {size} bytes, more than {METRICS_MAX}"));
        }
    }
}

/// What is left at the moment.
async fn left(scene: &Scene, before: &Before) -> Vec<String> {
    let stack = &scene.stack;
    let mut left = Vec::new();
    for part in scene.parts() {
        let (now, then) = (descriptors(stack, part), before.descriptors.get(&part).copied().unwrap_or_default());
        if now > then + DESCRIPTORS_MORE {
            left.push(format!("{part} has {now} descriptors open, {then} before the attack"));
        }
    }
    let counts = [
        ("tasks", "SELECT count(*) FROM task_queue"),
        (
            "transactions that nobody continues",
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'
             AND state_change < now() - interval '1 second'",
        ),
    ];
    for (what, sql) in counts {
        let count = stack.count(sql).await;
        if count > 0 {
            left.push(format!("{count} {what} are left"));
        }
    }
    let uids: Vec<String> = scene.attackers().into_iter().map(|account| account.uid).collect();
    left.extend(rows(stack, &uids).await);
    let (files, known) = (files(&stack.blobs()), stack.count("SELECT count(*) FROM blobs").await);
    if files > usize::try_from(known).unwrap_or_default() {
        left.push(format!("{files} files are left for {known} blobs"));
    }
    let keys = keys_for_ever(stack).await;
    if keys > before.keys {
        left.push(format!("{} keys of Redis without an end are left", keys - before.keys));
    }
    left
}

/// Rows of the attacker's accounts, which were purged.
async fn rows(stack: &Stack, uids: &[String]) -> Vec<String> {
    let columns: Vec<(String, String)> = sqlx::query_as(
        "SELECT table_name::text, column_name::text FROM information_schema.columns
         WHERE table_schema = 'public' AND column_name IN ('account_uid', 'owner_uid') AND NOT table_name = ANY($1)",
    )
    .bind(&KEPT[..])
    .fetch_all(stack.pool())
    .await
    .expect("reads the catalog");
    let mut left = Vec::new();
    for (table, column) in columns {
        let sql = format!("SELECT count(*) FROM {table} WHERE {column} = ANY($1)");
        let count: i64 =
            sqlx::query_scalar(AssertSqlSafe(sql)).bind(uids).fetch_one(stack.pool()).await.expect("counts");
        if count > 0 {
            left.push(format!("{count} rows of {table} are left of the attacker"));
        }
    }
    left
}

/// The number of open descriptors of a process (proc(5)).
fn descriptors(stack: &Stack, part: Part) -> usize {
    let directory = format!("/proc/{}/fd", stack.process_id(part));
    std::fs::read_dir(directory).map_or(0, Iterator::count)
}

/// The number of files below a directory.
fn files(directory: &Path) -> usize {
    // A file can be removed meanwhile.
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&entry.path()),
            Ok(_) => 1,
            Err(_) => 0,
        })
        .sum()
}

/// The number of keys in Redis that have no expiry, which nobody would ever remove.
async fn keys_for_ever(stack: &Stack) -> i64 {
    let url = stack.env().iter().find(|(name, _)| name == "CANVAS_REDIS_URL").map(|(_, url)| url.as_str());
    let url = Url::parse(url.expect("the harness sets it")).expect("a URL");
    let asked = async {
        let authority = (url.host_str()?, url.port().unwrap_or(6379));
        let mut stream = tokio::net::TcpStream::connect(authority).await.ok()?;
        let password = url.password().map(|password| format!("AUTH {password}\r\n")).unwrap_or_default();
        stream.write_all(format!("{password}INFO keyspace\r\nQUIT\r\n").as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        Some(answer)
    };
    // Redis is stopped in one attack.
    asked.await.map_or(0, |answer| endless(&answer))
}

/// Keys without an expiry, in an answer to `INFO keyspace`: lines such as `db0:keys=3,expires=2,avg_ttl=9`.
fn endless(info: &str) -> i64 {
    let number = |line: &str, name: &str| -> i64 {
        let value = line.split([':', ',']).find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
        value.and_then(|value| value.parse().ok()).unwrap_or_default()
    };
    info.lines().filter(|line| line.starts_with("db")).map(|line| number(line, "keys") - number(line, "expires")).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_an_end_are_counted_over_all_databases() {
        let info = "+OK\r\n$99\r\n# Keyspace\r\ndb0:keys=7,expires=5,avg_ttl=9\r\ndb3:keys=1,expires=0,avg_ttl=0\r\n";
        assert_eq!((endless(info), endless("-NOAUTH\r\n")), (3, 0));
    }

    #[test]
    fn series_are_lines_that_are_no_comments_and_no_buckets() {
        assert_eq!(series("# HELP a b\n# TYPE a counter\na{b=\"c\"} 1\na 2\n\nd_bucket{le=\"1\"} 0\nd_sum 0\n"), 3);
    }
}
