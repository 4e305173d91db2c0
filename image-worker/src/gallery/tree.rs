//! A page as a tree of elements (WHATWG HTML, 13.2.6: tree construction).
//!
//! **Guarantee.** Building, walking and dropping a tree takes bounded memory and time, and no stack,
//! whatever the page contains.
//!
//! **Mechanism.** html5gum makes tokens; html5ever's tree builder puts them together; the nodes are
//! in one list. Texts and elements whose content is text never reach the tree builder. Elements
//! nested deeper than [`DEPTH_MAX`] count as part of their ancestor.
//!
//! **Reason.** The tree builder searches its stack of open elements for many tags. Without a limit,
//! a page of 5 MiB takes hours. Its own tokenizer compares each attribute of a tag with all others.

use std::cell::{Cell, RefCell};

use ego_tree::{NodeId, Tree};
use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, Tracer, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{Tag, TagKind, Token, TokenSink};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use html5ever::{Attribute, ExpandedName, LocalName, QualName, ns};
use html5gum::{DefaultEmitter, StartTag, Tokenizer};

/// Maximum number of open elements, as in browsers; those of formatting count twice.
const DEPTH_MAX: usize = 256;

/// Maximum number of elements, and of tags, that are read (docs/reference/imports.md#discovery-budgets).
pub const ELEMENTS_MAX: usize = 100_000;
pub const TAGS_MAX: usize = 4 * ELEMENTS_MAX;

/// Maximum number of attributes that are kept per element.
const ATTRIBUTES_MAX: usize = 100;

/// Attributes that are kept, in addition to `data-*`.
const ATTRIBUTES: [&str; 18] = [
    "aria-label",
    "class",
    "content",
    "height",
    "href",
    "id",
    "itemprop",
    "itemscope",
    "itemtype",
    "name",
    "property",
    "rel",
    "role",
    "src",
    "srcset",
    "style",
    "type",
    "width",
];

/// Elements that are read at any depth: they have no content, so none stays open.
const FLAT: [&str; 5] = ["base", "img", "link", "meta", "source"];

/// A page's markup.
pub struct Page {
    /// Its elements. The root stands for the document.
    pub tree: Tree<Element>,
    /// Its scripts, in order.
    pub scripts: Vec<Script>,
}

/// A script with its kind: the media type in lower case, without parameters.
#[derive(Debug, Default, PartialEq)]
pub struct Script {
    pub kind: String,
    pub text: String,
}

/// An element.
#[derive(Debug)]
pub struct Element {
    name: QualName,
    attributes: Vec<Attribute>,
}

impl Element {
    /// Its name, in lower case.
    pub fn name(&self) -> &str {
        &self.name.local
    }

    /// The value of an attribute.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.attributes().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// Names and values of its attributes, sorted by name.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.attributes.iter().map(|attribute| (&*attribute.name.local, &*attribute.value))
    }
}

impl Page {
    /// Builds the tree of a page.
    pub fn parse(html: &str) -> Self {
        let options = TreeBuilderOpts { scripting_enabled: false, drop_doctype: true, ..TreeBuilderOpts::default() };
        let mut reader = Reader {
            builder: TreeBuilder::new(Sink::new(), options),
            scripts: Vec::new(),
            open: 0,
            beyond: 0,
            tags_left: TAGS_MAX,
        };
        reader.read(html, false);
        Self { tree: reader.builder.sink.tree.into_inner(), scripts: reader.scripts }
    }
}

/// Passes the tokens of a page to the tree builder.
struct Reader {
    builder: TreeBuilder<Handle, Sink>,
    scripts: Vec<Script>,
    /// Upper bound of the number of open elements.
    open: usize,
    /// Number of open elements beyond [`DEPTH_MAX`].
    beyond: usize,
    tags_left: usize,
}

/// An element whose content is text.
enum Raw {
    Script(Script),
    Noscript(String),
    Other,
}

impl Reader {
    fn read(&mut self, html: &str, in_noscript: bool) {
        let mut emitter = DefaultEmitter::default();
        // The content of scripts, styles and similar elements is text.
        emitter.naively_switch_states(true);
        let mut raw = None;
        for token in Tokenizer::new_with_emitter(html, emitter) {
            let Ok(token) = token;
            match token {
                html5gum::Token::StartTag(tag) => {
                    self.end_raw(raw.take(), in_noscript);
                    raw = raw_of(&tag);
                    if raw.is_none() {
                        self.start(tag);
                    }
                }
                html5gum::Token::EndTag(tag) => {
                    if raw.is_some() {
                        self.end_raw(raw.take(), in_noscript);
                    } else {
                        self.end(&String::from_utf8_lossy(&tag.name));
                    }
                }
                html5gum::Token::String(piece) => {
                    if let Some(Raw::Script(Script { text, .. }) | Raw::Noscript(text)) = &mut raw {
                        text.push_str(&String::from_utf8_lossy(&piece));
                    }
                }
                _ => {}
            }
        }
        self.end_raw(raw, in_noscript);
    }

    /// Uses the text of an element. The content for clients without scripts often holds the real image; it is read once, without
    /// recursion.
    fn end_raw(&mut self, raw: Option<Raw>, in_noscript: bool) {
        match raw {
            Some(Raw::Script(script)) => self.scripts.push(script),
            Some(Raw::Noscript(text)) if !in_noscript => self.read(&text, true),
            _ => {}
        }
    }

    fn start(&mut self, tag: StartTag<()>) {
        let name = String::from_utf8_lossy(&tag.name);
        let is_flat = FLAT.contains(&&*name);
        if self.open >= DEPTH_MAX {
            let counter = Counter::default();
            self.builder.trace_handles(&counter);
            self.open = counter.0.get();
        }
        if self.open >= DEPTH_MAX && !is_flat {
            self.beyond += usize::from(!tag.self_closing);
            return;
        }
        // Elements that the standard inserts, such as `body` and `tbody`, are at most two for each tag.
        self.open += if is_flat { 0 } else { 3 };
        let kept = tag.attributes.iter().filter_map(|(name, value)| {
            let name = std::str::from_utf8(name).ok()?;
            let is_kept = name.starts_with("data-") || ATTRIBUTES.contains(&name);
            is_kept.then(|| Attribute {
                name: QualName::new(None, ns!(), LocalName::from(name)),
                value: StrTendril::from_slice(&String::from_utf8_lossy(value)),
            })
        });
        let attrs = kept.take(ATTRIBUTES_MAX).collect();
        self.pass(TagKind::StartTag, &name, tag.self_closing, attrs);
    }

    fn end(&mut self, name: &str) {
        if self.beyond > 0 {
            self.beyond -= 1;
        } else {
            self.pass(TagKind::EndTag, name, false, Vec::new());
        }
    }

    fn pass(&mut self, kind: TagKind, name: &str, self_closing: bool, attrs: Vec<Attribute>) {
        if self.tags_left == 0 || self.builder.sink.elements.get() >= ELEMENTS_MAX {
            return;
        }
        self.tags_left -= 1;
        let tag = Tag { kind, name: LocalName::from(name), self_closing, attrs, had_duplicate_attributes: false };
        // The answer is for a tokenizer, which switches its states itself here.
        let _ = self.builder.process_token(Token::TagToken(tag), 1);
    }
}

/// The text that follows a start tag, if its content is text. html5gum finds the end of the same elements.
fn raw_of(tag: &StartTag<()>) -> Option<Raw> {
    let name: &[u8] = &tag.name;
    match name {
        b"script" => {
            let kind = tag.attributes.get(b"type".as_slice()).map(|kind| String::from_utf8_lossy(kind).into_owned());
            let kind = essence(kind.as_deref().unwrap_or_default());
            Some(Raw::Script(Script { kind, text: String::new() }))
        }
        b"noscript" => Some(Raw::Noscript(String::new())),
        _ => html5gum::naive_next_state(name).map(|_| Raw::Other),
    }
}

/// A media type in lower case, without parameters.
pub fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Counts the elements that the tree builder keeps open.
#[derive(Default)]
struct Counter(Cell<usize>);

impl Tracer for Counter {
    type Handle = Handle;

    fn trace_handle(&self, _: &Handle) {
        self.0.set(self.0.get() + 1);
    }
}

#[derive(Clone, Debug)]
struct Handle {
    id: NodeId,
    name: QualName,
}

/// Receives the elements from the tree builder.
struct Sink {
    tree: RefCell<Tree<Element>>,
    elements: Cell<usize>,
}

impl Sink {
    fn new() -> Self {
        let root = Element { name: no_name(), attributes: Vec::new() };
        Self { tree: RefCell::new(Tree::new(root)), elements: Cell::new(0) }
    }

    /// A node without a place.
    fn orphan(&self, name: QualName, attributes: Vec<Attribute>) -> Handle {
        self.elements.set(self.elements.get() + 1);
        let id = self.tree.borrow_mut().orphan(Element { name: name.clone(), attributes }).id();
        Handle { id, name }
    }
}

fn no_name() -> QualName {
    QualName::new(None, ns!(), LocalName::from(""))
}

impl TreeSink for Sink {
    type Handle = Handle;
    type Output = ();
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) {}

    fn parse_error(&self, _: std::borrow::Cow<'static, str>) {}

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn get_document(&self) -> Handle {
        Handle { id: self.tree.borrow().root().id(), name: no_name() }
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        target.name.expanded()
    }

    fn same_node(&self, one: &Handle, other: &Handle) -> bool {
        one.id == other.id
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, _: ElementFlags) -> Handle {
        self.orphan(name, attributes)
    }

    fn create_comment(&self, _: StrTendril) -> Handle {
        self.orphan(no_name(), Vec::new())
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Handle {
        self.orphan(no_name(), Vec::new())
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    /// The content of a template counts as its children.
    fn get_template_contents(&self, target: &Handle) -> Handle {
        target.clone()
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        if let NodeOrText::AppendNode(child) = child
            && let Some(mut parent) = self.tree.borrow_mut().get_mut(parent.id)
        {
            parent.append_id(child.id);
        }
    }

    fn append_before_sibling(&self, sibling: &Handle, new: NodeOrText<Handle>) {
        if let NodeOrText::AppendNode(new) = new
            && let Some(mut sibling) = self.tree.borrow_mut().get_mut(sibling.id)
        {
            sibling.insert_id_before(new.id);
        }
    }

    fn append_based_on_parent_node(&self, element: &Handle, previous: &Handle, child: NodeOrText<Handle>) {
        let has_parent = self.tree.borrow().get(element.id).is_some_and(|element| element.parent().is_some());
        if has_parent {
            self.append_before_sibling(element, child);
        } else {
            self.append(previous, child);
        }
    }

    fn add_attrs_if_missing(&self, target: &Handle, attributes: Vec<Attribute>) {
        if let Some(mut target) = self.tree.borrow_mut().get_mut(target.id) {
            let known = &mut target.value().attributes;
            for attribute in attributes {
                if known.len() < ATTRIBUTES_MAX && known.iter().all(|other| other.name != attribute.name) {
                    known.push(attribute);
                }
            }
        }
    }

    fn remove_from_parent(&self, target: &Handle) {
        if let Some(mut target) = self.tree.borrow_mut().get_mut(target.id) {
            target.detach();
        }
    }

    fn reparent_children(&self, node: &Handle, new_parent: &Handle) {
        if let Some(mut parent) = self.tree.borrow_mut().get_mut(new_parent.id) {
            parent.reparent_from_id_append(node.id);
        }
    }
}
