//! The statements that PostgreSQL ran, as recorded by `pg_stat_statements`, to compare two programs.

use std::time::{Duration, Instant};

use e2e::Stack;
use testkit::wait_for;

/// Records statements while it exists. Recording is off while rates are measured.
pub struct Recorder<'a> {
    stack: &'a Stack,
}

impl<'a> Recorder<'a> {
    /// Starts to record.
    pub async fn start(stack: &'a Stack) -> Self {
        stack.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements").await;
        stack.execute("ALTER SYSTEM SET pg_stat_statements.track = 'all'").await;
        reloaded(stack, "all").await;
        Self { stack }
    }

    /// Statements per second during `period`, by every client except this measurement, including the bounds of transactions.
    pub async fn calls(&self, period: Duration) -> f64 {
        self.stack.execute("SELECT pg_stat_statements_reset()").await;
        let began = Instant::now();
        tokio::time::sleep(period).await;
        let calls = "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements
                     WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
                       AND query NOT LIKE '%pg_stat_statements%'";
        self.stack.count(calls).await as f64 / began.elapsed().as_secs_f64()
    }

    /// The calls of statements that ran at least `times` times during `run`, each a round trip of a client. The bounds of
    /// transactions, what PostgreSQL runs by itself (checks of foreign keys, functions, triggers), and the counts by which a
    /// measurement waits are left out.
    pub async fn calls_during(&self, run: impl AsyncFnOnce(), times: i64) -> i64 {
        self.stack.execute("SELECT pg_stat_statements_reset()").await;
        run().await;
        sqlx::query_scalar(
            "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements
             WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
               AND toplevel AND query NOT LIKE '%(NEW.%' -- a deferred trigger counts as top level
               AND calls >= $1 AND query NOT LIKE '%pg_stat_statements%'
               AND query NOT LIKE 'SELECT count(*) FROM %' AND query NOT IN ('BEGIN', 'COMMIT')",
        )
        .bind(times)
        .fetch_one(self.stack.pool())
        .await
        .expect("reads pg_stat_statements")
    }

    /// Stops recording.
    pub async fn stop(self) {
        pause(self.stack).await;
    }

    /// The statements that ran at least half of `times` times during `run`, normalized by [`plain`]. Bounds of transactions are
    /// left out, because only the first run of a prepared one is recorded.
    pub async fn record(&self, mut run: impl AsyncFnMut(), times: i64) -> Vec<String> {
        self.stack.execute("SELECT pg_stat_statements_reset()").await;
        run().await;
        let recorded: Vec<String> = sqlx::query_scalar(
            "SELECT query FROM pg_stat_statements
             WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
               AND calls >= greatest($1 / 2, 1) AND query NOT LIKE '%pg_stat_statements%'
               AND query NOT IN ('BEGIN', 'COMMIT')",
        )
        .bind(times)
        .fetch_all(self.stack.pool())
        .await
        .expect("reads pg_stat_statements");
        let mut statements: Vec<String> = recorded.iter().map(|statement| plain(statement)).collect();
        statements.sort();
        statements.dedup();
        statements
    }
}

/// Turns off the recording, which PostgreSQL starts by itself once the library is loaded.
pub async fn pause(stack: &Stack) {
    stack.execute("ALTER SYSTEM SET pg_stat_statements.track = 'none'").await;
    reloaded(stack, "none").await;
}

/// Waits until the server's processes use the setting.
async fn reloaded(stack: &Stack, track: &str) {
    stack.execute("SELECT pg_reload_conf()").await;
    wait_for("the setting of pg_stat_statements", Duration::from_secs(10), async || {
        let now: String = sqlx::query_scalar("SELECT current_setting('pg_stat_statements.track')")
            .fetch_one(stack.pool())
            .await
            .expect("shows a setting");
        (now == track).then_some(())
    })
    .await;
}

/// A statement with single spaces, and `?` for every parameter and constant. PostgreSQL itself normalizes constants only if it
/// has recorded the parsing of the statement.
fn plain(statement: &str) -> String {
    let mut plain = String::new();
    let mut rest = statement.trim();
    while let Some(first) = rest.chars().next() {
        let in_word = plain.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        let length = match first {
            '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            '\'' => rest[1..].find('\'').map_or(rest.len(), |end| end + 2),
            '$' => 1 + span(&rest[1..], |c| c.is_ascii_digit()),
            digit if digit.is_ascii_digit() && !in_word => span(rest, |c| c.is_ascii_digit()),
            letter if letter.is_alphabetic() && !in_word => span(rest, |c| c.is_alphanumeric() || c == '_'),
            space if space.is_whitespace() => span(rest, char::is_whitespace),
            other => other.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        plain.push_str(match first {
            '\'' | '$' | '0'..='9' if !in_word => "?",
            space if space.is_whitespace() => " ",
            _ if matches!(token, "NULL" | "true" | "false") => "?",
            _ => token,
        });
        rest = after;
    }
    plain
}

/// The length of the prefix of `text` in which `is` holds.
fn span(text: &str, is: impl Fn(char) -> bool) -> usize {
    text.find(|character| !is(character)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spacing_parameters_and_constants_do_not_matter() {
        assert_eq!(plain(" SELECT $1,\n   $12::text  FROM t1"), "SELECT ?, ?::text FROM t1");
        assert_eq!(plain("SELECT 'a b' || x + 12, coalesce(NULL, 1)"), "SELECT ? || x + ?, coalesce(?, ?)");
        assert_eq!(plain("x::float8[], \"id 1?\" WHERE nullable"), "x::float8[], \"id 1?\" WHERE nullable");
    }
}
