//! Prompts: the [skills](crate::skills), on a canvas that the user names.

use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};

use crate::skills::{self, Skill};

/// The prompts that can be asked for.
pub fn list() -> Vec<Prompt> {
    let prompt = |skill: &Skill| {
        let canvas = PromptArgument::new("canvas").with_description("Slug, handle or canvasUrl").with_required(true);
        let brief = PromptArgument::new("brief").with_description("What the user wants").with_required(false);
        Prompt::new(skill.name, Some(skill.description), Some(vec![canvas, brief])).with_title(skill.title)
    };
    skills::all().iter().map(prompt).collect()
}

/// The skill of a prompt, or a message about the name. Earlier releases wrote names with `_`.
pub fn find(name: &str) -> Result<&'static Skill, String> {
    skills::find(&name.replace('_', "-")).ok_or_else(|| format!("there is no prompt {name:?}"))
}

/// The text of a prompt, or a message about the name or arguments that are wrong.
pub fn get(name: &str, arguments: &JsonObject) -> Result<GetPromptResult, String> {
    let skill = find(name)?;
    let text = |name: &str| arguments.get(name).and_then(|value| value.as_str());
    let canvas = text("canvas").ok_or("canvas is required")?;
    let brief =
        text("brief").map_or(String::new(), |brief| format!("\nThe brief, in the words of the user: {brief:?}"));
    let text = format!("{}, on the canvas {canvas:?}.{brief}\n\n{}", skill.title, skill.steps);
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).with_description(skill.description))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_prompt_names_the_canvas_and_quotes_the_brief() {
        for prompt in list() {
            let given = json!({"canvas": "canvas:ana:board", "brief": "say \"hi\"\nthen stop"});
            let got = get(&prompt.name, given.as_object().expect("an object")).expect("is there");
            let text = json!(got.messages[0])["content"]["text"].as_str().expect("a text").to_owned();
            assert!(text.contains("\"canvas:ana:board\"") && text.contains(r#""say \"hi\"\nthen stop""#), "{text}");
            assert!(text.contains(find(&prompt.name).expect("a skill").steps), "{text}");
            assert!(get(&prompt.name, &JsonObject::new()).is_err());
        }
        assert!(get("none", &JsonObject::new()).is_err());
        assert_eq!(find("product_shots").map(|skill| skill.name), Ok("product-shots"));
    }
}
