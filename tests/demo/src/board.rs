//! The canvas that people open first: a Section for each capability, in rows, and a high one beside them.

use client::Answer;
use client::answers::OperationsAnswer;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::error::{Error, Result, list, text};
use crate::service::Service;

/// The distance between Sections.
const GAP: f64 = 80.0;

/// The distance of the Section beside the rows. It is in line with the first row alone, so it is no neighbour of the others
/// (docs/reference/findings.md#sections_staggered).
const BESIDE: f64 = 240.0;

/// The size of a Section's title.
const TITLE_SIZE: u32 = 32;

/// A place far below all that is on the canvas, where Sections are arranged before they get their own places.
const ASIDE: f64 = 100_000.0;

/// The canvas of the demo.
pub struct Board<'a> {
    pub service: &'a Service,
    pub id: String,
    rows: Vec<Vec<Section>>,
    beside: Vec<Section>,
}

/// A Section, and the number of columns of its grid. Without a number, its members stay where they are.
struct Section {
    id: String,
    columns: Option<u32>,
}

impl<'a> Board<'a> {
    /// Creates the canvas `id`, or finds it if an earlier attempt created it and its response was lost. Tells its handle.
    pub async fn create(service: &'a Service, id: &str) -> Result<(String, Self)> {
        let body = json!({"id": id, "title": "Demo"});
        let board = Self { service, id: id.to_owned(), rows: Vec::new(), beside: Vec::new() };
        match service.send(|client| client.create_canvas().json(&body)).await {
            Err(Error::Request { source, .. }) if source.problem().is_some_and(|problem| problem.status == 409) => {}
            other => _ = other?,
        }
        let canvas = board.read().await?;
        Ok((text(&canvas, "/canvas/handle")?.to_owned(), board))
    }

    /// The canvas as it is.
    pub async fn read(&self) -> Result<Value> {
        self.service.json(|client| client.get_canvas(&self.id)).await
    }

    /// Completes the body of a write or start: its canvas, revision and key.
    pub async fn body(&self, mut body: Value) -> Result<Value> {
        body["canvasId"] = json!(self.id);
        body["baseRevision"] = json!(text(&self.read().await?, "/canvas/revision")?);
        body["idempotencyKey"] = json!(Uuid::new_v4());
        Ok(body)
    }

    /// Applies a batch of operations, whatever others do at the same time.
    pub async fn apply(&self, operations: Value) -> Result<Answer<OperationsAnswer>> {
        let mut body = self.body(json!({"operations": operations})).await?;
        if let Some(members) = body.as_object_mut() {
            members.remove("canvasId");
        }
        let send = |client: &client::Client| client.apply_operations(&self.id).prefer("handling=lenient").json(&body);
        self.service.send(send).await
    }

    /// Begins a row of Sections.
    pub fn row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Makes a Section around `nodes`, as the next one of the row, and returns its id.
    pub async fn section(&mut self, title: &str, columns: u32, nodes: &[String]) -> Result<String> {
        let id = self.create_section(title, nodes).await?;
        self.add(&id, columns);
        Ok(id)
    }

    /// Makes an empty Section beside the rows, whose members stay where they are put, and returns its id.
    pub async fn section_beside(&mut self, title: &str) -> Result<String> {
        let id = self.create_section(title, &[]).await?;
        self.beside.push(Section { id: id.clone(), columns: None });
        Ok(id)
    }

    async fn create_section(&self, title: &str, nodes: &[String]) -> Result<String> {
        let mut create = json!({"type": "section.create", "clientId": "section", "title": title});
        if !nodes.is_empty() {
            create["nodeIds"] = json!(nodes);
        }
        let made = self.apply(json!([create])).await?.json();
        Ok(text(&made, "/resolvedIds/section")?.to_owned())
    }

    /// Adds a Section that exists to the row.
    pub fn add(&mut self, section: &str, columns: u32) {
        if let Some(row) = self.rows.last_mut() {
            row.push(Section { id: section.to_owned(), columns: Some(columns) });
        }
    }

    /// Arranges the members of each Section, then the Sections, with a headline above. Tells how many there are.
    pub async fn arrange(&self, headline: &str) -> Result<String> {
        let sections = || self.rows.iter().flatten().chain(&self.beside);
        let mut operations = Vec::new();
        let mut aside = ASIDE;
        for Section { id, columns } in sections() {
            operations
                .push(json!({"type": "node.update", "nodeId": id, "patch": {"metadata": {"fontSize": TITLE_SIZE}}}));
            operations.push(match columns {
                Some(columns) => json!({
                    "type": "layout.arrange", "sectionId": id, "layout": "grid", "columns": columns, "x": 0, "y": aside,
                }),
                None => {
                    json!({"type": "node.move", "nodeId": id, "position": {"x": 0, "y": aside}, "withMembers": true})
                }
            });
            operations.push(json!({"type": "section.fit", "nodeId": id}));
            aside += ASIDE / 10.0;
        }
        self.apply(json!(operations)).await?;

        let canvas = self.read().await?;
        let nodes = list(&canvas, "/canvas/nodes")?;
        let side = |section: &Section, name: &str| {
            let node = nodes.iter().find(|node| node["id"] == section.id);
            node.and_then(|node| node[name].as_f64()).unwrap_or_default()
        };
        let row = |sections: &[Section], x: f64, y: f64| {
            let ids: Vec<&str> = sections.iter().map(|section| section.id.as_str()).collect();
            json!({"type": "layout.arrange", "nodeIds": ids, "layout": "row", "gap": GAP, "x": x, "y": y})
        };
        let mut operations = Vec::new();
        let (mut x, mut y) = (0.0_f64, 0.0);
        for sections in self.rows.iter().filter(|row| !row.is_empty()) {
            operations.push(row(sections, 0.0, y));
            x = x.max(sections.iter().map(|section| side(section, "width") + GAP).sum());
            y += sections.iter().map(|section| side(section, "height")).fold(0.0, f64::max) + GAP;
        }
        if !self.beside.is_empty() {
            operations.push(row(&self.beside, x - GAP + BESIDE, 0.0));
        }
        operations.push(json!({"type": "node.create", "node": {
            "type": "text", "title": "", "position": {"x": 0, "y": -160}, "width": x - GAP, "height": 100,
            "metadata": {"content": headline, "fontSize": 44},
        }}));
        self.apply(json!(operations)).await?;
        Ok(format!("{} Sections, {} nodes", sections().count(), nodes.len() + 1))
    }
}
