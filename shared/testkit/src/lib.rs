//! Test infrastructure: a database for each test, a webhook receiver, an S3 server, an OpenID provider, a proxy that
//! simulates network failures, and polling waits.
//!
//! Only tests use this crate. It panics where a library would return an error, with a message that
//! says what to do. The services are named by environment variables that `tests/run` sets:
//! `TEST_DATABASE_URL`, `TEST_REDIS_URL`, `TEST_AMQP_URL`.

mod azurite;
mod database;
mod environment;
pub mod openid;
pub mod photo;
pub mod providers;
mod proxy;
mod receiver;
mod s3;
pub mod signer;
mod wait;

pub use azurite::Azurite;
pub use database::{TestDatabase, role_url};
pub use environment::{amqp_prefix, amqp_url, free_ports, redis_prefix, redis_url};
pub use proxy::Proxy;
pub use receiver::{Answer, Identity, Received, Receiver, Reserved};
pub use s3::S3;
pub use wait::wait_for;
