//! Images from the web.

use client::answers::{ImageImport, ProductImport};
use client::queue_in_words;
use domain::import::ImportedImage;
use domain::message::Queue;
use domain::queue::QueueState;
use serde::Deserialize;
use serde_json::{Value, json};

use super::batch::insert;
use super::files::{self, Source, save_all};
use super::waits::{PATIENCE, say};
use crate::args::Import;
use crate::context::{Body, Context};
use crate::failure::{Failure, Outcome};
use crate::journal;
use crate::output::text;

pub async fn run(context: &Context, import: Import) -> Outcome {
    let (route, on, output, mut body) = match import {
        Import::Image { url, on, output, title } => {
            let mut body = Body::from_iter([("imageUrl".into(), json!(url))]);
            insert(&mut body, "title", title);
            ("image", on, output, body)
        }
        Import::Product { url, on, output, variant, title } => {
            let mut body = Body::from_iter([("productPageUrl".into(), json!(url))]);
            insert(&mut body, "variantSelector", variant);
            insert(&mut body, "title", title);
            ("product", on, output, body)
        }
    };
    body.insert("canvasId".into(), context.on(on.on.as_deref()).await?.into());
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
    let people = |it: Imported| {
        let revision = match &it {
            Imported::Image(it) => &it.canvas_revision,
            Imported::Product(ProductImport::Succeeded(it)) => &it.canvas_revision,
            Imported::Product(ProductImport::ReviewRequired(it)) => {
                return format!("nothing was imported: {}", it.reason);
            }
        };
        let lines = it.images().iter().map(|it| format!("{} {}", text(&it.node_id), it.asset_id));
        lines.chain([format!("revision {}", text(revision))]).collect::<Vec<_>>().join("\n")
    };
    if output.as_deref().is_some_and(files::is_stdio) {
        context.output.error_line(people(answer.value()?));
    } else {
        let handles = |it: &Imported| it.images().iter().map(|it| it.node_id.clone()).collect();
        context.output.made(&answer, handles, people);
    }
    let Ok(imported) = answer.value() else { return Ok(()) };
    if let Some(path) = &output {
        let assets: Vec<Source> = imported.images().iter().map(|it| Source::Asset(it.asset_id.to_string())).collect();
        save_all(context, &assets, path, |call| call).await?;
    }
    match imported {
        Imported::Product(ProductImport::ReviewRequired(_)) => Err(Failure::Work),
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

impl Imported {
    /// The images; none if the import needs a decision first.
    fn images(&self) -> &[ImportedImage] {
        match self {
            Imported::Image(it) => std::slice::from_ref(&it.image),
            Imported::Product(ProductImport::Succeeded(it)) => &it.images,
            Imported::Product(ProductImport::ReviewRequired(_)) => &[],
        }
    }
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
