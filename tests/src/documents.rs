//! Links and citations: every document that a file of the repository cites is in the repository, with the cited heading.
//!
//! Three things are checked. Every relative link in a Markdown file resolves. Every mention of a Markdown file in any file resolves,
//! from the directory of the file or one that contains it, and so does its anchor. No file refers to a document outside of
//! the repository ([`FOREIGN`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// References to documents that are not in the repository.
const FOREIGN: &[&str] = &["canvas-service-api", "house.md"];

/// A reference of this kind, if a section number or a chapter follows.
const NUMBERED: &str = "decisions";
const CHAPTERED: &str = "specification,";

/// Files that may contain such references: records of decisions, migrations, which cannot change (their README explains their
/// citations), and these lists.
const EXEMPT: &[&str] = &["docs/adr/", "shared/db/migrations/", "tests/src/documents.rs"];

/// Directories and files that are not part of the repository, or are generated.
const SKIPPED: &[&str] = &[".git", ".local", ".schemathesis", ".sqlx", "dist", "node_modules", "target"];

/// Ends of routes of the service whose names are those of documents, and names of the files of skills.
const SERVED: [&str; 2] = ["/digest.md", "SKILL.md"];

/// Text files of the repository by their path from its root.
struct Repository {
    root: PathBuf,
    texts: BTreeMap<String, String>,
}

impl Repository {
    fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace").to_owned();
        let mut texts = BTreeMap::new();
        let mut directories = vec![root.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(&directory).expect("a directory can be listed") {
                let entry = entry.expect("an entry can be read");
                let kind = entry.file_type().expect("an entry has a type");
                if SKIPPED.iter().any(|name| entry.file_name() == *name) {
                    continue;
                }
                if kind.is_dir() {
                    directories.push(entry.path());
                } else if kind.is_file()
                    // Fonts, images and other binary files.
                    && let Ok(text) = fs::read_to_string(entry.path())
                {
                    let path = entry.path().strip_prefix(&root).expect("below the root").display().to_string();
                    texts.insert(path, text);
                }
            }
        }
        Self { root, texts }
    }

    fn markdown(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().filter(|(path, _)| is_markdown(path)).map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The path of the link `target` in `file`, from the root of the repository. `None` if it leads out of the repository.
    fn resolve(file: &str, target: &str) -> Option<String> {
        let mut parts: Vec<&str> = file.split('/').collect();
        parts.pop();
        for part in target.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()?),
                name => parts.push(name),
            }
        }
        Some(parts.join("/"))
    }

    /// The files that `path` can mean in `file`: below its directory, or below one that contains it, up to the root.
    fn places(&self, file: &str, path: &str) -> Vec<String> {
        let directories = file.match_indices('/').map(|(at, _)| &file[..=at]).chain([""]);
        let places = directories.filter_map(|directory| Self::resolve(directory, path));
        places.filter(|place| self.has(place)).collect()
    }

    fn has(&self, path: &str) -> bool {
        self.texts.contains_key(path) || self.root.join(path).exists()
    }

    fn has_heading(&self, path: &str, anchor: &str) -> bool {
        self.texts.get(path).is_some_and(|text| anchors(text).contains(anchor))
    }
}

fn is_markdown(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "md")
}

/// The lines of a Markdown text outside of fenced code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let start = line.trim_start();
        let marker = ["```", "~~~"].into_iter().find(|marker| start.starts_with(marker));
        match (fence, marker) {
            (None, Some(_)) => fence = marker,
            (Some(open), Some(close)) if open == close => fence = None,
            (None, None) => return Some((number + 1, line)),
            _ => {}
        }
        None
    })
}

/// The line without code spans, which contain no links.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("")
}

/// The anchors of a Markdown text: GitHub's slugs of its headings, and ids that are written as HTML.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        for attribute in ["id=\"", "name=\""] {
            let values = line.split(attribute).skip(1).filter_map(|rest| rest.split('"').next());
            anchors.extend(values.map(str::to_owned));
        }
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if !(1..=6).contains(&level) || !line[level..].starts_with(' ') {
            continue;
        }
        let slug = slug(&line[level..]);
        let count = found.entry(slug.clone()).or_default();
        anchors.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
        *count += 1;
    }
    anchors
}

/// GitHub's slug of a heading: lower case, letters, digits, `-` and `_` kept, spaces to `-`. Of a link its text counts.
fn slug(heading: &str) -> String {
    let mut text = heading.trim().trim_end_matches('#').trim_end().to_owned();
    while let Some(middle) = text.find("](") {
        let Some(end) = text[middle..].find(')') else { break };
        text.replace_range(middle..=middle + end, "");
    }
    let kept = text.to_lowercase();
    let kept = kept.chars().filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
    kept.map(|char| if char == ' ' { '-' } else { char }).collect()
}

/// The link targets in a line of Markdown: of inline links and images, definitions of references, and attributes of HTML.
fn links(line: &str) -> Vec<String> {
    let line = without_code(line);
    let mut targets = Vec::new();
    for rest in line.split("](").skip(1) {
        targets.extend(rest.split([')', ' ']).next());
    }
    if line.starts_with('[')
        && let Some((_, rest)) = line.split_once("]:")
    {
        targets.extend(rest.split_whitespace().next());
    }
    for attribute in ["src=\"", "href=\"", "srcset=\""] {
        targets.extend(line.split(attribute).skip(1).filter_map(|rest| rest.split('"').next()));
    }
    let relative = targets.into_iter().filter(|target| !target.contains("://") && !target.starts_with("mailto:"));
    relative.map(|target| target.trim_matches(['<', '>']).to_owned()).collect()
}

/// Mentions of Markdown files, with their anchors: `docs/reference/jobs.md#leases`.
fn mentions(line: &str) -> Vec<(String, Option<String>)> {
    let is_path = |char: char| char.is_ascii_alphanumeric() || matches!(char, '/' | '.' | '-' | '_');
    let mut found = Vec::new();
    for (at, _) in line.match_indices(".md") {
        let end = at + ".md".len();
        if line[end..].starts_with(|char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_')) {
            continue;
        }
        let start = line[..at]
            .rfind(|char| !is_path(char))
            .map_or(0, |before| before + line[before..].chars().next().map_or(1, char::len_utf8));
        // An extension alone, a pattern, an external address, or a path with a computed part.
        let before = line[..start].chars().next_back();
        if start == at || line[start..at].starts_with("//") || before.is_some_and(|char| "*:$}{<>…".contains(char)) {
            continue;
        }
        let anchor = line[end..].strip_prefix('#').map(|rest| {
            let length = rest.find(|char: char| !(char.is_ascii_alphanumeric() || matches!(char, '-' | '_')));
            rest[..length.unwrap_or(rest.len())].to_owned()
        });
        found.push((line[start..end].to_owned(), anchor.filter(|anchor| !anchor.is_empty())));
    }
    found
}

/// Returns `true` if a line of code has a message that begins with the number of a section, such as `"4.2: …"`, or ends with one, such as
/// `… (4.2)"`.
fn cites_a_section(line: &str) -> bool {
    let is_section = |text: &str| {
        let is_number = |part: &str| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        text.split_once('.').is_some_and(|(section, rule)| is_number(section) && is_number(rule))
    };
    line.split('"').skip(1).step_by(2).any(|message| {
        let first = message.split_once(": ").map_or("", |(first, _)| first);
        let last = message.strip_suffix(')').and_then(|message| message.rsplit_once('(')).map_or("", |(_, last)| last);
        is_section(first) || is_section(last)
    })
}

fn is_exempt(path: &str) -> bool {
    EXEMPT.iter().any(|exempt| path.starts_with(exempt))
}

fn report(what: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{} {what}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_relative_link_resolves() {
    let repository = Repository::read();
    let mut wrong = Vec::new();
    for (file, text) in repository.markdown() {
        for (number, line) in prose(text) {
            for link in links(line) {
                let (path, anchor) = link.split_once('#').map_or((link.as_str(), None), |(path, it)| (path, Some(it)));
                let target = if path.is_empty() { Some(file.to_owned()) } else { Repository::resolve(file, path) };
                let Some(target) = target.filter(|target| repository.has(target)) else {
                    wrong.push(format!("{file}:{number}: {link}: no such file"));
                    continue;
                };
                if let Some(anchor) = anchor
                    && is_markdown(&target)
                    && !repository.has_heading(&target, anchor)
                {
                    wrong.push(format!("{file}:{number}: {link}: no such heading"));
                }
            }
        }
    }
    report("links do not resolve", &wrong);
}

#[test]
fn every_document_that_is_mentioned_exists() {
    let repository = Repository::read();
    let mut wrong = Vec::new();
    for (file, text) in repository.texts.iter().filter(|(file, _)| !is_exempt(file)) {
        for (number, line) in text.lines().enumerate() {
            for (path, anchor) in
                mentions(line).into_iter().filter(|(path, _)| !SERVED.iter().any(|it| path.ends_with(it)))
            {
                let number = number + 1;
                let places = repository.places(file, &path);
                if places.is_empty() {
                    wrong.push(format!("{file}:{number}: {path}: no such file"));
                } else if let Some(anchor) = anchor
                    && !places.iter().any(|place| repository.has_heading(place, &anchor))
                {
                    wrong.push(format!("{file}:{number}: {path}#{anchor}: no such heading"));
                }
            }
        }
    }
    report("mentions of documents do not resolve", &wrong);
}

#[test]
fn nothing_refers_to_a_document_outside_of_the_repository() {
    let repository = Repository::read();
    let mut wrong = Vec::new();
    for (file, text) in repository.texts.iter().filter(|(file, _)| !is_exempt(file)) {
        let foreign = FOREIGN.iter().flat_map(|name| text.match_indices(name)).map(|(at, _)| at);
        // A citation may continue in the next line of a comment.
        let follows = |end: usize| text[end..].trim_start_matches([' ', '\n', '/', '!', '#', '-', '*']).chars().next();
        let numbered = text.match_indices(NUMBERED).map(|(at, _)| at);
        let numbered = numbered.filter(|at| follows(at + NUMBERED.len()).is_some_and(|char| char.is_ascii_digit()));
        let chaptered = text.match_indices(CHAPTERED).map(|(at, _)| at);
        let chaptered = chaptered.filter(|at| follows(at + CHAPTERED.len()).is_some_and(char::is_uppercase));
        let places: BTreeSet<usize> = foreign.chain(numbered).chain(chaptered).collect();
        if file.ends_with(".rs") {
            let citing = text.lines().enumerate().filter(|(_, line)| cites_a_section(line));
            wrong.extend(citing.map(|(at, line)| format!("{file}:{}: {}", at + 1, line.trim())));
        }
        for at in places {
            let number = text[..at].matches('\n').count() + 1;
            let line = text.lines().nth(number - 1).unwrap_or_default().trim();
            wrong.push(format!("{file}:{number}: {}", line.chars().take(160).collect::<String>()));
        }
    }
    report("references to documents outside of the repository", &wrong);
}

#[test]
fn slugs_are_those_of_github() {
    assert_eq!(slug(" Dry runs"), "dry-runs");
    assert_eq!(slug(" `Prefer: wait` and `ETag`"), "prefer-wait-and-etag");
    assert_eq!(slug(" What is *not* done, and why?"), "what-is-not-done-and-why");
    assert_eq!(slug(" R1 – deaths"), "r1--deaths");
    assert_eq!(slug(" [Jobs](jobs.md#a) and snake_case"), "jobs-and-snake_case");
    let text = "# A\n## B\n```\n# no\n```\n## B\n<a id=\"here\"></a>\n";
    assert_eq!(anchors(text), ["a", "b", "b-1", "here"].map(str::to_owned).into());
}

#[test]
fn a_section_is_cited_by_its_number_before_or_behind_a_message() {
    for cites in [r#"assert!(x, "3.11: the owner's");"#, r#"assert!(x, "it has none (18.1)");"#] {
        assert!(cites_a_section(cites), "{cites}");
    }
    for other in
        [r#"("a", "1.5")"#, r#""{x}: 1.5""#, r#""0.60 (turns 0.10 to 0.90)""#, r#""127.0.0.1:80""#, r#""HTTP/1.1""#]
    {
        assert!(!cites_a_section(other), "{other}");
    }
}

#[test]
fn mentions_are_paths_with_anchors() {
    let found = |line| mentions(line);
    let one = |path: &str, anchor: Option<&str>| vec![(path.to_owned(), anchor.map(str::to_owned))];
    assert_eq!(found("// (docs/reference/jobs.md#cancel)."), one("docs/reference/jobs.md", Some("cancel")));
    assert_eq!(found("see `README.md`"), one("README.md", None));
    assert_eq!(found("https://example.com/x/README.md"), vec![]);
    assert_eq!(found("*.md, a.mdx and $name.md"), vec![]);
}
