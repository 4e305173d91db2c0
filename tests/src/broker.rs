//! A look at a stack's queues, past the service.

use broker::Config;
use domain::message::Queue;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions, QueuePurgeOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};

use crate::Stack;

impl Stack {
    /// Messages that wait, by queue, the dead letters last; a queue that does not exist has none. `None` while the broker
    /// cannot be asked.
    pub async fn queue_depths(&self) -> Option<Vec<(String, u32)>> {
        let connection = connect(self).await?;
        let names = names(self);
        let mut depths = Vec::with_capacity(names.len());
        for name in names {
            let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
            // A refusal closes the channel.
            let declared =
                channel(&connection).await?.queue_declare(name.as_str().into(), options, FieldTable::default()).await;
            depths.push((name, declared.map_or(0, |queue| queue.message_count())));
        }
        Some(depths)
    }

    /// Forgets what an earlier stack left in the queues; virtual hosts are used again.
    pub async fn purge_queues(&self) {
        let connection = connect(self).await.expect("the broker is up");
        for name in names(self) {
            let channel = channel(&connection).await.expect("a channel");
            // A queue that is not there yet has nothing in it.
            let _ = channel.queue_purge(name.as_str().into(), QueuePurgeOptions::default()).await;
        }
    }

    /// Publishes bytes as they are to a queue.
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

    /// The broker's name of the dead letters' queue.
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
