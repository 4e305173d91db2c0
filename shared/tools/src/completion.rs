//! Completions: canvases by the beginning of what a person types.

use client::{Client, Error, Item};
use domain::canvas::CanvasSummary;
use domain::limits::CANVAS_PAGE_MAX;
use rmcp::model::{CompleteRequestParams, CompletionInfo, Reference};

use crate::prompts;
use crate::resources::{self, OF_CANVASES};

/// Pages of canvases that are searched at most, the latest canvases first.
const PAGES_MAX: usize = 10;

/// An argument whose values are known.
#[derive(Debug, PartialEq)]
enum Argument {
    /// The canvas of a prompt.
    Canvas,
    /// The owner in the address of a canvas.
    Owner,
    /// The id in the address of a canvas, with the owner if one is given.
    Id(Option<String>),
}

impl Argument {
    /// `None` for arguments with any value. `Err` is a message about a prompt or a template that there is not.
    fn from_request(request: &CompleteRequestParams) -> Result<Option<Self>, String> {
        let argument = request.argument.name.as_str();
        match &request.r#ref {
            Reference::Prompt(prompt) => {
                prompts::find(&prompt.name)?;
                Ok((argument == "canvas").then_some(Self::Canvas))
            }
            Reference::Resource(template) => {
                if !resources::templates().iter().any(|known| known.uri_template == template.uri) {
                    return Err(format!("there is no template {:?}", template.uri));
                }
                let given = || request.context.as_ref()?.get_argument("owner").cloned();
                Ok(match argument {
                    _ if !template.uri.starts_with(OF_CANVASES) => None,
                    "owner" => Some(Self::Owner),
                    "id" => Some(Self::Id(given())),
                    _ => None,
                })
            }
            _ => Ok(None),
        }
    }

    /// The value that names a canvas, if what was typed is the beginning of its slug, id, handle or title.
    fn value(&self, canvas: &CanvasSummary, typed: &str) -> Option<String> {
        let typed = typed.to_lowercase();
        let begins = |text: &str| text.to_lowercase().starts_with(&typed);
        let (owner, id, handle) =
            (canvas.handle.owner.to_string(), canvas.handle.id.to_string(), canvas.handle.to_string());
        let slug = canvas.slug.as_deref();
        let is_meant = begins(&id) || begins(&canvas.title) || slug.is_some_and(begins);
        match self {
            Self::Canvas if is_meant => Some(slug.map_or(handle, str::to_owned)),
            Self::Canvas => begins(&handle).then_some(handle),
            Self::Owner => begins(&owner).then_some(owner),
            Self::Id(of) => (is_meant && of.as_ref().is_none_or(|of| *of == owner)).then_some(id),
        }
    }
}

/// An argument, and what was typed of it.
pub struct Completion {
    argument: Argument,
    typed: String,
}

impl Completion {
    /// The completion that is asked for; `None` for an argument with any value. `Err` is a message about what the request names.
    pub fn from_request(request: &CompleteRequestParams) -> Result<Option<Self>, String> {
        let typed = request.argument.value.clone();
        Ok(Argument::from_request(request)?.map(|argument| Self { argument, typed }))
    }

    /// Searches the canvases of the caller.
    pub async fn find(&self, client: &Client) -> Result<CompletionInfo, Error> {
        let mut values: Vec<String> = Vec::new();
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let page = client.list_canvases().query("limit", CANVAS_PAGE_MAX).query_if("cursor", cursor).await?;
            let (canvases, next) = page.items()?;
            for canvas in canvases.iter().filter_map(Item::value) {
                values.extend(self.argument.value(&canvas, &self.typed).filter(|value| !values.contains(value)));
            }
            cursor = next;
            if cursor.is_none() || values.len() > CompletionInfo::MAX_VALUES {
                break;
            }
        }
        let has_more = cursor.is_some() || values.len() > CompletionInfo::MAX_VALUES;
        values.truncate(CompletionInfo::MAX_VALUES);
        Ok(CompletionInfo::with_pagination(values, None, has_more).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn request(reference: Value, argument: &str) -> CompleteRequestParams {
        let request = json!({
            "ref": reference, "argument": {"name": argument, "value": ""}, "context": {"arguments": {"owner": "ana"}},
        });
        serde_json::from_value(request).expect("a request")
    }

    #[test]
    fn canvases_of_prompts_and_of_templates_are_completed() {
        let prompt = |name: &str| json!({"type": "ref/prompt", "name": name});
        let template = |uri: &str| json!({"type": "ref/resource", "uri": uri});
        let outline = "canvas://{owner}/{id}/outline";
        for (reference, argument, expected) in [
            (prompt("moodboard"), "canvas", Some(Argument::Canvas)),
            (prompt("moodboard"), "brief", None),
            (template(outline), "owner", Some(Argument::Owner)),
            (template(outline), "id", Some(Argument::Id(Some("ana".into())))),
            (template(outline), "part", None),
            (template("canvas://asset/{owner}/{id}"), "id", None),
            (template("canvas://run/{id}"), "id", None),
        ] {
            assert_eq!(
                Argument::from_request(&request(reference.clone(), argument)),
                Ok(expected),
                "{reference} {argument}"
            );
        }
        for unknown in [prompt("none"), template("canvas://{owner}/{id}"), template("file:///{path}")] {
            assert!(Argument::from_request(&request(unknown.clone(), "canvas")).is_err(), "{unknown}");
        }
    }

    #[test]
    fn a_canvas_is_meant_by_the_beginning_of_its_slug_id_handle_or_title() {
        let canvas: CanvasSummary = serde_json::from_value(json!({
            "id": "Board-7", "handle": "canvas:ana:Board-7", "slug": "~7kq2m9xa", "ownerUid": "ana", "title": "Frühling",
            "createdAt": "2026-01-01T12:00:00.000Z", "updatedAt": "2026-01-01T12:00:00.000Z", "revision": "r1",
            "nodeCount": 0, "connectionCount": 0,
        }))
        .expect("a summary");
        let of_ana = Argument::Id(Some("ana".into()));
        for (argument, typed, expected) in [
            (&Argument::Canvas, "", Some("~7kq2m9xa")),
            (&Argument::Canvas, "~7k", Some("~7kq2m9xa")),
            (&Argument::Canvas, "board", Some("~7kq2m9xa")),
            (&Argument::Canvas, "FRÜH", Some("~7kq2m9xa")),
            (&Argument::Canvas, "canvas:an", Some("canvas:ana:Board-7")),
            (&Argument::Canvas, "hling", None),
            (&Argument::Canvas, "~7kq2m9xb", None),
            (&Argument::Owner, "a", Some("ana")),
            (&Argument::Owner, "b", None),
            (&of_ana, "früh", Some("Board-7")),
            (&of_ana, "x", None),
            (&Argument::Id(Some("bo".into())), "", None),
            (&Argument::Id(None), "Bo", Some("Board-7")),
        ] {
            assert_eq!(argument.value(&canvas, typed).as_deref(), expected, "{argument:?} {typed:?}");
        }
    }
}
