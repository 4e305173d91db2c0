//! Skills: how common tasks are done with the tools, for agents that know nothing else (docs/reference/tools.md#skills).
//!
//! The files in `shared/skills` are the only description. Resources, prompts, the pages of the gateway and `canvas skills install`
//! are made of them.

use std::sync::LazyLock;

use rmcp::model::{Resource, ResourceContents, SkillFrontmatter, SkillResource, SkillResources};

const MEDIA_TYPE: &str = "text/markdown";

const FILES: [&str; 6] = [
    include_str!("../../skills/moodboard/SKILL.md"),
    include_str!("../../skills/product-shots/SKILL.md"),
    include_str!("../../skills/storyboard/SKILL.md"),
    include_str!("../../skills/tidy-and-finish/SKILL.md"),
    include_str!("../../skills/hand-over/SKILL.md"),
    include_str!("../../skills/deliver/SKILL.md"),
];

/// A skill.
pub struct Skill {
    /// Its name, which is that of its folder.
    pub name: &'static str,
    /// What it does and when to use it.
    pub description: &'static str,
    /// Its heading.
    pub(crate) title: &'static str,
    /// What follows the heading.
    pub(crate) steps: &'static str,
    /// The whole file.
    pub text: &'static str,
}

impl Skill {
    fn parse(text: &'static str) -> Option<Self> {
        let (head, rest) = text.strip_prefix("---\nname: ")?.split_once("\n---\n\n# ")?;
        let (name, description) = head.split_once("\ndescription: ")?;
        let (title, steps) = rest.split_once("\n\n")?;
        Some(Self { name, description, title, steps, text })
    }

    /// The address of its file.
    fn uri(&self) -> String {
        format!("skill://canvas/{}/SKILL.md", self.name)
    }

    /// The skill as `skills/list` has it.
    pub(crate) fn definition(&self) -> rmcp::model::Skill {
        let front_matter = SkillFrontmatter::new(self.name, self.description);
        let file = SkillResource::from_bytes(self.uri(), self.text.as_bytes());
        rmcp::model::Skill::new(self.uri(), front_matter, SkillResources::Files(vec![file]))
    }

    /// Its file as `resources/list` has it.
    pub(crate) fn resource(&self) -> Resource {
        let resource = Resource::new(self.uri(), self.name).with_title(self.title).with_description(self.description);
        resource.with_mime_type(MEDIA_TYPE)
    }

    /// Its file.
    pub(crate) fn contents(&self) -> ResourceContents {
        ResourceContents::text(self.text, self.uri()).with_mime_type(MEDIA_TYPE)
    }
}

/// All skills, in the order in which they are listed.
pub fn all() -> &'static [Skill] {
    static SKILLS: LazyLock<Vec<Skill>> = LazyLock::new(|| {
        let parse = |text| Skill::parse(text).expect("a skill has a front matter and a heading: a test reads each");
        FILES.into_iter().map(parse).collect()
    });
    &SKILLS
}

/// The skill with a name.
pub fn find(name: &str) -> Option<&'static Skill> {
    all().iter().find(|skill| skill.name == name)
}

/// The skill whose file has this address.
pub(crate) fn at(uri: &str) -> Option<&'static Skill> {
    all().iter().find(|skill| skill.uri() == uri)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{catalogue, schema};

    /// An agent reads a skill beside the list of tools.
    const TOKENS_MAX: usize = 600;

    /// The calls in the fenced blocks without a language: `tool {arguments}`, whose further lines are indented.
    fn calls(text: &str) -> Vec<(String, Value)> {
        let blocks = text.split("\n```").skip(1).step_by(2).filter_map(|block| block.strip_prefix('\n'));
        let lines = blocks.flat_map(str::lines);
        let mut calls: Vec<String> = Vec::new();
        for line in lines {
            match calls.last_mut() {
                Some(call) if line.starts_with(' ') => call.push_str(line),
                _ => calls.push(line.to_owned()),
            }
        }
        let parsed = calls.iter().map(|call| {
            let (tool, arguments) = call.split_once(' ').expect("arguments");
            (tool.to_owned(), serde_json::from_str(arguments).unwrap_or_else(|error| panic!("{call}: {error}")))
        });
        parsed.collect()
    }

    /// The names in backquotes that have the form of a tool's name with two words.
    fn named(text: &str) -> impl Iterator<Item = &str> {
        let is_name = |name: &&str| name.contains('_') && name.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
        text.split('`').skip(1).step_by(2).filter(is_name)
    }

    #[test]
    fn each_skill_has_the_name_of_its_folder_and_a_description() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../skills");
        let folders = std::fs::read_dir(folder).expect("the skills").map(|entry| entry.expect("an entry").file_name());
        let mut folders: Vec<String> = folders.map(|name| name.into_string().expect("UTF-8")).collect();
        folders.sort();
        let mut names: Vec<&str> = all().iter().map(|skill| skill.name).collect();
        names.sort();
        assert_eq!(names, folders);
        for skill in all() {
            let file = std::fs::read_to_string(format!("{folder}/{}/SKILL.md", skill.name)).expect("its file");
            assert_eq!(skill.text, file);
            skill.definition().validate().unwrap_or_else(|error| panic!("{}: {error}", skill.name));
            assert!(skill.description.contains(". Use it ") && !skill.description.contains([':', '#', '"', '\n']));
            assert!(!skill.title.contains('\n') && skill.steps.starts_with("1. "), "{}", skill.name);
            assert!(at(&skill.uri()).is_some_and(|found| found.name == skill.name));
        }
        assert!(at("skill://canvas/none/SKILL.md").is_none() && find("none").is_none());
    }

    /// Three bytes a token are an estimate that is too high: the list of tools has 4.2 (o200k_base).
    #[test]
    fn each_skill_is_short() {
        for skill in all() {
            let tokens = skill.text.len().div_ceil(3);
            assert!(tokens <= TOKENS_MAX, "{}: {tokens} tokens", skill.name);
        }
    }

    #[test]
    fn the_calls_of_a_skill_are_those_that_the_tools_take() {
        for skill in all() {
            let calls = calls(skill.text);
            assert!(!calls.is_empty(), "{}", skill.name);
            for (tool, arguments) in calls {
                let entry = catalogue::find(false, &tool).unwrap_or_else(|| panic!("{}: {tool}", skill.name));
                let taken = Value::Object(entry.definition.input_schema.as_ref().clone());
                let validator = jsonschema::draft202012::new(&taken).expect("a schema");
                let violations = schema::violations(&validator, &arguments);
                assert!(violations.is_empty(), "{}: {tool} {arguments}: {violations:?}", skill.name);
            }
            for name in named(skill.text) {
                assert!(catalogue::find(false, name).is_some(), "{}: there is no tool {name}", skill.name);
            }
        }
    }
}
