//! Addresses of the test services, and names that are unique to one test.

use uuid::Uuid;

/// The URL of the test run's Redis.
pub fn redis_url() -> String {
    variable("TEST_REDIS_URL")
}

/// The URL of the test run's RabbitMQ.
pub fn amqp_url() -> String {
    variable("TEST_AMQP_URL")
}

/// A unique prefix for the exchanges and queues of one test, with its separator: `test-<12 hex>.`.
pub fn amqp_prefix() -> String {
    format!("test-{}.", unique())
}

/// A unique prefix for the keys and channels of one test, with its separator: `test-<12 hex>:`.
pub fn redis_prefix() -> String {
    format!("test-{}:", unique())
}

/// Twelve random hexadecimal digits.
pub(crate) fn unique() -> String {
    let mut text = Uuid::new_v4().simple().to_string();
    text.truncate(12);
    text
}

/// The value of an environment variable that `tests/run` sets. Panics if it is missing.
pub(crate) fn variable(name: &str) -> String {
    match std::env::var(name) {
        Ok(value) => value,
        Err(_) => panic!(
            "{name} is not set: run through tests/run, or source .local/test/env after tests/run --services-only"
        ),
    }
}
