//! The content of a render: the whole canvas or a part of it, its width as a PNG, and numbers on the nodes
//! (docs/reference/canvases.md#render-parts).

use std::collections::{BTreeSet, HashSet};

use domain::canvas::Theme;
use domain::graph::Node;
use domain::id::{NodeId, NodeReference};
use domain::limits::RENDER_NODES_MAX;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use utoipa::IntoParams;

use crate::extract::names;
use crate::extract::query::QueryReader;
use crate::problem::{Problem, Result};
use crate::state::App;

/// The content of a render.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RenderQuery {
    /// Id, ref or handle of a Section: draws it and its members. Excludes `nodes`.
    #[param(value_type = Option<NodeReference>)]
    section: Option<NodeId>,
    /// Ids, refs or handles of up to 200 nodes, separated by commas: draws these.
    #[param(max_length = 37_200, pattern = "^(node:)?[A-Za-z0-9_-]{1,180}(,(node:)?[A-Za-z0-9_-]{1,180}){0,199}$")]
    nodes: Option<String>,
    /// Width of the PNG in pixels; it is narrower if it would be higher than 2048. Ignored for SVG.
    #[param(minimum = 256, maximum = 2048)]
    width: Option<u32>,
    /// `true` if the nodes carry the numbers of their refs.
    #[serde(default)]
    labels: bool,
    /// Colors. Default: `light`.
    #[param(inline)]
    theme: Option<Theme>,
}

/// The content of a render.
#[derive(Debug, PartialEq)]
pub struct View {
    part: Part,
    /// Width of a PNG in pixels.
    pub width: Option<u32>,
    /// `true` if the nodes are numbered.
    pub labels: bool,
    pub theme: Theme,
}

#[derive(Debug, Default, PartialEq)]
enum Part {
    /// All nodes.
    #[default]
    Whole,
    /// A Section and its members.
    Section(NodeId),
    /// These nodes.
    Nodes(BTreeSet<NodeId>),
}

impl View {
    /// Reads the parameters of a render; reports violations to `query`.
    pub fn from_query(query: &mut QueryReader<'_>) -> Self {
        let RenderQuery { section, nodes, width, labels, theme } = query.read().unwrap_or_default();
        let nodes = nodes.and_then(|text| {
            let nodes: Option<Vec<NodeId>> = text.split(',').map(|id| id.parse().ok()).collect();
            match nodes {
                Some(nodes) if nodes.len() <= RENDER_NODES_MAX => return Some(nodes.into_iter().collect()),
                Some(_) => query.refuse("nodes", format!("must name at most {RENDER_NODES_MAX} nodes")),
                None => query.refuse("nodes", "must be node ids or handles, separated by commas"),
            }
            None
        });
        if query.has("section") && query.has("nodes") {
            query.refuse("nodes", "must not be sent together with section");
        }
        Self {
            part: match (section, nodes) {
                (Some(section), _) => Part::Section(section),
                (None, Some(nodes)) => Part::Nodes(nodes),
                (None, None) => Part::Whole,
            },
            width,
            labels,
            theme: theme.unwrap_or(Theme::Light),
        }
    }

    /// Replaces the refs of nodes by ids.
    pub async fn resolve_refs(&mut self, app: &App, canvas_key: i64) -> Result<()> {
        match &mut self.part {
            Part::Whole => {}
            Part::Section(section) => names::resolve_nodes(app, canvas_key, std::slice::from_mut(section)).await?,
            Part::Nodes(wanted) => {
                let mut nodes: Vec<NodeId> = std::mem::take(wanted).into_iter().collect();
                names::resolve_nodes(app, canvas_key, &mut nodes).await?;
                wanted.extend(nodes);
            }
        }
        Ok(())
    }

    /// Distinguishes this view of a revision from all others; empty for the default.
    pub fn tag(&self) -> String {
        let Self { part, width, labels, theme } = self;
        if let (Part::Whole, None, false, Theme::Light) = (part, width, labels, theme) {
            return String::new();
        }
        let (kind, ids) = match part {
            Part::Whole => ("canvas", String::new()),
            Part::Section(id) => ("section", id.to_string()),
            Part::Nodes(ids) => ("nodes", ids.iter().map(NodeId::as_str).collect::<Vec<_>>().join(",")),
        };
        let digest = Sha256::digest(format!("{kind} {ids} {} {labels} {theme}", width.unwrap_or_default()));
        let short = digest.iter().take(8).map(|byte| format!("{byte:02x}"));
        format!("-{}", short.collect::<String>())
    }

    /// Removes the nodes that are not shown; 422 when the part names what the canvas does not have.
    pub fn restrict(&self, nodes: &mut Vec<Node>) -> Result<()> {
        match &self.part {
            Part::Whole => {}
            Part::Section(id) => {
                if !nodes.iter().any(|node| node.id == *id && node.is_section()) {
                    return Err(Problem::unprocessable("section", "names no Section of the canvas"));
                }
                nodes.retain(|node| node.id == *id || node.section_id() == Some(id.as_str()));
            }
            Part::Nodes(wanted) => {
                let stored: HashSet<&NodeId> = nodes.iter().map(|node| &node.id).collect();
                if let Some(missing) = wanted.iter().find(|id| !stored.contains(id)) {
                    let message = format!("names no node of the canvas: {}", missing.handle());
                    return Err(Problem::unprocessable("nodes", &message));
                }
                nodes.retain(|node| wanted.contains(&node.id));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(query: &str) -> Result<View> {
        let uri = format!("/render?{query}").parse().expect("a URI");
        let mut query = QueryReader::new(&uri);
        let view = View::from_query(&mut query);
        query.finish().map(|()| view)
    }

    fn fields(query: &str) -> Vec<String> {
        let Err(problem) = view(query) else { panic!("{query} is refused") };
        problem.violations().into_iter().map(|violation| violation.field).collect()
    }

    #[test]
    fn parameters_are_checked() {
        let most = |count: usize| vec!["node:a"; count].join(",");
        for right in
            ["width=256", "width=2048", "labels=true", "labels=false", "section=node:s", "theme=light", "theme=dark"]
        {
            assert!(view(right).is_ok(), "{right}");
        }
        for nodes in ["a,node%3Ab".to_owned(), most(200)] {
            assert!(view(&format!("nodes={nodes}")).is_ok());
        }
        for (wrong, field) in [
            ("width=255", "width"),
            ("width=2049", "width"),
            ("width=", "width"),
            ("labels=1", "labels"),
            ("labels=", "labels"),
            ("theme=", "theme"),
            ("theme=Dark", "theme"),
            ("theme=dark&theme=dark", "theme"),
            ("section=", "section"),
            ("section=a%20b", "section"),
            ("nodes=", "nodes"),
            ("nodes=a,", "nodes"),
            ("nodes=a&section=b", "nodes"),
            ("nodes=a&nodes=b", "nodes"),
        ] {
            assert_eq!(fields(wrong), [field], "{wrong}");
        }
        assert_eq!(fields(&format!("nodes={}", most(201))), ["nodes"]);
        assert_eq!(fields("width=1&labels=x&section=!&theme=x"), ["section", "width", "labels", "theme"]);
    }

    #[test]
    fn each_view_has_a_tag_of_its_own_whatever_the_order_of_its_nodes() {
        let tag = |query: &str| view(query).expect("valid").tag();
        for default in ["", "labels=false", "theme=light"] {
            assert_eq!(tag(default), "", "{default}");
        }
        let queries = [
            "labels=true",
            "theme=dark",
            "theme=dark&labels=true",
            "width=256",
            "width=257",
            "section=a",
            "nodes=a",
            "nodes=a,b",
            "nodes=a&labels=true",
            "section=a&labels=true",
            "section=a&width=256",
        ];
        let tags: HashSet<String> = queries.iter().map(|query| tag(query)).collect();
        assert_eq!(tags.len(), queries.len());
        assert_eq!(tag("nodes=b,a"), tag("nodes=node:a,b,a"));
    }
}
