//! The address of the broker and the names of our exchanges and queues.

use std::fmt;

use domain::message::Queue;
use lapin::uri::AMQPUri;

use crate::Error;

/// Seconds between heartbeats. A peer that is silent for two intervals counts as dead.
const HEARTBEAT_SECONDS: u16 = 10;

/// Configuration of the connections.
#[derive(Clone)]
pub struct Config {
    pub(crate) uri: AMQPUri,
    pub(crate) process: String,
    prefix: String,
}

impl Config {
    /// The prefix of exchanges and queues in production.
    pub const PREFIX: &'static str = "canvas.";

    /// The broker at `url` (`amqp://…/vhost` or `amqps://…`), for the process of this name. Every
    /// exchange and queue is called `<prefix><name>`, so that tests can share a broker. The path
    /// `/` means the virtual host `/`. According to the URI scheme it would mean a virtual host
    /// with an empty name, which no broker has, but RabbitMQ's Kubernetes operator writes such
    /// URLs.
    pub fn new(url: &str, prefix: &str, process: &str) -> Result<Self, Error> {
        let mut uri: AMQPUri = url.parse().map_err(|reason| Error::Url { reason })?;
        uri.query.heartbeat = Some(HEARTBEAT_SECONDS);
        if uri.vhost.is_empty() {
            uri.vhost.push('/');
        }
        Ok(Self { uri, prefix: prefix.to_owned(), process: process.to_owned() })
    }

    /// Name of a queue at the broker.
    pub fn queue(&self, queue: Queue) -> String {
        format!("{}{queue}", self.prefix)
    }

    /// Name of both the dead-letter exchange and the queue bound to it.
    pub fn dead_letters(&self) -> String {
        format!("{}dead", self.prefix)
    }
}

/// Omits the password.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("host", &self.uri.authority.host)
            .field("port", &self.uri.authority.port)
            .field("vhost", &self.uri.vhost)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_named_by_prefix_and_heartbeats_are_ours() {
        let config = Config::new("amqp://user:secret@localhost/%2f?heartbeat=600", "canvas.", "test").expect("parses");
        assert_eq!(config.queue(Queue::Image), "canvas.image");
        assert_eq!(config.dead_letters(), "canvas.dead");
        assert_eq!(config.uri.query.heartbeat, Some(10));
    }

    #[test]
    fn no_virtual_host_is_the_one_that_every_broker_has() {
        for url in ["amqp://localhost", "amqp://localhost/", "amqp://localhost/%2f"] {
            assert_eq!(Config::new(url, "canvas.", "test").expect("parses").uri.vhost, "/", "{url}");
        }
        assert_eq!(Config::new("amqp://localhost/blue", "canvas.", "test").expect("parses").uri.vhost, "blue");
    }

    #[test]
    fn a_password_is_not_printed() {
        let config = Config::new("amqp://user:hunter2@localhost/%2f", "canvas.", "test").expect("parses");
        assert!(!format!("{config:?}").contains("hunter2"));
        let error = Config::new("http://user:hunter2@localhost", "canvas.", "test").expect_err("not AMQP");
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
}
