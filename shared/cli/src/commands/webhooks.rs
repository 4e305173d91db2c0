//! Deliveries of webhooks.

use client::WorkRecord;
use domain::webhook::Delivery;

use super::canvases::listed;
use super::listen::Receiver;
use crate::args::{Replay, Webhook};
use crate::context::Context;
use crate::failure::{Outcome, both, usage};
use crate::names::with_stdin;
use crate::output::{joined, optional, text, time};

pub async fn run(context: &Context, webhook: Webhook) -> Outcome {
    match webhook {
        Webhook::List { status, listing } => {
            let list = || context.client.list_webhook_deliveries().query_if("status", status.as_deref());
            let row = |it: Delivery| {
                let state = it.webhook;
                vec![
                    text(it.run),
                    text(state.id),
                    text(state.status),
                    text(state.attempts),
                    optional(state.last_status),
                    optional(state.error_code),
                    time(it.created_at),
                ]
            };
            let head = ["run", "delivery", "status", "attempts", "answer", "error", "created"];
            listed(context, &listing, list, &head, row).await
        }
        Webhook::Replay(Replay { since: Some(since), .. }) => {
            let answer = context.client.replay_failed_webhook_deliveries().query("since", since).await?;
            context.output.made(&answer, |it| it.replayed.clone(), |it| joined(it.replayed, "\n"));
            Ok(())
        }
        Webhook::Replay(Replay { deliveries, .. }) => {
            let mut outcome = Ok(());
            for id in with_stdin(deliveries).await? {
                outcome = both(outcome, replay(context, &id).await, context.output.json);
            }
            outcome
        }
        Webhook::Trigger { run, to } => {
            let run = context.run(&run).await?;
            let work: WorkRecord = context.client.read_work(&run).await?.value()?;
            if !work.is_over() {
                return usage(format!("{} is {}: only what has ended has an event", text(run), text(work.status)));
            }
            Receiver::new(&to).await?.send(context, &work).await
        }
    }
}

async fn replay(context: &Context, id: &str) -> Outcome {
    let answer = context.client.replay_webhook_delivery(id).await?;
    context.output.made(&answer, |it| vec![it.id.clone()], |it| format!("{} {}", text(it.id), text(it.status)));
    Ok(())
}
