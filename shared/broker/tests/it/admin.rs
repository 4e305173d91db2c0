//! Broker administration for tests.

use broker::Config;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use testkit::amqp_url;

/// Reads and manipulates the queues of one test, and deletes them on drop.
pub struct Admin {
    connection: Connection,
    prefix: String,
    config: Config,
}

impl Admin {
    /// `prefix` is the prefix of the test's queues.
    pub async fn connect(prefix: &str) -> Self {
        let config = Config::new(&amqp_url(), prefix, "admin").expect("a URL");
        let connection =
            Connection::connect(&amqp_url(), ConnectionProperties::default()).await.expect("RabbitMQ is up");
        Self { connection, prefix: prefix.to_owned(), config }
    }

    /// The number of ready messages in a queue; `None` if the queue does not exist.
    pub async fn depth(&self, queue: &str) -> Option<u32> {
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        // A failed declaration closes the channel.
        let declared =
            self.channel().await.queue_declare(self.name(queue).into(), options, FieldTable::default()).await;
        declared.ok().map(|queue| queue.message_count())
    }

    pub async fn delete(&self, queue: &str) {
        let channel = self.channel().await;
        channel.queue_delete(self.name(queue).into(), QueueDeleteOptions::default()).await.expect("deletes");
    }

    /// Publishes raw bytes.
    pub async fn publish(&self, queue: &str, body: &[u8]) {
        let channel = self.channel().await;
        channel.confirm_select(ConfirmSelectOptions::default()).await.expect("confirms");
        let options = BasicPublishOptions::default();
        let confirm = channel
            .basic_publish("".into(), self.name(queue).into(), options, body, BasicProperties::default())
            .await
            .expect("publishes");
        assert!(confirm.await.expect("is confirmed").is_ack());
    }

    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    async fn channel(&self) -> Channel {
        self.connection.create_channel().await.expect("a channel")
    }

    fn name(&self, queue: &str) -> String {
        format!("{}{queue}", self.prefix)
    }
}

/// Deletes the queues on a separate thread, because the test's runtime may be shutting down.
impl Drop for Admin {
    fn drop(&mut self) {
        let config = self.config.clone();
        let cleaned = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
            runtime.block_on(broker::remove(&config)).map_err(std::io::Error::other)
        });
        // Best effort: a test that stopped the broker does not fail here.
        let _ = cleaned.join();
    }
}
