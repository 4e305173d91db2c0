//! Exchanges and queues. Publishers and consumers declare them on every connect. Declaring what
//! exists changes nothing, and the first process that connects restores a broker that lost its
//! disk.
//!
//! - `<prefix><queue>` for each [`Queue`]: quorum queues.
//! - `<prefix>dead`: a fanout exchange and its quorum queue, for messages that no worker could
//!   parse and for wake-up messages that were redelivered [`DELIVERY_LIMIT`] times. No work is lost
//!   by that, because a task is found in Postgres without its message.
//!
//! Dead-lettering is at-least-once: the message stays in its queue until the dead-letter queue has
//! confirmed it. RabbitMQ silently falls back to at-most-once unless the queue's overflow is
//! `reject-publish` (quorum queues, 3.10 and later).

use domain::message::Queue;
use lapin::options::{
    ExchangeDeclareOptions, ExchangeDeleteOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, ExchangeKind};

use crate::connection::Link;
use crate::{Config, Error};

/// How often a message is returned to its queue, by consumers that crashed or lost their connection, before it is
/// dead-lettered. RabbitMQ before 4.0 has no default limit.
const DELIVERY_LIMIT: i64 = 5;

/// Declares all exchanges and queues.
pub(crate) async fn declare(channel: &Channel, config: &Config) -> Result<(), Error> {
    let dead = config.dead_letters();
    let failed = |source| Error::Topology { name: dead.clone(), source };
    let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    channel
        .exchange_declare(dead.as_str().into(), ExchangeKind::Fanout, durable, FieldTable::default())
        .await
        .map_err(failed)?;
    declare_queue(channel, &dead, quorum()).await?;
    channel
        .queue_bind(
            dead.as_str().into(),
            dead.as_str().into(),
            "".into(),
            QueueBindOptions::default(),
            FieldTable::default(),
        )
        .await
        .map_err(failed)?;

    for queue in Queue::ALL {
        let mut arguments = quorum();
        arguments.insert("x-delivery-limit".into(), AMQPValue::LongLongInt(DELIVERY_LIMIT));
        arguments.insert("x-dead-letter-exchange".into(), text(&dead));
        arguments.insert("x-dead-letter-strategy".into(), text("at-least-once"));
        arguments.insert("x-overflow".into(), text("reject-publish"));
        declare_queue(channel, &config.queue(*queue), arguments).await?;
    }
    Ok(())
}

/// Deletes everything of this configuration's prefix, messages included. For tests, each of which has its own prefix.
pub async fn remove(config: &Config) -> Result<(), Error> {
    let link = Link::open(config, "remover").await?;
    let queues = Queue::ALL.iter().map(|queue| config.queue(*queue)).chain([config.dead_letters()]);
    for name in queues {
        let deleted = link.channel.queue_delete(name.as_str().into(), QueueDeleteOptions::default()).await;
        deleted.map_err(|source| Error::Topology { name, source })?;
    }
    let name = config.dead_letters();
    let deleted = link.channel.exchange_delete(name.as_str().into(), ExchangeDeleteOptions::default()).await;
    deleted.map_err(|source| Error::Topology { name, source })?;
    link.close().await;
    Ok(())
}

async fn declare_queue(channel: &Channel, name: &str, arguments: FieldTable) -> Result<(), Error> {
    channel
        .queue_declare(name.into(), QueueDeclareOptions::durable(), arguments)
        .await
        .map_err(|source| Error::Topology { name: name.to_owned(), source })?;
    Ok(())
}

fn quorum() -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    arguments
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}
