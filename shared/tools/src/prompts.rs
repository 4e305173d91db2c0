//! Beginnings of common tasks.

use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};

/// A task, with the steps that lead through it.
struct Task {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    /// A remark of the caller, if any.
    wish: Option<&'static str>,
    steps: &'static str,
}

const TASKS: [Task; 5] = [
    Task {
        name: "moodboard",
        title: "Moodboard",
        about: "Arrange images as a moodboard in a Section",
        wish: Some("What the moodboard is for"),
        steps: "Find or upload the images. Put them on the canvas with node.create and asset, then section.create with their ids \
                and layout.arrange as masonry, in one canvas_edit. Look at it with canvas_view.",
    },
    Task {
        name: "product_shots",
        title: "Product shots",
        about: "Make formats of product images",
        wish: Some("Formats and texts"),
        steps: "Import or find the product images. Use action_run (crop, resize, change-aspect-ratio, add-text-to-image) for \
                exact formats: they cost nothing and keep the product's pixels. Generate only what Actions cannot do, with the \
                product as a reference of role identity.",
    },
    Task {
        name: "storyboard",
        title: "Storyboard",
        about: "Tell a story in a row of images",
        wish: Some("The story"),
        steps: "Write one text node for each shot, in a Section, as a row. Generate one image for each, with the same references, \
                placed near its text. Say the price before you start.",
    },
    Task {
        name: "fix_findings",
        title: "Fix findings",
        about: "Bring a canvas into order",
        wish: None,
        steps: "Call canvas_review. Follow its next for overlaps and overflows, and judge each other finding. Never move what a \
                person made unless you are told to. Review again until doneClaimAllowed.",
    },
    Task {
        name: "hand_over",
        title: "Hand over",
        about: "Take over unfinished work, or report it",
        wish: None,
        steps: "Call status for runs under way and wait for them with run_wait; never start them again. Read the canvas, then \
                canvas_review. Finish what is open, fix findings, and report what is done, what is not, and which outputs are \
                stand-ins.",
    },
];

/// The prompts that can be asked for.
pub fn list() -> Vec<Prompt> {
    let prompt = |task: &Task| {
        let canvas = PromptArgument::new("canvas").with_description("Canvas handle or canvasUrl").with_required(true);
        let wish = task.wish.map(|about| PromptArgument::new("brief").with_description(about).with_required(false));
        let arguments = std::iter::once(canvas).chain(wish).collect();
        Prompt::new(task.name, Some(task.about), Some(arguments)).with_title(task.title)
    };
    TASKS.iter().map(prompt).collect()
}

/// The text of a prompt, or a message about the name or arguments that are wrong.
pub fn get(name: &str, arguments: &JsonObject) -> Result<GetPromptResult, String> {
    let task = TASKS.iter().find(|task| task.name == name).ok_or_else(|| format!("there is no prompt {name:?}"))?;
    let text = |name: &str| arguments.get(name).and_then(|value| value.as_str());
    let canvas = text("canvas").ok_or("canvas is required")?;
    let brief =
        text("brief").map_or(String::new(), |brief| format!("\nThe brief, in the words of the user: {brief:?}"));
    let text = format!("On the canvas {canvas:?}: {}.{brief}\n\n{}", task.about, task.steps);
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).with_description(task.about))
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
            assert!(get(&prompt.name, &JsonObject::new()).is_err());
        }
        assert!(get("none", &JsonObject::new()).is_err());
    }
}
