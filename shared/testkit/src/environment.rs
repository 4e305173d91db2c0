//! Where the test services are, and names in them that no other test has.

use uuid::Uuid;

/// The Redis of the test run.
pub fn redis_url() -> String {
    variable("TEST_REDIS_URL")
}

/// The RabbitMQ of the test run.
pub fn amqp_url() -> String {
    variable("TEST_AMQP_URL")
}

/// A prefix for the exchanges and queues of one test, with its separator: `test-<12 hex>.`.
pub fn amqp_prefix() -> String {
    format!("test-{}.", unique())
}

/// A prefix for the keys and channels of one test, with its separator: `test-<12 hex>:`.
pub fn redis_prefix() -> String {
    format!("test-{}:", unique())
}

/// 12 hex digits that no other test has.
pub(crate) fn unique() -> String {
    let mut text = Uuid::new_v4().simple().to_string();
    text.truncate(12);
    text
}

/// A variable that `tests/run` sets.
pub(crate) fn variable(name: &str) -> String {
    match std::env::var(name) {
        Ok(value) => value,
        Err(_) => panic!(
            "{name} is not set: run through tests/run, or source .local/test/env after tests/run --services-only"
        ),
    }
}
