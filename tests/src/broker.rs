//! Direct access to a stack's queues.

use broker::Config;
use domain::message::Queue;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions, QueuePurgeOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};

use crate::Stack;

impl Stack {
    /// The number of messages in each queue, with the dead letters last. A missing queue counts as empty. `None` while the broker
    /// does not respond.
    pub async fn queue_depths(&self) -> Option<Vec<(String, u32)>> {
        let connection = connect(self).await?;
        let names = names(self);
        let mut depths = Vec::with_capacity(names.len());
        for name in names {
            let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
            // RabbitMQ closes the channel when it rejects a declaration.
            let declared =
                channel(&connection).await?.queue_declare(name.as_str().into(), options, FieldTable::default()).await;
            depths.push((name, declared.map_or(0, |queue| queue.message_count())));
        }
        Some(depths)
    }

    /// Removes messages that an earlier stack left, because virtual hosts are reused.
    pub async fn purge_queues(&self) {
        let connection = connect(self).await.expect("the broker is up");
        for name in names(self) {
            let channel = channel(&connection).await.expect("a channel");
            // A missing queue has no messages.
            let _ = channel.queue_purge(name.as_str().into(), QueuePurgeOptions::default()).await;
        }
    }

    /// Publishes raw bytes to a queue.
    pub async fn publish_raw(&self, queue: Queue, body: &[u8]) {
        let connection = connect(self).await.expect("the broker is up");
        let channel = channel(&connection).await.expect("a channel");
        channel.confirm_select(ConfirmSelectOptions::default()).await.expect("confirms");
        let name = config(self).queue(queue);
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let properties = BasicProperties::default().with_delivery_mode(2);
        let confirm = channel.basic_publish("".into(), name.into(), options, body, properties).await;
        assert!(confirm.expect("publishes").await.expect("is confirmed").is_ack());
    }

    /// The name of the dead-letter queue in RabbitMQ.
    pub fn dead_letters(&self) -> String {
        config(self).dead_letters()
    }
}

fn config(stack: &Stack) -> Config {
    Config::new(&stack.amqp_url(), Config::PREFIX, "e2e").expect("a broker URL")
}

fn names(stack: &Stack) -> Vec<String> {
    let config = config(stack);
    Queue::ALL.iter().map(|queue| config.queue(*queue)).chain([config.dead_letters()]).collect()
}

async fn connect(stack: &Stack) -> Option<Connection> {
    Connection::connect(&stack.amqp_url(), ConnectionProperties::default()).await.ok()
}

async fn channel(connection: &Connection) -> Option<Channel> {
    connection.create_channel().await.ok()
}
