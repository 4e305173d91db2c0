//! The connection that carries the subscriptions, restored for as long as the hub lives.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use redis::aio::{PubSubSink, PubSubStream};
use redis::{Client, RedisResult};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::{Command, Hub};
use crate::link::CONNECT_LIMIT;

/// Pause between attempts to connect.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
/// Interval of liveness checks. Nothing else detects a peer that vanished silently.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Time limit for the confirmation of a batch of subscriptions. Exceeding it counts as an outage.
const CONFIRM_LIMIT: Duration = Duration::from_secs(1);
/// Maximum number of channels in one command.
const BATCH: usize = 500;

/// Maintains a connection for `hub`.
pub(super) async fn supervise(client: Client, hub: Arc<Hub>) {
    loop {
        if let Ok(Ok(connection)) = timeout(CONNECT_LIMIT, client.get_async_pubsub()).await {
            let (sink, stream) = connection.split();
            let end = attend(&hub, sink, stream).await;
            if let Err(error) = end {
                tracing::warn!(error = &error as &dyn std::error::Error, "redis subscriptions are lost");
            }
            hub.lost();
        }
        sleep(RECONNECT_PAUSE).await;
    }
}

/// Serves the connection until it ends.
async fn attend(hub: &Hub, mut sink: PubSubSink, mut stream: PubSubStream) -> RedisResult<()> {
    obey(hub, &mut sink, hub.connected()).await?;
    let mut beat = interval(HEARTBEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            message = stream.next() => match message {
                Some(message) => hub.receive(message.get_channel_name(), message.get_payload_bytes()),
                None => return Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset).into()),
            },
            () = hub.commanded.notified() => obey(hub, &mut sink, hub.take_commands()).await?,
            _ = beat.tick() => confirmed(sink.ping()).await?,
        }
    }
}

/// Executes `commands` in order, and merges adjacent ones of the same kind.
async fn obey(hub: &Hub, sink: &mut PubSubSink, commands: Vec<Command>) -> RedisResult<()> {
    let alike = |a: &Command, b: &Command| std::mem::discriminant(a) == std::mem::discriminant(b);
    for batch in commands.chunk_by(alike).flat_map(|run| run.chunks(BATCH)) {
        let names: Vec<&str> = batch.iter().map(Command::channel).collect();
        match batch {
            [Command::Unsubscribe(_), ..] => confirmed(sink.unsubscribe(&names)).await?,
            _ => {
                confirmed(sink.subscribe(&names)).await?;
                names.iter().for_each(|name| hub.signal(name));
            }
        }
    }
    Ok(())
}

async fn confirmed(command: impl Future<Output = RedisResult<()>>) -> RedisResult<()> {
    match timeout(CONFIRM_LIMIT, command).await {
        Ok(result) => result,
        Err(_) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
    }
}

impl Command {
    fn channel(&self) -> &str {
        match self {
            Self::Subscribe(channel) | Self::Unsubscribe(channel) => channel,
        }
    }
}
