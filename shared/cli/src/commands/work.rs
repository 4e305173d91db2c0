//! Starting work and waiting for it.

use std::io::{IsTerminal, Stdin, stdin};
use std::path::Path;
use std::time::Duration;

use client::{Answer, Call, Client, Waiting, WorkRecord};
use domain::Timestamp;
use domain::job::{JobStatus, NewTarget, StartQuote};
use domain::recipe::run::OutputStatus;
use serde::Deserialize;
use serde_json::{Value, json};

use super::batch::insert;
use super::files;
use super::runs::wait_for_all;
use super::waits::{Waits, warn};
use crate::args::Start;
use crate::context::{Body, Context, typed};
use crate::failure::{Failure, Outcome, both, usage};
use crate::journal;
use crate::output::{credits, joined, optional, text};

/// A start that is being made.
pub struct Order<'a> {
    /// Name of the work, for messages and the journal.
    pub name: String,
    /// The canvas it changes, whose revision it is based on.
    pub canvas: Option<String>,
    /// Its body, without revision, key and price.
    pub body: Body,
    /// The route.
    pub route: &'a (dyn Fn(&Client) -> Call<WorkRecord> + Sync),
    /// `true` if it costs credits.
    pub is_paid: bool,
}

/// Starts work, waits for it, and prints its last record. Fails unless the work has succeeded.
pub async fn start(context: &Context, order: Order<'_>, options: &Start) -> Outcome {
    let Some(last) = start_and_wait(context, order, options).await? else { return Ok(()) };
    let output = options.output.as_deref();
    print_end(context, &last, output)?;
    let record = last.value()?;
    let written = write_outputs(context, std::slice::from_ref(&record), output).await;
    both(succeeded(&record), written, context.output.json)
}

/// Prints how work has ended; with `--quiet` the handles of what it has made. While standard output is a file that it has made, on
/// standard error.
pub fn print_end(context: &Context, last: &Answer<WorkRecord>, output: Option<&Path>) -> Outcome {
    match output.is_some_and(files::is_stdio) {
        true if context.output.quiet => {}
        true => context.output.error_line(ended(&last.value()?)),
        false => context.output.made(last, made_handles, |record| ended(&record)),
    }
    Ok(())
}

/// The handles of what work has made: of nodes, and of a video that no node shows.
fn made_handles(record: &WorkRecord) -> Vec<String> {
    let images = record.images.iter().map(|it| &it.node_id);
    let outputs = record.outputs.iter().filter(|it| it.is(OutputStatus::Succeeded)).map(|it| &it.node_handle);
    let video = record.video.as_ref().map(|video| {
        let asset = video.asset_id.as_ref().map(ToString::to_string);
        record.targets.first().cloned().or(asset).unwrap_or_else(|| record.handle().to_owned())
    });
    images.chain(outputs).cloned().chain(video).collect()
}

/// Writes what work has made to where `--output` says.
pub async fn write_outputs(context: &Context, records: &[WorkRecord], output: Option<&Path>) -> Outcome {
    let Some(path) = output else { return Ok(()) };
    let sources: Vec<_> = records.iter().flat_map(files::made).collect();
    files::save_all(context, &sources, path, |call| call).await
}

/// Refuses files that would mix with the answer on standard output.
fn check_output(context: &Context, options: &Start) -> Outcome {
    match options.output.as_deref().is_some_and(files::is_stdio) && context.output.json {
        true => usage("with --json, name a file or folder: --output FILE"),
        false => Ok(()),
    }
}

/// Starts work, waits for it, and returns its last record. With `--dry-run` and `--no-wait` it prints the price or the run, and
/// returns `None`.
async fn start_and_wait(context: &Context, order: Order<'_>, options: &Start) -> Outcome<Option<Answer<WorkRecord>>> {
    let Some((answer, entry)) = send(context, &order, options).await? else { return Ok(None) };
    let record = answer.value()?;
    remark_replay(context, record.replayed);
    let handle = record.handle();
    if options.no_wait {
        entry.end();
        warn(&context.output, handle, &record, answer.time());
        context.output.body(&answer, || text(handle));
        return Ok(None);
    }
    let last = wait(context, &order.name, handle, options.timeout.map(Duration::from_secs)).await?;
    entry.end();
    Ok(Some(last))
}

/// Runs that one request starts.
#[derive(Deserialize)]
struct Runs {
    runs: Vec<WorkRecord>,
}

/// [`start`] for a request that starts several runs.
pub async fn start_several(context: &Context, order: Order<'_>, options: &Start) -> Outcome {
    let Some((answer, entry)) = send(context, &order, options).await? else { return Ok(()) };
    let answer = answer.cast::<Runs>();
    let Runs { runs } = answer.value()?;
    remark_replay(context, runs.iter().any(|run| run.replayed));
    let handles: Vec<String> = runs.iter().map(|run| run.handle().to_owned()).collect();
    if options.no_wait {
        entry.end();
        for run in &runs {
            warn(&context.output, run.handle(), run, answer.time());
        }
        context.output.body(&answer, || joined(&handles, "\n"));
        return Ok(());
    }
    let timeout = options.timeout.map(Duration::from_secs);
    let outcome = wait_for_all(context, &handles, timeout, options.output.as_deref()).await;
    if matches!(outcome, Ok(()) | Err(Failure::Work)) {
        entry.end();
    }
    outcome
}

fn remark_replay(context: &Context, replayed: bool) {
    if replayed {
        context
            .output
            .remark("An equal command started this before; nothing was started or charged again (--new-attempt does).");
    }
}

/// Sends a start, and returns its answer with its entry in the journal. With `--dry-run` it prints the price, and returns `None`.
async fn send(
    context: &Context,
    order: &Order<'_>,
    options: &Start,
) -> Outcome<Option<(Answer<WorkRecord>, journal::Entry)>> {
    check_output(context, options)?;
    if options.dry_run {
        let quote = quote(context, order, options).await?;
        context.output.answer(&quote, |it| {
            let mut lines = vec![format!("{}, about {} s", credits(it.credit_cost), it.estimated_seconds)];
            lines.extend(it.targets.iter().map(|target| format!("~ {}", text(target))));
            let new =
                |it: &NewTarget| format!("+ {} {} at {},{}", it.kind, text(&it.title), it.position.x, it.position.y);
            lines.extend(it.new_targets.iter().flatten().map(new));
            let price = lines.join("\n");
            match Waiting::new(it.waiting_for.as_ref(), None, quote.time()) {
                Some(waiting) => format!("{price}\nit would wait: {waiting}"),
                None => price,
            }
        });
        return Ok(None);
    }
    let salt = if options.new_attempt { uuid::Uuid::new_v4().to_string() } else { String::new() };
    let content = Value::from(order.body.clone()).to_string();
    let name =
        journal::hash(&[&context.origin, &order.name, order.canvas.as_deref().unwrap_or_default(), &content, &salt]);
    let entry = match journal::find(&name)? {
        Some(entry) => entry,
        None => journal::begin(&name, agreed(context, order, options, &name).await?)?,
    };
    let agreed = entry.body.get("maxCredits").and_then(Value::as_u64);
    if let (Some(cap), Some(agreed)) = (options.max_credits, agreed)
        && cap < agreed
    {
        return usage(format!(
            "an equal command that has not ended may pay {}: repeat it with --max-credits {agreed}, or start anew with --new-attempt",
            credits(agreed)
        ));
    }
    let call = (order.route)(&context.client).json(&entry.body);
    let call = if order.canvas.is_some() { call.prefer("handling=lenient") } else { call };
    match call.await {
        Ok(answer) => Ok(Some((answer, entry))),
        Err(error) => {
            if !error.is_temporary() {
                entry.end();
            }
            Err(error.into())
        }
    }
}

/// The body to send: with the revision, the key, and a price that was agreed to.
async fn agreed(context: &Context, order: &Order<'_>, options: &Start, name: &str) -> Outcome<Body> {
    let mut body = order.body.clone();
    let revision = match &order.canvas {
        Some(canvas) => Some(context.revision(canvas).await?),
        None => None,
    };
    // Without a revision, nothing else tells this command from an equal one that has ended.
    let distinct = revision.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let key = format!("cli-{}", journal::hash(&[name, &distinct]));
    body.insert("idempotencyKey".into(), key.into());
    insert(&mut body, "baseRevision", revision);
    let mut cap = options.max_credits;
    if order.is_paid {
        let quote = quote(context, order, options).await?;
        let StartQuote { credit_cost: price, waiting_for, .. } = quote.value()?;
        // A cap is an agreement to every price below it; the service refuses one above.
        if price > 0 && !options.yes && options.max_credits.is_none() {
            agree(context, price, Waiting::new(waiting_for.as_ref(), None, quote.time())).await?;
        }
        // The person never pays more than the price to which they agreed, even if it rises meanwhile.
        cap = cap.or(price.try_into().ok());
    }
    insert(&mut body, "maxCredits", cap);
    Ok(body)
}

async fn agree(context: &Context, price: i64, waiting: Option<Waiting>) -> Outcome {
    if context.output.json || !stdin().is_terminal() {
        return usage(format!("this costs {}: repeat with --yes or --max-credits to agree", credits(price)));
    }
    if let Some(waiting) = waiting {
        context.output.error_line(format!("It would wait: {waiting}."));
    }
    eprint!("This costs {}. Go on? [y/N] ", credits(price));
    let read = |stdin: Stdin| {
        let mut line = String::new();
        stdin.read_line(&mut line).map(|_| line)
    };
    match ["y", "yes"].contains(&typed(read).await?.trim().to_lowercase().as_str()) {
        true => Ok(()),
        false => usage("nothing was started"),
    }
}

async fn quote(context: &Context, order: &Order<'_>, options: &Start) -> Outcome<Answer<StartQuote>> {
    let mut body = order.body.clone();
    if let Some(canvas) = &order.canvas {
        body.insert("baseRevision".into(), context.revision(canvas).await?.into());
    }
    body.insert("validateOnly".into(), json!(true));
    insert(&mut body, "maxCredits", options.max_credits);
    let call = (order.route)(&context.client).json(&body);
    let call = if order.canvas.is_some() { call.prefer("handling=lenient") } else { call };
    Ok(call.cast().await?)
}

/// Waits for work with a progress bar, and prints why it waits. An interruption ends only the wait, and prints how to go on.
pub async fn wait(
    context: &Context,
    name: &str,
    handle: &str,
    timeout: Option<Duration>,
) -> Outcome<Answer<WorkRecord>> {
    context.on_interruption(Some(format!(
        "The work goes on. Wait for it:  canvas run wait {handle}\nCancel it:                     canvas run cancel {handle}"
    )));
    let bar = context.output.work_bar(name);
    let waits = Waits::new(&context.output, handle);
    let seen = |record: &WorkRecord, at: Timestamp| {
        let waiting = waits.saw(record.waiting(at));
        let (done, total) = record.counts();
        let share = record.progress.unwrap_or(if total > 0 { done as f64 / total as f64 * 100.0 } else { 0.0 });
        bar.set_position(share as u64);
        let status = match total {
            0 | 1 => text(&record.status),
            _ => format!("{} {done}/{total}", text(&record.status)),
        };
        waits.saw_status(&status, record.is(JobStatus::Queued));
        bar.set_message(waiting.map(|waiting| format!("{status}: {waiting}")).unwrap_or(status));
    };
    let waiting = context.client.wait(handle, timeout, seen);
    tokio::pin!(waiting);
    let waited = loop {
        tokio::select! {
            ended = &mut waiting => break ended,
            () = tokio::time::sleep(Duration::from_secs(1)) => waits.remind(),
        }
    };
    bar.finish_and_clear();
    context.on_interruption(None);
    let last = waited?;
    match last.value()?.is_over() {
        true => Ok(last),
        false => Err(Failure::Running(format!(
            "{handle} is still running. Wait for it:  canvas run wait {handle}   Cancel it:  canvas run cancel {handle}"
        ))),
    }
}

/// Describes work that was read at `at`, for people.
pub fn shown(record: &WorkRecord, at: Timestamp) -> String {
    let waiting = record.waiting(at).map(|waiting| format!("\n  waiting: {waiting}")).unwrap_or_default();
    ended(record) + &waiting
}

/// Describes the end of work, for people.
pub fn ended(record: &WorkRecord) -> String {
    let price = credits(record.credit_cost);
    let price = if record.is_over() { format!("charged {price}") } else { price };
    let mut lines = vec![format!("{} {} ({price})", text(record.handle()), text(&record.status))];
    lines.extend(record.images.iter().map(|it| {
        format!("  {} {} {}x{} {}", text(&it.node_id), it.asset_id, it.width, it.height, text(&it.media_type))
    }));
    if let Some(asset) = record.video.as_ref().and_then(|video| video.asset_id.as_ref()) {
        lines.push(format!("  {} {asset}", optional(record.targets.first())).trim_end().to_owned());
    }
    lines.extend(record.outputs.iter().map(|it| {
        let result = optional(it.asset_id.as_ref().or(it.value.as_ref()));
        format!("  {} {} {} {result}", text(&it.key), text(&it.status), text(&it.node_handle)).trim_end().to_owned()
    }));
    if record.stand_in {
        lines.push("  made by the embedded runtime: a stand-in for a model's output".into());
    }
    if record.is(JobStatus::Expired) {
        lines.push("  It succeeded. Its record has expired; what it made stays on its canvas.".into());
    } else if let Some(failure) = &record.failure {
        let again = if failure.retryable { " A new attempt may succeed, and is a new charge." } else { "" };
        lines.push(format!("  {}: {}.{again}", text(&failure.code), text(&failure.message).trim_end_matches('.')));
    }
    lines.join("\n")
}

/// Fails unless the work has succeeded. Work whose record has expired had succeeded.
pub fn succeeded(record: &WorkRecord) -> Outcome {
    match record.is(JobStatus::Succeeded) || record.is(JobStatus::Expired) {
        true => Ok(()),
        false => Err(Failure::Work),
    }
}
