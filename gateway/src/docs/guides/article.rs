//! From Markdown to HTML: headings get the anchors that GitHub gives them, links lead to served pages, and what is wider than a page is put
//! into a frame that scrolls.

use std::collections::HashMap;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use super::address::{Target, resolve};
use super::files::Document;

/// A document as it is shown.
pub struct Article {
    pub document: &'static Document,
    pub html: String,
    /// Its parts, of which the first has its title.
    pub sections: Vec<Section>,
}

/// A heading with what follows it up to the next one.
pub struct Section {
    pub level: HeadingLevel,
    pub anchor: String,
    pub heading: String,
    /// The text without markup, in which a search looks.
    pub text: String,
}

impl Article {
    pub fn from_document(document: &'static Document) -> Self {
        let mut writer = Writer { file: document.file, ..Writer::default() };
        let mut events = Parser::new_ext(document.text, Options::ENABLE_TABLES);
        while let Some(event) = events.next() {
            match event {
                Event::Start(Tag::Heading { level, .. }) => writer.heading(level, inside(&mut events)),
                Event::Start(Tag::Image { dest_url, .. }) => writer.image(&dest_url, &text(&inside(&mut events))),
                Event::Start(Tag::Link { dest_url, .. }) => writer.link(&dest_url, inside(&mut events)),
                other => writer.event(other),
            }
        }
        let mut html = String::with_capacity(document.text.len() * 2);
        html::push_html(&mut html, writer.events.into_iter());
        Self { document, html, sections: writer.sections }
    }
}

/// The events up to the end of the element that has just begun.
fn inside<'a>(events: &mut impl Iterator<Item = Event<'a>>) -> Vec<Event<'a>> {
    let mut depth = 0;
    let is_inside = |event: &Event| {
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
        depth >= 0
    };
    events.take_while(is_inside).collect()
}

/// The text of events without markup.
fn text(events: &[Event]) -> String {
    let piece = |event: &Event| match event {
        Event::Text(text) | Event::Code(text) => text.to_string(),
        Event::SoftBreak | Event::HardBreak => " ".into(),
        _ => String::new(),
    };
    events.iter().map(piece).collect()
}

#[derive(Default)]
struct Writer<'a> {
    file: &'static str,
    events: Vec<Event<'a>>,
    sections: Vec<Section>,
    /// How often each anchor was asked for.
    anchors: HashMap<String, usize>,
}

impl<'a> Writer<'a> {
    fn heading(&mut self, level: HeadingLevel, inside: Vec<Event<'a>>) {
        let heading = text(&inside);
        let anchor = self.anchor(&heading);
        let tag = Tag::Heading { level, id: Some(anchor.clone().into()), classes: Vec::new(), attrs: Vec::new() };
        self.events.push(Event::Start(tag));
        let mut inside = inside.into_iter();
        // A link in a heading is one all the same.
        while let Some(event) = inside.next() {
            match event {
                Event::Start(Tag::Link { dest_url, .. }) => self.link(&dest_url, self::inside(&mut inside)),
                other => self.events.push(other),
            }
        }
        if level != HeadingLevel::H1 {
            self.html(format!(r##" <a class="anchor" href="#{anchor}" aria-hidden="true" tabindex="-1">#</a>"##));
        }
        self.events.push(Event::End(TagEnd::Heading(level)));
        self.sections.push(Section { level, anchor, heading, text: String::new() });
    }

    /// GitHub's anchor of a heading: lower case, letters, digits, `-` and `_` kept, spaces to `-`, a number at each further one.
    fn anchor(&mut self, heading: &str) -> String {
        let kept = heading.trim().to_lowercase();
        let kept = kept.chars().filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
        let slug: String = kept.map(|char| if char == ' ' { '-' } else { char }).collect();
        let count = self.anchors.entry(slug.clone()).or_default();
        *count += 1;
        if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
    }

    fn link(&mut self, target: &str, inside: Vec<Event<'a>>) {
        self.found(&text(&inside));
        let (begin, end) = match resolve(self.file, target) {
            Target::Address(address) => (format!(r#"<a href="{}">"#, escaped(&address)), "</a>"),
            Target::File(path) => {
                (format!(r#"<span class="file" title="{} in the source code">"#, escaped(&path)), "</span>")
            }
        };
        self.events.push(Event::InlineHtml(begin.into()));
        self.events.extend(inside);
        self.events.push(Event::InlineHtml(end.into()));
    }

    fn image(&mut self, source: &str, alt: &str) {
        let alt = escaped(alt);
        self.events.push(Event::InlineHtml(match resolve(self.file, source) {
            Target::Address(address) => {
                format!(r#"<img src="{}" alt="{alt}" loading="lazy" decoding="async">"#, escaped(&address)).into()
            }
            Target::File(_) => format!("<em>{alt}</em>").into(),
        }));
    }

    fn event(&mut self, event: Event<'a>) {
        match &event {
            Event::Text(text) | Event::Code(text) => self.found(text),
            Event::SoftBreak | Event::HardBreak | Event::End(_) => self.found(" "),
            _ => {}
        }
        let is_diagram =
            matches!(&event, Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) if &**language == "mermaid");
        match &event {
            // Nothing draws them here; as text they can be read as well.
            Event::Start(Tag::CodeBlock(_)) if is_diagram => {
                self.html(r#"<div class="code"><p class="diagram">Diagram, in Mermaid</p>"#.into());
            }
            Event::Start(Tag::CodeBlock(_)) => self.html(r#"<div class="code">"#.into()),
            Event::Start(Tag::Table(_)) => self.html(r#"<div class="table">"#.into()),
            _ => {}
        }
        let is_end = matches!(event, Event::End(TagEnd::CodeBlock | TagEnd::Table));
        self.events.push(event);
        if is_end {
            self.html("</div>\n".into());
        }
    }

    fn html(&mut self, html: String) {
        self.events.push(Event::InlineHtml(html.into()));
    }

    /// Adds to the text in which a search looks.
    fn found(&mut self, text: &str) {
        if let Some(section) = self.sections.last_mut() {
            section.text.push_str(text);
        }
    }
}

/// A text for content and attributes of HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn article(text: &'static str) -> Article {
        Article::from_document(Box::leak(Box::new(Document { file: "docs/guides/agents.md", text })))
    }

    #[test]
    fn headings_have_the_anchors_of_github() {
        let article =
            article("# `POST /a`: it's _one_\n## Tokens & keys\n## Tokens & keys\n### [Jobs](#tokens--keys), again\n");
        let sections: Vec<_> = article.sections.iter().map(|it| (&*it.anchor, &*it.heading)).collect();
        let expected = [
            ("post-a-its-one", "POST /a: it's one"),
            ("tokens--keys", "Tokens & keys"),
            ("tokens--keys-1", "Tokens & keys"),
            ("jobs-again", "Jobs, again"),
        ];
        assert_eq!(sections, expected);
        assert!(article.html.contains(r#"<h1 id="post-a-its-one"><code>POST /a</code>"#), "{}", article.html);
        assert!(article.html.contains(r##"<a href="#tokens--keys">Jobs</a>, again <a class="anchor""##));
    }

    #[test]
    fn links_lead_to_what_is_served() {
        let paragraph = |markdown: String| article(markdown.leak()).html;
        for (path, anchor, address) in [
            ("../reference/jobs", "#leases", "/docs/guides/reference/jobs#leases"),
            ("console", "", "/docs/guides/console"),
            ("../README", "", "/docs/guides"),
            ("../../deploy/README", "#upgrade", "/docs/guides/deploy#upgrade"),
        ] {
            let html = paragraph(format!("[it]({path}.md{anchor})"));
            assert_eq!(html, format!("<p><a href=\"{address}\">it</a></p>\n"));
        }
        for (markdown, html) in [
            ("[**it**](#here)", r##"<a href="#here"><strong>it</strong></a>"##),
            ("[it](https://example.com/?a=1&b=2)", r#"<a href="https://example.com/?a=1&amp;b=2">it</a>"#),
            ("[it](../../Cargo.toml)", r#"<span class="file" title="Cargo.toml in the source code">it</span>"#),
            (
                r#"![a "b"](../images/console/board-light.jpg)"#,
                r#"<img src="/docs/guides/images/console/board-light.jpg" alt="a &quot;b&quot;" loading="lazy" decoding="async">"#,
            ),
            ("![it](../images/canvas.jpg)", "<em>it</em>"),
        ] {
            assert_eq!(paragraph(markdown.to_owned()), format!("<p>{html}</p>\n"));
        }
    }

    #[test]
    fn code_and_tables_are_framed_and_code_is_no_markup() {
        let article = article("# A\n```sh\necho '<b>' # no *b*\n```\n\n| a |\n| --- |\n| b `c` |\n");
        let html = article.html.replace('\n', "");
        let code = r#"<div class="code"><pre><code class="language-sh">echo '&lt;b&gt;' # no *b*</code></pre></div>"#;
        assert!(html.contains(code), "{html}");
        assert!(html.contains(r#"<div class="table"><table>"#) && html.ends_with("</table></div>"), "{html}");
        assert_eq!(
            article.sections[0].text.split_whitespace().collect::<Vec<_>>().join(" "),
            "echo '<b>' # no *b* a b c"
        );
    }
}
