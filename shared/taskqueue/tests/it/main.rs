//! Tests of the task queue with a real Postgres, a real RabbitMQ and simulated network failures.

mod failures;
mod harness;
mod runner;
mod wakeups;
