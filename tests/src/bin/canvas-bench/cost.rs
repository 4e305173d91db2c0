//! The cost of some work: processor time by process, and what PostgreSQL writes for it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use e2e::Stack;

/// The programs that the work of a service runs in, as `comm` of proc(5) names them, and how the table calls them.
const PROGRAMS: [(&str, &str); 7] = [
    ("postgres", "PostgreSQL"),
    ("beam.smp", "RabbitMQ"),
    ("redis-server", "Redis"),
    ("canvas-gateway", "gateway"),
    ("canvas-image-wo", "image-worker"),
    ("canvas-webhook-", "webhook-dispatcher"),
    ("canvas-bench", "this program"),
];
/// Clock ticks per second in /proc (proc(5)): `USER_HZ` is 100 on every architecture that Linux and Rust both support.
const TICKS_PER_SECOND: f64 = 100.0;

/// The time in which an idle connection of PostgreSQL reports what it did (`PGSTAT_IDLE_INTERVAL`: 10 s).
const REPORTED: Duration = Duration::from_secs(11);

/// Counters at one moment, of the whole machine and the whole database. The cost of some work is the difference of two.
#[derive(Debug, Clone)]
pub struct Counters {
    /// Seconds of processor time by program.
    processor: BTreeMap<&'static str, f64>,
    /// Bytes of write-ahead log.
    wal: f64,
    commits: f64,
    updates: f64,
    /// Updates that added no index entry (heap-only tuples).
    hot: f64,
}

/// The cost of one of several equal pieces of work.
#[derive(Debug)]
pub struct Cost {
    /// Milliseconds of processor time by program, the largest first.
    processor: Vec<(&'static str, f64)>,
    wal_kib: f64,
    commits: f64,
    updates: f64,
    hot: f64,
}

impl Counters {
    /// Reads them.
    pub async fn read(stack: &Stack) -> Self {
        let (wal, commits, updates, hot) = sqlx::query_as(
            "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8, d.xact_commit::float8, t.updates::float8, t.hot::float8
             FROM pg_stat_database d, (SELECT sum(n_tup_upd) AS updates, sum(n_tup_hot_upd) AS hot FROM pg_stat_user_tables) t
             WHERE d.datname = current_database()",
        )
        .fetch_one(stack.pool())
        .await
        .expect("reads the counters");
        Self { processor: processor_seconds(), wal, commits, updates, hot }
    }

    /// Reads them once idle connections have reported what they did before.
    pub async fn settled(stack: &Stack) -> Self {
        tokio::time::sleep(REPORTED).await;
        Self::read(stack).await
    }

    /// The cost so far of each of `pieces` pieces of work, once idle connections have reported theirs.
    pub async fn cost(&self, stack: &Stack, pieces: f64) -> Cost {
        let processor = processor_seconds();
        Self { processor, ..Self::settled(stack).await }.since(self, pieces)
    }

    /// The cost of each of `pieces` pieces of work between `earlier` and these counters.
    fn since(&self, earlier: &Self, pieces: f64) -> Cost {
        let mut processor: Vec<(&str, f64)> = (self.processor.iter())
            .map(|(name, seconds)| {
                let before = earlier.processor.get(name).copied().unwrap_or(0.0);
                (*name, (seconds - before).max(0.0) * 1000.0 / pieces)
            })
            .filter(|(_, milliseconds)| *milliseconds >= 0.01)
            .collect();
        processor.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        Cost {
            processor,
            wal_kib: (self.wal - earlier.wal) / 1024.0 / pieces,
            commits: (self.commits - earlier.commits) / pieces,
            updates: (self.updates - earlier.updates) / pieces,
            hot: (self.hot - earlier.hot) / pieces,
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { processor, wal_kib, commits, updates, hot } = self;
        let total: f64 = processor.iter().map(|(_, milliseconds)| milliseconds).sum();
        write!(f, "Each cost {total:.2} ms of a processor")?;
        for (index, (name, milliseconds)) in processor.iter().enumerate() {
            write!(f, "{} {name} {milliseconds:.2}", if index == 0 { ":" } else { "," })?;
        }
        write!(
            f,
            "; {wal_kib:.1} KiB of WAL, {commits:.1} transactions, {updates:.1} updated rows, {hot:.1} of them HOT."
        )
    }
}

/// Seconds of processor time by program: user and system, of every process (proc(5), /proc/\[pid]/stat).
fn processor_seconds() -> BTreeMap<&'static str, f64> {
    let mut seconds = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").expect("lists /proc").flatten() {
        // A process may end in between.
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((program, ticks)) = parse(&stat) else { continue };
        if let Some((_, name)) = PROGRAMS.iter().find(|(comm, _)| *comm == program) {
            *seconds.entry(*name).or_default() += ticks / TICKS_PER_SECOND;
        }
    }
    seconds
}

/// The program and the ticks of a line of /proc/\[pid]/stat. The program is in parentheses and may contain any character.
fn parse(stat: &str) -> Option<(&str, f64)> {
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, program) = head.split_once('(')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((program, user + system))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_stat_is_read_whatever_the_program_is_called() {
        let line = "12 (a) b (c) S 1 12 12 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 9 0 100 1 1";
        assert_eq!(parse(line), Some(("a) b (c", 300.0)));
        assert_eq!(parse("12 (a) S 1"), None);
    }

    #[test]
    fn a_cost_is_the_difference_by_piece() {
        let counters = |scale: f64| Counters {
            processor: BTreeMap::from([("Redis", 0.5), ("PostgreSQL", scale)]),
            wal: 2048.0 * scale,
            commits: scale,
            updates: 3.0 * scale,
            hot: scale,
        };
        assert_eq!(
            counters(3.0).since(&counters(1.0), 2.0).to_string(),
            "Each cost 1000.00 ms of a processor: PostgreSQL 1000.00; 2.0 KiB of WAL, 1.0 transactions, 3.0 updated rows, \
             1.0 of them HOT."
        );
    }
}
