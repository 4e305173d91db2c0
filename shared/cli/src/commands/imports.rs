//! Images from the web.

use client::answers::{ImageImport, ProductImport};
use client::queue_in_words;
use domain::message::Queue;
use domain::queue::QueueState;
use serde::Deserialize;
use serde_json::{Value, json};

use super::batch::insert;
use super::waits::{PATIENCE, say};
use crate::args::Import;
use crate::context::{Body, Context, canvas};
use crate::failure::{Failure, Outcome};
use crate::journal;
use crate::output::text;

pub async fn run(context: &Context, import: Import) -> Outcome {
    let (route, on, mut body) = match import {
        Import::Image { url, on, title } => {
            let mut body = Body::from_iter([("imageUrl".into(), json!(url))]);
            insert(&mut body, "title", title);
            ("image", on, body)
        }
        Import::Product { url, on, variant, title } => {
            let mut body = Body::from_iter([("productPageUrl".into(), json!(url))]);
            insert(&mut body, "variantSelector", variant);
            insert(&mut body, "title", title);
            ("product", on, body)
        }
    };
    body.insert("canvasId".into(), canvas(&on)?.into());
    let name = journal::hash(&[&context.origin, "import", route, &Value::from(body.clone()).to_string()]);
    let entry = match journal::find(&name)? {
        Some(entry) => entry,
        None => {
            body.insert("idempotencyKey".into(), format!("cli-{}", uuid::Uuid::new_v4()).into());
            journal::begin(&name, body)?
        }
    };
    let importing = async {
        match route {
            "image" => context.client.import_image().json(&entry.body).await.map(client::Answer::cast),
            _ => context.client.import_product_references().json(&entry.body).await.map(client::Answer::cast),
        }
    };
    let answer: client::Result<client::Answer<Imported>> = tokio::select! {
        answer = importing => answer,
        () = warn_when_silent(context) => unreachable!("it goes on until the import ends"),
    };
    if !answer.as_ref().is_err_and(client::Error::is_temporary) {
        entry.end();
    }
    let answer = answer?;
    context.output.answer(&answer, |it| {
        let (images, revision) = match it {
            Imported::Image(it) => (vec![it.image], it.canvas_revision),
            Imported::Product(ProductImport::Succeeded(it)) => (it.images, it.canvas_revision),
            Imported::Product(ProductImport::ReviewRequired(it)) => {
                return format!("nothing was imported: {}", it.reason);
            }
        };
        let lines = images.into_iter().map(|it| format!("{} {}", text(it.node_id), it.asset_id));
        lines.chain([format!("revision {}", text(revision))]).collect::<Vec<_>>().join("\n")
    });
    match answer.value() {
        Ok(Imported::Product(ProductImport::ReviewRequired(_))) => Err(Failure::Work),
        _ => Ok(()),
    }
}

/// The answer of an import.
#[derive(Deserialize)]
#[serde(untagged)]
enum Imported {
    Product(ProductImport),
    Image(ImageImport),
}

/// Prints a warning after a while if no worker is there to import. An import has no record to read.
async fn warn_when_silent(context: &Context) {
    tokio::time::sleep(PATIENCE).await;
    if let Ok(read) = context.client.get_status().await
        && let Ok(status) = read.value()
        && let Some(queue) = status.queues.iter().find(|it| it.queue == Queue::Import && it.state == QueueState::Silent)
    {
        say(&context.output, "", &format!("waiting: {}", queue_in_words(queue, read.time())));
    }
    std::future::pending().await
}
