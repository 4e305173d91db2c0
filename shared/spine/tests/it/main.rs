//! The spine against a real Postgres and a real RabbitMQ, with networks that can fail.

mod relay;
mod runner;
mod trouble;
mod world;
